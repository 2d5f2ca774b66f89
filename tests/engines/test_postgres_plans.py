"""How Postgres computes a statement: on several processes, and with no more than one pass over the rows of a person."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from tests import in_postgres
from tests.neighbours.crowds import KEYS

from privet.engines.postgres.dialect import PostgresDialect
from privet.engines.postgres.engine import Postgres
from privet.engines.sql.text import Context
from privet.exact import Exact
from privet.privacy.adjacency import each_row, person
from privet.tables import schema as declared
from privet.tables.expressions.fluent import col
from privet.tables.operators import Scan
from privet.tables.schema import Schema
from privet.tables.statement import AtMostRows, Bounding, Code, Present, Squares, Statement, Total, Unbounded

ROWS = pa.table({"id": [i % 7 for i in range(500)], "g": ["a", "b"] * 250, "x": [i / 4 for i in range(500)]})
CODE = Code(col("x").node, Exact(0), Exact(1, 4), 400, True)


@pytest.fixture
def steward(server: str) -> Iterator[Any]:
    with in_postgres.at(server), psycopg.connect(server, autocommit=True, cursor_factory=psycopg.RawCursor) as opened:
        yield opened


def plan(steward: Any, bounding: Bounding, dialect: PostgresDialect | None = None) -> str:
    """How Postgres would compute a sum by group if another process cost nothing."""
    protect = each_row() if isinstance(bounding, Unbounded) else person("id", max_rows=3)
    columns = {"g": declared.keys("a", "b"), "x": declared.number(0, 100, step="1/4")}
    schema = Schema.declare("t", protect=protect, columns=columns)
    statement = Statement(Scan(schema), (col("g").node,), bounding, (Total(CODE), Present(CODE)))
    if isinstance(bounding, Unbounded):
        statement = Statement(Scan(schema), (), bounding, (Total(CODE), Squares(CODE)))
    with Postgres({"t": (schema, in_postgres.stored(schema, ROWS))}, salt=b"salt") as engine:
        if dialect is not None:
            engine._dialect = dialect
        program = engine.compile(statement)
    free = ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size")
    for name in free:
        steward.execute(f"SET {name} = 0".encode())
    found = steward.execute(f"EXPLAIN (COSTS off) {program.sql}", program.context.parameters).fetchall()
    return "\n".join(row[0] for row in found)


class Blocked(PostgresDialect):
    """A fence that Postgres takes for one which might leave out rows."""

    fence = " OFFSET 0"


def test_sums_are_computed_in_parallel(steward: Any) -> None:
    assert "Partial Aggregate" in plan(steward, Unbounded())
    assert "Partial Aggregate" not in plan(steward, Unbounded(), Blocked())


def test_the_number_of_codes_follows_from_their_sum(steward: Any) -> None:
    """As exactly as it was counted, up to the greatest number of rows: avg is a sum over a number, as decimals."""
    chance = Random(4)
    many = [1, 2, 3, 7, 10**6, 2**40 - 1, 2**40, *(chance.randrange(1, 2**40) for _ in range(200))]
    cases = [
        (n, total) for n in many for total in (n, n + 1, n * 2**53, n * (2**53 + 1), n * chance.randrange(1, 2**53) + 1)
    ]
    for form, exact in ((PostgresDialect().how_many("x"), True), ("round(sum(x) / round(avg(x), 3))", False)):
        found = str(form).replace("sum(x)", "t").replace("avg(x)", "(t / n)")
        values = ", ".join(f"({n}::numeric, {total}::numeric)" for n, total in cases)
        wrong = steward.execute(f"SELECT n, t FROM (VALUES {values}) AS v (n, t) WHERE {found} <> n").fetchall()
        assert (wrong == []) is exact


def test_a_number_of_codes_that_none_or_many_rows_have(steward: Any) -> None:
    many = PostgresDialect().how_many("x")
    for series, n in (("1, 0", None), ("1, 1", 1), ("1, 70000", 70_000)):
        for code in ("1::bigint", f"{2**53 + 1}::bigint", "i + 0::bigint", "nullif(i, 1)"):
            rows = f"(SELECT {code} AS x FROM generate_series({series}) AS s (i))"
            ((found, true),) = steward.execute(f"SELECT {many}, nullif(count(x), 0) FROM {rows} AS t").fetchall()
            assert found == true == (n if "nullif" not in code else (n or 1) - 1 or None)


def test_the_rows_of_a_person_are_sorted_and_numbered_once(steward: Any) -> None:
    found = plan(steward, AtMostRows(3))
    assert found.count("WindowAgg") == found.count("Sort Key") == 1


def test_a_key_is_found_by_comparing_as_it_is_in_a_list(steward: Any) -> None:
    keys = tuple(dict.fromkeys(str(each) for each in (*KEYS, "é", "e", "E", "z", "Z", "ß", "", "'", "$1")))
    texts = [*keys, "zz", "e\u0301", "xx"]
    for values in (keys, keys[:1], keys[3:5]):
        context = Context(PostgresDialect())
        few, many = (context.dialect.place("k", some, context) for some in (values, keys * 9))
        assert "jsonb" in many
        assert "jsonb" not in few
        assert few.count("k") == few.count('(k COLLATE "C")')  # the order of bytes, whatever the database's own is
        rows = context.bind("\x1f".join(texts))
        source = f"(SELECT unnest(string_to_array({rows}, chr(31))) AS k UNION ALL SELECT NULL) AS t"
        found = steward.execute(f"SELECT k, {few}, {many} FROM {source}", context.parameters).fetchall()
        assert len(found) == len(texts) + 1
        for k, place, listed in found:
            assert place == (values.index(k) if k in values else None), k
            assert (listed is None) == (k not in keys), k
