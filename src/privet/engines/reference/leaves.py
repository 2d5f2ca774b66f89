"""A declared column from what the source holds: a number, a text, a date; None and NaN are missing."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from privet.engines.base import Unsupported
from privet.engines.reference.numbers import Number, fits, gcd, half_up, power_of_two, to_unit
from privet.tables.schema import Column
from privet.tables.stored_types import StoredType
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType

_NUMBERS = ("integer", "float", "decimal", "boolean")
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND, _DAY = timedelta(microseconds=1), 86_400_000_000
_DIGITS = 37  # decimals whose digits and decimal places are no more are read exactly


def check(column: Column, stored: StoredType) -> None:
    """Refuse a type that the column is not read from."""
    match column.type:
        case TextType() | KeyType(textual=True):
            allowed: tuple[str, ...] = ("text",)
        case TimeType():
            allowed = ("date", "timestamp")
        case _:
            allowed = _NUMBERS
    if stored.family not in (*allowed, "nothing"):
        raise Unsupported(f"a column of type {stored.name} can't be read as {column.type}")
    if isinstance(column.type, NumberType) and stored.family in ("integer", "decimal", "boolean"):
        _check_bits(column.type, 10**stored.scale)


@lru_cache(maxsize=1024)
def _check_bits(kind: NumberType, scale: int) -> None:
    """Refuse a step so fine that an SQL engine reads an exact number as a float."""
    declared = _declared(kind)
    step = kind.step or declared.unit
    below = math.lcm((1 / (scale * step)).denominator, (declared.low / step).denominator)
    fits(2 * ((declared.largest + 1) * scale * below / (scale * step) + declared.largest / step * below) + below)


def plain(raw: Any, stored: StoredType) -> Any:
    """A value of a source as Python has it; a long decimal as a float. Times are counts since 1970."""
    if isinstance(raw, Decimal) and stored.scale and stored.precision + stored.scale > _DIGITS:
        return float(raw)
    return raw


def leaf(column: Column, raw: Any, mode: str) -> Any:
    """A declared column, in mode "value" or "key"."""
    missing = raw is None or raw != raw
    match column.type:
        case NumberType() as kind:
            number = _declared(kind)
            if missing:
                if column.default is None:
                    return number
                return replace(number, value=_read(kind, number, Fraction(column.default), "value"))
            return replace(number, value=_read(kind, number, raw, mode))
        case BooleanType():
            value = None if missing else {1: True, 0: False}.get(raw)
            return column.default if value is None else value
        case KeyType() as kind:
            return None if missing else _key(kind, raw)
        case TextType():
            return raw
        case TimeType() as kind:
            if missing:
                return None
            if kind.first <= raw <= kind.last:
                return raw
            return None if mode == "key" else min(max(raw, kind.first), kind.last)


def _key(kind: KeyType, raw: Any) -> Any:
    if not isinstance(raw, str):
        raw = float(raw) if isinstance(raw, Decimal) else raw
        raw = int(raw) if math.isfinite(raw) and raw == int(raw) else raw
    return raw if raw in kind.values else kind.other


@lru_cache(maxsize=1024)
def _declared(kind: NumberType) -> Number:
    low, high = kind.lower, kind.upper
    if kind.step is not None:
        return Number(None, gcd(low, kind.step), low, low + (high - low) // kind.step * kind.step)
    if kind.integer:
        return Number(None, Fraction(1), low, high)
    if low == high:
        return Number(None, abs(low) or Fraction(1), low, high)
    unit = power_of_two((high - low) / 2**32)
    return Number(None, unit, to_unit(low, unit), to_unit(high, unit), rounded=True)


def _read(kind: NumberType, number: Number, raw: Any, mode: str) -> Fraction | None:
    if isinstance(raw, float) and math.isinf(raw):
        return None if mode == "key" else number.high if raw > 0 else number.low
    x = Fraction(raw)
    if kind.step is not None:
        if mode == "key" and not _within(kind, raw):
            return None
        if isinstance(raw, float) and not (_is_power_of_two(kind.step) and kind.lower % kind.step == 0):
            with_floats = (raw - float(kind.lower)) / float(kind.step)  # as IEEE 754 says
            if math.isinf(with_floats):
                return number.high if with_floats > 0 else number.low
            steps = half_up(Fraction(with_floats))
        else:
            steps = half_up((x - kind.lower) / kind.step)
        return min(max(kind.lower + steps * kind.step, number.low), number.high)
    near = to_unit(x, number.unit)
    inside = number.low <= near <= number.high if kind.integer else _within(kind, raw)
    if mode == "key" and not inside:
        return None
    return min(max(near, number.low), number.high)


def _is_power_of_two(x: Fraction) -> bool:
    return all(part & (part - 1) == 0 for part in (x.numerator, x.denominator))


def _within(kind: NumberType, raw: Any) -> bool:
    """Whether a value is inside the bounds; a float is compared with the floats that they are written as."""
    if isinstance(raw, float):
        return float(kind.lower) <= raw <= float(kind.upper)
    return kind.lower <= Fraction(raw) <= kind.upper


def moment(kind: TimeType, stored: StoredType, raw: int) -> date:
    """A count of days, or of microseconds, since 1970, as near to it as Python has dates."""
    if stored.family == "date":
        return _clamped(raw * _DAY) if kind.timed else _clamped_date(raw)
    return _clamped(raw) if kind.timed else _clamped_date(raw // _DAY)


def _clamped(ticks: int) -> datetime:
    low, high = ((end - _EPOCH) // _MICROSECOND for end in (datetime.min, datetime.max))
    return _EPOCH + timedelta(microseconds=min(max(ticks, low), high))


def _clamped_date(days: int) -> date:
    low, high = ((end - _EPOCH.date()).days for end in (date.min, date.max))
    return _EPOCH.date() + timedelta(days=min(max(days, low), high))
