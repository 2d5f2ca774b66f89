"""Gaussian noise: the mechanism for tables, and the bare one."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from privet.errors import DataError, InternalError, NumberError, UserError
from privet.exact.lattice import to_steps
from privet.mechanisms import GAUSSIAN, Gaussian, NoiseMechanism
from privet.mechanisms.laplace import LAPLACE
from privet.mechanisms.standalone import _squared_steps
from privet.noise import DiscreteGaussian
from privet.privacy import events
from privet.privacy.divergences import privacy_profile
from privet.privacy.gaussian import gaussian_delta
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from privet.privacy.moves import L1Move, L2Move

PRICES: list[Guarantee] = [ZeroConcentratedDP("0.02"), ApproxDP(1, "1e-6"), ApproxDP("0.1", "1e-9")]
MOVES = [L2Move(1), L2Move(18), L2Move(10**6)]
DRAWS = 40_000


# --- for tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize("coordinates", [1, 5])
def test_its_event_costs_what_it_was_calibrated_for(price: Guarantee, coordinates: int) -> None:
    scales = []
    for move in MOVES:
        scale = GAUSSIAN.calibrate(move, price, coordinates=coordinates)
        cost = GAUSSIAN.cost(move, scale=scale, coordinates=coordinates, like=price)
        assert type(cost) is type(price)
        assert cost.implies(price)
        event = GAUSSIAN.event(move, scale=scale, coordinates=coordinates, price=price)
        assert events.from_json(events.to_json(event)) == event
        if isinstance(price, ZeroConcentratedDP):
            assert cost == price
            assert event.rho == price.rho
            assert event.epsilon is None
        else:
            assert isinstance(price, ApproxDP)
            assert event.epsilon == price.epsilon
            found = gaussian_delta(event.move, event.sigma_squared, event.coordinates, price.epsilon)
            assert price.delta * (1 - Fraction(1, 10**9)) < found <= price.delta
        scales.append(scale)
    assert scales == sorted(scales)


def test_it_keeps_to_the_contract_of_priced_noise() -> None:
    for mechanism in (GAUSSIAN, LAPLACE):
        priced: NoiseMechanism = mechanism
        assert priced.prices
        assert priced.name.endswith("/1")
    assert LAPLACE.calibrate(L1Move(6), PureDP(2), coordinates=9) == 3
    assert LAPLACE.cost(L1Move(6), scale=Fraction(3), coordinates=9, like=PureDP(1)) == PureDP(2)


def test_prices_and_moves_of_another_kind_are_refused() -> None:
    with pytest.raises(InternalError):
        GAUSSIAN.calibrate(L2Move(1), PureDP(1), coordinates=1)
    with pytest.raises(InternalError):
        GAUSSIAN.cost(L2Move(1), scale=Fraction(1), coordinates=1, like=PureDP(1))
    with pytest.raises(InternalError):
        GAUSSIAN.calibrate(L1Move(1), PRICES[0], coordinates=1)
    with pytest.raises(InternalError):
        LAPLACE.calibrate(L1Move(1), PRICES[0], coordinates=1)


@pytest.mark.parametrize("rho", [Fraction(3), Fraction(1, 500)])
def test_draws_stay_within_the_error_it_states(rho: Fraction) -> None:
    move = L2Move(1)
    scale = GAUSSIAN.calibrate(move, ZeroConcentratedDP(rho), coordinates=2)
    array, event = GAUSSIAN.draw(move, scale=scale, count=2 * DRAWS, price=ZeroConcentratedDP(rho))
    assert event == GAUSSIAN.event(move, scale=scale, coordinates=2 * DRAWS), "what was drawn is what is paid for"
    draws = array.reshape(DRAWS, 2)
    assert draws.dtype == np.int64
    for weights in ([Fraction(1), Fraction(0)], [Fraction(1), Fraction(-1)], [Fraction(3), Fraction(1, 2)]):
        sums = np.abs(draws @ np.array([float(w) for w in weights]))
        for confidence in (Fraction(1, 2), Fraction(19, 20)):
            error = GAUSSIAN.error_of_sum(weights, [scale, scale], confidence)
            held = int((sums <= float(error)).sum())
            assert binomtest(held, DRAWS, float(confidence), "less").pvalue > 1e-9
            if rho < 1:
                half = int((sums <= float(error) / 2).sum())
                assert binomtest(half, DRAWS, float(confidence), "less").pvalue < 1e-9


def test_less_noise_serves_for_more_and_no_other_move() -> None:
    quiet, loud = (GAUSSIAN.event(L2Move(1), scale=Fraction(s)) for s in (4, 9))
    assert GAUSSIAN.serves(quiet, quiet)
    assert GAUSSIAN.serves(quiet, loud)
    assert not GAUSSIAN.serves(loud, quiet)
    assert not GAUSSIAN.serves(GAUSSIAN.event(L2Move(2), scale=Fraction(4)), loud)
    assert not GAUSSIAN.serves(GAUSSIAN.event(L2Move(1), scale=Fraction(4), coordinates=2), loud)
    assert not GAUSSIAN.serves(events.Free(), quiet)
    assert not GAUSSIAN.serves(LAPLACE.event(L1Move(1), scale=Fraction(1)), quiet)


# --- by itself ------------------------------------------------------------------------------------


def test_rho_sigma_and_delta_lead_to_the_noise_they_ask_for() -> None:
    by_rho, by_sigma = Gaussian(sensitivity=2, rho="0.02"), Gaussian(sensitivity=2, sigma=10)
    assert by_rho == by_sigma
    assert by_rho.noise == DiscreteGaussian(100)
    assert by_rho.sigma == 10.0
    assert by_rho.guarantee() == ZeroConcentratedDP("0.02")
    assert by_rho.event() == events.GaussianNoise(move=L2Move(4), sigma_squared=100, coordinates=1, epsilon=None)
    both = Gaussian(sensitivity=1, epsilon=3, delta="1e-6")
    assert both.guarantee() == ApproxDP(3, "1e-6")
    assert both.event().epsilon == 3
    assert 1.297e-6 > float(both.privacy_profile()(3)) > 0.999999e-6
    assert both.sigma_squared > Fraction("2.4"), "where the true delta is 1.297e-6"


def test_vectors_of_integers_get_the_noise_of_vectors() -> None:
    single = Gaussian(sensitivity=2, epsilon=3, delta="1e-6")
    vector = single.fit([1, 2, 3, 4])
    assert vector.coordinates == 4
    assert vector.sigma_squared > single.sigma_squared
    assert gaussian_delta(L2Move(4), vector.noise.sigma_squared, 4, 3) <= Fraction("1e-6")
    assert vector.fit(7) == single
    assert (
        Gaussian(sensitivity=1, epsilon=3, delta="1e-6").fit([1, 2]).sigma
        == Gaussian(sensitivity=1, epsilon=3, delta="1e-6").sigma
    )  # only one of them moves
    by_rho = Gaussian(sensitivity=2, rho=1)
    assert by_rho.fit([1, 2, 3]).noise == by_rho.noise
    assert by_rho.fit([1, 2, 3]).event().coordinates == 3


@pytest.mark.parametrize("price", [{"rho": "1/50"}, {"sigma": 5}, {"epsilon": 1, "delta": "1e-6"}])
def test_values_come_back_in_their_own_form(price: dict[str, Any]) -> None:
    mechanism = Gaussian(sensitivity=1, **price)
    assert type(mechanism.release(12)) is int
    assert type(mechanism.release(12.5)) is float
    assert [type(x) for x in mechanism.release([1, 2])] == [int, int]
    assert [type(x) for x in mechanism.release([1.5, 2])] == [float, float]
    assert mechanism.release(np.zeros((3, 2))).shape == (3, 2)
    assert mechanism.release(np.zeros(3, dtype=np.int32)).dtype == np.int64
    low, high = mechanism.interval([1, 2], 0.9)
    assert high[0] - 1 == 1 - low[0] == mechanism.fit([1, 2]).error(0.9)
    with pytest.raises(DataError):
        mechanism.release(float("nan"))


def test_published_intervals() -> None:
    """Google's: x = 21, sigma = 1, alpha .05 for continuous noise."""
    low, high = Gaussian(sensitivity=1, sigma=1, dimension=1).interval(21.0, 0.95)
    assert (low, high) == pytest.approx((19.0400360155, 22.9599639845), abs=1e-6)
    assert Gaussian(sensitivity=1, sigma=1).interval(21) == (19, 23)


@pytest.mark.parametrize("sigma", [0.7, 3, 1000])
def test_error_tail_and_draws_agree(sigma: float) -> None:
    mechanism = Gaussian(sensitivity=1, sigma=sigma)
    assert float(mechanism.tail(mechanism.error(0.9) + 1)) <= 0.1
    for value in (np.zeros(DRAWS), np.zeros(DRAWS, dtype=int)):
        fitted = mechanism.fit(value)
        errors = np.abs(mechanism.release(value))
        held = int((errors <= fitted.error(0.9)).sum())
        assert binomtest(held, DRAWS, 0.9, "less").pvalue > 1e-9
        assert fitted.tail(0) == 1.0
    if sigma > 100:
        assert mechanism.error(0.9) == pytest.approx(norm.ppf(0.95) * sigma, rel=1e-2)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.fractions(min_value=-9, max_value=9, max_denominator=64), min_size=1, max_size=5),
    st.lists(st.fractions(min_value=-3, max_value=3, max_denominator=64), min_size=5, max_size=5),
    st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 8)]),
)
def test_rounding_is_paid_for_in_l2(value: list[Fraction], by: list[Fraction], step: Fraction) -> None:
    """Neighbours on the lattice are no further apart than the move that noise was made for."""
    shift = by[: len(value)]
    distance = Fraction(math.isqrt(int(sum(x * x for x in shift) * 10**12)) + 1, 10**6)
    moved = [to_steps(v + d, step) - to_steps(v, step) for v, d in zip(value, shift, strict=True)]
    assert sum(m * m for m in moved) <= _squared_steps(distance / step, len(value))


def test_forgetting_the_rounding_would_be_too_little() -> None:
    """The broken twin takes the distance itself: two values half a step apart can be a whole step apart."""
    assert to_steps(Fraction(1, 2), Fraction(1)) - to_steps(Fraction(499, 1000), Fraction(1)) == 1
    assert _squared_steps(Fraction(1, 1000), 1) == 1
    assert math.floor(Fraction(1, 1000) ** 2) == 0
    assert _squared_steps(Fraction(2), None) == 4
    assert _squared_steps(Fraction("1.4143"), None) == 2
    assert _squared_steps(Fraction(1, 2), None) == 1


def test_a_chosen_step_is_kept() -> None:
    mechanism = Gaussian(sensitivity=1, rho=1, step="1/4", dimension=2)
    assert repr(mechanism) == "Gaussian(sensitivity=1, rho=1, step=0.25, dimension=2)"
    assert mechanism.release([0.5, 0.25])[0] % 0.25 == 0
    with pytest.raises(DataError, match=r"Gaussian\(\.\.\., step=0.25, dimension=3\)"):
        mechanism.release([0.5, 0.25, 1.0])
    assert repr(Gaussian(sensitivity=1, epsilon=1, delta="1e-6")) == "Gaussian(sensitivity=1, epsilon=1, delta=1e-6)"
    by_step = Gaussian(sensitivity="1.4143", rho=1, step=1)
    assert by_step.move == L2Move(2)
    assert type(by_step.release([3, 4])[0]) is int
    assert by_step.fit([3, 4]).step == 1


@pytest.mark.parametrize(
    "price",
    [
        {},
        {"rho": 1, "sigma": 1},
        {"epsilon": 1},
        {"delta": "1e-6"},
        {"rho": 1, "epsilon": 1, "delta": "1e-6"},
        {"rho": 0},
        {"sigma": -1},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"epsilon": -1, "delta": "1e-6"},
    ],
)
def test_prices_that_make_no_sense_are_refused(price: dict[str, Any]) -> None:
    with pytest.raises(NumberError):
        Gaussian(sensitivity=1, **price)


@pytest.mark.parametrize("sensitivity", [0, -1, float("nan"), "x"])
def test_bad_sensitivities_are_refused(sensitivity: Any) -> None:
    with pytest.raises(NumberError):
        Gaussian(sensitivity=sensitivity, rho=1)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("0.1", "1e-9"), (5, "1e-4")])
def test_the_profile_shows_what_was_claimed_and_catches_less_noise(epsilon: Any, delta: str) -> None:
    """Claimed against exact, by the hockey-stick divergence of neighbours; half the noise is the broken twin."""
    mechanism = Gaussian(sensitivity=3, epsilon=epsilon, delta=delta)
    assert mechanism.privacy_profile()(epsilon).upper <= Fraction(delta)
    half = DiscreteGaussian(mechanism.noise.sigma_squared / 4)
    assert privacy_profile(half, half.at(3))(epsilon).lower > Fraction(delta)
    barely = DiscreteGaussian(mechanism.noise.sigma_squared * Fraction(999, 1000))
    assert privacy_profile(barely, barely.at(3))(epsilon).lower > Fraction(delta)


def test_epsilon_zero_is_total_variation() -> None:
    mechanism = Gaussian(sensitivity=1, epsilon=0, delta="0.01")
    assert float(mechanism.privacy_profile()(0)) == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize("n", range(2, 60))
def test_a_float_that_stands_for_a_square_root_covers_it(n: int) -> None:
    """sqrt(3) as a float is a little less: n coordinates that each move by one step must still be hidden."""
    mechanism = Gaussian(sensitivity=math.sqrt(n), rho=0.5, step=1)
    assert mechanism.fit([0] * n).event().move.squared == n


def test_a_vector_has_no_profile_of_one_pair() -> None:
    """Three coordinates that move by 1 each need a delta of 2e-7, one that moves by sqrt(3) steps 5e-17."""
    mechanism = Gaussian(sensitivity=1.75, epsilon=1, delta=1e-6, step=1).fit([0] * 3)
    with pytest.raises(UserError, match=r"profile is for one number.*guarantee\(\)"):
        mechanism.privacy_profile()


def test_a_delta_needs_the_number_of_coordinates() -> None:
    """The formula for one number would charge a vector too little."""
    with pytest.raises(InternalError, match="coordinates"):
        GAUSSIAN.event(L2Move(4), scale=Fraction(10), price=ApproxDP(3, 1e-6))
