"""Locks on a ledger's file that belong to one open ledger, not to its whole process.

Claim: of all open ledgers on a file, in all processes, at most one is in a writing transaction, and nobody reads while
it commits. SQLite's own locks promise the same, but belong to the process, which loses them when anything in it closes
the file, for example after copying it. These are open file description locks, which last until they are released or the
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

_FIRST = 0x40000000  # SQLite locks these 512 bytes: pending, reserved, and 510 that readers share
_RESERVED = _FIRST + 1
_TURN, _GATE, _READ = (_FIRST + 512 + n for n in range(3))  # held by the writer; by those who start to read; by readers
_ALL = 515
_MAC = sys.platform == "darwin"  # it has these locks, but Python has no constants for them
_LAYOUT = "@qqihh" if _MAC else "@hhqqi4x"


class Held(OSError):
    """Somebody else holds a lock."""


class FileLocks:
    """The locks that one ledger holds on its file. Nothing here waits: `Held` means that somebody else holds a lock."""

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self._path = path
        self._flags = (os.O_RDONLY if read_only else os.O_RDWR) | os.O_CLOEXEC
        self._handle = -1
        self._owner = 0

    @property
    def handle(self) -> int:
        """The open file. A forked child opens it again, because an inherited file would share its parent's locks."""
        if self._handle < 0 or self._owner != os.getpid():
            self._handle, self._owner = _OPEN_FILES.take(self._path, self._flags), os.getpid()
        return self._handle

    def turn(self) -> None:
        """Lock for the only writer."""
        self._check()
        self._take(_TURN, 1, alone=True)

    def look(self) -> None:
        """Lock for one of many readers; a new reader waits for a commit."""
        self._check()
        self._take(_GATE, 2, alone=False)
        self._release(_GATE, 1)

    def commit(self) -> None:
        """Exclude readers. The gate is closed first, so that new readers don't keep a writer waiting forever."""
        self._take(_GATE, 1, alone=True)
        self._take(_READ, 1, alone=True)

    def alone(self) -> None:
        """Exclude everybody else, including other programs that use SQLite and other threads of this process."""
        self.turn()
        self.commit()
        self._take(_FIRST, _ALL, alone=True)

    def still(self) -> None:
        """Exclude writers."""
        self._take(_FIRST, _ALL, alone=False)

    def shield(self) -> None:
        """Make SQLite see a pending writer, so that it does not roll back a journal when it starts to read."""
        self._take(_RESERVED, 1, alone=False)

    def unshield(self) -> None:
        """Allow SQLite to write again."""
        self._release(_RESERVED, 1)

    def release(self) -> None:
        """Release all locks."""
        if self._handle >= 0 and self._owner == os.getpid():
            self._release(_FIRST, _ALL)

    def close(self) -> None:
        """Release all locks for good."""
        if self._handle >= 0 and self._owner == os.getpid():
            self.release()
            _OPEN_FILES.leave(self._handle)
        self._handle = -1

    def _check(self) -> None:
        """Refuse a closed file: a daemon may close all files when it starts, and their descriptors are reused."""
        if not _OPEN_FILES.has(self.handle):
            raise OSError("something in this process closed the ledger's file")

    def _take(self, first: int, count: int, *, alone: bool) -> None:
        import fcntl

        try:
            self._set(fcntl.F_WRLCK if alone else fcntl.F_RDLCK, first, count)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise Held("somebody else holds a lock") from None
            raise

    def _release(self, first: int, count: int) -> None:
        import fcntl

        self._set(fcntl.F_UNLCK, first, count)

    def _set(self, kind: int, first: int, count: int) -> None:
        import fcntl

        command = getattr(fcntl, "F_OFD_SETLK", 90 if _MAC else None)
        if command is None:
            raise LedgerError(
                "a ledger in a file needs open file description locks, which this system does not have",
                remedy=Remedy("Use Linux or macOS, or keep the ledger in Postgres"),
            )
        fields = (first, count, 0, kind, os.SEEK_SET) if _MAC else (kind, os.SEEK_SET, first, count, 0)
        fcntl.fcntl(self.handle, command, struct.pack(_LAYOUT, *fields))


@dataclass(slots=True)
class _OpenFiles:
    """The files that this process has open for their locks.

    None is closed while another ledger of this process uses the same file, because SQLite would lose its locks on it.
    Until then it is a spare, to be reused by the next ledger that opens the same file.
    """

    owner: int = field(default_factory=os.getpid)
    used: dict[int, tuple[tuple[int, int], int]] = field(default_factory=dict)
    """By descriptor: the file (device and inode), and the flags it was opened with."""
    spare: dict[int, tuple[tuple[int, int], int]] = field(default_factory=dict)
    turn: threading.RLock = field(default_factory=threading.RLock)

    def take(self, path: str, flags: int) -> int:
        """An open file that no other ledger in this process uses."""
        if self.owner != os.getpid():
            self.disown()
        with self.turn:
            key = _identity(os.stat(path)), flags  # noqa: PTH116
            handle = next((spare for spare, other in self.spare.items() if other == key and self.has(spare)), -1)
            if handle < 0:
                handle = os.open(path, flags)
                key = _identity(os.fstat(handle)), flags
            self.spare.pop(handle, None)
            self.used[handle] = key
            return handle

    def leave(self, handle: int) -> None:
        """Give back an open file; the last ledger on it closes it."""
        with self.turn:
            key = self.spare[handle] = self.used.pop(handle)
            if not any(file == key[0] for file, _ in self.used.values()):
                for spare in [spare for spare, (file, _) in self.spare.items() if file == key[0]]:
                    self._close(spare)

    def has(self, handle: int) -> bool:
        """Whether a descriptor still refers to the file that was opened."""
        key = self.used.get(handle) or self.spare.get(handle)
        try:
            file = _identity(os.fstat(handle))
        except OSError:
            return False
        return key is not None and key[0] == file

    def _close(self, handle: int) -> None:
        if self.has(handle):
            os.close(handle)
        self.used.pop(handle, None)
        self.spare.pop(handle, None)

    def disown(self) -> None:
        """In a forked child, close everything: it must not keep its parent's locks alive."""
        for handle in (*self.used, *self.spare):
            self._close(handle)
        self.owner, self.turn = os.getpid(), threading.RLock()


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


_OPEN_FILES = _OpenFiles()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OPEN_FILES.disown)
