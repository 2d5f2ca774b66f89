"""The least error that is known to be possible, or a textbook mechanism's exact error, for `./dev bench error`.

- count and sum: the staircase mechanism with the least variance, optimal among noise added to a number of this
  sensitivity (Geng and Viswanath 2014; for counts of sensitivity 1 it is the geometric mechanism). Each cell by itself
  is such a number, so no vector of them does better.
- quantile: the exponential mechanism on the gaps between the values, at the true sensitivity. Not an optimum.
- keys: the optimal rule for one key per person (Desfontaines, Voss, Gipson and Mandayam 2022).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def additive(sensitivity: float, epsilon: float) -> float:
    """The standard deviation of the staircase mechanism for real numbers, with the best width of step.

    >>> round(additive(1, 0.01) * 0.01, 3)
    1.414
    """
    b = math.exp(-epsilon)
    return sensitivity * math.sqrt(2 ** (-2 / 3) * (b * (1 + b)) ** (2 / 3) + b) / (1 - b)


def counting(sensitivity: int, epsilon: float) -> float:
    """The same for whole numbers: the best of all widths of step. With sensitivity 1, the geometric mechanism.

    >>> math.isclose(counting(1, 1.0), math.sqrt(2 * math.exp(-1)) / (1 - math.exp(-1)))
    True
    """
    b = math.exp(-epsilon)
    distance = np.arange(sensitivity * (int(60 / epsilon) + 2))
    variances = []
    for width in range(1, sensitivity + 1):
        stairs = distance // sensitivity + (distance % sensitivity >= width)
        mass = b**stairs
        total = 2 * mass.sum() - mass[0]
        variances.append(2 * (mass * distance.astype(float) ** 2).sum() / total)
    return math.sqrt(min(variances))


def quantile(values: Any, q: float, bounds: tuple[float, float], whole: bool, cap: int, epsilon: float) -> float:
    """The root of the expected squared distance from the correct answers, for sorted values."""
    low, high = bounds
    size = len(values)
    rank = round(q * size, 9)
    left, right = values[max(int(np.ceil(rank)) - 1, 0)], values[min(int(np.floor(rank)), size - 1)]
    step = 1.0 if whole else (high - low) / 2**32
    points, ties = np.unique(values, return_counts=True)
    below = np.cumsum(ties) - ties
    rate = epsilon / (2 * cap * max(q, 1 - q))
    # Single codes that hold values, and the open gaps between them.
    edges = np.concatenate([[low - step], points, [high + step]])
    start, end = edges[:-1] + step, edges[1:] - step
    gaps = np.maximum(np.round((end - start) / step) + 1, 0)
    ranks = np.concatenate([[0], np.cumsum(ties)])
    score = np.concatenate([np.maximum(0, np.maximum(below - rank, rank - below - ties)), np.abs(ranks - rank)])
    size_of = np.concatenate([np.ones(len(points)), gaps])
    weight = np.where(size_of > 0, size_of, 0) * np.exp(-rate * (score - score.min()))
    first, last = np.concatenate([points, start]), np.concatenate([points, end])
    # A value between the two correct ones has no error; every other gap lies on one side of both.
    near = np.where(first > right, first - right, np.where(last < left, left - last, 0.0))
    far = np.where(first > right, last - right, np.where(last < left, left - first, 0.0))
    squared = (near**2 + near * far + far**2) / 3
    return math.sqrt(float((weight * squared).sum() / weight.sum()))


def keep(persons: Any, epsilon: float, delta: float) -> Any:
    """The greatest probabilities, for 1, 2, ... persons, with which a key can appear.

    >>> [round(float(p), 4) for p in keep([1, 2, 3, 4, 5], math.log(2), 0.1)]
    [0.1, 0.3, 0.7, 0.9, 1.0]
    """
    grow, most = math.exp(epsilon), int(max(persons))
    chance = np.zeros(most + 1)
    for n in range(1, most + 1):
        before = chance[n - 1]
        chance[n] = min(grow * before + delta, 1 - (1 - before - delta) / grow, 1.0)
    return chance[np.asarray(persons)]
