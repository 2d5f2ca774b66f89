"""What must be known of a kind of noise: the error of weighted sums of independent draws.

Intervals, errors expected before data are read, and the scale that an error allows are all made of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privet.errors import NumberError
from privet.exact import Exact, Number, exact, nonnegative

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class NoiseSums(Protocol):
    """Sums of independent noise, symmetric around 0 and log-concave; each term has a weight and a scale.

    Terms of weight or scale 0 are absent. `counts` says how many terms there are of each weight and scale; without it,
    there is one of each.
    """

    def error_of_sum(
        self,
        weights: Sequence[Number],
        scales: Sequence[Number],
        confidence: Number,
        counts: Sequence[int] | None = None,
    ) -> Exact:
        """A bound that |sum of a_i X_i| keeps to with this confidence."""

    def scale_for_sum(
        self,
        weights: Sequence[Number],
        ratios: Sequence[Number],
        confidence: Number,
        error: Number,
        counts: Sequence[int] | None = None,
    ) -> Exact | None:
        """The largest s known for which `error_of_sum` with scales s r_i is at most `error`; None if there is none."""

    def test(self, scales: ArrayLike, confidence: Number) -> NoiseTest:
        """The test of this confidence for noise of these scales."""


class NoiseTest(Protocol):
    """Whether a weighted sum of noise can be as large as what was seen; to be inverted for intervals."""

    @property
    def few(self) -> FewValues | None:
        """A sharper test for two terms that take few values, if there is one."""

    def plausible(self, weights: Floats, distance: Floats) -> Bools:
        """Whether P(|w . X| >= distance) could be 1 - confidence or more, for weights >= 0 in the last axis.

        Claim: false only if it is less. The distance at which it turns false is a norm of the weights.
        """


class FewValues(Protocol):
    """Two terms of noise that take few values: their sums can be enumerated."""

    @property
    def reach(self) -> int:
        """How far a term can be from 0, except with a small probability that is counted as error.

        The distance at which `plausible` turns false moves by at most reach * |change of the weights|_1.
        """

    def plausible(self, weights: Floats, distance: Floats) -> Bools:
        """As in `NoiseTest`."""


def half_width(
    noise: NoiseSums,
    weights: Sequence[Number],
    scales: Sequence[Number],
    confidence: Number,
    counts: Sequence[int] | None = None,
) -> Exact:
    """Half the width of an interval around sum of a_i X_i: `error_of_sum`, but one step of the sum at least.

    Claim: 0 only if there is no noise. Where noise is so small that it is 0 with this confidence, `error_of_sum` is 0,
    and a value with an error of 0 would look as if it were public.

    Example:
        >>> from privet.accuracy.laplace import LaplaceSums
        >>> noise = LaplaceSums()
        >>> half_width(noise, [1], [2], 0.95), half_width(noise, [1], ["1/5"], 0.95)
        (Fraction(6, 1), Fraction(1, 1))
        >>> noise.error_of_sum([1], ["1/5"], 0.95)
        Fraction(0, 1)
    """
    error = noise.error_of_sum(weights, scales, confidence, counts)
    if error:
        return error
    present = [abs(exact(weight)) for weight, scale in zip(weights, scales, strict=True) if weight and scale]
    return common_divisor(present) if present else Exact(0)


def common_divisor(weights: Sequence[Exact]) -> Exact:
    """The largest step of which all weights are multiples."""
    whole = math.lcm(*(weight.denominator for weight in weights))
    return Fraction(math.gcd(*(int(weight * whole) for weight in weights)), whole)


Terms = tuple[tuple[Exact, Exact, int], ...]
"""|a_i|, s_i, and how many such terms there are; all different."""


def present(weights: Sequence[Number], scales: Sequence[Number], counts: Sequence[int] | None = None) -> Terms:
    """The terms that are present, in the order in which they first appear."""
    times = [1] * len(weights) if counts is None else counts
    if len(weights) != len(scales) or len(times) != len(weights):
        raise NumberError(f"{len(weights)} weights were given for {len(scales)} scales; give one for each.")
    found: dict[tuple[Exact, Exact], int] = {}
    for weight, scale, count in zip(weights, scales, times, strict=True):
        pair = abs(exact(weight, name="weight")), nonnegative(scale, name="scale")
        if all(pair) and count:
            found[pair] = found.get(pair, 0) + count
    return tuple((weight, scale, count) for (weight, scale), count in found.items())


LEAST_SCALE = Fraction(1, 10**6)
"""Noise below this scale counts as none."""


def largest_scale(fits: Callable[[Exact], bool], start: Exact = Fraction(1)) -> Exact:
    """The largest scale that fits, to 10^-9 of itself, rounded down; a start that is near saves time."""
    low = start
    while not fits(low):
        low /= 2
    while fits(2 * low):
        low *= 2
    step = low
    for _ in range(32):
        step /= 2
        low = low + step if fits(low + step) else low
    return low
