"""Comparisons with constants: those that the declaration says can never be true, and those that always are.

`WHERE country = 'Panama'`, where the keys of `country` do not list Panama, has an answer: 0, with noise. It would be
paid for, and it would mislead. So it is refused before anything is paid, with what could have been meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privet.exact import show as show_number
from privet.tables import expressions as e
from privet.tables.expressions import Node, Types
from privet.tables.language import show
from privet.tables.operators import public_columns
from privet.tables.reach import FLIPPED, Known, Truths, compared_as, outcomes
from privet.tables.types import KeyType, NumberType, TimeType, Type

Leaf = e.Compare | e.IsIn | e.StartsWith


@dataclass(frozen=True, slots=True)
class Never:
    """A comparison with a constant that no row can meet: what is compared, how, with what, and its type."""

    leaf: Leaf
    of: Node
    operator: str
    value: e.Constant
    kind: Type
    clamped: bool = False
    """Whether this is a column whose values beyond its range are clamped to it."""


def nevers(node: Node, types: Types) -> Iterator[Never]:
    """The comparisons with constants, anywhere in an expression, that no row can meet; in the order of reading.

    What is only asked not to be so is answered: `not age < 0` is true of every row. But a key that is not listed is a
    mistake there too.

    Example:
        >>> from privet.tables.language import col
        >>> from privet.tables.types import KeyType
        >>> [never.value.value for never in nevers(col("k").is_in(["a", "b"]).node, {"k": KeyType(("a", "c"))})]
        ['b']
    """
    known = Known(types)
    for leaf, of, operator, values, holds in _leaves(node):
        kind = compared_as(of, known)
        if not holds and not isinstance(kind, KeyType):
            continue
        for value in values:
            # a key that is not listed is a mistake in `!=` too, where it would be true of every row with a key
            same = "==" if operator == "!=" and isinstance(kind, KeyType) else operator
            if True not in _outcomes(leaf, of, same, value, known):
                yield Never(leaf, of, operator, value, kind, _is_clamped(of, types))


def notes(node: Node, types: Types) -> Iterator[str]:
    """What to know of comparisons with constants: that one is always true, or that it finds clamped values too."""
    known = Known(types)
    for leaf, of, operator, values, holds in _leaves(node):
        kind, found = compared_as(of, known), outcomes(leaf, known)
        if holds in found and (not holds) not in found:
            every = f"every row where {show(of)} is not missing" if None in found else "every row"
            asked = show(leaf if holds else e.Not(leaf))
            yield f"{asked} holds for {every}, because {show(of)} is {_described(kind)}."
        elif holds and isinstance(leaf, e.Compare) and isinstance(of, e.Column) and _is_clamped(of, types):
            yield from _at_bound(leaf, of, operator, values[0], kind)


def _is_clamped(of: Node, types: Types) -> bool:
    return isinstance(of, e.Column) and of.name not in public_columns(types)


def _described(kind: Type) -> str:
    return "never negative" if isinstance(kind, NumberType) and kind.wide and kind.lower >= 0 else str(kind)


def _at_bound(leaf: Leaf, of: e.Column, operator: str, value: e.Constant, kind: Type) -> Iterator[str]:
    match kind:
        case NumberType(lower, upper, wide=False):
            ends = [(e.Constant(lower), "below", ("==", "<=")), (e.Constant(upper), "above", ("==", ">="))]
        case TimeType(first, last, unit=None):
            ends = [(e.Constant(first), "before", ("==", "<=")), (e.Constant(last), "after", ("==", ">="))]
        case _:
            return
    for end, side, signs in ends:
        if value == end and operator in signs:
            clamped = f"because {of.name} is clamped to {_range(kind)}"
            yield f"{show(leaf)} also matches values {side} {show(end)}, {clamped}."


def _range(kind: Type) -> str:
    match kind:
        case NumberType(wide=False):
            return f"{show_number(kind.lower)}..{show_number(kind.upper)}"
        case TimeType():
            return f"{kind.first}..{kind.last}"
    return str(kind)


def _leaves(node: Node, *, holds: bool = True) -> Iterator[tuple[Leaf, Node, str, tuple[e.Constant, ...], bool]]:
    """Comparisons of something with a constant: as they stand; what is compared; how; with which constants; whether
    they are asked to hold, or not to.
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
    asked = not holds if isinstance(node, e.Not) else holds or not isinstance(node, e.Logic)
    for part in e.parts(node):
        yield from _leaves(part, holds=asked)


def _outcomes(leaf: Leaf, of: Node, operator: str, value: e.Constant, known: Known) -> Truths:
    if isinstance(leaf, e.StartsWith):
        return outcomes(leaf, known)
    return outcomes(e.Compare(operator, of, value), known)  # type: ignore[arg-type]
