"""Bounds and bins, as SQL writes them: CLIP, LEAST, GREATEST, FLOOR(x / 10) * 10, WIDTH_BUCKET."""

from __future__ import annotations

import math
from typing import cast

from sqlglot import exp

from privet.errors import UserError, write
from privet.exact import Exact, show
from privet.sql.grammar import Tree, bare, span, whole
from privet.sql.literals import number
from privet.sql.source import SqlText
from privet.tables.expressions import nodes as e
from privet.tables.expressions.fluent import Expr, bins
from privet.tables.expressions.typing_rules import as_number
from privet.tables.types import NumberType

MOST_BINS = 1_000
_BUCKETS = write(sql="WIDTH_BUCKET(age, 0, 100, 10)")


def bound(source: SqlText, tree: Tree) -> Exact:
    """The number that is written here; an error if it is something else."""
    value = number(source, tree)
    if value is None:
        raise source.refusal(span(tree), "this must be a number, such as 100000")
    return value


def one_end(source: SqlText, tree: exp.Least | exp.Greatest) -> tuple[Tree, Exact]:
    """The expression that LEAST or GREATEST clamps, and the number it is clamped to."""
    sides = [tree.this, *tree.expressions]
    ends = [number(source, side) for side in sides]
    if len(sides) == 2 and sum(end is None for end in ends) == 1:
        place = 0 if ends[0] is None else 1
        return sides[place], cast(Exact, ends[1 - place])
    why = f"{source.words(span(tree))} takes one expression and one number"
    raise source.refusal(span(tree), why, "For two expressions, write CASE WHEN a < b THEN a ELSE b END")


def numeric(source: SqlText, at: Tree, node: e.Node, types: e.Types, width: Exact | None = None) -> NumberType:
    """The public range of an expression; an error, which suggests bins of this width, if it has no public bounds."""
    try:
        kind = as_number(node.type(types), source.words(span(at)))
    except UserError as error:
        raise source.placed(span(at), error) from None
    if kind.wide:
        line = f"CLIP({written(source, at)}, 0, 1000)" if width is None or width <= 0 else _bins(source, at, width)
        raise source.refusal(span(at), "this has no public bounds", remedy=write(sql=line, exact=True))
    return kind


def written(source: SqlText, tree: Tree) -> str:
    """An expression as it is written, or x if it is long."""
    words = source.words(whole(tree))
    return "x" if words.endswith("...") else words


def ranges(source: SqlText, tree: Tree, kind: NumberType) -> str:
    """What to write in GROUP BY instead of a number with too many values or without bounds."""
    inner = bare(tree)
    ratio = bare(inner.this) if isinstance(inner, exp.Floor) else None
    if kind.wide:
        width = number(source, ratio.expression) if isinstance(ratio, exp.Div) else None
        binning = (ratio.this, width) if isinstance(ratio, exp.Div) and width is not None and width > 0 else None
        return _bins(source, *(binning or (tree, Exact(100))))
    width = Exact(10) ** math.floor(math.log10((kind.upper - kind.lower) / 10)) if kind.lower < kind.upper else Exact(1)
    return _bins(source, inner.this if isinstance(inner, exp.Floor) else tree, width, clipped=False)


def _bins(source: SqlText, tree: Tree, width: Exact, *, clipped: bool = True) -> str:
    shown = written(source, tree)
    if clipped:
        shown = f"CLIP({shown}, 0, {show(10 * width)})"
    elif not isinstance(bare(tree), exp.Column | exp.Func):
        shown = f"({shown})"
    return f"FLOOR({shown} / {show(width)}) * {show(width)}" if width != 1 else f"FLOOR({shown})"


def binned(tree: Tree, source: SqlText) -> tuple[Tree, Exact] | None:
    """The x and the width of FLOOR(x / 10) * 10; None if this is something else."""
    product = bare(tree)
    if not isinstance(product, exp.Mul):
        return None
    for floor, by in ((product.this, product.expression), (product.expression, product.this)):
        inner = bare(floor)
        ratio = bare(inner.this) if isinstance(inner, exp.Floor) else None
        width = number(source, by)
        if isinstance(ratio, exp.Div) and width is not None and number(source, ratio.expression) == width:
            return ratio.this, width
    return None


def bins_of(source: SqlText, at: Tree, node: e.Node, kind: NumberType, width: Exact) -> e.Node:
    """Bins of this width over the whole range; the first begins at a multiple of the width."""
    if width <= 0:
        raise source.refusal(span(at), "the bin width must be greater than 0")
    first, last = math.floor(kind.lower / width), math.floor(kind.upper / width) + 1
    if last - first > MOST_BINS:
        why = f"this makes {last - first:,} bins; at most {MOST_BINS:,} are allowed"
        raise source.refusal(span(at), why, "Use wider bins")
    return bins(Expr(node), [i * width for i in range(first, last + 1)]).node


def buckets(source: SqlText, tree: exp.WidthBucket, node: e.Node, kind: NumberType) -> e.Node:
    """The n equal ranges from lower to upper, and one below and one above if the declared range is wider."""
    ends = [tree.args.get(name) for name in ("min_value", "max_value", "num_buckets")]
    if any(end is None for end in ends):
        raise source.refusal(span(tree), "WIDTH_BUCKET takes four arguments", remedy=_BUCKETS)
    low, high, count = (bound(source, cast(Tree, end)) for end in ends)
    if count.denominator != 1 or not 1 <= count <= MOST_BINS - 2 or low >= high:
        why = f"WIDTH_BUCKET takes a lower bound, a greater upper bound, and 1 to {MOST_BINS - 2} buckets"
        raise source.refusal(span(tree), why, remedy=_BUCKETS)
    edges = [low + (high - low) * i / count for i in range(int(count) + 1)]
    below, above = [kind.lower] * (kind.lower < low), [kind.upper] * (kind.upper > high)
    return bins(Expr(node), [*below, *edges, *above]).node
