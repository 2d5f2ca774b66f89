"""Bits that are given, not drawn: how to ask running code what it does with a certain string."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.noise.inversion import UNDECIDED, Inversion

Words = NDArray[np.uint64]


class Script:
    """A source of bits that are given, not drawn; asking for other bits, or leaving some, is an error."""

    def __init__(self, *parts: bytes | NDArray[Any]) -> None:
        self._parts = [part if isinstance(part, bytes) else part.tobytes() for part in parts][::-1]

    def take(self, count: int) -> bytes:
        if not self._parts or len(self._parts[-1]) != count:
            raise LookupError("the sampler asked for bits that an exact one would not need")
        return self._parts.pop()

    def fill(self, array: NDArray[Any]) -> None:
        array[:] = np.frombuffer(self.take(array.nbytes), dtype=array.dtype)

    def finish(self) -> None:
        """Nothing may be left."""
        if self._parts:
            raise LookupError("the sampler did not use bits that an exact one would need")


@dataclass(frozen=True, slots=True)
class Probes:
    """Bit strings whose values are known: 64 bits each, and further bits where those do not decide."""

    words: Words
    more: NDArray[np.object_]
    values: NDArray[np.int64]

    @staticmethod
    def of(words: Sequence[int], more: Sequence[bytes], values: Sequence[int]) -> Probes:
        """Probes from lists."""
        further = np.empty(len(more), dtype=object)
        further[:] = more
        return Probes(np.array(words, dtype=np.uint64), further, np.array(values, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, at: slice | NDArray[Any]) -> Probes:
        return Probes(self.words[at], self.more[at], self.values[at])

    def __add__(self, other: Probes) -> Probes:
        words, more, values = (self.words, other.words), (self.more, other.more), (self.values, other.values)
        return Probes(np.concatenate(words), np.concatenate(more), np.concatenate(values))

    def pieces(self) -> Iterator[bytes]:
        """The further bits, which are asked for eight bytes at a time."""
        return (bits[i : i + 8] for bits in self.more if bits for i in range(0, len(bits), 8))

    @property
    def leading(self) -> NDArray[np.uint16]:
        """The first 16 bits of each."""
        return (self.words >> np.uint64(48)).astype(np.uint16)

    def rest(self, level: Inversion) -> list[Words]:
        """The other 48 bits, for cells that hold a boundary, if there are such."""
        undecided = level.cells[self.leading] == UNDECIDED
        return [self.words[undecided] << np.uint64(16)] if undecided.any() else []
