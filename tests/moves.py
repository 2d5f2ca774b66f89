"""Whether a vector that moved kept to a move that was claimed: by its definition, with no rule of the product."""

from __future__ import annotations

from collections.abc import Sequence

from privet.privacy.moves import L2Move, Move


def keeps_to(move: Move, change: Sequence[int]) -> bool:
    """Whether the coordinates that moved can be divided into so many blocks, each moved by no more than claimed."""
    if isinstance(move, L2Move):
        return sum(part * part for part in change) <= move.squared
    return _packs(sorted((abs(part) for part in change if part), reverse=True), [move.l1] * move.blocks)


def _packs(sizes: list[int], room: list[int]) -> bool:
    """Whether these sizes fit into bins with this room: each is tried in every bin that is different."""
    if not sizes:
        return True
    if sum(sizes) > sum(room):
        return False
    first, rest = sizes[0], sizes[1:]
    for left in sorted(set(room)):  # the tightest bin first
        if first <= left:
            fewer = list(room)
            fewer[fewer.index(left)] = left - first
            if _packs(rest, fewer):
                return True
    return False
