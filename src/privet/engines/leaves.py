"""A column of a source, read as it is declared: a total function of the declared type and the source's type.

Claim: whatever a row holds, reading it raises no error and gives a value in the declared range, or NULL (missing). As a
value, a number or a date out of its range is clamped to it; as a key (mode "key"), it is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Literal

from privet.engines import numbers
from privet.engines.classes import as_double, as_integer, class_of
from privet.engines.sql import Context, Kind, Value, integer, moment
from privet.errors import SourceError
from privet.exact import Exact
from privet.tables.schema import Column
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType


@dataclass(frozen=True, slots=True)
class Lattice:
    """How a number is read for a sum: as its code 0..width, from `lower` in steps of `step`."""

    lower: Exact
    step: Exact
    width: int


@dataclass(frozen=True, slots=True)
class Test:
    """Whether n, the integer of a number, compares with a public one: n < k and the like."""

    operator: str
    k: int


Mode = Literal["value", "key", "index", "text"]
"""How a column is read: its value, its value as a key, the number of its key, counted from 0, or its text as it is."""


def read(column: Column, source: str, sql: str, mode: Mode, context: Context) -> Value:
    """The SQL that reads one column; `sql` is its quoted name. A number is read as n, in the unit of its type."""
    found: Value | None
    match column.type:
        case NumberType() as kind:
            found = numbers.read(kind, column.default, source, sql, keyed=mode == "key")
        case BooleanType():
            found = _boolean(column.default, source, sql)
        case KeyType() as kind:
            found = _key(kind, source, sql, mode, context)
        case TextType():
            found = Value(_text(source, sql), "text")
        case TimeType() as kind:
            found = _time(kind, source, sql, mode)
    if found is None:
        raise SourceError(f"a column of type {source.split('(')[0]} can't be read as {column.type}")
    return found


def read_code(column: Column, source: str, sql: str, wanted: Lattice) -> Value | None:
    """The code of a column on the grid it is read on, from the source's value at once; None for another lattice."""
    if not isinstance(column.type, NumberType):
        return None
    grid = numbers.Grid.of(column.type)
    if (grid.base, grid.step, grid.width) != (wanted.lower, wanted.step, wanted.width):
        return None
    return numbers.read_code(column.type, column.default, source, sql)


def compare_raw(column: Column, source: str, sql: str, test: Test) -> Value | None:
    """How a column compares with a constant, asked of the source's own value; None where that might differ.

    Claim: for every value of the source (NULL, NaN and infinities among them) this is what n compares as. Clamping
    moves a value to an end of the range, so only a comparison with an end can tell what was clamped from what was not.
    """
    kind, k = column.type, test.k
    if column.default is not None or not isinstance(kind, NumberType) or not kind.least < k < kind.most:
        return None
    operator = {"==": "=", "!=": "<>"}.get(test.operator, test.operator)
    if class_of(source) in ("signed", "unsigned") and kind.unit == 1 and kind.integer and kind.step in (None, 1):
        return Value(f"({sql} {operator} {integer(k)})", "boolean")
    if source.strip().upper() == "DOUBLE" and test.operator in ("<", "<=", ">", ">="):
        edge = numbers.edge(kind, k if test.operator in ("<", ">=") else k + 1)
        if edge is not None:  # n >= k from here on, n < k below; DuckDB says that NaN is greater than every number
            below = test.operator in ("<", "<=")
            return Value(f"CASE WHEN NOT isnan({sql}) THEN {sql} {'<' if below else '>='} {edge} END", "boolean")
    return None


def _or_default(sql: str, default: str | None) -> str:
    return sql if default is None else f"COALESCE({sql}, {default})"


# --- booleans, keys, texts ----------------------------------------------------------------------


def _boolean(default: Exact | bool | None, source: str, sql: str) -> Value | None:
    match class_of(source):
        case "boolean":
            found = sql
        case "text":
            found = f"TRY_CAST({sql} AS BOOLEAN)"
        case "signed" | "unsigned" | "huge" | "float" | "decimal":
            d = as_double(source, sql)
            found = f"CASE WHEN {d} = 1e0 THEN true WHEN {d} = 0e0 THEN false END"
        case _:
            return None
    return Value(_or_default(found, None if default is None else str(bool(default)).lower()), "boolean")


def _text(source: str, sql: str) -> str:
    """A text, which is equal to another one if their bytes are: a collation that the column may have ends here."""
    return f"({sql} COLLATE C)" if class_of(source) == "text" else f"TRY_CAST({sql} AS VARCHAR)"


def _key(kind: KeyType, source: str, sql: str, mode: Mode, context: Context) -> Value | None:
    if kind.textual:
        found = Value(_text(source, sql), "text")
    else:
        t, d = as_integer(source, sql), as_double(source, sql)
        if t is None:
            return None
        whole = class_of(source) in ("signed", "unsigned", "huge", "boolean")
        # What is no whole number, or too large, is no key; 2^62 + 1 stands for all of these.
        other = f"WHEN NOT isnan({d}) THEN {2**62 + 1}::BIGINT"
        found = Value(
            f"CASE WHEN {t if whole else f'floor({d}) = {d} AND {t}'} IS NOT NULL THEN {t} {other} END", "integer"
        )
    if mode == "text":
        return found
    if mode == "index":
        return indexed(kind, found, context)
    at = number_of(kind, found, context)
    known = f"CASE WHEN {at} IS NOT NULL THEN {found.sql}"
    if kind.other is None:
        return Value(f"{known} END", found.kind)
    other = context.bind(kind.other) if isinstance(kind.other, str) else integer(kind.other)
    return Value(f"{known} WHEN {found.sql} IS NOT NULL THEN {other} END", found.kind)


def indexed(kind: KeyType, value: Value, context: Context) -> Value:
    """The number of a key, counted from 0, that of `other` the last; NULL for what is none."""
    at = number_of(kind, value, context)
    if kind.other is not None:
        at = f"CASE WHEN {at} IS NOT NULL THEN {at} WHEN {value.sql} IS NOT NULL THEN {len(kind.values)} END"
    return Value(at, "integer")


def number_of(kind: KeyType, value: Value, context: Context) -> str:
    """Which of the listed values it is, counted from 0; NULL if none."""
    values = kind.values
    if isinstance(values[0], int) and values == tuple(range(values[0], values[0] + len(values))):
        first, last = integer(values[0]), integer(values[0] + len(values) - 1)
        return f"CASE WHEN {value.sql} BETWEEN {first} AND {last} THEN TRY_CAST({value.sql} - {first} AS INTEGER) END"
    text = value.sql if value.kind == "text" else f"CAST({value.sql} AS VARCHAR)"
    return f"enum_code(TRY_CAST({text} AS {context.enum(tuple(map(str, values)))}))"


# --- dates --------------------------------------------------------------------------------------


def _time(kind: TimeType, source: str, sql: str, mode: Mode) -> Value | None:
    held: Kind = "time" if kind.timed else "date"
    target = "TIMESTAMP" if kind.timed else "DATE"
    first, last = moment(kind.first), moment(kind.last)
    match class_of(source):
        case "date" if not kind.timed:
            value = sql
        case "date" | "time" | "text":
            value = sql if source.strip().upper() == target else f"TRY_CAST({sql} AS {target})"
        case "zoned":
            return _zoned(kind, sql, mode)
        case _:
            return None
    sides = "" if mode == "key" else f" WHEN {value} < {first} THEN {first} WHEN {value} > {last} THEN {last}"
    return Value(f"CASE WHEN {value} BETWEEN {first} AND {last} THEN {value}{sides} END", held)


def _zoned(kind: TimeType, sql: str, mode: Mode) -> Value:
    """A timestamp with a zone is an instant: compared as one, and read in UTC only where it is in range."""
    start = datetime.combine(kind.first, time()) if not isinstance(kind.first, datetime) else kind.first
    end = (
        kind.last
        if isinstance(kind.last, datetime)
        else datetime.combine(kind.last, time()) + timedelta(days=1, microseconds=-1)
    )
    first, last = (f"TIMESTAMPTZ '{at.isoformat(' ', 'microseconds')}+00'" for at in (start, end))
    inside = f"make_timestamp(CASE WHEN {sql} BETWEEN {first} AND {last} THEN epoch_us({sql}) END)"
    if not kind.timed:
        inside = f"TRY_CAST({inside} AS DATE)"
    clamped = f" WHEN {sql} < {first} THEN {moment(kind.first)} WHEN {sql} > {last} THEN {moment(kind.last)}"
    sides = "" if mode == "key" else clamped
    return Value(
        f"CASE WHEN {sql} BETWEEN {first} AND {last} THEN {inside}{sides} END", "time" if kind.timed else "date"
    )


# --- who a row belongs to -----------------------------------------------------------------------


def person_id(source: str, sql: str, *, shared: bool) -> str:
    """The id of a person, NULL if there is none; `shared`: as a text that ids of other types can be compared with."""
    kind = class_of(source)
    if kind == "float":
        found = f"CASE WHEN NOT isnan({sql}) THEN {sql} + 0e0 END"
        if not shared:
            return found
        d = f"TRY_CAST({sql} AS DOUBLE)"
        whole = f"{d} = floor({d}) AND abs({d}) < 1e18"
        as_whole = f"TRY_CAST(TRY_CAST({d} AS BIGINT) AS VARCHAR)"
        return f"CASE WHEN {whole} THEN {as_whole} ELSE TRY_CAST({found} AS VARCHAR) END"
    if kind == "text":
        return _text(source, sql)
    if shared or kind in ("enum", "other"):
        return f"TRY_CAST({sql} AS VARCHAR)"
    return sql


def id_class(source: str) -> str:
    """Ids of the same class are compared as they are."""
    kind = class_of(source)
    if kind in ("signed", "unsigned"):
        return "BIGINT"
    return "text" if kind in ("text", "enum", "other") else source.strip().upper()
