"""Arrow columns as columns of a declared kind: row by row, whatever they hold, without an error.

Claim: `column` is total, and a value of the result depends on the value in its place alone. What can't be represented
is clamped far outside of all bounds that can be declared (numbers, dates), or missing (NaN, broken texts).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privet.engines.arrow_types import stored
from privet.sources.objects import LEAST, MOST, convert
from privet.sources.readings import Reading
from privet.tables.stored_types import Family

_EDGE = 2.0**63
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400
_FIRST, _LAST = -719_162, 2_932_896  # days from 1970-01-01 to 0001-01-01 and to 9999-12-31

DECLARED: dict[Reading, Any] = {
    "number": pa.float64(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "text": pa.large_string(),
    "key": pa.int64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
"""How each kind is kept. An id keeps its own type if that is an integer, a float or a text; all others become texts."""


def column(values: Any, kind: Reading) -> Any:
    """A chunked array as one of this kind."""
    values = _plain(values)
    family = stored(values.type).family
    if family == "nothing":
        return pa.chunked_array([pa.nulls(len(values), DECLARED.get(kind, pa.large_string()))])
    match kind:
        case "number":
            return _floats(values)
        case "integer" | "key":
            return _integers(values)
        case "boolean":
            return values
        case "text":
            return _texts(values)
        case "date" | "timestamp":
            return _times(values, kind)
        case "person":
            return _ids(values, family)


def from_objects(values: Any, kind: Reading) -> Any:
    """Python objects as a chunked array of this kind; ids are texts."""
    return pa.chunked_array([pa.array(convert(values, kind), DECLARED.get(kind, pa.large_string()))])


def _plain(values: Any) -> Any:
    """The same without an encoding."""
    if pa.types.is_dictionary(values.type):
        return _plain(values.cast(values.type.value_type))
    if pa.types.is_run_end_encoded(values.type):
        return _plain(pa.chunked_array([pc.run_end_decode(chunk) for chunk in values.chunks], values.type.value_type))
    return values


def _missing(values: Any) -> Any:
    return values.is_null().combine_chunks().to_numpy(zero_copy_only=False)


def _made(numbers: Any, gone: Any, kind: Any) -> Any:
    return pa.chunked_array([pa.array(numbers, mask=gone).cast(kind)])


def _floats(values: Any) -> Any:
    floats = values.cast(pa.float64(), safe=False)
    return pc.if_else(pc.is_nan(floats), pa.scalar(None, pa.float64()), floats)


def _integers(values: Any) -> Any:
    if pa.types.is_integer(values.type):
        if values.type == pa.uint64():
            values = pc.min_element_wise(values, pa.scalar(MOST, pa.uint64()), skip_nulls=False)
        return values.cast(pa.int64())
    floats = _floats(values)
    gone = _missing(floats)
    with np.errstate(all="ignore"):  # a warning would depend on a row
        held = floats.fill_null(0.0).to_numpy()
        rounded = np.floor(held)
        rounded = np.where(held - rounded >= 0.5, rounded + 1, rounded)  # half up, as the engine reads numbers
        inside = np.abs(rounded) < _EDGE
        whole = np.where(inside, rounded, 0.0).astype(np.int64)
    whole = np.where(inside, whole, np.where(rounded > 0, MOST, LEAST))
    return _made(whole, gone, pa.int64())


def _texts(values: Any) -> Any:
    large = values.cast(pa.large_string())
    try:
        large.validate(full=True)
    except pa.ArrowInvalid:  # bytes that are no text: those rows are missing
        return pa.chunked_array(
            [pa.array([_decoded(x) for x in large.cast(pa.large_binary()).to_pylist()], large.type)]
        )
    return large


def _decoded(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None


def _times(values: Any, kind: Reading) -> Any:
    gone = _missing(values)
    if pa.types.is_date(values.type):
        unit = 1 if values.type == pa.date32() else _DAY * 1_000
        raw = values.cast(pa.int32()).cast(pa.int64()) if unit == 1 else values.cast(pa.int64())
        per_day = unit
    else:  # with a zone or without, what is stored counts from 1970 in UTC
        per_day = _DAY * _UNITS[values.type.unit]
        raw = values.cast(pa.int64())
    counted = raw.fill_null(0).to_numpy()
    days = counted // per_day
    inside = np.clip(days, _FIRST, _LAST)
    if kind == "date":
        return _made(inside.astype(np.int32), gone, pa.date32())
    rest = np.where(days == inside, counted - days * per_day, 0)  # less than a day: no overflow
    scaled = rest * (_DAY * 1_000_000 // per_day) if per_day <= _DAY * 1_000_000 else rest // 1_000
    last = np.where(days > _LAST, _DAY * 1_000_000 - 1, scaled)
    return _made(inside * (_DAY * 1_000_000) + last, gone, pa.timestamp("us"))


def _ids(values: Any, family: Family) -> Any:
    """Ids that differ stay different: nothing is clamped or rounded here."""
    if family == "text":
        return _texts(values)
    if family == "float":
        return _floats(values)
    if family in ("uuid", "decimal"):
        return from_objects(values.to_pylist(), "person")
    return values
