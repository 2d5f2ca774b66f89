"""Connections to a dataset, with a maximum; the connections of a pool share one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from privet.allowance import Allowance, LimitedSession
from privet.dbapi import errors
from privet.dbapi.cursors import Cursor
from privet.dbapi.errors import InterfaceError, translated
from privet.errors import UserError, argument
from privet.exact import Exact, Number, positive


class Shared:
    """One session for several connections: opened for the first, closed with the last. The allowance stays."""

    def __init__(self, opens: Callable[[], LimitedSession]) -> None:
        self._opens = opens
        self._users = 0
        self._session: LimitedSession | None = None
        self._lock = threading.Lock()

    def take(self) -> LimitedSession:
        """The session, for one more connection."""
        with self._lock:
            if self._session is None:
                self._session = self._opens()
            self._users += 1
            return self._session

    def leave(self) -> None:
        """One connection fewer."""
        with self._lock:
            self._users -= 1
            if not self._users and self._session is not None:
                self._session.close()
                self._session = None


class Connection:
    """A connection. Transactions do nothing: what is spent is spent, and nothing is written.

    Threads can share it.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, shared: Shared, *, epsilon: Exact | None, intervals: bool) -> None:
        self.epsilon = epsilon
        """What a statement costs that does not name its price; None if it must."""
        self.intervals = intervals
        """Whether each column `n` is followed by `n_low`, `n_high` and `n_noisy`."""
        self._shared = shared
        self._lock = threading.Lock()
        self._session: LimitedSession | None = shared.take()

    @property
    def limited(self) -> LimitedSession:
        """The session, and what it may still spend."""
        if self._session is None:
            raise InterfaceError("this connection is closed")
        return self._session

    def cursor(self) -> Cursor:
        """A new cursor."""
        self.limited  # noqa: B018 (refused if it is closed)
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: a question that was asked is paid for."""
        self.limited  # noqa: B018

    def rollback(self) -> None:
        """Do nothing: what is spent can't be taken back."""
        self.limited  # noqa: B018

    def close(self) -> None:
        """Close the connection; its answers stay stored."""
        with self._lock:
            open_, self._session = self._session is not None, None
        if open_:
            self._shared.leave()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


def connect(
    policy: str | Path | None = None,
    *,
    url: str | None = None,
    token: str | None = None,
    dataset: str | None = None,
    analyst: str = "analyst",
    epsilon: Number | None = None,
    max_epsilon: Number | None = None,
    intervals: bool = True,
) -> Connection:
    """Connect to a dataset of a policy, or of a server at a URL.

    - `max_epsilon`: the most that the connection may spend; required.
    - `epsilon`: what a statement costs that does not name its price with OPTIONS (epsilon = ...).
    - `token`: for a server, by default that of PRIVET_TOKEN, or the one that `privet login` stored.
    - `intervals`: whether each column `n` is followed by `n_low`, `n_high` and `n_noisy`.
    """
    with translated():
        allowance = allowed(max_epsilon)
        price = None if epsilon is None else positive(epsilon, name="epsilon", example=argument("epsilon", 0.1))

        def opens() -> LimitedSession:
            where = {"policy": policy, "url": url, "token": token, "dataset": dataset}
            return LimitedSession.open(allowance, analyst=analyst, **where)  # type: ignore[arg-type]

        return Connection(Shared(opens), epsilon=price, intervals=bool(intervals))


def allowed(max_epsilon: Number | None) -> Allowance:
    """The allowance of connections; refused if no maximum is given."""
    if max_epsilon is None:
        raise UserError(
            "max_epsilon is missing: the most that the connection may spend", remedy=argument("max_epsilon", 1)
        )
    return Allowance(max_epsilon)
