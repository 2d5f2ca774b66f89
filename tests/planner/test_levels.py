"""Levels of rollups and cubes: consistent, unbiased, with the errors that they state, and no worse than alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.accuracy.sums import Terms
from privet.planner.level_shares import margin_shares
from privet.planner.levels import Estimate, Keys, Level, Levels, Table, shape, table
from privet.privacy.margins import Margin, margin_move, residual_move
from privet.tables.groups import cube, rollup

SHAPES: list[tuple[tuple[int, ...], tuple[Keys, ...]]] = [
    ((3, 2), rollup(2)),
    ((3, 1, 2), ((0, 1, 2), (0,), (2,), ())),
    ((4, 3, 2), ((0, 1), (2,))),
    ((2, 2, 2), cube(3)),
]


def margin(of: Table, keys: Keys) -> Table:
    """The margin, by its definition."""
    others = tuple(axis for axis in range(of.ndim - 1) if axis not in keys)
    return np.asarray(of.sum(axis=others, keepdims=True), dtype=object)


def estimated(
    sizes: tuple[int, ...], sets: tuple[Keys, ...], *, residual: bool
) -> tuple[Estimate, tuple[Fraction, ...]]:
    """An estimate at cost 1/2 (in rho) or 1 (in epsilon), and the scales of its noise."""
    levels = Levels(sizes, sets)
    kinds = levels.measured(residual=residual)
    if residual:
        moves = [residual_move([(1,)], level.margin, adjacency="add/remove").squared for level in kinds]
        scales = tuple(move / share for move, share in zip(moves, levels.shares(moves), strict=True))
        return Estimate(levels, kinds, scales), scales
    assert all(margin_move([(1,)], level.margin, adjacency="add/remove").total == 1 for level in kinds)
    shares = margin_shares(levels, (1,) * len(kinds))
    chosen = [place for place, share in enumerate(shares) if share]
    scales = tuple(1 / shares[place] for place in chosen)
    kinds = tuple(kinds[place] for place in chosen)
    assert sum(shares) == 1
    return Estimate(levels, kinds, tuple(scale**2 for scale in scales)), scales


def variance(terms: Terms, *, squares: bool) -> Fraction:
    """The variance of a combination of draws; of Laplace noise, in units of 2."""
    return sum((n * a * a * (s if squares else s * s) for a, s, n in terms), Fraction(0))


@pytest.mark.parametrize("residual", [True, False], ids=["residuals", "margins"])
@pytest.mark.parametrize(("sizes", "sets"), SHAPES)
def test_margins_are_unbiased_and_consistent_and_know_their_draws(
    sizes: tuple[int, ...], sets: tuple[Keys, ...], residual: bool
) -> None:
    chance = Random(1)
    levels = Levels(sizes, sets)
    kinds = levels.measured(residual=residual)
    scales = tuple(Fraction(chance.randrange(1, 9)) for _ in kinds)
    found = Estimate(levels, kinds, scales)
    truth = table([[chance.randrange(50), chance.randrange(9)] for _ in range(math.prod(sizes))], sizes)
    exact = found.parts([level.counted(truth) for level in kinds])
    for keys in levels.margins:
        assert (found.margin(exact, keys) == margin(truth, keys) * found.unit(keys)).all()

    noisy = found.parts([level.counted(truth) + chance.randrange(-9, 9) * _noise(level, chance) for level in kinds])
    for fine, coarse in [(a, b) for a in levels.margins for b in levels.margins if {*b} < {*a}]:
        added = margin(found.margin(noisy, fine), coarse) * found.unit(coarse)
        assert (added == found.margin(noisy, coarse) * found.unit(fine)).all()  # towns add up to regions, exactly

    for keys in levels.margins:
        weights: Counter[tuple[Fraction, Fraction]] = Counter()
        for place, level in enumerate(kinds):
            for cell in range(level.margin.cells):
                zeros = [table([[0]] * each.margin.cells, shape(each.margin)) for each in kinds]
                zeros[place].reshape(-1)[cell] = 1
                weight = Fraction(int(found.margin(found.parts(zeros), keys).reshape(-1)[-1]), found.unit(keys))
                if weight:
                    weights[abs(weight), scales[place]] += 1
        assert weights == Counter({(a, s): n for a, s, n in found.draws(keys, scales)})


def _noise(level: Level, chance: Random) -> Table:
    return table(
        [[chance.randrange(-5, 6), chance.randrange(-5, 6)] for _ in range(level.margin.cells)], shape(level.margin)
    )


def test_residuals_that_are_not_centred_again_are_not_consistent() -> None:
    """The broken twin: the noise of a residual does not add up to 0 by itself."""
    sizes, chance = (3, 2), Random(2)
    kinds = Levels(sizes, rollup(2)).measured(residual=True)
    noise = {level.margin.keys: _noise(level, chance)[..., :1] for level in kinds}

    def raw(keys: Keys) -> list[Fraction]:
        """The margin of the noise without centring: each residual divided by n for each key of the margin."""
        inside = [part for part in noise if {*part} <= {*keys}]
        total = sum((noise[part] for part in inside[1:]), start=noise[inside[0]])
        return [Fraction(int(x), math.prod(sizes[key] for key in keys)) for x in np.asarray(total).reshape(-1)]

    towns, regions = raw((0, 1)), raw((0,))
    assert [sum(towns[2 * i : 2 * i + 2]) for i in range(3)] != regions


def test_published_errors_of_a_cube() -> None:
    """10 x 8 x 5: RMS standard deviations at the cost of one table with standard deviation 1, all margins alike."""
    sizes, sets = (10, 8, 5), cube(3)
    found, scales = estimated(sizes, sets, residual=True)
    centred = [variance(found.draws(keys, scales), squares=True) for keys in sets]
    closed = [
        sum(
            found.levels.variance(keys, part) * scale
            for part, scale in zip(found.levels.parts, scales, strict=True)
            if {*part} <= {*keys}
        )
        for keys in sets
    ]
    assert centred == closed
    raw = [
        sum(
            scale / found.levels.size(keys) ** 2
            for part, scale in zip(found.levels.parts, scales, strict=True)
            if {*part} <= {*keys}
        )
        for keys in sets
    ]
    summed = [Margin(keys, sizes).beside for keys in sets]

    def rms(variances: Sequence[Fraction | int]) -> float:
        return math.sqrt(sum(variances) / len(variances))

    assert rms(centred) == pytest.approx(2.31, abs=0.005)
    assert rms(raw) == pytest.approx(2.576, abs=0.005)  # 2.57, cut
    assert rms([Fraction(len(sets))] * 8) == pytest.approx(2.83, abs=0.005)
    assert rms(summed) == pytest.approx(8.62, abs=0.005)
    assert max(centred) < 8


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.data())
@settings(max_examples=40, deadline=None)
def test_no_level_is_worse_than_alone(sizes: list[int], data: st.DataObject) -> None:
    """At equal cost, independent answers have the variance of one table times the number of tables (or its square)."""
    every = [keys for size in range(len(sizes) + 1) for keys in combinations(range(len(sizes)), size)]
    sets = tuple(data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True)))
    for residual in (True, False):
        found, scales = estimated(tuple(sizes), sets, residual=residual)
        count = len(found.levels.margins)
        for keys in found.levels.margins:
            ours = variance(found.draws(keys, scales), squares=residual)
            assert ours <= count ** (1 if residual else 2) * (1 + Fraction(1, 10**5))


@given(st.lists(st.integers(2, 12), min_size=1, max_size=4), st.data())
@settings(max_examples=30, deadline=None)
def test_no_margin_is_worse_than_alone_if_the_total_moves_less(sizes: list[int], data: st.DataObject) -> None:
    every = [keys for size in range(len(sizes) + 1) for keys in combinations(range(len(sizes)), size)]
    levels = Levels(tuple(sizes), tuple(data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))))
    moves = tuple(2 if keys else 1 for keys in levels.margins)
    shares = margin_shares(levels, moves)
    chosen = [place for place, share in enumerate(shares) if share]
    scales = tuple(moves[place] / shares[place] for place in chosen)
    kinds = tuple(levels.measured(residual=False)[place] for place in chosen)
    found = Estimate(levels, kinds, tuple(scale**2 for scale in scales))
    for keys, move in zip(levels.margins, moves, strict=True):
        alone = (move * len(moves)) ** 2
        assert variance(found.draws(keys, scales), squares=False) <= alone * (1 + Fraction(1, 10**5))


def test_shares_of_margins_are_those_of_a_better_search() -> None:
    """Against minima that a simplex search (Nelder and Mead, six starts) found: standard deviations at epsilon 1."""
    for sizes, sets, least in [
        ((10, 8, 5), cube(3), 7.53),
        ((3, 4), rollup(2), 3.14),
        ((3, 4), cube(2), 3.16),
        ((2, 2, 2, 2), cube(4), 3.18),
        ((20,), rollup(1), 2.76),
    ]:
        found, scales = estimated(sizes, sets, residual=False)
        variances = [2 * variance(found.draws(keys, scales), squares=False) for keys in found.levels.margins]
        assert math.sqrt(sum(variances) / len(variances)) == pytest.approx(least, abs=0.01)


def test_weights_are_those_of_least_squares() -> None:
    """Against a solver: minimise the squared error of all margins at once, each divided by its variance."""
    sizes, sets = (3, 2), cube(2)
    levels = Levels(sizes, sets)
    kinds = levels.measured(residual=False)
    variances = (Fraction(4), Fraction(1), Fraction(9), Fraction(2))
    found = Estimate(levels, kinds, variances)
    chance = np.random.default_rng(5)
    noisy = [chance.integers(0, 100, level.margin.cells) for level in kinds]
    cells = np.eye(6).reshape(3, 2, 6)
    rows, right = [], []
    for level, values, square in zip(kinds, noisy, variances, strict=True):
        axes = tuple(axis for axis in range(2) if axis not in level.margin.keys)
        rows.append(cells.sum(axis=axes).reshape(-1, 6) / float(square) ** 0.5)
        right.append(values / float(square) ** 0.5)
    solved = np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)[0]
    tables = [
        table([[int(x)] for x in values], shape(level.margin)) for values, level in zip(noisy, kinds, strict=True)
    ]
    mine = found.margin(found.parts(tables), (0, 1)).reshape(-1) / found.unit((0, 1))
    assert np.allclose(np.asarray(mine, dtype=float), solved, atol=1e-3)
