"""Who still works on a reservation: its owner counts up while it holds the charge.

An observer that sees the same count for the length of a lease, by its own steady clock, takes the owner for dead. No
clock is compared with another, so that a clock that is set wrong, or back, changes nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from weakref import ref

from privet.errors import LedgerBusy
from privet.ledger.entries import Charge


class Leases:
    """The reservations that this process renews, and what it has seen of those of others."""

    def __init__(self, seconds: float, renew: Callable[[list[int]], None]) -> None:
        self.seconds = seconds
        self._renew = renew
        self._seen: dict[int, tuple[int, float]] = {}  # by reservation: the count, since when
        self._forget()

    def _forget(self) -> None:
        """After a fork: the parent's reservations are not the child's, nor are its threads and locks."""
        self._owner = os.getpid()
        self._mine: dict[int, ref[Charge]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def take(self, charge: Charge) -> None:
        """Renew this one from now on, until it is settled or nobody holds the charge any more."""
        if os.getpid() != self._owner:
            self._forget()
        with self._lock:
            self._mine[charge.number] = ref(charge)
            if self._thread is None:
                thread = threading.Thread(target=self._keep, name="privet-leases", daemon=True)
                with suppress(RuntimeError):  # no more threads now: it has the time of one lease
                    thread.start()
                    self._thread = thread

    def drop(self, number: int) -> None:
        """It is settled."""
        if os.getpid() != self._owner:
            self._forget()
        with self._lock:
            self._mine.pop(number, None)

    def _keep(self) -> None:
        late = False
        while True:
            if not late:
                time.sleep(self.seconds / 3)
            late = False
            with self._lock:
                mine = self._held()
                if not mine:  # the next reservation starts another thread
                    self._thread = None
                    return
            try:
                self._renew(mine)
            except LedgerBusy:
                late = True  # nobody else could write either: at once again
                continue
            except Exception:  # the ledger is broken or closed: whoever asks next is told so
                self._thread = None
                return

    def _held(self) -> list[int]:
        self._mine = {number: held for number, held in self._mine.items() if held() is not None}
        return sorted(self._mine)

    def forgive(self) -> None:
        """Begin to watch anew: while somebody held the ledger's lock, nobody could give a sign of life."""
        self._seen = {}

    def dead(self, beats: Mapping[int, int]) -> list[int]:
        """Those of the open reservations whose owner has been silent for the length of a lease."""
        if os.getpid() != self._owner:
            self._forget()
        now, before = time.monotonic(), self._seen
        seen = self._seen = {}
        for number, beat in beats.items():
            last = before.get(number)
            seen[number] = last if last is not None and last[0] == beat else (beat, now)
        late = [number for number, (_, since) in seen.items() if now - since > self.seconds]
        if not late:
            return []
        with self._lock:
            held = self._held()
        return [number for number in late if number not in held]
