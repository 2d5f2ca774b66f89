"""Pictures: functions that take arrays and draw. Needs matplotlib, the extra `privet[plots]`."""

from privet.plots.canvas import new_figure
from privet.plots.curve import draw_curve
from privet.plots.panels import MOST_SERIES, Axis, Panel, draw_panels

__all__ = ["MOST_SERIES", "Axis", "Panel", "draw_curve", "draw_panels", "new_figure"]
