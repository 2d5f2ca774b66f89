"""The server under load: one client beside the bare session, then 64 clients on SQLite and on Postgres.

The table has 100 rows, so the time is the server's. Clients are in a process of their own, keep their connections, and
send the JSON by httpx. `pace` is 0: answers do not wait for a step of the ladder. After each load, the ledger is
verified and compared with every answer that a client got.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table
from tests.server.fire.program import Answer, Program, prepared, program, wrong_in

from bench.ledger import percentile, postgres
from bench.peer import ENVIRONMENTS

ROUNDS, EACH = 25, 20
ANALYSTS, CONNECTIONS = 16, 4
SECONDS = 300
SQL = {
    "people": "SELECT region, COUNT(*) AS n FROM people GROUP BY region",
    "few": "SELECT COUNT(*) AS n FROM few",
}
EPSILON = {"people": "0.001", "few": "0.01"}


def _body(dataset: str, *, asks: bool) -> dict[str, Any]:
    return {"sql": SQL[dataset], "epsilon": float(EPSILON[dataset])} | ({"fresh": True} if asks else {})


# --- one client -------------------------------------------------------------------------------------


def _alternating(folder: Path, url: str, token: str, found: multiprocessing.SimpleQueue[Any]) -> None:
    """Seconds of questions by HTTP and to a session over the same data with a ledger of its own, in turn."""
    from privet.session import Session

    policy, _ = prepared(folder, "people.ledger", "")
    http: list[float] = []
    bare: list[float] = []
    headers = {"Authorization": f"Bearer {token}"}
    with Session.open(policy, dataset="people") as session, httpx.Client(headers=headers, trust_env=False) as client:
        for round_ in range(ROUNDS + 1):
            times: dict[str, list[float]] = {"http": [], "bare": []}
            for _ in range(EACH):
                start = time.perf_counter()
                response = client.post(
                    f"{url}/datasets/people/query",
                    json=_body("people", asks=True),
                    headers={"Idempotency-Key": uuid.uuid4().hex},
                )
                times["http"].append(time.perf_counter() - start)
                assert response.status_code == 200, response.text
            for _ in range(EACH):
                start = time.perf_counter()
                session.release(SQL["people"], epsilon=EPSILON["people"], fresh=True, request_id=uuid.uuid4().hex)
                times["bare"].append(time.perf_counter() - start)
            if round_:  # the first one is not counted
                http += times["http"]
                bare += times["bare"]
    found.put((http, bare))


def _one_client(console: Console, folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    found = context.SimpleQueue()
    with program(folder / "one", "people.ledger", server="pace = 0", analysts=1) as served:
        arguments = (folder / "bare", served.url, served.tokens["ann0"], found)
        asking = context.Process(target=_alternating, args=arguments)
        asking.start()
        http, bare = found.get()
        asking.join()
    table = Table(f"one client, {len(http)} questions", "p50 ms", "p99 ms", title="HTTP and the session", box=None)
    table.add_row("bare session", percentile(bare, 0.5), percentile(bare, 0.99))
    table.add_row("HTTP", percentile(http, 0.5), percentile(http, 0.99))
    more = float(percentile(http, 0.5)) - float(percentile(bare, 0.5))
    table.add_row("HTTP adds, at p50 (aim: 5)", f"{more:.2f}")
    console.print(table)


# --- many clients -----------------------------------------------------------------------------------


@dataclass
class Seen:
    """What all clients got together."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {"explain": [], "query": []})
    statuses: Counter[str] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


async def _client(url: str, name: str, token: str, number: int, until: float, seen: Seen) -> None:
    draws = random.Random(number)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=60, trust_env=False) as client:
        count = 0
        while time.monotonic() < until:
            count += 1
            dataset = "few" if draws.random() < 0.1 else "people"
            what = "explain" if draws.random() < 0.5 else "query"
            key = f"{number}-{count}"
            while True:
                start = time.perf_counter()
                try:
                    response = await client.post(
                        f"{url}/datasets/{dataset}/{what}",
                        json=_body(dataset, asks=what == "query"),
                        headers={"Idempotency-Key": key} if what == "query" else {},
                    )
                except httpx.TransportError as error:
                    seen.statuses["no connection"] += 1
                    seen.wrong.append(f"no connection: {error!r}")
                    break
                status = response.status_code
                seen.statuses[str(status)] += 1
                if status == 200:
                    seen.seconds[what].append(time.perf_counter() - start)
                    if what == "query":
                        tree = response.json()
                        rows = json.dumps(tree["rows"])
                        seen.answers.append(Answer(dataset, name, key, EPSILON[dataset], tree["entry"], rows))
                elif status in (202, 429, 503) and "retry-after" in response.headers:
                    await asyncio.sleep(float(response.headers["retry-after"]))
                    if time.monotonic() < until + 30:
                        continue
                elif status != 402 or dataset != "few":
                    seen.wrong.append(f"{status} {response.text[:300]}")
                break


def _crowd(url: str, tokens: dict[str, str], seconds: float, found: multiprocessing.SimpleQueue[Any]) -> None:
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

    found.put(asyncio.run(together()))


def _under_load(served: Program, seconds: float) -> Seen:
    context = multiprocessing.get_context("spawn")
    found = context.SimpleQueue()
    crowd = context.Process(target=_crowd, args=(served.url, served.tokens, seconds, found))
    crowd.start()
    seen: Seen = found.get()
    crowd.join()
    return seen


def _many_clients(console: Console, folder: Path, places: dict[str, Callable[[], str]], seconds: float) -> list[str]:
    clients = ANALYSTS * CONNECTIONS
    titles = f"{clients} clients, {seconds:g} s", "answered", "a second", "p50 ms", "p99 ms", "statuses"
    table = Table(*titles, title="\nmixed explain and query, 2 processes", box=None)
    wrong: list[str] = []
    for what, place in places.items():
        settings = "pace = 0\nworkers = 2"
        with program(folder / what.lower(), place(), server=settings, analysts=ANALYSTS) as served:
            seen = _under_load(served, seconds)
        wrong += [f"{what}: {each}" for each in [*seen.wrong, *wrong_in(served.ledger, seen.answers)]]
        statuses = ", ".join(f"{status}: {times:,}" for status, times in sorted(seen.statuses.items()))
        for kind, times in seen.seconds.items():
            figures = f"{len(times):,}", f"{len(times) / seconds:,.0f}", percentile(times, 0.5), percentile(times, 0.99)
            table.add_row(f"{what}, {kind}", *figures, statuses)
            statuses = ""
        table.add_row(f"{what}, answers compared with their debits", f"{len(seen.answers):,}")
    console.print(table)
    return wrong


def main() -> None:
    console = Console(width=140, highlight=False)
    seconds = float(os.environ.get("BENCH_SECONDS", SECONDS))
    ENVIRONMENTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ENVIRONMENTS) as name, postgres() as fresh:
        folder = Path(name)
        _one_client(console, folder)
        places: dict[str, Callable[[], str]] = {"SQLite": lambda: "people.ledger"}
        if fresh is not None:
            places["Postgres"] = fresh
        wrong = _many_clients(console, folder, places, seconds)
    console.print(
        "\nEach ledger verifies, its total is the sum of its debits, nothing is overspent, every answer has its debit, "
        "and there was no 5xx but 503 with Retry-After."
        if not wrong
        else "\n".join([f"\n{len(wrong)} things are wrong:", *wrong[:20]])
    )
