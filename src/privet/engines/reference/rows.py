"""The rows of an operator: whose each is, and how its columns are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privet.engines import object_store
from privet.engines.base import ArrowRows, ParquetFiles, ParquetObjects, Source
from privet.engines.reference.expressions import Read, evaluate
from privet.engines.reference.leaves import check, leaf, moment, plain
from privet.engines.reference.numbers import Number, of_person
from privet.errors import InternalError
from privet.privacy.adjacency import Person
from privet.tables import operators as o
from privet.tables.expressions import nodes as e
from privet.tables.schema import Column, PublicSchema, Schema
from privet.tables.stored_types import StoredType
from privet.tables.types import TimeType

Line = tuple[Any, Read]
"""A row: whose it is, and how its columns are read."""

Tables = Mapping[str, tuple[Schema | PublicSchema, Source]]


@dataclass(frozen=True, slots=True)
class Stored:
    """A table: its declaration, the types of its columns, and its rows."""

    schema: Schema | PublicSchema
    types: Mapping[str, StoredType]
    rows: Callable[[Sequence[str]], list[dict[str, Any]]]

    @classmethod
    def of(cls, schema: Schema | PublicSchema, source: Source) -> Stored:
        """A table of the engine."""
        types = dict(source.types())

        def rows(names: Sequence[str]) -> list[dict[str, Any]]:
            columns = [_values(column, types[name]) for name, column in zip(names, _arrow(source, names), strict=True)]
            return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

        return cls(schema, types, rows)

    def nothing(self) -> Stored:
        """The same table with one row in which everything is missing, to see whether a statement can be computed."""
        return replace(self, rows=lambda names: [dict.fromkeys(names)])

    def read(self, column: Column, name: str, row: Mapping[str, Any], mode: str) -> Any:
        """A declared column of a row."""
        stored = self.types[name]
        raw = plain(row[name], stored)
        check(column, stored)
        if isinstance(column.type, TimeType) and raw is not None:
            raw = moment(column.type, stored, raw)
        return leaf(column, raw, mode)


def _arrow(source: Source, names: Sequence[str]) -> list[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(source, ArrowRows):
        table = source.rows
    else:
        assert isinstance(source, ParquetFiles | ParquetObjects)
        files: Iterable[Any]
        files = source.paths if isinstance(source, ParquetFiles) else map(object_store.opened, source.objects)
        table = pa.concat_tables(pq.ParquetFile(file).read(columns=list(names)) for file in files)
        if isinstance(source, ParquetObjects):
            object_store.check(source.objects)  # else it may have read parts of two contents
    return [table.column(name) for name in names]


def _values(column: Any, stored: StoredType) -> list[Any]:
    import pyarrow as pa

    if stored.family == "timestamp":
        return [None if n is None else _microseconds(n, column.type.unit) for n in column.cast(pa.int64()).to_pylist()]
    if stored.family == "date":
        return list(column.cast(pa.date32()).cast(pa.int32()).to_pylist())
    return list(column.to_pylist())


def _microseconds(count: int, unit: str) -> int:
    """A timestamp in microseconds; parts of one are cut off."""
    if unit == "ns":
        return count // 1000 if count >= 0 else -(-count // 1000)
    return count * {"s": 1_000_000, "ms": 1_000, "us": 1}[unit]


def owner(raw: Any, stored: StoredType, *, shared: bool) -> Any:
    """The id of a person, None if there is none; `shared`: as a text that ids of other types can be compared with."""
    if raw is None or raw != raw:
        return None
    if stored.family == "float":
        raw = float(raw) + 0.0
        if shared and abs(raw) < 1e18 and raw == int(raw):
            raw = int(raw)
    if shared and isinstance(raw, Decimal):
        whole, point, fraction = f"{raw:f}".partition(".")
        return (whole + point + fraction.rstrip("0")).removesuffix(".")
    return str(raw) if shared or stored.family == "uuid" else raw


def _class(stored: StoredType) -> object:
    if stored.fits_int64:
        return "integer"
    return "text" if stored.family in ("text", "uuid", "nothing") else stored.named("")


@dataclass(frozen=True, slots=True)
class Lines:
    """The rows of operators over some tables; with `every`, conditions and joins leave no row out."""

    tables: Mapping[str, Stored]
    public: Mapping[str, Stored]
    every: bool = False

    def table(self, schema: Schema | PublicSchema) -> Stored:
        """The engine's own table for a declaration; the declaration must be the one it was opened with."""
        known = (self.tables if isinstance(schema, Schema) else self.public).get(schema.name)
        if known is None or known.schema != schema:
            raise InternalError(f"the engine has no table {schema.name!r} with this declaration")
        return known

    def of(self, operator: o.Operator) -> list[Line]:
        """The rows of a statement's operator."""
        read = [(self.table(table), table.protect) for table in o.tables(operator)]
        ids = {_class(table.types[who.id]) for table, who in read if isinstance(who, Person)}
        return self._of(operator, shared=len(ids) > 1)

    def _of(self, operator: o.Operator, *, shared: bool) -> list[Line]:
        match operator:
            case o.Scan(schema):
                return self._scan(schema, shared=shared)
            case o.Where(inner, condition):
                types = inner.types()
                met = [(line, evaluate(condition, line[1], "value", types)) for line in self._of(inner, shared=shared)]
                return [line for line, is_met in met if is_met is True or self.every]
            case o.WithColumns(inner, columns):
                types, defined = inner.types(), dict(columns)
                return [(who, _with(read, defined, types)) for who, read in self._of(inner, shared=shared)]
            case o.JoinPublic(inner, public, on, how):
                return self._join_public(self._of(inner, shared=shared), public, on, left=how == "left")
            case o.JoinPerson(left, right):
                mine = left.types()
                others: dict[Any, list[Read]] = {}
                for who, read in self._of(right, shared=shared):
                    others.setdefault(who, []).append(read)
                return [
                    (who, _either(mine, read, other))
                    for who, read in self._of(left, shared=shared)
                    if who is not None or self.every
                    for other in others.get(who, ())
                ]
            case o.PerPerson(inner, columns_, keys_):
                people: dict[Any, list[Read]] = {}
                wanted, keys, types = dict(columns_), dict(keys_), inner.types()
                for who, read in self._of(inner, shared=shared):
                    if who is not None or self.every:
                        by = tuple(value_of(evaluate(key, read, "key", types)) for key in keys.values())
                        people.setdefault((who, *by), []).append(read)
                return [(who, _per_person(wanted, keys, rows, types)) for (who, *_), rows in people.items()]
        raise AssertionError(operator)

    def _scan(self, schema: Schema, *, shared: bool) -> list[Line]:
        table, columns = self.table(schema), dict(schema.columns)
        person = schema.protect.id if isinstance(schema.protect, Person) else None
        names = list(dict.fromkeys([*columns, *([person] if person else [])]))

        def reads(row: Mapping[str, Any]) -> Read:
            return lambda name, mode: table.read(columns[name], name, row, mode)

        return [
            (None if person is None else owner(row[person], table.types[person], shared=shared), reads(row))
            for row in table.rows(names)
        ]

    def keys(self, schema: PublicSchema) -> list[tuple[Any, dict[str, Any]]]:
        """The rows of a public table, each with its key."""
        table, kinds = self.table(schema), dict(schema.columns)
        key = Column(kinds[schema.key])
        return [(_comparable(table.read(key, schema.key, row, "key")), row) for row in table.rows(list(kinds))]

    def _join_public(self, lines: list[Line], schema: PublicSchema, on: str, *, left: bool) -> list[Line]:
        by_key = dict(self.keys(schema))
        nothing = dict.fromkeys(name for name, _ in schema.columns)
        joined = []
        for who, read in lines:
            mine = _comparable(read(on, "key"))
            row = None if mine is None else by_key.get(mine)
            if row is not None or left or self.every:
                joined.append((who, self._joined(read, row or nothing, schema)))
        return joined

    def _joined(self, read: Read, row: Mapping[str, Any], schema: PublicSchema) -> Read:
        table, kinds = self.table(schema), {name: kind for name, kind in schema.columns if name != schema.key}

        def both(name: str, mode: str) -> Any:
            return table.read(Column(kinds[name]), name, row, mode) if name in kinds else read(name, mode)

        return both


def value_of(number: Any) -> Any:
    """A value as it is compared with others: a number without its unit."""
    return number.value if isinstance(number, Number) else number


def _comparable(number: Any) -> Any:
    value = value_of(number)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def _with(read: Read, defined: Mapping[str, e.Node], types: e.Types) -> Read:
    return lambda name, mode: evaluate(defined[name], read, mode, types) if name in defined else read(name, mode)


def _either(mine: Mapping[str, Any], left: Read, right: Read) -> Read:
    return lambda name, mode: (left if name in mine else right)(name, mode)


def _per_person(wanted: Mapping[str, o.OfPerson], keys: Mapping[str, e.Node], rows: list[Read], types: e.Types) -> Read:
    def read(name: str, mode: str) -> Any:
        if name in keys:
            return evaluate(keys[name], rows[0], "key", types)
        what = wanted[name]
        if what.expression is None:
            return of_person("count", [Fraction(1)] * len(rows), None)
        values = [evaluate(what.expression, each, mode, types) for each in rows]
        return of_person(what.function, values, values[0])

    return read
