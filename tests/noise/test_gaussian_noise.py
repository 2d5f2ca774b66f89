"""The discrete Gaussian distribution against its definition in decimals, published values and other libraries."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privet import accuracy
from privet.audit.script import Script
from privet.errors import NumberError
from privet.exact import INFINITY, ball, precision
from privet.noise import DiscreteGaussian, theta
from privet.noise import gaussian as module
from privet.noise.gaussian import TABLE, gaussian_sampler
from privet.noise.refinement import Refined

squares = st.one_of(
    st.fractions(min_value=Fraction(1, 100), max_value=400, max_denominator=1000),
    st.integers(1, 10**30).map(Fraction),
    st.fractions(min_value=10**30, max_value=10**60, max_denominator=997),
)
levels = st.fractions(min_value=Fraction(1, 10**6), max_value=1 - Fraction(1, 10**6), max_denominator=10**6)


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def weights(sigma_squared: Fraction, digits: int = 80) -> list[Decimal]:
    """e^(-k^2/(2 sigma^2)) for k = 0, 1, ..., by another arithmetic than the package's."""
    with localcontext() as context:
        context.prec = digits
        found, k = [Decimal(1)], 1
        while found[-1] > Decimal(10) ** -digits:
            found.append((-k * k / (2 * decimal(sigma_squared))).exp())
            k += 1
    return found


def between(found: Any, value: Decimal, digits: int = 60) -> bool:
    """Whether an enclosure holds a number that is known to many digits, and is itself narrow."""
    slack = Fraction(abs(value)) / 10**digits
    narrow = found.width <= abs(found.upper) / 2**60
    return bool(narrow and found.lower - slack <= Fraction(value) <= found.upper + slack)


@settings(max_examples=40, deadline=None)
@given(st.fractions(min_value=Fraction(1, 100), max_value=1500, max_denominator=100), st.integers(0, 12))
def test_pmf_cdf_tail_and_variance_from_the_definition(sigma_squared: Fraction, sigmas: int) -> None:
    noise = DiscreteGaussian(sigma_squared, loc=5)
    k = math.isqrt(int(sigmas * sigmas * sigma_squared)) + 1
    with localcontext() as context:
        context.prec = 80
        w = weights(sigma_squared)
        whole = w[0] + 2 * sum(w[1:])
        if k < len(w) and w[k] > Decimal(10) ** -18:
            above = sum(w[k:], Decimal(0)) / whole
            assert between(noise.pmf(5 + k), w[k] / whole, 50)
            assert between(noise.cdf(5 - k), above, 50)
            assert between(noise.cdf(5 + k - 1), 1 - above, 50)
            assert between(noise.tail(k), 2 * above, 50)
            assert between(noise.tail(Fraction(2 * k - 1, 2)), 2 * above, 50)
        assert between(noise.pmf(5), 1 / whole, 50)
        assert between(noise.variance, 2 * sum((j * j * x for j, x in enumerate(w)), Decimal(0)) / whole, 50)


# --- the two ways to sum --------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [64, 160, 400])
@pytest.mark.parametrize("sigma_squared", ["4", "10", "30.5", "100", "2500", "40000"])
def test_euler_and_maclaurin_agree_with_the_sum(sigma_squared: str, bits: int) -> None:
    s = Fraction(sigma_squared)
    for m in {1, 2, math.isqrt(int(s)), 4 * math.isqrt(int(s)), 9 * math.isqrt(int(s)), int(s) // 2 + 1, int(s)}:
        with precision(bits):
            formula = theta._euler_maclaurin(s, m)
        with precision(bits + 64):
            plain = theta._direct(1 / ball(2 * s), m)
        assert formula.overlaps(plain)
        if bits <= 16 * s and m < s:
            assert formula.rel_accuracy_bits() > bits - 24


@pytest.mark.parametrize(("broken", "factor"), [("a Bernoulli number", 2), ("no remainder bound", 0)])
def test_a_broken_formula_would_be_seen(monkeypatch: pytest.MonkeyPatch, broken: str, factor: int) -> None:
    """The comparison with the plain sum rejects a wrong term, and one that is left out."""
    right = theta._ratio
    monkeypatch.setattr(theta, "_ratio", lambda p: right(p) * factor if p == 2 else right(p))
    with precision(160):
        assert not theta._euler_maclaurin(Fraction(100), 12).overlaps(theta._direct(1 / ball(Fraction(200)), 12))


@pytest.mark.parametrize("exponent", [20, 100, 200, 400])
def test_very_wide_noise_is_enclosed(exponent: int) -> None:
    sigma = 2**exponent
    noise = DiscreteGaussian(Fraction(sigma) ** 2)
    for z in (-300, -30, -3, -1, 0, 1, 2, 5):
        assert float(noise.cdf(z * sigma)) == pytest.approx(stats.norm.cdf(z), rel=max(1e-9, 200 / sigma), abs=1e-320)
    assert noise.pmf(10**6 * sigma).upper < Fraction(1, 10**1000)
    assert noise.quantile("0.975") == pytest.approx(1.959963984540054 * sigma, rel=1e-6)
    assert float(noise.variance) == pytest.approx(sigma**2, rel=1e-12)


@pytest.mark.parametrize("sigma_squared", ["0.02", "1/7", "1/6", "0.17", "1", "5", "1000"])
def test_sum_and_dual_sum_agree(sigma_squared: str) -> None:
    s = Fraction(sigma_squared)
    with precision(200):
        plain = 1 + 2 * theta._direct(1 / ball(2 * s), 1)
        dual = (2 * arb.pi() * ball(s)).sqrt() * (1 + 2 * theta._direct(theta._dual(s), 1))
        assert plain.overlaps(dual)
        assert theta.total(s).rel_accuracy_bits() > 180


# --- quantiles ------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(squares, levels, st.integers(-(10**20), 10**20))
def test_the_quantile_is_the_smallest_value_that_reaches(s: Fraction, p: Fraction, loc: int) -> None:
    noise = DiscreteGaussian(s, loc)
    k = noise.quantile(p)
    assert noise.cdf(k).upper >= p
    assert noise.cdf(k - 1).lower < p


@pytest.mark.parametrize("p", ["1e-300", "1e-30", "0.5", "0.4999999", "0.50000001", "0.999999999999999"])
@pytest.mark.parametrize("s", ["1/1000", "1", "7.3", "1e9", "1e40"])
def test_far_quantiles(s: str, p: str) -> None:
    noise = DiscreteGaussian(s)
    k = noise.quantile(p)
    assert noise.cdf(k).upper >= Fraction(p)
    assert noise.cdf(k - 1).lower < Fraction(p)


@settings(deadline=None, max_examples=40)
@given(squares, levels)
def test_error_and_tail_bounds(s: Fraction, confidence: Fraction) -> None:
    noise = DiscreteGaussian(s)
    bound = int(accuracy.error(noise, confidence))
    assert 1 - noise.tail(bound + 1).lower >= confidence
    assert bound == 0 or 1 - noise.tail(bound).upper < confidence
    t = math.isqrt(int(9 * s)) + 1
    assert noise.tail(t).upper <= 2 * Fraction(math.exp(-float(t * t / (2 * s)))) * (1 + Fraction(1, 10**9))


def test_google_s_interval() -> None:
    """x = 21, sigma = 1, alpha .05: [19.0400360155, 22.9599639845] for continuous noise, so 2 steps for discrete."""
    assert accuracy.error(DiscreteGaussian(1), 0.95) == 2
    fine = 2**30
    error = accuracy.error(DiscreteGaussian(fine**2), 0.95, step=Fraction(1, fine))
    assert 21 - float(error) == pytest.approx(19.0400360155, abs=1e-8)


# --- the rest of its face -------------------------------------------------------------------------


@settings(deadline=None)
@given(squares, st.integers(1, 50), st.fractions(min_value=0, max_value=3, max_denominator=20))
def test_where_one_copy_leads(s: Fraction, shift: int, epsilon: Fraction) -> None:
    """`likelier_below` is the last k with p(k) > e^epsilon q(k), by the exponents themselves."""
    p, q = DiscreteGaussian(s, 3), DiscreteGaussian(s, 3 + shift)
    end = p.likelier_below(q, epsilon)

    def leads(k: int) -> bool:
        return ((k - q.loc) ** 2 - (k - p.loc) ** 2) / (2 * s) > epsilon

    assert end is not None
    assert leads(end)
    assert leads(end - 5)
    assert not leads(end + 1)
    assert p.likelier_below(p, epsilon) is None
    assert p.log_ratio(q) == INFINITY
    assert p.log_ratio(p) == 0


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "x", None, "1e400"])
def test_bad_parameters_are_refused(bad: Any) -> None:
    with pytest.raises(NumberError, match=r"sigma_squared must be .* DiscreteGaussian\(sigma_squared=4\)"):
        DiscreteGaussian(bad)


def test_too_wide_or_off_the_integers() -> None:
    with pytest.raises(NumberError, match="at most 2\\^2048"):
        DiscreteGaussian(2**2048 + 1)
    with pytest.raises(NumberError, match="loc must be"):
        DiscreteGaussian(2, 1.5)  # type: ignore[arg-type]
    assert isinstance(DiscreteGaussian(2**2048).sample(), int)
    noise = DiscreteGaussian(1)
    assert noise.pmf(0.5).upper == 0  # type: ignore[arg-type]
    assert noise.cdf(0.5) == noise.cdf(0)  # type: ignore[arg-type]
    assert noise.tail(0).lower == noise.tail(-2).upper == 1
    assert DiscreteGaussian(4).at(7) == DiscreteGaussian(4, 7)
    assert DiscreteGaussian(4).scale == 4


@pytest.mark.parametrize("s", ["1/1000", "1e-9", "1e-300"])
def test_noise_that_is_all_but_nothing(s: str) -> None:
    noise = DiscreteGaussian(s)
    assert noise.sample() == 0
    assert noise.sample(5).tolist() == [0] * 5
    assert noise.quantile("0.999999") == accuracy.error(noise, "0.999999") == 0


@pytest.mark.parametrize("s", ["2", str(TABLE - 1), str(TABLE), "1e9", "1e29", "1e31", "1e80"])
@pytest.mark.parametrize("size", [0, 1, 7, 5000])
def test_draws_are_integers_of_the_right_size(s: str, size: int) -> None:
    noise = DiscreteGaussian(s, loc=10**25)
    drawn = noise.sample(size).tolist()
    assert len(drawn) == size
    assert all(type(x) is int and abs(x - 10**25) <= 12 * math.isqrt(int(noise.sigma_squared)) + 12 for x in drawn)


def test_sample_is_the_verified_sampler_plus_the_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last link from `sample` to what `verify_sampler` certifies."""
    for s in (Fraction(5000), Fraction(10**8)):
        sampler = gaussian_sampler(s)
        rows = 3 if isinstance(sampler, Refined) else 1
        chance = np.random.default_rng(3)
        words = [chance.integers(2**62, 2**63, size=9, dtype=np.uint64) * np.uint64(2) for _ in range(rows)]
        for loc in (0, 12, -(10**30)):
            monkeypatch.setattr(module, "SYSTEM", Script(*words))
            wanted = sampler.array(9, Script(*words)).tolist()
            assert DiscreteGaussian(s, loc).sample(9).tolist() == [loc + x for x in wanted]
            monkeypatch.setattr(module, "SYSTEM", Script(b"".join(w[:1].tobytes() for w in words)))
            assert DiscreteGaussian(s, loc).sample() == loc + wanted[0]


@pytest.mark.parametrize("t", ["1e20", "1e40", "1e300"])
@pytest.mark.parametrize("s", ["1e-6", "1", "1e6"])
def test_tails_far_beyond_the_noise_take_no_time(s: str, t: str) -> None:
    assert DiscreteGaussian(s).tail(t).upper < Fraction(1, 10**300)
