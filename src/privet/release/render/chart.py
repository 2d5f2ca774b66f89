"""Bars and dots with error bars, in characters: for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from privet.exact import Exact
from privet.planner.outputs import Cell
from privet.release.render.text import cut, ends, numbers, places, table
from privet.release.render.view import Column, Keys, View, joined, marks
from privet.system.lines import folded as fold
from privet.tables.aggregates import Histogram
from privet.tables.expressions.rendering import show

LEAST_WIDTH = 40
"""A terminal that is narrower is taken for this wide."""

_LINES = 60
_NARROWEST, _LABEL = 12, 8  # places for a bar, and for a label that is cut


def chart(view: View, width: int = 100) -> str:
    """The panels of an answer, and below them the notes."""
    lines = [line for panel in together(view) for line in (*panels(*panel, width), "")]
    if not view.columns:  # keys alone
        lines = [*table(view.keys, ()), ""]
    return "\n".join([*lines, *folded(view.notes, width)])


def panels(keys: Sequence[Keys], columns: Sequence[Column], width: int = 100) -> list[str]:
    """A panel for each column: a bar to each value, or a dot for a mean, and over it its interval.

    What is noisy has a pale bar or an open dot, and a `~` before its number. Where an interval hides a whole bar, the
    end of the bar stays visible.

    Claim: no line is wider than `width`, unless numbers alone leave no room.

    Example:
        >>> from privet.planner.outputs import Cells
        >>> cells = Cells((30, 80, 10), (20, 75, -10), (40, 85, 30), (True, False, True))
        >>> for line in panels([Keys("g", ["a", "b", "c"])], [Column("n", cells, True)], width=40):
        ...     print(line)
        n
        a    ░░░░░░├──┼──┤              ~30 ± 10
        b    ██████████████████████├┼┤   80 ± 5
        c  ├────░─────┤                 ~10 ± 20
    """
    labels = _labels(keys, len(columns[0].cells.values))
    drawn = [_panel(labels, column, max(width, LEAST_WIDTH)) for column in columns]
    return [line for i, panel in enumerate(drawn) for line in (*([""] if i else []), *panel)]


def folded(notes: Sequence[str], width: int) -> list[str]:
    """Notes in lines of this width."""
    return [line for note in notes for line in fold(note, max(width, LEAST_WIDTH))]


def together(view: View) -> list[tuple[Sequence[Keys], Sequence[Column]]]:
    """Which columns are charted together, and with which keys: without keys, the bins of a histogram are its keys."""
    if view.keys:
        return [(view.keys, view.columns)] if view.columns else []
    query = view.query
    types, shown = query.input.types(), {column.name: column for column in view.columns}
    panels: list[tuple[Sequence[Keys], Sequence[Column]]] = []
    for name, what in query.aggregates:
        parts = [shown[each] for each in query.columns()[name] if each in shown]
        if parts and isinstance(what, Histogram):
            bins = Keys(show(what.expression.operand), what.expression.type(types).keys())
            panels.append(([bins], [replace(parts[0], name=name, cells=joined([part.cells for part in parts]))]))
        elif parts:
            panels.append(([], parts))
    panels += [([], [shown[name]]) for name, _ in query.arrangement.computed if name in shown]
    return panels


def _labels(keys: Sequence[Keys], groups: int) -> list[str]:
    texts = [key.texts() for key in keys]
    return [", ".join(text[i] for text in texts) for i in range(groups)]


def _panel(labels: list[str], column: Column, width: int) -> list[str]:
    cells = column.cells
    first, last = ends(len(labels), _LINES)
    chosen = [*first, *last]
    names, texts = _fitted([labels[i] for i in chosen], [column.texts(i) for i in chosen], width)
    left = max(map(places, names), default=0)
    room = max(_LABEL, width - left - max(map(places, texts), default=0) - (4 if left else 2))
    drawn = [x for i in chosen for x in (cells.values[i], cells.low[i], cells.high[i])]
    seen = [Exact(x) for x in drawn if isinstance(x, int) or math.isfinite(x)]
    if not column.level or not seen:
        seen.append(Exact(0))
    start, stop = min(seen), max(seen)
    unit = (stop - start) / room or Exact(1)

    def place(x: Cell) -> int:
        return min(room - 1, int((Exact(min(max(x, start), stop)) - start) / unit))

    def wide(low: Cell, high: Cell) -> bool:
        """Whether an interval has room for both of its ends; a narrower one would show or not by chance."""
        ends = [x for x in (low, high) if isinstance(x, int) or math.isfinite(x)]
        return len(ends) < 2 or Exact(ends[1]) - Exact(ends[0]) >= 2 * unit

    lines = [cut(column.name, width)]
    for i, name, text in zip(chosen, names, texts, strict=True):
        if cells.values[i] != cells.values[i]:  # missing
            lines.append(f"{name}{' ' * (left - places(name))}  {' ' * room}  {text}".rstrip())
            continue
        spots = (place(cells.values[i]), place(cells.low[i]), place(cells.high[i]))
        zero = None if column.level else place(0)
        bar = _bar(room, zero, *spots, noisy=marks(cells)[i], wide=wide(cells.low[i], cells.high[i]))
        lines.append(f"{name}{' ' * (left - places(name))}  {bar}  {text}".rstrip() if left else f"{bar}  {text}")
    if last:
        lines.insert(1 + len(first), f"... {len(labels) - len(chosen):,} more groups")
    return lines


def _fitted(labels: list[str], texts: list[tuple[str, str]], width: int) -> tuple[list[str], list[str]]:
    """Labels that are cut, and numbers without their intervals, as far as it takes to leave room for a bar."""
    shortest = min(max(map(places, labels), default=0), _LABEL)

    def fitted(texts: list[tuple[str, str]]) -> tuple[list[str], int]:
        right = [line.rstrip() for line in numbers("", texts)[1:]]
        return right, width - max(map(places, right), default=0) - 4 - _NARROWEST

    right, space = fitted(texts)
    if space < shortest:
        right, space = fitted([(value, "") for value, _ in texts])
    return [cut(label, max(space, _LABEL)) for label in labels], right


def _bar(room: int, zero: int | None, value: int, low: int, high: int, *, noisy: bool, wide: bool) -> str:
    line = [" "] * room
    dot = "┼"
    if zero is None:
        dot = line[value] = "○" if noisy else "●"
    else:
        block = "░" if noisy else "█"
        for i in range(min(zero, value), max(zero, value) + 1):
            line[i] = block
        if low <= zero <= high:  # the interval hides the bar, but not its end
            dot = block
    if wide and high > low:
        for i in range(low, high + 1):
            line[i] = "─"
        line[low], line[high] = "├", "┤"
        if zero is None or low <= zero <= high or low < value < high:
            line[value] = dot
    return "".join(line)
