"""What a ledger fixes permanently about a dataset, and what it records about each table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from privet.privacy.accounting import Accountant, accountant_for
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import Budget
from privet.system.identity import Identity

CLOSES_AFTER = 10
"""The number of engine failures after which a dataset is closed until the steward reopens it."""
CLOSES_FOR = 3
"""The number of failures of one analyst's questions after which the dataset is closed to that analyst."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """All tables about the same people, with one budget. Privacy unit, adjacency and accountant never change."""

    name: str
    protect: Literal["row", "person"]
    adjacency: Adjacency
    budget: Budget
    accountant: str = ""
    """The accountant's name; the default is the first registered accountant for this kind of budget."""
    closes_after: int = CLOSES_AFTER
    """The number of failures that closes the dataset."""
    closes_for: int = CLOSES_FOR
    """The number of failures of one analyst's questions that closes the dataset to that analyst."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "accountant", accountant_for(self.budget, self.accountant).name)

    def new_accountant(self) -> Accountant[Any]:
        """The accountant with settings for this budget, if the dataset is new; a ledger keeps what it stored."""
        return accountant_for(self.budget, self.accountant)

    def check_budget(self, budget: Budget) -> None:
        """Refuse a budget or cap of a kind that the accountant does not support."""
        accountant_for(budget, self.accountant)


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a ledger records about a table: the column that identifies people, and where the rows are stored."""

    table: str
    person: str = ""
    """The column that identifies people; empty if each row is protected by itself."""
    sources: tuple[Identity, ...] = ()
