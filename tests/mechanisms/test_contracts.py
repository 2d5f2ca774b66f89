"""What every mechanism promises, written once: add a mechanism to `CONTRACTS` and it is held to all of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from privet.errors import NumberError
from privet.mechanisms import Laplace
from privet.privacy import events
from privet.privacy.accounting import ApproxAccountant, PureAccountant
from privet.privacy.moves import L1Move

Answers = NDArray[Any]


class Mechanism(Protocol):
    def release(self, value: Any) -> Any: ...
    def event(self) -> events.PrivacyEvent: ...
    def guarantee(self) -> Any: ...
    def error(self, confidence: Any) -> Any: ...


@dataclass(frozen=True)
class Contract:
    """One way to use a mechanism: how it is made, and two values that are as far apart as its sensitivity allows."""

    name: str
    make: Callable[..., Mechanism]
    neighbours: tuple[Any, Any]  # at distance 1
    answers: Callable[[Mechanism, Any, int], Answers]  # many releases, as numbers
    real: bool = False

    def __str__(self) -> str:
        return self.name


def in_one_array(mechanism: Mechanism, value: Any, count: int) -> Answers:
    """Many releases at once; each coordinate is one of them, since its noise is its own."""
    return np.asarray(mechanism.release(np.full(count, value)))


def coordinates_summed(mechanism: Mechanism, value: Any, count: int) -> Answers:
    """A vector's noise is seen where it moved; the other coordinate tells nothing."""
    return np.asarray(mechanism.release(np.tile(value, count))).reshape(count, -1)[:, 0]


CONTRACTS = [
    Contract("Laplace, integers", Laplace, (10, 11), in_one_array),
    Contract("Laplace, reals", Laplace, (0.25, 1.25), in_one_array, real=True),
    Contract("Laplace, near a half step", Laplace, (2.0**-25, 1 + 2.0**-25), in_one_array, real=True),
    Contract("Laplace, vectors", Laplace, ([3, 4], [4, 4]), coordinates_summed),
]


@pytest.fixture(params=CONTRACTS, ids=str)
def contract(request: pytest.FixtureRequest) -> Contract:
    assert isinstance(request.param, Contract)
    return request.param


SENSITIVITIES = [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(2), Fraction(5, 2), Fraction(10**6)]


def test_more_sensitive_values_get_more_noise(contract: Contract) -> None:
    errors = [contract.make(sensitivity=s, epsilon=1, dimension=1).error(0.95) for s in SENSITIVITIES]
    assert errors == sorted(errors)
    assert errors[0] < errors[-1]


def test_less_epsilon_means_more_noise(contract: Contract) -> None:
    errors = [contract.make(sensitivity=1, epsilon=e).error(0.95) for e in ("0.01", "0.1", 1, 2, 100)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > errors[-1]


def test_the_same_noise_costs_in_proportion_to_the_distance(contract: Contract) -> None:
    """d_in -> d_out: a value that moves twice as far, with the noise unchanged, costs twice as much."""
    prices = [contract.make(sensitivity=s, scale=7).guarantee().epsilon for s in SENSITIVITIES]
    assert prices == [s / 7 for s in SENSITIVITIES]


def test_near_zero_distance_costs_near_nothing_and_zero_is_refused(contract: Contract) -> None:
    assert contract.make(sensitivity=Fraction(1, 10**30), scale=1).guarantee().epsilon == Fraction(1, 10**30)
    with pytest.raises(NumberError, match="greater than 0"):
        contract.make(sensitivity=0, scale=1)
    nothing_moved = events.LaplaceNoise(move=L1Move(0), scale=1)
    assert PureAccountant().account(nothing_moved).epsilon == 0


@pytest.mark.parametrize("epsilon", ["1/3", 0.1, 1, 25])
@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
def test_the_accountant_s_price_is_the_claimed_one(contract: Contract, sensitivity: Fraction, epsilon: Any) -> None:
    mechanism = contract.make(sensitivity=sensitivity, epsilon=epsilon)
    claimed = Fraction(str(epsilon))
    assert mechanism.guarantee().epsilon == claimed
    event = mechanism.event()
    again = events.from_json(events.to_json(event))
    assert again == event
    for accountant in (PureAccountant(), ApproxAccountant()):
        assert accountant.account(again).epsilon == claimed
        five = accountant.account(events.Repeated(event, 5))
        assert five == accountant.account(events.Composed([event] * 5))
        assert five.epsilon == 5 * claimed


# --- a stranger's audit -----------------------------------------------------------------------


def at_least(hits: int, count: int, risk: float) -> float:
    """Clopper-Pearson: the probability is at least this, but for a chance of `risk`."""
    return float(beta.ppf(risk, hits, count - hits + 1)) if hits else 0.0


def at_most(hits: int, count: int, risk: float) -> float:
    return float(beta.ppf(1 - risk, hits + 1, count - hits)) if hits < count else 1.0


def candidates(answers: Answers) -> Iterator[Callable[[Answers], NDArray[np.bool_]]]:
    """Half-lines, single values, and low bits."""
    for cut in np.unique(np.quantile(answers, np.linspace(0.005, 0.995, 60))):
        yield lambda a, cut=cut: a <= cut  # type: ignore[misc]
        yield lambda a, cut=cut: a >= cut  # type: ignore[misc]
    values, counts = np.unique(answers, return_counts=True)
    for value in values[np.argsort(-counts)][:20]:
        yield lambda a, value=value: a == value  # type: ignore[misc]
    for bits in (1, 2, 10, 23, 24, 25, 40):
        yield lambda a, unit=2.0**-bits: np.asarray(np.remainder(a, unit) == 0)  # type: ignore[misc]
        yield lambda a, unit=2.0**bits: np.asarray(np.remainder(a, unit) == 0)  # type: ignore[misc]


def audited(one: Answers, other: Answers, risk: float = 1e-9) -> float:
    """A lower bound of epsilon that holds but for a chance of 2 `risk`: choose events on half, judge on the rest."""
    half = len(one) // 2

    def loss(p: Answers, q: Answers, event: Callable[[Answers], NDArray[np.bool_]], sure: float) -> float:
        low = at_least(int(event(p).sum()), len(p), sure)
        return math.log(low / at_most(int(event(q).sum()), len(q), sure)) if low else -math.inf

    chances = ((p, q, event) for p, q in ((one, other), (other, one)) for event in candidates(p[:half]))
    p, q, best = max(chances, key=lambda chance: loss(chance[0][:half], chance[1][:half], chance[2], risk))
    return loss(p[half:], q[half:], best, risk)


class HalfTheNoise:
    """The twin that claims epsilon and adds half of the noise."""

    def __init__(self, mechanism: Laplace) -> None:
        self.mechanism = mechanism

    def release(self, value: Any) -> Any:
        fitted = self.mechanism.fit(value)
        return Laplace(sensitivity=fitted.sensitivity, epsilon=2 * fitted.epsilon).release(value)


class LowBits:
    """The twin that adds floats to floats (T2): its answers' low bits tell the value."""

    def __init__(self, scale: float) -> None:
        self.scale, self.source = scale, np.random.default_rng(1)

    def release(self, value: Any) -> Any:
        return value + self.source.laplace(0, self.scale, size=len(value))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, "0.25"])
def test_the_audit_finds_no_more_than_was_claimed(contract: Contract, epsilon: Any) -> None:
    mechanism = contract.make(sensitivity=1, epsilon=epsilon)
    one, other = (contract.answers(mechanism, value, 200_000) for value in contract.neighbours)
    assert audited(one, other) <= float(Fraction(epsilon))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, "0.25"])
def test_the_audit_catches_half_the_noise(contract: Contract, epsilon: Any) -> None:
    twin: Any = HalfTheNoise(Laplace(sensitivity=1, epsilon=epsilon))
    one, other = (contract.answers(twin, value, 200_000) for value in contract.neighbours)
    assert audited(one, other) > 1.2 * float(Fraction(epsilon))


def test_the_audit_catches_low_bits() -> None:
    twin: Any = LowBits(1.0)
    one, other = (in_one_array(twin, value, 200_000) for value in (0.0, 2.0**30))
    other -= 2.0**30  # an analyst may subtract what is public
    assert audited(one, other) > 5


def test_neighbours_reach_the_same_answers(contract: Contract) -> None:
    """T1: on a coarse lattice every answer that one neighbour gives in number, the other gives too."""
    mechanism = Laplace(sensitivity=1, epsilon=1, step=1, dimension=1 if contract.real else None)
    seen = []
    for value in contract.neighbours:
        first = np.ravel(value)[0]
        answers = np.ravel([mechanism.release(first) for _ in range(3000)])
        seen.append({float(a) for a in answers})
        assert all(answer.is_integer() for answer in seen[-1])
    near = {round(float(np.ravel(contract.neighbours[0])[0])) + k for k in (-1, 0, 1, 2)}
    assert near <= seen[0] & seen[1]


def test_the_audit_s_bounds_are_clopper_and_pearson_s() -> None:
    assert at_least(0, 10, 0.025) == 0
    assert at_most(10, 10, 0.025) == 1
    assert at_least(5, 10, 0.025) == pytest.approx(0.187086, abs=1e-6)
    assert at_most(5, 10, 0.025) == pytest.approx(0.812914, abs=1e-6)
