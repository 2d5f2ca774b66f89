"""The process that starts the others: what ends is replaced, and what can't start is given up."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from tests.server.api.serving import POLICY, free_port, write_data
from uvicorn.supervisors import Multiprocess

from privet.errors import InternalError, LedgerError
from privet.server import supervisor
from privet.server.supervisor import TRIES, Supervisor, Worker


def test_a_process_that_ends_while_it_is_asked_how_it_is_does_not_keep_the_others_waiting() -> None:
    worker = Worker(uvicorn.Config("no.such:app"), [])
    worker.process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(100,))
    worker.start()  # it never answers, as a process that is still starting
    found: list[bool] = []
    asking = threading.Thread(target=lambda: found.append(worker.is_alive(timeout=3600)), daemon=True)
    asking.start()
    time.sleep(0.2)
    worker.process.kill()
    asking.join(60)
    assert found == [False]
    worker.join()


class Life:
    """Processes that never ran: each start comes up, or fails with an error, as a list says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *fates: object, workers: int = 1) -> None:
        self.fates, self.now, self.ready = list(fates), 0.0, 0
        self.starts: list[float] = []
        life = self

        class Fake(Worker):
            """A process with a fate."""

            fate: object = None

            def start(self) -> None:
                life.starts.append(life.now)
                self.fate = life.fates.pop(0) if life.fates else LedgerError("still gone")
                code = -9 if self.fate == "killed" else 3
                self.process: Any = type("", (), {"is_alive": lambda _: self.fate == "up", "exitcode": code})()

            def _healthcheck(self, timeout: float) -> bool | None:
                return self.fate == "up" or None

            def kill(self) -> None:
                self.fate = self.fate if isinstance(self.fate, LedgerError) else None

            def join(self) -> None:
                pass

            @property
            def error(self) -> LedgerError | None:
                return self.fate if isinstance(self.fate, LedgerError) else None

        monkeypatch.setattr(supervisor, "Worker", Fake)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.over = Supervisor(uvicorn.Config("no.such:app", workers=workers), [], self.tell)
        self.over.init_processes()

    def tell(self) -> None:
        self.ready += 1

    def go(self, seconds: int) -> None:
        for _ in range(2 * seconds):
            if not self.over.should_exit.is_set():
                self.over.keep_subprocess_alive()
            self.now += 0.5

    def end(self, at: int) -> None:
        self.over.processes[at].fate = None  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """A supervisor takes the signals of its process."""
    before = {each: signal.getsignal(each) for each in supervisor.SIGNALS}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def test_what_can_not_start_is_tried_again_for_a_while_and_then_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(monkeypatch, "up")
    life.go(5)
    assert (life.ready, life.starts) == (1, [0.0])
    life.end(0)  # and its database does not come back
    life.go(10_000)
    assert life.over.should_exit.is_set()
    assert len(life.starts) == 1 + TRIES
    pauses = [later - earlier for earlier, later in pairwise(life.starts[1:])]
    assert all(later >= earlier for earlier, later in pairwise(pauses))
    assert 200 < life.starts[-1] < 600
    monkeypatch.setattr(Multiprocess, "run", lambda self: None)
    with pytest.raises(LedgerError, match="still gone"):
        life.over.run()


def test_a_database_that_comes_back_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(monkeypatch, "up", LedgerError("gone"), LedgerError("gone"), "up", LedgerError("gone"), "up")
    for _ in range(2):
        life.go(20)
        assert not life.over.should_exit.is_set()
        life.end(0)
    life.go(20)
    assert (life.over.should_exit.is_set(), life.ready, len(life.starts)) == (False, 1, 6)


def test_a_first_start_that_fails_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(monkeypatch, "killed", "ended")
    life.go(5)
    assert (life.over.should_exit.is_set(), life.ready, len(life.starts)) == (True, 0, 2)
    monkeypatch.setattr(Multiprocess, "run", lambda self: None)
    with pytest.raises(InternalError, match="ended with code 3 before it was up"):
        life.over.run()


def test_while_others_are_up_the_server_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(monkeypatch, "up", "up", workers=2)
    life.go(5)
    life.end(1)
    life.go(3000)
    assert not life.over.should_exit.is_set()
    assert TRIES < len(life.starts) < 70


def served(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    port = free_port()
    policy = folder / "privet.toml"
    policy.write_text(POLICY.format(port=port, server="pace = 0", epsilon="50"), encoding="utf-8")
    command = [sys.executable, "-m", "privet", "serve", "--policy", str(policy)]
    with (folder / "log").open("wb") as log:  # a pipe that nobody reads would be full after some hundred requests
        process = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL, cwd=folder)
    return process, f"http://127.0.0.1:{port}/api/v1/health"


def until(state: bool, url: str) -> None:
    """Wait until the server answers, or does not."""
    for _ in range(600):
        try:
            up = httpx.get(url, timeout=5, trust_env=False).status_code == 200
        except httpx.TransportError:
            up = False
        if up is state:
            return
        time.sleep(0.1)
    raise AssertionError(url)


def children(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
        with suppress(OSError):  # it has just ended
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


def test_a_single_process_is_replaced_and_ends_with_its_supervisor(tmp_path: Path) -> None:
    process, url = served(tmp_path)
    assert process.wait(60) == 2
    assert "people.parquet" in (tmp_path / "log").read_text("utf-8"), "there is no data yet"
    write_data(tmp_path)
    process, url = served(tmp_path)
    try:
        until(True, url)
        (only,) = children(process.pid)
        os.kill(only, signal.SIGKILL)
        while children(process.pid) in ([], [only]):  # the next one may come before anybody sees that this one is gone
            time.sleep(0.05)
        until(True, url)
        (other,) = children(process.pid)
        assert other != only
        process.kill()
        process.wait(60)
        until(False, url)
    finally:
        process.kill()
        process.wait(60)
