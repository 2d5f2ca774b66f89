"""Exact verification of a running sampler: not samples and statistics, but every cell of its tables.

A draw is a walk through finite tables, so what the code does with *every* string of leading bits can be
enumerated. The expected boundaries are computed here anew, from the definition (sums of exponentials, and for a
difference of digits the product of two polynomials), not from the formulas that built the tables.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, arb_poly
from numpy.typing import NDArray

from privet.errors import InternalError
from privet.exact import Exact, ball, ends, precision, show
from privet.noise import DiscreteLaplace, Geometric
from privet.noise.digits import BASE, SMALL, Digits
from privet.noise.geometric import geometric_digits
from privet.noise.inversion import UNDECIDED, Inversion
from privet.noise.laplace import laplace_digits

PROBE_BITS = 112
"""Boundaries are probed on both sides to 2^-112, so each value's measure is known to 2^-110, below 1e-30."""

_PRECISION = 512
_CELLS = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class SamplerReport:
    """What an exact verification did, and what it found."""

    scale: Exact
    levels: int
    values: int
    probes: int
    findings: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether nothing was found: each value's measure is its exact probability, to 1e-30."""
        return not self.findings

    def __str__(self) -> str:
        verdict = "exact" if self.exact else "NOT EXACT: " + "; ".join(self.findings)
        return f"scale {show(self.scale)}: {self.levels} tables, {self.values} values, {self.probes} probes: {verdict}"


class Script:
    """A source of bits that are given, not drawn; running out of them is an error."""

    def __init__(self, *parts: bytes | NDArray[Any]) -> None:
        self._parts = [part if isinstance(part, bytes) else part.tobytes() for part in parts]

    def take(self, count: int) -> bytes:
        return self._next(count)

    def fill(self, array: NDArray[Any]) -> None:
        array[:] = np.frombuffer(self._next(array.nbytes), dtype=array.dtype)

    def _next(self, count: int) -> bytes:
        if not self._parts or len(self._parts[0]) != count:
            raise LookupError("the sampler asked for bits that an exact one would not need")
        return self._parts.pop(0)


class Expected:
    """One level's distribution from its definition: F(first), F(first + 1), ... as Arb balls."""

    def __init__(self, first: int, masses: Sequence[arb], below: arb) -> None:
        self.first = first
        self.masses = masses
        self.boundaries: list[arb] = []
        total = below
        for mass in masses:
            total = total + mass
            self.boundaries.append(total)
        self.fine = [_leading_bits(b) for b in self.boundaries]
        self.prefixes: Words = np.array([b >> PROBE_BITS - 64 for b in self.fine], dtype=np.uint64)

    def values(self, words: Words) -> NDArray[np.int64]:
        """The value that 64 bits decide."""
        return self.first + np.searchsorted(self.prefixes, words, side="right")


def _leading_bits(boundary: arb) -> int:
    """floor(2^112 F); a boundary that can't be told from 1 gets the last string of bits."""
    known = ends(boundary * arb(2) ** PROBE_BITS)
    low, high = math.floor(known.lower), math.floor(known.upper)
    if low != high and high < 1 << PROBE_BITS:
        raise InternalError("an expected boundary is not sharp enough; this is probably a bug in Privet")
    return min(low, (1 << PROBE_BITS) - 1)


def verify_sampler(distribution: DiscreteLaplace | Geometric, sampler: Digits | None = None) -> SamplerReport:
    """Certify that the running sampler gives each value its exact probability.

    Claim: if the report is exact, then for every table the measure of bit strings that lead to value k is
    P(k) to 1e-30: all 65,536 cells are enumerated, and both sides of each boundary are probed at 2^-64 and at 2^-112,
    open tails included, in each of the three ways of drawing; the values are summed with the right powers of 256;
    and the tables' distributions together have the pmf of `distribution`.

    Example:
        >>> verify_sampler(DiscreteLaplace("2.5")).exact
        True
    """
    two_sided = isinstance(distribution, DiscreteLaplace)
    if sampler is None:
        sampler = laplace_digits(distribution.scale) if two_sided else geometric_digits(distribution.scale)
    findings: list[str] = []
    probes = 0
    with precision(_PRECISION):
        expected = expected_levels(distribution.scale, len(sampler.levels), two_sided)
        for j, (level, truth) in enumerate(zip(sampler.levels, expected, strict=True)):
            for finding in _check_level(level, truth):
                if isinstance(finding, int):
                    probes += finding
                else:
                    findings.append(f"table {j}: {finding}")
        findings += _check_sum(sampler, expected)
        findings += _check_pmf(distribution, expected)
    values = sum(len(truth.masses) for truth in expected)
    return SamplerReport(distribution.scale, len(expected), values, probes, tuple(findings))


@lru_cache(maxsize=4)
def expected_levels(scale: Exact, count: int, two_sided: bool) -> tuple[Expected, ...]:
    """The distributions that `count` levels of a sampler must have, lowest digit first."""
    levels = []
    for _ in range(count - 1):
        weights = [ball(-k / scale).exp() for k in range(BASE)]
        if two_sided:
            product = arb_poly(weights) * arb_poly(weights[::-1])
            weights = [product[i] for i in range(2 * BASE - 1)]
        total = sum(weights, arb(0))
        levels.append(Expected(1 - BASE if two_sided else 0, [w / total for w in weights], arb(0)))
        scale /= BASE
    reach = int(140 * scale) + 2  # e^-140 < 2^-200: the mass beyond is below what is probed
    weights = [ball(-abs(k) / scale).exp() for k in range(-reach if two_sided else 0, reach + 1)]
    beyond = ball(Fraction(-reach - 1) / scale).exp() / (1 - ball(-1 / scale).exp())
    total = sum(weights, arb(0)) + (2 * beyond if two_sided else beyond)
    masses = [w / total for w in weights]
    levels.append(Expected(-reach if two_sided else 0, masses, beyond / total if two_sided else arb(0)))
    return tuple(levels)


def _check_level(level: Inversion, truth: Expected) -> Iterator[int | str]:
    """Yield how many probes were made, and what was found."""
    if np.any(level.prefixes[1:] < level.prefixes[:-1]):
        yield "its boundaries are not in order"
    inner = truth.prefixes[(truth.prefixes > 0) & (truth.prefixes < (1 << 64) - 1)]
    near = np.concatenate([inner - np.uint64(1), inner + np.uint64(1)])
    words = np.concatenate([_CELLS, _CELLS + np.uint64((1 << 48) - 1), near])
    # 0 and 2^64 - 1 stand for open tails, which fine probes cover; a word that equals a boundary's prefix is undecided
    edge = (words == 0) | (words == (1 << 64) - 1)
    words = words[~np.isin(words, truth.prefixes) & ~edge]
    wanted = truth.values(words)
    yield from _compare("bulk", words, wanted, lambda: _draw_many(level, words))
    yield from _compare("array", words, wanted, lambda: _draw_few(level, words))
    near = near[~np.isin(near, truth.prefixes)]
    yield from _compare("single", near, truth.values(near), lambda: [level.one(int(w), Script()) for w in near])
    yield from _check_fine(level, truth)


def _check_fine(level: Inversion, truth: Expected) -> Iterator[int | str]:
    strings, wanted = [], []
    padded = [0, *truth.fine, 1 << PROBE_BITS]
    for i, fine in enumerate(truth.fine):
        if min(fine - padded[i], padded[i + 2] - fine) > 4:  # closer together than that: less than 1e-30 in all
            strings += [fine - 1, fine + 1]
            wanted += [truth.first + i, truth.first + i + 1]
    yield from _compare("refined", strings, wanted, lambda: [_draw_fine(level, string) for string in strings])


def _compare(name: str, asked: Sequence[Any] | Words, wanted: Any, draw: Any) -> Iterator[int | str]:
    yield len(asked)
    try:
        got = np.asarray(draw())
    except (LookupError, ArithmeticError) as error:
        yield f"{name} draws failed ({error})"
        return
    wrong = np.flatnonzero(got != np.asarray(wanted))
    if len(wrong):
        at = int(wrong[0])
        yield f"{name} draws give {got[at]} where {wanted[at]} is right, at {len(wrong)} of {len(asked)} probes"


def _draw_many(level: Inversion, words: Words) -> NDArray[np.int16]:
    leading = (words >> np.uint64(48)).astype(np.uint16)
    open_cells = level.cells[leading] == UNDECIDED
    out = np.empty(len(words), dtype=np.int16)
    level.many(leading, out, Script(words[open_cells] << np.uint64(16)) if open_cells.any() else Script())
    return out


def _draw_few(level: Inversion, words: Words) -> NDArray[np.int64]:
    return level.few(words, Script())[0]


def _draw_fine(level: Inversion, string: int) -> int:
    word, rest = divmod(string, 1 << PROBE_BITS - 64)
    return level.one(word, Script(struct.pack("<Q", rest << 128 - PROBE_BITS)))


def _check_sum(sampler: Digits, expected: tuple[Expected, ...]) -> Iterator[str]:
    """Draw known digits together and look at their sum."""
    count = SMALL + 1
    words, total = [], np.zeros(count, dtype=object)
    for j, (level, truth) in enumerate(zip(sampler.levels, expected, strict=True)):
        decided = np.flatnonzero(level.cells != UNDECIDED)  # spread over the cells with a stride that visits all
        cells = decided[(np.arange(count) * (2 * j + 1) * 7919) % len(decided)].astype(np.uint64)
        words.append(cells << np.uint64(48) | np.uint64(1 << 47))
        total += truth.values(words[-1]).astype(object) * BASE**j
    ways: dict[str, Callable[[], Iterable[int]]] = {
        "single": lambda: [sampler.one(Script(b"".join(w[i].tobytes() for w in words))) for i in range(64)],
        "array": lambda: sampler.array(SMALL, Script(*(w[:SMALL] for w in words))),
        "bulk": lambda: sampler.array(count, Script(*_bulk_order(words))),
    }
    for name, draw in ways.items():
        try:
            got = list(draw())
        except LookupError as error:
            yield f"{name} sums failed ({error})"
            continue
        if got != total[: len(got)].tolist():
            yield f"{name} draws do not add up their digits with the powers of {BASE}"


def _bulk_order(words: list[Words]) -> list[NDArray[np.uint16]]:
    """Bulk draws take 16 bits at a time, from the highest level of each group of seven."""
    leading = [(w >> np.uint64(48)).astype(np.uint16) for w in words]
    groups = [leading[start : start + 7] for start in range(0, len(leading), 7)]
    return [part for group in groups for part in reversed(group)]


def _check_pmf(distribution: DiscreteLaplace | Geometric, expected: tuple[Expected, ...]) -> Iterator[str]:
    """The digits' distributions together against the closed-form pmf, near zero, at carries and far out."""
    scale = distribution.scale
    two_sided = isinstance(distribution, DiscreteLaplace)
    far = [int(scale * t) for t in (Fraction(1, 3), 1, 3, 10, 40)]
    points = {*range(300), *(BASE**j + d for j in range(len(expected)) for d in (-1, 0, 1)), *far}
    q = ball(-1 / scale).exp()
    centre = (1 - q) / (1 + q) if two_sided else 1 - q
    memo: dict[tuple[int, int], arb] = {}
    points = {x for x in points if x <= max(1, 100 * scale)}
    for x in sorted(points | {-p for p in points} if two_sided else points):
        closed = centre * ball(-abs(x) / scale).exp()
        apart = ends(_mass(expected, 0, x, memo) / closed - 1)
        if not -Fraction(1, 10**30) < apart.lower <= apart.upper < Fraction(1, 10**30):
            yield f"P({x}) of the digits together is not the pmf: relative difference {float(apart):.3g}"
            return


def _mass(expected: tuple[Expected, ...], j: int, x: int, memo: dict[tuple[int, int], arb]) -> arb:
    """P(sum over i >= j of 256^(i-j) X_i = x)."""
    if (j, x) not in memo:
        truth = expected[j]
        if j == len(expected) - 1:
            inside = 0 <= x - truth.first < len(truth.masses)
            memo[j, x] = truth.masses[x - truth.first] if inside else arb(0)
        else:
            digit = x % BASE
            choices = [d for d in (digit, digit - BASE) if 0 <= d - truth.first < len(truth.masses)]
            parts = (truth.masses[d - truth.first] * _mass(expected, j + 1, (x - d) // BASE, memo) for d in choices)
            memo[j, x] = sum(parts, arb(0))
    return memo[j, x]
