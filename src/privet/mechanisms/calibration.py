"""From the error that is wanted to the epsilon that it costs."""

from __future__ import annotations

import math
from fractions import Fraction

from privet.errors import NumberError
from privet.exact import Exact, Number, nearest, positive, probability, show
from privet.mechanisms.laplace import Laplace

_EXAMPLE = "epsilon_for(error=50, confidence=0.95, sensitivity=1)"


def epsilon_for(*, error: Number, confidence: Number, sensitivity: Number, step: Number | None = None) -> Exact:
    """The smallest epsilon (to six digits, rounded up) whose Laplace noise keeps to `error` with this confidence.

    Claim: Laplace(sensitivity=..., epsilon=epsilon_for(...)).error(confidence) <= error, and one unit less in the
    sixth digit would not do. With m the allowed error and x = epsilon / sensitivity, both in lattice steps, the
    condition is 2 e^(-(m + 1) x) / (1 + e^-x) <= 1 - confidence.

    Example:
        >>> epsilon_for(error=50, confidence=0.95, sensitivity=1)
        Fraction(74141, 1250000)
        >>> Laplace(sensitivity=1, epsilon=epsilon_for(error=50, confidence=0.95, sensitivity=1)).error(0.95)
        50
    """
    wanted = positive(error, name="error", example=_EXAMPLE)
    level = probability(confidence, name="confidence", example=_EXAMPLE)
    unit = Laplace(sensitivity=sensitivity, epsilon=1, step=step)
    allowed = math.floor(wanted / unit.step - (0 if unit.dimension is None else Fraction(1, 2)))
    if allowed < 0:
        raise NumberError(
            f"error={show(wanted)} is below half a lattice step ({show(unit.step)}). Write, for example: {_EXAMPLE}"
        )
    start = nearest(unit.steps * Fraction(_loss_per_step(allowed, nearest(1 - level))))
    digit = Fraction(10) ** (math.floor(math.log10(start)) - 5)
    epsilon = math.ceil(Fraction(start) / digit) * digit

    def enough(candidate: Exact) -> bool:
        return Laplace(sensitivity=sensitivity, epsilon=candidate, step=step).error(level) <= wanted

    while not enough(epsilon):  # the float start can be off by a unit or two
        epsilon += digit
    while epsilon > digit and enough(epsilon - digit):
        epsilon -= digit
    return epsilon


def _loss_per_step(allowed: int, beyond: float) -> float:
    """Solve (allowed + 1) x + log(1 + e^-x) = log(2 / beyond), whose left side rises with x, by bisection."""
    target = math.log(2) - math.log(beyond)
    low, high = 0.0, target / (allowed + 1)
    for _ in range(80):
        x = (low + high) / 2
        low, high = (x, high) if (allowed + 1) * x + math.log1p(math.exp(-x)) < target else (low, x)
    return high
