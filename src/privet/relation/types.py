"""What an expression's value can be: its public range, and whether it can be missing.

Everything here is public. A private value is always inside the range of its type, or missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal

from privet.errors import QueryError
from privet.exact import Exact, literal, show
from privet.lattice import Bounds

MOST_GROUPS = 10_000
"""How many groups one answer may have."""

UNITS = ("year", "quarter", "month", "week", "day", "hour")
"""What a date or a timestamp can be cut to."""

Unit = Literal["year", "quarter", "month", "week", "day", "hour"]
KeyValue = str | int | bool | date | datetime


@dataclass(frozen=True, slots=True)
class NumberType:
    """A number in lower..upper; `wide` says that nobody chose these bounds, so that an aggregate may not use them.

    Example:
        >>> NumberType(Exact(0), Exact(10), integer=True).bounds().width
        10
    """

    lower: Exact
    upper: Exact
    integer: bool = False
    step: Exact | None = None
    missing: bool = True
    wide: bool = False

    def __str__(self) -> str:
        kind = "an integer" if self.integer else "a number"
        return f"{kind} without bounds" if self.wide else f"{kind} in {show(self.lower)}..{show(self.upper)}"

    def bounds(self) -> Bounds:
        """The lattice on which values of this type are summed."""
        if self.lower == self.upper:  # a constant: any lattice that holds it and reaches no further
            other = self.lower - 1 if self.lower > 0 else self.lower + 1
            return Bounds(min(self.lower, other), max(self.lower, other), step=1)
        if self.step is not None and self.upper - self.lower >= self.step:
            return Bounds(self.lower, self.upper, step=self.step)
        return Bounds(self.lower, self.upper, step=1 if self.integer else None)

    def keys(self) -> tuple[KeyValue, ...]:
        """Every value, in order, if they are integers and not too many."""
        if not self.integer or self.wide:
            raise QueryError(
                f"{self} can't be a group: the values are not a public list. Write, for example: "
                'group_by(pv.bins("income", [0, 50_000, 100_000]))'
            )
        return _few(range(int(self.lower), int(self.upper) + 1), int(self.upper - self.lower) + 1)


@dataclass(frozen=True, slots=True)
class BooleanType:
    """True or false."""

    missing: bool = True

    def __str__(self) -> str:
        return "a boolean"

    def keys(self) -> tuple[KeyValue, ...]:
        return (False, True)

    def as_number(self) -> NumberType:
        """0 or 1."""
        return NumberType(Exact(0), Exact(1), integer=True, missing=self.missing)


@dataclass(frozen=True, slots=True)
class KeyType:
    """One of some public values, all texts or all integers; what is none of them is `other`, or missing."""

    values: tuple[str, ...] | tuple[int, ...]
    other: str | int | None = None
    missing: bool = True

    def __str__(self) -> str:
        if len(self.values) == 1 and self.other is None:
            return f"the {'text' if self.textual else 'number'} {self.values[0]!r}"
        return f"one of {len(self.keys())} keys"

    def keys(self) -> tuple[KeyValue, ...]:
        return self.values if self.other is None else (*self.values, self.other)

    @property
    def textual(self) -> bool:
        """Whether the keys are texts."""
        return isinstance(self.values[0], str)


@dataclass(frozen=True, slots=True)
class TextType:
    """Any text: it can be compared, but it is no group and no number."""

    missing: bool = True

    def __str__(self) -> str:
        return "a text"

    def keys(self) -> tuple[KeyValue, ...]:
        raise QueryError(
            "a text can't be a group: which texts occur is private. Declare the values that may be shown. "
            'Write, for example: columns={"region": pv.keys("north", "south", other="elsewhere")}'
        )


@dataclass(frozen=True, slots=True)
class TimeType:
    """A date, or a date with a time, in first..last; `unit` if it was cut to one."""

    first: date
    last: date
    unit: Unit | None = None
    missing: bool = True

    @property
    def timed(self) -> bool:
        """Whether it has a time of day."""
        return isinstance(self.first, datetime)

    def __str__(self) -> str:
        return f"a {'timestamp' if self.timed else 'date'} in {self.first}..{self.last}"

    def keys(self) -> tuple[KeyValue, ...]:
        unit = self.unit or ("day" if not self.timed else None)
        if unit is None:
            raise QueryError(
                'a timestamp can\'t be a group as it is. Write, for example: group_by(pv.col("time").truncate("month"))'
            )
        return _few(steps(self.first, self.last, unit), MOST_GROUPS + 1)


Type = NumberType | BooleanType | KeyType | TextType | TimeType


def _few(values: Iterable[KeyValue], at_most: int) -> tuple[KeyValue, ...]:
    found: list[KeyValue] = []
    for value in values:
        found.append(value)
        if len(found) > MOST_GROUPS:
            many = f"{at_most:,}" if at_most > len(found) else f"more than {MOST_GROUPS:,}"
            raise QueryError(
                f"this makes {many} groups; at most {MOST_GROUPS:,} are allowed. Take wider ones. "
                'Write, for example: group_by(pv.bins("age", [0, 18, 65, 110]))'
            )
    return tuple(found)


# --- dates ------------------------------------------------------------------------------------


def truncate(moment: date, unit: Unit) -> date:
    """The start of the year, quarter, month, week (Monday), day or hour that holds this moment.

    Example:
        >>> truncate(date(2026, 5, 17), "quarter"), truncate(date(2026, 5, 17), "week")
        (datetime.date(2026, 4, 1), datetime.date(2026, 5, 11))
    """
    if isinstance(moment, datetime):
        if unit == "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        day = truncate(moment.date(), unit)
        return datetime(day.year, day.month, day.day)
    match unit:
        case "year":
            return moment.replace(month=1, day=1)
        case "quarter":
            return moment.replace(month=(moment.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return moment.replace(day=1)
        case "week":
            return date.fromordinal(max(1, moment.toordinal() - moment.weekday()))
        case _:
            return moment


def steps(first: date, last: date, unit: Unit) -> Iterator[date]:
    """The starts of all units from the one that holds `first` to the one that holds `last`."""
    moment = truncate(first, unit)
    end = truncate(last, unit)
    while moment <= end:
        yield moment
        moment = _next(moment, unit)


def _next(moment: date, unit: Unit) -> date:
    match unit:
        case "year":
            return moment.replace(year=moment.year + 1)
        case "quarter" | "month":
            ahead = moment.month - 1 + (3 if unit == "quarter" else 1)
            return moment.replace(year=moment.year + ahead // 12, month=ahead % 12 + 1)
        case "week":
            return moment + timedelta(days=7)
        case "day":
            return moment + timedelta(days=1)
        case "hour":
            return moment + timedelta(hours=1)


def clipped(of: NumberType, lower: Exact, upper: Exact) -> NumberType:
    """The type after a clip to bounds of one's own; they must meet the range of what is clipped."""
    if lower >= upper:
        raise QueryError(
            f"clip needs a lower bound below the upper one, not {show(lower)} and {show(upper)}. "
            f"Write, for example: clip({literal(min(lower, upper))}, {literal(max(lower, upper) + (lower == upper))})"
        )
    low, high = max(lower, of.lower), min(upper, of.upper)
    if low > high:
        raise QueryError(
            f"clip({literal(lower)}, {literal(upper)}) leaves nothing of {show(of.lower)}..{show(of.upper)}. "
            "Take bounds that meet this range"
        )
    whole = of.integer and low.denominator == 1 and high.denominator == 1
    aligned = of.step is not None and (low - of.lower) % of.step == 0
    return replace(of, lower=low, upper=high, integer=whole, step=of.step if aligned else None, wide=False)
