"""Tables of tests, moved into a real Postgres: the same rows, as far as Postgres can hold them.

What it can't hold becomes what is read alike: a date beyond its calendar is infinite, and a text has no character 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from privet.engines.base import ParquetFiles
from privet.engines.postgres import tables
from privet.engines.postgres.addresses import parsed
from privet.engines.postgres.tables import PostgresTable
from privet.engines.postgres.types import identifier
from privet.sources import readings
from privet.tables.relation import Table
from privet.tables.schema import Schema

_NUMBERS = count(1)
_AT: list[str] = []
_LEAST, _MOST = -719_162 * 86_400_000_000, 2_932_896 * 86_400_000_000  # Python's calendar, in microseconds


@contextmanager
def at(server: str) -> Iterator[None]:
    """Where tables are moved to while this lasts."""
    _AT.append(server)
    try:
        yield
    finally:
        _AT.pop()


def execute(*statements: str) -> None:
    """Statements of the steward."""
    import psycopg

    with psycopg.connect(_AT[-1], autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        for sql in statements:
            connection.execute(sql.encode())


def moved(table: Table) -> Table:
    """The same table, in Postgres."""
    source: Any = table.source
    rows = pq.read_table(list(source.paths)) if isinstance(source, ParquetFiles) else source.rows
    return Table(table.schema, stored(table.schema, rows))


def stored(schema: Schema, rows: pa.Table) -> PostgresTable:
    """Rows as a table in Postgres, that is read as it is declared."""
    name = f"t{os.getpid()}_{next(_NUMBERS)}"
    written(name, rows)
    return opened(schema, name)


def opened(schema: Schema, name: str) -> PostgresTable:
    """A table that is there, with the columns that are declared."""
    wanted = list(readings.kinds(schema))
    return tables.opened(parsed(f"{_AT[-1]}#{name}"), "").keeping(wanted, getattr(schema.protect, "id", None))


def written(name: str, rows: pa.Table) -> None:
    """Make a table of these rows."""
    listed = ", ".join(f"{identifier(field.name)} {_type(field.type)[0]}" for field in rows.schema)
    execute(f'CREATE TABLE "{name}" ({listed})')
    filled(name, rows)


def filled(name: str, rows: pa.Table) -> None:
    """Add these rows to a table."""
    import psycopg

    values = [list(map(_type(field.type)[1], _plain(rows.column(field.name)))) for field in rows.schema]
    listed = ", ".join(identifier(field.name) for field in rows.schema)
    copying = f'COPY "{name}" ({listed}) FROM STDIN'.encode()
    with psycopg.connect(_AT[-1]) as connection, connection.cursor().copy(copying) as copy:
        for row in zip(*values, strict=True):
            copy.write_row(row)


def lose(engine: Any) -> None:
    """The tables of an engine are dropped."""
    if engine.name == "postgres":
        for stored_ in engine._tables.values():
            execute(f"DROP TABLE {stored_.name.rpartition(' FROM ')[2].rstrip(')')}")


def _plain(column: Any) -> Sequence[Any]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return list(column.to_pylist())
    if pa.types.is_date32(kind):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(kind):
        return [None if v is None else _micros(v, kind.unit) for v in column.cast(pa.int64()).to_pylist()]
    return list(column.to_pylist())


def _micros(value: int, unit: str) -> int:
    return value * {"s": 10**6, "ms": 10**3}.get(unit, 1) if unit != "ns" else value // 1000


def _type(kind: Any) -> tuple[str, Any]:
    is_ = pa.types
    if is_.is_dictionary(kind) or is_.is_string(kind) or is_.is_large_string(kind):
        return "text", lambda v: None if v is None else v.replace("\x00", "\x01")
    if is_.is_uint64(kind):
        return "numeric(20, 0)", _text
    if is_.is_integer(kind):
        return {8: "smallint", 16: "integer", 32: "bigint", 64: "bigint"}[kind.bit_width], _text
    if is_.is_floating(kind):
        return ("real" if kind.bit_width == 32 else "double precision"), _text
    if is_.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})", _text
    if is_.is_boolean(kind):
        return "boolean", _text
    if is_.is_date(kind):
        return "date", lambda v: None if v is None else _moment(v * 86_400_000_000).partition(" ")[0]
    if is_.is_timestamp(kind):
        zone = "timestamp with time zone" if kind.tz else "timestamp"
        return (
            zone,
            lambda v: None if v is None else _moment(v) + ("+00" if kind.tz and "inf" not in _moment(v) else ""),
        )
    return "text", _text


def _text(value: Any) -> str | None:
    return None if value is None else repr(value) if isinstance(value, float) else str(value)


def _moment(micros: int) -> str:
    if not _LEAST <= micros < _MOST:
        return "-infinity" if micros < 0 else "infinity"
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(" ")
