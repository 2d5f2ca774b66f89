"""Rows per second of the strict CSV import, compared with the row-wise reader and with readers that guess types."""

from __future__ import annotations

import csv
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.csv import read_csv
from rich.console import Console
from rich.table import Table

import privet as pv
from privet.sources.arrow import DECLARED
from privet.sources.csv import parsing
from privet.sources.csv.dialect import Dialect
from privet.sources.readings import Reading

ROWS = 300_000
ROUNDS = 3
NAMES = ["person_id", "age", "income", "region", "born", "seen", "member", "note"]
KINDS: list[Reading] = ["key", "integer", "number", "text", "date", "timestamp", "boolean", "text"]


def make(path: Path, rows: int) -> None:
    drawn = random.Random(1)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        for _ in range(rows):
            month, day = f"{drawn.randrange(1, 13):02}", f"{drawn.randrange(1, 29):02}"
            moment = f"{drawn.randrange(24):02}:{drawn.randrange(60):02}:{drawn.randrange(60):02}"
            writer.writerow(
                (
                    drawn.randrange(rows // 5),
                    drawn.randrange(100),
                    round(drawn.gauss(3e4, 1e4), 2),
                    drawn.choice(("north", "south", "west")),
                    f"{drawn.randrange(1930, 2010)}-{month}-{day}",
                    f"2024-{month}-{day}T{moment}",
                    drawn.choice(("yes", "no")),
                    drawn.choice(("a, b", "plain", "")),
                )
            )


def strict(source: Path, target: Path) -> None:
    columns = {
        "age": pv.integer(0, 110),
        "income": pv.number(0, 100_000),
        "region": pv.keys("north", "south"),
        "born": pv.date("1900-01-01", "2024-12-31"),
        "seen": pv.timestamp("2024-01-01", "2024-12-31"),
        "member": pv.boolean(),
        "note": pv.text(),
    }
    pv.import_csv(source, target, columns=columns, id="person_id", id_type="integer", cap=5, overwrite=True)


def row_wise(source: Path, target: Path) -> None:
    """The strict reader without Arrow: what the import falls back on for odd lines and values."""
    schema = pa.schema([(name, DECLARED[kind]) for name, kind in zip(NAMES, KINDS, strict=True)])
    with source.open("rb") as stream, pq.ParquetWriter(target, schema, compression="zstd") as writer:
        rows = Dialect().rows(stream)
        next(rows)
        while chunk := list(islice(rows, 65_536)):
            columns = zip(*(row.fields or [] for row in chunk), strict=True)
            made = [parsing.parse(texts, kind)[0] for texts, kind in zip(columns, KINDS, strict=True)]
            writer.write_table(pa.table(dict(zip(NAMES, made, strict=True)), schema=schema))


def arrow(source: Path, target: Path) -> None:
    pq.write_table(read_csv(source), target, compression="zstd")


def duck(source: Path, target: Path) -> None:
    duckdb.execute(f"COPY (FROM read_csv('{source}')) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


def main() -> None:
    readers: dict[str, Callable[[Path, Path], None]] = {
        "privet, strict": strict,
        "privet, row by row (before)": row_wise,
        "Arrow, which guesses types": arrow,
        "DuckDB, which guesses types": duck,
    }
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "people.csv"
        make(source, ROWS)
        taken: dict[str, list[float]] = {what: [] for what in readers}
        worked: dict[str, list[float]] = {what: [] for what in readers}
        for _ in range(ROUNDS):
            for what, reader in readers.items():
                start, busy = time.perf_counter(), time.process_time()
                reader(source, Path(name) / "people.parquet")
                taken[what].append(time.perf_counter() - start)
                worked[what].append(time.process_time() - busy)
        size = source.stat().st_size / 1e6
    table = Table("reader", "seconds", "rows/s", "x privet, strict", "of CPU", "x privet, strict", box=None)
    for what, found in taken.items():
        wall, cpu = (
            statistics.median(a / b for a, b in zip(each[what], each["privet, strict"], strict=True))
            for each in (taken, worked)
        )
        least, busy = min(found), min(worked[what])
        table.add_row(what, f"{least:.2f}", f"{ROWS / least:,.0f}", f"{wall:.2f}", f"{busy:.2f}", f"{cpu:.2f}")
    console = Console(width=120, highlight=False)
    console.print(f"CSV of {ROWS:,} rows, {len(NAMES)} columns, {size:.0f} MB, into Parquet (zstd); best of {ROUNDS}")
    console.print(table)
