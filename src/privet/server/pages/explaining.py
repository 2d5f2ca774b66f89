"""What a question would cost and how accurate it would be, for a page: in words, as a curve and as a gauge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR

from markupsafe import Markup

from privet.errors import UserError
from privet.exact import Exact, exact, nearest, show, show_up
from privet.ledger import Balance
from privet.ledger.balance import how_often
from privet.planner import ReleasePlan, computed
from privet.planner.rank_outputs import RankedCode
from privet.planner.rank_words import rank_error
from privet.planner.ranks import ChosenRanks
from privet.privacy.guarantees import Budget, Guarantee, ZeroConcentratedDP
from privet.server.pages.curves import Point, curve, gauge

STEPS = ("0.01", "0.02", "0.05", "0.1", "0.15", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5")
"""The prices that the slider offers, as far as the budget allows them."""
_DRAWN = ("0.02", "0.05", "0.1", "0.25", "0.5", "1", "2")


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a question, as the form has it."""

    unit: str
    """epsilon, or rho if the budget is in rho."""
    value: str
    steps: tuple[str, ...]
    at: int
    """The place of the slider."""


def price(budget: Budget, left: Exact, value: str) -> Price:
    """The price field and its slider, for what is left of a budget.

    Example:
        >>> from privet.privacy.guarantees import PureDP
        >>> price(PureDP(3), Exact("0.06"), "0.05")
        Price(unit='epsilon', value='0.05', steps=('0.01', '0.02', '0.05'), at=2)
    """
    unit = "rho" if isinstance(budget, ZeroConcentratedDP) else "epsilon"
    steps = tuple(step for step in STEPS if Exact(step) <= left) or STEPS[:1]
    try:
        now = exact(value, name=unit)
    except UserError:
        now = Exact(0)
    at = sum(Exact(step) <= now for step in steps[1:])
    return Price(unit, value, steps, at)


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected error of a column."""

    column: str
    words: str


@dataclass(frozen=True, slots=True)
class Explained:
    """What a page shows beside a question."""

    cost: str
    after: str
    often: str
    before: bool
    """Whether the answer is stored, and so free."""
    errors: tuple[Expected, ...]
    meaning: str
    limits: tuple[str, ...]
    sections: tuple[tuple[str, str], ...]
    curve: Markup | None
    gauge: Markup


def explained(
    plan: ReleasePlan,
    balance: Balance,
    *,
    before: Guarantee | None,
    sections: Sequence[tuple[str, str]],
    at: Callable[[str], ReleasePlan | None],
) -> Explained:
    """What a plan costs and how accurate it is; `at` plans the same question at another price, if it can."""
    remaining = balance.remaining
    times = remaining.times(plan)
    free = before is not None
    share = nearest(remaining.share)
    after = share if free else max(0.0, share * (1 - 1 / times)) if times else 0.0
    confidence = show(plan.confidence * 100, rounding=ROUND_FLOOR)
    together = "for all cells together" if plan.simultaneous else "for each cell"
    errors = tuple(_errors(plan))
    guessed = any(each.words.endswith(" rows") for each in errors)
    guess = " The number of rows is a guess: set it under Options." if guessed else ""
    return Explained(
        cost="nothing" if free else str(plan.guarantee()),
        after=remaining.text if free else _after(plan, balance) if times else "not enough is left",
        often=_often(times, free=free),
        before=free,
        errors=errors,
        meaning=f"Expected error from the noise, {confidence} % of the time, {together}.{guess}",
        limits=plan.limits,
        sections=tuple(sections),
        curve=_curve(plan, at),
        gauge=gauge(share, "Budget after this question", after=after),
    )


def _often(times: int, *, free: bool) -> str:
    if free:
        return "A stored answer can be read as often as you like."
    return f"Enough for {how_often(times)} like this." if times else "Choose a lower cost, or ask a steward."


def _after(plan: ReleasePlan, balance: Balance) -> str:
    """What would be left: exact for budgets that add up, else the share."""
    left = balance.remaining
    spent, kept = plan.guarantee(), left.guarantee
    for name in ("epsilon", "rho"):
        ours, theirs = getattr(spent, name, None), getattr(kept, name, None)
        if ours is not None and theirs is not None and type(spent) is type(kept) and "%" not in left.text:
            return f"{name} {show(theirs - ours, rounding=ROUND_FLOOR)}"
    return f"less than {left.text}"


def _errors(plan: ReleasePlan) -> list[Expected]:
    if not plan.noised:
        return []
    found = []
    shown = plan.query.shown()
    for name, output in plan.columns:
        if name not in shown:
            continue
        if isinstance(output, RankedCode):
            part = plan.noised[output.measurement]
            assert isinstance(part, ChosenRanks)
            found.append(Expected(name, rank_error(part, output, plan.level)))
            continue
        error = plan.expected(name)
        if error is None:
            found.append(Expected(name, "depends on the size of a group: guess it under Options"))
        else:
            rows = f" for {plan.assuming:,} rows" if plan.assuming is not None and plan.depends(name) else ""
            found.append(Expected(name, f"± {_shown(error)}{rows}"))
    for name, node in plan.query.arrangement.computed:
        if name in shown and not computed.is_plain(plan, node):
            bounds = computed.expected(plan, node)
            words = "follows from the others" if bounds is None else f"± {_shown(max(bounds))}"
            found.append(Expected(name, words))
    return found


def _shown(error: Exact) -> str:
    """An error, rounded up to three digits.

    Example:
        >>> _shown(Exact(12345)), _shown(Exact(1, 3)), _shown(Exact(37037037, 3)), _shown(Exact(49))
        ('12,400', '0.334', '12,400,000', '49')
    """
    if not 1000 <= error < 10**15:
        return show_up(error, 3) if error else "0"
    unit = 10 ** (len(str(int(error))) - 3)
    return f"{math.ceil(error / unit) * unit:,}"


def _curve(plan: ReleasePlan, at: Callable[[str], ReleasePlan | None]) -> Markup | None:
    """The error of the first column that has one, against the price."""
    amount = _amount(plan)
    name = next((name for name, output in plan.columns if _drawable(plan, name, output)), None)
    if name is None or amount is None:
        return None
    points = []
    for step in _DRAWN:
        other = at(step)
        error = None if other is None else other.expected(name)
        if error:
            points.append(Point(nearest(Exact(step)), nearest(error)))
    now = plan.expected(name)
    if len(points) < 2 or not now:
        return None
    unit = "rho" if isinstance(plan.price, ZeroConcentratedDP) else "epsilon"
    return curve(points, Point(amount, nearest(now)), column=name, unit=unit)


def _drawable(plan: ReleasePlan, name: str, output: object) -> bool:
    if isinstance(output, RankedCode):
        return False
    error = plan.expected(name)
    return error is not None and error > 0 and math.isfinite(nearest(error))


def _amount(plan: ReleasePlan) -> float | None:
    found = getattr(plan.price, "epsilon", None) or getattr(plan.price, "rho", None)
    return None if found is None else nearest(found)


def other_price(session_plan: Callable[..., ReleasePlan], unit: str) -> Callable[[str], ReleasePlan | None]:
    """Plans the same question at another price; None where it can't be."""

    def at(step: str) -> ReleasePlan | None:
        try:
            return session_plan(**{unit: step})
        except UserError:
            return None

    return at
