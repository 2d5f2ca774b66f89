"""The search for neighbours that move a measurement too far, on Postgres. The long form: `./dev soak postgres`."""

from __future__ import annotations

import pytest
from tests.neighbours import in_postgres
from tests.neighbours.search import search

from privet.engines.sql.bounding import Bounds


@pytest.fixture(autouse=True)
def home(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(in_postgres.AT, server)


@pytest.mark.slow
def test_no_neighbour_moves_a_measurement_too_far(effort: int) -> None:
    found = search(range(90_000, 90_000 + 3 * effort), measure=in_postgres.by_postgres, forms=3)
    assert found.violations == []
    assert found.cases > 30


@pytest.mark.slow
def test_a_twin_without_bounding_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bounds, "_rows", lambda self, rows, most, fields: rows)
    monkeypatch.setattr(Bounds, "_groups", lambda self, rows, groups, most, group, fields: rows)
    found = search(range(90_000, 90_040), measure=in_postgres.by_postgres, forms=3, stop=True)
    assert any("moved by" in each for each in found.violations)
