"""What a process may touch: after a fork the child has copies of everything, but not the threads that worked on it."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from privet.errors import UserError

_FORKING: set[int] = set()  # the threads that fork just now, as Python sees it
_current = os.getpid()
_era = 0


def era() -> int:
    """A number that another process has too, if it was forked from this one and Python was told before and after.

    In a child whose fork Python was not told of, nothing was made ready for it: locks may be held by threads that it
    does not have, and its databases are the parent's. So what was opened in another era can't be used.
    """
    global _current, _era
    if os.getpid() != _current:
        _current = os.getpid()
        _era += 1
    return _era


def _before() -> None:
    era()
    _FORKING.add(threading.get_ident())


def _in_parent() -> None:
    _FORKING.discard(threading.get_ident())


def _in_child() -> None:
    global _current
    if threading.get_ident() in _FORKING:
        _current = os.getpid()
    _FORKING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def forever(thing: object) -> None:
    """Keep something until the process ends, and beyond: its destructor is never called, not even at the exit.

    For what belongs to the parent: a destructor that joins threads, which a child does not have, would wait for ever.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    sys.__dict__.setdefault("_privet_silence", _Silence())


class _Silence:
    """Its end is the interpreter's: after it, only C code would write, to complain of what was kept for ever."""

    def __init__(self) -> None:
        self._redirect, self._open, self._nowhere, self._ends = os.dup2, os.open, os.devnull, sys.is_finalizing

    def __del__(self) -> None:
        if self._ends():
            self._redirect(self._open(self._nowhere, 1), 2)


class Gate:
    """Lets those through who come before it is shut. Whoever shuts it waits for the others who are inside.

    In a child of a fork nobody is inside: the threads that were are the parent's.

    Example:
        >>> gate = Gate("closed")
        >>> with gate.through():
        ...     work = "done"
        >>> gate.shut()
        True
        >>> with gate.through():
        ...     work = "not begun"
        Traceback (most recent call last):
        privet.errors.UserError: closed
    """

    def __init__(self, closed: str) -> None:
        self._closed = closed
        self._shut = False
        self._sides: dict[int, tuple[threading.Condition, Counter[int]]] = {}

    def _side(self) -> tuple[threading.Condition, Counter[int]]:
        """The lock of this process, and which of its threads are inside, how often."""
        return self._sides.setdefault(os.getpid(), (threading.Condition(), Counter()))

    def check(self) -> None:
        """Raise an error if it is shut."""
        if self._shut:
            raise UserError(self._closed)

    @contextmanager
    def through(self) -> Iterator[None]:
        """While this lasts, one is inside."""
        process, me = os.getpid(), threading.get_ident()
        changed, inside = self._side()
        with changed:
            self.check()
            inside[me] += 1
        try:
            yield
        finally:
            if os.getpid() == process:  # else this was forked in the middle, and is inside nothing
                with changed:
                    inside[me] -= 1
                    changed.notify_all()

    def shut(self, seconds: float | None = None) -> bool:
        """Let nobody in any more, and wait for those inside; but for this thread, which can't wait for itself."""
        me, end = threading.get_ident(), None if seconds is None else time.monotonic() + seconds
        changed, inside = self._side()
        with changed:
            self._shut = True
            while any(count for thread, count in inside.items() if thread != me):
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    return False
                changed.wait(left)
        return True
