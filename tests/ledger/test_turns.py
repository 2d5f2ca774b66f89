"""Threads of one process and a ledger: they wait in turn, none for long, and may fork at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.ledger.common import cost, opened, pay
from tests.ledger.test_busy import holding
from tests.ledger.workers import ROOT

from privet.errors import LedgerBusy
from privet.ledger import Ledger, open_ledger
from privet.ledger.storage import database
from privet.ledger.storage.turns import Patience, Ticket, Turns

THREADS = 6


@pytest.fixture
def ledger(where: str | Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setattr(database, "PATIENCE", 1.0)
    with closing(opened(open_ledger(where))) as made:
        yield made


def seconds(use: Callable[[], object]) -> float:
    start = time.monotonic()
    try:
        use()
    except LedgerBusy:
        return time.monotonic() - start
    return -1.0


# --- a lock that is stuck -----------------------------------------------------------------------------


def test_threads_wait_for_a_stuck_lock_at_the_same_time(where: str | Path, ledger: Ledger) -> None:
    """Not one after the other: each is told after the same time, or after twice that."""
    times: list[float] = []
    with holding(where, "IMMEDIATE"):
        threads = [
            threading.Thread(target=lambda: times.append(seconds(lambda: pay(ledger, None, cost("1/100")))))
            for _ in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(times) == THREADS
    assert min(times) >= 0.9
    assert max(times) < 4, "one after the other it takes six seconds"
    pay(ledger, None, cost("1/100"))


def test_a_reader_passes_a_thread_that_waits_to_write(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with closing(opened(open_ledger(path))) as ledger, holding(path, "IMMEDIATE") as let_go:
        granted: list[float] = []
        writer = threading.Thread(target=lambda: granted.append(seconds(lambda: pay(ledger, None, cost("1/100")))))
        writer.start()
        time.sleep(0.3)
        for _ in range(5):
            ledger.balance("people")
        assert writer.is_alive(), "it still waits"
        let_go()
        writer.join(60)
        assert granted == [-1.0]


def test_a_file_that_is_only_touched_is_not_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a backup or a tool that synchronises folders."""
    monkeypatch.setattr(database, "PATIENCE", 0.5)
    path, done = tmp_path / "people.ledger", threading.Event()

    def touch() -> None:
        end = time.monotonic() + 20
        while not done.wait(0.1) and time.monotonic() < end:
            os.utime(path)

    with closing(opened(open_ledger(path))) as ledger, holding(path, "IMMEDIATE"):
        toucher = threading.Thread(target=touch)
        toucher.start()
        took = seconds(lambda: pay(ledger, None, cost("1/100")))
        done.set()
        toucher.join()
    assert 0.5 <= took < 10


# --- forks --------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_threads_that_fork_at_once(tmp_path: Path) -> None:
    """While others read and open ledgers. Every child can use the ledger, and nothing waits for ever."""
    program = """
        import os, sys, threading, time, warnings
        from pathlib import Path
        warnings.simplefilter("ignore")
        from tests.ledger.common import opened
        from privet.ledger import open_ledger
        folder = Path(sys.argv[1])
        ledgers = [opened(open_ledger(folder / f"{n}.ledger")) for n in range(2)]
        end, codes = time.monotonic() + 4, []
        def fork(n):
            while time.monotonic() < end:
                child = os.fork()
                if child == 0:
                    try:
                        ledgers[n % 2].balance("people")
                        os._exit(0)
                    except BaseException as error:
                        os.write(2, repr(error).encode())
                        os._exit(1)
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        def read(n):
            while time.monotonic() < end:
                ledgers[n % 2].balance("people")
        def open_and_close(n):
            while time.monotonic() < end:
                open_ledger(folder / "other.ledger").close()
        jobs = [fork, fork, fork, read, open_and_close]
        threads = [threading.Thread(target=job, args=(n,), daemon=True) for n, job in enumerate(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        print([thread.is_alive() for thread in threads], set(codes), len(codes) > 3, flush=True)
        os._exit(0)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert ran.stdout == f"{[False] * 5} {{0}} True\n", ran.stdout + ran.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_fork_while_a_step_takes_too_long(where: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fork does not wait for ever, and its child is told to open the ledger itself."""
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    inside, leave = threading.Event(), threading.Event()
    with closing(opened(open_ledger(where))) as ledger:

        def work() -> None:
            with ledger._reading():
                inside.set()
                leave.wait(60)

        thread = threading.Thread(target=work)
        thread.start()
        inside.wait(60)
        source, sink = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                ledger.balance("people")
            except BaseException as error:
                os.write(sink, str(error).encode())
            os._exit(0)
        os.close(sink)
        with os.fdopen(source) as pipe:
            assert "this process was forked while the ledger" in pipe.read()
        os.waitpid(child, 0)
        leave.set()
        thread.join()
        pay(ledger, "x", cost("1/100"))


# --- the queue ----------------------------------------------------------------------------------------


def test_tickets_have_their_turn_in_order() -> None:
    turns, order = Turns(), list[int]()
    first = Ticket()
    assert turns.wait(first, lambda: True)

    def work(n: int) -> None:
        ticket = Ticket()
        turns.wait(ticket, lambda: True)
        order.append(n)
        turns.leave(ticket)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for n, thread in enumerate(threads):
        thread.start()
        while len(turns._queue) < n + 2:
            time.sleep(0.001)
    assert turns.has_this_thread()
    assert not order
    turns.leave(first)
    turns.leave(first)
    for thread in threads:
        thread.join(20)
    assert order == [0, 1, 2, 3]
    assert not turns.has_this_thread()


def test_patience_lasts_while_there_is_progress() -> None:
    patience = Patience(0.05)
    for n in range(4):
        assert patience.lasts(n)
        time.sleep(0.03)
    time.sleep(0.05)
    assert not patience.lasts(3)
