"""What a steward declares of a table: who is protected, and the public range of every column.

The declaration is the schema. It comes from what the steward knows, never from the data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date as Date
from datetime import datetime as DateTime
from datetime import time as Time
from typing import Any

from privet.errors import QueryError, Remedy, Subject, UserError, write
from privet.exact import Exact, Number, exact, literal, show, whole
from privet.exact.lattice import Bounds, public_bounds
from privet.privacy.adjacency import Adjacency, EachRow, Person, Protected
from privet.system.identity import Identity
from privet.tables import within as nested
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type
from privet.tables.units import LARGEST, LIMIT
from privet.tables.within import Within

CEILING = 2**40
"""No table may have more rows than this: a public fact, so that nothing need depend on the private count."""

_KEYS = write('pv.keys("north", "south", other="elsewhere")')
_COLUMNS = write('columns={"income": pv.number(0, 200_000), "region": pv.keys("north", "south")}')


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column: the type of its values; `required` ones read what is missing as `default`.

    `kind_name` is the kind under which it was declared, for people: the type alone decides how values are read.
    """

    type: Type
    default: Exact | bool | None = None
    kind_name: str = ""
    public: tuple[Identity, ...] = field(default=(), compare=False, repr=False)
    """The public files from which its keys were read: none of them may hold the rows of a private table."""
    within: Within | None = None
    """The column in whose keys its own keys lie, if they do."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind_name", check_name(self.kind_name or self.type.kind, "kind"))
        least = {NumberType: getattr(self.type, "lower", None), BooleanType: False}.get(type(self.type))
        if self.default is not None and (self.type.missing or self.default != least):
            raise UserError("only a required number or boolean has a default, its least value")

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
    public_bounds(lower, upper, line="pv.number({}, {})")
    bounds = Bounds(lower, upper, step=step)
    size = bounds.step if step is not None else None
    kind = NumberType(bounds.lower, bounds.upper, step=size, missing=not _flag(required))
    return _private(Column(kind, bounds.lower if required else None))


def integer(lower: int, upper: int, *, required: bool = False) -> Column:
    """A whole number: clamped to lower..upper.

    Example:
        >>> print(integer(0, 110))
        an integer in 0..110
    """
    low, high = (exact(x, name=n, example="pv.integer(0, 110)") for n, x in (("lower", lower), ("upper", upper)))
    if low.denominator != 1 or high.denominator != 1:
        raise UserError(
            f"the bounds of an integer are integers, not {show(low)} and {show(high)}",
            remedy=write(f"pv.number({literal(low)}, {literal(high)})", exact=True),
        )
    public_bounds(low, high, line="pv.integer({}, {})")
    Bounds(low, high, step=1)
    kind = NumberType(low, high, integer=True, missing=not _flag(required))
    return _private(Column(kind, low if required else None))


def boolean(*, required: bool = False) -> Column:
    """True or false; with `required=True` what is missing reads as false.

    Example:
        >>> print(boolean())
        a boolean
    """
    return Column(BooleanType(missing=not _flag(required)), False if required else None)


def keys(
    *values: str | int | Mapping[Any, Sequence[str | int]], other: str | int | None = None, within: str | None = None
) -> Column:
    """One of these values; every one of them appears in an answer, empty or not, in this order.

    A value that is none of them is left out of groups, or counted under `other`. `keys_from` reads a public list. Where
    each key lies in one key of another column (`within`), a dict has the keys of each.

    Example:
        >>> keys("north", "south", other="elsewhere").type.keys()
        ('north', 'south', 'elsewhere')
        >>> keys({"north": ["a", "b"], "south": ["c"]}, within="region").type.keys()
        ('a', 'b', 'c')
    """
    places = None
    if within is not None or any(isinstance(value, Mapping) for value in values):
        values, places = nested.flattened(values[0] if len(values) == 1 else None, within)
    if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset):
        raise UserError("keys are given one by one", remedy=write("pv.keys(*values)", advice="Unpack the list"))
    if not values:
        raise UserError("keys needs at least one value", remedy=_KEYS)
    all_keys = values if other is None else (*values, other)
    if not (all(isinstance(v, str) for v in all_keys) or all(type(v) is int for v in all_keys)):
        raise UserError("keys are all texts or all integers", remedy=_KEYS)
    twice = next((value for value, times in Counter(all_keys).items() if times > 1), None)
    if twice is not None:
        raise UserError(f"the key {twice!r} stands twice", remedy=_KEYS)
    return _private(Column(KeyType(values, other), within=places))  # type: ignore[arg-type]


def text() -> Column:
    """Any text: for filters by equality or prefix, and as a key that is not public, if the budget has a delta.

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
    return _private(Column(TimeType(*_range(first, last, timed=False))))


def timestamp(first: DateTime | Date | str, last: DateTime | Date | str) -> Column:
    """A date with a time of day (UTC, without a zone) in a public range, both ends included; a day means all of it.

    Example:
        >>> print(timestamp("2024-01-01T08:00:00", "2024-12-31"))
        a timestamp in 2024-01-01 08:00:00..2024-12-31 23:59:59.999999
    """
    return _private(Column(TimeType(*_range(first, last, timed=True))))


def _range(first: Any, last: Any, *, timed: bool) -> tuple[Date, Date]:
    name = "timestamp" if timed else "date"
    line = write(f'pv.{name}("2024-01-01", "2024-12-31")')
    ends: list[Any] = []
    for value in (first, last):
        try:
            moment = (DateTime if timed else Date).fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            raise UserError(f"{value!r} is not a {name} in the form 2024-12-31", remedy=line) from None
        if timed and (type(moment) is Date or (isinstance(value, str) and len(value.strip()) <= 10)):
            # a day is all of it: the last one ends just before midnight
            whole_day = Time.max if value is last and ends else Time.min
            moment = DateTime.combine(Date(moment.year, moment.month, moment.day), whole_day)
        if type(moment) is not (DateTime if timed else Date):
            raise UserError(f"a range of {name}s needs {name}s, not {value!r}", remedy=line)
        if isinstance(moment, DateTime) and moment.tzinfo is not None:
            raise UserError(f"timestamps must be in UTC, without a time zone, not {value!r}", remedy=line)
        ends.append(moment)
    if ends[0] > ends[1]:
        raise UserError(f"the first {name} comes after the last: {ends[0]} and {ends[1]}", remedy=line)
    return ends[0], ends[1]


def _private(column: Column) -> Column:
    """The same column, if a private table can have it."""
    kind = column.type
    declared(kind)
    if isinstance(kind, NumberType):
        whole = kind.integer and kind.step is None
        Bounds(kind.lower, kind.upper, step=1 if whole else kind.step)
        if whole and max(abs(kind.lower), abs(kind.upper)) > 2**62:
            raise UserError("the bounds of an integer must be within -2^62..2^62", remedy=write("pv.integer(0, 110)"))
    if not column.required and not kind.missing:
        raise UserError("a value of a private table can be missing, unless its column is required")
    return column


def declared(kind: Type) -> None:
    """Refuse a type that no column of a table can have: numbers that are too large, keys that can't be printed."""
    match kind:
        case NumberType(lower, upper, integer=integer, step=step):
            own = (NumberType(lower, upper, integer=i, step=step, missing=kind.missing) for i in (integer, False))
            if kind not in own:
                raise UserError("the unit of a declared number follows from its bounds and its step")
            if max(abs(lower), abs(upper)) > LARGEST or (integer and not lower.denominator == upper.denominator == 1):
                raise UserError("the bounds of a number are at most 2^900, and integers for an integer")
            if kind.range.largest >= LIMIT // 4:
                raise UserError(
                    f"{show(lower)} and steps of {show(step or kind.unit)} have no common unit that 124 bits can hold",
                    remedy=write("pv.number(0, 10, step=0.5)", advice="Let the lower bound be a multiple of the step"),
                )
        case KeyType():
            for key in kind.keys():  # noqa: SIM118
                if isinstance(key, int) and abs(key) > 2**62:
                    raise UserError(f"the key {key} is beyond -2^62..2^62", remedy=_KEYS)
                if isinstance(key, str) and ("\x00" in key or not key.isprintable() or len(key) > 200):
                    raise UserError(
                        f"a key is a printable text of at most 200 characters, not {key[:40]!r}", remedy=_KEYS
                    )
        case TimeType(first, last, unit=unit):
            if not 2 <= first.year <= last.year <= 9000:
                raise UserError(f"the years of {first}..{last} must be in 2..9000")
            if unit is not None or any(getattr(end, "tzinfo", None) is not None for end in (first, last)):
                raise UserError("a declared date or timestamp is not truncated, and has no time zone")
        case BooleanType() | TextType():
            pass
        case _:
            raise UserError(f"{kind!r} is not the type of a column", remedy=_COLUMNS)


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise UserError(f"required must be True or False, not {value!r}", subject=Subject("argument", "required"))


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
        """The schema, from what a person writes."""
        if not hasattr(columns, "items"):
            raise UserError(
                f"columns must be a dict from each column's name to its kind and public bounds, not "
                f"{type(columns).__name__}",
                subject=Subject("argument", "columns"),
                remedy=_example(columns),
            )
        rows = None if rows is None else whole(rows, name="rows", example="rows=10_000")
        typed = [(each, _placed(column, columns)) for each, column in columns.items()]
        return cls(name, protect, Adjacency(adjacency), tuple(typed), rows)

    def __post_init__(self) -> None:
        check_name(self.name, "table")
        if not isinstance(self.protect, EachRow | Person):
            raise UserError(
                f"protect must say what is protected, not {_called(self.protect)}",
                subject=Subject("argument", "protect"),
                remedy=_protection(self.protect, dict(self.columns)),
            )
        if not self.columns:
            raise UserError("columns must declare at least one column", remedy=_COLUMNS)
        different(self.columns)
        for column, kind in self.columns:
            if not isinstance(kind, Column):
                raise UserError(
                    f"column {column!r} must be declared with a kind and its bounds or keys, not {_called(kind)}",
                    subject=Subject("column", column),
                    remedy=_declared_as(column, kind),
                )
            _private(kind)
        nested.check({name: (column.type, column.within) for name, column in self.columns})
        if not isinstance(self.adjacency, Adjacency):
            raise UserError(f"{self.adjacency!r} is not an adjacency", subject=Subject("argument", "adjacency"))
        if self.rows is not None:
            whole(self.rows, name="rows", example="rows=10_000")
            if self.adjacency is not Adjacency.REPLACE or not isinstance(self.protect, EachRow):
                raise UserError(
                    "a public number of rows goes with each_row() and replace only: where a row or a person can be "
                    "added, the number is private",
                    remedy=write(
                        'adjacency="replace", protect=pv.each_row(), or leave out rows',
                        policy='protect = "each row" and adjacency = "replace", or leave out rows',
                        exact=True,
                    ),
                )
            if self.rows > CEILING:
                raise UserError("a table has at most 2^40 rows", remedy=Remedy("Leave out rows"))


def _placed(column: Column, columns: Mapping[str, Column]) -> Column:
    """The same column, the parents of its keys written as the keys of their column are."""
    within = getattr(column, "within", None)  # what is no column is refused later
    if within is None:
        return column
    above = columns.get(within.column)
    return replace(column, within=within.typed(above.type)) if isinstance(above, Column) else column


def _word(given: object) -> str:
    """The name of a type or a function, or the text itself."""
    name = given if isinstance(given, str) else getattr(given, "__name__", "")
    return str(name).strip().lower()


def _called(given: object) -> str:
    """A wrong value as a person wrote it; a function without its address."""
    name = getattr(given, "__name__", None)
    return repr(given)[:80] if name is None else f"the {'type' if isinstance(given, type) else 'function'} {name}"


def _declared_as(column: str, given: object) -> Remedy:
    """A declaration of the kind that was meant."""
    from privet.tables.kinds import NUMBER, meant

    return write(f'columns={{"{column}": {(meant(_word(given)) or NUMBER).python}}}')


def _example(columns: object) -> Remedy:
    """A dict that declares the columns of a list, or an example."""
    named = list(columns) if isinstance(columns, list | tuple | set) else [columns]
    names = [name for name in named if isinstance(name, str) and name.isprintable()]
    return write(f'columns={{"{names[0]}": pv.number(0, 100), ...}}') if names else _COLUMNS


def _protection(given: object, columns: Mapping[str, object]) -> Remedy:
    """What was meant by a text or a function in place of the unit."""
    word = _word(given).replace(" ", "_").removesuffix("()")
    if word in ("each_row", "row", "rows"):
        return write("protect=pv.each_row()", exact=True)
    person = given if isinstance(given, str) and given.isidentifier() and word != "person" else "person_id"
    return write(f'protect=pv.person("{person}", max_rows=3), or protect=pv.each_row()')


@dataclass(frozen=True, slots=True)
class PublicSchema:
    """A public table to join with: its unique key, the types of its columns, and the digest of its contents."""

    name: str
    key: str
    columns: tuple[tuple[str, Type], ...]
    digest: str

    def __post_init__(self) -> None:
        check_name(self.name, "table")
        different(self.columns)
        if self.key not in dict(self.columns):
            raise UserError(f"the key {self.key[:40]!r} is not one of the columns", subject=Subject("column", self.key))
        if not re.fullmatch(r"[0-9a-f]{64}", self.digest):
            raise UserError("the digest must be 64 hexadecimal digits")
        for _, kind in self.columns:
            declared(kind)
            if isinstance(kind, NumberType) and kind.step is not None:
                raise UserError("a public number has its own range, and no step")


def different(named: Sequence[tuple[str, object]]) -> None:
    """Refuse names that no column may have, and two columns of one name."""
    names = [check_name(name, "column") for name, _ in named]
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise QueryError(f"two columns have the name {twice!r}", subject=Subject("column", twice))


def check_name(name: object, what: str) -> str:
    """A name that may be given to a table or a column."""
    if isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= 120:
        return name
    article = "an" if what[0] in "aeiou" else "a"
    raise QueryError(
        f"the name of {article} {what} is a printable text of 1 to 120 characters, not {ascii(name)[:40]}."
    )
