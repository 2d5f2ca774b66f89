"""The groups that remain after conditions: `WHERE year BETWEEN 2010 AND 2016 GROUP BY year` has seven.

Claim: whatever the tables contain, no row that satisfies the conditions is in a group that `domains` leaves out. Each
value of a key is tested against each condition: the key has this value, and its columns are in the range that follows
from it. If the condition can't be true there, the value is dropped; if this can't be decided, it stays.

A number that is out of range is clamped as a value but missing as a key, and a condition inside a key reads values. If
a key is missing whenever one of its parts is, both readings agree for every row that has a key. So only such keys are
narrowed: no CASE, no IS NULL, no AND or OR, and of the values per person only the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from privet.errors import QueryError
from privet.exact import Exact
from privet.system.remembered import remembered
from privet.tables.analysis.conditions import SourceRows, below, columns, ends, in_terms, is_strict, rows_of
from privet.tables.analysis.contradictions import contradictory
from privet.tables.analysis.inverses import preimage, slack
from privet.tables.analysis.outcomes import Known, outcomes, reach
from privet.tables.analysis.ranges import met, only
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.nodes import Node, Types
from privet.tables.expressions.trees import replaced
from privet.tables.operators import JoinPublic, Operator, PerPerson, Where
from privet.tables.types import MOST_GROUPS, BooleanType, KeyType, KeyValue, NumberType, TimeType, Type

_KEY = e.Column("\x01key")
_FEW = 20
"""Maximum number of conditions from which a minimal contradiction is extracted."""


def domains(rows: Operator, keys: tuple[Node, ...]) -> tuple[tuple[KeyValue, ...], ...]:
    """The values of each key that remain possible after all conditions, in their fixed order."""
    values = left(rows, keys)
    if values is not None:
        return values
    types = rows.types()
    return tuple(key.type(types).keys() for key in keys)


def left(rows: Operator, keys: tuple[Node, ...]) -> tuple[tuple[KeyValue, ...], ...] | None:
    """The remaining values of each key; None if every key keeps all values of its type."""
    return _left(rows, keys) if keys and any(map(_leaves_out, below(rows))) else None


def _leaves_out(step: Operator) -> bool:
    return isinstance(step, Where) or (isinstance(step, JoinPublic) and step.how == "inner")


@remembered(64)
def _left(operator: Operator, keys: tuple[Node, ...]) -> tuple[tuple[KeyValue, ...], ...] | None:
    rows, types = rows_of(operator), operator.types()
    kinds = [key.type(types) for key in keys]
    values = tuple(_narrowed(key, kind, rows) for key, kind in zip(keys, kinds, strict=True))
    return None if all(map(_is_whole, values, kinds)) else values


def _is_whole(values: tuple[KeyValue, ...], kind: Type) -> bool:
    try:
        return values == kind.keys()
    except QueryError:  # more than an answer can have
        return False


def spanned(kind: Type, values: tuple[KeyValue, ...]) -> Type:
    """The type of a key, cut to the range from the first to the last of these values."""
    if not isinstance(kind, NumberType | TimeType) or not values:
        return kind
    return met(kind, values[0], values[-1]) or kind  # type: ignore[arg-type]


# --- one key ------------------------------------------------------------------------------------


def _narrowed(key: Node, kind: Type, rows: SourceRows) -> tuple[KeyValue, ...]:
    node = in_terms(key, rows)
    if node is None or not is_strict(node) or columns(node) & rows.modal:
        return kind.keys()
    return tuple(possible(node, kind, rows))


def possible(node: Node, kind: Type, rows: SourceRows) -> Iterator[KeyValue]:
    """The values of an expression for which every condition can be true."""
    names = columns(node)
    declared = rows.types[node.name] if isinstance(node, e.Column) else None
    joined = {*declared.keys()} if isinstance(declared, KeyType) else None  # the keys that inner joins keep
    related = [condition for condition in rows.conditions if columns(condition) & names]
    conditions = [condition for condition in related if not _in_doubt(condition, rows.types)]
    span = _span(node, kind, conditions, rows.types)
    if span is None:
        return
    on_key = [replaced(condition, {node: _KEY}) for condition in conditions]
    for value in span.keys():  # noqa: SIM118
        if joined is not None and value not in joined:
            continue
        known = _known(node, value, kind, rows.types) if on_key else None
        if known is None or all(True in outcomes(condition, known) for condition in on_key):
            yield value


def _in_doubt(condition: Node, types: Types) -> bool:
    """Whether integers too large for 64-bit floats are compared with a fraction."""
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
            for part in trees.parts(node):
                yield from _constants(part)


def _span(key: Node, kind: Type, conditions: list[Node], types: Types) -> Type | None:
    """The type of a key, cut to the range that comparisons with constants allow; None if it is empty.

    So a short part of a long range takes little work. Columns that engines round are left unchanged.
    """
    narrow = dict(types)
    narrowed: Type | None = kind
    for node, low, high in (end for condition in conditions for end in ends(condition)):
        if node == key and narrowed is not None and isinstance(kind, NumberType | TimeType):
            narrowed = met(narrowed, low, high)
        elif isinstance(node, e.Column):
            at = narrow[node.name]
            if isinstance(at, TimeType) or (isinstance(at, NumberType) and at.integer):
                left = met(at, low, high)
                if left is None:
                    return None
                narrow[node.name] = left
    left = reach(key, Known(narrow))
    match narrowed, left:
        case NumberType(), NumberType(lower=low_, upper=high_, integer=True):
            return met(narrowed, low_, high_)
        case TimeType(), TimeType(first=first, last=last):
            return met(narrowed, first, last)
    return narrowed


def _known(key: Node, value: KeyValue, kind: Type, types: Types) -> Known:
    """What is known about a row whose key has this value."""
    narrow: dict[str, Type] = dict(types)
    unreached: dict[str, Exact] = {}
    narrow[_KEY.name] = only(value, kind)
    for name, low, high, is_open in preimage(key, value, types):
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


# --- no possible rows ---------------------------------------------------------------------------


def impossible(operator: Operator) -> tuple[Node, ...]:
    """A minimal set of conditions that no row can satisfy together, also below `per_person`; or nothing."""
    for step in below(operator):
        if isinstance(step, PerPerson) and (conditions := impossible(step.input)):
            return conditions
    rows = rows_of(operator)
    unmet = list(rows.conditions)
    if not contradictory(unmet, rows.types):
        return _no_value(rows)
    for condition in rows.conditions:
        fewer = [each for each in unmet if each is not condition]
        if len(unmet) <= _FEW and contradictory(fewer, rows.types):
            unmet = fewer
    return tuple(unmet)


def _no_value(rows: SourceRows) -> tuple[Node, ...]:
    """The conditions on one column with few values that exclude all of them."""
    for name, kind in rows.types.items():
        conditions = tuple(condition for condition in rows.conditions if columns(condition) == {name})
        if len(conditions) < 2 or not any(map(is_strict, conditions)) or not _has_few(kind):
            continue
        alone = replace(rows, definitions={}, conditions=conditions, modal=frozenset())
        if next(possible(e.Column(name), kind, alone), None) is None:
            return conditions
    return ()


def _has_few(kind: Type) -> bool:
    match kind:
        case NumberType(integer=True, wide=False):
            return kind.most - kind.least < MOST_GROUPS
        case TimeType(first, last):
            return not kind.timed and (last - first).days < MOST_GROUPS
    return isinstance(kind, KeyType | BooleanType)
