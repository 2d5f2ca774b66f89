"""The real server for the client: answers without the ladder, and a clock that tests can move on."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.server.threads import in_thread

from privet.dataset import Dataset
from privet.server.accounts import Accounts, Role

PACE = "\n[server]\npace = 0\nwait = 20\n"


@dataclass(frozen=True)
class Serving:
    """The server, and what the tests look at behind its back."""

    url: str
    accounts: Accounts
    datasets: dict[str, Dataset]
    log: io.StringIO
    """What the server logged."""
    later: list[float]
    """Seconds by which the clock of the accounts is ahead, in parts."""

    def token(self, name: str = "ana", *, label: str = "tests") -> str:
        """A token of an analyst, who is added if need be."""
        if name not in {person.name for person in self.accounts.people()}:
            self.accounts.add(name, Role.ANALYST)
        return self.accounts.create_token(name, label, role=Role.ANALYST, datasets=None, max_epsilon=None, days=1)[0]


@contextmanager
def served(policy: Path) -> Iterator[Serving]:
    """The datasets of a policy, served on a free port."""
    later: list[float] = []
    with in_thread(policy, clock=lambda: time.time() + sum(later)) as up:
        yield Serving(f"http://127.0.0.1:{up.port}", up.accounts, dict(up.server.datasets), up.log, later)
