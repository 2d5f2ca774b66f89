"""The verification of choices accepts the exact one and rejects careless variants, however small the difference."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

import numpy as np
import pytest
from tests.effort import some

from privet.audit import verify_choice
from privet.exact import Exact
from privet.mechanisms.exponential import EXPONENTIAL
from privet.noise.choice import WeightedChoice
from privet.noise.entropy import Bits

SCORES = [[0, 1], [5, 0, 3, 3], [0, -3, -300, 7, 7, 2], [-2000, 0, -1000], list(range(40))]


@pytest.mark.parametrize(("scores", "scale"), some(list(product(SCORES, ["1/3", "1", "17", "1e9"])), every=3), ids=str)
def test_the_running_choice_is_exact(scores: list[int], scale: str) -> None:
    report = verify_choice(scores, scale=scale)
    assert report.exact, report
    assert report.probes > 10


def uniform(bits: Bits, size: int) -> int:
    return int.from_bytes(bits.take(size), "little")


def floats(scores: Sequence[int], *, scale: Exact, bits: Bits) -> int:
    """Weights in doubles, and 53 bits of a uniform real."""
    weights = [math.exp((s - max(scores)) / scale) for s in scores]
    sums = list(accumulate(weights))
    return min(bisect_right(sums, (uniform(bits, 16) >> 75) * 2.0**-53 * sums[-1]), len(scores) - 1)


def rounded(scores: Sequence[int], *, scale: Exact, bits: Bits) -> int:
    """Integers in units of 2^-128, rounded: no float, but no more bits for ties either."""
    weights = [int(Fraction(math.exp((s - max(scores)) / scale)) * 2**128) for s in scores]
    sums = list(accumulate(weights))
    return min(bisect_right(sums, uniform(bits, 16) * sums[-1] >> 128), len(scores) - 1)


def dropped(scores: Sequence[int], *, scale: Exact, bits: Bits) -> int:
    """Candidates whose weight is below 2^-64 are left out."""
    near = [i for i, s in enumerate(scores) if (max(scores) - s) / scale < 44]
    return near[EXPONENTIAL._draw([scores[i] for i in near], scale=scale, bits=bits)]


def too_sure(scores: Sequence[int], *, scale: Exact, bits: Bits) -> int:
    """Ties are not resolved."""

    class Sure(WeightedChoice):
        def _resolve(self, uniform: Any, low: int, high: int) -> int:
            return low

    return Sure(max(scores) - np.array(scores), rate=1 / scale).draw(bits)


def forgets_half(scores: Sequence[int], *, scale: Exact, bits: Bits) -> int:
    """The factor 2 is forgotten."""
    return EXPONENTIAL._draw(scores, scale=scale / 2, bits=bits)


def slightly_off(scores: Sequence[int], *, scale: Exact, bits: Bits) -> int:
    return EXPONENTIAL._draw(scores, scale=scale * (1 + Fraction(1, 10**30)), bits=bits)


@pytest.mark.parametrize("twin", [floats, rounded, dropped, too_sure, forgets_half, slightly_off])
def test_twins_are_rejected(twin: Any) -> None:
    assert not verify_choice([0, -3, -300, 7, 7, 2], scale=1, draw=twin).exact


def test_a_choice_that_fails_is_a_finding() -> None:
    def fails(scores: Sequence[int], *, scale: Exact, bits: Bits) -> int:
        raise ZeroDivisionError("gone")

    assert "gone" in str(verify_choice([0, 1], scale=1, draw=fails))
