"""A ledger or an account store that can't be reached: come back later; not that somebody must fix it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest
import sqlalchemy as sa
from tests.server.api.serving import COUNT, serving

from privet.errors import LedgerBusy, LedgerError
from privet.ledger import Ledger
from privet.server.accounts.in_postgres import InPostgres
from privet.server.problems import failed

ASKED = {"sql": COUNT, "epsilon": 0.5}


def test_a_process_whose_ledger_was_lost_ends(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        ends: list[bool] = []
        object.__setattr__(running.server, "end", lambda: ends.append(True))
        ann, database = running.token("ann"), running.server.datasets["people"].ledger._database
        database.stop("the ledger secret-place was tampered with")
        tampered = ann.post("/datasets/people/query", json=ASKED)
        assert (tampered.status_code, "retry-after" in tampered.headers, ends) == (500, False, [])
        database.lost = True
        lost = ann.post("/datasets/people/query", json=ASKED)
        assert (lost.status_code, lost.headers["retry-after"], ends) == (503, "5", [True])
        assert "secret-place" not in tampered.text + lost.text


def test_a_debit_that_may_be_made_stays_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path) as running:
        ledger = type(running.server.ledger)
        limited, reserve = running.token("ann", max_epsilon=Fraction(1)), ledger.reserve

        def lost(self: Ledger, **options: Any) -> NoReturn:
            reserve(self, **options)
            raise LedgerError("the connection broke after the commit")

        def busy(self: Ledger, **options: Any) -> NoReturn:
            raise LedgerBusy("another process holds the lock")

        for fails, spent in ((busy, "0"), (lost, "0.5")):
            monkeypatch.setattr(ledger, "reserve", fails)
            assert limited.post("/datasets/people/query", json=ASKED).status_code >= 500
            assert limited.get("/me").json()["token"]["spent"] == spent


def test_a_lost_connection_is_no_damage(tmp_path: Path) -> None:
    store = InPostgres(sa.create_engine("postgresql+psycopg://"), "secret-place", ())
    refused = sa.exc.OperationalError("SELECT", {}, psycopg.OperationalError("connection refused by secret-place"))
    for error, status in {
        refused: 503,
        sa.exc.OperationalError("SELECT", {}, psycopg.errors.AdminShutdown()): 503,
        sa.exc.OperationalError("SELECT", {}, psycopg.errors.LockNotAvailable()): 503,
        sa.exc.OperationalError("SELECT", {}, psycopg.errors.DiskFull()): 500,
        sa.exc.ProgrammingError("SELECT", {}, psycopg.errors.UndefinedTable()): 500,
    }.items():
        shown = failed(store.error(error))
        assert (shown.status_code, "retry-after" in shown.headers) == (status, status == 503)
        assert b"secret-place" not in shown.body
