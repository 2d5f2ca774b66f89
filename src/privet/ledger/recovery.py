"""What is made of a journal that was left beside a ledger's file: by a process that was killed, or by anybody.

Claim: a journal is only believed if the file does not verify without it. Debits are in the file before they are
granted, so a file that verifies lacks none of them, whatever the journal says. A file that does not was left half
written: then the journal must lead to a ledger that verifies and does not end before the last commit, whose place in
the chain each transaction writes into the head of the file (`user_version`). SQLite itself never gets to see a journal.

Reference: https://www.sqlite.org/fileformat2.html#the_rollback_journal
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing

from sqlalchemy.dialects.sqlite import dialect

from privet.errors import LedgerError
from privet.ledger.journal import Journal
from privet.ledger.state import LedgerState
from privet.ledger.verification import check_answers, check_beside

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_HEAD = 28  # bytes: the magic, and five numbers
_MOST = 1 << 22  # bytes that a journal may be longer than its file
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC
_BROKEN = (LedgerError, sqlite3.Error, TypeError, ValueError, AttributeError, OverflowError)


def is_hot(place: str) -> bool:
    """Whether SQLite would roll back the journal beside a file, or act on it in another way."""
    try:
        handle = _opened(place, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return os.read(handle, 1) not in (b"", b"\0")
    finally:
        os.close(handle)


def _opened(place: str, how: int) -> int:
    """The journal, if it is a file of its own."""
    name = f"{place}-journal"
    try:
        handle = os.open(name, how | _NOFOLLOW)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        raise _foreign(name, str(error.strerror)) from None
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and found.st_nlink < 2:
        return handle
    os.close(handle)
    raise _foreign(name, "it is not a file" if found.st_nlink < 2 else "it has more than one name")


def _foreign(name: str, why: str) -> LedgerError:
    return LedgerError(
        f"{name!r} stands where the ledger keeps its journal, and is not one ({why}). Nothing is answered until it is "
        "removed"
    )


def recover(place: str, handle: int) -> None:
    """Make a ledger lawful by itself, and its journal empty. Nobody else may use the file meanwhile."""
    content = read(handle)
    made = lawful(content, place)
    if made != content:
        size = _page(content)
        for start in range(size, len(made), size):
            if made[start : start + size] != content[start : start + size]:
                _write(handle, made[start : start + size], start)
        os.ftruncate(handle, len(made))
        os.fsync(handle)
        _write(handle, made[:size], 0)  # last: until now it says where the last commit was
    os.fsync(handle)
    journal = _opened(place, os.O_RDWR)
    try:
        os.ftruncate(journal, 0)
        os.fsync(journal)
    finally:
        os.close(journal)


def lawful(content: bytes, place: str) -> bytes:
    """A ledger as it was after the last commit, or after the one that was under way; from its file and its journal."""
    least = int.from_bytes(content[60:64])
    if _holds(content, least):
        return content
    made = rolled_back(content, _journal(place, len(content) + _MOST))
    if made is not None and _holds(made, least):
        return made
    raise LedgerError(
        f"the ledger {place!r} was left half written, and what is beside it does not complete it: its journal is gone, "
        "broken, or another one. Nothing is answered with this ledger. Put back the journal, or a copy that verifies"
    )


def _holds(content: bytes, least: int) -> bool:
    """Whether a file is a ledger by itself, from the first entry to the last answer, and long enough."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        try:
            memory.execute("PRAGMA trusted_schema = OFF")
            memory.deserialize(content)
            if memory.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                return False
            journal = Journal(memory, dialect(paramstyle="named"), LedgerState(strict=False))
            while not journal.follow(lock=False):
                pass
            check_beside(journal)
            after: int | None = 0
            while after is not None:
                after = check_answers(journal, after)
            return journal.state.number >= least
        except _BROKEN:
            return False


def rolled_back(content: bytes, journal: bytes) -> bytes | None:
    """A file as it was before the transaction of a journal; None if that is not a journal of this file."""
    size, pages = _page(content), dict[int, bytes]()
    before = int.from_bytes(journal[16:20])
    if size < 512 or int.from_bytes(journal[24:28]) != size or not 0 < before <= len(content) // size:
        return None
    for number, page in _records(journal, size):
        if 0 < number <= before:
            pages.setdefault(number, page)
    whole = bytearray(content[: before * size])
    for number, page in pages.items():
        whole[(number - 1) * size : number * size] = page
    return bytes(whole)


def _records(journal: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    """The pages that a journal holds, as far as their checksums are right."""
    head, sector = 0, max(int.from_bytes(journal[20:24]), _HEAD)
    while journal[head : head + 8] == _MAGIC:
        count, nonce = (int.from_bytes(journal[head + n : head + n + 4]) for n in (8, 12))
        place = head + sector
        for _ in range(min(count, (len(journal) - place) // (size + 8))):
            page = journal[place + 4 : place + 4 + size]
            checked = int.from_bytes(journal[place + 4 + size : place + 8 + size])
            if (nonce + sum(page[size - 200 : 0 : -200])) % 2**32 != checked:
                return
            yield int.from_bytes(journal[place : place + 4]), page
            place += size + 8
        head = -(-place // sector) * sector


def _page(content: bytes) -> int:
    """The size of a page of a database; of the largest, the two bytes say 1."""
    size = int.from_bytes(content[16:18])
    return 65536 if size == 1 else size


def _journal(place: str, most: int) -> bytes:
    try:
        handle = _opened(place, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return b"" if os.fstat(handle).st_size > most else read(handle)
    finally:
        os.close(handle)


def read(handle: int) -> bytes:
    """All of a file."""
    parts, place = [], 0
    while part := os.pread(handle, 1 << 24, place):
        parts.append(part)
        place += len(part)
    return b"".join(parts)


def _write(handle: int, content: bytes, place: int) -> None:
    while content:
        done = os.pwrite(handle, content, place)
        content, place = content[done:], place + done
