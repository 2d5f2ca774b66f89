"""Several questions at a time on DuckDB: each has its own cursor and lists of keys, and is interrupted alone."""

from __future__ import annotations

import math
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import exactly

from privet.engines.base import FAILED
from privet.engines.duckdb import attaching
from privet.engines.duckdb import engine as duckdb_engine
from privet.engines.duckdb.engine import DuckDB
from privet.engines.duckdb.files import DuckDBFile
from privet.engines.duckdb.starting import Starting
from privet.errors import NoAnswer
from privet.privacy.adjacency import each_row, person
from privet.system.stopping import Stoppable
from privet.tables import schema as declared
from privet.tables.expressions.fluent import col
from privet.tables.operators import Scan, Where
from privet.tables.schema import Schema
from privet.tables.statement import AtMostRows, Rows, Statement, Unbounded
from privet.tables.stored_types import StoredType

from .conftest import Make

NAMES = [f"key {i}" for i in range(30)]
SCHEMA = Schema.declare("t", protect=person("id", max_rows=1), columns={"k": declared.keys(*NAMES)})
ROWS = {"id": list(range(300)), "k": [NAMES[i % 30] for i in range(300)]}
BY_KEY = Statement(Scan(SCHEMA), (col("k").node,), AtMostRows(1), (Rows(),))
LISTED = Statement(Where(Scan(SCHEMA), col("k").is_in(NAMES[:20]).node), (col("k").node,), AtMostRows(1), (Rows(),))
ENDLESS = "SELECT sum(hash(a.i, b.i) % 7) FROM range(10000000) a(i), range(10000000) b(i)"


def test_two_questions_run_at_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither goes on before the other is inside the engine, too; with one lock the barrier would break."""
    engine, both = make(SCHEMA, ROWS), threading.Barrier(2, timeout=60)
    run, cursors = DuckDB._run, []

    def together(self: DuckDB, cursor: Any, sql: str, context: Any) -> Any:
        cursors.append(cursor)
        both.wait()
        return run(self, cursor, sql, context)

    monkeypatch.setattr(DuckDB, "_run", together)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(engine.answer, [BY_KEY, LISTED]))
    assert found[0] == [[10]] * 30
    assert found[1] == [[10]] * 20 + [[0]] * 10
    assert len({id(cursor) for cursor in cursors}) == 2


def test_the_same_statement_at_once(make: Make) -> None:
    """Its lists of keys have the same names, each in a cursor of its own."""
    engine = make(SCHEMA, ROWS)
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(engine.answer, [BY_KEY] * 30)) == [[[10]] * 30] * 30


@pytest.fixture
def endless(make: Make, monkeypatch: pytest.MonkeyPatch) -> tuple[DuckDB, list[Any]]:
    """An engine whose first question takes hours, and the cursor of that question once it runs."""
    return first_endless(make(SCHEMA, ROWS), monkeypatch)


@pytest.fixture
def endless_apart(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[DuckDB, list[Any]]:
    """The same with questions apart."""
    return first_endless(make(SCHEMA, ROWS, apart=True, spill=tmp_path), monkeypatch)


def first_endless(engine: DuckDB, monkeypatch: pytest.MonkeyPatch) -> tuple[DuckDB, list[Any]]:
    run = DuckDB._run
    cursors: list[Any] = []

    def slow(self: DuckDB, cursor: Any, sql: str, context: Any) -> Any:
        if cursors:
            return run(self, cursor, sql, context)
        cursors.append(cursor)
        return run(self, cursor, ENDLESS, replace(context, parameters=[]))

    monkeypatch.setattr(DuckDB, "_run", slow)
    return engine, cursors


def test_an_interrupt_reaches_its_own_question_alone(endless: tuple[DuckDB, list[Any]]) -> None:
    engine, cursors = endless
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(engine.answer, BY_KEY)
        while not cursors:
            time.sleep(0.01)
        assert engine.answer(LISTED)[0] == [10], "answered meanwhile"
        (other,) = engine._homes[os.getpid()].idle
        other.interrupt()
        time.sleep(0.1)
        assert not asking.done()
        while not asking.done():
            cursors[0].interrupt()
            time.sleep(0.01)
        with pytest.raises(NoAnswer, match=FAILED):
            asking.result()
    assert engine.answer(BY_KEY) == [[10]] * 30


def test_stop_ends_every_question(endless: tuple[DuckDB, list[Any]]) -> None:
    engine, cursors = endless
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(engine.answer, BY_KEY)
        while not cursors:
            time.sleep(0.01)
        while not asking.done():
            engine.stop()
            time.sleep(0.01)
        with pytest.raises(SystemExit):
            asking.result()


def test_every_cursor_has_the_settings(make: Make) -> None:
    home = make(SCHEMA, ROWS)._homes[os.getpid()]
    settings = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    with home.connection() as first, home.connection() as second:
        assert first is home.first
        assert second is not first
        assert first.execute(settings).fetchall() == second.execute(settings).fetchall()


# --- memory -----------------------------------------------------------------------------------------

PAIRS = Schema.declare("t", protect=person("id", max_rows=1), columns={"k": declared.integer(0, 9)})
FIRST_OF_EACH = Statement(Scan(PAIRS), (), AtMostRows(1), (Rows(),))
GREEDY = (
    "SELECT count(*) FROM (SELECT list(i) AS l FROM range(1000000) t(i)) q, range(100000000000) r(j) WHERE len(l) = j"
)


def beside_a_greedy_question(engine: DuckDB) -> bool:
    """Whether a question is answered while another holds some 32 MB that can't go to disk."""
    lent = []

    def greedy() -> None:
        with engine._homes[os.getpid()].connection() as connection:
            lent.append(connection)
            with suppress(duckdb.Error):
                connection.execute(GREEDY).fetchall()

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(greedy)
        try:
            time.sleep(0.5)
            return engine.answer(FIRST_OF_EACH) == [[100_000]]
        except NoAnswer:
            return False
        finally:
            while not running.done():
                for connection in lent:
                    with suppress(duckdb.ConnectionException):
                        connection.interrupt()
                time.sleep(0.01)


@pytest.mark.slow
def test_a_greedy_question_does_not_fail_another(make: Make) -> None:
    """Apart, each question has its memory; with what they share, the other one fails, and its analyst pays for it."""
    rows = {"id": [i // 3 for i in range(300_000)], "k": [i % 10 for i in range(300_000)]}
    apart = make(PAIRS, rows, memory="40MB", threads=2, apart=True)
    assert all(beside_a_greedy_question(apart) for _ in range(5))
    shared = make(PAIRS, rows, memory="40MB", threads=2)
    assert shared.answer(FIRST_OF_EACH) == [[100_000]]
    assert not all(beside_a_greedy_question(shared) for _ in range(25))


def test_questions_apart(make: Make, tmp_path: Path) -> None:
    """Each is answered as in one DuckDB, is shut in alike, and spills into a folder of its own, which is removed."""
    engine, both, seen = make(SCHEMA, ROWS, memory="100MB", apart=True, spill=tmp_path), threading.Barrier(2), []
    settings = ["memory_limit", "temp_directory", "lock_configuration", "enable_external_access"]

    def ask(statement: Statement) -> Any:
        with engine._homes[os.getpid()].connection() as connection:
            both.wait(60)
            seen.append([connection.execute(f"SELECT current_setting('{name}')").fetchall() for name in settings])
            both.wait(60)
        return engine.answer(statement)

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(ask, [BY_KEY, LISTED]))
    assert found == [[[10]] * 30, [[10]] * 20 + [[0]] * 10]
    (memory, one, *shut), (same, other, *alike) = seen
    assert memory == same == [("95.3 MiB",)]
    assert one != other
    assert shut == alike == [[(True,)], [(False,)]]
    engine.close()
    assert list(tmp_path.iterdir()) == []


def test_a_fork_of_questions_apart(make: Make) -> None:
    """A child starts DuckDBs of its own; those of its parent go on."""
    engine = make(SCHEMA, ROWS, apart=True)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(engine.answer, [BY_KEY] * 9))
    child = os.fork()
    if not child:
        os._exit(0 if engine.answer(BY_KEY) == [[10]] * 30 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert engine.answer(LISTED) == [[10]] * 20 + [[0]] * 10


# --- DuckDBs apart ------------------------------------------------------------------------------------

NUMBERS = Schema.declare("t", protect=each_row(), columns={"x": declared.integer(0, 9)})
TOTAL = Statement(Scan(NUMBERS), (), Unbounded(), (Rows(), exactly.total(col("x").node, 0, 1, 9)))


def written(path: Path, values: list[Any]) -> Path:
    pq.write_table(pa.table({"x": values}), path)
    return path


def test_a_duckdb_that_failed_goes_with_its_folder(endless_apart: tuple[DuckDB, list[Any]], tmp_path: Path) -> None:
    """The first one too: else it would keep its threads until the process ends."""
    engine, cursors = endless_apart
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(engine.answer, BY_KEY)
        while not asking.done():
            for cursor in cursors:
                with suppress(duckdb.ConnectionException):  # it was closed just now
                    cursor.interrupt()
            time.sleep(0.01)
        with pytest.raises(NoAnswer, match=FAILED):
            asking.result()
    assert [list(folder.iterdir()) for folder in tmp_path.iterdir()] == [[]]
    with pytest.raises(duckdb.ConnectionException):
        cursors[0].execute("SELECT 1")
    assert engine.answer(BY_KEY) == [[10]] * 30


def test_idle_duckdbs_have_few_threads(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with 64 cores each has 71, and a container often allows some thousands."""
    monkeypatch.setattr(duckdb_engine, "_THREADS", 40)  # for four DuckDBs with two threads each, and eight that read
    first, second = (make(SCHEMA, ROWS, apart=True) for _ in range(2))
    for engine, kept in ((first, 3), (second, 1)):
        home = engine._homes[os.getpid()]
        with ExitStack() as stack:
            lent = [stack.enter_context(home.connection()) for _ in range(5)]
            found = lent[-1].execute("SELECT current_setting('threads') + current_setting('async_threads')").fetchall()
            assert found == [(engine._starting.threads,)] == [(10,)]
        assert len(home.idle) == kept
        assert sum(folder.is_dir() for folder in Path(home.folder).iterdir()) == kept
        for each in lent:
            if each not in home.idle:
                with pytest.raises(duckdb.ConnectionException):
                    each.execute("SELECT 1")
        assert engine.answer(BY_KEY) == [[10]] * 30


def test_none_writes_where_another_does(make: Make, tmp_path: Path) -> None:
    engine = make(SCHEMA, ROWS, apart=True, spill=tmp_path)
    home, find = engine._homes[os.getpid()], "SELECT current_setting('temp_directory')"
    with home.connection() as first, home.connection() as second:
        mine, other = (Path(each.execute(find).fetchall()[0][0]) for each in (first, second))
        (other / "page").write_text("1")
        assert mine.parent == other.parent == Path(home.folder)
        with pytest.raises(duckdb.PermissionException):
            first.execute(f"SELECT * FROM read_text('{other}/page')")


def test_stop_while_a_duckdb_starts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would be asked is not asked: it could run for as long as a question may, and the server waits for it."""
    engine, starts, stopped = make(SCHEMA, ROWS, apart=True), threading.Event(), threading.Event()
    started = Starting.started

    def slow(self: Starting, folder: str) -> Any:
        starts.set()
        assert stopped.wait(60)
        return started(self, folder)

    monkeypatch.setattr(Starting, "started", slow)
    with engine._homes[os.getpid()].connection(), ThreadPoolExecutor(1) as threads:
        asking = threads.submit(engine.answer, BY_KEY)
        assert starts.wait(60)
        engine.stop()
        stopped.set()
        with pytest.raises(SystemExit):
            asking.result()


def test_a_deadline_while_a_duckdb_starts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, attach, starting = make(SCHEMA, ROWS, apart=True), attaching.attach, []

    def slow(connection: Any, source: Any, name: str) -> None:
        starting.append(connection)
        connection.execute(ENDLESS)
        attach(connection, source, name)

    def ask() -> Any:
        with question.run():
            return engine.answer(BY_KEY)

    monkeypatch.setattr(attaching, "attach", slow)
    question = Stoppable()
    with engine._homes[os.getpid()].connection(), ThreadPoolExecutor(2) as threads:
        asking = threads.submit(ask)
        while not starting:
            time.sleep(0.01)
        threads.submit(question.stop)
        try:
            with pytest.raises(NoAnswer, match=FAILED):
                asking.result(timeout=20)
        finally:
            while not asking.done():
                starting[0].interrupt()
                time.sleep(0.01)


def test_columns_of_other_types_are_not_read(make: Make, tmp_path: Path) -> None:
    """A statement is made for the types that were there first: it would read NaN in an integer's place as a number."""
    path = written(tmp_path / "numbers.parquet", [1, 2, 3])
    engine = make(NUMBERS, path, apart=True)
    assert engine.answer(TOTAL) == [[3, 6]]
    with engine._homes[os.getpid()].connection():
        for others in ([1.0, 2.0], [1.0, math.nan], ["1", "2"]):
            written(path, others)
            time.sleep(0.1)
            with pytest.raises(NoAnswer, match=FAILED):
                engine.answer(TOTAL)
        written(path, [4, 5])
        assert engine.answer(TOTAL) == [[2, 9]]


def test_a_duckdb_file_that_was_replaced_is_attached_anew(make: Make, tmp_path: Path) -> None:
    """Otherwise each DuckDB would answer from the file that was there when it started."""

    def file(values: str) -> str:
        made = tmp_path / f"{len(list(tmp_path.iterdir()))}.duckdb"
        with duckdb.connect(str(made)) as connection:
            connection.execute(f"CREATE TABLE numbers AS SELECT unnest([{values}]) AS x")
        return str(made.rename(tmp_path / "numbers.duckdb"))

    source = DuckDBFile(file("1, 2, 3"), "numbers", "main", (("x", StoredType.integer(32)),))
    engine = make(NUMBERS, source, apart=True)
    assert engine.answer(TOTAL) == [[3, 6]]
    file("4, 5")
    time.sleep(0.1)
    with engine._homes[os.getpid()].connection():
        assert engine.answer(TOTAL) == [[2, 9]]
    assert engine.answer(TOTAL) == [[2, 9]]
