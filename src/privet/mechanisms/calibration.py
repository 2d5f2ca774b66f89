"""Calibration: the epsilon that a target error costs."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction

from privet.errors import NumberError, write
from privet.exact import Exact, Number, positive, probability, show, up
from privet.mechanisms.standalone import Laplace

_EXAMPLE = "epsilon_for(error=50, confidence=0.95, sensitivity=1)"


def epsilon_for(
    *,
    error: Number,
    confidence: Number,
    sensitivity: Number,
    step: Number | None = None,
    dimension: int | None = None,
) -> Exact:
    """The smallest epsilon (to six digits, rounded up) whose Laplace noise stays within `error` with this confidence.

    With an integer sensitivity this is integer noise; for floats, or a vector of them, pass `dimension`.

    Claim: Laplace(sensitivity=..., epsilon=epsilon_for(...)).error(confidence) <= error, and one unit less in
    the sixth digit would not suffice. The error falls as epsilon rises, so bisection finds epsilon: first its power of
    ten, then its digits.

    Example:
        >>> epsilon_for(error=50, confidence=0.95, sensitivity=1)
        Fraction(74141, 1250000)
        >>> Laplace(sensitivity=1, epsilon=epsilon_for(error=50, confidence=0.95, sensitivity=1)).error(0.95)
        50
    """
    target = positive(error, name="error", example=_EXAMPLE)
    level = probability(confidence, name="confidence", example=_EXAMPLE)
    unit = Laplace(sensitivity=sensitivity, epsilon=1, step=step, dimension=dimension)
    if unit.dimension is not None and target < up(unit.step / 2):
        raise NumberError(
            f"error={show(target)} is below half a lattice step ({show(unit.step)})", remedy=write(_EXAMPLE)
        )

    def enough(candidate: Exact) -> bool:  # monotone: true for every greater epsilon, too
        return (
            Laplace(sensitivity=sensitivity, epsilon=candidate, step=step, dimension=dimension).error(level) <= target
        )

    ten, low, high = Fraction(10), -1, 0
    while enough(ten**low):
        low, high = 2 * low, low
    while not enough(ten**high):
        low, high = high, 2 * high + 1
    power = low + bisect_left(range(low, high), True, key=lambda k: enough(ten**k)) - 1
    digit = ten ** (power - 5)
    return (10**5 + bisect_left(range(10**5, 10**6), True, key=lambda m: enough(m * digit))) * digit
