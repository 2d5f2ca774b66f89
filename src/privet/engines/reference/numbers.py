"""Numbers as fractions, with what is public about each: a unit that divides it, and bounds.

Nothing of the library's typing is used: units and bounds are worked out again here, by the written rules. What would
take an SQL engine more than 126 bits, which it rounds, is refused.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from functools import reduce
from typing import Any

from privet.engines.base import Unsupported
from privet.tables.statement import Code

_LIMIT = 2**126
_HALF = Fraction(1, 2)
_CEILING = 2**40  # rows of a person
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Number:
    """A number that may be missing, with what is public about it."""

    value: Fraction | None
    unit: Fraction
    low: Fraction
    high: Fraction
    rounded: bool = False

    @property
    def largest(self) -> Fraction:
        """The greatest size that it can have."""
        return max(abs(self.low), abs(self.high))


def half_up(x: Fraction) -> int:
    """The nearest integer, halves up."""
    return math.floor(x + _HALF)


def to_unit(x: Fraction, unit: Fraction) -> Fraction:
    """The nearest multiple of a unit, halves up."""
    return half_up(x / unit) * unit


def gcd(*numbers: Fraction) -> Fraction:
    """The greatest fraction of which all are multiples; 1 if all are 0."""

    def two(a: Fraction, b: Fraction) -> Fraction:
        while b:
            a, b = b, a % b
        return a

    return reduce(two, [abs(n) for n in numbers if n], Fraction(0)) or Fraction(1)


def power_of_two(at_most: Fraction) -> Fraction:
    """The greatest power of two that is not above."""
    power = Fraction(1)
    while power > at_most:
        power /= 2
    while power * 2 <= at_most:
        power *= 2
    return power


def constant(x: Fraction) -> Number:
    """A public number."""
    return Number(x, abs(x) or Fraction(1), x, x)


def fits(bits: Fraction, limit: int = _LIMIT) -> None:
    """Refuse what an SQL engine would round."""
    if bits >= limit:
        raise Unsupported("a number takes more than 126 bits, and the reference engine does not round it as others do")


def common_unit(parts: Sequence[Number]) -> Fraction:
    """The unit of several numbers together."""
    unit = gcd(*(part.unit for part in parts if part.largest))
    fits(sum((part.largest for part in parts), Fraction(0)) / unit, _LIMIT // 8)
    return unit


def number(x: Any) -> Number:
    """A number as it is; a boolean as 0 or 1."""
    if isinstance(x, Number):
        return x
    return Number(None if x is None else Fraction(x), Fraction(1), Fraction(0), Fraction(1))


def combined(sign: str, a: Number, b: Number) -> Number:
    """A sum, difference, product or quotient."""
    rounded = a.rounded or b.rounded
    gone = a.value is None or b.value is None
    x, y = a.value or Fraction(0), b.value or Fraction(0)
    if sign in ("+", "-"):
        if sign == "-":
            b, y = Number(b.value, b.unit, -b.high, -b.low, b.rounded), -y
        result = Number(x + y, common_unit((a, b)), a.low + b.low, a.high + b.high, rounded)
    elif sign == "/" and not (b.low == b.high != 0 and b.value is not None):
        return quotient(a, b)
    else:
        if sign == "/":
            y, b = 1 / y, constant(1 / y)
        ends = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
        fits(a.largest / a.unit * (b.largest / b.unit))
        result = Number(x * y, a.unit * b.unit, min(ends), max(ends), rounded)
    return replace(result, value=None) if gone else result


def quotient(a: Number, b: Number, within: Fraction | None = None) -> Number:
    """The quotient in the unit that the rules give it; `within` is what a clip leaves of it."""
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
    ratio = a.unit / (b.unit * unit)
    fits(2 * a.largest / a.unit * ratio.numerator + 2 * b.largest / b.unit * ratio.denominator)
    value = None if a.value is None or not b.value else to_unit(a.value / b.value, unit)
    return Number(value, unit, to_unit(min(ends), unit), to_unit(max(ends), unit), rounded=True)


def compare(sign: str, a: Any, b: Any) -> bool | None:
    """Two values; a constant is rounded as the number beside it was."""
    if isinstance(a, Number) or isinstance(b, Number):
        a, b = (x if isinstance(x, Number) else constant(Fraction(x)) if x is not None else None for x in (a, b))
        if a is None or b is None:
            return None
        if a.low < a.high and b.low < b.high:
            common_unit((a, b))
        if a.value is None or b.value is None:
            return None
        x, y = a.value, b.value
        if b.low == b.high and a.rounded and a.low < a.high:
            y = to_unit(y, a.unit)
        if a.low == a.high and b.rounded and b.low < b.high:
            x = to_unit(x, b.unit)
        return bool(_COMPARE[sign](x, y))
    if a is None or b is None:
        return None
    if isinstance(a, date) and isinstance(a, datetime) != isinstance(b, datetime):
        a, b = (x if isinstance(x, datetime) else datetime(x.year, x.month, x.day) for x in (a, b))
    return bool(_COMPARE[sign](a, b))


def of_person(function: str, values: list[Any], sample: Any) -> Number:
    """The count, sum, mean, least or greatest of some values; `sample` is one of the kind, missing or not."""
    if function == "count":
        many = sum(not (v is None or (isinstance(v, Number) and v.value is None)) for v in values)
        return Number(Fraction(many), Fraction(1), Fraction(0), Fraction(_CEILING))
    kind = number(sample)
    held = [v.value for v in map(number, values) if v.value is not None]
    if function == "sum":
        fits(kind.largest / kind.unit * _CEILING)
        low, high = min(kind.low, Fraction(0)) * _CEILING, max(kind.high, Fraction(0)) * _CEILING
        return Number(sum(held, Fraction(0)) if held else None, kind.unit, low, high, kind.rounded)
    if function in ("min", "max"):
        return replace(kind, value=(min if function == "min" else max)(held) if held else None)
    unit = kind.unit
    while kind.low < kind.high and unit > (kind.high - kind.low) / 2**32:
        unit /= 2
    while kind.largest / unit >= 2**62 - 1:
        unit *= 2
    ratio = kind.unit / unit
    fits(2 * kind.largest / kind.unit * _CEILING * ratio.numerator + 2 * _CEILING * ratio.denominator)
    value = to_unit(sum(held, Fraction(0)) / len(held), unit) if held else None
    return Number(value, unit, to_unit(kind.low, unit), to_unit(kind.high, unit), rounded=True)


def code(of: Code, value: Fraction | None) -> int | None:
    """The lattice code of a value."""
    if value is None:
        return None if of.missing else 0
    return min(max(half_up((value - of.lower) / of.step), 0), of.width)
