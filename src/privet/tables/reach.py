"""What a condition can come to, over all rows that a declaration allows: true, false, missing, or several of these.

Claim: the outcome of a condition on any row whose columns are in their types is in `outcomes`. So what can't be true
there is true of no row. Everything here is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import reduce

from privet.exact import Exact
from privet.tables import expressions as e
from privet.tables.expressions import Node, Types
from privet.tables.rules import as_number
from privet.tables.types import (
    BooleanType,
    KeyType,
    KeyValue,
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
    """What is known of a row: the types of its columns, and more about some of them.

    With `computed`, outcomes also hold for values as an engine rounds them: a number that is not an integer is then
    only compared with constants, and one that is less than a `slack` away from them counts as equal to them.
    """

    types: Types
    below: Mapping[str, Exact] = field(default_factory=dict)
    """Numbers that these columns do not reach."""
    truths: Mapping[str, bool] = field(default_factory=dict)
    """Conditions with a known outcome."""
    slack: Mapping[str, Exact] = field(default_factory=dict)
    """How far rounding may move these columns."""
    computed: bool = False


def outcomes(node: Node, known: Known) -> Truths:
    """Everything that a condition can come to."""
    match node:
        case e.Constant(bool(value)):
            return frozenset({value})
        case e.Column(name) if name in known.truths:
            return frozenset({known.truths[name]})
        case e.Compare(operator, left, right):
            return _compared(operator, left, right, known)
        case e.IsIn(of, values):
            each = [_compared("==", of, value, known) for value in values]
            return reduce(lambda a, b: _combined(a, b, decisive=True), each)
        case e.StartsWith(of, prefix):
            return _starts(reach(of, known), prefix)
        case e.IsMissing(of):
            return _truths({True, False}) if reach(of, known).missing else _truths({False})
        case e.Logic(operator, of):
            each = [outcomes(part, known) for part in of]
            return reduce(lambda a, b: _combined(a, b, decisive=operator == "or"), each)
        case e.Not(of):
            return frozenset(None if truth is None else not truth for truth in outcomes(of, known))
        case e.Case(branches, otherwise):
            found: set[bool | None] = set()
            for condition, then in branches:
                when = outcomes(condition, known)
                found |= outcomes(then, known) if True in when else set()
                if when == {True}:
                    return _truths(found)
            return _truths(found | (outcomes(otherwise, known) if otherwise is not None else {None}))
    return _truths({True, False} | ({None} if node.type(known.types).missing else set()))


def _truths(of: set[bool | None] | set[bool]) -> Truths:
    return frozenset(of)


def _combined(a: Truths, b: Truths, *, decisive: bool) -> Truths:
    """Of two conditions: `decisive` is True for or, False for and."""
    return frozenset(decisive if decisive in (x, y) else None if None in (x, y) else not decisive for x in a for y in b)


def reach(node: Node, known: Known) -> Type:
    """The type of an expression: as narrow as its own rules make it, and narrower for clips and parts of dates."""
    match node:
        case e.Column() | e.Constant():
            return node.type(known.types)
        case e.Compare() | e.Logic() | e.Not() | e.IsIn() | e.IsMissing() | e.StartsWith():
            return BooleanType(missing=None in outcomes(node, known))
        case e.Clip(of, lower, upper):
            number = as_number(reach(of, known), "clip")
            if upper < number.lower or number.upper < lower:  # all of it is at one end
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

    return mapped(node, named).type(names)


def compared_as(node: Node, known: Known) -> Type:
    """The same as it is compared: what an engine rounds has the unit that the engine gives it."""
    found = reach(node, known)
    if known.computed or not isinstance(found, NumberType):
        return found
    declared = node.type(known.types)
    return declared if isinstance(declared, NumberType) and declared.rounded else found


def _part(time: TimeType, part: e.Part) -> NumberType:
    """A part of a date, if all dates of a range share it; years in any case."""
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
    found: set[bool | None] = {None} if a.missing or b.missing else set()
    if left == right:
        return _truths(found | {operator in ("==", "<=", ">=")})
    if isinstance(a, BooleanType) and isinstance(b, BooleanType):
        sides = [(x, y) for x in outcomes(left, known) for y in outcomes(right, known)]
        return _truths(found | {(x == y) is (operator == "==") for x, y in sides if x is not None and y is not None})
    if known.computed and not (_exact(left, known) and _exact(right, known)):
        if isinstance(right, e.Column) and isinstance(left, e.Constant):
            left, right, a, b, operator = right, left, b, a, FLIPPED[operator]
        if not (isinstance(left, e.Column) and isinstance(right, e.Constant)):
            return _truths(found | {True, False})
    name = left.name if isinstance(left, e.Column) else ""
    side = _Side(known.below.get(name), known.slack.get(name, Exact(0)))
    if _can(operator, a, b, side, known):
        found.add(True)
    if _can(NEGATED[operator], a, b, side, known):
        found.add(False)
    return _truths(found)


@dataclass(frozen=True, slots=True)
class _Side:
    """What is known of the left side of a comparison besides its type."""

    below: Exact | None
    slack: Exact


def _can(operator: str, a: Type, b: Type, side: _Side, known: Known) -> bool:
    """Whether a value of one type can stand in this relation to a value of the other."""
    match a, b:
        case NumberType(), NumberType():
            return _numbers(operator, a, b, side, fine=not known.computed)
        case TimeType(), TimeType():
            return _times(operator, a, b)
        case (KeyType() | NumberType(), KeyType() | NumberType()):
            mine, theirs = _listed(a), _listed(b)
            if mine is None or theirs is None:
                number, listed = (a, theirs) if mine is None else (b, mine)
                assert isinstance(number, NumberType)
                held = number.wide or any(number.lower <= x <= number.upper for x in listed or ())  # type: ignore[operator]
                return held or operator == "!="
            return bool(mine & theirs) if operator == "==" else not (len(mine) == 1 and mine == theirs)
    return True  # any text


def _listed(of: Type) -> frozenset[object] | None:
    if isinstance(of, KeyType):
        return frozenset(of.keys())
    assert isinstance(of, NumberType)
    return frozenset({int(of.lower)}) if of.lower == of.upper else None


def _numbers(operator: str, a: NumberType, b: NumberType, side: _Side, *, fine: bool) -> bool:
    """As engines compare: in integers of the unit, to which a constant is rounded where values are.

    A rounded type with one value may be a constant to an engine, which it compares exactly: both ways are looked at.
    """
    if operator == "==" and not (_on(a, b, fine=fine) and _on(b, a, fine=fine)):
        return False
    if side.below is not None and operator in ("==", ">=") and not (a.wide or b.wide) and b.lower >= side.below:
        return False
    ways: list[tuple[_Ends, _Ends]] = []
    if a.rounded and b.constant is not None:
        ways.append((_codes(a, side.slack), _code(a, b.constant)))
    elif b.rounded and a.constant is not None:
        ways.append((_code(b, a.constant), _codes(b, Exact(0))))
    if not ways or (a.constant is not None and b.constant is not None):
        ways.append((_reached(a, side.slack), _reached(b, Exact(0))))
    return any(_meet(operator, *way) for way in ways)


_Ends = tuple[Exact | float, Exact | float, Exact]
"""The least value, the greatest, and how far both may be moved."""


def _reached(of: NumberType, slack: Exact) -> _Ends:
    """Of a type without bounds of its own only 0 counts: a count is not below it, and nothing else is known."""
    low, high = of.unit * of.least, of.unit * of.most
    return -math.inf if of.wide and low < 0 else low, math.inf if of.wide and high > 0 else high, slack


def _codes(of: NumberType, slack: Exact) -> _Ends:
    low = -math.inf if of.wide and of.least < 0 else Exact(of.least)
    return low, math.inf if of.wide and of.most > 0 else Exact(of.most), slack / of.unit


def _code(of: NumberType, constant: Exact) -> _Ends:
    code = Exact(of.compared("<=", constant))
    return code, code, Exact(0)


def _meet(operator: str, a: _Ends, b: _Ends) -> bool:
    """Whether a number of one range can stand in this relation to a number of another."""
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
    """Whether a constant is one of the values of a type, as far as its unit or its steps tell."""
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


def _starts_unit(of: TimeType, point: TimeType) -> bool:
    """Whether a moment is one of the values of a type: midnights of dates, starts of a unit."""
    if moment(point.first) != moment(point.last):
        return True
    at = moment(point.first)
    return (of.timed or at == truncate(at, "day")) and (of.unit is None or at == truncate(at, of.unit))


def only(value: KeyValue, kind: Type) -> Type:
    """The type of a key that has this value."""
    match value:
        case bool():
            return BooleanType(missing=False)
        case int() if not isinstance(kind, KeyType):
            return NumberType(Exact(value), Exact(value), integer=True, missing=False)
        case date():
            return TimeType(value, value, missing=False)
    return KeyType((value,), missing=False)  # type: ignore[arg-type]


def moment(of: date) -> datetime:
    """A date as its midnight."""
    return of if isinstance(of, datetime) else datetime(of.year, of.month, of.day)


def _starts(of: Type, prefix: str) -> Truths:
    missing = {None} if of.missing else set()
    if isinstance(of, TextType):
        return _truths(missing | ({True} if prefix == "" else {True, False}))
    assert isinstance(of, KeyType)
    return _truths(missing | {str(key).startswith(prefix) for key in of.keys()})  # noqa: SIM118


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
    return all(_exact(part, known) for part in e.parts(node))


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The same expression of changed parts."""
    match node:
        case e.Column() | e.Constant():
            return node
        case e.Arithmetic(operator, a, b):
            return e.Arithmetic(operator, change(a), change(b))
        case e.Compare(comparison, a, b):
            return e.Compare(comparison, change(a), change(b))
        case e.Logic(logic, of):
            return e.Logic(logic, tuple(map(change, of)))
        case e.Case(branches, otherwise):
            pairs = tuple((change(when), change(then)) for when, then in branches)
            return e.Case(pairs, None if otherwise is None else change(otherwise))
        case _:
            return replace(node, of=change(node.of))


def replaced(node: Node, what: Mapping[Node, Node]) -> Node:
    """The same expression with some parts replaced by others."""
    return what[node] if node in what else mapped(node, lambda part: replaced(part, what))


def conjuncts(node: Node) -> tuple[Node, ...]:
    """The conditions that must all be true for this one to be."""
    if isinstance(node, e.Logic) and node.operator == "and":
        return tuple(inner for part in node.of for inner in conjuncts(part))
    return (node,)


def met(a: Type, low: Exact | date | None, high: Exact | date | None) -> Type | None:
    """A type of numbers or times with only what lies in low..high; None if nothing does."""
    match a:
        case NumberType():
            lower = a.lower if low is None else max(a.lower, Exact(low))  # type: ignore[arg-type]
            upper = a.upper if high is None else min(a.upper, Exact(high))  # type: ignore[arg-type]
            if a.step is not None:  # from step to step
                lower = a.lower + math.ceil((lower - a.lower) / a.step) * a.step
                upper = a.lower + math.floor((upper - a.lower) / a.step) * a.step
            elif a.integer:
                lower, upper = Exact(math.ceil(lower)), Exact(math.floor(upper))
            return replace(a, lower=lower, upper=upper) if lower <= upper else None
        case TimeType():
            assert low is None or isinstance(low, date)
            assert high is None or isinstance(high, date)
            first = a.first if low is None or moment(low) <= moment(a.first) else _fitted(low, a, up=True)
            last = a.last if high is None or moment(high) >= moment(a.last) else _fitted(high, a, up=False)
            return replace(a, first=first, last=last) if moment(first) <= moment(last) else None
    return a


def _fitted(at: date, like: TimeType, *, up: bool) -> date:
    """A moment as a date or a timestamp, as the type has them; a date from a timestamp is rounded inwards."""
    if like.timed:
        return moment(at)
    if not isinstance(at, datetime):
        return at
    later = up and at != truncate(at, "day")
    return at.date() + timedelta(days=1) if later else at.date()
