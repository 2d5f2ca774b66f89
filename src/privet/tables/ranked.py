"""Aggregates by rank: quantiles, and the smallest and the largest value of a group, as values.

`pv.median("income")`, `pv.quantile("income", 0.9)`, `pv.quantiles("income", [0.1, 0.9])`, `pv.min("age")` and
`pv.max("age")` create them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privet.errors import QueryError, write
from privet.exact import Exact, Number, exact
from privet.exact import show as show_number
from privet.tables.expressions.fluent import Expr, column
from privet.tables.expressions.nodes import Node
from privet.tables.expressions.rendering import show
from privet.tables.expressions.trees import sized

MOST_QUANTILES = 199
"""Maximum quantiles in one aggregate: each is a column."""

FINEST = 10**6
"""The largest common denominator of quantiles: distances are counted in parts of a row, in 64 bits."""

_ONE = write('pv.quantile("income", 0.9)', sql="QUANTILE_CONT(income, 0.9)")
_SEVERAL = write('pv.quantiles("income", [0.1, 0.5, 0.9])')


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of the values that are not missing; several are columns of their own."""

    expression: Node
    ranks: tuple[Exact, ...]
    """Ascending, each greater than 0 and less than 1."""
    interval: bool = True
    """Whether part of the price buys an interval."""
    is_amount: ClassVar[bool] = False

    def __post_init__(self) -> None:
        sized(self.expression)
        _flag(self.interval)
        line = _SEVERAL if len(self.ranks) > 1 else _ONE
        if not 1 <= len(self.ranks) <= MOST_QUANTILES:
            raise QueryError(f"there must be 1 to {MOST_QUANTILES} quantiles, not {len(self.ranks)}", remedy=_SEVERAL)
        if not all(0 < rank < 1 for rank in self.ranks):
            raise QueryError(
                "a quantile must be greater than 0 and less than 1",
                allowed="For the ends there are min and max",
                remedy=line,
            )
        if any(one >= other for one, other in zip(self.ranks, self.ranks[1:], strict=False)):
            raise QueryError("quantiles must be in ascending order, each once", remedy=_SEVERAL)
        if math.lcm(*(rank.denominator for rank in self.ranks)) > FINEST:
            raise QueryError(f"quantiles must be multiples of one fraction, 1/{FINEST:,} or coarser", remedy=line)

    def labels(self) -> tuple[str, ...]:
        """What tells the columns apart: the quantiles."""
        return tuple(show_number(rank) for rank in self.ranks)

    def __str__(self) -> str:
        of = show(self.expression)
        if self.ranks == (Exact(1, 2),):
            return f"median({of})"
        return f"quantile{'s' * (len(self.ranks) > 1)}({of}, {', '.join(self.labels())})"


@dataclass(frozen=True, slots=True)
class Extreme:
    """The smallest or the largest value that is not missing, some ranks inside; per person, exactly."""

    expression: Node
    largest: bool
    interval: bool = True
    is_amount: ClassVar[bool] = False

    def __post_init__(self) -> None:
        sized(self.expression)
        _flag(self.interval)
        _flag(self.largest)

    def __str__(self) -> str:
        return f"{'max' if self.largest else 'min'}({show(self.expression)})"


Ranked = Quantiles | Extreme
"""Every aggregate by rank."""


def _flag(given: object) -> None:
    if not isinstance(given, bool):
        raise QueryError(
            f"interval must be True or False, not {given!r}", remedy=write('pv.median("x", interval=False)')
        )


def median(of: str | Expr, *, interval: bool = True) -> Quantiles:
    """The median. Without `interval` all of the price buys the median itself.

    Example:
        >>> print(median("income"))
        median(income)
    """
    return Quantiles(column(of), (Exact(1, 2),), interval)


def quantile(of: str | Expr, q: Number, *, interval: bool = True) -> Quantiles:
    """The value that a share q of the rows is below.

    Example:
        >>> print(quantile("income", 0.9))
        quantile(income, 0.9)
    """
    return Quantiles(column(of), (exact(q, name="q", example=_ONE),), interval)


def quantiles(of: str | Expr, q: Sequence[Number], *, interval: bool = True) -> Quantiles:
    """Several quantiles, each a column of the answer.

    Example:
        >>> print(quantiles("income", [0.1, 0.5, 0.9]))
        quantiles(income, 0.1, 0.5, 0.9)
    """
    if isinstance(q, str) or not hasattr(q, "__iter__"):
        raise QueryError("quantiles needs a list of numbers", remedy=_SEVERAL)
    return Quantiles(column(of), tuple(exact(one, name="q", example=_SEVERAL) for one in q), interval)
