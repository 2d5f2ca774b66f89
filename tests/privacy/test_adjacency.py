"""The units of privacy: how far one of them moves a table, and how they are declared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import NumberError, UserError
from privet.privacy.adjacency import Adjacency, Person, each_row, person
from privet.privacy.sensitivity import l1_move
from privet.textbook.distances import symmetric

Row = tuple[str, int]
tables = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=6)
CELLS = [tuple(int(i == cell) for i in range(3)) for cell in range(3)]
"""What a row adds to the histogram of its value: the L1 distance of two histograms is that of the tables in rows."""


def most(k: int, adjacency: str) -> int:
    """How many rows one person adds, removes or changes, by the sum lemma."""
    return l1_move(CELLS, adjacency=Adjacency(adjacency), rows=k, groups=3).total


def keep(table: list[Row], k: int) -> list[Row]:
    """At most k rows of each person, chosen from that person's rows alone."""
    return [row for p in sorted({r[0] for r in table}) for row in sorted(r for r in table if r[0] == p)[:k]]


@given(tables, st.integers(1, 3))
def test_a_person_added_or_removed_moves_at_most_max_rows(table: list[Row], k: int) -> None:
    for name in "abc":
        without = [row for row in table if row[0] != name]
        moved = symmetric(keep(table, k), keep(without, k))
        assert moved <= most(k, "add/remove") == k


@given(tables, tables, st.integers(1, 3))
def test_a_person_replaced_is_removed_and_added(table: list[Row], other: list[Row], k: int) -> None:
    rest = [row for row in table if row[0] != "a"]
    mine, yours = table, rest + [row for row in other if row[0] == "a"]
    moved = symmetric(keep(mine, k), keep(yours, k))
    assert moved <= most(k, "replace") == 2 * k


def test_the_bounds_are_reached() -> None:
    mine, yours = [("a", 0)] * 3, [("a", 1)] * 3
    assert symmetric(keep(mine, 2), keep([], 2)) == most(2, "add/remove")
    assert symmetric(keep(mine, 2), keep(yours, 2)) == most(2, "replace")


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
    assert str(both) == "each person (id), at most 2 groups with 3 rows each"
    with pytest.raises(NumberError, match="max_groups"):
        person("id", max_groups=0, max_rows_per_group=3)
    with pytest.raises(UserError, match=r"2\^30"):
        person("id", max_groups=2**20, max_rows_per_group=2**20)


@pytest.mark.parametrize("bad", ["both", "", None, 1, "Replace"])
def test_adjacency_is_one_of_two(bad: object) -> None:
    with pytest.raises(UserError, match="'add/remove' or 'replace'"):
        Adjacency(bad)  # type: ignore[arg-type]


def test_texts() -> None:
    assert str(each_row()) == "each row"
    assert str(person("id", max_rows=1)) == "each person (id), at most 1 row"
