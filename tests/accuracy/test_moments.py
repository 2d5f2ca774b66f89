"""Intervals for the variance: coverage, width, the corners, and what a wrong scale does."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from tests.effort import some

from privet import accuracy
from privet.accuracy import variance_estimate
from privet.accuracy.laplace import LaplaceSums

Floats = NDArray[np.float64]
RUNS = 1000
variance_interval = partial(accuracy.variance_interval, LaplaceSums())


def sums(v: Floats, width: float) -> Floats:
    return np.array([((width - v) ** 2).sum(), (2 * v * (width - v)).sum(), (v**2).sum()])


def released(v: Floats, width: float, scale: float, runs: int = RUNS) -> Floats:
    generator = np.random.default_rng([len(v), round(scale) % 2**30])
    if scale > 1e6:
        return sums(v, width) + np.rint(generator.laplace(0, scale, (runs, 3)))
    p = -np.expm1(-1 / scale)
    return np.asarray(sums(v, width) + generator.geometric(p, (runs, 3)) - generator.geometric(p, (runs, 3)))


def drawn(kind: str, n: int, width: int) -> Floats:
    generator = np.random.default_rng(7)
    shares = {
        "income": generator.lognormal(10.5, 0.7, n).clip(0, 200_000) / 200_000,
        "narrow": 0.5 + 0.01 * generator.standard_normal(n),
        "true or false": (np.arange(n) % 10 < 3).astype(np.float64),
    }
    return np.asarray(np.floor(shares[kind] * width))


def upper_end(covered: NDArray[np.bool_]) -> float:
    return float(stats.binomtest(int(covered.sum()), covered.size).proportion_ci(0.999).high)


@pytest.mark.parametrize(
    ("kind", "width", "n", "epsilon", "rows"),
    some(
        [
            (*column, n, *asked)
            for asked in [(0.1, 1), (1, 5), (2, 1)]
            for n in [50, 500, 50_000]
            for column in [("income", 2**20), ("income", 2**33), ("narrow", 2**20), ("true or false", 1)]
        ],
        every=3,
    ),
)
def test_the_variance_is_covered_and_the_interval_not_much_wider_than_the_oracles(
    kind: str, width: int, n: int, epsilon: float, rows: int
) -> None:
    v = drawn(kind, n, width)
    scale, truth = rows * width**2 / epsilon, v.var()
    x = released(v, width, scale)
    low, high = variance_interval(x, scale, width, confidence=0.95)
    assert upper_end((low <= truth) & (truth <= high)) >= 0.95
    estimate = variance_estimate(x, width)
    oracle = 2 * np.quantile(np.abs(estimate - truth), 0.95)
    assert np.mean(high - low) <= 1.6 * oracle
    deviations = 2 * np.quantile(np.abs(np.sqrt(estimate) - np.sqrt(truth)), 0.95)
    assert np.mean(np.sqrt(high) - np.sqrt(low)) <= 1.6 * deviations


@pytest.mark.parametrize(("kind", "width"), [("income", 2**20), ("true or false", 1)])
@pytest.mark.parametrize("n", [1, 3])
def test_the_variance_of_a_nearly_empty_group_is_covered(kind: str, width: int, n: int) -> None:
    v = drawn(kind, n, width)
    low, high = variance_interval(released(v, width, width**2), width**2, width, confidence=0.95)
    assert upper_end((low <= v.var()) & (v.var() <= high)) >= 0.95


@pytest.mark.parametrize(("kind", "width"), [("income", 2**20), ("true or false", 1)])
def test_intervals_from_half_the_scale_do_not_cover(kind: str, width: int) -> None:
    v, scale = drawn(kind, 5000, width), 5.0 * width**2
    low, high = variance_interval(released(v, width, scale), scale / 2, width, confidence=0.95)
    assert upper_end((low <= v.var()) & (v.var() <= high)) < 0.95


def test_a_mean_at_the_centre_of_its_interval_only_would_be_too_little() -> None:
    """The variance at the estimated mean is too small: the interval for the mean has to be walked through."""
    v, width = drawn("narrow", 60, 2**20), 2.0**20
    x = released(v, width, 2 * width**2)
    raw = variance_estimate(x, width)
    assert np.mean(raw < v.var()) > 0.4  # clamped at 0 nearly half of the time, and yet covered:
    low, high = variance_interval(x, 2 * width**2, width, confidence=0.95)
    assert np.mean((low <= v.var()) & (v.var() <= high)) > 0.95


@settings(max_examples=50)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.integers(1000, 5000))
def test_without_noise_the_variance_is_exact(rows: list[int], width: int) -> None:
    v = np.array(rows, dtype=np.float64)
    x = sums(v, width)[None, :]
    assert variance_estimate(x, width)[0] == pytest.approx(v.var(), abs=1e-9 * width**2)
    low, high = variance_interval(x, 0.0, width, confidence=0.95)
    assert low[0] - 1e-9 * width**2 <= v.var() <= high[0] + 1e-9 * width**2
    assert high[0] - low[0] <= 1e-6 * width**2


coordinates = st.one_of(st.integers(-50, 2000), st.integers(-(10**15), 10**15)).map(float)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(coordinates, coordinates, coordinates), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.2, 1.0, 30.0, 1e9]),
    st.sampled_from([1, 2, 2**20]),
)
def test_the_interval_holds_the_estimate_and_keeps_to_the_range(
    x: list[tuple[float, float, float]], scale: float, width: int
) -> None:
    low, high = variance_interval(x, scale, width, confidence=0.95)
    estimate = variance_estimate(x, width)
    assert (low >= 0).all()
    assert (low <= estimate).all()
    assert (estimate <= high).all()
    assert (high <= width**2 / 4).all()


def test_past_an_end_the_interval_is_that_of_an_estimate_at_the_end() -> None:
    """A sum of squares far below 0, or a count that is not positive, must not look like certainty."""
    scale, width = 1e6, 1000.0
    x = np.array([[1e8, 2e8 + far, 1e8 - far / 2] for far in (0.0, 1e7, 1e8)])  # no spread at all, and less than none
    low, high = variance_interval(x, scale, width, confidence=0.95)
    assert (low == 0).all()
    assert (high >= scale / x.sum(axis=-1) * width**2 / 4).all()
    low, high = variance_interval([[-1e8, -1e8, -1e8]], scale, width, confidence=0.95)
    assert (low[0], high[0]) == (0, width**2 / 4)
