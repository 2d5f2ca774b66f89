"""Bars with error bars, in characters: for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.exact import Exact
from privet.planner.outputs import Cell
from privet.release.printing import Column, Keys, ends, places

_LINES = 60
_NARROWEST = 12


def chart(keys: Sequence[Keys], columns: Sequence[Column], width: int = 100) -> list[str]:
    """A panel for each column: a bar to each value, and over it its interval.

    Example:
        >>> from privet.planner.outputs import Cells
        >>> cells = Cells((30, 80), (20, 75), (40, 85), (False, False))
        >>> for line in chart([Keys("g", ["a", "b"])], [Column("n", cells, True)], width=40):
        ...     print(line)
        n
        a  ██████├──┼───┤                30 ± 10
        b  ████████████████████████├─┼┤  80 ± 5
    """
    panels = [_panel(_labels(keys, len(column.cells.values)), column, width) for column in columns]
    return [line for i, panel in enumerate(panels) for line in (*([""] if i else []), *panel)]


def _labels(keys: Sequence[Keys], groups: int) -> list[str]:
    texts = [key.texts() for key in keys]
    return [", ".join(text[i] for text in texts) for i in range(groups)]


def _panel(labels: list[str], column: Column, width: int) -> list[str]:
    cells = column.cells
    first, last = ends(len(labels), _LINES)
    chosen = [*first, *last]
    texts = [" ".join(part for part in column.texts(i) if part) for i in chosen]
    left = max((places(labels[i]) for i in chosen), default=0)
    right = max(map(places, texts), default=0)
    room = max(_NARROWEST, width - left - right - 4)
    drawn = [x for i in chosen for x in (cells.values[i], cells.low[i], cells.high[i])]
    seen = [Exact(0), *(Exact(x) for x in drawn if isinstance(x, int) or math.isfinite(x))]
    start, stop = min(seen), max(seen)
    unit = (stop - start) / room or Exact(1)

    def place(x: Cell) -> int:
        return min(room - 1, int((Exact(min(max(x, start), stop)) - start) / unit))

    lines = [column.name]
    for i, text in zip(chosen, texts, strict=True):
        bar = _bar(room, place(0), place(cells.values[i]), place(cells.low[i]), place(cells.high[i]))
        label = labels[i] + " " * (left - places(labels[i]))
        lines.append(f"{label}  {bar}  {text}".rstrip() if left else f"{bar}  {text}")
    if last:
        lines.insert(1 + len(first), f"... {len(labels) - len(chosen):,} more groups")
    return lines


def _bar(room: int, zero: int, value: int, low: int, high: int) -> str:
    line = [" "] * room
    for i in range(min(zero, value), max(zero, value) + 1):
        line[i] = "█"
    if high > low:
        for i in range(low, high + 1):
            line[i] = "─"
        line[value], line[low], line[high] = "┼", "├", "┤"
    return "".join(line)
