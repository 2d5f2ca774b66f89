"""What the engine should find, by the reference engine, of rows as they were handed in, before a source reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.neighbours.worlds import ID, Data, World, owner

from privet.engines.reference.engine import Reference as Engine
from privet.engines.reference.expressions import Read, evaluate
from privet.engines.reference.leaves import leaf, moment
from privet.engines.reference.rows import Line, Lines, Stored, value_of
from privet.tables.expressions.nodes import Node, Types
from privet.tables.operators import Operator
from privet.tables.schema import Column, Schema
from privet.tables.statement import Statement
from privet.tables.stored_types import StoredType
from privet.tables.types import NumberType, TimeType


@dataclass(frozen=True, slots=True)
class HandedIn(Stored):
    """A table whose rows are those that a user handed in."""

    arrow: Mapping[str, str]

    def read(self, column: Column, name: str, row: Mapping[str, Any], mode: str) -> Any:
        return read_value(column, self.arrow[name], row[name], mode)


class Reference:
    """The tallies of statements over the rows of a world."""

    def __init__(self, of: World, data: Data) -> None:
        public = {table.name: (table.schema, table.source) for table in of.public}
        self.engine = Engine({}, public, salt=b"")
        tables = {name: self._table(of, table.schema, data[name]) for name, table in of.tables.items()}
        self.engine._lines = Lines(tables, self.engine._lines.public)

    def _table(self, of: World, schema: Schema, given: list[dict[str, Any]]) -> Stored:
        def rows(names: Sequence[str]) -> list[dict[str, Any]]:
            return [{name: owner(row[name]) if name == ID else row[name] for name in names} for row in given]

        arrow = {name: str(kind.arrow) for name, kind in of.columns[schema.name].items()}
        return HandedIn(schema, {ID: StoredType.text()}, rows, arrow)

    def lines(self, of: Operator) -> list[Line]:
        """The rows of an operator."""
        return self.engine._lines.of(of)

    def key(self, node: Node, read: Read, types: Types) -> Any:
        """The value of a key for a row; None if it has none."""
        return value_of(evaluate(node, read, "key", types))

    def answer(self, statement: Statement) -> list[list[int]]:
        """As the engine gives them: by group, by tally."""
        return self.engine.answer(statement)


def read_value(column: Column, arrow: str, raw: Any, mode: str) -> Any:
    """A declared column from what a user handed in."""
    kind = column.type
    if isinstance(kind, TimeType) and raw is not None:
        stored = StoredType.timestamp() if kind.timed else StoredType("date", "date")
        raw = moment(kind, stored, raw)
    if isinstance(kind, NumberType) and raw is not None and arrow == "float":
        raw = float(np.float32(raw))
    return leaf(column, raw, mode)
