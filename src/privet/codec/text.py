"""Canonical JSON, with one text per tree, and exact numbers as text."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any, NoReturn

BITS = 4096
"""The maximum length of a numerator or a denominator."""

_RATIO = re.compile(r"(-?(?:0|[1-9][0-9]*))/([1-9][0-9]*)", re.ASCII)

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(tree: Any) -> str:
    r"""The canonical text of a tree: sorted keys, no spaces, ASCII.

    Example:
        >>> canonical({"b": [1, "é"], "a": None})
        '{"a":null,"b":[1,"\\u00e9"]}'
    """
    return _ENCODER.encode(tree)


def parsed(text: str | bytes) -> Any:
    """Parse JSON; a `ValueError` for invalid JSON, repeated fields, NaN and Infinity."""
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def ratio(number: Fraction) -> str:
    """An exact number as "p/q", in lowest terms.

    Example:
        >>> ratio(Fraction(3, 2)), ratio(Fraction(-4))
        ('3/2', '-4/1')
    """
    return f"{number.numerator}/{number.denominator}"


def read_ratio(text: object) -> Fraction | None:
    """The inverse of `ratio`; None for anything else.

    Claim: read_ratio(ratio(x)) == x if its numerator and denominator have at most 4096 bits.

    Example:
        >>> read_ratio("3/2"), read_ratio("6/4"), read_ratio("1.5")
        (Fraction(3, 2), None, None)
    """
    match = _RATIO.fullmatch(text) if isinstance(text, str) and len(text) <= BITS else None
    if match is None:
        return None
    number = Fraction(int(match[1]), int(match[2]))
    return number if ratio(number) == text and is_short(number) else None


def read_amount(text: object) -> Fraction:
    """The same for a number that is not negative; a `ValueError` for anything else."""
    number = read_ratio(text)
    if number is None or number < 0:
        raise ValueError('an amount must be a text such as "3/2", in lowest terms and not negative')
    return number


def is_short(number: Fraction | int) -> bool:
    """Whether a number has at most `BITS` bits, and so can be written."""
    return max(abs(number.numerator), number.denominator).bit_length() <= BITS


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise ValueError(f"a field is repeated among {sorted(name for name, _ in pairs)}")
    return tree


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")
