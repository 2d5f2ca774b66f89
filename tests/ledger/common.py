"""What the tests of ledgers share: a dataset, prices, and questions with less to write."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from privet.ledger import Charge, Dataset, Ledger, TableFacts
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import LaplaceNoise, PrivacyEvent
from privet.privacy.guarantees import Budget, PureDP
from privet.privacy.moves import L1Move
from privet.system.identity import Identity

PEOPLE = Dataset("people", "row", Adjacency.ADD_REMOVE, PureDP(1))
PATIENTS = Dataset("patients", "person", Adjacency.ADD_REMOVE, PureDP(1))


def cost(epsilon: Any) -> LaplaceNoise:
    """An event of this price."""
    return LaplaceNoise(move=L1Move(1), scale=1 / Fraction(epsilon))


def opened(ledger: Ledger, budget: Budget = PEOPLE.budget, accountant: str = "") -> Ledger:
    """The ledger, with the dataset in it."""
    ledger.create(replace(PEOPLE, budget=budget, accountant=accountant))
    return ledger


def pay(ledger: Ledger, request: str | None, *events: PrivacyEvent, analyst: str = "ann", **how: Any) -> Charge:
    """Debit the dataset."""
    return ledger.reserve(dataset="people", analyst=analyst, request_id=request, events=events, **how)


def ask(ledger: Ledger, request: str | None, answer: str, epsilon: Any = "1/100", **how: Any) -> Charge:
    """Debit the dataset, and answer unless that was done before."""
    charge = pay(ledger, request, cost(epsilon), **how)
    if charge.state == "reserved":
        ledger.settle(charge, "answered", answer)
    return charge


def kinds(ledger: Ledger, dataset: str = "people") -> list[str]:
    """The kind of every entry."""
    return [entry.kind for entry in ledger.history(dataset)]


def furnish(ledger: Ledger, dataset: str = "people") -> None:
    """Twelve entries: two answers' worth of questions, and one that is still open. See `furnish_tables` too."""

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


def furnish_tables(ledger: Ledger, dataset: str = "patients") -> None:
    """Eight entries of a dataset of persons, with the kinds that `furnish` leaves out."""
    source = Identity(f"/nowhere/{dataset}.parquet", inode="2049:77", written=1_800_000_000)
    made = replace(PATIENTS, name=dataset)
    ledger.create(made, tables=[TableFacts("visits", "person", (source,)), TableFacts("drugs", "person")])
    ledger.protect(dataset, "visits", "patient", reason="these were the numbers of visits")
    moved = replace(source, path=f"/nowhere/else/{dataset}.parquet", given=source.path)
    ledger.create(made, tables=[TableFacts("visits", "patient", (moved,))])
    ledger.allow_source(f"{dataset} of old", source, reason="other people")
    charge = ledger.reserve(dataset=dataset, analyst="cleo", request_id="t1", events=[cost("1/8")])
    ledger.settle(charge, "interrupted")
    assert kinds(ledger, dataset) == TABLE_KINDS


TABLE_KINDS = [
    "created",
    "attached",
    "attached",
    "protected",
    "attached",
    "allowed",
    "reserved",
    "interrupted",
]
