"""The layout of panels and the size of the picture: never larger than a page, however many groups there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privet.plots.panel import MOST_BARS, MOST_LABELLED, Panel, inches, shortened

WIDEST, TALLEST = 14.0, 13.0
"""The maximum size of a picture, in inches."""

_NARROWEST = 1.5  # how narrow a panel beside others may be


@dataclass(frozen=True, slots=True)
class Layout:
    """A grid of axes, and the arrangement of groups in it."""

    lying: bool
    """Whether groups are stacked, with labels at the left, instead of side by side."""
    across: int
    down: int
    width: float
    height: float
    each: float
    """The approximate width of the axes of one panel."""
    blocks: int = 1
    """The number of columns of groups."""
    single: bool = False
    """Whether each panel is one value: a row with its name at the left and its text at the right."""

    def fits(self, panel: Panel) -> bool:
        """Whether every label fits below its group."""
        return (panel.groups + 0.2) * (panel.axis.widest + 0.08) <= self.each


def arranged(panels: Sequence[Panel]) -> Layout:
    """The layout for these panels."""
    if all(panel.values.size == 1 for panel in panels):
        names = max(max(inches(shortened(panel.name)), panel.axis.longest) for panel in panels)
        texts = max(inches(panel.text) for panel in panels)
        width = min(WIDEST, max(6.4, names + texts + 3.5))
        return Layout(True, 1, len(panels), width, 0.7 * len(panels) + 0.9, width - names - texts - 0.6, single=True)
    largest = max(panels, key=lambda panel: panel.values.size)
    upright = _upright(panels, largest)
    if largest.axis.ordered or _labels_fit(largest, upright):
        return upright
    return _lying(panels, largest) or upright


def _upright(panels: Sequence[Panel], largest: Panel) -> Layout:
    count = len(panels)
    wide = largest.values.size > MOST_LABELLED
    if wide:
        across = 1 if count <= 4 else 2 if count <= 8 else 3
        width = 10.0 if across == 1 else 13.0
    else:
        across = min(count, 2 if count == 4 else 3)
        width = max(6.4, 4.2 * across)
    down = math.ceil(count / across)
    each = min(4.0 if down == 1 and wide else 3.5, (TALLEST - 1) / down)
    return Layout(False, across, down, width, each * down + 0.9, width / across - 0.75)


def _labels_fit(panel: Panel, layout: Layout) -> bool:
    """Whether every label fits below its group, possibly rotated."""
    if panel.values.size > MOST_BARS or panel.groups > 2 * MOST_LABELLED:
        return False
    return layout.fits(panel) or (panel.axis.longest <= 1 and panel.groups <= MOST_LABELLED)


def share_labels(panels: Sequence[Panel]) -> bool:
    """Whether all panels have the same groups; the levels of a rollup have not."""
    return all(list(panel.axis.labels) == list(panels[0].axis.labels) for panel in panels)


def _lying(panels: Sequence[Panel], largest: Panel) -> Layout | None:
    """Stacked groups, in several columns if needed; None if they do not fit on one page."""
    count, groups, series = len(panels), largest.groups, len(largest.values)
    shared = share_labels(panels)
    row = max(0.3 if groups <= 15 else 0.22 if groups <= 30 else 0.155, 0.075 * series + 0.05)
    names = largest.axis.longest + 0.3
    for tight, column in ((1.0, 8.5), (0.9, 10.8)):  # how tall a column of groups may be
        blocks = math.ceil(groups * row * tight / column)
        if blocks > 1 and not shared:
            continue
        across = blocks * count if blocks > 1 else min(count, 4)
        down = 1 if blocks > 1 else math.ceil(count / across)
        labelled = blocks if shared else across
        each = min(4.4, (WIDEST - 1.5 - labelled * names) / across)
        height = down * (math.ceil(groups / blocks) * row * tight + 0.8) + 0.9
        if each >= _NARROWEST and height <= TALLEST:
            width = max(6.4, labelled * names + across * each)
            return Layout(True, across, down, width, max(2.6, height), each - 0.15, blocks)
    return None
