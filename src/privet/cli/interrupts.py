"""Ctrl-C in the terminal: one line that says what became of the question, and exit code 130."""

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
    """What Ctrl-C raises, always the same object: other code may turn it into an error of its own on its way up."""

    def __init__(self) -> None:
        self.error: KeyboardInterrupt | None = None

    def __call__(self, *_: Any) -> NoReturn:
        if self.error is None:
            self.error = KeyboardInterrupt()
        raise self.error


_pressed = _Pressed()


@contextmanager
def one_line() -> Iterator[None]:
    """Around a whole command: end it with one line if Ctrl-C was pressed."""
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
    """Ctrl-C after the last message, while Python ends: there is nothing left to stop."""
    os._exit(INTERRUPTED)


@contextmanager
def stopped(consequence: Callable[[], str]) -> Iterator[None]:
    """Around a part of a command: what Ctrl-C means here, unless an inner part has said so."""
    try:
        yield
    except BaseException as error:
        pressed = error if _pressed.error is None else _pressed.error
        if isinstance(pressed, KeyboardInterrupt) and not getattr(pressed, "__notes__", ()):
            notes = getattr(error, "__notes__", ()) or [f"interrupted; {consequence()}"]
            pressed.add_note(notes[0])
        raise
