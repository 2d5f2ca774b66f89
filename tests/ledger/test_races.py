"""L1 and L4: many processes and threads on one ledger; what they are granted together is what there is."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from tests.effort import some
from tests.ledger import workers
from tests.ledger.workers import Nursery

from privet.ledger import open_ledger
from privet.privacy.guarantees import PureDP


def check(where: str | Path, granted: int, budget: PureDP) -> None:
    """The ledger holds, and has so many debits, each settled once."""
    with closing(open_ledger(where)) as ledger:
        ledger.verify()
        entries = ledger.history("people")
        paid = [entry.number for entry in entries if entry.kind == "reserved"]
        assert len(paid) == granted
        assert sorted(entry.refers or 0 for entry in entries if entry.kind == "answered") == paid
        assert len({entry.request_id for entry in entries if entry.kind == "reserved"}) == granted
        spent = ledger.balance("people").spent
        assert spent.epsilon * 100 == granted
        assert spent.epsilon <= budget.epsilon


@pytest.mark.slow
def test_racing_processes_are_granted_exactly_what_there_is(
    where: str | Path, nursery: Nursery, tmp_path: Path, effort: int
) -> None:
    """L1: 16 processes with 60 debits each, and room for 300 (with `./dev test --all`, 200 each and room for 1,000).

    They also make the ledger, all at once.
    """
    times, room = (60, 300) if effort == 1 else (200, 1000)
    names = [f"p{i}" for i in range(16)]
    same = {"where": where, "budget": room // 100, "times": times}
    found = nursery.race(workers.debits, tmp_path, who=names, **{name: [value] * 16 for name, value in same.items()})
    assert sum(map(Counter, found), Counter[str]()) == {"granted": room, "refused": 16 * times - room}
    check(where, room, PureDP(room // 100))


@pytest.mark.slow
def test_racing_threads_are_granted_exactly_what_there_is(where: str | Path, nursery: Nursery) -> None:
    found = nursery.run(workers.debits_of_threads, where=where, budget=4, threads=16, times=50)
    assert found == {"granted": 400, "refused": 400}
    check(where, 400, PureDP(4))


@pytest.mark.slow
def test_a_ledger_that_was_open_at_a_fork_serves_both_sides(where: str | Path, nursery: Nursery) -> None:
    found = nursery.run(workers.debits_after_fork, where=where, budget=2, children=8, times=40)
    assert found == {"granted": 200, "refused": 8 * 40 + 40 + 2 - 200}
    check(where, 200, PureDP(2))


@pytest.mark.slow
def test_a_fork_in_the_middle_of_a_debit_hangs_nobody(where: str | Path, nursery: Nursery) -> None:
    found = nursery.run(workers.forks_while_busy, where=where, budget=1000, children=10, times=2)
    assert set(found) == {"granted"}
    check(where, found["granted"], PureDP(1000))


def test_a_ledger_that_outlives_the_process_that_opened_it(where: str | Path, nursery: Nursery, tmp_path: Path) -> None:
    """A daemon: its parent, who opened the ledger, leaves; others come and go."""
    nursery.start(workers.orphan, where=where, budget=1, times=20, folder=tmp_path).join()
    early = wait_for(tmp_path / "early")
    assert json.loads(early) == {"granted": 5}
    with closing(open_ledger(where)) as ledger:  # and it is closed again, which is when a log is tidied away
        assert workers.debit(ledger, "visitor", 3) == {"granted": 3}
    (tmp_path / "go on").touch()
    with closing(open_ledger(where)) as ledger:
        assert workers.debit(ledger, "other", 20) == {"granted": 20}
    assert json.loads(wait_for(tmp_path / "late")) == {"granted": 20}
    check(where, 3 + 5 + 3 + 20 + 20, PureDP(1))


def test_a_forked_child_sees_that_its_parent_died(where: str | Path, nursery: Nursery, tmp_path: Path) -> None:
    """What the parent had reserved is not the child's to renew: it lapses, and who asks again is told."""
    assert nursery.start(workers.heir, where=where, folder=tmp_path).join() == -9
    assert wait_for(tmp_path / "heir", patience=15) == "failed"


def wait_for(path: Path, patience: float = 60) -> str:
    """A text that another process leaves there."""
    late = time.monotonic() + patience
    while not path.exists():
        assert time.monotonic() < late, f"nobody wrote {path.name!r}: the process hung or died"
        time.sleep(0.01)
    return path.read_text()


def test_many_open_and_close_a_ledger_at_once(where: str | Path, nursery: Nursery, tmp_path: Path) -> None:
    found = nursery.race(workers.openings, tmp_path, where=[where] * 8, who=[f"p{i}" for i in range(8)], times=[8] * 8)
    assert sum(map(Counter, found), Counter[str]()) == {"granted": 64}
    check(where, 64, workers.BUDGET)


def test_a_ledger_that_a_process_opens_twice(where: str | Path, nursery: Nursery) -> None:
    """Its locks are the process's: what opens and closes the file once more must not let go of them."""
    with closing(workers.opened(where)) as first:
        assert workers.debit(first, "first", 2) == {"granted": 2}
        with closing(workers.opened(where)) as second:
            assert workers.debit(second, "second", 2) == {"granted": 2}
            assert nursery.run(workers.asks, where=where, requests=[]) == []  # opened and closed by another process
            assert workers.debit(first, "again", 2) == {"granted": 2}
            assert workers.debit(second, "also", 2) == {"granted": 2}
        assert nursery.run(workers.asks, where=where, requests=[]) == []
        assert workers.debit(first, "last", 2) == {"granted": 2}
    check(where, 10, workers.BUDGET)


@pytest.mark.slow
def test_processes_that_make_a_ledger_at_once(nursery: Nursery, tmp_path: Path) -> None:
    names = [f"p{i}" for i in range(8)]
    found = nursery.race(workers.makings, tmp_path, home=[tmp_path] * 8, who=names, times=[15] * 8, all_=[8] * 8)
    assert sum(map(Counter, found), Counter[str]()) == {"made": 120}


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "threads"), some([(4, 25), (10, 10)], every=2))
def test_one_request_that_is_asked_100_times_at_once_is_drawn_once(
    where: str | Path, nursery: Nursery, tmp_path: Path, processes: int, threads: int
) -> None:
    """L4: one debit, and 100 equal answers."""
    with closing(workers.opened(where)):
        pass
    found = nursery.race(workers.retries, tmp_path, where=[where] * processes, threads=[threads] * processes)
    answers = [each.get("answer", each) for group in found for each in group]
    assert len(answers) == 100
    assert all(isinstance(answer, str) for answer in answers), next(a for a in answers if not isinstance(a, str))
    assert len(set(answers)) == 1
    check(where, 1, workers.BUDGET)
