"""The tiers of a tree of groups, and how far one unit moves them: towns below regions below the total.

A tier has a node for each of its groups, and each node lies in one of the tier above. Its *residual* is what it says
beyond the tier above: for a parent v with n children, the children times n I - J, and times a weight of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isqrt

from privet.privacy.adjacency import Adjacency
from privet.privacy.moves import L1Move, L2Move
from privet.privacy.sensitivity import Vector, l1_move, l2_move

FINE = 64
"""The weight of the largest parent of a tier, where parents have different numbers of children."""


@dataclass(frozen=True, slots=True)
class Tier:
    """What is measured of one tier.

    `children` are the numbers of children of each parent, in order, for a residual; a parent with one child says
    nothing new of it, and has the weight 0. Of the nodes themselves there is no residual: then both are empty.
    """

    nodes: int
    leaves: int
    """The leaves of the whole tree."""
    most: int
    """The most leaves in one node."""
    children: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()

    @property
    def measured(self) -> int:
        """How many nodes are measured."""
        if not self.children:
            return self.nodes
        return sum(n for n, weight in zip(self.children, self.weights, strict=True) if weight)


def balanced(children: Iterable[int], adjacency: Adjacency | str) -> tuple[int, ...]:
    """Weights for which a unit moves the residual of each parent about equally far, so that none has needless noise.

    Claim: any weights are valid; `residual_move` reads them. With rows added or removed, a row moves the block of a
    parent by w sqrt(n (n - 1)), and a row that is replaced by w n sqrt(2). All weights are 1 if all n are the same.

    Example:
        >>> balanced([2, 8, 1], "add/remove"), balanced([2, 8, 1], "replace"), balanced([3, 3], "replace")
        ((338, 64, 0), (256, 64, 0), (1, 1))
    """
    every = [*children]
    replaced = Adjacency(adjacency) is Adjacency.REPLACE
    squares = [n * n if replaced else n * (n - 1) for n in every]
    largest = max((square for square, n in zip(squares, every, strict=True) if n > 1), default=1)
    if len({n for n in every if n > 1}) < 2:
        return tuple(int(n > 1) for n in every)
    return tuple(isqrt(FINE**2 * largest // square) if n > 1 else 0 for square, n in zip(squares, every, strict=True))


def tier_move(
    phis: Iterable[Vector], tier: Tier, *, adjacency: Adjacency | str, rows: int = 1, max_groups: int = 1
) -> L1Move:
    """How far one unit moves the nodes of a tier, in L1; at most `rows` rows of it are in each of `max_groups` leaves.

    Claim: that of `l1_move`. All leaves of a unit can be in one node, unless each node is a leaf: there it has rows *
    max_groups rows.

    Example:
        >>> tier_move([(1,)], Tier(2, 5, 3), adjacency="add/remove", rows=3, max_groups=2)
        L1Move(l1=6, blocks=1)
    """
    if tier.most > 1:
        rows, max_groups = rows * min(max_groups, tier.leaves), 1
    return l1_move(phis, adjacency=adjacency, rows=rows, max_groups=max_groups, groups=tier.nodes)


def residual_move(
    phis: Iterable[Vector], tier: Tier, *, adjacency: Adjacency | str, rows: int = 1, max_groups: int = 1
) -> L2Move:
    """How far one unit moves the residual of a tier, in L2; or its nodes, if it has no residual.

    Claim: let r = rows, g = max_groups, m the most leaves in one node, h = min(g, m), and R and D the greatest L2 norm
    and distance in Phi with zero. Let Q = max w^2 n (n - 1) and N = max w^2 n^2, over all parents with n > 1 children
    and weight w. Of the nodes themselves, Q = N = 1.
    - A unit adds y to the nodes, where |y|^2 <= R^2 r^2 g h, since at most h of its g leaves are in one node. In the
      block of a parent, |(n I - J) y|^2 = n^2 sum |y_u|^2 - n |sum y_u|^2. Without negative coordinates the last sum is
      at least sum |y_u|^2. So add/remove: Q R^2 r^2 g h, over however many parents the rows are. It is reached by g h =
      g^2 or g h = g if the largest blocks have enough leaves.
    - What goes and what comes, without negative coordinates: |y - z|^2 <= |y|^2 + |z|^2, and no block stretches by
      more than w n. So replace: 2 N R^2 r^2 g h, which a move between two children of one parent reaches. A move to
      another parent is shorter: Q + Q is at most 2 N.
    - With negative coordinates, a row in node u adds phi times a column c, |c|^2 = w^2 n (n - 1), where c . c' is -w^2
      n for another child of the parent, and 0 elsewhere. So add/remove: the least of (g r)^2 Q R^2 and N R^2 r^2 g h.
      Replace: pairs of a row that goes and one that comes are at most max(D^2 Q, 2 N R^2) apart; and |y - z|^2 is at
      most 4 R^2 r^2 g h, so the least of (g r)^2 max(D^2 Q, 2 N R^2) and 4 N R^2 r^2 g h.
    - In the one node of a total, replace is (g r)^2 D^2.

    Example:
        >>> towns = Tier(nodes=5, leaves=5, most=1, children=(2, 3), weights=(1, 1))
        >>> residual_move([(1,)], towns, adjacency="add/remove", rows=3)
        L2Move(squared=54)
        >>> residual_move([(1,)], towns, adjacency="replace")
        L2Move(squared=18)
    """
    vectors = [tuple(phi) for phi in phis]
    one = l2_move(vectors, adjacency=Adjacency.ADD_REMOVE).squared
    blocks = [(w * w * n * (n - 1), w * w * n * n) for n, w in zip(tier.children, tier.weights, strict=True) if w]
    column, stretch = (max(column) for column in zip(*blocks, strict=True)) if tier.children else (1, 1)
    g = min(max_groups, tier.leaves)
    together, near = (g * rows) ** 2, rows * rows * g * min(g, tier.most)
    positive = all(part >= 0 for vector in vectors for part in vector)
    if Adjacency(adjacency) is Adjacency.ADD_REMOVE:
        return L2Move(column * one * near if positive else min(together * column * one, stretch * one * near))
    apart = l2_move(vectors, adjacency=adjacency).squared
    if tier.nodes == 1:
        return L2Move(together * apart)
    if positive:
        return L2Move(2 * stretch * one * near)
    return L2Move(min(together * max(apart * column, 2 * stretch * one), 4 * stretch * one * near))
