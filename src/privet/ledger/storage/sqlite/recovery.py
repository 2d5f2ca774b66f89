"""Recovery from a journal that was left beside a ledger's file, by a killed process or by anybody else.

Claim: a journal is used only if the file does not verify without it. Debits are in the file before they are granted, so
a file that verifies lacks none of them, whatever the journal contains. A file that does not verify is half written:
then rolling back the journal must yield a ledger that verifies and does not end before the last commit, whose number
each transaction writes into the header of the file (`user_version`). SQLite itself never sees a journal.

Reference: https://www.sqlite.org/fileformat2.html#the_rollback_journal
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing

from sqlalchemy.dialects.sqlite import dialect

from privet.errors import LedgerError
from privet.ledger.history.state import LedgerState
from privet.ledger.storage.book import Book
from privet.ledger.storage.sqlite.schema import MARK

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_HEAD = 28  # bytes: the magic and five numbers
HEADER = 100
"""Bytes of the header of a database."""
_MOST = 1 << 26  # bytes of a journal that are read: a transaction writes far less
_LEAST = 512  # bytes: SQLite's smallest page
_SECTORS = (512, 4096)  # bytes before the first page of a journal, depending on the disk
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC
_BROKEN = (LedgerError, sqlite3.Error, TypeError, ValueError, AttributeError, OverflowError)


def is_hot(path: str) -> bool:
    """Whether SQLite would roll back or otherwise use the journal beside a file."""
    try:
        handle = _open_journal(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return os.read(handle, 1) not in (b"", b"\0")
    finally:
        os.close(handle)


def _open_journal(path: str, flags: int) -> int:
    """Open the journal; refused unless it is a regular file with one name."""
    name = f"{path}-journal"
    try:
        handle = os.open(name, flags | _NOFOLLOW)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        raise _foreign(name, "it is a symbolic link" if error.errno == errno.ELOOP else str(error.strerror)) from None
    status = os.fstat(handle)
    regular = stat.S_ISREG(status.st_mode)
    if regular and status.st_nlink < 2:
        return handle
    os.close(handle)
    raise _foreign(name, "it has several hard links" if regular else "it is not a regular file")


def _foreign(name: str, why: str) -> LedgerError:
    return LedgerError(
        f"{name!r} has the name of the ledger's journal, but is not a journal ({why}). Privet answers nothing until "
        "you remove it"
    )


def repair(path: str, handle: int, content: bytes, repaired: bytes) -> None:
    """Write the repaired file and empty its journal. Nobody else may use the file meanwhile."""
    if repaired != content:
        size = _page_size(content)
        for start in range(size, len(repaired), size):
            if repaired[start : start + size] != content[start : start + size]:
                _write(handle, repaired[start : start + size], start)
        os.ftruncate(handle, len(repaired))
        os.fsync(handle)
        _write(handle, repaired[:size], 0)  # last, because it holds the number of the last commit
    os.fsync(handle)
    journal = _open_journal(path, os.O_RDWR)
    try:
        os.ftruncate(journal, 0)
        os.fsync(journal)
    finally:
        os.close(journal)


def recovered(content: bytes, journal: bytes, path: str) -> bytes:
    """A ledger's file after the last commit, or after the interrupted one, from its file and its journal."""
    check_not_older(content, journal, path)
    committed = int.from_bytes(content[60:64])
    if _verifies(content, committed):
        return content
    previous = rolled_back(content, journal)
    if previous is not None and _verifies(previous, committed):
        return previous
    raise LedgerError(
        f"the ledger {path!r} is half written, and its journal can't repair it: the journal is missing, damaged, or "
        "belongs to another file. Privet answers nothing with this ledger. Restore the journal, or a copy that verifies"
    )


def check_not_older(content: bytes, journal: bytes, path: str) -> None:
    """Refuse a file that is older than the state that its journal was begun on.

    Claim: no crash leads to this. A journal keeps the first page as it was before its transaction, and that page was
    on disk before the journal was begun. Each commit increases the counter in it. So a larger counter in the journal
    than in the file shows that the file was replaced by an older one.
    """
    if _counter_in_journal(journal, _page_size(content)) > int.from_bytes(content[24:28]):
        raise LedgerError(
            f"the ledger {path!r} is older than its journal: an older copy was put back, which lacks the debits that "
            "were made since. Privet answers nothing with this ledger. Restore the newest copy. If you really want to "
            f"go on with the older one, remove {f'{path}-journal'!r} first"
        )


def _counter_in_journal(journal: bytes, size: int) -> int:
    """The largest change counter in the first pages that a journal holds, used or not; -1 if it holds none."""
    largest = -1
    for sector in _SECTORS if size >= _LEAST else ():
        for start in range(sector, len(journal) - size - 7, size + 8):
            page = journal[start + 4 : start + 4 + size]
            counter = page[24:28]
            if (
                int.from_bytes(journal[start : start + 4]) == 1
                and page.startswith(b"SQLite format 3\0")
                and (_page_size(page), page[68:72], page[92:96]) == (size, MARK.to_bytes(4), counter)
                and _nonce(journal, start, size) in (_nonce(journal, start + n * (size + 8), size) for n in (-1, 1))
            ):
                largest = max(largest, int.from_bytes(counter))
    return largest


def _nonce(journal: bytes, start: int, size: int) -> int | None:
    """The number that the checksum of a page in a journal was computed with: the same for all of a transaction."""
    page, checksum = journal[start + 4 : start + 4 + size], journal[start + 4 + size : start + 8 + size]
    return (int.from_bytes(checksum) - _sum(page)) % 2**32 if start > 0 and len(checksum) == 4 else None


def _verifies(content: bytes, committed: int) -> bool:
    """Whether a file is a valid ledger, from the first entry to the last answer, and contains the last commit."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        try:
            memory.execute("PRAGMA trusted_schema = OFF")
            memory.deserialize(content)
            if memory.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                return False
            book = Book(memory, dialect(paramstyle="named"), LedgerState(strict=False))
            while not book.follow(lock=False):
                pass
            book.check_leases()
            book.check_answered()
            after: int | None = 0
            while after is not None:
                after = book.check_answers(after)
            return book.state.number >= committed
        except _BROKEN:
            return False


def rolled_back(content: bytes, journal: bytes) -> bytes | None:
    """A file before the transaction of a journal; None if it is not a journal of this file."""
    size, pages = _page_size(content), dict[int, bytes]()
    before = int.from_bytes(journal[16:20])
    if size < _LEAST or int.from_bytes(journal[24:28]) != size or not 0 < before <= len(content) // size:
        return None
    for number, page in _records(journal, size):
        if 0 < number <= before:
            pages.setdefault(number, page)
    whole = bytearray(content[: before * size])
    for number, page in pages.items():
        whole[(number - 1) * size : number * size] = page
    return bytes(whole)


def _records(journal: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    """The pages in a journal, up to the first wrong checksum."""
    head, sector = 0, max(int.from_bytes(journal[20:24]), _HEAD)
    while journal[head : head + 8] == _MAGIC:
        count, nonce = (int.from_bytes(journal[head + n : head + n + 4]) for n in (8, 12))
        start = head + sector
        for _ in range(min(count, (len(journal) - start) // (size + 8))):
            page = journal[start + 4 : start + 4 + size]
            checksum = int.from_bytes(journal[start + 4 + size : start + 8 + size])
            if (nonce + _sum(page)) % 2**32 != checksum:
                return
            yield int.from_bytes(journal[start : start + 4]), page
            start += size + 8
        head = -(-start // sector) * sector


def _sum(page: bytes) -> int:
    """The part of a page's checksum that depends on the page."""
    return sum(page[len(page) - 200 : 0 : -200])


def _page_size(content: bytes) -> int:
    """The page size of a database; the largest is stored as 1."""
    size = int.from_bytes(content[16:18])
    return 65536 if size == 1 else size


def read_journal(path: str) -> bytes:
    """The content of the journal, if there is one that is not absurdly long."""
    try:
        handle = _open_journal(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        return b"" if os.fstat(handle).st_size > _MOST else read(handle)
    finally:
        os.close(handle)


def read(handle: int) -> bytes:
    """The whole content of a file."""
    parts, offset = [], 0
    while part := os.pread(handle, 1 << 24, offset):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


def _write(handle: int, content: bytes, offset: int) -> None:
    while content:
        count = os.pwrite(handle, content, offset)
        content, offset = content[count:], offset + count
