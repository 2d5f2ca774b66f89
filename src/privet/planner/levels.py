"""The levels of ROLLUP and CUBE: what is measured of them, and how noisy levels become consistent.

The cells of a table fall apart into parts, one for each set B of keys: the margin over B, centred along each of its
keys, is what B adds to all coarser margins. A margin is the sum of the parts of all its subsets, each spread evenly
over the keys that it lacks. So answers that are made of the same parts add up, exactly: towns to regions, regions to
the total.

For noise in L2 each part is measured as a residual (`privacy.margins`), and *centred again*: the noise, too, must add
up to 0. For noise in L1 each requested margin is measured, and a part is the average of what all of them say about it,
weighted by the inverse of their variances (generalised least squares).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import isqrt, prod

import numpy as np
from numpy.typing import NDArray

from privet.accuracy.sums import Terms
from privet.exact import Exact
from privet.privacy.margins import Margin
from privet.system.remembered import remembered
from privet.tables.groups import Sets

Table = NDArray[np.object_]
"""Whole numbers: an axis for each key, of length 1 if the margin lacks it, and one for the coordinates."""
Keys = tuple[int, ...]

_PRECISION = 2**20
"""Weights are multiples of 1 / this; any weights that add up to 1 are right."""


@dataclass(frozen=True, slots=True)
class Level:
    """What is measured: a margin over some keys, or its residual."""

    margin: Margin
    residual: bool

    @property
    def keys(self) -> Keys:
        return self.margin.keys

    @property
    def cells(self) -> int:
        """How many vectors are measured."""
        return self.margin.cells

    def vectors(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """Its exact numbers, from the cells of the whole table."""
        return vectors(self.counted(table(cells, self.margin.sizes)))

    def counted(self, cells: Table) -> Table:
        """The same, as tables."""
        summed = _summed(cells, self.keys)
        return _centred(summed, self.keys) if self.residual else summed

    def facts(self) -> list[int]:
        """What a certificate says of it: its keys."""
        return list(self.keys)


@dataclass(frozen=True)
class Levels:
    """The margins that a question asks for; keys that have only one value make no difference, and are left out.

    Example:
        >>> from privet.tables.groups import Listed
        >>> years = Sets.rollup(Listed((("north", "south"), (2024, 2025, 2026), ("all",))))
        >>> Levels.of(years).margins, Levels.of(years).parts
        (((0, 1), (0,), ()), ((), (0,), (1,), (0, 1)))
    """

    sizes: tuple[int, ...]
    sets: tuple[Keys, ...]

    @classmethod
    def of(cls, groups: Sets) -> Levels:
        return cls(tuple(map(len, groups.listed.values)), groups.sets)

    def plain(self, keys: Keys) -> Keys:
        """A set without the keys that have only one value."""
        return tuple(key for key in keys if self.sizes[key] > 1)

    @cached_property
    def margins(self) -> tuple[Keys, ...]:
        """The different margins that are asked for."""
        return tuple(dict.fromkeys(map(self.plain, self.sets)))

    @cached_property
    def parts(self) -> tuple[Keys, ...]:
        """Every subset of a margin."""
        every = {some for keys in self.margins for size in range(len(keys) + 1) for some in combinations(keys, size)}
        return tuple(sorted(every, key=lambda keys: (len(keys), keys)))

    def measured(self, *, residual: bool) -> tuple[Level, ...]:
        """What is measured: the residual of each part, or each margin."""
        return tuple(Level(Margin(keys, self.sizes), residual) for keys in (self.parts if residual else self.margins))

    def size(self, keys: Sequence[int]) -> int:
        """The number of cells of the margin over these keys."""
        return prod(self.sizes[key] for key in keys)

    def shares(self, moves: Sequence[int]) -> list[Exact]:
        """The share of rho for each residual, for the least mean variance over all margins; `moves` are squares.

        Claim: noise of variance s on part B adds s prod over B of (n - 1) / n^3, prod over the other keys of 1 / n^2,
        to each cell of a margin. Let c be the sum of this over all margins. The sum of c s is least, for a given sum of
        moves / s, where s is proportional to sqrt(move / c): the shares are proportional to sqrt(move c).
        """
        costs = []
        for part, move in zip(self.parts, moves, strict=True):
            gained = sum((self.variance(keys, part) for keys in self.margins if {*part} <= {*keys}), Exact(0))
            costs.append(move * gained)
        largest = max(costs)
        roots = [1 + isqrt(int(cost / largest * 2**80)) for cost in costs]
        return [Exact(root, sum(roots)) for root in roots]

    def variance(self, margin: Keys, part: Keys) -> Exact:
        """The variance of a cell of a margin from the residual of a part, if its noise has variance 1."""
        inside = prod((Exact(self.sizes[key] - 1, self.sizes[key] ** 3) for key in part), start=Exact(1))
        return inside / self.size([key for key in margin if key not in part]) ** 2


@dataclass(frozen=True)
class Estimate:
    """How the margins follow from levels whose noise has these variances (up to a common factor).

    Claim: `margin` gives whole numbers over `unit`. They are unbiased, all margins add up to each other exactly, and
    their error is the combination of draws that `draws` lists, the same for all cells of a margin.
    """

    levels: Levels
    measured: tuple[Level, ...]
    variances: tuple[Exact, ...]

    @cached_property
    def weights(self) -> Mapping[Keys, Mapping[int, int]]:
        """For each part, the weights of the levels that know it, in multiples of 1 / _PRECISION."""
        return {part: self._weights(part) for part in self.levels.parts}

    def _weights(self, part: Keys) -> dict[int, int]:
        found: dict[int, Exact] = {}
        for place, (level, variance) in enumerate(zip(self.measured, self.variances, strict=True)):
            keys = level.margin.keys
            if level.residual and keys == part:
                found[place] = self.levels.size(part) ** 2 / variance
            elif not level.residual and {*part} <= {*keys}:
                found[place] = self.levels.size(part) / (variance * self.levels.size(keys))
        total = sum(found.values(), Exact(0))
        weights = {place: int(_PRECISION * one / total) for place, one in found.items()}
        weights[max(found, key=lambda place: found[place])] += _PRECISION - sum(weights.values())
        return weights

    def parts(self, noisy: Sequence[Table]) -> dict[Keys, Table]:
        """Each part, times n^2 for each of its keys and `_PRECISION`."""
        made: dict[Keys, Table] = {}
        for part, weights in self.weights.items():
            total: Table | int = 0
            for place, weight in weights.items():
                centred = _centred(_summed(noisy[place], part), part)
                whole = 1 if self.measured[place].residual else self.levels.size(part)
                total = total + centred * (weight * whole)
            assert not isinstance(total, int)
            made[part] = total
        return made

    def margins(self, noisy: Sequence[Sequence[Sequence[int]]]) -> dict[Keys, list[tuple[int, ...]]]:
        """The cells of every margin that is asked for, times its `unit`."""
        measured = zip(noisy, self.measured, strict=True)
        parts = self.parts([table(some, shape(level.margin)) for some, level in measured])
        return {margin: vectors(self.margin(parts, margin)) for margin in self.levels.margins}

    def kinds_of(self, margin: Keys) -> tuple[int, ...]:
        """The kind of each cell: all have the same error."""
        return (0,) * self.levels.size(margin)

    def unit(self, margin: Keys, kind: int = 0) -> int:
        """The denominator of a margin."""
        return _PRECISION * self.levels.size(margin) ** 2

    def margin(self, parts: Mapping[Keys, Table], margin: Keys) -> Table:
        """The cells of a margin, times `unit`."""
        inside = [part for part in self.levels.parts if {*part} <= {*margin}]
        spread = [parts[part] * (self.levels.size(margin) // self.levels.size(part)) for part in inside]
        return np.asarray(sum(spread[1:], start=spread[0]), dtype=object)

    def draws(self, margin: Keys, scales: Sequence[Exact], kind: int = 0) -> Terms:
        """The weights, scales and numbers of the draws that are the error of a cell of `margin`.

        A draw is in a cell that agrees with the one asked for in some of the keys that both have, and differs in
        others. Centring gives it the factor 1 - 1/n for each of the former, and -1/n for the latter.
        """
        found: dict[tuple[Exact, Exact], int] = {}
        for place, (level, scale) in enumerate(zip(self.measured, scales, strict=True)):
            keys = level.margin.keys
            known = [part for part in self.levels.parts if place in self.weights[part] and {*part} <= {*margin}]
            both = tuple(key for key in keys if key in margin)
            rest = self.levels.size([key for key in keys if key not in margin])
            for size in range(len(both) + 1):
                for differ in combinations(both, size):
                    weight = sum((self._factor(place, part, margin, differ) for part in known), Exact(0))
                    count = rest * prod(self.levels.sizes[key] - 1 for key in differ)
                    if weight and count:
                        found[abs(weight), scale] = found.get((abs(weight), scale), 0) + count
        return tuple((weight, scale, count) for (weight, scale), count in found.items())

    def _factor(self, place: int, part: Keys, margin: Keys, differ: Keys) -> Exact:
        sizes = self.levels.sizes
        spread = self.levels.size([key for key in margin if key not in part])
        if self.measured[place].residual:
            spread *= self.levels.size(part)
        centred = prod((Exact(-1 if key in differ else sizes[key] - 1, sizes[key]) for key in part), start=Exact(1))
        return Exact(self.weights[part][place], _PRECISION) * centred / spread


@remembered(64)
def estimate(levels: Levels, measured: tuple[Level, ...], variances: tuple[Exact, ...]) -> Estimate:
    """The estimate for these levels; computed once."""
    return Estimate(levels, measured, variances)


# --- tables of whole numbers ------------------------------------------------------------------------------


def table(vectors: Sequence[Sequence[int]], shape: Sequence[int]) -> Table:
    """Vectors, in the order of `itertools.product`, as a table."""
    flat = np.empty((len(vectors), len(vectors[0])), dtype=object)
    flat[:] = vectors
    return flat.reshape(*shape, -1)


def vectors(of: Table) -> list[tuple[int, ...]]:
    """A table as vectors, in the order of `itertools.product`."""
    return [tuple(vector) for vector in of.reshape(-1, of.shape[-1]).tolist()]


def shape(margin: Margin) -> list[int]:
    """The lengths of the axes of a margin."""
    return [n if key in margin.keys else 1 for key, n in enumerate(margin.sizes)]


def _summed(of: Table, keys: Keys) -> Table:
    """The margin of a table over these keys."""
    others = tuple(axis for axis in range(of.ndim - 1) if axis not in keys and of.shape[axis] > 1)
    return np.asarray(of.sum(axis=others, keepdims=True), dtype=object) if others else of


def _centred(of: Table, keys: Keys) -> Table:
    """A table times n I - J along each of these keys."""
    for key in keys:
        of = of * of.shape[key] - of.sum(axis=key, keepdims=True)
    return of
