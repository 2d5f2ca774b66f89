"""One analyst's view of a dataset: the only place where data, budget and noise meet.

A question goes: plan, price, debit, execute, noise, settle. Before the debit nothing was read; after it nothing that
an analyst can see depends on a row, but for the noisy numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypedDict, TypeVar, Unpack

from privet.dataset import COPIED, Dataset, DatasetOptions
from privet.errors import Face, InternalError, LedgerError, QueryError, Remedy, UserError, argument, write
from privet.exact import Number
from privet.ledger import Balance, Charge, Ledger, Remaining
from privet.ledger.balance import how_often, nearest
from privet.mechanisms import Laplace
from privet.payment import paid
from privet.planner import ReleasePlan
from privet.planner.arguments import check_arguments, check_price
from privet.planner.noise import add_noise
from privet.planner.wording import worded
from privet.privacy import events
from privet.privacy.guarantees import Budget, PureDP
from privet.release import Certificate, Release, recall
from privet.release.certificate import certify, of_query, of_value
from privet.release.recall import asked_digest, question_digest, recalled, recalled_value
from privet.release.value import ReleasedValue
from privet.system.closing import Closing
from privet.tables.query import Query
from privet.tables.relation import PublicTable, Table
from privet.tables.schema import check_name

if TYPE_CHECKING:  # pydantic takes its time, and most sessions need none of it
    from privet.policy import Policy

_T = TypeVar("_T", bound=Release | ReleasedValue)


class ReleaseOptions(TypedDict, total=False):
    """How a question is asked: an epsilon, or errors to keep `within`, and what the intervals are to be."""

    epsilon: Number | None
    within: Mapping[str, Number] | None
    confidence: Number
    simultaneous: bool
    assuming: int | None
    weights: Mapping[str, Number] | None
    mechanism: str | None


@cache
def _version() -> str:
    return version("privet")


class Session(Closing):
    """One analyst's view of a dataset: questions, their price and their answers, and what is left of the budget.

    `pv.Session([...], budget=..., ledger=...)` opens a `Dataset` of its own, which it closes at its end, and takes what
    `Dataset` takes. Where several people ask, open a `Dataset` once and make a session for each of them.

    Threads may share a session; so may the children of a fork, if the ledger is not in memory.
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
        """Whether a question was paid for in this session."""

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
        """A session by the steward's policy, which says all but who asks.

        If the policy has several datasets, name one, or give the statement that is `asking`: its tables tell which one
        it is.
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
        """What was granted and what is spent; for an analyst with a cap, of that too."""
        return self._caps.lower(self.ledger.balance(self.name, self.analyst))

    @property
    def spent(self) -> Any:
        """What is spent, as a guarantee of the budget's kind; under meters, the share of the budget that is used."""
        return self.balance.spent

    @property
    def remaining(self) -> Remaining:
        """What is left under every cap: its share, its guarantee, and whether a plan fits."""
        return self.balance.remaining

    def reopen(self, reason: str) -> None:
        """Open the dataset again after failures: for the steward, with a reason, as an entry of the ledger."""
        self.ledger.reopen(self.name, reason)

    # --- asking ---------------------------------------------------------------------------------

    def parse(self, text: str) -> Query:
        """The question that a SELECT asks: the same value that the fluent language makes."""
        return self.dataset.parse(text)

    def plan(self, query: Query | str | ReleasePlan, **options: Unpack[ReleaseOptions]) -> ReleasePlan:
        """How a query, or a SELECT, would be answered, and what it would cost. Nothing is read and nothing is spent.

        `explain`, `paid_before` and `release` also take the plan, so that nothing is parsed and planned twice.
        """
        check_arguments(options, ReleaseOptions.__annotations__)
        if isinstance(query, ReleasePlan) and options:
            raise QueryError(
                f"a plan already says its {next(iter(options))}",
                remedy=Remedy("Leave it out, or give the question in place of its plan"),
            )
        return self.dataset.plan(query, **options)

    def paid_before(self, query: Query | str | ReleasePlan, **options: Unpack[ReleaseOptions]) -> PureDP | None:
        """What the stored answer cost that `release` would return for nothing; None if there is none."""
        return self._before(self.plan(query, **options))

    def explain(
        self,
        query: Query | str | ReleasePlan,
        *,
        fresh: bool = False,
        face: Face = "python",
        **options: Unpack[ReleaseOptions],
    ) -> str:
        """The plan in words, and whether it is paid for already. Nothing is read and nothing is spent."""
        plan = self.plan(query, **options)
        before = self._before(plan)
        balance = self.balance
        limit = nearest(balance.limits(self.analyst))
        left = f"{limit.text} is left of {limit.name}"
        if before is None or fresh:
            times = balance.remaining.times(plan)
            left += f": enough for {how_often(times)} like this" if times else ": not enough"
        return "\n".join([plan.explain(face), *recall.stored_line(before, fresh=fresh), f"{'Budget':<11}{left}."])

    def release(
        self,
        query: Query | str | ReleasePlan,
        *,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[ReleaseOptions],
    ) -> Release:
        """A private answer to a query or a SELECT, at an epsilon for all of it or within errors for its columns.

        What was measured before, of this version of the data and with no more noise, is answered from the ledger and
        costs nothing; `fresh=True` pays for a new draw. A request id makes a retry safe: it is answered once.
        """
        if not isinstance(fresh, bool):
            raise UserError(f"fresh must be True or False, not {fresh!r}", remedy=argument("fresh", True))
        plan = self.plan(query, **options)
        event = plan.event()
        engine, statements = self.dataset.engine, plan.statements()

        def answer(link: dict[str, Any]) -> tuple[Release, str]:
            exact = plan.coordinates([engine.answer(each) for each in statements])
            noisy, drawn = add_noise(plan, exact)
            if drawn != event:
                raise InternalError("the noise that was drawn is not what was paid for")
            cells = plan.cells(noisy)
            certificate, text = self._certify(of_query(plan, noisy, cells), link)
            return Release(plan, noisy, plan.guarantee(), None, certificate, cells), text

        def again(text: str) -> Release:
            return recalled(plan, text, None)

        asked = asked_digest(plan)
        statement = plan.text or worded(plan.query)
        digest = question_digest(plan)
        self._check_open()
        self.dataset.ready(statements)  # refused here, or not at all
        return self._paid(event, answer, again, asked, request_id, statement, question=digest, fresh=fresh)

    def release_value(
        self,
        value: Any,
        *,
        sensitivity: Number,
        epsilon: Number,
        label: str,
        request_id: str | None = None,
    ) -> ReleasedValue:
        """Pay for a statistic of your own: a number, list or array whose sensitivity you know, with Laplace noise."""
        if not str(label or "").strip():
            example = argument("label", "median of the waiting times")
            raise UserError("label must say what the value is", remedy=example)
        check_name(label, "label")
        mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon).fit(value)
        check_price(mechanism.epsilon, self.dataset.min_epsilon)
        self._check_open()

        def answer(link: dict[str, Any]) -> tuple[ReleasedValue, str]:
            released = mechanism.release(value)
            plain = released.tolist() if hasattr(released, "tolist") else released
            certificate, text = self._certify(of_value(mechanism, plain, label), link)
            return ReleasedValue(released, mechanism, mechanism.guarantee(), None, certificate), text

        def again(text: str) -> ReleasedValue:
            released, certificate = recalled_value(text, like=value)
            return ReleasedValue(released, mechanism, PureDP.ZERO, None, certificate)

        form = [type(value).__name__, list(getattr(value, "shape", ()))]
        asked = asked_digest({**of_value(mechanism, None, label)["asked"], "form": form})
        return self._paid(mechanism.event(), answer, again, asked, request_id, f"release_value: {label}")

    # --- inside ---------------------------------------------------------------------------------

    def _before(self, plan: ReleasePlan) -> PureDP | None:
        """What the stored answer cost that this analyst would be given."""
        where = {"dataset": self.name, "version": self.version, "analyst": self.analyst}
        return recall.paid_before(plan, self.ledger, **where, share=self.dataset.share_answers)

    def _check_open(self) -> None:
        if self._closed:
            raise UserError(
                "this session is closed",
                remedy=write('session = pv.Session([people], budget=pv.PureDP(3), ledger="people.ledger")'),
            )

    def _paid(
        self,
        event: events.PrivacyEvent,
        answer: Callable[[dict[str, Any]], tuple[_T, str]],
        again: Callable[[str], _T],
        asked: str,
        request_id: str | None,
        statement: str,
        *,
        question: str = "",
        fresh: bool = False,
    ) -> _T:
        """Debit, answer, settle; or what was answered before."""
        reserve = partial(
            self.ledger.reserve,
            dataset=self.name,
            analyst=self.analyst,
            request_id=None if request_id is None else check_name(request_id, "request id"),
            events=[event],
            asked=asked,
            question=question,
            statement=statement,
            version=self.version,
            fresh=fresh,
            caps=self._caps,
            share=self.dataset.share_answers,
        )
        released = paid(self.ledger, self.dataset.turn(), reserve, self._debit, answer, again)
        with suppress(LedgerError):  # the answer is there, whatever is left
            return replace(released, remaining=self.remaining)
        return released

    def _debit(self, charge: Charge) -> dict[str, Any]:
        """A debit was made: how a certificate refers to it."""
        self.debited = True
        return {
            "entry": charge.number,
            "hash": charge.hash,
            "request_id": charge.request_id,
            "analyst": self.analyst,
        }

    def _certify(self, body: dict[str, Any], link: dict[str, Any]) -> tuple[Certificate, str]:
        return certify(body, dataset=self.name, link=link, version=_version(), key=self.dataset.signing_key)

    def close(self) -> None:
        """End this view, and the dataset if the session opened it; questions that were paid for end first."""
        self._closed = True
        if self._owns:
            self.dataset.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UserError(f"a session {COPIED}")

    def __repr__(self) -> str:
        return f"Session({', '.join(self.tables)}; {self.balance.left} left of {self.balance.budget})"
