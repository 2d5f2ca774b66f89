"""The outermost SELECT: its groups, its aggregates, and how the answer is arranged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from privet.errors import QueryError, TooManyGroups, UserError, write
from privet.sql import bounds, groupings
from privet.sql.aggregates import AggregateReader, has_aggregate, name_of
from privet.sql.arranging import ArrangementReader
from privet.sql.expressions import ExpressionReader
from privet.sql.formulas import FormulaReader, is_formula, simplest
from privet.sql.grammar import Tree, bare, span, whole
from privet.sql.literals import number
from privet.sql.names import Catalogue, NamedRows
from privet.sql.relations import RelationReader
from privet.sql.source import SqlText
from privet.tables import computed
from privet.tables.aggregates import Aggregate
from privet.tables.analysis import named_values
from privet.tables.arrangement import Arrangement, names
from privet.tables.discovered import groups_of
from privet.tables.expressions.nodes import Bin, Column, Node, Truncate
from privet.tables.groups import GroupingSets
from privet.tables.query import Key, Query
from privet.tables.types import NumberType, TimeType


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
        arranged = ArrangementReader(self)
        having, order, limit = arranged.having(), arranged.order(), arranged.limit()
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
            shown = [self.column_of(item).name for item in self.items if item.is_aggregate]
            return query.in_order(*shown) if shown else query
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
        return Item(tree, alias, self.measures.read(tree) if is_aggregate else self.key_of(tree), is_aggregate)

    def key_of(self, tree: Tree) -> Node:
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
                item = self.item_at(tree) or self.aliased(tree)
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
        item = self.item_at(tree) or self.aliased(tree)
        column = isinstance(tree, exp.Column) and self.catalogue.column(self.rows, tree) is not None
        if item is not None and item.is_aggregate and not column:
            raise self._no(tree, "rows can't be grouped by an aggregate", "Group by a column")
        if item is None or column:
            node = self.key_of(tree)
            if item is not None and not item.is_aggregate and item.what != node:
                why = f"{self.source.words(span(tree))} is a column, but AS gives that name to something else"
                raise self._no(tree, why, "Choose another name after AS")
            return node
        return item.what  # type: ignore[return-value]

    def item_at(self, tree: Tree) -> Item | None:
        """The item of SELECT at this position."""
        place = number(self.source, tree)
        if place is None:
            return None
        if place.denominator != 1 or not 1 <= place <= len(self.items):
            raise self._no(tree, f"positions in SELECT are 1 to {len(self.items)}")
        return self.items[int(place) - 1]

    def aliased(self, tree: Tree) -> Item | None:
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
        if not any(item.is_aggregate for item in self.items) and not self._finds_keys():
            raise self._no(self.select, "a question needs an aggregate", "Add one, such as COUNT(*)")
        return numbers

    def _finds_keys(self) -> bool:
        """Whether the keys are an answer by themselves, because they are not public."""
        try:
            return not groups_of(self.rows.relation.input, tuple(key.expression for key in self.keys)).is_public
        except TooManyGroups:
            return False

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
            self.check_formula(name, node, item.tree)
            self.computed[name] = node
            self.items[place] = replace(item, what=node)

    def check_formula(self, name: str, node: Node, at: Tree) -> None:
        try:
            computed.checked(((name, node),))
        except UserError as error:
            raise self.source.placed(whole(at), error) from None

    @property
    def formulas(self) -> FormulaReader:
        return FormulaReader(
            self.source,
            lambda tree: self.measured(self.measures.read(tree)),
            self.number_named,
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

    def number_named(self, tree: Tree) -> Node | None:
        """The column or the formula that a name of the answer stands for."""
        item = self.aliased(tree)
        if item is None or not item.is_aggregate:
            return self.by_name(tree)
        if not item.is_formula:
            return self.column_of(item)
        known = self.computed.get(item.alias or "")
        if known is None:
            raise self._no(tree, f"{item.alias} is used before it is computed", "Put it first in SELECT")
        return known

    def _key_named(self, tree: Tree) -> str | None:
        item = self.aliased(tree)
        try:
            node = item.what if item is not None and not item.is_aggregate else self.key_of(tree)
        except QueryError:
            return None
        return next((key.name for key in self.keys if key.expression == node), None)

    # --- columns of the answer -----------------------------------------------------------------

    def by_name(self, tree: Tree) -> Column | None:
        """A number of the answer by its default name, such as avg_income."""
        if not isinstance(tree, exp.Column) or tree.args.get("table") is not None:
            return None
        if self.catalogue.column(self.rows, tree) is not None:
            return None
        name = str(tree.this.this)
        return Column(name) if name in self.numbers and name not in self.hidden else None

    def column_of(self, item: Item) -> Column:
        if not item.is_aggregate:
            return Column(next(key.name for key in self.keys if key.expression == item.what))
        return Column(item.alias or name_of(item.what))

    def measured(self, what: Aggregate) -> str:
        for name, known in self.numbers.items():
            if known == what:
                return name
        name = self.free_name(name_of(what))
        self.numbers[name] = what
        self.hidden.append(name)
        return name

    def free_name(self, base: str) -> str:
        name, count, taken = base, 1, self._taken()
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        return name

    def _no(self, at: Tree, what: str, advice: str = "") -> QueryError:
        return self.source.refusal(span(at), what, advice)
