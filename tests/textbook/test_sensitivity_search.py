"""The search finds neighbours that break wrong claims, and none that break right ones."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privet.errors import DataError, NoSensitivity, NumberError
from privet.privacy.adjacency import Adjacency
from privet.textbook import sensitivity
from privet.textbook.sensitivity import Counterexample, search
from privet.textbook.sensitivity.candidates import Pair, Stream, Values

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE
LOW, HIGH = 2**52 + 512, 2**52 + 513  # T3


def naive_sum(rows: list[Any]) -> Any:
    total = 0.0
    for row in rows:
        total += row
    return total


def mean(rows: list[Any]) -> Any:
    return naive_sum(rows) / len(rows)


def check(found: Counterexample | None, how: Adjacency, low: Any, high: Any) -> Counterexample:
    """A counterexample is one: neighbours up to the order of rows, inside the bounds, too far apart."""
    assert found is not None
    assert all(low <= row <= high for row in found.left + found.right)
    left, right = Counter(map(repr, found.left)), Counter(map(repr, found.right))
    gone, come = (left - right).total(), (right - left).total()
    assert (gone, come) in ([(0, 1)] if how is ADD else [(0, 0), (1, 1)])
    assert found.change > found.claimed
    return found


WRONG: dict[str, tuple[Callable[[list[Any]], Any], Any, Any]] = {
    "mean": (mean, "1/6", 5),
    "median": (statistics.median, "1/5", 5),
    "std": (lambda rows: float(np.std(rows)), "1/5", 5),
    "maximum": (max, 0.5, None),
    "breaks on equal rows": (lambda rows: 7 if len(rows) > 1 and len(set(rows)) == 1 else 0, 6, None),
    "breaks on equal rows in the middle": (lambda rows: 7 * (len(rows) > 1 and set(rows) == {0.5}), 6, None),
    "histogram": (lambda rows: [sum(row < 0.5 for row in rows), sum(row >= 0.5 for row in rows)], 1, 4),
    "numpy histogram": (lambda rows: np.histogram(rows, bins=3, range=(0, 1))[0], 1, 4),
    "negative zero": (lambda rows: sum(math.copysign(1, row) for row in rows), 1, None),
    "first row": (lambda rows: 2 * rows[0], 1, None),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_claims_are_broken(name: str) -> None:
    f, claimed, n = WRONG[name]
    found = check(search(f, claimed=claimed, lower=0, upper=1, adjacency="replace", n=n), REPLACE, 0, 1)
    assert str(found).startswith("claimed ")


@pytest.mark.parametrize(
    ("f", "claimed"),
    [
        (mean, "49/100"),
        (max, 0.5),
        (lambda rows: len(rows), 0.5),
        (lambda rows: float(np.std(rows)), 0.49),
        (lambda rows: [naive_sum(rows), len(rows)], 1),
    ],
)
def test_wrong_claims_are_broken_under_add_remove(f: Any, claimed: Any) -> None:
    check(search(f, claimed=claimed, lower=0, upper=1, adjacency="add/remove"), ADD, 0, 1)


def test_climbs_find_what_is_on_no_grid() -> None:
    """A peak at 0.3, 0.01 wide, for all common rows: it takes many small moves."""

    def f(rows: list[float]) -> float:
        near = [abs(row - 0.3) for row in rows[:-1]]
        return rows[-1] * (1 + max(0.0, 1 - sum(near)))

    found = check(search(f, claimed=1.99, lower=0, upper=1, adjacency="replace", n=4, ordered=True), REPLACE, 0, 1)
    assert all(abs(row - 0.3) < 0.01 for row in found.left[:-1])


@pytest.mark.parametrize("how", Adjacency)
@pytest.mark.parametrize("n", [None, range(2, 9)])
def test_float_sums_break_their_claim(how: Adjacency, n: Any) -> None:
    claimed = 1 if how is REPLACE else HIGH
    check(search(naive_sum, claimed=claimed, lower=LOW, upper=HIGH, adjacency=how, n=n), how, LOW, HIGH)


def test_float_sums_move_by_1024() -> None:
    found = search(naive_sum, claimed=1023, lower=LOW, upper=HIGH, adjacency="replace", n=1100)
    assert check(found, REPLACE, LOW, HIGH).change >= 1024
    assert "(1092 more)" in str(found)


def test_float_sums_move_further_when_rows_are_permuted() -> None:
    found = check(
        search(naive_sum, claimed=20_000, lower=LOW, upper=HIGH, adjacency="replace", n=1100), REPLACE, LOW, HIGH
    )
    assert abs(sum(map(int, found.left)) - sum(map(int, found.right))) <= 1


def test_rows_have_no_order_unless_said() -> None:
    def ends(rows: list[float]) -> float:
        return rows[0] - rows[-1]

    kwargs: dict[str, Any] = {"claimed": 1, "lower": 0, "upper": 1, "adjacency": "replace", "n": 4, "kind": Fraction}
    assert search(ends, ordered=True, tries=5000, **kwargs) is None
    assert check(search(ends, **kwargs), REPLACE, 0, 1).change == 2


def test_exact_sums_of_the_same_values_hold() -> None:
    def exact_sum(rows: list[float]) -> int:
        return sum(int(row) for row in rows)

    assert search(exact_sum, claimed=1, lower=LOW, upper=HIGH, adjacency="replace", tries=5000) is None


UNIT: dict[str, Any] = {"lower": 0, "upper": 1}
RIGHT: dict[str, tuple[Callable[[list[Any]], Any], Callable[..., Fraction]]] = {
    "sum": (sum, sensitivity.sum),
    "mean": (statistics.mean, sensitivity.mean),
    "variance": (statistics.pvariance, lambda **k: sensitivity.variance(ddof=0, **k)),
    "median": (statistics.median, lambda **k: sensitivity.median(interpolation="linear", **k)),
    "lower median": (statistics.median_low, lambda **k: sensitivity.median(interpolation="lower", **k)),
    "maximum": (max, sensitivity.max),
    "std": (lambda rows: float(np.std([float(r) for r in rows])), lambda **k: sensitivity.std(ddof=0, **k)),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize(("how", "n"), [(REPLACE, 4), (REPLACE, 5), (REPLACE, None), (ADD, None)])
def test_right_claims_hold_and_a_little_less_does_not(name: str, how: Adjacency, n: int | None) -> None:
    f, form = RIGHT[name]
    claimed = form(adjacency=how, n=n, **UNIT)
    slack = Fraction(1, 10**12) if name == "std" else 0
    common: dict[str, Any] = {"adjacency": how, "n": n, "kind": Fraction, "tries": 1500, **UNIT}
    assert search(f, claimed=claimed, tolerance=slack, **common) is None
    check(search(f, claimed=claimed * Fraction(99, 100), **common), how, 0, 1)


def test_integers() -> None:
    assert search(sum, claimed=3, lower=-1, upper=2, adjacency="replace", kind=int, tries=5000) is None
    found = check(search(sum, claimed=2, lower=-1, upper=2, adjacency="replace", kind=int), REPLACE, -1, 2)
    assert all(type(row) is int for row in found.left)


def test_one_unit_in_the_last_place_counts() -> None:
    kwargs: dict[str, Any] = {"claimed": "1/4", "lower": 0, "upper": 1, "adjacency": "replace", "n": 4, "tries": 5000}
    found = check(search(mean, **kwargs), REPLACE, 0, 1)
    assert found.change < Fraction(1, 4) + Fraction(1, 10**15)
    assert " more:" in str(found).splitlines()[0]
    assert search(mean, tolerance=1e-12, **kwargs) is None


def test_values_stay_inside_the_exact_bounds() -> None:
    values = Values.between(Fraction("0.1"), Fraction("0.3"), float)
    assert Fraction(values.lower) >= Fraction("0.1")
    assert Fraction(values.upper) <= Fraction("0.3")
    stream = Stream("test")
    for ordered in (False, True):
        pair = Pair.start(stream, values, 3, 2)
        for _ in range(300):
            pair = pair.moved(stream, values, ordered=ordered)
            assert all(0.1 <= row <= 0.3 for side in pair.sides() for row in side)


def test_same_search_same_answer_and_no_more_calls_than_tries() -> None:
    calls = itertools.count()

    def f(rows: list[float]) -> float:
        next(calls)
        rows.sort()  # an f may spoil its own copy
        return rows[0]

    first, second = (search(f, claimed=1, tries=500, adjacency="add/remove", **UNIT) for _ in range(2))
    assert first is second is None
    assert next(calls) <= 2 * (500 + 120)
    a, b = (search(max, claimed=0.9, adjacency="replace", **UNIT) for _ in range(2))
    assert a == b


# --- functions that fail ----------------------------------------------------------------------


def test_failing_on_one_of_two_neighbours_is_a_counterexample() -> None:
    found = search(mean, claimed=1, adjacency="add/remove", n=range(3), **UNIT)
    assert check(found, ADD, 0, 1).change == math.inf
    assert str(found).splitlines()[1] == "  f([]) = ZeroDivisionError: float division by zero"


@pytest.mark.parametrize("odd", [math.nan, math.inf, None, "text", {1: 2}, np.array([1.0, np.nan])])
def test_no_number_is_a_failure(odd: Any) -> None:
    found = search(lambda rows: odd if rows[0] == 1 else 0, claimed=5, adjacency="replace", **UNIT)
    assert check(found, REPLACE, 0, 1).change == math.inf


def test_vectors_of_different_length() -> None:
    found = search(lambda rows: sorted(set(rows)), claimed=5, adjacency="replace", **UNIT)
    assert check(found, REPLACE, 0, 1).change == math.inf


def test_a_function_that_always_fails_is_refused() -> None:
    f: Any = lambda rows: rows + 1  # noqa: E731
    with pytest.raises(DataError, match=r"no number for any dataset.*TypeError"):
        search(f, claimed=1, adjacency="replace", tries=50, **UNIT)


def test_a_noisy_function_is_refused() -> None:
    clock = itertools.count()
    with pytest.raises(DataError, match="different answers"):
        search(lambda rows: next(clock) ** 2, claimed=1, adjacency="replace", **UNIT)


# --- refusals ---------------------------------------------------------------------------------


def test_refusals() -> None:
    with pytest.raises(NoSensitivity, match=r"no neighbours under add/remove.*range\(1, 7\)"):
        search(mean, claimed=1, adjacency="add/remove", n=5, **UNIT)
    with pytest.raises(NoSensitivity, match="without limit"):
        search(mean, claimed=1, lower=0, upper=math.inf, adjacency="replace")
    with pytest.raises(NumberError, match="claimed must be"):
        search(mean, claimed=-1, adjacency="replace", **UNIT)
    with pytest.raises(DataError, match="kind must be"):
        search(mean, claimed=1, adjacency="replace", kind=complex, **UNIT)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no int values"):
        search(mean, claimed=1, lower="1/3", upper="2/3", adjacency="replace", kind=int)
