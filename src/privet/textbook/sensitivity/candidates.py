"""Candidates for `search`: values near the bounds, and pairs of neighbours that change step by step.

Everything comes from a fixed enumeration (a hash of a counter), so a search is repeatable. There is no randomness, and
nothing here is ever used for noise.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from typing import Any

from privet.errors import DataError, write
from privet.exact import Exact, down, nearest, show, up

Rows = tuple[Any, ...]

ORDERS = 6
"""The maximum number of orders of the same rows that a grid tries."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one kind (float, int or Fraction) in [lower, upper].

    Example:
        >>> Values.between(Fraction(0), Fraction(1), float).at(Fraction(1, 4))
        0.25
    """

    kind: type[Any]
    lower: Any
    upper: Any

    @classmethod
    def between(cls, low: Exact, high: Exact, kind: type[Any]) -> Values:
        """The kind's own values between the bounds, which are rounded inwards."""
        if kind is float:
            first, last = up(low), down(high)
        elif kind is int:
            first, last = math.ceil(low), math.floor(high)
        elif kind is Fraction:
            return cls(kind, low, high)
        else:
            raise DataError(f"kind must be float, int or Fraction, not {kind!r}", remedy=write("kind=float"))
        if first > last:
            raise DataError(
                f"there are no {kind.__name__} values between {show(low)} and {show(high)}",
                remedy=write("kind=Fraction", exact=True),
            )
        return cls(kind, first, last)

    def at(self, part: Exact) -> Any:
        """The value at this fraction of the way from lower to upper."""
        return self._nearest(Fraction(self.lower) + part * (Fraction(self.upper) - Fraction(self.lower)))

    def halfway(self, value: Any, end: Any) -> Any:
        """The value in the middle of two."""
        return self._nearest((Fraction(value) + Fraction(end)) / 2)

    def beside(self, value: Any, step: int) -> Any:
        """The next value up (step 1) or down (step -1)."""
        if self.kind is float:
            return self._inside(math.nextafter(value, step * math.inf))
        return self._inside(value + step * ((self.upper - self.lower) / 2**20 if self.kind is Fraction else 1))

    def special(self) -> list[Any]:
        """The bounds, the values beside them, zeros, ones, and the smallest floats."""
        low, high = self.lower, self.upper
        small = (0, 1, -1) if self.kind is not float else (0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324)
        ends = [low, high, self.beside(low, 1), self.beside(high, -1)]
        return _distinct(ends + [self.kind(value) for value in small if low <= value <= high])

    def grids(self) -> Iterator[list[Any]]:
        """The values of each grid, from coarse to fine."""
        for parts in (1, 2, 4):
            yield _distinct([self.at(Fraction(k, parts)) for k in range(parts + 1)])
        yield self.special()

    def _nearest(self, point: Exact) -> Any:
        if self.kind is float:
            return self._inside(nearest(point))
        return point if self.kind is Fraction else self._inside(round(point))

    def _inside(self, value: Any) -> Any:
        return min(max(value, self.lower), self.upper)


def _distinct(values: list[Any]) -> list[Any]:
    return list({repr(value): value for value in values}.values())  # by repr: 0.0 and -0.0 are two values


class Stream:
    """A fixed sequence of numbers.

    Example:
        >>> Stream("a").below(100) == Stream("a").below(100)
        True
    """

    def __init__(self, label: str) -> None:
        self._label, self._counter = label, 0

    def below(self, limit: int) -> int:
        """The next number, in range(limit)."""
        self._counter += 1
        digest = hashlib.sha256(f"{self._label} {self._counter}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % limit

    def part(self) -> Exact:
        """The next number, in [0, 1]."""
        return Fraction(self.below(2**32 + 1), 2**32)


def shuffled(rows: Rows, order: int) -> Rows:
    """The rows in another order; 0 is the current order, -1 the reverse."""
    if order in (0, -1):
        return rows[:: order or 1]
    digest = hashlib.shake_256(f"order {order}".encode()).digest(8 * len(rows))
    return tuple(rows[k] for k in sorted(range(len(rows)), key=lambda k: digest[8 * k : 8 * k + 8]))


def listings(rows: Rows) -> list[Rows]:
    """Some orders of the same rows; all of them if there are few.

    Example:
        >>> listings((0, 0, 1))
        [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    """
    orders = list(permutations(rows)) if len(rows) <= 3 else [shuffled(rows, k) for k in range(-1, ORDERS - 1)]
    return list(dict.fromkeys(orders))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbours: common rows, and at `position` one more on the right, or one on each side.

    Example:
        >>> Pair((0, 0), (1,), position=1).sides(), Pair((0, 0), (1, 2), position=1).sides()
        (((0, 0), (0, 1, 0)), ((0, 1, 0), (0, 2, 0)))
    """

    common: Rows
    ends: Rows
    position: int
    orders: tuple[int, int] = (0, 0)

    @classmethod
    def start(cls, stream: Stream, values: Values, common: int, differ: int) -> Pair:
        """Common rows that are all equal, of two values, or scattered."""
        variety = (1, 2, common + 1)[stream.below(3)]
        palette = [_value(stream, values, ()) for _ in range(variety)]
        rows = tuple(palette[stream.below(variety)] for _ in range(common))
        ends = tuple(_value(stream, values, rows) for _ in range(differ))
        return cls(rows, ends, stream.below(common + 1))

    def sides(self) -> tuple[Rows, Rows]:
        """Left and right, each in its order."""
        before, after = self.common[: self.position], self.common[self.position :]
        full = [(*before, end, *after) for end in self.ends]
        left, right = full if len(full) == 2 else (self.common, full[0])
        return shuffled(left, self.orders[0]), shuffled(right, self.orders[1])

    def moved(self, stream: Stream, values: Values, *, ordered: bool) -> Pair:
        """The same pair with one thing changed."""
        choice = stream.below(8)
        if choice < 3 and self.common:
            return replace(self, common=_one_changed(stream, values, self.common, self.common))
        if choice == 3:
            return replace(self, common=(_value(stream, values, self.ends),) * len(self.common))
        if choice == 4:
            return replace(self, position=stream.below(len(self.common) + 1))
        if choice == 5:
            return replace(self, common=tuple(sorted(self.common, reverse=bool(stream.below(2)))))
        if choice == 6 and not ordered:
            left, right = self.orders
            order = stream.below(50) - 1
            return replace(self, orders=(order, right) if stream.below(2) else (left, order))
        return replace(self, ends=_one_changed(stream, values, self.ends, self.common))


def _one_changed(stream: Stream, values: Values, rows: Rows, others: Rows) -> Rows:
    at = stream.below(len(rows))
    return (*rows[:at], _value(stream, values, others, rows[at]), *rows[at + 1 :])


def _value(stream: Stream, values: Values, others: Rows, current: Any = None) -> Any:
    """A bound, the middle, a special value, another row's value, one next to the current value or nearer to a bound."""
    choice = stream.below(8)
    if choice < 3:
        return values.at(Fraction(choice, 2))
    if choice == 3:
        special = values.special()
        return special[stream.below(len(special))]
    if choice == 4 and others:
        return others[stream.below(len(others))]
    if choice == 5 and current is not None:
        return values.beside(current, (-1, 1)[stream.below(2)])
    if choice == 6 and current is not None:
        return values.halfway(current, (values.lower, values.upper)[stream.below(2)])
    return values.at(stream.part())
