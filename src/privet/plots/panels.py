"""A picture of an answer: a panel for each column, with a title, a legend and a caption."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from privet.plots.canvas import GREY, GRID, INK, finish, new_figure, with_commas
from privet.plots.layout import TALLEST, WIDEST, Layout, arranged, share_labels
from privet.plots.marks import draw_marks, keys_of, noise_key
from privet.plots.panel import MOST_SERIES, Axis, Mark, Panel, inches, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["MOST_SERIES", "NOISE", "Axis", "Panel", "draw_panels"]

MOST_TURNED = 24
"""Maximum labels to rotate; if there are more, some are left out."""
NOISE = "too noisy to rely on"
"""The legend text for hollow marks."""


def draw_panels(panels: Sequence[Panel], *, title: str, caption: str) -> Figure:
    """Bars or dots with their intervals, a panel for each name; an arrow marks an interval that exceeds the axis.

    Many groups make a page of columns, or a line if they follow each other, and never a picture larger than a page.
    """
    layout = arranged(panels)
    noisy = any(np.any(panel.noisy) for panel in panels)
    named = _with_series(panels)
    width = min(WIDEST, layout.width + _beside(named, noisy=noisy))
    above, below = _lines(title, width * 9), _lines(caption, width * 14)
    height = layout.height + 0.2 * max(0, len(above) - 1) + 0.13 * max(0, len(below) - 2)
    figure = new_figure(width, min(TALLEST, height + (0.25 if noisy and not named.series else 0)))
    # The title and the caption stay outside of the inner figure, so no legend can lie over them.
    inner = figure.add_subfigure(figure.add_gridspec()[0])
    grid = list(inner.subplots(layout.down, layout.across, squeeze=False).flat)
    several = len(panels) > 1
    if layout.single:
        for panel, axes in zip(panels, grid, strict=True):
            _row(axes, panel, layout)
    elif layout.lying:
        _lay(grid, panels, layout, several=several)
    else:
        for panel, axes in zip(panels, grid, strict=False):
            _stand(axes, panel, layout, several=several)
    for axes in grid[len(panels) * layout.blocks :]:
        axes.remove()
    _legend(inner, panels, lying=layout.lying)
    if title:
        figure.suptitle("\n".join(above), fontsize=12, parse_math=False)
    figure.supxlabel("\n".join(below), fontsize=8, color=GREY, parse_math=False)
    return figure


def _with_series(panels: Sequence[Panel]) -> Panel:
    """The panel that the legend is about: the first with series, which are the same in all that have them."""
    return next((panel for panel in panels if panel.series), panels[0])


def _lines(text: str, places: float) -> list[str]:
    """A text wrapped to this width; existing line breaks stay."""
    return [line for part in text.splitlines() for line in wrap(part, int(places)) or [""]]


def _beside(panel: Panel, *, noisy: bool) -> float:
    """The approximate width of a legend beside the panels, if there are series."""
    if not panel.series:
        return 0.0
    texts = [*map(shortened, (*panel.series, panel.by)), *([NOISE] if noisy else [])]
    return max(map(inches, texts)) + 0.6


def _mark(panel: Panel, *, lying: bool) -> Mark:
    return ("dots" if panel.level else "bars") if lying else panel.mark


def _stand(axes: Axes, panel: Panel, layout: Layout, *, several: bool) -> None:
    """Groups side by side, with the labels that fit: all, rotated if needed, or some."""
    mark = _mark(panel, lying=False)
    draw_marks(axes, panel, mark)
    axis, count = panel.axis, panel.groups
    fits = layout.fits(panel)
    turned = not fits and mark != "spread" and not axis.steps and count <= MOST_TURNED
    shown = range(count) if fits or turned else axis.thinned(max(2, int(layout.each / (axis.longest + 0.3))))
    how: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    axes.set_xticks(list(shown), [shortened(axis.labels[i]) for i in shown], fontsize=9, parse_math=False, **how)
    beside = max(0.6, (layout.each - count + 1) / 2) if mark in ("bars", "dots") else 0.5 + 0.01 * count
    axes.set_xlim(-beside, count - 1 + beside)
    axes.set_ylim(*panel.reach)
    axes.grid(axis="y", color=GRID, lw=0.6)
    if not panel.level:
        axes.axhline(0, color=INK, lw=0.8)
    axes.yaxis.set_major_formatter(with_commas)
    _name(axes, panel.name if several else "", axis.name, "" if several else panel.name)


def _row(axes: Axes, panel: Panel, layout: Layout) -> None:
    """A single value: its name at the left, its text at the right."""
    draw_marks(axes, panel, _mark(panel, lying=True), lying=True)
    name = "\n".join(shortened(text) for text in (panel.name, *panel.axis.labels) if text)
    axes.set_yticks([0], [name], fontsize=10, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(0.7, -0.7)
    beside: dict[str, Any] = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "parse_math": False}
    axes.annotate(panel.text, (1, 0.5), xycoords="axes fraction", fontsize=10, color=INK, **beside)
    _scale(axes, panel, layout)
    _name(axes, "", "", "")


def _scale(axes: Axes, panel: Panel, layout: Layout) -> None:
    """The value axis of stacked groups."""
    axes.set_xlim(*panel.reach)
    axes.grid(axis="x", color=GRID, lw=0.6)
    if not panel.level:
        axes.axvline(0, color=INK, lw=0.8)
    axes.xaxis.set_major_formatter(with_commas)
    axes.locator_params(axis="x", nbins=5 if layout.each > 3 else 3)
    axes.tick_params(axis="x", labelsize=10 if layout.each > 3 and not layout.single else 8)


def _lay(grid: Sequence[Axes], panels: Sequence[Panel], layout: Layout, *, several: bool) -> None:
    """Stacked groups: panels of the same groups share the labels at the left, and columns of groups their scale."""
    size = -(-max(panel.groups for panel in panels) // layout.blocks)
    shared = share_labels(panels)
    for block in range(layout.blocks):
        for i, panel in enumerate(panels):
            axes = grid[block * len(panels) + i]
            rows = slice(block * size, (block + 1) * size)
            draw_marks(axes, panel, _mark(panel, lying=True), rows=rows, lying=True)
            first = not shared or (i % layout.across == 0 if layout.blocks == 1 else i == 0)
            names = [shortened(label) for label in panel.axis.labels[rows]] if first else []
            ticks = range(len(panel.axis.labels[rows]))
            small = 9 if size <= 30 else 7.5
            axes.set_yticks(list(ticks) if first else [], names, fontsize=small, parse_math=False)
            axes.tick_params(axis="y", length=0)
            axes.set_ylim(size - 0.4, -0.6)
            _scale(axes, panel, layout)
            title = panel.name if several else ""
            below = "" if several else panel.name
            _name(axes, title, below, panel.axis.name if first and block == 0 else "")


def _name(axes: Axes, title: str, x: str, y: str) -> None:
    finish(axes, title, x, y)
    axes.set_axisbelow(True)
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        text.set_parse_math(False)


def _legend(figure: SubFigure, panels: Sequence[Panel], *, lying: bool) -> None:
    """The legend: the colours of the series and the meaning of hollow marks; none if it is not needed."""
    from matplotlib.legend_handler import HandlerTuple

    marks = [_mark(panel, lying=lying) for panel in panels]
    first = _with_series(panels)
    handles: list[Any] = list(keys_of(first, _mark(first, lying=lying)))
    texts = [shortened(name) for name in first.series]
    hollow = dict.fromkeys(mark == "bars" for panel, mark in zip(panels, marks, strict=True) if np.any(panel.noisy))
    if hollow:
        handles.append(tuple(noise_key("bars" if bars else "dots") for bars in hollow))
        texts.append(NOISE)
    if not handles:
        return
    legend = figure.legend(
        handles,
        texts,
        title=shortened(first.by) or None,
        loc="outside right upper" if first.series else "outside upper right",
        handler_map={tuple: HandlerTuple(ndivide=None)},
        frameon=False,
        handlelength=1.4,
        fontsize=9,
        title_fontsize=9,
        alignment="left",
    )
    for text in (*legend.get_texts(), legend.get_title()):
        text.set_parse_math(False)
