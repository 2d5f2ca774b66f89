"""Sums of digits: right for every size of array, and never a number too large for its type."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privet.audit.script import Script
from privet.noise import DiscreteLaplace, Geometric
from privet.noise.digits import BASE, CHUNK, GROUP, SMALL, Digits
from privet.noise.geometric import geometric_digits
from privet.noise.inversion import UNDECIDED
from privet.noise.laplace import laplace_digits

SIZES = (0, 1, 2, SMALL, SMALL + 1, CHUNK, CHUNK + 1, 70_000)
Words = NDArray[np.uint64]
Tails = dict[tuple[int, int], bytes]
"""(level, position) -> the bits that follow a word which 64 bits do not decide."""


def words_of(digits: Digits, count: int) -> list[Words]:
    chance = np.random.default_rng(count + len(digits.levels))
    return [np.frombuffer(chance.bytes(8 * count), dtype=np.uint64).copy() for _ in digits.levels]


def script_of(digits: Digits, words: list[Words], tails: Tails | None = None) -> Script:
    """The bits in the order in which arrays ask for them."""
    count, levels, parts = len(words[0]), list(enumerate(digits.levels)), list[bytes | NDArray[Any]]()

    def tied(j: int, start: int, stop: int) -> list[bytes]:
        mine = sorted((at, more) for (level, at), more in (tails or {}).items() if level == j and start <= at < stop)
        return [more[i : i + 8] for _, more in mine for i in range(0, len(more), 8)]

    if count <= SMALL:
        for j, _ in levels:
            parts += [words[j], *tied(j, 0, count)]
        return Script(*parts)
    for group in range(0, len(levels), GROUP):
        for start in range(0, count, CHUNK):
            for j, level in reversed(levels[group : group + GROUP]):
                part = words[j][start : start + CHUNK]
                leading = (part >> np.uint64(48)).astype(np.uint16)
                undecided = level.cells[leading] == UNDECIDED
                rest = [part[undecided] << np.uint64(16)] if undecided.any() else []
                parts += [leading, *rest, *tied(j, start, start + CHUNK)]
    return Script(*parts)


def sums_of(digits: Digits, words: list[Words]) -> list[int]:
    total = np.zeros(len(words[0]), dtype=object)
    for j, (level, drawn) in enumerate(zip(digits.levels, words, strict=True)):
        total += (level.first + np.searchsorted(level.prefixes, drawn, side="right")).astype(object) * BASE**j
    return total.tolist()


SCALES = ["1/3", "12", "1000", "1e8", "4e15", "5e15", "1e16", "1e40"]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("size", SIZES)
def test_arrays_are_the_sums_of_their_digits(scale: str, size: int) -> None:
    digits = laplace_digits(Fraction(scale))
    words = words_of(digits, size)
    script = script_of(digits, words)
    drawn = digits.array(size, script)
    script.finish()
    assert drawn.shape == (size,)
    assert drawn.tolist() == sums_of(digits, words)
    assert drawn.dtype == (np.int64 if len(digits.levels) <= GROUP else object)
    assert all(type(x) is int for x in drawn.tolist())


@pytest.mark.parametrize("scale", SCALES)
def test_single_draws_are_the_sums_of_their_digits(scale: str) -> None:
    for digits in (laplace_digits(Fraction(scale)), geometric_digits(Fraction(scale))):
        words = words_of(digits, 50)
        drawn = [digits.one(Script(b"".join(w[i].tobytes() for w in words))) for i in range(50)]
        assert drawn == sums_of(digits, words)


def test_how_many_tables_there_are() -> None:
    """One more for each factor of 256, and the top's scale is between 1/16 and 16."""
    for scale, levels in [
        ("16", 1),
        ("16.1", 2),
        ("4096", 2),
        ("4097", 3),
        ("4503599627370496", 7),
        ("4503599627370497", 8),
    ]:
        assert len(laplace_digits(Fraction(scale)).levels) == levels
        assert len(geometric_digits(Fraction(scale)).levels) == levels


@pytest.mark.parametrize(
    "scale", [Fraction(16 * 256**6), Fraction(16 * 256**6 + 1), Fraction(10**16), Fraction(10**40)]
)
@pytest.mark.parametrize("size", [3, SMALL + 5])
def test_the_largest_and_smallest_decided_values_do_not_overflow(scale: Fraction, size: int) -> None:
    digits = laplace_digits(scale)
    words = [np.full(size, 1, dtype=np.uint64) for _ in digits.levels]
    for drawn in words:
        drawn[1::2] = np.uint64((1 << 64) - 2)
    if any(np.isin(words[0], level.prefixes).any() for level in digits.levels):
        words = [w ^ np.uint64(64) for w in words]
    values = digits.array(size, script_of(digits, words)).tolist()
    assert values == sums_of(digits, words)
    assert min(values) < -30 * scale
    assert max(values) > 30 * scale


def far_out(zeros: int) -> bytes:
    """The bits after a first word of zeros: more zeros, and then a half."""
    return bytes(8 * zeros) + (1 << 63).to_bytes(8, "little")


@pytest.mark.parametrize("size", [1, 5, SMALL, SMALL + 1, CHUNK + 3])
def test_a_rare_draw_that_exceeds_64_bits_makes_the_array_unbounded(size: int) -> None:
    """Seven tables give int64; one draw of probability 2^-4000 in the last place does not match."""
    scale = Fraction(4 * 10**15)
    digits = laplace_digits(scale)
    words, top = words_of(digits, size), len(digits.levels) - 1
    plain = digits.array(size, script_of(digits, words))
    assert plain.dtype == np.int64
    words[top][-1] = 0
    tails: Tails = {(top, size - 1): far_out(60)}
    script = script_of(digits, words, tails)
    drawn = digits.array(size, script)
    script.finish()
    assert drawn.dtype == object
    assert all(type(x) is int for x in drawn.tolist())
    assert drawn[:-1].tolist() == plain[:-1].tolist()
    assert drawn[-1] < -(1 << 63)
    assert abs(float(drawn[-1]) / float(-scale * Fraction(61 * 64 * 69315, 100_000)) - 1) < 0.001
    single = Script(
        b"".join(w[-1].tobytes() for w in words), *(tails[top, size - 1][i : i + 8] for i in range(0, 488, 8))
    )
    assert digits.one(single) == drawn[-1]


@pytest.mark.parametrize("size", [5, SMALL + 1, CHUNK + 3])
def test_rare_draws_that_fit_stay_in_64_bits(size: int) -> None:
    """Ties in two digits of one draw, in other draws, and in the last place."""
    digits = laplace_digits(Fraction(5000))
    words = words_of(digits, size)
    wanted = sums_of(digits, words)
    tails: Tails = {}
    places = [(0, 1), (1, 1), (2, 1), (0, 3), (2, size - 1)]
    for j, at in places:
        level = digits.levels[j]
        middle = len(level.prefixes) // 2 + j
        before = level.first + int(level.prefixes.searchsorted(words[j][at], side="right"))
        words[j][at] = level.prefixes[middle]
        tails[j, at] = b"\xff" * 8  # all ones: above the boundary
        wanted[at] += (level.first + middle + 1 - before) * BASE**j
    script = script_of(digits, words, tails)
    drawn = digits.array(size, script)
    script.finish()
    assert drawn.dtype == np.int64
    assert drawn.tolist() == wanted


def test_a_rare_draw_above_the_first_group_keeps_its_weight() -> None:
    scale = Fraction(10**18)
    digits = laplace_digits(scale)
    assert len(digits.levels) == GROUP + 1
    for size in (4, SMALL + 4):
        words = words_of(digits, size)
        wanted = sums_of(digits, words)
        level = digits.levels[GROUP]
        before = level.first + int(level.prefixes.searchsorted(words[GROUP][2], side="right"))
        words[GROUP][2] = level.prefixes[len(level.prefixes) // 2]
        wanted[2] += (level.first + len(level.prefixes) // 2 + 1 - before) * BASE**GROUP
        drawn = digits.array(size, script_of(digits, words, {(GROUP, 2): b"\xff" * 8}))
        assert drawn.tolist() == wanted


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", ["2.5", "1e6", "1e16", "1e18"])
def test_the_public_samplers_give_arrays_of_the_size(scale: str, size: int) -> None:
    for drawn in (DiscreteLaplace(scale).sample(size), Geometric(scale).sample(size)):
        assert drawn.shape == (size,)
        assert drawn.dtype in (np.int64, object)
        assert all(type(x) is int for x in drawn.tolist())
    assert type(DiscreteLaplace(scale).sample()) is int
    assert type(Geometric(scale).sample()) is int
