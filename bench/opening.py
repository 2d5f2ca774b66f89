"""How long it takes to open a session on a large Parquet file and to be refused: the first time, and later."""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import privet as pv
from bench import people
from bench.peers.tables_common import REGIONS
from bench.timing import seconds

ROWS = 6_700_000
ROUNDS = 9


def refused(path: Path) -> None:
    """Open the file and ask for a column that does not exist."""
    table = pv.table(
        "people",
        path,
        protect=pv.person("user_id", max_rows=1),
        columns={"region": pv.keys(*REGIONS), "age": pv.integer(0, 110), "income": pv.number(0, people.UPPER)},
    )
    with pv.Session([table], budget=pv.PureDP(1), ledger=None) as session:
        try:
            session.release("SELECT SUM(wage) FROM people", epsilon=1)
        except pv.PrivetError:
            return
    raise AssertionError("a column that does not exist was not refused")


def report(rows: int = ROWS) -> str:
    """The line of `./dev bench tables`."""
    path = people.file(rows)
    refused(people.file(10_000))  # imports and the first connection are not what is measured
    with TemporaryDirectory() as cache, mock.patch.dict(os.environ, {"XDG_CACHE_HOME": cache}):
        first = seconds(lambda: refused(path))
        later = statistics.median(seconds(lambda: refused(path)) for _ in range(ROUNDS))
    return f"open {rows:,} rows and be refused: {1000 * first:.0f} ms the first time, {1000 * later:.0f} ms later"


if __name__ == "__main__":
    print(report())
