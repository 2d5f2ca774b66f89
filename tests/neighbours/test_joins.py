"""Joins of people's tables, noise off: one person moves no measurement by more than claimed, in either order.

Every table has a cap of its own. The person who is added has more rows in each table than any cap allows, so that a
plan that claims the cap of one side only, or fewer rows than its bounding lets through, is seen to move too far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from tests.effort import some
from tests.neighbours.exact import Exchangeable, Vectors, moved

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.planner import ReleasePlan, plan
from privet.planner.plan import NoisyMeasurement
from privet.privacy.moves import L1Move
from privet.tables.query import Query
from privet.tables.relation import Relation, Table
from privet.tables.statement import AtMostGroups, AtMostRows, PeopleInGroups, Statement

ID = "who"
MANY = 12
"""So many rows of one person in each table: more than any cap."""

CAPS: dict[str, Any] = {
    "visits": pv.person(ID, max_rows=3),
    "buys": pv.person(ID, max_rows=2),
    "calls": pv.person(ID, max_groups=2, max_rows_per_group=2),
}


def declared(name: str, rows: int, protect: Any, adjacency: str) -> Table:
    mark = name[0]
    made = {
        ID: pa.array([1] * rows, pa.int64()),
        f"{mark}x": pa.array([(10.0, -4.0)[i % 2] for i in range(rows)], pa.float64()),
        f"{mark}g": pa.array(["abcdef"[i % 6] for i in range(rows)], pa.string()),
    }
    columns: dict[str, Any] = {f"{mark}x": pv.number(-4, 10, step=1), f"{mark}g": pv.keys(*"abcdef")}
    return pv.table(name, pa.table(made), protect=protect, columns=columns, adjacency=adjacency)


class Tables:
    """Three tables of the same people, and an engine whose rows can be exchanged."""

    def __init__(self, adjacency: str = "add/remove") -> None:
        self.adjacency = adjacency
        self.tables = {name: declared(name, 0, protect, adjacency) for name, protect in CAPS.items()}
        self.sources = {name: Exchangeable(t.source.rows, t.source.types()) for name, t in self.tables.items()}

        self.engine = DuckDB(
            {name: (table.schema, self.sources[name]) for name, table in self.tables.items()}, salt=b"salt", threads=1
        )

    def __enter__(self) -> Tables:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()

    def put(self, rows: int) -> None:
        for name, protect in CAPS.items():
            self.sources[name].exchange(declared(name, rows, protect, self.adjacency).source.rows)

    def largest(self, asked: ReleasePlan, statements: Sequence[Statement] = ()) -> list[int]:
        """The largest change of each measurement that was seen, between nobody and one person, or between two."""
        seen: list[Vectors] = []
        for rows in (0, 1, 2, 7, MANY):
            self.put(rows)
            seen.append(asked.coordinates([self.engine.answer(s) for s in statements or asked.statements()]))
        old = seen if self.adjacency == "replace" else seen[:1]
        return [max(change) for change in zip(*(moved(a, b) for a in old for b in seen), strict=True)]


@pytest.fixture
def of() -> Iterator[Tables]:
    with Tables() as made:
        yield made


def asked_of(rows: Relation, *, grouped: bool, key: str = "vg", of: str = "vx") -> dict[str, Query]:
    by: Any = rows.group_by(key) if grouped else rows
    return {
        "count": by.agg(n=pv.count()),
        "people": by.agg(n=pv.count_people()),
        "sum": by.agg(s=pv.sum(of)),
        "mean": by.agg(m=pv.mean(of), n=pv.count()),
        "variance": by.agg(v=pv.variance(of)),
    }


def shapes(of: Tables) -> dict[str, tuple[Relation, int]]:
    """Joins, and how many rows of a person may take part."""
    v, b, c = (of.tables[name].relation for name in ("visits", "buys", "calls"))
    once = b.per_person(total=pv.sum("bx"), times=pv.count())
    return {
        "visits, buys": (v.join(b), 6),
        "buys, visits": (b.join(v), 6),
        "by groups": (v.join(c), 12),
        "by groups, turned": (c.join(v), 12),
        "three": (v.join(b).join(c), 24),
        "three, turned": (c.join(b.join(v)), 24),
        "one row of each person": (v.join(once), 3),
        "one row of each person, turned": (once.join(v), 3),
        "filtered": (v.where(pv.col("vx") > 0).join(b), 6),
        "filtered afterwards": (b.join(v).where(pv.col("vx") > 0), 6),
        "capped": (v.join(b).cap(max_rows=4), 4),
        "capped by groups": (b.join(v).cap(max_groups=2, max_rows_per_group=1), 2),
        "a capped side": (v.cap(max_rows=1).join(b), 2),
        "a capped side, turned": (b.join(v.cap(max_rows=1)), 2),
    }


@pytest.mark.parametrize("grouped", [False, True], ids=["whole", "grouped"])
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_no_join_moves_more_than_claimed(adjacency: str, grouped: bool) -> None:
    with Tables(adjacency) as of:
        turn = 2 * grouped + (adjacency == "replace")
        for name, (rows, _) in some(list(shapes(of).items()), every=4, start=turn):
            for question, query in asked_of(rows, grouped=grouped).items():
                made = plan(query, epsilon=1)
                for part, change in zip(made.noised, of.largest(made), strict=True):
                    assert change <= part.move.total, (name, question, change, part.move.total)


def test_as_many_rows_take_part_as_the_product_says(of: Tables) -> None:
    """No more and no fewer: the count of somebody with many rows everywhere is the cap itself."""
    for name, (rows, most) in shapes(of).items():
        made = plan(rows.agg(n=pv.count()), epsilon=1)
        expected = 1 if name == "capped by groups" else most  # one group, one row in it
        assert [part.rows for part in made.noised] == [expected], name
        assert of.largest(made) == [expected], name


# --- broken twins -----------------------------------------------------------------------------------


def claims_the_left_cap(asked: ReleasePlan) -> ReleasePlan:
    """A twin whose bounding is the product, and whose claim is the cap of one table."""
    sums = [part for part in asked.noised if isinstance(part, NoisyMeasurement)]
    return replace(asked, noised=tuple(replace(p, move=L1Move(p.move.total // p.rows * 3)) for p in sums))


def looser(asked: ReleasePlan) -> list[Statement]:
    """A twin whose bounding lets more rows through than the plan claims: what holds without the query's own cap."""
    free = replace(asked.query, at_most=None)
    return list(plan(free, epsilon=1).statements())


def test_a_twin_that_claims_one_side_only_is_caught(of: Tables) -> None:
    made = claims_the_left_cap(plan(of.tables["visits"].join(of.tables["buys"]).agg(n=pv.count()), epsilon=1))
    assert of.largest(made)[0] > made.noised[0].move.total


@pytest.mark.parametrize("cap", [{"max_rows": 4}, {"max_groups": 2, "max_rows_per_group": 1}], ids=["rows", "groups"])
@pytest.mark.parametrize("grouped", [False, True], ids=["whole", "grouped"])
def test_a_twin_that_forgets_the_cap_of_the_query_is_caught(of: Tables, cap: dict[str, int], grouped: bool) -> None:
    rows = of.tables["visits"].join(of.tables["buys"]).cap(**cap)
    made = plan(asked_of(rows, grouped=grouped)["count"], epsilon=1)
    assert of.largest(made)[0] <= made.noised[0].move.total
    assert of.largest(made, looser(made))[0] > made.noised[0].move.total


# --- the bounding -----------------------------------------------------------------------------------


def bounded(query: Query) -> list[Any]:
    return [statement.bounding for statement in plan(query, epsilon=1).statements()]


def test_caps_multiply(of: Tables) -> None:
    v, b, c = (of.tables[name].relation for name in ("visits", "buys", "calls"))
    once = b.per_person(times=pv.count())
    for rows, expected in (
        (v.join(b), AtMostRows(6)),
        (v.join(c), AtMostRows(12)),
        (v.join(b).join(c), AtMostRows(24)),
        (v.join(once), AtMostRows(3)),
        (c.join(once), AtMostGroups(1, 2)),  # a side of one row each changes nothing
        (once.join(v.per_person(n=pv.count())), AtMostRows(1)),
    ):
        assert bounded(rows.agg(n=pv.count())) == [expected]
    assert bounded(v.join(b).group_by("vg").agg(n=pv.count_people())) == [PeopleInGroups(6)]
    assert bounded(c.join(once).group_by("cg").agg(n=pv.count_people())) == [PeopleInGroups(2)]


def test_a_product_that_is_too_large_is_refused_before_anything_is_read() -> None:
    caps = {name: pv.person(ID, max_rows=2**20) for name in CAPS}
    of = {name: declared(name, 0, cap, "add/remove") for name, cap in caps.items()}
    both = of["visits"].join(of["buys"])
    query = both.agg(n=pv.count())
    with pytest.raises(pv.errors.QueryError, match=r"1,099,511,627,776 rows .* 2\^30.*cap\(max_rows=") as caught:
        plan(query, epsilon=1)
    assert "buys 1,048,576 x visits 1,048,576" in str(caught.value)
    assert bounded(query.cap(max_rows=5)) == [AtMostRows(5)]
    assert bounded(of["visits"].cap(max_rows=2).join(of["buys"]).agg(n=pv.count())) == [AtMostRows(2**21)]
    assert bounded(both.per_person(n=pv.count()).agg(n=pv.count())) != []  # one row of each person: no product


@pytest.mark.parametrize("order", list(permutations(CAPS)), ids="-".join)
def test_every_order_of_a_chain_is_one_question(of: Tables, order: tuple[str, ...]) -> None:
    chain = of.tables["visits"].join(of.tables["buys"]).join(of.tables["calls"])
    a, b, c = (of.tables[name] for name in order)
    for made in (a.join(b).join(c), a.join(b.join(c))):
        assert made == chain
        assert made.agg(n=pv.count()) == chain.agg(n=pv.count())
