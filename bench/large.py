"""10^8 rows with 2 GB for the engine: time per row, compared with 10^7 rows, and peak memory."""

from __future__ import annotations

import os

from rich.console import Console
from rich.table import Table

from bench import people
from bench.peer import Peer
from bench.tables import CAP, PRIVET, alternating, ask

MEMORY = "2GB"


def main() -> None:
    os.environ["BENCH_MEMORY"] = MEMORY
    table = Table(
        "protected",
        "rows",
        "seconds",
        "ns a row",
        "to 10^7 rows",
        "peak MB",
        title=f"Engine limit {MEMORY}",
        box=None,
    )
    with Peer(None, PRIVET) as privet:
        for cap, name in ((0, "each row"), (CAP, f"person, {CAP} rows")):
            ask(privet, people.file(10_000), cap)
            first = None
            for rows, rounds in ((10**7, 3), (10**8, 1)):
                found = alternating([privet], people.file(rows), cap, rounds)[0]
                nanoseconds = found["seconds"] / rows * 1e9
                first = first or nanoseconds
                table.add_row(
                    name, f"{rows:,}", f"{found['seconds']:.2f}", f"{nanoseconds:.1f}", f"{nanoseconds / first:.2f}",
                    f"{found['peak']:,.0f}",
                )  # fmt: skip
    Console(width=110, highlight=False).print(table)
