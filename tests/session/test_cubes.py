"""Rollups and cubes through sessions: they add up, hold the truth, can be arranged, checked and recalled."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privet as pv
from privet.errors import QueryError, VerificationError
from privet.planner.cubes import cube as consistent
from privet.planner.levels import Estimate, shape, table
from privet.planner.noise import add_noise
from privet.planner.plan import NoisyMeasurement
from privet.release import checker
from privet.release.certificate import Certificate

REGIONS, TOWNS = ("north", "south", "west"), ("a", "b")
COLUMNS = {"region": pv.keys(*REGIONS), "town": pv.keys(*TOWNS), "x": pv.integer(0, 10)}
BUDGETS: list[tuple[Any, dict[str, Any]]] = [
    (pv.PureDP(1000), {"epsilon": 1}),
    (pv.ZeroConcentratedDP(1000), {"rho": "0.5"}),
    (pv.ApproxDP(1000, 1e-6), {"epsilon": "0.5", "delta": 1e-8}),
]
IDS = ["pure", "concentrated", "approximate"]


def people(adjacency: str = "add/remove", **cap: int) -> pv.Table:
    rows = [(i % 40, REGIONS[i % 3], TOWNS[i // 3 % 2], i % 11) for i in range(60)] + [(41, "east", "a", 5)]
    who, region, town, x = zip(*rows, strict=True)
    data = pa.table({"who": who, "region": region, "town": town, "x": x})
    protect = pv.person("who", **cap) if cap else pv.each_row()
    return pv.table("people", data, protect=protect, columns=COLUMNS, adjacency=adjacency)


def wide() -> pv.Table:
    """Keys with many values: with few of them, Laplace noise is best spent on the finest level alone."""
    columns = {"region": pv.integer(0, 9), "town": pv.integer(0, 7), "x": pv.integer(0, 10)}
    data = pa.table({name: pa.array([1, 2, 3], pa.int64()) for name in columns})
    return pv.table("people", data, protect=pv.each_row(), columns=columns)


def session(of: pv.Table, budget: Any = None) -> pv.Session:
    return pv.Session([of], budget=budget or pv.PureDP(1000), ledger=None, threads=1)


# --- they add up --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "price"), BUDGETS, ids=IDS)
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_towns_add_up_to_regions_and_regions_to_the_total(budget: Any, price: dict[str, Any], adjacency: str) -> None:
    of = people(adjacency, max_groups=2, max_rows_per_group=2)
    asked = of.cube("region", "town").agg(n=pv.count(), s=pv.sum("x"), m=pv.mean("x"), h=pv.histogram("x", [0, 5, 10]))
    with session(of, budget) as here:
        answer = here.release(asked, **price)
        assert len(answer) == 12 == answer.plan.groups
        assert answer.keys[:2] == [("north", "a"), ("north", "b")]
        assert answer.keys[6:] == [*((r, None) for r in REGIONS), *((None, t) for t in TOWNS), (None, None)]
        for name in ("n", "s", "h 0-5", "h 5-10"):
            if name not in answer.columns:
                continue
            value = dict(zip(answer.keys, answer.values(name), strict=True))
            size = max(map(abs, value.values())) + 1
            for r in REGIONS:
                assert sum(value[r, t] for t in TOWNS) == pytest.approx(value[r, None], abs=1e-12 * size)
            for t in TOWNS:
                assert sum(value[r, t] for r in REGIONS) == pytest.approx(value[None, t], abs=1e-12 * size)
            assert sum(value[r, None] for r in REGIONS) == pytest.approx(value[None, None], abs=1e-12 * size)
        assert pv.verify(answer.certificate).rules
        again = here.release(asked, **price)
        assert again.paid_before
        assert again.shown == answer.shown


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_with_hardly_any_noise_the_answer_is_the_truth_in_both_engines(engine: str) -> None:
    of = people()
    with pv.Session([of], budget=pv.PureDP(10**9), ledger=None, threads=1, engine=engine) as here:
        asked = of.rollup("region", "town").agg(n=pv.count(), s=pv.sum("x"), m=pv.mean("x"))
        answer = here.release(asked, epsilon=10**6)
    rows = [(REGIONS[i % 3], TOWNS[i // 3 % 2], i % 11) for i in range(60)]
    for (r, t), n, s, m in zip(answer.keys, *(answer.values(c) for c in ("n", "s", "m")), strict=True):
        inside = [x for a, b, x in rows if r in (None, a) and t in (None, b)]
        assert n == pytest.approx(len(inside), abs=1e-6)
        assert s == pytest.approx(sum(inside), abs=1e-6)
        assert m == pytest.approx(sum(inside) / len(inside), abs=1e-6)


def test_a_key_with_one_value_is_measured_once() -> None:
    of = people()
    where = of.where(pv.col("town") == "a")
    with session(of) as here:
        one = here.plan(where.rollup("region", "town").agg(n=pv.count()), epsilon=1)
        assert [len(part) for part in (one.query.listed.values)] == [3, 1]
        assert [part.level.keys for part in one.noised if isinstance(part, NoisyMeasurement) and part.level] == [(0,)]
        two = here.plan(where.rollup("region", "town").agg(n=pv.count()), epsilon=1, mechanism="laplace")
        assert two.noised == one.noised
        answer = here.release(one)
        assert answer.keys[:4] == [("north", "a"), ("south", "a"), ("west", "a"), ("north", None)]
        assert answer.values("n")[:3] == answer.values("n")[3:6]
        pv.verify(answer.certificate)


# --- intervals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": "0.05"}], ids=["laplace", "gaussian"])
def test_intervals_hold_the_truth_as_often_as_they_say(price: dict[str, Any]) -> None:
    """200 answers from known tables: each cell is covered in 95 % of them, and would not be with 0.8 of the width."""
    times, truth = 200, {"n": 5_000.0, "s": 30_000.0, "m": 6.0}
    of = wide()
    asked = of.rollup("region", "town").agg(n=pv.count(), s=pv.sum("x"), m=pv.mean("x"))
    budget = pv.PureDP(10**6) if "epsilon" in price else pv.ZeroConcentratedDP(10**6)
    with session(of, budget) as here:
        made = here.plan(asked, **price)
    counted = [[[_tally(tally, truth) for tally in each.tallies] for _ in range(80)] for each in made.statements()]
    exact, cube = made.coordinates(counted), consistent(made)
    groups: dict[tuple[int, ...], list[Any]] = {keys: [] for keys in cube.levels.sets}
    for _ in range(times):
        for keys, vectors in cube.margins(add_noise(made, exact)[0]).items():
            groups[keys] += vectors
    held, narrow = {}, {}
    for name, one in truth.items():
        inside, closer = [], []
        for keys, size in zip(cube.levels.sets, (1, 8, 80), strict=True):
            output, noise = cube.view(dict(made.columns)[name], keys)
            cells = output.cells(groups[keys], noise, made.level)
            right = one if name == "m" else one * size
            low, high, value = (np.array(part).reshape(times, -1) for part in (cells.low, cells.high, cells.values))
            inside += ((low <= right) & (right <= high)).sum(axis=0).tolist()
            near = (value - 0.8 * (value - low) <= right) & (right <= value + 0.8 * (high - value))
            closer += near.sum(axis=0).tolist()
        held[name], narrow[name] = np.array(inside), np.array(closer)
    least = 0.95 * times - 6.5 * math.sqrt(times * 0.05 * 0.95)
    for name in truth:
        assert held[name].min() >= least, (name, held[name])
        assert held[name].mean() < 0.985 * times, name
        assert narrow[name][:80].mean() < 0.95 * times - 0.5 * math.sqrt(times * 0.05 * 0.95), (name, narrow[name])


def _tally(tally: Any, truth: dict[str, float]) -> int:
    return int(truth["s"] if type(tally).__name__ == "Total" else truth["n"])


def test_expected_errors_and_errors_that_are_asked_for() -> None:
    of = people()
    asked = of.rollup("region", "town").agg(n=pv.count())
    for budget in (pv.PureDP(1000), pv.ZeroConcentratedDP(1000)):
        with session(of, budget) as here:
            made = here.plan(asked, within={"n": 5})
            error = made.expected("n")
            assert error is not None
            assert Fraction(9, 2) < error <= 5
            assert here.plan(asked, within={"n": 5}, simultaneous=True).price.implies(made.price) is False
            assert isinstance(made.within, tuple)


def test_noise_and_scales_are_not_trusted_but_checked() -> None:
    """Noise that is too little for its residual, or a level that is another one, is refused by the checker."""
    of = people("replace", max_rows=3)
    for budget, price in BUDGETS[:2]:
        with session(of, budget) as here:
            answer = here.release(of.rollup("region", "town").agg(n=pv.count()), **price)
        document = answer.certificate.document
        checker.check(document["derived"], document["noisy"])
        for place in range(len(document["noisy"])):
            small = copy.deepcopy(document)
            part = small["derived"]["measurements"][place]
            field = "l1" if "l1" in part["move"] else "squared_l2"
            part["move"][field] -= 1
            with pytest.raises(VerificationError, match=r"move|event"):
                checker.check(small["derived"], small["noisy"])
            missing = copy.deepcopy(document)
            missing["derived"]["measurements"][place]["level"] = [0, 5]
            with pytest.raises(VerificationError, match="level"):
                checker.check(missing["derived"], missing["noisy"])
        other = copy.deepcopy(document)
        other["noisy"][0][0][0] += 1
        with pytest.raises(VerificationError, match="answer"):
            pv.verify(Certificate(json.loads(json.dumps(other))))


def test_the_noisy_levels_themselves_are_not_consistent() -> None:
    """The twin: what is measured does not add up before it is made consistent."""
    of = wide()
    with session(of) as here:
        answer = here.release(of.rollup("region", "town").agg(n=pv.count()), epsilon="0.1")
    towns, regions, total = ([v[0] for v in part] for part in answer.noisy)
    assert [sum(towns[8 * i : 8 * i + 8]) for i in range(10)] != regions
    assert sum(regions) != total[0]
    (made,) = consistent(answer.plan).estimates
    assert isinstance(made, Estimate)
    tables = [table(part, shape(level.margin)) for part, level in zip(answer.noisy, made.measured, strict=True)]
    parts = made.parts(tables)
    fine, coarse = (made.margin(parts, keys) for keys in ((0, 1), (0,)))
    unit, other = made.unit((0, 1)), made.unit((0,))
    assert (fine.sum(axis=1, keepdims=True) * other == coarse * unit).all()


# --- arranged and shown ---------------------------------------------------------------------------------------


def test_arranged_answers_and_their_formats() -> None:
    of = people()
    with session(of) as here:
        rolled = of.rollup("region", "town").agg(n=pv.count())
        whole = here.release(rolled, epsilon=10)
        by_key = here.release(rolled.order_by("town", "region"), epsilon=10)
        assert by_key.paid_before
        assert by_key.keys[-1] == (None, None)
        assert by_key.keys[6:9] == [(r, None) for r in REGIONS]
        north = here.release(rolled.having(pv.col("region") == "north"), epsilon=10)
        assert north.keys == [("north", "a"), ("north", "b"), ("north", None)]
        top = here.release(rolled.order_by("n", descending=True).limit(1), epsilon=10)
        assert top.keys == [(None, None)]
    assert whole.to_arrow().column("town").to_pylist()[-1] is None
    assert whole.to_dicts()[-1]["region"] is None
    assert str(whole).count("total") == 5
    assert whole._repr_html_().count(">total<") == 5
    assert "total, total" in whole.chart()
    assert len(whole.plot().axes) >= 1


def test_rollup_of_one_key_can_be_drawn() -> None:
    of = people()
    with session(of) as here:
        answer = here.release(of.rollup("region").agg(n=pv.count(), m=pv.mean("x")), epsilon=1)
        answer.plot(order=["south"])
        answer.plot("n")
        assert [line.split()[0] for line in answer.chart().splitlines()[1:5]] == ["north", "south", "west", "total"]


def test_explain_names_every_level_with_its_error() -> None:
    of = people()
    for budget, price in BUDGETS[:2]:
        with session(of, budget) as here:
            text = here.explain(of.rollup("region", "town").agg(n=pv.count()), **price)
        assert "3 levels: region, town; region; total." in text
        for name in ("(region, town)", "(region)", "(total)"):
            assert name in text
        assert ("residual" in text) is ("rho" in price)
        assert " % of its " in text


# --- refused --------------------------------------------------------------------------------------------------


def test_what_does_not_add_up_is_refused_before_it_is_paid_for() -> None:
    of = people(max_rows=3)
    with session(of) as here:
        for asked, words in [
            (of.rollup("region").agg(n=pv.count_people()), "do not add up"),
            (of.rollup("region").agg(v=pv.variance("x")), "variance"),
            (of.rollup("region").agg(v=pv.sum("x") / pv.count_people()), "do not add up"),
        ]:
            with pytest.raises(QueryError, match=words):
                here.release(asked, epsilon=1)
        assert here.remaining.guarantee == pv.PureDP(1000)
        once = of.cap(max_rows=1).rollup("region").agg(n=pv.count_people())
        assert len(here.release(once, epsilon=1)) == 4
        same = of.cap(max_groups=1, max_rows_per_group=3).rollup("region").agg(n=pv.count_people(), rows=pv.count())
        assert pv.verify(here.release(same, epsilon=1).certificate).rules


def test_wrong_calls() -> None:
    of = people()
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: of.rollup(), "rollup needs a key"),
        (lambda: of.cube(), "cube needs a key"),
        (lambda: of.grouping_sets([()]), "grouping_sets needs a key"),
        (lambda: of.grouping_sets("region"), "a list of sets"),
        (lambda: of.grouping_sets([("region",), ("region",)]), "all must be different"),
        (lambda: of.cube(**{f"k{i}": pv.bins("x", [0, i + 1, 10]) for i in range(7)}), "at most 6 keys"),
    ]
    for call, words in calls:
        with pytest.raises(QueryError, match=words):
            call()
