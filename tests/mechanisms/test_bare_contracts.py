"""What every bare mechanism promises, written once: add one to `CONTRACTS` and it is held to all of it.

Its guarantee and its profile against its exact probabilities on neighbours, its draws against those probabilities, its
event, and what more epsilon does. A twin that draws at twice the claimed epsilon fails each of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from tests.effort import some

from privet.mechanisms import (
    AboveThreshold,
    Exponential,
    Laplace,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
    Staircase,
)
from privet.mechanisms.thresholds import OptimalSelection, TruncatedThreshold
from privet.privacy import events
from privet.privacy.accounting import ApproxAccountant

DRAWS = 5000
Law = dict[Hashable, float]


@dataclass(frozen=True)
class Contract:
    """One way to use a mechanism: two neighbouring inputs, the law of the answer, and one answer."""

    name: str
    make: Callable[[Any], Any]
    """The mechanism at an epsilon."""
    neighbours: tuple[tuple[Any, Any], ...]
    law: Callable[[Any, Any], Law]
    answer: Callable[[Any, Any], Hashable]
    error: Callable[[Any], Any] | None = None
    delta: float = 0

    def __str__(self) -> str:
        return self.name


# --- laws -------------------------------------------------------------------------------------


def of_selection(mechanism: Any, scores: Any) -> Law:
    return {i: float(p) for i, p in enumerate(mechanism.probabilities(scores))}


def of_list(mechanism: Any, queries: Any) -> Law:
    *each, none = mechanism.probabilities(queries)
    return {**{i: float(p) for i, p in enumerate(each)}, None: float(none)}


def of_report(mechanism: Any, value: Any) -> Law:
    return {report: float(mechanism.pmf(report, value)) for report in mechanism.categories}


WINDOW = 40


def of_noise(mechanism: Any, value: int) -> Law:
    """Integers near 0 one by one, all others together: what an analyst sees who looks no closer."""
    noise = mechanism.noise
    law: Law = {k: float(noise.pmf(k - value)) for k in range(-WINDOW, WINDOW + 1)}
    return {**law, "low": float(noise.cdf(-WINDOW - 1 - value)), "high": 1 - float(noise.cdf(WINDOW - value))}


def noisy(mechanism: Any, value: int) -> Hashable:
    answer = mechanism.release(value)
    return answer if abs(answer) <= WINDOW else "low" if answer < 0 else "high"


def of_key(mechanism: Any, people: int) -> Law:
    chance = float(mechanism.probability(people))
    return {True: chance, False: 1 - chance}


def of_count(mechanism: Any, people: int) -> Law:
    if people == 0:
        return {None: 1.0}
    counts = range(mechanism.threshold, mechanism.threshold + 30)
    law: Law = {n: float(mechanism.noise.pmf(n - people)) for n in counts}
    high = 1 - float(mechanism.noise.cdf(counts[-1] - people))
    return {**law, None: float(1 - mechanism.probability(people).upper), "high": high}


def counted(mechanism: Any, people: int) -> Hashable:
    _, kept = mechanism.release([people])
    return None if not len(kept) else int(kept[0]) if kept[0] < mechanism.threshold + 30 else "high"


MOVED = (((0, 0, 0), (1, -1, 0)), ((3, 3), (2, 3)), ((1, 4), (0, 5)))
ALONE = tuple((n, n + 1) for n in (0, 1, 8, 2))
TERMS: dict[str, Any] = {"delta": "0.05", "max_keys": 1, "adjacency": "add/remove"}

CONTRACTS = [
    Contract("Laplace", lambda e: Laplace(sensitivity=2, epsilon=e), ((0, 2), (0, 1)), of_noise, noisy,
             lambda m: m.error(0.9)),
    Contract("Staircase", lambda e: Staircase(sensitivity=4, epsilon=e), ((0, 4), (0, 1), (3, 6)), of_noise, noisy,
             lambda m: m.error(0.9)),
    *(
        Contract(kind.__name__, lambda e, kind=kind: kind(sensitivity=1, epsilon=e), MOVED, of_selection,  # type: ignore[misc]
                 lambda m, scores: m.select(scores), lambda m: m.error(0.9, candidates=9))
        for kind in (Exponential, PermuteAndFlip, ReportNoisyMax)
    ),
    *(
        Contract(f"{kind.__name__}, monotone", lambda e, kind=kind: kind(sensitivity=1, epsilon=e, monotone=True),  # type: ignore[misc]
                 (((0, 0), (1, 0)), ((0, 3, 3), (1, 3, 4))), of_selection, lambda m, scores: m.select(scores))
        for kind in (Exponential, PermuteAndFlip, ReportNoisyMax)
    ),
    Contract("AboveThreshold", lambda e: AboveThreshold(sensitivity=1, epsilon=e, threshold=0),
             (((0, 0, 0), (1, 1, -1)), ((-6, 2, 6), (-5, 1, 7))), of_list, lambda m, queries: m.select(queries),
             lambda m: m.error(0.9, queries=9)),
    Contract("AboveThreshold, monotone", lambda e: AboveThreshold(sensitivity=1, epsilon=e, threshold=0, monotone=True),
             (*(((*[0] * 12, n), (*[1] * 12, n)) for n in (-2, -6)), ((-6, 2, 6), (-5, 3, 6))), of_list,
             lambda m, queries: m.select(queries)),
    Contract("RandomizedResponse, 2", lambda e: RandomizedResponse(2, epsilon=e), ((0, 1),), of_report,
             lambda m, value: m.release(value), lambda m: m.error(0.9, responses=100)),
    Contract("RandomizedResponse, 5", lambda e: RandomizedResponse([*"abcde"], epsilon=e),
             (("a", "e"),), of_report, lambda m, value: m.release(value)),
    Contract("OptimalSelection", lambda e: OptimalSelection(epsilon=e, **TERMS), ALONE, of_key,
             lambda m, n: bool(n and len(m.select([n]))), lambda m: m.people_for(0.5), delta=0.05),
    Contract("TruncatedThreshold", lambda e: TruncatedThreshold(epsilon=e, **TERMS), ALONE, of_count,
             lambda m, n: counted(m, n) if n else None, lambda m: m.people_for(0.5), delta=0.05),
]  # fmt: skip


@pytest.fixture(params=CONTRACTS, ids=str)
def contract(request: pytest.FixtureRequest) -> Contract:
    assert isinstance(request.param, Contract)
    return request.param


def delta_of(p: Law, q: Law, x: float) -> float:
    return sum(max(0.0, mass - math.exp(x) * q.get(outcome, 0.0)) for outcome, mass in p.items())


def worst(contract: Contract, mechanism: Any, x: float) -> float:
    """The largest delta at x over the neighbours, in both directions."""
    laws = [(contract.law(mechanism, a), contract.law(mechanism, b)) for a, b in contract.neighbours]
    return max(delta_of(p, q, x) for pair in laws for p, q in (pair, pair[::-1]))


@pytest.mark.parametrize("epsilon", ["1/4", "1", "3"])
def test_the_law_is_one(contract: Contract, epsilon: str) -> None:
    for pair in contract.neighbours:
        for value in pair:
            assert sum(contract.law(contract.make(epsilon), value).values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("epsilon", ["1/4", "1", "3"])
def test_the_guarantee_holds_exactly_and_a_twin_s_does_not(contract: Contract, epsilon: str) -> None:
    mechanism, level = contract.make(epsilon), Fraction(epsilon)
    assert worst(contract, mechanism, float(level)) <= contract.delta + 1e-12
    assert worst(contract, contract.make(2 * level), float(level)) > contract.delta + 1e-9
    assert worst(contract, contract.make(2 * level), float(2 * level)) <= contract.delta + 1e-12


@pytest.mark.parametrize("epsilon", ["1/4", "1", "3"])
def test_the_profile_holds_exactly_and_a_twin_s_does_not(contract: Contract, epsilon: str) -> None:
    mechanism, level = contract.make(epsilon), Fraction(epsilon)
    if contract.delta:  # thresholds state (epsilon, delta), and no more
        return
    profile = mechanism.privacy_profile()
    for share in some([Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1)], every=2, start=level > 1):
        x = share * level
        assert worst(contract, mechanism, float(x)) <= float(profile(x).upper) + 1e-12
    assert worst(contract, contract.make(4 * level), float(level)) > float(profile(level).upper) + 1e-6


def test_its_event_is_what_accountants_need(contract: Contract) -> None:
    previous = Fraction(0)
    for epsilon in ("1/1000", "1/3", 0.5, 7):
        mechanism = contract.make(epsilon)
        event, claimed = mechanism.event(), Fraction(str(epsilon))
        assert events.from_json(events.to_json(event)) == event
        guarantee = mechanism.guarantee()
        assert guarantee.epsilon == claimed > previous
        price = ApproxAccountant().account(event)
        assert (price.epsilon, float(price.delta)) == (claimed, contract.delta)
        accounts = [ApproxAccountant().account(e) for e in (events.Repeated(event, 3), events.Composed([event] * 3))]
        assert accounts[0] == accounts[1]
        previous = claimed


def test_more_epsilon_means_less_error(contract: Contract) -> None:
    if contract.error is not None:
        errors = [contract.error(contract.make(epsilon)) for epsilon in ("1/10", "1/2", 2, 10)]
        assert errors == sorted(errors, reverse=True)
        assert errors[0] > errors[-1]


def test_equal_mechanisms_are_equal_and_frozen(contract: Contract) -> None:
    one, same, other = contract.make(1), contract.make("1"), contract.make(2)
    assert one == same != other
    assert hash(one) == hash(same)
    with pytest.raises(AttributeError):
        one.epsilon = 5
    assert repr(one).startswith(type(one).__name__)
    assert "epsilon=" in repr(one)


def test_draws_follow_the_law_and_a_wrong_epsilon_is_seen(contract: Contract) -> None:
    mechanism, value = contract.make(1), contract.neighbours[-1][-1]
    seen = Counter(contract.answer(mechanism, value) for _ in range(DRAWS))

    def surprise(law: Law) -> float:
        """Chi-squared, with rare answers together."""
        rare = [x for x in {**law, **seen} if law.get(x, 0.0) * DRAWS < 50]
        cells = [(seen[x], law[x]) for x in law if x not in rare]
        cells.append((sum(seen[x] for x in rare), sum(law.get(x, 0.0) for x in rare)))
        return sum((n - p * DRAWS) ** 2 / max(1.0, p * DRAWS) for n, p in cells)

    limit = 110.0
    assert surprise(contract.law(mechanism, value)) < limit
    assert surprise(contract.law(contract.make("1/3"), value)) > limit
    assert surprise(contract.law(contract.make(3), value)) > limit
