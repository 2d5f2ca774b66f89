"""The geometric distribution against scipy, its definition, and the difference of two that is discrete Laplace."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privet.errors import NumberError
from privet.noise import DiscreteLaplace, Geometric

scales = st.one_of(
    st.fractions(min_value=Fraction(1, 100), max_value=50, max_denominator=100),
    st.integers(1, 10**18).map(Fraction),
)
levels = st.fractions(min_value=Fraction(1, 10**6), max_value=1 - Fraction(1, 10**6), max_denominator=10**6)


@pytest.mark.parametrize("scale", [0.3, 1, 2.5, 40, 1000])
def test_against_scipy(scale: float) -> None:
    ours, theirs = Geometric(scale), stats.geom(-math.expm1(-1 / scale), loc=-1)  # scipy counts from 1
    for k in [0, 1, 2, 7, 30, int(5 * scale)]:
        assert float(ours.pmf(k)) == pytest.approx(theirs.pmf(k), rel=1e-10)
        assert float(ours.cdf(k)) == pytest.approx(theirs.cdf(k), rel=1e-10)
        assert float(ours.tail(k)) == pytest.approx(theirs.sf(k - 1), rel=1e-10)
    for p in (0.01, 0.3, 0.5, 0.9, 0.99):
        assert ours.quantile(p) == theirs.ppf(p)


@settings(max_examples=40)
@given(scales, st.integers(0, 60))
def test_from_the_definition(scale: Fraction, step: int) -> None:
    k = step if scale < 10 else int(step * scale / 10)
    with localcontext() as context:
        context.prec = 120
        q = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        wanted = (1 - q) * q**k, 1 - q ** (k + 1), q**k
    found = Geometric(scale).pmf(k), Geometric(scale).cdf(k), Geometric(scale).tail(k)
    for enclosure, value in zip(found, wanted, strict=True):
        slack = Fraction(value) / 10**50
        assert enclosure.lower - slack <= Fraction(value) <= enclosure.upper + slack
        assert enclosure.width <= enclosure.upper / 2**60


@given(scales, levels)
def test_the_quantile_is_the_smallest_value_that_reaches(scale: Fraction, p: Fraction) -> None:
    k = Geometric(scale).quantile(p)
    assert Geometric(scale).cdf(k).upper >= p
    assert k == 0 or Geometric(scale).cdf(k - 1).lower < p


@pytest.mark.parametrize("scale", ["1/2", "2", "5"])
def test_a_difference_of_two_is_discrete_laplace(scale: str) -> None:
    geometric, laplace = Geometric(scale), DiscreteLaplace(scale)
    masses = [geometric.pmf(k).upper for k in range(int(120 * geometric.scale))]
    for d in (0, 1, 2, 5):
        product = sum((a * b for a, b in zip(masses, masses[d:], strict=False)), Fraction(0))
        assert abs(product - laplace.pmf(d).upper) < Fraction(1, 10**15)


@pytest.mark.parametrize("scale", ["3", "40"])
def test_digits_of_a_geometric_variable_are_independent(scale: str) -> None:
    """P(low, high) = P(low) P(high) for base 256: the fact that the sampler rests on, in numbers."""
    geometric = Geometric(scale)
    low = {a: sum((geometric.pmf(a + 256 * b).upper for b in range(40)), Fraction(0)) for a in (0, 1, 100, 255)}
    high = {b: geometric.tail(256 * b).upper - geometric.tail(256 * (b + 1)).upper for b in (0, 1, 2)}
    for a, mass in low.items():
        for b, other in high.items():
            assert abs(mass * other / geometric.pmf(a + 256 * b).upper - 1) < Fraction(1, 10**15)


def test_below_zero_there_is_nothing() -> None:
    geometric = Geometric(3)
    assert geometric.pmf(-1).upper == geometric.cdf(-1).upper == 0
    assert geometric.tail(0).lower == geometric.tail(-5).upper == 1
    assert min(geometric.sample(5000)) == 0


@pytest.mark.parametrize("scale", ["1e-2", "1e-9", "1e-300"])
def test_tiny_scales(scale: str) -> None:
    """e^(-1/scale) may be too small for any table, and then 1 - q can't be told from 1."""
    assert Geometric(scale).sample() == 0
    assert Geometric(scale).sample(5000).sum() == 0
    assert Geometric(scale).quantile("0.999") == 0


@pytest.mark.parametrize("bad", [0, -1, float("nan"), True, "x", None])
def test_bad_scales_are_refused(bad: Any) -> None:
    with pytest.raises(NumberError, match="scale must be"):
        Geometric(bad)
