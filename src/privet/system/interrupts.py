"""Ctrl-C at any moment: passed on as `KeyboardInterrupt`, soon, and never in the middle of a debit.

Python runs signal handlers in the main thread, between two of its own steps. So a long call into a database hears of
Ctrl-C late, and one that arrives in the middle of a step can leave it half done.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

_T = TypeVar("_T")
_OFTEN = 0.05  # seconds between two calls to stop: the first may come before there is anything to stop


def interruptible(work: Callable[[], _T], stop: Callable[[], object]) -> _T:
    """The result of a long call into a database. On Ctrl-C, `stop` is called until the call ends.

    The call runs in a thread of its own while this one listens: DuckDB itself looks for signals so rarely that Ctrl-C
    can take as long as the query.

    Example:
        >>> interruptible(lambda: 6 * 7, stop=lambda: None)
        42
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # no signal arrives here
    process = os.getpid()
    results: list[_T] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised by the thread that waits
            errors.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError:  # no more threads
        with duckdb_interrupts():
            return work()
    try:
        while not done.wait(1):
            if os.getpid() != process:
                raise RuntimeError("forked by a signal handler: the call is the parent's, and so is its thread")
    except BaseException:
        while os.getpid() == process and not done.wait(_OFTEN):
            stop()
        raise
    if errors:
        raise errors.pop()
    return results[0]


@contextmanager
def duckdb_interrupts() -> Iterator[None]:
    """Around short calls into DuckDB: it turns Ctrl-C into a `RuntimeError`, and this turns it back."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
    else:
        return
    raise KeyboardInterrupt


class Deferred:
    """While this lasts, Ctrl-C waits for its end, or for a part in which it is `allowed`; a second one does not wait.

    For the steps of a ledger: what they did is then known to whoever called them.

    Example:
        >>> with Deferred() as waiting:
        ...     debit = "on disk"
        ...     with waiting.allowed():
        ...         answer = "computed"
    """

    def __init__(self) -> None:
        self._handler: Any = None
        self._came: list[tuple[Any, ...]] = []

    def __enter__(self) -> Self:
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._deliver()

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """A part in which Ctrl-C, also one that came before, is raised at once."""
        if self._handler is None:
            yield
            return
        try:
            signal.signal(signal.SIGINT, self._handler)
            self._deliver()
            yield
        finally:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, *signalled: Any) -> None:
        self._came.append(signalled)
        if len(self._came) > 1:
            self._handler(*signalled)

    def _deliver(self) -> None:
        if self._came:
            first = self._came[0]
            self._came.clear()
            self._handler(*first)
