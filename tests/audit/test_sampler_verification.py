"""The exact verification accepts the running samplers, and rejects every broken one that we could think of."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray
from tests.effort import some

from privet.audit import SamplerReport, verify_sampler
from privet.exact import ball, precision
from privet.exact.lattice import Integers
from privet.noise import DiscreteLaplace, Geometric
from privet.noise.digits import BASE, CHUNK, GROUP, SMALL, Digits
from privet.noise.entropy import Bits
from privet.noise.geometric import geometric_digits
from privet.noise.inversion import UNDECIDED, Inversion, Rare
from privet.noise.laplace import laplace_digits

# around every change of shape: one table or two (16), two or three (16 * 256), seven or eight (what fits 64 bits)
LAPLACE_SCALES = (
    *("1/1000", "1/137", "1/45", "0.02", "1/10", "1/7", "2/9", "1/3", "0.4999", "1/2", "5/7", "1", "1.0001"),
    *("1.5", "2", "2.718281828", "10/3", "3.9", "0.06", "0.75", "16", "16.0001", "17", "31.4", "99.9"),
    *("256", "1000/3", "1e3", "4096", "4096.5", "65536", "1e5", "123456.789", "1e7", "16777217", "1e9/7"),
    *("2097152.5", "1e15", "4503.6", "1e18/13"),
)
GEOMETRIC_SCALES = ("1/1000", "1/3", "2.5", "16", "16.5", "4097", "1e9", "1e17")


def scale_of(text: str) -> Fraction:
    top, _, bottom = text.partition("/")
    return Fraction(top) / Fraction(bottom or 1)


@pytest.mark.slow
@pytest.mark.parametrize("scale", some(LAPLACE_SCALES, every=5))
def test_the_laplace_sampler_is_exact(scale: str) -> None:
    report = verify_sampler(DiscreteLaplace(scale_of(scale)))
    assert report.findings == ()
    assert report.exact
    assert report.probes > 2 * 65_000 * report.levels
    assert report.levels == len(laplace_digits(scale_of(scale)).levels)
    assert str(report).endswith("probes: exact")


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["1e30"])
def test_the_laplace_sampler_is_exact_where_digits_are_nearly_uniform(scale: str) -> None:
    """There 1 - q loses all its digits in a careless formula, and boundaries come close to multiples of 2^-64."""
    assert verify_sampler(DiscreteLaplace(scale)).findings == ()


@pytest.mark.slow
@pytest.mark.parametrize("scale", some(GEOMETRIC_SCALES, every=2))
def test_the_geometric_sampler_is_exact(scale: str) -> None:
    assert verify_sampler(Geometric(scale_of(scale))).findings == ()


def test_forty_scales() -> None:
    assert len(set(map(scale_of, LAPLACE_SCALES))) == 40


def test_a_report_says_what_was_found() -> None:
    report = SamplerReport(Fraction(2), 1, 3, 5, ("table 0: wrong",))
    assert not report.exact
    assert str(report) == "scale 2: 1 tables, 3 values, 5 probes: NOT EXACT: table 0: wrong"


def test_the_sampler_of_another_scale_is_rejected() -> None:
    assert not verify_sampler(DiscreteLaplace("2.5"), laplace_digits(Fraction("2.5000000000000000001"))).exact
    assert not verify_sampler(DiscreteLaplace(100), laplace_digits(Fraction(101))).exact
    assert not verify_sampler(Geometric("2.5"), laplace_digits(Fraction("2.5"))).exact
    assert not verify_sampler(DiscreteLaplace("2.5"), geometric_digits(Fraction("2.5"))).exact


# --- broken tables ----------------------------------------------------------------------------


def with_level(digits: Digits, at: int, change: Callable[[Inversion], Inversion]) -> Digits:
    levels = list(digits.levels)
    levels[at] = change(levels[at])
    return Digits(levels)


def moved_boundary(by: int, where: float) -> Callable[[Inversion], Inversion]:
    def change(level: Inversion) -> Inversion:
        prefixes = [int(p) for p in level.prefixes]
        prefixes[int(where * (len(prefixes) - 1))] += by
        return Inversion(level.first, prefixes, level.cdf)

    return change


def missing_boundary(level: Inversion) -> Inversion:
    prefixes = [int(p) for p in level.prefixes]
    del prefixes[len(prefixes) // 2]
    return Inversion(level.first, prefixes, level.cdf)


def shifted_by_one(level: Inversion) -> Inversion:
    return Inversion(level.first + 1, [int(p) for p in level.prefixes], lambda k: level.cdf(k - 1))


def float_boundaries(level: Inversion) -> Inversion:
    """What the boundaries are if the CDF is computed in doubles."""
    floats = [float(level.cdf(level.first + i)) for i in range(len(level.prefixes))]
    return Inversion(level.first, [min(int(f * 2.0**64), (1 << 64) - 1) for f in floats], level.cdf)


def rounded_cdf(bits: int) -> Callable[[Inversion], Inversion]:
    """Boundaries that end after some bits: ties beyond them are decided wrongly."""

    def change(level: Inversion) -> Inversion:
        def cdf(k: int) -> arb:
            scaled = level.cdf(k) * arb(2) ** bits
            return scaled.floor() / arb(2) ** bits

        return Inversion(level.first, [int(p) for p in level.prefixes], cdf)

    return change


class _Clamped(Inversion):
    """An open tail that ends where 64 bits end."""

    def resolve(self, word: int, bits: Bits) -> int:
        value = super().resolve(word, bits)
        return max(self.first + 1, min(value, self.first + len(self.prefixes) - 1))


class _ClampedDeep(Inversion):
    """An open tail that ends far out, beyond what could ever be noticed in samples."""

    def resolve(self, word: int, bits: Bits) -> int:
        most = 8 * len(self.prefixes)
        return max(-most, min(super().resolve(word, bits), most))


class _TieIsBelow(Inversion):
    """The comparison with <= on the 64-bit prefix, with no more bits drawn."""

    def resolve(self, word: int, bits: Bits) -> int:
        bits.take(8)
        return self.first + int(self.prefixes.searchsorted(np.uint64(word)))


class _CellTooSure(Inversion):
    """One cell with a boundary in it claims to be decided."""

    @property
    def cells(self) -> NDArray[np.int16]:
        cells = super().cells.copy()
        boundary = np.flatnonzero(cells == UNDECIDED)[len(np.flatnonzero(cells == UNDECIDED)) // 2]
        cells[boundary] = self.first + int(self.prefixes.searchsorted(np.uint64(int(boundary) << 48)))
        return cells


class _CellWrong(Inversion):
    """One cell of 65,536 holds the neighbouring value."""

    @property
    def cells(self) -> NDArray[np.int16]:
        cells = super().cells.copy()
        cells[np.flatnonzero(cells != UNDECIDED)[-1]] -= 1
        return cells


class _RungWrong(Inversion):
    """Only the arrays' ladder is off, by one unit in 2^64."""

    @property
    def ladder(self) -> NDArray[np.uint64]:
        ladder = super().ladder.copy()
        ladder[len(self.prefixes) // 2] += np.uint64(1)
        return ladder

    @property
    def _rungs(self) -> tuple[int, ...]:
        return tuple(self.prefixes.tolist())


class _FewStrict(Inversion):
    """`few` with < in place of <=, so that a tie is not seen."""

    def few(self, words: NDArray[np.uint64], bits: Bits) -> tuple[NDArray[np.int64], Rare]:
        return self.first + np.searchsorted(self.prefixes, words, side="left").astype(np.int64), []


class _ManyFewerBits(Inversion):
    """`many` compares 63 bits."""

    def many(self, leading: NDArray[np.uint16], out: NDArray[np.int16], bits: Bits) -> Rare:
        class Coarse:
            def take(self, count: int) -> bytes:
                return bits.take(count)

            def fill(self, array: NDArray[Any]) -> None:
                bits.fill(array)
                array &= np.uint64(0xFFFFFFFFFFFE0000)

        return super().many(leading, out, Coarse())


class _ManyForgetsTies(Inversion):
    """`many` draws the further bits and ignores them."""

    def many(self, leading: NDArray[np.uint16], out: NDArray[np.int16], bits: Bits) -> Rare:
        rare = super().many(leading, out, bits)
        for at, _ in rare:
            word = np.uint64(int(leading[at]) << 48)
            out[at] = self.first + int(self.prefixes.searchsorted(word, side="right"))
        return []


class _TiesMisplaced(Inversion):
    """Rare values come back in the wrong order."""

    def few(self, words: NDArray[np.uint64], bits: Bits) -> tuple[NDArray[np.int64], Rare]:
        values, rare = super().few(words, bits)
        return values, [(at, value) for (at, _), (_, value) in zip(rare, reversed(rare), strict=True)]


def subclass(kind: type[Inversion]) -> Callable[[Inversion], Inversion]:
    return lambda level: kind(level.first, [int(p) for p in level.prefixes], level.cdf)


TABLE_TWINS: dict[str, Callable[[Inversion], Inversion]] = {
    "one boundary + 1": moved_boundary(1, 0.5),
    "one boundary - 1": moved_boundary(-1, 0.5),
    "an outer boundary + 1": moved_boundary(1, 0.3),
    "a boundary is missing": missing_boundary,
    "all values + 1": shifted_by_one,
    "boundaries from doubles": float_boundaries,
    "boundaries rounded to 64 bits": rounded_cdf(64),
    "boundaries rounded to 96 bits": rounded_cdf(96),
    "boundaries rounded to 120 bits": rounded_cdf(120),
    "a tie counts as below": subclass(_TieIsBelow),
    "a cell too sure": subclass(_CellTooSure),
    "a cell wrong": subclass(_CellWrong),
    "the ladder off by one": subclass(_RungWrong),
    "arrays see no ties": subclass(_FewStrict),
    "bulk compares 63 bits": subclass(_ManyFewerBits),
    "bulk forgets ties": subclass(_ManyForgetsTies),
    "ties in the wrong places": subclass(_TiesMisplaced),
}
TAIL_TWINS: dict[str, Callable[[Inversion], Inversion]] = {
    "the tail ends at 2^-64": subclass(_Clamped),
    "the tail ends far out": subclass(_ClampedDeep),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scale"),
    [
        (name, scale)
        for place, name in enumerate(TABLE_TWINS)
        # rounded boundaries take seconds at 1/9
        for scale in some(["1/9", "5/7", "1.5"], every=3, start=1 + place % 2 if "rounded" in name else place)
    ],
)
def test_broken_open_tables_are_rejected(name: str, scale: str) -> None:
    broken = with_level(laplace_digits(scale_of(scale)), 0, TABLE_TWINS[name])
    assert not verify_sampler(DiscreteLaplace(scale_of(scale)), broken).exact


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TABLE_TWINS)[::3])
def test_broken_digits_are_rejected(name: str) -> None:
    broken = with_level(laplace_digits(Fraction(17)), 0, TABLE_TWINS[name])
    findings = verify_sampler(DiscreteLaplace(17), broken).findings
    assert findings
    assert not any(finding.startswith("table 1") for finding in findings)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["an outer boundary + 1", "boundaries from doubles", "a cell wrong"])
def test_broken_tables_above_the_first_are_rejected(name: str) -> None:
    broken = with_level(laplace_digits(Fraction(300)), 1, TABLE_TWINS[name])
    findings = verify_sampler(DiscreteLaplace(300), broken).findings
    assert findings
    assert not any(finding.startswith("table 0") for finding in findings)


@pytest.mark.parametrize("name", TAIL_TWINS)
@pytest.mark.parametrize("scale", ["1/3", "2.5"])
def test_truncated_tails_are_rejected(name: str, scale: str) -> None:
    for distribution, exact in (
        (DiscreteLaplace(scale_of(scale)), laplace_digits(scale_of(scale))),
        (Geometric(scale_of(scale)), geometric_digits(scale_of(scale))),
    ):
        assert not verify_sampler(distribution, with_level(exact, -1, TAIL_TWINS[name])).exact


def test_the_twins_are_honest_when_nothing_is_broken() -> None:
    """The machinery that builds the twins does not itself make them fail."""
    exact = laplace_digits(Fraction(40))
    assert verify_sampler(DiscreteLaplace(40), with_level(exact, 0, subclass(Inversion))).exact
    assert verify_sampler(DiscreteLaplace(40), Digits(exact.levels)).exact


def separate_sign(scale: Fraction, twice: bool) -> Inversion:
    """A sign and a magnitude drawn separately: zero counts twice, or only one of two zeros is kept.

    With -0 taken for 0, P(X <= -m) = q^m / 2; with -0 taken for -1, so that negatives start at 1, q^(m-1)/2.
    """
    reach = int(45 * scale) + 2

    def lower(m: int) -> arb:
        return ball(-(m - (not twice)) / scale).exp() / 2

    def cdf(k: int) -> arb:
        return lower(-k) if k < 0 else 1 - ball(-Fraction(k + 1) / scale).exp() / 2

    boundaries = list(range(-reach, reach))
    whole = [k for k in boundaries if not (not twice and k == -1)]  # there F(-1) is 1/2, exactly
    with precision(256):
        floors = [int((cdf(k) * arb(2) ** 64).floor().fmpz()) for k in whole]
    prefixes = dict(zip(whole, floors, strict=True))
    return Inversion(-reach, [prefixes.get(k, 1 << 63) for k in boundaries], cdf)


@pytest.mark.parametrize("scale", ["1/3", "1", "2.5", "12"])
@pytest.mark.parametrize("twice", [True, False])
def test_a_sign_drawn_apart_is_rejected(scale: str, twice: bool) -> None:
    broken = Digits([separate_sign(scale_of(scale), twice)])
    assert len(verify_sampler(DiscreteLaplace(scale_of(scale)), broken).findings) >= 3  # in all three ways


# --- broken sums ------------------------------------------------------------------------------


class _Swapped(Digits):
    """The two lowest digits change places in the sum."""

    def one(self, bits: Bits) -> int:
        words = self._words.unpack(bits.take(self._words.size))
        values = [level.one(word, bits) for level, word in list(zip(self.levels, words, strict=True))[::-1]][::-1]
        values[0], values[1] = values[1], values[0]
        return sum(value * BASE**j for j, value in enumerate(values))


class _SharedWordOne(Digits):
    """All digits of a single draw come from one word."""

    def one(self, bits: Bits) -> int:
        word = self._words.unpack(bits.take(self._words.size))[0]
        return sum(level.one(word, bits) * BASE**j for j, level in enumerate(self.levels))


class _ByHand(Digits):
    """Arrays drawn by our own loop, which subclasses break in one place each."""

    drops_rare = drops_level = shares_words = wraps = overwrites = forgets_start = False
    bulk_only = False

    def array(self, count: int, bits: Bits) -> Integers:
        if self.bulk_only and count <= SMALL:
            return super().array(count, bits)
        total = np.zeros(count, dtype=np.int64 if self.wraps else object)
        exceptions: Rare = []
        for group in range(0, len(self.levels), GROUP):
            levels = list(enumerate(self.levels))[group : group + GROUP]
            if count <= SMALL:
                first: NDArray[np.uint64] | None = None
                for j, level in levels:
                    words = np.empty(count, dtype=np.uint64)
                    bits.fill(words)
                    if self.shares_words:
                        words = first = words if first is None else first
                    values, rare = level.few(words, bits)
                    self.add(total, exceptions, 0, j, values, rare)
                continue
            for start in range(0, count, CHUNK):
                size = min(CHUNK, count - start)
                shared: NDArray[np.uint16] | None = None
                for j, level in reversed(levels):
                    leading, drawn = np.empty(size, dtype=np.uint16), np.empty(size, dtype=np.int16)
                    bits.fill(leading)
                    if self.shares_words:
                        leading = shared = leading if shared is None else shared
                    rare = level.many(leading, drawn, bits)
                    self.add(total, exceptions, start, j, drawn, rare)
        for at, value in exceptions:
            total[at] = value if self.overwrites else value + total[at]
        return total

    def add(self, total: Integers, exceptions: Rare, start: int, j: int, values: Integers, rare: Rare) -> None:
        if self.drops_level and j == len(self.levels) - 1:
            return
        weight = np.int64(pow(BASE, j, 1 << 62)) if self.wraps else BASE**j
        with np.errstate(over="ignore"):
            total[start : start + len(values)] += values.astype(total.dtype) * weight
        if not self.drops_rare:
            offset = 0 if self.forgets_start else start
            exceptions += [(offset + at, value * BASE**j) for at, value in rare]


def by_hand(**flags: bool) -> type[Digits]:
    return type("_Broken", (_ByHand,), flags)


SUM_TWINS: dict[str, type[Digits]] = {
    "two digits change places": _Swapped,
    "one word for all digits": _SharedWordOne,
    "arrays share words": by_hand(shares_words=True),
    "bulk shares words": by_hand(shares_words=True, bulk_only=True),
    "rare draws are dropped": by_hand(drops_rare=True),
    "rare draws are dropped in bulk": by_hand(drops_rare=True, bulk_only=True),
    "a level is forgotten": by_hand(drops_level=True),
    "a level is forgotten in bulk": by_hand(drops_level=True, bulk_only=True),
    "a rare digit wipes out the others": by_hand(overwrites=True),
    "rare draws of a later piece go to the first": by_hand(forgets_start=True, bulk_only=True),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scale"), [*((name, "40") for name in SUM_TWINS), *((name, "5000") for name in list(SUM_TWINS)[:2])]
)
def test_broken_sums_are_rejected(name: str, scale: str) -> None:
    exact = laplace_digits(scale_of(scale))
    assert not verify_sampler(DiscreteLaplace(scale_of(scale)), SUM_TWINS[name](exact.levels)).exact


@pytest.mark.slow
def test_a_sum_by_hand_is_accepted_and_one_that_wraps_is_rejected() -> None:
    levels = laplace_digits(Fraction(5 * 10**16)).levels
    assert verify_sampler(DiscreteLaplace("5e16"), _ByHand(levels)).exact
    assert not verify_sampler(DiscreteLaplace("5e16"), by_hand(wraps=True)(levels)).exact


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["70000"])
def test_levels_in_the_wrong_order_or_number_are_rejected(scale: str) -> None:
    exact = laplace_digits(scale_of(scale)).levels
    wrong = [exact[::-1], exact[:-1], exact[1:], (*exact[:-1], exact[-1], exact[-1]), (exact[0], *exact)]
    for levels in wrong:
        assert not verify_sampler(DiscreteLaplace(scale_of(scale)), Digits(levels)).exact, len(levels)


def test_a_sampler_that_raises_is_a_finding() -> None:
    class Raises(Inversion):
        def one(self, word: int, bits: Bits) -> int:
            raise ZeroDivisionError("gone")

    report = verify_sampler(DiscreteLaplace(1), with_level(laplace_digits(Fraction(1)), 0, subclass(Raises)))
    assert any("gone" in finding for finding in report.findings)
