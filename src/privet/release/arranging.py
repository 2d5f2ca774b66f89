"""Which groups of an answer are shown, and in which order; depends only on released numbers and public keys."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from privet.errors import InternalError
from privet.planner import ReleasePlan
from privet.planner.outputs import Cells
from privet.tables.expressions.nodes import Column, Compare, Constant, IsIn, Logic, Node, Not
from privet.tables.groups import Group
from privet.tables.query import Query

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def groups(query: Query) -> list[Group]:
    """The keys of every group, in the fixed order; without keys there is one group, ()."""
    return list(query.groups)


def shown(plan: ReleasePlan, cells: Mapping[str, Cells]) -> tuple[int, ...]:
    """The positions of the groups to show, in their order.

    Claim: ties stay in the fixed order; a number that is not a number comes last. A total has no key, so no comparison
    with it is true.
    """
    query, arranged = plan.query, plan.query.arrangement
    chosen = list(range(plan.groups))
    columns: dict[str, Sequence[Any]] = {name: column.values for name, column in cells.items()}
    ranks: dict[str, Sequence[Any]] = dict(columns)
    for i, (key, values) in enumerate(zip(query.keys, query.domains(), strict=True)):
        columns[key.name] = [group[i] for group in groups(query)]
        place = {value: rank for rank, value in enumerate([*values, None])}  # totals come last
        ranks[key.name] = [place[value] for value in columns[key.name]]
    if arranged.having is not None:
        having = arranged.having
        chosen = [i for i in chosen if _value(having, {name: column[i] for name, column in columns.items()}) is True]
    for order in reversed(arranged.order):
        chosen.sort(key=_rank(ranks[order.column], last=not order.descending), reverse=order.descending)
    return tuple(chosen[: arranged.limit])


def _rank(values: Sequence[Any], *, last: bool) -> Callable[[int], tuple[bool, Any]]:
    def rank(i: int) -> tuple[bool, Any]:
        strange = isinstance(values[i], float) and math.isnan(values[i])
        return strange is last, 0 if strange else values[i]

    return rank


def _value(node: Node, row: Mapping[str, Any]) -> Any:
    """The value of an expression for one group; None if it has none."""
    match node:
        case Column(name):
            value = row[name]
            return None if isinstance(value, float) and math.isnan(value) else value
        case Constant(value):
            return value
        case Compare(how, left, right):
            return _compared(how, _value(left, row), _value(right, row))
        case IsIn(of, values):
            one = _value(of, row)
            return None if one is None else any(_compared("==", one, constant.value) for constant in values)
        case Not(of):
            truth = _value(of, row)
            return None if truth is None else not truth
        case Logic(how, of):
            decisive = how == "or"
            truths = [_value(part, row) for part in of]
            return decisive if decisive in truths else None if None in truths else not decisive
        case _:
            raise InternalError(f"{type(node).__name__} in the arrangement of an answer. This is a bug in Privet.")


def _compared(how: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, datetime) != isinstance(right, datetime):  # a date is its midnight
        left, right = _moment(left), _moment(right)
    return _COMPARE[how](left, right)


def _moment(of: date) -> datetime:
    return of if isinstance(of, datetime) else datetime(of.year, of.month, of.day)
