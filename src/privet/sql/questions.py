"""The outermost SELECT: its groups, its aggregates, and how the answer is arranged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from privet.errors import QueryError, TooManyGroups, UserError, write
from privet.names.spelling import nearest
from privet.sql import bounds, groupings
from privet.sql.aggregates import AggregateReader, has_aggregate, name_of
from privet.sql.expressions import ExpressionReader
from privet.sql.formulas import FormulaReader, is_formula, is_measured, simplest
from privet.sql.grammar import Tree, bare, span, whole
from privet.sql.literals import number
from privet.sql.names import Catalogue, NamedRows
from privet.sql.relations import RelationReader
from privet.sql.source import SqlText
from privet.tables import computed
from privet.tables.aggregates import Aggregate
from privet.tables.analysis import named_values
from privet.tables.arrangement import RELEASED, Arrangement, Order, can_pass, names
from privet.tables.discovered import groups_of
from privet.tables.expressions.nodes import Bin, Column, Node, Truncate
from privet.tables.groups import GroupingSets, Sets
from privet.tables.operators import Columns
from privet.tables.query import Key, Query
from privet.tables.types import NumberType, TimeType

_COMPARING = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between,
    exp.Literal, exp.Boolean, exp.Cast, exp.Subquery, exp.Null,
)  # fmt: skip
"""The nodes that HAVING may contain, besides columns of the answer."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of SELECT: its tree, its alias if it has one, and its aggregate or key."""

    tree: Tree
    alias: str | None
    what: Aggregate | Node
    is_aggregate: bool
    is_formula: bool = False
    """Whether it is arithmetic on aggregates; `what` is known only once the aggregates are."""


@dataclass(slots=True)
class SelectReader:
    """Reads the outermost SELECT; HAVING and ORDER BY add the aggregates that are not shown to `numbers`."""

    catalogue: Catalogue
    select: exp.Select
    rows: NamedRows = field(init=False)
    reader: ExpressionReader = field(init=False)
    measures: AggregateReader = field(init=False)
    items: list[Item] = field(init=False)
    keys: list[Key] = field(init=False)
    sets: GroupingSets | None = field(init=False)
    numbers: dict[str, Aggregate] = field(init=False)
    computed: dict[str, Node] = field(default_factory=dict)
    named_formulas: set[str] = field(default_factory=set)
    hidden: list[str] = field(default_factory=list)

    def query(self) -> Query:
        """The question as a value."""
        relations = RelationReader(self.catalogue)
        self.rows = relations.rows(self.select)
        self.reader, self.measures = relations.reader(self.rows), relations.measures(self.rows)
        self.measures.mark_values(self.select)
        self.items = [self._item(item) for item in self.select.expressions]
        self.keys = self._keys()
        self._check_items()
        self.numbers = self._numbers()
        self._compute()
        having, order, limit = self._having(), self._order(), self._limit()
        try:
            formulas = tuple(self.computed.items())
            arrangement = Arrangement(having, order, limit, tuple(sorted(self.hidden)), formulas)
            query = Query(
                self.rows.relation.input,
                tuple(self.keys),
                tuple(self.numbers.items()),
                arrangement,
                sets=self.sets,
            )
            return query.in_order(*(self._column(item).name for item in self.items if item.is_aggregate))
        except UserError as error:
            at = self.select.args.get("group") if isinstance(error, TooManyGroups) else None
            raise self.source.placed(span(at or self.select), error) from None

    @property
    def source(self) -> SqlText:
        return self.catalogue.source

    # --- SELECT and GROUP BY --------------------------------------------------------------------

    def _item(self, item: Tree) -> Item:
        alias = str(item.args["alias"].this) if isinstance(item, exp.Alias) else None
        tree = simplest(self.source, bare(item.this if isinstance(item, exp.Alias) else item))
        if is_formula(tree, self._is_number):
            self.named_formulas.add((alias or "").casefold())
            return Item(tree, alias, Column(alias or ""), is_aggregate=True, is_formula=True)
        is_aggregate = has_aggregate(tree)
        return Item(tree, alias, self.measures.read(tree) if is_aggregate else self._key_of(tree), is_aggregate)

    def _key_of(self, tree: Tree) -> Node:
        if self.catalogue.is_person(self.rows, tree) and self.catalogue.column(self.rows, tree) is None:  # type: ignore[arg-type]
            shown = self.source.words(span(tree))
            why = f"{shown} identifies a person, so it can't be shown or grouped by"
            line = f"COUNT(DISTINCT {shown})"
            raise self.source.refusal(
                span(tree), why, remedy=write(sql=line, advice="Count people instead", exact=True)
            )
        return named_values.listed(self.rows.relation.input, self.reader.key(tree))

    def _keys(self) -> list[Key]:
        group = self.select.args.get("group")
        keys: list[Key] = []
        if group is not None and not group.expressions and not group.args.get("rollup"):
            raise self._no(group, "GROUP BY needs at least one key, such as GROUP BY region")
        plain = group is None or groupings.is_plain(group)
        found = [] if group is None or plain else groupings.sets_of(self.source, group)
        for tree in [] if group is None else group.expressions if plain else [tree for each in found for tree in each]:
            node = self._grouped(tree)
            if not names(node):
                raise self._no(tree, "this is the same for every row", "Group by a column, without single quotes")
            if any(key.expression == node for key in keys):
                if not plain:
                    continue
                raise self._no(tree, "this is in GROUP BY twice")
            key = Key(self._key_name(tree, node), node)
            try:
                groups = groups_of(self.rows.relation.input, (node,))
            except UserError as error:
                kind = node.type(self.rows.types)
                item = self._at(tree) or self._aliased(tree)
                meant = tree if item is None else item.tree
                line = bounds.ranges(self.source, meant, kind) if isinstance(kind, NumberType) else ""
                if isinstance(kind, TimeType):
                    line = f"DATE_TRUNC('month', {bounds.written(self.source, meant)})"
                if line:
                    error.remedy = write(sql=line)
                raise self.source.placed(span(tree), error) from None
            if not groups.most:
                raise self._no(
                    tree, "the conditions in WHERE exclude all of these groups", "Remove one of the conditions"
                )
            keys.append(key)
        if not plain and not keys:
            raise self._no(group or self.select, "GROUP BY needs at least one key, such as GROUP BY region")
        places = {key.expression: place for place, key in enumerate(keys)}
        sets = tuple(tuple(sorted({places[self._grouped(tree)] for tree in each})) for each in found)
        if len({*sets}) < len(sets):
            raise self._no(group or self.select, "the same set of keys is in GROUP BY twice")
        self.sets = None if plain or sets == (tuple(range(len(keys))),) else sets
        return keys

    def _key_name(self, tree: Tree, node: Node) -> str:
        """The alias; else the name of the column, also of its bins or months; else the words of the expression."""
        items = [item for item in self.items if not item.is_aggregate and item.what == node]
        for item in items:
            if item.alias:
                return item.alias
        for written in (tree, *(item.tree for item in items)):
            if isinstance(written, exp.Column) and self.catalogue.column(self.rows, written) is not None:
                return self.catalogue.spelled(self.rows, written)
        inner = node
        while isinstance(inner, Bin | Truncate):
            inner = inner.operand
        return inner.name if isinstance(inner, Column) else name_of(node)

    def _grouped(self, tree: Tree) -> Node:
        """The key that a position, an alias or an expression means."""
        item = self._at(tree) or self._aliased(tree)
        column = isinstance(tree, exp.Column) and self.catalogue.column(self.rows, tree) is not None
        if item is not None and item.is_aggregate and not column:
            raise self._no(tree, "rows can't be grouped by an aggregate", "Group by a column")
        if item is None or column:
            node = self._key_of(tree)
            if item is not None and not item.is_aggregate and item.what != node:
                why = f"{self.source.words(span(tree))} is a column, but AS gives that name to something else"
                raise self._no(tree, why, "Choose another name after AS")
            return node
        return item.what  # type: ignore[return-value]

    def _at(self, tree: Tree) -> Item | None:
        """The item of SELECT at this position."""
        place = number(self.source, tree)
        if place is None:
            return None
        if place.denominator != 1 or not 1 <= place <= len(self.items):
            raise self._no(tree, f"positions in SELECT are 1 to {len(self.items)}")
        return self.items[int(place) - 1]

    def _aliased(self, tree: Tree) -> Item | None:
        """The item of SELECT that has this alias."""
        if not isinstance(tree, exp.Column) or tree.args.get("table") is not None:
            return None
        name, quoted = str(tree.this.this), tree.this.args.get("quoted")
        matches = [
            item
            for item in self.items
            if item.alias is not None and (item.alias == name if quoted else item.alias.casefold() == name.casefold())
        ]
        return matches[0] if len(matches) == 1 else None

    def _check_items(self) -> None:
        seen: list[Node] = []
        for item in self.items:
            if item.is_aggregate:
                continue
            shown = self.source.words(whole(item.tree))
            if not names(item.what):  # type: ignore[arg-type]
                raise self._no(
                    item.tree, f"{shown} is the same for every row", "Ask for an aggregate, such as COUNT(*)"
                )
            if not any(key.expression == item.what for key in self.keys):
                why = f"{shown} is neither in GROUP BY nor in an aggregate"
                kind = item.what.type(self.rows.types)  # type: ignore[union-attr]
                many = isinstance(kind, NumberType) and not kind.integer
                advice = f"Aggregate it, as in AVG({shown})" if many else f"Add GROUP BY {shown}, or aggregate it"
                raise self.source.refusal(whole(item.tree), why, advice)
            if any(before == item.what for before in seen):
                raise self.source.refusal(whole(item.tree), f"{shown} is in SELECT twice")
            seen.append(item.what)  # type: ignore[arg-type]

    def _numbers(self) -> dict[str, Aggregate]:
        numbers: dict[str, Aggregate] = {}
        taken = {key.name for key in self.keys}
        for item in self.items:
            if item.is_aggregate and not item.is_formula:
                name = item.alias or name_of(item.what)
                if name in taken:
                    raise self._twice(item, name)
                numbers[name] = item.what  # type: ignore[assignment]
                taken.add(name)
        if not any(item.is_aggregate for item in self.items):
            raise self._no(self.select, "a question needs an aggregate", "Add one, such as COUNT(*)")
        return numbers

    def _twice(self, item: Item, name: str) -> QueryError:
        why = f"two columns of the answer are named {name}"
        return self.source.refusal(whole(item.tree), why, "Rename one of them with AS")

    # --- arithmetic on the answer ---------------------------------------------------------------

    def _compute(self) -> None:
        """Read the formulas of SELECT, in order; the aggregates in them are measured."""
        for place, item in enumerate(self.items):
            if not item.is_formula:
                continue
            node = self.formulas.read(item.tree)
            name = item.alias or name_of(node)
            if name in self._taken(item):
                raise self._twice(item, name)
            self._check(name, node, item.tree)
            self.computed[name] = node
            self.items[place] = replace(item, what=node)

    def _check(self, name: str, node: Node, at: Tree) -> None:
        try:
            computed.checked(((name, node),))
        except UserError as error:
            raise self.source.placed(whole(at), error) from None

    @property
    def formulas(self) -> FormulaReader:
        return FormulaReader(
            self.source,
            lambda tree: self._measured(self.measures.read(tree)),
            self._number,
            self._key_named,
            lambda name: self.numbers[name].is_amount,
            [[self.keys[place].name for place in each] for each in self.sets or ()],
        )

    def _taken(self, but: Item | None = None) -> set[str]:
        """The names that are in use, or will be."""
        later = {item.alias for item in self.items if item.is_formula and item.alias and item is not but}
        return {*self.numbers, *self.computed, *(key.name for key in self.keys), *later}

    def _is_number(self, tree: Tree) -> bool:
        """Whether a name is the alias of an aggregate, and of nothing else."""
        if not isinstance(tree, exp.Column) or tree.args.get("table") is not None:
            return False
        name = str(tree.this.this).casefold()
        aliases = (item for item in self.select.expressions if isinstance(item, exp.Alias) and has_aggregate(item.this))
        named = {str(item.args["alias"].this).casefold() for item in aliases}
        if name not in named | self.named_formulas:
            return False
        return self.catalogue.column(self.rows, tree) is None

    def _number(self, tree: Tree) -> Node | None:
        """The column or the formula that a name of the answer stands for."""
        item = self._aliased(tree)
        if item is None or not item.is_aggregate:
            return self._by_name(tree)
        if not item.is_formula:
            return self._column(item)
        known = self.computed.get(item.alias or "")
        if known is None:
            raise self._no(tree, f"{item.alias} is used before it is computed", "Put it first in SELECT")
        return known

    def _key_named(self, tree: Tree) -> str | None:
        item = self._aliased(tree)
        try:
            node = item.what if item is not None and not item.is_aggregate else self._key_of(tree)
        except QueryError:
            return None
        return next((key.name for key in self.keys if key.expression == node), None)

    # --- HAVING, ORDER BY, LIMIT ----------------------------------------------------------------

    def _having(self) -> Node | None:
        having = self.select.args.get("having")
        if having is None:
            return None
        condition = ExpressionReader(self.source, _AnswerColumns(self), self._shown).condition(having.this, "HAVING")
        nodes, types = tuple(key.expression for key in self.keys), self.rows.types
        groups = groups_of(self.rows.relation.input, nodes)
        assert not isinstance(groups, Sets)
        values = dict(zip((key.name for key in self.keys), groups.values, strict=True))
        if groups.is_public and not can_pass(
            condition, {key.name: key.expression.type(types) for key in self.keys}, values
        ):
            raise self.source.refusal(whole(having.this), "no group can satisfy this, whatever its values are")
        return condition

    def _order(self) -> tuple[Order, ...]:
        order = self.select.args.get("order")
        orders: list[Order] = []
        for ordered in [] if order is None else order.expressions:
            tree = bare(ordered.this)
            item = self._at(tree)
            name = self._shown(tree) if item is None else self._column(item)
            if not isinstance(name, Column):
                raise self._no(tree, "ORDER BY takes columns of the answer: a key, an aggregate, or an alias")
            if any(before.column == name.name for before in orders):
                raise self._no(tree, "this is in ORDER BY twice")
            orders.append(Order(name.name, bool(ordered.args.get("desc"))))
        return tuple(orders)

    def _limit(self) -> int | None:
        limit = self.select.args.get("limit")
        if limit is None:
            return None
        groups = number(self.source, limit.expression)
        if groups is None or groups.denominator != 1 or not 1 <= groups <= 10_000:
            raise self._no(limit, "LIMIT must be a whole number from 1 to 10,000")
        return int(groups)

    def _shown(self, tree: Tree) -> Node | None:
        """The column of the answer that a part of HAVING or ORDER BY means; a new aggregate is added."""
        tree = simplest(self.source, tree)
        if is_measured(tree):
            return Column(self._measured(self.measures.read(tree)))
        if is_formula(tree, lambda part: self._number(part) is not None):
            return Column(self._formula(tree))
        item = self._aliased(tree)
        if item is not None:
            below = self.catalogue.column(self.rows, tree)  # type: ignore[arg-type]
            own = None if below is None else named_values.listed(self.rows.relation.input, Column(below))
            if item.what != own and any(key.expression == own for key in self.keys):
                raise self._no(
                    tree, "this is a key, but AS gives that name to something else", "Choose another name after AS"
                )
            return self._column(item)
        by_name = self._by_name(tree)
        if by_name is not None:
            return by_name
        if isinstance(tree, _COMPARING) or number(self.source, tree) is not None:
            return None
        if isinstance(tree, exp.Is | exp.Like):
            raise self._no(
                tree, "columns of the answer are never NULL", "Compare them with = <> < <= > >= IN or BETWEEN"
            )
        if has_aggregate(tree):
            self.measures.read(tree)  # raises the error with the remedy
        self._check_known(tree)
        if any(self._aliased(part) or self._by_name(part) for part in tree.walk()):
            raise self.source.refusal(
                whole(tree), "columns of the answer can be compared, and used in arithmetic, but not in this"
            )
        node = self._key_of(tree)
        key = next((key for key in self.keys if key.expression == node), None)
        if key is not None:
            return Column(key.name)
        shown = self.source.words(whole(tree))
        why = f"{shown} is not a column of the answer"
        raise self.source.refusal(whole(tree), why, "Group by it, or aggregate it")

    def _check_known(self, tree: Tree) -> None:
        """Refuse a name that is neither a column of the answer nor of its rows; it may be a misspelled alias."""
        if not isinstance(tree, exp.Column) or tree.args.get("table") is not None:
            return
        if self.catalogue.column(self.rows, tree) is None and not self.catalogue.is_person(self.rows, tree):
            shown = [*(key.name for key in self.keys), *self.numbers, *self.computed]
            known = [name for name in shown if name not in self.hidden]
            near = nearest(tree.name, known)
            raise self.source.refusal(
                span(tree),
                f"the answer has no column {self.source.words(span(tree))}",
                "" if near is None else f"Did you mean {near}?",
                allowed=f"Its columns are: {', '.join(known)}",
            )

    def _by_name(self, tree: Tree) -> Column | None:
        """A number of the answer by its default name, such as avg_income."""
        if not isinstance(tree, exp.Column) or tree.args.get("table") is not None:
            return None
        if self.catalogue.column(self.rows, tree) is not None:
            return None
        name = str(tree.this.this)
        return Column(name) if name in self.numbers and name not in self.hidden else None

    def _column(self, item: Item) -> Column:
        if not item.is_aggregate:
            return Column(next(key.name for key in self.keys if key.expression == item.what))
        return Column(item.alias or name_of(item.what))

    def _measured(self, what: Aggregate) -> str:
        for name, known in self.numbers.items():
            if known == what:
                return name
        name = self._free(name_of(what))
        self.numbers[name] = what
        self.hidden.append(name)
        return name

    def _formula(self, tree: Tree) -> str:
        """The column of a formula in HAVING or ORDER BY; one that is not in SELECT is computed and not shown."""
        node = self.formulas.read(tree)
        for name, known in self.computed.items():
            if known == node:
                return name
        name = self._free(name_of(node))
        self._check(name, node, tree)
        self.computed[name] = node
        self.hidden.append(name)
        return name

    def _free(self, base: str) -> str:
        name, count, taken = base, 1, self._taken()
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        return name

    def _no(self, at: Tree, what: str, advice: str = "") -> QueryError:
        return self.source.refusal(span(at), what, advice)


class _AnswerColumns(Columns):
    """The types of an answer's columns, including aggregates that are added later."""

    def __init__(self, question: SelectReader) -> None:
        types = question.rows.types
        keys = {key.name: key.expression.type(types) for key in question.keys}
        super().__init__(keys, frozenset(keys))

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> NumberType:
        return RELEASED
