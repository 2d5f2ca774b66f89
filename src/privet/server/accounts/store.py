"""The account store: durable transactions on a SQLite file or a Postgres database.

Claim: when a writing transaction ends without an error, its changes are on disk, and no other writer came in between.
A store that was emptied, truncated or replaced, that has triggers or other foreign objects, or whose version is not
this one, is refused, also while it is in use.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from privet.errors import PrivetError, Subject
from privet.server.accounts import hashing, tables
from privet.server.accounts.errors import StoreBusy, StoreError
from privet.system.addresses import masked
from privet.system.processes import forever

MOST_WAITING = 10_000
"""Logins of a kind that wait at a time."""
PATIENCE = 10.0
"""Seconds to wait for a lock."""

OPTIONS: dict[str, Any] = {"hide_parameters": True, "execution_options": {"preserve_rowcount": True}}
"""Of an engine: no error shows a value, and every statement says how many rows it changed."""
_HEAD = sa.select(tables.store.c.version, tables.store.c.key)
_OPEN: WeakSet[Store] = WeakSet()
_NOTE: ContextVar[Callable[[], None] | None] = ContextVar("note", default=None)


def first_row() -> sa.Insert:
    """The statement that completes a new store."""
    return sa.insert(tables.store).values(version=tables.VERSION, key=hashing.new_secret(), started=0)


class Store(ABC):
    """A database with the tables of accounts."""

    patience = PATIENCE

    def __init__(self, engine: sa.Engine, where: str, hidden: tuple[str, ...] = ()) -> None:
        self.engine, self.where = engine, where
        self._hidden = hidden
        self._process = os.getpid()
        self._closed = False
        self.key = b""
        """The key that signs cookies."""
        _OPEN.add(self)

    def __repr__(self) -> str:
        return f"<accounts in {self.where}>"

    @abstractmethod
    def _transaction(self, *, write: bool) -> Any:
        """A transaction, as a context."""

    @abstractmethod
    def _check(self, connection: sa.Connection, *, write: bool) -> None:
        """Refuse foreign objects and missing tables."""

    @abstractmethod
    def _is_busy(self, error: BaseException) -> bool:
        """Whether the error says that somebody else holds a lock."""

    def _is_away(self, error: BaseException) -> bool:
        """Whether the error says that the database can't be reached now."""
        return False

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the store."""
        with self._guarded(), self._transaction(write=False) as connection:
            self._begin(connection, _HEAD, write=False)
            yield connection

    @contextmanager
    def writing(self, *, alone: bool = True) -> Iterator[sa.Connection]:
        """A transaction that is on disk when it ends. Writers run one at a time, unless this one locks its own rows."""
        with self._guarded(), self._transaction(write=True) as connection:
            self._begin(connection, _HEAD.with_for_update() if alone else _HEAD, write=True)
            yield connection
            note = _NOTE.get()
            if note is not None:
                _NOTE.set(None)
                note()

    def _begin(self, connection: sa.Connection, head: sa.Select[Any], *, write: bool) -> None:
        self._check(connection, write=write)
        heads = connection.execute(head).fetchall()
        if len(heads) != 1:
            raise self.damaged("was emptied or tampered with")
        version, key = heads[0]
        if version != tables.VERSION:
            raise StoreError(
                f"the account store {self.where} has format version {str(version)[:20]}, but this version of Privet "
                f"reads only {tables.VERSION}. Use the version of Privet that wrote it, or restore a copy"
            )
        self.key = bytes.fromhex(key)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """No text of the database reaches a caller, except its first line without secrets."""
        if self._closed:
            raise StoreError(f"the account store {self.where} is closed. Open it again")
        if os.getpid() != self._process:
            raise StoreError(f"the account store {self.where} was opened before a fork. Open it again in this process")
        try:
            yield
        except PrivetError:
            raise
        except (SQLAlchemyError, OSError) as error:
            raise self.error(error) from None

    def error(self, error: BaseException) -> StoreError:
        """What a caller sees in place of an error of the database."""
        if self._is_busy(error):
            return StoreBusy(
                f"the account store {self.where} is busy: another process or thread has held its lock for "
                f"{self.patience:g} seconds. Nothing was changed. Try again later",
                subject=Subject("ledger", self.where),
            )
        text = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
        cause = masked(text.splitlines()[0], self._hidden)[:200]
        if self._is_away(error):
            return StoreBusy(
                f"the account store {self.where} can't be reached ({cause}). Nobody is let in until it can be. Try "
                "again later",
                subject=Subject("ledger", self.where),
            )
        return self.damaged(f"can't be read or written ({cause})")

    def damaged(self, what: str) -> StoreError:
        """The error for a store that can't be trusted."""
        return StoreError(f"the account store {self.where} {what}. Nobody is let in until you fix or restore it")

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        self.engine.dispose()


@contextmanager
def noting(note: Callable[[], None]) -> Iterator[None]:
    """Within this block, the first change is noted just before its commit: an act that is refused leaves no note.

    If the note can't be made, nothing is changed.
    """
    token = _NOTE.set(note)
    try:
        yield
    finally:
        _NOTE.reset(token)


def changed(result: sa.CursorResult[Any], store: Store) -> None:
    """Check that a statement changed exactly one row. A trigger or a rule can silently drop a row."""
    if result.rowcount != 1:
        raise store.damaged("did not store a row")


def make_room(connection: sa.Connection, table: sa.Table, now: int) -> None:
    """Forget what has expired in a table of logins that wait, and the oldest if there are too many.

    If new ones were refused instead, a few networks could keep everybody out.
    """
    connection.execute(sa.delete(table).where(table.c.expires <= now))
    waiting = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() or 0
    if waiting >= MOST_WAITING:
        oldest = sa.select(table.c.hash).order_by(table.c.expires).limit(waiting - MOST_WAITING + 1)
        connection.execute(sa.delete(table).where(table.c.hash.in_(oldest)))


def _in_child() -> None:
    for store in list(_OPEN):  # closing a connection of the parent could roll back its transaction
        forever(store.engine.pool)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
