"""Threads take turns with a ledger, in the order in which they came.

Claim: an interrupt at any moment leaves no turn taken for good. A turn is a ticket in a queue, not a lock: whoever
holds the ticket can leave the queue at any time, from any thread, and more than once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

_LONGEST_SLEEP = 0.05  # seconds after which a waiting thread looks again, if nobody wakes it


class Patience:
    """Lasts for some seconds after the last sign of progress.

    Example:
        >>> patience = Patience(5)
        >>> patience.lasts("entry 7")
        True
    """

    __slots__ = ("_last", "_seconds", "_since")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = time.monotonic()
        self._last: object = None

    def lasts(self, progress: object) -> bool:
        """Whether to wait on. A `progress` that differs from the last one starts the wait anew."""
        now = time.monotonic()
        if progress != self._last:
            self._last, self._since = progress, now
        return now - self._since <= self._seconds


class Ticket:
    """A place in queues."""

    __slots__ = ("thread", "wake")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.wake = threading.Lock()
        self.wake.acquire()


class Turns:
    """A queue of tickets; the first has the turn.

    Example:
        >>> turns, first, second = Turns(), Ticket(), Ticket()
        >>> turns.wait(first, lambda: False), turns.wait(second, lambda: False)
        (True, False)
    """

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: deque[Ticket] = deque()

    def has_this_thread(self) -> bool:
        """Whether this thread has the turn or waits for it."""
        me = threading.get_ident()
        return any(ticket.thread == me for ticket in tuple(self._queue))

    def wait(self, ticket: Ticket, lasts: Callable[[], bool]) -> bool:
        """Wait for the turn as long as `lasts`; returns whether the ticket has it. If not, it has left the queue."""
        self._queue.append(ticket)
        while self._queue[0] is not ticket:
            if not lasts():
                self.leave(ticket)
                return False
            ticket.wake.acquire(timeout=_LONGEST_SLEEP)
        return True

    def leave(self, ticket: Ticket) -> None:
        """Leave the queue, if the ticket is in it, and wake the next."""
        try:
            self._queue.remove(ticket)
            self._queue[0].wake.release()
        except (ValueError, IndexError, RuntimeError):  # it was not there; nobody waits; the next is already awake
            return
