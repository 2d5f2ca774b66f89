"""What every selection mechanism promises: the registered ones, and a toy."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import pytest
from scipy.stats import binomtest
from tests.effort import EFFORT
from tests.mechanisms.toys import Exponential

from privet.mechanisms import SELECTION, SelectionMechanism
from privet.privacy import events
from privet.privacy.accounting import PureAccountant

DRAWS = 2_000 if EFFORT == 1 else 4_000
SCORES = [[0], [3, 3], [0, 1, 5], [-40, 0, 2, 2, 1]]


@pytest.fixture(params=[*SELECTION.values(), Exponential()], ids=lambda each: type(each).__name__)
def mechanism(request: pytest.FixtureRequest) -> SelectionMechanism:
    made: SelectionMechanism = request.param
    return made


@pytest.mark.parametrize("scores", SCORES)
def test_weights_are_probabilities_and_higher_scores_are_likelier(
    mechanism: SelectionMechanism, scores: list[int]
) -> None:
    weights = mechanism.weights(scores, scale=Fraction(3))
    assert len(weights) == len(scores)
    assert sum(w.lower for w in weights) <= 1 <= sum(w.upper for w in weights)
    assert all(w.upper - w.lower < Fraction(1, 10**12) for w in weights)
    ranked = sorted(zip(scores, weights, strict=True), key=lambda each: each[0])
    for (a, left), (b, right) in pairwise(ranked):
        assert left.lower <= right.upper
        assert a == b or left < right.lower


@pytest.mark.parametrize("scores", SCORES)
def test_choices_have_these_weights(mechanism: SelectionMechanism, scores: list[int]) -> None:
    seen = Counter(mechanism.select(scores, scale=Fraction(3)) for _ in range(DRAWS))
    for place, weight in enumerate(mechanism.weights(scores, scale=Fraction(3))):
        assert binomtest(seen[place], DRAWS, min(1.0, float(weight))).pvalue > 1e-9
    assert set(seen) <= set(range(len(scores)))


@pytest.mark.parametrize("move", [1, 2])
def test_no_neighbour_changes_a_weight_by_more_than_the_price(mechanism: SelectionMechanism, move: int) -> None:
    """Every way in which each of three scores moves by at most `move`; and the scale halved breaks it."""
    epsilon = Fraction(1)
    scale = mechanism.scale(move, epsilon=epsilon)
    event = mechanism.event(move, scale=scale)
    assert events.from_json(events.to_json(event)) == event
    assert PureAccountant().account(event).epsilon == epsilon
    scores = [0, 1, 3]

    def worst(at: Fraction) -> float:
        before = mechanism.weights(scores, scale=at)
        found = 0.0
        for by in product((-move, 0, move), repeat=3):
            after = mechanism.weights([s + d for s, d in zip(scores, by, strict=True)], scale=at)
            found = max(found, *(float(a.upper / b.lower) for a, b in zip(after, before, strict=True)))
        return found

    assert worst(scale) <= 2.718281828459046
    assert worst(scale / 3) > 2.718281828459046
