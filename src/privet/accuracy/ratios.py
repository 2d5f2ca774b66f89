"""Ratios of two noisy sums (a mean: a sum over a count), by inverting a test as Fieller did."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privet.accuracy.small import LARGEST, Box
from privet.accuracy.sums import Floats, smoothed, tail_of_sum
from privet.exact import Number, down, probability

Bools = NDArray[np.bool_]

ROUNDING = 2.0**-49
"""The share of a value that floats may have lost in it, or in a sum of a few such products."""

_STEPS = 19  # of bisection between 2^-64 and 1 (or 2^64) on a logarithmic axis: the width is found to 0.02%


def ratio_estimate(
    values: ArrayLike, numerator: ArrayLike, denominator: ArrayLike, *, lower: float, upper: float
) -> Floats:
    """(alpha . x) / (beta . x) for each cell, clamped to [lower, upper].

    Claim: never NaN. Where beta . x <= 0 it is the limit as the denominator falls to 0: `upper` if alpha . x > 0,
    `lower` if alpha . x < 0, their middle if it is 0; and the number nearest to 0 where that would be infinite.

    Example:
        >>> ratio_estimate([[30.0, 10.0], [3.0, -4.0]], [1, 0], [1, 1], lower=0, upper=1).tolist()
        [0.75, 1.0]
    """
    x = np.asarray(values, dtype=np.float64)
    top, bottom = _dot(numerator, x), _dot(denominator, x)
    middle = lower / 2 + upper / 2 if np.isfinite([lower, upper]).all() else np.nan
    with np.errstate(all="ignore"):
        found = np.where(
            bottom > 0,
            np.clip(top / np.where(bottom > 0, bottom, 1.0), lower, upper),
            np.select([top > 0, top < 0], [upper, lower], middle),
        )
    return np.where(np.isfinite(found), found, np.clip(0.0, lower, upper))


def ratio_interval(
    values: ArrayLike,
    scales: ArrayLike,
    numerator: ArrayLike,
    denominator: ArrayLike,
    *,
    lower: float,
    upper: float,
    confidence: Number,
) -> tuple[Floats, Floats]:
    """An interval for (alpha . truth) / (beta . truth) in each cell: all t that a test of this level does not reject.

    Claim: if values = truth + discrete Laplace noise of these scales, and the ratio lies in [lower, upper], then it
    lies in the interval with this confidence at least. For w = alpha - t beta, w . truth = 0 at the true t, so t is
    rejected where P(|w . noise| >= |w . x|) < 1 - confidence, bounded by `tail_of_sum`. The quantile of |w . noise|
    is a norm of w, so what is rejected is a convex cone of (1, t): between the estimate and an end that is rejected,
    acceptance changes once, and bisection (which returns the rejected side) finds where. Two terms of small noise are
    enumerated instead, where |w . x| grows faster than their quantile can; one step of one coordinate is never
    rejected. The interval contains `ratio_estimate` always.

    Claim: an interval that the range cuts is no narrower than that of an estimate at the end of the range with the
    same denominator. Where beta . x > 0, alpha . x is first brought to [lower, upper] (beta . x): that is the same
    interval for every answer past an end. It only adds points: for t in the range, the nearest numerator that the
    range allows is between alpha . x and t (beta . x). Where beta . x <= 0 the denominator says nothing, and the
    interval is the whole of a finite range.

    Example:
        >>> low, high = ratio_interval([[300.0, 700.0]], [10, 10], [1, 0], [1, 1], lower=0, upper=1, confidence=0.95)
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.277], [0.323])

    Reference: Fieller (1954), some problems in interval estimation; Bobkov (2010), convex bodies and norms
    associated to convex measures.
    """
    x = np.asarray(values, dtype=np.float64)
    sides = [np.broadcast_to(np.asarray(side, dtype=np.float64), x.shape) for side in (numerator, denominator)]
    estimate = ratio_estimate(x, *sides, lower=lower, upper=upper)
    # both ends at once: cells that look downwards, then cells that look upwards
    x, alpha, beta = (np.stack([part, part]) for part in (x, *sides))
    noise = np.asarray(scales, dtype=np.float64)
    level = rejected_below(confidence)
    smooth = smoothed(noise)
    top, bottom = _dot(alpha, x), _dot(beta, x)
    finite = bool(np.isfinite([lower, upper]).all())
    with np.errstate(all="ignore"):
        beyond = np.where(bottom > 0, top - np.clip(top, lower * bottom, upper * bottom), 0.0)
    box = Box(noise, level) if x.shape[-1] == 2 and np.min(noise) > 0 and np.max(noise) <= LARGEST else None

    def accepts(t: Floats) -> Bools:
        far = np.isinf(t)[..., None]  # there only the denominator counts
        a, b = np.where(far, 0.0, alpha), np.where(far, 1.0, t[..., None]) * beta
        w, lost = a - b, ROUNDING * (np.abs(a) + np.abs(b))
        distance = np.abs(_dot(w, x) - np.where(far[..., 0], 0.0, beyond)) - (lost * np.abs(x)).sum(axis=-1)
        accepted = plausible(np.abs(w) + lost, distance, smooth, level)
        if finite:
            accepted |= bottom <= 0
        if box is None:
            return accepted
        exactly = box.tail(np.abs(w), distance - lost.sum(axis=-1) * box.reach) >= level
        exactly |= distance <= np.abs(w).max(axis=-1)
        return np.where(np.abs(bottom) > box.reach * np.abs(beta).sum(axis=-1) * 1.01, exactly, accepted)

    with np.errstate(all="ignore"):
        root = np.where(bottom == 0, estimate, top / bottom)
        start = np.clip(np.where(np.isfinite(root), root, estimate), lower, upper)
        spread = ((np.abs(alpha - start[..., None] * beta) * (noise + 1)).sum(axis=-1)) / np.abs(bottom)
        unit = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
        ends = np.stack([np.full_like(estimate, lower), np.full_like(estimate, upper)])
        low, high = outermost(accepts, start, ends, unit)
    return np.minimum(low, estimate), np.maximum(high, estimate)


def rejected_below(confidence: Number) -> float:
    """1 - confidence, rounded down."""
    return down(Fraction(1) - probability(confidence, name="confidence", example="confidence=0.95"))


def plausible(weights: Floats, distance: Floats, smooth: Floats, level: float) -> Bools:
    """Whether a bound on P(|w . noise| >= distance) is `level` or more, for discrete Laplace noise, `smoothed`."""
    margin = np.where(smooth > 0, weights / 2, 0.0).sum(axis=-1)
    return tail_of_sum(weights * smooth, distance - margin * (1 + ROUNDING)) >= level


def outermost(accepts: Callable[[Floats], Bools], start: Floats, end: Floats, unit: Floats) -> Floats:
    """How far from `start` towards `end` points are accepted: `end` itself, or a rejected point just past the last.

    `unit` is where the search begins if `end` is infinite.
    """
    endless = np.isinf(end)
    reach = np.where(endless, np.copysign(unit, end), np.where(endless, 0.0, end) - start)
    near, far = np.full_like(start, -64.0), np.where(endless, 64.0, 0.0)
    found = end.copy()
    for _ in range(_STEPS):
        middle = (near + far) / 2
        t = start + reach * np.exp2(middle)
        inside = accepts(t)
        near, far, found = np.where(inside, middle, near), np.where(inside, far, middle), np.where(inside, found, t)
    return np.where(accepts(end), end, np.where(accepts(start), found, start))


def _dot(weights: ArrayLike, x: Floats) -> Floats:
    return np.asarray((np.asarray(weights, dtype=np.float64) * x).sum(axis=-1))
