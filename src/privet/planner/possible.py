"""What a number of an answer can be, whatever the data are: noisy numbers are cut to that, which costs nothing.

Counts and sums of their own are not cut: a count below 0 is noise, and is marked as that, and cutting would make the
sum of many counts too large.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from privet.exact import Exact, show
from privet.planner.cells import Ends
from privet.planner.intervals import ANY, Interval
from privet.planner.outputs import Fixed, Output, Quotient, Straight
from privet.tables.aggregates import Count, CountPeople, Ratio, Sum
from privet.tables.expressions.nodes import Arithmetic, Clip, Column, Constant, Node, OfAnswer, Rounded, Types
from privet.tables.expressions.trees import parts
from privet.tables.expressions.typing_rules import as_number
from privet.tables.types import how_many

if TYPE_CHECKING:
    from privet.planner.plan import ReleasePlan

NOT_NEGATIVE = Interval(Exact(0), None)


def different_values(of: Node, types: Types) -> Ends:
    """The numbers of different values of an expression: from none to all that there can be."""
    most = how_many(of.type(types))
    return Exact(0), None if most is None else Exact(most)


def ratio(asked: Ratio, types: Types) -> Ends:
    """What a ratio can be.

    Claim: of counts and sums that are not negative, it is not negative. Rows with a value are some of all rows, and
    each adds a number in its range to a sum.
    """
    top, bottom = asked.numerator, asked.denominator
    if isinstance(bottom, Count) and not isinstance(top, CountPeople) and _counts_all(bottom, top, types):
        if isinstance(top, Count):
            return Exact(0), Exact(1)
        kind = as_number(top.expression.type(types), "a ratio")
        none = kind.missing and bottom.expression != top.expression  # rows without a value add 0
        ends = (kind.lower, kind.upper, Exact(0)) if none else (kind.lower, kind.upper)
        return min(ends), max(ends)
    return (Exact(0), None) if all(_not_negative(part, types) for part in (top, bottom)) else (None, None)


def _counts_all(bottom: Count, top: Count | Sum, types: Types) -> bool:
    """Whether a count has every row that the other counts or adds up."""
    return (
        bottom.expression is None
        or not bottom.expression.type(types).missing
        or (top.expression is not None and bottom.expression == top.expression)
    )


def _not_negative(part: Count | CountPeople | Sum, types: Types) -> bool:
    return not isinstance(part, Sum) or as_number(part.expression.type(types), "a ratio").lower >= 0


def formula(node: Node, outputs: Mapping[str, Output]) -> Interval:
    """What a computed column can be. Only quotients are cut, and what is computed from them: shares of a total, too."""
    return _possible(node, outputs) if _divides(node) else ANY


def is_not_negative(node: Node, outputs: Mapping[str, Output]) -> bool:
    """Whether a number of an answer can't be negative, whatever the data are."""
    low = _possible(node, outputs).low
    return low is not None and low >= 0


def in_words(plan: ReleasePlan) -> str:
    """Which columns are cut to what they can be; empty if none is."""
    outputs = dict(plan.columns)
    ends = {name: each.can_be for name, each in outputs.items() if isinstance(each, Straight | Quotient)}
    for name, node in plan.query.arrangement.computed:
        found = formula(node, outputs)
        ends[name] = found.low, found.high
    told = [f"{name} {_range(*each)}" for name, each in ends.items() if each != (None, None)]
    return f"Cut to what they can be, with their intervals: {', '.join(told)}." if told else ""


def _range(low: Exact | None, high: Exact | None) -> str:
    if low is None or high is None:
        return f"at most {show(high)}" if high is not None else f"at least {show(low or Exact(0))}"
    return f"{show(low)}..{show(high)}"


def _divides(node: Node) -> bool:
    return (isinstance(node, Arithmetic) and node.operator == "/") or any(map(_divides, parts(node)))


def _possible(node: Node, outputs: Mapping[str, Output]) -> Interval:
    match node:
        case Constant(value):
            return Interval(value, value) if isinstance(value, Exact) else ANY
        case Column(name):
            return _column(outputs[name])
        case OfAnswer("total", name):
            low = _column(outputs[name]).low
            return NOT_NEGATIVE if low is not None and low >= 0 else ANY
        case Arithmetic("/", top, OfAnswer("total", name) as total) if _possible(total, outputs) == NOT_NEGATIVE:
            if top == Column(name):
                return Interval(Exact(0), Exact(1))
            match top:
                case Arithmetic("*", Constant(value), Column(of)) | Arithmetic("*", Column(of), Constant(value)):
                    if of == name and isinstance(value, Exact) and value >= 0:
                        return Interval(Exact(0), value)
            return _quotient(_possible(top, outputs), NOT_NEGATIVE)
        case Arithmetic("/", top, bottom):
            return _quotient(_possible(top, outputs), _possible(bottom, outputs))
        case Arithmetic(operator, a, b):
            return _possible(a, outputs).combined(operator, _possible(b, outputs)) or ANY
        case Rounded(function, of, digits):
            return _possible(of, outputs).rounded(function, digits)
        case Clip(of, lower, upper):
            return _possible(of, outputs).clipped(lower, upper)
    return ANY


def _quotient(top: Interval, bottom: Interval) -> Interval:
    positive = all(part.low is not None and part.low >= 0 for part in (top, bottom))
    found = top.combined("/", bottom) or ANY
    return NOT_NEGATIVE if positive and found == ANY else found


def _column(output: Output) -> Interval:
    match output:
        case Fixed(value):
            return Interval(Exact(value), Exact(value))
        case Straight(integer=True):
            return Interval(output.can_be[0] or Exact(0), output.can_be[1])
        case Quotient(most=most) if most is not None:
            ends = output.lower, output.lower + output.unit * most
            return Interval(min(ends), max(ends))
        case Quotient():
            return Interval(*output.can_be)
    return ANY
