"""Diagnoses: private shares of what caps and bounds take, each from a measurement that one person moves as claimed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from tests.moves import keeps_to
from tests.session.test_session import a_session

import privet as pv
from privet.engines.registry import open_engine
from privet.errors import QueryError, UserError
from privet.planner import ReleasePlan, plan
from privet.planner.diagnosis import asked
from privet.tables.aggregates import Sum
from privet.tables.expressions.nodes import Beyond, Bin, Clip, Column
from privet.tables.query import Query
from privet.tables.relation import Table
from privet.tables.statement import At, Place, Statement, Unbounded

MUCH = 10**5
NAN, INF = float("nan"), float("inf")


# --- what the source has ------------------------------------------------------------------------------------------

FLOATS = [None, NAN, -INF, -0.6, -0.4, 0.0, 10.0, 10.4, 10.6, INF]
DAYS = [None, date(1899, 12, 31), date(1900, 1, 1), date(2000, 5, 5), date(2000, 12, 31), date(2001, 1, 1), None]
OUTSIDE: list[tuple[Any, Any, Any, tuple[int, int, int]]] = [
    (FLOATS, pa.float64(), pv.number(0, 10), (3, 2, 3)),
    (FLOATS, pa.float64(), pv.integer(0, 10), (2, 4, 2)),
    (FLOATS, pa.float64(), pv.number(0, 10, step="1/4"), (3, 2, 3)),
    (FLOATS, pa.float64(), pv.number(0, 10, required=True), (3, 4, 3)),
    ([None, -(2**63), -1, 0, 7, 10, 11, 2**63 - 1], pa.int64(), pv.integer(0, 10), (2, 3, 2)),
    (DAYS, pa.date32(), pv.date("1900-01-01", "2000-12-31"), (1, 3, 1)),
]


@pytest.mark.parametrize(("values", "kind", "column", "expected"), OUTSIDE)
@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_both_engines_tell_what_is_outside(
    engine: str, values: Any, kind: Any, column: Any, expected: tuple[int, int, int]
) -> None:
    table = pv.table("t", pa.table({"x": pa.array(values, kind)}), protect=pv.each_row(), columns={"x": column})
    place = Place(Bin(Beyond(Column("x")), tuple(map(Fraction, (-1, 0, 1, 2)))), 3)
    opened = open_engine({"t": (table.schema, table.source)}, {}, salt=b"salt", name=engine)
    statement = Statement(table.relation.input, (), Unbounded(), tuple(At(place, i) for i in range(3)))
    assert tuple(opened.answer(statement)[0]) == expected
    opened.close()


# --- shares ---------------------------------------------------------------------------------------------------------

Row = tuple[Any, Any, Any, Any]
"""Who, x, y, region."""


def table(rows: list[Row], adjacency: Any = "add/remove", cap: int = 2) -> Table:
    who, x, y, region = (list(column) for column in zip(*rows, strict=True))
    kinds = {"who": pa.int64(), "x": pa.float64(), "y": pa.int64(), "region": pa.string()}
    columns = (pa.array(values, kind) for values, kind in zip((who, x, y, region), kinds.values(), strict=True))
    return pv.table(
        "t", pa.table(dict(zip(kinds, columns, strict=True))), protect=pv.person("who", max_rows=cap),
        columns={"x": pv.number(0, 10), "y": pv.integer(-5, 5), "region": pv.keys("north", "south")},
        adjacency=adjacency,
    )  # fmt: skip


def some_rows() -> list[Row]:
    """16 people with 1 to 8 rows each, of which one in three is in no region."""
    rows: list[Row] = [
        (who, [-3.0, 4.0, 99.0, None][i % 4], [-9, 0, 2, 7, 5][i % 5], ["north", "south", "x"][i % 3])
        for who in range(16)
        for i in range(1 + who % 8)
    ]
    return [*rows, (None, 50.0, 1, "north")]


def question(of: Table) -> Query:
    return of.group_by("region").agg(
        n=pv.count(),
        x=pv.mean("x"),
        y=pv.sum(pv.col("y").clip(-5, 3)),
        z=pv.sum((pv.col("x") + pv.col("y")).clip(1, 9)),
    )


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_without_noise_the_shares_are_those_of_the_rows(adjacency: str) -> None:
    rows, of = some_rows(), table(some_rows(), adjacency, cap=8)
    counted = [row for row in rows if row[0] is not None and row[3] != "x"]
    with a_session(of, budget=pv.PureDP(10**8)) as session:
        shares = {share.what: share for share in session.diagnose(question(of), epsilon=MUCH).shares}
        assert shares["rows left out by the cap"].value == 0
        xs = [row[1] for row in counted if row[1] is not None]
        ys = [row[2] for row in counted]
        expected = {
            "x clamped up to 0": sum(x < 0 for x in xs) / len(xs),
            "x clamped down to 10": sum(x > 10 for x in xs) / len(xs),
            "y clipped up to -5": sum(y < -5 for y in ys) / len(ys),
            "y clipped down to 3": sum(y > 3 for y in ys) / len(ys),
        }
        for what, share in expected.items():
            assert shares[what].value == pytest.approx(share, abs=0.01), what
            assert shares[what].low <= share <= shares[what].high, what
        assert {share.what.split(" cl")[0] for share in shares.values() if " cl" in share.what} == {"x", "y", "x + y"}
        capped = session.diagnose(question(of).cap(max_rows=2), epsilon=MUCH, ceiling=4)
        each = Counter(row[0] for row in counted)
        kept, lost = sum(min(n, 2) for n in each.values()), sum(min(max(n - 2, 0), 2) for n in each.values())
        left, people = capped.shares[:2]
        assert left.value == pytest.approx(lost / (kept + lost), abs=0.01)
        assert people.value == pytest.approx(sum(n > 2 for n in each.values()) / len(each), abs=0.01)
        assert "The question set this cap" in capped.advice[0]
        assert "max_rows = 8" in capped.advice[0]
        assert "Rows are counted up to 4 per person." in capped.notes()


def test_rows_that_are_combined_per_person_are_looked_at_too() -> None:
    of = table(some_rows())
    totals = of.per_person(total=pv.sum("x")).agg(m=pv.mean(pv.col("total").clip(0, 20)))
    with a_session(of, budget=pv.PureDP(10**8)) as session:
        found = session.diagnose(totals, epsilon=MUCH)
        assert [share.what for share in found.shares] == [
            "total clipped up to 0", "total clipped down to 20", "x clamped up to 0", "x clamped down to 10"
        ]  # fmt: skip
        assert found.rows is None
        assert found.advice[0].startswith("No cap leaves out rows")


def test_columns_that_are_redefined_are_looked_at_before() -> None:
    of = table(some_rows(), cap=8)
    twice = of.with_columns(x=pv.col("x") * 2, y=pv.col("y").clip(-1, 1)).where(pv.col("x") > 4)
    means = twice.agg(x=pv.mean("x"), y=pv.sum("y"))
    with a_session(of, budget=pv.PureDP(10**8)) as session:
        shares = {share.what: share for share in session.diagnose(means, epsilon=MUCH).shares[2:]}
        assert list(shares) == [
            "x clamped up to 0", "x clamped down to 10", "y clipped up to -1", "y clipped down to 1"
        ]  # fmt: skip
        xs = [row[1] for row in some_rows() if row[0] is not None and row[1] is not None]
        assert shares["x clamped down to 10"].value == pytest.approx(sum(x > 10 for x in xs) / len(xs), abs=0.01)
    assert all(each.query.at_most is not None for each in asked(means.cap(max_rows=1))[1])


def test_a_cap_on_groups() -> None:
    of = replace(
        table(some_rows()),
        schema=replace(table(some_rows()).schema, protect=pv.person("who", max_groups=1, max_rows_per_group=2)),
    )
    with a_session(of, budget=pv.PureDP(10**8)) as session:
        grouped, alone = (session.diagnose(q, epsilon=MUCH) for q in (question(of), of.agg(x=pv.mean("x"))))
        assert "Rows are compared with their product" in grouped.advice[0]
        assert grouped.advice[1].startswith("The cap leaves out rows. The steward can raise it")
        assert grouped.advice[2].startswith("People are in more than 1 group, and their rows in the others")
        counted = {(row[0], row[3]) for row in some_rows() if row[0] is not None and row[3] != "x"}
        each = Counter(who for who, _ in counted)
        shares = {share.what: share.value for share in grouped.shares}
        lost = sum(n - 1 for n in each.values()) / len(counted)
        assert shares["groups left out by the cap"] == pytest.approx(lost, abs=0.01)
        several = sum(n > 1 for n in each.values()) / len(each)
        assert shares["people in more than 1 group"] == pytest.approx(several, abs=0.01)
        assert all(pv.verify(each).rules for each in grouped.certificates.values())
        assert not any("group" in share.what for share in alone.shares)
        people = session.diagnose(of.group_by("region").agg(n=pv.count_people()), epsilon=MUCH)
        assert [share.what for share in people.shares] == ["groups left out by the cap", "people in more than 1 group"]
        assert alone.advice[0].startswith("The cap leaves out rows. The steward can raise it")


# --- how far one person moves them ----------------------------------------------------------------------------------


def vectors(plan: ReleasePlan, of: Table) -> list[list[tuple[int, ...]]]:
    engine = open_engine({"t": (of.schema, of.source)}, {}, salt=b"salt", name="reference")
    return plan.coordinates([engine.answer(statement) for statement in plan.statements()])


def without_ceiling(query: Query) -> Query:
    """A broken twin: rows over the cap are added up as far as they go, under the sensitivity of the ceiling."""
    aggregates = tuple(
        (name, Sum(replace(what.expression, upper=Fraction(2**40))))
        if isinstance(what, Sum) and isinstance(what.expression, Clip)
        else (name, what)
        for name, what in query.aggregates
    )
    return replace(query, aggregates=aggregates)


def violations(adjacency: str, *, broken: bool = False) -> tuple[int, set[str]]:
    """How often a neighbour moved a measurement further than claimed, and which reached their claim."""
    rows = some_rows()
    base = table(rows, adjacency)
    look, values = asked(question(base))
    assert look is not None
    rich: list[Row] = [(7, 50.0, 9, "north")] * 30
    poor: list[Row] = [(7, -1.0, 0, "south")]
    others = [row for row in rows if row[0] != 7]
    variants = [[*others, *mine] for mine in ([], rich, poor, [*poor * 2, *rich[:1]])]
    found, reached = 0, set()
    for query in (look.query, *(each.query for each in values)):
        claimed = plan(query, epsilon=1)
        runs = plan(without_ceiling(query), epsilon=1) if broken else claimed
        answers = [vectors(runs, table(each, adjacency)) for each in variants]
        pairs = (
            [(0, i) for i in range(1, 4)] if adjacency == "add/remove" else [(i, j) for i in range(4) for j in range(i)]
        )
        for i, j in pairs:
            for part, one, other in zip(claimed.noised, answers[i], answers[j], strict=True):
                change = [x - y for a, b in zip(one, other, strict=True) for x, y in zip(a, b, strict=True)]
                found += not keeps_to(part.move, change)
                if sum(map(abs, change)) == part.move.total:
                    reached.add(part.measurement.quantity)
    return found, reached


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_no_neighbour_moves_more_than_claimed(adjacency: str) -> None:
    found, reached = violations(adjacency)
    assert found == 0
    assert {"bins of rows", "sum of clip(rows, 0, 2)", "sum of clip(rows - 2, 0, 6)"} <= reached, (
        "and no less is claimed"
    )
    assert violations(adjacency, broken=True)[0] > 0


# --- paid, stored, refused ------------------------------------------------------------------------------------------


def test_it_is_one_debit_stored_and_verified(tmp_path: Any) -> None:
    of = table(some_rows())
    with a_session(of, budget=pv.PureDP(3), ledger=tmp_path / "t.ledger") as session:
        found = session.diagnose(question(of), epsilon=1)
        assert session.spent == found.spent == found.guarantee == pv.PureDP(1)
        again = session.diagnose(question(of), epsilon=1)
        assert (again.paid_before, again.shares, session.spent) == (True, found.shares, pv.PureDP(1))
        assert len([entry for entry in session.ledger.history("t") if entry.kind == "reserved"]) == 1
        for certificate in found.certificates.values():
            assert "In its batch of 2 parts: epsilon 1 together" in str(pv.verify(certificate, ledger=session.ledger))
        text, html = str(found), found._repr_html_()
        assert "people with more than 2 rows" in text
        assert text.count("\n") > 8
        assert "<th" in html
        assert "x + y clipped down to 9" in html
        assert len(found.to_json()["shares"]) == len(found.shares)
        same = session.diagnose("SELECT AVG(x) AS x FROM t", epsilon="0.1")
        assert [share.what for share in same.shares][2:] == ["x clamped up to 0", "x clamped down to 10"]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"epsilon": 1, "ceiling": 2}, "above the cap, which is 2"),
        ({"epsilon": 1, "ceiling": 2**41}, "above the cap"),
        ({}, "an epsilon or a rho"),
        ({"epsilon": 1, "rho": 1}, "an epsilon or a rho"),
        ({"epsilon": -1}, "epsilon must be"),
        ({"epsilon": 9}, "budget|left"),
        ({"epsilon": 1, "within": {"x": 1}}, "within"),
    ],
)
def test_refused_before_anything_is_spent(how: dict[str, Any], why: str) -> None:
    of = table(some_rows())
    with a_session(of) as session:
        with pytest.raises(UserError, match=why):
            session.diagnose(question(of), **how)
        with pytest.raises(QueryError, match="nothing to diagnose"):
            session.diagnose(of.agg(n=pv.count_people()), epsilon=1)
        with pytest.raises(QueryError, match="not a query"):
            session.diagnose(of, epsilon=1)  # type: ignore[arg-type]
        assert session.spent == pv.PureDP.ZERO
