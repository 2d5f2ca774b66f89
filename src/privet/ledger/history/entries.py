"""Entries: the lines of a ledger, each with the totals after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from privet.ledger.history.datasets import Dataset, TableFacts
from privet.privacy.accounting import Accountant, guarantee_of
from privet.privacy.events import PrivacyEvent
from privet.privacy.guarantees import Budget, Guarantee

Outcome = Literal["answered", "failed", "interrupted"]
"""How a question ended. An interrupted question stays paid, and does not count as a failure of the engine."""
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
    "administered",
]


class Totals(NamedTuple):
    """The state of a dataset's account after an entry."""

    accountant: Accountant[Any]
    budget: Budget
    spent: Any
    """The accountant's total."""
    failures: int = 0
    """Failures since the dataset was last reopened."""
    per_query: Budget | None = None


class Ration(NamedTuple):
    """The state of one analyst's account after an entry."""

    spent: Any
    """The accountant's total."""
    cap: Budget | None = None
    failures: int = 0
    """Failures of this analyst's questions since the dataset was last reopened."""


class Entry(NamedTuple):
    """One line of the ledger; it is never changed."""

    number: int
    dataset: str
    kind: Kind
    time: str
    """For human readers; nothing depends on it."""
    totals: Totals
    analyst: str = ""
    ration: Ration | None = None
    request_id: str = ""
    asked: str = ""
    """The digest of the whole request, including its price."""
    question: str = ""
    """The digest of the request without its price; used to find stored answers."""
    statement: str = ""
    """The question for human readers: the SQL as written, or else a one-line description."""
    version: str = ""
    events: tuple[PrivacyEvent, ...] = ()
    cost: Any = None
    """The accountant's price of the events; None for entries without a debit."""
    refers: int | None = None
    """The number of the reservation that this entry settles, or whose answer it serves."""
    answer: str = ""
    """The SHA-256 of the answer."""
    note: str = ""
    by: str = ""
    """The steward who did this; empty for what analysts or programs did."""
    facts: Dataset | None = None
    salt: str = ""
    """Drawn once per dataset, as hexadecimal digits."""
    table: TableFacts | None = None
    to: str = ""
    """The other dataset that may use a source."""
    hash: str = ""
    """Covers this entry and, through the previous hash, all earlier entries."""

    @property
    def price(self) -> Guarantee | None:
        """The guarantee that was paid for; None for entries without a debit."""
        return None if self.cost is None else guarantee_of(self.events)

    @property
    def spent(self) -> Any:
        """The guarantee of everything up to this entry, of the budget's kind; under meters, the share that it used."""
        return self.totals.accountant.spent(self.totals.spent, self.totals.budget)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Charge:
    """A new debit, or the debit of an earlier request for the same question."""

    number: int
    dataset: str
    cost: Guarantee
    state: Literal["reserved", "running", "answered", "failed", "interrupted"] = "reserved"
    """`reserved` is a new debit, to be answered by the caller; the other states belong to an earlier request."""
    answer: str | None = field(default=None, repr=False)
    """The stored answer, if there is one."""
    request_id: str = ""
    hash: str = ""
    """The hash of the reservation's entry."""
