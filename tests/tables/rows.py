"""Expressions evaluated on one row in exact arithmetic, by the textbook: nothing of the library's typing is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

import privet as pv
from privet.tables.expressions import nodes as e
from privet.tables.operators import Scan
from privet.tables.relation import Relation
from privet.tables.schema import Column, Schema

Row = Mapping[str, Any]

COLUMNS: dict[str, Column] = {
    "a": pv.integer(-3, 7),
    "b": pv.number(-2, 5, step=0.25),
    "c": pv.integer(1, 4, required=True),
    "z": pv.number("1/3", "7/2"),
    "f": pv.boolean(),
    "g": pv.boolean(required=True),
    "region": pv.keys("north", "south", other="elsewhere"),
    "grade": pv.keys(1, 2, 3),
    "note": pv.text(),
    "born": pv.date("1999-11-20", "2001-02-10"),
    "seen": pv.timestamp("2024-02-28T22:30:00", "2024-03-02T01:15:00"),
}


def schema(**how: Any) -> Schema:
    return Schema.declare("people", **{"protect": pv.each_row(), "columns": COLUMNS, **how})


def people(**how: Any) -> Relation:
    return Relation(Scan(schema(**how)))


TYPES = people().input.types()


def _or_missing(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values, values, values)


rows: st.SearchStrategy[Row] = st.fixed_dictionaries(
    {
        "a": _or_missing(st.integers(-3, 7).map(Fraction)),
        "b": _or_missing(st.integers(-8, 20).map(lambda k: Fraction(k, 4))),
        "c": st.integers(1, 4).map(Fraction),
        "z": _or_missing(st.fractions(Fraction(1, 3), Fraction(7, 2), max_denominator=12)),
        "f": _or_missing(st.booleans()),
        "g": st.booleans(),
        "region": _or_missing(st.sampled_from(["north", "south", "elsewhere"])),
        "grade": _or_missing(st.integers(1, 3)),
        "note": _or_missing(st.sampled_from(["", "a", "ab", "b"])),
        "born": _or_missing(st.integers(0, 448).map(lambda k: date(1999, 11, 20) + timedelta(days=k))),
        "seen": _or_missing(
            st.integers(0, 182_700).map(lambda k: datetime(2024, 2, 28, 22, 30) + timedelta(seconds=k))
        ),
    }
)  # fmt: skip


def value(node: e.Node, row: Row) -> Any:
    """What the expression is on this row; None is missing, as in SQL."""
    match node:
        case e.Column(name):
            return row[name]
        case e.Constant(constant):
            return constant
        case e.Arithmetic(operator, left, right):
            return _arithmetic(operator, value(left, row), value(right, row))
        case e.Rounded(function, of):
            x = _number(value(of, row))
            if x is None:
                return None
            return abs(x) if function == "abs" else Fraction(math.floor(x) if function == "floor" else math.ceil(x))
        case e.Clip(of, low, high):
            x = _number(value(of, row))
            return None if x is None else min(max(x, low), high)
        case e.Compare(operator, left, right):
            return _compare(operator, value(left, row), value(right, row))
        case e.Logic(operator, parts):
            found = [value(part, row) for part in parts]
            decisive = operator == "or"
            if decisive in found:
                return decisive
            return None if None in found else not decisive
        case e.Not(of):
            x = value(of, row)
            return None if x is None else not x
        case e.IsIn(of, values):
            x = value(of, row)
            return None if x is None else any(x == constant.value for constant in values)
        case e.IsMissing(of):
            return value(of, row) is None
        case e.StartsWith(of, prefix):
            x = value(of, row)
            return None if x is None else x[: len(prefix)] == prefix
        case e.Case(branches, otherwise):
            for condition, then in branches:
                if value(condition, row) is True:
                    return value(then, row)
            return None if otherwise is None else value(otherwise, row)
        case e.DatePart(of, part):
            x = value(of, row)
            return None if x is None else Fraction(date_part(x, part))
        case e.Truncate(of, unit):
            x = value(of, row)
            return None if x is None else cut(x, unit)
        case e.Bin(of, edges):
            x = _number(value(of, row))
            if x is None or not edges[0] <= x <= edges[-1]:
                return None
            last = len(edges) - 2
            return min(sum(edge <= x for edge in edges) - 1, last)
        case e.Beyond(of):  # these rows have no value outside of its range
            return None if value(of, row) is None else Fraction(0)
        case e.Which() | e.OfAnswer():
            raise AssertionError(node)


def _number(x: Any) -> Any:
    return Fraction(x) if isinstance(x, bool) else x


def _arithmetic(operator: str, x: Any, y: Any) -> Any:
    if x is None or y is None:
        return None
    if isinstance(x, date):
        return Fraction((x - y).days)
    a, b = _number(x), _number(y)
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
    return None if b == 0 else a / b


def _compare(operator: str, x: Any, y: Any) -> bool | None:
    if x is None or y is None:
        return None
    order = (x > y) - (x < y) if operator not in ("==", "!=") else int(x != y)
    return {"==": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[
        operator
    ]


def date_part(x: date, part: str) -> int:
    match part:
        case "quarter":
            return math.ceil(x.month / 3)
        case "weekday":
            return x.isocalendar()[2]
    return int(getattr(x, part))


def cut(x: date, unit: str) -> date:
    """The start of the unit, found by going back a day (or a minute) at a time until the unit changes."""
    if isinstance(x, datetime):
        if unit == "hour":
            return datetime.fromisoformat(x.isoformat()[:13])
        return datetime.combine(cut(x.date(), unit), datetime.min.time())

    def label(day: date) -> tuple[int, ...]:
        match unit:
            case "year":
                return (day.year,)
            case "quarter":
                return (day.year, (day.month + 2) // 3)
            case "month":
                return (day.year, day.month)
            case "week":
                return day.isocalendar()[:2]
        return (day.toordinal(),)

    while x > date.min and label(x - timedelta(days=1)) == label(x):
        x -= timedelta(days=1)
    return x
