"""Stores of accounts in files and in a real Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.server.accounts.common import Clock, Counting, Opener

from privet.server.accounts import Accounts

_NUMBERS = count(1)


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh place for a store."""
    if request.param == "sqlite":
        return str(tmp_path / f"{next(_NUMBERS)}.accounts")
    place: str = request.getfixturevalue("postgres")
    return place


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hasher() -> Counting:
    return Counting()


@pytest.fixture
def open_accounts(where: str, clock: Clock, hasher: Counting) -> Iterator[Opener]:
    """Opens the store, as often as the test wants; each stands for a process of its own."""
    made: list[Accounts] = []

    def opened(kind: type[Accounts] = Accounts, **options: Any) -> Accounts:
        settings: dict[str, Any] = {"hasher": hasher, "clock": clock} | options
        made.append(kind.open(where, **settings))
        return made[-1]

    yield opened
    for accounts in made:
        accounts.close()


@pytest.fixture
def accounts(open_accounts: Opener) -> Accounts:
    return open_accounts()
