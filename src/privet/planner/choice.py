"""Which mechanism adds the noise, where several can: the one with the smaller errors, or with the smaller cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN
from typing import Any

from privet.errors import AccountingError, QueryError, UserError, write
from privet.exact import Exact, show
from privet.exact.search import first
from privet.planner.outputs import Fixed
from privet.planner.plan import ReleasePlan
from privet.privacy.accounting import Accountant
from privet.privacy.events import GaussianNoise, PrivacyEvent
from privet.privacy.gaussian import stated
from privet.privacy.guarantees import Budget, PureDP, ZeroConcentratedDP

_ASSUMED = 1000  # rows: every mean has an error that is divided by the same number


@dataclass(frozen=True, slots=True)
class Accounting:
    """The budget from which a question is to be paid, and the accountant that keeps it."""

    accountant: Accountant[Any]
    budget: Budget

    def used(self, plan: ReleasePlan) -> Exact | None:
        """The share of a whole budget that a plan would use, by the meter it uses least of; None if it has no price."""
        try:
            price = self.accountant.price(plan.event())
        except AccountingError:
            return None
        return 1 - self.accountant.share(price, self.budget)

    def prices(self, plan: ReleasePlan) -> str:
        """The price of a plan on each meter, as text; empty if there is one meter."""
        return self.accountant.show_price(self.accountant.price(plan.event()), self.budget)

    def stated(self, event: PrivacyEvent) -> PrivacyEvent:
        """An event with the epsilon at which it states its delta, if the budget counts epsilons and it has none."""
        if isinstance(event, GaussianNoise) and event.epsilon is None and self.stated_delta:
            return stated([event], delta=self.stated_delta)
        return event

    @property
    def stated_delta(self) -> Exact:
        """The delta at which a question in rho states an epsilon; 0 for none."""
        return self.accountant.stated_delta(self.budget)


def payable(plans: Sequence[ReleasePlan], accounting: Accounting) -> list[ReleasePlan]:
    """The plans that have a price under this accounting; refused if none has."""
    able = [plan for plan in plans if accounting.used(plan) is not None]
    if not able:
        raise QueryError(
            f"{plans[0].price} can't be paid from this budget, which is {accounting.budget}",
            allowed="A budget without a delta pays for Laplace noise" if isinstance(accounting.budget, PureDP) else "",
            remedy=write("epsilon=0.5", terminal="--epsilon 0.5", http='"epsilon": 0.5'),
        )
    return able


def most_accurate(plans: Sequence[ReleasePlan], accounting: Accounting | None = None) -> ReleasePlan:
    """Of plans at the same price, the one whose worst column is better than that of any other; the first of equals.

    Claim: it depends on the question and on public facts alone. Errors of means are compared for the same number of
    rows, which is the same factor for all.
    """
    best = plans[0]
    for plan in plans[1:]:
        if _better(_ratios(plan, best)):
            best = plan
    others = [plan for plan in plans if plan is not best]
    texts = [_more_accurate(best, other) for other in others]
    if accounting is not None:  # the same guarantee may use more or less of the budget
        texts += [f"It costs {_percent(accounting.used(best) or Exact(1))} of the whole budget"]
        texts[-1] += "".join(
            f", {_lower(other.mechanism.label)} would cost {_percent(accounting.used(other) or Exact(1))}"
            for other in others
        )
        texts[-1] += "."
    return replace(best, choice=" ".join(texts))


def cheapest(plans: Sequence[ReleasePlan], accounting: Accounting) -> ReleasePlan:
    """Of plans with the same errors, the one that uses the smallest share of the budget; the first of equals."""
    shares = [accounting.used(plan) for plan in plans]
    used = [Exact(1) if share is None else share for share in shares]
    place = used.index(min(used))
    texts = [
        f"{plans[place].mechanism.label} costs {_percent(used[place])} of the whole budget, "
        f"{_lower(plan.mechanism.label)} would cost {_percent(share)}."
        for plan, share in zip(plans, used, strict=True)
        if plan is not plans[place]
    ]
    return replace(plans[place], choice=" ".join(texts))


def alternative(plan: ReleasePlan, accounting: Accounting) -> str:
    """What noise in rho would do for the same share of the budget as a plan in epsilon; empty if it would do worse.

    The share rises with rho, so bisection finds the largest rho, to two digits.
    """
    from privet.planner.planning import plan as make

    if isinstance(accounting.budget, PureDP):  # it pays for nothing in rho
        return ""
    limit = accounting.used(plan)
    if not isinstance(plan.price, PureDP) or not plan.noised or limit is None or limit >= 1:
        return ""
    if not _ratios(plan, plan):  # nothing to compare: errors of quantiles depend on the data
        return ""
    options: dict[str, Any] = {
        "confidence": plan.confidence,
        "simultaneous": plan.simultaneous,
        "assuming": plan.assuming,
        "weights": dict(plan.weights) or None,
        "accounting": accounting,
    }

    unit = plan.price.epsilon**2 / 100

    def at(step: int) -> ReleasePlan:
        return make(plan.query, rho=step * unit, checked=True, **options)

    try:
        at(1), at(401)
    except UserError:  # this budget pays for nothing in rho, or not for so much
        return ""
    steps = first(lambda step: (accounting.used(at(step + 1)) or 1) > limit, 0, 400)
    if not steps:
        return ""
    other = at(steps)
    ratios = _ratios(other, plan)
    if not _better(ratios):
        return ""
    rho = show(other.price.rho, 2, rounding=ROUND_DOWN) if isinstance(other.price, ZeroConcentratedDP) else ""
    low, high = (f"{ratio:.2f}" for ratio in (min(ratios), max(ratios)))
    times = low if low == high else f"{low} to {high}"
    return f"{other.mechanism.label} for about the same share of the budget, rho {rho}, has {times} times these errors."


def _ratios(plan: ReleasePlan, other: ReleasePlan) -> list[float]:
    """The error of each column, as a multiple of its error in another plan."""
    ratios = []
    for (_, output), (_, same) in zip(plan.columns, other.columns, strict=True):
        if isinstance(output, Fixed):
            continue
        mine = plan.bound(output, plan.assuming or _ASSUMED)
        its = other.bound(same, other.assuming or _ASSUMED)
        if mine is not None and its is not None:
            ratios.append(float(mine / its) if its else math.inf if mine else 1.0)
    return ratios


def _better(ratios: list[float]) -> bool:
    """Whether the worst column gains more than any loses; not if errors are 0 in one plan or the other."""
    return bool(ratios) and max(ratios) * min(ratios) < 1


def _more_accurate(best: ReleasePlan, other: ReleasePlan) -> str:
    ratios = sorted(_ratios(other, best))
    if not ratios:
        return ""
    low, high = (f"{ratio:.2f}" for ratio in (ratios[0], ratios[-1]))
    times = low if low == high else f"{low} to {high}"
    return f"{best.mechanism.label}: the errors of {_lower(other.mechanism.label)} would be {times} times as large."


def _lower(label: str) -> str:
    return label[:1].lower() + label[1:]


def _percent(share: Exact) -> str:
    return f"{show(100 * share, 3)} %"
