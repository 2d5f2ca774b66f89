"""Entries: the lines of a ledger, with what holds after each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from privet.ledger.facts import Dataset, TableFacts
from privet.privacy.accounting import Accountant
from privet.privacy.events import PrivacyEvent
from privet.privacy.guarantees import Budget

Outcome = Literal["answered", "failed", "interrupted"]
"""How a question ended. One that was interrupted stays paid, and is not a failure of the engine."""
Kind = Literal[
    "created",
    "attached",
    "allowed",
    "protected",
    "capped",
    "declared",
    "reserved",
    "served",
    "answered",
    "failed",
    "interrupted",
    "reopened",
]


class Totals(NamedTuple):
    """What holds for a dataset after an entry."""

    accountant: Accountant[Any]
    budget: Budget
    spent: Any
    """The accountant's total."""
    failures: int = 0
    """Since the dataset was opened last."""
    per_query: Budget | None = None


class Ration(NamedTuple):
    """What holds for one analyst after an entry."""

    spent: Any
    """The accountant's total."""
    cap: Budget | None = None
    failures: int = 0
    """Of this analyst's questions, since the dataset was opened last."""


class Entry(NamedTuple):
    """One line of the ledger; it is never changed."""

    number: int
    dataset: str
    kind: Kind
    time: str
    """For people to read: nothing depends on it."""
    totals: Totals
    analyst: str = ""
    ration: Ration | None = None
    request_id: str = ""
    asked: str = ""
    """The digest of all that was asked."""
    question: str = ""
    """The digest of what was asked but for its price: for finding answers that are stored already."""
    statement: str = ""
    """What was asked, for people to read: SQL as it was written, or else the question in one line."""
    version: str = ""
    events: tuple[PrivacyEvent, ...] = ()
    cost: Any = None
    """The accountant's price of the events; None where nothing is paid."""
    refers: int | None = None
    """The reservation that was settled, or the one whose answer was served."""
    answer: str = ""
    """The SHA-256 of the answer."""
    note: str = ""
    facts: Dataset | None = None
    salt: str = ""
    """Drawn once for the dataset, in hexadecimal digits."""
    table: TableFacts | None = None
    to: str = ""
    """The dataset that may use a source, too."""
    hash: str = ""
    """Over this entry and, through the hash before it, all earlier ones."""

    @property
    def price(self) -> Budget | None:
        """The guarantee of what was paid for; None where nothing is paid."""
        return None if self.cost is None else self.totals.accountant.guarantee(self.cost)

    @property
    def spent(self) -> Budget:
        """The guarantee of everything up to this entry."""
        return self.totals.accountant.guarantee(self.totals.spent)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Charge:
    """A debit that was made, or the one that an earlier request made for the same."""

    number: int
    dataset: str
    cost: Budget
    state: Literal["reserved", "running", "answered", "failed", "interrupted"] = "reserved"
    """Reserved: ours to answer. The others belong to an earlier request."""
    answer: str | None = field(default=None, repr=False)
    """The stored answer, if there is one."""
    request_id: str = ""
    hash: str = ""
    """Of the reservation's entry."""
