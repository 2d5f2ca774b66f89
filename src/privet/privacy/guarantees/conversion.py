"""The numbers behind the conversion of zCDP: guesses in floats, and their certification."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from privet.exact import Exact, nearest, precision


def log(number: Exact) -> float:
    """The natural logarithm of a rational of any size, in floats."""
    return math.log(number.numerator) - math.log(number.denominator)


def least(function: Callable[[float], float], low: float, high: float, steps: int) -> float:
    """Where a unimodal function is least, by golden section; a guess, to be certified by the caller."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(steps):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if function(left) <= function(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def epsilon_and_order(rho: float, log_delta: float) -> tuple[float, float]:
    """The least epsilon of the conversion, in floats, and its alpha - 1."""

    def epsilon(t: float) -> float:
        above = math.exp(t)
        log_alpha = math.log1p(above)
        return (1 + above) * rho + t - log_alpha - (log_delta + log_alpha) / above

    best = least(epsilon, -300.0, 300.0, 80)
    return epsilon(best), math.exp(best)


def best_share(rho: Exact, epsilon: Exact, delta: Exact) -> Exact:
    """The share s of a target's delta for which the conversion at s * delta leads closest to the target."""
    e, d, log_d, r = nearest(epsilon), nearest(delta), log(delta), nearest(rho)

    def needed(t: float) -> float:
        share = math.exp(t)
        first = max(epsilon_and_order(r, log_d + t)[0], e)
        return d * share - (1 - d * share) * math.expm1(e - first) / (1 + math.exp(-first))

    return Exact(math.exp(least(needed, -30.0, 0.0, 60)))


def certainly_nonnegative(evaluate: Callable[[], Any]) -> bool:
    """Whether an Arb expression is certainly zero or greater; False if it is not, or if this is undecided."""
    for bits in (128, 512, 2048, 8192, 32768):
        with precision(bits):
            real = evaluate()
            if real >= 0:
                return True
            if real < 0:
                return False
    return False
