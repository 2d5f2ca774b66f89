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

NOT_QUIET = (
    "this process was forked while another thread was in the middle of a question, and DuckDB may hang in it for ever. "
    "Nothing was spent. Start processes before questions are asked, or with the method 'spawn' of multiprocessing, and "
    "open a session in each"
)
_PATIENCE = 2.0  # seconds that a fork waits until nobody is in the middle of a call

_FORKING: dict[int, bool] = {}  # the threads that fork just now, as Python sees it, and whether it was quiet
_INSIDE: Counter[int] = Counter()  # the threads that are in the middle of a call, how deep
_changed = threading.Condition()
_quiet = True
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


@contextmanager
def native() -> Iterator[None]:
    """Around calls into DuckDB: a fork waits until nobody is in the middle of one.

    A child in which somebody was can't use DuckDB. What another thread of the parent had begun, such as the making of a
    table that C++ makes once, is never finished there, and whoever needs it waits for ever.
    """
    me, process = threading.get_ident(), os.getpid()
    with _changed:
        if not _quiet:
            raise UserError(NOT_QUIET)
        while _FORKING and not _INSIDE[me]:
            _changed.wait()
        _INSIDE[me] += 1
    try:
        yield
    finally:
        if os.getpid() == process:
            with _changed:
                _INSIDE[me] -= 1
                if not _INSIDE[me]:
                    del _INSIDE[me]
                _changed.notify_all()


def _before() -> None:
    era()
    me = threading.get_ident()
    with _changed:
        _FORKING[me] = False
        _FORKING[me] = me not in _INSIDE and _changed.wait_for(lambda: not +_INSIDE, _PATIENCE)


def _in_parent() -> None:
    with _changed:
        _FORKING.pop(threading.get_ident(), None)
        _changed.notify_all()


def _in_child() -> None:
    global _current, _changed, _quiet
    quiet = _FORKING.get(threading.get_ident())
    if quiet is not None:
        _current = os.getpid()
    _quiet = _quiet and (not _INSIDE if quiet is None else quiet)
    _changed = threading.Condition()
    _FORKING.clear()
    _INSIDE.clear()


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
