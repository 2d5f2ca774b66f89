"""Certified reals: two rationals with the true number between them, from Arb's ball arithmetic."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from privet.errors import InternalError, NumberError
from privet.exact.rationals import Exact
from privet.exact.rounding import nearest, show

_FINEST = 2**16
_WIDEST = 2**26  # bits of a number that is rounded outward: e^(10^12) would fill the memory


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Two rationals with a real number between them.

    Claim: lower <= the real number <= upper. A comparison with a number is True only if it is certain.

    Example:
        >>> e = enclose(lambda: ball(Fraction(1)).exp())
        >>> e.lower < e.upper, float(e), e < 2.72, e > 2.72
        (True, 2.718281828459045, True, False)
    """

    lower: Exact
    upper: Exact

    def __lt__(self, number: Exact | float) -> bool:
        return self.upper < number

    def __le__(self, number: Exact | float) -> bool:
        return self.upper <= number

    def __gt__(self, number: Exact | float) -> bool:
        return self.lower > number

    def __ge__(self, number: Exact | float) -> bool:
        return self.lower >= number

    def __float__(self) -> float:
        return nearest((self.lower + self.upper) / 2)

    def __contains__(self, number: Exact) -> bool:
        return self.lower <= number <= self.upper

    def __repr__(self) -> str:
        return f"Enclosure({float(self)!r}, width {show(self.width, 2)})"

    @property
    def width(self) -> Exact:
        """The distance between the two ends."""
        return self.upper - self.lower


_precision_lock = threading.RLock()


def _renew_lock() -> None:
    global _precision_lock
    _precision_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """A block in which Arb computes with this many bits; one thread at a time, because Arb's setting is global."""
    with _precision_lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def ball(number: Exact | int) -> arb:
    """The rational as an Arb ball, at the precision of the block."""
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
        raise NumberError("a number such as e^epsilon is too large to represent. Choose a smaller epsilon")
    if exponent + mantissa.bit_length() < -_FINEST:  # too close to 0 for its digits to matter
        return Fraction(0) if mantissa >= 0 else -Fraction(1, 1 << _FINEST)
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def enclose(evaluate: Callable[[], Any], *, bits: int = 64) -> Enclosure:
    """Evaluate an Arb expression with increasing precision until its relative width is below 2^-bits.

    A number that stays indistinguishable from zero is returned once it is known to 2^-4096.
    """
    for extra in (32, 64, 128, 512, 2048, 8192, 32768, 131072):
        with precision(bits + extra):
            real = evaluate()
            if real.is_finite() and (real.rel_accuracy_bits() >= bits or real.is_exact()):
                return ends(real)
            if extra >= 8192 and real.is_finite():
                enclosure = ends(real)
                if enclosure.width < Fraction(1, 2**4096):
                    return enclosure
    raise InternalError("an Arb enclosure did not shrink. This is probably a bug in Privet")


def floor(evaluate: Callable[[], Any]) -> int:
    """The floor of an irrational Arb expression, evaluated with increasing precision until it is certain.

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
    raise InternalError("the floor of an Arb expression stayed uncertain. This is probably a bug in Privet")


def rounded_up(evaluate: Callable[[], Any], bits: int) -> Exact:
    """The smallest multiple of 2^-bits that is not smaller than an irrational Arb expression.

    Claim: it depends on the number alone, not on how it is enclosed, so that every machine finds the same.

    Example:
        >>> rounded_up(lambda: ball(Fraction(2)).sqrt(), 4)
        Fraction(23, 16)
    """
    for extra in (64, 128, 256, 1024, 4096, 16384, 65536, 262144):
        with precision(bits + extra):
            real = evaluate()
            if real.is_finite():
                above = [_steps_up(end, bits) for end in (real.lower(), real.upper())]
                if above[0] == above[1]:
                    return Fraction(above[0], 1 << bits)
    raise InternalError("a number could not be rounded with certainty. This is probably a bug in Privet")


def _steps_up(point: arb, bits: int) -> int:
    """The smallest number of steps of 2^-bits that reaches a dyadic number."""
    mantissa, exponent = map(int, point.man_exp())
    shift = exponent + bits
    if shift >= 0:
        return mantissa << shift
    return -(-mantissa >> -shift)


def less(evaluate: Callable[[], Any], bound: Exact) -> bool:
    """Whether an Arb expression, which must not equal `bound`, is less than it; uses as many bits as necessary.

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
    raise InternalError("two numbers could not be compared. This is probably a bug in Privet")


def exp(number: Exact) -> Enclosure:
    """e^number, enclosed to 2^-64 of itself.

    Example:
        >>> float(exp(Fraction(1)))
        2.718281828459045
    """
    return Enclosure(Fraction(1), Fraction(1)) if number == 0 else enclose(lambda: ball(number).exp())
