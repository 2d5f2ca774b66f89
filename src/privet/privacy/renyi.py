"""Renyi divergences of mechanisms at integer orders, in closed form, each rounded up to the next multiple of 2^-128.

The Renyi divergence of order alpha of P from Q is log(sum of P^alpha Q^(1 - alpha)) / (alpha - 1). A bound for all
pairs of neighbours, both ways, is what a question costs at that order. These costs add up, also for adaptive questions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from flint import arb

from privet.exact import Exact, ball, rounded_up
from privet.system.remembered import remembered

Orders = tuple[int, ...]
Divergences = tuple[Exact, ...]
"""One for each order."""

_GRID = 128  # so that sums of prices stay short, and adding them is exact
_CACHED = 4096
_HUGE = 1000
_LOW = 2000  # at higher orders, that delta has a denominator that no ledger stores


@remembered(_CACHED)
def laplace(orders: Orders, scale: Exact, shift: int) -> Divergences:
    """Discrete Laplace noise of this scale on one integer that moves by at most `shift`.

    Claim: with r = e^(-1/scale) and p = r^(2 alpha - 1), the divergence of two copies that are `shift` steps apart is
    log{[(1 + (1 - r) p/(1 - p)) r^(-(alpha - 1) shift) + (r - p)/(1 - p) r^(alpha shift)]/(1 + r)}/(alpha - 1), the sum
    over the integers left of both centres, between them, and right of both. It is superadditive in the shift: of all
    moves of a vector with the same L1 norm, those in one coordinate cost most.

    Example:
        >>> [round(float(tau), 12) for tau in laplace((2, 22), Exact(1), 1)]
        [0.735325664056, 0.985082776785]
    """

    def divergence(alpha: int) -> arb:
        x = ball(1 / scale)
        r, p = (-x).exp(), (-(2 * alpha - 1) * x).exp()
        apart = 1 - p
        near = (1 + (1 - r) * p / apart) * ((alpha - 1) * shift * x).exp()
        far = (r - p) / apart * (-alpha * shift * x).exp()
        return ((near + far) / (1 + r)).log() / (alpha - 1)

    return _up(divergence, orders, shift / scale)


@remembered(_CACHED)
def randomized_response(orders: Orders, epsilon: Exact) -> Divergences:
    """Any epsilon-differentially private mechanism: none diverges more than randomized response.

    Claim: log[(e^(alpha epsilon) + e^((1 - alpha) epsilon))/(1 + e^epsilon)]/(alpha - 1).

    Example:
        >>> [round(float(tau), 12) for tau in randomized_response((2, 22), Exact(1))]
        [0.735325664056, 0.985082776785]

    Reference: Kairouz, Oh, Viswanath 2015, theorem 2.5: each such pair is a function of randomized response.
    """

    def divergence(alpha: int) -> arb:
        e = ball(epsilon)
        return (((alpha * e).exp() + ((1 - alpha) * e).exp()) / (1 + e.exp())).log() / (alpha - 1)

    return _up(divergence, orders, epsilon)


@remembered(_CACHED)
def bounded_range(orders: Orders, epsilon: Exact) -> Divergences:
    """A choice of bounded range epsilon, such as the exponential mechanism.

    Claim: the worst pair has two log ratios, t and t - epsilon, with
    e^t = ((alpha - 1)/alpha)(1 - e^(-alpha epsilon))/(e^(-epsilon) - e^(-alpha epsilon)). Its divergence is
    t + log[(1 - e^(-alpha epsilon))/(alpha (1 - e^(-epsilon)))]/(alpha - 1), which is below alpha epsilon^2/8.

    Example:
        >>> [round(float(tau), 12) for tau in bounded_range((2, 22), Exact(1))]
        [0.240229013917, 0.828129160642]

    Reference: Dong, Durfee, Rogers, "Optimal differential privacy composition for exponential mechanisms", ICML 2020.
    """

    def divergence(alpha: int) -> arb:
        e = ball(epsilon)
        whole, one = -(-alpha * e).expm1(), -(-e).expm1()
        t = (ball(Exact(alpha - 1, alpha)) * whole / ((-e).exp() - (-alpha * e).exp())).log()
        return t + (whole / (alpha * one)).log() / (alpha - 1)

    return _up(divergence, orders, epsilon)


def concentrated(orders: Orders, rho: Exact) -> Divergences:
    """Discrete Gaussian noise, or anything else that is rho-zero-concentrated: alpha rho.

    Example:
        >>> [float(tau) for tau in concentrated((2, 22), Exact(1, 200))]
        [0.01, 0.11]

    Reference: Canonne, Kamath, Steinke 2020, theorem 4.
    """
    return tuple(_next(alpha * rho) for alpha in orders)


@lru_cache(maxsize=_CACHED)
def allowance(order: int, epsilon: Exact, delta: Exact) -> Exact:
    """The largest total divergence of this order that implies (epsilon, delta)-DP; rounded down, 0 if there is none.

    Claim: epsilon + [log delta + log(alpha - 1) - alpha log(1 - 1/alpha)]/(alpha - 1), since for all x
    (1 - e^(epsilon - x))+ <= e^((alpha - 1)(x - epsilon)) (1 - 1/alpha)^alpha/(alpha - 1).

    Example:
        >>> round(float(allowance(22, Exact(1), Exact(1, 10**6))), 4)
        0.5358

    Reference: Canonne, Kamath, Steinke 2020, proposition 12.
    """
    if delta == 0:
        return Exact(0)
    if order <= _LOW and delta * order**order == (order - 1) ** (order - 1):  # the only rational case
        return Exact((epsilon.numerator << _GRID) // epsilon.denominator, 1 << _GRID)

    def total() -> arb:
        gain = ball(delta).log() + arb(order - 1).log() - order * ball(Exact(order - 1, order)).log()
        return ball(epsilon) + gain / (order - 1)

    return max(-rounded_up(lambda: -total(), _GRID), Exact(0))


def _next(number: Exact) -> Exact:
    """The number, rounded up to the grid."""
    return Exact(-((-number.numerator << _GRID) // number.denominator), 1 << _GRID)


def _up(divergence: Callable[[int], arb], orders: Orders, epsilon: Exact) -> Divergences:
    """The divergences of an epsilon-differentially private mechanism, rounded up; none is larger than epsilon."""
    if epsilon == 0 or epsilon > _HUGE:  # where the difference from epsilon is below e^-1000
        return (_next(epsilon),) * len(orders)
    return tuple(rounded_up(partial(divergence, alpha), _GRID) for alpha in orders)
