"""The most that one connection may spend: for assistants and database clients, which ask on their own.

What a question costs is held before it is asked, and given back only where nothing was debited. The limit is in memory:
it ends with the connection. Limits that last are the budget, an analyst's cap, and the largest epsilon of a token.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Unpack

from privet.client import RemoteSession, connect
from privet.dataset import Dataset
from privet.errors import (
    BudgetError,
    DatasetClosed,
    LedgerBusy,
    NoConnection,
    PrivetError,
    QueryError,
    Remedy,
    Subject,
    UserError,
    argument,
)
from privet.exact import Exact, Number, positive, show
from privet.planner import ReleasePlan
from privet.privacy.guarantees.budgets import is_nothing
from privet.release import Release
from privet.release.recall import asked_digest, question_digest
from privet.requests.options import ReleaseOptions
from privet.session import Session
from privet.system.closing import Closing


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
        self.unsure: dict[str, str] = {}
        """The request ids of questions that may have been paid for, by the digests of their requests."""
        self._held = Exact(0)
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def left(self) -> Exact:
        """What may still be spent."""
        return max(self.most - self._held, Exact(0))

    def hold(self, epsilon: Exact) -> None:
        """Set aside the cost of a question before it is asked; a `BudgetError` if it passes the maximum."""
        if os.getpid() != self._process:  # each process would count on its own
            raise UserError(
                "this connection was opened in another process, which counts what it spends",
                remedy=Remedy("Connect anew in this process"),
            )
        with self._lock:
            if self._held + epsilon > self.most:
                left = f"only epsilon {show(self.left)}" if self.left else "nothing"
                raise BudgetError(
                    f"this costs epsilon {show(epsilon)}, but {left} is left of the {show(self.most)} that this "
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

    Claim: what is debited through it is held first. The same question, asked by several threads at a time or again
    after a failure, is paid for once if it is answered at all. A stored answer is free, whatever is left.
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
        _cost(plan)
        return plan

    def release(self, query: str | ReleasePlan, **options: Unpack[ReleaseOptions]) -> Release:
        """A private answer to a SELECT, within the allowance."""
        plan = self.plan(query, **options)
        with self._lock:
            turn = self._asking.setdefault(question_digest(plan), threading.Lock())
        with turn:  # whoever asks the same meanwhile gets the stored answer
            return self._released(plan, asked_digest(plan))

    def _released(self, plan: ReleasePlan, asked: str) -> Release:
        earlier = self.allowance.unsure.pop(asked, None)
        held = Exact(0) if earlier is not None else self._hold(plan)
        asker = self._asker()
        try:
            released = asker.release(plan, request_id=earlier)
        except PrivetError as error:
            if _unspent(error, asker):
                self.allowance.give_back(held)
            elif isinstance(error, NoConnection) and error.request_id:
                self.allowance.unsure[asked] = error.request_id
            raise
        if is_nothing(released.spent):
            self.allowance.give_back(held)
        elif not held and earlier is None:  # a server said that it was stored, and it was not any more
            self.allowance.count(_cost(plan))
        return released

    def _hold(self, plan: ReleasePlan) -> Exact:
        """What is held for a question: its cost, or nothing if it is beyond the maximum and its answer is stored."""
        cost = _cost(plan)
        try:
            self.allowance.hold(cost)
        except BudgetError:
            if self.session.paid_before(plan) is None:
                raise
            return Exact(0)
        return cost

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
    if isinstance(error, UserError | DatasetClosed):
        return True
    return isinstance(error, LedgerBusy) and isinstance(asker, Session) and not asker.debited
