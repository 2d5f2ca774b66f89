"""What a question costs a token with a largest epsilon: its epsilon, and no larger share of delta than of epsilon.

Claim: if d / delta <= e / epsilon for the epsilon e and the delta d of every question, where the budget is (epsilon,
delta), then a token that spends at most a share s of the budget's epsilon spends at most the share s of its delta.
"""

from __future__ import annotations

from privet.errors import BudgetError, Subject, UserError, argument
from privet.exact import Exact, literal, show
from privet.planner import ReleasePlan
from privet.planner.batch import BatchPlan
from privet.privacy.guarantees import ApproxDP, Budget, Guarantee


def cost(plan: ReleasePlan | BatchPlan, budget: Budget) -> Exact:
    """The epsilon that a token must hold for a question; refused if its delta is too large for that epsilon."""
    return epsilon_of(plan.guarantee(), budget)


def epsilon_of(price: Guarantee, budget: Budget) -> Exact:
    """The epsilon of a price, if its delta is no larger share of the budget than its epsilon.

    Example:
        >>> epsilon_of(ApproxDP(1, "1e-7"), ApproxDP(10, "1e-6"))
        Fraction(1, 1)
        >>> epsilon_of(ApproxDP(0, "1e-7"), ApproxDP(10, "1e-6"))
        Traceback (most recent call last):
        privet.errors.BudgetError: this question costs delta 1e-7. Its token has a largest epsilon, so with epsilon 0 it
        may spend delta 0 at most: of the delta no larger share than of the epsilon. Nothing was spent
    """
    epsilon = getattr(price, "epsilon", None)
    if epsilon is None:
        raise UserError("this token has a largest epsilon, so it can't pay in rho. Nothing was spent")
    delta = Exact(getattr(price, "delta", 0))
    most = Exact(0)
    if isinstance(budget, ApproxDP) and budget.epsilon:
        most = Exact(epsilon) * budget.delta / budget.epsilon
    if delta > most:
        raise BudgetError(
            f"this question costs delta {show(delta)}. Its token has a largest epsilon, so with epsilon "
            f"{show(Exact(epsilon))} it may spend delta {show(most)} at most: of the delta no larger share than of the "
            "epsilon. Nothing was spent",
            subject=Subject("argument", "delta"),
            remedy=argument("delta", literal(most).strip('"')) if most else None,
        )
    return Exact(epsilon)
