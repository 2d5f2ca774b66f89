"""Dates and times as people write them: a quarter is 2024 Q3, a month is May 2024, a year is 2024."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time

from privet.tables.types import KeyValue, Unit

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


TOTAL = "total"
"""What is shown for a key that a level of a rollup or a cube adds up."""


def total(values: Sequence[KeyValue]) -> str:
    """What is shown for a key with these values that is added up: nothing that looks like one of them.

    Example:
        >>> total(["north", "south"]), total(["north", "total"])
        ('total', '(total)')
    """
    name, taken = TOTAL, {value.casefold() for value in values if isinstance(value, str)}
    while name in taken:
        name = f"({name})"
    return name


def texts(values: Sequence[KeyValue | None], unit: Unit | None = None, total: str = TOTAL) -> list[str]:
    """Keys as texts; dates by the unit they were cut to, else in ISO form, with a time where one is not midnight.

    Example:
        >>> texts([date(2024, 7, 1)], "quarter"), texts([date(2024, 5, 1)], "month"), texts([date(2024, 1, 1)], "year")
        (['2024 Q3'], ['May 2024'], ['2024'])
        >>> texts([date(2024, 5, 6)], "week"), texts([datetime(2025, 3, 1)]), texts([datetime(2025, 3, 1, 7)], "hour")
        (['2024-05-06'], ['2025-03-01'], ['2025-03-01 07:00'])
    """
    moments = [v for v in values if isinstance(v, datetime)]
    midnight = all(moment.time() == time() for moment in moments)
    return [total if value is None else _text(value, unit, midnight=midnight) for value in values]


def _text(value: KeyValue, unit: Unit | None, *, midnight: bool) -> str:
    if not isinstance(value, date):
        return str(value)
    match unit:
        case "year":
            return f"{value.year:04}"
        case "quarter":
            return f"{value.year:04} Q{(value.month + 2) // 3}"
        case "month":
            return f"{_MONTHS[value.month - 1]} {value.year:04}"
    if isinstance(value, datetime):
        return value.date().isoformat() if midnight else value.isoformat(" ", "minutes")
    return value.isoformat()


def ordinal(value: KeyValue | None, unit: Unit | None) -> int | None:
    """The place of a key on a scale of whole numbers, so that round ones can be found; None if it has none.

    Example:
        >>> ordinal(2024, None), ordinal(date(2024, 4, 1), "month") % 12, ordinal(date(2024, 4, 1), "quarter") % 4
        (2024, 3, 1)
    """
    if isinstance(value, date):
        match unit:
            case "year":
                return value.year
            case "quarter":
                return value.year * 4 + (value.month - 1) // 3
            case "month":
                return value.year * 12 + value.month - 1
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def rounds(unit: Unit | None) -> tuple[int, ...]:
    """The steps between labels, if not all of them fit: whole years where there are months or quarters."""
    match unit:
        case "month":
            return (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
        case "quarter":
            return (1, 2, 4, 8, 20, 40, 80, 200, 400)
        case "week":
            return (1, 2, 4, 13, 26, 52, 104, 260, 520)
        case "day" | "hour":
            return (1, 2, 7, 14, 28, 84, 168, 364, 728, 1820, 3640)
    return (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
