"""Connections to Postgres that do not wait forever. It needs psycopg, so it is imported where it is used."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from typing import Any

import psycopg

NETWORK = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Defaults that detect an unresponsive server; the address can override them."""


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that is closed if the server sends nothing for `silence` seconds, or once it is `abandoned`.

    Claim: whoever waits for a server that sends nothing gets an error after a limited time. The server's own timeouts
    don't help if its process is stopped or its storage hangs.
    """

    silence = 65.0
    limit = 60.0
    """Seconds that a statement may take; the server ends it."""
    abandoned = False

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
                elif self.abandoned or now - heard > self.silence:
                    self.close()
                    waited = "" if self.abandoned else f" for {self.silence:g} seconds"
                    raise psycopg.OperationalError(f"Postgres has not responded{waited}")
                waits_for = steps.send(ready)
        except StopIteration as end:
            return end.value


logging.getLogger("psycopg").addHandler(logging.NullHandler())  # otherwise it prints what it can't raise
