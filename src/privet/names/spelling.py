"""Suggestions for a name that does not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches

_SIMILAR = 0.7


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that differs only in case, or else the most similar one; None if nothing is similar.

    Example:
        >>> nearest("Height", ["weight", "height"]), nearest("hieght", ["weight", "height"]), nearest("x", ["height"])
        ('height', 'height', None)
    """
    by_case: dict[str, str] = {}
    for candidate in names:
        by_case.setdefault(candidate.casefold(), candidate)
    wanted = name.casefold()
    matches = [wanted] if wanted in by_case else get_close_matches(wanted, by_case, n=1, cutoff=_SIMILAR)
    return by_case[matches[0]] if matches else None


def there_are(name: str, names: Iterable[str], written: Callable[[str], str] = repr) -> str:
    """The existing names, for the end of an error, and the most likely one.

    Example:
        >>> there_are("hieght", ["weight", "height"])
        "There are: weight, height. Did you mean 'height'?"
        >>> there_are("x", [])
        'There are: none'
    """
    existing = list(names)
    near = nearest(name, existing)
    listed = f"There are: {', '.join(existing) or 'none'}"
    return listed if near is None else f"{listed}. Did you mean {written(near)}?"
