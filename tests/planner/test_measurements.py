"""Every measurement's claim by enumeration: where phi lies, how long it is, and how far one unit can move the sum."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.planner.tables import ROWS, exact, flat, table
from tests.prices import loss

import privet as pv
from privet.errors import InternalError, QueryError
from privet.exact.lattice import Bounds
from privet.planner import ReleasePlan, plan
from privet.planner import measurements as m
from privet.planner.plan import NoisyMeasurement
from privet.privacy.sensitivity import l1_move
from privet.tables.expressions.nodes import Bin, Column
from privet.tables.query import Query
from privet.tables.relation import Relation
from privet.tables.statement import At, Present, Rows, Squares, Tally, Total

X = Column("x")
Vector = tuple[int, ...]


def norm(u: Iterable[int]) -> int:
    return sum(map(abs, u))


def apart(u: Vector, v: Vector) -> int:
    return sum(abs(a - b) for a, b in zip(u, v, strict=True))


@st.composite
def lattices(draw: st.DrawFn) -> Bounds:
    lower = draw(st.fractions(-30, 30, max_denominator=12))
    step = draw(st.fractions(Fraction(1, 12), 3, max_denominator=12).filter(bool))
    over = draw(st.sampled_from([Fraction(0), step / 2]))
    return Bounds(lower, lower + draw(st.integers(1, 12)) * step + over, step=step)


def row(measurement: m.Measurement, v: int | None, inside: int | None = None) -> Vector:
    """What a row with code v (None: missing) adds; `inside` is its bin."""
    adds: dict[Tally, int] = {}
    for tally in measurement.tallies:
        match tally:
            case Rows():
                adds[tally] = 1
            case Present():
                adds[tally] = int(v is not None)
            case At(_, index):
                adds[tally] = int(index == inside)
            case Total():
                adds[tally] = v or 0
            case Squares():
                adds[tally] = (v or 0) ** 2
    (vector,) = measurement.vectors(list(adds), [list(adds.values())])
    return vector


def in_simplex(u: Vector, size: int, corners: tuple[Vector, ...]) -> bool:
    """Whether u is in the hull of the corners size * e_i (and zero, if that is a corner)."""
    assert {corner for corner in corners if any(corner)} == {
        tuple(size * (i == j) for j in range(len(u))) for i in range(len(u))
    }
    return min(u) >= 0 and (sum(u) == size or (0 <= sum(u) <= size and (0,) * len(u) in corners))


@given(lattices(), st.booleans())
def test_pairs_lie_on_a_segment(bounds: Bounds, missing: bool) -> None:
    made = m.pair(X, bounds, missing=True, everything=missing)
    every = [row(made, v) for v in [*range(bounds.width + 1), None]]
    assert every[:-1] == [(v, bounds.width - v, *[0] * missing) for v in range(bounds.width + 1)]
    assert every[-1] == ((0, 0, bounds.width) if missing else (0, 0))
    assert all(in_simplex(u, bounds.width, made.corners) for u in every)


@given(lattices(), st.booleans())
def test_triples_lie_in_a_simplex(bounds: Bounds, missing: bool) -> None:
    made, w = m.triple(X, bounds, missing=True, everything=missing), bounds.width
    every = [row(made, v) for v in [*range(w + 1), None]]
    assert every[:-1] == [((w - v) ** 2, 2 * v * (w - v), v * v, *[0] * missing) for v in range(w + 1)]
    assert every[-1] == ((0, 0, 0, w * w) if missing else (0, 0, 0))
    assert all(in_simplex(u, w * w, made.corners) for u in every)


@settings(max_examples=30)
@given(lattices())
def test_moments_are_as_far_apart_as_claimed(bounds: Bounds) -> None:
    made, w = m.moments(X, bounds), bounds.width
    every = [row(made, v) for v in range(w + 1)]
    assert every == [(w * v, 2 * v * (w - v)) for v in range(w + 1)]
    furthest = max(apart(u, v) for u in every for v in every)
    assert l1_move(made.corners, adjacency="replace").total == furthest
    if w > 2:  # a twin that looks at the ends of the range only
        assert l1_move([every[0], every[-1]], adjacency="replace").total < furthest
    around = [*made.corners]  # convex: every edge between neighbours by angle has all rows on one side
    middle = Fraction(sum(x for x, _ in around), len(around)), Fraction(sum(y for _, y in around), len(around))
    around.sort(key=lambda corner: math.atan2(corner[1] - middle[1], corner[0] - middle[0]))
    for (ax, ay), (bx, by) in zip(around, [*around[1:], around[0]], strict=True):
        assert all((bx - ax) * (y - ay) >= (by - ay) * (x - ax) for x, y in every)


@given(lattices(), st.booleans())
def test_totals_lie_between_two_ends(bounds: Bounds, missing: bool) -> None:
    made = m.total(X, bounds, missing=missing)
    ends = [corner[0] for corner in made.corners]
    every = [row(made, v)[0] for v in range(bounds.width + 1)]
    assert (min(every), max(every)) == (min(ends[:2]), max(ends[:2]))
    unit = bounds.step / (bounds.lower / bounds.step).denominator
    assert [unit * u for u in every] == [bounds.lower + v * bounds.step for v in range(bounds.width + 1)]
    assert row(made, None) == (0,)
    assert ((0,) in made.corners[2:]) == missing


def test_bins_are_axes() -> None:
    made = m.histogram(Bin(X, (Fraction(0), Fraction(1), Fraction(5), Fraction(9))))
    every = [row(made, 1, i) for i in (0, 1, 2, None)]
    assert every == [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)]
    assert set(made.corners) == set(every)


@pytest.mark.parametrize("x", [Fraction(k, 4) for k in range(-3, 43)])
def test_bins_do_not_overlap(x: Fraction) -> None:
    """Each bin without its end, the last with it: a number is in one bin, and in none outside."""
    of = table(x=pv.number(-1, 11, step="1/4")).agg(h=pv.histogram("x", [0, 1, 5, 9]))
    found = exact(plan(of, epsilon=1), [{"x": x}])[0][0]
    assert sum(found) == (0 <= x <= 9)
    if sum(found):
        assert found.index(1) == sum(edge <= x for edge in (1, 5))


# --- the sum lemma, enumerated --------------------------------------------------------------------

QUERIES: dict[str, Callable[[Relation], Query]] = {
    "rows": lambda t: t.agg(n=pv.count()),
    "present": lambda t: t.agg(n=pv.count("x")),
    "sum": lambda t: t.agg(s=pv.sum("x")),
    "sum required": lambda t: t.agg(s=pv.sum("y")),
    "mean": lambda t: t.agg(s=pv.mean("x")),
    "count and mean": lambda t: t.agg(n=pv.count(), s=pv.mean("x")),
    "variance": lambda t: t.agg(s=pv.variance("x")),
    "count and variance": lambda t: t.agg(n=pv.count(), s=pv.variance("x")),
    "histogram": lambda t: t.agg(h=pv.histogram("x", [-1, 0, 2])),
    "in groups, rows": lambda t: t.group_by("g").agg(n=pv.count()),
    "in groups, sum": lambda t: t.group_by("g").agg(n=pv.sum("x")),
    "in groups, mean": lambda t: t.group_by("g").agg(n=pv.mean("x")),
    "in groups, variance": lambda t: t.group_by("g").agg(n=pv.variance("x")),
    "in groups, histogram": lambda t: t.group_by("g").agg(h=pv.histogram("x", [-1, 0, 2])),
}
COLUMNS: dict[str, Any] = {"x": pv.integer(-1, 2), "y": pv.integer(2, 4, required=True), "g": pv.keys("a", "b")}
EVERY_ROW: list[dict[str, Any]] = [
    {"x": x, "y": y, "g": g}
    for x, y, g in product([None, *map(Fraction, range(-1, 3))], map(Fraction, (2, 3, 4)), ["a", "b", None])
]


def reached(made: ReleasePlan, place: int, rows: int) -> set[Vector]:
    """Every vector that at most so many rows can add up to, blocks of all groups included."""
    singles = {tuple(flat(exact(made, [one]), place)) for one in EVERY_ROW}
    zero = (0,) * len(next(iter(singles)))
    found = {zero}
    for some in combinations_with_replacement(sorted(singles | {zero}), rows):
        found.add(tuple(map(sum, zip(*some, strict=True))))
    return found


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("name", QUERIES)
def test_the_sensitivity_is_what_one_person_can_do(name: str, rows: int, adjacency: str) -> None:
    """For persons: equal, not only enough, so no noise is wasted."""
    made = plan(QUERIES[name](table(protect=pv.person("id", max_rows=rows), adjacency=adjacency, **COLUMNS)), epsilon=1)
    for place, part in enumerate(made.noised):
        found = reached(made, place, rows)
        if adjacency == "add/remove":
            most = max(map(norm, found))
        else:
            most = max(apart(u, v) for u in found for v in found)
        assert part.move.total == most
        assert part.rows == rows


def moved(made: ReleasePlan, size: int) -> list[int]:
    """How far the sums of two tables of this size that differ in one row can be apart, for each measurement."""
    rest = random.Random(1).choices(EVERY_ROW, k=size - 1)
    vectors = [exact(made, [*rest, one]) for one in EVERY_ROW]
    return [
        max(apart(u, v) for u in found for v in found)
        for place in range(len(made.noised))
        for found in [{tuple(flat(vector, place)) for vector in vectors}]
    ]


SAME_ROWS: list[tuple[str, Callable[[Relation], Query], bool]] = [
    ("required", lambda t: t.agg(s=pv.sum("y")), True),
    ("required, computed", lambda t: t.with_columns(z=pv.col("y") * 2 - 3).agg(s=pv.sum("z")), True),
    ("a constant", lambda t: t.agg(s=pv.sum(pv.lit(5))), True),
    ("a condition", lambda t: t.agg(s=pv.sum(pv.col("y") >= 3)), True),
    ("never missing", lambda t: t.agg(s=pv.sum(pv.when(pv.col("x") > 0, 7).otherwise(5))), True),
    ("can be missing", lambda t: t.agg(s=pv.sum("x")), False),
    ("case without an end", lambda t: t.agg(s=pv.sum(pv.when(pv.col("x") > 0, 7).otherwise())), False),
    ("divided by a constant", lambda t: t.agg(s=pv.sum((pv.col("y") / 2).clip(0, 3))), True),
    ("divided by what is never 0", lambda t: t.agg(s=pv.sum(1 / pv.col("y"))), True),
    ("divided by what can be 0", lambda t: t.agg(s=pv.sum((1 / (pv.col("y") - 2)).clip(0, 3))), False),
    ("filtered", lambda t: t.where(pv.col("y") > 2).agg(s=pv.sum("y")), False),
    ("filtered by another", lambda t: t.where(pv.col("x") > 0).agg(s=pv.sum("y")), False),
    ("in groups", lambda t: t.group_by("g").agg(s=pv.sum("y")), False),
    ("a mean", lambda t: t.agg(s=pv.mean("y")), False),
]


@pytest.mark.parametrize(("ask", "same"), [case[1:] for case in SAME_ROWS], ids=[case[0] for case in SAME_ROWS])
def test_zero_is_left_out_only_where_no_row_can_go(ask: Callable[[Relation], Query], same: bool) -> None:
    made = plan(ask(table(protect=ROWS, adjacency="replace", **COLUMNS)), epsilon=1)
    assert [part.same_rows for part in made.noised] == [same] * len(made.noised)
    assert all(found <= part.move.total for found, part in zip(moved(made, 3), made.noised, strict=True))


def test_a_sum_over_the_same_rows_moves_by_the_width() -> None:
    made = plan(table(adjacency="replace", **COLUMNS).agg(s=pv.sum("y")), epsilon=1)
    assert moved(made, 3) == [made.noised[0].move.total] == [2]
    more = plan(table(**COLUMNS).agg(s=pv.sum("y")), epsilon=1)
    assert more.noised[0].move.total == 4, "a row that is added brings all of its value"


@pytest.mark.parametrize("protect", [pv.person("id", max_rows=1), pv.person("id", max_rows=3)])
def test_persons_can_go_so_zero_stays(protect: Any) -> None:
    made = plan(table(protect=protect, adjacency="replace", **COLUMNS).agg(s=pv.sum("y")), epsilon=1)
    assert not made.noised[0].same_rows
    assert made.noised[0].move.total == 4 * protect.max_rows


# --- public rows ----------------------------------------------------------------------------------


def test_a_mean_of_a_public_number_of_rows_needs_no_count() -> None:
    made = plan(table(adjacency="replace", rows=50, **COLUMNS).agg(n=pv.count(), s=pv.mean("y")), epsilon=1)
    assert [part.measurement.rule for part in made.noised] == ["sum/1"]
    assert made.noised[0].move.total == 2, "(U - L) / n, in units of 1 / n"
    cells = made.cells([[(150,)]])
    assert cells["n"].values == (50,)
    assert cells["s"].values == (3.0,)


def test_a_public_number_of_rows_is_forgotten_after_a_filter_or_in_groups() -> None:
    base = table(adjacency="replace", rows=50, **COLUMNS)
    for query in (base.where(pv.col("x") > 0).agg(n=pv.count()), base.group_by("g").agg(n=pv.count())):
        assert [part.measurement.rule for part in plan(query, epsilon=1).noised] == ["count/1"]


def test_a_count_of_what_can_be_missing_is_not_public() -> None:
    made = plan(table(adjacency="replace", rows=50, **COLUMNS).agg(n=pv.count("x"), m=pv.count("y")), epsilon=1)
    assert [part.measurement.rule for part in made.noised] == ["present/1"]
    assert made.cells([[(7,)]])["m"].values == (50,)


# --- numbers that would be too large ----------------------------------------------------------------


@pytest.mark.parametrize("what", [pv.variance, pv.std])
def test_squares_that_could_overflow_are_refused(what: Any) -> None:
    fine = table(x=pv.number(0, 1, step=Fraction(1, 2**43)))
    with pytest.raises(QueryError, match=r"squares could overflow 128 bits.*Clip it to a narrower range"):
        plan(fine.agg(s=what("x")), epsilon=1)
    plan(fine.agg(s=pv.mean("x"), t=pv.sum("x")), epsilon=1)
    made = plan(table(x=pv.number(0, 1, step=Fraction(1, 2**42))).agg(s=what("x")), epsilon=1)
    assert made.noised[0].measurement.corners[0][0] * 2**40 < 2**127


@pytest.mark.parametrize("width", [1, 2**20, 2**32, 2**42, 2**43 - 1, 2**43, 2**52])
def test_what_is_planned_fits_into_128_bits(width: int) -> None:
    """Integers that are too wide for that are summed in coarser steps; a step that was declared is kept, or refused."""
    of = table(x=pv.integer(0, width), y=pv.number(0, width, step=1))
    for what, power in ((pv.sum, 1), (pv.mean, 1), (pv.variance, 2)):
        (part,) = plan(of.agg(s=what("x")), epsilon=1).noised
        codes = {tally.value for tally in part.measurement.tallies if isinstance(tally, Total)}
        assert all(code.width**power * 2**40 < 2**126 and code.step * code.width >= width - code.step for code in codes)
        try:
            plan(of.agg(s=what("y")), epsilon=1)
        except QueryError:
            assert width**power * 2**40 >= 2**126
        else:
            assert width**power * 2**40 < 2**126


# --- the guarantee is recomputed --------------------------------------------------------------------


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("epsilon", ["0.1", "1/3", 7, "1e-9"])
def test_the_guarantee_of_the_event_is_epsilon(name: str, epsilon: Any) -> None:
    made = plan(QUERIES[name](table(**COLUMNS)), epsilon=epsilon)
    assert loss(made.guarantee()) == made.epsilon == Fraction(epsilon)
    assert sum(loss(part.price) for part in made.noised) == Fraction(epsilon)
    for part in made.noised:
        assert part.scale * loss(part.price) == part.move.total
        again = l1_move(
            part.measurement.corners, adjacency=part.adjacency, rows=part.rows, groups=part.groups,
            same_rows=part.same_rows,
        )  # fmt: skip
        assert part.move.total == again.total


def tampered(made: ReleasePlan, *, epsilon: Fraction) -> ReleasePlan:
    first = made.noised[0].at(pv.PureDP(epsilon))
    return dataclasses.replace(made, noised=(first, *made.noised[1:]))


def test_a_plan_with_too_little_noise_tells() -> None:
    made = plan(QUERIES["count and mean"](table(**COLUMNS)), epsilon=1)
    assert loss(tampered(made, epsilon=Fraction(2)).guarantee()) > made.epsilon
    more = tampered(made, epsilon=Fraction(1, 2))
    assert loss(more.guarantee()) < made.epsilon


def test_a_wrong_price_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from privet.privacy import events
    from privet.privacy.moves import L1Move

    monkeypatch.setattr(
        NoisyMeasurement, "event", lambda self: events.LaplaceNoise(move=L1Move(self.move.total + 1), scale=self.scale)
    )
    with pytest.raises(InternalError, match=r"promises epsilon 2, but epsilon 1 was requested. Nothing was released"):
        plan(QUERIES["rows"](table(**COLUMNS)), epsilon=1)
