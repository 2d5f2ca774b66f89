"""Sums of discrete Gaussian noise: what the Gaussian mechanism states about its errors. Scales are sigma^2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from privet.accuracy.few import Box
from privet.accuracy.single import error as single_error
from privet.accuracy.sums import LEAST_SCALE, Bools, Floats, Terms, common_divisor, largest_scale, present
from privet.errors import NumberError, write
from privet.exact import Exact, Number, ball, down, enclose, nonnegative, probability, sqrt_up, up
from privet.noise import DiscreteGaussian
from privet.system.remembered import remembered

SMOOTHING = Fraction(1, 4)
"""Added to sigma^2 to get a normal variable that is less peaked than smoothed discrete Gaussian noise."""

LARGEST = 36.0
"""Up to this sigma^2, two terms of a test are enumerated."""

MANY = 64
"""More terms than so many are never enumerated."""

_COST = 4_000_000  # additions, up to which a sum is enumerated
ROUNDING = 1 + 2.0**-40
"""More than what floats lose in sums of positive terms."""


class GaussianSums:
    """Weighted sums of independent discrete Gaussian variables; the scale of a term is its sigma^2.

    Example:
        >>> GaussianSums().error_of_sum([1, "1/2"], [400, 900], 0.95)
        Fraction(49, 1)
    """

    def error_of_sum(
        self,
        weights: Sequence[Number],
        scales: Sequence[Number],
        confidence: Number,
        counts: Sequence[int] | None = None,
    ) -> Exact:
        """A bound that |sum of a_i X_i| keeps to with this confidence.

        Claim: P(|sum a_i X_i| <= error) >= confidence. One term: the smallest such number. Several that take few
        values: the smallest multiple of the weights' common divisor, plus a bound on rounding errors.
        Otherwise by `normal_bound`.
        """
        level = 1 - probability(confidence, name="confidence", example="confidence=0.95")
        return _error(present(weights, scales, counts), level)

    def scale_for_sum(
        self,
        weights: Sequence[Number],
        ratios: Sequence[Number],
        confidence: Number,
        error: Number,
        counts: Sequence[int] | None = None,
    ) -> Exact | None:
        """The largest s for which `error_of_sum` with sigma^2 = s r_i is at most `error`; None if none is known."""
        limit = nonnegative(error, name="error", example="error=100")
        level = 1 - probability(confidence, name="confidence", example="confidence=0.95")
        terms = present(weights, ratios, counts)
        if not terms:
            raise NumberError(
                "every weight or ratio is 0, so any scale will do", remedy=write("scale_for_sum([1], ...)")
            )

        def fits(s: Exact) -> bool:
            if len(terms) > 1 or terms[0][2] > 1:
                return _error(tuple((weight, s * r, count) for weight, r, count in terms), level) <= limit
            weight, r, _ = terms[0]  # a tail takes less time than a quantile
            return DiscreteGaussian(s * r).tail(limit // weight + 1).upper <= level

        return largest_scale(fits, _near(terms, limit)) if fits(LEAST_SCALE) else None

    def test(self, scales: ArrayLike, confidence: Number) -> GaussianTest:
        """The test of this confidence for noise with these sigma^2."""
        return GaussianTest(scales, confidence)


class GaussianTest:
    """Whether |w . X| >= t is plausible for discrete Gaussian X, by `normal_bound`, which is a norm of w."""

    few: Box | None

    def __init__(self, scales: ArrayLike, confidence: Number) -> None:
        squares = np.asarray(scales, dtype=np.float64)
        level = 1 - probability(confidence, name="confidence", example="confidence=0.95")
        self._deviations = up(normal_quantile(level))
        self._squares = np.where(squares > 0, squares + float(SMOOTHING), 0.0)
        self._half = np.where(squares > 0, 0.5, 0.0)
        few = squares.shape == (2,) and np.min(squares) > 0 and np.max(squares) <= LARGEST
        self.few = _box(squares, down(level)) if few else None

    def plausible(self, weights: Floats, distance: Floats) -> Bools:
        bound = self._deviations * np.sqrt((weights * weights * self._squares).sum(axis=-1))
        bound += (weights * self._half).sum(axis=-1)
        return np.asarray(distance <= bound * ROUNDING)


def normal_bound(terms: Terms, level: Exact) -> Exact:
    """A t with P(|sum a_i X_i| >= t) <= level, for terms with sigma_i^2: a little above the normal quantile.

    Claim: let U be uniform on (-1/2, 1/2). X + U has a symmetric unimodal density, and is more peaked than a normal
    variable N of variance sigma^2 + 1/4: P(|X + U| >= t) <= P(|N| >= t) for all t. (Between two half integers the
    difference is least where the densities meet. By the formula of Euler and Maclaurin it is, at x = t/sigma, about
    x (c/2 - 1/12) / sigma^2 times the density for variance sigma^2 + c, so c > 1/6 is needed. The least c that works
    is 0.195 at most, at sigma^2 = 0.51; tests compute it from 10^-4 to 10^4.) So, by Birnbaum's theorem,
    P(|sum a_i X_i| >= t) <= P(|sum a_i N_i| >= t - sum |a_i|/2).

    Example:
        >>> float(normal_bound(((Exact(1), Exact(100), 1),), Exact("0.05")))
        20.12...

    Reference: Birnbaum (1948), on random variables with comparable peakedness.
    """
    variance = sum((count * a * a * (square + SMOOTHING) for a, square, count in terms), Fraction(0))
    half = sum((count * a for a, _, count in terms), Fraction(0)) / 2
    return normal_quantile(level) * sqrt_up(variance) + half


def _near(terms: Terms, limit: Exact) -> Exact:
    """A power of two near the sigma^2 at which a sum has half of this error as its deviation."""
    ratio = limit**2 / (4 * sum((count * a * a * r for a, r, count in terms), Fraction(0)))
    size = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return Fraction(2) ** max(size, -19)


@lru_cache(maxsize=256)
def normal_quantile(level: Exact) -> Exact:
    """The z with P(|N| >= z) = level for a standard normal N, rounded up."""
    return enclose(lambda: arb(2).sqrt() * ball(level).erfcinv()).upper


@remembered(1024)
def _error(terms: Terms, level: Exact) -> Exact:
    if not terms:
        return Fraction(0)
    if len(terms) == 1 and terms[0][2] == 1:
        weight, square, _ = terms[0]
        return single_error(DiscreteGaussian(square), 1 - level, step=weight)
    step = common_divisor([weight for weight, _, _ in terms])
    if sum(count for _, _, count in terms) <= MANY:
        every = [(int(weight / step), square) for weight, square, count in terms for _ in range(count)]
        steps = _enumerated(every, level)
        if steps is not None:
            return steps * step
    return normal_bound(terms, level) // step * step


def _enumerated(terms: list[tuple[int, Exact]], level: Exact) -> int | None:
    """The smallest k with P(|sum n_i X_i| > k) <= level, by convolution; None if that takes too long."""
    limit = down(level)
    share = -math.log(max(limit, 1e-300)) + math.log(2e8 * len(terms))  # of e: what is cut off is 1e-8 of the level
    if max(square for _, square in terms) > _COST or max(n for n, _ in terms) > _COST:
        return None
    reaches = [math.ceil(math.sqrt(2 * share * float(square))) + 1 for _, square in terms]
    length = 1 + 2 * sum(n * reach for (n, _), reach in zip(terms, reaches, strict=True))
    if length * max(reaches) * 2 * len(terms) > _COST:
        return None
    law, outside = np.ones(1), 0.0
    for (n, square), reach in zip(terms, reaches, strict=True):
        mass, beyond = _masses(max(float(square), 1e-300), reach)
        outside += beyond
        wider = np.zeros(len(law) + 2 * n * reach)
        for k in range(2 * reach + 1):
            wider[n * k : n * k + len(law)] += mass[k] * law
        law = wider
    middle = len(law) // 2
    above = np.cumsum(law[middle:][::-1])[::-1]  # P(S >= 0), P(S >= 1), ...
    exceeds = (2 * above[1:] + outside) * ROUNDING > limit
    return int(exceeds.sum())


def _masses(square: float, reach: int) -> tuple[Floats, float]:
    """The probabilities from -reach to reach, and a bound on the rest: 2 e^(-reach^2/(2 sigma^2))."""
    weight = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * square))
    return weight / weight.sum(), 2 * math.exp(-(reach**2) / (2 * square))


def _box(squares: Floats, level: float) -> Box:
    reach = math.ceil(math.sqrt(2 * float(np.max(squares)) * math.log(1e4 / level))) + 1
    masses, outside = zip(*(_masses(square, reach) for square in squares.tolist()), strict=True)
    return Box(np.array(masses), sum(outside), level)
