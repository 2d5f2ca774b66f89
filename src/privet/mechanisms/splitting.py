"""Several choices by rank in one table: which rows each looks at, at which rank it aims, and what it costs.

The choices are made level by level. Those of one level look at different rows, so that together they cost what one
costs; levels add up. A choice between two chosen codes looks at the rows between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privet.exact import Exact
from privet.mechanisms.ranks import Node, RankChoice, distance_moved
from privet.privacy.adjacency import Adjacency

Chosen = tuple[int, int]
"""A chosen code, and the rank at which it splits the rows."""


@dataclass(frozen=True, slots=True)
class Step:
    """One choice: its place among the chosen codes, and the places of those to its left and right, None for an end.

    It aims at the rank q n + side * reach of the n rows between them; `side` is -1, 0 or 1.
    """

    place: int
    left: int | None
    right: int | None
    q: Exact
    side: int
    split: bool
    """Whether later choices look at the rows on one side of it."""
    level: int

    def moved(self, *, rows: int, adjacency: Adjacency, groups: int) -> Exact:
        """How far a unit of so many rows moves the distance of a candidate."""
        alone = groups == 1 and self.left is None and self.right is None
        return distance_moved(self.q, rows=rows, adjacency=adjacency, alone=alone)

    def choice(self, chosen: Sequence[Chosen | None], *, width: int, total: int, reach: int, rate: Exact) -> RankChoice:
        """The choice among 0..width, after those that were made before; there are `total` rows."""
        low, start = (0, 0) if self.left is None else _made(chosen[self.left])
        high, end = (width, total) if self.right is None else _made(chosen[self.right])
        return RankChoice(Node(low, high, start, end), self.q, self.side * reach, rate, self.split)


def _made(chosen: Chosen | None) -> Chosen:
    assert chosen is not None
    return chosen


def steps_of(ranks: Sequence[Exact], *, sides: bool, edges: Sequence[bool] = ()) -> tuple[Step, ...]:
    """The choices of these quantiles, in the order of levels; with `sides`, of a code below and one above each, too.

    An edge is a code near the largest value (True) or near the smallest (False), some ranks inside. The places of
    quantiles come first, then those of the codes below, then those above, then those of edges. Edges are chosen last,
    from the rows beyond the outermost quantiles; without quantiles, there is one edge at most.

    Example:
        >>> steps = steps_of([Exact(1, 4), Exact(1, 2), Exact(3, 4)], sides=False)
        >>> [(step.place, step.left, step.right, str(step.q), step.level) for step in steps]
        [(1, None, None, '1/2', 0), (0, None, 1, '1/2', 1), (2, 1, None, '1/2', 1)]
    """
    many = len(ranks)
    steps: list[Step] = []

    def between(first: int, end: int, level: int) -> None:
        """The quantiles first..end - 1, of the rows between their neighbours."""
        if first == end:
            return
        middle = (first + end) // 2
        low = ranks[first - 1] if first else Exact(0)
        high = ranks[end] if end < many else Exact(1)
        left, right = first - 1 if first else None, end if end < many else None
        q = (ranks[middle] - low) / (high - low)
        steps.append(Step(middle, left, right, q, 0, sides or bool(edges) or end - first > 1, level))
        between(first, middle, level + 1)
        between(middle + 1, end, level + 1)

    between(0, many, 0)
    if sides and many:
        next_level = 1 + max(step.level for step in steps)
        for i in range(many):
            before, after = i - 1 if i else None, i + 1 if i + 1 < many else None
            steps.append(Step(many + i, before, i, Exact(1), -1, False, next_level))
            # the rows between two quantiles are looked at twice: from the left one, and from the right one
            steps.append(Step(2 * many + i, i, after, Exact(0), 1, False, next_level + (many > 1)))
    last = 1 + max((step.level for step in steps), default=-1)
    for largest in edges:
        before, after = (many - 1, None) if largest else (None, 0)
        gap = (before, after) if many else (None, None)
        steps.append(Step(len(steps), *gap, Exact(int(largest)), -1 if largest else 1, False, last))
    return tuple(sorted(steps, key=lambda step: step.level))


def levels(steps: Sequence[Step]) -> int:
    """The number of levels."""
    return 1 + max(step.level for step in steps)
