"""Forks: the child has copies of everything, but not the threads that worked on it."""

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
    "this process was forked while another thread was asking a question, so DuckDB could hang in it. Nothing was "
    "spent. Start processes before you ask questions, or use the 'spawn' method of multiprocessing, and open a session "
    "in each process"
)
_PATIENCE = 2.0  # seconds that a fork waits for running calls

_FORKING: dict[int, bool] = {}  # the threads that are forking, and whether no call was running
_INSIDE: Counter[int] = Counter()  # by thread, the depth of its running calls
_changed = threading.Condition()
_quiet = True
_current = os.getpid()
_era = 0


def era() -> int:
    """A number that a forked child shares with its parent only if Python's fork handlers ran.

    Without them the child was not prepared: locks may be held by threads that it does not have, and its databases are
    the parent's. So what was opened in another era can't be used.
    """
    global _current, _era
    if os.getpid() != _current:
        _current = os.getpid()
        _era += 1
    return _era


@contextmanager
def native() -> Iterator[None]:
    """A block of calls into DuckDB: a fork waits until no thread is in one.

    A child that was forked during such a call can't use DuckDB: what another thread of the parent had begun, such as
    the one-time initialisation of a C++ static, is never finished in the child, and waiting for it would never end.
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
    """Keep an object until the process ends: its destructor is never called, not even at exit.

    For objects that belong to the parent: a destructor that joins threads, which a child does not have, would hang.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    sys.__dict__.setdefault("_privet_silence", _Silence())


class _Silence:
    """Closes stderr when the interpreter ends: afterwards only C code would write, to warn of objects kept alive."""

    def __init__(self) -> None:
        self._redirect, self._open, self._devnull, self._is_ending = os.dup2, os.open, os.devnull, sys.is_finalizing

    def __del__(self) -> None:
        if self._is_ending():
            self._redirect(self._open(self._devnull, 1), 2)


class Gate:
    """Lets threads in until it is shut. Shutting it waits for the threads inside.

    In a forked child no thread is inside: those threads belong to the parent.

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
        """The lock of this process, and how often each of its threads is inside."""
        return self._sides.setdefault(os.getpid(), (threading.Condition(), Counter()))

    def check(self) -> None:
        """Raise an error if the gate is shut."""
        if self._shut:
            raise UserError(self._closed)

    @contextmanager
    def through(self) -> Iterator[None]:
        """A block inside the gate."""
        process, me = os.getpid(), threading.get_ident()
        changed, inside = self._side()
        with changed:
            self.check()
            inside[me] += 1
        try:
            yield
        finally:
            if os.getpid() == process:  # otherwise this is a child that was forked inside the gate
                with changed:
                    inside[me] -= 1
                    changed.notify_all()

    def shut(self, seconds: float | None = None) -> bool:
        """Let no more threads in, and wait for the other threads inside; False if that takes longer than `seconds`."""
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
