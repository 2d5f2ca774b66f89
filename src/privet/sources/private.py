"""Private tables: what was declared, and where the rows are, checked against each other.

Everything that can be wrong with a file, a column or a type is said here, to the steward, before any session exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privet.engines.base import Source
from privet.engines.duckdb import files
from privet.engines.duckdb.attaching import count
from privet.engines.duckdb.files import DuckDBFile
from privet.engines.postgres import addresses as postgres_addresses
from privet.engines.postgres import tables as postgres
from privet.engines.postgres.tables import PostgresTable
from privet.engines.postgres.types import as_id
from privet.engines.spark import tables as spark_tables
from privet.engines.spark.tables import SparkTable
from privet.errors import SourceError, Subject, argument, write
from privet.names.required import needs
from privet.names.spelling import listed
from privet.privacy.adjacency import Adjacency, Protected
from privet.sources import frames, parquet, readings, spark
from privet.system.addresses import is_postgres, is_spark
from privet.tables.relation import Table
from privet.tables.schema import Column, Schema

_DATABASE = write(
    'pv.duckdb_file("people.duckdb", "people")', policy='source = { duckdb = "people.duckdb", table = "people" }'
)


def duckdb_file(path: str | Path, table: str, *, schema: str = "main") -> DuckDBFile:
    """A table in a DuckDB file, as a source for `table`.

    Example:
        >>> duckdb_file("people.duckdb", "people").table
        'people'
    """
    given: tuple[object, ...] = (path, table, schema)
    if not all(isinstance(part, str | Path) and str(part) for part in given):
        raise SourceError("a DuckDB file needs a path and a table", remedy=_DATABASE)
    return DuckDBFile(str(Path(path).expanduser().absolute()), table, schema)


@needs('pv.table("people", rows, protect=pv.person("id", max_rows=1), columns={"age": pv.integer(0, 110)})')
def table(
    name: str,
    source: Any,
    *,
    protect: Protected,
    columns: Mapping[str, Column],
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    rows: int | None = None,
) -> Table:
    """A private table: its declaration, and a source that matches it.

    The source is a path to Parquet, a pattern or a list of paths, the same in object storage (`s3://`, `gs://`), an
    Arrow, pandas or Polars table, an Ibis table, a `duckdb_file`, or the address of a table in Postgres, such as
    "postgresql://reader@db/health#public.people", or in Spark, such as "spark:sales.people" or
    "sc://host:15002#sales.people"; without the part after # it is the table of the same name. Rows in Postgres and
    Spark stay there. Frames are copied. Files are read where they are: opening a Parquet file reads its footer, and
    once for each content its texts and its times in milliseconds, to see that they can be read.

    Example:
        >>> import pyarrow as pa
        >>> import privet as pv
        >>> from privet.tables.schema import integer
        >>> rows = pa.table({"id": [1, 2, 2], "age": [30, None, 50], "name": ["Ann", "Bea", "Bea"]})
        >>> people = table("people", rows, protect=pv.person("id", max_rows=1), columns={"age": integer(0, 110)})
        >>> {column: kind.name for column, kind in people.source.types().items()}
        {'id': 'int64', 'age': 'int64'}
        >>> table("people", rows, protect=pv.each_row(), columns={"agee": integer(0, 110)})
        Traceback (most recent call last):
        privet.errors.SourceError: there is no column 'agee' in the Arrow table. The columns are: id, age, name. Did
        you mean 'age'?
    """
    schema = Schema.declare(name, protect=protect, columns=columns, adjacency=adjacency, rows=rows)
    opened = _opened(schema, source)
    if schema.rows is not None and (counted := _counted(opened, name)) != schema.rows:
        raise SourceError(
            f"{name!r} is declared with {schema.rows:,} rows, but has {counted:,}",
            subject=Subject("argument", "rows", name),
            remedy=argument("rows", counted, exact=True),
        )
    return Table(schema, opened)


def _counted(source: Source, name: str) -> int:
    if isinstance(source, PostgresTable):
        return postgres.count(source)
    if isinstance(source, SparkTable):
        return spark_tables.count(source)
    try:
        return count(source)
    except files.Unreadable:
        raise SourceError(f"the rows of {name!r} can't be counted", subject=Subject("table", name)) from None


def _opened(schema: Schema, source: Any) -> Source:
    if isinstance(source, DuckDBFile):
        return _duckdb(schema, source)
    if isinstance(source, str) and is_postgres(source):
        return _postgres(schema, source)
    if isinstance(source, str) and is_spark(source):
        return spark.source_of(schema, source)
    if isinstance(source, str | Path | list | tuple):
        return parquet.source_of(schema, source)
    frame = frames.columns(source)
    if frame is None:
        raise SourceError(
            f"the source of {schema.name!r} is {type(source).__name__}, which is not a table",
            allowed=parquet.SOURCES,
            subject=Subject("table", schema.name),
            remedy=parquet.FILE,
        )
    readings.check(schema, frame.types, frame.where)
    return frame.read(readings.kinds(schema))


def _postgres(schema: Schema, address: str) -> PostgresTable:
    """A table in Postgres; an id is compared as it is read, so a number of any length is one by its digits."""
    found = postgres.opened(postgres_addresses.parsed(address), schema.name)
    person = parquet.person_of(schema)
    types = {name: as_id(kind) if name == person else kind for name, kind in found.columns}
    readings.check(schema, types, str(found))
    return found.keeping(readings.kinds(schema), person)


def _duckdb(schema: Schema, source: DuckDBFile) -> DuckDBFile:
    if not Path(source.path).is_file():
        raise SourceError(f"there is no file {source.path!r}", subject=Subject("file", source.path), remedy=_DATABASE)
    with files.glance() as connection:
        try:
            rows = files.attached(connection, source, "source")
            known = files.query(
                connection,
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' AND NOT internal",
            )
        except files.Unreadable:
            raise SourceError(
                f"{source.path!r} is not a readable DuckDB file, or another process has it open for writing",
                subject=Subject("file", source.path),
            ) from None
        if (source.schema, source.table) not in known:
            names = sorted(t if s == "main" else f"{t} (schema {s})" for s, t in known)
            raise SourceError(
                f"there is no table {source.table!r} in {source.path!r}",
                allowed=listed(names, "tables"),
                subject=Subject("table", source.table),
            )
        types = files.describe(connection, rows)
        files.detach(connection, "source")
    where = f"table {source.table!r} of {source.path!r}"
    readings.check(schema, types, where)
    chosen = tuple((name, types[name]) for name in readings.kinds(schema))
    return DuckDBFile(source.path, source.table, source.schema, chosen, parquet.person_of(schema))
