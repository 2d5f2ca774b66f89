"""A tiny engine for tests: exact tallies of rows in memory, one row after the other, in rational arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from tests.exactly import half_up
from tests.tables.rows import Row, value

import privet as pv
from privet.planner.plan import ReleasePlan
from privet.tables.expressions import nodes as e
from privet.tables.operators import Operator, Scan, Where, WithColumns
from privet.tables.relation import Relation
from privet.tables.schema import Schema
from privet.tables.statement import At, Code, Given, Present, Rows, Squares, Statement, Tally, Total

ROWS = pv.each_row()
PERSON = pv.person("id", max_rows=3)


def table(*, protect: Any = ROWS, adjacency: str = "add/remove", rows: int | None = None, **columns: Any) -> Relation:
    return Relation(Scan(Schema.declare("people", protect=protect, adjacency=adjacency, columns=columns, rows=rows)))


def kept(of: Operator, rows: Iterable[Row]) -> list[Row]:
    """What comes out of an operator."""
    match of:
        case Scan():
            return list(rows)
        case Where(inner, condition):
            return [row for row in kept(inner, rows) if value(condition, row) is True]
        case WithColumns(inner, columns):
            return [{**row, **{name: value(node, row) for name, node in columns}} for row in kept(inner, rows)]
    raise NotImplementedError(of)


def code(of: Code, row: Row) -> int | None:
    found = value(of.expression, row)
    if found is None:
        return None if of.missing else 0
    return min(max(half_up((Fraction(found) - of.lower) / of.step), 0), of.width)


def adds(tally: Tally, row: Row) -> int:
    """What one row adds to a tally."""
    match tally:
        case Rows():
            return 1
        case Present(Given(of)):
            return int(value(of, row) is not None)
        case Present(Code() as of):
            return int(code(of, row) is not None)
        case At(place, index):
            return int(value(place.expression, row) == index)
        case Total(of):
            return code(of, row) or 0
        case Squares(of):
            return (code(of, row) or 0) ** 2
    raise NotImplementedError(tally)


def key_of(node: e.Node, row: Row) -> Any:
    found = value(node, row)
    return found if not isinstance(node, e.Bin) or found is None else f"bin {found}"


def answer(statement: Statement, rows: Iterable[Row]) -> list[list[int]]:
    """The integers of every group, where each row is by itself."""
    domains = [
        [f"bin {i}" for i in range(len(values))] if isinstance(key, e.Bin) else list(values)
        for key, values in zip(statement.keys, statement.domains(), strict=True)
    ]
    groups: dict[tuple[Any, ...], list[int]] = {group: [0] * len(statement.tallies) for group in product(*domains)}
    for row in kept(statement.input, rows):
        group = tuple(key_of(key, row) for key in statement.keys)
        if group in groups:
            for i, tally in enumerate(statement.tallies):
                groups[group][i] += adds(tally, row)
    return list(groups.values())


def exact(plan: ReleasePlan, rows: Sequence[Row]) -> list[list[tuple[int, ...]]]:
    """The exact vectors: by measurement, by group."""
    return plan.coordinates([answer(statement, rows) for statement in plan.statements()])


def flat(vectors: list[list[tuple[int, ...]]], place: int) -> list[int]:
    """All coordinates of one measurement, of all groups."""
    return [x for vector in vectors[place] for x in vector]
