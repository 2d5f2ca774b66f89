"""The last step before anything is counted: a row's code is an integer of a public range, or missing, and nothing else.

Claim: whatever integer, or NULL, stands below, the result is in 0..width or NULL; and never NULL where a value was
promised. No proof about the expression below is needed for this: it is the reason why a claimed sensitivity holds.
A float is compared with its bounds before its code is computed; `numbers` has the proof that the code is in the range.
"""

from __future__ import annotations

from privet.engines.sql.dialect import Dialect, Size, held
from privet.engines.sql.text import Layers, Value
from privet.errors import InternalError
from privet.exact import Exact
from privet.exact.lattice import to_steps
from privet.tables.types import NumberType


def enforced(dialect: Dialect, code: Value, *, missing: bool) -> Value:
    """A code that is 0 instead of NULL where a value was promised."""
    return code if missing else Value(f"COALESCE({code.sql}, {dialect.integer(0)})", "integer", code.level)


def in_hull(dialect: Dialect, code: str, width: int) -> str:
    """A code that is not NULL, moved into 0..width."""
    return f"least(greatest({code}, {dialect.integer(0)}), {dialect.integer(width)})"


def clamped(n: str, least: int | str, most: int | str, inside: str, outside: str) -> str:
    """`inside` where n is in least..most; else what the branches `outside` say; else NULL."""
    return f"CASE WHEN {n} BETWEEN {least} AND {most} THEN {inside} {outside} END"


def encoded(layers: Layers, value: Value, kind: NumberType, lower: Exact, step: Exact, width: int) -> Value:
    """The code of a number: (n - l) / m, rounded half up and clamped to 0..width, where l and m are whole."""
    dialect, constant = layers.dialect, kind.range.constant
    if constant is not None:
        code = min(max(to_steps(constant - lower, step), 0), width)
        return Value(f"CASE WHEN {value.sql} IS NOT NULL THEN {dialect.integer(code)} END", "integer", value.level)
    first, each = lower / kind.unit, step / kind.unit
    if first.denominator != 1 or each.denominator != 1:
        raise InternalError("a code must be a whole number of units. This is a bug in Privet.")
    least, by = int(first), int(each)
    n = layers.named(value)
    size = held(max(kind.range.largest, abs(least)))
    moved = f"({n.sql} - {dialect.integer(least, size)})" if least else n.sql
    # no further than the type of the difference: what is beyond has the last code too
    most = 2**63 - 1 if size == "narrow" else dialect.widest
    last = min(least + width * by, least + most, most)
    inside, far = _nearest(dialect, moved, by, size), ""
    if size == "wide":  # narrowing it can't fail here: what is inside was compared with the bounds
        inside = dialect.try_cast(inside, dialect.types["narrow"])
        if kind.most - least > most:  # the type does not hold every difference, but those of negative numbers
            other = dialect.try_cast(_nearest_sum(dialect, n.sql, -least, by), dialect.types["narrow"])
            far, last = f"WHEN {n.sql} BETWEEN 0 AND {min(least + width * by, most)} THEN {other} ", -1
    beyond = f"WHEN {n.sql} < {least} THEN {dialect.integer(0)} WHEN {n.sql} > {last} THEN {dialect.integer(width)}"
    return Value(clamped(n.sql, least, last, inside, far + beyond), "integer", n.level)


def _nearest_sum(dialect: Dialect, n: str, more: int, by: int) -> str:
    """(n + more) / by, rounded half up, of a non-negative n and a sum that no type holds: both are divided first."""
    whole, rest = divmod(more, by)
    divided, left = (dialect.divided(n, str(by), "wide"), f"{n} % {by}") if by <= dialect.widest else ("0", n)
    flags = [  # of n's rest, from which the rests of both make one half more, or three
        dialect.flag(f"{left} >= {least}") for least in ((by + 1) // 2 - rest, (3 * by + 1) // 2 - rest)
        if least <= dialect.widest
    ]  # fmt: skip
    return f"({' + '.join([divided, dialect.integer(whole, 'wide'), *flags])})"


def _nearest(dialect: Dialect, moved: str, by: int, size: Size) -> str:
    """A non-negative integer divided, rounded half up. No intermediate integer exceeds it by more than 1."""
    if by == 1:
        return moved
    if by > dialect.widest:  # as no difference is
        return dialect.flag(f"{moved} >= {by - by // 2}")
    if by & (by - 1) == 0:
        return dialect.shifted(f"({dialect.floor_divided(moved, by // 2, 0, size)} + 1)", 1, size)
    return f"({dialect.divided(moved, str(by), size)} + {dialect.flag(f'{moved} % {by} >= {by - by // 2}')})"
