"""A question that takes long, on each engine that has statements: its progress on a real terminal, and a real Ctrl-C.

The statement is made endless in place of ours; everything else is as it is. Afterwards nothing runs in the engine.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import in_postgres, in_spark
from tests.cli.test_interrupts import HERE, STAYS
from tests.movers import reachable
from tests.spark import QUICK

from privet.engines.registry import ENGINES
from privet.errors import UserError
from privet.ledger import open_ledger

ENDLESS = {
    "duckdb": "SELECT sum(hash(a.i, b.i) % 7) FROM range(10000000) a(i), range(10000000) b(i)",
    "postgres": "SELECT sum(a.i % 7 + b.i) FROM generate_series(1, 100000) a(i), generate_series(1, 100000) b(i)",
    "spark": "SELECT sum(hash(a.id, b.id) % 7) FROM range(10000000) a CROSS JOIN range(10000000) b",
}
TELLS_A_SHARE = {"duckdb"}
PROGRAM = """
import os
os.close(os.open(os.ttyname(0), os.O_RDWR))  # the terminal of this session: its Ctrl-C is ours
from privet.engines.sql.engine import SQLLooks
from privet.engines.sql.text import Context
from privet.__main__ import main
import sys

real, endless = SQLLooks._asked, sys.argv.pop(1)
SQLLooks._asked = lambda self, sql, context: real(self, endless, Context(self._engine._dialect))
main()
"""
POLICY = """
ledger = "people.ledger"

[datasets.people]
budget = {{ epsilon = 3 }}
adjacency = "add/remove"
analysts = {{ press = {{ epsilon = 1 }} }}

[datasets.people.tables.people]
source = "{source}"
protect = {{ person = "person_id", max_rows = 1 }}
columns = {{ age = {{ integer = [0, 110] }} }}
"""
QUESTION = "SELECT COUNT(*) AS n FROM people"


def test_every_engine_with_statements_is_here() -> None:
    assert set(ENDLESS) == set(ENGINES) - {"reference"}


@pytest.fixture(params=ENDLESS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An engine by name, and a folder with a policy of a table there."""
    rows = pa.table({"person_id": range(50), "age": [40] * 50})
    with reachable(request.param, request) as name:
        source = "people.parquet"
        if name == "postgres":
            in_postgres.execute("DROP TABLE IF EXISTS people")
            in_postgres.written("people", rows)
            source = f"{request.getfixturevalue('server')}#people"
        elif name == "spark":
            source = f"{request.getfixturevalue('spark_server').address}#{in_spark.written(rows)}"
        else:
            pq.write_table(rows, tmp_path / source)
        (tmp_path / "privet.toml").write_text(POLICY.format(source=source), encoding="utf-8")
        open_ledger(tmp_path / "people.ledger").close()  # so that the debit is not rehearsed
        yield name, tmp_path


def at_a_terminal(
    name: str, folder: Path, until: Callable[[str], bool], *options: str, **environment: str
) -> tuple[int, str]:
    """The code of a command and all that a terminal shows of it; Ctrl-C is pressed once `until` holds."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, ENDLESS[name], "query", QUESTION, "--epsilon", "0.25", *options]
    child = subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**HERE, **environment},
    )  # fmt: skip
    os.close(theirs)
    shown, pressed, end = "", False, time.monotonic() + 100
    try:
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the terminal is closed
                    break
                shown += part.decode()
            if not pressed and until(shown):
                pressed = True
                os.write(ours, b"\x03")
        return child.wait(timeout=10), shown
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def entries(folder: Path) -> list[str]:
    with closing(open_ledger(folder / "people.ledger")) as ledger, suppress(UserError):  # not recorded yet
        return [str(entry.kind) for entry in ledger.history("people")][-2:]
    return []


def test_a_long_question_shows_its_progress_and_ends_with_ctrl_c(
    place: tuple[str, Path], request: pytest.FixtureRequest
) -> None:
    name, folder = place
    form = r"asking \[#* *\] \d+ %, \d:\d\d" if name in TELLS_A_SHARE else r"asking, \d:\d\d"
    code, shown = at_a_terminal(name, folder, lambda shown: re.search(form, shown) is not None)
    assert re.search(form, shown), shown
    assert code == 130, shown
    assert shown.replace("\r\n", "\n").endswith("\r\x1b[K" + STAYS), shown
    assert entries(folder) == ["reserved", "interrupted"]
    if name == "postgres":
        assert nothing_runs(request.getfixturevalue("server"))


def nothing_runs(server: str) -> bool:
    """Whether the statement ends in Postgres itself, within some seconds."""
    import psycopg

    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%generate_series%' AND state = 'active'"
    with psycopg.connect(server, autocommit=True) as connection:
        for _ in range(50):
            ((count,),) = connection.execute(f"{running} AND pid <> pg_backend_pid()").fetchall()
            if not count:
                return True
            time.sleep(0.1)
    return False


# --- a Spark that Privet starts -------------------------------------------------------------------


@pytest.fixture
def started_here(java: None, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a command whose table is in a Spark that it starts itself; at the end none of it runs."""
    pq.write_table(pa.table({"person_id": range(50), "age": [40] * 50}), tmp_path / "people.parquet")
    (tmp_path / "privet.toml").write_text(POLICY.format(source=f"spark:{tmp_path}/people.parquet"), encoding="utf-8")
    open_ledger(tmp_path / "people.ledger").close()
    settings = {"spark.master": "local[1]", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    settings |= {"spark.driver.extraJavaOptions": " ".join([f"-Dderby.system.home={tmp_path}", *QUICK])}
    settings |= {"spark.sql.warehouse.dir": f"{tmp_path}/warehouse"}
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    yield {"SPARK_CONF_DIR": str(tmp_path), "SPARK_LOCAL_IP": "127.0.0.1"}
    for process in started(tmp_path):
        os.kill(process, signal.SIGKILL)


def started(folder: Path, what: bytes = b"") -> list[int]:
    """The processes that use this folder's configuration of Spark, with this in their commands; not Privet itself."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            ours = f"SPARK_CONF_DIR={folder}\0".encode() in (process / "environ").read_bytes()
            if ours and what in command and sys.executable.encode() not in command:
                found.append(int(process.name))
    return found


def ends(folder: Path) -> bool:
    """Whether all of Spark that was started ends, and stays so, within some seconds."""
    quiet = 0
    for _ in range(150):
        quiet = 0 if started(folder) else quiet + 1
        if quiet == 20:
            return True
        time.sleep(0.1)
    return False


def test_ctrl_c_is_ours_although_spark_was_started_here(started_here: dict[str, str], tmp_path: Path) -> None:
    form = r"asking, \d:\d\d"
    code, shown = at_a_terminal("spark", tmp_path, lambda shown: bool(re.search(form, shown)), **started_here)
    assert code == 130, shown
    assert shown.replace("\r\n", "\n").endswith("\r\x1b[K" + STAYS), shown
    assert entries(tmp_path) == ["reserved", "interrupted"]
    assert ends(tmp_path)


@pytest.mark.parametrize(
    ("program", "seconds"), [(b"bash", 0), (b"SparkSubmit", 0), (b"SparkSubmit", 1), (b"SparkSubmit", 2)]
)
def test_a_spark_that_was_being_started_ends_with_ctrl_c(
    started_here: dict[str, str], tmp_path: Path, program: bytes, seconds: int
) -> None:
    """Its Java would look for a folder that is gone, and then run for ever.

    There is no terminal here, because one that is closed ends Java too.
    """
    command = [sys.executable, "-m", "privet", "query", QUESTION, "--epsilon", "0.25"]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**HERE, **started_here})
    try:
        while not started(tmp_path, program):
            assert child.poll() is None
            time.sleep(0.01)
        time.sleep(seconds)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert (child.returncode, said) == (130, "interrupted; nothing was spent\n")
    assert entries(tmp_path) == []
    assert ends(tmp_path), "Java too"


def test_an_analyst_who_is_named_sees_no_progress(tmp_path: Path) -> None:
    pq.write_table(pa.table({"person_id": range(50), "age": [40] * 50}), tmp_path / "people.parquet")
    (tmp_path / "privet.toml").write_text(POLICY.format(source="people.parquet"), encoding="utf-8")
    open_ledger(tmp_path / "people.ledger").close()
    begun: list[float] = []

    def after_a_while(shown: str) -> bool:
        if not begun and entries(tmp_path)[-1:] == ["reserved"]:
            begun.append(time.monotonic())
        return bool(begun) and time.monotonic() > begun[0] + 4

    code, shown = at_a_terminal("duckdb", tmp_path, after_a_while, "--analyst", "press")
    assert (code, entries(tmp_path)) == (130, ["reserved", "interrupted"])
    assert "asking" not in shown
    assert shown.endswith(STAYS.replace("\n", "\r\n")), shown
