"""Uniform integers, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privet.errors import NumberError, write
from privet.exact import Exact, Number, probability
from privet.noise.entropy import SYSTEM, Bits


@dataclass(frozen=True, slots=True)
class UniformInteger:
    """The uniform distribution on lower, ..., upper (both included).

    Claim: each integer has probability exactly 1 / (upper - lower + 1).

    Example:
        >>> die = UniformInteger(1, 6)
        >>> die.pmf(3), die.quantile(0.5), 1 <= die.sample() <= 6
        (Fraction(1, 6), 3, True)
    """

    lower: int
    upper: int

    def __post_init__(self) -> None:
        if self.lower > self.upper:
            raise NumberError(
                f"lower must be at most upper, not {self.lower} and {self.upper}", remedy=write("UniformInteger(1, 6)")
            )

    @property
    def size(self) -> int:
        """The number of values."""
        return self.upper - self.lower + 1

    def pmf(self, k: int) -> Exact:
        """P(X = k)."""
        return Fraction(self.lower <= k <= self.upper, self.size)

    def cdf(self, k: int) -> Exact:
        """P(X <= k)."""
        return Fraction(min(max(k - self.lower + 1, 0), self.size), self.size)

    def quantile(self, p: Number) -> int:
        """The smallest k with P(X <= k) >= p."""
        return self.lower - int(-probability(p, name="p", example="quantile(0.5)") * self.size // 1) - 1

    def sample(self) -> int:
        """One draw."""
        return self.lower + uniform_below(self.size, SYSTEM)


def uniform_below(bound: int, bits: Bits) -> int:
    """A uniform integer in 0, ..., bound - 1, by rejection: draws again while the number is too large."""
    length = (bound - 1).bit_length()
    size = (length + 7) // 8
    while True:
        number = int.from_bytes(bits.take(size), "little") >> (8 * size - length)
        if number < bound:
            return number
