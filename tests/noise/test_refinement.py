"""The parts of the two-part sampler: its fixed-point arithmetic, and where its candidates go."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privet.exact.lattice import Integers
from privet.noise import refinement
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.gaussian import TABLE, gaussian_sampler, one_sided
from privet.noise.inversion import Rare
from privet.noise.refinement import MARGIN, Refined, _lost, _times, _times_arrays

words = st.integers(0, 2**64 - 1)


@given(words, words)
def test_products_of_arrays_are_those_of_integers(a: int, b: int) -> None:
    found = _times_arrays(np.array([a], dtype=np.uint64), np.array([b], dtype=np.uint64))
    assert int(found[0]) == _times(a, b) == a * b // 2**64


@given(st.integers(0, int(0.16 * 2**64)))
def test_the_series_is_right_to_four_units(x: int) -> None:
    found = _lost(x, _times)
    with localcontext() as context:
        context.prec = 60
        truth = (1 - (-Decimal(x) / Decimal(2**64)).exp()) * Decimal(2**64)
    assert abs(found - truth) < 4
    assert int(_lost(np.array([x], dtype=np.uint64), _times_arrays)[0]) == found


def test_fewer_terms_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refinement, "TERMS", 10)
    assert abs(_lost(int(0.155 * 2**64), _times) + math.expm1(-0.155) * 2.0**64) > 4


SQUARES = [Fraction(TABLE), Fraction(TABLE * 4 - 1), Fraction(10**8), Fraction(10**30), Fraction(10**50)]


@given(st.sampled_from(SQUARES), st.integers(0, 1300), st.fractions(min_value=0, max_value=1, max_denominator=10**9))
def test_the_margin_covers_every_error(square: Fraction, q: int, share: Fraction) -> None:
    """From q and r to the probability to be dropped, in 64-bit fixed point against 60 digits."""
    sampler = gaussian_sampler(square)
    assert isinstance(sampler, Refined)
    q = min(q, sampler.coarse.reach)
    r = min(int(share * 2**sampler.shift), 2**sampler.shift - 1)
    found = _lost(sampler._exponent(q, (r << 64) >> sampler.shift, _times), _times)
    x = ((q * 2**sampler.shift + r) ** 2 - (q * 2**sampler.shift) ** 2) / (2 * square)
    assert x <= Fraction(16, 100), "the series is for small x"
    with localcontext() as context:
        context.prec = 60
        truth = (1 - (-Decimal(x.numerator) / Decimal(x.denominator)).exp()) * Decimal(2**64)
    assert abs(found - truth) < MARGIN - 2
    assert abs(found - truth) < 2 * q + 16


def test_the_first_bits_of_bulk_draws_are_bounded() -> None:
    """What bulk draws know of x is too small by at most 2^16 units of 2^-32, and x - x^2/2 <= 1 - e^-x <= x."""
    for square in SQUARES[:3]:
        sampler = gaussian_sampler(square)
        assert isinstance(sampler, Refined)
        for q in (0, 1, 77, sampler.coarse.reach):
            for share in (0, 1, 2**31, 2**32 - 1):
                known = ((((q << 33) + share) * (sampler._fixed >> 34) >> 30) * share) >> 32
                x = sampler.rate * (2 * q + Fraction(share, 2**32)) * Fraction(share, 2**32) * 2**32
                assert 0 <= x - known < 2**16
                assert ((q << 33) + share) * (sampler._fixed >> 34) < 2**63


class _Counting(Refined):
    """Candidates 1, 2, 3, ...: each seventh is dropped, and each eleventh is rare."""

    number = 0

    def _few(self, count: int, bits: Bits) -> tuple[Integers, NDArray[np.bool_], Rare]:
        numbers = np.arange(self.number + 1, self.number + count + 1)
        self.number += count
        dropped = numbers % 7 == 0
        rare = [(at, int(n)) for at, n in enumerate(numbers) if n % 11 == 0 and n % 7]
        return np.where(numbers % 11 == 0, 0, numbers), dropped, rare


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 100, 1000])
def test_every_place_takes_its_first_kept_candidate(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refinement, "CHUNK", 10)
    sampler = _Counting(one_sided(Fraction(5000)), 40, Fraction(1, 10**4))
    values = sampler.array(count, SYSTEM).tolist()
    assert len(set(values)) == len(values) == count
    assert all(value % 7 for value in values)
    assert all(value == at + 1 for at, value in enumerate(values) if (at + 1) % 7)
    assert all(value > count for at, value in enumerate(values) if (at + 1) % 7 == 0)


def test_long_arrays_are_filled_to_the_end() -> None:
    for square in (10**8, 10**22, 10**40):
        values = gaussian_sampler(Fraction(square)).array(refinement.CHUNK + 5000 if square < 10**20 else 6000, SYSTEM)
        sigma = math.sqrt(square)
        for part in (values[:5000], values[-5000:]):
            assert 0.9 < float(np.std(part.astype(np.float64))) / sigma < 1.1
