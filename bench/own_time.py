"""The CPU time of a release without the engine: planning, the ledger, noise, intervals and the certificate.

The engine computes in other threads than the one that asks, which tells the two apart.
"""

from __future__ import annotations

import statistics
import time
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

import privet as pv

GROUPS = 50
ROWS = 1_000
ROUNDS = 51
LIMIT = 10.0
"""Milliseconds of CPU time, without the ledger's file."""


def own_time(ledger: Path | None, *, new: bool) -> tuple[float, float]:
    """Median milliseconds of CPU time of a release of count, mean and sum by 50 keys: its own, and the engine's.

    With `new`, each release has another epsilon, so that no table of noise and no error is known before.
    """
    places = range(ROWS)
    rows = pa.table({"id": list(places), "key": [i % GROUPS for i in places], "x": [float(i % 97) for i in places]})
    table = pv.table(
        "people",
        rows,
        protect=pv.person("id", max_rows=1),
        columns={"key": pv.keys(*range(GROUPS)), "x": pv.number(0, 100)},
    )
    asked = table.group_by("key").agg(n=pv.count(), mean=pv.mean("x"), total=pv.sum("x"))
    with pv.Session([table], budget=pv.PureDP(10**6), ledger=ledger) as session:
        times = []
        for i in range(ROUNDS):
            own, every = time.thread_time(), time.process_time()
            session.release(asked, epsilon=Fraction(500 + (i if new else 0), 1000), fresh=True)
            own, every = time.thread_time() - own, time.process_time() - every
            times.append((own, every - own))
    mine, engines = zip(*times[ROUNDS // 5 :], strict=True)
    return 1000 * statistics.median(mine), 1000 * statistics.median(engines)


def report() -> str:
    """The line of `./dev bench tables`."""
    again, engines = own_time(None, new=False)
    new, _ = own_time(None, new=True)
    with TemporaryDirectory() as folder:
        file, _ = own_time(Path(folder) / "people.ledger", new=False)
    return (
        f"own CPU time of a release: {GROUPS} groups, 3 columns: {again:.1f} ms beside the engine's {engines:.1f} ms "
        f"(limit {LIMIT:.0f} ms); {new:.1f} ms at a new epsilon; {file:.1f} ms with a ledger in a file"
    )


if __name__ == "__main__":
    print(report())
