"""Writing files atomically: a file appears when it is complete, and never replaces something else by accident.

Claim: nothing is written through a link, and without `overwrite` nothing is replaced, even if it appears at the last
moment. Until it is complete, a file has a scratch name, such as `.people.parquet.0123456789abcdef.part`.
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
from typing import BinaryIO, Protocol
from weakref import WeakSet

from privet.errors import Remedy, Subject, UserError
from privet.errors import write as write_line

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_NEVER_OVERWRITTEN = {b"SQLite format 3\x00": "a database, such as a ledger", b"-----BEGIN": "a key"}
"""The first bytes of files that are never overwritten, and what they are."""
_OTHER = Remedy("Choose another file")
_LONGEST = 200  # bytes of the target's name in a scratch name


def _free(_: Path) -> bool:
    return False


def check(target: Path, *, overwrite: bool, taken: Callable[[Path], bool] = _free) -> None:
    """Refuse a target that must not be written. `taken` says whether a path is used for something else."""
    name = repr(str(target))
    try:
        status = target.lstat()
    except FileNotFoundError:
        status = None
    except OSError as error:
        raise UserError(f"{name} can't be written: {error.strerror}") from None
    if not target.parent.is_dir():
        raise UserError(f"there is no folder {str(target.parent)!r}")
    if target.is_dir():
        raise UserError(
            f"{name} is a folder", remedy=Remedy(f"Choose a file in it, such as {str(target / 'answer.csv')!r}")
        )
    if target.is_symlink():
        raise UserError(f"{name} is a symbolic link. Privet does not write through links", remedy=_OTHER)
    if taken(target):
        raise UserError(f"{name} is already used for something else", remedy=_OTHER)
    if status is not None:
        _check_replaceable(target, status, overwrite)
    if not os.access(target.parent, os.W_OK):
        raise UserError(f"{name} can't be written: its folder is not writable")


class InUse(Protocol):
    """A file that something in this process keeps open."""

    @property
    def inode(self) -> tuple[int, int] | None:
        """Its device and inode."""


IN_USE: WeakSet[InUse] = WeakSet()
"""The ledgers that this process has open."""


def _check_replaceable(target: Path, status: os.stat_result, overwrite: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UserError(f"{str(target)!r} is not a file that can be overwritten", remedy=_OTHER)
    if not overwrite:
        raise _exists(target)
    # opening and closing it would release locks of this process
    if (status.st_dev, status.st_ino) in {
        each.inode for each in IN_USE
    }:  # opening and closing it would release this process's locks
        raise UserError(f"{str(target)!r} is a ledger in use", remedy=_OTHER)
    try:
        with target.open("rb") as file:
            start = file.read(max(map(len, _NEVER_OVERWRITTEN)))
    except OSError as error:
        raise UserError(f"{str(target)!r} can't be overwritten: {error.strerror}") from None
    for prefix, what in _NEVER_OVERWRITTEN.items():
        if start.startswith(prefix):
            raise UserError(f"{str(target)!r} is {what}, which Privet never overwrites", remedy=_OTHER)


def _exists(target: Path) -> UserError:
    what = f"{str(target)!r} already exists"
    remedy = write_line("overwrite=True", terminal="--force", advice="Choose another file, or overwrite it", exact=True)
    return UserError(what, subject=Subject("file", str(target)), remedy=remedy)


def among(path: Path, others: Iterable[str | Path]) -> bool:
    """Whether a file is one of these: the same path, or another name of the same file."""
    real = path.parent.resolve() / path.name
    return any(real == Path(other).resolve() or _same(path, Path(other)) for other in others)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
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
    """A file to write to, which gets its name at the end if no error was raised.

    A replaced file keeps its permissions; a new one has `mode`, less the umask.
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
        if os.fstat(file.fileno()).st_nlink:  # otherwise a sweep removed it before it was locked
            return path, file
        file.close()


def _prefix(target: Path) -> str:
    return f".{os.fsdecode(os.fsencode(target.name)[:_LONGEST])}."


def _name(scratch: Path, target: Path, overwrite: bool) -> None:
    if overwrite:
        if target.exists():
            scratch.chmod(stat.S_IMODE(target.stat().st_mode))
        scratch.replace(target)  # replaces a link that has appeared meanwhile, not its target
        return
    try:
        os.link(scratch, target)
    except FileExistsError:
        raise _exists(target) from None
    except OSError:  # a file system without hard links
        _reserve(target)
        scratch.replace(target)
        return
    scratch.unlink()


def _reserve(target: Path) -> None:
    try:
        os.close(os.open(target, _NEW))
    except FileExistsError:
        raise _exists(target) from None


# --- leftover scratch files -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Swept:
    """What happened to the scratch files that earlier writers left."""

    removed: int
    left: tuple[str, ...]
    """The names of files that are in use, or can't be removed."""
    others: tuple[str, ...] = ()
    """The names of abandoned files of other targets in the same folder."""

    def __str__(self) -> str:
        sentences = []
        if self.removed:
            what = "an unfinished file" if self.removed == 1 else f"{self.removed} unfinished files"
            sentences.append(f"Removed {what} left by an interrupted import.")
        if self.left:
            sentences.append(f"Not removed, because another import may be using them: {', '.join(self.left)}")
        if self.others:
            sentences.append(
                f"Unfinished files of other interrupted writes are in this folder: {', '.join(self.others)}. They may "
                "contain private rows: remove them."
            )
        return " ".join(sentences)


def sweep(target: Path) -> Swept:
    """Remove the scratch files that killed processes left beside a file. An active writer holds a lock on its own."""
    pattern = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{16}\.part")
    try:
        paths = sorted(path for path in target.parent.iterdir() if pattern.fullmatch(path.name))
    except OSError:
        paths = []
    left = tuple(path.name for path in paths if not _remove(path))
    return Swept(len(paths) - len(left), left)


def abandoned(folder: Path) -> tuple[str, ...]:
    """The names of all scratch files in a folder whose writer was killed."""
    try:
        paths = sorted(path for path in folder.iterdir() if re.fullmatch(r"\..+\.[0-9a-f]{16}\.part", path.name))
    except OSError:
        paths = []
    return tuple(path.name for path in paths if _if_abandoned(path, lambda path: None))


def _remove(path: Path) -> bool:
    return _if_abandoned(path, Path.unlink) or not os.path.lexists(path)


def _if_abandoned(path: Path, action: Callable[[Path], None]) -> bool:
    """Act on a scratch file that nobody is writing; returns whether that was done."""
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode) or not _lock(handle, wait=False):
            return False
        action(path)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _lock(handle: int, *, wait: bool = True) -> bool:
    """Lock a file until it is closed or the process ends; False if others hold a lock."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):  # locked, or a system without such locks, where no file counts as abandoned
        return False
    return True
