"""An answer as an HTML table with interval bars, for notebooks and pages; every text in it is escaped."""

from __future__ import annotations

import math
from html import escape

from privet import markup
from privet.exact import Exact, nearest
from privet.markup import LEFT, RIGHT, cell
from privet.planner.outputs import Cell
from privet.release.render.style import Style
from privet.release.render.text import LINES, ends, left_out
from privet.release.render.view import Column, View, marks

_MOST_BARS = 4  # columns that are drawn


def html(view: View) -> str:
    """A table, and below it the notes."""
    notes = "<br>".join(map(escape, view.notes))
    return f'{table(view, Style(), lines=LINES)}\n<div style="{LEFT}"><small>{notes}</small></div>'


def table(view: View, style: Style, *, lines: int, more: str = "to_pandas() has all") -> str:
    """A table of at most so many lines, with other names and keys where the style has them."""
    keys, columns = view.keys, view.columns
    first, last = ends(view.groups, lines)
    drawn = [each for each in columns if not each.public] if view.groups else []
    scales = {each.name: _scale(each) for each in drawn} if len(drawn) <= _MOST_BARS else {}
    texts = [[style.text(text, value) for text, value in zip(key.texts(), key.values, strict=True)] for key in keys]
    span = len(keys) + len(columns) + len(scales)
    beside = ' class="bar"' if len(scales) > 1 else ""  # a page leaves them out where it is narrow

    def row(group: int) -> str:
        cells = [cell("th", text[group], _side(right=key.numeric)) for key, text in zip(keys, texts, strict=True)]
        for column in columns:
            cells.append(_number(*column.texts(group)))
            if column.name in scales:
                cells.append(f"<td{beside}>{_bar(column, group, scales[column.name])}</td>")
        return f"<tr>{''.join(cells)}</tr>"

    heads = [cell("th", style.text(key.name), _side(right=key.numeric)) for key in keys]
    for column in columns:
        heads += [
            cell("th", style.text(column.name), RIGHT),
            *([f"<th{beside}></th>"] if column.name in scales else []),
        ]
    whole = f'<td colspan="{span}" style="{LEFT}">'
    gap = [f"<tr>{whole}{escape(line)}</td></tr>" for line in left_out(view.groups, lines, "groups", more)]
    return "\n".join(
        [
            "<table>",
            f"<thead><tr>{''.join(heads)}</tr></thead>",
            "<tbody>",
            *map(row, first),
            *gap,
            *map(row, last),
            "</tbody>",
            "</table>",
        ]
    )


def _side(*, right: bool) -> str:
    return RIGHT if right else LEFT


def _number(value: str, interval: str) -> str:
    small = f'<small style="{markup.FAINT}">{escape(interval)}</small>'
    return f'<td style="{RIGHT}">{escape(value)} {small}</td>'


# --- bars -------------------------------------------------------------------------------------------


def _scale(column: Column) -> tuple[float, float]:
    """The ends of the scale for a column: all of its intervals, and zero if they are amounts."""
    cells = column.cells
    numbers = [x for part in (cells.values, cells.low, cells.high) for x in map(_float, part) if math.isfinite(x)]
    numbers += [] if column.level and numbers else [0.0]
    return min(numbers), max(numbers)


def _bar(column: Column, group: int, scale: tuple[float, float]) -> str:
    cells = column.cells
    value, low, high = (_float(part[group]) for part in (cells.values, cells.low, cells.high))
    return markup.interval(value, low, high, scale, level=column.level, hollow=marks(cells)[group])


def _float(x: Cell) -> float:
    return x if isinstance(x, float) else nearest(Exact(x))
