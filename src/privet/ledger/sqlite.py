"""A ledger in a file: SQLite with a rollback journal, synced at every commit.

Claim: every debit that was granted is in the file itself, and its locks are the file's own. What stands beside it, the
`-journal`, only matters while a write is under way. So nothing that is removed beside the file, and no second name of
it, can split the ledger or take a debit back; and a file that was emptied or cut is never taken for a new ledger, since
a new one is complete before it has its name.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool, StaticPool

from privet.errors import LedgerError, UserError
from privet.files import IN_USE
from privet.ledger import chain, database, tables
from privet.ledger.database import Database

BESIDE = ("-journal", "-wal", "-shm")
"""What may stand beside a file of SQLite."""
_SOON, _LATEST = 0.0005, 0.004  # seconds between attempts to get a lock; SQLite's own would grow to 0.1
_JOURNAL = 1 << 20  # bytes: a longer journal is cut after its transaction
_LEAST = 512  # bytes: SQLite's smallest page
_MARK = 0x50726976  # "Priv": in the header of every ledger
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
_PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS: all the way to the platter
    f"PRAGMA journal_size_limit = {_JOURNAL}",
    "PRAGMA trusted_schema = OFF",
)


class SQLite(Database):
    """A file, or for None a database in memory."""

    def __init__(self, path: Path | None, where: str = "in memory", *, read_only: bool = False) -> None:
        super().__init__(_engine(path, read_only=read_only), where, read_only=read_only)
        self._place = None if path is None else str(path)
        self._file = None if path is None else _identity(str(path))
        if self._file is not None:
            IN_USE.add(self._file)
        self._seen: object = None  # the number of the schema that was looked at
        self.private = path is None

    def _connection(self) -> Any:
        if not self._held:
            self._seen = None  # another connection reads the schema anew
        return super()._connection()

    def _begin(self, connection: Any, *, write: bool) -> None:
        if self._place is None:
            connection.execute("BEGIN")
            return
        _has_no_log(self._place)
        if write:
            _patiently(connection, "BEGIN IMMEDIATE", self._place)
        else:
            connection.execute("BEGIN")
            _patiently(connection, "SELECT 1 FROM sqlite_schema", self._place)  # begins now, and not later
        self._check_place()
        self._check_schema(connection)

    def _commit(self, connection: Any) -> None:
        if self._place is None:
            connection.commit()
            return
        _patiently(connection, "COMMIT", self._place)
        self._check_place()

    def _is_busy(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.OperationalError) and _is_locked(error)

    def _check_place(self) -> None:
        """A file that was removed can still be written to, and what is written is lost."""
        assert self._place is not None
        if _identity(self._place) != self._file:
            raise OSError("the file was removed or replaced")

    def _check_schema(self, connection: Any) -> None:
        """A trigger could undo a debit, and a write-ahead log would keep debits out of the file."""
        number = connection.execute("PRAGMA schema_version").fetchone()[0]
        if number != self._seen:
            _is_ours(connection, self.where)
            self._seen = number
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "persist":
            raise OSError("its journal mode was changed")

    def _drop(self) -> None:
        if self._place is not None:
            super()._drop()
        elif self._held:  # what is in memory would be lost with its connection
            self._connection().rollback()


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


def _has_no_log(place: str) -> None:
    """SQLite takes a write-ahead log for part of any file that it stands beside, and writes it into the file."""
    for end in ("-wal", "-shm"):
        if os.path.lexists(f"{place}{end}"):
            raise LedgerError(
                f"{f'{place}{end}'!r} stands beside the ledger, which keeps no such file: it would be taken for newer "
                "entries. Nothing is answered until it is removed"
            )


def _is_new(path: Path, text: str) -> None:
    """Where a journal is left, there was a ledger."""
    left = [path.name + end for end in BESIDE if os.path.lexists(f"{path}{end}")]
    if left:
        raise LedgerError(
            f"the ledger {text!r} is gone, and {left[0]!r} is still beside it: what was spent would be forgotten. "
            f"Put the ledger back. If there really is to be a new one, remove {left[0]!r} first"
        )


def _is_whole(path: Path, text: str) -> None:
    """Only SQLite looks into the file: whoever else closes it lets go of all locks that this process has on it."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or 0 < found.st_size < _LEAST:  # SQLite takes one byte for an empty database
        raise _no_ledger(repr(str(path)))
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
    connection.execute(f"PRAGMA application_id = {_MARK}")
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
        raise _no_ledger(where)
    foreign = [each for each in found if each not in _OURS]
    missing = [each for each in _OURS if each not in found]
    kind, name, table, _ = (foreign or missing)[0]
    what = f"the {kind} {str(name)[:60]!r} of {str(table)[:60]!r}, which is not its own" if foreign else f"no {name!r}"
    raise LedgerError(
        f"the ledger {where} has {what}: it could undo debits. Nothing is answered with this ledger. Remove what does "
        "not belong there, or put back a copy that verifies"
    )


def _no_ledger(where: str) -> UserError:
    return UserError(f"{where} exists and is not a ledger. Name a new file, or the ledger's own")


def _engine(path: Path | None, *, read_only: bool) -> sa.Engine:
    def made() -> sqlite3.Connection:
        # never made here; a reader may have to undo what a killed writer left half done
        if path is not None:
            _has_no_log(str(path))
        place = ":memory:" if path is None else f"{path.as_uri()}?mode=rw"
        connection = sqlite3.connect(
            place, timeout=0, isolation_level=None, check_same_thread=False, uri=path is not None
        )
        if path is not None:
            _configure(connection, path, read_only=read_only)
        return connection

    pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
    return sa.create_engine(
        "sqlite://", paramstyle="named", creator=made, **({"poolclass": StaticPool} if path is None else pool)
    )


def _configure(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    try:
        for statement in _PRAGMAS:
            _patiently(connection, statement, str(path))
        mark = _patiently(connection, "PRAGMA application_id", str(path)).fetchone()[0]
        mode = _patiently(connection, "PRAGMA journal_mode", str(path)).fetchone()[0]
        if mark == _MARK and mode != "wal":
            _patiently(connection, "PRAGMA journal_mode = PERSIST", str(path))
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except sqlite3.DatabaseError as error:
        connection.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise _no_ledger(repr(str(path))) from None
        raise
    except BaseException:
        connection.close()
        raise


def _patiently(connection: Any, statement: str, place: str) -> sqlite3.Cursor:
    """Run what may have to wait for its turn; as long as others get theirs."""
    seen, since, pause = _written(place), time.monotonic(), _SOON
    while True:
        try:
            found: sqlite3.Cursor = connection.execute(statement)
            return found
        except sqlite3.OperationalError as error:
            if not _is_locked(error):
                raise
            now, latest = time.monotonic(), _written(place)
            if latest != seen:
                seen, since = latest, now
            elif now - since > database.PATIENCE:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LATEST)


def _is_locked(error: sqlite3.OperationalError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _written(place: str) -> int:
    """When the file was written last: a look that needs no lock."""
    return os.stat(place).st_mtime_ns  # noqa: PTH116
