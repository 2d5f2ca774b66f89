"""L5: others hold the ledger's lock, for a moment or for ever; and whoever only looks is in nobody's way."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.ledger import workers
from tests.ledger.common import PEOPLE, ask, cost, furnish, kinds, opened, pay
from tests.ledger.workers import Nursery

from privet.errors import LedgerBusy, LedgerError, UserError
from privet.ledger import Ledger, Verified, failpoints, open_ledger, verify_export
from privet.ledger.storage import book, database
from privet.privacy.guarantees import PureDP

Where = str | Path

HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN " + sys.argv[2])
print("held", flush=True)
sys.stdin.readline()
held.execute("ROLLBACK")
held.close()
print("let go", flush=True)
"""


@contextmanager
def holding(where: Where, how: str) -> Iterator[Callable[[], None]]:
    """Another process holds the lock of a writer (immediate), or that of one who lets nobody in (exclusive)."""
    if isinstance(where, str):
        with psycopg.connect(where) as other:
            alone = "LOCK TABLE privet_ledger IN ACCESS EXCLUSIVE MODE"
            other.execute("SELECT * FROM privet_ledger FOR UPDATE" if how == "IMMEDIATE" else alone)
            yield other.rollback
        return
    command = [sys.executable, "-c", HOLD, str(where), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        done: list[bool] = []

        def let_go() -> None:
            if not done:
                done.append(True)
                process.stdin.write("\n")  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
                assert process.stdout.readline() == "let go\n"  # type: ignore[union-attr]

        yield let_go
        let_go()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.3)


@pytest.fixture
def ledger(where: Where) -> Iterator[Ledger]:
    with closing(opened(open_ledger(where))) as made:
        yield made


def is_busy(use: Callable[[], object]) -> None:
    start = time.monotonic()
    with pytest.raises(
        LedgerBusy, match=r"is busy: .* held its lock for 0\.3 seconds\. Nothing was written\. Try again later$"
    ):
        use()
    assert time.monotonic() - start >= 0.3, "it was waited for"


# --- held by another process --------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_ledger_whose_lock_is_held_is_busy_and_works_afterwards(where: Where, ledger: Ledger, how: str) -> None:
    ledger._leases.seconds = 1.0  # so long an answer is waited for
    ask(ledger, "first", "42")
    charge = pay(ledger, "running", cost("0.1"))
    before = list(ledger.export())
    with holding(where, how) as let_go:
        for use in (
            lambda: pay(ledger, "x", cost("0.1")),
            lambda: ledger.settle(charge, "answered", "43"),
            lambda: ledger.cap("people", PureDP(2), reason="more"),
            lambda: ledger.declare("people", "2"),
            lambda: ledger.create(replace(PEOPLE, name="visits")),
        ):
            is_busy(use)
        let_go()
        assert list(ledger.export()) == before, "nothing was written"
        assert pay(ledger, "x", cost("0.1")).state == "reserved"
        ledger.settle(charge, "answered", "43")
    assert pay(ledger, "running", cost("0.1")).answer == "43"
    assert kinds(ledger) == ["created", "reserved", "answered", "reserved", "reserved", "answered"]
    ledger.verify()


def test_readers_work_while_a_writer_holds_its_lock(where: Where, ledger: Ledger) -> None:
    ask(ledger, "first", "42", question="q")
    with holding(where, "IMMEDIATE"):
        for read_only in (False, True):
            with closing(open_ledger(where, read_only=read_only)) as other:
                for each in (ledger, other):
                    assert each.balance("people").spent == PureDP("0.01")
                    assert kinds(each) == ["created", "reserved", "answered"]
                    assert each.verify().head == each.head()
                    assert verify_export(each.export()) == each.verify()
                    assert opened(each) is each, "a dataset that is known is opened without a lock"
                    found = each.stored(dataset="people", analyst="bob", events=[cost("0.01")], question="q")
                    assert found is not None
                    assert found.answer == "42"
    ask(ledger, "second", "43")


def test_where_nobody_is_let_in_readers_are_told_too(where: Where, ledger: Ledger) -> None:
    with holding(where, "EXCLUSIVE"):
        is_busy(lambda: ledger.balance("people"))
        is_busy(ledger.verify)
        for read_only in (False, True):
            is_busy(lambda read_only=read_only: open_ledger(where, read_only=read_only))  # type: ignore[misc]
    assert ledger.balance("people").spent == PureDP.ZERO
    open_ledger(where).close()


def test_a_long_reader_keeps_debits_out_of_a_file_and_they_are_told(tmp_path: Path) -> None:
    """A backup that takes its time: a commit needs the file for itself, and nothing is left half done."""
    path = tmp_path / "people.ledger"
    with closing(opened(open_ledger(path))) as ledger:
        ask(ledger, "first", "42")
        code = HOLD.replace(
            '"BEGIN " + sys.argv[2])', '"BEGIN")\nheld.execute("SELECT * FROM privet_ledger").fetchall()'
        )
        command = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "held\n"
            is_busy(lambda: pay(ledger, "x", cost("0.1")))
            assert ledger.balance("people").spent == PureDP("0.01")
            reader.communicate("\n")
        assert pay(ledger, "x", cost("0.1")).state == "reserved"
        ledger.verify()


@pytest.mark.slow
def test_a_queue_that_moves_is_waited_for(where: Where, nursery: Nursery, tmp_path: Path) -> None:
    """Each of nine holds the lock for 0.3 seconds, again and again: who waits for long is not told "busy"."""
    patience, each, crowd, times = 2.0, 0.3, 9, 2
    workers.opened(where).close()
    same: dict[str, Any] = {"where": where, "times": times, "patience": patience, "each": each}
    names = [f"p{i}" for i in range(crowd)]
    found = nursery.race(workers.slow_debits, tmp_path, who=names, **{n: [v] * crowd for n, v in same.items()})
    seconds = [took for one in found for took in one]
    assert len(seconds) == crowd * times
    assert max(seconds) > patience, "this test is of those who wait long"
    with closing(open_ledger(where)) as ledger:
        ledger.verify()
        assert ledger.balance("people").spent == PureDP("0.18")


# --- what is under way --------------------------------------------------------------------------------


def test_a_lease_outlives_a_busy_ledger(where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its beats can't be counted while the lock is held; afterwards they are."""
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    with closing(opened(open_ledger(where, lease=0.6))) as ledger:
        charge = pay(ledger, "x", cost("0.1"))
        thread = ledger._leases._thread
        assert thread is not None
        with holding(where, "IMMEDIATE"):
            time.sleep(1)
        time.sleep(0.6)
        assert thread.is_alive()
        with closing(open_ledger(where, lease=0.6)) as other:
            asked = pay(other, "x", cost("0.1"))
            assert asked.state == "running"
            with pytest.raises(LedgerBusy, match="still running in another process"):
                other.wait(asked, seconds=1.5)
        ledger.settle(charge, "answered", "42")
        assert pay(ledger, "x", cost("0.1")).answer == "42"


@pytest.mark.parametrize("released", [True, False])
def test_an_answer_that_is_paid_for_waits_longer(where: Where, released: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is taken between the debit and the answer."""
    with closing(workers.opened(where, lease=2)) as ledger, workers.on(ledger) as session:
        workers.ask(session, "first")
        stack: list[Any] = []

        def reached(place: str) -> None:
            if place == "answer: drawn" and not stack:
                stack.append(holding(where, "IMMEDIATE"))
                let_go = stack[0].__enter__()
                if released:
                    threading.Timer(0.9, let_go).start()

        monkeypatch.setattr(failpoints, "reached", reached)
        seen = workers.outcome(lambda: workers.ask(session, "second"))
        stack[0].__exit__(None, None, None)
        state = workers.read(ledger)
        number = state.paid["second"]
        if released:
            assert "answer" in seen, seen
            assert number in state.ended
        else:
            assert seen["error"] == "LedgerBusy"
            assert "was paid for, and nothing was released" in seen["text"]
            assert number not in state.ended
        workers.ask(session, "third")


def test_an_interrupt_is_passed_on_though_the_ledger_is_busy(where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(workers.opened(where, lease=1)) as ledger, workers.on(ledger) as session:
        stack: list[Any] = []

        def reached(place: str) -> None:
            if place == "answer: drawn" and not stack:
                stack.append(holding(where, "IMMEDIATE"))
                stack[0].__enter__()
                raise KeyboardInterrupt

        monkeypatch.setattr(failpoints, "reached", reached)
        with pytest.raises(KeyboardInterrupt):
            workers.ask(session, "first")
        stack[0].__exit__(None, None, None)
        workers.ask(session, "second")
        ends = [entry.kind for entry in ledger.history("people") if entry.refers is not None]
        assert ends == ["interrupted", "answered"]


# --- looking only -------------------------------------------------------------------------------------


def test_a_ledger_that_is_opened_for_reading_writes_nothing(where: Where, tmp_path: Path) -> None:
    with closing(open_ledger(where)) as writer:
        furnish(writer)
        with closing(open_ledger(where, read_only=True)) as ledger:
            before = list(writer.export())
            charge = pay(writer, "mine", cost("0.01"), analyst="cleo")
            for use in (
                lambda: pay(ledger, "x", cost("0.1")),
                lambda: ask(ledger, None, "42", question="new"),
                lambda: ledger.settle(charge, "answered", "42"),
                lambda: ledger.cap("people", PureDP(2), reason="more"),
                lambda: ledger.declare("people", "new"),
                lambda: ledger.reopen("people", "a reason"),
                lambda: ledger.create(replace(PEOPLE, name="visits")),
                lambda: ledger.protect("people", "visits", "id", reason="a reason"),
                lambda: ledger.allow_source("people", "people.parquet", reason="a reason"),
            ):
                with pytest.raises(UserError, match="was opened read-only"):
                    use()
            assert list(writer.export())[:-1] == list(ledger.export())[:-1] == before
            assert ledger.verify(writer.head()) == writer.verify(), "it follows what others write"
            assert (ledger.balance("people"), ledger.analysts("people")) == (
                writer.balance("people"),
                writer.analysts("people"),
            )
            writer.settle(charge, "answered", "42")
            assert ledger.reservation("people", charge.number)[1] == writer.history("people")[-1]


def test_what_is_opened_for_reading_is_not_made(tmp_path: Path, postgres: str) -> None:
    for where in (tmp_path / "people.ledger", postgres):
        with pytest.raises(UserError, match="there is no ledger"):
            open_ledger(where, read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_whoever_may_not_write_can_look(nursery: Nursery) -> None:
    with tempfile.TemporaryDirectory() as name:  # not tmp_path: nobody may look into that
        folder, path = Path(name), Path(name, "people.ledger")
        folder.chmod(0o755)
        with closing(opened(open_ledger(path))) as ledger:
            for each in folder.iterdir():  # the journal too: whether a write was left half done is seen there
                each.chmod(0o644)
            ask(ledger, "first", "42")
            assert nursery.run(workers.looks_as_nobody, where=path) == {"answer": str(ledger.head())}
            ask(ledger, "second", "43")
            left = sorted(each.name for each in folder.iterdir())
            assert nursery.run(workers.looks_as_nobody, where=path) == {"answer": str(ledger.head())}
        assert sorted(each.name for each in folder.iterdir()) == left


# --- long ledgers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [5, 20])
def test_a_long_ledger_is_read_in_steps_and_writers_get_in_between(
    where: Where, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "CHUNK", chunk)
    with closing(opened(open_ledger(where), PureDP(10))) as writer:
        for i in range(20):
            ask(writer, f"old {i}", f"answer {i}")
        with closing(open_ledger(where)) as ledger:
            steps: list[int] = []
            real = ledger._database.reading

            @contextmanager
            def between(start: Any) -> Iterator[Any]:
                with real(start) as started:
                    yield started
                if len(steps) < 15:
                    steps.append(ask(writer, f"new {len(steps)}", "in between").number)

            monkeypatch.setattr(ledger._database, "reading", between)
            verified = ledger.verify(writer.head())
            monkeypatch.setattr(ledger._database, "reading", real)
            entries = 1 + 2 * (20 + len(steps))
            assert steps
            assert chunk > 5 or len(steps) == 15
            assert verified == Verified(writer.head(), {"people": entries})
            assert verified.head.number == entries
            assert [entry.number for entry in ledger.history("people")] == list(range(1, entries + 1))
            assert verify_export(ledger.export(), verified.head) == verified
            for i in range(3 * chunk):  # more than one step behind
                ask(writer, f"more {i}", "42")
            assert ask(ledger, "mine", "42").number == entries + 6 * chunk + 1
            writer.verify()


def test_a_lease_is_renewed_between_two_steps_of_a_long_verification(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same process, which has one connection: whoever waits for it has the next turn."""
    monkeypatch.setattr(book, "CHUNK", 5)
    with closing(opened(open_ledger(where))) as ledger:
        for i in range(20):
            ask(ledger, f"old {i}", f"answer {i}")
        charge = pay(ledger, "running", cost("0.01"))
        steps, renewed, real = list[int](), list[int](), ledger._database.reading

        def renew() -> None:
            ledger._renew([charge.number])
            renewed.append(len(steps))

        renewal = threading.Thread(target=renew)

        @contextmanager
        def slow(start: Any) -> Iterator[Any]:
            with real(start) as started:
                if not steps:
                    renewal.start()
                    while len(ledger._database._turns._queue) < 2:
                        time.sleep(0.001)
                steps.append(1)
                yield started

        monkeypatch.setattr(ledger._database, "reading", slow)
        ledger.verify()
        renewal.join()
        assert len(steps) > 4
        assert renewed == [1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE privet_entries SET text = replace(text, 'ann', 'bob') WHERE number = 38", "entry 38 of the ledger"),
        ("UPDATE privet_answers SET text = 'another' WHERE number = 38", "the stored answer to entry 38 of the ledger"),
        ("DELETE FROM privet_answers WHERE number = 38", "the stored answer to entry 38 of the ledger"),
        ("DELETE FROM privet_entries WHERE number > 36", "the chain ends at entry 36, but should end at entry 41"),
    ],
)
def test_what_changes_while_a_long_ledger_is_verified_is_found(
    where: Where, change: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the place where it is being read; and nothing more is answered."""
    monkeypatch.setattr(book, "CHUNK", 5)
    with closing(opened(open_ledger(where))) as ledger:
        for i in range(20):
            ask(ledger, f"old {i}", f"answer {i}")
        ledger._state.__init__(strict=False)  # type: ignore[misc]  # as if it were read for the first time
        steps, real = [], ledger._database.reading

        @contextmanager
        def between(start: Any) -> Iterator[Any]:
            with real(start) as started:
                yield started
            steps.append(1)
            if len(steps) == 3:
                workers.past(where, change)

        monkeypatch.setattr(ledger._database, "reading", between)
        with pytest.raises(LedgerError, match=said):
            ledger.verify()
        with pytest.raises(LedgerError, match=said):
            pay(ledger, "x", cost("0.1"))
