"""The noise of a plan: how far one person moves each measurement, and what is paid to hide that."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from privet.errors import InternalError, QueryError, Remedy, argument, write
from privet.exact import Exact, show, six_digits_up
from privet.mechanisms import NoiseMechanism
from privet.planner import cubes
from privet.planner.design import Design
from privet.planner.measurements import Measurement
from privet.planner.outputs import Fixed, Quotient, RankedCode, Spread
from privet.planner.plan import NoisyMeasurement, Part, ReleasePlan, bounding
from privet.planner.ranks import ChosenRanks, RankMeasurement
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from privet.privacy.sensitivity import l1_move, l2_move
from privet.tables import operators
from privet.tables.groups import Sets
from privet.tables.query import Query
from privet.tables.statement import (
    AtMostGroups,
    AtMostRows,
    Bounding,
    Code,
    Given,
    PeopleInGroups,
    Present,
    Total,
    Unbounded,
)

LEAST_EPSILON = Exact(1, 10**9)
"""A query with less is refused: its answer would be only noise."""

LARGEST_RHO = 10**6
"""A query with more is refused: no delta below 1 follows from it."""

ASSUMING = argument("assuming", 500)

AdditivePrice = PureDP | ZeroConcentratedDP
"""A price that adds up over measurements."""


def amount(price: AdditivePrice) -> Exact:
    """The number of a price: its epsilon, or its rho."""
    return price.rho if isinstance(price, ZeroConcentratedDP) else price.epsilon


def least(kind: type, epsilon: Exact) -> Exact:
    """The number of a price that is worth this epsilon: epsilon, or the rho of pure differential privacy with it."""
    return epsilon**2 / 2 if kind is ZeroConcentratedDP else epsilon


def _of_kind(kind: type, number: Exact) -> AdditivePrice:
    return ZeroConcentratedDP.derived(number) if kind is ZeroConcentratedDP else PureDP.derived(number)


# --- the moves ------------------------------------------------------------------------------------


def measured(query: Query, design: Design, mechanism: NoiseMechanism) -> tuple[Part, ...]:
    """The measurements of a design, each at the price 1; on several levels, all levels of it together."""
    kinds = {(each.people, each.distinct) for each in design.measurements}
    how = {kind: bounding(query, people=kind[0], distinct=kind[1])[0] for kind in kinds}
    if isinstance(query.groups, Sets):
        parts: list[Part] = []
        for each in design.measurements:
            assert isinstance(each, Measurement)
            rows, most = _caps(how[each.people, each.distinct])
            parts += cubes.measured(query, query.groups, each, mechanism, rows=rows, max_groups=most)
        return tuple(parts)
    groups = query.groups.most
    return tuple(
        _bounded(query, each, how[each.people, each.distinct], groups, mechanism) for each in design.measurements
    )


def _bounded(
    query: Query, measurement: Measurement | RankMeasurement, how: Bounding, groups: int, mechanism: NoiseMechanism
) -> Part:
    adjacency = operators.adjacency(query.input)
    one = _of_kind(mechanism.prices[0], Exact(1))
    if isinstance(measurement, RankMeasurement):
        rows, most = _caps(how)
        most = min(most, groups)
        return ChosenRanks(measurement, rows * most, most, groups, adjacency, mechanism, one).at(one)
    same_rows = (
        adjacency is Adjacency.REPLACE
        and measurement.rule == "sum/1"
        and not query.keys
        and operators.keeps_all_rows(query.input)
        and all(isinstance(tally, Present | Total) and _promised(tally.value) for tally in measurement.tallies)
    )
    rows, most = _caps(how)
    known: dict[str, Any] = {"rows": rows, "max_groups": most, "groups": groups, "same_rows": same_rows}
    moved = l1_move if mechanism.norm == "L1" else l2_move
    move = moved(measurement.corners, adjacency=adjacency, **known)
    part = NoisyMeasurement(measurement, rows * most, groups, adjacency, same_rows, mechanism, move, one, Exact(1))
    return part.at(one)


def _caps(how: Bounding) -> tuple[int, int]:
    """How many rows of a person, and in how many groups so many each; without a cap on groups, so many in all."""
    match how:
        case AtMostRows(rows):
            return rows, 1
        case AtMostGroups(groups, rows):
            return rows, groups
        case PeopleInGroups(groups):
            return 1, groups
        case Unbounded():
            return 1, 1


def _promised(read: Code | Given) -> bool:
    """Whether the engine gives every row a code, as the statement says."""
    return isinstance(read, Code) and not read.missing


# --- the prices -----------------------------------------------------------------------------------


def at_price(draft: ReleasePlan, price: Guarantee) -> tuple[Part, ...]:
    """The measurements at this price for all of them together.

    For an (epsilon, delta), a single measurement is calibrated for that itself: it can need less noise than a part.
    """
    parts, mechanism = draft.noised, draft.mechanism
    if len(parts) == 1 and isinstance(price, ApproxDP) and ApproxDP in mechanism.prices:
        return (parts[0].at(price),)
    whole = mechanism.additive(price)
    every = draft.design.shares
    shares = [every[place] for place in draft.places()]
    return divided(parts, [amount(whole) * share * amount(p.price) for share, p in zip(shares, parts, strict=True)])


def divided(parts: Sequence[Part], amounts: Sequence[Exact]) -> tuple[Part, ...]:
    """The measurements, each at its own price.

    Prices with long denominators are rounded down, so that an accountant need not round them up.
    """
    _check(parts, amounts)
    short = [p if p.denominator.bit_length() <= 200 else Exact(math.floor(p * 2**200), 2**200) for p in amounts]
    return tuple(part.at(_of_kind(type(part.price), each)) for part, each in zip(parts, short, strict=True))


def _check(parts: Sequence[Part], amounts: Sequence[Exact]) -> None:
    """Refuse prices that would buy only noise."""
    if not parts:
        return
    in_rho = isinstance(parts[0].price, ZeroConcentratedDP)
    lowest = least(type(parts[0].price), LEAST_EPSILON)
    if sum(amounts) < lowest or min(amounts) < lowest**2:
        low = sum(amounts, Exact(0)) if sum(amounts) < lowest else min(amounts)
        name, most = ("rho", show(lowest)) if in_rho else ("epsilon", "10^-9")
        raise QueryError(f"{name} {show(low)} is below {most}, so the answer would be only noise")
    if in_rho and sum(amounts) > LARGEST_RHO:
        raise QueryError(f"rho {show(sum(amounts, Exact(0)))} is above {LARGEST_RHO:,}, which promises nothing")


def priced(draft: ReleasePlan, parts: tuple[Part, ...], *, delta: Exact) -> ReleasePlan:
    """The plan with these measurements; its guarantee is recomputed from the noise and compared with its price.

    Noise that is priced in rho states an epsilon where its delta is `delta`, if that is not 0 and the plan states none.
    """
    made = replace(draft, noised=parts)
    noises = [noise for part in parts for noise in part.noises()]
    if made.stated_at is None and delta and noises:
        made = replace(made, stated_at=made.mechanism.stated(noises, delta=delta))
    made = replace(made, price=_price(made))
    if not all(made.guarantee().implies(price) for price in (made.price, made.asked or made.price)):
        if draft.stated_at is not None and draft.asked is None:
            raise QueryError(f"at epsilon {show(draft.stated_at)} the noise has more than the requested delta")
        raise InternalError(
            f"the plan's noise promises {made.guarantee()}, but {made.asked or made.price} was requested. "
            "Nothing was released. This is a bug in Privet."
        )
    return made


def _price(plan: ReleasePlan) -> Guarantee:
    """The cost of the plan: the sum of its parts, or the (epsilon, delta) that was asked for."""
    if not plan.noised:
        return PureDP.ZERO
    kind = type(plan.noised[0].price)
    if kind is ZeroConcentratedDP and plan.stated_at is not None:
        if isinstance(plan.asked, ApproxDP):
            return plan.asked
        if plan.delta is not None:
            return ApproxDP.capped(plan.stated_at, plan.delta)
    return _of_kind(kind, sum((amount(part.price) for part in plan.noised), Exact(0)))


# --- the prices of errors -------------------------------------------------------------------------


def check_bounded(draft: ReleasePlan, within: Mapping[str, Exact]) -> None:
    """Refuse columns whose errors depend on the data, or on a number of rows that is not assumed."""
    for name, output in draft.columns:
        if isinstance(output, RankedCode):
            raise QueryError(
                f"within can't be used here: the error of {name!r} depends on the data, so no price keeps it within a "
                "number",
                remedy=write("epsilon=0.5", terminal="--epsilon 0.5", http='"epsilon": 0.5'),
            )
        if name in within and isinstance(output, Quotient | Spread) and draft.assuming is None:
            raise QueryError(
                f"the error of {name!r} depends on the number of rows in a group, so assume one",
                remedy=ASSUMING,
            )


def prices_within(draft: ReleasePlan, within: Mapping[str, Exact]) -> list[Exact]:
    """For each measurement, the least price (six digits, rounded up) that keeps its columns within the errors."""
    check_bounded(draft, within)
    prices = [Exact(0)] * len(draft.noised)
    places = draft.places()
    for name, output in draft.columns:
        if name not in within or isinstance(output, Fixed):
            continue
        factors = [  # at the price 1
            each.allowed(within[name], noise, draft.level, draft.assuming) for each, noise in draft.views(output)
        ]
        if None in factors:
            raise QueryError(
                f"no noise scale is known that keeps {name!r} within {show(within[name])}",
                remedy=Remedy("Allow a larger error"),
            )
        largest = min(factor for factor in factors if factor is not None)
        for place, part in enumerate(draft.noised):
            if places[place] not in output.measurements():
                continue
            assert isinstance(part, NoisyMeasurement)
            prices[place] = max(prices[place], six_digits_up(amount(part.scaled(largest * part.scale).price)))
    if not all(prices):
        place = places[prices.index(Exact(0))]
        free = [name for name, output in draft.columns if place in output.measurements()]
        raise QueryError(
            f"within needs an error for {' or '.join(map(repr, free))}",
            remedy=write(
                f'within={{"{free[0]}": 50, ...}}', terminal=f"--within {free[0]}=50", http=f'"{free[0]}": 50'
            ),
        )
    return prices
