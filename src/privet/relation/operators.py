"""What is done to tables before anything is counted.

Every operator is *person-local*: each row that comes out belongs to one person (or is one protected row), and depends
on that person's rows and on public data only. So whatever stands here, bounding (the last step before rows are
counted) leaves at most k rows of each person, and no person's rows depend on another's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from privet.distances import Adjacency, EachRow, Person, Protected
from privet.errors import QueryError
from privet.exact import Exact
from privet.relation.expressions import Node, Types
from privet.relation.language import show
from privet.relation.rules import as_number, comparable
from privet.relation.schema import CEILING, PublicSchema, Schema
from privet.relation.types import BooleanType, NumberType, Type
from privet.relation.units import Range, exactly, mean, sized, summable
from privet.spelling import there_are


class Columns(dict[str, Type]):
    """The types of columns by name; those that are `public` are as they stand in a public table: nothing is clamped."""

    __slots__ = ("public",)

    def __init__(self, types: Types, public: frozenset[str] = frozenset()) -> None:
        super().__init__(types)
        self.public = public


def public_columns(types: Types) -> frozenset[str]:
    """Which of these columns come from public tables, as far as it is known."""
    return types.public if isinstance(types, Columns) else frozenset()


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a declared table."""

    table: Schema

    def types(self) -> Types:
        return {name: column.type for name, column in self.table.columns}


@dataclass(frozen=True, slots=True)
class Where:
    """The rows for which a condition is true (not false, not missing)."""

    of: Operator
    condition: Node

    def types(self) -> Types:
        return self.of.types()


@dataclass(frozen=True, slots=True)
class WithColumns:
    """The rows with further columns; a name that exists is replaced."""

    of: Operator
    columns: tuple[tuple[str, Node], ...]

    def types(self) -> Types:
        before = self.of.types()
        made = {name: node.type(before) for name, node in self.columns}
        return Columns({**before, **made}, public_columns(before) - made.keys())


@dataclass(frozen=True, slots=True)
class JoinPublic:
    """Each row with the one row of a public table that has its key; `left` keeps rows without one."""

    of: Operator
    table: PublicSchema
    on: str
    how: Literal["inner", "left"]

    def types(self) -> Types:
        added = {name: kind for name, kind in self.table.columns if name != self.table.key}
        if self.how == "left":
            added = {name: replace(kind, missing=True) for name, kind in added.items()}
        before = self.of.types()
        return Columns({**before, **added}, public_columns(before) | added.keys())


@dataclass(frozen=True, slots=True)
class JoinPerson:
    """Every row of a person on the left with every row of the same person on the right.

    Claim: `join_person` makes one value of all orders and associations of a chain of joins.
    """

    left: Operator
    right: Operator

    def types(self) -> Types:
        left, right = self.left.types(), self.right.types()
        return Columns({**left, **right}, public_columns(left) | public_columns(right))


@dataclass(frozen=True, slots=True)
class OfPerson:
    """A value of one person: the number of their rows, or the sum, mean, least or greatest of an expression."""

    function: Literal["count", "sum", "mean", "min", "max"]
    of: Node | None = None

    def type(self, schema: Types) -> Type:
        if self.function == "count":
            if self.of is not None:
                self.of.type(schema)
            return NumberType(Exact(0), Exact(CEILING), integer=True, missing=False, wide=True)
        assert self.of is not None
        number = as_number(self.of.type(schema), self.function)
        if self.function in ("min", "max"):
            return number
        if number.wide:
            raise QueryError(f"the {self.function} of {show(self.of)} needs bounds. Write: .clip(lower, upper)")
        if self.function == "mean":
            return NumberType.of(mean(number.range, CEILING).result, rounded=True, missing=number.missing)
        each = number.range.coarser(summable(number.range, CEILING))
        total = sized(Range(each.unit, min(each.least, 0) * CEILING, max(each.most, 0) * CEILING))
        return NumberType.of(total, rounded=number.rounded, missing=number.missing, wide=True)


@dataclass(frozen=True, slots=True)
class PerPerson:
    """One row for each person, with values computed from their rows."""

    of: Operator
    columns: tuple[tuple[str, OfPerson], ...]

    def types(self) -> Types:
        before = self.of.types()
        return {name: value.type(before) for name, value in self.columns}


Operator = Scan | Where | WithColumns | JoinPublic | JoinPerson | PerPerson
"""Every kind of operator there is."""


def steps(of: Operator) -> Iterator[Operator]:
    """Every step from the tables to these rows, those below `per_person` too: the deepest first."""
    match of:
        case Scan():
            pass
        case JoinPerson(left, right):
            yield from steps(left)
            yield from steps(right)
        case _:
            yield from steps(of.of)
    yield of


def expressions(of: Operator) -> Iterator[tuple[Node, Operator]]:
    """Every expression of these steps, with the rows that it reads: the deepest first."""
    for step in steps(of):
        match step:
            case Where(rows, condition):
                yield condition, rows
            case WithColumns(rows, columns):
                yield from ((node, rows) for _, node in columns)
            case PerPerson(rows, values):
                yield from ((value.of, rows) for _, value in values if value.of is not None)


def tables(of: Operator) -> tuple[Schema, ...]:
    """The private tables that are read, in order."""
    match of:
        case Scan(table):
            return (table,)
        case JoinPerson(left, right):
            return tuple(dict.fromkeys((*tables(left), *tables(right))))
        case _:
            return tables(of.of)


def public_tables(of: Operator) -> tuple[PublicSchema, ...]:
    """The public tables that are joined."""
    match of:
        case Scan():
            return ()
        case JoinPerson(left, right):
            return (*public_tables(left), *public_tables(right))
        case JoinPublic(inner, table):
            return (*public_tables(inner), table)
        case _:
            return public_tables(of.of)


def sides(of: Operator) -> tuple[Operator, ...]:
    """What a chain of joins on the person puts together."""
    return (*sides(of.left), *sides(of.right)) if isinstance(of, JoinPerson) else (of,)


def depth(of: Operator) -> int:
    """How many steps lie between the tables and the rows."""
    steps = 1
    while not isinstance(of, Scan):
        if isinstance(of, JoinPerson):
            return steps + max(depth(of.left), depth(of.right))
        of = of.of
        steps += 1
    return steps


def protected(of: Operator) -> Protected:
    """What is protected: as the first table declares it. Caps differ between tables; `caps.holding` has them all."""
    return tables(of)[0].protect


def adjacency(of: Operator) -> Adjacency:
    """How neighbours differ; all tables of one dataset agree."""
    return tables(of)[0].adjacency


def one_row_each(of: Operator) -> bool:
    """Whether every person has at most one row, whatever the data: after `per_person`, until the next join."""
    match of:
        case PerPerson():
            return True
        case Scan() | JoinPerson():
            return False
        case _:
            return one_row_each(of.of)


def keeps_all_rows(of: Operator) -> bool:
    """Whether every row comes out, and no row more: no filter, no inner join, nothing per person."""
    match of:
        case Scan(table):
            return isinstance(table.protect, EachRow)
        case WithColumns(inner):
            return keeps_all_rows(inner)
        case JoinPublic(inner, how="left"):
            return keeps_all_rows(inner)
        case _:
            return False


# --- building, with checks ----------------------------------------------------------------------


def where(of: Operator, condition: Node) -> Where:
    """The filter, if its condition is one."""
    kind = condition.type(of.types())
    if not isinstance(kind, BooleanType):
        raise QueryError(f'where needs a condition, and this is {kind}. Write, for example: pv.col("age") >= 18')
    return Where(of, condition)


def join_public(of: Operator, table: PublicSchema, *, on: str, how: str = "inner") -> JoinPublic:
    """The join with a public table on its unique key."""
    if how not in ("inner", "left"):
        raise QueryError(f"how must be 'inner' or 'left', not {how!r}.")
    types = of.types()
    if on not in types:
        raise QueryError(f"there is no column {on!r} to join on. {there_are(on, types)}")
    theirs = dict(table.columns)[table.key]
    if not comparable(types[on], theirs):
        raise QueryError(f"{on!r} is {types[on]}, the key {table.key!r} of {table.name!r} is {theirs}: never equal.")
    mine = types[on]
    if isinstance(mine, NumberType) and isinstance(theirs, NumberType) and not exactly(mine.range, theirs.range):
        raise QueryError(
            f"{on!r} and the key {table.key!r} of {table.name!r} can't be compared exactly: in a common unit they "
            "would need more than 126 bits. Join on a column as it is declared"
        )
    _no_clash(types, {name for name, _ in table.columns if name != table.key}, table.name)
    return JoinPublic(of, table, on, "left" if how == "left" else "inner")


def join_person(left: Operator, right: Operator) -> JoinPerson:
    """The join of two tables of the same people, the same in whatever order they are given.

    No column is on two sides, so the least name of each side's columns tells them apart, and sorting is unambiguous.
    """
    if not isinstance(protected(left), Person) or not isinstance(protected(right), Person):
        raise QueryError(
            "two private tables can be joined on the person only, and one of them protects each row. "
            'Write, for example: protect=pv.person("person_id", max_rows=3) for both'
        )
    if adjacency(left) is not adjacency(right):
        raise QueryError("two tables of the same people must declare the same adjacency.")
    _no_clash(left.types(), set(right.types()), tables(right)[0].name)
    return reduce(JoinPerson, sorted((*sides(left), *sides(right)), key=_place))  # type: ignore[return-value]


def _place(side: Operator) -> tuple[str, str]:
    return tables(side)[0].name, min(side.types())


def per_person(of: Operator, columns: tuple[tuple[str, OfPerson], ...]) -> PerPerson:
    """The aggregation to one row for each person."""
    if not isinstance(protected(of), Person):
        raise QueryError(
            "per_person needs a table that protects persons; this one protects each row. "
            'Write, for example: protect=pv.person("person_id", max_rows=3)'
        )
    if not columns:
        raise QueryError('per_person needs a value. Write, for example: per_person(total=pv.sum("amount"))')
    made = PerPerson(of, columns)
    made.types()
    return made


def _no_clash(mine: Types, theirs: set[str], name: str) -> None:
    twice = sorted(set(mine) & theirs)
    if twice:
        raise QueryError(
            f"both sides of the join with {name!r} have a column {twice[0]!r}. "
            "Declare it in one of them only, or make it under another name with with_columns"
        )
