"""A dataset is opened once and shared: sessions of it are views, and a plan is believed only where it was made."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.prices import loss

import privet as pv
from privet.engines.sql.engine import SQLLooks
from privet.errors import QueryError, UserError
from privet.planner import plan
from privet.planner.plan import NoisyMeasurement

ROWS = pa.table({"id": [1, 2, 3, 4], "region": ["N", "N", "S", "S"], "income": [10.0, 20.0, 30.0, 40.0]})
COLUMNS = {"region": pv.keys("N", "S"), "income": pv.number(0, 100)}
COUNT = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


def people(**other: Any) -> pv.Table:
    return pv.table("people", ROWS, protect=pv.person("id", max_rows=1), columns={**COLUMNS, **other})


@pytest.fixture
def dataset() -> Iterator[pv.Dataset]:
    with pv.Dataset([people()], budget=pv.PureDP(10), ledger=None) as opened:
        yield opened


# --- views ------------------------------------------------------------------------------------------


def test_sessions_of_a_dataset_share_its_budget_and_its_answers(dataset: pv.Dataset) -> None:
    ann, bob = dataset.session(analyst="ann"), dataset.session(analyst="bob")
    first = ann.release(COUNT, epsilon=1)
    again = bob.release(COUNT, epsilon=1)
    assert again.noisy == first.noisy
    assert again.paid_before
    assert ann.debited
    assert not bob.debited
    assert bob.spent == ann.spent == pv.PureDP(1)
    assert {entry.analyst for entry in dataset.ledger.history("people") if entry.request_id} == {"ann"}


def test_a_view_ends_by_itself_and_leaves_the_dataset_open(dataset: pv.Dataset) -> None:
    with dataset.session(analyst="ann") as ann:
        ann.release(COUNT, epsilon=1)
    with pytest.raises(UserError, match="this session is closed"):
        ann.release(COUNT, epsilon=1, fresh=True)
    with pytest.raises(UserError, match="this session is closed"):
        ann.release_value(3, sensitivity=1, epsilon=1, label="x")
    assert dataset.session().release(COUNT, epsilon=1, fresh=True).spent == pv.PureDP(1)
    assert dataset.session().spent == pv.PureDP(2)


def test_a_closed_dataset_answers_nobody_and_spends_nothing() -> None:
    with pv.Dataset([people()], budget=pv.PureDP(10), ledger=None) as dataset:
        view = dataset.session()
    with pytest.raises(UserError, match="this dataset is closed"):
        view.release(COUNT, epsilon=1)
    assert view.spent == pv.PureDP.ZERO


def test_a_session_of_one_person_closes_its_dataset() -> None:
    with pv.Session([people()], budget=pv.PureDP(10), ledger=None) as session:
        view = session.dataset.session(analyst="bob")
        view.release(COUNT, epsilon=1)
    with pytest.raises(UserError, match="this dataset is closed"):
        view.release(COUNT, epsilon=1, fresh=True)


def test_a_dataset_of_a_policy_knows_each_analyst_s_cap(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(ROWS, tmp_path / "people.parquet")
    (tmp_path / "privet.toml").write_text(
        """
        ledger = "people.ledger"
        [datasets.people]
        adjacency = "add/remove"
        budget = { epsilon = 3 }
        analysts = { ann = { epsilon = 1 } }
        [datasets.people.tables.people]
        source = "people.parquet"
        protect = { person = "id", max_rows = 1 }
        [datasets.people.tables.people.columns]
        region = { keys = ["N", "S"] }
        """
    )
    with pv.Dataset.open(tmp_path / "privet.toml") as dataset:
        ann, bob = dataset.session(analyst="ann"), dataset.session(analyst="bob")
        assert (ann.remaining.guarantee, bob.remaining.guarantee) == (pv.PureDP(1), pv.PureDP(3))
        with pytest.raises(pv.BudgetError):
            ann.release(COUNT, epsilon=2)
        bob.release(COUNT, epsilon=2)
        assert (ann.remaining.guarantee, bob.remaining.guarantee) == (pv.PureDP(1), pv.PureDP(1))


def test_a_dataset_can_t_be_copied(dataset: pv.Dataset) -> None:
    with pytest.raises(UserError, match="a dataset can't be copied or sent to another process"):
        pickle.dumps(dataset)


def test_a_slow_question_does_not_hold_up_another(dataset: pv.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """One session's question waits in the engine until the other session's question was asked and answered."""
    real, entered, other_done = SQLLooks.answer, threading.Event(), threading.Event()
    waited = []

    def answer(looks: SQLLooks, statement: Any) -> Any:
        if threading.current_thread().name == "slow":
            entered.set()
            waited.append(other_done.wait(30))
        return real(looks, statement)

    monkeypatch.setattr(SQLLooks, "answer", answer)
    slow = threading.Thread(
        target=lambda: dataset.session(analyst="ann").release(COUNT, epsilon=1), name="slow", daemon=True
    )
    slow.start()
    assert entered.wait(30)
    assert dataset.session(analyst="bob").release("SELECT COUNT(*) AS n FROM people", epsilon=1).spent == pv.PureDP(1)
    other_done.set()
    slow.join(30)
    assert waited == [True]
    assert dataset.session().spent == pv.PureDP(2)


# --- plans ------------------------------------------------------------------------------------------


def test_a_plan_is_released_as_its_question_is(dataset: pv.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    session = dataset.session()
    made = session.plan(COUNT, epsilon=1)
    text = session.explain(COUNT, epsilon=1)
    monkeypatch.setattr("privet.questions.plan", None)  # nothing is planned twice
    monkeypatch.setattr("privet.sql.parse", None)
    assert session.explain(made) == text
    assert session.paid_before(made) is None
    answer = session.release(made)
    assert answer.spent == pv.PureDP(1)
    assert session.paid_before(made) == pv.PureDP(1)
    (debit,) = [entry for entry in dataset.ledger.history("people") if entry.request_id]
    assert debit.statement == COUNT


@pytest.mark.parametrize("asked", [{"epsilon": 1}, {"within": {"n": 5}}, {"within": {"n": 1000}}])
def test_a_plan_from_elsewhere_is_made_again_and_compared(dataset: pv.Dataset, asked: dict[str, Any]) -> None:
    session = dataset.session()
    copied = pickle.loads(pickle.dumps(session.plan(COUNT, **asked)))
    assert session.release(copied).spent == copied.guarantee()


def cheaper(part: NoisyMeasurement) -> NoisyMeasurement:
    return replace(part, price=pv.PureDP(loss(part.price) / 2))


def less_noise(part: NoisyMeasurement) -> NoisyMeasurement:
    return replace(part, scale=part.scale / 2)


@pytest.mark.parametrize("forge", [cheaper, less_noise])
def test_a_forged_plan_is_refused_before_it_is_paid_for(dataset: pv.Dataset, forge: Any) -> None:
    session = dataset.session()
    made = session.plan("SELECT SUM(income) AS s FROM people", epsilon=1)
    forged = replace(made, noised=tuple(map(forge, made.noised)))
    with pytest.raises(QueryError, match="this plan was not made for this dataset"):
        session.release(forged)
    assert session.spent == pv.PureDP.ZERO


def test_a_plan_for_other_tables_is_refused(dataset: pv.Dataset) -> None:
    session = dataset.session()
    with pv.Session([people(income=pv.number(0, 10))], budget=pv.PureDP(10), ledger=None) as other:
        elsewhere = other.plan("SELECT SUM(income) AS s FROM people", epsilon=1)
    with pytest.raises(QueryError, match="the session's table 'people' is declared differently"):
        session.release(elsewhere)
    visits = pv.table("visits", ROWS, protect=pv.person("id", max_rows=1), columns=COLUMNS)
    with pytest.raises(QueryError, match=r"the session has no table 'visits'\. It has: people"):
        session.explain(plan(visits.agg(n=pv.count()), epsilon=1))
    assert session.spent == pv.PureDP.ZERO


def test_a_plan_below_the_least_price_is_refused(dataset: pv.Dataset) -> None:
    session = dataset.session()
    with pytest.raises(QueryError, match="below the minimum price of a question"):
        session.release(plan(people().agg(n=pv.count()), epsilon="0.0001"))
    with pytest.raises(QueryError, match="this plan was not made for this dataset"):
        session.release(plan(people().agg(n=pv.count()), within={"n": 10**6}))
    assert session.spent == pv.PureDP.ZERO


def test_a_plan_says_already_how_it_is_asked(dataset: pv.Dataset) -> None:
    session = dataset.session()
    with pytest.raises(QueryError, match="a plan already says its epsilon"):
        session.release(session.plan(COUNT, epsilon=1), epsilon=2)


def test_an_argument_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match=r"there is no argument 'verison'\. Did you mean version\?"):
        pv.Session([people()], budget=pv.PureDP(1), ledger=None, verison="2")  # type: ignore[call-arg]
