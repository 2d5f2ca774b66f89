"""Arithmetic on answers: AVG(x) - 180, COUNT(*) / SUM(COUNT(*)) OVER (), ROUND(AVG(x), 1), DP_INTERVAL_LOW(n)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlglot import exp

from privet.errors import QueryError, write
from privet.exact import Exact
from privet.sql import bounds
from privet.sql.aggregates import factored, has_aggregate, is_amount, without_nullif
from privet.sql.functions import called, is_aggregate
from privet.sql.grammar import Tree, bare, span, whole
from privet.sql.literals import number
from privet.sql.source import SqlText
from privet.tables.expressions.nodes import Arithmetic, Clip, Column, Constant, Grouping, Node, OfAnswer, Rounded
from privet.tables.expressions.rendering import in_sql

_OPERATORS: dict[type[Tree], Literal["+", "-", "*", "/"]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"
}  # fmt: skip
_ROUNDED: dict[type[Tree], Literal["floor", "ceil", "abs"]] = {
    exp.Floor: "floor", exp.Ceil: "ceil", exp.Abs: "abs"
}  # fmt: skip
_ENDS: dict[str, Literal["low", "high"]] = {"DP_INTERVAL_LOW": "low", "DP_INTERVAL_HIGH": "high"}
_SHARE = write(sql="COUNT(*) / SUM(COUNT(*)) OVER ()")
_GROUPING = (exp.Grouping, exp.GroupingId)


def is_measured(tree: Tree) -> bool:
    """Whether it is an aggregate that is measured as it is, such as AVG(x) or SUM(x) / COUNT(*)."""
    tree = bare(tree)
    if isinstance(tree, exp.Div):
        return is_amount(bare(tree.this)) and is_amount(without_nullif(tree.expression))
    return is_aggregate(tree) or isinstance(tree, exp.Filter)


def simplest(source: SqlText, tree: Tree) -> Tree:
    """A ratio without factors that cancel: COUNT(*) * 1.0 / COUNT(x) is COUNT(*) / COUNT(x)."""
    above, ratio = _ratio(source, tree)
    return tree if ratio is None or above != 1 else ratio


def _ratio(source: SqlText, tree: Tree) -> tuple[Exact, Tree | None]:
    """A ratio of counts or sums, and the number that it is multiplied by; None if this is something else."""
    tree = bare(tree)
    if not isinstance(tree, exp.Div):
        return Exact(1), None
    (above, top), (below, bottom) = (factored(source, side) for side in (tree.this, without_nullif(tree.expression)))
    if not below or not is_amount(top) or not is_amount(bottom):
        return Exact(1), None
    ratio = exp.Div(this=top, expression=bottom)
    ratio.meta.update(start=whole(tree).start, end=whole(tree).end)
    return above / below, ratio


def is_formula(tree: Tree, is_number: Callable[[Tree], bool]) -> bool:
    """Whether it is arithmetic on numbers of the answer; `is_number` says whether a name stands for one."""
    tree = bare(tree)
    function = called(tree)
    name = "" if function is None else function.name
    if name in _ENDS or isinstance(tree, _GROUPING):
        return True
    kinds = (*_OPERATORS, *_ROUNDED, exp.Neg, exp.Round, exp.Window)
    if is_measured(tree) or not (isinstance(tree, kinds) or name == "CLIP"):
        return False
    return any(has_aggregate(part) or _is_of_answer(part) or is_number(part) for part in tree.walk())


def _is_of_answer(tree: Tree) -> bool:
    """Whether it calls a function of the answer's rows: GROUPING, DP_INTERVAL_LOW or DP_INTERVAL_HIGH."""
    return isinstance(tree, _GROUPING) or (isinstance(tree, exp.Anonymous) and str(tree.this).upper() in _ENDS)


@dataclass(frozen=True, slots=True)
class FormulaReader:
    """Reads arithmetic on an answer as a formula of its columns."""

    source: SqlText
    measured: Callable[[Tree], str]
    """The name of the column that an aggregate is; a new one is measured."""
    named: Callable[[Tree], Node | None]
    """What a name of the answer stands for: a column, or a formula; None if it is no such name."""
    key: Callable[[Tree], str | None]
    """The name of a key of the answer."""
    is_amount: Callable[[str], bool]
    """Whether a column is a count or a sum."""
    levels: Sequence[Sequence[str]] = ()
    """The keys of each level of a ROLLUP, a CUBE or GROUPING SETS."""

    def read(self, tree: Tree) -> Node:
        """The formula."""
        tree = bare(tree)
        value = number(self.source, tree)
        if value is not None:
            return Constant(value)
        if is_measured(tree):
            return Column(self.measured(tree))
        node = self.named(tree)
        if node is not None:
            return node
        kind: Any = type(tree)
        match tree:
            case exp.Neg():
                return Arithmetic("-", Constant(Exact(0)), self.read(tree.this))
            case exp.Div():
                return self._quotient(tree)
            case exp.Add() | exp.Sub() | exp.Mul():
                return Arithmetic(_OPERATORS[kind], self.read(tree.this), self.read(tree.expression))
            case exp.Floor() | exp.Ceil() | exp.Abs():
                return Rounded(_ROUNDED[kind], self.read(tree.this))
            case exp.Round():
                return Rounded("round", self.read(tree.this), self._digits(tree))
            case exp.Window():
                return self._total(tree)
            case exp.Grouping() | exp.GroupingId():
                return self._grouping(tree)
            case exp.Anonymous() if _is_of_answer(tree):
                return self._end(tree)
            case exp.Anonymous() if str(tree.this).upper() == "CLIP" and len(tree.expressions) == 3:
                operand, *ends = tree.expressions
                low, high = (bounds.bound(self.source, end) for end in ends)
                return Clip(self.read(operand), low, high)
        raise self._refused(tree)

    def _quotient(self, tree: exp.Div) -> Node:
        """A quotient; if it is a ratio of counts or sums times a number, the ratio is measured as such."""
        factor, ratio = _ratio(self.source, tree)
        if ratio is not None:
            column = Column(self.measured(ratio))
            return column if factor == 1 else Arithmetic("*", column, Constant(factor))
        return Arithmetic("/", self.read(tree.this), self.read(without_nullif(tree.expression)))

    def _digits(self, tree: exp.Round) -> int:
        decimals = tree.args.get("decimals")
        value = Exact(0) if decimals is None else number(self.source, decimals)
        if value is None or value.denominator != 1 or abs(value) > 15:
            raise self._no(tree, "ROUND takes a number of digits from -15 to 15", "Write ROUND(AVG(income), 1)")
        return int(value)

    def _total(self, tree: exp.Window) -> Node:
        """SUM(COUNT(*)) OVER (), or OVER (PARTITION BY region)."""
        summed = bare(tree.this)
        if not isinstance(summed, exp.Sum):
            advice = "For a number of each group, use GROUP BY without OVER"
            remedy = write(sql=_SHARE.sql, advice=advice)
            raise self.source.refusal(whole(tree), "only totals are supported with OVER", remedy=remedy)
        column = self._column(summed.this)
        if column is None or not self.is_amount(column):
            why = "a total with OVER is of a count or a sum of each group"
            raise self.source.refusal(whole(tree), why, remedy=_SHARE)
        by, grouping = [], set()
        for part in tree.args.get("partition_by") or ():
            if isinstance(part, _GROUPING):
                grouping |= {*self._grouping(part).keys}
                continue
            key = self.key(part)
            if key is None:
                raise self._no(part, "PARTITION BY takes keys of GROUP BY")
            by.append(key)
        levels = {tuple(key in level for key in sorted(grouping)) for level in self.levels}
        if len(levels) < len(self.levels):  # as a database reads it
            every = dict.fromkeys(key for level in self.levels for key in level)
            keys = ", ".join(in_sql(Column(key)) for key in every)
            also = "".join(f", {in_sql(Column(key))}" for key in by)
            raise self.source.refusal(
                whole(tree),
                "this total would count every row several times, once for each level",
                remedy=write(
                    sql=f"{self.source.words(whole(summed))} OVER (PARTITION BY GROUPING({keys}){also})",
                    advice="Add up the groups of one level",
                    exact=True,
                ),
            )
        return OfAnswer("total", column, tuple(by))

    def _grouping(self, tree: Tree) -> Grouping:
        """GROUPING(region, town)."""
        keys = []
        for part in tree.expressions:
            key = self.key(part)
            if key is None:
                shown = self.source.words(whole(part))
                raise self._no(part, "GROUPING takes keys of GROUP BY", f"Add GROUP BY ROLLUP ({shown})")
            keys.append(key)
        try:
            return Grouping(tuple(keys))
        except QueryError as error:
            raise self.source.placed(span(tree), error) from None

    def _end(self, tree: exp.Anonymous) -> Node:
        name = str(tree.this).upper()
        column = self._column(tree.expressions[0]) if len(tree.expressions) == 1 else None
        if column is None:
            why = f"{name} takes one measured column of the answer"
            raise self.source.refusal(whole(tree), why, f"Write COUNT(*) AS n, {name}(n)")
        return OfAnswer(_ENDS[name], column)

    def _column(self, tree: Tree) -> str | None:
        """The measured column that a name or an aggregate is."""
        tree = bare(tree)
        node = Column(self.measured(tree)) if is_measured(tree) else self.named(tree)
        return node.name if isinstance(node, Column) else None

    def _refused(self, tree: Tree) -> QueryError:
        if self.key(tree) is not None:
            return self.source.refusal(
                whole(tree), "a key can't be used in arithmetic", "Compute with counts, sums and means"
            )
        if isinstance(tree, exp.Column):
            shown = self.source.words(span(tree))
            return self.source.refusal(
                span(tree), f"{shown} is neither an aggregate nor a name of one", f"Aggregate it, as in AVG({shown})"
            )
        if isinstance(tree, exp.Subquery | exp.Select):
            return self.source.refusal(whole(tree), "a SELECT can't be used in arithmetic on an answer", remedy=_SHARE)
        return self.source.refusal(
            whole(tree),
            f"{self.source.words(whole(tree))} can't be used in arithmetic on an answer",
            allowed="There are + - * /, ROUND, FLOOR, CEIL, ABS, CLIP, GROUPING, and SUM(...) OVER ()",
        )

    def _no(self, at: Tree, what: str, advice: str = "") -> QueryError:
        return self.source.refusal(span(at), what, advice)
