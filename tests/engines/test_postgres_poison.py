"""No row makes Postgres fail, and what a row holds changes nothing but that row's own part of an answer.

The statements are those of `test_poison`. Postgres raises errors where DuckDB gives NULL or an infinity: the last test
shows some, so that what is tested is not nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import psycopg
import pytest
from tests import exactly, in_postgres
from tests.effort import some

from privet.engines.postgres.dialect import PostgresDialect
from privet.engines.postgres.engine import Postgres
from privet.errors import NoAnswer, SourceError
from privet.privacy.adjacency import person
from privet.sources import readings
from privet.tables import schema as declared
from privet.tables.expressions.fluent import col
from privet.tables.operators import Scan
from privet.tables.schema import Column, Schema
from privet.tables.statement import Squares, Statement, Total, Unbounded

from .test_poison import statements

_FLOATS = [
    "NULL", "'nan'", "'inf'", "'-inf'", "'-0'", "1e308", "-1.7976931348623157e308", "5e-324", "-5e-324", "2.2e-308",
    "9007199254740993", "1e19", "0.49999999999999994", "-2.5", "9223372036854775807", "1e-200",
]  # fmt: skip
_BIG = "9" * 38
POISON: dict[str, list[str]] = {
    "double precision": _FLOATS,
    "real": ["NULL", "'nan'", "'inf'", "'-inf'", "'-0'", "3.4e38", "1e-45"],
    "smallint": ["NULL", "-32768", "32767"],
    "integer": ["NULL", "-2147483648", "2147483647"],
    "bigint": ["NULL", "-9223372036854775808", "9223372036854775807", "0", "-1", "9007199254740993"],
    "numeric": ["NULL", "'nan'", "'inf'", "'-inf'", "1e400", "-1e400", "1e-400", "'0.1'", f"{_BIG}.5", "1e307", "2.5"],
    "numeric(38,0)": ["NULL", "'nan'", _BIG, f"-{_BIG}"],
    "numeric(38,37)": ["NULL", "'nan'", f"{_BIG[0]}.{_BIG[1:]}", f"-{_BIG[0]}.{_BIG[1:]}"],
    "numeric(18,2)": ["NULL", "'nan'", "9999999999999999.99", "-0.01"],
    "amount": ["NULL", "'nan'", "9999999.99", "-0.01"],
    "boolean": ["NULL", "true", "false"],
    "text": ["NULL", "''", "repeat('x', 1000000)", "'\U0001f4a5\u202e'", "chr(1)", "'NaN'", "'north'' OR 1=1 --'"],
    "character(9)": ["NULL", "''", "'north   '", "'x'"],
    "mood": ["NULL", "'x'"],
    "uuid": ["NULL", "'00000000-0000-0000-0000-000000000000'"],
    "date": ["NULL", "'infinity'", "'-infinity'", "'0001-01-01'", "'5874897-12-31'", "'4713-01-01 BC'", "'9999-12-31'"],
    "timestamp": [
        "NULL", "'infinity'", "'-infinity'", "'294276-12-31 23:59:59.999999'", "'4713-01-01 BC'", "'0001-01-01'",
    ],
    "timestamp with time zone": [
        "NULL", "'infinity'", "'-infinity'", "'294276-12-31 23:59:59+00'", "'4713-01-02 BC'",
        "'0001-01-01 00:00:00+14'",
    ],
}  # fmt: skip
NUMBERS = [kind for kind in POISON if kind.startswith(("double", "real", "smallint", "integer", "bigint", "numeric"))]
NUMBERS.append("amount")
TIMES = ["date", "timestamp", "timestamp with time zone"]
TEXTS = ["text", "character(9)", "mood"]
GOOD = {"boolean": "true", "uuid": "'00000000-0000-0000-0000-000000000001'"}

DECLARED: list[tuple[str, Column, list[str]]] = [
    ("number", declared.number(-2, 7), NUMBERS),
    ("tiny", declared.number("1e-100", "2e-100"), ["double precision", "numeric"]),
    ("huge", declared.number(-(10**100), 10**100), ["double precision", "numeric"]),
    ("far from 0", declared.number(2**62 + 5, 2**62 + 5000), ["double precision", "bigint"]),
    ("required", declared.number(1, 2, required=True), NUMBERS),
    ("integer", declared.integer(-2, 7), NUMBERS),
    ("integers", declared.integer(2**62 - 2**40, 2**62), NUMBERS),
    ("tenths", declared.number(-1, 8, step="0.1"), NUMBERS),
    ("off the step", declared.number("0.05", 5, step="0.3"), NUMBERS),
    ("coarse step", declared.number(0, 3 * 10**100, step=3 * 10**99), ["double precision", "numeric"]),
    ("boolean", declared.boolean(), ["boolean"]),
    ("keys", declared.keys("north", "south"), TEXTS),
    ("other", declared.keys("north", other="else"), TEXTS),
    ("numbers", declared.keys(5, 2**62, other=6), ["bigint", "smallint"]),
    ("text", declared.text(), [*TEXTS, "uuid"]),
    ("date", declared.date("0002-01-01", "0012-12-31"), TIMES),
    ("timestamp", declared.timestamp("8999-01-01", "9000-12-31"), TIMES),
]
CASES = [
    (name, column, source)
    for place, (name, column, sources) in enumerate(DECLARED)
    for source in some(sources, every=4, start=place)
]


@pytest.fixture(scope="module", autouse=True)
def home(server: str) -> Iterator[None]:
    with in_postgres.at(server):
        in_postgres.execute(
            "DROP TYPE IF EXISTS mood CASCADE", "CREATE TYPE mood AS ENUM ('north', 'x')",
            "DROP DOMAIN IF EXISTS amount CASCADE", "CREATE DOMAIN amount AS numeric(9,2)",
        )  # fmt: skip
        yield


def made(schema: Schema, name: str, source: str, values: list[str]) -> Postgres:
    """A harmless row, and one for each of these values; `row` tells them apart, and each is a person of its own."""
    first = {"mood": "'north'", "date": "'0009-05-05'", "time": "'8999-05-05'"}.get(source[:4], GOOD.get(source, "5"))
    rows = [f"(({value})::{source}, {i}, {i})" for i, value in enumerate([first, *values])]
    in_postgres.execute(
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE TABLE {name} (v {source}, row integer, id integer)",
        f"INSERT INTO {name} VALUES {', '.join(rows)}",
    )
    readings.check(schema, {**in_postgres.opened(schema, name).types()}, name)
    return Postgres({"t": (schema, in_postgres.opened(schema, name))}, salt=b"salt")


@pytest.mark.slow
@pytest.mark.parametrize(("column", "source"), [case[1:] for case in CASES], ids=[f"{n}-{s}" for n, _, s in CASES])
def test_a_poisonous_row_changes_only_itself(column: Column, source: str) -> None:
    values = POISON[source]
    schema = Schema.declare(
        "t", protect=person("id", max_rows=3), columns={"v": column, "row": declared.integer(0, len(values))}
    )
    try:
        clean, poisoned = made(schema, "clean", source, []), made(schema, "poisoned", source, values)
    except SourceError:  # what can't be read at all is said before anybody asks
        assert "uuid" in source
        return
    with clean, poisoned:
        for statement in statements(schema):
            reason = poisoned.supports(statement)
            assert reason == clean.supports(statement)
            assert reason is None
            found = poisoned.answer(statement)
            first = len(found) // (len(values) + 1)
            assert found[:first] == clean.answer(statement)[:first]
            for tally, counted in zip(statement.tallies, zip(*found, strict=True), strict=True):
                width = tally.value.width if isinstance(tally, Total | Squares) else 1
                assert all(0 <= value <= (width**2 if isinstance(tally, Squares) else width) for value in counted)


def test_a_twin_that_divides_what_is_too_near_to_0_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quotient that is computed for every row fails for the sake of one."""
    schema = Schema.declare("t", protect=person("id", max_rows=3), columns={"v": declared.number(0, 3000, step=300)})
    asked = Statement(Scan(schema), (), Unbounded(), (exactly.total(col("v").node, 0, 300, 10),))

    def twin(self: Any, sql: str, d: str, near_zero: Any, size: Any) -> str:
        return f"CAST(floor({sql}) AS bigint)"

    for floored, fails in ((PostgresDialect.floored, False), (twin, True)):
        monkeypatch.setattr(PostgresDialect, "floored", floored)
        with made(schema, "poisoned", "double precision", ["700"]) as harmless:
            assert harmless.answer(asked) == [[0 + 2]]
        failing = pytest.raises(NoAnswer) if fails else nullcontext()
        with made(schema, "poisoned", "double precision", ["5e-324"]) as engine, failing:
            assert engine.answer(asked) == [[0]]


def test_the_poison_is_poison(server: str) -> None:
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
