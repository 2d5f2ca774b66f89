"""A column of numbers, read once: from here on there is no float.

Claim: a value becomes the code (x - base) / step, rounded half up, of x clamped to the declared bounds; NULL and NaN
are missing. As a key, what is outside of the bounds is missing too, and what is inside has the code that it has as a
value, whatever type the source holds; an integer is rounded first. Integers are read exactly, and so are decimals whose
digits and decimal places come to 37 at most; everything else as a 64-bit float. Where the step is a power of two the
float is read exactly too. A declared step that is not is divided by in floats, as IEEE 754 says: alike everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privet.engines.sql.casts import as_double
from privet.engines.sql.dialect import Dialect, held
from privet.engines.sql.hull import clamped, in_hull
from privet.engines.sql.text import Value
from privet.exact import Exact, down, nearest, up
from privet.exact.lattice import is_power_of_two, to_steps
from privet.tables.stored_types import StoredType
from privet.tables.types import NumberType
from privet.tables.units import LIMIT

_HALF = Exact(1, 2)
_FAR = 2**60
_HALVES, _UNDER_HALF = 2**52, 0.5 - 2**-54
"""floor(y + 1/2), for 0 <= y < 2^51, is what floor(y + h) is in floats, h being the greatest below 1/2: with 1/2 itself
h + 1/2 would be 1. All other sums are exact, or rounded between the same two integers."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the values of a column lie: base + step * code, for codes 0..width."""

    base: Exact
    step: Exact
    width: int

    @classmethod
    def of(cls, kind: NumberType) -> Grid:
        """The grid of a declared column: its step, or else its unit."""
        if kind.step is not None:
            return cls(kind.lower, kind.step, math.floor((kind.upper - kind.lower) / kind.step))
        return cls(kind.unit * kind.least, kind.unit, kind.most - kind.least)

    def code(self, value: Exact) -> int:
        """The code of a public number."""
        return min(max(to_steps(value - self.base, self.step), 0), self.width)


def read(
    dialect: Dialect, kind: NumberType, default: Exact | bool | None, stored: StoredType, sql: str, *, keyed: bool
) -> Value | None:
    """The integer n of a column, in the unit of its type; `keyed`: missing where it is out of the declared range."""
    grid = Grid.of(kind)
    code = _code(dialect, kind, grid, default, stored, sql, keyed=keyed)
    if code is None:
        return None
    first, each = int(grid.base / kind.unit), int(grid.step / kind.unit)
    size = held(kind.range.largest)
    n = code if size == "narrow" else dialect.cast(code, dialect.types["wide"])
    n = f"({n} * {each})" if each > 1 else n
    return Value(f"({n} + {dialect.integer(first, size)})" if first else n, "integer")


def read_code(
    dialect: Dialect, kind: NumberType, default: Exact | bool | None, stored: StoredType, sql: str
) -> Value | None:
    """The code of a column on its own grid: the hull is enforced where it is read."""
    code = _code(dialect, kind, Grid.of(kind), default, stored, sql, keyed=False)
    return None if code is None else Value(code, "integer")


def _code(
    dialect: Dialect,
    kind: NumberType,
    grid: Grid,
    default: Exact | bool | None,
    stored: StoredType,
    sql: str,
    *,
    keyed: bool,
) -> str | None:
    d = as_double(dialect, stored, sql)
    if d is None:
        return None
    code = _of_whole(dialect, kind, grid, stored, sql, keyed=keyed)
    code = code or _of_double(dialect, kind, grid, d, keyed=keyed)
    if default is None:
        return code
    instead = dialect.integer(grid.code(Exact(default)))
    if keyed:  # out of range is no key; only what is missing reads as the default
        return f"CASE WHEN {d} IS NULL OR {dialect.is_nan(d)} THEN {instead} ELSE {code} END"
    return f"COALESCE({code}, {instead})"


# --- integers and decimals ------------------------------------------------------------------------------


def _of_whole(
    dialect: Dialect, kind: NumberType, grid: Grid, stored: StoredType, sql: str, *, keyed: bool
) -> str | None:
    """From a whole number m that stands for m / scale; None if the source has none, or it would take too many bits."""
    whole = _whole(dialect, stored, sql)
    if whole is None:
        return None
    m, scale, reach = whole
    low, high = math.ceil(kind.lower * scale), math.floor(kind.upper * scale)
    if keyed and _whole_first(kind):
        low, high = math.ceil((kind.lower - _HALF) * scale), math.ceil((kind.upper + _HALF) * scale) - 1
    low, high = max(low, -reach - 1), min(high, reach + 1)
    slope, offset = 1 / (scale * grid.step), grid.base / grid.step
    below = math.lcm(slope.denominator, offset.denominator)
    times, minus = int(slope * below), int(offset * below)
    largest = 2 * (max(abs(low), abs(high), 1) * times + abs(minus)) + below
    if largest >= LIMIT:
        return None
    size = held(largest)
    scaled = dialect.cast(m, dialect.types[size]) if size == "wide" else m
    if size == "narrow" and reach > 2**63:  # between the bounds it is narrow
        scaled = dialect.try_cast(m, dialect.types[size])
    scaled = f"{scaled} * {times}" if times > 1 else scaled
    moved = f"({scaled} - {dialect.integer(minus, size)})" if minus else f"({scaled})"
    if below > 1:  # not negative: m / scale is at least half a step below `base`
        moved = dialect.floor_divided(f"(2 * {moved} + {below})", 2 * below, 0, size)
    first, last = ((2 * (end * times - minus) + below) // (2 * below) for end in (low, high))
    inside_hull = 0 <= first <= last <= grid.width  # codes of what is inside are codes
    if low <= high and not inside_hull:
        moved = f"least(greatest({moved}, 0), {grid.width})"
    inside = moved if size == "narrow" else dialect.try_cast(moved, dialect.types["narrow"])
    if keyed:
        return f"CASE WHEN {m} BETWEEN {low} AND {high} THEN {inside} END"
    top = dialect.integer(grid.width)
    if inside_hull and low <= high and size == "narrow" and reach <= 2**63:
        return dialect.clamped_integer(m, (low, high), inside, (dialect.integer(0), top))
    outside = f"WHEN {m} < {low} THEN {dialect.integer(0)} WHEN {m} > {high} THEN {top}"
    if stored.family == "integer" and stored.bits > 127 and not stored.signed:  # beyond the wide integers
        outside += f" WHEN {sql} IS NOT NULL THEN {top}"
    return clamped(m, low, high, inside, outside)


def _whole(dialect: Dialect, stored: StoredType, sql: str) -> tuple[str, int, int] | None:
    """A whole number m, its scale, and the greatest |m| that the source can hold."""
    if stored.fits_int64 or stored.family == "boolean":
        return (sql if stored.is_int64 else dialect.flag(sql)), 1, 2**63
    if stored.family == "integer":
        return dialect.try_cast(sql, dialect.types["wide"], stored), 1, 2**127 - 2
    if stored.family == "decimal":
        digits = dialect.digits(stored, sql)
        return None if digits is None else (digits, 10**stored.scale, 10**stored.precision)
    return None


# --- floats, and what is read as one ----------------------------------------------------------------------


def _whole_first(kind: NumberType) -> bool:
    """Whether a value is rounded before it is compared with the bounds, as integers are: 10.4 is 10, a key of 0..10."""
    return kind.integer and kind.step is None


def _of_double(dialect: Dialect, kind: NumberType, grid: Grid, d: str, *, keyed: bool) -> str:
    if keyed and not _whole_first(kind):
        # the floats that the bounds are written as: 1.1 is in 0.1..1.1, though its double lies above 11/10
        within = f"{d} BETWEEN {dialect.float(kind.lower)} AND {dialect.float(kind.upper)}"
        return f"CASE WHEN {within} THEN {_of_double(dialect, kind, grid, d, keyed=False)} END"
    if grid.width == 0 and not keyed:
        return f"CASE WHEN NOT {dialect.is_nan(d)} THEN {dialect.integer(0)} END"
    steps = _Steps.of(kind, grid)
    y, first = steps.sql(dialect, d), steps.first
    # divided by a step of at most 1, no number comes too near to 0
    far = grid.step / _FAR
    near_zero = None if grid.step <= 1 else (steps.zero - far, steps.zero + far)
    least, most = 2 * first - 1, 2 * (first + grid.width)
    size = held(max(abs(least), abs(most)) + 1)
    # what lies further out is compared and not computed: no product is too large
    low, high = dialect.float(kind.lower - grid.step), dialect.float(kind.upper + grid.step)
    if first >= 0 and most < _HALVES and not keyed:
        n = dialect.floored(f"{y} + {dialect.float(_UNDER_HALF)}", d, near_zero, size)
        inside = f"({n} - {dialect.integer(first)})" if first else n
    else:
        # floor(y + 1/2) is (floor(2 y) + 1) / 2, rounded down; y + 1/2 itself could be rounded up
        w = dialect.floored(f"{y} * {dialect.float(2)}", d, near_zero, size)
        inside = dialect.shifted(f"({w} - {dialect.integer(least, size)})", 1, size)
        inside = inside if size == "narrow" else dialect.try_cast(inside, dialect.types["narrow"])
        if keyed:
            known = f"CASE WHEN {w} BETWEEN {least} AND {most} THEN {inside} END"
            return f"CASE WHEN {d} BETWEEN {low} AND {high} THEN {known} END"
    if size == "narrow" and (steps.code(steps.lower), steps.code(steps.upper)) == (0, grid.width):
        # the hull: codes of what is inside are codes, since none is less than that of a smaller number. Not of wide
        # ones: that would rest on how a database puts a wide integer together
        ends = dialect.float(steps.lower), dialect.float(steps.upper)
        return dialect.clamped_float(d, ends, inside, (dialect.integer(0), dialect.integer(grid.width)))
    inside = in_hull(dialect, inside, grid.width)
    outside = f"WHEN {d} < {dialect.float(steps.lower)} THEN {dialect.integer(0)} WHEN NOT {dialect.is_nan(d)} THEN"
    return clamped(d, low, high, inside, f"{outside} {dialect.integer(grid.width)}")


@dataclass(frozen=True, slots=True)
class _Steps:
    """A float in steps, as the database computes it: exactly, or as IEEE 754 says.

    Claim: if x <= y, then code(x) <= code(y). What is below `lower` has a code of at most 0, what is above `upper` one
    of at least `width`, if `lower` has the code 0 and `upper` has `width`.
    """

    grid: Grid
    exact: bool
    lower: float
    upper: float
    """Doubles beside the bounds."""

    @classmethod
    def of(cls, kind: NumberType, grid: Grid) -> _Steps:
        if is_power_of_two(grid.step) and (grid.base / grid.step).denominator == 1:
            return cls(grid, True, up(kind.lower), down(kind.upper))  # no double lies between these and the bounds
        return cls(grid, False, nearest(grid.base), nearest(kind.upper))

    @property
    def first(self) -> int:
        """How many steps the code 0 is."""
        return int(self.grid.base / self.grid.step) if self.exact else 0

    @property
    def zero(self) -> Exact:
        """What is 0 steps."""
        return Exact(0) if self.exact else self.grid.base

    def sql(self, dialect: Dialect, d: str) -> str:
        """The number of steps, as a float."""
        if self.exact:
            return f"{d} * {dialect.float(1 / self.grid.step)}"  # exact: a product with a power of two
        return f"({d} - {dialect.float(self.grid.base)}) / {dialect.float(self.grid.step)}"

    def code(self, x: float) -> int:
        """What `sql` gives for a number, rounded half up, from the first code on."""
        if self.exact:
            return to_steps(Exact(x), self.grid.step) - self.first
        return to_steps(Exact((x - nearest(self.grid.base)) / nearest(self.grid.step)), Exact(1))


def edge(dialect: Dialect, kind: NumberType, k: int) -> str | None:
    """The least double that is read as n >= k; None where it is not exact, since the step is not a power of two."""
    least = (2 * k - 1) * kind.unit / 2
    if kind.step is not None or not is_power_of_two(kind.unit) or Exact(nearest(least)) != least:
        return None
    return dialect.float(least)
