"""The discrete Laplace distribution and its exact sampler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import overload

import numpy as np
from flint import arb

from privet.errors import NumberError, write
from privet.exact import Enclosure, Exact, Number, ball, enclose, exact, floor, probability
from privet.exact.lattice import Integers, add_exactly
from privet.noise.digits import BASE, CACHED, REACH, TOP, Digits, drawable, size_of
from privet.noise.entropy import SYSTEM
from privet.noise.inversion import Inversion, certified_prefixes, exp_minus, mirrored, powers


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """The two-sided geometric distribution: the Laplace distribution on the integers.

    Claim: P(X = k) = tanh(1/(2 scale)) e^(-|k - loc|/scale), drawn exactly, without floats.
    `sample` sums base-256 digits: X is the difference of two geometric variables with ratio e^(-1/scale),
    the digits of a geometric variable are independent, hence so are the differences of two variables'
    digits, and the part above all digits is again discrete Laplace, with scale / 256^J.

    Example:
        >>> X = DiscreteLaplace("2.5")
        >>> float(X.pmf(0)), X.quantile(0.975), float(X.tail(8))
        (0.197375320224904, 7, 0.0488076570416691)
        >>> isinstance(X.sample(), int), X.sample(3).shape
        (True, (3,))

    Reference: Ghosh, Roughgarden, Sundararajan (2009), universally utility-maximizing mechanisms.
    """

    scale: Exact
    loc: int = 0

    def __init__(self, scale: Number, loc: int = 0) -> None:
        object.__setattr__(self, "scale", drawable(scale, "DiscreteLaplace"))
        centre = exact(loc, name="loc", example="DiscreteLaplace(scale=2, loc=10)")
        if centre.denominator != 1:
            raise NumberError(f"loc must be a whole number, not {loc}", remedy=write("DiscreteLaplace(2, loc=10)"))
        object.__setattr__(self, "loc", int(centre))

    def at(self, loc: int) -> DiscreteLaplace:
        """The same distribution, centred elsewhere."""
        return DiscreteLaplace(self.scale, loc)

    def pmf(self, k: int) -> Enclosure:
        """P(X = k)."""
        at = exact(k, name="k", example="pmf(3)")
        if at.denominator != 1:
            return Enclosure(Fraction(0), Fraction(0))
        return enclose(lambda: (1 / ball(2 * self.scale)).tanh() * exp_minus(abs(at - self.loc) / self.scale))

    def cdf(self, k: int) -> Enclosure:
        """P(X <= k)."""
        at = math.floor(exact(k, name="k", example="cdf(3)"))
        return enclose(lambda: self.cdf_ball(at))

    def cdf_ball(self, k: int) -> arb:
        """P(X <= k), at the precision of the block."""
        return two_sided_cdf(self.scale, k - self.loc)

    def tail(self, t: Number) -> Enclosure:
        """P(|X - loc| >= t), for t > 0: 2 e^(-ceil(t)/scale) / (1 + e^(-1/scale)), at most 2 e^(-t/scale)."""
        steps = -(-exact(t, name="t") // 1)
        if steps <= 0:
            return Enclosure(Fraction(1), Fraction(1))
        return enclose(lambda: 2 * _lower_tail(self.scale, steps))

    def quantile(self, p: Number) -> int:
        """The smallest k with P(X <= k) >= p."""
        level = probability(p, name="p", example="quantile(0.975)")

        def steps(mass: Exact) -> arb:  # the real m with P(X - loc <= -m) = mass
            return ball(self.scale) * -(ball(mass) * (1 + exp_minus(1 / self.scale))).log()

        below = floor(lambda: steps(level))
        return self.loc + (-below if below >= 1 else max(0, floor(lambda: steps(1 - level))))

    @property
    def variance(self) -> Enclosure:
        """1 / (cosh(1/scale) - 1), near 2 scale^2 for large scales."""
        return enclose(lambda: 1 / (2 * (1 / ball(2 * self.scale)).sinh() ** 2))

    def log_ratio(self, other: DiscreteLaplace) -> Exact:
        """The largest log(p/q) against a shifted copy: |shift| / scale."""
        return abs(self.loc - other.loc) / self.scale

    def likelier_below(self, other: DiscreteLaplace, epsilon: Exact) -> int | None:
        """The largest k with p(k) > e^epsilon q(k), for a copy shifted to the right; the same holds for all smaller k.

        None if there is no such k.
        """
        shift = other.loc - self.loc
        if epsilon >= shift / self.scale:
            return None
        # at loc + x, 0 <= x <= shift, the log ratio is (shift - 2x)/scale; it is constant outside
        return self.loc + int(-(-(shift - epsilon * self.scale) / 2 // 1)) - 1

    @overload
    def sample(self) -> int: ...
    @overload
    def sample(self, size: int) -> Integers: ...
    def sample(self, size: int | None = None) -> int | Integers:
        """One draw, or an array of `size` independent draws: int64, or Python integers for scales above 4e15."""
        sampler = laplace_digits(self.scale)
        if size is None:
            return self.loc + sampler.one(SYSTEM)
        draws = sampler.array(size_of(size), SYSTEM)
        return add_exactly(draws, np.array([self.loc], dtype=object)) if self.loc else draws


def _lower_tail(scale: Exact, m: int) -> arb:
    """P(X <= -m) for m >= 1."""
    x = ball(1 / scale)
    return (-m * x).exp() / (1 + (-x).exp())


def two_sided_cdf(scale: Exact, k: int) -> arb:
    """P(X <= k) of the discrete Laplace distribution at 0."""
    return _lower_tail(scale, -k) if k < 0 else 1 - _lower_tail(scale, k + 1)


def _digit_lower_tail(scale: Exact, m: int) -> arb:
    """P(D - D' <= -m), 1 <= m, for two geometric digits: q^m (1-q^(n-m)) (1-q^(n+1-m)) / ((1-q^n)^2 (1+q)), n = 256."""
    x = ball(1 / scale)

    def rest(n: int) -> arb:  # 1 - q^n, without loss of precision if q is close to 1
        return -(-n * x).expm1()

    return (-m * x).exp() * rest(BASE - m) * rest(BASE + 1 - m) / (rest(BASE) ** 2 * (1 + (-x).exp()))


def _digit_cdf(scale: Exact, k: int) -> arb:
    if abs(k) >= BASE:
        return arb(k > 0)
    return _digit_lower_tail(scale, -k) if k < 0 else 1 - _digit_lower_tail(scale, k + 1)


def _digit(scale: Exact) -> Inversion:
    """One digit's difference, on -255..255, at scale / 256^j.

    Claim: `_digit_lower_tail` is (c_m + ... + c_(n-1)) (c_0 + ... + c_(n-m)), where c_k = q^k (1-q) / ((1-q^n) r),
    r^2 = 1+q and n = 256. Both sums are at most 1, and only positive terms are added.
    """

    def first() -> arb:
        x = ball(1 / scale)
        return (-x).expm1() / (-BASE * x).expm1() / (1 + (-x).exp()).sqrt()

    def tails(bits: int) -> tuple[Sequence[int], int]:
        terms, error = powers(first, scale, BASE - 1, bits // 2)
        sums = [0, *accumulate(terms)]
        whole, falling = sums[-1], sums[BASE - 1 : 0 : -1]
        numbers = [(whole - first) * second for first, second in zip(falling, sums[2:], strict=True)]
        return numbers, 2 * BASE * error << bits // 2

    # at a large scale, boundaries are within about (256 / scale)^2 of multiples of 2^-17
    bits = 2 * max(120, 24 + 2 * int(scale).bit_length())
    return Inversion(1 - BASE, mirrored(certified_prefixes(tails, bits)), lambda k: _digit_cdf(scale, k))


def _top(scale: Exact) -> Inversion:
    """The part above the digits: again discrete Laplace, with as many boundaries as 64 bits can distinguish."""
    reach = int(REACH * scale) + 1  # the outermost prefixes are 0 and 2^64 - 1

    def tails(bits: int) -> tuple[Sequence[int], int]:  # q^m / (1 + q)
        c, error = powers(lambda: 1 / (1 + exp_minus(1 / scale)), scale, reach, bits)
        return c[:0:-1], error

    return Inversion(-reach, mirrored(certified_prefixes(tails)), lambda k: two_sided_cdf(scale, k))


@lru_cache(maxsize=CACHED)
def laplace_digits(scale: Exact) -> Digits:
    """The sampler for one scale, with its certified tables."""
    levels = []
    while scale > TOP:
        levels.append(_digit(scale))
        scale /= BASE
    return Digits([*levels, _top(scale)])
