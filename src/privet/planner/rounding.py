"""Which parts of a query are rounded so that they fit into 126 bits: for people to read."""

from __future__ import annotations

from collections.abc import Iterator

from privet.query import Query
from privet.relation import expressions as e
from privet.relation.aggregates import Count, CountPeople, Ratio
from privet.relation.expressions import Node, Types
from privet.relation.language import show
from privet.relation.operators import JoinPerson, Operator, PerPerson, Scan, Where, WithColumns
from privet.relation.rules import as_number
from privet.relation.types import BooleanType, NumberType
from privet.relation.units import Range, product, quotient, together


def rounded(query: Query) -> list[str]:
    """A line for each expression whose operands lose bits.

    Example:
        >>> import privet as pv
        >>> from privet.query import Relation
        >>> from privet.relation.schema import Schema
        >>> people = Relation(Scan(Schema.declare("t", protect=pv.each_row(), columns={"x": pv.number(0, 1)})))
        >>> x = pv.col("x")
        >>> rounded(people.agg(n=pv.sum(x * x * x))), len(rounded(people.agg(n=pv.sum(x * x * x * x))))
        ([], 1)
    """
    found = [*_asked(query), *_below(query.of)]
    parts = dict.fromkeys(part for node, types in found for part in _coarse(node, types))
    return [f"{part} is rounded to what 126 bits hold: its exact value would need more." for part in parts]


def _asked(query: Query) -> Iterator[tuple[Node, Types]]:
    types = query.of.types()
    yield from ((key.of, types) for key in query.keys)
    for _, aggregate in query.aggregates:
        for part in (aggregate.numerator, aggregate.denominator) if isinstance(aggregate, Ratio) else (aggregate,):
            if not isinstance(part, CountPeople) and not (isinstance(part, Count) and part.of is None):
                assert part.of is not None
                yield part.of, types


def _below(of: Operator) -> Iterator[tuple[Node, Types]]:
    match of:
        case Scan():
            return
        case JoinPerson(left, right):
            yield from _below(left)
            yield from _below(right)
            return
        case Where(inner, condition):
            yield condition, inner.types()
        case WithColumns(inner, columns):
            yield from ((node, inner.types()) for _, node in columns)
        case PerPerson(inner, values):
            yield from ((value.of, inner.types()) for _, value in values if value.of is not None)
    yield from _below(of.of)


def _coarse(node: Node, types: Types) -> Iterator[str]:
    for part in e.parts(node):
        yield from _coarse(part, types)
    if _shifts(node, types):
        yield show(node)


def _shifts(node: Node, types: Types) -> bool:
    match node:
        case e.Arithmetic(operator, left, right):
            ranges = [_range(part, types) for part in (left, right)]
            a, b = ranges
            if a is None or b is None or b.constant is not None:
                return False
            if operator == "*":
                return any(product(a, b).shifts)
            return any(quotient(a, b).shifts if operator == "/" else together(a, b).shifts)
        case e.Compare(_, left, right):
            sides = [found for part in (left, right) if (found := _range(part, types)) is not None]
            return len(sides) == 2 and all(side.constant is None for side in sides) and any(together(*sides).shifts)
        case e.Case(branches, otherwise):
            values = [value for _, value in branches] + ([] if otherwise is None else [otherwise])
            numbers = [found for part in values if (found := _range(part, types)) is not None]
            return len(numbers) == len(values) > 1 and any(together(*numbers).shifts)
    return False


def _range(node: Node, types: Types) -> Range | None:
    kind = node.type(types)
    return as_number(kind, "a number").range if isinstance(kind, NumberType | BooleanType) else None
