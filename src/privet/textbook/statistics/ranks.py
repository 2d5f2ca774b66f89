"""Quantiles and extremes by the exponential mechanism: a value is chosen by its rank."""

from __future__ import annotations

import builtins
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from privet.errors import NumberError, write
from privet.exact import Exact, Number, exact, nearest, probability, show_up
from privet.mechanisms.ranks import CodeCounts, Node, RankChoice, distance_moved
from privet.noise.entropy import SYSTEM
from privet.privacy import events
from privet.privacy.adjacency import Adjacency
from privet.textbook.statistics.estimate import PrivateNumber
from privet.textbook.statistics.rows import Rows

_FINEST = 10**6
_EXAMPLE = "quantile(data, 0.9, lower=0, upper=200_000, epsilon=0.5)"


@dataclass(frozen=True, slots=True, repr=False)
class RankEstimate(PrivateNumber):
    """A value that was chosen by its rank.

    Claim: epsilon-differentially private for replacing one row, and of bounded range epsilon: a row moves the distance
    of a value from the aimed rank by at most 1, and a value at distance d has a weight of e^(-epsilon d / 2).
    """

    statistic: str
    value: float
    n: int
    epsilon: Exact
    rank: Exact
    """The number of rows that should be below the value."""
    candidates: int
    """The number of values to choose from."""

    def event(self) -> events.BoundedRange:
        """The event, for accountants."""
        return events.BoundedRange(epsilon=self.epsilon)

    def rank_error(self, confidence: Number = 0.95) -> int:
        """How many rows its rank is off at most, with this confidence, on any data; usually it is far less.

        Claim: of N values, one at least has distance 0, so P(d > r) <= N e^(-epsilon r / 2).
        """
        level = probability(confidence, name="confidence", example="rank_error(0.95)")
        reach = (math.log(self.candidates) - math.log1p(-float(level))) * 2 / float(self.epsilon)
        return builtins.min(self.n, math.ceil(reach * (1 + 1e-9)))

    def __str__(self) -> str:
        return (
            f"{self.statistic} {self.value:,.6g}, within {self.rank_error():,} rows of its rank, 95 % of the time "
            f"(epsilon {show_up(self.epsilon)}, n {self.n})"
        )


def quantile(
    data: Any,
    q: Number,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> RankEstimate:
    """The value that a share q of the rows is below, chosen by its rank.

    Example:
        >>> round(quantile(range(10_000), 0.9, lower=0, upper=10_000, epsilon=1), -3)
        9000.0
    """
    share = exact(q, name="q", example=_EXAMPLE)
    if not 0 < share < 1 or share.denominator > _FINEST:
        raise NumberError(
            f"q must be greater than 0 and less than 1, and a multiple of 1/{_FINEST:,} or a coarser fraction",
            remedy=write(_EXAMPLE),
        )
    return _chosen("quantile", share, 0, Rows(data, lower, upper, epsilon, missing, step))


def median(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> RankEstimate:
    """The median, chosen by its rank.

    Example:
        >>> float(median([7] * 1000, lower=0, upper=10, epsilon=1, step=1))
        7.0
    """
    return _chosen("median", Exact(1, 2), 0, Rows(data, lower, upper, epsilon, missing, step))


def max(  # noqa: A001
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> RankEstimate:
    """A value near the largest: so many rows inside of the edge that a value beyond the data is unlikely.

    Example:
        >>> float(max([7] * 1000, lower=1, upper=7, epsilon=1, step=1))
        7.0
    """
    rows = Rows(data, lower, upper, epsilon, missing, step)
    return _chosen("max", Exact(1), -_inside(rows), rows)


def min(  # noqa: A001
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> RankEstimate:
    """A value near the smallest: so many rows inside of the edge that a value beyond the data is unlikely.

    Example:
        >>> float(min([7] * 1000, lower=7, upper=11, epsilon=1, step=1))
        7.0
    """
    rows = Rows(data, lower, upper, epsilon, missing, step)
    return _chosen("min", Exact(0), _inside(rows), rows)


def _inside(rows: Rows) -> int:
    """How many rows inside of the edge: 2 (ln N + 3) / epsilon for N values."""
    return math.ceil((math.log(rows.width + 1) + 3) * 2 / float(rows.epsilon))


def _chosen(statistic: str, q: Exact, shift: int, rows: Rows) -> RankEstimate:
    counts = CodeCounts.of(Counter(rows.codes), shift=0, width=rows.width, known={})
    moved = distance_moved(q, rows=1, adjacency=Adjacency.REPLACE, alone=True)
    choice = RankChoice(Node(0, rows.width, 0, rows.n), q, shift, rows.epsilon / (2 * moved), split=False)
    drawn = choice.draw(counts, SYSTEM) or choice.draw(counts, SYSTEM)  # the second time, of every value
    assert drawn is not None
    value = nearest(rows.lower + rows.step * drawn[0])
    return RankEstimate(statistic, value, rows.n, rows.epsilon, q * rows.n + shift, rows.width + 1)
