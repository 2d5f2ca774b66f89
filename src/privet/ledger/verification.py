"""Verification: the chain is read from the first entry, and compared with the answers and leases beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from privet.errors import LedgerError
from privet.ledger import chain
from privet.ledger.journal import Journal
from privet.ledger.receipts import Receipt, as_receipt
from privet.ledger.state import LedgerState


def check_leases(journal: Journal) -> None:
    """There is a lease for what is open, and for nothing else."""
    if journal.beats().keys() != journal.state.reserved.keys():
        raise LedgerError("the leases of the ledger are not those of its open reservations: it was tampered with")


def check_beside(journal: Journal) -> None:
    """What stands beside the chain: leases for what is open, and answers for what was answered."""
    check_leases(journal)
    settled = journal.state.settled.items()
    answered = {number for number, settlement in settled if settlement.kind == "answered"}
    for number in sorted(answered ^ journal.answered()):
        raise _bad_answer(number)


def check_answers(journal: Journal, after: int) -> int | None:
    """Check some answers of reservations after a number; gives the last of them, None if there are no more."""
    answers = journal.answers(after)
    for number, text in answers:
        settlement = journal.state.settled.get(number)
        if settlement is None or settlement.answer != chain.digest(text):
            raise _bad_answer(number)
    return answers[-1][0] if answers else None


def _bad_answer(number: int) -> LedgerError:
    return LedgerError(f"the answer of entry {str(number)[:20]} of the ledger is not the one that was given")


def verify_export(lines: Iterable[str], expect: Receipt | str | None = None) -> Receipt:
    """Check an exported chain by itself; `LedgerError` names the first bad entry."""
    receipt = as_receipt(expect)
    state = LedgerState(watch=0 if receipt is None else receipt.number)
    hidden: set[str] = set()
    for number, line in enumerate(lines, 1):
        try:
            tree = json.loads(line)
            hashed, told = str(tree["hash"]), "entry" in tree
            text = str(tree["entry"] if told else tree["digest"])
            name = chain.read(text).dataset if told else str(tree["dataset"])
        except (ValueError, TypeError, LookupError, RecursionError, LedgerError):
            raise LedgerError(f"line {number} is not an entry of an exported ledger") from None
        if told:
            state.append(text, hashed)
        else:
            hidden.add(name)
            state.append_hidden(name, text, hashed)
        if name in hidden and name in state.datasets:
            raise LedgerError(f"line {number}: only some entries of the dataset {name[:60]!r} are shown")
    if not state.datasets:
        raise LedgerError("there are no entries")
    if receipt is not None:
        state.expect(receipt)
    return state.head
