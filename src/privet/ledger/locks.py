"""Locks on a ledger's file that belong to one open ledger, and not to its whole process.

Claim: of all open ledgers on a file, in all processes, at most one is in a writing transaction, and nobody reads while
it commits. SQLite's own locks say the same, but they are the process's: it loses them when anything in it closes the
file, to copy it for example. These are locks of an open file description, which last until they are given back or the
process ends. They lie beside SQLite's own, in the page of the file that SQLite never writes.

Reference: fcntl(2), "Open file description locks"; https://www.sqlite.org/lockingv3.html
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import threading
from dataclasses import dataclass, field

from privet.errors import LedgerError, Remedy

_FIRST = 0x40000000  # SQLite's locks are these 512 bytes: pending, reserved, and 510 that readers share
_RESERVED = _FIRST + 1
_TURN, _GATE, _READ = (_FIRST + 512 + n for n in range(3))  # who writes; who may begin to read; who reads
_ALL = 515
_MAC = sys.platform == "darwin"  # it has these locks, and Python does not name them
_LAYOUT = "@qqihh" if _MAC else "@hhqqi4x"


class Held(OSError):
    """Somebody else has a lock."""


class FileLocks:
    """The locks that one ledger holds on its file. Nothing here waits: `Held` says that somebody else has a lock."""

    def __init__(self, place: str, *, read_only: bool = False) -> None:
        self._place = place
        self._how = (os.O_RDONLY if read_only else os.O_RDWR) | os.O_CLOEXEC
        self._handle = -1
        self._owner = 0

    @property
    def handle(self) -> int:
        """The file. A child of a fork opens it anew: what it inherits would be the same locks as its parent's."""
        if self._handle < 0 or self._owner != os.getpid():
            self._handle, self._owner = _KEPT.take(self._place, self._how), os.getpid()
        return self._handle

    def turn(self) -> None:
        """One writes."""
        self._check()
        self._take(_TURN, 1, alone=True)

    def look(self) -> None:
        """Many read; who begins waits for a commit."""
        self._check()
        self._take(_GATE, 2, alone=False)
        self._give(_GATE, 1)

    def commit(self) -> None:
        """Nobody reads. The gate is closed first, so that new readers don't keep a writer waiting for ever."""
        self._take(_GATE, 1, alone=True)
        self._take(_READ, 1, alone=True)

    def alone(self) -> None:
        """Nobody else does anything: other programs with SQLite neither, nor other threads of this process."""
        self.turn()
        self.commit()
        self._take(_FIRST, _ALL, alone=True)

    def still(self) -> None:
        """Nobody writes."""
        self._take(_FIRST, _ALL, alone=False)

    def shield(self) -> None:
        """Let SQLite believe that somebody is about to write: then it rolls back no journal when it begins to read."""
        self._take(_RESERVED, 1, alone=False)

    def unshield(self) -> None:
        """Let SQLite write."""
        self._give(_RESERVED, 1)

    def release(self) -> None:
        """Give back all locks."""
        if self._handle >= 0 and self._owner == os.getpid():
            self._give(_FIRST, _ALL)

    def close(self) -> None:
        """Give back all locks, for good."""
        if self._handle >= 0 and self._owner == os.getpid():
            self.release()
            _KEPT.leave(self._handle)
        self._handle = -1

    def _check(self) -> None:
        """A daemon may close all files when it starts, and their numbers are given to others."""
        if not _KEPT.has(self.handle):
            raise OSError("something in this process closed the file under it")

    def _take(self, first: int, count: int, *, alone: bool) -> None:
        import fcntl

        try:
            self._set(fcntl.F_WRLCK if alone else fcntl.F_RDLCK, first, count)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise Held("somebody else has a lock") from None
            raise

    def _give(self, first: int, count: int) -> None:
        import fcntl

        self._set(fcntl.F_UNLCK, first, count)

    def _set(self, kind: int, first: int, count: int) -> None:
        import fcntl

        number = getattr(fcntl, "F_OFD_SETLK", 90 if _MAC else None)
        if number is None:
            raise LedgerError(
                "this system has no locks of open file descriptions, which a ledger in a file needs",
                remedy=Remedy("Use Linux or macOS, or keep the ledger in Postgres"),
            )
        fields = (first, count, 0, kind, os.SEEK_SET) if _MAC else (kind, os.SEEK_SET, first, count, 0)
        fcntl.fcntl(self.handle, number, struct.pack(_LAYOUT, *fields))


@dataclass(slots=True)
class _Kept:
    """The files that this process has open for their locks.

    None is closed while another ledger of this process uses the same file: SQLite would lose its locks on it. Until
    then it is given to who opens the same file next.
    """

    owner: int = field(default_factory=os.getpid)
    used: dict[int, tuple[tuple[int, int], int]] = field(default_factory=dict)
    """Which file, and how it was opened."""
    spare: dict[int, tuple[tuple[int, int], int]] = field(default_factory=dict)
    turn: threading.RLock = field(default_factory=threading.RLock)

    def take(self, place: str, how: int) -> int:
        """An open file that nobody else in this process has."""
        if self.owner != os.getpid():
            self.disown()
        with self.turn:
            found = os.stat(place)  # noqa: PTH116
            wanted = (found.st_dev, found.st_ino), how
            handle = next((each for each, kept in self.spare.items() if kept == wanted and self.has(each)), -1)
            if handle < 0:
                handle = os.open(place, how)
                found = os.fstat(handle)
                wanted = (found.st_dev, found.st_ino), how
            self.spare.pop(handle, None)
            self.used[handle] = wanted
            return handle

    def leave(self, handle: int) -> None:
        """It is not used any more."""
        with self.turn:
            kept = self.used.pop(handle)
            self.spare[handle] = kept
            if not any(file == kept[0] for file, _ in self.used.values()):
                for each in [each for each, (file, _) in self.spare.items() if file == kept[0]]:
                    self._close(each)

    def has(self, handle: int) -> bool:
        """Whether a number still stands for the file that was opened."""
        kept = self.used.get(handle) or self.spare.get(handle)
        try:
            found = os.fstat(handle)
        except OSError:
            return False
        return kept is not None and kept[0] == (found.st_dev, found.st_ino)

    def _close(self, handle: int) -> None:
        if self.has(handle):
            os.close(handle)
        self.used.pop(handle, None)
        self.spare.pop(handle, None)

    def disown(self) -> None:
        """In a child: it has no locks of its own yet, and must not keep its parent's alive."""
        for each in (*self.used, *self.spare):
            self._close(each)
        self.owner, self.turn = os.getpid(), threading.RLock()


_KEPT = _Kept()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_KEPT.disown)
