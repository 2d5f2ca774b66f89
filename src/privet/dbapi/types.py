"""The types of columns and the constructors of PEP 249."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import NoReturn

from privet.dbapi.errors import NotSupportedError


class TypeObject:
    """The type of a column, to be compared with `cursor.description[i][1]`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


STRING = TypeObject("STRING")
NUMBER = TypeObject("NUMBER")
BOOLEAN = TypeObject("BOOLEAN")
DATETIME = TypeObject("DATETIME")
BINARY = TypeObject("BINARY")
ROWID = TypeObject("ROWID")


def Date(year: int, month: int, day: int) -> date:
    """A date."""
    return date(year, month, day)


def Time(hour: int, minute: int, second: int) -> time:
    """A time of the day."""
    return time(hour, minute, second)


def Timestamp(year: int, month: int, day: int, hour: int, minute: int, second: int) -> datetime:
    """A date with a time."""
    return datetime(year, month, day, hour, minute, second)


def DateFromTicks(ticks: float) -> date:
    """The date here, from seconds since 1970."""
    return date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> time:
    """The time of the day here, from seconds since 1970."""
    return datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:
    """The date and time here, from seconds since 1970."""
    return datetime.fromtimestamp(ticks)


def Binary(value: object) -> NoReturn:
    """Refused: no column is binary."""
    raise NotSupportedError("binary values are not supported")
