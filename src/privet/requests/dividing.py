"""The price of a batch, divided: one price by weights, a price for each question, or errors for each to keep to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from privet.errors import InternalError, QueryError, Remedy, Subject, UserError, argument, write
from privet.exact import Exact, Number, positive, show, show_up
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
    pays: Callable[[BatchPlan], bool]
    """Whether what is left pays for a batch, or its answers are stored: a retry must be the same batch."""
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
        if amount > budget.delta:
            raise UserError(
                f"delta {show(amount)} is more than this budget has: {budget}",
                subject=Subject("argument", "delta"),
                remedy=argument("delta", show(budget.delta / 100)),
            )
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

    Claim: if one epsilon is for all questions, they have it together, with the delta of `funds` or with none. The delta
    goes to the questions that need one, in proportion to their epsilons: plain sums are then the whole price. If no
    question needs it, it goes to the privacy loss of all together, and may raise their prices. Raised prices add up to
    more than epsilon, so that this batch is paid for by its privacy loss, or not at all: if that can't be paid, prices
    are not raised. However prices are given, the delta of all is no more than this one and those of plans.
    """
    batch = _planned(questions, given, plan, funds)
    promised = batch.guarantee()
    if funds is not None and isinstance(promised, ApproxDP):
        planned_before = [each for each in _checked(questions).values() if isinstance(each, ReleasePlan)]
        own = sum((each.price.delta for each in planned_before if isinstance(each.price, ApproxDP)), Exact(0))
        if promised.delta > funds.amount + own:
            raise UserError(
                f"delta is for all questions together, and these need {show_up(promised.delta)}",
                allowed="Beside unknown keys, a question in rho needs a delta of its own. Give each an epsilon",
                remedy=argument("epsilon", 0.5),
            )
    return batch


def _planned(questions: object, given: Mapping[str, Any], plan: Planner, funds: Funds | None) -> BatchPlan:
    asked = _checked(questions)
    prices = Prices(*(given.get(each.name) for each in fields(Prices)))
    options = {name: value for name, value in given.items() if name != "delta" and not hasattr(prices, name)}
    if all(isinstance(each, ReleasePlan) for each in asked.values()):
        wrong = {name: value for name, value in given.items() if name != "delta" and value is not None}
        plans = {name: _plan(name, plan, each, wrong) for name, each in asked.items()}  # says what is wrong, if any is
        return _cheaper(_one_by_one(plans, tuple(range(len(plans)))), funds)
    amounts, errors = prices.amounts(asked), prices.within or {}
    fixed = {name: _plan(name, plan, each, {}) for name, each in asked.items() if isinstance(each, ReleasePlan)}
    limited = {name: _plan(name, plan, asked[name], {"within": error, **options}) for name, error in errors.items()}

    def at(factor: Exact, deltas: Mapping[str, Exact]) -> BatchPlan:
        alone = dict(limited)
        for name, price in amounts.items():
            delta = {"delta": deltas[name]} if name in deltas else {}
            alone[name] = _plan(name, plan, asked[name], {prices.name: factor * price, **delta, **options})
        in_order = {name: alone[name] for name in asked if name in alone}
        return _one_by_one(*_with_plans(asked, fixed, *shared(in_order, plan)))

    total = prices.name == "epsilon" and prices.total and not fixed and not limited
    if funds is None:
        return at(Exact(1), {})
    delta, plain = funds.amount, at(Exact(1), {})
    leaking = {name: price for name, price in amounts.items() if _has_delta(plain[name])}
    if leaking:
        batch = at(Exact(1), {name: delta * price / sum(leaking.values()) for name, price in leaking.items()})
    else:
        whole = _raised(at, sum(amounts.values(), Exact(0)), delta) if total else None
        batch = whole if whole is not None and funds.pays(whole) else _cheaper(plain, funds)
    if total and not batch.guarantee().implies(ApproxDP.capped(sum(amounts.values(), Exact(0)), delta)):
        raise InternalError(
            "the batch promises less than was asked for. Nothing was released. This is a bug in Privet."
        )
    return batch


def _plan(name: str, plan: Planner, question: Question, options: Mapping[str, Any]) -> ReleasePlan:
    """The plan of one question; an error names the question."""
    try:
        return plan(question, **options)
    except UserError as error:
        error.inside(f"question {name!r}")
        raise


def _has_delta(plan: ReleasePlan) -> bool:
    return isinstance(plan.price, ApproxDP) and plan.price.delta > 0


def _checked(questions: object) -> dict[str, Question]:
    if isinstance(questions, BatchPlan):  # one by one, its plans would cost more: shared measurements are in each
        raise QueryError("this is the plan of a batch, and a batch is asked by its questions", remedy=_EXAMPLE)
    if not isinstance(questions, Mapping) or not questions:
        raise UserError("a batch must be a dict of questions by name, at least one", remedy=_EXAMPLE)
    return {check_name(name, "name"): each for name, each in questions.items()}


def _with_plans(
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


def _one_by_one(plans: Mapping[str, ReleasePlan], parts: tuple[int, ...]) -> BatchPlan:
    """The batch that costs what its parts would cost one by one."""
    by_part = dict(zip(parts, plans.values(), strict=True))
    return BatchPlan(plans, parts, events.Composed([by_part[part].event() for part in range(len(by_part))]))


def _cheaper(batch: BatchPlan, funds: Funds | None) -> BatchPlan:
    """The batch, one by one or at one delta: what leaves more of the budget, if it can be paid.

    More of the whole budget, not of its rest: retries must choose the same.
    """
    if funds is None:
        return batch
    accountant, granted = funds.balance.accountant, funds.granted
    choices = [replace(batch, whole=fixed_batch(batch.whole.events, funds.amount)), batch]
    choices.sort(key=lambda each: -accountant.share(accountant.price(each.whole), granted))
    return next((each for each in choices if funds.pays(each)), choices[0])


def _raised(at: Callable[[Exact, Mapping[str, Exact]], BatchPlan], epsilon: Exact, delta: Exact) -> BatchPlan | None:
    """The batch whose privacy loss is within (epsilon, delta), with the largest prices, to a 32nd; None for no larger.

    Claim: its event is a fixed batch of that privacy loss.
    """

    def within(parts: int) -> BatchPlan | None:
        tried = at(Exact(parts, _FINE), {})
        found = fixed_batch(tried.whole.events, delta)
        held = isinstance(found, events.FixedBatch) and found.epsilon <= epsilon
        return replace(tried, whole=found) if held else None

    best: BatchPlan | None = None
    low, high = _FINE, 2 * _FINE
    while (tried := within(high)) is not None:
        best, low, high = tried, high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if (tried := within(middle)) is not None:
            best, low = tried, middle
        else:
            high = middle
    return best
