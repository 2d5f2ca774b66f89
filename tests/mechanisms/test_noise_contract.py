"""What every noise mechanism for tables promises: the registered ones, and two toys."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.mechanisms.toys import Squares, Twice

from privet.errors import QueryError
from privet.mechanisms import NOISE, NoiseMechanism, named, serves
from privet.privacy import events
from privet.privacy.accounting import ApproxAccountant, PureAccountant
from privet.privacy.moves import L1Move, L2Move, Move

DRAWS = 40_000


@pytest.fixture(params=[*NOISE.values(), Twice(), Squares()], ids=lambda each: each.name)
def mechanism(request: pytest.FixtureRequest) -> NoiseMechanism:
    made: NoiseMechanism = request.param
    return made


def moves(mechanism: NoiseMechanism) -> list[Move]:
    if mechanism.norm == "L1":
        return [L1Move(1), L1Move(3, blocks=2), L1Move(7), L1Move(10**6, blocks=5)]
    return [L2Move(1), L2Move(18), L2Move(10**6)]


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 3), Fraction(7)])
def test_its_event_costs_what_it_was_calibrated_for(mechanism: NoiseMechanism, epsilon: Fraction) -> None:
    for move in moves(mechanism):
        scale = mechanism.scale(move, epsilon=epsilon)
        assert mechanism.epsilon(move, scale=scale) == epsilon
        event = mechanism.event(move, scale=scale)
        assert events.from_json(events.to_json(event)) == event
        for accountant in (PureAccountant(), ApproxAccountant()):
            assert accountant.account(event).epsilon <= epsilon


def test_further_moves_and_smaller_prices_need_more_noise(mechanism: NoiseMechanism) -> None:
    scales = [mechanism.scale(move, epsilon=Fraction(1, 2)) for move in moves(mechanism)]
    assert scales == sorted(scales)
    assert scales[0] < scales[-1]
    assert mechanism.scale(moves(mechanism)[0], epsilon=Fraction(1, 4)) > scales[0]


@pytest.mark.parametrize("epsilon", [Fraction(5, 2), Fraction(1, 50)])
def test_draws_are_integers_and_stay_within_the_error_it_states(mechanism: NoiseMechanism, epsilon: Fraction) -> None:
    move = moves(mechanism)[0]
    scale = mechanism.scale(move, epsilon=epsilon)
    array, event = mechanism.draw(move, scale=scale, count=2 * DRAWS)
    assert event == mechanism.event(move, scale=scale), "what was drawn is what is paid for"
    draws = array.reshape(DRAWS, 2)
    assert draws.dtype == np.int64
    for weights in ([Fraction(1), Fraction(0)], [Fraction(1), Fraction(-1)], [Fraction(3), Fraction(1, 2)]):
        sums = np.abs(draws @ np.array([float(w) for w in weights]))
        for confidence in (Fraction(1, 2), Fraction(19, 20)):
            error = mechanism.error_of_sum(weights, [scale, scale], confidence)
            held = int((sums <= float(error)).sum())
            assert binomtest(held, DRAWS, float(confidence), "less").pvalue > 1e-9
            if epsilon < 1:  # smaller noise has few values
                half = int((sums <= float(error) / 2).sum())
                assert binomtest(half, DRAWS, float(confidence), "less").pvalue < 1e-9


@pytest.mark.parametrize("confidence", [Fraction(4, 5), Fraction(19, 20)])
def test_its_test_rejects_no_more_than_it_says(mechanism: NoiseMechanism, confidence: Fraction) -> None:
    scale = mechanism.scale(moves(mechanism)[0], epsilon=Fraction(1, 10))
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


def test_less_noise_serves_for_more_and_no_other_move(
    mechanism: NoiseMechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NOISE, mechanism.name, mechanism)
    one, two = moves(mechanism)[:2]
    quiet, loud = (
        mechanism.event(one, scale=mechanism.scale(one, epsilon=epsilon)) for epsilon in (Fraction(1), Fraction(1, 2))
    )
    assert serves(quiet, quiet)
    assert serves(quiet, loud)
    assert not serves(loud, quiet)
    if not isinstance(quiet, events.Stated):  # which does not say what moved
        assert not serves(mechanism.event(two, scale=mechanism.scale(one, epsilon=Fraction(1))), loud)
    assert not serves(events.Free(), quiet)


def test_a_name_that_nobody_has_is_refused() -> None:
    with pytest.raises(QueryError, match=r"no mechanism 'gauss'. The mechanisms are: laplace/1"):
        named("gauss")
