"""Files that a person asked for: they appear whole, and never in the place of something else.

Claim: nothing is written through a link, and without `overwrite` nothing is replaced, also if it appears at the last
moment. What is written stands under a name of its own, `.people.parquet.0123456789abcdef.part`, until it is whole.
"""

from __future__ import annotations

import os
import re
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from privet.errors import Remedy, Subject, UserError
from privet.errors import write as write_line

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_KEPT = {b"SQLite format 3\x00": "a database, such as a ledger", b"-----BEGIN": "a key"}
"""How files begin that are never overwritten, and what they are."""
_OTHER = Remedy("Choose another file")
_LONGEST = 200  # bytes of a name that a scratch file repeats


def _free(_: Path) -> bool:
    return False


def check(target: Path, *, overwrite: bool, taken: Callable[[Path], bool] = _free) -> None:
    """Refuse a place where nothing may be written. `taken` tells the places that are used for something else."""
    name = repr(str(target))
    try:
        found = target.lstat()
    except FileNotFoundError:
        found = None
    except OSError as error:
        raise UserError(f"{name} can't be written: {error.strerror}") from None
    if not target.parent.is_dir():
        raise UserError(f"there is no folder {str(target.parent)!r}")
    if target.is_dir():
        raise UserError(
            f"{name} is a folder", remedy=Remedy(f"Choose a file in it, such as {str(target / 'answer.csv')!r}")
        )
    if target.is_symlink():
        raise UserError(f"{name} is a symbolic link, and Privet does not write through links", remedy=_OTHER)
    if taken(target):
        raise UserError(f"{name} is already used for something else", remedy=_OTHER)
    if found is not None:
        _replaceable(target, found, overwrite)
    if not os.access(target.parent, os.W_OK):
        raise UserError(f"{name} can't be written: its folder is not writable")


IN_USE: set[tuple[int, int]] = set()
"""The files of ledgers that this process has opened, by device and inode."""


def _replaceable(target: Path, found: os.stat_result, overwrite: bool) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{str(target)!r} is not a file that can be overwritten", remedy=_OTHER)
    if not overwrite:
        raise _exists(target)
    if (found.st_dev, found.st_ino) in IN_USE:  # to open and close it would let go of this process's locks on it
        raise UserError(f"{str(target)!r} is a ledger that is in use", remedy=_OTHER)
    try:
        with target.open("rb") as file:
            start = file.read(max(map(len, _KEPT)))
    except OSError as error:
        raise UserError(f"{str(target)!r} can't be overwritten: {error.strerror}") from None
    for sign, what in _KEPT.items():
        if start.startswith(sign):
            raise UserError(f"{str(target)!r} is {what}, and is never overwritten", remedy=_OTHER)


def _exists(target: Path) -> UserError:
    what = f"{str(target)!r} already exists, and is not overwritten unless you say so"
    remedy = write_line("overwrite=True", terminal="--force", exact=True)
    return UserError(what, subject=Subject("file", str(target)), remedy=remedy)


def among(path: Path, others: Iterable[str | Path]) -> bool:
    """Whether a file is one of these: by its place, or as another name of the same file."""
    place = path.parent.resolve() / path.name
    return any(place == Path(other).resolve() or _same(path, Path(other)) for other in others)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False


def write(target: Path, content: bytes, *, overwrite: bool, taken: Callable[[Path], bool] = _free) -> None:
    """Write a whole file."""
    sweep(target)
    with written(target, overwrite=overwrite, taken=taken) as file:
        file.write(content)


@contextmanager
def written(
    target: Path, *, overwrite: bool, taken: Callable[[Path], bool] = _free, mode: int = 0o666
) -> Iterator[BinaryIO]:
    """A file to write to; it gets its name at the end, if nothing was raised.

    A file that is replaced keeps who may read it; a new one has `mode`, less the umask.
    """
    check(target, overwrite=overwrite, taken=taken)
    scratch, file = _scratch(target, mode)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            _name(scratch, target, overwrite)  # while its lock is held
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _scratch(target: Path, mode: int) -> tuple[Path, BinaryIO]:
    while True:
        path = target.with_name(f"{_prefix(target)}{uuid.uuid4().hex[:16]}.part")
        file = os.fdopen(os.open(path, _NEW, mode), "wb")
        _lock(file.fileno())
        if os.fstat(file.fileno()).st_nlink:  # else a sweep took it for an abandoned one, before it was locked
            return path, file
        file.close()


def _prefix(target: Path) -> str:
    return f".{os.fsdecode(os.fsencode(target.name)[:_LONGEST])}."


def _name(scratch: Path, target: Path, overwrite: bool) -> None:
    if overwrite:
        if target.exists():
            scratch.chmod(stat.S_IMODE(target.stat().st_mode))
        scratch.replace(target)  # of a link that appeared meanwhile, the link
        return
    try:
        os.link(scratch, target)
    except FileExistsError:
        raise _exists(target) from None
    except OSError:  # a file system without a second name for a file
        _reserve(target)
        scratch.replace(target)
        return
    scratch.unlink()


def _reserve(target: Path) -> None:
    try:
        os.close(os.open(target, _NEW))
    except FileExistsError:
        raise _exists(target) from None


# --- what was left behind -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Swept:
    """What became of the scratch files of others that wrote to the same place."""

    removed: int
    left: tuple[str, ...]
    """Their names: someone is writing them, or they can't be removed."""

    def __str__(self) -> str:
        told = []
        if self.removed:
            what = "an unfinished file" if self.removed == 1 else f"{self.removed} unfinished files"
            told.append(f"Removed {what} that an interrupted import left.")
        if self.left:
            told.append(f"Left in place, as another import may be writing to it: {', '.join(self.left)}")
        return " ".join(told)


def sweep(target: Path) -> Swept:
    """Remove what a killed process left beside a file. Whoever is still writing holds a lock, and keeps its own."""
    mine = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{16}\.part")
    try:
        found = sorted(path for path in target.parent.iterdir() if mine.fullmatch(path.name))
    except OSError:
        found = []
    left = tuple(path.name for path in found if not _removed(path))
    return Swept(len(found) - len(left), left)


def _removed(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return not os.path.lexists(path)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode) or not _lock(handle, wait=False):
            return False
        path.unlink()
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _lock(handle: int, *, wait: bool = True) -> bool:
    """Hold a file until it is closed, or until the process ends, however it ends. False if others hold it."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):  # held, or a system without such locks: then nothing is taken for abandoned
        return False
    return True
