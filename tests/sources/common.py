"""What the tests of sources share: a table in every kind of source, and the rows as a hardened engine sees them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from privet import each_row, person
from privet.engines.duckdb.attaching import attach
from privet.sources import duckdb_file, table
from privet.tables import schema
from privet.tables.relation import Table
from privet.tables.schema import Column

COLUMNS: dict[str, Column] = {
    "age": schema.integer(0, 110),
    "income": schema.number(0, 200_000),
    "region": schema.keys("north", "south", other="elsewhere"),
    "zone": schema.keys(1, 2, 3),
    "note": schema.text(),
    "born": schema.date("1900-01-01", "2024-12-31"),
    "seen": schema.timestamp("2020-01-01", "2024-12-31"),
    "member": schema.boolean(),
}
DATA: dict[str, list[Any]] = {
    "id": ["a", "b", None, "a"],
    "age": [30, None, 200, -5],
    "income": [1.5, None, 3.25, 1e9],
    "region": ["north", "south", None, "west"],
    "zone": [1, None, 3, 4],
    "note": ["x", "", None, 'o\'clock "y"'],
    "born": [date(1990, 1, 1), None, date(2000, 2, 29), date(1800, 1, 1)],
    "seen": [datetime(2024, 1, 1, 12), None, datetime(2021, 5, 5, 0, 0, 0, 7), datetime(2030, 1, 1)],
    "member": [True, False, None, True],
    "secret": ["s1", "s2", "s3", "s4"],
}
TYPES = {
    "age": pa.int64(), "income": pa.float64(), "zone": pa.int64(), "born": pa.date32(), "seen": pa.timestamp("us"),
    "member": pa.bool_(),
}  # fmt: skip
EXPECTED = list(zip(*[DATA[name] for name in ("id", *COLUMNS)], strict=True))


def arrow() -> Any:
    return pa.table({name: pa.array(values, TYPES.get(name, pa.string())) for name, values in DATA.items()})


def as_parquet(folder: Path) -> Any:
    pq.write_table(arrow(), folder / "people.parquet")
    return folder / "people.parquet"


def as_many(folder: Path) -> Any:
    (folder / "it's many").mkdir()
    for i in range(4):
        pq.write_table(arrow().slice(i, 1), folder / "it's many" / f"{i}.parquet")
    return str(folder / "it's many" / "*.parquet")


def as_duckdb(folder: Path) -> Any:
    people = arrow()
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.register("people_rows", people)
        connection.execute("CREATE TABLE people AS SELECT * FROM people_rows")
    return duckdb_file(folder / "people.duckdb", "people")


def as_ibis(folder: Path) -> Any:
    ibis: Any = import_module("ibis")

    with warnings.catch_warnings():  # Ibis and DuckDB warn of each other
        warnings.simplefilter("ignore")
        return ibis.duckdb.connect().read_parquet(as_parquet(folder)).mutate(more=1)


def as_memtable(_: Path) -> Any:
    ibis: Any = import_module("ibis")

    return ibis.memtable(arrow())


SOURCES: dict[str, Callable[[Path], Any]] = {
    "Parquet": as_parquet,
    "pattern": as_many,
    "list": lambda folder: [as_parquet(folder)],
    "Arrow table": lambda _: arrow(),
    "Arrow batch": lambda _: arrow().combine_chunks().to_batches()[0],
    "Arrow reader": lambda _: arrow().to_reader(),
    "pandas": lambda _: arrow().to_pandas().astype({"zone": "Int64"}),
    "pandas objects": lambda _: pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in DATA.items()}),
    "pandas on Arrow": lambda _: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": lambda _: pl.DataFrame(DATA),
    "DuckDB file": as_duckdb,
    "Ibis": as_ibis,
    "Ibis in memory": as_memtable,
}


def people(source: Any, *, columns: dict[str, Column] = COLUMNS, by_person: bool = True) -> Table:
    protect = person("id", max_rows=2) if by_person else each_row()
    return table("people", source, protect=protect, columns=columns)


def rows(source: Any, name: str = "t 0") -> list[tuple[Any, ...]]:
    """All rows, through a connection that can read the source's own files and nothing else."""
    with duckdb.connect(config={"python_enable_replacements": False}) as connection:
        attach(connection, source, name)
        files = ", ".join("'" + file.replace("'", "''") + "'" for file in source.files())
        connection.execute(f"SET allowed_paths = [{files}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        found = connection.execute(f'SELECT * FROM "{name}"')
        assert found.description is not None
        assert [column[0] for column in found.description] == list(source.types())
        return found.fetchall()
