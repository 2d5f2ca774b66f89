"""ROLLUP, CUBE and GROUPING SETS: which sets of keys a GROUP BY means."""

from __future__ import annotations

from itertools import combinations, product

from sqlglot import exp

from privet.errors import QueryError
from privet.sql.grammar import Tree, bare, span
from privet.sql.source import SqlText
from privet.tables import groups

SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)
"""The parts of a GROUP BY that mean several sets of keys."""

_MOST = 1_000  # sets that are written out; far more than any answer can have

Set = tuple[Tree, ...]


def is_plain(group: exp.Group) -> bool:
    """Whether a GROUP BY lists keys and nothing else."""
    return not any(isinstance(tree, SEVERAL) for tree in group.expressions)


def sets_of(source: SqlText, group: exp.Group) -> list[Set]:
    """The sets of keys of a GROUP BY: its parts are combined, one set of each."""
    every = [_sets(source, tree) for tree in group.expressions]
    count = 1
    for some in every:
        count *= len(some)
        if count > _MOST:
            raise source.refusal(span(group), "these are too many grouping sets", "Use fewer keys")
    return [tuple(tree for some in chosen for tree in some) for chosen in product(*every)]


def _sets(source: SqlText, tree: Tree) -> list[Set]:
    """The sets that one part of a GROUP BY means."""
    if not isinstance(tree, SEVERAL):
        return [_keys(tree)]
    if not tree.expressions:
        raise source.refusal(span(tree), "this needs at least one key, such as ROLLUP (region, town)")
    if isinstance(tree, exp.GroupingSets):
        return [some for part in tree.expressions for some in _sets(source, part)]
    parts = [_keys(part) for part in tree.expressions]
    if isinstance(tree, exp.Rollup):
        chosen = [parts[:size] for size in reversed(range(len(parts) + 1))]
    else:
        try:
            groups.cube(len(parts))
        except QueryError as error:
            raise source.placed(span(tree), error) from None
        chosen = [list(some) for size in reversed(range(len(parts) + 1)) for some in combinations(parts, size)]
    return [tuple(key for part in some for key in part) for some in chosen]


def _keys(tree: Tree) -> Set:
    """The keys in parentheses, or a key alone."""
    if isinstance(tree, exp.Tuple):
        return tuple(map(bare, tree.expressions))
    return (bare(tree),)
