"""`privet serve` as a program: two processes over one ledger, from the first start to the last."""

from __future__ import annotations

import gc
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from tests.server.api.serving import COUNT, POLICY, free_port, write_data

from privet.ledger import open_ledger
from privet.server import serving
from privet.server.accounts import Accounts, Role
from privet.server.connections import open_files


class Program:
    """The program, and what it has printed."""

    def __init__(self, folder: Path, *, files: int | None = None) -> None:
        self.port = free_port()
        write_data(folder)
        policy = folder / "privet.toml"
        policy.write_text(POLICY.format(port=self.port, server="pace = 0\nworkers = 2", epsilon="50"), encoding="utf-8")
        command = [sys.executable, "-m", "privet", "serve", "--policy", str(policy)]
        if files is not None:  # by a shell: Python code between fork and exec would run beside threads of gRPC
            command = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *command]
        self._terminal, shown = pty.openpty()
        with os.fdopen(shown) as terminal:
            self.process = subprocess.Popen(
                command,
                stdout=terminal,
                stderr=subprocess.PIPE,
                text=True,
                cwd=folder,
            )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(self.process.stderr)

    def shown(self) -> str:
        """What is on the terminal."""
        return os.read(self._terminal, 10_000).decode()

    def close(self) -> None:
        os.close(self._terminal)
        self._reader.join(30)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def until(self, condition: object, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not condition():  # type: ignore[operator]
            assert self.process.poll() is None, self.lines
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.1)

    def up(self) -> bool:
        try:
            return (
                httpx.get(f"http://127.0.0.1:{self.port}/api/v1/health", timeout=5, trust_env=False).status_code == 200
            )
        except httpx.TransportError:
            return False

    def workers(self) -> set[int]:
        """The processes that answer requests."""
        children = (
            Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii").split()
        )
        names = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
        return {child for child, name in names.items() if b"spawn_main" in name}


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait(30)
        made.close()


@pytest.mark.slow
def test_two_processes_serve_one_ledger(program: Program, tmp_path: Path) -> None:
    program.until(program.up)
    program.until(lambda: f"at http://localhost:{program.port}" in "".join(program.lines))
    link = re.search(r"http://localhost:\d+(/welcome/[0-9a-zA-Z_-]+)", program.shown())
    assert link is not None
    url = f"http://127.0.0.1:{program.port}"
    assert httpx.get(f"{url}{link[1]}", trust_env=False).status_code == 200
    with Accounts.open(tmp_path / "people.ledger.accounts", create=False) as accounts:
        accounts.add("ann", Role.ANALYST, ["people"])
        text, _ = accounts.create_token("ann", "t", role=Role.ANALYST, datasets=None, max_epsilon=None, days=1)
    headers = {"Authorization": f"Bearer {text}", "Idempotency-Key": "once", "Connection": "close"}
    body = {"sql": COUNT, "epsilon": 0.5, "fresh": True}

    def ask(_: int) -> httpx.Response:
        return httpx.post(
            f"{url}/api/v1/datasets/people/query", json=body, headers=headers, timeout=60, trust_env=False
        )

    with ThreadPoolExecutor(8) as threads:  # over both processes: each request is a connection of its own
        rows = {json.dumps(response.json()["rows"]) for response in threads.map(ask, range(16))}
    assert len(rows) == 1
    # a killed process is replaced, and the answer is still there
    before = program.workers()
    assert len(before) == 2
    os.kill(min(before), signal.SIGKILL)
    program.until(lambda: len(program.workers() - before) == 1)
    program.until(program.up)
    assert json.dumps(ask(0).json()["rows"]) in rows
    program.process.send_signal(signal.SIGTERM)
    assert program.process.wait(60) in (0, -signal.SIGTERM)
    ledger = open_ledger(tmp_path / "people.ledger", create=False)
    assert [entry.kind for entry in ledger.history("people")].count("reserved") == 1
    ledger.verify()
    ledger.close()
    printed = "".join(program.lines)
    assert "welcome/" not in printed
    assert text not in printed
    assert COUNT not in printed


@pytest.mark.slow
def test_idle_connections_leave_files_for_the_ledger(tmp_path: Path) -> None:
    """A thousand connections of a stranger used up the files that a process may open, also those of the ledger."""
    assert open_files() > 2000
    program = Program(tmp_path, files=512)
    try:
        program.until(program.up)
        with Accounts.open(tmp_path / "people.ledger.accounts", create=False) as accounts, ExitStack() as stack:
            accounts.add("ann", Role.ANALYST, ["people"])
            text, _ = accounts.create_token("ann", "t")
            for _ in range(1500):
                idle = stack.enter_context(socket.create_connection(("127.0.0.1", program.port), timeout=20))
                with suppress(OSError):  # one too many is closed
                    idle.sendall(b"GET / HTTP/1.1\r\n")
            elsewhere = httpx.HTTPTransport(local_address="127.0.0.2")
            headers = {"Authorization": f"Bearer {text}", "Connection": "close"}
            ann = stack.enter_context(httpx.Client(transport=elsewhere, headers=headers, timeout=20))
            for epsilon in range(1, 7):
                body = {"sql": COUNT, "epsilon": epsilon}
                answer = ann.post(f"http://127.0.0.1:{program.port}/api/v1/datasets/people/query", json=body)
                assert answer.status_code == 200, answer.text
        assert "Too many open files" not in "".join(program.lines)
    finally:
        program.process.kill()
        program.process.wait(30)
        program.close()


def test_a_full_collection_skips_what_is_there_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise every few hundred questions nobody would be answered for 0.1 s."""
    application = object()
    monkeypatch.setattr(serving, "opened", lambda policy, listen: None)
    monkeypatch.setattr(serving, "application", lambda server: application)
    skipped = gc.get_freeze_count()
    gc.unfreeze()
    try:
        assert serving.made(Path("privet.toml"), None) is application
        assert gc.get_freeze_count() > 10_000
    finally:
        if not skipped:
            gc.unfreeze()
