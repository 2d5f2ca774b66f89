"""How far one unit moves margins and residuals: against every unit there can be, for small tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from math import prod

import numpy as np
import pytest

from privet.privacy.margins import Margin, margin_move, residual_move

PHIS: dict[str, list[tuple[int, ...]]] = {
    "count": [(1,)],
    "given": [(1,), (0,)],
    "sum": [(0,), (3,)],
    "signed": [(-2,), (3,)],
    "pair": [(0, 2), (2, 0), (1, 1)],
}


def residual(sizes: tuple[int, ...], keys: tuple[int, ...]) -> np.ndarray:
    """The matrix, from its definition."""
    matrix = np.ones((1, 1), dtype=int)
    for i, n in enumerate(sizes):
        one = n * np.eye(n, dtype=int) - np.ones((n, n), dtype=int) if i in keys else np.ones((1, n), dtype=int)
        matrix = np.kron(matrix, one)
    return matrix


def margin(sizes: tuple[int, ...], keys: tuple[int, ...]) -> np.ndarray:
    matrix = np.ones((1, 1), dtype=int)
    for i, n in enumerate(sizes):
        matrix = np.kron(matrix, np.eye(n, dtype=int) if i in keys else np.ones((1, n), dtype=int))
    return matrix


def units(cells: int, phis: list[tuple[int, ...]], rows: int, groups: int | None) -> Iterator[np.ndarray]:
    """What every unit adds to the table: at most so many rows, or so many in each of some groups."""
    placed = [(cell, phi) for cell in range(cells) for phi in phis]
    most = rows * (groups or 1)
    for count in range(most + 1):
        for some in combinations_with_replacement(placed, count):
            where = [cell for cell, _ in some]
            if groups and (len({*where}) > groups or any(where.count(cell) > rows for cell in where)):
                continue
            table = np.zeros((cells, len(phis[0])), dtype=int)
            for cell, phi in some:
                table[cell] += phi
            yield table


CASES = [
    ((2, 2), "count", 2, None),
    ((3, 2), "count", 2, None),
    ((3, 2), "sum", 1, 2),
    ((4,), "count", 1, 3),
    ((4,), "signed", 1, 2),
    ((3,), "pair", 2, None),
    ((2, 2, 2), "given", 1, None),
    ((2, 2, 2), "count", 1, 2),
    ((2, 3), "signed", 2, None),
    ((2, 2), "pair", 1, 2),
]


@pytest.mark.parametrize(("sizes", "phi", "rows", "groups"), CASES)
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_no_unit_moves_them_further(
    sizes: tuple[int, ...], phi: str, rows: int, groups: int | None, adjacency: str
) -> None:
    phis, cells = PHIS[phi], prod(sizes)
    tables = list(units(cells, phis, rows, groups))
    if adjacency == "replace":
        distinct = {table.tobytes(): table for table in tables}.values()
        tables = [a - b for a, b in product(distinct, repeat=2)]
    every = np.array(tables)
    for chosen in product((False, True), repeat=len(sizes)):
        keys = tuple(i for i, is_in in enumerate(chosen) if is_in)
        asked = {"adjacency": adjacency, "rows": rows, "max_groups": groups or 1}
        moved = np.einsum("ac,ucd->uad", residual(sizes, keys), every)
        squared = int((moved**2).sum(axis=(1, 2)).max())
        claimed = residual_move(phis, Margin(keys, sizes), **asked).squared  # type: ignore[arg-type]
        assert squared <= claimed
        total = int(np.abs(np.einsum("ac,ucd->uad", margin(sizes, keys), every)).sum(axis=(1, 2)).max())
        in_l1 = margin_move(phis, Margin(keys, sizes), **asked).total  # type: ignore[arg-type]
        assert total <= in_l1
        if phi == "count" and not groups:
            assert (squared, total) == (claimed, in_l1)  # the bounds are reached


def test_broken_twins_are_caught() -> None:
    """A forgotten factor for replace, the norm of another residual, and sqrt(g) for groups are all too little."""
    sizes, keys = (3, 2), (0,)
    every = np.array(list(units(6, PHIS["count"], 1, None)))
    both = np.array([a - b for a, b in product(every, repeat=2)])
    matrix = residual(sizes, keys)

    def most(tables: np.ndarray) -> int:
        return int((np.einsum("ac,ucd->uad", matrix, tables) ** 2).sum(axis=(1, 2)).max())

    assert most(both) > 2 * 3 * 2  # 2 k^2 p without n / (n - 1)
    assert most(every) > 2 * 1  # p of the other key
    grouped = np.array(list(units(6, PHIS["count"], 1, 2)))
    assert most(grouped) > 2 * 3 * 2  # r^2 g p: both groups of a unit are in one cell of the margin
