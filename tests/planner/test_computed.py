"""Computed columns: what they show, and that their intervals hold as often as they say, small groups included.

Noise is drawn from a fixed seed, so nothing here depends on chance. Half of an interval must be caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import some
from tests.planner.tables import exact, table

import privet as pv
from privet.errors import QueryError
from privet.exact import Exact
from privet.planner import ReleasePlan, computed, plan
from privet.planner.intervals import Interval
from privet.planner.outputs import Cells
from privet.tables.expressions.fluent import Expr

DRAWS = 1500
ENOUGH = 0.915
"""Of 1,500 draws at 95 %: fewer by chance has a probability of about 1e-9."""
n, old, pay, total = pv.col("n"), pv.col("old"), pv.col("pay"), pv.col("total")
ASKED: dict[str, Any] = {
    "n": pv.count(),
    "old": pv.count(where=pv.col("age") >= 65),
    "pay": pv.mean("x"),
    "total": pv.sum("x"),
}
COLUMNS: dict[str, Any] = {"x": pv.integer(0, 100, required=True), "age": pv.integer(0, 100, required=True)}
Truth = Callable[[float, float, float], float]


def drawn(made: ReleasePlan, rows: list[dict[str, Any]], draws: int, seed: int) -> list[Any]:
    """Noisy vectors: by draw, by measurement, by group."""
    generator, parts = np.random.default_rng(seed), []
    for part, vectors in zip(made.noised, exact(made, rows), strict=True):
        p, shape = -math.expm1(-1 / float(part.scale)), (draws, len(vectors), len(vectors[0]))
        noise = generator.geometric(p, shape) - generator.geometric(p, shape)
        parts.append((noise + np.array(vectors, dtype=np.int64)).tolist())
    return [[part[i] for part in parts] for i in range(draws)]


def held(cells: Cells, truth: float, part: float = 1) -> Any:
    """Whether intervals hold, or this part of them around the value."""
    value, low, high = (np.array(each, dtype=float) for each in (cells.values, cells.low, cells.high))
    low, high = value - (value - low) * part, value + (high - value) * part
    return (low <= truth + 1e-9 * abs(truth)) & (truth - 1e-9 * abs(truth) <= high)


FORMULAS: list[tuple[Expr, Truth, bool]] = [
    (pay - 180, lambda n, old, s: s / n - 180, True),
    (2 * n, lambda n, old, s: 2 * n, True),
    (n - old, lambda n, old, s: n - old, True),
    (total - 40 * n, lambda n, old, s: s - 40 * n, True),
    (old / n, lambda n, old, s: old / n, True),
    (100 * total / n, lambda n, old, s: 100 * s / n, True),
    (n * old, lambda n, old, s: n * old, True),
    (pay * n - total, lambda n, old, s: 0, False),
    ((n - old).clip(0, 10**6) / (n + 1), lambda n, old, s: max(n - old, 0) / (n + 1), False),
    (abs(pay - 50) + old, lambda n, old, s: abs(s / n - 50) + old, False),
]


@pytest.mark.parametrize(("place", "size"), some(list(product(range(len(FORMULAS)), [8, 40, 1000])), every=2))
def test_intervals_hold(place: int, size: int) -> None:
    formula, truth, tight = FORMULAS[place]
    made = plan(table(**COLUMNS).agg(**ASKED).compute(f=formula), epsilon=2)
    rows = [{"x": Exact(i * 37 % 101), "age": Exact(i % 100)} for i in range(size)]
    draws = [[part[0] for part in draw] for draw in drawn(made, rows, DRAWS, size)]
    cells = computed.Groups(dict(made.columns), made.noise, draws, [()] * DRAWS).cells(made)["f"]
    true = truth(size, sum(r["age"] >= 65 for r in rows), float(sum(r["x"] for r in rows)))
    found, unmarked = held(cells, true), ~np.array(cells.noisy)
    assert found.mean() >= ENOUGH
    if unmarked.mean() >= 0.05:
        assert found[unmarked].mean() >= 0.9
    if tight and size == 1000:
        assert held(cells, true, part=0.5).mean() < ENOUGH
    assert all(low < high for low, high in zip(cells.low, cells.high, strict=True))
    assert all(a <= x <= b for x, a, b in zip(cells.values, cells.low, cells.high, strict=True) if x == x)


@pytest.mark.parametrize("sizes", [(50, 30, 20, 100), (2, 0, 400, 5)])
def test_shares_hold(sizes: tuple[int, ...]) -> None:
    base = table(**COLUMNS, k=pv.keys("a", "b", "c", "d")).group_by("k")
    share, half = n / pv.total("n"), pv.total("n") / 2
    made = plan(base.agg(n=pv.count()).compute(share=share, half=half), epsilon=1)
    rows = [
        {"x": Exact(1), "age": Exact(1), "k": key} for key, size in zip("abcd", sizes, strict=True) for _ in range(size)
    ]
    answers = [made.cells(draw) for draw in drawn(made, rows, 400, 7)]
    for i, size in enumerate(sizes):
        assert np.mean([held(answer["share"].at([i]), size / sum(sizes))[0] for answer in answers]) >= 0.88
    whole, truth = [answer["half"].at([0]) for answer in answers], sum(sizes) / 2
    assert np.mean([held(cell, truth)[0] for cell in whole]) >= 0.88
    assert np.mean([held(cell, truth, part=0.5)[0] for cell in whole]) < 0.88


def cells_of(*formulas: Expr, counts: list[int], scale: int = 4, **options: Any) -> list[Cells]:
    named = {f"f{i}": formula for i, formula in enumerate(formulas)}
    keys = [f"k{i}" for i in range(len(counts))]
    query = table(k=pv.keys(*keys)).group_by("k").agg(n=pv.count()).compute(**named)
    made = plan(query, epsilon=Fraction(1, scale), **options)
    answer = made.cells([[[count] for count in counts]])
    return [answer[name] for name in named]


def test_values_are_those_of_the_numbers_that_are_shown() -> None:
    double, share, rounded, low = cells_of(
        2 * n, n / pv.total("n"), (n / 7).round(1), pv.interval_low("n"), counts=[300, 100]
    )
    assert double.values == (600, 200)
    assert all(type(x) is int for x in (*double.values, *double.low, *double.high))
    assert share.values == (0.75, 0.25)
    assert rounded.values == (42.9, 14.3)
    assert low.values == low.low == low.high == tuple(x // 2 for x in double.low)


def test_nothing_fails_whatever_the_noise_is() -> None:
    huge = n * n * n * n * n * n * n * n
    counts = [0, 1, -1, 10**40, -(10**60), 5]
    for cells in cells_of(1 / n, n / n, n / (n - 5), huge * huge, pv.total("n") / n, (1 / n).round(2), counts=counts):
        assert len(cells.values) == len(counts)
        for value, low, high in zip(cells.values, cells.low, cells.high, strict=True):
            assert value != value or low <= value <= high
    (quotient,) = cells_of(1 / n, counts=[0, 3])
    assert math.isnan(quotient.values[0])
    assert quotient.noisy == (True, True)
    assert (quotient.low, quotient.high) == ((-math.inf, 0), (math.inf, math.inf))  # 3 may be 0, but not less


def test_marks_are_those_of_the_columns() -> None:
    (plain,) = cells_of(n - 1000, counts=[1001, 3])
    assert plain.noisy == (False, True)


def test_all_intervals_together_are_wider() -> None:
    (alone,), (together,) = (cells_of(2 * n, counts=[500, 400], simultaneous=each) for each in (False, True))
    assert together.low[0] < alone.low[0]
    assert together.high[0] > alone.high[0]


def test_a_difference_is_sharper_than_by_bonferroni() -> None:
    made = plan(
        table(**COLUMNS).agg(n=pv.count(), old=pv.count("x", where=pv.col("age") > 5)).compute(d=n - old), epsilon=1
    )
    answer = made.cells([[[900]], [[400]]])
    widths = {name: cells.high[0] - cells.low[0] for name, cells in answer.items()}
    assert max(widths["n"], widths["old"]) < widths["d"] < 0.9 * (widths["n"] + widths["old"])


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        (pv.col("m") + 1, "reads 'm', but the answer has no such column"),
        (pv.col("k") * 2, "'k' is a key"),
        (pv.total("pay"), "'pay' is not a count or a sum"),
        (pv.total("n", by="x"), "by 'x', which is not a key"),
        (n / 0, "divides by 0"),
        (pv.lit(3) + 1, "uses no column"),
        (n > 3, "can't be used in arithmetic"),
        (n + "x", "can't be used in arithmetic"),
        (sum([n] * 60, n), "at most 100"),
    ],
)
def test_what_is_no_formula_is_refused(formula: Any, why: str) -> None:
    base = table(**COLUMNS, k=pv.keys("a", "b")).group_by("k").agg(n=pv.count(), pay=pv.mean("x"))
    with pytest.raises(QueryError, match=why):
        base.compute(f=formula)


def test_too_much_arithmetic_is_refused_before_it_is_paid_for() -> None:
    many = table(k=pv.integer(0, 9_999)).group_by("k").agg(n=pv.count())
    many.compute(share=n / pv.total("n"))
    with pytest.raises(QueryError, match="too much arithmetic for 10,000 groups: 230,000 steps"):
        many.compute(f=sum([n] * 11, n))


def test_rows_know_no_answer() -> None:
    with pytest.raises(QueryError, match="rounded to -15 to 15"):
        n.round(99)
    for expression in (pv.total("x"), pv.interval_low("x"), pv.col("x").round(1)):
        with pytest.raises(QueryError, match=r"of the answer"):
            table(**COLUMNS).agg(s=pv.sum(expression))


numbers = st.fractions(min_value=-5, max_value=5, max_denominator=4)


@st.composite
def intervals(draw: st.DrawFn) -> tuple[Interval, Exact]:
    """An interval, perhaps without ends, and a number in it."""
    low, mid, high = sorted(draw(st.tuples(numbers, numbers, numbers)))
    return Interval(draw(st.sampled_from([low, None])), draw(st.sampled_from([high, None]))), mid


@given(intervals(), intervals(), st.sampled_from("+-*/"), st.sampled_from(["floor", "ceil", "abs", "round"]))
def test_interval_arithmetic_encloses(a: Any, b: Any, operator: str, function: str) -> None:
    (first, x), (second, y) = a, b
    at, exactly = first.combined(operator, second), Interval(x, x).combined(operator, Interval(y, y))
    for inside, around in (
        (exactly, at),
        (Interval(x, x).rounded(function, 0), first.rounded(function, 0)),
        (Interval(x, x).clipped(Exact(-1), Exact(1)), first.clipped(Exact(-1), Exact(1))),
    ):
        if inside is None:
            continue  # a quotient by 0
        assert around is not None
        assert inside.low == inside.high is not None
        assert around.low is None or around.low <= inside.low
        assert around.high is None or inside.high <= around.high
