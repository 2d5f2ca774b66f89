"""What a table in Postgres holds, as it is: for its steward, who may see it. No analyst gets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privet.engines.duckdb.inspection import MOST_KEYS, Contents
from privet.engines.postgres.connections import reading, rows
from privet.engines.postgres.tables import PostgresTable
from privet.engines.postgres.types import identifier


def contents(source: PostgresTable, *, ordered: Sequence[str], keyed: Sequence[str], person: str | None) -> Contents:
    """The contents of these columns; what can't be read is left out."""
    types, found = source.types(), Contents()
    most = 0
    with reading(source.address) as connection:

        def ask(sql: str) -> list[tuple[Any, ...]]:
            import psycopg

            connection.execute("SAVEPOINT looking")
            try:
                return rows(connection, sql)
            except (psycopg.Error, ValueError, OverflowError):  # Python's calendar is shorter than Postgres's
                return []
            finally:
                connection.execute("ROLLBACK TO SAVEPOINT looking")

        for name in ordered:
            column, known = identifier(name), ""
            if types[name].family in ("float", "decimal"):
                known = f" WHERE {column} <> 'NaN'"
            elif types[name].family in ("date", "timestamp"):
                known = f" WHERE isfinite({column})"
            for ends in ask(f"SELECT min({column}), max({column}) FROM {source.rows}{known}"):
                found.extremes[name] = ends[0], ends[1]
        for name in keyed:
            column = identifier(name)
            by = f"WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {MOST_KEYS}"
            found.keys[name] = [(key, many) for key, many in ask(f"SELECT {column}, count(*) FROM {source.rows} {by}")]
        if person is not None:
            column = identifier(person)
            each = f"SELECT count(*) AS n FROM {source.rows} WHERE {column} IS NOT NULL GROUP BY {column}"
            most = next((row[0] for row in ask(f"SELECT coalesce(max(n), 0) FROM ({each})")), 0)
    return Contents(found.extremes, found.keys, int(most))
