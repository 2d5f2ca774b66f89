"""Expressions over one row: every one is total, so no row can make it fail.

A node is a frozen value. `node.type(schema)` refuses an ill-typed expression and gives the public range of the result
by interval arithmetic. A missing operand makes the result missing, as in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Literal as OneOf
from typing import get_args

from privet.errors import QueryError, Remedy, Subject, write
from privet.exact import Exact, show
from privet.names.spelling import there_are
from privet.tables.expressions.typing_rules import (
    CONDITION,
    Operator,
    arithmetic,
    as_boolean,
    as_number,
    as_time,
    check_exact,
    clipped_quotient,
    comparable,
    days_between,
    no_text_for_a_date,
    rounded,
    union,
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
from privet.tables.units import LARGEST

Types = Mapping[str, Type]
"""The types of columns by name."""

MOST_BINS = 1_000
MOST_GROUPING = 32
"""Maximum keys of one `Grouping`."""
BINS = write('pv.bins("age", [0, 18, 65, 110]), or pv.bins("age", list(range(0, 111, 10)))', sql="FLOOR(age / 10) * 10")

Part = OneOf["year", "quarter", "month", "day", "weekday", "hour"]
PARTS: dict[str, tuple[int, int]] = {
    "year": (0, 9999), "quarter": (1, 4), "month": (1, 12), "day": (1, 31), "weekday": (1, 7), "hour": (0, 23)
}  # fmt: skip
"""The parts of a date, and their ranges; weekday 1 is Monday."""


@dataclass(frozen=True, slots=True)
class Column:
    """The value of a column."""

    name: str

    def __post_init__(self) -> None:
        as_text(self.name)

    def type(self, schema: Types) -> Type:
        if self.name in schema:
            return schema[self.name]
        raise QueryError(
            f"there is no column {self.name!r}",
            allowed=there_are(self.name, schema),
            subject=Subject("column", self.name),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A public value; the number 1 is not the boolean True."""

    value: Exact | str | bool | date

    def __post_init__(self) -> None:
        match self.value:
            case str():
                as_text(self.value)
            case date() if getattr(self.value, "tzinfo", None) is not None:
                raise QueryError(f"timestamps must be in UTC, without a time zone, not {self.value!r}")
            case Exact():
                if abs(self.value) > LARGEST or (self.value and abs(self.value) < 1 / LARGEST):
                    raise QueryError("this number is too large or too small to compute with")
            case bool() | date():
                pass
            case _:
                raise QueryError(f"{self.value!r} is not a public value")

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
    """Arithmetic on two numbers (division by zero is missing), or the days between two dates."""

    operator: Operator
    left: Node
    right: Node

    def __post_init__(self) -> None:
        _one_of(self.operator, ("+", "-", "*", "/"))
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
        _one_of(self.function, ("floor", "ceil", "abs", "round"))
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
        _one_of(self.operator, ("==", "!=", "<", "<=", ">", ">="))
        check_nodes(self.left, self.right)

    def type(self, schema: Types) -> Type:
        left, right = self.left.type(schema), self.right.type(schema)
        for kind, other in ((left, self.right), (right, self.left)):
            if isinstance(other, Constant):
                no_text_for_a_date(kind, other.value)
        ordered = self.operator not in ("==", "!=")
        if not comparable(left, right) or (ordered and not isinstance(left, NumberType | TimeType)):
            from privet.tables.expressions.advice import allowed_condition

            sides = ((self.left, left), (self.right, right))
            columns = ((node.name, kind) for node, kind in sides if isinstance(node, Column))
            suggested = (allowed_condition(name, kind, ordered) for name, kind in columns)
            raise QueryError(
                f"{left} and {right} can't be compared{' by order' if ordered else ''}",
                allowed="Numbers and dates can be ordered; text, keys and booleans can only be equal or different",
                remedy=next(suggested, CONDITION),
            )
        if isinstance(left, NumberType) and isinstance(right, NumberType):
            check_exact(left, right)
        return BooleanType(missing=left.missing or right.missing)


@dataclass(frozen=True, slots=True)
class Logic:
    """All of these conditions, or any of them."""

    operator: OneOf["and", "or"]
    operands: tuple[Node, ...]

    def __post_init__(self) -> None:
        _one_of(self.operator, ("and", "or"))
        if not self.operands:
            raise QueryError(f"{self.operator} needs at least one condition")
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
        time = as_time(self.operand.type(schema), self.part)
        if self.part == "hour" and not time.timed:
            raise QueryError(
                "a date has no hour; only a timestamp has one", remedy=write('.part("weekday")', sql="ISODOW(day)")
            )
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
        time = as_time(self.operand.type(schema), "truncate")
        if self.unit == "hour" and not time.timed:
            raise QueryError(
                "a date has no hour; only a timestamp has one",
                remedy=write('.truncate("month")', sql="DATE_TRUNC('month', day)"),
            )
        first, last = truncate(time.first, self.unit), truncate(time.last, self.unit)
        return TimeType(first, last, self.unit, time.missing)


@dataclass(frozen=True, slots=True)
class Bin:
    """The bin edges[i]..edges[i+1] that contains a number; a bin excludes its upper edge, except the last."""

    operand: Node
    edges: tuple[Exact, ...]

    def __post_init__(self) -> None:
        check_nodes(self.operand)
        if len(self.edges) < 2:
            raise QueryError("bins need at least two edges", remedy=BINS)
        if len(self.edges) > MOST_BINS + 1:
            raise QueryError(f"at most {MOST_BINS:,} bins are allowed", remedy=BINS)
        if any(type(edge) is not Exact or abs(edge) > LARGEST for edge in self.edges):
            raise QueryError("the edges of bins must be numbers", remedy=BINS)
        if any(a >= b for a, b in pairwise(self.edges)):
            raise QueryError("the edges of bins must be in increasing order", remedy=BINS)

    def type(self, schema: Types) -> Type:
        number = as_number(self.operand.type(schema), "bins")
        labels = tuple(
            f"[{show(a)}, {show(b)}{']' if i == len(self.edges) - 2 else ')'}"
            for i, (a, b) in enumerate(zip(self.edges, self.edges[1:], strict=False))
        )
        if len(set(labels)) < len(labels):
            raise QueryError(
                "two of these bins look the same when printed", remedy=Remedy("Use edges that are further apart")
            )
        places = self.places(number)
        inside = places[0] <= number.least and number.most <= places[-1]
        return KeyType(labels, missing=number.missing or not inside)

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

    def type(self, schema: Types) -> Type:
        for operand in self.operands:
            operand.type(schema)
        return NumberType(Exact(0), Exact(max(len(self.values) - 1, 0)), integer=True)


@dataclass(frozen=True, slots=True)
class OfAnswer:
    """A number of a released column: its total over groups, or an end of its interval."""

    function: OneOf["total", "low", "high"]
    column: str
    by: tuple[str, ...] = ()
    """Keys: the total is of the groups that have the same ones."""

    def __post_init__(self) -> None:
        _one_of(self.function, ("total", "low", "high"))
        for name in (self.column, *self.by):
            as_text(name)
        if self.by and self.function != "total":
            raise QueryError("only a total has keys")

    def type(self, schema: Types) -> Type:
        raise QueryError(
            f"the {'total' if self.function == 'total' else 'interval'} of {self.column!r} is a number of the answer, "
            "so it can't be computed from rows",
            remedy=write('.agg(n=pv.count()).compute(share=pv.col("n") / pv.total("n"))'),
        )


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which of some keys a row of the answer adds up: a bit for each, of which the last key has the lowest."""

    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in self.keys:
            as_text(name)
        if not 1 <= len(self.keys) <= MOST_GROUPING or len({*self.keys}) < len(self.keys):
            raise QueryError(
                f"grouping needs 1 to {MOST_GROUPING} different keys",
                remedy=write('pv.grouping("region")', sql="GROUPING(region)"),
            )

    def type(self, schema: Types) -> Type:
        raise QueryError(
            "grouping is a number of the answer, so it can't be computed from rows",
            remedy=write('.agg(n=pv.count()).compute(level=pv.grouping("region"))', sql="HAVING GROUPING(region) = 0"),
        )


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


def _one_of(word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise QueryError(f"{word!r} is not an operator or function here", allowed=f"Allowed are: {', '.join(words)}")


def as_text(value: object) -> str:
    """Text that every engine can read."""
    if isinstance(value, str) and "\x00" not in value and len(value) <= 10_000:
        try:
            value.encode()
        except UnicodeEncodeError:
            pass
        else:
            return value
    raise QueryError(f"this needs text of at most 10,000 characters without NUL, not {str(value)[:40]!a}")
