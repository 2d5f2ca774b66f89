"""Lazy inversion: draw an integer with as many random bits as it needs.

A uniform real U is drawn bit by bit, and the value is the smallest k with U < F(k), where F is the exact CDF. The
boundaries F(k) are given by certified 64-bit prefixes, and by Arb balls beyond those, so U is always compared with the
exact boundary.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.errors import InternalError
from privet.exact import Exact, ball, precision
from privet.noise.entropy import Bits

UNDECIDED = -(1 << 15)
"""The value of a cell that contains a boundary."""

Words = NDArray[np.uint64]
Rare = list[tuple[int, int]]
"""(position, value) of the draws that 64 bits did not decide."""

_LARGEST = (1 << 64) - 1
_LEADING = np.dtype([("below", "<u4"), ("prefix", "<u8")])

Table = TypeVar("Table", bound=NDArray[Any])


class UniformReal:
    """A uniform real in [0, 1), of which only the needed bits are drawn.

    Claim: `below(x)` is the comparison of one fixed uniform real with the exact real x.
    """

    __slots__ = ("bits", "known", "length")

    def __init__(self, bits: Bits, known: int = 0, length: int = 0) -> None:
        self.bits, self.known, self.length = bits, known, length

    def below(self, real: Callable[[], arb]) -> bool:
        """Whether the uniform real is less than `real`, an Arb expression evaluated with increasing precision."""
        while self.length < 1 << 20:
            with precision(self.length + 64):
                boundary = real()
                unit = arb(2) ** -self.length
                if (self.known + 1) * unit <= boundary:
                    return True
                if self.known * unit >= boundary:
                    return False
            self.known = self.known << 64 | int.from_bytes(self.bits.take(8), "little")
            self.length += 64
        raise InternalError("a uniform real could not be compared with a boundary. This is probably a bug in Privet")


class Inversion:
    """A variable on the integers, drawn by inverting its CDF.

    Claim: `one`, `few` and `many` return k with probability exactly F(k) - F(k - 1), where `cdf` is F.
    Why: with p = floor(2^64 F(k)) and u the first 64 bits of U, u < p gives U < F(k), u > p gives
    U > F(k), and for u = p more bits of U are compared with F(k) itself.
    `one` and `few` do the same comparisons for every value (except if u = p, with probability 2^-64 per
    boundary); `many` uses 16 bits first, and the other 48 only in cells that contain a boundary.

    `prefixes` are floor(2^64 F(k)) for k = first, first + 1, ...; beyond them F must be below 2^-64
    or above 1 - 2^-64, or the support must end.
    """

    def __init__(self, first: int, prefixes: Words | Sequence[int], cdf: Callable[[int], arb]) -> None:
        self.first = first
        self.cdf = cdf
        self.prefixes: Words = _frozen(np.array(prefixes, dtype=np.uint64))

    @property
    def reach(self) -> int:
        """The largest absolute value that 64 bits decide."""
        return max(abs(self.first), abs(self.first + len(self.prefixes)))

    @cached_property
    def ladder(self) -> Words:
        """The prefixes, padded to 2^h - 1, so that each search takes exactly h comparisons."""
        full = (1 << len(self.prefixes).bit_length()) - 1
        filling = np.full(full - len(self.prefixes), _LARGEST, dtype=np.uint64)
        return _frozen(np.concatenate([self.prefixes, filling]))

    @cached_property
    def _rungs(self) -> tuple[int, ...]:
        return tuple(self.ladder.tolist())

    @cached_property
    def cells(self) -> NDArray[np.int16]:
        """For each 16-bit prefix, the value that it decides, or `UNDECIDED`."""
        inside = np.bincount((self.prefixes >> np.uint64(48)).astype(np.intp), minlength=1 << 16)
        values = (self.first + np.cumsum(inside)).astype(np.int16)
        values[inside > 0] = UNDECIDED
        return _frozen(values)

    def one(self, word: int, bits: Bits) -> int:
        """The value whose first 64 uniform bits are `word`."""
        above = bisect_right(self._rungs, word)
        if (
            self._rungs[above - 1] == word
        ):  # for above = 0 this is the last rung, which is larger, so no branch is needed
            return self.resolve(word, bits)
        return self.first + above

    def few(self, words: Words, bits: Bits) -> tuple[NDArray[np.int64], Rare]:
        """The same for an array of words; rare values are returned separately, and are 0 in the array."""
        ladder = self.ladder
        above = np.zeros(len(words), dtype=np.int64)
        step = (len(ladder) + 1) >> 1
        while step:
            above += step * (ladder[above + (step - 1)] <= words)
            step >>= 1
        ties = np.flatnonzero(ladder[above - 1] == words)
        values = above + self.first
        return values, self._settle(values, ties, words[ties], bits)

    def many(self, leading: NDArray[np.uint16], out: NDArray[np.int16], bits: Bits) -> Rare:
        """The same in bulk, from the 16 leading bits of each value, into `out`."""
        self.cells.take(leading, out=out, mode="wrap")  # no index is out of range, and "raise" would copy
        open_cells = np.flatnonzero(out == UNDECIDED)
        if not len(open_cells):
            return []
        words = np.empty(len(open_cells), dtype=np.uint64)
        bits.fill(words)
        words >>= np.uint64(16)
        words |= leading[open_cells].astype(np.uint64) << np.uint64(48)
        above = self.prefixes.searchsorted(words, side="right")
        out[open_cells] = self.first + above
        tied = self.prefixes.take(above - 1, mode="wrap") == words
        return self._settle(out, open_cells[tied], words[tied], bits) if tied.any() else []

    def resolve(self, word: int, bits: Bits) -> int:
        """The value if the first 64 bits do not decide it, by comparison with the exact boundaries."""
        uniform = UniformReal(bits, word, 64)

        def below(k: int) -> bool:
            return uniform.below(lambda: self.cdf(k))

        low = self.first + int(self.prefixes.searchsorted(np.uint64(word))) - 1
        high, step = low + 1, 1
        while below(low):  # galloping search in the open tails
            high, low, step = low, low - step, 2 * step
        step = 1
        while not below(high):
            low, high, step = high, high + step, 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if below(middle) else (middle, high)
        return high

    def _settle(
        self, values: NDArray[np.int64] | NDArray[np.int16], positions: NDArray[np.intp], words: Words, bits: Bits
    ) -> Rare:
        values[positions] = 0
        return [(int(at), self.resolve(int(word), bits)) for at, word in zip(positions, words, strict=True)]


def _frozen(table: Table) -> Table:
    """A read-only table, because all samplers of a scale share it."""
    table.setflags(write=False)
    return table


def certified_prefixes(boundaries: Callable[[int], tuple[Sequence[int], int]], bits: int = 128) -> Words:
    """floor(2^64 x) of each boundary 0 < x < 1, computed with at least `bits` bits, until every floor is certain.

    `boundaries(bits)` are integers n >= 0 and an error, with |2^bits x - n| <= error.

    Claim: each number returned is the floor. The first 64 bits of n are the floor if the error is less than one unit of
    the next 32 bits, and these are neither all 0 nor all 1. Only where they are, all bits have to be compared.
    """
    while bits < 1 << 20:
        bits = max(bits, 128)
        numbers, error = boundaries(bits)
        rest = bits - 96
        leading = b"".join([(number >> rest).to_bytes(12, "little") for number in numbers])
        parts = np.frombuffer(leading, dtype=_LEADING)
        close = (parts["below"] == 0) | (parts["below"] == _LARGEST >> 32) | (error >= 1 << rest)
        unsure = [numbers[i] for i in np.flatnonzero(close).tolist()]
        if all(max(0, number - error) >> bits - 64 == (number + error) >> bits - 64 for number in unsure):
            certain: Words = parts["prefix"].astype(np.uint64)
            return certain
        bits *= 2
    raise InternalError("a boundary could not be certified. This is probably a bug in Privet")


def powers(first: Callable[[], arb], scale: Exact, count: int, bits: int) -> tuple[list[int], int]:
    """`first` q^k for k = 0, ..., count, with q = e^(-1/scale), as integers over 2^bits, and a bound on their error.

    Claim: each integer n has 0 <= 2^bits first q^k - n <= error, for `first` > 0. Why: n_0 and the factor are at most 2
    too small, n_(k+1) is the floor of n_k factor / 2^w, n_k < 2^w, and q < 1. So every step adds 3 at most to the
    error: 1 for the floor, and 2 for the factor.
    """
    start = _at_most_2_below(first, bits)
    width = start.bit_length()
    factor = _at_most_2_below(lambda: exp_minus(1 / scale), width)
    number, numbers = start, [start]
    for _ in range(count):
        number = number * factor >> width
        numbers.append(number)
    return numbers, 3 * count + 2


def _at_most_2_below(real: Callable[[], arb], bits: int) -> int:
    """An integer n with n <= 2^bits x <= n + 2, for an Arb expression x >= 0."""
    precise = bits + 64
    while precise < 1 << 22:
        with precision(precise):
            scaled = real() * arb(2) ** bits
            below = scaled.lower().floor()
            if scaled <= below + 2:
                return max(0, int(below.fmpz()))
        precise *= 2
    raise InternalError("an Arb expression stayed uncertain. This is probably a bug in Privet")


def enclosed_prefixes(boundaries: Callable[[], Iterable[arb]], bits: int) -> list[int]:
    """The same for boundaries that are enclosed by Arb, evaluated with at least `bits` bits."""
    while bits < 1 << 20:
        with precision(bits):
            scale = arb(2) ** 64
            floors = [(x * scale).floor() for x in boundaries()]
            if all(floor.is_exact() for floor in floors):
                return [int(floor.fmpz()) for floor in floors]
        bits *= 2
    raise InternalError("a boundary could not be certified. This is probably a bug in Privet")


def mirrored(lower: Words | Sequence[int]) -> Words:
    """Prefixes of F(-m), ..., F(-1) and of their mirror images F(0), ..., F(m - 1) = 1 - F(-m)."""
    words = np.array(lower, dtype=np.uint64)
    return np.concatenate([words, ~words[::-1]])


def exp_minus(exponent: Fraction) -> arb:
    """e^-exponent at the precision of the block."""
    return ball(-exponent).exp()
