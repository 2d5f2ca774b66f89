"""How far one row, or one person, can move a statistic: the one home for every radius and diameter.

`closed_forms` has the global sensitivity of the usual statistics, `sum_lemma` that of everything which is a
sum over rows, and `search` hunts for neighbours that break a claimed sensitivity of any function.
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
