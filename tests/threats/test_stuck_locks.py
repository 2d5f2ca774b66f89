"""L13: who holds a lock for ever costs others a bounded wait and a clear word, and nobody pays twice."""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.ledger import workers
from tests.ledger.common import cost
from tests.ledger.workers import Nursery
from tests.threats.peers import PATIENCE, Peer, Where, ask, seen, session, spent, wait_for

from privet import cli
from privet.errors import LedgerBusy, LedgerError
from privet.ledger import failpoints, open_ledger
from privet.ledger.storage import database
from privet.privacy.guarantees import PureDP

pytestmark = pytest.mark.usefixtures("impatient")

PRICE = "1/100"
MARGIN = 6.0


@contextmanager
def held(where: Where, *statements: str) -> Iterator[None]:
    """Somebody else is in the middle of a transaction."""
    connection: Any
    if isinstance(where, Path):
        connection = sqlite3.connect(where, isolation_level=None)
    else:
        connection = psycopg.connect(where, autocommit=True)
    with closing(connection):
        for statement in statements:
            found = connection.execute(statement)
            if statement.startswith("SELECT"):
                found.fetchone()
        yield
        connection.execute("ROLLBACK")


HOLDS_SQLITE = {
    "a writer": ["BEGIN IMMEDIATE"],
    "a writer that wrote": ["BEGIN IMMEDIATE", "UPDATE privet_ledger SET version = version"],
    "a writer that lets nobody read": ["BEGIN EXCLUSIVE"],
    "a reader": ["BEGIN", "SELECT * FROM privet_entries"],
}
HOLDS_POSTGRES = {
    "a lock on every row": [
        "BEGIN",
        *(f"SELECT * FROM {name} FOR UPDATE" for name in ("privet_ledger", "privet_entries")),
    ],
    "a lock on a table": ["BEGIN", "LOCK TABLE privet_entries IN ACCESS EXCLUSIVE MODE"],
    "a lock on all tables": [
        "BEGIN",
        "LOCK TABLE privet_ledger, privet_entries, privet_answers, privet_leases IN ACCESS EXCLUSIVE MODE",
    ],
    "a lock against writers": ["BEGIN", "LOCK TABLE privet_entries IN SHARE MODE"],
    "a row that is inserted": [
        "BEGIN",
        "INSERT INTO privet_leases SELECT * FROM privet_leases WHERE false",
        "UPDATE privet_ledger SET number = number",
    ],
}
HOLDS = [("sqlite", name) for name in HOLDS_SQLITE] + [("postgres", name) for name in HOLDS_POSTGRES]


def quickly(call: Callable[[], Any]) -> Any:
    began = time.monotonic()
    try:
        return call()
    finally:
        assert time.monotonic() - began < PATIENCE + MARGIN


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "hold"), HOLDS, ids=[" ".join(each) for each in HOLDS])
def test_a_lock_that_is_held_for_ever(
    places: Callable[[str], Where | None], source: Path, kind: str, hold: str
) -> None:
    where = places(kind)
    assert where is not None
    statements = {**HOLDS_SQLITE, **HOLDS_POSTGRES}[hold]
    with closing(session(where, source)) as asking:
        ask(asking, PRICE, "before")
        with held(where, *statements):
            with pytest.raises(LedgerBusy) as caught:
                quickly(lambda: ask(asking, PRICE, "busy"))
            assert "try again" in str(caught.value).lower()
            assert "\n" not in str(caught.value)
            assert caught.value.__cause__ is None
        first = ask(asking, PRICE, "busy")
        assert ask(asking, PRICE, "busy") == first
        assert asking.spent.epsilon == 2 * Fraction(PRICE)
    assert spent(where) == 2 * Fraction(PRICE)


@pytest.mark.slow
@pytest.mark.parametrize("hold", HOLDS_SQLITE)
def test_readers_meanwhile(tmp_path: Path, source: Path, hold: str) -> None:
    """With a writer they go on; if the file is locked for all they are told so, in time."""
    path = tmp_path / "people.ledger"
    with closing(session(path, source)) as asking:
        ask(asking, PRICE)

    def look() -> Fraction:
        with closing(open_ledger(path, read_only=True)) as ledger:
            ledger.verify()
            list(ledger.export("people"))
            ledger.history("people")
            return Fraction(ledger.balance("people").spent.epsilon)

    with closing(session(path, source)) as asking, held(path, *HOLDS_SQLITE[hold]):
        if hold == "a writer that lets nobody read":
            with pytest.raises(LedgerBusy):
                quickly(look)
            with pytest.raises(LedgerBusy):
                quickly(lambda: asking.spent)
        else:
            assert quickly(look) == Fraction(PRICE)
            assert quickly(lambda: asking.spent.epsilon) == Fraction(PRICE)
    assert look() == Fraction(PRICE)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["reserve: written", "settle: written"])
def test_a_process_that_is_stopped_in_the_middle_of_a_transaction(
    where: Where, source: Path, start: Callable[[], Peer], tmp_path: Path, place: str
) -> None:
    eve = start()
    assert "answer" in eve.open(where, source, analyst="eve")
    with closing(session(where, source)) as asking:
        eve.stop_at(place, tmp_path / "stopped")
        eve.send("ask", epsilon=PRICE)
        wait_for(tmp_path / "stopped")
        with pytest.raises(LedgerBusy):
            quickly(lambda: ask(asking, PRICE, "mine"))
        with pytest.raises(LedgerBusy):
            quickly(lambda: session(where, source, analyst="bob", version="2"))
        eve.go_on()
        assert "answer" in eve.reply()
        ask(asking, PRICE, "mine")
        assert asking.spent.epsilon == 2 * Fraction(PRICE)


def test_a_lock_that_comes_between_the_debit_and_its_end(
    where: Where, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is drawn, and can't be settled: it is not shown, or shown when it is; and it is nobody's failure."""
    held_now: list[Any] = []
    hold = ["BEGIN IMMEDIATE"] if isinstance(where, Path) else HOLDS_POSTGRES["a lock on a table"]

    def reached(place: str) -> None:
        if place == "answer: drawn" and not held_now:
            held_now.append(held(where, *hold))
            held_now[0].__enter__()

    monkeypatch.setattr(database, "PATIENCE", 0.2)
    monkeypatch.setattr(failpoints, "reached", reached)
    with closing(open_ledger(where, lease=0.3)) as ledger, closing(session(ledger, source)) as asking:
        for n in range(4):
            held_now.clear()
            first = quickly(lambda n=n: seen(lambda: ask(asking, PRICE, f"r{n}")))  # type: ignore[misc]
            assert held_now, (n, first)
            held_now[0].__exit__(None, None, None)
            assert "error" in first, "an answer went out before it was settled"
            again = quickly(lambda n=n: seen(lambda: ask(asking, PRICE, f"r{n}")))  # type: ignore[misc]
            assert asking.spent.epsilon == (n + 1) * Fraction(PRICE), "nothing is paid twice"
            assert again.get("error", "NoAnswer") == "NoAnswer", again
        ask(asking, PRICE, "last")


@pytest.mark.slow
def test_a_lock_that_outlasts_leases_fails_nobody(where: Where, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eve holds the ledger for longer than a lease lasts; Ann's questions could not be renewed, and go on."""
    monkeypatch.setattr(database, "PATIENCE", 0.2)
    hold = ["BEGIN IMMEDIATE"] if isinstance(where, Path) else HOLDS_POSTGRES["a lock against writers"]
    with ExitStack() as stack:
        others, *mine = (stack.enter_context(closing(open_ledger(where, lease=1.5))) for _ in range(5))
        session(where, source).close()
        charges = []
        for n, ledger in enumerate(mine):
            charges.append(ledger.reserve(dataset="people", analyst="ann", request_id=f"{n}", events=[cost(PRICE)]))
            time.sleep(0.15)
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.02):
                with suppress(LedgerBusy):
                    others.reserve(dataset="people", analyst="bob", request_id="b", events=[cost(PRICE)])

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            time.sleep(0.3)
            with held(where, *hold):
                time.sleep(2.5)
            time.sleep(0.5)
        finally:
            done.set()
            watcher.join()
        for ledger, charge in zip(mine, charges, strict=True):
            ledger.settle(charge, "answered", "42")
        mine[0].reserve(dataset="people", analyst="ann", request_id="more", events=[cost(PRICE)])


@pytest.mark.slow
def test_a_slow_queue_that_moves_is_waited_for(where: Where, nursery: Nursery, tmp_path: Path) -> None:
    """16 writers, each of whom holds the lock for a while: all together far longer than anybody's patience."""
    names = [f"p{i}" for i in range(16)]
    workers.opened(where, PureDP(10)).close()
    found = nursery.race(slow_debits, tmp_path, where=[where] * 16, who=names, times=[4] * 16)
    assert sum(map(Counter, found), Counter[str]()) == {"granted": 64}


def slow_debits(where: str, who: str, times: int, gate: str) -> Counter[str]:
    database.PATIENCE = 3.0
    failpoints.reached = lambda place: time.sleep(0.05) if place == "reserve: written" else None
    return workers.debits(where, "10", who, times, gate)


@pytest.mark.slow
def test_nobody_is_starved_by_one_who_asks_on_and_on(
    where: Where, source: Path, start: Callable[[], Peer], tmp_path: Path, nursery: Nursery
) -> None:
    """L16: what was asked before costs nothing, so that anybody can ask it for ever."""
    session(where, source).close()
    children = [nursery.start(asks_for_ever, where=where, source=source, stop=tmp_path / "stop") for _ in range(2)]
    try:
        with closing(session(where, source)) as asking:
            waits = []
            for n in range(10):
                began = time.monotonic()
                ask(asking, PRICE, f"{n}")
                waits.append(time.monotonic() - began)
    finally:
        (tmp_path / "stop").touch()
        for child in children:
            child.join()
    assert max(waits) < 5, waits


def asks_for_ever(where: str, source: str, stop: str) -> int:
    with closing(session(where, source, analyst="eve")) as asking:
        for n in range(10**6):
            ask(asking, PRICE, f"{os.getpid()} {n}", fresh=False)
            if Path(stop).exists():
                return n
    return 0


def test_who_waits_for_a_running_request_waits_for_a_while(where: Where, source: Path) -> None:
    with closing(session(where, source)) as asking, closing(open_ledger(where)) as other:
        ledger: Any = asking.ledger
        ledger.reserve(dataset="people", analyst="ann", request_id="x", events=[cost(PRICE)])
        running = other.reserve(dataset="people", analyst="ann", request_id="x", events=[cost(PRICE)])
        assert running.state == "running"
        began = time.monotonic()
        with pytest.raises(LedgerBusy):
            other.wait(running, seconds=0.5)
        assert time.monotonic() - began < 3


# --- reading what may not be written ----------------------------------------------------------------

LOOKS = [
    ["budget", "people.ledger"],
    ["ledger", "history", "people.ledger"],
    ["ledger", "verify", "people.ledger"],
    ["ledger", "head", "people.ledger"],
    ["ledger", "export", "people.ledger"],
]


@pytest.fixture
def frozen(source: Path) -> Iterator[Path]:
    """A ledger in a folder that others may only read."""
    with tempfile.TemporaryDirectory() as name:  # not tmp_path: nobody may look into that
        folder = Path(name)
        with closing(session(folder / "people.ledger", source)) as asking:
            ask(asking, PRICE)
        yield folder
        folder.chmod(0o755)


def looks(folder: str) -> list[tuple[int, str]]:
    """What the command line says to somebody who may not write; once as ourselves, to have all that is imported."""
    os.chdir(folder)
    for arguments in LOOKS:
        run(arguments)

    def as_nobody(_: int) -> list[tuple[int, str]]:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        return [run(arguments) for arguments in LOOKS]

    with workers._forked(1, as_nobody) as results:
        pass
    found: list[tuple[int, str]] = results[0]
    return found


def run(arguments: list[str]) -> tuple[int, str]:
    sys.argv = ["privet", *arguments]
    said = io.StringIO()
    code: Any = 0
    try:
        with redirect_stdout(said), redirect_stderr(said):
            cli.main()
    except SystemExit as stopped:
        code = stopped.code or 0
    return code, said.getvalue()


def freeze(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(0o444)
    folder.chmod(0o555)


@pytest.mark.slow
@pytest.mark.parametrize("beside", ["kept", "removed"])
def test_a_ledger_that_may_only_be_read(frozen: Path, beside: str, nursery: Nursery) -> None:
    if beside == "removed":
        (frozen / "people.ledger-journal").unlink()
    freeze(frozen)
    before = {path.name: path.read_bytes() for path in frozen.iterdir()}
    for code, text in nursery.run(looks, folder=frozen):
        assert code == 0, text
    assert {path.name: path.read_bytes() for path in frozen.iterdir()} == before


@pytest.mark.slow
@pytest.mark.parametrize("place", ["reserve: written", "settle: written"])
def test_a_ledger_that_may_only_be_read_after_a_kill(
    frozen: Path, source: Path, start: Callable[[], Peer], tmp_path: Path, place: str, nursery: Nursery
) -> None:
    """What was not committed can't be undone by who may not write: refused, or looked at as it will be."""
    eve = start()
    eve.open(frozen / "people.ledger", source)
    eve.stop_at(place, tmp_path / "stopped")
    eve.send("ask", epsilon=PRICE)
    wait_for(tmp_path / "stopped")
    eve.kill()
    copy = frozen / "copy"
    copy.mkdir()
    for each in frozen.glob("people.ledger*"):
        shutil.copyfile(each, copy / each.name)
    freeze(copy)
    code, text = nursery.run(looks, folder=copy)[0]
    assert "Traceback" not in text
    if code == 0:
        assert f"epsilon {0.02 if place == 'settle: written' else 0.01}" in text
    copy.chmod(0o755)


def test_what_was_opened_for_reading_spends_nothing(where: Where, source: Path) -> None:
    with closing(session(where, source)) as asking:
        ask(asking, PRICE)
    with closing(open_ledger(where, read_only=True)) as ledger:
        before = list(ledger.export("people"))
        for call in (
            lambda: ledger.reserve(dataset="people", analyst="ann", request_id=None, events=[cost(PRICE)]),
            lambda: ledger.cap("people", PureDP(2), reason="more"),
            lambda: ledger.reopen("people", "again"),
        ):
            with pytest.raises((LedgerError, ValueError)):
                call()
        assert list(ledger.export("people")) == before
    missing = where.with_name("missing") if isinstance(where, Path) else where.replace("/ledger_", "/missing_")
    with pytest.raises((LedgerError, ValueError)):
        open_ledger(missing, read_only=True)
    if isinstance(where, Path):
        assert not where.with_name("missing").exists()
