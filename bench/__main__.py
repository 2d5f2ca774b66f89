"""`./dev bench [NAME ...]` runs the named benchmarks, or all of them. Each prints every measurement, good or bad."""

from __future__ import annotations

import argparse
import importlib
import os

BENCHMARKS = {
    "noise": "exact noise, compared with numpy and OpenDP; single releases; memory; import time",
    "tables": "private tables, compared with DuckDB, Polars, OpenDP, Tumult, PipelineDP, SmartNoise and diffprivlib",
    "engines": "the private query on each engine, compared with its plain query, with a cap by hand, and with Tumult",
    "scale": "a cost model of each engine: fitted at some sizes, checked against another",
    "expressions": "expressions in exact integers, compared with plain DuckDB in doubles",
    "large": "10^8 rows with 2 GB of memory",
    "accounting": "questions that a budget allows under each accountant, and prices a second",
    "ledger": "durable debits on SQLite and Postgres, compared with the disk's fsync rate; long histories",
    "server": "the server by HTTP, compared with the bare session; 64 clients on SQLite and Postgres",
    "commands": "commands, started cold, compared with python and with DuckDB alone",
    "imports": "the strict CSV import, compared with a row-by-row reader, Arrow and DuckDB",
    "cubes": "errors of the levels of a cube at equal cost: consistent, independent, and the finest level summed",
    "unmarked": "coverage of intervals in groups of 0 to 1,000 people, for all answers and for unmarked ones",
    "error": "error at equal epsilon, compared with other libraries and with the known optimum",
    "kinds": "the same for quantiles, cubes, distinct values, computed columns and unknown keys",
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
    reader.add_argument("--seconds", type=int, default=300, help="of load on each store, for server (default: 300)")
    given = reader.parse_args(arguments)
    os.environ["BENCH_SECONDS"] = str(given.seconds)
    names = given.names
    if unknown := [name for name in names if name not in BENCHMARKS]:
        reader.error(f"there is no benchmark {unknown[0]!r}; choose from {', '.join(BENCHMARKS)}")
    for name in names or BENCHMARKS:
        importlib.import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main()
