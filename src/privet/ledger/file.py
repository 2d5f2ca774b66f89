"""A ledger's file: whose turn it is, and what SQLite may do with it.

Claim: SQLite begins to read the file only when no journal or log is left beside it that it could take for newer, or for
older, entries; and while one ledger writes, no other does.
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
"""The text "Priv": in the header of every ledger."""
_SOON, _LATEST = 0.0005, 0.004  # seconds between attempts to get a lock; SQLite's own would grow to 0.1
_JOURNAL = 1 << 20  # bytes: a longer journal is cut after its transaction
_PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS: all the way to the platter
    f"PRAGMA journal_size_limit = {_JOURNAL}",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cache_spill = OFF",  # nothing is written to the file before the commit
)
_T = TypeVar("_T")


class File:
    """A ledger's file: whose turn it is, and what is made of a journal that was left beside it."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.place, self._uri, self._read_only = str(path), f"{path.as_uri()}?mode=rw", read_only
        self.locks = FileLocks(self.place, read_only=read_only)
        self.copied: object = None
        """If the connection reads a copy in memory: of what."""

    def connect(self) -> sqlite3.Connection:
        """A connection. Whoever only reads repairs nothing, but reads a copy of the file that is repaired."""
        has_no_log(self.place)
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
        made = sqlite3.connect(":memory:", timeout=0, isolation_level=None, check_same_thread=False)
        made.deserialize(recovery.lawful(recovery.read(self.locks.handle), self.place))
        made.execute("PRAGMA query_only = ON")
        return made

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
                raise no_ledger(repr(self.place)) from None
            raise

    def enter(self, *, write: bool) -> bool:
        """Take a reader's or a writer's lock, when no journal is left. False: one is, and nothing may be written."""
        self.wait(self.locks.turn if write else self.locks.look)
        while self._is_hot():
            if self._read_only:
                return False
            self.locks.release()
            self.wait(self.locks.alone)
            if self._is_hot():
                recovery.recover(self.place, self.locks.handle)
            self.locks.release()
            self.wait(self.locks.turn if write else self.locks.look)
        return True

    def is_outdated(self) -> bool:
        """Whether a copy was made of something else than what is there now."""
        return self._read_only and self.copied != (self._state() if self._is_hot() else None)

    def _is_hot(self) -> bool:
        try:
            return recovery.is_hot(self.place)
        except PermissionError:
            if self._read_only:
                return True  # for all that is known
            raise

    def _state(self) -> object:
        def known(place: str) -> object:
            found = os.stat(place, follow_symlinks=False)  # noqa: PTH116
            return found.st_ino, found.st_size, found.st_mtime_ns

        return known(self.place), known(f"{self.place}-journal")

    @contextmanager
    def shielded(self, *, always: bool) -> Iterator[None]:
        """Keep SQLite from looking for journals to roll back. A reader may find that a writer does so already."""
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
        """Do what may have to wait for its turn; as long as others get theirs."""
        seen, since, pause = 0, 0.0, _SOON
        while True:
            try:
                return attempt()
            except (sqlite3.OperationalError, Held) as error:
                if not is_held(error):
                    raise
                now, latest = time.monotonic(), _written(self.place)
                if latest != seen:
                    seen, since = latest, now
                elif now - since > database.PATIENCE:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LATEST)


def is_held(error: BaseException) -> bool:
    """Whether somebody else has a lock: SQLite's, or one of ours."""
    return isinstance(error, Held) or getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _written(place: str) -> int:
    """When the file was written last: a look that needs no lock."""
    return os.stat(place).st_mtime_ns  # noqa: PTH116


def has_no_log(place: str) -> None:
    """SQLite takes a write-ahead log for part of any file that it stands beside, and writes it into the file."""
    for end in ("-wal", "-shm"):
        if os.path.lexists(f"{place}{end}"):
            raise LedgerError(
                f"{f'{place}{end}'!r} stands beside the ledger, which keeps no such file: it would be taken for newer "
                "entries. Nothing is answered until it is removed"
            )


def no_ledger(where: str) -> UserError:
    """What stands there is something else."""
    return UserError(f"{where} exists and is not a ledger. Name a new file, or the ledger's own")
