"""Operators on tables, applied before anything is counted.

Every operator is *person-local*: each output row belongs to one person (or is one protected row), and depends only on
that person's rows and on public data. So whatever the operators are, bounding (the last step before rows are counted)
keeps at most k rows per person, and no person's rows depend on another's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from typing import Any, Literal, NoReturn, get_args

from privet.errors import QueryError, Remedy, Subject, write
from privet.names.spelling import there_are
from privet.privacy.adjacency import Adjacency, EachRow, Person, Protected
from privet.tables.expressions.nodes import Node, Types
from privet.tables.expressions.trees import DEEPEST, sized
from privet.tables.expressions.typing_rules import CONDITION, comparable
from privet.tables.of_person import OfPerson as OfPerson
from privet.tables.schema import PublicSchema, Schema, different
from privet.tables.types import BooleanType, NumberType, Type
from privet.tables.units import exactly

MOST_TABLES = 16
"""Maximum number of private tables that one query can read."""


class Columns(dict[str, Type]):
    """The types of columns by name; `public` columns come from public tables, or are keys: they are not clamped."""

    __slots__ = ("public",)

    def __init__(self, types: Types, public: frozenset[str] = frozenset()) -> None:
        super().__init__(types)
        self.public = public

    def __reduce__(self) -> tuple[Any, ...]:
        return Columns, (dict(self), self.public)

    def _fixed(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the columns of rows can't be changed")

    __setitem__ = __delitem__ = __ior__ = update = pop = popitem = clear = setdefault = _fixed


def public_columns(types: Types) -> frozenset[str]:
    """The columns that are known to come from public tables."""
    return types.public if isinstance(types, Columns) else frozenset()


@dataclass(frozen=True, slots=True)
class _Step:
    """A step from tables to rows: it validates itself when constructed, and stores the types of its columns."""

    _types: Types = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)
    """The number of steps from the tables to these rows, including this one."""

    def types(self) -> Types:
        """The columns, and their types."""
        return self._types

    def _set_types(self, types: Types, *parents: Operator) -> None:
        deep = 1 + max((parent.depth for parent in parents), default=0)
        if deep > DEEPEST:
            raise QueryError(
                f"a query can have at most {DEEPEST} steps",
                remedy=write(
                    "where(first, second)",
                    sql="WHERE first AND second",
                    advice="Put several conditions into one step",
                ),
            )
        object.__setattr__(self, "_types", types)
        object.__setattr__(self, "depth", deep)


@dataclass(frozen=True, slots=True)
class Scan(_Step):
    """The rows of a declared table."""

    table: Schema

    def __post_init__(self) -> None:
        if not isinstance(self.table, Schema):
            raise QueryError(f"a scan needs a declared table, not {type(self.table).__name__}")
        self._set_types(Columns({name: column.type for name, column in self.table.columns}))


@dataclass(frozen=True, slots=True)
class Where(_Step):
    """The rows for which a condition is true (not false, not missing)."""

    input: Operator
    condition: Node

    def __post_init__(self) -> None:
        types = _rows(self.input)
        kind = sized(self.condition).type(types)
        if not isinstance(kind, BooleanType):
            raise QueryError(f"where needs a condition, but this is {kind}", remedy=CONDITION)
        self._set_types(types, self.input)


@dataclass(frozen=True, slots=True)
class WithColumns(_Step):
    """The rows with further columns, which replace existing ones of the same name."""

    input: Operator
    columns: tuple[tuple[str, Node], ...]

    def __post_init__(self) -> None:
        before = _rows(self.input)
        if not self.columns:
            raise QueryError(
                "with_columns needs a column", remedy=write('with_columns(rate=pv.col("pay") / pv.col("hours"))')
            )
        different(self.columns)
        added = {name: sized(node).type(before) for name, node in self.columns}
        self._set_types(Columns({**before, **added}, public_columns(before) - added.keys()), self.input)


@dataclass(frozen=True, slots=True)
class JoinPublic(_Step):
    """Each row joined with the one row of a public table that has its key; `left` keeps rows without a match."""

    input: Operator
    table: PublicSchema
    on: str
    how: Literal["inner", "left"]

    def __post_init__(self) -> None:
        table, on = self.table, self.on
        if not isinstance(table, PublicSchema):
            raise QueryError(f"this join needs a public table, not {type(table).__name__}")
        if self.how not in ("inner", "left"):
            raise QueryError(f"how must be 'inner' or 'left', not {self.how!r}", subject=Subject("argument", "how"))
        before = _rows(self.input)
        if on not in before:
            raise QueryError(
                f"there is no column {on!r} to join on", allowed=there_are(on, before), subject=Subject("column", on)
            )
        own, key = before[on], dict(table.columns)[table.key]
        if not comparable(own, key):
            raise QueryError(
                f"{on!r} is {own}, but the key {table.key!r} of {table.name!r} is {key}, so they are never equal"
            )
        if isinstance(own, NumberType) and isinstance(key, NumberType) and not exactly(own.range, key.range):
            raise QueryError(
                f"{on!r} and the key {table.key!r} of {table.name!r} can't be compared exactly, because their "
                "common unit needs more than 126 bits",
                remedy=Remedy("Join on a declared column"),
            )
        added = {name: kind for name, kind in table.columns if name != table.key}
        if self.how == "left":
            added = {name: replace(kind, missing=True) for name, kind in added.items()}
        _no_clash(before, {*added}, table.name)
        self._set_types(Columns({**before, **added}, public_columns(before) | added.keys()), self.input)


@dataclass(frozen=True, slots=True)
class JoinPerson(_Step):
    """Every row of a person on the left joined with every row of the same person on the right.

    Claim: a chain of joins is the same value for every order of the arguments of `join_person`: tables are in the
    order of their names, joined from the left. Any other value is refused.
    """

    left: Operator
    right: Operator

    def __post_init__(self) -> None:
        _joinable(self.left, self.right)
        left, right = self.left.types(), self.right.types()
        if _scans(self.left) + _scans(self.right) > MOST_TABLES:
            raise QueryError(f"a query can read at most {MOST_TABLES} private tables")
        if isinstance(self.right, JoinPerson) or _place(sides(self.left)[-1]) > _place(self.right):
            raise QueryError("joined tables must be in the order of their names, joined from the left")
        self._set_types(Columns({**left, **right}, public_columns(left) | public_columns(right)), self.left, self.right)


@dataclass(frozen=True, slots=True)
class PerPerson(_Step):
    """One row for each person, or for each person and each value of some keys, computed from those rows.

    Claim: each row belongs to one person and depends on that person's rows alone. Without keys a person has one row;
    with keys at most `most`, one for each combination of their public values, where missing counts as one.
    """

    input: Operator
    columns: tuple[tuple[str, OfPerson], ...]
    keys: tuple[tuple[str, Node], ...] = ()
    """Expressions with public values; a number that is out of its range is missing, as in a group."""
    most: int = field(init=False, repr=False, compare=False)
    """How many rows one person can have."""

    def __post_init__(self) -> None:
        before = _rows(self.input)
        if not isinstance(protected(self.input), Person):
            raise QueryError(
                "values per person need a table that protects people, but this one protects each row", remedy=_PERSON
            )
        if not self.columns:
            raise QueryError(
                "per_person needs a value",
                remedy=write('per_person(total=pv.sum("amount"))', sql="SELECT person_id, SUM(amount) AS total"),
            )
        different((*self.keys, *self.columns))
        if not all(isinstance(value, OfPerson) for _, value in self.columns):
            raise QueryError("per person, only count, sum, mean, min and max are supported")
        kinds = {name: sized(node).type(before) for name, node in self.keys}
        object.__setattr__(self, "most", prod(len(kind.keys()) + 1 for kind in kinds.values()))
        keys = {name: replace(kind, missing=True) for name, kind in kinds.items()}
        values = {name: value.type(before) for name, value in self.columns}
        self._set_types(Columns({**keys, **values}, frozenset(keys)), self.input)  # keys are not clamped


Operator = Scan | Where | WithColumns | JoinPublic | JoinPerson | PerPerson
"""Every kind of operator."""


_KINDS = frozenset(get_args(Operator))


def _rows(operator: Operator) -> Types:
    """The columns of the rows that a step reads."""
    if type(operator) not in _KINDS:
        raise QueryError(f"this needs rows of a table, not {type(operator).__name__}")
    return operator.types()


def _scans(operator: Operator) -> int:
    """The number of private tables read, counting repeats."""
    match operator:
        case Scan():
            return 1
        case JoinPerson(left, right):
            return _scans(left) + _scans(right)
        case _:
            return _scans(operator.input)


def _place(side: Operator) -> tuple[str, str]:
    """The sort key of a side in a chain of joins: no column is on two sides, so the first column name is unique."""
    return tables(side)[0].name, min(side.types())


def steps(operator: Operator) -> Iterator[Operator]:
    """Every step from the tables to these rows, including those below `per_person`; the deepest first."""
    match operator:
        case Scan():
            pass
        case JoinPerson(left, right):
            yield from steps(left)
            yield from steps(right)
        case _:
            yield from steps(operator.input)
    yield operator


def expressions(operator: Operator) -> Iterator[tuple[Node, Operator]]:
    """Every expression of these steps, with the rows that it reads; the deepest first."""
    for step in steps(operator):
        match step:
            case Where(rows, condition):
                yield condition, rows
            case WithColumns(rows, columns):
                yield from ((node, rows) for _, node in columns)
            case PerPerson(rows, values, keys):
                yield from ((node, rows) for _, node in keys)
                yield from ((value.expression, rows) for _, value in values if value.expression is not None)


def tables(operator: Operator) -> tuple[Schema, ...]:
    """The private tables that are read, in order."""
    match operator:
        case Scan(table):
            return (table,)
        case JoinPerson(left, right):
            return tuple(dict.fromkeys((*tables(left), *tables(right))))
        case _:
            return tables(operator.input)


def public_tables(operator: Operator) -> tuple[PublicSchema, ...]:
    """The public tables that are joined."""
    match operator:
        case Scan():
            return ()
        case JoinPerson(left, right):
            return (*public_tables(left), *public_tables(right))
        case JoinPublic(inner, table):
            return (*public_tables(inner), table)
        case _:
            return public_tables(operator.input)


def sides(operator: Operator) -> tuple[Operator, ...]:
    """The sides of a chain of joins on the person."""
    return (*sides(operator.left), *sides(operator.right)) if isinstance(operator, JoinPerson) else (operator,)


def protected(operator: Operator) -> Protected:
    """What is protected, as the first table declares it. Caps differ between tables: see `caps.holding`."""
    return tables(operator)[0].protect


def adjacency(operator: Operator) -> Adjacency:
    """How neighbours differ; all tables of one dataset agree."""
    return tables(operator)[0].adjacency


def one_row_each(operator: Operator) -> bool:
    """Whether every person has at most one row, whatever the data: after `per_person`, until the next join."""
    match operator:
        case PerPerson(keys=keys):
            return not keys
        case Scan() | JoinPerson():
            return False
        case _:
            return one_row_each(operator.input)


def keeps_all_rows(operator: Operator) -> bool:
    """Whether every row stays, and none is added: no filter, no inner join, nothing per person."""
    match operator:
        case Scan(table):
            return isinstance(table.protect, EachRow)
        case WithColumns(inner):
            return keeps_all_rows(inner)
        case JoinPublic(inner, how="left"):
            return keeps_all_rows(inner)
        case _:
            return False


_PERSON = write('protect=pv.person("person_id", max_rows=3)', policy='protect = { person = "person_id", max_rows = 3 }')


def join_person(left: Operator, right: Operator) -> JoinPerson:
    """The join of two tables of the same people; the order of the arguments makes no difference."""
    _joinable(left, right)
    return reduce(JoinPerson, sorted((*sides(left), *sides(right)), key=_place))  # type: ignore[return-value]


def _joinable(left: Operator, right: Operator) -> None:
    """Refuse tables that can't be joined on the person."""
    left_types, right_types = _rows(left), _rows(right)
    if not isinstance(protected(left), Person) or not isinstance(protected(right), Person):
        raise QueryError(
            "private tables can be joined only on the person, but one of these protects each row", remedy=_PERSON
        )
    if adjacency(left) is not adjacency(right):
        raise QueryError("two tables of the same people must declare the same adjacency")
    _no_clash(left_types, {*right_types}, tables(right)[0].name)


def _no_clash(left: Types, right: set[str], name: str) -> None:
    twice = sorted(set(left) & right)
    if twice:
        raise QueryError(
            f"both sides of the join with {name!r} have a column {twice[0]!r}",
            subject=Subject("column", twice[0]),
            remedy=Remedy("Declare it in only one of them, or under another name"),
        )
