"""What the tests of ledgers share: a dataset, prices, and questions with less to write."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from privet.distances import Adjacency
from privet.events import Laplace, PrivacyEvent
from privet.guarantees import PureDP
from privet.ledger import Budget, Charge, Dataset, DurableLedger

PEOPLE = Dataset("people", "row", Adjacency.ADD_REMOVE, PureDP(1))


def cost(epsilon: Any) -> Laplace:
    """An event of this price."""
    return Laplace(sensitivity=1, scale=1 / Fraction(epsilon))


def opened(ledger: DurableLedger, budget: Budget = PEOPLE.budget) -> DurableLedger:
    """The ledger, with the dataset in it."""
    ledger.create(replace(PEOPLE, budget=budget, accountant=""))
    return ledger


def pay(ledger: DurableLedger, request: str | None, *events: PrivacyEvent, analyst: str = "ann", **how: Any) -> Charge:
    """Debit the dataset."""
    return ledger.reserve(dataset="people", analyst=analyst, request_id=request, events=events, **how)


def ask(ledger: DurableLedger, request: str | None, answer: str, epsilon: Any = "1/100", **how: Any) -> Charge:
    """Debit the dataset, and answer unless that was done before."""
    charge = pay(ledger, request, cost(epsilon), **how)
    if charge.state == "reserved":
        ledger.settle(charge, "answered", answer)
    return charge


def kinds(ledger: DurableLedger, dataset: str = "people") -> list[str]:
    """The kind of every entry."""
    return [entry.kind for entry in ledger.history(dataset)]


def furnish(ledger: DurableLedger, dataset: str = "people") -> None:
    """An entry of every kind, twelve in all: two answers' worth of questions, and one that is still open."""

    def reserve(request: str, analyst: str, epsilon: str, **how: Any) -> Charge:
        return ledger.reserve(dataset=dataset, analyst=analyst, request_id=request, events=[cost(epsilon)], **how)

    ledger.create(replace(PEOPLE, name=dataset))
    ledger.declare(dataset, "1")
    ledger.cap(dataset, PureDP("1/2"), reason="a guest", analyst="ann")
    ledger.cap(dataset, PureDP("2/5"), reason="small steps", query=True)
    ledger.settle(reserve("r1", "ann", "1/4", asked="a", question="q"), "answered", f"the answer of {dataset}")
    assert reserve("r2", "bob", "1/4", asked="a", question="q").answer == f"the answer of {dataset}"
    ledger.settle(reserve("r3", "bob", "1/5"), "failed")
    ledger.reopen(dataset, "more memory")
    reserve("r4", "ann", "1/10")
    ledger.cap(dataset, PureDP(2), reason="new consent")
    assert kinds(ledger, dataset) == KINDS


KINDS = [
    "created",
    "declared",
    "capped",
    "capped",
    "reserved",
    "answered",
    "served",
    "reserved",
    "failed",
    "reopened",
    "reserved",
    "capped",
]
