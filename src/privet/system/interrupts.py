"""Ctrl-C raises `KeyboardInterrupt` promptly, and never in the middle of a debit.

Python runs signal handlers in the main thread, between two of its own instructions. So Ctrl-C would have to wait for a
long call into a database, and could leave a step of the ledger half done.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

_T = TypeVar("_T")
_TICK_INTERVAL = 0.25
_STOP_INTERVAL = 0.05  # seconds between calls to `stop`: the first may come before there is anything to stop


def interruptible(work: Callable[[], _T], stop: Callable[[], object], tick: Callable[[], object] | None = None) -> _T:
    """The result of a long call into a database. On Ctrl-C, `stop` is called until the call ends.

    Meanwhile `tick` is called a few times a second.

    The call runs in its own thread while this one waits for signals: DuckDB itself checks for signals so rarely that
    Ctrl-C could take as long as the query.

    Example:
        >>> interruptible(lambda: 6 * 7, stop=lambda: None)
        42
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # signals arrive only in the main thread
    process = os.getpid()
    results: list[_T] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again by the waiting thread
            errors.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError:  # no thread available
        with duckdb_interrupts():
            return work()
    try:
        while not done.wait(1 if tick is None else _TICK_INTERVAL):
            if tick is not None:
                tick()
            if os.getpid() != process:
                raise RuntimeError("a signal handler forked the process: the call and its thread belong to the parent")
    except BaseException:
        while os.getpid() == process and not done.wait(_STOP_INTERVAL):
            stop()
        raise
    if errors:
        raise errors.pop()
    return results[0]


@contextmanager
def duckdb_interrupts() -> Iterator[None]:
    """For short calls into DuckDB: it turns Ctrl-C into a `RuntimeError`, and this turns that back."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
    else:
        return
    raise KeyboardInterrupt


class Deferred:
    """A block in which Ctrl-C waits for the end, or for a part in which it is `allowed`; a second Ctrl-C does not wait.

    For the steps of a ledger, so that their caller always knows whether they were done.

    Example:
        >>> with Deferred() as waiting:
        ...     debit = "on disk"
        ...     with waiting.allowed():
        ...         answer = "computed"
    """

    def __init__(self) -> None:
        self._handler: Any = None
        self._pending: list[tuple[Any, ...]] = []

    def __enter__(self) -> Self:
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._defer)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._deliver()

    def allowed(self) -> _Allowed:
        """A part in which Ctrl-C, including a pending one, is raised at once."""
        return _Allowed(self)

    def _allow(self) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._deliver()

    def _forbid(self) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._defer)

    def _defer(self, *arguments: Any) -> None:
        self._pending.append(arguments)
        if len(self._pending) > 1:
            self._handler(*arguments)

    def _deliver(self) -> None:
        if self._pending:
            first = self._pending[0]
            self._pending.clear()
            self._handler(*first)


class _Allowed:
    """A part of a deferred block.

    Not a generator: one that is interrupted before the `with` block begins would be ended by the garbage collector,
    after the deferred block, and would then defer the next Ctrl-C.
    """

    def __init__(self, deferred: Deferred) -> None:
        self._deferred = deferred

    def __enter__(self) -> None:
        try:
            self._deferred._allow()
        except BaseException:
            self._deferred._forbid()
            raise

    def __exit__(self, *_: object) -> None:
        self._deferred._forbid()
