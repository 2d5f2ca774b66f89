"""Renyi prices: against sums over the distributions themselves, published values, and wrong formulas."""

import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from privet.exact import Exact, ball, ends, precision
from privet.noise import DiscreteLaplace
from privet.privacy import renyi

orders = st.integers(2, 60)
TINY = Fraction(1, 2**60)


def summed(alpha: int, scale: Fraction, shift: int) -> tuple[Fraction, Fraction]:
    """The divergence of two discrete Laplace distributions by a sum over the integers, enclosed."""
    reach = shift + int(80 * scale) + 80
    with precision(256):
        p, q = (
            {k: ball(1 / (2 * scale)).tanh() * (-ball(Exact(abs(k - loc)) / scale)).exp() for k in range(-reach, reach)}
            for loc in (0, shift)
        )
        total = sum((p[k] ** alpha * q[k] ** (1 - alpha) for k in p), arb(0))
        left_out = 2 * (-ball(Exact(reach - alpha * shift) / scale)).exp()
        both = [ends(each.log() / (alpha - 1)) for each in (total, total + left_out)]
    return both[0].lower, both[1].upper


@given(orders.filter(lambda alpha: alpha < 12), st.fractions("0.1", 6, max_denominator=20), st.integers(0, 4))
def test_laplace_is_the_sum_over_the_integers(alpha: int, scale: Fraction, shift: int) -> None:
    lower, upper = summed(alpha, scale, shift)
    (price,) = renyi.laplace((alpha,), scale, shift)
    assert lower <= price <= upper + TINY


@given(orders, st.fractions("0.01", 8, max_denominator=100))
def test_one_step_of_laplace_is_randomized_response(alpha: int, epsilon: Fraction) -> None:
    (one,), (response,) = renyi.laplace((alpha,), 1 / epsilon, 1), renyi.randomized_response((alpha,), epsilon)
    assert abs(one - response) < TINY


@given(orders, st.fractions("0.1", 50, max_denominator=20), st.integers(1, 50), st.integers(1, 50))
def test_the_worst_split_of_a_move_is_one_coordinate(alpha: int, scale: Fraction, a: int, b: int) -> None:
    (first,), (second,), (both,) = (renyi.laplace((alpha,), scale, shift) for shift in (a, b, a + b))
    assert first + second <= both + TINY


@given(orders, st.fractions("0.1", 10**9, max_denominator=20), st.integers(1, 10**6))
def test_no_mechanism_of_pure_privacy_costs_more_than_randomized_response(
    alpha: int, scale: Fraction, shift: int
) -> None:
    epsilon = shift / scale
    (price,), (response,) = renyi.laplace((alpha,), scale, shift), renyi.randomized_response((alpha,), epsilon)
    (choice,) = renyi.bounded_range((alpha,), epsilon)
    assert 0 < choice <= response + TINY
    assert 0 < price <= response + TINY
    assert response <= epsilon + TINY
    assert response <= alpha * epsilon**2 / 2 + TINY
    assert choice <= alpha * epsilon**2 / 8 + TINY


@given(orders.filter(lambda alpha: alpha < 30), st.floats(0.01, 5))
def test_bounded_range_is_the_worst_of_two_log_ratios(alpha: int, epsilon: float) -> None:
    def divergence(t: float) -> float:
        q = -math.expm1(t - epsilon) / (math.exp(t) - math.exp(t - epsilon))
        return math.log(q * math.exp(alpha * t) + (1 - q) * math.exp(alpha * (t - epsilon))) / (alpha - 1)

    best = minimize_scalar(lambda t: -divergence(t), bounds=(0, epsilon), method="bounded", options={"xatol": 1e-12})
    (price,) = renyi.bounded_range((alpha,), Fraction(epsilon))
    assert float(price) == pytest.approx(-best.fun, rel=1e-6)


def test_published_values() -> None:
    """The closed form at order 1.0001 is .12331 (epsilon 1); in the limit of order 1 dp_accounting has .123301561."""
    epsilon = 1.0

    def closed(alpha: float) -> float:
        whole = -math.expm1(-alpha * epsilon)
        t = math.log((alpha - 1) / alpha * whole / (math.exp(-epsilon) - math.exp(-alpha * epsilon)))
        return t + math.log(whole / (alpha * -math.expm1(-epsilon))) / (alpha - 1)

    assert closed(1.0001) == pytest.approx(0.12331, abs=5e-6)
    assert closed(2) == pytest.approx(float(renyi.bounded_range((2,), Exact(1))[0]), rel=1e-12)
    assert float(renyi.allowance(22, Exact(1), Exact(1, 10**6))) == pytest.approx(0.5358, abs=5e-5)
    assert renyi.concentrated((2, 22), Exact(1, 4)) == (Fraction(1, 2), Fraction(11, 2))


def test_the_continuous_formula_would_charge_too_little() -> None:
    """For one step at epsilon 1 the Kullback-Leibler divergence is 0.462, and 0.368 for continuous noise."""

    def continuous(alpha: float, epsilon: float) -> float:
        rest = 2 * alpha - 1
        parts = alpha / rest * math.exp((alpha - 1) * epsilon) + (alpha - 1) / rest * math.exp(-alpha * epsilon)
        return math.log(parts) / (alpha - 1)

    assert continuous(1 + 1e-6, 1) == pytest.approx(0.36787944, abs=1e-5)
    X = DiscreteLaplace(1)
    divergence = sum(float(X.pmf(k)) * (abs(k - 1) - abs(k)) for k in range(-60, 60))
    assert divergence == pytest.approx(0.46211716, abs=1e-8)
    for alpha in (2, 5, 22):
        assert continuous(alpha, 1) < 0.99 * float(renyi.laplace((alpha,), Exact(1), 1)[0])
        fine = renyi.laplace((alpha,), Exact(2**20), 2**20)[0]  # a fine lattice comes close to continuous noise
        assert float(fine) == pytest.approx(continuous(alpha, 1), rel=1e-5)


@given(orders, st.fractions("0.001", 20, max_denominator=1000), st.fractions("1e-12", "0.5", max_denominator=10**12))
def test_the_allowance_implies_its_delta(alpha: int, epsilon: Fraction, delta: Fraction) -> None:
    """For the worst x, the bound on (1 - e^(epsilon - x))+ is an equality; and rounded, the allowance is no larger."""
    allowed = float(renyi.allowance(alpha, epsilon, delta))
    x = float(epsilon) - math.log1p(-1 / alpha)
    mass = math.exp((alpha - 1) * (allowed - x))  # of the point with log ratio x
    if allowed:
        assert mass * -math.expm1(float(epsilon) - x) <= float(delta) * (1 + 1e-9)
        assert mass * -math.expm1(float(epsilon) - x) >= float(delta) * (1 - 1e-9)


@pytest.mark.parametrize("scale", [10**3, 10**9, 10**30, 10**100])
def test_large_scales_keep_their_digits(scale: int) -> None:
    """There a price is alpha/2 (shift/scale)^2 or so, which has to be found as a tiny difference."""
    (price,) = renyi.laplace((22,), Exact(scale), 1)
    grid = Fraction(1, 2**128)
    assert price > 0
    if scale < 10**15:
        assert float(price) == pytest.approx(11 / scale**2, rel=1e-2)
    else:
        assert price == grid, "rounded up, never to nothing"
