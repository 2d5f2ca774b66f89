"""Balances: the budget, what is spent and what is left, under every cap that applies to a question.

Each cap is a separate filter: the dataset's total against its budget, an analyst's total against the analyst's cap, and
one question's price against the per-query cap. Only the accountant compares: this module does not look inside prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from html import escape
from typing import Any, NamedTuple, Protocol

from privet import markup
from privet.errors import UserError, write
from privet.exact import Exact
from privet.exact import nearest as nearest_float
from privet.exact.search import last
from privet.ledger.history.entries import Ration, Totals
from privet.privacy.accounting import Accountant
from privet.privacy.events import PrivacyEvent, Repeated
from privet.privacy.guarantees import Budget, ZeroConcentratedDP, show_down, stricter

_MOST = 10**6  # questions that are counted


class Planned(Protocol):
    """A plan, which states the event of its release."""

    def event(self) -> PrivacyEvent: ...


@dataclass(frozen=True, slots=True)
class Limit:
    """One cap and the total that counts toward it: of the dataset, of an analyst, or of one question."""

    name: str
    accountant: Accountant[Any]
    cap: Budget
    total: Any
    lasting: bool = True
    """Whether questions use it up; the per-query cap is the same for every question."""

    @property
    def left(self) -> Budget:
        """The largest guarantee that one more release may use under this cap."""
        return self.accountant.left(self.total, self.cap)

    @property
    def share(self) -> Exact:
        """The fraction that is left, from 0 to 1."""
        return self.accountant.share(self.total, self.cap)

    @property
    def text(self) -> str:
        """What is left, as text, rounded down."""
        return self.accountant.show(self.total, self.cap).left

    def guess(self, price: Any) -> int:
        """About how often a price is within what is left; exactly, where prices add up."""
        used = 1 - self.accountant.share(price, self.cap)
        return int(min(self.share / used, Exact(_MOST))) if used > 0 else _MOST

    def fits(self, price: Any) -> bool:
        """Whether one more price is within the cap; computed exactly, never in floats."""
        if not self.lasting:
            return self.accountant.covers(price, self.cap)
        return self.accountant.fits(self.accountant.add(self.total, price), self.cap)


@dataclass(frozen=True, eq=False, repr=False)
class Remaining:
    """What is left under every cap. It reveals neither looser caps nor other analysts' spending.

    It is computed when it is first asked for: an answer has one, and most are not looked at.

    Example:
        >>> from privet.privacy.accounting import PureAccountant
        >>> from privet.privacy.events import LaplaceNoise
        >>> from privet.privacy.guarantees import PureDP
        >>> from privet.privacy.moves import L1Move
        >>> left = Balance(PureAccountant(), PureDP(4), PureDP(1)).remaining
        >>> left.guarantee, left.share, left.fits(LaplaceNoise(move=L1Move(1), scale=1)), str(left)
        (PureDP(3), Fraction(3, 4), True, 'epsilon 3')
    """

    _limits: tuple[Limit, ...]

    @cached_property
    def guarantee(self) -> Budget:
        """The largest guarantee that one more release may use, without regard to the per-query cap."""
        return reduce(lambda a, b: stricter(a, b) or a, [limit.left for limit in self._lasting])

    @property
    def share(self) -> Exact:
        """The fraction that is left of the tightest cap, from 0 to 1."""
        return self._nearest.share

    @cached_property
    def text(self) -> str:
        """What is left, as text, rounded down."""
        near = self._nearest
        return near.text if near.left == self.guarantee else show_down(self.guarantee)

    @property
    def _told(self) -> tuple[Budget, Exact, str]:
        return self.guarantee, self.share, self.text

    @property
    def _lasting(self) -> list[Limit]:
        return [limit for limit in self._limits if limit.lasting]

    @cached_property
    def _nearest(self) -> Limit:
        return nearest(self._lasting)

    @property
    def epsilon(self) -> Exact:
        """The epsilon of that guarantee."""
        if isinstance(self.guarantee, ZeroConcentratedDP):
            raise UserError("a budget in rho has no epsilon", remedy=write("session.remaining.guarantee.rho"))
        return self.guarantee.epsilon

    def fits(self, asked: PrivacyEvent | Planned, times: int = 1) -> bool:
        """Whether an event, or a plan's event, so many times, is within every cap."""
        event = asked if isinstance(asked, PrivacyEvent) else asked.event()
        return self._fits(self._limits[0].accountant.price(event), event, times)

    def _fits(self, one: Any, event: PrivacyEvent, times: int) -> bool:
        all_ = one if times == 1 else self._limits[0].accountant.price(Repeated(event, times))
        return all(limit.fits(all_ if limit.lasting else one) for limit in self._limits)

    def times(self, asked: PrivacyEvent | Planned) -> int:
        """How often an event, or a plan's event, is still within every cap; at most a million.

        Example:
            >>> from privet.privacy.accounting import PureAccountant
            >>> from privet.privacy.events import Stated
            >>> from privet.privacy.guarantees import PureDP
            >>> Balance(PureAccountant(), PureDP(4), PureDP(1)).remaining.times(Stated(epsilon="0.1", delta=0))
            30
        """
        event = asked if isinstance(asked, PrivacyEvent) else asked.event()
        one = self._limits[0].accountant.price(event)
        guesses = [limit.guess(one) for limit in self._limits if limit.lasting]
        return last(lambda times: self._fits(one, event, times), _MOST, guess=min(guesses))

    def __eq__(self, other: object) -> bool:
        return self._told == other._told if isinstance(other, Remaining) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._told)

    def __repr__(self) -> str:
        return "Remaining(guarantee={!r}, share={!r}, text={!r})".format(*self._told)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return markup.meter(nearest_float(self.share), f"{self.text} left")


def how_often(times: int, what: str = "question") -> str:
    """A number of questions, or of batches, in words, rounded down to two digits.

    Example:
        >>> how_often(1), how_often(30), how_often(487), how_often(10**6), how_often(2, "batch")
        ('1 question', '30 questions', 'about 480 questions', 'over a million questions', '2 batches')
    """
    many = f"{what}es" if what.endswith("h") else f"{what}s"
    if times >= _MOST:
        return f"over a million {many}"
    if times < 100:
        return f"{times} {what if times == 1 else many}"
    unit = 10 ** (len(str(times)) - 2)
    return f"about {times // unit * unit:,} {many}"


def nearest(limits: Sequence[Limit]) -> Limit:
    """The tightest limit; the first one if they can't be compared."""
    return reduce(lambda a, b: b if b.left != a.left and b.left.implies(a.left) else a, limits)


@dataclass(frozen=True, slots=True)
class Balance:
    """The budget and what is spent, for a dataset and optionally for one analyst."""

    accountant: Accountant[Any]
    budget: Budget
    total: Any
    """The accountant's total for the dataset."""
    ration: Ration | None = None
    per_query: Budget | None = None

    @property
    def spent(self) -> Any:
        """The guarantee of all debits together, of the budget's kind; under meters, the share that they used of it."""
        return self.accountant.spent(self.total, self.budget)

    @property
    def remaining(self) -> Remaining:
        """What is left of the dataset's budget, or of the analyst's cap if that is less.

        Example:
            >>> from privet.privacy.accounting import PureAccountant
            >>> from privet.privacy.guarantees import PureDP
            >>> Balance(PureAccountant(), PureDP(3), PureDP(0.5), Ration(PureDP(0.25), PureDP(1))).remaining.guarantee
            PureDP(0.75)
        """
        return Remaining(tuple(self.limits()))

    def limits(self, analyst: str = "this analyst") -> list[Limit]:
        """Every cap that applies to a question."""
        limits = [Limit(str(self.budget), self.accountant, self.budget, self.total)]
        if self.ration is not None and self.ration.cap is not None:
            cap = self.ration.cap
            limits.append(Limit(f"{cap} for {analyst!r}", self.accountant, cap, self.ration.spent))
        if self.per_query is not None:
            name = f"{self.per_query} for one question"
            limits.append(Limit(name, self.accountant, self.per_query, self.accountant.zero, lasting=False))
        return limits

    @property
    def left(self) -> str:
        """What is left, as text, rounded down."""
        return str(self.remaining)

    def __repr__(self) -> str:
        return f"<Balance: {self.left} left of {self.budget}>"

    def _repr_html_(self) -> str:
        limits = self.limits()
        rows = [(limit.name, f"{limit.text} left") for limit in limits]
        caps = markup.table(["budget", ""], rows) if len(limits) > 1 else ""
        return f"<div>{caps}{self.remaining._repr_html_()} of {escape(str(self.budget))}</div>"


class Caps(NamedTuple):
    """The caps of a policy. The smaller of a policy's cap and the ledger's applies, so neither can raise the other.

    Example:
        >>> from privet.privacy.accounting import PureAccountant
        >>> from privet.privacy.guarantees import PureDP
        >>> balance = Balance(PureAccountant(), PureDP(3), PureDP(0.5))
        >>> Caps(budget=PureDP(2), analyst=PureDP(1)).lower(balance).remaining.guarantee
        PureDP(1.5)
    """

    budget: Budget | None = None
    analyst: Budget | None = None
    """The cap of the analyst who asks."""
    per_query: Budget | None = None

    def lower(self, balance: Balance) -> Balance:
        """A ledger's balance, further limited by these caps."""
        ration = balance.ration
        return Balance(
            balance.accountant,
            stricter(balance.budget, self.budget) or balance.budget,
            balance.total,
            None if ration is None else ration._replace(cap=stricter(ration.cap, self.analyst)),
            stricter(balance.per_query, self.per_query),
        )


NO_CAPS = Caps()
"""No caps besides the ledger's own."""


def balance_of(totals: Totals, ration: Ration | None = None) -> Balance:
    """The balance of a dataset, and of an analyst, after an entry."""
    return Balance(totals.accountant, totals.budget, totals.spent, ration, totals.per_query)
