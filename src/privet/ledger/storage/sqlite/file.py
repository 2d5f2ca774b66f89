"""A ledger's file: who may read or write it, and when SQLite may open it.

Claim: SQLite opens the file only when there is no journal or log beside it that it could mistake for newer or older
entries; and at most one ledger writes at a time.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from privet.errors import LedgerError
from privet.ledger.storage import database
from privet.ledger.storage.sqlite import recovery
from privet.ledger.storage.sqlite.locks import FileLocks, Held
from privet.ledger.storage.sqlite.schema import MARK, not_a_ledger
from privet.ledger.storage.turns import Patience

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.004  # seconds between attempts to get a lock; SQLite's own grow to 0.1
_BRIEF = 0.01  # seconds to wait while other threads of this process wait too
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
        self._whole: tuple[int, ...] | None = None  # the file as this ledger last saw it complete

    def connect(self) -> sqlite3.Connection:
        """Open a connection. A read-only ledger repairs nothing: it reads a repaired copy in memory."""
        check_no_log(self.path)
        try:
            self.copied = None
            if not self.enter(write=False):
                self.wait(self.locks.still)
                self.copied = self._state()
                return self._copy()
            self._check_not_older()
            connection = sqlite3.connect(self._uri, timeout=0, isolation_level=None, check_same_thread=False, uri=True)
            self.shielded(lambda: self._configure(connection), always=False)
            return connection
        finally:
            self.locks.release()

    def _copy(self) -> sqlite3.Connection:
        content, journal = recovery.read(self.locks.handle), self._journal()
        copy = sqlite3.connect(":memory:", timeout=0, isolation_level=None, check_same_thread=False)
        copy.deserialize(recovery.recovered(content, journal, self.path))
        copy.execute("PRAGMA query_only = ON")
        return copy

    def _check_not_older(self) -> None:
        """Refuse a file that is older than its journal. While this process has the ledger open, the chain shows it."""
        recovery.check_not_older(os.pread(self.locks.handle, recovery.HEADER, 0), self._journal(), self.path)

    def _journal(self) -> bytes:
        try:
            return recovery.read_journal(self.path)
        except PermissionError:
            if self._read_only:
                return b""
            raise

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
        while self._is_suspect():
            if self._read_only:
                return False
            self._recover()
            self.wait(self.locks.turn if write else self.locks.look)
        return True

    def _recover(self) -> None:
        """Repair the file and empty its journal. A copy is verified, so that others can go on meanwhile."""
        self.locks.release()
        self.wait(self.locks.alone, patiently=True)
        if not self._is_hot():
            self.locks.release()
            return
        before, content, journal = self._state(), recovery.read(self.locks.handle), self._journal()
        self.locks.release()
        try:
            repaired, failure = recovery.recovered(content, journal, self.path), None
        except LedgerError as error:
            repaired, failure = content, error
        self.wait(self.locks.alone, patiently=True)
        if self._is_hot() and self._state() == before:  # otherwise another process was first
            if failure is not None:
                raise failure
            recovery.repair(self.path, self.locks.handle, content, repaired)
        self.locks.release()

    def _is_suspect(self) -> bool:
        """Whether the journal that was left may belong to an interrupted write.

        It does not if the file is still what this ledger last saw complete: every write changes the counter first.
        """
        return self._is_hot() and self._stamp() != self._whole

    def note_whole(self) -> None:
        """The file is complete, as a transaction has begun on it."""
        self._whole = self._stamp() if self.copied is None else None

    def note_commit(self) -> None:
        """The file is complete after a commit, unless another program has already changed it again."""
        before, self._whole = self._whole, self._stamp()
        if before is None or self._whole[0] != (before[0] + 1) % 2**32:
            self._whole = None

    def _stamp(self) -> tuple[int, ...]:
        status = os.fstat(self.locks.handle)
        return self.change_counter(), status.st_ino, status.st_size, status.st_mtime_ns

    def change_counter(self) -> int:
        """SQLite's count of the transactions that changed the file; needs no lock."""
        return int.from_bytes(os.pread(self.locks.handle, 4, 24))

    def is_outdated(self) -> bool:
        """Whether the file has changed since its copy was made."""
        return self._read_only and self.copied != (self._state() if self._is_suspect() else None)

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

    def shielded(self, action: Callable[[], None], *, always: bool) -> None:
        """Keep SQLite from rolling back journals. For a reader, a writer may already hold the lock for this."""
        try:
            self.locks.shield()
        except Held:
            if always:
                raise
        try:
            action()
        finally:
            self.locks.unshield()

    def wait(self, attempt: Callable[[], _T], *, patiently: bool = False) -> _T:
        """Repeat an attempt until it gets its lock: briefly, or as long as other writers make progress."""
        end, patience, pause = time.monotonic() + _BRIEF, Patience(database.PATIENCE), _FIRST_PAUSE
        while True:
            try:
                return attempt()
            except (sqlite3.OperationalError, Held) as error:
                if not is_held(error):
                    raise
                if not (patience.lasts(self.change_counter()) if patiently else time.monotonic() < end):
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def is_held(error: BaseException) -> bool:
    """Whether the error says that somebody else holds a lock, SQLite's or ours."""
    return isinstance(error, Held) or getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def check_no_log(path: str) -> None:
    """Refuse a write-ahead log beside the file: SQLite would write its content into the file."""
    for end in ("-wal", "-shm"):
        if os.path.lexists(f"{path}{end}"):
            raise LedgerError(
                f"there is a file {f'{path}{end}'!r} beside the ledger. A ledger has no such file, and SQLite would "
                "read it as newer entries. Privet answers nothing until you remove it"
            )
