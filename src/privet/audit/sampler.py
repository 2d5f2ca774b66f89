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

from privet.audit.expected import PROBE_BITS, Expected, differences, expected_levels
from privet.audit.script import Probes, Script
from privet.exact import Exact, ball, floor, precision, show
from privet.noise import DiscreteLaplace, Geometric
from privet.noise.digits import BASE, CHUNK, GROUP, SMALL, Digits
from privet.noise.geometric import geometric_digits
from privet.noise.inversion import Inversion, Rare
from privet.noise.laplace import laplace_digits

DEEP = (4, 24)
"""The numbers of 64-bit words of zeros (or ones) that lead into the open tails, as far as 2^-1536."""

_PRECISION = 384
_LARGEST = (1 << 64) - 1
_CELLS = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
_WIDEST = 256  # an open table of a larger scale would have too many values to enumerate, and to fit 16 bits

Words = NDArray[np.uint64]


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


def verify_sampler(distribution: DiscreteLaplace | Geometric, sampler: Digits | None = None) -> SamplerReport:
    """Certify that the running sampler gives each value its exact probability.

    Claim: if the report is exact, then for every table the measure of bit strings that lead to value k is
    P(k) to 1e-37. Both ends of all 65,536 cells, and both sides of each boundary at 2^-64 and at 2^-128, lead to the
    right value, including open tails down to 2^-1536. This holds for each of the three ways to draw, each of which is
    tested with every word that 64 bits do not decide. Digits are drawn from separate bits and summed with the right
    powers of 256, also across the chunks of long arrays, and with draws that need more bits among them. The combined
    distribution of the tables has the pmf of `distribution`.

    Assumptions: the bits are fair, and the code only compares them with its tables, so that nothing can change
    between two neighbouring probes.

    Example:
        >>> verify_sampler(DiscreteLaplace("2.5")).exact
        True
    """
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
            cells = _decided(truth, _CELLS, _CELLS + np.uint64((1 << 48) - 1))  # both ends of every cell
            near = _decided(truth, truth.prefixes - np.uint64(1), truth.prefixes + np.uint64(1))
            fine = _fine(truth)
            deep = _deep(distribution.scale / BASE**j, two_sided) if j == count - 1 else fine[:0]
            pools.append((cells + near, deep + fine))
            for name, draw, tested in _ways(cells, near, fine, deep):
                probes += len(tested)
                findings += [f"table {j}: {name} draws {finding}" for finding in _compare(level, draw, tested)]
        findings += _check_sum(sampler, pools)
        findings += differences(distribution, expected)
    values = sum(len(truth.masses) for truth in expected)
    return SamplerReport(distribution.scale, count, values, probes, tuple(findings))


# --- probes -----------------------------------------------------------------------------------


def _decided(truth: Expected, *parts: Words) -> Probes:
    """The words that 64 bits decide."""
    words = np.concatenate(parts)
    # a word that equals a boundary's prefix is undecided; 0 and 2^64 - 1 belong to open tails
    words = words[~np.isin(words, truth.prefixes) & (words > 0) & (words < _LARGEST)]
    return Probes(words, np.full(len(words), b"", dtype=object), truth.values(words))


def _fine(truth: Expected) -> Probes:
    """Strings next to a boundary at 2^-128; nearly all share their first 64 bits with it."""
    strings, values = [], []
    padded = [0, *truth.fine, 1 << PROBE_BITS]
    for i, fine in enumerate(truth.fine):
        if min(fine - padded[i], padded[i + 2] - fine) > 4:  # closer boundaries have a total mass below 1e-37
            strings += [fine - 1, fine + 1]
            values += [truth.first + i, truth.first + i + 1]
    words, prefixes = [string >> 64 for string in strings], set(truth.prefixes.tolist())
    more = [string.to_bytes(16, "little")[:8] if string >> 64 in prefixes else b"" for string in strings]
    return Probes.from_lists(words, more, values)


def _deep(scale: Exact, two_sided: bool) -> Probes:
    """Strings far out in the open tails: zeros, or ones, and then a half."""

    def away(mass: Exact) -> int:  # the last m for which P(X <= -m) and P(X >= m) exceed `mass`
        return floor(lambda: ball(scale) * -(ball(mass) * (1 + ball(-1 / scale).exp() if two_sided else 1)).log())

    words, more, values = [], [], []
    for count in DEEP:
        value = away(Fraction(1, 2 << 64 * count))
        for filler, sign in ((bytes(8), -1), (b"\xff" * 8, 1)) if two_sided else ((b"\xff" * 8, 1),):
            words.append(int.from_bytes(filler, "little"))
            more.append(filler * (count - 1) + (1 << 63).to_bytes(8, "little"))
            values.append(sign * value)
    return Probes.from_lists(words, more, values)


# --- one table --------------------------------------------------------------------------------


Draw = Callable[[Inversion, Probes], NDArray[Any]]


def _ways(cells: Probes, near: Probes, fine: Probes, deep: Probes) -> Iterator[tuple[str, Draw, Probes]]:
    """The probes for each way to draw."""
    under = np.unique(fine.words, return_index=True)[1]
    over = len(fine) - 1 - np.unique(fine.words[::-1], return_index=True)[1]
    yield "bulk", _draw_many, cells + near + fine[over] + deep
    yield "array", _draw_few, cells + near + fine[under] + deep
    yield "single", _draw_one, near + fine + deep


def _compare(level: Inversion, draw: Draw, probes: Probes) -> Iterator[str]:
    try:
        values = draw(level, probes)
    except Exception as error:  # any failure of a broken sampler is a finding
        yield f"failed ({error})"
        return
    wrong = np.flatnonzero(values != probes.values)
    if len(wrong):
        at = wrong[0]
        yield f"give {values[at]} instead of {probes.values[at]}, wrong at {len(wrong)} of {len(values)} probes"


def _draw_one(level: Inversion, probes: Probes) -> NDArray[Any]:
    values = []
    for word, more in zip(probes.words.tolist(), probes.more, strict=True):
        script = Script(*(more[i : i + 8] for i in range(0, len(more), 8)))
        values.append(level.one(word, script))
        script.finish()
    return np.array(values, dtype=object)


def _draw_few(level: Inversion, probes: Probes) -> NDArray[Any]:
    script = Script(*probes.pieces())
    values, rare = level.few(probes.words, script)
    script.finish()
    return _put(values, rare)


def _draw_many(level: Inversion, probes: Probes) -> NDArray[Any]:
    script = Script(*probes.rest(level), *probes.pieces())
    values = np.empty(len(probes), dtype=np.int16)
    rare = level.many(probes.leading, values, script)
    script.finish()
    return _put(values, rare)


def _put(values: NDArray[Any], rare: Rare) -> NDArray[np.int64]:
    placed = values.astype(np.int64)
    for at, value in rare:
        placed[at] += value
    return placed


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
