"""Ratios of two noisy sums (a mean: a sum over a count), by inverting a test as Fieller did."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from privet.accuracy.sums import Bools, Floats, NoiseSums
from privet.exact import Number, nearest, probability

ROUNDING = 2.0**-49
"""The share of a value that floats may have lost in it, or in a sum of a few such products."""

_POINTS = 2**18  # between 2^-64 and 1 (or 2^64) on a logarithmic axis: the width is found to 0.02% (0.04%)
_SMALL = 200  # for so many ends of intervals, several points at once take hardly longer than one
_AROUND = np.array([-4096.0, -1024.0, -512.0, -64.0, 0.0, 64.0, 512.0, 1024.0, 4096.0])  # places around a guess
_PARTS = np.arange(1, 8) / 8


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
    return _clamped_ratio(_dot(numerator, x), _dot(denominator, x), lower, upper)


def _clamped_ratio(top: Floats, bottom: Floats, lower: float, upper: float) -> Floats:
    middle = lower / 2 + upper / 2 if math.isfinite(lower) and math.isfinite(upper) else math.nan
    with np.errstate(all="ignore"):
        ratio = np.where(
            bottom > 0,
            np.clip(top / np.where(bottom > 0, bottom, 1.0), lower, upper),
            np.where(top > 0, upper, np.where(top < 0, lower, middle)),
        )
    return np.where(np.isfinite(ratio), ratio, min(max(0.0, lower), upper))


def ratio_interval(
    noise: NoiseSums,
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

    Claim: if values = truth + noise of these scales, and the ratio lies in [lower, upper], then it lies in the interval
    with this confidence at least. For w = alpha - t beta, w . truth = 0 at the true t, so t is rejected where
    P(|w . noise| >= |w . x|) < 1 - confidence, by the noise's own test. The quantile of |w . noise| is a norm of w, so
    what is rejected is a convex cone of (1, t): between the estimate and an end that is rejected, acceptance changes
    once, and bisection (which returns the rejected side) finds where. Two terms that take few values are enumerated
    instead, where |w . x| grows faster than their quantile can; one step of one coordinate is never rejected. The
    interval contains `ratio_estimate` always.

    Claim: an interval that the range cuts is no narrower than that of an estimate at the end of the range with the
    same denominator. Where beta . x > 0, alpha . x is first brought to [lower, upper] (beta . x): that is the same
    interval for every answer past an end. It only adds points: for t in the range, the nearest numerator that the
    range allows is between alpha . x and t (beta . x). Where beta . x <= 0 the denominator says nothing, and the
    interval is the whole of a finite range.

    Example:
        >>> from privet.accuracy.laplace import LaplaceSums
        >>> sides, ends = ([1, 0], [1, 1]), {"lower": 0, "upper": 1}
        >>> low, high = ratio_interval(LaplaceSums(), [[300.0, 700.0]], [10, 10], *sides, **ends, confidence=0.95)
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.277], [0.323])

    Reference: Fieller (1954), some problems in interval estimation.
    """
    x = np.asarray(values, dtype=np.float64)
    # the coordinates come first, so that each operation runs over whole columns
    columns = np.moveaxis(x, -1, 0)
    alpha, beta = (
        np.moveaxis(np.broadcast_to(np.asarray(side, dtype=np.float64), x.shape), -1, 0)
        for side in (numerator, denominator)
    )
    top, bottom = (alpha * columns).sum(axis=0), (beta * columns).sum(axis=0)
    size_alpha, size_beta = (ROUNDING * np.abs(side) for side in (alpha, beta))
    lost_top, lost_bottom = (ROUNDING * np.abs(side * columns).sum(axis=0) for side in (alpha, beta))
    estimate = _clamped_ratio(top, bottom, lower, upper)
    test = noise.test(scales, confidence)
    few = test.few
    finite = math.isfinite(lower) and math.isfinite(upper)
    with np.errstate(all="ignore"):
        brought = top - np.where(bottom > 0, top - np.clip(top, lower * bottom, upper * bottom), 0.0)

    def accepts(t: Floats) -> Bools:
        spread = (len(columns), *[1] * (t.ndim - bottom.ndim), *bottom.shape)
        a, size_a, top_here, size_top_here = alpha.reshape(spread), size_alpha.reshape(spread), brought, lost_top
        if not finite:
            far = np.isinf(t)  # there only the denominator counts
            nearer, t = np.where(far, 0.0, 1.0), np.where(far, 1.0, t)
            a, size_a, top_here, size_top_here = (nearer * each for each in (a, size_a, top_here, size_top_here))
        w = np.abs(a - t * beta.reshape(spread))
        lost = size_a + np.abs(t) * size_beta.reshape(spread)
        distance = np.abs(top_here - t * bottom)
        distance -= size_top_here + np.abs(t) * lost_bottom
        accepted = test.plausible(_coordinates_last(w + lost), distance)
        if finite:
            accepted |= bottom <= 0
        if few is None:
            return accepted
        exactly = few.plausible(_coordinates_last(w), distance - lost.sum(axis=0) * few.reach)
        exactly |= distance <= w.max(axis=0)
        return np.where(np.abs(bottom) > few.reach * np.abs(beta).sum(axis=0) * 1.01, exactly, accepted)

    with np.errstate(all="ignore"):
        root = np.where(bottom == 0, estimate, top / bottom)
        start = np.clip(np.where(np.isfinite(root), root, estimate), lower, upper)
        noisy = (np.abs(alpha - start * beta).T * (np.asarray(scales, dtype=np.float64) + 1)).T
        spread = noisy.sum(axis=0) / np.abs(bottom)
        unit = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
        # both ends at once: cells that look downwards, then cells that look upwards
        start, unit = np.stack([start, start]), np.stack([unit, unit])
        ends = np.stack([np.full_like(estimate, lower), np.full_like(estimate, upper)])
        guess = None
        if few is None and start.size <= _SMALL:  # about the quantile of the noise at the estimate
            level = max(nearest(1 - probability(confidence, name="confidence")), sys.float_info.min)
            guess = -math.log(level) * np.sqrt((noisy * noisy).sum(axis=0)) / np.abs(bottom)
        low, high = outermost(accepts, start, ends, unit, guess)
    return np.minimum(low, estimate), np.maximum(high, estimate)


def outermost(
    accepts: Callable[[Floats], Bools], start: Floats, end: Floats, unit: Floats, guess: Floats | None = None
) -> Floats:
    """How far from `start` towards `end` points are accepted: `end` itself, or a rejected point just past the last.

    `unit` is where the search begins if `end` is infinite. It ends between two neighbours of 2^18 + 1 points on a
    logarithmic axis, so how it gets there makes no difference. If `accepts` takes points in a further axis, tell it by
    a `guess` at the distance: several points around it are tried at once, and then several between the two.
    """
    endless = np.isinf(end)
    reach = np.where(endless, np.copysign(unit, end), np.where(endless, 0.0, end) - start)
    step = np.where(endless, 128.0, 64.0) / _POINTS
    near, far = np.zeros_like(start), np.full_like(start, _POINTS)

    several = (-1, *[1] * start.ndim)

    def towards(place: Floats) -> Floats:
        reached: Floats = start + reach * np.exp2(place * step - 64)
        return reached

    def between(places: Floats, inside: Bools) -> tuple[Floats, Floats]:
        return np.where(inside, places, near).max(axis=0), np.where(inside, far, places).min(axis=0)

    if guess is None:
        at_end, at_start = accepts(end), accepts(start)
        parts = np.full(1, 0.5).reshape(several)
    else:
        parts = _PARTS.reshape(several)
        middle = np.rint((np.log2(guess / np.abs(reach)) + 64) / step)
        places = np.fmax(np.fmin(middle + _AROUND.reshape(several), _POINTS), 1.0)
        inside = accepts(np.concatenate([towards(places), end[None], start[None]]))
        at_end, at_start = inside[-2], inside[-1]
        near, far = between(places, inside[:-2])
    near = np.where(at_end | ~at_start, far, near)  # nothing to look for
    while (far - near).max(initial=0.0) > 1:
        places = np.ceil(near + (far - near) * parts)
        near, far = between(places, accepts(towards(places[0]))[None] if guess is None else accepts(towards(places)))
    return np.where(at_end | (at_start & (far == _POINTS)), end, np.where(at_start, towards(far), start))


def _coordinates_last(columns: Floats) -> Floats:
    return columns.transpose(*range(1, columns.ndim), 0)


def _dot(weights: ArrayLike, x: Floats) -> Floats:
    return np.asarray((np.asarray(weights, dtype=np.float64) * x).sum(axis=-1))
