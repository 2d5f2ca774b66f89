"""The short form of `./dev soak server`, and proof that its checks find what they look for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.fire.kills import killed
from tests.server.fire.program import wrong_in


@pytest.mark.slow
def test_no_answer_without_its_debit(tmp_path: Path) -> None:
    found = killed(tmp_path / "served", 2, postgres=False, grant="0.04", patience=0)
    assert found.wrong == []
    assert found.kills == {"a process of the server": 2}
    assert found.refused  # eight clients, and at first a budget for four questions
    ledger, answer = str(tmp_path / "served" / "people.ledger"), found.answers[0]
    for other, what in (  # changed in each way that a broken server could have made it
        (replace(answer, entry=10**9), "an answer without its debit"),
        (replace(answer, request_id="7"), "an answer with the debit of another"),
        (replace(answer, epsilon="7"), "an answer with the debit of another"),
        (replace(answer, rows="7"), "two draws for one debit"),
    ):
        wrong = wrong_in(ledger, [answer, other])
        assert len(wrong) == 1
        assert wrong[0].startswith(what)
    key = (answer.analyst, answer.request_id)
    for lists, whats in (
        ({"refused": [key]}, ["was refused, and is paid for"]),
        ({"failed": [key]}, ["failed, and has an answer"]),
        ({"failed": [("ann0", "never asked")]}, ["failed, and is not paid for"]),
    ):
        wrong = wrong_in(ledger, [answer], **lists)
        assert [each.partition(") ")[2] for each in wrong] == whats


@pytest.mark.slow
def test_a_killed_postgres(tmp_path: Path, server: str) -> None:
    """Requests get 503 until it is back; then the server goes on by itself."""
    found = killed(tmp_path / "served", 1, postgres=True, seed=7, patience=0)  # which kills Postgres
    assert found.wrong == []
    assert found.kills == {"Postgres": 1}
    assert found.answers
