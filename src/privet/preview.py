"""What an analyst sees before paying: the tables, what is left of the budget, and plans in words.

Reads no rows and spends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Unpack

from privet.dataset import Dataset
from privet.errors import Face, QueryError, Remedy, UserError
from privet.ledger import Balance, Ledger, Remaining
from privet.ledger.balance import how_often, nearest
from privet.mechanisms import NOISE
from privet.planner import ReleasePlan
from privet.planner.arguments import check_arguments
from privet.planner.batch import BatchPlan
from privet.planner.choice import Accounting, alternative
from privet.planner.explain import Explanation, section
from privet.privacy.guarantees import Guarantee
from privet.release import recall
from privet.release.batch import batch_before
from privet.requests import dividing
from privet.requests.dividing import Funds
from privet.requests.options import BatchOptions, ReleaseOptions
from privet.tables.query import Query
from privet.tables.relation import PublicTable, Table


class Preview:
    """One analyst's view of a dataset, without paying: the balance, plans and explanations."""

    def __init__(self, dataset: Dataset, analyst: str) -> None:
        self.dataset = dataset
        self.analyst = analyst
        self._caps = dataset.caps(analyst)

    # --- the dataset ----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.dataset.name

    @property
    def version(self) -> str:
        """The name of this version of the data."""
        return self.dataset.version

    @property
    def tables(self) -> dict[str, Table]:
        """The private tables, by name."""
        return self.dataset.tables

    @property
    def public(self) -> dict[str, PublicTable]:
        """The public tables, by name."""
        return self.dataset.public

    @property
    def ledger(self) -> Ledger:
        """The ledger, for `verify` and for the steward."""
        return self.dataset.ledger

    # --- the budget -----------------------------------------------------------------------------

    @property
    def balance(self) -> Balance:
        """What was granted and what is spent, including the analyst's own cap if there is one."""
        return self._caps.lower(self.ledger.balance(self.name, self.analyst))

    @property
    def spent(self) -> Any:
        """What is spent: a guarantee of the budget's kind, or, if meters keep the budget, the share that is used."""
        return self.balance.spent

    @property
    def remaining(self) -> Remaining:
        """What is left under every cap: the share, the guarantee, and whether a plan fits."""
        return self.balance.remaining

    # --- plans ----------------------------------------------------------------------------------

    def parse(self, text: str) -> Query:
        """The question that a SELECT asks, as the same value that the Python methods build."""
        return self.dataset.parse(text)

    def plan(self, query: Query | str | ReleasePlan, **options: Unpack[ReleaseOptions]) -> ReleasePlan:
        """How a query or a SELECT would be answered, and what it would cost. Reads no rows and spends nothing.

        `explain`, `paid_before` and `release` also accept the plan, which saves parsing and planning again.
        """
        check_arguments(options, ReleaseOptions.__annotations__)
        if isinstance(query, ReleasePlan) and options:
            raise QueryError(
                f"a plan already says its {next(iter(options))}",
                remedy=Remedy("Leave it out, or give the question in place of its plan"),
            )
        return self._within_budget(self.dataset.plan(query, **options), query, options)

    def _within_budget(
        self, planned: ReleasePlan, query: Query | str | ReleasePlan, options: ReleaseOptions
    ) -> ReleasePlan:
        """The plan; if Privet chose its mechanism, and what is left does not pay for it, one with another mechanism.

        A plan whose answer is stored stays: that answer is free, and a retry must be the same question.
        """
        if planned.choice and not self.remaining.fits(planned) and self._before(planned) is None:
            for name in NOISE:
                with suppress(UserError):
                    other = self.dataset.plan(query, **{**options, "mechanism": name})
                    if self.remaining.fits(other):
                        return other
        return planned

    def paid_before(
        self, query: Query | str | ReleasePlan | BatchPlan, **options: Unpack[ReleaseOptions]
    ) -> Guarantee | None:
        """The cost of the stored answer that asking would return for free; None if there is none."""
        return self._before(query if isinstance(query, BatchPlan) else self.plan(query, **options))

    def explain(
        self,
        query: Query | str | ReleasePlan,
        *,
        fresh: bool = False,
        face: Face = "python",
        **options: Unpack[ReleaseOptions],
    ) -> Explanation:
        """The plan in words, and whether it is already paid for. Reads no rows and spends nothing."""
        plan = self.plan(query, **options)
        accounting = Accounting(self.balance.accountant, self.balance.budget)
        lines = section("Meters", [accounting.prices(plan)]) + section("Instead", [alternative(plan, accounting)])
        return Explanation("\n".join([plan.explain(face), *lines, *self._standing(plan, fresh=fresh)]))

    def _standing(self, asked: ReleasePlan | BatchPlan, *, fresh: bool = False) -> list[str]:
        """The lines about a stored answer, and about what is left of the budget."""
        before, balance = self._before(asked), self.balance
        limit = nearest(balance.limits(self.analyst))
        left = f"{limit.text} is left of {limit.name}"
        if before is None or fresh:
            times = balance.remaining.times(asked)
            often = how_often(times, "question" if isinstance(asked, ReleasePlan) else "batch")
            left += f": enough for {often} like this" if times else ": not enough"
        return [*recall.stored_line(before, fresh=fresh), f"{'Budget':<11}{left}."]

    def plan_all(
        self, questions: Mapping[str, Query | str | ReleasePlan], **options: Unpack[BatchOptions]
    ) -> BatchPlan:
        """How `release_all` would answer these questions, and what they would cost. Reads no rows, spends nothing."""
        check_arguments(options, BatchOptions.__annotations__)
        delta = options.get("delta")
        granted = self.dataset.accounting.budget
        funds = None if delta is None else Funds(self.balance, granted, self._pays, delta)
        return dividing.planned(questions, dict(options), self._plan_in_batch, funds)

    def _pays(self, batch: BatchPlan) -> bool:
        return self.remaining.fits(batch) or self._before(batch) is not None

    def _plan_in_batch(self, query: Query | str | ReleasePlan, **options: Any) -> ReleasePlan:
        """The plan of a question, whatever is left of the budget: a retry must plan the same."""
        return self.plan(query, **options) if isinstance(query, ReleasePlan) else self.dataset.plan(query, **options)

    def explain_all(
        self, questions: Mapping[str, Query | str | ReleasePlan], **options: Unpack[BatchOptions]
    ) -> Explanation:
        """The plan of a batch in words, and whether it is already paid for. Reads no rows and spends nothing."""
        batch = self.plan_all(questions, **options)
        return Explanation("\n".join([batch.explain(), *self._standing(batch)]))

    def _before(self, plan: ReleasePlan | BatchPlan) -> Guarantee | None:
        """The cost of the stored answer that this analyst would get."""
        where = {"dataset": self.name, "version": self.version, "analyst": self.analyst}
        found = batch_before if isinstance(plan, BatchPlan) else recall.paid_before
        return found(plan, self.ledger, **where, share=self.dataset.share_answers)  # type: ignore[arg-type]
