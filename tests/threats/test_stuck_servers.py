"""A Postgres that stops responding: nobody waits forever, and there is no answer without its debit."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest
from tests.ledger.common import PEOPLE, ask, cost, pay

from privet.errors import LedgerError
from privet.ledger import Ledger, failpoints, open_ledger
from privet.ledger.storage.postgres import database as postgres_ledger
from privet.ledger.storage.postgres import deadlines, settings
from privet.privacy.guarantees import PureDP


@pytest.fixture(autouse=True)
def impatient_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines.LimitedConnection, "silence", 1.0)


@contextmanager
def stopped(ledger: Ledger) -> Iterator[None]:
    """The process of the server that serves this ledger stands still."""
    pid = ledger._database._held[0].driver_connection.info.backend_pid  # type: ignore[union-attr]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_limit_is_longer_than_the_timeouts_of_the_server() -> None:
    assert deadlines.SILENCE > settings.LONGEST


@pytest.mark.parametrize("place", ["reserve: written", "settle: written"])
def test_a_server_that_stops_in_the_middle_of_a_debit(
    postgres: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the commit succeeds when the server goes on is not known here: nothing is answered."""
    with closing(open_ledger(postgres)) as ledger:
        ledger.create(PEOPLE)
        ask(ledger, "first", "42", "0.1")
        stop = stopped(ledger)

        def reached(name: str) -> None:
            if name == place:
                stop.__enter__()

        monkeypatch.setattr(failpoints, "reached", reached)
        start = time.monotonic()
        with pytest.raises(LedgerError, match="Postgres has not responded for 1 seconds"):
            ask(ledger, "second", "43", "0.1")
        assert time.monotonic() - start < 5
        with pytest.raises(LedgerError, match="open the ledger again"):
            pay(ledger, "third", cost("0.1"))
        stop.__exit__(None, None, None)
    monkeypatch.undo()
    with closing(open_ledger(postgres)) as ledger:
        ledger.verify()
        spent = ledger.balance("people").spent
        assert spent in ((PureDP("0.1"), PureDP("0.2")) if place == "reserve: written" else (PureDP("0.2"),))
        ask(ledger, "fourth", "44", "0.1")


def test_an_idle_connection_whose_server_stopped_is_replaced(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_ledger, "_FRESH", 0.0)
    with closing(open_ledger(postgres)) as ledger:
        ledger.create(PEOPLE)
        with stopped(ledger):
            start = time.monotonic()
            ask(ledger, "first", "42", "0.1")
            assert time.monotonic() - start < 5
        assert ledger.balance("people").spent == PureDP("0.1")


def test_other_threads_do_not_wait_forever_either(postgres: str) -> None:
    ended: list[str] = []
    with closing(open_ledger(postgres)) as ledger:
        ledger.create(PEOPLE)

        def look() -> None:
            try:
                ledger.balance("people")
            except LedgerError as error:
                ended.append(str(error))

        with stopped(ledger):
            threads = [threading.Thread(target=look) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
        assert len(ended) == 3


def test_a_server_that_works_for_long_is_waited_for(postgres: str) -> None:
    """What counts is silence: here rows arrive all the time."""
    with closing(deadlines.LimitedConnection.connect(postgres)) as connection:
        rows = connection.execute("SELECT pg_sleep(0.3), repeat('x', 20000) FROM generate_series(1, 6)").fetchall()
        assert len(rows) == 6
        with pytest.raises(psycopg.OperationalError, match="has not responded for 1 seconds"):
            connection.execute("SELECT pg_sleep(5)")
        assert connection.closed
