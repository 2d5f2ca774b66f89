"""Postgres as an engine: what comes over the wire, what goes wrong, and what is refused before anybody pays."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from tests import exactly, in_postgres
from tests.engines.canaries import COLUMNS, MARKS, NUMBER, SMALL, TEXT, ask_everything

import privet as pv
from privet.engines.base import FAILED
from privet.engines.postgres import addresses, connections
from privet.engines.postgres.dialect import PostgresDialect
from privet.engines.postgres.engine import Postgres
from privet.errors import NoAnswer, QueryError, SourceError, UserError
from privet.planner import plan
from privet.privacy.adjacency import each_row, person
from privet.tables import schema as declared
from privet.tables.expressions.fluent import col
from privet.tables.operators import Scan
from privet.tables.relation import Table
from privet.tables.statement import Rows, Statement, Unbounded

AGES = {"age": declared.integer(0, 110)}
x = col("x")


@pytest.fixture(autouse=True)
def home(server: str) -> Iterator[str]:
    with in_postgres.at(server):
        yield server


def people(server: str, *, name: str = "people", **options: Any) -> Table:
    """Three people with two rows each, and one more."""
    rows = pa.table({"id": [1, 1, 2, 2, 3, 3, 4], "age": [20, 21, 30, 31, 40, 41, 50]})
    in_postgres.execute(f'DROP TABLE IF EXISTS "{name}" CASCADE')
    in_postgres.written(name, rows)
    return pv.table(name, f"{server}#{name}", protect=person("id", max_rows=2), columns=AGES, **options)


def engine_of(table: Table, **options: Any) -> Postgres:
    return Postgres({table.name: (table.schema, table.source)}, salt=b"salt", **options)


def counting(table: Table) -> Statement:
    return Statement(Scan(table.schema), (), Unbounded(), (Rows(),))


def slow(server: str, seconds: float, address: str = "") -> Table:
    """A view whose row takes its time to be read."""
    in_postgres.execute(
        "DROP VIEW IF EXISTS slow", "DROP TABLE IF EXISTS pace", f"CREATE TABLE pace AS SELECT {seconds} AS seconds",
        "CREATE VIEW slow AS SELECT 7 AS age WHERE (SELECT pg_sleep(seconds) IS NOT NULL FROM pace)",
    )  # fmt: skip
    return pv.table("slow", address or f"{server}#slow", protect=each_row(), columns=AGES)


def active(server: str) -> list[int]:
    """The backends that are computing."""
    with psycopg.connect(server, autocommit=True) as steward:
        found = steward.execute(
            "SELECT pid FROM pg_stat_activity "
            "WHERE state = 'active' AND query LIKE '%slow%' AND pid <> pg_backend_pid()"
        )
        return [pid for (pid,) in found.fetchall()]


def wait_for(condition: Callable[[], Any]) -> Any:
    for _ in range(600):
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it never happened")


@contextmanager
def failing() -> Iterator[None]:
    with pytest.raises(NoAnswer) as caught:
        yield
    assert (caught.value.args, caught.value.__cause__, caught.value.__context__) == ((FAILED,), None, None)


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_backend_that_is_killed_while_it_counts(server: str) -> None:
    table = slow(server, 60)
    with engine_of(table) as engine, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(engine.answer, counting(table))
        (pid,) = wait_for(lambda: active(server))
        in_postgres.execute(f"SELECT pg_terminate_backend({pid})")
        with failing():
            raise answer.exception(30)  # type: ignore[misc]
        in_postgres.execute("UPDATE pace SET seconds = 0")
        engine.ready()
        assert engine.answer(counting(table)) == [[1]], "the next question works"


def test_a_session_pays_for_a_failure_and_goes_on(server: str) -> None:
    table = people(server)
    with pv.Session([table], budget=pv.PureDP(10**6), ledger=None) as session:
        question = table.agg(n=pv.count())
        assert session.release(question, epsilon=1000).values("n") == [7]
        in_postgres.execute("ALTER TABLE people RENAME age TO elder")
        with pytest.raises(SourceError, match=r"was changed in Postgres.*Nothing was spent"):
            session.release(table.agg(s=pv.sum("age")), epsilon=1000)
        assert session.spent == pv.PureDP(1000)
        in_postgres.execute("ALTER TABLE people RENAME elder TO age")
        connection = session.dataset.engine._home().idle[0]  # type: ignore[attr-defined]
        in_postgres.execute(f"SELECT pg_terminate_backend({connection.info.backend_pid})")
        assert session.release(table.agg(m=pv.max("age")), epsilon=1000), "a connection that was lost is replaced"
        in_postgres.execute("DROP VIEW IF EXISTS slow")


def test_a_time_limit_of_the_role_holds(server: str) -> None:
    limited = f"{server}&options=-cstatement_timeout%3D200"
    table = slow(server, 60, f"{limited}#slow")
    with engine_of(table) as engine:
        with failing():
            engine.answer(counting(table))
        assert not active(server)
        in_postgres.execute("UPDATE pace SET seconds = 0")
        assert engine.answer(counting(table)) == [[1]]


def test_a_server_that_stands_still(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.5)
    table = people(server, name="still")
    with engine_of(table) as engine:
        connection = engine._home().idle[0]
        connection.silence, pid = 0.5, connection.info.backend_pid
        os.kill(pid, signal.SIGSTOP)
        try:
            with failing():
                engine.answer(counting(table))
        finally:
            os.kill(pid, signal.SIGCONT)
        assert engine.answer(counting(table)) == [[7]]


def test_a_database_that_can_t_be_reached_costs_nothing(postgres: str) -> None:
    with in_postgres.at(postgres):
        table = people(postgres)
    with pv.Session([table], budget=pv.PureDP(10), ledger=None) as session:
        session.release(table.agg(n=pv.count()), epsilon=1)
        name = session.dataset.engine._home().idle[0].info.dbname  # type: ignore[attr-defined]
        in_postgres.execute(
            f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
        )
        with pytest.raises(SourceError, match="can't connect"):
            session.release(table.agg(s=pv.sum("age")), epsilon=1)
        assert session.spent == pv.PureDP(1)
        in_postgres.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
        assert session.release(table.agg(s=pv.sum("age")), epsilon=1)


def test_ctrl_c_ends_the_query_too(server: str) -> None:
    table = slow(server, 60)
    with engine_of(table) as engine:

        def press() -> None:
            wait_for(lambda: active(server))
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=press)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            engine.answer(counting(table))
        thread.join()
        assert wait_for(lambda: not active(server)), "the server stops too"
        in_postgres.execute("UPDATE pace SET seconds = 0")
        assert engine.answer(counting(table)) == [[1]]


def test_an_engine_that_stops_ends_what_is_running(server: str) -> None:
    table = slow(server, 60)
    engine = engine_of(table)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(_exits, engine, counting(table))
        wait_for(lambda: active(server))
        engine.stop()
        assert answer.result(30)
    engine.close()


def _exits(engine: Postgres, statement: Statement) -> bool:
    try:
        engine.answer(statement)
    except SystemExit:
        return True
    return False


def test_a_table_that_changes_is_noticed_under_a_lock(server: str) -> None:
    """What an engine was compiled for is compared in the transaction that reads: another type is a failure."""
    table = people(server, name="changing")
    with engine_of(table) as engine:
        in_postgres.execute("ALTER TABLE changing ALTER age TYPE text")
        with failing():
            engine.answer(counting(table))
        in_postgres.execute(
            "ALTER TABLE changing ADD more integer", "ALTER TABLE changing ALTER age TYPE bigint USING age::int"
        )
        assert engine.answer(counting(table)) == [[7]], "what nobody reads may change"


def test_threads_ask_at_the_same_time(server: str) -> None:
    table = people(server)
    ages = [
        Statement(Scan(table.schema), (), Unbounded(), (exactly.total(col("age").node, k, 1, 90),)) for k in range(20)
    ]
    expected = [[[sum(min(max(age - k, 0), 90) for age in (20, 21, 30, 31, 40, 41, 50))]] for k in range(20)]
    with engine_of(table) as engine, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(engine.answer, ages)) == expected
        assert 1 <= len(engine._home().idle) <= 8
        assert not engine._home().running


def test_a_child_of_a_fork_has_connections_of_its_own(server: str) -> None:
    table = people(server)
    with engine_of(table) as engine:
        assert engine.answer(counting(table)) == [[7]]
        before = engine._home().idle[0].info.backend_pid
        child = os.fork()
        if child == 0:  # pragma: no cover
            code = 1
            with suppress(BaseException):
                engine.ready()
                mine = engine._home().idle[0].info.backend_pid
                code = 0 if engine.answer(counting(table)) == [[7]] and mine != before else 2
                engine.close()
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert engine.answer(counting(table)) == [[7]]
        assert engine._home().idle[0].info.backend_pid == before


# --- nothing but integers leaves ------------------------------------------------------------------


@contextmanager
def tapped(server: str, folder: Path) -> Iterator[tuple[str, bytearray]]:
    """The address of a relay to the server, and all that the server sends through it."""
    there = re.search(r"host=([^&#]*)", server)
    assert there is not None
    heard, threads, ends = bytearray(), [], []
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / ".s.PGSQL.5432"))
    listening.listen()

    def relay(source: socket.socket, target: socket.socket, keep: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if keep:
                    heard.extend(data)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(f"{there[1]}/.s.PGSQL.5432")
                ends.extend([client, upstream])
                for pair in ((client, upstream, False), (upstream, client, True)):
                    threads.append(threading.Thread(target=relay, args=pair, daemon=True))
                    threads[-1].start()

    threads.append(threading.Thread(target=accept, daemon=True))
    threads[0].start()
    try:
        yield server.replace(there[1], str(folder)), heard
    finally:
        for end in (listening, *ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(10)
        for end in (listening, *ends):
            end.close()


def canaries(server: str) -> None:
    in_postgres.execute(
        "DROP TABLE IF EXISTS canaries",
        "CREATE TABLE canaries (id text, region text, name text, n bigint, share float8, price numeric(12,2), "
        "day date, seen timestamp)",
        f"INSERT INTO canaries SELECT '{TEXT}' || i % 9, CASE WHEN i % 3 = 0 THEN 'north' ELSE '{TEXT}' END, '{TEXT}', "
        f"{NUMBER}, {SMALL}, {NUMBER}, '2025-02-17', '2025-02-17 13:59:47.618034' FROM generate_series(1, 40) AS i",
    )


def test_no_cell_comes_over_the_wire_or_into_the_log(server: str) -> None:
    canaries(server)
    in_postgres.execute(
        "ALTER SYSTEM SET log_statement = 'all'", "ALTER SYSTEM SET log_min_error_statement = 'debug1'",
        "ALTER SYSTEM SET log_parameter_max_length = -1", "ALTER SYSTEM SET log_error_verbosity = 'verbose'",
        "SELECT pg_reload_conf()",
    )  # fmt: skip
    folder = Path("/tmp") / f"tap{os.getpid()}"  # the path of a socket is short
    folder.mkdir()
    log = Path(re.search(r"host=([^&#]*)", server)[1]) / "log"  # type: ignore[index]
    start = log.stat().st_size
    try:
        with tapped(server, folder) as (address, heard):
            table = pv.table("canaries", f"{address}#canaries", protect=person("id", max_rows=2), columns=COLUMNS)
            with pv.Session([table], budget=pv.PureDP(100), ledger=None) as session:
                ask_everything(session.tables["canaries"], session)
            said = bytes(heard)
            assert b"canaries" in said, "the relay hears what the server sends"
            assert [mark for mark in MARKS if mark.encode() in said] == []
            logged = log.read_bytes()[start:]
            assert b"hash_record_extended" in logged, "the log has our statements"
            assert [mark for mark in MARKS if mark.encode() in logged] == []
            with psycopg.connect(address) as plain:  # what would be seen if a row left
                plain.execute("SELECT * FROM canaries LIMIT 1").fetchall()
            assert all(mark.encode() in bytes(heard) for mark in MARKS[:3])
    finally:
        in_postgres.execute("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def test_an_error_of_a_view_says_nothing(server: str) -> None:
    in_postgres.execute(
        "DROP TABLE IF EXISTS raw CASCADE", f"CREATE TABLE raw AS SELECT 1 AS id, '{TEXT}'::text AS age",
        "CREATE VIEW failing AS SELECT id, age::bigint AS age FROM raw",
    )  # fmt: skip
    table = pv.table("failing", f"{server}#failing", protect=person("id", max_rows=1), columns=AGES)
    statement = Statement(Scan(table.schema), (), Unbounded(), (exactly.total(col("age").node, 0, 1, 110),))
    with engine_of(table) as engine, pytest.raises(NoAnswer) as caught:
        engine.answer(statement)
    assert TEXT not in "".join(traceback.format_exception(caught.value))


def test_nothing_is_written(server: str) -> None:
    in_postgres.execute(
        "DROP TABLE IF EXISTS traces CASCADE", "CREATE TABLE traces (x integer)",
        "CREATE OR REPLACE FUNCTION leave_trace() RETURNS integer LANGUAGE sql VOLATILE "
        "AS 'INSERT INTO public.traces VALUES (1) RETURNING 1'",
        "CREATE VIEW writing AS SELECT public.leave_trace() AS age",
    )  # fmt: skip
    table = pv.table("writing", f"{server}#writing", protect=each_row(), columns=AGES)
    statement = Statement(Scan(table.schema), (), Unbounded(), (exactly.total(col("age").node, 0, 1, 110),))
    with engine_of(table) as engine, failing():
        engine.answer(statement)
    with psycopg.connect(server) as steward:
        assert steward.execute("SELECT count(*) FROM traces").fetchall() == [(0,)]


def test_others_can_t_take_the_place_of_functions(postgres: str) -> None:
    """A schema on the search path has an operator of its own, and other settings are those of the database."""
    with in_postgres.at(postgres):
        table = people(postgres)
        with psycopg.connect(postgres) as steward:
            name = steward.info.dbname
        in_postgres.execute(
            "CREATE SCHEMA evil",
            "CREATE FUNCTION evil.never(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
            "CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.never)",
            f"ALTER DATABASE {name} SET search_path = evil, pg_catalog",
            f"ALTER DATABASE {name} SET TimeZone = 'Asia/Kathmandu'",
            f"ALTER DATABASE {name} SET DateStyle = 'SQL, DMY'",
        )  # fmt: skip
        asked = plan(table.where(col("age") > 25).agg(n=pv.count_people(), s=pv.sum("age")), epsilon=1)
        found = []
        for source in (
            table.source,
            pv.table("people", f"{postgres}#public.people", protect=table.schema.protect, columns=AGES).source,
        ):
            with Postgres({"people": (table.schema, source)}, salt=b"salt") as engine:
                found.append([engine.answer(s) for s in asked.statements()])
        assert found[0] == found[1]
        in_postgres.execute(f"ALTER DATABASE {name} RESET ALL")
        with engine_of(table) as engine:
            assert [engine.answer(s) for s in asked.statements()] == found[0]


# --- types and names ------------------------------------------------------------------------------


def test_types_of_postgres(server: str) -> None:
    in_postgres.execute(
        "DROP TABLE IF EXISTS kinds", "DROP DOMAIN IF EXISTS percent CASCADE", "DROP TYPE IF EXISTS side CASCADE",
        "CREATE TYPE side AS ENUM ('b', 'a')", "CREATE DOMAIN percent AS smallint CHECK (VALUE BETWEEN 0 AND 100)",
        "CREATE TABLE kinds (id numeric, padded character(6), side side, share percent, price numeric, "
        "code varchar(3), at timestamp(3) with time zone, key uuid, list integer[], more json)",
        "INSERT INTO kinds SELECT i, 'ab', CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END::side, i, i + 0.5, 'x', "
        "'2020-01-01 23:30:00-05', gen_random_uuid(), ARRAY[1], '{}' FROM generate_series(1, 5) AS i",
        "INSERT INTO kinds VALUES (9007199254740993, 'AB'), (9007199254740992.00, 'ab '), ('NaN', 'ab'), (1.00, 'ab')",
    )  # fmt: skip
    columns = {
        "padded": declared.keys("ab", "AB"), "side": declared.keys("a", "b"), "share": declared.integer(0, 100),
        "price": declared.number(0, 10, step="0.5"), "at": declared.date("2020-01-01", "2020-01-02"),
    }  # fmt: skip
    table = pv.table("kinds", f"{server}#kinds", protect=person("id", max_rows=9), columns=columns)

    def counted(query: Any) -> Any:
        asked = plan(query, epsilon=1)
        with engine_of(table) as engine:
            return [[v[0] for v in part] for part in asked.coordinates([engine.answer(s) for s in asked.statements()])]

    assert counted(table.group_by("padded").agg(n=pv.count())) == [[7, 1]], (
        "blanks at the end are not there; NaN is nobody"
    )
    assert counted(table.group_by("side").agg(n=pv.count())) == [[2, 3]]
    assert counted(table.agg(n=pv.count_people())) == [[7]], "1 and 1.00 are one person, large numbers are not"
    assert counted(table.where(col("at") == date(2020, 1, 2)).agg(n=pv.count())) == [[5]]
    assert counted(table.where(col("price") >= 3).agg(n=pv.count())) == [[3]]
    for name in ("list", "more"):
        with pytest.raises(SourceError, match=r"but contains (integer|json)"):
            pv.table("kinds", f"{server}#kinds", protect=each_row(), columns={name: declared.keys("a")})


def test_columns_are_computed_once(server: str) -> None:
    """Each layer uses the one below twice. Postgres would write it twice into each, and so on: 2^n times."""
    table = people(server)

    def plan_of(depth: int) -> int:
        relation: Any = table
        for _ in range(depth):
            relation = relation.with_columns(age=(col("age") + col("age")).clip(0, 110))
        (statement,) = plan(relation.agg(s=pv.sum("age")), epsilon=1).statements()
        with engine_of(table) as engine:
            program = engine.compile(statement)
            with psycopg.connect(server, cursor_factory=psycopg.RawCursor) as steward:
                rows = steward.execute(f"EXPLAIN (VERBOSE) {program.sql}".encode(), program.context.parameters)
                return sum(len(row[0]) for row in rows.fetchall())

    assert plan_of(8) < 3 * plan_of(4)


def bins_of(table: Any, many: int, shift: float) -> Any:
    """So many conditions over 1,000 bins; each has edges of its own if they are shifted."""
    edges = [[k + shift * i for k in range(1001)] for i in range(many)]
    conditions = [pv.bins(col("age") + i, each) != f"[{each[0]:g}, {each[1]:g})" for i, each in enumerate(edges)]
    return table.where(*conditions).agg(n=pv.count())


def test_more_texts_than_a_statement_can_have_cost_nothing(server: str) -> None:
    table = people(server)
    with pv.Session([table], budget=pv.PureDP(10), ledger=None) as session:
        what = r"can't compute this: it has 66,000 texts, such as names of bins, and a statement can have 64,511"
        with pytest.raises(QueryError, match=what):
            session.release(bins_of(session.tables["people"], 66, 0.01), epsilon=1)
        assert session.spent == pv.PureDP.ZERO
        for many, shift in ((66, 0), (64, 0.01)):
            session.release(bins_of(session.tables["people"], many, shift), epsilon=1)


def test_columns_of_public_tables_are_parameters_too(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresDialect, "most_parameters", 2_600)
    rows = pa.table({"age": [20], **{f"c{i}": [i] for i in range(499)}})
    wide = pv.public_table("wide", rows, key="age")
    with pv.Session([people(server)], public=[wide], budget=pv.PureDP(10), ledger=None) as session:
        joined = session.tables["people"].join(wide, on="age")
        session.release(bins_of(joined, 2, 0.01), epsilon=1)
        with pytest.raises(QueryError, match="it has 3,500 texts"):
            session.release(bins_of(joined, 3, 0.01), epsilon=1)


POLICED = """
    CREATE TABLE refused (id int, age int); ALTER TABLE refused ENABLE ROW LEVEL SECURITY;
    CREATE POLICY older ON refused USING (age > 3); GRANT SELECT ON refused TO watched;
    GRANT USAGE ON SCHEMA public TO watched
"""


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        (POLICED, "row-level security"),
        ("CREATE TABLE refused (id int, age int)", "permission denied"),
    ],
    ids=["policies", "grants"],
)  # fmt: skip
def test_what_this_user_can_t_read_is_said_to_the_steward(postgres: str, sql: str, what: str) -> None:
    with in_postgres.at(postgres):
        in_postgres.execute("DROP ROLE IF EXISTS watched", "CREATE ROLE watched LOGIN")
        try:
            in_postgres.execute(*sql.split(";"))
            address = postgres.replace("postgres:@", "watched@")
            with pytest.raises(SourceError, match=what):
                pv.table("refused", f"{address}#refused", protect=person("id", max_rows=1), columns=AGES)
        finally:
            in_postgres.execute("DROP OWNED BY watched", "DROP ROLE watched")


def test_a_table_that_is_not_there(server: str) -> None:
    people(server)
    with pytest.raises(SourceError, match=r"there is no table public.poeple.*Did you mean 'people'\?"):
        pv.table("poeple", server, protect=each_row(), columns=AGES)
    with pytest.raises(SourceError, match="there is no column 'agee'"):
        pv.table("people", server, protect=each_row(), columns={"agee": declared.integer(0, 9)})
    with pytest.raises(SourceError, match="is declared with 3 rows, but has 7"):
        pv.table("people", server, protect=each_row(), columns=AGES, adjacency="replace", rows=3)


def test_tables_of_one_dataset_are_in_one_database(server: str) -> None:
    table = people(server)
    frame = pv.table("other", pa.table({"id": [1], "age": [3]}), protect=person("id", max_rows=1), columns=AGES)
    with pytest.raises(UserError, match="reads private tables of one database"):
        pv.Session([table, frame], budget=pv.PureDP(1), ledger=None, engine="postgres").release(
            table.agg(n=pv.count()), epsilon=1
        )


# --- addresses ------------------------------------------------------------------------------------

SECRET = "hush-hush-4711"


def test_a_password_is_nowhere(server: str, tmp_path: Path) -> None:
    people(server)
    address = server.replace("postgres:@", f"postgres:{SECRET}@")
    ledger = tmp_path / "people.ledger"
    table = pv.table("people", f"{address}#people", protect=person("id", max_rows=2), columns=AGES)
    texts = [repr(table), repr(table.source), str(table.source), repr(addresses.parsed(address))]
    with pv.Session([table], name="people", budget=pv.PureDP(10), ledger=ledger) as session:
        release = session.release(table.agg(n=pv.count()), epsilon=1)
        texts += [str(release), str(release.certificate), repr(session), repr(session.dataset.engine)]
    wrong = [
        f"{address}#nowhere",
        address.replace("/postgres?", "/missing?"),
        f"{address}&sslmode=odd",
        f"{address}#a.b.c",
    ]
    wrong += [
        address.replace("host=", "host=/nowhere"),
        f"postgresql://me:{SECRET}@@db/x",
        f"postgresql://me:{SECRET}#a@db/x",
    ]
    for each in wrong:
        with pytest.raises(UserError) as caught:
            pv.table("people", each, protect=each_row(), columns=AGES)
        texts.append("".join(traceback.format_exception(caught.value)[-3:]) + str(caught.value))
    assert not [text for text in texts if SECRET in text.replace(f"{SECRET!r}", "")]
    assert SECRET.encode() not in ledger.read_bytes()
    assert SECRET not in addresses.parsed(address).plain


def test_the_same_people_under_another_name(server: str, tmp_path: Path) -> None:
    """By the server and not by how it is reached: through a view, a partition, and under another address."""
    people(server)
    in_postgres.execute(
        "DROP TABLE IF EXISTS parted CASCADE", "CREATE VIEW grown AS SELECT * FROM people WHERE age > 25",
        "CREATE TABLE parted (id bigint, age bigint) PARTITION BY LIST (id)",
        "CREATE TABLE part1 PARTITION OF parted FOR VALUES IN (1)",
    )  # fmt: skip

    def opened(name: str, address: str, dataset: str) -> None:
        table = pv.table(name, address, protect=person("id", max_rows=2), columns=AGES)
        with pv.Session([table], name=dataset, budget=pv.PureDP(10), ledger=tmp_path / "l.ledger") as session:
            session.release(table.agg(n=pv.count()), epsilon=1)

    opened("people", server, "first")
    opened("parted", server, "second")
    for name, address in (("grown", server), ("people", f"{server}&application_name=other"), ("part1", server)):
        with pytest.raises(UserError, match="same people"):
            opened(name, address, "third")


def test_public_tables_are_sent_along(server: str) -> None:
    table = people(server)
    rows = pa.table({"age": [20, 30, 41], "w": [1.5, 2.5, None], "who": ["a", None, "b'"], "ok": [True, False, None]})
    extra = pv.public_table("extra", rows, key="age")
    joined = table.join(extra, on="age")
    with pv.Session([table], public=[extra], budget=pv.PureDP(10**7), ledger=None) as session:
        answer = session.release(joined.agg(n=pv.count(), s=pv.sum("w")), epsilon=10**6)
        assert [round(answer.values(name)[0]) for name in ("n", "s")] == [3, 4]
        by = session.release(joined.group_by("who").agg(n=pv.count()), epsilon=10**6)
        assert by.values("n") == [1, 1]


def test_a_hash_of_fewer_bits_is_still_a_hash() -> None:
    """Words are not negative: % and >> of negative integers would leave the range of groups."""
    assert PostgresDialect().hashed(2**63, ["u"]).endswith(f"& {2**63 - 1})")
    assert "(-9223372036854775808)::bigint" in PostgresDialect().hashed(2**63, ["u"])
