"""Aggregates: COUNT, SUM, AVG, VAR_POP, STDDEV_POP, and ratios of counts and sums."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from sqlglot import exp

from privet.errors import NoBounds, QueryError, UserError, write
from privet.exact import Exact
from privet.exact import show as show_number
from privet.privacy.adjacency import Person
from privet.sql import hints
from privet.sql.expressions import ExpressionReader
from privet.sql.functions import FUNCTIONS, called, is_aggregate
from privet.sql.grammar import Tree, bare, span, whole
from privet.sql.literals import number
from privet.sql.source import SqlText
from privet.tables.aggregates import Aggregate, ApproxBounds, Count, CountPeople, OfValues, Ratio, Sum, checked
from privet.tables.caps import of_person
from privet.tables.expressions.nodes import Clip, Column, Node
from privet.tables.expressions.rendering import in_sql, show
from privet.tables.expressions.typing_rules import as_number
from privet.tables.operators import OfPerson, Operator, protected

_LONGEST = 100
_OPERATORS: dict[type[Tree], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Neg: "-"}


@dataclass(frozen=True, slots=True)
class AggregateReader:
    """Reads aggregates over rows; `is_person` says whether a column identifies the person."""

    reader: ExpressionReader
    rows: Operator
    is_person: Callable[[Tree], bool]

    def read(self, tree: Tree) -> Aggregate:
        """The aggregate to compute for each group."""
        tree = bare(tree)
        match tree:
            case exp.Count():
                return self._count(tree)
            case exp.Min() | exp.Max():
                raise self._no(tree, *hints.call(self._words(tree)))
            case exp.Div() if has_aggregate(tree):
                return self._ratio(tree)
        function = called(tree)
        if function is FUNCTIONS["APPROX_BOUNDS"]:
            return self._approx_bounds(tree)
        if function is not None and function.aggregate is not None:
            return self._bounded(tree, function.aggregate(self._of(tree)))
        raise self._no(tree, *_arithmetic(self.reader.source, tree))

    def of_person(self, tree: Tree) -> OfPerson:
        """The aggregate that a subquery computes for each person."""
        inner = bare(tree)
        match inner:
            case exp.Count():
                counted = self._count(inner)
                if isinstance(counted, Count):
                    return OfPerson("count", counted.expression)
            case exp.Sum() | exp.Avg() | exp.Min() | exp.Max():
                function = {exp.Sum: "sum", exp.Avg: "mean", exp.Min: "min", exp.Max: "max"}[type(inner)]
                return OfPerson(function, self._of(inner))  # type: ignore[arg-type]
        why = "per person, only COUNT, SUM, AVG, MIN and MAX are supported"
        raise self.reader.source.refusal(whole(tree), why, "Name it with AS, and compute with it outside the subquery")

    def _count(self, tree: exp.Count) -> Count | CountPeople:
        argument = tree.this
        if isinstance(argument, exp.Star):
            return Count()
        if isinstance(argument, exp.Distinct):
            if len(argument.expressions) == 1 and self.is_person(argument.expressions[0]):
                return CountPeople()
            for column in argument.expressions:
                self.reader.read(column)  # report an unknown name first
            raise self._no(argument, "only people can be counted as distinct", self._people())
        if argument is None:
            raise self._no(tree, "COUNT needs an argument", "Write COUNT(*)")
        if number(self.reader.source, argument) is not None:
            return Count()
        return Count(self.reader.read(argument))

    def _people(self) -> str:
        """How to count people here."""
        protect = protected(self.rows)
        if not isinstance(protect, Person):
            return "Every row here belongs to a different person, so write COUNT(*)"
        return f"To count people, write COUNT(DISTINCT {in_sql(Column(protect.id))})"

    def _of(self, tree: Tree) -> Node:
        argument = _argument(tree)
        if isinstance(argument, exp.Distinct):
            raise self._no(argument, "DISTINCT is not supported", self._people())
        inner = next((part for part in argument.walk() if is_aggregate(part)), None)
        if inner is not None:
            why = f"{self._words(inner)} can't be used inside {self._words(tree)}"
            raise self._no(inner, why, "Compute it per person in a subquery first")
        return self.reader.read(argument)

    def _bounded(self, tree: Tree, aggregate: OfValues) -> Aggregate:
        ends = of_person(self.rows, aggregate.expression.name) if isinstance(aggregate.expression, Column) else None
        if ends is not None:
            aggregate = replace(aggregate, expression=Clip(aggregate.expression, *ends[:2]))
        shown, function = self.reader.source.words(whole(_argument(tree))), self._words(tree)
        try:
            kind = as_number(aggregate.expression.type(self.reader.types), f"{function}({shown})")
            if kind.wide:
                raise NoBounds(
                    "one person could change this without limit, so no amount of noise is enough",
                    remedy=write(
                        sql=f"{function}(CLIP({shown}, 0, 1000)), or first SELECT APPROX_BOUNDS({shown})",
                        advice="Choose bounds, or pay for them first",
                    ),
                )
            kind.bounds()
        except UserError as error:
            raise self.reader.source.placed(whole(tree), error) from None
        return cast(Aggregate, aggregate)

    def _approx_bounds(self, tree: Tree) -> ApproxBounds:
        if len(tree.expressions) != 1:
            raise self._no(tree, "APPROX_BOUNDS needs one argument", "Write APPROX_BOUNDS(x)")
        bounds = ApproxBounds(self._of(tree))
        try:
            checked(bounds, self.reader.types)
        except UserError as error:
            raise self.reader.source.placed(whole(tree), error) from None
        return bounds

    def _ratio(self, tree: exp.Div) -> Ratio:
        top, bottom = bare(tree.this), bare(tree.expression)
        if isinstance(bottom, exp.Nullif) and number(self.reader.source, bottom.expression) == 0:
            bottom = bare(bottom.this)  # Privet never divides by zero
        if not isinstance(top, exp.Count | exp.Sum) or not isinstance(bottom, exp.Count | exp.Sum):
            raise self.reader.source.refusal(whole(tree), *_arithmetic(self.reader.source, tree))
        over, under = self.read(top), self.read(bottom)
        assert isinstance(over, Count | CountPeople | Sum)
        assert isinstance(under, Count | CountPeople | Sum)
        return Ratio(over, under)

    def _words(self, tree: Tree) -> str:
        return self.reader.source.words(span(tree))

    def _no(self, at: Tree, what: str, advice: str = "") -> QueryError:
        return self.reader.source.refusal(span(at), what, advice)


def has_aggregate(tree: Tree) -> bool:
    """Whether it contains an aggregate."""
    return any(is_aggregate(part) for part in tree.walk())


def _argument(tree: Tree) -> Tree:
    """What a call with one argument is of."""
    return tree.expressions[0] if isinstance(tree, exp.Anonymous) and tree.expressions else tree.this  # type: ignore[no-any-return]


def name_of(what: Aggregate | OfPerson | Node) -> str:
    """The default name of a column: the function, and the words of its argument.

    Example:
        >>> from privet.privacy.adjacency import Person
        >>> from privet.tables.aggregates import count, mean, sum
        >>> from privet.tables.expressions.fluent import col
        >>> name_of(count()), name_of(mean("income")), name_of(sum(col("pay") / 12) / count())
        ('count', 'avg_income', 'sum_pay_12_per_count')
    """
    match what:
        case Count(None) | OfPerson("count", None):
            name = "count"
        case CountPeople():
            name = "count_people"
        case Ratio(top, bottom):
            name = f"{name_of(top)[:45]}_per_{name_of(bottom)[:45]}"
        case OfPerson(function, of) if of is not None:
            name = f"{'avg' if function == 'mean' else function}_{_words(of)}"
        case Count(of) if of is not None:
            name = f"count_{_words(of)}"
        case ApproxBounds(of):
            name = f"bounds_{_words(of)}"
        case OfValues(of):
            named = next(each.name for each in FUNCTIONS.values() if each.aggregate is type(what))
            name = f"{named.lower()}_{_words(of)}"
        case _:
            name = _words(what)  # type: ignore[arg-type]
    return name[:_LONGEST]


def _words(node: Node) -> str:
    node = node.operand if isinstance(node, Clip) else node
    return "_".join(re.findall(r"\w+", show(node))) or "value"


def _arithmetic(source: SqlText, tree: Tree) -> hints.Refusal:
    """Why arithmetic on aggregates is refused here, and what to write instead."""
    sign = _OPERATORS.get(type(tree))
    if sign is None:
        return "only aggregates can be released", f"Use {', '.join(hints.AGGREGATES)}"
    factor, unscaled = _factored(source, tree)
    shown = _shown(source, unscaled)
    if isinstance(unscaled, exp.Div):
        under = bare(unscaled.expression)
        (above, top), (below, bottom) = (
            _factored(source, side) for side in (unscaled.this, under.this if isinstance(under, exp.Nullif) else under)
        )
        able = isinstance(top, exp.Count | exp.Sum) and isinstance(bottom, exp.Count | exp.Sum)
        factor, shown = factor * above / below, f"{_shown(source, top)} / {_shown(source, bottom)}" if able else ""
    elif not isinstance(unscaled, exp.Count) and getattr(called(unscaled), "aggregate", None) is None:
        shown = ""
    if shown and "..." not in shown:
        by = f"divide the answer by {show_number(1 / factor)}"
        if factor.denominator == 1 or factor.numerator != 1:
            by = f"multiply the answer by {show_number(factor)}"
        return "an aggregate can't be scaled here", f"Write {shown}{'' if factor == 1 else f', and {by}'}"
    return (
        f"{sign} can't be used between aggregates",
        "You can divide one count or sum by another: SUM(pay) / SUM(hours). For the rest, compute with the answers",
    )


def _factored(source: SqlText, tree: Tree) -> tuple[Exact, Tree]:
    """The constant factor of an aggregate, and the aggregate without it."""
    tree = bare(tree)
    if isinstance(tree, exp.Mul | exp.Div):
        left, right = number(source, tree.this), number(source, tree.expression)
        if right:
            factor, unscaled = _factored(source, tree.this)
            return (factor * right if isinstance(tree, exp.Mul) else factor / right), unscaled
        if left and isinstance(tree, exp.Mul):
            factor, unscaled = _factored(source, tree.expression)
            return factor * left, unscaled
    return Exact(1), tree


def _shown(source: SqlText, tree: Tree) -> str:
    if isinstance(tree, exp.Count) and isinstance(tree.this, exp.Star):
        return "COUNT(*)"
    return source.words(whole(tree))
