"""Exact verification of one table: every string of leading bits leads to the value that the definition says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.audit.expected import PROBE_BITS, Expected
from privet.audit.script import Probes, Script
from privet.noise.inversion import Inversion, Rare

Words = NDArray[np.uint64]

_LARGEST = (1 << 64) - 1
_CELLS = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)


class TableCheck:
    """The probes of one table, and what was found with them.

    `pool` are probes that 64 bits decide, and probes that they do not.
    """

    def __init__(self, level: Inversion, truth: Expected, deep: Probes | None = None) -> None:
        cells = _decided(truth, _CELLS, _CELLS + np.uint64((1 << 48) - 1))  # both ends of every cell
        near = _decided(truth, truth.prefixes - np.uint64(1), truth.prefixes + np.uint64(1))
        fine = _fine(truth)
        far = fine[:0] if deep is None else deep
        self.pool = (cells + near, far + fine)
        self.probes = 0
        self.findings: list[str] = []
        for name, draw, tested in _ways(cells, near, fine, far):
            self.probes += len(tested)
            self.findings += [f"{name} draws {finding}" for finding in _compare(level, draw, tested)]


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
