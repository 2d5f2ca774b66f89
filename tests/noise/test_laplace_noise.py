"""The discrete Laplace distribution against published values, other libraries and its own definition."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privet import accuracy
from privet.audit.script import Script
from privet.errors import NumberError
from privet.noise import DiscreteLaplace, Geometric
from privet.noise import laplace as module
from privet.noise.laplace import laplace_digits

scales = st.one_of(
    st.fractions(min_value=Fraction(1, 1000), max_value=50, max_denominator=1000),
    st.integers(1, 10**15).map(Fraction),
    st.fractions(min_value=10**15, max_value=10**24, max_denominator=997),
)
levels = st.fractions(min_value=Fraction(1, 10**6), max_value=1 - Fraction(1, 10**6), max_denominator=10**6)


def q_of(scale: Fraction) -> Decimal:
    """e^(-1/scale) to 100 digits, by another arithmetic than the package's."""
    return (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()


def between(found: Any, value: Decimal, digits: int = 60) -> bool:
    """Whether an enclosure holds a number that is known to many digits, and is itself narrow."""
    slack = Fraction(abs(value)) / 10**digits
    narrow = found.width <= abs(found.upper) / 2**60
    return bool(narrow and found.lower - slack <= Fraction(value) <= found.upper + slack)


@settings(max_examples=40)
@given(scales, st.integers(-3000, 3000), st.integers(-5, 5))
def test_pmf_cdf_tail_and_variance_from_the_definition(scale: Fraction, k: int, loc: int) -> None:
    noise = DiscreteLaplace(scale, loc)
    away = max(-(10**4), min(10**4, k if scale < 100 else int(k * scale / 500)))
    if abs(away) > 10_000 * scale:
        away = int(10_000 * scale)
    with localcontext() as context:
        context.prec = 130
        q = q_of(scale)
        centre = (1 - q) / (1 + q)
        lower = q ** abs(away) / (1 + q)  # P(X <= -|away|) for away != 0, a geometric series
        assert between(noise.pmf(loc + away), centre * q ** abs(away))
        assert between(noise.pmf(loc - away), centre * q ** abs(away))
        if away:
            assert between(noise.cdf(loc - abs(away)), lower)
            assert between(noise.cdf(loc + abs(away) - 1), 1 - lower)
            assert between(noise.tail(abs(away)), 2 * lower)
            assert between(noise.tail(Fraction(2 * abs(away) - 1, 2)), 2 * lower)
        assert between(noise.variance, 2 * q / (1 - q) ** 2)


@pytest.mark.parametrize("scale", [0.3, 0.7, 1, 2.5, 10, 123.4])
def test_against_scipy(scale: float) -> None:
    ours, theirs = DiscreteLaplace(scale), stats.dlaplace(1 / scale)
    for k in [*range(-12, 13), 40, -40]:
        assert float(ours.pmf(k)) == pytest.approx(theirs.pmf(k), rel=1e-12)
        assert float(ours.cdf(k)) == pytest.approx(theirs.cdf(k), rel=1e-12)
    assert float(ours.variance) == pytest.approx(theirs.var(), rel=1e-9)
    for p in (0.001, 0.025, 0.2, 0.5, 0.6, 0.9, 0.975, 0.9999):
        assert ours.quantile(p) == theirs.ppf(p)


@pytest.mark.parametrize("scale", ["1/4", "1", "2.5", "7"])
def test_sums_of_the_pmf(scale: str) -> None:
    noise = DiscreteLaplace(scale)
    reach = int(200 * noise.scale)
    masses = {k: noise.pmf(k).upper for k in range(-reach, reach + 1)}
    assert abs(sum(masses.values(), Fraction(0)) - 1) < Fraction(1, 10**15)
    second = sum((k * k * m for k, m in masses.items()), Fraction(0))
    assert abs(second - noise.variance.upper) < Fraction(1, 10**10)
    assert sum((k * m for k, m in masses.items()), Fraction(0)) == 0
    for edge in (-3, -1, 0, 2):
        assert abs(sum(m for x, m in masses.items() if x <= edge) - noise.cdf(edge).upper) < Fraction(1, 10**15)
    for t in (1, 2, 5):
        assert abs(sum(m for x, m in masses.items() if abs(x) >= t) - noise.tail(t).upper) < Fraction(1, 10**15)


@pytest.mark.parametrize(("scale", "opendp", "whole"), [(1, 3.3756177665957137, 3), (2, 6.42960493986766, 6)])
def test_accuracy_as_opendp_publishes_it(scale: int, opendp: float, whole: int) -> None:
    """OpenDP interpolates: the real t with P(|X| >= t) = 0.05; the integer quantile is its floor."""
    noise = DiscreteLaplace(scale)
    assert accuracy.error(noise, 0.95) == math.floor(opendp) == whole
    q = math.exp(-1 / scale)
    assert 2 * q**opendp / (1 + q) == pytest.approx(0.05, rel=1e-12)
    assert float(noise.tail(whole)) > 0.05 >= float(noise.tail(whole + 1))


@pytest.mark.parametrize("scale", ["1/50", "1/2", "1", "3", "1000", "1e12"])
def test_mass_at_the_centre_is_tanh(scale: str) -> None:
    noise = DiscreteLaplace(scale)
    assert float(noise.pmf(0)) == pytest.approx(math.tanh(1 / (2 * float(noise.scale))), rel=1e-14)
    assert float(noise.variance) == pytest.approx(1 / (2 * math.sinh(0.5 / float(noise.scale)) ** 2), rel=1e-12)


@given(scales, levels, st.integers(-(10**20), 10**20))
def test_the_quantile_is_the_smallest_value_that_reaches(scale: Fraction, p: Fraction, loc: int) -> None:
    noise = DiscreteLaplace(scale, loc)
    k = noise.quantile(p)
    assert noise.cdf(k).upper >= p
    assert noise.cdf(k - 1).lower < p


@given(scales, st.integers(-40, 40))
def test_the_quantile_is_sharp_beside_each_boundary(scale: Fraction, step: int) -> None:
    noise = DiscreteLaplace(scale)
    k = step if scale < 10 else int(step * scale / 10)
    at = noise.cdf(k)
    if at.lower < Fraction(1, 10**300) or at.upper >= 1:
        return
    assert noise.quantile(at.lower * (1 - Fraction(1, 10**6))) <= k
    assert noise.quantile(at.lower) == k or at.lower <= noise.cdf(k - 1).upper
    if at.upper + Fraction(1, 2**58) < 1 and noise.pmf(k + 1).lower > Fraction(1, 2**50):
        assert noise.quantile(at.upper + Fraction(1, 2**58)) == k + 1


def test_the_median_and_symmetry() -> None:
    for scale in ("1/1000", "1", "37", "1e20"):
        noise = DiscreteLaplace(scale)
        assert noise.quantile("1/2") == 0
        # F(-1) < 1/2 < F(0), so a mirrored level gives the mirrored value except exactly at a boundary
        assert noise.quantile("0.9") == -noise.quantile("0.1")
        assert noise.at(7).quantile("0.9") == noise.quantile("0.9") + 7


@given(scales, st.fractions(min_value=0, max_value=30, max_denominator=7), levels)
def test_error_and_tail_bounds(scale: Fraction, t: Fraction, confidence: Fraction) -> None:
    noise = DiscreteLaplace(scale)
    exponential = float(2 * math.exp(-float(t / scale))) if t / scale < 600 else 0.0
    assert float(noise.tail(t)) <= exponential * (1 + 1e-12) or t == 0 or t / scale >= 600
    bound = int(accuracy.error(noise, confidence))
    assert 1 - noise.tail(bound + 1).lower >= confidence
    assert bound == 0 or 1 - noise.tail(bound).upper < confidence


def test_one_value_and_no_tail() -> None:
    noise = DiscreteLaplace(3)
    assert noise.tail(0).lower == noise.tail(-2).upper == 1
    assert noise.tail("0.0001").lower < 1


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "x", None, "1e400"])
def test_bad_scales_are_refused(bad: Any) -> None:
    with pytest.raises(NumberError, match=r"scale must be .* Write, for example: DiscreteLaplace\(scale=2\)"):
        DiscreteLaplace(bad)


@pytest.mark.parametrize("bad", [1.5, float("nan"), True, "x", None])
def test_bad_centres_are_refused(bad: Any) -> None:
    with pytest.raises(NumberError, match="loc must be"):
        DiscreteLaplace(2, bad)
    assert DiscreteLaplace(2, np.int64(3)).loc == 3  # type: ignore[arg-type]


@pytest.mark.parametrize("p", [0, 1, -0.1, 1.1, float("nan")])
def test_levels_outside_of_0_1_are_refused(p: float) -> None:
    with pytest.raises(NumberError):
        DiscreteLaplace(2).quantile(p)


@pytest.mark.parametrize("scale", ["1/1000", "1e-9", "1e-300"])
def test_noise_that_is_all_but_nothing(scale: str) -> None:
    noise = DiscreteLaplace(scale)
    assert noise.sample() == 0
    assert noise.sample(5).tolist() == [0] * 5
    assert noise.quantile("0.999999") == accuracy.error(noise, "0.999999") == 0


@given(scales, st.integers(-50, 50), st.fractions(min_value=0, max_value=3, max_denominator=20))
def test_where_one_copy_leads(scale: Fraction, shift: int, epsilon: Fraction) -> None:
    """`likelier_below` is the last k with p(k) > e^epsilon q(k), by the exponents themselves."""
    p, q = DiscreteLaplace(scale), DiscreteLaplace(scale, abs(shift))
    end = p.likelier_below(q, epsilon)

    def leads(k: int) -> bool:
        return (abs(k - abs(shift)) - abs(k)) / scale > epsilon

    assert p.log_ratio(q) == abs(shift) / scale
    if end is None:
        assert not any(leads(k) for k in range(-3, abs(shift) + 3))
    else:
        assert leads(end)
        assert leads(end - 5)
        assert not leads(end + 1)


def test_sample_is_the_verified_sampler_plus_the_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last link from `sample` to what `verify_sampler` certifies."""
    scale = Fraction(5000)
    digits = laplace_digits(scale)
    chance = np.random.default_rng(3)
    words = [chance.integers(0, 2**63, size=9, dtype=np.uint64) * np.uint64(2) for _ in digits.levels]
    for loc in (0, 12, -(10**30)):
        monkeypatch.setattr(module, "SYSTEM", Script(*words))
        wanted = digits.array(9, Script(*words)).tolist()
        assert DiscreteLaplace(scale, loc).sample(9).tolist() == [loc + x for x in wanted]
        single = b"".join(w[:1].tobytes() for w in words)
        monkeypatch.setattr(module, "SYSTEM", Script(single))
        assert DiscreteLaplace(scale, loc).sample() == loc + wanted[0]


@pytest.mark.parametrize("by", [0, 5, -5, 2**63 - 3, -(2**63) + 3, 2**63, -(2**63) - 1, 2**80])
def test_a_centre_far_out_never_wraps(by: int) -> None:
    drawn = DiscreteLaplace(2, loc=by).sample(100).tolist()
    assert all(abs(x - by) < 200 for x in drawn)
    assert DiscreteLaplace(2, loc=by).sample(0).tolist() == []


def test_between_the_integers_there_is_nothing() -> None:
    noise = DiscreteLaplace(1)
    assert noise.pmf(0.5).upper == 0  # type: ignore[arg-type]
    assert noise.cdf(0.5) == noise.cdf(0)  # type: ignore[arg-type]
    assert noise.cdf(-0.5) == noise.cdf(-1)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [-1, 2.5, "x", (2, 3), True])
def test_bad_sizes_are_refused(size: Any) -> None:
    with pytest.raises(NumberError, match=r"sample\(1000\)"):
        DiscreteLaplace(2).sample(size)


@pytest.mark.parametrize("scale", [2**2048 + 1, Fraction(10) ** 700])
def test_a_scale_of_too_many_tables_is_refused(scale: Any) -> None:
    with pytest.raises(NumberError, match="at most 2\\^2048"):
        DiscreteLaplace(scale)
    with pytest.raises(NumberError, match="at most 2\\^2048"):
        Geometric(scale)
    assert isinstance(DiscreteLaplace(2**2048).sample(), int)


def test_nobody_can_write_to_the_tables() -> None:
    level = laplace_digits(Fraction(3)).levels[0]
    for table in (level.prefixes, level.ladder, level.cells):
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 1
