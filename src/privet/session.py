"""One analyst asks a dataset and pays: the only place where data, budget and noise meet.

The steps of a question are: plan, price, debit, execute, add noise, settle. No row is read before the debit. After it,
the noisy numbers are the only thing an analyst sees that depends on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, Unpack

from privet.dataset import COPIED, Dataset, DatasetOptions
from privet.errors import (
    LedgerError,
    UserError,
    write,
)
from privet.exact import Number
from privet.ledger import Charge, Ledger
from privet.mechanisms import described
from privet.mechanisms.described import Adding, Choosing
from privet.names.required import needs
from privet.payment import paid
from privet.planner import ReleasePlan
from privet.planner.arguments import check_arguments, check_label, check_price
from privet.preview import Preview
from privet.privacy.guarantees import Budget
from privet.release import Release
from privet.release.batch import ReleasedBatch
from privet.release.value import ReleasedValue
from privet.requests import Debited, Request, batches, queries, values
from privet.requests.base import AnswerT
from privet.requests.options import BatchOptions, ReleaseOptions
from privet.system.closing import Closing
from privet.system.progress import hidden
from privet.tables import look
from privet.tables.query import Query
from privet.tables.relation import Table
from privet.tables.schema import check_name
from privet.view import Asker, check_fresh

if TYPE_CHECKING:  # pydantic takes its time, and most sessions need none of it
    from privet.policy import Policy


Watching = Callable[[], AbstractContextManager[None]]
"""What happens around the computation of an answer."""
_UNNAMED = "analyst"  # who asks unless named: whoever sits at the terminal and can read the rows, the steward


class Session(Preview, Asker, Closing):
    """One analyst's view of a dataset: ask questions, see what they cost, and see how much budget is left.

    `pv.Session([...], budget=..., ledger=...)` opens a `Dataset` of its own and takes the same arguments; closing the
    session closes it. If several people ask, open one `Dataset` and create a session for each of them.

    Threads can share a session. So can forked processes, unless the ledger is in memory.
    """

    @needs('pv.Session([people], budget=pv.PureDP(3), ledger="people.ledger")')
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
        Preview.__init__(self, dataset, analyst)
        self._owns = owns
        self._closed = False
        self._watch: Watching = nullcontext
        self.debited = False
        """Whether this session has paid for a question."""

    @classmethod
    def of(cls, dataset: Dataset, *, analyst: str, owns: bool = False, watch: Watching = nullcontext) -> Session:
        """A session of an open dataset; one that `owns` it closes it too.

        A server can `watch` each question: the block begins right after the debit, and ends before the answer, or that
        there is none, is recorded.
        """
        session = cls.__new__(cls)
        session._begin(dataset, check_name(analyst, "analyst"), owns=owns)
        session._watch = watch
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

    # --- asking ---------------------------------------------------------------------------------

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
        check_fresh(fresh)
        plan = self.plan(query, **options)

        return self._paid(queries.request(plan), request_id, fresh=fresh)

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
        check_fresh(fresh)
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

    def reopen(self, reason: str) -> None:
        """Reopen the dataset after failures. This is for the steward; the ledger records the reason."""
        self.dataset.connect()
        self.ledger.reopen(self.name, reason)

    # --- inside ---------------------------------------------------------------------------------

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
            shown = nullcontext() if self.analyst == _UNNAMED else hidden()  # progress is for the steward alone
            with self._watch(), shown:
                return request.answer(Debited(self.dataset.engine, self.name, link, self.dataset.signing_key))

        reserve = partial(self.ledger.reserve, **options)
        released, balance = paid(self.ledger, self.dataset.turn(), reserve, self._debit, answer, request.again)
        with suppress(LedgerError):  # the answer is there, whatever is left
            remaining = self.remaining if balance is None else self._caps.lower(balance).remaining
            return replace(released, remaining=remaining)
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


def pay(session: Session, request: Request[AnswerT], request_id: str | None = None, *, fresh: bool = False) -> AnswerT:
    """Pay for a request as it was planned: a server has held its price, and another plan may cost more."""
    return session._paid(request, request_id, fresh=fresh)
