"""Distances between tables and vectors, and what the units of protection claim about them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import DataError, NumberError, UserError
from privet.privacy.adjacency import (
    Adjacency,
    Distance,
    Metric,
    Person,
    each_row,
    hamming,
    l1,
    l2_squared,
    l2_up,
    linf,
    person,
    symmetric,
)

Row = tuple[str, int]
tables = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=6)
rows = st.tuples(st.sampled_from("abc"), st.integers(0, 2))
vectors = st.integers(1, 4).flatmap(
    lambda n: st.tuples(*[st.lists(st.fractions(-5, 5, max_denominator=20), min_size=n, max_size=n)] * 3)
)


def edits(a: list[Row], b: list[Row]) -> int:
    """The symmetric distance by carrying the edits out, one at a time."""
    left, steps = list(a), 0
    for row in list(left):
        if Counter(left)[row] > Counter(b)[row]:
            left.remove(row)
            steps += 1
    for row in b:
        if Counter(left)[row] < Counter(b)[row]:
            left.append(row)
            steps += 1
    assert Counter(left) == Counter(b)
    return steps


@given(tables, tables, tables)
def test_symmetric_is_a_metric_on_multisets(a: list[Row], b: list[Row], c: list[Row]) -> None:
    assert symmetric(a, b) == edits(a, b) == symmetric(b, a)
    assert (symmetric(a, b) == 0) == (Counter(a) == Counter(b))
    assert symmetric(a, c) <= symmetric(a, b) + symmetric(b, c)


@given(st.lists(st.tuples(rows, rows), max_size=6))
def test_a_change_is_a_removal_and_an_addition(pairs: list[tuple[Row, Row]]) -> None:
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    assert symmetric(a, b) <= 2 * hamming(a, b)
    assert hamming(a, b) == len([1 for p in pairs if p[0] != p[1]])


def test_the_bound_of_a_change_is_reached() -> None:
    assert symmetric(["a"], ["b"]) == 2 * hamming(["a"], ["b"]) == 2


@given(vectors)
def test_vector_metrics(three: tuple[list[Fraction], list[Fraction], list[Fraction]]) -> None:
    u, v, w = three
    for metric in (l1, linf, l2_up):
        slack = Fraction(3, 2**96) if metric is l2_up else 0
        assert metric(u, w) <= metric(u, v) + metric(v, w) + slack
        assert metric(u, v) == metric(v, u) >= 0
        assert (metric(u, v) == 0) == (u == v)
    assert linf(u, v) ** 2 <= l2_squared(u, v) <= l2_up(u, v) ** 2
    assert l2_squared(u, v) <= l1(u, v) ** 2 <= len(u) * l2_squared(u, v)


def test_vectors_of_numpy_and_floats_are_exact() -> None:
    assert l1(np.array([0.1, 0.2]), [0, 0]) == Fraction(3, 10)  # type: ignore[arg-type]
    assert linf([], []) == l1([], []) == l2_up([], []) == 0


@pytest.mark.parametrize("metric", [l1, l2_squared, l2_up, linf, hamming])
def test_unequal_lengths_are_refused(metric: object) -> None:
    with pytest.raises(DataError, match="equal length"):
        metric([1], [1, 2])  # type: ignore[operator]


def test_rows_that_are_lists_are_refused_with_the_line_to_write() -> None:
    with pytest.raises(DataError, match=r"Write, for example: map\(tuple, rows\)"):
        symmetric([[1]], [[2]])  # type: ignore[list-item]


def test_distances_are_ordered_within_a_metric_only() -> None:
    one, two = Distance(Metric.L1, 1), Distance(Metric.L1, 2)
    assert one < two
    assert two >= one
    assert one <= Distance(Metric.L1, 1.0)
    assert one.times(2) == two
    assert max(one, two) is two
    assert one != Distance(Metric.L2, 1)
    with pytest.raises(UserError, match="L1 and L2"):
        assert one < Distance(Metric.L2, 2)
    with pytest.raises(TypeError):
        assert one < 2  # type: ignore[operator]


@pytest.mark.parametrize("bad", [-1, True, float("nan"), "x", None])
@pytest.mark.parametrize("metric", list(Metric))
def test_bad_distances_are_refused(metric: Metric, bad: object) -> None:
    with pytest.raises(NumberError, match=rf"Write, for example: Distance\(Metric.{metric.name}, 1\)"):
        Distance(metric, bad)  # type: ignore[arg-type]


def test_rows_come_whole() -> None:
    with pytest.raises(NumberError, match="whole number"):
        Distance(Metric.SYMMETRIC, 1.5)
    assert Distance(Metric.L1, 1.5).value == Fraction(3, 2)


# --- what is protected ------------------------------------------------------------------------


def keep(table: list[Row], k: int) -> list[Row]:
    """At most k rows of each person, chosen from that person's rows alone."""
    return [row for p in sorted({r[0] for r in table}) for row in sorted(r for r in table if r[0] == p)[:k]]


@given(tables, st.integers(1, 3))
def test_a_person_added_or_removed_moves_at_most_max_rows(table: list[Row], k: int) -> None:
    for name in "abc":
        without = [row for row in table if row[0] != name]
        moved = symmetric(keep(table, k), keep(without, k))
        assert Distance(Metric.SYMMETRIC, moved) <= person("id", max_rows=k).distance("add/remove")


@given(tables, tables, st.integers(1, 3))
def test_a_person_replaced_is_removed_and_added(table: list[Row], other: list[Row], k: int) -> None:
    rest = [row for row in table if row[0] != "a"]
    mine, yours = table, rest + [row for row in other if row[0] == "a"]
    moved = symmetric(keep(mine, k), keep(yours, k))
    unit = person("id", max_rows=k)
    assert Distance(Metric.SYMMETRIC, moved) <= unit.distance("replace") == unit.distance("add/remove").times(2)


def test_the_bounds_are_reached() -> None:
    mine, yours = [("a", 0)] * 3, [("a", 1)] * 3
    assert symmetric(keep(mine, 2), keep([], 2)) == person("id", max_rows=2).distance("add/remove").value
    assert symmetric(keep(mine, 2), keep(yours, 2)) == person("id", max_rows=2).distance("replace").value


def test_each_row() -> None:
    assert each_row().distance(Adjacency.ADD_REMOVE) == Distance(Metric.SYMMETRIC, 1)
    assert each_row().distance(Adjacency.REPLACE) == Distance(Metric.SYMMETRIC, 2)
    assert each_row().distance("replace", Metric.HAMMING) == Distance(Metric.HAMMING, 1)
    with pytest.raises(UserError, match="HAMMING"):
        each_row().distance("add/remove", Metric.HAMMING)
    with pytest.raises(UserError, match="HAMMING"):
        person("id", max_rows=1).distance("replace", Metric.HAMMING)


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_person_needs_a_column(name: object) -> None:
    with pytest.raises(UserError, match=r'name of a column.*person\("person_id", max_rows=3\)'):
        person(name, max_rows=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "many", np.bool_(True)])
def test_a_person_needs_a_cap(k: object) -> None:
    with pytest.raises(NumberError, match=r'max_rows must be.*person\("person_id", max_rows=3\)'):
        person("id", max_rows=k)  # type: ignore[arg-type]


CAPS: list[dict[str, int]] = [
    {},
    {"max_groups": 2},
    {"max_rows_per_group": 2},
    {"max_rows": 2, "max_groups": 2, "max_rows_per_group": 2},
    {"max_rows": 2, "max_groups": 2},
]


@pytest.mark.parametrize("caps", CAPS, ids=str)
def test_the_cap_has_no_default(caps: dict[str, int]) -> None:
    with pytest.raises(UserError, match=r"max_rows, or max_groups and max_rows_per_group|which is 4"):
        Person("id", **caps)


def test_a_cap_on_groups_is_a_cap_on_rows() -> None:
    both = person("id", max_groups=2, max_rows_per_group=3)
    assert both.max_rows == 6
    assert both.distance("add/remove") == person("id", max_rows=6).distance("add/remove")
    assert str(both) == "each person (id), at most 2 groups with 3 rows each"
    with pytest.raises(NumberError, match="max_groups"):
        person("id", max_groups=0, max_rows_per_group=3)
    with pytest.raises(UserError, match=r"2\^30"):
        person("id", max_groups=2**20, max_rows_per_group=2**20)


@pytest.mark.parametrize("bad", ["both", "", None, 1, "Replace"])
def test_adjacency_is_one_of_two(bad: object) -> None:
    with pytest.raises(UserError, match="'add/remove' or 'replace'"):
        each_row().distance(bad)  # type: ignore[arg-type]


def test_texts() -> None:
    assert str(person("id", max_rows=1)) == "each person (id), at most 1 row"
    assert str(each_row().distance("add/remove")) == "1 row added or removed"
    assert str(Distance(Metric.L2, 2.5)) == "L2 distance 2.5"
    assert str(Distance(Metric.HAMMING, 4)) == "4 rows changed"
