"""`privet ledger history`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privet.cli.ledger.amounts import print_json
from privet.cli.ledger.opening import ByPolicy, Where, Which, one_dataset, opened
from privet.cli.options import AsJson
from privet.cli.output import aligned

if TYPE_CHECKING:
    from privet.ledger import Entry

_LONG = 200  # characters of a question that are shown; --json shows the whole question


def history(where: Where = None, policy: ByPolicy = None, dataset: Which = None, as_json: AsJson = False) -> None:
    """List every entry, oldest first.

    Example: privet ledger history people.ledger
    """
    from privet.ledger.shown import entry_json, in_words

    ledger, contract = opened(where, policy)
    entries = ledger.history(one_dataset(ledger, dataset, contract))
    if as_json:
        print_json([entry_json(entry) for entry in entries])
        return
    rows = [
        (
            str(e.number),
            e.time[:16].replace("T", " "),
            _what(e),
            e.analyst,
            in_words(e.price),
            in_words(e.spent),
            _told(e),
        )
        for e in entries
    ]
    print(aligned(("entry", "time", "what", "analyst", "cost", "spent", "question or note"), *rows))


def _what(entry: Entry) -> str:
    return entry.kind if entry.refers is None else f"{entry.kind} {entry.refers}"


def _told(entry: Entry) -> str:
    """The question, shortened, or what else the entry records."""
    from privet.ledger.shown import note

    if entry.statement:
        text = " ".join("".join(c if c.isprintable() else " " for c in entry.statement).split())
        return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."
    return f"{note(entry)} (by {entry.by})" if entry.by and not entry.by.startswith("cli:") else note(entry)
