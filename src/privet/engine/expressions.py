"""Expressions over a row, as SQL.

Claim: for every node, a row whose columns are in their types' ranges, or NULL, gets a value in the range of the node's
type (up to rounding), or NULL, by the rules of `privet.relation.expressions`; no row makes it fail. Comments say what
DuckDB would do otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from privet.engine.leaves import Code, Mode, number_of, steps
from privet.engine.sql import NAMES, WHOLE, Kind, Layers, Value, double, integer, moment
from privet.exact import Exact
from privet.relation.expressions import (
    LARGEST,
    Arithmetic,
    Bin,
    Case,
    Clip,
    Column,
    Compare,
    Constant,
    DatePart,
    IsIn,
    IsMissing,
    Logic,
    Node,
    Not,
    Rounded,
    StartsWith,
    Truncate,
    Types,
)
from privet.relation.types import BooleanType, KeyType, NumberType, TimeType, Type

Wanted = Mode | Code
"""What is asked of a column: its value, its key, the number of its key, or its lattice code."""

_FEW = 16  # lists up to this are written out; longer ones are looked up
_PARTS = {"year": "year", "quarter": "quarter", "month": "month", "day": "day", "weekday": "isodow", "hour": "hour"}


@dataclass(slots=True)
class Compiler:
    """Turns the nodes of one relation into SQL over its columns; `column` gives the SQL of a column, as wanted."""

    layers: Layers
    types: Types
    column: Callable[[str, Wanted], Value]

    def value(self, node: Node, mode: Mode = "value") -> Value:
        """The value of a node; in mode "key" a column that is out of its range is missing instead of clamped."""
        match node:
            case Column(name):
                return self.column(name, mode)
            case Constant(value):
                return self._constant(value)
            case Arithmetic(operator, left, right):
                return self._arithmetic(operator, self.value(left, mode), self.value(right, mode))
            case Rounded(function, of):
                x = as_double(self.value(of, mode))
                return Value(f"{function}({x.sql})", "double", x.level)
            case Clip(of, lower, upper):
                return self._clip(self.value(of, mode), lower, upper)
            case Compare(operator, left, right):
                a, b = alike([self.value(left, mode), self.value(right, mode)])
                sign = {"==": "=", "!=": "<>"}.get(operator, operator)
                return _made(f"({a.sql} {sign} {b.sql})", "boolean", a, b)
            case Logic(operator, of):
                parts = [self.value(part, mode) for part in of]
                return _made("(" + f" {operator.upper()} ".join(p.sql for p in parts) + ")", "boolean", *parts)
            case Not(of):
                x = self.value(of, mode)
                return Value(f"(NOT {x.sql})", "boolean", x.level)
            case IsIn(of, values):
                return self._is_in(self.value(of, mode), values)
            case IsMissing(of):
                x = self.value(of, mode)
                return Value(f"({x.sql} IS NULL)", "boolean", x.level)
            case StartsWith(of, prefix):
                x = self.value(of, mode)
                return Value(f"starts_with({x.sql}, {self.layers.context.bind(prefix)})", "boolean", x.level)
            case Case(branches, otherwise):
                return self._case(branches, otherwise, mode)
            case DatePart(of, part):
                x = self.value(of, mode)
                return Value(f"{_PARTS[part]}({x.sql})", "integer", x.level)
            case Truncate(of, unit):
                x = self.value(of, mode)
                # date_trunc gives a timestamp for a date too
                return Value(f"TRY_CAST(date_trunc('{unit}', {x.sql}) AS {NAMES[x.kind]})", x.kind, x.level)
            case Bin(of, edges):
                kind = node.type(self.types)
                assert isinstance(kind, KeyType)
                labels = [self.layers.context.bind(str(label)) for label in kind.values]
                return self._bin(self.value(of, mode), edges, labels, "text")

    def _constant(self, value: object) -> Value:
        match value:
            case bool():
                return Value(str(value).lower(), "boolean", atom=True)
            case str():
                return Value(self.layers.context.bind(value), "text", atom=True)
            case Exact():
                if value.denominator == 1 and abs(value) <= WHOLE:
                    return Value(integer(int(value)), "integer", atom=True)
                return Value(double(value), "double", atom=True)
            case datetime():
                return Value(moment(value), "time", atom=True)
        return Value(moment(value), "date", atom=True)  # type: ignore[arg-type]

    def _arithmetic(self, operator: str, left: Value, right: Value) -> Value:
        if left.kind in ("date", "time"):
            return _made(f"({left.sql} - {right.sql})", "integer", left, right)
        a, b = as_double(left), as_double(right)
        if operator != "/":
            return _made(f"({a.sql} {operator} {b.sql})", "double", a, b)
        a, b = self.layers.named(a), self.layers.named(b)
        # by zero DuckDB raises an error, by almost zero it gives infinity
        guard = f"abs({b.sql}) > abs({a.sql}) / {double(LARGEST)}"
        return _made(f"CASE WHEN {guard} THEN {a.sql} / nullif({b.sql}, 0e0) END", "double", a, b)

    def _clip(self, value: Value, lower: Exact, upper: Exact) -> Value:
        # least and greatest would turn NULL into a bound
        x = self.layers.named(value if value.kind == "integer" else as_double(value))
        if x.kind == "integer" and lower.denominator == 1 and upper.denominator == 1:
            low, high = (integer(int(min(max(end, Exact(-WHOLE)), Exact(WHOLE)))) for end in (lower, upper))
        else:
            x, low, high = as_double(x), double(lower), double(upper)
        sides = f"WHEN {x.sql} < {low} THEN {low} WHEN {x.sql} > {high} THEN {high}"
        return Value(f"CASE WHEN {x.sql} BETWEEN {low} AND {high} THEN {x.sql} {sides} END", x.kind, x.level)

    def _is_in(self, value: Value, values: Sequence[Constant]) -> Value:
        if value.kind == "text" and len(values) > _FEW:
            x = self.layers.named(value)
            known = self.layers.context.enum(tuple(dict.fromkeys(str(v.value) for v in values)))
            found = f"TRY_CAST({x.sql} AS {known}) IS NOT NULL"
            return Value(f"CASE WHEN {x.sql} IS NOT NULL THEN {found} END", "boolean", x.level)
        x, *listed = alike([value, *(self._constant(v.value) for v in values)])
        return Value(f"({x.sql} IN ({', '.join(v.sql for v in listed)}))", "boolean", x.level)

    def _case(self, branches: Sequence[tuple[Node, Node]], otherwise: Node | None, mode: Mode) -> Value:
        conditions = [self.value(condition, mode) for condition, _ in branches]
        ends = [] if otherwise is None else [self.value(otherwise, mode)]
        values = alike([*(self.value(value, mode) for _, value in branches), *ends])
        cases = " ".join(f"WHEN {c.sql} THEN {v.sql}" for c, v in zip(conditions, values, strict=False))
        end = f" ELSE {values[-1].sql}" if ends else ""
        return _made(f"CASE {cases}{end} END", values[0].kind, *conditions, *values)

    def _bin(self, value: Value, edges: Sequence[Exact], results: Sequence[str], kind: Kind) -> Value:
        x = self.layers.named(as_double(value))

        def search(first: int, last: int) -> str:  # the bins first..last - 1: a tree, so that 1,000 bins are 10 steps
            if last - first == 1:
                return results[first]
            middle = (first + last) // 2
            below = f"{x.sql} < {double(edges[middle])}"
            return f"CASE WHEN {below} THEN {search(first, middle)} ELSE {search(middle, last)} END"

        inside = f"{x.sql} BETWEEN {double(edges[0])} AND {double(edges[-1])}"
        return Value(f"CASE WHEN {inside} THEN {search(0, len(edges) - 1)} END", kind, x.level)

    # --- codes and groups -----------------------------------------------------------------------

    def code(self, node: Node, code: Code) -> Value:
        """The lattice code of a number, or of a boolean as 0 or 1: clamped last of all, whatever the expression."""
        match node:
            case Column(name):
                return self.column(name, code)
            case Clip(of, lower, upper) if lower <= code.lower and code.upper <= upper:
                return self.code(of, code)  # what the clip moves, the code's own clamp moves to the same code
        return encode(self.layers, self.value(node), code)

    def index(self, node: Node, kind: Type | None = None) -> Value:
        """Which value of its type, or of a part of its type, a key is, counted from 0; NULL if it is none."""
        kind = node.type(self.types) if kind is None else kind
        match node, kind:
            case Column(name), KeyType():
                return self.column(name, "index")
            case Bin(of, edges), KeyType():
                return self._bin(self.value(of, "key"), edges, [str(i) for i in range(len(edges) - 1)], "integer")
        x = self.layers.named(self.value(node, "key"))
        match kind:
            case KeyType():
                listed = KeyType(kind.keys())  # type: ignore[arg-type]
                return Value(number_of(listed, x, self.layers.context), "integer", x.level)
            case BooleanType():
                return Value(f"CAST({x.sql} AS INTEGER)", "integer", x.level)
            case NumberType():
                return _place(x, int(kind.lower), int(kind.upper))
            case TimeType():
                first, last = (kind.keys()[i] for i in (0, -1))
                unit = kind.unit or "day"
                found = f"datediff('{unit}', {moment(first)}, {x.sql})"  # type: ignore[arg-type]
                inside = f"{x.sql} BETWEEN {moment(first)} AND {moment(last)}"  # type: ignore[arg-type]
                return Value(f"CASE WHEN {inside} THEN TRY_CAST({found} AS INTEGER) END", "integer", x.level)
        raise AssertionError(f"{kind} has no keys")


def _place(x: Value, lower: int, upper: int) -> Value:
    low, high = (double(lower), double(upper)) if x.kind == "double" else (integer(lower), integer(upper))
    return Value(
        f"CASE WHEN {x.sql} BETWEEN {low} AND {high} THEN TRY_CAST({x.sql} - {low} AS INTEGER) END", "integer", x.level
    )


def encode(layers: Layers, value: Value, code: Code) -> Value:
    """The lattice code of a value, clamped: exactly, if it is a whole number on a lattice of whole numbers."""
    width = integer(code.width)
    whole = code.lower.denominator == code.step.denominator == 1 and max(abs(code.lower), abs(code.upper)) <= WHOLE
    if value.kind == "integer" and whole:
        x = layers.named(value)
        low = integer(int(code.lower))
        above = f"({x.sql} - {low})"  # |x| <= 2^62 and |low| <= 2^62
        if code.step > 1:
            above = f"TRY_CAST((2 * {above}::HUGEINT + {int(code.step)}) // {2 * int(code.step)} AS BIGINT)"
        last = int(code.upper)
        inside = f"CASE WHEN {x.sql} BETWEEN {low} AND {integer(last)} THEN {above}"
        return Value(
            f"{inside} WHEN {x.sql} < {low} THEN 0::BIGINT WHEN {x.sql} > {integer(last)} THEN {width} END",
            "integer",
            x.level,
        )
    x = as_double(value)
    found = layers.named(Value(steps(x.sql, code), "double", x.level))
    inside = f"CASE WHEN {found.sql} BETWEEN 0e0 AND {double(code.width)} THEN TRY_CAST({found.sql} AS BIGINT)"
    sides = f"WHEN {found.sql} < 0e0 THEN 0::BIGINT WHEN {found.sql} IS NOT NULL THEN {width}"
    return Value(f"{inside} {sides} END", "integer", found.level)


def as_double(value: Value) -> Value:
    """A number as a DOUBLE; a boolean as 0 or 1."""
    if value.kind == "double":
        return value
    return Value(f"CAST({value.sql} AS DOUBLE)", "double", value.level, value.atom)


def _made(sql: str, kind: Kind, *parts: Value) -> Value:
    return Value(sql, kind, max(part.level for part in parts))


def alike(values: list[Value]) -> list[Value]:
    """The same values, of one kind, so that DuckDB need not choose a cast (it would choose ones that can fail)."""
    kinds = {value.kind for value in values}
    if len(kinds) == 1:
        return values
    if kinds <= {"date", "time"}:
        return [v if v.kind == "time" else Value(f"CAST({v.sql} AS TIMESTAMP)", "time", v.level) for v in values]
    return [as_double(value) for value in values]
