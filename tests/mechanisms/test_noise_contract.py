"""What every noise mechanism for tables promises: the registered ones, and two toys."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.mechanisms.toys import Squares, Twice

from privet.errors import InternalError, QueryError
from privet.mechanisms import NOISE, NoiseMechanism, named, serves
from privet.privacy import events
from privet.privacy.accounting import ApproxAccountant, ConcentratedAccountant, PureAccountant
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from privet.privacy.moves import L1Move, L2Move, Move

DRAWS = 40_000
PRICES: dict[type[Guarantee], list[Guarantee]] = {  # each costs less than the one before
    PureDP: [PureDP(7), PureDP("1/3"), PureDP("1/1000")],
    ZeroConcentratedDP: [ZeroConcentratedDP(3), ZeroConcentratedDP("1/50"), ZeroConcentratedDP("1e-6")],
    ApproxDP: [ApproxDP(3, "1e-6"), ApproxDP("0.5", "1e-6"), ApproxDP("0.5", "1e-9")],
}
ACCOUNTANTS = {PureDP: PureAccountant(), ZeroConcentratedDP: ConcentratedAccountant(), ApproxDP: ApproxAccountant()}


@pytest.fixture(params=[*NOISE.values(), Twice(), Squares()], ids=lambda each: each.name)
def mechanism(request: pytest.FixtureRequest) -> NoiseMechanism:
    made: NoiseMechanism = request.param
    return made


def moves(mechanism: NoiseMechanism) -> list[Move]:
    if mechanism.norm == "L1":
        return [L1Move(1), L1Move(3, blocks=2), L1Move(7), L1Move(10**6, blocks=5)]
    return [L2Move(1), L2Move(18), L2Move(10**6)]


def account(event: events.PrivacyEvent, like: Guarantee) -> Guarantee:
    return ACCOUNTANTS[type(like)].account(event)  # type: ignore[attr-defined,no-any-return]


# --- prices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinates", [1, 6])
def test_the_cost_of_a_scale_is_the_price_it_was_calibrated_for(mechanism: NoiseMechanism, coordinates: int) -> None:
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


@pytest.mark.parametrize("coordinates", [1, 6])
def test_its_event_costs_what_it_was_calibrated_for(mechanism: NoiseMechanism, coordinates: int) -> None:
    for kind in mechanism.prices:
        for price in PRICES[kind]:
            for move in moves(mechanism):
                scale = mechanism.calibrate(move, price, coordinates=coordinates)
                event = mechanism.event(move, scale=scale, coordinates=coordinates, price=price)
                assert events.from_json(events.to_json(event)) == event
                assert account(event, price).implies(price)


def test_several_noises_together_cost_what_they_were_divided_from(mechanism: NoiseMechanism) -> None:
    """Whole prices of each kind, divided three ways, and stated together at the epsilon of the whole."""
    for kind in mechanism.prices:
        for whole in PRICES[kind]:
            additive = mechanism.additive(whole)
            assert type(additive) is mechanism.prices[0]
            noises = []
            for share, move in zip((Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)), moves(mechanism)[:3], strict=True):
                part: Guarantee = (
                    PureDP(additive.epsilon * share)
                    if isinstance(additive, PureDP)
                    else ZeroConcentratedDP(additive.rho * share)
                )
                scale = mechanism.calibrate(move, part, coordinates=4)
                noises.append(mechanism.event(move, scale=scale, coordinates=4))
            level = whole.epsilon if isinstance(whole, ApproxDP) else None
            event = mechanism.together(noises, epsilon=level)
            assert events.from_json(events.to_json(event)) == event
            assert account(event, whole).implies(whole)
            stated = mechanism.stated(noises, delta=Fraction(1, 10**9))
            if stated is not None:
                at = mechanism.together(noises, epsilon=stated)
                assert account(at, ApproxDP(1, 0)).implies(ApproxDP(stated, "1e-9"))
                sooner = mechanism.together(noises, epsilon=stated * Fraction(999, 1000))
                assert not account(sooner, ApproxDP(1, 0)).implies(ApproxDP(stated, "1e-9")), "it is the smallest"


def test_further_moves_and_smaller_prices_need_more_noise(mechanism: NoiseMechanism) -> None:
    for kind in mechanism.prices:
        for coordinates in (1, 6):
            by_move = [mechanism.calibrate(m, PRICES[kind][1], coordinates=coordinates) for m in moves(mechanism)]
            assert by_move == sorted(set(by_move))
            by_price = [mechanism.calibrate(moves(mechanism)[0], p, coordinates=coordinates) for p in PRICES[kind]]
            assert by_price == sorted(set(by_price))


def test_more_coordinates_never_need_less_noise(mechanism: NoiseMechanism) -> None:
    for kind in mechanism.prices:
        for move in moves(mechanism):
            one, many = (mechanism.calibrate(move, PRICES[kind][1], coordinates=n) for n in (1, 6))
            assert one <= many


def test_prices_of_another_kind_are_a_bug(mechanism: NoiseMechanism) -> None:
    for kind in set(PRICES) - set(mechanism.prices):
        with pytest.raises((InternalError, AssertionError)):
            mechanism.calibrate(moves(mechanism)[0], PRICES[kind][0], coordinates=1)


# --- noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 2])
def test_draws_are_integers_and_stay_within_the_error_it_states(mechanism: NoiseMechanism, place: int) -> None:
    price, move = PRICES[mechanism.prices[0]][place], moves(mechanism)[0]
    scale = mechanism.calibrate(move, price, coordinates=2 * DRAWS)
    array, event = mechanism.draw(move, scale=scale, count=2 * DRAWS, price=price)
    paid = mechanism.event(move, scale=scale, coordinates=2 * DRAWS, price=price)
    assert event == paid, "what was drawn is what is paid for"
    draws = array.reshape(DRAWS, 2)
    assert draws.dtype == np.int64
    for weights in ([Fraction(1), Fraction(0)], [Fraction(1), Fraction(-1)], [Fraction(3), Fraction(1, 2)]):
        sums = np.abs(draws @ np.array([float(w) for w in weights]))
        for confidence in (Fraction(1, 2), Fraction(19, 20)):
            error = mechanism.error_of_sum(weights, [scale, scale], confidence)
            held = int((sums <= float(error)).sum())
            assert binomtest(held, DRAWS, float(confidence), "less").pvalue > 1e-9
            if place == 2:  # smaller noise has few values
                half = int((sums <= float(error) / 2).sum())
                assert binomtest(half, DRAWS, float(confidence), "less").pvalue < 1e-9


@pytest.mark.parametrize("confidence", [Fraction(4, 5), Fraction(19, 20)])
def test_its_test_rejects_no_more_than_it_says(mechanism: NoiseMechanism, confidence: Fraction) -> None:
    price = PRICES[mechanism.prices[0]][1]
    scale = mechanism.calibrate(moves(mechanism)[0], price, coordinates=3 * DRAWS)
    draws = mechanism.draw(moves(mechanism)[0], scale=scale, count=3 * DRAWS)[0].reshape(DRAWS, 3)
    weights = np.array([1.0, 0.5, 2.0])
    test = mechanism.test([float(scale)] * 3, confidence)
    distance = np.abs(draws @ weights)
    kept = int(test.plausible(np.broadcast_to(weights, draws.shape), distance).sum())
    assert binomtest(kept, DRAWS, float(confidence), "less").pvalue > 1e-9
    assert kept < DRAWS
    far = np.full(1, 1000 * float(scale))
    assert not test.plausible(weights[None], far).any()


def test_the_scale_for_an_error_keeps_to_it(mechanism: NoiseMechanism) -> None:
    for weights in ([1], [1, 1], [1, 2, 3]):
        found = mechanism.scale_for_sum(weights, [1] * len(weights), Fraction(19, 20), 1000)
        assert found is not None
        assert mechanism.error_of_sum(weights, [found] * len(weights), Fraction(19, 20)) <= 1000
        assert mechanism.error_of_sum(weights, [found * 2] * len(weights), Fraction(19, 20)) > 1000


# --- what was paid for before ---------------------------------------------------------------------


def test_less_noise_serves_for_more_and_no_other_move(
    mechanism: NoiseMechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NOISE, mechanism.name, mechanism)
    one, two = moves(mechanism)[:2]
    dear, cheap = PRICES[mechanism.prices[0]][:2]
    scales = [mechanism.calibrate(one, price, coordinates=1) for price in (dear, cheap)]
    quiet, loud = (mechanism.event(one, scale=scale, coordinates=1) for scale in scales)
    assert serves(quiet, quiet)
    assert serves(quiet, loud)
    assert not serves(loud, quiet)
    if not isinstance(quiet, events.Stated):  # which does not say what moved
        assert not serves(mechanism.event(two, scale=scales[0], coordinates=1), loud)
    assert not serves(events.Free(), quiet)


def test_a_name_that_nobody_has_is_refused() -> None:
    with pytest.raises(QueryError, match=r"no mechanism 'gauss'. The mechanisms are: laplace, gaussian"):
        named("gauss")
    assert named("gaussian") is named("gaussian/1") is NOISE["gaussian/1"]
