"""Interval arithmetic on exact numbers: what a formula lies between, if its columns lie between their ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privet.exact import Exact, binary

_ROUNDED: dict[str, tuple[Callable[[Exact], int], Callable[[Exact], int]]] = {
    "floor": (math.floor, math.floor),
    "ceil": (math.ceil, math.ceil),
}


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers between two ends; None is an end that is not known.

    Claim: each operation contains every result for numbers of its operands, where there is one; between equal ends it
    is the exact result, or None where there is none.

    Example:
        >>> a, b = Interval(Exact(1), Exact(2)), Interval(Exact(-1), Exact(3))
        >>> a.combined("-", b), a.combined("*", b), a.combined("/", b)
        (Interval(low=Fraction(-2, 1), high=Fraction(3, 1)), Interval(low=Fraction(-2, 1), high=Fraction(6, 1)),
        Interval(low=None, high=None))
    """

    low: Exact | None
    high: Exact | None

    def combined(self, operator: str, other: Interval) -> Interval | None:
        """The sum, difference, product or quotient; None for a quotient by exactly 0."""
        match operator:
            case "+":
                return Interval(_sum(self.low, other.low), _sum(self.high, other.high))
            case "-":
                return Interval(_sum(self.low, _minus(other.high)), _sum(self.high, _minus(other.low)))
            case "*":
                return self._times(other)
        if other.low == other.high == 0:
            return None
        if other.low is None or other.high is None or other.low <= 0 <= other.high:
            return ANY
        return self._times(Interval(1 / other.high, 1 / other.low))

    def _times(self, other: Interval) -> Interval:
        for one, factor in ((self, other.low if other.low == other.high else None), (other, self._point())):
            if factor is not None:
                low, high = (None if end is None else end * factor for end in (one.low, one.high))
                if not factor:
                    return Interval(factor, factor)
                return Interval(low, high) if factor > 0 else Interval(high, low)
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return ANY
        products = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(products), max(products))

    def _point(self) -> Exact | None:
        return self.low if self.low == self.high else None

    def rounded(self, function: str, digits: int) -> Interval:
        """Rounded down, up or to digits, or the absolute value.

        To digits, ends are rounded outwards, so that the interval also contains the number before it was rounded.
        """
        if function == "abs":
            if self.low is not None and self.low >= 0:
                return self
            if self.high is not None and self.high <= 0:
                return Interval(-self.high, _minus(self.low))
            if self.low is None or self.high is None:
                return Interval(Exact(0), None)
            return Interval(Exact(0), max(-self.low, self.high))
        unit = Exact(10) ** digits
        down, up = _ROUNDED.get(function, (math.floor, math.ceil))
        if function == "round" and self._point() is not None:
            down = up = _half_away
        return Interval(
            None if self.low is None else Exact(down(self.low * unit)) / unit,
            None if self.high is None else Exact(up(self.high * unit)) / unit,
        )

    def clipped(self, lower: Exact, upper: Exact) -> Interval:
        """Clamped to bounds."""
        return Interval(
            lower if self.low is None else min(max(self.low, lower), upper),
            upper if self.high is None else min(max(self.high, lower), upper),
        )


ANY = Interval(None, None)
"""Any number."""


def ends(low: float, high: float) -> Interval | None:
    """The interval between two released numbers, which may be infinite; None if they are missing."""
    if low != low or high != high:  # not numbers
        return None
    return Interval(_end(low), _end(high))


def _end(x: float) -> Exact | None:
    return None if x in (math.inf, -math.inf) else binary(x)


def _sum(a: Exact | None, b: Exact | None) -> Exact | None:
    return None if a is None or b is None else a + b


def _minus(a: Exact | None) -> Exact | None:
    return None if a is None else -a


def _half_away(x: Exact) -> int:
    """The nearest integer; a half is rounded away from 0, as SQL does."""
    return math.floor(abs(x) + Exact(1, 2)) * (-1 if x < 0 else 1)
