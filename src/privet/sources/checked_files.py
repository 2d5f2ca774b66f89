"""Parquet files that were read to the end once, and are not read again until they change.

Reading a value can fail: a text may have bytes that are not UTF-8, and a time may be too large for the engine. A
question that reads such a value would fail because of one row. So these columns are read once, before a session exists.
For millions of rows that takes seconds, so a mark in the user's cache folder records it.

Claim: a mark is valid for one column of a file with this path, inode, size, times and footer. A file that changed in
the last two seconds gets none, since it could change again and keep its times. Somebody who can forge a mark can make
questions fail, and nothing else; it takes the rights of the user who asks them.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

RULE = "1"
"""Which values are refused; a mark is for one rule and one version of what reads the file."""
SETTLED = 2 * 10**9
"""Nanoseconds that a file must have been as it is."""


def marks(path: str, columns: Sequence[str], *, reader: str, fresh: bool = False) -> dict[str, str]:
    """The name of each column's mark: a digest of everything that changes when the file does.

    There are none for a file that is not Parquet or changed a moment ago, unless it is `fresh`: written by the caller.

    Example:
        >>> marks("/nowhere/people.parquet", ["region"], reader="2.0.0")
        {}
    """
    try:
        with Path(path).open("rb") as file:
            state = os.fstat(file.fileno())
            file.seek(-8, os.SEEK_END)
            length, end = int.from_bytes(file.read(4), "little"), file.read(4)
            if end != b"PAR1" or length + 8 > state.st_size:
                return {}
            file.seek(-8 - length, os.SEEK_END)
            footer = hashlib.sha256(file.read(length)).hexdigest()
    except OSError:
        return {}
    if not fresh and time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) < SETTLED:
        return {}
    identity = state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
    facts = (RULE, reader, path, identity, footer)
    return {name: hashlib.sha256(repr((*facts, name)).encode()).hexdigest() for name in columns}


def object_marks(address: str, tag: str, end: bytes, columns: Sequence[str], *, reader: str) -> dict[str, str]:
    """The same for an object, whose tag changes whenever its content does."""
    facts = (RULE, reader, address, tag, hashlib.sha256(end).hexdigest())
    return {name: hashlib.sha256(repr((*facts, name)).encode()).hexdigest() for name in columns}


def is_known(mark: str | None) -> bool:
    """Whether this mark was left."""
    folder = _folder()
    return mark is not None and folder is not None and (folder / mark).is_file()


def remember(marks: Iterable[str]) -> None:
    """Leave these marks; where nothing can be written, nothing is remembered."""
    folder = _folder()
    if folder is None:
        return
    with suppress(OSError):
        for mark in marks:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / mark).touch(mode=0o600)


def _folder() -> Path | None:
    """The folder of the marks: in $XDG_CACHE_HOME, or in ~/.cache."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():
        return Path(given) / "privet" / "verified"
    with suppress(RuntimeError):  # there is no home
        return Path.home() / ".cache" / "privet" / "verified"
    return None
