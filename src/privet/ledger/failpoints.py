"""Named places where a crash would be worst. Tests hang a kill on them; otherwise nothing happens there."""

from collections.abc import Callable


def _go_on(name: str) -> None:
    pass


reached: Callable[[str], None] = _go_on

NAMES = ("reserve: written", "reserve: on disk", "answer: drawn", "settle: written", "settle: on disk")
"""Written is before the commit; on disk is after it."""
