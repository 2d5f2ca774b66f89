"""A query and a price, or requested errors, become a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from privet import mechanisms
from privet.errors import QueryError, Remedy, Subject, UserError, argument, write
from privet.exact import Exact, Number, nonnegative, positive, probability, show, whole
from privet.exact.search import first
from privet.mechanisms import NoiseMechanism
from privet.names.spelling import there_are
from privet.planner import choice, conditions, cubes, discovery, pricing
from privet.planner.arguments import asked_price, check_price
from privet.planner.choice import Accounting
from privet.planner.design import best, designs
from privet.planner.plan import ReleasePlan
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from privet.tables.query import Query
from privet.tables.ranked import Ranked
from privet.tables.schema import CEILING


def plan(
    query: Query,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    within: Mapping[str, Number] | None = None,
    confidence: Number = 0.95,
    simultaneous: bool = False,
    assuming: int | None = None,
    weights: Mapping[str, Number] | None = None,
    mechanism: str | None = None,
    min_epsilon: Number | None = None,
    accounting: Accounting | None = None,
    stated_at: Number | None = None,
    text: str = "",
    checked: bool = False,
) -> ReleasePlan:
    """The plan for a query at a price for the whole of it, or within errors for its columns.

    A price is an epsilon, or an epsilon and a delta, or a rho. Errors may be paid for with a delta, too.

    `mechanism` names what draws the noise; without it, Privet compares those that can be paid for in this way: at a
    price by their errors, for errors by the share that they use of the budget of `accounting`.

    `min_epsilon` is the least price of a question: less is refused, and errors that would cost less are kept with less
    noise, for that price. `stated_at` is the epsilon at which a question in rho states its delta; by default, that
    follows from the accounting. `text` is the SELECT that the query was read from. A query that has a plan already is
    `checked`: what can be wrong with it does not depend on the price.
    """
    if not isinstance(query, Query):
        raise QueryError(f"{type(query).__name__} is not a query", remedy=write("people.agg(n=pv.count())"))
    if not checked:
        conditions.check(query)
        cubes.check(query)
    level = probability(confidence, name="confidence", example=argument("confidence", 0.95))
    if not 0 < level < 1:
        raise QueryError("confidence must be above 0 and below 1", remedy=argument("confidence", 0.95))
    if not isinstance(simultaneous, bool):
        raise QueryError(
            f"simultaneous must be true or false, not {simultaneous!r}", remedy=argument("simultaneous", True)
        )
    asked, leak = asked_price(epsilon=epsilon, delta=delta, rho=rho, within=within is not None)
    if delta is not None and accounting is not None:
        _check_delta(accounting.budget, asked.delta if isinstance(asked, ApproxDP) else leak)
    names = [name for name, _ in query.aggregates]
    heavier = _numbers(weights, names, "weights")
    if any(not Exact(1, 10**6) <= weight <= 10**6 for weight in heavier.values()):
        raise QueryError("weights must be between 0.000001 and 1,000,000", remedy=write('weights={"n": 2}'))
    rows = None if assuming is None else whole(assuming, name="assuming", example=pricing.ASSUMING)
    if rows is not None and rows > CEILING:
        raise QueryError("assuming must be at most 2^40", remedy=pricing.ASSUMING)
    least = Exact(0) if min_epsilon is None else positive(min_epsilon, name="min_epsilon", example="min_epsilon=0.001")
    if asked is not None:
        check_price(asked, least)
    found, price = None, asked
    if not query.groups.is_public:
        if within is not None and leak:
            options: dict[str, Any] = {
                "delta": leak, "confidence": level, "simultaneous": simultaneous, "assuming": rows, "weights": weights,
                "mechanism": mechanism, "min_epsilon": min_epsilon, "accounting": accounting, "text": text,
            }  # fmt: skip
            return _found_within(query, within, least, options)
        found, asked = discovery.divided(query, asked)
    at = None if stated_at is None else nonnegative(stated_at, name="stated_at")
    errors: Mapping[str, Number] | None = within

    def candidate(adds: NoiseMechanism) -> ReleasePlan:
        if isinstance(asked, ApproxDP) and PureDP not in adds.prices and _ranked(query):
            raise QueryError(
                "quantiles, min and max with Gaussian noise are paid for in rho, not in epsilon and delta",
                remedy=write("rho=0.01", terminal="--rho 0.01", http='"rho": 0.01'),
            )
        shapes = designs(query, heavier, adds)
        limits = None if errors is None else _numbers(errors, [name for name, _ in shapes[0].columns], "within")
        drafts = [
            ReleasePlan(
                query, shape, pricing.measured(query, shape, adds), PureDP.ZERO, asked, level, simultaneous, rows,
                tuple(heavier.items()), None if limits is None else tuple(limits.items()), adds,
                delta=leak or None, stated_at=at, text=text,
            )
            for shape in ([best(shapes)] if limits is None else shapes)
        ]  # fmt: skip
        stated = leak or (accounting.stated_delta if accounting else Exact(0))
        if asked is not None:
            return _at_price(drafts[0], asked, stated)
        assert limits is not None
        return _within(drafts, limits, least, stated)

    adding = [mechanisms.named(mechanism)] if mechanism is not None else _candidates(asked, accounting)
    if mechanism is not None:
        _check_kind(adding[0], asked)
    plans = _possible(candidate, adding)
    if found is not None and price is not None:
        plans = [discovery.attached(each, found, price) for each in plans]
    if accounting is not None and type(price) is not PureDP:
        plans = choice.payable(plans, accounting)
    if len(plans) == 1:
        return plans[0]
    if asked is None and accounting is not None:
        return choice.cheapest(plans, accounting)
    return choice.most_accurate(plans, accounting)


def _check_delta(budget: Guarantee, delta: Exact) -> None:
    """Refuse a delta that could not be spent: where it is not needed, it would be ignored."""
    if isinstance(budget, PureDP) or (isinstance(budget, ApproxDP) and not budget.delta):
        raise QueryError(
            f"delta is set, and this budget has none: {budget}",
            allowed="Leave delta out, or ask for a budget with one, such as epsilon 3, delta 1e-6",
            subject=Subject("argument", "delta"),
            remedy=write("epsilon=0.5", terminal="--epsilon 0.5", http='"epsilon": 0.5'),
        )
    if isinstance(budget, ApproxDP) and delta > budget.delta:
        raise QueryError(
            f"delta {show(delta)} is more than this budget has: {budget}",
            allowed=f"A delta is at most {show(budget.delta)}, for all questions together",
            subject=Subject("argument", "delta"),
            remedy=argument("delta", show(budget.delta / 100)),
        )


def _ranked(query: Query) -> bool:
    """Whether it asks for quantiles, or for a minimum or maximum."""
    return any(isinstance(what, Ranked) for _, what in query.aggregates)


def _candidates(asked: Guarantee | None, accounting: Accounting | None) -> list[NoiseMechanism]:
    """The mechanisms that can be paid for in this way; for errors, all that could be, if the budget is known."""
    if asked is None and accounting is None:
        return [mechanisms.DEFAULT]
    kinds: tuple[type, ...] = (PureDP, ZeroConcentratedDP)
    if asked is not None:
        kinds = (PureDP, ApproxDP) if isinstance(asked, ApproxDP) else (type(asked),)
    return [mechanism for mechanism in mechanisms.NOISE.values() if set(kinds) & set(mechanism.prices)]


def _check_kind(mechanism: NoiseMechanism, asked: Guarantee | None) -> None:
    """Refuse a mechanism that was named and can't be paid for in this way."""
    if asked is None or type(asked) in mechanism.prices:
        return
    if isinstance(asked, ApproxDP) and PureDP in mechanism.prices:
        return
    name = mechanisms.short(mechanism.name)
    if PureDP in mechanism.prices:
        raise QueryError(
            f"the {name} mechanism is paid for in epsilon, not in rho",
            remedy=write("epsilon=0.5", terminal="--epsilon 0.5", http='"epsilon": 0.5'),
        )
    raise QueryError(
        f"the {name} mechanism is not purely differentially private, so an epsilon alone can't pay for it",
        allowed="Its price is a rho, or an epsilon and a delta",
        remedy=write("rho=0.01", terminal="--rho 0.01", http='"rho": 0.01'),
    )


def _possible(
    candidate: Callable[[NoiseMechanism], ReleasePlan], adding: Sequence[NoiseMechanism]
) -> list[ReleasePlan]:
    """The plans of all mechanisms that have one; if none has, the first refusal."""
    plans, refused = [], []
    for adds in adding:
        try:
            plans.append(candidate(adds))
        except UserError as error:
            refused.append(error)
    if not plans:
        raise refused[0]
    return plans


def _at_price(draft: ReleasePlan, asked: Guarantee, delta: Exact) -> ReleasePlan:
    if isinstance(asked, ApproxDP) and draft.mechanism.prices[0] is ZeroConcentratedDP:
        draft = replace(draft, stated_at=asked.epsilon)
    return pricing.priced(draft, pricing.at_price(draft, asked), delta=delta)


def _within(drafts: Sequence[ReleasePlan], errors: Mapping[str, Exact], least: Exact, delta: Exact) -> ReleasePlan:
    """The design that keeps to the errors at the lowest price; all prices are raised if their sum is too low."""
    candidates: list[tuple[Exact, ReleasePlan, list[Exact]]] = []
    refused: list[QueryError] = []
    for draft in drafts:
        try:
            prices = pricing.prices_within(draft, errors)
            candidates.append((sum(prices, Exact(0)), draft, prices))
        except QueryError as error:
            refused.append(error)
    for _, draft, prices in sorted(candidates, key=lambda each: each[0]):
        try:
            return _raised(draft, prices, least, delta)
        except QueryError as error:
            refused.append(error)
    raise refused[0]


def _found_within(query: Query, within: Mapping[str, Number], least: Exact, options: Mapping[str, Any]) -> ReleasePlan:
    """The plan with unknown keys at an epsilon of three digits that keeps columns within the errors.

    Claim: it does, and all of it is public. While one mechanism finds keys, every error falls as epsilon grows. Where
    `discovery.divided` changes it, errors can jump up, so the epsilons below the change are searched on their own. The
    result is the smallest if the mechanism changes once.
    """
    if not query.aggregates:
        raise QueryError(
            "keys alone have no errors to keep within",
            remedy=write("epsilon=0.5", terminal="--epsilon 0.5", http='"epsilon": 0.5'),
        )

    def at(step: int) -> ReleasePlan:
        return plan(query, epsilon=_step(step), checked=True, **options)

    start = first(lambda step: _step(step) >= least, _LOWEST)
    draft = at(start)
    errors = _numbers(within, [name for name, _ in draft.columns], "within")
    pricing.check_bounded(draft, errors)
    if not errors:
        raise QueryError("within needs an error", remedy=write('within={"n": 50}', terminal="--within n=50"))

    def enough(step: int) -> bool:
        made = at(step)
        return all((made.expected(name) or 0) <= error for name, error in errors.items())

    found = first(enough, start, _HIGHEST)
    if found == _HIGHEST:
        name = next(iter(errors))
        raise QueryError(
            f"no noise scale is known that keeps {name!r} within {show(errors[name])}",
            remedy=Remedy("Allow a larger error"),
        )

    def finds(step: int) -> type:
        return type(discovered.selection) if (discovered := at(step).discovery) else type(None)

    if finds(found) is not (before := finds(start)):
        change = first(lambda step: finds(step) is not before, start, found)
        if enough(change - 1):
            found = first(enough, start, change - 1)
    return at(found)


_LOWEST, _HIGHEST = -2700, 3600  # epsilon 0.001 and 10,000


def _step(step: int) -> Exact:
    """An epsilon of three digits: 900 of them in each power of ten."""
    power, part = divmod(step, 900)
    return Exact(100 + part) * Exact(10) ** (power - 2)


def _raised(draft: ReleasePlan, prices: Sequence[Exact], least: Exact, delta: Exact) -> ReleasePlan:
    """The plan at these prices; if their sum is below the minimum price, all are scaled up to it."""
    total, lowest = sum(prices, Exact(0)), pricing.least(draft.mechanism.prices[0], least)
    if total and total < lowest:
        draft = replace(draft, raised_to=least)
        prices = [price * lowest / total for price in prices]
    return pricing.priced(draft, pricing.divided(draft.noised, prices), delta=delta)


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
