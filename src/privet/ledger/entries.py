"""The words of a ledger: datasets, charges, outcomes, entries, balances; and what every ledger can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN
from typing import Literal, Protocol

from privet.accounting import Accountant, ApproxAccountant, PureAccountant
from privet.distances import Adjacency
from privet.errors import UserError
from privet.events import Composed, PrivacyEvent
from privet.exact import Exact, show
from privet.guarantees import ApproxDP, PureDP

Budget = PureDP | ApproxDP
"""What may be spent."""

Outcome = Literal["answered", "failed"]


@dataclass(frozen=True, slots=True)
class Dataset:
    """All tables about the same people: one budget. What is protected, and how neighbours differ, is fixed."""

    name: str
    protect: Literal["row", "person"]
    adjacency: Adjacency
    budget: Budget

    def accountant(self) -> Accountant:
        """Who prices its events: pure for a pure budget, else approximate."""
        return PureAccountant() if isinstance(self.budget, PureDP) else ApproxAccountant()

    def price(self, events: Sequence[PrivacyEvent]) -> Budget:
        """What all of these cost together."""
        priced = self.accountant().account(Composed(events))
        assert isinstance(priced, PureDP | ApproxDP)
        return priced


@dataclass(frozen=True, slots=True)
class Charge:
    """A debit that was made: the entry's number and what it cost."""

    number: int
    dataset: str
    cost: Budget


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger."""

    number: int
    dataset: str
    analyst: str
    request_id: str
    events: tuple[PrivacyEvent, ...]
    state: Literal["reserved", "answered", "failed", "reopened"]
    note: str = ""
    answer: str = ""
    """The digest of the certificate."""


@dataclass(frozen=True, slots=True)
class Balance:
    """What was granted and what is spent."""

    budget: Budget
    spent: Budget

    @property
    def remaining(self) -> Budget:
        """What is left.

        Example:
            >>> Balance(PureDP(3), PureDP(0.5)).remaining
            PureDP(2.5)
        """
        epsilon = max(self.budget.epsilon - self.spent.epsilon, Exact(0))
        if isinstance(self.budget, PureDP):
            return PureDP(epsilon) if epsilon else PureDP.ZERO
        assert isinstance(self.spent, ApproxDP)
        return ApproxDP.capped(epsilon, max(self.budget.delta - self.spent.delta, Exact(0)))

    @property
    def left(self) -> str:
        """What is left, in words, rounded down.

        Example:
            >>> Balance(PureDP(1), PureDP("1e-9")).left
            'epsilon 0.999999'
        """
        left = self.remaining
        text = f"epsilon {show(left.epsilon, rounding=ROUND_DOWN)}"
        return text if isinstance(left, PureDP) else f"{text}, delta {show(left.delta, rounding=ROUND_DOWN)}"

    def covers(self, cost: Budget) -> bool:
        """Whether a further cost is within the budget; exactly, never in floats."""
        after = self.spent.compose(cost)
        if isinstance(self.budget, PureDP):
            return isinstance(after, PureDP) and after.epsilon <= self.budget.epsilon
        approx = after.to_approx()
        return approx.epsilon <= self.budget.epsilon and approx.delta <= self.budget.delta


class Ledger(Protocol):
    """What every ledger can do.

    Claim: `reserve` reads, prices, compares and appends as one step: two that together cost too much can't both pass.
    What is reserved is spent, whatever happens after; there are no refunds.
    """

    def create(self, dataset: Dataset) -> None:
        """Make the dataset known; refused if it is known with other facts."""

    def reserve(self, *, dataset: str, analyst: str, request_id: str, events: Sequence[PrivacyEvent]) -> Charge:
        """Debit all events or none; `BudgetError` if they cost more than is left."""

    def settle(self, charge: Charge, outcome: Outcome, answer: str = "") -> None:
        """Say how a reserved question ended; once."""

    def reopen(self, dataset: str, reason: str) -> None:
        """Open a dataset again that was closed after failures: an act of the steward, and an entry."""

    def balance(self, dataset: str) -> Balance:
        """What was granted and what is spent."""

    def history(self, dataset: str) -> tuple[Entry, ...]:
        """Every entry, oldest first."""


def same_dataset(known: Dataset, given: Dataset) -> None:
    """Refuse facts that differ from the ones a dataset was made with."""
    for what in ("protect", "adjacency", "budget"):
        was, is_now = getattr(known, what), getattr(given, what)
        if was != is_now:
            raise UserError(
                f"the dataset {known.name!r} was made with {what} {was}, and is opened with {is_now}. "
                "These facts are fixed for its whole life. Open it as it was made"
            )
