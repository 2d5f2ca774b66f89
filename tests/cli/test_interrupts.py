"""Ctrl-C at every moment of a command: one true line, exit code 130, and the dataset stays open."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.asking import COUNT, NEW, Done, made
from tests.cli.processes import ran
from tests.ledger.workers import Nursery

import privet
from privet.ledger import open_ledger

HERE = {**os.environ, "PYTHONPATH": str(Path(privet.__file__).parents[1])}
"""So that a program in another folder finds the same sources."""

PRESSING = """
import builtins, os, signal, sys, threading

def press():
    os.kill(os.getpid(), signal.SIGINT)

def wrap(owner, name, before=None, after=None):
    real = getattr(owner, name)
    def pressed(*given, **named):
        setattr(owner, name, real)
        if before: before()
        found = real(*given, **named)
        if after: after()
        return found
    setattr(owner, name, pressed)

def busy(connection, rows):
    query = f"SELECT sum(hash(a.i, b.i) % 7) FROM range({rows}) a(i), range({rows}) b(i)"
    threading.Timer(0.2, press).start()
    connection.execute(query).fetchall()
    threading.Event().wait(60)

moment = sys.argv.pop(1)
if moment == "loading":
    class Finder:
        def find_spec(name, *_):
            if name == "typer":
                press()
    sys.meta_path.insert(0, Finder)
else:
    import privet.cli
    from privet import session
    from privet.engines.duckdb import engine
    from privet.ledger import Ledger, failpoints
    from privet.engines.duckdb import files
    if moment == "loading more":
        class Finder:
            def find_spec(name, *_):
                if name == "sqlglot":
                    press()
        sys.meta_path.insert(0, Finder)
    elif moment == "opening":
        real = files.describe
        files.describe = lambda connection, rows: (busy(connection, 10_000), real(connection, rows))
    elif moment == "checking the file":
        wrap(files, "parquet", before=lambda: threading.Timer(0.05, press).start())
        from privet.sources import parquet
        wrap(parquet, "interruptible", before=lambda: threading.Event().wait(60))
    elif moment == "planning":
        wrap(session.Session, "plan", before=press)
    elif moment == "debiting":
        wrap(Ledger, "reserve", before=press)
    elif moment == "debited":
        wrap(Ledger, "reserve", after=press)
    elif moment == "the engine":
        engine.DuckDB._run = lambda self, cursor, sql, context: busy(cursor, 10**8)
    elif moment == "settling":
        wrap(Ledger, "settle", before=press)
    elif moment == "settled":
        wrap(session.Session, "release", after=press)
    elif moment == "writing":
        from privet.cli import query as commands
        wrap(commands, "write", before=press)

from privet.__main__ import main
main()
"""
NOTHING, STAYS = "interrupted; nothing was spent\n", "interrupted; the debit of epsilon 0.25 stays\n"
KEPT = "interrupted; the debit stays. The answer is stored: asking again is free\n"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return made(tmp_path)


ASKED = ("query", COUNT, "--epsilon", "0.25", "--fresh")


def pressed(nursery: Nursery, folder: Path, moment: str, *arguments: str) -> str:
    """What a command says on stderr when Ctrl-C is pressed; its code is 130, and it prints nothing else."""
    return said(ran(nursery, folder, moment, *(arguments or ASKED), program=PRESSING))


def said(done: Done) -> str:
    assert (done.code, done.out) == (130, ""), done
    return NEW.sub("", done.err)


def kinds(folder: Path) -> list[str]:
    if not (folder / "people.ledger").exists():
        return []
    with closing(open_ledger(folder / "people.ledger")) as ledger:
        ledger.verify()
        return [e.kind for e in ledger.history("people") if e.kind in ("reserved", "answered", "failed", "interrupted")]


@pytest.mark.parametrize(
    ("moment", "says", "entries"),
    [
        ("opening", NOTHING, []),
        ("checking the file", NOTHING, []),
        ("planning", NOTHING, []),
        ("debiting", STAYS, ["reserved", "interrupted"]),
        ("debited", STAYS, ["reserved", "interrupted"]),
        ("the engine", STAYS, ["reserved", "interrupted"]),
        ("settling", STAYS, ["reserved", "answered"]),
        ("settled", KEPT, ["reserved", "answered"]),
        ("writing", KEPT, ["reserved", "answered"]),
    ],
)
def test_one_line_that_is_true(nursery: Nursery, people: Path, moment: str, says: str, entries: list[str]) -> None:
    if entries:  # it is there already, so the debit is not rehearsed
        open_ledger(people / "people.ledger").close()
    assert pressed(nursery, people, moment) == says
    assert kinds(people) == entries


@pytest.mark.parametrize("moment", ["debiting", "debited"])
def test_a_rehearsal_spends_nothing(nursery: Nursery, people: Path, moment: str) -> None:
    assert pressed(nursery, people, moment) == NOTHING
    assert not (people / "people.ledger").exists()


@pytest.mark.parametrize("moment", ["loading", "loading more", "the engine"])
def test_and_in_a_process_that_starts(people: Path, moment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRESSING, moment, *ASKED],
        cwd=people, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=100, env=HERE,
    )  # fmt: skip
    loading = moment.startswith("loading")
    assert said(Done(done.returncode, done.stdout, done.stderr)) == (NOTHING if loading else STAYS)
    assert kinds(people) == ([] if loading else ["reserved", "interrupted"])


def test_interrupts_do_not_close_a_dataset(nursery: Nursery, people: Path) -> None:
    for _ in range(2):
        assert pressed(nursery, people, "the engine") == STAYS
    with closing(open_ledger(people / "people.ledger")) as ledger:
        assert ledger.balance("people").spent.epsilon == 0.5
        assert [entry.totals.failures for entry in ledger.history("people")][-1] == 0
    done = ran(nursery, people, "query", COUNT, "--epsilon", "0.25", "--json")
    assert done.code == 0
    assert len(json.loads(done.out)["rows"]) == 3


def test_explain_and_others_say_it_too(nursery: Nursery, people: Path) -> None:
    assert pressed(nursery, people, "planning", "explain", COUNT, "--epsilon", "1") == NOTHING
    assert pressed(nursery, people, "opening", "init", "people.parquet", "--yes", "-o", "other.toml") == "interrupted\n"
    assert not (people / "other.toml").exists()


def test_a_request_that_was_interrupted_is_not_drawn_again(nursery: Nursery, people: Path) -> None:
    query = ("query", COUNT, "--epsilon", "0.25", "--request-id", "report")
    assert pressed(nursery, people, "the engine", *query) == STAYS
    done = ran(nursery, people, *query)
    assert (done.code, done.out) == (4, "")
    assert done.err == (
        "error: This request was interrupted. It was paid for, and nothing was released. "
        "To pay for it again, leave out its request id, or use a new one\n"
    )
