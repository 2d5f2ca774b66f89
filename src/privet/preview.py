"""What an analyst sees before paying: the tables, what is left of the budget, and plans in words.

Reads no rows and spends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

from privet.dataset import Dataset
from privet.errors import Face, UserError
from privet.ledger import Balance, Charge, Ledger
from privet.ledger.balance import how_often, nearest
from privet.mechanisms import NOISE
from privet.planner import ReleasePlan
from privet.planner.arguments import check_arguments
from privet.planner.batch import BatchPlan
from privet.planner.choice import Accounting, alternative
from privet.planner.explain import Explanation, section
from privet.privacy.guarantees import Guarantee
from privet.release import recall
from privet.release.batch import batch_before, digests
from privet.requests import dividing
from privet.requests.dividing import Funds
from privet.requests.options import BatchOptions, ReleaseOptions
from privet.tables.query import Query
from privet.view import View


@dataclass(frozen=True)
class Standing:
    """What the ledger says about a plan: the analyst's balance, and what a stored answer has cost."""

    plan: ReleasePlan | BatchPlan
    balance: Balance
    before: Guarantee | None
    """None if there is no stored answer."""

    @cached_property
    def times(self) -> int:
        """How often the plan is still within every cap."""
        return self.balance.remaining.times(self.plan)


class Preview(View):
    """One analyst's view of a dataset, without paying: the balance, plans and explanations."""

    dataset: Dataset

    def __init__(self, dataset: Dataset, analyst: str) -> None:
        self.dataset = dataset
        self.analyst = analyst
        self._caps = dataset.caps(analyst)

    @property
    def ledger(self) -> Ledger:
        """The ledger, for `verify` and for the steward."""
        return self.dataset.ledger

    @property
    def balance(self) -> Balance:
        """What was granted and what is spent, including the analyst's own cap if there is one."""
        return self._caps.lower(self.ledger.balance(self.name, self.analyst))

    # --- plans ----------------------------------------------------------------------------------

    def plan(self, query: Query | str | ReleasePlan, **options: Unpack[ReleaseOptions]) -> ReleasePlan:
        """How a query or a SELECT would be answered, and what it would cost. Reads no rows and spends nothing.

        `explain`, `paid_before` and `release` also accept the plan, which saves parsing and planning again.
        """
        return within_budget(self, self._planned(query, options), query, options)

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
        return explained(self, plan, standing(self, plan), fresh=fresh, face=face)

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
        self,
        questions: Mapping[str, Query | str | ReleasePlan],
        *,
        fresh: bool = False,
        **options: Unpack[BatchOptions],
    ) -> Explanation:
        """The plan of a batch in words, and whether it is already paid for. Reads no rows and spends nothing."""
        batch = questions if isinstance(questions, BatchPlan) and not options else self.plan_all(questions, **options)
        return Explanation("\n".join([batch.explain(), *_left(self, standing(self, batch), fresh=fresh)]))

    def _before(self, plan: ReleasePlan | BatchPlan) -> Guarantee | None:
        """The cost of the stored answer that this analyst would get.

        Claim: it is found by the rule of `Ledger.reserve`, so it tells an analyst nothing that asking would not.
        """
        return _cost(plan, self.ledger.stored(**self._measured(plan)))

    def _measured(self, plan: ReleasePlan | BatchPlan) -> dict[str, Any]:
        """How the ledger finds a stored answer to a plan."""
        return {
            "dataset": self.name,
            "analyst": self.analyst,
            "events": [plan.event()],
            "question": digests(plan)[1] if isinstance(plan, BatchPlan) else recall.question_digest(plan),
            "version": self.version,
            "share": self.dataset.share_answers,
        }


# --- for whoever needs parts of it ----------------------------------------------------------------


def standing(preview: Preview, plan: ReleasePlan | BatchPlan) -> Standing:
    """The balance and the cost of a stored answer, read together."""
    balance, stored = preview.ledger.standing(**preview._measured(plan))
    return Standing(plan, preview._caps.lower(balance), _cost(plan, stored))


def within_budget(
    preview: Preview, planned: ReleasePlan, query: Query | str | ReleasePlan, options: Mapping[str, Any]
) -> ReleasePlan:
    """The plan; if Privet chose its mechanism, and what is left does not pay for it, one with another mechanism.

    A plan whose answer is stored stays: that answer is free, and a retry must be the same question.
    """
    if planned.choice and not preview.remaining.fits(planned) and preview._before(planned) is None:
        for name in NOISE:
            with suppress(UserError):
                other = preview.dataset.plan(query, **{**options, "mechanism": name})
                if preview.remaining.fits(other):
                    return other
    return planned


def explained(
    preview: Preview, plan: ReleasePlan, found: Standing, *, fresh: bool = False, face: Face = "python"
) -> Explanation:
    """A plan in words, given its standing."""
    accounting = Accounting(found.balance.accountant, found.balance.budget)
    lines = section("Meters", [accounting.prices(plan)]) + section("Instead", [_instead(plan, accounting)])
    return Explanation("\n".join([plan.explain(face), *lines, *_left(preview, found, fresh=fresh)]))


def _left(preview: Preview, found: Standing, *, fresh: bool = False) -> list[str]:
    """The lines about a stored answer, and about what is left of the budget."""
    limit = nearest(found.balance.limits(preview.analyst))
    left = f"{limit.text} is left of {limit.name}"
    if found.before is None or fresh:
        often = how_often(found.times, "question" if isinstance(found.plan, ReleasePlan) else "batch")
        left += f": enough for {often} like this" if found.times else ": not enough"
    return [*recall.stored_line(found.before, fresh=fresh), f"{'Budget':<11}{left}."]


def _cost(plan: ReleasePlan | BatchPlan, stored: Charge | None) -> Guarantee | None:
    return batch_before(plan, stored) if isinstance(plan, BatchPlan) else recall.paid_before(plan, stored)


def _instead(plan: ReleasePlan, accounting: Accounting) -> str:
    """What noise in rho would do; for the same budget it is always the same."""
    return plan.once(f"instead, {accounting.budget!r}", lambda made: alternative(made, accounting))
