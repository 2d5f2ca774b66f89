"""Dominating pairs: for each event two distributions that are at least as easy to tell apart as any two neighbours.

A pair is given by its curve: delta as a function of epsilon, the hockey-stick divergence. All pairs here are symmetric,
so that one curve is enough for both directions. A pair dominates what a mechanism does if its curve is nowhere below;
then so does the composition of pairs that of mechanisms which are fixed in advance (Zhu, Dong, Wang, "Optimal
accounting of differential privacy via characteristic function", AISTATS 2022, theorem 10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate

from flint import arb

from privet.exact import Exact, ball

Curve = Callable[[Exact], arb]
"""Delta at an epsilon, at the precision of the block."""

MOST_RHO = 2
MOST_SUMMANDS = 2**17
_REACH = 16  # standard deviations to sum up: the rest is below 2^-180


def laplace(scale: Exact, shift: int) -> Curve:
    """Discrete Laplace noise on integers that move by at most `shift` in L1.

    Claim: with r = e^(-1/scale), the noise on one integer and its copy `shift` steps away have delta
    1 - (r^j + e^epsilon r^(shift + 1 - j))/(1 + r), where j = ceil((shift - epsilon scale)/2), for 1 <= j <= shift;
    0 for smaller j, and 1 - e^epsilon for larger ones. At the epsilons where j changes it is 1 - r^j.
    A move that is split over coordinates is dominated by all of it in one. For a split into s1 >= s2: both curves are
    linear in e^epsilon between the same points, where for epsilon >= 0 the split has
    1 - r^j (2 + (m - 1)(1 - r))/(1 + r) with m = min(j, s2) >= 1, which is at most 1 - r^j; symmetry says the same for
    epsilon < 0 (docs/theory.md). Smaller moves are dominated since the noise is log-concave.

    Example:
        >>> float(laplace(Exact(1), 1)(Exact(0)))
        0.4621171572600...
    """
    r = (-1 / ball(scale)).exp()

    def delta(epsilon: Exact) -> arb:
        j = math.ceil((shift - epsilon * scale) / 2)
        if j <= 0:
            return arb(0)
        e = ball(epsilon).exp()
        if j > shift:
            return 1 - e
        return 1 - ((-ball(j / scale)).exp() + e * (-ball((shift + 1 - j) / scale)).exp()) / (1 + r)

    return delta


def randomized_response(epsilon: Exact, delta: Exact) -> Curve:
    """Anything that is (epsilon, delta)-differentially private.

    Claim: with probability delta all is told, and else a bit is told truly with odds of e^epsilon.

    Example:
        >>> float(randomized_response(Exact(1), Exact(1, 10))(Exact(0)))
        0.51590544153...

    Reference: Kairouz, Oh, Viswanath 2015, theorem 2.5 and remark A.1.
    """
    told, odds = ball(delta), ball(epsilon).exp()

    def curve(at: Exact) -> arb:
        if at >= epsilon:
            return told
        e = ball(at).exp()
        return told + (1 - told) * (1 - e if at <= -epsilon else (odds - e) / (1 + odds))

    return curve


def bounded_range(epsilon: Exact) -> Curve:
    """A choice of bounded range epsilon.

    Claim: two log ratios, t and t - epsilon, have delta (1 - e^(t - epsilon))(1 - e^(x - t))/(1 - e^(-epsilon)) at x.
    It is largest at t = (epsilon + x)/2: (1 - e^((x - epsilon)/2))^2/(1 - e^(-epsilon)), for |x| <= epsilon. As a
    supremum of curves it is a curve; no choice of one t for each x is better for the analyst.

    Example:
        >>> float(bounded_range(Exact(1))(Exact(0)))
        0.2449186624037...

    Reference: Dong, Durfee, Rogers, "Optimal differential privacy composition for exponential mechanisms", ICML 2020,
    lemma 3.2, for the two log ratios.
    """

    def delta(at: Exact) -> arb:
        if at >= epsilon:
            return arb(0)
        if at <= -epsilon:
            return 1 - ball(at).exp()
        return (1 - ball((at - epsilon) / 2).exp()) ** 2 / (1 - (-ball(epsilon)).exp())

    return delta


def gaussian_fits(sigma_squared: Exact, shift: int) -> bool:
    """Whether `gaussian` can sum up this noise."""
    few = 4 * (_REACH * _REACH * sigma_squared + shift * shift) <= MOST_SUMMANDS**2 // 4
    return few and shift * shift <= 2 * MOST_RHO * sigma_squared


def gaussian_reach(sigma_squared: Exact, shift: int) -> Exact:
    """An epsilon at which delta is below 2^-64: rho and nine and a half standard deviations of the log ratio."""
    rate = Exact(math.isqrt(shift * shift * 2**40 * sigma_squared.denominator // sigma_squared.numerator) + 1, 2**20)
    return Exact(shift * shift) / (2 * sigma_squared) + rate * Exact(19, 2)


def gaussian(sigma_squared: Exact, shift: int) -> Curve:
    """Discrete Gaussian noise on one integer that moves by at most `shift`.

    Claim: the sum of P(k) - e^epsilon P(k - shift) over k < shift/2 - epsilon sigma^2/shift; it grows with the shift,
    since the noise is log-concave.

    Example:
        >>> float(gaussian(Exact("2.4"), 1)(Exact(3)))
        1.29745...e-06

    Reference: Canonne, Kamath, Steinke 2020, theorem 7.
    """
    reach = math.isqrt(math.ceil(_REACH * _REACH * sigma_squared)) + shift + 1
    factor = -1 / ball(2 * sigma_squared)
    right = [(factor * (k * k)).exp() for k in range(reach + 1)]
    below = list(accumulate([*right[:0:-1], *right]))  # of the weights of -reach ... k
    whole = below[-1]

    def upto(k: int) -> arb:
        return arb(0) if k < -reach else below[min(k, reach) + reach] / whole

    def delta(epsilon: Exact) -> arb:
        last = math.ceil(Exact(shift, 2) - epsilon * sigma_squared / shift) - 1
        return upto(last) - ball(epsilon).exp() * upto(last - shift)

    return delta
