"""One server for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.server.api.serving import Running, serving

from privet.server.accounts import Role


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def ann(running: Running) -> httpx.Client:
    """An analyst of people."""
    return running.token("ann")


@pytest.fixture(scope="module")
def bob(running: Running) -> httpx.Client:
    """An analyst of people and trips."""
    return running.token("bob")


@pytest.fixture(scope="module")
def tim(running: Running) -> httpx.Client:
    """An analyst of trips."""
    return running.token("tim")


@pytest.fixture(scope="module")
def sam(running: Running) -> httpx.Client:
    """The steward."""
    return running.token("sam", role=Role.STEWARD)


@pytest.fixture(scope="module")
def nobody(running: Running) -> httpx.Client:
    """Somebody without an account."""
    return running.client()
