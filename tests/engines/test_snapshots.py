"""All looks of one question see the tables in one state, whoever changes them in between."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import in_postgres

import privet as pv
from privet.engines import unchanged
from privet.engines.base import FAILED, Looks
from privet.engines.registry import engine_class
from privet.errors import NoAnswer
from privet.planner import plan
from privet.planner.choosing import GroupedCodes
from privet.tables.relation import Table
from privet.tables.statement import Buckets, Statement

TOP = 2**20
HIGH = TOP - 100  # inside of a bucket
COLUMNS = {"v": pv.integer(0, TOP), "town": pv.text()}
ROWS = pa.table({"id": list(range(21)), "v": [0] + [HIGH] * 20, "town": ["Ulm"] * 21})
"""The first row moves to the others."""
MOVED = pa.table({**{name: ROWS[name] for name in ROWS.column_names}, "v": [HIGH] * 21})
FILES = ["duckdb", "reference"]
TICK = 40_000_000
"""Nanoseconds: longer than a look at these rows takes, and as coarse as Privet assumes."""


@pytest.fixture
def moving(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Table, Callable[[], None]]]:
    """An engine's name, a table that it reads, and what moves the first row."""
    name, options = request.param, dict[str, Any]({"protect": pv.person("id", max_rows=1), "columns": COLUMNS})
    if name != "postgres":
        path = tmp_path / "t.parquet"
        pq.write_table(ROWS, path)

        def replaced() -> None:
            pq.write_table(MOVED, tmp_path / "new.parquet")
            (tmp_path / "new.parquet").replace(path)

        source = f"{request.getfixturevalue('spark_server').address}#{path}" if name == "spark" else path
        yield name, pv.table("t", source, **options), replaced
        return
    server: str = request.getfixturevalue("server")
    with in_postgres.at(server), psycopg.connect(server, autocommit=True) as other:
        in_postgres.execute("DROP TABLE IF EXISTS moving")
        in_postgres.written("moving", ROWS)
        yield name, pv.table("t", f"{server}#moving", **options), lambda: _move(other)


def _move(other: Any) -> None:
    """Somebody else, who has a connection of their own, moves a row and adds one."""
    other.execute(f"UPDATE moving SET v = {HIGH} WHERE id = 0")
    other.execute("INSERT INTO moving SELECT max(id) + 1, 0, 'Ulm' FROM moving")


every = pytest.mark.parametrize("moving", ["postgres", "spark", *FILES], indirect=True)
without_transactions = pytest.mark.parametrize("moving", ["spark", *FILES], indirect=True)
in_files = pytest.mark.parametrize("moving", FILES, indirect=True)
in_postgres_alone = pytest.mark.parametrize("moving", ["postgres"], indirect=True)


def opened(name: str, table: Table) -> Any:
    return engine_class(name)({"t": (table.schema, table.source)}, {}, salt=b"salt")


def codes_of(table: Table) -> Statement:
    return plan(table.agg(m=pv.median("v", interval=False)), epsilon=1).statements()[0]


def rows_known(looks: Looks, statement: Statement, change: Callable[[], None]) -> int:
    """How many rows a quantile would take into account, if the table changes after its first look."""
    codes = GroupedCodes(statement, looks.histograms)
    change()
    codes.look_into_around([[HIGH]])
    return codes.counts(0).total


@every
def test_a_row_that_moves_between_two_looks_counts_once(moving: tuple[str, Table, Callable[[], None]]) -> None:
    name, table, move = moving
    with opened(name, table) as engine, engine.snapshot() as looks:
        if name == "postgres":
            assert rows_known(looks, codes_of(table), move) == 21
        else:
            with pytest.raises(NoAnswer, match=FAILED):
                rows_known(looks, codes_of(table), move)
            with pytest.raises(NoAnswer, match=FAILED):  # also where the change can't be seen
                looks.histograms(codes_of(table), Buckets(0))


@every
def test_without_a_snapshot_it_counts_twice(moving: tuple[str, Table, Callable[[], None]]) -> None:
    """The attack, on looks that don't belong together."""
    name, table, move = moving
    with opened(name, table) as engine:
        assert rows_known(engine, codes_of(table), move) == 22


class Interfering:
    """An engine, or looks, whose table is changed after each look."""

    def __init__(self, inner: Any, change: Callable[[], None]) -> None:
        self._inner, self._change, self.looks = inner, change, 0

    @contextmanager
    def snapshot(self) -> Iterator[Interfering]:
        with self._inner.snapshot() as looks:
            within = Interfering(looks, self._change)
            yield within
        self.looks += within.looks

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._inner, name)
        if name not in ("answer", "histograms", "holders"):
            return real

        def look(*asked: Any) -> Any:
            found = real(*asked)
            self._change()
            self.looks += 1
            return found

        return look


def asked(table: Table, move: Callable[[], None]) -> tuple[pv.Session, Interfering]:
    session = pv.Session([table], budget=pv.ApproxDP(10**9, "1/2"), ledger=None)
    engine: Any = Interfering(session.dataset.engine, move)
    session.dataset.engine = engine
    return session, engine


def batch_of(table: Table) -> dict[str, Any]:
    return {
        "n": table.agg(n=pv.count()),
        "low": table.where(pv.col("v") < TOP // 2).agg(n=pv.count()),
        "towns": table.group_by("town").agg(n=pv.count(), s=pv.sum("v")),
        "middle": table.agg(m=pv.quantiles("v", [0.02, 0.5, 0.9])),
    }


@in_postgres_alone
def test_a_batch_sees_one_state(moving: tuple[str, Table, Callable[[], None]]) -> None:
    """Keys that are found, the sums of their groups, all looks of a quantile, and all questions of a batch."""
    _, table, move = moving
    session, engine = asked(table, move)
    with session:
        first = session.release_all(batch_of(table), epsilon=10**6, delta="1/4")
        assert engine.looks >= 5
        assert (first["n"].values("n"), first["low"].values("n")) == ([21], [1])
        assert first["towns"].values("n") == [21]
        assert first["towns"].values("s") == [pytest.approx(20 * HIGH, rel=1e-4)]
        before = engine.looks
        again = session.release(table.agg(n=pv.count()), epsilon=10**6, fresh=True)
        assert again.values("n") == [21 + before], "the next question sees what was changed"


@without_transactions
def test_a_file_that_is_replaced_while_a_question_looks(moving: tuple[str, Table, Callable[[], None]]) -> None:
    _, table, move = moving
    session, engine = asked(table, move)
    with session:
        with pytest.raises(NoAnswer, match="It was paid for, and nothing was released"):
            session.release(table.agg(m=pv.median("v")), epsilon=1000)
        assert engine.looks == 0, "the second look failed"
        assert session.release(table.agg(n=pv.count()), epsilon=1000).values("n") == [21], "the next question works"


@in_files
def test_a_file_that_comes_back_is_not_read_again(moving: tuple[str, Table, Callable[[], None]]) -> None:
    name, table, _ = moving
    (path,) = map(Path, table.source.files())
    with opened(name, table) as engine, engine.snapshot() as looks:
        looks.histograms(codes_of(table), Buckets(0))
        away = path.rename(path.with_suffix(".away"))
        for _ in range(2):
            with pytest.raises(NoAnswer, match=FAILED):
                looks.histograms(codes_of(table), Buckets(0))
            if away.exists():
                away.rename(path)
        assert engine.histograms(codes_of(table), Buckets(0)) == [{0: 1, HIGH: 20}]


@in_files
def test_a_file_that_changes_twice_within_a_tick_of_the_clock(
    moving: tuple[str, Table, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many systems count the time of a file in milliseconds: two writes at once look like one."""
    name, table, _ = moving
    (path,) = map(Path, table.source.files())
    plain = dict[str, Any](use_dictionary=False, compression="none", write_statistics=False)
    both = []
    for rows in (ROWS, MOVED):
        pq.write_table(rows, path, **plain)
        both.append(path.read_bytes())
    assert len(both[0]) == len(both[1])
    real = unchanged.states

    def coarse(paths: Sequence[str]) -> list[tuple[int, ...]]:
        return [(*which, changed // TICK * TICK) for *which, changed in real(paths)]

    with opened(name, table) as engine:
        monkeypatch.setattr(unchanged, "states", coarse)
        begin = (time.time_ns() // TICK + 1) * TICK
        time.sleep((begin - time.time_ns()) / 10**9)
        path.write_bytes(both[0])  # right after the clock has ticked
        with engine.snapshot() as looks:
            codes = GroupedCodes(codes_of(table), looks.histograms)
            path.write_bytes(both[1])
            with pytest.raises(NoAnswer, match=FAILED):
                codes.look_into_around([[HIGH]])


@in_postgres_alone
def test_nothing_is_asked_after_a_look_has_failed(moving: tuple[str, Table, Callable[[], None]]) -> None:
    name, table, _ = moving
    statement = codes_of(table)
    lockers = "FROM pg_locks WHERE relation = 'moving'::regclass AND pid <> pg_backend_pid()"
    with opened(name, table) as engine:
        with engine.snapshot() as looks:
            looks.histograms(statement, Buckets(0))
            in_postgres.execute(f"SELECT pg_terminate_backend(pid, 5000) {lockers}")
            for _ in range(2):
                with pytest.raises(NoAnswer, match=FAILED):
                    looks.histograms(statement, Buckets(0))
        assert engine._home().idle == [], "whoever catches a failure inside does not get the connection back"
        assert sum(engine.histograms(statement, Buckets(0))[0].values()) == 21


@in_postgres_alone
def test_a_child_of_a_fork_leaves_the_transaction_to_its_parent(
    moving: tuple[str, Table, Callable[[], None]],
) -> None:
    """A signal handler may fork between two looks, and its child may come back from it."""
    name, table, move = moving
    statement, everything = codes_of(table), Buckets(0)
    with opened(name, table) as engine:
        for child_looks in (False, True):
            child, code = -1, 1
            try:
                with engine.snapshot() as looks:
                    known = looks.histograms(statement, everything)
                    move()
                    child = os.fork()
                    if child == 0 and child_looks:  # pragma: no cover
                        looks.histograms(statement, everything)
                    elif child:
                        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                        assert looks.histograms(statement, everything) == known
                code = 0 if not child_looks else 2
            except NoAnswer:
                code = 0 if child_looks else 3
            finally:
                if child == 0:  # pragma: no cover
                    os._exit(code)
            assert code == (2 if child_looks else 0)
