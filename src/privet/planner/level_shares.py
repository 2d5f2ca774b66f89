"""Which margins are measured with noise in L1, and the share of epsilon of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from privet.accuracy.sums import Floats
from privet.exact import Exact
from privet.planner.levels import Levels
from privet.system.remembered import remembered

_MANY = 16  # margins, from which equal shares of all are not improved: the search would take seconds
_STEPS = 64
"""Shares are multiples of 1 / (this times the number of margins)."""


@remembered(64)
def margin_shares(levels: Levels, moves: tuple[int, ...]) -> list[Exact]:
    """The share of epsilon for each margin; 0 for one that is better made of finer ones.

    Claim: the shares add up to 1, and no margin has a larger variance than if each were measured by itself with an
    equal share. Among such shares, a local search makes the mean variance over all margins small: it moves shares from
    one margin to another, in smaller and smaller steps, from equal shares and from the finest margins alone. It uses
    only sums, products and quotients, compared to nine digits: the same shares on every machine.

    Example:
        >>> [str(share) for share in margin_shares(Levels((2, 2), ((0, 1), (0,), (1,), ())), (1, 1, 1, 1))]
        ['1', '0', '0', '0']
    """
    search, whole = _Search(levels, moves), _STEPS * len(levels.margins)
    equal = [_STEPS] * len(levels.margins)
    found = [equal, *(search.improved(start) for start in _starts(levels))]
    best = min(filter(search.allowed, found), key=lambda shares: round(search.mean(shares) / search.mean(equal), 9))
    return [Exact(share, whole) for share in best]


def _starts(levels: Levels) -> Iterator[list[int]]:
    """Where the search begins: equal shares of all margins, or of the finest and those of few keys."""
    count = len(levels.margins)
    if count <= _MANY:
        yield [_STEPS] * count
    finest = [not any({*keys} < {*other} for other in levels.margins) for keys in levels.margins]
    for most in range(-1, len(levels.sizes)):
        some = [is_finest or len(keys) <= most for keys, is_finest in zip(levels.margins, finest, strict=True)]
        each, rest = divmod(_STEPS * count, sum(some))
        yield [each * chosen + rest * (i == some.index(True)) for i, chosen in enumerate(some)]


class _Search:
    """Variances for shares, and the search for better ones."""

    def __init__(self, levels: Levels, moves: Sequence[int]) -> None:
        margins, parts, sizes = levels.margins, levels.parts, levels.sizes
        self.known = np.zeros((len(parts), len(margins)))
        """What a margin with share 1 knows of a part: the inverse of its variance."""
        self.needed = np.zeros((len(margins), len(parts)))
        """The variance of a cell of a margin, for a part of variance 1."""
        for i, part in enumerate(parts):
            centred = prod(((sizes[key] - 1) / sizes[key] for key in part), start=1.0)
            for j, (keys, move) in enumerate(zip(margins, moves, strict=True)):
                if {*part} <= {*keys}:
                    ratio = levels.size(part) / levels.size(keys)
                    self.known[i, j], self.needed[j, i] = ratio / move**2, centred * ratio**2
        self.equal = np.array([move**2 for move in moves], dtype=np.float64)  # each by itself, with an equal share

    def variances(self, shares: Sequence[int]) -> Floats:
        """The variance of a cell of each margin, relative to equal shares of 1."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.needed @ (1 / (self.known @ (np.array(shares) / _STEPS) ** 2)))

    def mean(self, shares: Sequence[int]) -> float:
        return float(self.variances(shares).mean())

    def allowed(self, shares: Sequence[int]) -> bool:
        """Whether no margin is worse than by itself."""
        return bool((self.variances(shares) <= self.equal * (1 + 1e-9)).all())

    def improved(self, shares: list[int]) -> list[int]:
        """Shares that no step of any size makes better; once they are allowed, they stay so."""
        total = self.needed.sum(axis=0)
        step = len(shares) * _STEPS // 4
        while step:
            now, sources = np.array(shares) / _STEPS, np.flatnonzero(shares)
            some = np.minimum(now[sources], step / _STEPS)  # what can be taken from each
            less = (now[sources] - some) ** 2 - now[sources] ** 2
            more = (now[None, :] + some[:, None]) ** 2 - now[None, :] ** 2
            here = self.known @ now**2
            known = here[:, None, None] + self.known[:, sources, None] * less[None, :, None]
            known = known + self.known[:, None, :] * more[None, :, :]
            with np.errstate(divide="ignore", invalid="ignore"):
                after = np.where(known > 1e-12, total[:, None, None] / known, np.inf).sum(axis=0)
            after[np.arange(len(sources)), sources] = np.inf
            rounded = np.round(after / float((total / here).sum()), 9)
            place, j = (int(at) for at in np.unravel_index(int(np.argmin(rounded)), rounded.shape))
            i, moved = int(sources[place]), list(shares)
            taken = min(shares[i], step)
            moved[i], moved[j] = moved[i] - taken, moved[j] + taken
            if rounded[place, j] < 1 and (self.allowed(moved) or not self.allowed(shares)):
                shares = moved
            else:
                step //= 2
        return shares
