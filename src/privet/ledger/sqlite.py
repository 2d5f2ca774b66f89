"""A ledger in a file: SQLite with a rollback journal, synced at every commit.

Claim: every granted debit is in the file itself, and so are the locks. The `-journal` beside it matters only after an
interrupted write (`recovery`). So nobody can split the ledger or take back a debit by removing or adding files beside
it, or by giving it a second name. An emptied or truncated file is never mistaken for a new ledger, because a new ledger
is complete before it gets its name.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from weakref import finalize

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool, StaticPool

from privet.errors import LedgerError, UserError
from privet.ledger import chain, tables
from privet.ledger.database import Database
from privet.ledger.file import MARK, File, check_no_log, is_held, not_a_ledger
from privet.ledger.locks import Held
from privet.system.files import IN_USE

BESIDE = ("-journal", "-wal", "-shm")
"""The suffixes of files that SQLite may create beside a database."""
_LEAST = 512  # bytes: SQLite's smallest page
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
_ENDS = f"SELECT min(ifnull(max(cast(number AS INTEGER)), 0), {2**31 - 1}) FROM privet_ledger"


class SQLite(Database):
    """A database in a file, or in memory if `path` is None."""

    def __init__(self, path: Path | None, where: str = "in memory", *, read_only: bool = False) -> None:
        self._file = None if path is None else File(path, read_only=read_only)
        super().__init__(_engine(self._file), where, read_only=read_only)
        self._inode = None if self._file is None else _identity(self._file.path)
        if self._file is not None and self._inode is not None:
            finalize(self, self._file.locks.close).atexit = False
            IN_USE.add(self._inode)
        self._checked_schema: object = None  # the version of the schema that was checked
        self._before = self._changes = 0  # at the start of the transaction: the newest entry, and the count of changes
        self._replaced = False
        self.private = path is None

    def _connection(self) -> Any:
        if self._file is not None and self._held and self._file.is_outdated():
            self._drop()
        if not self._held:
            self._checked_schema = None  # a new connection checks the schema again
        return super()._connection()

    @contextmanager
    def _together(self, connection: Any, *, write: bool) -> Iterator[None]:
        """Hold the lock until the transaction has ended or is rolled back."""
        if self._file is None:
            yield
            return
        self._replaced = False
        try:
            self._replaced = not self._file.enter(write=write) and self._file.copied is None
            if self._replaced:
                raise Held("a journal appeared while the ledger was being opened")
            yield
        except BaseException:
            try:
                connection.rollback()
            except self._errors:
                self._drop()
            raise
        finally:
            self._file.locks.release()

    def _begin(self, connection: Any, *, write: bool) -> None:
        if self._file is None or self._file.copied is not None:
            connection.execute("BEGIN")
        else:
            check_no_log(self._file.path)
            self._file.wait(lambda: self._start(connection, write=write))
        if not write:
            self._check(connection)
        self._changes = connection.total_changes

    def _start(self, connection: Any, *, write: bool) -> None:
        """Begin a transaction as a reader: when SQLite starts to read, it looks for journals to roll back."""
        assert self._file is not None
        try:
            with self._file.shielded(always=write):
                connection.execute("BEGIN")
                connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # begins it now, not later
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
        if connection.total_changes != self._changes:
            connection.execute(f"PRAGMA user_version = {self._before}")  # see `recovery`
            self._file.wait(self._file.locks.commit)
        self._file.wait(lambda: connection.execute("COMMIT"))
        self._check_file()

    def _is_busy(self, error: BaseException) -> bool:
        return is_held(error)

    def _moved(self) -> bool:
        return self._replaced

    def _check(self, connection: Any) -> None:
        if self._file is not None:
            self._check_file()
            self._check_schema(connection)

    def _check_file(self) -> None:
        """Refuse a file that was removed: writing to it would succeed, and be lost."""
        assert self._file is not None
        if _identity(self._file.path) != self._inode:
            raise OSError("the file was removed or replaced")

    def _check_schema(self, connection: Any) -> None:
        """Refuse triggers, which could undo a debit, and a write-ahead log, which would keep debits out of the file."""
        assert self._file is not None
        version = connection.execute("PRAGMA schema_version").fetchone()[0]
        if version != self._checked_schema:
            _check_schema(connection, self.where)
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
    _create_tables(ledger._connection())
    return ledger


def connect(text: str, path: Path, *, create: bool, read_only: bool = False) -> SQLite:
    """Open the ledger in a file, which is created if it does not exist."""
    path = Path(os.path.realpath(path))  # the journal lies beside the real file; the working directory may change
    try:
        if not path.parent.is_dir():
            raise UserError(f"there is no folder {str(path.parent)!r} for the ledger {path.name!r}. Create it first")
        created = False
        if not os.path.lexists(path):
            if not create or read_only:
                raise UserError(f"there is no ledger {text!r}")
            _check_new(path, text)
            _check_writable(path.parent, f"create the ledger {text!r} in the folder {str(path.parent)!r}")
            created = _create(path)
        _check_whole(path, text)
        if not read_only:
            _check_writable(path, f"write the ledger {text!r}")
            journal = path.with_name(f"{path.name}-journal")
            if journal.exists():
                _check_writable(journal, f"write the ledger's journal {str(journal)!r}")
            elif not journal.is_symlink():
                _check_writable(path.parent, f"create the ledger's journal in the folder {str(path.parent)!r}")
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


# --- files ------------------------------------------------------------------------------------------


def _identity(path: str) -> tuple[int, int]:
    """The device and inode of the file. A file with two names is refused: each name would have its own journal."""
    status = os.stat(path)  # noqa: PTH116 (runs twice per debit, and pathlib is slower)
    if status.st_nlink > 1:
        raise LedgerError(
            f"the ledger {path!r} has {status.st_nlink} names (hard links), each with its own journal. Remove all "
            "names but one. To make a copy, use cp while nobody writes"
        )
    return status.st_dev, status.st_ino


def _check_new(path: Path, text: str) -> None:
    """Refuse to create a ledger beside a leftover journal: there was a ledger before."""
    left = [path.name + end for end in BESIDE if os.path.lexists(f"{path}{end}")]
    if left:
        raise LedgerError(
            f"the ledger {text!r} is missing, but its {left[0]!r} is still there. A new ledger would forget what was "
            f"spent. Restore the ledger. If you really want a new one, remove {left[0]!r} first"
        )


def _check_writable(path: Path, action: str) -> None:
    """Refuse what this user has no permission to write."""
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise LedgerError(f"you do not have permission to {action}. Ask its owner")


def _check_whole(path: Path, text: str) -> None:
    """Refuse what SQLite would accept as an empty database, and a file that can't have a journal beside it."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or 0 < status.st_size < _LEAST:  # SQLite accepts one byte as an empty database
        raise not_a_ledger(repr(str(path)))
    if not status.st_size:
        raise LedgerError(
            f"the ledger {text!r} is an empty file. Privet never creates one, so the ledger was emptied. Restore a "
            "copy that verifies. If there never was a ledger here, remove the file"
        )
    if str(path) in _mount_points():
        raise LedgerError(
            f"the ledger {text!r} is mounted as a single file, so its journal would not be beside it. Mount its folder"
        )


def _mount_points() -> set[str]:
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not Linux
        return set()
    return {_unescaped(fields[4]) for line in lines if len(fields := line.split(" ")) > 4}


def _unescaped(text: str) -> str:
    r"""A path as mountinfo writes it.

    Example:
        >>> _unescaped(r"/data/my\040people.ledger")
        '/data/my people.ledger'
    """
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text


def _create(path: Path) -> bool:
    """Create a ledger, which gets its name only when it is complete and on disk; False if it already exists."""
    lock, new = f"{path}.lock", f"{path}.new"
    with _opened(lock, os.O_RDWR) as lock_handle:
        _wait(lock_handle)
        if os.path.lexists(path):  # another process was first
            return False
        with suppress(FileNotFoundError):
            os.unlink(new)  # noqa: PTH108 (never overwritten: it could be a link to another file)
        with _opened(new, os.O_RDWR | os.O_EXCL) as handle:
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
                _create_tables(memory)
                content = memory.serialize()
            while content:
                content = content[os.write(handle, content) :]
            os.fsync(handle)
        os.rename(new, path)  # noqa: PTH104
        _sync(path.parent)
        os.unlink(lock)  # noqa: PTH108 (processes that wait for it will see the ledger)
    return True


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    """A file that only its owner can use, whatever the umask."""
    handle = os.open(path, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def _wait(handle: int) -> None:
    """Let one process at a time create a ledger; closing the handle ends the lock."""
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX)


def _sync(folder: Path) -> None:
    """Sync a folder, so that the name of a new file survives a crash."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- the database in it -----------------------------------------------------------------------------


def _create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of a new ledger."""
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    connection.execute(f"PRAGMA application_id = {MARK}")
    with engine.begin() as transaction:
        tables.metadata.create_all(transaction)
        transaction.execute(sa.insert(tables.ledger).values(version=tables.VERSION, number=0, hash=chain.GENESIS))


@cache
def _own_schema() -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        _create_tables(memory)
        return memory.execute(_SCHEMA).fetchall()


def _check_schema(connection: Any, where: str) -> None:
    """Refuse a file that is not a ledger, and a ledger with missing or foreign objects."""
    own, objects = _own_schema(), connection.execute(_SCHEMA).fetchall()
    if objects == own:
        return
    if not objects:
        raise LedgerError(f"the ledger {where} has no tables: it was emptied. Restore a copy that verifies")
    if not any(name in tables.NAMES for _, name, _, _ in objects):
        raise not_a_ledger(where)
    for kind, name, table, sql in objects:
        if (kind, name, table, sql) not in own:
            raise LedgerError(
                f"the table {str(table)[:60]!r} of the ledger {where} has the {kind} {str(name)[:60]!r}, which Privet "
                "did not create and which could undo debits. Privet answers nothing until you remove it, or restore a "
                "copy that verifies"
            )
    missing = next(name for _, name, _, _ in own if name not in [other for _, other, _, _ in objects])
    raise LedgerError(
        f"the ledger {where} has no {missing!r}: it was tampered with. Privet answers nothing with this ledger. "
        "Restore a copy that verifies"
    )


def _engine(file: File | None) -> sa.Engine:
    if file is None:

        def memory() -> sqlite3.Connection:
            return sqlite3.connect(":memory:", timeout=0, isolation_level=None, check_same_thread=False)

        return sa.create_engine("sqlite://", paramstyle="named", creator=memory, poolclass=StaticPool)
    pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
    return sa.create_engine("sqlite://", paramstyle="named", creator=file.connect, **pool)
