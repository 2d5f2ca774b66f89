"""The column values behind a key: bins, months, years and multiples are ranges of a column."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any

from privet.exact import Exact
from privet.tables.analysis.ranges import moment
from privet.tables.expressions import nodes as e
from privet.tables.expressions.nodes import Node, Types
from privet.tables.types import KeyValue, NumberType, TimeType, steps

_Preimage = Iterator[tuple[str, Any, Any, bool]]


def slack(kind: NumberType) -> Exact:
    """An upper bound on the effect of rounding: less than a 2^31st of the range, plus that of a 64-bit float."""
    return (kind.upper - kind.lower) / 2**20 + max(abs(kind.lower), abs(kind.upper)) / 2**50


def preimage(node: Node, value: KeyValue, types: Types) -> _Preimage:
    """For each column, its range if the expression has this value, and whether the upper end is excluded."""
    match node:
        case e.Bin(inner, edges):
            place = node.type(types).keys().index(value)
            last = place == len(edges) - 2
            if isinstance(inner, e.Column):  # constants and edges are rounded in the same way
                yield from _column(inner.name, edges[place], edges[place + 1], open_=not last, types=types)
            else:
                yield from _inverse(inner, edges[place], edges[place + 1], open_=not last, types=types)
        case _ if isinstance(value, bool | str):
            return
        case _:
            low = Exact(value) if isinstance(value, int) else value
            yield from _inverse(node, low, low, open_=False, types=types)


def _column(name: str, low: Any, high: Any, *, open_: bool, types: Types) -> _Preimage:
    kind = types[name]
    if open_ and isinstance(kind, NumberType) and kind.integer and high.denominator == 1:
        yield name, low, high - 1, False
    else:
        yield name, low, high, open_ and isinstance(kind, NumberType) and not kind.integer


def _inverse(node: Node, low: Any, high: Any, *, open_: bool, types: Types) -> _Preimage:
    """The same for an expression whose value is in low..high."""
    match node:
        case e.Column(name):
            kind = types[name]
            if isinstance(kind, NumberType) and not kind.integer and not _on_lattice(kind, low, high):
                yield name, low - slack(kind), high + slack(kind), False
            else:
                yield from _column(name, low, high, open_=open_, types=types)
        case e.Truncate(inner, unit):
            after = next(islice(steps(high, high + timedelta(days=370), unit), 1, None))
            end = after - (timedelta(microseconds=1) if isinstance(high, datetime) else timedelta(days=1))
            yield from _inverse(inner, low, end, open_=False, types=types)
        case e.DatePart(inner, "year"):
            time = inner.type(types)
            years = max(math.ceil(low), 1), min(math.floor(high), 9001)  # more than can be declared
            if years[0] > years[1]:
                return
            first, last = date(years[0], 1, 1), date(years[1], 12, 31)
            if isinstance(time, TimeType) and time.timed:
                end = moment(last) + timedelta(days=1, microseconds=-1)
                yield from _inverse(inner, moment(first), end, open_=False, types=types)
            else:
                yield from _inverse(inner, first, last, open_=False, types=types)
        case e.Rounded("floor", inner):
            yield from _inverse(inner, low, high + 1, open_=True, types=types)
        case e.Arithmetic("+", inner, e.Constant(Exact() as c)) | e.Arithmetic("+", e.Constant(Exact() as c), inner):
            yield from _inverse(inner, low - c, high - c, open_=open_, types=types)
        case e.Arithmetic("-", inner, e.Constant(Exact() as c)):
            yield from _inverse(inner, low + c, high + c, open_=open_, types=types)
        case e.Arithmetic("*", inner, e.Constant(Exact() as c)) | e.Arithmetic("*", e.Constant(Exact() as c), inner):
            if c > 0:
                yield from _inverse(inner, low / c, high / c, open_=open_, types=types)
        case e.Arithmetic("/", inner, e.Constant(Exact() as c)) if c > 0:
            yield from _inverse(inner, low * c, high * c, open_=open_, types=types)


def _on_lattice(kind: NumberType, low: Exact, high: Exact) -> bool:
    """Whether rounding to the steps of the column leaves these numbers unchanged."""
    return low.denominator == high.denominator == 1 and (kind.wide or kind.bounds().step <= 1)
