"""Expressions evaluated on one row, in fractions, by the written rules of numbers: slow, obvious, without any SQL.

Nothing of the library's typing is used: units and bounds are worked out again here. A number is a multiple of a public
unit, inside public bounds. What takes more than 126 bits is not covered: those rules have tests of their own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from functools import reduce
from typing import Any

from privet.exact.lattice import Bounds
from privet.tables import expressions as e
from privet.tables.rules import as_number
from privet.tables.schema import Column
from privet.tables.statement import At, Code, Given, Place, Present, Rows, Squares, Tally, Total
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType

Read = Callable[[str, str], Any]
"""The value of a column, as a "value" or as a "key"."""

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A number that may be missing, with what is public about it."""

    value: Fraction | None
    unit: Fraction
    low: Fraction
    high: Fraction
    rounded: bool = False

    @property
    def largest(self) -> Fraction:
        return max(abs(self.low), abs(self.high))


def half_up(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))


def to_unit(x: Fraction, unit: Fraction) -> Fraction:
    return half_up(x / unit) * unit


def gcd(*numbers: Fraction) -> Fraction:
    def two(a: Fraction, b: Fraction) -> Fraction:
        while b:
            a, b = b, a % b
        return a

    return reduce(two, [abs(n) for n in numbers if n], Fraction(0)) or Fraction(1)


def power_of_two(at_most: Fraction) -> Fraction:
    power = Fraction(1)
    while power > at_most:
        power /= 2
    while power * 2 <= at_most:
        power *= 2
    return power


def constant(x: Fraction) -> Number:
    return Number(x, abs(x) or Fraction(1), x, x)


# --- leaves -----------------------------------------------------------------------------------------------


def leaf(column: Column, raw: Any, mode: str) -> Any:
    """A declared column from what the source holds: a float, an integer, a text, a date; None or NaN is missing."""
    missing = raw is None or raw != raw
    match column.type:
        case NumberType() as kind:
            found = _declared(kind)
            if missing:
                default = column.default
                return found if default is None else replace(found, value=Fraction(default))
            return replace(found, value=_read(kind, found, raw, mode))
        case BooleanType():
            return column.default if missing else raw
        case KeyType() as kind:
            if isinstance(raw, float) and math.isfinite(raw) and raw == int(raw):
                raw = int(raw)
            return None if missing else raw if raw in kind.values else kind.other
        case TextType():
            return raw
        case TimeType() as kind:
            if missing:
                return None
            if kind.first <= raw <= kind.last:
                return raw
            return None if mode == "key" else min(max(raw, kind.first), kind.last)


def _declared(kind: NumberType) -> Number:
    low, high = kind.lower, kind.upper
    if kind.step is not None:
        return Number(None, gcd(low, kind.step), low, low + (high - low) // kind.step * kind.step)
    if kind.integer:
        return Number(None, Fraction(1), low, high)
    if low == high:
        return Number(None, abs(low) or Fraction(1), low, high)
    unit = power_of_two((high - low) / 2**32)
    return Number(None, unit, to_unit(low, unit), to_unit(high, unit), rounded=True)


def _read(kind: NumberType, found: Number, raw: Any, mode: str) -> Fraction | None:
    infinite = isinstance(raw, float) and math.isinf(raw)
    if infinite:
        return None if mode == "key" else found.high if raw > 0 else found.low
    x = Fraction(raw)
    if kind.step is not None:
        if mode == "key" and not _within(kind, raw):
            return None
        if isinstance(raw, float) and (kind.step.denominator & (kind.step.denominator - 1) or kind.lower % kind.step):
            with_floats = (raw - float(kind.lower)) / float(kind.step)  # as IEEE 754 says
            if math.isinf(with_floats):
                return found.high if with_floats > 0 else found.low
            steps = half_up(Fraction(with_floats))
        else:
            steps = half_up((x - kind.lower) / kind.step)
        return min(max(kind.lower + steps * kind.step, found.low), found.high)
    near = to_unit(x, found.unit)
    inside = found.low <= near <= found.high if kind.integer else _within(kind, raw)
    if mode == "key" and not inside:
        return None
    return min(max(near, found.low), found.high)


def _within(kind: NumberType, raw: Any) -> bool:
    """Whether a value is inside the bounds; a float is compared with the floats that they are written as."""
    if isinstance(raw, float):
        return float(kind.lower) <= raw <= float(kind.upper)
    return kind.lower <= Fraction(raw) <= kind.upper


# --- expressions --------------------------------------------------------------------------------------------


def number(x: Any) -> Number:
    """A number as it is; a boolean as 0 or 1."""
    if isinstance(x, Number):
        return x
    return Number(None if x is None else Fraction(x), Fraction(1), Fraction(0), Fraction(1))


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
            return _arithmetic(sign, number(a), number(b))
        case e.Rounded(function, inner):
            x = number(of(inner))
            if function == "abs":
                low = max(x.low, -x.high, Fraction(0))
                return Number(None if x.value is None else abs(x.value), x.unit, low, x.largest, x.rounded)
            how = math.floor if function == "floor" else math.ceil
            if x.unit.denominator == 1:
                return replace(x, rounded=False)
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
            found = [compare("==", x, evaluate(v, read, mode, types)) for v in listed]
            return None if None in found else any(found)
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
    raise AssertionError(node)


def placed(x: Number, edges: tuple[Fraction, ...]) -> int | None:
    """Which bin holds a number."""
    if x.value is None:
        return None
    ends = [to_unit(edge, x.unit) if x.rounded else edge for edge in edges]
    for i in range(len(ends) - 1):
        if ends[i] <= x.value < ends[i + 1]:
            return i
    return len(ends) - 2 if x.value == ends[-1] else None


def _arithmetic(sign: str, a: Number, b: Number) -> Number:
    rounded = a.rounded or b.rounded
    gone = a.value is None or b.value is None
    x, y = a.value or Fraction(0), b.value or Fraction(0)
    if sign in ("+", "-"):
        if sign == "-":
            b, y = Number(b.value, b.unit, -b.high, -b.low, b.rounded), -y
        made = Number(x + y, gcd(*(p.unit for p in (a, b) if p.largest)), a.low + b.low, a.high + b.high, rounded)
    elif sign == "/" and not (b.low == b.high != 0 and b.value is not None):
        return _quotient(a, b)
    else:
        if sign == "/":
            y, b = 1 / y, constant(1 / y)
        ends = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
        made = Number(x * y, a.unit * b.unit, min(ends), max(ends), rounded)
    return replace(made, value=None) if gone else made


def _clipped(inner: e.Node, of: Callable[[e.Node], Any], types: e.Types, within: Fraction) -> Number:
    """What a clip clips: a quotient as finely as that needs."""
    if isinstance(inner, e.Arithmetic) and inner.operator == "/":
        a, b = number(of(inner.left)), number(of(inner.right))
        if not (b.low == b.high != 0 and b.value is not None):
            return _quotient(a, b, within)
    return number(of(inner))


def _quotient(a: Number, b: Number, within: Fraction | None = None) -> Number:
    divisors = [d for d in (b.low, b.high, -b.unit, b.unit) if d and b.low <= d <= b.high]
    if not divisors or not a.largest:
        gone = a.value is None or not b.value
        return Number(None if gone else Fraction(0), Fraction(1), Fraction(0), Fraction(0))
    ends = [x / d for x in (a.low, a.high) for d in divisors]
    fine = a.largest / (b.largest * 2**32)
    unit = a.unit / b.unit
    unit *= power_of_two((fine if not within else min(fine, within / 2**32)) / unit)
    while max(map(abs, ends)) / unit >= (2**124 if within else 2**62 - 2):
        unit *= 2
    value = None if a.value is None or not b.value else to_unit(a.value / b.value, unit)
    return Number(value, unit, to_unit(min(ends), unit), to_unit(max(ends), unit), rounded=True)


def compare(sign: str, a: Any, b: Any) -> bool | None:
    """Two values; a constant is rounded as the number beside it was."""
    if isinstance(a, Number) or isinstance(b, Number):
        a, b = (x if isinstance(x, Number) else constant(Fraction(x)) if x is not None else None for x in (a, b))
        if a is None or b is None or a.value is None or b.value is None:
            return None
        x, y = a.value, b.value
        if b.low == b.high and a.rounded and a.low < a.high:
            y = to_unit(y, a.unit)
        if a.low == a.high and b.rounded and b.low < b.high:
            x = to_unit(x, b.unit)
        return bool(COMPARE[sign](x, y))
    if a is None or b is None:
        return None
    if isinstance(a, date) and isinstance(a, datetime) != isinstance(b, datetime):
        a, b = (x if isinstance(x, datetime) else datetime(x.year, x.month, x.day) for x in (a, b))
    return bool(COMPARE[sign](a, b))


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
        unit = gcd(*(p.unit for p in parts if p.largest))
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


# --- what a person's rows come to ---------------------------------------------------------------------------

CEILING = 2**40


def of_person(function: str, values: list[Any], sample: Any) -> Number:
    """The count, sum, mean, least or greatest of some values; `sample` is one of the kind, missing or not."""
    if function == "count":
        many = sum(not (v is None or (isinstance(v, Number) and v.value is None)) for v in values)
        return Number(Fraction(many), Fraction(1), Fraction(0), Fraction(CEILING))
    kind = number(sample)
    held = [v.value for v in map(number, values) if v.value is not None]
    if function == "sum":
        low, high = min(kind.low, Fraction(0)) * CEILING, max(kind.high, Fraction(0)) * CEILING
        return Number(sum(held, Fraction(0)) if held else None, kind.unit, low, high, kind.rounded)
    if function in ("min", "max"):
        return replace(kind, value=(min if function == "min" else max)(held) if held else None)
    unit = kind.unit
    while kind.low < kind.high and unit > (kind.high - kind.low) / 2**32:
        unit /= 2
    while kind.largest / unit >= 2**62 - 1:
        unit *= 2
    value = to_unit(sum(held, Fraction(0)) / len(held), unit) if held else None
    return Number(value, unit, to_unit(kind.low, unit), to_unit(kind.high, unit), rounded=True)


# --- tallies ------------------------------------------------------------------------------------------------


def adds(tally: Tally, read: Read, types: e.Types) -> int:
    """What one row adds to a tally."""
    match tally:
        case Rows():
            return 1
        case Present(Given(of)):
            found = evaluate(of, read, "value", types)
            return int(not (found is None or (isinstance(found, Number) and found.value is None)))
        case At(Place(of), index):
            return int(placed(number(evaluate(of.of, read, "value", types)), of.edges) == index)
        case Present(Code() as code_) | Total(code_) | Squares(code_):
            v = code(code_, number(evaluate(code_.of, read, "value", types)).value)
            if isinstance(tally, Present):
                return int(v is not None)
            return (v or 0) ** (2 if isinstance(tally, Squares) else 1)
    raise AssertionError(tally)


def code(of: Code, value: Fraction | None) -> int | None:
    """The lattice code of a value."""
    if value is None:
        return None if of.missing else 0
    return min(max(half_up((value - of.lower) / of.step), 0), of.width)


# --- short forms --------------------------------------------------------------------------------------------


def holds(node: e.Node) -> Total:
    """The number of rows where a condition is true."""
    return Total(Code(node, Fraction(0), Fraction(1), 1, True))


def present(node: e.Node) -> Present:
    """The number of rows with a value."""
    return Present(Given(node))


def total(node: e.Node, lower: Any, step: Any, width: int) -> Total:
    """The sum of codes."""
    return Total(Code(node, Fraction(lower), Fraction(step), width, True))


def squares(node: e.Node, lower: Any, step: Any, width: int) -> Squares:
    """The sum of squared codes."""
    return Squares(Code(node, Fraction(lower), Fraction(step), width, True))


def lattice(node: e.Node, types: e.Types) -> Bounds:
    """A lattice that an expression can be summed on, bounds or not."""
    kind = as_number(node.type(types), "test")
    if kind.wide:  # any lattice of whole units will do
        return Bounds(-(2**20) * kind.unit, 2**20 * kind.unit, step=3 * kind.unit)
    return kind.bounds()


def summed(node: e.Node, types: e.Types) -> tuple[Total, Squares]:
    """The sum and the sum of squares of an expression, whatever its size."""
    kind = as_number(node.type(types), "test")
    held, each = kind.range, 1
    while held.most - held.least > 2**40 * each:
        each *= 2
    read = Code(node, held.unit * held.least, held.unit * each, max(1, (held.most - held.least) // each), True)
    return Total(read), Squares(read)
