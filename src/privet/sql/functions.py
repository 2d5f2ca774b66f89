"""Every function of SQL that a question may call: one record each.

The grammar allows what is listed here, hints suggest it, and the readers look up how to read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from privet.tables.aggregates import Mean, OfValues, Std, Sum, Variance
from privet.tables.expressions import nodes as e

if TYPE_CHECKING:
    from privet.sql.expressions import ExpressionReader

Tree = exp.Expr


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its name, the parser's node for it, and how a call is read."""

    name: str
    use: str
    """How it is called and what it gives: for the reference."""
    node: type[Tree] = exp.Anonymous
    """What sqlglot makes of a call; `Anonymous` if it does not know the name."""
    arguments: str = "this"
    """The parts that the node may have; others are refused. `Anonymous` has its arguments in `expressions`."""
    read: Callable[[ExpressionReader, Any], e.Node] | None = None
    """Reads a call over one row. None for aggregates, and where only some clause allows a call."""
    aggregate: type[OfValues] | None = None
    """The aggregate of one expression that a call makes."""
    over_groups: bool = False
    """Whether it is an aggregate, of this or another form."""
    suggested: bool = True
    """Whether errors suggest this name."""

    @property
    def forms(self) -> tuple[str, ...]:
        """How it is called, in each of its forms.

        Example:
            >>> FUNCTIONS["COUNT"].forms, FUNCTIONS["SUM"].forms
            (('COUNT(*)', 'COUNT(x)', 'COUNT(DISTINCT person_id)'), ('SUM(x)',))
        """
        return tuple(re.findall("`([^`]*)`", self.use.partition(": ")[0]))

    @property
    def is_aggregate(self) -> bool:
        """Whether it combines rows."""
        return self.over_groups or self.aggregate is not None


def _rounded(how: Any) -> Callable[[ExpressionReader, Any], e.Node]:
    return lambda reader, tree: e.Rounded(how, reader.operand(tree.this))


def _part(part: Any) -> Callable[[ExpressionReader, Any], e.Node]:
    return lambda reader, tree: e.DatePart(reader.operand(tree.this), part)


_EVERY = (
    # aggregates
    Function("COUNT", "`COUNT(*)`, `COUNT(x)`, `COUNT(DISTINCT person_id)`: rows, rows with a value, people; "
             "`COUNT(DISTINCT x)`: different values",
             exp.Count, "this big_int", over_groups=True),
    Function("SUM", "`SUM(x)`: the sum", exp.Sum, aggregate=Sum),
    Function("AVG", "`AVG(x)`: the mean", exp.Avg, aggregate=Mean),
    Function("VAR_POP", "`VAR_POP(x)`: the variance, divided by n", exp.VariancePop, aggregate=Variance),
    Function("STDDEV_POP", "`STDDEV_POP(x)`: the standard deviation, divided by n", exp.StddevPop, aggregate=Std),
    Function("APPROX_BOUNDS", "`APPROX_BOUNDS(x)`: bounds to clip to, between powers of two, and the share inside",
             over_groups=True, suggested=False),
    Function("MEDIAN", "`MEDIAN(x)`: the median", exp.Median, over_groups=True),
    Function("QUANTILE_CONT", "`QUANTILE_CONT(x, 0.9)`: the value that 90 % of the rows are below",
             exp.PercentileCont, "this expression", over_groups=True),
    Function("PERCENTILE_CONT", "`PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)`: the same as `QUANTILE_CONT`",
             exp.PercentileCont, "this expression", over_groups=True, suggested=False),
    Function("MIN", "`MIN(x)`: the smallest value, some rows inside of the edge; of one person, in a subquery that "
             "groups by the person, exactly", exp.Min, over_groups=True),
    Function("MAX", "`MAX(x)`: the greatest value, some rows inside of the edge; of one person, in a subquery that "
             "groups by the person, exactly", exp.Max, over_groups=True),
    # levels and intervals of an answer
    Function("GROUPING", "`GROUPING(region)`: 1 in the totals over a key of `ROLLUP`, `CUBE` or `GROUPING SETS`, else "
             "0; of several keys, the bits of one number", exp.Grouping, "expressions"),
    Function("GROUPING_ID", "`GROUPING_ID(region, town)`: the same as `GROUPING`", exp.GroupingId, "expressions",
             suggested=False),
    Function("DP_INTERVAL_LOW", "`DP_INTERVAL_LOW(n)`: the lower end of the interval of a column of the answer"),
    Function("DP_INTERVAL_HIGH", "`DP_INTERVAL_HIGH(n)`: the upper end"),
    # numbers
    Function("CLIP", "`CLIP(x, 0, 100)`: the number, clamped to these bounds",
             read=lambda reader, tree: reader.clip(tree)),
    Function("LEAST", "`LEAST(x, 100)`: the number, at most this", exp.Least, "this expressions ignore_nulls",
             read=lambda reader, tree: reader.one_sided(tree)),
    Function("GREATEST", "`GREATEST(x, 0)`: the number, at least this", exp.Greatest, "this expressions ignore_nulls",
             read=lambda reader, tree: reader.one_sided(tree)),
    Function("ABS", "`ABS(x)`: the number without its sign", exp.Abs, read=_rounded("abs")),
    Function("FLOOR", "`FLOOR(x)`: rounded down; `GROUP BY FLOOR(x / 10)` makes bins", exp.Floor,
             read=_rounded("floor")),
    Function("CEIL", "`CEIL(x)`: rounded up", exp.Ceil, read=_rounded("ceil")),
    Function("ROUND", "`ROUND(AVG(x), 1)`: a number of the answer, rounded to digits", exp.Round, "this decimals"),
    Function("CEILING", "`CEILING(x)`: the same as `CEIL`", exp.Ceil, read=_rounded("ceil"), suggested=False),
    # any type
    Function("COALESCE", "`COALESCE(x, y)`: the first that is not missing", exp.Coalesce, "this expressions",
             read=lambda reader, tree: reader.coalesce([tree.this, *tree.expressions])),
    Function("IF", "`IF(condition, x, y)`: x where the condition is true, y elsewhere", exp.If, "this true false",
             read=lambda reader, tree: reader.case(tree)),
    Function("NULLIF", "`NULLIF(SUM(x), 0)`: only in the denominator of a ratio", exp.Nullif, "this expression",
             suggested=False),
    Function("STARTS_WITH", "`STARTS_WITH(name, 'North')`: whether a text begins like this", exp.StartsWith,
             "this expression",
             read=lambda reader, tree: e.StartsWith(reader.operand(tree.this), reader.text(tree.expression))),
    Function("LOWER", "`LOWER(region) = 'north'`: a key, whatever its case; also with `<>`, `IN`, `LIKE`", exp.Lower),
    Function("UPPER", "`UPPER(region) = 'NORTH'`: the same in capitals", exp.Upper),
    Function("WIDTH_BUCKET", "`WIDTH_BUCKET(x, 0, 100, 10)`: bins of equal width, only in `GROUP BY`",
             exp.WidthBucket, "this min_value max_value num_buckets"),
    # dates
    Function("DATE_TRUNC", "`DATE_TRUNC('month', day)`: the first day of the period", exp.TimestampTrunc, "this unit",
             read=lambda reader, tree: reader.truncate(tree)),
    Function("DATE_PART", "`DATE_PART('year', day)`: a part of a date",
             read=lambda reader, tree: reader.named_part(tree)),
    Function("EXTRACT", "`EXTRACT(year FROM day)`: a part of a date", exp.Extract, "this expression",
             read=lambda reader, tree: reader.part(tree.this, tree.expression)),
    Function("YEAR", "`YEAR(day)`", exp.Year, read=_part("year")),
    Function("QUARTER", "`QUARTER(day)`: 1 to 4", exp.Quarter, read=_part("quarter")),
    Function("MONTH", "`MONTH(day)`: 1 to 12", exp.Month, read=_part("month")),
    Function("DAY", "`DAY(day)`: the day of the month", exp.Day, read=_part("day")),
    Function("HOUR", "`HOUR(time)`: 0 to 23", exp.Hour, read=_part("hour")),
    Function("ISODOW", "`ISODOW(day)`: the day of the week, 1 is Monday", exp.DayOfWeekIso, read=_part("weekday")),
)  # fmt: skip

FUNCTIONS: dict[str, Function] = {each.name: each for each in _EVERY}
"""Every function by its name, in capitals. Anything else is refused."""

_SAME_NODE: dict[type[Tree], type[Tree]] = {exp.DateTrunc: exp.TimestampTrunc}
"""Where the parser has two nodes for one function."""


def arguments() -> dict[type[Tree], str]:
    """The nodes of all functions, and the parts that each may have."""
    nodes = {each.node: each.arguments for each in FUNCTIONS.values()} | {exp.Anonymous: "this expressions"}
    return nodes | {twin: nodes[node] for twin, node in _SAME_NODE.items()}


def names() -> dict[type[Tree], tuple[str, ...]]:
    """The names by which each node is called: other names for the same node may mean something else."""
    called: dict[type[Tree], tuple[str, ...]] = {}
    for each in FUNCTIONS.values():
        if each.node is not exp.If:  # CASE is one too, without a name
            called[each.node] = (*called.get(each.node, ()), each.name)
    return called | {twin: called[node] for twin, node in _SAME_NODE.items()}


def suggested(*, aggregates: bool | None = None) -> tuple[str, ...]:
    """The names that errors suggest: of all functions, or of aggregates alone."""
    every: Iterable[Function] = FUNCTIONS.values()
    return tuple(each.name for each in every if each.suggested and (not aggregates or each.is_aggregate))


_BY_NODE = {each.node: each for each in reversed(_EVERY)} | {
    exp.DateTrunc: FUNCTIONS["DATE_TRUNC"],
    exp.WithinGroup: FUNCTIONS["PERCENTILE_CONT"],
}


def called(tree: Tree) -> Function | None:
    """The function that a node calls, if it is a call."""
    return FUNCTIONS.get(str(tree.this).upper()) if isinstance(tree, exp.Anonymous) else _BY_NODE.get(type(tree))


def is_aggregate(tree: Tree) -> bool:
    """Whether a node calls an aggregate."""
    function = called(tree)
    return function is not None and function.is_aggregate
