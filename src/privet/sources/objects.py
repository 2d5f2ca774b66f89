"""Python objects as values of a declared kind, one by one; an object that does not convert is missing.

`misfit` finds those that should not be there at all, so that a table is refused before anybody asks about it.

Claim: each function here is total. For any object, whatever its methods raise, it returns a plain value or None, which
depends only on that object. Text is never read as a number or a date, nor a boolean as a number.
"""

from __future__ import annotations

import math
import numbers
import uuid
import warnings
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np

from privet.sources.readings import Reading

LEAST, MOST = -(2**63), 2**63 - 1
"""The range of 64-bit integers. Declared bounds are within 2^62, so a value clamped to this stays outside them."""

Value = float | int | bool | str | date | datetime


def convert(values: Iterable[Any], kind: Reading) -> list[Any]:
    """Each value as one of this kind, or None.

    Example:
        >>> convert([1, 2.5, "3", None, float("nan"), 10**30, True], "integer")
        [1, 3, None, None, None, 9223372036854775807, None]
        >>> convert([7, "7", 7.0, "x", float("nan"), b"x"], "person")
        ['7', '7', '7', 'x', None, None]
    """
    one = _CONVERTERS[kind]
    with warnings.catch_warnings():  # a warning would depend on a row
        warnings.simplefilter("ignore")
        return [_total(one, value) for value in values]


def misfit(values: Iterable[Any], kind: Reading) -> type | None:
    """The type of the first object that can't be of this kind, whatever its value; None if there is none.

    Example:
        >>> misfit([1, None, float("nan"), "3"], "integer"), misfit([1, 2.5, None], "number"), misfit([0, 1], "boolean")
        (<class 'str'>, None, <class 'int'>)
    """
    seen: set[type] = set()
    for value in values:
        if type(value) in seen or (type(value) is float and value != value):
            continue
        if not _is(value, kind):
            return type(value)
        seen.add(type(value))
    return None


def _is(value: Any, kind: Reading) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool | np.bool_))
    except Exception:  # an object that only looks like a value
        return False


def _total(one: Callable[[Any], Value | None], value: Any) -> Value | None:
    try:
        return None if value is None else one(value)
    except Exception:  # an object that only looks like a value
        return None


def _number(value: Any) -> float | None:
    if type(value) is float:
        return value if value == value else None
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf  # type: ignore[operator]
    return None if number != number else float.__float__(number)


def _integer(value: Any) -> int | None:
    if type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool)):
        return min(max(int(value), LEAST), MOST)
    number = _number(value)
    if number is None:
        return None
    return MOST if number >= MOST else LEAST if number <= LEAST else _half_up(number)


def _key(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    number = int(cast(float, value))  # raises for NaN and infinities
    return number if number == value and LEAST <= number <= MOST else None


def _boolean(value: Any) -> bool | None:
    return bool(value) if isinstance(value, bool | np.bool_) else None


def _text(value: Any) -> str | None:
    if type(value) is str and value.isascii():
        return value
    return str.encode(value).decode() if isinstance(value, str) else None  # half of a surrogate pair is not text


def _timestamp(value: Any) -> datetime | None:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(UTC)
        moment = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
        return datetime(*moment)  # a plain one; NaT has no year
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    return None


def _date(value: Any) -> date | None:
    moment = _timestamp(value)
    return None if moment is None else moment.date()


def _person(value: Any) -> str | None:
    """The id of a person as text: numbers as digits or fractions, UUIDs and dates in their usual form.

    So 7, 7.0 and "7" are one person, and different numbers stay different.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, numbers.Integral):
        return format(int(value), "d")
    if isinstance(value, Decimal) and not -400 < value.adjusted() < 400:
        return None
    if isinstance(value, numbers.Real | Decimal):
        return str(Fraction(value if isinstance(value, numbers.Rational | Decimal) else float(value)))
    if isinstance(value, uuid.UUID):
        return str(value)
    moment = _timestamp(value)
    return None if moment is None else moment.isoformat()


_MOMENTS = (date, np.datetime64)
_TYPES: dict[Reading, tuple[type, ...]] = {
    "number": (numbers.Real, Decimal),
    "integer": (numbers.Real, Decimal),
    "boolean": (bool, np.bool_),
    "text": (str,),
    "key": (numbers.Real,),
    "date": _MOMENTS,
    "timestamp": _MOMENTS,
    "person": (str, numbers.Real, Decimal, uuid.UUID, *_MOMENTS),
}
_CONVERTERS: dict[Reading, Callable[[Any], Value | None]] = {
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "text": _text,
    "key": _key,
    "date": _date,
    "timestamp": _timestamp,
    "person": _person,
}


def _half_up(number: float) -> int:
    """The nearest whole number, halves up, as the engine rounds numbers."""
    whole = math.floor(number)
    return whole + 1 if number - whole >= 0.5 else whole
