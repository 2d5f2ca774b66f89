"""The conditions that every row meets before it is counted, over the columns of the tables that it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from privet.exact import Exact
from privet.tables import expressions as e
from privet.tables.expressions import MOST_NODES, Node, Types
from privet.tables.operators import JoinPerson, JoinPublic, OfPerson, Operator, PerPerson, Scan, Where, WithColumns
from privet.tables.reach import FLIPPED, conjuncts, moment, replaced
from privet.tables.schema import CEILING
from privet.tables.types import KeyType, NumberType

_UNKNOWN = e.Column("\x01")
_ROWS = OfPerson("count")
_COUNT = NumberType(Exact(1), Exact(CEILING), integer=True, missing=False, wide=True)
"""A person's row is made of one row or more."""
_STRICT = (
    e.Column, e.Constant, e.Arithmetic, e.Rounded, e.Clip, e.Compare, e.Not, e.IsIn, e.StartsWith, e.DatePart,
    e.Truncate, e.Bin,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows by the columns of their sources: their types, what other columns are made of, what is true of each row."""

    types: Types
    made: Mapping[Node, Node]
    conditions: tuple[Node, ...]
    modal: frozenset[str] = frozenset()
    """Columns that are not the same as a key and as a value."""


def below(of: Operator) -> Iterator[Operator]:
    """The steps from the tables, or from one row for each person, to these rows."""
    yield of
    match of:
        case JoinPerson(left, right):
            yield from below(left)
            yield from below(right)
        case Where(inner) | WithColumns(inner) | JoinPublic(inner):
            yield from below(inner)


def rows_of(of: Operator) -> Rows:
    """Rows by the columns of the tables that they come from; `per_person` makes new ones."""
    match of:
        case Scan():
            return Rows(of.types(), {}, ())
        case PerPerson(_, columns):
            modal = frozenset(name for name, value in columns if value.of is not None)
            return Rows({**of.types(), **{name: _COUNT for name, value in columns if value == _ROWS}}, {}, (), modal)
        case Where(inner, condition):
            rows = rows_of(inner)
            found = in_terms(condition, rows)
            return rows if found is None else replace(rows, conditions=(*rows.conditions, *conjuncts(found)))
        case WithColumns(inner, columns_):
            rows = rows_of(inner)
            added: dict[Node, Node] = {e.Column(name): in_terms(node, rows) or _UNKNOWN for name, node in columns_}
            return replace(rows, made={**rows.made, **added})
        case JoinPublic(inner, table):
            rows = rows_of(inner)
            kinds = of.types()
            theirs = {name: kinds[name] for name, _ in table.columns if name != table.key}
            return replace(rows, types={**rows.types, **_joined(of, rows), **theirs})
        case JoinPerson(left, right):
            a, b = rows_of(left), rows_of(right)
            return Rows({**a.types, **b.types}, {**a.made, **b.made}, (*a.conditions, *b.conditions), a.modal | b.modal)


def _joined(of: JoinPublic, rows: Rows) -> Types:
    """The column that is joined on: after an inner join it has only the keys that the public table has."""
    on, theirs = in_terms(e.Column(of.on), rows), dict(of.table.columns)[of.table.key]
    mine = rows.types.get(on.name) if isinstance(on, e.Column) else None
    if of.how != "inner" or not isinstance(mine, KeyType) or not isinstance(theirs, KeyType):
        return {}
    held = {*theirs.keys()}
    left = tuple(key for key in mine.keys() if key in held)  # noqa: SIM118
    return {on.name: KeyType(left, missing=False)} if left else {}  # type: ignore[union-attr, arg-type]


def in_terms(node: Node, rows: Rows) -> Node | None:
    """An expression over the columns of the sources; None if it would be too long, or made of such a one."""
    size, pile = 0, [(node, True)]
    while pile:
        part, above = pile.pop()
        size += 1
        if size > MOST_NODES or part == _UNKNOWN:
            return None
        inside = above and part in rows.made
        pile += [(rows.made[part], False)] if inside else [(inner, above) for inner in e.parts(part)]
    return replaced(node, rows.made)


def columns(node: Node) -> frozenset[str]:
    """The names of the columns that an expression reads."""
    found, pile = set(), [node]
    while pile:
        part = pile.pop()
        found |= {part.name} if isinstance(part, e.Column) else set()
        pile += e.parts(part)
    return frozenset(found)


def is_strict(node: Node) -> bool:
    """Whether an expression has a value only if all its parts have one."""
    return isinstance(node, _STRICT) and all(map(is_strict, e.parts(node)))


def ends(condition: Node) -> Iterator[tuple[Node, Any, Any]]:
    """What a comparison with a constant leaves: of which expression, from where, up to where."""
    match condition:
        case e.Compare(operator, of, e.Constant(value)) | e.Compare(operator, e.Constant(value), of):
            if isinstance(value, bool | str):
                return
            if isinstance(condition.left, e.Constant):
                operator = FLIPPED[operator]  # type: ignore[assignment]
            if operator != "!=":
                yield of, None if operator in ("<", "<=") else value, None if operator in (">", ">=") else value
        case e.IsIn(of, values):
            numbers: list[Any] = [c.value for c in values if not isinstance(c.value, bool | str)]
            if len(numbers) == len(values):
                by = moment if isinstance(numbers[0], date) else Exact
                yield of, min(numbers, key=by), max(numbers, key=by)
