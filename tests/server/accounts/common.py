"""What tests of accounts share: cheap passwords, a clock to turn, all that a store holds, and jobs for processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher

from privet.errors import BudgetError
from privet.server.accounts import Accounts, Role, throttle
from privet.server.accounts.grants import Grant
from privet.server.accounts.throttle import Rule

HERE, THERE = "192.0.2.1", "198.51.100.7"
PASSWORD, OTHER = "correct horse battery", "staple of another kind"


class Counting(PasswordHasher):
    """Argon2 with the cheapest parameters; counts what it is asked."""

    def __init__(self, pause: float = 0.0, time_cost: int = 1) -> None:
        super().__init__(time_cost=time_cost, memory_cost=8, parallelism=1)
        self.verified = self.hashed = 0
        self._pause = pause

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 (as in argon2)
        self.verified += 1
        time.sleep(self._pause)
        return super().verify(hash, password)

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        self.hashed += 1
        time.sleep(self._pause)
        return super().hash(password, salt=salt)


class Clock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


IN_A_FILE = pytest.mark.parametrize("where", ["sqlite"], indirect=True)
"""For what does not depend on the database."""
Opener = Callable[..., Accounts]


def steward(accounts: Accounts, name: str = "sam", password: str = PASSWORD) -> str:
    """A steward with a password; returns their name."""
    accounts.add(name, Role.STEWARD)
    accounts.set_password(name, password)
    return name


def analyst(accounts: Accounts, name: str = "ana", datasets: list[str] | None = None) -> str:
    accounts.add(name, Role.ANALYST, datasets)
    accounts.set_password(name, PASSWORD)
    return name


def everything(accounts: Accounts) -> str:
    """All that the store holds, as text."""
    from privet.server.accounts.tables import metadata

    with accounts._store.reading() as connection:
        return repr([connection.execute(sa.select(table)).all() for table in metadata.sorted_tables])


# --- jobs of processes ------------------------------------------------------------------------------


@contextmanager
def opened(where: str) -> Iterator[Accounts]:
    with Accounts.open(where, hasher=Counting()) as accounts:
        yield accounts


def wait(gate: str) -> None:
    folder = Path(gate)
    (folder / str(os.getpid())).touch()
    while not (folder / "open").exists():
        time.sleep(0.002)


def holds(where: str, token: str, times: int, gate: str) -> int:
    """How many of so many holds of 1/100 were granted."""
    granted = 0
    with opened(where) as accounts:
        wait(gate)
        for _ in range(times):
            try:
                accounts.hold(token, Fraction(1, 100))
                granted += 1
            except BudgetError:
                continue
    return granted


def creates(where: str, gate: str) -> str:
    """Open a store that others create, too; returns its signing key."""
    wait(gate)
    with opened(where) as accounts:
        return accounts._store.key.hex()


def shows_tokens(where: str, log: str, die: str, careless: bool) -> None:
    """Create tokens and show them in a file, until killed: from outside, or by itself at a point of the third."""
    with opened(where) as accounts, open(log, "a", encoding="utf-8", buffering=1) as shown:  # noqa: PTH123
        made = 0

        def at(point: str) -> Callable[..., None]:
            def reached(*_: Any) -> None:
                if made == 2 and die == point:
                    os.kill(os.getpid(), signal.SIGKILL)

            return reached

        if careless:  # a twin that shows a token before it is stored
            store = Grant.store

            def early(*known: Any) -> tuple[str, str]:
                text, key = store(*known)
                print(text, file=shown)
                return text, key

            Grant.store = early  # type: ignore[method-assign, assignment]
        sa.event.listen(accounts._store.engine, "commit", at("before commit"))
        sa.event.listen(accounts._store.engine, "checkin", at("after commit"))
        throttle.TOKENS = Rule(10**9, 1)  # the clock of the tests is ahead of this process
        while True:
            text, token = accounts.create_token("ana", f"token {made}")
            accounts.revoke_token(token.id) if made > 50 else None
            print(text, file=shown)
            made += 1
