"""Where a ledger's file may be: under one name, beside its own journal, and never empty."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from privet.errors import LedgerError, UserError
from privet.ledger.storage.sqlite.schema import not_a_ledger

BESIDE = ("-journal", "-wal", "-shm")
"""The suffixes of files that SQLite may create beside a database."""
_SCRATCH = ".part"
_LEAST = 512  # bytes: SQLite's smallest page


def check_name(path: Path, text: str) -> None:
    """Refuse a name that the file of another ledger could need."""
    for end in (*BESIDE, _SCRATCH):
        if path.name.casefold().endswith(end):
            raise UserError(f"the ledger {text!r} can't have a name that ends in {end!r}. Choose another name")


def identity(path: str) -> tuple[int, int]:
    """The device and inode of the file. A file with two names is refused: each name would have its own journal."""
    status = os.stat(path)  # noqa: PTH116 (runs twice per debit, and pathlib is slower)
    if status.st_nlink > 1:
        raise LedgerError(
            f"the ledger {path!r} has {status.st_nlink} names (hard links), each with its own journal. Remove all "
            "names but one. To make a copy, use cp while nobody writes"
        )
    return status.st_dev, status.st_ino


def check_new(path: Path, text: str) -> None:
    """Refuse to create a ledger beside a leftover journal: there was a ledger before.

    A journal may also belong to a ledger that another process has created since: then there is a ledger now.
    """
    left = [path.name + end for end in BESIDE if os.path.lexists(f"{path}{end}")]
    if left and not os.path.lexists(path):
        raise LedgerError(
            f"the ledger {text!r} is missing, but its {left[0]!r} is still there. A new ledger would forget what was "
            f"spent. Restore the ledger. If you really want a new one, remove {left[0]!r} first"
        )


def check_writable(path: Path, action: str) -> None:
    """Refuse what this user has no permission to write."""
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise LedgerError(f"you do not have permission to {action}. Ask its owner")


def check_permission(path: Path, text: str) -> None:
    """Refuse to open a ledger that this user may not write, or beside which they may not write a journal."""
    check_writable(path, f"write the ledger {text!r}")
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():
        check_writable(journal, f"write the ledger's journal {str(journal)!r}")
    elif not journal.is_symlink():
        check_writable(path.parent, f"create the ledger's journal in the folder {str(path.parent)!r}")


def check_whole(path: Path, text: str) -> None:
    """Refuse what SQLite would accept as an empty database, and a file that can't have a journal beside it."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or 0 < status.st_size < _LEAST:  # SQLite accepts one byte as an empty database
        raise not_a_ledger(repr(str(path)))
    if not status.st_size:
        raise LedgerError(
            f"the ledger {text!r} is an empty file. Privet never creates one, so the ledger was emptied. Restore a "
            "copy that verifies. If there never was a ledger here, remove the file"
        )
    if str(path) in mount_points():
        raise LedgerError(
            f"the ledger {text!r} is mounted as a single file, so its journal would not be beside it. Mount its folder"
        )


def mount_points() -> set[str]:
    """The paths where something is mounted; none on systems that do not list them."""
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
