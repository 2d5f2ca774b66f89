"""What a ledger fixes about a dataset for ever, and what it keeps of each table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from privet.privacy.accounting import Accountant, accountant_for, accountant_named
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import Budget
from privet.system.identity import Identity

CLOSES_AFTER = 10
"""After so many failures of the engine a dataset is closed, until the steward reopens it."""
CLOSES_FOR = 3
"""After so many failures of one analyst's questions it is closed to that analyst."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """All tables about the same people: one budget. What is protected, adjacency and accountant are fixed for ever."""

    name: str
    protect: Literal["row", "person"]
    adjacency: Adjacency
    budget: Budget
    accountant: str = ""
    """The accountant's name; by default the first that keeps a budget of this kind."""
    closes_after: int = CLOSES_AFTER
    """So many failures close it."""
    closes_for: int = CLOSES_FOR
    """So many failures of one analyst's questions close it to that analyst."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "accountant", accountant_for(self.budget, self.accountant).name)

    @property
    def accounting(self) -> Accountant[Any]:
        """The accountant itself."""
        return accountant_named(self.accountant)

    def check_budget(self, budget: Budget) -> None:
        """Refuse a budget or cap of a kind that the accountant does not keep."""
        accountant_for(budget, self.accountant)


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a ledger keeps of a table: the column that identifies the person of each row, and where the rows are."""

    table: str
    person: str = ""
    """The column; empty where each row is protected."""
    sources: tuple[Identity, ...] = ()
