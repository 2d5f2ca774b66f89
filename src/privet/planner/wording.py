"""A question in one line, for readers of a ledger, whatever language it was written in."""

from __future__ import annotations

from privet.planner.explain import of_person
from privet.tables import caps
from privet.tables.expressions.nodes import Column
from privet.tables.expressions.rendering import show
from privet.tables.groups import named
from privet.tables.operators import (
    JoinPerson,
    JoinPublic,
    Operator,
    PerPerson,
    Scan,
    Where,
    WithColumns,
)
from privet.tables.query import Key, Query


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
    keys = list(map(_key, query.keys))
    by = f".group_by({', '.join(keys)})" if keys else ""
    if query.sets is not None:
        by = f".{named(query.sets, keys)}"
    asked = ", ".join(f"{name}={what}" for name, what in query.aggregates)
    cap = "" if query.at_most is None else f".{caps.call(query.at_most)}"
    return f"{_rows(query.input)}{cap}{by}.agg({asked}){query.arrangement}"


def _key(key: Key) -> str:
    return key.name if key.expression == Column(key.name) else f"{key.name}={show(key.expression)}"


def _rows(of: Operator) -> str:
    match of:
        case Scan(table):
            return table.name
        case Where(inner, condition):
            return f"{_rows(inner)}.where({show(condition)})"
        case WithColumns(inner, columns):
            return f"{_rows(inner)}.with_columns({', '.join(f'{name}={show(node)}' for name, node in columns)})"
        case JoinPublic(inner, public, on, how):
            return f"{_rows(inner)}.join({public.name}, on={on!r}, how={how!r})"
        case JoinPerson(left, right):
            return f"{_rows(left)}.join({_rows(right)})"
        case PerPerson(inner, columns, keys):
            by = [name if node == Column(name) else show(node) for name, node in keys]
            return f"{_rows(inner)}.per_person({', '.join([*by, *(f'{name}={of_person(v)}' for name, v in columns)])})"
    return type(of).__name__
