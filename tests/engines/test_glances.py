"""The connection that is kept between looks at files: it remembers nothing, holds nothing, and has no threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privet as pv
from privet.engines.duckdb import files
from privet.engines.duckdb.files import Connection, Unreadable, describe, every_core, glance, parquet, query


@pytest.fixture(autouse=True)
def nothing_idle(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(files, "_IDLE", {})
    yield
    for connection in files._IDLE.values():
        connection.close()


def written(path: Path, name: str) -> Path:
    """A file that differs only in the name of its column: size and time are always the same."""
    pq.write_table(pa.table({name: [1, 2]}), path)
    os.utime(path, ns=(0, 0))
    return path


def seen(connection: Connection, path: Path) -> list[str]:
    return list(describe(connection, parquet([str(path)])))


def test_a_file_that_became_another_is_read_anew(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", "a")
    with glance() as first:
        assert seen(first, path) == ["a"]
    written(path, "b")
    with glance() as second:
        assert second is first, "it was kept"
        assert seen(second, path) == ["b"]


def test_one_that_remembers_files_is_caught(tmp_path: Path) -> None:
    with glance() as connection:
        connection.execute("SET parquet_metadata_cache = true")
        path = written(tmp_path / "t.parquet", "a")
        assert seen(connection, path) == ["a"]
        written(path, "b")
        assert seen(connection, path) == ["a"]


def test_after_an_error_it_is_not_used_again(tmp_path: Path) -> None:
    with pytest.raises(Unreadable), glance() as first:
        query(first, "SELECT * FROM nothing")
    with glance() as second:
        assert second is not first
    with pytest.raises(duckdb.ConnectionException):
        first.execute("SELECT 1")


def test_nobody_else_uses_it_meanwhile() -> None:
    both = Barrier(2, timeout=60)

    def looking() -> int:
        with glance() as connection:
            both.wait()
            return id(connection)

    with ThreadPoolExecutor(2) as pool:
        assert len({each.result() for each in [pool.submit(looking), pool.submit(looking)]}) == 2
    assert len(files._IDLE) == 1, "one is kept"
    with glance() as outer, glance() as inner:
        assert inner is not outer


def test_a_database_can_be_written_after_a_look(tmp_path: Path) -> None:
    path = str(tmp_path / "t.duckdb")
    for look in range(3):
        with duckdb.connect(path) as connection:  # fails while another connection has the file
            connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT {look} AS x{look}")
        pv.table("t", pv.duckdb_file(path, "t"), protect=pv.each_row(), columns={f"x{look}": pv.integer(0, 9)})
        assert files._IDLE


def test_what_holds_a_database_is_caught(tmp_path: Path) -> None:
    path = str(tmp_path / "t.duckdb")
    duckdb.connect(path).close()
    with glance() as connection:
        files.attached(connection, files.DuckDBFile(path, "t", "main"), "source")
        with pytest.raises(duckdb.Error):
            duckdb.connect(path)


FORKING = """
import os, sys
from privet.engines.duckdb import files

def threads():
    return len(os.listdir("/proc/self/task"))

def look():
    with files.glance() as connection, files.every_core(connection):
        assert files.query(connection, "SELECT sum(i) FROM range(500_000) AS r(i)")
        if sys.argv[1] == "many":
            connection.execute("SET async_threads = 2")
        return connection

alone = threads()
mine = look()
assert threads() == alone, "no threads"
child = os.fork()
if child == 0:
    assert look() is not mine
    sys.exit(7)  # as an interpreter ends: what is the parent's is destroyed too
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert look() is mine
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the threads of a process are counted in /proc")
def test_a_fork_neither_uses_nor_waits_for_it() -> None:
    def run(how: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", FORKING, how], capture_output=True, text=True, timeout=120)

    kept = run("none")
    assert (kept.returncode, kept.stderr) == (0, "")
    assert "no threads" in run("many").stderr


def test_a_long_look_uses_every_core() -> None:
    with glance() as connection:
        alone = query(connection, "SELECT current_setting('threads')")
        with every_core(connection), duckdb.connect() as usual:
            setting = "SELECT current_setting('threads')"
            assert query(connection, setting) == query(usual, setting)
        assert query(connection, setting) == alone == [(1,)]
