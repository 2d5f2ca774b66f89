"""Is a ledger what it was? Its chain is read from the first entry, and compared with what stands beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from privet.errors import LedgerError
from privet.ledger import chain
from privet.ledger.book import Book
from privet.ledger.entries import Receipt
from privet.ledger.journal import Journal


def receipt_of(given: Receipt | str | None) -> Receipt | None:
    """A receipt, or its text."""
    return Receipt.read(given) if isinstance(given, str) else given


def check_leases(journal: Journal) -> None:
    """There is a lease for what is open, and for nothing else."""
    if journal.beats().keys() != journal.book.open.keys():
        raise LedgerError("the leases of the ledger are not those of its open reservations: it was tampered with")


def check_beside(journal: Journal) -> None:
    """What stands beside the chain: leases for what is open, and answers for what was answered."""
    check_leases(journal)
    answered = {number for number, end in journal.book.ends.items() if end.kind == "answered"}
    for number in sorted(answered ^ journal.answered()):
        raise _bad_answer(number)


def check_answers(journal: Journal, after: int) -> int | None:
    """Check some answers of reservations after a number; gives the last of them, None if there are no more."""
    found = journal.answers(after)
    for number, text in found:
        end = journal.book.ends.get(number)
        if end is None or end.answer != chain.digest(text):
            raise _bad_answer(number)
    return found[-1][0] if found else None


def _bad_answer(number: int) -> LedgerError:
    return LedgerError(f"the answer of entry {str(number)[:20]} of the ledger is not the one that was given")


def verify_export(lines: Iterable[str], expect: Receipt | str | None = None) -> Receipt:
    """Check an exported chain by itself; `LedgerError` names the first bad entry."""
    receipt = receipt_of(expect)
    book = Book(watch=0 if receipt is None else receipt.number)
    hidden: set[str] = set()
    for number, line in enumerate(lines, 1):
        try:
            tree = json.loads(line)
            known, told = str(tree["hash"]), "entry" in tree
            text = str(tree["entry"] if told else tree["digest"])
            name = chain.read(text).dataset if told else str(tree["dataset"])
        except (ValueError, TypeError, LookupError, RecursionError, LedgerError):
            raise LedgerError(f"line {number} is not an entry of an exported ledger") from None
        if told:
            book.add(text, known)
        else:
            hidden.add(name)
            book.skip(name, text, known)
        if name in hidden and name in book.datasets:
            raise LedgerError(f"line {number}: some entries of the dataset {name[:60]!r} are told, and some are hidden")
    if not book.datasets:
        raise LedgerError("there are no entries")
    if receipt is not None:
        book.expect(receipt)
    return book.head
