"""Randomized response: exact reports, exact privacy, and intervals that hold on every small truth."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privet.audit.script import Script
from privet.errors import DataError, NumberError
from privet.exact import ball, precision
from privet.mechanisms import RandomizedResponse
from privet.noise.coins import uniform_integers
from privet.noise.entropy import SYSTEM


@pytest.mark.parametrize("k", [2, 3, 10, 1000])
@pytest.mark.parametrize("epsilon", ["1/10", "1", "5"])
def test_probabilities(k: int, epsilon: str) -> None:
    mechanism = RandomizedResponse(k, epsilon=epsilon)
    top = math.exp(float(Fraction(epsilon)))
    assert float(mechanism.keep) == pytest.approx(top / (top + k - 1), rel=1e-15)
    assert float(mechanism.other) == pytest.approx(1 / (top + k - 1), rel=1e-15)
    total = mechanism.keep.lower + (k - 1) * mechanism.other.lower
    assert abs(total - 1) < Fraction(1, 10**15)
    assert float(mechanism.pmf(1, 0)) == float(mechanism.other)
    assert float(mechanism.pmf(1, 1)) == float(mechanism.keep)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_profile_is_exact(k: int) -> None:
    mechanism = RandomizedResponse(k, epsilon=2)
    p, q = float(mechanism.keep), float(mechanism.other)
    for x in (0, 0.5, 1.9):
        delta = max(0.0, p - math.exp(x) * q) + max(0.0, q - math.exp(x) * p)
        assert float(mechanism.privacy_profile()(x)) == pytest.approx(delta, rel=1e-12)
    assert mechanism.privacy_profile()(2).upper == 0


def test_lying_uniformly_over_all_is_another_mechanism() -> None:
    """The twin that tells the truth with p and else draws from *all* categories keeps more than it should."""
    k, p = 4, Fraction(4, 7)  # e^epsilon = 4
    q = (1 - p) / (k - 1)
    assert p / q == 4
    twin_p, twin_q = p + (1 - p) / k, (1 - p) / k
    assert twin_p / twin_q > 4


# --- draws ------------------------------------------------------------------------------------


def test_truth_is_decided_by_the_exact_probability() -> None:
    mechanism = RandomizedResponse(["a", "b", "c"], epsilon=1)
    with precision(400):
        top = ball(Fraction(1)).exp()
        cut = int((top / (top + 2) * 2**128).floor().fmpz())
    word, rest = cut >> 64, cut & (1 << 64) - 1

    def reported(word: int, *more: int, lie: int = 0) -> Any:
        parts: list[Any] = [np.array([word], dtype=np.uint64), *(m.to_bytes(8, "little") for m in more)]
        script = Script(*parts, np.array([lie << 63], dtype=np.uint64))
        answer = mechanism._draw("b", script)
        script.finish()
        return answer

    assert reported(word - 1) == "b"
    assert reported(word, rest - 1) == "b"
    assert reported(word, rest + 1) == "c"
    assert reported(word + 1) == "c"
    assert reported(word + 2) == reported(2**64 - 1) == "c"
    assert reported(word + 2, lie=1) == "a"


@pytest.mark.parametrize("k", [2, 3, 7])
def test_reports_follow_the_probabilities_and_a_wrong_epsilon_is_seen(k: int) -> None:
    mechanism, count = RandomizedResponse(k, epsilon="0.8"), 100_000
    seen = np.bincount(mechanism.release(np.full(count, 1)), minlength=k)

    def surprise(claimed: RandomizedResponse) -> float:
        p = np.full(k, float(claimed.other))
        p[1] = float(claimed.keep)
        return float((((seen - count * p) ** 2) / (count * p)).sum())

    assert surprise(mechanism) < 150
    for epsilon in ("1.04", "0.6"):
        assert surprise(RandomizedResponse(k, epsilon=epsilon)) > 150


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 1000, 2**40 + 1])
def test_uniform_integers(bound: int) -> None:
    numbers = uniform_integers(bound, 20_000, SYSTEM)
    assert 0 <= int(numbers.min()) <= int(numbers.max()) < bound
    cells = np.bincount((numbers.astype(object) * min(bound, 10) // bound).astype(int), minlength=min(bound, 10))
    expected = np.diff([-(-i * bound // min(bound, 10)) for i in range(min(bound, 10) + 1)]) / bound * 20_000
    assert float(((cells - expected) ** 2 / expected).sum()) < 150


# --- estimates --------------------------------------------------------------------------------


def law(n: int, m: int, p: float, q: float) -> Any:
    """The law of the number of reports if m of n people hold a category."""
    held = np.array([math.comb(m, i) * p**i * (1 - p) ** (m - i) for i in range(m + 1)])
    rest = np.array([math.comb(n - m, i) * q**i * (1 - q) ** (n - m - i) for i in range(n - m + 1)])
    return np.convolve(held, rest)


@pytest.mark.parametrize("epsilon", ["1/2", "3"])
@pytest.mark.parametrize(("n", "level"), [(1, 0.9), (9, 0.5), (25, 0.8), (25, 0.95)])
def test_intervals_hold_for_every_truth_and_counts_are_unbiased(n: int, level: float, epsilon: str) -> None:
    mechanism = RandomizedResponse(3, epsilon=epsilon)
    p, q = float(mechanism.keep), float(mechanism.other)
    estimates = [mechanism.estimate([0] * c + [1] * (n - c), level)[0] for c in range(n + 1)]
    worst = 1.0
    for m in range(n + 1):
        chances = law(n, m, p, q)
        worst = min(worst, sum(chances[c] for c, e in enumerate(estimates) if e.low <= m <= e.high))
        assert sum(chances[c] * e.count for c, e in enumerate(estimates)) == pytest.approx(m, abs=1e-9)
    assert worst >= level
    if (n, level, epsilon) == (25, 0.95, "3"):  # a twin that forgets that lies are random, too, is caught
        plain = [c - n * q for c in range(n + 1)]
        misses = max(1 - sum(law(n, m, p, q)[c] for c, low in enumerate(plain) if abs(low - m) <= 2) for m in range(n))
        assert misses > 1 - level


def test_the_error_bounds_the_count() -> None:
    mechanism = RandomizedResponse(2, epsilon=1)
    n = 40
    bound = mechanism.error(0.9, responses=n)
    p, q = float(mechanism.keep), float(mechanism.other)
    for m in (0, 13, 40):
        chances = law(n, m, p, q)
        wrong = sum(chances[c] for c in range(n + 1) if abs((c - n * q) / (p - q) - m) > bound)
        assert wrong <= 0.1
        assert wrong <= mechanism.tail(bound, responses=n) == pytest.approx(0.1, rel=1e-9)
    assert mechanism.tail(0, responses=n) == 1
    assert mechanism.error(0.9, responses=100) < mechanism.error(0.99, responses=100)


# --- the face ---------------------------------------------------------------------------------


def test_values_and_answers_have_the_same_form() -> None:
    mechanism = RandomizedResponse(["yes", "no"], epsilon=60)
    assert mechanism.release("yes") == "yes"
    assert mechanism.release(["yes", "no"]) == ["yes", "no"]
    assert mechanism.release(("yes", "no")) == ["yes", "no"]
    assert mechanism.release(np.array([["yes", "no"]])).tolist() == [["yes", "no"]]
    assert mechanism.release([]) == []
    numbers = RandomizedResponse(3, epsilon=60)
    assert numbers.release(2) == 2
    assert numbers.release(np.array([0, 1, 2], dtype=np.uint8)).tolist() == [0, 1, 2]
    pairs = RandomizedResponse([(0, 1), (1, 0)], epsilon=60)
    assert pairs.release((0, 1)) == (0, 1)
    listed = np.empty(2, dtype=object)
    listed[:] = [(0, 1), (1, 0)]
    assert pairs.release(listed).tolist() == [(0, 1), (1, 0)]
    assert pairs.release([(0, 1), (1, 0)]) == [(0, 1), (1, 0)]
    assert repr(mechanism) == "RandomizedResponse(['yes', 'no'], epsilon=60)"


def test_what_is_wrong_is_refused() -> None:
    wrong: Any
    for wrong in (1, 0, "ab", None, 2.5, {"a", "b"}):
        with pytest.raises(NumberError, match="categories must be a whole number, 2 or greater"):
            RandomizedResponse(wrong, epsilon=1)
    for wrong in (["a"], ["a", "a"], []):
        with pytest.raises(NumberError, match="categories must be at least 2, all different"):
            RandomizedResponse(wrong, epsilon=1)
    with pytest.raises(DataError, match="categories must be texts or numbers"):
        RandomizedResponse([[1], [2]], epsilon=1)
    for wrong in ("maybe", 0, ["yes", "maybe"], [["yes"]], np.array([1])):
        with pytest.raises(DataError, match=r"not one of the categories. Write, for example: release\('yes'\)"):
            RandomizedResponse(["yes", "no"], epsilon=1).release(wrong)
    for wrong in (3, -1, True, 0.0, [0, 3], np.array([0, 3]), np.array([0.0])):
        with pytest.raises(DataError, match="not one of the categories"):
            RandomizedResponse(3, epsilon=1).release(wrong)
    with pytest.raises(DataError, match="there are no responses"):
        RandomizedResponse(3, epsilon=1).estimate([])


def test_a_masked_value_is_never_released_as_it_is() -> None:
    masked = np.ma.array([0, 999], mask=[False, True])
    with pytest.raises(DataError, match="masked"):
        RandomizedResponse(3, epsilon=1).release(masked)
    with pytest.raises(DataError, match="masked"):
        RandomizedResponse(3, epsilon=1).estimate(masked)


@pytest.mark.parametrize("epsilon", [700, 45_000, 10**6, 10**9, "1e50"])
def test_a_huge_epsilon_reports_the_truth(epsilon: Any) -> None:
    """The probability of another report is less than the precision with which its complement is computed."""
    mechanism = RandomizedResponse(5, epsilon=epsilon)
    assert mechanism.release([0, 1, 2, 3, 4]) == [0, 1, 2, 3, 4]
    assert float(mechanism.privacy_profile()(0)) == 1
    assert [round(each.count) for each in mechanism.estimate([0, 0, 1])] == [2, 1, 0, 0, 0]


def test_labels_of_several_types_stay_as_they_are() -> None:
    mechanism = RandomizedResponse([1, "a", None], epsilon=60)
    for values in ([1, 1], ["a", "a"]):
        reports = mechanism.release(np.array(values))
        assert [(type(r), r) for r in reports.tolist()] == [(type(v), v) for v in values]
    assert mechanism.release([1, "a", None]) == [1, "a", None]
