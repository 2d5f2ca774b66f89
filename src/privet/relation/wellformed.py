"""Records that come from outside, made only if those who build such records would have made them.

The builders (`pv.number`, `where`, `join`, ...) refuse what has no meaning. A record read from a certificate has not
passed through them, so it is built again here, and must come out the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from privet.distances import Person
from privet.errors import QueryError, UserError
from privet.relation import expressions as e
from privet.relation import language, operators, schema, statement
from privet.relation import types as t
from privet.relation.expressions import LARGEST
from privet.relation.language import Expr
from privet.relation.narrowing import spanned
from privet.relation.rules import as_number
from privet.relation.types import MOST_GROUPS
from privet.relation.units import LIMIT

MOST_TABLES = 16
"""How many private tables one query may read."""

_Record = TypeVar("_Record")


def rebuilt(made: type, values: dict[str, Any]) -> Any:
    """A record of this class, of fields that have their types; refused if no builder would make it.

    Example:
        >>> rebuilt(e.Bin, {"of": e.Column("age"), "edges": ()})
        Traceback (most recent call last):
        privet.errors.QueryError: bins need two edges or more. ...
    """
    record = _person(**values) if made is Person else made(**values)
    build = _BUILD.get(made)
    if build is not None and build(record) != record:
        raise UserError("this is not what its parts make. Build it again from the query")
    return record


def _person(*, id: str, max_rows: int, max_groups: int | None, max_rows_per_group: int | None) -> Person:  # noqa: A002
    if max_groups is None and max_rows_per_group is None:
        return Person(id, max_rows=max_rows)
    made = Person(id, max_groups=max_groups, max_rows_per_group=max_rows_per_group)
    if made.max_rows != max_rows:
        raise UserError(f"max_rows must be {made.max_rows}: so many groups times rows")
    return made


# --- what is declared -----------------------------------------------------------------------------------


def _schema(of: schema.Schema) -> schema.Schema:
    _different(of.columns, "columns")
    return schema.Schema.declare(
        of.name, protect=of.protect, columns=dict(of.columns), adjacency=of.adjacency, rows=of.rows
    )


def _declared(of: schema.Column) -> schema.Column:
    required = of.default is not None
    match of.type:
        case t.NumberType(integer=True, step=None) as kind:
            return schema.integer(kind.lower, kind.upper, required=required)  # type: ignore[arg-type]
        case t.NumberType() as kind:
            return schema.number(kind.lower, kind.upper, step=kind.step, required=required)
        case t.BooleanType():
            return schema.boolean(required=required)
        case t.KeyType() as kind:
            return schema.keys(*kind.values, other=kind.other)
        case t.TextType():
            return schema.text()
        case t.TimeType() as kind:
            return (schema.timestamp if kind.timed else schema.date)(kind.first, kind.last)


def _public(of: schema.PublicSchema) -> schema.PublicSchema:
    schema.called(of.name, "table")
    _different(of.columns, "columns")
    if of.key not in dict(of.columns):
        raise UserError(f"the key {of.key[:40]!r} is none of the columns")
    if not re.fullmatch(r"[0-9a-f]{64}", of.digest):
        raise UserError("the digest must be 64 hexadecimal digits")
    for _, kind in of.columns:
        if isinstance(kind, t.NumberType) and (kind.wide or kind.step is not None):
            raise UserError("a public number has its own range, and no step")
        if isinstance(kind, t.TimeType) and kind.unit is not None:
            raise UserError("a public date is not cut to a unit")
    return of


def _number_type(of: t.NumberType) -> t.NumberType:
    whole = of.lower.denominator == of.upper.denominator == 1
    if of.lower > of.upper or max(abs(of.lower), abs(of.upper)) > LARGEST or (of.integer and not whole):
        raise UserError("the bounds of a number are lower..upper, whole ones for an integer")
    if of.step is not None and of.step <= 0:
        raise UserError("a step is greater than 0")
    if of.unit <= 0 or of.range.largest >= LIMIT:
        raise UserError("a unit is greater than 0, and the bounds are at most 2^126 of it")
    return of


def _key_type(of: t.KeyType) -> t.KeyType:
    schema.keys(*of.values, other=of.other)
    return of


def _time_type(of: t.TimeType) -> t.TimeType:
    if isinstance(of.first, datetime) != isinstance(of.last, datetime):
        raise UserError("a range of dates is of two dates, or of two timestamps")
    (schema.timestamp if of.timed else schema.date)(of.first, of.last)
    return of


# --- expressions, operators, statements -----------------------------------------------------------------


def _logic(of: e.Logic) -> e.Logic:
    return _needs(of, of.of)


def _case(of: e.Case) -> e.Case:
    return _needs(of, of.branches)


def _of_person(of: operators.OfPerson) -> operators.OfPerson:
    if of.of is None and of.function != "count":
        raise QueryError(f"{of.function} needs an expression")
    return of


def _where(of: operators.Where) -> operators.Where:
    return operators.where(of.of, of.condition)


def _with_columns(of: operators.WithColumns) -> operators.WithColumns:
    _different(_needs(of, of.columns).columns, "columns")
    of.types()
    return of


def _join_public(of: operators.JoinPublic) -> operators.JoinPublic:
    return operators.join_public(of.of, of.table, on=of.on, how=of.how)


def _join_person(of: operators.JoinPerson) -> operators.JoinPerson:
    if _scans(of) > MOST_TABLES:
        raise QueryError(f"a query reads at most {MOST_TABLES} private tables")
    return operators.join_person(of.left, of.right)


def _scans(of: operators.Operator) -> int:
    match of:
        case operators.Scan():
            return 1
        case operators.JoinPerson(left, right):
            return _scans(left) + _scans(right)
        case _:
            return _scans(of.of)


def _per_person(of: operators.PerPerson) -> operators.PerPerson:
    _different(of.columns, "columns")
    return operators.per_person(of.of, of.columns)


def _code(of: statement.Code) -> statement.Code:
    if of.width < 1 or of.step <= 0:
        raise QueryError("a lattice has steps greater than 0, and at least one")
    return of


def _place(of: statement.Place) -> statement.Place:
    if of.size != len(of.of.edges) - 1:
        raise QueryError("a row has one place for each bin")
    return of


def _at(of: statement.At) -> statement.At:
    if not 0 <= of.index < of.of.size:
        raise QueryError("there is no such bin")
    return of


def _capped(*names: str) -> Callable[[Any], Any]:
    def build(of: Any) -> Any:
        for name in names:
            if not 1 <= getattr(of, name) <= 2**30:
                raise QueryError(f"{name} must be in 1..2^30")
        return of

    return build


def _statement(of: statement.Statement) -> statement.Statement:
    types = _needs(of, of.tallies).of.types()
    groups = 1
    for place, key in enumerate(of.keys):
        kind = key.type(types)
        groups *= len(kind.keys() if of.values is None else _some_of(kind, of.values[place]))
        if groups > MOST_GROUPS:
            raise QueryError(f"these keys make more than {MOST_GROUPS:,} groups")
    if of.values is not None and len(of.values) != len(of.keys):
        raise QueryError("every key has its values")
    for tally in of.tallies:
        match tally:
            case statement.Present(read) | statement.Total(read) | statement.Squares(read) | statement.At(read):
                kind = read.of.type(types)
                if isinstance(read, statement.Code):
                    as_number(kind, "a total")
    return of


def _some_of(kind: t.Type, values: tuple[t.KeyValue, ...]) -> tuple[t.KeyValue, ...]:
    """Values of a key, if they are some of those that it has, in their order."""
    if values:
        every = iter(spanned(kind, values).keys())
        if all(any(type(value) is type(other) and value == other for other in every) for value in values):
            return values
    raise QueryError("the values of a key are some of those that it has, in their order")


def _needs(of: _Record, parts: Sequence[object]) -> _Record:
    if parts:
        return of
    raise QueryError("this needs at least one part")


def _different(named: Sequence[tuple[str, object]], what: str) -> None:
    names = [schema.called(name, "column") for name, _ in named]
    if len(set(names)) < len(names):
        raise QueryError(f"two of the {what} have the same name")


_BUILD: dict[type, Callable[[Any], Any]] = {
    schema.Schema: _schema,
    schema.Column: _declared,
    schema.PublicSchema: _public,
    t.NumberType: _number_type,
    t.KeyType: _key_type,
    t.TimeType: _time_type,
    e.Column: lambda of: language.col(of.name).node,
    e.Constant: lambda of: language.lit(of.value).node,
    e.Clip: lambda of: Expr(of.of).clip(of.lower, of.upper).node,
    e.StartsWith: lambda of: Expr(of.of).starts_with(of.prefix).node,
    e.Bin: lambda of: language.bins(Expr(of.of), of.edges).node,
    e.Logic: _logic,
    e.Case: _case,
    operators.OfPerson: _of_person,
    operators.Where: _where,
    operators.WithColumns: _with_columns,
    operators.JoinPublic: _join_public,
    operators.JoinPerson: _join_person,
    operators.PerPerson: _per_person,
    statement.Code: _code,
    statement.Place: _place,
    statement.At: _at,
    statement.AtMostRows: _capped("rows"),
    statement.AtMostGroups: _capped("groups", "rows"),
    statement.PeopleInGroups: _capped("groups"),
    statement.Statement: _statement,
}
