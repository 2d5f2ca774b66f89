"""Minimum and maximum: of a group or of one person (`min`, `max`), and of several values of one row."""

from __future__ import annotations

from typing import Any, Literal, overload

from privet.tables.expressions.fluent import Expr, column, node
from privet.tables.expressions.nodes import Case, Compare
from privet.tables.ranked import Extreme


def min(of: str | Expr, *, interval: bool = True) -> Extreme:  # noqa: A001
    """The smallest value: of one person in `per_person`; of a group in `agg`, a few ranks above it.

    Example:
        >>> print(min("age"))
        min(age)
    """
    return Extreme(column(of), False, interval)


def max(of: str | Expr, *, interval: bool = True) -> Extreme:  # noqa: A001
    """The largest value: of one person in `per_person`; of a group in `agg`, a few ranks below it.

    Example:
        >>> print(max("age"))
        max(age)
    """
    return Extreme(column(of), True, interval)


@overload
def least(of: str | Expr) -> Extreme: ...
@overload
def least(of: str | Expr, *others: Any) -> Expr: ...
def least(of: str | Expr, *others: Any) -> Extreme | Expr:
    """The smallest of several values of one row, missing if one of them is; with one argument, the same as `min`.

    Example:
        >>> least("first", 10)
        Expr(case when first <= 10 then first when 10 < first then 10 end)
    """
    return _row_wise("<=", "<", of, others) if others else min(of)


@overload
def greatest(of: str | Expr) -> Extreme: ...
@overload
def greatest(of: str | Expr, *others: Any) -> Expr: ...
def greatest(of: str | Expr, *others: Any) -> Extreme | Expr:
    """The largest of several values of one row, missing if one of them is; with one argument, the same as `max`."""
    return _row_wise(">=", ">", of, others) if others else max(of)


def _row_wise(
    first: Literal["<=", ">="], strictly: Literal["<", ">"], start: str | Expr, others: tuple[Any, ...]
) -> Expr:
    best = column(start)
    for other in others:
        value = column(other) if isinstance(other, str) else node(other)
        best = Case(((Compare(first, best, value), best), (Compare(strictly, value, best), value)), None)
    return Expr(best)
