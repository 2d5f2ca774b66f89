"""What one process has of a database: as many connections as questions run at a time."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Generic, TypeVar

_Connection = TypeVar("_Connection")


class Pool(ABC, Generic[_Connection]):
    """Connections that are lent to one question at a time.

    Claim: one that failed, or was interrupted, or is not usable any more, is never lent again. A child that a signal
    handler forks from a question neither gives back nor drops what is its parent's.
    """

    def __init__(self) -> None:
        self.idle: list[_Connection] = []
        self._lent: dict[object, _Connection | None] = {}
        self._changed = Condition()

    @abstractmethod
    def _connect(self) -> _Connection:
        """One more."""

    @abstractmethod
    def _drop(self, connection: _Connection) -> None:
        """Let go of one."""

    def _usable(self, connection: _Connection) -> bool:
        """Whether one that comes back can be lent again."""
        return True

    @property
    def running(self) -> list[_Connection]:
        """Those that are lent."""
        return [each for each in list(self._lent.values()) if each is not None]

    @contextmanager
    def connection(self) -> Iterator[_Connection]:
        """One that nobody else uses while this lasts."""
        process, ticket = os.getpid(), object()
        connection, usable = None, False
        try:
            with self._changed:
                connection = self.idle.pop() if self.idle else None
                self._lent[ticket] = connection
            if connection is None:
                connection = self._lent[ticket] = self._connect()
            yield connection
            usable = self._usable(connection)
        finally:
            if os.getpid() == process:
                with self._changed:
                    self._lent.pop(ticket, None)
                    if usable and connection is not None:
                        self.idle.append(connection)
                    self._changed.notify_all()
                if not usable and connection is not None:
                    self._drop(connection)

    def close(self) -> None:
        """After what is running."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lent)
            for connection in self.idle:
                self._drop(connection)
            self.idle.clear()
