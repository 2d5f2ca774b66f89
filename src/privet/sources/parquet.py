"""Parquet as a source: files on this machine, or objects in a store, checked before any session exists."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from privet.engines import object_store
from privet.engines.base import ParquetFiles, ParquetObjects
from privet.engines.duckdb import files, object_files
from privet.engines.duckdb.files import Connection
from privet.engines.unchanged import Checked, states
from privet.errors import Remedy, SourceError, Subject, write
from privet.privacy.adjacency import Person
from privet.sources import checked_files, readings
from privet.sources.object_paths import objects_of
from privet.sources.paths import paths_of
from privet.system.addresses import is_address
from privet.system.interrupts import interruptible
from privet.system.object_addresses import is_object_address
from privet.tables.schema import Schema
from privet.tables.stored_types import StoredType

_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_DATABASE = (".duckdb", ".ddb")
SOURCES = (
    "A source is a path to Parquet files, a pandas, Polars, Arrow or Ibis table, a table of a DuckDB file, or the "
    "address of a table in Postgres or Spark"
)
FILE = write('pv.table("people", "people.parquet", ...)', policy='source = "people.parquet"')

_KEPT = 64 * 2**20
"""Bytes of footers of objects that a table keeps, so that a question need not fetch them; if they are more, none."""

Marks = Callable[[str, Sequence[str]], dict[str, str]]


def person_of(schema: Schema) -> str | None:
    """The column that identifies the person."""
    return schema.protect.id if isinstance(schema.protect, Person) else None


def source_of(schema: Schema, source: Any) -> ParquetFiles | ParquetObjects:
    """The files or objects that a path, an address, a pattern or a list of them names, if they match the schema."""
    listed = source if isinstance(source, list | tuple) else [source]
    if any(is_object_address(str(each)) for each in listed):
        return _objects(schema, source)
    for path in listed:
        _refuse_others(schema.name, str(path))
    paths = paths_of(source)
    before = states(paths)
    agreed = _checked(schema, paths)
    check = Checked(partial(_are_as_before, schema, paths, agreed), paths, before)
    return ParquetFiles(paths, tuple(agreed.items()), person_of(schema), check)


def _are_as_before(schema: Schema, paths: Sequence[str], agreed: Mapping[str, StoredType]) -> bool:
    """Whether files that were replaced have the types they had, and nothing in them makes a question fail."""
    try:
        return _checked(schema, paths) == agreed
    except SourceError:
        return False


def _checked(schema: Schema, paths: Sequence[str]) -> dict[str, StoredType]:
    """The columns that are read and their types, the same in all files; whatever they contain can be read."""
    named = {path: path for path in paths}
    with files.glance() as connection:
        agreed = _agreed(connection, schema, named)
        _check_readable(connection, named, agreed, _marks_of_file)
    return agreed


def _objects(schema: Schema, source: Any) -> ParquetObjects:
    objects = object_store.register(objects_of(source))
    parts = ParquetObjects(objects, (), None)
    paths = {str(each.address): path for each, path in zip(objects, parts.files(), strict=True)}
    by_address = {str(each.address): each for each in objects}

    def marks(address: str, columns: Sequence[str]) -> dict[str, str]:
        known = by_address[address]
        return checked_files.object_marks(address, known.tag, known.end, columns, reader=files.version())

    with files.reader() as connection:
        object_files.provide(connection, parts)
        try:
            agreed = _agreed(connection, schema, paths)
            _check_readable(connection, paths, agreed, marks)
        except SourceError:
            object_store.check_at_registration(objects)  # the store may be the reason
            raise
    few = sum(len(each.end) for each in objects) <= _KEPT
    kept = objects if few else tuple(replace(each, end=b"") for each in objects)
    return ParquetObjects(kept, tuple(agreed.items()), person_of(schema))


def object_types(address: str) -> dict[str, StoredType]:
    """The columns of the first object that an address names, and their types."""
    objects = object_store.register(objects_of(address)[:1])
    source = ParquetObjects(objects, (), None)
    with files.reader() as connection:
        object_files.provide(connection, source)
        return parquet_types(connection, source.files()[0], str(objects[0].address))


def _refuse_others(table: str, path: str) -> None:
    lowered = "" if is_address(path) else path.lower()  # an address is refused later
    if lowered.endswith(_CSV):
        parquet = f"{Path(path).name.partition('.')[0]}.parquet"
        raise SourceError(
            f"{path!r} is a CSV file",
            allowed="A CSV is imported once, strictly, into a Parquet file",
            subject=Subject("file", path),
            remedy=write(
                f'pv.import_csv({path!r}, "{parquet}", columns=...)',
                terminal=f"privet import {shlex.quote(path)} -o {parquet}",
                policy=f'source = "{parquet}"',
                exact=True,
            ),
        )
    if lowered.endswith(_DATABASE):
        raise SourceError(
            f"{path!r} is a database",
            subject=Subject("file", path),
            remedy=write(
                f"pv.duckdb_file({path!r}, {table!r})",
                policy=f'source = {{ duckdb = "{path}", table = "{table}" }}',
                exact=True,
            ),
        )


def _agreed(connection: Connection, schema: Schema, paths: Mapping[str, str]) -> dict[str, StoredType]:
    """The types of the columns that are read, the same in all of these files; by name, where each is."""
    wanted = readings.kinds(schema)
    agreed: dict[str, StoredType] = {}
    first = next(iter(paths))
    for name, path in paths.items():
        types = parquet_types(connection, path, name)
        readings.check(schema, types, repr(name))
        mine = {column: types[column] for column in wanted}
        for column, kind in (agreed or mine).items():
            if mine[column] != kind:
                raise SourceError(
                    f"column {column!r} is {kind.name} in {first!r}, but {mine[column].name} in {name!r}",
                    allowed="All files of a table have the same types",
                    subject=Subject("column", column, schema.name),
                    remedy=Remedy("Write the files with one schema"),
                )
        agreed = mine
    return agreed


def parquet_types(connection: Connection, path: str, name: str = "") -> dict[str, StoredType]:
    """The columns of a Parquet file, and their types."""
    try:
        return files.describe(connection, files.parquet([path]))
    except files.Unreadable:
        raise SourceError(
            f"{name or path!r} is not a readable Parquet file",
            allowed=SOURCES,
            subject=Subject("file", name or path),
            remedy=FILE,
        ) from None


def _marks_of_file(path: str, columns: Sequence[str]) -> dict[str, str]:
    return checked_files.marks(path, columns, reader=files.version())


def _check_readable(
    connection: Connection, paths: Mapping[str, str], types: Mapping[str, StoredType], marks_of: Marks
) -> None:
    """Read what can fail to be read, once for each content of a file: a question would fail for the sake of one row."""
    unsure = [
        column
        for column in types
        if any(files.can_fail(connection, path, column, types[column]) for path in paths.values())
    ]
    marks = {name: marks_of(name, unsure) for name in paths}
    columns = [
        column for column in unsure if not all(checked_files.is_known(each.get(column)) for each in marks.values())
    ]
    if not columns:
        return
    # reads every byte; a length or an extreme would be taken from elsewhere in the file
    hashes = ", ".join(f"bit_xor(hash({files.identifier(column)}))" for column in columns)
    try:
        rows = f"SELECT {hashes} FROM {files.parquet(paths.values())}"
        with files.every_core(connection):
            interruptible(lambda: files.query(connection, rows), connection.interrupt)
    except files.Unreadable:
        first = next(iter(paths))
        raise SourceError(
            f"one of the columns {', '.join(columns)} of {first!r}{' and others' if len(paths) > 1 else ''} can't be "
            "read: it is damaged, or contains bytes that are not UTF-8 text, or a time beyond all calendars",
            subject=Subject("file", first),
            remedy=Remedy("Write the file again"),
        ) from None
    for name, before in marks.items():
        if before == marks_of(name, unsure):  # it is still the same file
            checked_files.remember(before.values())
