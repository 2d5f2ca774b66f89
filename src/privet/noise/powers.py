"""Powers e^(-rate d) for whole arrays of integers d, as certified integers in units of 2^-64."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.exact import Exact, ball
from privet.exact.lattice import Integers
from privet.noise.inversion import certified_prefixes, exp_minus

Words = NDArray[np.uint64]

DIGIT = 12
"""The bits of one digit of d: a table has 4,096 powers."""

_MASK = (1 << DIGIT) - 1
_LARGEST = (1 << 64) - 1
_LOW, _HALF = np.uint64((1 << 32) - 1), np.uint64(32)
_LN2_64 = Exact(4437, 100)
"""More than 64 ln 2."""


class Powers:
    """Certified lower bounds of e^(-rate d), for integers d >= 0.

    Claim: with w = lower(d), w <= 2^64 e^(-rate d) <= w + slack. No float takes part. The work depends on how many
    numbers there are and on `rate`, not on the numbers (if they fit 64 bits).
    Why: a table entry is a floor (or 2^64 - 1 for the power 1), so it is at most 1 too small. A product of two bounds
    that are a and b too small is at most a + b too small before it is rounded, which takes off less than 3.

    Example:
        >>> powers = Powers(Exact(1, 3))
        >>> (powers.lower(np.array([0, 1, 5000])) / 2.0**64).round(6).tolist()
        [1.0, 0.716531, 0.0]
    """

    def __init__(self, rate: Exact) -> None:
        self.rate = rate
        self.reach = int(_LN2_64 / rate) + 1
        """Powers beyond this d are below 2^-64."""
        count = max(1, -(-self.reach.bit_length() // DIGIT))
        self.tables = [_table(rate * (1 << DIGIT * j)) for j in range(count)]
        self.slack = 4 * count - 3

    def lower(self, distances: Integers) -> Words:
        """The bounds for an array of integers, 0 or greater."""
        near = np.minimum(distances, self.reach)  # its bound is 0, since a bound is a whole number
        words: Words = self.tables[0][(near & _MASK).astype(np.intp)]
        for table in self.tables[1:]:
            near >>= DIGIT
            words = _product(words, table[(near & _MASK).astype(np.intp)])
        return words

    def exactly(self, distance: int) -> arb:
        """The power itself, at the precision of the block."""
        return exp_minus(self.rate * int(distance)) if distance else ball(1)


@lru_cache(maxsize=32)
def powers(rate: Exact) -> Powers:
    """The powers for one rate, with their tables."""
    return Powers(rate)


def _table(rate: Exact) -> Words:
    def entries() -> Iterator[arb]:
        ratio, power = exp_minus(rate), arb(1)
        for _ in range(_MASK):
            power *= ratio
            yield power

    table = np.array([_LARGEST, *certified_prefixes(entries, 160)], dtype=np.uint64)
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
