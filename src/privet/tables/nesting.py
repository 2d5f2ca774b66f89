"""Which combinations of keys are possible, where keys lie within others: a town with its own region, and no other.

Claim: a row is in at most one combination: that of its values, if it is possible. A combination is possible if each key
lies in the value of the nearest key above it that the question groups by. What counts as `other` can lie anywhere: the
other towns of each region are a group of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from privet.errors import TooManyGroups, write
from privet.tables.analysis import narrowing
from privet.tables.expressions.nodes import Column, Node
from privet.tables.operators import JoinPerson, JoinPublic, Operator, PerPerson, Scan, Where, WithColumns
from privet.tables.schema import Schema
from privet.tables.types import MOST_GROUPS, KeyType, KeyValue

Combination = tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True)
class Nested:
    """That the key at one place lies within the one at another, and in which of its values each of its values does.

    What is not in `parents` can lie in any of them.
    """

    child: int
    above: int
    parents: dict[KeyValue, KeyValue]

    def allows(self, child: KeyValue, above: KeyValue) -> bool:
        """Whether a row can have these two values."""
        return self.parents.get(child, above) == above


def nested(rows: Operator, keys: Sequence[Node]) -> list[Nested]:
    """Which of these keys lie within others of them, each in the nearest."""
    origins = [_origin(key, rows, ()) for key in keys]
    places = {origin: i for i, origin in reversed([*enumerate(origins)]) if origin is not None}
    found = []
    for child, origin in enumerate(origins):
        if origin is None:
            continue
        path, schema, name = origin
        parents: dict[KeyValue, KeyValue] = {}
        columns, at = dict(schema.columns), name
        while (within := columns[at].within) is not None:
            kind = columns[at].type
            assert isinstance(kind, KeyType)
            up: dict[KeyValue, KeyValue] = dict(zip(kind.values, within.parents, strict=True))
            start = at == name
            parents = up if start else {value: up[parent] for value, parent in parents.items() if parent in up}
            at = within.column
            if (path, schema, at) in places:
                found.append(Nested(child, places[path, schema, at], parents))
                break
    return found


def downwards(keys: int, pairs: Sequence[Nested]) -> list[int]:
    """The places of keys in an order in which each comes after the one that it lies within; otherwise as they are.

    Example:
        >>> downwards(3, [Nested(0, 2, {})])
        [2, 0, 1]
    """
    above = {each.child: each.above for each in pairs}
    found: list[int] = []
    for place in range(keys):
        path = [place]
        while path[-1] in above:
            path.append(above[path[-1]])
        found += [each for each in reversed(path) if each not in found]
    return found


def excluded(rows: Operator) -> tuple[str, str] | None:
    """A column and the one that it lies within, if conditions leave no value of the one that lies in one of the other.

    Claim: by the declarations, no row then satisfies the conditions. A row that contradicts them can.
    """
    names = [name for name, kind in rows.types().items() if isinstance(kind, KeyType)]
    for child, above in permutations(names, 2):
        pairs = nested(rows, (Column(child), Column(above)))
        if not pairs or pairs[0].child:
            continue
        some, parents = narrowing.domains(rows, (Column(child), Column(above)))
        if some and parents and not any(pairs[0].parents.get(value, parents[0]) in {*parents} for value in some):
            return child, above
    return None


def left_out(rows: Operator, keys: Sequence[Node], names: Sequence[str]) -> list[str]:
    """What becomes of rows that contradict the declarations, in words."""
    pairs = [(names[each.child], names[each.above]) for each in nested(rows, keys)]
    return [f"rows whose {child} lies in another {above} than theirs left out" for child, above in pairs]


def possible(
    rows: Operator, keys: Sequence[Node], values: Sequence[Sequence[KeyValue]]
) -> tuple[Combination, ...] | None:
    """The possible combinations of these values, in the order of `itertools.product`; None if all are."""
    pairs = nested(rows, keys)
    if not pairs:
        return None
    made: list[Combination] = [()]
    for place, some in enumerate(values):
        tests = [each for each in pairs if max(each.child, each.above) == place]
        longer = []
        for start in made:
            for value in some:
                one = (*start, value)
                if all(test.allows(one[test.child], one[test.above]) for test in tests):
                    longer.append(one)
            if len(longer) > 10 * MOST_GROUPS:
                raise TooManyGroups(
                    f"these keys make more than {MOST_GROUPS:,} groups, the most that are allowed",
                    remedy=write('rollup("region", "town")', sql="GROUP BY ROLLUP (region, town)"),
                )
        made = longer
    return tuple(made)


def _origin(key: Node, rows: Operator, path: tuple[str, ...]) -> tuple[tuple[str, ...], Schema, str] | None:
    """The table and the column that a key is, if it is one as it was declared; and the way there, through joins."""
    if not isinstance(key, Column):
        return None
    name = key.name
    match rows:
        case Scan(table):
            return path, table, name
        case WithColumns(inner, columns) if name in dict(columns):
            return _origin(dict(columns)[name], inner, path)
        case PerPerson(inner, _, keys):
            return _origin(dict(keys)[name], inner, path) if name in dict(keys) else None
        case JoinPerson(left, right):
            return _origin(key, *((left, (*path, "left")) if name in left.types() else (right, (*path, "right"))))
        case JoinPublic(inner):
            return _origin(key, inner, path) if name in inner.types() else None
        case Where(inner) | WithColumns(inner):
            return _origin(key, inner, path)
