"""Sums of discrete Laplace variables that are all of one scale: their distribution is known exactly."""

from __future__ import annotations

import math
from collections.abc import Callable

from flint import arb

from privet.exact import Exact, ball, less


def exceeds(d: int, scale: Exact, k: int, level: Exact) -> bool:
    """Whether P(|X_1 + ... + X_d| > k) > level, for discrete Laplace variables that are all of this scale.

    Example:
        >>> exceeds(2, Exact(2), 7, Exact("0.05")), exceeds(2, Exact(2), 8, Exact("0.05"))
        (True, False)
    """
    return not less(lambda: 2 * _equal_tail(d, scale, k + 1), level)


def _equal_tail(d: int, scale: Exact, m: int) -> arb:
    """P(X_1 + ... + X_d >= m), m >= 1: the difference of two negative binomial variables.

    Claim: with q = e^(-1/scale), the sum over 0 <= l <= i < d of
    C(m+d-1, i-l) C(d-1+l, l) (1-q)^(i-l) q^(m+d-1-i+2l) / (1+q)^(d+l).
    """
    x = ball(1 / scale)
    p, q1 = -(-x).expm1(), 1 + (-x).exp()
    return sum(
        (
            math.comb(m + d - 1, i - j) * math.comb(d - 1 + j, j) * p ** (i - j) * (-(m + d - 1 - i + 2 * j) * x).exp()
            / q1 ** (d + j)
            for i in range(d)
            for j in range(i + 1)
        ),
        arb(0),
    )  # fmt: skip


def smallest(missed: Callable[[int], bool]) -> int:
    """The smallest k >= 0 that a decreasing predicate does not hold for."""
    low, high = -1, 0
    while missed(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if missed(middle) else (low, middle)
    return high
