"""The page of a publication in Markdown, for repositories and wikis. Every text is escaped."""

from __future__ import annotations

import re
from html import escape

from privet.publication.contents import PICTURES, TABLES, Answer, Publication
from privet.publication.page import MOST_LINES, described
from privet.release.render.text import ends, left_out

_SIGNS = re.compile(r"([\\`*_{}\[\]|~#])")


def safe(text: object) -> str:
    r"""A text that has no meaning in Markdown or HTML, on one line.

    Example:
        >>> print(safe("a|b <img src=x> [c](d)"))
        a\|b &lt;img src=x&gt; \[c\](d)
    """
    return _SIGNS.sub(r"\\\1", escape(" ".join(str(text).split()), quote=False))


def markdown(of: Publication) -> str:
    """The whole page."""
    unit, _ = of.protects()
    lines = [
        f"# {safe(of.title)}",
        "",
        *_paragraphs(of.text),
        f"**These numbers are differentially private: {safe(of.guarantee)}, for all tables together.**",
        f"They protect {unit} in the data. Each contains noise, and is shown with the interval that its noise allows.",
        safe(of.meaning()),
        "",
    ]
    for answer in of.answers:
        lines += _section(answer)
    lines += [
        "## How to verify this page",
        "",
        "Every table has a certificate. With this folder, anyone can derive it anew, without the data:",
        "",
        "```",
        "pip install privet",
        of.command,
        "```",
        "",
        f"Written by Privet {safe(of.version)} from the dataset {safe(of.dataset)}.",
        "",
    ]
    return "\n".join(lines)


def _section(answer: Answer) -> list[str]:
    question, name = answer.question, answer.question.name
    picture = [f"![{safe(described(answer))}]({name}.png)", ""] if ".png" in answer.drawn else []
    suffixes = [*TABLES[1:], *(suffix for suffix in PICTURES if suffix in answer.drawn), TABLES[0]]
    links = ", ".join(f"[{name}{suffix}]({name}{suffix})" for suffix in suffixes)
    return [
        f"## {safe(question.title)}",
        "",
        *_paragraphs(question.text),
        *picture,
        *_table(answer),
        "",
        *(f"- {safe(note)}" for note in answer.notes()),
        "",
        "The question:",
        "",
        *(f"    {line}".rstrip() for line in question.sql.strip().splitlines()),
        "",
        f"Files: {links}",
        "",
    ]


def _table(answer: Answer) -> list[str]:
    view, style = answer.release.view(), answer.question.style
    first, last = ends(view.groups, MOST_LINES)
    texts = [
        [style.text(text, value) for text, value in zip(key.texts(), key.values, strict=True)] for key in view.keys
    ]
    names = [*(key.name for key in view.keys), *(column.name for column in view.columns)]
    heads = map(style.text, names)
    rule = [*(("---:" if key.numeric else "---") for key in view.keys), *("---:" for _ in view.columns)]

    def row(group: int) -> str:
        cells = [*(text[group] for text in texts), *(" ".join(column.texts(group)) for column in view.columns)]
        return f"| {' | '.join(map(safe, cells))} |"

    return [
        f"| {' | '.join(map(safe, heads))} |",
        f"|{'|'.join(rule)}|",
        *map(row, first),
        *map(row, last),
        *(["", *left] if (left := left_out(view.groups, MOST_LINES, "groups", "the CSV file has all")) else []),
    ]


def _paragraphs(text: str) -> list[str]:
    return [line for part in text.split("\n\n") if part.strip() for line in (safe(part), "")]
