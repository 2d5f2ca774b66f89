"""Ledgers in files and in Postgres, for attacks on them, and processes to attack them from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.ledger.conftest import places, where  # noqa: F401 (fixtures)
from tests.ledger.workers import Nursery
from tests.threats.peers import PATIENCE, Peer, peers, write_people

from privet.ledger.storage import database


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for a lock in vain says so soon."""
    monkeypatch.setattr(database, "PATIENCE", PATIENCE)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_people(tmp_path / "people.parquet")


@pytest.fixture
def start(nursery: Nursery, tmp_path: Path) -> Iterator[Callable[[], Peer]]:
    """Starts processes that are told what to do."""
    with peers(nursery, tmp_path) as made:
        yield made
