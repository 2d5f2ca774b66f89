"""Lazy inversion against brute force: the smallest k with U < F(k), with F computed apart, in decimal arithmetic."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privet.audit.script import Script
from privet.errors import InternalError
from privet.exact import ball, precision
from privet.noise.digits import BASE
from privet.noise.entropy import Bits
from privet.noise.geometric import geometric_digits
from privet.noise.inversion import UNDECIDED, Inversion, UniformReal, certified_prefixes, exp_minus, powers
from privet.noise.laplace import laplace_digits

LARGEST = (1 << 64) - 1
FIRM = 10  # words of 64 bits that are given; more than any comparison here needs


class Tape:
    """Words that were chosen, and after them zeros."""

    def __init__(self, words: list[int]) -> None:
        self.words = list(words)
        self.taken = 0

    def take(self, count: int) -> bytes:
        assert count == 8
        self.taken += 1
        return (self.words.pop(0) if self.words else 0).to_bytes(8, "little")

    def fill(self, array: NDArray[np.uint64]) -> None:
        for i in range(len(array)):
            array[i] = int.from_bytes(self.take(8), "little")


# --- F in decimals: an arithmetic of its own ----------------------------------------------------

Table = tuple[int, list[Decimal]]


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


@cache
def tables(scale: Fraction, two_sided: bool) -> list[Table]:
    """For each level the first value and F(first), F(first + 1), ..., to 250 digits, from sums of weights."""
    levels = []
    with localcontext() as context:
        context.prec = 250
        while scale > 16:
            q = (-1 / _decimal(scale)).exp()
            weights = [q**k for k in range(BASE)]
            if two_sided:
                weights = [_total([weights[a] * weights[a - d] for a in range(max(0, d), min(BASE, BASE + d))])
                           for d in range(1 - BASE, BASE)]  # fmt: skip
            levels.append((1 - BASE if two_sided else 0, _running(weights, _total(weights), Decimal(0))))
            scale /= BASE
        q = (-1 / _decimal(scale)).exp()
        reach = int(500 * scale) + 3  # e^-500 < 2^-700
        weights = [q ** abs(k) for k in range(-reach if two_sided else 0, reach)]
        total = (1 + q) / (1 - q) if two_sided else 1 / (1 - q)
        below = q ** (reach + 1) / (1 + q) if two_sided else Decimal(0)
        levels.append((-reach if two_sided else 0, _running(weights, total, below)))
    return levels


def _total(weights: list[Decimal]) -> Decimal:
    return sum(weights, Decimal(0))


def _running(weights: list[Decimal], total: Decimal, start: Decimal) -> list[Decimal]:
    sums = [start]
    for weight in weights:
        sums.append(sums[-1] + weight / total)
    return sums[1:]


def brute_force(table: Table, words: list[int]) -> int:
    """The smallest k with U < F(k) for the U with these words of bits."""
    first, boundaries = table
    number = 0
    for word in words:
        number = number << 64 | word
    with localcontext() as context:
        context.prec = 250
        low, high = (Decimal(number + i) / Decimal(1 << 64 * len(words)) for i in (0, 1))
        found = bisect.bisect_right(boundaries, low)
        assert found == bisect.bisect_left(boundaries, high), "the words do not decide"
    return first + found


def three_ways(level: Inversion, words: list[int]) -> list[int]:
    """The value of these bits by each way of drawing."""
    word = np.array([words[0]], dtype=np.uint64)
    one = level.one(words[0], Tape(words[1:]))
    values, rare = level.few(word, Tape(words[1:]))
    few = int(values[0]) + sum(value for _, value in rare)
    out = np.empty(1, dtype=np.int16)
    leading = (word >> np.uint64(48)).astype(np.uint16)
    rest = [(words[0] << 16) & LARGEST] if level.cells[leading[0]] == UNDECIDED else []
    rare = level.many(leading, out, Tape(rest + words[1:]))
    return [one, few, int(out[0]) + sum(value for _, value in rare)]


SAMPLERS = [
    *((True, Fraction(s)) for s in ("1/50", "2/7", "1", "5/2", "31/2", "20", "5000")),
    *((False, Fraction(s)) for s in ("1/50", "1", "31/2", "20", "5000")),
]


def levels_and_tables(two_sided: bool, scale: Fraction) -> list[tuple[Inversion, Table]]:
    digits = laplace_digits(scale) if two_sided else geometric_digits(scale)
    return list(zip(digits.levels, tables(scale, two_sided), strict=True))


@pytest.mark.parametrize(("two_sided", "scale"), SAMPLERS)
def test_words_at_and_around_every_prefix(two_sided: bool, scale: Fraction) -> None:
    chance = np.random.default_rng(1)
    for level, table in levels_and_tables(two_sided, scale):
        prefixes = [int(p) for p in level.prefixes]
        for prefix in {0, LARGEST, *prefixes[:: max(1, len(prefixes) // 40)], *prefixes[:3], *prefixes[-3:]}:
            for word in {max(0, prefix - 1), prefix, min(LARGEST, prefix + 1)}:
                for second in (0, 1, LARGEST, int(chance.integers(1 << 63))):
                    words = [word, second, *(int(x) for x in chance.integers(1, 1 << 63, size=FIRM - 2))]
                    assert three_ways(level, words) == [brute_force(table, words)] * 3, (prefix, words[:2])


@pytest.mark.parametrize(("two_sided", "scale"), SAMPLERS)
def test_strings_that_follow_a_boundary_for_hundreds_of_bits(two_sided: bool, scale: Fraction) -> None:
    for level, (first, boundaries) in levels_and_tables(two_sided, scale):
        for i in range(1, len(boundaries) - 1, max(1, len(boundaries) // 12)):
            with localcontext() as context:
                context.prec = 250
                fine = int(boundaries[i] * (1 << 320))
            for string in (fine - 1, fine + 1):
                if not 1 << 40 < string < (1 << 320) - (1 << 40):  # closer together than 320 bits can tell
                    continue
                words = [string >> 64 * j & LARGEST for j in reversed(range(5))]
                wanted = brute_force((first, boundaries), words)
                assert three_ways(level, words) == [wanted] * 3


@settings(max_examples=40)
@given(st.sampled_from(SAMPLERS), st.lists(st.integers(1, LARGEST), min_size=FIRM, max_size=FIRM), st.integers(0, 300))
def test_any_words(sampler: tuple[bool, Fraction], words: list[int], zeros: int) -> None:
    """Any bits, and small or large numbers too: leading zeros, or ones."""
    number = 0
    for word in words:
        number = number << 64 | word
    whole = (1 << 64 * FIRM) - 1
    for string in (number >> zeros, whole - (number >> zeros)):
        given_words = [string >> 64 * j & LARGEST for j in reversed(range(FIRM))]
        for level, table in levels_and_tables(*sampler):
            assert three_ways(level, given_words) == [brute_force(table, given_words)] * 3


@pytest.mark.parametrize(("two_sided", "scale"), SAMPLERS)
def test_arrays_agree_with_single_draws(two_sided: bool, scale: Fraction) -> None:
    words = np.frombuffer(np.random.default_rng(2).bytes(8 * 20_000), dtype=np.uint64)
    for level, _ in levels_and_tables(two_sided, scale):
        single = [level.one(int(word), Script()) for word in words]
        few, rare = level.few(words, Script())
        assert rare == []
        assert few.dtype == np.int64
        assert few.tolist() == single
        leading, out = (words >> np.uint64(48)).astype(np.uint16), np.empty(len(words), dtype=np.int16)
        undecided = level.cells[leading] == UNDECIDED
        assert level.many(leading, out, Script(words[undecided] << np.uint64(16))) == []
        assert out.tolist() == single
        assert np.abs(few).max() <= level.reach


def test_several_ties_in_one_array_keep_their_places() -> None:
    level = laplace_digits(Fraction(1)).levels[0]
    table = tables(Fraction(1), True)[0]
    middle = len(level.prefixes) // 2
    tied = [int(level.prefixes[middle + d]) for d in (-2, 3, 0)]
    words = np.array([5 << 60, tied[0], 1 << 62, tied[1], tied[2], 1 << 63], dtype=np.uint64)
    seconds = [(1 << 61) * 3 + 11, 77, LARGEST - 5]
    few, rare = level.few(words, Tape(seconds))
    assert [at for at, _ in rare] == [1, 3, 4]
    assert few[[1, 3, 4]].tolist() == [0, 0, 0]
    assert [value for _, value in rare] == [
        brute_force(table, [w, s, *[1] * 4]) for w, s in zip(tied, seconds, strict=True)
    ]


def test_tables_have_the_shape_that_searches_rely_on() -> None:
    for two_sided, scale in SAMPLERS:
        for level, _ in levels_and_tables(two_sided, scale):
            assert (len(level.ladder) + 1).bit_count() == 1
            assert np.all(level.ladder[1:] >= level.ladder[:-1])
            assert np.array_equal(level.ladder[: len(level.prefixes)], level.prefixes)
            assert level.cells.shape == (65536,)
            holds = np.unique(level.prefixes >> np.uint64(48)).astype(np.int64)
            assert np.array_equal(np.flatnonzero(level.cells == UNDECIDED), holds)


# --- a uniform real ---------------------------------------------------------------------------


def below_by_fractions(words: list[int], real: Fraction) -> bool:
    number = Fraction(0)
    for i, word in enumerate(words):
        number += Fraction(word, 1 << 64 * (i + 1))
    return number < real


@given(
    st.lists(st.integers(0, LARGEST) | st.sampled_from([0, LARGEST]), min_size=1, max_size=5),
    st.fractions(min_value=0, max_value=1),
)
def test_a_uniform_real_against_rationals(words: list[int], real: Fraction) -> None:
    """The words, then zeros for ever: an exact number, compared with an exact number."""
    uniform = UniformReal(Tape(words))
    exactly = Fraction(sum(word << 64 * (5 - i) for i, word in enumerate(words)), 1 << 64 * 6)
    if exactly == real and real.denominator & (real.denominator - 1) != 0:
        return  # it would follow the boundary for ever
    assert uniform.below(lambda: ball(real)) == below_by_fractions(words, real)


@given(st.lists(st.integers(0, LARGEST), min_size=4, max_size=4), st.fractions(min_value="1/8", max_value=3))
def test_a_uniform_real_against_exponentials(words: list[int], x: Fraction) -> None:
    with localcontext() as context:
        context.prec = 120
        wanted = Decimal(sum(w << 64 * (3 - i) for i, w in enumerate(words))) / Decimal(1 << 256) < (-_decimal(x)).exp()
    assert UniformReal(Tape(words)).below(lambda: exp_minus(x)) == wanted


def test_a_uniform_real_stays_the_same_number() -> None:
    """One number against several boundaries: monotone, and the bits that are known are used again."""
    tape = Tape([1 << 63, 5, 6, 7])
    uniform = UniformReal(tape)
    half = Fraction(1, 2)
    assert not uniform.below(lambda: ball(half))
    taken = tape.taken
    assert not uniform.below(lambda: ball(half - Fraction(1, 1 << 30)))
    assert uniform.below(lambda: ball(half + Fraction(1, 1 << 30)))
    assert tape.taken == taken == 1
    assert uniform.below(lambda: ball(half + Fraction(6, 1 << 128)))
    assert not uniform.below(lambda: ball(half + Fraction(5, 1 << 128)))
    assert tape.taken == 2


@pytest.mark.parametrize(("real", "wanted"), [(0, False), (1, True)])
def test_zero_and_one_need_no_bits(real: int, wanted: bool) -> None:
    tape = Tape([])
    assert UniformReal(tape).below(lambda: arb(real)) is wanted
    assert tape.taken == 0


def test_a_boundary_that_is_never_sharp_is_an_internal_error() -> None:
    class Endless:
        def take(self, count: int) -> bytes:
            return b"\x55" * count

        def fill(self, array: NDArray[np.uint64]) -> None: ...

    uniform = UniformReal(Endless(), 0, (1 << 20) - 640)
    with pytest.raises(InternalError):
        uniform.below(lambda: arb(0, 1))


def test_prefixes_are_floors() -> None:
    def boundaries(bits: int) -> tuple[list[int], int]:
        numbers, error = powers(lambda: arb(1), Fraction(7), 29, bits)
        return numbers[1:], error

    with localcontext() as context:
        context.prec = 120
        wanted = [int((-Decimal(k) / 7).exp() * (1 << 64)) for k in range(1, 30)]
    for bits in (64, 65, 70, 128):  # with few bits no floor is certain, and more are taken
        assert certified_prefixes(boundaries, bits).tolist() == wanted
    with pytest.raises(InternalError):
        certified_prefixes(lambda bits: ([1 << bits - 1], 1), 1 << 18)  # 1/2 is where two cells meet


@pytest.mark.parametrize("scale", ["1/1000000000", "1/50", "1/3", "1", "15", "5000", "1e12", "1e80"])
@pytest.mark.parametrize("bits", [64, 128, 300])
def test_powers_are_below_the_truth_by_no_more_than_their_error(scale: str, bits: int) -> None:
    """The truth is e^(-k/scale) / (1 - e^(-256/scale)), each evaluated alone."""
    s = Fraction(scale)

    def first() -> arb:
        return -1 / ball(-256 / s).expm1()

    numbers, error = powers(first, s, 513, bits)
    with precision(20 * bits + 2000):
        for k, number in enumerate(numbers):
            missing = first() * exp_minus(k / s) * arb(2) ** bits - number
            assert missing >= 0
            assert missing <= error


# --- broken twins of the check itself ----------------------------------------------------------


class _LessOrEqual(Inversion):
    """A tie counts as below."""

    def resolve(self, word: int, bits: Bits) -> int:
        return self.first + int(self.prefixes.searchsorted(np.uint64(word)))


def _off_by_one(level: Inversion) -> Inversion:
    return Inversion(level.first, [int(p) + (5 < i < 9) for i, p in enumerate(level.prefixes)], level.cdf)


def _ties_below(level: Inversion) -> Inversion:
    return _LessOrEqual(level.first, [int(p) for p in level.prefixes], level.cdf)


@pytest.mark.parametrize("broken", [_off_by_one, _ties_below])
def test_brute_force_catches_a_broken_inversion(broken: Callable[[Inversion], Inversion]) -> None:
    (level, table), twin = levels_and_tables(False, Fraction(1))[0], broken(levels_and_tables(False, Fraction(1))[0][0])
    words = [[int(p), second, *[7] * 8] for p in level.prefixes[:12] for second in (0, LARGEST)]
    assert all(three_ways(level, w) == [brute_force(table, w)] * 3 for w in words)
    assert not all(three_ways(twin, w) == [brute_force(table, w)] * 3 for w in words)
