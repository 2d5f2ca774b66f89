"""Two neighbours' answers, their ratio, and the privacy profile: the picture of a mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privet.plots.canvas import INK, Floats, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ONE, _OTHER, _BAND = "#2a6f97", "#c8553d", "#e9ecef"


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
    finish(densities, f"Two neighbours' answers, noise of scale {scale:g}", "released value", "density")
    densities.set_ylim(0, 1.28 * float(np.max([p, q])))
    densities.legend(frameon=False, loc="upper right", fontsize=9)

    ratio.axhspan(-epsilon, epsilon, color=_BAND)
    ratio.plot(x, log_ratio, color=INK)
    ratio.set_ylim(-1.5 * epsilon, 1.5 * epsilon)
    ratio.set_yticks([-epsilon, 0, epsilon], [rf"$e^{{-{epsilon:g}}}$", "1", rf"$e^{{{epsilon:g}}}$"])
    finish(
        ratio,
        "Their ratio stays between $e^{-\\epsilon}$ and $e^{\\epsilon}$",
        "released value",
        "ratio of the densities",
    )

    profile.plot(levels, deltas, color=INK)
    profile.fill_between(levels, deltas, color=_BAND)
    profile.plot([0, epsilon], [deltas[0], 0], "o", color=INK, clip_on=False, zorder=3)
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
        arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.8, "shrinkB": 5},
    )
    profile.set_xlim(0, float(levels[-1]))
    profile.set_ylim(0, 1.12 * float(deltas[0]))
    finish(profile, "Privacy profile", "$\\epsilon$", "$\\delta$")
    figure.suptitle(f"The Laplace mechanism, sensitivity {shift:g}, $\\epsilon$ = {epsilon:g}", fontsize=13)
    return figure
