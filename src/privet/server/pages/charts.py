"""The chart of an answer as SVG: bars for amounts, dots for means, each with its interval.

The drawing is as wide as its place while texts keep their size, so a phone shows the same chart as a large screen. It
is readable in black and white: marks differ in shape, what is too noisy is hollow, and each value is printed beside its
mark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from privet.exact import Exact, nearest
from privet.planner.outputs import Cell
from privet.release.render.chart import together
from privet.release.render.view import Column, Keys, View, marks
from privet.server.pages.drawing import ACCENT, FAINT, INK, LINE, Scale, element, picture, short

MOST_ROWS = 60
"""Groups that are drawn; the table has all."""
_TOLD = 12  # groups that the description names
_ROW, _TOP, _AXIS = 48.0, 2.0, 22.0
_LABEL, _MARK = 15.0, 31.0  # the lines of a row, from its top
_LONGEST = 44  # characters of a label


def charts(view: View) -> list[tuple[str, Markup]]:
    """A drawing for each column of numbers, with the name of the column."""
    return [
        (column.name, panel(keys, column))
        for keys, columns in together(view)
        for column in columns
        if not column.plain and column.cells.values
    ]


def panel(keys: Sequence[Keys], column: Column) -> Markup:
    """The drawing of one column.

    Example:
        >>> from privet.planner.outputs import Cells
        >>> cells = Cells((30, 80), (20, 75), (40, 85), (True, False))
        >>> "hollow" in panel([Keys("g", ["a", "b"])], Column("n", cells, True))
        True
    """
    groups = len(column.cells.values)
    shown = range(min(groups, MOST_ROWS))
    labels = _labels(keys, groups)
    cells = [_Cell(column, i) for i in shown]
    scale = Scale.of([x for cell in cells for x in cell.numbers], zero=not column.level)
    bottom = _TOP + _ROW * len(cells)
    rows = [_row(labels[i], cell, scale, _TOP + _ROW * i) for i, cell in enumerate(cells)]
    kind = "Dots with intervals" if column.level else "Bars with intervals"
    by = f" by {', '.join(key.name for key in keys)}" if keys else ""
    told = "; ".join(f"{labels[i] or column.name}: {cell.words}" for i, cell in enumerate(cells[:_TOLD]))
    more = f"; and {groups - _TOLD:,} more, in the table" if groups > _TOLD else ""
    return picture(
        f"{column.name}{by}",
        f"{kind}. {told}{more}.",
        *_axis(scale, bottom),
        *rows,
        width="100%",
        height=bottom + _AXIS,
        class_="chart",
    )


class _Cell:
    """A value, its interval and its mark."""

    def __init__(self, column: Column, group: int) -> None:
        cells = column.cells
        self.value, self.low, self.high = (_float(part[group]) for part in (cells.values, cells.low, cells.high))
        self.level, self.bounded = column.level, not column.public
        self.hollow = marks(cells)[group]
        self.text, self.interval = column.texts(group)

    @property
    def numbers(self) -> tuple[float, ...]:
        return (self.value, self.low, self.high)

    @property
    def words(self) -> str:
        noisy = ", too noisy to rely on" if self.hollow else ""
        return f"{self.text.removeprefix('~')} {self.interval}".strip() + noisy


def _row(label: str, cell: _Cell, scale: Scale, top: float) -> Markup:
    parts = [
        element("text", _cut(label), class_="label", x="0", y=top + _LABEL, fill=INK, font_size=14),
        element(
            "text",
            element("tspan", cell.text, class_="value", fill=INK, font_weight=600),
            " ",
            element("tspan", cell.interval, class_="faint", fill=FAINT, font_size=12),
            x="100%",
            y=top + _LABEL,
            text_anchor="end",
            font_size=14,
        ),
    ]
    at = top + _MARK
    parts += _grid(scale, at)
    if cell.value == cell.value:  # not missing
        interval = _interval(cell, scale, at)
        parts += [*interval, _dot(cell, scale, at)] if cell.level else [_bar(cell, scale, at), *interval]
    return element("g", *parts, class_="row")


def _bar(cell: _Cell, scale: Scale, y: float) -> Markup:
    zero, at = scale.place(0.0), scale.place(cell.value)
    return element(
        "rect",
        class_="bar hollow" if cell.hollow else "bar",
        x=_percent(min(zero, at)),
        y=y - 5.5,
        width=_percent(abs(at - zero)),
        height=11,
        rx=2,
        fill="none" if cell.hollow else ACCENT,
        fill_opacity=None if cell.hollow else 0.45,
        stroke=ACCENT,
        stroke_dasharray="4 3" if cell.hollow else None,
    )


def _dot(cell: _Cell, scale: Scale, y: float) -> Markup:
    return element(
        "circle",
        class_="dot hollow" if cell.hollow else "dot",
        cx=_percent(scale.place(cell.value)),
        cy=y,
        r=4.5,
        fill="white" if cell.hollow else ACCENT,
        stroke=ACCENT,
        stroke_width=2,
    )


def _interval(cell: _Cell, scale: Scale, y: float) -> list[Markup]:
    """The interval as a line with an end at each side; an infinite side has none."""
    if not cell.bounded or cell.low == cell.high or cell.low != cell.low:
        return []
    a, b = scale.place(cell.low), scale.place(cell.high)
    look = {"class_": "interval", "stroke": INK, "stroke_width": 1.5}
    ends = [at for at, x in ((a, cell.low), (b, cell.high)) if math.isfinite(x)]
    lines = [element("line", x1=_percent(a), x2=_percent(b), y1=y, y2=y, **look)]
    return lines + [element("line", x1=_percent(at), x2=_percent(at), y1=y - 4, y2=y + 4, **look) for at in ends]


def _grid(scale: Scale, y: float) -> list[Markup]:
    """The lines of the grid in one row, beside its marks only: they must not cross texts."""
    places = [(scale.place(tick), tick) for tick in scale.ticks()]
    return [
        element(
            "line",
            class_="grid zero" if tick == 0 else "grid",
            x1=_percent(at),
            x2=_percent(at),
            y1=y - 8,
            y2=y + 8,
            stroke=LINE,
        )
        for at, tick in places
    ]


def _axis(scale: Scale, bottom: float) -> list[Markup]:
    drawn = []
    for tick in scale.ticks():
        at = scale.place(tick)
        anchor = "start" if at < 0.04 else "end" if at > 0.96 else "middle"
        look = {"text_anchor": anchor, "fill": FAINT, "font_size": 12}
        drawn.append(element("text", short(tick), class_="faint", x=_percent(at), y=bottom + 14, **look))
    return drawn


def _percent(place: float) -> str:
    return f"{100 * place:.2f}%"


def _labels(keys: Sequence[Keys], groups: int) -> list[str]:
    texts = [key.texts() for key in keys]
    return [", ".join(text[i] for text in texts) for i in range(groups)]


def _cut(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"


def _float(x: Cell) -> float:
    return x if isinstance(x, float) else nearest(Exact(x))
