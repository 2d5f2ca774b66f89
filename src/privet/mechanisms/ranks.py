"""Choices by rank: quantiles of codes 0..width, by the exponential mechanism on the lattice.

A choice looks at a node: the rows of ranks start..end - 1 in sorted order, whose codes lie in low..high. It aims at the
rank t = q n + shift of the n rows of the node. A code c with L rows below it and e rows at it has the distance
d(c) = max(0, L - t, t - (L + e)), and the weight e^(-rate d(c)). The rank mechanism is this choice at the root; several
quantiles are chosen by splitting the rows at the chosen rank, and going on in both parts.

Claim: one row that is added or removed moves every d(c) by at most max(q, 1 - q): L - t moves by 1 - q or by -q, and so
does L + e - t. So k rows move it by D = k max(q, 1 - q), and rate = epsilon / (2 D) has bounded range epsilon. If at
most k rows are replaced by at most k others, it moves by at most k at the root, since k q + k (1 - q) = k.

Claim: where the rows are split, candidates are pairs (c, j), j = 0..2^16 - 1, which split at the rank
L + floor(e j / 2^16): the e rows of this node that equal c are divided. Their distance is that rank's from t, and
moves by as much. A row more or less changes the rows of exactly one of the two parts, by one. So the changes of all
nodes of a level add up to at most k rows (2 k for replace), the bounded ranges add up to epsilon, and a level costs
epsilon. Ties that went to both parts would cost up to twice as much.

Reference: Smith 2011 (one quantile); Kaplan, Schnapp, Stemmer 2022 (splitting).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privet.exact import Exact
from privet.noise.choice import WeightedChoice, uniform
from privet.noise.entropy import Bits
from privet.noise.inversion import UniformReal
from privet.noise.uniform import uniform_below
from privet.privacy.adjacency import Adjacency

TIES = 1 << 16
"""The number of ways to divide rows that are equal."""

_LN2 = Exact(6932, 10_000)
"""More than ln 2."""

Codes = NDArray[np.int64]


def looked_into(codes: int, rate: Exact, *, split: bool) -> Exact:
    """How many ranks farther than the nearest a choice among so many codes looks: what is beyond weighs below 2^-64."""
    return ((codes * (TIES if split else 1)).bit_length() + 64) * _LN2 / rate


def distance_moved(q: Exact, *, rows: int, adjacency: Adjacency, alone: bool) -> Exact:
    """How far a unit of so many rows moves the distance of a candidate; `alone`: the node has all rows of the table.

    Example:
        >>> distance_moved(Exact(1, 2), rows=3, adjacency=Adjacency.ADD_REMOVE, alone=True)
        Fraction(3, 2)
        >>> distance_moved(Exact(9, 10), rows=1, adjacency=Adjacency.REPLACE, alone=False)
        Fraction(9, 5)
    """
    once = rows * max(q, 1 - q)
    if adjacency is Adjacency.ADD_REMOVE:
        return once
    return Exact(rows) if alone else 2 * once


@dataclass(frozen=True, slots=True)
class CodeCounts:
    """How many rows have which code: cells first..last in order, which cover 0..width, each with its number of rows.

    A cell of several codes with rows is `coarse`: which of its codes they have is not known.
    """

    first: Codes
    last: Codes
    rows: Codes
    upto: Codes
    """The number of rows before each cell, and of all rows."""

    @classmethod
    def of(cls, buckets: Mapping[int, int], *, shift: int, width: int, known: Mapping[int, int]) -> CodeCounts:
        """From rows by bucket (code >> shift), of which some were looked into: `known` has rows by code.

        Example:
            >>> counts = CodeCounts.of({0: 2, 3: 1}, shift=2, width=15, known={13: 1})
            >>> counts.first.tolist(), counts.last.tolist(), counts.rows.tolist()
            ([0, 4, 13, 14], [3, 12, 13, 15], [2, 0, 1, 0])
        """
        seen = {code >> shift for code in known} if shift else set()
        coarse = {bucket: rows for bucket, rows in buckets.items() if bucket not in seen}
        return cls.of_cells({shift: coarse, 0: known} if shift else {0: buckets}, width=width)

    @classmethod
    def of_cells(cls, cells: Mapping[int, Mapping[int, int]], *, width: int) -> CodeCounts:
        """From rows by bucket, for each shift (code >> shift): no two buckets have a code in common."""
        firsts, lasts, many = [], [], []
        for shift, buckets in cells.items():
            start = np.fromiter(buckets.keys(), np.int64, len(buckets)) << shift
            firsts.append(start)
            lasts.append(np.minimum(start + ((1 << shift) - 1), width))
            many.append(np.fromiter(buckets.values(), np.int64, len(buckets)))
        first, last, rows = map(np.concatenate, (firsts, lasts, many))
        order = np.argsort(first)
        first, last, rows = first[order], last[order], rows[order]
        starts = np.empty(2 * len(first) + 1, dtype=np.int64)  # a gap before each cell with rows, and one at the end
        ends, held = np.empty_like(starts), np.zeros_like(starts)
        starts[1::2], ends[1::2], held[1::2] = first, last, rows
        starts[0::2] = np.concatenate([[0], last + 1])
        ends[0::2] = np.concatenate([first - 1, [width]])
        some = starts <= ends
        starts, ends, held = starts[some], ends[some], held[some]
        return cls(starts, ends, held, np.concatenate([[0], np.cumsum(held)]))

    @property
    def total(self) -> int:
        """The number of rows."""
        return int(self.upto[-1])

    def below(self, code: int) -> int:
        """The number of rows with a smaller code; the cell of that code must not be coarse."""
        return int(self.upto[int(np.searchsorted(self.last, code))])

    def is_coarse(self, code: int) -> bool:
        """Whether the rows below a code are not known, because others of its cell may have them."""
        cell = int(np.searchsorted(self.last, code))
        return cell < len(self.last) and bool(self.rows[cell]) and int(self.first[cell]) < code

    def coarse_between(self, start: float, end: float) -> list[int]:
        """The first codes of the coarse cells that have rows of ranks from `start` to `end`."""
        at = max(int(np.searchsorted(self.upto, start, "right")) - 1, 0)
        to = min(int(np.searchsorted(self.upto, end, "left")), len(self.rows))
        coarse = (self.first[at:to] < self.last[at:to]) & (self.rows[at:to] > 0)
        found: list[int] = self.first[at:to][coarse].tolist()
        return found


@dataclass(frozen=True, slots=True)
class Node:
    """The rows of ranks start..end - 1, whose codes lie in low..high."""

    low: int
    high: int
    start: int
    end: int


@dataclass(slots=True)
class RankChoice:
    """One choice at a node, which may have to look into some coarse cells first.

    Claim: candidates are drawn with probabilities proportional to e^(-rate d), exactly. Cells far away are not looked
    into: their weight is bounded, and below 2^-64 of all. If the random bits do not decide without it (`draw` is None),
    all cells are needed. Which cells are looked into is never released.
    """

    node: Node
    q: Exact
    shift: int
    rate: Exact
    """Per rank."""
    split: bool
    everything: bool = False
    _real: UniformReal | None = field(default=None, repr=False)

    def needs(self, counts: CodeCounts) -> list[int]:
        """The first codes of the coarse cells to look into before `draw`."""
        cells = self._cells(counts)
        wanted = cells.coarse if self.everything else cells.coarse & cells.near
        found: list[int] = counts.first[cells.at : cells.to][wanted].tolist()
        return found

    def draw(self, counts: CodeCounts, bits: Bits) -> tuple[int, int] | None:
        """The chosen code, and the rank at which it splits; None if every cell must be looked into."""
        runs = self.runs(counts)
        if self._real is None:
            self._real = uniform(bits)
        index = runs.choice().at(self._real, rest=runs.rest)
        if index is None:
            self.everything = True
            return None
        code = int(runs.first[index]) + uniform_below(int(runs.codes[index]), bits)
        return code, int(runs.rank[index])

    def runs(self, counts: CodeCounts) -> Runs:
        """Candidates with the same distance and the same effect, together; near ones first."""
        cells, times = self._cells(counts), TIES if self.split else 1
        parts = [self._listed(cells, cells.near)]
        rest = None
        if not cells.near.all():
            far = ~cells.near
            if self.everything:
                parts.append(self._listed(cells, far))
            else:
                members = times * int((cells.last[far] - cells.first[far] + 1).sum())
                rest = members, int(cells.least[far].min())
        first, codes, members_, distance, rank = (np.concatenate(each) for each in zip(*parts, strict=True))
        nearest = int(distance.min())
        return Runs(
            first, codes, members_, distance - nearest, rank + self.node.start, self.rate / self.q.denominator,
            None if rest is None else (rest[0], rest[1] - nearest),
        )  # fmt: skip

    def _cells(self, counts: CodeCounts) -> _Cells:
        node, b = self.node, self.q.denominator
        at, to = int(np.searchsorted(counts.last, node.low)), int(np.searchsorted(counts.first, node.high, "right"))
        rows = node.end - node.start
        below = np.clip(counts.upto[at:to] - node.start, 0, rows)
        upto = np.clip(counts.upto[at + 1 : to + 1] - node.start, 0, rows)
        target = self.q.numerator * rows + b * self.shift
        least = np.maximum(np.maximum(b * below - target, target - b * upto), 0)
        coarse = (counts.first[at:to] < counts.last[at:to]) & (below < upto)
        best = max(0, -target, target - b * rows)
        if self.split:  # every rank is the split of some candidate, or one nearby is
            best += b * (1 + rows // TIES)
        reach = int(b * looked_into(node.high - node.low + 1, self.rate, split=self.split)) + 1
        first, last = np.maximum(counts.first[at:to], node.low), np.minimum(counts.last[at:to], node.high)
        return _Cells(at, to, first, last, below, upto, least, coarse, least <= best + reach, target)

    def _listed(self, cells: _Cells, some: NDArray[np.bool_]) -> tuple[Codes, ...]:
        """First code, number of codes, members, distance and split of the runs of some cells, none of them coarse."""
        first, codes = cells.first[some], cells.last[some] - cells.first[some] + 1
        below, ties = cells.below[some], cells.upto[some] - cells.below[some]
        if not self.split:
            return first, codes, codes, cells.least[some], below
        b, one = self.q.denominator, ties <= 1
        parts = [(first[one], codes[one], codes[one] * TIES, below[one])]
        parts += [
            _divided(code, rank, tied)
            for code, rank, tied in zip(first[~one].tolist(), below[~one].tolist(), ties[~one].tolist(), strict=True)
        ]
        first, codes, members, rank = (np.concatenate(each) for each in zip(*parts, strict=True))
        return first, codes, members, np.abs(b * rank - cells.target), rank


def _divided(code: int, rank: int, ties: int) -> tuple[Codes, Codes, Codes, Codes]:
    """The candidates (code, j), by the rank at which they split."""
    if ties >= TIES:
        splits = rank + (np.arange(TIES, dtype=object) * ties // TIES).astype(np.int64)
        members = np.ones(TIES, dtype=np.int64)
    else:
        splits = rank + np.arange(ties, dtype=np.int64)
        members = np.diff(-(-np.arange(ties + 1, dtype=np.int64) * TIES // ties))
    same = np.full(len(splits), code, dtype=np.int64)
    return same, np.ones_like(same), members, splits


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of a node, clipped to it, with their ranks in it and the least distance of a code of each."""

    at: int
    to: int
    first: Codes
    last: Codes
    below: Codes
    upto: Codes
    least: Codes
    coarse: NDArray[np.bool_]
    near: NDArray[np.bool_]
    target: int


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of candidates: their first code, codes and members, distance (times q's denominator), and split."""

    first: Codes
    codes: Codes
    members: Codes
    distance: Codes
    rank: Codes
    rate: Exact
    rest: tuple[int, int] | None
    """At most so many further candidates, at least so far away."""

    def choice(self) -> WeightedChoice:
        """The choice among the runs."""
        return WeightedChoice(self.distance, self.members, rate=self.rate)
