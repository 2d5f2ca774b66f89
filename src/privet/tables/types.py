"""What an expression's value can be: its public range, and whether it can be missing.

Everything here is public. A private value is always inside the range of its type, or missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import ClassVar, Literal

from privet.errors import QueryError, Remedy, TooManyGroups, UserError, write
from privet.exact import Exact, literal, show
from privet.exact.lattice import Bounds, power_of_two_below, steps_down, steps_up, to_steps
from privet.tables import units
from privet.tables.units import Range

MOST_GROUPS = 10_000
"""How many groups one answer may have."""

UNITS = ("year", "quarter", "month", "week", "day", "hour")
"""What a date or a timestamp can be cut to."""

Unit = Literal["year", "quarter", "month", "week", "day", "hour"]
KeyValue = str | int | bool | date | datetime


_UNSET = Exact(0)


@dataclass(frozen=True, slots=True)
class NumberType:
    """A number in lower..upper: a public unit times a private integer; `wide` says that nobody chose these bounds.

    Claim: a value is unit * n with an integer n in least..most. `rounded` says that the unit is a default step, or
    comes from one: then bounds and constants are rounded to it, as values are.

    Example:
        >>> NumberType(Exact(0), Exact(10), integer=True).bounds().width
        10
        >>> NumberType(Exact(0), Exact(1)).unit, NumberType(Exact(1), Exact(3), step=Exact(1, 4)).unit
        (Fraction(1, 4294967296), Fraction(1, 4))
    """

    lower: Exact
    upper: Exact
    integer: bool = False
    """Whether every value is a whole number; follows from the unit, where one is given."""
    step: Exact | None = None
    """The step that was declared: values lie on lower, lower + step, and so on."""
    missing: bool = True
    wide: bool = False
    unit: Exact = _UNSET
    """0 means the unit that follows from the bounds and the step."""
    rounded: bool = False

    def __post_init__(self) -> None:
        unit, rounded = self.unit, self.rounded
        if not unit:
            unit, rounded = self._own_unit()
        if self.lower > self.upper or unit <= 0 or (self.step is not None and self.step <= 0):
            raise UserError("the bounds of a number are lower..upper, and its step and its unit are greater than 0")
        for name, value in (("unit", unit), ("rounded", rounded), ("integer", unit.denominator == 1 and not rounded)):
            object.__setattr__(self, name, value)

    def _own_unit(self) -> tuple[Exact, bool]:
        if self.integer:
            return Exact(1), False
        if self.lower == self.upper:
            return abs(self.lower) or Exact(1), False
        if self.step is not None:
            return units.common(self.lower, self.step), False
        own = power_of_two_below((self.upper - self.lower) / 2**32)
        far = power_of_two_below(max(abs(self.lower), abs(self.upper)) / 2**124)
        return max(own, far), True

    @classmethod
    def of(cls, of: Range, *, rounded: bool, missing: bool, wide: bool = False) -> NumberType:
        """The type of what is unit * n with n in this range."""
        low, high = of.unit * of.least, of.unit * of.most
        return cls(low, high, unit=of.unit, rounded=rounded, missing=missing, wide=wide)

    def __str__(self) -> str:
        kind = "an integer" if self.integer else "a number"
        if self.lower == self.upper and not self.wide:
            return f"the number {show(self.lower)}"
        return f"{kind} without bounds" if self.wide else f"{kind} in {show(self.lower)}..{show(self.upper)}"

    @property
    def kind(self) -> str:
        """The kind of column that has this type, if it is declared by no other name."""
        return "integer" if self.integer and self.step is None else "number"

    @property
    def least(self) -> int:
        """The least n."""
        return to_steps(self.lower, self.unit) if self.rounded else steps_up(self.lower, self.unit)

    @property
    def most(self) -> int:
        """The greatest n."""
        return to_steps(self.upper, self.unit) if self.rounded else steps_down(self.upper, self.unit)

    @property
    def range(self) -> Range:
        """Its integers."""
        return Range(self.unit, self.least, self.most)

    @property
    def constant(self) -> Exact | None:
        """The value, if there is only one, and it is never missing."""
        return None if self.missing else self.range.constant

    def compared(self, operator: Literal["<", "<=", ">", ">="], constant: Exact) -> int:
        """The integer k for which u n compares with a constant as n with k.

        Where the unit is a default step, or comes from one, the constant is rounded as values are: `x >= 0.1` holds
        for what was read as 0.1.

        Example:
            >>> age = NumberType(Exact(0), Exact(110), integer=True)
            >>> age.compared("<=", Exact(35, 2)), age.compared("<", Exact(35, 2))
            (17, 18)
        """
        if self.rounded:
            return to_steps(constant, self.unit)
        return (steps_up if operator in ("<", ">=") else steps_down)(constant, self.unit)

    def equal_to(self, constant: Exact) -> int | None:
        """The n for which u n is this constant; None if there is none."""
        n = to_steps(constant, self.unit)
        return n if self.rounded or n * self.unit == constant else None

    def bounds(self) -> Bounds:
        """The lattice on which values of this type are summed: its own unit, or 2^j times that if it is too fine.

        Claim: a code is (n - l) / m, rounded half up, with whole numbers l = lower / unit and m = step / unit.
        """
        low, high = self.unit * self.least, self.unit * self.most
        if low == high:  # a constant: any lattice that holds it and reaches no further
            return Bounds(min(low, Exact(0)), max(low, Exact(0)), step=abs(low)) if low else Bounds(0, 1, step=1)
        if self.step is not None and self.upper - self.lower >= self.step:
            return Bounds(self.lower, self.upper, step=self.step)
        step = self.unit
        if self.rounded or high - low >= 2**43 * step:
            while high - low > 2**33 * step:
                step *= 2
        return Bounds(low, low + step * to_steps(high - low, step), step=step)

    def keys(self) -> tuple[KeyValue, ...]:
        """Every value, in order, if they are integers and not too many."""
        if not self.integer or self.wide:
            raise QueryError(
                f"{self} can't be a group: the values are not a public list",
                remedy=write('group_by(pv.bins("income", [0, 50_000, 100_000]))'),
            )
        first, each = (
            (int(self.unit) * self.least, int(self.unit)) if self.step is None else (int(self.lower), int(self.step))
        )
        count = (int(self.unit) * self.most - first) // each + 1
        return _few((first + each * i for i in range(count)), count)


@dataclass(frozen=True, slots=True)
class BooleanType:
    """True or false."""

    missing: bool = True
    kind: ClassVar[str] = "boolean"

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
    kind: ClassVar[str] = "keys"

    def __post_init__(self) -> None:
        kind, every = type(self.values[0]) if self.values else None, self.keys()
        if kind not in (str, int) or any(type(key) is not kind for key in every):
            raise UserError("keys are all texts or all integers, one or more")
        if len(every) > 1 and len({*every}) < len(every):
            raise UserError("a key stands twice")

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
    """Any text: it can be compared, but not listed or computed with."""

    missing: bool = True
    kind: ClassVar[str] = "text"

    def __str__(self) -> str:
        return "a text"

    def keys(self) -> tuple[KeyValue, ...]:
        raise QueryError(
            "a text can't be a group: which texts occur is private",
            remedy=write(
                'columns={"region": pv.keys("north", "south", other="elsewhere")}',
                policy='keys = ["north", "south"]',
                advice="Only columns whose values are declared can be",
            ),
        )


@dataclass(frozen=True, slots=True)
class TimeType:
    """A date, or a date with a time, in first..last; `unit` if it was cut to one."""

    first: date
    last: date
    unit: Unit | None = None
    missing: bool = True

    def __post_init__(self) -> None:
        if type(self.first) is not type(self.last) or self.first > self.last:
            raise UserError("a range of dates is of two dates, or of two timestamps; the first is not after the last")

    @property
    def timed(self) -> bool:
        """Whether it has a time of day."""
        return isinstance(self.first, datetime)

    @property
    def kind(self) -> str:
        """The kind of column that has this type, if it is declared by no other name."""
        return "timestamp" if self.timed else "date"

    def __str__(self) -> str:
        return f"a {self.kind} in {self.first}..{self.last}"

    def keys(self) -> tuple[KeyValue, ...]:
        unit = self.unit or ("day" if not self.timed else None)
        if unit is None:
            raise QueryError(
                "a timestamp can't be a group as it is", remedy=write('group_by(pv.col("time").truncate("month"))')
            )
        return _few(steps(self.first, self.last, unit), MOST_GROUPS + 1)


Type = NumberType | BooleanType | KeyType | TextType | TimeType


def how_many(kind: Type) -> int | None:
    """The number of values that there can be; None if it is not known.

    Example:
        >>> how_many(BooleanType()), how_many(NumberType(Exact(0), Exact(9), integer=True)), how_many(TextType())
        (2, 10, None)
    """
    match kind:
        case BooleanType():
            return 2
        case KeyType():
            return len(kind.keys())
        case NumberType(wide=False):
            return kind.most - kind.least + 1
        case TimeType(first, last) if not kind.timed:
            return (last - first).days + 1
    return None


def _few(values: Iterable[KeyValue], at_most: int) -> tuple[KeyValue, ...]:
    found: list[KeyValue] = []
    for value in values:
        found.append(value)
        if len(found) > MOST_GROUPS:
            many = f"{at_most:,}" if at_most > len(found) else f"more than {MOST_GROUPS:,}"
            raise TooManyGroups(
                f"this makes {many} groups; at most {MOST_GROUPS:,} are allowed",
                remedy=write('group_by(pv.bins("age", [0, 18, 65, 110]))', advice="Take wider ones"),
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
        ends = min(lower, upper), max(lower, upper) + (lower == upper)
        raise QueryError(
            f"clip needs a lower bound below the upper one, not {show(lower)} and {show(upper)}",
            remedy=write(f"clip({', '.join(map(literal, ends))})", sql=f"CLIP(x, {', '.join(map(show, ends))})"),
        )
    low, high = max(lower, of.lower), min(upper, of.upper)
    if low > high:
        raise QueryError(
            f"a clip to {show(lower)}..{show(upper)} leaves nothing of {show(of.lower)}..{show(of.upper)}",
            remedy=Remedy("Take bounds that meet this range"),
        )
    inner = of.range
    binding = [
        end for end, moves in ((low, low > inner.unit * inner.least), (high, high < inner.unit * inner.most)) if moves
    ]
    unit, rounded = units.common(inner.unit, *binding), of.rounded
    room = units.NARROW if inner.largest < units.NARROW else units.LIMIT // 4
    if max(abs(low), abs(high)) / unit >= room:  # too long a unit: round as constants are
        unit, rounded = inner.unit, True
        if low < high and to_steps(low, unit) == to_steps(high, unit):
            raise QueryError(
                f"a clip to {show(lower)}..{show(upper)} is narrower than the steps of {show(unit)} in which these "
                "numbers are computed",
                remedy=Remedy("Take a wider range"),
            )
    if unit != inner.unit and rounded:  # what was rounded to the old unit is where the values begin and end
        low, high = max(low, inner.unit * inner.least), min(high, inner.unit * inner.most)
    aligned = of.step is not None and (low - of.lower) % of.step == 0 == (high - of.lower) % of.step
    return NumberType(low, high, step=of.step if aligned else None, missing=of.missing, unit=unit, rounded=rounded)
