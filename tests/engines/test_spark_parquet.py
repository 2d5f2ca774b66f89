"""Parquet that Spark reads in a way of its own: old timestamps, values that do not fit, other storage."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import exactly
from tests.spark import SparkServer

import privet as pv
from privet.engines.base import ArrowRows
from privet.engines.duckdb.engine import DuckDB
from privet.engines.spark import files, inspection, sessions
from privet.engines.spark.addresses import Address, parsed
from privet.engines.spark.engine import Spark
from privet.engines.spark.settings import SETTINGS
from privet.engines.spark.tables import SparkTable
from privet.engines.spark.types import stored
from privet.errors import NoAnswer, SourceError
from privet.privacy.adjacency import each_row
from privet.system import progress
from privet.tables import schema as declared
from privet.tables.expressions.fluent import col
from privet.tables.operators import Scan
from privet.tables.statement import Rows, Statement, Unbounded

TIMES = [
    datetime(2, 1, 1), datetime(1500, 3, 1, 12), datetime(1582, 10, 4), datetime(1582, 10, 10), datetime(1582, 10, 15),
    datetime(1883, 11, 18, 12, 3, 58), datetime(1899, 12, 31, 23, 59, 59, 999999), datetime(1900, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 12), datetime(9000, 12, 30, 23, 59, 59, 999999),
]  # fmt: skip
COLUMNS = {
    "row": declared.integer(0, 10),
    "seen": declared.timestamp("0002-01-01", "9000-12-31"),
}


def table(server: SparkServer, path: Path | str, **columns: Any) -> Any:
    return pv.table("t", f"{server.address}#{path}", protect=each_row(), columns=columns)


def by_row(schema: Any) -> Statement:
    seen = col("seen")
    parts = [exactly.total(part.node, 0, 1, 9999) for part in (seen.year(), seen.month(), seen.day(), seen.hour())]
    return Statement(Scan(schema), (col("row").node,), Unbounded(), (Rows(), exactly.present(seen.node), *parts))


def test_timestamps_of_96_bits(spark_server: SparkServer, tmp_path: Path) -> None:
    """As Impala, and Spark itself in its own way, write them: read as they are written, before 1582 and 1900 too."""
    rows = pa.table({"row": range(len(TIMES)), "seen": pa.array(TIMES, pa.timestamp("us"))})
    plain = {"use_dictionary": False, "compression": "none"}
    by_arrow, by_spark = tmp_path / "arrow.parquet", tmp_path / "spark"
    pq.write_table(rows, by_arrow, use_deprecated_int96_timestamps=True, **plain)
    pq.write_table(rows, tmp_path / "plain.parquet")
    with sessions.reading(parsed(spark_server.address)) as session:
        session.spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
        try:
            read = f"SELECT row, CAST(seen AS TIMESTAMP) AS seen FROM parquet.`{tmp_path / 'plain.parquet'}`"
            session.spark.sql(read).coalesce(1).write.parquet(str(by_spark))
        finally:
            session.spark.conf.unset("spark.sql.parquet.outputTimestampType")
    expected = None
    for path in (by_arrow, by_spark):
        (file,) = path.glob("*.parquet") if path.is_dir() else [path]
        assert pq.ParquetFile(file).schema.column(1).physical_type == "INT96"
        there = table(spark_server, path, **COLUMNS)
        if expected is None:
            with DuckDB({"t": (there.schema, ArrowRows(rows))}, salt=b"s", threads=1) as duckdb:
                expected = duckdb.answer(by_row(there.schema))
            assert expected[3] == [1, 1, 1582, 10, 10, 0]
        with Spark({"t": (there.schema, there.source)}, salt=b"s") as engine:
            assert engine.answer(by_row(there.schema)) == expected

    whole = by_arrow.read_bytes()
    at = whole.index(struct.pack("<qi", 0, 1_721_791))  # nanoseconds of the day, and the day, of the first
    bad = [(2**63 - 1, 2**31 - 1), (-(2**63), -(2**31)), (2**63 - 1, 0)]
    folder = tmp_path / "bad"
    folder.mkdir()
    for i, number in enumerate(bad):
        (folder / f"{i}.parquet").write_bytes(whole[:at] + struct.pack("<qi", *number) + whole[at + 12 :])
    there = table(spark_server, folder, **COLUMNS)
    with Spark({"t": (there.schema, there.source)}, salt=b"s") as engine:
        found = engine.answer(by_row(there.schema))
        assert found[0][:2] == [len(bad)] * 2
        assert found[1:] == [[n * len(bad) for n in row] for row in expected[1:]]  # type: ignore[index]


def misfit(what: str, path: Path) -> None:
    """A file with one value that Spark can't read as its type."""
    if what == "time":
        column = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms"))
    else:
        digits = pa.py_buffer(b"".join(n.to_bytes(16, "little") for n in (1, 2**126 + 2**125)))
        column = pa.Array.from_buffers(pa.decimal128(38, 0), 2, [None, digits])
    pq.write_table(pa.table({"x": column, "y": [1, 2]}), path)


@pytest.mark.parametrize(
    ("what", "column"),
    [("time", declared.timestamp("2000-01-01", "2030-01-01")), ("decimal", declared.integer(0, 9))],
)
def test_a_value_that_does_not_fit_is_found_before_a_session_exists(
    what: str, column: Any, spark_server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    misfit(what, path)
    said = r"the column x of the Parquet files .* can't be read: .* Write the files again, .* timestamps in micro"
    with pytest.raises(SourceError, match=said) as caught:
        table(spark_server, path, x=column)
    assert str(2**62) not in str(caught.value)
    assert str(2**126 + 2**125) not in str(caught.value)
    assert table(spark_server, path, y=declared.integer(0, 9)), "a column that is not declared is not read"
    monkeypatch.setattr(files, "can_fail", lambda kind: False)
    unchecked = table(spark_server, path, x=column)
    with Spark({"t": (unchecked.schema, unchecked.source)}, salt=b"s") as engine, pytest.raises(NoAnswer):
        engine.answer(Statement(Scan(unchecked.schema), (), Unbounded(), (exactly.present(col("x").node),)))


def test_files_with_different_types_are_found_before_a_session_exists(
    spark_server: SparkServer, tmp_path: Path
) -> None:
    """As pandas writes them: whether integers are floats in a file depends on one missing value."""
    folder, number = tmp_path / "several", declared.integer(0, 9)
    folder.mkdir()
    pq.write_table(pa.table({"x": [1, 2], "y": [1, 2], "z": [1, 2]}), folder / "a.parquet")
    narrow = pa.array([3, 4], pa.int32())
    pq.write_table(pa.table({"x": [3.0, None], "y": [3, 4], "z": narrow}), folder / "b.parquet")
    with pytest.raises(
        SourceError, match=r"one of the columns .*x.* its files have different types for it.*same types"
    ):
        table(spark_server, folder, x=number, y=number, z=number)
    made = table(spark_server, folder, y=number, z=number)  # Spark reads narrow integers as wide ones
    total = exactly.total(col("z").node, 0, 1, 9)
    with Spark({"t": (made.schema, made.source)}, salt=b"s") as engine:
        assert engine.answer(Statement(Scan(made.schema), (), Unbounded(), (Rows(), total))) == [[4, 10]]


def test_a_table_with_other_types_over_the_same_files_is_read_again(
    spark_server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "files"
    folder.mkdir()
    pq.write_table(pa.table({"x": [1, 2]}), folder / "a.parquet")
    os.utime(folder / "a.parquet", (1, 1))

    def declare(kind: str) -> Any:
        with sessions.reading(parsed(spark_server.address)) as session:
            sessions.run(session, "DROP TABLE IF EXISTS retyped")
            sessions.run(session, f"CREATE TABLE retyped (x {kind}) USING parquet LOCATION '{folder}'")
        return pv.table(
            "t", f"{spark_server.address}#retyped", protect=each_row(), columns={"x": declared.integer(0, 9)}
        )

    assert declare("bigint")
    with pytest.raises(SourceError, match=r"the column x of .* its files have different types for it"):
        declare("float")
    with sessions.reading(parsed(spark_server.address)) as session:
        sessions.run(session, "DROP TABLE retyped")


def test_files_that_are_not_there(spark_server: SparkServer, tmp_path: Path) -> None:
    """An empty folder, what is no pattern, the name of a file that is taken for a table, and a path with a key."""
    with pytest.raises(SourceError, match="there are no Parquet files at"):
        table(spark_server, tmp_path, **COLUMNS)
    for name, star in {"part[01].parquet": True, "part?.parquet": True, "part*.parquet": False, "part": False}.items():
        with pytest.raises(SourceError, match="there are no Parquet files at") as caught:
            table(spark_server, tmp_path / name, **COLUMNS)
        assert ("Only * is a pattern" in str(caught.value)) == star
    with pytest.raises(SourceError, match=r"Name files by their absolute path: .*#/data/people\.parquet"):
        table(spark_server, "people.parquet", **COLUMNS)
    with pytest.raises(SourceError, match="must not contain a user or a key") as caught:
        table(spark_server, "wasbs://c@host/people?sig=hush", **COLUMNS)
    assert "hush" not in str(caught.value)


def test_names_that_hadoop_would_take_for_patterns(spark_server: SparkServer, tmp_path: Path) -> None:
    """Each is the name of one file; a colon is refused in plain words, since Hadoop can't read it."""
    for name in ("people[1]?.parquet", "people1x.parquet"):
        pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / name)
    given = table(spark_server, tmp_path / "people[1]?.parquet", x=declared.integer(0, 9))
    with pv.Session([given], budget=pv.PureDP(10**7), ledger=None) as session:
        assert session.release(given.agg(n=pv.count()), epsilon=10**5).values("n") == [3]
    pq.write_table(pa.table({"x": [1]}), tmp_path / "12:30.parquet")
    with pytest.raises(SourceError, match=r"a file there has a colon in its name.*Rename the file"):
        table(spark_server, tmp_path / "12:30.parquet", x=declared.integer(0, 9))


def test_a_spark_that_is_lost_is_not_blamed_on_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings can still be told by a Spark whose context was stopped, or whose executors are gone."""

    def run(*_: Any, **__: Any) -> Any:
        raise RuntimeError("Job aborted")

    settings = SimpleNamespace(get=lambda name: SETTINGS[name])
    stopped, idle = (SimpleNamespace(conf=settings, _sc=SimpleNamespace(_jsc=jsc)) for jsc in (None, _running()))
    assert (sessions.works(stopped), sessions.works(idle)) == (False, True)
    monkeypatch.setattr(sessions, "run", run)
    lost = SimpleNamespace(spark=idle, lost=False)
    monkeypatch.setattr(files, "reading", lambda address: nullcontext(lost))
    source = SparkTable(Address(path="/data/people.parquet"), (("x", stored("timestamp")),))
    with pytest.raises(SourceError, match=r"Spark was lost while the Parquet files .* Job aborted"):
        files.are_readable(source, ["x"])
    assert lost.lost


def test_a_check_shows_that_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal; and Ctrl-C ends the statement."""

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    def run(*_: Any, **__: Any) -> list[tuple[Any, ...]]:
        time.sleep(0.6)
        return [(1, 2)]

    monkeypatch.setattr(progress, "AFTER", 0)
    monkeypatch.setattr("sys.stderr", shown := Terminal())
    monkeypatch.setattr(inspection, "reading", lambda address: nullcontext(SimpleNamespace()))
    monkeypatch.setattr(inspection, "run", run)
    source = SparkTable(Address(path="/data/people.parquet"), (("x", stored("bigint")),))
    assert inspection.contents(source, ordered=["x"], keyed=[], person=None).extremes == {"x": (1, 2)}
    assert "asking, 0:00" in shown.getvalue()


def _running() -> Any:
    return SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))


def test_files_are_read_once(spark_server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until one of them changes, or another is added; the mark is in the user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    read: list[Sequence[str]] = []
    honest = files.are_readable

    def are_readable(source: Any, columns: Sequence[str]) -> bool:
        read.append(columns)
        return honest(source, columns)

    monkeypatch.setattr(files, "are_readable", are_readable)
    folder = tmp_path / "part = 100 %"
    folder.mkdir()

    def write(name: str, value: int) -> None:
        pq.write_table(pa.table({"x": pa.array([value], pa.timestamp("us"))}), folder / name)
        before = time.time() - 60 - value
        os.utime(folder / name, (before, before))

    def declare() -> int:
        table(spark_server, folder, x=declared.timestamp("1970-01-01", "2030-01-01"))
        return len(read)

    write("a.parquet", 1)
    assert [declare(), declare()] == [1, 1]
    write("a.parquet", 2)
    assert declare() == 2
    write("b.parquet", -3600)  # not a moment ago: it could change again and keep its time
    assert [declare(), declare()] == [3, 4]


def test_storage_that_spark_has_no_library_for(spark_server: SparkServer) -> None:
    """hadoop-aws is not part of pyspark: this is what a Spark without it really says, before anything is spent."""
    for scheme in ("s3a", "gs"):
        with pytest.raises(SourceError, match=rf"this Spark has no library for {scheme}://\. Add the library to Spark"):
            table(spark_server, f"{scheme}://bucket/people", **COLUMNS)
    with pytest.raises(SourceError, match="can't be read: UnknownHostException: nowhere"):
        table(spark_server, "hdfs://nowhere:1/people", **COLUMNS)
