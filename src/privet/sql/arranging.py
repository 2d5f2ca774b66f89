"""HAVING, ORDER BY and LIMIT: how the answer of a SELECT is arranged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from privet.errors import QueryError
from privet.names.spelling import nearest
from privet.sql.aggregates import has_aggregate, name_of
from privet.sql.expressions import ExpressionReader
from privet.sql.formulas import is_formula, is_measured, simplest
from privet.sql.grammar import Tree, bare, span, whole
from privet.sql.literals import number
from privet.tables.analysis import named_values
from privet.tables.arrangement import RELEASED, Order, can_pass
from privet.tables.discovered import groups_of
from privet.tables.expressions.nodes import Column, Node
from privet.tables.groups import Sets
from privet.tables.operators import Columns
from privet.tables.types import MOST_GROUPS, NumberType

if TYPE_CHECKING:
    from privet.sql.questions import SelectReader

_COMPARING = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between,
    exp.Literal, exp.Boolean, exp.Cast, exp.Subquery, exp.Null,
)  # fmt: skip
"""The nodes that HAVING may contain, besides columns of the answer."""


@dataclass(frozen=True, slots=True)
class ArrangementReader:
    """Reads what comes after the noise; aggregates and formulas that only it uses are added to the question."""

    question: SelectReader

    def having(self) -> Node | None:
        having = self.question.select.args.get("having")
        if having is None:
            return None
        condition = ExpressionReader(self.question.source, _AnswerColumns(self.question), self._shown).condition(
            having.this, "HAVING"
        )
        nodes, types = tuple(key.expression for key in self.question.keys), self.question.rows.types
        groups = groups_of(self.question.rows.relation.input, nodes)
        assert not isinstance(groups, Sets)
        values = dict(zip((key.name for key in self.question.keys), groups.values, strict=True))
        if groups.is_public and not can_pass(
            condition, {key.name: key.expression.type(types) for key in self.question.keys}, values
        ):
            raise self.question.source.refusal(whole(having.this), "no group can satisfy this, whatever its values are")
        return condition

    def order(self) -> tuple[Order, ...]:
        order = self.question.select.args.get("order")
        orders: list[Order] = []
        for ordered in [] if order is None else order.expressions:
            tree = bare(ordered.this)
            item = self.question.item_at(tree)
            name = self._shown(tree) if item is None else self.question.column_of(item)
            if not isinstance(name, Column):
                raise self._no(tree, "ORDER BY takes columns of the answer: a key, an aggregate, or an alias")
            if any(before.column == name.name for before in orders):
                raise self._no(tree, "this is in ORDER BY twice")
            orders.append(Order(name.name, bool(ordered.args.get("desc"))))
        return tuple(orders)

    def limit(self) -> int | None:
        limit = self.question.select.args.get("limit")
        if limit is None:
            return None
        groups = number(self.question.source, limit.expression)
        if groups is None or groups.denominator != 1 or groups < 1:
            raise self._no(limit, "LIMIT must be a whole number of 1 or more")
        return int(groups) if groups <= MOST_GROUPS else None  # no answer has more

    def _shown(self, tree: Tree) -> Node | None:
        """The column of the answer that a part of HAVING or ORDER BY means; a new aggregate is added."""
        tree = simplest(self.question.source, tree)
        if is_measured(tree):
            return Column(self.question.measured(self.question.measures.read(tree)))
        if is_formula(tree, lambda part: self.question.number_named(part) is not None):
            return Column(self._formula(tree))
        item = self.question.aliased(tree)
        if item is not None:
            below = self.question.catalogue.column(self.question.rows, tree)  # type: ignore[arg-type]
            own = None if below is None else named_values.listed(self.question.rows.relation.input, Column(below))
            if item.what != own and any(key.expression == own for key in self.question.keys):
                raise self._no(
                    tree, "this is a key, but AS gives that name to something else", "Choose another name after AS"
                )
            return self.question.column_of(item)
        by_name = self.question.by_name(tree)
        if by_name is not None:
            return by_name
        if isinstance(tree, _COMPARING) or number(self.question.source, tree) is not None:
            return None
        if isinstance(tree, exp.Is | exp.Like):
            raise self._no(
                tree, "columns of the answer are never NULL", "Compare them with = <> < <= > >= IN or BETWEEN"
            )
        if has_aggregate(tree):
            self.question.measures.read(tree)  # raises the error with the remedy
        self._check_known(tree)
        if any(self.question.aliased(part) or self.question.by_name(part) for part in tree.walk()):
            raise self.question.source.refusal(
                whole(tree), "columns of the answer can be compared, and used in arithmetic, but not in this"
            )
        node = self.question.key_of(tree)
        key = next((key for key in self.question.keys if key.expression == node), None)
        if key is not None:
            return Column(key.name)
        shown = self.question.source.words(whole(tree))
        why = f"{shown} is not a column of the answer"
        raise self.question.source.refusal(whole(tree), why, "Group by it, or aggregate it")

    def _check_known(self, tree: Tree) -> None:
        """Refuse a name that is neither a column of the answer nor of its rows; it may be a misspelled alias."""
        if not isinstance(tree, exp.Column) or tree.args.get("table") is not None:
            return
        if self.question.catalogue.column(self.question.rows, tree) is None and not self.question.catalogue.is_person(
            self.question.rows, tree
        ):
            shown = [*(key.name for key in self.question.keys), *self.question.numbers, *self.question.computed]
            known = [name for name in shown if name not in self.question.hidden]
            near = nearest(tree.name, known)
            raise self.question.source.refusal(
                span(tree),
                f"the answer has no column {self.question.source.words(span(tree))}",
                "" if near is None else f"Did you mean {near}?",
                allowed=f"Its columns are: {', '.join(known)}",
            )

    def _formula(self, tree: Tree) -> str:
        """The column of a formula in HAVING or ORDER BY; one that is not in SELECT is computed and not shown."""
        node = self.question.formulas.read(tree)
        for name, known in self.question.computed.items():
            if known == node:
                return name
        name = self.question.free_name(name_of(node))
        self.question.check_formula(name, node, tree)
        self.question.computed[name] = node
        self.question.hidden.append(name)
        return name

    def _no(self, at: Tree, what: str, advice: str = "") -> QueryError:
        return self.question.source.refusal(span(at), what, advice)


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
