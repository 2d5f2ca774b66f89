"""The sparse vector: exact probabilities and exact privacy; the four wrong ones of Lyu, Su, Li (2017) are rejected."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import fmpq
from tests.mechanisms.exactly import ELSEWHERE, broken, moved, private, raised, sparse_vector

from privet.errors import DataError, NumberError
from privet.mechanisms import AboveThreshold
from privet.noise import DiscreteLaplace

# e^(-epsilon/20) = 4/5, so that every share of epsilon used here has a rational ratio
U = fmpq(4, 5)


def ratio(share: Fraction) -> Any:
    """E^(-share epsilon)."""
    power = 20 * share
    assert power.denominator == 1
    return U ** int(power)


E_EPSILON = 1 / ratio(Fraction(1))  # epsilon is 4.46
Laws = Callable[[tuple[int, ...]], dict[Any, Any]]


def ours(monotone: bool = False) -> Laws:
    """Threshold noise of scale 1/e1, query noise of scale 2/e2 (or 1/e2 if monotone)."""
    first = Fraction(1, 2) if monotone else Fraction(2, 5)
    query = (1 - first) / (1 if monotone else 2)
    return cache(partial(sparse_vector, threshold=ratio(first), query=ratio(query), reach=30))


LISTS = [(0,), (0, 0), (1, -1), (-2, 2), (0, 0, 0), (3, 0, -3), (-1, 1, 2)]


def test_ours_is_private() -> None:
    assert private(ours(), moved(LISTS[:5]), E_EPSILON)
    assert private(ours(monotone=True), raised(LISTS), E_EPSILON)


def test_the_mechanism_draws_what_was_enumerated() -> None:
    """The scales of the code are those of the enumeration, and its probabilities are the enumerated ones."""
    for monotone in (False, True):
        mechanism = AboveThreshold(sensitivity=1, epsilon=2, threshold=0, monotone=monotone)
        t, q = mechanism.threshold_noise.scale, mechanism.query_noise.scale
        assert (t, q) == ((1, 1) if monotone else (Fraction(5, 4), Fraction(5, 3)))
        for queries in LISTS:
            law = sparse_vector(queries, threshold=math.exp(-1 / t), query=math.exp(-1 / q), reach=60)
            found = mechanism.probabilities(queries)
            for i in range(len(queries)):
                assert float(found[i]) == pytest.approx(float(law[(*(False,) * i, True)]), abs=1e-14)
            assert float(found[-1]) == pytest.approx(float(law[(False,) * len(queries)]), abs=1e-14)
            assert sum(float(p) for p in found) == pytest.approx(1, abs=1e-14)
            assert max(p.width for p in found) < Fraction(1, 10**17)


def test_monotone_noise_under_replace_is_caught() -> None:
    assert broken(ours(monotone=True), moved([(0, 0), (1, 1, 1, 1), (-5, -5, -5, 5)]), E_EPSILON)


def test_roth_2011_with_its_value_is_rejected() -> None:
    """Algorithm 3: noise of scale 1/e2 on queries, and the noisy answer of the one above is released."""
    twin = partial(sparse_vector, threshold=ratio(Fraction(1, 2)), query=ratio(Fraction(1, 2)), value=True, reach=25)
    assert broken(twin, [((0, 0, 0, 0, 0), (1, 1, 1, 1, 0))], E_EPSILON)


def test_lee_and_clifton_2014_is_rejected() -> None:
    """Algorithm 4: e1 = 1/4 of epsilon, and noise of scale 1/e2 on queries, although they move by 2 with the threshold.

    It is (1 + 6 c)/4 epsilon-DP, for c = 1 that is 7/4, and reaches more than epsilon.
    """
    twin = partial(sparse_vector, threshold=ratio(Fraction(1, 4)), query=ratio(Fraction(3, 4)), reach=40)
    pairs = [((*(0,) * n, -8), (*(1,) * n, -9)) for n in (4, 12)]
    assert broken(twin, pairs, E_EPSILON)
    assert not broken(ours(), pairs, E_EPSILON)


def test_stoddard_2014_is_rejected() -> None:
    """Algorithm 5: no noise on the queries: two queries exchange their order, which the answers show."""
    twin = partial(sparse_vector, threshold=ratio(Fraction(1, 2)), query=None, most=None)
    assert broken(twin, [((0, 1), (1, 0))], E_EPSILON)
    assert broken(twin, [((0, 1), (1, 0))], 10**9 * E_EPSILON), "for every epsilon"


def test_chen_2015_is_rejected() -> None:
    """Algorithm 6: noise of scale 1/e2, and any number of queries above."""
    twin = partial(sparse_vector, threshold=ratio(Fraction(1, 2)), query=ratio(Fraction(1, 2)), most=None, reach=25)
    pairs = [((0, 0, 0, 1, 1, 1), (1, 1, 1, 0, 0, 0))]
    assert broken(twin, pairs, E_EPSILON)
    assert not broken(ours(), pairs, E_EPSILON)


def test_a_fresh_threshold_for_each_query_is_another_mechanism() -> None:
    """With a fresh threshold each silence costs, too: the twin is rejected, on a list that is long enough."""

    def fresh(queries: tuple[int, ...]) -> dict[Any, Any]:
        law: dict[Any, Any] = {(): fmpq(1)}
        for q in queries:
            one = sparse_vector((q,), threshold=ratio(Fraction(2, 5)), query=ratio(Fraction(3, 10)), reach=30)
            law = {
                (*path, *step): mass * p
                for (path, mass), (step, p) in product(law.items(), one.items())
                if step != ELSEWHERE
            }
            law = {path: mass for path, mass in law.items() if True not in path[:-1]}
        return law

    pairs = [((4,) * 9, (5,) * 9)]
    assert broken(fresh, pairs, E_EPSILON)
    assert not broken(ours(), pairs, E_EPSILON)


# --- draws ------------------------------------------------------------------------------------


def test_draws_follow_the_probabilities_and_a_wrong_scale_is_seen() -> None:
    mechanism, draws, queries = AboveThreshold(sensitivity=1, epsilon=2, threshold=2), 6000, [0, -5, 3]
    answers = [mechanism.select(queries) for _ in range(draws)]
    seen = np.bincount([3 if a is None else a for a in answers], minlength=4)

    def surprise(made: AboveThreshold) -> float:
        p = np.array([float(each) for each in made.probabilities(queries)])
        return float((((seen - draws * p) ** 2) / (draws * p)).sum())

    assert surprise(mechanism) < 80
    for epsilon in ("2.7", "1.5"):
        assert surprise(AboveThreshold(sensitivity=1, epsilon=epsilon, threshold=2)) > 80
    assert surprise(AboveThreshold(sensitivity=1, epsilon=2, threshold=3)) > 80


@pytest.mark.parametrize(
    ("threshold_noise", "query_noise", "expected"),
    [(0, [0] * 3, 1), (0, [5, 0, 0], 0), (1, [0] * 3, 2), (1, [0, -1, 0], 2), (9, [0] * 3, None), (-5, [0] * 3, 0)],
)
def test_the_first_at_or_above_the_noisy_threshold(
    threshold_noise: int, query_noise: list[int], expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Given:
        def one(self, bits: Any) -> int:
            return threshold_noise

        def array(self, count: int, bits: Any) -> Any:
            return np.array(query_noise[:count])

    monkeypatch.setattr("privet.mechanisms.above_threshold.laplace_digits", lambda scale: Given())
    for threshold in (5, "4.5", 4.001):  # integers are at least 5 exactly if they are at least 4.5
        assert AboveThreshold(sensitivity=1, epsilon=1, threshold=threshold).select([0, 5, 7]) == expected


def test_a_fractional_sensitivity_of_integers_is_rounded_up_to_steps() -> None:
    """A query of integers that moves by at most 1.5 moves by 1; one step more is a safe shift of whole steps."""
    assert AboveThreshold(sensitivity="1.5", epsilon=1, threshold=0).threshold_noise == DiscreteLaplace(5)


def test_the_error_holds() -> None:
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=0)
    for count in (1, 5):
        bound = mechanism.error(0.9, queries=count)
        wrong = mechanism.probabilities([-bound - 1] * count)
        assert sum(float(p) for p in wrong[:-1]) <= 0.1
        assert float(mechanism.probabilities([*[-bound - 1] * (count - 1), bound + 1])[-1]) <= 0.1
        assert sum(float(p) for p in wrong[:-1]) <= mechanism.tail(bound, queries=count)
    assert mechanism.error(0.99, queries=10) > mechanism.error(0.9, queries=10) > mechanism.error(0.9, queries=1)
    assert mechanism.tail(0, queries=1) == 1
    assert mechanism.tail(10**4, queries=1000) < 1e-100


def test_what_is_wrong_is_refused() -> None:
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=0)
    for wrong in ([], 3, [0.5], ["x"], [math.nan]):
        with pytest.raises(DataError, match=r"Write, for example: select\(\[90, 120, 80\]\)"):
            mechanism.select(wrong)
    for name in ("sensitivity", "epsilon"):
        with pytest.raises(NumberError, match=f"{name} must be a number greater than 0"):
            AboveThreshold(**{"sensitivity": 1, "epsilon": 1, "threshold": 0, name: 0})  # type: ignore[arg-type]
    with pytest.raises(NumberError, match="threshold must be a number"):
        AboveThreshold(sensitivity=1, epsilon=1, threshold="high")
