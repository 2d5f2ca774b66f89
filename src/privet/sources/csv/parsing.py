"""Texts of a CSV as values of a declared kind, one by one, by fixed rules.

Claim: each function is total and depends only on its text. A text that it can't read is bad; nothing is clamped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Any

from privet.sources.csv.date_formats import DateFormat
from privet.sources.csv.notation import Notation
from privet.sources.objects import LEAST, MOST
from privet.sources.readings import Reading

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}(\.0*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_GROUPED = re.compile(r"\A([+-]?[1-9][0-9]{0,2})((?:#[0-9]{3})+)(?![0-9])", re.ASCII)

NAMES: dict[Reading, str] = {
    "number": "a number",
    "integer": "a 64-bit whole number",
    "key": "a 64-bit whole number",
    "boolean": "true or false (t or f, yes or no, y or n, 1 or 0)",
    "date": "a date such as 2024-12-31",
    "timestamp": "a timestamp such as 2024-12-31T23:59:59",
    "text": "text",
}
"""The expected form of a text, for each kind."""

_PLAIN = Notation()


def expected(kind: Reading, form: DateFormat | None) -> str:
    """The expected form of a text in a column of this kind."""
    if form is not None and kind in ("date", "timestamp"):
        return f"a date in the format {form.text}"
    return NAMES[kind]


def parse(
    texts: Iterable[str | None], kind: Reading, notation: Notation = _PLAIN, form: DateFormat | None = None
) -> tuple[list[Any], list[int]]:
    """The values, with None for missing and bad ones; and the positions of the bad ones.

    Example:
        >>> parse(["12", "", "x", "1e3", None, "13.0"], "integer")
        ([12, None, None, None, None, 13], [2, 3])
        >>> parse(["1.234,5", "0,5", "1.2"], "number", Notation(decimal=",", thousands="."))
        ([1234.5, 0.5, None], [2])
    """
    if kind == "text":
        return [None if text in notation.missing else text for text in texts], []
    one = _parser(kind, notation, form)
    parsed: dict[str | None, Any] = dict.fromkeys((None, *notation.missing))  # most texts occur in many rows
    values: list[Any] = []
    bad: list[int] = []
    for place, text in enumerate(texts):
        if text in parsed:
            value = parsed[text]
        else:
            assert text is not None
            value = parsed[text] = _BAD if (read := one(text.strip())) is None else read
        if value is _BAD:
            bad.append(place)
            value = None
        values.append(value)
    return values, bad


_BAD = object()


def _parser(kind: Reading, notation: Notation, form: DateFormat | None) -> Callable[[str], Any]:
    match kind:
        case "number":
            return lambda text: _number(_marks(text, notation))
        case "integer" | "key":
            return lambda text: _integer(_marks(text, notation))
        case "boolean":
            words = notation.booleans
            return lambda text: words.get(text.lower())
        case "timestamp":
            return _timestamp if form is None else form.read
        case _:
            return lambda text: _date(text, form)


def _marks(text: str, notation: Notation) -> str:
    """A number with a decimal point and without thousands separators; an empty string if it is malformed."""
    if notation.thousands and notation.thousands in text:
        if "#" in text:
            return ""
        text, replacements = _GROUPED.subn(
            lambda groups: groups[1] + groups[2].replace("#", ""), text.replace(notation.thousands, "#"), count=1
        )
        if not replacements or "#" in text:
            return ""
    if notation.decimal != ".":
        return "" if "." in text else text.replace(notation.decimal, ".")
    return text


def _integer(text: str) -> int | None:
    if _INTEGER.fullmatch(text):
        value = int(text.partition(".")[0])
        return value if LEAST <= value <= MOST else None
    return None


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _timestamp(text: str) -> datetime | None:
    if not _DAY.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def _date(text: str, form: DateFormat | None) -> date | None:
    moment = _timestamp(text) if form is None else form.read(text)
    return None if moment is None else moment.date()
