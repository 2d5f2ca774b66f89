"""A ledger's file: who may read or write it, and when SQLite may open it.

Claim: SQLite opens the file only when there is no journal or log beside it that it could mistake for newer or older
entries; and at most one ledger writes at a time.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from privet.errors import LedgerError, UserError
from privet.ledger import database, recovery
from privet.ledger.locks import FileLocks, Held

MARK = 0x50726976
"""The text "Priv", as SQLite's application id in the header of every ledger."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.004  # seconds between attempts to get a lock; SQLite's own grow to 0.1
_JOURNAL = 1 << 20  # bytes: a longer journal is truncated after its transaction
_PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS: flush the disk's own cache too
    f"PRAGMA journal_size_limit = {_JOURNAL}",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cache_spill = OFF",  # write nothing to the file before the commit
)
_T = TypeVar("_T")


class File:
    """A ledger's file: its locks, its connection, and the recovery from a leftover journal."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path, self._uri, self._read_only = str(path), f"{path.as_uri()}?mode=rw", read_only
        self.locks = FileLocks(self.path, read_only=read_only)
        self.copied: object = None
        """If the connection reads a copy in memory, the file state that it was copied from."""

    def connect(self) -> sqlite3.Connection:
        """Open a connection. A read-only ledger repairs nothing: it reads a repaired copy in memory."""
        check_no_log(self.path)
        try:
            self.copied = None
            if not self.enter(write=False):
                self.wait(self.locks.still)
                self.copied = self._state()
                return self._copy()
            connection = sqlite3.connect(self._uri, timeout=0, isolation_level=None, check_same_thread=False, uri=True)
            with self.shielded(always=False):
                self._configure(connection)
            return connection
        finally:
            self.locks.release()

    def _copy(self) -> sqlite3.Connection:
        copy = sqlite3.connect(":memory:", timeout=0, isolation_level=None, check_same_thread=False)
        copy.deserialize(recovery.recovered(recovery.read(self.locks.handle), self.path))
        copy.execute("PRAGMA query_only = ON")
        return copy

    def _configure(self, connection: sqlite3.Connection) -> None:
        def run(statement: str) -> Any:
            return self.wait(lambda: connection.execute(statement).fetchone())

        try:
            for statement in _PRAGMAS:
                run(statement)
            if run("PRAGMA application_id")[0] == MARK and run("PRAGMA journal_mode")[0] != "wal":
                run("PRAGMA journal_mode = PERSIST")
            if self._read_only:
                run("PRAGMA query_only = ON")
        except BaseException as error:
            connection.close()
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
                raise not_a_ledger(repr(self.path)) from None
            raise

    def enter(self, *, write: bool) -> bool:
        """Take a reader's or a writer's lock after recovery; False if a read-only ledger would need recovery."""
        self.wait(self.locks.turn if write else self.locks.look)
        while self._is_hot():
            if self._read_only:
                return False
            self.locks.release()
            self.wait(self.locks.alone)
            if self._is_hot():
                recovery.recover(self.path, self.locks.handle)
            self.locks.release()
            self.wait(self.locks.turn if write else self.locks.look)
        return True

    def is_outdated(self) -> bool:
        """Whether the file has changed since its copy was made."""
        return self._read_only and self.copied != (self._state() if self._is_hot() else None)

    def _is_hot(self) -> bool:
        try:
            return recovery.is_hot(self.path)
        except PermissionError:
            if self._read_only:
                return True  # to be safe
            raise

    def _state(self) -> object:
        def state(path: str) -> object:
            status = os.stat(path, follow_symlinks=False)  # noqa: PTH116
            return status.st_ino, status.st_size, status.st_mtime_ns

        return state(self.path), state(f"{self.path}-journal")

    @contextmanager
    def shielded(self, *, always: bool) -> Iterator[None]:
        """Keep SQLite from rolling back journals. For a reader, a writer may already hold the lock for this."""
        try:
            self.locks.shield()
        except Held:
            if always:
                raise
        try:
            yield
        finally:
            self.locks.unshield()

    def wait(self, attempt: Callable[[], _T]) -> _T:
        """Repeat an attempt until it gets its lock; waits as long as other writers make progress."""
        last_write, since, pause = 0, 0.0, _FIRST_PAUSE
        while True:
            try:
                return attempt()
            except (sqlite3.OperationalError, Held) as error:
                if not is_held(error):
                    raise
                now, latest = time.monotonic(), _modified(self.path)
                if latest != last_write:
                    last_write, since = latest, now
                elif now - since > database.PATIENCE:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def is_held(error: BaseException) -> bool:
    """Whether the error says that somebody else holds a lock, SQLite's or ours."""
    return isinstance(error, Held) or getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _modified(path: str) -> int:
    """When the file was last written; needs no lock."""
    return os.stat(path).st_mtime_ns  # noqa: PTH116


def check_no_log(path: str) -> None:
    """Refuse a write-ahead log beside the file: SQLite would write its content into the file."""
    for end in ("-wal", "-shm"):
        if os.path.lexists(f"{path}{end}"):
            raise LedgerError(
                f"there is a file {f'{path}{end}'!r} beside the ledger. A ledger has no such file, and SQLite would "
                "read it as newer entries. Privet answers nothing until you remove it"
            )


def not_a_ledger(where: str) -> UserError:
    """The error for a file that is something else."""
    return UserError(
        f"{where} exists, but is not a ledger. Name another file. If it was a ledger, restore a copy that "
        "verifies: a new one would forget what was spent"
    )
