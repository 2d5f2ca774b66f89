"""Sensitivity: how far one row, or one person, can move a statistic.

`closed_forms` has the global sensitivity of the usual statistics, `privet.privacy.sensitivity` that of any sum over
rows, and `search` looks for neighbours that break a claimed sensitivity of any function.
"""

from privet.privacy.sensitivity import diameter, l1_move, l2_move, radius
from privet.textbook.sensitivity.closed_forms import (
    Interpolation,
    count,
    for_rows,
    histogram,
    mean,
    median,
    quantile,
    std,
    variance,
)
from privet.textbook.sensitivity.closed_forms import maximum as max  # noqa: A004
from privet.textbook.sensitivity.closed_forms import minimum as min  # noqa: A004
from privet.textbook.sensitivity.closed_forms import total as sum  # noqa: A004
from privet.textbook.sensitivity.search import Counterexample, search

__all__ = [
    "Counterexample",
    "Interpolation",
    "count",
    "diameter",
    "for_rows",
    "histogram",
    "l1_move",
    "l2_move",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "radius",
    "search",
    "std",
    "sum",
    "variance",
]
