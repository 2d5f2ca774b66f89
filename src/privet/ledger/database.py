"""Durable transactions on any database.

Claim: when a writing transaction ends without an error, its changes are on disk. Writers run one at a time: SQLite
allows a single writer, and on Postgres each writer locks the row that holds the end of the chain.
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
"""Seconds to wait for a lock while the ledger does not change. While it changes, others make progress."""

_T = TypeVar("_T")


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

    def __init__(self, engine: sa.Engine, where: str, *, read_only: bool = False) -> None:
        self.engine = engine
        self.where = where
        self._read_only = read_only
        self._process = os.getpid()
        self._turn = threading.RLock()  # threads queue here, not at the database
        self._held: list[sa.PoolProxiedConnection] = []  # at most one connection
        self._inside = self._closed = False
        self._broken = ""
        self._errors = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error, OSError, UnicodeError)
        _OPEN.add(self)
        finalize(self, _shut, self._held, engine).atexit = False  # for ledgers that are never closed

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

    def _together(self, connection: Any, *, write: bool) -> AbstractContextManager[object]:
        """A context around each transaction."""
        return nullcontext()

    def writing(self, start: Callable[[Any], _T]) -> AbstractContextManager[_T]:
        """A transaction whose changes are on disk when it ends. It begins with `start`, which may wait for a lock."""
        if self._read_only:
            raise UserError(f"the ledger {self.where} was opened read-only")
        return self._transaction(start, write=True)

    def reading(self, start: Callable[[Any], _T]) -> AbstractContextManager[_T]:
        """A transaction that sees a snapshot of the ledger, and does not wait for a writer that is still working."""
        return self._transaction(start, write=False)

    @contextmanager
    def _transaction(self, start: Callable[[Any], _T], *, write: bool) -> Iterator[_T]:
        with self._turn:
            if self._inside:  # a signal handler ran in the middle of another transaction
                raise LedgerError("this thread is already using the ledger. Ask again when that step has finished")
            if self._broken:
                raise LedgerError(self._broken) from None
            if os.getpid() != self._process:
                raise LedgerError(
                    "this ledger was opened before a fork that Python does not know about. Open it again in this "
                    "process"
                )
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
                    raise KeyboardInterrupt from None  # it arrived while the transaction was ending
                if self._is_busy(error):
                    raise self._busy() from None
                self.stop(self._storage_error(error))
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
        """Begin a transaction and get its lock; waits as long as other writers make progress."""
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
            "written. Try again later"
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
        with self._turn:
            self._closed = True
            self.stop(f"the ledger {self.where} is closed. Open it again")
            if not self._inside:
                self._end()

    def _end(self) -> None:
        _shut(self._held, self.engine)

    def before_fork(self) -> None:
        """Wait for running transactions, and close what can be opened again."""
        self._turn.acquire()
        if not self.private:
            _shut(self._held, self.engine)

    def in_parent(self) -> None:
        """Resume after a fork."""
        self._turn.release()

    def in_child(self) -> None:
        """Start afresh. A ledger in memory stays with the parent: two copies could each spend the whole budget."""
        self._turn, self._process = threading.RLock(), os.getpid()
        if self.private:
            self._broken = (
                "a ledger in memory can't be shared by several processes: each could spend the whole budget. "
                'Write, for example: ledger="people.ledger"'
            )


def _shut(held: list[sa.PoolProxiedConnection], engine: sa.Engine) -> None:
    with suppress(Exception):  # the connection may be dead already
        for connection in held:
            connection.close()
    held.clear()
    engine.dispose()


_OPEN: WeakSet[Database] = WeakSet()
_FORKING: list[Database] = []  # those locked for a fork; others may be opened meanwhile


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
