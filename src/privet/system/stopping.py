"""Stopping one question from another thread, while others go on.

A question runs inside `Stoppable.run`, and each long call in it registers how it is ended.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

_INTERVAL = 0.05  # seconds between calls: the first may come before there is anything to end


class Stopped(Exception):
    """Raised in a question that was stopped."""


class Stoppable:
    """One question that can be stopped.

    Example:
        >>> question = Stoppable()
        >>> question.stop()
        >>> with question.run():
        ...     check_not_stopped()
        Traceback (most recent call last):
        privet.system.stopping.Stopped
    """

    def __init__(self) -> None:
        self.stopped = False
        self._ends: list[Callable[[], object]] = []
        self._changed = threading.Condition()

    @contextmanager
    def run(self) -> Iterator[None]:
        """A block in this thread that `stop` ends."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    @contextmanager
    def ended_by(self, end: Callable[[], object]) -> Iterator[None]:
        """A long call, and what ends it from another thread.

        Claim: `end` acts on this call alone. It is never called after the block, and the block waits for one that has
        begun: by then the connection may belong to another question.
        """
        process = os.getpid()
        with self._changed:
            if self.stopped:
                raise Stopped
            self._ends.append(end)
        try:
            yield
        finally:
            if os.getpid() == process:  # else a signal handler forked: the call and the lock are the parent's
                with self._changed:
                    self._ends.remove(end)
                    self._changed.notify_all()

    def stop(self) -> None:
        """End what is running; returns when it has ended. What has not begun will not."""
        self.stopped = True
        with self._changed:
            while self._ends:
                for end in self._ends:
                    with suppress(Exception):  # it is called again
                        end()
                self._changed.wait_for(lambda: not self._ends, _INTERVAL)


_CURRENT: ContextVar[Stoppable | None] = ContextVar("privet_question", default=None)


def current() -> Stoppable | None:
    """The question that this thread runs, if it can be stopped."""
    return _CURRENT.get()


def check_not_stopped() -> None:
    """Raise `Stopped` if the question that this thread runs was stopped."""
    running = _CURRENT.get()
    if running is not None and running.stopped:
        raise Stopped
