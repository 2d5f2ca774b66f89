"""Bars, dots and lines with their intervals; noisy values are hollow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privet.plots.canvas import GREY, INK, MARKERS, SERIES, Floats
from privet.plots.panel import Mark, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HATCH = "/////"
_BAR, _TOUCHING = 0.8, 0.97  # of the room for a group


def draw_marks(axes: Axes, panel: Panel, mark: Mark, *, rows: slice = slice(None), lying: bool = False) -> None:
    """Draw the values of these groups and their intervals, series by series; a line leaves out noisy values."""
    bottom, top = panel.reach
    count = len(panel.values)
    thick = (_TOUCHING if panel.axis.touching else _BAR) / count
    for i in range(count):
        seen = np.flatnonzero(np.isfinite(panel.values[i, rows]))
        values, low, high = (part[i, rows][seen] for part in (panel.values, panel.low, panel.high))
        noisy = panel.noisy[i, rows][seen]
        apart = thick if mark in ("bars", "dots") else 0.0
        at: Floats = seen + np.float64((i - (count - 1) / 2) * apart)
        ends: tuple[Floats, Floats] = np.clip(low, bottom, top), np.clip(high, bottom, top)
        color, shape = SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)]
        match mark:
            case "bars":
                _bars(axes, at, values, thick, noisy, color, lying=lying)
            case "line":
                axes.fill_between(at, *ends, color=color, alpha=0.22, lw=0)
                axes.plot(at, np.where(noisy, np.nan, values), color=color, lw=1.4)
                _dots(axes, at, values, noisy, color, shape, 3.5 if len(at) <= 60 else 2.5, lying=False)
                continue
            case "spread":
                axes.vlines(at, *ends, color=color, lw=0.7, alpha=0.5)
                _dots(axes, at, values, noisy, color, shape, 3, lying=False)
                continue
        crowd = len(panel.values[0, rows]) * count
        size = 4.0 if crowd <= 30 else 3.0 if crowd <= 60 else 2.2
        _intervals(axes, at, (low, high), (bottom, top), noisy, INK if mark == "bars" else color, size, lying=lying)
        if mark == "dots":
            _dots(axes, at, values, noisy, color, shape, 1.6 * size, lying=lying)


def _bars(axes: Axes, at: Floats, values: Floats, thick: float, noisy: Any, color: str, *, lying: bool) -> None:
    drawn = (axes.barh if lying else axes.bar)(at, values, thick, color=color, edgecolor="white", lw=0.6)
    for bar, hollow in zip(drawn, noisy, strict=True):
        if hollow:
            bar.set(facecolor="white", edgecolor=color, hatch=HATCH)


def _dots(
    axes: Axes, at: Floats, values: Floats, noisy: Any, color: str, shape: str, size: float, *, lying: bool
) -> None:
    for which, inside in ((~noisy, color), (noisy, "white")):
        if which.any():
            place = (values[which], at[which]) if lying else (at[which], values[which])
            axes.plot(*place, shape, ms=size, mfc=inside, mec=color, mew=min(1.1, size / 4), ls="", zorder=4)


def _intervals(
    axes: Axes,
    at: Floats,
    ends: tuple[Floats, Floats],
    reach: tuple[float, float],
    noisy: Any,
    color: str,
    size: float,
    *,
    lying: bool,
) -> None:
    """A line between both ends, with caps; an end that is infinite, or out of reach, is an arrow at the border.

    The arrow of what is noisy is hollow: the value itself may be out of reach.
    """
    bottom, top = reach
    low, high = (np.clip(end, bottom, top) for end in ends)
    (axes.hlines if lying else axes.vlines)(at, low, high, color=color, lw=1.1, zorder=3)
    inside = [(end >= bottom) & (end <= top) for end in ends]
    cap, back, ahead = "|<>" if lying else "_v^"
    below, above = ends[0] < bottom, ends[1] > top
    for marker, tip, which, inner in (
        (cap, low, inside[0], color),
        (cap, high, inside[1], color),
        (back, np.full_like(low, bottom), below & ~noisy, color),
        (back, np.full_like(low, bottom), below & noisy, "white"),
        (ahead, np.full_like(high, top), above & ~noisy, color),
        (ahead, np.full_like(high, top), above & noisy, "white"),
    ):
        if which.any():
            place = (tip[which], at[which]) if lying else (at[which], tip[which])
            axes.plot(*place, marker, color=color, mfc=inner, ms=size, clip_on=False, zorder=3)


def keys_of(panel: Panel, mark: Mark) -> list[Any]:
    """The legend entry of each series."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if mark == "bars":
        return [Patch(facecolor=color) for color, _ in zip(SERIES, panel.series, strict=False)]
    line = "-" if mark == "line" else ""
    return [
        Line2D([], [], color=color, marker=shape, ls=line, ms=5)
        for color, shape, _ in zip(SERIES, MARKERS, panel.series, strict=False)
    ]


def noise_key(mark: Mark) -> Any:
    """The legend entry for noisy values."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if mark == "bars":
        return Patch(facecolor="white", edgecolor=GREY, hatch=HATCH)
    return Line2D([], [], marker="o", mfc="white", mec=GREY, mew=1.1, ls="", ms=5)
