"""The textbook statistics, end to end: clamp, evaluate exactly in integers, add Laplace noise, state the error.

They protect the data of one row (**replace**); the number of rows n is public. Every function takes `data` (a list, a
numpy array, or an Arrow, pandas or polars column), public bounds and an epsilon, and returns an `Estimate`. Values
outside the bounds are clamped, and missing values count as `missing` (by default the middle of the bounds), so no row
is ever dropped, and only the noisy answer depends on the data.
"""

from privet.textbook.statistics.estimate import Estimate
from privet.textbook.statistics.functions import max, mean, median, min, quantile, std, sum, variance  # noqa: A004

__all__ = ["Estimate", "max", "mean", "median", "min", "quantile", "std", "sum", "variance"]
