"""Do intervals of small groups have their stated coverage, also among answers that are not marked as noisy?

Groups of 0 to 1,000 people whose values have many shapes (at an end of the range, narrow, skewed and far below the
upper bound, ...), at epsilon 0.1 to 5. Exact coordinates are computed once; the noise is drawn many times, by the
samplers of the package; what a plan makes of each draw is compared with the truth.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table as Grid

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.exact import Exact
from privet.noise import DiscreteLaplace
from privet.planner import ReleasePlan
from privet.planner import plan as make_plan
from privet.tables.query import Query
from privet.tables.relation import Grouped

SIZES = (0, 1, 2, 5, 10, 20, 50, 100, 300, 1000)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
DRAWS = 300
AGAIN = 6_000
SUSPECTS = 5
LEAST = 0.05
"""Coverage given unmarked is judged where at least this share of the answers is unmarked."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A declared range, and the values of a group of n people."""

    name: str
    lower: int
    upper: int
    values: Callable[[int], list[int]]


def _salaries(n: int) -> list[int]:
    return [int(x) for x in np.random.default_rng(11).lognormal(10.8, 0.6, n).clip(0, 10**7)]


SHAPES = (
    Shape("at the lower end", 0, 1000, lambda n: [0] * n),
    Shape("at the upper end", 0, 1000, lambda n: [1000] * n),
    Shape("narrow, in the middle", 0, 1000, lambda n: [490 + i % 21 for i in range(n)]),
    Shape("uniform", 0, 1000, lambda n: [617 * (i + 1) % 1001 for i in range(n)]),
    Shape("both ends", 0, 1000, lambda n: [1000 * (i % 4 == 1) for i in range(n)]),
    Shape("salaries up to 10 million", 0, 10**7, _salaries),
    Shape("ages", 16, 80, lambda n: [20 + 31 * i % 50 for i in range(n)]),
    Shape("around 0", -50, 50, lambda n: [i * 7 % 41 - 20 for i in range(n)]),
    Shape("yes or no", 0, 1, lambda n: [int(i % 3 == 0) for i in range(n)]),
)

QUESTIONS: dict[str, Callable[[Grouped], Query]] = {
    "count": lambda t: t.agg(o=pv.count()),
    "count beside a mean": lambda t: t.agg(o=pv.count(), m=pv.mean("x")),
    "sum": lambda t: t.agg(o=pv.sum("x")),
    "sum beside a mean": lambda t: t.agg(o=pv.sum("x"), m=pv.mean("x")),
    "mean": lambda t: t.agg(o=pv.mean("x")),
    "mean beside a variance": lambda t: t.agg(o=pv.mean("x"), v=pv.variance("x")),
    "variance": lambda t: t.agg(o=pv.variance("x")),
    "standard deviation": lambda t: t.agg(o=pv.std("x")),
    "ratio of sums": lambda t: t.agg(o=pv.sum("x") / pv.sum("y")),
    "sum for each row": lambda t: t.agg(o=pv.sum("x") / pv.count()),
}


def truth_of(question: str, x: Sequence[int], y: Sequence[int]) -> float | None:
    """What the answer should be; None where there is no such number."""
    match question:
        case "count" | "count beside a mean":
            return len(x)
        case "sum" | "sum beside a mean":
            return sum(x)
        case _ if not x:
            return None
        case "ratio of sums":
            return sum(x) / sum(y)
        case "variance" | "standard deviation":
            variance = Exact(sum(a * a for a in x), len(x)) - Exact(sum(x), len(x)) ** 2
            return float(variance) if question == "variance" else math.sqrt(variance)
        case _:
            return sum(x) / len(x)


def others(size: int) -> list[int]:
    """What is summed in the denominator of a ratio."""
    return [5 + i % 7 for i in range(size)]


@cache
def exactly(question: str, shape: Shape) -> tuple[ReleasePlan, dict[int, list[tuple[int, ...]]]]:
    """A plan, and the exact coordinates (by measurement) of the group of each size."""
    sizes = [size for size in SIZES for _ in range(size)]
    columns = {
        "size": sizes,
        "x": [x for size in SIZES for x in shape.values(size)],
        "y": [y for size in SIZES for y in others(size)],
    }
    table = pv.table(
        "people",
        pa.table(columns),
        protect=pv.each_row(),
        columns={
            "size": pv.keys(*SIZES),
            "x": pv.integer(shape.lower, shape.upper, required=True),
            "y": pv.integer(0, 40, required=True),
        },
    )
    made = make_plan(QUESTIONS[question](table.group_by("size")), epsilon=1)
    with DuckDB({table.name: (table.schema, table.source)}, salt=b"unmarked") as engine:
        found = made.coordinates([engine.answer(statement) for statement in made.statements()])
    return made, {size: [part[i] for part in found] for i, size in enumerate(SIZES)}


def drawn(made: ReleasePlan, exact: Sequence[tuple[int, ...]], draws: int) -> list[list[list[int]]]:
    """Noisy coordinates of one group, many times: by draw, by measurement."""
    parts = []
    for part, vector in zip(made.noised, exact, strict=True):
        noise = DiscreteLaplace(part.scale).sample(draws * len(vector)).reshape(draws, len(vector))
        parts.append([[x + y for x, y in zip(vector, row, strict=True)] for row in noise.tolist()])
    return [[part[i] for part in parts] for i in range(draws)]


@dataclass(frozen=True, slots=True)
class Found:
    """One question on one group: how many draws, how many hold, how many are unmarked, and both."""

    question: str
    shape: str
    size: int
    epsilon: float
    draws: int
    held: int
    unmarked: int
    both: int
    points: int
    """How many intervals have no width."""
    width: float
    """The median width."""

    @property
    def judged(self) -> bool:
        return self.unmarked >= LEAST * self.draws

    @property
    def coverage(self) -> float:
        return self.held / self.draws

    @property
    def given_unmarked(self) -> float:
        return self.both / self.unmarked


def measure(question: str, shape: Shape, size: int, epsilon: float, draws: int = DRAWS) -> Found:
    """Draw, and compare. Where there is no truth, an unmarked answer counts as one that does not hold."""
    planned, exact = exactly(question, shape)
    made = make_plan(planned.query, epsilon=epsilon)
    output = dict(made.columns)["o"]
    cells = output.cells(drawn(made, exact[size], draws), made.noise, made.level)
    low, high = np.array(cells.low, dtype=float), np.array(cells.high, dtype=float)
    unmarked = ~np.array(cells.noisy)
    truth = truth_of(question, shape.values(size), others(size))
    if truth is None:
        held, both = draws, 0
    else:
        inside = (low <= truth + 1e-9 * abs(truth)) & (truth - 1e-9 * abs(truth) <= high)
        held, both = int(inside.sum()), int((inside & unmarked).sum())
    width = float(np.median(high - low))
    return Found(
        question, shape.name, size, epsilon, draws, held, int(unmarked.sum()), both, int((low == high).sum()), width
    )


def measured(question: str) -> tuple[list[Found], list[Found], list[Found]]:
    """Groups of every shape and size at every epsilon; and those that looked worst, drawn again and many more times.

    The worst are by coverage, and by coverage given unmarked. What looks worst among hundreds of groups was mostly
    unlucky: only draws of its own tell.
    """
    shapes = {shape.name: shape for shape in (SHAPES[:1] if question == "count" else SHAPES)}  # a count has no values
    found = [
        measure(question, shape, size, epsilon) for shape in shapes.values() for size in SIZES for epsilon in EPSILONS
    ]

    def again(some: list[Found]) -> list[Found]:
        return [measure(question, shapes[one.shape], one.size, one.epsilon, AGAIN) for one in some[:SUSPECTS]]

    judged = [one for one in found if one.judged]
    shown = [one for one in again(sorted(judged, key=lambda one: one.given_unmarked)) if one.judged]
    return found, again(sorted(found, key=lambda one: one.coverage)), shown


def main() -> None:
    """A line for each question: all of its groups, and the worst where 5 % or more of the answers are unmarked."""
    console = Console(width=150, highlight=False)
    grid = Grid(
        "question", "groups", "coverage", "worst", "unmarked", "judged", "given unmarked", "worst", "which", "points",
        title=f"{DRAWS:,} draws of each group, {AGAIN:,} of the worst; nominal coverage 95 %", box=None,
    )  # fmt: skip
    for question in QUESTIONS:
        found, covering, shown = measured(question)
        judged = [one for one in found if one.judged]
        worst = min(shown, key=lambda one: one.given_unmarked)
        grid.add_row(
            question, f"{len(found)}", f"{mean([one.coverage for one in found]):.3f}",
            f"{min(one.coverage for one in covering):.3f}", f"{mean([one.unmarked / one.draws for one in found]):.0%}",
            f"{len(judged)}", f"{mean([one.given_unmarked for one in judged]):.3f}", f"{worst.given_unmarked:.3f}",
            f"{worst.size}, {worst.shape}, epsilon {worst.epsilon:g}", f"{sum(one.points for one in found)}",
        )  # fmt: skip
        print(f"bench: {question} done", file=sys.stderr)
    console.print(grid)
