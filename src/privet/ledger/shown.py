"""Entries and budgets as they are shown: in words, and as JSON for programs. Commands and servers show the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from privet.exact import literal
from privet.ledger.balance import Balance, Caps
from privet.ledger.history.entries import Entry
from privet.privacy.accounting import Share
from privet.privacy.accounting.base import percent_up
from privet.privacy.guarantees import Budget, Guarantee, show_down, stricter
from privet.privacy.guarantees.budgets import amount

if TYPE_CHECKING:
    from privet.ledger.opening import Ledger


def in_words(budget: Guarantee | Share | None) -> str:
    """An amount for people; nothing for no amount."""
    if isinstance(budget, Share):
        return percent_up(budget.used)
    return "" if budget is None else show_down(budget)


def in_json(spent: Guarantee | Share) -> dict[str, str] | None:
    """An amount for programs."""
    return {"share": literal(spent.used).strip('"')} if isinstance(spent, Share) else amount(spent)


# --- entries --------------------------------------------------------------------------------------


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry for programs."""
    return {
        "number": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "refers": entry.refers,
        "analyst": entry.analyst or None,
        "by": entry.by or None,
        "request_id": entry.request_id or None,
        "version": entry.version or None,
        "cost": amount(entry.price),
        "spent": in_json(entry.spent),
        "question": entry.statement or None,
        "note": None if entry.statement else note(entry) or None,
        "answer": entry.answer or None,
        "hash": entry.hash,
    }


def note(entry: Entry) -> str:
    """What an entry records, in words; empty for a question."""
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
    return entry.note


def _about_table(entry: Entry) -> str:
    assert entry.table is not None
    here = f"{Path.cwd()}/"
    where = ", ".join(str(source).removeprefix(here) for source in entry.table.sources)
    if entry.kind == "allowed":
        return f"{where} for {entry.to}: {entry.note}"
    unit = f"by {entry.table.person}" if entry.table.person else "by row"
    return f"{entry.table.table} {unit}{f', {where}' if where else ''}{f': {entry.note}' if entry.note else ''}"


# --- budgets --------------------------------------------------------------------------------------


class BudgetLine(NamedTuple):
    """What was granted, is spent and is left: of a dataset, or of one analyst."""

    dataset: str
    analyst: str
    """Empty for the dataset."""
    granted: Budget | None
    spent: Guarantee | Share
    left: Budget | None
    words: str
    """What is left, in words."""

    def to_json(self) -> dict[str, Any]:
        """The line for programs."""
        return {
            "dataset": self.dataset,
            "analyst": self.analyst or None,
            "granted": amount(self.granted),
            "spent": in_json(self.spent),
            "left": amount(self.left),
        }


def budget_lines(ledger: Ledger, dataset: str, caps: Callable[[str], Caps]) -> list[BudgetLine]:
    """The line of a dataset, and one for each of its analysts. `caps` are those of a policy, by analyst."""
    balance = caps("").lower(ledger.balance(dataset))
    lines = [BudgetLine(dataset, "", balance.budget, balance.spent, balance.remaining.guarantee, balance.left)]
    accountant = balance.accountant
    for analyst, ration in ledger.analysts(dataset).items():
        cap = stricter(ration.cap, caps(analyst).analyst)
        capped = None if cap is None else Balance(accountant, cap, ration.spent)
        left = (None, "") if capped is None else (capped.remaining.guarantee, capped.left)
        lines.append(BudgetLine(dataset, analyst, cap, accountant.spent(ration.spent, cap or balance.budget), *left))
    return lines
