"""A steward's answer at a prompt, in many possible forms, as the words of one short line.

`1985 2016`, `1985..2016`, `[1985, 2016]` and `integer 1985 2016` mean the same if the column contains integers; `NL,
AL` are keys if it contains text. A line that is not understood is left unchanged, and `shorthand` refuses it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from difflib import get_close_matches

from privet.policy.columns import kinds
from privet.tables.kinds import FOREIGN, usual
from privet.tables.stored_types import Family

_RANGE = re.compile(r"""(?<=[\d"'])\s*(?:\.\.+|\bto\b|\s-\s|–)\s*(?=[-+.\d"'])""")
_DASH = re.compile(r"([0-9]+)-([0-9]+)", re.ASCII)
_WHOLE = re.compile(r"[+-]?[0-9][0-9_]*", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9_]*\.?[0-9_]+", re.ASCII)
_THOUSANDS = re.compile(
    r"[\[({]?\s*(?:integer |number )?[+-]?[0-9]{1,3}(,[0-9]{3})*\s+"
    r"(to |- |\.\. )?[+-]?[0-9]{1,3}(,[0-9]{3})+\s*[\])}]?",
    re.ASCII,
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_NUMERIC = ("integer", "float", "decimal")


def canonical(line: str, known: Collection[str], family: Family = "anything") -> list[str]:
    """The kind and its words; a line of another form is returned as it was split.

    Example:
        >>> canonical("[1985, 2016]", ["integer", "keys"], "integer"), canonical("NL, AL", ["integer", "keys"], "text")
        (['integer', '1985', '2016'], ['keys', 'NL', 'AL'])
    """
    text = _unwrapped(_separated(line, family))
    head, _, rest = text.partition(" ") if " " in text else text.partition("=")
    kind = head.strip(" =")
    if kind in known:
        body = rest.strip().removeprefix("=").strip()
        return [kind, *_words(body, ranged=_ranged(kind))]
    near = kind in FOREIGN or get_close_matches(kind, list(known), n=1, cutoff=0.75)
    if near and "," not in text:
        return [kind, *shlex.split(rest)]
    values, tail = _tail(text)
    words = _split(_range(values) if family != "text" else values)
    implied = _implied(words, "," in values, family)
    return [implied, *words, *tail] if implied else shlex.split(line)


def _separated(line: str, family: Family) -> str:
    """The line with commas instead of semicolons, and two numbers without thousands separators.

    Example:
        >>> _separated("[2000; 7000]", "float"), _separated("2,000 7,000", "float"), _separated("2,000, 7,000", "float")
        ('[2000, 7000]', '2000 7000', '2,000, 7,000')
    """
    if ";" in line and "," not in line and not {*line} & {*"\"'"}:
        line = line.replace(";", ",")
    if family in (*_NUMERIC, "anything") and _THOUSANDS.fullmatch(line.replace(";", " ")):
        line = line.replace(";", " ").replace(",", "")
    return line


def _implied(words: list[str], listed: bool, family: Family) -> str | None:
    """The kind of a column for which only values were typed."""
    pair = len(words) == 2
    if family in _NUMERIC and any(re.fullmatch(r"0[0-9]{2}( .*)?", word) for word in words):
        return None  # the thousands of a number
    whole, numbers = (all(pattern.fullmatch(word) for word in words) for pattern in (_WHOLE, _NUMBER))
    if pair and (whole or numbers) and family != "text":
        kind = usual(family) if family in _NUMERIC else None
        return kind.name if kind else "integer" if whole else "number"
    if pair and all(_DAY.match(word) for word in words):
        timed = family == "timestamp" or any(len(word) > 10 for word in words)
        return "timestamp" if timed and family != "date" else "date"
    if family != "text" and not listed and pair and any(map(_NUMBER.fullmatch, words)):
        return None  # a range with a wrong end
    if family in ("text", "anything", "nothing") and (listed or len(words) > 1):
        return "keys"
    return "keys" if family == "integer" and whole and len(words) > 2 else None


def _ranged(kind: str) -> bool:
    """Whether a kind is written with the two ends of a range."""
    value = kinds()[kind].value if kind in kinds() else None
    return value is None or value.form in ("integers", "numbers", "dates", "timestamps")


def _words(body: str, *, ranged: bool) -> list[str]:
    values, tail = _tail(body)
    values = _unwrapped(values)
    return [*_split(_range(values) if ranged else values), *tail]


def _range(values: str) -> str:
    """Two ends with a space between them, whatever separated them."""
    return _DASH.sub(r"\1 \2", values) if _DASH.fullmatch(values) else _RANGE.sub(" ", values)


def _tail(text: str) -> tuple[str, list[str]]:
    """The text before `required`, `other ...` and `step ...`, and these options."""
    tail: list[str] = []
    options = {each.name: each.form for kind in kinds().values() for each in kind.parameters if each.optional}
    flags = "|".join(name for name, form in options.items() if form == "flag")
    named = "|".join(name for name, form in options.items() if form != "flag")
    last = re.compile(rf"""[\s,]+(?:({flags})|({named})[\s=]+("[^"]*"|'[^']*'|[^\s,]+))\s*$""")
    while match := last.search(text):
        flag, option, value = match.groups()
        tail = [flag, *tail] if flag else [option, *shlex.split(value), *tail]
        text = text[: match.start()]
    return _unwrapped(text), tail


def _unwrapped(text: str) -> str:
    text = text.strip()
    while len(text) > 1 and (text[0], text[-1]) in (("[", "]"), ("(", ")"), ("{", "}")):
        text = text[1:-1].strip()
    return text


def _split(text: str) -> list[str]:
    """The values: split at commas, if there are any, so that values can contain spaces; else at spaces."""
    if "," not in text:
        return shlex.split(text)
    pieces = (piece.strip() for piece in re.findall(r"\s*\"[^\"]*\"|[^,]+", text))
    return [piece[1:-1] if len(piece) > 1 and piece[0] == piece[-1] in "\"'" else piece for piece in pieces if piece]
