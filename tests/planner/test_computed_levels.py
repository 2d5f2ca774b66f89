"""Columns computed on the levels of a rollup or a cube: they hold as often as they say, and half of them does not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.planner.tables import table
from tests.planner.test_computed import held

import privet as pv
from privet.errors import QueryError
from privet.planner import ReleasePlan, plan

SIZES = {("a", 1): 400, ("a", 2): 90, ("b", 1): 60, ("b", 2): 350, ("c", 1): 800, ("c", 2): 300}
PRICES: list[dict[str, Any]] = [{"epsilon": 1}, {"rho": "0.2"}]
n = pv.col("n")


def drawn(made: ReleasePlan, draws: int) -> list[Any]:
    """Noisy vectors of every level, by draw; the noise is from a fixed seed."""
    generator, parts = np.random.default_rng(5), []
    for part in made.noised:
        level, scale = part.level, float(part.scale)
        assert level is not None
        true = np.array(level.vectors([(count,) for count in SIZES.values()]), dtype=np.int64)
        size = (draws, *true.shape)
        if part.mechanism.norm == "L2":
            noise = np.rint(generator.normal(0, math.sqrt(scale), size)).astype(np.int64)
        else:
            p = -math.expm1(-1 / scale)
            noise = generator.geometric(p, size) - generator.geometric(p, size)
        assert true.shape[0] == level.cells
        parts.append((noise + true).tolist())
    return [[part[i] for part in parts] for i in range(draws)]


def true(group: tuple[Any, ...], by: tuple[int, ...] = ()) -> tuple[int, int]:
    """The exact count of a group, and the total of the groups of its level that agree in some keys."""

    def of(keys: tuple[Any, ...]) -> int:
        return sum(s for cell, s in SIZES.items() if all(k in (None, c) for k, c in zip(keys, cell, strict=True)))

    return of(group), of(tuple(key if i in by else None for i, key in enumerate(group)))


def asked(**columns: Any) -> Any:
    base = table(k=pv.keys("a", "b", "c"), y=pv.integer(1, 2))
    return base.cube("k", "y").agg(n=pv.count()).compute(**columns)


@pytest.mark.parametrize("price", PRICES, ids=["laplace", "gaussian"])
def test_shares_and_totals_hold_on_every_level(price: dict[str, Any]) -> None:
    made = plan(asked(inside=n / pv.total("n", by="k"), all=pv.total("n", by="k")), **price)
    answers = [made.cells(draw) for draw in drawn(made, 60)]
    found: dict[str, list[bool]] = {"inside": [], "all": [], "half of all": []}
    for i, group in enumerate(made.query.groups):
        count, total = true(group, (0,))
        for answer in answers:
            found["inside"] += [held(answer["inside"].at([i]), count / total)[0]]
            found["all"] += [held(answer["all"].at([i]), total)[0]]
            found["half of all"] += [held(answer["all"].at([i]), total, part=0.5)[0]]
    shares = {name: np.mean(each) for name, each in found.items()}
    assert shares["inside"] >= 0.92
    assert shares["all"] >= 0.92
    assert shares["half of all"] < 0.9


@pytest.mark.parametrize("price", PRICES, ids=["laplace", "gaussian"])
def test_totals_are_exactly_what_the_coarser_level_says(price: dict[str, Any]) -> None:
    made = plan(asked(all=pv.total("n"), by_key=pv.total("n", by="k")), **price)
    answer = made.cells(drawn(made, 1)[0])
    groups = list(made.query.groups)
    known = dict(zip(groups, answer["n"].values, strict=True))
    for i, (key, _) in enumerate(groups):
        assert answer["all"].values[i] == pytest.approx(known[None, None], abs=1e-9)
        assert answer["by_key"].values[i] == pytest.approx(known[key, None], abs=1e-9)


def test_a_group_alone_is_all_of_its_total() -> None:
    made = plan(asked(inside=n / pv.total("n", by="k"), share=n / pv.total("n")), epsilon=1)
    answer = made.cells(drawn(made, 1)[0])
    for i, (key, year) in enumerate(made.query.groups):
        alone = [*(["inside"] if year is None else []), *(["share"] if (key, year) == (None, None) else [])]
        for name in alone:
            assert [answer[name].values[i], answer[name].low[i], answer[name].high[i]] == [1, 1, 1]


def test_grouping_has_a_bit_for_each_key_that_is_added_up() -> None:
    made = plan(asked(k_=pv.grouping("k"), y_=pv.grouping("y"), both=pv.grouping("k", "y")), epsilon=1)
    answer = made.cells(drawn(made, 1)[0])
    for i, (key, year) in enumerate(made.query.groups):
        assert answer["k_"].values[i] == (key is None)
        assert answer["y_"].values[i] == (year is None)
        assert answer["both"].values[i] == 2 * (key is None) + (year is None)
        assert answer["both"].low[i] == answer["both"].high[i] == answer["both"].values[i]


def test_the_errors_of_a_formula_are_told_for_each_level() -> None:
    made = plan(asked(d=2 * n), epsilon=1)
    line = next(line for line in str(made.explain()).splitlines() if line.strip().startswith("d "))
    assert line.count("(") == 4
    assert "(total)" in line


def test_grouping_without_levels_is_refused() -> None:
    base = table(k=pv.keys("a", "b", "c"), y=pv.integer(1, 2))
    with pytest.raises(QueryError, match="always 0 here"):
        base.group_by("k").agg(n=pv.count()).compute(g=pv.grouping("k"))
    with pytest.raises(QueryError, match="not a key of the answer"):
        base.rollup("k").agg(n=pv.count()).compute(g=pv.grouping("y"))
    for wrong in ((), ("k", "k")):
        with pytest.raises(QueryError, match="different keys"):
            pv.grouping(*wrong)


def test_the_error_of_a_multiple_of_a_mean_is_told() -> None:
    base = table(k=pv.keys("a", "b"), x=pv.integer(0, 100)).group_by("k").agg(m=pv.mean("x"))
    half, unknown = (pv.col("m") - 20) / 2, 1 / pv.col("m")
    query = base.compute(half=half, unknown=unknown)
    told = str(plan(query, epsilon=1, assuming=100).explain())
    error = float(plan(query, epsilon=1, assuming=100).expected("m") or 0)
    line = next(line for line in told.splitlines() if line.strip().startswith("half  "))
    assert float(line.split("within ")[1].split()[0]) == pytest.approx(error / 2, rel=1e-4)
    assert "if a group has 100 rows" in line
    assert "unknown  follows from the columns" in told
    assert "half     follows from the columns" in str(plan(query, epsilon=1).explain())
