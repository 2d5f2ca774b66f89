"""Datasets: their schemas, budgets and histories."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from privet.dataset import Dataset
from privet.exact import nearest
from privet.ledger.balance import how_often
from privet.ledger.history.entries import Entry
from privet.ledger.shown import budget_lines, entry_json, in_json
from privet.policy import description
from privet.preview import Preview
from privet.privacy.guarantees.budgets import amount
from privet.server.accounts import Identity, Role
from privet.server.call import Call, in_thread, reply
from privet.terms import Terms, balance_to_tree

_PAGE, _LONGEST_PAGE = 100, 1000
_QUESTIONS = ("reserved", "served", "capped")
"""The entries that an analyst sees; how a question ended is in the entry of its debit."""


async def datasets(call: Call) -> Response:
    """The datasets that whoever asks may ask."""
    shown = [each for name, each in call.server.datasets.items() if call.me.may_ask(name)]
    return reply({"datasets": await in_thread(lambda: [summary(call.me, each) for each in shown])})


def summary(identity: Identity, dataset: Dataset) -> dict[str, Any]:
    """A dataset in short."""
    return {
        "dataset": dataset.name,
        "version": dataset.version,
        "tables": list(dataset.tables),
        "budget": standing(Preview(dataset, identity.person.name)),
    }


def standing(view: Preview) -> dict[str, Any]:
    """What is left of a budget for one analyst."""
    remaining, latest = view.remaining, view.ledger.latest(view.name, view.analyst)
    return {
        "left": amount(remaining.guarantee),
        "share": nearest(remaining.share),
        "text": remaining.text,
        "questions": None if latest is None else how_often(remaining.times(latest)),
    }


async def dataset(call: Call) -> Response:
    """The tables and columns of a dataset."""
    opened = call.dataset
    described = await in_thread(description.dataset, call.server.policy.datasets[opened.name])
    terms = await in_thread(Terms.of, opened.name, opened.version, opened)
    return reply({**described, "terms": terms.to_tree()})


async def budget(call: Call) -> Response:
    """What whoever asks may spend; for stewards, everybody."""
    return reply(await in_thread(_budget, call.dataset, call.me))


def _budget(dataset: Dataset, identity: Identity) -> dict[str, Any]:
    view = Preview(dataset, identity.person.name)
    balance, everything = view.balance, identity.role is Role.STEWARD
    ration = balance.ration
    assert ration is not None
    granted = ration.cap or balance.budget
    totals = dataset.ledger.failures(dataset.name) if everything else None
    return {
        "dataset": dataset.name,
        "analyst": view.analyst,
        "granted": amount(granted),
        "spent": in_json(balance.accountant.spent(ration.spent, granted)),
        "per_query": amount(balance.per_query),
        "standing": standing(view),
        "balance": balance_to_tree(balance),
        "rows": _rows(dataset) if everything else None,
        "failures": None if totals is None else totals[0],
        "closed": None if totals is None else totals[1],
    }


def _rows(dataset: Dataset) -> list[dict[str, Any]]:
    return [line.to_json() for line in budget_lines(dataset.ledger, dataset.name, dataset.caps)]


async def history(call: Call) -> Response:
    """The questions of whoever asks; for stewards, every entry."""
    before = call.number("before", least=1)
    limit = call.number("limit", least=1, most=_LONGEST_PAGE) or _PAGE
    return reply(await in_thread(entries, call.dataset, call.me, before=before, limit=limit))


def entries(dataset: Dataset, identity: Identity, *, before: int | None = None, limit: int = _PAGE) -> dict[str, Any]:
    """A page of the history, newest first."""
    everything = identity.role is Role.STEWARD
    analyst = None if everything else identity.person.name
    found, following = dataset.ledger.recent(dataset.name, analyst=analyst, before=before, limit=limit)
    shown = found if everything else [entry for entry in found if entry.kind in _QUESTIONS]
    debits = {entry.number: entry.refers or entry.number for entry in shown if entry.kind in ("reserved", "served")}
    states = dataset.ledger.states(debits.values())
    trees = []
    for entry in shown:
        tree = entry_json(entry) if everything else _own(entry)
        trees.append({**tree, "state": states[debits[entry.number]] if entry.number in debits else None})
    return {"entries": trees, "next": following}


def _own(entry: Entry) -> dict[str, Any]:
    """An entry for the analyst whom it names: the total is their own."""
    accountant, ration = entry.totals.accountant, entry.ration
    assert ration is not None
    return {**entry_json(entry), "spent": in_json(accountant.spent(ration.spent, ration.cap or entry.totals.budget))}
