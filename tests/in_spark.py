"""Tables of tests, moved into a real Spark: Parquet files that it reads, with the same rows.

What it can't read becomes what is read alike: it has no nanoseconds.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.spark import SparkServer

from privet.engines.base import ParquetFiles
from privet.engines.spark import types
from privet.engines.spark.addresses import parsed
from privet.engines.spark.catalogue import Description
from privet.engines.spark.tables import SparkTable
from privet.sources import readings
from privet.tables.relation import Table
from privet.tables.schema import Schema

_NUMBERS = count(1)
_AT: list[tuple[str, Path]] = []
_TYPES = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint",
    "uint8": "smallint", "uint16": "int", "uint32": "bigint", "uint64": "decimal(20,0)",
    "bool": "boolean", "large_string": "string", "date32[day]": "date", "null": "string",
}  # fmt: skip


@contextmanager
def at(server: SparkServer) -> Iterator[None]:
    """Where tables are moved to while this lasts."""
    with tempfile.TemporaryDirectory() as folder:
        _AT.append((server.address, Path(folder)))
        try:
            yield
        finally:
            _AT.pop()


def moved(table: Table) -> Table:
    """The same table, in Spark."""
    source: Any = table.source
    rows = pq.read_table(list(source.paths)) if isinstance(source, ParquetFiles) else source.rows
    return Table(table.schema, stored(table.schema, rows))


def stored(schema: Schema, rows: pa.Table) -> SparkTable:
    """Rows as a Parquet file, that Spark reads as it is declared. To ask it for the types would take it a second."""
    person = getattr(schema.protect, "id", None)
    kinds = {field.name: types.stored(_type(field.type)) for field in rows.schema}
    columns = [(name, types.as_id(kinds[name]) if name == person else kinds[name]) for name in readings.kinds(schema)]
    source = SparkTable(parsed(f"{_AT[-1][0]}#{written(rows)}"), tuple(columns), person)
    described = tuple((name, kind.name) for name, kind in kinds.items())
    return replace(source, signature=Description(source.name, "parquet", "", described).of(source.columns))


def written(rows: pa.Table, path: Path | None = None) -> Path:
    """A file of these rows."""
    path = path or _AT[-1][1] / f"t{os.getpid()}_{next(_NUMBERS)}.parquet"
    pq.write_table(pa.table([_readable(column) for column in rows.columns], rows.column_names), path)
    return path


def lose(engine: Any) -> None:
    """The files of an engine are deleted."""
    if engine.name == "spark":
        for source in engine._sources:
            Path(source.address.path).unlink()


def _readable(column: Any) -> Any:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    return column.cast(pa.string()) if pa.types.is_null(kind) else column


def _type(kind: Any) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{_type(kind.value_type)}>"
    return _TYPES.get(str(kind), str(kind))
