"""Medians, quantiles and extremes of lists, by the exponential mechanism."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from privet.errors import NumberError
from privet.exact import Exact
from privet.mechanisms.ranks import CodeCounts, RankChoice
from privet.privacy.events import BoundedRange
from privet.privacy.guarantees import PureDP
from privet.textbook import statistics

BOUNDS: dict[str, Any] = {"lower": 0, "upper": 200_000}


class Untouchable:
    """Data that may not be read."""

    def __array__(self, *_: object, **__: object) -> Any:
        raise AssertionError("read")

    def __iter__(self) -> Any:
        raise AssertionError("read")


def test_they_are_near_their_rank() -> None:
    pay = np.exp(np.random.default_rng(1).normal(10.5, 0.6, 20_000))
    for q, found in (
        (0.5, statistics.median(pay, epsilon=1, **BOUNDS)),
        (0.9, statistics.quantile(pay, 0.9, epsilon=1, **BOUNDS)),
    ):
        assert abs((pay < float(found)).mean() - q) < 60 / 20_000  # rank errors of 60 have a chance below 1e-12
        assert found.rank_error() <= 55
        assert found.event() == BoundedRange(epsilon=1)
        assert found.guarantee() == PureDP(1)
    low, high = statistics.min(pay, epsilon=1, **BOUNDS), statistics.max(pay, epsilon=1, **BOUNDS)
    assert (pay < float(low)).sum() < 150
    assert (pay > float(high)).sum() < 150
    assert "within" in str(low)
    assert "RankEstimate(min" in repr(low)


def test_all_rows_equal() -> None:
    """OpenDP's score does not count equal rows, and gives a value strictly between 0 and 100."""
    assert float(statistics.median([100] * 500, lower=0, upper=1000, epsilon=1, step=1)) == 100


def test_the_loss_is_at_most_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """By enumeration: the probability of every value, for all pairs of tables of 4 rows that differ in one."""
    laws: list[dict[int, float]] = []

    def draw(self: RankChoice, counts: CodeCounts, bits: object) -> tuple[int, int]:
        self.everything = True
        runs = self.runs(counts)
        weights = np.exp(-float(runs.rate) * runs.distance)
        total = float((weights * runs.codes).sum())
        laws.append(
            {
                int(first) + i: float(weight) / total
                for first, many, weight in zip(runs.first, runs.codes, weights, strict=True)
                for i in range(int(many))
            }
        )
        return 0, 0

    monkeypatch.setattr(RankChoice, "draw", draw)
    for ask in (statistics.median, statistics.max, lambda data, **o: statistics.quantile(data, 0.75, **o)):
        tables = list(itertools.combinations_with_replacement((0, 1, 6), 4))
        laws.clear()
        for table in tables:
            ask(list(table), lower=0, upper=6, step=1, epsilon=2)
        for (a, one), (b, other) in itertools.combinations(zip(tables, laws, strict=True), 2):
            if (Counter(a) - Counter(b)).total() <= 1:
                assert max(abs(math.log(one[c] / other[c])) for c in range(7)) <= 2 + 1e-9


def test_refused_before_data_are_read() -> None:
    for q in (0, 1, 1.5, "1/1000003"):
        with pytest.raises(NumberError, match="greater than 0 and less than 1"):
            statistics.quantile(Untouchable(), q, epsilon=1, **BOUNDS)
    assert statistics.median([1.0], epsilon=Exact(1, 10), **BOUNDS).rank_error(0.5) == 1
