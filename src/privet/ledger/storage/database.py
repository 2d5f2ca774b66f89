"""Durable transactions on any database.

Claim: when a writing transaction ends without an error, its changes are on disk. Writers run one at a time: SQLite
allows a single writer, and on Postgres each writer locks the row that holds the end of the chain. Nobody waits for a
lock longer than `PATIENCE` while the ledger does not change, however many threads wait for it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, TypeVar
from weakref import finalize

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from privet.errors import LedgerBusy, LedgerError, Subject, UserError
from privet.ledger.storage import forks
from privet.ledger.storage.transaction import Transaction
from privet.ledger.storage.turns import Patience, Ticket, Turns
from privet.system.addresses import masked
from privet.system.processes import forever

PATIENCE = 5.0
"""Seconds to wait for a lock while the ledger does not change. While it changes, others make progress."""

_T = TypeVar("_T")


class NoLedger(UserError):
    """The ledger to be read does not exist yet."""


class Database(ABC):
    """A database with the tables of a ledger. After a storage error it refuses all further work.

    The transactions of a process run one at a time, over one driver connection: SQLAlchemy's own transactions would
    take longer than the disk. No connection is open during a fork: SQLite's locks belong to a process, and a child
    that inherited a connection would assume locks that it does not hold.
    """

    private = False
    """Whether it exists only in this process, so that a child can't open it."""
    hidden: tuple[str, ...] = ()
    """Secrets that no error may show."""
    newest = ""
    """The hash of the newest entry that this process has read."""
    created = False
    """Whether this call created it."""
    lost = False
    """Whether its storage failed, such as by a lost connection. What is stored may be in order."""
    when_busy: Callable[[], None] = staticmethod(lambda: None)
    """Called when somebody else held a lock for too long."""

    def __init__(self, engine: sa.Engine, where: str, *, read_only: bool = False) -> None:
        self.engine = engine
        self.where = where
        self._read_only = read_only
        self._process = os.getpid()
        self._turns = Turns()  # threads queue here for the connection, not at the database
        self._writers = Turns()  # writers queue here too, so that readers pass them while they wait for a lock
        self._current: Ticket | None = None  # of the transaction that uses the connection
        self._ended = self._written = 0  # transactions of this process that have ended, and those that have written
        self._held: list[sa.PoolProxiedConnection] = []  # at most one connection
        self._closed = False
        self._broken = ""
        self._errors = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error, OSError, UnicodeError)
        forks.register(self)
        self._finalizer = finalize(self, _shut, self._held, engine)  # for ledgers that are never closed
        self._finalizer.atexit = False

    @abstractmethod
    def _begin(self, connection: Any, stack: ExitStack, *, write: bool) -> Callable[[], None]:
        """Begin a transaction and take its locks; returns a check to be made after its first statements.

        What is put on the stack is ended when the transaction ends.
        """

    @abstractmethod
    def _commit(self, connection: Any) -> None: ...

    def _unlock(self) -> None:  # noqa: B027 (only SQLite overrides it)
        """Release the locks of a transaction, after rolling back what was not committed."""

    @abstractmethod
    def _is_busy(self, error: BaseException) -> bool:
        """Whether the error says that somebody else holds a lock."""

    def _waits_on(self, patience: Patience) -> bool:
        """Whether to try again, because others make progress and waiting for the lock is waiting for one's turn."""
        return patience.lasts(self._progress())

    def _progress(self) -> object:
        """Changes whenever a writer makes progress, as far as that can be seen without a lock."""
        return self._written

    def _patience(self) -> Patience:
        return Patience(PATIENCE)

    def writing(
        self, start: Callable[[Any], _T], confirm: Callable[[_T], None] | None = None
    ) -> AbstractContextManager[_T]:
        """A transaction whose changes are on disk when it ends. It begins with `start`, which may wait for a lock.

        If `confirm`, which is called after the commit, raises a `LedgerError`, all further work is refused.
        """
        if self._read_only:
            raise UserError(f"the ledger {self.where} was opened read-only")
        return Transaction(self, start, confirm, write=True)

    def reading(self, start: Callable[[Any], _T]) -> AbstractContextManager[_T]:
        """A transaction that sees a snapshot of the ledger, and does not wait for a writer that is still working."""
        return Transaction(self, start, None, write=False)

    def _check_usable(self) -> None:
        if self._broken:
            raise LedgerError(self._broken) from None
        if os.getpid() != self._process:
            raise LedgerError(
                "this ledger was opened before a fork that Python does not know about. Open it again in this process"
            )

    def _busy(self) -> LedgerBusy:
        self.when_busy()
        return LedgerBusy(
            f"the ledger {self.where} is busy: another process or thread has held its lock for {PATIENCE:g} seconds. "
            "Nothing was written. Try again later",
            subject=Subject("ledger", self.where),
        )

    def _drop(self) -> None:
        """Close a connection whose transaction may still be open, which ends the transaction."""
        for connection in self._held:
            with suppress(*self._errors):
                connection.invalidate()
        self._held.clear()

    def _connection(self) -> Any:
        """The driver's connection."""
        if not self._held:
            self._held.append(self.engine.raw_connection())
        return self._held[0].driver_connection

    def _storage_error(self, error: BaseException) -> str:
        text = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
        cause = masked(text.splitlines()[0], self.hidden)[:200]
        return (
            f"the ledger {self.where} can't be read or written ({cause}). Privet answers nothing until you fix the "
            "storage. Then open the ledger again, which verifies it"
        )

    def freeze(self) -> None:
        """Refuse to write from now on."""
        self._read_only = True

    def stop(self, reason: str) -> None:
        """Refuse all further work, for the reason given."""
        self._broken = self._broken or reason

    def close(self) -> None:
        """Close the connection for good, after a transaction of this thread has ended."""
        self._closed = True
        self.stop(f"the ledger {self.where} is closed. Open it again")
        if self._turns.has_this_thread():  # its end closes the connection
            return
        ticket = Ticket()
        try:
            self._turns.wait(ticket, lambda: True)
            self._end()
        finally:
            self._turns.leave(ticket)

    def _end(self) -> None:
        _shut(self._held, self.engine)

    def let_go(self, ticket: Ticket, *, clean: bool) -> None:
        """Give up the connection and the turn, if the transaction with this ticket has them."""
        if self._current is ticket:
            self._unlock()
            if not clean or self._closed:
                self._drop()
            if self._closed:
                self._end()
            self._current = None
            self._ended += 1
        self._turns.leave(ticket)

    def before_fork(self, ticket: Ticket) -> bool:
        """Wait for running transactions, and close what can be opened again; False if a transaction takes too long."""
        patience = Patience(2 * PATIENCE)  # a commit may wait for a lock itself
        if self._turns.has_this_thread() or not self._turns.wait(ticket, lambda: patience.lasts(self._ended)):
            return False
        if not self.private:
            _shut(self._held, self.engine)
        return True

    def in_parent(self, ticket: Ticket) -> None:
        """Resume after a fork."""
        self._turns.leave(ticket)

    def in_child(self, *, ready: bool) -> None:
        """Start afresh. A ledger in memory stays with the parent: two copies could each spend the whole budget."""
        self._turns, self._writers, self._current, self._process = Turns(), Turns(), None, os.getpid()
        if self.private:
            self._broken = (
                "a ledger in memory can't be shared by several processes: each could spend the whole budget. "
                'Write, for example: ledger="people.ledger"'
            )
        elif not ready:
            self._finalizer.detach()
            forever(self._held)  # the connection is the parent's, and in use there
            self._held = []
            self.stop(
                f"this process was forked while the ledger {self.where} was in use. Open it again in this process"
            )


def _shut(held: list[sa.PoolProxiedConnection], engine: sa.Engine) -> None:
    with suppress(Exception):  # the connection may be dead already
        for connection in held:
            connection.close()
    held.clear()
    engine.dispose()
