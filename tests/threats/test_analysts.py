"""L16: one analyst can't close a dataset to another, nor starve nor probe one; and nobody else may read the file."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.common import cost
from tests.threats.peers import Peer, Where, ask, seen, session, spent

from privet.errors import DatasetClosed, LedgerError, UserError
from privet.ledger import Ledger, open_ledger
from privet.privacy.guarantees import PureDP

PRICE = "1/100"
LEASE = 0.2


def reserve(ledger: Ledger, analyst: str, request: str | None, **how: Any) -> Any:
    return ledger.reserve(dataset="people", analyst=analyst, request_id=request, events=[cost(PRICE)], **how)


def fail(ledger: Ledger, analyst: str, times: int = 1) -> None:
    for _ in range(times):
        ledger.settle(reserve(ledger, analyst, None), "failed")


# --- failures ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_asks(where: Where, source: Path, start: Callable[[], Peer]) -> None:
    for _ in range(3):
        eve = start()
        eve.open(where, source, analyst="eve")
        eve.tell("kill at", place="answer: drawn")
        eve.send("ask", epsilon=PRICE)
        eve.child.join()
        eve.ended = True
    with closing(open_ledger(where, lease=LEASE)) as ledger, closing(session(ledger, source)) as asking:
        deadline = time.monotonic() + 20
        while [entry.kind for entry in ledger.history("people")].count("failed") < 3:
            assert time.monotonic() < deadline
            time.sleep(LEASE)
            ask(asking, PRICE)
        ask(asking, PRICE)
        with pytest.raises(DatasetClosed), closing(session(ledger, source, analyst="eve")) as eves:
            ask(eves, PRICE)
        ledger.reopen("people", "eve was told")
        with closing(session(ledger, source, analyst="eve")) as eves:
            ask(eves, PRICE)


def test_failures_close_for_one_and_then_for_all(where: Where, source: Path) -> None:
    with closing(open_ledger(where)) as ledger, closing(session(ledger, source)) as asking:
        for n in range(3):
            fail(ledger, f"eve{n}", 3)
            with pytest.raises(DatasetClosed):
                reserve(ledger, f"eve{n}", None)
            ask(asking, PRICE)
        fail(ledger, "mallory")
        for who in ("ann", "mallory", "bob"):
            with pytest.raises(DatasetClosed):
                reserve(ledger, who, None)
        ledger.verify()
        ledger.reopen("people", "more memory")
        for who in ("ann", "mallory", "bob", "eve0"):
            reserve(ledger, who, None)
        ledger.verify()
    with closing(open_ledger(where)) as ledger:
        ledger.verify()


def test_names_that_look_the_same_are_not_one_analyst(where: Where, source: Path) -> None:
    with closing(open_ledger(where)) as ledger, closing(session(ledger, source)):
        for who in ("Ann", "АNN", "annn"):
            fail(ledger, who, 2)
        reserve(ledger, "ann", None)


# --- request ids ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "shared answers"])
def test_the_same_request_id_of_another(where: Where, source: Path, fresh: bool) -> None:
    """Eve takes Ann's id first, with another question; each is answered, and neither learns of the other."""
    with closing(session(where, source, analyst="eve")) as eve, closing(session(where, source)) as ann:
        eves = ask(eve, PRICE, "report-17", low=30, fresh=fresh)
        anns = ask(ann, PRICE, "report-17", fresh=fresh)
        assert eves != anns
        assert ask(ann, PRICE, "report-17", fresh=fresh) == anns
        assert ask(eve, PRICE, "report-17", low=30, fresh=fresh) == eves
        assert ann.spent.epsilon == 2 * Fraction(PRICE)
        mine = seen(lambda: ask(ann, PRICE, "report-17", low=40, fresh=fresh))
        theirs = seen(lambda: ask(eve, PRICE, "report-17", fresh=fresh))
        assert mine == theirs, "the words are the same, whoever else has used it"
        with pytest.raises(UserError) as caught:
            ask(ann, PRICE, "report-17", low=40)
        assert "eve" not in str(caught.value)
        ann.ledger.verify()
    assert spent(where) == 2 * Fraction(PRICE)


def test_the_same_question_and_id_of_another_is_paid_or_shared(where: Where, source: Path) -> None:
    """What is shared is the stored answer to a question, not a request."""
    with closing(session(where, source, analyst="eve")) as eve, closing(session(where, source)) as ann:
        first = ask(eve, PRICE, "x", fresh=True)
        assert ask(ann, PRICE, "x", fresh=True) != first
        assert ann.spent.epsilon == 2 * Fraction(PRICE)


@pytest.mark.parametrize("mark", [":", "/", "|", " ", ",", "-", ".", "\u2028"])
def test_names_and_ids_that_run_together(where: Where, source: Path, mark: str) -> None:
    with closing(open_ledger(where)) as ledger, closing(session(ledger, source)):
        try:
            first = reserve(ledger, f"a{mark}b", "c")
        except UserError:
            return
        second = reserve(ledger, "a", f"b{mark}c")
        assert (first.state, second.state) == ("reserved", "reserved")
        assert first.number != second.number
        ledger.verify()
    with closing(open_ledger(where)) as ledger:
        ledger.verify()


def test_a_running_request_of_another_is_not_waited_for(where: Where, source: Path) -> None:
    with closing(open_ledger(where)) as ledger, closing(session(ledger, source)) as ann:
        reserve(ledger, "eve", "report-17")
        began = time.monotonic()
        ask(ann, PRICE, "report-17")
        assert time.monotonic() - began < 5


# --- the file ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o002, 0o077, 0o277])
def test_nobody_else_may_read_a_ledger(tmp_path: Path, source: Path, umask: int) -> None:
    path = tmp_path / "people.ledger"
    before = os.umask(umask)
    try:
        with closing(session(path, source)) as asking:
            ask(asking, PRICE)
            during = modes(path)
        session(path, source).close()
    finally:
        os.umask(before)
    for found in (during, modes(path)):
        assert all(mode in (0o600, 0o600 & ~umask) for mode in found.values()), found


def modes(path: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.glob(f"{path.name}*")}


def test_a_journal_that_others_made_readable(tmp_path: Path, source: Path) -> None:
    """A journal holds what the ledger held: questions and answers."""
    path, journal = tmp_path / "people.ledger", tmp_path / "people.ledger-journal"
    session(path, source).close()
    journal.unlink(missing_ok=True)
    journal.touch()
    journal.chmod(0o666)
    opened = seen(lambda: session(path, source))
    if "answer" in opened:
        with closing(session(path, source)) as asking:
            ask(asking, PRICE)
        assert modes(path).get(journal.name, 0o600) == 0o600


def test_another_salt_is_found(where: Where, source: Path) -> None:
    """Which rows of a person survive a cap must not be anybody's choice."""
    if not isinstance(where, Path):
        return
    with closing(session(where, source)) as asking:
        ask(asking, PRICE)
    with closing(sqlite3.connect(where)) as file, file:
        ((text,),) = file.execute("SELECT text FROM privet_entries WHERE number = 1").fetchall()
        at = text.index('"salt":"') + len('"salt":"')
        changed = text[:at] + ("1" if text[at] == "0" else "0") + text[at + 1 :]
        file.execute("UPDATE privet_entries SET text = ? WHERE number = 1", [changed])
    with pytest.raises(LedgerError):
        session(where, source)


def test_a_dataset_closes_for_all_only_by_failures_of_many(where: Where, source: Path) -> None:
    """What is interrupted or merely slow is no failure."""
    with closing(open_ledger(where)) as ledger, closing(session(ledger, source, budget=PureDP(1))) as asking:
        for n in range(12):
            ledger.settle(reserve(ledger, f"eve{n}", None), "interrupted")
        ask(asking, PRICE)
