"""Wide noise from a narrow table: a coarse value by inversion, a uniform fine part, and a thinning that makes it exact.

|X| = 2^b Q + R, with Q >= 0 from a table and R uniform on 0, ..., 2^b - 1. A candidate is dropped with probability
1 - e^-x, where x is known from Q and R. For discrete Gaussian noise fewer than one candidate in a hundred is dropped.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.exact import Exact, ball
from privet.exact.lattice import Integers
from privet.noise.digits import SMALL, with_exceptions
from privet.noise.entropy import Bits
from privet.noise.inversion import Inversion, Rare, UniformReal, Words

CHUNK = 1 << 17
"""Bulk arrays are drawn in chunks of this length, in 5 MB of memory."""

TERMS = 12
"""The number of terms of the series for 1 - e^-x: the next one is below 2^-66 for x <= 0.16."""

MARGIN = 4096
"""In units of 2^-64, a bound on the error of that series at x: 2 q + 16, where q is at most 1,300."""

Bools = NDArray[np.bool_]
Fixed = TypeVar("Fixed", int, Words)

_WORD = (1 << 64) - 1
_HALF = np.uint64((1 << 32) - 1)
_MARGIN = np.uint64(MARGIN)
_BULK_BITS = 31  # fine bits of a bulk draw: with the sign they fill half of a word; the other half decides
_BULK_MARGIN = np.uint64(1 << 16)  # in units of 2^-32, more than the error of x, which is below 2^-15 x + 2
_INT64_BITS = 47  # fine bits for which 2^b Q + R fits 64 bits, Q < 2^15


class Refined:
    """Discrete Gaussian noise with sigma^2 = 4^b / (2 rate), from a table of the noise with sigma^2 = 1 / (2 rate).

    Claim: `one` and `array` return k with probability proportional to e^(-k^2/(2 sigma^2)), exactly. The table gives
    Q = q >= 0 with weight e^(-rate q^2), R is uniform, and the candidate (q, r) is kept with probability e^-x,
    x = rate (2 q + r/2^b) (r/2^b), so it has weight e^(-rate (q + r/2^b)^2). A sign is drawn, and -0 is dropped.
    A candidate is dropped if a uniform real is below 1 - e^-x: its first 64 bits are compared with a fixed-point value
    of known error, and in the rare case that they are too close, with 1 - e^-x itself. The bounds on errors are for
    tables with sigma^2 from 2^12 to 2^14, which is up to the caller.

    `one`, and `array` up to 4,096 draws, do the same work for every candidate, except in that case (probability below
    2^-50). How many candidates are dropped is independent of the values that are returned. Longer arrays compare 32
    bits first, with 1 - x <= e^-x <= 1 - x + x^2/2.

    Reference: Ducas, Durmus, Lepoint, Lyubashevsky (2013), lattice signatures and bimodal Gaussians, for the two parts.
    """

    def __init__(self, coarse: Inversion, shift: int, rate: Exact) -> None:
        self.coarse, self.shift, self.rate = coarse, shift, rate
        self._fixed = int(rate * 2**64)
        self._words = shift // 64 + 1  # of 64 bits, for R and the sign

    def one(self, bits: Bits) -> int:
        """One value."""
        size = 8 * (2 + self._words)
        while True:
            coarse, decider, *fine = struct.unpack(f"<{size // 8}Q", bits.take(size))
            q, (r, negative) = self.coarse.one(coarse, bits), self._fine(fine)
            value = self._value(q, r, negative)
            if q > self.coarse.reach:
                dropped = self._drops(q, r, UniformReal(bits, decider, 64))
            else:
                lost = _lost(self._exponent(q, (r << 64) >> self.shift, _times), _times)
                dropped = decider < lost - MARGIN
                if not dropped and decider < lost + MARGIN:
                    dropped = self._drops(q, r, UniformReal(bits, decider, 64))
            if not dropped | (negative & (value == 0)):  # the same bytecodes for both signs
                return value

    def array(self, count: int, bits: Bits) -> Integers:
        """`count` values."""
        total = np.zeros(count, dtype=np.int64 if self.shift <= _INT64_BITS else object)
        bulk = count > SMALL and self.shift <= _BULK_BITS
        candidates = partial(self._many, scratch=np.empty((5, min(count, CHUNK)), np.uint64)) if bulk else self._few
        exceptions: Rare = []
        pending = []
        for start in range(0, count, CHUNK):
            part = total[start : start + CHUNK]
            part[:], dropped, rare = candidates(len(part), bits)
            exceptions += [(start + at, value) for at, value in rare]
            pending.append(start + np.flatnonzero(dropped))
        places = np.concatenate([np.zeros(0, dtype=np.intp), *pending])
        while len(places):  # a place takes the first of its candidates that is kept
            left, places = places[CHUNK:], places[:CHUNK]
            total[places], dropped, rare = candidates(len(places), bits)
            exceptions += [(int(places[at]), value) for at, value in rare]
            places = np.concatenate([left, places[dropped]])
        return with_exceptions(total, exceptions)

    # --- candidates: their values, whether each is dropped, and rare values, which are 0 in the array ----------

    def _few(self, count: int, bits: Bits) -> tuple[Integers, Bools, Rare]:
        """With 64 bits for each decision, and the same work for each candidate."""
        words = np.empty((2 + self._words, count), dtype=np.uint64)
        for row in words:
            bits.fill(row)
        q, rare = self.coarse.few(words[0], bits)
        decider, fine = words[1], words[2:]
        share = fine[0] & np.uint64(_WORD ^ (_WORD >> min(self.shift, 64)))
        lost = _lost(self._exponent(q.view(np.uint64), share, _times_arrays), _times_arrays)
        dropped = decider < np.maximum(lost, _MARGIN) - _MARGIN
        unsure = np.flatnonzero(~dropped & (decider < lost + _MARGIN))
        values: Integers
        if self.shift <= _INT64_BITS:
            values = (q << self.shift) + (share >> np.uint64(64 - self.shift)).view(np.int64)
            negative = (fine[-1] & np.uint64(1)).view(np.int64)
            dropped |= (values == 0) & (negative == 1)
            values *= 1 - 2 * negative
        else:
            values = np.empty(count, dtype=object)
            for at, (q_at, *column) in enumerate(zip(q.tolist(), *fine.tolist(), strict=True)):
                r, sign = self._fine(column)
                values[at] = self._value(q_at, r, sign)
                dropped[at] |= sign > (values[at] != 0)
        single = {at: int(q[at]) for at in unsure.tolist()} | dict(rare)
        found = [(at, q_at, *self._fine(fine[:, at].tolist()), int(decider[at])) for at, q_at in sorted(single.items())]
        return values, dropped, self._settle(values, dropped, found, 64, bits)

    def _many(self, count: int, bits: Bits, *, scratch: Words) -> tuple[Integers, Bools, Rare]:
        """With 32 bits for each decision: x is known to 2^-16, and x - x^2/2 <= 1 - e^-x <= x.

        The rows of `scratch` are overwritten, because fresh arrays would take half of the time.
        """
        words, share, x, decider, whole = scratch[:, :count]
        leading, coarse = np.empty(count, dtype=np.uint16), np.empty(count, dtype=np.int16)
        bits.fill(leading)
        rare = self.coarse.many(leading, coarse, bits)
        bits.fill(words)
        np.right_shift(words, np.uint64(32), out=share)
        share &= np.uint64((1 << 32) - (1 << 32 - self.shift))
        values = whole.view(np.int64)
        values[:] = coarse
        np.left_shift(whole, np.uint64(33), out=x)
        x += share
        x *= np.uint64(self._fixed >> 34)
        x >>= np.uint64(30)
        x *= share
        x >>= np.uint64(32)
        share >>= np.uint64(32 - self.shift)
        values <<= self.shift
        values += share.view(np.int64)
        np.bitwise_and(words, _HALF, out=decider)
        x += _BULK_MARGIN
        near = np.flatnonzero(decider < x)
        some = x[near] - _BULK_MARGIN
        surely = decider[near] < some - (some * some >> np.uint64(33)) - np.minimum(some, np.uint64(2))
        zero = np.flatnonzero(values == 0)
        words >>= np.uint64(32)
        words &= np.uint64(1)
        negative = words.view(np.int64)
        dropped = np.zeros(count, dtype=np.bool_)
        dropped[zero] = negative[zero]
        dropped[near[surely]] = True
        single = {at: int(coarse[at]) for at in near[~surely].tolist()} | dict(rare)
        found = [(at, q, int(share[at]), int(negative[at]), int(decider[at])) for at, q in sorted(single.items())]
        np.negative(negative, out=share.view(np.int64))
        values ^= share.view(np.int64)
        values += negative
        return values, dropped, self._settle(values, dropped, found, 32, bits)

    def _settle(
        self,
        values: Integers,
        dropped: Bools,
        found: list[tuple[int, int, int, int, int]],
        length: int,
        bits: Bits,
    ) -> Rare:
        """Decide candidates (position, q, r, sign, first bits of the uniform real) by exact comparison."""
        rare: Rare = []
        for at, q, r, negative, known in found:
            value = self._value(q, r, negative)
            values[at], dropped[at] = 0, self._drops(q, r, UniformReal(bits, known, length))
            if negative and not value:
                dropped[at] = True
            if not dropped[at]:
                rare.append((at, value))
        return rare

    def _fine(self, words: Sequence[int]) -> tuple[int, int]:
        """R and the sign: the first bits, and the last one."""
        joined = 0
        for word in words:
            joined = joined << 64 | word
        return joined >> (64 * self._words - self.shift), joined & 1

    def _value(self, q: int, r: int, negative: int) -> int:
        return ((q << self.shift) + r) * (1 - 2 * negative)

    def _drops(self, q: int, r: int, uniform: UniformReal) -> bool:
        """Whether a uniform real is below 1 - e^-x, exactly."""
        part = ((2 * q << self.shift) + r) * r
        x = Fraction(self.rate.numerator * part, self.rate.denominator << 2 * self.shift)
        return x > 0 and uniform.below(lambda: -(-ball(x)).expm1())

    def _exponent(self, q: Fixed, share: Fixed, times: Callable[[Fixed, Fixed], Fixed]) -> Fixed:
        """The exponent x in units of 2^-64, at most 2 q + 4 too small; `share` is r/2^b in the same units."""
        return times(share, 2 * q * self._fixed + times(share, share * 0 + self._fixed))


def _lost(x: Fixed, times: Callable[[Fixed, Fixed], Fixed]) -> Fixed:
    """1 - e^-x = x (1 - x/2 (1 - x/3 (...))), in units of 2^-64, to 4 units for x up to 0.16."""
    lost = x * 0
    for n in range(TERMS, 0, -1):
        part = x // n
        lost = part - times(part, lost)
    return lost


def _times(a: int, b: int) -> int:
    """The product of two fractions in units of 2^-64, rounded down."""
    return a * b >> 64


def _times_arrays(a: Words, b: Words) -> Words:
    """The same for arrays, by halves of 32 bits."""
    by = np.uint64(32)
    a_high, a_low, b_high, b_low = a >> by, a & _HALF, b >> by, b & _HALF
    cross = a_high * b_low + (a_low * b_low >> by)
    other = a_low * b_high + (cross & _HALF)
    product: Words = a_high * b_high + (cross >> by) + (other >> by)
    return product
