"""A bounded queue that is fair between analysts: they take turns, and nobody can fill it alone."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class Full(Exception):
    """The queue takes no more; `yours` says whether only this analyst has too much in it."""

    def __init__(self, *, yours: bool) -> None:
        super().__init__()
        self.yours = yours


class FairQueue:
    """So many slots, and so many who wait for one: in all, and for each analyst.

    Claim: analysts with something waiting get slots in turn. One analyst never has all slots, if there are two or more.
    """

    def __init__(self, slots: int, waiting: int, each: int) -> None:
        self._free = slots
        self._waiting, self._each = waiting, each
        self._most = max(1, slots - 1)  # that one analyst may have
        self._running: Counter[str] = Counter()
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def length(self) -> int:
        """How many wait."""
        return sum(map(len, self._lines.values()))

    @asynccontextmanager
    async def slot(self, who: str) -> AsyncIterator[None]:
        """A slot for this analyst, while the block lasts; `Full` if it would wait behind too many."""
        await self._take(who)
        try:
            yield
        finally:
            self._give_back(who)

    async def _take(self, who: str) -> None:
        if self._free and self._running[who] < self._most:  # whoever waits has all they may have
            self._start(who)
            return
        mine = self._lines.get(who, ())
        if len(mine) >= self._each:
            raise Full(yours=True)
        if self.length >= self._waiting:
            raise Full(yours=False)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(who, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot came at the same time
                self._give_back(who)
            else:
                self._leave(who, turn)
            raise

    def _leave(self, who: str, turn: asyncio.Future[None]) -> None:
        line = self._lines[who]
        line.remove(turn)
        if not line:
            del self._lines[who]

    def _start(self, who: str) -> None:
        self._free -= 1
        self._running[who] += 1

    def _give_back(self, who: str) -> None:
        self._free += 1
        self._running[who] -= 1
        if not self._running[who]:
            del self._running[who]
        for name in list(self._lines):
            if not self._free:
                return
            if self._running[name] < self._most:
                self._next(name)

    def _next(self, who: str) -> None:
        """The first of an analyst's line gets a slot; the analyst goes to the end of the turns."""
        line = self._lines.pop(who)
        turn = line.popleft()
        if line:
            self._lines[who] = line
        self._start(who)
        turn.set_result(None)


class Crowd:
    """So many requests of each analyst at a time.

    Example:
        >>> crowd = Crowd(1)
        >>> with crowd.place("ann"), crowd.place("bob"):
        ...     try:
        ...         with crowd.place("ann"):
        ...             pass
        ...     except Full as full:
        ...         print(full.yours)
        True
    """

    def __init__(self, each: int) -> None:
        self._each = each
        self._present: Counter[str] = Counter()

    @contextmanager
    def place(self, who: str) -> Iterator[None]:
        """A place for this analyst, while the block lasts; `Full` if they have all that they may have."""
        if self._present[who] >= self._each:
            raise Full(yours=True)
        self._present[who] += 1
        try:
            yield
        finally:
            self._present[who] -= 1
            if not self._present[who]:
                del self._present[who]


class Allowance:
    """So many acts for each name, and so many more in a second.

    Example:
        >>> allowance = Allowance(2, 0)
        >>> [allowance.take("ann") for _ in range(3)], allowance.take("bob")
        ([True, True, False], True)
    """

    def __init__(self, most: int, each_second: float) -> None:
        self._most, self._rate = most, each_second
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, who: str) -> bool:
        """Whether one more is allowed."""
        now = time.monotonic()
        left, since = self._left.get(who, (float(self._most), now))
        left = min(self._most, left + (now - since) * self._rate)
        self._left[who] = (left - 1 if left >= 1 else left, now)
        return left >= 1
