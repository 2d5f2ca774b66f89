"""Linear forms of noisy coordinates: counts, sums, and the two sides of every ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privet.exact import Exact

Noisy = Sequence[Sequence[int]]
"""The noisy coordinates of one group, by measurement."""


_ZERO = Exact(0)


@dataclass(frozen=True, slots=True)
class Linear:
    """offset + the sum of weight * coordinate; a term is (measurement, coordinate, weight).

    Example:
        >>> Linear(((0, 0, Exact(1, 2)), (0, 1, Exact(1, 2)))).value([[3, 5]])
        Fraction(4, 1)
    """

    terms: tuple[tuple[int, int, Exact], ...]
    offset: Exact = _ZERO

    def value(self, noisy: Noisy) -> Exact:
        """Its value for one group."""
        (whole,), unit = self.wholes([noisy])
        return Exact(whole, unit)

    def wholes(self, groups: Sequence[Noisy], also: int = 1) -> tuple[list[int], int]:
        """Its values for all groups as integers over one denominator, a multiple of `also`."""
        unit = math.lcm(also, self.offset.denominator, *(w.denominator for _, _, w in self.terms))
        offset = int(self.offset * unit)
        terms = [(m, c, int(w * unit)) for m, c, w in self.terms]
        return [offset + sum([w * noisy[m][c] for m, c, w in terms]) for noisy in groups], unit

    def times(self, factor: Exact) -> Linear:
        return Linear(tuple((m, c, w * factor) for m, c, w in self.terms if w * factor), self.offset * factor)

    def plus(self, other: Linear) -> Linear:
        weights: dict[tuple[int, int], Exact] = {}
        for m, c, w in (*self.terms, *other.terms):
            weights[m, c] = weights.get((m, c), Exact(0)) + w
        terms = tuple((m, c, w) for (m, c), w in sorted(weights.items()) if w)
        return Linear(terms, self.offset + other.offset)

    @property
    def measurements(self) -> frozenset[int]:
        """The measurements that it needs."""
        return frozenset(m for m, _, _ in self.terms)

    def weights(self) -> tuple[Exact, ...]:
        return tuple(w for _, _, w in self.terms)

    def scales(self, scales: Sequence[Exact]) -> tuple[Exact, ...]:
        """The scale of the noise of each term's coordinate."""
        return tuple(scales[m] for m, _, _ in self.terms)
