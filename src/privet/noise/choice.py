"""A choice among many with weights e^(-rate d), drawn exactly."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.exact import Enclosure, Exact, enclose
from privet.exact.lattice import Integers
from privet.noise.entropy import Bits
from privet.noise.inversion import UniformReal
from privet.noise.powers import Powers

CHUNK = 1 << 14
"""Weights are added in chunks of this many, which stay in the cache."""

_FIRST = 256  # bits of the uniform real that are drawn at once
_LOW, _HALF = np.uint64((1 << 32) - 1), np.uint64(32)


def uniform(bits: Bits) -> UniformReal:
    """A uniform real, of which the first 256 bits are drawn."""
    return UniformReal(bits, int.from_bytes(bits.take(_FIRST // 8), "little"), _FIRST)


class WeightedChoice:
    """A choice among groups: group j has counts[j] members, each of weight e^(-rate distances[j]).

    Claim: `draw` returns j with probability counts[j] e^(-rate distances[j]) / (the sum over all groups), exactly.
    Why: a uniform real U is compared with the exact boundaries S_j / S, S_j the sum up to group j. Certified integers
    bound every S_j from both sides, far groups too, and 256 bits of U decide unless they fall between the bounds of a
    boundary. Then the sums are refined, with more bits of U, until U is on one side.

    The distances are integers, 0 or greater, of which one is 0; without `counts` each group has one member. Unless
    refined, the work depends on the number of groups, and not on which is chosen. With n groups of one member and
    two tables of powers, refining has a probability below 5 n^2 2^-64; with counts, of n groups and m members in all,
    below 5 n m 2^-128.

    Example:
        >>> choice = WeightedChoice(np.array([0, 7]), rate=Exact(1))
        >>> [float(p) for p in choice.probabilities()]
        [0.9990889488055994, 0.0009110511944006454]
    """

    def __init__(self, distances: Integers, counts: Integers | None = None, *, rate: Exact) -> None:
        self.distances, self.counts = distances, counts
        self.powers = Powers(rate)

    def draw(self, bits: Bits) -> int:
        """The index of a group."""
        chosen = self.at(uniform(bits))
        assert chosen is not None
        return chosen

    def at(self, real: UniformReal, *, rest: tuple[int, int] | None = None) -> int | None:
        """The index of the group that a uniform real chooses.

        With `rest` (members, distance) there are at most so many further members after all groups, each at least so far
        away, which are not known yet. Then None means that they are needed: list them, and ask again.
        """
        starts = range(0, len(self.distances), CHUNK)
        members, weights = (list(accumulate(sums)) for sums in zip(*map(self._total, starts), strict=True))
        _, slack = self._words(0)
        known, length = real.known, real.length
        beyond = 0 if rest is None else self._rest(*rest)
        # U S lies between these two, in units of 2^-length of the weights' own, and S_j between w and w + slack m
        low, high = known * weights[-1], (known + 1) * (weights[-1] + slack * members[-1] + beyond)
        last = self._first(starts, members, weights, lambda m, w: w << length >= high)
        before = self._first(starts, members, weights, lambda m, w: (w + slack * m) << length > low)
        if before == last and (rest is None or weights[-1] << length >= high):
            return last
        return self._resolve(real, before, last) if rest is None else None

    def _rest(self, members: int, distance: int) -> int:
        """The greatest weight of so many members, at least so far away."""
        far = np.array([distance])
        words, slack = self.powers.bounds(far) if self.counts is None else self.powers.fine_bounds(far)
        return members * (int(words[0]) + slack)

    def _words(self, start: int) -> tuple[NDArray[Any], int]:
        """Lower bounds of the weights of a chunk, one member each, and how much too small they are at most."""
        part = self.distances[start : start + CHUNK]
        return self.powers.bounds(part) if self.counts is None else self.powers.fine_bounds(part)

    def _total(self, start: int) -> tuple[int, int]:
        """The members of a chunk, and a lower bound of their weight."""
        words, _ = self._words(start)
        if self.counts is None:
            return len(words), (int((words >> _HALF).sum()) << 32) + int((words & _LOW).sum())
        counts = self.counts[start : start + CHUNK].astype(object)
        return int(counts.sum()), int((counts * words).sum())

    def _first(
        self, starts: range, members: Sequence[int], weights: Sequence[int], holds: Callable[[int, int], bool]
    ) -> int:
        """The first group up to which the members and their weight satisfy a condition; the last one if none does."""
        chunk = bisect_left(range(len(starts) - 1), True, key=lambda i: holds(members[i], weights[i]))
        start = starts[chunk]
        before = (members[chunk - 1], weights[chunk - 1]) if chunk else (0, 0)
        words, _ = self._words(start)
        if self.counts is None:
            high, low = np.cumsum(words >> _HALF), np.cumsum(words & _LOW)

            def upto(j: int) -> tuple[int, int]:
                return j + 1, (int(high[j]) << 32) + int(low[j])
        else:
            counts = self.counts[start : start + CHUNK].astype(object)
            some, weight = np.cumsum(counts), np.cumsum(counts * words)

            def upto(j: int) -> tuple[int, int]:
                return int(some[j]), int(weight[j])

        def reached(j: int) -> bool:
            m, w = upto(j)
            return holds(before[0] + m, before[1] + w)

        return start + bisect_left(range(len(words) - 1), True, key=reached)

    def _resolve(self, uniform: UniformReal, low: int, high: int) -> int:
        """The first group with U < S_j / S, which is known to be between `low` and `high`."""
        while low < high:
            middle = (low + high) // 2
            if uniform.below(lambda j=middle: self._boundary(j)):  # type: ignore[misc]
                high = middle
            else:
                low = middle + 1
        return low

    def _boundary(self, j: int) -> arb:
        """S_j / S, at the precision of the block."""
        below, beyond = self._sum(0, j + 1), self._sum(j + 1, len(self.distances))
        return below / (below + beyond)

    def _sum(self, start: int, end: int) -> arb:
        distances, counts = self.distances[start:end], self.counts
        if counts is None:
            distances, counts = np.unique(distances, return_counts=True)
        else:
            counts = counts[start:end]
        terms = (int(n) * self.powers.exactly(d) for d, n in zip(distances.tolist(), counts.tolist(), strict=True))
        return sum(terms, arb(0))

    def probabilities(self) -> list[Enclosure]:
        """The probability of each group, enclosed; the time is proportional to the square of the distinct ones."""
        counts = [1] * len(self.distances) if self.counts is None else [int(n) for n in self.counts.tolist()]
        groups = list(zip(map(int, self.distances.tolist()), counts, strict=True))
        shares = {
            (d, n): enclose(lambda d=d, n=n: n * self.powers.exactly(d) / self._sum(0, len(groups)))  # type: ignore[misc]
            for d, n in set(groups)
        }
        return [shares[group] for group in groups]
