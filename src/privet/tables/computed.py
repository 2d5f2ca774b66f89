"""Columns that are computed from released ones: `pay - 180`, `n / total(n)`. Post-processing, which costs nothing.

A formula reads columns of the answer, and is an expression like any other, of fewer kinds: numbers, + - * /, rounding,
clipping, totals over groups, and ends of intervals. It is total: what has no value, such as x / 0, is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from privet.errors import QueryError, Remedy, Subject, write
from privet.exact import Exact
from privet.names.spelling import there_are
from privet.tables.expressions.nodes import Arithmetic, Clip, Column, Constant, Grouping, Node, OfAnswer, Rounded
from privet.tables.expressions.rendering import in_sql, show
from privet.tables.expressions.trees import parts, replaced, sized
from privet.tables.schema import check_name

MOST_PARTS = 100
"""Maximum parts of a formula."""
MOST_FORMULAS = 100
MOST_STEPS = 200_000
"""Maximum parts of all formulas, times the number of groups: some seconds of exact arithmetic."""

LONGEST = 128
"""Maximum bits of a number in a formula: longer ones make exact arithmetic slow."""

EXAMPLE = write('compute(share=pv.col("n") / pv.total("n"))', sql="COUNT(*) / SUM(COUNT(*)) OVER () AS share")
_COMPUTABLE = (Column, Constant, Arithmetic, Rounded, Clip, OfAnswer, Grouping)

Formulas = tuple[tuple[str, Node], ...]
Leaf = Column | OfAnswer | Grouping


def leaves(node: Node) -> Iterator[Leaf]:
    """Every mention of a column or of keys, in reading order."""
    if isinstance(node, Leaf):
        yield node
    for part in parts(node):
        yield from leaves(part)


def reads(node: Node) -> frozenset[str]:
    """The columns that a formula reads."""
    read = (leaf for leaf in leaves(node) if not isinstance(leaf, Grouping))
    return frozenset(leaf.name if isinstance(leaf, Column) else leaf.column for leaf in read)


def affine(node: Node) -> tuple[str, Exact] | None:
    """The column and the factor of a formula that is a multiple of one column plus a number; None for any other.

    Example:
        >>> from privet.tables.expressions.fluent import col
        >>> affine(((col("pay") - 180) / 2).node)
        ('pay', Fraction(1, 2))
    """
    match node:
        case Column(name):
            return name, Exact(1)
        case Arithmetic("+" | "-", of, Constant()) | Arithmetic("+", Constant(), of):
            return affine(of)
        case Arithmetic("-", Constant(), of):
            factor = Exact(-1)
        case Arithmetic("*", of, Constant(Exact() as factor)) | Arithmetic("*", Constant(Exact() as factor), of):
            pass
        case Arithmetic("/", of, Constant(Exact() as divisor)) if divisor:
            factor = 1 / divisor
        case _:
            return None
    inner = affine(of)
    return None if inner is None else (inner[0], inner[1] * factor)


def checked(formulas: Formulas) -> None:
    """Refuse what is not a formula, whatever columns the answer has."""
    if len(formulas) > MOST_FORMULAS:
        raise QueryError(f"an answer can have at most {MOST_FORMULAS} computed columns")
    for name, node in formulas:
        check_name(name, "column of the answer")
        pile = [sized(node)]
        count = 0
        while pile:
            part = pile.pop()
            count += 1
            if not isinstance(part, _COMPUTABLE) or (isinstance(part, Constant) and type(part.value) is not Exact):
                raise QueryError(
                    f"{show(part)} can't be used in arithmetic on an answer",
                    allowed="A formula has columns of the answer, numbers, + - * /, round, floor, ceil, abs and clip",
                    remedy=EXAMPLE,
                )
            if isinstance(part, Arithmetic) and part.operator == "/" and part.right == Constant(Exact(0)):
                raise QueryError(f"{name} divides by 0, so it is always missing")
            pile += parts(part)
        if count > MOST_PARTS:
            raise QueryError(f"{name} has {count} parts, but a formula can have at most {MOST_PARTS}")
        if next(leaves(node), None) is None:
            raise QueryError(f"{name} uses no column of the answer", remedy=EXAMPLE)


def check_steps(formulas: Formulas, groups: int) -> None:
    """Refuse more arithmetic than an answer with so many groups can have."""
    for name, node in formulas:
        if any(max(map(int.bit_length, number.as_integer_ratio())) > LONGEST for number in _numbers(node)):
            raise QueryError(f"{name!r} has a number of more than {LONGEST} bits", remedy=Remedy("Round it"))
    steps = sum(_size(node) for _, node in formulas) * groups
    if steps > MOST_STEPS:
        raise QueryError(
            f"this is too much arithmetic for {groups:,} groups: {steps:,} steps, of at most {MOST_STEPS:,}",
            allowed="Compute with fewer columns, or with the answer itself",
        )


def _numbers(node: Node) -> Iterator[Exact]:
    """The constants of a formula."""
    if isinstance(node, Constant) and isinstance(node.value, Exact):
        yield node.value
    if isinstance(node, Clip):
        yield from (node.lower, node.upper)
    for part in parts(node):
        yield from _numbers(part)


def _size(node: Node) -> int:
    return 1 + sum(map(_size, parts(node)))


def check_columns(
    formulas: Formulas,
    *,
    measured: Collection[str],
    amounts: Collection[str],
    keys: Collection[str],
    on_levels: bool = False,
) -> None:
    """Refuse a formula that reads a column which the answer does not have; totals are of counts and sums."""
    for name, node in formulas:
        for leaf in leaves(node):
            if isinstance(leaf, Grouping):
                _check_grouping(leaf, keys, on_levels=on_levels)
                continue
            column = leaf.name if isinstance(leaf, Column) else leaf.column
            if column in keys:
                raise QueryError(
                    f"{column!r} is a key, and only numbers of the answer can be used in arithmetic",
                    subject=Subject("column", column),
                )
            if column not in measured:
                raise QueryError(
                    f"{name} reads {column!r}, but the answer has no such column",
                    allowed=there_are(column, measured),
                    subject=Subject("column", column),
                )
            if isinstance(leaf, OfAnswer) and leaf.function == "total":
                if column not in amounts:
                    raise QueryError(
                        f"{column!r} is not a count or a sum, so it has no total",
                        allowed=f"Counts and sums are: {', '.join(amounts) or 'none'}",
                    )
                for key in leaf.by:
                    if key not in keys:
                        raise QueryError(
                            f"the total of {column!r} is by {key!r}, which is not a key of the answer",
                            allowed=there_are(key, keys, "keys"),
                        )
                if len(set(leaf.by)) < len(leaf.by):
                    raise QueryError(f"the total of {column!r} lists a key twice")


def _check_grouping(leaf: Grouping, keys: Collection[str], *, on_levels: bool) -> None:
    for key in leaf.keys:
        if key not in keys:
            raise QueryError(
                f"{show(leaf)} is about {key!r}, which is not a key of the answer",
                allowed=there_are(key, keys, "keys"),
                subject=Subject("column", key),
            )
    if not on_levels:
        raise QueryError(
            f"{show(leaf)} is always 0 here, because no row of the answer is a total",
            remedy=write(f'rollup("{leaf.keys[0]}")', sql=f"GROUP BY ROLLUP ({in_sql(Column(leaf.keys[0]))})"),
        )


def with_earlier(node: Node, formulas: Formulas) -> Node:
    """A formula in which the names of earlier ones stand for what they compute."""
    earlier: Mapping[Node, Node] = {Column(name): what for name, what in formulas}
    return replaced(node, earlier) if earlier else node
