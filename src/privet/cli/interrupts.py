"""Ctrl-C in the terminal: one line that says whether the question was paid for, and exit code 130."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from privet.cli.exits import tell
from privet.errors import PrivetError

INTERRUPTED = 130
"""The exit code, as in a shell: 128 plus the number of the signal."""


class _Pressed:
    """Raises the same exception for every Ctrl-C, because other code may turn it into another error."""

    def __init__(self) -> None:
        self.error: KeyboardInterrupt | None = None

    def __call__(self, *_: Any) -> NoReturn:
        if self.error is None:
            self.error = KeyboardInterrupt()
        raise self.error


_pressed = _Pressed()


@contextmanager
def one_line() -> Iterator[None]:
    """Wrap a whole command, which ends with one line if Ctrl-C was pressed."""
    _pressed.error = None
    before = signal.getsignal(signal.SIGINT)
    if callable(before):
        signal.signal(signal.SIGINT, _pressed)
    try:
        yield
    except PrivetError:
        raise  # its message says what happened
    except BaseException as error:
        if _pressed.error is None:
            if not isinstance(error, KeyboardInterrupt):
                raise
            _pressed.error = error
    else:
        return
    finally:
        if callable(before):
            signal.signal(signal.SIGINT, before if before is signal.default_int_handler else _over)
    tell("Interrupted", INTERRUPTED, next(iter(getattr(_pressed.error, "__notes__", ())), "interrupted"), head="")
    raise SystemExit(INTERRUPTED)


def _over(*_: object) -> None:
    """Handle Ctrl-C after the last message, while Python is ending: there is nothing left to stop."""
    os._exit(INTERRUPTED)


@contextmanager
def stopped(consequence: Callable[[], str]) -> Iterator[None]:
    """Wrap a part of a command, and state what Ctrl-C means there, unless an inner part already has."""
    try:
        yield
    except BaseException as error:
        pressed = error if _pressed.error is None else _pressed.error
        if isinstance(pressed, KeyboardInterrupt) and not getattr(pressed, "__notes__", ()):
            notes = getattr(error, "__notes__", ()) or [f"interrupted; {consequence()}"]
            pressed.add_note(notes[0])
        raise
