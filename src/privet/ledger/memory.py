"""A ledger in memory: it forgets when the process ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from privet.errors import BudgetError, DatasetClosed, InternalError, UserError
from privet.events import PrivacyEvent
from privet.exact import literal
from privet.guarantees import ApproxDP, PureDP
from privet.ledger.entries import Balance, Budget, Charge, Dataset, Entry, Outcome, same_dataset

CLOSES_AFTER = 3
"""So many failures of the engine close a dataset, until the steward opens it again."""


@dataclass(slots=True)
class _Book:
    """The state of one dataset."""

    dataset: Dataset
    spent: Budget
    entries: list[Entry] = field(default_factory=list)
    failures: int = 0


class MemoryLedger:
    """Debits in memory, safe under threads.

    Example:
        >>> from privet.distances import Adjacency
        >>> from privet.events import Laplace
        >>> ledger = MemoryLedger()
        >>> ledger.create(Dataset("people", "row", Adjacency.ADD_REMOVE, PureDP(1)))
        >>> half = Laplace(sensitivity=1, scale=2)
        >>> charge = ledger.reserve(dataset="people", analyst="me", request_id="1", events=[half])
        >>> ledger.settle(charge, "answered")
        >>> ledger.balance("people").remaining
        PureDP(0.5)
    """

    def __init__(self) -> None:
        self._books: dict[str, _Book] = {}
        self._lock = threading.Lock()

    def create(self, dataset: Dataset) -> None:
        """Make the dataset known; refused if it is known with other facts."""
        with self._lock:
            if dataset.name in self._books:
                same_dataset(self._books[dataset.name].dataset, dataset)
                return
            nothing = PureDP.ZERO if isinstance(dataset.budget, PureDP) else ApproxDP(0, 0)
            self._books[dataset.name] = _Book(dataset, nothing)

    def reserve(self, *, dataset: str, analyst: str, request_id: str, events: Sequence[PrivacyEvent]) -> Charge:
        """Debit all events or none."""
        with self._lock:
            book = self._book(dataset)
            if book.failures >= CLOSES_AFTER:
                raise DatasetClosed(
                    f"{CLOSES_AFTER} questions failed, so the dataset is closed. Nothing was spent. "
                    'The steward can open it again. Write: session.reopen("what was done about it")'
                )
            if any(entry.request_id == request_id for entry in book.entries):
                raise UserError(f"the request id {request_id!r} was used before. Leave it out, or take a new one")
            cost = book.dataset.price(events)
            balance = Balance(book.dataset.budget, book.spent)
            if not balance.covers(cost):
                raise over_budget(balance, cost)
            number = len(book.entries) + 1
            book.spent = _sum(book.spent, cost)
            book.entries.append(Entry(number, dataset, analyst, request_id, tuple(events), "reserved"))
            return Charge(number, dataset, cost)

    def settle(self, charge: Charge, outcome: Outcome, answer: str = "") -> None:
        """Say how a reserved question ended; once."""
        with self._lock:
            book = self._book(charge.dataset)
            if not 1 <= charge.number <= len(book.entries) or outcome not in ("answered", "failed"):
                raise InternalError(f"there is no entry {charge.number} to settle as {outcome}")
            entry = book.entries[charge.number - 1]
            if entry.state != "reserved":
                raise InternalError(f"entry {entry.number} is settled already: {entry.state}")
            book.entries[charge.number - 1] = replace(entry, state=outcome, answer=answer)
            book.failures += outcome == "failed"

    def reopen(self, dataset: str, reason: str) -> None:
        """Open a dataset again that was closed after failures."""
        if not str(reason or "").strip():
            raise UserError('a reason must be given. Write, for example: reopen("more memory for the engine")')
        with self._lock:
            book = self._book(dataset)
            book.failures = 0
            number = len(book.entries) + 1
            book.entries.append(Entry(number, dataset, "steward", f"reopened-{number}", (), "reopened", reason))

    def balance(self, dataset: str) -> Balance:
        """What was granted and what is spent."""
        with self._lock:
            book = self._book(dataset)
            return Balance(book.dataset.budget, book.spent)

    def history(self, dataset: str) -> tuple[Entry, ...]:
        """Every entry, oldest first."""
        with self._lock:
            return tuple(self._book(dataset).entries)

    def _book(self, dataset: str) -> _Book:
        if dataset not in self._books:
            raise UserError(f"there is no dataset {dataset!r}. There are: {', '.join(self._books) or 'none'}")
        return self._books[dataset]


def _sum(spent: Budget, cost: Budget) -> Budget:
    both = spent.compose(cost)
    assert isinstance(both, PureDP | ApproxDP)
    return both


def over_budget(balance: Balance, cost: Budget) -> BudgetError:
    """What is left, and what would fit."""
    left = balance.remaining
    if isinstance(cost, ApproxDP) and isinstance(left, ApproxDP) and cost.delta > left.delta:
        return BudgetError(f"this costs {cost}, and {balance.left} is left. Nothing was spent.")
    fits = f"Write, for example: epsilon={literal(left.epsilon)}" if left.epsilon else "Ask the steward for more"
    return BudgetError(f"this costs {cost}, and {balance.left} is left of {balance.budget}. Nothing was spent. {fits}")
