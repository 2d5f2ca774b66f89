"""The sum lemma: the L1 sensitivity of any statistic that is a sum of integer vectors over rows.

Each row contributes phi(row), from a finite set Phi of integer vectors; the statistic is the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from numbers import Integral

from privet.distances import Adjacency
from privet.errors import DataError
from privet.exact import whole

Vector = Sequence[int]


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
    """The greatest L1 distance between two rows of Phi, the missing row (zero) among them.

    Claim: max |u - v|_1 over u, v in Phi with zero. A unit with at most k rows, replaced, moves the sum by at most k
    times that: pad the shorter side with zeros and pair the rows. It does so with k rows at u and k at v. With two
    groups (blocks of coordinates) or more it is 2 R: u in one block, v in another.

    Zero may be left out (`same_rows=True`) only where every neighbour keeps the same rows: `each_row`, no
    filter, no missing values, no undeclared key.

    Example:
        >>> diameter([[5], [9]]), diameter([[5], [9]], same_rows=True)
        (9, 4)
    """
    rows = _vectors(phis)
    points = set(rows) if same_rows else {*rows, (0,) * len(rows[0])}
    if all(sum(map(bool, u)) <= 1 for u in points):
        return _diameter_on_axes(points)
    return max((sum(abs(a - b) for a, b in zip(u, v, strict=True)) for u, v in combinations(points, 2)), default=0)


def _diameter_on_axes(points: set[tuple[int, ...]]) -> int:
    """The same for vectors with one coordinate at most: two on one axis are |a - b| apart, on two axes |a| + |b|."""
    ends: dict[int, list[int]] = {}
    for u in points:
        axis = next((i for i, part in enumerate(u) if part), -1)
        ends.setdefault(axis, []).append(u[axis] if axis >= 0 else 0)
    zero = [0] if -1 in ends else []
    spread = max(max([*values, *zero]) - min([*values, *zero]) for values in ends.values())
    reach = sorted((max(map(abs, values)) for axis, values in ends.items() if axis >= 0), reverse=True)
    return max(spread, sum(reach[:2]) if len(reach) > 1 else 0)


def of_sum(
    phis: Iterable[Vector],
    *,
    adjacency: Adjacency | str,
    rows: int = 1,
    groups: int = 1,
    same_rows: bool = False,
) -> int:
    """The L1 sensitivity of the sum of phi over rows, for a unit with at most `rows` rows.

    Claim: rows * radius for add/remove, rows * diameter for replace; with two or more groups, each with a block of
    coordinates of its own, rows * 2 * radius for replace. `phis` may be the corners of any convex set that holds Phi:
    norms and distances are convex, so that they are greatest at corners.

    Example:
        >>> bins = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
        >>> of_sum(bins, adjacency="add/remove", rows=3), of_sum(bins, adjacency="replace", rows=3)
        (3, 6)
    """
    k = whole(rows, name="rows", example="rows=3")
    if Adjacency(adjacency) is Adjacency.ADD_REMOVE:
        return k * radius(phis)
    if whole(groups, name="groups", example="groups=2") > 1:
        return k * 2 * radius(phis)
    return k * diameter(phis, same_rows=same_rows)


def _vectors(phis: Iterable[Vector]) -> list[tuple[int, ...]]:
    rows = [tuple(phi) for phi in phis]
    if not rows:
        raise DataError("phis is empty: give every vector that a row can contribute, for example: [(1, 0), (0, 1)]")
    if len({len(row) for row in rows}) > 1:
        raise DataError("the vectors in phis must have the same length, for example: [(1, 0), (0, 1)]")
    if not all(isinstance(part, Integral) for row in rows for part in row):
        raise DataError("the vectors in phis must be integers, for example: [(1, 0), (0, 1)]")
    return [tuple(int(part) for part in row) for row in rows]
