"""No row makes an engine fail, and what a row holds changes nothing but that row's own part of an answer.

Databases raise errors where others give NULL or an infinity: the last tests show some, so that what is tested is not
nothing.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import duckdb
import psycopg
import pytest
from tests.effort import some
from tests.engines.poison import POISONS, in_a_postgres
from tests.exactly import holds, present, squares, summed, total
from tests.movers import reachable

from privet.engines.postgres.dialect import PostgresDialect
from privet.engines.registry import ENGINES
from privet.errors import NoAnswer, QueryError, SourceError
from privet.privacy.adjacency import person
from privet.tables import schema as declared
from privet.tables.expressions.fluent import bins, col, when
from privet.tables.expressions.nodes import Node
from privet.tables.operators import OfPerson, PerPerson, Scan, Where
from privet.tables.schema import Column, Schema
from privet.tables.statement import AtMostRows, Rows, Squares, Statement, Total, Unbounded
from privet.tables.types import NumberType

CASES = [  # columns take turns in the types they are read from, so that every type is read by several of them
    pytest.param(engine, column, source, id=f"{engine}-{name}-{source}")
    for engine, poison in POISONS.items()
    for place, (name, column, sources) in enumerate(poison.columns)
    for source in some(sources, every=poison.every, start=place)
]


def computable(node: Node, of: Scan) -> bool:
    """Whether the numbers of an expression can be computed with; a floor of what is far below 1 needs too many bits."""
    try:
        node.type(of.types())
    except QueryError:
        return False
    return True


def statements(schema: Schema) -> list[Statement]:
    """One for every kind of node that the column can stand in."""
    v, scan = col("v"), Scan(schema)
    kind = dict(schema.columns)["v"].type
    tallies: list[object] = [Rows(), present(v.node), holds(v.is_missing().node), holds((v == v).node)]
    keys: list[tuple[object, ...]] = []
    if isinstance(kind, NumberType):
        exprs = [
            v + v,
            v - v,
            v * v,
            v / v,
            1 / v,
            v / (v - 1),
            abs(v),
            v.floor(),
            v.ceil(),
            -v,
            v.clip(kind.lower, kind.upper),
        ]
        exprs += [when(v > 0, v).otherwise(), when(v > 1, 1 / v).otherwise(v)]
        exprs = [x for x in exprs if computable(x.node, scan)]
        tallies += [tally for x in (v, *exprs) for tally in summed(x.node, scan.types())]
        b = kind.bounds()  # the lattice that the planner takes, read off the column at once where that is possible
        tallies += [kind_(v.node, b.lower, b.step, b.width) for kind_ in (total, squares)]
        tallies += [holds((x > 0).node) for x in exprs] + [present(x.node) for x in exprs]
        tallies += [
            holds(v.is_in([1, 2]).node),
            holds((~((v > 1) & (v < 2) | (v != 3))).node),
            present(bins(v, [0, 1, 2]).node),
        ]
        keys += [(bins(v, [-1, 0, 4]).node,), ((v > 1).node,)] + (
            [(v.clip(kind.lower, kind.lower + 3).node,)] if kind.integer else []
        )
    elif str(kind).startswith(("a date", "a timestamp")):
        parts = ["year", "quarter", "month", "day", "weekday"] + (["hour"] if kind.timed else [])  # type: ignore[union-attr]
        tallies += [total(v.part(p).node, 0, 1, 9999) for p in parts]  # type: ignore[arg-type]
        tallies += [holds((v.truncate(u) == v).node) for u in ("year", "quarter", "month", "week", "day")]
        keys += [(v.truncate("year").node,), (v.truncate("quarter").node,), (v.truncate("week").node,)]
    elif str(kind) == "a boolean":
        tallies += [holds(v.node), holds((~v).node), total(v.node, 0, 1, 1)]
        keys.append((v.node,))
    elif str(kind).startswith("one of"):
        keys.append((v.node,))
    if str(kind) == "a text" or getattr(kind, "textual", False):
        tallies += [
            holds(v.starts_with("no").node),
            holds(v.is_in(["north", ""]).node),
            holds(v.is_in([str(i) for i in range(40)]).node),
        ]
    row, bounding = col("row").node, AtMostRows(2)
    made = [Statement(scan, (row,), Unbounded(), tuple(tallies))]  # type: ignore[arg-type]
    made += [Statement(scan, (row, *key), Unbounded(), tuple(tallies)[:9]) for key in keys]  # type: ignore[arg-type]
    made.append(Statement(Where(scan, (v == v).node), (row,), bounding, tuple(tallies)[:9]))  # type: ignore[arg-type]
    if isinstance(kind, NumberType):
        functions = [OfPerson(f, v.node) for f in ("count", "sum", "mean", "min", "max")]
        of = PerPerson(scan, (*((f.function, f) for f in functions), ("row", OfPerson("min", row))))
        sums = tuple(summed(col(f.function).node, of.types())[0] for f in functions)
        made.append(Statement(of, (row,), Unbounded(), sums))
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "column", "source"), CASES)
def test_a_poisonous_row_changes_only_itself(
    engine: str, column: Column, source: str, request: pytest.FixtureRequest
) -> None:
    poison = POISONS[engine]
    values = poison.values[source]
    schema = Schema.declare(
        "t", protect=person("id", max_rows=3), columns={"v": column, "row": declared.integer(0, len(values))}
    )
    with reachable(engine, request):
        if source in poison.unreadable:  # what can't be read at all is said before anybody asks
            with pytest.raises(SourceError):
                poison.table(schema, source, values)
            return
        clean, poisoned = poison.table(schema, source, []), poison.table(schema, source, values)
        with clean, poisoned:
            for statement in some(statements(schema), every=poison.asked, start=len(source)):
                reason = poisoned.supports(statement)
                assert reason == clean.supports(statement)
                if reason is not None:
                    assert engine == "reference"
                    continue
                found = poisoned.answer(statement)
                first = len(found) // (len(values) + 1)
                assert found[:first] == clean.answer(statement)[:first]
                for tally, counted in zip(statement.tallies, zip(*found, strict=True), strict=True):
                    width = tally.value.width if isinstance(tally, Total | Squares) else 1
                    assert all(0 <= value <= (width**2 if isinstance(tally, Squares) else width) for value in counted)


def test_every_engine_is_poisoned() -> None:
    assert set(POISONS) == set(ENGINES)
    assert all(sum(map(len, poison.values.values())) >= 30 for poison in POISONS.values())


def test_a_twin_that_divides_what_is_too_near_to_0_is_caught(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A quotient that is computed for every row fails for the sake of one."""
    columns = {"v": declared.number(0, 3000, step=300), "row": declared.integer(0, 1)}
    schema = Schema.declare("t", protect=person("id", max_rows=3), columns=columns)
    asked = Statement(Scan(schema), (), Unbounded(), (total(col("v").node, 0, 300, 10),))

    def twin(self: Any, sql: str, d: str, near_zero: Any, size: Any) -> str:
        return f"CAST(floor({sql}) AS bigint)"

    with reachable("postgres", request):
        for floored, fails in ((PostgresDialect.floored, False), (twin, True)):
            monkeypatch.setattr(PostgresDialect, "floored", floored)
            with in_a_postgres(schema, "double precision", ["700"]) as harmless:
                assert harmless.answer(asked) == [[0 + 2]]
            failing = pytest.raises(NoAnswer) if fails else nullcontext()
            with in_a_postgres(schema, "double precision", ["5e-324"]) as engine, failing:
                assert engine.answer(asked) == [[0]]


def test_the_poison_is_poison_for_duckdb() -> None:
    """These make DuckDB itself fail, or give what is no number: what is tested above is not nothing."""
    connection = duckdb.connect()
    for sql in ("CAST(1e19 AS BIGINT)", "9223372036854775807 + 1", "CAST('x' AS DOUBLE)"):
        with pytest.raises(duckdb.Error):
            connection.execute(f"SELECT {sql}")
    assert connection.execute("SELECT greatest(0, least(NULL, 10))").fetchall() == [(10,)]


def test_the_poison_is_poison_for_postgres(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        for sql in (
            "1e308::float8 * 10::float8", "5e-324::float8 * 0.5::float8", "'inf'::float8::bigint",
            "'nan'::numeric::bigint",
            "1e400::numeric::float8", "1e-400::numeric::float8", "9223372036854775807 + 1",
            "'5874897-12-31'::date::timestamp",
            "true::bigint",
        ):  # fmt: skip
            with pytest.raises(psycopg.Error):
                connection.execute(f"SELECT {sql}".encode())
        found = connection.execute(
            "SELECT 1234567890123456789::float8::numeric, 'NaN'::float8 > 1e308, greatest(NULL, 0)"
        )
        assert [tuple(map(str, row)) for row in found.fetchall()] == [("1234567890123460000", "True", "0")]
