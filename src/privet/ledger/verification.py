"""Is a ledger what it was? Every chain is read from its first entry, and compared with what stands beside it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from privet.errors import LedgerError
from privet.ledger import chain
from privet.ledger.book import Book
from privet.ledger.entries import Receipt
from privet.ledger.journal import Journal


def receipt_of(given: Receipt | str | None) -> Receipt | None:
    """A receipt, or its text."""
    return Receipt.read(given) if isinstance(given, str) else given


def verified(journal: Journal, expect: Receipt | None, *, answers: bool) -> list[Book]:
    """Every dataset's state, from a ledger that holds; `LedgerError` names the first bad entry."""
    try:
        return _verified(journal, expect, answers=answers)
    except (TypeError, ValueError, AttributeError) as error:  # SQLite keeps values of any type in any column
        raise LedgerError(f"a column of the ledger holds what it can't hold ({error}): it was tampered with") from None


def _verified(journal: Journal, expect: Receipt | None, *, answers: bool) -> list[Book]:
    listed = journal.listed()
    if (stray := journal.strays()) is not None:
        raise LedgerError(f"the dataset {stray!r} was removed, and entries of it are still there")
    books = []
    for head in listed:
        book = _book(journal, head.dataset, expect, strict=answers)
        if not book.number:
            raise LedgerError(
                f"all entries of the dataset {head.dataset!r} were removed. Nothing is answered with this ledger"
            )
        if (book.number, book.hash) != (head.number, head.hash):
            raise LedgerError(
                f"the chain of the dataset {head.dataset!r} ends at entry {book.number}, and should end at entry "
                f"{head.number}: entries were removed or added. Nothing is answered with this ledger"
            )
        _beside(journal, book, answers=answers)
        books.append(book)
    if expect is not None and expect.dataset not in [head.dataset for head in listed]:
        raise LedgerError(f"the receipt is for the dataset {expect.dataset!r}, which is not in this ledger")
    return books


_BESIDE = "number", "kind", "analyst", "request_id", "question", "refers"


def _book(journal: Journal, dataset: str, expect: Receipt | None, *, strict: bool) -> Book:
    book, receipt = Book(dataset, strict), None
    for *beside, text, found in journal.rows(dataset):
        inside = [*map(book.add(text, found).get, _BESIDE)]
        if beside != inside:
            raise LedgerError(
                f"entry {book.number} of the dataset {dataset!r} does not hold: its columns say "
                f"{beside}, and its text {inside}. Nothing is answered with this ledger"
            )
        if expect is not None and expect.number == book.number:
            receipt = book.hash
    if expect is not None and expect.dataset == dataset:
        book.expect(expect, receipt)
    return book


def _beside(journal: Journal, book: Book, *, answers: bool) -> None:
    """What stands beside the chain: leases for what is open, and answers."""
    if journal.beats(book.name).keys() != book.open:
        raise LedgerError(f"the leases of the dataset {book.name!r} are not those of its open reservations")
    if answers:
        found = journal.answers(book.name)
    else:
        found = {number: book.answers.get(number, "") for number in journal.answered(book.name)}
    for number in sorted({*found, *book.answers}):
        if found.get(number) != book.answers.get(number):
            raise LedgerError(
                f"the answer of entry {number} of the dataset {book.name!r} is not the one that was given"
            )


def verify_export(lines: Iterable[str], expect: Receipt | str | None = None) -> Receipt:
    """Check an exported chain by itself; `LedgerError` names the first bad entry."""
    receipt, found, book = receipt_of(expect), None, None
    for number, line in enumerate(lines, 1):
        try:
            tree = json.loads(line)
            text, known = str(tree["entry"]), str(tree["hash"])
            book = Book(chain.read(text).dataset) if book is None else book
        except (ValueError, TypeError, LookupError, RecursionError, LedgerError):
            raise LedgerError(f"line {number} is not an entry of an exported ledger") from None
        book.add(text, known)
        found = known if receipt is not None and receipt.number == number else found
    if book is None:
        raise LedgerError("there are no entries")
    if receipt is not None:
        book.expect(receipt, found)
    return book.head


@contextmanager
def beside(check: Callable[[], None]) -> Iterator[None]:
    """Check something in a thread meanwhile; or before, if there are no more threads."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            check()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    try:
        thread.start()
    except RuntimeError:
        run()
    try:
        yield
    finally:
        if thread.ident is not None:
            thread.join()
    if errors:
        raise errors[0]
