"""The discrete Gaussian distribution and its exact sampler."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import overload

import numpy as np
from flint import arb, ctx

from privet.errors import NumberError, write
from privet.exact import (
    INFINITY,
    Enclosure,
    Exact,
    Number,
    ball,
    enclose,
    exact,
    less,
    positive,
    precision,
    probability,
)
from privet.exact.lattice import Integers, add_exactly
from privet.noise.digits import CACHED, Digits, size_of
from privet.noise.entropy import SYSTEM
from privet.noise.inversion import Inversion, enclosed_prefixes, mirrored
from privet.noise.refinement import Refined
from privet.noise.theta import second_moment, total, upper, weight
from privet.system.remembered import remembered

LARGEST = 1 << 2048
"""The largest supported sigma^2."""

TABLE = 1 << 14
"""Below this sigma^2 noise is drawn from one table; above, its lower bits are drawn apart."""

REACH = 97
"""The extent of a table, as a multiple of sigma^2 that is the square of the last value: 2 e^(-97/2) < 2^-64."""

_EXAMPLE = "DiscreteGaussian(sigma_squared=4)"


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """The Gaussian (normal) distribution on the integers.

    Claim: P(X = k) is proportional to e^(-(k - loc)^2 / (2 sigma^2)), drawn exactly, without floats. The parameter is
    sigma^2, because it can be rational where sigma is not. It is not quite the variance, which is a little smaller.
    `sample` inverts the CDF up to sigma = 128; above, the bits below a table's resolution are uniform, and thinned.

    Example:
        >>> X = DiscreteGaussian("6.25")
        >>> float(X.pmf(0)), X.quantile(0.975), float(X.tail(6))
        (0.15957691216057307, 5, 0.026775448446896853)
        >>> isinstance(X.sample(), int), X.sample(3).shape
        (True, (3,))

    Reference: Canonne, Kamath, Steinke (2020), the discrete Gaussian for differential privacy.
    """

    sigma_squared: Exact
    loc: int = 0

    def __init__(self, sigma_squared: Number, loc: int = 0) -> None:
        number = positive(sigma_squared, name="sigma_squared", example=_EXAMPLE)
        if number > LARGEST:
            raise NumberError("sigma_squared must be at most 2^2048, about 1e616", remedy=write(_EXAMPLE))
        object.__setattr__(self, "sigma_squared", number)
        centre = exact(loc, name="loc", example="DiscreteGaussian(sigma_squared=4, loc=10)")
        if centre.denominator != 1:
            raise NumberError(f"loc must be a whole number, not {loc}", remedy=write("DiscreteGaussian(4, loc=10)"))
        object.__setattr__(self, "loc", int(centre))

    @property
    def scale(self) -> Exact:
        """The parameter of its width, which is sigma^2."""
        return self.sigma_squared

    def at(self, loc: int) -> DiscreteGaussian:
        """The same distribution, centred elsewhere."""
        return DiscreteGaussian(self.sigma_squared, loc)

    def pmf(self, k: int) -> Enclosure:
        """P(X = k)."""
        at = exact(k, name="k", example="pmf(3)")
        if at.denominator != 1:
            return Enclosure(Fraction(0), Fraction(0))
        return enclose(lambda: weight(self.sigma_squared, int(at) - self.loc) / total(self.sigma_squared))

    def cdf(self, k: int) -> Enclosure:
        """P(X <= k)."""
        at = math.floor(exact(k, name="k", example="cdf(3)"))
        return enclose(lambda: self.cdf_ball(at))

    def cdf_ball(self, k: int) -> arb:
        """P(X <= k), at the precision of the block."""
        return gaussian_cdf(self.sigma_squared, k - self.loc)

    def tail(self, t: Number) -> Enclosure:
        """P(|X - loc| >= t), at most 2 e^(-t^2/(2 sigma^2))."""
        steps = math.ceil(exact(t, name="t"))
        if steps <= 0:
            return Enclosure(Fraction(1), Fraction(1))
        return enclose(lambda: 2 * _beyond(self.sigma_squared, steps))

    def quantile(self, p: Number) -> int:
        """The smallest k with P(X <= k) >= p.

        Claim: decided by certified enclosures; Newton's method in the logarithm only says where to begin.
        """
        level = probability(p, name="p", example="quantile(0.975)")
        if level < Fraction(1, 2):
            # the smallest k with P(X >= -k) >= level: the last m for which that holds, mirrored
            return self.loc - (_smallest(self.sigma_squared, level) - 1)
        return self.loc + max(0, _smallest(self.sigma_squared, 1 - level) - 1)

    @property
    def variance(self) -> Enclosure:
        """The variance, less than sigma^2 by at most 8 pi^2 sigma^4 e^(-2 pi^2 sigma^2)."""
        return enclose(lambda: second_moment(self.sigma_squared))

    def log_ratio(self, other: DiscreteGaussian) -> Exact | float:
        """The largest log(p/q) against a shifted copy: infinite."""
        return INFINITY if self.loc != other.loc else Fraction(0)

    def likelier_below(self, other: DiscreteGaussian, epsilon: Exact) -> int | None:
        """The largest k with p(k) > e^epsilon q(k), for a copy shifted to the right; the same holds for all smaller k.

        None if the copy is not shifted.
        """
        shift = other.loc - self.loc
        if shift == 0:
            return None
        # at loc + x the log ratio is (shift^2 - 2 x shift) / (2 sigma^2)
        return self.loc + math.ceil(Fraction(shift, 2) - epsilon * self.sigma_squared / shift) - 1

    @overload
    def sample(self) -> int: ...
    @overload
    def sample(self, size: int) -> Integers: ...
    def sample(self, size: int | None = None) -> int | Integers:
        """One draw, or an array of `size` independent draws: int64, or Python integers for sigma above 2^54."""
        sampler = gaussian_sampler(self.sigma_squared)
        if size is None:
            return self.loc + sampler.one(SYSTEM)
        draws = sampler.array(size_of(size), SYSTEM)
        return add_exactly(draws, np.array([self.loc], dtype=object)) if self.loc else draws


def _beyond(sigma_squared: Exact, m: int) -> arb:
    """P(X >= m) for m >= 1."""
    return _beyond_at(sigma_squared, m, ctx.prec)


@remembered(8192)
def _beyond_at(sigma_squared: Exact, m: int, bits: int) -> arb:
    return upper(sigma_squared, m) / total(sigma_squared)


def gaussian_cdf(sigma_squared: Exact, k: int) -> arb:
    """P(X <= k) of the discrete Gaussian distribution at 0."""
    return _beyond(sigma_squared, -k) if k < 0 else 1 - _beyond(sigma_squared, k + 1)


def _smallest(sigma_squared: Exact, level: Exact) -> int:
    """The smallest m >= 1 with P(X >= m) < level."""
    m, moving = 1, sigma_squared > 16
    with precision(128 + sigma_squared.numerator.bit_length()):
        log_level, whole = ball(level).log(), total(sigma_squared)
        while moving:  # the logarithm of the tail is concave: from the second step on, m comes down to the root
            tail = _beyond(sigma_squared, m)
            move = (tail.log() - log_level) * tail * whole / weight(sigma_squared, m)
            by = int(move.mid().floor().fmpz())
            m, moving = max(1, m + by), abs(by) > 1 and m + by > 1
    return _boundary(lambda k: less(lambda: _beyond(sigma_squared, k), level), m)


def _boundary(holds: Callable[[int], bool], start: int) -> int:
    """The smallest k >= 1 for which an increasing predicate holds, searched in growing steps from `start`."""
    step = 1
    if holds(start):
        low, high = start - 1, start
        while low >= 1 and holds(low):
            low, high, step = max(0, low - step), low, 2 * step
    else:
        low, high = start, start + 1
        while not holds(high):
            low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# --- samplers -----------------------------------------------------------------------------------


def _tails(sigma_squared: Exact, reach: int) -> list[arb]:
    """The sums from reach, reach - 1, ..., 1 on, at the precision of the block."""
    first = weight(sigma_squared, 1)
    square = first * first
    weights, ratio = [first], first * square
    for _ in range(reach - 1):
        weights.append(weights[-1] * ratio)
        ratio *= square
    tails = [upper(sigma_squared, reach + 1)]
    for one in reversed(weights):
        tails.append(tails[-1] + one)
    return tails[1:]


def _reach(sigma_squared: Exact) -> int:
    return math.isqrt(int(REACH * sigma_squared)) + 2


def two_sided(sigma_squared: Exact) -> Inversion:
    """The table of all values that 64 bits can distinguish."""
    reach = _reach(sigma_squared)

    def lower() -> Iterator[arb]:
        whole = 1 / total(sigma_squared)
        return (tail * whole for tail in _tails(sigma_squared, reach))

    prefixes = mirrored(enclosed_prefixes(lower, 192))
    return Inversion(-reach, prefixes, lambda k: gaussian_cdf(sigma_squared, k))


def one_sided(sigma_squared: Exact) -> Inversion:
    """The table of the values 0, 1, ..., each with weight e^(-k^2/(2 sigma^2))."""
    reach = _reach(sigma_squared)

    def beyond() -> Iterator[arb]:
        whole = 2 / (total(sigma_squared) + 1)
        return (tail * whole for tail in _tails(sigma_squared, reach))

    def cdf(k: int) -> arb:
        return 1 - 2 * _beyond(sigma_squared, k + 1) / (1 + 1 / total(sigma_squared)) if k >= 0 else arb(0)

    prefixes = [(1 << 64) - 1 - p for p in reversed(enclosed_prefixes(beyond, 192))]
    return Inversion(0, prefixes, cdf)


@lru_cache(maxsize=CACHED)
def gaussian_sampler(sigma_squared: Exact) -> Digits | Refined:
    """The sampler for one sigma^2, with its certified table."""
    if sigma_squared < TABLE:
        return Digits([two_sided(sigma_squared)])
    shift = 0
    while sigma_squared >= TABLE:
        sigma_squared /= 4
        shift += 1
    return Refined(one_sided(sigma_squared), shift, 1 / (2 * sigma_squared))
