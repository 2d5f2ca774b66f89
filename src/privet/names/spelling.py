"""Which name was most likely meant by one that does not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches

_SIMILAR = 0.7


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The same name but for capital letters; else the most similar one; None if nothing is similar.

    Example:
        >>> nearest("Height", ["weight", "height"]), nearest("hieght", ["weight", "height"]), nearest("x", ["height"])
        ('height', 'height', None)
    """
    by_case: dict[str, str] = {}
    for each in names:
        by_case.setdefault(each.casefold(), each)
    wanted = name.casefold()
    found = [wanted] if wanted in by_case else get_close_matches(wanted, by_case, n=1, cutoff=_SIMILAR)
    return by_case[found[0]] if found else None


def there_are(name: str, names: Iterable[str], written: Callable[[str], str] = repr) -> str:
    """The names that exist, for the end of an error, and the one that was most likely meant.

    Example:
        >>> there_are("hieght", ["weight", "height"])
        "There are: weight, height. Did you mean 'height'?"
        >>> there_are("x", [])
        'There are: none'
    """
    known = list(names)
    near = nearest(name, known)
    listed = f"There are: {', '.join(known) or 'none'}"
    return listed if near is None else f"{listed}. Did you mean {written(near)}?"
