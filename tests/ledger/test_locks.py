"""Locks that belong to an open ledger: one writes, nobody reads while it commits, and no process loses them."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.ledger import workers
from tests.ledger.common import cost
from tests.ledger.workers import Nursery, opened

from privet.errors import LedgerError
from privet.ledger import open_ledger
from privet.ledger.storage.sqlite import locks
from privet.ledger.storage.sqlite.locks import FileLocks, Held

WRITES = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE'); print('begun')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "people.ledger"
    opened(made).close()
    return made


@pytest.fixture
def pair(path: Path) -> Iterator[tuple[FileLocks, FileLocks]]:
    """Of two ledgers of the same process."""
    one, other = FileLocks(str(path)), FileLocks(str(path))
    yield one, other
    one.close()
    other.close()


def is_held(take: Callable[[], None]) -> bool:
    try:
        take()
    except Held:
        return True
    return False


def test_who_waits_for_whom(pair: tuple[FileLocks, FileLocks]) -> None:
    one, other = pair
    taken = {"turn": FileLocks.turn, "look": FileLocks.look, "commit": FileLocks.commit, "alone": FileLocks.alone}
    taken |= {"still": FileLocks.still, "shield": FileLocks.shield}
    apart = {("turn", "turn"), ("look", "commit"), ("commit", "commit"), ("turn", "still"), ("commit", "still")}
    apart |= {("alone", each) for each in taken}
    for first, take in taken.items():
        for second, take_too in taken.items():
            take(one)
            assert is_held(lambda take_too=take_too: take_too(other)) == (  # type: ignore[misc]
                (first, second) in apart or (second, first) in apart
            ), (first, second)
            one.release()
            other.release()


def test_a_writer_that_waits_for_readers_lets_no_more_of_them_in(pair: tuple[FileLocks, FileLocks], path: Path) -> None:
    one, other = pair
    one.look()
    assert is_held(other.commit)
    third = FileLocks(str(path), read_only=True)
    assert is_held(third.look)
    one.release()
    other.commit()
    other.release()
    third.look()
    third.close()


def test_a_child_has_locks_of_its_own_and_keeps_none_of_its_parents(path: Path) -> None:
    """The parent dies in its turn, the child lives: then it is the child's turn."""
    source, sink = os.pipe()
    parent = os.fork()
    if parent == 0:
        signal.alarm(20)
        mine = FileLocks(str(path))
        mine.turn()
        if os.fork():
            time.sleep(0.5)
            os._exit(0)
        signal.alarm(20)
        seen = [is_held(mine.turn)]
        while is_held(mine.turn):
            time.sleep(0.01)
        os.write(sink, b"held, then free" if seen == [True] else b"shared")
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as pipe:
        assert pipe.read() == "held, then free"
    os.waitpid(parent, 0)


def test_a_ledger_that_is_closed_leaves_the_locks_of_others_alone(path: Path) -> None:
    """SQLite's, which this process would lose with any file that it closes."""
    others = [open_ledger(path) for _ in range(3)]
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        for each in others[1:]:
            each.close()
        tried = subprocess.run([sys.executable, "-c", WRITES, path], capture_output=True, text=True, check=False)
        assert "locked" in tried.stderr
        writer.execute("ROLLBACK")
    others[0].close()
    assert files_of(path) == (0, 0)


def files_of(path: Path) -> tuple[int, int]:
    """How many files this process has open for the locks of a ledger: used, and spare."""
    status = path.stat()
    key = status.st_dev, status.st_ino
    used, spare = locks._OPEN_FILES.used, locks._OPEN_FILES.spare
    return tuple(sum(file == key for file, _ in each.values()) for each in (used, spare))  # type: ignore[return-value]


def test_files_do_not_pile_up(path: Path) -> None:
    with closing(open_ledger(path)):
        for _ in range(3):
            open_ledger(path).close()
            open_ledger(path, read_only=True).close()
        assert files_of(path) == (1, 2)


def test_a_file_that_something_else_closed_is_not_used(path: Path, tmp_path: Path) -> None:
    """Its number is another file's then, which must be neither locked nor written nor closed."""
    with closing(opened(path)) as ledger:
        handle = ledger._database._file.locks.handle  # type: ignore[attr-defined]
        os.close(handle)
        with (tmp_path / "another").open("wb") as another:
            assert another.fileno() == handle
            with pytest.raises(LedgerError, match="something in this process closed the ledger's file"):
                ledger.balance("people")
            ledger.close()
            another.write(b"still open")
    with closing(open_ledger(path)) as ledger:
        ledger.verify()


def test_a_system_without_such_locks_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.delattr(fcntl, "F_OFD_SETLK")
    with pytest.raises(LedgerError, match="a ledger in a file needs open file description locks"):
        open_ledger(path)


@pytest.mark.slow
def test_a_process_that_opens_the_file_elsewhere_in_the_middle_of_things(nursery: Nursery, tmp_path: Path) -> None:
    """It loses SQLite's locks, again and again, while others write and read; nothing else is lost."""
    found: dict[bool, tuple[Counter[str], Fraction | None]] = {}
    crowd, times = 4, 60
    for guarded in (True, False):
        folder = tmp_path / str(guarded)
        folder.mkdir()
        path = folder / "people.ledger"
        opened(path).close()
        each: dict[str, list[Any]] = {"where": [path] * crowd, "who": list("abcd"), "times": [times] * crowd}
        each |= {"guarded": [guarded] * crowd}
        seen = sum(map(Counter, nursery.race(workers.careless, folder, **each)), Counter[str]())
        spent = None
        try:
            with closing(open_ledger(path)) as ledger:
                ledger.verify()
                spent = Fraction(ledger.balance("people").spent.epsilon)
        except LedgerError:
            assert not guarded
        found[guarded] = seen, spent
    assert found[True] == ({"granted": crowd * times}, Fraction(crowd * times, 100))
    granted = found[False][0]["granted"]
    assert found[False] != ({"granted": crowd * times}, Fraction(granted, 100)), "without the locks it goes wrong"


def test_a_debit_after_a_fork_in_the_parent_and_in_the_child(path: Path) -> None:
    """Neither uses the file that the other has open for its locks."""
    with closing(opened(path)) as ledger:
        ledger.reserve(dataset="people", analyst="ann", request_id="before", events=[cost("1/100")])
        handle = ledger._database._file.locks.handle  # type: ignore[attr-defined]
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            ledger.reserve(dataset="people", analyst="ann", request_id="child", events=[cost("1/100")])
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert ledger._database._file.locks.handle == handle  # type: ignore[attr-defined]
        ledger.reserve(dataset="people", analyst="ann", request_id="parent", events=[cost("1/100")])
        assert ledger.balance("people").spent.epsilon == Fraction(3, 100)
