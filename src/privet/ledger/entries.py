"""The words of a ledger: datasets, charges, entries, totals, balances; and what every ledger can do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_DOWN
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from privet.accounting import ACCOUNTANTS, Accountant
from privet.distances import Adjacency
from privet.errors import UserError
from privet.events import Composed, PrivacyEvent
from privet.exact import Exact, show
from privet.guarantees import ApproxDP, Guarantee, PureDP
from privet.identity import Identity

Budget = PureDP | ApproxDP
"""What may be spent."""

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
CLOSES_AFTER = 10
"""So many failures of the engine close a dataset, until the steward opens it again."""
CLOSES_FOR = 3
"""So many failures of one analyst's questions close it to that analyst."""


def nothing(budget: Budget) -> Budget:
    """Nothing spent yet, of a budget of this kind."""
    return PureDP.ZERO if isinstance(budget, PureDP) else ApproxDP(0, 0)


@dataclass(frozen=True, slots=True)
class Dataset:
    """All tables about the same people: one budget. What is protected, adjacency and accountant are fixed for ever."""

    name: str
    protect: Literal["row", "person"]
    adjacency: Adjacency
    budget: Budget
    accountant: str = ""
    """The accountant's name; by default the one of the budget's kind."""
    closes_after: int = CLOSES_AFTER
    """So many failures close it."""
    closes_for: int = CLOSES_FOR
    """So many of one analyst's close it to that analyst."""

    def __post_init__(self) -> None:
        if not self.accountant:
            object.__setattr__(self, "accountant", "pure" if isinstance(self.budget, PureDP) else "approx")
        self.check_kind(self.budget)

    def check_kind(self, budget: Budget) -> None:
        """Refuse a budget that the accountant has no price in."""
        if self.accountant not in ACCOUNTANTS:
            raise UserError(f"there is no accountant {self.accountant!r}. There are: {', '.join(ACCOUNTANTS)}")
        kind = PureDP if self.accountant == "pure" else ApproxDP
        if not isinstance(budget, kind):
            raise UserError(f"the {self.accountant} accountant needs {kind.__name__}(...) as a budget, not {budget!r}")

    def price(self, events: Iterable[PrivacyEvent]) -> Budget:
        """What all of these cost together."""
        priced = ACCOUNTANTS[self.accountant].account(Composed(events))
        assert isinstance(priced, PureDP | ApproxDP)
        return priced


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a ledger keeps of a table: the column that says whose a row is, and where its rows are."""

    table: str
    person: str = ""
    """The column; empty where each row is protected."""
    sources: tuple[Identity, ...] = ()


class Totals(NamedTuple):
    """What holds for a dataset after an entry."""

    budget: Budget
    spent: Budget
    failures: int = 0
    """Since it was opened last."""
    per_query: Budget | None = None


class Ration(NamedTuple):
    """What holds for one analyst after an entry."""

    spent: Budget
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
    """The digest of what was asked but for its price: for finding answers that are there already."""
    statement: str = ""
    """What was asked, for people to read: SQL as it was written, or else the question in one line."""
    version: str = ""
    events: tuple[PrivacyEvent, ...] = ()
    cost: Budget | None = None
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


_RECEIPT = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a ledger's chain ended. Kept elsewhere, it shows when an older copy was put back.

    Example:
        >>> str(Receipt(12, "ab" * 32))[:20], Receipt.read("12:" + "ab" * 32).number
        ('12:ababababababababa', 12)
    """

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @classmethod
    def read(cls, text: str) -> Receipt:
        """A receipt from its text."""
        found = _RECEIPT.fullmatch(str(text).strip())
        if found is None:
            raise UserError(f"this is not a receipt: {str(text)[:60]!r}. `privet ledger head` prints one")
        return cls(int(found[1]), found[2])


@dataclass(frozen=True, slots=True)
class Verified:
    """A ledger that holds: where its chain ends, and how many entries each dataset has."""

    head: Receipt
    entries: dict[str, int]


@dataclass(frozen=True, slots=True)
class Balance:
    """What was granted and what is spent; for an analyst with a cap, by both measures."""

    budget: Budget
    spent: Budget
    ration: Ration | None = None
    per_query: Budget | None = None

    @property
    def remaining(self) -> Budget:
        """What is left: of the dataset's budget, or of the analyst's cap if that is less.

        Example:
            >>> Balance(PureDP(3), PureDP(0.5)).remaining
            PureDP(2.5)
            >>> Balance(PureDP(3), PureDP(0.5), Ration(PureDP(0.25), PureDP(1))).remaining
            PureDP(0.75)
        """
        left = _left(self.budget, self.spent)
        if self.ration is None or self.ration.cap is None:
            return left
        mine = _left(self.ration.cap, self.ration.spent)
        if isinstance(left, PureDP) or isinstance(mine, PureDP):
            return min(left, mine, key=lambda budget: budget.epsilon)
        return ApproxDP.capped(min(left.epsilon, mine.epsilon), min(left.delta, mine.delta))

    def limits(self, analyst: str = "this analyst") -> list[Limit]:
        """Every cap that a question must keep to."""
        found = [Limit(str(self.budget), self.budget, self.spent)]
        if self.ration is not None and self.ration.cap is not None:
            cap = self.ration.cap
            found.append(Limit(f"{cap} for {analyst!r}", cap, self.ration.spent))
        if self.per_query is not None:
            found.append(Limit(f"{self.per_query} for one question", self.per_query, nothing(self.per_query)))
        return found

    @property
    def left(self) -> str:
        """What is left, in words, rounded down.

        Example:
            >>> Balance(PureDP(1), PureDP("1e-9")).left
            'epsilon 0.999999'
        """
        return words(self.remaining)

    def covers(self, cost: Budget) -> bool:
        """Whether a further cost is within all caps; exactly, never in floats."""
        mine = self.ration
        return (
            _within(self.spent, cost, self.budget)
            and (mine is None or mine.cap is None or _within(mine.spent, cost, mine.cap))
            and (self.per_query is None or _within(nothing(self.per_query), cost, self.per_query))
        )


class Caps(NamedTuple):
    """What a policy allows. Of a policy's cap and the ledger's the smaller holds, so that neither can raise the other.

    Example:
        >>> Caps(budget=PureDP(2), analyst=PureDP(1)).lower(Balance(PureDP(3), PureDP(0.5))).remaining
        PureDP(1.5)
    """

    budget: Budget | None = None
    analyst: Budget | None = None
    """For the analyst who asks."""
    per_query: Budget | None = None

    def lower(self, balance: Balance) -> Balance:
        """A ledger's balance under these caps too."""
        ration = balance.ration
        return Balance(
            smaller(balance.budget, self.budget) or balance.budget,
            balance.spent,
            None if ration is None else ration._replace(cap=smaller(ration.cap, self.analyst)),
            smaller(balance.per_query, self.per_query),
        )


def smaller(a: Budget | None, b: Budget | None) -> Budget | None:
    """The smaller of two caps, in epsilon and in delta; None is no cap."""
    if a is None or b is None:
        return a if b is None else b
    if isinstance(a, PureDP) and isinstance(b, PureDP):
        return min(a, b, key=lambda cap: cap.epsilon)
    a, b = a.to_approx(), b.to_approx()
    return ApproxDP(min(a.epsilon, b.epsilon), min(a.delta, b.delta))


@dataclass(frozen=True, slots=True)
class Limit:
    """One cap: of the dataset, of an analyst, or of one question."""

    what: str
    cap: Budget
    spent: Budget

    @property
    def left(self) -> Budget:
        """What is left of it."""
        return _left(self.cap, self.spent)

    def covers(self, cost: Budget) -> bool:
        """Whether a further cost is within it; exactly, never in floats."""
        return _within(self.spent, cost, self.cap)


def fits(spent: Budget, cap: Budget) -> bool:
    """Whether what is spent is within a cap, in epsilon and in delta."""
    if isinstance(spent, PureDP):
        return spent.epsilon <= cap.epsilon
    return spent.epsilon <= cap.epsilon and spent.delta <= (0 if isinstance(cap, PureDP) else cap.delta)


def _within(spent: Budget, cost: Budget, cap: Budget) -> bool:
    both = spent.compose(cost)
    assert isinstance(both, PureDP | ApproxDP)
    return fits(both, cap)


def _left(budget: Budget, spent: Budget) -> Budget:
    epsilon = max(budget.epsilon - spent.epsilon, Exact(0))
    if isinstance(budget, PureDP):
        return PureDP(epsilon) if epsilon else PureDP.ZERO
    assert isinstance(spent, ApproxDP)
    return ApproxDP.capped(epsilon, max(budget.delta - spent.delta, Exact(0)))


def words(budget: Budget) -> str:
    """A budget for people to read, rounded down."""
    text = f"epsilon {show(budget.epsilon, rounding=ROUND_DOWN)}"
    return text if isinstance(budget, PureDP) else f"{text}, delta {show(budget.delta, rounding=ROUND_DOWN)}"


NO_CAPS = Caps()
"""Those of the ledger alone."""


def reason_given(reason: object, what: str) -> str:
    """The reason for an act of the steward, or a refusal."""
    if isinstance(reason, str) and reason.strip() and reason.isprintable() and len(reason) <= 1000:
        return reason.strip()
    raise UserError(
        "a reason must be given, in up to 1,000 printable characters. "
        f'Write, for example: {what}(..., reason="more memory for the engine")'
    )


class Ledger(Protocol):
    """What every ledger can do.

    Claim: `reserve` reads, prices, compares with every cap and appends as one step, durable before it returns: debits
    that together cost too much can't both pass. What is reserved is spent, whatever happens after.
    """

    @property
    def created(self) -> bool:
        """Whether there was no ledger, and one was made."""

    def create(self, dataset: Dataset, *, tables: Sequence[TableFacts] = (), same_budget: bool = True) -> bytes:
        """Make the dataset and its tables known, or check that they are what they were; gives the dataset's salt."""

    def reserve(
        self,
        *,
        dataset: str,
        analyst: str,
        request_id: str | None,
        events: Sequence[PrivacyEvent],
        asked: str = "",
        question: str = "",
        statement: str = "",
        version: str = "1",
        fresh: bool = False,
        share: bool = True,
        caps: Caps = NO_CAPS,
    ) -> Charge:
        """Debit all events or none; or find the debit, and the answer, that an earlier request made for the same."""

    def stored(
        self,
        *,
        dataset: str,
        analyst: str,
        events: Sequence[PrivacyEvent],
        question: str,
        version: str = "1",
        share: bool = True,
    ) -> Charge | None:
        """The answer that `reserve` would return without a debit, if there is one; nothing is written."""

    def wait(self, charge: Charge, *, seconds: float = ...) -> Charge:
        """How a running request ended: answered, failed or interrupted; `LedgerBusy` if it takes longer than this."""

    def settle(self, charge: Charge, outcome: Outcome, answer: str = "") -> None:
        """Say how a reserved question ended, and keep its answer; once."""

    def abandon(self, charge: Charge, outcome: Outcome) -> None:
        """Settle a question without an answer as soon as the ledger can be written: nobody was shown one."""

    def cap(
        self, dataset: str, cap: Budget | None, *, reason: str, analyst: str | None = None, query: bool = False
    ) -> None:
        """Set the dataset's budget, an analyst's cap, or the cap of each question: an act of the steward."""

    def declare(self, dataset: str, version: str, reason: str = "") -> None:
        """Name a version of the data, once. It does not renew the budget."""

    def reopen(self, dataset: str, reason: str) -> None:
        """Open a dataset again that was closed after failures: an act of the steward."""

    def protect(self, dataset: str, table: str, person: str, *, reason: str) -> None:
        """Say anew which column of a table tells whose a row is: an act of the steward."""

    def allow_source(self, to: str, source: Identity | str | Path, *, reason: str) -> None:
        """Let a dataset use a source that another dataset was opened with: an act of the steward."""

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets."""

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """What was granted and what is spent; of an analyst's cap too, if one is named."""

    def analysts(self, dataset: str) -> dict[str, Ration]:
        """What each analyst has spent, and may."""

    def history(self, dataset: str) -> tuple[Entry, ...]:
        """Every entry, oldest first."""

    def reservation(self, dataset: str, number: int) -> tuple[Entry, Entry | None]:
        """A reservation, and how it ended, if it did."""

    def head(self) -> Receipt:
        """Where the chain ends now."""

    def verify(self, expect: Receipt | str | None = None, *, answers: bool = True) -> Verified:
        """Check the whole chain, and that a receipt's entry is in it; `LedgerError` names the first bad entry."""

    def replay(self, dataset: str, accountant: Accountant) -> Guarantee:
        """What the whole history would have cost under another accountant."""

    def export(self, dataset: str | None = None) -> Iterator[str]:
        """The chain as lines of JSON, without the answers; `verify_export` checks them.

        For one dataset, entries of the others are there by their dataset's name and their hash only.
        """

    def close(self) -> None:
        """Let go of the storage."""
