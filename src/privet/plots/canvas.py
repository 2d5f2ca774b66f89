"""What all pictures share: an empty figure, colours that colour-blind readers can tell apart, and tidy axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privet.errors import UserError, install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

SERIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""The colours of series side by side: Okabe and Ito, Color Universal Design, 2008."""
MARKERS = ("o", "s", "D", "P", "X", "p")
"""Their dots: series differ in shape too, for print in black and white."""
INK, GREY, GRID = "#333333", "#666666", "#dddddd"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("pictures need matplotlib", remedy=install("plots")) from error
    return Figure(figsize=(width, height), layout="constrained")


def finish(axes: Axes, title: str, x: str, y: str) -> None:
    """Add a title and the names of both axes; remove the box."""
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)


def with_commas(x: float, _: object = None) -> str:
    """A number on an axis.

    Example:
        >>> with_commas(2_500_000), with_commas(0.25), with_commas(1e18)
        ('2,500,000', '0.25', '1e+18')
    """
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e15 else f"{x:.6g}"
