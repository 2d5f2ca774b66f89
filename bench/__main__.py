"""`./dev bench [NAME ...]` runs the named benchmarks, or all of them. Each prints what it measured, good or bad."""

from __future__ import annotations

import argparse
import importlib

BENCHMARKS = {
    "noise": "exact noise against numpy and OpenDP; single releases; memory; import time",
    "tables": "private tables against DuckDB, Polars, OpenDP, Tumult, PipelineDP, SmartNoise and diffprivlib",
    "expressions": "expressions in exact integers beside plain DuckDB, which computes in doubles",
    "large": "10^8 rows with 2 GB of memory",
    "ledger": "durable debits on SQLite and Postgres beside the disk's fsync rate; long histories",
    "commands": "the command line, started cold, beside python and beside DuckDB alone",
    "imports": "the strict CSV import beside a row-by-row reader, Arrow and DuckDB",
    "unmarked": "coverage of the intervals of groups of 0 to 1,000 people, also among unmarked answers only",
    "coverage": "coverage and width of intervals on real data, and the bias from bounding",
}


def main(arguments: list[str] | None = None) -> None:
    listing = "\n".join(f"  {name:12} {what}" for name, what in BENCHMARKS.items())
    reader = argparse.ArgumentParser(
        prog="./dev bench",
        description="Run the named benchmarks, or all of them.",
        epilog=f"benchmarks:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reader.add_argument("names", nargs="*", metavar="NAME")
    names = reader.parse_args(arguments).names
    if unknown := [name for name in names if name not in BENCHMARKS]:
        reader.error(f"there is no benchmark {unknown[0]!r}; choose from {', '.join(BENCHMARKS)}")
    for name in names or BENCHMARKS:
        importlib.import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main()
