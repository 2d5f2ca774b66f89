"""A query and an epsilon, or requested errors, become a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from privet import mechanisms
from privet.errors import InternalError, QueryError, Remedy, argument, write
from privet.exact import Exact, Number, positive, probability, show, whole
from privet.mechanisms import NoiseMechanism
from privet.names.spelling import there_are
from privet.planner import conditions
from privet.planner.arguments import check_price
from privet.planner.design import Design, best, designs
from privet.planner.measurements import Measurement
from privet.planner.outputs import Fixed, Quotient, Spread
from privet.planner.plan import NoisyMeasurement, ReleasePlan, bounding
from privet.privacy.adjacency import Adjacency
from privet.privacy.sensitivity import l1_move, l2_move
from privet.tables import operators
from privet.tables.query import Query
from privet.tables.schema import CEILING
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

_ASSUMING = argument("assuming", 500)
_EPSILON_OR_WITHIN = write(
    'epsilon=0.5, or within={"n": 50}', terminal="--epsilon 0.5, or --within n=50", http='"epsilon": 0.5'
)


def plan(
    query: Query,
    *,
    epsilon: Number | None = None,
    within: Mapping[str, Number] | None = None,
    confidence: Number = 0.95,
    simultaneous: bool = False,
    assuming: int | None = None,
    weights: Mapping[str, Number] | None = None,
    mechanism: str | None = None,
    min_epsilon: Number | None = None,
    text: str = "",
) -> ReleasePlan:
    """The plan for a query at an epsilon for the whole of it, or within errors for its columns.

    `mechanism` names what draws the noise.

    `min_epsilon` is the least price of a question: less is refused, and errors that would cost less are kept with less
    noise, for that price. `text` is the SELECT that the query was read from.
    """
    if not isinstance(query, Query):
        raise QueryError(f"{type(query).__name__} is not a query", remedy=write("people.agg(n=pv.count())"))
    conditions.check(query)
    level = probability(confidence, name="confidence", example=argument("confidence", 0.95))
    if not 0 < level < 1:
        raise QueryError("confidence must be above 0 and below 1", remedy=argument("confidence", 0.95))
    if not isinstance(simultaneous, bool):
        raise QueryError(
            f"simultaneous must be true or false, not {simultaneous!r}", remedy=argument("simultaneous", True)
        )
    if (epsilon is None) == (within is None):
        both = "both epsilon and within are set" if epsilon is not None else "neither epsilon nor within is set"
        raise QueryError(both, allowed="Set one of the two", remedy=_EPSILON_OR_WITHIN)
    names = [name for name, _ in query.aggregates]
    heavier = _numbers(weights, names, "weights")
    if any(not Exact(1, 10**6) <= weight <= 10**6 for weight in heavier.values()):
        raise QueryError("weights must be between 0.000001 and 1,000,000", remedy=write('weights={"n": 2}'))
    rows = None if assuming is None else whole(assuming, name="assuming", example=_ASSUMING)
    if rows is not None and rows > CEILING:
        raise QueryError("assuming must be at most 2^40", remedy=_ASSUMING)
    wanted = None if epsilon is None else positive(epsilon, name="epsilon", example=argument("epsilon", 0.5))
    least = Exact(0) if min_epsilon is None else positive(min_epsilon, name="min_epsilon", example="min_epsilon=0.001")
    if wanted is not None:
        check_price(wanted, least)
    adds = mechanisms.named(mechanism)
    parameters = (level, simultaneous, rows, tuple(heavier.items()))
    shapes = designs(query, heavier)
    if wanted is not None:
        shape = best(shapes)
        unpriced = _unpriced(query, shape, adds)
        draft = ReleasePlan(query, shape, unpriced, Exact(0), wanted, *parameters, None, adds, text=text)
        return _priced(draft, [wanted * share / shape.worst for share in shape.shares])
    errors = _numbers(within, [name for name, _ in shapes[0].columns], "within")
    candidates: list[tuple[Exact, ReleasePlan]] = []
    refused: QueryError | None = None
    for shape in shapes:
        unpriced, limits = _unpriced(query, shape, adds), tuple(errors.items())
        draft = ReleasePlan(query, shape, unpriced, Exact(0), None, *parameters, limits, adds, text=text)
        try:
            prices = _prices(draft, errors)
            candidates.append((sum(prices, Exact(0)), _raised(draft, prices, least)))
        except QueryError as error:
            refused = refused or error
    if not candidates:
        assert refused is not None
        raise refused
    return min(candidates, key=lambda each: each[0])[1]


def _raised(draft: ReleasePlan, prices: Sequence[Exact], least: Exact) -> ReleasePlan:
    """The plan at these prices; if their sum is below the minimum price, all are scaled up to it."""
    total = sum(prices, Exact(0))
    if not total or total >= least:
        return _priced(draft, prices)
    return replace(_priced(draft, [price * least / total for price in prices]), raised_to=least)


def _priced(draft: ReleasePlan, prices: Sequence[Exact]) -> ReleasePlan:
    """The plan with an epsilon for each measurement; its guarantee is recomputed and compared.

    Prices with long denominators are rounded down, so that an accountant need not round them up.
    """
    if prices and (sum(prices) < LEAST_EPSILON or min(prices) < LEAST_EPSILON**2):
        low = sum(prices, Exact(0)) if sum(prices) < LEAST_EPSILON else min(prices)
        raise QueryError(f"epsilon {show(low)} is below 10^-9, so the answer would be only noise")
    prices = [p if p.denominator.bit_length() <= 200 else Exact(math.floor(p * 2**200), 2**200) for p in prices]
    noised = tuple(part.at(price) for part, price in zip(draft.noised, prices, strict=True))
    total = sum(prices, Exact(0))
    priced = replace(draft, noised=noised, epsilon=total)
    if priced.guarantee().epsilon > priced.epsilon:
        raise InternalError(
            f"the plan's noise promises {priced.guarantee()}, but {show(priced.epsilon)} was requested. "
            "Nothing was released. This is a bug in Privet."
        )
    return priced


def _unpriced(query: Query, shape: Design, mechanism: NoiseMechanism) -> tuple[NoisyMeasurement, ...]:
    groups = query.groups.most
    how = {people: bounding(query, people=people)[0] for people in {each.people for each in shape.measurements}}
    return tuple(_bounded(query, each, how[each.people], groups, mechanism) for each in shape.measurements)


def _bounded(
    query: Query, measurement: Measurement, how: Bounding, groups: int, mechanism: NoiseMechanism
) -> NoisyMeasurement:
    adjacency = operators.adjacency(query.input)
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
    one = Exact(1)
    scale = mechanism.scale(move, epsilon=one)
    return NoisyMeasurement(measurement, rows * most, groups, adjacency, same_rows, mechanism, move, one, scale)


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


def _prices(draft: ReleasePlan, within: Mapping[str, Exact]) -> list[Exact]:
    """For each measurement, the least epsilon (six digits, rounded up) that keeps its columns within the errors."""
    prices = [Exact(0)] * len(draft.noised)
    noise = draft.noise  # at epsilon 1
    for name, output in draft.columns:
        if name not in within or isinstance(output, Fixed):
            continue
        if isinstance(output, Quotient | Spread) and draft.assuming is None:
            raise QueryError(
                f"the error of {name!r} depends on the number of rows in a group, so assume one",
                remedy=_ASSUMING,
            )
        largest = output.allowed(within[name], noise, draft.level, draft.assuming)
        if largest is None:
            raise QueryError(
                f"no noise scale is known that keeps {name!r} within {show(within[name])}",
                remedy=Remedy("Allow a larger error"),
            )
        for place in output.measurements():
            part = draft.noised[place]
            price = part.mechanism.epsilon(part.move, scale=largest * part.scale)
            prices[place] = max(prices[place], _six_digits_up(price))
    if not all(prices):
        place = prices.index(Exact(0))
        free = [name for name, output in draft.columns if place in output.measurements()]
        raise QueryError(
            f"within needs an error for {' or '.join(map(repr, free))}",
            remedy=write(
                f'within={{"{free[0]}": 50, ...}}', terminal=f"--within {free[0]}=50", http=f'"{free[0]}": 50'
            ),
        )
    return prices


def _six_digits_up(number: Exact) -> Exact:
    digit = Exact(1)
    while number < 10**5 * digit:
        digit /= 10
    while number >= 10**6 * digit:
        digit *= 10
    return math.ceil(number / digit) * digit


def _numbers(given: Mapping[str, Number] | None, names: Sequence[str], what: str) -> dict[str, Exact]:
    if given is None:
        return {}
    line = write(
        f'{what}={{"{names[0]}": 2}}', terminal=f"--{what} {names[0]}=2", http=f'"{what}": {{"{names[0]}": 2}}'
    )
    if not hasattr(given, "items"):
        raise QueryError(f"{what} must map columns to numbers", remedy=line)
    for name in given:
        if name not in names:
            raise QueryError(f"{what}: there is no column {name!r}", allowed=there_are(name, names))
    return {name: positive(value, name=f"{what} of {name}", example=line) for name, value in given.items()}
