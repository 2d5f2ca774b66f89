"""Sums of discrete Laplace noise: what the Laplace mechanism states about its errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privet.accuracy.few import Box
from privet.accuracy.laplace.small import LARGEST, laplace_box
from privet.accuracy.laplace.sums import error_of_sum, scale_for_sum, smoothed, tail_of_sum
from privet.accuracy.sums import Bools, Floats
from privet.exact import Exact, Number, down, probability

__all__ = ["LaplaceSums", "LaplaceTest"]

_ROUNDING = 2.0**-49


class LaplaceSums:
    """Weighted sums of independent discrete Laplace variables.

    Example:
        >>> LaplaceSums().error_of_sum([1, "1/2"], [20, 30], 0.95)
        Fraction(147, 2)
    """

    def error_of_sum(
        self,
        weights: Sequence[Number],
        scales: Sequence[Number],
        confidence: Number,
        counts: Sequence[int] | None = None,
    ) -> Exact:
        return error_of_sum(weights, scales, confidence, counts)

    def scale_for_sum(
        self,
        weights: Sequence[Number],
        ratios: Sequence[Number],
        confidence: Number,
        error: Number,
        counts: Sequence[int] | None = None,
    ) -> Exact | None:
        return scale_for_sum(weights, ratios, confidence, error, counts)

    def test(self, scales: ArrayLike, confidence: Number) -> LaplaceTest:
        return LaplaceTest(scales, confidence)


class LaplaceTest:
    """Whether |w . X| >= t is plausible for discrete Laplace X: by `tail_of_sum` of `smoothed` scales, an upper bound.

    Claim: the quantile of |w . X| that the bound gives is a norm of w, since the noise is log-concave.

    Reference: Bobkov (2010), convex bodies and norms associated to convex measures.
    """

    few: Box | None

    def __init__(self, scales: ArrayLike, confidence: Number) -> None:
        noise = np.asarray(scales, dtype=np.float64)
        self._level = down(1 - probability(confidence, name="confidence", example="confidence=0.95"))
        self._smooth = smoothed(noise)
        self._half = np.where(self._smooth > 0, (1 + _ROUNDING) / 2, 0.0)
        few = noise.shape == (2,) and np.min(noise) > 0 and np.max(noise) <= LARGEST
        self.few = laplace_box(noise, self._level) if few else None

    def plausible(self, weights: Floats, distance: Floats) -> Bools:
        return tail_of_sum(weights * self._smooth, distance - weights @ self._half) >= self._level
