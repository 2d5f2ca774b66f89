"""Open ledgers and forks: no ledger is in the middle of a step while its process forks.

Claim: threads that fork at once can't wait for each other for ever. One forks at a time, and its wait for a ledger that
another thread is using has a limit. In the child, a ledger that was in use is refused; all others can be used.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet

from privet.ledger.storage.turns import Ticket, Turns


class Forkable(Protocol):
    """What must be prepared for a fork."""

    def before_fork(self, ticket: Ticket) -> bool:
        """Wait until it is not in use; returns whether that was so in time."""

    def in_parent(self, ticket: Ticket) -> None:
        """Resume in the parent."""

    def in_child(self, *, ready: bool) -> None:
        """Start afresh in the child."""


_OPEN: WeakSet[Forkable] = WeakSet()
_changing = threading.Lock()  # held while `_OPEN` is changed, and from its listing until the fork is over
_LONGEST = 10.0  # seconds to wait for it: a signal handler may fork while its own thread has it
_forking = Turns()
_FORKS: dict[int, tuple[Ticket, dict[Forkable, bool]]] = {}
"""By thread that forks: its ticket, the ledgers that wait for its fork, and whether they are ready."""
_CLOSED: set[int] = set()
"""The threads whose fork nobody can open a ledger during: SQLite's own locks would stay taken in the child."""


def register(ledger: Forkable) -> None:
    """Prepare a ledger for each fork, until it is garbage-collected."""
    with _changing:
        _OPEN.add(ledger)


def _before() -> None:
    ticket, waiting = _FORKS[threading.get_ident()] = Ticket(), {}
    _forking.wait(ticket, lambda: True)
    if _changing.acquire(timeout=_LONGEST):
        _CLOSED.add(threading.get_ident())
    for ledger in sorted(_OPEN, key=id):
        waiting[ledger] = False
        waiting[ledger] = ledger.before_fork(ticket)


def _in_parent() -> None:
    ticket, waiting = _FORKS.pop(threading.get_ident(), (None, {}))
    if ticket is not None:
        try:
            for ledger in waiting:
                ledger.in_parent(ticket)
        finally:
            if threading.get_ident() in _CLOSED:
                _CLOSED.remove(threading.get_ident())
                _changing.release()
            _forking.leave(ticket)


def _in_child() -> None:
    global _changing, _forking
    _, waiting = _FORKS.get(threading.get_ident(), (None, {}))
    _changing, _forking = threading.Lock(), Turns()
    _FORKS.clear()
    _CLOSED.clear()
    for ledger in list(_OPEN):
        ledger.in_child(ready=waiting.get(ledger, False))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
