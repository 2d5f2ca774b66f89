"""An answer as a table, in text and in HTML: every number with its interval, and below what they mean and cost.

What is printed depends on released values and public facts alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from html import escape
from textwrap import wrap

from privet.exact import Exact, show
from privet.guarantees import ApproxDP, PureDP
from privet.planner.outputs import Cells
from privet.relation.types import KeyValue, Unit
from privet.release import periods
from privet.release.numerals import numerals

LINES = 60
"""How many lines a table has at most, besides its headers."""
WIDTH = 120
"""How wide a table may be; further columns go into another one below."""

NOTE = 100
"""How wide the lines below a table may be."""

_GAP = "  "
_FEWEST = 6  # lines of a table, even if there are many tables


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers: with intervals around the value or between two ends, or public, without any."""

    name: str
    cells: Cells
    around: bool
    public: bool = False
    level: bool = False
    """Whether it is a mean, a ratio or the like, drawn as a dot, and not an amount, drawn as a bar from zero."""

    def texts(self, group: int) -> tuple[str, str]:
        """The value and the interval of one group."""
        cells = self.cells
        value, interval = numerals(cells.values[group], cells.low[group], cells.high[group], around=self.around)
        return f"~{value}" if marks(cells)[group] else value, "(public)" if self.public else interval


def marks(cells: Cells) -> Sequence[bool]:
    """Which cells are marked as noisy: with `~` in print, and drawn lighter."""
    return cells.noisy


@dataclass(frozen=True, slots=True)
class Keys:
    """A column of keys: one for each group."""

    name: str
    values: Sequence[KeyValue]
    unit: Unit | None = None
    """What dates were cut to, if they were."""

    @property
    def numeric(self) -> bool:
        return bool(self.values) and type(self.values[0]) is int

    def texts(self) -> list[str]:
        """Keys as texts: 2024, 2024 Q3, May 2024, or a date in ISO form."""
        return periods.texts(self.values, self.unit)


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


# --- text ---------------------------------------------------------------------------------------


def table(keys: Sequence[Keys], columns: Sequence[Column]) -> list[str]:
    """The lines of a table: a header, then one for each group, in the fixed order."""
    lines = LINES
    blocks = _blocks(keys, columns, lines)
    groups = len(columns[0].cells.values)
    if len(blocks) > 1 and not keys and groups:
        return _upended(columns)
    if len(blocks) > 1:
        lines = max(_FEWEST, LINES // len(blocks))
        blocks = _blocks(keys, columns, lines)
    first, _ = ends(groups, lines)
    more = _more(groups, lines, "groups")
    return [
        line
        for i, block in enumerate(blocks)
        for line in (*([""] if i else []), *block[: 1 + len(first)], *more, *block[1 + len(first) :])
    ]


def _blocks(keys: Sequence[Keys], columns: Sequence[Column], lines: int) -> list[list[str]]:
    """The columns side by side, the keys at the left; a further block where the lines would be too wide."""
    first, last = ends(len(columns[0].cells.values), lines)
    chosen = [*first, *last]
    texts = [key.texts() for key in keys]
    left = [_padded([k.name, *(text[i] for i in chosen)], right=k.numeric) for k, text in zip(keys, texts, strict=True)]
    blocks: list[list[list[str]]] = []
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
    return [*lines[: len(first)], *_more(len(columns), LINES, "columns"), *lines[len(first) :]]


def _more(count: int, lines: int, what: str) -> list[str]:
    return [f"... {count - lines + 1:,} more {what}: to_pandas() has all"] if count > lines else []


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


def notes(
    *,
    columns: Sequence[Column],
    confidence: Exact,
    simultaneous: bool,
    guarantee: PureDP,
    spent: PureDP,
    remaining: PureDP | ApproxDP | None,
    limits: Sequence[str] = (),
    left_out: int = 0,
    chosen_by_noise: bool = False,
    drawn: bool = False,
) -> list[str]:
    """What stands below a table: what the intervals cover, which bounds shaped the answer, and what was spent.

    Below a picture, whose legend tells the marks, it ends with the guarantee.
    """
    lines = []
    if not all(column.public for column in columns):
        how = "all cells together" if simultaneous else "each cell by itself"
        covered = "the noise, not the limits below" if limits else "the noise"
        lines.append(f"{show(confidence * 100)} % intervals, {how}. They cover {covered}.")
    if limits:
        lines.append(f"Limits: {'; '.join(limits)}.")
    if left_out:
        lines.append(f"{left_out:,} group{'s are' if left_out > 1 else ' is'} not shown.")
    if chosen_by_noise:
        lines.append("Noisy values decided which groups are shown: these intervals hold less often than they say.")
    if drawn:
        return [*lines, _promise(guarantee)]
    if any(any(marks(column.cells)) for column in columns):
        lines.append("~ too noisy to rely on: below twice its margin of error, or a mean or ratio of too few rows.")
    return [*lines, _cost(guarantee, spent) + ("." if remaining is None else f"; {_left(remaining)} left.")]


def _promise(guarantee: PureDP) -> str:
    """The guarantee for those who see a picture of the answer: the same whenever the answer is drawn again."""
    if not guarantee.epsilon:
        return "Nothing private is shown."
    return f"Differentially private, {guarantee}."


def _cost(guarantee: PureDP, spent: PureDP) -> str:
    """The epsilon of the answer, and whether it was paid now."""
    if spent.epsilon:
        return f"Spent {spent}"
    return f"Paid for before, at {guarantee}: nothing was spent now" if guarantee.epsilon else "Nothing was spent"


def wrapped(notes: Sequence[str]) -> list[str]:
    """Notes as lines of a text that are not too wide."""
    return [line for note in notes for line in wrap(note, NOTE, subsequent_indent="  ", break_long_words=False)]


def _left(remaining: PureDP | ApproxDP) -> str:
    """What is left, rounded down."""
    epsilon = show(remaining.epsilon, rounding=ROUND_FLOOR)
    if isinstance(remaining, PureDP):
        return epsilon if remaining.epsilon > 0 else "nothing"
    return f"epsilon {epsilon}, delta {show(remaining.delta, rounding=ROUND_FLOOR)}"


# --- HTML ---------------------------------------------------------------------------------------


def html(keys: Sequence[Keys], columns: Sequence[Column], below: Sequence[str]) -> str:
    """The same as an HTML table, for notebooks; every text in it is escaped."""
    groups = len(columns[0].cells.values)
    first, last = ends(groups, LINES)
    span = len(keys) + len(columns)
    texts = [key.texts() for key in keys]

    def row(group: int) -> str:
        cells = [_cell("th", text[group], right=key.numeric) for key, text in zip(keys, texts, strict=True)]
        return f"<tr>{''.join(cells)}{''.join(_number(*column.texts(group)) for column in columns)}</tr>"

    heads = [_cell("th", key.name, right=key.numeric) for key in keys]
    heads += [_cell("th", column.name, right=True) for column in columns]
    more = [f'<tr><td colspan="{span}">{escape(line)}</td></tr>' for line in _more(groups, LINES, "groups")]
    body = [*map(row, first), *more, *map(row, last)]
    foot = "<br>".join(map(escape, below))
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
