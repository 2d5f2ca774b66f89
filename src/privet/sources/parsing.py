"""Texts of a CSV as values of a declared kind, one by one, by fixed rules.

Claim: each function is total and depends on its text alone. What it can't read is bad; nothing is clamped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Any

from privet.sources.kinds import Kind
from privet.sources.values import LEAST, MOST

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}(\.0*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_BOOLEANS = {"true": True, "false": False, "t": True, "f": False, "yes": True, "no": False, "1": True, "0": False}

NAMES: dict[Kind, str] = {
    "number": "number",
    "integer": "integer of 64 bits",
    "key": "integer of 64 bits",
    "boolean": "boolean (true or false, t or f, yes or no, 1 or 0)",
    "date": "date in the form 2024-12-31",
    "timestamp": "timestamp in the form 2024-12-31T23:59:59",
    "text": "text",
}


def parse(
    texts: Iterable[str | None], kind: Kind, missing: frozenset[str], decimal: str = "."
) -> tuple[list[Any], list[int]]:
    """The values, None where one is missing or bad; and the places of those that are bad.

    Example:
        >>> parse(["12", "", "x", "1e3", None, "13.0"], "integer", frozenset([""]))
        ([12, None, None, None, None, 13], [2, 3])
        >>> parse(["1.234,5", "0,5"], "number", frozenset(), decimal=",")
        ([None, 0.5], [0])
    """
    if kind == "text":
        return [None if text in missing else text for text in texts], []
    one = _PARSERS[kind]
    known: dict[str | None, Any] = dict.fromkeys((None, *missing))  # most texts stand in many rows
    values: list[Any] = []
    bad: list[int] = []
    for place, text in enumerate(texts):
        if text in known:
            value = known[text]
        else:
            assert text is not None
            value = known[text] = _BAD if (read := one(text.strip(), decimal)) is None else read
        if value is _BAD:
            bad.append(place)
            value = None
        values.append(value)
    return values, bad


_BAD = object()


def _integer(text: str, decimal: str) -> int | None:
    text = text.replace(decimal, ".") if decimal != "." else text
    if _INTEGER.fullmatch(text):
        value = int(text.partition(".")[0])
        return value if LEAST <= value <= MOST else None
    return None


def _number(text: str, decimal: str) -> float | None:
    if decimal != ".":
        if "." in text:
            return None
        text = text.replace(decimal, ".")
    return float(text) if _NUMBER.fullmatch(text) else None


def _boolean(text: str, decimal: str) -> bool | None:
    return _BOOLEANS.get(text.lower())


def _timestamp(text: str, decimal: str) -> datetime | None:
    if not _DAY.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def _date(text: str, decimal: str) -> date | None:
    moment = _timestamp(text, decimal)
    return None if moment is None else moment.date()


_PARSERS: dict[Kind, Callable[[str, str], Any]] = {
    "number": _number,
    "integer": _integer,
    "key": _integer,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
}
