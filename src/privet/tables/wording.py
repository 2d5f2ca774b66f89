"""Tables, rows and questions in one line, for ledgers, errors and notebooks, in the words of the Python methods."""

from __future__ import annotations

from collections.abc import Iterable

from privet.privacy.adjacency import Person
from privet.tables import caps, schema
from privet.tables.expressions.nodes import Column
from privet.tables.expressions.rendering import show
from privet.tables.groups import named
from privet.tables.operators import (
    JoinPerson,
    JoinPublic,
    OfPerson,
    Operator,
    PerPerson,
    Scan,
    Where,
    WithColumns,
)
from privet.tables.query import Key, Query
from privet.tables.schema import Schema
from privet.tables.types import KeyType, Type

_KEYS = 8  # that are shown
_FEW = 6  # columns that are shown


def worded(query: Query) -> str:
    """The whole question in one line.

    Example:
        >>> import pyarrow as pa
        >>> import privet as pv
        >>> rows = pa.table({"who": [1], "age": [30]})
        >>> people = pv.table(
        ...     "people", rows, protect=pv.person("who", max_rows=3), columns={"age": pv.integer(0, 110)}
        ... )
        >>> print(worded(people.where(pv.col("age") >= 18).agg(n=pv.count())))
        people.where(age >= 18).agg(n=count())
        >>> print(worded(people.cap(max_rows=1).agg(n=pv.count())))
        people.cap(max_rows=1).agg(n=count())
    """
    keys = list(map(key, query.keys))
    by = f".group_by({', '.join(keys)})" if keys else ""
    if query.sets is not None:
        by = f".{named(query.sets, keys)}"
    asked = ", ".join(f"{name}={what}" for name, what in query.aggregates)
    cap = "" if query.at_most is None else f".{caps.call(query.at_most)}"
    return f"{rows(query.input)}{cap}{by}.agg({asked}){query.arrangement}"


def of_person(value: OfPerson) -> str:
    """A value per person."""
    return f"{value.function}({'' if value.expression is None else show(value.expression)})"


def protected(table: Schema) -> str:
    """What a table protects, and how many rows of it are used."""
    unit = table.protect
    if not isinstance(unit, Person):
        return "protects each row"
    if unit.max_groups is None:
        return f"protects each {unit.id}; uses at most {caps.some(unit.max_rows, 'row')} of each"
    of_each = caps.some(unit.max_rows_per_group or 1, "row")
    return f"protects each {unit.id}; uses at most {caps.some(unit.max_groups, 'group')} of each, with {of_each} each"


def values(kind: Type, *, every: bool = False) -> str:
    """The values of a type; of many keys the first few, unless every one is wanted."""
    if not isinstance(kind, KeyType):
        return str(kind)
    shown = kind.values if every else kind.values[:_KEYS]
    more = f", ... ({len(kind.values):,} keys)" if len(shown) < len(kind.values) else ""
    other = f"; other values count as {kind.other}" if kind.other is not None else ""
    return f"{', '.join(map(str, shown))}{more}{other}"


def is_shortened(column: schema.Column) -> bool:
    """Whether `declared` shows only some of its keys."""
    return isinstance(column.type, KeyType) and len(column.type.values) > _KEYS


def declared(column: schema.Column, *, every: bool = False) -> str:
    """The values of a declared column, and the column that its keys lie within; with every key, which lie in which."""
    if column.within is None:
        return values(column.type, every=every)
    above = f"each within one {column.within.column}"
    if not every or not isinstance(column.type, KeyType):
        return f"{values(column.type)}; {above}"
    lists = column.within.grouped(column.type.values)
    other = f"; other values count as {column.type.other}" if column.type.other is not None else ""
    listed = "; ".join(f"{parent}: {', '.join(map(str, some))}" for parent, some in lists.items())
    return f"{listed}{other}; {above}"


def few(names: Iterable[str]) -> str:
    """Names, or the first few of them.

    Example:
        >>> few(["a", "b"]), few("abcdefgh")
        ('a, b', 'a, b, c, d, e, f, ... 2 more')
    """
    every = list(names)
    return ", ".join([*every[:_FEW], *([f"... {len(every) - _FEW} more"] if len(every) > _FEW else [])])


def key(of: Key) -> str:
    """A key: its name, and its expression if that is another."""
    return of.name if show(of.expression) == of.name else f"{of.name}={show(of.expression)}"


def rows(of: Operator) -> str:
    """The rows that a question reads."""
    match of:
        case Scan(table):
            return table.name
        case Where(inner, condition):
            return f"{rows(inner)}.where({show(condition)})"
        case WithColumns(inner, columns):
            return f"{rows(inner)}.with_columns({', '.join(f'{name}={show(node)}' for name, node in columns)})"
        case JoinPublic(inner, public, on, how):
            return f"{rows(inner)}.join({public.name}, on={on!r}, how={how!r})"
        case JoinPerson(left, right):
            return f"{rows(left)}.join({rows(right)})"
        case PerPerson(inner, columns, keys):
            by = [name if node == Column(name) else show(node) for name, node in keys]
            return f"{rows(inner)}.per_person({', '.join([*by, *(f'{name}={of_person(v)}' for name, v in columns)])})"
    return type(of).__name__
