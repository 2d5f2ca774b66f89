"""Who survives bounding: nobody moves an answer by more than the cap, and nobody changes who else survives."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from math import factorial
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exactly import present

from privet.engines.base import ArrowRows
from privet.engines.duckdb.dialect import DuckDBDialect
from privet.engines.duckdb.engine import DuckDB
from privet.engines.sql.bounding import Bounds, Field, Words
from privet.privacy.adjacency import person
from privet.tables import schema as declared
from privet.tables.expressions.fluent import col
from privet.tables.operators import Scan
from privet.tables.schema import Schema
from privet.tables.statement import (
    AtMostGroups,
    AtMostRows,
    Bounding,
    Code,
    PeopleInGroups,
    Rows,
    Squares,
    Statement,
    Total,
)

from .conftest import Make

REGIONS = ["a", "b", "c", "d"]
SCHEMA = Schema.declare(
    "t",
    protect=person("id", max_rows=3),
    columns={
        "g": declared.keys(*REGIONS),
        "x": declared.integer(0, 9),
        "y": declared.number(0, 1),
        "w": declared.number(0, 1, step="1/4398046511104"),
    },
)
ARROW = pa.schema({"id": pa.int64(), "g": pa.string(), "x": pa.int64(), "y": pa.float64(), "w": pa.float64()})


def total(name: str, kind: Any = Total) -> Any:
    bounds = dict(SCHEMA.columns)[name].type.bounds()  # type: ignore[union-attr]
    return kind(Code(col(name).node, bounds.lower, bounds.step, bounds.width, True))


NARROW = (Rows(), total("x"), present(col("x").node))
WIDE = (Rows(), total("x"), total("y"), total("w"), total("w", Squares), present(col("y").node))
CONSTANT = 12345


class Constant(DuckDBDialect):
    """A hash that is the same for everybody."""

    def __init__(self, value: int) -> None:
        self.value = value

    def hashed(self, key: int, columns: list[str]) -> str:
        return self.word(str(self.value))


def engine(rows: list[tuple[Any, ...]], *, constant: bool = False, threads: int = 2) -> DuckDB:
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) if rows else [()] * 5
    table = pa.table([pa.array(values, kind.type) for values, kind in zip(columns, ARROW, strict=True)], schema=ARROW)
    made = DuckDB({"t": (SCHEMA, ArrowRows(table))}, salt=b"pepper", threads=threads)
    if constant:
        made._dialect = Constant(CONSTANT)
    return made


def statement(bounding: Bounding, tallies: tuple[Any, ...]) -> Statement:
    return Statement(Scan(SCHEMA), (col("g").node,), bounding, tallies)


# --- the obvious way, in Python -------------------------------------------------------------------


def codes(row: tuple[Any, ...]) -> tuple[int | None, ...]:
    """x, y and w as their codes."""
    found = []
    for name, raw in zip(("x", "y", "w"), row[2:], strict=True):
        bounds = dict(SCHEMA.columns)[name].type.bounds()  # type: ignore[union-attr]
        found.append(None if raw is None else int(bounds.encode([raw], missing=0)[0]))
    return tuple(found)


def evenly(mine: list[Any], most: int, hashed: int) -> list[Any]:
    """Of sorted rows at most so many, every n/k-th, from where the hash says."""
    n = len(mine)
    return [row for i, row in enumerate(mine, start=1) if (i + hashed % n) * most % n < most]


def last_marked(mine: list[Any], hashed: Callable[[int], int]) -> list[Any]:
    """Of sorted rows the last whose number divides its hash."""
    return [mine[max(i for i in range(1, len(mine) + 1) if hashed(i) % i == 0) - 1]]


def obvious(rows: list[tuple[Any, ...]], bounding: Bounding, read: tuple[int, ...]) -> Counter[tuple[Any, ...]]:
    """The survivors with a constant hash: by group and codes, missing last."""
    order = {region: i for i, region in enumerate(REGIONS)}
    of: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        if row[0] is not None and row[1] in order:
            values = codes(row)
            of[row[0]].append((order[row[1]], *((values[i] is None, values[i] or 0) for i in read)))
    kept: Counter[tuple[Any, ...]] = Counter()

    def few(mine: list[Any], most: int) -> list[Any]:
        one_word = len(read) == 1
        return last_marked(mine, lambda _: CONSTANT) if most == 1 and one_word else evenly(mine, most, CONSTANT)

    for mine in of.values():
        mine.sort()
        match bounding:
            case AtMostRows(most):
                kept.update(few(mine, most))
            case AtMostGroups(groups, most):
                for g in sorted({row[0] for row in mine})[:groups]:
                    kept.update(few([row for row in mine if row[0] == g], most))
            case PeopleInGroups(groups):
                kept.update([(g,) for g in sorted({row[0] for row in mine})[:groups]])
    return kept


ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(1, 4)),
        st.sampled_from([*REGIONS, "zz", None]),
        st.one_of(st.none(), st.integers(-3, 12)),
        st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.25, float("inf")])),
        st.one_of(st.none(), st.floats(0, 1)),
    ),
    max_size=40,
)
BOUNDINGS: list[Bounding] = [
    AtMostRows(1),
    AtMostRows(2),
    AtMostRows(5),
    AtMostRows(10),
    AtMostGroups(1, 1),
    AtMostGroups(2, 3),
    AtMostGroups(2, 10),
    AtMostGroups(9, 2),
]


@settings(max_examples=15)
@given(rows=ROWS)
def test_survivors_of_a_constant_hash_are_spread_evenly(rows: list[tuple[Any, ...]]) -> None:
    with engine(rows, constant=True) as db:
        for bounding in BOUNDINGS:
            for tallies, read in ((NARROW, (0,)), (WIDE, (0, 1, 2))):
                kept = obvious(rows, bounding, read)
                found = db.answer(statement(bounding, tallies))
                for g, row in enumerate(found):
                    mine = [(values, n) for (key, *values), n in kept.items() if key == g]
                    assert row[0] == sum(n for _, n in mine)
                    assert row[1] == sum(values[0][1] * n for values, n in mine)
                    if read != (0,):
                        assert row[4] == sum(values[2][1] ** 2 * n for values, n in mine)
        for groups in (1, 2, 9):
            kept = obvious(rows, PeopleInGroups(groups), ())
            assert db.answer(statement(PeopleInGroups(groups), (Rows(),))) == [
                [kept[(g,)]] for g in range(len(REGIONS))
            ]


@settings(max_examples=15)
@given(rows=ROWS, seed=st.integers(0, 10**6))
def test_the_order_of_rows_does_not_matter(rows: list[tuple[Any, ...]], seed: int) -> None:
    other = list(rows)
    random.Random(seed).shuffle(other)
    with engine(rows) as a, engine(other, threads=1) as b:
        for bounding in BOUNDINGS:
            assert a.answer(statement(bounding, WIDE)) == b.answer(statement(bounding, WIDE))


@pytest.mark.parametrize("largest", [5, 2**62], ids=["one word", "words"])
def test_the_fast_way_keeps_whom_the_obvious_way_keeps(largest: int) -> None:
    """With a real hash: sorted and chosen in Python."""
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    rng = random.Random(largest)
    rows = [
        (rng.randrange(300), rng.randrange(4), rng.choice([None, rng.randrange(largest)]), rng.choice([0, 1]))
        for _ in range(3000)
    ]
    connection.execute("CREATE TABLE base (u BIGINT, g INTEGER, r0 BIGINT, r1 UTINYINT)")
    connection.executemany("INSERT INTO base VALUES (?, ?, ?, ?)", rows)
    group, fields = Field("g", 3), (Field("r0", largest, nullable=True), Field("r1", 1))

    dialect = DuckDBDialect()
    bounds, hashed = Bounds(dialect, 99), partial(dialect.hashed, 99)
    word = f"({hashed(['u', group.word(dialect)])} >> 2 << 2) | g"
    in_group = hashed(["u", f"({word})"])
    known = connection.execute(f"SELECT u, g, r0, r1, {hashed(['u'])}, {word}, {in_group} FROM base").fetchall()

    def by_value(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row[1], row[2] is None, row[2] or 0, row[3]

    def of_numbers(*by: str) -> dict[tuple[int, ...], int]:
        columns = f"u, {', '.join([*by, 'i'])}, {hashed(['u', *by, 'i::UBIGINT'])}"
        found = connection.execute(f"SELECT DISTINCT {columns} FROM base, range(1, 50) AS t(i)").fetchall()
        return {tuple(key): value for *key, value in found}

    of_number = {**of_numbers(), **of_numbers(f"({word})")}

    def few(mine: list[Any], most: int, place: int, *by: int, read: tuple[Field, ...]) -> list[Any]:
        if most == 1 and len(Words(dialect, "p", read).columns) == 1:
            return last_marked(mine, lambda i: of_number[*by, i])
        return evenly(mine, most, place)

    def survivors(bounding: Bounding) -> Counter[tuple[Any, ...]]:
        kept: Counter[tuple[Any, ...]] = Counter()
        for person_ in range(300):
            mine = sorted((row for row in known if row[0] == person_), key=by_value)
            chosen = sorted({(row[5], row[1]) for row in mine})
            match bounding:
                case AtMostRows(most) if mine:
                    kept.update(row[1:4] for row in few(mine, most, mine[0][4], person_, read=(group, *fields)))
                case AtMostGroups(groups, most):
                    for q, g in chosen[:groups]:
                        there = [row for row in mine if row[1] == g]
                        kept.update(row[1:4] for row in few(there, most, there[0][6], person_, q, read=fields))
                case PeopleInGroups(groups):
                    kept.update((g,) for _, g in chosen[:groups])
        return kept

    for bounding in (
        AtMostRows(1),
        AtMostRows(2),
        AtMostRows(3),
        AtMostRows(10),
        AtMostRows(50),
        AtMostGroups(2, 2),
        AtMostGroups(4, 1),
    ):
        sql = bounds.kept("SELECT * FROM base", bounding, group, fields)
        assert Counter(connection.execute(f"SELECT g, r0, r1 FROM ({sql})").fetchall()) == survivors(bounding)
    for people in (PeopleInGroups(1), PeopleInGroups(3), PeopleInGroups(4)):
        sql = bounds.kept("SELECT u, g FROM base", people, group, ())
        assert Counter(connection.execute(f"SELECT g FROM ({sql})").fetchall()) == survivors(people)


def crowd(people: int, *, seed: int) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    return [
        (rng.randrange(people), rng.choice(REGIONS), rng.randrange(10), rng.random(), None) for _ in range(people * 5)
    ]


def intruder() -> list[tuple[Any, ...]]:
    """One person with 10,000 rows, in all groups, many of them alike, and rows with no id."""
    rng = random.Random(7)
    mine = [
        (-1, rng.choice([*REGIONS, None, "zz"]), rng.choice([None, 0, 9]), rng.random(), 1.0) for _ in range(10_000)
    ]
    return mine + [(None, "a", 9, 1.0, 1.0)] * 1000


@pytest.mark.slow
@pytest.mark.parametrize("constant", [False, True], ids=["hash", "constant"])
def test_one_more_person_changes_only_her_own_rows(constant: bool) -> None:
    before = crowd(28_000, seed=1)
    after = before + intruder()
    random.Random(3).shuffle(after)
    assert len(before) > 122_880  # more than DuckDB reads at once
    with engine(before, constant=constant) as a, engine(after, constant=constant) as b:
        caps = (AtMostRows(1), 1), (AtMostRows(12), 12), (AtMostGroups(2, 3), 6), (PeopleInGroups(3), 3)
        for bounding, most in caps:
            tallies: tuple[Any, ...] = (Rows(),) if isinstance(bounding, PeopleInGroups) else (Rows(), total("x"))
            old, new = (db.answer(statement(bounding, tallies)) for db in (a, b))
            gone = [[y - x for x, y in zip(r, s, strict=True)] for r, s in zip(old, new, strict=True)]
            # all that changes is hers: no count falls, none rises beyond the cap, and no sum by more than her rows
            assert all(change[0] >= 0 for change in gone)
            assert sum(change[0] for change in gone) == most
            if len(tallies) > 1:
                assert all(0 <= change[1] <= 9 * change[0] for change in gone)


def test_ids_that_are_none_take_no_part(make: Make) -> None:
    schema = Schema.declare("t", protect=person("id", max_rows=2), columns={"x": declared.integer(0, 9)})
    rows = {"id": [1.0, 1.0, 1.0, None, float("nan"), -0.0, 0.0, 0.0, float("inf")], "x": [1] * 9}
    db = make(schema, rows)
    assert db.answer(Statement(Scan(schema), (), AtMostRows(2), (Rows(),))) == [[5]]


def test_every_salt_chooses_for_itself() -> None:
    rows = crowd(200, seed=5)
    table = ArrowRows(pa.Table.from_pylist([dict(zip(ARROW.names, row, strict=True)) for row in rows], ARROW))
    found = set()
    for salt in (b"a", b"b", b"c"):
        with DuckDB({"t": (SCHEMA, table)}, salt=salt) as db:
            found.add(str(db.answer(statement(AtMostRows(1), NARROW))))
    assert len(found) == 3


def test_people_do_not_all_choose_the_same_group() -> None:
    rows = [(i, region, 0, 0.0, 0.0) for i in range(400) for region in REGIONS]
    with engine(rows) as db:
        for bounding in (AtMostRows(1), AtMostGroups(1, 1)):
            assert all(60 < row[0] < 140 for row in db.answer(statement(bounding, NARROW)))
        assert all(60 < row[0] < 140 for row in db.answer(statement(PeopleInGroups(1), (Rows(),))))


# --- every row is as likely as any other ----------------------------------------------------------


def kept_by_place(many: int, most: int) -> list[list[int]]:
    """Which of the rows 0..many - 1 of a person survive, for every place that the hash can choose."""
    connection = duckdb.connect()
    found = []
    for place in range(many):
        rows = f"SELECT 1 AS u, 0 AS g, range AS r0 FROM range({many})"
        bounds = Bounds(Constant(place), 0)
        sql = bounds.kept(rows, AtMostRows(most), Field("g", 0), (Field("r0", many),))
        found.append([r0 for (r0,) in connection.execute(f"SELECT r0 FROM ({sql})").fetchall()])
    return found


@pytest.mark.parametrize(("many", "most"), [(7, 2), (7, 6), (7, 7), (5, 9), (12, 8), (12, 10), (30, 7), (30, 11)])
def test_every_row_survives_as_often_as_any_other(many: int, most: int) -> None:
    found = kept_by_place(many, most)
    assert all(len(rows) == min(many, most) for rows in found)
    times = Counter(row for rows in found for row in rows)
    assert times == dict.fromkeys(range(many), min(many, most))


def test_a_cap_as_large_as_allowed_does_not_overflow() -> None:
    assert kept_by_place(3, 2**30) == [[0, 1, 2]] * 3


class Digits(DuckDBDialect):
    """For persons 0..n! - 1: hashes of the numbers 1..n that are uniform and independent, every case of them once."""

    def hashed(self, key: int, columns: list[str]) -> str:
        return "(u // factorial((i - 1)::INTEGER)::BIGINT % i)::UBIGINT"


class Alike(DuckDBDialect):
    """A broken twin: hashes of the numbers that depend on each other."""

    def hashed(self, key: int, columns: list[str]) -> str:
        return "u::UBIGINT"


def kept_alone(dialect: DuckDBDialect, values: list[int]) -> Counter[int]:
    """How often each value survives if every person has these and only one row counts."""
    rows = f"SELECT u, 0 AS g, unnest({values}) AS r0 FROM range({factorial(len(values))}) AS t(u)"
    sql = Bounds(dialect, 0).kept(rows, AtMostRows(1), Field("g", 0), (Field("r0", max(values)),))
    return Counter(r0 for (r0,) in duckdb.connect().execute(f"SELECT r0 FROM ({sql})").fetchall())


@pytest.mark.parametrize("values", [[3], [1, 0], [5, 5, 5], [0, 1, 2, 3], [7, 2, 2, 7, 7, 1, 2]])
def test_one_row_is_chosen_as_often_as_any_other(values: list[int]) -> None:
    """Exactly: a value that stands m times in n rows survives in m of n cases."""
    times = factorial(len(values) - 1)
    assert kept_alone(Digits(), values) == {value: m * times for value, m in Counter(values).items()}


def test_hashes_that_depend_on_each_other_would_not_do() -> None:
    assert kept_alone(Alike(), [0, 1, 2, 3]) != dict.fromkeys(range(4), 6)


class Xored(DuckDBDialect):
    """A broken twin: DuckDB's hash of several columns, which is an XOR of theirs."""

    def hashed(self, key: int, columns: list[str]) -> str:
        return f"hash({key}::UBIGINT, {', '.join(columns)})"


FIRST = [
    (AtMostRows(1), 16),
    (AtMostRows(2), 8),
    (AtMostRows(12), 4 / 3),
    (AtMostGroups(1, 1), 16),
    (PeopleInGroups(3), 16 / 3),
]


def furthest(dialect: DuckDBDialect, bounding: Bounding, of: float, key: int) -> float:
    """Of 16 groups, in each of which every one of 16,000 people has one row: how far from its share is one, at most?"""
    connection, group = duckdb.connect(), Field("g", 15)
    rows = "SELECT u, g FROM range(16000) AS t(u), range(16) AS s(g)"
    sql = Bounds(dialect, key).kept(rows, bounding, group, ())
    found = dict(connection.execute(f"SELECT g, count(*) FROM ({sql}) GROUP BY g").fetchall())
    share = 16000 / of
    return float(max(abs(found.get(g, 0) - share) for g in range(16)) / (share * (1 - 1 / of)) ** 0.5)


@pytest.mark.parametrize(("bounding", "of"), FIRST, ids=str)
def test_no_group_is_preferred(bounding: Bounding, of: float) -> None:
    """In standard deviations: for no salt is a group kept more often than others."""
    assert all(furthest(DuckDBDialect(), bounding, of, key) < 6 for key in (1, 2**63 + 5, 12345678987654321))


def test_a_hash_that_is_an_xor_prefers_groups() -> None:
    assert furthest(Xored(), PeopleInGroups(3), 16 / 3, 1) > 20
    assert furthest(Xored(), AtMostRows(1), 16, 1) > 6


def test_ids_that_are_equal_are_one_person_under_large_caps(make: Make) -> None:
    """Who has more rows than a large cap is found by a join: it compares ids as the rest does."""
    for ids, people in (([0.0, -0.0] * 20 + [float("nan"), None], 1), (["a", "A", "a "] * 30, 3), ([1, 2] * 40, 2)):
        schema = Schema.declare("t", protect=person("id", max_rows=12), columns={"x": declared.integer(0, 9)})
        db = make(schema, {"id": ids, "x": [i % 10 for i in range(len(ids))]})
        assert db.answer(Statement(Scan(schema), (), AtMostRows(12), (Rows(),))) == [[12 * people]]


@pytest.mark.parametrize("bounding", [AtMostRows(1), AtMostRows(3), AtMostRows(12), AtMostGroups(1, 3)])
def test_rows_that_are_alike_do_not_stand_or_fall_together(bounding: Bounding) -> None:
    """Of 20 rows of each person one is different: it makes up one 20th of what survives, and not half of it.

    A choice by a hash of the values (as it once was) would keep it as often as all others together.
    """
    people = 4000
    rows = [(i, "a", int(j == 0), 0.5, None) for i in range(people) for j in range(20)]
    with engine(rows) as db:
        (count, odd, _), *_ = db.answer(statement(bounding, NARROW))
    assert count == people * (bounding.rows if isinstance(bounding, AtMostRows | AtMostGroups) else 0)
    assert abs(odd / count - 0.05) < 0.015  # the salt is fixed; 0.5 would be the old choice
