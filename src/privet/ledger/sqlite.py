"""A ledger in a file: SQLite with a write-ahead log, synced at every commit."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool, StaticPool

from privet.errors import LedgerError, UserError
from privet.ledger import tables
from privet.ledger.database import Database

_PATIENCE = 120.0  # seconds that a writer waits for its turn; turns take milliseconds
_SOON, _LATEST = 0.0005, 0.004  # seconds between its attempts; SQLite's own would grow to 0.1
_LOG_PAGES = 500  # so long the log becomes: overwriting one is synced sooner than growing one


class SQLite(Database):
    """A file, or for None a database in memory."""

    def __init__(self, path: Path | None, where: str = "in memory") -> None:
        super().__init__(_engine(path), where)
        self._path = path
        self.private = path is None
        if path is not None:
            self._file = _identity(path)
            self._place, self._wal = str(path), f"{path}-wal"
            self._log: list[tuple[int, int]] = []  # of the newest connection, once it has one
            sa.event.listen(self.engine, "connect", _clears(self._log))

    def _begin(self, connection: Any, *, write: bool) -> None:
        if write:
            _patiently(connection, "BEGIN IMMEDIATE")
        else:
            connection.execute("BEGIN")
            _patiently(connection, "SELECT version FROM privet_schema")  # begins now, and not at the first question
        self._check_place()

    def _commit(self, connection: Any) -> None:
        connection.commit()
        self._check_place()

    def _check_place(self) -> None:
        """A file that was removed can still be written to, and what is written is lost; the same goes for its log."""
        if self._path is None:
            return
        if _identity(self._place) != self._file:
            raise OSError("the file was removed or replaced")
        if not self._log:
            self._log.append(_identity(self._wal))
        elif _identity(self._wal) != self._log[0]:
            raise OSError("its log was removed or replaced")

    def _drop(self) -> None:
        if self._path is not None:
            super()._drop()
        elif self._held:  # what is in memory would be lost with its connection
            self._connection().rollback()

    def _lock_all(self, connection: sa.Connection) -> None:
        """Done already: `BEGIN IMMEDIATE`."""

    def check(self) -> None:
        """Entries are found by indexes: a damaged one could hide a request, or what an analyst has spent."""
        if self._path is None:
            return
        try:
            with closing(_looking(self._path)) as connection:
                for table in (tables.datasets, tables.entries, tables.leases):
                    found = _patiently(connection, f"PRAGMA integrity_check({table.name})").fetchone()[0]
                    if found != "ok":
                        raise LedgerError(
                            f"the file of the ledger is damaged ({str(found)[:200]}). Put back a copy that verifies"
                        )
        except self._errors as error:
            raise LedgerError(self._trouble(error)) from None


def _clears(log: list[tuple[int, int]]) -> Callable[..., None]:
    """Not a method: the engine would keep its database alive."""
    return lambda *_: log.clear()


def connect(text: str, path: Path, *, create: bool) -> SQLite:
    """The ledger in a file, which is made if there is none."""
    path = path.absolute()  # wherever the process goes later
    try:
        if not path.parent.is_dir():
            raise UserError(f"there is no folder {str(path.parent)!r} for the ledger {path.name!r}. Make it first")
        if not path.exists():
            if not create:
                raise UserError(f"there is no ledger {text!r}")
            with suppress(FileExistsError):  # by now
                path.touch(exist_ok=False)
        if not create and path.is_file() and not path.stat().st_size:
            raise UserError(f"{text!r} is an empty file, not a ledger")
        if not _is_ours(path):
            raise UserError(f"{str(path)!r} exists and is not a ledger. Name a new file, or the ledger's own")
        made = SQLite(path, repr(text))
        try:
            made.prepare()
            _sync(path.parent)
        except BaseException:
            made.close()
            raise
    except OSError as error:
        raise LedgerError(f"the ledger {text[:200]!r} can't be read or written: {error.strerror}") from None
    return made


def _engine(path: Path | None) -> sa.Engine:
    pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=":memory:" if path is None else str(path)),
        paramstyle="named",
        connect_args={"timeout": 0, "check_same_thread": False},
        **({"poolclass": StaticPool} if path is None else pool),
    )

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, record: object) -> None:
        connection.isolation_level = None  # transactions begin where we say so
        mode = _patiently(connection, "PRAGMA journal_mode = WAL").fetchone()[0]
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: all the way to the platter
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        if path is not None and mode != "wal":
            raise sqlite3.OperationalError(f"this place can't keep a write-ahead log (it is in mode {mode})")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        _patiently(connection.connection.driver_connection, "BEGIN IMMEDIATE")

    return engine


def _patiently(connection: Any, statement: str) -> sqlite3.Cursor:
    """Run what may have to wait for its turn."""
    patience, pause = time.monotonic() + _PATIENCE, _SOON
    while True:
        try:
            found: sqlite3.Cursor = connection.execute(statement)
            return found
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > patience:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LATEST)


def _identity(path: Path | str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116 (four times for a debit: pathlib takes its time)
    return found.st_dev, found.st_ino


def _is_ours(path: Path) -> bool:
    """Whether a file that is there is a ledger, perhaps one in the making: what is in another is not changed.

    Only SQLite looks into it: whoever else closes a file lets go of all locks that this process has on it.
    """
    if not path.is_file() or 0 < path.stat().st_size < 512:  # SQLite takes a file of one byte for an empty one
        return False
    try:
        with closing(_looking(path)) as connection:
            rows = _patiently(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")
            found = {name for (name,) in rows}
    except (sqlite3.Error, UnicodeError) as error:  # but for the first, opening it will show what is wrong
        return getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_NOTADB
    return not found or tables.schema.name in found


def _looking(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=0)


def _sync(folder: Path) -> None:
    """The name of a new file must survive a crash, too."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
