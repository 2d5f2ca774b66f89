"""`privet ledger history`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.cli.ledger.amounts import in_json, in_words, print_json
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
    ledger, contract = opened(where, policy)
    entries = ledger.history(one_dataset(ledger, dataset, contract))
    if as_json:
        print_json([_entry(entry) for entry in entries])
        return
    rows = [
        (
            str(e.number),
            e.time[:16].replace("T", " "),
            _what(e),
            e.analyst,
            in_words(e.price),
            in_words(e.spent),
            _note(e),
        )
        for e in entries
    ]
    print(aligned(("entry", "time", "what", "analyst", "cost", "spent", "question or note"), *rows))


def _what(entry: Entry) -> str:
    return entry.kind if entry.refers is None else f"{entry.kind} {entry.refers}"


def _note(entry: Entry) -> str:
    match entry.kind:
        case "created":
            assert entry.facts is not None
            unit, adjacency = entry.facts.protect, entry.facts.adjacency
            return f"each {unit}, {adjacency}, {entry.facts.accountant} accountant, {in_words(entry.totals.budget)}"
        case "attached" | "protected" | "allowed":
            return _about_table(entry)
        case "declared":
            return f"version {entry.version}" + (f": {entry.note}" if entry.note else "")
        case "capped" if entry.ration is not None:
            return f"{in_words(entry.ration.cap) or 'no cap'}: {entry.note}"
        case "capped":
            per_query = in_words(entry.totals.per_query)
            more = f", {per_query} per question" if per_query else ""
            return f"{in_words(entry.totals.budget)}{more}: {entry.note}"
    if entry.statement:
        text = " ".join("".join(c if c.isprintable() else " " for c in entry.statement).split())
        return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."
    return entry.note


def _about_table(entry: Entry) -> str:
    assert entry.table is not None
    here = f"{Path.cwd()}/"
    where = ", ".join(str(source).removeprefix(here) for source in entry.table.sources)
    if entry.kind == "allowed":
        return f"{where} for {entry.to}: {entry.note}"
    unit = f"by {entry.table.person}" if entry.table.person else "by row"
    return f"{entry.table.table} {unit}{f', {where}' if where else ''}{f': {entry.note}' if entry.note else ''}"


def _entry(entry: Entry) -> dict[str, Any]:
    from privet.privacy.guarantees.budgets import amount

    return {
        "number": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "refers": entry.refers,
        "analyst": entry.analyst or None,
        "request_id": entry.request_id or None,
        "version": entry.version or None,
        "cost": amount(entry.price),
        "spent": in_json(entry.spent),
        "question": entry.statement or None,
        "note": None if entry.statement else _note(entry) or None,
        "answer": entry.answer or None,
        "hash": entry.hash,
    }
