"""Sum, mean, variance, std, and quantiles and extremes with Laplace noise, each with its closed-form sensitivity."""

from __future__ import annotations

import builtins
import math
from fractions import Fraction
from typing import Any, Literal

from privet.exact import Number, exact, sqrt_up
from privet.privacy.adjacency import Adjacency
from privet.textbook import sensitivity
from privet.textbook.statistics.estimate import Estimate
from privet.textbook.statistics.rows import Rows

_REPLACE = Adjacency.REPLACE


def sum(  # noqa: A001
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The sum. Sensitivity: upper - lower.

    Example:
        >>> sum([1, 2, 3, 4], lower=0, upper=10, epsilon=1).sensitivity
        Fraction(10, 1)
    """
    rows = Rows(data, lower, upper, epsilon, missing, step)
    return rows.estimate(
        "sum",
        builtins.sum(rows.codes),
        moved=sensitivity.sum(lower=0, upper=rows.width, adjacency=_REPLACE, n=rows.n),
        unit=rows.step,
        offset=rows.n * rows.lower,
        rounding=rows.n * rows.rounding,
        limits=(rows.n * rows.lower, rows.n * rows.upper),
    )


def mean(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The mean. Sensitivity: (upper - lower)/n, so the noise has scale (upper - lower)/(n epsilon).

    Example:
        >>> pay = mean([52_000, 61_000, 58_000], lower=0, upper=200_000, epsilon=0.5)
        >>> pay.sensitivity, pay.scale
        (Fraction(200000, 3), Fraction(400000, 3))
    """
    rows = Rows(data, lower, upper, epsilon, missing, step)
    return rows.estimate(
        "mean",
        builtins.sum(rows.codes),
        moved=sensitivity.mean(lower=0, upper=rows.width, adjacency=_REPLACE, n=rows.n) * rows.n,
        unit=rows.step / rows.n,
        offset=rows.lower,
        rounding=rows.rounding,
        limits=(rows.lower, rows.upper),
    )


def variance(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    ddof: Literal[0, 1] = 0,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The variance, of the population (ddof=0) or of a sample (ddof=1). Sensitivity: (U-L)^2 (n-1)/n^2, or (U-L)^2/n.

    Example:
        >>> variance([0, 1, 1, 0], lower=0, upper=1, epsilon=1).sensitivity
        Fraction(3, 16)
    """
    sensitivity.variance(lower=lower, upper=upper, adjacency=_REPLACE, ddof=ddof)  # refuses before data are read
    less: Literal[0, 1] = 1 if exact(ddof) else 0
    rows = Rows(data, lower, upper, epsilon, missing, step)
    pairs = rows.pairs(less)
    most = sensitivity.variance(lower=0, upper=rows.width, adjacency=_REPLACE, ddof=less, n=rows.n)
    return rows.estimate(
        "variance",
        rows.squares(),
        moved=most * pairs,
        unit=rows.step**2 / pairs,
        offset=Fraction(0),
        rounding=rows.rounding * (rows.upper - rows.lower) * rows.n / (rows.n - less),
        limits=(Fraction(0), rows.largest_variance(less)),
    )


def std(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    ddof: Literal[0, 1] = 0,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The standard deviation, of the population (ddof=0) or of a sample (ddof=1).

    Sensitivity: (U-L) sqrt(n-1)/n, or (U-L)/sqrt(n). The square root is taken in integers, rounded down to a small
    part of a step; that rounding counts in the sensitivity.

    Example:
        >>> round(float(std([0, 1, 1, 0], lower=0, upper=1, epsilon=1).sensitivity), 6)
        0.433013
    """
    sensitivity.variance(lower=lower, upper=upper, adjacency=_REPLACE, ddof=ddof)  # refuses before data are read
    less: Literal[0, 1] = 1 if exact(ddof) else 0
    rows = Rows(data, lower, upper, epsilon, missing, step)
    pairs = rows.pairs(less)
    fine = max(0, 24 + rows.n.bit_length() // 2 - rows.width.bit_length())
    most = sensitivity.std(lower=0, upper=rows.width, adjacency=_REPLACE, ddof=less, n=rows.n)
    unit = rows.step / 2**fine
    return rows.estimate(
        "std",
        math.isqrt((rows.squares() << 2 * fine) // pairs),
        moved=Fraction(math.ceil(most * 2**fine)),
        unit=unit,
        offset=Fraction(0),
        rounding=rows.rounding * Fraction(rows.n, rows.n - less) + unit,
        limits=(Fraction(0), sqrt_up(rows.largest_variance(less))),
    )


def laplace_quantile(
    data: Any,
    q: Number,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    interpolation: sensitivity.Interpolation = "linear",
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The q-quantile with Laplace noise: "linear" between order statistics (numpy's), or "lower", of rank ceil(q n).

    Sensitivity: (upper - lower) max(f, 1 - f), with f the fractional part of (n - 1) q; upper - lower for "lower".
    It does not shrink with n: one row can move a quantile across the whole range, so intervals are wide.

    Example:
        >>> laplace_quantile([1, 2, 3, 4], 0.5, lower=0, upper=10, epsilon=1).sensitivity
        Fraction(5, 1)
    """
    sensitivity.quantile(q, lower=lower, upper=upper, adjacency=_REPLACE, interpolation=interpolation)  # may refuse
    rows = Rows(data, lower, upper, epsilon, missing, step)
    return rows.order_statistic("quantile", exact(q), interpolation)


def laplace_median(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    interpolation: sensitivity.Interpolation = "linear",
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The median with Laplace noise: the middle value or, for even n, the mean of the middle two, or the lower one.

    Sensitivity: upper - lower; half of that for the mean of the middle two.

    Example:
        >>> laplace_median([1, 2, 3], lower=0, upper=10, epsilon=1).sensitivity
        Fraction(10, 1)
    """
    sensitivity.median(lower=lower, upper=upper, adjacency=_REPLACE, interpolation=interpolation)  # may refuse
    rows = Rows(data, lower, upper, epsilon, missing, step)
    return rows.order_statistic("median", Fraction(1, 2), interpolation)


def laplace_max(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The largest value with Laplace noise. Sensitivity: upper - lower.

    Example:
        >>> laplace_max([1, 2, 3], lower=0, upper=10, epsilon=1).sensitivity
        Fraction(10, 1)
    """
    rows = Rows(data, lower, upper, epsilon, missing, step)
    return rows.order_statistic("max", Fraction(1), "linear")


def laplace_min(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The smallest value with Laplace noise. Sensitivity: upper - lower.

    Example:
        >>> laplace_min([1, 2, 3], lower=0, upper=10, epsilon=1).sensitivity
        Fraction(10, 1)
    """
    rows = Rows(data, lower, upper, epsilon, missing, step)
    return rows.order_statistic("min", Fraction(0), "linear")
