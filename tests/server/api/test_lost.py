"""A ledger or an account store that can't be reached: come back later; not that somebody must fix it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import sqlalchemy as sa
from tests.server.api.serving import COUNT, serving

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
