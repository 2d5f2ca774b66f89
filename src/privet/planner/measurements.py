"""Measurements: integer vectors, each a sum over rows of phi(row), to which noise is added.

A measurement states its phi by the corners of a convex set that holds every phi(row); `privacy.sensitivity` does the
rest. Its coordinates are integer combinations of what an engine counts. v is the lattice code of a row's value, in
0..W; a value is lower + step * v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privet.errors import QueryError
from privet.exact.lattice import Bounds
from privet.tables.aggregates import summed
from privet.tables.expressions.nodes import Bin, Node, Types
from privet.tables.expressions.rendering import show
from privet.tables.schema import CEILING
from privet.tables.statement import At, Code, Distinct, Given, Place, Present, Rows, Squares, Tally, Total


@dataclass(frozen=True, slots=True)
class Measurement:
    """One integer vector for each group.

    Claim: for every row, `matrix` applied to what the row adds to the tallies lies in the convex hull of `corners`.
    """

    rule: str
    """The name and version of the rule; a certificate is checked by it."""
    quantity: str
    """A description of the measured quantity."""
    phi: str
    """A description of the contribution of a row."""
    tallies: tuple[Tally, ...]
    matrix: tuple[tuple[int, ...], ...]
    corners: tuple[tuple[int, ...], ...]
    people: bool = False
    """Whether it counts people in groups instead of rows of the table."""

    @property
    def distinct(self) -> Distinct | None:
        """The different values that it counts, if it does."""
        return next((tally for tally in self.tallies if isinstance(tally, Distinct)), None)

    @property
    def size(self) -> int:
        """The number of coordinates in each group."""
        return len(self.matrix)

    def vectors(self, tallies: Sequence[Tally], counted: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """The exact vector of each group, from what an engine counted for these tallies."""
        places = [tallies.index(tally) for tally in self.tallies]
        rows = [[(place, a) for place, a in zip(places, row, strict=True) if a] for row in self.matrix]
        return [tuple(sum(a * group[place] for place, a in row) for row in rows) for group in counted]


def lattice(of: Node, types: Types, what: object, *, squared: bool = False) -> Bounds:
    """The lattice of a summed expression; refused if 2^40 rows could overflow 128 bits."""
    bounds = summed(of, types, what).bounds()
    if bounds.width ** (2 if squared else 1) * CEILING >= 2**126:
        raise QueryError(
            f"{what}: its squares could overflow 128 bits, because it has {bounds.width:,} steps. "
            "Clip it to a narrower range, or declare the column as a number with a coarser step"
        )
    return bounds


def count_rows() -> Measurement:
    """The number of rows."""
    return Measurement("count/1", "rows", "1", (Rows(),), ((1,),), ((1,),))


def count_people() -> Measurement:
    """The number of people: one row for each person and group."""
    return Measurement("people/1", "people", "1", (Rows(),), ((1,),), ((1,),), people=True)


def count_present(of: Node) -> Measurement:
    """The number of rows with a value."""
    given = Present(Given(of))
    return Measurement("present/1", f"rows with {show(of)}", "1 if not missing", (given,), ((1,),), ((1,), (0,)))


def count_distinct(of: Node) -> Measurement:
    """The number of different values.

    Claim: it is no sum over rows, but moves no further than one: see `Distinct`.
    """
    what = Distinct(Given(of))
    return Measurement("distinct/1", f"different {show(of)}", "at most 1", (what,), ((1,),), ((1,), (0,)))


def histogram(of: Bin) -> Measurement:
    """The number of rows in each bin; a row is in one bin or in none."""
    size = len(of.edges) - 1
    place = Place(of, size)
    identity = tuple(tuple(int(i == j) for j in range(size)) for i in range(size))
    return Measurement(
        "histogram/1", f"bins of {show(of.operand)}", "1 in its bin",
        tuple(At(place, i) for i in range(size)), identity, (*identity, (0,) * size),
    )  # fmt: skip


def coded(of: Node, bounds: Bounds, *, missing: bool) -> Code:
    """The code of an expression; if `missing` is false, the engine reads a missing value as 0."""
    return Code(of, bounds.lower, bounds.step, bounds.width, missing)


def total(of: Node, bounds: Bounds, *, missing: bool) -> Measurement:
    """The sum alone, in units of step / q where lower / step = p / q: phi = p + q v."""
    ratio = bounds.lower / bounds.step
    p, q, width = ratio.numerator, ratio.denominator, bounds.width
    phi = "v" if (p, q) == (0, 1) else f"{p} + {'' if q == 1 else f'{q} '}v"
    code = coded(of, bounds, missing=missing)
    ends: tuple[tuple[int, ...], ...] = ((p,), (p + q * width,))
    return Measurement(
        "sum/1", f"sum of {show(of)}", phi, (Present(code), Total(code)), ((p, q),), (*ends, (0,)) if missing else ends
    )


def pair(of: Node, bounds: Bounds, *, missing: bool, everything: bool) -> Measurement:
    """Count and sum together: phi = (v, W - v), of norm W; a further coordinate W for rows with no value.

    Claim: the sum of the coordinates is W times the number of rows, so one vector at full epsilon gives count, sum and
    mean; the vectors lie on the segment from (0, W) to (W, 0).
    """
    width = bounds.width
    code = coded(of, bounds, missing=missing)
    tallies: tuple[Tally, ...] = (Present(code), Total(code))
    matrix: tuple[tuple[int, ...], ...] = ((0, 1), (width, -1))
    if everything:
        tallies = (*tallies, Rows())
        matrix = ((0, 1, 0), (width, -1, 0), (-width, 0, width))
    phi = f"(v, W - v{', W if missing' if everything else ''}), W = {width}"
    name = f"count and sum of {show(of)}"
    return Measurement("pair/1", name, phi, tallies, matrix, _axes(width, len(matrix), gone=not everything))


def triple(of: Node, bounds: Bounds, *, missing: bool, everything: bool) -> Measurement:
    """Count, sum and sum of squares together: phi = ((W - v)^2, 2 v (W - v), v^2), of norm W^2.

    Claim: the coordinates are not negative and add up to W^2 times the number of rows: they lie in the simplex of
    norm W^2.
    """
    width = bounds.width
    code = coded(of, bounds, missing=missing)
    tallies: tuple[Tally, ...] = (Present(code), Total(code), Squares(code))
    matrix: tuple[tuple[int, ...], ...] = ((width**2, -2 * width, 1), (0, 2 * width, -2), (0, 0, 1))
    if everything:
        tallies = (*tallies, Rows())
        matrix = (*((*row, 0) for row in matrix), (-(width**2), 0, 0, width**2))
    phi = f"((W - v)^2, 2 v (W - v), v^2{', W^2 if missing' if everything else ''}), W = {width}"
    name = f"count, sum and squares of {show(of)}"
    return Measurement("triple/1", name, phi, tallies, matrix, _axes(width**2, len(matrix), gone=not everything))


def moments(of: Node, bounds: Bounds) -> Measurement:
    """Sum and sum of squares, where the number of rows is public: phi = (W v, 2 v (W - v)), v never missing.

    Claim: two rows are at most D = max (3 W v - 2 v^2) apart, about 9/8 W^2. With x = W v and y = 2 v (W - v), every
    phi has 0 <= x <= W^2 and 0 <= y <= M, its greatest y. Also x + y = 3 W v - 2 v^2 <= D, and W^2 - x + y <= D, which
    is the same for W - v. These lines meet in the corners below. Of two points with x1 <= x2, either y2 >= y1, and
    they are at most (x2 + y2) - (x1 + y1) <= D apart, or (W^2 - x1 + y1) - (W^2 - x2 + y2) <= D.
    """
    width = bounds.width
    code = coded(of, bounds, missing=False)
    square, highest = width**2, 2 * (width // 2) * (width - width // 2)
    most = max(3 * width * v - 2 * v * v for v in (3 * width // 4, -(-3 * width // 4)))
    corners = {
        (0, 0): None, (square, 0): None, (square, most - square): None, (most - highest, highest): None,
        (square - most + highest, highest): None, (0, most - square): None,
    }  # fmt: skip
    phi = f"(W v, 2 v (W - v)), W = {width}"
    name = f"sum and squares of {show(of)}"
    tallies = (Total(code), Squares(code))
    return Measurement("moments/1", name, phi, tallies, ((width, 0), (2 * width, -2)), tuple(corners))


def _axes(norm: int, size: int, *, gone: bool) -> tuple[tuple[int, ...], ...]:
    """The corners of the simplex of this norm; with zero, if a row may contribute nothing."""
    axes = tuple(tuple(norm if i == j else 0 for j in range(size)) for i in range(size))
    return (*axes, (0,) * size) if gone else axes
