"""Conditions that can't be true of any row are refused before anything is paid; those that always are get a note."""

from __future__ import annotations

from privet.errors import QueryError, Remedy
from privet.tables import constants
from privet.tables.advice import never_true
from privet.tables.expressions import Logic, Node
from privet.tables.language import show
from privet.tables.narrowing import impossible
from privet.tables.query import Query


def check(query: Query) -> None:
    """Refuse a query with a condition that the declaration says can never be true."""
    for node, rows in query.expressions():
        for never in constants.nevers(node, rows.types()):
            raise never_true(never)
    unmet = impossible(query.of)
    if unmet:
        raise QueryError(
            f"{' and '.join(map(_in_brackets, unmet))} can never be true of any row",
            remedy=Remedy("Remove one of the conditions"),
        )
    for key, values in zip(query.keys, query.domains(), strict=True):
        if not values:
            raise QueryError(f"these conditions leave no group of {key.name}", remedy=Remedy("Remove one of them"))


def _in_brackets(node: Node) -> str:
    return f"({show(node)})" if isinstance(node, Logic) else show(node)


def notes(query: Query) -> list[str]:
    """What to know of the conditions of a query, to be read beside its answer."""
    found = (note for node, rows in query.expressions() for note in constants.notes(node, rows.types()))
    return list(dict.fromkeys(found))
