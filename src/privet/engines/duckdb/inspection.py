"""What a source holds, as it is: for its steward, who may see it. Nothing here is private, and no analyst gets it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from privet.engines.base import Source
from privet.engines.duckdb.attaching import attach
from privet.engines.duckdb.files import Unreadable, identifier, query, reader

MOST_KEYS = 100_000
"""Maximum different values of a column of keys that are looked at, the most frequent first."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Least and greatest values, different keys with their number of rows, and the most rows that one id has."""

    extremes: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    keys: dict[str, list[tuple[Any, int]]] = field(default_factory=dict)
    most_rows: int = 0


def contents(source: Source, *, ordered: Sequence[str], keyed: Sequence[str], person: str | None) -> Contents:
    """The contents of these columns; what can't be read is left out."""
    found = Contents()
    types = source.types()
    most = 0
    with reader() as connection:
        attach(connection, source, "looked_at")
        for name in ordered:
            column = identifier(name)
            known = f" WHERE NOT isnan({column})" if types[name].family == "float" else ""
            with suppress(Unreadable):
                ((least, greatest),) = query(connection, f"SELECT min({column}), max({column}) FROM looked_at{known}")
                found.extremes[name] = least, greatest
        for name in keyed:
            column = identifier(name)
            by = f"WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {MOST_KEYS}"
            with suppress(Unreadable):
                found.keys[name] = query(connection, f"SELECT {column}, count(*) FROM looked_at {by}")
        if person is not None:
            column = identifier(person)
            each = f"SELECT count(*) AS n FROM looked_at WHERE {column} IS NOT NULL GROUP BY {column}"
            with suppress(Unreadable):
                most = query(connection, f"SELECT coalesce(max(n), 0) FROM ({each})")[0][0]
    return Contents(found.extremes, found.keys, int(most))
