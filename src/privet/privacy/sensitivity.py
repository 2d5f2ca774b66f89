"""The sum lemma: how far one unit moves a statistic that is a sum of integer vectors over rows, in L1 and in L2.

Each row contributes phi(row), from a finite set Phi of integer vectors; the statistic is the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from numbers import Integral

from privet.errors import DataError, write
from privet.exact import whole
from privet.privacy.adjacency import Adjacency
from privet.privacy.moves import L1Move, L2Move

Vector = Sequence[int]

_EXAMPLE = write("phis=[(1, 0), (0, 1)]")


def radius(phis: Iterable[Vector]) -> int:
    """The greatest L1 norm in Phi.

    Claim: R = max |u|_1 over u in Phi. A unit with at most k rows, added or removed, moves the sum by at most k R,
    and does so with k rows at the greatest u.

    Example:
        >>> radius([(v, 10 - v) for v in range(11)])
        10
    """
    return max(sum(map(abs, u)) for u in _vectors(phis))


def diameter(phis: Iterable[Vector], *, same_rows: bool = False) -> int:
    """The greatest L1 distance between two rows of Phi, including the missing row (zero).

    Claim: max |u - v|_1 over u, v in Phi with zero. A unit with at most k rows, replaced, moves the sum by at most k
    times that: pad the shorter side with zeros and pair the rows. It does so with k rows at u and k at v. With two
    groups (blocks of coordinates) or more it is 2 R: u in one block, v in another.

    `same_rows=True` excludes zero, and is valid only if every neighbour has the same number of rows: `each_row`, no
    filter, no missing values, no undeclared key.

    Example:
        >>> diameter([[5], [9]]), diameter([[5], [9]], same_rows=True)
        (9, 4)
    """
    return _diameter(_vectors(phis), abs, same_rows=same_rows)


def _diameter(rows: list[tuple[int, ...]], size: Callable[[int], int], *, same_rows: bool) -> int:
    """The greatest sum of the sizes of u_i - v_i: with `abs` the diameter in L1, with `_square` the square of L2's."""
    points = set(rows) if same_rows else {*rows, (0,) * len(rows[0])}
    if all(sum(map(bool, u)) <= 1 for u in points):
        return _diameter_on_axes(points, size)
    pairs = combinations(points, 2)
    return max((sum(size(a - b) for a, b in zip(u, v, strict=True)) for u, v in pairs), default=0)


def _diameter_on_axes(points: set[tuple[int, ...]], size: Callable[[int], int]) -> int:
    """The same for vectors with one coordinate at most: size(a - b) on one axis, size(a) + size(b) on two."""
    ends: dict[int, list[int]] = {}
    for u in points:
        axis = next((i for i, part in enumerate(u) if part), -1)
        ends.setdefault(axis, []).append(u[axis] if axis >= 0 else 0)
    zero = [0] if -1 in ends else []
    spread = max(max([*values, *zero]) - min([*values, *zero]) for values in ends.values())
    reach = sorted((max(map(abs, values)) for axis, values in ends.items() if axis >= 0), reverse=True)
    return max(size(spread), sum(map(size, reach[:2])) if len(reach) > 1 else 0)


def l1_move(
    phis: Iterable[Vector],
    *,
    adjacency: Adjacency | str,
    rows: int = 1,
    max_groups: int = 1,
    groups: int = 1,
    same_rows: bool = False,
) -> L1Move:
    """How far one unit moves the sum of phi over rows, in L1.

    The unit has at most `rows` rows; with `max_groups` g, at most `rows` in each of g groups. The answer has `groups`
    groups, each with its own coordinates. `phis` may be the corners of any convex set that contains Phi: norms and
    distances are convex, so they are greatest at corners.

    Claim: let r = rows, R the radius and D the diameter of Phi.
    - Add/remove: g blocks of r R, one for each group that the unit is in. (Without a cap on groups the whole vector is
      one block: r rows can be in one group.)
    - Replace, where D = 2 R or there are several groups, and Phi has no negative coordinate: 2 g blocks of r R. Of each
      group that the unit was in, take the coordinates that fall: they fall by at most what its rows had added, r R. Of
      each group that it is in afterwards, take those that rise.
    - Replace with several groups and coordinates of both signs: g blocks of 2 r R. Pair each group that the unit was in
      with one that it is in afterwards, a group in both with itself: a pair moves by at most r R + r R.
    - Replace in one group otherwise: one block of r D.

    Example:
        >>> bins = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
        >>> l1_move(bins, adjacency="add/remove", rows=3), l1_move(bins, adjacency="replace", rows=3)
        (L1Move(l1=3, blocks=1), L1Move(l1=3, blocks=2))
    """
    r, g, several = _caps(rows, max_groups, groups)
    vectors = _vectors(phis)
    most = radius(vectors)
    if Adjacency(adjacency) is Adjacency.ADD_REMOVE:
        return L1Move(r * most, blocks=g)
    wide = 2 * most if several else diameter(vectors, same_rows=same_rows)
    if wide == 2 * most and _no_negative(vectors):
        return L1Move(r * most, blocks=2 * g)
    return L1Move(r * wide, blocks=g)


def l2_move(
    phis: Iterable[Vector],
    *,
    adjacency: Adjacency | str,
    rows: int = 1,
    max_groups: int = 1,
    groups: int = 1,
    same_rows: bool = False,
) -> L2Move:
    """How far one unit moves the sum of phi over rows, in L2; the arguments are those of `l1_move`.

    Claim: let R be the greatest L2 norm in Phi. Different groups are different coordinates, so squares add up.
    - Add/remove: g (r R)^2.
    - Replace, in one group: (r D)^2, with the L2 diameter D.
    - Replace with several groups: 2 g (r R)^2 without negative coordinates, since |u - v|^2 <= |u|^2 + |v|^2 then;
      else g (2 r R)^2, by the pairs of `l1_move`: |u - v|^2 <= (|u| + |v|)^2.

    Example:
        >>> l2_move([(0, 5), (5, 0)], adjacency="replace", rows=3)
        L2Move(squared=450)
        >>> l2_move([(3, 4)], adjacency="add/remove", max_groups=2, groups=10)
        L2Move(squared=50)
    """
    r, g, several = _caps(rows, max_groups, groups)
    vectors = _vectors(phis)
    most = max(sum(map(_square, u)) for u in vectors)
    if Adjacency(adjacency) is Adjacency.ADD_REMOVE:
        return L2Move(g * r * r * most)
    if several:
        return L2Move((2 if _no_negative(vectors) else 4) * g * r * r * most)
    return L2Move(r * r * _diameter(vectors, _square, same_rows=same_rows))


def _caps(rows: int, max_groups: int, groups: int) -> tuple[int, int, bool]:
    """Rows per group, groups that a unit can be in, and whether there are several groups."""
    count = whole(groups, name="groups", example="groups=2")
    most = whole(max_groups, name="max_groups", example="max_groups=2")
    return whole(rows, name="rows", example="rows=3"), min(most, count), count > 1


def _square(x: int) -> int:
    return x * x


def _no_negative(vectors: Iterable[Vector]) -> bool:
    return all(part >= 0 for u in vectors for part in u)


def _vectors(phis: Iterable[Vector]) -> list[tuple[int, ...]]:
    rows = [tuple(phi) for phi in phis]
    if not rows:
        raise DataError("phis is empty: list every vector that a row can contribute", remedy=_EXAMPLE)
    if len({len(row) for row in rows}) > 1:
        raise DataError("the vectors in phis must have the same length", remedy=_EXAMPLE)
    if all(type(part) is int for row in rows for part in row):
        return rows
    if not all(isinstance(part, Integral) for row in rows for part in row):
        raise DataError("the vectors in phis must be integers", remedy=_EXAMPLE)
    return [tuple(int(part) for part in row) for row in rows]
