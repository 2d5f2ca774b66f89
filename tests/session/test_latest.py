"""A question that is asked again is planned once; one that only looks the same is planned anew."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.errors import QueryError
from privet.exact import Exact
from privet.planner import ReleasePlan, latest
from privet.questions import Questions
from privet.tables.query import Query

ROWS = pa.table({"x": [1, 2, 3], "ok": [True, False, True]})
SQL = "SELECT COUNT(*) AS n FROM t WHERE x > 1"


@pytest.fixture
def table() -> pv.Table:
    columns = {"x": pv.integer(0, 2000), "ok": pv.boolean()}
    return pv.table("t", ROWS, protect=pv.each_row(), columns=columns)


@pytest.fixture
def session(table: pv.Table) -> Any:
    with pv.Session([table], budget=pv.PureDP(100), ledger=None) as opened:
        yield opened


def test_the_same_question_is_planned_once(session: Any, table: pv.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    real = Questions._plan

    def counted(self: Questions, query: Query, **options: Any) -> ReleasePlan:
        made.append(query)
        return real(self, query, **options)

    monkeypatch.setattr(Questions, "_plan", counted)
    asked = table.agg(n=pv.count())
    for question in (asked, SQL):
        first = session.plan(question, epsilon=1)
        session.explain(question, epsilon=1)
        session.release(question, epsilon=1)
        assert session.plan(question, epsilon=1) is first
    assert len(made) == 2


def test_what_only_looks_the_same_is_planned_anew(session: Any, table: pv.Table) -> None:
    """In Python 1, 1.0 and True are equal, and so are questions that contain them."""
    asked = table.agg(n=pv.count())
    assert session.plan(asked, epsilon=1, simultaneous=True).simultaneous
    with pytest.raises(QueryError, match="simultaneous"):
        session.plan(asked, epsilon=1, simultaneous=1)
    assert session.plan(asked, epsilon=2).price != session.plan(asked, epsilon=1).price
    one, again = (table.where(pv.col("x") == 1).agg(n=pv.count()) for _ in range(2))
    assert one == again
    assert session.plan(one, epsilon=1).query is one
    assert session.plan(again, epsilon=1).query is again
    plans = [session.plan(SQL.replace("1", str(i)), epsilon=1) for i in range(9)]
    assert len({plan.query for plan in plans}) == 9
    for weights in ({"n": 1}, {"n": 3}):
        assert dict(session.plan(asked, epsilon=1, weights=weights).weights) == weights


def test_a_plan_is_for_the_dataset_as_it_is(session: Any, table: pv.Table) -> None:
    """Not for what the steward said before, nor for another session."""
    session.plan(SQL, epsilon="0.01")
    session.dataset.min_epsilon = Exact(1)
    with pytest.raises(QueryError, match="minimum price"):
        session.plan(SQL, epsilon="0.01")
    other = pv.table("t", ROWS, protect=pv.each_row(), columns={"x": pv.integer(0, 9)})
    with pv.Session([other], budget=pv.PureDP(100), ledger=None) as second:
        assert second.plan(SQL, epsilon=1) != session.plan(SQL, epsilon=1)
        with pytest.raises(QueryError, match="declared differently"):
            second.plan(table.agg(n=pv.count()), epsilon=1)


def test_few_plans_are_kept_and_none_with_many_groups(session: Any, table: pv.Table) -> None:
    first = session.plan(SQL, epsilon=1)
    for i in range(latest._MOST):
        session.plan(SQL, epsilon=2 + i)
    assert len(session._latest._kept) == latest._MOST
    assert session.plan(SQL, epsilon=1) is not first
    large = table.group_by("x").agg(n=pv.count())
    assert session.plan(large, epsilon=1) is not session.plan(large, epsilon=1)


def test_nobody_finds_the_plans_of_another_analyst(session: Any) -> None:
    """The time of a plan would tell what others ask."""
    first = session.plan(SQL, epsilon=1)
    assert session.plan(SQL, epsilon=1) is first
    other = pv.Session.of(session.dataset, analyst="bob")
    assert other.plan(SQL, epsilon=1) is not first


FORKING = """
import os, threading, warnings
from privet.planner.latest import Latest

warnings.simplefilter("ignore")
latest, done = Latest(), threading.Event()


def look() -> None:
    while not done.is_set():
        latest.find("SELECT", {"epsilon": 1})


threads = [threading.Thread(target=look, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        latest.find("SELECT", {"epsilon": 1})
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
done.set()
for thread in threads:
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_does_not_wait_for_threads_that_it_does_not_have() -> None:
    subprocess.run([sys.executable, "-c", FORKING], check=True, timeout=60)


def test_threads_share_the_plans(table: pv.Table) -> None:
    """They find the right plan or none, and few are kept."""
    shared = latest.Latest()
    with pv.Session([table], budget=pv.PureDP(100), ledger=None) as session:
        made = [session.plan(f"SELECT COUNT(*) AS n{i} FROM t", epsilon=1) for i in range(40)]
    plans = {f"q{i}": latest.Known(plan, {}, ()) for i, plan in enumerate(made)}

    def work(start: int) -> None:
        for i in range(3000):
            name = f"q{(start + 7 * i) % 40}"
            found = shared.find(name, {"epsilon": 1})
            assert found is None or found is plans[name]
            shared.keep(name, {"epsilon": 1}, plans[name])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert len(shared._kept) <= latest._MOST
