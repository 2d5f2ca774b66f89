"""Public tables, sent to Postgres with each question that joins them: nothing is written there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from privet.engines.base import Source
from privet.engines.postgres.types import identifier, stored
from privet.errors import UserError
from privet.tables.stored_types import StoredType

_TYPES = {
    "integer": "bigint",
    "float": "double precision",
    "boolean": "boolean",
    "text": "text",
    "date": "date",
    "timestamp": "timestamp without time zone",
}


@dataclass(frozen=True, slots=True)
class Shipped:
    """A public table as arrays, one for each column, that are bound as parameters."""

    number: int
    types: Mapping[str, StoredType]
    arrays: tuple[Any, ...] = field(repr=False)

    @property
    def rows(self) -> str:
        """Its rows, as a subquery; the places of the parameters are marked, since their numbers are not known yet."""
        columns = list(self.types.items())
        texts = [
            f'{identifier(name)} COLLATE "C" AS {identifier(name)}' if kind.family == "text" else identifier(name)
            for name, kind in columns
        ]
        places = ", ".join(f"{self._mark(i)}::{kind.name}[]" for i, (_, kind) in enumerate(columns))
        names = ", ".join(identifier(name) for name, _ in columns)
        return f"(SELECT {', '.join(texts)} FROM unnest({places}) AS public ({names}))"

    def _mark(self, column: int) -> str:
        return f"\x01{self.number}.{column}\x01"  # no name and no constant contains this character

    def bound(self, sql: str, parameters: list[Any]) -> str:
        """The statement with the numbers of the parameters, which are added to the list if it reads the table."""
        for i, array in enumerate(self.arrays):
            if self._mark(i) in sql:
                parameters.append(array)
                sql = sql.replace(self._mark(i), f"${len(parameters)}")
        return sql


def shipped(source: Source, number: int) -> Shipped:
    """The rows of a public table."""
    rows: Any = getattr(source, "rows", None)
    kinds = {name: _TYPES.get(kind.family) for name, kind in source.types().items()}
    if rows is None or not all(kinds.values()):
        raise UserError("the engine 'postgres' can't read a public table of this kind")
    types = {name: stored(kind) for name, kind in kinds.items() if kind is not None}
    return Shipped(number, types, tuple(rows.column(name).to_pylist() for name in types))
