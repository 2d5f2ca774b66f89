"""How to write expressions in Python: `pv.col("age") >= 18`.

`Expr` wraps a node so that operators, including `==`, build new nodes; the nodes themselves compare by value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from privet.errors import QueryError, write
from privet.exact import Number, exact
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.rendering import show
from privet.tables.types import Unit


class Expr:
    """An expression over one row; operators and methods build further ones, and compute nothing.

    Example:
        >>> (col("age") >= 18).node == (col("age") >= 18).node
        True
    """

    __slots__ = ("node",)

    def __init__(self, node: e.Node) -> None:
        self.node = node

    def __repr__(self) -> str:
        return f"Expr({show(self.node)})"

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        raise QueryError(
            "a condition on private rows has no truth value in Python",
            remedy=write(
                '(pv.col("age") >= 18) & (pv.col("age") < 65)',
                advice="Combine conditions with &, | and ~, each in parentheses",
            ),
        )

    # --- comparison and logic -------------------------------------------------------------------

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return Expr(e.Compare("==", self.node, node(other)))

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return Expr(e.Compare("!=", self.node, node(other)))

    def __lt__(self, other: Any) -> Expr:
        return Expr(e.Compare("<", self.node, node(other)))

    def __le__(self, other: Any) -> Expr:
        return Expr(e.Compare("<=", self.node, node(other)))

    def __gt__(self, other: Any) -> Expr:
        return Expr(e.Compare(">", self.node, node(other)))

    def __ge__(self, other: Any) -> Expr:
        return Expr(e.Compare(">=", self.node, node(other)))

    def __and__(self, other: Any) -> Expr:
        return Expr(trees.joined("and", (self.node, node(other))))

    def __or__(self, other: Any) -> Expr:
        return Expr(trees.joined("or", (self.node, node(other))))

    def __rand__(self, other: Any) -> Expr:
        return Expr(trees.joined("and", (node(other), self.node)))

    def __ror__(self, other: Any) -> Expr:
        return Expr(trees.joined("or", (node(other), self.node)))

    def __invert__(self) -> Expr:
        return Expr(e.Not(self.node))

    def is_in(self, values: Iterable[Any]) -> Expr:
        """Whether the value is one of these."""
        if isinstance(values, str | Expr) or not isinstance(values, Iterable):
            raise QueryError("is_in needs a list", remedy=write('pv.col("region").is_in(["north", "south"])'))
        return Expr(e.IsIn(self.node, tuple(_constant(value) for value in values)))

    def is_between(self, lower: Any, upper: Any) -> Expr:
        """Whether the value is in lower..upper, both included."""
        return Expr(e.Logic("and", ((self >= lower).node, (self <= upper).node)))

    def is_missing(self) -> Expr:
        """Whether the value is missing: NULL, NaN, or not valid by the declaration."""
        return Expr(e.IsMissing(self.node))

    def is_null(self) -> Expr:
        """The same as `is_missing`."""
        return self.is_missing()

    def is_not_null(self) -> Expr:
        """Whether the value is not missing."""
        return ~self.is_missing()

    def starts_with(self, prefix: str) -> Expr:
        """Whether text begins with `prefix`."""
        return Expr(e.StartsWith(self.node, prefix))

    # --- numbers --------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Expr:
        return Expr(e.Arithmetic("+", self.node, node(other)))

    def __radd__(self, other: Any) -> Expr:
        return Expr(e.Arithmetic("+", node(other), self.node))

    def __sub__(self, other: Any) -> Expr:
        return Expr(e.Arithmetic("-", self.node, node(other)))

    def __rsub__(self, other: Any) -> Expr:
        return Expr(e.Arithmetic("-", node(other), self.node))

    def __mul__(self, other: Any) -> Expr:
        return Expr(e.Arithmetic("*", self.node, node(other)))

    def __rmul__(self, other: Any) -> Expr:
        return Expr(e.Arithmetic("*", node(other), self.node))

    def __truediv__(self, other: Any) -> Expr:
        return Expr(e.Arithmetic("/", self.node, node(other)))

    def __rtruediv__(self, other: Any) -> Expr:
        return Expr(e.Arithmetic("/", node(other), self.node))

    def __neg__(self) -> Expr:
        return 0 - self

    def __abs__(self) -> Expr:
        return Expr(e.Rounded("abs", self.node))

    def floor(self) -> Expr:
        """The number rounded down to an integer."""
        return Expr(e.Rounded("floor", self.node))

    def ceil(self) -> Expr:
        """The number rounded up to an integer."""
        return Expr(e.Rounded("ceil", self.node))

    def round(self, digits: int = 0) -> Expr:
        """A number of the answer, rounded to this many decimals; for `compute`."""
        return Expr(e.Rounded("round", self.node, digits))

    def clip(self, lower: Number, upper: Number) -> Expr:
        """The number clamped to your own bounds; tighter bounds need less noise."""
        line = "clip(0, 100_000)"
        low, high = exact(lower, name="lower", example=line), exact(upper, name="upper", example=line)
        return Expr(e.Clip(self.node, low, high))

    # --- dates ----------------------------------------------------------------------------------

    def part(self, part: e.Part) -> Expr:
        """The year, quarter, month, day, weekday (1 is Monday) or hour of a date."""
        return Expr(e.DatePart(self.node, part))

    def year(self) -> Expr:
        """The year of a date."""
        return self.part("year")

    def quarter(self) -> Expr:
        """The quarter of a date, 1 to 4."""
        return self.part("quarter")

    def month(self) -> Expr:
        """The month of a date, 1 to 12."""
        return self.part("month")

    def day(self) -> Expr:
        """The day of the month of a date, 1 to 31."""
        return self.part("day")

    def weekday(self) -> Expr:
        """The day of the week of a date: 1 is Monday, 7 is Sunday."""
        return self.part("weekday")

    def hour(self) -> Expr:
        """The hour of a timestamp, 0 to 23."""
        return self.part("hour")

    def truncate(self, unit: Unit) -> Expr:
        """The start of the year, quarter, month, week, day or hour that contains the date."""
        return Expr(e.Truncate(self.node, unit))


def col(name: str) -> Expr:
    """The value of a column.

    Example:
        >>> col("age") >= 18
        Expr(age >= 18)
    """
    return Expr(e.Column(name))


def lit(value: Any) -> Expr:
    """A public value as an expression.

    Example:
        >>> lit(3) / col("age")
        Expr(3 / age)
    """
    return Expr(_constant(value))


def total(column: str, *, by: str | Sequence[str] = ()) -> Expr:
    """The sum of a column of the answer over all groups, or over those with the same keys; for `compute`.

    Example:
        >>> col("n") / total("n"), col("n") / total("n", by="region")
        (Expr(n / total(n)), Expr(n / total(n, by region)))
    """
    return Expr(e.OfAnswer("total", column, (by,) if isinstance(by, str) else tuple(by)))


def interval_low(column: str) -> Expr:
    """The lower end of the interval of a column of the answer; for `compute`.

    Example:
        >>> interval_low("n")
        Expr(low(n))
    """
    return Expr(e.OfAnswer("low", column))


def interval_high(column: str) -> Expr:
    """The upper end of the interval of a column of the answer; for `compute`.

    Example:
        >>> interval_high("n")
        Expr(high(n))
    """
    return Expr(e.OfAnswer("high", column))


def grouping(*keys: str) -> Expr:
    """1 where a row of a rollup or a cube adds up this key, and 0 where it has a value of it; for `compute`.

    Several keys are read as the bits of one number, the first key as the highest: 0 on the level of all keys.

    Example:
        >>> grouping("region"), grouping("region", "town")
        (Expr(grouping(region)), Expr(grouping(region, town)))
    """
    return Expr(e.Grouping(keys))


def bins(of: str | Expr, edges: Sequence[Number]) -> Expr:
    """The bin between these edges that contains a number; a bin excludes its upper edge, except the last.

    Example:
        >>> bins("age", [0, 18, 65, 110])
        Expr(bins(age, [0, 18, 65, 110]))
    """
    if isinstance(edges, str) or not hasattr(edges, "__len__") or len(edges) < 2:
        raise QueryError("bins need at least two edges", remedy=e.BINS)
    return Expr(e.Bin(column(of), tuple(exact(x, name="edge", example="[0, 18, 65]") for x in edges)))


@dataclass(frozen=True, slots=True)
class When:
    """A case that is not finished: more conditions, or `otherwise`."""

    branches: tuple[tuple[e.Node, e.Node], ...]

    def when(self, condition: Any, value: Any) -> When:
        """One more condition, tested if none before it is true."""
        return When((*self.branches, (node(condition), node(value))))

    def otherwise(self, value: Any = None) -> Expr:
        """The value if no condition is true; None means missing."""
        return Expr(e.Case(self.branches, None if value is None else node(value)))


def when(condition: Any, value: Any) -> When:
    """The value of the first condition that is true.

    Example:
        >>> when(col("age") < 18, "child").otherwise("adult")
        Expr(case when age < 18 then 'child' else 'adult' end)
    """
    return When(()).when(condition, value)


# --- from Python values to nodes ----------------------------------------------------------------


def node(value: Any) -> e.Node:
    """The node of an expression, or of a public value."""
    return value.node if isinstance(value, Expr) else _constant(value)


def column(value: Any) -> e.Node:
    """The node of an expression, or of a column by its name."""
    if isinstance(value, str):
        return e.Column(value)
    if isinstance(value, Expr):
        return value.node
    raise QueryError(
        f"this needs the name of a column or an expression, not {value!r}", remedy=write('"income"', sql="income")
    )


def _constant(value: Any) -> e.Constant:
    match value:
        case bool() | np.bool_():
            return e.Constant(bool(value))
        case str():
            return e.Constant(value)
        case date():  # a datetime too
            return e.Constant(value)
        case int() | float() | Decimal() | Fraction() | np.integer() | np.floating():
            return e.Constant(exact(value, name="the number", example='pv.col("age") >= 18'))
        case When():
            raise QueryError("a case needs a final value", remedy=write("pv.when(condition, 1).otherwise(0)"))
    raise QueryError(
        f"{type(value).__name__} can't be used in an expression",
        allowed="Numbers, text, booleans and dates are allowed",
        remedy=write('pv.col("age").is_null()', sql="age IS NULL", advice="A test for a missing value is a condition"),
    )
