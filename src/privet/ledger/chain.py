"""Entries as text, and the chain of hashes over them.

Claim: hash(n) = SHA-256 of three lines: hash(n - 1), the dataset's name, SHA-256(text(n)); and an entry has one text.
The chain runs over all datasets of a ledger: whoever knows the last hash knows that no earlier entry of any of them was
changed, removed, added or moved. In an export, the name and the hash of its text can stand for an entry of another
dataset, and for no entry of the dataset that is told.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast, get_args

from privet import events
from privet.canonical import canonical
from privet.distances import Adjacency
from privet.errors import LedgerError
from privet.exact import Exact
from privet.guarantees import ApproxDP, PureDP
from privet.identity import Identity
from privet.ledger.entries import Budget, Dataset, Entry, Kind, Ration, TableFacts, Totals

GENESIS = "0" * 64
_KINDS = get_args(Kind)
_TEXTS = ("analyst", "request_id", "asked", "question", "statement", "version", "answer", "note", "salt", "to")
_STRINGS = frozenset([*_TEXTS, "time", "dataset", "cost"])
_FIELDS = {
    "number",
    "dataset",
    "kind",
    "time",
    "totals",
    "ration",
    "events",
    "cost",
    "refers",
    "facts",
    "table",
    *_TEXTS,
}


def link(previous: str, dataset: str, digested: str) -> str:
    """The hash of an entry of a dataset, by that of its text."""
    return hashlib.sha256(f"{previous}\n{dataset}\n{digested}".encode()).hexdigest()


def digest(text: str) -> str:
    """The hash of a text: of an entry, an answer or a question."""
    return hashlib.sha256(text.encode()).hexdigest()


_DECODER = json.JSONDecoder()


def write(entry: Entry) -> str:
    """The text of an entry, without its hash; fields that say nothing are left out."""
    tree: dict[str, Any] = {name: text for name in _TEXTS if (text := getattr(entry, name))}
    tree |= {"number": entry.number, "dataset": entry.dataset, "kind": entry.kind, "time": entry.time}
    tree["totals"] = totals_tree(entry.totals)
    if entry.ration is not None:
        tree["ration"] = ration_tree(entry.ration)
    if entry.kind == "reserved":
        tree["events"] = [events.to_tree(event) for event in entry.events]
    if entry.cost is not None:
        tree["cost"] = budget_text(entry.cost)
    if entry.refers is not None:
        tree["refers"] = entry.refers
    if entry.facts is not None:
        facts = entry.facts
        tree["facts"] = {
            "protect": facts.protect,
            "adjacency": str(facts.adjacency),
            "accountant": facts.accountant,
            "closes_after": facts.closes_after,
            "closes_for": facts.closes_for,
        }
    if entry.table is not None:
        table = entry.table
        tree["table"] = {
            "name": table.table,
            "person": table.person,
            "sources": [source.to_dict() for source in table.sources],
        }
    return canonical(tree)


def totals_tree(totals: Totals) -> dict[str, Any]:
    """Totals as they stand in an entry."""
    numbers = {"budget": totals.budget, "spent": totals.spent, "per_query": totals.per_query}
    found: dict[str, Any] = {name: budget_text(number) for name, number in numbers.items() if number is not None}
    return {**found, "failures": totals.failures}


def ration_tree(ration: Ration) -> dict[str, Any]:
    """A ration as it stands in an entry."""
    tree: dict[str, Any] = {"spent": budget_text(ration.spent), "failures": ration.failures}
    return tree if ration.cap is None else {**tree, "cap": budget_text(ration.cap)}


def tree(text: str, *, strict: bool = True) -> dict[str, Any]:
    """The fields of an entry; a `ValueError` if they are not what entries have, or (strict) not written so."""
    found, end = _DECODER.raw_decode(text)
    if (
        end != len(text)
        or not isinstance(found, dict)
        or not found.keys() <= _FIELDS
        or found.get("kind") not in _KINDS
    ):
        raise ValueError("it has other fields than entries have")
    if strict:
        if not all(type(value) is str for name, value in found.items() if name in _STRINGS):
            raise ValueError("what should be a text is none")
        numbers = [found["number"], found.get("refers", 1), found["totals"]["failures"]]
        numbers.append(found["ration"]["failures"] if "ration" in found else 0)
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError("what should be a number is none")
        if canonical(found) != text:
            raise ValueError("it is not written as entries are")
    return found


def read(text: str, found: str = "") -> Entry:
    """The entry that a text stands for; a `LedgerError` if it stands for none."""
    try:
        fields = tree(text, strict=False)
        after, ration, table = read_totals(fields["totals"]), fields.get("ration"), fields.get("table")
        return Entry(
            number=_whole(fields["number"]),
            dataset=fields["dataset"],
            kind=cast(Kind, fields["kind"]),
            time=fields["time"],
            totals=after,
            analyst=fields.get("analyst", ""),
            ration=None if ration is None else read_ration(ration),
            request_id=fields.get("request_id", ""),
            asked=fields.get("asked", ""),
            question=fields.get("question", ""),
            statement=fields.get("statement", ""),
            version=fields.get("version", ""),
            events=tuple(map(events.from_tree, fields.get("events", ()))),
            cost=_maybe(fields.get("cost")),
            refers=None if "refers" not in fields else _whole(fields["refers"]),
            answer=fields.get("answer", ""),
            note=fields.get("note", ""),
            facts=_facts(fields, after) if "facts" in fields else None,
            salt=fields.get("salt", ""),
            table=None if table is None else read_table(table),
            to=fields.get("to", ""),
            hash=found,
        )
    except _ODD as error:
        raise _tampered(error) from None


_ODD = LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError


def _tampered(error: Exception) -> LedgerError:
    return LedgerError(f"an entry of the ledger can't be read ({str(error)[:200]}): it was tampered with")


def read_totals(tree: dict[str, Any]) -> Totals:
    """Totals from how an entry says them."""
    budget, spent = _read_budget(tree["budget"]), _read_budget(tree["spent"])
    return Totals(budget, spent, _whole(tree["failures"]), _maybe(tree.get("per_query")))


def read_ration(tree: dict[str, Any]) -> Ration:
    """A ration from how an entry says it."""
    return Ration(_read_budget(tree["spent"]), _maybe(tree.get("cap")), _whole(tree["failures"]))


def read_table(tree: dict[str, Any]) -> TableFacts:
    """What is kept of a table, from how an entry says it."""
    name, person, sources = tree["name"], tree["person"], tree["sources"]
    if len(tree) != 3 or type(name) is not str or type(person) is not str or type(sources) is not list:
        raise ValueError("what it says of a table is not what entries say")
    return TableFacts(name, person, tuple(map(Identity.from_dict, sources)))


def _facts(tree: dict[str, Any], totals: Totals) -> Dataset:
    facts = tree["facts"]
    if len(facts) != 5:
        raise ValueError("what it says of the dataset is not what entries say")
    if facts["protect"] not in ("row", "person"):
        raise ValueError("what is protected is neither a row nor a person")
    adjacency, failures = Adjacency(facts["adjacency"]), (_whole(facts["closes_after"]), _whole(facts["closes_for"]))
    return Dataset(tree["dataset"], facts["protect"], adjacency, totals.budget, facts["accountant"], *failures)


# --- numbers: the same few stand in many entries, so each is read once --------------------------


_BUDGETS: dict[str, Budget] = {}
_MOST = 4096


def budget_text(budget: Budget) -> str:
    """A budget, exactly."""
    epsilon = f"{budget.epsilon.numerator}/{budget.epsilon.denominator}"
    return epsilon if isinstance(budget, PureDP) else f"{epsilon} {budget.delta.numerator}/{budget.delta.denominator}"


def _read_budget(text: str) -> Budget:
    found = _BUDGETS.get(text)
    if found is not None:
        return found
    epsilon, *delta = text.split(" ")
    if delta:
        found = ApproxDP(_exact(epsilon), _exact(delta[0]))
    else:
        found = PureDP(_exact(epsilon)) if epsilon != "0/1" else PureDP.ZERO
    if len(_BUDGETS) < _MOST:
        _BUDGETS[text] = found
    return found


def _exact(text: str) -> Exact:
    numerator, _, denominator = text.partition("/")
    return Exact(int(numerator), int(denominator))


def _maybe(text: str | None) -> Budget | None:
    return None if text is None else _read_budget(text)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number")
    return value
