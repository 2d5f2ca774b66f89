"""The exact verification accepts the running samplers of Gaussian noise, and rejects broken ones."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray
from tests.effort import some

from privet.audit import verify_sampler
from privet.exact import ball
from privet.exact.lattice import Integers
from privet.noise import DiscreteGaussian, DiscreteLaplace
from privet.noise.digits import Digits
from privet.noise.entropy import Bits
from privet.noise.gaussian import TABLE, gaussian_sampler, one_sided, two_sided
from privet.noise.inversion import Inversion, Rare, UniformReal, Words, enclosed_prefixes, mirrored
from privet.noise.laplace import laplace_digits
from privet.noise.refinement import Refined

# around every change of shape: sums and dual sums (1/6), one table or two parts (2^14), 31 fine bits (bulk),
# 47 bits (what fits 64 bits), 63 and 64 bits (one word or two)
SQUARES = [
    *("1/1000", "1/7", "1/6", "0.51", "2.4", "100", "1234.5", str(TABLE - 1)),
    *(str(TABLE), "20000.5", "1e6", "1e8", "1e9/7"),
    *(str(TABLE * 4**power) for power in (30, 31, 46, 47, 62, 63, 64)),
    "1e100",
]


def number(text: str) -> Fraction:
    top, _, bottom = text.partition("/")
    return Fraction(top) / Fraction(bottom or 1)


@pytest.mark.slow
@pytest.mark.parametrize("square", some(SQUARES, every=4))
def test_the_sampler_is_exact(square: str) -> None:
    report = verify_sampler(DiscreteGaussian(number(square)))
    assert report.findings == ()
    assert report.probes > 2 * 65_000
    assert str(report).endswith("probes: exact")


def refined(square: Fraction) -> Refined:
    sampler = gaussian_sampler(square)
    assert isinstance(sampler, Refined)
    return sampler


def table(square: Fraction) -> Inversion:
    sampler = gaussian_sampler(square)
    assert isinstance(sampler, Digits)
    return sampler.levels[0]


def changed(level: Inversion, prefixes: list[int]) -> Inversion:
    return Inversion(level.first, prefixes, level.cdf)


# --- one table ------------------------------------------------------------------------------------


def rounded_normal(square: Fraction) -> Inversion:
    """Continuous noise, rounded to integers: F(k) is Phi((k + 1/2)/sigma)."""
    reach = 12

    def cdf(k: int) -> arb:
        return (-ball(Fraction(2 * k + 1, 2)) / (ball(2 * square)).sqrt()).erfc() / 2

    return Inversion(-reach, mirrored(enclosed_prefixes(lambda: [cdf(-m) for m in range(reach, 0, -1)], 256)), cdf)


BROKEN_TABLES: dict[str, Callable[[Fraction], Digits | Refined]] = {
    "sigma larger by one part in a million": lambda s: gaussian_sampler(s * (1 + Fraction(1, 10**6)) ** 2),
    "sigma smaller by one part in a million": lambda s: gaussian_sampler(s * (1 - Fraction(1, 10**6)) ** 2),
    "sigma for sigma^2": lambda s: gaussian_sampler(s * s),
    "shifted by one": lambda s: Digits(
        [Inversion(table(s).first + 1, table(s).prefixes.tolist(), lambda k: table(s).cdf(k - 1))]
    ),
    "one boundary": lambda s: Digits(
        [changed(table(s), [p + (i == table(s).reach) for i, p in enumerate(table(s).prefixes.tolist())])]
    ),
    "continuous noise, rounded": lambda s: Digits([rounded_normal(s)]),
    "one side only": lambda s: Digits([one_sided(s)]),
    "Laplace noise": lambda s: laplace_digits(s),
    "two tables": lambda s: Digits([table(s), table(s)]),
}


@pytest.mark.parametrize("name", BROKEN_TABLES)
@pytest.mark.parametrize("square", ["2.4", "0.7"])
def test_broken_tables_are_rejected(name: str, square: str) -> None:
    assert not verify_sampler(DiscreteGaussian(number(square)), BROKEN_TABLES[name](number(square))).exact


def test_samplers_of_other_noise_are_rejected() -> None:
    assert not verify_sampler(DiscreteLaplace(3), gaussian_sampler(Fraction(3))).exact
    assert not verify_sampler(DiscreteLaplace(3), refined(Fraction(10**6))).exact
    assert not verify_sampler(DiscreteGaussian(10**6), gaussian_sampler(Fraction(3))).exact
    assert not verify_sampler(DiscreteGaussian(3), refined(Fraction(10**6))).exact


# --- two parts ------------------------------------------------------------------------------------


class _AnyRate(Refined):
    """Thinning at another rate than the table's."""

    def __init__(self, coarse: Inversion, shift: int, rate: Fraction) -> None:
        super().__init__(coarse, shift, rate * (1 + Fraction(1, 10**6)))


class _NoThinning(Refined):
    """All candidates are kept: noise that is uniform between the values of the table."""

    def __init__(self, coarse: Inversion, shift: int, rate: Fraction) -> None:
        super().__init__(coarse, shift, rate)
        self._fixed = 0

    def _drops(self, q: int, r: int, uniform: UniformReal) -> bool:
        return False


class _Linear(Refined):
    """A candidate is dropped with probability x, instead of 1 - e^-x, where it is close."""

    def _drops(self, q: int, r: int, uniform: UniformReal) -> bool:
        x = self.rate * ((2 * q << self.shift) + r) * r / (1 << 2 * self.shift)
        return x > 0 and uniform.below(lambda: ball(x))


class _TiesKept(Refined):
    """Where 64 bits do not decide, the candidate is kept."""

    def _drops(self, q: int, r: int, uniform: UniformReal) -> bool:
        uniform.bits.take(8)
        uniform.bits.take(8)
        return False


class _TwoZeros(Refined):
    """-0 counts as 0, which comes twice as often as it should."""

    def _value(self, q: int, r: int, negative: int) -> int:
        return super()._value(q, r, negative) or (0 if not negative else 1 << self.shift)


class _WrongOrder(Refined):
    """The bits of the fine part are reversed in single draws."""

    def _fine(self, words: Any) -> tuple[int, int]:
        r, negative = super()._fine(words)
        return int(f"{r:0{self.shift}b}"[::-1], 2), negative


class _FewLoose(Refined):
    """Arrays know x to 2^-40 only, and do not look closer."""

    def _few(self, count: int, bits: Bits) -> tuple[Integers, NDArray[np.bool_], Rare]:
        fixed, self._fixed = self._fixed, self._fixed >> 24 << 24
        found = super()._few(count, bits)
        self._fixed = fixed
        return found


class _BulkLoose(Refined):
    """Long arrays know x to 2^-20 only, and do not look closer."""

    def _many(self, count: int, bits: Bits, *, scratch: Words) -> tuple[Integers, NDArray[np.bool_], Rare]:
        fixed, self._fixed = self._fixed, self._fixed + (1 << 42)
        found = super()._many(count, bits, scratch=scratch)
        self._fixed = fixed
        return found


class _FixedPoint(Refined):
    """The fixed-point value is off by more than its margin."""

    def _exponent(self, q: Any, share: Any, times: Any) -> Any:
        return super()._exponent(q, share, times) + 3 * 4096


class _AllPositive(Refined):
    """The sign is forgotten in arrays."""

    def array(self, count: int, bits: Bits) -> Integers:
        return np.abs(super().array(count, bits))


def swapped(kind: type[Refined]) -> Callable[[Fraction], Refined]:
    return lambda s: kind(refined(s).coarse, refined(s).shift, refined(s).rate)


BROKEN_PARTS: dict[str, Callable[[Fraction], Refined]] = {
    "sigma larger by one part in a million": lambda s: refined(s * (1 + Fraction(1, 10**6)) ** 2),
    "the table's sigma only": lambda s: Refined(
        one_sided(s / 4 ** refined(s).shift * (1 + Fraction(1, 10**6))), refined(s).shift, refined(s).rate
    ),
    "the rate of thinning only": swapped(_AnyRate),
    "no thinning": swapped(_NoThinning),
    "linear where it is close": swapped(_Linear),
    "ties are kept": swapped(_TiesKept),
    "0 comes twice": swapped(_TwoZeros),
    "fine bits in the wrong order": swapped(_WrongOrder),
    "arrays do not look closer": swapped(_FewLoose),
    "bulk does not look closer": swapped(_BulkLoose),
    "fixed point off": swapped(_FixedPoint),
    "no signs": swapped(_AllPositive),
    "another number of fine bits": lambda s: Refined(refined(s).coarse, refined(s).shift + 1, refined(s).rate),
}


WIDE = Fraction(1_100_000)  # just beyond a power of 4 times the table's end: its table is small, and soon checked


@pytest.mark.slow
@pytest.mark.parametrize("name", some(list(BROKEN_PARTS), every=2))
def test_broken_parts_are_rejected(name: str) -> None:
    assert not verify_sampler(DiscreteGaussian(WIDE), BROKEN_PARTS[name](WIDE)).exact


@pytest.mark.slow
def test_the_twins_are_honest_when_nothing_is_broken() -> None:
    assert verify_sampler(DiscreteGaussian(WIDE), swapped(Refined)(WIDE)).exact
    level = two_sided(Fraction(3))
    assert verify_sampler(DiscreteGaussian(3), Digits([changed(level, level.prefixes.tolist())])).exact
