"""Entries as text, and the chain of hashes over them.

Claim: hash(n) = SHA-256 of three lines: hash(n - 1), the dataset's name, SHA-256(text(n)); and an entry has one text.
The chain runs over all datasets of a ledger: whoever knows the last hash knows that no earlier entry of any of them was
changed, removed, added or moved. In an export of one dataset, entries of other datasets are replaced by the dataset's
name and the hash of the text; entries of the exported dataset cannot be hidden in this way.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast, get_args

from privet.codec import canonical
from privet.errors import LedgerError, UserError
from privet.ledger.history.datasets import Dataset, TableFacts
from privet.ledger.history.entries import Entry, Kind, Outcome, Ration, Totals
from privet.privacy import events
from privet.privacy.accounting import Accountant, registry
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import Budget, budgets
from privet.system.identity import Identity

GENESIS = "0" * 64
_KINDS = get_args(Kind)
_OF_QUESTIONS = ("reserved", "served", *get_args(Outcome))
"""The frequent kinds. Apart from texts, such an entry contains only what the ledger computed."""
_TEXTS = ("analyst", "request_id", "asked", "question", "statement", "version", "answer", "note", "by", "salt", "to")
_STRINGS = frozenset([*_TEXTS, "time", "dataset"])
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


def link(previous: str, dataset: str, text_digest: str) -> str:
    """The hash of an entry, from the previous hash and the digest of the entry's text."""
    return hashlib.sha256(f"{previous}\n{dataset}\n{text_digest}".encode()).hexdigest()


def digest(text: str) -> str:
    """The hash of the text of an entry, an answer or a question."""
    return hashlib.sha256(text.encode()).hexdigest()


_DECODER = json.JSONDecoder()


def write(entry: Entry) -> str:
    """The text of an entry, without its hash; empty fields are omitted."""
    tree: dict[str, Any] = {name: text for name in _TEXTS if (text := getattr(entry, name))}
    tree |= {"number": entry.number, "dataset": entry.dataset, "kind": entry.kind, "time": entry.time}
    tree["totals"] = totals_tree(entry.totals)
    if entry.ration is not None:
        tree["ration"] = ration_tree(entry.totals.accountant, entry.ration)
    if entry.kind == "reserved":
        tree["events"] = [events.to_tree(event) for event in entry.events]
    if entry.cost is not None:
        tree["cost"] = entry.totals.accountant.to_json(entry.cost)
    if entry.refers is not None:
        tree["refers"] = entry.refers
    if entry.facts is not None:
        facts = entry.facts
        tree["facts"] = {
            "protect": facts.protect,
            "adjacency": str(facts.adjacency),
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


def write_checked(entry: Entry) -> str:
    """The text of a new entry; refused if it could not be read again, because that would make the ledger unusable."""
    try:
        text = write(entry)
        tree(text)
        if entry.kind not in _OF_QUESTIONS and _read(text, "") != entry:
            raise ValueError("it would be read as something else")
    except _MALFORMED as error:
        raise UserError(f"this can't be recorded in the ledger: {str(error)[:200]}. Nothing was written") from None
    return text


def totals_tree(totals: Totals) -> dict[str, Any]:
    """The JSON of totals. It names the accountant, so that every entry can be read by itself."""
    tree: dict[str, Any] = {
        "accountant": registry.to_tree(totals.accountant),
        "budget": budgets.to_tree(totals.budget),
        "spent": totals.accountant.to_json(totals.spent),
        "failures": totals.failures,
    }
    return tree if totals.per_query is None else {**tree, "per_query": budgets.to_tree(totals.per_query)}


def ration_tree(accountant: Accountant[Any], ration: Ration) -> dict[str, Any]:
    """The JSON of a ration."""
    tree: dict[str, Any] = {"spent": accountant.to_json(ration.spent), "failures": ration.failures}
    return tree if ration.cap is None else {**tree, "cap": budgets.to_tree(ration.cap)}


def tree(text: str, *, strict: bool = True) -> dict[str, Any]:
    """The fields of an entry; a `ValueError` if they are not valid or, with `strict`, not canonical JSON."""
    fields, end = _DECODER.raw_decode(text)
    if (
        end != len(text)
        or not isinstance(fields, dict)
        or not fields.keys() <= _FIELDS
        or fields.get("kind") not in _KINDS
    ):
        raise ValueError("its fields are not those of an entry")
    if strict:
        if not all(type(value) is str for name, value in fields.items() if name in _STRINGS):
            raise ValueError("a field that should be text is not")
        numbers = [fields["number"], fields.get("refers", 1), fields["totals"]["failures"]]
        numbers.append(fields["ration"]["failures"] if "ration" in fields else 0)
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError("a field that should be a whole number is not")
        if canonical(fields) != text:
            raise ValueError("it is not canonical JSON")
    return fields


def read(text: str, hash_: str = "") -> Entry:
    """Parse an entry; a `LedgerError` if that is not possible."""
    try:
        return _read(text, hash_)
    except _MALFORMED as error:
        raise LedgerError(f"an entry of the ledger is malformed ({str(error)[:200]}): it was tampered with") from None


def _read(text: str, hash_: str) -> Entry:
    fields = tree(text, strict=False)
    totals, ration, table = _totals(fields["totals"]), fields.get("ration"), fields.get("table")
    return Entry(
        number=_whole(fields["number"]),
        dataset=fields["dataset"],
        kind=cast(Kind, fields["kind"]),
        time=fields["time"],
        totals=totals,
        analyst=fields.get("analyst", ""),
        ration=None if ration is None else _ration(totals.accountant, ration),
        request_id=fields.get("request_id", ""),
        asked=fields.get("asked", ""),
        question=fields.get("question", ""),
        statement=fields.get("statement", ""),
        version=fields.get("version", ""),
        events=tuple(map(events.from_tree, fields.get("events", ()))),
        cost=None if "cost" not in fields else totals.accountant.from_json(fields["cost"]),
        refers=None if "refers" not in fields else _whole(fields["refers"]),
        answer=fields.get("answer", ""),
        note=fields.get("note", ""),
        by=fields.get("by", ""),
        facts=_facts(fields, totals) if "facts" in fields else None,
        salt=fields.get("salt", ""),
        table=None if table is None else read_table(table),
        to=fields.get("to", ""),
        hash=hash_,
    )


_MALFORMED = LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError


def _totals(tree: dict[str, Any]) -> Totals:
    accountant = registry.from_tree(tree["accountant"])
    budget, spent = budgets.from_tree(tree["budget"]), accountant.from_json(tree["spent"])
    return Totals(accountant, budget, spent, _whole(tree["failures"]), _cap(tree.get("per_query")))


def _ration(accountant: Accountant[Any], tree: dict[str, Any]) -> Ration:
    return Ration(accountant.from_json(tree["spent"]), _cap(tree.get("cap")), _whole(tree["failures"]))


def _cap(tree: Any) -> Budget | None:
    return None if tree is None else budgets.from_tree(tree)


def read_table(tree: dict[str, Any]) -> TableFacts:
    """Parse what an entry records about a table."""
    name, person, sources = tree["name"], tree["person"], tree["sources"]
    if len(tree) != 3 or type(name) is not str or type(person) is not str or type(sources) is not list:
        raise ValueError("its fields about the table are not valid")
    return TableFacts(name, person, tuple(map(Identity.from_dict, sources)))


def _facts(tree: dict[str, Any], totals: Totals) -> Dataset:
    facts = tree["facts"]
    if len(facts) != 4:
        raise ValueError("its fields about the dataset are not valid")
    if facts["protect"] not in ("row", "person"):
        raise ValueError("its privacy unit is neither a row nor a person")
    adjacency, failures = Adjacency(facts["adjacency"]), (_whole(facts["closes_after"]), _whole(facts["closes_for"]))
    return Dataset(tree["dataset"], facts["protect"], adjacency, totals.budget, totals.accountant.name, *failures)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number")
    return value
