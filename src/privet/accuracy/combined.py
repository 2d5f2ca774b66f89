"""Numbers that are weighted sums of many noisy ones, all combined alike: the cells of tables made consistent.

Each number of such a table has the error of a fixed combination of draws. `Combined` states the error of weighted sums
of such numbers, in the same words as a mechanism states that of its draws, so that intervals of counts, sums and means
need nothing new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from privet.accuracy.gaussian import ROUNDING, SMOOTHING, GaussianSums, normal_quantile
from privet.accuracy.laplace.many import ManyTerms
from privet.accuracy.laplace.sums import smoothed
from privet.accuracy.sums import Bools, Floats, NoiseSums, NoiseTest, Terms, half_width
from privet.exact import Exact, Number, binary, probability, up
from privet.system.remembered import remembered

_DIRECTIONS = 9  # of two weights: between them a norm is below its chords, by 0.5% at most


@dataclass(frozen=True, slots=True)
class Combined:
    """Sums of numbers, each of which is a combination of draws. The scale of a number is the number of its combination.

    Claim: that of `NoiseSums`. Different numbers in a sum are made of different draws, so all draws are independent.
    Numbers are counted from 1; a scale of 0 is an absent term.

    Example:
        >>> from privet.accuracy.laplace import LaplaceSums
        >>> mean_of_ten = ((Exact(1, 10), Exact(20), 10),)
        >>> Combined(LaplaceSums(), (mean_of_ten,)).error_of_sum([1], [1], 0.95)
        Fraction(177, 10)
    """

    noise: NoiseSums
    combinations: tuple[Terms, ...]

    def error_of_sum(
        self,
        weights: Sequence[Number],
        scales: Sequence[Number],
        confidence: Number,
        counts: Sequence[int] | None = None,
    ) -> Exact:
        """A bound that the sum keeps to; one step of it at least."""
        each, of, times = self._draws(weights, scales)
        return half_width(self.noise, each, of, confidence, times)

    def scale_for_sum(
        self,
        weights: Sequence[Number],
        ratios: Sequence[Number],
        confidence: Number,
        error: Number,
        counts: Sequence[int] | None = None,
    ) -> Exact | None:
        """The largest factor for all scales of draws at which the sum keeps to this error."""
        each, of, times = self._draws(weights, ratios)
        return self.noise.scale_for_sum(each, of, confidence, error, times)

    def test(self, scales: ArrayLike, confidence: Number) -> NoiseTest:
        """The test of this confidence for some of the numbers."""
        some = tuple(self.combinations[int(place) - 1] for place in np.asarray(scales).tolist())
        level = 1 - probability(confidence, name="confidence", example="confidence=0.95")
        if isinstance(self.noise, GaussianSums):
            return _normal_test(some, level)
        return _laplace_test(some, level)

    def _draws(self, weights: Sequence[Number], scales: Sequence[Number]) -> tuple[list[Exact], list[Exact], list[int]]:
        """The draws that a sum is made of: their weights, their scales, and how many there are of each."""
        every = [
            (Exact(weight) * part, scale, count)
            for weight, place in zip(weights, scales, strict=True)
            if place
            for part, scale, count in self.combinations[int(place) - 1]
        ]
        return [a for a, _, _ in every], [s for _, s, _ in every], [n for _, _, n in every]


class _Norm(Protocol):
    """A norm of weights, which bounds a sum at some confidence, up to half a step for each draw."""

    def __call__(self, weights: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True)
class _Test:
    """Whether a sum can be as far from 0 as what was seen: as far as a norm of the weights, and half steps."""

    norm: _Norm
    halves: Floats
    few: None = field(default=None, init=False)

    def plausible(self, weights: Floats, distance: Floats) -> Bools:
        return np.asarray(distance <= (self.norm(weights) + weights @ self.halves) * ROUNDING)


def _halves(some: Sequence[Terms]) -> Floats:
    return np.array([up(sum((a * n for a, _, n in terms), Exact(0)) / 2) for terms in some])


@remembered(256)
def _normal_test(some: tuple[Terms, ...], level: Exact) -> _Test:
    """By `normal_bound`: a normal variable that is less peaked than the smoothed draws."""
    squares = np.array([up(sum((n * a * a * (s + SMOOTHING) for a, s, n in terms), Exact(0))) for terms in some])
    deviations = up(normal_quantile(level))

    def norm(weights: Floats) -> Floats:
        return np.asarray(deviations * np.sqrt((weights * weights) @ squares))

    return _Test(norm, _halves(some))


@remembered(256)
def _laplace_test(some: tuple[Terms, ...], level: Exact) -> _Test:
    """By continuous Laplace variables that are less peaked than the smoothed draws.

    Claim: their sums are log-concave, so the quantile of |w . X| is a norm of w (Bobkov). A norm is convex: between two
    directions it is below what they say together. Weights beyond the second are added by the triangle inequality.
    """
    units = [max(a for a, _, _ in terms) for terms in some]
    peaked = [
        tuple((a / unit, binary(float(smoothed(np.array(up(s))))), n) for a, s, n in terms)
        for terms, unit in zip(some, units, strict=True)
    ]
    alone = np.array(
        [
            ManyTerms(terms, continuous=True).quantile(level) * up(unit)
            for terms, unit in zip(peaked, units, strict=True)
        ]
    )
    if len(some) != 2:
        return _Test(lambda weights: np.asarray(weights @ alone), _halves(some))
    turns = np.linspace(0, np.pi / 2, _DIRECTIONS)
    sides = np.stack([np.cos(turns), np.sin(turns)], axis=-1) / alone  # each number in units of its own error
    sides[0, 1] = sides[-1, 0] = 0.0
    lengths = np.array([_together(peaked, units, side, level) for side in sides])

    def norm(weights: Floats) -> Floats:
        scaled = weights * alone
        place = np.clip(np.searchsorted(turns, np.arctan2(scaled[..., 1], scaled[..., 0])) - 1, 0, _DIRECTIONS - 2)
        first, second = sides[place], sides[place + 1]
        area = first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0]
        a = (weights[..., 0] * second[..., 1] - weights[..., 1] * second[..., 0]) / area
        b = (first[..., 0] * weights[..., 1] - first[..., 1] * weights[..., 0]) / area
        return np.asarray(np.abs(a) * lengths[place] + np.abs(b) * lengths[place + 1])

    return _Test(norm, _halves(some))


def _together(peaked: Sequence[Terms], units: Sequence[Exact], side: Floats, level: Exact) -> float:
    terms = [
        (a * unit * binary(float(weight)), s, n)
        for part, unit, weight in zip(peaked, units, side, strict=True)
        for a, s, n in part
        if weight
    ]
    return ManyTerms(terms, continuous=True).quantile(level)
