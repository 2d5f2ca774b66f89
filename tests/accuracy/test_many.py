"""Sums of many draws: against enumeration, against draws, and never too narrow."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accuracy.test_sums import beyond

from privet.accuracy import Combined
from privet.accuracy.gaussian import GaussianSums
from privet.accuracy.laplace import LaplaceSums
from privet.accuracy.laplace.many import LEAST_LEVEL, ManyTerms
from privet.accuracy.laplace.sums import error_of_sum, quantile_of_sum, scale_for_sum
from privet.accuracy.sums import Terms

SCALES = st.fractions(min_value=Fraction(1, 4), max_value=20, max_denominator=4)
WEIGHTS = st.fractions(min_value=Fraction(1, 6), max_value=3, max_denominator=6)
TERMS = st.lists(st.tuples(WEIGHTS, SCALES, st.integers(1, 6)), min_size=2, max_size=4)


@given(TERMS, st.sampled_from([Fraction(1, 2), Fraction(1, 20), Fraction(1, 1000)]))
@settings(max_examples=8, deadline=None)
def test_the_error_of_many_terms_is_that_of_the_convolution(
    terms: list[tuple[Fraction, Fraction, int]], level: Fraction
) -> None:
    weights = [a for a, _, n in terms for _ in range(n)]
    scales = [s for _, s, n in terms for _ in range(n)]
    error = error_of_sum([a for a, _, _ in terms], [s for _, s, _ in terms], 1 - level, [n for _, _, n in terms])
    assert beyond(weights, scales, error) <= float(level) * (1 + 1e-6) + 1e-9
    deviation = ManyTerms(tuple(terms)).deviation
    smaller = error - Fraction(deviation / 20)  # a twentieth of a deviation less is too little
    step = Fraction(1, 36)
    if len(weights) > 4 and smaller > step:
        assert beyond(weights, scales, smaller // step * step - step) > float(level)


@pytest.mark.parametrize("level", [Fraction(1, 20), Fraction(1, 10**6)])
def test_continuous_terms_have_the_quantile_of_partial_fractions(level: Fraction) -> None:
    scales = [1.0, 2.5, 4.0]
    terms = tuple((Fraction(1), Fraction(s), 1) for s in scales)
    few, many = quantile_of_sum(np.array(scales), level), ManyTerms(terms, continuous=True).quantile(level)
    assert few <= many * 1.004
    assert many <= few * 1.02


def test_below_the_least_level_the_bound_is_chernoffs_and_larger() -> None:
    terms = ((Fraction(1), Fraction(3), 5), (Fraction(1, 2), Fraction(7), 9))
    made = ManyTerms(terms)
    above, below = Fraction(LEAST_LEVEL) * 2, Fraction(LEAST_LEVEL) / 2
    assert made.quantile(above) < made.quantile(below) < 1.4 * made.quantile(above)


def test_the_scale_for_an_error_keeps_to_it() -> None:
    weights, ratios, counts = [Fraction(1), Fraction(1, 10)], [1, 2], [1, 80]
    scale = scale_for_sum(weights, ratios, "0.95", 40, counts)
    assert scale is not None
    assert error_of_sum(weights, [scale, 2 * scale], "0.95", counts) <= 40
    assert error_of_sum(weights, [scale * Fraction(101, 100), 2 * scale * Fraction(101, 100)], "0.95", counts) > 40
    assert scale_for_sum(weights, ratios, "0.95", 0, counts) is None


# --- numbers that are combinations of draws -------------------------------------------------------------------

ONE: Terms = ((Fraction(3, 4), Fraction(20), 1), (Fraction(1, 4), Fraction(20), 3))
OTHER: Terms = ((Fraction(1, 3), Fraction(40), 9),)


@pytest.mark.parametrize("noise", [LaplaceSums(), GaussianSums()], ids=["laplace", "gaussian"])
def test_a_test_of_combined_numbers_is_valid_and_not_loose(noise: LaplaceSums | GaussianSums) -> None:
    """The rate of false alarms, for weights in many directions, by 200,000 draws: at most 5 %, and near it."""
    terms = [ONE, OTHER]
    if isinstance(noise, GaussianSums):  # the scale is sigma^2
        terms = [tuple((a, 200 * s, n) for a, s, n in each) for each in terms]
    combined, chance = Combined(noise, tuple(terms)), np.random.default_rng(3)
    count = 200_000

    def draws(scale: Fraction) -> np.ndarray:
        if isinstance(noise, GaussianSums):
            return np.rint(chance.normal(0, math.sqrt(scale), count))
        q = math.exp(-1 / scale)
        return chance.geometric(1 - q, count) - chance.geometric(1 - q, count)

    both = np.stack([sum(float(a) * draws(s) for a, s, n in each for _ in range(n)) for each in terms])
    test = combined.test(np.array([1, 2]), "0.95")
    for turn in np.linspace(0, np.pi / 2, 12):
        weights = np.array([np.cos(turn), np.sin(turn)])
        missed = float(np.mean(~test.plausible(np.broadcast_to(weights, (count, 2)), np.abs(weights @ both))))
        assert 0.04 < missed < 0.05 + 6.5 * math.sqrt(0.05 * 0.95 / count), turn
        error = combined.error_of_sum([Fraction(float(w)) for w in weights], [1, 2], "0.95")
        wider = float(np.mean(np.abs(weights @ both) > float(error)))
        assert 0.04 < wider < 0.05 + 6.5 * math.sqrt(0.05 * 0.95 / count)
        narrow = float(np.mean(np.abs(weights @ both) > 0.9 * float(error)))
        assert narrow > 0.05 + 6.5 * math.sqrt(0.05 * 0.95 / count)  # a test with power


def test_three_numbers_are_bounded_by_their_sum() -> None:
    combined = Combined(LaplaceSums(), (ONE, OTHER, ONE))
    test = combined.test(np.array([1, 2, 3]), "0.95")
    alone = [float(combined.error_of_sum([1], [place], "0.95")) for place in (1, 2, 3)]
    assert test.plausible(np.ones(3), np.array(sum(alone) * 0.99))
    assert not test.plausible(np.ones(3), np.array(sum(alone) * 1.2))
