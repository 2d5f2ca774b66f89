"""`./dev bench [NAME]`: run one benchmark, or all of them. Each prints what it measured, also where Privet loses."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = {
    "noise": "exact noise against numpy and OpenDP; single releases; memory; import time",
    "tables": "private tables against DuckDB, Polars, OpenDP, Tumult, PipelineDP, SmartNoise and diffprivlib",
    "expressions": "expressions in exact integers beside the same ones in plain DuckDB, in doubles",
    "large": "10^8 rows with 2 GB of memory",
    "ledger": "durable debits on SQLite and Postgres beside the machine's fsync rate; long histories",
    "commands": "the command line, cold, beside python and beside the bare engine",
    "imports": "the strict import of a CSV beside a row-wise reader, Arrow and DuckDB",
    "unmarked": "intervals of groups of 0 to 1,000 people: coverage, also given that they are not marked",
    "coverage": "intervals on real data: coverage and width, and what bounding moved",
}


def main(arguments: list[str]) -> int:
    names = arguments or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"there is no benchmark {unknown[0]!r}; there are:", file=sys.stderr)
        for name, what in BENCHMARKS.items():
            print(f"  {name:8} {what}", file=sys.stderr)
        return 2
    for name in names:
        importlib.import_module(name).main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
