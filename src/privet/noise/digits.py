"""Integers drawn digit by digit, in base 256."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np

from privet.errors import NumberError, write
from privet.exact import Exact, Number, positive, whole
from privet.exact.lattice import Integers
from privet.noise.entropy import Bits
from privet.noise.inversion import Inversion, Rare

BASE = 256
SMALL = 4096
"""Up to this many draws, the work does not depend on the values; larger arrays are drawn in bulk."""

CHUNK = 1 << 17
"""Bulk arrays are drawn in chunks of this length: long enough to amortise calls, short enough for the cache."""

GROUP = 7
"""The number of levels whose sum fits 64 bits: 7 digits, or 256^6 times the reach of the open top level."""

TOP = 16
"""The largest scale of the top level, so that it has few boundaries to certify and few undecided cells."""

REACH = 45
"""The extent of the top level's table, in scales: e^-45 < 2^-64."""

LARGEST = 1 << 2048
"""The largest supported scale: 256 tables, which take about 40 MB."""

CACHED = 16
"""The number of scales whose tables are cached."""


class Digits:
    """The sum over j of 256^j X_j, with independent X_j, each with its own distribution.

    Claim: every value returned is that sum, exactly, with no overflow. `levels` are the X_j, from j = 0 on.
    """

    def __init__(self, levels: Iterable[Inversion]) -> None:
        self.levels = tuple(levels)
        self._words = struct.Struct(f"<{len(self.levels)}Q")

    def one(self, bits: Bits) -> int:
        """One value."""
        total = 0
        words = self._words.unpack(bits.take(self._words.size))
        for level, word in zip(reversed(self.levels), reversed(words), strict=True):
            total = total * BASE + level.one(word, bits)
        return total

    def array(self, count: int, bits: Bits) -> Integers:
        """`count` values."""
        draw = _few if count <= SMALL else _many
        total, exceptions = draw(self.levels[:GROUP], count, bits)
        for start in range(GROUP, len(self.levels), GROUP):
            part, rare = draw(self.levels[start : start + GROUP], count, bits)
            total = total.astype(object) + part.astype(object) * BASE**start
            exceptions += [(at, value * BASE**start) for at, value in rare]
        return with_exceptions(total, exceptions)


def _few(levels: tuple[Inversion, ...], count: int, bits: Bits) -> tuple[Integers, Rare]:
    total = np.zeros(count, dtype=np.int64)
    exceptions: Rare = []
    words = np.empty(count, dtype=np.uint64)
    for j, level in enumerate(levels):
        bits.fill(words)
        values, rare = level.few(words, bits)
        total += values << 8 * j
        exceptions += [(at, value * BASE**j) for at, value in rare]
    return total, exceptions


def _many(levels: tuple[Inversion, ...], count: int, bits: Bits) -> tuple[Integers, Rare]:
    total = np.empty(count, dtype=np.int64)
    exceptions: Rare = []
    words = np.empty(min(count, CHUNK), dtype=np.uint16)
    values = np.empty(min(count, CHUNK), dtype=np.int16)
    for start in range(0, count, CHUNK):
        part = total[start : start + CHUNK]
        leading, drawn = words[: len(part)], values[: len(part)]
        for j in reversed(range(len(levels))):
            bits.fill(leading)
            rare = levels[j].many(leading, drawn, bits)
            if j == len(levels) - 1:
                part[:] = drawn
            else:
                np.left_shift(part, 8, out=part)
                part += drawn
            exceptions += [(start + at, value * BASE**j) for at, value in rare]
    return total, exceptions


def with_exceptions(total: Integers, exceptions: Rare) -> Integers:
    """The array with rare values added at their positions, as Python integers if one does not fit 64 bits."""
    for at, value in exceptions:
        value += int(total[at])
        if total.dtype != object and not -(1 << 63) <= value < 1 << 63:
            total = total.astype(object)
        total[at] = value
    return total


def drawable(scale: Number, name: str) -> Exact:
    """A scale that the samplers support.

    Example:
        >>> drawable("2.5", "Geometric")
        Fraction(5, 2)
    """
    number = positive(scale, name="scale", example=f"{name}(scale=2)")
    if number > LARGEST:
        raise NumberError("scale must be at most 2^2048, about 1e616", remedy=write(f"{name}(scale=2)"))
    return number


def size_of(size: object) -> int:
    """A number of draws."""
    return whole(size, name="size", least=0, example="sample(1000)")
