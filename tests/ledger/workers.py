"""What the processes of these tests run, and the nursery they come from.

The nursery is one process that imports everything once and forks a child for each job: a test can then kill hundreds of
real processes without paying for as many imports. A job is a function of a module; what it returns is written as
JSON, and a child that hangs is ended by its own alarm.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from tests.ledger.common import cost

import privet as pv
from privet.errors import BudgetError, LedgerError, NoAnswer
from privet.ledger import Dataset, Ledger, failpoints, open_ledger
from privet.ledger.storage import database
from privet.ledger.storage.sqlite.locks import FileLocks
from privet.ledger.storage.turns import Ticket
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import PureDP
from privet.session import Session

ROOT = Path(__file__).parents[2]
PATIENCE = 400  # seconds after which a child counts as hung
BUDGET = PureDP(1000)
PRICE = "1/100"


# --- the nursery ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Child:
    """A process that runs a job."""

    pid: int
    nursery: Nursery
    output: Path

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)  # not yet waited for, so the number is still its own

    def join(self) -> int:
        """Its exit code; minus the signal that ended it."""
        return self.nursery.join(self.pid)

    def result(self) -> Any:
        """What the job returned."""
        code = self.join()
        assert code == 0, f"the child ended with {code}" + (": it hung" if code == -signal.SIGALRM else "")
        found = json.loads(self.output.read_text())
        assert "raised" not in found, found["raised"]
        return found["returned"]


class Nursery:
    """Forks children; use as a context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0
        self._running: set[int] = set()
        self._turn = threading.Lock()

    def __enter__(self) -> Nursery:
        command = [sys.executable, "-m", "tests.ledger.workers"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        return self

    def __exit__(self, *_: object) -> None:
        for child in list(self._running):  # of tests that failed
            os.kill(child, signal.SIGKILL)
            self.join(child)
        self._process.communicate()

    def say(self, **line: Any) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            self._process.stdin.write(json.dumps(line, default=str) + "\n")
            self._process.stdin.flush()
            return self._process.stdout.readline()

    def load(self, module: str) -> None:
        """Import a module here, so that no child has to."""
        self.say(load=module)

    def start(self, job: Callable[..., Any], **arguments: Any) -> Child:
        self._made += 1
        output = self._folder / f"{self._made}.json"
        name = f"{job.__module__}:{job.__name__}"
        child = Child(int(self.say(job=name, output=output, arguments=arguments)), self, output)
        self._running.add(child.pid)
        return child

    def join(self, child: int) -> int:
        self._running.discard(child)
        return int(self.say(join=child))

    def run(self, job: Callable[..., Any], **arguments: Any) -> Any:
        return self.start(job, **arguments).result()

    def race(self, job: Callable[..., Any], folder: Path, **each: list[Any]) -> list[Any]:
        """One child for each tuple of arguments, all at once."""
        gate = folder / "gate"
        gate.mkdir()
        rows = [dict(zip(each, values, strict=True)) for values in zip(*each.values(), strict=True)]
        children = [self.start(job, gate=gate, **row) for row in rows]
        while sum(1 for _ in gate.iterdir()) < len(children):
            time.sleep(0.005)
        (gate / "open").touch()
        return [child.result() for child in children]


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        if "join" in order:
            print(os.waitstatus_to_exitcode(os.waitpid(order["join"], 0)[1]), flush=True)
            continue
        if "load" in order:
            import_module(order["load"])
            print(flush=True)
            continue
        child = os.fork()
        if child == 0:
            _be_child(order)
        print(child, flush=True)


def _be_child(order: dict[str, Any]) -> None:
    signal.alarm(PATIENCE)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    try:
        module, _, name = order["job"].partition(":")
        job = globals()[name] if module == "tests.ledger.workers" else getattr(import_module(module), name)
        found = {"returned": job(**order["arguments"])}
    except BaseException:
        found = {"raised": traceback.format_exc()}
    Path(order["output"]).write_text(json.dumps(found))
    os._exit(0)


def pass_gate(gate: str) -> None:
    """Wait until all are there."""
    Path(gate, str(os.getpid())).touch()
    while not Path(gate, "open").exists():
        time.sleep(0.002)


# --- the ledger and a session on it ---------------------------------------------------------------


def people(budget: PureDP = BUDGET) -> Dataset:
    """A dataset that failures don't close."""
    return Dataset("people", "row", Adjacency.ADD_REMOVE, budget, closes_after=10**9, closes_for=10**9)


def opened(where: str | Path, budget: PureDP = BUDGET, lease: float = 30.0) -> Ledger:
    ledger = open_ledger(where, lease=lease)
    ledger.create(people(budget))
    return ledger


_ROWS = pa.table({"age": pa.array([30, 40, 50, 60], pa.int64())})
TABLE = pv.table("people", _ROWS, protect=pv.each_row(), columns={"age": pv.integer(0, 110)})
QUESTION = TABLE.agg(n=pv.count())


def on(ledger: Ledger | str | Path, budget: PureDP = BUDGET) -> Session:
    return pv.Session([TABLE], budget=budget, ledger=ledger, threads=1)


def ask(session: Session, request: str, *, fresh: bool = True) -> str:
    """A real answer, as the text that the ledger keeps of it."""
    found = session.release(QUESTION, epsilon=PRICE, request_id=request, fresh=fresh)
    return str(found.certificate.to_json())


# --- what a ledger says ---------------------------------------------------------------------------


@dataclass
class State:
    """What a ledger says, read from its exported lines by other means than its own."""

    spent: Fraction = Fraction(0)
    requests: dict[str, int] = field(default_factory=dict)
    """The reservation of a request, or the one whose answer it was served."""
    paid: dict[str, int] = field(default_factory=dict)
    ended: dict[int, str] = field(default_factory=dict)
    """How a reservation ended: failed, interrupted, or the hash of its answer."""

    @property
    def unanswered(self) -> set[int]:
        return {
            number for number in self.paid.values() if self.ended.get(number, "failed") in ("failed", "interrupted")
        }


def read(ledger: Ledger) -> State:
    state, last = State(), "0" * 64
    ledger.verify()
    for number, line in enumerate(ledger.export("people"), 1):
        row = json.loads(line)
        digest = hashlib.sha256(row["entry"].encode()).hexdigest()
        assert hashlib.sha256(f"{last}\npeople\n{digest}".encode()).hexdigest() == row["hash"]
        entry, last = json.loads(row["entry"]), row["hash"]
        assert entry["number"] == number
        if entry["kind"] == "reserved":
            assert entry["request_id"] not in state.requests
            state.requests[entry["request_id"]] = state.paid[entry["request_id"]] = number
            state.spent += Fraction(entry["cost"])
        elif entry["kind"] == "served":
            assert entry["request_id"] not in state.requests
            assert entry["refers"] in state.ended
            state.requests[entry["request_id"]] = entry["refers"]
        elif entry["kind"] in ("answered", "failed", "interrupted"):
            assert entry["refers"] in state.paid.values()
            assert entry["refers"] not in state.ended
            state.ended[entry["refers"]] = entry.get("answer", entry["kind"])
        assert Fraction(entry["totals"]["spent"]) == state.spent
    assert ledger.balance("people").spent.epsilon == state.spent
    return state


# --- L1: debits that race -------------------------------------------------------------------------


def past(where: str | Path, statement: str) -> None:
    """Run a statement past the ledger."""
    if isinstance(where, Path):
        with closing(sqlite3.connect(where)) as file, file:
            file.execute(statement)
    else:
        with psycopg.connect(where, autocommit=True) as server:
            server.execute(statement.encode())


def debit(ledger: Ledger, who: str, times: int) -> Counter[str]:
    """So many debits, one after the other; each is granted, refused, or shows what it should not."""
    seen: Counter[str] = Counter()
    for i in range(times):
        try:
            charge = ledger.reserve(dataset="people", analyst=who, request_id=f"{who}-{i}", events=[cost(PRICE)])
            ledger.settle(charge, "answered", f"{who}-{i}")
            seen["granted"] += 1
        except BudgetError:
            seen["refused"] += 1
        except Exception as error:
            seen[f"{type(error).__name__}: {error}"] += 1
    return seen


def debits(where: str, budget: str, who: str, times: int, gate: str) -> Counter[str]:
    """Open the ledger at once with all others, and debit."""
    pass_gate(gate)
    ledger = opened(where, PureDP(budget))
    try:
        return debit(ledger, who, times)
    finally:
        ledger.close()


def debits_of_threads(where: str, budget: str, threads: int, times: int) -> Counter[str]:
    ledger = opened(where, PureDP(budget))
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda i: debit(ledger, f"t{i}", times), range(threads)), Counter[str]())


def debits_after_fork(where: str, budget: str, children: int, times: int) -> Counter[str]:
    """The ledger is opened and used, then forked with; both sides go on with it."""
    ledger = opened(where, PureDP(budget))
    seen = debit(ledger, "before", 1)
    with _forked(children, lambda i: debit(ledger, f"f{i}", times)) as results:
        seen += debit(ledger, "parent", times)
    for result in results:
        seen += Counter(result)
    return seen + debit(ledger, "after", 1)


def forks_while_busy(where: str, budget: str, children: int, times: int) -> Counter[str]:
    """Children are forked while threads of the parent are in the middle of a debit."""
    ledger = opened(where, PureDP(budget))
    done = threading.Event()

    def busy(i: int) -> Counter[str]:
        seen: Counter[str] = Counter()
        n = 0
        while not done.is_set():
            seen += debit(ledger, f"busy{i}-{n}", 1)
            n += 1
        return seen

    seen: Counter[str] = Counter()
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(busy, i) for i in range(3)]
        try:
            for i in range(children):
                time.sleep(0.003)
                with _forked(1, lambda _, i=i: debit(ledger, f"f{i}", times)) as results:  # type: ignore[misc]
                    pass
                seen += Counter(results[0])
        finally:
            done.set()
        return sum((each.result() for each in running), seen)


def orphan(where: str, budget: str, times: int, folder: str) -> None:
    """Open, fork, and leave: the child goes on with what it inherited, as a daemon does."""
    ledger = opened(where, PureDP(budget))
    debit(ledger, "parent", 3)
    if os.fork():
        os._exit(0)
    signal.alarm(PATIENCE)
    leave(Path(folder, "early"), json.dumps(debit(ledger, "early", 5)))
    while not Path(folder, "go on").exists():
        time.sleep(0.002)
    leave(Path(folder, "late"), json.dumps(debit(ledger, "late", times)))
    os._exit(0)


def leave(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)


def heir(where: str, folder: str) -> str:
    """A child that asks again what its parent was asked, after the parent died in the middle of it."""
    ledger = opened(where, lease=0.3)
    charge = ledger.reserve(dataset="people", analyst="ann", request_id="x", events=[cost(PRICE)])
    assert charge.state == "reserved"
    parent = os.getpid()
    if os.fork():
        while True:
            time.sleep(60)
    signal.alarm(10)
    os.kill(parent, signal.SIGKILL)
    again = ledger.reserve(dataset="people", analyst="ann", request_id="x", events=[cost(PRICE)])
    leave(Path(folder, "heir"), ledger.wait(again).state)
    os._exit(0)


@contextmanager
def _forked(children: int, job: Callable[[int], Any]) -> Iterator[list[Any]]:
    """Children of this process; their results are there when the context ends."""
    results: list[Any] = []
    pipes: list[tuple[int, int]] = []
    for i in range(children):
        source, sink = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE // 4)
            try:
                os.write(sink, json.dumps(job(i)).encode())
            except BaseException:
                os.write(sink, json.dumps({traceback.format_exc(): 1}).encode())
            os._exit(0)
        os.close(sink)
        pipes.append((pid, source))
    yield results
    for pid, source in pipes:
        with os.fdopen(source) as pipe:
            text = pipe.read()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        results.append(json.loads(text) if code == 0 else {f"a child ended with {code}": 1})


def openings(where: str, who: str, times: int, gate: str) -> Counter[str]:
    """Open, debit and close, again and again, while others do so too; who closes last tidies the log away."""
    pass_gate(gate)
    seen: Counter[str] = Counter()
    for i in range(times):
        with closing(opened(where)) as ledger:
            seen += debit(ledger, f"{who}-{i}", 1)
    return seen


def careless(where: str, who: str, times: int, guarded: bool, gate: str) -> Counter[str]:
    """Debit and look, while another thread opens and closes the file: SQLite's locks are gone each time."""
    if not guarded:
        for name in ("turn", "look", "commit"):
            setattr(FileLocks, name, lambda self: None)
    pass_gate(gate)
    seen, done = Counter[str](), threading.Event()

    def opens() -> None:
        while not done.wait(0.0005):
            with open(where, "rb"):  # noqa: PTH123
                pass

    thread = threading.Thread(target=opens)
    try:
        with closing(opened(where)) as ledger:
            thread.start()
            for i in range(times):
                seen += debit(ledger, f"{who}-{i}", 1)
                try:
                    ledger.balance("people")
                except LedgerError as error:
                    seen[f"{type(error).__name__}: {error}"] += 1
            done.set()
            thread.join()
    except LedgerError as error:  # it can't be opened any more
        seen[f"{type(error).__name__}: {error}"] += 1
    return seen


def makings(home: str, who: str, times: int, all_: int, gate: str) -> Counter[str]:
    """Make ledgers, each at the same moment as all others do."""
    pass_gate(gate)
    seen: Counter[str] = Counter()
    for i in range(times):
        place = Path(home, str(i))
        place.mkdir(exist_ok=True)
        (place / who).touch()
        while sum(1 for each in place.iterdir() if each.name[0] == "p") < all_:
            time.sleep(0.001)
        try:
            opened(place / "ledger").close()
            seen["made"] += 1
        except Exception as error:
            seen[f"{type(error).__name__}: {error}"] += 1
    return seen


# --- L2: answers, and a kill somewhere ------------------------------------------------------------


def kill_at(name: str, times: int, drawn: Callable[[], None]) -> None:
    """End this process, at once, when it reaches a place so many times; and write down every draw."""
    seen: Counter[str] = Counter()

    def reached(place: str) -> None:
        seen[place] += 1
        if place == "answer: drawn":
            drawn()
        if place == name and seen[place] == times:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.reached = reached


def note(log: Path, **line: Any) -> None:
    """A line that survives a kill."""
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def is_fresh(number: int) -> bool:
    """Most questions pay for a draw; every fifth takes what is there."""
    return number % 5 != 0


OF_CHILDREN = 10**6
"""From here on requests are numbered that the child of a fork asks, beside its parent's."""


def questions(
    where: str,
    lease: float,
    log: str,
    at: str = "",
    times: int = 1,
    most: int = 10**9,
    again: bool = False,
    forks: bool = False,
) -> None:
    """Ask one question after the other, until a kill; what was interrupted before is asked again first.

    With `forks`, a child asks another one meanwhile, through the same session, and is killed with its parent.
    """
    file, number, parent = Path(log), 0, os.getpid()
    _alive(file, fcntl.LOCK_SH)
    kill_at(at, times, lambda: note(file, drawn=number))
    started = time.perf_counter()
    try:
        with closing(open_ledger(where, lease=lease)) as ledger, on(ledger) as session:
            note(file, opened=time.perf_counter() - started)
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            asked = [line["asked"] for line in lines if "asked" in line]
            ended = {line["got"] for line in lines if "got" in line} | {line["no"] for line in lines if "no" in line}
            todo = [number for number in asked if number not in ended and number < OF_CHILDREN][-1:]
            todo += [number for number in asked if number not in ended and number >= OF_CHILDREN]
            if again:
                todo = sorted(set(asked))
            following = max((number for number in asked if number < OF_CHILDREN), default=0) + 1
            for number in chain(todo, range(following, following + most)):
                child = os.fork() if forks and number < OF_CHILDREN else -1
                if child == 0:
                    die_with_parent()
                    number += OF_CHILDREN
                note(file, asked=number)
                try:
                    note(file, got=number, answer=ask(session, f"r{number}", fresh=is_fresh(number)))
                except NoAnswer as error:
                    note(file, no=number, text=str(error))
                if child == 0:
                    os._exit(0)
                if child > 0:
                    assert os.waitpid(child, 0)[1] == 0
    except BaseException:
        note(file, bad=traceback.format_exc())
        if os.getpid() != parent:
            os._exit(1)


def _alive(log: Path, kind: int) -> int:
    """A lock that its holder shares with its children, until the last of them has ended."""
    handle = os.open(f"{log} alive", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, kind)
    return handle


def wait_for_all(log: Path) -> None:
    """Wait until whoever asks questions has ended, and its children too."""
    os.close(_alive(log, fcntl.LOCK_EX))


def die_with_parent() -> None:
    """Linux: whoever is left behind is killed too."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    signal.alarm(PATIENCE)


def tries(where: str, lease: float) -> str:
    """Whether a ledger opens, and goes on: refused, noticed when it was asked, or neither."""
    try:
        ledger = open_ledger(where, lease=lease)
    except LedgerError:
        return "refused"
    with closing(ledger):
        try:
            on(ledger).close()
            ledger.balance("people")
        except LedgerError:
            return "noticed"
    return "unharmed"


def sleeper(where: str, log: str, fails: bool) -> None:
    """A process that is stopped after the draw, for longer than its lease lasts; then it fails, or goes on.

    It is not stopped while another of its threads renews the lease: then the ledger is busy, and that is another test.
    """
    with closing(opened(where, lease=0.3)) as ledger, on(ledger) as session:

        def reached(place: str) -> None:
            if place == "answer: drawn":
                turns, ticket = ledger._database._turns, Ticket()
                turns.wait(ticket, lambda: True)
                Path(log).touch()
                os.kill(os.getpid(), signal.SIGSTOP)
                turns.leave(ticket)
                if fails:
                    raise ZeroDivisionError("in the row of Ann")

        failpoints.reached = reached
        note(Path(log), **outcome(lambda: ask(session, "x")))


# --- L3: storage that fails -----------------------------------------------------------------------


def outcome(call: Callable[[], Any]) -> dict[str, str]:
    """What an analyst sees of a call."""
    try:
        return {"answer": call()}
    except Exception as error:
        return {"error": type(error).__name__, "text": str(error), "trace": traceback.format_exc()}


def limited(where: str, limit: int, before: bool, most: int) -> list[dict[str, str]]:
    """Ask until the disk is full, and three times more; files can't grow past the limit."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.dont_write_bytecode = True  # Python would keep the half of it that fits
    tempfile.gettempdir()  # it is found by writing to it, once
    before_that = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before_that[1]))

    seen: list[dict[str, str]] = []
    try:
        if before:
            fill()
        with closing(opened(where)) as ledger, on(ledger) as session:
            if not before:
                fill()
            after = 0
            for i in range(most):
                seen.append(outcome(lambda i=i: ask(session, f"{limit}-{i}")) | {"request": f"{limit}-{i}"})  # type: ignore[misc]
                after += "error" in seen[-1]
                if after > 3:
                    break
            seen.append(outcome(lambda: str(session.remaining)) | {"request": ""})
    except LedgerError as error:
        seen.append({"error": type(error).__name__, "text": str(error), "trace": traceback.format_exc(), "request": ""})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before_that)
    return seen


def as_nobody(where: str) -> Any:
    """Ask without the right to write; root has every right, so it becomes somebody else first."""

    def ask_twice(_: int) -> list[dict[str, str]]:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        return [outcome(lambda: ask(on(where), "mine")) for _ in range(2)]

    with _forked(1, ask_twice) as results:
        pass
    return results[0]


def harmed(where: str, folder: str) -> list[dict[str, str]]:
    """Ask before and after something happens to the ledger; then end without closing it."""
    session = on(opened(where))
    ask(session, "before")
    Path(folder, "ready").touch()
    while not Path(folder, "harmed").exists():
        time.sleep(0.002)
    return [outcome(lambda i=i: ask(session, f"after {i}")) for i in range(3)]  # type: ignore[misc]


def asks(where: str, requests: list[str], lease: float = 30.0, die: bool = False) -> list[dict[str, str]]:
    """Ask each; then leave, or die without closing anything."""
    ledger = opened(where, lease=lease)
    with on(ledger) as session:
        seen = [outcome(lambda r=r: ask(session, r)) for r in requests]  # type: ignore[misc]
        if not die:
            ledger.close()
        return seen


def interrupted(where: str, times: int) -> Counter[str]:
    """Debit and look, while a signal comes at any time; it is passed on, and then the ledger must work at once."""
    ledger, chance, seen = opened(where, PureDP(10**6)), random.Random(7), Counter[str]()
    fired = lost = False

    def unraisable(_: object) -> None:  # Python can't pass on what is raised while an object is destroyed
        nonlocal lost
        lost = True

    sys.unraisablehook = unraisable

    def interrupt(*_: object) -> None:
        nonlocal fired
        fired = True
        raise KeyboardInterrupt

    def step(name: str) -> None:
        charge = ledger.reserve(dataset="people", analyst="ann", request_id=name, events=[cost(PRICE)])
        ledger.settle(charge, "answered", "42")
        with suppress(BudgetError):
            ledger.reserve(dataset="people", analyst="ann", request_id=None, events=[cost(10**7)])
        ledger.balance("people")

    def seconds(name: str) -> float:
        start = time.perf_counter()
        step(name)
        return time.perf_counter() - start

    # a fixed time would be too long for some machines: nearly all signals would come after the step
    longest = 1.5 * min(seconds(f"before {i}") for i in range(10))
    signal.signal(signal.SIGALRM, interrupt)
    for i in range(times):
        fired = lost = False
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00005, longest))
            try:
                step(f"{i}")
            except Exception as error:
                seen[f"{type(error).__name__}: {error}"] += 1
            seen[("lost" if lost else "swallowed") if fired else "done"] += 1
            while not fired:  # a busy machine may deliver it late
                time.sleep(0.001)
        except KeyboardInterrupt:
            seen["interrupted"] += 1
        try:
            after = ledger.reserve(dataset="people", analyst="bob", request_id=f"after {i}", events=[cost(PRICE)])
            ledger.settle(after, "answered", "42")
        except Exception as error:
            seen[f"after: {type(error).__name__}: {error}"] += 1
    ledger.close()
    return seen


# --- L4: one request, many times ------------------------------------------------------------------


def retries(where: str, threads: int, gate: str) -> list[dict[str, str]]:
    """One request id from every thread at once; whoever draws takes its time, so that the others wait."""
    failpoints.reached = lambda place: time.sleep(0.5) if place == "answer: drawn" else None
    start = threading.Barrier(threads)
    with closing(opened(where)) as ledger, on(ledger) as session:
        pass_gate(gate)

        def once(_: int) -> dict[str, str]:
            start.wait()
            return outcome(lambda: ask(session, "the same", fresh=False))

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(once, range(threads)))


# --- L5: locks --------------------------------------------------------------------------------------


def slow_debits(where: str, who: str, times: int, patience: float, each: float, gate: str) -> list[float]:
    """Debits that hold the lock for a while each: seconds that every one of them took."""
    database.PATIENCE = patience
    failpoints.reached = lambda place: time.sleep(each) if place == "reserve: written" else None
    seconds = []
    with closing(opened(where)) as ledger:
        pass_gate(gate)
        for i in range(times):
            start = time.monotonic()
            ledger.reserve(dataset="people", analyst=who, request_id=f"{who}-{i}", events=[cost(PRICE)])
            seconds.append(time.monotonic() - start)
    return seconds


def looks_as_nobody(where: str) -> Any:
    """What somebody sees who may read and not write."""

    def look(_: int) -> dict[str, str]:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)

        def head() -> str:
            with closing(open_ledger(where, read_only=True)) as ledger:
                ledger.verify()
                return str(ledger.head())

        return outcome(head)

    with _forked(1, look) as results:
        pass
    return results[0]


if __name__ == "__main__":
    main()
