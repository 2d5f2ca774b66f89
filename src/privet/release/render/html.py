"""An answer as an HTML table, for notebooks and pages; every text in it is escaped."""

from __future__ import annotations

from html import escape

from privet.release.render.text import LINES, ends, left_out
from privet.release.render.view import View


def html(view: View) -> str:
    """A table with the notes in its foot."""
    keys, columns = view.keys, view.columns
    first, last = ends(view.groups, LINES)
    span = len(keys) + len(columns)
    texts = [key.texts() for key in keys]

    def row(group: int) -> str:
        cells = [_cell("th", text[group], right=key.numeric) for key, text in zip(keys, texts, strict=True)]
        return f"<tr>{''.join(cells)}{''.join(_number(*column.texts(group)) for column in columns)}</tr>"

    heads = [_cell("th", key.name, right=key.numeric) for key in keys]
    heads += [_cell("th", column.name, right=True) for column in columns]
    more = [f'<tr><td colspan="{span}">{escape(line)}</td></tr>' for line in left_out(view.groups, LINES, "groups")]
    body = [*map(row, first), *more, *map(row, last)]
    foot = "<br>".join(map(escape, view.notes))
    return "\n".join(
        [
            "<table>",
            f"<thead><tr>{''.join(heads)}</tr></thead>",
            "<tbody>",
            *body,
            "</tbody>",
            f'<tfoot><tr><td colspan="{span}" style="text-align: left"><small>{foot}</small></td></tr></tfoot>',
            "</table>",
        ]
    )


def _cell(tag: str, text: str, *, right: bool) -> str:
    return f'<{tag} style="text-align: {"right" if right else "left"}">{escape(text)}</{tag}>'


def _number(value: str, interval: str) -> str:
    small = f'<small style="opacity: 0.65">{escape(interval)}</small>'
    return f'<td style="text-align: right; white-space: nowrap">{escape(value)} {small}</td>'
