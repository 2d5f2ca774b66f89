"""Marks and intervals of small groups: what is not marked as noisy holds, and the rule that was there before does not.

Where there are two numbers or fewer, every outcome is enumerated with its exact probability; else noise is drawn from a
fixed seed. Nothing here depends on chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.planner.tables import exact, table

import privet as pv
from privet import accuracy
from privet.exact import Exact
from privet.mechanisms import DEFAULT
from privet.planner import ReleasePlan, plan
from privet.planner.confidences import careful
from privet.planner.linear import Linear
from privet.planner.marks import Standing, standing
from privet.planner.noise import Noise
from privet.planner.outputs import Cells, Output, Straight
from privet.tables.query import Query
from privet.tables.relation import Relation

Floats = NDArray[np.float64]
Rule = Callable[[Output, Any, ReleasePlan], Cells]
WIDTH = 10


def present(output: Output, noisy: Any, made: ReleasePlan) -> Cells:
    return output.cells(noisy, made.noise, made.level)


def pmf(shift: NDArray[Any], scale: float) -> Floats:
    """Of discrete Laplace noise."""
    return np.asarray(np.tanh(0.5 / scale) * np.exp(-np.abs(shift) / scale))


class Judged:
    """The worst coverage of all, and given unmarked where unmarked answers are as likely as errors."""

    def __init__(self, wrong: float = 0.05) -> None:
        self.wrong, self.coverage, self.given_unmarked, self.judged = wrong, 1.0, 1.0, 0

    def see(self, held: Any, unmarked: Any, mass: Floats) -> None:
        self.coverage = min(self.coverage, float(mass[held].sum() / mass.sum()))
        shown = float(mass[unmarked].sum() / mass.sum())
        if shown >= self.wrong:
            self.judged += 1
            self.given_unmarked = min(self.given_unmarked, float(mass[held & unmarked].sum() / mass[unmarked].sum()))


# --- counts: every outcome --------------------------------------------------------------------------


def plain_counts(output: Output, noisy: Any, made: ReleasePlan) -> Cells:
    """The rule that was there before: marked below one half width, and no interval wider than any other."""
    assert isinstance(output, Straight)
    half = int(made.mechanism.error_of_sum([1], made.scales, made.level))
    x = [group[0][0] for group in noisy]
    return Cells(
        tuple(x), tuple(v - half for v in x), tuple(v + half for v in x), tuple(bool(abs(v) < half) for v in x)
    )


def judge_counts(rule: Rule, epsilon: float, confidence: str) -> Judged:
    made = plan(table(x=pv.integer(0, WIDTH)).agg(o=pv.count()), epsilon=epsilon, confidence=confidence)
    reach = math.ceil(25 / epsilon)
    x = np.arange(-reach, 3 * reach)
    cells = rule(made.columns[0][1], [[[int(v)]] for v in x], made)
    low, high, unmarked = np.array(cells.low), np.array(cells.high), ~np.array(cells.noisy)
    found = Judged(float(1 - made.confidence))
    for n in range(2 * reach):
        found.see((low <= n) & (n <= high), unmarked, pmf(x - n, 1 / epsilon))
    return found


@pytest.mark.parametrize("epsilon", [0.1, 0.35, 0.5, 1, 2, 5])
@pytest.mark.parametrize("confidence", ["0.8", "0.95", "0.999"])
def test_counts_hold_given_unmarked_for_groups_of_any_size(epsilon: float, confidence: str) -> None:
    found = judge_counts(present, epsilon, confidence)
    assert found.judged > 5
    assert found.coverage >= float(confidence) - 1e-9
    assert found.given_unmarked >= float(confidence) - 1e-9


def test_counts_did_not_hold_given_unmarked_before() -> None:
    found = judge_counts(plain_counts, 0.5, "0.95")
    assert found.coverage >= 0.95
    assert found.given_unmarked < 0.6


def test_a_line_alone_is_not_enough() -> None:
    """Marks as they are now, with plain intervals: just above the line they hold too seldom."""

    def narrow(output: Output, noisy: Any, made: ReleasePlan) -> Cells:
        cells, plain = present(output, noisy, made), plain_counts(output, noisy, made)
        return Cells(plain.values, plain.low, plain.high, cells.noisy)

    assert judge_counts(narrow, 0.1, "0.95").given_unmarked < 0.7


# --- means: every outcome ---------------------------------------------------------------------------


def cut_at_the_ends(output: Output, noisy: Any, made: ReleasePlan) -> Cells:
    """The rule that was there before: the accepted means, cut by the range, and marked if wider than a quarter."""
    x = np.array([group[0][:2] for group in noisy], dtype=float)
    noise = [float(made.scales[0])] * 2
    sides: tuple[list[float], list[float]] = ([WIDTH, 0], [1, 1])
    free = accuracy.ratio_interval(
        made.mechanism, x, noise, *sides, lower=-math.inf, upper=math.inf, confidence=made.level
    )
    estimate = accuracy.ratio_estimate(x, *sides, lower=0, upper=WIDTH)
    low = np.minimum(np.clip(free[0], 0, WIDTH), estimate)
    high = np.maximum(np.clip(free[1], 0, WIDTH), estimate)
    return Cells(tuple(estimate), tuple(low), tuple(high), tuple((high - low > WIDTH / 4).tolist()))


def judge_means(rule: Rule, epsilon: float, sizes: range, width: int = WIDTH) -> tuple[Judged, Cells]:
    """All pairs of noisy sums that matter, for groups of these sizes and means from one end to the other."""
    made = plan(table(x=pv.integer(0, width, required=True)).agg(o=pv.mean("x")), epsilon=epsilon)
    scale = width / epsilon
    reach, most = math.ceil(12 * scale), width * sizes[-1]
    axis = np.arange(-reach, most + reach)
    first, second = (part.ravel() for part in np.meshgrid(axis, axis, indexing="ij"))
    cells = rule(made.columns[0][1], [[[int(a), int(b)]] for a, b in zip(first, second, strict=True)], made)
    low, high, unmarked = np.array(cells.low), np.array(cells.high), ~np.array(cells.noisy)
    found = Judged()
    for n in sizes:
        for total in sorted({n * width * share // 10 for share in (0, 1, 2, 5, 8, 10)}):
            mass = np.outer(pmf(axis - total, scale), pmf(axis - (n * width - total), scale)).ravel()
            mean = total / n if n else math.nan
            found.see((low <= mean + 1e-9) & (mean - 1e-9 <= high), unmarked, mass)
    return found, cells


@pytest.mark.parametrize(("width", "epsilon", "most"), [(10, 5, 7), (1, 1, 20), (1, 0.5, 30)])
def test_means_hold_given_unmarked_for_small_groups(width: int, epsilon: float, most: int) -> None:
    found, cells = judge_means(present, epsilon, range(1, most + 1), width)
    assert found.judged > 10
    assert found.coverage >= 0.95 - 1e-4, "but for what is not enumerated"
    assert found.given_unmarked >= 0.92
    assert all(low < high for low, high in zip(cells.low, cells.high, strict=True))
    shown = [b - a for a, b, noisy in zip(cells.low, cells.high, cells.noisy, strict=True) if not noisy]
    assert max(shown) <= 0.8 * width, "what is not marked says more than the range does"


def test_means_of_nobody_are_marked() -> None:
    """Whatever is shown for an empty group is wrong, so unmarked answers must be rarer than errors."""
    assert judge_means(present, 5, range(1))[0].judged == 0


def test_means_did_not_hold_given_unmarked_before() -> None:
    found, cells = judge_means(cut_at_the_ends, 5, range(1, 4))
    assert found.given_unmarked < 0.9
    assert any(low == high for low, high in zip(cells.low, cells.high, strict=True))


# --- everything else: drawn from a fixed seed ---------------------------------------------------------

DRAWS = 3000
SALARIES: dict[str, Any] = {"x": pv.integer(0, 10**7, required=True), "y": pv.integer(0, 40, required=True)}
AGES: dict[str, Any] = {"x": pv.integer(16, 80, required=True), "y": pv.integer(0, 40, required=True)}
Ask = Callable[[Relation], Query]
ASK: dict[str, Ask] = {
    "sum": lambda t: t.agg(o=pv.sum("x")),
    "mean": lambda t: t.agg(o=pv.mean("x")),
    "variance": lambda t: t.agg(o=pv.variance("x")),
    "ratio": lambda t: t.agg(o=pv.sum("x") / pv.sum("y")),
}
CASES = [
    (question, columns, n, epsilon)
    for question in ASK
    for columns, n, epsilon in (
        ("salaries", 5, 1), ("salaries", 1000, 2), ("salaries", 300, 5),
        ("ages", 1, 5), ("ages", 20, 1), ("ages", 100, 1),
    )
]  # fmt: skip


def values(columns: str, n: int) -> list[int]:
    if columns == "ages":
        return [20 + 31 * i % 50 for i in range(n)]
    return [int(x) for x in np.random.default_rng(11).lognormal(10.8, 0.6, n)]


def true(question: str, x: list[int], y: list[int]) -> float:
    mean = Exact(sum(x), len(x))
    return float(
        {
            "sum": Exact(sum(x)),
            "mean": mean,
            "variance": Exact(sum(v * v for v in x), len(x)) - mean**2,
            "ratio": Exact(sum(x), sum(y)),
        }[question]
    )


@pytest.mark.parametrize(("question", "columns", "n", "epsilon"), CASES)
def test_small_groups_hold_given_unmarked(question: str, columns: str, n: int, epsilon: int) -> None:
    made = plan(ASK[question](table(**(AGES if columns == "ages" else SALARIES))), epsilon=epsilon)
    x, y = values(columns, n), [5 + i % 7 for i in range(n)]
    rows = [{"x": Exact(a), "y": Exact(b)} for a, b in zip(x, y, strict=True)]
    generator = np.random.default_rng([n, epsilon])
    parts = []
    for part, (vector,) in zip(made.noised, exact(made, rows), strict=True):
        p, shape = -math.expm1(-1 / float(part.scale)), (DRAWS, len(vector))
        drawn = generator.geometric(p, shape) - generator.geometric(p, shape)
        parts.append([[a + b for a, b in zip(vector, row, strict=True)] for row in drawn.tolist()])
    cells = present(made.columns[0][1], list(zip(*parts, strict=True)), made)
    low, high, unmarked = np.array(cells.low), np.array(cells.high), ~np.array(cells.noisy)
    truth = true(question, x, y)
    held = (low <= truth * (1 + 1e-9)) & (truth * (1 - 1e-9) <= high)
    assert np.mean(held) >= 0.935
    assert (low < high).all()
    if unmarked.mean() >= 0.05:
        assert held[unmarked].mean() >= 0.9


# --- what is marked ---------------------------------------------------------------------------------


def test_the_line_is_at_two_half_widths() -> None:
    assert [standing(x, 5) for x in (0, 9, 10, 15, 16)] == [
        Standing.MARKED, Standing.MARKED, Standing.NEAR, Standing.NEAR, Standing.CLEAR,
    ]  # fmt: skip
    assert standing(0, 0) is Standing.CLEAR, "what has no noise is not noisy"
    assert careful(Exact("0.95")) == Exact("0.9975")


def test_a_negative_count_is_noise_and_a_negative_sum_need_not_be() -> None:
    form = Linear(((0, 0, Exact(1)),))
    for integer, marked in ((True, True), (False, False)):
        cells = Straight(form, integer).cells([[[-1000]]], Noise(DEFAULT, (Exact(2),)), Exact("0.95"))
        assert cells.noisy == (marked,)


def test_just_above_the_line_the_interval_reaches_below_it() -> None:
    form, noise = Linear(((0, 0, Exact(1)),)), Noise(DEFAULT, (Exact(2),))
    counts = Straight(form, integer=True).cells([[[x]] for x in (11, 12, 18, 19)], noise, Exact("0.95"))
    assert list(zip(counts.low, counts.high, strict=True)) == [(5, 17), (6, 18), (6, 24), (13, 25)]
    sums = Straight(form, integer=False).cells([[[x]] for x in (-11, -12, -18, -19)], noise, Exact("0.95"))
    assert list(zip(sums.low, sums.high, strict=True)) == [(-17, -5), (-18, -6), (-24, -6), (-25, -13)]


@pytest.mark.parametrize(
    ("bounds", "value", "marked"),
    [
        ((0, 10**7), 4_000_000, False),
        ((0, 10**7), 50_000, True),  # a thousandth of what the noise can hide
        ((0, 10**7), 0, True),
        ((16, 80), 16, False),  # 16 is known well: values are not counted from the end of the range
        ((-50, 50), 0, False),  # 0 is a value like any other
        ((-50, 50), -50, True),
        ((-80, -16), -80, False),
    ],
)
def test_a_mean_is_marked_by_what_is_known_of_it(bounds: tuple[int, int], value: int, marked: bool) -> None:
    made = plan(table(x=pv.integer(*bounds, required=True)).agg(o=pv.mean("x")), epsilon=1)
    cells = made.cells(exact(made, [{"x": Exact(value)}] * 100))["o"]
    assert cells.noisy == (marked,)
    assert cells.low[0] <= value <= cells.high[0]


def test_a_mean_past_the_end_of_its_range_does_not_look_certain() -> None:
    """0 (0 to 0) was once the answer where the truth was 4 million."""
    made = plan(table(x=pv.integer(0, 10**7, required=True)).agg(o=pv.mean("x")), epsilon=1)
    cells = made.cells([[(-(10**8), 11 * 10**8)]])["o"]  # 100 people, and a sum far below 0
    assert cells.values == (0.0,)
    assert cells.noisy == (True,)
    assert cells.high[0] > 250_000


@pytest.mark.parametrize("epsilon", [0.1, 1, 5, 50])
def test_only_public_numbers_have_no_width(epsilon: float) -> None:
    base = table(x=pv.integer(0, 100, required=True), f=pv.boolean(), g=pv.integer(0, 499))
    some = np.random.default_rng(5).integers(-300, 300, (500, 3)) * 10 ** np.arange(0, 5).repeat(100)[:, None]
    for ask in (pv.count(), pv.sum("x"), pv.mean("x"), pv.variance("x"), pv.mean("f"), pv.std("f"), pv.count("f")):
        made = plan(base.group_by("g").agg(o=ask), epsilon=epsilon)
        cells = made.cells([some[:, : part.measurement.size].tolist() for part in made.noised])["o"]
        for low, value, high in zip(cells.low, cells.values, cells.high, strict=True):
            assert low <= value <= high
            assert low < high, (str(ask), value)
    public = plan(table(adjacency="replace", rows=7, x=pv.integer(0, 9)).agg(o=pv.count()), epsilon=epsilon)
    assert public.cells([])["o"] == Cells((7,), (7,), (7,), (False,))
