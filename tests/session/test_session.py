"""The whole way: a table, a question, a debit, an answer, a certificate; and what is refused on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privet as pv
from privet.errors import BudgetError, DatasetClosed, NoAnswer, QueryError, UserError
from privet.ledger import MemoryLedger
from privet.query import Query, Table

PEOPLE = pa.table(
    {
        "id": pa.array([i // 2 for i in range(400)], pa.int64()),
        "age": pa.array([None if i % 50 == 0 else 18 + i % 60 for i in range(400)], pa.int64()),
        "income": pa.array([float("nan") if i % 40 == 0 else 100.0 * (i % 100) for i in range(400)], pa.float64()),
        "region": pa.array([("north", "south", "west", None)[i % 4] for i in range(400)], pa.string()),
    }
)
VISITS = pa.table(
    {"who": pa.array([i % 50 for i in range(200)], pa.int64()), "minutes": pa.array([i % 90 for i in range(200)])}
)
COLUMNS: dict[str, Any] = {
    "age": pv.integer(0, 110),
    "income": pv.number(0, 10_000),
    "region": pv.keys("north", "south", other="elsewhere"),
}


def people(**how: Any) -> Table:
    how = {"protect": pv.person("id", max_rows=2), "columns": COLUMNS, **how}
    return pv.table("people", PEOPLE, **how)


def visits() -> Table:
    return pv.table("visits", VISITS, protect=pv.person("who", max_rows=4), columns={"minutes": pv.integer(0, 90)})


def a_session(*tables: Table, budget: Any = None, **how: Any) -> pv.Session:
    return pv.Session(
        list(tables) or [people()], budget=budget or pv.PureDP(3), **{"ledger": None, "threads": 1, **how}
    )


@pytest.fixture
def session() -> Iterator[pv.Session]:
    with a_session() as made:
        yield made


def count(table: Any = None) -> Query:
    return (table or people()).agg(n=pv.count())


# --- the way through --------------------------------------------------------------------------------


def test_the_whole_way(tmp_path: Path) -> None:
    public = pv.new_signing_key(tmp_path / "steward.key")
    table = people()
    with a_session(table, signing_key=tmp_path / "steward.key") as session:
        query = table.where(pv.col("age") >= 18).group_by("region").agg(n=pv.count(), pay=pv.mean("income"))
        before = session.explain(query, epsilon=0.5, assuming=100)
        assert session.spent == pv.PureDP.ZERO, "explaining is free"
        assert before.endswith("epsilon 3 is left of epsilon 3.")
        answer = session.release(query, epsilon=0.5)
        assert (answer.spent, answer.remaining) == (pv.PureDP(0.5), pv.PureDP(2.5))
        assert (session.spent, session.remaining) == (pv.PureDP(0.5), pv.PureDP(2.5))
        found = pv.verify(answer.certificate, key=public, ledger=session.ledger)
        assert (found.rules, found.signature, found.ledger) == (True, True, True)
        path = answer.certificate.save(tmp_path / "answer.json")
        assert pv.verify(path, key=public, ledger=session.ledger).ledger
        (entry,) = session.ledger.history("people")
        assert (entry.state, entry.answer, entry.analyst) == ("answered", answer.certificate.digest, "analyst")
        assert entry.events == (answer.plan.event(),)


def test_at_a_huge_epsilon_the_answer_is_the_statistic() -> None:
    """Noise all but off: the engine, the planner and the post-processing together compute the right numbers."""
    table = pv.table(
        "people", PEOPLE, protect=pv.each_row(), columns={**COLUMNS, "income": pv.number(0, 10_000, step=1)}
    )
    with a_session(table, budget=pv.PureDP(10**12)) as session:
        asked = table.where(pv.col("age") >= 40).group_by("region").agg(
            n=pv.count(), k=pv.count("income"), s=pv.sum("income"), m=pv.mean("income"), v=pv.variance("income")
        )  # fmt: skip
        answer = session.release(asked, epsilon=10**10)
    frame = PEOPLE.to_pandas()
    frame = frame[frame.age >= 40]
    frame["region"] = frame.region.where(frame.region.isin(["north", "south"]) | frame.region.isna(), "elsewhere")
    cells = answer.plan.cells(answer.noisy)
    for i, region in enumerate(["north", "south", "elsewhere"]):
        rows = frame[frame.region == region]
        assert cells["n"].values[i] == len(rows)
        assert cells["k"].values[i] == rows.income.count()
        assert cells["s"].values[i] == pytest.approx(rows.income.sum(), rel=1e-6)
        assert cells["m"].values[i] == pytest.approx(rows.income.mean(), rel=1e-6)
        assert cells["v"].values[i] == pytest.approx(rows.income.var(ddof=0), rel=1e-6)


def test_answers_differ_and_are_near(session: pv.Session) -> None:
    answers = [session.release(count(), epsilon="0.1").plan for _ in range(3)]
    values = [session.release(count(), epsilon="0.5").noisy for _ in range(4)]
    assert len(set(values)) > 1
    assert all(abs(value[0][0][0] - 400) < 200 for value in values)
    assert answers[0] == answers[1]


def test_within_and_its_price(session: pv.Session) -> None:
    answer = session.release(count(), within={"n": 20})
    expected = answer.plan.expected("n")
    assert expected is not None
    assert expected <= 20
    assert session.spent == answer.spent == answer.plan.guarantee()
    assert pv.verify(answer.certificate, ledger=session.ledger).ledger


def test_every_option_reaches_the_plan(session: pv.Session) -> None:
    query = people().agg(n=pv.count(), m=pv.mean("income"))
    how: dict[str, Any] = {"confidence": 0.9, "simultaneous": True, "assuming": 77, "weights": {"n": 2}}
    made = session.release(query, epsilon="1/7", **how).plan
    assert made == session.plan(query, epsilon="1/7", **how)
    assert (made.confidence, made.simultaneous, made.assuming, made.epsilon) == (
        Fraction(9, 10),
        True,
        77,
        Fraction(1, 7),
    )


def test_two_tables_share_a_budget() -> None:
    one, two = people(), visits()
    with a_session(one, two) as session:
        assert session.name == "people"
        session.release(count(one), epsilon=1)
        session.release(two.agg(m=pv.mean("minutes")), epsilon=1)
        session.release(one.join(two).agg(n=pv.count(), k=pv.count_people()), epsilon="0.5")
        assert session.remaining == pv.PureDP(0.5)
        with pytest.raises(BudgetError, match=r"epsilon=0\.5$"):
            session.release(count(two), epsilon=1)


def test_a_public_table() -> None:
    regions = pv.public_table(
        "regions", pa.table({"region": ["north", "south"], "area": [7, 9]}), key="region"
    )  # fmt: skip
    table = people()
    query = table.join(regions, on="region").agg(n=pv.count(), a=pv.mean("area"))
    with a_session(table, public=[regions]) as session:
        answer = session.release(query, epsilon=1)
        assert pv.verify(answer.certificate, ledger=session.ledger).ledger
    with (
        a_session(table) as session,
        pytest.raises(QueryError, match=r"does not know the public table 'regions'.*public=\["),
    ):
        session.release(query, epsilon=1)


def test_what_is_public_costs_nothing() -> None:
    table = pv.table("people", PEOPLE, protect=pv.each_row(), adjacency="replace", rows=400, columns=COLUMNS)
    with a_session(table) as session:
        answer = session.release(count(table), epsilon=1)
        assert answer.plan.cells(answer.noisy)["n"].values == (400,)
        assert session.spent == answer.spent == pv.PureDP.ZERO
        assert pv.verify(answer.certificate, ledger=session.ledger).ledger


@pytest.mark.parametrize("rows", [399, 401])
def test_a_public_number_of_rows_that_is_wrong_is_refused(rows: int) -> None:
    with pytest.raises(UserError, match="400"):
        a_session(pv.table("people", PEOPLE, protect=pv.each_row(), adjacency="replace", rows=rows, columns=COLUMNS))


def test_an_approximate_budget() -> None:
    with a_session(budget=pv.ApproxDP(1, 1e-6)) as session:
        assert "is left of" in session.explain(count(), epsilon=0.5)
        session.release(count(), epsilon=0.5)
        assert session.remaining == pv.ApproxDP(0.5, 1e-6)
        with pytest.raises(BudgetError):
            session.release(count(), epsilon=0.6)


def test_a_ledger_is_shared_by_sessions() -> None:
    ledger = MemoryLedger()
    with a_session(ledger=ledger) as one, a_session(ledger=ledger) as two:
        one.release(count(), epsilon=2)
        assert two.remaining == pv.PureDP(1)
        with pytest.raises(BudgetError):
            two.release(count(), epsilon=2)
    with pytest.raises(UserError, match="was made with budget epsilon 3, and is opened with epsilon 4"):
        a_session(ledger=ledger, budget=pv.PureDP(4))
    with a_session(ledger=ledger, budget=pv.PureDP(4), name="others") as other:
        assert other.remaining == pv.PureDP(4)


# --- a value of one's own -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1234, 12.5, [1, 2, 3], [0.5, 1.5], np.array([1.0, 2.0]), np.int64(7)])
def test_a_value_of_ones_own(session: pv.Session, value: Any, tmp_path: Path) -> None:
    found = session.release_value(value, sensitivity=1, epsilon="0.5", label="my own statistic")
    assert (found.spent, found.remaining, session.remaining) == (pv.PureDP(0.5), pv.PureDP(2.5), pv.PureDP(2.5))
    assert np.shape(found.value) == np.shape(value)
    assert np.abs(np.asarray(found.value, float) - np.asarray(value, float)).max() < 200
    low, high = found.interval(0.9)
    assert (np.asarray(low) <= np.asarray(found.value)).all()
    assert (np.asarray(found.value) <= np.asarray(high)).all()
    path = found.certificate.save(tmp_path / "value.json")
    assert pv.verify(path, ledger=session.ledger).ledger
    assert "1234" not in repr(found.mechanism)


@pytest.mark.parametrize("label", ["", "   ", None])
def test_a_value_says_what_it_is(session: pv.Session, label: Any) -> None:
    with pytest.raises(UserError, match="label must say what the value is"):
        session.release_value(1, sensitivity=1, epsilon=1, label=label)
    assert session.spent == pv.PureDP.ZERO


@pytest.mark.parametrize("how", [{"sensitivity": 0}, {"sensitivity": -1}, {"epsilon": 0}, {"epsilon": float("nan")}])
def test_a_value_of_no_sensitivity_is_refused_before_the_debit(session: pv.Session, how: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        session.release_value(1, **{"sensitivity": 1, "epsilon": 1, "label": "x", **how})
    assert session.ledger.history("people") == ()


# --- refusals: nothing is spent -----------------------------------------------------------------------


def test_a_table_that_the_session_does_not_have(session: pv.Session) -> None:
    with pytest.raises(QueryError, match=r"the session has no such table 'visits'\. It has: people"):
        session.release(count(visits()), epsilon=1)
    assert session.spent == pv.PureDP.ZERO


@pytest.mark.parametrize(
    "other",
    [
        {"protect": pv.person("id", max_rows=1)},
        {"protect": pv.each_row()},
        {"adjacency": "replace"},
        {"columns": {**COLUMNS, "income": pv.number(0, 1)}},
        {"columns": {**COLUMNS, "income": pv.number(0, 10_000, required=True)}},
        {"columns": {"age": pv.integer(0, 110)}},
    ],
)
def test_another_declaration_of_the_same_table_is_another_table(session: pv.Session, other: dict[str, Any]) -> None:
    """An analyst can't bring bounds or a protection of their own."""
    with pytest.raises(QueryError, match="the session has no such table 'people'"):
        session.release(count(people(**other)), epsilon=1)
    assert session.spent == pv.PureDP.ZERO


def test_another_declaration_of_a_public_table() -> None:
    one = pv.public_table("regions", pa.table({"region": ["north"], "area": [7]}), key="region")
    two = pv.public_table("regions", pa.table({"region": ["north"], "area": [8]}), key="region")
    table = people()
    with a_session(table, public=[one]) as session, pytest.raises(QueryError, match="does not know the public table"):
        session.release(table.join(two, on="region").agg(n=pv.count()), epsilon=1)


@pytest.mark.parametrize(
    "how", [{}, {"epsilon": 0}, {"epsilon": 1, "within": {"n": 1}}, {"epsilon": 1, "confidence": 2}, {"epsilon": "x"}]
)
def test_refused_questions_cost_nothing(session: pv.Session, how: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        session.release(count(), **how)
    assert session.ledger.history("people") == ()


def test_too_much_is_refused_and_explained(session: pv.Session) -> None:
    with pytest.raises(
        BudgetError, match=r"this costs epsilon 4, and epsilon 3 is left.*Nothing was spent.*epsilon=3$"
    ):
        session.release(count(), epsilon=4)
    assert session.explain(count(), epsilon=4).endswith("epsilon 3 is left of epsilon 3: not enough.")
    assert session.spent == pv.PureDP.ZERO


def test_a_request_id_is_used_once(session: pv.Session) -> None:
    session.release(count(), epsilon=1, request_id="mine")
    with pytest.raises(UserError, match="'mine' was used before"):
        session.release(count(), epsilon=1, request_id="mine")
    assert session.spent == pv.PureDP(1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pv.Session([], budget=pv.PureDP(1), ledger=None), r"a session needs a table"),
        (lambda: pv.Session(people(), budget=pv.PureDP(1), ledger=None), r"tables must be a list"),  # type: ignore[arg-type]
        (lambda: pv.Session([PEOPLE], budget=pv.PureDP(1), ledger=None), r"tables are made with pv\.table"),
        (lambda: pv.Session([people(), people()], budget=pv.PureDP(1), ledger=None), r"two tables are called 'people'"),
        (lambda: pv.Session([people()], budget=3, ledger=None), r"budget must be a guarantee, not 3"),  # type: ignore[arg-type]
        (
            lambda: pv.Session([people()], budget=pv.ZeroConcentratedDP(1), ledger=None),  # type: ignore[arg-type]
            r"budget must be a guarantee",
        ),
        (lambda: pv.Session([people()], budget=pv.PureDP(1), ledger="x.ledger"), r"ledger"),  # type: ignore[arg-type]
        (
            lambda: pv.Session([people(adjacency="replace"), visits()], budget=pv.PureDP(1), ledger=None),
            r"with the same adjacency",
        ),
        (
            lambda: pv.Session([people(protect=pv.each_row()), visits()], budget=pv.PureDP(1), ledger=None),
            r"they protect the same",
        ),
        (lambda: pv.Session([people()], budget=pv.PureDP(1), ledger=None, public=[people()]), r"public holds Table"),  # type: ignore[list-item]
        (lambda: pv.Session([people()], budget=pv.PureDP(1), ledger=None, signing_key="none"), r"none"),
    ],
)
def test_refused_sessions(build: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build()


def test_the_ledger_must_be_said() -> None:
    with pytest.raises(TypeError, match="ledger"):
        pv.Session([people()], budget=pv.PureDP(1))  # type: ignore[call-arg]


def test_a_public_table_can_not_take_the_place_of_a_private_one() -> None:
    """Two tables of one name: refused, or each is read as what it is."""
    table = people()
    public = pv.public_table("people", pa.table({"region": ["north", "south"], "area": [7, 9]}), key="region")
    try:
        session = a_session(table, public=[public], budget=pv.PureDP(10**12))
    except UserError:
        return
    with session:
        answer = session.release(count(table), epsilon=10**10)
        assert answer.plan.cells(answer.noisy)["n"].values == (400,)
        joined = session.release(table.join(public, on="region").agg(n=pv.count()), epsilon=10**10)
        assert joined.plan.cells(joined.noisy)["n"].values == (200,)


# --- failures after the debit -------------------------------------------------------------------------


class Broken:
    """An engine that fails as it is told to."""

    def __init__(self, engine: Any, error: BaseException) -> None:
        self.engine, self.error = engine, error

    def compile(self, statement: Any) -> Any:
        return self.engine.compile(statement)

    def answer(self, compiled: Any) -> Any:
        raise self.error

    def close(self) -> None:
        self.engine.close()


SECRET = "secret: row 17 holds 12345"
TEXT = "The question could not be answered. It was paid for, and nothing was released."


def broken(session: pv.Session, error: BaseException) -> None:
    session._engine = Broken(session._engine, error)  # type: ignore[assignment]


@pytest.mark.parametrize("error", [RuntimeError(SECRET), MemoryError(), OSError(28, SECRET), ZeroDivisionError(SECRET)])
def test_one_text_for_every_failure(session: pv.Session, error: Exception) -> None:
    broken(session, error)
    with pytest.raises(NoAnswer) as caught:
        session.release(count(), epsilon="0.25")
    assert str(caught.value) == TEXT
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "the engine's text must not be shown beside ours"
    assert session.spent == pv.PureDP(0.25)
    assert [entry.state for entry in session.ledger.history("people")] == ["failed"]


def test_three_failures_close_the_dataset(session: pv.Session) -> None:
    works = session._engine
    broken(session, RuntimeError(SECRET))
    for _ in range(3):
        with pytest.raises(NoAnswer, match=TEXT):
            session.release(count(), epsilon="0.1")
    session._engine = works
    for ask in (
        lambda: session.release(count(), epsilon="0.1"),
        lambda: session.release_value(1, sensitivity=1, epsilon=1, label="x"),
    ):
        with pytest.raises(DatasetClosed, match="closed"):
            ask()
    with pytest.raises(UserError, match="a reason must be given"):
        session.reopen("")
    session.reopen("the disk was full")
    session.release(count(), epsilon="0.1")
    assert session.spent == pv.PureDP(0.4)
    assert [e.state for e in session.ledger.history("people")] == ["failed"] * 3 + ["reopened", "answered"]


def test_a_broken_engine_is_asked(session: pv.Session) -> None:
    """The tests above would pass for any reason to fail; this one would not."""
    broken(session, KeyboardInterrupt(SECRET))
    with pytest.raises(KeyboardInterrupt, match=SECRET):
        session.release(count(), epsilon="0.25")


def test_an_interruption_keeps_the_debit(session: pv.Session) -> None:
    broken(session, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        session.release(count(), epsilon="0.25")
    assert session.spent == pv.PureDP(0.25)
    assert [entry.state for entry in session.ledger.history("people")] == ["failed"]


def test_noise_that_was_not_paid_for_is_never_released(session: pv.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sampler of another scale than planned: no answer."""
    import privet.session as module
    from privet.noise import DiscreteLaplace

    monkeypatch.setattr(module, "DiscreteLaplace", lambda scale: DiscreteLaplace(scale / 2))
    with pytest.raises(NoAnswer):
        session.release(count(), epsilon=1)
    assert session.spent == pv.PureDP(1)


# --- closing, threads, and what is shown --------------------------------------------------------------


def test_a_session_lets_go(session: pv.Session) -> None:
    with a_session() as made:
        made.release(count(), epsilon=1)
    made.close()
    with pytest.raises(pv.PrivetError):
        made.release(count(), epsilon=1)


def test_a_closed_session_costs_nothing() -> None:
    made = a_session()
    made.close()
    with pytest.raises(pv.PrivetError):
        made.release(count(), epsilon=1)
    assert made.spent == pv.PureDP.ZERO


def test_threads_share_a_session() -> None:
    """8 threads, room for 20 of 40 questions: 20 answers, each with its own debit and certificate."""
    table = people()
    with a_session(table, budget=pv.PureDP(2), threads=2) as session:
        query = table.group_by("region").agg(n=pv.count(), m=pv.mean("income"))
        start = threading.Barrier(8)

        def ask(thread: int) -> list[Any]:
            start.wait()
            found: list[Any] = []
            for i in range(5):
                try:
                    found.append(session.release(query, epsilon="0.1", request_id=f"{thread}-{i}"))
                except BudgetError:
                    found.append(None)
            return found

        with ThreadPoolExecutor(8) as threads:
            answers = [one for some in threads.map(ask, range(8)) for one in some if one is not None]
        assert len(answers) == 20
        assert session.remaining == pv.PureDP.ZERO
        assert len({answer.noisy for answer in answers}) == 20, "no noise is drawn twice"
        entries = {entry.answer for entry in session.ledger.history("people")}
        assert entries == {answer.certificate.digest for answer in answers}
        for answer in answers[:3]:
            assert pv.verify(answer.certificate, ledger=session.ledger).ledger


def test_what_is_shown_of_a_session(session: pv.Session) -> None:
    assert repr(session) == "Session(people; epsilon 3 left of epsilon 3)"
    assert "12345" not in repr(session.tables)


def test_a_certificate_holds_no_exact_number(session: pv.Session) -> None:
    """T22 in small: what is in the table is not in the certificate, but for what was declared."""
    marked = PEOPLE.set_column(2, "income", pa.array([8642.1357] * 400))
    table = pv.table("people", marked, protect=pv.person("id", max_rows=2), columns=COLUMNS)
    with a_session(table) as other:
        text = other.release(table.agg(m=pv.mean("income")), epsilon="0.01").certificate.to_json()
    assert "8642.1357" not in text


def test_an_answer_is_checked_against_another_ledger(session: pv.Session) -> None:
    answer = session.release(count(), epsilon=1)
    with a_session() as other, pytest.raises(pv.errors.VerificationError, match="ledger: it has no such entry"):
        pv.verify(answer.certificate, ledger=other.ledger)
    forged = replace(answer.certificate, document={**answer.certificate.document, "version": "9"})
    with pytest.raises(pv.errors.VerificationError, match="the entry's answer is another one"):
        pv.verify(forged, ledger=session.ledger)
