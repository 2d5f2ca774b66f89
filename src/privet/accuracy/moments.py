"""The variance from three noisy sums: P = sum (W - v)^2, Q = sum 2 v (W - v), R = sum v^2, where 0 <= v <= W."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from privet.accuracy.ratios import ROUNDING, outermost, ratio_estimate, ratio_interval
from privet.accuracy.sums import Bools, Floats, NoiseSums, NoiseTest
from privet.exact import Number, probability

_MEAN = (0.0, 0.5, 1.0)
_COUNT = (1.0, 1.0, 1.0)
_BINARY = ((0.0, 1.0), (1.0, 1.0))  # the mean and the count from (P, R)
_FOR_THE_MEAN = Fraction(1, 5)  # of the probability to err
_PIECES = 8  # of the mean's interval


def variance_estimate(values: ArrayLike, width: float) -> Floats:
    """The population variance of v in each cell, from noisy (P, Q, R).

    Claim: n W^2 = P + Q + R and sum v W = Q/2 + R, so for the mean g W, sum (v - g W)^2 / (n W^2) =
    (g^2 P - g (1 - g) Q + (1 - g)^2 R) / (P + Q + R). Clamped to [0, g (1 - g)], so to [0, W^2/4]; never NaN.
    For W = 1 (true or false) Q is known to be 0, and the variance is g (1 - g) with g = R / (P + R).

    Example:
        >>> variance_estimate([[9 + 4, 0 + 4, 0 + 1]], width=3).tolist()  # 0 and 1
        [0.25]
    """
    x = np.asarray(values, dtype=np.float64)
    if width == 1:
        mean = ratio_estimate(x[..., ::2], *_BINARY, lower=0, upper=1)
        return mean * (1 - mean)
    mean = ratio_estimate(x, _MEAN, _COUNT, lower=0, upper=1)
    share = ratio_estimate(x, _coefficients(mean), _COUNT, lower=0, upper=0.25)
    return np.minimum(share, mean * (1 - mean)) * float(width) ** 2


def variance_interval(
    noise: NoiseSums, values: ArrayLike, scale: float, width: float, *, confidence: Number
) -> tuple[Floats, Floats]:
    """An interval for the population variance of v in each cell, from (P, Q, R) with noise of one scale on each.

    Claim: contains the variance with this confidence at least. A fifth of the probability to err is spent on an
    interval for the mean. At the true mean, sum (v - c)^2 - tau n is linear in (P, Q, R), and 0 at the true tau, as in
    `ratio_interval`; the interval is the hull over all c in the mean's. It is cut into pieces; on a piece the test
    takes the largest noise and the smallest statistic. The variance is at most c (W - c), and equal to it for W = 1.
    The interval contains `variance_estimate` always.

    Example:
        >>> from privet.accuracy.laplace import LaplaceSums
        >>> low, high = variance_interval(LaplaceSums(), [[50_000, 20_000, 30_000]], 200, width=2, confidence=0.95)
        >>> low.round(4).tolist(), high.round(4).tolist()
        ([0.549], [0.5712])

    Reference: Bhatia, Davis (2000), a better bound on the variance.
    """
    x = np.asarray(values, dtype=np.float64)
    wrong = 1 - probability(confidence, name="confidence", example="confidence=0.95")
    scales = np.full(3, float(scale))
    if width == 1:
        low, high = ratio_interval(noise, x[..., ::2], scales[::2], *_BINARY, lower=0, upper=1, confidence=confidence)
        return np.minimum(low * (1 - low), high * (1 - high)), _largest_variance(low, high)
    low, high = ratio_interval(noise, x, scales, _MEAN, _COUNT, lower=0, upper=1, confidence=1 - _FOR_THE_MEAN * wrong)
    test = noise.test(scales, 1 - (1 - _FOR_THE_MEAN) * wrong)
    cuts = low[..., None] + (high - low)[..., None] * np.linspace(0, 1, _PIECES + 1)
    cuts[..., -1] = high
    least, most = _pieces(x[..., None, :], cuts[..., :-1], cuts[..., 1:], test)
    estimate = variance_estimate(x, width)
    square = float(width) ** 2
    return np.minimum(least.min(axis=-1) * square, estimate), np.maximum(most.max(axis=-1) * square, estimate)


def within_noise(
    noise: NoiseSums, values: ArrayLike, scale: float, width: float, *, times: int, confidence: Number
) -> Bools:
    """Whether sum (v - mean)^2, at the estimated mean, is less than `times` its error at this confidence.

    Example:
        >>> from privet.accuracy.laplace import LaplaceSums
        >>> some = [[50_000, 20_000, 30_000], [700, 100, 600]]
        >>> within_noise(LaplaceSums(), some, 200, 2, times=2, confidence=0.95).tolist()
        [False, True]
    """
    x = np.asarray(values, dtype=np.float64)
    binary = np.array([1.0, width != 1, 1.0])
    mean = ratio_estimate(x * binary, (0.0, 0.5, 1.0), _COUNT, lower=0, upper=1)
    weights = _coefficients(mean) * binary
    squares = (weights * x).sum(axis=-1)
    return noise.test(np.full(3, float(scale)), confidence).plausible(np.abs(weights), squares / times)


def _pieces(x: Floats, left: Floats, right: Floats, test: NoiseTest) -> tuple[Floats, Floats]:
    """An interval for the variance (in units of W^2) where the mean (in units of W) is anywhere in [left, right].

    Claim: contains the interval for each mean between. For each the accepted points hang together with its estimate,
    so the search starts from the largest estimate upwards, and from the smallest downwards.
    """
    count = x.sum(axis=-1)
    slack = 2 * ROUNDING * np.abs(x).sum(axis=-1)
    with np.errstate(all="ignore"):
        lowest = (x[..., 1] / 2 + x[..., 2]) / count  # there the sum of squares is extreme
    between = np.clip(np.where(np.isfinite(lowest), lowest, left), left, right)
    most = _largest_variance(left, right)
    squares = np.stack([(_coefficients(g) * x).sum(axis=-1) for g in (left, right, between)])
    squares = np.where(count > 0, np.clip(squares, 0.0, most * count), squares)  # at an end, as in `ratio_interval`

    def accepts(tau: Floats) -> Bools:
        ends = np.stack([_coefficients(left), _coefficients(right)]) - tau[..., None]
        weights = np.abs(ends).max(axis=0)
        weights[..., 1] = most + tau
        statistic = squares - tau * count
        apart = np.where((statistic > 0).all(axis=0) | (statistic < 0).all(axis=0), np.abs(statistic).min(axis=0), 0.0)
        return test.plausible(weights + ROUNDING, np.where(count > 0, apart - slack, 0.0))

    with np.errstate(all="ignore"):
        roots = np.nan_to_num(squares / count, nan=0.0)
    low, high = (np.clip(root, 0.0, most) for root in (roots.min(axis=0), roots.max(axis=0)))
    return outermost(accepts, low, np.zeros_like(most), most), outermost(accepts, high, most, most)


def _largest_variance(left: Floats, right: Floats) -> Floats:
    """The largest g (1 - g) for g in [left, right]."""
    mean = np.clip(np.full_like(left, 0.5), left, right)
    return mean * (1 - mean)


def _coefficients(mean: Floats) -> Floats:
    """The weights of P, Q and R in sum (v - g W)^2."""
    return np.stack([mean**2, -mean * (1 - mean), (1 - mean) ** 2], axis=-1)
