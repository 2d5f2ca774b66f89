"""Clients that keep to a question until it is decided, and a steward who grants budget and reopens the dataset."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import httpx
from tests.server.fire.program import Answer, Program

EPSILON = "0.01"
_SQL = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
_MANY = 5  # open questions, with which a client asks about one of them each time
_NEW = httpx.Limits(max_keepalive_connections=0)  # a connection for each request: all processes get some


@dataclass
class Outcome:
    """What the clients got, what the ledger says of it, and what is wrong with it."""

    kills: Counter[str] = field(default_factory=Counter)
    at: list[tuple[float, int]] = field(default_factory=list)
    """For each kill: when it was, and how many requests were being answered."""
    sent: dict[tuple[str, str], float] = field(default_factory=dict)
    """When each question was first sent, by analyst and key."""
    statuses: Counter[str] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)
    retried: int = 0
    """Answers that were given again for the same key."""
    failed: set[tuple[str, str]] = field(default_factory=set)
    """The analysts and keys of questions that were paid for and have no answer."""
    refused: set[tuple[str, str]] = field(default_factory=set)
    """The analysts and keys of questions for which nothing was left."""
    undecided: int = 0
    """Questions that were running in a process that was killed, when the clients ended."""
    grants: int = 0
    """How often the steward raised the budget after it was used up."""
    debits: int = 0
    hit: int = 0
    """Debits in the ledger without an answer: a kill came in between."""
    rounds_hit: int = 0
    """Kills that hit such a question."""
    closed: int = 0
    """How often the dataset was closed after failures, and reopened by the steward."""
    running: int = 0
    """Debits that are not settled in the ledger."""
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __str__(self) -> str:
        killed = ", ".join(f"{times} {what}" for what, times in sorted(self.kills.items()))
        statuses = ", ".join(f"{status}: {times:,}" for status, times in sorted(self.statuses.items()))
        busy = sum(requests > 0 for _, requests in self.at)
        return (
            f"killed: {killed}. {busy} kills came while requests were being answered; {self.rounds_hit} of them hit "
            f"{self.hit:,} questions between the debit and the answer. Debits: {self.debits:,}; answers: "
            f"{len(self.answers):,}, of them {self.retried:,} again for the same key; paid and failed: "
            f"{len(self.failed):,}; refused, nothing left: {len(self.refused):,}, budget raised {self.grants:,} times; "
            f"closed and reopened: {self.closed:,}; undecided: {self.undecided}, of them running in the ledger: "
            f"{self.running}. {statuses}"
        )


class Grants:
    """A steward: raises the budget when it is used up, and reopens the dataset when it is closed."""

    def __init__(self, program: Program, outcome: Outcome, step: str) -> None:
        self._outcome, self._step = outcome, Fraction(step)
        self._http = client(program, "sam")
        self._granted = Fraction(0)
        self._done = {"raise": 0.0, "reopen": 0.0}
        self._lock = threading.Lock()
        while not self.more(time.monotonic()):
            time.sleep(0.1)
        outcome.grants = 0

    def more(self, since: float) -> bool:
        """Raise the budget by a step, unless that was done after a request was sent."""
        with self._lock:
            if since < self._done["raise"]:
                return True
            granted = self._granted + self._step
            body = {"epsilon": float(granted), "reason": "a further step"}
            if not self._post("caps", body):
                return False
            self._granted, self._done["raise"] = granted, time.monotonic()
            self._outcome.grants += 1
            return True

    def reopen(self, since: float) -> None:
        """Reopen the dataset, likewise."""
        with self._lock:
            if since >= self._done["reopen"] and self._post("reopen", {"reason": "processes were killed"}):
                self._done["reopen"] = time.monotonic()

    def _post(self, what: str, body: dict[str, Any]) -> bool:
        with suppress(httpx.TransportError):
            return self._http.post(f"/datasets/people/{what}", json=body).status_code == 200
        return False


class Client(threading.Thread):
    """An analyst who asks until told to stop, and decides every question by retries with the same key."""

    def __init__(self, program: Program, number: int, outcome: Outcome, grants: Grants) -> None:
        super().__init__(daemon=True)
        self._outcome, self._grants = outcome, grants
        self._name = f"ann{number}"
        self._draws = random.Random(number)
        self._http = client(program, self._name)
        self._stopped = threading.Event()
        self._open: list[str] = []
        self.waiting = 0
        """Questions that are not decided."""
        self._given: dict[str, str] = {}  # rows, by key
        self.asking = False
        """Whether a request is being answered."""

    def run(self) -> None:
        """Ask, and go on with what is open."""
        number = 0
        while not self._stopped.is_set():
            number += 1
            self._open.append(f"{self._name}-{number}")
            self._ask(self._open[-1])
            self.waiting = len(self._open)
            if len(self._open) > 1 and (len(self._open) > _MANY or self._draws.random() < 0.3):
                self._ask(self._draws.choice(self._open[:-1]), wait=0)

    def _ask(self, key: str, *, wait: int = 1) -> None:
        """Ask with this key; the question is decided, or stays open."""
        sent = time.monotonic()
        seen = self._post(key, wait)
        if seen is None:
            return
        outcome, status = self._outcome, seen.status_code
        if status == 200:
            self._answered(key, seen)
            if self._draws.random() < 0.2 and (again := self._post(key, wait)) is not None and again.status_code == 200:
                self._answered(key, again, retried=True)
        elif status in (402, 502):
            with outcome.lock:
                (outcome.refused if status == 402 else outcome.failed).add((self._name, key))
            self._open.remove(key)
            if status == 402:
                self._grants.more(sent)
        elif status == 503 and "retry-after" not in seen.headers:
            if seen.json().get("kind") == "DatasetClosed":
                self._grants.reopen(sent)
            else:
                self._wrong(f"503 without Retry-After: {seen.text[:300]}")
        elif status not in (202, 503):
            self._wrong(f"{status} {seen.text[:300]}")
            time.sleep(0.2)
        else:
            time.sleep(0.05)

    def _wrong(self, what: str) -> None:
        with self._outcome.lock:
            self._outcome.wrong.append(what)

    def _post(self, key: str, wait: int) -> httpx.Response | None:
        body = {"sql": _SQL, "epsilon": float(EPSILON), "fresh": True}
        headers = {"Idempotency-Key": key, "Prefer": f"wait={wait}"}
        self._outcome.sent.setdefault((self._name, key), time.time())
        self.asking = True
        try:
            seen = self._http.post("/datasets/people/query", json=body, headers=headers)
        except httpx.TransportError:
            with self._outcome.lock:
                self._outcome.statuses["no connection"] += 1
            time.sleep(0.05)
            return None
        finally:
            self.asking = False
        with self._outcome.lock:
            self._outcome.statuses[str(seen.status_code)] += 1
        return seen

    def _answered(self, key: str, seen: httpx.Response, *, retried: bool = False) -> None:
        tree: dict[str, Any] = seen.json()
        rows = json.dumps(tree["rows"])
        self._given[key] = rows
        with self._outcome.lock:
            self._outcome.answers.append(Answer("people", self._name, key, EPSILON, tree["entry"], rows))
            self._outcome.retried += retried
        if not retried:
            self._open.remove(key)

    def finish(self, seconds: float) -> None:
        """Decide what is open; give up when nothing was decided for so long."""
        self._stopped.set()
        self.join()
        deadline = time.monotonic() + seconds
        while self._open and time.monotonic() < deadline:
            before = len(self._open)
            for key in [*self._open]:
                self._ask(key, wait=0)
            if len(self._open) < before:
                deadline = time.monotonic() + seconds
            time.sleep(0.5)
        with self._outcome.lock:
            self._outcome.undecided += len(self._open)

    def check_kept(self, most: int) -> None:
        """Nothing is lost: answers that were given can be had again, and are the same."""
        for key in self._draws.sample(sorted(self._given), min(most, len(self._given))):
            seen = self._http.get(f"/datasets/people/answers/{key}")
            if seen.status_code != 200 or json.dumps(seen.json()["rows"]) != self._given[key]:
                self._wrong(f"the answer for {key} is lost: {seen.status_code} {seen.text[:300]}")
        self._http.close()


def client(program: Program, name: str) -> httpx.Client:
    """An HTTP client with the token of somebody."""
    headers = {"Authorization": f"Bearer {program.tokens[name]}"}
    return httpx.Client(base_url=program.url, headers=headers, timeout=30, trust_env=False, limits=_NEW)
