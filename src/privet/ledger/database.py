"""Durable transactions: on SQLite by default, on Postgres for teams.

Claim: when a writing transaction ends without an error, what it wrote is on disk. Writers of one dataset come one after
the other: SQLite has one writer at a time, Postgres locks the dataset's row.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet, finalize

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

from privet.errors import LedgerError, UserError
from privet.ledger import tables

_PATIENCE = 120.0  # seconds that a writer waits for its turn; turns take milliseconds


@dataclass(slots=True)
class _Held:
    """The one connection, while there is one."""

    connection: sa.PoolProxiedConnection | None = None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None


class Database:
    """A database with the tables of a ledger. After an error of the storage it does nothing more.

    Transactions of one process come one after the other, over one connection of the driver: SQLAlchemy's own way to
    begin and to end them would take longer than the disk. Around a fork no connection is open: SQLite's locks belong to
    a process, and a child that inherits a connection believes to hold locks that it does not hold.
    """

    def __init__(self, engine: sa.Engine, where: str, path: Path | None = None) -> None:
        self.where = where
        self.engine = engine
        self._path = path
        self._file = None if path is None else _identity(path)
        self._place, self._wal = str(path), f"{path}-wal"
        self._log: tuple[int, int] | None = None
        if path is not None:
            sa.event.listen(engine, "connect", self._new_connection)
        self._turn = threading.RLock()  # threads queue here, in order, and not at the database
        self._held = _Held()
        self._broken = ""
        self._errors = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error, OSError, UnicodeError)
        _OPEN.add(self)
        finalize(self, _shut, self._held, engine).atexit = False  # for ledgers that nobody closes

    @property
    def _sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A transaction that is on disk when it ends."""
        with self._turn, self._guarded():
            connection = self._connection()
            if self._sqlite:
                connection.execute("BEGIN IMMEDIATE")
            with self._ended(connection):
                self._check_place()
                yield connection
                self._check_place()
            self._check_place()

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """A transaction that sees one state of the ledger."""
        with self._turn, self._guarded():
            connection = self._connection()
            connection.execute("BEGIN" if self._sqlite else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            with self._ended(connection):
                self._check_place()
                yield connection

    @contextmanager
    def preparing(self) -> Iterator[sa.Connection]:
        """A transaction of SQLAlchemy's, for making tables."""
        with self._turn, self._guarded(), self.engine.connect() as connection:
            connection.execution_options(privet_begin="BEGIN IMMEDIATE")
            with connection.begin():
                yield connection

    def _connection(self) -> Any:
        """The driver's connection; one over a network is tried first, and made anew if it is dead."""
        held = self._held
        if held.connection is not None and not self._sqlite:
            try:
                held.connection.driver_connection.execute("SELECT 1")  # type: ignore[union-attr]
                held.connection.rollback()
            except self._errors:
                with suppress(Exception):
                    held.connection.invalidate()
                held.connection = None
                self.engine.dispose()  # others that it keeps may be dead as well
        if held.connection is None:
            held.connection = self.engine.raw_connection()
        return held.connection.driver_connection

    @contextmanager
    def _ended(self, connection: Any) -> Iterator[None]:
        try:
            yield
            connection.commit()
        except BaseException:
            with suppress(*self._errors):
                connection.rollback()
            raise

    def _check_place(self) -> None:
        """A file that was removed can still be written to, and what is written is lost; the same goes for its log."""
        if self._path is None:
            return
        if _identity(self._place) != self._file:
            raise OSError("the file was removed or replaced")
        if self._log is None:
            self._log = _identity(self._wal) if Path(self._wal).exists() else None
        elif _identity(self._wal) != self._log:
            raise OSError("its log was removed or replaced")

    def _new_connection(self, *_: object) -> None:
        self._log = None

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if self._broken:
            raise LedgerError(self._broken) from None
        try:
            yield
        except self._errors as error:
            cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0][:200]
            self._broken = (
                f"the ledger {self.where} can't be read or written ({cause}). Nothing is answered any more. "
                "Mend the storage and open the ledger again: it is verified first"
            )
            raise LedgerError(self._broken) from None

    def stop(self, why: str) -> None:
        """Do nothing more: the ledger can't be trusted."""
        self._broken = self._broken or why

    def close(self) -> None:
        """Let go of the connection."""
        with self._turn:
            _shut(self._held, self.engine)

    def before_fork(self) -> None:
        """Wait for what is running, and close what other processes can open again."""
        self._turn.acquire()
        if not isinstance(self.engine.pool, StaticPool):
            _shut(self._held, self.engine)

    def in_parent(self) -> None:
        """Go on."""
        self._turn.release()

    def in_child(self) -> None:
        """Begin anew. A ledger in memory is the parent's: two copies would both spend it."""
        self._turn = threading.RLock()
        if isinstance(self.engine.pool, StaticPool):
            self._broken = (
                "a ledger in memory can't be shared by processes: each would spend all of it. "
                'Write, for example: ledger="people.ledger"'
            )


def _shut(held: _Held, engine: sa.Engine) -> None:
    with suppress(Exception):  # a connection that is dead already
        held.close()
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


def _identity(path: Path | str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116 (six times for a debit: pathlib takes its time)
    return found.st_dev, found.st_ino


def connect(where: str | Path | None, *, create: bool = True) -> Database:
    """The database at a path (SQLite), at a postgresql:// address, or, for None, in memory."""
    if where is None:
        return _prepared(Database(_sqlite(":memory:", poolclass=StaticPool), "in memory"))
    text = str(where)
    if text.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        return _postgres(text)
    if "://" in text or not text.strip() or not text.isprintable():
        raise UserError(
            f"a ledger is a file or a Postgres address, not {text[:60]!r}. "
            'Write, for example: ledger="people.ledger" or ledger="postgresql://user@host/base"'
        )
    path = Path(where).absolute()  # wherever the process goes later
    try:
        if not path.parent.is_dir():
            raise UserError(f"there is no folder {str(path.parent)!r} for the ledger {path.name!r}. Make it first")
        if not path.exists():
            if not create:
                raise UserError(f"there is no ledger {text!r}")
            path.touch()
        _is_ours(path)
        made = Database(_sqlite(str(path), poolclass=QueuePool, pool_size=1, max_overflow=0), repr(text), path)
    except OSError as error:
        raise LedgerError(f"the ledger {text[:200]!r} can't be read or written: {error.strerror}") from None
    _prepared(made)
    _sync(path.parent)
    return made


# --- SQLite ---------------------------------------------------------------------------------------


def _sqlite(path: str, **pool: Any) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=path),
        paramstyle="named",
        connect_args={"timeout": _PATIENCE, "check_same_thread": False},
        **pool,
    )

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, record: object) -> None:
        connection.isolation_level = None  # transactions begin where we say so
        mode = _wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: all the way to the platter
        if path != ":memory:" and mode != "wal":
            raise sqlite3.OperationalError(f"this place can't keep a write-ahead log (it is in mode {mode})")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("privet_begin", "BEGIN"))

    return engine


def _wal(connection: sqlite3.Connection) -> str:
    """Switch to a write-ahead log. While another process does the same SQLite gives up at once, so we wait."""
    patience = time.monotonic() + _PATIENCE
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > patience:
                raise
            time.sleep(0.01)


def _is_ours(path: Path) -> None:
    """A file that is there must be a ledger, perhaps one in the making: nothing else is changed in any way."""
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(16)
        if not start or (start == b"SQLite format 3\x00" and not _foreign(path)):
            return
    raise UserError(f"{str(path)!r} is there and is no ledger. Name a new file, or the ledger's own")


def _foreign(path: Path) -> bool:
    """Whether it has tables, and not ours. If that can't be seen now, opening it will show what is wrong."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            found = {name for (name,) in rows}
    except (sqlite3.Error, UnicodeError):
        return False
    return bool(found) and tables.schema.name not in found


def _check_indexes(connection: sa.Connection) -> None:
    """Entries are found by indexes: a damaged one could hide a request, or what an analyst has spent."""
    for table in (tables.datasets, tables.entries, tables.leases):
        found = connection.exec_driver_sql(f"PRAGMA integrity_check({table.name})").scalar()
        if found != "ok":
            raise LedgerError(f"the file of the ledger is damaged ({str(found)[:200]}). Put back a copy that verifies")


def _sync(folder: Path) -> None:
    """The name of a new file must survive a crash, too."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# --- Postgres -------------------------------------------------------------------------------------


def _postgres(text: str) -> Database:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UserError("a ledger in Postgres needs psycopg. Write: pip install 'privet[postgres]'") from None
    try:
        url = sa.make_url(text).set(drivername="postgresql+psycopg")
    except (SQLAlchemyError, ValueError):
        raise UserError('this is no address. Write, for example: ledger="postgresql://user@host/base"') from None
    engine = sa.create_engine(url)
    found = Database(engine, repr(url.render_as_string(hide_password=True)))
    try:
        with found.reading() as connection:
            settings = {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in _DURABLE}
        for setting, value in settings.items():
            if value == "off":
                raise LedgerError(
                    f"{setting} is off in Postgres, so a debit could be lost in a crash. Write there: "
                    f"ALTER SYSTEM SET {setting} = on; SELECT pg_reload_conf()"
                )
    except BaseException:
        found.close()
        raise

    @sa.event.listens_for(engine, "connect")
    def _durable(connection: Any, record: object) -> None:  # the setting may change between two connections
        if connection.execute("SHOW synchronous_commit").fetchone()[0] == "off":
            connection.close()
            raise OSError("synchronous_commit was turned off")
        connection.rollback()

    return _prepared(found)


_DURABLE = "fsync", "synchronous_commit", "full_page_writes"


def _prepared(made: Database) -> Database:
    """The database, its tables up to date."""
    try:
        with made.preparing() as connection:
            if connection.dialect.name == "postgresql":  # two that start at once must not both make the tables
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7236838)")
            tables.upgrade(connection)
            if made.where != "in memory" and connection.dialect.name == "sqlite":
                _check_indexes(connection)
    except BaseException:
        made.close()
        raise
    return made
