"""Spark as an engine: what is refused before anybody pays, what comes over the wire, and what its logs hold."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import exactly
from tests.engines.canaries import COLUMNS, MARKS, NUMBER, ask_everything, rows
from tests.relay import relayed
from tests.spark import QUICK, SparkServer

import privet as pv
from privet.engines.spark import addresses, sessions
from privet.engines.spark.dialect import SparkDialect
from privet.engines.spark.engine import Spark
from privet.engines.spark.settings import SETTINGS
from privet.engines.sql.text import Context, Layers
from privet.errors import SourceError, UserError
from privet.privacy.adjacency import each_row, person
from privet.tables import schema as declared
from privet.tables.expressions.fluent import col
from privet.tables.operators import Scan
from privet.tables.relation import Table
from privet.tables.statement import Rows, Statement, Unbounded

AGES = {"age": declared.integer(0, 110)}
ROWS = "VALUES (1, 20), (1, 21), (2, 30), (2, 31), (3, 40), (3, 41), (4, 50)"
_NUMBERS = count(1)


class Steward:
    """Somebody who may write: an ordinary session of the same Spark, with the server's settings."""

    def __init__(self, server: SparkServer) -> None:
        from pyspark.sql.connect.session import SparkSession

        self.server = server
        self.session = SparkSession(server.address)
        self.database = f"d{os.getpid()}_{next(_NUMBERS)}"
        self.run(f"CREATE DATABASE {self.database}", f"USE {self.database}")

    def run(self, *statements: str) -> None:
        for sql in statements:
            self.session.sql(sql).collect()

    def at(self, table: str) -> str:
        """The address of a table."""
        return f"{self.server.address}#{self.database}.{table}"

    def people(self, name: str = "people", **options: Any) -> Table:
        """Three people with two rows each, and one more."""
        self.run(f"CREATE TABLE {name} USING parquet AS SELECT * FROM ({ROWS}) AS t (id, age)")
        return pv.table(name, self.at(name), protect=person("id", max_rows=2), columns=AGES, **options)


@pytest.fixture(scope="module")
def steward(spark_server: SparkServer) -> Iterator[Steward]:
    made = Steward(spark_server)
    yield made
    made.run(f"DROP DATABASE {made.database} CASCADE")
    made.session.client.close()


def counting(table: Table) -> Statement:
    return Statement(Scan(table.schema), (), Unbounded(), (Rows(),))


def test_a_condition_in_parentheses_is_a_condition(steward: Steward) -> None:
    """Spark would read `(SELECT ...) WHERE (c1)` as an alias, and keep every row."""
    rows = "(SELECT * FROM VALUES (true), (false), (NULL) AS t (c1))"
    (row,) = steward.session.sql(Layers(Context(SparkDialect()), rows).select(["count(*) AS n"], "(c1)")).collect()
    assert row.n == 1


# --- the catalogue --------------------------------------------------------------------------------


def test_what_can_t_be_read_is_said_to_the_steward(steward: Steward, tmp_path: Path) -> None:
    steward.people("first")
    folder = tmp_path / "empty"
    folder.mkdir()
    steward.run(
        "CREATE VIEW viewed AS SELECT * FROM first", "CREATE TABLE rows_in_csv (id int, age int) USING csv",
        "CREATE TABLE rows_in_json (id int, age int) USING json", "CREATE TEMPORARY VIEW fleeting AS SELECT 1 AS age",
        "CREATE OR REPLACE GLOBAL TEMPORARY VIEW passing AS SELECT 1 AS age",
        "CREATE TABLE kinds (list array<int>, map map<int, int>, pair struct<a: int>, bytes binary, age int, "
        "span interval day to second) USING parquet",
    )  # fmt: skip
    copied = "Write its rows to a table of Parquet"
    for name, what in {
        "viewed": f"viewed of sc://.* is a view: .*{copied}",
        "rows_in_csv": f"is stored as csv.*{copied}",
        "rows_in_json": "is stored as json",
        "fleeting": "there is no table .*fleeting",
        "frist": r"there is no table .*frist.*Did you mean 'first'\? Write sc://127.0.0.1:\d+#d\w+\.first",
    }.items():
        with pytest.raises(SourceError, match=what):
            pv.table("t", steward.at(name), protect=each_row(), columns=AGES)
    at = steward.server.address
    for address, what in {
        f"{at}#global_temp.passing": "there is no table|is a view",
        f"{at}#nowhere.people": "there is no table",
        f"{at}#/nowhere/people.parquet": "there are no Parquet files at '/nowhere/people.parquet'",
        f"{at}#{folder}": "there are no Parquet files at",
        "spark://host:7077": "the address of a cluster, not of a table",
        "spark:": "spark: names no table, no database and no files",
        "sc://host:x#people": "not a valid address of Spark Connect",
        f"{at}#s3a://key:hush@bucket/people": "must not contain a user or a key",
        f"{at}#a.b.c.d": "is not the name of a table in Spark",
    }.items():
        with pytest.raises(SourceError, match=what) as caught:
            pv.table("t", address, protect=each_row(), columns=AGES)
        assert "hush" not in str(caught.value)
    for name in ("list", "map", "pair", "bytes", "span"):
        with pytest.raises(SourceError, match=r"but contains (array|map|struct|binary|interval)"):
            pv.table("t", steward.at("kinds"), protect=each_row(), columns={name: declared.keys("a")})
    with pytest.raises(SourceError, match=r"there is no column 'agee'.*Did you mean 'age'"):
        pv.table("t", steward.at("first"), protect=each_row(), columns={"agee": declared.integer(0, 9)})
    with pytest.raises(SourceError, match="is declared with 3 rows, but has 7"):
        pv.table("t", steward.at("first"), protect=each_row(), columns=AGES, adjacency="replace", rows=3)
    frame = steward.session.table("first")
    with pytest.raises(SourceError, match=r"a DataFrame of Spark is not a table.*saveAsTable"):
        pv.table("t", frame, protect=each_row(), columns=AGES)


def test_a_table_that_changes_is_noticed_before_a_debit(steward: Steward) -> None:
    table = steward.people("changing")
    least = count()

    def counted(session: pv.Session) -> Any:
        """Another question each time, because an answer that was given is given again."""
        query = table.where(col("age") >= next(least)).agg(n=pv.count())
        return session.release(query, epsilon=10**5).values("n")

    with pv.Session([table], budget=pv.PureDP(10**7), ledger=None) as session:
        assert counted(session) == [7]
        steward.run("INSERT INTO changing VALUES (5, 60)", "ALTER TABLE changing ADD COLUMN more int")
        assert counted(session) == [8], "new rows are seen; more columns are fine"
        spent = session.spent
        for change in (
            "CREATE TABLE changing USING parquet AS SELECT 1 AS id, 'x' AS age",
            "CREATE TABLE changing USING parquet AS SELECT 1 AS id, 2 AS elder",
            "CREATE TABLE changing (id int, age int) USING csv",
            "CREATE VIEW changing AS SELECT 1 AS id, 2 AS age",
            "",
        ):
            steward.run("DROP TABLE changing", *([change] if change else []))
            with pytest.raises(SourceError, match=r"was changed|is stored as csv|is a view|there is no table"):
                counted(session)
            if "VIEW" in change:
                steward.run("DROP VIEW changing", "CREATE TABLE changing (age int) USING parquet")
        assert session.spent == spent
        steward.run(f"CREATE TABLE changing USING parquet AS SELECT * FROM ({ROWS}) AS t (id, age)")
        assert counted(session) == [7], "it is what it was"


def test_files_and_tables_are_the_same_people(steward: Steward, tmp_path: Path) -> None:
    """By their folder and by their files, whoever reads them and under which name."""
    rows = pa.table({"id": [1, 2], "age": [20, 30]})
    folder = tmp_path / "people"
    folder.mkdir()
    pq.write_table(rows, folder / "a.parquet")
    pq.write_table(rows, tmp_path / "others.parquet")
    steward.run(f"CREATE TABLE outside (id bigint, age bigint) USING parquet LOCATION '{folder}'")
    server = steward.server.address

    def opened(address: str, dataset: str) -> None:
        table = pv.table("people", address, protect=person("id", max_rows=2), columns=AGES)
        with pv.Session([table], name=dataset, budget=pv.PureDP(10), ledger=tmp_path / "l.ledger") as session:
            session.release(table.agg(n=pv.count()), epsilon=1)

    opened(steward.at("outside"), "first")
    opened(f"{server}#{tmp_path / 'others.parquet'}", "second")
    for address in (f"{server}#{folder}", f"{server}#file:{folder}/a.parquet", str(folder / "a.parquet")):
        with pytest.raises(UserError, match="same people"):
            opened(address, "third")
    with pytest.raises(UserError, match="same people"):
        opened(str(tmp_path / "others.parquet"), "third")


def test_folders_of_a_partition(steward: Steward) -> None:
    """Their names are texts, whatever they look like: else one folder could change the type of all."""
    steward.run(
        "CREATE TABLE parted (id int, age int, region string, year int) USING parquet PARTITIONED BY (region, year)",
        "INSERT INTO parted VALUES (1, 20, 'north', 2024), (2, 30, 'a/b=c', 2025), (3, 40, NULL, 2025)",
    )
    ((place,),) = [
        row[1:2] for row in steward.session.sql("DESCRIBE TABLE EXTENDED parted").collect() if row[0] == "Location"
    ]
    columns = {**AGES, "region": declared.keys("north", "a/b=c")}
    table = pv.table("t", steward.at("parted"), protect=person("id", max_rows=1), columns=columns)
    files = pv.table(
        "t", f"{steward.server.address}#{place}", protect=person("id", max_rows=1),
        columns={**columns, "year": declared.keys("2024", "2025")},
    )  # fmt: skip
    for each in (table, files):
        with pv.Session([each], budget=pv.PureDP(10**7), ledger=None) as session:
            asked = session.release(each.group_by("region").agg(n=pv.count(), s=pv.sum("age")), epsilon=10**6)
            assert [round(value) for value in asked.values("n") + asked.values("s")] == [1, 1, 20, 30]


def test_blanks_of_a_char_are_no_part_of_it(steward: Steward) -> None:
    steward.run(
        "CREATE TABLE padded (id char(4), age int, k char(5), v varchar(5), c char(5) COLLATE UTF8_LCASE) "
        "USING parquet",
        "INSERT INTO padded VALUES ('x', 1, 'ab', 'ab', 'ab'), ('x ', 2, 'ab ', 'ab ', 'AB'), ('y', 3, 'c', 'c', 'c')",
    )
    columns = {**AGES, **{name: declared.keys("ab", "c") for name in "kvc"}}
    table = pv.table("t", steward.at("padded"), protect=person("id", max_rows=2), columns=columns)
    with pv.Session([table], budget=pv.PureDP(10**8), ledger=None) as session:
        found = {k: session.release(table.group_by(k).agg(n=pv.count()), epsilon=10**6).values("n") for k in "kvc"}
        assert found == {"k": [2, 1], "v": [1, 1], "c": [1, 1]}
        people = session.release(table.agg(n=pv.count_people()), epsilon=10**6)
        assert people.values("n") == [2]


def test_no_row_is_left_out_for_what_the_others_of_its_file_hold(steward: Steward, tmp_path: Path) -> None:
    """Parquet's own filters do: among -0.0 alone there is no 0.0 for them, and beside another number no NaN."""
    pq.write_table(pa.table({"x": [-0.0, -0.0]}), tmp_path / "zeros.parquet")
    pq.write_table(pa.table({"x": [float("nan"), 1.0]}), tmp_path / "nan.parquet")
    asked = {"zeros": ("x = 0D", 2), "nan": ("x = CAST('NaN' AS DOUBLE)", 1)}
    with sessions.reading(addresses.parsed(steward.server.address)) as session:
        for name, (condition, many) in asked.items():
            counted = f"SELECT count(*) FROM parquet.`{tmp_path / name}.parquet` WHERE {condition}"
            assert sessions.run(session, counted) == [(many,)]
            assert steward.session.sql(counted).collect()[0][0] == 0, "so Spark would by itself"


def test_public_tables_are_sent_along(steward: Steward) -> None:
    table = steward.people("joined")
    rows = pa.table({"age": [20, 30, 41], "w": [1.5, 2.5, None], "who": ["a${x}", None, "b'"]})
    extra = pv.public_table("extra", rows, key="age")
    joined = table.join(extra, on="age")
    with pv.Session([table], public=[extra], budget=pv.PureDP(10**7), ledger=None) as session:
        answer = session.release(joined.agg(n=pv.count(), s=pv.sum("w")), epsilon=10**6)
        assert [round(answer.values(name)[0]) for name in ("n", "s")] == [3, 4]
        by = session.release(joined.group_by("who").agg(n=pv.count()), epsilon=10**6)
        assert by.values("n") == [1, 1]


def test_tables_of_one_dataset_are_in_one_spark(steward: Steward) -> None:
    table = steward.people("alone")
    frame = pv.table("other", pa.table({"id": [1], "age": [3]}), protect=person("id", max_rows=1), columns=AGES)
    with pytest.raises(UserError, match="reads private tables of one Spark"):
        pv.Session([table, frame], budget=pv.PureDP(1), ledger=None, engine="spark").release(
            table.agg(n=pv.count()), epsilon=1
        )


def test_threads_ask_at_the_same_time(steward: Steward) -> None:
    table = steward.people("threaded")
    ages = [
        Statement(Scan(table.schema), (), Unbounded(), (exactly.total(col("age").node, k, 1, 90),)) for k in range(6)
    ]
    expected = [[[sum(min(max(age - k, 0), 90) for age in (20, 21, 30, 31, 40, 41, 50))]] for k in range(6)]
    with Spark({table.name: (table.schema, table.source)}, salt=b"salt") as engine, ThreadPoolExecutor(4) as pool:
        assert list(pool.map(engine.answer, ages)) == expected


def test_settings_are_ours(steward: Steward) -> None:
    """The server's are odd (`tests/spark.py`), and another session's have no part in ours."""
    steward.session.conf.set("spark.sql.ansi.enabled", "true")
    address = addresses.parsed(steward.server.address)
    with sessions.reading(address) as session, sessions.reading(address) as again:
        assert session.spark is again.spark, "one session, for all that ask at the same time"
        assert sessions.run(session, "SELECT CAST('x' AS int), '${spark.app.name}', \"a\\tb\", current_timezone()") == [
            (None, "${spark.app.name}", "a\tb", "UTC")
        ]
        for name, value in SETTINGS.items():
            assert sessions.setting(session, name) == value, name
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        steward.run("SELECT CAST('x' AS int)")


# --- secrets --------------------------------------------------------------------------------------

SECRET = "hush-hush-4711"


def test_a_token_is_nowhere(steward: Steward, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    steward.people("guarded")
    host = steward.server.address
    address = f"{host}/;user_id={SECRET};x-key={SECRET}#{steward.database}.guarded"
    ledger = tmp_path / "people.ledger"
    table = pv.table("people", address, protect=person("id", max_rows=2), columns=AGES)
    texts = [repr(table), repr(table.source), str(table.source), repr(addresses.parsed(address))]
    with pv.Session([table], name="people", budget=pv.PureDP(10), ledger=ledger) as session:
        release = session.release(table.agg(n=pv.count()), epsilon=1)
        texts += [str(release), str(release.certificate), repr(session), repr(session.dataset.engine)]
    secret = f"/;token={SECRET}"
    for each in (
        f"{host}/;user_id={SECRET}#nowhere", f"{host}/;user_id={SECRET}#a.b.c.d", f"{host}{secret};#people",
        f"sc://127.0.0.1:1{secret}#people", f"sc://host:x{secret}#people", f"sc://me:{SECRET}@host#people",
        f"sc://host/{SECRET}#people", f"sc://host/;{SECRET}#people", f"sc://host/;token={SECRET}=#people",
        f"sc://host;token={SECRET}#people", f"sc://host,{SECRET}/;use_ssl=true#people",
        f"sc://host/;token=a#{SECRET}#people",
    ):  # fmt: skip
        with pytest.raises(UserError) as caught:
            pv.table("people", each, protect=each_row(), columns=AGES)
        texts.append("".join(traceback.format_exception(caught.value)[-3:]) + str(caught.value))
        texts[-1] = "\n".join(line for line in texts[-1].splitlines() if "pv.table(" not in line)
    captured = capfd.readouterr()
    assert not [text for text in (*texts, captured.out, captured.err) if SECRET in text]
    assert SECRET.encode() not in ledger.read_bytes()
    assert SECRET not in addresses.written(addresses.parsed(address))


# --- nothing but integers leaves ------------------------------------------------------------------


def canaries(folder: Path, people: int) -> Path:
    """A file with a mark in every cell, and of these many people."""
    pq.write_table(rows(people), folder / f"canaries{people}.parquet")
    return folder / f"canaries{people}.parquet"


def held(file: Path) -> bytes:
    """What a file holds; nothing, if Spark has just deleted it."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def found_in(server: SparkServer, start: int) -> list[str]:
    """The marks in all that Spark has written since then."""
    written = server.log.read_bytes()[start:] + b"".join(f.read_bytes() for f in server.events.iterdir())
    written += (server.folder / "out").read_bytes()
    return [mark for mark in MARKS if mark.encode() in written]


def test_no_cell_comes_over_the_wire_or_into_a_log(
    spark_server: SparkServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not in what the server sends, the driver's and the executors' log, the event log with its plans, or a file."""
    start = spark_server.log.stat().st_size
    sizes = []
    with relayed(spark_server.port) as relay:
        address, heard = f"sc://127.0.0.1:{relay.port}", relay.heard
        for people in (10, 5000):
            file = canaries(tmp_path, people)
            table = pv.table("canaries", f"{address}#{file}", protect=person("id", max_rows=2), columns=COLUMNS)
            engine_ledger = tmp_path / f"{people}.ledger"
            with pv.Session([table], name="canaries", budget=pv.PureDP(100), ledger=engine_ledger) as session:
                if people > 10:
                    ask_everything(table, session)
                before = len(heard)
                session.release(table.group_by("region").agg(n=pv.count(), s=pv.sum("n")), epsilon=1)
                sizes.append(len(heard) - before)
            kept = engine_ledger.read_bytes()  # where the median of equal numbers may be that number
            assert not [mark for mark in MARKS if mark.encode() in kept and mark != str(NUMBER)]
        said = bytes(heard)
        assert b"region" in said, "the relay hears what the server sends"
        assert [mark for mark in MARKS if mark.encode() in said] == []
        assert b"xxhash64" in spark_server.log.read_bytes()[start:] + b"".join(
            f.read_bytes() for f in spark_server.events.iterdir()
        ), "the logs have our statements"
        assert found_in(spark_server, start) == []
        output = capfd.readouterr()
        assert not [mark for mark in MARKS if mark in output.out + output.err]
        files = [f for f in spark_server.folder.rglob("*") if f.is_file() and f.suffix != ".jar"]
        marked = {f.parents[1].name.partition("-")[0] for f in files if any(m.encode() in held(f) for m in MARKS[:3])}
        assert marked <= {"blockmgr"}, "rows are in Spark's own shuffle files alone, on its executors' disks"
        with sessions.reading(addresses.parsed(address)) as plain:  # what would be seen if rows left
            before = len(heard)
            sessions.run(plain, f"SELECT * FROM parquet.`{tmp_path / 'canaries5000.parquet'}`")
            assert len(heard) - before > 100_000
            assert all(mark.encode() in bytes(heard) for mark in MARKS[:1])
    # A statement that takes longer has more messages about its progress; rows would take over 100,000 bytes, as above.
    assert abs(sizes[0] - sizes[1]) < 10_000, "500 times as many rows take no more space"


def test_a_cast_that_fails_would_be_seen(spark_server: SparkServer, steward: Steward, tmp_path: Path) -> None:
    """The broken twin: with ANSI on and a cast that is not total, the text is in Spark's error and in its log."""
    start = spark_server.log.stat().st_size
    mark = f"zqtwinqz{os.getpid()}"
    pq.write_table(pa.table({"name": [mark]}), tmp_path / "one.parquet")
    with pytest.raises(Exception, match=mark):
        steward.run(f"SELECT sum(CAST(name AS int)) FROM parquet.`{tmp_path / 'one.parquet'}`")
    assert mark.encode() in spark_server.log.read_bytes()[start:]


# --- Spark in the process itself ------------------------------------------------------------------

STARTED = """
import os
import signal
import sys
import privet as pv
from privet.engines.spark import sessions
table = pv.table("t", "spark:" + sys.argv[2], protect=pv.each_row(), columns={"age": pv.integer(0, 110)})
with pv.Session([table], budget=pv.PureDP(10**7), ledger=None) as session:
    ask = lambda: round(session.release(table.agg(n=pv.count()), epsilon=10**6, fresh=True).values("n")[0])
    print("started", ask())
    os.replace(sys.argv[2] + ".new", sys.argv[2])
    print("replaced", ask())
    honest = sessions.run
    def run(of, sql, *args, **options):
        found = honest(of, sql, *args, **options)
        if "count" in sql:
            os.utime(sys.argv[2])
        return found
    sessions.run = run
    try:
        print("changing", ask())
    except pv.NoAnswer:
        print("changing no answer")
    sessions.run = honest
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "Ctrl-C is as it was"
print(spark.sparkContext.uiWebUrl, spark.conf.get("spark.ui.showConsoleProgress"), file=sys.stderr)
"""

CLASSIC = """
import io, logging, os, warnings
from privet.engines.spark import sessions
theirs = lambda *_: None
signal.signal(signal.SIGINT, theirs)
warnings.filterwarnings("ignore", category=DeprecationWarning)  # newer Pythons warn of forks beside threads
spark.sparkContext.setLogLevel("INFO")
spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
spark.sql("CREATE DATABASE sales")
spark.sql("CREATE TABLE sales.people USING parquet AS SELECT * FROM (ROWS) AS t (id, age)")
spark.sql("SELECT 999 AS age, 1 AS id").createOrReplaceTempView("people")
options = dict(protect=pv.person("id", max_rows=2), columns={"age": pv.integer(0, 110)})
table = pv.table("people", "spark:sales.people", **options)
with pv.Session([table], budget=pv.PureDP(10**7), ledger=None) as session:
    asked = session.release(table.agg(n=pv.count(), s=pv.sum("age")), epsilon=10**6)
    print("answer", [round(asked.values(name)[0]) for name in ("n", "s")])
    heard = io.StringIO()
    logging.basicConfig(level=logging.DEBUG, stream=heard, force=True)
    try:
        sessions.run(session.dataset.engine._opened(), "SELECT raise_error('the value is ' || age) FROM sales.people")
    except Exception as error:
        print("error", "the value is 20" in str(error))
    print("logged", "the value is" in heard.getvalue(), flush=True)
    logging.basicConfig(level=logging.WARNING, force=True)
    child = os.fork()
    if child == 0:
        try:
            session.release(table.agg(m=pv.max("age")), epsilon=1)
        except pv.PrivetError as error:
            print("child", error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    again = session.release(table.agg(m=pv.mean("age")), epsilon=10**6)
    print("again", round(again.values("m")[0]))
    try:
        endless = "SELECT sum(hash(a.id, b.id) % 7) FROM range(10000000) a CROSS JOIN range(10000000) b"
        sessions.run(session.dataset.engine._opened(), endless, longest=1)
    except Exception:
        print("late it ended")
    then = session.release(table.agg(s=pv.sum("age")), epsilon=10**6)
    print("then", round(then.values("s")[0]))
try:
    pv.table("people", "spark:people", **options)
except pv.PrivetError as error:
    print("refused", error)
assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Kathmandu", "the user's session is as it was"
assert signal.getsignal(signal.SIGINT) is theirs, "and so is Ctrl-C"
assert SparkSession.getActiveSession() is spark
print("rows", spark.sql("SELECT age FROM people").collect()[0][0])
"""


def test_a_spark_of_this_process(java: None, tmp_path: Path) -> None:
    """One that we start writes nothing to the terminal, and opens no port for browsers. Local files that change are
    seen, without a statement.

    Beside a session that is active, as this one is then, ours is opened; its temporary views are not ours.
    """
    pq.write_table(pa.table({"age": [1, 2, 3]}), tmp_path / "people.parquet")
    pq.write_table(pa.table({"age": [1, 2, 3, 4]}), tmp_path / "people.parquet.new")
    settings = {"spark.master": "local[1]", "spark.sql.shuffle.partitions": "1", "spark.driver.host": "127.0.0.1"}
    settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.sql.warehouse.dir": f"{tmp_path}/warehouse"}
    settings |= {"spark.driver.extraJavaOptions": " ".join([f"-Dderby.system.home={tmp_path}", *QUICK])}
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    code = STARTED + CLASSIC.replace("ROWS", ROWS)
    ran = _python(code, tmp_path, str(tmp_path / "people.parquet"), SPARK_CONF_DIR=str(tmp_path))
    said = dict(line.split(" ", 1) for line in ran.stdout.splitlines() if " " in line)
    assert (ran.returncode, ran.stderr) == (0, "None false\n"), ran.stderr[-2000:]
    assert (said["started"], said["replaced"], said["changing"]) == ("3", "4", "no answer")
    assert (said["answer"], said["again"], said["rows"]) == ("[7, 233]", "33", "999")
    assert (said["late"], said["then"]) == ("it ended", "233")
    assert "can't use the Spark of its parent" in said["child"]
    assert (said["error"], said["logged"]) == ("True", "False"), "not at the level DEBUG either"
    fleeting = "there is no table spark_catalog.default.people of Spark: 'people' is a temporary view"
    assert fleeting in said["refused"]
    assert "Write its rows to a table of Parquet" in said["refused"]
    by_us, beside = {"started", "replaced", "changing"}, {"answer", "again", "late", "then", "rows"}
    assert {*said} == by_us | beside | {"error", "logged", "child", "refused"}
    assert ran.stdout.count("\n") == len(said), "and nothing else"


AT_THE_END = """
from pyspark.sql.connect.client import SparkConnectClient
SparkConnectClient._cleanup_ml_cache = lambda client: print("called at the end")
"""
LACKING = """
import sys
import privet as pv
try:
    pv.table("people", sys.argv[2], protect=pv.each_row(), columns={"age": pv.integer(0, 110)})
except pv.PrivetError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("address", "lost", "what"),
    [
        ("spark:people", "pyspark", r"UserError a table in Spark needs pyspark.*pip install 'privet\[spark\]'"),
        ("sc://127.0.0.1:1#people", "grpc", r"UserError a table in Spark needs pyspark.*pip install 'privet\[spark\]'"),
        ("spark:people", "", "SourceError Spark did not start in this process. It needs Java 17 or newer"),
        (
            "sc://127.0.0.1:1#people",
            "",
            "SourceError can't connect to sc://127.0.0.1:1: failed .* refused. Check the host",
        ),
    ],
    ids=["no pyspark", "no grpc", "no Java", "no server"],
)
def test_what_is_missing(address: str, lost: str, what: str, tmp_path: Path) -> None:
    """Nor does a process whose server is gone end with a call to it, which once waited for five minutes."""
    hidden = f"import sys\nsys.modules[{lost!r}] = None\n" if lost else AT_THE_END
    ran = _python(hidden + LACKING, tmp_path, address, PATH="/nowhere", JAVA_HOME=str(tmp_path))
    assert re.search(what, ran.stdout), ran.stdout + ran.stderr[-2000:]
    assert "RETRIES_EXCEEDED" not in ran.stderr
    assert "called at the end" not in ran.stdout


def _python(code: str, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "run.py").write_text(code)
    command = [sys.executable, str(folder / "run.py"), str(folder), *arguments]
    given = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder, env=given, check=False)
