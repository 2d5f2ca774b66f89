"""A dataset with a large budget, and a server that can lie about it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.asking import POLICY, made
from tests.client.hostile import TOKEN, Liar, lying

import privet as pv
from privet.client import wire


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("people"), POLICY.replace("epsilon = 3 }", "epsilon = 1000 }"))


@pytest.fixture(scope="module")
def behind(folder: Path) -> Iterator[pv.Session]:
    """The session from which the lying server answers."""
    with pv.Session.open(folder / "privet.toml") as session:
        yield session


@pytest.fixture(scope="module")
def server(behind: pv.Session) -> Iterator[Liar]:
    with lying(behind) as liar:
        yield liar


@pytest.fixture
def liar(server: Liar) -> Liar:
    """The server, honest again and with nothing heard."""
    server.lie, server.first = lambda heard, said: said, lambda heard: None
    server.heard.clear()
    return server


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the client makes; only its clock notices them."""
    slept: list[float] = []
    monkeypatch.setattr(wire, "sleep", slept.append)
    monkeypatch.setattr(wire, "now", lambda: time.monotonic() + sum(slept))
    return slept


@pytest.fixture
def remote(liar: Liar, pauses: list[float]) -> Iterator[pv.client.RemoteSession]:
    with pv.connect(liar.url, token=TOKEN) as session:
        liar.heard.clear()
        yield session
