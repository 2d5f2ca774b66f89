"""One transaction of a ledger, from its turn to its end.

Claim: whatever interrupts it, it ends itself and no other: it is a ticket in queues, and ends only if it is the
database's current one. This is a class and not a generator, because a generator that is interrupted before the `with`
block begins is ended by the garbage collector, which may be in the middle of another transaction.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import finalize

from privet.errors import LedgerError
from privet.ledger.storage.turns import Ticket

if TYPE_CHECKING:
    from privet.ledger.storage.database import Database

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.004  # seconds between attempts to begin a transaction

_T = TypeVar("_T")


class Transaction(Generic[_T]):
    """A transaction of a `Database`, as a context."""

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
        patience = database._patience()
        if database._turns.has_this_thread() or (self._write and database._writers.has_this_thread()):
            # a signal handler ran in the middle of another transaction
            raise LedgerError("this thread is already using the ledger. Ask again when that step has finished")
        if self._write and not database._writers.wait(ticket, lambda: patience.lasts(database._progress())):
            raise database._busy()
        while True:
            queue = database._patience()
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
                if not database._waits_on(patience):
                    raise
            self._leave(clean=clean)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _attempt(self) -> _T:
        database, write = self._database, self._write
        self._connection = None
        connection = self._connection = database._connection()
        check = database._begin(connection, self._stack, write=write)
        self._value = self._start(connection)
        check()
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
            database.lost = database.lost or not database._broken
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
