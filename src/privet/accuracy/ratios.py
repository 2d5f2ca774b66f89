"""Ratios of two noisy sums (a mean: a sum over a count), by inverting a test as Fieller did."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from privet.accuracy.sums import Bools, Floats, NoiseSums
from privet.exact import Number

ROUNDING = 2.0**-49
"""The share of a value that floats may have lost in it, or in a sum of a few such products."""

_STEPS = 18  # of bisection between 2^-64 and 1 (or 2^64) on a logarithmic axis: the width is found to 0.02% (0.04%)
_SMALL = 200  # for so many ends of intervals, several points at once take hardly longer than one


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
    middle = lower / 2 + upper / 2 if np.isfinite([lower, upper]).all() else np.nan
    with np.errstate(all="ignore"):
        found = np.where(
            bottom > 0,
            np.clip(top / np.where(bottom > 0, bottom, 1.0), lower, upper),
            np.select([top > 0, top < 0], [upper, lower], middle),
        )
    return np.where(np.isfinite(found), found, np.clip(0.0, lower, upper))


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
    size_top, size_bottom = (np.abs(side * columns).sum(axis=0) for side in (alpha, beta))
    estimate = _clamped_ratio(top, bottom, lower, upper)
    test = noise.test(scales, confidence)
    few = test.few
    finite = bool(np.isfinite([lower, upper]).all())
    with np.errstate(all="ignore"):
        beyond = np.where(bottom > 0, top - np.clip(top, lower * bottom, upper * bottom), 0.0)

    def accepts(t: Floats) -> Bools:
        nearer: Floats = np.ones(())
        if not finite:
            far = np.isinf(t)  # there only the denominator counts
            nearer, t = np.where(far, 0.0, 1.0), np.where(far, 1.0, t)
        spread = (len(columns), *[1] * (t.ndim - bottom.ndim), *bottom.shape)
        a, b = nearer * alpha.reshape(spread), t * beta.reshape(spread)
        w = np.abs(a - b)
        lost = ROUNDING * (np.abs(a) + np.abs(b))
        distance = np.abs(nearer * (top - beyond) - t * bottom)
        distance -= ROUNDING * (nearer * size_top + np.abs(t) * size_bottom)
        accepted = test.plausible(np.moveaxis(w + lost, 0, -1), distance)
        if finite:
            accepted |= bottom <= 0
        if few is None:
            return accepted
        exactly = few.plausible(np.moveaxis(w, 0, -1), distance - lost.sum(axis=0) * few.reach)
        exactly |= distance <= w.max(axis=0)
        return np.where(np.abs(bottom) > few.reach * np.abs(beta).sum(axis=0) * 1.01, exactly, accepted)

    with np.errstate(all="ignore"):
        root = np.where(bottom == 0, estimate, top / bottom)
        start = np.clip(np.where(np.isfinite(root), root, estimate), lower, upper)
        noisy = (np.abs(alpha - start * beta).T * (np.asarray(scales, dtype=np.float64) + 1)).T.sum(axis=0)
        spread = noisy / np.abs(bottom)
        unit = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
        # both ends at once: cells that look downwards, then cells that look upwards
        start, unit = np.stack([start, start]), np.stack([unit, unit])
        ends = np.stack([np.full_like(estimate, lower), np.full_like(estimate, upper)])
        low, high = outermost(accepts, start, ends, unit, at_once=7 if few is None and start.size <= _SMALL else 1)
    return np.minimum(low, estimate), np.maximum(high, estimate)


def outermost(
    accepts: Callable[[Floats], Bools], start: Floats, end: Floats, unit: Floats, *, at_once: int = 1
) -> Floats:
    """How far from `start` towards `end` points are accepted: `end` itself, or a rejected point just past the last.

    `unit` is where the search begins if `end` is infinite. If `accepts` takes points in a further axis, asking for
    2^b - 1 of them `at_once` gives the same result as bisection, in b times fewer calls.
    """
    endless = np.isinf(end)
    reach = np.where(endless, np.copysign(unit, end), np.where(endless, 0.0, end) - start)
    near, width = np.full_like(start, -64.0), np.where(endless, 128.0, 64.0)
    found = end.copy()
    parts = np.arange(1, at_once + 1).reshape(-1, *[1] * start.ndim)
    for _ in range(_STEPS // at_once.bit_length()):
        width = width / (at_once + 1)
        t = start + reach * np.exp2(near + parts * width)
        inside = accepts(t) if at_once > 1 else accepts(t[0])[None]
        passed = np.logical_and.accumulate(inside).sum(axis=0)
        near = near + passed * width
        rejected = np.take_along_axis(t, np.minimum(passed, at_once - 1)[None], axis=0)[0]
        found = np.where(passed == at_once, found, rejected)
    at_end, at_start = accepts(np.stack([end, start])) if at_once > 1 else (accepts(end), accepts(start))
    return np.where(at_end, end, np.where(at_start, found, start))


def _dot(weights: ArrayLike, x: Floats) -> Floats:
    return np.asarray((np.asarray(weights, dtype=np.float64) * x).sum(axis=-1))
