"""The parts of a query that are rounded to fit into 126 bits, in words."""

from __future__ import annotations

from collections.abc import Iterator

from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.nodes import Node, Types
from privet.tables.expressions.rendering import show
from privet.tables.expressions.typing_rules import as_number
from privet.tables.query import Query
from privet.tables.types import BooleanType, NumberType
from privet.tables.units import Range, product, quotient, together


def rounded(query: Query) -> list[str]:
    """A line for each expression whose operands lose bits.

    Example:
        >>> import privet as pv
        >>> from privet.tables.relation import Relation
        >>> from privet.tables.operators import Scan
        >>> from privet.tables.schema import Schema
        >>> people = Relation(Scan(Schema.declare("t", protect=pv.each_row(), columns={"x": pv.number(0, 1)})))
        >>> x = pv.col("x")
        >>> rounded(people.agg(n=pv.sum(x * x * x))), len(rounded(people.agg(n=pv.sum(x * x * x * x))))
        ([], 1)
    """
    parts = dict.fromkeys(part for node, rows in query.expressions() for part in _coarse(node, rows.types()))
    return [f"{part} is rounded to fit into 126 bits." for part in parts]


def _coarse(node: Node, types: Types) -> Iterator[str]:
    for part in trees.parts(node):
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
            sides = [side for part in (left, right) if (side := _range(part, types)) is not None]
            return len(sides) == 2 and all(side.constant is None for side in sides) and any(together(*sides).shifts)
        case e.Case(branches, otherwise):
            values = [value for _, value in branches] + ([] if otherwise is None else [otherwise])
            numbers = [number for part in values if (number := _range(part, types)) is not None]
            return len(numbers) == len(values) > 1 and any(together(*numbers).shifts)
    return False


def _range(node: Node, types: Types) -> Range | None:
    kind = node.type(types)
    return as_number(kind, "a number").range if isinstance(kind, NumberType | BooleanType) else None
