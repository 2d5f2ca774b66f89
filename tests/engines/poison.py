"""Poisonous values for each engine, in its own types, and tables of them there: a harmless row and the poison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests import in_postgres
from tests.movers import opened

from privet.engines.base import ArrowRows
from privet.engines.duckdb.engine import DuckDB
from privet.engines.postgres.engine import Postgres
from privet.sources import readings
from privet.tables import schema as declared
from privet.tables.relation import Table
from privet.tables.schema import Column, Schema

from .conftest import Selected

Declared = Sequence[tuple[str, Column, Sequence[str]]]


@dataclass(frozen=True)
class Poison:
    """What is poison for one engine."""

    values: Mapping[str, Sequence[Any]]
    """By a type of the engine."""
    columns: Declared
    """Declared columns, and the types that each is read from."""
    every: int
    """How many of these are left out without --all: all but every n-th."""
    table: Callable[[Schema, str, Sequence[Any]], Any]
    """An engine over a table of a harmless row, and one for each of these values: `row` tells them apart, and each is a
    person of its own."""
    unreadable: frozenset[str] = frozenset()
    """Types that are refused when a table is declared."""
    asked: int = 1
    """Of the statements too, every n-th is asked without --all: by turns."""


# --- DuckDB ---------------------------------------------------------------------------------------

# SQL of poisonous values, by type of column.
_DUCKDB_POISON: dict[str, list[str]] = {
    "DOUBLE": [
        "NULL",
        "'nan'",
        "'-nan'",
        "'inf'",
        "'-inf'",
        "-0.0",
        "1e308",
        "-1e308",
        "5e-324",
        "2.2e-308",
        "9007199254740993",
        "1e19",
        "0.49999999999999994",
    ],
    "FLOAT": ["NULL", "'nan'", "'inf'", "'-inf'", "-0.0", "3.4e38", "1e-45"],
    "TINYINT": ["NULL", "-128", "127"],
    "BIGINT": ["NULL", "-9223372036854775808", "9223372036854775807", "0", "-1", "9007199254740993"],
    "UBIGINT": ["NULL", "18446744073709551615", "0"],
    "HUGEINT": ["NULL", "'-170141183460469231731687303715884105728'", "170141183460469231731687303715884105727"],
    "UHUGEINT": ["NULL", "'340282366920938463463374607431768211455'", "0"],
    "DECIMAL(38,0)": ["NULL", "'99999999999999999999999999999999999999'", "'-99999999999999999999999999999999999999'"],
    "DECIMAL(38,37)": [
        "NULL",
        "'9.9999999999999999999999999999999999999'",
        "'-9.9999999999999999999999999999999999999'",
    ],
    "DECIMAL(18,2)": ["NULL", "'9999999999999999.99'", "'-0.01'"],
    "BOOLEAN": ["NULL", "true", "false"],
    "VARCHAR": [
        "NULL",
        "''",
        "repeat('x', 1000000)",
        "'💥\u202e\u0301'",
        "chr(1)",
        "'NaN'",
        "'1e999'",
        "'-1e999'",
        "'infinity'",
        "'5'",
        "'true'",
        "'9999-12-31'",
        "'north'' OR 1=1 --'",
        "'294247-01-10 04:00:54.775806'",
    ],
    "ENUM('north', 'x')": ["NULL", "'x'"],
    "UUID": ["NULL", "'00000000-0000-0000-0000-000000000000'"],
    "DATE": [
        "NULL",
        "'infinity'",
        "'-infinity'",
        "'0001-01-01'",
        "'9999-12-31'",
        "'5881580-07-10'",
        "'5877642-06-25 (BC)'",
        "'1970-01-01'",
    ],
    "TIMESTAMP": [
        "NULL",
        "'infinity'",
        "'-infinity'",
        "'0001-01-01'",
        "'9999-12-31 23:59:59.999999'",
        "'294247-01-10 04:00:54.775806'",
        "'290309-12-22 (BC) 00:00:00'",
    ],
    "TIMESTAMP_S": ["NULL", "'infinity'", "'-infinity'", "'290000-01-01'"],
    "TIMESTAMP_MS": ["NULL", "'infinity'", "'290000-01-01'"],
    "TIMESTAMP_NS": ["NULL", "'infinity'", "'2262-04-11 23:47:16.854775806'"],
    "TIMESTAMP WITH TIME ZONE": [
        "NULL",
        "'infinity'",
        "'-infinity'",
        "'0001-01-01 00:00:00+14'",
        "'294247-01-10 04:00:54.775806+00'",
        "'290309-12-22 (BC) 00:00:00+00'",
    ],
}
_DUCKDB_NUMERIC = [
    "DOUBLE",
    "FLOAT",
    "TINYINT",
    "BIGINT",
    "UBIGINT",
    "HUGEINT",
    "UHUGEINT",
    "DECIMAL(38,0)",
    "DECIMAL(38,37)",
    "DECIMAL(18,2)",
    "BOOLEAN",
    "VARCHAR",
]
_DUCKDB_TIMES = [
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_S",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP WITH TIME ZONE",
    "VARCHAR",
]
DUCKDB_GOOD = {"VARCHAR": "'5'", "BOOLEAN": "true", "UUID": "'00000000-0000-0000-0000-000000000001'"}

_DUCKDB_DECLARED: list[tuple[str, Column, list[str]]] = [
    ("number", declared.number(-2, 7), _DUCKDB_NUMERIC),
    ("tiny", declared.number("1e-100", "2e-100"), ["DOUBLE", "DECIMAL(18,2)"]),
    ("wide", declared.number(-(10**100), 10**100), ["DOUBLE", "HUGEINT"]),
    ("required", declared.number(1, 2, required=True), _DUCKDB_NUMERIC),
    ("integer", declared.integer(-2, 7), _DUCKDB_NUMERIC),
    ("integers", declared.integer(2**62 - 2**40, 2**62), _DUCKDB_NUMERIC),
    ("coarse", declared.integer(-(2**51), 2**51), _DUCKDB_NUMERIC),
    ("tenths", declared.number(-1, 8, step="0.1"), _DUCKDB_NUMERIC),
    ("off the step", declared.number("0.05", 5, step="0.3"), _DUCKDB_NUMERIC),
    ("boolean", declared.boolean(), ["BOOLEAN", "TINYINT", "DOUBLE", "VARCHAR", "HUGEINT"]),
    ("keys", declared.keys("north", "south"), ["VARCHAR", "ENUM('north', 'x')", "UUID", "BIGINT", "DOUBLE"]),
    ("other", declared.keys("north", other="else"), ["VARCHAR", "ENUM('north', 'x')", "DATE"]),
    ("numbers", declared.keys(5, 2**62, other=6), _DUCKDB_NUMERIC),
    ("range", declared.keys(4, 5, 6), _DUCKDB_NUMERIC),
    ("text", declared.text(), ["VARCHAR", "UUID", "ENUM('north', 'x')", "BIGINT"]),
    ("date", declared.date("0002-01-01", "0012-12-31"), _DUCKDB_TIMES),
    ("timestamp", declared.timestamp("8999-01-01", "9000-12-31"), _DUCKDB_TIMES),
]


def _in_duckdb(schema: Schema, source: str, values: Sequence[str]) -> DuckDB:
    first = (
        "'2020-05-05'"
        if source == "TIMESTAMP_NS"
        else {"ENUM": "'north'", "DATE": "'0020-05-05'", "TIME": "'8999-05-05'"}.get(
            source[:4], DUCKDB_GOOD.get(source, "5")
        )
    )
    rows = [f"SELECT ({value})::{source} AS v, {i} AS row, {i} AS id" for i, value in enumerate([first, *values])]
    return DuckDB({"t": (schema, Selected(" UNION ALL ".join(rows)))}, salt=b"salt", threads=1)


# --- Postgres -------------------------------------------------------------------------------------

_POSTGRES_FLOATS = [
    "NULL", "'nan'", "'inf'", "'-inf'", "'-0'", "1e308", "-1.7976931348623157e308", "5e-324", "-5e-324", "2.2e-308",
    "9007199254740993", "1e19", "0.49999999999999994", "-2.5", "9223372036854775807", "1e-200",
]  # fmt: skip
_BIG = "9" * 38
_POSTGRES_POISON: dict[str, list[str]] = {
    "double precision": _POSTGRES_FLOATS,
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
_POSTGRES_NUMBERS = [
    kind for kind in _POSTGRES_POISON if kind.startswith(("double", "real", "smallint", "integer", "bigint", "numeric"))
]
_POSTGRES_NUMBERS.append("amount")
_POSTGRES_TIMES = ["date", "timestamp", "timestamp with time zone"]
_POSTGRES_TEXTS = ["text", "character(9)", "mood"]
_POSTGRES_GOOD = {"boolean": "true", "uuid": "'00000000-0000-0000-0000-000000000001'"}

_POSTGRES_DECLARED: list[tuple[str, Column, list[str]]] = [
    ("number", declared.number(-2, 7), _POSTGRES_NUMBERS),
    ("tiny", declared.number("1e-100", "2e-100"), ["double precision", "numeric"]),
    ("huge", declared.number(-(10**100), 10**100), ["double precision", "numeric"]),
    ("far from 0", declared.number(2**62 + 5, 2**62 + 5000), ["double precision", "bigint"]),
    ("required", declared.number(1, 2, required=True), _POSTGRES_NUMBERS),
    ("integer", declared.integer(-2, 7), _POSTGRES_NUMBERS),
    ("integers", declared.integer(2**62 - 2**40, 2**62), _POSTGRES_NUMBERS),
    ("tenths", declared.number(-1, 8, step="0.1"), _POSTGRES_NUMBERS),
    ("off the step", declared.number("0.05", 5, step="0.3"), _POSTGRES_NUMBERS),
    ("coarse step", declared.number(0, 3 * 10**100, step=3 * 10**99), ["double precision", "numeric"]),
    ("boolean", declared.boolean(), ["boolean"]),
    ("keys", declared.keys("north", "south"), _POSTGRES_TEXTS),
    ("other", declared.keys("north", other="else"), _POSTGRES_TEXTS),
    ("numbers", declared.keys(5, 2**62, other=6), ["bigint", "smallint"]),
    ("text", declared.text(), [*_POSTGRES_TEXTS, "uuid"]),
    ("date", declared.date("0002-01-01", "0012-12-31"), _POSTGRES_TIMES),
    ("timestamp", declared.timestamp("8999-01-01", "9000-12-31"), _POSTGRES_TIMES),
]


def in_a_postgres(schema: Schema, source: str, values: Sequence[str]) -> Postgres:
    """The table in Postgres, where `in_postgres.at` says."""
    name = "poisoned" if values else "clean"
    first = {"mood": "'north'", "date": "'0009-05-05'", "time": "'8999-05-05'"}.get(
        source[:4], _POSTGRES_GOOD.get(source, "5")
    )
    rows = [f"(({value})::{source}, {i}, {i})" for i, value in enumerate([first, *values])]
    in_postgres.execute(
        f"DROP TABLE IF EXISTS {name}",
        "DO $$ BEGIN CREATE TYPE mood AS ENUM ('north', 'x'); EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        "DO $$ BEGIN CREATE DOMAIN amount AS numeric(9,2); EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        f"CREATE TABLE {name} (v {source}, row integer, id integer)",
        f"INSERT INTO {name} VALUES {', '.join(rows)}",
    )
    readings.check(schema, {**in_postgres.opened(schema, name).types()}, name)
    return Postgres({"t": (schema, in_postgres.opened(schema, name))}, salt=b"salt")


# --- any engine: rows in Arrow, moved to it -------------------------------------------------------

_KINDS: dict[str, tuple[Any, Any, list[Any]]] = {
    "double": (pa.float64(), 5.0, [None, float("nan"), float("inf"), -float("inf"), -0.0, 1e308, -1e308, 5e-324,
                                   2.2e-308, 9007199254740993.0, 1e19, 0.49999999999999994]),
    "float": (pa.float32(), 5.0, [None, float("nan"), float("inf"), -float("inf"), -0.0, 3.4e38, 1e-45]),
    "byte": (pa.int8(), 5, [None, -128, 127]),
    "bigint": (pa.int64(), 5, [None, -(2**63), 2**63 - 1, 0, -1, 2**53 + 1]),
    "decimal(38,0)": (pa.decimal128(38, 0), Decimal(5), [None, Decimal(10**38 - 1), Decimal(1 - 10**38)]),
    "decimal(38,37)": (pa.decimal128(38, 37), Decimal(5), [None, Decimal("9." + "9" * 37), Decimal("-9." + "9" * 37)]),
    "decimal(18,2)": (pa.decimal128(18, 2), Decimal(5), [None, Decimal("9999999999999999.99"), Decimal("-0.01")]),
    "boolean": (pa.bool_(), True, [None, True, False]),
    "string": (pa.string(), "5", [None, "", "x" * 1_000_000, "\U0001f4a5\u202e\u0301", "\x01", "NaN", "1e999", "north",
                                  "north' OR 1=1 --", "true", "9999-12-31"]),
    "date": (pa.date32(), date(9, 5, 5), [None, date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10)]),
    "timestamp": (pa.timestamp("us"), datetime(8999, 5, 5), [None, datetime(1, 1, 1), datetime(9999, 12, 31, 23)]),
    "timestamp in UTC": (pa.timestamp("us", "UTC"), datetime(8999, 5, 5), [None, datetime(1, 1, 1)]),
}  # fmt: skip
_ANY_NUMBERS = ["double", "float", "byte", "bigint", "decimal(38,0)", "decimal(38,37)", "decimal(18,2)"]
_ANY_TIMES = ["date", "timestamp", "timestamp in UTC"]
_ANY: Declared = [
    ("number", declared.number(-2, 7), _ANY_NUMBERS),
    ("tiny", declared.number("1e-100", "2e-100"), ["double", "decimal(18,2)"]),
    ("wide", declared.number(-(10**100), 10**100), ["double"]),
    ("integers", declared.integer(2**62 - 2**40, 2**62), _ANY_NUMBERS),
    ("tenths", declared.number(-1, 8, step="0.1"), _ANY_NUMBERS),
    ("boolean", declared.boolean(), ["boolean"]),
    ("keys", declared.keys("north", "south"), ["string"]),
    ("numbers", declared.keys(5, 2**62, other=6), ["bigint", "byte"]),
    ("text", declared.text(), ["string"]),
    ("date", declared.date("0002-01-01", "0012-12-31"), _ANY_TIMES),
    ("timestamp", declared.timestamp("8999-01-01", "9000-12-31"), _ANY_TIMES),
]


def _moved(engine: str) -> Callable[[Schema, str, Sequence[Any]], Any]:
    def table(schema: Schema, source: str, values: Sequence[Any]) -> Any:
        kind, first, _ = _KINDS[source]
        number = pa.array(range(len(values) + 1), pa.int64())
        rows = pa.table({"v": pa.array([first, *values], kind, from_pandas=False), "row": number, "id": number})
        return opened(engine, Table(schema, ArrowRows(rows)))

    return table


def anything(engine: str, every: int, asked: int = 1) -> Poison:
    """For an engine that has no types of its own here."""
    return Poison({name: values for name, (_, _, values) in _KINDS.items()}, _ANY, every, _moved(engine), asked=asked)


POISONS: Mapping[str, Poison] = {
    "duckdb": Poison(_DUCKDB_POISON, _DUCKDB_DECLARED, 3, _in_duckdb, asked=2),
    "postgres": Poison(_POSTGRES_POISON, _POSTGRES_DECLARED, 4, in_a_postgres, frozenset({"uuid"}), asked=2),
    "reference": anything("reference", 6),
    "spark": anything("spark", 7, asked=4),
}
