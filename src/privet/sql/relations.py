"""FROM: tables, joins, and SELECTs in parentheses or WITH, as relations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from privet.errors import QueryError, UserError, write
from privet.sql.aggregates import AggregateReader, has_aggregate, name_of
from privet.sql.expressions import ExpressionReader
from privet.sql.functions import is_aggregate
from privet.sql.grammar import Tree, bare, span, whole
from privet.sql.names import Catalogue, NamedRows, Visible
from privet.sql.source import SqlText
from privet.tables.analysis.narrowing import impossible
from privet.tables.expressions.nodes import Column, Node
from privet.tables.operators import MOST_TABLES, JoinPublic, PerPerson, Where, WithColumns
from privet.tables.relation import PublicTable, Relation
from privet.tables.schema import check_name

_ELSEWHERE = {
    "having": ("HAVING filters the groups of the answer", "For a subquery, put the condition in the outer WHERE"),
    "order": ("ORDER BY is allowed only in the outermost SELECT", ""),
    "limit": ("LIMIT is allowed only in the outermost SELECT", ""),
}


JoinKind = Literal["inner", "left"]


@dataclass(frozen=True, slots=True)
class RelationReader:
    """Reads the FROM clause and inner SELECTs."""

    catalogue: Catalogue

    @property
    def source(self) -> SqlText:
        return self.catalogue.source

    def reader(self, rows: NamedRows) -> ExpressionReader:
        """A reader of expressions over these rows."""

        def leaf(tree: Tree) -> Node | None:
            if not isinstance(tree, exp.Column):
                return None
            name = self.catalogue.column(rows, tree)
            if name is None:
                raise self.catalogue.no_column(rows, tree)
            return Column(name)

        return ExpressionReader(self.source, rows.types, leaf)

    def measures(self, rows: NamedRows) -> AggregateReader:
        """A reader of aggregates over these rows."""
        return AggregateReader(
            self.reader(rows), rows.relation.input, lambda tree: self.catalogue.is_person(rows, tree)
        )

    def rows(self, select: exp.Select) -> NamedRows:
        """The rows that a SELECT reads: WITH, FROM, joins and WHERE."""
        named: list[str] = []
        for cte in select.args["with_"].expressions if select.args.get("with_") else ():
            identifier = cte.args["alias"].this
            name = self._name(identifier, str(identifier.this), named)
            named.append(name)
            self.catalogue.defined[name] = self.derived(cte.this).renamed(name)
        if select.args.get("from_") is None:
            from privet.sql.quoting import quoted

            example = write(sql=f"FROM {quoted(next(iter(self.catalogue.tables), 'people'))}")
            raise self.source.refusal(span(select), "a question needs a FROM clause", remedy=example)
        rows = self._from(select.args["from_"].this)
        for join in select.args.get("joins") or ():
            rows = self._join(rows, join)
        where = select.args.get("where")
        if where is None:
            return rows
        aggregate = next((part for part in where.walk() if is_aggregate(part)), None)
        if aggregate is not None and where.find(exp.Select) is None:  # a SELECT in WHERE has its own error
            raise self.source.refusal(span(aggregate), "WHERE filters rows", "To filter groups, use HAVING")
        condition = self.reader(rows).condition(where.this, "WHERE")
        filtered = self._with(rows, lambda: Relation(Where(rows.relation.input, condition)), where)
        never = impossible(filtered.relation.input)
        if never:
            why = "this can't be true for any row" if len(never) == 1 else "no row can satisfy all of these conditions"
            raise self.source.refusal(whole(where.this), why)
        return filtered

    # --- inner SELECTs --------------------------------------------------------------------------

    def derived(self, select: Tree) -> NamedRows:
        """The rows of a SELECT in parentheses or WITH: some of the rows below, or one row per person."""
        while isinstance(select, exp.Subquery | exp.Paren):
            select = select.this
        if not isinstance(select, exp.Select):
            raise self.source.refusal(span(select), "this must be a SELECT")
        for part, why in _ELSEWHERE.items():
            if select.args.get(part) is not None:
                raise self.source.refusal(span(select.args[part]), *why)
        before = dict(self.catalogue.defined)
        rows = self.rows(select)
        if select.args.get("group") is not None or any(map(has_aggregate, select.expressions)):
            rows = self._per_person(rows, select)
        else:
            rows = self._projected(rows, select)
        self.catalogue.defined.clear()
        self.catalogue.defined.update(before)
        return rows

    def _projected(self, rows: NamedRows, select: exp.Select) -> NamedRows:
        reader = self.reader(rows)
        shown: list[str] = []
        added: list[tuple[str, Node]] = []
        person = None
        for item in select.expressions:
            alias, tree = _named(item)
            if self.catalogue.is_person(rows, tree) and self.catalogue.column(rows, tree) is None:  # type: ignore[arg-type]
                person = alias or str(tree.this.this)
                continue
            node = reader.read(tree)
            own = self.catalogue.spelled(rows, tree) if isinstance(tree, exp.Column) else name_of(node)
            name = self._name(item, alias or own, shown)
            if node != Column(name):
                added.append((name, node))
            shown.append(name)
        visible = (Visible(None, tuple((name, name) for name in shown), person),)
        if not added:
            return NamedRows(rows.relation, visible, rows.tables)
        extended = self._with(rows, lambda: Relation(WithColumns(rows.relation.input, tuple(added))), select)
        return NamedRows(extended.relation, visible, rows.tables)

    def _per_person(self, rows: NamedRows, select: exp.Select) -> NamedRows:
        group = select.args.get("group")
        trees = [] if group is None else [self._item(rows, select, key) for key in group.expressions]
        others = [tree for tree in trees if not self.catalogue.is_person(rows, tree)]
        if len(others) != len(trees) - 1:
            at = group if group is not None else select
            ids = {one.person for one in rows.visible if one.person is not None}
            id_ = min(ids, default="person_id")
            why = "a subquery must group rows by the person id, and perhaps by keys"
            raise self.source.refusal(span(at), why, f"Write GROUP BY {id_}, or put the groups outside the subquery")
        measures, reader = self.measures(rows), self.reader(rows)
        names: list[str] = []
        columns = []
        person = None
        by = {reader.key(tree): tree for tree in others}
        keys: list[tuple[str, Node]] = []
        for item in select.expressions:
            alias, tree = _named(item)
            if self.catalogue.is_person(rows, tree):
                person = alias or str(tree.this.this)
                continue
            if not has_aggregate(tree) and (node := reader.key(tree)) in by:
                own = self.catalogue.spelled(rows, tree) if isinstance(tree, exp.Column) else name_of(node)
                names.append(self._name(item, alias or own, names))
                keys.append((names[-1], node))
                continue
            value = measures.of_person(tree)
            names.append(self._name(item, alias or name_of(value), names))
            columns.append((names[-1], value))
        if not columns:
            raise self.source.refusal(
                span(select), "this subquery must compute something per person, such as COUNT(*) AS n"
            )
        keys += [
            (self._name(tree, name_of(node), names), node)
            for node, tree in by.items()
            if node not in dict(keys).values()
        ]
        step = (rows.relation.input, tuple(columns), tuple(keys))
        people = self._with(rows, lambda: Relation(PerPerson(*step)), select if group is None else group)
        return NamedRows(people.relation, (Visible(None, tuple((name, name) for name in names), person),), rows.tables)

    def _item(self, rows: NamedRows, select: exp.Select, key: Tree) -> Tree:
        """The key; GROUP BY 1 means the first item of SELECT, and an alias what it names."""
        place = str(key.this) if isinstance(key, exp.Literal) and not key.is_string else ""
        if place.isdecimal() and len(place) < 5 and 1 <= int(place) <= len(select.expressions):
            return _named(select.expressions[int(place) - 1])[1]
        named = (
            isinstance(key, exp.Column) and key.args.get("table") is None and self.catalogue.column(rows, key) is None
        )
        for alias, tree in map(_named, select.expressions) if named else ():
            if alias is not None and alias.casefold() == str(key.this.this).casefold():
                return tree
        return key

    def _name(self, item: Tree, name: str, before: list[str]) -> str:
        if name in before:
            raise self.source.refusal(whole(item), f"the name {name} is used twice", "Choose another one after AS")
        try:
            return check_name(name, "column")
        except UserError as error:
            raise self.source.placed(whole(item), error) from None

    # --- tables and joins -----------------------------------------------------------------------

    def _from(self, tree: Tree) -> NamedRows:
        rows, name = self._table(tree)
        if isinstance(rows, PublicTable):
            why = f"{rows.name} is public, and a question must be about a private table"
            raise self.source.refusal(span(tree), why, "Put the private table first: FROM people JOIN ...")
        return rows.renamed(name)

    def _table(self, tree: Tree) -> tuple[NamedRows | PublicTable, str | None]:
        alias = tree.args.get("alias")
        name = str(alias.this.this) if alias is not None and alias.this is not None else None
        match tree:
            case exp.Subquery():
                return self.derived(tree.this), name
            case exp.Table(this=exp.Identifier() as identifier):
                table = self.catalogue.table(identifier)
                return table, name or (table.name if isinstance(table, PublicTable) else table.visible[0].name)
        raise self.source.refusal(
            span(tree), "FROM takes a table that the steward declared, or a SELECT in parentheses"
        )

    def _join(self, left: NamedRows, join: exp.Join) -> NamedRows:
        side, kind = str(join.args.get("side") or ""), str(join.args.get("kind") or "")
        if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
            why = f"{side or kind} JOIN is not supported"
            raise self.source.refusal(span(join), why, "Write JOIN ... ON ..., or LEFT JOIN with a public table")
        if join.args.get("on") is None and not join.args.get("using"):
            why = "a join needs a condition"
            raise self.source.refusal(
                span(join), why, "Write JOIN ... ON ..., with the person id or a public table's key"
            )
        right, name = self._table(join.this)
        if name is not None and any(
            one.name is not None and one.name.casefold() == name.casefold() for one in left.visible
        ):
            raise self.source.refusal(span(join.this), f"two tables are named {name}", "Rename one of them with AS")
        if isinstance(right, PublicTable):
            return self._join_public(left, right, name, join, "left" if side else "inner")
        if side:
            why = "LEFT JOIN is supported only with a public table"
            raise self.source.refusal(span(join), why, "Join tables of the same people with JOIN")
        return self._join_person(left, right.renamed(name), join)

    def _join_public(
        self, left: NamedRows, table: PublicTable, name: str | None, join: exp.Join, how: JoinKind
    ) -> NamedRows:
        schema = table.schema
        public = Visible(name, tuple((column, column) for column, _ in schema.columns), None)
        other = NamedRows(left.relation, (public,))
        on_columns: list[str] = []
        for a, b in self._pairs(left, other, join):
            key, on = self.catalogue.column(other, b), self.catalogue.column(left, a)
            if key != schema.key:
                why = f"{table.name} can be joined only on its unique key, {schema.key}"
                raise self.source.refusal(span(b), why)
            if on is None:
                raise self.catalogue.no_column(left, a)
            on_columns.append(on)
        added = [column for column, _ in schema.columns if column != schema.key]
        columns = [(column, column) for column in added] + ([(schema.key, on_columns[0])] if how == "inner" else [])
        joined = self._with(left, lambda: Relation(JoinPublic(left.relation.input, schema, on_columns[0], how)), join)
        return NamedRows(joined.relation, (*left.visible, Visible(name, tuple(columns), None)), left.tables)

    def _join_person(self, left: NamedRows, right: NamedRows, join: exp.Join) -> NamedRows:
        for a, b in self._pairs(left, right, join):
            for rows, column in ((left, a), (right, b)):
                if not self.catalogue.is_person(rows, column):
                    why = "private tables can be joined only on the person id"
                    raise self.source.refusal(span(column), why, "Write ON a.person_id = b.person_id")
        count = left.tables + right.tables
        if count > MOST_TABLES:
            raise self.source.refusal(span(join), f"a question can read at most {MOST_TABLES} private tables")
        both = self._with(left, lambda: left.relation.join(right.relation), join)
        return NamedRows(both.relation, (*left.visible, *right.visible), count)

    def _pairs(self, left: NamedRows, right: NamedRows, join: exp.Join) -> list[tuple[exp.Column, exp.Column]]:
        """The columns that must be equal, one on the left and one on the right."""
        using = join.args.get("using") or []
        on = bare(join.args["on"]) if join.args.get("on") is not None else None
        pairs = [(exp.Column(this=name), exp.Column(this=name)) for name in using if isinstance(name, exp.Identifier)]
        if len(pairs) == 1 and len(using) == 1:
            return pairs
        if isinstance(on, exp.EQ):
            a, b = bare(on.this), bare(on.expression)
            if isinstance(a, exp.Column) and isinstance(b, exp.Column):
                return [(b, a)] if self._is_of(right, a) and not self._is_of(right, b) else [(a, b)]
        at = on if on is not None else join
        raise self.source.refusal(
            whole(at),
            "a join condition must be one equality, such as ON a.key = b.key",
            "Put other conditions in WHERE",
        )

    def _is_of(self, rows: NamedRows, column: exp.Column) -> bool:
        table = column.args.get("table")
        if table is not None and not any(
            one.name is not None and one.name.casefold() == str(table.this).casefold() for one in rows.visible
        ):
            return False
        return self.catalogue.is_person(rows, column) or self.catalogue.column(rows, column) is not None

    def _with(self, rows: NamedRows, make: Callable[[], Relation], at: Tree) -> NamedRows:
        """The rows after a further step; an error in the step is shown at its position."""
        try:
            relation = make()
        except QueryError as error:
            raise self.source.placed(span(at), error) from None
        return NamedRows(relation, rows.visible, rows.tables)


def _named(item: Tree) -> tuple[str | None, Tree]:
    """The alias of an item of SELECT, if it has one, and the item."""
    if isinstance(item, exp.Alias):
        return str(item.args["alias"].this), bare(item.this)
    return None, bare(item)
