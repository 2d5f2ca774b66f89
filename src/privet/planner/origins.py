"""Where the columns of a question come from: a declaration, or an expression over other rows."""

from __future__ import annotations

from collections.abc import Iterator

from privet.tables import schema
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.operators import JoinPerson, JoinPublic, OfPerson, Operator, PerPerson, Scan, Where, WithColumns
from privet.tables.types import Type


def origin_of(name: str, of: Operator) -> tuple[schema.Column | OfPerson | e.Node | None, Operator]:
    """The origin of a column: its declaration, or its definition and the rows that it reads; None if it is public."""
    match of:
        case Scan(table):
            return dict(table.columns)[name], of
        case WithColumns(inner, columns) if name in dict(columns):
            return dict(columns)[name], inner
        case PerPerson(inner, values, keys):
            return (dict(keys)[name] if name in dict(keys) else dict(values)[name]), inner
        case JoinPerson(left, right):
            return origin_of(name, left if name in left.types() else right)
        case JoinPublic(inner):
            return origin_of(name, inner) if name in inner.types() else (None, of)
        case Where(inner) | WithColumns(inner):
            return origin_of(name, inner)


def read_as_key(node: e.Node, of: Operator, gone: str, seen: set[tuple[str, int]]) -> Iterator[tuple[str, Type, str]]:
    """The declared columns that a key uses, with their types, and the effect on a value out of range.

    What a condition inside a key compares is read as a value.
    """
    if isinstance(node, e.CONDITIONS):
        return
    if isinstance(node, e.Case):
        for value in (*(value for _, value in node.branches), node.otherwise):
            if value is not None:
                yield from read_as_key(value, of, gone, seen)
    elif not isinstance(node, e.Column):
        for part in trees.parts(node):
            yield from read_as_key(part, of, gone, seen)
    else:
        origin, inner = origin_of(node.name, of)
        if (node.name, id(inner)) in seen:
            return
        seen.add((node.name, id(inner)))
        if isinstance(origin, schema.Column):
            yield node.name, origin.type, gone
        elif isinstance(origin, OfPerson):
            if origin.expression is not None:
                yield from read_as_key(origin.expression, inner, "read as missing", seen)
        elif origin is not None:
            yield from read_as_key(origin, inner, gone, seen)
