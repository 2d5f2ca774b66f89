"""The engine is shut in: what it may read, what it says when it fails, and what it leaves behind."""

from __future__ import annotations

import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import exactly
from tests.exactly import holds

from privet.engines.base import FAILED
from privet.engines.duckdb import lists
from privet.engines.duckdb.engine import DuckDB
from privet.errors import NoAnswer
from privet.exact import Exact
from privet.privacy.adjacency import each_row, person
from privet.tables import schema as declared
from privet.tables.expressions.fluent import col
from privet.tables.operators import Scan, Where
from privet.tables.schema import Schema
from privet.tables.statement import AtMostRows, Rows, Statement, Unbounded
from privet.tables.stored_types import StoredType

from .conftest import File, Make

SCHEMA = Schema.declare("t", protect=each_row(), columns={"x": declared.integer(0, 9), "s": declared.text()})
COUNT = Statement(Scan(SCHEMA), (), Unbounded(), (Rows(),))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "it's a table.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3], "s": ["a", "b", None]}), path)
    pq.write_table(pa.table({"x": [4]}), tmp_path / "secret.parquet")
    duckdb.connect(str(tmp_path / "secret.duckdb")).close()
    return path


class Quoted(File):
    def types(self) -> dict[str, StoredType]:
        return {"x": StoredType.integer(64), "s": StoredType.text()}

    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        path = self.path.replace("'", "''")
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")


FORBIDDEN = [
    "SELECT * FROM read_parquet('{folder}/secret.parquet')",
    "SELECT * FROM '{folder}/secret.parquet'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/*')",
    "ATTACH '{folder}/secret.duckdb' AS secret (READ_ONLY)",
    "ATTACH '{folder}/new.duckdb' AS fresh",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "EXPORT DATABASE '{folder}/out'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{folder}/x.duckdb_extension'",
    "SELECT * FROM 'https://example.com/x.parquet'",
    "SELECT * FROM frame",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET lock_configuration",
    "SET memory_limit = '1TB'",
    "SET threads = 64",
    "SET temp_directory = '/tmp'",
    "SET allowed_paths = ['/etc/passwd']",
    "SET python_enable_replacements = true",
    "PRAGMA enable_profiling",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_nothing_else_can_be_read_written_or_set(make: Make, file: Path, sql: str) -> None:
    frame = pa.table({"x": [1]})
    db = make(SCHEMA, Quoted(file))
    with pytest.raises(duckdb.Error):
        db._connection.execute(sql.format(folder=file.parent))
    assert db.answer(COUNT) == [[3]]
    assert sorted(path.name for path in file.parent.iterdir()) == [
        "it's a table.parquet",
        "secret.duckdb",
        "secret.parquet",
    ]
    del frame


def test_settings(make: Make, file: Path, tmp_path: Path) -> None:
    db = make(SCHEMA, Quoted(file), memory="300MB", threads=1, spill=tmp_path)
    wanted = {
        "TimeZone": "UTC", "enable_external_access": "false", "lock_configuration": "true", "threads": "1",
        "preserve_insertion_order": "false", "enable_progress_bar": "false", "python_enable_replacements": "false",
        "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
    }  # fmt: skip
    found = dict(db._connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
    assert {name: found[name] for name in wanted} == wanted
    assert found["memory_limit"].startswith("286")
    assert Path(found["temp_directory"]).parent == tmp_path


def test_the_folder_is_removed(file: Path, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    with DuckDB({"t": (SCHEMA, Quoted(file))}, salt=b"", spill=spill):
        assert len(list(spill.iterdir())) == 1
        assert all(path.stat().st_mode & 0o077 == 0 for path in spill.iterdir())
    assert list(spill.iterdir()) == []


PERSONS = Schema.declare("t", protect=person("id", max_rows=2), columns={"x": declared.number(0, 1)})


def many(path: Path, rows: int) -> Path:
    sql = f"SELECT 'person canary ' || (i % {rows // 3}) AS id, random() AS x FROM range({rows}) r(i)"
    duckdb.connect().execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")
    return path


def test_failure_is_one_constant_error(make: Make, tmp_path: Path) -> None:
    bounds = PERSONS.columns[0][1].type.bounds()  # type: ignore[union-attr]
    total = exactly.total(col("x").node, bounds.lower, bounds.step, bounds.width)
    db = make(PERSONS, many(tmp_path / "many.parquet", 300_000), memory="2MB", threads=2)
    with pytest.raises(NoAnswer) as caught:
        db.answer(Statement(Scan(PERSONS), (), AtMostRows(2), (total,)))
    error = caught.value
    assert error.args == (FAILED,)
    assert error.__cause__ is None
    assert error.__context__ is None
    text = "".join(traceback.format_exception(error))
    assert "canary" not in text
    assert "memory" not in text.lower()
    assert db.answer(Statement(Scan(PERSONS), (), Unbounded(), (Rows(),))) == [[300_000]]


def test_a_failure_of_any_other_kind_looks_the_same(make: Make, file: Path) -> None:
    db = make(SCHEMA, Quoted(file))
    assert db.answer(COUNT) == [[3]]
    file.unlink()
    with pytest.raises(NoAnswer) as caught:
        db.answer(COUNT)
    assert (caught.value.args, caught.value.__context__) == ((FAILED,), None)


@pytest.mark.slow
def test_what_does_not_fit_is_spilled(make: Make, tmp_path: Path) -> None:
    db = make(PERSONS, many(tmp_path / "many.parquet", 3_000_000), memory="150MB", threads=2, spill=tmp_path)
    assert db.answer(Statement(Scan(PERSONS), (), AtMostRows(2), (Rows(),))) == [[2_000_000]]
    db.close()
    assert [path.name for path in tmp_path.iterdir()] == ["many.parquet"]


def test_texts_are_bound(make: Make) -> None:
    odd = ["'; DROP TABLE t0; --", '"', "$1", "\\", "' OR '1'='1", "%", "é💥", "\n", "x" * 9999]
    db = make(SCHEMA, {"x": [1] * len(odd), "s": odd})
    for text in odd:
        statement = Statement(
            Where(Scan(SCHEMA), (col("s") == text).node), (), Unbounded(),
            (Rows(), holds(col("s").starts_with(text).node), holds(col("s").is_in([text, *map(str, range(30))]).node)),
        )  # fmt: skip
        assert text not in db.compile(statement).sql or len(text) == 1 or text == "$1"
        assert db.answer(statement) == [[1, 1, 1]]


def test_ten_thousand_keys_are_in_order(make: Make) -> None:
    names = [f"key {i * 7919 % 10_000}" for i in range(10_000)]
    schema = Schema.declare("t", protect=each_row(), columns={"k": declared.keys(*names)})
    db = make(schema, {"k": [names[5], names[9999], names[5], "none", None]})
    found = db.answer(Statement(Scan(schema), (col("k").node,), Unbounded(), (Rows(),)))
    assert len(found) == 10_000
    assert {i: row[0] for i, row in enumerate(found) if row[0]} == {5: 2, 9999: 1}


def test_a_cursor_keeps_few_lists(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """All lists have the same length and place, so a type that is kept under a name of its place would be wrong."""
    db = make(SCHEMA, {"x": [1] * 45 * 23, "s": [str(i) for i in range(46) for _ in range(i)]})
    absent = [f"none {i}" for i in range(30)]

    def asked(i: int) -> int:
        some = col("s").is_in([str(i), *absent]).node
        return db.answer(Statement(Where(Scan(SCHEMA), some), (), Unbounded(), (Rows(),)))[0][0]

    def kept() -> int:
        types = "SELECT count(*) FROM duckdb_types() WHERE type_name LIKE 'list_%' AND logical_type = 'ENUM'"
        return int(db._connection.execute(types).fetchall()[0][0])

    assert [asked(i) for i in range(46)] == list(range(46))
    assert kept() == lists._MOST_LISTS < 46
    assert [asked(i) for i in (45, 1, 2, 45, 20)] == [45, 1, 2, 45, 20]
    monkeypatch.setattr(lists, "_MOST_TEXTS", 100)
    assert (asked(3), kept()) == (3, 3)  # 31 texts each
    monkeypatch.setattr(lists, "_MOST_TEXTS", 30)
    assert (asked(4), kept(), asked(4)) == (4, 0, 4)


def test_an_empty_table_has_every_group(make: Make) -> None:
    schema = Schema.declare(
        "t", protect=person("id", max_rows=1), columns={"k": declared.keys("a", "b"), "x": declared.integer(0, 9)}
    )
    db = make(
        schema,
        pa.table({"id": pa.array([], pa.int64()), "k": pa.array([], pa.string()), "x": pa.array([], pa.int64())}),
    )
    total = exactly.total(col("x").node, 0, 1, 9)
    for bounding in (Unbounded(), AtMostRows(1), AtMostRows(2)):
        assert db.answer(Statement(Scan(schema), (col("k").node,), bounding, (Rows(), total))) == [[0, 0], [0, 0]]
        assert db.answer(Statement(Scan(schema), (), bounding, (Rows(), total))) == [[0, 0]]


def test_sums_are_exact_beyond_floats(make: Make) -> None:
    width = 2**52
    schema = Schema.declare("t", protect=each_row(), columns={"x": declared.integer(2**61, 2**61 + width)})
    values = [2**61 + width - i for i in range(5)] + [2**63 - 1, -(2**63)]
    node = col("x").node
    db = make(schema, {"x": values})
    codes = [width, width - 1, width - 2, width - 3, width - 4, width, 0]
    for kind, expected in ((exactly.total, sum(codes)), (exactly.squares, sum(c * c for c in codes))):
        tally = kind(node, Exact(2**61), Exact(1), width)
        assert db.answer(Statement(Scan(schema), (), Unbounded(), (tally,))) == [[expected]]


def test_the_same_from_many_threads(make: Make) -> None:
    schema = Schema.declare("t", protect=person("id", max_rows=1), columns={"k": declared.keys("a", "b")})
    db = make(schema, {"id": list(range(1000)) * 2, "k": ["a", "b"] * 1000})
    statement = Statement(Scan(schema), (col("k").node,), AtMostRows(2), (Rows(),))

    def ask(_: int) -> Any:
        return db.answer(statement)

    with ThreadPoolExecutor(8) as pool:
        assert set(map(str, pool.map(ask, range(40)))) == {"[[1000], [1000]]"}
