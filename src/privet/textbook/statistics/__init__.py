"""The textbook statistics, end to end: clamp, evaluate exactly in integers, add Laplace noise, state the error.

What is protected is the data of one row (**replace**); the number of rows n is public. Every function takes
`data` (a list, a numpy array, or an Arrow, pandas or polars column), public bounds and an epsilon, and returns an
`Estimate`. Values outside the bounds are clamped, missing ones count as `missing` (the middle of the bounds if not
given): so no row is ever dropped, and nothing but the noisy answer depends on the data.
"""

from privet.textbook.statistics.estimate import Estimate
from privet.textbook.statistics.textbook import max, mean, median, min, quantile, std, sum, variance  # noqa: A004

__all__ = ["Estimate", "max", "mean", "median", "min", "quantile", "std", "sum", "variance"]
