"""Do intervals have their stated coverage for quantiles, cubes, distinct and computed numbers, and unknown keys?

Groups of few and of many people, at several epsilons, as in `unmarked`: coverage of all answers, and of those that are
not marked as noisy. Noise is drawn as releases draw it, choices by `simulated`; what a plan makes of each draw is
compared with the truth. Counts of people that decide whether a key appears are judged only if they are shown.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from itertools import count
from multiprocessing import get_context
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table as Grid

import privet as pv
from bench.simulated import judged
from bench.unmarked import LEAST, SHAPES, Shape
from privet.engines.duckdb.engine import DuckDB
from privet.planner import ReleasePlan
from privet.planner import plan as make_plan
from privet.planner.cells import Cells
from privet.planner.noise import add_noise
from privet.tables.holders import Held

SIZES = (0, 10, 30, 100, 300, 1000)
EPSILONS = (0.1, 1.0, 5.0)
CHOICES, NOISES, DRAWS, SHOWN = 40, 50, 300, 20_000
AGAIN = 5
"""The group that looks worst is drawn again, so many times as often."""
SUSPECTS = 3
"""So many look worst; one that is not judged when it is drawn again was judged by chance."""

SOME = tuple(shape for shape in SHAPES if shape.name not in ("at the upper end", "ages", "yes or no"))

Answers = Iterator[tuple[bool, bool]]
"""Whether an interval holds, and whether its answer is unmarked."""


@dataclass
class Group:
    """Answers about one group."""

    name: str
    again: Callable[[], Answers]
    """As many draws, once more."""
    held: int = 0
    unmarked: int = 0
    both: int = 0
    draws: int = 0

    def add(self, answers: Answers) -> Group:
        """Count these answers too."""
        for held, unmarked in answers:
            self.draws += 1
            self.held += held
            self.unmarked += unmarked
            self.both += held and unmarked
        return self

    @property
    def coverage(self) -> float:
        return self.held / self.draws

    @property
    def judged(self) -> bool:
        return self.unmarked > 0 and self.unmarked >= LEAST * self.draws

    @property
    def given_unmarked(self) -> float:
        return self.both / self.unmarked

    def anew(self) -> Group:
        """The same group, drawn again and more often: what looked worst was mostly unlucky."""
        fresh = Group(self.name, self.again)
        for _ in range(AGAIN):
            fresh.add(self.again())
        return fresh


@dataclass
class Found:
    """All groups of a question."""

    question: str
    groups: list[Group] = field(default_factory=list)

    def add(self, name: str, again: Callable[[], Answers]) -> None:
        """One more group."""
        self.groups.append(Group(name, again).add(again()))

    def line(self) -> list[str]:
        """A line of the table."""
        some = [group for group in self.groups if group.draws >= CHOICES]  # few keys of a small group are shown
        judged = [group for group in some if group.judged]
        least = min(some, key=lambda group: group.coverage).anew()
        line = [self.question, f"{len(some)}", f"{_mean([g.coverage for g in some]):.3f}", f"{least.coverage:.3f}"]
        line += [f"{_mean([g.unmarked / g.draws for g in some]):.0%}", f"{len(judged)}"]
        if not judged:
            return [*line, "", "", ""]
        suspects = sorted(judged, key=lambda group: group.given_unmarked)[:SUSPECTS]
        worst = min((g for one in suspects if (g := one.anew()).judged), key=lambda g: g.given_unmarked, default=None)
        if worst is None:
            return [*line, "", "", ""]
        return [*line, f"{_mean([g.given_unmarked for g in judged]):.3f}", f"{worst.given_unmarked:.3f}", worst.name]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def inside(low: float, high: float, least: float, most: float) -> bool:
    """Whether an interval holds all that is between two numbers."""
    slack = 1e-9 * max(abs(least), abs(most))
    return low <= least + slack and most - slack <= high


# --- quantiles --------------------------------------------------------------------------------------------

RANKED: dict[str, dict[str, Any]] = {
    "median": {"o": pv.median("x")},
    "quantile 0.1": {"o": pv.quantile("x", 0.1)},
    "quantile 0.9": {"o": pv.quantile("x", 0.9)},
    "minimum": {"o": pv.min("x")},
    "maximum": {"o": pv.max("x")},
    "together": {
        "median": pv.median("x"), "quantile 0.1": pv.quantile("x", 0.1), "quantile 0.9": pv.quantile("x", 0.9),
        "minimum": pv.min("x"), "maximum": pv.max("x"),
    },
}  # fmt: skip
RANKED_SIZES = (0, 1, 2, 5, 10, 30, 100, 1000)
RANKED_EPSILONS = ("0.01", "0.1", "1")
HALVES = Shape("half at each end", 0, 1000, lambda n: [1000 * (i % 2) for i in range(n)])
GAP = Shape("with a gap", 0, 1000, lambda n: [400 * (i % 2) for i in range(n)])


def ranked(question: str, draws: int = CHOICES) -> Iterator[Found]:
    """Quantiles of groups of every shape and size; each choice has many draws of noise."""
    rng = np.random.default_rng()
    columns = {name: Found(f"{question}, the {name}" if name != "o" else question) for name in RANKED[question]}
    for shape in (*SOME, HALVES, GAP):
        table = pv.table(
            "people",
            pa.table({"x": pa.array([], pa.int64())}),
            protect=pv.each_row(),
            columns={"x": pv.integer(shape.lower, shape.upper, required=True)},
        )
        for epsilon in RANKED_EPSILONS:
            made = make_plan(table.agg(**RANKED[question]), epsilon=epsilon)
            for size in RANKED_SIZES:
                first = judged(made, shape.values(size), rng, choices=draws, noises=NOISES)
                for name, found in columns.items():

                    def again(made=made, shape=shape, size=size, name=name) -> Answers:  # type: ignore[no-untyped-def]
                        yield from judged(made, shape.values(size), rng, choices=draws, noises=NOISES)[name]

                    group = Group(f"{size}, {shape.name}, epsilon {epsilon}", again)
                    found.groups.append(group.add(iter(first[name])))
    yield from columns.values()


# --- numbers with noise -----------------------------------------------------------------------------------


def people() -> tuple[pv.Table, Any]:
    """Groups of every size in several regions, with words that many or few of them have; and their rows."""
    rows = [
        {"region": r, "size": size, "x": 7 * i % 100, "word": i % (1 + size // 3), "y": 1 + i % 9}
        for r in range(3)
        for size in SIZES
        for i in range(size)
    ]
    columns = {
        "region": pv.integer(0, 2), "size": pv.keys(*SIZES), "x": pv.integer(0, 100, required=True),
        "word": pv.integer(0, 10**6), "y": pv.integer(0, 40, required=True),
    }  # fmt: skip
    frame = pa.Table.from_pylist(rows)
    return pv.table("people", frame, protect=pv.each_row(), columns=columns), frame


def noised(question: str, made: ReleasePlan, exact: Any, column: str, draws: int, named: Sequence[str]) -> Found:
    """Groups of an answer whose noise is drawn many times: each is judged by itself.

    A draw has all groups, so that those that are drawn again share these further draws.
    """
    truth = made.cells(exact)[column].values
    found = Found(question)

    @cache
    def drawn(batch: int) -> list[Cells]:
        return [made.cells(add_noise(made, exact)[0])[column] for _ in range(draws)]

    for group, name in enumerate(named):

        def answers(batches: Iterator[int], group: int = group) -> Answers:
            right = truth[group]
            for cell in drawn(next(batches)):
                if not math.isfinite(right):  # no such number: an unmarked answer is wrong
                    yield bool(cell.noisy[group]), not cell.noisy[group]
                else:
                    low, high = float(cell.low[group]), float(cell.high[group])
                    yield inside(low, high, float(right), float(right)), not cell.noisy[group]

        found.add(name, partial(answers, count()))
    return found


def exactly(table: pv.Table, made: ReleasePlan) -> Any:
    with DuckDB({table.name: (table.schema, table.source)}, salt=b"kinds") as engine:
        return made.coordinates([engine.answer(statement) for statement in made.statements()])


PRICES: dict[str, dict[str, Any]] = {
    "epsilon 0.1": {"epsilon": Fraction(1, 10)}, "epsilon 1": {"epsilon": 1}, "epsilon 5": {"epsilon": 5},
    "rho 0.005": {"rho": Fraction(1, 200)}, "rho 0.5": {"rho": Fraction(1, 2)},
}  # fmt: skip
LEVELS = {2: "region and size", 1: "one key", 0: "total"}


def cubes(aggregate: str, kind: str, draws: int = DRAWS) -> Iterator[Found]:
    """A cube of regions and sizes, each level by itself."""
    table, _ = people()
    asked: Any = {"counts": pv.count(), "sums": pv.sum("x")}[aggregate]
    by_level: dict[int, Found] = {}
    for price, amounts in PRICES.items():
        if not price.startswith(kind):
            continue
        made = make_plan(table.cube("region", "size").agg(o=asked), **amounts)
        keys = [[value is not None for value in group] for group in made.query.groups]
        named = [f"{group}, {price}" for group in made.query.groups]
        every = noised("", made, exactly(table, made), "o", draws, named)
        for shown, group in zip(keys, every.groups, strict=True):
            level = sum(shown)
            found = by_level.setdefault(level, Found(f"cube, {aggregate}, {kind}: {LEVELS[level]}"))
            found.groups.append(group)
    yield from by_level.values()


def distinct(draws: int = DRAWS) -> Found:
    """Different values in groups of every size."""
    table, _ = people()
    return _grouped("different values", table.group_by("size").agg(o=pv.count_distinct("word")), table, draws)


FORMULAS: dict[str, Callable[[Any], Any]] = {
    "mean - 50": lambda t: t.agg(m=pv.mean("x")).compute(o=pv.col("m") - 50),
    "n / total(n)": lambda t: t.agg(n=pv.count()).compute(o=pv.col("n") / pv.total("n")),
    "sum(x) - sum(y)": lambda t: t.agg(a=pv.sum("x"), b=pv.sum("y")).compute(o=pv.col("a") - pv.col("b")),
    "sum(x) / sum(y)": lambda t: t.agg(a=pv.sum("x"), b=pv.sum("y")).compute(o=pv.col("a") / pv.col("b")),
    "mean * n / 3": lambda t: t.agg(m=pv.mean("x"), n=pv.count()).compute(o=pv.col("m") * pv.col("n") / 3),
}


def computed(formula: str, draws: int = DRAWS) -> Found:
    """Formulas of the numbers of groups of every size."""
    table, _ = people()
    return _grouped(f"computed, {formula}", FORMULAS[formula](table.group_by("size")), table, draws)


def _grouped(question: str, query: Any, table: pv.Table, draws: int) -> Found:
    whole = Found(question)
    for epsilon in EPSILONS:
        made = make_plan(query, epsilon=epsilon)
        named = [f"{3 * size}, epsilon {epsilon:g}" for size in SIZES]
        whole.groups += noised(question, made, exactly(table, made), "o", draws, named).groups
    return whole


# --- unknown keys -----------------------------------------------------------------------------------------


def shown(draws: int = SHOWN) -> Found:
    """Counts of people that decide whether their key appears, given that it does."""
    table = pv.table("people", pa.table({"town": ["a"]}), protect=pv.each_row(), columns={"town": pv.text()})
    found = Found("people with an unknown key, given that it is shown")
    for epsilon in EPSILONS:
        made = make_plan(table.group_by("town").agg(o=pv.count()), epsilon=epsilon, delta=1e-6)
        assert made.discovery is not None
        assert made.discovery.counts
        half, sure = (made.discovery.selection.people_for(p) for p in ("1/2", "19/20"))
        for size in (1, half // 4, half // 2, half - 3, half, (half + sure) // 2, sure, 2 * sure, 10 * sure):
            if size >= 1:
                found.add(f"{size}, epsilon {epsilon:g}", lambda made=made, size=size: _shown(made, size, draws))  # type: ignore[misc]
    return found


def _shown(made: ReleasePlan, size: int, draws: int) -> Answers:
    """Many keys of the same size: each is one draw."""
    assert made.discovery is not None
    for _ in range(-(-draws // 5_000)):
        held = [Held((f"k{i}",), 1, size) for i in range(5_000)]
        keys, noisy = made.discovery.drawn(held, 5_000)
        cell = made.resolved(keys).cells([[(count,) for count in noisy or ()]])["o"]
        for low, high, marked in zip(cell.low, cell.high, cell.noisy, strict=True):
            yield low <= size <= high, not marked


# --- the table --------------------------------------------------------------------------------------------


Task = Callable[[], "Found | Iterator[Found]"]


def everything() -> list[Task]:
    """Every question, those that take longest first."""
    tasks: list[Task] = [partial(ranked, question) for question in reversed(RANKED)]
    tasks += [partial(cubes, aggregate, kind) for aggregate in ("counts", "sums") for kind in ("epsilon", "rho")]
    return [*tasks, distinct, *(partial(computed, formula) for formula in FORMULAS), shown]


def lines(task: Task) -> list[list[str]]:
    """The lines of the table that a task gives."""
    found = task()
    made = [each.line() for each in ([found] if isinstance(found, Found) else found)]
    for line in made:
        print(f"bench: {' | '.join(line)}", file=sys.stderr, flush=True)
    return made


def main() -> None:
    """A line for each question; questions are measured on all cores."""
    console = Console(width=160, highlight=False)
    grid = Grid(
        "question", "groups", "coverage", "worst", "unmarked", "judged", "given unmarked", "worst", "which",
        title=f"{CHOICES} x {NOISES} draws of each quantile, {DRAWS} of others, {AGAIN} times that of the worst",
        box=None,
    )  # fmt: skip
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for some in pool.map(lines, everything()):
            for line in some:
                grid.add_row(*line)
    console.print(grid)
