"""An account store in a file: SQLite with a rollback journal, synced at every commit, for its owner only.

A new store is complete before it gets its name, so an empty or truncated file is never mistaken for a new one.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool, StaticPool

from privet.errors import UserError
from privet.ledger.storage.sqlite.creation import wait_for_its_name
from privet.ledger.storage.sqlite.paths import BESIDE, mount_points
from privet.server.accounts import tables
from privet.server.accounts.errors import AccountError, StoreError
from privet.server.accounts.store import OPTIONS, PATIENCE, Store, first_row
from privet.system import files

MARK = 0x50724163
"""The text "PrAc", as SQLite's application id in the header of every account store."""
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
_STATE = "SELECT * FROM pragma_schema_version, pragma_page_count, pragma_page_size, pragma_journal_mode"
_PRAGMAS = ("synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF", "journal_mode = DELETE")
_LEAST = 512  # bytes: SQLite's smallest page


class InSQLite(Store):
    """An account store in a file."""

    def __init__(self, path: Path, where: str) -> None:
        self._path = str(path)
        uri = f"{path.as_uri()}?mode=rw"

        def connect() -> sqlite3.Connection:
            self._check_file()
            made = sqlite3.connect(uri, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
            try:
                for pragma in _PRAGMAS:
                    made.execute(f"PRAGMA {pragma}")
            except BaseException:
                made.close()
                raise
            return made

        engine = sa.create_engine(
            "sqlite://", creator=connect, poolclass=QueuePool, pool_size=8, max_overflow=-1, **OPTIONS
        )
        sa.event.listen(engine, "begin", _begin)
        self._writer = threading.Lock()  # threads queue here; SQLite's own waiting is for processes
        self._inode = _identity(self._path)
        super().__init__(engine, where)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sa.Connection]:
        if write and not self._writer.acquire(timeout=PATIENCE):
            raise self.error(_Held())
        try:
            self._check_file()
            with self.engine.connect() as connection, connection.execution_options(write=write).begin():
                yield connection
            if write:
                self._check_file()
        finally:
            if write:
                self._writer.release()

    def _check_file(self) -> None:
        """Refuse a file that was removed or replaced, or that has a second name or a foreign file beside it."""
        if _identity(self._path) != self._inode:
            raise OSError("the file was removed or replaced")
        for end in ("-wal", "-shm"):
            if os.path.lexists(f"{self._path}{end}"):
                raise self.damaged(f"has a file {f'{self._path}{end}'!r} beside it, which Privet never makes")

    def _check(self, connection: sa.Connection, *, write: bool) -> None:
        version, pages, size, mode = connection.exec_driver_sql(_STATE).one()
        if pages * size > os.stat(self._path).st_size:  # noqa: PTH116 (as above)
            raise self.damaged("was truncated")
        if mode != "delete":
            raise self.damaged("has another journal mode, which Privet did not choose")
        if connection.info.get("schema") != version:
            self._check_schema(connection)
            connection.info["schema"] = version

    def _check_schema(self, connection: sa.Connection) -> None:
        own, objects = _own_schema(), [tuple(row) for row in connection.exec_driver_sql(_SCHEMA).fetchall()]
        if not objects:
            raise self.damaged("has no tables: it was emptied")
        if connection.exec_driver_sql("PRAGMA application_id").scalar() != MARK:
            raise _not_a_store(self.where)
        for each in objects:
            if each not in own:
                raise self.damaged(
                    f"has the {each[0]} {str(each[1])[:60]!r}, which this version of Privet did not create"
                )
        for each in own:
            if each not in objects:
                raise self.damaged(f"has no {each[0]} {each[1]!r}")

    def upgrade(self) -> None:
        """Add what an untouched store of version 1 does not have; called when it is opened."""
        with self._guarded(), self._transaction(write=False) as connection:
            if not _is_first(connection):
                return
        with self._guarded(), self._transaction(write=True) as connection:
            if _is_first(connection):  # otherwise another process was faster
                tables.upgrade(connection)

    def check_whole(self) -> None:
        """Refuse a damaged file; called when it is opened."""
        with self._guarded(), self._transaction(write=False) as connection:
            self._check(connection, write=False)
            if connection.exec_driver_sql("PRAGMA quick_check(1)").scalar() != "ok":
                raise self.damaged("is damaged")
        with self.reading():
            pass

    def _is_busy(self, error: BaseException) -> bool:
        original = getattr(error, "orig", None) or error
        return isinstance(original, _Held) or getattr(original, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _is_first(connection: sa.Connection) -> bool:
    """Whether this is a store of version 1, with nothing added to it or missing."""
    new = {table.name for table in tables.ADDED}
    own = [each for each in _own_schema() if each[2] not in new]
    objects = [tuple(row) for row in connection.exec_driver_sql(_SCHEMA).fetchall()]
    marked = connection.exec_driver_sql("PRAGMA application_id").scalar() == MARK
    return marked and objects == own and connection.execute(sa.select(tables.store.c.version)).scalars().all() == [1]


class _Held(OSError):
    """Another thread holds the lock."""


def _begin(connection: sa.Connection) -> None:
    """Begin a transaction: a writer takes its lock at once, so that it never acts on an old state."""
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _identity(path: str) -> tuple[int, int]:
    """The device and inode of a file; refused if it is empty or has two names."""
    status = os.stat(path)  # noqa: PTH116 (runs in every transaction, and pathlib is slower)
    if status.st_nlink > 1:
        raise OSError(f"it has {status.st_nlink} names (hard links), each with its own journal")
    return status.st_dev, status.st_ino


def _new_store() -> bytes:
    """The file of a store without people."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        _create_tables(memory)
        return memory.serialize()


def _create_tables(connection: sqlite3.Connection) -> None:
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    connection.execute(f"PRAGMA application_id = {MARK}")
    with engine.begin() as transaction:
        tables.metadata.create_all(transaction)
        transaction.execute(first_row())


@cache
def _own_schema() -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        _create_tables(memory)
        return memory.execute(_SCHEMA).fetchall()


def _not_a_store(where: str) -> UserError:
    return AccountError(f"{where} exists, but is not an account store")


def open_file(text: str, path: Path, *, create: bool) -> InSQLite:
    """Open the store in a file, which is created if it does not exist."""
    path = Path(os.path.realpath(path))  # the journal lies beside the real file; the working directory may change
    if path.name.casefold().endswith((*BESIDE, ".part")):
        raise AccountError(f"the account store {text!r} can't have a name that ends like this. Choose another name")
    try:
        if not os.path.lexists(path):
            _create(path, text, create=create)
        wait_for_its_name(path)
        _check_place(path, text)
        store = InSQLite(path, repr(text))
    except OSError as error:
        raise StoreError(f"the account store {text[:200]!r} can't be opened: {error.strerror or error}") from None
    try:
        store.upgrade()
        store.check_whole()
    except BaseException:
        store.close()
        raise
    return store


def _create(path: Path, text: str, *, create: bool) -> None:
    if not path.parent.is_dir():
        raise AccountError(f"there is no folder {str(path.parent)!r} for the account store {path.name!r}")
    left = [path.name + end for end in BESIDE if os.path.lexists(f"{path}{end}")]
    if left and not os.path.lexists(path):
        raise StoreError(
            f"the account store {text!r} is missing, but its {left[0]!r} is still there. Restore the store. If you "
            f"really want a new one, remove {left[0]!r} first"
        )
    if not create:
        raise AccountError(f"there is no account store {text!r}")
    files.sweep(path)
    try:
        with files.written(path, overwrite=False, mode=0o600) as file:
            file.write(_new_store())
    except UserError:
        if not os.path.lexists(path):  # otherwise another process was first
            raise


def _check_place(path: Path, text: str) -> None:
    """Refuse what SQLite would accept as an empty database, and a file that others can read."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or 0 < status.st_size < _LEAST:
        raise _not_a_store(repr(text))
    if not status.st_size:
        raise StoreError(
            f"the account store {text!r} is an empty file. Privet never creates one, so the store was emptied. Restore "
            "a copy. If there never was a store here, remove the file"
        )
    if status.st_mode & 0o077:
        raise StoreError(f"the account store {text!r} can be used by others. Run: chmod 600 {text}")
    if str(path) in mount_points():
        raise StoreError(
            f"the account store {text!r} is mounted as a single file, so its journal would not be beside it. Mount its "
            "folder"
        )
