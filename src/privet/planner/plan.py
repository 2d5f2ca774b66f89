"""A query and an epsilon, or a requested error, become a plan: everything except the data and the noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from privet import mechanisms
from privet.errors import Face, InternalError, QueryError, Remedy, argument, write
from privet.exact import Exact, Number, positive, probability, show, whole
from privet.mechanisms import NoiseMechanism
from privet.names.spelling import there_are
from privet.planner import conditions
from privet.planner.arguments import check_price
from privet.planner.design import Design, best, designs
from privet.planner.linear import Noisy
from privet.planner.measurements import Measurement
from privet.planner.noise import Noise
from privet.planner.outputs import Cells, Fixed, Output, Quotient, Spread
from privet.privacy import events
from privet.privacy.accounting import PureAccountant
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import PureDP
from privet.privacy.moves import Move
from privet.privacy.sensitivity import l1_move, l2_move
from privet.tables import caps, operators
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
    Statement,
    Tally,
    Total,
    Unbounded,
)

_T = TypeVar("_T")

LEAST_EPSILON = Exact(1, 10**9)
"""A query with less is refused: its answer would be only noise."""

_ASSUMING = argument("assuming", 500)
_EPSILON_OR_WITHIN = write(
    'epsilon=0.5, or within={"n": 50}', terminal="--epsilon 0.5, or --within n=50", http='"epsilon": 0.5'
)


@dataclass(frozen=True, slots=True)
class NoisyMeasurement:
    """A measurement, how far one person moves it, and the noise that hides that."""

    measurement: Measurement
    rows: int
    """Maximum rows per person."""
    groups: int
    adjacency: Adjacency
    same_rows: bool
    mechanism: NoiseMechanism
    move: Move
    epsilon: Exact
    scale: Exact
    """The scale of the noise of each coordinate."""

    def at(self, epsilon: Exact) -> NoisyMeasurement:
        """The same at another price."""
        return replace(self, epsilon=epsilon, scale=self.mechanism.scale(self.move, epsilon=epsilon))

    def event(self) -> events.PrivacyEvent:
        """What adding its noise does, as accountants see it."""
        return self.mechanism.event(self.move, scale=self.scale)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ReleasePlan:
    """How to answer a query, and the cost; computed from public facts alone.

    Claim: `guarantee()` is what the accountant makes of the noise that will be drawn, and not more than `epsilon`.
    """

    query: Query
    design: Design
    noised: tuple[NoisyMeasurement, ...]
    epsilon: Exact
    """Its cost."""
    asked: Exact | None
    """The requested epsilon, if there is one instead of `within`."""
    confidence: Exact
    simultaneous: bool
    assuming: int | None
    weights: tuple[tuple[str, Exact], ...]
    within: tuple[tuple[str, Exact], ...] | None
    """The requested errors, if there are any instead of an epsilon."""
    mechanism: NoiseMechanism
    raised_to: Exact | None = None
    """The minimum price of a question, if those errors would cost less."""
    text: str = field(default="", compare=False, repr=False)
    """The SELECT that it comes from, if it does."""
    _memo: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Values that were already computed; a plan never changes."""

    def once(self, name: str, compute: Callable[[ReleasePlan], _T]) -> _T:
        """A value that follows from the plan, computed when first needed."""
        if name not in self._memo:
            self._memo[name] = compute(self)
        known: _T = self._memo[name]
        return known

    @property
    def groups(self) -> int:
        """The number of measured groups, shown or not."""
        return self.once("groups", lambda plan: plan.query.groups.most)

    @property
    def columns(self) -> tuple[tuple[str, Output], ...]:
        """The numeric columns of the answer."""
        return self.design.columns

    @property
    def chosen_by_noise(self) -> bool:
        """Whether noisy numbers decide which groups are shown; then intervals cover less often than stated."""
        noisy = {name for name, output in self.columns if not isinstance(output, Fixed)}
        return bool(noisy & self.query.arrangement.chooses_by())

    @property
    def scales(self) -> tuple[Exact, ...]:
        return tuple(part.scale for part in self.noised)

    @property
    def noise(self) -> Noise:
        """The noise of all measurements together."""
        return Noise(self.mechanism, self.scales)

    @property
    def level(self) -> Exact:
        """The confidence of a single cell; by Bonferroni, if all intervals must hold together."""
        cells = self.groups * len(self.columns) if self.simultaneous else 1
        return 1 - (1 - self.confidence) / cells

    def event(self) -> events.PrivacyEvent:
        """The event of the release, for accountants."""
        return self.once("event", lambda plan: events.Composed([part.event() for part in plan.noised]))

    def guarantee(self) -> PureDP:
        """The guarantee of the release, computed from the event alone."""
        return self.once("guarantee", lambda plan: PureAccountant().account(plan.event()))

    def statements(self) -> tuple[Statement, ...]:
        """The statements for the engine: one for rows, one for people, as needed."""
        return self.once("statements", ReleasePlan._statements)

    def _statements(self) -> tuple[Statement, ...]:
        return tuple(
            _statement(self.query, bounding(self.query, people=people)[0], tallies)
            for people in (False, True)
            if (tallies := self._tallies(people=people))
        )

    def statement_of(self, part: NoisyMeasurement) -> int:
        """The statement that counts for a measurement."""
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
            found.append(part.measurement.vectors(asked[index].tallies, answers[index]))
        return found

    def cells(self, noisy: Sequence[Sequence[Sequence[int]]]) -> dict[str, Cells]:
        """The columns of the answer from noisy vectors: by measurement, by group."""
        noise = self.noise
        by_group: list[Noisy] = [[part[group] for part in noisy] for group in range(self.groups)]
        return {name: output.cells(by_group, noise, self.level) for name, output in self.columns}

    def explain(self, face: Face = "python") -> str:
        """The plan in words, from the source to the guarantee, rule by rule."""
        from privet.planner.explain import explain

        return explain(self, face)

    @property
    def limits(self) -> tuple[str, ...]:
        """Every cap and clamp that affects the answer, in words."""
        from privet.planner.limits import limits

        return self.once("limits", limits)

    def to_json(self) -> dict[str, Any]:
        """The plan for programs: the question, its consequences, and the limits of the answer in words."""
        from privet.planner.facts import asked, derived

        return deepcopy({"asked": asked(self), "derived": derived(self), "limits": list(self.limits)})

    def depends(self, name: str) -> bool:
        """Whether the error of a column depends on the number of rows in a group."""
        return isinstance(dict(self.columns)[name], Quotient | Spread)

    def expected(self, name: str) -> Exact | None:
        """A bound on the error of a cell of this column; None for a ratio if no number of rows is assumed."""
        return dict(self.columns)[name].expected(self.noise, self.level, self.assuming)


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
    found: list[tuple[Exact, ReleasePlan]] = []
    refused: QueryError | None = None
    for shape in shapes:
        unpriced, limits = _unpriced(query, shape, adds), tuple(errors.items())
        draft = ReleasePlan(query, shape, unpriced, Exact(0), None, *parameters, limits, adds, text=text)
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
    made = replace(draft, noised=noised, epsilon=total)
    if made.guarantee().epsilon > made.epsilon:
        raise InternalError(
            f"the plan's noise promises {made.guarantee()}, but {show(made.epsilon)} was requested. "
            "Nothing was released. This is a bug in Privet."
        )
    return made


def bounding(query: Query, *, people: bool) -> tuple[Bounding, int]:
    """The bounding of rows per person, and the maximum number of rows."""
    groups = query.groups.most
    cap = caps.effective(query.of, query.at_most, groups)
    if cap is None:
        return Unbounded(), 1
    if people:
        most = caps.people(query.of, query.at_most, groups)
        return PeopleInGroups(most), most
    return cap, caps.rows_of(cap)


def _statement(query: Query, how: Bounding, tallies: tuple[Tally, ...]) -> Statement:
    keys = tuple(key.of for key in query.keys)
    return Statement(query.of, keys, how, tallies, query.groups)


def _unpriced(query: Query, shape: Design, mechanism: NoiseMechanism) -> tuple[NoisyMeasurement, ...]:
    groups = query.groups.most
    how = {people: bounding(query, people=people)[0] for people in {each.people for each in shape.measurements}}
    return tuple(_bounded(query, each, how[each.people], groups, mechanism) for each in shape.measurements)


def _bounded(
    query: Query, measurement: Measurement, how: Bounding, groups: int, mechanism: NoiseMechanism
) -> NoisyMeasurement:
    adjacency = operators.adjacency(query.of)
    same_rows = (
        adjacency is Adjacency.REPLACE
        and measurement.rule == "sum/1"
        and not query.keys
        and operators.keeps_all_rows(query.of)
        and all(isinstance(tally, Present | Total) and _promised(tally.of) for tally in measurement.tallies)
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
