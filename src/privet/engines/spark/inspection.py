"""What a table in Spark holds, as it is: for its steward, who may see it. No analyst gets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privet.engines.duckdb.inspection import MOST_KEYS, Contents
from privet.engines.spark.sessions import new_tag, reading, run
from privet.engines.spark.tables import SparkTable
from privet.engines.spark.types import identifier
from privet.system.interrupts import interruptible
from privet.system.progress import Progress


def contents(source: SparkTable, *, ordered: Sequence[str], keyed: Sequence[str], person: str | None) -> Contents:
    """The contents of these columns; what can't be read is left out."""
    types, found = source.types(), Contents()
    most = 0
    with reading(source.address) as session:

        def ask(sql: str) -> list[tuple[Any, ...]]:
            tag = new_tag()
            try:
                with Progress() as progress:
                    return interruptible(lambda: run(session, sql, tag=tag), lambda: session.cancel(tag), progress.tick)
            except Exception:  # Python's calendar is shorter than Spark's
                return []

        for name in ordered:
            column = identifier(name)
            known = f" WHERE NOT isnan({column})" if types[name].family == "float" else ""
            for ends in ask(f"SELECT min({column}), max({column}) FROM {source.rows}{known}"):
                found.extremes[name] = ends[0], ends[1]
        for name in keyed:
            column = identifier(name)
            by = f"WHERE {column} IS NOT NULL GROUP BY {column} ORDER BY 2 DESC, 1 LIMIT {MOST_KEYS}"
            found.keys[name] = [(key, many) for key, many in ask(f"SELECT {column}, count(*) FROM {source.rows} {by}")]
        if person is not None:
            column = identifier(person)
            each = f"SELECT count(*) AS n FROM {source.rows} WHERE {column} IS NOT NULL GROUP BY {column}"
            most = next((row[0] for row in ask(f"SELECT coalesce(max(n), 0) FROM ({each})")), 0)
    return Contents(found.extremes, found.keys, int(most))
