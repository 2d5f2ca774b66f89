"""L12: forks, threads, event loops, copies and the end of the interpreter: a question is paid for once, never hangs.

Every job is a real process with an alarm; `households.py` says what each of them does.
"""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.ledger.workers import ROOT
from tests.threats import households
from tests.threats.households import Town

import privet as pv
from privet.engines.duckdb import engine as engine_module
from privet.engines.duckdb.engine import DuckDB
from privet.errors import SourceError, UserError

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with Town(tmp_path_factory.mktemp("town")) as made:
        yield made


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    (tmp_path / "spill").mkdir()
    return tmp_path / "spill"


def all_answered(count: int) -> dict[str, int]:
    return {"paid": count, "answered": count}


# --- forks ------------------------------------------------------------------------------------------


@forks
def test_a_forked_child_is_answered(town: Town, where: Path) -> None:
    children, during, after, seen = town.run(households.fork_asks, where=where)
    assert [answers for answers, _ in children] == [2, 2, 2]
    assert all(spent >= 2000 for _, spent in children), "a child sees its own debits, and those of others"
    assert (during, after, seen) == (2, 2, all_answered(12))


@forks
def test_a_pool_of_forked_processes_is_answered(town: Town, where: Path, spill: Path) -> None:
    found, folders, after, seen = town.run(households.pool_asks, where=where, spill=spill)
    assert (found, after, seen) == ([2] * 6, 2, all_answered(16))
    assert folders == 1, "each worker removes its own folder, and the parent's stays"


@forks
def test_a_fork_while_other_threads_ask(town: Town, where: Path) -> None:
    found, by_children, settled = town.run(households.fork_while_asking, where=where, forks=5)
    assert (found, by_children, settled) == ([2] * 5, 10, True)


@forks
def test_a_fork_while_duckdb_works_for_long_is_refused_before_it_pays(town: Town, where: Path) -> None:
    found, told, parent, seen = town.run(households.fork_in_a_long_question, where=where)
    assert all(text.startswith("UserError: this process was forked while another thread") for text in found)
    assert (told, parent, seen) == ("epsilon 1", "NoAnswer", {"paid": 1, "failed": 1})


@forks
def test_a_fork_in_the_middle_of_a_question_leaves_it_to_the_parent(town: Town, where: Path, spill: Path) -> None:
    """The children ask, close, and forget the session; the parent's reservation is as open as it was."""
    found, meanwhile, answer, after, seen, folders = town.run(households.fork_in_the_engine, where=where, spill=spill)
    assert found == [2, 2, None, None, None, None]
    assert meanwhile == {"paid": 5, "answered": 4}
    assert (answer, after, seen) == ([households.ROWS], 2, all_answered(7))
    assert folders == 2, "the parent's, and that of the child which ended without cleaning up"


@forks
def test_however_a_child_goes_the_parent_goes_on(town: Town, where: Path, spill: Path) -> None:
    found, folders, seen = town.run(households.children_leave, where=where, spill=spill)
    assert found == [None, None, None, 2, 1, "this session is closed"]
    assert (folders, seen) == (0, all_answered(18))


@forks
def test_grandchildren_are_answered(town: Town, where: Path) -> None:
    assert town.run(households.generations, where=where) == [[3, [2, [1, [0, []]]]], all_answered(16)]


@forks
def test_a_ledger_in_memory_is_not_shared(town: Town) -> None:
    child, after = town.run(households.orphans_of_memory)
    assert child.startswith("LedgerError: a ledger in memory can't be shared by several processes")
    assert after == 1


# Since Python 3.13 half of the hooks are a fatal error: they unlock what the other half must have locked.
HOOKS = [False, True] if sys.version_info < (3, 13) else [False]


@forks
@pytest.mark.parametrize("hooks", HOOKS, ids=["no hooks", "half of the hooks"][: len(HOOKS)])
def test_a_fork_that_python_does_not_see_is_refused_before_it_pays(town: Town, where: Path, hooks: bool) -> None:
    code, child, after, seen = town.run(households.unseen_fork, where=where, hooks=hooks)
    assert child.startswith("this dataset was opened by another process")
    assert child.endswith("; its own: 2"), "a session that was opened after the fork works"
    assert (code, after, seen) == (0, 2, all_answered(6))


@forks
@pytest.mark.parametrize("place", ["engine", "reserve: on disk", "answer: drawn"])
def test_a_child_that_comes_back_into_its_parents_question(town: Town, where: Path, place: str) -> None:
    parent, code, child, seen = town.run(households.fork_inside_a_question, where=where, place=place)
    assert "forked in the middle of a question" in child
    assert (parent, code, seen) == (2, 0, all_answered(4))


@forks
def test_a_child_leaves_without_a_word(tmp_path: Path) -> None:
    """A worker of gunicorn ends in this way. What DuckDB's bindings say of the parent's objects is for nobody."""
    program = """
        import os, sys, warnings
        warnings.simplefilter("ignore")
        from tests.threats import households
        session = households.opened(sys.argv[1])
        if (child := os.fork()) == 0:
            households.ask(session)
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        households.ask(session)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "people.ledger")]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


def test_an_engine_that_can_not_be_opened_again_is_refused_before_it_pays(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process number changes as in a child; DuckDB then fails, or hangs."""
    with closing(households.opened(where)) as session:
        for broken, kind, text in (
            (_raises, SourceError, "can't be opened again in this process"),
            (_hangs, UserError, "DuckDB does not start in this process"),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(os, "getpid", lambda kind=kind: -len(kind.__name__))
                patch.setattr(DuckDB, "_open", broken)
                patch.setattr(engine_module, "_PATIENCE", 0.05)
                for _ in range(2):
                    with pytest.raises(kind, match=text):
                        session.dataset.engine.ready()
        assert session.spent == pv.PureDP.ZERO


def _raises(engine: DuckDB, trial: str) -> None:
    raise duckdb.IOException("a secret")


def _hangs(engine: DuckDB, trial: str) -> None:
    time.sleep(0.5)


# --- copies -----------------------------------------------------------------------------------------


WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_session_is_not_copied(way: str) -> None:
    with closing(households.opened(None)) as session, pytest.raises(UserError, match="can't be copied or sent"):
        WAYS[way](session)


@pytest.mark.parametrize("way", WAYS)
def test_what_holds_no_budget_is_copied_as_it_is(way: str) -> None:
    with closing(households.opened(None)) as session:
        released = session.release(households.question(session), epsilon=1000)
        value = session.release_value(3, sensitivity=1, epsilon=1, label="mine")
        for thing in (*session.tables.values(), released, value, released.plan, session.balance):
            assert WAYS[way](thing) == thing
        again = WAYS[way](released)
        assert (str(again), again.values("n")) == (str(released), released.values("n"))
        assert pv.verify(again.certificate, ledger=session.ledger).ledger


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_a_ledger_has_the_same_debits_or_there_is_none(way: str) -> None:
    with closing(households.opened(None)) as session:
        try:
            twin = WAYS[way](session.ledger)
        except Exception:
            return
        households.ask(session)
        assert twin.balance("people").spent == session.spent


def _ask_in_its_own(table: Any, where: Path) -> int:
    with pv.Session([table], budget=pv.PureDP(10**9), ledger=where) as session:
        found = session.release(table.agg(n=pv.count()), epsilon=1000, fresh=True).values("n")
    return int(found[0])


def test_a_table_is_sent_to_a_process_that_was_spawned(where: Path) -> None:
    rows = pa.table({"age": [30, 40, 50]})
    table = pv.table("people", rows, protect=pv.each_row(), columns={"age": pv.integer(0, 110)})
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(_ask_in_its_own, table, where).result(timeout=60) == 3
    assert households.seen(where) == all_answered(1)


# --- event loops and threads ------------------------------------------------------------------------


def test_an_event_loop_and_a_task_that_is_cancelled(town: Town, where: Path) -> None:
    """A thread can't be cancelled: its question is answered, settled, and found by whoever asks again."""
    found, seen = town.run(households.event_loop, where=where)
    assert found == [2, 2, 2, 2, 2, 2, "cancelled"]
    assert seen["paid"] == seen["answered"]
    assert seen["paid"] in (14, 16), "the last one may be cancelled before it has begun"


def test_a_crowd_pays_once_for_what_is_the_same(town: Town, where: Path) -> None:
    off, different, seen = town.run(households.crowd, where=where)
    assert (off, different, seen) == ([0] * 12, 1, all_answered(12))


def test_a_session_that_is_closed_while_others_ask(town: Town, where: Path) -> None:
    """Nobody pays for nothing: questions that were paid for end first, others are refused."""
    ends, seen = town.run(households.closed_meanwhile, where=where)
    assert set(ends) <= {"answered", "UserError"}
    assert seen["paid"] == seen["answered"]


@pytest.mark.parametrize("daemon", [False, True], ids=["threads", "daemons"])
def test_the_interpreter_ends_while_threads_ask(town: Town, where: Path, daemon: bool) -> None:
    assert town.run(households.exits_while_asking, where=where, daemon=daemon) == "left"
    seen = households.seen(where)
    assert seen["paid"] == seen["answered"]


def test_the_interpreter_does_not_wait_for_a_question_that_does_not_end(town: Town, where: Path) -> None:
    assert town.run(households.exits_in_a_long_question, where=where) == "left"
    assert households.seen(where) == {"paid": 1, "interrupted": 1}
