"""Two neighbours' answers, their ratio, and the privacy profile: the picture of a mechanism."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privet.plots.canvas import INK, Floats, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
    delta: float = 0.0,
    title: str,
    noise: str,
) -> Figure:
    """Two shifted densities p and q over x, their log ratio, and the privacy profile: deltas over levels of epsilon.

    One point of the profile is marked: (epsilon, delta). With delta 0 the log ratio stays within epsilon; otherwise the
    profile has a logarithmic axis.
    """
    figure = new_figure(13, 4.2)
    densities, ratio, profile = figure.subplots(1, 3)

    densities.fill_between(x, p, color=_ONE, alpha=0.18)
    densities.fill_between(x, q, color=_OTHER, alpha=0.18)
    densities.plot(x, p, color=_ONE, label="the answer on these data")
    densities.plot(x, q, color=_OTHER, label="one person's data changed")
    finish(densities, f"Two neighbours' answers, noise of {noise}", "released value", "density")
    densities.set_ylim(0, 1.28 * float(np.max([p, q])))
    densities.legend(frameon=False, loc="upper right", fontsize=9)

    ratio.axhspan(-epsilon, epsilon, color=_BAND)
    ratio.plot(x, log_ratio, color=INK)
    ratio.set_ylim(-1.5 * epsilon, 1.5 * epsilon)
    ratio.set_yticks([-epsilon, 0, epsilon], [rf"$e^{{-{epsilon:.4g}}}$", "1", rf"$e^{{{epsilon:.4g}}}$"])
    bounded = "Their ratio stays between $e^{-\\epsilon}$ and $e^{\\epsilon}$"
    title_of_ratio = "Their ratio leaves the band only in the tails" if delta else bounded
    finish(ratio, title_of_ratio, "released value", "ratio of the densities")

    _draw_profile(profile, levels, deltas, epsilon, delta)
    for axes in figure.axes:
        axes.locator_params(axis="x", nbins=5)
    figure.suptitle(title, fontsize=13)
    return figure


def _draw_profile(axes: Axes, levels: Floats, deltas: Floats, epsilon: float, delta: float) -> None:
    """The profile, with its value at 0 and at epsilon marked."""
    first, least = float(deltas[0]), float(deltas[-1])
    axes.plot(levels, deltas, color=INK)
    axes.fill_between(levels, deltas, least if delta else 0, color=_BAND)
    axes.plot([0, epsilon], [first, delta], "o", color=INK, clip_on=False, zorder=3)
    axes.annotate(
        f"total variation {first:.3g}",
        (0, first),
        xytext=(10, -9 if delta and first > 0.5 else 7),
        textcoords="offset points",
        va="center",
        fontsize=9,
    )
    point = f"$\\delta$ = {delta:.3g} at $\\epsilon$ = {epsilon:.4g}"
    if delta:
        axes.set_yscale("log")
        axes.set_ylim(least, min(2.0, 10 ** (0.12 * math.log10(first / least)) * first))
        axes.annotate(
            point, (epsilon, delta), xytext=(-10, -2), textcoords="offset points", ha="right", va="top", fontsize=9
        )
    else:
        axes.set_ylim(0, 1.12 * first)
        axes.annotate(
            f"pure privacy: {point}",
            (epsilon, 0),
            xytext=(0.42 * epsilon, 0.1 * first),
            ha="center",
            fontsize=9,
            arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.8, "shrinkB": 5},
        )
    axes.set_xlim(0, float(levels[-1]))
    finish(axes, "Privacy profile", "$\\epsilon$", "$\\delta$")
