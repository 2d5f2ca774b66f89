"""Bounds from noisy bins: every value is in one bin, the threshold keeps its word, and so does the share inside."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.exact import Exact
from privet.mechanisms import DEFAULT
from privet.noise import DiscreteLaplace
from privet.planner.bounds import FALSE_ALARM, Found
from privet.planner.noise import Noise
from privet.tables.bounds import ORDERS, powers
from privet.tables.expressions.nodes import Bin, Column
from privet.tables.types import NumberType

ENDS = st.one_of(
    st.integers(-(10**6), 10**6).map(Exact), st.fractions(-(10**6), 10**6, max_denominator=1000).map(Exact)
)


@given(ENDS, ENDS, st.booleans(), st.integers(0, 10**6))
def test_every_value_is_in_one_bin(one: Exact, other: Exact, integer: bool, chosen: int) -> None:
    lower, upper = min(one, other), max(one, other)
    kind = NumberType(lower, upper if upper - lower >= 1 else lower + 1, integer=integer)
    if kind.least >= kind.most:
        return
    edges = powers(kind)
    assert all(a < b for a, b in pairwise(edges))
    assert (edges[0], edges[-1]) == (kind.lower, kind.upper)
    bins = Bin(Column("x"), edges)
    assert not bins.type({"x": replace(kind, missing=False)}).missing, "every value has a bin"
    places, n = bins.places(kind), kind.least + chosen * (kind.most - kind.least) // 10**6
    assert [a <= n < b or n == b == places[-1] for a, b in pairwise(places)].count(True) == 1
    middle = min(max(Exact(0), edges[0]), edges[-1])
    for a, b in pairwise(edges):  # a bin is at most twice as far from 0 at one end as at the other
        near, far = sorted((abs(a), abs(b)))
        assert middle or far <= 2 * near * (1 + Exact(1, 10**5)) or near <= max(kind.unit, far / 2**ORDERS)


def found(bins: int, part: str = "inside", integer: bool = True) -> Found:
    return Found(0, tuple(map(Exact, [0, *(2**i for i in range(bins))])), integer, part)  # type: ignore[arg-type]


def alarm(threshold: int, scale: Fraction, bins: int) -> float:
    """The exact probability that one of so many empty bins reaches the threshold."""
    return float(1 - (1 - float(1 - DiscreteLaplace(scale).cdf(threshold - 1).upper)) ** bins)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(10), Fraction(137, 3)])
@pytest.mark.parametrize(("bins", "groups"), [(4, 1), (34, 1), (128, 1), (20, 50)])
def test_an_empty_bin_passes_with_probability_0_001_at_most(scale: Fraction, bins: int, groups: int) -> None:
    noise = Noise(DEFAULT, (scale,))
    threshold = found(bins).threshold(noise, groups)
    assert alarm(threshold, scale, bins * groups) <= FALSE_ALARM
    assert alarm(threshold - 2, scale, bins * groups) > FALSE_ALARM, "no more is asked for than is needed"
    forgets_bins = Found.threshold(found(1), noise, 1)
    assert alarm(forgets_bins, scale, bins * groups) > FALSE_ALARM, "a twin that looks at one bin"


def test_the_range_is_from_the_first_bin_to_the_last_that_stand_out() -> None:
    bounds, noise = found(6), Noise(DEFAULT, (Exact(1),))
    threshold = bounds.threshold(noise, 1)
    some = threshold - 1, threshold, 0, threshold + 5, 3, -9
    chosen = bounds.between([some], threshold)
    assert (int(chosen.lower), int(chosen.upper), chosen.found, [*chosen.bins]) == (1, 7, True, [1, 2, 3])
    assert found(6, integer=False).between([some], threshold).upper == 8
    last = bounds.between([(0, 0, 0, 0, 0, threshold)], threshold)
    assert (int(last.lower), int(last.upper)) == (16, 32), "the last bin has its upper edge"
    nothing = bounds.between([(0,) * 6], threshold)
    assert (int(nothing.lower), int(nothing.upper), nothing.found) == (0, 32, False)
    one, none = (found(6, "lower").cells([[each]], noise, Exact("0.95")) for each in (some, (0,) * 6))
    assert one.values == one.low == one.high == (1,)
    assert (one.noisy, none.noisy) == ((False,), (True,))


SPARSE = (1,) + (0,) * 42
"""One row, and much room for noise to choose from."""


def misses(counts: tuple[int, ...], confidence: Exact, draws: int) -> int:
    """How often the true share inside is not in its interval, over noise from a fixed seed."""
    bounds, noise, chance = found(len(counts)), Noise(DEFAULT, (Exact(6),)), np.random.default_rng(15)
    ratio, missed = 1 - math.exp(-1 / 6), 0
    for _ in range(draws):
        drawn = chance.geometric(ratio, len(counts)) - chance.geometric(ratio, len(counts))
        noisy = [int(n + z) for n, z in zip(counts, drawn, strict=True)]
        chosen = bounds.between([noisy], 20)  # low, so that noise takes part in the choice
        _, low, high = bounds._inside(chosen.bins, [noisy], noise, confidence)
        missed += not low <= sum(counts[i] for i in chosen.bins) / sum(counts) <= high
    return missed


def test_the_share_inside_is_in_its_interval_though_noise_chose_the_range() -> None:
    assert misses(SPARSE, Exact("0.8"), 200) <= 40
    ranges = len(SPARSE) * (len(SPARSE) + 1) // 2
    careless = 1 - (1 - Exact("0.8")) * ranges  # a twin that takes the range as given
    assert misses(SPARSE, careless, 200) > 40
