"""Durable transactions, whatever the database is.

Claim: when a writing transaction ends without an error, what it wrote is on disk. Writers come one after the other:
SQLite has one writer at a time, Postgres locks the row that says where the chain ends.
"""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any, TypeVar
from weakref import WeakSet, finalize

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from privet.errors import LedgerBusy, LedgerError, UserError
from privet.system.addresses import masked

PATIENCE = 5.0
"""Seconds that a transaction waits for a lock while the ledger does not change: if it does, others get their turn."""

_T = TypeVar("_T")


class Database(ABC):
    """A database with the tables of a ledger. After an error of the storage it does nothing more.

    Transactions of one process come one after the other, over one connection of the driver: SQLAlchemy's own way to
    begin and to end them would take longer than the disk. Around a fork no connection is open: SQLite's locks belong to
    a process, and a child that inherits a connection believes to hold locks that it does not hold.
    """

    private = False
    """Whether it is this process's alone, so that a child can't open it."""
    hidden: tuple[str, ...] = ()
    """What no error may show."""
    known = ""
    """The hash of the newest entry that this process has read."""
    created = False
    """Whether it was made just now."""

    def __init__(self, engine: sa.Engine, where: str, *, read_only: bool = False) -> None:
        self.engine = engine
        self.where = where
        self._read_only = read_only
        self._process = os.getpid()
        self._turn = threading.RLock()  # threads queue here, in order, and not at the database
        self._held: list[sa.PoolProxiedConnection] = []  # the one connection, while there is one
        self._inside = self._closed = False
        self._broken = ""
        self._errors = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error, OSError, UnicodeError)
        _OPEN.add(self)
        finalize(self, _shut, self._held, engine).atexit = False  # for ledgers that nobody closes

    @abstractmethod
    def _begin(self, connection: Any, *, write: bool) -> None: ...

    def _begun(self, connection: Any) -> None:  # noqa: B027 (only one database has to)
        """Look at what was asked for at the beginning, now that its answer is there."""

    @abstractmethod
    def _commit(self, connection: Any) -> None: ...

    @abstractmethod
    def _is_busy(self, error: BaseException) -> bool:
        """Whether somebody else has a lock that is needed."""

    def _moved(self) -> bool:
        """Whether there are entries that this process does not know: then a lock is only one's turn in a queue."""
        return False

    def _together(self, connection: Any, *, write: bool) -> AbstractContextManager[object]:
        """Around a transaction."""
        return nullcontext()

    def writing(self, start: Callable[[Any], _T]) -> AbstractContextManager[_T]:
        """A transaction that is on disk when it ends. It begins with `start`, which may wait for a lock."""
        if self._read_only:
            raise UserError(f"the ledger {self.where} was opened for reading only")
        return self._transaction(start, write=True)

    def reading(self, start: Callable[[Any], _T]) -> AbstractContextManager[_T]:
        """A transaction that sees one state of the ledger, and needs no lock that a writer has while it works."""
        return self._transaction(start, write=False)

    @contextmanager
    def _transaction(self, start: Callable[[Any], _T], *, write: bool) -> Iterator[_T]:
        with self._turn:
            if self._inside:  # a signal handler: this thread is in the middle of another transaction
                raise LedgerError("the ledger is in the middle of another step. Ask again when that has ended")
            if self._broken:
                raise LedgerError(self._broken) from None
            if os.getpid() != self._process:
                raise LedgerError("this ledger was opened by another process, and Python was not told of the fork")
            clean, before, connection = False, sys.exception(), None
            try:
                self._inside = True
                try:
                    with ExitStack() as stack:
                        connection, started = self._started(stack, start, write=write)
                        yield started
                        self._commit(connection)
                    clean = True
                except Exception:
                    if connection is not None:
                        with suppress(*self._errors):
                            connection.rollback()
                            clean = True
                    raise
            except self._errors as error:
                if isinstance(error.__context__, KeyboardInterrupt) and error.__context__ is not before:
                    raise KeyboardInterrupt from None  # it came while the transaction was ended
                if self._is_busy(error):
                    raise self._busy() from None
                self.stop(self._trouble(error))
                raise LedgerError(self._broken) from None
            finally:
                try:
                    if not clean or self._closed:
                        self._drop()
                    if self._closed:
                        self._end()
                finally:
                    self._inside = False

    def _started(self, stack: ExitStack, start: Callable[[Any], _T], *, write: bool) -> tuple[Any, _T]:
        """A transaction that has begun, and has its lock; while others get theirs, it waits."""
        while True:
            connection = self._connection()
            with ExitStack() as attempt:
                try:
                    attempt.enter_context(self._together(connection, write=write))
                    self._begin(connection, write=write)
                    started = start(connection)
                    self._begun(connection)
                    stack.push(attempt.pop_all())
                    return connection, started
                except self._errors as error:
                    if not self._is_busy(error) or not self._moved():
                        raise
                    with suppress(*self._errors):
                        attempt.close()
                    connection.rollback()

    def _busy(self) -> LedgerBusy:
        return LedgerBusy(
            f"the ledger {self.where} is busy: another process has held its lock for {PATIENCE:g} seconds. Nothing was "
            "written. Try again"
        )

    def _drop(self) -> None:
        """Let go of a connection of which it is not known that its transaction has ended: closed, it ends."""
        for connection in self._held:
            with suppress(*self._errors):
                connection.invalidate()
        self._held.clear()

    def _connection(self) -> Any:
        """The driver's connection."""
        if not self._held:
            self._held.append(self.engine.raw_connection())
        return self._held[0].driver_connection

    def _trouble(self, error: BaseException) -> str:
        text = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
        cause = masked(text.splitlines()[0], self.hidden)[:200]
        return (
            f"the ledger {self.where} can't be read or written ({cause}). Nothing is answered any more. "
            "Fix the storage and open the ledger again: it is verified first"
        )

    def stop(self, why: str) -> None:
        """Do nothing more: the ledger can't be trusted."""
        self._broken = self._broken or why

    def close(self) -> None:
        """Let go of the connection, for good; a transaction of the same thread ends first."""
        with self._turn:
            self._closed = True
            self.stop(f"the ledger {self.where} was closed. Open it again")
            if not self._inside:
                self._end()

    def _end(self) -> None:
        _shut(self._held, self.engine)

    def before_fork(self) -> None:
        """Wait for what is running, and close what other processes can open again."""
        self._turn.acquire()
        if not self.private:
            _shut(self._held, self.engine)

    def in_parent(self) -> None:
        """Go on."""
        self._turn.release()

    def in_child(self) -> None:
        """Begin anew. A ledger in memory is the parent's: two copies would both spend it."""
        self._turn, self._process = threading.RLock(), os.getpid()
        if self.private:
            self._broken = (
                "a ledger in memory can't be shared by processes: each would spend all of it. "
                'Write, for example: ledger="people.ledger"'
            )


def _shut(held: list[sa.PoolProxiedConnection], engine: sa.Engine) -> None:
    with suppress(Exception):  # a connection that is dead already
        for connection in held:
            connection.close()
    held.clear()
    engine.dispose()


_OPEN: WeakSet[Database] = WeakSet()
_FORKING: list[Database] = []  # those that wait for the end of a fork: others may be opened meanwhile


def _before_fork() -> None:
    for database in list(_OPEN):
        database.before_fork()
        _FORKING.append(database)


def _in_parent() -> None:
    while _FORKING:
        _FORKING.pop().in_parent()


def _in_child() -> None:
    _FORKING.clear()
    for database in list(_OPEN):
        database.in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
