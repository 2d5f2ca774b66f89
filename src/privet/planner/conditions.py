"""Conditions that no row can satisfy are refused before anything is paid; those that are always true get a note."""

from __future__ import annotations

from privet.errors import QueryError, Remedy
from privet.tables.analysis import constant_conditions
from privet.tables.analysis.advice import never_true
from privet.tables.analysis.narrowing import impossible
from privet.tables.expressions.nodes import Logic, Node
from privet.tables.expressions.rendering import show
from privet.tables.nesting import excluded
from privet.tables.query import Query


def check(query: Query) -> None:
    """Refuse a query with a condition that, by the declaration, can never be true."""
    for node, rows in query.expressions():
        for never in constant_conditions.nevers(node, rows.types()):
            raise never_true(never)
    unmet = impossible(query.input)
    if unmet:
        raise QueryError(
            f"{' and '.join(map(_in_brackets, unmet))} can't be true for any row",
            remedy=Remedy("Remove one of the conditions"),
        )
    outside = excluded(query.input)
    if outside is not None:
        child, above = outside
        raise QueryError(
            f"{child!r} lies within {above!r}, and the conditions leave no {child} in a {above} that they allow",
            allowed="By the declaration, no row satisfies them",
            remedy=Remedy(f"Remove the condition on {child!r} or the one on {above!r}"),
        )
    for key, values in zip(query.keys, query.domains(), strict=True):
        if not values and query.groups.is_public:
            raise QueryError(f"these conditions exclude every group of {key.name}", remedy=Remedy("Remove one of them"))


def _in_brackets(node: Node) -> str:
    return f"({show(node)})" if isinstance(node, Logic) else show(node)


def notes(query: Query) -> list[str]:
    """Notes on the conditions of a query, to show with its answer."""
    told = (note for node, rows in query.expressions() for note in constant_conditions.notes(node, rows.types()))
    return list(dict.fromkeys(told))
