"""Suggestions for a name that does not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches

_SIMILAR = 0.7
_MOST = 50  # names that are listed


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that differs only in case, else the shortest that contains it, or else the most similar one.

    None if nothing is similar. Names of up to three letters, and names that are much longer, are left out of this.

    Example:
        >>> nearest("Height", ["weight", "height"]), nearest("hieght", ["weight", "height"]), nearest("x", ["height"])
        ('height', 'height', None)
        >>> nearest("wage", ["age", "hrwage"])
        'hrwage'
    """
    by_case: dict[str, str] = {}
    for candidate in names:
        by_case.setdefault(candidate.casefold(), candidate)
    wanted = name.casefold()
    containing = [each for each in by_case if wanted in each and len(wanted) >= 4 and len(each) <= 3 * len(wanted)]
    matches = [wanted] if wanted in by_case else sorted(containing, key=len)
    matches = matches or get_close_matches(wanted, by_case, n=1, cutoff=_SIMILAR)
    return by_case[matches[0]] if matches else None


def listed(names: Iterable[str], what: str = "columns") -> str:
    """The existing names, for the end of an error; at most 50.

    Example:
        >>> listed(["weight", "height"]), listed([], "tables")
        ('The columns are: weight, height', 'There are no tables')
    """
    existing = list(names)
    shown = ", ".join(existing[:_MOST]) + (", ..." if len(existing) > _MOST else "")
    return f"The {what} are: {shown}" if existing else f"There are no {what}"


def there_are(name: str, names: Iterable[str], what: str = "columns", written: Callable[[str], str] = repr) -> str:
    """The existing names, for the end of an error, and the most likely one.

    Example:
        >>> there_are("hieght", ["weight", "height"])
        "The columns are: weight, height. Did you mean 'height'?"
        >>> there_are("x", [])
        'There are no columns'
    """
    existing = list(names)
    near = nearest(name, existing)
    return listed(existing, what) if near is None else f"{listed(existing, what)}. Did you mean {written(near)}?"
