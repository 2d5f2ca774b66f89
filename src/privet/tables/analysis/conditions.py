"""The conditions that every counted row satisfies, in terms of the columns of its source tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from privet.exact import Exact
from privet.tables.analysis.outcomes import FLIPPED
from privet.tables.analysis.ranges import moment
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.nodes import Node, Types
from privet.tables.expressions.trees import MOST_NODES, conjuncts, replaced
from privet.tables.operators import JoinPerson, JoinPublic, OfPerson, Operator, PerPerson, Scan, Where, WithColumns
from privet.tables.schema import CEILING
from privet.tables.types import KeyType, NumberType

_UNKNOWN = e.Column("\x01")
_ROWS = OfPerson("count")
_COUNT = NumberType(Exact(1), Exact(CEILING), integer=True, missing=False, wide=True)
"""The row of a person summarizes one row or more."""
_STRICT = (
    e.Column, e.Constant, e.Arithmetic, e.Rounded, e.Clip, e.Compare, e.Not, e.IsIn, e.StartsWith, e.DatePart,
    e.Truncate, e.Bin,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows in terms of their source columns: types, definitions of further columns, and conditions on each row."""

    types: Types
    definitions: Mapping[Node, Node]
    conditions: tuple[Node, ...]
    modal: frozenset[str] = frozenset()
    """Columns whose value differs depending on whether they are used as a key or as a value."""


def below(operator: Operator) -> Iterator[Operator]:
    """The steps from the tables, or from `per_person`, to these rows."""
    yield operator
    match operator:
        case JoinPerson(left, right):
            yield from below(left)
            yield from below(right)
        case Where(inner) | WithColumns(inner) | JoinPublic(inner):
            yield from below(inner)


def rows_of(operator: Operator) -> SourceRows:
    """The rows in terms of the columns of their source tables; `per_person` starts new columns."""
    match operator:
        case Scan():
            return SourceRows(operator.types(), {}, ())
        case PerPerson(_, columns):
            modal = frozenset(name for name, value in columns if value.expression is not None)
            return SourceRows(
                {**operator.types(), **{name: _COUNT for name, value in columns if value == _ROWS}}, {}, (), modal
            )
        case Where(inner, condition):
            rows = rows_of(inner)
            translated = in_terms(condition, rows)
            return rows if translated is None else replace(rows, conditions=(*rows.conditions, *conjuncts(translated)))
        case WithColumns(inner, columns_):
            rows = rows_of(inner)
            added: dict[Node, Node] = {e.Column(name): in_terms(node, rows) or _UNKNOWN for name, node in columns_}
            return replace(rows, definitions={**rows.definitions, **added})
        case JoinPublic(inner, table):
            rows = rows_of(inner)
            kinds = operator.types()
            public = {name: kinds[name] for name, _ in table.columns if name != table.key}
            return replace(rows, types={**rows.types, **_joined(operator, rows), **public})
        case JoinPerson(left, right):
            a, b = rows_of(left), rows_of(right)
            return SourceRows(
                {**a.types, **b.types},
                {**a.definitions, **b.definitions},
                (*a.conditions, *b.conditions),
                a.modal | b.modal,
            )


def _joined(join: JoinPublic, rows: SourceRows) -> Types:
    """The type of the join column: after an inner join it has only keys of the public table."""
    on, public_key = in_terms(e.Column(join.on), rows), dict(join.table.columns)[join.table.key]
    own_key = rows.types.get(on.name) if isinstance(on, e.Column) else None
    if join.how != "inner" or not isinstance(own_key, KeyType) or not isinstance(public_key, KeyType):
        return {}
    public_keys = {*public_key.keys()}
    left = tuple(key for key in own_key.keys() if key in public_keys)  # noqa: SIM118
    return {on.name: KeyType(left, missing=False)} if left else {}  # type: ignore[union-attr, arg-type]


def in_terms(node: Node, rows: SourceRows) -> Node | None:
    """An expression over the source columns; None if it, or a definition that it uses, would be too long."""
    size, pile = 0, [(node, True)]
    while pile:
        part, above = pile.pop()
        size += 1
        if size > MOST_NODES or part == _UNKNOWN:
            return None
        inside = above and part in rows.definitions
        pile += [(rows.definitions[part], False)] if inside else [(inner, above) for inner in trees.parts(part)]
    return replaced(node, rows.definitions)


def columns(node: Node) -> frozenset[str]:
    """The names of the columns that an expression reads."""
    names, pile = set(), [node]
    while pile:
        part = pile.pop()
        names |= {part.name} if isinstance(part, e.Column) else set()
        pile += trees.parts(part)
    return frozenset(names)


def is_strict(node: Node) -> bool:
    """Whether an expression has a value only if all its parts have one."""
    return isinstance(node, _STRICT) and all(map(is_strict, trees.parts(node)))


def ends(condition: Node) -> Iterator[tuple[Node, Any, Any]]:
    """The expression that a comparison with a constant bounds, and its least and greatest value."""
    match condition:
        case e.Compare(operator, node, e.Constant(value)) | e.Compare(operator, e.Constant(value), node):
            if isinstance(value, bool | str):
                return
            if isinstance(condition.left, e.Constant):
                operator = FLIPPED[operator]  # type: ignore[assignment]
            if operator != "!=":
                yield node, None if operator in ("<", "<=") else value, None if operator in (">", ">=") else value
        case e.IsIn(node, values):
            numbers: list[Any] = [c.value for c in values if not isinstance(c.value, bool | str)]
            if len(numbers) == len(values):
                by = moment if isinstance(numbers[0], date) else Exact
                yield node, min(numbers, key=by), max(numbers, key=by)
