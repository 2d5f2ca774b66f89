"""The SQL of one expression, over rows of integers that a test gives, in every database: for tests of arithmetic."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Any

import duckdb
from tests.effort import some

from privet.engines.duckdb.dialect import DuckDBDialect
from privet.engines.postgres import addresses, connections
from privet.engines.postgres.dialect import PostgresDialect
from privet.engines.spark import sessions
from privet.engines.spark.dialect import SparkDialect
from privet.engines.spark.sessions import Session
from privet.engines.sql.dialect import Dialect, held
from privet.engines.sql.text import Context, Layers, Value
from privet.tables.units import Range

Row = tuple[int | None, ...]
Asked = tuple[Callable[[Layers, list[Value]], str], Sequence[Range], Sequence[Row]]
"""An expression over columns `x0`, `x1`, ... of these ranges, and rows of them."""
Checks = Generator[Asked, list[Any], Any]
"""A case: it asks for what SQL gives for each row, and checks it."""


class Database:
    """Runs SQL over rows of integers, each column of the type that holds its range."""

    dialect: Dialect
    thinned = 1
    """Every n-th case is tried here."""
    together = 1
    """So many cases are in one statement."""
    mixed = True
    """Whether a wide integer may stand where a narrow one was promised; else the statement itself is an error."""

    def check(self, cases: Iterable[Checks]) -> list[Any]:
        """Run all cases; what they return."""
        ended: list[Any] = []
        every = iter(some(list(cases), every=self.thinned))
        while batch := list(islice(every, self.together)):
            asked = [(case, asked) for case in batch for asked in _next(case, None, ended)]
            while asked:
                found = self.run_all([each for _, each in asked])
                asked = [
                    (case, more)
                    for (case, _), got in zip(asked, found, strict=True)
                    for more in _next(case, got, ended)
                ]
        return ended

    def run(self, *asked: Any) -> list[Any]:
        """What one expression gives for each row."""
        return self.run_all([asked])[0]

    def run_all(self, asked: Sequence[Asked]) -> list[list[Any]]:
        """What expressions give for each of their rows."""
        return [[number(value) for value in found] for found in self.texts([self.made(*each) for each in asked])]

    def made(self, sql: Callable[[Layers, list[Value]], str], ranges: Sequence[Range], rows: Sequence[Row]) -> Any:
        layers = Layers(Context(self.dialect))
        made = sql(layers, [Value(f"x{i}", "integer", atom=True) for i in range(len(ranges))])
        return layers, made, [self.dialect.types[held(r.largest)] for r in ranges], rows

    def texts(self, made: Sequence[Any]) -> list[list[str | None]]:
        raise NotImplementedError


def _next(case: Checks, got: Any, ended: list[Any]) -> list[Asked]:
    """What a case asks next; nothing if it has ended."""
    try:
        return [case.send(got)]
    except StopIteration as end:
        ended.append(end.value)
        return []


def number(text: str | None) -> Any:
    """An integer, a list of them, or missing."""
    if text is None or text == "null":
        return None
    return [number(each) for each in text.split(",")[1:]] if "," in text else int(text)


class InDuckDB(Database):
    together = 24

    def __init__(self) -> None:
        self.dialect = DuckDBDialect()
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.execute("SET disabled_optimizers = 'statistics_propagation'")

    def texts(self, made: Sequence[Any]) -> list[list[str | None]]:
        selects, bound = [], []
        for k, (layers, sql, types, rows) in enumerate(made):
            typed = ", ".join(f"v[{i + 1}]::{type_} AS x{i}" for i, type_ in enumerate(types))
            each = f"(SELECT unnest(${k + 1}::HUGEINT[][]) AS v)"
            layers.source = f"(SELECT v[{len(types) + 1}] AS i, {typed} FROM {each})"
            selects.append(layers.select([f"{k} AS k", "i", f"({sql})::VARCHAR"]))
            bound.append([[*row, i] for i, row in enumerate(rows)])
        found: list[list[str | None]] = [[] for _ in made]
        for k, _, value in self.connection.execute(f"{' UNION ALL '.join(selects)} ORDER BY 1, 2", bound).fetchall():
            found[k].append(value)
        return found


class InPostgres(Database):
    thinned = 4
    mixed = False

    def __init__(self, address: str) -> None:
        self.dialect = PostgresDialect()
        self.connection = connections.connect(addresses.parsed(address))

    def texts(self, made: Sequence[Any]) -> list[list[str | None]]:
        ((layers, sql, types, rows),) = made
        typed = ", ".join(f"(v->>{i})::{type_} AS x{i}" for i, type_ in enumerate(types))
        each = "(SELECT jsonb_array_elements($1::text::jsonb) AS v) AS given"
        layers.source = f"(SELECT (v->>{len(types)})::int AS i, {typed} FROM {each}) AS typed"
        given = json.dumps([[*map(_text, row), i] for i, row in enumerate(rows)])
        found = connections.rows(self.connection, layers.select(["i", f"({sql})::text"]), [given])
        return [[value for _, value in sorted(found)]]


class InSpark(Database):
    thinned = 24
    together = 20

    def __init__(self, session: Session) -> None:
        self.dialect = SparkDialect()
        self.session = session

    def texts(self, made: Sequence[Any]) -> list[list[str | None]]:
        selects, bound = [], {}
        for k, (layers, sql, types, rows) in enumerate(made):
            typed = ", ".join(f"CAST(v[{i}] AS {type_}) AS x{i}" for i, type_ in enumerate(types))
            each = f"(SELECT explode(from_json(:j{k}, 'array<array<string>>')) AS v)"
            layers.source = f"(SELECT CAST(v[{len(types)}] AS INT) AS i, {typed} FROM {each})"
            bound[f"j{k}"] = json.dumps([[*map(_text, row), str(i)] for i, row in enumerate(rows)])
            selects.append(layers.select([f"{k} AS k", "i", f"CAST({sql} AS STRING) AS value"]))
        found = sessions.run(self.session, " UNION ALL ".join(selects), bound)
        return [[value for at, _, value in sorted(found, key=lambda row: row[:2]) if at == k] for k in range(len(made))]


def _text(n: int | None) -> str | None:
    return None if n is None else str(n)
