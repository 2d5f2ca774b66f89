"""What the processes of `test_processes.py` run: families of processes with one session, and crowds of threads.

Each job runs in a process of its own, which ends through the interpreter's ordinary shutdown, and is killed by its own
alarm if it hangs. So is each of its children.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests import loops
from tests.ledger.workers import ROOT, Nursery

import privet as pv
from privet import dataset as dataset_module
from privet.engines.duckdb.engine import DuckDB
from privet.errors import PrivetError
from privet.ledger import failpoints, open_ledger
from privet.system import processes
from privet.tables.query import Query

PATIENCE = 25  # seconds after which a job counts as hung
CHILD = 12  # and one of its children
ROWS = 5000

warnings.filterwarnings("ignore", category=DeprecationWarning)  # newer Pythons warn of forks beside threads


class Town(Nursery):
    """A nursery for the jobs of this module."""

    def __enter__(self) -> Town:
        command = [sys.executable, "-m", "tests.threats.households"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        return self


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        if "join" in order:
            print(os.waitstatus_to_exitcode(os.waitpid(order["join"], 0)[1]), flush=True)
            continue
        child = os.fork()
        if child == 0:
            _be_child(order)
            return
        print(child, flush=True)


def _be_child(order: dict[str, Any]) -> None:
    signal.alarm(PATIENCE)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    try:
        found = {"returned": globals()[order["job"].rpartition(":")[2]](**order["arguments"])}
    except SystemExit:  # a child of the job, on its way out
        raise
    except BaseException:
        found = {"raised": traceback.format_exc()}
    Path(order["output"]).write_text(json.dumps(found))


def forked(work: Callable[[], Any], *, leaves: bool = False) -> Callable[[], Any]:
    """A child that works now, and what it found, once it is called for.

    It ends at once, or `leaves` through the interpreter's shutdown, as one does that was forked by hand.
    """
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(CHILD)
        try:
            found = work()
        except SystemExit:  # a child of its own
            raise
        except PrivetError as error:
            found = f"{type(error).__name__}: {error}"
        except BaseException:
            found = traceback.format_exc()
        os.write(sink, json.dumps(found).encode())
        if leaves:
            sys.exit(0)
        os._exit(0)
    os.close(sink)

    def result() -> Any:
        with os.fdopen(source) as pipe:
            text = pipe.read()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return json.loads(text) if code == 0 else f"ended with {code} after {text!r}"

    return result


# --- a session ------------------------------------------------------------------------------------

_SESSIONS: list[pv.Session] = []  # as globals of a program: nobody closes them


def opened(where: str | Path | None, **how: Any) -> pv.Session:
    """A session on a table in memory and one in a file, at the beginning of its life."""
    rows = pa.table({"age": pa.array([i % 100 for i in range(ROWS)], pa.int64())})
    columns = {"age": pv.integer(0, 110)}
    tables = [pv.table("people", rows, protect=pv.each_row(), columns=columns)]
    if where is not None:
        file = Path(where).with_suffix(".parquet")
        pq.write_table(rows, file)
        tables.append(pv.table("stored", str(file), protect=pv.each_row(), columns=columns))
    session = pv.Session(tables, budget=pv.PureDP(10**9), ledger=where, name="people", threads=2, **how)
    _SESSIONS.append(session)
    return session


def question(session: pv.Session, table: str = "people") -> Query:
    return session.tables[table].where(pv.col("age") >= 0).agg(n=pv.count())


def ask(session: pv.Session, **how: Any) -> int:
    """The right answer: at this price nothing is left of the noise. Both kinds of tables are asked about."""
    how = {"epsilon": 1000, "fresh": True, **how}
    found = [session.release(question(session, table), **how).values("n")[0] for table in session.tables]
    assert set(found) == {ROWS}, found
    return len(found)


def seen(where: str | Path) -> dict[str, Any]:
    """What the ledger says: how many were paid for, how each ended, and that it verifies."""
    with closing(open_ledger(where)) as ledger:
        ledger.verify()
        entries = ledger.history("people")
        paid = [entry.number for entry in entries if entry.kind == "reserved"]
        ends = Counter(entry.kind for entry in entries if entry.kind in ("answered", "failed", "interrupted"))
        settled = [entry.refers for entry in entries if entry.kind in ends]
        assert len(set(settled)) == len(settled)
        return {"paid": len(paid), **{str(kind): count for kind, count in ends.items()}}


def folders(spill: str | Path) -> int:
    return sum(1 for _ in Path(spill).iterdir())


def _endless() -> threading.Event:
    """From now on questions take hours."""
    arrived = threading.Event()
    endless = "SELECT sum(hash(a.i, b.i) % 7) FROM range(10000000) a(i), range(10000000) b(i)"
    run, mine = DuckDB._run, os.getpid()

    def slow(engine: DuckDB, cursor: Any, sql: str, context: Any) -> Any:
        if os.getpid() != mine:
            return run(engine, cursor, sql, context)
        arrived.set()
        return run(engine, cursor, endless, replace(context, parameters=[]))

    DuckDB._run = slow  # type: ignore[method-assign, assignment]
    return arrived


# --- forks ----------------------------------------------------------------------------------------


def fork_asks(where: str) -> list[Any]:
    """(a) The session is opened and used, then forked with; both sides go on."""
    session = opened(where)
    ask(session)

    def child() -> Any:
        text = session.explain(question(session), epsilon=1)
        assert "Budget" in text
        before = session.spent.epsilon
        return ask(session), int(session.spent.epsilon - before)

    children = [forked(child) for _ in range(3)]
    mine = ask(session)
    return [[each() for each in children], mine, ask(session), seen(where)]


def _pooled(_: int) -> int:
    return ask(_SESSIONS[0])


def pool_asks(where: str, spill: str) -> list[Any]:
    """(b) A pool of forked processes that finds the session in a global."""
    session = opened(where, spill=spill)
    ask(session)
    with multiprocessing.get_context("fork").Pool(3, signal.alarm, (CHILD,)) as pool:
        found = pool.map(_pooled, range(6), chunksize=1)
        pool.close()
        pool.join()
    return [found, folders(spill), ask(session), seen(where)]


def fork_while_asking(where: str, forks: int) -> list[Any]:
    """(c) Other threads of the parent are in the middle of questions, in DuckDB and in the ledger."""
    session = opened(where)
    done = threading.Event()

    def busy() -> int:
        count = 0
        while not done.is_set():
            count += ask(session)
        return count

    results: list[Any] = []
    with ThreadPoolExecutor(2) as threads:
        asking = [threads.submit(busy) for _ in range(2)]
        try:
            for i in range(forks):
                time.sleep(0.004 * (i % 7))
                results.append(forked(lambda: ask(session), leaves=i % 2 == 1)())
        finally:
            done.set()
        mine = sum(each.result() for each in asking)
    found = seen(where)
    return [results, found["paid"] - mine, found["paid"] == found["answered"]]


def fork_in_a_long_question(where: str) -> list[Any]:
    """(c) DuckDB works for longer than a fork waits."""
    processes._PATIENCE = 0.2
    session = opened(where)
    arrived = _endless()
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(lambda: session.release(question(session), epsilon=1))
        arrived.wait()
        time.sleep(0.1)

        def another() -> int:
            return ask(pv.Session([session.tables["people"]], budget=pv.PureDP(10**9), ledger=where, name="people"))

        found = [forked(lambda: ask(session), leaves=True)(), forked(another, leaves=True)()]
        told = forked(lambda: str(session.spent), leaves=True)()
        while not asking.done():
            session.dataset.engine._connection.interrupt()  # type: ignore[attr-defined]
            time.sleep(0.01)
    return [found, told, type(asking.exception()).__name__, seen(where)]


class Held:
    """Questions stop in the engine until they are let go."""

    def __init__(self) -> None:
        self.arrived, self.go = threading.Event(), threading.Event()
        self._run, self._mine = DuckDB._run, os.getpid()
        DuckDB._run = self._held()  # type: ignore[method-assign]

    def _held(self) -> Any:
        def run(engine: DuckDB, *arguments: Any) -> Any:
            if os.getpid() == self._mine and not self.go.is_set():
                self.arrived.set()
                self.go.wait()
            return self._run(engine, *arguments)

        return run


def fork_in_the_engine(where: str, spill: str) -> list[Any]:
    """(c, e) A thread holds a cursor of the engine and an open reservation for as long as the child lives."""
    session = opened(where, spill=spill)
    held = Held()
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(lambda: session.release(question(session), epsilon=1000).values("n"))
        held.arrived.wait()

        def child() -> Any:
            return ask(session)

        def closes() -> None:
            session.close()

        def drops() -> None:
            nonlocal session
            _SESSIONS.clear()
            del session
            gc.collect()

        found = [forked(work, leaves=leaves)() for work in (child, closes, drops) for leaves in (False, True)]
        open_still = seen(where)
        held.go.set()
        answer = asking.result()
    return [found, open_still, answer, ask(session), seen(where), folders(spill)]


def children_leave(where: str, spill: str) -> list[Any]:
    """(d) However a child goes, with or without having asked, the parent's session is none the worse."""
    session = opened(where, spill=spill)
    ask(session)
    mine = set(Path(spill).iterdir())
    found: list[Any] = []

    def closes() -> None:
        session.close()
        session.close()

    def drops() -> None:
        nonlocal session
        _SESSIONS.clear()
        del session
        gc.collect()

    def asks() -> int:
        assert ask(session) == 2
        return folders(spill)

    def asks_and_closes() -> int:
        ask(session)
        session.close()
        return folders(spill)

    def closed_stays_closed() -> str:
        session.close()
        try:
            return str(ask(session))
        except PrivetError as error:
            return str(error)[:22]

    for work in (lambda: None, closes, drops, asks, asks_and_closes, closed_stays_closed):
        found.append(forked(work, leaves=True)())
        assert set(Path(spill).iterdir()) == mine, work
        ask(session)
    session.close()
    return [found, folders(spill), seen(where)]


def generations(where: str) -> Any:
    """(f) A child, its child, and the child of that one: each asks before and after it forks."""
    session = opened(where)

    def live(depth: int) -> list[Any]:
        ask(session)
        below = forked(lambda: live(depth - 1), leaves=True)() if depth else []
        ask(session)
        return [depth, below]

    return [live(3), seen(where)]


def orphans_of_memory() -> Any:
    """A ledger in memory is the parent's alone."""
    session = opened(None)
    ask(session)
    return [forked(lambda: ask(session), leaves=True)(), ask(session)]


def unseen_fork(where: str, hooks: bool) -> list[Any]:
    """A fork behind Python's back, as a server in C makes: half of the hooks are run for it, or none."""
    session = opened(where)
    ask(session)
    source, sink = os.pipe()
    python = ctypes.PyDLL(None)
    pid = python.fork()
    if pid == 0:
        signal.alarm(CHILD)
        if hooks:
            python.PyOS_AfterFork_Child()
        try:
            found = str(ask(session))
        except PrivetError as error:
            found = str(error)
        with closing(opened(where)) as own:
            found += f"; its own: {ask(own)}"
        os.write(sink, found.encode())
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return [code, text, ask(session), seen(where)]


def fork_inside_a_question(where: str, place: str) -> list[Any]:
    """A signal handler forks in the middle of a question, and its child comes back from it, into the question."""
    session = opened(where)
    ask(session)
    children: list[int] = []
    mine = os.getpid()

    def forks(*_: object) -> None:
        children.append(os.fork())
        if children[0] == 0:
            signal.alarm(CHILD)

    signal.signal(signal.SIGUSR1, forks)

    def strikes() -> None:
        if os.getpid() == mine and not children:
            os.kill(mine, signal.SIGUSR1)
            time.sleep(0.05)

    if place == "engine":
        run = DuckDB._run

        def slow(engine: DuckDB, *arguments: Any) -> Any:
            strikes()
            time.sleep(0.3)  # in another thread, while the main one waits and takes the signal
            return run(engine, *arguments)

        DuckDB._run = slow  # type: ignore[method-assign, assignment]
    else:
        reached = failpoints.reached

        def hits(name: str) -> None:
            if name == place:
                strikes()
            reached(name)

        failpoints.reached = hits
    source, sink = os.pipe()
    try:
        found: Any = ask(session)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    if os.getpid() != mine:
        os.write(sink, json.dumps(found).encode())
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1])
    return [found, code, text, seen(where)]


# --- asyncio --------------------------------------------------------------------------------------


def event_loop(where: str) -> list[Any]:
    """(h) In the loop, in an executor, in a thread; and in a thread whose task is cancelled while the engine works."""
    session = opened(where)
    arrived, go = threading.Event(), threading.Event()
    run = DuckDB._run

    def slow(engine: DuckDB, *arguments: Any) -> Any:
        if threading.current_thread().name == "cancelled":
            arrived.set()
            go.wait()
        return run(engine, *arguments)

    DuckDB._run = slow  # type: ignore[method-assign, assignment]

    def to_be_cancelled() -> int:
        threading.current_thread().name = "cancelled"
        return ask(session, request_id=None)

    async def live() -> list[Any]:
        loop = asyncio.get_running_loop()
        found: list[Any] = [ask(session)]
        found.append(await loop.run_in_executor(None, ask, session))
        found += await asyncio.gather(*(asyncio.to_thread(ask, session) for _ in range(4)))
        task = asyncio.create_task(asyncio.to_thread(to_be_cancelled))
        await asyncio.to_thread(arrived.wait)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            found.append("cancelled")
        go.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(ask, session), 0.0001)
        return found

    return [loops.run(live()), seen(where)]


# --- threads --------------------------------------------------------------------------------------


def crowd(where: str) -> list[Any]:
    """(i) 12 threads at once: the same question, which is paid for once, and questions of their own."""
    session = opened(where)
    start = threading.Barrier(12)

    def each(i: int) -> tuple[int, str]:
        start.wait()
        same = session.release(question(session), epsilon=1000, request_id="same")
        own = session.tables["people"].where(pv.col("age") >= i).agg(n=pv.count())
        found = session.release(own, epsilon=1000).values("n")[0]
        return found - ROWS * (100 - i) // 100, same.certificate.to_json()

    with ThreadPoolExecutor(12) as threads:
        found = list(threads.map(each, range(12)))
    return [[off for off, _ in found], len({same for _, same in found}), seen(where)]


def closed_meanwhile(where: str) -> list[Any]:
    """(i) One thread closes the session while others ask: each is answered, or told, and what was paid is settled."""
    ends: Counter[str] = Counter()
    for i in range(4):
        session = opened(where)
        start = threading.Barrier(5)

        def each(j: int, session: pv.Session = session, start: threading.Barrier = start) -> str:
            start.wait()
            try:
                for _ in range(5):
                    ask(session)
            except PrivetError as error:
                return type(error).__name__
            return "answered"

        with ThreadPoolExecutor(4) as threads:
            asking = [threads.submit(each, j) for j in range(4)]
            start.wait()
            time.sleep(0.02 * i)
            session.close()
            ends.update(one.result() for one in asking)
    return [dict(ends), seen(where)]


def exits_while_asking(where: str, daemon: bool) -> str:
    """(j) The interpreter ends while threads ask; those that are no daemons end their questions first."""
    session = opened(where)
    ready = threading.Event()

    def asks() -> None:
        for _ in range(10**9 if daemon else 5):
            try:
                ask(session)
            except PrivetError:  # closed: the interpreter ends
                return
            ready.set()

    for _ in range(2):
        threading.Thread(target=asks, daemon=daemon).start()
    ready.wait()
    return "left"


def exits_in_a_long_question(where: str) -> str:
    """(j) The same, in the middle of a query that would take hours."""
    dataset_module._PATIENCE = 0.3
    session = opened(where)
    arrived = _endless()
    threading.Thread(target=lambda: session.release(question(session), epsilon=1), daemon=True).start()
    arrived.wait()
    time.sleep(0.1)
    return "left"


if __name__ == "__main__":
    main()
