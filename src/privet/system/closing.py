"""What is closed at the end of a `with` block."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self


class Closing:
    """A context manager that closes itself."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()
