"""Pictures of an answer: what is drawn, in which order, and under which names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privet.errors import QueryError, UserError, write
from privet.exact import Exact, nearest
from privet.planner.outputs import Cell
from privet.plots import MOST_SERIES, Axis, Panel, draw_panels
from privet.release.render import periods
from privet.release.render.style import Style, keyed, unit
from privet.release.render.view import Column, Keys, View, joined, marks
from privet.system import files
from privet.tables.aggregates import Histogram
from privet.tables.expressions.nodes import Bin, Types
from privet.tables.expressions.rendering import show
from privet.tables.query import Query
from privet.tables.types import KeyValue, TimeType

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
MOST_PANELS = 12
"""How many columns one picture shows."""


def picture(view: View, column: str | None, style: Style, path: str | Path | None = None) -> Figure:
    """A figure of one column, or of all, with the notes as its caption; saved if a path is given."""
    style.check(view.query)
    return draw(
        panels(view, column, style),
        title=titled(view.query, column, style),
        caption=" ".join(view.notes),
        path=path,
    )


def panels(view: View, column: str | None, style: Style) -> list[Panel]:
    """One panel for each column that is asked for, and for each level; without keys, one for all bins of a histogram.

    Totals are not drawn beside their parts: a bar of all would dwarf them, and would look like one of them.
    """
    if not view.groups:
        _columns(view, column, style, [*range(len(view.keys))])  # a column that is not there is the first error
        look = write("print(answer)", terminal="--format table", exact=True)
        raise UserError("no group is shown, so there is nothing to draw", remedy=look)
    chosen: list[Panel] = []
    levels = _levels(view.keys, view.groups)
    crossed = sum(len(places) == 2 for places, _ in levels) == 1  # one legend is about one key
    for places, groups in levels:
        part = replace(
            view,
            keys=[replace(view.keys[i], values=[view.keys[i].values[g] for g in groups]) for i in places],
            columns=[replace(each, cells=each.cells.at(groups)) for each in view.columns],
        )
        drawn_here = _columns(part, column, style, places, crossed=crossed)
        if style.order is not None:
            drawn_here = _sorted(view.query, part.keys, drawn_here, style)
        if len(levels) > 1:
            by = ", ".join(style.text(key.name) for key in part.keys)
            drawn_here = [replace(each, name=f"{each.name} {f'by {by}' if by else 'in all'}") for each in drawn_here]
        chosen += drawn_here
    if len(chosen) > MOST_PANELS:
        raise UserError(
            f"a picture shows at most {MOST_PANELS} panels, not {len(chosen)}",
            remedy=write(f"plot({view.columns[0].name!r})"),
        )
    return chosen


def _levels(keys: Sequence[Keys], groups: int) -> list[tuple[list[int], list[int]]]:
    """The keys that each level has, and its groups; a key that is added up has no value. The totals come first."""
    found: dict[tuple[int, ...], list[int]] = {}
    for group in range(groups):
        found.setdefault(tuple(i for i, key in enumerate(keys) if key.values[group] is not None), []).append(group)
    return [([*places], some) for places, some in sorted(found.items(), key=lambda each: len(each[0]))]


def _columns(
    view: View, column: str | None, style: Style, places: Sequence[int], *, crossed: bool = False
) -> list[Panel]:
    """A panel for each column that is asked for, of the groups of one level, which has the keys at these places."""
    query, keys = view.query, view.keys
    cells = {each.name: each for each in view.columns}
    chosen: list[Panel] = []
    for name, aggregate in query.aggregates:
        names = query.columns()[name]
        if names[0] not in cells:  # measured, not shown
            continue
        if isinstance(aggregate, Histogram) and not keys:
            if column in (None, name):
                chosen.append(_histogram(name, aggregate, [cells[each] for each in names], query.input.types(), style))
        else:
            some = [each for each in names if column in (None, name, each)]
            chosen += [_grouped(query, keys, cells[each], style, places, crossed=crossed) for each in some]
    for name, _ in query.arrangement.computed:
        if name in cells and column in (None, name):
            chosen.append(_grouped(query, keys, cells[name], style, places, crossed=crossed))
    if not cells:
        look = write("print(answer)", terminal="--format table", exact=True)
        raise UserError("the answer has keys alone, and no number to draw", remedy=look)
    if not chosen:
        raise QueryError(f"the answer has no numeric column {column!r}", allowed=f"The columns are: {', '.join(cells)}")
    return chosen


def titled(query: Query, column: str | None, style: Style) -> str:
    """The title: the one that was given, or the names of what is drawn and of the keys, as labels have them."""
    if style.title is not None:
        return style.title
    by = f" by {', '.join(style.text(key.name) for key in query.keys)}" if query.keys else ""
    hidden = query.arrangement.hidden
    drawn = [
        style.text(name)
        for name, _ in (*query.aggregates, *query.arrangement.computed)
        if name not in hidden and (column is None or column == name)
    ]
    return f"{', '.join(drawn) or style.text(str(column))}{by}"


def draw(shown: Sequence[Panel], *, title: str, caption: str, path: str | Path | None) -> Figure:
    """The figure, saved if a path is given."""
    target = None if path is None else Path(path)
    line = write('plot(path="answer.png")', terminal="-o answer.png")
    if target is not None and target.suffix.lower() not in FORMATS:
        raise UserError(f"a picture is saved as .png, .svg or .pdf, not as {target.name!r}", remedy=line)
    figure = draw_panels(shown, title=title, caption=caption)
    if target is not None:
        try:
            save(figure, target)
        except OSError as error:
            why = error.strerror or error
            raise UserError(f"the picture can't be saved as {str(path)!r}: {why}", remedy=line) from None
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write the figure to a file, once it is drawn; one that exists is replaced."""
    files.write(path, drawn(figure, path.suffix), overwrite=True)


def drawn(figure: Figure, suffix: str) -> bytes:
    """What the file of a picture holds: the same bytes for the same figure, without the date."""
    from matplotlib import rc_context

    form = suffix.lower()[1:]
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with rc_context({"svg.hashsalt": "privet"}):
        figure.savefig(buffer := BytesIO(), format=form, dpi=150, metadata=undated.get(form))
    return buffer.getvalue()


# --- panels ---------------------------------------------------------------------------------------


def _histogram(name: str, what: Histogram, parts: Sequence[Column], types: Types, style: Style) -> Panel:
    labels = [style.text(str(label)) for label in what.expression.type(types).keys()]  # noqa: SIM118
    axis = Axis(style.text(show(what.expression.operand)), labels, ordered=True, touching=True)
    column = replace(parts[0], name=style.text(name), cells=joined([part.cells for part in parts]))
    return _panel(column, axis, (1, len(labels)))


def _grouped(
    query: Query, keys: Sequence[Keys], column: Column, style: Style, places: Sequence[int], *, crossed: bool
) -> Panel:
    """One key: a mark for each value. Two: side by side where one has few values. Else: all keys in the label."""
    column = replace(column, name=style.text(column.name))
    texts = [[style.text(t, v) for t, v in zip(key.texts(), key.values, strict=True)] for key in keys]
    if crossed and len(keys) == 2 and (shape := _crossed(query, texts)):
        outer, inner = texts[0][:: shape[1]], texts[1][: shape[1]]
        beside = _series(query, shape, places)
        if beside is not None:
            along, few = (inner, outer) if beside == 0 else (outer, inner)
            axis = _axis(query, places[1 - beside], [*dict.fromkeys(keys[1 - beside].values)], along, style)
            turned = None if beside == 0 else shape
            return _panel(column, axis, (len(few), len(along)), few, style.text(keys[beside].name), turned)
    labels = [", ".join(parts) for parts in zip(*texts, strict=True)] if keys else [""]
    if len(keys) == 1:
        axis = _axis(query, places[0], list(keys[0].values), labels, style)
    else:
        axis = Axis(", ".join(style.text(key.name) for key in keys), labels)
    return _panel(column, axis, (1, len(labels)))


def _crossed(query: Query, texts: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    """How many values two keys have, if every combination is shown, in the fixed order."""
    inner = len(set(texts[1]))
    if not inner:
        return None
    outer = texts[0][::inner]
    every = [(a, b) for a in outer for b in texts[1][:inner]]
    return (len(outer), inner) if every == list(zip(*texts, strict=True)) else None


def _series(query: Query, shape: tuple[int, int], places: Sequence[int]) -> int | None:
    """Which of two keys stands side by side: one with few values, and rather not the one that is a time."""
    few = [2 <= count <= MOST_SERIES for count in shape]
    timed = [isinstance(key.expression.type(query.input.types()), TimeType) for key in (query.keys[i] for i in places)]
    if few[1] and not (timed[1] and few[0] and not timed[0]):
        return 1
    return 0 if few[0] else None


def _axis(query: Query, which: int, values: list[KeyValue | None], labels: Sequence[str], style: Style) -> Axis:
    key, types = query.keys[which], query.input.types()
    name = style.text(key.name)
    every = list(query.domains()[which])
    start = every.index(values[0]) if values and values[0] is not None else 0
    if style.order is not None or values != every[start : start + len(values)]:
        return Axis(name, labels)
    if isinstance(key.expression, Bin):
        return Axis(name, labels, ordered=True)
    cut = unit(key, types)
    places = [periods.ordinal(value, cut) for value in values]
    if isinstance(key.expression.type(types), TimeType):
        return Axis(name, labels, True, (places and places[0]) or 0, periods.rounds(cut))
    first = places[0] if places else None
    if first is not None and places == list(range(first, first + len(places))):
        return Axis(name, labels, True, first, periods.rounds(None))
    return Axis(name, labels)


def _panel(
    column: Column,
    axis: Axis,
    shape: tuple[int, int],
    series: Sequence[str] = (),
    by: str = "",
    turned: tuple[int, int] | None = None,
) -> Panel:
    def array(part: Sequence[Any]) -> Any:
        flat = np.array(part)
        return flat.reshape(shape) if turned is None else flat.reshape(turned).T

    cells = column.cells
    values, low, high = (array([_float(x) for x in part]) for part in (cells.values, cells.low, cells.high))
    text = " ".join(column.texts(0)) if values.size == 1 else ""
    return Panel(column.name, axis, values, low, high, array(list(marks(cells))), column.level, series, by, text)


def _sorted(query: Query, keys: Sequence[Keys], shown: list[Panel], style: Style) -> list[Panel]:
    """All panels in the order that is wanted: by the values of the first, or the keys that are named first."""
    first = shown[0]
    groups = [(label,) for label in first.axis.labels]
    rows, places = list(range(len(first.values))), list(range(first.groups))
    if isinstance(style.order, str):
        sums = first.values.sum(axis=0)
        places = np.argsort(-sums if style.order == "descending" else sums, kind="stable").tolist()
    elif style.order is not None:
        texts = {value: text for _, pairs in keyed(query) for text, value in pairs}
        wanted = [style.text(texts.get(key, key), key) for key in style.order]
        if not first.series and len(keys) > 1:  # the labels hold all keys
            groups = list(zip(*([style.text(t) for t in key.texts()] for key in keys), strict=True))

        def rank(parts: Sequence[str]) -> list[int]:
            return [wanted.index(part) if part in wanted else len(wanted) for part in parts]

        places.sort(key=lambda i: rank(groups[i]))
        rows.sort(key=lambda i: rank(first.series[i : i + 1]))
    return [_placed(panel, rows, places) for panel in shown]


def _placed(panel: Panel, rows: list[int], places: list[int]) -> Panel:
    arrays = {name: getattr(panel, name)[np.ix_(rows, places)] for name in ("values", "low", "high", "noisy")}
    axis = replace(panel.axis, labels=[panel.axis.labels[i] for i in places])
    return replace(panel, axis=axis, series=[panel.series[i] for i in rows] if panel.series else (), **arrays)


def _float(x: Cell) -> float:
    return x if isinstance(x, float) else nearest(Exact(x))
