"""A new ledger gets its name when it is complete, replaces and removes nothing else, and waits for nobody."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.ledger.common import ask, opened

from privet.errors import LedgerError, UserError
from privet.ledger import open_ledger
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
