"""Samplers against their own distributions: the true scale is accepted, and scales 1.3 times off are rejected.

On the same 100,000 draws both must happen at p = 1e-20: never flaky, never vacuous.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.effort import some

from privet.noise import Bernoulli, BernoulliExp, DiscreteGaussian, DiscreteLaplace, Geometric, UniformInteger
from privet.noise.digits import BASE, SMALL
from privet.noise.entropy import SYSTEM
from privet.noise.laplace import laplace_digits

COUNT = 100_000
NEVER = 1e-20
Z = 9.4  # a standard normal variable exceeds this with probability below 1e-20

Draws = NDArray[np.float64]


def drawn(distribution: DiscreteLaplace | Geometric | DiscreteGaussian, way: str, count: int = COUNT) -> list[int]:
    if way == "one":
        return [distribution.sample() for _ in range(count)]
    if way == "few":
        parts = [distribution.sample(min(SMALL, count - i)) for i in range(0, count, SMALL)]
        return [int(x) for part in parts for x in part]
    return [int(x) for x in distribution.sample(count)]


def p_value(values: list[int], distribution: DiscreteLaplace | Geometric | DiscreteGaussian) -> float:
    """A chi-squared test in about 40 bins of nearly equal probability."""
    edges = sorted({distribution.quantile(Fraction(i, 41)) for i in range(1, 41)})
    cumulative = [0.0, *(float(distribution.cdf(edge)) for edge in edges), 1.0]
    expected = np.diff(cumulative) * len(values)
    counts = np.bincount(np.searchsorted(np.array(edges, dtype=object), np.array(values, dtype=object)),
                         minlength=len(expected))  # fmt: skip
    keep = expected > 5
    statistic = float(np.sum((counts[keep] - expected[keep]) ** 2 / expected[keep]))
    return float(stats.chi2.sf(statistic, max(1, keep.sum() - 1)))


SCALES = ("0.6", "3", "16.5", "12345.6", "1e15", "1e18")
SQUARES = ("0.6", "3", "16000", "20000", "1e8", "1e21", "1e40")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "scale"),
    [
        *(("one", scale) for scale in ("3", "12345.6")),
        *(("many", scale) for scale in SCALES),
        *(("few", scale) for scale in some(SCALES, every=2, start=1)),
    ],
)
def test_laplace_scales_are_told_apart(way: str, scale: str, effort: int) -> None:
    true = DiscreteLaplace(scale)
    values = drawn(true, way, COUNT * effort if way == "many" else COUNT)
    assert p_value(values, true) > NEVER
    for wrong in (true.scale * Fraction(13, 10), true.scale / Fraction(13, 10)):
        assert p_value(values, DiscreteLaplace(wrong)) < NEVER


@pytest.mark.parametrize("way", ["few", "many"])
@pytest.mark.parametrize("scale", ["0.6", "3", "5000"])
def test_geometric_scales_are_told_apart(scale: str, way: str) -> None:
    true = Geometric(scale)
    values = drawn(true, way)
    assert p_value(values, true) > NEVER
    for wrong in (true.scale * Fraction(13, 10), true.scale / Fraction(13, 10)):
        assert p_value(values, Geometric(wrong)) < NEVER


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "square"),
    [
        *(("one", square) for square in ("3", "1e8")),
        *(("many", square) for square in some(SQUARES, every=2)),
        *(("few", square) for square in some(SQUARES, every=2, start=1)),
    ],
)
def test_gaussian_scales_are_told_apart(way: str, square: str) -> None:
    true = DiscreteGaussian(square)
    values = drawn(true, way)
    assert p_value(values, true) > NEVER
    for wrong in (Fraction(13, 10), Fraction(10, 13)):
        assert p_value(values, DiscreteGaussian(true.sigma_squared * wrong**2)) < NEVER
    if square == "1e8":  # Laplace noise of the same variance is another distribution
        assert p_value(values, DiscreteLaplace("7071")) < NEVER


@pytest.mark.parametrize("square", ["3", "20000", "1e8"])
def test_gaussian_signs_are_symmetric_and_draws_independent(square: str) -> None:
    noise = DiscreteGaussian(square)
    values = noise.sample(COUNT)
    up, down = int((values > 0).sum()), int((values < 0).sum())
    assert abs(up - down) / math.sqrt(up + down) < Z
    zero = float(noise.pmf(0))
    assert abs(COUNT - up - down - COUNT * zero) / math.sqrt(COUNT * zero * (1 - zero) + 1) < Z
    x = values / math.sqrt(float(noise.variance))
    for lag in (1, 2, 7, 4096):
        assert dependence(x[:-lag], x[lag:]) < Z
    if square == "1e8":  # the fine part is all but independent of the coarse one
        assert abs(float(np.corrcoef(values % 64, np.abs(x))[0, 1])) * math.sqrt(COUNT) < Z


def test_few_values_are_as_frequent_as_they_should_be() -> None:
    """At sigma = 128, just above the table's end, each single value is counted."""
    noise, count = DiscreteGaussian(2**14), 4 * COUNT
    counts = np.bincount(noise.sample(count) + 2000, minlength=4001)
    expected = np.array([float(noise.pmf(k)) for k in range(-300, 301)]) * count
    chi = float(np.sum((counts[1700:2301] - expected) ** 2 / expected))
    assert stats.chi2.sf(chi, 600) > NEVER
    assert counts[2000] / expected[300] < 1.3, "0 comes once, not twice"


def z_of_mean(values: Draws, mean: float, deviation: float) -> float:
    return float(abs(values.mean() - mean) * math.sqrt(len(values)) / deviation)


def standardized(scale: str, count: int = COUNT) -> Draws:
    noise = DiscreteLaplace(scale)
    return np.array(noise.sample(count), dtype=np.float64) / math.sqrt(float(noise.variance))


@pytest.mark.parametrize("scale", ["2", "300", "1e6", "1e20"])
def test_moments(scale: str) -> None:
    """Mean 0 and variance 1; a scale 1.3 times off is seen."""
    x = standardized(scale)
    assert z_of_mean(x, 0, 1) < Z
    spread = math.sqrt(6)  # not less than the standard deviation of x^2: the kurtosis is 6 + 1/variance
    assert z_of_mean(x**2, 1, spread) < Z
    for wrong in (1.3, 1 / 1.3):
        assert z_of_mean((wrong * x) ** 2, 1, spread) > Z


def dependence(x: Draws, y: Draws) -> float:
    """How many standard deviations a product's mean is from that of independent variables, over several functions."""
    worst = 0.0
    for f in (np.sign, np.abs, lambda v: v, lambda v: np.abs(v) < 0.5):
        for g in (np.sign, np.abs, lambda v: v, lambda v: np.abs(v) < 0.5):
            a, b = np.asarray(f(x), dtype=float), np.asarray(g(y), dtype=float)
            a, b = a - a.mean(), b - b.mean()
            worst = max(worst, abs(float((a * b).sum())) / math.sqrt(float((a**2).sum() * (b**2).sum()) / len(a)))
    return worst


@pytest.mark.parametrize("scale", ["2", "300", "1e6"])
def test_successive_draws_are_independent(scale: str) -> None:
    x = standardized(scale)
    for lag in (1, 2, 3, 7, 4096, 32768):
        assert dependence(x[:-lag], x[lag:]) < Z
    shared = x + 0.1 * np.roll(x, 1)  # a twin whose draws share a tenth of their bits' worth
    assert dependence(shared[:-1], shared[1:]) > Z
    assert dependence(np.abs(x[1:]) * np.sign(x[:-1]), x[:-1]) > Z


@pytest.mark.parametrize("scale", ["0.7", "40", "1e7"])
def test_signs_are_symmetric(scale: str) -> None:
    noise = DiscreteLaplace(scale)
    values = noise.sample(COUNT)
    up, down = int((values > 0).sum()), int((values < 0).sum())
    assert abs(up - down) / math.sqrt(up + down) < Z
    zero = float(noise.pmf(0))
    assert abs(COUNT - up - down - COUNT * zero) / math.sqrt(COUNT * zero * (1 - zero) + 1) < Z
    halves = np.abs(values) * np.where(np.arange(COUNT) % 5, np.sign(values), 1)  # one in five made positive
    assert abs(float(np.sign(halves).sum())) / math.sqrt(up + down) > Z


def test_digits_are_independent_of_each_other() -> None:
    levels = laplace_digits(Fraction(10**6)).levels
    words = [np.frombuffer(SYSTEM.take(8 * COUNT), dtype=np.uint64) for _ in levels]
    digits = [level.few(w, SYSTEM)[0].astype(float) for level, w in zip(levels, words, strict=True)]
    for j in range(len(digits)):
        for i in range(j):
            assert dependence(digits[i], digits[j]) < Z
    shared = levels[1].few(words[0], SYSTEM)[0].astype(float)
    assert dependence(digits[0], shared) > Z


def test_low_digits_of_geometric_draws_are_independent_of_high_ones() -> None:
    values = Geometric(5000).sample(COUNT)
    low, high = (values % BASE).astype(float), (values // BASE).astype(float)
    assert dependence(low - low.mean(), high - high.mean()) < Z


@pytest.mark.parametrize(("coin", "p"), [(Bernoulli("1/3"), 1 / 3), (BernoulliExp(1), math.exp(-1))])
def test_coins(coin: Bernoulli | BernoulliExp, p: float) -> None:
    count = 20_000
    heads = sum(coin.sample() for _ in range(count))
    assert abs(heads - p * count) / math.sqrt(count * p * (1 - p)) < Z
    assert abs(heads - 1.3 * p * count) / math.sqrt(count * p * (1 - p)) > Z


def test_a_die() -> None:
    die = UniformInteger(1, 6)
    counts = np.bincount([die.sample() for _ in range(30_000)], minlength=7)[1:]
    assert stats.chisquare(counts).pvalue > NEVER
    assert stats.chisquare(counts + np.array([1500, 0, 0, 0, 0, -1500])).pvalue < NEVER
