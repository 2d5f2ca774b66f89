"""Named points where a crash would do most harm. Tests kill the process there; otherwise they do nothing."""

from collections.abc import Callable


def _do_nothing(name: str) -> None:
    pass


reached: Callable[[str], None] = _do_nothing

NAMES = ("reserve: written", "reserve: on disk", "answer: drawn", "settle: written", "settle: on disk")
"""`written` is before the commit, `on disk` after it."""
