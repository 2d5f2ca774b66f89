"""Tables and relations: rows that a query reads, built step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from privet.errors import QueryError, Remedy, Subject, UserError, write
from privet.privacy.adjacency import Person, Protected
from privet.system.identity import Identity
from privet.tables import caps, groups, look, operators, wording
from privet.tables.aggregates import (
    Aggregate,
    Count,
    Mean,
    Sum,
)
from privet.tables.analysis import named_values
from privet.tables.caps import Cap
from privet.tables.discovered import groups_of
from privet.tables.expressions.fluent import Expr, column, node
from privet.tables.expressions.nodes import Column, Node
from privet.tables.expressions.rendering import show
from privet.tables.expressions.trees import joined
from privet.tables.expressions.typing_rules import CONDITION
from privet.tables.groups import GroupingSets
from privet.tables.operators import JoinPublic, OfPerson, Operator, PerPerson, Scan, Where, WithColumns
from privet.tables.query import Key, Query
from privet.tables.ranked import Extreme
from privet.tables.schema import PublicSchema, Schema

_NAMED = write("group_by(kind=...)")
_ELSEWHERE = {"groupby": "group_by", "aggregate": "agg", "query": "where", "select": "with_columns, or agg"}
"""What other libraries call the operations on rows."""


class _Rows:
    """The operations on rows, shared by tables and relations."""

    __slots__ = ()

    @property
    def relation(self) -> Relation:
        """The rows."""
        raise NotImplementedError

    if not TYPE_CHECKING:  # a type checker knows the names

        def __getattr__(self, name: str) -> NoReturn:
            """Say which name was meant."""
            what = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in ("count", "sum", "mean", "std", "variance", "histogram", "count_people", "median", "min", "max"):
                of = "" if name.startswith("count") else '"income"'
                what += f". Write, for example: people.agg(x=pv.{name}({of}))"
            elif name in _ELSEWHERE:
                what += f". Use {_ELSEWHERE[name]}"
            raise AttributeError(what)

    def where(self, *conditions: Expr) -> Relation:
        """Only the rows for which all conditions are true."""
        if not conditions:
            raise QueryError("where needs a condition", remedy=CONDITION)
        for condition in conditions:
            if not isinstance(condition, Expr | bool):
                raise QueryError(f"where needs a condition, not {condition!r}", remedy=CONDITION)
        rows = self.relation
        return Relation(Where(rows.input, joined("and", tuple(map(node, conditions)))), rows.at_most)

    def filter(self, *conditions: Expr) -> Relation:
        """The same as `where`."""
        return self.where(*conditions)

    def with_columns(self, **columns: Any) -> Relation:
        """Add columns, each computed from its own row; an existing column of the same name is replaced."""
        rows, added = self.relation, tuple((name, node(value)) for name, value in columns.items())
        return Relation(WithColumns(rows.input, added), rows.at_most)

    def cap(
        self, *, max_rows: int | None = None, max_groups: int | None = None, max_rows_per_group: int | None = None
    ) -> Relation:
        """Use fewer rows per person than the table allows: less noise, but more rows left out.

        The cap applies to the whole question, whatever comes after it; joined tables multiply it by their own.
        """
        cap = caps.requested(max_rows=max_rows, max_groups=max_groups, max_rows_per_group=max_rows_per_group)
        rows = self.relation
        return replace(rows, at_most=caps.as_stored(rows.input, rows.at_most, cap))

    def join(self, other: Any, *, on: str | None = None, how: str = "inner") -> Relation:
        """Join with a public table on its unique key, or with another table of the same people on the person."""
        rows = self.relation
        if isinstance(other, PublicTable):
            step = JoinPublic(rows.input, other.schema, on or other.schema.key, how)  # type: ignore[arg-type]
            return Relation(step, rows.at_most)
        if not isinstance(other, Relation | Table):
            raise QueryError(
                f"join needs a public table or a table of the same people, not {type(other).__name__}",
                remedy=write('people.join(regions, on="region")'),
            )
        if on is not None or how != "inner":
            raise QueryError(
                "tables of the same people can only be joined on the person, as an inner join",
                remedy=write("people.join(visits)", advice="Remove on= and how="),
            )
        right = other.relation
        both = operators.join_person(rows.input, right.input)
        if rows.at_most is None and right.at_most is None:
            return Relation(both)
        both_caps = [each.at_most or caps.holding(each.input) for each in (rows, right)]
        return Relation(both, caps.as_stored(both, None, caps.product(cap for cap in both_caps if cap is not None)))

    def per_person(self, *keys: str | Expr, **values: Any) -> Relation:
        """One row per person, with values computed from all their rows; with keys, one for each of their values too.

        `games.per_person("league", best=pv.max("score"))` has up to one row for each person and league; a named key is
        an expression: `per_person(month=pv.col("day").truncate("month"), n=pv.count())`.

        Values are `pv.count()`, `pv.sum(...)`, `pv.mean(...)`, `pv.min(...)`, `pv.max(...)`. Counts and sums have no
        bounds of their own: clip them before you sum them over people.
        """
        rows = self.relation
        if rows.at_most is not None:
            raise QueryError(
                "per_person combines all rows of a person into one, so a cap before it has no effect",
                remedy=caps.BOUNDS_INSTEAD,
            )
        named = write("per_person(kind=..., n=pv.count())")
        by = tuple((_key_name(key, named), column(key)) for key in keys)
        by += tuple((name, key.node) for name, key in values.items() if isinstance(key, Expr))
        values = {name: value for name, value in values.items() if not isinstance(value, Expr)}
        for _, key in by:
            _check_not_person(rows.input, key)
        return Relation(PerPerson(rows.input, tuple((name, _of_person(v)) for name, v in values.items()), by))

    def group_by(self, *keys: str | Expr, **named: str | Expr) -> Grouped:
        """One answer for each value of these keys, or for each combination of values."""
        return _grouped(self.relation, "group_by", _keys(keys, named))

    def rollup(self, *keys: str | Expr, **named: str | Expr) -> Grouped:
        """Answers for these keys, for all of them except the last, and so on down to the total; they add up."""
        every = _keys(keys, named)
        return _grouped(self.relation, "rollup", every, groups.rollup(len(every)))

    def cube(self, *keys: str | Expr, **named: str | Expr) -> Grouped:
        """Answers for every subset of these keys, from all of them down to the total; they add up."""
        every = _keys(keys, named)
        return _grouped(self.relation, "cube", every, groups.cube(len(every)))

    def grouping_sets(self, sets: Iterable[Iterable[str | Expr] | str | Expr]) -> Grouped:
        """Answers for each of these sets of keys, `[("region", "town"), ("region",), ()]`; they add up."""
        line = write('grouping_sets([("region", "town"), ("region",), ()])')
        if isinstance(sets, str | Expr) or not isinstance(sets, Iterable):
            raise QueryError("grouping_sets needs a list of sets of keys", remedy=line)
        asked = [_keys((each,) if isinstance(each, str | Expr) else each, {}) for each in sets]
        every = list(dict.fromkeys(key for each in asked for key in each))
        places = tuple(tuple(sorted({every.index(key) for key in each})) for each in asked)
        return _grouped(
            self.relation, "grouping_sets", every, None if places == (tuple(range(len(every))),) else places
        )

    def agg(self, *unnamed: Aggregate, **aggregates: Aggregate) -> Query:
        """The question: aggregates, by name."""
        rows = self.relation
        return Grouped(rows.input, (), rows.at_most).agg(*unnamed, **aggregates)


@dataclass(frozen=True, slots=True)
class Relation(_Rows):
    """Rows to ask about: a table, possibly filtered, joined, or with further columns."""

    input: Operator
    at_most: Cap | None = None
    """A cap on the rows per person, if it is lower than the declared one."""

    @property
    def relation(self) -> Relation:
        """These rows."""
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.input.types())

    @property
    def protect(self) -> Protected:
        """What is protected."""
        return operators.protected(self.input)

    def __repr__(self) -> str:
        return f"<Relation {look.named(self)}>"

    def _repr_html_(self) -> str:
        return look.of_rows(self)


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows in groups."""

    input: Operator
    keys: tuple[Key, ...]
    at_most: Cap | None = None
    sets: GroupingSets | None = None

    def __repr__(self) -> str:
        keys = ", ".join(key.name for key in self.keys)
        return f"<Grouped {look.named(Relation(self.input, self.at_most))}, by {keys}>"

    def agg(self, *unnamed: Aggregate, **aggregates: Aggregate) -> Query:
        """The question: aggregates of each group, by name."""
        if unnamed:
            raise QueryError(
                "every aggregate needs a name, which its column in the answer will have",
                remedy=write('.agg(n=pv.count(), pay=pv.mean("income"))'),
            )
        return Query(self.input, self.keys, tuple(aggregates.items()), at_most=self.at_most, sets=self.sets)


def _keys(keys: Iterable[str | Expr], named: Mapping[str, str | Expr]) -> list[Key]:
    every = [Key(_key_name(key), column(key)) for key in keys]
    return every + [Key(name, column(key)) for name, key in named.items()]


def _grouped(rows: Relation, what: str, keys: list[Key], sets: GroupingSets | None = None) -> Grouped:
    if not keys:
        example = '([("region",), ()])' if what == "grouping_sets" else '("region")'
        raise QueryError(f"{what} needs a key", remedy=write(f"{what}{example}"))
    for key in keys:
        _check_not_person(rows.input, key.expression)
    public = tuple(replace(key, expression=named_values.listed(rows.input, key.expression)) for key in keys)
    groups_of(rows.input, tuple(key.expression for key in public), sets)
    return Grouped(rows.input, public, rows.at_most, sets)


def _check_not_person(rows: Operator, key: Node) -> None:
    """Refuse to group by the id of the person, which is not a column that can be asked about."""
    ids = {table.protect.id for table in operators.tables(rows) if isinstance(table.protect, Person)}
    if isinstance(key, Column) and key.name in ids and key.name not in rows.types():
        raise QueryError(
            f"{key.name!r} identifies a person, so it can't be shown or grouped by",
            subject=Subject("column", key.name),
            remedy=write(
                ".agg(n=pv.count_people())",
                advice="Count people instead, or compute a value for each of them with per_person",
            ),
        )


def _of_person(value: Any) -> OfPerson:
    match value:
        case Count(of):
            return OfPerson("count", of)
        case Sum(of):
            return OfPerson("sum", of)
        case Mean(of):
            return OfPerson("mean", of)
        case Extreme(of, largest):
            return OfPerson("max" if largest else "min", of)
        case OfPerson():
            return value
    raise QueryError(
        f"{value!r} can't be computed per person",
        allowed="Count, sum, mean, min and max are supported",
        remedy=write('per_person(visits=pv.count(), last=pv.max("day"))'),
    )


def _key_name(key: str | Expr, named: Remedy = _NAMED) -> str:
    expression = column(key)
    while not isinstance(expression, Column):
        inner = getattr(expression, "operand", None)
        if inner is None or isinstance(inner, tuple):
            raise QueryError(f"this key needs a name: {show(column(key))}", remedy=named)
        expression = inner
    return expression.name


def check_rows(rows: Any) -> Relation:
    """The rows of a table or relation; anything else is refused."""
    if isinstance(rows, Relation | Table):
        return rows.relation
    raise QueryError(
        f"this needs rows, which are a table or made from one, not {type(rows).__name__}",
        remedy=write('session.release_bounds(people, "income", epsilon=0.1)'),
    )


# --- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table(_Rows):
    """A private table: its declaration, and the source of its rows. A session answers questions about it."""

    schema: Schema
    source: Any = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def identities(self) -> tuple[Identity, ...]:
        """The files or tables that contain the rows; none for rows in memory."""
        return tuple(getattr(self.source, "identities", ()))

    @property
    def relation(self) -> Relation:
        """All its rows."""
        return Relation(Scan(self.schema))

    def _no_rows(self) -> NoReturn:
        raise UserError(
            f"the rows of {self.name!r} are private, so they can't be shown, counted or iterated over",
            remedy=write("session.release(people.agg(n=pv.count()), epsilon=0.5)"),
        )

    def __len__(self) -> int:
        self._no_rows()

    def __iter__(self) -> NoReturn:
        self._no_rows()

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Table {self.name}: {wording.protected(self.schema)}; {wording.few(dict(self.schema.columns))}>"

    def _repr_html_(self) -> str:
        return look.of_table(self.schema)


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A public table to join with; everyone may know its contents."""

    schema: PublicSchema
    source: Any = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def identities(self) -> tuple[Identity, ...]:
        """Where its rows are stored, as far as that can be known."""
        return tuple(getattr(self.source, "identities", ()))

    def __repr__(self) -> str:
        return f"<PublicTable {self.name}: by {self.schema.key}; {wording.few(dict(self.schema.columns))}>"

    def _repr_html_(self) -> str:
        return look.of_public(self.schema)
