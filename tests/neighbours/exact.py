"""Noise off: the exact vectors of a plan over any rows, through one engine whose tables can be exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.neighbours.worlds import Data, Row, World

from privet.engines.duckdb.engine import DuckDB
from privet.planner import ReleasePlan
from privet.tables.statement import Statement
from privet.tables.stored_types import StoredType

Vectors = list[list[tuple[int, ...]]]
"""By measurement, by group."""


@dataclass
class Exchangeable:
    """A source whose rows can be exchanged after it was attached."""

    rows: Any
    described: Mapping[str, StoredType]
    identities: tuple[Any, ...] = ()
    attached: list[tuple[Any, str]] = field(default_factory=list)

    def types(self) -> Mapping[str, StoredType]:
        return self.described

    def files(self) -> Sequence[str]:
        return ()

    def attach(self, connection: Any, name: str) -> None:
        self.attached.append((connection, name))
        connection.register(name, self.rows)

    def exchange(self, rows: Any) -> None:
        """Other rows, of the same types."""
        assert rows.schema == self.rows.schema
        for connection, name in self.attached:
            connection.unregister(name)
            connection.register(name, rows)


class Bench:
    """A world's engine, with any rows in place of its own."""

    def __init__(self, of: World, salt: bytes = b"salt") -> None:
        self.of = of
        self.sources = {name: Exchangeable(t.source.rows, t.source.types()) for name, t in of.tables.items()}
        self.engine = DuckDB(
            {name: (table.schema, self.sources[name]) for name, table in of.tables.items()},
            {table.name: (table.schema, table.source) for table in of.public},
            salt=salt,
            threads=1,
        )
        self.asked: dict[int, tuple[ReleasePlan, Sequence[Statement]]] = {}
        self.here: dict[str, Sequence[Row]] = {}

    def put(self, data: Data, chunks: int = 1) -> None:
        """These rows, read as the public API reads them; rows that are here already are not read again."""
        for name, rows in data.items():
            if rows is not self.here.get(name):
                self.sources[name].exchange(self.of.read(name, rows, chunks))
                self.here[name] = rows

    def vectors(self, plan: ReleasePlan) -> Vectors:
        """The exact vectors; a plan's statements are compiled once, since rows are exchanged and not declarations."""
        if id(plan) not in self.asked:
            self.asked[id(plan)] = (plan, plan.statements())
        return plan.coordinates([self.engine.answer(statement) for statement in self.asked[id(plan)][1]])

    def tallies(self, statements: Sequence[Statement]) -> list[list[list[int]]]:
        return [self.engine.answer(statement) for statement in statements]

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()


def moved(one: Vectors, other: Vectors) -> list[int]:
    """The L1 distance of each measurement, over all groups."""
    return [sum(map(abs, change)) for change in changed(one, other)]


def changed(one: Vectors, other: Vectors) -> list[list[int]]:
    """By how much each coordinate of each measurement moved, over all groups."""
    return [
        [x - y for a, b in zip(left, right, strict=True) for x, y in zip(a, b, strict=True)]
        for left, right in zip(one, other, strict=True)
    ]


def added(parts: Sequence[Vectors]) -> Vectors:
    """The sum of vectors."""
    total = [[tuple(0 for _ in v) for v in part] for part in parts[0]]
    for vectors in parts:
        total = [
            [tuple(x + y for x, y in zip(a, b, strict=True)) for a, b in zip(t, v, strict=True)]
            for t, v in zip(total, vectors, strict=True)
        ]
    return total
