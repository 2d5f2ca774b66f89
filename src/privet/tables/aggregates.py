"""What can be asked of each group, as values: they say what is wanted, not how it is measured.

`pv.count()`, `pv.mean("income")` and the like make them; `/` between counts and sums makes a ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from privet.errors import NoBounds, QueryError, write
from privet.exact import Number
from privet.tables.expressions import Bin, Node, Types, sized
from privet.tables.language import Expr, bins, column, show
from privet.tables.notation import in_python, in_sql
from privet.tables.rules import as_number
from privet.tables.types import NumberType

MOST_BINS = 100
"""How many bins a histogram may have."""


_RATIO = write('pv.sum("pay") / pv.sum("hours")', sql="SUM(pay) / SUM(hours)")


class _Amount:
    """A count or a sum: drawn as a bar from zero, and one can be divided by another."""

    __slots__ = ()
    is_amount: ClassVar[bool] = True

    def __truediv__(self, other: Any) -> Ratio:
        if isinstance(self, Count | CountPeople | Sum) and isinstance(other, Count | CountPeople | Sum):
            return Ratio(self, other)
        raise QueryError(
            f"a ratio is a count or a sum divided by another, not by {other!r}",
            remedy=_RATIO,
        )


@dataclass(frozen=True, slots=True)
class Count(_Amount):
    """The number of rows, or of rows where an expression is not missing."""

    of: Node | None = None

    def __post_init__(self) -> None:
        if self.of is not None:
            sized(self.of)

    def __str__(self) -> str:
        return f"count({'' if self.of is None else show(self.of)})"


@dataclass(frozen=True, slots=True)
class CountPeople(_Amount):
    """The number of different persons."""

    def __str__(self) -> str:
        return "count_people()"


@dataclass(frozen=True, slots=True)
class OfValues:
    """A statistic of the values of an expression that are not missing, each clamped to public bounds."""

    of: Node
    is_amount: ClassVar[bool] = False
    needs: ClassVar[Literal["sum", "count and sum", "squares"]] = "count and sum"
    """What the planner must measure for it: the sum alone, the count with it, or both with the sum of squares."""

    def __post_init__(self) -> None:
        sized(self.of)

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()}({show(self.of)})"


class Sum(OfValues, _Amount):
    """The sum of what is not missing."""

    __slots__ = ()
    is_amount = True
    needs = "sum"


class Mean(OfValues):
    """The mean of what is not missing."""

    __slots__ = ()


class Variance(OfValues):
    """The variance of what is not missing (of the population: divided by n)."""

    __slots__ = ()
    needs = "squares"


class Std(OfValues):
    """The standard deviation of what is not missing (of the population: divided by n)."""

    __slots__ = ()
    needs = "squares"


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many rows lie in each of some ranges: one column of the answer for each."""

    of: Bin
    is_amount: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.of, Bin):
            raise QueryError("a histogram is made of bins", remedy=write('pv.histogram("age", [0, 18, 65, 110])'))
        sized(self.of)
        if len(self.of.edges) > MOST_BINS + 1:
            raise QueryError(
                f"a histogram has at most {MOST_BINS} bins, each a column",
                remedy=write(
                    'group_by(pv.bins("age", list(range(0, 111)))).agg(n=pv.count())',
                    sql="GROUP BY FLOOR(age / 10) * 10",
                    advice="For more bins make groups of them",
                ),
            )

    def __str__(self) -> str:
        return f"histogram({show(self.of.of)}, {len(self.of.edges) - 1} bins)"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A count or a sum divided by another."""

    numerator: Count | CountPeople | Sum
    denominator: Count | CountPeople | Sum
    is_amount: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not all(isinstance(part, Count | CountPeople | Sum) for part in (self.numerator, self.denominator)):
            raise QueryError("a ratio is a count or a sum divided by another", remedy=_RATIO)

    def __str__(self) -> str:
        return f"{self.numerator} / {self.denominator}"


Aggregate = Count | CountPeople | Sum | Mean | Variance | Std | Histogram | Ratio
"""Every kind of aggregate there is."""

KINDS: dict[str, type] = {
    "count": Count, "count people": CountPeople, "sum": Sum, "mean": Mean, "variance": Variance, "std": Std,
    "histogram": Histogram, "ratio": Ratio,
}  # fmt: skip
"""The same by their names in JSON."""


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
    return Histogram(bins(of, edges).node)  # type: ignore[arg-type]


def summed(of: Node, types: Types, what: object) -> NumberType:
    """The type of what is summed; refused if nobody chose its bounds."""
    number = as_number(of.type(types), str(what))
    if number.wide:
        raise NoBounds(
            f"{what}: one person could move this without limit, so no noise is enough",
            remedy=write(f"{in_python(of)}.clip(0, 1000)", sql=f"CLIP({in_sql(of)}, 0, 1000)", advice="Choose bounds"),
        )
    return number


def checked(aggregate: Aggregate, types: Types) -> None:
    """Refuse what is not an aggregate, or not one of these columns."""
    match aggregate:
        case Count(of):
            if of is not None:
                of.type(types)
        case CountPeople():
            pass
        case OfValues(of):
            summed(of, types, aggregate)
        case Histogram(of):
            of.type(types)
        case Ratio(numerator, denominator):
            checked(numerator, types)
            checked(denominator, types)
        case _:
            raise QueryError(
                f"{aggregate!r} is not a supported aggregate",
                remedy=write('n=pv.count(), pay=pv.mean("income")', sql="COUNT(*) AS n, AVG(income) AS pay"),
            )
