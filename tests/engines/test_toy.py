"""An engine is one file and one line: a toy runs a session from end to end, certificate included."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import privet as pv
from privet.engines.registry import ENGINES
from privet.errors import QueryError

from .toy import Counting

ROWS = pa.table({"who": [1, 1, 2, 3], "age": [30, 31, 40, 50], "region": ["n", "n", "s", "s"]})


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[pv.Session]:
    monkeypatch.setitem(ENGINES, "counting", f"{Counting.__module__}:Counting")
    columns = {"age": pv.integer(0, 110), "region": pv.keys("n", "s")}
    people = pv.table("people", ROWS, protect=pv.person("who", max_rows=2), columns=columns)
    with pv.Session([people], budget=pv.PureDP(10**7), ledger=None, engine="counting") as session:
        yield session


def test_a_toy_engine_answers_questions(session: pv.Session) -> None:
    assert type(session.dataset.engine) is Counting
    before = Counting.asked
    answer = session.release("SELECT region, COUNT(*) AS n FROM people GROUP BY region", epsilon=10**6)
    assert answer.values("n") == [2, 2]
    assert Counting.asked > before
    pv.verify(answer.certificate)


def test_what_it_can_t_compute_is_refused_before_the_debit(session: pv.Session) -> None:
    people = session.tables["people"]
    with pytest.raises(QueryError, match="the engine 'counting' can't compute this: it has more than 50 groups"):
        session.release(people.group_by("age").agg(n=pv.count()), epsilon=1)
    assert session.spent == pv.PureDP.ZERO
