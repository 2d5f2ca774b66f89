"""The contract of engines, for every one that is registered: the same integers, whatever a row holds.

`EXPECTED` values are worked out by hand. Where bounding chooses, an engine has its own hash: what is the same for all
is how many rows survive, and that they depend on that person's rows and the salt alone.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import exactly, in_postgres, in_spark, movers
from tests.effort import some
from tests.movers import opened

import privet as pv
from privet.engines.base import FAILED, ArrowRows, OpensEngine, Unsupported
from privet.engines.duckdb.engine import DuckDB
from privet.engines.postgres.engine import Postgres
from privet.engines.reference.engine import Reference
from privet.engines.registry import ENGINES, engine_class
from privet.engines.spark.engine import Spark
from privet.errors import InternalError, NoAnswer, QueryError, UserError
from privet.planner import plan
from privet.privacy.adjacency import each_row, person
from privet.system.stopping import Stoppable
from privet.tables import schema as declared
from privet.tables.expressions.fluent import Expr, bins, col, when
from privet.tables.expressions.nodes import Case
from privet.tables.of_person import OfPerson
from privet.tables.operators import PerPerson, Scan, Where
from privet.tables.relation import Table
from privet.tables.schema import Column, Schema
from privet.tables.statement import AtMostGroups, AtMostRows, Bounding, PeopleInGroups, Rows, Statement, Unbounded

OPENS: tuple[OpensEngine, ...] = (DuckDB, Reference, Postgres, Spark)  # mypy checks them
NAN, INF = float("nan"), float("inf")


def test_the_registry_has_every_engine() -> None:
    assert tuple(map(engine_class, ENGINES)) == OPENS


def rows_of(values: Any, column: Column, **more: Any) -> Table:
    """A table with a column `x`."""
    return pv.table("t", pa.table({"x": values}), protect=each_row(), columns={"x": column, **more})


def asked(name: str, table: Table, *tallies: Any, keys: tuple[Expr, ...] = (), where: Expr | None = None) -> Any:
    of = Scan(table.schema) if where is None else Where(Scan(table.schema), where.node)
    statement = Statement(of, tuple(key.node for key in keys), Unbounded(), tallies)
    engine = opened(name, table)
    try:
        assert engine.supports(statement) is None
        return engine.answer(statement)
    finally:
        engine.close()


def total(expression: Expr, lower: Any, step: Any, width: int) -> Any:
    return exactly.total(expression.node, lower, step, width)


# --- special values -------------------------------------------------------------------------------

x = col("x")
FLOATS = [NAN, INF, -INF, -0.0, 0.0, 5e-324, None, 2.5, -2.5, 3.5, 1e308]


def test_floats(name: str) -> None:
    """0..10 in steps of 1: half up, infinities clamped, NaN and NULL missing."""
    table = rows_of(pa.array(FLOATS, pa.float64()), declared.number(0, 10, step=1))
    found = asked(name, table, Rows(), exactly.present(x.node), total(x, 0, 1, 10), exactly.squares(x.node, 0, 1, 10))
    assert found == [[11, 9, 10 + 3 + 4 + 10, 100 + 9 + 16 + 100]]


def test_floats_as_keys(name: str) -> None:
    """Outside of the bounds is not a key; -0.0 is 0.0."""
    table = rows_of(pa.array(FLOATS, pa.float64()), declared.number(0, 4, step=1))
    assert asked(name, table, Rows(), keys=(x,)) == [[3], [0], [0], [1], [1]]


def test_comparisons_with_nan_and_null(name: str) -> None:
    table = rows_of(pa.array(FLOATS, pa.float64()), declared.number(0, 10, step=1))
    for condition, count in ((x > 3, 3), (x <= 3, 6), (x == 3, 1), (x != 3, 8), (x.is_missing(), 2)):
        assert asked(name, table, Rows(), where=condition) == [[count]], str(condition)


def test_int64_extremes(name: str) -> None:
    ends = [2**63 - 1, -(2**63), 2**61, 2**61 + 1, None]
    table = rows_of(pa.array(ends, pa.int64()), declared.integer(2**61, 2**61 + 2**40))
    assert asked(name, table, exactly.present(x.node), total(x, 2**61, 1, 2**40)) == [[4, 2**40 + 1]]


def test_sums_that_overflow_a_bigint(name: str) -> None:
    table = rows_of(pa.array([2**51] * 9, pa.int64()), declared.integer(0, 2**51))
    assert asked(name, table, exactly.squares(x.node, 0, 1, 2**51)) == [[9 * 2**102]]


def columns_of(path: Path, stored: list[Any], column: Column) -> tuple[Table, list[Expr]]:
    """A Parquet file with these columns, all declared alike: one statement reads them all."""
    names = [f"x{i}" for i in range(len(stored))]
    pq.write_table(pa.table(stored, names), path)
    return pv.table("t", path, protect=each_row(), columns=dict.fromkeys(names, column)), [col(name) for name in names]


NUMBERS = [(pa.uint8(), 255), (pa.uint32(), 2**32 - 1), (pa.uint64(), 2**64 - 1), (pa.int8(), 127), (pa.float32(), 300)]


def test_types_of_numbers(name: str, tmp_path: Path) -> None:
    """In a Parquet file they are read as they are stored."""
    stored = [pa.array([value, 7, None, 0], kind) for kind, value in NUMBERS]
    table, columns = columns_of(tmp_path / "t.parquet", stored, declared.integer(0, 100))
    tallies = [tally for each in columns for tally in (exactly.present(each.node), total(each, 0, 1, 100))]
    assert asked(name, table, *tallies) == [[3, 107] * len(columns)]


def test_decimals_are_read_exactly(name: str, tmp_path: Path) -> None:
    values = [Decimal("0.05"), Decimal("0.15"), Decimal("9.95"), Decimal("12.34"), Decimal("-7.77"), None]
    stored = [pa.array(values, pa.decimal128(digits, 2)) for digits in (4, 18, 19, 35)]
    table, columns = columns_of(tmp_path / "t.parquet", stored, declared.number(0, 10, step="0.1"))
    tallies = [(exactly.present(each.node), total(each, 0, Fraction(1, 10), 100)) for each in columns]
    assert asked(name, table, *(tally for both in tallies for tally in both)) == [[5, 1 + 2 + 100 + 100] * len(columns)]


def test_decimals_of_more_than_37_digits_are_read_as_floats(name: str, tmp_path: Path) -> None:
    values = [Decimal("0.05"), Decimal("0.15"), Decimal("9.95"), Decimal("2.30"), None]
    pq.write_table(pa.table({"x": pa.array(values, pa.decimal128(38, 2))}), tmp_path / "t.parquet")
    column = declared.number(0, 10, step="0.1")
    stored = pv.table("t", tmp_path / "t.parquet", protect=each_row(), columns={"x": column})
    floats = rows_of(pa.array([None if v is None else float(v) for v in values]), column)
    tallies = exactly.present(x.node), total(x, 0, Fraction(1, 10), 100)
    assert asked(name, stored, *tallies) == asked(name, floats, *tallies)


def test_division_rounds_down_and_half_up(name: str) -> None:
    table = rows_of(pa.array([-7, 7, -5, 5, 0], pa.int64()), declared.integer(-10, 10))
    floored = (x / 2).floor()
    assert asked(name, table, total(floored, -5, 1, 10)) == [[5 * 5 + (-4 + 3 - 3 + 2 + 0)]]
    quotient = (Expr(x.node) / (x - x + 2)).clip(-5, 5)
    assert asked(name, table, exactly.present(quotient.node)) == [[5]]
    assert asked(name, table, exactly.present((x / x).node)) == [[4]], "x / 0 is missing"


def test_a_quotient_of_0_is_0(name: str) -> None:
    table = rows_of(pa.array([1.0, 2.0, 0.0, 50.0, None]), declared.number(0, 10, step=1))
    zero = 0 / x
    for condition, count in (
        (zero == 0, 3), (zero == 0.45, 0), (zero != 0.45, 3), (zero >= 0.45, 0), (zero < 0.45, 3),
        (zero.is_in([0.45, 2]), 0), (zero.is_in([0.45, 0]), 3), (zero.clip(-1, 1) >= 0.45, 0), (zero.is_missing(), 2),
    ):  # fmt: skip
        assert asked(name, table, Rows(), where=condition) == [[count]], str(condition)
    rough = rows_of(pa.array([1.0, 2.0, 0.0, 50.0, None]), declared.number(0, 10**12))
    for condition, count in ((0 * x == 0, 4), (0 * x >= 5, 0), (0 * x == 5, 0)):
        assert asked(name, rough, Rows(), where=condition) == [[count]], str(condition)


def test_a_mean_of_one_number_is_that_number(name: str) -> None:
    table = people(crowd(5))
    five = Case((((col("x") >= 0).node, pv.lit(5).node),), None)
    means = PerPerson(Scan(table.schema), (("m", OfPerson("mean", five)),))
    engine = opened(name, table)
    found = [
        engine.answer(Statement(Where(means, condition.node), (), AtMostRows(1), (Rows(),)))[0][0] > 0
        for condition in (col("m") == 5, col("m") == 5.2, col("m") >= 5.2, col("m") <= 5.2)
    ]
    engine.close()
    assert found == [True, False, False, True]


def test_a_key_that_is_public_is_missing_where_a_column_is_out_of_range(name: str) -> None:
    """No such row is in a group, whatever its key would be."""
    table = rows_of(pa.array([1.0, 2.0, 10.0, 50.0]), declared.number(1, 10, step=1, required=True))
    public, ten = 0 * x, x.clip(10, 20)
    for key in (
        public, x * 0, public + 1, public / 2, 3 / (public + 4), (6 / (public + 3)).clip(0, 9), abs(public),
        ten - 2, 20 / ten, x / ten, ten * 2 / ten, 7 / (ten + 20), (20 / ten).clip(0, 5), (ten / 3).floor(),
    ):  # fmt: skip
        assert asked(name, table, Rows(), keys=(pv.bins(key, [0, 10]),)) == [[3]], str(key)
        assert asked(name, table, Rows(), where=key < 9) == [[4]], str(key)
    inside = pv.when(x > 5, 1).otherwise(1)  # a condition inside a key reads values as `where` does
    assert asked(name, table, Rows(), keys=(pv.bins(inside, [0, 10]),)) == [[4]]


def test_texts_are_bytes(name: str) -> None:
    texts = ["a", "A", "á", "a\u0301", "a ", "", "ß", "ss", None, "'; DROP TABLE t0; --"]
    table = rows_of(pa.array(texts), declared.text())
    for text in texts[: 2 if name == "spark" else -2]:  # for Spark, see test_spark_integers
        assert asked(name, table, Rows(), where=x == text) == [[1]]
        assert asked(name, table, Rows(), where=x.is_in([text, *map(str, range(30))])) == [[1]]
    assert asked(name, table, Rows(), where=x.starts_with("a")) == [[3]]
    assert asked(name, table, exactly.present(x.node)) == [[9]]


def test_keys_in_their_order(name: str) -> None:
    table = rows_of(pa.array(["b", "a", "B", None, "b", "z"]), declared.keys("b", "a", "c", other="other"))
    assert asked(name, table, Rows(), keys=(x,)) == [[2], [1], [0], [2]]
    numbers = rows_of(pa.array([3, 1, 7, None, 3], pa.int64()), declared.keys(3, 9, 1))
    assert asked(name, numbers, Rows(), keys=(x,)) == [[2], [0], [1]]


def test_enumerations(name: str, tmp_path: Path) -> None:
    stored = pa.array(["b", "a", "b", None]).dictionary_encode()
    pq.write_table(pa.table({"x": stored}), tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", pa.table({"x": stored})):
        table = pv.table("t", source, protect=each_row(), columns={"x": declared.keys("a", "b")})
        assert asked(name, table, Rows(), keys=(x,)) == [[1], [2]]


def test_dates_before_1970(name: str) -> None:
    days = [date(1969, 12, 31), date(1900, 2, 28), date(1960, 2, 29), date(2024, 1, 1), date(1850, 1, 1), None]
    table = rows_of(pa.array(days), declared.date("1900-01-01", "1970-12-31"))
    for part, expected in (("year", [1969, 1900, 1960, 1970, 1900]), ("month", [12, 2, 2, 12, 1])):
        numbers = x.year() if part == "year" else x.month()
        bound = numbers.clip(0, 2000)
        assert asked(name, table, total(bound, 0, 1, 2000)) == [[sum(expected)]]
    cut = x.truncate("month")
    assert asked(name, table, Rows(), where=cut == date(1960, 2, 1)) == [[1]]
    assert asked(name, table, Rows(), where=x < date(1960, 2, 29)) == [[2]]


def test_dates_without_a_timestamp(name: str, tmp_path: Path) -> None:
    """A date too far from 1970 to be a timestamp is before or after all of them: clamped, and missing as a key."""
    days = [106_751_992, -106_751_992, 2**31 - 2, 2 - 2**31, 2**31 - 1, 1 - 2**31, 0, 1, -1, None]
    pq.write_table(pa.table({"x": pa.array(days, pa.int32()).cast(pa.date32())}), tmp_path / "t.parquet")
    column = declared.timestamp("1970-01-01", "1970-01-02")
    table = pv.table("t", tmp_path / "t.parquet", protect=each_row(), columns={"x": column})
    assert asked(name, table, total(x.hour(), 0, 1, 23), exactly.present(x.node)) == [[3 * 23, 9]]
    for condition, count in ((x < datetime(1970, 1, 2), 5), (x > datetime(1970, 1, 2), 3), (x.is_missing(), 1)):
        assert asked(name, table, Rows(), where=condition) == [[count]], str(condition)
    assert asked(name, table, Rows(), keys=(x.truncate("day"),)) == [[1], [1]]


def test_timestamps(name: str, tmp_path: Path) -> None:
    """An instant is read in UTC; what has no zone is read as it is. Microseconds are all there is."""
    at = [datetime(1969, 12, 31, 23, 59, 59), datetime(2020, 3, 1, 0, 30), datetime(2030, 1, 1), None]
    stored = []
    for unit, zone in product(("ms", "us", "ns"), (None, "UTC", "America/New_York")):
        plain = pa.array(at, pa.timestamp("us")).cast(pa.timestamp(unit))
        stored.append(plain if zone is None else plain.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, zone)))
    table, columns = columns_of(tmp_path / "t.parquet", stored, declared.timestamp("1960-01-01", "2025-01-01"))
    hours = [total(each.hour(), 0, 1, 23) for each in columns]
    old = [exactly.holds((each < datetime(1970, 1, 1)).node) for each in columns]
    assert asked(name, table, *hours, *old) == [[23 + 0 + 23] * 9 + [1] * 9]
    assert asked(name, table, Rows(), where=columns[-1] < datetime(1970, 1, 1)) == [[1]]
    days, columns = columns_of(tmp_path / "d.parquet", stored, declared.date("1960-01-01", "2025-01-01"))
    that_day = [exactly.holds((each == date(1969, 12, 31)).node) for each in columns]
    assert asked(name, days, *that_day) == [[1] * 9]


def test_cases_and_bins(name: str) -> None:
    table = rows_of(pa.array([-1, 0, 4, 5, 9, 10, None], pa.int64()), declared.integer(-5, 15))
    assert asked(name, table, Rows(), keys=(bins(x, [0, 5, 10]),)) == [[2], [3]]
    sign = when(x > 4, 1).otherwise(0)
    assert asked(name, table, total(sign, 0, 1, 1)) == [[3]]


def test_a_default_and_a_promised_value(name: str) -> None:
    table = rows_of(pa.array([1, None, 12], pa.int64()), declared.integer(0, 9, required=True))
    asks = plan(table.agg(s=pv.sum("x"), n=pv.count()), epsilon=1)
    engine = opened(name, table)
    assert [engine.supports(s) for s in asks.statements()] == [None] * len(asks.statements())
    reference = opened("reference", table)
    assert [engine.answer(s) for s in asks.statements()] == [reference.answer(s) for s in asks.statements()]
    engine.close()


def test_a_public_table_is_joined_once(name: str) -> None:
    table = rows_of(pa.array(["a", "b", "q", None, "a"]), declared.keys("a", "b", "q"))
    sizes = pv.public_table("sizes", pa.table({"k": ["a", "b"], "size": [10, 20]}), key="k")
    joined = table.join(sizes, on="x", how="left")
    engine = opened(name, table, public=[sizes])
    size = exactly.total(col("size").node, 10, 1, 10)
    statement = Statement(joined.input, (), Unbounded(), (Rows(), exactly.present(col("size").node), size))
    assert engine.answer(statement) == [[5, 3, 10]]
    engine.close()


# --- bounding -------------------------------------------------------------------------------------

ALL = [AtMostRows(1), AtMostRows(3), AtMostGroups(1, 2), AtMostGroups(2, 1), PeopleInGroups(1), PeopleInGroups(2)]
FEW = [some(ALL, every=2, start=start) for start in (0, 1)]  # for Spark, which takes half a second for a statement


def people(rows: list[tuple[Any, str, int]]) -> Table:
    columns = {"k": declared.keys("a", "b", "c"), "x": declared.integer(0, 99)}
    names = ("id", "k", "x")
    made = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    return pv.table("t", made, protect=person("id", max_rows=9), columns=columns)


def bounded(name: str, rows: list[tuple[Any, str, int]], bounding: Bounding, salt: bytes = b"salt") -> Any:
    table = people(rows)
    tallies = (Rows(),) if isinstance(bounding, PeopleInGroups) else (Rows(), exactly.total(x.node, 0, 1, 99))
    engine = opened(name, table, salt=salt)
    try:
        return engine.answer(Statement(Scan(table.schema), (col("k").node,), bounding, tallies))
    finally:
        engine.close()


def crowd(seed: int) -> list[tuple[Any, str, int]]:
    chance = Random(seed)
    return [
        (who, chance.choice("abcz"), chance.randrange(100)) for who in range(40) for _ in range(chance.randrange(9))
    ]


@pytest.mark.parametrize("bounding", ALL, ids=str)
def test_as_many_survive_as_there_may(name: str, bounding: Bounding) -> None:
    if name == "spark" and bounding not in FEW[0]:
        return  # a statement takes it long
    rows = crowd(1)
    expected = 0
    for who in range(40):
        mine = [k for person_, k, _ in rows if person_ == who and k != "z"]
        match bounding:
            case AtMostRows(most):
                expected += min(most, len(mine))
            case PeopleInGroups(groups):
                expected += min(groups, len(set(mine)))
    found = sum(row[0] for row in bounded(name, rows, bounding))
    if isinstance(bounding, AtMostGroups):
        assert found <= 40 * bounding.groups * bounding.rows
        assert found >= len({who for who, k, _ in rows if k != "z"})
    else:
        assert found == expected


@pytest.mark.parametrize("bounding", ALL, ids=str)
def test_who_survives_depends_on_that_person_and_the_salt_alone(name: str, bounding: Bounding) -> None:
    if name == "spark" and bounding not in FEW[1]:
        return
    rows = crowd(2)
    whole = bounded(name, rows, bounding)
    assert bounded(name, Random(3).sample(rows, len(rows)), bounding) == whole, "not on the order of rows"
    few, others = ([row for row in rows if (row[0] < 20) is side] for side in (True, False))
    parts = bounded(name, few, bounding), bounded(name, others, bounding)
    added = [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(*parts, strict=True)]
    assert added == whole, "not on others"


@pytest.mark.parametrize("bounding", [AtMostRows(1), AtMostGroups(1, 1), PeopleInGroups(1)], ids=str)
def test_every_row_is_as_likely_as_any_other(name: str, bounding: Bounding) -> None:
    """For one salt; each person has two rows that are the same, and two others."""
    if name == "spark" and bounding != AtMostRows(1):
        return
    rows = [(who, k, i) for who in range(1200) for k, i in (("a", 1), ("b", 2), ("b", 2), ("c", 3))]
    shares = (0.25, 0.5, 0.25) if bounding == AtMostRows(1) else (1 / 3, 1 / 3, 1 / 3)
    for (found, *_), share in zip(bounded(name, rows, bounding), shares, strict=True):
        assert abs(found - 1200 * share) < 6 * (1200 * share * (1 - share)) ** 0.5


def test_another_salt_chooses_otherwise(name: str) -> None:
    rows = crowd(4)
    assert len({str(bounded(name, rows, AtMostRows(1), salt=bytes([i]))) for i in range(4)}) > 1


def test_rows_of_nobody_are_dropped(name: str) -> None:
    columns = {"x": declared.integer(0, 9)}
    ids = [1.0, 1.0, None, NAN, -0.0, 0.0, 0.0, INF]
    table = pv.table("t", pa.table({"id": ids, "x": [1] * 8}), protect=person("id", max_rows=2), columns=columns)
    engine = opened(name, table)
    assert engine.answer(Statement(Scan(table.schema), (), AtMostRows(2), (Rows(),))) == [[5]]
    engine.close()


# --- what goes wrong ------------------------------------------------------------------------------

COUNT = Schema.declare("t", protect=each_row(), columns={"x": declared.integer(0, 9)})


def test_a_failure_is_one_constant_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / "secret canary.parquet"
    pq.write_table(pa.table({"x": [1, 2]}), path)
    table = pv.table("t", path, protect=each_row(), columns={"x": declared.integer(0, 9)})
    engine, statement = opened(name, table), Statement(Scan(table.schema), (), Unbounded(), (Rows(),))
    assert engine.answer(statement) == [[2]]
    path.unlink()
    movers.lose(engine)
    with pytest.raises(NoAnswer) as caught:
        engine.answer(statement)
    assert (caught.value.args, caught.value.__cause__, caught.value.__context__) == ((FAILED,), None, None)
    assert "canary" not in "".join(traceback.format_exception(caught.value))
    engine.close()


def test_what_is_not_supported_is_said_before_rows_are_read(name: str) -> None:
    class Unread(ArrowRows):
        def types(self) -> Any:
            return {"x": pa_list()}

    source: Any = Unread(pa.table({"x": [1]}))
    if name == "postgres":
        in_postgres.execute("DROP TABLE IF EXISTS lists", "CREATE TABLE lists (x integer[])")
        source = in_postgres.opened(COUNT, "lists")
    if name == "spark":
        source = in_spark.stored(COUNT, pa.table({"x": pa.array([[1]])}))
    engine = engine_class(name)({"t": (COUNT, source)}, {}, salt=b"")
    statement = Statement(Scan(COUNT), (), Unbounded(), (exactly.present(x.node),))
    reason = engine.supports(statement)
    assert reason is not None
    assert "can't be read as" in reason
    with pytest.raises(Unsupported, match="can't be read as"):  # not a failure, which could have come from a row
        engine.answer(statement)
    engine.close()


def pa_list() -> Any:
    from privet.engines.arrow_types import stored

    return stored(pa.list_(pa.int64()))


def test_the_declaration_must_be_the_engines_own(name: str) -> None:
    engine = opened(name, rows_of([1], declared.integer(0, 9)))
    other = Schema.declare("t", protect=each_row(), columns={"x": declared.integer(0, 8)})
    with pytest.raises(InternalError, match="no table 't' with this declaration"):
        engine.supports(Statement(Scan(other), (), Unbounded(), (Rows(),)))
    engine.close()


def test_a_closed_engine_answers_nothing(name: str) -> None:
    table = rows_of([1], declared.integer(0, 9))
    engine, statement = opened(name, table), Statement(Scan(table.schema), (), Unbounded(), (Rows(),))
    engine.ready()
    engine.close()
    engine.close()
    with pytest.raises(NoAnswer, match=FAILED):
        engine.answer(statement)


def test_an_engine_that_stops_ends_its_threads(name: str) -> None:
    table = rows_of([1], declared.integer(0, 9))
    engine, statement = opened(name, table), Statement(Scan(table.schema), (), Unbounded(), (Rows(),))
    stopped = Stoppable()
    stopped.stop()
    with stopped.run(), pytest.raises(NoAnswer) as caught:  # one question, and like any failure
        engine.answer(statement)
    assert (caught.value.args, caught.value.__cause__, caught.value.__context__) == ((FAILED,), None, None)
    assert engine.answer(statement) == [[1]]
    engine.stop()
    with pytest.raises(SystemExit):
        engine.answer(statement)
    engine.close()


# --- a session on each engine ---------------------------------------------------------------------


@pytest.fixture
def session(name: str) -> Iterator[pv.Session]:
    table = movers.moved(name, people(crowd(5)))
    with pv.Session([table], budget=pv.PureDP(10**6), ledger=None, engine=name) as session:
        yield session


def test_a_session_runs_on_it(session: pv.Session, name: str) -> None:
    assert session.dataset.engine.name == name
    table = session.tables["t"]
    release = session.release(table.group_by("k").agg(n=pv.count(), s=pv.sum("x")), epsilon=10**5)
    assert len(release.values("n")) == 3
    assert all(value > 0 for value in release.values("n"))
    people_ = session.release(table.per_person(s=pv.sum("x")).agg(n=pv.count()), epsilon=10**5)
    expected = len({who for who, _, _ in crowd(5)})
    assert people_.values("n") == [expected]


def test_a_question_that_is_not_supported_costs_nothing(session: pv.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.dataset.engine, "supports", lambda statement: "it is Tuesday")
    with pytest.raises(QueryError, match=r"can't compute this: it is Tuesday. Nothing was spent. Change the question"):
        session.release(session.tables["t"].agg(n=pv.count()), epsilon=1)
    assert session.spent == pv.PureDP.ZERO


def test_an_unknown_engine() -> None:
    with pytest.raises(UserError, match=r"there is no engine 'duckbd'. The engines are: duckdb, reference, postgres"):
        pv.Session([people(crowd(5))], budget=pv.PureDP(1), ledger=None, engine="duckbd")


def test_a_source_that_an_engine_can_t_read(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    table = pv.table(
        "t", pv.duckdb_file(tmp_path / "t.duckdb", "t"), protect=each_row(), columns={"x": declared.integer(0, 9)}
    )
    with pytest.raises(UserError, match="the engine 'reference' can't read all tables of this dataset"):
        pv.Session([table], budget=pv.PureDP(1), ledger=None, engine="reference")
    with pv.Session([table], budget=pv.PureDP(1), ledger=None) as session:
        assert session.dataset.engine.name == "duckdb"
