"""Broken twins of the engine, in Python, row by row, for tables whose rows are protected each by itself.

`Floats` computes in 64-bit floats what was proved over rationals, and nothing enforces what was claimed: a row can lack
a value that its type promises. `Overlapping` compares whole edges of bins as integers and others as floats: a row can
be in several. Both are what the engine once was, and what the search for neighbours must find.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise, product
from typing import Any

import numpy as np
from tests.neighbours.worlds import Data, World

from privet.exact import Exact, nearest
from privet.tables import operators as o
from privet.tables.expressions import nodes as e
from privet.tables.schema import Column
from privet.tables.statement import At, Distinct, Present, Rows, Squares, Statement
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, truncate

Read = Callable[[str, str], Any]
"""The value of a column, as a value or as a key."""

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip
EPOCH = datetime(1970, 1, 1)


class Floats:
    """The tallies of statements over the rows of a world, in floats."""

    def __init__(self, of: World, data: Data) -> None:
        self.of = of
        self.data = data
        self.public = {table.name: table.source.rows.to_pylist() for table in of.public}

    def answer(self, statement: Statement) -> list[list[int]]:
        """As the engine gives them: by group, by tally."""
        domains = statement.domains()
        places = {group: place for place, group in enumerate(product(*domains))}
        found = [[0] * len(statement.tallies) for _ in places]
        types = statement.input.types()
        for read in self.lines(statement.input):
            place = places.get(tuple(self.value(key, read, "key", types) for key in statement.keys))
            if place is None:
                continue
            for column, tally in enumerate(statement.tallies):
                found[place][column] += self.counted(tally, read, types)
        return found

    def counted(self, tally: Any, read: Read, types: e.Types) -> int:
        """What a row adds to a tally."""
        match tally:
            case Rows():
                return 1
            case At(place, index):
                return int(
                    index
                    in self.places(self.value(place.expression.operand, read, "value", types), place.expression.edges)
                )
        found = self.value(tally.value.expression, read, "value", types)
        if isinstance(tally, Present | Distinct):  # as if all values were different
            return int(found is not None)
        code = encoded(found, tally.value.lower, tally.value.step, tally.value.width)
        if code is None:
            return 0
        return code**2 if isinstance(tally, Squares) else code

    def places(self, x: Any, edges: Sequence[Exact]) -> list[int]:
        """The bins that hold a number: one at most, since all edges are compared in the same way."""
        return [] if (found := binned(x, edges)) is None else [found]

    # --- rows -------------------------------------------------------------------------------------

    def lines(self, of: o.Operator) -> list[Read]:
        """The rows of an operator."""
        match of:
            case o.Scan(table):
                columns = dict(table.columns)
                return [self._reader(table.name, columns, row) for row in self.data[table.name]]
            case o.Where(inner, condition):
                types = inner.types()
                return [read for read in self.lines(inner) if self.value(condition, read, "value", types) is True]
            case o.WithColumns(inner, columns_):
                return [self._with(read, dict(columns_), inner.types()) for read in self.lines(inner)]
            case o.JoinPublic(inner, table_, on, how):
                rows = {row[table_.key]: row for row in self.public[table_.name] if row[table_.key] is not None}
                nothing = dict.fromkeys([name for name, _ in table_.columns])
                found = []
                for read in self.lines(inner):
                    match_ = rows.get(read(on, "key"))
                    if match_ is not None or how == "left":
                        found.append(_joined(read, match_ or nothing, table_.key))
                return found
        raise AssertionError(of)

    def _reader(self, table: str, columns: dict[str, Column], row: dict[str, Any]) -> Read:
        kinds = self.of.columns[table]
        return lambda name, mode: read_value(columns[name], str(kinds[name].arrow), row[name], mode)

    def _with(self, read: Read, defined: dict[str, e.Node], types: e.Types) -> Read:
        return lambda name, mode: self.value(defined[name], read, mode, types) if name in defined else read(name, mode)

    # --- expressions --------------------------------------------------------------------------------

    def value(self, node: e.Node, read: Read, mode: str, types: e.Types) -> Any:
        """The value of an expression for a row; None if it is missing."""

        mode = "value" if isinstance(node, e.CONDITIONS) else mode

        def of(part: e.Node) -> Any:
            return self.value(part, read, mode, types)

        match node:
            case e.Column(name):
                return read(name, mode)
            case e.Constant(value):
                return constant(value) if isinstance(value, Exact) else value
            case e.Arithmetic(sign, left, right):
                return arithmetic(sign, of(left), of(right))
            case e.Rounded(function, inner):
                x = of(inner)
                how: dict[str, Any] = {"floor": np.floor, "ceil": np.ceil, "abs": abs}
                return None if x is None else float(how[function](float(x)))
            case e.Clip(inner, lower, upper):
                return clipped(of(inner), lower, upper)
            case e.Compare(sign, left, right):
                a, b = alike(of(left), of(right))
                return None if a is None or b is None else bool(COMPARE[sign](a, b))
            case e.Logic(sign, parts):
                values = [of(part) for part in parts]
                decisive = sign == "or"
                return decisive if decisive in values else None if None in values else not decisive
            case e.Not(inner):
                x = of(inner)
                return None if x is None else not x
            case e.IsIn(inner, listed):
                x = of(inner)
                pairs = [alike(x, self.value(v, read, mode, types)) for v in listed]
                return None if x is None else any(a == b for a, b in pairs)
            case e.IsMissing(inner):
                return of(inner) is None
            case e.StartsWith(inner, prefix):
                x = of(inner)
                return None if x is None else x.startswith(prefix)
            case e.Case(branches, otherwise):
                for condition, then in branches:
                    if of(condition) is True:
                        return of(then)
                return None if otherwise is None else of(otherwise)
            case e.DatePart(inner, part):
                return None if (x := of(inner)) is None else part_of(x, part)
            case e.Truncate(inner, unit):
                return None if (x := of(inner)) is None else truncate(x, unit)
            case e.Bin(inner, edges):
                found = binned(of(inner), edges)
                return None if found is None else node.type(types).keys()[found]
        raise AssertionError(node)


class Overlapping(Floats):
    """Each bin is a condition of its own, on integers where its edge is whole."""

    def places(self, x: Any, edges: Sequence[Exact]) -> list[int]:
        last, found = len(edges) - 2, []
        if x is None:
            return []
        for i, (low, high) in enumerate(pairwise(edges)):
            above = COMPARE[">="](*alike(x, constant(low)))
            if above and COMPARE["<=" if i == last else "<"](*alike(x, constant(high))):
                found.append(i)
        return found


def binned(x: Any, edges: Sequence[Exact]) -> int | None:
    """Which bin holds a number, in floats."""
    if x is None:
        return None
    ends = [nearest(edge) for edge in edges]
    if not ends[0] <= float(x) <= ends[-1]:
        return None
    return min(sum(end <= float(x) for end in ends) - 1, len(ends) - 2)


def constant(value: Exact) -> int | float:
    """A public number: whole, or a float."""
    return int(value) if value.denominator == 1 and abs(value) <= 2**62 else nearest(value)


def _joined(read: Read, row: dict[str, Any], key: str) -> Read:
    return lambda name, mode: row[name] if name in row and name != key else read(name, mode)


def alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Two values that can be compared: of one kind."""
    if type(a) is type(b) or a is None or b is None:
        return a, b
    if isinstance(a, date) and isinstance(b, date):
        return _moment(a), _moment(b)
    return float(a), float(b)


def _moment(x: date) -> datetime:
    return x if isinstance(x, datetime) else datetime(x.year, x.month, x.day)


def arithmetic(sign: str, a: Any, b: Any) -> Any:
    """Numbers in floats; days between dates."""
    if a is None or b is None:
        return None
    if isinstance(a, date):
        return (a - b).days
    a, b = float(a), float(b)
    match sign:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
    return a / b if abs(b) > abs(a) / 2.0**900 else None


def clipped(x: Any, lower: Exact, upper: Exact) -> Any:
    """A number within bounds."""
    if x is None:
        return None
    if type(x) is int and lower.denominator == 1 and upper.denominator == 1:
        return min(max(x, int(lower)), int(upper))
    return min(max(float(x), nearest(lower)), nearest(upper))


def part_of(x: date, part: str) -> int:
    """A part of a date."""
    match part:
        case "quarter":
            return (x.month + 2) // 3
        case "weekday":
            return x.isoweekday()
    return int(getattr(x, part))


def encoded(x: Any, lower: Exact, step: Exact, width: int) -> int | None:
    """The lattice code: exact for whole numbers on a lattice of whole numbers, in floats else."""
    if x is None:
        return None
    if type(x) is int and lower.denominator == 1 and step.denominator == 1:
        return min(max((2 * (x - int(lower)) + int(step)) // (2 * int(step)), 0), width)
    with np.errstate(all="ignore"):
        found = (float(x) - nearest(lower)) / nearest(step)
    return round(min(max(found, 0.0), float(width)))  # of two as near the even one


def read_value(column: Column, arrow: str, raw: Any, mode: str) -> Any:
    """A declared column from what a user handed in."""
    found: Any = None
    match column.type:
        case NumberType() as kind:
            found = _number(kind, arrow, raw, mode)
        case BooleanType():
            found = raw
        case KeyType() as kind:
            known = raw in kind.values
            return raw if known else kind.other if raw is not None else None
        case TextType():
            return raw
        case TimeType() as kind:
            return _time(kind, raw, mode)
    missing = raw is None or raw != raw
    if missing and column.default is not None:  # out of range is no key, and not missing
        if isinstance(column.default, bool):
            return column.default
        return int(column.default) if column.type.integer else nearest(column.default)  # type: ignore[union-attr]
    return found


def _number(kind: NumberType, arrow: str, raw: Any, mode: str) -> Any:
    if raw is None or raw != raw:
        return None
    if kind.integer:
        x: Any = raw if isinstance(raw, int) or math.isinf(raw) else int(_rounded(raw))
        low, high = int(kind.lower), int(kind.upper)
    else:
        x = float(np.float32(raw)) if arrow == "float" else float(raw)
        low, high = nearest(kind.lower), nearest(kind.upper)  # type: ignore[assignment]
    if mode == "key" and not low <= x <= high:
        return None
    return min(max(x, low), high)


def _rounded(raw: float) -> Any:
    return round(raw)


def _time(kind: TimeType, raw: int | None, mode: str) -> date | None:
    if raw is None:
        return None
    first, last = kind.first, kind.last
    if isinstance(first, datetime) and isinstance(last, datetime):
        low, high = ((end - EPOCH) // timedelta(microseconds=1) for end in (first, last))
        if mode == "key" and not low <= raw <= high:
            return None
        return EPOCH + timedelta(microseconds=min(max(raw, low), high))
    low, high = ((end - EPOCH.date()).days for end in (first, last))
    if mode == "key" and not low <= raw <= high:
        return None
    return EPOCH.date() + timedelta(days=min(max(raw, low), high))
