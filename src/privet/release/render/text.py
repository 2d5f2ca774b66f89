"""An answer as a table for a terminal: every number with its interval, and below what they mean and cost."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from privet.release.render.view import Column, Keys, View
from privet.system.lines import folded

LINES = 60
"""How many lines a table has at most, besides its headers."""
WIDTH = 120
"""How wide a table may be; further columns go into another one below."""

NOTE = 100
"""How wide the lines below a table may be."""

_GAP = "  "
_FEWEST = 6  # lines of a table, even if there are many tables


def places(text: str) -> int:
    """How many places a text takes in a terminal: East Asian wide signs two, combining ones none.

    Example:
        >>> places("north"), places("北海道"), places("e" + chr(0x301))
        (5, 6, 1)
    """
    widths = (
        0 if unicodedata.category(c) in {"Mn", "Me", "Cf"} else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
    return sum(widths)


def cut(text: str, most: int) -> str:
    """A text of at most so many places: what is too long ends with an ellipsis.

    Example:
        >>> cut("Papua New Guinea", 8), cut("Peru", 8), cut("北海道庁", 5)
        ('Papua N…', 'Peru', '北海…')
    """
    if places(text) <= most:
        return text
    while text and places(text) > most - 1:
        text = text[:-1]
    return f"{text}…"


def ends(count: int, lines: int) -> tuple[range, range]:
    """The first and the last of so many, for so many lines; if some are left out, one line says so.

    Example:
        >>> ends(3, lines=60), ends(400, lines=60)
        ((range(0, 3), range(3, 3)), (range(0, 40), range(381, 400)))
    """
    if count <= lines:
        return range(count), range(count, count)
    last = lines // 3 - 1
    return range(lines - 1 - last), range(count - last, count)


def text(view: View) -> str:
    """The table, and below it the notes."""
    return "\n".join([*table(view.keys, view.columns), "", *wrapped(view.notes)])


def table(keys: Sequence[Keys], columns: Sequence[Column]) -> list[str]:
    """The lines of a table: a header, then one for each group, in the fixed order."""
    lines = LINES
    blocks = _blocks(keys, columns, lines)
    groups = len(columns[0].cells.values if columns else keys[0].values)
    if len(blocks) > 1 and not keys and groups:
        return _upended(columns)
    if len(blocks) > 1:
        lines = max(_FEWEST, LINES // len(blocks))
        blocks = _blocks(keys, columns, lines)
    first, _ = ends(groups, lines)
    more = left_out(groups, lines, "groups")
    return [
        line
        for i, block in enumerate(blocks)
        for line in (*([""] if i else []), *block[: 1 + len(first)], *more, *block[1 + len(first) :])
    ]


def _blocks(keys: Sequence[Keys], columns: Sequence[Column], lines: int) -> list[list[str]]:
    """The columns side by side, the keys at the left; a further block where the lines would be too wide."""
    first, last = ends(len(columns[0].cells.values if columns else keys[0].values), lines)
    chosen = [*first, *last]
    texts = [key.texts() for key in keys]
    left = [_padded([k.name, *(text[i] for i in chosen)], right=k.numeric) for k, text in zip(keys, texts, strict=True)]
    blocks: list[list[list[str]]] = [] if columns else [left]  # keys alone have no numbers beside them
    for column in columns:
        part = numbers(column.name, [column.texts(group) for group in chosen])
        if not blocks or sum(places(p[0]) + len(_GAP) for p in (*blocks[-1], part)) > WIDTH + len(_GAP):
            blocks.append([*left])
        blocks[-1].append(part)
    return [[_GAP.join(line).rstrip() for line in zip(*block, strict=True)] for block in blocks]


def _upended(columns: Sequence[Column]) -> list[str]:
    """One group with many columns: a line for each of them."""
    first, last = ends(len(columns), LINES)
    chosen = [columns[i] for i in (*first, *last)]
    names = _padded([column.name for column in chosen], right=False)
    texts = numbers("", [column.texts(0) for column in chosen])[1:]
    lines = [_GAP.join(line).rstrip() for line in zip(names, texts, strict=True)]
    return [*lines[: len(first)], *left_out(len(columns), LINES, "columns"), *lines[len(first) :]]


def left_out(count: int, lines: int, what: str, more: str = "to_pandas() has all") -> list[str]:
    """The line that says how many groups or columns are not printed, if some are not."""
    return [f"... {count - lines + 1:,} more {what}: {more}"] if count > lines else []


def _padded(texts: Sequence[str], *, right: bool) -> list[str]:
    most = max(map(places, texts))
    blanks = [" " * (most - places(text)) for text in texts]
    return [blank + text if right else text + blank for text, blank in zip(texts, blanks, strict=True)]


def numbers(name: str, texts: Sequence[tuple[str, str]]) -> list[str]:
    """A name above the values, points below each other, with the intervals beside."""
    after = [len(value) - value.index(".") if "." in value else 0 for value, _ in texts]
    most = max((n for n, (value, _) in zip(after, texts, strict=True) if "e" not in value), default=0)
    values = _padded(
        [name, *(value + " " * (most - n) for (value, _), n in zip(texts, after, strict=True))], right=True
    )
    intervals = _padded(["", *(interval for _, interval in texts)], right=False)
    return [f"{value} {interval}" for value, interval in zip(values, intervals, strict=True)]


def wrapped(notes: Sequence[str]) -> list[str]:
    """Notes as lines of a text that are not too wide."""
    return [line for note in notes for line in folded(note, NOTE, break_long_words=False)]
