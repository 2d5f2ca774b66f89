"""A column of a source, read as it is declared: a total function of the declared type and the source's type.

Claim: whatever a row holds, reading it raises no error and gives a value in the declared range, or NULL (missing). As a
value, a number or a date out of its range is clamped to it; as a key (mode "key"), it is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date as Date
from datetime import datetime, time, timedelta
from typing import Literal

from privet.engines.base import Unsupported
from privet.engines.sql import numbers
from privet.engines.sql.casts import NUMBERS, as_double, as_integer, within_precision
from privet.engines.sql.dialect import Dialect
from privet.engines.sql.text import Context, Value
from privet.exact import Exact
from privet.tables.schema import Column
from privet.tables.stored_types import StoredType
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType

_DAY = timedelta(days=1)


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


def read(column: Column, stored: StoredType, sql: str, mode: Mode, context: Context) -> Value:
    """The SQL that reads one column; `sql` is its quoted name. A number is read as n, in the unit of its type."""
    value: Value | None
    dialect = context.dialect
    sql = within_precision(stored, sql)
    match column.type:
        case NumberType() as kind:
            value = numbers.read(dialect, kind, column.default, stored, sql, keyed=mode == "key")
        case BooleanType():
            value = _boolean(dialect, column.default, stored, sql)
        case KeyType() as kind:
            value = _key(kind, stored, sql, mode, context)
        case TextType():
            value = Value(_text(dialect, stored, sql), "text")
        case TimeType() as kind:
            value = _time(dialect, kind, stored, sql, mode)
    if value is None:
        raise Unsupported(f"a column of type {stored.name} can't be read as {column.type}")
    return value


def read_code(dialect: Dialect, column: Column, stored: StoredType, sql: str, wanted: Lattice) -> Value | None:
    """The code of a column on the grid it is read on, from the source's value at once; None for another lattice."""
    if not isinstance(column.type, NumberType):
        return None
    grid = numbers.Grid.of(column.type)
    if (grid.base, grid.step, grid.width) != (wanted.lower, wanted.step, wanted.width):
        return None
    return numbers.read_code(dialect, column.type, column.default, stored, within_precision(stored, sql))


def compare_raw(dialect: Dialect, column: Column, stored: StoredType, sql: str, test: Test) -> Value | None:
    """How a column compares with a constant, asked of the source's own value; None where that might differ.

    Claim: for every value of the source (NULL, NaN and infinities among them) this is what n compares as. Clamping
    moves a value to an end of the range, so only a comparison with an end can tell what was clamped from what was not.
    """
    kind, k = column.type, test.k
    if column.default is not None or not isinstance(kind, NumberType) or not kind.least < k < kind.most:
        return None
    operator = {"==": "=", "!=": "<>"}.get(test.operator, test.operator)
    if stored.fits_int64 and kind.unit == 1 and kind.integer and kind.step in (None, 1):
        return Value(f"({sql} {operator} {dialect.integer(k)})", "boolean")
    if stored.is_float64 and test.operator in ("<", "<=", ">", ">="):
        edge = numbers.edge(dialect, kind, k if test.operator in ("<", ">=") else k + 1)
        if edge is not None:  # n >= k from here on, n < k below; to a database NaN may be greater than every number
            below = test.operator in ("<", "<=")
            known = f"{sql} {'<' if below else '>='} {edge}"
            return Value(f"CASE WHEN NOT {dialect.is_nan(sql)} THEN {known} END", "boolean")
    return None


def _or_default(sql: str, default: str | None) -> str:
    return sql if default is None else f"COALESCE({sql}, {default})"


# --- booleans, keys, texts ----------------------------------------------------------------------


def _boolean(dialect: Dialect, default: Exact | bool | None, stored: StoredType, sql: str) -> Value | None:
    if stored.family == "boolean":
        truth = sql
    elif stored.family == "text" and not stored.enumerated:
        truth = dialect.try_cast(sql, dialect.boolean, stored)
    elif stored.family in NUMBERS:
        d = as_double(dialect, stored, sql)
        truth = f"CASE WHEN {d} = {dialect.float(1)} THEN true WHEN {d} = {dialect.float(0)} THEN false END"
    else:
        return None
    return Value(_or_default(truth, None if default is None else str(bool(default)).lower()), "boolean")


def _text(dialect: Dialect, stored: StoredType, sql: str) -> str:
    """A text, which is equal to another one if their bytes are: a collation that the column may have ends here."""
    plain = stored.family == "text" and not stored.enumerated
    return dialect.bytewise(sql) if plain else dialect.try_cast(sql, dialect.text, stored)


def _key(kind: KeyType, stored: StoredType, sql: str, mode: Mode, context: Context) -> Value | None:
    dialect = context.dialect
    if kind.textual:
        key = Value(_text(dialect, stored, sql), "text")
    else:
        t, d = as_integer(dialect, stored, sql), as_double(dialect, stored, sql)
        if t is None or d is None:
            return None
        whole = stored.family in ("integer", "boolean")
        # What is not a whole number, or is too large, is not a key; 2^62 + 1 represents all of these.
        other = f"WHEN NOT {dialect.is_nan(d)} THEN {dialect.integer(2**62 + 1, 'narrow')}"
        key = Value(
            f"CASE WHEN {t if whole else f'{dialect.is_whole(d)} AND {t}'} IS NOT NULL THEN {t} {other} END", "integer"
        )
    if mode == "text":
        return key
    if mode == "index":
        return indexed(kind, key, context)
    at = number_of(kind, key, context)
    known = f"CASE WHEN {at} IS NOT NULL THEN {key.sql}"
    if kind.other is None:
        return Value(f"{known} END", key.kind)
    other = context.bind(kind.other) if isinstance(kind.other, str) else dialect.integer(kind.other)
    return Value(f"{known} WHEN {key.sql} IS NOT NULL THEN {other} END", key.kind)


def indexed(kind: KeyType, value: Value, context: Context) -> Value:
    """The number of a key, counted from 0, that of `other` the last; NULL for what is none."""
    at = number_of(kind, value, context)
    if kind.other is not None:
        at = f"CASE WHEN {at} IS NOT NULL THEN {at} WHEN {value.sql} IS NOT NULL THEN {len(kind.values)} END"
    return Value(at, "integer")


def number_of(kind: KeyType, value: Value, context: Context) -> str:
    """Which of the listed values it is, counted from 0; NULL if none."""
    dialect, values = context.dialect, kind.values
    if isinstance(values[0], int) and values == tuple(range(values[0], values[0] + len(values))):
        first, last = dialect.integer(values[0]), dialect.integer(values[0] + len(values) - 1)
        place = dialect.try_cast(f"{value.sql} - {first}", dialect.small)
        return f"CASE WHEN {value.sql} BETWEEN {first} AND {last} THEN {place} END"
    text = value.sql if value.kind == "text" else dialect.cast(value.sql, dialect.text)
    return dialect.place(text, tuple(map(str, values)), context)


# --- dates --------------------------------------------------------------------------------------


def _time(dialect: Dialect, kind: TimeType, stored: StoredType, sql: str, mode: Mode) -> Value | None:
    held: Literal["time", "date"] = "time" if kind.timed else "date"
    first, last = dialect.moment(kind.first), dialect.moment(kind.last)
    if stored.zoned:
        return _zoned(dialect, kind, sql, mode)
    if stored.enumerated or stored.family not in ("date", "timestamp", "text"):
        return None
    if isinstance(kind.first, datetime) and stored.family == "date":
        sql = _near(dialect, kind, sql)
    same = stored.family == "date" if held == "date" else stored.family == "timestamp" and stored.unit == "us"
    value = sql if same else dialect.try_cast(sql, dialect.moments[held], stored)
    sides = "" if mode == "key" else f" WHEN {value} < {first} THEN {first} WHEN {value} > {last} THEN {last}"
    return Value(f"CASE WHEN {value} BETWEEN {first} AND {last} THEN {value}{sides} END", held)


def _near(dialect: Dialect, kind: TimeType, sql: str) -> str:
    """A date, moved to at most a day outside of a range of timestamps: dates further away have no timestamp."""
    low, high = (dialect.moment(Date(end.year, end.month, end.day)) for end in (kind.first - _DAY, kind.last + _DAY))
    return f"CASE WHEN {sql} < {low} THEN {low} WHEN {sql} > {high} THEN {high} ELSE {sql} END"


def _zoned(dialect: Dialect, kind: TimeType, sql: str, mode: Mode) -> Value:
    """A timestamp with a zone is an instant: compared as one, and read in UTC only where it is in range."""
    start = datetime.combine(kind.first, time()) if not isinstance(kind.first, datetime) else kind.first
    end = (
        kind.last
        if isinstance(kind.last, datetime)
        else datetime.combine(kind.last, time()) + timedelta(days=1, microseconds=-1)
    )
    first, last = dialect.instant(start), dialect.instant(end)
    inside = dialect.in_utc(sql, f"{sql} BETWEEN {first} AND {last}")
    if not kind.timed:
        inside = dialect.try_cast(inside, dialect.moments["date"])
    least, most = dialect.moment(kind.first), dialect.moment(kind.last)
    clamped = f" WHEN {sql} < {first} THEN {least} WHEN {sql} > {last} THEN {most}"
    sides = "" if mode == "key" else clamped
    return Value(
        f"CASE WHEN {sql} BETWEEN {first} AND {last} THEN {inside}{sides} END", "time" if kind.timed else "date"
    )


# --- who a row belongs to -----------------------------------------------------------------------


def person_id(dialect: Dialect, stored: StoredType, sql: str, *, shared: bool) -> str:
    """The id of a person, NULL if there is none; `shared`: as a text that ids of other types can be compared with."""
    sql = within_precision(stored, sql)
    if stored.family == "float":
        number = f"CASE WHEN NOT {dialect.is_nan(sql)} THEN {sql} + {dialect.float(0)} END"  # -0.0 is 0.0
        if not shared:
            return number
        d = dialect.try_cast(sql, dialect.double, stored)
        whole = f"{dialect.is_whole(d)} AND abs({d}) < {dialect.float(10**18)}"
        as_whole = dialect.try_cast(dialect.whole(d), dialect.text)
        return f"CASE WHEN {whole} THEN {as_whole} ELSE {dialect.fractional(number)} END"
    if stored.family == "text" and not stored.enumerated:
        return dialect.bytewise(sql)
    if shared and stored.family == "decimal":
        return dialect.shortest(stored, sql)
    if shared or stored.family in ("text", "uuid", "nothing", "no use"):
        return dialect.try_cast(sql, dialect.text, stored)
    return sql


def id_class(stored: StoredType) -> str | StoredType:
    """Ids of the same class are compared as they are."""
    if stored.fits_int64:
        return "integer"
    return "text" if stored.family in ("text", "uuid", "nothing", "no use") else stored.named("")
