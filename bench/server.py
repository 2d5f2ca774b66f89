"""The server under load: one client beside the bare session, then 64 clients on SQLite and on Postgres.

The table has 100 rows, so the time is the server's. Clients are in processes of their own, and keep their connections.
`pace` is 0: answers do not wait for a step of the ladder. After each load, the ledger is verified and compared with
every answer that a client got.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import random
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.server.fire.program import Program, prepared, program, wrong_in

from bench.crowd import CONNECTIONS, EPSILON, Seen, by_http, by_sessions, statement
from bench.ledger import percentile, postgres
from bench.peer import ENVIRONMENTS

ROUNDS, EACH = 25, 20
ANALYSTS = 16
PROCESSES = 2
SECONDS = 300
LONGEST_BARE = 60
"""Seconds, at most, for which sessions are asked."""

# --- one client -------------------------------------------------------------------------------------


def _alternating(folder: Path, url: str, token: str, found: multiprocessing.SimpleQueue[Any]) -> None:
    """Seconds of questions by HTTP and to a session over the same data with a ledger of its own, in turn.

    Each statement is new, so that no plan is there already.
    """
    from privet.session import Session

    policy, _ = prepared(folder, "people.ledger", "")
    draws, numbers = random.Random(0), iter(range(10**6))
    times: dict[str, list[float]] = {name: [] for name in ("HTTP", "bare session", "HTTP, the same statement")}
    host, _, base = url.removeprefix("http://").partition("/")
    client = http.client.HTTPConnection(host)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def new() -> str:
        return f"{statement('people', draws).replace('GROUP', f'AND age < {1000 + next(numbers)} GROUP')}"

    def by_http(sql: str) -> None:
        body = json.dumps({"sql": sql, "epsilon": float(EPSILON["people"]), "fresh": True})
        client.request("POST", f"/{base}/datasets/people/query", body, {**headers, "Idempotency-Key": uuid.uuid4().hex})
        response = client.getresponse()
        text = response.read()
        assert response.status == 200, text

    with Session.open(policy, dataset="people") as session:

        def bare(sql: str) -> None:
            session.release(sql, epsilon=EPSILON["people"], fresh=True, request_id=uuid.uuid4().hex)

        same = new()
        for round_ in range(ROUNDS + 1):
            for name, ask, sql in (
                ("HTTP", by_http, new),
                ("bare session", bare, new),
                ("HTTP, the same statement", by_http, lambda: same),
            ):
                for _ in range(EACH):
                    text = sql()
                    start = time.perf_counter()
                    ask(text)
                    if round_:  # the first one is not counted
                        times[name].append(time.perf_counter() - start)
    client.close()
    found.put(times)


def _one_client(console: Console, folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    found = context.SimpleQueue()
    with program(folder / "one", "people.ledger", server="pace = 0", analysts=1) as served:
        arguments = (folder / "bare", served.url, served.tokens["ann0"], found)
        asking = context.Process(target=_alternating, args=arguments)
        asking.start()
        times = found.get()
        asking.join()
    table = Table(f"one client, {ROUNDS * EACH} questions each", "p50 ms", "p99 ms", box=None)
    for name, each in times.items():
        table.add_row(name, percentile(each, 0.5), percentile(each, 0.99))
    more = float(percentile(times["HTTP"], 0.5)) - float(percentile(times["bare session"], 0.5))
    table.add_row("HTTP adds, at p50 (aim: 5)", f"{more:.2f}")
    console.print(table)


# --- many clients -----------------------------------------------------------------------------------


def _under_load(served: Program, seconds: float) -> tuple[Seen, float]:
    """What the clients got, and the seconds of processor time that the server took."""
    context = multiprocessing.get_context("spawn")
    found = context.SimpleQueue()
    before = sum(map(_processor, served.workers()))
    crowd = context.Process(target=by_http, args=(served.url, served.tokens, seconds, found))
    crowd.start()
    seen: Seen = found.get()
    crowd.join()
    return seen, sum(map(_processor, served.workers())) - before


def _bare(folder: Path, ledger: str, seconds: float) -> Seen:
    """What sessions in as many processes answer."""
    context = multiprocessing.get_context("spawn")
    found, ready, seen = context.SimpleQueue(), context.Barrier(PROCESSES), Seen()
    policy, _ = prepared(folder, ledger, "")
    for process in range(PROCESSES):
        analysts = range(process, ANALYSTS, PROCESSES)
        context.Process(target=by_sessions, args=(policy, analysts, seconds, ready, found)).start()
    for _ in range(PROCESSES):
        seen.add(found.get())
    return seen


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _many_clients(console: Console, folder: Path, places: dict[str, Callable[[], str]], seconds: float) -> list[str]:
    clients, bare = ANALYSTS * CONNECTIONS, min(seconds, LONGEST_BARE)
    titles = f"{clients} clients, {PROCESSES} processes, {seconds:g} s", "answered", "a second", "p50 ms", "p99 ms"
    table = Table(*titles, title="\nmixed explain and query", box=None)
    wrong, notes = [], []
    for what, place in places.items():
        settings = f"pace = 0\nworkers = {PROCESSES}"
        with program(folder / what.lower(), place(), server=settings, analysts=ANALYSTS) as served:
            seen, server = _under_load(served, seconds)
        wrong += [
            f"{what}: {each}" for each in [*seen.wrong, *wrong_in(served.ledger, seen.answers, refused=seen.refused)]
        ]
        alone = _bare(folder / f"bare-{what.lower()}", place(), bare)
        for kind in seen.seconds:
            table.add_row(f"{what}, {kind}", *_figures(seen.seconds[kind], seconds))
            table.add_row(f"{what}, {kind}, bare session ({bare:g} s)", *_figures(alone.seconds[kind], bare))
        few = sum(answer.dataset == "few" for answer in seen.answers)
        statuses = ", ".join(f"{status}: {times:,}" for status, times in sorted(seen.statuses.items()))
        notes.append(
            f"{what}: {statuses}. {len(seen.answers):,} answers compared with their debits; {few} used up the budget "
            f"of `few`, then {len(seen.refused):,} were refused. Processor: server {server:.0f} s, clients "
            f"{seen.cpu:.0f} s of {seconds * (os.cpu_count() or 1):.0f} s."
        )
    console.print(table)
    console.print("\n".join(notes))
    return wrong


def _figures(times: list[float], seconds: float) -> tuple[str, ...]:
    if not times:
        return ("0",)
    return f"{len(times):,}", f"{len(times) / seconds:,.0f}", percentile(times, 0.5), percentile(times, 0.99)


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
        "no refused question has one, and there was no 5xx but 503 with Retry-After."
        if not wrong
        else "\n".join([f"\n{len(wrong)} things are wrong:", *wrong[:20]])
    )
