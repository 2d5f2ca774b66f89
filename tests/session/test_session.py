"""The whole way: a table, a question, a debit, an answer, a certificate; and what is refused on it."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privet as pv
from privet import connection
from privet.engines.sql.engine import SQLLooks
from privet.errors import BudgetError, DatasetClosed, LedgerError, NoAnswer, QueryError, UserError
from privet.ledger import Charge, TableFacts, memory_ledger
from privet.tables.query import Query
from privet.tables.relation import Table

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


@pytest.fixture
def unlimited() -> Iterator[pv.Session]:
    """One with a least price so small that it never matters."""
    with a_session(min_epsilon="1e-20") as made:
        yield made


def count(table: Any = None) -> Query:
    return (table or people()).agg(n=pv.count())


NEW = ["created", "attached", "declared"]
PAID = ["reserved", "answered"]


def kinds(session: pv.Session) -> list[str]:
    """What stands in the ledger."""
    return [entry.kind for entry in session.ledger.history(session.name)]


def sha256(certificate: pv.Certificate) -> str:
    """What the ledger keeps of an answer in its chain."""
    return hashlib.sha256(certificate.to_json().encode()).hexdigest()


# --- the way through --------------------------------------------------------------------------------


def test_the_whole_way(tmp_path: Path) -> None:
    public = pv.new_signing_key(tmp_path / "steward.key")
    table = people()
    with a_session(table, signing_key=tmp_path / "steward.key") as session:
        query = table.where(pv.col("age") >= 18).group_by("region").agg(n=pv.count(), pay=pv.mean("income"))
        before = session.explain(query, epsilon=0.5, assuming=100)
        assert session.spent == pv.PureDP.ZERO, "explaining is free"
        assert before.endswith("epsilon 3 is left of epsilon 3: enough for 6 questions like this.")
        answer = session.release(query, epsilon=0.5)
        assert (answer.spent, str(answer.remaining)) == (pv.PureDP(0.5), "epsilon 2.5")
        assert (session.spent, session.remaining.guarantee) == (pv.PureDP(0.5), pv.PureDP(2.5))
        found = pv.verify(answer.certificate, key=public, ledger=session.ledger)
        assert (found.rules, found.signature, found.ledger) == (True, True, True)
        path = answer.certificate.save(tmp_path / "answer.json")
        assert pv.verify(path, key=public, ledger=session.ledger).ledger
        created, attached, declared, entry, end = session.ledger.history("people")
        assert (created.kind, created.number, declared.kind, declared.version) == ("created", 1, "declared", "1")
        assert (attached.kind, attached.table) == ("attached", TableFacts("people", "id")), (
            "rows in memory have no place"
        )
        assert (entry.kind, entry.number, entry.analyst, entry.version) == ("reserved", 4, "analyst", "1")
        assert (entry.events, entry.cost) == ((answer.plan.event(),), pv.PureDP(0.5))
        assert (end.kind, end.refers) == ("answered", entry.number)
        assert end.answer == sha256(answer.certificate)
        assert entry.hash == answer.certificate.document["ledger"]["hash"]
        assert session.ledger.reservation("people", 4)[0] == entry


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
    answers = [session.release(count(), epsilon="0.1", fresh=True).plan for _ in range(3)]
    values = [session.release(count(), epsilon="0.5", fresh=True).noisy for _ in range(4)]
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
        assert session.remaining.guarantee == pv.PureDP(0.5)
        with pytest.raises(BudgetError, match=r"only epsilon 0\.5 is left"):
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
        pytest.raises(QueryError, match=r"does not have the public table 'regions'.*public=\["),
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
        assert session.remaining.guarantee == pv.ApproxDP(0.5, 5e-7)
        with pytest.raises(BudgetError):
            session.release(count(), epsilon=0.6)


def test_a_ledger_is_shared_by_sessions() -> None:
    ledger = memory_ledger()
    with a_session(ledger=ledger) as one, a_session(ledger=ledger) as two:
        one.release(count(), epsilon=2)
        assert two.remaining.guarantee == pv.PureDP(1)
        with pytest.raises(BudgetError):
            two.release(count(), epsilon=2, fresh=True)
    with pytest.raises(UserError, match=r"has a budget of epsilon 3, but is opened with epsilon 4.*PureDP\(3\)"):
        a_session(ledger=ledger, budget=pv.PureDP(4))
    with a_session(ledger=ledger, budget=pv.PureDP(4), name="others") as other:
        assert other.remaining.guarantee == pv.PureDP(4)


# --- a value of one's own -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1234, 12.5, [1, 2, 3], [0.5, 1.5], np.array([1.0, 2.0]), np.int64(7)])
def test_a_value_of_ones_own(session: pv.Session, value: Any, tmp_path: Path) -> None:
    found = session.release_value(value, sensitivity=1, epsilon="0.5", label="my own statistic")
    assert (found.spent, found.remaining) == (pv.PureDP(0.5), session.remaining)
    assert session.remaining.guarantee == pv.PureDP(2.5)
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
    assert kinds(session) == NEW


# --- refusals: nothing is spent -----------------------------------------------------------------------


def test_a_table_that_the_session_does_not_have(session: pv.Session) -> None:
    with pytest.raises(QueryError, match=r"the session has no table 'visits'\. It has: people"):
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
    with pytest.raises(QueryError, match="the session's table 'people' is declared differently"):
        session.release(count(people(**other)), epsilon=1)
    assert session.spent == pv.PureDP.ZERO


def test_another_declaration_of_a_public_table() -> None:
    one = pv.public_table("regions", pa.table({"region": ["north"], "area": [7]}), key="region")
    two = pv.public_table("regions", pa.table({"region": ["north"], "area": [8]}), key="region")
    table = people()
    with a_session(table, public=[one]) as session, pytest.raises(QueryError, match="does not have the public table"):
        session.release(table.join(two, on="region").agg(n=pv.count()), epsilon=1)


@pytest.mark.parametrize(
    "how", [{}, {"epsilon": 0}, {"epsilon": 1, "within": {"n": 1}}, {"epsilon": 1, "confidence": 2}, {"epsilon": "x"}]
)
def test_refused_questions_cost_nothing(session: pv.Session, how: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        session.release(count(), **how)
    assert kinds(session) == NEW


def test_too_much_is_refused_and_explained(session: pv.Session) -> None:
    with pytest.raises(BudgetError, match=r"this costs epsilon 4, but only epsilon 3 is left.*Nothing was spent\.$"):
        session.release(count(), epsilon=4)
    assert session.explain(count(), epsilon=4).endswith("epsilon 3 is left of epsilon 3: not enough.")
    assert session.spent == pv.PureDP.ZERO


def towns() -> pv.PublicTable:
    return pv.public_table("towns", pa.table({"town": ["A"], "size": [1]}), key="town")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pv.Session([], budget=pv.PureDP(1), ledger=None), r"a session needs a table"),
        (lambda: pv.Session(people(), budget=pv.PureDP(1), ledger=None), r"tables must be a list"),  # type: ignore[arg-type]
        (
            lambda: pv.Session([PEOPLE], budget=pv.PureDP(1), ledger=None),
            r"declared tables\. Write, for example: pv\.table",
        ),
        (lambda: pv.Session([people(), people()], budget=pv.PureDP(1), ledger=None), r"two tables are called 'people'"),
        (
            lambda: pv.Session([towns()], budget=pv.PureDP(1), ledger=None),  # type: ignore[list-item]
            r"towns is a public table, but tables is for the tables of people\. Write, for example: .*public=\[towns\]",
        ),
        (lambda: pv.Session([people()], budget=3, ledger=None), r"budget must be a guarantee, not 3"),  # type: ignore[arg-type]
        (lambda: pv.Session([people()], budget=pv.PureDP(1), ledger=5), r"ledger must be a file, an address, or None"),  # type: ignore[arg-type]
        (lambda: pv.Session([people()], budget=pv.PureDP(1), ledger="mysql://x/y"), r"a file or a Postgres address"),
        (lambda: pv.Session([people()], budget=pv.PureDP(1), ledger="no folder/x.ledger"), r"there is no folder"),
        (lambda: pv.Session([people()], budget=pv.PureDP(1), ledger=Path(__file__).parent), r"is not a ledger"),
        (lambda: pv.Session([people()], budget=pv.PureDP(1), ledger=None, version=""), r"version"),
        (
            lambda: pv.Session([people(adjacency="replace"), visits()], budget=pv.PureDP(1), ledger=None),
            r"with the same adjacency",
        ),
        (
            lambda: pv.Session([people(protect=pv.each_row()), visits()], budget=pv.PureDP(1), ledger=None),
            r"they must protect the same unit",
        ),
        (
            lambda: pv.Session([people()], budget=pv.PureDP(1), ledger=None, public=[people()]),  # type: ignore[list-item]
            r"contains a privet\.tables\.relation\.Table",
        ),
        (lambda: pv.Session([people()], budget=pv.PureDP(1), ledger=None, signing_key="none"), r"none"),
    ],
)
def test_refused_sessions(build: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build()


def test_the_ledger_must_be_said() -> None:
    with pytest.raises(UserError, match="ledger= is missing"):
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

    def ready(self) -> None:
        pass

    def supports(self, statement: Any) -> Any:
        return self.engine.supports(statement)

    def snapshot(self) -> Any:
        return nullcontext(self)

    def answer(self, statement: Any) -> Any:
        raise self.error

    def close(self) -> None:
        self.engine.close()


SECRET = "secret: row 17 holds 12345"
TEXT = "The question could not be answered. It was paid for, and nothing was released."


def broken(session: pv.Session, error: BaseException) -> None:
    session.dataset.engine = Broken(session.dataset.engine, error)  # type: ignore[assignment]


@pytest.mark.parametrize("error", [RuntimeError(SECRET), MemoryError(), OSError(28, SECRET), ZeroDivisionError(SECRET)])
def test_one_text_for_every_failure(session: pv.Session, error: Exception) -> None:
    broken(session, error)
    with pytest.raises(NoAnswer) as caught:
        session.release(count(), epsilon="0.25")
    assert str(caught.value) == TEXT
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "the engine's text must not be shown beside ours"
    assert session.spent == pv.PureDP(0.25)
    assert kinds(session) == [*NEW, "reserved", "failed"]
    assert SECRET not in "".join(session.ledger.export("people"))


def test_three_failures_close_the_dataset(session: pv.Session) -> None:
    works = session.dataset.engine
    broken(session, RuntimeError(SECRET))
    for _ in range(3):
        with pytest.raises(NoAnswer, match=TEXT):
            session.release(count(), epsilon="0.1")
    session.dataset.engine = works
    for ask in (
        lambda: session.release(count(), epsilon="0.1"),
        lambda: session.release_value(1, sensitivity=1, epsilon=1, label="x"),
    ):
        with pytest.raises(DatasetClosed, match="closed"):
            ask()
    with pytest.raises(UserError, match="a reason is required"):
        session.reopen("")
    session.reopen("the disk was full")
    session.release(count(), epsilon="0.1")
    assert session.spent == pv.PureDP(0.4)
    assert kinds(session) == [*NEW, *3 * ["reserved", "failed"], "reopened", *PAID]
    assert [entry.note for entry in session.ledger.history("people") if entry.note] == ["the disk was full"]


def test_a_broken_engine_is_asked(session: pv.Session) -> None:
    """The tests above would pass for any reason to fail; this one would not."""
    broken(session, KeyboardInterrupt(SECRET))
    with pytest.raises(KeyboardInterrupt, match=SECRET):
        session.release(count(), epsilon="0.25")


def test_an_interruption_keeps_the_debit(session: pv.Session) -> None:
    broken(session, KeyboardInterrupt())
    for _ in range(4):
        with pytest.raises(KeyboardInterrupt) as caught:
            session.release(count(), epsilon="0.25")
        assert caught.value.__notes__[-1].startswith("interrupted; the debit of epsilon ")
    assert session.spent == pv.PureDP(1)
    assert kinds(session) == [*NEW, *4 * ["reserved", "interrupted"]], "which closes nothing"


@pytest.mark.parametrize("error", [RuntimeError(SECRET), KeyboardInterrupt()])
def test_a_failure_that_can_t_be_settled_hides_the_engine_s_text(session: pv.Session, error: BaseException) -> None:
    """Its lease was lost, so others took it for failed; and then the engine fails, too."""

    class Late(Broken):
        def answer(self, statement: Any) -> Any:
            number = session.ledger.head().number
            session.ledger.settle(Charge(number, "people", pv.PureDP(1)), "failed")
            raise self.error

    session.dataset.engine = Late(session.dataset.engine, error)  # type: ignore[assignment]
    with pytest.raises(NoAnswer if isinstance(error, Exception) else KeyboardInterrupt) as caught:
        session.release(count(), epsilon=1)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    if isinstance(error, Exception):
        assert (str(caught.value), caught.value.__context__) == (TEXT, None)
    assert session.spent == pv.PureDP(1)
    assert kinds(session) == [*NEW, "reserved", "failed"]


def test_an_answer_that_comes_too_late_is_not_given(session: pv.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease was lost, so a retry may have been told that it failed: then there is no answer."""
    real = SQLLooks.answer

    def late(looks: SQLLooks, statement: Any) -> Any:
        number = session.ledger.head().number
        session.ledger.settle(Charge(number, "people", pv.PureDP(1)), "failed")
        return real(looks, statement)

    monkeypatch.setattr(SQLLooks, "answer", late)
    with pytest.raises(NoAnswer, match=TEXT) as caught:
        session.release(count(), epsilon=1)
    assert caught.value.__context__ is None
    assert kinds(session) == [*NEW, "reserved", "failed"]


def test_a_ledger_that_breaks_after_the_debit(session: pv.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be written down is not given, and nothing is answered any more."""
    real = SQLLooks.answer

    def breaking(looks: SQLLooks, statement: Any) -> Any:
        with session.ledger._database.writing(lambda c: c) as connection:
            connection.execute("DROP TABLE privet_leases")
        return real(looks, statement)

    with monkeypatch.context() as patched:
        patched.setattr(SQLLooks, "answer", breaking)
        with pytest.raises(LedgerError, match="can't be read or written"):
            session.release(count(), epsilon=1)
    for ask in (lambda: session.release(by_region(), epsilon=1), lambda: session.spent):
        with pytest.raises(LedgerError, match="Privet answers nothing until you fix the storage"):
            ask()


def test_a_ledger_and_an_engine_that_break_at_once(session: pv.Session) -> None:
    class Both(Broken):
        def answer(self, statement: Any) -> Any:
            with session.ledger._database.writing(lambda c: c) as connection:
                connection.execute("DROP TABLE privet_leases")
            raise self.error

    session.dataset.engine = Both(session.dataset.engine, RuntimeError(SECRET))  # type: ignore[assignment]
    with pytest.raises(LedgerError, match="can't be read or written") as caught:
        session.release(count(), epsilon=1)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    around: BaseException | None = caught.value
    while around is not None:
        assert SECRET not in str(around)
        around = around.__cause__ or around.__context__


def test_noise_that_was_not_paid_for_is_never_released(session: pv.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sampler of another scale than planned: no answer."""
    from privet.mechanisms import laplace
    from privet.noise import DiscreteLaplace

    monkeypatch.setattr(laplace, "DiscreteLaplace", lambda scale: DiscreteLaplace(scale / 2))
    with pytest.raises(NoAnswer):
        session.release(count(), epsilon=1)
    assert session.spent == pv.PureDP(1)


# --- answers from the ledger --------------------------------------------------------------------------


def by_region(table: Any = None) -> Query:
    return (table or people()).group_by("region").agg(n=pv.count(), m=pv.mean("income"))


def test_the_same_question_is_free_and_has_the_same_answer(session: pv.Session) -> None:
    first = session.release(by_region(), epsilon=1)
    again = session.release(by_region(), epsilon=1)
    assert again.noisy == first.noisy
    assert again.to_dicts() == first.to_dicts()
    assert again.plan == first.plan
    assert (first.spent, again.spent) == (pv.PureDP(1), pv.PureDP.ZERO)
    assert first.remaining == again.remaining == session.remaining
    assert session.remaining.guarantee == pv.PureDP(2)
    assert again.certificate.to_json() == first.certificate.to_json()
    assert pv.verify(again.certificate, ledger=session.ledger).ledger
    assert kinds(session) == NEW + PAID, "nothing was debited, so there is nothing to write down"


def test_a_free_answer_needs_no_budget_and_no_open_dataset(session: pv.Session) -> None:
    first = session.release(count(), epsilon=2)
    works = session.dataset.engine
    broken(session, RuntimeError(SECRET))
    for _ in range(3):
        with pytest.raises(NoAnswer):
            session.release(count(), epsilon="1/3", fresh=True)
    assert session.remaining.guarantee == pv.PureDP.ZERO
    assert session.release(count(), epsilon=2).noisy == first.noisy
    session.dataset.engine = works
    session.reopen("the engine was fixed")
    assert session.release(count(), epsilon=2).noisy == first.noisy
    with pytest.raises(BudgetError, match="Ask the steward for a larger budget"):
        session.release(count(), epsilon=2, fresh=True)


def test_less_noise_serves_more_and_never_the_other_way(unlimited: pv.Session) -> None:
    session = unlimited
    rough = session.release(by_region(), epsilon="0.25")
    fine = session.release(by_region(), epsilon="0.5")
    assert session.spent == pv.PureDP(0.75), "a better answer is paid for in full"
    assert fine.noisy != rough.noisy
    for epsilon in ("0.5", "0.4", "0.25", "1e-6"):
        served = session.release(by_region(), epsilon=epsilon)
        assert served.noisy == fine.noisy
        assert served.plan.epsilon == Fraction(1, 2), "the intervals are those of the noise that is in it"
        assert served.to_dicts() == fine.to_dicts()
        assert served.interval("m") == fine.interval("m")
    assert session.spent == pv.PureDP(0.75)
    with pytest.raises(BudgetError):
        session.release(by_region(), epsilon="2.5")


def test_a_share_with_more_noise_is_not_served(session: pv.Session) -> None:
    """As much epsilon in all, but less of it for one of the columns."""
    query = people().agg(n=pv.count(), p=pv.count_people())
    even = session.release(query, epsilon="0.5")
    for weights in ({"n": 9}, {"p": 9}):
        other = session.release(query, epsilon="0.5", weights=weights)
        assert other.spent == pv.PureDP(0.5)
        assert other.certificate.document["ledger"] != even.certificate.document["ledger"]
    assert session.spent == pv.PureDP(1.5)


def test_within_is_served_if_the_error_is_kept(session: pv.Session) -> None:
    first = session.release(count(), within={"n": 20})
    spent = session.spent
    for most in (20, 30, 1000):
        served = session.release(count(), within={"n": most})
        assert (served.noisy, served.spent) == (first.noisy, pv.PureDP.ZERO)
        assert served.plan.expected("n") == first.plan.expected("n")
    assert session.release(count(), epsilon=first.plan.epsilon).noisy == first.noisy
    assert session.spent == spent
    assert session.release(count(), within={"n": 15}).spent != pv.PureDP.ZERO


@pytest.mark.parametrize(
    "how", [{"confidence": 0.5}, {"confidence": 0.999}, {"simultaneous": True}, {"confidence": 0.8, "assuming": 77}]
)
def test_other_intervals_come_from_the_same_measurement(session: pv.Session, how: dict[str, Any]) -> None:
    first = session.release(by_region(), epsilon=1)
    served = session.release(by_region(), epsilon=1, **how)
    assert (served.noisy, served.spent, session.spent) == (first.noisy, pv.PureDP.ZERO, pv.PureDP(1))
    assert (served.values("n"), served.values("m")) == (first.values("n"), first.values("m"))
    made = session.plan(by_region(), epsilon=1, **how)
    assert served.plan == made
    expected = made.cells(first.noisy)
    for name in ("n", "m"):
        assert served.interval(name) == (list(expected[name].low), list(expected[name].high))
    (low, high), (lower, higher) = first.interval("n"), served.interval("n")
    wider = how.get("confidence", 0.95) > 0.95 or "simultaneous" in how
    for a, b, c, d in zip(low, high, lower, higher, strict=True):
        assert (d - c > b - a) == wider
    assert pv.verify(served.certificate, ledger=session.ledger).ledger


def test_other_names_are_served_too(session: pv.Session) -> None:
    first = session.release(by_region(), epsilon=1)
    query = people().group_by(place="region").agg(rows=pv.count(), pay=pv.mean("income"))
    served = session.release(query, epsilon=1)
    assert served.columns == ("place", "rows", "pay")
    assert (served.values("rows"), served.values("pay")) == (first.values("n"), first.values("m"))
    assert served.interval("pay") == first.interval("m")
    assert (served.noisy, session.spent) == (first.noisy, pv.PureDP(1))


@pytest.mark.parametrize(
    "other",
    [
        lambda t: t.agg(n=pv.count("income")),
        lambda t: t.agg(n=pv.count_people()),
        lambda t: t.where(pv.col("age") >= 18).agg(n=pv.count()),
        lambda t: t.group_by("region").agg(n=pv.count()),
        lambda t: t.agg(n=pv.count(), m=pv.mean("income")),
        lambda t: t.agg(n=pv.sum(pv.lit(1))),
    ],
)
def test_another_question_is_paid_for(session: pv.Session, other: Any) -> None:
    session.release(count(), epsilon=1)
    assert session.release(other(people()), epsilon=1).spent == pv.PureDP(1)
    assert session.spent == pv.PureDP(2)


def test_fresh_pays_for_a_new_draw(session: pv.Session) -> None:
    answers = [session.release(by_region(), epsilon="0.5", fresh=True) for _ in range(4)]
    assert len({answer.noisy for answer in answers}) == 4
    assert session.spent == pv.PureDP(2)
    assert kinds(session) == NEW + 4 * PAID
    assert session.release(by_region(), epsilon="0.5").noisy == answers[-1].noisy, "the newest of the best"


def test_analysts_share_answers() -> None:
    ledger = memory_ledger()
    with a_session(ledger=ledger, analyst="ann") as ann, a_session(ledger=ledger, analyst="bob") as bob:
        first = ann.release(count(), epsilon=1)
        assert bob.release(count(), epsilon=1).noisy == first.noisy
        assert {name: ration.spent for name, ration in ledger.analysts("people").items()} == {"ann": pv.PureDP(1)}


def test_another_version_is_asked_anew_and_renews_nothing() -> None:
    ledger = memory_ledger()
    with a_session(ledger=ledger) as old:
        first = old.release(count(), epsilon=1, request_id="mine")
    with a_session(ledger=ledger, version="2026-02") as new:
        assert new.spent == pv.PureDP(1)
        second = new.release(count(), epsilon=1)
        assert (second.spent, new.remaining.guarantee) == (pv.PureDP(1), pv.PureDP(1))
        assert second.certificate.document["ledger"] != first.certificate.document["ledger"]
        assert new.release(count(), epsilon=1).noisy == second.noisy
        with pytest.raises(UserError, match="'mine' was already used"):
            new.release(count(), epsilon=1, request_id="mine")
        with pytest.raises(BudgetError):
            new.release(count(), epsilon=2)
    with a_session(ledger=ledger) as old:
        assert old.release(count(), epsilon=1).noisy == first.noisy, "the old data's answer is still the old data's"
        assert old.spent == pv.PureDP(2)
        versions = [entry.version for entry in ledger.history("people") if entry.kind == "declared"]
        assert versions == ["1", "2026-02"], "each is named once"


def test_another_public_table_is_another_question() -> None:
    ledger = memory_ledger()
    table = people()
    for area, spent in ((7, 1), (8, 2), (7, 2)):
        regions = pv.public_table("regions", pa.table({"region": ["north"], "area": [area]}), key="region")
        with a_session(table, ledger=ledger, public=[regions]) as session:
            session.release(table.join(regions, on="region").agg(n=pv.count()), epsilon=1)
            assert session.spent == pv.PureDP(spent)


def test_another_declaration_is_another_question() -> None:
    """The same words about a table that was declared otherwise: what was measured then was something else."""
    ledger = memory_ledger()
    for most, spent in ((2, 1), (1, 2), (2, 2)):
        table = people(protect=pv.person("id", max_rows=most))
        with a_session(table, ledger=ledger) as session:
            session.release(count(table), epsilon=1)
            assert session.spent == pv.PureDP(spent)


# --- request ids --------------------------------------------------------------------------------------


def test_a_request_is_answered_once(session: pv.Session) -> None:
    first = session.release(by_region(), epsilon="0.5", request_id="mine", fresh=True)
    for fresh in (True, False):
        again = session.release(by_region(), epsilon="0.5", request_id="mine", fresh=fresh)
        assert (again.noisy, again.spent) == (first.noisy, pv.PureDP.ZERO)
        assert again.certificate == first.certificate
    newer = session.release(by_region(), epsilon="0.5", fresh=True)
    assert session.release(by_region(), epsilon="0.5").noisy == newer.noisy
    assert session.release(by_region(), epsilon="0.5", request_id="mine").noisy == first.noisy, "its own answer"
    assert session.spent == pv.PureDP(1)


def test_a_request_that_was_served_stays_with_its_answer(session: pv.Session) -> None:
    first = session.release(count(), epsilon=1)
    assert session.release(count(), epsilon=1, request_id="mine").noisy == first.noisy
    assert kinds(session) == [*NEW, *PAID, "served"]
    better = session.release(count(), epsilon=2)
    assert session.release(count(), epsilon=1).noisy == better.noisy
    served = session.release(count(), epsilon=1, request_id="mine")
    assert (served.noisy, served.plan.epsilon) == (first.noisy, Fraction(1))
    assert kinds(session) == [*NEW, *PAID, "served", *PAID]
    with pytest.raises(UserError, match="'mine' was already used for a different question"):
        session.release(count(), epsilon=2, request_id="mine")


@pytest.mark.parametrize(
    "how", [{"epsilon": 1, "confidence": 0.9}, {"epsilon": 1, "assuming": 9}, {"within": {"n": 9}}]
)
def test_a_request_id_is_for_one_question(session: pv.Session, how: dict[str, Any]) -> None:
    session.release(count(), epsilon=1, request_id="mine")
    before = session.ledger.history("people")
    with pytest.raises(UserError, match="'mine' was already used for a different question"):
        session.release(count(), request_id="mine", **how)
    with pytest.raises(UserError, match="'mine' was already used for a different question"):
        session.release_value(400, sensitivity=1, epsilon=1, label="n", request_id="mine")
    assert session.ledger.history("people") == before
    with a_session(ledger=session.ledger, analyst="bob") as bob:
        bob.release_value(400, sensitivity=1, epsilon=1, label="n", request_id="mine")
        with pytest.raises(UserError, match="'mine' was already used"):
            bob.release(count(), epsilon=1, request_id="mine")
    assert kinds(session)[len(before) :] == PAID, "each has ids of their own, and learns nothing of others'"


def test_a_request_that_failed_stays_failed(session: pv.Session) -> None:
    """Else a retry would be a second draw for one debit."""
    works = session.dataset.engine
    broken(session, RuntimeError(SECRET))
    for _ in range(5):
        with pytest.raises(NoAnswer, match=TEXT):
            session.release(count(), epsilon=1, request_id="mine")
    session.dataset.engine = works
    with pytest.raises(NoAnswer, match=TEXT):
        session.release(count(), epsilon=1, request_id="mine")
    assert session.spent == pv.PureDP(1)
    assert kinds(session) == [*NEW, "reserved", "failed"], "asking again is no further failure"
    assert session.release(count(), epsilon=1).spent == pv.PureDP(1), "what failed serves nobody"


@pytest.mark.parametrize(
    "value", [1234, 12.5, [1, 2, 3], [0.5, 1.5], np.array([1.0, 2.0]), np.array([3, 4]), np.int64(7)]
)
def test_a_value_is_answered_once(session: pv.Session, value: Any) -> None:
    how: dict[str, Any] = {"sensitivity": 1, "epsilon": "0.5", "label": "mine"}
    first = session.release_value(value, **how, request_id="mine")
    again = session.release_value(value, **how, request_id="mine")
    assert type(again.value) is type(first.value)
    assert np.array_equal(again.value, first.value)
    assert np.asarray(again.value).dtype == np.asarray(first.value).dtype
    assert np.array_equal(np.asarray(again.interval(0.9)), np.asarray(first.interval(0.9)))
    assert (again.spent, again.remaining, again.certificate) == (pv.PureDP.ZERO, first.remaining, first.certificate)
    moved = session.release_value(
        value + 1000 if not isinstance(value, list) else value[::-1], **how, request_id="mine"
    )
    assert np.array_equal(moved.value, first.value), "whatever the value is now: it is not looked at"
    assert session.spent == pv.PureDP(0.5)
    for other in ({"label": "another"}, {"epsilon": 1}, {"sensitivity": 2}):
        with pytest.raises(UserError, match="'mine' was already used for a different question"):
            session.release_value(value, **{**how, **other}, request_id="mine")
    assert session.release_value(value, **how).spent == pv.PureDP(0.5), "without an id each is a draw of its own"


def test_large_values_are_kept_to_the_last_digit(unlimited: pv.Session) -> None:
    """Noise beyond 64 bits: what is stored is what was released, in the same form."""
    session = unlimited
    for number in range(20):
        for value in (np.array([1, 2, 3]), np.array([0.5, 2.5]), np.array(5), [7, 8], 9):
            how: dict[str, Any] = {"sensitivity": 1, "epsilon": "1e-19", "label": "mine"}
            first = session.release_value(value, **how, request_id=f"{number} {value!r}")
            again = session.release_value(value, **how, request_id=f"{number} {value!r}")
            assert type(again.value) is type(first.value)
            assert np.asarray(again.value).dtype == np.asarray(first.value).dtype
            assert np.asarray(again.value).tolist() == np.asarray(first.value).tolist()


def test_the_same_request_at_once_is_one_draw() -> None:
    table = people()
    with a_session(table, threads=2) as session:
        start = threading.Barrier(6)

        def ask(_: int) -> Any:
            start.wait()
            return session.release(by_region(table), epsilon=1, request_id="mine", fresh=True)

        with ThreadPoolExecutor(6) as threads:
            answers = list(threads.map(ask, range(6)))
        assert len({answer.noisy for answer in answers}) == 1
        assert sorted(answer.spent.epsilon for answer in answers) == [0] * 5 + [1]
        assert kinds(session) == NEW + PAID


# --- ledgers in files ---------------------------------------------------------------------------------


def test_a_ledger_outlives_its_session(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with a_session(ledger=path) as session:
        first = session.release(by_region(), epsilon=1, request_id="mine")
        own = session.release_value([1, 2], sensitivity=1, epsilon="0.5", label="mine", request_id="own")
        receipt = session.ledger.head()
    for where in (path, str(path)):
        with a_session(ledger=where) as session:
            assert (session.spent, session.remaining.guarantee) == (pv.PureDP(1.5), pv.PureDP(1.5))
            assert session.ledger.head() == receipt, "opening it adds nothing"
            for request in (None, "mine"):
                again = session.release(by_region(), epsilon=1, request_id=request)
                assert (again.noisy, again.spent) == (first.noisy, pv.PureDP.ZERO)
                assert again.certificate.to_json() == first.certificate.to_json()
            value = session.release_value([9, 9], sensitivity=1, epsilon="0.5", label="mine", request_id="own")
            assert (value.value, value.spent) == (own.value, pv.PureDP.ZERO)
            with pytest.raises(UserError, match="'mine' was already used"):
                session.release(count(), epsilon=1, request_id="mine")
            with pytest.raises(BudgetError, match=r"epsilon 1\.5 is left of epsilon 3"):
                session.release(count(), epsilon=2)
            assert session.ledger.head() == receipt, "nothing was debited"
    for made in (first, own):
        assert pv.verify(made.certificate, ledger=path, receipt=receipt).ledger


def test_bounding_is_the_same_after_reopening(tmp_path: Path) -> None:
    """Two of a person's three rows are kept: if they changed, asking twice would show more of a person."""
    rows = pa.table(
        {
            "id": [i // 3 for i in range(600)],
            "a": [i * 7919 % 10007 for i in range(600)],
            "b": [i * i % 9973 for i in range(600)],
        }
    )
    table = pv.table(
        "people",
        rows,
        protect=pv.person("id", max_rows=2),
        columns={"a": pv.integer(0, 10_007), "b": pv.integer(0, 9_973)},
    )
    query = table.agg(a=pv.sum("a"), b=pv.sum("b"), n=pv.count())
    how: dict[str, Any] = {"budget": pv.PureDP(10**15)}

    def asked(path: Path) -> tuple[tuple[int | float | None, ...], ...]:
        with a_session(table, ledger=path, **how) as session:
            answer = session.release(query, epsilon=10**12, fresh=True)
            return tuple(answer.plan.cells(answer.noisy)[name].values for name in ("a", "b", "n"))

    first = asked(tmp_path / "people.ledger")
    assert first[2] == (400,), "noise all but off, and one row of each person is left out"
    for _ in range(3):
        assert asked(tmp_path / "people.ledger") == first
    assert asked(tmp_path / "other.ledger") != first, "another ledger keeps others"


def test_two_sessions_on_one_file(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with a_session(ledger=path, analyst="ann") as ann, a_session(ledger=path, analyst="bob") as bob:
        first = ann.release(count(), epsilon=2)
        assert bob.remaining.guarantee == pv.PureDP(1)
        assert bob.release(count(), epsilon=2).noisy == first.noisy
        with pytest.raises(BudgetError):
            bob.release(by_region(), epsilon=2)
        bob.release(by_region(), epsilon=1)
        assert ann.remaining.guarantee == pv.PureDP.ZERO
        assert {name: each.spent for name, each in ann.ledger.analysts("people").items()} == {
            "ann": pv.PureDP(2),
            "bob": pv.PureDP(1),
        }
        ann.close()
        assert bob.release(count(), epsilon=2).noisy == first.noisy, "closing one leaves the other"
        assert bob.ledger.verify().head == bob.ledger.head()


def test_two_sessions_on_one_file_never_overspend(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    table = people()
    with a_session(table, ledger=path) as one, a_session(table, ledger=path) as two:
        start = threading.Barrier(2)

        def ask(session: pv.Session) -> int:
            start.wait()
            paid = 0
            for _ in range(10):
                try:
                    session.release(count(table), epsilon="0.25", fresh=True)
                    paid += 1
                except BudgetError:
                    pass
            return paid

        with ThreadPoolExecutor(2) as threads:
            assert sum(threads.map(ask, (one, two))) == 12
        assert one.spent == two.spent == pv.PureDP(3)
        assert one.ledger.verify().head == two.ledger.head()
        assert one.ledger.head().number == len(NEW) + 2 * 12


def test_many_datasets_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "all.ledger"
    with a_session(ledger=path) as one, a_session(ledger=path, name="others", budget=pv.ApproxDP(1, 1e-6)) as two:
        one.release(count(), epsilon=1)
        assert (one.remaining.guarantee, two.remaining.guarantee) == (pv.PureDP(2), pv.ApproxDP(1, 5e-7))
        assert two.release(count(), epsilon=1).spent == pv.PureDP(1), "each dataset has answers of its own"
        assert one.ledger.datasets() == ("others", "people")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"budget": pv.PureDP(4)},
            r"has a budget of epsilon 3, but is opened with epsilon 4\. .*budget=pv\.PureDP\(3\)",
        ),
        ({"budget": pv.ApproxDP(3, 1e-6)}, "has a budget of epsilon 3, but is opened with epsilon 3, delta 1e-6"),
        ({"adjacency": "replace"}, "was created with adjacency add/remove, but is opened with replace"),
        ({"protect": pv.each_row()}, "was created with protect person, but is opened with row"),
    ],
)
def test_a_dataset_is_opened_as_it_was_made(tmp_path: Path, how: dict[str, Any], message: str) -> None:
    path = tmp_path / "people.ledger"
    with a_session(ledger=path) as session:
        before = session.ledger.history("people")
    table = {name: fact for name, fact in how.items() if name != "budget"}
    with pytest.raises(UserError, match=message):
        a_session(people(**table), ledger=path, budget=how.get("budget"))
    with a_session(ledger=path) as session:
        assert session.ledger.history("people") == before


def test_the_steward_s_caps_hold_in_sessions(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with a_session(ledger=path, analyst="ann") as session:
        session.release(count(), epsilon=1)
        session.ledger.cap("people", pv.PureDP(1.5), analyst="ann", reason="a student")
        assert session.remaining.guarantee == pv.PureDP(0.5)
        with pytest.raises(BudgetError, match=r"epsilon 0\.5 is left of epsilon 1\.5 for 'ann'"):
            session.release(by_region(), epsilon=1)
        session.ledger.cap("people", pv.PureDP(0.25), query=True, reason="a rule of the house")
        with pytest.raises(BudgetError, match=r"epsilon 0\.25 .*one question.*Nothing was spent\.$"):
            session.release(by_region(), epsilon="0.5")
        assert session.release(count(), epsilon=1).spent == pv.PureDP.ZERO, "what is there costs nothing"
        session.release(by_region(), epsilon="0.25")
        session.ledger.cap("people", pv.PureDP(9), reason="new consent")
    with pytest.raises(UserError, match=r"has a budget of epsilon 9"):
        a_session(ledger=path)
    with a_session(ledger=path, budget=pv.PureDP(9), analyst="bob") as session:
        assert (session.spent, session.remaining.guarantee) == (pv.PureDP(1.25), pv.PureDP(7.75))


def test_a_tampered_ledger_opens_no_session(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with a_session(ledger=path) as session:
        session.release(count(), epsilon=2)
    with closing(sqlite3.connect(path)) as connection, connection:
        changed = connection.execute(
            """UPDATE privet_entries SET text = replace(text, '"spent":"2/1"', '"spent":"0/1"')"""
        )
        assert changed.rowcount > 0
    with pytest.raises(LedgerError, match="entry 4 of the ledger is invalid: its hash"):
        a_session(ledger=path)


def test_an_answer_that_was_tampered_with_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with a_session(ledger=path) as session:
        session.release(count(), epsilon=1)
        with closing(sqlite3.connect(path)) as connection, connection:
            assert connection.execute("UPDATE privet_answers SET text = text || ' '").rowcount == 1
        with pytest.raises(LedgerError, match="tampered with"):
            session.release(count(), epsilon=1)


def test_a_session_that_can_t_open_lets_go_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.ledger"

    def no_engine(*_: Any, **__: Any) -> Any:
        raise UserError("no engine today")

    with monkeypatch.context() as patched:
        patched.setattr(connection, "open_engine", no_engine)
        with pytest.raises(UserError, match="no engine today"):
            a_session(ledger=path)
    held = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            held.append(str(each.readlink()))
    assert held
    assert not any(place.startswith(str(tmp_path)) for place in held)
    with a_session(ledger=path) as session:
        assert session.remaining.guarantee == pv.PureDP(3)


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
    with pytest.raises(pv.PrivetError):
        made.release_value(1, sensitivity=1, epsilon=1, label="mine")
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
                    found.append(session.release(query, epsilon="0.1", request_id=f"{thread}-{i}", fresh=True))
                except BudgetError:
                    found.append(None)
            return found

        with ThreadPoolExecutor(8) as threads:
            answers = [one for some in threads.map(ask, range(8)) for one in some if one is not None]
        assert len(answers) == 20
        assert session.remaining.guarantee == pv.PureDP.ZERO
        assert len({answer.noisy for answer in answers}) == 20, "no noise is drawn twice"
        entries = {entry.answer for entry in session.ledger.history("people") if entry.kind == "answered"}
        assert entries == {sha256(answer.certificate) for answer in answers}
        assert session.ledger.verify().head == session.ledger.head()
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
    with pytest.raises(pv.errors.VerificationError, match="the entry has a different answer"):
        pv.verify(forged, ledger=session.ledger)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"eps": 0.5}, r"the argument is named epsilon, not eps\. Write: epsilon=0\.5"),
        ({"epsilon": 1, "confidense": 0.9}, r"there is no argument 'confidense'\. Did you mean confidence\?"),
        ({"epsilon": 1, "seed": 1}, r"there is no argument 'seed'\. The arguments are: epsilon, rho, within"),
    ],
)
@pytest.mark.parametrize("how", ["release", "explain", "plan"])
def test_arguments_that_do_not_exist(session: pv.Session, how: str, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        getattr(session, how)(count(), **wrong)
    assert session.spent == pv.PureDP.ZERO
