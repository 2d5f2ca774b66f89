"""Who still works on a reservation: its owner counts up while it holds the charge.

An observer that sees the same count for the length of a lease, by its own steady clock, takes the owner for dead. No
clock is compared with another, so that a clock that is set wrong, or back, changes nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from weakref import ref

from privet.ledger.entries import Charge

Place = tuple[str, int]
"""A dataset and the number of a reservation."""


class Leases:
    """The reservations that this process renews, and what it has seen of those of others."""

    def __init__(self, seconds: float, renew: Callable[[list[Place]], None]) -> None:
        self.seconds = seconds
        self._renew = renew
        self._seen: dict[Place, tuple[int, float]] = {}
        self._forget()

    def _forget(self) -> None:
        """After a fork: the parent's reservations are not the child's, nor are its threads and locks."""
        self._owner = os.getpid()
        self._mine: dict[Place, ref[Charge]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def take(self, charge: Charge) -> None:
        """Renew this one from now on, until it is settled or nobody holds the charge any more."""
        if os.getpid() != self._owner:
            self._forget()
        with self._lock:
            self._mine[charge.dataset, charge.number] = ref(charge)
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="privet-leases", daemon=True)
                self._thread.start()

    def drop(self, place: Place) -> None:
        """It is settled."""
        if os.getpid() != self._owner:
            self._forget()
        with self._lock:
            self._mine.pop(place, None)

    def _keep(self) -> None:
        while True:
            time.sleep(self.seconds / 3)
            with self._lock:
                mine = self._held()
                if not mine:  # the next reservation starts another thread
                    self._thread = None
                    return
            try:
                self._renew(mine)
            except Exception:  # the ledger is broken: whoever asks next is told so
                return

    def _held(self) -> list[Place]:
        self._mine = {place: held for place, held in self._mine.items() if held() is not None}
        return sorted(self._mine)

    def dead(self, beats: Mapping[Place, int]) -> list[Place]:
        """Those of the open reservations whose owner has been silent for the length of a lease."""
        if os.getpid() != self._owner:
            self._forget()
        now = time.monotonic()
        for place, count in beats.items():
            if self._seen.get(place, (-1, 0.0))[0] != count:
                self._seen[place] = (count, now)
        late = [place for place in beats if now - self._seen[place][1] > self.seconds]
        if not late:
            return []
        with self._lock:
            held = self._held()
        return [place for place in late if place not in held]

    def forget(self, places: Iterable[Place]) -> None:
        """They are no longer open."""
        for place in places:
            self._seen.pop(place, None)
