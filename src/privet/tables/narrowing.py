"""Which groups the conditions on rows leave: `WHERE year BETWEEN 2010 AND 2016 GROUP BY year` has seven.

Claim: whatever the tables hold, no row that meets the conditions is in a group that `domains` leaves out. A condition
is looked at for each value of a key: the key is then that value, and the columns that it is made of are in a range that
follows from it. What can't be true there leaves the value out; what can't be decided keeps it.

A number that is out of range is clamped as a value, and missing as a key; a condition inside a key reads values. Where
a key is missing if any of its parts is, both readings agree for every row that has a key. So only such keys are
narrowed: no CASE, no IS NULL, no AND or OR, and nothing computed per person but the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from privet.errors import QueryError
from privet.exact import Exact
from privet.tables import expressions as e
from privet.tables.conditions import Rows, below, columns, ends, in_terms, is_strict, rows_of
from privet.tables.contradictions import contradictory
from privet.tables.expressions import Node, Types
from privet.tables.operators import JoinPublic, Operator, PerPerson, Where
from privet.tables.preimages import preimage, slack
from privet.tables.reach import Known, met, only, outcomes, reach, replaced
from privet.tables.types import MOST_GROUPS, BooleanType, KeyType, KeyValue, NumberType, TimeType, Type

_KEY = e.Column("\x01key")
_FEW = 20
"""Of so many conditions those that contradict each other are named."""


def domains(of: Operator, keys: tuple[Node, ...]) -> tuple[tuple[KeyValue, ...], ...]:
    """The values of each key that a row can have after all conditions, in their fixed order."""
    values = left(of, keys)
    if values is not None:
        return values
    types = of.types()
    return tuple(key.type(types).keys() for key in keys)


def left(of: Operator, keys: tuple[Node, ...]) -> tuple[tuple[KeyValue, ...], ...] | None:
    """The same, where conditions leave some values out; None where every key keeps all that its type has."""
    return _left(of, keys) if keys and any(map(_leaves_out, below(of))) else None


def _leaves_out(step: Operator) -> bool:
    return isinstance(step, Where) or (isinstance(step, JoinPublic) and step.how == "inner")


@lru_cache(maxsize=64)
def _left(of: Operator, keys: tuple[Node, ...]) -> tuple[tuple[KeyValue, ...], ...] | None:
    rows, types = rows_of(of), of.types()
    kinds = [key.type(types) for key in keys]
    found = tuple(_narrowed(key, kind, rows) for key, kind in zip(keys, kinds, strict=True))
    return None if all(map(_is_whole, found, kinds)) else found


def _is_whole(values: tuple[KeyValue, ...], kind: Type) -> bool:
    try:
        return values == kind.keys()
    except QueryError:  # more than an answer may have
        return False


def spanned(kind: Type, values: tuple[KeyValue, ...]) -> Type:
    """The type of a key, without what comes before the first and after the last of some of its values."""
    if not isinstance(kind, NumberType | TimeType):
        return kind
    return met(kind, values[0], values[-1]) or kind  # type: ignore[arg-type]


# --- one key ------------------------------------------------------------------------------------


def _narrowed(key: Node, kind: Type, rows: Rows) -> tuple[KeyValue, ...]:
    of = in_terms(key, rows)
    if of is None or not is_strict(of) or columns(of) & rows.modal:
        return kind.keys()
    return tuple(_values(of, kind, rows))


def _values(of: Node, kind: Type, rows: Rows) -> Iterator[KeyValue]:
    """The values of an expression for which no condition is ruled out."""
    mine = columns(of)
    held = rows.types[of.name] if isinstance(of, e.Column) else None
    joined = {*held.keys()} if isinstance(held, KeyType) else None  # what inner joins leave
    related = [condition for condition in rows.conditions if columns(condition) & mine]
    conditions = [condition for condition in related if not _in_doubt(condition, rows.types)]
    span = _span(of, kind, conditions, rows.types)
    if span is None:
        return
    asked = [replaced(condition, {of: _KEY}) for condition in conditions]
    for value in span.keys():  # noqa: SIM118
        if joined is not None and value not in joined:
            continue
        known = _known(of, value, kind, rows.types) if asked else None
        if known is None or all(True in outcomes(condition, known) for condition in asked):
            yield value


def _in_doubt(condition: Node, types: Types) -> bool:
    """Whether integers that 64-bit floats can't tell apart may be compared with a fraction as such."""
    large = any(
        isinstance(kind := types[name], NumberType) and max(abs(kind.lower), abs(kind.upper)) > 2**53
        for name in columns(condition)
    )
    return large and any(isinstance(x, Exact) and x.denominator > 1 for x in _constants(condition))


def _constants(node: Node) -> Iterator[object]:
    match node:
        case e.Constant(value):
            yield value
        case e.IsIn(of, values):
            yield from (constant.value for constant in values)
            yield from _constants(of)
        case e.Clip(of, lower, upper):
            yield from (lower, upper)
            yield from _constants(of)
        case e.Bin(of, edges):
            yield from edges
            yield from _constants(of)
        case _:
            for part in e.parts(node):
                yield from _constants(part)


def _span(of: Node, kind: Type, conditions: list[Node], types: Types) -> Type | None:
    """The type of a key with the range that comparisons with constants leave; None if that is nothing.

    So a short part of a long range is no longer than what it holds. Columns that engines round are left as they are.
    """
    narrow = dict(types)
    mine: Type | None = kind
    for node, low, high in (found for condition in conditions for found in ends(condition)):
        if node == of and mine is not None and isinstance(kind, NumberType | TimeType):
            mine = met(mine, low, high)
        elif isinstance(node, e.Column):
            at = narrow[node.name]
            if isinstance(at, TimeType) or (isinstance(at, NumberType) and at.integer):
                left = met(at, low, high)
                if left is None:
                    return None
                narrow[node.name] = left
    left = reach(of, Known(narrow))
    match mine, left:
        case NumberType(), NumberType(lower=low_, upper=high_, integer=True):
            return met(mine, low_, high_)
        case TimeType(), TimeType(first=first, last=last):
            return met(mine, first, last)
    return mine


def _known(of: Node, value: KeyValue, kind: Type, types: Types) -> Known:
    """What is known of a row whose key has this value."""
    narrow: dict[str, Type] = dict(types)
    unreached: dict[str, Exact] = {}
    narrow[_KEY.name] = only(value, kind)
    for name, low, high, is_open in preimage(of, value, types):
        within = met(types[name], low, high)
        if within is not None:
            narrow[name] = replace(within, missing=False)
            if isinstance(within, NumberType):
                narrow[name] = replace(within, missing=False, wide=False)
            if is_open:
                unreached[name] = high
    truths = {_KEY.name: value} if isinstance(value, bool) else {}
    slacks = {name: slack(at) for name, at in types.items() if isinstance(at, NumberType) and not at.integer}
    return Known(narrow, unreached, truths, slacks, computed=True)


# --- no rows at all -----------------------------------------------------------------------------


def impossible(of: Operator) -> tuple[Node, ...]:
    """Conditions that no row can meet together, if there are such: no more than it takes; below a `per_person` too."""
    for step in below(of):
        if isinstance(step, PerPerson) and (found := impossible(step.of)):
            return found
    rows = rows_of(of)
    unmet = list(rows.conditions)
    if not contradictory(unmet, rows.types):
        return _no_value(rows)
    for condition in rows.conditions:
        fewer = [each for each in unmet if each is not condition]
        if len(unmet) <= _FEW and contradictory(fewer, rows.types):
            unmet = fewer
    return tuple(unmet)


def _no_value(rows: Rows) -> tuple[Node, ...]:
    """Conditions on one column of few values that leave none."""
    for name, kind in rows.types.items():
        mine = tuple(condition for condition in rows.conditions if columns(condition) == {name})
        if len(mine) < 2 or not any(map(is_strict, mine)) or not _has_few(kind):
            continue
        alone = replace(rows, made={}, conditions=mine, modal=frozenset())
        if next(_values(e.Column(name), kind, alone), None) is None:
            return mine
    return ()


def _has_few(kind: Type) -> bool:
    match kind:
        case NumberType(integer=True, wide=False):
            return kind.most - kind.least < MOST_GROUPS
        case TimeType(first, last):
            return not kind.timed and (last - first).days < MOST_GROUPS
    return isinstance(kind, KeyType | BooleanType)
