"""A column of a source, read as it is declared: a total function of the declared type and the source's type.

Claim: whatever a row holds, reading it raises no error and gives a value in the declared range, or NULL (missing). As a
value, a number or a date out of its range is clamped to it; as a key (mode "key"), it is missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Literal

from privet.engine.sql import Context, Kind, Value, double, integer, moment
from privet.errors import SourceError
from privet.exact import Exact, nearest
from privet.lattice import is_power_of_two
from privet.relation.schema import Column
from privet.relation.types import BooleanType, KeyType, NumberType, TextType, TimeType

Class = Literal[
    "signed", "unsigned", "huge", "float", "decimal", "boolean", "text", "enum", "date", "time", "zoned", "other"
]

_CLASSES: dict[str, Class] = {
    "TINYINT": "signed", "SMALLINT": "signed", "INTEGER": "signed", "BIGINT": "signed",
    "UTINYINT": "unsigned", "USMALLINT": "unsigned", "UINTEGER": "unsigned", "UBIGINT": "huge",
    "HUGEINT": "huge", "UHUGEINT": "huge",
    "FLOAT": "float", "REAL": "float", "DOUBLE": "float", "BOOLEAN": "boolean", "VARCHAR": "text", "UUID": "other",
    "DATE": "date", "TIMESTAMP": "time", "TIMESTAMP_S": "time", "TIMESTAMP_MS": "time", "TIMESTAMP_NS": "time",
    "TIMESTAMP WITH TIME ZONE": "zoned", "TIMESTAMPTZ": "zoned",
}  # fmt: skip


def class_of(source: str) -> Class:
    """What kind of type a source's column has."""
    head = source.strip().upper()
    if re.match(r"ENUM\b", head):
        return "enum"
    if re.match(r"DECIMAL\b|NUMERIC\b", head):
        return "decimal"
    return _CLASSES.get(head, "other")


@dataclass(frozen=True, slots=True)
class Code:
    """How a number is read for a sum: as its lattice code 0..width."""

    lower: Exact
    step: Exact
    width: int

    @property
    def upper(self) -> Exact:
        """The number with the largest code."""
        return self.lower + self.step * self.width


Mode = Literal["value", "key", "index", "text"]
"""How a column is read: its value, its value as a key, the number of its key, counted from 0, or its text as it is."""


def read(column: Column, source: str, sql: str, mode: Mode, context: Context) -> Value:
    """The SQL that reads one column; `sql` is its quoted name."""
    found: Value | None
    match column.type:
        case NumberType() as kind:
            found = _number(kind, column.default, source, sql, mode)
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


# --- numbers ------------------------------------------------------------------------------------


def _as_double(source: str, sql: str) -> str | None:
    match class_of(source):
        case "float" if source.strip().upper() == "DOUBLE":
            return sql
        case "signed" | "unsigned" | "huge" | "float" | "decimal" | "boolean" | "text":
            return f"TRY_CAST({sql} AS DOUBLE)"
    return None


def _as_integer(source: str, sql: str) -> str | None:
    """As a BIGINT, rounded to the nearest whole number (halves to the even one); NULL where it does not fit."""
    match class_of(source):
        case "signed" if source.strip().upper() == "BIGINT":
            return sql
        case "signed" | "unsigned" | "huge" | "boolean":
            return f"TRY_CAST({sql} AS BIGINT)"
        case "decimal" if re.search(r"\(\s*\d+\s*(,\s*0\s*)?\)", source):
            return f"TRY_CAST({sql} AS BIGINT)"
    d = _as_double(source, sql)
    return None if d is None else f"TRY_CAST({d} AS BIGINT)"


def _number(kind: NumberType, default: Exact | bool | None, source: str, sql: str, mode: Mode) -> Value | None:
    d, t = _as_double(source, sql), _as_integer(source, sql)
    if d is None or t is None:
        return None
    if kind.integer:
        held, low, high, split = t, integer(int(kind.lower)), integer(int(kind.upper)), "0e0"
        instead = None if default is None else integer(int(default))
    else:
        held, low, high, split = d, double(kind.lower), double(kind.upper), double(kind.lower)
        instead = None if default is None else double(Exact(default))
    if mode == "key":  # out of range is no key; only what is missing reads as the default
        gone = "" if instead is None else f"WHEN {d} IS NULL OR isnan({d}) THEN {instead} "
        found = f"CASE {gone}WHEN {held} BETWEEN {low} AND {high} THEN {held} END"
    else:
        found = _or_default(_clamped(held, d, low, high, split=split), instead)
    return Value(found, "integer" if kind.integer else "double")


def _clamped(value: str, d: str, low: str, high: str, *, split: str) -> str:
    """The value clamped; where it is NULL because it does not fit, the double says on which side it lies."""
    outside = f"WHEN {d} < {split} THEN {low} WHEN NOT isnan({d}) THEN {high}"
    if value != d:
        outside = f"WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} {outside}"
    return f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} {outside} END"


def read_code(column: Column, source: str, sql: str, code: Code) -> Value | None:
    """The lattice code of a column, from the source's value at once; None where that might not be the same.

    Claim: the nearest code to (x - l)/s, clamped to 0..w, of x clamped to declared bounds around l..l + w*s is the same
    of x itself. Float operations are monotone, so if the greatest x in l..l + w*s has a code of at most w, all have.
    """
    kind = column.type
    d, t = _as_double(source, sql), _as_integer(source, sql)
    if d is None or t is None or not isinstance(kind, NumberType):
        return None
    if not (kind.lower <= code.lower and code.upper <= kind.upper):
        return None
    found = _code(kind, d, t, code)
    if found is None:
        return None
    missing = (
        None if column.default is None else min(max(round((column.default - code.lower) / code.step), 0), code.width)
    )
    return Value(_or_default(found, None if missing is None else integer(missing)), "integer")


def _code(kind: NumberType, d: str, t: str, code: Code) -> str | None:
    low, high, width = nearest(code.lower), nearest(code.upper), integer(code.width)
    if kind.integer and code.step == 1 and code.lower.denominator == 1:
        first, last = integer(int(code.lower)), integer(int(code.upper))
        inside = f"CASE WHEN {t} BETWEEN {first} AND {last} THEN {t} - {first}"
        sides = f"WHEN {t} < {first} THEN 0::BIGINT WHEN {t} > {last} THEN {width}"
        return f"{inside} {sides} WHEN {d} < 0e0 THEN 0::BIGINT WHEN NOT isnan({d}) THEN {width} END"
    step = nearest(code.step)
    if kind.integer or (high - low) / step + 0.5 >= code.width + 1 or not low < high:
        return None
    return (
        f"CASE WHEN {d} BETWEEN {double(low)} AND {double(high)} THEN {scaled(d, code)} "
        f"WHEN {d} < {double(low)} THEN 0::BIGINT WHEN NOT isnan({d}) THEN {width} END"
    )


def steps(d: str, code: Code) -> str:
    """How many steps a double lies above the lower bound: still a double, not yet rounded."""
    moved = d if code.lower == 0 else f"({d} - {double(code.lower)})"
    # by a power of two both are exact, and multiplying is quicker
    scale = f"* {double(1 / code.step)}" if is_power_of_two(code.step) else f"/ {double(code.step)}"
    return f"({moved} {scale})"


def scaled(d: str, code: Code) -> str:
    """The nearest number of steps as a BIGINT; of two that are as near the even one, as a cast goes."""
    return f"TRY_CAST({steps(d, code)} AS BIGINT)"


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
            d = _as_double(source, sql)
            found = f"CASE WHEN {d} = 1e0 THEN true WHEN {d} = 0e0 THEN false END"
        case _:
            return None
    return Value(_or_default(found, None if default is None else str(bool(default)).lower()), "boolean")


def _text(source: str, sql: str) -> str:
    return sql if class_of(source) == "text" else f"TRY_CAST({sql} AS VARCHAR)"


def _key(kind: KeyType, source: str, sql: str, mode: Mode, context: Context) -> Value | None:
    if kind.textual:
        found = Value(_text(source, sql), "text")
    else:
        t, d = _as_integer(source, sql), _as_double(source, sql)
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
        return sql
    if shared or kind in ("enum", "other"):
        return f"TRY_CAST({sql} AS VARCHAR)"
    return sql


def id_class(source: str) -> str:
    """Ids of the same class are compared as they are."""
    kind = class_of(source)
    if kind in ("signed", "unsigned"):
        return "BIGINT"
    return "text" if kind in ("text", "enum", "other") else source.strip().upper()
