"""The contents of one panel of a picture: arrays, names, and the meaning of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from privet.plots.canvas import SERIES, Floats

MOST_SERIES = len(SERIES)
"""Maximum series side by side: the number of distinguishable colours."""
MOST_BARS = 60
"""Maximum bars side by side if labels can be left out; more are drawn as a line."""
MOST_DOTS = 24
"""The same for dots."""
MOST_LABELLED = 12
"""Maximum groups side by side if each needs its label; more are stacked."""

_NEAR = 1.0  # how far from the others a noisy value is near, of their range

_NARROW = frozenset(" .,:;'|!()[]{}/ijltfrI-1")

Mark = Literal["bars", "dots", "line", "spread"]


@dataclass(frozen=True, slots=True)
class Axis:
    """The groups, each with a label."""

    name: str
    labels: Sequence[str]
    ordered: bool = False
    """Whether they are equally spaced, like years, so that some labels are enough."""
    first: int = 0
    """The number of the first, on a scale on which multiples of `steps` are round."""
    steps: Sequence[int] = ()
    """None: there are no round numbers, and labels are turned before some are left out."""
    touching: bool = False
    """Whether bars leave no gap, as in a histogram."""

    @property
    def longest(self) -> float:
        """The approximate width of the longest label, in inches."""
        return max((inches(shortened(label)) for label in self.labels), default=0.0)

    @property
    def widest(self) -> float:
        """The approximate inches that a group needs so that no label touches the next."""
        widths = [inches(shortened(label)) for label in self.labels]
        return max(((a + b) / 2 for a, b in pairwise(widths)), default=0.0)

    def thinned(self, most: int) -> list[int]:
        """The positions of about this many labels, at round numbers if there are any.

        Example:
            >>> Axis("year", [str(y) for y in range(1871, 2017)], True, 1871, (5, 10, 20)).thinned(8)
            [9, 29, 49, 69, 89, 109, 129]
            >>> Axis("year", [str(y) for y in range(1985, 2017)], True, 1985, (5, 10, 20)).thinned(8)
            [0, 5, 10, 15, 20, 25, 30]
        """
        count = len(self.labels)
        if count <= most:
            return list(range(count))
        if self.ordered:
            for step in self.steps:
                ticks = [i for i in range(count) if (self.first + i) % step == 0]
                if 2 <= len(ticks) <= most:
                    return ticks
        return sorted({round(float(x)) for x in np.linspace(0, count - 1, max(2, most))})


@dataclass(frozen=True, slots=True)
class Panel:
    """A value with an interval for each series and group; some of them are noisy."""

    name: str
    axis: Axis
    values: Floats
    """One row for each series, one column for each group; so are the others."""
    low: Floats
    high: Floats
    noisy: NDArray[np.bool_]
    level: bool = False
    """Whether values are drawn as dots, like means, instead of bars from zero, like amounts."""
    series: Sequence[str] = ()
    by: str = ""
    """The title of the legend: what distinguishes the series."""
    text: str = ""
    """The text of a single value and its interval."""

    @property
    def groups(self) -> int:
        return len(self.axis.labels)

    @property
    def mark(self) -> Mark:
        """The kind of marks for groups side by side."""
        if self.axis.ordered:
            many = self.groups > MOST_DOTS if self.level else self.values.size > MOST_BARS
            return "line" if many else "dots" if self.level else "bars"
        return "spread" if self.values.size > MOST_BARS else "dots" if self.level else "bars"

    @property
    def reach(self) -> tuple[float, float]:
        """The range of the value axis: every value, every finite end of an interval, zero below bars; some room.

        Dots that are not noisy set the range where there are some: one wide interval must not make all others look
        alike. Noisy ones are in it by their values alone, if these are near, or more than the others.
        """
        finite = _finite(self.values, self.low, self.high)
        clear = ~self.noisy
        if self.level and clear.any() and self.noisy.any():
            steady = _finite(self.values[clear], self.low[clear], self.high[clear])
            beside = _finite(self.values[self.noisy])
            if steady.size and clear.sum() >= self.noisy.sum():
                room = _NEAR * (steady.max() - steady.min())
                beside = beside[(beside >= steady.min() - room) & (beside <= steady.max() + room)]
            finite = np.concatenate([steady, beside]) if steady.size else finite
        if not self.level or not finite.size:
            finite = np.append(finite, 0.0)
        bottom, top = float(finite.min()), float(finite.max())
        room = 0.06 * (top - bottom) or 0.06 * abs(top) or 1.0
        start = bottom if bottom == 0 and not self.level and not np.isneginf(self.low).any() else bottom - room
        return start, top + room


def _finite(*parts: Floats) -> Floats:
    everything: Floats = np.concatenate([part.ravel() for part in parts])
    return np.asarray(everything[np.isfinite(everything)], dtype=np.float64)


def inches(text: str) -> float:
    """The approximate width of a text in nine points.

    Example:
        >>> round(inches("north"), 2), round(inches("[65, 110]"), 2), round(inches("北海道"), 2)
        (0.32, 0.5, 0.38)
    """
    return sum(0.125 if east_asian_width(c) in "WF" else 0.045 if c in _NARROW else 0.078 for c in text)


def shortened(label: str) -> str:
    """A label, shortened to 32 characters."""
    return label if len(label) <= 32 else f"{label[:31]}…"
