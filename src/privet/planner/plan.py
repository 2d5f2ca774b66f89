"""A query and an epsilon, or an error that is wanted, become a plan: everything but the data and the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privet import events
from privet.accounting import PureAccountant
from privet.distances import Adjacency
from privet.errors import InternalError, QueryError
from privet.exact import Exact, Number, positive, probability, show, whole
from privet.guarantees import PureDP
from privet.planner import conditions
from privet.planner.arguments import check_price
from privet.planner.design import Design, best, designs
from privet.planner.linear import Noisy
from privet.planner.measurements import Measurement
from privet.planner.outputs import Cells, Fixed, Output, Quotient, Spread
from privet.query import Query
from privet.relation import caps, narrowing, operators
from privet.relation.schema import CEILING
from privet.relation.statement import (
    Bounding,
    Code,
    Given,
    PeopleInGroups,
    Present,
    Statement,
    Tally,
    Total,
    Unbounded,
)
from privet.sensitivity import of_sum
from privet.spelling import there_are

LEAST_EPSILON = Exact(1, 10**9)
"""A query with less is refused: its answer would be noise alone."""


@dataclass(frozen=True, slots=True)
class Noised:
    """A measurement with what its noise must hide: the sum lemma's numbers."""

    measurement: Measurement
    rows: int
    """At most so many rows of one person take part."""
    groups: int
    adjacency: Adjacency
    same_rows: bool
    sensitivity: int
    epsilon: Exact

    @property
    def scale(self) -> Exact:
        """The scale of the discrete Laplace noise of each coordinate."""
        return self.sensitivity / self.epsilon

    def event(self) -> events.Laplace:
        return events.Laplace(sensitivity=self.sensitivity, scale=self.scale)


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """How a query will be answered, and what that costs; made from public facts alone.

    Claim: `guarantee()` is what the accountant makes of the noise that will be drawn, and not more than `epsilon`.
    """

    query: Query
    design: Design
    noised: tuple[Noised, ...]
    epsilon: Exact
    """What it costs."""
    asked: Exact | None
    """The epsilon that was asked for, if one was and not `within`."""
    confidence: Exact
    simultaneous: bool
    assuming: int | None
    weights: tuple[tuple[str, Exact], ...]
    within: tuple[tuple[str, Exact], ...] | None
    """The errors that were asked for, if they were and not an epsilon."""
    raised_to: Exact | None = None
    """The least price of a question, if those errors would cost less."""

    @property
    def groups(self) -> int:
        """How many groups are measured, shown or not."""
        return _statement(self.query, Unbounded(), ()).groups

    @property
    def columns(self) -> tuple[tuple[str, Output], ...]:
        """The columns of the answer that hold numbers."""
        return self.design.columns

    @property
    def chosen_by_noise(self) -> bool:
        """Whether noisy numbers decide which groups are shown: their intervals then hold less often than they say."""
        noisy = {name for name, output in self.columns if not isinstance(output, Fixed)}
        return bool(noisy & self.query.arrangement.chooses_by())

    @property
    def scales(self) -> tuple[Exact, ...]:
        return tuple(part.scale for part in self.noised)

    @property
    def level(self) -> Exact:
        """The confidence of a single cell: by Bonferroni, if all together shall hold."""
        cells = self.groups * len(self.columns) if self.simultaneous else 1
        return 1 - (1 - self.confidence) / cells

    def event(self) -> events.PrivacyEvent:
        """What releasing does, as accountants see it."""
        return events.Composed([part.event() for part in self.noised])

    def guarantee(self) -> PureDP:
        """What releasing promises, computed from the event alone."""
        return PureAccountant().account(self.event())

    def statements(self) -> tuple[Statement, ...]:
        """What the engine computes: one statement for rows, one for persons, as far as needed."""
        return tuple(
            _statement(self.query, bounding(self.query, people=people)[0], tallies)
            for people in (False, True)
            if (tallies := self._tallies(people=people))
        )

    def statement_of(self, part: Noised) -> int:
        """Which of the statements counts for a measurement."""
        return len(self.statements()) - 1 if part.measurement.people else 0

    def _tallies(self, *, people: bool) -> tuple[Tally, ...]:
        parts = [part.measurement for part in self.noised if part.measurement.people is people]
        return tuple(dict.fromkeys(tally for part in parts for tally in part.tallies))

    def coordinates(self, answers: Sequence[Sequence[Sequence[int]]]) -> list[list[tuple[int, ...]]]:
        """The exact vectors from the engine's integers: by measurement, by group."""
        asked = self.statements()
        found = []
        for part in self.noised:
            index = self.statement_of(part)
            tallies = asked[index].tallies
            found.append([part.measurement.coordinates(dict(zip(tallies, row, strict=True))) for row in answers[index]])
        return found

    def cells(self, noisy: Sequence[Sequence[Sequence[int]]]) -> dict[str, Cells]:
        """The columns of the answer from noisy vectors: by measurement, by group."""
        by_group: list[Noisy] = [[part[group] for part in noisy] for group in range(self.groups)]
        return {name: output.cells(by_group, self.scales, self.level) for name, output in self.columns}

    def explain(self) -> str:
        """The plan in words, from the source to the guarantee, rule by rule."""
        from privet.planner.explain import explain

        return explain(self)

    @property
    def limits(self) -> tuple[str, ...]:
        """Every cap and clamp that shapes the answer, in words."""
        from privet.planner.limits import limits

        return limits(self)

    def to_json(self) -> dict[str, Any]:
        """The plan for programs: what was asked, what follows, and what bounds the answer, in words."""
        from privet.planner.facts import asked, derived

        return {"asked": asked(self), "derived": derived(self), "limits": list(self.limits)}

    def depends(self, name: str) -> bool:
        """Whether the error of a column depends on how many rows a group has."""
        return isinstance(dict(self.columns)[name], Quotient | Spread)

    def expected(self, name: str) -> Exact | None:
        """The error that a cell of this column keeps to; None for a ratio if no number of rows is assumed."""
        return dict(self.columns)[name].expected(self.scales, self.level, self.assuming)


# --- making one ---------------------------------------------------------------------------------


def plan(
    query: Query,
    *,
    epsilon: Number | None = None,
    within: Mapping[str, Number] | None = None,
    confidence: Number = 0.95,
    simultaneous: bool = False,
    assuming: int | None = None,
    weights: Mapping[str, Number] | None = None,
    min_epsilon: Number | None = None,
) -> ReleasePlan:
    """The plan for a query at an epsilon for the whole of it, or within errors for its columns.

    `min_epsilon` is the least price of a question: less is refused, and errors that would cost less are kept with less
    noise, for that price.
    """
    if not isinstance(query, Query):
        raise QueryError(f"a query is needed, not {type(query).__name__}. Write, for example: people.agg(n=pv.count())")
    conditions.check(query)
    level = probability(confidence, name="confidence", example="confidence=0.95")
    if not 0 < level < 1:
        raise QueryError("confidence must be above 0 and below 1. Write, for example: confidence=0.95")
    if not isinstance(simultaneous, bool):
        raise QueryError(f"simultaneous is True or False, not {simultaneous!r}. Write: simultaneous=True")
    if (epsilon is None) == (within is None):
        raise QueryError('give epsilon or within, one of the two. Write, for example: epsilon=0.5, or within={"n": 50}')
    names = [name for name, _ in query.aggregates]
    heavier = _numbers(weights, names, "weights")
    if any(not Exact(1, 10**6) <= weight <= 10**6 for weight in heavier.values()):
        raise QueryError('weights are between 0.000001 and 1,000,000. Write, for example: weights={"n": 2}')
    rows = None if assuming is None else whole(assuming, name="assuming", example="assuming=500")
    if rows is not None and rows > CEILING:
        raise QueryError("assuming must be at most 2^40. Write, for example: assuming=500")
    wanted = None if epsilon is None else positive(epsilon, name="epsilon", example="epsilon=0.5")
    least = Exact(0) if min_epsilon is None else positive(min_epsilon, name="min_epsilon", example="min_epsilon=0.001")
    if wanted is not None:
        check_price(wanted, least)
    parameters = (level, simultaneous, rows, tuple(heavier.items()))
    shapes = designs(query, heavier)
    if wanted is not None:
        shape = best(shapes)
        draft = ReleasePlan(query, shape, _unpriced(query, shape), Exact(0), wanted, *parameters, None)
        return _priced(draft, [wanted * share / shape.worst for share in shape.shares])
    errors = _numbers(within, [name for name, _ in shapes[0].columns], "within")
    found: list[tuple[Exact, ReleasePlan]] = []
    refused: QueryError | None = None
    for shape in shapes:
        draft = ReleasePlan(query, shape, _unpriced(query, shape), Exact(0), None, *parameters, tuple(errors.items()))
        try:
            prices = _prices(draft, errors)
            found.append((sum(prices, Exact(0)), _raised(draft, prices, least)))
        except QueryError as error:
            refused = refused or error
    if not found:
        assert refused is not None
        raise refused
    return min(found, key=lambda each: each[0])[1]


def _raised(draft: ReleasePlan, prices: Sequence[Exact], least: Exact) -> ReleasePlan:
    """The plan at these prices; or, if they come to less than the least price, at so many times each of them."""
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
        raise QueryError(f"epsilon={show(low)} is below 10^-9: the answer would be noise alone.")
    prices = [p if p.denominator.bit_length() <= 200 else Exact(math.floor(p * 2**200), 2**200) for p in prices]
    noised = tuple(
        Noised(p.measurement, p.rows, p.groups, p.adjacency, p.same_rows, p.sensitivity, price)
        for p, price in zip(draft.noised, prices, strict=True)
    )
    total = sum(prices, Exact(0))
    made = replace(draft, noised=noised, epsilon=total)
    if made.guarantee().epsilon > made.epsilon:
        raise InternalError(
            f"the plan's noise promises {made.guarantee()}, and {show(made.epsilon)} was asked for. "
            "Nothing was released. This is a bug in Privet."
        )
    return made


def bounding(query: Query, *, people: bool) -> tuple[Bounding, int]:
    """How rows of one person are bounded, and to how many."""
    groups = _statement(query, Unbounded(), ()).groups
    cap = caps.effective(query.of, query.at_most, groups)
    if cap is None:
        return Unbounded(), 1
    if people:
        most = caps.people(query.of, query.at_most, groups)
        return PeopleInGroups(most), most
    return cap, caps.rows_of(cap)


def _statement(query: Query, how: Bounding, tallies: tuple[Tally, ...]) -> Statement:
    keys = tuple(key.of for key in query.keys)
    return Statement(query.of, keys, how, tallies, narrowing.left(query.of, keys))


def _unpriced(query: Query, shape: Design) -> tuple[Noised, ...]:
    groups = _statement(query, Unbounded(), ()).groups
    most = {people: bounding(query, people=people)[1] for people in {each.people for each in shape.measurements}}
    return tuple(_bounded(query, each, most[each.people], groups) for each in shape.measurements)


def _bounded(query: Query, measurement: Measurement, rows: int, groups: int) -> Noised:
    adjacency = operators.adjacency(query.of)
    same_rows = (
        adjacency is Adjacency.REPLACE
        and measurement.rule == "sum/1"
        and not query.keys
        and operators.keeps_all_rows(query.of)
        and all(isinstance(tally, Present | Total) and _promised(tally.of) for tally in measurement.tallies)
    )
    moved = of_sum(measurement.corners, adjacency=adjacency, rows=rows, groups=groups, same_rows=same_rows)
    return Noised(measurement, rows, groups, adjacency, same_rows, moved, Exact(1))


def _promised(read: Code | Given) -> bool:
    """Whether the engine gives every row a code, as the statement says."""
    return isinstance(read, Code) and not read.missing


def _prices(draft: ReleasePlan, within: Mapping[str, Exact]) -> list[Exact]:
    """For each measurement the least epsilon (to six digits, rounded up) that keeps all its columns within."""
    prices = [Exact(0)] * len(draft.noised)
    ratios = [Exact(part.sensitivity) for part in draft.noised]  # the scales at epsilon 1
    for name, output in draft.columns:
        if name not in within or isinstance(output, Fixed):
            continue
        if isinstance(output, Quotient | Spread) and draft.assuming is None:
            raise QueryError(
                f"the error of {name!r} depends on how many rows a group has. Say what to assume: assuming=500"
            )
        largest = output.allowed(within[name], ratios, draft.level, draft.assuming)
        if largest is None:
            raise QueryError(f"no noise is known to keep {name!r} within {show(within[name])}. Allow a larger error")
        for place in output.measurements():
            prices[place] = max(prices[place], _six_digits_up(1 / largest))
    if not all(prices):
        place = prices.index(Exact(0))
        free = [name for name, output in draft.columns if place in output.measurements()]
        raise QueryError(
            f"within says nothing about {' or '.join(map(repr, free))}. "
            f"Write, for example: within={{{free[0]!r}: 50}} with the others"
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
    line = f'{what}={{"{names[0]}": 2}}'
    if not hasattr(given, "items"):
        raise QueryError(f"{what} gives a number for each column. Write, for example: {line}")
    for name in given:
        if name not in names:
            raise QueryError(f"{what}: there is no column {name!r}. {there_are(name, names)}")
    return {name: positive(value, name=f"{what}[{name!r}]", example=line) for name, value in given.items()}
