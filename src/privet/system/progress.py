"""A line on the terminal while a question takes long: the share that is done, if the engine can tell, and the time.

Both depend on the rows, as the time of an answer does. So the line is for the steward alone, at a terminal of theirs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

AFTER = 2.0
"""Seconds before the line appears: most questions end sooner."""
_WIDTH = 30
_hidden: ContextVar[bool] = ContextVar("hidden", default=False)


@contextmanager
def hidden() -> Iterator[None]:
    """A block in which nothing is shown, on any terminal: for a question of an analyst who is not the steward."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


class Progress:
    """The line, from the first `tick` to the end of a `with` block. Where stderr is no terminal, nothing is written."""

    def __init__(self, share: Callable[[], float | None] = lambda: None) -> None:
        self._share, self._begin = share, time.monotonic()
        self._shows = sys.stderr is not None and sys.stderr.isatty() and not _hidden.get()
        self._drawn = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            self._write("\r\x1b[K")

    def tick(self) -> None:
        """Draw the line anew. No error of it stops a question."""
        passed = time.monotonic() - self._begin
        if self._shows and passed >= AFTER:
            share: float | None = None
            with suppress(Exception):
                share = self._share()
            self._drawn = True
            self._write(f"\r{line(passed, share)}\x1b[K")

    def _write(self, text: str) -> None:
        with suppress(Exception):
            sys.stderr.write(text)
            sys.stderr.flush()


def line(seconds: float, share: float | None) -> str:
    """What is shown.

    Example:
        >>> line(75, None), line(5, 0.5)
        ('asking, 1:15', 'asking [###############               ] 50 %, 0:05')
    """
    clock = f"{int(seconds) // 60}:{int(seconds) % 60:02}"
    if share is None or not 0 <= share <= 1:
        return f"asking, {clock}"
    return f"asking [{'#' * int(share * _WIDTH):<{_WIDTH}}] {int(share * 100)} %, {clock}"
