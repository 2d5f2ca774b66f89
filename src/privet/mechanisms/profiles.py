"""The privacy profile, epsilon -> delta, of mechanisms of which only a bound on log ratios is known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from privet.exact import Enclosure, Exact, Number, ball, enclose, nonnegative

_NOTHING = Enclosure(Fraction(0), Fraction(0))


@dataclass(frozen=True, slots=True)
class PureProfile:
    """The profile of all mechanisms that are epsilon-DP: the worst is randomized response.

    Claim: delta(x) = (e^epsilon - e^x) / (e^epsilon + k - 1) with k = 2; no smaller function holds for all of them. For
    randomized response with k answers, that is its own profile.

    Example:
        >>> float(PureProfile(Exact(1))(0)), PureProfile(Exact(1))(1)
        (0.46211715726000974, Enclosure(0.0, width 0))

    Reference: Kairouz, Oh, Viswanath, "The composition theorem for differential privacy", 2015.
    """

    epsilon: Exact
    answers: int = 2

    def __call__(self, epsilon: Number) -> Enclosure:
        level = nonnegative(epsilon, name="epsilon", example="0.5")
        if level >= self.epsilon:
            return _NOTHING

        def delta() -> arb:
            top = ball(self.epsilon).exp()
            return (top - ball(level).exp()) / (top + self.answers - 1)

        return enclose(delta)


@dataclass(frozen=True, slots=True)
class BoundedRangeProfile:
    """The profile of all choices of bounded range epsilon.

    Claim: delta(x) = (1 - e^((x - epsilon)/2))^2 / (1 - e^-epsilon) for 0 <= x <= epsilon. The worst pair has two
    answers, with log ratios t and t - epsilon, t = (epsilon + x)/2; and pairs of scores come as near as one likes.

    Example:
        >>> float(BoundedRangeProfile(Exact(1))(0)), BoundedRangeProfile(Exact(1))(1)
        (0.24491866240370913, Enclosure(0.0, width 0))

    Reference: Dong, Durfee, Rogers, "Optimal differential privacy composition for exponential mechanisms", 2020.
    """

    epsilon: Exact

    def __call__(self, epsilon: Number) -> Enclosure:
        level = nonnegative(epsilon, name="epsilon", example="0.5")
        if level >= self.epsilon:
            return _NOTHING
        half = (level - self.epsilon) / 2
        return enclose(lambda: ball(half).expm1() ** 2 / -ball(-self.epsilon).expm1())
