"""Coins and uniform integers: exact probabilities, checked by enumeration of the bits they read."""

from __future__ import annotations

import math
from contextlib import suppress
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privet.errors import NumberError
from privet.noise import Bernoulli, BernoulliExp, UniformInteger
from privet.noise.uniform import uniform_below

probabilities = st.fractions(min_value=0, max_value=1, max_denominator=10**6)


class Bytes:
    """Given bytes, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, count: int) -> bytes:
        if len(self.data) < count:
            raise LookupError
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def fill(self, array: NDArray[Any]) -> None:
        array[:] = np.frombuffer(self.take(array.nbytes), dtype=array.dtype)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 7, 100, 127, 128, 129, 255, 256])
def test_a_uniform_integer_takes_each_value_equally_often(bound: int) -> None:
    """All 256 first bytes: each value comes from equally many of them, the others draw again."""
    found: dict[int, int] = {}
    again = 0
    for byte in range(256):
        try:
            value = uniform_below(bound, Bytes(bytes([byte])))
        except LookupError:
            again += 1
        else:
            found[value] = found.get(value, 0) + 1
    assert sorted(found) == list(range(bound))
    assert len(set(found.values())) == 1
    assert again < 128


def test_a_uniform_integer_of_two_bytes() -> None:
    counts = np.zeros(300, dtype=np.int64)
    for word in range(1 << 16):
        with suppress(LookupError):
            counts[uniform_below(300, Bytes(word.to_bytes(2, "little")))] += 1
    assert set(counts.tolist()) == {(1 << 16) // 512}


def _by_remainder(bound: int, bits: Bytes) -> int:
    """The broken twin: some values come more often."""
    return bits.take(1)[0] % bound


def test_the_remainder_of_a_byte_is_caught() -> None:
    found = [_by_remainder(100, Bytes(bytes([byte]))) for byte in range(256)]
    assert len({found.count(value) for value in range(100)}) > 1


@given(st.integers(-(10**30), 10**30), st.integers(0, 10**30))
def test_uniform_samples_stay_inside(lower: int, width: int) -> None:
    die = UniformInteger(lower, lower + width)
    assert lower <= die.sample() <= lower + width
    assert die.size == width + 1
    assert die.pmf(lower) == die.pmf(lower + width) == Fraction(1, width + 1)
    assert die.pmf(lower - 1) == die.pmf(lower + width + 1) == die.cdf(lower - 1) == 0
    assert die.cdf(lower + width) == die.cdf(lower + width + 5) == 1


@given(st.integers(-5, 5), st.integers(0, 50), st.fractions(min_value="1/999", max_value="998/999"))
def test_the_uniform_quantile_is_the_smallest_value_that_reaches(lower: int, width: int, p: Fraction) -> None:
    die = UniformInteger(lower, lower + width)
    k = die.quantile(p)
    assert die.cdf(k) >= p > die.cdf(k - 1)
    for value in range(lower, lower + width):
        assert die.quantile(die.cdf(value)) == value


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(NumberError, match="lower"):
        UniformInteger(2, 1)


@pytest.mark.parametrize("p", ["0", "1", "1/3", "0.7", "1/128", "255/256", "3/7"])
def test_a_coin_has_exactly_its_probability(p: str) -> None:
    coin = Bernoulli(p)
    shown = {0: 0, 1: 0}
    for byte in range(256):
        with suppress(LookupError):
            shown[coin.draw(Bytes(bytes([byte])))] += 1
    assert Fraction(shown[1], shown[0] + shown[1]) == coin.p == coin.pmf(1)


@given(probabilities)
def test_a_coin_adds_up(p: Fraction) -> None:
    coin = Bernoulli(p)
    assert coin.pmf(0) + coin.pmf(1) == 1
    assert coin.pmf(2) == coin.pmf(-1) == coin.cdf(-1) == 0
    assert coin.cdf(0) == 1 - p
    assert coin.cdf(1) == coin.cdf(9) == 1


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), True, "x", "4/3"])
def test_bad_probabilities_are_refused(bad: Any) -> None:
    with pytest.raises(NumberError, match="p must be"):
        Bernoulli(bad)
    with pytest.raises(NumberError, match="x must be"):
        BernoulliExp(-1)


@given(st.fractions(min_value="1/50", max_value=20, max_denominator=50), st.integers(-3, 3))
def test_an_exponential_coin_turns_at_its_boundary(x: Fraction, offset: int) -> None:
    """Bits up to e^-x show 1 and bits above it 0, at 2^-90, with e^-x computed in decimals."""
    with localcontext() as context:
        context.prec = 80
        fine = int((-Decimal(x.numerator) / Decimal(x.denominator)).exp() * 2**90)
    string = fine + offset
    if not 0 <= string < 2**90:
        return
    data = (string << 38).to_bytes(16, "big")
    bits = Bytes(data[:8][::-1] + data[8:][::-1] + bytes(64))
    assert BernoulliExp(x).draw(bits) == int(string <= fine)


def test_an_exponential_coin_agrees_with_the_exponential() -> None:
    coin = BernoulliExp("0.7")
    assert float(coin.pmf(1)) == pytest.approx(math.exp(-0.7))
    assert float(coin.pmf(0)) == float(coin.cdf(0)) == pytest.approx(1 - math.exp(-0.7))
    assert coin.pmf(2).upper == coin.cdf(-1).upper == 0
    assert coin.cdf(1).lower == 1
    assert BernoulliExp(0).draw(Bytes(b"")) == 1
    assert BernoulliExp("1e6").sample() == 0
