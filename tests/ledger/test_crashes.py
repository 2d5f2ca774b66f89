"""L2: processes that answer real questions are killed, at random times and where it hurts most.

Whatever happens: no answer without its debit, at most one debit without an answer for each kill, one draw for a
request id, and a ledger that verifies and goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.ledger import workers
from tests.ledger.attacks import Attacker
from tests.ledger.workers import Child, Nursery, State, read

from privet.ledger import failpoints, open_ledger

FAILED = "The question could not be answered. It was paid for, and nothing was released."
LEASE = 0.3
AFTER = {  # what is in the ledger after a kill there, and what a retry gets
    "reserve: written": ("nothing", "got"),
    "reserve: on disk": ("reserved", "no"),
    "answer: drawn": ("reserved", "no"),
    "settle: written": ("reserved", "no"),
    "settle: on disk": ("answered", "got"),
}


def test_every_named_place_is_here() -> None:
    assert set(AFTER) == set(failpoints.NAMES)


@dataclass
class Campaign:
    """One ledger, and the processes that are killed on it one after the other."""

    nursery: Nursery
    where: str | Path
    folder: Path
    kills: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    answers: int = 0
    openings: list[float] = field(default_factory=list)
    seen: State = field(default_factory=State)
    attacks: Counter[tuple[str, str]] = field(default_factory=Counter)
    forks: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.log = self.folder / "log"
        workers.opened(self.where).close()

    def lines(self) -> list[dict[str, object]]:
        """What the processes wrote down; a kill can cut the last line."""
        text = self.log.read_text() if self.log.exists() else ""
        whole, _, rest = text.rpartition("\n")
        if rest:
            self.log.write_text(whole + "\n")
        return [json.loads(line) for line in whole.splitlines()]

    def peek(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def state(self) -> State:
        """Of a copy, if it is a file: the next process is then the first to open it after the kill."""
        where = self.where
        if isinstance(where, Path):
            where = self.folder / "copy"
            for end in ("", "-journal"):
                Path(f"{where}{end}").unlink(missing_ok=True)
                if Path(f"{self.where}{end}").exists():
                    shutil.copyfile(f"{self.where}{end}", f"{where}{end}")
        with closing(open_ledger(where)) as ledger:
            return read(ledger)

    def round(self, at: str = "", times: int = 1, delay: float | None = None, forks: bool = False) -> None:
        """Start a process, let it be killed, and look."""
        before = self.seen
        child = self.start(at=at, times=times, forks=forks)
        if delay is not None:
            if delay > 0.3:  # it is let to get to its questions first, however busy the machine is
                until, opened = time.monotonic() + 20, len(self.openings)
                while time.monotonic() < until and sum("opened" in line for line in self.peek()) <= opened:
                    time.sleep(0.005)
            time.sleep(delay)
            child.kill()
        assert child.join() == -signal.SIGKILL, self.lines()[-1]
        workers.wait_for_all(self.log)
        self.kills[at or "random"] += 1
        self.forks += forks
        self.seen = self.check()
        assert len(self.seen.unanswered - before.unanswered) <= 1 + forks
        if at:
            last = next(line for line in reversed(self.lines()) if "drawn" not in line)
            assert "asked" in last, "an answer went out before it was settled"
            request = f"r{last['asked']}"
            settled = self.seen.ended.get(self.seen.requests.get(request, 0))
            found = "nothing" if request not in self.seen.requests else "answered" if settled else "reserved"
            assert found == AFTER[at][0], f"killed at {at!r}"
            assert self.pending_ends(AFTER[at][1], int(str(last["asked"])))

    def attacked(self, attacker: Attacker, name: str) -> None:
        """Do something to the ledger. It is refused until that is taken back, or it is as it was, to the last debit."""
        before = self.seen
        attacker.remember()
        undo = attacker.attack(name)
        found = self.nursery.run(workers.tries, where=self.where, lease=LEASE)
        self.attacks[name, found] += 1
        if found == "unharmed":
            self.check_kept(before, name, found)
        if found != "unharmed" or name in ("trigger", "hard link"):
            assert name != "nothing"
            undo()
        self.check_kept(before, name, found)

    def check_kept(self, before: State, name: str, found: str) -> None:
        """Every answer that went out has its debit; and Privet keeps whatever it has shown.

        A trigger is made with SQLite, which undoes what a kill left between its last write and its grant. Nobody was
        told of that (see test_power_cuts.py), so only `check` holds then.
        """
        self.seen = self.check()
        if name != "trigger":
            for old, new in ((before.paid, self.seen.paid), (before.ended, self.seen.ended)):
                gone = dict(old.items() - new.items())
                heads = {path.name: content and content[:28] for path, content in Attacker(self.where).files().items()}
                assert not gone, f"after {name!r} ({found}) these are gone: {gone}; {heads}; {self.peek()[-5:]}"

    def pending_ends(self, expected: str, number: int) -> bool:
        """The next process asks again; it is told what is due."""
        assert self.start(most=0).join() == 0
        return expected in self.lines()[-1] and self.lines()[-1][expected] == number

    def start(self, **how: Any) -> Child:
        """A process that asks; without a place it is not killed."""
        return self.nursery.start(workers.questions, where=self.where, lease=LEASE, log=self.log, **how)

    def clean(self, **how: Any) -> None:
        """A process that is not killed, and what holds after it."""
        assert self.start(**how).join() == 0
        self.seen = self.check()

    def check(self) -> State:
        state, lines = self.state(), self.lines()
        got: dict[str, set[str]] = {}
        for line in lines:
            assert "bad" not in line, line["bad"]
            if "got" in line:
                got.setdefault(f"r{line['got']}", set()).add(str(line["answer"]))
            elif "no" in line:
                assert line["text"] == FAILED
                assert state.ended[state.paid[f"r{line['no']}"]] == "failed"
        drawn = Counter(line["drawn"] for line in lines if "drawn" in line)
        assert drawn.total() == len(drawn), "a second draw"
        for request, answers in got.items():
            assert request in state.requests, f"{request} was answered and not paid for"
            (answer,) = answers
            assert state.ended[state.requests[request]] == hashlib.sha256(answer.encode()).hexdigest()
        asked = {f"r{line['asked']}" for line in lines if "asked" in line}
        assert state.requests.keys() <= asked
        assert len(state.unanswered) <= self.kills.total() + self.forks
        assert state.spent <= workers.BUDGET.epsilon
        self.lost, self.answers = len(state.unanswered), len(got)
        self.openings = [float(str(line["opened"])) for line in lines if "opened" in line]
        return state

    def finish(self) -> None:
        """All that was ever asked is asked again: the same answers, the same refusals, and nothing more is paid."""
        self.clean(most=0)
        before = self.seen
        self.clean(most=0, again=True)
        assert self.seen == before
        self.clean(most=2)
        assert len(self.seen.requests) == len(before.requests) + 2


@dataclass
class Figures:
    campaigns: list[Campaign] = field(default_factory=list)

    def show(self, title: str) -> None:
        kills = sum((each.kills for each in self.campaigns), Counter[str]())
        times = [seconds for each in self.campaigns for seconds in each.openings]
        print(
            f"\n{title}: {kills.total()} rounds, {dict(kills)}; answers {sum(c.answers for c in self.campaigns)}, "
            f"debits without an answer {sum(c.lost for c in self.campaigns)}; "
            f"restart median {statistics.median(times):.3f} s, most {max(times):.3f} s"
        )
        attacks = sum((each.attacks for each in self.campaigns), Counter[tuple[str, str]]())
        for name in dict.fromkeys(name for name, _ in attacks):
            found = {outcome: attacks[name, outcome] for outcome in ("refused", "noticed", "unharmed")}
            print(f"  {name}: {sum(found.values())} times, {found}")


@pytest.fixture
def campaigns(
    where: str | Path, nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[[], Campaign]]:
    """Fresh ledgers of the same kind."""
    figures, numbers = Figures(), count()

    def fresh() -> Campaign:
        number = next(numbers)
        place = where
        if number and isinstance(where, Path):
            place = where.with_name(f"{number}.{where.name}")
        elif number:
            place = request.getfixturevalue("databases")()
        figures.campaigns.append(Campaign(nursery, place, tmp_path / f"campaign {number}"))
        return figures.campaigns[-1]

    yield fresh
    figures.show(request.node.name)


def share(where: str | Path, sqlite: int, postgres: int) -> int:
    return sqlite if isinstance(where, Path) else postgres


@pytest.mark.slow
def test_kills_at_random_times(campaigns: Callable[[], Campaign], where: str | Path, effort: int) -> None:
    """L2; with `./dev test --all`, 600 of 1,000 rounds."""
    draws = random.Random(20)
    rounds = share(where, 20, 5) if effort == 1 else share(where, 50, 10) * effort
    while rounds > 0:
        campaign = campaigns()
        attacker = Attacker(where=campaign.where, draws=draws)
        for _ in range(min(rounds, 10)):
            attack = draws.choice(attacker.names)
            delay = draws.choice([draws.uniform(0, 0.1), draws.uniform(0.05, 0.3), draws.uniform(0.4, 0.6)])
            campaign.round(delay=delay, forks=attack == "fork in the worker")
            campaign.attacked(attacker, attack)
        campaign.finish()
        rounds -= 10


@pytest.mark.slow
def test_kills_where_it_hurts(campaigns: Callable[[], Campaign], where: str | Path, effort: int) -> None:
    """L2; with `./dev test --all`, 400 of 1,000 rounds."""
    draws = random.Random(30)
    for _ in range(1 if effort == 1 else share(where, 3, 1) * effort):
        campaign = campaigns()
        places = (1 if effort == 1 else 2) * list(failpoints.NAMES)
        draws.shuffle(places)
        for place in places:
            campaign.round(at=place, times=draws.randint(1, 4))
        campaign.finish()


@pytest.mark.parametrize("fails", [False, True])
def test_a_process_that_slept_past_its_lease_gives_no_answer(
    where: str | Path, nursery: Nursery, tmp_path: Path, fails: bool
) -> None:
    """It had drawn, and was stopped; others were told that there is no answer, so there is none, and no other error."""
    log = tmp_path / "log"
    child = nursery.start(workers.sleeper, where=where, log=log, fails=fails)
    while not log.exists():
        time.sleep(0.01)
    (other,) = nursery.run(workers.asks, where=where, requests=["x"], lease=0.3)
    assert (other["error"], other["text"]) == ("NoAnswer", FAILED)
    os.kill(child.pid, signal.SIGCONT)
    assert child.join() == 0
    late = json.loads(log.read_text())
    assert (late.get("error"), late.get("text")) == ("NoAnswer", FAILED), late
    assert "Ann" not in late["trace"]
    with closing(open_ledger(where)) as ledger:
        state = read(ledger)
    assert state.requests.keys() == {"x"}
    assert list(state.ended.values()) == ["failed"]


@pytest.mark.parametrize("place", failpoints.NAMES)
def test_an_interrupt_leaves_nothing_half_done(where: str | Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C instead of a kill: the process goes on, and so must the ledger."""

    def interrupt(reached: str) -> None:
        if reached == place:
            monkeypatch.setattr(failpoints, "reached", lambda name: None)
            raise KeyboardInterrupt

    with closing(workers.opened(where, lease=0.3)) as ledger, workers.on(ledger) as session:
        monkeypatch.setattr(failpoints, "reached", interrupt)
        with pytest.raises(KeyboardInterrupt):
            workers.ask(session, "x")
        before = read(ledger)
        assert before.paid == ({} if place == "reserve: written" else {"x": 4})
        if place == "reserve: on disk":
            time.sleep(1)
            with closing(open_ledger(where, lease=0.3)) as other:  # who asks elsewhere does not wait for ever
                for _ in range(3):
                    time.sleep(0.3)
                    workers.debit(other, "ann", 1)
                assert read(other).ended[4] == "failed"
        else:
            again = workers.outcome(lambda: workers.ask(session, "x"))
            answered = AFTER[place][1] == "got" and place != "answer: drawn"
            assert ("answer" in again) == answered
            assert len(read(ledger).paid) == 1
