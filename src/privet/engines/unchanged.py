"""Files that must not change between the looks of one question: a row that moved would count at both of its places."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from privet.engines.base import FAILED, Looks, ParquetFiles, ParquetObjects, Source
from privet.errors import NoAnswer
from privet.tables.holders import Held, Holders
from privet.tables.statement import Buckets, Statement

_T = TypeVar("_T")
_TICK, _AHEAD = 0.05, 2.0
"""Seconds in which a file can change twice and keep its time, and how far a clock of a storage may be ahead."""
_TRIES = 3


class Changed(Exception):
    """A file is not what it was."""


class Checked:
    """Files that can be read as they were declared: looked at again once one of them has changed.

    Claim: after a call that raises nothing, `are_good` was true of the files in the state that they have. They were in
    state `since` when it was last found true.
    """

    def __init__(self, are_good: Callable[[], bool], paths: Sequence[str], since: list[tuple[int, ...]]) -> None:
        self._are_good, self._paths, self._good = are_good, paths, since

    def __call__(self) -> None:
        now = states(self._paths)
        if now != self._good:
            if not self._are_good() or states(self._paths) != now:
                raise Changed
            self._good = now


class Unchanged:
    """The files of some sources, as they are when this is made; they can be read as they were declared.

    Claim: `check` fails if a file was replaced, renamed or written to between then and now. Many systems count the time
    of a file in steps of some milliseconds: if one has just changed, this waits until the next change has another time.
    """

    def __init__(self, sources: Iterable[Source]) -> None:
        in_files = [source for source in sources if not isinstance(source, ParquetObjects)]  # those have tags
        self._paths = sorted({path for source in in_files for path in source.files()})
        self._states = self._at_rest()
        for source in in_files:
            if isinstance(source, ParquetFiles) and source.check is not None:
                source.check()
        self.check()

    def _at_rest(self) -> list[tuple[int, ...]]:
        for _ in range(_TRIES):
            found = states(self._paths)
            wait = _wait(found)
            if not wait:
                return found
            time.sleep(wait)
        raise Changed  # it does not come to rest

    def check(self) -> None:
        """`Changed`, unless all files are what they were; `OSError`, if one is gone."""
        if states(self._paths) != self._states:
            raise Changed


class SameFiles:
    """A snapshot for an engine that has no transactions: its looks fail once a file has changed.

    Claim: that of `Engine.snapshot`, as far as `Unchanged` notices.
    """

    def __init__(self, engine: Looks, sources: Iterable[Source]) -> None:
        self._engine, self._sources = engine, tuple(sources)
        self._files: Unchanged | None = None  # until the first look
        self._failed = False

    def answer(self, statement: Statement) -> list[list[int]]:
        """An integer for each tally, for each group."""
        return self._look(lambda: self._engine.answer(statement))

    def histograms(self, statement: Statement, buckets: Buckets) -> list[dict[int, int]]:
        """For each group, the number of rows in each of these buckets of codes that has any."""
        return self._look(lambda: self._engine.histograms(statement, buckets))

    def holders(self, statement: Holders) -> list[Held]:
        """How many people hold each private key."""
        return self._look(lambda: self._engine.holders(statement))

    def _look(self, look: Callable[[], _T]) -> _T:
        if not self._failed:
            self._failed = True
            with suppress(OSError, Changed):
                if self._files is None:
                    self._files = Unchanged(self._sources)
                found = look()
                self._files.check()
                self._failed = False
                return found
        raise NoAnswer(FAILED)


def _wait(states: Sequence[tuple[int, ...]]) -> float:
    """Seconds until the next change of a file has another time than the last."""
    now = time.time()
    ages = [now - changed / 10**9 for *_, changed in states]
    return max((_TICK - age for age in ages if -_AHEAD < age < _TICK), default=0.0)


def states(paths: Sequence[str]) -> list[tuple[int, ...]]:
    """What changes of a file when it is written to or replaced."""
    found = map(os.stat, paths)
    return [(each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in found]
