"""Exact verification of a running choice, by uniform reals on both sides of each exact boundary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, Protocol

from flint import arb
from numpy.typing import NDArray

from privet.audit.sampler import SamplerReport
from privet.errors import DataError, write
from privet.exact import Exact, Number, ball, positive, precision
from privet.mechanisms.exponential import EXPONENTIAL
from privet.noise.entropy import Bits

AWAY = (8, 24, 40, 63, 64, 65, 96, 127, 128, 129, 192, 256, 320)
"""Each boundary is probed at these negative powers of two on both sides."""

_LENGTH = 384  # bits of a probe, more if a candidate is so unlikely that it needs them
_LONGEST = 1 << 16


class Draw(Protocol):
    """A choice by integer scores from given bits."""

    def __call__(self, scores: Sequence[int], *, scale: Exact, bits: Bits) -> int:
        """The index of the chosen candidate."""


class _Real:
    """A uniform real given by its leading bits; all bits after them are 0."""

    def __init__(self, leading: int, length: int) -> None:
        self.leading, self.left = leading, length

    def take(self, count: int) -> bytes:
        self.left -= 8 * count
        part = self.leading >> self.left if self.left >= 0 else self.leading << -self.left
        return (part & ((1 << 8 * count) - 1)).to_bytes(count, "little")

    def fill(self, array: NDArray[Any]) -> None:
        raise LookupError("a choice takes one uniform real")


def verify_choice(scores: Sequence[int], *, scale: Number, draw: Draw = EXPONENTIAL._draw) -> SamplerReport:
    """Certify that the running exponential mechanism chooses each of these candidates with its exact probability.

    Claim: if the report is exact, uniform reals on both sides of each boundary of the exact CDF, as near as 2^-320, and
    one in the middle between each two boundaries, lead to the right candidate. So the most unlikely candidate is
    chosen, too. The boundaries are computed from the definition, as sums of e^((score - best)/scale).

    Assumptions: the bits are fair, and the code only compares them with boundaries, in the order of the candidates.

    Example:
        >>> verify_choice([3, 0, -500, 2], scale=2).exact
        True
    """
    unit = positive(scale, name="scale", example="verify_choice([0, 3], scale=2)")
    length = _LENGTH + int(Fraction(max(scores) - min(scores)) / unit * Fraction(3, 2))  # more than 1/ln 2
    if length > _LONGEST:
        raise DataError("the scores are too far apart for this scale", remedy=write("verify_choice([0, 3], scale=2)"))
    probes = list(_probes(_boundaries(scores, unit, length), length))
    findings = tuple(_findings(probes, lambda real: draw(scores, scale=unit, bits=_Real(real, length))))
    return SamplerReport(unit, 1, len(scores), len(probes), findings)


def _boundaries(scores: Sequence[int], scale: Exact, length: int) -> list[int]:
    """floor(2^length F(i)) for all candidates but the last."""
    with precision(3 * length):
        weights = [ball(Fraction(score - max(scores)) / scale).exp() for score in scores]
        sums = list(accumulate(weights))
        return [int((each / sums[-1] * arb(2) ** length).lower().floor().fmpz()) for each in sums[:-1]]


def _probes(cuts: Sequence[int], length: int) -> Iterator[tuple[int, int]]:
    """Uniform reals and the candidates that they decide."""
    near = (cut + side * (1 << length - away) for cut in cuts for away in AWAY for side in (-1, 1))
    middle = ((a + b) // 2 for a, b in pairwise([0, *cuts, (1 << length) - 1]))
    for real in (*near, *middle):
        if 0 <= real < 1 << length and real not in cuts:
            yield real, sum(other < real for other in cuts)


def _findings(probes: Sequence[tuple[int, int]], chosen: Callable[[int], int]) -> Iterator[str]:
    for real, expected in probes:
        try:
            answer = chosen(real)
        except Exception as error:  # any failure of a broken choice is a finding
            yield f"failed ({error})"
            return
        if answer != expected:
            yield f"candidate {answer} is chosen instead of {expected} at one of {len(probes)} probes"
            return
