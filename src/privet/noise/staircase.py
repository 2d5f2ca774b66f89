"""The discrete staircase distribution and its exact sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb

from privet.exact import Enclosure, Exact, Number, ball, enclose, exact, less, positive, probability, whole
from privet.exact.search import first
from privet.noise.digits import drawable
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.geometric import geometric_digits
from privet.noise.inversion import UniformReal, enclosed_prefixes, exp_minus
from privet.noise.uniform import uniform_below


@dataclass(frozen=True, slots=True, init=False)
class DiscreteStaircase:
    """The integer noise with the least expected absolute value that hides a move of `sensitivity` at epsilon.

    Claim: P(X = i) = a b^level(i), b = e^-epsilon, with level 0 for |i| < width and level j >= 1 for
    width + (j - 1) sensitivity <= |i| < width + j sensitivity. A move by at most `sensitivity` changes the level by at
    most one, hence the probability by a factor of at most e^epsilon. a = (1-b) / (2 width + 2 b (sensitivity - width)
    - (1-b)). Of all widths from 1 to sensitivity the best is chosen. With sensitivity 1 this is discrete Laplace noise.

    `sample` draws the level, which is 0 with probability a (2 width - 1) and else 1 + a geometric variable with ratio
    b, then a uniform one of its 2 width - 1 or 2 sensitivity integers, exactly.

    Example:
        >>> X = DiscreteStaircase(sensitivity=10, epsilon=2)
        >>> X.width, float(X.pmf(0)), X.quantile(0.975), isinstance(X.sample(), int)
        (3, 0.12299589179402504, 13, True)

    Reference: Geng, Viswanath, "The optimal mechanism in differential privacy", ISIT 2014, theorem 3.
    """

    sensitivity: int
    epsilon: Exact
    width: int

    def __init__(self, *, sensitivity: int, epsilon: Number) -> None:
        example = "DiscreteStaircase(sensitivity=10, epsilon=0.5)"
        move = whole(sensitivity, name="sensitivity", example=example)
        level = positive(epsilon, name="epsilon", example=example)
        drawable(1 / level, "Geometric")
        object.__setattr__(self, "sensitivity", move)
        object.__setattr__(self, "epsilon", level)
        object.__setattr__(self, "width", best_width(move, level))

    def level(self, k: int) -> int:
        """The step of the stairs that an integer is on."""
        return max(0, (abs(k) - self.width) // self.sensitivity + 1)

    def _top(self) -> arb:
        """P(X = 0)."""
        b, rest = exp_minus(self.epsilon), -ball(-self.epsilon).expm1()
        return rest / (2 * self.width + 2 * b * (self.sensitivity - self.width) - rest)

    def pmf(self, k: int) -> Enclosure:
        """P(X = k)."""
        at = exact(k, name="k", example="pmf(3)")
        if at.denominator != 1:
            return Enclosure(Fraction(0), Fraction(0))
        return enclose(lambda: self._top() * exp_minus(self.level(int(at)) * self.epsilon))

    def _upper(self, k: int) -> arb:
        """P(X >= k), for k >= 1."""
        level, rest = self.level(k), -ball(-self.epsilon).expm1()
        here = (self.width + level * self.sensitivity - k) * exp_minus(level * self.epsilon)
        return self._top() * (here + self.sensitivity * exp_minus((level + 1) * self.epsilon) / rest)

    def cdf(self, k: int) -> Enclosure:
        """P(X <= k)."""
        at = math.floor(exact(k, name="k", example="cdf(3)"))
        return enclose(lambda: self.cdf_ball(at))

    def cdf_ball(self, k: int) -> arb:
        """P(X <= k), at the precision of the block."""
        return self._upper(-k) if k < 0 else 1 - self._upper(k + 1)

    def tail(self, t: Number) -> Enclosure:
        """P(|X| >= t)."""
        steps = -(-exact(t, name="t") // 1)
        if steps <= 0:
            return Enclosure(Fraction(1), Fraction(1))
        return enclose(lambda: 2 * self._upper(int(steps)))

    def quantile(self, p: Number) -> int:
        """The smallest k with P(X <= k) >= p."""
        at = probability(p, name="p", example="quantile(0.975)")
        below = at <= Fraction(1, 2)
        mass = at if below else 1 - at

        def beyond(k: int) -> bool:  # P(X >= k) is less; it is irrational, so never equal
            return less(lambda: self._upper(k), mass)

        size = first(beyond, 1) - 1  # the largest k with P(X >= k) > mass, or 0
        return -size if below else size

    @property
    def mean_size(self) -> Enclosure:
        """E |X|, the least of all noise that hides this move at this epsilon."""
        return enclose(lambda: 2 * self._top() * _weighted(self.sensitivity, self.epsilon, self.width))

    def sample(self) -> int:
        """One draw."""
        return self.draw(SYSTEM)

    def draw(self, bits: Bits) -> int:
        """One draw from these bits. All parts are always drawn, so the work does not depend on the level."""
        word = int.from_bytes(bits.take(8), "little")
        prefix = _prefix(self)
        inner = word < prefix
        if word == prefix:
            inner = UniformReal(bits, word, 64).below(lambda: self._top() * (2 * self.width - 1))
        level = geometric_digits(1 / self.epsilon).one(bits)
        near, far = uniform_below(2 * self.width - 1, bits), uniform_below(2 * self.sensitivity, bits)
        if inner:
            return near - (self.width - 1)
        size = self.width + level * self.sensitivity + far // 2
        return size if far % 2 else -size


@lru_cache(maxsize=64)
def _prefix(noise: DiscreteStaircase) -> int:
    """floor(2^64 P(level 0)); the probability is irrational, and its distance from 1 may be tiny."""
    return (1 << 64) - 1 - enclosed_prefixes(lambda: [2 * noise._upper(noise.width)], 192)[0]


def _weighted(sensitivity: int, epsilon: Exact, width: int) -> arb:
    """The sum over i >= 0 of i P(i) / P(0)."""
    b, rest = exp_minus(epsilon), -ball(-epsilon).expm1()
    inner, outer = width * (width - 1) // 2, sensitivity * (sensitivity - 1) // 2
    mass = width + b * (sensitivity - width)
    return (sensitivity * mass * b / rest + inner + b * (outer - inner)) / rest


@lru_cache(maxsize=64)
def best_width(sensitivity: int, epsilon: Exact) -> int:
    """The width with the least expected absolute value.

    The value is a convex quadratic function of the width divided by a positive linear one: it falls, then rises.

    Example:
        >>> [best_width(20, Exact(e)) for e in (Exact(1, 100), 1, 5, 50)]
        [10, 8, 2, 1]
    """

    def rises(width: int) -> bool:  # from this width to the next, both times their positive denominators
        def gain() -> arb:
            b, rest = exp_minus(epsilon), -ball(-epsilon).expm1()
            sizes = [2 * w + 2 * b * (sensitivity - w) - rest for w in (width, width + 1)]
            now, then = (_weighted(sensitivity, epsilon, w) for w in (width, width + 1))
            return then * sizes[0] - now * sizes[1]

        return not less(gain, Fraction(0))

    return first(rises, 1, sensitivity)
