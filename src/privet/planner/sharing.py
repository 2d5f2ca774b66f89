"""Questions about the same groups of the same rows, measured together: what several of them need is measured once.

Each question keeps its own columns. Those of the others are measured and paid for with them, and hidden.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from privet.errors import QueryError
from privet.exact import Exact
from privet.planner.plan import ReleasePlan
from privet.planner.pricing import amount
from privet.privacy.guarantees import Guarantee, PureDP, ZeroConcentratedDP
from privet.tables.aggregates import Count, CountPeople, Histogram, Mean, Ratio, Std, Sum, Variance
from privet.tables.arrangement import EVERYTHING
from privet.tables.groups import Listed
from privet.tables.query import Key, Query

_SUMS = (Count, CountPeople, Histogram, Mean, Ratio, Std, Sum, Variance)
"""The aggregates that are computed from sums over rows, so that questions can share them."""
_ROOT = 10**6  # parts of a weight, where it is a root
_LONGEST = 60  # characters of the name of another question's column

Planner = Callable[..., ReleasePlan]


def shared(alone: Mapping[str, ReleasePlan], plan: Planner) -> tuple[dict[str, ReleasePlan], tuple[int, ...]]:
    """The plans of these questions, which share measurements where that helps, and the part that each belongs to.

    Plans of one part make the same measurements, and differ in what they show of them. A part costs as much as its
    questions would alone; less, if they have errors to keep to.

    Claim: let question q cost p_q alone, and let e_q be the sum of the relative errors of its design (`Design.worst`).
    Together, its columns have the weight p_q / e_q. If no measurement is shared, the weighted errors of the common
    design add up to the sum of all p_q, and each question gets its p_q. Questions are put together only if they add up
    to less: so the worst relative error of each of them is smaller than alone, by the same factor.
    """
    plans, parts = dict(alone), []
    for names in _alike(alone):
        together = _together({name: alone[name] for name in names}, plan) if len(names) > 1 else None
        plans |= together or {}
        parts += [names] if together is not None else [[name] for name in names]
    parts.sort(key=lambda names: list(alone).index(names[0]))
    part_of = {name: i for i, names in enumerate(parts) for name in names}
    return plans, tuple(part_of[name] for name in alone)


def _alike(alone: Mapping[str, ReleasePlan]) -> Iterator[list[str]]:
    """Questions about the same groups of the same rows; those that can't share anything stand alone."""
    rest: list[tuple[object, list[str]]] = []
    for name, each in alone.items():
        kind = _kind(each)
        found = next((names for other, names in rest if kind is not None and other == kind), None)
        if found is not None:
            found.append(name)
        else:
            rest.append((kind, [name]))
    for _, names in rest:
        yield names


def _kind(plan: ReleasePlan) -> object | None:
    """What questions must have in common to be measured together; None for one that can't be."""
    query, price = plan.query, plan.price if plan.asked is None else plan.asked
    if type(price) not in (PureDP, ZeroConcentratedDP) or plan.simultaneous or plan.weights or not plan.noised:
        return None
    if type(query.groups) is not Listed or not all(type(what) in _SUMS for _, what in query.aggregates):
        return None
    keys = tuple(Key(f"key {i}", key.expression) for i, key in enumerate(query.keys))
    rows = replace(query, keys=keys, aggregates=(("n", Count(None)),), arrangement=EVERYTHING)
    errors = (plan.within is not None, plan.delta)
    return rows, type(price), errors, plan.mechanism.name, plan.confidence, plan.assuming


def _together(alone: Mapping[str, ReleasePlan], plan: Planner) -> dict[str, ReleasePlan] | None:
    """The plans of questions that are measured together; None if that is not better."""
    first = next(iter(alone.values()))
    how = {"confidence": first.confidence, "assuming": first.assuming, "mechanism": first.mechanism.name}
    try:
        return _by_errors(alone, plan, how) if first.within is not None else _by_price(alone, plan, how)
    except QueryError:  # too many columns, or weights that are too far apart
        return None


def _by_price(alone: Mapping[str, ReleasePlan], plan: Planner, how: Mapping[str, Any]) -> dict[str, ReleasePlan] | None:
    """At the sum of their prices, if each is then more accurate."""
    first = next(iter(alone.values()))
    power, prices = first.design.power, {name: _number(each.asked) for name, each in alone.items()}
    most = max(prices[name] / each.design.worst for name, each in alone.items())
    weights = {name: _root(prices[name] / each.design.worst / most, power) for name, each in alone.items()}
    kind = "epsilon" if type(first.asked) is PureDP else "rho"
    plans = {}
    for name, own in alone.items():
        query, called = _of_all(name, alone)
        heavier = {column: weights[other] for (other, _), column in called.items()}
        made = plan(query, **{kind: sum(prices.values(), Exact(0))}, weights=heavier, **how)
        plans[name] = replace(made, text=own.text)
    apart = sum((weights[name] ** power * each.design.worst for name, each in alone.items()), Exact(0))
    return plans if all(made.design.worst < apart for made in plans.values()) else None


def _by_errors(
    alone: Mapping[str, ReleasePlan], plan: Planner, how: Mapping[str, Any]
) -> dict[str, ReleasePlan] | None:
    """Within the errors of all of them, if that costs less than one by one."""
    plans = {}
    for name, own in alone.items():
        query, called = _of_all(name, alone)
        errors = {}
        for (other, column), as_ in called.items():
            for each in alone[other].query.columns()[column]:  # one, or one for each bin
                if each in (limits := dict(alone[other].within or ())):
                    errors[as_ + each.removeprefix(column)] = limits[each]
        plans[name] = replace(plan(query, within=errors, **how), text=own.text)
    apart = sum((_number(each.price) for each in alone.values()), Exact(0))
    return plans if all(_number(made.price) < apart for made in plans.values()) else None


def _of_all(name: str, alone: Mapping[str, ReleasePlan]) -> tuple[Query, dict[tuple[str, str], str]]:
    """The question that measures what all of them need, and shows the columns of one; and what each is called in it."""
    own = alone[name].query
    used = {*(key.name for key in own.keys), *(each for each, _ in own.aggregates)}
    columns, called, hidden = [], {}, [*own.arrangement.hidden]
    for other, each in alone.items():
        for column, what in each.query.aggregates:
            as_ = column
            if other != name:
                as_ = f"{other}: {column}"[:_LONGEST]
                while as_ in used:
                    as_ += "'"
                hidden.append(as_)
            used.add(as_)
            columns.append((as_, what))
            called[other, column] = as_
    arrangement = replace(own.arrangement, hidden=tuple(sorted(hidden)))
    return replace(own, aggregates=tuple(columns), arrangement=arrangement), called


def _number(price: Guarantee | None) -> Exact:
    assert isinstance(price, PureDP | ZeroConcentratedDP)
    return amount(price)


def _root(number: Exact, power: int) -> Exact:
    """The root of a weight, since errors fall with the root of rho; the weight itself for epsilon."""
    return number if power == 1 else max(Exact(round(math.sqrt(number) * _ROOT), _ROOT), Exact(1, _ROOT))
