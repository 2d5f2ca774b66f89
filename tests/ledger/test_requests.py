"""Asking again: the stored answer or a new payment, never a second draw for free; and requests that never ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.ledger.common import PEOPLE, ask, cost, furnish, kinds, opened, pay
from tests.ledger.conftest import Factory, Where

import privet as pv
from privet.errors import BudgetError, DatasetClosed, InternalError, LedgerBusy, UserError
from privet.ledger import Ledger, open_ledger
from privet.ledger.history.chain import digest
from privet.ledger.leases import Leases
from privet.ledger.storage import book, database
from privet.ledger.storage.sqlite.locks import FileLocks, Held
from privet.privacy.guarantees import PureDP
from privet.tables.query import Query
from privet.tables.relation import Table

# --- T23: averaging ----------------------------------------------------------------------------------


def test_asking_again_is_the_stored_answer(make: Factory) -> None:
    ledger = opened(make())
    ask(ledger, "first", "42", "0.1", question="q")
    for i in range(5):
        for request, who in ((None, "ann"), (f"again {i}", "ann"), (None, "bob"), (f"bob {i}", "bob")):
            charge = pay(ledger, request, cost("0.1"), question="q", analyst=who)
            assert (charge.state, charge.answer, charge.cost) == ("answered", "42", PureDP.ZERO)
    assert ledger.balance("people").spent == PureDP(0.1)
    assert kinds(ledger).count("reserved") == 1
    ledger.verify()


def test_a_new_draw_is_a_new_payment(make: Factory) -> None:
    """However it is asked for: as many draws as debits, each of the full price."""
    ledger = opened(make())
    draws = 0
    for fresh in (False, True, True):
        for question, version in (("q", "1"), ("q", "2"), ("p", "1"), ("", "1")):
            charge = pay(ledger, None, cost("0.05"), question=question, version=version, fresh=fresh)
            assert charge.state == "reserved"
            draws += 1
            ledger.settle(charge, "answered", f"draw {draws}")
    assert ledger.balance("people").spent == PureDP(Fraction(draws, 20))
    assert len({entry.answer for entry in ledger.history("people")} - {""}) == draws == 12


def test_a_served_answer_is_an_entry_that_costs_nothing(make: Factory) -> None:
    ledger = opened(make())
    first = ask(ledger, "first", "42", "0.1", question="q", asked="a")
    pay(ledger, None, cost("0.1"), question="q", asked="a", analyst="bob")
    assert kinds(ledger) == ["created", "reserved", "answered"], "without a request id there is nothing to retry"
    pay(ledger, "second", cost("0.1"), question="q", asked="a", analyst="bob")
    served = ledger.history("people")[-1]
    assert (served.kind, served.refers, served.request_id, served.analyst) == ("served", first.number, "second", "bob")
    assert (served.cost, served.events, served.answer) == (None, (), "")
    assert served.ration is not None
    assert served.ration.spent == PureDP.ZERO
    assert served.totals.spent == PureDP(0.1)


def test_a_retry_of_a_served_request_is_the_same_answer_though_a_better_one_came(make: Factory) -> None:
    ledger = opened(make())
    ask(ledger, "first", "rough", "0.1", question="q")
    assert pay(ledger, "second", cost("0.1"), question="q", asked="a").answer == "rough"
    ask(ledger, "third", "fine", "0.3", question="q")
    assert pay(ledger, None, cost("0.1"), question="q").answer == "fine"
    assert pay(ledger, "second", cost("0.1"), question="q", asked="a").answer == "rough"
    assert pay(ledger, "second", cost("0.1"), question="q", asked="a", analyst="bob").answer == "fine", "bob's own"
    for how in ({"asked": "b"}, {"asked": "a", "version": "2"}):
        with pytest.raises(UserError, match="the request id 'second' was already used"):
            pay(ledger, "second", cost("0.1"), question="q", **how)
    assert pay(ledger, "second", cost("0.1"), question="q", asked="a", fresh=True).answer == "rough", "it is a retry"


def test_less_noise_serves_more_and_not_the_other_way(make: Factory) -> None:
    ledger = opened(make())
    ask(ledger, None, "at 0.2", "0.2", question="q")
    assert pay(ledger, None, cost("0.1"), question="q").answer == "at 0.2"
    assert pay(ledger, None, cost("0.2"), question="q").answer == "at 0.2"
    more = pay(ledger, None, cost(Fraction(1, 5) + Fraction(1, 10**50)), question="q")
    assert more.state == "reserved"
    ledger.settle(more, "answered", "at a little more")
    assert pay(ledger, None, cost("0.1"), question="q").answer == "at a little more", "the one with the least noise"
    ask(ledger, None, "the newest", "0.2", question="q", fresh=True)
    assert pay(ledger, None, cost("0.2"), question="q").answer == "at a little more"
    ask(ledger, None, "as good and newer", Fraction(1, 5) + Fraction(1, 10**50), question="q", fresh=True)
    assert pay(ledger, None, cost("0.2"), question="q").answer == "as good and newer"


def test_an_answer_with_less_noise_here_and_more_there_does_not_serve(make: Factory) -> None:
    ledger = opened(make())
    ledger.settle(pay(ledger, None, cost("0.2"), cost("0.1"), question="q"), "answered", "mixed")
    assert pay(ledger, None, cost("0.1"), cost("0.1"), question="q").answer == "mixed"
    assert pay(ledger, None, cost("0.1"), cost("0.2"), question="q").state == "reserved"
    assert pay(ledger, None, cost("0.2"), question="q").state == "reserved"


def test_versions_have_answers_of_their_own_and_one_budget(make: Factory) -> None:
    ledger = opened(make())
    for version in ("1", "2", "3"):
        ledger.declare("people", version, "new data")
        ledger.declare("people", version)
        assert ask(ledger, None, f"of {version}", "0.3", question="q", version=version).state == "reserved"
    for version in ("1", "2", "3"):
        assert pay(ledger, None, cost("0.3"), question="q", version=version).answer == f"of {version}"
    assert ledger.balance("people").spent == PureDP(0.9), "new data do not renew the budget"
    with pytest.raises(BudgetError):
        ask(ledger, None, "too much", "0.3", question="q", version="4")
    declared = [(entry.version, entry.note) for entry in ledger.history("people") if entry.kind == "declared"]
    assert declared == [("1", "new data"), ("2", "new data"), ("3", "new data")]
    # The version is hashed together with the question, and no version and question run into another's.
    assert ask(ledger, None, "", "0.01", question="3\nq", version="1").state == "reserved"


def test_what_is_running_or_failed_serves_nobody(make: Factory) -> None:
    ledger = opened(make())
    running = pay(ledger, None, cost("0.1"), question="q")
    other = pay(ledger, None, cost("0.1"), question="q")
    assert other.state == "reserved"
    ledger.settle(other, "failed")
    ledger.settle(running, "answered", "42")
    assert pay(ledger, None, cost("0.1"), question="q").answer == "42"


def test_what_was_interrupted_stays_paid_and_closes_nothing(make: Factory) -> None:
    ledger = opened(make())
    for i in range(4):
        ledger.settle(pay(ledger, str(i), cost("0.1"), question="q"), "interrupted", "not to be kept")
    assert [pay(ledger, str(i), cost("0.1"), question="q").state for i in range(4)] == ["interrupted"] * 4
    assert ledger.balance("people").spent == PureDP("0.4"), "no refund"
    assert ledger.history("people")[-1].totals.failures == 0
    assert "not to be kept" not in "".join(ledger.export("people"))
    assert pay(ledger, None, cost("0.1"), question="q").state == "reserved", "nothing is there to be served"
    ledger.verify()


def test_a_closed_or_spent_dataset_still_tells_what_it_told(make: Factory) -> None:
    ledger = opened(make())
    ask(ledger, "first", "42", "0.7", question="q")
    for i in range(3):
        ledger.settle(pay(ledger, str(i), cost("0.1")), "failed")
    with pytest.raises(DatasetClosed):
        pay(ledger, None, cost("0.1"), question="p")
    ledger.cap("people", PureDP("0.5"), reason="less consent")
    for request in ("first", "second", None):
        assert pay(ledger, request, cost("0.7"), question="q").answer == "42"
    ledger.verify()


def test_an_answer_of_any_size_and_script_is_kept(make: Factory) -> None:
    ledger = opened(make())
    for i, text in enumerate(("", "x" * 10**6, "ä\n\t😀 \\u0000 'quoted' \"twice\"; DROP TABLE privet_entries; --")):
        ask(ledger, str(i), text)
        assert pay(ledger, str(i), cost("1/100")).answer == text
        assert ledger.history("people")[-1].answer == digest(text)
    ledger.verify()


# --- waiting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["answered", "failed", "interrupted"])
def test_a_retry_waits_for_the_running_request(make: Factory, outcome: Any) -> None:
    ledger = opened(make())
    charge = pay(ledger, "x", cost("0.1"))
    asked, waiting = pay(ledger, "x", cost("0.1")), threading.Event()
    assert asked.state == "running"

    def retry(_: int) -> tuple[str, str | None]:
        waiting.set()
        found = ledger.wait(asked)
        return found.state, found.answer

    with ThreadPoolExecutor(4) as threads:
        found = threads.map(retry, range(4))
        assert waiting.wait(10)
        ledger.settle(charge, outcome, "42")
        assert set(found) == {(outcome, "42" if outcome == "answered" else None)}
    assert ledger.wait(charge) is charge, "what does not run is not waited for"
    assert ledger.balance("people").spent == PureDP(0.1)


def test_waiting_ends(make: Factory) -> None:
    """A request that runs on and on elsewhere is waited for so long, and can be asked again."""
    ledger = opened(make())
    charge = pay(ledger, "x", cost("0.1"))
    asked = pay(ledger, "x", cost("0.1"))
    for seconds in (0.1, 0):
        begun = time.monotonic()
        with pytest.raises(
            LedgerBusy, match=rf"still running in another process after {seconds:g} seconds\. Nothing more was spent\."
        ):
            ledger.wait(asked, seconds=seconds)
        assert seconds <= time.monotonic() - begun < 20
    ledger.settle(charge, "answered", "42")
    assert ledger.wait(asked, seconds=0.1).answer == "42"
    assert ledger.balance("people").spent == PureDP("0.1")


LEASE = 0.2


@pytest.fixture
def pair(where: Where) -> Iterator[tuple[Ledger, Ledger]]:
    """Two that share a ledger, as two processes would."""
    with closing(open_ledger(where, lease=LEASE)) as one, closing(open_ledger(where, lease=LEASE)) as two:
        opened(one)
        yield one, two


def test_a_request_whose_owner_fell_silent_counts_as_failed(pair: tuple[Ledger, Ledger]) -> None:
    one, two = pair
    number = pay(one, "x", cost("0.1")).number  # nobody holds the charge, so nobody renews it
    asked = pay(two, "x", cost("0.1"))
    assert (asked.number, asked.state) == (number, "running")
    begun = time.monotonic()
    assert two.wait(asked).state == "failed"
    assert LEASE < time.monotonic() - begun < 20 * LEASE
    end = two.history("people")[-1]
    assert (end.kind, end.refers, end.note) == ("failed", number, "its process stopped responding")
    assert (two.balance("people").spent, end.totals.failures) == (PureDP(0.1), 1), "no refund"
    for ledger in pair:
        assert pay(ledger, "x", cost("0.1")).state == "failed"
        ledger.verify()


def test_an_answer_that_comes_too_late_is_not_kept(pair: tuple[Ledger, Ledger]) -> None:
    one, two = pair
    charge = pay(one, "x", cost("0.1"), question="q")
    one._leases.drop(charge.number)  # as if its process had been suspended
    assert two.wait(pay(two, "x", cost("0.1"), question="q")).state == "failed"
    with pytest.raises(InternalError, match="already settled as failed"):
        one.settle(charge, "answered", "too late")
    assert kinds(two) == ["created", "reserved", "failed"]
    assert pay(two, None, cost("0.1"), question="q").state == "reserved", "it serves nobody"
    one.verify()


def test_an_owner_that_works_long_keeps_its_lease(pair: tuple[Ledger, Ledger]) -> None:
    one, two = pair
    charge = pay(one, "x", cost("0.1"))
    end = time.monotonic() + 4 * LEASE
    while time.monotonic() < end:
        assert pay(two, "x", cost("0.1")).state == "running"  # which would sweep
        time.sleep(LEASE / 8)
    one.settle(charge, "answered", "42")
    assert pay(two, "x", cost("0.1")).answer == "42"


def test_an_owner_that_could_not_renew_its_lease_is_not_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock was held for longer than a lease; whoever finds the ledger busy has seen no silence."""
    monkeypatch.setattr(database, "PATIENCE", LEASE / 2)
    path = tmp_path / "people.ledger"
    with closing(opened(open_ledger(path, lease=LEASE))) as one, closing(open_ledger(path, lease=LEASE)) as two:
        for n in range(3):
            charge = pay(one, f"{n}", cost("0.01"))
            assert pay(two, f"{n}", cost("0.01")).state == "running"
            locks, end = FileLocks(str(path)), time.monotonic() + 5 * LEASE
            while True:
                with suppress(Held):
                    locks.alone()
                    break
                locks.release()
            while time.monotonic() < end:
                with suppress(LedgerBusy):
                    pay(two, f"{n}", cost("0.01"))
            locks.close()
            assert pay(two, f"{n}", cost("0.01")).state == "running"
            one.settle(charge, "answered", "42")


def test_a_silence_counts_as_far_as_it_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    observer = Leases(10, lambda numbers: None)

    def at(now: float, beat: int, *, writes: bool = False) -> list[int]:
        clock[0] = now
        return observer.dead({1: beat}) if writes else observer.silent({1: beat})

    assert at(0, 7) == []
    assert at(1000, 7) == [], "who looks once an hour has not seen an hour of silence"
    assert at(1003, 7) == []
    assert at(1006, 7) == [1]
    assert at(1006, 7, writes=True) == [], "its owner gets the time until the next look"
    assert at(1007, 8) == []
    for now in range(1010, 1020, 3):
        assert at(now, 8) == ([] if now < 1017 else [1])
    assert at(1019, 8, writes=True) == []
    assert at(1020, 8, writes=True) == [1]
    observer.forgive()
    assert at(1040, 8) == []
    assert at(1041, 8, writes=True) == []


def watch(observer: Ledger) -> None:
    """Look until the next look shows that an owner is dead."""
    observer.verify()
    for _ in range(2):
        time.sleep(LEASE / 2)
        observer._sweep()
    time.sleep(LEASE / 2)


def test_silent_requests_close_a_dataset_too(pair: tuple[Ledger, Ledger]) -> None:
    one, two = pair
    for i in range(3):
        pay(one, str(i), cost("0.1"))
    watch(two)
    for ledger in (two, two, one):
        with pytest.raises(DatasetClosed, match="3 questions of 'ann' failed"):
            pay(ledger, "more", cost("0.1"))
    assert kinds(two) == ["created"] + ["reserved"] * 3 + ["failed"] * 3, "though the question itself was refused"
    two.verify()


def test_silent_requests_of_many_analysts_and_datasets_are_marked_at_once(
    pair: tuple[Ledger, Ledger],
) -> None:
    one, two = pair
    one.create(replace(PEOPLE, name="visits"))
    for i in range(10):
        name, who = ("people", "visits")[i % 2], ("ann", "bob", "cleo")[i % 3]
        one.reserve(dataset=name, analyst=who, request_id=None, events=[cost("0.1")])
    watch(two)
    assert pay(two, "more", cost("0.1")).state == "reserved"
    assert two.verify().entries == {"people": 12, "visits": 11}
    for ledger in pair:
        failures = {
            name: {who: ration.failures for who, ration in ledger.analysts(name).items()} for name in ledger.datasets()
        }
        assert failures == {"people": {"ann": 2, "bob": 1, "cleo": 2}, "visits": {"ann": 2, "bob": 2, "cleo": 1}}
        assert [ledger.history(name)[-1 - (name == "people")].totals.failures for name in ledger.datasets()] == [5, 5]


def test_a_refused_question_marks_silent_requests_too(pair: tuple[Ledger, Ledger]) -> None:
    one, two = pair
    pay(one, "x", cost("0.1"), asked="a")
    watch(two)
    with pytest.raises(BudgetError):
        pay(two, "y", cost(5))
    with pytest.raises(UserError, match="was already used"):
        pay(two, "x", cost("0.1"), asked="b")
    assert kinds(two) == ["created", "reserved", "failed"]
    two.verify()


def test_a_reservation_in_memory_lapses_when_nobody_holds_it(makers: Any) -> None:
    ledger = opened(makers("memory"))
    ledger._leases.seconds = LEASE
    held = pay(ledger, "held", cost("0.1"))
    pay(ledger, "let go", cost("0.1"))
    assert ledger.wait(pay(ledger, "let go", cost("0.1"))).state == "failed"
    assert pay(ledger, "held", cost("0.1")).state == "running"
    ledger.settle(held, "answered", "42")


# --- L7: clocks --------------------------------------------------------------------------------------

YEAR = timedelta(days=365)


class Clock:
    """The clocks of the wall, set wrong."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shift = timedelta(0)
        real = time.time

        class Shifted(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Any:
                return datetime.now(tz) + self.shift

        monkeypatch.setattr(book, "datetime", Shifted)
        monkeypatch.setattr(time, "time", lambda: real() + self.shift.total_seconds())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_wrong_clock_changes_nothing_but_the_text_for_people(make: Factory, clock: Clock) -> None:
    found = []
    for shift in (timedelta(0), YEAR, -YEAR):
        clock.shift = shift
        ledger = make()
        furnish(ledger)
        ledger.verify()
        history = ledger.history("people")
        now = datetime.now(UTC) + shift
        assert all(abs(datetime.fromisoformat(entry.time) - now) < timedelta(minutes=5) for entry in history)
        found.append([entry._replace(time="", hash="", salt="") for entry in history])
    assert found[0] == found[1] == found[2]


def test_a_clock_that_jumps_in_the_middle_changes_nothing(where: Where, clock: Clock) -> None:
    with closing(open_ledger(where, lease=1)) as one, closing(open_ledger(where, lease=1)) as two:
        opened(one)
        held = pay(one, "held", cost("0.1"))
        ask(one, "answered", "42", question="q")
        for shift in (YEAR, -YEAR, timedelta(0)):
            clock.shift = shift
            for ledger in (one, two):
                assert pay(ledger, "held", cost("0.1")).state == "running", "no lease ends by a clock"
                assert pay(ledger, "answered", cost("1/100"), question="q").answer == "42"
                assert pay(ledger, None, cost("1/100"), question="q").answer == "42"
            ask(one, f"at {shift}", "43")
            two.verify()
        one.settle(held, "answered", "44")
        numbers = [entry.number for entry in two.history("people")]
        assert numbers == list(range(1, len(numbers) + 1)), "entries stand in the order in which they were made"
        assert two.balance("people").spent == PureDP("0.14"), "time grants nothing"


@pytest.mark.parametrize("shift", [YEAR, -YEAR])
def test_a_silent_request_ends_whatever_the_clock_says(
    pair: tuple[Ledger, Ledger], clock: Clock, shift: timedelta
) -> None:
    one, two = pair
    pay(one, "x", cost("0.1"))
    asked = pay(two, "x", cost("0.1"))
    clock.shift = shift
    assert two.wait(asked).state == "failed"


# --- sessions on one ledger --------------------------------------------------------------------------

ROWS = pa.table({"id": pa.array(range(200), pa.int64()), "age": pa.array([i % 90 for i in range(200)], pa.int64())})


def people(rows: pa.Table = ROWS, **how: Any) -> Table:
    how = {"protect": pv.person("id", max_rows=1), "columns": {"age": pv.integer(0, 110)}, **how}
    return pv.table("people", rows, **how)


def session(ledger: Any, table: Table | None = None, **how: Any) -> pv.Session:
    return pv.Session([table or people()], **{"budget": pv.PureDP(1), "ledger": ledger, "threads": 1, **how})


def count(minimum: int = 0) -> Query:
    return people().where(pv.col("age") >= minimum).agg(n=pv.count())


def test_sessions_share_a_ledger_and_its_answers(where: Where) -> None:
    with session(where, analyst="ann") as ann, session(where, analyst="bob") as bob:
        first = ann.release(count(), epsilon=0.25, request_id="r")
        for again in (
            ann.release(count(), epsilon=0.25, request_id="r"),
            ann.release(count(), epsilon=0.25),
            bob.release(count(), epsilon="0.1"),
            bob.release(count(), epsilon=0.25, request_id="bob's"),
            bob.release(count(), epsilon=0.25, request_id="bob's"),
        ):
            assert again.noisy == first.noisy
            assert again.spent == pv.PureDP.ZERO
        assert bob.release(count(), epsilon=0.25, request_id="r").noisy == first.noisy, "an id of bob's own"
        with pytest.raises(UserError, match="the request id 'r' was already used"):
            ann.release(count(18), epsilon=0.25, request_id="r")
        bob.release(count(), epsilon="0.3")
        assert ann.spent == bob.spent == pv.PureDP("0.55")
        spent = {who: ration.spent for who, ration in ann.ledger.analysts("people").items()}
        assert spent == {"ann": pv.PureDP("0.25"), "bob": pv.PureDP("0.3")}
        for made in (ann, bob):
            made.ledger.verify()
    with session(where, analyst="cleo") as cleo:
        assert cleo.release(count(), epsilon=0.25, request_id="after a restart").spent == pv.PureDP.ZERO
        assert kinds(cleo.ledger)[-1] == "served"


def test_averaging_gains_nothing_for_free(tmp_path: Path) -> None:
    """T23, as an attacker would: every way to ask again that is free gives the same number."""
    path = tmp_path / "people.ledger"
    seen = set()
    for who in ("ann", "bob"):
        with session(path, analyst=who) as asking:
            for i in range(3):
                for name in ("n", "another"):
                    query = people().where(pv.col("age") >= 0).agg(**{name: pv.count()})
                    for epsilon, request in ((0.25, None), ("0.2", None), (0.25, f"{who} {i} {name}")):
                        seen.add(asking.release(query, epsilon=epsilon, request_id=request).noisy)
            assert asking.spent == pv.PureDP(0.25)
    assert len(seen) == 1
    with session(path) as asking:
        drawn = {asking.release(count(), epsilon=0.25, fresh=True).noisy for _ in range(3)}
        assert asking.spent == pv.PureDP(1)
        with pytest.raises(BudgetError):
            asking.release(count(), epsilon=0.25, fresh=True)
        assert asking.release(count(), epsilon=0.25).noisy in drawn | seen


def test_a_new_version_is_asked_anew(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with session(path, version="2025") as old, session(path, people(ROWS.slice(0, 100)), version="2026") as new:
        before, after = old.release(count(), epsilon=0.25), new.release(count(), epsilon=0.25)
        assert (before.spent, after.spent, old.spent) == (pv.PureDP(0.25), pv.PureDP(0.25), pv.PureDP(0.5))
        assert old.release(count(), epsilon=0.25).noisy == before.noisy
        assert new.release(count(), epsilon=0.25).noisy == after.noisy
        old.release(count(), epsilon=0.25, request_id="r")
        with pytest.raises(UserError, match="the request id 'r' was already used"):
            new.release(count(), epsilon=0.25, request_id="r")


def test_what_is_paid_does_not_hang_on_the_rows(tmp_path: Path) -> None:
    """T13 and T19: neighbours, an empty table too, leave the same entries, but for answers and chance."""
    found = []
    for i, rows in enumerate((ROWS, ROWS.slice(1), ROWS.slice(0, 0))):
        with session(tmp_path / f"{i}.ledger", people(rows)) as asking:
            for epsilon in ("0.1", "1/3"):
                asking.release(people().agg(n=pv.count(), mean=pv.mean("age")), epsilon=epsilon, request_id=epsilon)
            history = asking.ledger.history("people")
        found.append([entry._replace(time="", hash="", answer="", salt="") for entry in history])
        costs = [entry.cost for entry in history if entry.cost is not None]
        assert costs == [PureDP("0.1"), PureDP("1/3")]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("table", "how", "said"),
    [
        (people(), {"budget": pv.PureDP(2)}, "has a budget of epsilon 1, but is opened with epsilon 2"),
        (
            people(),
            {"budget": pv.ApproxDP(1, 1e-6)},
            "but is opened with epsilon 1, delta 1e-6. The kind of a budget can't be changed",
        ),
        (people(adjacency="replace"), {}, "adjacency add/remove, but is opened with replace"),
        (people(protect=pv.each_row()), {}, "protect person, but is opened with row"),
    ],
)
def test_a_session_with_other_facts_is_refused(where: Where, table: Table, how: dict[str, Any], said: str) -> None:
    with session(where) as asking:
        asking.release(count(), epsilon=0.25)
    with pytest.raises(UserError, match=f"the dataset 'people' .*{said}"):
        session(where, table, **how)
    with session(where, table, **how, name="others") as other:
        assert other.remaining.share == 1
    with session(where) as asking:
        assert asking.spent == pv.PureDP(0.25)
        assert asking.ledger.datasets() == ("others", "people")
        asking.ledger.verify()


def test_bounds_and_caps_on_rows_may_change(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with session(path) as asking:
        asking.release(count(), epsilon=0.25)
    wider = people(protect=pv.person("id", max_rows=2), columns={"age": pv.integer(0, 120)})
    with session(path, wider) as asking:
        made = asking.release(wider.agg(n=pv.count()), epsilon=0.25)
        assert made.spent == pv.PureDP(0.25), "what is measured is another thing now"
        assert asking.spent == pv.PureDP(0.5)


def test_sessions_and_places(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no ledger")
    for place, said in (
        (tmp_path / "nowhere" / "x.ledger", "there is no folder"),
        (tmp_path / "notes.txt", r"not a ledger|can't be read"),
        (tmp_path, "is not a ledger"),
        ("mysql://x/y", "a ledger is a file or a Postgres address"),
        ("", "a ledger is a file or a Postgres address"),
    ):
        with pytest.raises((UserError, pv.errors.LedgerError), match=said):
            session(place)
    assert (tmp_path / "notes.txt").read_text() == "no ledger"
    with session(str(tmp_path / "people.ledger")) as asking:
        asking.release(count(), epsilon=0.25)
    with pytest.raises(UserError, match="this session is closed"):
        asking.release(count(), epsilon=0.25)
    with closing(open_ledger(tmp_path / "people.ledger", create=False)) as ledger:
        with session(ledger) as asking:
            assert asking.spent == pv.PureDP(0.25)
        assert ledger.balance("people").spent == pv.PureDP(0.25), "a ledger that was passed stays open"


def test_the_name_of_a_dataset_in_the_ledger(tmp_path: Path) -> None:
    with session(tmp_path / "people.ledger", name="survey") as asking:
        asking.release(count(), epsilon=0.25)
        assert asking.ledger.datasets() == ("survey",)
    assert PEOPLE.name == "people"
