"""Exact verification of a running sampler, through every cell of its tables instead of samples and statistics.

A draw is a lookup in finite tables, so the result for *every* string of leading bits can be enumerated and compared
with the expected one (`expected`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.audit.expected import Expected, differences, expected_levels, gaussian_away, gaussian_level
from privet.audit.script import Probes, Script
from privet.audit.tables import TableCheck
from privet.audit.thinning import check_thinning
from privet.exact import Exact, ball, floor, precision, show
from privet.noise import DiscreteGaussian, DiscreteLaplace, Geometric
from privet.noise.digits import BASE, CHUNK, GROUP, SMALL, Digits
from privet.noise.gaussian import TABLE, gaussian_sampler
from privet.noise.geometric import geometric_digits
from privet.noise.laplace import laplace_digits
from privet.noise.refinement import Refined
from privet.noise.theta import total, weight

DEEP = (4, 24)
"""The numbers of 64-bit words of zeros (or ones) that lead into the open tails, as far as 2^-1536."""

_PRECISION = 384
_WIDEST = 256  # an open table of a larger scale would have too many values to enumerate, and to fit 16 bits


@dataclass(frozen=True, slots=True)
class SamplerReport:
    """The result of an exact verification."""

    scale: Exact
    levels: int
    values: int
    probes: int
    findings: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether there are no findings: each value has its exact probability, to 1e-37."""
        return not self.findings

    def __str__(self) -> str:
        verdict = "exact" if self.exact else "NOT EXACT: " + "; ".join(self.findings)
        return f"scale {show(self.scale)}: {self.levels} tables, {self.values} values, {self.probes} probes: {verdict}"


def verify_sampler(
    distribution: DiscreteLaplace | Geometric | DiscreteGaussian, sampler: Digits | Refined | None = None
) -> SamplerReport:
    """Certify that the running sampler gives each value its exact probability.

    Claim: if the report is exact, then for every table the measure of bit strings that lead to value k is
    P(k) to 1e-37. Both ends of all 65,536 cells, and both sides of each boundary at 2^-64 and at 2^-128, lead to the
    right value, including open tails down to 2^-1536. This holds for each of the three ways to draw, each of which is
    tested with every word that 64 bits do not decide. Digits are drawn from separate bits and summed with the right
    powers of 256, also across the chunks of long arrays, and with draws that need more bits among them. The combined
    distribution of the tables has the pmf of `distribution`.

    For wide Gaussian noise, the candidates that are thinned are probed too: for each value of the table and several
    fine parts, both sides of the probability to be dropped, at 2^-192, and the value and sign of each that is kept.

    Assumptions: the bits are fair, and the code only compares them with its tables, so that nothing can change
    between two neighbouring probes.

    Example:
        >>> verify_sampler(DiscreteLaplace("2.5")).exact
        True
        >>> verify_sampler(DiscreteGaussian("2.5")).exact
        True
    """
    if isinstance(distribution, DiscreteGaussian):
        return _verify_gaussian(distribution, gaussian_sampler(distribution.scale) if sampler is None else sampler)
    if isinstance(sampler, Refined):
        return SamplerReport(distribution.scale, 1, 0, 0, ("this is a sampler of Gaussian noise",))
    two_sided = isinstance(distribution, DiscreteLaplace)
    if sampler is None:
        sampler = laplace_digits(distribution.scale) if two_sided else geometric_digits(distribution.scale)
    count = len(sampler.levels)
    if distribution.scale > _WIDEST * BASE ** (count - 1):
        return SamplerReport(distribution.scale, count, 0, 0, (f"{count} tables are too few for this scale",))
    findings: list[str] = []
    probes = 0
    with precision(_PRECISION):
        expected = expected_levels(distribution.scale, count, two_sided)
        pools = []
        for j, (level, truth) in enumerate(zip(sampler.levels, expected, strict=True)):
            far = _deep(_away(distribution.scale / BASE**j, two_sided), two_sided) if j == count - 1 else None
            check = TableCheck(level, truth, far)
            pools.append(check.pool)
            probes += check.probes
            findings += [f"table {j}: {finding}" for finding in check.findings]
        findings += _check_sum(sampler, pools)
        findings += differences(distribution, expected)
    values = sum(len(truth.masses) for truth in expected)
    return SamplerReport(distribution.scale, count, values, probes, tuple(findings))


def _verify_gaussian(distribution: DiscreteGaussian, sampler: Digits | Refined) -> SamplerReport:
    square, two_sided, shift = distribution.sigma_squared, isinstance(sampler, Digits), 0
    if isinstance(sampler, Refined):
        level, shift = sampler.coarse, sampler.shift
    elif len(sampler.levels) == 1:
        level = sampler.levels[0]
    else:
        return SamplerReport(square, len(sampler.levels), 0, 0, ("there must be one table",))
    coarse = square / 4**shift
    if coarse > 4 * TABLE:
        return SamplerReport(square, 1, 0, 0, ("the table is too narrow for this sigma",))
    with precision(_PRECISION):
        truth = gaussian_level(coarse, two_sided)
        far = gaussian_away(coarse, two_sided)
        check = TableCheck(level, truth, _deep(far, two_sided))
        findings, probes = [f"table 0: {finding}" for finding in check.findings], check.probes
        findings += _normaliser(coarse, truth, two_sided)
        if isinstance(sampler, Refined):
            more, found = check_thinning(sampler, square, truth)
            probes, findings = probes + more, findings + found
        else:
            findings += _check_sum(sampler, [check.pool])
    return SamplerReport(square, 1, len(truth.masses), probes, tuple(findings))


def _normaliser(square: Exact, truth: Expected, two_sided: bool) -> Iterator[str]:
    """Compare the plain sums with the pmf of the distribution, which is computed by Poisson summation."""
    whole = total(square) if two_sided else (total(square) + 1) / 2
    for k in (0, 1, 7, len(truth.masses) // 3):
        if 0 <= k - truth.first < len(truth.masses):
            apart = truth.masses[k - truth.first] * whole / weight(square, k) - 1
            if not abs(apart) < ball(Fraction(1, 10**30)):
                yield f"P({k}) differs from the pmf"


def _away(scale: Exact, two_sided: bool) -> Callable[[Exact], int]:
    """The last m for which P(X <= -m) and P(X >= m) exceed a mass, for exponential tails."""

    def away(mass: Exact) -> int:
        return floor(lambda: ball(scale) * -(ball(mass) * (1 + ball(-1 / scale).exp() if two_sided else 1)).log())

    return away


def _deep(away: Callable[[Exact], int], two_sided: bool) -> Probes:
    """Strings far out in the open tails: zeros, or ones, and then a half."""
    words, more, values = [], [], []
    for count in DEEP:
        value = away(Fraction(1, 2 << 64 * count))
        for filler, sign in ((bytes(8), -1), (b"\xff" * 8, 1)) if two_sided else ((b"\xff" * 8, 1),):
            words.append(int.from_bytes(filler, "little"))
            more.append(filler * (count - 1) + (1 << 63).to_bytes(8, "little"))
            values.append(sign * value)
    return Probes.from_lists(words, more, values)


# --- the sum of all tables --------------------------------------------------------------------


def _check_sum(sampler: Digits, pools: Sequence[tuple[Probes, Probes]]) -> Iterator[str]:
    """Draw known digits together and check their sum."""
    long = CHUNK + 64
    chosen, total = [], np.zeros(long, dtype=object)
    for j, (decided, fine) in enumerate(pools):
        # stride through the table; at every 512th position all digits need more bits, at the next ones a single digit
        places = (np.arange(long) * (2 * j + 1) * 7919) % len(decided)
        tied = np.flatnonzero(np.isin(np.arange(long) % 512, (0, j + 1)))
        places[tied] = len(decided) + np.arange(len(tied)) % len(fine)
        chosen.append((decided + fine)[places])
        total += chosen[-1].values.astype(object) * BASE**j
    small = [probes[:SMALL] for probes in chosen]
    yield from _compare_sums("single", total[:64], lambda: [_sum_one(sampler, chosen, i) for i in range(64)])
    yield from _compare_sums("array", total[:SMALL], lambda: _sum_array(sampler, SMALL, _few_script(small)))
    yield from _compare_sums("bulk", total, lambda: _sum_array(sampler, long, _many_script(sampler, chosen)))


def _compare_sums(name: str, total: NDArray[np.object_], draw: Callable[[], list[int]]) -> Iterator[str]:
    try:
        is_right = draw() == total.tolist()
    except Exception as error:  # as above
        yield f"{name} sums failed ({error})"
        return
    if not is_right:
        yield f"{name} draws do not sum their digits with the right powers of {BASE}"


def _sum_one(sampler: Digits, chosen: list[Probes], i: int) -> int:
    digits = [probes[i : i + 1] for probes in chosen]
    script = Script(b"".join(d.words.tobytes() for d in digits), *(p for d in reversed(digits) for p in d.pieces()))
    value = sampler.one(script)
    script.finish()
    return value


def _sum_array(sampler: Digits, count: int, parts: list[bytes | NDArray[Any]]) -> list[int]:
    script = Script(*parts)
    values: list[int] = sampler.array(count, script).tolist()
    script.finish()
    return values


def _few_script(chosen: list[Probes]) -> list[bytes | NDArray[Any]]:
    parts: list[bytes | NDArray[Any]] = []
    for probes in chosen:
        parts += [probes.words, *probes.pieces()]
    return parts


def _many_script(sampler: Digits, chosen: list[Probes]) -> list[bytes | NDArray[Any]]:
    """Bulk draws take 16 bits at a time, from the highest level of each group of seven, chunk by chunk."""
    parts: list[bytes | NDArray[Any]] = []
    levels = list(zip(sampler.levels, chosen, strict=True))
    for group in range(0, len(levels), GROUP):
        for start in range(0, len(chosen[0]), CHUNK):
            for level, probes in reversed(levels[group : group + GROUP]):
                piece = probes[start : start + CHUNK]
                parts += [piece.leading, *piece.rest(level), *piece.pieces()]
    return parts
