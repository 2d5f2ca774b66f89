"""A new ledger gets its name when it is complete, replaces and removes nothing else, and waits for nobody."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.ledger import workers
from tests.ledger.common import ask, opened

import privet as pv
from privet.errors import BudgetError, LedgerError, UserError
from privet.ledger import Caps, open_ledger
from privet.ledger.storage.database import NoLedger
from privet.privacy.guarantees import PureDP
from privet.system import files


@pytest.fixture(params=[".new", ".lock"])
def neighbour(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A ledger whose name begins with the name of the other one."""
    path = tmp_path / f"people{request.param}"
    with closing(opened(open_ledger(path))) as ledger:
        ask(ledger, "x", "42")
    return path


def test_a_ledger_with_a_longer_name_stays(neighbour: Path, tmp_path: Path) -> None:
    opened(open_ledger(tmp_path / "people")).close()
    with closing(open_ledger(neighbour, create=False)) as ledger:
        assert ledger.balance("people").spent == PureDP("0.01")


def test_other_files_stay(tmp_path: Path) -> None:
    for name in ("people.lock", "people.new", ".people.part"):
        (tmp_path / name).write_text("something else")
    opened(open_ledger(tmp_path / "people")).close()
    for name in ("people.lock", "people.new", ".people.part"):
        assert (tmp_path / name).read_text() == "something else"
    assert len(list(tmp_path.iterdir())) == 5, "nothing else is left: the ledger and its journal"


def test_a_lock_on_another_file_is_not_waited_for(tmp_path: Path) -> None:
    with (tmp_path / "people.ledger.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = threading.Thread(target=lambda: open_ledger(tmp_path / "people.ledger").close(), daemon=True)
        done.start()
        done.join(20)
        assert not done.is_alive()


def test_a_ledger_that_is_restored_at_the_last_moment_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy, real = tmp_path / "people.ledger", tmp_path / "copy.ledger", os.fsync
    with closing(opened(open_ledger(copy))) as ledger:
        ask(ledger, "x", "42")

    def fsync(handle: int) -> None:
        real(handle)
        if not path.exists():
            copy.rename(path)

    monkeypatch.setattr(os, "fsync", fsync)
    with closing(open_ledger(path)) as ledger:
        assert not ledger.created
        assert ledger.balance("people").spent == PureDP("0.01")


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm", "-JOURNAL", ".part"])
def test_names_that_another_ledger_could_need_are_refused(tmp_path: Path, end: str) -> None:
    with pytest.raises(UserError, match=f"can't have a name that ends in '{end.lower()}'"):
        open_ledger(tmp_path / f"people{end}")
    assert list(tmp_path.iterdir()) == []


def test_many_create_it_at_once(tmp_path: Path) -> None:
    for n in range(5):
        path, created, gate = tmp_path / f"{n}.ledger", list[bool](), threading.Barrier(8)

        def create(path: Path = path, created: list[bool] = created, gate: threading.Barrier = gate) -> None:
            gate.wait()
            with closing(open_ledger(path)) as ledger:
                created.append(ledger.created)

        threads = [threading.Thread(target=create) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(created) == [False] * 7 + [True]
    assert not list(tmp_path.glob(".*"))


def test_a_creator_that_was_killed_before_it_removed_the_scratch_name(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    opened(open_ledger(path)).close()
    scratch = tmp_path / ".people.ledger.0123456789abcdef.part"
    scratch.hardlink_to(path)
    open_ledger(path).close()
    assert not scratch.exists()


def test_a_creator_that_still_works_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    opened(open_ledger(path)).close()
    scratch = tmp_path / ".people.ledger.0123456789abcdef.part"
    scratch.hardlink_to(path)
    with scratch.open("rb") as file:
        assert files._lock(file.fileno())
        timer = threading.Timer(0.5, scratch.unlink)
        timer.start()
        start = time.monotonic()
        open_ledger(path).close()
        assert time.monotonic() - start > 0.3
        timer.join()


def test_a_hard_link_is_still_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    opened(open_ledger(path)).close()
    (tmp_path / "link").hardlink_to(path)
    with pytest.raises(LedgerError, match="2 names"):
        open_ledger(path)


# --- by the first question --------------------------------------------------------------------------


def lazy(where: str | Path, **how: Any) -> pv.Dataset:
    """A dataset whose ledger is only looked at until a question is paid for."""
    return pv.Dataset([workers.TABLE], budget=PureDP(1), ledger=where, connect=False, threads=1, **how)


def half(_: str) -> Caps:
    return Caps(analyst=PureDP("0.5"))


REFUSED: dict[str, Callable[[pv.Session], object]] = {
    "over the budget": lambda session: session.release(workers.QUESTION, epsilon=2),
    "over the cap": lambda session: session.release(workers.QUESTION, epsilon="0.6"),
    "a value over the cap": lambda session: session.release_value(5, sensitivity=1, epsilon="0.6", label="x"),
    "below the least price": lambda session: session.release(workers.QUESTION, epsilon="0.0001"),
    "misspelled": lambda session: session.release("SELECT AVG(aeg) FROM people", epsilon="0.1"),
}


@pytest.mark.parametrize("asked", REFUSED)
def test_a_refused_question_creates_none(where: str | Path, asked: str) -> None:
    with lazy(where, caps=half) as dataset, dataset.session(analyst="ann") as session:
        with pytest.raises(UserError):
            REFUSED[asked](session)
        assert not dataset.created_ledger
        with pytest.raises(NoLedger):
            open_ledger(where, create=False)
        assert session.spent == PureDP.ZERO
        session.release(workers.QUESTION, epsilon="0.1")
        assert dataset.created_ledger
    with closing(open_ledger(where, create=False)) as ledger:
        assert ledger.balance("people").spent == PureDP("0.1")


def test_whatever_is_paid_is_paid_on_disk(where: str | Path) -> None:
    """A value too, which needs no engine; and the next process knows of it."""
    for left in (1, 0):
        with lazy(where) as dataset, dataset.session(analyst="ann") as session:
            if left:
                session.release_value(5, sensitivity=1, epsilon="0.9", label="mine")
            else:
                with pytest.raises(BudgetError, match=r"only epsilon 0\.1 is left"):
                    session.release_value(5, sensitivity=1, epsilon="0.9", label="another")
    with closing(open_ledger(where, create=False)) as ledger:
        assert ledger.balance("people").spent == PureDP("0.9")


def test_what_stands_in_for_a_missing_ledger_is_not_written(where: str | Path) -> None:
    """It would be forgotten."""
    with lazy(where) as dataset:
        with pytest.raises(UserError, match="read-only"):
            dataset.ledger.declare("people", "2", reason="new data")
        dataset.session(analyst="ann").close()


def test_a_closed_dataset_creates_none(where: str | Path) -> None:
    dataset = lazy(where)
    session = dataset.session(analyst="ann")
    dataset.close()
    with pytest.raises(UserError, match="closed"):
        session.release(workers.QUESTION, epsilon="0.1")
    with pytest.raises(NoLedger):
        open_ledger(where, create=False)


def test_a_crowd_asks_the_first_question(where: str | Path) -> None:
    """Each rehearses or not; all are paid once, on disk."""
    with lazy(where) as dataset, ThreadPoolExecutor(8) as pool:

        def ask_once(i: int) -> bool:
            with suppress(BudgetError):
                dataset.session(analyst=f"a{i}").release_value(i, sensitivity=1, epsilon="0.3", label=f"v{i}")
                return True
            return False

        assert sum(pool.map(ask_once, range(8))) == 3
    with closing(open_ledger(where, create=False)) as ledger:
        assert ledger.balance("people").spent == PureDP("0.9")


@pytest.mark.parametrize("existing", [False, True])
def test_connecting_leaves_the_readers_alone(where: str | Path, existing: bool) -> None:
    """One thread has the ledger in its hands while another connects the dataset."""
    if existing:
        with lazy(where) as dataset, dataset.session(analyst="ann") as session:
            session.release_value(1, sensitivity=1, epsilon="0.1", label="earlier")
    with lazy(where) as dataset, dataset.session(analyst="ann") as session:
        held = dataset.ledger
        session.release_value(2, sensitivity=1, epsilon="0.2", label="mine")
        assert held is not dataset.ledger
        assert held.balance("people").budget == dataset.ledger.balance("people").budget
        assert dataset.ledger.balance("people").spent == PureDP("0.3" if existing else "0.2")
