"""Bounds from a noisy histogram over powers of two: the range from the first to the last bin that surely holds rows.

Everything here is computed from noisy counts and public facts, so it costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from privet.exact import Exact, down, exact, nearest, up
from privet.planner.linear import Linear, Noisy
from privet.planner.noise import Noise
from privet.planner.outputs import Cell, Cells

FALSE_ALARM = Exact(1, 1000)
"""The greatest probability that a bin without rows is taken for one with rows, over all bins of an answer together."""

Part = Literal["lower", "upper", "inside"]


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds: the ends, and the bins between them."""

    lower: Exact
    upper: Exact
    bins: range
    found: bool
    """Whether a bin stood out. If not, these are the ends of the public range, and nothing was learned."""


@dataclass(frozen=True, slots=True)
class Found:
    """The lower end, the upper end, or the share of values inside, of the bounds in each group.

    Claim: with probability 0.999 every bin that decides an end has a row in it. With the confidence of the answer, the
    share of values inside is in its interval, although the same noise chose the range: the interval is wide enough for
    every range of bins at once (Bonferroni).
    """

    place: int
    """The measurement that counts rows in the bins."""
    edges: tuple[Exact, ...]
    integer: bool
    """Whether values are whole numbers: then a bin ends one below its upper edge."""
    part: Part

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    def measurements(self) -> frozenset[int]:
        return frozenset([self.place])

    def threshold(self, noise: Noise, groups: int) -> int:
        """The noisy count from which a bin is taken to hold rows.

        Claim: if no bin holds a row, one of them reaches it with probability 1/1000 at most. Noise is symmetric, so
        P(Z > h) is half of P(|Z| > h); it is whole, so Z >= floor(h) + 1 means Z > h. Bins add up (union bound).
        """
        bins = self.size * groups
        return math.floor(noise.error(self._one(), 1 - 2 * FALSE_ALARM / bins)) + 1

    def needed(self, noise: Noise, groups: int, confidence: Exact) -> int:
        """The number of rows with which a bin is found, with this confidence."""
        return self.threshold(noise, groups) + math.ceil(noise.error(self._one(), 2 * confidence - 1))

    def _one(self) -> Linear:
        return Linear(((self.place, 0, Exact(1)),))

    def _sum(self, bins: Iterable[int]) -> Linear:
        return Linear(tuple((self.place, i, Exact(1)) for i in bins))

    def between(self, noisy: Noisy, threshold: int) -> Range:
        """The bounds in one group."""
        counts = noisy[self.place]
        held = [i for i, count in enumerate(counts) if count >= threshold]
        first, last = (held[0], held[-1]) if held else (0, self.size - 1)
        upper = self.edges[last + 1]
        if self.integer and last + 1 < self.size:
            upper -= 1
        return Range(self.edges[first], upper, range(first, last + 1), bool(held))

    def ranges(self, groups: Sequence[Noisy], noise: Noise) -> list[Range]:
        """The bounds in each group."""
        threshold = self.threshold(noise, len(groups))
        return [self.between(noisy, threshold) for noisy in groups]

    def cells(self, groups: Sequence[Noisy], noise: Noise, confidence: Exact) -> Cells:
        found = self.ranges(groups, noise)
        noisy = tuple(not each.found for each in found)
        if self.part != "inside":
            ends = tuple(plain(each.lower, down) if self.part == "lower" else plain(each.upper, up) for each in found)
            return Cells(ends, ends, ends, noisy)
        shares = [
            self._inside(each.bins, counts, noise, confidence) for each, counts in zip(found, groups, strict=True)
        ]
        values, low, high = (tuple(share[i] for share in shares) for i in range(3))
        return Cells(values, low, high, noisy)

    def _inside(self, bins: range, noisy: Noisy, noise: Noise, confidence: Exact) -> tuple[float, float, float]:
        """The share of values in these bins, and its interval.

        Claim: for each range of bins, the noise of the sum inside and that of the sum outside keep to their errors with
        probability 1 - a / ranges, where a = 1 - confidence; so for all ranges at once with probability 1 - a, for the
        chosen one too. The share I / (I + O) grows with I and falls with O.
        """
        if len(bins) == self.size:
            return 1.0, 1.0, 1.0
        level = 1 - (1 - confidence) / (self.size * (self.size + 1))
        sums = [self._sum(bins), self._sum(i for i in range(self.size) if i not in bins)]
        (inside, a), (outside, b) = ((form.value(noisy), noise.half_width(form, level)) for form in sums)
        ends = (inside, outside), (inside - a, outside + b), (inside + a, outside - b)
        share, low, high = (_share(*each) for each in ends)
        return nearest(share), down(low), up(high)

    def expected(self, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        return None

    def allowed(self, error: Exact, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        return None


def _share(inside: Exact, outside: Exact) -> Exact:
    """I / (I + O); counts below 0 are 0, and nothing of nothing is a share of 0."""
    inside, outside = max(inside, Exact(0)), max(outside, Exact(0))
    return inside / (inside + outside) if inside else Exact(0)


def plain(end: Exact, rounding: Callable[[Exact], float]) -> Cell:
    """An end as a number: whole, or the float that is written like it, or else one that is rounded outwards."""
    if end.denominator == 1:
        return end.numerator
    return written if exact(written := nearest(end)) == end else rounding(end)


def is_end(output: object) -> bool:
    """Whether a column is an end of bounds that were found, which has no interval."""
    return isinstance(output, Found) and output.part != "inside"
