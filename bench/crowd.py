"""A crowd of clients in a process of its own: by HTTP over plain sockets, or with sessions of the library.

They send prepared bytes and read no more than they compare: the time is the server's, not the clients'.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.server.fire.program import Answer

CONNECTIONS = 4
"""For each analyst."""
EPSILON = {"people": "0.001", "few": "0.05"}
"""The price of each question. `few` has an epsilon of 1: it is used up by 20 of them."""


def statement(dataset: str, draws: random.Random) -> str:
    """A SELECT about a dataset: half of the time one of ten, else one that was hardly asked before."""
    if dataset == "few":
        return "SELECT COUNT(*) AS n FROM few"
    ages = draws.randrange(10), 110
    if draws.random() < 0.5:
        ages = draws.randrange(50), draws.randrange(50, 100_000)
    return f"SELECT region, COUNT(*) AS n FROM people WHERE age >= {ages[0]} AND age <= {ages[1]} GROUP BY region"


@dataclass(frozen=True)
class Turn:
    """What a client asks next."""

    dataset: str
    what: str
    key: str
    sql: str


def turns(number: int) -> Iterator[Turn]:
    """What a client asks: explain and query at random, and sometimes of the dataset whose budget is small."""
    draws, count = random.Random(number), 0
    while True:
        count += 1
        dataset = "few" if draws.random() < 0.1 else "people"
        what = "explain" if draws.random() < 0.5 else "query"
        yield Turn(dataset, what, f"{number}-{count}", statement(dataset, draws))


@dataclass
class Seen:
    """What all clients got together."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {"explain": [], "query": []})
    statuses: Counter[str] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    """The analysts and keys of questions for which nothing was left."""
    wrong: list[str] = field(default_factory=list)
    cpu: float = 0.0
    """Seconds of processor time that the clients took."""

    def add(self, other: Seen) -> None:
        """Add what others got."""
        for what, times in other.seconds.items():
            self.seconds[what] += times
        self.statuses += other.statuses
        self.answers += other.answers
        self.refused += other.refused
        self.wrong += other.wrong
        self.cpu += other.cpu


# --- by HTTP ----------------------------------------------------------------------------------------


class Wire:
    """One connection that is kept."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._where, self._head = (host, port), f"Host: {host}:{port}\r\nAuthorization: Bearer {token}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, tree: dict[str, Any], more: str = "") -> tuple[int, dict[str, str], bytes]:
        """The status, the headers and the body of the response."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._where)
        reader, writer = self._streams
        body = json.dumps(tree).encode()
        head = f"POST {path} HTTP/1.1\r\n{self._head}{more}Content-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            found = await reader.readexactly(int(headers["content-length"]))
        except (OSError, EOFError):
            self.close()
            raise
        if headers.get("connection") == "close":
            self.close()
        return int(first.split()[1]), headers, found

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _client(url: str, name: str, token: str, number: int, until: float, seen: Seen) -> None:
    host, _, rest = url.removeprefix("http://").partition(":")
    port, _, base = rest.partition("/")
    wire = Wire(host, int(port), token)
    for turn in turns(number):
        if time.monotonic() >= until:
            break
        tree: dict[str, Any] = {"sql": turn.sql, "epsilon": float(EPSILON[turn.dataset])}
        query = turn.what == "query"
        more = f"Idempotency-Key: {turn.key}\r\n" if query else ""
        while True:
            start = time.perf_counter()
            path = f"/{base}/datasets/{turn.dataset}/{turn.what}"
            try:
                status, headers, body = await wire.post(path, tree | ({"fresh": True} if query else {}), more)
            except (OSError, EOFError) as error:
                seen.statuses["no connection"] += 1
                seen.wrong.append(f"no connection: {error!r}")
                break
            seen.statuses[str(status)] += 1
            if status == 200:
                seen.seconds[turn.what].append(time.perf_counter() - start)
                if query:
                    found = json.loads(body)
                    answer = turn.dataset, name, turn.key, EPSILON[turn.dataset], found["entry"]
                    seen.answers.append(Answer(*answer, json.dumps(found["rows"])))
            elif status in (202, 429, 503) and "retry-after" in headers:
                await asyncio.sleep(float(headers["retry-after"]))
                if time.monotonic() < until + 30:
                    continue
                seen.statuses["given up"] += 1
            elif status == 402 and turn.dataset == "few" and query:
                seen.refused.append((name, turn.key))
            else:
                seen.wrong.append(f"{status} {body[:300]!r}")
            break
    wire.close()


def by_http(url: str, tokens: dict[str, str], seconds: float, found: multiprocessing.SimpleQueue[Any]) -> None:
    """All clients, for so many seconds."""

    async def together() -> Seen:
        seen, until = Seen(), time.monotonic() + seconds
        names = [name for name in tokens if name != "sam"]
        clients = [
            _client(url, name, tokens[name], number * CONNECTIONS + each, until, seen)
            for number, name in enumerate(names)
            for each in range(CONNECTIONS)
        ]
        await asyncio.gather(*clients)
        return seen

    seen = asyncio.run(together())
    seen.cpu = processor()
    found.put(seen)


# --- with sessions ----------------------------------------------------------------------------------


def by_sessions(
    policy: Path, analysts: range, seconds: float, ready: Any, found: multiprocessing.SimpleQueue[Any]
) -> None:
    """The same questions to sessions, in threads."""
    from privet import BudgetError
    from privet.dataset import Dataset

    seen = Seen()
    with Dataset.open(policy, dataset="people") as people, Dataset.open(policy, dataset="few") as few:
        datasets = {"people": people, "few": few}

        def asks(name: str, number: int, until: float) -> None:
            for turn in turns(number):
                if time.monotonic() >= until:
                    return
                session, epsilon = datasets[turn.dataset].session(analyst=name), EPSILON[turn.dataset]
                start = time.perf_counter()
                try:
                    if turn.what == "explain":
                        session.explain(turn.sql, epsilon=epsilon)
                    else:
                        session.release(turn.sql, epsilon=epsilon, fresh=True, request_id=turn.key)
                except BudgetError:
                    seen.statuses["no budget"] += 1
                    continue
                seen.statuses["answered"] += 1
                seen.seconds[turn.what].append(time.perf_counter() - start)

        ready.wait()
        until = time.monotonic() + seconds
        threads = [
            threading.Thread(target=asks, args=(f"ann{number}", number * CONNECTIONS + each, until))
            for number in analysts
            for each in range(CONNECTIONS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found.put(seen)


def processor() -> float:
    """Seconds of processor time that this process took."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
