"""Queries: immutable, compared by value.

>>> import privet as pv
>>> from privet.tables.schema import Schema
>>> people = Schema.declare("people", protect=pv.each_row(), columns={"age": pv.integer(0, 110)})
>>> from privet.tables.operators import Scan
>>> from privet.tables.relation import Relation
>>> adults = Relation(Scan(people)).where(pv.col("age") >= 18)
>>> adults.agg(n=pv.count()) == adults.agg(n=pv.count())
True
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

from privet.errors import QueryError, Remedy, write
from privet.exact import whole
from privet.tables import caps, computed, operators
from privet.tables.aggregates import (
    Aggregate,
    CountPeople,
    Ratio,
    checked,
    columns,
    parts,
)
from privet.tables.arrangement import EVERYTHING, RELEASED, Arrangement, InOrder, Order
from privet.tables.caps import Cap
from privet.tables.discovered import Discovered, groups_of
from privet.tables.expressions.fluent import Expr, node
from privet.tables.expressions.nodes import Node
from privet.tables.expressions.trees import joined, sized
from privet.tables.groups import GroupingSets, Listed, Sets, named
from privet.tables.operators import Operator
from privet.tables.schema import check_name
from privet.tables.types import KeyValue

MOST_COLUMNS = 200
"""Maximum columns in one answer."""

_ELSEWHERE = {"groupby": "group_by", "aggregate": "agg", "query": "where", "select": "with_columns, or agg"}
"""What other libraries call the operations on rows."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key to group by: an expression with a name."""

    name: str
    expression: Node

    def __post_init__(self) -> None:
        check_name(self.name, "column of the answer")
        sized(self.expression)


@dataclass(frozen=True, slots=True)
class Query:
    """A question: rows, keys, aggregates of each group, and the arrangement of the answer."""

    input: Operator
    keys: tuple[Key, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    arrangement: Arrangement | InOrder = EVERYTHING
    at_most: Cap | None = None
    """The query's own cap on the rows per person, if it is lower than the declared one."""
    sets: GroupingSets | None = None
    """The grouping sets, as positions of keys (ROLLUP, CUBE); None if all keys are always used."""
    groups: Listed | Sets | Discovered = field(init=False, repr=False, compare=False)
    """Its groups: the values of each key that remain after conditions, in the order of the answer."""

    def __post_init__(self) -> None:
        types = self.input.types()
        if not all(isinstance(key, Key) for key in self.keys):
            raise QueryError("a query can be grouped only by keys, which are named expressions")
        if self.at_most is not None:
            caps.checked(self.input, self.at_most)
            if self.at_most == caps.holding(self.input):
                raise QueryError("this cap is already declared, so it must be left out")
        if len(self.aggregates) > MOST_COLUMNS:
            raise QueryError(f"a query can ask for at most {MOST_COLUMNS} columns, not {len(self.aggregates)}")
        columns = self.columns()
        names = [key.name for key in self.keys] + [name for name, _ in self.arrangement.computed]
        for name, _ in self.aggregates:
            produced = columns[name]
            names += [name, *(produced if produced != (name,) else ())]
        for name in names:
            check_name(name, "column of the answer")
        if len(names) > 2 * MOST_COLUMNS:
            raise QueryError(
                f"an answer can have at most {MOST_COLUMNS} columns",
                remedy=Remedy("Ask for fewer columns, or fewer bins"),
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise QueryError(f"two columns of the answer are named {twice[0]!r}", remedy=Remedy("Rename one of them"))
        keys = tuple(key.expression for key in self.keys)
        object.__setattr__(self, "groups", groups_of(self.input, keys, self.sets))
        if not self.aggregates:
            self._check_keys_alone()
        for _, aggregate in self.aggregates:
            checked(aggregate, types, lambda name: caps.of_person(self.input, name))
        if self.arrangement != EVERYTHING:
            numbers = {column: RELEASED for produced in columns.values() for column in produced}
            left = dict(zip((key.name for key in self.keys), self.domains(), strict=True))
            if isinstance(self.groups, Discovered):  # these can have any value
                left = {name: values for i, (name, values) in enumerate(left.items()) if i not in self.groups.unknown}
            formulas, amounts = dict(self.arrangement.computed), [n for n, what in self.aggregates if what.is_amount]
            computed.check_steps(self.arrangement.computed, self.groups.most)
            computed.check_columns(
                self.arrangement.computed,
                measured=numbers.keys() - formulas.keys(),
                amounts=[column for name in amounts for column in columns[name]],
                keys=[key.name for key in self.keys],
                on_levels=self.sets is not None,
            )
            self.arrangement.check({key.name: key.expression.type(types) for key in self.keys}, numbers, columns, left)

    def _check_keys_alone(self) -> None:
        """Refuse a question without aggregates, unless it asks which keys there are, and none of them is public."""
        groups, line = self.groups, write(".agg(n=pv.count())", sql="COUNT(*) AS n")
        if not isinstance(groups, Discovered):
            raise QueryError("a query needs at least one aggregate", remedy=line)
        public = [key.name for i, key in enumerate(self.keys) if i not in groups.unknown]
        if public:
            raise QueryError(
                f"a question without aggregates asks which keys there are, and the values of {public[0]!r} are public",
                allowed="Leave that key out, or ask for an aggregate",
                remedy=line,
            )

    def domains(self) -> tuple[tuple[KeyValue, ...], ...]:
        """The values of each key."""
        return self.groups.values if isinstance(self.groups, Discovered) else self.listed.values

    @property
    def listed(self) -> Listed:
        """Its finest groups, if their keys are public: every combination of the values of all keys."""
        assert not isinstance(self.groups, Discovered)
        return self.groups.listed if isinstance(self.groups, Sets) else self.groups

    def resolved(self, groups: Discovered) -> Query:
        """The same question with the groups that were found; what is checked before data are read stays as it is."""
        same = copy(self)
        object.__setattr__(same, "groups", groups)
        return same

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that each aggregate or formula produces: one, or one for each bin or quantile."""
        types = self.input.types()
        measured = {
            name: tuple(f"{name} {label}" for label in columns(what, types)) or (name,)
            for name, what in self.aggregates
        }
        return measured | {name: (name,) for name, _ in self.arrangement.computed}

    def shown(self) -> tuple[str, ...]:
        """The columns of numbers that the answer shows, in its order."""
        columns, arranged = self.columns(), self.arrangement
        names = dict.fromkeys((*arranged.first, *columns))
        return tuple(column for name in names if name not in arranged.hidden for column in columns[name])

    def expressions(self) -> Iterator[tuple[Node, Operator]]:
        """Every expression over rows, with the rows that it reads; the deepest first."""
        yield from operators.expressions(self.input)
        yield from ((key.expression, self.input) for key in self.keys)
        for _, aggregate in self.aggregates:
            for part in parts(aggregate):
                if not isinstance(part, CountPeople | Ratio) and part.expression is not None:
                    yield part.expression, self.input

    # --- arrangement of the answer: always having, then order_by, then limit --------------------

    def compute(self, **columns: Expr) -> Query:
        """Add columns that are computed from columns of the answer: `share=pv.col("n") / pv.total("n")`; free.

        A formula can use + - * /, numbers, `round`, `floor`, `ceil`, `abs`, `clip`, `pv.total`, `pv.interval_low` and
        `pv.interval_high`, and the names of columns that were computed before.
        """
        if not columns or not all(isinstance(value, Expr) for value in columns.values()):
            raise QueryError("compute needs named formulas of the answer's columns", remedy=computed.EXAMPLE)
        formulas = self.arrangement.computed
        for name, value in columns.items():
            formulas = (*formulas, (name, computed.with_earlier(value.node, formulas)))
        return self._arranged(computed=formulas)

    def having(self, *conditions: Expr) -> Query:
        """Show only the groups for which all conditions on columns of the answer are true; this costs nothing."""
        if not conditions or not all(isinstance(condition, Expr) for condition in conditions):
            raise QueryError(
                "having needs a condition on the answer",
                remedy=write('having(pv.col("n") >= 100)', sql="HAVING n >= 100"),
            )
        before = self.arrangement.having
        nodes = [*([] if before is None else [before]), *map(node, conditions)]
        return self._arranged(having=joined("and", nodes))

    def order_by(self, *columns: str, descending: bool | Sequence[bool] = False) -> Query:
        """Sort the groups by these columns of the answer."""
        line = write('order_by("n", "region", descending=[True, False])', sql="ORDER BY n DESC, region")
        down = [descending] * len(columns) if isinstance(descending, bool) else list(descending)
        if not columns or not all(isinstance(name, str) for name in columns):
            raise QueryError("order_by needs the names of columns", remedy=line)
        if len(down) != len(columns) or not all(isinstance(one, bool) for one in down):
            raise QueryError(
                "descending must be True or False, or a list with one of them for each column", remedy=line
            )
        if self.arrangement.order:
            raise QueryError("this query already has an order; list all columns in one order_by", remedy=line)
        return self._arranged(order=tuple(map(Order, columns, down)))

    def limit(self, groups: int) -> Query:
        """Show only the first groups, in the order of `order_by` or else in the fixed order of keys."""
        most = whole(groups, name="limit", example="limit(10)")
        before = self.arrangement.limit
        return self._arranged(limit=most if before is None else min(most, before))

    def hide(self, *names: str) -> Query:
        """Measure and pay for these columns, for `having` or `order_by`, but do not show them."""
        if not names or not all(isinstance(name, str) for name in names):
            raise QueryError("hide needs the names of columns", remedy=write('hide("n")'))
        return self._arranged(hidden=tuple(sorted({*self.arrangement.hidden, *names})))

    def in_order(self, *names: str) -> Query:
        """Show these columns first, in this order; otherwise computed columns come after the measured ones."""
        if not names or not all(isinstance(name, str) for name in names):
            raise QueryError("in_order needs the names of columns", remedy=write('in_order("share", "n")'))
        given = {each.name: getattr(self.arrangement, each.name) for each in fields(Arrangement)}
        plain = replace(self, arrangement=Arrangement(**given))
        ordered = replace(self, arrangement=InOrder(**given, first=names))
        return plain if plain.shown() == ordered.shown() else ordered

    def cap(
        self, *, max_rows: int | None = None, max_groups: int | None = None, max_rows_per_group: int | None = None
    ) -> Query:
        """Use fewer rows per person than the tables allow: less noise, but more rows left out."""
        cap = caps.requested(max_rows=max_rows, max_groups=max_groups, max_rows_per_group=max_rows_per_group)
        return replace(self, at_most=caps.as_stored(self.input, self.at_most, cap))

    def _arranged(self, **changes: Any) -> Query:
        return replace(self, arrangement=replace(self.arrangement, **changes))

    def __repr__(self) -> str:
        from privet.tables.wording import worded

        return f"<Query {worded(self)}>"

    def _repr_html_(self) -> str:
        from privet.tables.look import of_query

        return of_query(self)

    def __str__(self) -> str:
        names = [key.name for key in self.keys]
        by = f" by {', '.join(names)}" if names else ""
        if self.sets is not None:
            by = f" by {named(self.sets, names)}"
        cap = f", at most {caps.in_words(self.at_most)} per person" if self.at_most is not None else ""
        asked = ", ".join(f"{name} = {what}" for name, what in self.aggregates) or "keys"
        return f"{asked}{by}{self.arrangement}{cap}"
