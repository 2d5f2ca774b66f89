"""The chain as lines of JSON, to be kept elsewhere and checked there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from privet.codec import canonical
from privet.errors import LedgerError, PrivetError
from privet.ledger.history import chain
from privet.ledger.history.receipts import Receipt, Verified, as_receipt
from privet.ledger.history.state import LedgerState
from privet.tables.schema import check_name


def exported(dataset: str, text: str, hash_: str, *, visible: bool) -> str:
    """An entry as a line of an export; if it is not visible, only the dataset's name and a hash."""
    line = {"entry": text} if visible else {"dataset": dataset, "digest": chain.digest(text)}
    return canonical({**line, "hash": hash_})


def verify_export(lines: Iterable[str], expect: Receipt | str | None = None) -> Verified:
    """Check an exported chain; a `LedgerError` names the first bad entry."""
    receipt = as_receipt(expect)
    state = LedgerState(watch=0 if receipt is None else receipt.number)
    hidden: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        try:
            name, text, hash_, visible = _read(json.loads(line))
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


def _read(tree: Any) -> tuple[str, str, str, bool]:
    """The dataset's name, the text or its digest, the hash, and whether the text is shown."""
    keys, visible = {*tree}, "entry" in tree
    if keys != ({"entry", "hash"} if visible else {"dataset", "digest", "hash"}) or {*map(type, tree.values())} != {
        str
    }:
        raise ValueError("its fields are not those of an exported entry")
    if visible:
        return chain.read(tree["entry"]).dataset, tree["entry"], tree["hash"], True
    return check_name(tree["dataset"], "dataset"), tree["digest"], tree["hash"], False
