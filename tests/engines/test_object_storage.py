"""Objects are read as files are: the same integers for the same bytes, and the same parts whatever is in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import exactly
from tests.effort import some
from tests.engines.poison import DUCKDB_GOOD, POISONS
from tests.engines.test_contract import FLOATS, INF, NAN, total
from tests.movers import opened
from tests.object_storage import Bucket

import privet as pv
from privet.engines import object_store
from privet.engines.base import FAILED, ParquetObjects
from privet.engines.duckdb import attaching, object_files
from privet.engines.registry import ENGINES, engine_class
from privet.errors import NoAnswer
from privet.privacy.adjacency import each_row, person
from privet.tables.expressions.fluent import Expr, col
from privet.tables.operators import Scan, Where
from privet.tables.relation import Table
from privet.tables.schema import Column
from privet.tables.statement import AtMostRows, Rows, Statement, Unbounded

x = col("x")
READERS = [name for name in ENGINES if engine_class(name).reads(ParquetObjects((), (), None))]

POISON = POISONS["duckdb"]


def counted(engine: str, table: Table, *tallies: Any, where: Expr | None = None, keys: tuple[Expr, ...] = ()) -> Any:
    of = Scan(table.schema) if where is None else Where(Scan(table.schema), where.node)
    capped = isinstance(table.schema.protect, type(person("id", max_rows=1)))
    bounding = AtMostRows(1) if capped else Unbounded()
    asked = opened(engine, table)
    try:
        asked.ready()
        return asked.answer(Statement(of, tuple(key.node for key in keys), bounding, tallies))
    finally:
        asked.close()


@pytest.mark.parametrize("engine", READERS)
def test_special_values_and_ids(engine: str, s3: Bucket, tmp_path: Path) -> None:
    """As in files, by hand: NaN is missing as a value and as an id; infinities are clamped."""
    rows = pa.table({"id": [1.0, NAN, 2.0, -0.0, 0.0, None, INF, 3.0, 4.0, 5.0, 6.0], "x": pa.array(FLOATS)})
    address, columns = s3.put("t.parquet", rows, row_group_size=3), {"x": pv.number(0, 10, step=1)}
    by_row = pv.table("t", address, protect=each_row(), columns=columns)
    found = counted(engine, by_row, Rows(), exactly.present(x.node), total(x, 0, 1, 10))
    assert found == [[11, 9, 10 + 3 + 4 + 10]]
    assert counted(engine, by_row, Rows(), where=x > 3) == [[3]]
    by_person = pv.table("t", address, protect=person("id", max_rows=1), columns=columns)
    assert counted(engine, by_person, Rows()) == [[8]]  # two have no id, and 0.0 and -0.0 are one


def test_poison(s3: Bucket, tmp_path: Path) -> None:
    """Every type, every poisonous value: what is counted in an object is what is counted in the file."""
    cases = [(name, column, kind) for name, column, kinds in POISON.columns for kind in kinds]
    for place, (_, column, kind) in enumerate(some(cases, every=max(1, len(cases) // 5))):
        values = ", ".join(
            f"(CAST({value} AS {kind}))" for value in (*POISON.values[kind], DUCKDB_GOOD.get(kind, "NULL"))
        )
        file = tmp_path / f"{place}.parquet"
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT x FROM (VALUES {values}) AS v(x)) TO '{file}' (FORMAT parquet)")
        here = _table(file, column)
        there = _table(s3.put(file.name, file.read_bytes()), column)
        assert (here is None) == (there is None), kind
        if here is not None and there is not None:
            assert here.source.types() == there.source.types()
            tallies = (Rows(), exactly.present(x.node))
            assert counted("duckdb", here, *tallies) == counted("duckdb", there, *tallies), kind


def _table(source: Any, column: Column) -> Table | None:
    try:
        return pv.table("t", source, protect=each_row(), columns={"x": column})
    except pv.UserError:
        return None


# --- which parts are read ---------------------------------------------------------------------------

Parts = Callable[[Table, Expr], list[tuple[int, int]]]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    """The parts of an object that a question fetches."""
    fetched: list[tuple[int, int]] = []
    read = object_files._File.read

    def watched(self: Any, length: int = -1) -> bytes:
        fetched.append((self.tell(), length))
        return read(self, length)

    monkeypatch.setattr(object_files._File, "read", watched)

    def asked(table: Table, condition: Expr) -> list[tuple[int, int]]:
        fetched.clear()
        counted("duckdb", table, Rows(), total(col("y"), 0, 1, 10), where=condition)
        return sorted(set(fetched))

    return asked


def sorted_rows(s3: Bucket) -> Table:
    n = 20_000
    rows = {"x": range(n), "y": [value % 10 for value in range(n)], "z": [str(value) for value in range(n)]}
    address = s3.put("t.parquet", pa.table({name: list(values) for name, values in rows.items()}), row_group_size=2_000)
    columns = {"x": pv.integer(0, 10**6), "y": pv.integer(0, 10), "z": pv.text()}
    return pv.table("t", address, protect=each_row(), columns=columns)


def test_the_parts_that_are_fetched_do_not_depend_on_values(s3: Bucket, parts: Parts) -> None:
    """Although the footer has the extremes of each row group. Columns that are not needed are not read."""
    table = sorted_rows(s3)
    every = parts(table, x >= 0)
    for condition in (x < 10, x > 500_000, (x == 7) & (col("y") == 3), x.is_in([1, 19_999])):
        assert parts(table, condition) == every, str(condition)
    assert len(every) > 10
    assert sum(length for _, length in every) < table.source.objects[0].size


def test_a_view_with_pushed_conditions_would_be_noticed(
    s3: Bucket, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = attaching._view
    monkeypatch.setattr(
        attaching, "_view", lambda c, n, columns, rows: real(c, n, columns, rows.replace(" OFFSET 0", ""))
    )
    table = sorted_rows(s3)
    assert parts(table, x >= 0) != parts(table, x < 10)


# --- changes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", READERS)
@pytest.mark.parametrize("change", ["changed", "removed"])
def test_a_change_in_the_middle_is_the_constant_error(
    engine: str, change: str, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last look is after the rows were read, so that no answer mixes two contents."""
    address = s3.put("t.parquet", {"x": [1, 2, 3]})
    table = pv.table("t", address, protect=each_row(), columns={"x": pv.integer(0, 10)})
    asked = opened(engine, table)
    statement = Statement(Scan(table.schema), (), Unbounded(), (Rows(),))
    assert asked.answer(statement) == [[3]]
    real = object_store.check

    def after(objects: Any) -> None:
        if change == "changed":
            s3.put("t.parquet", {"x": [1, 2, 4]})
        else:
            s3.remove("t.parquet")
        real(objects)

    monkeypatch.setattr(object_store, "check", after)
    with pytest.raises(NoAnswer) as failed:
        asked.answer(statement)
    assert str(failed.value) == FAILED
    assert failed.value.__cause__ is failed.value.__context__ is None
    monkeypatch.undo()
    asked.close()


def test_a_damaged_page_is_the_constant_error(s3: Bucket) -> None:
    """Of a column of integers, which are not read at registration; as in a file."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": list(range(50_000))}), sink, compression="snappy", use_dictionary=False)
    content = bytearray(sink.getvalue().to_pybytes())
    content[40:4_000] = b"\xff" * 3_960
    table = pv.table("t", s3.put("t.parquet", bytes(content)), protect=each_row(), columns={"x": pv.integer(0, 10)})
    with pytest.raises(NoAnswer) as failed:
        counted("duckdb", table, total(x, 0, 1, 10))
    assert str(failed.value) == FAILED
