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
from privet.tables.aggregates import (
    Aggregate,
    ApproxBounds,
    Count,
    CountDistinct,
    CountPeople,
    OfValues,
    Ratio,
    Sum,
    checked,
    filtered,
)
from privet.tables.caps import of_person
from privet.tables.expressions.nodes import Case, Clip, Column, Constant, Node
from privet.tables.expressions.rendering import in_sql, show
from privet.tables.expressions.typing_rules import as_number
from privet.tables.operators import OfPerson, Operator, protected
from privet.tables.ranked import Extreme, Quantiles

_LONGEST = 100
_OF_VALUES = "of values"
_WITHIN_GROUP = "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)"


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
            case exp.Filter():
                return self._filtered(tree)
            case exp.Count():
                return self._count(tree)
            case exp.Coalesce() if has_aggregate(tree):
                raise self._no(tree, "released numbers are never NULL", "Write the aggregate without COALESCE")
            case exp.Min() | exp.Max():
                return self._bounded(tree, Extreme(self._of(tree), isinstance(tree, exp.Max)))
            case exp.Median():
                return self._bounded(tree, Quantiles(self._of(tree), (Exact(1, 2),)))
            case exp.PercentileCont() | exp.WithinGroup():
                return self._quantile(tree)
            case exp.Div() if has_aggregate(tree):
                return self._ratio(tree)
        function = called(tree)
        if function is FUNCTIONS["APPROX_BOUNDS"]:
            return self._approx_bounds(tree)
        if function is not None and function.aggregate is not None:
            return self._bounded(tree, function.aggregate(self._of(tree)))
        raise self._no(tree, "only aggregates can be released", f"Use {', '.join(hints.AGGREGATES)}")

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

    def _filtered(self, tree: exp.Filter) -> Aggregate:
        """COUNT(*) FILTER (WHERE ...): the aggregate of the rows for which a condition is true."""
        if not is_aggregate(bare(tree.this)):
            raise self._no(tree.this, "FILTER needs an aggregate", "Write COUNT(*) FILTER (WHERE smoker)")
        inner = self.read(tree.this)
        if isinstance(inner, CountPeople):
            why = "FILTER can't be used with a count of people"
            raise self._no(tree.this, why, "Put the condition in WHERE, or ask for this count in a question of its own")
        if not isinstance(inner, Count | CountDistinct | OfValues):
            raise self._no(tree.this, "FILTER can't be used with this aggregate", "Put the condition in WHERE")
        condition = self.reader.condition(tree.expression.this, "FILTER")
        return cast(Aggregate, filtered(inner, condition))

    def _count(self, tree: exp.Count) -> Count | CountDistinct | CountPeople:
        argument = tree.this
        if isinstance(argument, exp.Star):
            return Count()
        if isinstance(argument, exp.Distinct):
            if len(argument.expressions) == 1 and self.is_person(argument.expressions[0]):
                return CountPeople()
            columns = [self.reader.read(column) for column in argument.expressions]  # an unknown name comes first
            if len(columns) == 1:
                return CountDistinct(columns[0])
            raise self._no(argument, "only one value at a time can be counted as distinct", self._people())
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
        return self._read(_argument(tree), tree)

    def _read(self, argument: Tree, tree: Tree) -> Node:
        """The argument of an aggregate."""
        if isinstance(argument, exp.Distinct):
            raise self._no(argument, "DISTINCT is not supported", self._people())
        inner = next((part for part in argument.walk() if is_aggregate(part)), None)
        if inner is not None:
            why = f"{self._words(inner)} can't be used inside {self._words(tree)}"
            raise self._no(inner, why, "Compute it per person in a subquery first")
        return self.reader.read(argument)

    def _quantile(self, tree: exp.PercentileCont | exp.WithinGroup) -> Aggregate:
        """QUANTILE_CONT(x, 0.9), or PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)."""
        call, descending = tree, False
        if isinstance(tree, exp.WithinGroup):
            call, order = tree.this, tree.expression.expressions
            if not isinstance(call, exp.PercentileCont) or call.expression is not None or len(order) != 1:
                raise self._no(tree, "WITHIN GROUP is not supported here", f"Write {_WITHIN_GROUP}")
            (ordered,) = order
            of, given, descending = ordered.this, call.this, bool(ordered.args.get("desc"))
        elif self._words(tree).upper() == "PERCENTILE_CONT" or tree.expression is None:
            raise self._incomplete(tree)
        else:
            of, given = tree.this, tree.expression
        share = number(self.reader.source, given)
        if share is None:
            raise self._no(given, "a quantile must be a number", "Write QUANTILE_CONT(x, 0.9)")
        try:
            aggregate = Quantiles(self._read(of, call), (1 - share if descending else share,))
        except UserError as error:
            raise self.reader.source.placed(span(given), error) from None
        return self._bounded(call, aggregate, of)

    def _incomplete(self, tree: exp.PercentileCont) -> QueryError:
        """A quantile without its share, or in the form of the other function."""
        name, sides = self._words(tree), [side for side in (tree.this, tree.expression) if side is not None]
        of = next((side for side in sides if number(self.reader.source, side) is None), None)
        share = next((side for side in sides if number(self.reader.source, side) is not None), None)
        x = "x" if of is None else self.reader.source.words(whole(of))
        q = "0.9" if share is None else self.reader.source.words(whole(share))
        within = name.upper() == "PERCENTILE_CONT"
        line = f"{name}({q}) WITHIN GROUP (ORDER BY {x})" if within else f"{name}({x}, {q})"
        why = (
            f"{name} takes the share of rows that are below, and then what is ordered"
            if within
            else (f"{name} takes a value and the share of rows that are below")
        )
        return self.reader.source.refusal(span(tree), why, remedy=write(sql=line))

    def _bounded(
        self, tree: Tree, aggregate: OfValues | Quantiles | Extreme, argument: Tree | None = None
    ) -> Aggregate:
        ends = of_person(self.rows, aggregate.expression.name) if isinstance(aggregate.expression, Column) else None
        if ends is not None:
            aggregate = replace(aggregate, expression=Clip(aggregate.expression, *ends[:2]))
        shown, function = self.reader.source.words(whole(argument or _argument(tree))), self._words(tree)
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
        over, under = self.read(tree.this), self.read(without_nullif(tree.expression))
        assert isinstance(over, Count | CountPeople | Sum)  # by `is_amount`
        assert isinstance(under, Count | CountPeople | Sum)
        return Ratio(over, under)

    def mark_values(self, tree: Tree) -> None:
        """Mark the counts of different values: they are not counts of rows or people, of which a ratio is made."""
        for part in tree.find_all(exp.Count):
            of = part.this
            if isinstance(of, exp.Distinct) and not any(map(self.is_person, of.expressions)):
                part.meta[_OF_VALUES] = True

    def _words(self, tree: Tree) -> str:
        return self.reader.source.words(span(tree))

    def _no(self, at: Tree, what: str, advice: str = "") -> QueryError:
        return self.reader.source.refusal(span(at), what, advice)


def has_aggregate(tree: Tree) -> bool:
    """Whether it contains an aggregate."""
    return any(is_aggregate(part) for part in tree.walk())


def is_amount(tree: Tree) -> bool:
    """Whether it is a count of rows or people, or a sum: a ratio can be made of two."""
    tree = bare(tree.this) if isinstance(tree, exp.Filter) else tree
    return isinstance(tree, exp.Count | exp.Sum) and _OF_VALUES not in tree.meta


def without_nullif(tree: Tree) -> Tree:
    """A denominator without NULLIF(..., 0): Privet never divides by zero."""
    tree = bare(tree)
    if isinstance(tree, exp.Nullif) and isinstance(tree.expression, exp.Literal) and str(tree.expression.this) == "0":
        return bare(tree.this)
    return tree


def _argument(tree: Tree) -> Tree:
    """What a call with one argument is of."""
    return tree.expressions[0] if isinstance(tree, exp.Anonymous) and tree.expressions else tree.this  # type: ignore[no-any-return]


_WORD = re.compile(r"\w+|[<>!]=|[-+*/<>=]")
_OPERATORS = {
    "+": "plus", "-": "minus", "*": "times", "/": "per", "=": "is", "!=": "is_not", "<": "below", "<=": "at_most",
    ">": "above", ">=": "at_least",
}  # fmt: skip


def name_of(what: Aggregate | OfPerson | Node) -> str:
    """The default name of a column: the function, and the words of its argument, with operators as words.

    Example:
        >>> from privet.privacy.adjacency import Person
        >>> from privet.tables.aggregates import count, mean, sum
        >>> from privet.tables.expressions.fluent import col
        >>> name_of(count()), name_of(mean("income")), name_of(sum(col("pay") / 12) / count())
        ('count', 'avg_income', 'sum_pay_per_12_per_count')
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
        case Quantiles(of, ranks):
            middle = ranks == (Exact(1, 2),)
            name = f"{'median' if middle else 'quantile_' + show_number(ranks[0]).replace('.', '_')}_{_words(of)}"
        case Extreme(of, largest):
            name = f"{'max' if largest else 'min'}_{_words(of)}"
        case CountDistinct(of):
            name = f"count_distinct_{_words(of)}"
        case ApproxBounds(of):
            name = f"bounds_{_words(of)}"
        case OfValues(of):
            named = next(each.name for each in FUNCTIONS.values() if each.aggregate is type(what))
            name = f"{named.lower()}_{_words(of)}"
        case _:
            name = _words(what)  # type: ignore[arg-type]
    return name[:_LONGEST]


def _words(node: Node) -> str:
    if isinstance(node, Case) and node.otherwise is None and len(node.branches) == 1:  # as FILTER makes it
        (when, then), *_ = node.branches
        return f"{'' if then == Constant(Exact(1)) else f'{_words(then)}_'}where_{_words(when)}"
    node = node.operand if isinstance(node, Clip) else node
    return "_".join(_OPERATORS.get(word, word) for word in _WORD.findall(show(node))) or "value"


def factored(source: SqlText, tree: Tree) -> tuple[Exact, Tree]:
    """The constant factor of an aggregate, and the aggregate without it."""
    tree = bare(tree)
    if isinstance(tree, exp.Mul | exp.Div):
        left, right = number(source, tree.this), number(source, tree.expression)
        if right:
            factor, unscaled = factored(source, tree.this)
            return (factor * right if isinstance(tree, exp.Mul) else factor / right), unscaled
        if left and isinstance(tree, exp.Mul):
            factor, unscaled = factored(source, tree.expression)
            return factor * left, unscaled
    return Exact(1), tree
