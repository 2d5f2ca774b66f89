"""Margins of a table of groups, and their residuals: how far one unit moves them.

A table has a cell for each combination of the values of its keys. The margin over some keys adds up the cells that
agree in these keys: by region, by year, the total. Its residual is what that margin says beyond all coarser ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from privet.privacy.adjacency import Adjacency
from privet.privacy.moves import L1Move, L2Move
from privet.privacy.sensitivity import Vector, l1_move, l2_move


@dataclass(frozen=True, slots=True)
class Margin:
    """The margin over some keys of a table: the positions of these keys, and how many values each key has.

    Example:
        >>> by_region = Margin((0,), (4, 12))
        >>> by_region.cells, by_region.beside
        (4, 12)
    """

    keys: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def cells(self) -> int:
        """The number of its cells."""
        return prod(self.sizes[key] for key in self.keys)

    @property
    def beside(self) -> int:
        """The number of cells of the table that one of its cells adds up."""
        return prod(self.sizes) // self.cells


def margin_move(
    phis: Iterable[Vector],
    margin: Margin,
    *,
    adjacency: Adjacency | str,
    rows: int = 1,
    max_groups: int = 1,
) -> L1Move:
    """How far one unit moves a margin, in L1; at most `rows` rows of it are in each of `max_groups` cells of the table.

    Claim: that of `l1_move`. In a coarser margin all cells of a unit can be one cell: there it has rows * max_groups
    rows.

    Example:
        >>> margin_move([(1,)], Margin((0,), (4, 12)), adjacency="add/remove", rows=3, max_groups=2)
        L1Move(l1=6, blocks=1)
    """
    if margin.beside > 1:
        rows, max_groups = rows * min(max_groups, prod(margin.sizes)), 1
    return l1_move(phis, adjacency=adjacency, rows=rows, max_groups=max_groups, groups=margin.cells)


def residual_move(
    phis: Iterable[Vector],
    margin: Margin,
    *,
    adjacency: Adjacency | str,
    rows: int = 1,
    max_groups: int = 1,
) -> L2Move:
    """How far one unit moves a residual, in L2: the margin, multiplied by n I - J along each of its keys.

    n is the number of values of a key, I the identity and J the matrix of ones. Of a margin without keys, the total,
    the residual is the total itself.

    Claim: let r = rows, g = max_groups, m = `beside`, and R and D the greatest L2 norm and distance in Phi with zero.
    A row in cell a adds phi times a column c_a of the matrix. |c_a|^2 = p = prod n (n - 1), and c_a . c_b is p, or the
    product with some factors n (n - 1) replaced by -n: never below -p / (least n - 1).
    - Add/remove: (g r)^2 R^2 p, since columns of different cells can point in the same direction.
    - Replace: |u c_a - v c_b|^2 is linear in c_a . c_b, so it is greatest at an end: (g r)^2 p max(D^2,
      2 R^2 n / (n - 1)), for the least n.
    - The matrix stretches by prod n at most. A unit has g r rows in the margin, of which g' r in one cell, where
      g' = min(g, m). So also prod n^2 r^2 g g' R^2; for replace twice that, or four times if phi has negative
      coordinates. The smaller of the two bounds holds.

    Example:
        >>> residual_move([(1,)], Margin((0,), (4, 12)), adjacency="add/remove", rows=3)
        L2Move(squared=108)
        >>> residual_move([(1,)], Margin((0,), (4, 12)), adjacency="replace")
        L2Move(squared=32)

    Reference: Xiao, He, Zhang, Kifer (2023), an optimal and scalable matrix mechanism (ResidualPlanner).
    """
    vectors = [tuple(phi) for phi in phis]
    sizes = [margin.sizes[key] for key in margin.keys]
    reach = min(max_groups, prod(margin.sizes))
    one = l2_move(vectors, adjacency=Adjacency.ADD_REMOVE).squared
    fine = prod(n * n for n in sizes) * rows * rows * reach * min(reach, margin.beside)
    if Adjacency(adjacency) is Adjacency.ADD_REMOVE:
        return L2Move(min((reach * rows) ** 2 * _norm(sizes) * one, fine * one))
    apart = l2_move(vectors, adjacency=adjacency).squared
    if not sizes:
        return L2Move((reach * rows) ** 2 * apart)
    least = min(sizes)
    both = max(_norm(sizes) * apart, 2 * one * _norm(sizes) // (least - 1) * least)
    return L2Move(min((reach * rows) ** 2 * both, fine * l2_move(vectors, adjacency=adjacency, groups=2).squared))


def _norm(sizes: Sequence[int]) -> int:
    """The square of the L2 norm of a column."""
    return prod(n * (n - 1) for n in sizes)
