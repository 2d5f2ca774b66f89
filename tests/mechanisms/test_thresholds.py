"""Keys that are private: exact probabilities, and the exact hockey-stick divergence over all keys of small tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq
from scipy.stats import norm
from tests.mechanisms.exactly import hockey

from privet.audit.script import Script
from privet.errors import DataError, NumberError, UserError
from privet.exact import ball, precision
from privet.mechanisms.thresholds import UNIT, LaplaceThreshold, OptimalSelection, key_weight, weighted_threshold
from privet.noise import DiscreteLaplace
from privet.privacy.events import Stated
from privet.privacy.guarantees import ApproxDP

BOTH = ("add/remove", "replace")


def both_ways(p: Any, q: Any, e_epsilon: Any) -> Any:
    return max(hockey(p, q, e_epsilon), hockey(q, p, e_epsilon))


def joint(laws: Sequence[dict[Any, Any]]) -> dict[Any, Any]:
    """The law of independent keys together."""
    whole: dict[Any, Any] = {(): fmpq(1)}
    for law in laws:
        whole = {(*path, x): mass * p for (path, mass), (x, p) in product(whole.items(), law.items()) if p}
    return whole


def neighbours(keys: int, adjacency: str, top: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """How many people hold each key, with and without one person (or another one in their place)."""
    if adjacency == "add/remove":
        for counts in product(range(top + 1), repeat=keys):
            yield counts, tuple(n + 1 for n in counts)
    else:
        for counts in product(range(top + 1), repeat=2 * keys):
            half = [1] * keys + [0] * keys
            yield (
                tuple(n + h for n, h in zip(counts, half, strict=True)),
                tuple(n + 1 - h for n, h in zip(counts, half, strict=True)),
            )


# --- optimal selection ------------------------------------------------------------------------


def recursion(e_epsilon: Any, delta: Any, top: int) -> list[Any]:
    """The published recursion; all numbers of one kind."""
    chances = [delta * 0]
    for _ in range(top):
        pi = chances[-1]
        steps = [e_epsilon * pi + delta, 1 - (1 - pi - delta) / e_epsilon, delta * 0 + 1]
        chances.append(min(steps, key=lambda x: float(x)))
    return chances


@pytest.mark.parametrize(
    ("epsilon", "values"),
    [
        (math.log(2), [0.1, 0.3, 0.7, 0.9, 1, 1]),
        (math.log(1.5), [0.1, 0.25, 0.475, 0.716666666667, 0.877777777778, 0.985185185185, 1, 1]),
    ],
)
def test_google_s_values_of_the_optimal_selection(epsilon: float, values: list[float]) -> None:
    keys = OptimalSelection(epsilon=epsilon, delta=0.1, max_keys=1, adjacency="add/remove")
    assert [float(keys.probability(n)) for n in range(1, len(values) + 1)] == pytest.approx(values, abs=1e-11)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    ("epsilon", "delta", "keys"), [("1", "1e-6", 1), ("3", "0.01", 4), ("1/10", "1e-3", 2), ("9", "0.4", 1)]
)
def test_the_closed_form_is_the_recursion(epsilon: str, delta: str, keys: int, adjacency: str) -> None:
    made = OptimalSelection(epsilon=epsilon, delta=delta, max_keys=keys, adjacency=adjacency)
    changed = keys * (2 if adjacency == "replace" else 1)
    with precision(400):
        chances = recursion(ball(Fraction(epsilon) / changed).exp(), ball(Fraction(delta) / changed), 400)
        for n, chance in enumerate(chances):
            assert abs(float(made.probability(n)) - float(chance)) <= 1e-15 * float(chance)
    assert made.probability(10**9).lower == 1
    assert made.probability(0).upper == 0


@pytest.mark.parametrize("delta", [fmpq(1, 10), fmpq(1, 1000), fmpq(1, 3)])
def test_the_recursion_is_private_and_nothing_larger_is(delta: Any) -> None:
    """One key, e^epsilon = 2, exactly; and each probability raised a little breaks it."""

    def law(pi: Any) -> dict[Any, Any]:
        return {True: pi, False: 1 - pi}

    chances = recursion(fmpq(2), delta, 30)
    for n in range(30):
        assert both_ways(law(chances[n]), law(chances[n + 1]), fmpq(2)) <= delta
        if chances[n + 1] < 1:
            assert both_ways(law(chances[n]), law(chances[n + 1] + fmpq(1, 10**9)), fmpq(2)) > delta


def selected(chances: Sequence[Any], counts: Iterable[int]) -> dict[Any, Any]:
    return joint([{True: chances[n], False: 1 - chances[n]} for n in counts])


@pytest.mark.parametrize("adjacency", BOTH)
def test_several_keys_are_private_together_and_add_remove_s_terms_are_not_under_replace(adjacency: str) -> None:
    keys, share = 2, fmpq(3, 2)  # e^(epsilon / changed)
    changed = keys * (2 if adjacency == "replace" else 1)
    delta = fmpq(1, 20)
    chances = recursion(share, delta / changed, 30)
    worst = max(
        both_ways(selected(chances, a), selected(chances, b), share**changed)
        for a, b in neighbours(keys, adjacency, 3 if adjacency == "replace" else 6)
    )
    assert worst <= delta
    if adjacency == "replace":  # the twin: epsilon / keys and delta / keys for each
        twin = recursion(share**2, delta / keys, 30)
        pairs = neighbours(keys, adjacency, 3)
        assert any(both_ways(selected(twin, a), selected(twin, b), share**changed) > delta for a, b in pairs)
    else:  # the twin: all of epsilon and delta for each key
        twin = recursion(share**2, delta, 30)
        pairs = neighbours(keys, adjacency, 6)
        assert any(both_ways(selected(twin, a), selected(twin, b), share**changed) > delta for a, b in pairs)


# --- Laplace thresholds -----------------------------------------------------------------------


def thresholded(n: int, r: Any, threshold: int, top: int) -> dict[Any, Any]:
    """The law of one key's answer: absent, a noisy count, or one of at least `top`, exactly."""
    if n == 0:
        return {None: fmpq(1)}

    def upper(k: int) -> Any:  # P(noise >= k)
        return r**k / (1 + r) if k >= 0 else 1 - r ** (1 - k) / (1 + r)

    law = {v: (1 - r) / (1 + r) * r ** abs(v - n) for v in range(threshold, top)}
    return {**law, None: 1 - upper(threshold - n), "high": upper(max(top, threshold) - n)}


def smallest(r: Any, keys: int, delta: Any, *, forgets: bool = False) -> int:
    """T by its condition, in rationals; the twin forgets the mass at T."""
    threshold = 1
    while 1 - (1 - r ** (threshold - 1 + forgets) / (1 + r)) ** keys > delta:
        threshold += 1
    return threshold


def worst_of(r: Any, e_epsilon: Any, threshold: int, keys: int, adjacency: str, top: int) -> Any:
    high = max(threshold, top) + 3
    law = {n: thresholded(n, r, threshold, high) for n in range(top + 3)}
    return max(
        both_ways(joint([law[n] for n in a]), joint([law[n] for n in b]), e_epsilon)
        for a, b in neighbours(keys, adjacency, top)
    )


@pytest.mark.parametrize("delta", [fmpq(1, 5), fmpq(1, 100)])
@pytest.mark.parametrize(("keys", "adjacency", "top"), [(1, "add/remove", 7), (2, "add/remove", 2), (1, "replace", 4)])
def test_the_threshold_is_private_jointly_and_the_twins_are_not(
    keys: int, adjacency: str, top: int, delta: Any
) -> None:
    r = fmpq(1, 2)
    e_epsilon = (1 / r) ** (keys * (2 if adjacency == "replace" else 1))
    threshold = smallest(r, keys, delta)
    assert worst_of(r, e_epsilon, threshold, keys, adjacency, top) <= delta
    forgetful = smallest(r, keys, delta, forgets=True)
    assert forgetful < threshold
    assert worst_of(r, e_epsilon, forgetful, keys, adjacency, top) > delta, "the mass at T is forgotten"
    if adjacency == "replace":
        louder = r**2  # the noise of add/remove: one key instead of two
        twin = smallest(louder, keys, delta)
        assert worst_of(louder, e_epsilon, twin, keys, adjacency, top) > delta, "add/remove's noise under replace"


@pytest.mark.parametrize(
    ("r", "delta"), [(fmpq(1, 3), fmpq(1, 4)), (fmpq(9, 10), fmpq(1, 4)), (fmpq(4, 5), fmpq(3, 5))]
)
def test_two_keys_each_under_replace(r: Any, delta: Any) -> None:
    """Few counts, because four keys change: the same delta as for add/remove suffices, even if it exceeds epsilon."""
    threshold = smallest(r, 2, delta)
    assert worst_of(r, (1 / r) ** 4, threshold, 2, "replace", 1) <= delta
    assert worst_of(r, (1 / r) ** 4, threshold - 1, 2, "replace", 1) > delta


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    ("epsilon", "delta", "keys"), [("1", "1e-6", 1), ("0.1", "1e-9", 3), ("4", "0.01", 100), ("2", "0.6", 1)]
)
def test_a_key_of_one_person_appears_with_at_most_delta(epsilon: str, delta: str, keys: int, adjacency: str) -> None:
    """T16, and T is the smallest."""
    made = LaplaceThreshold(epsilon=epsilon, delta=delta, max_keys=keys, adjacency=adjacency)
    assert made.leak() <= Fraction(delta)
    changed = keys * (2 if adjacency == "replace" else 1)
    r = math.exp(-float(Fraction(epsilon)) / changed)

    def leak(threshold: int) -> float:
        return 1 - (1 - r ** (threshold - 1) / (1 + r)) ** keys

    assert float(made.leak()) == pytest.approx(leak(made.threshold), rel=1e-6)
    assert made.threshold == 1 or leak(made.threshold - 1) > float(Fraction(delta))
    alone = made.probability(1)
    assert float(alone) == pytest.approx(r ** (made.threshold - 1) / (1 + r), rel=1e-9)
    optimal = OptimalSelection(epsilon=epsilon, delta=delta, max_keys=keys, adjacency=adjacency)
    assert optimal.probability(1).upper <= Fraction(delta) / changed * (1 + Fraction(1, 10**15))
    for n in (2, 5, 50):
        assert optimal.probability(n).upper >= made.probability(n).lower or n < 5 or keys > 1
    assert (made.event(), made.guarantee()) == (Stated(epsilon=epsilon, delta=delta), ApproxDP(epsilon, delta))


@pytest.mark.parametrize(
    ("threshold", "published"), [(1, 0.5), (2, 0.16666667), (5, 0.00617283960), (10, 2.5402631e-05)]
)
def test_google_s_values_of_the_continuous_threshold(threshold: int, published: float) -> None:
    """They are for continuous noise, 1/2 r^(T-1): the limit of fine steps; whole steps have 1/(1+r) r^(T-1), more."""
    steps = 10**7
    fine = DiscreteLaplace(steps / Fraction(math.log(3)))
    mass = 1 - float(fine.cdf((threshold - 1) * steps - 1))
    assert mass == pytest.approx(published, rel=1e-6)
    coarse = DiscreteLaplace(1 / Fraction(math.log(3)))
    assert 1 - float(coarse.cdf(threshold - 2)) == pytest.approx(published * 2 / (1 + 1 / 3), rel=1e-7)


@pytest.mark.parametrize(
    ("keys", "optimal", "threshold"), [(1, 14, 15), (3, 40, 45), (10, 132, 156), (100, 1313, 1775)]
)
def test_people_for_an_even_chance(keys: int, optimal: int, threshold: int) -> None:
    terms = {"epsilon": 1, "delta": 1e-6, "max_keys": keys, "adjacency": "add/remove"}
    assert OptimalSelection(**terms).people_for(0.5) == optimal  # type: ignore[arg-type]
    assert LaplaceThreshold(**terms).people_for(0.5) == threshold  # type: ignore[arg-type]


# --- weighted counts --------------------------------------------------------------------------


class Normal:
    """Continuous Gaussian noise: close enough to the discrete one for a threshold in units of 2^-20."""

    def __init__(self, sigma: float) -> None:
        self.sigma = sigma

    def cdf_ball(self, k: int) -> arb:
        return (-arb(k) / (arb(self.sigma) * arb(2).sqrt())).erfc() / 2


def deviation(epsilon: float, delta: float) -> float:
    """The smallest sigma of (epsilon, delta)-private Gaussian noise of sensitivity 1 (Balle, Wang 2018)."""
    low, high = 0.1, 100.0
    for _ in range(80):
        sigma = (low + high) / 2
        a, b = 1 / (2 * sigma), epsilon * sigma
        low, high = (sigma, high) if norm.cdf(a - b) - math.exp(epsilon) * norm.cdf(-a - b) > delta else (low, sigma)
    return high


@pytest.mark.parametrize(("keys", "people"), [(1, 22), (3, 40), (10, 75), (100, 251)])
def test_people_for_an_even_chance_with_weights(keys: int, people: int) -> None:
    """Half of delta for the noise and half for the threshold."""
    noise = Normal(deviation(1, 5e-7) * UNIT)
    threshold = weighted_threshold(noise, delta=Fraction("5e-7"), max_keys=keys)
    assert math.ceil(threshold / key_weight(keys)) == pytest.approx(people, abs=1)


@pytest.mark.parametrize("keys", [1, 2, 7])
def test_weighted_thresholds_are_the_smallest_that_hide_every_number_of_keys(keys: int) -> None:
    noise, delta = DiscreteLaplace(UNIT // 20), Fraction(1, 1000)
    threshold = weighted_threshold(noise, delta=delta, max_keys=keys)

    def leak(at: int, held: int) -> float:
        return 1 - (1 - (1 - float(noise.cdf(at - math.floor(2**20 / math.sqrt(held)) - 1)))) ** held

    assert max(leak(threshold, held) for held in range(1, keys + 1)) <= 1e-3
    assert max(leak(threshold - 5, held) for held in range(1, keys + 1)) > 1e-3
    if keys > 1:  # the twin looks at the most keys only, where the weight is smallest
        assert leak(threshold, 1) > leak(threshold, keys)
    assert all(held * key_weight(held) ** 2 <= 2**40 for held in range(1, 2000))


# --- draws ------------------------------------------------------------------------------------


def test_coins_of_keys_are_exact() -> None:
    keys = OptimalSelection(epsilon=1, delta="0.1", max_keys=1, adjacency="add/remove")
    with precision(400):
        second = int(((ball(1).exp() * ball(Fraction(1, 10)) + ball(Fraction(1, 10))) * arb(2) ** 128).floor().fmpz())
    word, rest = second >> 64, second & (1 << 64) - 1

    def drawn(word: int, *more: int) -> list[int]:
        parts = [m.to_bytes(8, "little") for m in more]
        script = Script(np.array([2**64 - 1, word, 2**64 - 1], dtype=np.uint64), *parts)
        places = keys._draw([1, 2, 10**6], script).tolist()
        script.finish()
        return [int(place) for place in places]

    assert drawn(word - 1) == [1, 2]
    assert drawn(word, rest - 1) == [1, 2]
    assert drawn(word, rest + 1) == [2]
    assert drawn(word + 1) == [2]


def test_draws_follow_the_probabilities_and_wrong_terms_are_seen() -> None:
    count, people = 40_000, 9
    terms: dict[str, Any] = {"delta": "0.01", "max_keys": 2, "adjacency": "add/remove"}
    optimal, plain = OptimalSelection(epsilon=1, **terms), LaplaceThreshold(epsilon=1, **terms)
    seen = [len(optimal.select(np.full(count, people))), len(plain.release(np.full(count, people))[0])]
    kinds: tuple[Any, ...] = (OptimalSelection, LaplaceThreshold)
    for made, hits in zip(kinds, seen, strict=True):
        for epsilon, near in (("1", True), ("1.3", False), ("0.77", False)):
            p = float(made(epsilon=epsilon, **terms).probability(people))
            assert (abs(hits - count * p) < 9.4 * math.sqrt(count * p * (1 - p))) is near
    places, noisy = plain.release([1, 10**6, 3 * 10**6])
    assert places.tolist() == [1, 2]
    assert all(abs(int(n) - true) < 1000 for n, true in zip(noisy, (10**6, 3 * 10**6), strict=True))
    assert int(plain.release(np.full(count, people))[1].min()) == plain.threshold, "exactly T is released"


def test_what_is_wrong_is_refused() -> None:
    for kind in (OptimalSelection, LaplaceThreshold):
        terms: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "max_keys": 1, "adjacency": "add/remove"}
        for name, wrong in (("epsilon", 0), ("delta", 0), ("delta", 1), ("max_keys", 0), ("max_keys", 1.5)):
            with pytest.raises(NumberError, match=f"{name} must be"):
                kind(**{**terms, name: wrong})
        with pytest.raises(UserError, match="adjacency must be"):
            kind(**{**terms, "adjacency": "rows"})
        made: Any = kind(**terms)
        ask = made.select if kind is OptimalSelection else made.release
        for bad in ([[1]], ["a"], [1.5], 3):
            with pytest.raises(DataError, match="counts must be a list of integers"):
                ask(bad)
        with pytest.raises(NumberError, match="at least one person"):
            ask([0, 3])
        with pytest.raises(NumberError, match="people must be a whole number"):
            made.probability(-1)
    assert OptimalSelection(epsilon=1, delta=1e-6, max_keys=1, adjacency="replace").select([]).tolist() == []
