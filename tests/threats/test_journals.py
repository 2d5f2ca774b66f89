"""L8: a journal is put beside a ledger: an older one, a forged one, garbage; at rest, while it is used, after a kill.

Every state of a ledger is kept, and the journal of every transaction. So each file that a kill can leave is built here,
and each journal is put beside it. Whatever is left of a ledger, it has every debit that was committed, or is refused.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from pathlib import Path

import pytest
from tests.effort import some
from tests.ledger import workers
from tests.ledger.attacks import MAGIC, forged, head, hot
from tests.ledger.common import cost
from tests.ledger.workers import Nursery, opened
from tests.threats.peers import MOST, Peer, ask, holds, seen, session, total, wait_for

from privet.errors import LedgerError
from privet.ledger import open_ledger
from privet.ledger.storage.sqlite import recovery
from privet.ledger.storage.sqlite.locks import FileLocks
from privet.ledger.storage.sqlite.schema import MARK

PAGE = 4096


@dataclass
class Past:
    """A ledger after each of its transactions, and the journal of each. Files are made of it again."""

    folder: Path
    files: list[bytes] = field(default_factory=list)
    journals: list[bytes] = field(default_factory=list)
    lines: list[list[str]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def keep(self, path: Path) -> None:
        with closing(open_ledger(path, read_only=True)) as ledger:
            self.lines.append(list(ledger.export()))
        if self.files:
            self.journals.append(hot(self.files[-1], Path(f"{path}-journal").read_bytes()))
        self.files.append(path.read_bytes())

    def place(self, file: bytes, journal: bytes | None) -> Path:
        path = self.folder / f"{next(self.numbers)}.ledger"
        path.write_bytes(file)
        if journal is not None:
            Path(f"{path}-journal").write_bytes(journal)
        return path

    def found(self, file: bytes, journal: bytes | None, *, read_only: bool = False) -> int | None:
        """Which state a ledger is opened in; None if it is refused, and -1 if it never was so."""
        path = self.place(file, journal)
        try:
            with closing(open_ledger(path, read_only=read_only)) as ledger:
                ledger.verify()
                lines = list(ledger.export())
        except LedgerError:
            return None
        finally:
            for each in self.folder.glob(f"{path.name}*"):
                each.unlink()
        return next((n for n, known in enumerate(self.lines) if known == lines), -1)

    def written(self, n: int) -> list[int]:
        """The pages of a file that a transaction changes, as it writes them."""
        old, new = self.files[n - 1], self.files[n]
        return [at for at in range(0, len(new), PAGE) if new[at : at + PAGE] != old[at : at + PAGE]]

    def torn(self, n: int, pages: list[int]) -> bytes:
        """A file in the middle of a transaction: only these pages are written."""
        made = bytearray(self.files[n - 1])
        for at in pages:
            made += bytes(max(at + PAGE - len(made), 0))
            made[at : at + PAGE] = self.files[n][at : at + PAGE]
        return bytes(made)

    def kills(self) -> Iterator[tuple[int, bytes]]:
        """Each file that a kill in the middle of a commit leaves: pages are written in their order."""
        for n in range(1, len(self.files)):
            written = self.written(n)
            for cut in range(1, len(written)):
                yield n, self.torn(n, written[:cut])

    def half_written(self) -> tuple[int, bytes]:
        """One that does not hold by itself."""
        return next((n, file) for n, file in self.kills() if n > 9 and self.found(file, None) is None)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """Debits and answers, short and long: pages are filled, split, and added."""
    folder = tmp_path_factory.mktemp("past")
    path, made = folder / "people.ledger", Past(folder)
    with closing(opened(path)) as ledger:
        made.keep(path)
        for i in range(12):
            charge = ledger.reserve(dataset="people", analyst="ann", request_id=f"{i}", events=[cost("1/100")])
            made.keep(path)
            ledger.settle(charge, "answered", f"{i}" * (9000 if i % 4 == 3 else 10))
            made.keep(path)
    path.unlink()
    Path(f"{path}-journal").unlink()
    assert len(made.files[-1]) > len(made.files[0])
    assert all(len(journal) > 512 for journal in made.journals)
    return made


@contextmanager
def twin_that_believes_every_journal() -> Iterator[None]:
    """As it was: SQLite rolls back whatever is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recovery, "is_hot", lambda place: False)
        patch.setattr(FileLocks, "shield", lambda self: None)
        yield


@contextmanager
def twin_that_forgets_the_last_commit() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        real = recovery._verifies
        patch.setattr(recovery, "_verifies", lambda content, least: real(content, 0))
        yield


# --- at rest ------------------------------------------------------------------------------------------


def at_rest(past: Past) -> list[int | None]:
    """What is found of a ledger beside which any journal stands: its own last one, an older one, a forged one."""
    file = past.files[-1]
    return [past.found(file, journal) for journal in (*past.journals[-5:], *map(forged, past.files[-5:]))]


def test_any_journal_at_rest(past: Past) -> None:
    """What is in the file was granted, and stays."""
    newest = len(past.files) - 1
    assert at_rest(past) == [newest] * 10
    with twin_that_believes_every_journal():
        assert min(-1 if each is None else each for each in at_rest(past)) < newest, "the attack works on the twin"


def test_garbage_at_rest(past: Past) -> None:
    draws, newest = random.Random(1), len(past.files) - 1
    own = past.journals[-1]
    texts = [draws.randbytes(size) for size in (1, 20, 5000, 40_000)]
    texts += [MAGIC + each for each in texts] + [own[:n] for n in (1, 8, 28, 511, 512, 5000, len(own) - 1)]
    texts += [b"", b"\0", bytes(512) + own[512:], head(2**32 - 1, 0, 2**32 - 1, PAGE), head(1, 0, 0, 0)]
    texts += [head(5, 0, 3, 1) + own, head(0, 0, 5, PAGE), own[:20] + bytes(4) + own[24:]]
    for text in texts:
        assert past.found(past.files[-1], text) == newest, text[:40]
        assert past.found(past.files[-1], text, read_only=True) == newest, text[:40]


@pytest.mark.parametrize("twin", [False, True])
def test_beside_a_ledger_that_is_open(past: Past, twin: bool) -> None:
    """Of the same process, which is idle, and of one that opens it then."""
    path = past.place(past.files[-1], None)
    with closing(open_ledger(path)) as ledger:
        ledger.balance("people")
        Path(f"{path}-journal").write_bytes(past.journals[-1])
        if twin:
            with twin_that_believes_every_journal(), pytest.raises(LedgerError, match="has changed since it was read"):
                ledger.reserve(dataset="people", analyst="ann", request_id="new", events=[cost("1/100")])
            with closing(open_ledger(path)) as other:
                assert list(other.export()) == past.lines[-2], "on the twin what was granted is gone"
            return
        with closing(open_ledger(path)) as other:
            assert list(other.export()) == past.lines[-1]
        Path(f"{path}-journal").write_bytes(forged(past.files[-4]))
        assert ledger.reserve(dataset="people", analyst="ann", request_id="new", events=[cost("1/100")]).number
        assert list(ledger.export())[:-1] == past.lines[-1]


@pytest.mark.parametrize("garbage", [False, True])
def test_a_journal_beside_a_file_that_is_known_to_be_whole_costs_no_verification(
    past: Past, garbage: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long ledger that takes seconds, in which nobody else could write."""
    path = past.place(past.files[-1], None)
    journal = random.Random(5).randbytes(9000) if garbage else past.journals[-1]
    with closing(open_ledger(path)) as ledger, closing(open_ledger(path, read_only=True)) as reader:
        reader.balance("people")
        verified, real = list[int](), recovery._verifies

        def verifies(content: bytes, least: int) -> bool:
            verified.append(least)
            return real(content, least)

        monkeypatch.setattr(recovery, "_verifies", verifies)
        for i in range(3):
            Path(f"{path}-journal").write_bytes(journal)
            ledger.balance("people")
            if i == 0:
                reader.balance("people")
            ledger.reserve(dataset="people", analyst="ann", request_id=f"new {i}", events=[cost("1/100")])
        assert not verified
        assert list(ledger.export())[:-3] == past.lines[-1]
    monkeypatch.undo()
    with closing(open_ledger(path)) as ledger:
        ledger.verify()


def test_whoever_opens_a_ledger_beside_a_left_journal_locks_nobody_out(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It verifies a copy; a process that has the ledger open goes on meanwhile, and its debit stays."""
    path, real = past.place(past.files[-1], None), recovery._verifies
    with closing(open_ledger(path)) as ledger:
        ledger.balance("people")
        Path(f"{path}-journal").write_bytes(past.journals[-1])
        paid: list[int] = []

        def slowly(content: bytes, least: int) -> bool:
            if len(paid) < 2:
                name = f"new {len(paid)}"
                paid.append(
                    ledger.reserve(dataset="people", analyst="ann", request_id=name, events=[cost("1/100")]).number
                )
            return real(content, least)

        monkeypatch.setattr(recovery, "_verifies", slowly)
        with closing(open_ledger(path)) as other:
            assert paid
            assert list(other.export())[: -len(paid)] == past.lines[-1]
            other.verify()


def test_a_journal_that_appears_at_the_last_moment(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the ledger has looked, and before SQLite does."""
    real, planted = FileLocks.shield, list[int]()
    path = past.place(past.files[-1], None)

    def shield(self: FileLocks) -> None:
        real(self)
        planted.append(Path(f"{path}-journal").write_bytes(past.journals[-1]))

    monkeypatch.setattr(FileLocks, "shield", shield)
    with closing(open_ledger(path)) as ledger:
        for i in range(3):
            ledger.reserve(dataset="people", analyst="ann", request_id=f"new {i}", events=[cost("1/100")])
        assert list(ledger.export())[:-3] == past.lines[-1]
    assert len(planted) > 6
    monkeypatch.undo()
    with closing(open_ledger(path)) as ledger:
        assert list(ledger.export())[:-3] == past.lines[-1]


# --- after a kill -------------------------------------------------------------------------------------


def test_a_kill_in_the_middle_of_a_commit(past: Past) -> None:
    """Its own journal completes it, or undoes it; and whoever only reads sees the same, and writes nothing."""
    outcomes: Counter[int] = Counter()
    for n, file in past.kills():
        found = past.found(file, past.journals[n - 1])
        assert found in (n - 1, n), n
        assert past.found(file, past.journals[n - 1], read_only=True) == found
        outcomes[n - found] += 1
    assert outcomes[1] > 20, "some were rolled back"


def test_pages_that_a_power_failure_wrote_in_any_order(past: Past) -> None:
    draws = random.Random(2)
    for n in range(1, len(past.files)):
        for _ in range(4):
            pages = [at for at in past.written(n) if draws.random() < 0.5]
            assert past.found(past.torn(n, pages), past.journals[n - 1]) in (n - 1, n)


def test_an_older_journal_after_a_power_failure_that_left_the_head_unwritten(past: Past) -> None:
    """A known limit: the same bytes can come from an honest crash. One commit is lost at most."""
    draws, lost = random.Random(4), Counter[int]()
    for n in range(3, len(past.files)):
        head_, *pages = past.written(n)
        assert head_ == 0
        for _ in range(4):
            file = past.torn(n, [at for at in pages if draws.random() < 0.5])
            for journal in past.journals[n - 3 : n - 1]:
                found = past.found(file, journal)
                lost[0 if found is None else max(n - 1 - found, 0)] += 1
    assert set(lost) <= {0, 1}, lost


def after_a_kill(past: Past, others: Callable[[int], list[bytes | None]]) -> tuple[int, Counter[str]]:
    """How many commits are lost at most, if the journal is another one before the next start."""
    lost, outcomes = 0, Counter[str]()
    for n, file in some(list(past.kills()), every=2):
        for journal in others(n):
            found = past.found(file, journal)
            outcomes["refused" if found is None else "unharmed"] += 1
            if found is not None:
                lost = max(lost, n - 1 - found)
    return lost, outcomes


def test_an_older_journal_after_a_kill(past: Past) -> None:
    def older(n: int) -> list[bytes | None]:
        return [*past.journals[max(n - 4, 0) : n - 1]]

    lost, outcomes = after_a_kill(past, older)
    assert lost == 0
    assert outcomes["refused"] > 20
    with twin_that_forgets_the_last_commit():
        assert after_a_kill(past, older)[0] > 0, "the attack works on the twin"
    with twin_that_believes_every_journal():
        assert after_a_kill(past, older)[0] > 0, "the attack works on the twin"


def test_a_forged_journal_after_a_kill(past: Past) -> None:
    def forgeries(n: int) -> list[bytes | None]:
        return [forged(past.files[k]) for k in range(max(n - 4, 0), n - 1)]

    lost, outcomes = after_a_kill(past, forgeries)
    assert lost == 0
    assert outcomes["refused"] > 20
    with twin_that_forgets_the_last_commit():
        assert after_a_kill(past, forgeries)[0] > 0, "the attack works on the twin"


def test_a_broken_journal_after_a_kill(past: Past) -> None:
    draws = random.Random(3)

    def broken(n: int) -> list[bytes | None]:
        journal = past.journals[n - 1]
        at = draws.randrange(len(journal))
        flipped = journal[:at] + bytes([journal[at] ^ 1]) + journal[at + 1 :]
        return [None, b"", journal[: draws.randrange(len(journal))], flipped, MAGIC + draws.randbytes(9000)]

    lost, outcomes = after_a_kill(past, broken)
    assert lost == 0
    assert outcomes["refused"] > 20


def test_recovery_that_is_killed_begins_anew(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each of its writes."""
    n, file = past.half_written()
    for steps in count(1):
        left = steps

        def stop(real: Callable[..., object]) -> Callable[..., object]:
            def step(*arguments: object) -> object:
                nonlocal left
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
                return real(*arguments)

            return step

        path = past.place(file, past.journals[n - 1])
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            for name in ("pwrite", "ftruncate", "fsync"):
                patch.setattr(os, name, stop(getattr(os, name)))
            open_ledger(path).close()
        assert past.found(path.read_bytes(), Path(f"{path}-journal").read_bytes()) == n - 1, steps
        if left >= 0:
            break
    assert steps > 4


# --- looking only -------------------------------------------------------------------------------------


def test_whoever_only_reads_changes_nothing_and_follows(past: Past) -> None:
    n, file = past.half_written()
    path = past.place(file, past.journals[n - 1])
    with closing(open_ledger(path, read_only=True)) as reader:
        assert list(reader.export()) == past.lines[n - 1]
        assert (path.read_bytes(), Path(f"{path}-journal").read_bytes()) == (file, past.journals[n - 1])
        with closing(open_ledger(path)) as ledger:
            ledger.reserve(dataset="people", analyst="ann", request_id="new", events=[cost("1/100")])
            assert list(reader.export()) == list(ledger.export()) != past.lines[n - 1]
            Path(f"{path}-journal").write_bytes(past.journals[n - 1])
            assert list(reader.export()) == list(ledger.export())


# --- what is not a journal ----------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["a link", "a hard link", "a folder", "a pipe", "a link to nothing"])
def test_what_is_not_a_journal_is_refused_in_words(past: Past, tmp_path: Path, what: str) -> None:
    path, victim = past.place(past.files[-1], None), tmp_path / "victim"
    victim.write_bytes(past.journals[-1])
    side = Path(f"{path}-journal")
    if what == "a folder":
        side.mkdir()
    elif what == "a pipe":
        os.mkfifo(side)
    elif what == "a hard link":
        side.hardlink_to(victim)
    else:
        side.symlink_to(victim if what == "a link" else tmp_path / "nothing")
    for read_only in (False, True):
        with pytest.raises(LedgerError, match="has the name of the ledger's journal, but is not a journal"):
            open_ledger(path, read_only=read_only)
    assert victim.read_bytes() == past.journals[-1]
    assert path.read_bytes() == past.files[-1]


def test_a_journal_that_is_huge(past: Past) -> None:
    """It takes no space on disk, and would take all the memory."""
    n, file = past.half_written()
    for content, is_whole in ((past.files[-1], True), (file, False)):
        path = past.place(content, past.journals[n - 1])
        os.truncate(f"{path}-journal", 2**40)
        if is_whole:
            with closing(open_ledger(path)) as ledger:
                assert list(ledger.export()) == past.lines[-1]
        else:
            with pytest.raises(LedgerError, match="half written"):
                open_ledger(path)


def test_a_journal_that_names_another_file_to_remove(past: Past, tmp_path: Path) -> None:
    """SQLite removes the master journal that a journal names, once it has rolled back."""
    victim = tmp_path / "victim"
    name = bytes(victim)
    trailer = (1).to_bytes(4) + name + len(name).to_bytes(4) + sum(name).to_bytes(4) + MAGIC
    for journal in (past.journals[-1], b"\1" * 512):
        for twin in (False, True):
            victim.write_bytes(b"something else")
            path = past.place(past.files[-1], journal + trailer)
            if twin:
                with twin_that_believes_every_journal():
                    seen(lambda path=path: open_ledger(path).close())  # type: ignore[misc]
            else:
                with closing(open_ledger(path)) as ledger:
                    assert list(ledger.export()) == past.lines[-1]
            assert victim.exists() == (not twin)


# --- while others write -------------------------------------------------------------------------------


@pytest.mark.slow
def test_older_journals_appear_while_two_processes_write(nursery: Nursery, tmp_path: Path) -> None:
    """And while each of them opens and closes the ledger."""
    path, times = tmp_path / "people.ledger", 15
    with closing(opened(path)) as ledger:
        ledger.reserve(dataset="people", analyst="ann", request_id="first", events=[cost("1/100")])
    side, earlier = Path(f"{path}-journal"), hot(path.read_bytes(), Path(f"{path}-journal").read_bytes())
    journals, done, planted = [earlier, forged(path.read_bytes())], threading.Event(), count()

    def plant() -> None:
        while not done.wait(0.01):
            new = tmp_path / "planted"
            new.write_bytes(journals[next(planted) % 2])
            new.replace(side)

    thread = threading.Thread(target=plant)
    thread.start()
    try:
        seen_by = nursery.race(workers.openings, tmp_path, where=[path] * 2, who=["a", "b"], times=[times] * 2)
    finally:
        done.set()
        thread.join()
    assert next(planted) > 10
    assert sum(map(Counter, seen_by), Counter[str]()) == {"granted": 2 * times}
    with closing(open_ledger(path)) as ledger:
        ledger.verify()
        assert ledger.balance("people").spent.epsilon == Fraction(2 * times + 1, 100)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_an_older_journal_instead_of_the_one_of_a_killed_process(
    tmp_path: Path, source: Path, start: Callable[[], Peer]
) -> None:
    """In the middle of its transaction, which then has not begun to write the file."""
    for place in ("reserve: written", "reserve: on disk", "settle: written"):
        folder = tmp_path / place.replace(":", "")
        folder.mkdir()
        path, a = folder / "people.ledger", start()
        a.open(path, source)
        small = a.ask("1/100")
        older = hot(path.read_bytes(), Path(f"{path}-journal").read_bytes())
        a.stop_at(place, folder / "stopped")
        a.send("ask", epsilon=MOST)
        wait_for(folder / "stopped")
        a.kill()
        Path(f"{path}-journal").write_bytes(older)
        second = seen(lambda path=path: ask(session(path, source, analyst="bob")))  # type: ignore[misc]
        paid = place != "reserve: written"
        assert ("error" in second) == paid, second
        assert holds(path, total(second) + total(small, price="1/100") + (Fraction(MOST) if paid else 0))


def test_the_last_commit_is_in_the_head_of_the_file(past: Past) -> None:
    """Of the file as it is after each transaction: where the chain ended when it began."""
    numbers = [int.from_bytes(file[60:64]) for file in past.files[1:]]
    assert numbers == [len(lines) for lines in past.lines[:-1]]
    assert MARK.to_bytes(4) == past.files[0][68:72]
