"""Errors of sums of discrete Gaussian noise: never below the truth, and close to it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from privet.accuracy import gaussian, half_width, ratio_interval
from privet.accuracy.gaussian import SMOOTHING, GaussianSums, normal_bound
from privet.accuracy.sums import Floats
from privet.errors import NumberError
from privet.noise import DiscreteGaussian

SUMS = GaussianSums()


def law(weights: Sequence[int], squares: Sequence[float]) -> Floats:
    """The distribution of |sum of n_i X_i|, from 0 on, by convolution."""
    total = np.ones(1)
    for n, square in zip(weights, squares, strict=True):
        reach = math.ceil(9 * math.sqrt(square)) + 3
        k = np.arange(-reach, reach + 1)
        mass = np.exp(-(k**2) / (2 * square))
        spread = np.zeros(2 * n * reach + 1)
        spread[::n] = mass / mass.sum()
        total = np.convolve(total, spread)
    middle = len(total) // 2
    folded = total[middle:].copy()
    folded[1:] *= 2
    return folded


def smallest(weights: Sequence[int], squares: Sequence[float], confidence: float) -> int:
    """The smallest k with P(|S| <= k) >= confidence."""
    return int(np.argmax(np.cumsum(law(weights, squares)) >= confidence - 1e-12))


def peaked(square: float, extra: float) -> bool:
    """Whether discrete noise plus a uniform variable is more peaked than a normal one of variance square + extra."""
    k = np.arange(int(11 * math.sqrt(square)) + 6)
    mass = np.exp(-(k.astype(float) ** 2) / (2 * square))
    mass /= mass[0] + 2 * mass[1:].sum()
    beyond = np.concatenate([np.cumsum(mass[::-1])[::-1][1:], [0]])
    seen = mass > 1e-18
    k, mass, beyond = k[seen], mass[seen], beyond[seen]
    variance = square + extra
    meet = np.sqrt(np.maximum(0, -2 * variance * np.log(mass * math.sqrt(2 * math.pi * variance))))
    t = np.clip(meet, np.maximum(k - 0.5, 0), k + 0.5)
    with np.errstate(divide="ignore"):
        ours = np.log(2 * (beyond + mass * (k + 0.5 - t)))
    return bool(np.all(ours <= math.log(2) + log_ndtr(-t / math.sqrt(variance)) + 1e-9))


def test_smoothed_noise_is_more_peaked_than_a_normal_variable() -> None:
    grid = np.exp(np.linspace(math.log(1e-4), math.log(1e4), 300)).tolist()
    assert all(peaked(square, float(SMOOTHING)) for square in grid)
    assert all(peaked(square, 0.196) for square in grid)
    assert not peaked(0.51, 0.19), "the check can fail: so much is needed there"
    assert not any(peaked(square, 0.16) for square in grid if square > 0.3)


WEIGHTS = [(1, 1), (1, 1, 1), (2, 1), (6, 1), (3, 2, 1), (1, 1, 1, 1, 1, 1)]


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("sigma", [0.3, 0.8, 2.0, 10.0, 40.0])
def test_errors_are_never_below_the_truth_and_close_to_it(
    weights: tuple[int, ...], sigma: float, confidence: float
) -> None:
    squares = [sigma**2 * (1 + i / 3) for i in range(len(weights))]
    truth = smallest(weights, squares, confidence)
    found = SUMS.error_of_sum(weights, squares, confidence)
    assert truth <= found <= truth + 1 + (sigma > 10) * sum(weights) / 2
    terms = tuple((Fraction(w), Fraction(s), 1) for w, s in zip(weights, squares, strict=True))
    bound = normal_bound(terms, 1 - Fraction(str(confidence)))
    assert bound // 1 >= truth
    if sigma >= 10:
        assert bound <= 1.02 * truth + sum(weights) / 2 + 1


def test_without_the_half_steps_it_would_be_too_little() -> None:
    """The broken twin is the plain normal quantile of the summed variances."""
    short = 0
    for weights, sigma in itertools.product(WEIGHTS, (0.3, 0.5, 0.8, 1.3, 2.0)):
        square = sum(w * w for w in weights) * sigma**2
        short += math.floor(1.959963984540054 * math.sqrt(square)) < smallest(weights, [sigma**2] * len(weights), 0.95)
    assert short >= 5


@pytest.mark.parametrize("sigma", [10, 100, 1000, 10**6])
@pytest.mark.parametrize("weights", [["1"], ["1", "1"], ["1", "-1/2"], ["1", "0.001"], ["1", "0.3", "0.77"]])
def test_wide_noise_has_the_normal_quantile(weights: list[str], sigma: int) -> None:
    deviation = math.sqrt(sum(float(Fraction(w)) ** 2 for w in weights)) * sigma
    found = float(SUMS.error_of_sum(weights, [sigma**2] * len(weights), 0.95))
    assert found == pytest.approx(1.959963984540054 * deviation, rel=0.003 + 0.6 / sigma)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 300))
def test_the_scale_for_an_error_is_the_largest(weights: list[int], error: int) -> None:
    ratios = [1, 2, 3][: len(weights)]
    found = SUMS.scale_for_sum(weights, ratios, 0.95, error)
    assert found is not None
    assert SUMS.error_of_sum(weights, [found * r for r in ratios], 0.95) <= error
    assert SUMS.error_of_sum(weights, [found * r * (1 + Fraction(1, 10**6)) for r in ratios], 0.95) > error


def test_no_terms_and_no_scale() -> None:
    assert SUMS.error_of_sum([0, 1], [3, 0], 0.95) == 0
    with pytest.raises(NumberError, match="any scale will do"):
        SUMS.scale_for_sum([0], [1], 0.95, 3)
    assert SUMS.scale_for_sum([1, "1e-12"], [1, 1], 0.95, "0.1") is None
    assert half_width(SUMS, [1], ["1/100"], 0.95) == 1
    assert SUMS.error_of_sum([2], [9], 0.95) == 2 * 6
    assert SUMS.error_of_sum([1, 1], ["1e-390", "1e-390"], 0.95) == 0
    assert gaussian.normal_quantile(Fraction(1, 20)) == pytest.approx(1.959963984540054, abs=1e-15)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0, 5.9, 20.0])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_test_rejects_no_more_than_it_says(sigma: float, confidence: float) -> None:
    for weights in ([1, 1], [3, 1], [2, 5, 1]):
        folded = law(weights, [sigma**2] * len(weights))
        distance = np.arange(len(folded), dtype=np.float64)
        shape = np.broadcast_to(np.array(weights, dtype=np.float64), (len(folded), len(weights)))
        test = SUMS.test([sigma**2] * len(weights), confidence)
        checks = [test.plausible, *([test.few.plausible] if test.few else [])]
        for plausible in checks:
            rejected = ~plausible(shape, distance)
            assert folded[rejected].sum() <= 1 - confidence + 1e-12
            assert rejected[-1]
        assert (test.few is not None) == (len(weights) == 2 and sigma <= 6)
    half = SUMS.test([100.0], 0.95).plausible(np.ones((2, 1)), np.array([19.0, 22.0]))
    assert half.tolist() == [True, False]


def test_a_mean_s_interval_covers() -> None:
    """The ratio of two noisy sums, with the noise that was drawn: misses are no more frequent than stated."""
    truth, count, square = np.array([300.0, 700.0]), 4000, 90
    draws = np.stack([DiscreteGaussian(square).sample(count) for _ in range(2)], axis=-1)
    low, high = ratio_interval(SUMS, truth + draws, [square, square], [1, 0], [1, 1], lower=0, upper=1, confidence=0.9)
    held = float(((low <= 0.3) & (high >= 0.3)).mean())
    assert 0.88 < held < 0.97
