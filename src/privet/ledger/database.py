"""Durable transactions, whatever the database is.

Claim: when a writing transaction ends without an error, what it wrote is on disk. Writers of one dataset come one after
the other: SQLite has one writer at a time, Postgres locks the dataset's row.
"""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any
from weakref import WeakSet, finalize

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from privet.addresses import masked
from privet.errors import LedgerError
from privet.ledger import tables


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

    def __init__(self, engine: sa.Engine, where: str) -> None:
        self.engine = engine
        self.where = where
        self._turn = threading.RLock()  # threads queue here, in order, and not at the database
        self._held: list[sa.PoolProxiedConnection] = []  # the one connection, while there is one
        self._inside = self._closed = False
        self._broken = ""
        self._errors = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error, OSError, UnicodeError)
        _OPEN.add(self)
        finalize(self, _shut, self._held, engine).atexit = False  # for ledgers that nobody closes

    @abstractmethod
    def _begin(self, connection: Any, *, write: bool) -> None: ...

    @abstractmethod
    def _commit(self, connection: Any) -> None: ...

    def _together(self, connection: Any) -> AbstractContextManager[object]:
        """Around a transaction."""
        return nullcontext()

    def writing(self) -> AbstractContextManager[Any]:
        """A transaction that is on disk when it ends."""
        return self._transaction(write=True)

    def reading(self) -> AbstractContextManager[Any]:
        """A transaction that sees one state of the ledger."""
        return self._transaction(write=False)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Any]:
        with self._turn:
            if self._inside:  # a signal handler: this thread is in the middle of another transaction
                raise LedgerError("the ledger is in the middle of another step. Ask again when that has ended")
            if self._broken:
                raise LedgerError(self._broken) from None
            clean, before = False, sys.exception()
            try:
                self._inside = True
                connection = self._connection()
                try:
                    with self._together(connection):
                        self._begin(connection, write=write)
                        yield connection
                        self._commit(connection)
                    clean = True
                except Exception:
                    with suppress(*self._errors):
                        connection.rollback()
                        clean = True
                    raise
            except self._errors as error:
                if isinstance(error.__context__, KeyboardInterrupt) and error.__context__ is not before:
                    raise KeyboardInterrupt from None  # it came while the transaction was ended
                self.stop(self._trouble(error))
                raise LedgerError(self._broken) from None
            finally:
                try:
                    if not clean or self._closed:
                        self._drop()
                finally:
                    self._inside = False

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

    def prepare(self) -> None:
        """Bring the tables up to date."""
        try:
            with self._turn, self.engine.begin() as connection:
                self._lock_all(connection)
                tables.upgrade(connection)
        except self._errors as error:
            raise LedgerError(self._trouble(error)) from None

    @abstractmethod
    def _lock_all(self, connection: sa.Connection) -> None:
        """Two that start at once must not both make the tables."""

    @abstractmethod
    def check(self) -> None:
        """Look for damage that reading all entries would not show."""

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
        self._turn = threading.RLock()
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
