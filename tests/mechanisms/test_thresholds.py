"""Keys that are private: exact probabilities, and the exact hockey-stick divergence over all keys of small tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq
from scipy.stats import norm
from tests.mechanisms.exactly import hockey

from privet.audit.script import Script
from privet.errors import DataError, NumberError, UserError
from privet.exact import Enclosure, ball, enclose, less, precision
from privet.exact.search import first
from privet.mechanisms.thresholds import UNIT, GaussianThreshold, OptimalSelection, TruncatedThreshold, key_weight
from privet.noise import TruncatedLaplace
from privet.privacy.accounting import MeterAccountant
from privet.privacy.events import GaussianNoise, LaplaceNoise, Stated
from privet.privacy.gaussian import gaussian_delta
from privet.privacy.guarantees import ApproxDP
from privet.privacy.moves import L1Move, L2Move

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


@pytest.mark.parametrize("epsilon", ["0.01", "1", "50"])
def test_a_delta_of_one_half(epsilon: str) -> None:
    """The rule then reaches 1 at exactly two people: no enclosure can tell on which side of 2 the formula is."""
    noise = TruncatedLaplace(epsilon=epsilon, delta="0.5")
    assert (noise.turn, noise.threshold, noise.full, noise.lowest, noise.highest) == (1, 1, 2, -1, 0)
    assert [noise.shown(n).lower for n in range(4)] == [0, Fraction(1, 2), 1, 1]
    assert [noise.pmf(k).lower for k in (-2, -1, 0, 1)] == [0, Fraction(1, 2), Fraction(1, 2), 0]
    drawn = noise.sample(4000)
    assert set(drawn.tolist()) == {-1, 0}
    assert abs(np.mean(drawn) + 0.5) < 0.05
    selection = OptimalSelection(epsilon=epsilon, delta="0.5", max_keys=1, adjacency="add/remove")
    assert [selection.people_for(chance) for chance in ("1/2", "19/20")] == [1, 2]


def recursion(e_epsilon: Any, delta: Any, top: int) -> list[Any]:
    """The published recursion; all numbers of one kind."""
    chances = [delta * 0]
    for _ in range(top):
        pi = chances[-1]
        steps = [e_epsilon * pi + delta, 1 - (1 - pi - delta) / e_epsilon, delta * 0 + 1]
        chances.append(min(steps, key=lambda x: float(x)))
    return chances


GOOGLE = [
    (math.log(2), [0.1, 0.3, 0.7, 0.9, 1, 1]),
    (math.log(1.5), [0.1, 0.25, 0.475, 0.716666666667, 0.877777777778, 0.985185185185, 1, 1]),
]


@pytest.mark.parametrize(("epsilon", "values"), GOOGLE)
def test_google_s_values_of_the_optimal_selection(epsilon: float, values: list[float]) -> None:
    keys = OptimalSelection(epsilon=epsilon, delta=0.1, max_keys=1, adjacency="add/remove")
    assert [float(keys.probability(n)) for n in range(1, len(values) + 1)] == pytest.approx(values, abs=1e-11)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    ("epsilon", "delta", "keys"), [("1", "1e-6", 1), ("3", "0.01", 4), ("1/10", "1e-3", 2), ("9", "0.4", 1)]
)
def test_the_closed_form_is_the_recursion(epsilon: str, delta: str, keys: int, adjacency: str) -> None:
    made = TruncatedThreshold(epsilon=epsilon, delta=delta, max_keys=keys, adjacency=adjacency)
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


def units(e_unit: Any, unit: int, delta: Any) -> Any:
    """The delta of a unit, with which a step of a whole unit has all of delta."""
    return delta * (e_unit - 1) / (e_unit**unit - 1)


def shared(keys: int, adjacency: str, top: int, weigh: Any) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Weights of keys with and without a person who holds some of them, or with another person in their place."""
    changes = [
        tuple(weigh(g) if i in held else 0 for i in range(2 * keys))
        for g in range(1, keys + 1)
        for held in combinations(range(2 * keys), g)
    ]
    others = changes if adjacency == "replace" else [(0,) * (2 * keys)]
    for start in product(range(0, top + 1, 2), repeat=2 * keys):
        for mine, theirs in product(changes, others):
            yield tuple(map(sum, zip(start, mine, strict=True))), tuple(map(sum, zip(start, theirs, strict=True)))


@pytest.mark.parametrize("adjacency", BOTH)
def test_divided_units_are_private_jointly_and_the_twins_are_not(adjacency: str) -> None:
    """Two keys at most: a person gives 2 units to one key, or 1 to each of two."""
    e_unit, delta, persons = fmpq(3, 2), fmpq(1, 20), 2 if adjacency == "replace" else 1
    e_epsilon, top = e_unit ** (2 * persons), 6 if adjacency == "add/remove" else 2

    def worst(chances: Sequence[Any], weigh: Any) -> Any:
        pairs = {tuple(sorted((a, b) for a, b in zip(*pair, strict=True) if a != b)) for pair in
                 shared(2, adjacency, top, weigh)}  # fmt: skip
        return max(
            both_ways(selected(chances, [a for a, _ in pair]), selected(chances, [b for _, b in pair]), e_epsilon)
            for pair in pairs
            if pair
        )

    right = recursion(e_unit, units(e_unit, 2, delta / persons), 40)
    assert worst(right, lambda g: 2 // g) <= delta
    assert worst(recursion(e_unit, delta / persons, 40), lambda g: 2 // g) > delta, "delta for each unit"
    if adjacency == "add/remove":
        assert worst(right, lambda g: 2) > delta, "a whole unit for each key"
    else:
        add_remove = recursion(e_unit**2, units(e_unit**2, 2, delta), 40)
        assert worst(add_remove, lambda g: 2 // g) > delta, "add/remove's terms under replace"


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(("epsilon", "delta", "keys"), [("1", "1e-6", 3), ("3", "0.01", 4), ("1/10", "1e-3", 12)])
def test_the_rule_of_divided_units_is_the_recursion(epsilon: str, delta: str, keys: int, adjacency: str) -> None:
    made = OptimalSelection(epsilon=epsilon, delta=delta, max_keys=keys, adjacency=adjacency)
    persons = 2 if adjacency == "replace" else 1
    each = Fraction(epsilon) / made.unit / persons
    assert all(g * made.weight(g) <= made.unit for g in range(1, keys + 1))
    assert made.weight(1) == made.unit
    if keys <= 10:
        assert all(g * made.weight(g) == made.unit for g in range(1, keys + 1)), "nothing is lost"
        with precision(400):
            chances = recursion(
                ball(each).exp(), units(ball(each).exp(), made.unit, ball(Fraction(delta) / persons)), 30 * made.unit
            )
        for n, g in product(range(1, 30), range(1, keys + 1)):
            expected = float(chances[n * made.weight(g)])
            assert float(made.probability(n, keys=g)) == pytest.approx(expected, rel=1e-12)
    assert made.leak().upper <= Fraction(delta) / persons
    assert made.leak().lower >= Fraction(delta) / persons * (1 - Fraction(1, 10**12))
    guarantee: Any = made.guarantee()
    assert guarantee == ApproxDP(epsilon, delta)


# --- counts with truncated noise ----------------------------------------------------------------


def steps(e_epsilon: Any, delta: Any) -> list[Any]:
    """P(X = T - n) for n = 1, 2, ...: the differences of the published recursion."""
    chances = recursion(e_epsilon, delta, 200)
    return [b - a for a, b in pairwise(chances) if b != a]


def counted(n: int, law: Sequence[Any], threshold: int, *, least: int | None = None) -> dict[Any, Any]:
    """The law of one key's answer: absent, or a noisy count; noise T - m has probability law[m - 1]."""
    if n == 0:
        return {None: fmpq(1)}
    values = {n + threshold - m: p for m, p in enumerate(law, 1)}
    shown = {v: p for v, p in values.items() if v >= (threshold if least is None else least)}
    return {None: fmpq(1) - sum(shown.values()), **shown}


CASES = [(fmpq(2), fmpq(1, 10)), (fmpq(3, 2), fmpq(1, 10)), (fmpq(2), fmpq(1, 1000)), (fmpq(5, 4), fmpq(1, 3))]


@pytest.mark.parametrize(("e_epsilon", "delta"), CASES)
def test_counts_with_truncated_noise_are_private_and_show_as_much_as_keys_alone_could(
    e_epsilon: Any, delta: Any
) -> None:
    """One key, exactly, in both directions; twins with a lower threshold, or without a part of the noise, are not."""
    law, chances = steps(e_epsilon, delta), recursion(e_epsilon, delta, 200)
    assert sum(law) == 1
    assert all(b <= a * e_epsilon and a * c <= b * b for a, b, c in zip(law, law[1:], law[2:], strict=False))
    threshold, top = 50, len(law) + 3
    laws = [counted(n, law, threshold) for n in range(top + 1)]
    assert [1 - each[None] for each in laws] == chances[: top + 1], "the optimal chance of appearing"
    assert max(both_ways(a, b, e_epsilon) for a, b in pairwise(laws)) == delta
    low = [counted(n, law, threshold, least=threshold - 1) for n in range(top + 1)]
    twin = [{None: 1 - law[0] - law[1], **low[1]}, *low[2:]]
    assert 1 - low[1][None] > delta, "exactly T - 1 is shown: a key of one person appears too often"
    assert max(both_ways(a, b, e_epsilon) for a, b in pairwise([laws[0], *twin])) > delta
    cut = [law[0] + law[1], *law[2:]]  # the noise ends one step earlier, and its mass moves to the end
    assert (
        max(both_ways(counted(n, cut, threshold), counted(n + 1, cut, threshold), e_epsilon) for n in range(top))
        > delta
    )


@pytest.mark.parametrize(("keys", "adjacency", "top"), [(2, "add/remove", 5), (1, "replace", 6)])
def test_several_counts_are_private_together_and_all_of_delta_for_each_is_not(
    keys: int, adjacency: str, top: int
) -> None:
    e_each, delta, changed = fmpq(2), fmpq(1, 5), 2

    def worst(law: Sequence[Any]) -> Any:
        laws = [counted(n, law, 20) for n in range(top + 2)]
        return max(
            both_ways(joint([laws[n] for n in a]), joint([laws[n] for n in b]), e_each**changed)
            for a, b in neighbours(keys, adjacency, top)
        )

    assert worst(steps(e_each, delta / changed)) <= delta
    assert worst(steps(e_each, delta)) > delta, "all of delta for each key"
    assert worst(steps(e_each**2, delta / changed)) > delta, "all of epsilon for each key"


@pytest.mark.parametrize(("e_epsilon", "delta"), CASES)
def test_truncated_noise_is_no_easier_to_tell_apart_than_a_leak_and_a_bit(e_epsilon: Any, delta: Any) -> None:
    """At every epsilon, so that its event, Laplace noise and a leak, costs enough under every accountant."""
    law = steps(e_epsilon, delta)
    laws = [counted(n, law, 40) for n in range(len(law) + 3)]

    def allowed(e: Any) -> Any:  # of randomized response with odds e^epsilon, after a leak of delta
        return delta + (1 - delta) * max(fmpq(0), (e_epsilon - e) / (1 + e_epsilon), 1 - e)

    for one, other in pairwise(laws):
        for p, q in ((one, other), (other, one)):
            levels = {p[x] / q[x] for x in p if q.get(x)} | {fmpq(1), e_epsilon, 1 / e_epsilon}
            assert all(hockey(p, q, e) <= allowed(e) for e in levels)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    ("epsilon", "delta", "keys"), [("1", "1e-6", 1), ("0.1", "1e-9", 3), ("4", "0.01", 100), ("2", "0.6", 1)]
)
def test_a_key_of_one_person_appears_with_at_most_delta(epsilon: str, delta: str, keys: int, adjacency: str) -> None:
    """T16; and the noise that runs has the probabilities of the recursion."""
    made = TruncatedThreshold(epsilon=epsilon, delta=delta, max_keys=keys, adjacency=adjacency)
    changed = keys * (2 if adjacency == "replace" else 1)
    assert made.leak() <= Fraction(delta)
    assert made.probability(1).upper == Fraction(delta) / changed
    with precision(400):
        chances = recursion(ball(Fraction(epsilon) / changed).exp(), ball(Fraction(delta) / changed), 700)
    law = made.noise
    assert made.threshold == next(n for n in range(1, 10**6) if float(law.shown(n)) >= 0.5)
    for n in range(1, 700):
        assert float(made.probability(n)) == pytest.approx(float(chances[n]), rel=1e-14)
        mass = float(chances[n] - chances[n - 1])
        assert float(law.pmf(made.threshold - n)) == pytest.approx(mass, rel=1e-12, abs=1e-300)
        assert float(law.cdf(made.threshold - n)) == pytest.approx(1 - float(chances[n - 1]), abs=1e-15)
    noise, leaked = made.event().events
    assert leaked == Stated(epsilon=0, delta=delta)
    assert noise == LaplaceNoise(move=L1Move(1, blocks=changed), scale=made.scale)
    assert made.guarantee() == ApproxDP(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "values"), GOOGLE)
def test_what_runs_shows_keys_with_google_s_probabilities(epsilon: float, values: list[float]) -> None:
    """Draws, not formulas: every value of the noise has its own string of bits, and half as much again is refused."""
    made = TruncatedThreshold(epsilon=epsilon, delta="0.1", max_keys=1, adjacency="add/remove")
    count = 60_000
    for n, value in enumerate(values, 1):
        seen = len(made.release(np.full(count, n))[0]) / count
        error = 7 * math.sqrt(value * (1 - value) / count)
        assert abs(seen - value) <= error
        other = values[n - 2] if n > 1 else 0.15
        assert other == value or abs(seen - other) > error


def test_the_median_of_the_noise_is_0_and_the_quantiles_are_the_smallest() -> None:
    for epsilon, delta in (("1", "1e-6"), ("0.2", "1e-3"), ("3", "0.2")):
        law = TruncatedLaplace(epsilon, delta)
        assert law.quantile("1/2") == 0
        values = range(law.lowest, law.highest + 1)
        assert sum(law.pmf(k).upper for k in values) == pytest.approx(1, abs=1e-25)
        for p in ("1/100", "0.3", "0.975"):
            k = law.quantile(p)
            assert law.cdf(k).lower >= Fraction(p) > law.cdf(k - 1).lower
        assert law.cdf(law.lowest - 1).upper == 0 == law.pmf(law.highest + 1).upper
        assert law.cdf(law.highest).lower == 1


def test_truncated_noise_of_any_size_is_drawn() -> None:
    """Also where delta exceeds epsilon, so that the support is much narrower than the scale."""
    for epsilon, delta in (("1e-30", "1e-60"), ("1e-30", "1e-9"), ("50", "0.9"), ("1e-5", "1e-12")):
        law = TruncatedLaplace(epsilon, delta)
        draws = law.sample(50).tolist()
        assert all(law.lowest <= x <= law.highest for x in draws)
        assert law.full < 100 or len(set(draws)) > 10
    for bad in ({"epsilon": 0, "delta": 0.1}, {"epsilon": 1, "delta": 0}, {"epsilon": 1, "delta": 1}):
        with pytest.raises(NumberError):
            TruncatedLaplace(**bad)


@pytest.mark.parametrize(
    ("keys", "optimal", "threshold"), [(1, 14, 15), (3, 40, 45), (10, 132, 156), (100, 1313, 1775)]
)
def test_people_for_an_even_chance(keys: int, optimal: int, threshold: int) -> None:
    """The published numbers; people who hold one key count as if all did."""
    terms = {"epsilon": 1, "delta": 1e-6, "max_keys": keys, "adjacency": "add/remove"}
    assert TruncatedThreshold(**terms).people_for(0.5) == optimal < threshold  # type: ignore[arg-type]
    divided = OptimalSelection(**terms)  # type: ignore[arg-type]
    assert divided.people_for(0.5, keys=1) == 14
    assert optimal <= divided.people_for(0.5) <= 1.05 * optimal


# --- weighted counts --------------------------------------------------------------------------


@pytest.mark.parametrize(("keys", "published"), [(1, 22), (3, 40), (10, 75), (100, 251)])
def test_people_for_an_even_chance_with_weights(keys: int, published: int) -> None:
    """The published numbers are for the delta of continuous noise; ours goes by way of rho, with 7 % more noise."""
    made = GaussianThreshold(epsilon=1, delta=1e-6, max_keys=keys, adjacency="add/remove")
    people = made.people_for(0.5)
    assert published <= people <= 1.08 * published
    low, high = 0.1, 100.0  # the smallest sigma of continuous noise, with half of delta (Balle, Wang 2018)
    for _ in range(80):
        sigma = (low + high) / 2
        x, y = 1 / (2 * sigma), sigma
        low, high = (sigma, high) if norm.cdf(x - y) - math.e * norm.cdf(-x - y) > 5e-7 else (low, sigma)
    ratio = float(made.noise.sigma_squared) ** 0.5 / UNIT / high
    assert 1 <= ratio <= 1.08
    each = [(1 - (1 - 5e-7) ** (1 / g), 1 / math.sqrt(g)) for g in range(1, keys + 1)]
    threshold = max(weight + high * norm.isf(chance) for chance, weight in each)
    assert math.ceil(threshold * math.sqrt(keys)) == pytest.approx(published, abs=1)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("price", [{"rho": "0.02"}, {"epsilon": "0.5"}, {"epsilon": 3}, {"rho": 2}])
@pytest.mark.parametrize(("keys", "delta"), [(1, "1e-6"), (2, "0.01"), (7, "1e-9"), (40, "0.3")])
def test_the_weighted_threshold_is_the_smallest_that_hides_every_number_of_keys(
    keys: int, delta: str, price: dict[str, Any], adjacency: str
) -> None:
    """The twin that forgets the mass at T takes T - 1, which leaks more than its delta."""
    made = GaussianThreshold(**price, delta=delta, max_keys=keys, adjacency=adjacency)
    noise, share = made.noise, made.leaked
    assert share == Fraction(delta) / (1 if "rho" in price else 2)

    def leak(at: int, held: int) -> Enclosure:  # from the distribution's own functions
        weight = math.isqrt(2**40 // held)
        return enclose(lambda: 1 - (1 - noise.cdf_ball(weight - at)) ** held)

    assert all(leak(made.threshold, held) <= share for held in range(1, keys + 1))
    assert any(leak(made.threshold - 1, held) > share for held in range(1, keys + 1)), "the twin"
    most = max(float(leak(made.threshold, held)) for held in range(1, keys + 1))
    assert float(made.leak()) == pytest.approx(most, rel=1e-15)
    assert all(held * key_weight(held) ** 2 <= 2**40 for held in range(1, keys + 1))


def test_the_most_keys_are_not_always_the_worst() -> None:
    """The twin looks at max_keys only, where the weight is smallest."""
    made = GaussianThreshold(rho=2, delta="0.001", max_keys=5, adjacency="add/remove")
    assert enclose(lambda: made._leak(made.threshold, 5)) < Fraction("0.001")
    twin = first(lambda t: less(lambda: made._leak(t, 5), Fraction("0.001")), 1)
    assert twin < made.threshold
    assert enclose(lambda: made._leak(twin, 1)) > Fraction("0.001")


def test_its_event_and_its_guarantee() -> None:
    made = GaussianThreshold(epsilon=1, delta="1e-6", max_keys=3, adjacency="replace")
    noise, leak = made.event().events
    assert isinstance(noise, GaussianNoise)
    assert (noise.move, noise.coordinates, noise.epsilon) == (L2Move(2**41), 6, Fraction(1))
    assert leak == Stated(epsilon=0, delta="5e-7")
    guarantee: Any = made.guarantee()
    assert (guarantee.epsilon, guarantee.delta <= Fraction("1e-6")) == (1, True)
    assert guarantee.delta > Fraction("0.999e-6")
    readings = MeterAccountant((8,), (Fraction(1, 2),)).price(made.event())
    assert readings.renyi[0] is not None
    assert 8 * noise.rho <= readings.renyi[0] <= 8 * noise.rho * (1 + Fraction(1, 10**6))
    in_rho = GaussianThreshold(rho="0.01", delta="1e-6", max_keys=3, adjacency="add/remove")
    assert in_rho.noise.sigma_squared == 2**40 * 50
    stated: Any = in_rho.guarantee()
    assert (type(stated), stated.delta) == (ApproxDP, Fraction("2e-6"))
    with pytest.raises(NumberError, match="pass either rho or epsilon"):
        GaussianThreshold(rho=1, epsilon=1, delta=1e-6, max_keys=1, adjacency="replace")


def small_law(count: int, sigma_squared: float, threshold: int, width: int) -> Any:
    """One key's answer: absent, a noisy count from T on, or a higher one; in floats, because of e^(-k^2/...)."""
    law = np.zeros(width + 2)
    if count == 0:
        law[0] = 1
        return law
    noise = np.arange(-100, 101)
    mass = np.exp(-(noise**2) / (2 * sigma_squared))
    np.add.at(law, np.clip(count + noise - threshold + 1, 0, width + 1), mass / mass.sum())
    return law


def small_case(keys: int, adjacency: str, *, forgets: bool = False, share: float = 1) -> tuple[float, float, float]:
    """A small instance, weights floor(4/sqrt(g)), and a share of its noise: the worst delta at epsilon 1, what it may
    be, and how likely a key of one person appears."""
    unit, leaked, changed = 4, 0.02, keys * (2 if adjacency == "replace" else 1)
    move = L2Move(unit**2 * (2 if adjacency == "replace" else 1))
    sigma_squared = share * 40
    allowed = leaked + float(gaussian_delta(move, 40, changed, 1))
    weight = [0, *(math.isqrt(unit**2 // g) for g in range(1, keys + 1))]
    noise = np.arange(-200, 201)
    mass = np.exp(-(noise**2) / (2 * sigma_squared))

    def leak(threshold: int) -> float:
        upper = [float(mass[noise >= threshold - weight[g]].sum() / mass.sum()) for g in range(1, keys + 1)]
        return max(1 - (1 - each) ** g for g, each in enumerate(upper, 1))

    threshold = next(t for t in range(1, 200) if leak(t + forgets) <= leaked)
    worst = 0.0
    for counts in product((0, 3, threshold), repeat=changed):
        for g, h in product(range(1, keys + 1), repeat=2):
            gone = [*[weight[g]] * g, *[0] * (changed - g)]
            come = [*[0] * (changed - h), *[weight[h]] * h] if adjacency == "replace" else [0] * changed
            p, q = (
                reduce(
                    np.multiply.outer,
                    [small_law(n + x, sigma_squared, threshold, 40) for n, x in zip(counts, add, strict=True)],
                )
                for add in (gone, come)
            )
            worst = max(worst, *(float(np.clip(a - math.e * b, 0, None).sum()) for a, b in ((p, q), (q, p))))
    return worst, allowed, leak(threshold)


@pytest.mark.parametrize(("keys", "adjacency"), [(1, "add/remove"), (2, "add/remove"), (1, "replace")])
def test_weighted_thresholds_are_private_jointly_and_the_twins_are_not(keys: int, adjacency: str) -> None:
    worst, allowed, alone = small_case(keys, adjacency)
    assert worst <= allowed
    assert alone <= 0.02
    forgetful, _, alone = small_case(keys, adjacency, forgets=True)
    assert forgetful >= alone > 0.02, "the mass at T is forgotten: a key of one person leaks more than its share"
    if adjacency == "replace":
        worst, allowed, _ = small_case(keys, adjacency, share=0.5)
        assert worst > allowed, "add/remove's noise under replace"


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
    optimal, plain = OptimalSelection(epsilon=1, **terms), TruncatedThreshold(epsilon=1, **terms)
    seen = [
        len(optimal.select(np.full(count, people * optimal.weight(2)))),
        len(plain.release(np.full(count, people))[0]),
    ]
    kinds: tuple[Any, ...] = (OptimalSelection, TruncatedThreshold)
    for made, hits in zip(kinds, seen, strict=True):
        for epsilon, near in (("1", True), ("1.3", False), ("0.77", False)):
            p = float(made(epsilon=epsilon, **terms).probability(people))
            assert (abs(hits - count * p) < 9.4 * math.sqrt(count * p * (1 - p))) is near
    places, noisy = plain.release([1, 10**6, 3 * 10**6])
    assert places.tolist() == [1, 2]
    assert all(abs(int(n) - true) < 1000 for n, true in zip(noisy, (10**6, 3 * 10**6), strict=True))
    assert int(plain.release(np.full(count, people))[1].min()) == plain.threshold, "exactly T is released"


def test_weighted_draws() -> None:
    made = GaussianThreshold(epsilon=1, delta="0.01", max_keys=4, adjacency="add/remove")
    count, people = 20_000, 9
    places, noisy = made.release(np.full(count, people * key_weight(4)))
    p = float(made.probability(people))
    assert 0.05 < p < 0.95
    assert abs(len(places) - count * p) < 9.4 * math.sqrt(count * p * (1 - p))
    wrong = float(made.probability(people, keys=3))
    assert abs(len(places) - count * wrong) > 9.4 * math.sqrt(count * p * (1 - p))
    assert int(noisy.min()) >= made.threshold
    places, noisy = made.release([0, 10**9, -5, 10**40])
    assert places.tolist() == [1, 3]
    assert made.probability(0).upper == 0


def test_keys_that_nobody_holds_never_appear_and_no_count_is_refused_by_its_value() -> None:
    terms: dict[str, Any] = {"epsilon": 1, "delta": 0.9, "max_keys": 1, "adjacency": "add/remove"}
    optimal, laplace = OptimalSelection(**terms), TruncatedThreshold(**terms)
    gaussian = GaussianThreshold(**terms)
    for counts in ([0, 10**6, 0], [10**6, -1, 2**63, 10**30], np.array([2**63 + 5, 0], dtype=np.uint64)):
        held = [i for i, n in enumerate(counts) if n > 0]
        assert optimal.select(counts).tolist() == held
        assert OptimalSelection(**{**terms, "max_keys": 12}).select([int(n) << 21 for n in counts]).tolist() == held
        assert laplace.release(counts)[0].tolist() == held
        assert gaussian.release([int(n) * 2**20 for n in counts])[0].tolist() == held


def test_what_is_wrong_is_refused() -> None:
    for kind in (OptimalSelection, TruncatedThreshold, GaussianThreshold):
        terms: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "max_keys": 1, "adjacency": "add/remove"}
        for name, wrong in (("epsilon", 0), ("delta", 0), ("delta", 1), ("max_keys", 0), ("max_keys", 1.5)):
            with pytest.raises(NumberError, match=f"{name} must be"):
                kind(**{**terms, name: wrong})
        with pytest.raises(UserError, match="adjacency must be"):
            kind(**{**terms, "adjacency": "rows"})
        made: Any = kind(**terms)
        ask = made.select if kind is OptimalSelection else made.release
        for bad in ([[1]], ["a"], [1.5], 3):
            with pytest.raises(DataError, match="must be a list of integers, one for each key"):
                ask(bad)
        with pytest.raises(NumberError, match="people must be a whole number"):
            made.probability(-1)
    assert OptimalSelection(epsilon=1, delta=1e-6, max_keys=1, adjacency="replace").select([]).tolist() == []
