"""The ladder of times at which answers leave: an observer of the time learns at most a step.

An answer that was computed waits for the next step, counted from its debit, before it is recorded in the ledger. So
whatever can be seen of it, by whomever, follows the ladder: the response, the stored answer, the history, and the
numbers of later entries.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from privet.system.stopping import Stoppable

_PAUSE = 0.01  # seconds, at least, between two looks at deadlines


@dataclass(frozen=True, slots=True)
class Ladder:
    """The steps first, 2 first, 4 first, ... in seconds; with first = 0 there is no ladder.

    Example:
        >>> ladder = Ladder(0.25)
        >>> [ladder.step(seconds) for seconds in (0, 0.25, 0.26, 3)]
        [0.25, 0.25, 0.5, 4.0]
        >>> Ladder(0).step(3)
        3
    """

    first: float

    def step(self, seconds: float) -> float:
        """The next step after so many seconds."""
        if self.first <= 0:
            return seconds
        step = self.first
        while step < seconds:
            step *= 2
        return step

    def steps(self, longest: float) -> int:
        """How many different steps there are, for questions that take at most so long.

        Example:
            >>> Ladder(0.25).steps(600)
            13
        """
        count, step = 1, self.first
        while 0 < step < longest:
            count, step = count + 1, 2 * step
        return count


class Deadlines:
    """Stops each question at its deadline. One thread waits for all: to start one for each takes long."""

    def __init__(self) -> None:
        self._ends: dict[Stoppable, float] = {}
        self._changed = threading.Condition()
        self._until = -math.inf  # when the thread looks again; there is none yet

    def add(self, question: Stoppable, seconds: float) -> None:
        """Stop a question after so many seconds."""
        end = time.monotonic() + seconds
        with self._changed:
            if self._until == -math.inf:
                threading.Thread(target=self._watch, daemon=True).start()
                self._until = end
            elif end < self._until:
                self._changed.notify()
            self._ends[question] = end

    def drop(self, question: Stoppable) -> None:
        """Let a question be, unless it is stopped already. The thread sleeps on: mostly, others come."""
        with self._changed:
            self._ends.pop(question, None)

    def _watch(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                with suppress(RuntimeError):  # no thread is available: tried again
                    for question in [each for each, end in self._ends.items() if end <= now]:
                        threading.Thread(target=question.stop, daemon=True).start()  # it returns when it has ended
                        del self._ends[question]
                self._until = min(self._ends.values(), default=math.inf)
                self._changed.wait(None if self._until == math.inf else max(self._until - now, _PAUSE))


class Watch:
    """Watches one question that is paid for: ends it at the deadline, and holds its answer until the next step."""

    def __init__(
        self,
        ladder: Ladder,
        deadlines: Deadlines,
        deadline: float,
        stopping: threading.Event,
        paid: Callable[[], object] = lambda: None,
    ) -> None:
        self._ladder, self._deadlines, self._deadline = ladder, deadlines, deadline
        self._stopping, self._paid = stopping, paid

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Around the work that begins right after the debit and ends right before the answer is recorded."""
        start = time.monotonic()
        self._paid()
        question = Stoppable()
        self._deadlines.add(question, self._deadline)
        try:
            with question.run():
                yield
        except Exception:
            self._hold(start)
            raise
        else:
            self._hold(start)
        finally:
            self._deadlines.drop(question)

    def _hold(self, start: float) -> None:
        """Wait for the next step; not when the server stops."""
        taken = time.monotonic() - start
        self._stopping.wait(max(0.0, self._ladder.step(taken) - taken))
