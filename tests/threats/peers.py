"""People with a ledger, and processes that ask about them: told what to do line by line, stopped and killed at will."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.ledger.workers import Child, Nursery

import privet as pv
from privet.errors import BudgetError, LedgerError, NoAnswer, UserError
from privet.ledger import failpoints, open_ledger
from privet.ledger.storage import database
from privet.session import Session

BUDGET = pv.PureDP(1)
MOST = "9/10"
"""Of a budget of 1: no two of these fit."""
REFUSALS = (LedgerError, UserError)
PATIENCE = 0.6
"""Seconds that a peer waits for its turn."""
Where = str | Path


def write_people(path: Path) -> Path:
    """Six people with two visits each."""
    rows = {"person_id": [i // 2 for i in range(12)], "visit": list(range(12)), "age": [20 + i for i in range(12)]}
    pq.write_table(pa.table(rows), path)
    return path


def people(source: Any, name: str = "people", person: str = "person_id", max_rows: int = 2, **columns: Any) -> pv.Table:
    return pv.table(
        name,
        source,
        protect=pv.person(person, max_rows=max_rows),
        columns={"age": pv.integer(0, 110), **columns},
    )


def session(
    where: Any,
    source: Any = "people.parquet",
    *,
    name: str = "people",
    person: str = "person_id",
    analyst: str = "ann",
    dataset: str | None = None,
    budget: pv.PureDP = BUDGET,
    version: str = "1",
) -> Session:
    table = people(source, name, person)
    return pv.Session([table], budget=budget, ledger=where, name=dataset, analyst=analyst, version=version, threads=1)


def ask(asking: Session, epsilon: Any = MOST, request: str | None = None, *, fresh: bool = True, low: int = 0) -> str:
    """A count at a price, as the hash of its certificate; `low` makes it another question."""
    (table,) = asking.tables.values()
    question = table.where(pv.col("age") >= low).agg(n=pv.count()) if low else table.agg(n=pv.count())
    made = asking.release(question, epsilon=epsilon, request_id=request, fresh=fresh)
    return hashlib.sha256(made.certificate.to_json().encode()).hexdigest()


def seen(call: Callable[[], Any]) -> dict[str, str]:
    """What an analyst sees of a call: an answer, or one of the errors that are for them."""
    try:
        return {"answer": str(call())}
    except (*REFUSALS, NoAnswer) as error:
        return {"error": type(error).__name__, "text": str(error)}


def grants(call: Callable[[], Any]) -> bool:
    """Whether there was an answer; anything but an answer or an error for people is raised."""
    return "answer" in seen(call)


def spent(where: Where) -> Fraction | None:
    """What a ledger says is spent, opened anew as a session opens it; None if it is refused."""
    try:
        with closing(open_ledger(where)) as ledger:
            if "people" not in ledger.datasets():
                return Fraction(0)
            return Fraction(ledger.balance("people").spent.epsilon)
    except REFUSALS:
        return None


def holds(where: Where, granted: Fraction | int) -> bool:
    """Whether a ledger, if it opens at all, knows of all that was granted."""
    known = spent(where)
    return known is None or known >= granted


# --- processes that are told what to do -----------------------------------------------------------


class Peer:
    """A process of the nursery with sessions of its own."""

    def __init__(self, child: Child, orders: Any, replies: Any) -> None:
        self.child, self._orders, self._replies = child, orders, replies
        self.ended = False
        self._flag: Path | None = None

    def send(self, do: str, **arguments: Any) -> None:
        self._orders.write(json.dumps({"do": do, **arguments}, default=str) + "\n")
        self._orders.flush()

    def reply(self) -> dict[str, str]:
        line = self._replies.readline()
        assert line, "the process died before it replied"
        found: dict[str, str] = json.loads(line)
        assert "raised" not in found, found["raised"]
        return found

    def tell(self, do: str, **arguments: Any) -> dict[str, str]:
        self.send(do, **arguments)
        return self.reply()

    def open(self, where: Where, source: Where, **how: Any) -> dict[str, str]:
        return self.tell("open", where=where, source=source, **how)

    def ask(self, epsilon: Any = MOST, **how: Any) -> dict[str, str]:
        return self.tell("ask", epsilon=epsilon, **how)

    def stop_at(self, place: str, flag: Path) -> None:
        """From now on it stops, as with Ctrl-Z, when it comes to a named place."""
        self.tell("stop at", place=place, flag=flag)
        self._flag = flag

    def go_on(self) -> None:
        if self._flag is not None and self._flag.exists():  # it stops just after it said so
            until = time.monotonic() + 20
            while not self._is_stopped() and time.monotonic() < until:
                time.sleep(0.002)
            self._flag = None
        os.kill(self.child.pid, signal.SIGCONT)

    def _is_stopped(self) -> bool:
        return Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def kill(self) -> None:
        self.child.kill()
        assert self.child.join() == -signal.SIGKILL
        self.ended = True

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._orders.close()
        if not self.ended:
            self.go_on()
            self.child.join()
            self.ended = True
        self._replies.close()


@contextmanager
def peers(nursery: Nursery, folder: Path) -> Iterator[Callable[[], Peer]]:
    """As many as one likes; all are gone afterwards."""
    with ExitStack() as stack:

        def start() -> Peer:
            home = folder / f"peer {len(list(folder.glob('peer *')))}"
            home.mkdir()
            for pipe in ("orders", "replies"):
                os.mkfifo(home / pipe)
            child = nursery.start(serve, orders=home / "orders", replies=home / "replies")
            made = Peer(child, (home / "orders").open("w"), (home / "replies").open())
            stack.callback(made.close)
            return made

        yield start


def serve(orders: str, replies: str) -> None:
    """What a peer does: it opens a session, asks, and says what an analyst sees."""
    database.PATIENCE = PATIENCE
    sessions: list[Session] = []

    def open_(where: str, source: str, **how: Any) -> str:
        sessions.append(session(where, source, **how))
        return "opened"

    def stop_at(place: str, flag: str) -> None:
        def reached(name: str) -> None:
            if name == place:
                failpoints.reached = lambda _: None
                Path(flag).touch()
                os.kill(os.getpid(), signal.SIGSTOP)

        failpoints.reached = reached

    def kill_at(place: str) -> None:
        failpoints.reached = lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == place else None

    def forked(epsilon: str) -> str:
        """The child asks through what it inherited."""
        source, sink = os.pipe()
        if (pid := os.fork()) == 0:
            signal.alarm(20)
            os.write(sink, json.dumps(seen(lambda: ask(sessions[-1], epsilon))).encode())
            os._exit(0)
        os.close(sink)
        with os.fdopen(source) as pipe:
            text = pipe.read()
        os.waitpid(pid, 0)
        return text

    jobs: dict[str, Callable[..., Any]] = {
        "open": open_,
        "ask": lambda **how: ask(sessions[-1], **how),
        "spent": lambda: sessions[-1].spent.epsilon,
        "close": lambda: sessions.pop().close(),
        "stop at": stop_at,
        "kill at": kill_at,
        "fork": forked,
        "folder": os.chdir,
    }
    with Path(orders).open() as lines, Path(replies).open("w") as sink:
        for line in lines:
            order = json.loads(line)
            job = jobs[order.pop("do")]
            try:
                found = seen(lambda job=job, order=order: job(**order))  # type: ignore[misc]
            except Exception as error:
                found = {"raised": repr(error)}
            sink.write(json.dumps(found) + "\n")
            sink.flush()


def wait_for(path: Path, patience: float = 30) -> None:
    late = time.monotonic() + patience
    while not path.exists():
        assert time.monotonic() < late, f"nobody made {path.name!r}"
        time.sleep(0.002)


def total(*outcomes: dict[str, str], price: Any = MOST) -> Fraction:
    """What was granted."""
    return Fraction(price) * sum("answer" in each for each in outcomes)


def is_over(outcome: dict[str, str]) -> bool:
    """Whether it was refused as costing more than is left."""
    return outcome.get("error") == BudgetError.__name__
