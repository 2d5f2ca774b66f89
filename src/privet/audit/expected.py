"""The expected tables of a sampler, from the definition of the distribution: sums of exponentials and, for the
difference of two digits, the product of two polynomials. They do not use the formulas that built the tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, arb_poly
from numpy.typing import NDArray

from privet.errors import InternalError
from privet.exact import Exact, ball, ends
from privet.noise import DiscreteLaplace, Geometric
from privet.noise.digits import BASE

Words = NDArray[np.uint64]

PROBE_BITS = 128
"""Boundaries are probed on both sides to 2^-128, so each value's measure is known to 2^-126, below 2e-38."""


class Expected:
    """The distribution of one level, by definition: F(first), F(first + 1), ... as Arb balls."""

    def __init__(self, first: int, masses: Sequence[arb], below: arb) -> None:
        self.first = first
        self.masses = masses
        self.fine: list[int] = []
        total = below
        for mass in masses:
            total = total + mass
            self.fine.append(_leading_bits(total))
        self.prefixes: Words = np.array([b >> PROBE_BITS - 64 for b in self.fine], dtype=np.uint64)

    def values(self, words: Words) -> NDArray[np.int64]:
        """The values that 64-bit words decide."""
        return self.first + np.searchsorted(self.prefixes, words, side="right")


def _leading_bits(boundary: arb) -> int:
    """floor(2^128 F); a boundary that can't be distinguished from 1 gets the last bit string."""
    bits = (boundary * arb(2) ** PROBE_BITS).floor()
    if bits.is_exact():
        return min(int(bits.fmpz()), (1 << PROBE_BITS) - 1)
    if not bits.upper() >= arb(2) ** PROBE_BITS:
        raise InternalError("an expected boundary is not precise enough. This is probably a bug in Privet")
    return (1 << PROBE_BITS) - 1


@lru_cache(maxsize=4)
def expected_levels(scale: Exact, count: int, two_sided: bool) -> tuple[Expected, ...]:
    """The distributions that `count` levels of a sampler must have, lowest digit first."""
    levels = []
    for _ in range(count - 1):
        weights = [ball(-k / scale).exp() for k in range(BASE)]
        if two_sided:
            product = arb_poly(weights) * arb_poly(weights[::-1])
            weights = [product[i] for i in range(2 * BASE - 1)]
        total = sum(weights, arb(0))
        levels.append(Expected(1 - BASE if two_sided else 0, [w / total for w in weights], arb(0)))
        scale /= BASE
    reach = int(140 * scale) + 2  # e^-140 < 2^-200: the mass beyond is below the probed precision
    weights = [ball(-abs(k) / scale).exp() for k in range(-reach if two_sided else 0, reach + 1)]
    beyond = ball(Fraction(-reach - 1) / scale).exp() / (1 - ball(-1 / scale).exp())
    total = sum(weights, arb(0)) + (2 * beyond if two_sided else beyond)
    masses = [w / total for w in weights]
    levels.append(Expected(-reach if two_sided else 0, masses, beyond / total if two_sided else arb(0)))
    return tuple(levels)


def gaussian_level(sigma_squared: Exact, two_sided: bool) -> Expected:
    """The discrete Gaussian distribution on all integers, or on 0, 1, ..., from plain sums of its weights."""
    reach = math.isqrt(int(280 * sigma_squared)) + 2  # e^-140 < 2^-200: the mass beyond is below the probed precision
    weights = [ball(-k * k / (2 * sigma_squared)).exp() for k in range(reach + 1)]
    beyond = _rest(sigma_squared, reach + 1)
    if two_sided:
        weights = weights[:0:-1] + weights
    total = sum(weights, arb(0)) + (2 * beyond if two_sided else beyond)
    return Expected(-reach if two_sided else 0, [w / total for w in weights], beyond / total if two_sided else arb(0))


def gaussian_away(sigma_squared: Exact, two_sided: bool) -> Callable[[Exact], int]:
    """The last m for which P(X >= m) exceeds a mass, down to 2^-1600, from the same sums."""
    reach = math.isqrt(int(2300 * sigma_squared)) + 2  # e^-1150 < 2^-1650
    weights = [ball(-k * k / (2 * sigma_squared)).exp() for k in range(reach + 1)]
    tails = [_rest(sigma_squared, reach + 1)]
    for w in reversed(weights):
        tails.append(tails[-1] + w)
    total = 2 * tails[-1] - 1 if two_sided else tails[-1]

    def away(mass: Exact) -> int:
        least = ball(mass) * total
        return next(m for m in range(reach, -1, -1) if tails[reach + 1 - m] > least)

    return away


def _rest(sigma_squared: Exact, first: int) -> arb:
    """The sum of the weights from `first` on: between 0 and a geometric series."""
    ratio = ball(-(2 * first + 1) / (2 * sigma_squared)).exp()
    return arb(0).union(ball(-first * first / (2 * sigma_squared)).exp() / (1 - ratio))


def differences(distribution: DiscreteLaplace | Geometric, expected: tuple[Expected, ...]) -> Iterator[str]:
    """Compare the combined distribution of all digits with the closed-form pmf, near zero, at carries and far out."""
    scale = distribution.scale
    two_sided = isinstance(distribution, DiscreteLaplace)
    far = [int(scale * t) for t in (Fraction(1, 3), 1, 3, 10, 40)]
    points = {*range(300), *(BASE**j + d for j in range(len(expected)) for d in (-1, 0, 1)), *far}
    q = ball(-1 / scale).exp()
    centre = (1 - q) / (1 + q) if two_sided else 1 - q
    memo: dict[tuple[int, int], arb] = {}
    points = {x for x in points if x <= max(1, 100 * scale)}
    for x in sorted(points | {-p for p in points} if two_sided else points):
        closed = centre * ball(-abs(x) / scale).exp()
        apart = ends(_mass(expected, 0, x, memo) / closed - 1)
        if not -Fraction(1, 10**30) < apart.lower <= apart.upper < Fraction(1, 10**30):
            yield f"the combined digits give P({x}) with a relative error of {float(apart):.3g}"
            return


def _mass(expected: tuple[Expected, ...], j: int, x: int, memo: dict[tuple[int, int], arb]) -> arb:
    """P(sum over i >= j of 256^(i-j) X_i = x)."""
    if (j, x) not in memo:
        truth = expected[j]
        if j == len(expected) - 1:
            inside = 0 <= x - truth.first < len(truth.masses)
            memo[j, x] = truth.masses[x - truth.first] if inside else arb(0)
        else:
            digit = x % BASE
            choices = [d for d in (digit, digit - BASE) if 0 <= d - truth.first < len(truth.masses)]
            parts = (truth.masses[d - truth.first] * _mass(expected, j + 1, (x - d) // BASE, memo) for d in choices)
            memo[j, x] = sum(parts, arb(0))
    return memo[j, x]
