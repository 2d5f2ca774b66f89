"""Prescribed bits, to observe what a running sampler does with a certain bit string."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.noise.inversion import UNDECIDED, Inversion

Words = NDArray[np.uint64]


class Script:
    """A source of prescribed bits; requesting other bits, or leaving some unused, is an error."""

    def __init__(self, *parts: bytes | NDArray[Any]) -> None:
        self._parts = [part if isinstance(part, bytes) else part.tobytes() for part in parts][::-1]

    def take(self, count: int) -> bytes:
        if not self._parts or len(self._parts[-1]) != count:
            raise LookupError("the sampler requested bits that an exact sampler would not need")
        return self._parts.pop()

    def fill(self, array: NDArray[Any]) -> None:
        array[:] = np.frombuffer(self.take(array.nbytes), dtype=array.dtype)

    def finish(self) -> None:
        """Check that all bits were used."""
        if self._parts:
            raise LookupError("the sampler did not use bits that an exact sampler would need")


@dataclass(frozen=True, slots=True)
class Probes:
    """Bit strings with known values: 64 bits each, and more bits if those do not decide."""

    words: Words
    more: NDArray[np.object_]
    values: NDArray[np.int64]

    @staticmethod
    def from_lists(words: Sequence[int], more: Sequence[bytes], values: Sequence[int]) -> Probes:
        """Probes from lists."""
        extra = np.empty(len(more), dtype=object)
        extra[:] = more
        return Probes(np.array(words, dtype=np.uint64), extra, np.array(values, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, at: slice | NDArray[Any]) -> Probes:
        return Probes(self.words[at], self.more[at], self.values[at])

    def __add__(self, other: Probes) -> Probes:
        words, more, values = (self.words, other.words), (self.more, other.more), (self.values, other.values)
        return Probes(np.concatenate(words), np.concatenate(more), np.concatenate(values))

    def pieces(self) -> Iterator[bytes]:
        """The additional bits, in pieces of eight bytes."""
        return (bits[i : i + 8] for bits in self.more if bits for i in range(0, len(bits), 8))

    @property
    def leading(self) -> NDArray[np.uint16]:
        """The first 16 bits of each."""
        return (self.words >> np.uint64(48)).astype(np.uint16)

    def rest(self, level: Inversion) -> list[Words]:
        """The other 48 bits, for the cells that contain a boundary."""
        undecided = level.cells[self.leading] == UNDECIDED
        return [self.words[undecided] << np.uint64(16)] if undecided.any() else []
