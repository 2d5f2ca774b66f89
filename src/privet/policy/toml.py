"""Values and keys in TOML: for files that Privet writes, and for lines that it shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privet.exact import literal

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def text(value: str) -> str:
    r"""A string in quotes.

    Example:
        >>> print(text('a "b"\n'))
        "a \"b\"\n"
    """
    return printable(json.dumps(value, ensure_ascii=False))


def printable(line: str) -> str:
    """A line with unprintable characters escaped, so that none of them can end it."""
    return "".join(map(_safe, line))


def _safe(sign: str) -> str:
    code = ord(sign)
    if sign.isprintable():
        return sign
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def key(name: str) -> str:
    """A key, in quotes if it needs them.

    Example:
        >>> print(key("age"), key("monthly pay"))
        age "monthly pay"
    """
    return name if _BARE.fullmatch(name) else text(name)


def dotted(place: Iterable[str | int]) -> str:
    """The dotted path to a value.

    Example:
        >>> print(dotted(("columns", "monthly pay", "keys", 2)))
        columns."monthly pay".keys[2]
    """
    parts = [f"[{part}]" if isinstance(part, int) else f".{key(part)}" for part in place]
    return "".join(parts).removeprefix(".")


def value(item: Any) -> str:
    """A value, in one line.

    Example:
        >>> print(value({"number": [0, Fraction("0.5")], "required": True}))
        { number = [0, 0.5], required = true }
    """
    match item:
        case bool():
            return "true" if item else "false"
        case str():
            return text(item)
        case int():
            return _digits(item)
        case Fraction():
            return literal(item)
        case float() | Decimal():
            return str(item).lower().replace("infinity", "inf")
        case datetime() | date() | time():
            return item.isoformat()
        case Mapping():
            inside = ", ".join(f"{key(name)} = {value(part)}" for name, part in item.items())
            return f"{{ {inside} }}" if inside else "{}"
        case _:
            return f"[{', '.join(map(value, item))}]"


def _digits(number: int) -> str:
    try:
        return f"{number:_}" if abs(number) >= 10_000 else str(number)
    except ValueError:  # Python does not print integers of thousands of digits
        return "a number too long to print"


def brief(item: Any, most: int = 60) -> str:
    """A value, shortened for a sentence."""
    shown = value(item)
    return shown if len(shown) <= most else shown[: most - 3] + "..."
