"""How far one answer is from the truth.

`noise` is a symmetric distribution on the integers (lattice steps), `step` the size of a step, and `rounded` the share
of a step that the value itself may have moved when it was put on the lattice (0 or 1/2).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from privet.exact import Enclosure, Exact, Number, exact, probability


class Noise(Protocol):
    """What accuracy needs to know of a noise distribution centred at 0."""

    def quantile(self, p: Number) -> int:
        """The smallest k with P(X <= k) >= p."""

    def tail(self, t: Number) -> Enclosure:
        """P(|X| >= t)."""


def error(noise: Noise, confidence: Number, *, step: Exact = Fraction(1), rounded: Exact = Fraction(0)) -> Exact:
    """The smallest lattice bound that the error keeps to with this confidence.

    Claim: P(|answer - truth| <= error) >= confidence, and no smaller number of noise steps has that.

    Example:
        >>> from privet.noise import DiscreteLaplace
        >>> error(DiscreteLaplace(1), 0.95), error(DiscreteLaplace(2), 0.95)
        (Fraction(3, 1), Fraction(6, 1))
    """
    level = probability(confidence, name="confidence", example="confidence=0.95")
    return (max(0, noise.quantile((1 + level) / 2)) + rounded) * step


def tail(noise: Noise, t: Number, *, step: Exact = Fraction(1), rounded: Exact = Fraction(0)) -> Enclosure:
    """P(|noise| >= t), a bound on P(|answer - truth| >= t).

    Claim: exact for integers, where nothing is rounded; for reals the rounding's share is taken off t.
    """
    return noise.tail(exact(t, name="t", example="tail(10)") / step - rounded)
