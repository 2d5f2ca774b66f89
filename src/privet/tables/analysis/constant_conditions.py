"""Comparisons with constants that, by the declaration, are never true or always true.

If the keys of `country` do not list Panama, `WHERE country = 'Panama'` has the answer 0, plus noise. That answer would
cost budget and mislead, so the question is refused before it costs anything, with a likely correction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privet.exact import show as show_number
from privet.tables.analysis.outcomes import FLIPPED, Known, Truths, compared_as, outcomes
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.nodes import Node, Types
from privet.tables.expressions.rendering import show
from privet.tables.operators import public_columns
from privet.tables.types import KeyType, NumberType, TimeType, Type

Leaf = e.Compare | e.IsIn | e.StartsWith


@dataclass(frozen=True, slots=True)
class Never:
    """A comparison with a constant that no row can satisfy: both sides, the operator, and the type of the left side."""

    leaf: Leaf
    compared: Node
    operator: str
    value: e.Constant
    kind: Type
    clamped: bool = False
    """Whether this is a column whose values are clamped to its range."""


def nevers(node: Node, types: Types) -> Iterator[Never]:
    """The comparisons with constants, anywhere in an expression, that no row can satisfy; in reading order.

    Under NOT such a comparison is allowed: `not age < 0` is true for every row. But an unlisted key is a mistake there,
    too.

    Example:
        >>> from privet.tables.expressions.fluent import col
        >>> from privet.tables.types import KeyType
        >>> [never.value.value for never in nevers(col("k").is_in(["a", "b"]).node, {"k": KeyType(("a", "c"))})]
        ['b']
    """
    known = Known(types)
    for leaf, compared, operator, values, holds in _leaves(node):
        kind = compared_as(compared, known)
        if not holds and not isinstance(kind, KeyType):
            continue
        for value in values:
            # an unlisted key is a mistake in `!=` too, where it would be true for every row with a key
            same = "==" if operator == "!=" and isinstance(kind, KeyType) else operator
            if True not in _outcomes(leaf, compared, same, value, known):
                yield Never(leaf, compared, operator, value, kind, _is_clamped(compared, types))


def notes(node: Node, types: Types) -> Iterator[str]:
    """Notes on comparisons with constants: one is always true, or also matches clamped values."""
    known = Known(types)
    for leaf, compared, operator, values, holds in _leaves(node):
        kind, truths = compared_as(compared, known), outcomes(leaf, known)
        if holds in truths and (not holds) not in truths:
            every = f"every row where {show(compared)} is not missing" if None in truths else "every row"
            condition = show(leaf if holds else e.Not(leaf))
            yield f"{condition} is true for {every}, because {show(compared)} is {_described(kind)}."
        elif holds and isinstance(leaf, e.Compare) and isinstance(compared, e.Column) and _is_clamped(compared, types):
            yield from _at_bound(leaf, compared, operator, values[0], kind)


def _is_clamped(node: Node, types: Types) -> bool:
    return isinstance(node, e.Column) and node.name not in public_columns(types)


def _described(kind: Type) -> str:
    return "never negative" if isinstance(kind, NumberType) and kind.wide and kind.lower >= 0 else str(kind)


def _at_bound(leaf: Leaf, column: e.Column, operator: str, value: e.Constant, kind: Type) -> Iterator[str]:
    match kind:
        case NumberType(lower, upper, wide=False):
            ends = [(e.Constant(lower), "below", ("==", "<=")), (e.Constant(upper), "above", ("==", ">="))]
        case TimeType(first, last, unit=None):
            ends = [(e.Constant(first), "before", ("==", "<=")), (e.Constant(last), "after", ("==", ">="))]
        case _:
            return
    for end, side, signs in ends:
        if value == end and operator in signs:
            clamped = f"because {column.name} is clamped to {_range(kind)}"
            yield f"{show(leaf)} also matches values {side} {show(end)}, {clamped}."


def _range(kind: Type) -> str:
    match kind:
        case NumberType(wide=False):
            return f"{show_number(kind.lower)}..{show_number(kind.upper)}"
        case TimeType():
            return f"{kind.first}..{kind.last}"
    return str(kind)


def _leaves(node: Node, *, holds: bool = True) -> Iterator[tuple[Leaf, Node, str, tuple[e.Constant, ...], bool]]:
    """Comparisons with constants: the node, the compared expression, the operator, the constants, and whether the
    comparison must hold or must not.
    """
    match node:
        case e.Compare(operator, left, e.Constant() as value) if not isinstance(left, e.Constant):
            yield node, left, operator, (value,), holds
        case e.Compare(operator, e.Constant() as value, right) if not isinstance(right, e.Constant):
            yield node, right, FLIPPED[operator], (value,), holds
        case e.IsIn(of, values) if not isinstance(of, e.Constant):
            yield node, of, "==", tuple(dict.fromkeys(values)), holds
        case e.StartsWith(of, prefix):
            yield node, of, "starts_with", (e.Constant(prefix),), holds
    inner_holds = not holds if isinstance(node, e.Not) else holds or not isinstance(node, e.Logic)
    for part in trees.parts(node):
        yield from _leaves(part, holds=inner_holds)


def _outcomes(leaf: Leaf, compared: Node, operator: str, value: e.Constant, known: Known) -> Truths:
    if isinstance(leaf, e.StartsWith):
        return outcomes(leaf, known)
    return outcomes(e.Compare(operator, compared, value), known)  # type: ignore[arg-type]
