"""What can be asked of each group, as values: they say what is wanted, not how it is measured.

`pv.count()`, `pv.mean("income")` and the like make them; `/` between counts and sums makes a ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privet.errors import QueryError
from privet.exact import Number
from privet.relation.expressions import Bin, Node, Types, sized
from privet.relation.language import Expr, bins, column, show
from privet.relation.rules import as_number
from privet.relation.types import NumberType

MOST_BINS = 100
"""How many bins a histogram may have."""


class _Divisible:
    """A count or a sum: one can be divided by another."""

    __slots__ = ()

    def __truediv__(self, other: Any) -> Ratio:
        if isinstance(self, Count | CountPeople | Sum) and isinstance(other, Count | CountPeople | Sum):
            return Ratio(self, other)
        raise QueryError(
            f"a ratio is a count or a sum divided by another, not by {other!r}. "
            'Write, for example: pv.sum("pay") / pv.sum("hours")'
        )


@dataclass(frozen=True, slots=True)
class Count(_Divisible):
    """The number of rows, or of rows where an expression is not missing."""

    of: Node | None = None

    def __str__(self) -> str:
        return f"count({'' if self.of is None else show(self.of)})"


@dataclass(frozen=True, slots=True)
class CountPeople(_Divisible):
    """The number of different persons."""

    def __str__(self) -> str:
        return "count_people()"


@dataclass(frozen=True, slots=True)
class Sum(_Divisible):
    """The sum of what is not missing."""

    of: Node

    def __str__(self) -> str:
        return f"sum({show(self.of)})"


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of what is not missing."""

    of: Node

    def __str__(self) -> str:
        return f"mean({show(self.of)})"


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of what is not missing (of the population: divided by n)."""

    of: Node

    def __str__(self) -> str:
        return f"variance({show(self.of)})"


@dataclass(frozen=True, slots=True)
class Std:
    """The standard deviation of what is not missing (of the population: divided by n)."""

    of: Node

    def __str__(self) -> str:
        return f"std({show(self.of)})"


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many rows lie in each of some ranges: one column of the answer for each."""

    of: Bin

    def __str__(self) -> str:
        return f"histogram({show(self.of.of)}, {len(self.of.edges) - 1} bins)"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A count or a sum divided by another."""

    numerator: Count | CountPeople | Sum
    denominator: Count | CountPeople | Sum

    def __str__(self) -> str:
        return f"{self.numerator} / {self.denominator}"


Aggregate = Count | CountPeople | Sum | Mean | Variance | Std | Histogram | Ratio
"""Every kind of aggregate there is."""


def parts(aggregate: Aggregate) -> tuple[Aggregate, ...]:
    """What is measured for an aggregate: both sides of a ratio, or the aggregate itself."""
    return (aggregate.numerator, aggregate.denominator) if isinstance(aggregate, Ratio) else (aggregate,)


def count(of: str | Expr | None = None) -> Count:
    """The number of rows; with a column, of rows where it is not missing.

    Example:
        >>> print(count(), count("income"))
        count() count(income)
    """
    return Count(None if of is None else column(of))


def count_people() -> CountPeople:
    """The number of different persons in each group.

    Example:
        >>> print(count_people())
        count_people()
    """
    return CountPeople()


def sum(of: str | Expr) -> Sum:  # noqa: A001
    """The sum of a column or an expression.

    Example:
        >>> print(sum("income") / count())
        sum(income) / count()
    """
    return Sum(column(of))


def mean(of: str | Expr) -> Mean:
    """The mean of a column or an expression; of a condition, the share of rows where it is true.

    Example:
        >>> print(mean("income"))
        mean(income)
    """
    return Mean(column(of))


def variance(of: str | Expr) -> Variance:
    """The variance, divided by n.

    Example:
        >>> print(variance("income"))
        variance(income)
    """
    return Variance(column(of))


def std(of: str | Expr) -> Std:
    """The standard deviation, divided by n.

    Example:
        >>> print(std("income"))
        std(income)
    """
    return Std(column(of))


def histogram(of: str | Expr, edges: Sequence[Number]) -> Histogram:
    """How many rows lie between these edges: each range without its end, the last with it.

    Example:
        >>> print(histogram("age", [0, 18, 65, 110]))
        histogram(age, 3 bins)
    """
    made = bins(of, edges).node
    assert isinstance(made, Bin)
    if len(made.edges) > MOST_BINS + 1:
        raise QueryError(
            f"a histogram has at most {MOST_BINS} bins, each a column. For more make groups of them. "
            'Write, for example: group_by(pv.bins("age", list(range(0, 111)))).agg(n=pv.count())'
        )
    return Histogram(made)


def summed(of: Node, types: Types, what: object) -> NumberType:
    """The type of what is summed; refused if nobody chose its bounds."""
    number = as_number(of.type(types), str(what))
    if number.wide:
        raise QueryError(
            f"{what}: one person could move this without limit, so no noise is enough. Choose bounds. "
            f'Write, for example: pv.col("{show(of)}").clip(0, 1000)'
        )
    return number


def checked(aggregate: Aggregate, types: Types) -> None:
    """Refuse what is not an aggregate, or not one of these columns."""
    match aggregate:
        case Count(of):
            if of is not None:
                sized(of).type(types)
        case CountPeople():
            pass
        case Sum(of) | Mean(of) | Variance(of) | Std(of):
            summed(sized(of), types, aggregate)
        case Histogram(of):
            sized(of).type(types)
        case Ratio(numerator, denominator):
            checked(numerator, types)
            checked(denominator, types)
        case _:
            raise QueryError(
                f'{aggregate!r} is not a supported aggregate. Write, for example: n=pv.count(), pay=pv.mean("income")'
            )
