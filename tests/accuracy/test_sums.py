"""Sums of Laplace noise, against numerical integration, enumeration and published intervals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate

from privet.accuracy import error
from privet.accuracy.laplace.sums import error_of_sum, quantile_of_sum, scale_for_sum, smoothed, tail_of_sum
from privet.errors import NumberError
from privet.noise import DiscreteLaplace

positive_scales = st.floats(1e-3, 1e3)
levels = st.sampled_from([Fraction(1, 2), Fraction(4, 5), Fraction(19, 20), Fraction(99, 100), 1 - Fraction(1, 10**7)])
weights = st.fractions(min_value=-5, max_value=5, max_denominator=6).filter(bool)
exact_scales = st.fractions(min_value=Fraction(1, 4), max_value=1000, max_denominator=50)


def by_integration(scales: list[float], t: float) -> float:
    """P(|sum| >= t) = 1 - (2/pi) * integral of sin(ut)/u * prod 1/(1 + (b u)^2)."""

    def integrand(u: float) -> float:
        return t * float(np.sinc(u * t / math.pi)) / math.prod(1 + (b * u) ** 2 for b in scales)

    value, _ = integrate.quad(integrand, 0, 400 / max(scales), limit=2000)
    return float(1 - 2 / math.pi * value)


def pmf(scale: Fraction, reach: int) -> NDArray[np.float64]:
    return np.asarray(np.tanh(0.5 / float(scale)) * np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(scale)))


def beyond(a: list[Fraction], s: list[Fraction], h: Fraction) -> float:
    """P(|sum a_i X_i| > h) by convolution on the weights' common lattice."""
    common = math.lcm(*(w.denominator for w in a))
    total = np.array([1.0])
    for w, scale in zip(a, s, strict=True):
        masses = pmf(scale, math.ceil(25 * scale) + 1)
        stretched = np.zeros((len(masses) - 1) * int(abs(w) * common) + 1)
        stretched[:: int(abs(w) * common)] = masses
        size = len(total) + len(stretched) - 1
        total = np.fft.irfft(np.fft.rfft(total, size) * np.fft.rfft(stretched, size), size)
    k = np.arange(len(total)) - len(total) // 2
    return float(total[np.abs(k) > int(h * common)].sum())


# --- the continuous tail ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scales", [[1.0], [1.0, 2.0], [3.0, 3.0], [1.0, 1.0, 1.0], [0.2, 5.0, 5.01], [1.0, 1.0, 1.0, 1.0], [1, 2, 3, 4]]
)
def test_the_tail_is_the_integral_from_above(scales: list[float]) -> None:
    for t in np.array([0.1, 0.7, 1.5, 3.0, 5.0]) * math.hypot(*scales):
        bound, true = float(tail_of_sum(scales, t)), by_integration(scales, float(t))
        assert true - 2e-7 <= bound <= 1.03 * true + 2e-7
        assert by_integration(scales, float(t) * 0.99) >= bound - 2e-7  # within 1% of t


@given(st.lists(positive_scales, min_size=1, max_size=4), st.floats(1e-3, 1e5), st.integers(0, 3), st.floats(1, 3))
def test_the_tail_grows_with_every_scale_and_falls_with_t(
    scales: list[float], t: float, which: int, factor: float
) -> None:
    larger = [b * factor if i == which else b for i, b in enumerate(scales)]
    here = float(tail_of_sum(scales, t))
    assert 0 <= here <= 1
    assert float(tail_of_sum(larger, t)) >= here * 0.99 - 1e-9  # up to how far scales were raised
    assert float(tail_of_sum(scales, t * factor)) <= here + 1e-9
    assert here >= math.exp(-t / max(scales)) * (1 - 1e-12)  # no less than its largest term's alone
    union = len(scales) * math.exp(-t / (1.004 * sum(scales)))  # each takes its share of t
    assert here <= union + 1e-250


@given(st.lists(positive_scales, min_size=1, max_size=3), st.floats(0.01, 1e4))
def test_a_scale_of_zero_is_an_absent_term(scales: list[float], t: float) -> None:
    assert float(tail_of_sum([*scales, 0.0], t)) == pytest.approx(float(tail_of_sum(scales, t)), rel=1e-6, abs=1e-9)


def test_the_corners_of_the_tail() -> None:
    assert tail_of_sum([0.0, 0.0], [-1.0, 0.0, 1e-9]).tolist() == [1, 1, 0]
    assert tail_of_sum([1.0, 2.0], [-1.0, 0.0]).tolist() == [1, 1]
    assert 0 < float(tail_of_sum([1.0, 1.0], math.inf)) < 1e-200
    assert tail_of_sum(np.ones((5, 1, 3)), np.ones((1, 7))).shape == (5, 7)


@pytest.mark.parametrize(
    ("x", "scale", "wrong", "low", "high"),
    [(13, 27.33333333333, "0.05", -68.88334881, 94.88334881), (83.1235, 60, "0.24", -2.503481338, 168.7504813)],
)
def test_one_term_as_google_publishes_it(x: float, scale: float, wrong: str, low: float, high: float) -> None:
    half = quantile_of_sum(np.array([scale]), Fraction(wrong))
    assert [x - half, x + half] == pytest.approx([low, high], rel=1e-9)


# --- the discrete sum ---------------------------------------------------------------------------


@given(st.floats(0.05, 1e6), st.floats(0, 30))
def test_discrete_noise_with_a_uniform_added_is_more_peaked_than_the_smoothed_scale(scale: float, far: float) -> None:
    t = far * scale
    m = math.floor(t + 0.5)
    q, p = math.exp(-1 / scale), math.tanh(0.5 / scale)
    exactly = math.exp(-m / scale) * (1 - 2 * p * (t - m))
    by_parts = 2 * q ** (m + 1) / (1 + q) + (2 if m else 1) * p * q**m * ((0.5 - (t - m)) if m else 1 - 2 * t)
    assert exactly == pytest.approx(by_parts, rel=1e-6)
    wide = float(smoothed(np.array([scale]))[0])
    assert exactly <= math.exp(-t / wide) * (1 + 1e-12)
    assert scale < wide <= scale + 1 / (12 * scale) + 1e-9 * scale


@given(st.integers(1, 4), exact_scales, levels, weights)
def test_equal_terms_have_the_smallest_error_there_is(d: int, scale: Fraction, level: Fraction, a: Fraction) -> None:
    scale = min(scale, Fraction(60))
    found = error_of_sum([a] * (d - 1) + [-a], [scale] * d, level) / abs(a)
    assert found.denominator == 1
    assert beyond([Fraction(1)] * d, [scale] * d, found) <= 1 - level + Fraction(1, 10**9)
    if found > 0:
        assert beyond([Fraction(1)] * d, [scale] * d, found - 1) > 1 - level - Fraction(1, 10**9)


@given(exact_scales, levels, weights)
def test_one_term_is_the_noise_itself(scale: Fraction, level: Fraction, a: Fraction) -> None:
    assert error_of_sum([a], [scale], level) == error(DiscreteLaplace(scale), level, step=abs(a))
    assert error_of_sum([a, 0, 3], [scale, 5, 0], level) == error(DiscreteLaplace(scale), level, step=abs(a))


@settings(max_examples=40)
@given(st.lists(st.tuples(weights, exact_scales), min_size=2, max_size=3), levels)
def test_unequal_terms_keep_to_their_error(terms: list[tuple[Fraction, Fraction]], level: Fraction) -> None:
    a, s = [w for w, _ in terms], [min(scale, Fraction(15)) for _, scale in terms]
    found = error_of_sum(a, s, level)
    missed = beyond(a, s, found)
    assert missed <= 1 - level + Fraction(1, 10**9)


@pytest.mark.parametrize("a", [["1", "2"], ["1/2", "-1/3", "1"], ["1", "1", "1/4"]])
def test_the_error_of_unequal_terms_is_not_far_from_the_smallest(a: list[str]) -> None:
    exact, s = [Fraction(w) for w in a], [Fraction(30), Fraction(17), Fraction(30)][: len(a)]
    found = error_of_sum(exact, s, 0.95)
    assert beyond(exact, s, (found - sum(map(abs, exact))) * Fraction(99, 100)) > 0.05


def test_half_the_scale_is_too_little() -> None:
    a, s = [Fraction(1), Fraction(2)], [Fraction(20), Fraction(30)]
    assert beyond(a, s, error_of_sum(a, [x / 2 for x in s], 0.95)) > 0.15


@settings(max_examples=40)
@given(
    st.lists(st.tuples(weights, st.fractions(min_value=1, max_value=9, max_denominator=4)), min_size=1, max_size=3),
    st.booleans(),
    levels,
    st.fractions(min_value=0, max_value=10**6, max_denominator=3),
)
def test_the_scale_for_an_error_is_the_largest(
    terms: list[tuple[Fraction, Fraction]], equal: bool, level: Fraction, wanted: Fraction
) -> None:
    terms = [terms[0]] * len(terms) if equal else terms
    a, r = [w for w, _ in terms], [ratio for _, ratio in terms]
    s = scale_for_sum(a, r, level, wanted)
    if s is None:
        assert len(set(zip(map(abs, a), r, strict=True))) > 1
        assert error_of_sum(a, [ratio / 1000 for ratio in r], level) > wanted
        return
    assert s > 0
    assert error_of_sum(a, [s * ratio for ratio in r], level) <= wanted
    assert error_of_sum(a, [s * ratio * Fraction(105, 100) for ratio in r], level) > wanted


def test_what_cannot_be_summed_is_refused() -> None:
    with pytest.raises(NumberError, match="1 weights were given for 2 scales"):
        error_of_sum([1], [1, 2], 0.95)
    with pytest.raises(NumberError, match="scale must be"):
        error_of_sum([1], [-1], 0.95)
    with pytest.raises(NumberError, match="confidence must be"):
        error_of_sum([1], [1], 1)
    with pytest.raises(NumberError, match="any scale will do"):
        scale_for_sum([0], [1], 0.95, 10)
    with pytest.raises(NumberError, match="error must be"):
        scale_for_sum([1], [1], 0.95, -1)
    assert error_of_sum([], [], 0.95) == error_of_sum([0, 1], [1, 0], 0.95) == 0


def test_confidences_and_scales_at_the_far_ends() -> None:
    for level, scale in itertools.product((Fraction(1, 10**9), 1 - Fraction(1, 10**30)), (10**-3, 1, 10**30)):
        assert error_of_sum([1, 2], [scale, 3 * scale], level) >= 0
        assert error_of_sum([1, 1], [scale, scale], level) >= 0
