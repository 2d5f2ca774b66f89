"""Arithmetic of numbers as SQL over integers: what `privet.tables.units` proves, term by term.

Claim: if n is in the range of its type, or NULL, so is the result in the range of the result's type, exactly; and no
intermediate integer leaves its SQL type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from privet.engines.sql.dialect import Dialect, Size, held
from privet.engines.sql.text import Layers, Value
from privet.tables import units
from privet.tables.types import NumberType
from privet.tables.units import Range


def cast(dialect: Dialect, value: Value, largest: int, size: Size) -> str:
    """A value of up to `largest` as this size."""
    mine = held(largest)
    if mine == size:
        return value.sql
    # a wide integer becomes a narrow one only where it fits
    return (dialect.cast if size == "wide" else dialect.try_cast)(value.sql, dialect.types[size])


def coarser(dialect: Dialect, sql: str, places: int, largest: int, size: Size) -> str:
    """An integer of up to `largest`, and of this size, divided by 2^places, rounded half up."""
    if places == 0:
        return sql
    if 1 << places - 1 > largest:
        return f"CASE WHEN {sql} IS NOT NULL THEN 0 END"
    if size == "wide" and largest + (1 << places - 1) > dialect.widest:
        return dialect.shifted(f"({dialect.shifted(sql, places - 1, size)} + 1)", 1, size)
    return dialect.shifted(f"({sql} + {1 << places - 1})", places, size)


def in_one_unit(dialect: Dialect, values: Sequence[Value], ranges: Sequence[Range]) -> tuple[list[str], Size]:
    """Numbers as integers of one unit and one size, which holds their sum too; and that size."""
    together = units.together(*ranges)
    rounded = [r.largest << (shift > 0) for r, shift in zip(ranges, together.shifts, strict=True)]
    size = held(max(sum(part.largest for part in together.parts), *rounded))
    terms = []
    for i, value in enumerate(values):
        if ranges[i].constant is not None:  # it may have been rounded, missing or not: see `units.together`
            public = dialect.integer(together.parts[i].least, size)
            terms.append(public if value.literal else f"CASE WHEN {value.sql} IS NOT NULL THEN {public} END")
            continue
        largest = ranges[i].largest
        term = coarser(dialect, cast(dialect, value, largest, size), together.shifts[i], largest, size)
        terms.append(_times(dialect, term, together.factors[i]))
    return terms, size


def added(dialect: Dialect, operator: str, a: Value, b: Value, x: Range, y: Range, result: Range) -> str:
    """A sum or a difference."""
    if operator == "-":
        b, y = replace(b, sql=dialect.negated(b.sql)), Range(y.unit, -y.most, -y.least)
    (left, right), size = in_one_unit(dialect, [a, b], [x, y])
    return narrowed(dialect, f"({left} + {right})", size, result)


def multiplied(dialect: Dialect, a: Value, b: Value, x: Range, y: Range) -> str:
    """A product."""
    product = units.product(x, y)
    size = held(max(product.result.largest, x.largest << (product.shifts[0] > 0), y.largest << (product.shifts[1] > 0)))
    for one, other, mine, theirs in ((a, b, x, y), (b, a, y, x)):
        if other.literal and abs(theirs.least) == 1 and not any(product.shifts):  # only the unit changes
            same = cast(dialect, one, mine.largest, size)
            return narrowed(dialect, same if theirs.least == 1 else dialect.negated(same), size, product.result)
    terms = [
        coarser(dialect, cast(dialect, value, r.largest, size), bits, r.largest, size)
        for value, r, bits in zip((a, b), (x, y), product.shifts, strict=True)
    ]
    return narrowed(dialect, f"({terms[0]} * {terms[1]})", size, product.result)


def divided(layers: Layers, a: Value, b: Value, x: Range, y: Range, quotient: units.Quotient) -> Value:
    """A quotient, rounded half up; NULL where the divisor is 0."""
    dialect = layers.dialect
    if quotient.top == 0:
        known = f"{a.sql} IS NOT NULL AND {b.sql} <> 0"
        return Value(f"CASE WHEN {known} THEN {dialect.integer(0)} END", "integer", max(a.level, b.level))
    size = held(max(quotient.largest, x.largest << (quotient.shifts[0] > 0), y.largest << (quotient.shifts[1] > 0)))
    sides = [
        layers.named(
            Value(
                coarser(dialect, cast(dialect, value, r.largest, size), bits, r.largest, size), "integer", value.level
            )
        )
        for value, r, bits in zip((a, b), (x, y), quotient.shifts, strict=True)
    ]
    n, d = sides
    top = layers.named(
        Value(
            _times(dialect, dialect.absolute(n.sql, size) if x.least < 0 else n.sql, 2 * quotient.top),
            "integer",
            n.level,
        )
    )
    bottom = layers.named(
        Value(
            _times(dialect, dialect.absolute(d.sql, size) if y.least < 0 else d.sql, quotient.bottom),
            "integer",
            d.level,
        )
    )
    twice = f"nullif(2 * {bottom.sql}, 0)"
    up = dialect.divided(f"({top.sql} + {bottom.sql})", twice, size)
    sql = up
    if x.least < 0 or y.least < 0:  # halves of a negative quotient go towards 0, which is up
        same = f"({n.sql} >= 0) = ({d.sql} >= 0)"
        down = dialect.divided(f"({top.sql} + {bottom.sql} - 1)", twice, size)
        sql = f"CASE WHEN {same} THEN {up} ELSE {dialect.negated(down)} END"
    return Value(
        narrowed(dialect, f"({sql})", size, quotient.result), "integer", max(top.level, bottom.level, n.level, d.level)
    )


def mean(dialect: Dialect, total: str, many: str, mean_of: units.Mean) -> Value:
    """The mean of a person: their sum (wide) over their count, rounded half up; NULL if they have no value."""
    bottom = f"({dialect.cast(many, dialect.types['wide'])} * {mean_of.bottom})"
    twice = f"nullif(2 * {bottom}, 0)"
    size = dialect.absolute(total, "wide") if mean_of.result.least < 0 else total
    top = f"(2 * {size} * {mean_of.top})"
    up = dialect.divided(f"({top} + {bottom})", twice, "wide")
    if mean_of.result.least < 0:
        down = dialect.divided(f"({top} + {bottom} - 1)", twice, "wide")
        up = f"CASE WHEN {total} >= 0 THEN {up} ELSE {dialect.negated(down)} END"
    return Value(narrowed(dialect, f"({up})", "wide", mean_of.result), "integer")


def _times(dialect: Dialect, sql: str, factor: int) -> str:
    return sql if factor == 1 else f"({sql} * {dialect.integer(factor)})"


def narrowed(dialect: Dialect, sql: str, size: Size, result: Range) -> str:
    """An integer of a size, as the size that holds this range."""
    wanted = held(result.largest)
    return sql if wanted == size else dialect.try_cast(sql, dialect.types[wanted])


def to_whole(dialect: Dialect, value: Value, mine: Range, result: Range, *, up: bool) -> str:
    """The greatest integer not above, or the least not below."""
    way = units.to_whole(mine)
    inner = mine.coarser(way.shift)
    size = held(max(inner.largest * way.top + way.bottom, mine.largest << (way.shift > 0)))
    fine = cast(dialect, value, mine.largest, size)
    sql = _times(dialect, coarser(dialect, fine, way.shift, mine.largest, size), way.top)
    least = inner.least * way.top
    if up:
        sql, least = f"({sql} + {way.bottom - 1})", least + way.bottom - 1
    return narrowed(dialect, dialect.floor_divided(sql, way.bottom, least, size), size, result)


def clipped(layers: Layers, value: Value, of: NumberType, result: NumberType) -> Value:
    """A number clamped to the range of the result, and in its unit."""
    dialect, mine, wanted = layers.dialect, of.range, result.range
    if mine.unit == wanted.unit and wanted.least <= mine.least and mine.most <= wanted.most:
        return Value(cast(dialect, value, mine.largest, held(wanted.largest)), "integer", value.level, value.atom)
    n = layers.named(value)
    low, high = wanted.least, wanted.most
    if mine.unit == wanted.unit:
        inside = cast(dialect, n, mine.largest, held(wanted.largest))
        return Value(_between(dialect, n.sql, low, high, inside, held(wanted.largest)), "integer", n.level)
    # clamped in its own unit first, so that nothing outside the bounds is multiplied
    first, last = math.ceil(low * wanted.unit / mine.unit), math.floor(high * wanted.unit / mine.unit)
    size = held(max(wanted.largest, mine.largest))
    lowest, highest = dialect.integer(low, size), dialect.integer(high, size)
    ends = f"WHEN {n.sql} < {first} THEN {lowest} WHEN {n.sql} > {last} THEN {highest}"
    if first > last:  # no multiple of the unit lies between the bounds
        sql = f"CASE {ends} END"
    else:
        m = layers.named(Value(_between(dialect, n.sql, first, last, n.sql, held(mine.largest)), "integer", n.level))
        factor = int(mine.unit / wanted.unit) if first or last else 1
        inside = _times(dialect, cast(dialect, m, mine.largest, size), factor)
        sql = f"CASE WHEN {n.sql} BETWEEN {first} AND {last} THEN {inside} {ends} END"
        n = m
    return Value(narrowed(dialect, sql, size, wanted), "integer", n.level)


def _between(dialect: Dialect, n: str, low: int, high: int, inside: str, size: Size) -> str:
    ends = f"WHEN {n} < {low} THEN {dialect.integer(low, size)} WHEN {n} > {high} THEN {dialect.integer(high, size)}"
    return f"CASE WHEN {n} BETWEEN {low} AND {high} THEN {inside} {ends} END"
