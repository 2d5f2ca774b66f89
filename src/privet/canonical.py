"""JSON with one text for each tree: what is hashed, signed or kept for ever."""

from __future__ import annotations

import json
from typing import Any, NoReturn

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(tree: Any) -> str:
    r"""The one text of a tree: sorted keys, no blanks, ASCII.

    Example:
        >>> canonical({"b": [1, "é"], "a": None})
        '{"a":null,"b":[1,"\\u00e9"]}'
    """
    return _ENCODER.encode(tree)


def parsed(text: str | bytes) -> Any:
    """The tree of a text; a `ValueError` if it is not JSON, if a field stands twice, or for NaN and Infinity."""
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a field stands twice among {sorted(name for name, _ in pairs)}")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that is allowed there")
