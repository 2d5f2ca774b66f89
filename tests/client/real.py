"""The real server on loopback, in a thread: accounts with cheap passwords, and answers without the ladder."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from argon2 import PasswordHasher

from privet.dataset import Dataset
from privet.policy import load
from privet.server.accounts import Accounts, Role
from privet.server.app import application
from privet.server.logs import Log
from privet.server.serving import configured
from privet.server.settings import Settings
from privet.server.state import Server

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
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio sets no TCP_NODELAY
    taken.bind(("127.0.0.1", 0))
    read = load(policy)
    settings = Settings.of(read, listen=f"127.0.0.1:{taken.getsockname()[1]}")
    later: list[float] = []
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    accounts = Accounts.open(settings.accounts, hasher=cheap, clock=lambda: time.time() + sum(later))
    log = io.StringIO()
    server = Server.open(read, settings, accounts, Log(log))
    running = uvicorn.Server(configured(application(server), settings))
    running.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    thread = threading.Thread(target=running.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    try:
        while not running.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield Serving(f"http://127.0.0.1:{settings.port}", accounts, dict(server.datasets), log, later)
    finally:
        running.should_exit = True
        thread.join()
        taken.close()
