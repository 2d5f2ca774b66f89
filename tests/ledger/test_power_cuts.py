"""L2: a kill or a power cut at each write of a debit, of an answer and of a repair.

One process is recorded, system call by system call. Every disk that it could leave is then built and opened. When
`reserve` has returned, the debit is on all of them, and no journal could undo it, in Privet's hands or in SQLite's.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.effort import EFFORT
from tests.ledger import workers
from tests.ledger.common import cost
from tests.ledger.disk import CAN_RECORD, Files, Recording, contents, do, place, record
from tests.ledger.workers import opened

from privet.errors import LedgerError
from privet.ledger import Ledger, open_ledger
from privet.ledger.storage.sqlite import recovery
from privet.ledger.storage.sqlite.database import SQLite

pytestmark = pytest.mark.skipif(not CAN_RECORD, reason="system calls are recorded on Linux only")
NAME = "people.ledger"
JOURNAL = f"{NAME}-journal"
Say = Callable[[str], None]


def use(folder: Path, say: Say, setting: str = "") -> None:
    """Two debits and their answers, one of several pages; what was promised is said when it was promised."""
    with closing(opened(folder / NAME, lease=600)) as ledger:
        if setting:
            ledger._database._connection().execute(setting)
            SQLite._check_schema = lambda self, connection: None  # type: ignore[method-assign]
        say("open")
        for i in range(2):
            charge = ledger.reserve(dataset="people", analyst="ann", request_id=f"{i}", events=[cost("1/100")])
            say(f"paid {i}")
            ledger.settle(charge, "answered", f"{i}" * (10 + 9000 * i))
            say(f"answered {i}")


def recorded(folder: Path, setting: str = "") -> Recording:
    folder.mkdir()
    opened(folder / NAME).close()
    (folder / JOURNAL).unlink()  # so that the first debit makes it
    found = record(folder, lambda say: use(folder, say, setting))
    assert found.killed(len(found.steps)) == found.after, "nothing was missed"
    assert {"paid 0", "answered 0", "paid 1", "answered 1"} <= found.said(len(found.steps))
    return found


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return recorded(tmp_path_factory.mktemp("recorded") / "ledger")


def told(ledger: Ledger) -> set[str]:
    """What a ledger knows, in the words of `use`."""
    state = workers.read(ledger)
    answered = {f"answered {request}" for request, number in state.paid.items() if number in state.ended}
    return answered | {f"paid {request}" for request in state.paid}


def kept(folder: Path) -> set[str] | None:
    """What a ledger has kept; None if it is refused."""
    try:
        with closing(open_ledger(folder / NAME)) as ledger:
            return told(ledger)
    except LedgerError:
        return None


def kept_by_sqlite(folder: Path) -> set[str] | None:
    """The same, if SQLite is let at it first, as by the trigger that tests and attackers make."""
    with closing(sqlite3.connect(folder / NAME, isolation_level=None)) as raw:
        raw.execute("CREATE TRIGGER undo AFTER INSERT ON privet_entries BEGIN SELECT 1; END")
        raw.execute("DROP TRIGGER undo")
    return kept(folder)


@dataclass
class Search:
    """Goes through disks, and counts those on which something promised is missing."""

    folder: Path
    seen: dict[tuple[bytes, bytes | None, str], set[str] | None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def __call__(self, files: Files, promised: set[str], how: Callable[[Path], set[str] | None]) -> set[str] | None:
        key = files.get(NAME, b""), files.get(JOURNAL), how.__name__
        if key not in self.seen:
            place(files, self.folder)
            self.seen[key] = how(self.folder)
        found = self.seen[key]
        self.counts["disks"] += 1
        self.counts["refused"] += found is None
        self.counts["lost"] += found is not None and not promised <= found
        return found


def moments(recording: Recording) -> Iterator[tuple[int, set[str]]]:
    """Before the first step, and after each: what was promised till then."""
    for count in range(len(recording.steps) + 1):
        yield count, recording.said(count) - {"open"}


def test_a_kill_at_each_step(recording: Recording, tmp_path: Path) -> None:
    search = Search(tmp_path / "disk")
    for count, promised in moments(recording):
        search(recording.killed(count), promised, kept)
    assert search.counts["lost"] == search.counts["refused"] == 0


def test_a_kill_at_each_step_beside_a_process_that_goes_on(recording: Recording, tmp_path: Path) -> None:
    """It has the ledger open, and has seen it as it was before; its own debit is one more."""
    folder, begins = tmp_path / "disk", [0]
    begins += [n for n, step in enumerate(recording.steps, 1) if step.kind == "say"]
    for count, promised in moments(recording):
        begin = max(n for n in begins if n <= max(count - 1, 0))
        place(recording.killed(begin), folder)
        with closing(open_ledger(folder / NAME)) as ledger:
            ledger.balance("people")
            for step in recording.steps[begin:count]:
                do(step, folder)
            ledger.reserve(dataset="people", analyst="bob", request_id="own", events=[cost("1/100")])
        assert {*promised, "paid own"} <= (kept(folder) or set())


def test_what_sqlite_undoes_was_not_granted_yet(recording: Recording, tmp_path: Path) -> None:
    """After a kill in the middle of a commit Privet keeps a debit that is whole, and SQLite rolls it back.

    So whoever opens a ledger with SQLite can see a debit vanish, but only one that nobody was told of.
    """
    search, undone = Search(tmp_path / "disk"), set[str]()
    for count, promised in moments(recording):
        files = recording.killed(count)
        ours, raw = search(files, promised, kept), search(files, promised, kept_by_sqlite)
        assert ours is not None
        assert raw is not None
        undone |= ours - raw
    assert search.counts["lost"] == 0
    assert undone == {"paid 0", "answered 0", "paid 1", "answered 1"}, "each, between its last write and its grant"


def test_no_journal_is_left_when_a_debit_is_granted(recording: Recording, tmp_path: Path) -> None:
    """On no disk that a power cut could leave at that moment."""
    draws = random.Random(3)
    for count, step in enumerate(recording.steps):
        if step.kind == "say":
            assert not recording.unsynced(count), step.name
            for files in recording.cuts(count, draws, 3):
                assert files.get(JOURNAL, b"\0")[:1] == b"\0"


def lost_in_cuts(recording: Recording, folder: Path, how: Callable[[Path], set[str] | None], most: int) -> Search:
    search, draws = Search(folder), random.Random(4)
    for count, promised in moments(recording):
        for files in recording.cuts(count, draws, most):
            search(files, promised, how)
    return search


@pytest.mark.parametrize(("how", "most"), [(kept, 2 if EFFORT == 1 else 3), (kept_by_sqlite, 1)])
def test_a_power_cut_at_each_step(
    recording: Recording, tmp_path: Path, how: Callable[[Path], set[str] | None], most: int, effort: int
) -> None:
    found = lost_in_cuts(recording, tmp_path / "disk", how, most * effort)
    print(f"\n{how.__name__}: {dict(found.counts)}, {len(found.seen)} different disks")
    assert len(found.seen) > 100 * most
    assert found.counts["lost"] == found.counts["refused"] == 0


@pytest.mark.parametrize(
    ("setting", "how"), [("PRAGMA synchronous = OFF", kept), ("PRAGMA journal_mode = DELETE", kept_by_sqlite)]
)
def test_twins_lose_what_they_granted(tmp_path: Path, setting: str, how: Callable[[Path], set[str] | None]) -> None:
    """One never syncs. One removes its journal, and SQLite does not sync the folder: it may be there again."""
    twin = recorded(tmp_path / "twin", setting)
    assert lost_in_cuts(twin, tmp_path / "disk", how, 1).counts["lost"] > 0


def test_a_repair_that_is_cut_itself(recording: Recording, tmp_path: Path) -> None:
    """A half written file is opened, which repairs it; then the power is cut again."""
    folder, search = tmp_path / "ledger", Search(tmp_path / "disk")
    draws, repairs = random.Random(5), 0
    for count, promised in moments(recording):
        files = recording.killed(count)
        if NAME not in files or not files.get(JOURNAL, b"").startswith(b"\xd9"):
            continue
        if recovery._verifies(files[NAME], 0):
            continue
        repairs += 1
        place(files, folder)
        repair = record(folder, lambda say: open_ledger(folder / NAME).close())
        assert repair.killed(len(repair.steps)) == repair.after == contents(folder)
        for end in range(len(repair.steps) + 1):
            for left in (repair.killed(end), *repair.cuts(end, draws, 2)):
                search(left, promised, kept)
    assert repairs > 3
    assert search.counts["lost"] == search.counts["refused"] == 0
