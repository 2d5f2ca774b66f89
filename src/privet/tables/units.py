"""Numbers as integers: a public unit u times a private integer n in public bounds.

Every number in an expression is u n. Its type (`NumberType`) contains u and the range of n; the rules here give the
unit of a result, and the integers by which an engine computes it. What these rules prove is what runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from privet.errors import QueryError, write
from privet.exact import Exact
from privet.exact.lattice import power_of_two_below, to_steps

LIMIT = 2**126
"""Every integer that an expression computes is smaller: 128-bit integers and decimal(38,0) hold it."""

LARGEST = Exact(2) ** 900
"""Numbers beyond this are refused."""

NARROW = 2**62
"""Integers below this are held in 64 bits: two of them can be added or subtracted without overflow."""

FINE = 32
"""The minimum bits of a rounded result, as in a column with the default step."""

_LONGEST = 1024


def common(*numbers: Exact) -> Exact:
    """The greatest rational of which all of these are whole multiples; zeros are ignored.

    Example:
        >>> common(Exact(1, 4), Exact(1, 10)), common(Exact(0), Exact(6))
        (Fraction(1, 20), Fraction(6, 1))
    """
    some = [n for n in numbers if n]
    if not some:
        return Exact(1)
    bottom = math.lcm(*(n.denominator for n in some))
    return Exact(math.gcd(*(n.numerator * (bottom // n.denominator) for n in some)), bottom)


def shifted(n: int, places: int) -> int:
    """Divides n by 2^places, rounding half up.

    Example:
        >>> shifted(5, 1), shifted(-5, 1), shifted(7, 0)
        (3, -2, 7)
    """
    return n if places == 0 else (n + (1 << places - 1)) >> places


@dataclass(frozen=True, slots=True)
class Range:
    """The integers of a number: u times least..most."""

    unit: Exact
    least: int
    most: int

    @property
    def largest(self) -> int:
        """The greatest absolute value of n."""
        return max(abs(self.least), abs(self.most))

    @property
    def reach(self) -> Exact:
        """The greatest absolute value of the number."""
        return self.unit * self.largest

    @property
    def constant(self) -> Exact | None:
        """The number, if it has only one value and so is public."""
        return self.unit * self.least if self.least == self.most else None

    def coarser(self, places: int) -> Range:
        """The range after rounding n to multiples of 2^places."""
        return Range(self.unit * 2**places, shifted(self.least, places), shifted(self.most, places))


def sized(number: Range) -> Range:
    """The same range, if its numbers are small enough to compute with and to write."""
    if (
        max(number.unit.numerator.bit_length(), number.unit.denominator.bit_length()) > _LONGEST
        or number.reach > LARGEST
    ):
        raise _too_precise()
    return number


def _too_precise() -> QueryError:
    return QueryError(
        "this expression needs numbers that are too large or too precise",
        remedy=write(
            'pv.col("income").clip(0, 200_000)',
            sql="CLIP(income, 0, 200000)",
            advice="Clip its inputs, or use a coarser unit",
        ),
    )


# --- two numbers ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Together:
    """Two or more numbers in one unit: each n is rounded to 2^shift (0: unchanged), then multiplied by a factor."""

    unit: Exact
    shifts: tuple[int, ...]
    factors: tuple[int, ...]
    parts: tuple[Range, ...]
    """The operands, in the common unit."""


@lru_cache(maxsize=4096)
def together(*parts: Range) -> Together:
    """Numbers in their common unit; if that takes too many bits, those with the finest unit are rounded.

    Claim: without shifts the values are the same. Otherwise each moves by at most its unit * 2^(shift - 1), which is
    below 2^-32 of the largest of them; if it would not be, as with units of 1/p and 1/q for long p and q, the sum is
    refused.
    """
    reach = max(part.reach for part in parts)
    parts = tuple(_rounded_constant(part, parts) for part in parts)
    shifts = [0] * len(parts)
    while True:
        rounded = [part.coarser(shift) for part, shift in zip(parts, shifts, strict=True)]
        some = [part for part in rounded if part.largest]
        unit = common(*(part.unit for part in some))
        factors = tuple(int(part.unit / unit) if part.largest else 1 for part in rounded)
        if sum(part.largest * f for part, f in zip(rounded, factors, strict=True)) < LIMIT // 2:
            break
        finest = min(part.unit for part in some)
        shifts = [s + (part.unit == finest) for s, part in zip(shifts, rounded, strict=True)]
        if finest * 2 ** (FINE + 1) > reach:
            raise QueryError(
                "these numbers have steps that can't be combined exactly",
                remedy=write(
                    '(pv.col("rate") * 1000).floor() / 1000',
                    sql="FLOOR(rate * 1000) / 1000",
                    advice="Round one of them first",
                ),
            )
    operands = tuple(Range(unit, f * part.least, f * part.most) for part, f in zip(rounded, factors, strict=True))
    return Together(sized(Range(unit, 0, 0)).unit, tuple(shifts), factors, operands)


def exactly(a: Range, b: Range) -> bool:
    """Whether two numbers have a common unit that represents both exactly, as a test for equality needs."""
    parts = [part for part in (a, b) if part.largest]
    unit = common(*(part.unit for part in parts))
    return sum((part.reach / unit for part in parts), Exact(0)) < LIMIT // 8


def _rounded_constant(part: Range, among: tuple[Range, ...]) -> Range:
    """A constant whose own unit would take too many bits, rounded to a 2^16th of the others' unit."""
    value = part.constant
    others = [other for other in among if other.constant is None]
    if value is None or not others:
        return part
    unit = common(*(other.unit for other in others))
    finest = common(unit, part.unit)
    if (max(other.reach for other in others) + abs(value)) / finest < LIMIT // 8:
        return part
    fine = unit / 2**16
    return Range(fine, to_steps(value, fine), to_steps(value, fine))


@dataclass(frozen=True, slots=True)
class Product:
    """u_a u_b times n_a n_b, after each n was rounded to 2^shift."""

    shifts: tuple[int, int]
    result: Range


def product(a: Range, b: Range) -> Product:
    """The product of two numbers; the longer operand is rounded if it would take more than 126 bits.

    Example:
        >>> product(Range(Exact(1, 2), 0, 3), Range(Exact(5), -1, 1)).result
        Range(unit=Fraction(5, 2), least=-3, most=3)
    """
    shifts = [0, 0]
    while a.coarser(shifts[0]).largest * b.coarser(shifts[1]).largest >= LIMIT:
        longer = 0 if a.coarser(shifts[0]).largest >= b.coarser(shifts[1]).largest else 1
        shifts[longer] += 1
    x, y = a.coarser(shifts[0]), b.coarser(shifts[1])
    ends = [m * n for m in (x.least, x.most) for n in (y.least, y.most)]
    return Product((shifts[0], shifts[1]), sized(Range(x.unit * y.unit, min(ends), max(ends))))


@dataclass(frozen=True, slots=True)
class Quotient:
    """a / b as the nearest integer (halves up) to n_a top / (n_b bottom), after each n was rounded to 2^shift."""

    shifts: tuple[int, int]
    top: int
    bottom: int
    largest: int
    """The largest integer of the computation."""
    result: Range
    zero: bool
    """Whether the divisor can be 0: then the result can be missing, and has no bounds."""


def quotient(a: Range, b: Range, within: Exact | None = None) -> Quotient:
    """The quotient of two numbers, in steps of at most a 2^32nd of its size at the largest divisor.

    `within` is the size after a clip: then the steps are also at most a 2^32nd of that. The unit is that of a over
    that of b times a power of two, so it takes only a shift and a division.

    Claim: if b is not 0, |b| >= its unit, so the quotient is bounded; if b is 0, the quotient is missing.
    """
    if not _divisors(b) or not a.largest:
        return Quotient((0, 0), 0, 1, b.largest, Range(Exact(1), 0, 0), zero=b.least <= 0 <= b.most)
    shifts = [0, 0]
    while True:
        x, y = a.coarser(shifts[0]), b.coarser(shifts[1])
        divisors = _divisors(y)
        if not divisors or not x.largest:
            raise _too_precise()
        ends = [x.unit * n / (y.unit * d) for n in (x.least, x.most) for d in divisors]
        reach = max(map(abs, ends))
        fine = x.reach / (y.reach * 2**FINE)
        unit = x.unit / y.unit
        unit *= power_of_two_below((fine if within is None else min(fine, within / 2**FINE)) / unit)
        while reach / unit >= (NARROW - 2 if within is None else LIMIT // 4):
            unit *= 2
        ratio = x.unit / (y.unit * unit)
        largest = 2 * x.largest * ratio.numerator + 2 * y.largest * ratio.denominator
        if largest < LIMIT:
            break
        longer = 0 if x.largest * ratio.numerator >= y.largest * ratio.denominator else 1
        shifts[longer] += 1
    result = sized(Range(unit, to_steps(min(ends), unit), to_steps(max(ends), unit)))
    zero = y.least <= 0 <= y.most
    return Quotient((shifts[0], shifts[1]), ratio.numerator, ratio.denominator, largest, result, zero)


def _divisors(divisor: Range) -> list[int]:
    """The divisors at which a quotient is greatest or least: the ends of n below 0 and above 0."""
    ends = {divisor.least, min(divisor.most, -1)} if divisor.least < 0 else set()
    return sorted(ends | ({divisor.most, max(divisor.least, 1)} if divisor.most > 0 else set()))


# --- one number in another unit ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scaled:
    """n times top / bottom, rounded, after n was rounded to 2^shift."""

    shift: int
    top: int
    bottom: int


def to_whole(number: Range) -> Scaled:
    """How n becomes a number in units of 1, up to a division by `bottom`, which floor and ceil round in their own way.

    Claim: without a shift n is unchanged. Otherwise it moves by at most half of its new unit, which is below 2^-33 of
    the largest n; if it would not be, the expression is refused.
    """
    shift, unit = 0, number.unit
    while number.coarser(shift).largest * unit.numerator + unit.denominator >= LIMIT:
        shift, unit = shift + 1, unit * 2
        if unit * 2 ** (FINE + 1) > number.reach:
            raise _too_precise()
    return Scaled(shift, unit.numerator, unit.denominator)


def summable(number: Range, rows: int) -> int:
    """The number of bits that n must lose so that the sum over this many rows is below the limit."""
    bits = 0
    while number.coarser(bits).largest * rows >= LIMIT:
        bits += 1
    return bits


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a person's n as the nearest integer (halves up) to sum(n) top / (count bottom)."""

    shift: int
    top: int
    bottom: int
    result: Range


def mean(numbers: Range, rows: int) -> Mean:
    """The mean of up to this many numbers, in the finer of their unit and the default step of their range."""
    shift = summable(numbers, rows)
    while True:
        x = numbers.coarser(shift)
        unit = x.unit
        while x.least < x.most and unit > x.unit * (x.most - x.least) / 2**FINE:
            unit /= 2
        while x.reach / unit >= NARROW - 1:
            unit *= 2
        ratio = x.unit / unit
        if 2 * x.largest * rows * ratio.numerator + 2 * rows * ratio.denominator < LIMIT:
            break
        shift += 1
    result = sized(Range(unit, to_steps(x.unit * x.least, unit), to_steps(x.unit * x.most, unit)))
    return Mean(shift, ratio.numerator, ratio.denominator, result)
