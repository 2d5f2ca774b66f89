"""The continuous Laplace distribution of the textbooks, against closed forms and published values."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privet.errors import NumberError
from privet.exact import exp
from privet.textbook.distributions import Laplace

reals = st.fractions(min_value=-1000, max_value=1000, max_denominator=1000)
scales = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000)
levels = st.fractions(min_value=Fraction(1, 10**9), max_value=1 - Fraction(1, 10**9), max_denominator=10**9)


@pytest.mark.parametrize(
    ("x", "b", "alpha", "low", "high"),
    [(13, 27.33333333333, 0.05, -68.88334881, 94.88334881), (83.1235, 60, 0.24, -2.503481338, 168.7504813)],
)
def test_intervals_as_google_publishes_them(x: float, b: float, alpha: float, low: float, high: float) -> None:
    found = Laplace(x, b).interval(1 - Fraction(str(alpha)))
    assert found == pytest.approx((low, high), rel=1e-9)


def test_an_interval_from_sensitivities_as_google_publishes_it() -> None:
    scale = 2 * Fraction("4.3") / Fraction("0.6")  # l0 * linf / epsilon
    assert Laplace(38.4234, scale).interval("0.8") == pytest.approx((15.35478992, 61.49201008), rel=1e-9)


def test_an_inverse_cdf_as_google_publishes_it() -> None:
    assert float(Laplace(0, 3).quantile(1.23757362e-15)) == pytest.approx(-100.897429529251364, rel=1e-14)


def test_the_quantile_that_opendp_publishes() -> None:
    assert float(Laplace(0, 1).quantile("0.975")) == pytest.approx(2.995732273553991, rel=1e-15)


@pytest.mark.parametrize(("loc", "scale"), [(0, 1), (3, 0.25), (-7.5, 40)])
def test_against_scipy(loc: float, scale: float) -> None:
    ours, theirs = Laplace(loc, scale), stats.laplace(loc, scale)
    for x in (-100.0, -8.0, -1.0, 0.0, 0.5, 3.0, 3.1, 50.0):
        assert float(ours.pdf(x)) == pytest.approx(theirs.pdf(x), rel=1e-12)
        assert float(ours.cdf(x)) == pytest.approx(theirs.cdf(x), rel=1e-12)
    for p in (1e-9, 0.1, 0.5, 0.75, 1 - 1e-9):
        assert float(ours.quantile(p)) == pytest.approx(theirs.ppf(p), rel=1e-6)
    assert float(ours.variance) == pytest.approx(theirs.var())


@given(reals, scales, levels)
def test_the_quantile_inverts_the_cdf(loc: Fraction, scale: Fraction, p: Fraction) -> None:
    noise = Laplace(loc, scale)
    at = noise.quantile(p)
    assert noise.cdf(at.lower).lower <= p <= noise.cdf(at.upper).upper
    assert at.width <= max(abs(at.upper), abs(loc), scale) / 2**50
    mirrored = noise.quantile(1 - p)
    assert abs(at.lower + mirrored.lower - 2 * loc) <= (abs(loc) + abs(at.lower) + 1) / Fraction(2**50)


@given(reals, scales, reals)
def test_density_and_tail(loc: Fraction, scale: Fraction, x: Fraction) -> None:
    noise = Laplace(loc, scale)
    away = abs(x - loc) / scale
    tail = noise.tail(abs(x - loc))
    assert tail.lower <= exp(-away).upper
    assert tail.upper >= exp(-away).lower
    # P(|X - loc| >= t) is two tails of the cdf, and the density is the tail over 2 b
    both = noise.cdf(loc - abs(x - loc))
    assert abs(2 * both.lower - tail.lower) <= tail.upper / 2**50
    assert abs(noise.pdf(x).lower * 2 * scale - tail.lower) <= tail.upper / 2**50
    assert noise.cdf(x).lower <= noise.cdf(x + scale).upper
    assert noise.variance == 2 * scale**2


def test_the_tail_bound_of_the_laplace_mechanism() -> None:
    """P(|noise| >= t) = e^(-t eps/Delta), for continuous noise."""
    for t, eps, delta in ((3, "0.5", 1), ("0.1", 2, "0.25"), (40, 1, 7)):
        noise = Laplace(0, Fraction(delta) / Fraction(eps))
        wanted = math.exp(-float(Fraction(t) * Fraction(eps) / Fraction(delta)))
        assert float(noise.tail(t)) == pytest.approx(wanted, rel=1e-14)
    assert Laplace(0, 1).tail(0).lower == Laplace(0, 1).tail(-1).upper == 1


@given(reals, scales, reals, reals)
def test_sliding_never_exceeds_the_shift_and_reaches_it(
    loc: Fraction, scale: Fraction, shift: Fraction, x: Fraction
) -> None:
    noise, moved = Laplace(loc, scale), Laplace(loc + shift, scale)
    most = abs(shift) / scale
    assert noise.sliding(shift) == noise.log_ratio(moved) == moved.log_ratio(noise) == most
    here = noise.sliding(shift, x)
    assert abs(here) <= most
    if (abs(x - loc) + abs(shift)) / scale < 1000:  # the log ratio is that of the densities
        ratio = noise.pdf(x).lower / moved.pdf(x).upper, noise.pdf(x).upper / moved.pdf(x).lower
        assert ratio[0] <= exp(here).upper
        assert ratio[1] >= exp(here).lower
    beyond = loc - 1 if shift >= 0 else loc + 1
    assert noise.sliding(shift, beyond) == most
    assert noise.sliding(shift, loc + shift + (1 if shift >= 0 else -1)) == -most


@given(scales, st.fractions(min_value=0, max_value=50, max_denominator=50), st.fractions(min_value=0, max_value=5))
def test_where_one_copy_leads(scale: Fraction, shift: Fraction, epsilon: Fraction) -> None:
    p, q = Laplace(0, scale), Laplace(shift, scale)
    end = p.likelier_below(q, epsilon)
    if end is None:
        assert epsilon >= shift / scale
    else:
        assert p.sliding(shift, end) == epsilon
        assert p.sliding(shift, end - Fraction(1, 10**9)) > epsilon or end <= 0


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "x", None])
def test_bad_parameters_are_refused(bad: Any) -> None:
    with pytest.raises(NumberError, match="scale must be"):
        Laplace(0, bad)
    if bad not in (0, -1):
        with pytest.raises(NumberError, match="loc must be"):
            Laplace(bad, 1)


def test_it_reads_well() -> None:
    assert repr(Laplace(13, "1/3")) == "Laplace(loc=13, scale=0.333333)"
    assert Laplace(0, 2).at(5) == Laplace(5, 2)
