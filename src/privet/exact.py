"""Exact numbers: the only place where a float becomes exact, or an exact number becomes a float.

Parameters (epsilon, delta, bounds, scales) are rationals. What is irrational (e^x, square roots) is
known by an `Enclosure`, two rationals with the true number between them, from Arb's ball arithmetic.
Rounding has a direction and the direction is in the name: `down`, `up`.
"""

from __future__ import annotations

import math
import numbers
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from privet.errors import InternalError, NumberError

Exact = Fraction
"""An exact rational number."""

Number = int | float | str | Decimal | Fraction
"""What users may write where a number is asked for; numpy scalars too."""

INFINITY = math.inf
"""The one value outside the rationals that a divergence can take."""

_DECIMAL = re.compile(r"[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE](?P<exponent>[+-]?\d{1,4}))?\Z")
_RATIO = re.compile(r"[+-]?\d+/\d+\Z")
_LONGEST = 400  # characters of a number's text, and the largest power of ten in it
_FINEST = 2**16
_WIDEST = 2**26  # bits of a number that was rounded outward: e^(10^12) would fill the memory


def exact(value: object, *, name: str = "number", example: str | None = None) -> Exact:
    """The rational that a person means by `value`.

    Claim: a float means its shortest decimal (the one that Python prints), so ten times 0.1 is 1; a
    numpy scalar means its own shortest decimal; int, str ("0.1", "1/3"), Decimal and Fraction are
    taken as they are. NaN, infinities, bools and other text are refused.

    Example:
        >>> exact(0.1), exact("1/3"), 10 * exact(0.1) == 1
        (Fraction(1, 10), Fraction(1, 3), True)
        >>> exact(float("nan"), name="epsilon", example="epsilon=0.5")
        Traceback (most recent call last):
        privet.errors.NumberError: epsilon must be a number, not nan. Write, for example: epsilon=0.5
    """
    number = _parse(value)
    if number is None:
        raise _refusal(name, "a number", value, example)
    return number


def positive(value: object, *, name: str, example: str | None = None) -> Exact:
    """An exact number greater than zero.

    Example:
        >>> positive(0, name="epsilon", example="epsilon=0.5")
        Traceback (most recent call last):
        privet.errors.NumberError: epsilon must be a number greater than 0, not 0. Write, for example: epsilon=0.5
    """
    number = _parse(value)
    if number is None or number <= 0:
        raise _refusal(name, "a number greater than 0", value, example)
    return number


def nonnegative(value: object, *, name: str, example: str | None = None) -> Exact:
    """An exact number, zero or greater.

    Example:
        >>> nonnegative("1e-9", name="delta")
        Fraction(1, 1000000000)
    """
    number = _parse(value)
    if number is None or number < 0:
        raise _refusal(name, "a number, 0 or greater", value, example)
    return number


def probability(value: object, *, name: str, example: str | None = None) -> Exact:
    """An exact number strictly between 0 and 1, such as a confidence.

    Example:
        >>> probability(0.95, name="confidence")
        Fraction(19, 20)
    """
    number = _parse(value)
    if number is None or not 0 < number < 1:
        raise _refusal(name, "a number between 0 and 1, both excluded", value, example)
    return number


def whole(value: object, *, name: str, least: int = 1, example: str | None = None) -> int:
    """An integer, `least` or greater; 3.0 is 3, 2.5 is refused.

    Example:
        >>> whole(3.0, name="max_rows")
        3
    """
    number = _parse(value)
    if number is None or number.denominator != 1 or number < least:
        raise _refusal(name, f"a whole number, {least} or greater", value, example)
    return int(number)


def binary(value: float) -> Exact:
    """The exact value of a float that is data, not a parameter that a person wrote.

    Example:
        >>> binary(0.5), binary(0.1) == exact(0.1)
        (Fraction(1, 2), False)
    """
    return Fraction(value)


def _parse(value: object) -> Exact | None:
    if isinstance(value, bool):
        return None
    if type(value) is Fraction:
        return value
    if isinstance(value, Fraction):  # a subclass may compute otherwise
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if isinstance(value, Decimal):
        return _parse(str(value)) if value.is_finite() else None
    if isinstance(value, float):
        return Fraction(float.__repr__(value)) if math.isfinite(value) else None
    if isinstance(value, numbers.Real):  # numpy's other floats: str is their shortest decimal
        return _parse(str(value)) if math.isfinite(value) else None
    if isinstance(value, str):
        return _read(str.strip(value))
    return None


def _read(text: str) -> Exact | None:
    if len(text) > _LONGEST:
        return None
    found = _DECIMAL.match(text)
    if found is None and _RATIO.match(text) is None:
        return None
    if found is not None and abs(int(found["exponent"] or 0)) >= _LONGEST:
        return None
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _refusal(name: str, allowed: str, value: object, example: str | None) -> NumberError:
    try:
        shown = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # Python does not print integers of thousands of digits
        shown = "a number too long to print"
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    if not isinstance(value, str | numbers.Number | Decimal):
        shown = f"{shown} ({type(value).__name__})"
    line = f" Write, for example: {example}" if example else ""
    return NumberError(f"{name} must be {allowed}, not {shown}.{line}")


# --- out: directed rounding -------------------------------------------------------------------


def down(number: Exact) -> float:
    """The greatest float that is not greater than `number`.

    Example:
        >>> down(Fraction(1, 3)) < up(Fraction(1, 3)), down(Fraction(1, 2))
        (True, 0.5)
    """
    return 0.0 - up(-number)  # so that 0 gives 0.0, not -0.0


def up(number: Exact) -> float:
    """The smallest float that is not smaller than `number`."""
    try:
        rounded = number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.nextafter(math.inf, 0)
    return math.nextafter(rounded, math.inf) if Fraction(rounded) < number else rounded


def nearest(number: Exact) -> float:
    """The float nearest to `number`, infinite when out of range."""
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def show(number: Exact | float, digits: int = 6, *, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number as a person writes it: exact where that is short, else `digits` significant digits.

    Example:
        >>> show(Fraction(1, 10)), show(Fraction(200_000)), show(Fraction(1, 3)), show(Fraction(1, 10**9))
        ('0.1', '200000', '0.333333', '1e-9')
    """
    if isinstance(number, float):
        return f"{number:.{digits}g}"
    if number.denominator == 1 and abs(number) < 10**15:
        return str(number.numerator)
    with localcontext(prec=digits, rounding=rounding) as context:
        decimal = context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize()
        plain = -5 < decimal.adjusted() < 15
    return f"{decimal:f}" if plain else f"{decimal:e}".replace("e+", "e")


def show_up(number: Exact, digits: int = 6) -> str:
    """The same, rounded up: what is promised is never shown smaller than it is.

    Example:
        >>> show_up(Fraction("0.1000001")), show_up(Fraction(1, 10))
        ('0.100001', '0.1')
    """
    return show(number, digits, rounding=ROUND_CEILING)


def shorter_up(number: Exact) -> Exact:
    """A number that is not smaller, and short: itself, or a multiple of 2^-320 if its denominator has over 256 bits.

    Example:
        >>> shorter_up(Fraction(1, 3)), 0 < shorter_up(Fraction(1, 3**999)) - Fraction(1, 3**999) < Fraction(1, 2**320)
        (Fraction(1, 3), True)
    """
    if number.denominator.bit_length() <= 256:
        return number
    return Fraction(math.ceil(number * 2**320), 2**320)


def sqrt_up(number: Exact, bits: int = 96) -> Exact:
    """A rational not smaller than the square root, exact for perfect squares, else within 2^-bits.

    Example:
        >>> sqrt_up(Fraction(9, 4)), 0 < sqrt_up(Fraction(2)) ** 2 - 2 < Fraction(1, 2**64)
        (Fraction(3, 2), True)
    """
    p, q = number.numerator, number.denominator
    root = math.isqrt(p * q)
    if root * root == p * q:
        return Fraction(root, q)
    return Fraction(math.isqrt((p * q) << (2 * bits)) + 1, q << bits)


# --- certified reals --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Two rationals with a real number between them.

    Claim: lower <= the real number <= upper.

    Example:
        >>> e = enclose(lambda: ball(Fraction(1)).exp())
        >>> e.lower < e.upper, float(e)
        (True, 2.718281828459045)
    """

    lower: Exact
    upper: Exact

    def __float__(self) -> float:
        return nearest((self.lower + self.upper) / 2)

    def __contains__(self, number: Exact) -> bool:
        return self.lower <= number <= self.upper

    def __repr__(self) -> str:
        return f"Enclosure({float(self)!r}, width {show(self.width, 2)})"

    @property
    def width(self) -> Exact:
        """How far apart the two ends are."""
        return self.upper - self.lower


_precision_lock = threading.RLock()


def _renew_lock() -> None:
    global _precision_lock
    _precision_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Arb computes with this many bits inside the block; one thread at a time, since Arb's setting is global."""
    with _precision_lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def ball(number: Exact | int) -> arb:
    """The rational as an Arb ball, at the precision of the block."""
    number = Fraction(number)
    return arb(fmpq(number.numerator, number.denominator))


def ends(real: arb) -> Enclosure:
    """The two rational ends of an Arb ball.

    Example:
        >>> ends(ball(Fraction(1, 4)))
        Enclosure(0.25, width 0)
    """
    return Enclosure(_dyadic_down(real.lower()), -_dyadic_down(-real.upper()))


def _dyadic_down(point: arb) -> Exact:
    mantissa, exponent = map(int, point.man_exp())
    if exponent > _WIDEST:
        raise NumberError("a number such as e^epsilon is too large to write down; choose a smaller epsilon.")
    if exponent + mantissa.bit_length() < -_FINEST:  # too near to 0 for its digits to be of use to anybody
        return Fraction(0) if mantissa >= 0 else -Fraction(1, 1 << _FINEST)
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def enclose(evaluate: Callable[[], Any], *, bits: int = 64) -> Enclosure:
    """Evaluate an Arb expression with more and more bits until its relative width is below 2^-bits.

    A number that stays indistinguishable from zero is returned once it is known to 2^-4096.
    """
    for extra in (32, 64, 128, 512, 2048, 8192, 32768, 131072):
        with precision(bits + extra):
            real = evaluate()
            if real.is_finite() and (real.rel_accuracy_bits() >= bits or real.is_exact()):
                return ends(real)
            if extra >= 8192 and real.is_finite():
                found = ends(real)
                if found.width < Fraction(1, 2**4096):
                    return found
    raise InternalError("an Arb enclosure did not shrink; this is probably a bug in Privet")


def floor(evaluate: Callable[[], Any]) -> int:
    """The floor of an irrational Arb expression, evaluated with more and more bits until it is certain.

    Example:
        >>> floor(lambda: ball(Fraction(10)).exp())
        22026
    """
    bits = 128
    while bits < 1 << 22:
        with precision(bits):
            real = evaluate().floor()
            if real.is_finite() and real.is_exact():
                return int(real.fmpz())
        bits *= 2
    raise InternalError("the floor of an Arb expression stayed uncertain; this is probably a bug in Privet")


def less(evaluate: Callable[[], Any], bound: Exact) -> bool:
    """Whether an Arb expression, known not to equal `bound`, is less than it; decided with as many bits as that takes.

    Example:
        >>> less(lambda: ball(Fraction(1)).exp(), Fraction("2.718281828459046"))
        True
    """
    bits = 128
    while bits < 1 << 22:
        with precision(bits):
            real, limit = evaluate(), ball(bound)
            if real < limit:
                return True
            if real > limit:
                return False
        bits *= 2
    raise InternalError("two numbers could not be told apart; this is probably a bug in Privet")


def exp(number: Exact) -> Enclosure:
    """e^number, enclosed to 2^-64 of itself.

    Example:
        >>> float(exp(Fraction(1)))
        2.718281828459045
    """
    return Enclosure(Fraction(1), Fraction(1)) if number == 0 else enclose(lambda: ball(number).exp())
