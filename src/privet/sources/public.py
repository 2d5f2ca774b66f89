"""Public tables and lists of keys: known to everybody, so their types and ranges are taken from their contents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from privet.engines.base import ArrowRows
from privet.engines.duckdb.files import Unreadable, read_public
from privet.errors import Remedy, SourceError, Subject, UserError, write
from privet.exact import Exact, binary
from privet.names.required import needs
from privet.sources import frames, readings
from privet.sources.paths import paths_of
from privet.sources.readings import Reading
from privet.system.encodings import text_of, why_not
from privet.system.identity import of_files
from privet.tables.kinds import INTEGER, TEXT, usual
from privet.tables.relation import PublicTable
from privet.tables.schema import Column, PublicSchema, check_name, keys
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type

MOST_ROWS = 1_000_000
"""How many rows a public table may have."""

MOST_KEYS = 10_000
"""How many different texts of a public column may be keys."""

_REACH = 2.0**500
_TABLE = write(
    'pv.public_table("regions", "regions.parquet", key="region")',
    policy='regions = { source = "regions.parquet", key = "region" }',
)
_KEYS = write(
    'pv.keys_from("regions.parquet", "region", other="elsewhere")',
    policy='{ keys_from = "regions.csv", column = "region" }',
)


@needs('pv.public_table("regions", "regions.csv", key="region")')
def public_table(name: str, source: Any, *, key: str) -> PublicTable:
    """A public table to join with on its unique key: a path to Parquet or CSV, or a frame; read at once, and kept.

    Numbers have the range that they have, texts are keys if there are at most 10,000 different ones. Columns of other
    types (lists, bytes, mixed objects) are left out.

    Example:
        >>> import pyarrow as pa
        >>> regions = public_table("regions", pa.table({"region": ["n", "s"], "people": [7, 9]}), key="region")
        >>> [f"{column}: {kind}" for column, kind in regions.schema.columns]
        ['region: one of 2 keys', 'people: an integer in 7..9']
    """
    check_name(name, "table")
    columns = _read(source)
    if key not in columns.types:
        raise readings.missing_column(key, list(columns.types), columns.where, Subject("key", key, name), _TABLE)
    chosen = {column: reading for column in columns.types if (reading := _reading(columns, column)) is not None}
    if chosen.get(key) not in ("integer", "text", "boolean", "date", "timestamp"):
        held = columns.types[key].name
        raise SourceError(
            f"the key {key!r} of {name!r} contains {held}",
            allowed="A key contains integers, texts, dates or booleans",
            subject=Subject("key", key, name),
        )
    for column in chosen:
        check_name(column, "column")
    folded = {column.casefold() for column in chosen}
    if len(folded) < len(chosen):
        raise SourceError(
            f"two columns of {name!r} differ only in capital letters",
            subject=Subject("table", name),
            remedy=Remedy("Rename one of them"),
        )
    frame = columns.read(chosen)
    rows = frame.rows
    if rows.num_rows > MOST_ROWS:
        raise SourceError(
            f"{name!r} has {rows.num_rows:,} rows",
            allowed=f"A public table has at most {MOST_ROWS:,}",
            subject=Subject("table", name),
        )
    if rows.num_rows == 0:
        raise SourceError(f"{name!r} has no rows, so nothing can be joined with it", subject=Subject("table", name))
    _unique(name, key, rows.column(key).to_pylist())
    typed: dict[str, Type] = {}
    for column, kind in chosen.items():
        typed[column] = _typed(rows.column(column), column, kind)
    rows = rows.sort_by(key)
    schema = PublicSchema(name, key, tuple(typed.items()), _digest(rows))
    return PublicTable(schema, ArrowRows(rows, frame.identities))


def keys_from(source: Any, column: str, *, other: str | int | None = None, within: str | None = None) -> Column:
    """Keys from a column of a public file or frame: each value once, in order of appearance.

    With `within`, the file also has a column of that name: the key of that column in which each of these lies.

    Example:
        >>> import pyarrow as pa
        >>> keys_from(pa.table({"region": ["south", "north", None, "south"]}), "region").type.keys()
        ('south', 'north')
    """
    columns = _read(source)
    wanted: dict[str, readings.Reading] = {}
    for each in (column,) if within is None else (column, within):
        if each not in columns.types:
            raise readings.missing_column(each, list(columns.types), columns.where, line=_KEYS)
        kind = columns.types[each]
        if kind.family not in ("integer", "text"):
            raise SourceError(
                f"column {each!r} of {columns.where} contains {kind.name}",
                allowed="Keys are texts or integers",
                subject=Subject("column", each),
                remedy=_KEYS,
            )
        wanted[each] = "key" if kind.family == "integer" else "text"
    read = columns.read(wanted)
    values = [value for value in read.rows.column(column).unique().to_pylist() if value is not None]
    if not 1 <= len(values) <= MOST_KEYS:
        raise SourceError(
            f"column {column!r} of {columns.where} has {len(values):,} keys",
            allowed=f"1 to {MOST_KEYS:,} are allowed",
            subject=Subject("column", column),
        )
    if within is None:
        return replace(keys(*values, other=other), public=read.identities)
    pairs = dict.fromkeys(zip(*(read.rows.column(each).to_pylist() for each in (within, column)), strict=True))
    return replace(keys(_by_parent(pairs, column, columns.where), other=other, within=within), public=read.identities)


def _by_parent(pairs: Iterable[tuple[Any, Any]], column: str, where: str) -> dict[Any, list[Any]]:
    """The keys of each parent; each key has one."""
    parents: dict[Any, Any] = {}
    for parent, value in pairs:
        if value is None:
            continue
        if parent is None or parents.setdefault(value, parent) != parent:
            raise SourceError(
                f"column {column!r} of {where} has {value!r} {'in nothing' if parent is None else 'in two keys'}",
                allowed="Each key lies in one key of the other column",
                subject=Subject("column", column),
            )
    found: dict[Any, list[Any]] = {}
    for value, parent in parents.items():
        found.setdefault(parent, []).append(value)
    return found


def _read(source: Any) -> frames.Columns:
    """The columns of a public file or frame, as a frame."""
    if isinstance(source, str | Path | list | tuple):
        paths = paths_of(source)
        where = repr(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        return _file(paths, where)
    columns = frames.columns(source)
    if columns is None:
        raise SourceError(
            f"a public table is a path to Parquet or CSV, or a frame, not {type(source).__name__}", remedy=_TABLE
        )
    return frames.settled(columns)


def _file(paths: tuple[str, ...], where: str) -> frames.Columns:
    csv = all(Path(path).suffix.lower() in (".csv", ".tsv") for path in paths)
    try:
        table = read_public(paths, csv=csv, most=MOST_ROWS + 1)
    except Unreadable as error:
        for path in paths if csv else ():
            _check_encoding(path)
        told = str(error).splitlines()[0][:200]
        raise SourceError(
            f"{where} can't be read as {'CSV' if csv else 'Parquet'} ({told})",
            subject=Subject("file", paths[0]),
            remedy=_TABLE,
        ) from None
    columns = frames.columns(table)
    assert columns is not None
    return replace(columns, where=where, identities=of_files(paths))


def _check_encoding(path: str) -> None:
    raw = Path(path).read_bytes()
    try:
        text_of(raw)
    except UnicodeDecodeError:
        line, why = why_not(raw, path)
        raise SourceError(f"{path}, line {line}: {why}", subject=Subject("file", path)) from None


def _reading(columns: frames.Columns, column: str) -> Reading | None:
    """How a public column is read, None if it is left out: integers beyond 2^62 as floats."""
    import pyarrow.compute as pc

    family = columns.types[column].family
    kind = TEXT if family == "nothing" else usual(family)
    if kind is INTEGER:
        ends = pc.min_max(columns.frame.column(column)).as_py()
        if ends["min"] is not None and max(-ends["min"], ends["max"]) > 2**62:
            return "number"
    return None if kind is None else readings.reading_of(kind.name)


def _unique(name: str, key: str, values: list[Any]) -> None:
    seen: set[Any] = set()
    for value in values:
        if value is None:
            raise SourceError(
                f"the key {key!r} of {name!r} is missing in a row",
                allowed="Every row needs one",
                subject=Subject("key", key, name),
            )
        if value in seen:
            raise SourceError(
                f"the key {key!r} of {name!r} has {value!r} twice",
                allowed="A key must be unique, or a join would multiply rows",
                subject=Subject("key", key, name),
            )
        seen.add(value)


def _typed(values: Any, column: str, kind: Reading) -> Type:
    """The type of a public column: its range, and whether something is missing."""
    import pyarrow.compute as pc

    missing = values.null_count > 0
    if kind == "boolean":
        return BooleanType(missing)
    if kind == "text":
        return _texts(values, missing)
    ends = pc.min_max(values).as_py()
    first, last = ends["min"], ends["max"]
    if kind in ("date", "timestamp"):
        if first is None:
            first = last = datetime(2000, 1, 1) if kind == "timestamp" else date(2000, 1, 1)
        return TimeType(_within(first, column), _within(last, column), missing=missing)
    if first is None:
        return NumberType(Exact(0), Exact(0), integer=kind == "integer", missing=True)
    if kind == "integer":
        return NumberType(Exact(first), Exact(last), integer=True, missing=missing)
    if max(-first, last) > _REACH:
        raise SourceError(
            f"column {column!r} has a number beyond 2^500",
            subject=Subject("column", column),
            remedy=Remedy("Leave it out, or use another unit"),
        )
    return NumberType(binary(first), binary(last), missing=missing)


def _within(moment: date, column: str) -> date:
    if 2 <= moment.year <= 9000:
        return moment
    raise SourceError(
        f"column {column!r} has a date in the year {moment.year}",
        allowed="The years 2 to 9000 are allowed",
        subject=Subject("column", column),
    )


def _texts(values: Any, missing: bool) -> Type:
    different = [value for value in values.unique().to_pylist() if value is not None]
    if 1 <= len(different) <= MOST_KEYS:
        try:
            keys(*different)
        except UserError:  # longer than a key, or not printable
            return TextType(missing)
        return KeyType(tuple(sorted(different)), missing=missing)
    return TextType(missing)


def _digest(rows: Any) -> str:
    """A hash of the names, the types and the values of all columns, in the order of the key."""
    hashed = hashlib.sha256()
    for field in rows.schema:
        hashed.update(json.dumps([field.name, str(field.type)]).encode())
        values = rows.column(field.name).to_pylist()
        hashed.update(json.dumps(values, default=str, allow_nan=False).encode())
    return hashed.hexdigest()
