"""Exact numbers as floats, as text, or shortened, rounded in the direction of the function's name."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal, Inexact
from fractions import Fraction

from privet.exact.rationals import Exact


def down(number: Exact) -> float:
    """The greatest float that is not greater than `number`.

    Example:
        >>> down(Fraction(1, 3)) < up(Fraction(1, 3)), down(Fraction(1, 2))
        (True, 0.5)
    """
    return quotient_down(number.numerator, number.denominator)


def up(number: Exact) -> float:
    """The smallest float that is not smaller than `number`."""
    return quotient_up(number.numerator, number.denominator)


def quotient_down(p: int, q: int) -> float:
    """`down` of p / q, for q > 0, without creating a fraction, which would be slower."""
    return 0.0 - quotient_up(-p, q)  # so that 0 gives 0.0, not -0.0


def quotient_up(p: int, q: int) -> float:
    """`up` of p / q, for q > 0."""
    try:
        rounded = p / q
    except OverflowError:
        return math.inf if p > 0 else -math.nextafter(math.inf, 0)
    n, d = rounded.as_integer_ratio()
    return math.nextafter(rounded, math.inf) if n * q < p * d else rounded


def nearest(number: Exact | int) -> float:
    """The float nearest to `number`, infinite if out of range."""
    return quotient_nearest(number.numerator, number.denominator)


def quotient_nearest(p: int, q: int) -> float:
    """`nearest` of p / q, for q > 0."""
    try:
        return p / q
    except OverflowError:
        return math.inf if p > 0 else -math.inf


def show(number: Exact | float, digits: int = 6, *, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number as a person writes it: exact if that is short, otherwise with `digits` significant digits.

    Example:
        >>> show(Fraction(1, 10)), show(Fraction(200_000)), show(Fraction(1, 3)), show(Fraction(1, 10**9))
        ('0.1', '200000', '0.333333', '1e-9')
    """
    if isinstance(number, float):
        return f"{number:.{digits}g}"
    if number.denominator == 1 and abs(number) < 10**15:
        return str(number.numerator)
    decimal, _ = _decimal(number, digits, rounding)
    return f"{decimal:f}" if -5 < decimal.adjusted() < 15 else f"{decimal:e}".replace("e+", "e")


def literal(number: Exact) -> str:
    """The exact number, as it can be written in a call.

    Example:
        >>> literal(Fraction("1234567.25")), literal(Fraction(1, 3))
        ('1234567.25', '"1/3"')
    """
    decimal, exactly = _decimal(number, 17, ROUND_HALF_EVEN)
    if exactly and abs(decimal.adjusted()) < 17:
        return f"{decimal:f}"
    return f'"{number.numerator}/{number.denominator}"' if number.denominator != 1 else str(number.numerator)


def _decimal(number: Exact, digits: int, rounding: str) -> tuple[Decimal, bool]:
    """The number with this many digits, and whether it is exact, regardless of the user's decimal context."""
    context = Context(digits, rounding, MIN_EMIN, MAX_EMAX, traps=[])
    decimal = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return decimal.normalize(context), not context.flags[Inexact]


def show_up(number: Exact, digits: int = 6) -> str:
    """The same, rounded up, so that a promise is never shown smaller than it is.

    Example:
        >>> show_up(Fraction("0.1000001")), show_up(Fraction(1, 10))
        ('0.100001', '0.1')
    """
    return show(number, digits, rounding=ROUND_CEILING)


def shorter_up(number: Exact) -> Exact:
    """A short number that is not smaller: itself, or a multiple of 2^-320 if its denominator has over 256 bits.

    Example:
        >>> shorter_up(Fraction(1, 3)), 0 < shorter_up(Fraction(1, 3**999)) - Fraction(1, 3**999) < Fraction(1, 2**320)
        (Fraction(1, 3), True)
    """
    n, d = number.as_integer_ratio()
    return number if d.bit_length() <= 256 else Fraction(-((-n << 320) // d), 1 << 320)


def six_digits_up(number: Exact) -> Exact:
    """The number with six significant digits, rounded up; it must be greater than 0.

    Example:
        >>> six_digits_up(Fraction(1, 3)), six_digits_up(Fraction(1234567))
        (Fraction(166667, 500000), Fraction(1234570, 1))
    """
    digit = Exact(1)
    while number < 10**5 * digit:
        digit /= 10
    while number >= 10**6 * digit:
        digit *= 10
    return math.ceil(number / digit) * digit


def add_up(a: Exact, b: Exact) -> Exact:
    """shorter_up(a + b) in integer arithmetic, because a ledger adds long histories at every start.

    Example:
        >>> add_up(Fraction(1, 3), Fraction(1, 6))
        Fraction(1, 2)
    """
    (n, d), (m, e) = a.as_integer_ratio(), b.as_integer_ratio()
    total = Fraction(n + m, d) if d == e else Fraction(n * e + m * d, d * e)
    return total if total.denominator.bit_length() <= 256 else shorter_up(total)


def at_most(a: Exact, b: Exact) -> bool:
    """A <= b in integer arithmetic, for the same reason.

    Example:
        >>> at_most(Fraction(1, 3), Fraction(1, 3)), at_most(Fraction(1, 2), Fraction(1, 3))
        (True, False)
    """
    (n, d), (m, e) = a.as_integer_ratio(), b.as_integer_ratio()
    return n * e <= m * d


def sqrt_up(number: Exact, bits: int = 96) -> Exact:
    """A rational not smaller than the square root, exact for perfect squares, otherwise within 2^-bits.

    Example:
        >>> sqrt_up(Fraction(9, 4)), 0 < sqrt_up(Fraction(2)) ** 2 - 2 < Fraction(1, 2**64)
        (Fraction(3, 2), True)
    """
    p, q = number.numerator, number.denominator
    root = math.isqrt(p * q)
    if root * root == p * q:
        return Fraction(root, q)
    return Fraction(math.isqrt((p * q) << (2 * bits)) + 1, q << bits)
