"""Divergences against brute force: every event of small rational distributions, and direct sums for infinite ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import DataError, NumberError
from privet.exact import Enclosure, exp
from privet.mechanisms import Laplace as Mechanism
from privet.noise import DiscreteLaplace
from privet.privacy.divergences import hockey_stick, indistinguishable, max_divergence, privacy_profile, total_variation
from privet.textbook.distributions import Laplace

Law = dict[int, Fraction]


def laws(size: int) -> st.SearchStrategy[Law]:
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    return weights.map(lambda ws: {i: Fraction(w, sum(ws)) for i, w in enumerate(ws) if w or i % 2})


pairs = st.integers(1, 7).flatmap(lambda size: st.tuples(laws(size), laws(size)))
epsilons = st.just(Fraction(0)) | st.fractions(min_value=0, max_value=4, max_denominator=20)


def events(p: Law, q: Law) -> list[tuple[int, ...]]:
    outcomes = sorted({*p, *q})
    return [event for n in range(len(outcomes) + 1) for event in itertools.combinations(outcomes, n)]


def mass(p: Law, event: Sequence[int]) -> Fraction:
    return sum((p.get(x, Fraction(0)) for x in event), Fraction(0))


def brute_hockey(p: Law, q: Law, epsilon: Fraction) -> Enclosure:
    """The largest P(S) - e^epsilon Q(S), by trying every S."""
    factor = exp(epsilon)
    values = [(mass(p, s) - factor.upper * mass(q, s), mass(p, s) - factor.lower * mass(q, s)) for s in events(p, q)]
    return Enclosure(max(low for low, _ in values), max(high for _, high in values))


@given(pairs, epsilons)
def test_hockey_stick_is_the_best_event(pair: tuple[Law, Law], epsilon: Fraction) -> None:
    found, brute = hockey_stick(*pair, epsilon), brute_hockey(*pair, epsilon)
    assert found.lower <= brute.upper
    assert brute.lower <= found.upper
    assert found.width <= Fraction(1, 2**50)
    if epsilon == 0:
        assert found.width == 0
        assert found.lower == brute.lower == total_variation(*pair).lower


@given(pairs)
def test_total_variation_is_half_the_l1_distance_and_symmetric(pair: tuple[Law, Law]) -> None:
    p, q = pair
    distance = sum((abs(p.get(x, Fraction(0)) - q.get(x, Fraction(0))) for x in {*p, *q}), Fraction(0))
    assert total_variation(p, q).lower == total_variation(q, p).upper == distance / 2


@given(pairs, st.fractions(min_value=0, max_value=1, max_denominator=90))
def test_zero_delta_privacy_is_total_variation(pair: tuple[Law, Law], delta: Fraction) -> None:
    """(0, delta)-indistinguishable, by every event both ways, exactly if the total variation is at most delta."""
    p, q = pair
    by_events = all(abs(mass(p, s) - mass(q, s)) <= delta for s in events(p, q))
    assert indistinguishable(p, q, 0, delta) == by_events == (total_variation(p, q).upper <= delta)


@given(pairs)
def test_decisions_at_the_boundary_are_exact(pair: tuple[Law, Law]) -> None:
    distance = total_variation(*pair).lower
    assert indistinguishable(*pair, 0, distance)
    if distance > 0:
        assert not indistinguishable(*pair, 0, distance - Fraction(1, 10**100))


@given(pairs, epsilons, st.fractions(min_value=0, max_value=1, max_denominator=30))
def test_indistinguishable_by_every_event(pair: tuple[Law, Law], epsilon: Fraction, delta: Fraction) -> None:
    p, q = pair
    factor = exp(epsilon)
    holds, fails = True, False
    for event in events(p, q):
        for a, b in ((mass(p, event), mass(q, event)), (mass(q, event), mass(p, event))):
            holds = holds and a <= factor.lower * b + delta
            fails = fails or a > factor.upper * b + delta
    assert holds != fails, "the enclosure of e^epsilon leaves it open"
    assert indistinguishable(p, q, epsilon, delta) == holds


def test_what_q_never_gives() -> None:
    """Where Q(S) = 0 the factor e^epsilon drops out, and rationals are compared."""
    p, q = {"a": "0.9", "b": "0.1"}, {"a": 1}
    for epsilon in (0, 1, 50):
        assert indistinguishable(p, q, epsilon, "0.1")
        assert not indistinguishable(p, q, epsilon, Fraction(1, 10) - Fraction(1, 10**50))
        assert hockey_stick(p, q, epsilon) == Enclosure(Fraction(1, 10), Fraction(1, 10))
    assert max_divergence(p, q) == math.inf
    assert float(max_divergence(q, p)) == pytest.approx(math.log(1 / 0.9))
    assert hockey_stick({"a": 1}, {"b": 1}, 3).lower == 1
    assert not indistinguishable({"a": 1}, {"b": 1}, 3, "0.999")
    assert indistinguishable({"a": 1}, {"b": 1}, 3, 1)


@given(pairs)
def test_max_divergence_is_the_largest_log_ratio(pair: tuple[Law, Law]) -> None:
    p, q = pair
    found = max_divergence(p, q)
    if any(x > 0 and q.get(k, 0) == 0 for k, x in p.items()):
        assert found == math.inf
        return
    assert isinstance(found, Enclosure)
    wanted = max(math.log(x / q[k]) for k, x in p.items() if x)
    assert float(found) == pytest.approx(wanted, abs=1e-12)
    assert indistinguishable(p, q, found.upper + Fraction(1, 10**15), 1)
    assert hockey_stick(p, q, max(Fraction(0), found.upper)).lower <= 0
    if found.lower > Fraction(1, 10**6):
        assert hockey_stick(p, q, found.lower - Fraction(1, 10**7)).lower > 0


@given(pairs, epsilons, st.data())
def test_post_processing_never_helps(pair: tuple[Law, Law], epsilon: Fraction, data: st.DataObject) -> None:
    """Through any channel, the hockey stick and the total variation do not grow."""
    p, q = pair
    channel = {x: data.draw(laws(3)) for x in sorted({*p, *q})}

    def through(law: Law) -> Law:
        return {y: sum((m * channel[x].get(y, Fraction(0)) for x, m in law.items()), Fraction(0)) for y in range(3)}

    before, after = hockey_stick(p, q, epsilon), hockey_stick(through(p), through(q), epsilon)
    assert after.lower <= before.upper
    assert total_variation(through(p), through(q)).upper <= total_variation(p, q).lower


small = st.tuples(laws(3), laws(3))


@given(small, small, epsilons, epsilons)
def test_composition(one: tuple[Law, Law], two: tuple[Law, Law], e1: Fraction, e2: Fraction) -> None:
    """Two independent answers at e1 + e2 need at most delta1 + delta2, and no less than each alone."""

    def both(p: Law, q: Law) -> dict[Any, Fraction]:
        return {(x, y): a * b for x, a in p.items() for y, b in q.items()}

    together = hockey_stick(both(one[0], two[0]), both(one[1], two[1]), e1 + e2)
    assert together.lower <= hockey_stick(*one, e1).upper + hockey_stick(*two, e2).upper
    alone = hockey_stick(*one, e1 + e2)
    assert together.upper >= alone.lower


# --- sliding distributions --------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.3934693402873666), (0.5, 0.22119921692859512), (1, 0), (2, 0)])
def test_the_continuous_profile_as_published(epsilon: float, delta: float) -> None:
    found = hockey_stick(Laplace(0, 1), Laplace(1, 1), epsilon)
    assert float(found) == pytest.approx(delta, rel=1e-15)
    assert float(found) == pytest.approx(max(0.0, -math.expm1((epsilon - 1) / 2)), rel=1e-14)


@given(st.fractions(min_value="1/20", max_value=20), st.fractions(min_value=-9, max_value=9), epsilons)
def test_the_continuous_profile_is_its_closed_form(scale: Fraction, shift: Fraction, epsilon: Fraction) -> None:
    most = abs(shift) / scale
    wanted = 1 - exp((epsilon - most) / 2).lower if epsilon < most else Fraction(0)
    found = hockey_stick(Laplace(0, scale), Laplace(shift, scale), epsilon)
    assert abs(found.lower - wanted) < Fraction(1, 2**50)
    assert privacy_profile(Laplace(0, scale), Laplace(shift, scale))(epsilon).upper >= found.lower
    bound = max_divergence(Laplace(0, scale), Laplace(shift, scale))
    assert bound == Enclosure(most, most)


def direct_sum(scale: Fraction, shift: int, epsilon: Fraction) -> Fraction:
    """The sum of max(0, p(k) - e^epsilon q(k)), over all k that matter."""
    p, q, factor = DiscreteLaplace(scale), DiscreteLaplace(scale, shift), exp(epsilon).lower
    reach = int(60 * scale) + abs(shift) + 2
    return sum((max(Fraction(0), p.pmf(k).lower - factor * q.pmf(k).lower) for k in range(-reach, reach)), Fraction(0))


@settings(max_examples=25)
@given(st.fractions(min_value="1/5", max_value=3, max_denominator=9), st.integers(-4, 4), epsilons)
def test_the_discrete_profile_is_the_sum(scale: Fraction, shift: int, epsilon: Fraction) -> None:
    found = hockey_stick(DiscreteLaplace(scale), DiscreteLaplace(scale, shift), epsilon)
    assert abs(found.lower - direct_sum(scale, shift, epsilon)) < Fraction(1, 10**14)


@pytest.mark.parametrize("scale", ["1/7", "1/2", "1", "2.5", "100", "1e9"])
def test_one_step_at_epsilon_zero_is_tanh(scale: str) -> None:
    noise = DiscreteLaplace(scale)
    wanted = math.tanh(1 / (2 * float(noise.scale)))
    assert float(total_variation(noise, noise.at(1))) == pytest.approx(wanted, rel=1e-13)
    assert float(privacy_profile(noise, noise.at(1))(0)) == pytest.approx(wanted, rel=1e-13)


def test_fine_steps_approach_the_continuous_value() -> None:
    """Sensitivity 1 in n steps of 1/n: the discrete delta falls to the continuous one."""
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(9, 10)):
        limit = float(hockey_stick(Laplace(0, 1), Laplace(1, 1), epsilon))
        errors = [
            abs(float(hockey_stick(DiscreteLaplace(n), DiscreteLaplace(n, n), epsilon)) - limit)
            for n in (1, 11, 101, 10_001, 10**8 + 1)
        ]
        assert errors[-1] < 1e-8
        assert errors[-2] < 1e-4
        assert errors[0] > 10 * errors[2]
        assert epsilon > 0 or errors[0] > errors[1] > errors[2] > errors[3]


@given(st.fractions(min_value="1/5", max_value=30, max_denominator=30), st.integers(0, 40))
def test_pure_privacy_of_a_shift_is_decided_exactly(scale: Fraction, shift: int) -> None:
    p, q = DiscreteLaplace(scale), DiscreteLaplace(scale, shift)
    bound = shift / scale
    assert indistinguishable(p, q, bound)
    if shift:
        assert not indistinguishable(p, q, bound * (1 - Fraction(1, 10**30)))
        assert not indistinguishable(p, q, bound * (1 - Fraction(1, 100)), Fraction(1, 10**300))
        assert indistinguishable(p, q, bound * (1 - Fraction(1, 100)), 1)


@settings(max_examples=30)
@given(
    st.fractions(min_value="1/3", max_value="3/2", max_denominator=6),
    st.integers(1, 5),
    st.integers(0, 5),
    st.fractions(min_value=0, max_value=3, max_denominator=6),
)
def test_a_vector_is_no_worse_than_one_coordinate(scale: Fraction, m: int, a: int, epsilon: Fraction) -> None:
    """L1 distance m split over two coordinates, by brute force: what `Laplace.privacy_profile` relies on."""
    a = min(a, m)
    reach = int(25 * float(scale)) + m + 2
    rate, cut = 1 / float(scale), math.exp(float(epsilon))
    centre = math.tanh(rate / 2)
    line = range(-reach, reach + m)

    def masses(loc: int) -> list[float]:
        return [centre * math.exp(-abs(k - loc) * rate) for k in line]

    p, q1, q2 = masses(0), masses(a), masses(m - a)
    product = math.fsum(
        max(0.0, x * y - cut * u * v) for x, u in zip(p, q1, strict=True) for y, v in zip(p, q2, strict=True)
    )
    profile = Mechanism(sensitivity=m, scale=scale).privacy_profile()
    assert profile.p.scale == scale  # type: ignore[union-attr]
    assert product <= float(profile(epsilon)) + 1e-9


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ({"a": "1/2"}, {"a": 1}),
        ({"a": "3/2", "b": "-1/2"}, {"a": 1}),
        ({"a": float("nan")}, {"a": 1}),
        ({}, {"a": 1}),
    ],
)
def test_what_is_no_distribution_is_refused(p: Any, q: Any) -> None:
    with pytest.raises(NumberError):
        hockey_stick(p, q, 1)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (Laplace(0, 1), Laplace(0, 2)),
        (Laplace(0, 1), DiscreteLaplace(1)),
        (DiscreteLaplace(1), DiscreteLaplace(2)),
        (Laplace(0, 1), {0: 1}),
    ],
)
def test_what_can_not_be_compared_is_refused(p: Any, q: Any) -> None:
    for compare in (lambda: hockey_stick(p, q, 1), lambda: max_divergence(p, q), lambda: indistinguishable(p, q, 1)):
        with pytest.raises(DataError):
            compare()


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), True, "x", None])
def test_bad_epsilons_are_refused(bad: Any) -> None:
    with pytest.raises(NumberError, match="epsilon must be"):
        hockey_stick({0: 1}, {0: 1}, bad)
    with pytest.raises(NumberError, match="delta must be"):
        indistinguishable({0: 1}, {0: 1}, 1, bad)


def test_the_loss_of_discrete_laplace_as_google_publishes_it() -> None:
    """dp_accounting, scale 1, sensitivity 1: the privacy loss is 1 with probability .73105858, -1 with .26894142."""
    here = DiscreteLaplace(1)
    assert here.log_ratio(here.at(1)) == 1
    assert float(here.cdf(0)) == pytest.approx(0.73105858, abs=1e-8)  # where loc 0 is the likelier: x <= 0
    assert 1 - float(here.cdf(0)) == pytest.approx(0.26894142, abs=1e-8)
    assert float(hockey_stick(here, here.at(1), 0)) == pytest.approx(0.73105858 - 0.26894142, abs=1e-8)
