"""Expressions as trees: their parts, the same with other parts, and limits on their size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal as OneOf

from privet.errors import QueryError, write
from privet.tables.expressions import nodes as e
from privet.tables.expressions.nodes import Node

MOST_NODES = 2_000
DEEPEST = 64
"""The maximum size of an expression, and its maximum depth."""


def parts(node: Node) -> tuple[Node, ...]:
    """The direct parts of an expression."""
    match node:
        case e.Column() | e.Constant() | e.OfAnswer() | e.Grouping():
            return ()
        case e.Arithmetic(_, a, b) | e.Compare(_, a, b):
            return (a, b)
        case e.Logic(_, of) | e.Which(of):
            return of
        case e.Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), *([] if otherwise is None else [otherwise]))
        case _:
            return (node.operand,)


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The same expression with changed parts."""
    match node:
        case e.Column() | e.Constant() | e.OfAnswer() | e.Grouping():
            return node
        case e.Arithmetic(operator, a, b):
            return e.Arithmetic(operator, change(a), change(b))
        case e.Compare(comparison, a, b):
            return e.Compare(comparison, change(a), change(b))
        case e.Logic(logic, of):
            return e.Logic(logic, tuple(map(change, of)))
        case e.Which(of):
            return replace(node, operands=tuple(map(change, of)))
        case e.Case(branches, otherwise):
            pairs = tuple((change(when), change(then)) for when, then in branches)
            return e.Case(pairs, None if otherwise is None else change(otherwise))
        case _:
            return replace(node, operand=change(node.operand))


def replaced(node: Node, what: Mapping[Node, Node]) -> Node:
    """The same expression with some parts replaced by others."""
    return what[node] if node in what else mapped(node, lambda part: replaced(part, what))


def conjuncts(node: Node) -> tuple[Node, ...]:
    """The conditions that are all true exactly if this one is."""
    if isinstance(node, e.Logic) and node.operator == "and":
        return tuple(inner for part in node.operands for inner in conjuncts(part))
    return (node,)


def listed(node: Node) -> Node | None:
    """The expression whose values a case lists, `case when x = 'a' then 'a' ... end`; None if it is another case."""
    if not isinstance(node, e.Case) or node.otherwise is not None:
        return None
    first = node.branches[0][0]
    of = first.left if isinstance(first, e.Compare) else None
    if of is None or not all(isinstance(value, e.Constant) for _, value in node.branches):
        return None
    return of if all(when == e.Compare("==", of, value) for when, value in node.branches) else None


def joined(operator: OneOf["and", "or"], nodes: Sequence[Node]) -> Node:
    """All or any of these conditions, flattened: `(a and b) and c` is `a and b and c`."""
    flat: list[Node] = []
    for node in nodes:
        flat += node.operands if isinstance(node, e.Logic) and node.operator == operator else (node,)
    return flat[0] if len(flat) == 1 else e.Logic(operator, tuple(flat))


def sized(node: Node) -> Node:
    """The same expression, if it is not too large; a shared part counts each time it is used."""
    e.check_nodes(node)
    left, pile = MOST_NODES, [(node, 1)]
    while pile:
        part, depth = pile.pop()
        left -= 1
        if left < 0 or depth > DEEPEST:
            raise QueryError(
                f"an expression can have at most {MOST_NODES:,} parts, nested at most {DEEPEST} levels deep",
                remedy=write("with_columns(rate=...)", advice="Define parts of it as columns first"),
            )
        pile += [(inner, depth + 1) for inner in parts(part)]
    return node
