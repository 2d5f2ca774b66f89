"""Who holds which private key, and how many different values there are: the same on every engine.

One person changes the count of each of their own keys by one, and no other (T15). Nothing follows from the order of
rows (T20).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import combinations
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.effort import EFFORT

import privet as pv
from privet.engines.base import Engine
from privet.engines.duckdb.engine import DuckDB
from privet.engines.reference.engine import Reference
from privet.errors import QueryError
from privet.exact import Exact
from privet.mechanisms.thresholds import UNIT, key_weight
from privet.tables.expressions.nodes import Column, Which
from privet.tables.groups import Listed
from privet.tables.holders import Held, Holders, can_appear
from privet.tables.operators import Operator
from privet.tables.relation import Table
from privet.tables.statement import (
    AtMostGroups,
    AtMostRows,
    Bounding,
    Distinct,
    Given,
    PeopleInGroups,
    Rows,
    Statement,
    Unbounded,
)
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type

Row = tuple[Any, Any, Any]
"""A person, a text and a whole number."""

TEXTS: list[Any] = [
    None, "", "a", "A", "a ", "élan", "e\u0301lan", "\u202eabc", "😀", "nul\x00nul", "x" * 200, "x" * 201,
    "\u00a0", "\n", "'; DROP TABLE t0; --", "日本", "\ufeff", "NaN", "\x7f", "tab\tbed",
]  # fmt: skip
NUMBERS: list[Any] = [None, 0, 7, 10**6, 10**6 + 1, -1, -(2**63), 2**62]
ENGINES: list[Any] = [DuckDB, Reference]


def table(rows: Sequence[Row], *, person: bool = True) -> Table:
    who, texts, numbers = zip(*rows, strict=True) if rows else ((), (), ())
    data = pa.table(
        {"who": pa.array(who, pa.int64()), "k": pa.array(texts, pa.string()), "n": pa.array(numbers, pa.int64())}
    )
    protect = pv.person("who", max_rows=50) if person else pv.each_row()
    return pv.table("t", data, protect=protect, columns={"k": pv.text(), "n": pv.integer(0, 10**6)})


def asked(engine: type[Any], rows: Sequence[Row], *, person: bool = True) -> tuple[Engine, Operator]:
    made = table(rows, person=person)
    return engine({"t": (made.schema, made.source)}, salt=b"salt"), made.relation.input


def held(
    engine: type[Any], rows: Sequence[Row], keys: Sequence[str], most: int | None, *, weighed: bool = True
) -> list[Held]:
    opened, of = asked(engine, rows, person=most is not None)
    how = Unbounded() if most is None else PeopleInGroups(most)
    statement = Holders(of, tuple(map(Column, keys)), how, weighed)
    assert opened.supports(statement) is None
    try:
        return opened.holders(statement)
    finally:
        opened.close()


def world(chance: Random, *, people: int = 6) -> list[Row]:
    ids = [None, *range(people)]
    weights = [1, *(people - i for i in range(people))]  # the first people have many rows
    who = chance.choices(ids, weights, k=chance.randint(0, 40))
    return [(each, chance.choice(TEXTS), chance.choice(NUMBERS)) for each in who]


def people_of(found: list[Held]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for each in found:
        counts[each.key] += each.people
    return counts


def weights_of(found: list[Held]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for each in found:
        counts[each.key] += each.people * key_weight(each.keys)
    return counts


def expected(rows: Sequence[Row], places: Sequence[int]) -> Counter[Any]:
    """Everybody's keys, with no cap: written a second time."""
    own = {(who, *(row[i] for i in places)) for who, *_ in rows if who is not None for row in rows if row[0] == who}
    in_range = [(who, key) for who, *key in own if all(map(can_appear, key))]
    return Counter(
        tuple(key) for _, key in in_range if all(not isinstance(part, int) or 0 <= part <= 10**6 for part in key)
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_people_are_counted_once_for_each_key(engine: type[Any]) -> None:
    rows = world(Random(1), people=8)
    for keys, places in ((["k"], [1]), (["n"], [2]), (["k", "n"], [1, 2])):
        found = held(engine, rows, keys, 100)
        assert people_of(found) == expected(rows, places)
        assert found == sorted(found)
        assert all(can_appear(part) for each in found for part in each.key)
    assert "x" * 200 in {key for (key,) in people_of(held(engine, [(1, "x" * 200, 0)], ["k"], 3))}


@pytest.mark.parametrize("engine", ENGINES)
def test_people_are_weighed_only_if_that_is_asked(engine: type[Any]) -> None:
    """Else everybody counts as if they held as many keys as anybody may: that never weighs more than their own."""
    rows = [*world(Random(3), people=8), (100, "a", 0)]
    for most in (1, 2, 100):
        weighed, alike = (held(engine, rows, ["k"], most, weighed=each) for each in (True, False))
        assert people_of(weighed) == people_of(alike)
        assert {each.keys for each in alike} == {most}
        assert max(each.keys for each in weighed) <= most
        assert (len({each.keys for each in weighed}) > 1) is (most > 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_that_can_not_appear_counts_towards_the_cap(engine: type[Any]) -> None:
    """Whether a text is printable is Python's word, the same for all engines; a long one does not count at all."""
    rows: list[Row] = [(i, text, 0) for i in range(200) for text in ("a", "\u0378", "b\n", "é" * 401)]
    counted = people_of(held(engine, rows, ["k"], 1))
    assert set(counted) == {("a",)}
    assert 30 < counted["a",] < 110  # a third of the people, since the choice is even
    assert people_of(held(engine, rows, ["k"], 3)) == Counter({("a",): 200})
    assert held(engine, [(1, "é" * 400, 0), (1, "é" * 200, 0)], ["k"], 2) == [Held(("é" * 200,), 2, 1)]


def test_rows_are_counted_if_each_is_protected_on_its_own() -> None:
    rows = world(Random(2))
    first, second = (held(engine, rows, ["k", "n"], None) for engine in ENGINES)
    assert first == second
    assert sum(each.people for each in first) <= len(rows)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_neighbour_changes_few_keys_by_one_each(engine: type[Any], most: int) -> None:
    chance = Random(most)
    reached = 0
    for _ in range(2 if engine is DuckDB else 20 * EFFORT):
        rows = [*world(chance), *((0, text, 7) for text in "abc")]
        others = [row for row in rows if row[0] != 0]
        instead = [*others, *((0, chance.choice(TEXTS), chance.choice(NUMBERS)) for _ in range(9))]
        shuffled = chance.sample(rows, len(rows))
        seen = [held(engine, each, ["k", "n"], most) for each in (rows, shuffled, others, instead)]
        assert seen[0] == seen[1]
        reached = max(reached, sum((people_of(seen[0]) - people_of(seen[2])).values()))
        for left, right in combinations((seen[0], seen[2], seen[3]), 2):
            replaced = left is not seen[2] and right is not seen[2]
            assert close(people_of(left), people_of(right), most * (1 + replaced))
            weights = (weights_of(left), weights_of(right))
            squared = sum((weights[0][key] - weights[1][key]) ** 2 for key in {*weights[0], *weights[1]})
            assert squared <= UNIT**2 * (1 + replaced)
    assert reached == most


def close(left: Counter[Any], right: Counter[Any], most: int) -> bool:
    """Whether so many keys differ, at most, and each by one."""
    changes = [left[key] - right[key] for key in {*left, *right}]
    return sum(map(abs, changes)) <= most and max(map(abs, changes), default=0) <= 1


def by_popularity(rows: Sequence[Row], most: int) -> Counter[Any]:
    """A twin that keeps, of each person, the keys that most people hold: others decide what survives."""
    everyone = expected(rows, [1])
    counts: Counter[Any] = Counter()
    for who in {row[0] for row in rows} - {None}:
        mine = {(row[1],) for row in rows if row[0] == who and can_appear(row[1])}
        counts.update(sorted(mine, key=lambda key: (-everyone[key], key))[:most])
    return counts


def test_a_twin_that_bounds_by_what_others_hold_is_caught() -> None:
    rows: list[Row] = [(i, text, 0) for i in (1, 2, 3, 4) for text in ("a", "b")]
    with_person = [*rows, (5, "b", 0), (5, "c", 0)]
    assert not close(by_popularity(rows, 1), by_popularity(with_person, 1), 1)
    for engine in ENGINES:
        counts = [people_of(held(engine, each, ["k"], 1)) for each in (rows, with_person)]
        assert close(counts[0], counts[1], 1)


# --- groups of what was found, and different values ----------------------------------------------------------


def counted(engine: type[Any], rows: Sequence[Row], statement: Any) -> list[list[int]]:
    opened, of = asked(engine, rows)
    try:
        made = statement(of)
        assert opened.supports(made) is None
        return opened.answer(made)
    finally:
        opened.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_which_numbers_combinations(engine: type[Any]) -> None:
    rows: list[Row] = [(1, "a", 5), (2, "a", 5), (3, "b", 5), (4, "a", 7), (5, None, 7), (6, "b", None), (7, "a", -1)]
    for operands, values, expected_rows in (
        (("k",), (("b",), ("a",), ("z",)), [2, 4, 0]),
        (("n",), ((7,), (5,)), [2, 3]),
        (("k", "n"), (("b", 5), ("a", 7), ("a", 5), ("b", 7)), [1, 1, 2, 0]),
        (("k",), (), []),
    ):
        which = Which(tuple(map(Column, operands)), values)

        def statement(of: Operator, which: Which = which, count: int = len(values)) -> Statement:
            return Statement(of, (which,), AtMostRows(3), (Rows(),), Listed((tuple(range(count)),)))

        assert counted(engine, rows, statement) == [[n] for n in expected_rows]


PLACES = NumberType(Exact(0), Exact(9), integer=True)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (TimeType(date(2024, 1, 1), date(2024, 12, 31)), 0),
        (TimeType(date(2024, 1, 1), date(2024, 12, 31)), "2024-01-01"),
        (BooleanType(), 1),
        (NumberType(Exact(0), Exact(1)), 1),
        (NumberType(Exact(0), Exact(10), step=Exact(5)), 5),
        (PLACES, "5"),
        (KeyType((1, 2)), "1"),
        (KeyType(("1", "2")), 1),
        (TextType(), 1),
    ],
)
def test_combinations_are_of_values_that_the_operands_can_have(kind: Type, value: Any) -> None:
    which = Which((Column("n"), Column("k")), ((3, value),))
    with pytest.raises(QueryError, match="is never equal to"):
        which.type({"n": PLACES, "k": kind})


def test_combinations_of_two_kinds_or_of_long_integers_are_refused() -> None:
    with pytest.raises(QueryError, match="is never equal to 'a'"):
        Which((Column("n"),), ((0,), ("a",))).type({"n": PLACES})
    for value in (2**62 + 1, -(2**62) - 1, 2**200):
        with pytest.raises(QueryError, match=r"must be within -2\^62\.\.2\^62"):
            Which((Column("n"),), ((0,), (value,)))
    longest = Which((Column("n"),), ((2**62,), (-(2**62),), (5,)))

    def statement(of: Operator) -> Statement:
        return Statement(of, (longest,), AtMostRows(1), (Rows(),), Listed(((0, 1, 2),)))

    for engine in ENGINES:
        assert counted(engine, [(1, "a", 5), (2, "b", 2**62)], statement) == [[0], [0], [1]]


def distinct(engine: type[Any], rows: Sequence[Row], name: str, how: Bounding) -> list[int]:
    key = Which((Column("n"),), ((0,), (7,)))

    def statement(of: Operator) -> Statement:
        return Statement(of, (key,) if name == "k" else (), how, (Distinct(Given(Column(name))),))

    return [n for (n,) in counted(engine, rows, statement)]


@pytest.mark.parametrize("how", [AtMostRows(1), AtMostRows(3), AtMostGroups(1, 2)])
def test_different_values_move_by_no_more_than_the_rows_of_a_person(how: Bounding) -> None:
    """Rows that replace those of a person in one group move it by k at most, not by 2k."""
    chance = Random(3)
    rows_of = math.prod(how.caps())
    reached = 0
    for round_ in range(10 * EFFORT):
        engine = DuckDB if round_ == 0 else Reference
        rows = [*world(chance), *((0, text, number) for text, number in zip("pqr", (7, 7, 0), strict=True))]
        others = [row for row in rows if row[0] != 0]
        instead = [*others, *((0, chance.choice(TEXTS), chance.choice(NUMBERS)) for _ in range(9))]
        for name in ("k", "n"):
            if name == "n" and isinstance(how, AtMostGroups):
                continue
            seen = [distinct(engine, each, name, how) for each in (rows, others, instead)]
            for i, j, most in ((0, 1, 1), (2, 1, 1), (0, 2, 2 if name == "k" else 1)):
                moved = sum(abs(a - b) for a, b in zip(seen[i], seen[j], strict=True))
                assert moved <= most * rows_of
                reached = max(reached, moved if most == 1 else 0)
    assert reached == rows_of


def test_engines_agree_on_different_values_if_no_cap_binds() -> None:
    for seed in range(4):
        rows = world(Random(seed))
        for name in ("k", "n"):
            first, second = (distinct(engine, rows, name, AtMostRows(100)) for engine in ENGINES)
            assert first == second


def test_equal_rows_of_a_person_count_once_towards_the_cap() -> None:
    rows: list[Row] = [(1, "a", 0)] * 30 + [(1, "b", 0), (1, None, 0), (1, None, 7)]
    for engine in ENGINES:
        assert distinct(engine, rows, "k", AtMostRows(2)) == [2, 0]
