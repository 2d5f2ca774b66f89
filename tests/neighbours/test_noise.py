"""The noise of releases, through the public API: the planned scale is accepted, and scales 1.3 times off are rejected.

The exact answers are known, so what is released minus what is true is what was drawn: 20,000 times for each kind of
measurement.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.statistical.test_samplers import NEVER, p_value

import privet as pv
from privet.noise import DiscreteLaplace
from privet.session import Session

GROUPS = 10_000
COLUMNS = {"g": pv.integer(0, GROUPS - 1), "x": pv.number(0, 8, step=1)}
ASKED: dict[str, dict[str, Any]] = {
    "count/1": {"n": pv.count()},
    "people/1": {"n": pv.count_people()},
    "histogram/1": {"h": pv.histogram("x", [0, 3, 8])},
    "sum/1": {"s": pv.sum("x")},
    "pair/1": {"m": pv.mean("x")},
    "triple/1": {"v": pv.variance("x")},
}


def table(adjacency: str) -> pv.Table:
    rows = pa.table({"who": [1, 1, 2], "g": [3, 4, 3], "x": [1.0, 8.0, 5.0]})
    protect = pv.person("who", max_rows=2)
    return pv.table("people", rows, protect=protect, columns=COLUMNS, adjacency=adjacency)


def drawn(session: Session, query: pv.Query, epsilon: Any, count: int) -> tuple[list[int], Fraction]:
    """At least so many draws, and the scale that was planned."""
    found: list[int] = []
    made = session.plan(query, epsilon=epsilon)
    (part,) = made.noised
    exact = np.array(made.coordinates([session.dataset.engine.answer(s) for s in made.statements()])[0])
    while len(found) < count:
        noisy = np.array(session.release(query, epsilon=epsilon, fresh=True).noisy[0])
        found += (noisy - exact).ravel().tolist()
    return found, part.scale


@pytest.mark.slow
@pytest.mark.parametrize("rule", list(ASKED))
def test_the_noise_has_the_planned_scale(rule: str, effort: int) -> None:
    adjacency = "replace" if rule in ("count/1", "pair/1") else "add/remove"
    with pv.Session([table(adjacency)], budget=pv.PureDP(10**6), ledger=None, threads=1) as session:
        query = session.tables["people"].group_by("g").agg(**ASKED[rule])
        assert session.plan(query, epsilon=1).noised[0].measurement.rule == rule
        values, scale = drawn(session, query, "0.3", 20_000 * effort)
        most = {"count/1": 4, "people/1": 2, "histogram/1": 2, "sum/1": 16, "pair/1": 32, "triple/1": 128}[rule]
        assert scale == most / Fraction("0.3")  # not from the plan alone: by hand
    assert p_value(values, DiscreteLaplace(scale)) > NEVER
    for wrong in (scale * Fraction(13, 10), scale / Fraction(13, 10)):
        assert p_value(values, DiscreteLaplace(wrong)) < NEVER


@pytest.mark.slow
def test_single_cells_released_again_and_again(effort: int) -> None:
    """A small table, a small answer, many releases: what was drawn for one says nothing about the next."""
    rows = pa.table({"x": [1.0, 2.0, 3.0]})
    people = pv.table("people", rows, protect=pv.each_row(), columns={"x": pv.number(0, 8, step=1)})
    query = people.agg(n=pv.count(), s=pv.sum("x"))
    times = 400 * effort
    with pv.Session([people], budget=pv.PureDP(times), ledger=None, threads=1) as session:
        first = session.plan(query, epsilon=1)
        exact = first.coordinates([session.dataset.engine.answer(s) for s in first.statements()])
        scales = first.scales
        draws: list[list[int]] = [[] for _ in scales]
        for _ in range(times):
            release = session.release(query, epsilon=1, fresh=True)
            for place, part in enumerate(release.noisy):
                draws[place] += [
                    y - x for v, w in zip(exact[place], part, strict=True) for x, y in zip(v, w, strict=True)
                ]
        assert session.remaining.guarantee == pv.PureDP.ZERO
    for values, scale in zip(draws, scales, strict=True):
        assert p_value(values, DiscreteLaplace(scale)) > 1e-9
        assert p_value(values, DiscreteLaplace(scale * 3)) < 1e-9
        assert p_value(values, DiscreteLaplace(scale / 3)) < 1e-9
        x = np.array(values, dtype=float)
        spread = float(np.std(x[1:] * x[:-1]) / np.sqrt(len(x) - 1))
        assert abs(float(np.mean(x[1:] * x[:-1]))) < 7 * spread


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_intervals_hold_the_truth_as_often_as_they_say(confidence: float) -> None:
    with pv.Session([table("add/remove")], budget=pv.PureDP(10**6), ledger=None, threads=1) as session:
        query = session.tables["people"].group_by("g").agg(n=pv.count(), s=pv.sum("x"))
        release = session.release(query, epsilon=1, confidence=confidence)
        truth = {"n": [0] * GROUPS, "s": [0] * GROUPS}
        truth["n"][3:5], truth["s"][3:5] = [2, 1], [6, 8]
        for name in ("n", "s"):
            low, high = release.interval(name)
            held = sum(a <= t <= b for a, t, b in zip(low, truth[name], high, strict=True)) / GROUPS
            assert confidence - 0.025 <= held <= confidence + 0.12  # integers: a little more
