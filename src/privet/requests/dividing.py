"""The price of a batch, divided: one price by weights, a price for each question, or errors for each to keep to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from privet.errors import QueryError, Remedy, Subject, UserError, argument, write
from privet.exact import Exact, Number, positive
from privet.ledger import Balance
from privet.names.spelling import there_are
from privet.planner import ReleasePlan
from privet.planner.batch import BatchPlan
from privet.planner.sharing import shared
from privet.privacy import events
from privet.privacy.accounting import fixed_batch
from privet.privacy.guarantees import ApproxDP, Budget
from privet.tables.query import Query
from privet.tables.schema import check_name

Question = Query | str | ReleasePlan
Planner = Callable[..., ReleasePlan]

_EXAMPLE = write('session.release_all({"men": men, "women": women}, epsilon=0.5)')
_WEIGHTS = write('weights={"men": 2}')
_WITHIN = write('within={"men": {"n": 50}}')
_FINE = 32  # parts of the factor that a delta allows


@dataclass(frozen=True, slots=True)
class Prices:
    """What a batch may cost: together, for each question, or by the errors of each."""

    epsilon: Number | Mapping[str, Number] | None = None
    rho: Number | Mapping[str, Number] | None = None
    weights: Mapping[str, Number] | None = None
    within: Mapping[str, Mapping[str, Number]] | None = None

    @property
    def name(self) -> Literal["epsilon", "rho"]:
        """What amounts are amounts of."""
        if self.epsilon is not None and self.rho is not None:
            raise QueryError("both epsilon and rho are set", allowed="Set one of the two", remedy=_EXAMPLE)
        return "epsilon" if self.rho is None else "rho"

    @property
    def total(self) -> bool:
        """Whether there is one price for all questions that have none of their own."""
        return getattr(self, self.name) is not None and not isinstance(getattr(self, self.name), Mapping)

    def amounts(self, questions: Mapping[str, Question]) -> dict[str, Exact]:
        """The amount for each question that has neither a plan nor errors to keep to.

        Example:
            >>> prices = Prices(epsilon=1, weights={"a": 3})
            >>> {name: str(amount) for name, amount in prices.amounts({"a": "SELECT ...", "b": "SELECT ..."}).items()}
            {'a': '3/4', 'b': '1/4'}
        """
        errors, given = _named(self.within, questions, "within", _WITHIN), getattr(self, self.name)
        for name, asked in questions.items():
            if isinstance(asked, ReleasePlan) and name in errors:
                raise _own("within", name)
        rest = [name for name, asked in questions.items() if not isinstance(asked, ReleasePlan) and name not in errors]
        weights = _named(self.weights, questions, "weights", _WEIGHTS)
        if weights and not self.total:
            raise QueryError("weights divide one epsilon or rho, and there is none", remedy=_EXAMPLE)
        for name in weights:
            if name not in rest:
                raise _own("weights", name)
        if not self.total:
            return self._each(_named(given, questions, self.name, argument(self.name, 0.5)), rest)
        whole = positive(given, name=self.name, example=argument(self.name, 0.5))
        if not rest:
            raise QueryError(
                f"every question already has its price, so there is nothing to divide {self.name} between",
                remedy=Remedy("Leave it out"),
            )
        heavy = {name: positive(weights.get(name, 1), name=f"the weight of {name}", example=_WEIGHTS) for name in rest}
        return {name: whole * weight / sum(heavy.values()) for name, weight in heavy.items()}

    def _each(self, given: Mapping[str, Number], rest: list[str]) -> dict[str, Exact]:
        for name in given:
            if name not in rest:
                raise _own(self.name, name)
        for name in rest:
            if name not in given:
                raise QueryError(
                    f"the price of {name!r} is missing",
                    allowed="Set one epsilon or rho for all questions, or one for each, or errors to keep within",
                    remedy=_EXAMPLE,
                )
        line = argument(self.name, 0.5)
        return {name: positive(given[name], name=f"{self.name} of {name}", example=line) for name in rest}


@dataclass(frozen=True, slots=True)
class Funds:
    """What a batch with a delta is paid from."""

    balance: Balance
    granted: Budget
    """The whole budget that the dataset was created with."""
    delta: Number

    @property
    def amount(self) -> Exact:
        """The delta, which must have its place in the budget."""
        amount, budget = positive(self.delta, name="delta", example="delta=1e-6"), self.balance.budget
        if not isinstance(budget, ApproxDP) or not budget.delta:
            raise UserError(
                f"a batch can't have a delta, since the budget has none: {budget}",
                subject=Subject("argument", "delta"),
                remedy=Remedy("Leave it out: the questions then cost what they would one by one"),
            )
        if amount >= 1:
            raise UserError("delta must be less than 1", remedy=argument("delta", 1e-6))
        return amount


def _named(given: Any, questions: Mapping[str, Question], what: str, line: Remedy) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise QueryError(f"{what} must be given by the names of questions", remedy=line)
    for name in given:
        if name not in questions:
            known = there_are(str(name), questions, "questions")
            raise QueryError(f"{what}: there is no question {name!r}", allowed=known, remedy=line)
    return given


def _own(what: str, name: str) -> QueryError:
    return QueryError(
        f"{what}: {name!r} already has its price, from a plan or from its errors", remedy=Remedy("Leave it out")
    )


def planned(
    questions: object,
    given: Mapping[str, Any],
    plan: Planner,
    funds: Funds | None = None,
) -> BatchPlan:
    """The plan of a batch, from the arguments that were `given`: prices, and options for what is not a plan.

    With a delta (`funds`), one epsilon for all is what they cost together by their privacy loss, where that gives more
    to each.
    """
    asked = _checked(questions)
    prices = Prices(*(given.get(each.name) for each in fields(Prices)))
    options = {name: value for name, value in given.items() if name != "delta" and not hasattr(prices, name)}
    if all(isinstance(each, ReleasePlan) for each in asked.values()):
        wrong = {name: value for name, value in given.items() if name != "delta" and value is not None}
        plans = {name: plan(each, **wrong) for name, each in asked.items()}  # says what is wrong, if anything is
        return _whole(plans, tuple(range(len(plans))), funds)
    amounts, errors = prices.amounts(asked), prices.within or {}
    fixed = {name: plan(each) for name, each in asked.items() if isinstance(each, ReleasePlan)}
    limited = {name: plan(asked[name], within=error, **options) for name, error in errors.items()}

    def at(factor: Exact) -> tuple[dict[str, ReleasePlan], tuple[int, ...]]:
        alone = {
            name: limited[name] if name in limited else plan(each, **{prices.name: factor * amounts[name]}, **options)
            for name, each in asked.items()
            if name not in fixed
        }
        return _in_order(asked, fixed, *shared(alone, plan))

    if funds is None or prices.name != "epsilon" or not prices.total or fixed or limited:
        return _whole(*at(Exact(1)), funds)
    return _whole(*_largest(at, sum(amounts.values(), Exact(0)), funds.amount), funds)


def _checked(questions: object) -> dict[str, Question]:
    if not isinstance(questions, Mapping) or not questions:
        raise UserError("a batch must be a dict of questions by name, at least one", remedy=_EXAMPLE)
    return {check_name(name, "name"): each for name, each in questions.items()}


def _in_order(
    names: Mapping[str, Question],
    fixed: Mapping[str, ReleasePlan],
    plans: Mapping[str, ReleasePlan],
    parts: tuple[int, ...],
) -> tuple[dict[str, ReleasePlan], tuple[int, ...]]:
    """All plans in the order of their questions; those with prices of their own are parts of their own."""
    part_of: dict[str, object] = {**dict(zip(plans, parts, strict=True)), **{name: name for name in fixed}}
    numbers = {part: i for i, part in enumerate(dict.fromkeys(part_of[name] for name in names))}
    return (
        {name: plans[name] if name in plans else fixed[name] for name in names},
        tuple(numbers[part_of[name]] for name in names),
    )


def _whole(plans: dict[str, ReleasePlan], parts: tuple[int, ...], funds: Funds | None) -> BatchPlan:
    """The batch, as one event: at one delta, if that is cheaper than one by one.

    Cheaper is what leaves more of the whole budget, not of its rest: retries must choose the same.
    """
    separate = _one_by_one(plans, parts)
    if funds is None:
        return BatchPlan(plans, parts, separate)
    unknown = [name for name, plan in plans.items() if plan.discovery is not None]
    if unknown:
        raise QueryError(
            f"{unknown[0]!r} groups by keys that are not public, which has a delta of its own, so the batch can't have "
            "one for all",
            remedy=Remedy("Leave out the delta of the batch, or ask this question by itself"),
        )
    accountant, granted = funds.balance.accountant, funds.granted
    choices = fixed_batch(separate.events, funds.amount), separate
    whole = min(choices, key=lambda event: -accountant.share(accountant.price(event), granted))
    return BatchPlan(plans, parts, whole)


def _one_by_one(plans: Mapping[str, ReleasePlan], parts: tuple[int, ...]) -> events.Composed:
    """The event of a batch that costs what its parts would cost one by one."""
    by_part = dict(zip(parts, plans.values(), strict=True))
    return events.Composed([by_part[part].event() for part in range(len(by_part))])


def _largest(
    at: Callable[[Exact], tuple[dict[str, ReleasePlan], tuple[int, ...]]], epsilon: Exact, delta: Exact
) -> tuple[dict[str, ReleasePlan], tuple[int, ...]]:
    """The plans whose privacy loss together is within (epsilon, delta), with the largest prices, to a 32nd.

    Claim: at the factor 1 the sum of the prices is epsilon, so that it holds there without any delta.
    """

    def holds(plans: dict[str, ReleasePlan], parts: tuple[int, ...]) -> bool:
        found = fixed_batch(_one_by_one(plans, parts).events, delta)
        return isinstance(found, events.FixedBatch) and found.epsilon <= epsilon

    best = at(Exact(1))
    low, high = _FINE, 2 * _FINE
    while holds(*(tried := at(Exact(high, _FINE)))):
        best, low, high = tried, high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if holds(*(tried := at(Exact(middle, _FINE)))):
            best, low = tried, middle
        else:
            high = middle
    return best
