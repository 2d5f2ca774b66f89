"""Expressions evaluated on one row, in fractions, by the written rules: slow, obvious, without any SQL."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from privet.engines.reference.numbers import (
    Number,
    code,
    combined,
    common_unit,
    compare,
    constant,
    fits,
    gcd,
    number,
    quotient,
    to_unit,
)
from privet.tables.expressions import nodes as e
from privet.tables.statement import At, Code, Distinct, Given, Place, Present, Rows, Squares, Tally, Total
from privet.tables.types import NumberType, TimeType, Type

Read = Callable[[str, str], Any]
"""The value of a column, as a "value" or as a "key"."""


def evaluate(node: e.Node, read: Read, mode: str, types: e.Types) -> Any:
    """The value of an expression: a `Number`, or a boolean, a text, an integer key, a date; None if it is missing."""
    mode = "value" if isinstance(node, e.CONDITIONS) else mode

    def of(part: e.Node) -> Any:
        return evaluate(part, read, mode, types)

    match node:
        case e.Column(name):
            return read(name, mode)
        case e.Constant(value):
            return constant(value) if isinstance(value, Fraction) else value
        case e.Arithmetic(sign, left, right):
            a, b = of(left), of(right)
            if isinstance(left.type(types), TimeType):
                first, last = left.type(types), right.type(types)
                assert isinstance(first, TimeType)
                assert isinstance(last, TimeType)
                ends = Fraction((first.first - last.last).days), Fraction((first.last - last.first).days)
                days = None if a is None or b is None else Fraction((a - b).days)
                return Number(days, Fraction(1), *ends)
            return combined(sign, number(a), number(b))
        case e.Rounded(function, inner):
            x = number(of(inner))
            if function == "abs":
                low = max(x.low, -x.high, Fraction(0))
                return Number(None if x.value is None else abs(x.value), x.unit, low, x.largest, x.rounded)
            how = math.floor if function == "floor" else math.ceil
            if x.unit.denominator == 1:
                return replace(x, rounded=False)
            fits(x.largest / x.unit * x.unit.numerator + x.unit.denominator)
            whole = None if x.value is None else Fraction(how(x.value))
            return Number(whole, Fraction(1), Fraction(how(x.low)), Fraction(how(x.high)))
        case e.Clip(inner, lower, upper):
            x = _clipped(inner, of, types, max(abs(lower), abs(upper)))
            low, high = max(lower, x.low), min(upper, x.high)
            inside = None if x.value is None else min(max(x.value, low), high)
            unit = gcd(x.unit, *(end for end, moves in ((low, low > x.low), (high, high < x.high)) if moves))
            return Number(inside, unit, low, high, x.rounded)
        case e.Compare(sign, left, right):
            return compare(sign, of(left), of(right))
        case e.Logic(sign, parts):
            values = [of(part) for part in parts]
            decisive = sign == "or"
            return decisive if decisive in values else None if None in values else not decisive
        case e.Not(inner):
            x = of(inner)
            return None if x is None else not x
        case e.IsIn(inner, listed):
            x = of(inner)
            equal = [compare("==", x, evaluate(v, read, mode, types)) for v in listed]
            return None if None in equal else any(equal)
        case e.IsMissing(inner):
            x = of(inner)
            return x is None or (isinstance(x, Number) and x.value is None)
        case e.StartsWith(inner, prefix):
            x = of(inner)
            return None if x is None else x.startswith(prefix)
        case e.Case():
            return _case(node, of)
        case e.DatePart(inner, part):
            kind, x = node.type(types), of(inner)
            assert isinstance(kind, NumberType)
            return Number(None if x is None else Fraction(part_of(x, part)), Fraction(1), kind.lower, kind.upper)
        case e.Truncate(inner, unit_):
            x = of(inner)
            return None if x is None else cut(x, unit_)
        case e.Bin(inner, edges):
            x = number(of(inner))
            place = placed(x, edges)
            return None if place is None else node.type(types).keys()[place]
        case e.Which(several, values):
            mine = tuple(x.value if isinstance(x, Number) else x for x in map(of, several))
            at = next((i for i, each in enumerate(values) if each == mine), None)
            most = Fraction(max(len(values) - 1, 0))
            return Number(None if at is None else Fraction(at), Fraction(1), Fraction(0), most)
        case e.Beyond(inner):
            return _beyond(
                evaluate(inner, read, "value", types), evaluate(inner, read, "key", types), inner.type(types)
            )
    raise AssertionError(node)


def _clipped(inner: e.Node, of: Callable[[e.Node], Any], types: e.Types, within: Fraction) -> Number:
    """What a clip clips: a quotient as finely as that needs."""
    if isinstance(inner, e.Arithmetic) and inner.operator == "/":
        a, b = number(of(inner.left)), number(of(inner.right))
        if not (b.low == b.high != 0 and b.value is not None):
            return quotient(a, b, within)
    return number(of(inner))


def _beyond(x: Any, key: Any, kind: Type) -> Number:
    """On which side of its range a value is, if it is outside: what is no key."""
    side = None
    if not is_missing(x):
        least = x == kind.first if isinstance(kind, TimeType) else x.value == x.low
        side = Fraction(0 if not is_missing(key) else -1 if least else 1)
    return Number(side, Fraction(1), Fraction(-1), Fraction(1))


def placed(x: Number, edges: tuple[Fraction, ...]) -> int | None:
    """Which bin holds a number."""
    if x.value is None:
        return None
    ends = _to_units(edges, x.unit) if x.rounded else edges
    for i in range(len(ends) - 1):
        if ends[i] <= x.value < ends[i + 1]:
            return i
    return len(ends) - 2 if x.value == ends[-1] else None


@lru_cache(maxsize=1024)
def _to_units(edges: tuple[Fraction, ...], unit: Fraction) -> tuple[Fraction, ...]:
    return tuple(to_unit(edge, unit) for edge in edges)


def _case(node: e.Case, of: Callable[[e.Node], Any]) -> Any:
    values = [of(value) for _, value in node.branches] + ([] if node.otherwise is None else [of(node.otherwise)])
    chosen = len(node.branches) if node.otherwise is not None else None
    for i, (condition, _) in enumerate(node.branches):
        if of(condition) is True:
            chosen = i
            break
    if any(isinstance(value, Number) for value in values):
        parts = [number(value) for value in values]
        value = None if chosen is None else parts[chosen].value
        unit = common_unit(parts)
        low, high = min(p.low for p in parts), max(p.high for p in parts)
        return Number(value, unit, low, high, any(p.rounded for p in parts))
    return None if chosen is None else values[chosen]


def part_of(x: date, part: str) -> int:
    """A part of a date."""
    match part:
        case "quarter":
            return (x.month + 2) // 3
        case "weekday":
            return x.isoweekday()
    return int(getattr(x, part))


def cut(x: date, unit: str) -> date:
    """The start of a year, quarter, month, week, day or hour."""
    if isinstance(x, datetime):
        if unit == "hour":
            return x.replace(minute=0, second=0, microsecond=0)
        return datetime.combine(cut(x.date(), unit), datetime.min.time())
    match unit:
        case "year":
            return date(x.year, 1, 1)
        case "quarter":
            return date(x.year, (x.month - 1) // 3 * 3 + 1, 1)
        case "month":
            return date(x.year, x.month, 1)
        case "week":
            return date.fromordinal(max(1, x.toordinal() - x.weekday()))
    return x


def is_missing(value: Any) -> bool:
    """Whether there is no value."""
    return value is None or (isinstance(value, Number) and value.value is None)


# --- what a statement reads of a row --------------------------------------------------------------


def reading(tally: Tally, read: Read, types: e.Types) -> int | None:
    """What a tally reads of a row: a code, a place, or whether there is a value; None if that is missing."""
    match tally:
        case Rows():
            return 1
        case Distinct(Given(of)):
            value = evaluate(of, read, "value", types)
            value = value.value if isinstance(value, Number) else value
            return None if value is None else number_for(value)
        case Present(Given(of)):
            return int(not is_missing(evaluate(of, read, "value", types)))
        case At(Place(of)):
            return placed(number(evaluate(of.operand, read, "value", types)), of.edges)
        case Present(Code() as wanted) | Total(wanted) | Squares(wanted):
            return code(wanted, number(evaluate(wanted.expression, read, "value", types)).value)
    raise AssertionError(tally)


def number_for(value: Any) -> int:
    """A number that is the same for equal values only."""
    return int.from_bytes(blake2b(f"{type(value).__name__} {value}".encode("utf-8", "surrogatepass")).digest())


def adds(tally: Tally, value: int | None) -> int:
    """What a row adds to a tally, from what the tally reads of it."""
    match tally:
        case Present(Given()):
            return value or 0
        case Present():
            return int(value is not None)
        case At(_, index):
            return int(value == index)
        case Squares():
            return (value or 0) ** 2
    return value or 0
