"""Errors of levels at equal cost: consistent answers, independent ones, and the finest level summed.

A cube of 10 x 8 x 5 groups has 8 levels. A tree has 250 towns in 12 regions of 1 to 80 towns, and 3 levels. Independent
answers divide the price by the number of levels; the finest level alone gets all of it, and coarser levels are sums of
its cells. Noise is drawn as in releases; the errors are root-mean-square over all cells of a level and all releases.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table as Grid

import privet as pv
from privet.planner import ReleasePlan
from privet.planner import plan as make_plan
from privet.planner.noise import add_noise
from privet.tables.query import Query

SIZES = {"a": 10, "b": 8, "c": 5}
TOWNS = (1, 2, 2, 3, 5, 7, 10, 15, 25, 40, 60, 80)
RELEASES = 200
PRICES: dict[str, dict[str, Any]] = {"rho 0.5": {"rho": Fraction(1, 2)}, "epsilon 1": {"epsilon": Fraction(1)}}


def table() -> pv.Table:
    """An empty table: the errors are the same for all data."""
    columns = {name: pv.integer(0, size - 1) for name, size in SIZES.items()}
    rows = pa.table({name: pa.array([], pa.int64()) for name in SIZES})
    return pv.table("cells", rows, protect=pv.each_row(), columns=columns)


def errors(query: Query, price: dict[str, Any], releases: int = RELEASES) -> np.ndarray:
    """The errors of all groups of an answer, in many releases."""
    made: ReleasePlan = make_plan(query, **price)
    zeros = [[[0] * len(each.tallies) for _ in range(each.groups)] for each in made.statements()]
    exact = made.coordinates(zeros)
    return np.array([made.cells(add_noise(made, exact)[0])["n"].values for _ in range(releases)], dtype=float)


def rms(values: np.ndarray) -> float:
    return math.sqrt(float(np.mean(values**2)))


def levels() -> list[tuple[str, ...]]:
    """The sets of keys of a cube, the finest first, in the order of the answer."""
    sets = [tuple(name for name in keys if name) for keys in product(*((name, "") for name in SIZES))]
    return sorted(sets, key=lambda keys: (-len(keys), [list(SIZES).index(name) for name in keys]))


def measured(price: dict[str, Any]) -> list[tuple[str, float, float, float]]:
    """For each level: its name, and the errors of the three ways."""
    cells = table()
    ours = errors(cells.cube(*SIZES).agg(n=pv.count()), price)
    shared = {name: amount / len(levels()) for name, amount in price.items()}
    finest = errors(cells.group_by(*SIZES).agg(n=pv.count()), price).reshape(-1, *SIZES.values())
    rows, place = [], 0
    for keys in levels():
        size = math.prod(SIZES[name] for name in keys)
        part, place = ours[:, place : place + size], place + size
        alone: Any = (cells.group_by(*keys) if keys else cells).agg(n=pv.count())
        axes = tuple(1 + i for i, name in enumerate(SIZES) if name not in keys)
        rows.append((", ".join(keys) or "total", rms(part), rms(errors(alone, shared)), rms(finest.sum(axis=axes))))
    return rows


def towns() -> pv.Table:
    """An empty table of towns in regions of very different sizes."""
    regions = {f"region {i}": [f"town {i}.{j}" for j in range(count)] for i, count in enumerate(TOWNS)}
    columns = {"region": pv.keys(*regions), "town": pv.keys(regions, within="region")}
    rows = pa.table({name: pa.array([], pa.string()) for name in columns})
    return pv.table("places", rows, protect=pv.each_row(), columns=columns)


def measured_tree(price: dict[str, Any]) -> list[tuple[str, float, float, float]]:
    """The same for a tree of towns."""
    places = towns()
    ours = errors(places.rollup("region", "town").agg(n=pv.count()), price)
    shared = {name: amount / 3 for name, amount in price.items()}
    finest = errors(places.group_by("region", "town").agg(n=pv.count()), price)
    starts = np.cumsum([0, *TOWNS[:-1]])
    summed = {"region, town": finest, "region": np.add.reduceat(finest, starts, axis=1), "total": finest.sum(axis=1)}
    rows, place = [], 0
    for name, part in summed.items():
        size = 1 if name == "total" else part.shape[1]
        keys = () if name == "total" else tuple(name.split(", "))
        alone: Any = (places.group_by(*keys) if keys else places).agg(n=pv.count())
        rows.append((name, rms(ours[:, place : place + size]), rms(errors(alone, shared)), rms(part)))
        place += size
    return rows


def main() -> None:
    console = Console()
    for price, amounts in PRICES.items():
        show(console, f"RMS error of a cube, {price}", measured(amounts))
        show(console, f"RMS error of a tree, {price}", measured_tree(amounts))


def show(console: Console, title: str, rows: list[tuple[str, float, float, float]]) -> None:
    grid = Grid("level", "consistent", "independent", "finest level summed", title=title)
    for name, *found in rows:
        grid.add_row(name, *(f"{error:.2f}" for error in found))
    every = [rms(np.array(column)) for column in list(zip(*rows, strict=True))[1:]]
    grid.add_row("all levels alike", *(f"{error:.2f}" for error in every))
    console.print(grid)


if __name__ == "__main__":
    main()
