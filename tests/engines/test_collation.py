"""Texts are equal if their bytes are, whatever collation a source gives its columns.

A collation (NOCASE, NOACCENT, one of a language) makes GROUP BY, PARTITION BY, joins and comparisons take different
texts for one: then a row would choose the group of other rows. DuckDB shows such a column as VARCHAR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count, product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.effort import some

import privet as pv
from privet.engines.duckdb.attaching import exposed
from privet.engines.duckdb.dialect import DuckDBDialect
from privet.engines.duckdb.engine import DuckDB
from privet.engines.duckdb.files import attached
from privet.engines.sql import leaves
from privet.planner import plan
from privet.tables.stored_types import StoredType

ALIKE = {
    "NOCASE": ("north", "NORTH"),
    "NOACCENT": ("cafe", "café"),
    "NOCASE.NOACCENT": ("cafe", "CAFÉ"),
    "NFC": ("é", "e\u0301"),
    "ICU_NOACCENT": ("cafe", "café"),
}
"""Texts that differ, and are equal under a collation."""
_NUMBERS = count()


def stored(folder: Path, collation: str, rows: list[tuple[str, str]]) -> Any:
    """A table of a DuckDB file whose texts have this collation: an id and a text."""
    path = folder / f"{next(_NUMBERS)}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (id VARCHAR COLLATE {collation}, k VARCHAR COLLATE {collation})")
        if rows:
            connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    return pv.duckdb_file(path, "t")


class Bare:
    """The same table handed to the engine as it is: without what `privet.sources` does to its columns."""

    identities = ()

    def __init__(self, file: Any) -> None:
        self.file = file

    def types(self) -> Mapping[str, StoredType]:
        return {"id": StoredType.text(), "k": StoredType.text()}

    def files(self) -> Sequence[str]:
        return [self.file.path]

    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        rows = attached(connection, self.file, f"file of {name}")
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {rows}")


def found(table: Any, *queries: Any, public: Any = (), bare: bool = False, setting: str = "") -> list[Any]:
    """The exact vectors of each of some queries."""
    source = Bare(table.source) if bare else table.source
    given = {p.schema.name: (p.schema, p.source) for p in public}
    with DuckDB({"t": (table.schema, source)}, given, salt=b"1", threads=1) as engine:
        assert engine._connection.execute("SELECT current_setting('default_collation')").fetchall() == [(setting,)]
        plans = [plan(query, epsilon=1) for query in queries]
        return [asked.coordinates([engine.answer(s) for s in asked.statements()]) for asked in plans]


def counted(collation: str, folder: Path, *, bare: bool) -> Iterator[list[Any]]:
    """What each use of a text gives for rows of two texts that the collation takes for one."""
    a, b = ALIKE[collation]
    keyed = {"k": pv.keys(a, "south", other="else")}
    text = {"k": pv.text()}
    k = pv.col("k")
    many = [a, *(f"text {i}" for i in range(40))]  # looked up in an ENUM

    def table(rows: list[tuple[str, str]], columns: Any, **cap: int) -> Any:
        who = pv.person("id", **cap) if cap else pv.each_row()
        return pv.table("t", stored(folder, collation, rows), protect=who, columns=columns)

    for first in ([], [("p", b)]):  # the row that is alike, before all others
        rows = [*first, ("p", a), ("p", a), ("q", "south")]
        t = table(rows, keyed)
        yield found(t, t.group_by("k").agg(n=pv.count()), t.group_by(x=k == a).agg(n=pv.count()), bare=bare)
        t = table(rows, text)
        conditions = (k == a, k != a, k.is_in([a, "x"]), k.is_in(many), k.starts_with(a))
        yield found(t, *(t.where(condition).agg(n=pv.count()) for condition in conditions), bare=bare)
        joined = pv.public_table("p", pa.table({"key": [a, b, "south"], "w": [1, 5, 7]}), key="key")
        yield found(t, t.join(joined, on="k").agg(n=pv.count(), s=pv.sum("w")), public=[joined], bare=bare)
    for people in ([(a, "south")], [(a, "south"), (b, a)]):  # two persons, whose ids are alike
        t = table(people, keyed, max_rows=1)
        each = t.per_person(n=pv.count()).agg(n=pv.count())
        yield found(t, t.group_by("k").agg(n=pv.count()), t.agg(n=pv.count_people()), each, bare=bare)


EXPECTED = [
    [[[[(2,), (1,), (0,)]], [[(1,), (2,)]]], [[[(2,)]], [[(1,)]], [[(2,)]], [[(2,)]], [[(2,)]]]],
    [[[[(2,), (1,), (1,)]], [[(2,), (2,)]]], [[[(2,)]], [[(2,)]], [[(2,)]], [[(2,)]], [[(2,)]]]],
]


@pytest.mark.parametrize(("collation", "bare"), some(list(product(ALIKE, [False, True])), every=3))
def test_a_collation_of_the_source_changes_nothing(
    collation: str, bare: bool, tmp_path: Path, counted_as_binary: Callable[[str], list[Any]]
) -> None:
    plain = counted_as_binary(collation)
    assert [plain[:2], plain[3:5]] == EXPECTED
    assert list(counted(collation, tmp_path, bare=bare)) == plain


@pytest.fixture(scope="module")
def counted_as_binary(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Any]]:
    """The same from a file whose texts have no collation."""

    @cache
    def as_binary(collation: str) -> list[Any]:
        ALIKE["C"] = ALIKE[collation]
        try:
            return list(counted("C", tmp_path_factory.mktemp("binary"), bare=False))
        finally:
            del ALIKE["C"]

    return as_binary


@pytest.mark.parametrize("collation", ALIKE)
def test_a_twin_that_believes_the_type_is_caught(
    collation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted_as_binary: Callable[[str], list[Any]]
) -> None:
    plain = counted_as_binary(collation)
    monkeypatch.setattr(leaves, "_text", lambda dialect, stored, sql: sql)
    assert any(one != other for one, other in zip(counted(collation, tmp_path, bare=True), plain, strict=True))


def test_sources_and_engine_each_end_it() -> None:
    text, dialect = StoredType.text(), DuckDBDialect()
    assert exposed([("k", text), ("n", StoredType.integer(64))], None) == '"k" COLLATE C AS "k", "n"'
    assert exposed([("k", text)], "k") == '"k" COLLATE C AS "k"'
    shared, own = (leaves.person_id(dialect, text, "x", shared=shared) for shared in (True, False))
    assert shared == own
    assert "COLLATE C" in own


def test_a_default_collation_is_pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Even where DuckDB were started with another one, the engine's is none, and nothing can set it again."""
    t = pv.table("t", stored(tmp_path, "C", [("p", "a"), ("q", "A")]), protect=pv.each_row(), columns={"k": pv.text()})
    assert found(t, t.where(pv.col("k") == "a").agg(n=pv.count())) == [[[(1,)]]]
    honest = duckdb.connect

    def otherwise(database: str = ":memory:", *, config: Any = None) -> Any:
        return honest(database, config={"default_collation": "nocase", **(config or {})})

    monkeypatch.setattr(duckdb, "connect", otherwise)
    assert found(t, t.where(pv.col("k") == "a").agg(n=pv.count())) == [[[(1,)]]]
    with DuckDB({"t": (t.schema, t.source)}, salt=b"") as engine, pytest.raises(duckdb.Error, match="lock"):
        engine._connection.execute("SET default_collation = 'nocase'")
