"""Pieces of HTML for notebooks and pages: every text in them is escaped, and nothing is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LEFT = "text-align: left; vertical-align: top"
RIGHT = "text-align: right; white-space: nowrap"
FAINT = "opacity: 0.65"
BAR = "#3b7dd8"
"""The colour of values and intervals: it can be read on white and on black."""


def cell(tag: str, text: object, style: str = LEFT) -> str:
    """A cell of a table.

    Example:
        >>> cell("td", "<b>", RIGHT)
        '<td style="text-align: right; white-space: nowrap">&lt;b&gt;</td>'
    """
    return f'<{tag} style="{style}">{escape(str(text))}</{tag}>'


def table(heads: Sequence[object], rows: Iterable[Sequence[object]], *, title: str = "", note: str = "") -> str:
    """A table of texts, with a caption above and a note below."""
    above = f'<caption style="{LEFT}; caption-side: top"><b>{escape(title)}</b></caption>' if title else ""
    head = f"<thead><tr>{''.join(cell('th', each) for each in heads)}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{''.join(cell('td', each) for each in row)}</tr>" for row in rows)
    below = f'<div style="{FAINT}"><small>{escape(note)}</small></div>' if note else ""
    return f"<table>{above}{head}<tbody>{body}</tbody></table>{below}"


def sections(pairs: Iterable[tuple[str, str]]) -> str:
    """Sections of a text, each with its name at the left; its lines stay as they are."""
    lines = f"{LEFT}; white-space: pre-wrap; font-family: monospace"
    rows = (f"<tr>{cell('th', name)}{cell('td', text, lines)}</tr>" for name, text in pairs)
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def meter(share: float, text: str) -> str:
    """A bar of which a share, from 0 to 1, is full, and a text beside it.

    Example:
        >>> "width: 25.0%" in meter(0.25, "epsilon 1")
        True
    """
    full = f"display: block; height: 0.7em; width: {100 * min(max(share, 0.0), 1.0):.1f}%; background: {BAR}"
    frame = f"display: inline-block; width: 10em; max-width: 40%; border: 1px solid {BAR}; margin-right: 0.6em"
    return f'<span style="{frame}"><span style="{full}"></span></span>{escape(text)}'


def interval(value: float, low: float, high: float, ends: tuple[float, float], *, level: bool, hollow: bool) -> str:
    """A bar from zero to a value, or a dot if it is a `level`, with its interval, on a scale from `ends`; as SVG.

    Example:
        >>> interval(5, 4, 6, (0, 10), level=False, hollow=False).startswith("<svg")
        True
    """
    first, last = ends
    wide = (last - first) or 1.0

    def place(x: float) -> float:
        return round(100 * min(max((x - first) / wide, 0.0), 1.0), 2)

    at, a, b, zero = place(value), place(low), place(high), place(0.0)
    fill = "none" if hollow else BAR
    if level:
        mark = f'<circle cx="{at}%" cy="7" r="3.2" fill="{fill}" stroke="{BAR}"/>'
    else:
        mark = (
            f'<rect x="{min(at, zero)}%" y="3" width="{round(abs(at - zero), 2)}%" height="8" fill="{fill}" '
            f'fill-opacity="0.55" stroke="{BAR}" stroke-opacity="0.55"/>'
        )
    line = f'<line x1="{a}%" y1="7" x2="{b}%" y2="7" stroke="currentColor" stroke-width="1.4"/>'
    return f'<svg width="110" height="14" aria-hidden="true" style="overflow: visible">{mark}{line}</svg>'
