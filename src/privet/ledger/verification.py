"""Verification: replay the chain from the first entry, and compare it with the stored answers and leases."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from privet.errors import LedgerError, PrivetError
from privet.ledger import chain
from privet.ledger.journal import Journal
from privet.ledger.receipts import Receipt, Verified, as_receipt
from privet.ledger.state import LedgerState
from privet.tables.schema import check_name


def check_leases(journal: Journal) -> None:
    """Check that exactly the unsettled reservations have leases."""
    if journal.beats().keys() != journal.state.reserved.keys():
        raise LedgerError("the leases of the ledger do not match its unsettled reservations: it was tampered with")


def check_leases_and_answers(journal: Journal) -> None:
    """Check that each unsettled reservation has a lease, and each answered one a stored answer."""
    check_leases(journal)
    settled = journal.state.settled.items()
    answered = {number for number, settlement in settled if settlement.kind == "answered"}
    for number in sorted(answered ^ journal.answered()):
        raise _bad_answer(number)


def check_answers(journal: Journal, after: int) -> int | None:
    """Check the next answers to reservations after a number; returns the last number, or None at the end."""
    answers = journal.answers(after)
    for number, text in answers:
        settlement = journal.state.settled.get(number)
        if settlement is None or settlement.answer != chain.digest(text):
            raise _bad_answer(number)
    return answers[-1][0] if answers else None


def _bad_answer(number: int) -> LedgerError:
    return LedgerError(
        f"the stored answer to entry {str(number)[:20]} of the ledger does not match the chain: it was tampered with"
    )


def verify_export(lines: Iterable[str], expect: Receipt | str | None = None) -> Verified:
    """Check an exported chain; a `LedgerError` names the first bad entry."""
    receipt = as_receipt(expect)
    state = LedgerState(watch=0 if receipt is None else receipt.number)
    hidden: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        try:
            name, text, hash_, visible = _exported(json.loads(line))
        except (ValueError, TypeError, LookupError, RecursionError, PrivetError):
            raise LedgerError(f"line {number} is not an entry of an exported ledger") from None
        if visible:
            state.append(text, hash_)
        else:
            hidden[name] += 1
            state.append_hidden(name, text, hash_)
        if name in hidden and name in state.datasets:
            raise LedgerError(f"line {number}: some entries of the dataset {name[:60]!r} are hidden and others are not")
    if not state.datasets:
        raise LedgerError("the export has no entries")
    if receipt is not None:
        state.expect(receipt)
    shown = {name: dataset.entries for name, dataset in sorted(state.datasets.items())}
    return Verified(state.head, shown, dict(sorted(hidden.items())))


def _exported(tree: Any) -> tuple[str, str, str, bool]:
    """The dataset's name, the text or its digest, the hash, and whether the text is shown."""
    keys, visible = {*tree}, "entry" in tree
    if keys != ({"entry", "hash"} if visible else {"dataset", "digest", "hash"}) or {*map(type, tree.values())} != {
        str
    }:
        raise ValueError("its fields are not those of an exported entry")
    if visible:
        return chain.read(tree["entry"]).dataset, tree["entry"], tree["hash"], True
    return check_name(tree["dataset"], "dataset"), tree["digest"], tree["hash"], False
