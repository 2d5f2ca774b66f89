"""A ledger in a file: SQLite with a rollback journal, synced at every commit.

Claim: every granted debit is in the file itself, and so are the locks. The `-journal` beside it matters only after an
interrupted write (`recovery`). So nobody can split the ledger or take back a debit by removing or adding files beside
it, or by giving it a second name. An emptied or truncated file is never mistaken for a new ledger, because a new ledger
is complete before it gets its name.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from weakref import finalize

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool, StaticPool

from privet.errors import LedgerError, Subject, UserError
from privet.ledger.storage.database import Database, NoLedger
from privet.ledger.storage.sqlite.creation import create as create_file
from privet.ledger.storage.sqlite.creation import wait_for_its_name
from privet.ledger.storage.sqlite.file import File, check_no_log, is_held
from privet.ledger.storage.sqlite.locks import Held
from privet.ledger.storage.sqlite.paths import (
    check_name,
    check_new,
    check_permission,
    check_whole,
    check_writable,
    identity,
)
from privet.ledger.storage.sqlite.schema import check_schema, create_tables
from privet.ledger.storage.turns import Patience
from privet.system.files import IN_USE
from privet.system.processes import native

_ENDS = f"SELECT min(ifnull(max(cast(number AS INTEGER)), 0), {2**31 - 1}) FROM privet_ledger"


class SQLite(Database):
    """A database in a file, or in memory if `path` is None."""

    def __init__(self, path: Path | None, where: str = "in memory", *, read_only: bool = False) -> None:
        self._file = None if path is None else File(path, read_only=read_only)
        super().__init__(_engine(self._file), where, read_only=read_only)
        self.inode = None if self._file is None else identity(self._file.path)
        if self._file is not None and self.inode is not None:
            finalize(self, self._file.locks.close).atexit = False
            IN_USE.add(self)
        self._checked_schema: object = None  # the version of the schema that was checked
        self._before = self._changes = 0  # at the start of the transaction: the newest entry, and the count of changes
        self._replaced = False
        self.private = path is None

    def close(self) -> None:
        super().close()
        IN_USE.discard(self)

    def _connection(self) -> Any:
        if self._file is not None and self._held and self._file.is_outdated():
            self._drop()
        if not self._held:
            self._checked_schema = None  # a new connection checks the schema again
        return super()._connection()

    def _progress(self) -> object:
        return self._written if self._file is None else (self._written, self._file.change_counter())

    def _waits_on(self, patience: Patience) -> bool:
        return self._replaced or super()._waits_on(patience)

    def _lock(self, *, write: bool) -> None:
        if self._file is not None:
            self._replaced = not self._file.enter(write=write) and self._file.copied is None
            if self._replaced:
                raise Held("a journal appeared while the ledger was being opened")

    def _unlock(self) -> None:
        if self._file is None:
            return
        try:
            for connection in self._held:
                connection.driver_connection.rollback()  # type: ignore[union-attr]
        except self._errors:
            self._drop()
        finally:
            self._file.locks.release()

    def _begin(self, connection: Any, stack: ExitStack, *, write: bool) -> Callable[[], None]:
        self._lock(write=write)
        if self._file is None or self._file.copied is not None:
            connection.execute("BEGIN")
        else:
            check_no_log(self._file.path)
            self._file.wait(lambda: self._start(connection, write=write))
        if not write:
            self._check(connection)
        if self._file is not None:
            self._file.note_whole()
        self._changes = connection.total_changes
        return lambda: None

    def _start(self, connection: Any, *, write: bool) -> None:
        """Begin a transaction as a reader: when SQLite starts to read, it looks for journals to roll back."""
        assert self._file is not None

        def begin() -> None:
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # begins it now, not later

        try:
            self._file.shielded(begin, always=write)
            if write:
                self._check(connection)
                connection.execute("DELETE FROM privet_leases WHERE 0")  # deletes nothing, but takes a writer's lock
                (self._before,) = connection.execute(_ENDS).fetchone()
        except self._errors:
            connection.rollback()
            raise

    def _commit(self, connection: Any) -> None:
        if self._file is None:
            connection.commit()
            return
        changed = connection.total_changes != self._changes
        if changed:
            connection.execute(f"PRAGMA user_version = {self._before}")  # see `recovery`
            self._file.wait(self._file.locks.commit, patiently=True)
        self._file.wait(lambda: connection.execute("COMMIT"), patiently=True)
        if changed:
            self._file.note_commit()
        self._check_file()

    def _is_busy(self, error: BaseException) -> bool:
        return is_held(error)

    def _check(self, connection: Any) -> None:
        if self._file is not None:
            self._check_file()
            self._check_schema(connection)

    def _check_file(self) -> None:
        """Refuse a file that was removed: writing to it would succeed, and be lost."""
        assert self._file is not None
        if identity(self._file.path) != self.inode:
            raise OSError("the file was removed or replaced")

    def _check_schema(self, connection: Any) -> None:
        """Refuse triggers, which could undo a debit, and a write-ahead log, which would keep debits out of the file."""
        assert self._file is not None
        version = connection.execute("PRAGMA schema_version").fetchone()[0]
        if version != self._checked_schema:
            check_schema(connection, self.where)
            self._checked_schema = version
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != ("persist" if self._file.copied is None else "memory"):
            raise OSError("its journal mode or its application id was changed by another program")

    def _drop(self) -> None:
        if self._file is not None:
            super()._drop()
        elif self._held:  # closing the connection would lose the data in memory
            self._connection().rollback()

    def _end(self) -> None:
        super()._end()
        if self._file is not None:
            self._file.locks.close()


def in_memory() -> SQLite:
    """A ledger that ends with its process."""
    ledger = SQLite(None)
    create_tables(ledger._connection())
    return ledger


def connect(text: str, path: Path, *, create: bool, read_only: bool = False) -> SQLite:
    """Open the ledger in a file, which is created if it does not exist."""
    path = Path(os.path.realpath(path))  # the journal lies beside the real file; the working directory may change
    check_name(path, text)
    try:
        if not path.parent.is_dir():
            raise UserError(f"there is no folder {str(path.parent)!r} for the ledger {path.name!r}. Create it first")
        created = False
        if not os.path.lexists(path):
            if not create or read_only:
                raise NoLedger(f"there is no ledger {text!r}", subject=Subject("ledger"))
            check_new(path, text)
            check_writable(path.parent, f"create the ledger {text!r} in the folder {str(path.parent)!r}")
            with native():  # SQLite is at work, and no fork knows of this ledger yet
                created = create_file(path)
        wait_for_its_name(path)
        check_whole(path, text)
        if not read_only:
            check_permission(path, text)
        ledger = SQLite(path, repr(text), read_only=read_only)
        ledger.created = created
        try:
            with ledger.reading(lambda _: None):
                pass
        except BaseException:
            ledger.close()
            raise
    except OSError as error:
        raise LedgerError(f"the ledger {text[:200]!r} can't be read or written: {error.strerror or error}") from None
    return ledger


def _engine(file: File | None) -> sa.Engine:
    if file is None:

        def memory() -> sqlite3.Connection:
            return sqlite3.connect(":memory:", timeout=0, isolation_level=None, check_same_thread=False)

        return sa.create_engine("sqlite://", paramstyle="named", creator=memory, poolclass=StaticPool)
    pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
    return sa.create_engine("sqlite://", paramstyle="named", creator=file.connect, **pool)
