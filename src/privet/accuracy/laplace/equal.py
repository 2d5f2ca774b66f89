"""Sums of discrete Laplace variables that are all of one scale: their distribution is known exactly."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from flint import arb

from privet.exact import Exact, ball, binary, less, nearest


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
    p, q = -(-x).expm1(), (-x).exp()
    terms = (
        math.comb(m + d - 1, i - j)
        * math.comb(d - 1 + j, j)
        * p ** (i - j)
        * q ** (d - 1 - i + 2 * j)
        / (1 + q) ** (d + j)
        for i in range(d)
        for j in range(i + 1)
    )
    return (-m * x).exp() * sum(terms, arb(0))


def error_in_steps(d: int, scale: Exact, level: Exact) -> int:
    """The smallest k with P(|X_1 + ... + X_d| > k) <= level, for discrete Laplace variables that all have this scale.

    Claim: both k and k - 1 are decided by certified enclosures. A float only says where the search starts.

    Example:
        >>> error_in_steps(2, Exact(2), Exact("0.05"))
        8
    """
    return _smallest(lambda k: exceeds(d, scale, k, level), start=int(scale * binary(_steps(d, level))))


def _steps(d: int, level: Exact) -> float:
    """About how many scales a sum of continuous Laplace variables exceeds with this probability.

    Claim: the tail is e^-x times a polynomial, the limit of `_equal_tail` for large scales. So x = ln(2 p(x) / level),
    which is a contraction, since the tail decreases.
    """
    weights = [
        sum(math.comb(d - 1 + j, j) / 2 ** (d + j) for j in range(d - i)) / math.factorial(i) for i in range(d)
    ]  # of x^0, x^1, ...
    room = -math.log(max(nearest(level), sys.float_info.min))
    x, before = max(0.0, room), -1.0
    for _ in range(100):
        if abs(x - before) <= 1e-15 * x:
            break
        tail = 0.0
        for weight in reversed(weights):
            tail = tail * x + weight
        x, before = max(0.0, room + math.log(2 * tail)), x
    return x


def _smallest(missed: Callable[[int], bool], start: int) -> int:
    """The smallest k >= 0 for which a decreasing predicate does not hold, searched in growing steps from `start`."""
    step = 1
    if missed(start):
        low, high = start, start + 1
        while missed(high):
            step *= 2
            low, high = high, high + step
    else:
        low, high = start - 1, start
        while low >= 0 and not missed(low):
            step *= 2
            low, high = max(-1, low - step), low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if missed(middle) else (low, middle)
    return high
