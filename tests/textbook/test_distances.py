"""Distances between tables and between vectors."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import DataError
from privet.textbook.distances import hamming, l1, l2_squared, l2_up, linf, symmetric

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
