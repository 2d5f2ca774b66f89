"""The textbook statistics, end to end: clamp, evaluate exactly in integers, add Laplace noise, state the error.

Medians, quantiles and extremes are chosen by rank instead, by the exponential mechanism; their textbook form, with
Laplace noise for the whole range, is `laplace_median` and so on.

They protect the data of one row (**replace**); the number of rows n is public. Every function takes `data` (a list, a
numpy array, or an Arrow, pandas or polars column), public bounds and an epsilon, and returns an `Estimate`. Values
outside the bounds are clamped, and missing values count as `missing` (by default the middle of the bounds), so no row
is ever dropped, and only the noisy answer depends on the data.
"""

from privet.textbook.statistics.estimate import Estimate
from privet.textbook.statistics.functions import (
    laplace_max,
    laplace_median,
    laplace_min,
    laplace_quantile,
    mean,
    std,
    sum,  # noqa: A004
    variance,
)
from privet.textbook.statistics.ranks import RankEstimate, max, median, min, quantile  # noqa: A004

__all__ = [
    "Estimate",
    "RankEstimate",
    "laplace_max",
    "laplace_median",
    "laplace_min",
    "laplace_quantile",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "std",
    "sum",
    "variance",
]
