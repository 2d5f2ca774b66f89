"""Which quantiles are marked: one without a mark needs evidence, so that its interval holds as often as stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bench.simulated import judged

import privet as pv
from privet.exact import Exact
from privet.planner import ReleasePlan, plan, rank_outputs

A = 0.05
"""1 - confidence."""


def _plan(aggregates: dict[str, Any], *, epsilon: str) -> ReleasePlan:
    table = pv.table(
        "rows",
        pa.table({"x": pa.array([], pa.int64())}),
        protect=pv.each_row(),
        columns={"x": pv.integer(0, 1000, required=True)},
    )
    return plan(table.agg(**aggregates), epsilon=epsilon)


def _draws(
    aggregates: dict[str, Any], values: Sequence[int], *, epsilon: str, choices: int = 40
) -> dict[str, list[tuple[bool, bool]]]:
    return judged(_plan(aggregates, epsilon=epsilon), values, np.random.default_rng(7), choices=choices, noises=60)


def _too_often_wrong(draws: Sequence[tuple[bool, bool]]) -> bool:
    """Whether more unmarked intervals are wrong than a^2 of all and 1.2 a of the unmarked, by 4 standard errors."""
    unmarked = sum(1 for _, shown in draws if shown)
    wrong = sum(1 for right, shown in draws if shown and not right)
    allowed = A**2 * len(draws) + 1.2 * A * unmarked
    return wrong > allowed + 4 * math.sqrt(allowed)


EMPTY: list[int] = []
HALVES = [0] * 15 + [1000] * 15
GAP = [0] * 20 + [400] * 20
"""The upper end is proved, and the lower one is in the gap, where it is wrong."""
PEAKS = [200] * 40 + [800] * 40
HIGH = [100] * 270 + [550] * 30

HARD: dict[str, tuple[dict[str, Any], Sequence[int], str]] = {
    "an empty group's maximum": ({"o": pv.max("x")}, EMPTY, "0.1"),
    "an empty group's median": ({"o": pv.median("x")}, EMPTY, "0.1"),
    "a median between two halves": ({"o": pv.median("x")}, HALVES, "0.1"),
    "a median in a gap": ({"o": pv.median("x")}, GAP, "1"),
    "a median between two peaks": ({"o": pv.median("x")}, PEAKS, "1"),
    "a high quantile in a gap": ({"o": pv.quantile("x", 0.9)}, HIGH, "1"),
    "together": ({"m": pv.median("x"), "n": pv.min("x"), "o": pv.max("x")}, GAP, "1"),
}


@pytest.mark.parametrize("case", HARD)
def test_unmarked_quantiles_are_right(case: str) -> None:
    for name, draws in _draws(HARD[case][0], HARD[case][1], epsilon=HARD[case][2]).items():
        assert not _too_often_wrong(draws), name


@pytest.mark.parametrize("case", ["an empty group's maximum", "a median in a gap"])
def test_marks_at_the_confidence_of_the_interval_would_fail(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: no more evidence than for an end of the interval, whatever the number of rows."""
    same: Callable[[Exact], Exact] = lambda confidence: confidence  # noqa: E731
    monkeypatch.setattr(rank_outputs, "careful", same)
    monkeypatch.setattr(rank_outputs, "FAR_INSIDE", -1000)
    assert _too_often_wrong(_draws(HARD[case][0], HARD[case][1], epsilon=HARD[case][2])["o"])


USUAL: dict[str, dict[str, Any]] = {
    "median": {"o": pv.median("x")},
    "0.9": {"o": pv.quantile("x", 0.9)},
    "maximum": {"o": pv.max("x")},
}


@pytest.mark.parametrize("asked", USUAL)
def test_most_quantiles_of_a_thousand_rows_are_unmarked(asked: str) -> None:
    values = [617 * (i + 1) % 1001 for i in range(1000)]
    draws = _draws(USUAL[asked], values, epsilon="1")["o"]
    assert sum(unmarked for _, unmarked in draws) >= 0.94 * len(draws)
    assert sum(right for right, _ in draws) >= 0.98 * len(draws)


def test_unclear_medians_are_rarely_unmarked() -> None:
    """What covers half of the range is what is proved with the evidence that no mark needs, not a nearer end."""
    for rows in (28, 40, 60):
        draws = _draws({"o": pv.median("x")}, [200] * rows + [800] * rows, epsilon="1", choices=100)["o"]
        allowed = A**2 * len(draws)
        assert sum(unmarked for _, unmarked in draws) <= allowed + 4 * math.sqrt(allowed), rows


@pytest.mark.parametrize("extreme", [pv.min, pv.max])
def test_an_extreme_is_unmarked_only_if_it_aims_near_the_edge_of_its_group(extreme: Callable[[str], Any]) -> None:
    """Otherwise it could be the median, and look like a minimum."""
    inside = _plan({"o": extreme("x")}, epsilon="1").noise.inside[0]
    assert inside > 20
    for values in ("spread", "all one"):
        for times, least, most in ((1, 0, 0.001), (2, 0, 0.001), (3, 0, 0.03), (8, 0.94, 1)):
            rows = times * inside
            x = [617 * (i + 1) % 1001 for i in range(rows)] if values == "spread" else [500] * rows
            draws = _draws({"o": extreme("x")}, x, epsilon="1")["o"]
            share = sum(unmarked for _, unmarked in draws) / len(draws)
            assert least <= share <= most, (values, times, share)
