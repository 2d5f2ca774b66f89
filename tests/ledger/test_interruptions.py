"""Ctrl-C and signal handlers at the worst moments: no debit is lost, no lock is kept, and the ledger goes on."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.ledger import workers
from tests.ledger.common import PEOPLE, cost, kinds, pay
from tests.ledger.workers import Nursery

from privet.errors import BudgetError, LedgerError, UserError
from privet.ledger import Ledger, failpoints, memory_ledger, open_ledger, transactions
from privet.ledger.history import state
from privet.ledger.storage import database, transaction, turns
from privet.ledger.storage.book import Book
from privet.ledger.storage.sqlite import database as sqlite
from privet.ledger.storage.sqlite.locks import Held
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import PureDP


@pytest.fixture
def ledger(where: str | Path) -> Iterator[Ledger]:
    with closing(open_ledger(where)) as made:
        made.create(PEOPLE)
        yield made


def at(place: str, do: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something once, when a step of the ledger has come so far."""

    def reached(name: str) -> None:
        if name == place:
            monkeypatch.setattr(failpoints, "reached", lambda name: None)
            do()

    monkeypatch.setattr(failpoints, "reached", reached)


@pytest.mark.parametrize("step", ["reserve: written", "settle: written"])
@pytest.mark.parametrize("what", ["balance", "pay"])
def test_a_handler_that_asks_in_the_middle_of_a_step_is_refused(
    where: str | Path, ledger: Ledger, step: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler runs in the thread that holds the transaction: its own must not end that one."""

    def handler() -> None:
        with pytest.raises(LedgerError, match="this thread is already using the ledger"):
            ledger.balance("people") if what == "balance" else pay(ledger, "inner", cost("1/100"))

    at(step, handler, monkeypatch)
    ledger.settle(pay(ledger, "outer", cost("1/100")), "answered", "42")
    assert ledger.balance("people").spent == PureDP("1/100")
    ledger.verify()
    with closing(open_ledger(where)) as again:
        assert kinds(again) == ["created", "reserved", "answered"]


@pytest.mark.parametrize("step", ["reserve: written", "settle: written"])
def test_a_handler_may_close_the_ledger(
    where: str | Path, ledger: Ledger, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step that runs is ended first; nothing hangs."""
    at(step, ledger.close, monkeypatch)
    charge = pay(ledger, "x", cost("1/100"))
    with suppress(LedgerError):
        ledger.settle(charge, "answered", "42")
    with pytest.raises(LedgerError, match="is closed"):
        ledger.balance("people")
    with closing(open_ledger(where)) as again:
        assert kinds(again) == ["created", "reserved", "answered"][: 2 if step == "reserve: written" else 3]


def test_an_interrupt_while_a_refusal_is_undone_keeps_no_lock(
    where: str | Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*errors: type[BaseException]) -> Any:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with closing(open_ledger(where)) as other:
        gc.collect()  # or the end of another test's ledger could be what is interrupted
        monkeypatch.setattr(transaction, "suppress", interrupt)
        with pytest.raises(KeyboardInterrupt):
            pay(ledger, "too much", cost(100))
        done = threading.Thread(target=lambda: pay(other, "other", cost("1/100")), daemon=True)
        done.start()
        done.join(20)
        assert not done.is_alive(), "another process would wait for ever"
        pay(ledger, "own", cost("1/100"))
        assert ledger.balance("people").spent == PureDP("1/50")


def test_an_interrupt_while_the_contexts_of_a_refusal_end_keeps_no_turn(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An `ExitStack` keeps what is raised in it alive, and with it the transaction, until the next collection."""

    @contextlib.contextmanager
    def interrupted() -> Iterator[None]:
        try:
            yield
        except BudgetError:
            monkeypatch.undo()
            raise KeyboardInterrupt from None

    begin = ledger._database._begin

    def begins(connection: Any, stack: contextlib.ExitStack, *, write: bool) -> Any:
        stack.enter_context(interrupted())
        return begin(connection, stack, write=write)

    gc.collect()
    gc.disable()
    try:
        monkeypatch.setattr(ledger._database, "_begin", begins)
        with pytest.raises(KeyboardInterrupt):
            pay(ledger, "too much", cost(100))
        assert pay(ledger, "next", cost("1/100")).state == "reserved"
    finally:
        gc.enable()
    ledger.verify()


def test_an_interrupt_does_not_empty_a_ledger_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(memory_ledger()) as ledger:
        ledger.create(PEOPLE)

        def interrupt() -> None:
            raise KeyboardInterrupt

        at("reserve: written", interrupt, monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            pay(ledger, "x", cost("1/100"))
        pay(ledger, "y", cost("1/100"))
        assert kinds(ledger) == ["created", "reserved"]


def test_trouble_while_an_earlier_interrupt_is_handled_is_trouble(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with closing(workers.opened(path)) as ledger:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            path.unlink()
            with pytest.raises(LedgerError, match="can't be read or written"):
                pay(ledger, "x", cost("1/100"))


@pytest.mark.slow
def test_interrupts_at_random_times(where: str | Path, nursery: Nursery, effort: int) -> None:
    """Real signals, in the middle of anything: each is passed on, and the next step works."""
    found = nursery.run(workers.interrupted, where=where, times=150 * effort)
    assert set(found) <= {"interrupted", "done", "lost"}, found
    assert found["interrupted"] + found.get("lost", 0) == 150 * effort
    assert found["interrupted"] - found.get("done", 0) > 50 * effort, "too few came in the middle of a step"
    with closing(open_ledger(where)) as ledger:
        ledger.verify()


def test_facts_of_a_dataset_that_was_not_made_after_all(where: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A creation is interrupted, and another process makes the dataset, otherwise: then that is what it is."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with closing(open_ledger(where)) as first, closing(open_ledger(where)) as second:
        monkeypatch.setattr(Book, "append", interrupt)
        with pytest.raises(KeyboardInterrupt):
            first.create(PEOPLE)
        monkeypatch.undo()
        second.create(replace(PEOPLE, protect="person", adjacency=Adjacency.REPLACE))
        with pytest.raises(UserError, match="was created with protect person, but is opened with row"):
            first.create(PEOPLE)


# --- in the middle of reading -----------------------------------------------------------------------


class Interrupt:
    """Ctrl-C at a line of the state, counted while it reads."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != state.__file__:
            return None
        if event == "line":
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return self

    def during(self, use: Callable[[], object]) -> bool:
        """Whether it came."""
        before = sys.gettrace()
        try:
            sys.settrace(self)
            use()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False


def test_an_interrupt_at_any_line_of_an_entry_leaves_the_ledger_what_it_is(tmp_path: Path, effort: int) -> None:
    """An entry that was taken in by half is read again: nothing counts twice, and nothing is taken for tampering."""
    path = tmp_path / "people.ledger"
    with closing(workers.opened(path)) as one, closing(open_ledger(path)) as two:
        for place in range(0, 10**6, 5 if effort == 1 else 1):
            two.settle(pay(two, f"{place}", cost("1/100"), question="q", fresh=True), "answered", "42")
            two.settle(pay(two, None, cost("1/100"), analyst="bob"), "failed")
            two.cap("people", PureDP(1000 + place), reason="more", analyst="bob")
            came = Interrupt(place).during(lambda: one.balance("people"))
            assert one.balance("people", "bob") == two.balance("people", "bob")
            assert pay(one, f"{place}", cost("1/100"), question="q").answer == "42"
            if not came:
                break
        assert place > 150
        assert one._state.reserved == two._state.reserved
        assert one.analysts("people") == two.analysts("people")
        assert one.verify() == two.verify()


def test_what_was_read_before_an_interrupt_must_still_be_there(tmp_path: Path) -> None:
    """Whoever reads from the beginning again does not forget how far it had come."""
    path, older = tmp_path / "people.ledger", tmp_path / "older"
    with closing(workers.opened(path)) as one:
        for i in range(3):
            pay(one, str(i), cost("1/100"))
        older.write_bytes(path.read_bytes())
        held = pay(one, "x", cost("1/100"))
        assert one.head().number == held.number
        with closing(open_ledger(path)) as two:
            pay(two, "y", cost("1/100"))
        assert Interrupt(12).during(lambda: one.balance("people"))
        assert one._state.must_contain is not None
        with path.open("r+b") as file:
            file.write(older.read_bytes())
        Path(f"{path}-journal").unlink()  # which would show it first
        for _ in range(2):
            with pytest.raises(LedgerError, match="has changed since it was read: debits were removed"):
                pay(one, "z", cost("1/100"))


# --- between any two lines of a transaction ---------------------------------------------------------


class Anywhere(Interrupt):
    """Ctrl-C at a line, or at the end of a call, of the code that begins and ends transactions."""

    FILES = (
        database.__file__,
        transaction.__file__,
        sqlite.__file__,
        transactions.__file__,
        turns.__file__,
        contextlib.__file__,
    )

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in self.FILES or frame.f_code.co_name == "__del__":
            return None
        if event in ("line", "return"):
            self.left -= 1
            if self.left == -1:
                raise KeyboardInterrupt
        return self


def test_an_interrupt_anywhere_in_a_transaction_ends_that_one_only(tmp_path: Path, effort: int) -> None:
    """Whatever is left of it is collected in the middle of the next transaction, which keeps its lock and its debit."""
    path = tmp_path / "people.ledger"
    with closing(workers.opened(path)) as one, closing(open_ledger(path)) as two:
        gc.disable()
        try:
            for place in range(0, 10**6, 17 if effort == 1 else 1):
                left: list[BaseException] = []
                interrupt = Anywhere(place)
                try:
                    sys.settrace(interrupt)
                    pay(one, None, cost("1/1000"))
                except KeyboardInterrupt as error:
                    error.__context__ = error.__cause__ = None
                    left.append(error)
                finally:
                    sys.settrace(None)
                came = bool(left)
                left[:] = [KeyboardInterrupt()]  # nobody keeps it
                pay(two, None, cost("1/1000"))
                with one._writing() as journal:
                    gc.collect()
                    with pytest.raises(Held):
                        two._database._file.locks.turn()  # type: ignore[attr-defined]
                    journal.append("people", "declared", one._dataset("people").totals, version=str(place))
                assert one.head() == two.head()
                if not came and interrupt.left >= 0:
                    break
        finally:
            gc.enable()
        assert place > 200
        assert one._database._current is None
        one.verify()


def test_a_transaction_that_nobody_ended_does_not_end_another(tmp_path: Path) -> None:
    """It was begun, and its `with` block was not; it is collected later."""
    path = tmp_path / "people.ledger"
    with closing(workers.opened(path)) as one, closing(open_ledger(path)) as two:
        orphan = one._writing()
        orphan.__enter__()
        with pytest.raises(LedgerError, match="already using the ledger"):
            pay(one, None, cost("1/100"))
        del orphan
        with one._writing():
            gc.collect()
            with pytest.raises(Held):
                two._database._file.locks.turn()  # type: ignore[attr-defined]
        pay(two, None, cost("1/100"))
        pay(one, None, cost("1/100"))


# --- threads ----------------------------------------------------------------------------------------


def test_a_lease_thread_that_could_not_start_is_started_by_the_next(
    where: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with closing(workers.opened(where, lease=0.3)) as ledger:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        first = pay(ledger, "first", cost("1/100"))
        assert ledger._leases._thread is None
        monkeypatch.undo()
        second = pay(ledger, "second", cost("1/100"))
        assert ledger._leases._thread is not None
        for charge in (first, second):
            ledger.settle(charge, "answered", "42")


def test_a_ledger_opens_where_no_thread_can_be_started(where: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the end of a process."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    open_ledger(where).close()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with closing(workers.opened(where)) as ledger:
        ledger.settle(pay(ledger, "x", cost("1/100")), "answered", "42")


def test_a_closed_ledger_stays_closed(where: str | Path) -> None:
    """A lease of it is not renewed: that would open it again, or make a file that was removed."""
    ledger = workers.opened(where, lease=0.1)
    charge = pay(ledger, "x", cost("1/100"))
    ledger.close()
    thread = ledger._leases._thread
    if thread is not None:
        thread.join(20)
    assert ledger._database._held == []
    for use in (
        lambda: ledger.balance("people"),
        lambda: pay(ledger, "y", cost("1/100")),
        lambda: ledger.settle(charge, "answered", "42"),
    ):
        with pytest.raises(LedgerError, match="is closed"):
            use()
    ledger.close()


def test_what_is_refused_leaves_the_ledger_as_it_was(ledger: Ledger) -> None:
    for _ in range(3):
        with pytest.raises(BudgetError):
            pay(ledger, None, cost(100))
    assert kinds(ledger) == ["created"]
    assert ledger._database._held, "a refusal is no reason to connect anew"
