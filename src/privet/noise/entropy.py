"""Random bits: AES-256 in counter mode, keyed by the operating system."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from privet.errors import EntropyError

REKEY_AFTER = 1 << 24
"""The number of bytes drawn with one key."""

_ZEROS = bytes(1 << 16)


class Bits(Protocol):
    """A source of independent fair bits."""

    def take(self, count: int) -> bytes:
        """`count` fresh bytes."""

    def fill(self, array: NDArray[Any]) -> None:
        """Overwrite a contiguous array of unsigned integers with fresh bits."""


class _Stream:
    """The bits of one key, for one thread of one process."""

    __slots__ = ("cipher", "left", "process")

    def __init__(self) -> None:
        try:
            seed = os.urandom(48)
        except (OSError, NotImplementedError) as error:
            raise EntropyError("the operating system provided no random bits. Nothing was drawn") from error
        self.cipher: CipherContext = Cipher(algorithms.AES(seed[:32]), modes.CTR(seed[32:])).encryptor()
        self.left = REKEY_AFTER
        self.process = os.getpid()


class SystemBits:
    """The random bits of releases.

    Claim: the bits are the key stream of AES-256 in counter mode, whose key and first counter come from
    the operating system. No two threads, processes or keys share a stream: each thread has its own, a
    forked child discards the parent's, and a key is used for at most `REKEY_AFTER` bytes. There is no seed. If the
    operating system fails, `EntropyError` is raised and nothing is returned.

    Example:
        >>> len(SystemBits().take(16)), SystemBits().take(16) == SystemBits().take(16)
        (16, False)
    """

    def __init__(self) -> None:
        self._local = threading.local()
        _sources.add(self)

    def take(self, count: int) -> bytes:
        if count > len(_ZEROS):
            array = np.empty(count, dtype=np.uint8)
            self.fill(array)
            return array.tobytes()
        return self._stream(count).cipher.update(_ZEROS[:count])

    def fill(self, array: NDArray[Any]) -> None:
        view = array.data.cast("B")
        for start in range(0, len(view), len(_ZEROS)):
            part = view[start : start + len(_ZEROS)]
            size = len(part)
            self._stream(size).cipher.update_into(_ZEROS if size == len(_ZEROS) else _ZEROS[:size], part)

    def _stream(self, count: int) -> _Stream:
        stream: _Stream | None = getattr(self._local, "stream", None)
        if stream is None or stream.left < count or stream.process != os.getpid():
            stream = self._local.stream = _Stream()
        stream.left -= count
        return stream

    def _forget(self) -> None:
        self._local = threading.local()


_sources: weakref.WeakSet[SystemBits] = weakref.WeakSet()


def _forget_all() -> None:
    for source in _sources:
        source._forget()


if hasattr(os, "register_at_fork"):  # the process id is checked too, for forks that bypass Python
    os.register_at_fork(after_in_child=_forget_all)

SYSTEM = SystemBits()
"""The only source of random bits in the package."""
