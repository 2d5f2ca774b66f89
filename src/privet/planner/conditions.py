"""Conditions that can't be true of any row are refused before anything is paid; those that always are get a note."""

from __future__ import annotations

from collections.abc import Iterator

from privet.errors import QueryError
from privet.query import Query
from privet.relation import constants
from privet.relation.advice import said
from privet.relation.aggregates import Aggregate, CountPeople, Ratio
from privet.relation.expressions import Logic, Node, Types
from privet.relation.language import show
from privet.relation.narrowing import impossible
from privet.relation.operators import JoinPerson, Operator, PerPerson, Scan, Where, WithColumns


def check(query: Query) -> None:
    """Refuse a query with a condition that the declaration says can never be true."""
    for node, types in _expressions(query):
        for never in constants.nevers(node, types):
            raise QueryError(said(never))
    unmet = impossible(query.of)
    if unmet:
        raise QueryError(
            f"{' and '.join(map(_in_brackets, unmet))} can never be true of any row. Remove one of the conditions."
        )
    for key, values in zip(query.keys, query.domains(), strict=True):
        if not values:
            raise QueryError(f"these conditions leave no group of {key.name}. Remove one of them.")


def _in_brackets(node: Node) -> str:
    return f"({show(node)})" if isinstance(node, Logic) else show(node)


def notes(query: Query) -> list[str]:
    """What to know of the conditions of a query, to be read beside its answer."""
    found = (note for node, types in _expressions(query) for note in constants.notes(node, types))
    return list(dict.fromkeys(found))


def _expressions(query: Query) -> Iterator[tuple[Node, Types]]:
    """Every expression over rows, with the types of the columns that it reads: the deepest first."""
    yield from _below(query.of)
    types = query.of.types()
    yield from ((key.of, types) for key in query.keys)
    yield from ((node, types) for _, what in query.aggregates for node in _of(what))


def _of(what: Aggregate) -> Iterator[Node]:
    match what:
        case Ratio(numerator, denominator):
            yield from _of(numerator)
            yield from _of(denominator)
        case CountPeople():
            return
        case _ if what.of is not None:
            yield what.of


def _below(of: Operator) -> Iterator[tuple[Node, Types]]:
    match of:
        case Scan():
            return
        case JoinPerson(left, right):
            yield from _below(left)
            yield from _below(right)
            return
    yield from _below(of.of)
    types = of.of.types()
    match of:
        case Where(_, condition):
            yield condition, types
        case WithColumns(_, columns):
            yield from ((node, types) for _, node in columns)
        case PerPerson(_, values):
            yield from ((value.of, types) for _, value in values if value.of is not None)
