"""A real server on loopback, in a thread of the tests: accounts with cheap passwords, and a log that can be read."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from argon2 import PasswordHasher

from privet.policy import load
from privet.server.accounts import Accounts
from privet.server.app import application
from privet.server.logs import Log
from privet.server.serving import configured
from privet.server.settings import Settings
from privet.server.state import Server

CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that runs."""

    port: int
    server: Server
    log: io.StringIO

    @property
    def accounts(self) -> Accounts:
        return self.server.accounts


@contextmanager
def in_thread(policy: Path, *, clock: Callable[[], float] = time.time) -> Iterator[Serving]:
    """The datasets of a policy, served on a free port; nobody has an account unless the store says so."""
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio sets no TCP_NODELAY
    taken.bind(("127.0.0.1", 0))
    port = int(taken.getsockname()[1])
    read = load(policy)
    settings = Settings.of(read, listen=f"127.0.0.1:{port}")
    accounts = Accounts.open(settings.accounts, hasher=CHEAP, clock=clock)
    log = io.StringIO()
    server = Server.open(read, settings, accounts, Log(log))
    runs = uvicorn.Server(configured(application(server), settings))
    thread = threading.Thread(target=runs.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    try:
        while not runs.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield Serving(port, server, log)
    finally:
        runs.should_exit = True
        thread.join(30)
        taken.close()
    assert not thread.is_alive()
