"""Leases: the owner of a reservation increments a counter as long as it holds the charge.

An observer that sees the same count for the length of a lease, by its own monotonic clock, considers the owner dead. No
two clocks are compared, so a clock that is wrong or set back has no effect. While somebody held the ledger's lock, no
owner could renew its lease. So a silence counts only as far as the observer looked and saw it, and an owner that could
be dead gets the time until the next look to renew its lease.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from weakref import ref

from privet.errors import LedgerBusy
from privet.ledger.history.entries import Charge


class Leases:
    """The leases that this process renews, and the counts that it has observed."""

    def __init__(self, seconds: float, renew: Callable[[list[int]], None]) -> None:
        self.seconds = seconds
        self._renew = renew
        self._observed: dict[int, tuple[int, float]] = {}  # by reservation: the count, and the seconds of its silence
        self._looked = time.monotonic()
        self._suspects: set[int] = set()  # silent for too long when the ledger could be written
        self._forget()

    def _forget(self) -> None:
        """Start empty, also after a fork: reservations, threads and locks belong to the parent."""
        self._owner = os.getpid()
        self._charges: dict[int, ref[Charge]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def take(self, charge: Charge) -> None:
        """Renew a reservation until it is settled or its charge is garbage-collected."""
        if os.getpid() != self._owner:
            self._forget()
        with self._lock:
            self._charges[charge.number] = ref(charge)
            if self._thread is None:
                thread = threading.Thread(target=self._keep, name="privet-leases", daemon=True)
                with suppress(RuntimeError):  # no thread available: the question has the time of one lease
                    thread.start()
                    self._thread = thread

    def drop(self, number: int) -> None:
        """Stop renewing a settled reservation."""
        if os.getpid() != self._owner:
            self._forget()
        with self._lock:
            self._charges.pop(number, None)

    def _keep(self) -> None:
        late = False
        while True:
            if not late:
                time.sleep(self.seconds / 3)
            late = False
            with self._lock:
                numbers = self._held()
                if not numbers:  # the next reservation starts a new thread
                    self._thread = None
                    return
            try:
                self._renew(numbers)
            except LedgerBusy:
                late = True  # nobody else could write either: retry at once
                continue
            except Exception:  # the ledger is broken or closed: the next question reports it
                self._thread = None
                return

    def _held(self) -> list[int]:
        self._charges = {number: charge for number, charge in self._charges.items() if charge() is not None}
        return sorted(self._charges)

    def forgive(self) -> None:
        """Restart observation: somebody held the ledger's lock."""
        self._observed = {}
        self._suspects = set()

    def silent(self, beats: Mapping[int, int]) -> list[int]:
        """The open reservations whose owner has not renewed them for the length of a lease."""
        if os.getpid() != self._owner:
            self._forget()
        now, before = time.monotonic(), self._observed
        gap, self._looked = min(now - self._looked, self.seconds / 2), now
        observed = self._observed = {}
        for number, beat in beats.items():
            last, silence = before.get(number, (None, 0.0))
            observed[number] = beat, silence + gap if last == beat else 0.0
        late = [number for number, (_, silence) in observed.items() if silence >= self.seconds]
        self._suspects.intersection_update(late)
        if not late:
            return []
        with self._lock:
            held = self._held()
        return [number for number in late if number not in held]

    def dead(self, beats: Mapping[int, int]) -> list[int]:
        """Of a writer: the reservations that were silent for the length of a lease before, and still are."""
        silent = self.silent(beats)
        dead = [number for number in silent if number in self._suspects]
        self._suspects = {*silent}
        return dead
