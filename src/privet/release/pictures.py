"""Pictures of an answer: which bars stand where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privet.errors import QueryError, UserError
from privet.exact import Exact, nearest
from privet.planner.outputs import Cell, Cells
from privet.plots import MOST_UPRIGHT, Bars, draw_bars
from privet.query import Query
from privet.relation.aggregates import Histogram
from privet.release.printing import Keys

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
MOST_PANELS = 12
"""How many columns one picture shows."""
MOST_SERIES = 6
"""How many values the second of two keys may have for its bars to stand side by side."""


def panels(query: Query, keys: Sequence[Keys], cells: Mapping[str, Cells], column: str | None) -> list[Bars]:
    """One panel for each column that is asked for; without keys, one for all bins of a histogram."""
    types = query.of.types()
    found = []
    for name, aggregate in query.aggregates:
        bins = list(map(str, aggregate.of.type(types).keys())) if isinstance(aggregate, Histogram) else []
        names = [f"{name} {label}" for label in bins] or [name]
        if names[0] not in cells:  # measured, not shown
            continue
        if bins and not keys and column in (None, name):
            found.append(_bars(name, "", bins, (), [cells[each] for each in names]))
        else:
            found += [_grouped(each, keys, cells[each]) for each in names if column in (None, name, each)]
    if not found:
        raise QueryError(f"the answer has no numbers called {column!r}. There are: {', '.join(cells)}")
    if not next(iter(cells.values())).values:
        raise UserError("no group is shown, so there is nothing to draw. Look at it with print(answer)")
    if len(found) > MOST_PANELS:
        raise UserError(
            f"a picture shows at most {MOST_PANELS} columns, not {len(found)}. "
            f"Write, for example: plot({found[0].name!r})"
        )
    return found


def title(query: Query, column: str | None) -> str:
    """What is drawn, in words."""
    by = f" by {', '.join(key.name for key in query.keys)}" if query.keys else ""
    hidden = query.arrangement.hidden
    drawn = [
        f"{name} = {what}"
        for name, what in query.aggregates
        if name not in hidden and (column is None or column == name)
    ]
    return f"{', '.join(drawn) or column}{by}"


def draw(bars: Sequence[Bars], *, title: str, footer: str, path: str | Path | None) -> Figure:
    """The figure, saved if a path is given."""
    target = None if path is None else Path(path)
    line = 'Write, for example: plot(path="answer.png")'
    if target is not None and target.suffix.lower() not in FORMATS:
        raise UserError(f"a picture is saved as .png, .svg or .pdf, not as {target.name!r}. {line}")
    figure = draw_bars(bars, title=title, footer=footer)
    if target is not None:
        try:
            figure.savefig(target, dpi=150)
        except OSError as error:
            raise UserError(f"the picture can't be saved as {str(path)!r}: {error.strerror or error}. {line}") from None
    return figure


def _grouped(name: str, keys: Sequence[Keys], cells: Cells) -> Bars:
    """One key: a bar for each value. Two: side by side where that is legible. Else: all keys in the label."""
    texts = [key.texts() for key in keys]
    axis = ", ".join(key.name for key in keys)
    groups = len(cells.values)
    if len(keys) == 2 and groups <= MOST_UPRIGHT:
        inner = len(set(texts[1]))
        outer = texts[0][::inner]
        every = [(a, b) for a in outer for b in texts[1][:inner]]  # not so if some are left out, or sorted
        if 2 <= inner <= MOST_SERIES and every == list(zip(*texts, strict=True)):
            return _bars(name, keys[0].name, texts[0][::inner], texts[1][:inner], [cells])
    labels = [", ".join(parts) for parts in zip(*texts, strict=True)] if keys else [""]
    return _bars(name, axis, labels, (), [cells])


def _bars(name: str, axis: str, labels: Sequence[str], series: Sequence[str], parts: Sequence[Cells]) -> Bars:
    def array(field: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([_float(x) for part in parts for x in getattr(part, field)])

    faint = np.array([flag for part in parts for flag in part.noisy])
    return Bars(name, axis, labels, array("values"), array("low"), array("high"), faint, series)


def _float(x: Cell) -> float:
    return x if isinstance(x, float) else nearest(Exact(x))
