"""The time of a command, compared with `python -c pass` and with the engine alone, in the same run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.timing import seconds
from privet.policy import load
from privet.session import Session
from privet.sources.survey import make_survey

ROUNDS = 11
COLUMNS = ("region=keys north east south west other elsewhere", "income=number 0 200000", "age=integer 0 110")
SQL = "SELECT region, COUNT(*) AS n, AVG(income) AS pay FROM people WHERE age >= 18 GROUP BY region"
BARE = (
    "import duckdb; duckdb.sql(\"SELECT region, count(*), avg(income) FROM 'people.parquet' "
    'WHERE age >= 18 GROUP BY region").fetchall()'
)


def cold(command: list[str], folder: Path) -> float:
    return seconds(lambda: subprocess.run(command, cwd=folder, check=True, capture_output=True))


def main() -> None:
    console = Console(width=120, highlight=False)
    privet = [sys.executable, "-m", "privet"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_survey(name)
        columns = [part for column in COLUMNS for part in ("--column", column)]
        policy = ["init", "people.parquet", "--yes", "--person", "person_id", "--max-rows", "1", "--epsilon", "1000"]
        cold([*privet, *policy, *columns], folder)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "DuckDB alone, the same question": [sys.executable, "-c", BARE],
            "privet --help": [*privet, "--help"],
            "privet query, 100,000 people, paid": [*privet, "query", SQL, "--epsilon", "0.01", "--fresh"],
            "privet query, asked before": [*privet, "query", SQL, "--epsilon", "0.01"],
            "privet budget": [*privet, "budget", "people.ledger"],
        }
        taken: dict[str, list[float]] = {what: [] for what in commands}
        for _ in range(ROUNDS):
            for what, command in commands.items():
                taken[what].append(cold(command, folder))
        table = Table("cold", "seconds", "x python", "x DuckDB alone", title="the command line", box=None)
        python, engine = list(commands)[:2]
        for what, found in taken.items():
            ratios = [
                statistics.median(a / b for a, b in zip(found, taken[base], strict=True)) for base in (python, engine)
            ]
            table.add_row(what, f"{statistics.median(found):.2f}", *(f"{ratio:.1f}" for ratio in ratios))
        console.print(table)
        _warm(console, folder)


def _warm(console: Console, folder: Path) -> None:
    with Session.open(load(folder / "privet.toml")) as session:
        parse, plan = [], []
        for _ in range(50):
            start = time.perf_counter()
            query = session.parse(SQL)
            middle = time.perf_counter()
            session.plan(query, epsilon="0.5")
            parse.append(middle - start)
            plan.append(time.perf_counter() - middle)
    console.print(
        f"\nwarm: parse {1000 * statistics.median(parse):.2f} ms, plan {1000 * statistics.median(plan):.2f} ms"
    )
