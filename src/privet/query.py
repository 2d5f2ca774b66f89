"""Tables and queries: immutable, compared by value, built step by step.

>>> import privet as pv
>>> people = Schema.declare("people", protect=pv.each_row(), columns={"age": pv.integer(0, 110)})
>>> adults = Relation(Scan(people)).where(pv.col("age") >= 18)
>>> adults.agg(n=pv.count()) == adults.agg(n=pv.count())
True
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from privet.distances import Protected
from privet.errors import QueryError, UserError
from privet.exact import whole
from privet.identity import Identity
from privet.relation import caps, narrowing, operators
from privet.relation.aggregates import (
    Aggregate,
    Count,
    CountPeople,
    Histogram,
    Mean,
    Ratio,
    Sum,
    checked,
    parts,
)
from privet.relation.arrangement import EVERYTHING, RELEASED, Arrangement, Order
from privet.relation.caps import Cap
from privet.relation.expressions import DEEPEST, Column, Node, joined, sized
from privet.relation.fields import LATER
from privet.relation.language import Expr, column, node, show
from privet.relation.operators import OfPerson, Operator, Scan, WithColumns
from privet.relation.schema import PublicSchema, Schema, called
from privet.relation.types import MOST_GROUPS, KeyValue

MOST_COLUMNS = 200
"""How many columns one answer may have."""


@dataclass(frozen=True, slots=True)
class Key:
    """What an answer is grouped by: an expression with a name."""

    name: str
    of: Node


@dataclass(frozen=True, slots=True)
class Query:
    """A question: rows, what they are grouped by, what is asked of each group, and how the answer is arranged."""

    of: Operator
    keys: tuple[Key, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    arrangement: Arrangement = field(default=EVERYTHING, metadata=LATER)
    at_most: Cap | None = field(default=None, metadata=LATER)
    """The query's own cap on the rows of a person, where it is less than what holds without it."""

    def __post_init__(self) -> None:
        types = self.of.types()
        if self.at_most is not None:
            caps.checked(self.of, self.at_most)
            if self.at_most == caps.holding(self.of):
                raise QueryError("this cap holds already, so it must be left out")
        if len(self.aggregates) > MOST_COLUMNS:
            raise QueryError(f"a query asks for at most {MOST_COLUMNS} columns, not {len(self.aggregates)}")
        columns = self.columns()
        names = [key.name for key in self.keys]
        for name, _ in self.aggregates:
            made = columns[name]
            names += [name, *(made if made != (name,) else ())]
        for name in names:
            called(name, "column of the answer")
        if len(names) > 2 * MOST_COLUMNS:
            raise QueryError(f"an answer has at most {MOST_COLUMNS} columns. Take fewer, or fewer bins")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise QueryError(f"two columns of the answer are called {twice[0]!r}. Give one of them another name")
        if not self.aggregates:
            raise QueryError("a query asks for something. Write, for example: .agg(n=pv.count())")
        groups = 1
        for values in self.domains():
            groups *= len(values)
            if groups > MOST_GROUPS:
                raise QueryError(
                    f"these keys make more than {MOST_GROUPS:,} groups. Take fewer or wider ones. "
                    'Write, for example: group_by(pv.bins("age", [0, 18, 65, 110]))'
                )
        for _, aggregate in self.aggregates:
            checked(aggregate, types)
        if self.arrangement != EVERYTHING:
            numbers = {column: RELEASED for made in columns.values() for column in made}
            left = dict(zip((key.name for key in self.keys), self.domains(), strict=True))
            self.arrangement.check({key.name: key.of.type(types) for key in self.keys}, numbers, columns, left)

    def domains(self) -> tuple[tuple[KeyValue, ...], ...]:
        """The values of each key that conditions on the rows leave, in the order of the answer."""
        return narrowing.domains(self.of, tuple(key.of for key in self.keys))

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of numbers that each aggregate makes: one, or one for each bin of a histogram."""
        types = self.of.types()
        return {
            name: tuple(f"{name} {label}" for label in sized(what.of).type(types).keys())  # noqa: SIM118
            if isinstance(what, Histogram)
            else (name,)
            for name, what in self.aggregates
        }

    def expressions(self) -> Iterator[tuple[Node, Operator]]:
        """Every expression over rows, with the rows that it reads: the deepest first."""
        yield from operators.expressions(self.of)
        yield from ((key.of, self.of) for key in self.keys)
        for _, aggregate in self.aggregates:
            for part in parts(aggregate):
                if not isinstance(part, CountPeople | Ratio) and part.of is not None:
                    yield part.of, self.of

    # --- how the answer is arranged: always having, then order_by, then limit -------------------

    def having(self, *conditions: Expr) -> Query:
        """Show only the groups for which all conditions on columns of the answer are true: it costs nothing."""
        if not conditions or not all(isinstance(condition, Expr) for condition in conditions):
            raise QueryError('having needs a condition on the answer. Write, for example: having(pv.col("n") >= 100)')
        before = self.arrangement.having
        nodes = [*([] if before is None else [before]), *map(node, conditions)]
        return self._arranged(having=joined("and", nodes))

    def order_by(self, *columns: str, descending: bool | Sequence[bool] = False) -> Query:
        """Show the groups sorted by these columns of the answer, the first one counting most."""
        line = 'Write, for example: order_by("n", "region", descending=[True, False])'
        down = [descending] * len(columns) if isinstance(descending, bool) else list(descending)
        if not columns or not all(isinstance(name, str) for name in columns):
            raise QueryError(f"order_by needs names of columns. {line}")
        if len(down) != len(columns) or not all(isinstance(one, bool) for one in down):
            raise QueryError(f"descending is True or False, or a list of them, one for each column. {line}")
        if self.arrangement.order:
            raise QueryError(f"this query has an order already. Give all columns at once. {line}")
        return self._arranged(order=tuple(map(Order, columns, down)))

    def limit(self, groups: int) -> Query:
        """Show only the first so many groups: sorted as `order_by` says, or else in the fixed order of keys."""
        few = whole(groups, name="limit", example="limit(10)")
        before = self.arrangement.limit
        return self._arranged(limit=few if before is None else min(few, before))

    def hide(self, *names: str) -> Query:
        """Measure and pay for these columns, for `having` or `order_by`, and do not show them."""
        if not names or not all(isinstance(name, str) for name in names):
            raise QueryError('hide needs names of columns. Write, for example: hide("n")')
        return self._arranged(hidden=tuple(sorted({*self.arrangement.hidden, *names})))

    def cap(
        self, *, max_rows: int | None = None, max_groups: int | None = None, max_rows_per_group: int | None = None
    ) -> Query:
        """Use fewer rows per person than the tables allow: less noise, and more rows left out."""
        asked = caps.wanted(max_rows=max_rows, max_groups=max_groups, max_rows_per_group=max_rows_per_group)
        return replace(self, at_most=_capped(self.of, self.at_most, asked))

    def _arranged(self, **changes: Any) -> Query:
        return replace(self, arrangement=replace(self.arrangement, **changes))

    def __str__(self) -> str:
        by = f" by {', '.join(key.name for key in self.keys)}" if self.keys else ""
        cap = f", at most {caps.in_words(self.at_most)} per person" if self.at_most is not None else ""
        return f"{', '.join(f'{name} = {what}' for name, what in self.aggregates)}{by}{self.arrangement}{cap}"


def _capped(of: Operator, before: Cap | None, asked: Cap) -> Cap | None:
    """The cap of a query, as it is kept: one that holds already is none."""
    caps.checked(of, asked, before=before)
    return None if asked == caps.holding(of) else asked


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows to ask about: a table, perhaps filtered, with further columns, joined."""

    of: Operator
    at_most: Cap | None = None
    """A cap on the rows of a person, where it is less than what holds without it."""

    def __post_init__(self) -> None:
        if operators.depth(self.of) > DEEPEST:
            raise QueryError(f"a query has at most {DEEPEST} steps. Put several conditions into one where(..., ...)")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.of.types())

    @property
    def protect(self) -> Protected:
        """What is protected."""
        return operators.protected(self.of)

    def where(self, *conditions: Expr) -> Relation:
        """Only the rows for which all conditions are true."""
        if not conditions:
            raise QueryError('where needs a condition. Write, for example: where(pv.col("age") >= 18)')
        for condition in conditions:
            if not isinstance(condition, Expr | bool):
                raise QueryError(f'where needs a condition, not {condition!r}. Write, for example: pv.col("age") >= 18')
        nodes = tuple(node(condition) for condition in conditions)
        return Relation(operators.where(self.of, sized(joined("and", nodes))), self.at_most)

    def with_columns(self, **columns: Any) -> Relation:
        """Further columns, each computed from its own row; a name that exists is replaced."""
        if not columns:
            raise QueryError('with_columns needs a column. Write: with_columns(rate=pv.col("pay") / pv.col("hours"))')
        added = tuple((called(name, "column"), sized(node(value))) for name, value in columns.items())
        made = WithColumns(self.of, added)
        made.types()
        return Relation(made, self.at_most)

    def cap(
        self, *, max_rows: int | None = None, max_groups: int | None = None, max_rows_per_group: int | None = None
    ) -> Relation:
        """Use fewer rows per person than the table allows: less noise, and more rows left out.

        The cap holds for the whole question, whatever comes after it; joined tables multiply it by their own.
        """
        asked = caps.wanted(max_rows=max_rows, max_groups=max_groups, max_rows_per_group=max_rows_per_group)
        return replace(self, at_most=_capped(self.of, self.at_most, asked))

    def join(self, other: Any, *, on: str | None = None, how: str = "inner") -> Relation:
        """With a public table, on its unique key; or with another table of the same people, on the person."""
        if isinstance(other, PublicTable):
            made = operators.join_public(self.of, other.schema, on=on or other.schema.key, how=how)
            return Relation(made, self.at_most)
        if not isinstance(other, Relation | Table):
            raise QueryError(
                f"join needs a public table or a table of the same people, not {type(other).__name__}. "
                'Write, for example: people.join(regions, on="region")'
            )
        if on is not None or how != "inner":
            raise QueryError("tables of the same people are joined on the person, inner. Leave out on= and how=")
        right = other.relation if isinstance(other, Table) else other
        both = operators.join_person(self.of, right.of)
        if self.at_most is None and right.at_most is None:
            return Relation(both)
        found = [each.at_most or caps.holding(each.of) for each in (self, right)]
        return Relation(both, _capped(both, None, caps.product(cap for cap in found if cap is not None)))

    def per_person(self, **values: Any) -> Relation:
        """One row for each person, with values computed from all their rows.

        Values are `pv.count()`, `pv.sum(...)`, `pv.mean(...)`, `pv.least(...)`, `pv.greatest(...)`. Counts and sums
        have no bounds of their own: clip them before they are summed over people.
        """
        if self.at_most is not None:
            raise QueryError(
                "per_person makes one row of all rows of a person, so a cap before it would leave nothing out. Leave "
                'the cap out, and choose bounds for what is summed. Write, for example: pv.col("total").clip(0, 1000)'
            )
        columns = tuple((called(name, "column"), _of_person(value)) for name, value in values.items())
        return Relation(operators.per_person(self.of, columns))

    def group_by(self, *keys: str | Expr, **named: str | Expr) -> Grouped:
        """One answer for each value of these keys, or each combination of several."""
        found = [Key(_key_name(key), sized(column(key))) for key in keys]
        found += [Key(name, sized(column(key))) for name, key in named.items()]
        if not found:
            raise QueryError('group_by needs a key. Write, for example: group_by("region")')
        narrowing.domains(self.of, tuple(key.of for key in found))
        return Grouped(self.of, tuple(found), self.at_most)

    def agg(self, **aggregates: Aggregate) -> Query:
        """The question: what is wanted, by name."""
        return Query(self.of, (), tuple(aggregates.items()), at_most=self.at_most)


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows in groups, to be asked about."""

    of: Operator
    keys: tuple[Key, ...]
    at_most: Cap | None = None

    def agg(self, **aggregates: Aggregate) -> Query:
        """The question: what is wanted of each group, by name."""
        return Query(self.of, self.keys, tuple(aggregates.items()), at_most=self.at_most)


def _of_person(value: Any) -> OfPerson:
    match value:
        case Count(of):
            return OfPerson("count", None if of is None else sized(of))
        case Sum(of):
            return OfPerson("sum", sized(of))
        case Mean(of):
            return OfPerson("mean", sized(of))
        case OfPerson():
            return value
    raise QueryError(
        f"{value!r} can't be computed for each person. There are: pv.count(), pv.sum(...), pv.mean(...), "
        "pv.least(...), pv.greatest(...)"
    )


def least(of: str | Expr) -> OfPerson:
    """The least value of one person, in `per_person`."""
    return OfPerson("min", sized(column(of)))


def greatest(of: str | Expr) -> OfPerson:
    """The greatest value of one person, in `per_person`."""
    return OfPerson("max", sized(column(of)))


def _key_name(key: str | Expr) -> str:
    of = column(key)
    while not isinstance(of, Column):
        inner = getattr(of, "of", None)
        if inner is None or isinstance(inner, tuple):
            raise QueryError(f"give this key a name: {show(column(key))}. Write, for example: group_by(kind=...)")
        of = inner
    return of.name


# --- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """A private table: its declaration, and where its rows are. Asking is done through a session."""

    schema: Schema
    source: Any = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def identities(self) -> tuple[Identity, ...]:
        """Which files or tables the rows are in now; none for rows in memory."""
        return tuple(getattr(self.source, "identities", ()))

    @property
    def relation(self) -> Relation:
        """All its rows."""
        return Relation(Scan(self.schema))

    def where(self, *conditions: Expr) -> Relation:
        """Only the rows for which all conditions are true."""
        return self.relation.where(*conditions)

    def with_columns(self, **columns: Any) -> Relation:
        """Further columns, each computed from its own row."""
        return self.relation.with_columns(**columns)

    def join(self, other: Any, *, on: str | None = None, how: str = "inner") -> Relation:
        """With a public table, on its unique key; or with another table of the same people, on the person."""
        return self.relation.join(other, on=on, how=how)

    def cap(
        self, *, max_rows: int | None = None, max_groups: int | None = None, max_rows_per_group: int | None = None
    ) -> Relation:
        """Use fewer rows per person than the table allows: less noise, and more rows left out."""
        return self.relation.cap(max_rows=max_rows, max_groups=max_groups, max_rows_per_group=max_rows_per_group)

    def per_person(self, **values: Any) -> Relation:
        """One row for each person, with values computed from all their rows."""
        return self.relation.per_person(**values)

    def group_by(self, *keys: str | Expr, **named: str | Expr) -> Grouped:
        """One answer for each value of these keys."""
        return self.relation.group_by(*keys, **named)

    def agg(self, **aggregates: Aggregate) -> Query:
        """The question: what is wanted, by name."""
        return self.relation.agg(**aggregates)

    def _no_rows(self) -> NoReturn:
        raise UserError(
            f"the rows of {self.name!r} are private: they can't be looked at, counted or iterated. "
            "Write, for example: session.release(people.agg(n=pv.count()), epsilon=0.5)"
        )

    def __len__(self) -> int:
        self._no_rows()

    def __iter__(self) -> NoReturn:
        self._no_rows()

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A public table to join with; its contents are known to everybody."""

    schema: PublicSchema
    source: Any = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.schema.name
