"""Expressions over one row: every one is total, so no row can make it fail.

A node is a frozen value; its constructor takes nothing apart. `type(node, schema)` refuses what is ill-typed and
gives the public range of the result by interval arithmetic. A missing operand makes the result missing, as in SQL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal as OneOf

from privet.errors import QueryError
from privet.exact import Exact, show
from privet.relation.rules import (
    Operator,
    arithmetic,
    as_boolean,
    as_number,
    as_time,
    clipped_quotient,
    comparable,
    days_between,
    union,
)
from privet.relation.types import (
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
from privet.relation.units import Range, exactly, to_whole
from privet.spelling import there_are

Types = Mapping[str, Type]
"""What columns there are, and their types."""

LARGEST = Exact(2) ** 900
"""Beyond this, numbers are refused."""

MOST_NODES = 2_000
DEEPEST = 64
"""How large an expression may be, and how deeply nested."""

Part = OneOf["year", "quarter", "month", "day", "weekday", "hour"]
PARTS: dict[str, tuple[int, int]] = {
    "year": (0, 9999), "quarter": (1, 4), "month": (1, 12), "day": (1, 31), "weekday": (1, 7), "hour": (0, 23)
}  # fmt: skip
"""The parts of a date, and their ranges; weekday 1 is Monday."""


@dataclass(frozen=True, slots=True)
class Column:
    """The value of a column."""

    name: str

    def type(self, schema: Types) -> Type:
        if self.name in schema:
            return schema[self.name]
        raise QueryError(f"there is no column {self.name!r}. {there_are(self.name, schema)}")


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A public value; the number 1 is not the boolean True."""

    value: Exact | str | bool | date

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def type(self, schema: Types) -> Type:
        match self.value:
            case bool():
                return BooleanType(missing=False)
            case str():
                return KeyType((self.value,), missing=False)
            case date():
                return TimeType(self.value, self.value, missing=False)
            case _:
                return NumberType(self.value, self.value, missing=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers added, subtracted, multiplied or divided (by zero: missing); or the days between two dates."""

    operator: Operator
    left: Node
    right: Node

    def type(self, schema: Types) -> Type:
        left, right = self.left.type(schema), self.right.type(schema)
        if self.operator == "-" and isinstance(left, TimeType) and isinstance(right, TimeType):
            return days_between(left, right)
        return arithmetic(self.operator, as_number(left, self.operator), as_number(right, self.operator))


@dataclass(frozen=True, slots=True)
class Rounded:
    """The greatest integer not above (floor), the least not below (ceil), or the absolute value (abs)."""

    function: OneOf["floor", "ceil", "abs"]
    of: Node

    def type(self, schema: Types) -> Type:
        number = as_number(self.of.type(schema), self.function)
        held = number.range
        if self.function == "abs":
            low = max(held.least, -held.most, 0)
            found, rounded = Range(held.unit, low, max(-held.least, held.most)), number.rounded
        elif held.unit.denominator == 1:
            found, rounded = held, False
        else:
            how, way = (math.floor if self.function == "floor" else math.ceil), to_whole(held)
            inner = held.coarser(way.shift)
            ends = (how(inner.unit * inner.least), how(inner.unit * inner.most))
            found, rounded = Range(Exact(1), *ends), False
        return NumberType.of(found, rounded=rounded, missing=number.missing, wide=number.wide)


@dataclass(frozen=True, slots=True)
class Clip:
    """A number clamped to bounds of one's own."""

    of: Node
    lower: Exact
    upper: Exact

    def type(self, schema: Types) -> Type:
        return clipped(self.inner(schema), self.lower, self.upper)

    def inner(self, schema: Types) -> NumberType:
        """The type of what is clipped; a quotient is computed as finely as the clip allows."""
        if not isinstance(self.of, Arithmetic) or self.of.operator != "/":
            return as_number(self.of.type(schema), "clip")
        a, b = as_number(self.of.left.type(schema), "/"), as_number(self.of.right.type(schema), "/")
        return arithmetic("/", a, b) if b.constant else clipped_quotient(a, b, self.lower, self.upper)[1]


@dataclass(frozen=True, slots=True)
class Compare:
    """Whether one value equals, or is below, or above another."""

    operator: OneOf["==", "!=", "<", "<=", ">", ">="]
    left: Node
    right: Node

    def type(self, schema: Types) -> Type:
        left, right = self.left.type(schema), self.right.type(schema)
        _no_text_for_a_date(left, self.right)
        _no_text_for_a_date(right, self.left)
        ordered = self.operator not in ("==", "!=")
        if not comparable(left, right) or (ordered and not isinstance(left, NumberType | TimeType)):
            raise QueryError(
                f"{left} and {right} can't be compared with {self.operator}. Numbers and dates have an order; texts, "
                'keys and booleans can be equal or not. Write, for example: pv.col("age") >= 18'
            )
        if isinstance(left, NumberType) and isinstance(right, NumberType):
            _exactly_comparable(left, right)
        return BooleanType(missing=left.missing or right.missing)


@dataclass(frozen=True, slots=True)
class Logic:
    """All of these, or any of these."""

    operator: OneOf["and", "or"]
    of: tuple[Node, ...]

    def type(self, schema: Types) -> Type:
        types = [as_boolean(node.type(schema), self.operator) for node in self.of]
        return BooleanType(missing=any(t.missing for t in types))


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    of: Node

    def type(self, schema: Types) -> Type:
        return as_boolean(self.of.type(schema), "not")


@dataclass(frozen=True, slots=True)
class IsIn:
    """Whether a value is one of a list."""

    of: Node
    values: tuple[Constant, ...]

    def type(self, schema: Types) -> Type:
        mine = self.of.type(schema)
        if not self.values or len(self.values) > 10_000:
            raise QueryError('is_in needs 1 to 10,000 values. Write, for example: pv.col("region").is_in(["north"])')
        for value in self.values:
            _no_text_for_a_date(mine, value)
            if not comparable(mine, value.type(schema)):
                raise QueryError(f"{mine} is never equal to {value.value!r}. Give values of the same kind")
        return BooleanType(missing=mine.missing)


@dataclass(frozen=True, slots=True)
class IsMissing:
    """Whether there is no value."""

    of: Node

    def type(self, schema: Types) -> Type:
        self.of.type(schema)
        return BooleanType(missing=False)


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Whether a text begins with another."""

    of: Node
    prefix: str

    def type(self, schema: Types) -> Type:
        mine = self.of.type(schema)
        if isinstance(mine, TextType) or (isinstance(mine, KeyType) and mine.textual):
            return BooleanType(missing=mine.missing)
        raise QueryError(
            f"only texts can be compared by their beginning, and this is {mine}. "
            'Write, for example: pv.col("name").starts_with("A")'
        )


@dataclass(frozen=True, slots=True)
class Case:
    """The value beside the first condition that is true; `otherwise` if none is (missing if that is None)."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None

    def type(self, schema: Types) -> Type:
        for condition, _ in self.branches:
            as_boolean(condition.type(schema), "when")
        values = [value for _, value in self.branches] + ([] if self.otherwise is None else [self.otherwise])
        joined = union([value.type(schema) for value in values])
        return replace(joined, missing=True) if self.otherwise is None else joined


@dataclass(frozen=True, slots=True)
class DatePart:
    """The year, quarter, month, day, weekday or hour of a date."""

    of: Node
    part: Part

    def type(self, schema: Types) -> Type:
        time = as_time(self.of.type(schema), self.part)
        if self.part == "hour" and not time.timed:
            raise QueryError('a date has no hour; a timestamp has. Write, for example: .part("weekday")')
        low, high = (time.first.year, time.last.year) if self.part == "year" else PARTS[self.part]
        return NumberType(Exact(low), Exact(high), integer=True, missing=time.missing)


@dataclass(frozen=True, slots=True)
class Truncate:
    """The start of the year, quarter, month, week, day or hour."""

    of: Node
    unit: Unit

    def type(self, schema: Types) -> Type:
        time = as_time(self.of.type(schema), "truncate")
        if self.unit == "hour" and not time.timed:
            raise QueryError('a date has no hour; a timestamp has. Write, for example: .truncate("month")')
        first, last = truncate(time.first, self.unit), truncate(time.last, self.unit)
        return TimeType(first, last, self.unit, time.missing)


@dataclass(frozen=True, slots=True)
class Bin:
    """Which of the ranges edges[i]..edges[i+1] holds a number: each without its end, the last with it."""

    of: Node
    edges: tuple[Exact, ...]

    def type(self, schema: Types) -> Type:
        number = as_number(self.of.type(schema), "bins")
        labels = tuple(
            f"[{show(a)}, {show(b)}{']' if i == len(self.edges) - 2 else ')'}"
            for i, (a, b) in enumerate(zip(self.edges, self.edges[1:], strict=False))
        )
        if len(set(labels)) < len(labels):
            raise QueryError("two of these bins look the same when printed. Take edges that lie further apart")
        places = self.places(number)
        inside = places[0] <= number.least and number.most <= places[-1]
        return KeyType(labels, missing=number.missing or not inside)

    def places(self, of: NumberType) -> tuple[int, ...]:
        """The edges as integers: u n is in bin i if places[i] <= n < places[i + 1]; n = places[-1] is in the last."""
        last = of.compared("<=", self.edges[-1])
        return (*(of.compared(">=", edge) for edge in self.edges[:-1]), last)


CONDITIONS = Compare, Logic, Not, IsIn, IsMissing, StartsWith
"""What is true or false of a row."""

Node = (
    Column | Constant | Arithmetic | Rounded | Clip | Compare | Logic | Not | IsIn | IsMissing | StartsWith | Case
    | DatePart | Truncate | Bin
)  # fmt: skip
"""Every kind of expression there is."""


def _exactly_comparable(left: NumberType, right: NumberType) -> None:
    if left.constant is None and right.constant is None and not exactly(left.range, right.range):
        raise QueryError(
            "these two numbers can't be compared exactly: in a common unit they would need more than 126 bits. Round "
            'or clip one of them first. Write, for example: pv.col("income").clip(0, 200_000)'
        )


def _no_text_for_a_date(kind: Type, other: Node) -> None:
    """Refuse a text where a date or timestamp is needed, with the value to write."""
    if not isinstance(kind, TimeType) or not isinstance(other, Constant) or not isinstance(other.value, str):
        return
    name = "timestamp" if kind.timed else "date"
    try:
        read: date | None = (datetime if kind.timed else date).fromisoformat(other.value)
    except ValueError:
        read = None
    if read is None or getattr(read, "tzinfo", None) is not None:
        line = f"Write, for example: {kind.last!r}"
    else:
        line = f"Write: {read!r}"
    raise QueryError(f"a {name} is compared with {name}s, not with the text {other.value[:40]!r}. {line}")


def joined(operator: OneOf["and", "or"], of: Sequence[Node]) -> Node:
    """All of these, or any of these, side by side: `(a and b) and c` is `a and b and c`."""
    flat: list[Node] = []
    for node in of:
        flat += node.of if isinstance(node, Logic) and node.operator == operator else (node,)
    return flat[0] if len(flat) == 1 else Logic(operator, tuple(flat))


def sized(node: Node) -> Node:
    """The same expression, if it is not too large to look at: shared parts count each time that they stand there."""
    left, pile = MOST_NODES, [(node, 1)]
    while pile:
        part, depth = pile.pop()
        left -= 1
        if left < 0 or depth > DEEPEST:
            raise QueryError(
                f"an expression has at most {MOST_NODES:,} parts, nested at most {DEEPEST} deep. "
                "Give parts of it names first. Write, for example: with_columns(rate=...)"
            )
        pile += [(inner, depth + 1) for inner in parts(part)]
    return node


def parts(node: Node) -> tuple[Node, ...]:
    """What an expression is made of."""
    match node:
        case Column() | Constant():
            return ()
        case Arithmetic(_, a, b) | Compare(_, a, b):
            return (a, b)
        case Logic(_, of):
            return of
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), *([] if otherwise is None else [otherwise]))
        case _:
            return (node.of,)
