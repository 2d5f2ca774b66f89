"""Powers e^(-rate d) for whole arrays of integers d, as certified integers in units of 2^-64 or 2^-128."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.exact import Exact, ball, precision
from privet.exact.lattice import Integers
from privet.noise.inversion import enclosed_prefixes, exp_minus

Words = NDArray[np.uint64]

DIGIT = 12
"""The bits of one digit of d: a table has 4,096 powers."""

_MASK = (1 << DIGIT) - 1
_LARGEST = (1 << 64) - 1
_LOW, _HALF = np.uint64((1 << 32) - 1), np.uint64(32)
_LN2_64 = Exact(4437, 100)
"""More than 64 ln 2."""

FINE = 128
"""The bits of the finer bounds."""


class Powers:
    """Certified lower bounds of e^(-rate d), for integers d >= 0.

    Claim: with w, slack = bounds(d), w <= 2^64 e^(-rate d) <= w + slack. No float is used. The work depends on how
    many numbers there are, on `rate`, and on whether all fit 64 bits; not on the numbers.
    Why: a table entry is a floor (or 2^64 - 1 for the power 1), so it is at most 1 too small. A product of two bounds
    that are a and b too small is at most a + b too small before it is rounded, which takes off less than 3.

    Example:
        >>> lower, slack = Powers(Exact(1, 3)).bounds(np.array([0, 1, 5000]))
        >>> (lower / 2.0**64).round(6).tolist(), slack
        ([1.0, 0.716531, 0.0], 1)
    """

    def __init__(self, rate: Exact) -> None:
        self.rate = rate
        self.reach = int(_LN2_64 / rate) + 1
        """Powers from here on are below 2^-64."""

    def bounds(self, distances: Integers) -> tuple[Words, int]:
        """Lower bounds for an array of integers, 0 or greater, and how much too small they are at most."""
        farthest = self.reach if distances.dtype == object else min(self.reach, (1 << 63) - 1)
        count = max(1, -(-farthest.bit_length() // DIGIT))
        near = np.minimum(distances, farthest)  # its bound is 0, since a bound is a whole number
        words: Words = _table(self.rate)[(near & _MASK).astype(np.intp)]
        for j in range(1, count):
            near >>= DIGIT
            words = _product(words, _table(self.rate * (1 << DIGIT * j))[(near & _MASK).astype(np.intp)])
        return words, 4 * count - 3

    def fine_bounds(self, distances: Integers) -> tuple[NDArray[np.object_], int]:
        """The same in units of 2^-128, as Python integers: about thirty times slower."""
        farthest = 2 * self.reach
        count = max(1, -(-farthest.bit_length() // DIGIT))
        near = np.minimum(distances.astype(object), farthest)
        words = _fine_table(self.rate)[(near & _MASK).astype(np.intp)]
        for j in range(1, count):
            near = near >> DIGIT
            words = words * _fine_table(self.rate * (1 << DIGIT * j))[(near & _MASK).astype(np.intp)] >> FINE
        return words, 3 * count - 1

    def exactly(self, distance: int) -> arb:
        """The power itself, at the precision of the block."""
        return exp_minus(self.rate * int(distance)) if distance else ball(1)


@lru_cache(maxsize=256)
def _table(rate: Exact) -> Words:
    near = min(_MASK, int(_LN2_64 / rate))  # the powers beyond are below 2^-64

    def entries() -> Iterator[arb]:
        ratio, power = exp_minus(rate), arb(1)
        for _ in range(near):
            power *= ratio
            yield power

    table = np.zeros(1 << DIGIT, dtype=np.uint64)
    table[: near + 1] = [_LARGEST, *enclosed_prefixes(entries, 160)]
    table.setflags(write=False)
    return table


@lru_cache(maxsize=64)
def _fine_table(rate: Exact) -> NDArray[np.object_]:
    """Bounds that are at most 2 too small; the powers beyond are below 2^-128."""
    near = min(_MASK, int(2 * _LN2_64 / rate))
    table = np.zeros(1 << DIGIT, dtype=object)
    with precision(FINE + 96):
        ratio, power = exp_minus(rate), arb(1)
        for k in range(near + 1):
            table[k] = int((power * arb(2) ** FINE).lower().floor().fmpz())
            power *= ratio
    table.setflags(write=False)
    return table


def _product(a: Words, b: Words) -> Words:
    """At most a b / 2^64, and less than 3 below it: the product of the lower halves is left out."""
    a_high, b_high = a >> _HALF, b >> _HALF
    product: Words = a_high * b_high
    a_high *= b & _LOW
    a_high >>= _HALF
    product += a_high
    b_high *= a & _LOW
    b_high >>= _HALF
    product += b_high
    return product
