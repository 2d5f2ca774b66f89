"""The bins in which bounds are looked for: powers of two, as far as the declared bounds reach."""

from __future__ import annotations

from privet.errors import QueryError
from privet.exact import Exact, show
from privet.tables.types import NumberType

ORDERS = 64
"""Maximum powers of two on each side of the middle; what is smaller shares one bin."""


def powers(kind: NumberType) -> tuple[Exact, ...]:
    """The edges of bins over the whole range of a number: 0 and both signs of the powers of two times its unit.

    Where 0 is outside of the range, the powers are counted from the end that is nearer to 0.

    Claim: the edges increase, the first and the last are the ends of the range, and no two look the same in print. So a
    value is in exactly one bin.

    Example:
        >>> [int(edge) for edge in powers(NumberType(Exact(0), Exact(20), integer=True))]
        [0, 1, 2, 4, 8, 16, 20]
        >>> [int(edge) for edge in powers(NumberType(Exact(-3), Exact(2), integer=True))]
        [-3, -2, -1, 0, 1, 2]
        >>> [int(edge) for edge in powers(NumberType(Exact(1990), Exact(2000), integer=True))]
        [1990, 1991, 1992, 1994, 1998, 2000]
    """
    low, high = kind.lower, kind.upper
    if kind.least >= kind.most:
        raise QueryError(f"this is always {show(low)}, so there are no bounds to look for")
    middle = min(max(Exact(0), low), high)
    below = [middle - each for each in _distances(middle - low, kind.unit)]
    above = [middle + each for each in _distances(high - middle, kind.unit)]
    edges: list[Exact] = []
    for edge in sorted({low, *below, middle, *above, high}):
        if edges and show(edge) == show(edges[-1]):  # these bins would have one name
            if edge in (middle, high):
                edges[-1] = edge
            continue
        edges.append(edge)
    edges[0] = low
    return tuple(edges)


def _distances(reach: Exact, unit: Exact) -> list[Exact]:
    """The powers of two times the unit that are less than `reach`: the greatest of them."""
    found = []
    each = unit
    while each < reach:
        found.append(each)
        each *= 2
    return found[-ORDERS:]
