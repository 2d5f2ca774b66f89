"""The private query on each engine, compared with the same engine's plain query and with one that is capped by hand.

All run in one process against the same rows; rounds alternate, after one that is not counted (on Spark, after four).
CPU seconds are those of this process, of all below it, and of the server: a busy machine changes them less than it
changes the clock. Privet's have noise, intervals, certificate and debit in them, and planning where a question is
asked for the first time: in the round that is not counted.

A run of all takes long, so it can be done in parts. BENCH_ENGINES: some of duckdb, postgres, spark, polars and tumult.
BENCH_SIZES: some of the sizes of tables. BENCH_ROUNDS: how many rounds count. BENCH_QUESTIONS: numbers of questions,
from 1 on. With all of them: BENCH_ENGINES=postgres BENCH_SIZES=10000000 BENCH_ROUNDS=2 BENCH_QUESTIONS=6,7.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.table import Table

import privet as pv
from bench import people
from bench.peer import Peer
from bench.peers.tables_common import REGIONS
from bench.places import PLACES, Place
from bench.tables import CAP, LIBRARIES, POLARS, PRIVET, ask
from privet.tables.query import Query

SIZES = {"duckdb": (10**6, 10**7), "postgres": (10**6, 10**7), "spark": (10**6, 10**7)}
ROUNDS = {10**6: 7, 10**7: 3}
WARM_UP = {"spark": 3}
"""How often all questions are asked about the smallest table before anything counts: a JVM compiles what is used
often."""
CAPS = (1, 3, 10)
POLARS_CAPS = (1, 2, 5, 20, 100)
PLAIN_LIMIT, CAPPED_LIMIT = 1.5, 1.2
BUDGET = pv.ApproxDP(10**6, "1/10")
LISTED = ", ".join(f"'{name}'" for name in REGIONS)
NUMBER = f"least(greatest(income, {people.LOWER}), {people.UPPER})"
COLUMNS = {"region": pv.keys(*REGIONS), "income": pv.number(people.LOWER, people.UPPER), "age": pv.integer(0, 110)}


@dataclass(frozen=True, slots=True)
class Question:
    """One question, three times: `plain` and `capped` are SQL over {t}, with {hash} for the hash of a row."""

    name: str
    asked: Callable[[pv.Table], Query]
    plain: str
    capped: str = ""
    cap: int = 0
    """The rows of a person that count; 0: each row is protected by itself."""
    secret: bool = False
    """Whether the regions are not public."""

    def table(self, source: str) -> pv.Table:
        """The table that Privet is asked about."""
        protect = pv.person("user_id", max_rows=self.cap) if self.cap else pv.each_row()
        columns = {**COLUMNS, "region": pv.text()} if self.secret else COLUMNS
        return pv.table("people", source, protect=protect, columns=columns)


def _questions() -> Iterator[Question]:
    by_region = "SELECT region, count(*), {} FROM {{t}} GROUP BY region"
    yield Question("rows by region", lambda t: t.group_by("region").agg(n=pv.count()), by_region.format("1"))
    yield Question("sum", lambda t: t.agg(s=pv.sum("income")), "SELECT sum(income) FROM {t}")
    yield Question("mean", lambda t: t.agg(m=pv.mean("income")), "SELECT avg(income) FROM {t}")
    yield Question(
        "mean by region", lambda t: t.group_by("region").agg(m=pv.mean("income")), by_region.format("avg(income)")
    )
    middle = "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY income) FROM {t}"
    yield Question("median", lambda t: t.agg(m=pv.median("income")), middle)
    yield Question(
        "people", lambda t: t.agg(n=pv.count_people()), "SELECT count(DISTINCT user_id) FROM {t}",
        "SELECT count(*) FROM (SELECT DISTINCT user_id FROM {t}) AS p", cap=1,
    )  # fmt: skip
    for cap in CAPS:
        place = "row_number() OVER (PARTITION BY user_id ORDER BY {hash})"
        kept = f"SELECT *, {place} AS place FROM {{t}} WHERE user_id IS NOT NULL AND region IN ({LISTED})"
        yield Question(
            f"sum by region, {cap} row{'s' * (cap > 1)}", lambda t: t.group_by("region").agg(s=pv.sum("income")),
            by_region.format("sum(income)"),
            f"SELECT region, count(*), sum({NUMBER}) FROM ({kept}) AS p WHERE place <= {cap} GROUP BY region", cap,
        )  # fmt: skip
    once = "SELECT DISTINCT user_id, region FROM {t} WHERE user_id IS NOT NULL AND region IS NOT NULL"
    once = f"SELECT *, 0 AS income FROM ({once}) AS p"
    kept = f"SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY {{hash}}) AS place FROM ({once}) AS q"
    yield Question(
        "people by unknown region", lambda t: t.group_by("region").agg(n=pv.count_people()),
        "SELECT region, count(DISTINCT user_id) FROM {t} GROUP BY region",
        f"SELECT region, count(*) FROM ({kept}) AS p WHERE place <= 3 GROUP BY region", cap=3, secret=True,
    )  # fmt: skip


QUESTIONS = tuple(_questions())


@dataclass(frozen=True, slots=True)
class Figure:
    """Medians of one contender: CPU and wall seconds, and how they compare with Privet's of the same round."""

    cpu: float
    wall: float
    cpu_ratio: float
    wall_ratio: float


def compared(place: Place, runs: Sequence[Callable[[], object]], rounds: int) -> list[Figure]:
    """The figures of each run, after one round that does not count; ratios are of the first to it."""
    found: list[list[tuple[float, float]]] = [[] for _ in runs]
    for count in range(rounds + 1):
        for run, mine in zip(runs, found, strict=True):
            cpu, wall = place.cpu_seconds(), time.perf_counter()
            run()
            took = time.perf_counter() - wall
            if count:
                mine.append((max(place.cpu_seconds() - cpu, 1e-4), took))
    if not rounds:
        return [Figure(0, 0, 0, 0) for _ in runs]
    return [
        Figure(
            *(statistics.median(column) for column in zip(*mine, strict=True)),
            *(
                statistics.median(ours[i] / theirs[i] for ours, theirs in zip(found[0], mine, strict=True))
                for i in (0, 1)
            ),
        )
        for mine in found
    ]


def measured(place: Place, rows: int, rounds: int, questions: Sequence[Question] = QUESTIONS) -> Iterator[list[str]]:
    """The lines of the table of one engine and one size."""
    named, source = place.load(people.file(rows))
    for question in questions:
        table = question.table(source)
        asked = question.asked(table)
        with pv.Session([table], budget=BUDGET, ledger=None, engine=place.name) as session:
            sql = [
                text.replace("{t}", named).replace("{hash}", place.hashed)
                for text in (question.plain, question.capped)
                if text
            ]
            private = partial(session.release, asked, epsilon=1, fresh=True)
            ours, *others = compared(place, [private, *(partial(place.run, text) for text in sql)], rounds)
        yield [
            place.name, f"{rows:,}", question.name, f"{ours.cpu:.2f} ({ours.wall:.2f})",
            *(f"{other.cpu:.2f} ({other.wall:.2f})" for other in others), *[""] * (2 - len(others)),
            *(f"{other.cpu_ratio:.2f} ({other.wall_ratio:.2f})" for other in others), *[""] * (2 - len(others)),
        ]  # fmt: skip


def _chosen(name: str, default: Iterable[object]) -> list[str]:
    return os.environ.get(name, ",".join(map(str, default))).split(",")


def main() -> None:
    console = Console(width=150, highlight=False)
    only = _chosen("BENCH_ENGINES", [*PLACES, "polars", "tumult"])
    sizes = [*map(int, _chosen("BENCH_SIZES", ROUNDS))]
    asked = [QUESTIONS[int(number) - 1] for number in _chosen("BENCH_QUESTIONS", range(1, len(QUESTIONS) + 1))]
    for name in (name for name in PLACES if name in only):
        print(f"{name}: CPU seconds (wall); aims {PLAIN_LIMIT} and {CAPPED_LIMIT}\n")
        print("| engine | rows | question | Privet | plain | capped by hand | to plain | to capped |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        with PLACES[name]() as place:
            for _ in range(WARM_UP.get(name, 0)):
                list(measured(place, min(SIZES[name]), 0, asked))
            for rows in (rows for rows in SIZES[name] if rows in sizes):
                rounds = int(os.environ.get("BENCH_ROUNDS", ROUNDS[rows]))
                for line in measured(place, rows, rounds, asked):
                    print(f"| {' | '.join(line)} |", flush=True)  # at once: a run that is ended has what it measured
    if "polars" in only:
        _polars(console)
    if "tumult" in only:
        _tumult(console, sizes)


def _tumult(console: Console, sizes: Sequence[int]) -> None:
    """Tumult in its own environment, and Privet on DuckDB and on Spark, asked as in `./dev bench tables`."""
    titles = "rows", "library", "wall seconds", "CPU seconds", "peak MB", "wall, to Privet", "CPU", "memory"
    table = Table(*titles, title=f"\nTumult, person, at most {CAP} rows", box=None)
    requirement, script = LIBRARIES["Tumult"]
    for rows in sizes:
        path, first = people.file(rows), None
        contenders: dict[str, tuple[str | None, str, dict[str, str]]] = {"Privet": (None, PRIVET, {})}
        if "spark" in PLACES:
            contenders["Privet on Spark"] = (None, PRIVET, {"BENCH_ENGINE": "spark"})
            contenders["Privet on a Spark it starts"] = (None, PRIVET, {"BENCH_ENGINE": "own"})
        contenders["Tumult"] = (requirement, script, {"python": "3.12"})
        for name, (needed, asked, options) in contenders.items():
            with Peer(needed, asked, **options) as peer:
                ask(peer, people.file(10_000), CAP)
                found = [ask(peer, path, CAP) for _ in range(3 if name == "Privet" else 1)]
            mine = [statistics.median(each[key] for each in found) for key in ("seconds", "cpu", "peak_mb")]
            first = first or mine
            ratios = [f"{a / b:.1f}" for a, b in zip(mine, first, strict=True)]
            table.add_row(f"{rows:,}", name, f"{mine[0]:.2f}", f"{mine[1]:.2f}", f"{mine[2]:,.0f}", *ratios)
    console.print(table)


def _polars(console: Console) -> None:
    """Person bounding on DuckDB against Polars' streaming plan, which is not private."""
    table = Table("cap", "Privet, CPU seconds", "Polars", "ratio", title=f"\nbounding {10**7:,} rows", box=None)
    path = people.file(10**7)
    with Peer(None, PRIVET) as privet, Peer("polars==2.1.0", POLARS) as polars:
        for peer in (privet, polars):
            ask(peer, people.file(10_000), CAP)
        for cap in POLARS_CAPS:
            found = [(ask(privet, path, cap)["cpu"], ask(polars, path, cap)["cpu"]) for _ in range(3)]
            ours, theirs = (statistics.median(column) for column in zip(*found, strict=True))
            ratio = statistics.median(a / b for a, b in found)
            table.add_row(str(cap), f"{ours:.2f}", f"{theirs:.2f}", f"{ratio:.2f}")
    console.print(table)
