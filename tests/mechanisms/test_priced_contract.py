"""What all noise promises whose price is a guarantee: Laplace, Gaussian, and two toys."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.mechanisms.toys import Squares, Twice

from privet.errors import InternalError
from privet.mechanisms import GAUSSIAN, NOISE, PricedNoise
from privet.privacy import events
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from privet.privacy.moves import L1Move, L2Move, Move

DRAWS = 40_000
PRICES: dict[type[Guarantee], list[Guarantee]] = {  # each costs less than the one before
    PureDP: [PureDP(7), PureDP("1/3"), PureDP("1/1000")],
    ZeroConcentratedDP: [ZeroConcentratedDP(3), ZeroConcentratedDP("1/50"), ZeroConcentratedDP("1e-6")],
    ApproxDP: [ApproxDP(3, "1e-6"), ApproxDP("0.5", "1e-6"), ApproxDP("0.5", "1e-9")],
}


@pytest.fixture(params=[*NOISE.values(), GAUSSIAN, Twice(), Squares()], ids=lambda each: each.name)
def mechanism(request: pytest.FixtureRequest) -> PricedNoise:
    made: PricedNoise = request.param
    return made


def moves(mechanism: PricedNoise) -> list[Move]:
    if mechanism.norm == "L1":
        return [L1Move(1), L1Move(3, blocks=2), L1Move(7), L1Move(10**6, blocks=5)]
    return [L2Move(1), L2Move(18), L2Move(10**6)]


@pytest.mark.parametrize("coordinates", [1, 6])
def test_the_cost_of_a_scale_is_the_price_it_was_calibrated_for(mechanism: PricedNoise, coordinates: int) -> None:
    assert mechanism.prices
    for kind in mechanism.prices:
        for price in PRICES[kind]:
            for move in moves(mechanism):
                scale = mechanism.calibrate(move, price, coordinates=coordinates)
                cost = mechanism.cost(move, scale=scale, coordinates=coordinates, like=price)
                assert type(cost) is kind
                assert cost.implies(price)
                less = mechanism.cost(move, scale=scale * Fraction(99, 100), coordinates=coordinates, like=price)
                assert not less.implies(price), "with less noise it would cost more"


def test_further_moves_and_smaller_prices_need_more_noise(mechanism: PricedNoise) -> None:
    for kind in mechanism.prices:
        for coordinates in (1, 6):
            by_move = [mechanism.calibrate(m, PRICES[kind][1], coordinates=coordinates) for m in moves(mechanism)]
            assert by_move == sorted(set(by_move))
            by_price = [mechanism.calibrate(moves(mechanism)[0], p, coordinates=coordinates) for p in PRICES[kind]]
            assert by_price == sorted(set(by_price))


def test_more_coordinates_never_need_less_noise(mechanism: PricedNoise) -> None:
    for kind in mechanism.prices:
        for move in moves(mechanism):
            one, many = (mechanism.calibrate(move, PRICES[kind][1], coordinates=n) for n in (1, 6))
            assert one <= many


def test_what_is_drawn_is_what_is_paid_for(mechanism: PricedNoise) -> None:
    for kind in mechanism.prices:
        price, move = PRICES[kind][1], moves(mechanism)[0]
        scale = mechanism.calibrate(move, price, coordinates=DRAWS)
        draws, event = mechanism.draw(move, scale=scale, count=DRAWS, price=price)
        assert event == mechanism.event(move, scale=scale, coordinates=DRAWS, price=price)
        assert events.from_json(events.to_json(event)) == event
        assert draws.dtype == np.int64
        error = mechanism.error_of_sum([1], [scale], Fraction(19, 20))
        held = int((np.abs(draws) <= float(error)).sum())
        assert binomtest(held, DRAWS, 0.95, "less").pvalue > 1e-9


def test_prices_of_another_kind_are_a_bug(mechanism: PricedNoise) -> None:
    for kind in set(PRICES) - set(mechanism.prices):
        with pytest.raises((InternalError, AssertionError)):
            mechanism.calibrate(moves(mechanism)[0], PRICES[kind][0], coordinates=1)
