"""Questions that wait, run long, fail or are stopped; and what can be seen of them, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.api.serving import BY_REGION, CANARY, COUNT, Running, serving

from privet.engines.base import FAILED
from privet.engines.duckdb.engine import DuckDB
from privet.errors import NoAnswer
from privet.server.accounts import Role
from privet.server.pace import Deadlines, Ladder, Watch
from privet.system.stopping import Stoppable, current

QUERY = "/datasets/people/query"
SERVER = "pace = 0\nwait = 2\nrunning = 2\nwaiting = 3\nwaiting_each = 2\ndeadline = 100"


class Held:
    """An engine whose answers wait until they are let go, or end as the test says."""

    name = "held"

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.let_go = threading.Event()
        self.fails: Exception | None = None
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    @contextmanager
    def snapshot(self) -> Iterator[Held]:
        yield self

    def answer(self, statement: Any) -> Any:
        self.asked += 1
        question = current()
        assert question is not None
        if self.fails is not None:
            raise self.fails
        ended = threading.Event()
        with suppress(Exception), question.ended_by(ended.set):
            while not self.let_go.is_set() and not ended.is_set():
                time.sleep(0.005)
        if question.stopped:
            raise NoAnswer(FAILED)
        return self._engine.answer(statement)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("held"), server=SERVER) as server:
        yield server


@contextmanager
def held(running: Running) -> Iterator[Held]:
    dataset = running.server.datasets["people"]
    engine = dataset.engine
    dataset.engine = stand_in = Held(engine)  # type: ignore[assignment]
    try:
        yield stand_in
    finally:
        stand_in.let_go.set()
        deadline = time.monotonic() + 10
        while running.server.asking._jobs and time.monotonic() < deadline:
            time.sleep(0.01)
        dataset.engine = engine


@contextmanager
def settings(running: Running, **changes: float) -> Iterator[None]:
    """The server with other settings, for a while."""
    asking = running.server.asking
    before = asking.settings
    asking.settings = replace(before, **changes)  # type: ignore[arg-type]
    try:
        yield
    finally:
        asking.settings = before


def fresh(epsilon: float = 0.01) -> dict[str, Any]:
    return {"sql": COUNT, "epsilon": epsilon, "fresh": True}


def debits(running: Running) -> int:
    return sum(entry.kind == "reserved" for entry in running.server.ledger.history("people"))


def until(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_long_question_gets_a_place_to_ask(running: Running, ann: httpx.Client, bob: httpx.Client) -> None:
    with held(running) as engine:
        headers = {"Idempotency-Key": "long", "Prefer": "respond-async"}
        response = ann.post(QUERY, json=fresh(), headers=headers)
        assert response.status_code == 202
        pending = response.json()
        assert (pending["state"], pending["paid"], pending["request_id"]) == ("running", True, "long")
        assert response.headers["location"] == pending["location"] == "/api/v1/datasets/people/answers/long"
        assert response.headers["retry-after"] == "1"
        # the debit is made, and whoever asks for the answer is told to wait; nobody else finds it
        assert running.server.ledger.request(dataset="people", analyst="ann", request_id="long") is not None
        quick = {"Prefer": "wait=0"}
        assert ann.get("/datasets/people/answers/long", headers=quick).status_code == 202
        assert bob.get("/datasets/people/answers/long", headers=quick).status_code == 404
        # a retry is the same request; another question is not
        assert ann.post(QUERY, json=fresh(), headers=headers).status_code == 202
        assert ann.post(QUERY, json=fresh(0.02), headers=headers).status_code == 409
        assert engine.asked == 1
        engine.let_go.set()
        answer = ann.get("/datasets/people/answers/long")
        assert answer.status_code == 200
        assert ann.post(QUERY, json=fresh(), headers=headers).json()["rows"] == answer.json()["rows"]


def test_who_loses_access_while_waiting_does_not_pay(running: Running, ann: httpx.Client) -> None:
    accounts, before = running.server.accounts, debits(running)
    browser, lost = running.browser("ann"), running.token("ann")
    with held(running) as engine, ThreadPoolExecutor(3) as threads:
        first = threads.submit(ann.post, QUERY, json=fresh())
        until(lambda: engine.asked == 1)
        waiting = [threads.submit(each.post, QUERY, json=fresh()) for each in (browser, lost)]
        until(lambda: running.server.asking._answering.length == 2)
        accounts.revoke_token(lost.get("/me").json()["token"]["id"])
        accounts.set_access("ann", Role.ANALYST, ["trips"])
        try:
            engine.let_go.set()
            assert [each.result().status_code for each in (first, *waiting)] == [200, 403, 403]
            assert "Nothing was spent" in waiting[0].result().json()["detail"]
        finally:
            accounts.set_access("ann", Role.ANALYST, ["people"])
    assert debits(running) == before + 1


def test_one_analyst_can_t_fill_the_queue(running: Running, ann: httpx.Client, bob: httpx.Client) -> None:
    before = debits(running)
    with held(running) as engine, ThreadPoolExecutor(8) as threads:
        first = threads.submit(ann.post, QUERY, json=fresh())
        until(lambda: engine.asked == 1)
        waiting = [threads.submit(ann.post, QUERY, json=fresh()) for _ in range(2)]
        until(lambda: running.server.asking._answering.length == 2)
        refused = ann.post(QUERY, json=fresh())
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert "Nothing was spent" in refused.json()["detail"]
        # another analyst is served: there is a slot that ann can't have
        other = threads.submit(bob.post, QUERY, json=fresh())
        until(lambda: engine.asked == 2)
        assert debits(running) == before + 2, "who waits has not paid"
        third = threads.submit(bob.post, QUERY, json=fresh())
        until(lambda: running.server.asking._answering.length == 3)
        full = bob.post(QUERY, json=fresh())
        assert (full.status_code, full.headers["retry-after"]) == (503, "1")
        # reading, planning and stored answers need no slot
        assert bob.post("/datasets/people/explain", json={"sql": BY_REGION, "epsilon": 0.1}).status_code == 200
        engine.let_go.set()
        statuses = [future.result().status_code for future in (first, *waiting, other, third)]
        assert statuses == [200] * 5


def test_who_waits_too_long_has_not_paid_and_keeps_the_place(running: Running, ann: httpx.Client) -> None:
    with held(running) as engine:
        ann.post(QUERY, json=fresh(), headers={"Prefer": "respond-async"})
        until(lambda: engine.asked == 1)
        before, key = debits(running), {"Idempotency-Key": "patient"}
        with settings(running, wait=0.2):
            told = ann.post(QUERY, json=fresh(), headers=key)
        assert (told.status_code, told.headers["retry-after"]) == (503, "1")
        assert "Nothing was spent" in told.json()["detail"]
        assert debits(running) == before
        assert ann.get("/datasets/people/answers/patient").status_code == 404
        assert running.server.asking._answering.length == 1
        engine.let_go.set()
        assert ann.post(QUERY, json=fresh(), headers=key).status_code == 200
        assert debits(running) == before + 1


def test_a_question_ends_at_its_deadline_and_stays_paid(running: Running, ann: httpx.Client, sam: httpx.Client) -> None:
    before = debits(running)
    with held(running), settings(running, deadline=0.3):
        failed = ann.post(QUERY, json=fresh(), headers={"Idempotency-Key": "too long"})
    problem = failed.json()
    assert (failed.status_code, problem["kind"], problem["spent"]) == (502, "NoAnswer", {"epsilon": "0.01"})
    assert problem["detail"] == "The question could not be answered. It was paid for, and nothing was released."
    assert debits(running) == before + 1
    again = ann.get("/datasets/people/answers/too long")
    assert (again.status_code, again.json()["detail"]) == (502, problem["detail"])
    assert ann.post(QUERY, json=fresh()).status_code == 200, "the engine goes on"
    assert sam.get("/datasets/people/budget").json()["failures"] == 1


def test_every_failure_after_the_debit_looks_the_same(running: Running, ann: httpx.Client, sam: httpx.Client) -> None:
    sam.post("/datasets/people/reopen", json={"reason": "a test"})
    seen = set()
    with held(running) as engine:
        for error in (NoAnswer(FAILED), RuntimeError(f"row {CANARY} is wrong"), MemoryError(CANARY)):
            engine.fails = error
            response = ann.post(QUERY, json=fresh())
            seen.add((response.status_code, response.content, tuple(sorted(response.headers.keys()))))
        assert len(seen) == 1
        closed = ann.post(QUERY, json=fresh())
    assert (closed.status_code, closed.json()["kind"]) == (503, "DatasetClosed")
    assert CANARY not in running.log.getvalue()
    assert sam.post("/datasets/people/reopen", json={"reason": "it was a test"}).status_code == 200
    assert ann.post(QUERY, json=fresh()).status_code == 200


def test_who_gives_up_while_waiting_is_dropped_after_a_while(running: Running, ann: httpx.Client) -> None:
    from privet.server import asking

    before = debits(running)
    with pytest.MonkeyPatch.context() as patch, held(running) as engine:
        patch.setattr(asking, "_KEPT", 0.05)
        ann.post(QUERY, json=fresh(), headers={"Prefer": "respond-async"})
        until(lambda: engine.asked == 1)
        with suppress(httpx.ReadTimeout):
            ann.post(QUERY, json=fresh(), timeout=0.3)
        until(lambda: running.server.asking._answering.length == 0)
        assert len(running.server.asking._jobs) == 1
        assert debits(running) == before + 1


# --- the ladder -----------------------------------------------------------------------------------


def test_what_can_be_seen_of_an_answer_follows_the_ladder(tmp_path: Path) -> None:
    """Until the step there is no trace of the answer: in the response, the ledger, the history or a stored answer."""
    with serving(tmp_path, server="pace = 3") as running:
        ann, bob = running.token("ann"), running.token("bob")
        with held(running) as engine, ThreadPoolExecutor(2) as threads:
            engine.let_go.set()  # it answers at once
            start = time.monotonic()
            asked = threads.submit(
                ann.post, QUERY, json={"sql": COUNT, "epsilon": 0.1}, headers={"Idempotency-Key": "k"}
            )
            until(lambda: engine.asked == 1)
            assert ann.get("/datasets/people/answers/k", headers={"Prefer": "wait=0"}).status_code == 202
            assert [entry["state"] for entry in ann.get("/datasets/people/history").json()["entries"]] == ["running"]
            before = bob.post("/datasets/people/explain", json={"sql": COUNT, "epsilon": 0.1}).json()
            assert before["paid_before"] is None
            head = running.server.ledger.head()
            assert asked.result().status_code == 200
            assert time.monotonic() - start >= 3
            assert running.server.ledger.head().number == head.number + 1
            # what is stored is not held
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Watch, "_hold", None)
                assert bob.post(QUERY, json={"sql": COUNT, "epsilon": 0.1}).json()["paid_before"]


def test_a_failure_leaves_at_a_step_too(tmp_path: Path) -> None:
    with serving(tmp_path, server="pace = 0.5") as running:
        ann = running.token("ann")
        with held(running) as engine:
            engine.fails = RuntimeError("at once")
            start = time.monotonic()
            assert ann.post(QUERY, json=fresh()).status_code == 502
            assert time.monotonic() - start >= 0.5


def test_steps_of_the_ladder() -> None:
    ladder = Ladder(0.25)
    for taken in (0.0, 0.1, 0.25, 0.2501, 1.0, 1.1, 599.0):
        step = ladder.step(taken)
        assert step >= taken
        assert step == 0.25 or step < 2 * taken
        assert (step / 0.25).as_integer_ratio()[1] == 1
    assert Ladder(0).step(0.3) == 0.3


# --- deadlines ------------------------------------------------------------------------------------


def test_each_question_is_stopped_at_its_own_deadline_and_one_that_ended_is_not() -> None:
    deadlines = Deadlines()
    long, ended, short, late = (Stoppable() for _ in range(4))
    deadlines.add(long, 100)
    deadlines.add(ended, 0.1)
    deadlines.drop(ended)
    deadlines.add(short, 0.1)
    until(lambda: short.stopped)
    deadlines.add(late, 0.05)
    until(lambda: late.stopped)
    assert (long.stopped, ended.stopped) == (False, False)


# --- stopping one of several ----------------------------------------------------------------------


def test_one_statement_of_duckdb_is_stopped_and_another_goes_on(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With real cursors: one counts for ever until it is stopped; meanwhile and afterwards others are answered."""
    engine = running.server.datasets["people"].engine
    assert isinstance(engine, DuckDB)
    session = running.server.datasets["people"].session(analyst="x")
    statement = session.plan(COUNT, epsilon=1).statements()[0]
    question, begun, ended = Stoppable(), threading.Event(), []

    def endless(cursor: Any, sql: str, context: Any) -> Any:
        if current() is question:
            begun.set()
            return cursor.execute("SELECT count(*) FROM range(1000000000000) WHERE hash(range) = 1").fetchall()
        return real(cursor, sql, context)

    real = engine._run
    monkeypatch.setattr(engine, "_run", endless)

    def run() -> None:
        with question.run():
            try:
                engine.answer(statement)
            except NoAnswer as error:
                ended.append((error.args, error.__cause__, error.__context__))

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(10)
    assert engine.answer(statement) == [[50]]
    question.stop()
    thread.join(10)
    assert ended == [((FAILED,), None, None)]
    assert engine.answer(statement) == [[50]]
