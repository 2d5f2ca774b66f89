"""Connections to Postgres that do not wait forever.

Claim: whoever waits for a server that sends nothing gets an error after a limited time. The server's own timeouts don't
help if its process is stopped or its storage hangs. Such a connection is closed for good: whether its last transaction
was committed is not known, so the ledger has to be opened again, and nothing is answered before that.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg

from privet.ledger.storage.postgres.settings import LONGEST

SILENCE = LONGEST + 5.0
"""Seconds in which a server must send something. Its own timeouts are shorter."""


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that is closed if the server sends nothing for `silence` seconds."""

    silence = SILENCE

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        """Wait for the server, as every operation of the driver does."""
        return super().wait(self._limited(gen), *arguments, **options)

    def _limited(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The same steps. The driver resumes them when the server sends something, and ten times a second."""
        heard = time.monotonic()
        try:
            waits_for = next(steps)
            while True:
                ready = yield waits_for
                now = time.monotonic()
                if ready:
                    heard = now
                elif now - heard > self.silence:
                    self.close()
                    raise psycopg.OperationalError(f"Postgres has not responded for {self.silence:g} seconds")
                waits_for = steps.send(ready)
        except StopIteration as end:
            return end.value
