"""The short form of `./dev soak server`, and proof that its checks find what they look for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.fire.kills import killed
from tests.server.fire.program import wrong_in


@pytest.mark.slow
@pytest.mark.parametrize("postgres", [False, True], ids=["sqlite", "postgres"])
def test_no_answer_without_its_debit(tmp_path: Path, postgres: bool) -> None:
    found = killed(tmp_path / "served", 2, postgres=postgres, patience=0)
    assert found.wrong == []
    assert found.answers
    assert sum(found.kills.values()) == 2
    if not postgres:  # what the clients got, changed in each way that a broken server could have made it
        ledger, answer = str(tmp_path / "served" / "people.ledger"), found.answers[0]
        for other, what in (
            (replace(answer, entry=10**9), "an answer without its debit"),
            (replace(answer, request_id="7"), "an answer with the debit of another"),
            (replace(answer, epsilon="7"), "an answer with the debit of another"),
            (replace(answer, rows="7"), "two draws for one debit"),
        ):
            wrong = wrong_in(ledger, [answer, other])
            assert len(wrong) == 1
            assert wrong[0].startswith(what)
