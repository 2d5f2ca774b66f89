"""Exact verification of `Refined`: which candidates it keeps, and which value each becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.audit.expected import Expected
from privet.audit.script import Probes, Script
from privet.exact import Exact, ball
from privet.noise.digits import SMALL
from privet.noise.refinement import Refined

BULK_BITS = 31
"""The largest number of fine bits for which long arrays have a way of their own to draw."""

_LONG = SMALL + 64
_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A coarse value with a word that leads to it, a fine part, a sign, and a uniform real with many known bits."""

    q: int
    word: int
    r: int
    negative: bool
    uniform: int
    """The first 192 bits of the uniform real."""
    boundary: int
    """The first 192 bits of the probability to be dropped."""

    def more(self, length: int) -> list[bytes]:
        """The bits that are needed after the first `length`: as long as they are those of the boundary."""
        pieces: list[bytes] = []
        while self.boundary and length < 192 and self.uniform >> 192 - length == self.boundary >> 192 - length:
            pieces.append(((self.uniform << length) >> 128 & _WORD).to_bytes(8, "little"))
            length += 64
        return pieces

    def value(self, shift: int) -> int | None:
        """What it becomes; None if it is dropped."""
        size = (self.q << shift) + self.r
        if self.uniform < self.boundary or (self.negative and not size):
            return None
        return -size if self.negative else size


def check_thinning(sampler: Refined, sigma_squared: Exact, truth: Expected) -> tuple[int, list[str]]:
    """The number of probes, and what was found: both sides of each boundary, for each way to draw.

    Claim: a candidate (q, r) is dropped with probability 1 - e^-x, x = ((2^b q + r)^2 - (2^b q)^2) / (2 sigma^2).
    """
    candidates = list(_candidates(sampler.shift, sigma_squared, truth))
    ways: list[tuple[str, Callable[..., list[int]], int, Sequence[Candidate]]] = [
        ("single", _draw_one, 1, candidates[::3]),
        ("array", _draw_few, SMALL, candidates),
        ("bulk", _draw_bulk if sampler.shift <= BULK_BITS else _draw_few, _LONG, candidates),
    ]
    fallback = Candidate(1, _word_of(truth, 1), 0, True, (1 << 192) - 1, 0)
    findings = []
    for name, draw, size, probes in ways:
        try:
            wrong = list(_wrong(sampler, draw, size, probes, fallback))
        except Exception as error:  # any failure of a broken sampler is a finding
            findings.append(f"{name} candidates failed ({error})")
            continue
        findings += [f"{name} candidates: {text}" for text in wrong[:1]]
    return sum(len(probes) for *_, probes in ways), findings


def _candidates(shift: int, sigma_squared: Exact, truth: Expected) -> Iterator[Candidate]:
    size = 1 << shift
    fine = set(range(size)) if shift < 4 else {0, 1, size // 3, size // 2 + 1, size - 1}
    flip = False
    for q in range(len(truth.masses)):
        word = _word_of(truth, q)
        if word < 0:
            continue
        for r in sorted(fine):
            exponent = ball(Exact((q * size + r) ** 2 - (q * size) ** 2) / (2 * sigma_squared))
            boundary = int((-(-exponent).expm1() * 2**192).floor().fmpz()) if r else 0
            if r and not boundary:
                continue  # below 2^-192
            for uniform in (boundary - 1, boundary + 1) if r else (0,):
                flip = not flip
                yield Candidate(q, word, r, flip, uniform, boundary)


def _word_of(truth: Expected, q: int) -> int:
    """A word in the middle of the values that lead to q; -1 if 64 bits do not decide q."""
    low = int(truth.prefixes[q - 1]) if q else 0
    high = int(truth.prefixes[q])
    return (low + high) // 2 if high - low > 4 else -1


def _wrong(
    sampler: Refined, draw: Callable[..., list[int]], size: int, probes: Sequence[Candidate], fallback: Candidate
) -> Iterator[str]:
    """The first candidate that does not become what it should; where one is dropped, `fallback` comes next."""
    instead = fallback.value(sampler.shift)
    for start in range(0, len(probes), size):
        part = list(probes[start : start + size])
        part += part[:1] * (size - len(part))  # the way to draw depends on the number
        expected = [instead if (v := each.value(sampler.shift)) is None else v for each in part]
        found = draw(sampler, part, fallback)
        for each, right, value in zip(part, expected, found, strict=True):
            if value != right:
                yield f"q = {each.q}, r = {each.r} gives {value} instead of {right}"


# --- the bits that each way to draw takes ---------------------------------------------------------


def _fine_words(sampler: Refined, each: Candidate) -> list[int]:
    """R, then ones, then the sign."""
    count = sampler.shift // 64 + 1
    length = 64 * count
    joined = each.r << (length - sampler.shift) | ((1 << length - sampler.shift) - 2) | each.negative
    return [joined >> 64 * (count - 1 - i) & _WORD for i in range(count)]


def _draw_one(sampler: Refined, part: list[Candidate], fallback: Candidate) -> list[int]:
    pieces = []
    for each in (*part, *([fallback] if part[0].value(sampler.shift) is None else [])):
        words = [each.word, each.uniform >> 128, *_fine_words(sampler, each)]
        pieces += [np.array(words, dtype=np.uint64).tobytes(), *each.more(64)]
    script = Script(*pieces)
    value = sampler.one(script)
    script.finish()
    return [value]


def _draw_few(sampler: Refined, part: list[Candidate], fallback: Candidate) -> list[int]:
    pieces: list[bytes | NDArray[Any]] = []
    for group in _rounds(sampler, part, fallback):
        pieces += [_array(each.word for each in group), _array(each.uniform >> 128 for each in group)]
        pieces += [_array(row) for row in zip(*(_fine_words(sampler, each) for each in group), strict=True)]
        pieces += [piece for each in group for piece in each.more(64)]
    return _array_of(sampler, len(part), pieces)


def _draw_bulk(sampler: Refined, part: list[Candidate], fallback: Candidate) -> list[int]:
    pieces: list[bytes | NDArray[Any]] = []
    for group in _rounds(sampler, part, fallback):
        coarse = Probes.from_lists([each.word for each in group], [b""] * len(group), [each.q for each in group])
        pieces += [coarse.leading, *coarse.rest(sampler.coarse)]
        halves = [_fine_words(sampler, each)[0] >> 33 << 1 | each.negative for each in group]
        pieces.append(_array(h << 32 | each.uniform >> 160 for h, each in zip(halves, group, strict=True)))
        pieces += [piece for each in group for piece in each.more(32)]
    return _array_of(sampler, len(part), pieces)


def _rounds(sampler: Refined, part: list[Candidate], fallback: Candidate) -> Iterator[list[Candidate]]:
    """All candidates, and then those that come after the dropped ones."""
    yield part
    dropped = sum(each.value(sampler.shift) is None for each in part)
    if dropped:
        yield [fallback] * dropped


def _array(words: Any) -> NDArray[np.uint64]:
    return np.array(list(words), dtype=np.uint64)


def _array_of(sampler: Refined, count: int, pieces: list[bytes | NDArray[Any]]) -> list[int]:
    script = Script(*pieces)
    values: list[int] = sampler.array(count, script).tolist()
    script.finish()
    return values
