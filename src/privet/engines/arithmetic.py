"""Arithmetic of numbers as SQL over integers: what `privet.tables.units` proves, term by term.

Claim: if n is in the range of its type, or NULL, so is the result in the range of the result's type, exactly; and no
intermediate integer leaves its SQL type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from privet.engines.sql import Layers, Value, floor_divided, held, integer
from privet.tables import units
from privet.tables.types import NumberType
from privet.tables.units import Range


def cast(value: Value, largest: int, name: str) -> str:
    """A value of up to `largest` as this type."""
    mine = held(largest)
    if mine == name:
        return value.sql
    # a HUGEINT becomes a BIGINT only where it fits
    return f"CAST({value.sql} AS HUGEINT)" if name == "HUGEINT" else f"TRY_CAST({value.sql} AS BIGINT)"


def coarser(sql: str, places: int, largest: int) -> str:
    """An integer of up to `largest`, divided by 2^places, rounded half up; DuckDB shifts negative numbers down too."""
    if places == 0:
        return sql
    if 1 << places - 1 > largest:
        return f"CASE WHEN {sql} IS NOT NULL THEN 0 END"
    return f"(({sql} + {1 << places - 1}) >> {places})"


def in_one_unit(values: Sequence[Value], ranges: Sequence[Range]) -> tuple[list[str], str]:
    """Numbers as integers of one unit and one SQL type, which holds their sum too; and the name of that type."""
    together = units.together(*ranges)
    rounded = [r.largest << (shift > 0) for r, shift in zip(ranges, together.shifts, strict=True)]
    name = held(max(sum(part.largest for part in together.parts), *rounded))
    terms = []
    for i, value in enumerate(values):
        if ranges[i].constant is not None:  # it may have been rounded, missing or not: see `units.together`
            public = integer(together.parts[i].least, name)
            terms.append(public if value.literal else f"CASE WHEN {value.sql} IS NOT NULL THEN {public} END")
            continue
        term = coarser(cast(value, ranges[i].largest, name), together.shifts[i], ranges[i].largest)
        terms.append(_times(term, together.factors[i]))
    return terms, name


def added(operator: str, a: Value, b: Value, x: Range, y: Range, result: Range) -> str:
    """A sum or a difference."""
    if operator == "-":
        b, y = replace(b, sql=f"(-{b.sql})"), Range(y.unit, -y.most, -y.least)
    (left, right), name = in_one_unit([a, b], [x, y])
    return narrowed(f"({left} + {right})", name, result)


def multiplied(a: Value, b: Value, x: Range, y: Range) -> str:
    """A product."""
    made = units.product(x, y)
    name = held(max(made.result.largest, x.largest << (made.shifts[0] > 0), y.largest << (made.shifts[1] > 0)))
    for one, other, mine, theirs in ((a, b, x, y), (b, a, y, x)):
        if other.literal and abs(theirs.least) == 1 and not any(made.shifts):  # only the unit changes
            sign = "" if theirs.least == 1 else "-"
            return narrowed(f"({sign}{cast(one, mine.largest, name)})", name, made.result)
    terms = [
        coarser(cast(value, r.largest, name), bits, r.largest)
        for value, r, bits in zip((a, b), (x, y), made.shifts, strict=True)
    ]
    return narrowed(f"({terms[0]} * {terms[1]})", name, made.result)


def divided(layers: Layers, a: Value, b: Value, x: Range, y: Range, made: units.Quotient) -> Value:
    """A quotient, rounded half up; NULL where the divisor is 0."""
    if made.top == 0:
        return Value(
            f"CASE WHEN {a.sql} IS NOT NULL AND {b.sql} <> 0 THEN 0::BIGINT END", "integer", max(a.level, b.level)
        )
    name = held(max(made.largest, x.largest << (made.shifts[0] > 0), y.largest << (made.shifts[1] > 0)))
    sides = [
        layers.named(Value(coarser(cast(value, r.largest, name), bits, r.largest), "integer", value.level))
        for value, r, bits in zip((a, b), (x, y), made.shifts, strict=True)
    ]
    n, d = sides
    top = layers.named(Value(_times(f"abs({n.sql})" if x.least < 0 else n.sql, 2 * made.top), "integer", n.level))
    bottom = layers.named(Value(_times(f"abs({d.sql})" if y.least < 0 else d.sql, made.bottom), "integer", d.level))
    twice = f"nullif(2 * {bottom.sql}, 0)"
    up = f"(({top.sql} + {bottom.sql}) // {twice})"
    sql = up
    if x.least < 0 or y.least < 0:  # halves of a negative quotient go towards 0, which is up
        same = f"({n.sql} >= 0) = ({d.sql} >= 0)"
        sql = f"CASE WHEN {same} THEN {up} ELSE -(({top.sql} + {bottom.sql} - 1) // {twice}) END"
    return Value(narrowed(f"({sql})", name, made.result), "integer", max(top.level, bottom.level, n.level, d.level))


def mean(total: str, many: str, made: units.Mean) -> Value:
    """The mean of a person: their sum (HUGEINT) over their count, rounded half up; NULL if they have no value."""
    bottom = f"(CAST({many} AS HUGEINT) * {made.bottom})"
    twice = f"nullif(2 * {bottom}, 0)"
    top = f"(2 * abs({total}) * {made.top})" if made.result.least < 0 else f"(2 * {total} * {made.top})"
    up = f"(({top} + {bottom}) // {twice})"
    if made.result.least < 0:
        up = f"CASE WHEN {total} >= 0 THEN {up} ELSE -(({top} + {bottom} - 1) // {twice}) END"
    return Value(narrowed(f"({up})", "HUGEINT", made.result), "integer")


def _times(sql: str, factor: int) -> str:
    return sql if factor == 1 else f"({sql} * {integer(factor)})"


def narrowed(sql: str, name: str, result: Range) -> str:
    """An integer of type `name`, as the type that holds this range."""
    wanted = held(result.largest)
    return sql if wanted == name else f"TRY_CAST({sql} AS {wanted})"


def to_whole(value: Value, mine: Range, result: Range, *, up: bool) -> str:
    """The greatest integer not above, or the least not below."""
    way = units.to_whole(mine)
    inner = mine.coarser(way.shift)
    name = held(max(inner.largest * way.top + way.bottom, mine.largest << (way.shift > 0)))
    sql = _times(coarser(cast(value, mine.largest, name), way.shift, mine.largest), way.top)
    least = inner.least * way.top
    if up:
        sql, least = f"({sql} + {way.bottom - 1})", least + way.bottom - 1
    return narrowed(floor_divided(sql, way.bottom, least), name, result)


def clipped(layers: Layers, value: Value, of: NumberType, result: NumberType) -> Value:
    """A number clamped to the range of the result, and in its unit."""
    mine, wanted = of.range, result.range
    if mine.unit == wanted.unit and wanted.least <= mine.least and mine.most <= wanted.most:
        return Value(cast(value, mine.largest, held(wanted.largest)), "integer", value.level, value.atom)
    n = layers.named(value)
    low, high = wanted.least, wanted.most
    if mine.unit == wanted.unit:
        inside = cast(n, mine.largest, held(wanted.largest))
        return Value(_between(n.sql, low, high, inside, held(wanted.largest)), "integer", n.level)
    # clamped in its own unit first, so that nothing outside the bounds is multiplied
    first, last = math.ceil(low * wanted.unit / mine.unit), math.floor(high * wanted.unit / mine.unit)
    name = held(max(wanted.largest, mine.largest))
    ends = f"WHEN {n.sql} < {first} THEN {integer(low, name)} WHEN {n.sql} > {last} THEN {integer(high, name)}"
    if first > last:  # no multiple of the unit lies between the bounds
        sql = f"CASE {ends} END"
    else:
        m = layers.named(Value(_between(n.sql, first, last, n.sql, held(mine.largest)), "integer", n.level))
        factor = int(mine.unit / wanted.unit) if first or last else 1
        inside = _times(cast(m, mine.largest, name), factor)
        sql = f"CASE WHEN {n.sql} BETWEEN {first} AND {last} THEN {inside} {ends} END"
        n = m
    return Value(narrowed(sql, name, wanted), "integer", n.level)


def _between(n: str, low: int, high: int, inside: str, name: str) -> str:
    ends = f"WHEN {n} < {low} THEN {integer(low, name)} WHEN {n} > {high} THEN {integer(high, name)}"
    return f"CASE WHEN {n} BETWEEN {low} AND {high} THEN {inside} {ends} END"
