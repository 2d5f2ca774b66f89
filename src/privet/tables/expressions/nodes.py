"""Expressions over one row: every one is total, so no row can make it fail.

A node is a frozen value. `node.type(schema)` refuses an ill-typed expression and gives the public range of the result
by interval arithmetic. A missing operand makes the result missing, as in SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import get_args

from privet.errors import QueryError, Remedy, write
from privet.exact import Exact
from privet.tables.expressions.leaves import Column as Column
from privet.tables.expressions.leaves import Constant as Constant
from privet.tables.expressions.leaves import Grouping as Grouping
from privet.tables.expressions.leaves import OfAnswer as OfAnswer
from privet.tables.expressions.leaves import Types as Types
from privet.tables.expressions.leaves import as_text, one_of
from privet.tables.expressions.typing_rules import BINS as BINS
from privet.tables.expressions.typing_rules import (
    Operator,
    arithmetic,
    as_boolean,
    as_number,
    as_time,
    bin_labels,
    check_edges,
    check_listed,
    clipped_quotient,
    comparable,
    compared,
    days_between,
    no_text_for_a_date,
    rounded,
    union,
    with_hours,
)
from privet.tables.types import (
    UNITS,
    BooleanType,
    KeyType,
    NumberType,
    TextType,
    TimeType,
    Type,
    Unit,
    clipped,
    truncate,
)
from privet.tables.units import LARGEST, NARROW

Part = OneOf["year", "quarter", "month", "day", "weekday", "hour"]
PARTS: dict[str, tuple[int, int]] = {
    "year": (0, 9999), "quarter": (1, 4), "month": (1, 12), "day": (1, 31), "weekday": (1, 7), "hour": (0, 23)
}  # fmt: skip
"""The parts of a date, and their ranges; weekday 1 is Monday."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Arithmetic on two numbers (division by zero is missing), or the days between two dates."""

    operator: Operator
    left: Node
    right: Node

    def __post_init__(self) -> None:
        one_of(self.operator, ("+", "-", "*", "/"))
        check_nodes(self.left, self.right)

    def type(self, schema: Types) -> Type:
        left, right = self.left.type(schema), self.right.type(schema)
        if self.operator == "-" and isinstance(left, TimeType) and isinstance(right, TimeType):
            return days_between(left, right)
        return arithmetic(self.operator, as_number(left, self.operator), as_number(right, self.operator))


@dataclass(frozen=True, slots=True)
class Rounded:
    """A number rounded down (floor), up (ceil), or its absolute value (abs); a released one, to digits (round)."""

    function: OneOf["floor", "ceil", "abs", "round"]
    operand: Node
    digits: int = 0
    """The number of decimals of `round`; 0 for the others."""

    def __post_init__(self) -> None:
        one_of(self.function, ("floor", "ceil", "abs", "round"))
        check_nodes(self.operand)
        if type(self.digits) is not int or abs(self.digits) > (15 if self.function == "round" else 0):
            raise QueryError(
                "a number can be rounded to -15 to 15 digits", remedy=write(".round(1)", sql="ROUND(x, 1)")
            )

    def type(self, schema: Types) -> Type:
        if self.function == "round":
            raise QueryError(
                "only numbers of the answer can be rounded to digits", remedy=write(".floor()", sql="FLOOR(x)")
            )
        return rounded(self.function, as_number(self.operand.type(schema), self.function))


@dataclass(frozen=True, slots=True)
class Clip:
    """A number clamped to bounds that the analyst chose."""

    operand: Node
    lower: Exact
    upper: Exact

    def __post_init__(self) -> None:
        check_nodes(self.operand)
        for bound in (self.lower, self.upper):
            if type(bound) is not Exact or abs(bound) > LARGEST:
                raise QueryError(f"clip needs numbers as bounds, not {bound!r}")

    def type(self, schema: Types) -> Type:
        return clipped(self.inner(schema), self.lower, self.upper)

    def inner(self, schema: Types) -> NumberType:
        """The type of the operand; a quotient is computed as precisely as the clip allows."""
        if not isinstance(self.operand, Arithmetic) or self.operand.operator != "/":
            return as_number(self.operand.type(schema), "clip")
        a, b = as_number(self.operand.left.type(schema), "/"), as_number(self.operand.right.type(schema), "/")
        return arithmetic("/", a, b) if b.constant else clipped_quotient(a, b, self.lower, self.upper)[1]


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two values."""

    operator: OneOf["==", "!=", "<", "<=", ">", ">="]
    left: Node
    right: Node

    def __post_init__(self) -> None:
        one_of(self.operator, ("==", "!=", "<", "<=", ">", ">="))
        check_nodes(self.left, self.right)

    def type(self, schema: Types) -> Type:
        left, right = self.left.type(schema), self.right.type(schema)
        for kind, other in ((left, self.right), (right, self.left)):
            if isinstance(other, Constant):
                no_text_for_a_date(kind, other.value)
        columns = [(x.name, kind) for x, kind in ((self.left, left), (self.right, right)) if isinstance(x, Column)]
        return compared(left, right, columns, ordered=self.operator not in ("==", "!="))


@dataclass(frozen=True, slots=True)
class Logic:
    """All of these conditions, or any of them."""

    operator: OneOf["and", "or"]
    operands: tuple[Node, ...]

    def __post_init__(self) -> None:
        one_of(self.operator, ("and", "or"))
        if len(self.operands) < 2:
            raise QueryError(f"{self.operator} needs at least two conditions")
        check_nodes(*self.operands)

    def type(self, schema: Types) -> Type:
        types = [as_boolean(node.type(schema), self.operator) for node in self.operands]
        return BooleanType(missing=any(t.missing for t in types))


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition."""

    operand: Node

    def __post_init__(self) -> None:
        check_nodes(self.operand)

    def type(self, schema: Types) -> Type:
        return as_boolean(self.operand.type(schema), "not")


@dataclass(frozen=True, slots=True)
class IsIn:
    """Whether a value is one of a list."""

    operand: Node
    values: tuple[Constant, ...]

    def __post_init__(self) -> None:
        check_nodes(self.operand)
        if not 1 <= len(self.values) <= 10_000:
            raise QueryError(
                "a list must have 1 to 10,000 values",
                remedy=write('pv.col("region").is_in(["north"])', sql="region IN ('north')"),
            )
        if not all(isinstance(value, Constant) for value in self.values):
            raise QueryError("a list can contain only public values")

    def type(self, schema: Types) -> Type:
        kind = self.operand.type(schema)
        for value in self.values:
            no_text_for_a_date(kind, value.value)
            if not comparable(kind, value.type(schema)):
                raise QueryError(
                    f"{kind} is never equal to {value.value!r}", remedy=Remedy("Use values of the same kind")
                )
        return BooleanType(missing=kind.missing)


@dataclass(frozen=True, slots=True)
class IsMissing:
    """Whether a value is missing."""

    operand: Node

    def __post_init__(self) -> None:
        check_nodes(self.operand)

    def type(self, schema: Types) -> Type:
        self.operand.type(schema)
        return BooleanType(missing=False)


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Whether text begins with a prefix."""

    operand: Node
    prefix: str

    def __post_init__(self) -> None:
        check_nodes(self.operand)
        as_text(self.prefix)

    def type(self, schema: Types) -> Type:
        kind = self.operand.type(schema)
        if isinstance(kind, TextType) or (isinstance(kind, KeyType) and kind.textual):
            return BooleanType(missing=kind.missing)
        raise QueryError(
            f"a prefix can be compared only with text, but this is {kind}",
            remedy=write('pv.col("name").starts_with("A")', sql="name LIKE 'A%'"),
        )


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first condition that is true; `otherwise` if none is (missing if that is None)."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None

    def __post_init__(self) -> None:
        if not self.branches:
            raise QueryError("a case needs at least one condition")
        check_nodes(*(part for branch in self.branches for part in branch))
        if self.otherwise is not None:
            check_nodes(self.otherwise)

    def type(self, schema: Types) -> Type:
        for condition, _ in self.branches:
            as_boolean(condition.type(schema), "when")
        values = [value for _, value in self.branches] + ([] if self.otherwise is None else [self.otherwise])
        joined = union([value.type(schema) for value in values])
        return replace(joined, missing=True) if self.otherwise is None else joined


@dataclass(frozen=True, slots=True)
class DatePart:
    """The year, quarter, month, day, weekday or hour of a date."""

    operand: Node
    part: Part

    def __post_init__(self) -> None:
        check_nodes(self.operand)
        if self.part not in PARTS:
            raise QueryError(f"a date has no part {self.part!r}", allowed=f"The parts are: {', '.join(PARTS)}")

    def type(self, schema: Types) -> Type:
        weekday = write('.part("weekday")', sql="ISODOW(day)")
        time = with_hours(as_time(self.operand.type(schema), self.part), self.part, weekday)
        low, high = (time.first.year, time.last.year) if self.part == "year" else PARTS[self.part]
        return NumberType(Exact(low), Exact(high), integer=True, missing=time.missing)


@dataclass(frozen=True, slots=True)
class Truncate:
    """The start of the year, quarter, month, week, day or hour."""

    operand: Node
    unit: Unit

    def __post_init__(self) -> None:
        check_nodes(self.operand)
        if self.unit not in UNITS:
            raise QueryError(
                f"a date can't be truncated to {self.unit!r}", allowed=f"The units are: {', '.join(UNITS)}"
            )

    def type(self, schema: Types) -> Type:
        month = write('.truncate("month")', sql="DATE_TRUNC('month', day)")
        time = with_hours(as_time(self.operand.type(schema), "truncate"), self.unit, month)
        first, last = truncate(time.first, self.unit), truncate(time.last, self.unit)
        return TimeType(first, last, self.unit, time.missing)


@dataclass(frozen=True, slots=True)
class Bin:
    """The bin edges[i]..edges[i+1] that contains a number; a bin excludes its upper edge, except the last."""

    operand: Node
    edges: tuple[Exact, ...]

    def __post_init__(self) -> None:
        check_nodes(self.operand)
        check_edges(self.edges)

    def type(self, schema: Types) -> Type:
        number = as_number(self.operand.type(schema), "bins")
        places = self.places(number)
        inside = places[0] <= number.least and number.most <= places[-1]
        return KeyType(bin_labels(self.edges), missing=number.missing or not inside)

    def places(self, number: NumberType) -> tuple[int, ...]:
        """The edges as integers: u n is in bin i if places[i] <= n < places[i + 1]; n = places[-1] is in the last."""
        last = number.compared("<=", self.edges[-1])
        return (*(number.compared(">=", edge) for edge in self.edges[:-1]), last)


@dataclass(frozen=True, slots=True)
class Which:
    """Which of some public combinations of values the operands have, counted from 0; missing if it is none of them."""

    operands: tuple[Node, ...]
    values: tuple[tuple[str | int, ...], ...]

    def __post_init__(self) -> None:
        if not self.operands:
            raise QueryError("combinations are of at least one value")
        check_nodes(*self.operands)
        if len(self.values) > 10_000 or any(len(each) != len(self.operands) for each in self.values):
            raise QueryError("combinations are at most 10,000, with one value for each operand")
        if len({*self.values}) < len(self.values):
            raise QueryError("a combination is listed twice")
        for value in (value for each in self.values for value in each):
            if type(value) is not int:
                as_text(value)
            elif abs(value) > NARROW:
                raise QueryError("the integers of combinations must be within -2^62..2^62")

    def type(self, schema: Types) -> Type:
        columns = zip(*self.values, strict=True) if self.values else [()] * len(self.operands)
        for operand, values in zip(self.operands, columns, strict=True):
            check_listed(operand.type(schema), values)
        return NumberType(Exact(0), Exact(max(len(self.values) - 1, 0)), integer=True)


@dataclass(frozen=True, slots=True)
class Beyond:
    """Whether a source has more than was declared: -1 if a value is below its range, 1 if above, 0 if inside.

    A value is outside if it would be no key; it is read as the end of its range that is nearer. Only a diagnosis asks
    for this.
    """

    operand: Node

    def __post_init__(self) -> None:
        check_nodes(self.operand)

    def type(self, schema: Types) -> Type:
        kind = self.operand.type(schema)
        if isinstance(kind, NumberType | TimeType):
            return NumberType(Exact(-1), Exact(1), integer=True, missing=kind.missing)
        raise QueryError(f"{kind} has no range that a value could be outside of")


CONDITIONS = Compare, Logic, Not, IsIn, IsMissing, StartsWith
"""The expressions that are conditions."""

Node = (
    Column | Constant | Arithmetic | Rounded | Clip | Compare | Logic | Not | IsIn | IsMissing | StartsWith | Case
    | DatePart | Truncate | Bin | Which | OfAnswer | Grouping | Beyond
)  # fmt: skip
"""Every kind of expression."""


_KINDS = frozenset(get_args(Node))


def check_nodes(*parts: object) -> None:
    """Refuse anything that is not an expression."""
    for part in parts:
        if type(part) not in _KINDS:
            raise QueryError(f"this must be an expression, not {type(part).__name__}")
