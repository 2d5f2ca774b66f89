"""Staircase noise: exact pmf, exact draws, exact privacy, least error; on vectors it is not private."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import fmpq

from privet.audit import verify_sampler
from privet.audit.script import Script
from privet.errors import DataError, NumberError
from privet.exact import ball, precision
from privet.mechanisms import Laplace, Staircase
from privet.noise import DiscreteLaplace, DiscreteStaircase, Geometric

CASES = [(1, "1"), (2, "1/2"), (5, "3"), (20, "1"), (20, "1/100"), (7, "8")]


def staircase(width: int, sensitivity: int, b: Any, reach: int) -> dict[int, Any]:
    """The pmf as Geng and Viswanath write it: two heights on one period, then b times the period before."""
    a = (1 - b) / (2 * width + 2 * b * (sensitivity - width) - (1 - b))

    def at(i: int) -> Any:
        if i < 0:
            return at(-i)
        k, j = divmod(i, sensitivity)
        return a * b**k * (1 if j < width else b)

    return {i: at(i) for i in range(-reach, reach + 1)}


@pytest.mark.parametrize(("sensitivity", "epsilon"), CASES)
def test_the_pmf_is_the_published_one(sensitivity: int, epsilon: str) -> None:
    noise = DiscreteStaircase(sensitivity=sensitivity, epsilon=epsilon)
    reach = 5 * sensitivity
    with precision(200):
        law = staircase(noise.width, sensitivity, ball(-Fraction(epsilon)).exp(), reach)
    total = 0.0
    for i, p in law.items():
        assert float(noise.pmf(i)) == pytest.approx(float(p), rel=1e-14)
        total += float(noise.pmf(i))
        assert float(noise.cdf(i)) == pytest.approx(float(noise.cdf(-reach - 1)) + total, rel=1e-12)
    assert float(noise.tail(reach + 1)) == pytest.approx(1 - total, abs=1e-12)
    assert noise.pmf(Fraction(1, 2)).upper == 0  # type: ignore[arg-type]
    assert noise.tail(0).lower == 1


@pytest.mark.parametrize(("sensitivity", "epsilon"), CASES)
def test_quantiles_invert_the_cdf(sensitivity: int, epsilon: str) -> None:
    noise = DiscreteStaircase(sensitivity=sensitivity, epsilon=epsilon)
    for p in (Fraction(1, 1000), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(39, 40), Fraction(999, 1000)):
        k = noise.quantile(p)
        assert noise.cdf(k).upper >= p
        assert noise.cdf(k - 1) < p


def test_sensitivity_one_is_discrete_laplace() -> None:
    for k in range(-5, 6):
        left, right = DiscreteStaircase(sensitivity=1, epsilon="0.7").pmf(k), DiscreteLaplace("10/7").pmf(k)
        assert float(left) == pytest.approx(float(right), rel=1e-14)


# --- privacy ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "sensitivity"), [(1, 1), (1, 4), (2, 4), (4, 4), (3, 7)])
def test_every_move_within_the_sensitivity_is_hidden_exactly(width: int, sensitivity: int) -> None:
    """In exact rationals, e^epsilon = 3: ratios never exceed it, and one step more does."""
    law = staircase(width, sensitivity, fmpq(1, 3), 9 * sensitivity)
    inside = range(-6 * sensitivity, 6 * sensitivity + 1)
    for move in range(1, sensitivity + 1):
        assert all(fmpq(1, 3) * law[i + move] <= law[i] <= 3 * law[i + move] for i in inside)
    assert any(law[i] > 3 * law[i + sensitivity + 1] for i in inside)


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 1), (5, 3), (8, "1/2"), (7, 8)])
def test_the_profile_is_the_sum_over_all_integers(sensitivity: int, epsilon: Any) -> None:
    mechanism = Staircase(sensitivity=sensitivity, epsilon=epsilon)
    top = float(Fraction(epsilon))
    law = staircase(mechanism.noise.width, sensitivity, math.exp(-top), int(60 * sensitivity / top) + sensitivity)
    for x in (0.0, top / 3, top * 0.99):
        deltas = [
            sum(max(0.0, p - math.exp(x) * law.get(i - move, 0.0)) for i, p in law.items() if i - move in law)
            for move in range(1, sensitivity + 1)
        ]
        assert float(mechanism.privacy_profile()(x)) == pytest.approx(max(deltas), rel=1e-9)
    assert mechanism.privacy_profile()(epsilon).upper == 0


def test_on_a_vector_it_is_caught() -> None:
    """A move of L1 norm 2, one in each of two coordinates, costs twice epsilon: each can cross a step."""
    law = staircase(1, 2, fmpq(1, 3), 12)
    ratios = [law[x] * law[y] / (law[x + 1] * law[y + 1]) for x, y in product(range(-6, 6), repeat=2)]
    assert max(ratios) == 9
    for value in ([1, 2], (3,), np.array([1, 2]), 0.5, "1", None, True):
        with pytest.raises(DataError, match=r"Write, for example: release\(1234\)|release"):
            Staircase(sensitivity=2, epsilon=1).release(value)  # type: ignore[arg-type]


# --- least error ------------------------------------------------------------------------------


@pytest.mark.parametrize(("sensitivity", "epsilon"), [*CASES, (50, "2"), (31, "1/3")])
def test_no_other_width_has_a_smaller_error(sensitivity: int, epsilon: str) -> None:
    noise = DiscreteStaircase(sensitivity=sensitivity, epsilon=epsilon)
    b = math.exp(-Fraction(epsilon))

    def mean_size(width: int) -> float:
        law = staircase(width, sensitivity, b, int(50 * sensitivity / Fraction(epsilon)) + sensitivity)
        return float(sum(abs(i) * p for i, p in law.items()))

    widths = range(1, sensitivity + 1) if sensitivity <= 7 else {1, noise.width - 1, noise.width + 1, sensitivity}
    best = mean_size(noise.width)
    assert float(noise.mean_size) == pytest.approx(best, rel=1e-9)
    assert all(best <= mean_size(width) * (1 + 1e-12) for width in widths if width >= 1)


def test_it_beats_laplace_noise_for_large_epsilon() -> None:
    stairs, plain = Staircase(sensitivity=100, epsilon=5), Laplace(sensitivity=100, epsilon=5)
    assert float(stairs.noise.mean_size) < 9 < 19 < float(plain.scale)
    assert stairs.error(0.5) < plain.error(0.5)
    assert DiscreteStaircase(sensitivity=10**30, epsilon=1).width == pytest.approx(1e30 / (1 + math.exp(0.5)), rel=1e-9)


# --- draws ------------------------------------------------------------------------------------


def drawn(noise: DiscreteStaircase, word: int, more: list[bytes], level: bytes, near: bytes, far: bytes) -> int:
    script = Script(word.to_bytes(8, "little"), *more, level, near, far)
    value = noise.draw(script)
    script.finish()
    return value


def test_the_level_is_decided_by_the_exact_probability() -> None:
    """Sensitivity 2, width 1 at epsilon 3: level 0 is the integer 0; then 2 sensitivity integers on each level."""
    noise = DiscreteStaircase(sensitivity=2, epsilon=3)
    assert noise.width == 1
    with precision(400):
        b = ball(Fraction(-3)).exp()
        cut = int(((1 - b) / (1 + 3 * b) * 2**192).floor().fmpz())
    word, rest = cut >> 128, cut >> 64 & (1 << 64) - 1
    zero, no = bytes(8), b""
    assert drawn(noise, word - 1, [], zero, no, b"\x00") == 0
    assert drawn(noise, word + 1, [], zero, no, b"\x00") == -1
    assert drawn(noise, word, [(rest - 1).to_bytes(8, "little")], zero, no, b"\x00") == 0
    assert drawn(noise, word, [(rest + 1).to_bytes(8, "little")], zero, no, b"\x00") == -1
    values = [drawn(noise, (1 << 64) - 1, [], zero, no, bytes([pick << 6])) for pick in range(4)]
    assert sorted(values) == [-2, -1, 1, 2]
    high = ((1 << 64) - (1 << 59)).to_bytes(8, "little")  # the geometric variable's second value: from 1 - e^-3 on
    far = {drawn(noise, (1 << 64) - 1, [], high, no, bytes([pick << 6])) for pick in range(4)}
    assert far == {-4, -3, 3, 4}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1", "3", "1/100"])
def test_the_levels_sampler_is_exact(epsilon: str) -> None:
    assert verify_sampler(Geometric(1 / Fraction(epsilon))).exact


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(5, "1"), (20, "3"), (1, "1")])
def test_draws_follow_the_pmf_and_a_wrong_one_is_seen(sensitivity: int, epsilon: str) -> None:
    noise, count = DiscreteStaircase(sensitivity=sensitivity, epsilon=epsilon), 8000
    values = np.array([noise.sample() for _ in range(count)])

    def surprise(claimed: Any) -> float:
        edges = sorted({claimed.quantile(Fraction(i, 12)) for i in range(1, 12)})
        masses = np.diff([0.0, *(float(claimed.cdf(e)) for e in edges), 1.0]) * count
        seen = np.bincount(np.searchsorted(edges, values), minlength=len(masses))
        return float((((seen - masses) ** 2) / masses).sum())

    assert surprise(noise) < 120
    for factor in (Fraction(14, 10), Fraction(10, 14)):
        assert surprise(DiscreteStaircase(sensitivity=sensitivity, epsilon=Fraction(epsilon) * factor)) > 120
    if sensitivity == 20:  # Laplace noise of the same price is told apart
        assert surprise(DiscreteLaplace(Fraction(sensitivity) / Fraction(epsilon))) > 120


# --- the face ---------------------------------------------------------------------------------


def test_error_tail_and_interval_agree() -> None:
    mechanism = Staircase(sensitivity=10, epsilon=1)
    for level in (0.5, 0.9, 0.99):
        bound = mechanism.error(level)
        assert mechanism.tail(bound + 1) <= 1 - level
        assert mechanism.tail(bound) > 1 - level
        assert mechanism.interval(100, level) == (100 - bound, 100 + bound)
    assert mechanism.tail(0) == 1
    assert Staircase(sensitivity=10, epsilon=1) == mechanism
    assert repr(mechanism) == "Staircase(sensitivity=10, epsilon=1)"


def test_what_is_wrong_is_refused() -> None:
    for wrong in (0, "1/2", -3, 1.5, True):
        with pytest.raises(NumberError, match="sensitivity must be a whole number, 1 or greater"):
            Staircase(sensitivity=wrong, epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(NumberError, match="epsilon must be a number greater than 0"):
        Staircase(sensitivity=1, epsilon=0)


@pytest.mark.parametrize("epsilon", [700, 45_000, 10**6, 10**9, "1e50"])
def test_a_huge_epsilon_gives_almost_no_noise(epsilon: Any) -> None:
    """The probability of noise is below 2^-1000: less than the precision with which its complement is computed."""
    mechanism = Staircase(sensitivity=20, epsilon=epsilon)
    assert mechanism.release(5) == 5
    assert (mechanism.error(0.95), float(mechanism.privacy_profile()(0))) == (0, 1)


def test_refusals_depend_on_the_type() -> None:
    mechanism = Staircase(sensitivity=20, epsilon=1)
    for wrong in (5.0, 5.5, [5], np.array(5), True, "5", math.inf):
        with pytest.raises(DataError):
            mechanism.release(wrong)  # type: ignore[arg-type]
    for right in (5, 10**400, np.int8(5)):
        assert isinstance(mechanism.release(right), int)  # type: ignore[arg-type]
