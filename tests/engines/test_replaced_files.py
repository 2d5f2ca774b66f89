"""Files that are replaced while a dataset is open are read as they were declared, or not at all (T0, T3, T17)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privet as pv
from privet.engines.base import FAILED, ParquetFiles
from privet.engines.duckdb.engine import DuckDB
from privet.engines.registry import engine_class
from privet.errors import NoAnswer
from privet.planner import plan
from privet.tables.relation import Table
from privet.tables.statement import Statement

TOP = 2**42
WHOLE = pa.table({"id": [1, 2, 3], "x": [1, 2, 3], "s": ["a", "b", "c"]})


def odd_texts() -> Any:
    """A text column whose second value is not UTF-8."""
    data = pa.array([b"a", b"\xff\xfe", b"c"], pa.binary())
    return pa.StringArray.from_buffers(3, *data.buffers()[1:])


REPLACED: dict[str, Callable[[], pa.Table]] = {
    "floats, since one is missing": lambda: WHOLE.set_column(1, "x", pa.array([1.0, None, 3.0])),
    "floats, one of them NaN": lambda: WHOLE.set_column(1, "x", pa.array([1.0, float("nan"), 3.0])),
    "texts for numbers": lambda: WHOLE.set_column(1, "x", pa.array(["1", "2", "3"])),
    "ids that became floats": lambda: WHOLE.set_column(0, "id", pa.array([1.0, float("nan"), 3.0])),
    "a text that is not UTF-8": lambda: WHOLE.set_column(2, "s", odd_texts()),
    "a column less": lambda: WHOLE.drop(["s"]),
}
ENGINES = [("duckdb", False), ("duckdb", True), ("reference", False)]


def declared(source: Any) -> Table:
    columns = {"x": pv.integer(0, TOP), "s": pv.text()}
    return pv.table("t", source, protect=pv.person("id", max_rows=1), columns=columns)


def opened(name: str, apart: bool, table: Table) -> Any:
    return engine_class(name)({"t": (table.schema, table.source)}, {}, salt=b"salt", apart=apart)


def answer(engine: Any, statement: Statement) -> Any:
    """As a question looks."""
    with engine.snapshot() as looks:
        return looks.answer(statement)


@pytest.mark.parametrize(("name", "apart"), ENGINES, ids=["shared", "apart", "reference"])
@pytest.mark.parametrize("second", [False, True], ids=["the only file", "the second of two"])
@pytest.mark.parametrize("what", REPLACED)
def test_another_type_or_an_unreadable_value_is_not_read(
    name: str, apart: bool, second: bool, what: str, tmp_path: Path
) -> None:
    paths = [tmp_path / f"{i}.parquet" for i in range(1 + second)]
    for path in paths:
        pq.write_table(WHOLE, path)
    table = declared(list(map(str, paths)))
    (total,) = plan(table.agg(s=pv.sum("x"), n=pv.count("s")), epsilon=1).statements()[:1]
    with opened(name, apart, table) as engine:
        before = answer(engine, total)
        pq.write_table(REPLACED[what](), paths[-1])
        for _ in range(2):
            with pytest.raises(NoAnswer, match=FAILED):
                answer(engine, total)
        pq.write_table(WHOLE, paths[-1])
        assert answer(engine, total) == before, "it is whole again"


@pytest.mark.parametrize(("name", "apart"), ENGINES, ids=["shared", "apart", "reference"])
def test_other_rows_of_the_same_types_are_read(name: str, apart: bool, tmp_path: Path) -> None:
    pq.write_table(WHOLE, tmp_path / "t.parquet")
    table = declared(str(tmp_path / "t.parquet"))
    (total,) = plan(table.agg(n=pv.count()), epsilon=1).statements()
    with opened(name, apart, table) as engine:
        assert answer(engine, total) == [[3]]
        pq.write_table(
            pa.concat_tables([WHOLE, WHOLE.set_column(0, "id", pa.array([4, 5, 6]))]), tmp_path / "t.parquet"
        )
        assert answer(engine, total) == [[6]]


def test_without_the_check_one_row_moves_a_sum_too_far(tmp_path: Path) -> None:
    """The careless twin: integers that became floats are added up as floats, in which the next row is rounded."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    table = pv.table("t", str(path), protect=pv.each_row(), columns={"x": pv.integer(0, TOP)})
    assert isinstance(table.source, ParquetFiles)
    careless = replace(table.source, check=None)
    (total,) = plan(table.agg(s=pv.sum("x")), epsilon=1).statements()
    rows = [float(TOP)] * 4095 + [2.5] * 20_000
    found = []
    for more in ([], [float(TOP)]):
        pq.write_table(pa.table({"x": [1]}), path)
        with DuckDB({"t": (table.schema, careless)}, salt=b"salt", threads=1) as engine:
            pq.write_table(pa.table({"x": more + rows}), path)
            found.append(answer(engine, total)[0])
    moved = max(abs(a - b) for a, b in zip(*found, strict=True))
    assert moved > TOP, "more than a row may"


def test_a_file_that_is_renamed_and_comes_back_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(WHOLE, path)
    table = declared(str(path))
    (total,) = plan(table.agg(n=pv.count()), epsilon=1).statements()
    with opened("duckdb", False, table) as engine, engine.snapshot() as looks:
        looks.answer(total)
        path.rename(tmp_path / "away").rename(path)
        with pytest.raises(NoAnswer, match=FAILED):
            looks.answer(total)
