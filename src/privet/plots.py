"""Pictures: functions that take arrays and draw. Needs matplotlib, the extra `privet[plots]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privet.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

_ONE, _OTHER, _BAND, _INK = "#2a6f97", "#c8553d", "#e9ecef", "#333333"


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
