"""The cells of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Cell = int | float


@dataclass(frozen=True, slots=True)
class Cells:
    """One column of an answer: a value and an interval for each group, and whether the value is too noisy."""

    values: tuple[Cell, ...]
    low: tuple[Cell, ...]
    high: tuple[Cell, ...]
    noisy: tuple[bool, ...]

    def at(self, groups: Sequence[int]) -> Cells:
        """The cells of these groups, in this order."""
        parts = (self.values, self.low, self.high, self.noisy)
        values, low, high, noisy = (tuple(part[i] for i in groups) for part in parts)
        return Cells(values, low, high, noisy)  # type: ignore[arg-type]
