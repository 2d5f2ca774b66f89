"""Expressions without parts: columns, public values, and numbers of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal as OneOf

from privet.errors import QueryError, Subject, write
from privet.exact import Exact
from privet.names.spelling import there_are
from privet.tables.types import BooleanType, KeyType, NumberType, TimeType, Type
from privet.tables.units import LARGEST

Types = Mapping[str, Type]
"""The types of columns by name."""

MOST_GROUPING = 32
"""Maximum keys of one `Grouping`."""


@dataclass(frozen=True, slots=True)
class Column:
    """The value of a column."""

    name: str

    def __post_init__(self) -> None:
        as_text(self.name)

    def type(self, schema: Types) -> Type:
        if self.name in schema:
            return schema[self.name]
        raise QueryError(
            f"there is no column {self.name!r}",
            allowed=there_are(self.name, schema),
            subject=Subject("column", self.name),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A public value; the number 1 is not the boolean True."""

    value: Exact | str | bool | date

    def __post_init__(self) -> None:
        match self.value:
            case str():
                as_text(self.value)
            case date() if getattr(self.value, "tzinfo", None) is not None:
                raise QueryError(f"timestamps must be in UTC, without a time zone, not {self.value!r}")
            case Exact():
                if abs(self.value) > LARGEST or (self.value and abs(self.value) < 1 / LARGEST):
                    raise QueryError("this number is too large or too small to compute with")
            case bool() | date():
                pass
            case _:
                raise QueryError(f"{self.value!r} is not a public value")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def type(self, schema: Types) -> Type:
        match self.value:
            case bool():
                return BooleanType(missing=False)
            case str():
                return KeyType((self.value,), missing=False)
            case date():
                return TimeType(self.value, self.value, missing=False)
            case _:
                return NumberType(self.value, self.value, missing=False)


@dataclass(frozen=True, slots=True)
class OfAnswer:
    """A number of a released column: its total over groups, or an end of its interval."""

    function: OneOf["total", "low", "high"]
    column: str
    by: tuple[str, ...] = ()
    """Keys: the total is of the groups that have the same ones."""

    def __post_init__(self) -> None:
        one_of(self.function, ("total", "low", "high"))
        for name in (self.column, *self.by):
            as_text(name)
        if self.by and self.function != "total":
            raise QueryError("only a total has keys")

    def type(self, schema: Types) -> Type:
        raise QueryError(
            f"the {'total' if self.function == 'total' else 'interval'} of {self.column!r} is a number of the answer, "
            "so it can't be computed from rows",
            remedy=write('.agg(n=pv.count()).compute(share=pv.col("n") / pv.total("n"))'),
        )


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which of some keys a row of the answer adds up: a bit for each, of which the last key has the lowest."""

    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in self.keys:
            as_text(name)
        if not 1 <= len(self.keys) <= MOST_GROUPING or len({*self.keys}) < len(self.keys):
            raise QueryError(
                f"grouping needs 1 to {MOST_GROUPING} different keys",
                remedy=write('pv.grouping("region")', sql="GROUPING(region)"),
            )

    def type(self, schema: Types) -> Type:
        raise QueryError(
            "grouping is a number of the answer, so it can't be computed from rows",
            remedy=write('.agg(n=pv.count()).compute(level=pv.grouping("region"))', sql="HAVING GROUPING(region) = 0"),
        )


def one_of(word: str, words: tuple[str, ...]) -> None:
    """Refuse a word that is not one of these."""
    if word not in words:
        raise QueryError(f"{word!r} is not an operator or function here", allowed=f"Allowed are: {', '.join(words)}")


def as_text(value: object) -> str:
    """Text that every engine can read."""
    if isinstance(value, str) and "\x00" not in value and len(value) <= 10_000:
        try:
            value.encode()
        except UnicodeEncodeError:
            pass
        else:
            return value
    raise QueryError(f"this needs text of at most 10,000 characters without NUL, not {str(value)[:40]!a}")
