"""Sums of many discrete Laplace variables, such as totals over groups: a bound by their moments."""

from __future__ import annotations

import numpy as np

from privet.accuracy.sums import Floats
from privet.exact import Exact, binary, down, up

MANY, MANY_EQUAL = 32, 128
"""Sums of more terms than this are bounded here; the exact distribution of equal ones takes a time in their square."""

_RATES = 1 - np.geomspace(1, 1e-4, 257)[1:]  # of the largest rate that has a moment
_ROUNDING = 1 + 1e-8


def error_of_many(terms: tuple[tuple[Exact, Exact], ...], level: Exact) -> Exact:
    """A t with P(|a_1 X_1 + ... + a_d X_d| >= t) <= level, for terms (a_i, s_i) of discrete Laplace noise.

    Claim (Chernoff): for every rate r with r a_i s_i < 1, P(|S| >= t) <= 2 e^(-rt) prod E e^(r a_i X_i), and with
    q = e^(-1/s), E e^(hX) = (1-q)^2 / ((1 - q e^h)(1 - q e^-h)). So t = (ln(2/level) + sum ln E) / r will do, whatever
    r is; the least of several is taken. For many equal terms it is about 2.72/1.96 of the quantile at 95 %.

    Example:
        >>> float(error_of_many(((Exact(1), Exact(2)),) * 100, Exact("0.05")))
        76.7...
    """
    weights, scales = (np.array([up(term[i]) for term in terms]) for i in (0, 1))
    rate = _RATES / float(np.max(weights * scales) * _ROUNDING)
    best = np.inf
    for some in np.array_split(rate, 16):  # in parts, for the memory
        best = min(best, float(np.min((_logs(weights, scales, some) - np.log(down(level / 2))) / some)))
    return binary(best * _ROUNDING)


def _logs(weights: Floats, scales: Floats, rates: Floats) -> Floats:
    """The sum of ln E e^(r a_i X_i), for each rate r."""
    ends = 1 / scales
    h = rates[:, None] * weights
    logs = 2 * np.log(-np.expm1(-ends)) - np.log(-np.expm1(h - ends)) - np.log(-np.expm1(-h - ends))
    return np.asarray(logs.sum(axis=-1))
