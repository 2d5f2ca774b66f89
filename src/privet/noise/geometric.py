"""The geometric distribution on 0, 1, 2, ... and its exact sampler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import overload

from flint import arb

from privet.exact import Enclosure, Exact, Number, ball, enclose, exact, floor, probability
from privet.exact.lattice import Integers
from privet.noise.digits import BASE, CACHED, REACH, TOP, Digits, drawable, size_of
from privet.noise.entropy import SYSTEM
from privet.noise.inversion import Inversion, certified_prefixes, exp_minus, powers


@dataclass(frozen=True, slots=True)
class Geometric:
    """The geometric distribution with ratio e^(-1/scale).

    Claim: P(G = k) = (1 - q) q^k for k = 0, 1, ..., with q = e^(-1/scale), drawn exactly.
    Its base-256 digits are independent: digit j is k with weight q^(k 256^j), and the part above all
    digits is again geometric, with scale / 256^J.

    Example:
        >>> G = Geometric(2)
        >>> float(G.pmf(0)), G.quantile(0.5), G.sample() >= 0
        (0.3934693402873666, 1, True)
    """

    scale: Exact

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", drawable(scale, "Geometric"))

    def pmf(self, k: int) -> Enclosure:
        """P(G = k)."""
        at = exact(k, name="k", example="pmf(3)")
        if at < 0 or at.denominator != 1:
            return Enclosure(Fraction(0), Fraction(0))
        return enclose(lambda: -(-1 / ball(self.scale)).expm1() * exp_minus(at / self.scale))

    def cdf(self, k: int) -> Enclosure:
        """P(G <= k)."""
        at = math.floor(exact(k, name="k", example="cdf(3)"))
        if at < 0:
            return Enclosure(Fraction(0), Fraction(0))
        return enclose(lambda: geometric_cdf(self.scale, at))

    def tail(self, t: Number) -> Enclosure:
        """P(G >= t) = e^(-ceil(t)/scale)."""
        steps = max(0, -(-exact(t, name="t") // 1))
        return enclose(lambda: exp_minus(steps / self.scale))

    def quantile(self, p: Number) -> int:
        """The smallest k with P(G <= k) >= p."""
        level = probability(p, name="p", example="quantile(0.975)")
        return floor(lambda: ball(self.scale) * -ball(1 - level).log())

    @overload
    def sample(self) -> int: ...
    @overload
    def sample(self, size: int) -> Integers: ...
    def sample(self, size: int | None = None) -> int | Integers:
        """One draw, or an array of `size` independent draws."""
        sampler = geometric_digits(self.scale)
        return sampler.one(SYSTEM) if size is None else sampler.array(size_of(size), SYSTEM)


def geometric_cdf(scale: Exact, k: int) -> arb:
    """P(G <= k) = 1 - e^(-(k + 1)/scale)."""
    return -ball(Fraction(-(k + 1)) / scale).expm1() if k >= 0 else arb(0)


def _digit_cdf(scale: Exact, k: int) -> arb:
    if not 0 <= k < BASE - 1:
        return arb(k >= 0)
    return geometric_cdf(scale, k) / geometric_cdf(scale, BASE - 1)


def _level(scale: Exact, reach: int, whole: int | None) -> Inversion:
    """The boundaries F(0), ..., F(reach - 1) of a digit (whole = 256 values) or of the open top (whole = None)."""

    def first() -> arb:
        x = ball(1 / scale)
        return (-x).exp() if whole is None else (-x).expm1() / (-whole * x).expm1()

    def beyond(bits: int) -> tuple[Sequence[int], int]:
        """1 - F(k): q^(k+1), or (q^(k+1) + ... + q^(n-1)) / (1 + ... + q^(n-1)), where n is the whole."""
        terms, error = powers(first, scale, reach if whole is None else whole - 1, bits)
        if whole is None:
            return terms[:reach], error
        sums = list(accumulate(terms))
        return [sums[-1] - below for below in sums[:reach]], whole * error

    cdf = geometric_cdf if whole is None else _digit_cdf
    prefixes = certified_prefixes(beyond, 128 + int(scale).bit_length())
    return Inversion(0, ~prefixes, lambda k: cdf(scale, k))


@lru_cache(maxsize=CACHED)
def geometric_digits(scale: Exact) -> Digits:
    """The sampler for one scale, with its certified tables."""
    levels = []
    while scale > TOP:
        levels.append(_level(scale, BASE - 1, BASE))
        scale /= BASE
    # the last prefix is 2^64 - 1, which 64 bits never decide
    return Digits([*levels, _level(scale, int(REACH * scale) + 1, None)])
