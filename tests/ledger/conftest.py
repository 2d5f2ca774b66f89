"""Where ledgers live: in memory, in files, and in a real Postgres (tests/postgres.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from privet.ledger import Ledger, memory_ledger, open_ledger

Where = str | Path
Factory = Callable[[], Ledger]

LEDGERS = ("memory", "sqlite", "postgres")
"""Every kind of ledger there is. The contracts are run for each: a further one joins by its name and a line below."""

DURABLE = ("sqlite", "postgres")
_NUMBERS = count(1)


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Where | None]:
    """A fresh place for a ledger of each kind; in memory there is none to name."""

    def fresh(kind: str) -> Where | None:
        if kind == "memory":
            return None
        if kind == "sqlite":
            return tmp_path / f"{next(_NUMBERS)}.ledger"
        databases: Callable[[], str] = request.getfixturevalue("databases")
        return databases()

    return fresh


@pytest.fixture(params=DURABLE)
def where(request: pytest.FixtureRequest, places: Callable[[str], Where | None]) -> Where:
    """A fresh place for a ledger that outlives its process."""
    place = places(request.param)
    assert place is not None
    return place


@pytest.fixture
def makers(places: Callable[[str], Where | None]) -> Iterator[Callable[[str], Ledger]]:
    """A fresh ledger of each kind; all are closed after the test."""
    made: list[Ledger] = []

    def fresh(kind: str) -> Ledger:
        place = places(kind)
        made.append(memory_ledger() if place is None else open_ledger(place))
        return made[-1]

    yield fresh
    for ledger in made:
        ledger.close()


@pytest.fixture(params=LEDGERS)
def make(request: pytest.FixtureRequest, makers: Callable[[str], Ledger]) -> Factory:
    """Makes fresh ledgers, of each kind in turn."""
    kind: str = request.param
    return lambda: makers(kind)
