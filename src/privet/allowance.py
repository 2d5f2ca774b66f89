"""The most that one connection may spend: for assistants and database clients, which ask on their own.

What a question costs is held before it is asked, and given back only where nothing was debited. The limit is in memory:
it ends with the connection. Limits that last are the budget, an analyst's cap, and the largest epsilon of a token.
"""

from __future__ import annotations

import os
import threading
from decimal import ROUND_FLOOR
from pathlib import Path
from typing import NamedTuple, Unpack

from privet.client import RemoteSession, connect
from privet.dataset import Dataset
from privet.errors import (
    BudgetError,
    DatasetClosed,
    LedgerBusy,
    NoAnswer,
    NotChecked,
    PrivetError,
    QueryError,
    Remedy,
    ReusedRequest,
    Subject,
    UserError,
    VerificationError,
    argument,
    write,
)
from privet.exact import Exact, Number, positive, show, show_up
from privet.planner import ReleasePlan
from privet.privacy.guarantees import ApproxDP, ZeroConcentratedDP
from privet.privacy.guarantees.budgets import is_nothing
from privet.release import Release
from privet.release.recall import asked_digest, question_digest
from privet.requests.options import ReleaseOptions
from privet.session import Session
from privet.system.closing import Closing


class Unsure(NamedTuple):
    """A question that may have been paid for: its request id, and what is held for it."""

    request_id: str
    held: Exact


class Allowance:
    """The most epsilon that a connection may spend, and how much of it is held.

    Claim: holds of several threads never pass the maximum together.

    Example:
        >>> allowance = Allowance(1)
        >>> allowance.hold(Exact(3, 4))
        >>> allowance.left
        Fraction(1, 4)
        >>> allowance.hold(Exact(1, 2))
        Traceback (most recent call last):
        privet.errors.BudgetError: this costs epsilon 0.5, but only epsilon 0.25 is left of the 1 that this connection
        may spend. Nothing was spent
    """

    def __init__(self, max_epsilon: Number) -> None:
        self.most = positive(max_epsilon, name="max_epsilon", example=argument("max_epsilon", 1))
        """The largest epsilon of all questions together."""
        self.unsure: dict[str, Unsure] = {}
        """The questions that may have been paid for, by the digests of their requests."""
        self._held = Exact(0)
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def left(self) -> Exact:
        """What may still be spent."""
        return max(self.most - self._held, Exact(0))

    @property
    def left_text(self) -> str:
        """The same for people, rounded down: what they read can be spent."""
        return show(self.left, rounding=ROUND_FLOOR)

    def check_process(self) -> None:
        """Refuse another process than the one that counts: each would count on its own."""
        if os.getpid() != self._process:
            raise UserError(
                "this connection was opened in another process, which counts what it spends",
                remedy=Remedy("Connect anew in this process"),
            )

    def hold(self, epsilon: Exact) -> None:
        """Set aside the cost of a question before it is asked; a `BudgetError` if it passes the maximum."""
        self.check_process()
        with self._lock:
            if self._held + epsilon > self.most:
                left = f"only epsilon {self.left_text}" if self.left else "nothing"
                raise BudgetError(
                    f"this costs epsilon {show_up(epsilon)}, but {left} is left of the {show(self.most)} that this "
                    "connection may spend. Nothing was spent",
                    subject=Subject("argument", "epsilon"),
                )
            self._held += epsilon

    def count(self, epsilon: Exact) -> None:
        """Count what was spent without a hold, even beyond the maximum."""
        with self._lock:
            self._held += epsilon

    def give_back(self, epsilon: Exact) -> None:
        """Undo one `hold` of a question that was not debited."""
        with self._lock:
            self._held = max(self._held - epsilon, Exact(0))


class LimitedSession(Closing):
    """A session that spends no more than an allowance. Threads can share it.

    Claim: what is debited through it is held first, and its delta is no larger share of the budget than its epsilon.
    The same question, asked by several threads at a time or again after a failure, is paid for once if it is answered
    at all. A stored answer is free, whatever is left.
    """

    def __init__(self, session: Session | RemoteSession, allowance: Allowance) -> None:
        self.session = session
        self.allowance = allowance
        self._lock = threading.Lock()
        self._asking: dict[str, threading.Lock] = {}

    @classmethod
    def open(
        cls,
        allowance: Allowance,
        *,
        policy: str | Path | None = None,
        url: str | None = None,
        token: str | None = None,
        dataset: str | None = None,
        analyst: str = "analyst",
    ) -> LimitedSession:
        """A session of a policy, whose ledger is only read until a question is paid for, or of a server."""
        if (policy is None) == (url is None):
            raise UserError("pass either a policy or the address of a server", remedy=argument("policy", "privet.toml"))
        if url is not None:
            return cls(connect(url, token=token, dataset=dataset), allowance)
        assert policy is not None
        opened = Dataset.open(policy, dataset=dataset, connect=False)
        return cls(Session.of(opened, analyst=analyst, owns=True), allowance)

    def plan(self, query: str | ReleasePlan, **options: Unpack[ReleaseOptions]) -> ReleasePlan:
        """How a SELECT would be answered; refused if its cost can't be counted. Spends nothing."""
        plan = self.session.plan(query, **options)
        if options.get("within") is not None and isinstance(plan.guarantee(), ZeroConcentratedDP):
            options["mechanism"] = "laplace"  # whose cost can be counted
            plan = self.session.plan(query, **options)
        _cost(plan)
        return plan

    def release(self, query: str | ReleasePlan, **options: Unpack[ReleaseOptions]) -> Release:
        """A private answer to a SELECT, within the allowance."""
        self.allowance.check_process()  # before any lock: a child may have inherited it locked
        plan = self.plan(query, **options)
        with self._lock:
            turn = self._asking.setdefault(question_digest(plan), threading.Lock())
        with turn:  # whoever asks the same meanwhile gets the stored answer
            return self._released(plan, asked_digest(plan))

    def _released(self, plan: ReleasePlan, asked: str) -> Release:
        allowance = self.allowance
        earlier, held = allowance.unsure.pop(asked, None) or (None, self._hold(plan))
        asker = self._asker()
        sent = _pending(asker)
        try:
            released = asker.release(plan, request_id=earlier)
        except PrivetError as error:
            if earlier is None:
                known, request_id = _unspent(error, asker), getattr(error, "request_id", "")
            else:  # an earlier attempt may have been debited, whatever became of this one
                known, request_id = _looked_up(error), "" if _is_answer(error) else earlier
            if known:
                allowance.give_back(held)
            elif request_id:
                allowance.unsure[asked] = Unsure(request_id, held)
            raise
        except BaseException:  # such as Ctrl-C
            lost = earlier or (_pending(asker) if _pending(asker) != sent else "")
            if lost:
                allowance.unsure[asked] = Unsure(lost, held)
            raise
        if is_nothing(released.spent) and not _made_for(released, earlier):
            allowance.give_back(held)
        elif not held:  # a server said that it was stored, and it was not any more
            allowance.count(_cost(plan))
        return released

    def _hold(self, plan: ReleasePlan) -> Exact:
        """What is held for a question: its cost, or nothing if it is beyond the maximum and its answer is stored."""
        cost = _cost(plan)
        try:
            self._check_delta(plan)
            self.allowance.hold(cost)
        except BudgetError:
            if self.session.paid_before(plan) is None:
                raise
            return Exact(0)
        return cost

    def _check_delta(self, plan: ReleasePlan) -> None:
        """Refuse a delta that is a larger share of the budget than the epsilon: the maximum would not limit it."""
        price, budget = plan.guarantee(), self.session.dataset.budget
        if not isinstance(price, ApproxDP) or not price.delta:
            return
        most = Exact(0)  # also of a budget in rho: an event with a small epsilon and a delta can have any rho
        if isinstance(budget, ApproxDP) and budget.epsilon:
            most = price.epsilon * budget.delta / budget.epsilon
        if price.delta > most:
            options = f"OPTIONS (delta = {show(most, 2, rounding=ROUND_FLOOR)})"
            raise BudgetError(
                f"this costs delta {show_up(price.delta)}, but at epsilon {show(price.epsilon)} a connection may spend "
                f"delta {show(most, rounding=ROUND_FLOOR)}: no larger share of the delta than of the epsilon. "
                "Nothing was spent",
                remedy=write(sql=options, http=options) if most else Remedy("Leave delta out"),
            )

    def _asker(self) -> Session | RemoteSession:
        """The session that asks; beside the data, one for each question, which says whether it was debited."""
        session = self.session
        if isinstance(session, RemoteSession):
            return session
        return session.dataset.session(analyst=session.analyst)

    def close(self) -> None:
        """Close the session."""
        self.session.close()


def _cost(plan: ReleasePlan) -> Exact:
    epsilon = getattr(plan.guarantee(), "epsilon", None)
    if epsilon is None:
        raise QueryError(
            "a connection has a largest epsilon, so it can't pay in rho. Nothing was spent",
            remedy=argument("epsilon", 0.5),
        )
    return Exact(epsilon)


def _unspent(error: PrivetError, asker: Session | RemoteSession) -> bool:
    """Whether it is certain that a question that failed was not debited."""
    if isinstance(asker, Session):
        return not asker.debited and isinstance(error, UserError | DatasetClosed | LedgerBusy)
    return isinstance(error, UserError | DatasetClosed)


def _pending(asker: Session | RemoteSession) -> str:
    """The request id of a question that was sent to a server and is not answered."""
    return asker.pending if isinstance(asker, RemoteSession) else ""


def _looked_up(error: PrivetError) -> bool:
    """Whether a server looked for an earlier attempt, found none, and debited nothing now."""
    return isinstance(error, BudgetError | DatasetClosed)


def _is_answer(error: PrivetError) -> bool:
    """Whether an error says what became of an earlier attempt: to ask with its request id again is of no use."""
    return isinstance(error, NoAnswer | ReusedRequest | VerificationError) and not isinstance(error, NotChecked)


def _made_for(released: Release, request_id: str | None) -> bool:
    """Whether an answer was paid for by an earlier attempt with this request id."""
    return request_id is not None and released.certificate.document["ledger"].get("request_id") == request_id
