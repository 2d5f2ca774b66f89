"""No row makes Spark fail, and what it reads of a row is what DuckDB and the reference read, for which test_poison.py
says that it is right: whatever the row holds.

With `spark.sql.ansi.enabled`, as Spark 4 is set, what does not fit raises an error that tells the value; without it,
it is NULL. Our own sessions fix it to false. What we write does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests import exactly, in_spark
from tests.effort import EFFORT
from tests.spark import SparkServer

from privet.engines.base import ArrowRows, Unsupported
from privet.engines.duckdb.engine import DuckDB
from privet.engines.reference.engine import Reference
from privet.engines.spark import sessions
from privet.engines.spark.dialect import SparkDialect
from privet.engines.spark.engine import Spark
from privet.errors import NoAnswer
from privet.privacy.adjacency import person
from privet.tables import schema as declared
from privet.tables.expressions.fluent import Expr, col
from privet.tables.operators import Scan
from privet.tables.schema import Column, Schema
from privet.tables.statement import AtMostRows, Rows, Statement, Unbounded

NAN, INF = float("nan"), float("inf")
FLOATS = [
    NAN, INF, -INF, -0.0, 1e308, -1.7976931348623157e308, 5e-324, -5e-324, 2.2e-308, 9007199254740993.0, 1e19, 2.0**63,
    -(2.0**63), 0.49999999999999994, -2.5, 2.5, 1e-200, 7.0,
]  # fmt: skip
LONG = [2**63 - 1, -(2**63), 0, -1, 2**53 + 1, 2**62, 7]
NINES = "9" * 38
DECIMALS = {
    (38, 0): [NINES, f"-{NINES}", "7"],
    (38, 37): [f"9.{NINES[1:]}", f"-9.{NINES[1:]}", "1"],
    (18, 2): ["9999999999999999.99", "-0.01", "7.5"],
}
DAYS = [0, 19_000, 2**31 - 1, 1 - 2**31, 106_751_992, -106_751_992, -719_162, 2_932_896, -719_163, 2_932_897]
MOMENTS = [0, 1, -1, 2**63 - 1, 1 - 2**63, -62_135_596_800_000_000, 253_402_300_799_999_999, 1_600_000_000_123_456]
TEXTS = ["", "north", "north ", "North", "x" * 100_000, "\U0001f4a5\u202e", "\x00", "NaN", "1e999", "north' OR 1=1 --"]

NUMBERS: list[Column] = [
    declared.number(-2, 7), declared.number(0, 1000, step=300), declared.number("1e-100", "2e-100"),
    declared.number(-(10**100), 10**100), declared.integer(0, 9), declared.integer(2**61, 2**61 + 2**40),
    declared.keys(7, 3, 2**60), declared.boolean(),
]  # fmt: skip
TIMES = [declared.date("1970-01-01", "2030-01-01"), declared.timestamp("1960-01-01", "2030-01-01")]
WORDS = [declared.keys("north", "south", other="else"), declared.text()]


def cases() -> Iterator[tuple[Column, Any]]:
    """Declared columns, with the values that sources of several types hold."""
    for column in NUMBERS:
        yield column, pa.array([*FLOATS, None], pa.float64())
        yield column, pa.array([*LONG, None], pa.int64())
    for column in (NUMBERS[0], NUMBERS[4]):
        yield column, pa.array([NAN, INF, -INF, -0.0, 3.4e38, 1e-45, None], pa.float32())
        yield column, pa.array([2**31 - 1, -(2**31), None, 7], pa.int32())
        yield column, pa.array([True, False, None])
        for (digits, places), values in DECIMALS.items():
            yield column, pa.array([None, *map(Decimal, values)], pa.decimal128(digits, places))
    for column in TIMES:
        yield column, pa.array([*DAYS, None], pa.int32()).cast(pa.date32())
        for zone in (None, "UTC"):
            yield column, pa.array([*MOMENTS, None], pa.int64()).cast(pa.timestamp("us", zone))
    for column in WORDS:
        yield column, pa.array([*TEXTS, None])


CASES = list(cases())
MANY = max(len(values) for _, values in CASES)
SCHEMA = Schema.declare(
    "t",
    protect=person("id", max_rows=3),
    columns={"row": declared.integer(0, MANY - 1), **{f"v{i}": column for i, (column, _) in enumerate(CASES)}},
)


def table() -> pa.Table:
    """Each case is a column, and each row has one value of every case."""
    padded = {f"v{i}": pa.concat_arrays([v, pa.nulls(MANY - len(v), v.type)]) for i, (_, v) in enumerate(CASES)}
    numbers = pa.array(range(MANY), pa.int64())
    return pa.table({"id": numbers, "row": numbers, **padded})


def tallies(i: int) -> Iterator[Any]:
    column, value = CASES[i][0], col(f"v{i}")
    yield exactly.present(value.node)
    if column in NUMBERS[:6]:
        bounds = exactly.lattice(value.node, Scan(SCHEMA).types())
        yield exactly.total(value.node, bounds.lower, bounds.step, bounds.width)
    if column in TIMES:
        yield exactly.total(value.year().node, 0, 1, 3000)
        yield exactly.holds((value.truncate("week") < value).node)
    if column in WORDS:
        yield exactly.holds(value.starts_with("north").node)


@pytest.fixture(scope="module")
def engine(spark_server: SparkServer) -> Iterator[Spark]:
    with (
        in_spark.at(spark_server),
        Spark({"t": (SCHEMA, in_spark.stored(SCHEMA, table()))}, salt=b"salt") as made,
    ):
        yield made


@pytest.fixture(params=["false", "true"], ids=["null", "ansi"])
def either(request: pytest.FixtureRequest, engine: Spark) -> Iterator[Spark]:
    spark = engine._opened().spark
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield engine
    spark.conf.set("spark.sql.ansi.enabled", "false")


def test_a_poisonous_row_is_read_as_duckdb_reads_it(either: Spark) -> None:
    """Row by row, in one statement for some columns; of a person's rows, too."""
    ansi = sessions.setting(either._opened(), "spark.sql.ansi.enabled") == "true"
    with DuckDB({"t": (SCHEMA, ArrowRows(table()))}, salt=b"salt", threads=1) as other:
        for part in range(3 if ansi or EFFORT > 1 else 1):  # with it nothing fails, so without it nothing is NULL
            asked = [tally for i in range(part, len(CASES), 3) for tally in tallies(i)]
            for bounding in (Unbounded(), AtMostRows(3))[: 2 if part == 0 else 1]:
                statement = Statement(Scan(SCHEMA), (col("row").node,), bounding, (Rows(), *asked))
                assert either.supports(statement) is None
                found, expected = either.answer(statement), other.answer(statement)
                wrong = [
                    (row, str(statement.tallies[i]), a[i], b[i])
                    for row, (a, b) in enumerate(zip(found, expected, strict=True))
                    for i in range(len(a))
                    if a[i] != b[i]
                ]
                assert wrong == []


def test_the_reference_reads_these_rows_too() -> None:
    """All but numbers of more than 126 bits, which it refuses by their types."""
    rows = ArrowRows(table())
    refused = 0
    with (
        DuckDB({"t": (SCHEMA, rows)}, salt=b"salt", threads=1) as other,
        Reference({"t": (SCHEMA, rows)}, salt=b"salt") as reference,
    ):
        for i, (column, values) in enumerate(CASES):
            statement = Statement(Scan(SCHEMA), (col("row").node,), Unbounded(), (Rows(), *tallies(i)))
            if reference.supports(statement) is None:
                assert reference.answer(statement) == other.answer(statement), (column, values.type)
                continue
            refused += 1
            with pytest.raises(Unsupported, match="126 bits"):
                reference.answer(statement)
    assert refused == 4


def test_a_twin_that_casts_as_spark_does_is_caught(engine: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ANSI, one row makes the whole question fail."""
    spark = engine._opened().spark
    number = next(i for i, (column, values) in enumerate(CASES) if column is NUMBERS[4] and values.type == pa.float64())
    value: Expr = col(f"v{number}")
    asked = [Statement(Scan(SCHEMA), (), Unbounded(), (exactly.total(value.node, 0, 1, 9), Rows())) for _ in range(2)]
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        assert engine.answer(asked[0])[0][1] == MANY
        monkeypatch.setattr(SparkDialect, "floored", lambda self, sql, d, near, size: f"floor({sql} * 1e300D)")
        with pytest.raises(NoAnswer):
            engine.answer(asked[1])
    finally:
        engine._opened().spark.conf.set("spark.sql.ansi.enabled", "false")


def test_the_poison_is_poison(engine: Spark) -> None:
    """What Spark says of a value that does not fit: the value."""
    session = engine._opened()
    session.spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        for sql in (
            "CAST(x * 100000 AS INT)",
            "x + 9223372036854775807",
            "CAST(concat('x', x) AS DATE)",
            "1 / (x - 424242)",
        ):
            with pytest.raises(Exception, match=r"424242|OVERFLOW|DIVIDE_BY_ZERO"):
                sessions.run(session, f"SELECT {sql} FROM VALUES (424242L) AS t(x)")
    finally:
        session.spark.conf.set("spark.sql.ansi.enabled", "false")
