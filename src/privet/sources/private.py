"""Private tables: what was declared, and where the rows are, checked against each other.

Everything that can be wrong with a file, a column or a type is said here, to the steward, before any session exists.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privet.engines.base import ParquetFiles, Source
from privet.engines.duckdb import files
from privet.engines.duckdb.attaching import count
from privet.engines.duckdb.files import Connection, DuckDBFile
from privet.engines.postgres import tables as postgres
from privet.engines.postgres.addresses import parsed
from privet.engines.postgres.tables import PostgresTable
from privet.engines.postgres.types import as_id
from privet.errors import Remedy, SourceError, Subject, argument, write
from privet.names.spelling import listed
from privet.privacy.adjacency import Adjacency, Person, Protected
from privet.sources import checked_files, frames, readings
from privet.sources.paths import paths_of
from privet.system.addresses import is_address, is_postgres
from privet.system.interrupts import interruptible
from privet.tables.relation import Table
from privet.tables.schema import Column, Schema
from privet.tables.stored_types import StoredType

_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_SOURCES = (
    "A source is a path to Parquet files, a pandas, Polars, Arrow or Ibis table, a table of a DuckDB file, or the "
    "address of a table in Postgres"
)
_FILE = write('pv.table("people", "people.parquet", ...)', policy='source = "people.parquet"')
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

    The source is a path to Parquet, a pattern or a list of paths, an Arrow, pandas or Polars table, an Ibis table, a
    `duckdb_file`, or the address of a table in Postgres, such as "postgresql://reader@db/health#public.people"; without
    the part after # it is the table of the same name. Rows in Postgres stay there. Frames are copied. Files are read
    where they are: opening a Parquet file reads its footer, and once for each content its texts and its times in
    milliseconds, to see that they can be read.

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
    if schema.rows is not None and (counted := _count(opened)) != schema.rows:
        raise SourceError(
            f"{name!r} is declared with {schema.rows:,} rows, but has {counted:,}",
            subject=Subject("argument", "rows", name),
            remedy=argument("rows", counted, exact=True),
        )
    return Table(schema, opened)


def _opened(schema: Schema, source: Any) -> Source:
    if isinstance(source, DuckDBFile):
        return _duckdb(schema, source)
    if isinstance(source, str) and is_postgres(source):
        return _postgres(schema, source)
    if isinstance(source, str | Path | list | tuple):
        return _parquet(schema, source)
    frame = frames.columns(source)
    if frame is None:
        raise SourceError(
            f"the source of {schema.name!r} is {type(source).__name__}, which is not a table",
            allowed=_SOURCES,
            subject=Subject("table", schema.name),
            remedy=_FILE,
        )
    readings.check(schema, frame.types, frame.where)
    return frame.read(readings.kinds(schema))


def _count(source: Source) -> int:
    return postgres.count(source) if isinstance(source, PostgresTable) else count(source)


def _postgres(schema: Schema, address: str) -> PostgresTable:
    """A table in Postgres; an id is compared as it is read, so a number of any length is one by its digits."""
    found = postgres.opened(parsed(address), schema.name)
    person = _person(schema)
    types = {name: as_id(kind) if name == person else kind for name, kind in found.columns}
    readings.check(schema, types, str(found))
    return found.keeping(readings.kinds(schema), person)


def _person(schema: Schema) -> str | None:
    return schema.protect.id if isinstance(schema.protect, Person) else None


def _parquet(schema: Schema, source: Any) -> ParquetFiles:
    listed = source if isinstance(source, list | tuple) else [source]
    for path in listed:
        lowered = "" if is_address(str(path)) else str(path).lower()  # an address is refused below
        if lowered.endswith(_CSV):
            parquet = f"{Path(str(path)).name.partition('.')[0]}.parquet"
            raise SourceError(
                f"{str(path)!r} is a CSV file",
                allowed="A CSV is imported once, strictly, into a Parquet file",
                subject=Subject("file", str(path)),
                remedy=write(
                    f'pv.import_csv({str(path)!r}, "{parquet}", columns=...)',
                    terminal=f"privet import {shlex.quote(str(path))} -o {parquet}",
                    policy=f'source = "{parquet}"',
                    exact=True,
                ),
            )
        if lowered.endswith((".duckdb", ".ddb")):
            raise SourceError(
                f"{str(path)!r} is a database",
                subject=Subject("file", str(path)),
                remedy=write(
                    f"pv.duckdb_file({str(path)!r}, {schema.name!r})",
                    policy=f'source = {{ duckdb = "{path}", table = "{schema.name}" }}',
                    exact=True,
                ),
            )
    paths = paths_of(source)
    wanted = readings.kinds(schema)
    agreed: dict[str, StoredType] = {}
    with files.reader() as connection:
        for path in paths:
            types = parquet_types(connection, path)
            readings.check(schema, types, repr(path))
            mine = {name: types[name] for name in wanted}
            for name, kind in (agreed or mine).items():
                if mine[name] != kind:
                    raise SourceError(
                        f"column {name!r} is {kind.name} in {paths[0]!r}, but {mine[name].name} in {path!r}",
                        allowed="All files of a table have the same types",
                        subject=Subject("column", name, schema.name),
                        remedy=Remedy("Write the files with one schema"),
                    )
            agreed = mine
        _check_readable(connection, paths, agreed)
    return ParquetFiles(paths, tuple(agreed.items()), _person(schema))


def parquet_types(connection: Connection, path: str) -> dict[str, StoredType]:
    """The columns of a Parquet file, and their types."""
    try:
        return files.describe(connection, files.parquet([path]))
    except files.Unreadable:
        raise SourceError(
            f"{path!r} is not a readable Parquet file",
            allowed=_SOURCES,
            subject=Subject("file", path),
            remedy=_FILE,
        ) from None


def _check_readable(connection: Connection, paths: Sequence[str], types: Mapping[str, StoredType]) -> None:
    """Read what can fail to be read, once for each content of a file: a question would fail for the sake of one row."""
    unsure = [name for name in types if any(files.can_fail(connection, path, name, types[name]) for path in paths)]
    marks = [checked_files.marks(path, unsure, reader=files.version()) for path in paths]
    names = [name for name in unsure if not all(checked_files.is_known(each.get(name)) for each in marks)]
    if not names:
        return
    # reads every byte; a length or an extreme would be taken from elsewhere in the file
    hashes = ", ".join(f"bit_xor(hash({files.identifier(name)}))" for name in names)
    try:
        rows = f"SELECT {hashes} FROM {files.parquet(paths)}"
        interruptible(lambda: files.query(connection, rows), connection.interrupt)
    except files.Unreadable:
        raise SourceError(
            f"one of the columns {', '.join(names)} of {paths[0]!r}{' and others' if len(paths) > 1 else ''} can't be "
            "read: it is damaged, or contains bytes that are not UTF-8 text, or a time beyond all calendars",
            subject=Subject("file", paths[0]),
            remedy=Remedy("Write the file again"),
        ) from None
    for path, before in zip(paths, marks, strict=True):
        if before == checked_files.marks(path, unsure, reader=files.version()):  # it is still the same file
            checked_files.remember(before.values())


def _duckdb(schema: Schema, source: DuckDBFile) -> DuckDBFile:
    if not Path(source.path).is_file():
        raise SourceError(f"there is no file {source.path!r}", subject=Subject("file", source.path), remedy=_DATABASE)
    with files.reader() as connection:
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
    where = f"table {source.table!r} of {source.path!r}"
    readings.check(schema, types, where)
    chosen = tuple((name, types[name]) for name in readings.kinds(schema))
    return DuckDBFile(source.path, source.table, source.schema, chosen, _person(schema))
