"""A ledger in a file: SQLite with a rollback journal, synced at every commit.

Claim: every debit that was granted is in the file itself, and its locks are the file's own. What stands beside it, the
`-journal`, only matters if a write was cut short (`recovery`). So nothing that is removed or put beside the file, and
no second name of it, can split the ledger or take a debit back; and a file that was emptied or cut is never taken for a
new ledger, since a new one is complete before it has its name.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import finalize

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool, StaticPool

from privet.errors import LedgerError, UserError
from privet.ledger import chain, tables
from privet.ledger.database import Database
from privet.ledger.file import MARK, File, has_no_log, is_held, no_ledger
from privet.ledger.locks import Held
from privet.system.files import IN_USE

BESIDE = ("-journal", "-wal", "-shm")
"""What may stand beside a file of SQLite."""
_LEAST = 512  # bytes: SQLite's smallest page
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
_ENDS = f"SELECT min(ifnull(max(cast(number AS INTEGER)), 0), {2**31 - 1}) FROM privet_ledger"


class SQLite(Database):
    """A file, or for None a database in memory."""

    def __init__(self, path: Path | None, where: str = "in memory", *, read_only: bool = False) -> None:
        self._file = None if path is None else File(path, read_only=read_only)
        super().__init__(_engine(self._file), where, read_only=read_only)
        self._inode = None if self._file is None else _identity(self._file.place)
        if self._file is not None and self._inode is not None:
            finalize(self, self._file.locks.close).atexit = False
            IN_USE.add(self._inode)
        self._seen: object = None  # the number of the schema that was looked at
        self._before = self._changes = 0  # when the transaction began: the newest entry, and what was changed till then
        self._replaced = False
        self.private = path is None

    def _connection(self) -> Any:
        if self._file is not None and self._held and self._file.is_outdated():
            self._drop()
        if not self._held:
            self._seen = None  # another connection reads the schema anew
        return super()._connection()

    @contextmanager
    def _together(self, connection: Any, *, write: bool) -> Iterator[None]:
        """Nobody else writes in a writer's turn, nor until what is left of its transaction is undone."""
        if self._file is None:
            yield
            return
        self._replaced = False
        try:
            self._replaced = not self._file.enter(write=write) and self._file.copied is None
            if self._replaced:
                raise Held("a journal was left while the ledger was being opened")
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
            has_no_log(self._file.place)
            self._file.wait(lambda: self._start(connection, write=write))
        if not write:
            self._check(connection)
        self._changes = connection.total_changes

    def _start(self, connection: Any, *, write: bool) -> None:
        """Begin a transaction, as a reader first: when SQLite begins to read, it looks for journals to roll back."""
        assert self._file is not None
        try:
            with self._file.shielded(always=write):
                connection.execute("BEGIN")
                connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # begins now, and not later
            if write:
                self._check(connection)
                connection.execute("DELETE FROM privet_leases WHERE 0")  # nothing, with a writer's lock
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
        self._check_place()

    def _is_busy(self, error: BaseException) -> bool:
        return is_held(error)

    def _moved(self) -> bool:
        return self._replaced

    def _check(self, connection: Any) -> None:
        if self._file is not None:
            self._check_place()
            self._check_schema(connection)

    def _check_place(self) -> None:
        """A file that was removed can still be written to, and what is written is lost."""
        assert self._file is not None
        if _identity(self._file.place) != self._inode:
            raise OSError("the file was removed or replaced")

    def _check_schema(self, connection: Any) -> None:
        """A trigger could undo a debit, and a write-ahead log would keep debits out of the file."""
        assert self._file is not None
        number = connection.execute("PRAGMA schema_version").fetchone()[0]
        if number != self._seen:
            _is_ours(connection, self.where)
            self._seen = number
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != ("persist" if self._file.copied is None else "memory"):
            raise OSError("its journal mode was changed")

    def _drop(self) -> None:
        if self._file is not None:
            super()._drop()
        elif self._held:  # what is in memory would be lost with its connection
            self._connection().rollback()

    def _end(self) -> None:
        super()._end()
        if self._file is not None:
            self._file.locks.close()


def in_memory() -> SQLite:
    """A ledger that is gone with its process."""
    made = SQLite(None)
    _furnish(made._connection())
    return made


def connect(text: str, path: Path, *, create: bool, read_only: bool = False) -> SQLite:
    """The ledger in a file, which is made if there is none."""
    path = Path(os.path.realpath(path))  # wherever the process goes later; what is beside it is beside the file itself
    try:
        if not path.parent.is_dir():
            raise UserError(f"there is no folder {str(path.parent)!r} for the ledger {path.name!r}. Make it first")
        created = False
        if not os.path.lexists(path):
            if not create or read_only:
                raise UserError(f"there is no ledger {text!r}")
            _is_new(path, text)
            created = _make(path)
        _is_whole(path, text)
        if not read_only and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise LedgerError(f"the ledger {text!r} can't be written: this user has no right to. Ask its owner")
        made = SQLite(path, repr(text), read_only=read_only)
        made.created = created
        try:
            with made.reading(lambda _: None):
                pass
        except BaseException:
            made.close()
            raise
    except OSError as error:
        raise LedgerError(f"the ledger {text[:200]!r} can't be read or written: {error.strerror or error}") from None
    return made


# --- files ------------------------------------------------------------------------------------------


def _identity(place: str) -> tuple[int, int]:
    """Which file it is. One with two names is refused: each would have a journal of its own."""
    found = os.stat(place)  # noqa: PTH116 (twice for a debit: pathlib takes its time)
    if found.st_nlink > 1:
        raise LedgerError(
            f"the ledger {place!r} has {found.st_nlink} names (hard links), and under each it could be left half "
            "written. Remove all but one. A copy is made with cp, while nobody writes"
        )
    return found.st_dev, found.st_ino


def _is_new(path: Path, text: str) -> None:
    """Where a journal is left, there was a ledger."""
    left = [path.name + end for end in BESIDE if os.path.lexists(f"{path}{end}")]
    if left:
        raise LedgerError(
            f"the ledger {text!r} is gone, and {left[0]!r} is still beside it: what was spent would be forgotten. "
            f"Put the ledger back. If there really is to be a new one, remove {left[0]!r} first"
        )


def _is_whole(path: Path, text: str) -> None:
    """Refuse what SQLite would take for an empty database, and what has no place for a journal."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or 0 < found.st_size < _LEAST:  # SQLite takes one byte for an empty database
        raise no_ledger(repr(str(path)))
    if not found.st_size:
        raise LedgerError(
            f"the ledger {text!r} is an empty file. Privet makes none: it was emptied, and what was spent would be "
            "forgotten. Put back a copy that verifies. If there never was a ledger here, remove the file"
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


def _make(path: Path) -> bool:
    """A new ledger: complete, on disk, and only then under its name. Says whether it was made here."""
    lock, new = f"{path}.lock", f"{path}.new"
    with _opened(lock, os.O_RDWR) as turn:
        _wait(turn)
        if os.path.lexists(path):  # somebody else was first
            return False
        with suppress(FileNotFoundError):
            os.unlink(new)  # noqa: PTH108 (never written over: it could be another name of anything)
        with _opened(new, os.O_RDWR | os.O_EXCL) as handle:
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
                _furnish(memory)
                content = memory.serialize()
            while content:
                content = content[os.write(handle, content) :]
            os.fsync(handle)
        os.rename(new, path)  # noqa: PTH104
        _sync(path.parent)
        os.unlink(lock)  # noqa: PTH108 (those who wait for it find the ledger)
    return True


@contextmanager
def _opened(place: str, how: int) -> Iterator[int]:
    """A file for its owner alone, whatever the umask says."""
    handle = os.open(place, how | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def _wait(handle: int) -> None:
    """One process at a time makes a ledger; the lock ends with the handle."""
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX)


def _sync(folder: Path) -> None:
    """The name of a new file must survive a crash, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- the database in it -----------------------------------------------------------------------------


def _furnish(connection: sqlite3.Connection) -> None:
    """The tables of a new ledger."""
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    connection.execute(f"PRAGMA application_id = {MARK}")
    with engine.begin() as made:
        tables.metadata.create_all(made)
        made.execute(sa.insert(tables.ledger).values(version=tables.VERSION, number=0, hash=chain.GENESIS))


def _ours() -> list[tuple[str, ...]]:
    if not _OURS:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
            _furnish(memory)
            _OURS.extend(memory.execute(_SCHEMA).fetchall())
    return _OURS


_OURS: list[tuple[str, ...]] = []


def _is_ours(connection: Any, where: str) -> None:
    """Refuse what is not a ledger, and a ledger in which there is anything that is not its own."""
    found = connection.execute(_SCHEMA).fetchall()
    if found == _ours():
        return
    if not any(name in tables.NAMES for _, name, _, _ in found):
        raise no_ledger(where)
    foreign = [each for each in found if each not in _OURS]
    missing = [each for each in _OURS if each not in found]
    kind, name, table, _ = (foreign or missing)[0]
    what = f"the {kind} {str(name)[:60]!r} of {str(table)[:60]!r}, which is not its own" if foreign else f"no {name!r}"
    raise LedgerError(
        f"the ledger {where} has {what}: it could undo debits. Nothing is answered with this ledger. Remove what does "
        "not belong there, or put back a copy that verifies"
    )


def _engine(file: File | None) -> sa.Engine:
    if file is None:

        def memory() -> sqlite3.Connection:
            return sqlite3.connect(":memory:", timeout=0, isolation_level=None, check_same_thread=False)

        return sa.create_engine("sqlite://", paramstyle="named", creator=memory, poolclass=StaticPool)
    pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
    return sa.create_engine("sqlite://", paramstyle="named", creator=file.connect, **pool)
