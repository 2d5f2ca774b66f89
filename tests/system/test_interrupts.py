"""Ctrl-C as real signals: heard while a database works, held back while a debit is made, never lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import duckdb
import pytest

from privet.system.interrupts import Deferred, duckdb_interrupts, interruptible

ENDLESS = "SELECT sum(hash(a.i, b.i) % 7) FROM range(10000000) a(i), range(10000000) b(i)"
SHORT = "SELECT sum(hash(a.i, b.i) % 7) FROM range(100000) a(i), range(1000) b(i)"


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def later(do: Callable[[], None]) -> None:
    threading.Timer(0.1, do).start()


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(duckdb.connect()) as made:
        yield made


def test_a_query_that_would_not_end_is_stopped(connection: duckdb.DuckDBPyConnection) -> None:
    later(press)
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: connection.execute(ENDLESS).fetchall(), connection.interrupt)
    assert interruptible(lambda: connection.execute("SELECT 7").fetchall(), connection.interrupt) == [(7,)]


def test_a_call_to_stop_that_comes_too_early_is_repeated() -> None:
    """The interrupt of a database is lost if it comes before the query."""
    calls = 0
    enough = threading.Event()

    def stop() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            enough.set()

    later(press)
    with pytest.raises(KeyboardInterrupt):
        interruptible(enough.wait, stop)
    assert calls == 3


def test_errors_are_passed_on_as_they_are() -> None:
    error = RuntimeError("its own")

    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError) as caught:
        interruptible(fail, lambda: None)
    assert caught.value is error


def test_no_thread_is_needed(monkeypatch: pytest.MonkeyPatch, connection: duckdb.DuckDBPyConnection) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    later(press)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: (connection.execute(SHORT).fetchall(), threading.Event().wait()), connection.interrupt)


def test_duckdb_s_own_error_is_turned_back(connection: duckdb.DuckDBPyConnection) -> None:
    later(press)
    with pytest.raises(KeyboardInterrupt), duckdb_interrupts():  # noqa: PT012
        connection.execute(SHORT).fetchall()
        signal.pause()  # if the query was over already
    with pytest.raises(RuntimeError, match="of another kind"), duckdb_interrupts():
        raise RuntimeError("of another kind")


def test_what_was_begun_is_ended_first() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), Deferred():  # noqa: PT012
        press()
        done.append("debit")
    assert done == ["debit"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_is_raised_where_it_is_allowed() -> None:
    done = []
    with Deferred() as waiting:
        press()
        done.append("debit")
        with pytest.raises(KeyboardInterrupt), waiting.allowed():
            done.append("not reached")
        with pytest.raises(KeyboardInterrupt), waiting.allowed():  # noqa: PT012
            press()
            done.append("not reached")
        done.append("settled")
    assert done == ["debit", "settled"]


def test_a_second_one_does_not_wait() -> None:
    with pytest.raises(KeyboardInterrupt), Deferred():  # noqa: PT012
        press()
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_program_s_own_is_called_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def own(number: int, frame: Any) -> None:
        seen.append(number)

    before = signal.signal(signal.SIGINT, own)
    try:
        with Deferred() as waiting:
            press()
            assert seen == []
            with waiting.allowed():
                assert seen == [signal.SIGINT]
        assert seen == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_hear_no_signals_and_change_no_handlers() -> None:
    found: list[Any] = []

    def work() -> None:
        with Deferred() as waiting, waiting.allowed():
            found.append(signal.getsignal(signal.SIGINT))
        found.append(interruptible(threading.get_ident, lambda: None))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler, thread.ident]
