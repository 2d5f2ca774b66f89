"""Intervals for ratios: coverage, width, the corners, and what a wrong scale does."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from privet import accuracy
from privet.accuracy import ratio_estimate
from privet.accuracy.laplace import LaplaceSums
from privet.accuracy.laplace.small import laplace_box
from privet.accuracy.laplace.sums import tail_of_sum

Floats = NDArray[np.float64]
RUNS = 3000
ratio_interval = partial(accuracy.ratio_interval, LaplaceSums())


def noise(scale: float, shape: tuple[int, ...], key: int = 1) -> Floats:
    """Discrete Laplace noise from another generator than the package's."""
    generator = np.random.default_rng([key, *shape, round(scale * 1000)])
    if scale > 1e6:
        return np.rint(generator.laplace(0, scale, shape))
    p = -np.expm1(-1 / scale)
    return np.asarray(generator.geometric(p, shape) - generator.geometric(p, shape), dtype=np.float64)


def at_least(covered: NDArray[np.bool_], confidence: float) -> bool:
    """Whether coverage may be that much: the upper end of Clopper and Pearson's 99.9% interval."""
    return bool(stats.binomtest(int(covered.sum()), covered.size).proportion_ci(0.999).high >= confidence)


def incomes(n: int, width: int) -> Floats:
    raw = np.random.default_rng(7).lognormal(10.5, 0.7, n).clip(0, 200_000)
    return np.asarray(np.floor(raw / 200_000 * width))


def released(v: Floats, width: float, scale: float) -> Floats:
    """The noisy sums of v and of W - v, many times."""
    return np.array([v.sum(), (width - v).sum()]) + noise(scale, (RUNS, 2))


def mean_interval(x: Floats, scale: float, width: float) -> tuple[Floats, Floats]:
    return ratio_interval(x, [scale, scale], [width, 0], [1, 1], lower=0, upper=width, confidence=0.95)


# --- coverage and width -------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("width", [1, 2**20, 2**33])
@pytest.mark.parametrize("n", [50, 500, 50_000])
@pytest.mark.parametrize("epsilon", [0.1, 2])
def test_the_mean_is_covered_and_the_interval_no_wider_than_the_oracles(
    rows: int, width: int, n: int, epsilon: float
) -> None:
    v = incomes(n, width) if width > 1 else np.arange(n) % 10 < 3
    scale, truth = rows * width / epsilon, v.mean()
    x = released(v.astype(np.float64), width, scale)
    low, high = mean_interval(x, scale, width)
    assert at_least((low <= truth) & (truth <= high), 0.95)
    estimate = ratio_estimate(x, [width, 0], [1, 1], lower=0, upper=width)
    oracle = 2 * np.quantile(np.abs(estimate - truth), 0.95)
    at_an_end = (
        n * epsilon < 20 * rows
    )  # an estimate is often past an end then, and the interval no narrower than there
    assert np.mean(high - low) <= (1.3 if at_an_end else 1.15) * oracle


@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.4, 40.0])
def test_the_mean_of_a_nearly_empty_group_is_covered(n: int, scale: float) -> None:
    v = np.arange(n) % 3 == 0
    low, high = mean_interval(released(v.astype(np.float64), 1, scale), scale, 1)
    assert at_least((low <= v.mean()) & (v.mean() <= high), 0.95)


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
@pytest.mark.parametrize(("n", "width"), [(1, 1), (3, 2), (10, 10), (40, 1)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_probability_to_cover_a_mean_is_enough_by_enumeration(
    scale: float, n: int, width: int, confidence: float
) -> None:
    """No draws: the mass of all noise whose interval covers, at the ends of the range (known exactly) and inside."""
    steps = np.arange(-math.ceil(11 * scale), math.ceil(11 * scale) + 1)
    mass = np.tanh(0.5 / scale) * np.exp(-np.abs(steps) / scale)
    both = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    for total in sorted({0, n * width // 2, n * width}):
        low, high = ratio_interval(
            np.array([total, n * width - total]) + both,
            [scale, scale],
            *([width, 0], [1, 1]),
            lower=0,
            upper=width,
            confidence=confidence,
        )
        covered = (low <= total / n) & (total / n <= high)
        assert np.outer(mass, mass).ravel()[covered].sum() >= confidence


@pytest.mark.parametrize(("n", "scale", "width"), [(500, 1.5, 1), (500, 20.0, 1), (5000, 2.0**21, 2**20)])
def test_intervals_from_half_the_scale_do_not_cover(n: int, scale: float, width: int) -> None:
    v = incomes(n, width) if width > 1 else (np.arange(n) % 10 < 3).astype(np.float64)
    low, high = mean_interval(released(v, width, scale), scale / 2, width)
    assert not at_least((low <= v.mean()) & (v.mean() <= high), 0.95)


def test_other_confidences_and_unequal_scales_and_four_terms() -> None:
    truth = np.array([40.0, 25.0, 60.0, 100.0])
    scales, alpha, beta = (
        np.array([3.0, 0.0, 8.0, 5.0]),
        np.array([1.0, 2.0, -0.5, 0.0]),
        np.array([0.0, 0.0, 1.0, 1.0]),
    )
    x = truth + np.stack([noise(s, (RUNS,), i) if s else np.zeros(RUNS) for i, s in enumerate(scales)], axis=-1)
    t = (alpha @ truth) / (beta @ truth)
    for confidence in (0.5, 0.9, 0.999):
        low, high = ratio_interval(x, scales, alpha, beta, lower=-math.inf, upper=math.inf, confidence=confidence)
        assert at_least((low <= t) & (t <= high), confidence)
        assert np.mean((low <= t) & (t <= high)) <= confidence + 0.1  # half steps cost most where little is asked


# --- what every interval is ---------------------------------------------------------------------

coordinates = st.one_of(st.integers(-50, 2000), st.integers(-(10**15), 10**15)).map(float)


@given(
    st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.2, 1.0, 2.5, 30.0, 1e9]),
    st.sampled_from([0.0, 1.0, 2.0, 1e9]),
    st.sampled_from([(0.0, 1.0), (-5.0, 3.0), (0.0, math.inf), (-math.inf, math.inf), (2.0, 2.0)]),
)
def test_the_interval_holds_the_estimate_and_keeps_to_the_range(
    x: list[tuple[float, float]], first: float, second: float, ends: tuple[float, float]
) -> None:
    lower, upper = ends
    low, high = ratio_interval(x, [first, second], [1, 0], [1, 1], lower=lower, upper=upper, confidence=0.95)
    estimate = ratio_estimate(x, [1, 0], [1, 1], lower=lower, upper=upper)
    assert np.isfinite(estimate).all()
    assert (lower <= low).all()
    assert (low <= estimate).all()
    assert (estimate <= high).all()
    assert (high <= upper).all()


@settings(max_examples=40)
@given(st.integers(-20, 300), st.integers(-20, 300), st.sampled_from([0.7, 2.0, 5.0, 60.0]))
def test_nothing_outside_is_accepted_on_a_fine_grid(a: int, b: int, scale: float) -> None:
    """The search by bisection against the definition: what is outside has a p-value that is too small."""
    x = np.array([float(a), float(b)])
    low, high = mean_interval(x[None, :], scale, 1)
    t = np.linspace(0, 1, 2001)
    w = np.stack([1 - t, -t], axis=-1)
    box = laplace_box(np.array([scale, scale]), 1e-9)  # larger than the interval's own
    p = box.tail(np.abs(w), np.abs(w @ x)) if scale < 3 else tail_of_sum(np.abs(w) * scale, np.abs(w @ x))
    accepted = t[p >= 0.05 * (1 + 1e-3)]
    root = a / (a + b) if a + b else math.inf
    if 0 <= root <= 1 or 0.0 in accepted or 1.0 in accepted:
        assert (low[0] <= accepted + 1e-9).all()
        assert (accepted - 1e-9 <= high[0]).all()


@given(st.floats(0.1, 2.5), st.floats(0.1, 2.5), st.floats(0, 3), st.floats(0.01, 3), st.floats(0.01, 20))
def test_enumerated_noise_is_bounded_from_above_and_closely(
    first: float, second: float, w1: float, w2: float, t: float
) -> None:
    k = np.arange(-90, 91)
    mass = [np.tanh(0.5 / s) * np.exp(-np.abs(k) / s) for s in (first, second)]
    true = float(np.outer(*mass)[np.abs(np.add.outer(w1 * k, w2 * k)) >= t * (1 - 1e-12)].sum())
    sharp = float(np.outer(*mass)[np.abs(np.add.outer(w1 * k, w2 * k)) >= t * (1 - 1e-8) - 4e-8].sum())
    found = float(laplace_box(np.array([first, second]), 0.05).tail(np.array([w1, w2]), np.array(t)))
    assert true * (1 - 1e-9) - 1e-12 <= found <= sharp + 4e-4


def test_the_width_is_found_though_it_is_a_tiny_part_of_the_range() -> None:
    x, scale = np.array([[3e12, 7e12]]), 1000.0
    low, high = ratio_interval(x, [scale, scale], [1, 0], [1, 1], lower=0, upper=1, confidence=0.95)
    wide = ratio_interval(x, [scale, scale], [1, 0], [1, 1], lower=-math.inf, upper=math.inf, confidence=0.95)
    half = (high - low)[0] / 2
    assert half == pytest.approx((wide[1] - wide[0])[0] / 2, rel=1e-3)
    assert float(tail_of_sum([700.0, 300.0], half * 1e13)) == pytest.approx(0.05, rel=0.02)


def test_an_insignificant_denominator_leaves_the_whole_range() -> None:
    low, high = mean_interval(np.array([[3.0, -4.0], [0.0, 0.0], [-5.0, 4.0], [1.0, 2.0]]), 30.0, 1)
    assert low.tolist() == [0, 0, 0, 0]
    assert high.tolist() == [1, 1, 1, 1]
    low, high = ratio_interval([[3.0, 1.0]], [9, 9], [1, 0], [0, 1], lower=-math.inf, upper=math.inf, confidence=0.9)
    assert [*low, *high] == [-math.inf, math.inf]


@pytest.mark.parametrize("scale", [0.3, 1.0, 40.0])
def test_past_an_end_the_interval_is_that_of_an_estimate_at_the_end(scale: float) -> None:
    """However far: more noise than is plausible must not look like certainty."""
    bottom = 50 * scale + 10
    for end, past in ((2.0, 1), (0.0, -1)):
        x = [[end * bottom + past * far * scale, bottom] for far in (0, 3, 10, 500)]
        low, high = ratio_interval(x, [scale, scale], [1, 0], [0, 1], lower=0, upper=2, confidence=0.95)
        free = ratio_interval(x[:1], [scale, scale], [1, 0], [0, 1], lower=-9, upper=9, confidence=0.95)
        inside = (free[0][0], 2.0) if past > 0 else (0.0, free[1][0])
        for a, b in zip(low, high, strict=True):
            assert (a, b) == pytest.approx(inside, rel=1e-3)
            assert b - a >= 0.4 * (free[1] - free[0])[0]


def test_without_a_denominator_the_interval_is_the_range() -> None:
    low, high = ratio_interval([[5.0, -900.0], [-5.0, -1.0]], [1, 1], [1, 0], [0, 1], lower=0, upper=2, confidence=0.95)
    assert [*low, *high] == [0, 0, 2, 2]


@pytest.mark.parametrize("scale", [0.05, 0.2])
def test_noise_that_is_mostly_0_leaves_a_width(scale: float) -> None:
    """One step of one coordinate is never rejected, so that the interval is not a point."""
    low, high = mean_interval(np.array([[3.0, 7.0], [0.0, 10.0], [10.0, 0.0]]), scale, 1)
    assert (high - low >= 0.05).all()


def test_the_estimate_where_there_is_no_denominator() -> None:
    x = [[5.0, -9.0], [-5.0, 1.0], [0.0, 0.0], [0.0, -1.0]]
    assert ratio_estimate(x, [1, 0], [1, 1], lower=0, upper=1).tolist() == [1, 0, 0.5, 0.5]
    assert ratio_estimate(x, [1, 0], [1, 1], lower=0, upper=math.inf).tolist() == [0, 0, 0, 0]
