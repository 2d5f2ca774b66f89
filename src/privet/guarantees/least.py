"""The least that a question may cost: it bounds how many questions a budget can pay for."""

from __future__ import annotations

from privet.exact import Exact
from privet.guarantees.kinds import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP

MIN_EPSILON = Exact(1, 1000)
"""Unless the steward decides otherwise: a budget of epsilon 3 pays for at most 3,000 questions."""


def least_price(budget: Guarantee, min_epsilon: Exact) -> Guarantee:
    """The least price of a question, in the kind of a budget.

    Example:
        >>> least_price(PureDP(3), MIN_EPSILON), least_price(ZeroConcentratedDP(0.1), Exact(1, 10))
        (PureDP(0.001), ZeroConcentratedDP(0.005))
    """
    least = PureDP(min_epsilon)
    match budget:
        case ApproxDP():
            return least.to_approx()
        case ZeroConcentratedDP():
            return least.to_zcdp()
    return least
