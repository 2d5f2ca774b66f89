"""Closed forms against brute force: every pair of neighbours on a grid, with other people's statistics."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import some
from tests.moves import keeps_to

from privet.errors import DataError, NoSensitivity, NumberError, UserError
from privet.privacy.adjacency import Adjacency
from privet.privacy.moves import L1Move, L2Move
from privet.textbook import sensitivity

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE
ROUNDING = Fraction(1, 10**12)  # for the statistics that are only known as floats
QS = ["0", "1/10", "1/3", "1/2", "4/5", "1"]

Rows = tuple[Fraction, ...]
Claim = Callable[..., Fraction]
Truth = Callable[[Rows], Any]


def lower_quantile(rows: Rows, q: Fraction) -> Fraction:
    return sorted(rows)[max(math.ceil(q * len(rows)), 1) - 1]


def linear_quantile(rows: Rows, q: Fraction) -> Fraction:
    height = (len(rows) - 1) * q
    below, above = (sorted(rows)[at] for at in (math.floor(height), math.ceil(height)))
    return below + (above - below) * (height - math.floor(height))


def std(rows: Rows, ddof: int) -> float:
    return float(np.std([float(row) for row in rows], ddof=ddof))


# name -> (closed form, independent statistic, least number of rows)
CASES: dict[str, tuple[Claim, Truth, int]] = {
    "sum": (sensitivity.sum, sum, 0),
    "mean": (sensitivity.mean, statistics.mean, 1),
    "maximum": (sensitivity.max, max, 1),
    "minimum": (sensitivity.min, min, 1),
    "population variance": (lambda **k: sensitivity.variance(ddof=0, **k), statistics.pvariance, 1),
    "sample variance": (lambda **k: sensitivity.variance(ddof=1, **k), statistics.variance, 2),
    "population std": (lambda **k: sensitivity.std(ddof=0, **k), lambda rows: std(rows, 0), 1),
    "sample std": (lambda **k: sensitivity.std(ddof=1, **k), lambda rows: std(rows, 1), 2),
    "lower median": (lambda **k: sensitivity.median(interpolation="lower", **k), statistics.median_low, 1),
    "linear median": (lambda **k: sensitivity.median(interpolation="linear", **k), statistics.median, 1),
}
for _q in QS:
    for _kind, _truth in (("lower", lower_quantile), ("linear", linear_quantile)):
        _claim: Claim = partial(sensitivity.quantile, _q, interpolation=_kind)  # type: ignore[arg-type]
        CASES[f"{_kind} quantile {_q}"] = (_claim, partial(_truth, q=Fraction(_q)), 1)


def neighbours(grid: Sequence[Fraction], size: int, how: Adjacency) -> Iterator[tuple[Rows, Rows]]:
    """Every pair; the order of rows does not matter to these statistics."""
    for common in combinations_with_replacement(grid, size - 1 if how is REPLACE else size):
        for last in grid:
            if how is ADD:
                yield common, (*common, last)
            else:
                yield from (((*common, last), (*common, other)) for other in grid)


def steps(low: Fraction, high: Fraction, parts: int) -> list[Fraction]:
    return [low + (high - low) * Fraction(k, parts) for k in range(parts + 1)]


def worst(truth: Truth, grid: Sequence[Fraction], size: int, how: Adjacency) -> Fraction:
    known: dict[Rows, Fraction] = {}

    def value(rows: Rows) -> Fraction:
        key = tuple(sorted(rows))
        if key not in known:
            known[key] = Fraction(truth(key))
        return known[key]

    return max(abs(value(left) - value(right)) for left, right in neighbours(grid, size, how))


BOUNDS = [(Fraction(0), Fraction(1)), (Fraction(-3), Fraction(5)), (Fraction(2), Fraction(5))]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_replace_with_n_public(name: str, low: Fraction, high: Fraction) -> None:
    claim, truth, least = CASES[name]
    for n in range(max(least, 1), 8):
        claimed = claim(lower=low, upper=high, adjacency=REPLACE, n=n)
        assert abs(worst(truth, [low, high], n, REPLACE) - claimed) <= ROUNDING  # never more, and reached
    for n, parts in [(2, 8), (3, 4), (4, 3), (5, 2)]:
        claimed = claim(lower=low, upper=high, adjacency=REPLACE, n=n)
        assert worst(truth, steps(low, high, parts), n, REPLACE) <= claimed + ROUNDING


@pytest.mark.parametrize(
    ("name", "low", "high", "how"),
    some([(name, *bounds, how) for name in CASES for bounds in BOUNDS for how in Adjacency], every=3),
)
def test_n_private_is_the_worst_over_sizes(name: str, low: Fraction, high: Fraction, how: Adjacency) -> None:
    claim, truth, least = CASES[name]
    claimed = claim(lower=low, upper=high, adjacency=how)
    first = least if how is ADD else max(least, 1)
    found = max(worst(truth, [low, high], n, how) for n in range(first, 8))
    assert abs(found - claimed) <= ROUNDING
    for n, parts in [(2, 8), (3, 4), (4, 3)]:
        assert worst(truth, steps(low, high, parts), n, how) <= claimed + ROUNDING


@pytest.mark.parametrize("how", Adjacency)
def test_count_and_histogram(how: Adjacency) -> None:
    def bins(rows: Rows) -> list[int]:
        return [Counter(rows)[Fraction(key)] for key in range(3)]  # 3 is in no bin

    grid = [Fraction(k) for k in range(4)]
    pairs = [pair for n in range(1, 5) for pair in neighbours(grid, n, how)]
    counts = max(abs(len(left) - len(right)) for left, right in pairs)
    moved = max(sum(abs(a - b) for a, b in zip(bins(left), bins(right), strict=True)) for left, right in pairs)
    assert counts == sensitivity.count(adjacency=how)
    assert moved == sensitivity.histogram(adjacency=how)
    if how is REPLACE:
        assert sensitivity.count(adjacency=how, n=9) == 0
        assert sensitivity.histogram(adjacency=how, n=9) == 2


@pytest.mark.parametrize("n", range(2, 30))
def test_published_values_replace(n: int) -> None:
    """Published: sensitivities on [0,1]^n, replace one, n public (lecture notes, brute force)."""
    unit: dict[str, Any] = {"lower": 0, "upper": 1, "adjacency": "replace", "n": n}
    assert sensitivity.mean(**unit) == Fraction(1, n)
    assert sensitivity.variance(ddof=0, **unit) == Fraction(n - 1, n * n)
    population, sample = sensitivity.std(ddof=0, **unit), sensitivity.std(ddof=1, **unit)
    for found, square in ((population, Fraction(n - 1, n * n)), (sample, Fraction(1, n))):
        assert square <= found**2 <= square + ROUNDING  # rounded up, never down
    assert sensitivity.max(**unit) == 1
    assert sensitivity.median(interpolation="lower", **unit) == 1
    assert sensitivity.median(interpolation="linear", **unit) == (1 if n % 2 else Fraction(1, 2))
    assert sensitivity.mean(lower=0, upper=40, adjacency="replace", n=n) == Fraction(40, n)


def test_published_values_add_remove() -> None:
    """Published: the same, add/remove, n private (brute force)."""
    unit: dict[str, Any] = {"lower": 0, "upper": 1, "adjacency": "add/remove"}
    assert sensitivity.std(ddof=0, **unit) == sensitivity.mean(**unit) == Fraction(1, 2)
    assert sensitivity.median(interpolation="lower", **unit) == sensitivity.max(**unit) == 1
    third = sensitivity.std(ddof=1, **unit)
    assert Fraction(1, 3) < third**2 < Fraction(1, 3) + ROUNDING


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("n", range(1, 12))
def test_definitions_of_quantiles_are_numpys(q: str, n: int) -> None:
    rows, where = tuple(Fraction(k * k) for k in range(n)), Fraction(q)
    plain = [float(row) for row in rows]
    assert float(linear_quantile(rows, where)) == pytest.approx(np.quantile(plain, float(where)), abs=1e-12)
    if where * n % 1 != 0 or where.denominator <= 2:  # else q n is whole, and numpy may round it up
        assert lower_quantile(rows, where) == np.quantile(plain, float(where), method="inverted_cdf")


def midpoint(low: Fraction, high: Fraction) -> Fraction:
    return (low + high) / 2


# What the module's docstring says to answer where there are too few rows.
FALLBACKS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "population variance": lambda low, high: Fraction(0),
    "population std": lambda low, high: Fraction(0),
    "sample variance": lambda low, high: (high - low) ** 2 / 4,
    "sample std": lambda low, high: (high - low) / 2,
}


@pytest.mark.parametrize("name", [name for name in CASES if name != "sum"])
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_public_answer_for_too_few_rows_keeps_the_form(name: str, low: Fraction, high: Fraction) -> None:
    claim, truth, least = CASES[name]
    fallback = FALLBACKS.get(name, midpoint)(low, high)

    def everywhere(rows: Rows) -> Any:
        return truth(rows) if len(rows) >= least else fallback

    claimed = claim(lower=low, upper=high, adjacency=ADD)
    for n in range(3):
        assert worst(everywhere, steps(low, high, 4), n, ADD) <= claimed + ROUNDING


def test_zero_for_one_row_would_break_the_sample_variance() -> None:
    def naive(rows: Rows) -> Any:
        return statistics.variance(rows) if len(rows) > 1 else 0

    assert worst(naive, [Fraction(0), Fraction(1)], 1, ADD) == Fraction(1, 2)


@pytest.mark.parametrize("name", CASES)
def test_persons_with_several_rows(name: str) -> None:
    """Up to k rows go and up to k others come: k times the greater one-row value."""
    claim, truth, least = CASES[name]
    low, high, k = Fraction(2), Fraction(5), 2
    one = max(claim(lower=low, upper=high, adjacency=how) for how in Adjacency)
    claimed = sensitivity.for_rows(one, rows=k)
    added = sensitivity.for_rows(claim(lower=low, upper=high, adjacency=ADD), rows=k)
    persons = [rows for size in range(k + 1) for rows in combinations_with_replacement([low, high], size)]
    for others in (rows for size in range(4) for rows in combinations_with_replacement([low, high], size)):
        values = {p: Fraction(truth((*others, *p))) for p in persons if len(others) + len(p) >= least}
        for p, q in product(values, repeat=2):
            limit = claimed if p and q else added
            assert abs(values[p] - values[q]) <= limit + ROUNDING


# --- the sum lemma ----------------------------------------------------------------------------

vectors = st.integers(1, 3).flatmap(
    lambda length: st.lists(st.tuples(*[st.integers(-3, 3)] * length), min_size=1, max_size=4)
)


def norm(u: Sequence[int]) -> int:
    return sum(map(abs, u))


@settings(max_examples=40, deadline=None)
@given(vectors, st.integers(1, 3))
def test_sum_lemma_by_brute_force(phis: list[tuple[int, ...]], k: int) -> None:
    def sums(least: int) -> set[tuple[int, ...]]:
        units = (rows for size in range(least, k + 1) for rows in combinations_with_replacement(phis, size))
        zero = (0,) * len(phis[0])
        return {tuple(map(sum, zip(zero, *rows, strict=True))) for rows in units}

    def moved(some: set[tuple[int, ...]]) -> int:
        return max(norm([a - b for a, b in zip(u, v, strict=True)]) for u in some for v in some)

    assert (
        max(map(norm, sums(0)))
        == k * sensitivity.radius(phis)
        == sensitivity.l1_move(phis, adjacency=ADD, rows=k).total
    )
    assert (
        moved(sums(0)) == k * sensitivity.diameter(phis) == sensitivity.l1_move(phis, adjacency=REPLACE, rows=k).total
    )
    kept = sensitivity.l1_move(phis, adjacency=REPLACE, rows=k, same_rows=True).total
    assert moved(sums(k)) == k * sensitivity.diameter(phis, same_rows=True) == kept


@settings(max_examples=40, deadline=None)
@given(vectors, st.integers(2, 3))
def test_two_groups_make_the_diameter_twice_the_radius(phis: list[tuple[int, ...]], groups: int) -> None:
    width = len(phis[0])
    blocks = [((0,) * width * g + phi + (0,) * width * (groups - 1 - g)) for phi in phis for g in range(groups)]
    assert sensitivity.diameter(blocks) == 2 * sensitivity.radius(blocks) == 2 * sensitivity.radius(phis)


def contributions(
    phis: list[tuple[int, ...]], groups: int, most: int, rows: int, least: int = 0
) -> set[tuple[int, ...]]:
    """All that one unit can add to the vector of all groups: some rows in each of at most `most` groups."""
    width = len(phis[0])
    zero = (0,) * width
    sums = {
        tuple(map(sum, zip(zero, *chosen, strict=True)))
        for size in range(1, rows + 1)
        for chosen in combinations_with_replacement(phis, size)
    }
    found = set()
    for places in (p for count in range(min(most, groups) + 1) for p in combinations(range(groups), count)):
        for parts in product(sums, repeat=len(places)):
            at = dict(zip(places, parts, strict=True))
            found.add(tuple(x for group in range(groups) for x in at.get(group, zero)))
    return found


small = st.integers(1, 2).flatmap(
    lambda length: st.sampled_from([0, -3]).flatmap(
        lambda low: st.lists(st.tuples(*[st.integers(low, 3)] * length), min_size=1, max_size=3, unique=True)
    )
)


@settings(max_examples=75, deadline=None)
@given(small, st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.sampled_from(Adjacency))
def test_moves_in_groups_by_brute_force(
    phis: list[tuple[int, ...]], groups: int, most: int, rows: int, how: Adjacency
) -> None:
    """Every unit against every other: blocks and L1 for each, and squared L2; and the bounds are reached."""
    caps: dict[str, Any] = {"adjacency": how, "rows": rows, "max_groups": most, "groups": groups}
    l1, l2 = sensitivity.l1_move(phis, **caps), sensitivity.l2_move(phis, **caps)
    units = contributions(phis, groups, most, rows)
    others = units if how is REPLACE else {(0,) * groups * len(phis[0])}
    changes = {tuple(a - b for a, b in zip(u, v, strict=True)) for u in units for v in others}
    changes = {max(change, tuple(-x for x in change)) for change in changes}
    assert all(keeps_to(l1, change) and keeps_to(l2, change) for change in changes)
    if how is ADD or groups == 1 or 2 * most <= groups:  # a unit can leave all its groups for others
        assert max(map(norm, changes)) == l1.total
        if how is ADD or groups == 1 or min(map(min, phis)) >= 0 or max(map(norm, phis)) == 0:
            assert max(sum(x * x for x in change) for change in changes) == l2.squared


@settings(max_examples=40, deadline=None)
@given(small, st.integers(1, 4))
def test_rows_that_no_cap_spreads_over_groups(phis: list[tuple[int, ...]], k: int) -> None:
    """A cap on rows alone: they can be in one group or in k, and the whole vector is one block."""
    groups = 2
    blocks = [(0,) * len(phi) * g + phi + (0,) * len(phi) * (groups - 1 - g) for phi in phis for g in range(groups)]
    zero = (0,) * len(blocks[0])
    for how in Adjacency:
        units = contributions(blocks, 1, 1, min(k, 2))
        others = units if how is REPLACE else {zero}
        l1 = sensitivity.l1_move(phis, adjacency=how, rows=min(k, 2), groups=groups)
        l2 = sensitivity.l2_move(phis, adjacency=how, rows=min(k, 2), groups=groups)
        changes = [tuple(a - b for a, b in zip(u, v, strict=True)) for u in units for v in others]
        assert all(keeps_to(l1, change) and keeps_to(l2, change) for change in changes)
        assert max(map(norm, changes)) == l1.total


def test_the_search_for_moves_has_teeth() -> None:
    """Claims that are a little too small, each broken by a unit that the caps allow."""
    two = tuple(a - b for a, b in zip((0, 2), (2, 0), strict=True))  # two rows, from one group to the other
    assert keeps_to(L1Move(2, blocks=2), two)
    assert not any(keeps_to(claim, two) for claim in (L1Move(1, blocks=4), L1Move(3), L2Move(7)))
    assert not keeps_to(L1Move(5, blocks=2), (4, 3, 3)), "ten in all, but not in two blocks of five"
    signed = (-3 - 3,)
    assert not keeps_to(L1Move(3, blocks=2), signed), "one coordinate is in one block"
    assert sensitivity.l1_move([(-3,), (3,)], adjacency=REPLACE, groups=2) == L1Move(6)


@pytest.mark.parametrize(("low", "high"), [(0, 7), (-3, 5), (2, 5), (-5, -1)])
def test_sum_lemma_agrees_with_the_closed_forms(low: int, high: int) -> None:
    phis = [[v] for v in range(low, high + 1)]
    ends: dict[str, Any] = {"lower": low, "upper": high}
    assert sensitivity.l1_move(phis, adjacency=ADD).total == sensitivity.sum(adjacency=ADD, **ends)
    assert sensitivity.l1_move(phis, adjacency=REPLACE, same_rows=True).total == sensitivity.sum(
        adjacency=REPLACE, **ends
    )
    either = max(sensitivity.sum(adjacency=how, **ends) for how in Adjacency)
    assert sensitivity.l1_move(phis, adjacency=REPLACE).total == either


def test_vectors_of_the_design() -> None:
    w = 6
    assert sensitivity.radius([(v, w - v) for v in range(w + 1)]) == w
    assert sensitivity.radius([((w - v) ** 2, 2 * v * (w - v), v * v) for v in range(w + 1)]) == w * w


@pytest.mark.parametrize("phis", [[], [(1,), (1, 2)], [(0.5,)], [("a",)]])
def test_sum_lemma_refuses(phis: Any) -> None:
    with pytest.raises(DataError, match="phis"):
        sensitivity.radius(phis)


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_public_n_contradicts_add_remove(name: str) -> None:
    with pytest.raises(NoSensitivity, match=r'changes n. If n is private, omit it.*Write: adjacency="replace"'):
        CASES[name][0](lower=0, upper=1, adjacency=ADD, n=5)


@pytest.mark.parametrize("form", [sensitivity.count, sensitivity.histogram])
def test_public_n_contradicts_add_remove_for_counts(form: Claim) -> None:
    with pytest.raises(NoSensitivity, match="changes n"):
        form(adjacency="add/remove", n=5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bound", [None, math.inf, -math.inf, "inf", np.float32("inf")])
def test_unbounded_values_have_no_sensitivity(name: str, bound: Any) -> None:
    for ends in ({"lower": 0, "upper": bound}, {"lower": bound, "upper": 0}):
        with pytest.raises(NoSensitivity, match=r"without limit.*lower=0, upper=200_000"):
            CASES[name][0](adjacency=REPLACE, **ends)


@pytest.mark.parametrize("name", CASES)
def test_bounds_reversed_equal_or_no_number(name: str) -> None:
    claim = CASES[name][0]
    with pytest.raises(NumberError, match="lower=1, upper=2"):
        claim(lower=2, upper=1, adjacency=REPLACE)
    with pytest.raises(NumberError, match="lower must be a number"):
        claim(lower=math.nan, upper=1, adjacency=REPLACE)
    for how in Adjacency:
        assert claim(lower=4, upper=4, adjacency=how) == (4 if name == "sum" and how is ADD else 0)


def test_bounds_too_large_for_a_float() -> None:
    assert sensitivity.sum(lower=0, upper=Fraction(10**400), adjacency="replace") == 10**400


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "many"])
def test_sizes_that_are_refused(n: Any) -> None:
    with pytest.raises(NumberError, match="n must be a whole number"):
        sensitivity.mean(lower=0, upper=1, adjacency="replace", n=n)


def test_other_refusals() -> None:
    unit: dict[str, Any] = {"lower": 0, "upper": 1}
    with pytest.raises(NumberError, match="2 or greater"):
        sensitivity.std(ddof=1, adjacency="replace", n=1, **unit)
    with pytest.raises(NumberError, match="ddof must be 0"):
        sensitivity.variance(ddof=2, adjacency="replace", **unit)  # type: ignore[arg-type]
    with pytest.raises(NumberError, match="q must be between 0 and 1"):
        sensitivity.quantile(1.5, adjacency="replace", interpolation="lower", **unit)
    with pytest.raises(NumberError, match='"linear" or "lower"'):
        sensitivity.median(adjacency="replace", interpolation="nearest", **unit)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="adjacency must be"):
        sensitivity.mean(adjacency="swap", **unit)
    with pytest.raises(NumberError, match="rows must be"):
        sensitivity.for_rows(1, rows=0)
