"""Durable transactions on any database.

Claim: when a writing transaction ends without an error, its changes are on disk. Writers run one at a time: SQLite
allows a single writer, and on Postgres each writer locks the row that holds the end of the chain. Nobody waits for a
lock longer than `PATIENCE` while the ledger does not change, however many threads wait for it.
"""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from types import TracebackType
from typing import Any, Generic, TypeVar
from weakref import finalize

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from privet.errors import LedgerBusy, LedgerError, UserError
from privet.ledger.storage import forks
from privet.ledger.storage.turns import Patience, Ticket, Turns
from privet.system.addresses import masked
from privet.system.processes import forever

PATIENCE = 5.0
"""Seconds to wait for a lock while the ledger does not change. While it changes, others make progress."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.004  # seconds between attempts to begin a transaction

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
    def _begin(self, connection: Any, *, write: bool) -> None: ...

    def _begun(self, connection: Any) -> None:  # noqa: B027 (only Postgres overrides it)
        """Check the results of statements that `_begin` sent."""

    @abstractmethod
    def _commit(self, connection: Any) -> None: ...

    @abstractmethod
    def _is_busy(self, error: BaseException) -> bool:
        """Whether the error says that somebody else holds a lock."""

    def _moved(self) -> bool:
        """Whether other processes made progress, so that waiting for the lock is only waiting for one's turn."""
        return False

    def _progress(self) -> object:
        """Changes whenever a writer makes progress, as far as that can be seen without a lock."""
        return self._written

    def _waits(self) -> bool:
        """Whether to try again, after an attempt that waited for nobody."""
        return False

    def _lock(self, *, write: bool) -> None:  # noqa: B027 (only SQLite overrides these two)
        """Take the locks of a transaction."""

    def _unlock(self) -> None:  # noqa: B027
        """Release them, after rolling back what was not committed."""

    def _together(self, connection: Any, *, write: bool) -> AbstractContextManager[object]:
        """A context around each transaction."""
        return nullcontext()

    def writing(
        self, start: Callable[[Any], _T], confirm: Callable[[_T], None] | None = None
    ) -> AbstractContextManager[_T]:
        """A transaction whose changes are on disk when it ends. It begins with `start`, which may wait for a lock.

        If `confirm`, which is called after the commit, raises a `LedgerError`, all further work is refused.
        """
        if self._read_only:
            raise UserError(f"the ledger {self.where} was opened read-only")
        return _Transaction(self, start, confirm, write=True)

    def reading(self, start: Callable[[Any], _T]) -> AbstractContextManager[_T]:
        """A transaction that sees a snapshot of the ledger, and does not wait for a writer that is still working."""
        return _Transaction(self, start, None, write=False)

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
            "Nothing was written. Try again later"
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


class _Transaction(Generic[_T]):
    """One transaction, from its turn to its end.

    Claim: whatever interrupts it, it ends itself and no other: it is a ticket in queues, and ends only if it is the
    database's current one. This is a class and not a generator, because a generator that is interrupted before the
    `with` block begins is ended by the garbage collector, which may be in the middle of another transaction.
    """

    def __init__(
        self,
        database: Database,
        start: Callable[[Any], _T],
        confirm: Callable[[_T], None] | None,
        *,
        write: bool,
    ) -> None:
        self._database = database
        self._start, self._confirm, self._write = start, confirm, write
        self._ticket = Ticket()
        self._stack = ExitStack()
        self._connection: Any = None
        self._earlier: BaseException | None = None
        self._guard = finalize(self, _abandoned, database, self._ticket)
        self._guard.atexit = False

    def __enter__(self) -> _T:
        try:
            self._earlier = sys.exception()
            return self._entered()
        except BaseException as error:
            self._undo(error)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._complete()
        except BaseException as failure:
            self._undo(failure)
            raise
        if error is not None:
            self._undo(error)

    def _entered(self) -> _T:
        """Begin the transaction and get its lock; waits as long as other writers make progress."""
        database, ticket, pause = self._database, self._ticket, _FIRST_PAUSE
        patience = Patience(PATIENCE)
        if database._turns.has_this_thread() or (self._write and database._writers.has_this_thread()):
            # a signal handler ran in the middle of another transaction
            raise LedgerError("this thread is already using the ledger. Ask again when that step has finished")
        if self._write and not database._writers.wait(ticket, lambda: patience.lasts(database._progress())):
            raise database._busy()
        while True:
            queue = Patience(PATIENCE)
            if not database._turns.wait(ticket, lambda queue=queue: queue.lasts(database._ended)):  # type: ignore[misc]
                raise database._busy()
            database._current = ticket
            database._check_usable()
            try:
                return self._attempt()
            except database._errors as error:
                if not database._is_busy(error):
                    raise
                with suppress(*database._errors):
                    self._stack.close()
                clean = self._rolled_back()
                if not database._moved() and not (database._waits() and patience.lasts(database._progress())):
                    raise
            self._leave(clean=clean)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _attempt(self) -> _T:
        database, write = self._database, self._write
        self._connection = None
        connection = self._connection = database._connection()
        database._lock(write=write)
        self._stack.enter_context(database._together(connection, write=write))
        database._begin(connection, write=write)
        self._value = self._start(connection)
        database._begun(connection)
        return self._value

    def _complete(self) -> None:
        database = self._database
        if database._current is not self._ticket:
            raise LedgerError("this process was forked in the middle of a step of the ledger, which is the parent's")
        database._commit(self._connection)
        self._stack.close()
        self._leave(clean=True)
        database._written += self._write
        database._writers.leave(self._ticket)
        self._guard.detach()
        if self._confirm is not None:
            try:
                self._confirm(self._value)
            except LedgerError as error:
                database.stop(str(error))
                raise

    def _undo(self, error: BaseException) -> None:
        """End the transaction without a commit, and raise what the caller should see in place of a driver's error."""
        database, clean = self._database, False
        try:
            if database._current is self._ticket:
                try:
                    with suppress(*database._errors):
                        self._stack.__exit__(type(error), error, error.__traceback__)
                    clean = isinstance(error, Exception) and self._rolled_back()
                finally:
                    self._leave(clean=clean)
        finally:  # not left to the guard: an interrupt in the stack refers to this transaction until it is collected
            database._turns.leave(self._ticket)
            database._writers.leave(self._ticket)
            self._guard.detach()
        if isinstance(error, database._errors):
            if isinstance(error.__context__, KeyboardInterrupt) and error.__context__ is not self._earlier:
                raise KeyboardInterrupt from None  # it arrived while the transaction was ending
            if database._is_busy(error):
                raise database._busy() from None
            database.stop(database._storage_error(error))
            raise LedgerError(database._broken) from None

    def _rolled_back(self) -> bool:
        """Whether the connection is certainly without a transaction."""
        if self._connection is not None:
            with suppress(*self._database._errors):
                self._connection.rollback()
                return True
        return False

    def _leave(self, *, clean: bool) -> None:
        """Give up the connection and the turn; once more if that is interrupted."""
        try:
            self._database.let_go(self._ticket, clean=clean)
        except BaseException:
            self._database.let_go(self._ticket, clean=False)
            raise


def _abandoned(database: Database, ticket: Ticket) -> None:
    """End a transaction whose `__exit__` never began, because an interrupt arrived just before."""
    database.let_go(ticket, clean=False)
    database._writers.leave(ticket)
