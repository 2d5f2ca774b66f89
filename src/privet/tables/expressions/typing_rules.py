"""Typing rules for expressions: what counts as a number, what can be equal, and the union of several types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from privet.errors import QueryError, Remedy, write
from privet.exact import Exact, show
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type
from privet.tables.units import LARGEST, Quotient, Range, exactly, product, quotient, sized, to_whole, together

Operator = Literal["+", "-", "*", "/"]

CONDITION = write('pv.col("age") >= 18', sql="age >= 18")
MOST_BINS = 1_000
BINS = write('pv.bins("age", [0, 18, 65, 110]), or pv.bins("age", list(range(0, 111, 10)))', sql="FLOOR(age / 10) * 10")


def as_number(kind: Type, where: str) -> NumberType:
    """A number, or a boolean as 0 or 1."""
    match kind:
        case NumberType():
            return kind
        case BooleanType():
            return kind.as_number()
    raise QueryError(f"{where} needs a number, but this is {kind}", allowed="Numbers and booleans are allowed")


def comparable(left: Type, right: Type) -> bool:
    """Whether two values can be equal."""
    match left, right:
        case (NumberType(), NumberType()) | (BooleanType(), BooleanType()) | (TimeType(), TimeType()):
            return True
        case (KeyType() as key, NumberType() as number) | (NumberType() as number, KeyType() as key):
            return not key.textual and number.integer
        case (KeyType() as a, KeyType() as b):
            return a.textual == b.textual
        case (TextType(), TextType()):
            return True
        case (KeyType() as key, TextType()) | (TextType(), KeyType() as key):
            return key.textual
    return False


def union(types: list[Type]) -> Type:
    """The smallest type that contains all of these."""
    missing = any(t.missing for t in types)
    first = types[0]
    if all(isinstance(t, BooleanType) for t in types):
        return BooleanType(missing)
    if all(isinstance(t, NumberType | BooleanType) for t in types):
        numbers = [as_number(t, "when") for t in types]
        parts = together(*(t.range for t in numbers)).parts
        joined = Range(parts[0].unit, min(p.least for p in parts), max(p.most for p in parts))
        rounded, wide = any(t.rounded for t in numbers), any(t.wide for t in numbers)
        return NumberType.of(joined, rounded=rounded, missing=missing, wide=wide)
    if all(isinstance(t, KeyType) and t.textual for t in types):
        values = dict.fromkeys(key for t in types for key in t.keys())  # noqa: SIM118
        return KeyType(tuple(str(v) for v in values), missing=missing)
    if isinstance(first, KeyType) and all(isinstance(t, KeyType) and t.keys() == first.keys() for t in types):
        return KeyType(first.keys(), missing=missing)  # type: ignore[arg-type]
    if all(isinstance(t, TextType) or (isinstance(t, KeyType) and t.textual) for t in types):
        return TextType(missing)
    if all(isinstance(t, TimeType) and t.timed == first.timed for t in types if isinstance(first, TimeType)):
        times = [t for t in types if isinstance(t, TimeType)]
        if len(times) == len(types):
            return TimeType(min(t.first for t in times), max(t.last for t in times), missing=missing)
    raise QueryError(
        f"the values of a case must be all numbers, text, dates or booleans, not {', '.join(map(str, types))}",
        remedy=write(
            'pv.when(pv.col("age") < 18, "child").otherwise("adult")',
            sql="CASE WHEN age < 18 THEN 'child' ELSE 'adult' END",
        ),
    )


def as_boolean(kind: Type, where: str) -> BooleanType:
    """A condition."""
    if isinstance(kind, BooleanType):
        return kind
    raise QueryError(f"{where} needs a condition, but this is {kind}", remedy=CONDITION)


def as_time(kind: Type, where: str) -> TimeType:
    """A date, or a date with a time."""
    if isinstance(kind, TimeType):
        return kind
    raise QueryError(f"{where} needs a date or a timestamp, but this is {kind}")


def with_hours(time: TimeType, unit: str, remedy: Remedy) -> TimeType:
    """A time that can be read in hours, if that is the unit."""
    if unit == "hour" and not time.timed:
        raise QueryError("a date has no hour; only a timestamp has one", remedy=remedy)
    return time


@lru_cache(maxsize=4096)  # the planner and the engines ask for the same types again and again
def arithmetic(operator: Operator, a: NumberType, b: NumberType) -> NumberType:
    """The type of a sum, difference, product or quotient of two numbers."""
    missing, wide, rounded = a.missing or b.missing, a.wide or b.wide, a.rounded or b.rounded
    x, y = a.constant, b.constant
    if x is not None and y is not None and (operator != "/" or y):
        value = {"+": x + y, "-": x - y, "*": x * y}[operator] if operator != "/" else x / y
        return NumberType.of(
            sized(Range(abs(value) or Exact(1), _sign(value), _sign(value))), rounded=False, missing=False
        )
    if operator in ("+", "-"):
        left, right = together(a.range, b.range if operator == "+" else negated(b.range)).parts
        result = sized(Range(left.unit, left.least + right.least, left.most + right.most))
    elif operator == "*":
        result = product(a.range, b.range).result
    elif y:
        result = product(a.range, inverse(y)).result
    else:
        ratio = quotient(a.range, b.range)
        result, rounded, missing, wide = ratio.result, True, missing or ratio.zero, wide or ratio.zero
    return NumberType.of(result, rounded=rounded and result.largest > 0, missing=missing, wide=wide)  # 0 is exact


def clipped_quotient(a: NumberType, b: NumberType, lower: Exact, upper: Exact) -> tuple[Quotient, NumberType]:
    """A quotient that is clipped immediately: its steps are fine enough for the clipped range."""
    ratio = quotient(a.range, b.range, within=max(abs(lower), abs(upper)) or None)
    missing, rounded = a.missing or b.missing or ratio.zero, ratio.top > 0
    return ratio, NumberType.of(ratio.result, rounded=rounded, missing=missing, wide=ratio.zero)


def negated(number: Range) -> Range:
    """The integers of -x."""
    return Range(number.unit, -number.most, -number.least)


def inverse(constant: Exact) -> Range:
    """1 / c as a number."""
    return Range(1 / abs(constant), _sign(constant), _sign(constant))


def _sign(number: Exact) -> int:
    return (number > 0) - (number < 0)


def days_between(left: TimeType, right: TimeType) -> NumberType:
    """The days between two dates."""
    if left.timed or right.timed:
        raise QueryError(
            "only dates can be subtracted from each other, but one of these is a timestamp",
            remedy=Remedy("Declare the column as a date"),
        )
    low, high = (left.first - right.last).days, (left.last - right.first).days
    return NumberType(Exact(low), Exact(high), integer=True, missing=left.missing or right.missing)


def rounded(function: str, number: NumberType) -> NumberType:
    """A number rounded down (floor), rounded up (ceil), or its absolute value (abs)."""
    operand = number.range
    if function == "abs":
        low = max(operand.least, -operand.most, 0)
        result, is_rounded = Range(operand.unit, low, max(-operand.least, operand.most)), number.rounded
    elif operand.unit.denominator == 1:
        result, is_rounded = operand, False
    else:
        how, way = (math.floor if function == "floor" else math.ceil), to_whole(operand)
        inner = operand.coarser(way.shift)
        ends = (how(inner.unit * inner.least), how(inner.unit * inner.most))
        result, is_rounded = Range(Exact(1), *ends), False
    return NumberType.of(result, rounded=is_rounded, missing=number.missing, wide=number.wide)


def check_exact(left: NumberType, right: NumberType) -> None:
    """Refuse to compare two numbers whose common unit is too fine."""
    if left.constant is None and right.constant is None and not exactly(left.range, right.range):
        raise QueryError(
            "these two numbers can't be compared exactly, because their common unit needs more than 126 bits",
            remedy=write(
                'pv.col("income").clip(0, 200_000)',
                sql="CLIP(income, 0, 200000)",
                advice="Round or clip one of them first",
            ),
        )


def no_text_for_a_date(kind: Type, value: object) -> None:
    """Refuse text where a date or timestamp is needed, and suggest the value to write."""
    if not isinstance(kind, TimeType) or not isinstance(value, str):
        return
    name = "timestamp" if kind.timed else "date"
    try:
        read: date | None = (datetime if kind.timed else date).fromisoformat(value)
    except ValueError:
        read = None
    exact = read is not None and getattr(read, "tzinfo", None) is None
    line = read if exact else kind.last
    raise QueryError(
        f"a {name} can be compared only with a {name}, not with the text {value[:40]!r}",
        remedy=write(repr(line), sql=f"{name.upper()} '{line}'", exact=exact),
    )


def compared(left: Type, right: Type, columns: Sequence[tuple[str, Type]], *, ordered: bool) -> BooleanType:
    """The type of a comparison of two values, of which these are columns."""
    if not comparable(left, right) or (ordered and not isinstance(left, NumberType | TimeType)):
        from privet.tables.expressions.advice import allowed_condition

        suggested = (allowed_condition(name, kind, ordered) for name, kind in columns)
        raise QueryError(
            f"{left} and {right} can't be compared{' by order' if ordered else ''}",
            allowed="Numbers and dates can be ordered; text, keys and booleans can only be equal or different",
            remedy=next(suggested, CONDITION),
        )
    if isinstance(left, NumberType) and isinstance(right, NumberType):
        check_exact(left, right)
    return BooleanType(missing=left.missing or right.missing)


def check_edges(edges: Sequence[Exact]) -> None:
    """Refuse what is not the edges of bins."""
    if len(edges) < 2:
        raise QueryError("bins need at least two edges", remedy=BINS)
    if len(edges) > MOST_BINS + 1:
        raise QueryError(f"at most {MOST_BINS:,} bins are allowed", remedy=BINS)
    if any(type(edge) is not Exact or abs(edge) > LARGEST for edge in edges):
        raise QueryError("the edges of bins must be numbers", remedy=BINS)
    if any(a >= b for a, b in pairwise(edges)):
        raise QueryError("the edges of bins must be in increasing order", remedy=BINS)


def check_listed(kind: Type, values: Sequence[str | int]) -> None:
    """Refuse values that are not texts of a text, or whole numbers of a number that is counted in ones."""
    match kind:
        case KeyType():
            own: type[object] | None = str if kind.textual else int
        case TextType():
            own = str
        case _:
            own = int if isinstance(kind, NumberType) and kind.integer and kind.unit == 1 else None
    other = next((value for value in values if type(value) is not own), None)
    if other is not None:
        raise QueryError(f"{kind} is never equal to {other!r}", remedy=Remedy("Use values of the same kind"))


def bin_labels(edges: Sequence[Exact]) -> tuple[str, ...]:
    """The names of the bins between these edges."""
    return _labels(tuple(edges))


@lru_cache(maxsize=64)
def _labels(edges: tuple[Exact, ...]) -> tuple[str, ...]:
    last = len(edges) - 2
    labels = tuple(f"[{show(a)}, {show(b)}{']' if i == last else ')'}" for i, (a, b) in enumerate(pairwise(edges)))
    if len({*labels}) < len(labels):
        raise QueryError(
            "two of these bins look the same when printed", remedy=Remedy("Use edges that are further apart")
        )
    return labels
