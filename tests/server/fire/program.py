"""`privet serve` as a program, with several processes, over a small table; and what its ledger must show afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from tests.server.api.serving import free_port

from privet.ledger import Entry, open_ledger
from privet.policy import load
from privet.privacy.guarantees import PureDP
from privet.server.accounts import Accounts, Role
from privet.server.settings import Settings

POLICY = """
ledger = "{ledger}"

[server]
listen = "127.0.0.1:{port}"
{server}

[datasets.people]
budget = {{ epsilon = 1_000_000 }}
adjacency = "add/remove"

[datasets.people.tables.people]
source = "people.parquet"
protect = {{ person = "id", max_rows = 1 }}
columns = {{ region = {{ keys = ["north", "south"] }}, age = {{ integer = [0, 110] }} }}

[datasets.few]
budget = {{ epsilon = 1 }}
adjacency = "add/remove"

[datasets.few.tables.few]
source = "few.parquet"
protect = "each row"
columns = {{ miles = {{ integer = [0, 100] }} }}
"""
BUDGETS = {"people": Fraction(1_000_000), "few": Fraction(1)}
"""What each dataset may spend; `few` is used up by the first hundred questions of the load."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client got for a question."""

    dataset: str
    analyst: str
    request_id: str
    epsilon: str
    entry: int
    """The number of its debit."""
    rows: str


@dataclass(frozen=True, slots=True)
class Program:
    """The program while it runs."""

    process: subprocess.Popen[bytes]
    url: str
    ledger: str
    log: Path
    tokens: dict[str, str]

    def up(self) -> bool:
        """Whether it answers."""
        try:
            return httpx.get(f"{self.url}/health", timeout=5, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def workers(self) -> list[int]:
        """The processes that answer requests."""
        pid, found = self.process.pid, []
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
            command = Path(f"/proc/{child}/cmdline")
            if command.exists() and b"spawn_main" in command.read_bytes():
                found.append(int(child))
        return found

    def until_up(self, seconds: float = 120) -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + seconds
        while not self.up():
            assert self.process.poll() is None, self.log.read_text("utf-8")[-3000:]
            assert time.monotonic() < deadline, self.log.read_text("utf-8")[-3000:]
            time.sleep(0.05)


def prepared(folder: Path, ledger: str, server: str) -> tuple[Path, int]:
    """A policy with its data, and the port."""
    folder.mkdir(exist_ok=True)
    people = {"id": list(range(100)), "region": ["north", "south"] * 50, "age": [20 + i % 60 for i in range(100)]}
    pq.write_table(pa.table(people), folder / "people.parquet")
    pq.write_table(pa.table({"miles": list(range(20))}), folder / "few.parquet")
    policy, port = folder / "privet.toml", free_port()
    policy.write_text(POLICY.format(ledger=ledger, port=port, server=server), encoding="utf-8")
    return policy, port


@contextmanager
def program(folder: Path, ledger: str, *, server: str, analysts: int) -> Iterator[Program]:
    """The program over new data in this folder, with a token for each analyst and for a steward."""
    policy, port = prepared(folder, ledger, server)
    tokens = {}
    with Accounts.open(Settings.of(load(policy)).accounts) as accounts:
        for name in ["sam", *(f"ann{i}" for i in range(analysts))]:
            role = Role.STEWARD if name == "sam" else Role.ANALYST
            accounts.add(name, role)
            text, _ = accounts.create_token(name, "fire", role=role, datasets=None, max_epsilon=None, days=1)
            tokens[name] = text
    log = folder / "log"
    with log.open("wb") as file:
        command = [sys.executable, "-m", "privet", "serve", "--policy", str(policy)]
        process = subprocess.Popen(command, stderr=file, cwd=folder, start_new_session=True)
    try:
        where = ledger if "://" in ledger else str(folder / ledger)
        made = Program(process, f"http://127.0.0.1:{port}/api/v1", where, log, tokens)
        made.until_up()
        yield made
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wrong_in(
    ledger: str,
    answers: Iterable[Answer],
    *,
    refused: Collection[tuple[str, str]] = (),
    failed: Collection[tuple[str, str]] = (),
) -> list[str]:
    """What is wrong with a ledger, given the answers that its server gave; a retry may give one of them again.

    Questions that were refused, by analyst and key, must not be paid for; those that failed are, and have no answer.
    """
    wrong = []
    with closing(open_ledger(ledger, create=False)) as opened:
        opened.verify()
        debits: dict[int, Entry] = {}
        answered: set[int | None] = set()
        for dataset, budget in BUDGETS.items():
            entries = opened.history(dataset)
            paid = [entry for entry in entries if entry.kind == "reserved"]
            debits |= {entry.number: entry for entry in paid}
            answered |= {entry.refers for entry in entries if entry.kind == "answered"}
            over = [entry.number for entry in paid if Fraction(entry.spent.epsilon) > _granted(entry)]
            wrong += [f"{dataset}: more was spent than granted, at entry {number}" for number in over]
            sum_ = sum((_epsilon(entry) for entry in paid), Fraction(0))
            spent = Fraction(opened.balance(dataset).spent.epsilon)
            if spent != sum_:
                wrong.append(f"{dataset}: the total is {spent}, the debits add up to {sum_}")
            if spent > budget:
                wrong.append(f"{dataset}: {spent} is spent of {budget}")
    requests = Counter((each.dataset, each.analyst, each.request_id) for each in debits.values())
    wrong += [f"{request} was paid for {times} times" for request, times in requests.items() if times > 1]
    numbers = {(each.analyst, each.request_id): each.number for each in debits.values()}
    wrong += [f"{each} was refused, and is paid for" for each in refused if each in numbers]
    wrong += [f"{each} failed, and is not paid for" for each in failed if each not in numbers]
    wrong += [f"{each} failed, and has an answer" for each in failed if numbers.get(each) in answered]
    draws: dict[int, str] = {}
    for answer in answers:
        debit = debits.get(answer.entry)
        told = (answer.dataset, answer.analyst, answer.request_id, Fraction(answer.epsilon))
        if debit is None:
            wrong.append(f"an answer without its debit: {answer}")
        elif told != (debit.dataset, debit.analyst, debit.request_id, _epsilon(debit)):
            wrong.append(f"an answer with the debit of another: {answer}")
        elif answer.entry not in answered:
            wrong.append(f"an answer that is not in the ledger: {answer}")
        elif draws.setdefault(answer.entry, answer.rows) != answer.rows:
            wrong.append(f"two draws for one debit: {answer}")
    return wrong


def _granted(entry: Entry) -> Fraction:
    """The dataset's budget at an entry."""
    assert isinstance(entry.totals.budget, PureDP)
    return Fraction(entry.totals.budget.epsilon)


def _epsilon(debit: Entry) -> Fraction:
    assert isinstance(debit.price, PureDP)
    return Fraction(debit.price.epsilon)
