"""Expressions evaluated on one row by the reference engine, and short forms of what a statement counts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from privet.engines.reference.expressions import Read, cut, evaluate, part_of
from privet.engines.reference.leaves import leaf
from privet.engines.reference.numbers import Number, half_up, of_person
from privet.exact.lattice import Bounds
from privet.tables.expressions import nodes as e
from privet.tables.expressions.typing_rules import as_number
from privet.tables.statement import Code, Given, Present, Squares, Total

__all__ = ["Number", "Read", "cut", "evaluate", "half_up", "leaf", "of_person", "part_of"]


def holds(node: e.Node) -> Total:
    """The number of rows where a condition is true."""
    return Total(Code(node, Fraction(0), Fraction(1), 1, True))


def present(node: e.Node) -> Present:
    """The number of rows with a value."""
    return Present(Given(node))


def total(node: e.Node, lower: Any, step: Any, width: int) -> Total:
    """The sum of codes."""
    return Total(Code(node, Fraction(lower), Fraction(step), width, True))


def squares(node: e.Node, lower: Any, step: Any, width: int) -> Squares:
    """The sum of squared codes."""
    return Squares(Code(node, Fraction(lower), Fraction(step), width, True))


def lattice(node: e.Node, types: e.Types) -> Bounds:
    """A lattice that an expression can be summed on, bounds or not."""
    kind = as_number(node.type(types), "test")
    if kind.wide:  # any lattice of whole units will do
        return Bounds(-(2**20) * kind.unit, 2**20 * kind.unit, step=3 * kind.unit)
    return kind.bounds()


def summed(node: e.Node, types: e.Types) -> tuple[Total, Squares]:
    """The sum and the sum of squares of an expression, whatever its size."""
    kind = as_number(node.type(types), "test")
    held, each = kind.range, 1
    while held.most - held.least > 2**40 * each:
        each *= 2
    read = Code(node, held.unit * held.least, held.unit * each, max(1, (held.most - held.least) // each), True)
    return Total(read), Squares(read)
