"""Every kind of source, as an engine sees it; and what a steward is told when one does not match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sources.common import COLUMNS, DATA, EXPECTED, SOURCES, arrow, as_duckdb, as_parquet, people, rows

from privet import each_row, person
from privet.engines.duckdb.attaching import attach
from privet.engines.duckdb.engine import DuckDB
from privet.errors import SourceError, UserError
from privet.sources import duckdb_file, table
from privet.tables import schema
from privet.tables.expressions.fluent import col
from privet.tables.statement import AtMostRows, Given, Present, Rows, Statement


@pytest.fixture(params=list(SOURCES))
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return SOURCES[request.param](tmp_path)


def test_every_source_gives_the_same_rows(source: Any) -> None:
    assert rows(people(source).source) == EXPECTED


def test_only_declared_columns_are_seen(source: Any) -> None:
    made = people(source, columns={"age": COLUMNS["age"]})
    assert list(made.source.types()) == ["id", "age"]
    assert all(len(row) == 2 for row in rows(made.source))
    if hasattr(made.source, "rows") and not callable(made.source.rows):
        assert made.source.rows.column_names == ["id", "age"]
    assert "s1" not in repr(made)
    assert "north" not in repr(made.source)


def test_every_source_gives_the_same_answer(source: Any) -> None:
    made = people(source)
    engine = DuckDB({"people": (made.schema, made.source)}, salt=b"salt")
    present = tuple(Present(Given(col(name).node)) for name in COLUMNS)
    try:
        found = engine.answer(Statement(made.relation.input, (col("region").node,), AtMostRows(2), (Rows(), *present)))
    finally:
        engine.close()
    assert found == [[1] * 9, [1, 0, 0, 1, 0, 1, 0, 0, 1], [1, 1, 1, 1, 0, 1, 1, 1, 1]]


def test_every_type_of_duckdb_that_is_let_in_is_read(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "odd.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE odd AS SELECT uuid() AS id, 'a'::ENUM('a', 'b') AS e, 5::HUGEINT AS h, 3::UHUGEINT AS u, "
            "1.5::DECIMAL(38, 2) AS d, TIMESTAMP_NS '2024-01-01 00:00:00.000000001' AS n, 'infinity'::TIMESTAMP AS i, "
            "TIMESTAMPTZ '2024-01-01 00:00:00+02' AS z, 'nan'::FLOAT AS f, 1::UTINYINT AS k"
        )
    time, small = schema.timestamp("2020-01-01", "2025-01-01"), schema.integer(0, 9)
    columns = {"e": schema.keys("a", "b"), "h": small, "u": small, "d": schema.number(0, 9), "n": time, "z": time}
    columns |= {"i": time, "k": schema.keys(1, 2), "f": schema.number(0, 9)}
    made = people(duckdb_file(tmp_path / "odd.duckdb", "odd"), columns=columns)
    engine = DuckDB({"people": (made.schema, made.source)}, salt=b"salt")
    try:
        tallies = tuple(Present(Given(col(name).node)) for name in columns)
        assert engine.answer(Statement(made.relation.input, (), AtMostRows(1), tallies)) == [
            [1, 1, 1, 1, 1, 1, 1, 1, 0]
        ]
    finally:
        engine.close()


def test_a_source_is_attached_more_than_once(tmp_path: Path) -> None:
    for source in (as_duckdb(tmp_path), as_parquet(tmp_path), arrow()):
        made = people(source).source
        with duckdb.connect() as connection:
            attach(connection, made, "a")
            attach(connection, made, "b")
            assert connection.execute("SELECT count(*) FROM a, b").fetchall() == [(16,)]


def test_a_changed_frame_changes_nothing() -> None:
    numbers = np.arange(1000, dtype=np.int64)
    frames: list[Any] = [
        pa.table({"id": pa.array(numbers), "age": pa.array(numbers)}),
        pd.DataFrame({"id": numbers, "age": numbers}, copy=False),
        pl.DataFrame({"id": numbers, "age": numbers}),
    ]
    made = [people(frame, columns={"age": COLUMNS["age"]}).source for frame in frames]
    before = [rows(source) for source in made]
    numbers[:] = -1
    frames[1].loc[:, "age"] = 7
    assert [rows(source) for source in made] == before
    assert before[0] == [(i, i) for i in range(1000)]


def test_names_of_any_kind_are_quoted(tmp_path: Path) -> None:
    name = """a "b' c; DROP"""
    path = tmp_path / "o'clock; --.parquet"
    pq.write_table(pa.table({name: [1, 2]}), path)
    made = table("t", path, protect=each_row(), columns={name: schema.integer(0, 9)})
    assert rows(made.source, name='x y"z'.replace('"', "")) == [(1,), (2,)]


def test_a_missing_id_is_missing_in_every_form(tmp_path: Path) -> None:
    ids = pa.array([1.0, float("nan"), None, -0.0])
    pq.write_table(pa.table({"id": ids, "age": [1, 2, 3, 4]}), tmp_path / "f.parquet")
    for source in (tmp_path / "f.parquet", pa.table({"id": ids, "age": [1, 2, 3, 4]})):
        found = rows(people(source, columns={"age": COLUMNS["age"]}).source)
        assert [row[0] for row in found] == [1.0, None, None, 0.0]


def test_zoned_timestamps_are_read_in_utc(tmp_path: Path) -> None:
    when = pd.Series(pd.to_datetime(["2024-01-01 00:30", None]).tz_localize("Europe/Berlin"))
    columns = {"when": schema.timestamp("2020-01-01", "2025-01-01"), "day": schema.date("2020-01-01", "2025-01-01")}
    frame = pd.DataFrame({"when": when, "day": when})
    found = rows(table("t", frame, protect=each_row(), columns=columns).source)
    assert found[0] == (pd.Timestamp("2023-12-31 23:30"), pd.Timestamp("2023-12-31").date())
    assert found[1] == (None, None)
    for unit in ("ms", "us", "ns"):
        path = tmp_path / f"{unit}.parquet"
        pq.write_table(pa.table({"when": pa.array(when).cast(pa.timestamp(unit, "Europe/Berlin"))}), path)
        made = table("t", path, protect=each_row(), columns={"when": columns["when"]})
        assert made.source.types()["when"].zoned
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            attach(connection, made.source, "t")
            read = connection.execute('SELECT CAST("when" AS TIMESTAMP) FROM t').fetchall()
        assert read == [(pd.Timestamp("2023-12-31 23:30"),), (None,)]


# --- what a steward is told ---------------------------------------------------------------------------


def test_declarations_are_checked_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="columns must declare"):
        table("t", tmp_path / "nowhere.parquet", protect=each_row(), columns={})
    with pytest.raises(UserError, match="protect must say"):
        table("t", tmp_path / "nowhere.parquet", protect="me", columns=COLUMNS)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="a public number of rows"):
        table("t", tmp_path / "nowhere.parquet", protect=each_row(), columns=COLUMNS, rows=3)


def refused(source: Any, **columns: schema.Column) -> str:
    with pytest.raises(SourceError) as caught:
        table("people", source, protect=each_row(), columns=columns or {"age": COLUMNS["age"]})
    return str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    path = as_parquet(tmp_path)
    gone = tmp_path / "peple.parquet"
    assert refused(gone) == f"there is no file {str(gone)!r}. That folder contains: people.parquet"
    assert "there is no file 'nowhere.parquet' (looked for " in refused("nowhere.parquet")
    assert refused(tmp_path / "x" / "*.parquet").startswith("no file matches ")
    assert (
        refused(str(tmp_path)) == f"{str(tmp_path)!r} is a folder. Write, for example: {str(tmp_path / '*.parquet')!r}"
    )
    assert refused([path, path]).endswith("is listed twice, so its rows would count twice. List each file once")
    assert refused([]).startswith("the list of files is empty")
    for far in ("https://host/people.parquet", "mysql://db/x#y", "snowflake://account/base"):
        said = refused(far)
        assert said.startswith(f"{far!r} is not a source that Privet can read. Sources are Parquet files")
        assert "s3://" in said
        assert "postgresql://" in said
    (tmp_path / "a[1]").mkdir()
    pq.write_table(arrow(), tmp_path / "a[1]" / "people.parquet")
    assert "contains a character that patterns use" in refused(tmp_path / "a[1]" / "people.parquet")


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    junk = tmp_path / "junk.parquet"
    junk.write_bytes(b"PAR1" + b"\x00" * 100)
    assert refused(junk).startswith(f"{str(junk)!r} is not a readable Parquet file. A source is ")
    (tmp_path / "people.csv").write_text("age\n1\n")
    assert refused("people.csv") == (
        "'people.csv' is a CSV file. A CSV is imported once, strictly, into a Parquet file. "
        "Write: pv.import_csv('people.csv', \"people.parquet\", columns=...)"
    )
    assert refused("people.duckdb") == "'people.duckdb' is a database. Write: pv.duckdb_file('people.duckdb', 'people')"


def test_a_duckdb_file_that_does_not_fit(tmp_path: Path) -> None:
    made = as_duckdb(tmp_path)
    assert refused(duckdb_file(tmp_path / "no.duckdb", "people")).startswith("there is no file ")
    tables = f"in {made.path!r}. The tables are: people"
    assert refused(duckdb_file(made.path, "peple")) == f"there is no table 'peple' {tables}"
    (tmp_path / "junk.duckdb").write_bytes(b"junk" * 1000)
    assert "is not a readable DuckDB file" in refused(duckdb_file(tmp_path / "junk.duckdb", "people"))
    with duckdb.connect(made.path) as connection:  # a view could read anything, and fail for one row
        connection.execute("CREATE VIEW seen AS SELECT * FROM people")
    assert refused(duckdb_file(made.path, "seen")) == f"there is no table 'seen' {tables}"


def test_columns_that_do_not_fit(tmp_path: Path) -> None:
    path = as_parquet(tmp_path)
    there = "id, age, income, region, zone, note, born, seen, member, secret"
    assert refused(path, Age=COLUMNS["age"]) == (
        f"there is no column 'Age' in {str(path)!r}. The columns are: {there}. Did you mean 'age'?"
    )
    assert refused(path, xyz=COLUMNS["age"]) == f"there is no column 'xyz' in {str(path)!r}. The columns are: {there}"
    assert refused(path, region=COLUMNS["age"]) == (
        f"column 'region' of {str(path)!r} is declared as an integer in 0..110, but contains VARCHAR. This is read "
        "from integers, floats or decimals. Convert it in the source, or declare it as it is. Write, for example: "
        'columns={"region": pv.keys("north", "south")}'
    )
    assert refused(arrow(), age=COLUMNS["region"]) == (
        "column 'age' of the Arrow table is declared as one of 3 keys, but contains int64. This is read from texts. "
        'Write, for example: columns={"age": pv.integer(0, 110)}'
    )
    with pytest.raises(SourceError) as caught:
        table("people", path, protect=person("person_id", max_rows=1), columns=COLUMNS)
    assert str(caught.value) == (f"there is no column 'person_id' in {str(path)!r}. The columns are: {there}")
    with pytest.raises(SourceError, match=r"Did you mean 'id'\? Write, for example: protect=pv\.person\(\"id\","):
        table("people", path, protect=person("idd", max_rows=1), columns=COLUMNS)
    flags = pa.table({"flag": [0, 1]})
    assert refused(flags, flag=schema.boolean()).endswith(
        'Declare a 0 or 1 as an integer. Write, for example: columns={"flag": pv.integer(0, 1)}'
    )
    with pytest.raises(SourceError, match="An id is read from integers, texts, UUIDs, decimals or floats"):
        table("people", path, protect=person("member", max_rows=1), columns=COLUMNS)
    both = pa.table({"a": [1], "A": [2]})
    assert refused(both, a=COLUMNS["age"], A=COLUMNS["age"]).startswith(
        "the columns 'a' and 'A' of 'people' differ only"
    )
    assert rows(table("t", both, protect=each_row(), columns={"A": COLUMNS["age"]}).source) == [(2,)]


@pytest.mark.parametrize(
    "address",
    ["host=x user=me:hush dbname=y", "dbname=y user=me:hush.duckdb", "user='me hush' host=x.csv", "user=me:hush"],
)
def test_a_source_that_is_an_address_is_shown_without_secrets(address: str) -> None:
    said = refused(address)
    assert "is not a source that Privet can read" in said
    assert "hush" not in said


def test_a_file_that_was_not_imported_yet(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,age\n1,2\n")
    assert f"privet import {tmp_path}/people.csv -o {tmp_path}/people.parquet" in refused(tmp_path / "people.parquet")


HOLD = {
    "number": ("age", "zone", "income"),
    "integer": ("age", "zone", "income"),
    "boolean": ("member",),
    "text": ("region", "note"),
    "key": ("age", "zone"),
    "date": ("born", "seen"),
    "timestamp": ("born", "seen"),
}
DECLARED = {
    "number": COLUMNS["income"], "integer": COLUMNS["age"], "boolean": COLUMNS["member"], "text": COLUMNS["note"],
    "key": COLUMNS["zone"], "date": COLUMNS["born"], "timestamp": COLUMNS["seen"],
}  # fmt: skip


@pytest.mark.parametrize("kind", list(HOLD))
def test_which_types_hold_what(kind: str) -> None:
    frames = [arrow(), arrow().to_pandas(types_mapper=pd.ArrowDtype), pl.DataFrame(DATA)]
    for name in COLUMNS:
        for frame in frames:
            if name not in HOLD[kind]:
                assert f"column {name!r} of the" in refused(frame, **{name: DECLARED[kind]})
            else:
                table("people", frame, protect=each_row(), columns={name: DECLARED[kind]})


def test_integers_that_pandas_made_floats() -> None:
    assert refused(pd.DataFrame({"zone": [1, None]}), zone=COLUMNS["zone"]).endswith(
        'Convert them to integers first, in pandas with Int64. Write, for example: frame.astype({"zone": "Int64"})'
    )


def test_files_of_one_table_agree(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": pa.array([1], pa.int64()), "x": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"age": pa.array([1], pa.int32()), "x": ["a"]}), tmp_path / "2.parquet")
    assert refused(tmp_path / "*.parquet").startswith("column 'age' is BIGINT in ")
    pq.write_table(pa.table({"y": ["a"], "age": pa.array([2], pa.int64())}), tmp_path / "2.parquet")
    made = people(tmp_path / "*.parquet", columns={"age": COLUMNS["age"]}, by_person=False)
    assert rows(made.source) == [(1,), (2,)]


def test_texts_that_are_none_are_found_at_once(tmp_path: Path) -> None:
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff\xfe"]).buffers())
    pq.write_table(pa.table({"note": bad}), tmp_path / "bad.parquet")
    assert "bytes that are not UTF-8 text" in refused(tmp_path / "bad.parquet", note=schema.text())
    assert "xFF" not in refused(tmp_path / "bad.parquet", note=schema.text())
    in_memory = table("t", pa.table({"note": bad}), protect=each_row(), columns={"note": schema.text()})
    assert rows(in_memory.source) == [("ok",), (None,)]


def test_times_that_no_calendar_has_are_found_at_once(tmp_path: Path) -> None:
    for zone in (None, "UTC"):
        times = pa.array([0, 2**62], pa.int64()).view(pa.timestamp("ms", zone))
        pq.write_table(pa.table({"seen": times}), tmp_path / "bad.parquet")
        assert "a time beyond all calendars" in refused(tmp_path / "bad.parquet", seen=COLUMNS["seen"])
        table("t", pa.table({"seen": times}), protect=each_row(), columns={"seen": COLUMNS["seen"]})


def test_what_holds_no_table_is_refused() -> None:
    assert refused({"age": [1]}).startswith("the source of 'people' is dict, which is not a table. A source is a path ")
    assert refused(None).startswith("the source of 'people' is NoneType")
    assert refused(pl.LazyFrame({"age": [1]})) == (
        "a LazyFrame has no rows yet. Write, for example: pv.table(name, frame.collect(), ...)"
    )
    twice = pd.DataFrame([[1, 2]], columns=["age", "age"])
    assert refused(twice) == "the pandas DataFrame has two columns 'age'. Rename one of them"
