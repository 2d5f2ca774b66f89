"""Sources of the simplest kind, and statements with less to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests import movers

from privet.engines.base import ArrowRows
from privet.engines.duckdb.engine import DuckDB
from privet.engines.duckdb.types import stored
from privet.engines.registry import ENGINES
from privet.tables.schema import Schema
from privet.tables.stored_types import StoredType


@pytest.fixture(params=ENGINES)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every engine, with a server to write to where it needs one."""
    with movers.reachable(request.param, request) as name:
        yield name


@cache
def looking() -> duckdb.DuckDBPyConnection:
    """One connection for all looks at types: to open one takes longer than most tests."""
    return duckdb.connect(config={"threads": 1, "enable_external_file_cache": False})


def described(sql: str) -> Mapping[str, StoredType]:
    """The columns of a SELECT, and their types."""
    with looking().cursor() as cursor:
        return {row[0]: stored(row[1]) for row in cursor.execute(f"DESCRIBE {sql}").fetchall()}


class Selected:
    """What a SELECT gives, as a source: for types that Arrow does not have."""

    identities = ()

    def __init__(self, sql: str) -> None:
        self.sql = sql

    def types(self) -> Mapping[str, StoredType]:
        return described(self.sql)

    def files(self) -> Sequence[str]:
        return []

    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        connection.execute(f"CREATE TABLE {name} AS {self.sql}")


class File:
    """A Parquet file as a source."""

    identities = ()

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def types(self) -> Mapping[str, StoredType]:
        return described(f"SELECT * FROM read_parquet('{self.path}')")

    def files(self) -> Sequence[str]:
        return [self.path]

    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{self.path}')")


Make = Callable[..., DuckDB]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes engines of one table (or several: `more`), and closes them."""
    made: list[DuckDB] = []

    def engine(schema: Schema, source: Any, *more: tuple[Schema, Any], **options: Any) -> DuckDB:
        given = {s.name: (s, _source(rows)) for s, rows in ((schema, source), *more)}
        public = {s.name: (s, _source(rows)) for s, rows in options.pop("public", ())}
        made.append(DuckDB(given, public, **{"salt": b"salt", "threads": 2, **options}))
        return made[-1]

    yield engine
    for one in made:
        one.close()


def _source(rows: Any) -> Any:
    if isinstance(rows, Mapping):
        return ArrowRows(pa.table(rows))
    if isinstance(rows, str):
        return Selected(rows)
    if isinstance(rows, Path):
        return File(rows)
    return ArrowRows(rows) if isinstance(rows, pa.Table) else rows
