"""Aggregates of a group, as values: they say what to compute, not how to measure it.

`pv.count()`, `pv.mean("income")` and so on create them; `/` between counts and sums creates a ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

from privet.errors import NoBounds, QueryError, write
from privet.exact import Exact, Number
from privet.exact import show as show_number
from privet.tables.bounds import powers
from privet.tables.expressions.fluent import Expr, bins, column, node
from privet.tables.expressions.nodes import Bin, Case, Clip, Column, Constant, Node, Types
from privet.tables.expressions.rendering import in_python, in_sql, show
from privet.tables.expressions.trees import sized
from privet.tables.expressions.typing_rules import as_number
from privet.tables.ranked import Extreme, Quantiles
from privet.tables.types import BooleanType, NumberType

MOST_BINS = 100
"""Maximum bins in a histogram."""


_T = TypeVar("_T", bound="Count | CountDistinct | OfValues")
_RATIO = write('pv.sum("pay") / pv.sum("hours")', sql="SUM(pay) / SUM(hours)")


class _Amount:
    """A count or a sum: drawn as a bar from zero, and one can be divided by another."""

    __slots__ = ()
    is_amount: ClassVar[bool] = True

    def __truediv__(self, other: Any) -> Ratio:
        if isinstance(self, Count | CountPeople | Sum) and isinstance(other, Count | CountPeople | Sum):
            return Ratio(self, other)
        if isinstance(self, CountDistinct) or isinstance(other, CountDistinct):
            raise QueryError(
                "a number of different values can't be part of a ratio that is measured as one",
                remedy=write(
                    '.agg(n=pv.count(), towns=pv.count_distinct("town")).compute(each=pv.col("n") / pv.col("towns"))',
                    sql="COUNT(*) / COUNT(DISTINCT town)",
                    advice="Measure both, and divide the answers",
                ),
            )
        raise QueryError(
            f"a count or a sum can be divided only by another count or sum, not by {other!r}",
            remedy=_RATIO,
        )


@dataclass(frozen=True, slots=True)
class Count(_Amount):
    """The number of rows, or of rows where an expression is not missing."""

    expression: Node | None = None

    def __post_init__(self) -> None:
        if self.expression is not None:
            sized(self.expression)

    def __str__(self) -> str:
        match self.expression:
            case None:
                return "count()"
            case Case(((condition, Constant(Exact(numerator=1, denominator=1))),), None):
                return f"count(where {show(condition)})"
        return f"count({show(self.expression)})"


@dataclass(frozen=True, slots=True)
class CountPeople(_Amount):
    """The number of distinct people."""

    def __str__(self) -> str:
        return "count_people()"


@dataclass(frozen=True, slots=True)
class CountDistinct(_Amount):
    """The number of different values of an expression that are not missing."""

    expression: Node

    def __post_init__(self) -> None:
        sized(self.expression)

    def __str__(self) -> str:
        return f"count_distinct({show(self.expression)})"


@dataclass(frozen=True, slots=True)
class OfValues:
    """A statistic of the values of an expression that are not missing, each clamped to public bounds."""

    expression: Node
    is_amount: ClassVar[bool] = False
    needs: ClassVar[Literal["sum", "count and sum", "squares"]] = "count and sum"
    """What the planner must measure for it: the sum alone, the count with it, or both with the sum of squares."""

    def __post_init__(self) -> None:
        sized(self.expression)

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()}({show(self.expression)})"


class Sum(OfValues, _Amount):
    """The sum of the values that are not missing."""

    __slots__ = ()
    is_amount = True
    needs = "sum"


class Mean(OfValues):
    """The mean of the values that are not missing."""

    __slots__ = ()


class Variance(OfValues):
    """The population variance (divided by n) of the values that are not missing."""

    __slots__ = ()
    needs = "squares"


class Std(OfValues):
    """The population standard deviation (divided by n) of the values that are not missing."""

    __slots__ = ()
    needs = "squares"


@dataclass(frozen=True, slots=True)
class Histogram:
    """The number of rows in each bin; each bin is a column of the answer."""

    expression: Bin
    is_amount: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.expression, Bin):
            raise QueryError("a histogram needs bins", remedy=write('pv.histogram("age", [0, 18, 65, 110])'))
        sized(self.expression)
        if len(self.expression.edges) > MOST_BINS + 1:
            raise QueryError(
                f"a histogram can have at most {MOST_BINS} bins, because each is a column",
                remedy=write(
                    'group_by(pv.bins("age", list(range(0, 111)))).agg(n=pv.count())',
                    sql="GROUP BY FLOOR(age / 10) * 10",
                    advice="For more bins, group by them",
                ),
            )

    def __str__(self) -> str:
        return f"histogram({show(self.expression.operand)}, {len(self.expression.edges) - 1} bins)"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A count or a sum divided by another."""

    numerator: Count | CountPeople | Sum
    denominator: Count | CountPeople | Sum
    is_amount: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not all(isinstance(part, Count | CountPeople | Sum) for part in (self.numerator, self.denominator)):
            raise QueryError("a ratio must be a count or a sum divided by another", remedy=_RATIO)

    def __str__(self) -> str:
        return f"{self.numerator} / {self.denominator}"


@dataclass(frozen=True, slots=True)
class ApproxBounds:
    """A range between powers of two that has nearly all values in it: bounds to clip to. Three columns of the answer.

    It needs no bounds of its own: it is found by counting rows in public bins.
    """

    expression: Node
    is_amount: ClassVar[bool] = False
    columns: ClassVar[tuple[Literal["lower", "upper", "inside"], ...]] = ("lower", "upper", "inside")
    """The ends of the range, and the share of the values that are in it."""

    def __post_init__(self) -> None:
        sized(self.expression)

    def bins(self, types: Types) -> Bin:
        """The bins in which rows are counted."""
        if isinstance(self.expression.type(types), BooleanType):
            raise QueryError(
                f"{show(self.expression)} is true or false, so its bounds are 0 and 1, and there is nothing to find",
                remedy=write('pv.mean("smoker")', sql="AVG(smoker)", advice="Ask for the share of true rows"),
            )
        return Bin(self.expression, powers(as_number(self.expression.type(types), str(self))))

    def __str__(self) -> str:
        return f"approx_bounds({show(self.expression)})"


Aggregate = (
    Count | CountPeople | CountDistinct | Sum | Mean | Variance | Std | Histogram | Ratio | Quantiles | Extreme
    | ApproxBounds
)  # fmt: skip
"""Every kind of aggregate."""

KINDS: dict[str, type] = {
    "count": Count, "count people": CountPeople, "sum": Sum, "mean": Mean, "variance": Variance, "std": Std,
    "histogram": Histogram, "ratio": Ratio, "quantiles": Quantiles, "extreme": Extreme,
    "count distinct": CountDistinct, "approx bounds": ApproxBounds,
}  # fmt: skip
"""The same by their names in JSON."""


def columns(aggregate: Aggregate, types: Types) -> tuple[str, ...]:
    """What its columns are called after its name, if it has several: one for each bin or quantile."""
    match aggregate:
        case Histogram(bins):
            return tuple(map(str, bins.type(types).keys()))
        case ApproxBounds():
            return aggregate.columns
        case Quantiles(ranks=ranks) if len(ranks) > 1:
            return aggregate.labels()
    return ()


def parts(aggregate: Aggregate) -> tuple[Aggregate, ...]:
    """The aggregates to measure: both sides of a ratio, or the aggregate itself."""
    return (aggregate.numerator, aggregate.denominator) if isinstance(aggregate, Ratio) else (aggregate,)


def filtered(aggregate: Count | CountDistinct | OfValues, condition: Node) -> Count | CountDistinct | OfValues:
    """The same aggregate of the rows for which a condition is true; elsewhere its value is missing.

    Example:
        >>> print(filtered(Sum(Column("pay")), Column("smoker")))
        sum(pay where smoker)
    """
    value = Constant(Exact(1)) if aggregate.expression is None else aggregate.expression
    return replace(aggregate, expression=Case(((condition, value),), None))


def _where(aggregate: _T, where: Expr | None) -> _T:
    return aggregate if where is None else filtered(aggregate, node(where))  # type: ignore[return-value]


def count(of: str | Expr | None = None, *, where: Expr | None = None) -> Count:
    """The number of rows; with a column, the number of rows where it is not missing.

    `where` counts only the rows for which a condition is true. Other aggregates take it too.

    Example:
        >>> print(count(), count("income"), count(where=Expr(Column("smoker"))))
        count() count(income) count(where smoker)
    """
    return _where(Count(None if of is None else column(of)), where)


def count_people() -> CountPeople:
    """The number of distinct people in each group.

    Example:
        >>> print(count_people())
        count_people()
    """
    return CountPeople()


def count_distinct(of: str | Expr, *, where: Expr | None = None) -> CountDistinct:
    """The number of different values of a column or an expression; missing values are not counted.

    Example:
        >>> print(count_distinct("town"))
        count_distinct(town)
    """
    return _where(CountDistinct(column(of)), where)


def sum(of: str | Expr, *, where: Expr | None = None) -> Sum:  # noqa: A001
    """The sum of a column or an expression.

    Example:
        >>> print(sum("income") / count())
        sum(income) / count()
    """
    return _where(Sum(column(of)), where)


def mean(of: str | Expr, *, where: Expr | None = None) -> Mean:
    """The mean of a column or an expression; for a condition, the share of rows where it is true.

    Example:
        >>> print(mean("income"))
        mean(income)
    """
    return _where(Mean(column(of)), where)


def variance(of: str | Expr, *, where: Expr | None = None) -> Variance:
    """The population variance (divided by n).

    Example:
        >>> print(variance("income"))
        variance(income)
    """
    return _where(Variance(column(of)), where)


def std(of: str | Expr, *, where: Expr | None = None) -> Std:
    """The population standard deviation (divided by n).

    Example:
        >>> print(std("income"))
        std(income)
    """
    return _where(Std(column(of)), where)


def histogram(of: str | Expr, edges: Sequence[Number]) -> Histogram:
    """The number of rows in each bin between these edges; a bin excludes its upper edge, except the last.

    Example:
        >>> print(histogram("age", [0, 18, 65, 110]))
        histogram(age, 3 bins)
    """
    return Histogram(bins(of, edges).node)  # type: ignore[arg-type]


def approx_bounds(of: str | Expr) -> ApproxBounds:
    """Bounds to clip a column or an expression to: powers of two, found privately.

    `session.release_bounds` asks for them and says what they mean.

    Example:
        >>> print(approx_bounds("income"))
        approx_bounds(income)
    """
    return ApproxBounds(column(of))


Known = Callable[[str], tuple[Exact, Exact, int] | None]
"""The bounds of a column if a person has no more rows than the declared cap, and that cap; None if there are none."""


def summed(node: Node, types: Types, what: object, known: Known = lambda name: None) -> NumberType:
    """The type of a summed expression; refused if it has no bounds. The error suggests those that are `known`."""
    number = as_number(node.type(types), str(what))
    if number.wide:
        ends = known(node.name) if isinstance(node, Column) else None
        lower, upper = (Exact(0), Exact(1000)) if ends is None else ends[:2]
        clipped, advice = Clip(node, lower, upper), "Choose bounds, or pay for them first"
        if ends is not None:
            reach = f"{show_number(lower)} to {show_number(upper)}"
            advice += f". With the declared {ends[2]} row{'s' * (ends[2] != 1)}, a person reaches {reach}"
        raise NoBounds(
            f"{what}: one person could change this without limit, so no amount of noise is enough",
            remedy=write(
                f"{in_python(clipped)}, or session.release_bounds(rows, {in_python(node)}, epsilon=0.1)",
                sql=f"{in_sql(clipped)}, or first SELECT APPROX_BOUNDS({in_sql(node)})",
                advice=advice,
                exact=ends is not None,
            ),
        )
    return number


def checked(aggregate: Aggregate, types: Types, known: Known = lambda name: None) -> None:
    """Refuse anything that is not an aggregate of these columns."""
    match aggregate:
        case Count(of):
            if of is not None:
                of.type(types)
        case CountPeople():
            pass
        case CountDistinct(of):
            of.type(types)
        case OfValues(of) | Quantiles(of) | Extreme(of):
            summed(of, types, aggregate, known)
        case Histogram(of):
            of.type(types)
        case ApproxBounds():
            aggregate.bins(types).type(types)
        case Ratio(numerator, denominator):
            checked(numerator, types, known)
            checked(denominator, types, known)
        case _:
            raise QueryError(
                f"{aggregate!r} is not a supported aggregate",
                remedy=write('n=pv.count(), pay=pv.mean("income")', sql="COUNT(*) AS n, AVG(income) AS pay"),
            )
