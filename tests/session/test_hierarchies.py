"""Towns that each lie in one region, through sessions: possible groups, sums, intervals, certificates, refusals."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privet as pv
from privet.errors import QueryError, UserError, VerificationError
from privet.planner.cubes import cube as consistent
from privet.planner.noise import add_noise
from privet.release import checker

TOWNS = {"north": ["a", "b", "c", "d"], "south": ["e", "f"], "west": ["g"]}
PAIRS = [(region, town) for region, towns in TOWNS.items() for town in towns]
BUDGETS: list[tuple[Any, dict[str, Any]]] = [
    (pv.PureDP(1000), {"epsilon": 1}),
    (pv.ZeroConcentratedDP(1000), {"rho": "0.5"}),
    (pv.ApproxDP(1000, 1e-6), {"epsilon": "0.5", "delta": 1e-8}),
]
IDS = ["pure", "concentrated", "approximate"]
ODD = [("north", "e"), ("north", None), (None, "a"), ("south", "?"), ("?", "g"), ("west", "a")]
"""Towns in the wrong region, and without one of both."""


def table(adjacency: str = "add/remove", other: str | None = None, **cap: int) -> pv.Table:
    rows: list[Any] = [(i % 30, *PAIRS[i % 7], i % 5, 2023 + i % 2) for i in range(63)]
    rows += [(100 + i, *odd, 4, 2024) for i, odd in enumerate(ODD)]
    data = pa.table(dict(zip(("who", "region", "town", "x", "year"), zip(*rows, strict=True), strict=True)))
    columns = {
        "region": pv.keys(*TOWNS), "town": pv.keys(TOWNS, within="region", other=other), "x": pv.integer(0, 10),
        "year": pv.integer(2023, 2024),
    }  # fmt: skip
    protect = pv.person("who", **cap) if cap else pv.each_row()
    return pv.table("visits", data, protect=protect, columns=columns, adjacency=adjacency)


def session(of: pv.Table, budget: Any = None, **how: Any) -> pv.Session:
    return pv.Session([of], budget=budget or pv.PureDP(10**9), ledger=None, threads=1, **how)


@pytest.mark.parametrize(("budget", "price"), BUDGETS, ids=IDS)
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_towns_add_up_to_their_regions(budget: Any, price: dict[str, Any], adjacency: str) -> None:
    of = table(adjacency, max_groups=2, max_rows_per_group=2)
    mean = {"m": pv.mean("x")} if "rho" in price else {}
    asked = of.rollup("region", "town").agg(n=pv.count(), s=pv.sum("x"), **mean)
    with session(of, budget) as here:
        answer = here.release(asked, **price)
        assert answer.keys == [*PAIRS, *((region, None) for region in TOWNS), (None, None)]
        for name in ("n", "s"):
            value = dict(zip(answer.keys, answer.values(name), strict=True))
            for region, towns in TOWNS.items():
                assert sum(value[region, town] for town in towns) == pytest.approx(value[region, None], abs=1e-9)
            assert sum(value[region, None] for region in TOWNS) == pytest.approx(value[None, None], abs=1e-9)
        assert pv.verify(answer.certificate).rules
        assert here.release(asked, **price).shown == answer.shown


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("other", [None, "countryside"])
def test_rows_that_contradict_the_declaration_are_in_no_group(engine: str, other: str | None) -> None:
    """With hardly any noise the answer is the truth: each row in its own town and region, or nowhere."""
    of = table(other=other)
    with session(of, engine=engine) as here:
        rolled = here.release(of.rollup("region", "town").agg(n=pv.count(), s=pv.sum("x")), epsilon=10**6)
        single = here.release(of.group_by("region", "town").agg(n=pv.count()), epsilon=10**6)
        by_town = here.release(of.group_by("town").agg(n=pv.count()), epsilon=10**6)
    found = {keys: round(n) for keys, n in zip(rolled.keys, rolled.values("n"), strict=True)}
    assert {keys: round(n) for keys, n in zip(single.keys, single.values("n"), strict=True)} == {
        keys: n for keys, n in found.items() if None not in keys
    }
    assert all(found[pair] == 9 for pair in PAIRS)
    odd = 1 if other else 0  # ("south", "?")
    assert found[None, None] == 63 + odd
    if other:
        assert [found[region, other] for region in TOWNS] == [0, 1, 0]
    assert round(by_town.values("n")[0]) == 9 + 2  # alone, a town is read as it is
    assert any("lies in another region" in limit for limit in rolled.limits)
    assert any("lies in another region" in limit for limit in single.limits)


def test_conditions_leave_only_groups_that_remain_possible() -> None:
    of = table()
    with session(of) as here:
        some = of.where(pv.col("town").is_in(["a", "g"]))
        answer = here.release(some.rollup("region", "town").agg(n=pv.count()), epsilon=10**6)
        assert answer.keys == [("north", "a"), ("west", "g"), ("north", None), ("west", None), (None, None)]
        assert [round(n) for n in answer.values("n")] == [9, 9, 9, 9, 18]
        pv.verify(answer.certificate)
        none = of.where((pv.col("region") == "north") & (pv.col("town") == "g"))
        for asked in (none.rollup("region", "town"), none.group_by("region", "town")):
            with pytest.raises(QueryError, match="leave no town in a region that they allow"):
                here.release(asked.agg(n=pv.count()), epsilon=1)


def test_other_keys_before_and_after_and_shares() -> None:
    of = table()
    text = """
        SELECT year, region, town, COUNT(*) AS n,
            n / SUM(n) OVER (PARTITION BY GROUPING(year, region, town), year, region) AS share
        FROM visits GROUP BY year, ROLLUP (region, town)
    """
    with session(of, pv.ZeroConcentratedDP(1000)) as here:
        answer = here.release(text, rho=1)
        value = dict(zip(answer.keys, answer.values("n"), strict=True))
        share = dict(zip(answer.keys, answer.values("share"), strict=True))
        assert len(value) == 2 * (7 + 3 + 1)
        for year, region in ((2023, "north"), (2024, "south")):
            assert sum(share[year, region, town] for town in TOWNS[region]) == pytest.approx(1)
            assert value[year, region, "a" if region == "north" else "e"] / value[year, region, None] == pytest.approx(
                share[year, region, "a" if region == "north" else "e"]
            )
        pv.verify(answer.certificate)
        assert len(here.release(of.rollup("region", "town", "year").agg(n=pv.count()), rho=1)) == 14 + 7 + 3 + 1
        assert len(here.release(of.group_by("region", "town", "year").agg(n=pv.count()), rho=1)) == 14


@pytest.mark.parametrize("other", [None, "countryside"])
def test_a_rollup_in_the_wrong_order_is_refused_with_the_right_one(other: str | None) -> None:
    """It has each town twice and no region."""
    of = table(other=other)
    wrong = [
        ("GROUP BY ROLLUP (town, region)", "ROLLUP (region, town)"),
        ("GROUP BY ROLLUP (year, town, region)", "ROLLUP (year, region, town)"),
        ("GROUP BY year, ROLLUP (town, region)", "ROLLUP (year, region, town)"),
        ("GROUP BY GROUPING SETS ((region, town), (town))", "ROLLUP (region, town)"),
    ]
    with session(of, pv.PureDP(1000)) as here:
        for text, right in wrong:
            with pytest.raises(QueryError, match="each town twice") as caught:
                here.release(f"SELECT COUNT(*) AS n FROM visits {text}", epsilon=1)
            assert right in str(caught.value)
        with pytest.raises(QueryError) as caught:
            here.release(of.rollup("town", "region").agg(n=pv.count()), epsilon=1)
        assert 'rollup("region", "town")' in str(caught.value)
        assert here.remaining.guarantee == pv.PureDP(1000)


@pytest.mark.parametrize(
    ("where", "allowed"),
    [
        ("region = 'south' AND town = 'a'", False),
        ("region = 'south' AND town IN ('a', 'g')", False),
        ("region <> 'north' AND town = 'a'", False),
        ("region = 'south' AND town IN ('a', 'e')", True),
        ("region = 'south' OR town = 'a'", True),
        ("region = 'south' AND town <> 'a'", True),
        ("region = 'south' AND town = 'countryside'", True),
    ],
)
def test_conditions_that_a_hierarchy_excludes_are_refused_before_any_debit(where: str, allowed: bool) -> None:
    of = table(other="countryside")
    with session(of, pv.PureDP(1000)) as here:
        for text in (f"SELECT COUNT(*) AS n FROM visits WHERE {where}", f"SELECT AVG(x) FROM visits WHERE {where}"):
            if allowed:
                here.release(text, epsilon=1)
                continue
            with pytest.raises(QueryError, match="'town' lies within 'region'"):
                here.release(text, epsilon=1)
            assert here.remaining.guarantee == pv.PureDP(1000)


def test_levels_that_are_no_tree_are_refused_before_any_debit() -> None:
    of = table()
    budget = pv.PureDP(1000)
    with session(of, budget) as here:
        for asked, words in [
            (of.cube("region", "town", "year").agg(n=pv.count()), "must form a tree"),
            (of.grouping_sets([("region", "town"), ("year",)]).agg(n=pv.count()), "must form a tree"),
            (
                of.grouping_sets([("region", "town"), ("region",)])
                .agg(n=pv.count())
                .compute(share=pv.col("n") / pv.total("n")),
                "needs the level 'total'",
            ),
        ]:
            with pytest.raises(QueryError, match=words):
                here.release(asked, epsilon=1)
        assert here.remaining.guarantee == budget
        assert len(here.release(of.cube("region", "town").agg(n=pv.count()), epsilon=1)) == 7 + 3 + 7 + 1


def test_joins_and_renamed_keys_stay_within_each_other() -> None:
    of = table(max_rows=2)
    renamed = of.with_columns(area=pv.col("region"), place=pv.col("town"))
    with session(of) as here:
        assert len(here.release(renamed.group_by("area", "place").agg(n=pv.count()), epsilon=1)) == 7
        assert len(here.release(of.per_person("region", "town", n=pv.count()).group_by("region", "town").agg(
            n=pv.count_people()), epsilon=1)) == 7  # fmt: skip
        other = of.with_columns(area=pv.when(pv.col("x") > 3, pv.lit("north")).otherwise(pv.lit("south")))
        assert len(here.release(other.group_by("area", "town").agg(n=pv.count()), epsilon=1)) == 14


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": "0.05"}], ids=["laplace", "gaussian"])
def test_intervals_hold_the_truth_as_often_as_they_say(price: dict[str, Any]) -> None:
    """300 answers: each cell is covered in 95 % of them, and would not be with 0.8 of the width."""
    times, sizes = 300, (12, 3, 1, 7)
    towns = {f"r{i}": [f"t{i}.{j}" for j in range(n)] for i, n in enumerate(sizes)}
    columns = {"region": pv.keys(*towns), "town": pv.keys(towns, within="region")}
    data = pa.table({name: pa.array([], pa.string()) for name in columns})
    of = pv.table("visits", data, protect=pv.each_row(), columns=columns)
    with session(of, pv.PureDP(10**6) if "epsilon" in price else pv.ZeroConcentratedDP(10**6)) as here:
        made = here.plan(of.rollup("region", "town").agg(n=pv.count()), **price)
    exact, cube = made.coordinates([[[1000 + i] for i in range(sum(sizes))]]), consistent(made)
    truth = np.arange(1000, 1000 + sum(sizes))
    regions = np.repeat(range(len(sizes)), sizes)
    right: dict[tuple[int, ...], Any] = {(0, 1): truth, (0,): np.bincount(regions, truth), (): [truth.sum()]}
    drawn = [cube.margins(add_noise(made, exact)[0]) for _ in range(times)]
    held, closer = [], []
    for keys, true in right.items():
        for place, kind in enumerate(cube.kinds(keys)):
            output, noise = cube.view(dict(made.columns)["n"], keys, kind)
            cells = output.cells([each[cube.levels.plain(keys)][place] for each in drawn], noise, made.level)
            low, high, value = (np.array(part, dtype=float) for part in (cells.low, cells.high, cells.values))
            held.append(np.mean((low <= true[place]) & (true[place] <= high)))
            narrow = (value - 0.8 * (value - low) <= true[place]) & (true[place] <= value + 0.8 * (high - value))
            closer.append(np.mean(narrow))
    spread = math.sqrt(0.05 * 0.95 / times)
    assert min(held) >= 0.95 - 6 * spread
    assert 0.93 < np.mean(held) < 0.985
    assert np.mean(closer) < 0.95 - 2 * spread


def test_within_holds_for_the_least_accurate_cell() -> None:
    of = table()
    for budget in (pv.PureDP(1000), pv.ZeroConcentratedDP(1000)):
        with session(of, budget) as here:
            made = here.plan(of.rollup("region", "town").agg(n=pv.count()), within={"n": 20})
            error = made.expected("n")
            assert error is not None
            assert 18 < error <= 20
            assert "Each town lies in one region" in here.explain(made)


def test_certificates_are_checked_without_the_planner() -> None:
    of = table("replace", max_rows=3)
    for budget, price in BUDGETS[:2]:
        with session(of, budget) as here:
            answer = here.release(of.rollup("region", "town").agg(n=pv.count()), **price)
        document = answer.certificate.document
        checker.check(document["derived"], document["noisy"])
        for place, measured in enumerate(document["derived"]["measurements"]):
            small = copy.deepcopy(document)
            move = small["derived"]["measurements"][place]["move"]
            move["l1" if "l1" in move else "squared_l2"] -= 1
            with pytest.raises(VerificationError, match=r"move|event"):
                checker.check(small["derived"], small["noisy"])
            wrong: list[Any] = [[0, 1], {"keys": [0, 1]}, {**measured["level"], "keys": [0, 5]}]
            if measured["level"]["within"] is not None:
                wrong += [{**measured["level"], "within": None}, {**measured["level"], "weights": []}]
                wrong += [{**measured["level"], "within": [0, 1]}]
            for level in wrong:
                other = copy.deepcopy(document)
                other["derived"]["measurements"][place]["level"] = level
                with pytest.raises(VerificationError, match="level"):
                    checker.check(other["derived"], other["noisy"])
            if any(w > 1 for w in measured["level"]["weights"]):
                heavy = copy.deepcopy(document)
                weights = heavy["derived"]["measurements"][place]["level"]["weights"]
                weights[-1] *= 2
                with pytest.raises(VerificationError, match="implies"):
                    checker.check(heavy["derived"], heavy["noisy"])


# --- declarations -------------------------------------------------------------------------------------------


def test_wrong_declarations() -> None:
    region = pv.keys("north", "south")
    data = pa.table({"region": ["north"], "town": ["a"], "street": ["x"]})
    calls: list[tuple[Any, str]] = [
        (lambda: pv.keys("a", "b", within="region"), "within needs a dict"),
        (lambda: pv.keys({"north": ["a"]}), "need the name of its column"),
        (lambda: pv.keys({"north": []}, within="region"), "one or more keys"),
        (lambda: pv.keys({"north": ["a"], "south": ["a"]}, within="region"), "twice"),
        (lambda: {"town": pv.keys({"north": ["a"]}, within="land"), "region": region}, "not another declared column"),
        (lambda: {"town": pv.keys({"north": ["a"]}, within="town")}, "not another declared column"),
        (
            lambda: {"town": pv.keys({"north": ["a"], "east": ["b"]}, within="region"), "region": region},
            "'east' is not",
        ),
        (lambda: {"town": pv.keys({"north": ["a"]}, within="region"), "region": region}, "no key lies within 'south'"),
        (lambda: {"town": pv.keys({"north": ["a"]}, within="region"), "region": pv.text()}, "not declared with keys"),
        (
            lambda: {
                "region": pv.keys({"a": ["north"]}, within="town"),
                "town": pv.keys({"north": ["a"]}, within="region"),
            },
            "and these within",
        ),
    ]
    for call, words in calls:
        with pytest.raises(UserError, match=words):
            pv.table("visits", data, protect=pv.each_row(), columns=call())


def test_keys_from_a_public_file_with_both_columns() -> None:
    public = pa.table({"region": ["north", "south", "north", None], "town": ["a", "c", "b", None]})
    read = pv.keys_from(public, "town", within="region")
    assert read == pv.keys({"north": ["a", "b"], "south": ["c"]}, within="region")
    for pairs, words in ((("north", "south"), "in two keys"), ((None, "south"), "in nothing")):
        with pytest.raises(UserError, match=words):
            pv.keys_from(pa.table({"region": pairs, "town": ["a", "a"]}), "town", within="region")
    with pytest.raises(UserError, match="land"):
        pv.keys_from(public, "town", within="land")
