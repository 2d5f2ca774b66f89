"""T3, T5, T15 and T18, noise off: one person (or row) moves no measurement by more than the plan claims.

Worlds, questions and neighbours come from seeds; `./dev test --all` searches more than ten times
as long, and `./dev soak neighbours` for 10^5 cases. Each search is put to broken twins too, and must catch them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.effort import EFFORT, some
from tests.neighbours.exact import Bench, Exchangeable, Vectors, added, moved
from tests.neighbours.floats import Floats, Overlapping
from tests.neighbours.search import FORMS, QUESTIONS, by_engine, questions, search
from tests.neighbours.worlds import ID, TEXTS, Data, Row, World, owner, people, shuffled, with_nobody, world

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.planner import ReleasePlan, plan
from privet.planner.plan import NoisyMeasurement, Part
from privet.privacy.adjacency import Adjacency, Person
from privet.privacy.moves import L1Move, L2Move, Move
from privet.tables.statement import AtMostGroups, AtMostRows, Statement, Unbounded

BATCHES, WORLDS = (2, 5) if EFFORT == 1 else (5, 5 * EFFORT)
"""Batches, and worlds in each."""


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_t3_no_neighbour_moves_more_than_claimed(batch: int) -> None:
    found = search(range(batch * WORLDS, (batch + 1) * WORLDS))
    assert found.violations == []
    assert found.cases >= WORLDS * QUESTIONS * FORMS  # few worlds have no question
    if batch == 0:
        for rule in ("count/1", "people/1", "present/1", "distinct/1", "histogram/1", "sum/1", "pair/1", "triple/1"):
            for norm in ("", ", squared L2"):
                parts = [found.reached[f"{rule} {adjacency}{norm}"] for adjacency in ("add/remove", "replace")]
                assert max(parts) > 0.4, rule + norm


def unbounded(bench: Bench, made: ReleasePlan) -> Vectors:
    """A twin that forgets to bound persons."""
    free = [replace(s, bounding=Unbounded()) for s in made.statements()]
    return made.coordinates(bench.tallies(free))


def one_row_more(bench: Bench, made: ReleasePlan) -> Vectors:
    """A twin that is one row off."""

    def more(of: Statement) -> Statement:
        match of.bounding:
            case AtMostRows(rows):
                return replace(of, bounding=AtMostRows(rows + 1))
            case AtMostGroups(groups, rows):
                return replace(of, bounding=AtMostGroups(groups, rows + 1))
        return of

    return made.coordinates(bench.tallies([more(s) for s in made.statements()]))


def half(part: NoisyMeasurement) -> Move:
    """A twin that claims half of the truth, in L1."""
    return part.move if isinstance(part.move, L2Move) else L1Move(part.move.total // 2)


def one_block_of_many(part: NoisyMeasurement) -> Move:
    """A twin that spreads a cap on rows over blocks: as if no two rows of a person were in one group."""
    if isinstance(part.move, L2Move):
        return part.move
    return L1Move(part.move.total // part.rows, blocks=part.rows)


def squared_rows(part: NoisyMeasurement) -> Move:
    """A twin that adds up the squares of a person's rows in L2: as if no two of them were in one group."""
    return L2Move(part.move.squared // part.rows) if isinstance(part.move, L2Move) else part.move


def squared_replacement(part: NoisyMeasurement) -> Move:
    """A twin that forgets in L2 that a replaced row both goes and comes."""
    if isinstance(part.move, L2Move) and part.adjacency is Adjacency.REPLACE and part.groups > 1:
        return L2Move(part.move.squared // 2)
    return part.move


def test_twins_are_caught() -> None:
    """Half of the claim, small blocks, a bound forgotten, a bound that is one row off: each is seen in a few worlds.

    The searches begin where a world was found that shows it, which saves most of the time.
    """
    for first, claim in ((0, half), (16, one_block_of_many), (9, squared_rows), (7, squared_replacement)):
        assert search(range(first, first + 40), claim=claim, stop=True).violations, claim
    for twin in (unbounded, one_row_more):
        measure = partial(by_engine, vectors=twin)
        assert search(range(9, 109), measure=measure, wanted=lambda of: of.person, stop=True).violations


@pytest.mark.slow
@pytest.mark.parametrize(("twin", "rule", "first"), [(Floats, "sum/1", 40), (Overlapping, "histogram/1", 110)])
def test_twins_that_compute_in_floats_are_caught(twin: type[Floats], rule: str, first: int) -> None:
    """What the engine once was: a sum that lacks a row where a secret holds, a row in two bins of a histogram."""

    @contextmanager
    def in_floats(of: World) -> Iterator[Any]:
        yield lambda made, data: made.coordinates([twin(of, data).answer(s) for s in made.statements()])

    for number in range(first, first + 400):  # a few are enough
        found = search([number], measure=in_floats, wanted=lambda of: not of.person)
        if any(f": {rule} moved" in line for line in found.violations):
            return
    raise AssertionError("400 worlds show nothing")


def first_rows(data: Data, most: int) -> Data:
    """A twin's bounding: the first rows of each person as they stand there."""
    kept: Data = {}
    for name, rows in data.items():
        seen: Counter[Any] = Counter()
        kept[name] = []
        for row in rows:
            seen[who := owner(row[ID])] += 1
            if who is not None and seen[who] <= most:
                kept[name].append(row)
    return kept


def test_a_twin_that_bounds_by_position_is_caught() -> None:
    caught = 0
    for number in range(6):
        if caught:
            break
        chance = Random(number)
        made = world(chance, person=True)
        if not isinstance(made.protect, Person):
            continue
        with Bench(made) as bench:
            for each in questions(chance, made):
                orders = [made.data, shuffled(chance, made.data)]
                seen = []
                for data in orders:
                    bench.put(first_rows(data, made.protect.max_rows))
                    seen.append(unbounded(bench, each))
                caught += seen[0] != seen[1]
    assert caught


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(3))
def test_t5_t15_a_table_is_the_sum_of_its_people(batch: int, effort: int) -> None:
    """No person's rows depend on another's, whatever values they hold; rows of nobody count for nothing."""
    for number in range(10_000 + 4 * effort * batch, 10_000 + 4 * effort * (batch + 1)):
        chance = Random(number)
        made = world(chance)
        if made.rows is not None:  # a part of the table would not have the rows that were declared
            continue
        plans = questions(chance, made)
        with Bench(made) as bench:
            bench.put(made.data)
            whole = [bench.vectors(each) for each in plans]
            if made.person:
                parts = [
                    {name: [r for r in rows if owner(r[ID]) == who] for name, rows in made.data.items()}
                    for who in people(made.data)
                ]
            else:
                parts = [{"one": [row]} for row in made.data["one"]]
            sums: list[list[Vectors]] = [[] for _ in plans]
            nobody: Data = {name: [] for name in made.data}
            for data in [nobody, *parts]:
                bench.put(data)
                for place, each in enumerate(plans):
                    sums[place].append(bench.vectors(each))
            for each, exact, alone in zip(plans, whole, sums, strict=True):
                added_up = added(alone)
                for part, one, other in zip(each.noised, exact, added_up, strict=True):
                    if part.measurement.rule != "distinct/1":  # people can have the same values
                        assert one == other, (number, str(each.query))
            if made.person:
                bench.put(with_nobody(chance, made))
                assert [bench.vectors(each) for each in plans] == whole, number


# --- every bound is reached -----------------------------------------------------------------------


def tight(protect: Any, adjacency: str, **columns: Any) -> World:
    """A world with few values, all of them extreme."""
    from tests.neighbours.worlds import Made

    from privet.privacy.adjacency import Adjacency

    kinds = {
        "x": Made(columns.get("x", pv.number(-4, 10, step=1)), pa.float64(), [-4.0, 10.0, None]),
        "g": Made(pv.keys(*"abcdef"), pa.string(), list("abcdef")),
    }
    made = World(protect, Adjacency(adjacency), {"one": kinds}, [1], {"one": pa.int64()}, {"one": []}, [])
    made.rows = columns.get("rows")
    made.tables = {"one": made.declare("one", [{"x": 0.0, "g": "a"}] * (made.rows or 0))}
    return made


def units(of: World, most: int, spread: Sequence[str]) -> list[list[Row]]:
    """What one unit can be: rows at one value, in one group or evenly in some; or nothing."""
    found: list[list[Row]] = [[]]
    for value in of.columns["one"]["x"].values:
        for groups in spread:
            rows = [{"x": value, "g": groups[i % len(groups)]} for i in range(most)]
            found.append([{ID: 1, **row} for row in rows] if of.person else rows[:1])
    return found


def largest(of: World, asked: ReleasePlan) -> list[int]:
    """The largest change of each measurement over all pairs of neighbours that are tried."""
    most = of.protect.max_rows * 2 if isinstance(of.protect, Person) else 1
    same = asked.noised[0].same_rows or of.rows is not None
    with Bench(of) as bench:
        seen = []
        for rows in units(of, most, ("a", "f", "ab", "ef", "abc", "def") if asked.query.keys else ("a",)):
            if rows or not same:
                bench.put({"one": rows})
                seen.append(bench.vectors(asked))
    old = seen if asked.noised[0].adjacency is pv.Adjacency.REPLACE else seen[:1]
    pairs = [(a, b) for a in old for b in seen]
    return [max(change) for change in zip(*(moved(a, b) for a, b in pairs), strict=True)]


ASKED: dict[str, dict[str, Any]] = {
    "count/1": {"n": pv.count()},
    "people/1": {"n": pv.count_people()},
    "present/1": {"n": pv.count("x")},
    "histogram/1": {"h": pv.histogram("x", [-4, 0, 10])},
    "sum/1": {"s": pv.sum("x")},
    "pair/1": {"m": pv.mean("x")},
    "triple/1": {"v": pv.variance("x")},
}


PROTECTED: dict[str, Any] = {
    "each_row": pv.each_row(),
    "max_rows": pv.person(ID, max_rows=3),
    "max_groups": pv.person(ID, max_groups=2, max_rows_per_group=3),
}
TIGHT = list(product(PROTECTED, ASKED, ["add/remove", "replace"], [False, True]))


@pytest.mark.parametrize(("unit", "rule", "adjacency", "grouped"), some(TIGHT, every=3))
def test_the_claim_is_reached(unit: str, rule: str, adjacency: str, grouped: bool) -> None:
    of = tight(PROTECTED[unit], adjacency)
    rows = of.tables["one"].relation
    asked = plan((rows.group_by("g") if grouped else rows).agg(**ASKED[rule]), epsilon=1)
    assert [part.measurement.rule for part in asked.noised] == [rule]
    assert largest(of, asked) == [part.move.total for part in asked.noised]


@pytest.mark.parametrize("rows", [None, 1])
def test_the_claim_is_reached_where_every_row_stays(rows: int | None) -> None:
    """Replace, each row, required, nothing filtered: the width, and not the larger bound."""
    of = tight(pv.each_row(), "replace", x=pv.number(-4, 10, step=1, required=True), rows=rows)
    ask: dict[str, Any] = {"s": pv.sum("x")} if rows is None else {"m": pv.mean("x"), "n": pv.count()}
    asked = plan(of.tables["one"].agg(**ask), epsilon=1)
    (part,) = asked.noised
    assert (part.measurement.rule, part.same_rows, part.move.total) == ("sum/1", True, 14)
    assert largest(of, asked) == [14]


def test_the_claim_of_a_variance_of_public_rows_is_reached_inside_of_the_range() -> None:
    """Three quarters of the range from an end: further than the other end, which is all that a twin looks at."""
    of = tight(pv.each_row(), "replace", x=pv.number(-4, 10, step=1, required=True), rows=1)
    asked = plan(of.tables["one"].agg(v=pv.variance("x"), m=pv.mean("x"), n=pv.count()), epsilon=1)
    (part,) = asked.noised
    assert (part.measurement.rule, part.move.total) == ("moments/1", 3 * 14 * 10 - 2 * 10**2)
    twin = largest(of, asked)
    assert twin == [14**2]
    of.columns["one"]["x"].values.append(6.0)
    assert largest(of, asked) == [part.move.total] > twin


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_the_claim_is_reached_through_missing_values_counted_too(adjacency: str) -> None:
    """A vector with a further coordinate for rows without a value."""
    of = tight(pv.person(ID, max_rows=2), adjacency)
    asked = plan(of.tables["one"].agg(n=pv.count(), m=pv.mean("x"), s=pv.sum("x")), epsilon=1)
    assert largest(of, asked) == [part.move.total for part in asked.noised]


# --- T3: numbers that floats can't add ------------------------------------------------------------


def one_column(values: list[Any], kind: Any, declared: Any, adjacency: str) -> pv.Table:
    rows = pa.table({"x": pa.array(values, kind)})
    return pv.table("one", rows, protect=pv.each_row(), columns={"x": declared}, adjacency=adjacency)


@pytest.mark.parametrize(
    ("declared", "values", "kind"),
    [
        (pv.number(2**52 + 512, 2**52 + 513), [2.0**52 + 512, 2.0**52 + 513], pa.float64()),
        (pv.number(2**52 + 512, 2**52 + 513, step=1), [2.0**52 + 512, 2.0**52 + 513], pa.float64()),
        (pv.number(0, 1e-140), [5e-324, 1e-310, 1e-141, 0.0, 1e-140], pa.float64()),
        (pv.number(-1e9, 1e9), [2.0**e * s for e in range(-1000, 1000, 7) for s in (1, -1)], pa.float64()),
        (pv.integer(2**62 - 1000, 2**62), [2**62 - 1000, 2**62, -(2**63), 2**63 - 1], pa.int64()),
        (pv.integer(-(2**62), -(2**62) + 7), [-(2**62), -(2**63), 2**63 - 1, 0], pa.int64()),
        (pv.integer(-(2**51), 2**51), [-(2**51), 2**51, 2**51 - 1, 1], pa.int64()),
        (pv.number(0, 1, step="1/3"), [0.0, 1 / 3, 2 / 3, 1.0, 0.5, 1 / 6], pa.float64()),
    ],
    ids=["casacuberta", "casacuberta-1", "subnormal", "spread", "high", "low", "wide", "thirds"],
)
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_t3_sums_that_floats_get_wrong(declared: Any, values: list[Any], kind: Any, adjacency: str) -> None:
    chance = Random(3)
    column = [chance.choice(values) for _ in range(1500)]
    table = one_column(column, kind, declared, adjacency)
    asked = [plan(table.agg(s=pv.sum("x")), epsilon=1), plan(table.agg(m=pv.mean("x"), n=pv.count()), epsilon=1)]
    source = Exchangeable(table.source.rows, table.source.types())
    with DuckDB({"one": (table.schema, source)}, salt=b"", threads=2) as engine:

        def exact(rows: list[Any]) -> list[Vectors]:
            source.exchange(one_column(rows, kind, declared, adjacency).source.rows)
            return [p.coordinates([engine.answer(s) for s in p.statements()]) for p in asked]

        before = exact(column)
        assert exact(column[::-1]) == before
        assert exact(sorted(column)) == before
        for extreme in (min(values), max(values), None):
            changed = (
                [[*column, extreme]] if adjacency == "add/remove" else [[*column[:-1], extreme], [extreme, *column[1:]]]
            )
            for rows in changed:
                for each, old, new in zip(asked, before, exact(rows), strict=True):
                    for part, change in zip(each.noised, moved(old, new), strict=True):
                        assert change <= part.move.total


def test_t3_what_floats_do() -> None:
    """The same column summed by DuckDB in floats: a row of width 1 moves it by 1024, and its order matters."""
    import duckdb

    rows = [2.0**52 + 512] * 1500
    sums = []
    with duckdb.connect() as connection:
        for last in ([], [2.0**52 + 513], [2.0**52 + 512]):
            connection.register("t", pa.table({"x": pa.array(rows[:1499] + last, pa.float64())}))
            sums.append(connection.execute("SELECT sum(x) FROM t").fetchall()[0][0])
    assert abs(sums[1] - sums[2]) != 1


# --- T5: special values ---------------------------------------------------------------------------

GOOD: Row = {"x": 1.5, "i": 3, "b": True, "k": "a", "c": 2, "t": "a", "d": 19_770, "s": 19_770 * 86_400_000_000}
DECLARED: dict[str, tuple[Any, Any]] = {
    "x": (pv.number(0, 10), pa.float64()),
    "i": (pv.integer(-5, 5), pa.int64()),
    "b": (pv.boolean(), pa.bool_()),
    "k": (pv.keys("a", "b", other="elsewhere"), pa.string()),
    "c": (pv.keys(1, 2, 3), pa.int64()),
    "t": (pv.text(), pa.string()),
    "d": (pv.date("2024-01-01", "2024-12-31"), pa.date32()),
    "s": (pv.timestamp("2024-01-01", "2024-12-31"), pa.timestamp("us")),
}


def special() -> list[tuple[str, Any]]:
    from tests.neighbours.worlds import DAYS, FLOATS, INTEGERS, MICROS

    pools = {
        "x": FLOATS,
        "i": INTEGERS,
        "b": [None, False],
        "k": TEXTS,
        "c": INTEGERS,
        "t": TEXTS,
        "d": DAYS,
        "s": MICROS,
    }
    return [(name, value) for name, values in pools.items() for value in values]


def special_questions(rows: Any) -> list[ReleasePlan]:
    """Questions in which every column stands in a value, a key, a filter and an expression."""
    x, i, b, d, s = (pv.col(name) for name in "xibds")
    asked = [
        rows.agg(n=pv.count(), sx=pv.sum("x"), mi=pv.mean("i"), mb=pv.mean("b"), p=pv.count("t"), q=pv.count("d")),
        rows.agg(v=pv.std("x"), h=pv.histogram("x", [0, 1, 5, 10]), hi=pv.histogram("i", [-5, 0, 5])),
        rows.group_by("k").agg(n=pv.count(), s=pv.sum("x")),
        rows.group_by("c", "b").agg(n=pv.count(), s=pv.mean("i")),
        rows.group_by("i").agg(n=pv.count()),
        rows.group_by(m=d.truncate("month")).agg(n=pv.count()),
        rows.group_by(w=s.truncate("week")).agg(n=pv.count()),
        rows.group_by(p=s.part("hour"), z=pv.bins("x", [0, 5, 10])).agg(n=pv.count()),
        rows.where(x / i > 0.1).agg(n=pv.count(), s=pv.sum((x / i).clip(-9, 9))),
        rows.where((d >= pv.lit(_day())) | (pv.col("k") == "b") | pv.col("t").starts_with("a")).agg(n=pv.count()),
        rows.where(pv.col("t").is_in(["", "a", "\ufeff"]) | pv.col("t").is_missing()).agg(n=pv.count()),
        rows.agg(s=pv.sum(pv.when(b, 1e6 * x).when(x.is_missing(), -1).otherwise(i).clip(-2, 3))),
        rows.agg(s=pv.sum((abs(x * x - i) / (x - 1.5)).clip(0, 5)), t=pv.sum((x.floor() + i).ceil())),
        rows.agg(m=pv.mean(d - d), y=pv.sum(s.part("weekday") + d.part("day"))),
    ]
    return [plan(query, epsilon=1) for query in asked]


def _day() -> Any:
    from datetime import date

    return date(2024, 6, 1)


@pytest.mark.slow
@pytest.mark.parametrize("person", [False, True], ids=["each_row", "person"])
def test_t5_special_values_change_nothing_else(person: bool) -> None:
    """Each in a column of its own kind: no error, and together they add what each adds by itself."""
    from tests.neighbours.worlds import Made

    columns = {name: Made(declared, kind, []) for name, (declared, kind) in DECLARED.items()}
    protect = pv.person(ID, max_rows=2) if person else pv.each_row()
    of = World(protect, pv.Adjacency("add/remove"), {"one": columns}, [1], {"one": pa.int64()}, {"one": []}, [])
    of.tables = {"one": of.declare("one", [])}
    good = [{ID: i, **GOOD} for i in range(3)]
    plans = special_questions(of.tables["one"])
    with Bench(of) as bench:

        def exact(rows: list[Row]) -> list[Vectors]:
            bench.put({"one": rows})
            return [bench.vectors(each) for each in plans]

        before = exact(good)
        odd = some(special()[:: 4 if person else 2], every=2)
        rows = [{**GOOD, ID: 7 + i, name: value} for i, (name, value) in enumerate(odd)]
        after = [exact([good[0], row, *good[1:]]) for row in rows]
        for row, vectors in zip(rows, after, strict=True):
            for each, old, new in zip(plans, before, vectors, strict=True):
                for part, change in zip(each.noised, moved(old, new), strict=True):
                    assert change <= part.move.total, (row, str(each.query))
        together = exact([*rows, *good])  # the sum of what each of them adds
        for place in range(len(plans)):
            repeated = added([together[place], *[before[place]] * (len(rows) - 1)])
            assert added([vectors[place] for vectors in after]) == repeated


def test_t5_ids_of_nobody_and_odd_ones() -> None:
    """NULL and NaN are nobody; 0.0 and -0.0 are one person, as are equal texts; all others differ."""
    for kind, ids, persons in (
        (pa.float64(), [None, math.nan, 0.0, -0.0, math.inf, -math.inf, 5e-324], 4),
        (pa.int64(), [None, 0, -(2**63), 2**63 - 1, 2**53, 2**53 + 1], 5),
        (pa.string(), [None, "", " ", "a", "A", "é", "e\u0301", "a\x00", "a\x00b"], 8),
        (pa.uint64(), [None, 2**64 - 1, 2**64 - 2, 0], 3),
    ):
        rows = pa.table({ID: pa.array(ids * 3, kind), "x": pa.array([1.0] * len(ids) * 3)})
        table = pv.table("one", rows, protect=pv.person(ID, max_rows=2), columns={"x": pv.number(0, 1)})
        asked = plan(table.agg(p=pv.count_people(), n=pv.count()), epsilon=1)
        with DuckDB({"one": (table.schema, table.source)}, salt=b"", threads=1) as engine:
            people_, rows_ = asked.coordinates([engine.answer(s) for s in asked.statements()])
            assert {people_[0][0], rows_[0][0]} == {persons, 2 * persons}


# --- T15: one person with very many rows -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "adjacency"),
    some([(u, a) for a in ("replace", "add/remove") for u in ("max_rows", "max_groups")], every=3),
)
def test_t15_ten_thousand_rows_of_one_person(unit: str, adjacency: str) -> None:
    """In all groups, under two ways to write the same id, with as many rows of nobody, after a fan-out join."""
    protect = PROTECTED[unit]
    numbers = np.random.default_rng(15)

    def rows(ids: Any) -> Any:
        size = len(ids)
        groups = numbers.choice(np.array(["a", "b", "c", "d", "none"]), size)
        return pa.table({ID: ids, "x": numbers.uniform(-20, 20, size), "g": groups})

    def more(ids: Any) -> Any:
        return pa.table({ID: ids, "y": numbers.uniform(0, 9, len(ids))})

    others = pa.array(np.repeat(np.arange(1.0, 41.0), 6))
    big = pa.array(np.where(np.arange(10_000) % 2, 0.0, -0.0))
    nobody = pa.array([None, math.nan] * 5_000, pa.float64(), from_pandas=False)
    one = [rows(others), rows(big), rows(nobody)]
    two = [more(others), more(big.slice(0, 30)), more(nobody.slice(0, 200))]

    def declared(parts: list[int], backwards: bool = False) -> dict[str, Any]:
        made = {"one": pa.concat_tables(one[i] for i in parts), "two": pa.concat_tables(two[i] for i in parts)}
        if backwards:
            made = {name: table.take(list(range(len(table) - 1, -1, -1))) for name, table in made.items()}
        kinds = {"one": {"x": pv.number(-10, 10), "g": pv.keys("a", "b", "c", "d")}, "two": {"y": pv.integer(0, 5)}}
        return {n: pv.table(n, t, protect=protect, adjacency=adjacency, columns=kinds[n]) for n, t in made.items()}

    tables = declared([0])
    a, b = tables["one"], tables["two"]
    per = b.per_person(t=pv.sum("y"), m=pv.greatest("y"))
    asks: list[dict[str, Any]] = [
        dict(n=pv.count(), p=pv.count_people(), s=pv.sum("x")),
        dict(m=pv.mean("x"), v=pv.std("x")),
    ]
    asked = [
        plan(query, epsilon=1)
        for ask in asks
        for query in (
            a.agg(**ask),
            a.group_by("g").agg(**ask),
            a.where(pv.col("x") > 0).group_by("g").agg(**ask),
            a.join(b).group_by("g").agg(**ask, y=pv.sum("y")),
            a.join(per).group_by("g").agg(**ask, t=pv.sum(pv.col("t").clip(0, 100))),
            a.join(b)
            .with_columns(x=pv.when(pv.col("y") == 3, 1e6 * pv.col("x")).otherwise(0))
            .agg(s=pv.sum(pv.col("x").clip(-5, 5)), n=pv.count()),
        )
    ] + [
        plan(b.per_person(t=pv.sum("y"), n=pv.count()).agg(s=pv.sum(pv.col("t").clip(0, 50)), n=pv.count()), epsilon=1)
    ]
    sources = {n: Exchangeable(t.source.rows, t.source.types()) for n, t in tables.items()}
    with DuckDB({n: (t.schema, sources[n]) for n, t in tables.items()}, salt=b"15", threads=2) as engine:

        def exact(parts: list[int], backwards: bool = False) -> list[Vectors]:
            for name, table in declared(parts, backwards).items():
                sources[name].exchange(table.source.rows)
            return [p.coordinates([engine.answer(s) for s in p.statements()]) for p in asked]

        without, alone, together = exact([0, 2]), exact([1]), exact([0, 1, 2])
        assert exact([0]) == without  # rows of nobody count for nothing
        assert exact([2, 1, 0], backwards=True) == together
        for each, old, own, new in zip(asked, without, alone, together, strict=True):
            assert added([old, own]) == new, str(each.query)
            for part, change in zip(each.noised, moved(old, new), strict=True):
                assert change <= part.move.total, str(each.query)
        assert sum(map(sum, map(moved, without, together))) > 0


# --- T18: clamped last ----------------------------------------------------------------------------


def test_t18_what_an_analyst_multiplies_is_clamped() -> None:
    """Singling out one row and blowing it up moves a sum by its clip, which the analyst pays for."""
    x = pv.col("x")
    table = pv.table("one", pa.table({"x": [3.0, 7.0]}), protect=pv.each_row(), columns={"x": pv.number(0, 10)})
    single = pv.when(x == 7, 1e6 * x).otherwise(0)
    for of, most in (
        (single, 10**7),
        (single.clip(0, 10), 10),
        (1e6 * x.clip(0, 1), 10**6),
        ((1 / (x - 7)).clip(0, 2), 2),
    ):
        asked = plan(table.agg(s=pv.sum(of)), epsilon=1)
        (part,) = asked.noised
        step = part.measurement.tallies[1].value.step  # type: ignore[union-attr]
        assert part.move.total * step <= most
        with DuckDB({"one": (table.schema, table.source)}, salt=b"", threads=1) as engine:
            (vectors,) = asked.coordinates([engine.answer(s) for s in asked.statements()])
            assert abs(vectors[0][0]) <= 2 * part.move.total
    for wide in (x / (x - 7), 1 / x, abs(1 / x) + 3):
        with pytest.raises(pv.UserError, match=r"Choose bounds|Clip what goes into it"):
            table.agg(s=pv.sum(wide))


def test_t15_a_column_made_anew_has_its_new_bounds() -> None:
    """A redefined column is not summed within the bounds of the old one."""
    table = pv.table("one", pa.table({"x": [1.0]}), protect=pv.each_row(), columns={"x": pv.number(0, 1, step=1)})
    parts: list[Part] = []
    for rows in (table.relation, table.with_columns(x=1000 * pv.col("x"))):
        parts += plan(rows.agg(s=pv.sum("x")), epsilon=1).noised
    steps = [part.measurement.tallies[1].value.step for part in parts]  # type: ignore[union-attr]
    assert [part.move.total * step for part, step in zip(parts, steps, strict=True)] == [1, 1000]
