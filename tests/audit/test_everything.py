"""Every sampler is verified exactly, and broken ones are found."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privet.audit import verify_all
from privet.audit.coins import verify_coin, verify_uniform, verify_uniform_array
from privet.audit.everything import (
    verify_above_threshold,
    verify_flips,
    verify_noisy_max,
    verify_response,
    verify_staircase,
    verify_truncated,
)
from privet.exact import ball, exp
from privet.exact.lattice import add_exactly
from privet.mechanisms import AboveThreshold, RandomizedResponse
from privet.mechanisms.noisy_max import NOISY_MAX
from privet.mechanisms.permute_and_flip import PERMUTE_AND_FLIP
from privet.noise import Bernoulli, BernoulliExp, DiscreteLaplace, DiscreteStaircase, TruncatedLaplace
from privet.noise.laplace import laplace_digits


def test_every_sampler_is_exact() -> None:
    reports = list(verify_all())
    assert [str(report) for report in reports if not report.exact] == []
    texts = " ".join(map(str, reports))
    for word in ("scale 2.5", "coin", "uniform below", "uniform array", "RandomizedResponse", "permute-and-flip",
                 "staircase", "truncated Laplace", "noisy max", "AboveThreshold"):  # fmt: skip
        assert word in texts
    assert len(reports) > 70


# --- coins and integers -----------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["1e-15", "1e-30", "1e-60", "-1e-60"])
def test_a_coin_that_is_a_little_off_is_found(error: str) -> None:
    twin = BernoulliExp(2 + Fraction(error))
    assert not verify_coin("e^-2", twin.draw, lambda: ball(-2).exp()).exact


def test_a_coin_by_floats_is_found() -> None:
    def draw(bits: Any) -> int:
        return int(int.from_bytes(bits.take(8), "little") < round(float(exp(Fraction(-2))) * 2**64))

    assert not verify_coin("e^-2", draw, lambda: ball(-2).exp()).exact


def test_integers_that_are_not_uniform_are_found() -> None:
    def modulo(bound: int, bits: Any) -> int:
        return int.from_bytes(bits.take(1), "little") % bound

    def short(bound: int, bits: Any) -> int:
        number = int.from_bytes(bits.take(1), "little") >> 5
        return min(number, bound - 1)

    def many(bound: int, count: int, bits: Any) -> Any:
        words = np.empty(count, dtype=np.uint64)
        bits.fill(words)
        return words % np.uint64(bound)

    assert not verify_uniform(6, modulo).exact
    assert not verify_uniform(6, short).exact
    assert verify_uniform(8, modulo).exact, "256 is a multiple of 8"
    assert not verify_uniform_array(6, many).exact


@pytest.mark.parametrize("p", ["1/3", "2/7", "0", "1", "255/256"])
def test_rational_coins(p: str) -> None:
    """All strings of bits of one try: the share of ones among those that do not lead to another try is p."""
    coin = Bernoulli(p)

    class Once:
        def __init__(self, number: int) -> None:
            self.number: int | None = number

        def take(self, count: int) -> bytes:
            if self.number is None:
                raise LookupError
            number, self.number = self.number, None
            return number.to_bytes(count, "little")

    tossed = []
    for number in range(256 if coin.p.denominator > 1 else 1):
        try:
            tossed.append(coin.draw(Once(number)))  # type: ignore[arg-type]
        except LookupError:
            continue
    assert Fraction(sum(tossed), len(tossed)) == coin.p


# --- mechanisms -------------------------------------------------------------------------------------


def test_reports_with_a_wrong_coin_or_a_wrong_rest_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify_response(RandomizedResponse(["a", "b", "c"], epsilon=1)).exact
    twin = RandomizedResponse(3, epsilon=1)
    object.__setattr__(twin, "_prefix", twin._prefix + 1)
    assert not verify_response(twin).exact
    monkeypatch.setattr(RandomizedResponse, "_kept", lambda self: 1 / (1 + 3 * ball(-self.epsilon).exp()))
    assert not verify_response(RandomizedResponse(3, epsilon=1)).exact
    monkeypatch.undo()
    report = RandomizedResponse._report

    def uniform(self: Any, codes: Any, bits: Any) -> Any:  # the others include the truth
        return np.where(report(self, codes, bits) == codes, codes, 0)

    monkeypatch.setattr(RandomizedResponse, "_report", uniform)
    assert not verify_response(RandomizedResponse(3, epsilon=1)).exact


def test_flips_with_a_wrong_scale_or_a_fixed_order_are_found() -> None:
    def draw(scores: Any, *, scale: Any, bits: Any) -> int:
        return PERMUTE_AND_FLIP._draw(scores, scale=scale * (1 + Fraction(1, 10**30)), bits=bits)

    assert verify_flips(3, Fraction(2)).exact
    assert not verify_flips(3, Fraction(2), draw).exact

    def first(scores: Any, *, scale: Any, bits: Any) -> int:  # the first heads, without a random order
        words = np.empty(len(scores), dtype=np.uint64)
        bits.fill(words)
        away = max(scores) - np.array(scores)
        return int(np.flatnonzero(words < 2.0**64 * np.exp(-away / float(scale)))[0])

    assert not verify_flips(3, Fraction(2), first).exact


def test_stairs_with_a_wrong_coin_or_without_a_sign_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = DiscreteStaircase(sensitivity=5, epsilon=1)
    monkeypatch.setattr("privet.noise.staircase._prefix", lambda each: (1 << 64) // 3)
    assert not verify_staircase(noise).exact
    monkeypatch.undo()
    assert verify_staircase(noise).exact
    draw = DiscreteStaircase.draw
    monkeypatch.setattr(DiscreteStaircase, "draw", lambda self, bits: abs(draw(self, bits)))
    assert not verify_staircase(noise).exact


def test_truncated_noise_with_another_delta_or_ends_that_pile_up_is_found() -> None:
    noise = TruncatedLaplace(epsilon="1/2", delta="1/100")
    assert verify_truncated(noise).exact
    other = TruncatedLaplace(epsilon="1/2", delta=Fraction(1, 100) + Fraction(1, 10**60))
    assert not verify_truncated(noise, other.draws).exact

    def clipped(count: int, bits: Any) -> Any:  # the mass beyond the ends is added to them, and not drawn again
        wide = TruncatedLaplace(epsilon="1/2", delta="1/100")
        object.__setattr__(wide, "turn", 10**6)
        return np.clip(wide.draws(count, bits) - wide.threshold + 10**6, noise.lowest, noise.highest)

    assert not verify_truncated(noise, clipped).exact


def test_noisy_max_that_takes_the_first_of_ties_or_has_another_scale_is_found() -> None:
    def first(scores: Any, *, scale: Any, bits: Any) -> int:
        noisy = add_exactly(np.array(scores), laplace_digits(DiscreteLaplace(scale).scale).array(len(scores), bits))
        return int(np.argmax(noisy))

    def louder(scores: Any, *, scale: Any, bits: Any) -> int:
        return NOISY_MAX._draw(scores, scale=2 * scale, bits=bits)

    assert verify_noisy_max(Fraction(2)).exact
    assert not verify_noisy_max(Fraction(2), first).exact
    assert not verify_noisy_max(Fraction(2), louder).exact


def test_a_sparse_vector_that_compares_strictly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=1)
    assert verify_above_threshold(mechanism).exact
    draw = AboveThreshold._draw

    def strict(self: Any, queries: Any, bits: Any) -> Any:
        return draw(self, [q - 1 for q in queries], bits)

    monkeypatch.setattr(AboveThreshold, "_draw", strict)
    assert not verify_above_threshold(mechanism).exact
