"""What the engine should find, computed again in Python, row by row: slow, plain, and with no SQL in it.

Numbers are fractions, by the rules of `tests.exactly`. Bounding is left out, so caps must be such that nobody reaches
them.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from tests.exactly import Number, Read, adds, evaluate, leaf, of_person
from tests.neighbours.worlds import ID, Data, World, owner

from privet.privacy.adjacency import Person
from privet.tables import expressions as e
from privet.tables import operators as o
from privet.tables.schema import Column, PublicSchema
from privet.tables.statement import PeopleInGroups, Statement, Unbounded
from privet.tables.types import NumberType, TimeType

Line = tuple[Any, Read]
"""A row: whose it is, and how its columns are read."""

EPOCH = datetime(1970, 1, 1)


def _plain(found: Any) -> Any:
    return found.value if isinstance(found, Number) else found


class Reference:
    """The tallies of statements over the rows of a world."""

    def __init__(self, of: World, data: Data) -> None:
        self.of = of
        self.data = data
        self.public = {table.name: table.source.rows.to_pylist() for table in of.public}

    def answer(self, statement: Statement) -> list[list[int]]:
        """As the engine gives them: by group, by tally."""
        domains = statement.domains()
        places = {group: place for place, group in enumerate(product(*domains))}
        found = [[0] * len(statement.tallies) for _ in places]
        seen = set()
        types = statement.of.types()
        for who, read in self.lines(statement.of):
            if who is None and not isinstance(statement.bounding, Unbounded):
                continue
            place = places.get(tuple(self.key(key, read, types) for key in statement.keys))
            if place is None or (isinstance(statement.bounding, PeopleInGroups) and (who, place) in seen):
                continue
            seen.add((who, place))
            for column, tally in enumerate(statement.tallies):
                found[place][column] += adds(tally, read, types)
        return found

    def key(self, node: e.Node, read: Read, types: e.Types) -> Any:
        """The value of a key for a row; None if it has none."""
        return _plain(evaluate(node, read, "key", types))

    # --- rows -------------------------------------------------------------------------------------

    def lines(self, of: o.Operator) -> list[Line]:
        """The rows of an operator."""
        match of:
            case o.Scan(table):
                columns = dict(table.columns)
                person = isinstance(table.protect, Person)
                return [
                    (owner(row[ID]) if person else None, self._reader(table.name, columns, row))
                    for row in self.data[table.name]
                ]
            case o.Where(inner, condition):
                types = inner.types()
                return [(w, r) for w, r in self.lines(inner) if evaluate(condition, r, "value", types) is True]
            case o.WithColumns(inner, columns_):
                return [(who, self._with(read, dict(columns_), inner.types())) for who, read in self.lines(inner)]
            case o.JoinPublic(inner, table_, on, how):
                key = Column(dict(table_.columns)[table_.key])
                rows = {_plain(leaf(key, row[table_.key], "key")): row for row in self.public[table_.name]}
                nothing = dict.fromkeys([name for name, _ in table_.columns])
                found = []
                for who, read in self.lines(inner):
                    mine = _plain(read(on, "key"))
                    match_ = None if mine is None else rows.get(mine)
                    if match_ is not None or how == "left":
                        found.append((who, _joined(read, match_ or nothing, table_)))
                return found
            case o.JoinPerson(left, right):
                mine = left.types()
                return [
                    (who, lambda name, mode, a=a, b=b: (a if name in mine else b)(name, mode))  # type: ignore[misc]
                    for who, a in self.lines(left)
                    for other, b in self.lines(right)
                    if who is not None and who == other
                ]
            case o.PerPerson(inner, columns_p):
                people: dict[Any, list[Read]] = {}
                for who, read in self.lines(inner):
                    if who is not None:
                        people.setdefault(who, []).append(read)
                wanted, types = dict(columns_p), inner.types()
                return [
                    (who, lambda name, mode, rows=rows: self._of_person(wanted[name], rows, mode, types))  # type: ignore[misc]
                    for who, rows in people.items()
                ]
        raise AssertionError(of)

    def _reader(self, table: str, columns: dict[str, Column], row: dict[str, Any]) -> Read:
        kinds = self.of.columns[table]
        return lambda name, mode: read_value(columns[name], str(kinds[name].arrow), row[name], mode)

    def _with(self, read: Read, defined: dict[str, e.Node], types: e.Types) -> Read:
        return lambda name, mode: evaluate(defined[name], read, mode, types) if name in defined else read(name, mode)

    def _of_person(self, what: o.OfPerson, rows: list[Read], mode: str, types: e.Types) -> Any:
        if what.of is None:
            return of_person("count", list(map(Fraction, range(len(rows)))), None)
        values = [evaluate(what.of, read, mode, types) for read in rows]
        return of_person(what.function, values, values[0])


def _joined(read: Read, row: dict[str, Any], table: PublicSchema) -> Read:
    kinds = dict(table.columns)

    def both(name: str, mode: str) -> Any:
        if name in kinds and name != table.key:
            return leaf(Column(kinds[name]), row[name], mode)
        return read(name, mode)

    return both


def read_value(column: Column, arrow: str, raw: Any, mode: str) -> Any:
    """A declared column from what a user handed in."""
    kind = column.type
    if isinstance(kind, TimeType) and raw is not None:
        raw = _moment(kind, raw)
    if isinstance(kind, NumberType) and raw is not None and arrow == "float":
        raw = float(np.float32(raw))
    return leaf(column, raw, mode)


def _moment(kind: TimeType, raw: int) -> date:
    """A number of microseconds or days since 1970, as near to it as Python has dates."""
    if kind.timed:
        low, high = ((end - EPOCH) // timedelta(microseconds=1) for end in (datetime.min, datetime.max))
        return EPOCH + timedelta(microseconds=min(max(raw, low), high))
    low, high = ((end - EPOCH.date()).days for end in (date.min, date.max))
    return EPOCH.date() + timedelta(days=min(max(raw, low), high))
