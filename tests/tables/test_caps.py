"""Joins and caps as values: every order is the same, and a cap of a query only tightens what holds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import permutations
from itertools import product as product_of
from math import prod
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.errors import QueryError, UserError
from privet.planner import plan
from privet.planner.plan import bounding
from privet.tables import caps
from privet.tables.caps import Cap, groups_of, product, rows_of
from privet.tables.codec import decode, encode
from privet.tables.operators import JoinPerson, Scan
from privet.tables.query import Query
from privet.tables.relation import Relation
from privet.tables.schema import Schema
from privet.tables.statement import AtMostGroups, AtMostRows, PeopleInGroups, Unbounded


def rows(name: str, protect: Any) -> Relation:
    columns = {f"{name}_x": pv.number(0, 10), f"{name}_g": pv.keys(*"abcdef")}
    return Relation(Scan(Schema.declare(name, protect=protect, columns=columns)))


VISITS = rows("visits", pv.person("id", max_rows=20))
PEOPLE = rows("people", pv.person("person_id", max_rows=1))
CALLS = rows("calls", pv.person("id", max_groups=4, max_rows_per_group=3))
EACH = rows("each", pv.each_row())


def asked(of: Relation, *, by: str | None = None) -> Query:
    return of.group_by(by).agg(n=pv.count()) if by else of.agg(n=pv.count())


def bounded(query: Query) -> Any:
    return bounding(query, people=False)[0]


# --- order ----------------------------------------------------------------------------------------------


def written(query: Query) -> str:
    return json.dumps(encode(query))


@pytest.mark.parametrize(
    "sides",
    [
        (VISITS, PEOPLE, CALLS),
        (VISITS.where(pv.col("visits_x") > 3), PEOPLE, CALLS.with_columns(more=pv.col("calls_x") + 1)),
        (VISITS.per_person(n=pv.count()), VISITS, CALLS),
        (VISITS.per_person(n=pv.count()), VISITS.per_person(m=pv.count()), VISITS.per_person(a=pv.sum("visits_x"))),
        (VISITS.join(PEOPLE).where(pv.col("visits_x") > 3), CALLS, VISITS.per_person(a=pv.count())),
        (VISITS.cap(max_rows=3), CALLS.cap(max_groups=2, max_rows_per_group=1), PEOPLE),
        (VISITS.cap(max_rows=1), CALLS, PEOPLE),
    ],
    ids=["tables", "filtered", "per_person", "one table", "nested", "capped", "capped to one"],
)
def test_every_order_and_association_is_the_same_value(sides: tuple[Relation, Relation, Relation]) -> None:
    made = {
        written(asked(chain)) for a, b, c in permutations(sides) for chain in (a.join(b).join(c), a.join(b.join(c)))
    }
    assert len(made) == 1
    (text,) = made
    again = decode(json.loads(text))
    assert again == asked(sides[0].join(sides[1]).join(sides[2]))
    assert written(again) == text


def test_another_order_than_the_one_that_is_kept_is_refused_in_a_certificate() -> None:
    kept = PEOPLE.join(VISITS).input
    assert isinstance(kept, JoinPerson)
    assert decode(encode(kept)) == kept
    tree = encode(kept)
    with pytest.raises(UserError, match="in the order of their names"):
        decode({**tree, "left": tree["right"], "right": tree["left"]})
    with pytest.raises(UserError, match="in the order of their names"):
        JoinPerson(kept.right, kept.left)


def test_a_cap_written_anywhere_is_the_same_question() -> None:
    condition = pv.col("visits_x") > 3
    first = VISITS.cap(max_rows=5).where(condition).with_columns(y=pv.col("visits_x")).group_by("visits_g")
    last = VISITS.where(condition).with_columns(y=pv.col("visits_x")).cap(max_rows=5).group_by("visits_g")
    assert first.agg(n=pv.count()) == last.agg(n=pv.count())
    whole = VISITS.where(condition).with_columns(y=pv.col("visits_x")).group_by("visits_g").agg(n=pv.count())
    assert whole.cap(max_rows=5) == first.agg(n=pv.count()) != whole


# --- which cap applies ------------------------------------------------------------------------------------

some_caps = st.one_of(st.integers(1, 50).map(AtMostRows), st.builds(AtMostGroups, st.integers(1, 9), st.integers(1, 9)))


@given(st.lists(some_caps, min_size=2, max_size=4), st.randoms())
def test_a_product_does_not_depend_on_order(parts: list[Cap], chance: Any) -> None:
    total = product(parts)
    assert rows_of(total) == prod(map(rows_of, parts))
    mixed = chance.sample(parts, len(parts))
    paired: Cap = mixed[0]
    for each in mixed[1:]:
        paired = product([paired, each])
    assert (rows_of(paired), groups_of(paired)) == (rows_of(total), groups_of(total))


def test_what_holds() -> None:
    assert caps.holding(VISITS.input) == AtMostRows(20)
    assert caps.holding(CALLS.input) == AtMostGroups(4, 3)
    assert caps.holding(EACH.input) is None
    assert caps.holding(VISITS.per_person(n=pv.count()).input) == AtMostRows(1)
    assert caps.holding(VISITS.join(CALLS).input) == AtMostRows(240)
    assert caps.holding(PEOPLE.join(CALLS).input) == AtMostGroups(4, 3)


# --- a cap of one's own ---------------------------------------------------------------------------------


def test_a_cap_takes_the_shape_that_is_asked_for() -> None:
    assert bounded(asked(VISITS).cap(max_rows=5)) == AtMostRows(5)
    by = asked(VISITS, by="visits_g")
    assert bounded(by.cap(max_groups=2, max_rows_per_group=1)) == AtMostGroups(2, 1)
    assert bounding(by.cap(max_groups=2, max_rows_per_group=1), people=True)[0] == PeopleInGroups(2)
    assert bounding(by.cap(max_rows=2), people=True)[0] == PeopleInGroups(2)
    calls = asked(CALLS, by="calls_g")
    assert bounded(calls.cap(max_rows=3)) == AtMostRows(3)
    assert bounding(calls.cap(max_groups=4, max_rows_per_group=2), people=True)[0] == PeopleInGroups(4)
    assert bounded(calls.cap(max_groups=4, max_rows_per_group=1)) == AtMostGroups(4, 1)


def test_a_cap_by_rows_does_not_undo_a_cap_by_groups() -> None:
    """4 groups with 3 rows each: 4 rows could be in one group, 12 rows in six."""
    for question in (asked(CALLS), asked(CALLS, by="calls_g")):
        for many in (4, 5, 12):
            with pytest.raises(QueryError, match="needs both max_groups and max_rows_per_group"):
                question.cap(max_rows=many)
        assert bounded(question.cap(max_rows=2)) == AtMostRows(2)
    with pytest.raises(QueryError, match=r"Write, for example: cap\(max_groups=4, max_rows_per_group=1\)"):
        CALLS.cap(max_rows=5)
    one = rows("one", pv.person("id", max_rows=3)).cap(max_groups=1, max_rows_per_group=3)
    with pytest.raises(QueryError, match="limit per person is 1 group with 3 rows each"):
        one.cap(max_rows=3)
    assert one.at_most == AtMostGroups(1, 3)
    assert asked(CALLS.cap(max_groups=1, max_rows_per_group=1).join(PEOPLE)).at_most == AtMostRows(1)


def kept(cap: Cap, sizes: tuple[int, ...]) -> tuple[int, int]:
    """The most rows, and the most groups, of a person with so many rows in each group: over all ways to choose."""
    ways = {tuple(way) for way in product_of(*(range(size + 1) for size in sizes))}
    match cap:
        case AtMostRows(most):
            ways = {way for way in ways if sum(way) <= most}
        case AtMostGroups(groups, most):
            ways = {way for way in ways if sum(map(bool, way)) <= groups and max(way) <= most}
    return max(map(sum, ways)), max(sum(map(bool, way)) for way in ways)


small_caps = st.one_of(st.integers(1, 9).map(AtMostRows), st.builds(AtMostGroups, st.integers(1, 4), st.integers(1, 4)))


@given(small_caps, small_caps, st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple))
def test_with_a_cap_nobody_has_more_rows_or_more_groups(held: Cap, cap: Cap, sizes: tuple[int, ...]) -> None:
    if caps.tightens(held, cap):
        before, after = kept(held, sizes), kept(cap, sizes)
        assert after[0] <= before[0]
        assert after[1] <= before[1]


def test_what_is_refused_would_let_somebody_have_more() -> None:
    """The rule is not stricter than it must be."""
    every = [AtMostRows(m) for m in range(1, 10)] + [AtMostGroups(g, r) for g in (1, 2, 3) for r in (1, 2, 3)]
    spread = [(9,), (1,) * 9, (3, 3, 3), (1, 2), (4, 4)]
    for held in every:
        for cap in every:
            if not caps.tightens(held, cap):
                assert any(
                    after > before
                    for sizes in spread
                    for before, after in zip(kept(held, sizes), kept(cap, sizes), strict=True)
                )


def test_the_engine_keeps_no_more_rows_with_a_cap() -> None:
    data = pa.table({"id": [1] * 6, "k": ["u", "u", "v", "v", "w", "w"]})
    protect = pv.person("id", max_groups=2, max_rows_per_group=3)
    made = pv.table("g", data, protect=protect, columns={"k": pv.keys("u", "v", "w")})
    question = made.group_by("k").agg(n=pv.count())
    with DuckDB({"g": (made.schema, made.source)}, salt=b"") as engine:
        (statement,) = plan(question, epsilon=1).statements()
        assert sorted(engine.answer(statement)) == [[0], [2], [2]]
        for many in (6, 5, 3):
            with pytest.raises(QueryError, match="a cap can only be lowered"):
                question.cap(max_rows=many)
        (statement,) = plan(question.cap(max_rows=2), epsilon=1).statements()
        assert sum(n for (n,) in engine.answer(statement)) == 2


def test_a_cap_that_holds_already_is_the_same_question() -> None:
    assert asked(VISITS).cap(max_rows=20) == asked(VISITS)
    assert VISITS.cap(max_rows=20) == VISITS
    assert CALLS.cap(max_groups=4, max_rows_per_group=3) == CALLS
    once = VISITS.per_person(n=pv.count())
    assert once.cap(max_rows=1) == once
    assert bounded(asked(once)) == Unbounded()


@pytest.mark.parametrize(
    ("of", "cap", "said"),
    [
        (
            VISITS,
            {"max_rows": 21},
            "asked for 21 rows, but the limit per person is 20 rows.*cap(max_rows=20)",
        ),
        (
            VISITS,
            {"max_groups": 7, "max_rows_per_group": 3},
            "7 groups with 3 rows each.*limit per person is 20 rows",
        ),
        (
            CALLS,
            {"max_rows": 13},
            "13 rows.*limit per person is 4 groups with 3 rows each.*cap(max_groups=4, max_rows_per_group=3)",
        ),
        (
            CALLS,
            {"max_groups": 5, "max_rows_per_group": 1},
            "5 groups with 1 row each.*limit per person is 4 groups",
        ),
        (
            CALLS,
            {"max_groups": 1, "max_rows_per_group": 12},
            "1 group with 12 rows each.*limit per person is 4 groups",
        ),
        (VISITS.cap(max_rows=5), {"max_rows": 6}, "the limit per person is 5 rows"),
        (VISITS.join(CALLS), {"max_rows": 241}, "241 rows, but the limit per person is 240 rows"),
        (EACH, {"max_rows": 1}, "each row is protected on its own here, so there is nothing to cap"),
        (VISITS.per_person(n=pv.count()), {"max_rows": 2}, "each person already has one row here.*clip"),
        (VISITS, {}, "a cap needs max_rows, or both max_groups and max_rows_per_group"),
        (VISITS, {"max_groups": 2}, "a cap needs max_rows, or both max_groups and max_rows_per_group"),
        (VISITS, {"max_rows": 2, "max_groups": 2, "max_rows_per_group": 1}, "a cap needs max_rows, or both max_groups"),
        (VISITS, {"max_rows": 0}, "max_rows"),
        (VISITS, {"max_rows": 2.5}, "max_rows"),
        (VISITS, {"max_rows": True}, "max_rows"),
        (VISITS, {"max_groups": 2, "max_rows_per_group": -1}, "max_rows_per_group"),
    ],
)
def test_a_cap_that_does_not_tighten_is_refused(of: Relation, cap: dict[str, Any], said: str) -> None:
    pattern = ".*".join(re.escape(part) for part in said.split(".*"))
    with pytest.raises(UserError, match=pattern):
        of.cap(**cap)
    with pytest.raises(UserError, match=pattern):
        replace(asked(of)).cap(**cap)


def test_a_cap_before_per_person_is_refused() -> None:
    with pytest.raises(QueryError, match="a cap before it has no effect"):
        VISITS.cap(max_rows=5).per_person(n=pv.count())


def test_a_cap_is_in_the_json_and_back_and_a_wrong_one_is_refused() -> None:
    query = asked(VISITS, by="visits_g").cap(max_groups=2, max_rows_per_group=1)
    tree = encode(query)
    assert tree["at_most"] == {"kind": "at most groups", "groups": 2, "rows": 1}
    assert decode(tree) == query
    assert encode(asked(VISITS))["at_most"] is None
    for wrong in (
        {"kind": "at most rows", "rows": 21},
        {"kind": "at most rows", "rows": 20},
        {"kind": "at most rows", "rows": 0},
        {"kind": "people in groups", "groups": 2},
        {"kind": "unbounded"},
    ):
        with pytest.raises(UserError):
            decode({**tree, "at_most": wrong})


def test_a_cap_makes_the_noise_smaller() -> None:
    whole, few = plan(asked(VISITS), epsilon=1), plan(asked(VISITS).cap(max_rows=5), epsilon=1)
    assert [whole.noised[0].scale, few.noised[0].scale] == [20, 5]
    assert "at most 5 rows per person (set by this query; otherwise 20 rows)" in " ".join(few.explain().split())
    both = plan(asked(VISITS.join(CALLS)), epsilon=1)
    told = "at most 240 rows per person (the caps multiply: calls 12 x visits 20)"
    assert told in " ".join(both.explain().split())
