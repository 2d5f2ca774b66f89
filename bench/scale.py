"""What a question costs, as a formula: fitted to some sizes, and checked against one that was not fitted.

    CPU seconds = fixed + row * rows + key * rows * keys + group * groups
                  + (bound * rows + person * people, if people are protected)

`bound` is what choosing the rows of a person takes for each row: a sort, and on a cluster a shuffle of `shuffled`
bytes. Each coefficient is at least 0; they minimise the sum of squared relative errors. The rows are made for each
size, below `.bench`, and removed again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import privet as pv
from bench import people
from bench.engines import BUDGET, COLUMNS
from bench.peer import ENVIRONMENTS
from bench.peers.tables_common import REGIONS
from bench.places import PLACES, Place
from privet.tables.query import Query

FITTED = {"duckdb": (10**6, 10**7, 10**8), "postgres": (10**6, 10**7), "spark": (10**6, 10**7)}
CHECKED = {"duckdb": 3 * 10**7, "postgres": 3 * 10**6, "spark": 3 * 10**6}
WARM_UP = {"spark": 2}
"""How often the smallest size is asked about before anything counts: a JVM compiles what is used often."""
CAP = 3
WORD = 8
"""Bytes of a packed word, and of an id."""
SMALL = 10**6
"""Up to so many rows a question is asked three times after the first, else once; and of fewer people too."""
COEFFICIENTS = "fixed", "row", "key", "group", "bound", "person"
CLUSTER = 10**11


@dataclass(frozen=True, slots=True)
class Work:
    """What a question has to do."""

    rows: int
    groups: int
    keys: int = 0
    """How many columns the groups are made of."""
    people: int = 0
    """0: each row is protected by itself."""

    @property
    def shuffled(self) -> int:
        """Bytes that meet others of the same person: an id and one packed word for each row."""
        return 2 * WORD * self.rows if self.people else 0

    @property
    def features(self) -> tuple[float, ...]:
        """What each coefficient is multiplied with."""
        bounded = self.rows if self.people else 0
        return 1.0, self.rows, self.rows * self.keys, self.groups, bounded, self.people


@dataclass(frozen=True, slots=True)
class Measured:
    """What it took, in CPU and wall seconds."""

    work: Work
    cpu: float
    wall: float


@dataclass(frozen=True, slots=True)
class Model:
    """The coefficients, in the order of `COEFFICIENTS`: seconds for each."""

    coefficients: tuple[float, ...]

    def seconds(self, work: Work) -> float:
        """What it predicts."""
        return sum(c * f for c, f in zip(self.coefficients, work.features, strict=True))


def fitted(found: Sequence[Measured], of: Callable[[Measured], float] = lambda each: each.cpu) -> Model:
    """The model of these measurements; a coefficient that would be negative is 0.

    Example:
        >>> works = [Work(10**6, 1), Work(10**7, 50, 1), Work(10**6, 50, 1, 10**5), Work(10**7, 1, 0, 10**5)]
        >>> works += [Work(10**6, 900, 2), Work(10**6, 70, 2)]
        >>> true = Model((0.01, 2e-8, 1e-8, 1e-5, 5e-8, 1e-7))
        >>> model = fitted([Measured(work, true.seconds(work), 0) for work in works])
        >>> [round(c / t, 6) for c, t in zip(model.coefficients, true.coefficients)]
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    weights = np.array([1 / of(each) for each in found])
    matrix = np.array([each.work.features for each in found]) * weights[:, None]
    scale = np.abs(matrix).max(axis=0)
    scale[scale == 0] = 1
    kept = list(range(len(COEFFICIENTS)))
    while True:
        solved = np.linalg.lstsq((matrix / scale)[:, kept], np.ones(len(found)), rcond=None)[0]
        if (solved >= 0).all() or len(kept) == 1:
            break
        del kept[int(np.argmin(solved))]
    all_ = np.zeros(len(COEFFICIENTS))
    all_[kept] = np.maximum(solved, 0) / scale[kept]
    return Model(tuple(map(float, all_)))


def questions(rows: int, of_people: int, *, few: bool) -> Iterator[tuple[Work, Callable[[pv.Table], Query], int]]:
    """What is asked about a table of a size: the work, the question, and the cap; `few`: only what depends on rows."""
    by_region, both = len(REGIONS), len(REGIONS) * 111
    if not few:
        yield Work(rows, 1), lambda t: t.agg(s=pv.sum("income")), 0
        yield Work(rows, both, 2), lambda t: t.group_by("region", "age").agg(s=pv.sum("income")), 0
        yield Work(rows, 1, 0, of_people), lambda t: t.agg(s=pv.sum("income")), CAP
    yield Work(rows, by_region, 1), lambda t: t.group_by("region").agg(s=pv.sum("income")), 0
    yield Work(rows, by_region, 1, of_people), lambda t: t.group_by("region").agg(s=pv.sum("income")), CAP


def measured(place: Place, rows: int, folder: Path) -> Iterator[Measured]:
    """All that is asked about a size."""
    for of_people in (rows // 10, rows // 100) if rows <= SMALL else (rows // 10,):
        path = folder / "people.parquet"
        people.make(path, rows, people=of_people)
        _, source = place.load(path)
        for work, asked, cap in questions(rows, of_people, few=rows > 10**7):
            protect = pv.person("user_id", max_rows=cap) if cap else pv.each_row()
            table = pv.table("people", source, protect=protect, columns=COLUMNS)
            with pv.Session([table], budget=BUDGET, ledger=None, engine=place.name) as session:
                times = []
                for _ in range(4 if rows <= SMALL else 2):
                    cpu, wall = place.cpu_seconds(), time.perf_counter()
                    session.release(asked(table), epsilon=1, fresh=True)
                    times.append((place.cpu_seconds() - cpu, time.perf_counter() - wall))
            cpu, wall = sorted(times[1:])[len(times[1:]) // 2]  # the first pays for what is done once
            yield Measured(work, cpu, wall)
        path.unlink()


def report(console: Console, name: str, fit: Iterable[Measured], check: Iterable[Measured]) -> Model:
    """Fits, checks, and prints what was predicted beside what was measured."""
    seen, unseen = list(fit), list(check)
    model = fitted(seen)
    units = zip(COEFFICIENTS, model.coefficients, strict=True)
    told = ", ".join(f"{of} {c:.3f} s" if of == "fixed" else f"{of} {1e9 * c:,.0f} ns" for of, c in units)
    titles = "", "rows", "people", "groups", "MB shuffled", "measured: CPU s", "wall s", "predicted: CPU s", "error"
    table = Table(*titles, title=f"{name}: {told}", box=None)
    for what, some in (("fitted", seen), ("not fitted", unseen)):
        for each in some:
            work, predicted = each.work, model.seconds(each.work)
            table.add_row(
                what, f"{work.rows:,}", f"{work.people:,}", f"{work.groups:,}", f"{work.shuffled / 1e6:,.0f}",
                f"{each.cpu:.2f}", f"{each.wall:.2f}", f"{predicted:.2f}", f"{predicted / each.cpu - 1:+.0%}",
            )  # fmt: skip
    for work in (Work(CLUSTER, len(REGIONS), 1), Work(CLUSTER, len(REGIONS), 1, CLUSTER // 10)):
        core_hours = f"{model.seconds(work) / 3600:,.1f} core h"
        table.add_row(
            "predicted", f"{work.rows:,}", f"{work.people:,}", f"{work.groups:,}", f"{work.shuffled / 1e6:,.0f}",
            "", "", core_hours, "",
        )  # fmt: skip
    console.print(table)
    return model


def main() -> None:
    console = Console(width=150, highlight=False)
    only = os.environ.get("BENCH_ENGINES", ",".join(PLACES)).split(",")
    for name in (name for name in PLACES if name in only):
        ENVIRONMENTS.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=ENVIRONMENTS))
        try:
            with PLACES[name]() as place:
                for _ in range(WARM_UP.get(name, 0)):
                    list(measured(place, min(FITTED[name]), folder))
                fit = [each for rows in FITTED[name] for each in measured(place, rows, folder)]
                report(console, name, fit, measured(place, CHECKED[name], folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
