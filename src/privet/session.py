"""One analyst's view of a dataset: the only place where data, budget and noise meet.

The steps of a question are: plan, price, debit, execute, add noise, settle. No row is read before the debit. After it,
the noisy numbers are the only thing an analyst sees that depends on the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, Unpack

from privet.dataset import COPIED, Dataset, DatasetOptions
from privet.errors import (
    Face,
    LedgerError,
    QueryError,
    Remedy,
    UserError,
    argument,
    write,
)
from privet.exact import Number
from privet.ledger import Balance, Charge, Ledger, Remaining
from privet.ledger.balance import how_often, nearest
from privet.mechanisms import NOISE, described
from privet.mechanisms.described import Adding, Choosing
from privet.payment import paid
from privet.planner import ReleasePlan
from privet.planner.arguments import check_arguments, check_label, check_price
from privet.planner.batch import BatchPlan
from privet.planner.choice import Accounting, alternative
from privet.planner.explain import Explanation, section
from privet.privacy.guarantees import Budget, Guarantee
from privet.release import Release, bounds, recall
from privet.release.batch import ReleasedBatch, batch_before
from privet.release.bounds import ReleasedBounds
from privet.release.diagnosis import Diagnosis
from privet.release.value import ReleasedValue
from privet.requests import Debited, Request, batches, diagnoses, dividing, queries, values
from privet.requests.base import AnswerT
from privet.requests.dividing import Funds
from privet.requests.options import BatchOptions, BoundsOptions, DiagnosisOptions, ReleaseOptions
from privet.system.closing import Closing
from privet.tables import look
from privet.tables.expressions.fluent import Expr
from privet.tables.query import Query
from privet.tables.relation import PublicTable, Relation, Table, check_rows
from privet.tables.schema import check_name

if TYPE_CHECKING:  # pydantic takes its time, and most sessions need none of it
    from privet.policy import Policy


def _check_fresh(fresh: object) -> None:
    if not isinstance(fresh, bool):
        raise UserError(f"fresh must be True or False, not {fresh!r}", remedy=argument("fresh", True))


class Session(Closing):
    """One analyst's view of a dataset: ask questions, see what they cost, and see how much budget is left.

    `pv.Session([...], budget=..., ledger=...)` opens a `Dataset` of its own and takes the same arguments; closing the
    session closes it. If several people ask, open one `Dataset` and create a session for each of them.

    Threads can share a session. So can forked processes, unless the ledger is in memory.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        *,
        budget: Budget,
        ledger: Ledger | str | Path | None,
        analyst: str = "analyst",
        **options: Unpack[DatasetOptions],
    ) -> None:
        check_arguments(options, DatasetOptions.__annotations__)
        analyst = check_name(analyst, "analyst")
        self._begin(Dataset(tables, budget=budget, ledger=ledger, **options), analyst, owns=True)

    def _begin(self, dataset: Dataset, analyst: str, *, owns: bool) -> None:
        self.dataset = dataset
        self.analyst = analyst
        self._caps = dataset.caps(analyst)
        self._owns = owns
        self._closed = False
        self.debited = False
        """Whether this session has paid for a question."""

    @classmethod
    def of(cls, dataset: Dataset, *, analyst: str, owns: bool = False) -> Session:
        """A session of an open dataset; one that `owns` it closes it too."""
        session = cls.__new__(cls)
        session._begin(dataset, check_name(analyst, "analyst"), owns=owns)
        return session

    @classmethod
    def open(
        cls, policy: Policy | str | Path, *, dataset: str | None = None, analyst: str = "analyst", asking: str = ""
    ) -> Session:
        """Open a session from the steward's policy.

        If the policy has several datasets, name one, or pass the statement you are `asking`: its tables identify the
        dataset.
        """
        analyst = check_name(analyst, "analyst")
        return cls.of(Dataset.open(policy, dataset=dataset, asking=asking), analyst=analyst, owns=True)

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

    def reopen(self, reason: str) -> None:
        """Reopen the dataset after failures. This is for the steward; the ledger records the reason."""
        self.dataset.connect()
        self.ledger.reopen(self.name, reason)

    # --- asking ---------------------------------------------------------------------------------

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

    def release(
        self,
        query: Query | str | ReleasePlan,
        *,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[ReleaseOptions],
    ) -> Release:
        """A private answer to a query or a SELECT. Set its total epsilon, or the errors to keep `within`.

        If the ledger has an answer to the same question about this version of the data, with at most this much noise,
        it is returned for free; `fresh=True` pays for a new one. With a request id, a retry is not charged twice.
        """
        _check_fresh(fresh)
        plan = self.plan(query, **options)

        return self._paid(queries.request(plan), request_id, fresh=fresh)

    def release_bounds(
        self,
        rows: Relation | Table,
        column: str | Expr,
        *,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[BoundsOptions],
    ) -> ReleasedBounds:
        """Pay for bounds to clip a column or an expression to: powers of two between which nearly all values lie.

        It counts rows in public bins, with noise, and takes those that stand out. The same question is free again.
        """
        check_arguments(options, BoundsOptions.__annotations__)
        question = bounds.question(check_rows(rows), column)
        return ReleasedBounds(self.release(question, request_id=request_id, fresh=fresh, **options))

    def diagnose(
        self,
        query: Query | str | ReleasePlan,
        *,
        ceiling: int | None = None,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[DiagnosisOptions],
    ) -> Diagnosis:
        """Pay for a look at what caps and bounds take from a question: private shares of rows, people and values.

        The question itself is not asked. Rows are counted up to a public `ceiling` per person, four times the cap if
        you give none: a higher one sees more, with more noise. One debit; the same diagnosis is free again.
        """
        check_arguments(options, DiagnosisOptions.__annotations__)
        priced: Mapping[str, Any] = options
        if isinstance(query, str):
            statement = self.dataset.asked(query)
            asked, priced = statement.query, statement.priced(options)
        else:
            asked = query.query if isinstance(query, ReleasePlan) else query
        looked = diagnoses.asked(asked, ceiling)
        plans = {name: self.plan(each, **price) for name, each, price in diagnoses.priced(looked, priced)}
        batch = self.release_all(plans, request_id=request_id, fresh=fresh)
        return diagnoses.answered(asked, looked, batch)

    def plan_all(
        self, questions: Mapping[str, Query | str | ReleasePlan], **options: Unpack[BatchOptions]
    ) -> BatchPlan:
        """How `release_all` would answer these questions, and what they would cost. Reads no rows, spends nothing."""
        check_arguments(options, BatchOptions.__annotations__)
        delta = options.get("delta")
        granted = self.ledger.dataset(self.name).budget
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

    def release_all(
        self,
        questions: Mapping[str, Query | str | ReleasePlan],
        *,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[BatchOptions],
    ) -> ReleasedBatch:
        """Private answers to all of these questions, or to none: planned first, paid for at once, and then answered.

        One `epsilon` (or `rho`) is the price of all of them together. It is divided equally, or by `weights`:
        `weights={"men": 2}`. A price for each is a dict: `epsilon={"men": 0.3, "women": 0.1}`. Questions that are named
        in `within` cost what their errors take: `within={"men": {"n": 50}}`; plans have their prices. Questions about
        the same groups of the same rows share measurements.

        With a `delta`, which the budget must have, the batch is priced by its privacy loss where that leaves more of
        the budget (extra `pld`), and one epsilon is then divided so that it and this delta hold for all together. Other
        options hold for every question that is not a plan. The same batch is free again, as a whole.
        """
        _check_fresh(fresh)
        batch = self.plan_all(questions, **options)
        return self._paid(batches.request(batch, questions), request_id, fresh=fresh)

    def release_value(
        self,
        value: Any,
        *,
        label: str,
        sensitivity: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        mechanism: Adding | None = None,
        request_id: str | None = None,
    ) -> ReleasedValue:
        """Release your own statistic: a number, list or array whose sensitivity you know.

        Its sensitivity with an epsilon gets Laplace noise; with rho, or with epsilon and delta, Gaussian noise. Or give
        a mechanism: `mechanism=pv.Staircase(sensitivity=20, epsilon=3)`.
        """
        check_label(label, "value")
        noise = described.adding(mechanism, sensitivity, epsilon=epsilon, delta=delta, rho=rho).fit(value)
        self._check_payable(noise)
        event = self.dataset.accounting.stated(noise.event())
        return self._paid(values.statistic(value, noise, label, event), request_id)

    def select(
        self,
        scores: Any,
        *,
        label: str,
        mechanism: Choosing | None = None,
        candidates: Sequence[Any] | None = None,
        request_id: str | None = None,
    ) -> ReleasedValue:
        """Pay for a choice by scores of your own, whose sensitivity you know: one of the candidates, or its position.

        Candidates are texts or numbers, and public; so is how many there are. The scores are not.
        """
        check_label(label, "choice")
        chooser = described.choosing(mechanism)
        count = chooser.count(scores)
        request = values.choice(scores, chooser, label, count=count, candidates=candidates)
        self._check_payable(chooser)
        return self._paid(request, request_id)

    # --- inside ---------------------------------------------------------------------------------

    def _before(self, plan: ReleasePlan | BatchPlan) -> Guarantee | None:
        """The cost of the stored answer that this analyst would get."""
        where = {"dataset": self.name, "version": self.version, "analyst": self.analyst}
        found = batch_before if isinstance(plan, BatchPlan) else recall.paid_before
        return found(plan, self.ledger, **where, share=self.dataset.share_answers)  # type: ignore[arg-type]

    def _check_payable(self, mechanism: Adding | Choosing) -> None:
        """Refuse, before anything is paid for, a mechanism that this dataset's budget can't pay for."""
        check_price(mechanism.guarantee(), self.dataset.min_epsilon)
        self._check_open()
        values.check_payable(mechanism, self.balance)

    def _check_open(self) -> None:
        if self._closed:
            raise UserError(
                "this session is closed",
                remedy=write('session = pv.Session([people], budget=pv.PureDP(3), ledger="people.ledger")'),
            )

    def _paid(self, request: Request[AnswerT], request_id: str | None, *, fresh: bool = False) -> AnswerT:
        """Debit, answer and settle, or return the stored answer. What can't be answered is refused first."""
        self._check_open()
        options: dict[str, Any] = {
            "dataset": self.name,
            "analyst": self.analyst,
            "request_id": None if request_id is None else check_name(request_id, "request id"),
            "events": [request.event],
            "asked": request.asked,
            "question": request.question,
            "statement": request.words,
            "version": self.version,
            "fresh": fresh,
            "caps": self._caps,
            "share": self.dataset.share_answers,
        }
        self.dataset.connect(rehearse=lambda scratch: scratch.reserve(**options))
        if request.statements is not None:
            self.dataset.ready(request.statements)  # refused here, or not at all

        def answer(link: dict[str, Any]) -> tuple[AnswerT, str]:
            return request.answer(Debited(self.dataset.engine, self.name, link, self.dataset.signing_key))

        reserve = partial(self.ledger.reserve, **options)
        released = paid(self.ledger, self.dataset.turn(), reserve, self._debit, answer, request.again)
        with suppress(LedgerError):  # the answer is there, whatever is left
            return replace(released, remaining=self.remaining)
        return released

    def _debit(self, charge: Charge) -> dict[str, Any]:
        """Note the debit, and return the certificate's reference to it."""
        self.debited = True
        return {
            "entry": charge.number,
            "hash": charge.hash,
            "request_id": charge.request_id,
            "analyst": self.analyst,
        }

    def close(self) -> None:
        """Close the session, and its dataset if the session opened it. Waits for questions that are paid for."""
        self._closed = True
        if self._owns:
            self.dataset.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UserError(f"a session {COPIED}")

    def __repr__(self) -> str:
        return f"Session({', '.join(self.tables)}; {self.balance.left} left of {self.balance.budget})"

    def _repr_html_(self) -> str:
        title = f"Session of {self.analyst} on {self.name}, version {self.version}"
        return look.of_tables(self.tables.values(), self.public.values(), title) + self.balance._repr_html_()
