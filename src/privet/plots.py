"""Pictures: functions that take arrays and draw. Needs matplotlib, the extra `privet[plots]`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privet.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

MOST_UPRIGHT = 40
"""How many bars may stand beside each other; more of them lie one below the other."""
MOST_LYING = 150
"""How many bars may lie below each other; more of them are points with a band."""

_ONE, _OTHER, _BAND, _INK = "#2a6f97", "#c8553d", "#e9ecef", "#333333"
_SERIES = (_ONE, _OTHER, "#e9b44c", "#6a994e", "#7b5ea7", "#8d99ae")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("pictures need matplotlib. Write: pip install 'privet[plots]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def draw_curve(
    *,
    x: Floats,
    p: Floats,
    q: Floats,
    log_ratio: Floats,
    levels: Floats,
    deltas: Floats,
    epsilon: float,
    shift: float,
    scale: float,
) -> Figure:
    """Two shifted densities p and q over x, their log ratio, and the privacy profile: deltas over levels of epsilon."""
    figure = new_figure(13, 4.2)
    densities, ratio, profile = figure.subplots(1, 3)

    densities.fill_between(x, p, color=_ONE, alpha=0.18)
    densities.fill_between(x, q, color=_OTHER, alpha=0.18)
    densities.plot(x, p, color=_ONE, label="the answer on these data")
    densities.plot(x, q, color=_OTHER, label="one person's data changed")
    _finish(densities, f"Two neighbours' answers, noise of scale {scale:g}", "released value", "density")
    densities.set_ylim(0, 1.28 * float(np.max([p, q])))
    densities.legend(frameon=False, loc="upper right", fontsize=9)

    ratio.axhspan(-epsilon, epsilon, color=_BAND)
    ratio.plot(x, log_ratio, color=_INK)
    ratio.set_ylim(-1.5 * epsilon, 1.5 * epsilon)
    ratio.set_yticks([-epsilon, 0, epsilon], [rf"$e^{{-{epsilon:g}}}$", "1", rf"$e^{{{epsilon:g}}}$"])
    _finish(
        ratio,
        "Their ratio stays between $e^{-\\epsilon}$ and $e^{\\epsilon}$",
        "released value",
        "ratio of the densities",
    )

    profile.plot(levels, deltas, color=_INK)
    profile.fill_between(levels, deltas, color=_BAND)
    profile.plot([0, epsilon], [deltas[0], 0], "o", color=_INK, clip_on=False, zorder=3)
    profile.annotate(
        f"total variation {deltas[0]:.3g}",
        (0, deltas[0]),
        xytext=(10, 7),
        textcoords="offset points",
        va="center",
        fontsize=9,
    )
    profile.annotate(
        f"pure privacy: $\\delta$ = 0 at $\\epsilon$ = {epsilon:g}",
        (epsilon, 0),
        xytext=(0.42 * epsilon, 0.1 * float(deltas[0])),
        ha="center",
        fontsize=9,
        arrowprops={"arrowstyle": "-", "color": _INK, "lw": 0.8, "shrinkB": 5},
    )
    profile.set_xlim(0, float(levels[-1]))
    profile.set_ylim(0, 1.12 * float(deltas[0]))
    _finish(profile, "Privacy profile", "$\\epsilon$", "$\\delta$")
    figure.suptitle(f"The Laplace mechanism, sensitivity {shift:g}, $\\epsilon$ = {epsilon:g}", fontsize=13)
    return figure


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)


@dataclass(frozen=True, slots=True)
class Bars:
    """One panel: a value with an interval for each label, or, series by series, several for each; some are faint."""

    name: str
    axis: str
    labels: Sequence[str]
    values: Floats
    low: Floats
    high: Floats
    faint: NDArray[np.bool_]
    series: Sequence[str] = ()


def draw_bars(panels: Sequence[Bars], *, title: str, footer: str) -> Figure:
    """A bar and its interval for each value, a panel for each name; an interval's infinite end becomes an arrow."""
    bars = max(len(panel.values) for panel in panels)
    many = bars > MOST_LYING
    wide = bars > 12
    longest = max(len(label) for panel in panels for label in panel.labels)
    room = 140 if wide else 60 if len(panels) == 1 else 50  # characters below one panel
    crowded = max(len(panel.labels) for panel in panels) * (longest + 2) > room
    lying = not many and (bars > MOST_UPRIGHT or (crowded and longest > 12))
    across = 1 if many or (wide and not lying) else min(len(panels), 2 if len(panels) == 4 else 3)
    down = math.ceil(len(panels) / across)
    width = 12.0 if many or (wide and not lying) else max(6.0, 4.2 * across)
    height = 0.19 * bars + 1.0 if lying else 3.4
    figure = new_figure(width, height * down + 0.8)
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    for panel, axes in zip(panels, grid, strict=False):
        if many:
            _draw_band(axes, panel)
        else:
            _draw_panel(axes, panel, lying=lying, turned=crowded)
        axes.set_title(panel.name if len(panels) > 1 else "", fontsize=11, parse_math=False)
    for axes in grid[len(panels) :]:
        axes.remove()
    if panels[0].series:
        from matplotlib.patches import Patch

        handles = [Patch(color=c, label=_short(name)) for c, name in zip(_SERIES, panels[0].series, strict=False)]
        legend = figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=9)
        for text in legend.get_texts():
            text.set_parse_math(False)
    figure.suptitle(fill(title, int(width * 10)), fontsize=12, parse_math=False)
    figure.supxlabel(fill(footer, int(width * 14)), fontsize=8, color="#666666", parse_math=False)
    return figure


def _draw_panel(axes: Axes, panel: Bars, *, lying: bool, turned: bool) -> None:
    count = max(1, len(panel.series))
    thick = 0.8 / count
    bottom, top = _reach(panel)
    for i in range(count):
        at = np.arange(len(panel.labels)) + (i - (count - 1) / 2) * thick
        values, low, high, faint = (a[i::count] for a in (panel.values, panel.low, panel.high, panel.faint))
        color = _SERIES[i % len(_SERIES)]
        drawn = (axes.barh if lying else axes.bar)(at, values, thick, color=color, edgecolor="white")
        for bar, pale in zip(drawn, faint, strict=True):
            if pale:
                bar.set(alpha=0.35, hatch="////")
        ends = np.clip(low, bottom, top), np.clip(high, bottom, top)
        (axes.hlines if lying else axes.vlines)(at, *ends, color=_INK, lw=1)
        for end, tip, arrow in zip((low, high), ends, "<>" if lying else "v^", strict=True):
            for marker, which in (("|" if lying else "_", np.isfinite(end)), (arrow, np.isinf(end))):
                if which.any():
                    place = (tip[which], at[which]) if lying else (at[which], tip[which])
                    axes.plot(*place, marker, color=_INK, ms=4, clip_on=False)
    ticks, names = range(len(panel.labels)), list(map(_short, panel.labels))
    if lying:
        axes.set_yticks(ticks, names, fontsize=8, parse_math=False)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(bottom, top)
        axes.tick_params(top=len(names) > MOST_UPRIGHT, labeltop=len(names) > MOST_UPRIGHT)
        axes.axvline(0, color=_INK, lw=0.8)
    else:
        axes.set_xticks(ticks, names, fontsize=9, parse_math=False)
        if turned:
            axes.set_xticks(ticks, names, rotation=45, ha="right", rotation_mode="anchor")
        beside = max(0.6, 2 - len(names) / 2)
        axes.set_xlim(-beside, len(names) - 1 + beside)
        axes.set_ylim(bottom, top)
        axes.axhline(0, color=_INK, lw=0.8)
    _finish_bars(axes, panel, lying=lying)


def _draw_band(axes: Axes, panel: Bars) -> None:
    """Many values: points in a band of intervals, with some of the labels."""
    bottom, top = _reach(panel)
    x = np.arange(len(panel.values))
    low, high = np.clip(panel.low, bottom, top), np.clip(panel.high, bottom, top)
    axes.fill_between(x, low, high, step="mid", color=_ONE, alpha=0.25, lw=0)
    for which, alpha in ((~panel.faint, 1.0), (panel.faint, 0.35)):
        axes.plot(x[which], panel.values[which], ".", color=_ONE, ms=3, alpha=alpha)
    ticks = np.unique(np.linspace(0, len(x) - 1, 9).round().astype(int))
    axes.set_xticks(ticks, [_short(panel.labels[i]) for i in ticks], fontsize=8, parse_math=False)
    axes.set_xlim(-1, len(x))
    axes.set_ylim(bottom, top)
    axes.axhline(0, color=_INK, lw=0.8)
    _finish_bars(axes, panel, lying=False)


def _finish_bars(axes: Axes, panel: Bars, *, lying: bool) -> None:
    _finish(axes, "", "" if lying else panel.axis, panel.axis if lying else "")
    (axes.xaxis if lying else axes.yaxis).set_major_formatter(_with_commas)
    for text in (axes.xaxis.label, axes.yaxis.label):
        text.set_parse_math(False)


def _reach(panel: Bars) -> tuple[float, float]:
    """The range of an axis: 0, every value, and every finite end of an interval, with some room beyond."""
    everything = np.concatenate([panel.values, panel.low, panel.high])
    finite = everything[np.isfinite(everything)]
    bottom, top = min(0.0, float(finite.min(initial=0))), max(0.0, float(finite.max(initial=0)))
    room = 0.06 * (top - bottom) or 1.0
    return bottom - room * (bottom < 0 or bool(np.isneginf(panel.low).any())), top + room


def _with_commas(x: float, _: object = None) -> str:
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e15 else f"{x:.6g}"


def _short(label: str) -> str:
    return label if len(label) <= 32 else f"{label[:31]}…"
