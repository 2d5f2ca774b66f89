"""What a steward declares of a table: who is protected, and the public range of every column.

The declaration is the schema. It comes from what the steward knows, never from the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date as Date
from datetime import datetime as DateTime
from datetime import time as Time
from typing import Any

from privet.distances import Adjacency, EachRow, Person, Protected
from privet.errors import QueryError, UserError
from privet.exact import Exact, Number, exact, literal, show, whole
from privet.lattice import Bounds
from privet.relation.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type
from privet.relation.units import LIMIT

CEILING = 2**40
"""No table may have more rows than this: a public fact, so that nothing need depend on the private count."""

_COLUMNS = 'columns={"income": pv.number(0, 200_000), "region": pv.keys("north", "south")}'


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column: the type of its values; `required` ones read what is missing as `default`."""

    type: Type
    default: Exact | bool | None = None

    @property
    def required(self) -> bool:
        """Whether a row always has a value here, as far as answers go."""
        return self.default is not None

    def __str__(self) -> str:
        return f"{self.type}{', required' if self.required else ''}"


def number(lower: Number, upper: Number, *, step: Number | None = None, required: bool = False) -> Column:
    """A real number: clamped to lower..upper, summed in steps of `step` (a 2^32nd part of the range if not given).

    NULL and NaN are missing, or, with `required=True`, read as `lower`.

    Example:
        >>> print(number(0, 200_000))
        a number in 0..200000
    """
    bounds = Bounds(lower, upper, step=step)
    size = bounds.step if step is not None else None
    kind = NumberType(bounds.lower, bounds.upper, step=size, missing=not _flag(required))
    if kind.range.largest >= LIMIT // 4:
        raise UserError(
            f"{show(bounds.lower)} and steps of {show(bounds.step)} have no common unit that 124 bits can hold. "
            "Let the lower bound be a multiple of the step. Write, for example: pv.number(0, 10, step=0.5)"
        )
    return Column(kind, bounds.lower if required else None)


def integer(lower: int, upper: int, *, required: bool = False) -> Column:
    """A whole number: clamped to lower..upper.

    Example:
        >>> print(integer(0, 110))
        an integer in 0..110
    """
    low, high = (exact(x, name=n, example="pv.integer(0, 110)") for n, x in (("lower", lower), ("upper", upper)))
    if low.denominator != 1 or high.denominator != 1:
        raise UserError(
            f"the bounds of an integer are integers, not {show(low)} and {show(high)}. "
            f"Write: pv.number({literal(low)}, {literal(high)})"
        )
    Bounds(low, high, step=1)
    if max(abs(low), abs(high)) > 2**62:
        raise UserError("the bounds of an integer must be within -2^62..2^62. Write, for example: pv.integer(0, 110)")
    return Column(NumberType(low, high, integer=True, missing=not _flag(required)), low if required else None)


def boolean(*, required: bool = False) -> Column:
    """True or false; with `required=True` what is missing reads as false.

    Example:
        >>> print(boolean())
        a boolean
    """
    return Column(BooleanType(missing=not _flag(required)), False if required else None)


def keys(*values: str | int, other: str | int | None = None) -> Column:
    """One of these values; every one of them appears in an answer, empty or not, in this order.

    A value that is none of them is left out of groups, or counted under `other`. `keys_from` reads a public list.

    Example:
        >>> keys("north", "south", other="elsewhere").type.keys()
        ('north', 'south', 'elsewhere')
    """
    line = 'Write, for example: pv.keys("north", "south", other="elsewhere")'
    if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset):
        raise UserError(f"give the keys one by one, or unpack the list: pv.keys(*values). {line}")
    if not values:
        raise UserError(f"keys needs at least one value. {line}")
    all_keys = values if other is None else (*values, other)
    if not (all(isinstance(v, str) for v in all_keys) or all(type(v) is int for v in all_keys)):
        raise UserError(f"keys are all texts or all integers. {line}")
    seen: set[str | int] = set()
    for value in all_keys:
        if value in seen:
            raise UserError(f"the key {value!r} stands twice. {line}")
        if isinstance(value, int) and abs(value) > 2**62:
            raise UserError(f"the key {value} is beyond -2^62..2^62. {line}")
        if isinstance(value, str) and ("\x00" in value or not value.isprintable() or len(value) > 200):
            raise UserError(f"a key is a printable text of at most 200 characters, not {value[:40]!r}. {line}")
        seen.add(value)
    return Column(KeyType(values, other))  # type: ignore[arg-type]


def text() -> Column:
    """Any text: for filters by equality or prefix, never a group.

    Example:
        >>> print(text())
        a text
    """
    return Column(TextType())


def date(first: Date | str, last: Date | str) -> Column:
    """A date in a public range, both ends included: clamped to it in expressions; outside of it, no group.

    Example:
        >>> print(date("2024-01-01", "2024-12-31"))
        a date in 2024-01-01..2024-12-31
    """
    return Column(TimeType(*_range(first, last, timed=False)))


def timestamp(first: DateTime | Date | str, last: DateTime | Date | str) -> Column:
    """A date with a time of day (UTC, without a zone) in a public range, both ends included; a day means all of it.

    Example:
        >>> print(timestamp("2024-01-01T08:00:00", "2024-12-31"))
        a timestamp in 2024-01-01 08:00:00..2024-12-31 23:59:59.999999
    """
    return Column(TimeType(*_range(first, last, timed=True)))


def _range(first: Any, last: Any, *, timed: bool) -> tuple[Date, Date]:
    name = "timestamp" if timed else "date"
    line = f'Write, for example: pv.{name}("2024-01-01", "2024-12-31")'
    ends: list[Any] = []
    for value in (first, last):
        try:
            moment = (DateTime if timed else Date).fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            raise UserError(f"{value!r} is not a {name} in the form 2024-12-31. {line}") from None
        if timed and (type(moment) is Date or (isinstance(value, str) and len(value.strip()) <= 10)):
            # a day is all of it: the last one ends just before midnight
            whole_day = Time.max if value is last and ends else Time.min
            moment = DateTime.combine(Date(moment.year, moment.month, moment.day), whole_day)
        if type(moment) is not (DateTime if timed else Date):
            raise UserError(f"a range of {name}s needs {name}s, not {value!r}. {line}")
        if isinstance(moment, DateTime) and moment.tzinfo is not None:
            raise UserError(f"give timestamps in UTC, without a zone, not {value!r}. {line}")
        if not 2 <= moment.year <= 9000:
            raise UserError(f"the year of {value!r} must be in 2..9000. {line}")
        ends.append(moment)
    if ends[0] > ends[1]:
        raise UserError(f"the first {name} comes after the last: {ends[0]} and {ends[1]}. {line}")
    return ends[0], ends[1]


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise UserError(f"required must be True or False, not {value!r}.")


# --- tables -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Schema:
    """A declared private table, without its data."""

    name: str
    protect: Protected
    adjacency: Adjacency
    columns: tuple[tuple[str, Column], ...]
    rows: int | None = None
    """The number of rows, where the steward declares it to be public (replace adjacency, each_row)."""

    @classmethod
    def declare(
        cls,
        name: str,
        *,
        protect: Protected,
        columns: Mapping[str, Column],
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        rows: int | None = None,
    ) -> Schema:
        """The schema, checked."""
        called(name, "table")
        if not isinstance(protect, EachRow | Person):
            raise UserError(
                f"protect must say what is protected, not {protect!r}. "
                'Write, for example: protect=pv.person("person_id", max_rows=3), or protect=pv.each_row()'
            )
        if not hasattr(columns, "items") or not columns:
            raise UserError(f"columns must declare at least one column. Write, for example: {_COLUMNS}")
        for column, declared in columns.items():
            called(column, "column")
            if not isinstance(declared, Column):
                raise UserError(f"column {column!r} must be declared, not {declared!r}. Write, for example: {_COLUMNS}")
        kind = Adjacency(adjacency)
        if rows is not None:
            rows = whole(rows, name="rows", example="rows=10_000")
            if kind is not Adjacency.REPLACE or not isinstance(protect, EachRow):
                raise UserError(
                    "a public number of rows goes with each_row() and replace only: where a row or a person can be "
                    'added, the number is private. Write: adjacency="replace", protect=pv.each_row(), or leave out rows'
                )
            if rows > CEILING:
                raise UserError("a table has at most 2^40 rows. Leave out rows")
        return cls(name, protect, kind, tuple(columns.items()), rows)


@dataclass(frozen=True, slots=True)
class PublicSchema:
    """A public table to join with: its unique key, the types of its columns, and the digest of its contents."""

    name: str
    key: str
    columns: tuple[tuple[str, Type], ...]
    digest: str


def called(name: object, what: str) -> str:
    """A name that may be given to a table or a column."""
    if isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= 120:
        return name
    article = "an" if what[0] in "aeiou" else "a"
    raise QueryError(
        f"the name of {article} {what} is a printable text of 1 to 120 characters, not {ascii(name)[:40]}."
    )
