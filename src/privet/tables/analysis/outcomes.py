"""The possible outcomes of a condition over all rows that a declaration allows: true, false, missing, or several.

Claim: `outcomes` contains the outcome of the condition on every row whose columns fit their types. So if True is not
among them, no row satisfies the condition. Everything here is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from privet.exact import Exact
from privet.tables.analysis.ranges import moment
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.nodes import Node, Types
from privet.tables.expressions.typing_rules import as_number
from privet.tables.types import (
    BooleanType,
    KeyType,
    NumberType,
    TextType,
    TimeType,
    Type,
    clipped,
    truncate,
)

Truths = frozenset[bool | None]
"""Outcomes of a condition; None is missing."""

NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known about a row: the types of its columns, and more about some of them.

    With `computed`, outcomes also hold for values as an engine rounds them: a number that is not an integer is then
    compared only with constants, and counts as equal to a constant if it is less than `slack` away.
    """

    types: Types
    below: Mapping[str, Exact] = field(default_factory=dict)
    """Strict upper bounds of these columns."""
    truths: Mapping[str, bool] = field(default_factory=dict)
    """Conditions with a known outcome."""
    slack: Mapping[str, Exact] = field(default_factory=dict)
    """How far rounding can move these columns."""
    computed: bool = False


def outcomes(node: Node, known: Known) -> Truths:
    """All possible outcomes of a condition."""
    match node:
        case e.Constant(bool(value)):
            return frozenset({value})
        case e.Column(name) if name in known.truths:
            return frozenset({known.truths[name]})
        case e.Compare(operator, left, right):
            return _compared(operator, left, right, known)
        case e.IsIn(part, values):
            each = [_compared("==", part, value, known) for value in values]
            return reduce(lambda a, b: _combined(a, b, decisive=True), each)
        case e.StartsWith(part, prefix):
            return _starts(reach(part, known), prefix)
        case e.IsMissing(part):
            return _truths({True, False}) if reach(part, known).missing else _truths({False})
        case e.Logic(operator, operands):
            each = [outcomes(part, known) for part in operands]
            return reduce(lambda a, b: _combined(a, b, decisive=operator == "or"), each)
        case e.Not(part):
            return frozenset(None if truth is None else not truth for truth in outcomes(part, known))
        case e.Case(branches, otherwise):
            truths: set[bool | None] = set()
            for condition, then in branches:
                when = outcomes(condition, known)
                truths |= outcomes(then, known) if True in when else set()
                if when == {True}:
                    return _truths(truths)
            return _truths(truths | (outcomes(otherwise, known) if otherwise is not None else {None}))
    return _truths({True, False} | ({None} if node.type(known.types).missing else set()))


def _truths(outcomes: set[bool | None] | set[bool]) -> Truths:
    return frozenset(outcomes)


def _combined(a: Truths, b: Truths, *, decisive: bool) -> Truths:
    """The outcomes of two combined conditions: `decisive` is True for OR, False for AND."""
    return frozenset(decisive if decisive in (x, y) else None if None in (x, y) else not decisive for x in a for y in b)


def reach(node: Node, known: Known) -> Type:
    """The type of an expression: its own rules, but narrower for clips and parts of dates."""
    match node:
        case e.Column() | e.Constant():
            return node.type(known.types)
        case e.Compare() | e.Logic() | e.Not() | e.IsIn() | e.IsMissing() | e.StartsWith():
            return BooleanType(missing=None in outcomes(node, known))
        case e.Clip(of, lower, upper):
            number = as_number(reach(of, known), "clip")
            if upper < number.lower or number.upper < lower:  # all values are clamped to one end
                end = upper if upper < number.lower else lower
                return NumberType(end, end, missing=number.missing)
            return clipped(number, lower, upper)
        case e.DatePart(of, part):
            time = reach(of, known)
            assert isinstance(time, TimeType)
            return _part(time, part)
    names: dict[str, Type] = {}

    def named(part: Node) -> Node:
        name = f"\x01{len(names)}"
        names[name] = reach(part, known)
        return e.Column(name)

    return trees.mapped(node, named).type(names)


def compared_as(node: Node, known: Known) -> Type:
    """The type as engines compare it: a rounded value has the unit that the engine gives it."""
    narrow = reach(node, known)
    if known.computed or not isinstance(narrow, NumberType):
        return narrow
    declared = node.type(known.types)
    return declared if isinstance(declared, NumberType) and declared.rounded else narrow


def _part(time: TimeType, part: e.Part) -> NumberType:
    """The type of a part of a date: one value if all dates of the range share it; for years, their range."""
    whole = e.DatePart(e.Column("of"), part).type({"of": time})
    assert isinstance(whole, NumberType)
    first, last = time.first, time.last
    unit = "day" if part == "weekday" else part
    if part == "year" or truncate(first, unit) != truncate(last, unit):
        return whole
    match part:
        case "quarter":
            value = (first.month + 2) // 3
        case "weekday":
            value = first.isoweekday()
        case _:
            value = getattr(first, part)
    return replace(whole, lower=Exact(value), upper=Exact(value))


# --- comparisons --------------------------------------------------------------------------------


def _compared(operator: str, left: Node, right: Node, known: Known) -> Truths:
    a, b = compared_as(left, known), compared_as(right, known)
    truths: set[bool | None] = {None} if a.missing or b.missing else set()
    if left == right:
        return _truths(truths | {operator in ("==", "<=", ">=")})
    if isinstance(a, BooleanType) and isinstance(b, BooleanType):
        sides = [(x, y) for x in outcomes(left, known) for y in outcomes(right, known)]
        return _truths(truths | {(x == y) is (operator == "==") for x, y in sides if x is not None and y is not None})
    if known.computed and not (_exact(left, known) and _exact(right, known)):
        if isinstance(right, e.Column) and isinstance(left, e.Constant):
            left, right, a, b, operator = right, left, b, a, FLIPPED[operator]
        if not (isinstance(left, e.Column) and isinstance(right, e.Constant)):
            return _truths(truths | {True, False})
    name = left.name if isinstance(left, e.Column) else ""
    side = _Side(known.below.get(name), known.slack.get(name, Exact(0)))
    ways = _ways(a, b, side) if isinstance(a, NumberType) and isinstance(b, NumberType) else []
    if _can(operator, a, b, side, known, ways):
        truths.add(True)
    if _can(NEGATED[operator], a, b, side, known, ways):
        truths.add(False)
    return _truths(truths)


@dataclass(frozen=True, slots=True)
class _Side:
    """What is known about the left side of a comparison, besides its type."""

    below: Exact | None
    slack: Exact


def _can(operator: str, a: Type, b: Type, side: _Side, known: Known, ways: list[_Way]) -> bool:
    """Whether this comparison can be true for a value of each type."""
    match a, b:
        case NumberType(), NumberType():
            return _numbers(operator, a, b, side, ways, fine=not known.computed)
        case TimeType(), TimeType():
            return _times(operator, a, b)
        case (KeyType() | NumberType(), KeyType() | NumberType()):
            left_values, right_values = _listed(a), _listed(b)
            if left_values is None or right_values is None:
                number, listed = (a, right_values) if left_values is None else (b, left_values)
                assert isinstance(number, NumberType)
                meets = number.wide or any(number.lower <= x <= number.upper for x in listed or ())  # type: ignore[operator]
                return meets or operator == "!="
            return (
                bool(left_values & right_values)
                if operator == "=="
                else not (len(left_values) == 1 and left_values == right_values)
            )
    return True  # any text


def _listed(kind: Type) -> frozenset[object] | None:
    if isinstance(kind, KeyType):
        return frozenset(kind.keys())
    assert isinstance(kind, NumberType)
    return frozenset({int(kind.lower)}) if kind.lower == kind.upper else None


def _numbers(operator: str, a: NumberType, b: NumberType, side: _Side, ways: list[_Way], *, fine: bool) -> bool:
    """Whether this comparison can be true in one of these ways."""
    if operator == "==" and not (_on(a, b, fine=fine) and _on(b, a, fine=fine)):
        return False
    if side.below is not None and operator in ("==", ">=") and not (a.wide or b.wide) and b.lower >= side.below:
        return False
    return any(_meet(operator, *way) for way in ways)


def _ways(a: NumberType, b: NumberType, side: _Side) -> list[_Way]:
    """The ranges to compare, as engines compare: in integers of the unit, constants rounded like values.

    An engine may treat a rounded type with one value as a constant and compare it exactly, so there can be two ways.
    """
    ways: list[_Way] = []
    if a.rounded and b.constant is not None:
        ways.append((_codes(a, side.slack), _code(a, b.constant)))
    elif b.rounded and a.constant is not None:
        ways.append((_code(b, a.constant), _codes(b, Exact(0))))
    if not ways or (a.constant is not None and b.constant is not None):
        ways.append((_reached(a, side.slack), _reached(b, Exact(0))))
    return ways


_Ends = tuple[Exact | float, Exact | float, Exact]
"""The least value, the greatest, and how far rounding can move both."""
_Way = tuple[_Ends, _Ends]


def _reached(number: NumberType, slack: Exact) -> _Ends:
    """The ends of a number; of a type without bounds only its sign is known: a count is not below 0."""
    low, high = number.unit * number.least, number.unit * number.most
    return -math.inf if number.wide and low < 0 else low, math.inf if number.wide and high > 0 else high, slack


def _codes(number: NumberType, slack: Exact) -> _Ends:
    low = -math.inf if number.wide and number.least < 0 else Exact(number.least)
    return low, math.inf if number.wide and number.most > 0 else Exact(number.most), slack / number.unit


def _code(number: NumberType, constant: Exact) -> _Ends:
    code = Exact(number.compared("<=", constant))
    return code, code, Exact(0)


def _meet(operator: str, a: _Ends, b: _Ends) -> bool:
    """Whether this comparison can be true for a number of each range."""
    (low, high, slack), (start, end, _) = a, b
    match operator:
        case "<":
            return low < end
        case ">":
            return high > start
        case "<=":
            return low <= end + slack
        case ">=":
            return start <= high + slack
        case "!=":
            return not low == high == start == end
    return low <= end + slack and start <= high + slack


def _on(lattice: NumberType, point: NumberType, *, fine: bool) -> bool:
    """Whether a constant can be a value of a type, judging by its unit or its steps."""
    if point.lower != point.upper or not fine:
        return True
    if lattice.step is not None:
        return point.lower == lattice.upper or (point.lower - lattice.lower) % lattice.step == 0
    return lattice.equal_to(point.lower) is not None


def _times(operator: str, a: TimeType, b: TimeType) -> bool:
    first, last, start, end = (moment(x) for x in (a.first, a.last, b.first, b.last))
    match operator:
        case "<":
            return first < end
        case ">":
            return last > start
        case "<=":
            return first <= end
        case ">=":
            return last >= start
        case "!=":
            return not first == last == start == end
    return first <= end and start <= last and _starts_unit(a, b) and _starts_unit(b, a)


def _starts_unit(kind: TimeType, point: TimeType) -> bool:
    """Whether a moment can be a value of a type: a midnight for dates, the start of a unit."""
    if moment(point.first) != moment(point.last):
        return True
    at = moment(point.first)
    return (kind.timed or at == truncate(at, "day")) and (kind.unit is None or at == truncate(at, kind.unit))


def _starts(kind: Type, prefix: str) -> Truths:
    missing = {None} if kind.missing else set()
    if isinstance(kind, TextType):
        return _truths(missing | ({True} if prefix == "" else {True, False}))
    assert isinstance(kind, KeyType)
    return _truths(missing | {str(key).startswith(prefix) for key in kind.keys()})  # noqa: SIM118


# --- expressions --------------------------------------------------------------------------------


def _exact(node: Node, known: Known) -> bool:
    """Whether every engine computes this without rounding: integers, keys, dates; no quotient of two columns."""
    match node:
        case e.Column(name):
            kind = known.types[name]
            return not isinstance(kind, NumberType) or kind.integer
        case e.Constant(Exact() as value):
            return value.denominator < 2**20  # a long one may be rounded
        case e.Arithmetic("/", left, right):
            return isinstance(right, e.Constant) and _exact(left, known)
    return all(_exact(part, known) for part in trees.parts(node))
