"""The cells of an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privet.exact import Exact, down, nearest, up

Cell = int | float

Ends = tuple[Exact | None, Exact | None]
"""The least and the greatest number that there can be; None where there is no such number."""


@dataclass(frozen=True, slots=True)
class Cells:
    """One column of an answer: a value and an interval for each group, and whether the value is too noisy."""

    values: tuple[Cell, ...]
    low: tuple[Cell, ...]
    high: tuple[Cell, ...]
    noisy: tuple[bool, ...]

    def at(self, groups: Sequence[int]) -> Cells:
        """The cells of these groups, in this order."""
        parts = (self.values, self.low, self.high, self.noisy)
        values, low, high, noisy = (tuple(part[i] for i in groups) for part in parts)
        return Cells(values, low, high, noisy)  # type: ignore[arg-type]

    def cut(self, ends: Ends) -> Cells:
        """The same, cut to the numbers that can be.

        Claim: an interval that holds the true number holds it after this, since the true number is one of these. An
        interval with more than one number keeps more than one, so that none looks certain.

        Example:
            >>> cells = Cells((103, -4), (100, -9), (106, 1), (False, True)).cut((Exact(0), Exact(101)))
            >>> cells.values, cells.low, cells.high
            ((101, 0), (100, 0), (101, 1))
        """
        if ends == (None, None):
            return self
        rows = [_cut(*row, ends) for row in zip(self.values, self.low, self.high, strict=True)]
        values, low, high = zip(*rows, strict=True) if rows else ((), (), ())
        return Cells(values, low, high, self.noisy)

    def without_size(self, tops: Sequence[Exact], bottoms: Sequence[Exact], ends: Ends) -> Cells:
        """Quotients that lie between two ends; those by a number that is not negative, but whose noise makes it 0 or
        less, say nothing.

        Claim: such an interval is all that there can be. Its value is the limit as the denominator falls to 0: the end
        on the side of the numerator, or the middle if that is 0.

        Example:
            >>> cells = Cells((1.0, -0.5), (0.2, -1.0), (3.0, 0.5), (True, True))
            >>> found = cells.without_size([Exact(-1), Exact(2)], [Exact(-1), Exact(9)], (Exact(0), Exact(1)))
            >>> found.values, found.low, found.high
            ((0, -0.5), (0, -1.0), (1, 0.5))
        """
        least, most = ends
        if least is None or most is None or all(bottom > 0 for bottom in bottoms):
            return self
        low, middle, high = _plain(least, down), nearest((least + most) / 2), _plain(most, up)
        assert low is not None
        assert high is not None
        rows = []
        for *row, top, bottom in zip(self.values, self.low, self.high, tops, bottoms, strict=True):
            rows.append(row if bottom > 0 else [middle if top == 0 else high if top > 0 else low, low, high])
        values, lows, highs = zip(*rows, strict=True)
        return Cells(values, lows, highs, self.noisy)


def _cut(value: Cell, low: Cell, high: Cell, ends: Ends) -> tuple[Cell, Cell, Cell]:
    least, most = (_plain(end, rounding) for end, rounding in zip(ends, (down, up), strict=True))

    def inside(x: Cell) -> Cell:
        if least is not None and x < least:
            return least
        return most if most is not None and x > most else x

    if value != value:  # it is missing
        return value, low, high
    a, b = inside(low), inside(high)
    if a == b and low < high and least != most:  # all of it was outside, or at an end
        a, b = (a, _next(b, math.inf)) if a == least else (_next(a, -math.inf), b)
    return inside(value), a, b


def _plain(end: Exact | None, rounding: Callable[[Exact], float]) -> Cell | None:
    if end is None:
        return None
    return end.numerator if end.denominator == 1 else rounding(end)


def _next(x: Cell, towards: float) -> Cell:
    """The number beside it: whole, or a float."""
    return x + (1 if towards > 0 else -1) if isinstance(x, int) else math.nextafter(x, towards)
