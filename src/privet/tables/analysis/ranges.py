"""Types cut to what is known of a value: one key, or a range."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime, timedelta

from privet.exact import Exact
from privet.tables.types import BooleanType, KeyType, KeyValue, NumberType, TimeType, Type, truncate


def only(value: KeyValue, kind: Type) -> Type:
    """The type of a key that has this value."""
    match value:
        case bool():
            return BooleanType(missing=False)
        case int() if not isinstance(kind, KeyType):
            return NumberType(Exact(value), Exact(value), integer=True, missing=False)
        case date():
            return TimeType(value, value, missing=False)
    return KeyType((value,), missing=False)  # type: ignore[arg-type]


def moment(day: date) -> datetime:
    """A date as its midnight."""
    return day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)


def met(a: Type, low: Exact | date | None, high: Exact | date | None) -> Type | None:
    """A type of numbers or times, cut to low..high; None if it is empty."""
    match a:
        case NumberType():
            lower = a.lower if low is None else max(a.lower, Exact(low))  # type: ignore[arg-type]
            upper = a.upper if high is None else min(a.upper, Exact(high))  # type: ignore[arg-type]
            if a.step is not None:  # from step to step
                lower = a.lower + math.ceil((lower - a.lower) / a.step) * a.step
                upper = a.lower + math.floor((upper - a.lower) / a.step) * a.step
            elif a.integer:
                lower, upper = Exact(math.ceil(lower)), Exact(math.floor(upper))
            return replace(a, lower=lower, upper=upper) if lower <= upper else None
        case TimeType():
            assert low is None or isinstance(low, date)
            assert high is None or isinstance(high, date)
            first = a.first if low is None or moment(low) <= moment(a.first) else _fitted(low, a, up=True)
            last = a.last if high is None or moment(high) >= moment(a.last) else _fitted(high, a, up=False)
            return replace(a, first=first, last=last) if moment(first) <= moment(last) else None
    return a


def _fitted(at: date, like: TimeType, *, up: bool) -> date:
    """A moment as a date or a timestamp, to fit the type; a timestamp becomes a date by rounding inwards."""
    if like.timed:
        return moment(at)
    if not isinstance(at, datetime):
        return at
    later = up and at != truncate(at, "day")
    return at.date() + timedelta(days=1) if later else at.date()
