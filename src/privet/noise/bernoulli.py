"""Coins with exact probabilities: rational, and e^-x."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privet.errors import NumberError, write
from privet.exact import Enclosure, Exact, Number, enclose, nonnegative
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.inversion import UniformReal, exp_minus
from privet.noise.uniform import uniform_below


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """A coin that shows 1 with a rational probability.

    Claim: P(1) = p, exactly: a uniform integer below the denominator is compared with the numerator.

    Example:
        >>> Bernoulli("1/3").pmf(1), Bernoulli(1).sample()
        (Fraction(1, 3), 1)
    """

    p: Exact

    def __init__(self, p: Number) -> None:
        number = nonnegative(p, name="p", example='Bernoulli("1/3")')
        if number > 1:
            raise NumberError(f"p must be at most 1, not {p}", remedy=write('Bernoulli("1/3")'))
        object.__setattr__(self, "p", number)

    def pmf(self, k: int) -> Exact:
        """P(X = k)."""
        return {1: self.p, 0: 1 - self.p}.get(k, Fraction(0))

    def cdf(self, k: int) -> Exact:
        """P(X <= k)."""
        return Fraction(1) if k >= 1 else 1 - self.p if k == 0 else Fraction(0)

    def sample(self) -> int:
        """One toss."""
        return self.draw(SYSTEM)

    def draw(self, bits: Bits) -> int:
        """One toss from these bits."""
        return int(uniform_below(self.p.denominator, bits) < self.p.numerator)


@dataclass(frozen=True, slots=True)
class BernoulliExp:
    """A coin that shows 1 with probability e^-x.

    Claim: P(1) = e^-x, exactly: a uniform real, drawn bit by bit as needed, is compared with the certified e^-x.

    Example:
        >>> float(BernoulliExp(1).pmf(1)), BernoulliExp(0).sample()
        (0.36787944117144233, 1)
    """

    x: Exact

    def __init__(self, x: Number) -> None:
        object.__setattr__(self, "x", nonnegative(x, name="x", example="BernoulliExp(1)"))

    def pmf(self, k: int) -> Enclosure:
        """P(X = k)."""
        if k not in (0, 1):
            return Enclosure(Fraction(0), Fraction(0))
        return enclose(lambda: exp_minus(self.x) if k else 1 - exp_minus(self.x))

    def cdf(self, k: int) -> Enclosure:
        """P(X <= k)."""
        return self.pmf(0) if k == 0 else Enclosure(Fraction(k > 0), Fraction(k > 0))

    def sample(self) -> int:
        """One toss."""
        return self.draw(SYSTEM)

    def draw(self, bits: Bits) -> int:
        """One toss from these bits."""
        return int(self.x == 0 or UniformReal(bits).below(lambda: exp_minus(self.x)))
