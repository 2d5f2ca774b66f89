"""Spark that fails: real kills of executors and of the server, dropped connections, time limits and Ctrl-C.

Each is one constant error, what was paid stays paid, and the next question works.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import spark
from tests.relay import relayed
from tests.spark import SparkServer

import privet as pv
from privet.engines.spark import sessions
from privet.errors import NoAnswer, SourceError
from privet.privacy.adjacency import person
from privet.tables import schema as declared
from privet.tables.expressions.fluent import col
from privet.tables.relation import Table

PAID = "The question could not be answered. It was paid for, and nothing was released."
AGES = {"age": declared.integer(0, 110)}


def wait_for(condition: Callable[[], Any]) -> Any:
    for _ in range(1200):
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it never happened")


@contextmanager
def failing() -> Iterator[None]:
    with pytest.raises(NoAnswer) as caught:
        yield
    assert (caught.value.args, caught.value.__cause__, caught.value.__context__) == ((PAID,), None, None)


class Long:
    """A table whose questions take minutes: few bytes, since all rows are alike, but tens of millions of rows."""

    def __init__(self, folder: Path, files: int, rows: int = 2**20) -> None:
        self.folder = folder / "long"
        self.folder.mkdir()
        alike = pa.table({"id": np.ones(rows, np.int64), "age": np.full(rows, 30, np.int64)})
        pq.write_table(alike, folder / "part.parquet")
        for i in range(files):
            shutil.copy(folder / "part.parquet", self.folder / f"{i}.parquet")
        pq.write_table(pa.table({"id": [1], "age": [30]}), self.folder / "short.parquet")

    def shorten(self) -> None:
        """The next question is a quick one."""
        for file in self.folder.iterdir():
            if "short" not in file.name:
                file.unlink()

    def table(self, server: str) -> Table:
        return pv.table("people", f"{server}#{self.folder}", protect=person("id", max_rows=2), columns=AGES)


@pytest.fixture
def long(tmp_path: Path) -> Long:
    return Long(tmp_path, files=60)


def asking(session: pv.Session, table: Table, least: int = 0) -> list[Any]:
    """The number of rows, at most two of a person; another question each time."""
    query = table.where(col("age") >= least).agg(n=pv.count())
    return list(session.release(query, epsilon=10**5).values("n"))


class Watch:
    """What Spark runs for the next question of a session, by its tag: other tests use the same server."""

    def __init__(self, server: SparkServer, session: pv.Session) -> None:
        (self.events,), self.log = server.events.iterdir(), server.log
        self.start_of_events, self.start_of_log = self.events.stat().st_size, self.log.stat().st_size
        self.tag = "none yet"
        engine: Any = session.dataset.engine
        rows = engine._rows

        def noted(of: Any, sql: str, context: Any, tag: str) -> Any:
            self.tag, engine._rows = tag, rows
            return rows(of, sql, context, tag)

        engine._rows = noted

    def _said(self, what: str, stages: set[int]) -> set[int]:
        """The stages, of these, of which the log says that."""
        log = self.log.read_bytes()[self.start_of_log :].decode()
        return stages & {int(stage) for stage in re.findall(rf"{what} (\d+)\.", log)}

    def _jobs(self) -> tuple[dict[int, str], set[int]]:
        """How each job ended, or an empty text; and the stages of all jobs."""
        ends, stages = dict[int, str](), set[int]()
        for line in self.events.read_bytes()[self.start_of_events :].splitlines(keepends=True):
            if line.startswith(b'{"Event":"SparkListenerJob') and line.endswith(b"}\n"):
                event = json.loads(line)
                job = event["Job ID"]
                if job in ends:
                    ends[job] = event["Job Result"]["Result"]
                elif self.tag in event.get("Properties", {}).get("spark.job.tags", ""):
                    ends[job] = ""
                    stages |= {*event["Stage IDs"]}
        return ends, stages

    def works(self) -> bool:
        """Whether a task has begun."""
        return bool(self._said("Starting task .* in stage", self._jobs()[1]))

    def stopped(self) -> bool:
        """Whether what had begun was ended before it was done, and no task of it is running any more."""
        ends, stages = self._jobs()
        begun, done = self._said("Adding task set", stages), self._said("Removed TaskSet", stages)
        return begun == done and "" not in ends.values() and (not ends or "JobFailed" in ends.values())


@contextmanager
def opened(table: Table) -> Iterator[pv.Session]:
    with pv.Session([table], budget=pv.PureDP(10**7), ledger=None) as session:
        yield session


@contextmanager
def in_the_middle(session: pv.Session, table: Table, server: SparkServer) -> Iterator[Watch]:
    """While a question is being computed; it fails with the constant error, and is paid."""
    spent, watch = session.spent, Watch(server, session)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(asking, session, table, 7)
        wait_for(lambda: watch.works() or answer.done())
        yield watch
        with failing():
            raise answer.exception(120)  # type: ignore[misc]
    assert session.spent == pv.PureDP(spent.epsilon + 10**5), "what was paid stays paid"


def test_a_time_limit(spark_server: SparkServer, long: Long, monkeypatch: pytest.MonkeyPatch) -> None:
    table = long.table(spark_server.address)
    with opened(table) as session:
        with monkeypatch.context() as patch:
            patch.setattr(sessions, "LONGEST", 5.0)
            with in_the_middle(session, table, spark_server) as watch:
                pass  # and wait
        assert wait_for(watch.stopped)
        long.shorten()
        assert asking(session, table) == [1]


def test_a_connection_that_is_dropped(spark_server: SparkServer, long: Long, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PATIENCE", 1)  # meanwhile Spark computes for nobody
    with relayed(spark_server.port) as relay:
        table = long.table(f"sc://127.0.0.1:{relay.port}")
        with opened(table) as session:
            with in_the_middle(session, table, spark_server):
                relay.down()
            spent = session.spent
            with pytest.raises(SourceError, match=r"can.t connect to sc://127\.0\.0\.1"):
                asking(session, table, 8)
            assert session.spent == spent, "a Spark that can't be reached costs nothing"
            long.shorten()
            relay.up()
            assert asking(session, table, 9) == [1]


def test_a_question_that_fails_does_not_end_another(spark_server: SparkServer, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 1], "age": [30, 31]}), tmp_path / "two.parquet")
    begun, go_on = threading.Event(), threading.Event()
    with ExitStack() as stack:  # an address, and so a session of Spark, that no other test has
        relay = stack.enter_context(relayed(spark_server.port))
        address = f"sc://127.0.0.1:{relay.port}#{tmp_path / 'two.parquet'}"
        table = pv.table("people", address, protect=person("id", max_rows=2), columns=AGES)
        session, pool = stack.enter_context(opened(table)), stack.enter_context(ThreadPoolExecutor(1))
        engine: Any = session.dataset.engine
        rows = engine._rows

        def slowly(*given: Any) -> Any:
            begun.set()
            assert go_on.wait(60)
            return rows(*given)

        engine._rows = slowly
        first = pool.submit(asking, session, table, 1)
        assert begun.wait(60)
        engine._rows = lambda of, sql, context, tag: rows(of, "SELECT raise_error('no')", context, tag)
        with failing():
            asking(session, table, 2)
        engine._rows = rows
        assert asking(session, table, 3) == [2]  # in another session, since the first one is not trusted any more
        go_on.set()
        assert first.result(60) == [2]


def test_ctrl_c_and_the_end_of_the_process_end_the_statement(spark_server: SparkServer, long: Long) -> None:
    table = long.table(spark_server.address)
    with opened(table) as session:
        spent, watch = session.spent, Watch(spark_server, session)

        def press() -> None:
            wait_for(watch.works)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=press)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            asking(session, table)
        thread.join()
        assert session.spent == pv.PureDP(spent.epsilon + 10**5), "an interrupted question is paid"
        assert wait_for(watch.stopped), "Spark stops too"
        watch = Watch(spark_server, session)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(asking, session, table, 9)
            wait_for(watch.works)
            session.dataset.engine.stop()
            assert isinstance(answer.exception(60), SystemExit)
        assert wait_for(watch.stopped)


CLUSTER = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": " ".join(spark.QUICK),
    "spark.sql.files.maxPartitionBytes": "4m",  # a task for each file
}


def test_executors_and_servers_that_are_killed(spark_server: SparkServer, tmp_path: Path) -> None:
    """A lost executor is replaced, and what it had counted is counted again, alike. A lost server is a failure.

    After that another one answers at its address, which knows as little of the first one's sessions as a new one would.
    """
    long = Long(tmp_path, files=24, rows=2**16)
    with (
        spark.running(master="local-cluster[1,1,512]", **CLUSTER) as (server, process),
        relayed(server.port) as relay,
    ):
        table = long.table(f"sc://127.0.0.1:{relay.port}")
        with opened(table) as session:
            spent = session.spent
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(asking, session, table, 1)
                wait_for(lambda: session.spent != spent or answer.done())
                start = server.log.stat().st_size
                wait_for(lambda: b"Finished task" in server.log.read_bytes()[start:] or answer.done())
                (executor,) = executors(process.pid)
                os.kill(executor, signal.SIGKILL)
                assert answer.result(120) == [2], "the same integers"
            assert b"Lost executor" in server.log.read_bytes()[start:]
            with in_the_middle(session, table, server):
                spark.end(process)
            long.shorten()
            relay.down()
            relay.server = spark_server.port
            relay.up()
            assert asking(session, table, 9) == [1], "a server that was restarted is asked again"


def executors(server: int) -> list[int]:
    """The processes of a server's executors."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == server and b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found
