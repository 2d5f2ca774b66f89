"""Choices by rank: exact privacy loss on small tables, far cells that are bounded, and rank errors."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from privet.mechanisms.ranks import TIES, CodeCounts, Node, RankChoice, distance_moved
from privet.mechanisms.splitting import Step, levels, steps_of
from privet.noise.entropy import SYSTEM
from privet.noise.inversion import UniformReal
from privet.privacy.adjacency import Adjacency

HALF, WIDTH = Fraction(1, 2), 2**33
ANCHORS = (0, 1, 2**31, WIDTH)
"""Where rows are. The gaps are so wide that e^-epsilon does not outweigh them: there the loss reaches epsilon."""
SHOWN = (0, 1, 2**30, 2**31, 5 * 2**30, WIDTH)
"""Codes whose probability is compared: all others are like one of these."""

Moved = Callable[[Step], Fraction]
MEDIAN, NINTH = steps_of([HALF], sides=False), steps_of([Fraction(9, 10)], sides=False)
THREE = steps_of([Fraction(i, 4) for i in (1, 2, 3)], sides=False)


def counted(codes: Sequence[int], width: int = WIDTH) -> CodeCounts:
    return CodeCounts.of(Counter(codes), shift=0, width=width, known={})


def law(
    codes: Sequence[int], steps: Sequence[Step], epsilon: Fraction, moved: Moved, reach: int, *, both: bool
) -> dict[tuple[int, ...], float]:
    """The probability of every shown outcome. `both` is a broken twin: equal rows go to both parts."""
    counts, outcomes = counted(codes), Counter[tuple[int, ...]]()
    each = epsilon / levels(steps)

    def go(i: int, chosen: list[tuple[int, int] | None], probability: float) -> None:
        if i == len(steps):
            outcomes[tuple(made[0] for made in chosen if made)] += probability  # type: ignore[assignment]
            return
        step = steps[i]
        choice = step.choice(chosen, width=WIDTH, total=len(codes), reach=reach, rate=each / (2 * moved(step)))
        if both:
            low, high = choice.node.low, choice.node.high
            choice.node = Node(low, high, counts.below(low), counts.below(high + 1))
        choice.everything = True
        runs = choice.runs(counts)
        weights = runs.members * np.exp(-float(runs.rate) * runs.distance)
        for j, share in enumerate(weights / weights.sum()):
            first, many = int(runs.first[j]), int(runs.codes[j])
            for code in SHOWN:
                if first <= code < first + many:
                    made = list(chosen)
                    made[step.place] = code, int(runs.rank[j])
                    go(i + 1, made, probability * float(share) / many)

    go(0, [None] * len(steps), 1.0)
    return dict(outcomes)


def worst(
    steps: Sequence[Step], adjacency: Adjacency, *, rows: int, most: int, moved: Moved | None = None, reach: int = 2,
    both: bool = False,
) -> float:  # fmt: skip
    """The greatest loss between neighbours of at most so many rows, as a multiple of epsilon."""
    epsilon = Fraction(8)

    def claimed(step: Step) -> Fraction:
        return step.moved(rows=rows, adjacency=adjacency, groups=1)

    tables = [t for n in range(most + 1) for t in itertools.combinations_with_replacement(ANCHORS, n)]
    laws = {table: law(table, steps, epsilon, moved or claimed, reach, both=both) for table in tables}
    loss = 0.0
    for one, other in itertools.combinations(tables, 2):
        if len(other) - len(one) > rows:
            continue  # not neighbours, whatever they hold
        gone, new = Counter(one) - Counter(other), Counter(other) - Counter(one)
        if max(gone.total(), new.total()) > rows:
            continue
        if adjacency is Adjacency.ADD_REMOVE and (min(gone.total(), new.total()) or gone.total() + new.total() > rows):
            continue
        for outcome in laws[one].keys() & laws[other].keys():
            loss = max(loss, abs(math.log(laws[one][outcome] / laws[other][outcome])))
    return loss / float(epsilon)


@pytest.mark.parametrize(
    ("steps", "most"),
    [
        (MEDIAN, 4),
        (NINTH, 5),
        (THREE, 3),
        (steps_of([HALF], sides=True), 2),
        (steps_of([Fraction(1, 10), HALF], sides=True), 1),
        (steps_of([], sides=False, edges=[True]), 4),
        (steps_of([], sides=False, edges=[False]), 3),
        (steps_of([HALF], sides=False, edges=[False, True]), 3),
        (steps_of([HALF], sides=True, edges=[True]), 1),
    ],
    ids=["median", "0.9", "three", "sides", "two with sides", "max", "min", "median, min, max", "sides, max"],
)
def test_no_neighbours_lose_more_than_epsilon(steps: tuple[Step, ...], most: int) -> None:
    for adjacency in Adjacency:
        for rows in (1, 2):
            assert worst(steps, adjacency, rows=rows, most=most) <= 1 + 1e-9


def test_the_loss_reaches_epsilon_so_that_less_noise_would_not_do() -> None:
    assert worst(MEDIAN, Adjacency.ADD_REMOVE, rows=1, most=5) > 0.999
    assert worst(THREE, Adjacency.ADD_REMOVE, rows=1, most=4) > 0.999


def test_broken_twins_lose_more() -> None:
    def added(step: Step) -> Fraction:
        """How far a row moves distances if it is added or removed: too little for replace."""
        return distance_moved(step.q, rows=1, adjacency=Adjacency.ADD_REMOVE, alone=True)

    assert worst(MEDIAN, Adjacency.REPLACE, rows=1, most=5, moved=added) > 1.9
    assert worst(THREE, Adjacency.REPLACE, rows=1, most=4, moved=added) > 1.6  # splitting needs twice as much too
    assert worst(THREE, Adjacency.ADD_REMOVE, rows=1, most=4, both=True) > 1.05


def test_scores_move_by_no_more_than_claimed() -> None:
    """Noise off: the distance of every candidate, for random tables and neighbours."""
    rng = random.Random(7)
    for _ in range(100):
        q, k = Fraction(rng.randint(0, 10), 10), rng.randint(1, 3)
        shift, split = rng.choice([0, 0, 3, -3]), rng.random() < 0.5
        one = [rng.randint(0, 9) for _ in range(rng.randint(k, 8))]
        other = one[k:] + [rng.randint(0, 9) for _ in range(rng.randint(0, k))]
        for adjacency, table in ((Adjacency.ADD_REMOVE, one[k:]), (Adjacency.REPLACE, other)):
            a, b = (distances(codes, q, shift, split=split) for codes in (one, table))
            assert np.abs(a - b).max() <= q.denominator * distance_moved(q, rows=k, adjacency=adjacency, alone=True)


def distances(codes: list[int], q: Fraction, shift: int, *, split: bool) -> np.ndarray:
    """The distance of every candidate, computed a second time, from the definition."""
    target, b = q * len(codes) + shift, q.denominator
    found = []
    for c in range(10):
        below, ties = sum(x < c for x in codes), codes.count(c)
        if split:
            found += [abs(below + ties * j // TIES - target) for j in range(0, TIES, 4096)]
        else:
            found.append(max(Fraction(0), below - target, target - below - ties))
    choice = RankChoice(Node(0, 9, 0, len(codes)), q, shift, Fraction(1), split, everything=True)
    runs = choice.runs(counted(codes, 9))
    if not split:
        mine = {
            int(first) + i: int(d)
            for first, many, d in zip(runs.first, runs.codes, runs.distance, strict=True)
            for i in range(int(many))
        }
        least = min(found)
        assert [mine[c] for c in range(10)] == [int(b * (d - least)) for d in found]
    else:
        assert int(runs.members.sum()) == 10 * TIES
    return np.array([int(b * d) for d in found])


def test_far_cells_are_bounded_and_looked_into_when_bits_do_not_decide() -> None:
    rng = np.random.default_rng(3)
    codes = np.clip(rng.normal(2**19, 2**16, 3000).astype(np.int64), 0, 2**20 - 1)
    codes[:500] = 2**19 + 5
    known = Counter(codes.tolist())
    buckets = Counter((codes >> 8).tolist())
    for split in (False, True):
        node = Node(0, 2**20 - 1, 0, len(codes))
        choice = RankChoice(node, Fraction(1, 3), 0, Fraction(2), split)
        coarse = CodeCounts.of(buckets, shift=8, width=2**20 - 1, known={})
        wanted = {first >> 8 for first in choice.needs(coarse)}
        assert 0 < len(wanted) < len(buckets) / 2
        some = CodeCounts.of(
            buckets, shift=8, width=2**20 - 1, known={c: n for c, n in known.items() if c >> 8 in wanted}
        )
        assert not choice.needs(some)
        runs = choice.runs(some)
        full = RankChoice(node, Fraction(1, 3), 0, Fraction(2), split, everything=True).runs(
            counted(codes.tolist(), 2**20 - 1)
        )
        near = len(runs.first)
        for name in ("first", "codes", "distance", "members", "rank"):
            assert (getattr(runs, name) == getattr(full, name)[:near]).all()
        assert runs.rest is not None
        assert int(full.members[near:].sum()) == runs.rest[0]
        assert int(full.distance[near:].min()) >= runs.rest[1]
        # a real just below 1 falls into what was not looked into
        choice._real = UniformReal(SYSTEM, 2**256 - 1, 256)
        assert choice.draw(some, SYSTEM) is None
        assert len(choice.needs(coarse)) == len(buckets)
        drawn = choice.draw(counted(codes.tolist(), 2**20 - 1), SYSTEM)
        assert drawn is not None
        assert not ((runs.first <= drawn[0]) & (drawn[0] < runs.first + runs.codes)).any()


def test_rank_errors() -> None:
    """Mean rank error on a lattice of 2^32 codes, 10^5 log-normal rows, epsilon 1, over several tables."""
    width, many = 2**32 - 1, 100_000
    errors: dict[int, list[float]] = {1: [], 9: []}
    for seed in range(4):
        values = np.exp(np.random.default_rng(seed).normal(10, 1, many))
        codes, rows = np.unique(np.clip(values / 1e6 * width, 0, width).astype(np.int64), return_counts=True)
        counts = CodeCounts.of(dict(zip(codes.tolist(), rows.tolist(), strict=True)), shift=0, width=width, known={})
        for quantiles, found in errors.items():
            ranks = [Fraction(i, quantiles + 1) for i in range(1, quantiles + 1)]
            steps = steps_of(ranks, sides=False)
            for _ in range(30 // quantiles):
                chosen: list[tuple[int, int] | None] = [None] * quantiles
                for step in steps:
                    moved = step.moved(rows=1, adjacency=Adjacency.ADD_REMOVE, groups=1)
                    rate = Fraction(1, levels(steps)) / (2 * moved)
                    chosen[step.place] = step.choice(chosen, width=width, total=many, reach=0, rate=rate).draw(
                        counts, SYSTEM
                    )
                for rank, made in zip(ranks, chosen, strict=True):
                    assert made is not None
                    below, upto = counts.below(made[0]), counts.below(made[0] + 1)
                    found.append(max(0.0, float(below - rank * many), float(rank * many - upto)))
    assert np.mean(errors[1]) < 2.2  # 1.1 on average over many tables; this allows for chance
    assert np.mean(errors[9]) < 12


def test_every_row_the_same() -> None:
    """The median of rows that are all 100 is 100, not a value between 0 and 100."""
    counts = counted([100] * 1000, 2**20)
    choices = (RankChoice(Node(0, 2**20, 0, 1000), HALF, 0, Fraction(1), split) for split in (False, True))
    assert {choice.draw(counts, SYSTEM)[0] for choice in choices for _ in range(3)} == {100}  # type: ignore[index]
