"""Private tables, compared with the engine alone and with other libraries: medians of alternating rounds in one run.

Count, sum and mean of income by region (50 regions), epsilon 1. Every contender has a process of its own, is asked a
small question first, and reads the file for each question. `./dev bench large` does 10^8 rows.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import opening, own_time, people
from bench.peer import Peer

PRIVET, PLAIN, TIES, POLARS = "tables_privet.py", "tables_duckdb.py", "tables_duckdb_ties.py", "tables_polars.py"
LIBRARIES = {  # what is installed for it, and its script
    "OpenDP": ("opendp[polars]==0.16.0", "tables_opendp.py"),
    "Tumult": ("tmlt.analytics==0.21.0", "tables_tumult.py"),
    "PipelineDP": ("pipeline-dp==0.3.1 polars==2.1.0", "tables_pipelinedp.py"),
    "SmartNoise": ("smartnoise-sql==1.0.10 pyspark==3.5.9", "tables_smartnoise.py"),
    "diffprivlib": ("diffprivlib==0.6.6 scikit-learn==1.6.1 polars==2.1.0", "tables_diffprivlib.py"),
}
CAPS = (1, 2, 5, 20, 100)
ROUNDS = 21
PERSON_ROUNDS = 3
CAP = 5


def ask(peer: Peer, path: Path, cap: int) -> Any:
    return peer.ask(path=str(path), epsilon=1, rows_per_person=cap, lower=people.LOWER, upper=people.UPPER)


def alternating(peers: Sequence[Peer], path: Path, cap: int, rounds: int) -> list[dict[str, float]]:
    """Median seconds, median ratio to the first peer in the same round, and the largest peak of memory."""
    seconds: list[list[float]] = [[] for _ in peers]
    peaks = [0.0] * len(peers)
    for _ in range(rounds):
        for i, peer in enumerate(peers):
            found = ask(peer, path, cap)
            seconds[i].append(found["seconds"])
            peaks[i] = max(peaks[i], found["peak_mb"])
    return [
        {
            "seconds": statistics.median(mine),
            "ratio": statistics.median(a / b for a, b in zip(mine, seconds[0], strict=True)),
            "peak": peaks[i],
        }
        for i, mine in enumerate(seconds)
    ]


def main() -> None:
    console = Console(width=120, highlight=False)
    small = people.file(10_000)
    sizes = [10**6, 10**7]
    names = ((None, PLAIN), (None, PRIVET), (None, TIES), ("polars==2.1.0", POLARS))
    with ExitStack() as stack:
        plain, privet, ties, polars = (stack.enter_context(Peer(*name)) for name in names)
        for peer, cap in ((plain, 0), (privet, 0), (privet, CAP), (ties, CAP), (polars, CAP)):
            ask(peer, small, cap)
        _each_row(console, plain, privet, sizes)
        _person(console, plain, privet, ties, polars, sizes)
    console.print(f"\n{own_time.report()}\n{opening.report()}")
    for rows in sizes:
        _libraries(console, small, rows)


def _each_row(console: Console, plain: Peer, privet: Peer, sizes: Sequence[int]) -> None:
    table = Table("rows", "plain DuckDB", "Privet", "ratio", "peak MB: plain", "Privet", title="each_row()", box=None)
    for rows in sizes:
        bare, ours = alternating([plain, privet], people.file(rows), 0, ROUNDS)
        table.add_row(
            f"{rows:,}", f"{bare['seconds']:.3f} s", f"{ours['seconds']:.3f} s", f"{ours['ratio']:.2f}",
            f"{bare['peak']:.0f}", f"{ours['peak']:.0f}",
        )  # fmt: skip
    console.print(table)


def _person(console: Console, obvious: Peer, privet: Peer, ties: Peer, polars: Peer, sizes: Sequence[int]) -> None:
    titles = (
        "rows",
        "cap",
        "row_number over hash",
        "the same, ties broken",
        "Polars",
        "Privet",
        "x hash",
        "x ties",
        "x Polars",
    )
    table = Table(*titles, title="\nseconds by the maximum number of rows per person", box=None)
    for rows in sizes:
        for cap in CAPS:
            found = alternating([privet, obvious, ties, polars], people.file(rows), cap, PERSON_ROUNDS)
            table.add_row(
                f"{rows:,}", str(cap), *(f"{each['seconds']:.2f}" for each in (*found[1:], found[0])),
                *(f"{1 / each['ratio']:.2f}" for each in found[1:]),
            )  # fmt: skip
    console.print(table)


def _libraries(console: Console, small: Path, rows: int) -> None:
    path = people.file(rows)
    true = people.truth(path, CAP)
    titles = "library", "seconds", "peak MB", "error: count", "sum", "mean", "rows kept", "how"
    table = Table(*titles, title=f"\n{rows:,} rows, person, at most {CAP} rows, epsilon 1", box=None)
    for name, (requirement, script) in {"Privet": (None, PRIVET), **LIBRARIES}.items():
        try:
            with Peer(requirement, script) as peer:
                for _ in range(2):
                    ask(peer, small, CAP)
                found = [ask(peer, path, CAP) for _ in range(3 if rows <= 10**6 or name == "Privet" else 1)]
        except Exception as error:  # a peer that does not install or fails is a line, not an end
            table.add_row(name, f"failed: {str(error)[:60]}", *[""] * 6)
            continue
        errors = [people.error(each, true) for each in found]
        kept = found[-1]["rows_kept"]
        table.add_row(
            name,
            f"{statistics.median(each['seconds'] for each in found):.2f}",
            f"{max(each['peak_mb'] for each in found):,.0f}",
            *(f"{statistics.median(each[column] for each in errors):,.4g}" for column in ("count", "sum", "mean")),
            "" if kept is None else f"{kept:,.0f}",
            found[-1]["note"],
        )
    console.print(table)
