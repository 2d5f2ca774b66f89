"""Weighted sums of independent Laplace noise: their tails, their error, and the scale that an error allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from privet.accuracy.laplace.equal import error_in_steps, exceeds
from privet.accuracy.laplace.many import ManyTerms
from privet.accuracy.single import error as single_error
from privet.accuracy.sums import LEAST_SCALE, Floats, Terms, common_divisor, largest_scale, present
from privet.errors import NumberError, write
from privet.exact import Exact, Number, binary, down, exact, nearest, nonnegative, probability, up
from privet.noise import DiscreteLaplace
from privet.system.remembered import remembered

FEW, MANY = 4, 64
"""More terms than so many are summed by their characteristic function; if all are equal, more than `MANY`."""

APART = 1.001
"""Scales are raised until each is at least so many times the one before."""

_LEAST = 2.0**-40  # and to this share of the largest: an absent term becomes a negligible one
_FARTHEST = 600.0  # tails are computed up to so many of the largest scale: e^-600 is far from underflow
_ROUNDING = 2.0**-52
_PARTS = np.arange(1, 64) / 64
_EXCHANGED = 4  # up to so many terms are sorted by exchanges


def tail_of_sum(scales: ArrayLike, t: ArrayLike) -> Floats:
    """An upper bound on P(|L_1 + ... + L_d| >= t) for continuous Laplace variables, d in the last axis of `scales`.

    Claim: for distinct scales the probability is the sum of c_i e^(-t/b_i), c_i = prod over j != i of
    b_i^2 / (b_i^2 - b_j^2), by partial fractions of the characteristic function. Scales too close to each other are
    raised until they are distinct, which only raises the probability: the densities are symmetric and unimodal, so
    a larger scale makes the sum less peaked. A bound on the rounding errors is added. A scale of 0 is an absent term.
    Within 0.4% of the quantile for d <= 4; for more terms still a bound, but a loose one.

    Example:
        >>> float(tail_of_sum([1.0], 3.0)), float(tail_of_sum([1.0, 2.0, 0.0], 8.0).round(6))
        (0.049787068367864..., 0.024309)

    Reference: Birnbaum (1948), on random variables with comparable peakedness.
    """
    asked = np.asarray(t, dtype=np.float64)
    b = _sorted(np.asarray(scales, dtype=np.float64))
    top = b[-1]
    distance = np.minimum(asked, _FARTHEST * top)
    with np.errstate(all="ignore"):  # where all scales are 0
        b[0] = np.maximum(b[0], _LEAST * top)
        for i in range(1, len(b)):
            b[i] = np.maximum(np.maximum(b[i], _LEAST * top), APART * b[i - 1])
        size = [np.ones(())] * len(b)
        for j in range(1, len(b)):
            for i in range(j):
                both = (b[j] - b[i]) * (b[j] + b[i])
                size[j] = size[j] * (b[j] * b[j] / both)
                size[i] = size[i] * (-b[i] * b[i] / both)
        bound = np.zeros(())
        for one, weight in zip(b, size, strict=True):
            x = distance / one
            term = weight * np.exp(-x)
            bound = bound + (term + np.abs(term) * ((x + 32) * _ROUNDING))
    bound = np.asarray(np.fmax(np.fmin(bound, 1.0), 0.0))  # 1 for NaN
    np.copyto(bound, 0.0, where=top == 0)
    np.copyto(bound, 1.0, where=asked <= 0)
    return bound


def _sorted(scales: Floats) -> list[Floats]:
    """The scales in rising order: for each place, one array. A few are sorted by exchanges, column by column."""
    count = scales.shape[-1]
    if count > _EXCHANGED:
        scales, count = np.sort(scales, axis=-1), 0
    rising = [scales[..., i] for i in range(scales.shape[-1])]
    for last in range(count - 1, 0, -1):
        for i in range(last):
            rising[i], rising[i + 1] = np.minimum(rising[i], rising[i + 1]), np.maximum(rising[i], rising[i + 1])
    return rising


def smoothed(scales: Floats) -> Floats:
    """The scales of continuous Laplace variables that bound discrete ones up to half a step each.

    Claim: let X be discrete Laplace of scale s, U uniform on (-1/2, 1/2). X + U has a symmetric unimodal density and
    is more peaked than Laplace of scale 1 / (2 tanh(1/(2s))), at most s + 1/(12 s): P(|X + U| >= t) is linear in t
    between half integers, e^(-m/s) (1 - 2 tanh(1/(2s)) (t - m)) around an integer m, and e^-x >= 1 - x. So
    P(|sum a_i X_i| >= t) <= P(|sum a_i L_i| >= t - sum |a_i|/2), by Birnbaum's theorem.
    """
    with np.errstate(all="ignore"):
        return np.where(scales > 0, 0.5 / np.tanh(0.5 / scales) * (1 + 4 * _ROUNDING), 0.0)


def error_of_sum(
    weights: Sequence[Number], scales: Sequence[Number], confidence: Number, counts: Sequence[int] | None = None
) -> Exact:
    """A bound that |sum of a_i X_i| keeps to with this confidence, for independent discrete Laplace X_i.

    Claim: P(|sum a_i X_i| <= error) >= confidence. The smallest such number if all |a_i| and all scales are equal;
    otherwise by `smoothed`, or for many terms by `ManyTerms`, rounded down to a multiple of the weights' common
    divisor. Terms of weight or scale 0 are absent.

    Example:
        >>> error_of_sum([1], [2], 0.95), error_of_sum([1, -1], [2, 2], 0.95), error_of_sum([1, "1/2"], [20, 30], 0.95)
        (Fraction(6, 1), Fraction(8, 1), Fraction(147, 2))
    """
    level = 1 - probability(confidence, name="confidence", example="confidence=0.95")
    return _error(present(weights, scales, counts), level)


@remembered(1024)
def _error(terms: Terms, level: Exact) -> Exact:
    if not terms:
        return Fraction(0)
    if len(terms) == 1 and terms[0][2] <= MANY:
        weight, scale, count = terms[0]
        if count == 1:
            return single_error(DiscreteLaplace(scale), 1 - level, step=weight)
        return weight * error_in_steps(count, scale, level)
    step = common_divisor([weight for weight, _, _ in terms])
    if _is_many(terms):
        unit = max(weight for weight, _, _ in terms)
        inner = [(weight / unit, scale, count) for weight, scale, count in terms]
        return unit * binary(ManyTerms(inner).quantile(level)) // step * step
    unit, relative = _relative(terms)
    bound = unit * binary(quantile_of_sum(relative, level)) + _halves(terms)
    return bound // step * step


def _is_many(terms: Terms) -> bool:
    count = sum(count for _, _, count in terms)
    return count > (MANY if len(terms) == 1 else FEW)


def _halves(terms: Terms) -> Exact:
    """Half of the sum of all weights: what `smoothed` adds."""
    return sum((weight * count for weight, _, count in terms), Fraction(0)) / 2


def quantile_of_sum(scales: Floats, level: Exact) -> float:
    """The t with P(|L_1 + ... + L_d| >= t) <= level, rounded up; scales not all 0.

    Example:
        >>> quantile_of_sum(np.array([27.33333333333]), Fraction(1, 20))
        81.8833488...
    """
    limit = down(level)
    low, high = 0.0, float(np.max(scales)) * -math.log(limit)
    while tail_of_sum(scales, high) > limit:
        low, high = high, 2 * high
    while True:  # 64 parts at a time take hardly longer than two
        cuts = [low, *(low + (high - low) * _PARTS).tolist(), high]
        rejected = tail_of_sum(scales, cuts[1:]) <= limit
        rejected[-1] = True
        first = int(np.argmax(rejected))
        if (cuts[first], cuts[first + 1]) == (low, high):
            return high
        low, high = cuts[first], cuts[first + 1]


def scale_for_sum(
    weights: Sequence[Number],
    ratios: Sequence[Number],
    confidence: Number,
    error: Number,
    counts: Sequence[int] | None = None,
) -> Exact | None:
    """The largest s for which `error_of_sum` with scales s r_i is at most `error`, or None if there is none.

    Claim: error_of_sum(weights, [s * r for r in ratios], confidence) <= error, and s is within 10^-6 of the largest
    such number (10^-3 for many terms). There is always one if all |a_i| and all r_i are equal; otherwise None says
    that none is known.

    Example:
        >>> s = scale_for_sum([1, 1], [1, 1], 0.95, 100)
        >>> float(s), error_of_sum([1, 1], [s, s], 0.95), scale_for_sum([1, 2], [1, 1], 0.95, 1)
        (24.43..., Fraction(100, 1), None)
    """
    level = 1 - probability(confidence, name="confidence", example="confidence=0.95")
    terms = present(weights, ratios, counts)
    if not terms:
        raise NumberError("every weight or ratio is 0, so any scale will do", remedy=write("scale_for_sum([1], ...)"))
    step = common_divisor([weight for weight, _, _ in terms])
    steps = nonnegative(error, name="error", example="error=100") // step
    if _is_many(terms):
        return _scale_for_many(terms, level, steps * step)
    if len(terms) == 1:
        _, ratio, count = terms[0]
        return largest_scale(lambda s: not exceeds(count, s * ratio, steps, level))
    # floor(bound / step) <= steps, as long as bound < (steps + 1) step
    room = (steps + 1) * step - _halves(terms)
    limit = down(level)

    def fits(s: Exact) -> bool:
        unit, relative = _relative(tuple((weight, s * ratio, count) for weight, ratio, count in terms))
        return bool(tail_of_sum(relative, down(room / unit)) <= limit)

    if room <= 0 or not fits(LEAST_SCALE):
        return None
    largest = largest_scale(fits)
    while error_of_sum(weights, [largest * exact(ratio) for ratio in ratios], confidence, counts) > steps * step:
        largest *= 1 - Fraction(1, 10**8)  # the rounding errors in two tails need not be the same
    return largest


def _scale_for_many(terms: Terms, level: Exact, error: Exact) -> Exact | None:
    """The same for many terms, to 10^-3 of the largest scale: from a guess, since errors grow about as the scale."""

    def at(s: Exact) -> Exact:
        return _error(tuple((weight, s * ratio, count) for weight, ratio, count in terms), level)

    if not error or at(LEAST_SCALE) > error:
        return None
    guess = max(LEAST_SCALE, binary(nearest(error / max(at(Fraction(10**4)), error / 10**4))) * 10**4)
    low = high = guess
    step = Fraction(1001, 1000)
    while at(low) > error:
        low, high, step = max(LEAST_SCALE, low / step), low, step * step
    if low == high:
        while at(high) <= error:
            low, high, step = high, high * step, step * step
    while high > low * Fraction(1001, 1000):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) <= error else (low, middle)
    return low


def _relative(terms: Terms) -> tuple[Exact, Floats]:
    """A unit, and |a_i| times the smoothed scales in that unit, rounded up; each as often as there are such terms."""
    every = [(weight, scale) for weight, scale, count in terms for _ in range(count)]
    unit = max(weight * (scale + 1) for weight, scale in every)
    scales = smoothed(np.array([up(scale) for _, scale in every]))
    return unit, np.array([up(weight * binary(s) / unit) for (weight, _), s in zip(every, scales, strict=True)])
