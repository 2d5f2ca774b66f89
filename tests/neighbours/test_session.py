"""T13, T14, T17, T19, T20, T23 and T24: what a session pays, draws, shows and hides."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.neighbours.questions import question
from tests.neighbours.worlds import Data, World, shuffled, star, world
from tests.prices import loss

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.errors import BudgetError, DatasetClosed, NoAnswer, QueryError
from privet.ledger import memory_ledger, steward
from privet.ledger.storage import book
from privet.mechanisms import laplace
from privet.noise import DiscreteLaplace
from privet.planner import noise as planner_noise
from privet.planner import plan
from privet.privacy import events
from privet.privacy.accounting import PureAccountant
from privet.requests import base as requests_base
from privet.requests import queries
from privet.session import Session
from privet.tables.query import Query
from privet.tables.relation import Table
from privet.tables.stored_types import StoredType

PEOPLE = pa.table(
    {
        "who": [1, 1, 2, 3, 3, 3, 4],
        "income": [100.0, 250.0, None, 900.0, 12.5, float("nan"), 1e9],
        "age": [30, 31, 45, 17, None, 18, 99],
        "region": ["north", "south", "north", "mars", None, "south", "north"],
    }
)
COLUMNS = {"income": pv.number(0, 1000), "age": pv.integer(0, 110), "region": pv.keys("north", "south", other="other")}


def people(rows: Any = PEOPLE, **how: Any) -> Table:
    return pv.table("people", rows, protect=how.pop("protect", pv.person("who", max_rows=2)), columns=COLUMNS, **how)


def opened(*tables: Table, budget: Any = 10, **how: Any) -> Session:
    how.setdefault("ledger", None)
    return pv.Session(list(tables) or [people()], budget=pv.PureDP(budget), threads=1, **how)


def of_world(made: World, **how: Any) -> Session:
    return opened(*made.tables.values(), public=made.public, budget=10**6, **how)


def asked(chance: Random, made: World) -> Query:
    while (found := question(chance, made)) is None:
        pass
    return found


# --- T13: what is paid is what is drawn -------------------------------------------------------------


@dataclass
class Draws:
    """Every call of the sampler."""

    calls: list[tuple[Fraction, list[int]]] = field(default_factory=list)


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Draws:
    """The real sampler, overheard."""
    seen = Draws()
    real = DiscreteLaplace.sample

    def sample(self: DiscreteLaplace, size: Any = None) -> Any:
        found = real(self, size)
        seen.calls.append((self.scale, [int(x) for x in found] if size is not None else [int(found)]))
        return found

    monkeypatch.setattr(DiscreteLaplace, "sample", sample)
    return seen


@pytest.mark.slow
def test_t13_the_ledger_s_events_are_the_noise_that_was_drawn(draws: Draws, effort: int) -> None:
    """For questions of every kind: scale by scale, coordinate by coordinate, in sum exactly the epsilon asked for."""
    rules = set()
    for number in range(12 * effort):
        chance = Random(20_000 + number)
        made = world(chance)
        with of_world(made, min_epsilon="1e-6") as session:
            first = session.ledger.head().number + 1
            for place in range(3):
                query = asked(chance, made)
                epsilon = chance.choice([Fraction(1, 3), Fraction("0.1"), Fraction(7), Fraction(1, 10**6)])
                before = session.spent.epsilon
                draws.calls.clear()
                release = session.release(query, epsilon=epsilon, fresh=True)
                release_plan = release.plan
                entry, end = session.ledger.reservation(session.name, first + 2 * place)
                assert end is not None
                assert [e.hash for e in session.ledger.history(session.name)][first - 1 + 2 * place] == entry.hash
                assert (entry.kind, end.kind, end.refers) == ("reserved", "answered", entry.number)
                assert end.answer == hashlib.sha256(release.certificate.to_json().encode()).hexdigest()
                link = release.certificate.document["ledger"]
                assert (link["entry"], link["hash"]) == (entry.number, entry.hash)
                (event,) = entry.events
                assert isinstance(event, events.Composed)
                parts = list(event.events)
                scales = [part.scale for part in parts if isinstance(part, events.LaplaceNoise)]
                assert len(scales) == len(parts) == len(draws.calls) == len(release_plan.noised)
                assert scales == [scale for scale, _ in draws.calls]
                exact = release_plan.coordinates([session.dataset.engine.answer(s) for s in release_plan.statements()])
                for part, vectors, noisy, (_, drawn) in zip(
                    release_plan.noised, exact, release.noisy, draws.calls, strict=True
                ):
                    rules.add(part.measurement.rule)
                    flat = [y - x for v, w in zip(vectors, noisy, strict=True) for x, y in zip(v, w, strict=True)]
                    assert flat == drawn  # each coordinate has a draw of its own
                cost = sum((p.move.total / p.scale for p in parts if isinstance(p, events.LaplaceNoise)), Fraction(0))
                fixed = not release_plan.noised
                assert cost == (0 if fixed else epsilon) == PureAccountant().account(event).epsilon
                assert session.spent.epsilon - before == loss(release.spent) == cost
    assert rules == {"count/1", "people/1", "present/1", "histogram/1", "sum/1", "pair/1", "triple/1", "distinct/1"}


def test_t13_within_pays_for_the_noise_it_draws(draws: Draws) -> None:
    with opened() as session:
        table = session.tables["people"]
        query = table.group_by("region").agg(n=pv.count(), pay=pv.mean("income"), all=pv.sum("income"))
        release = session.release(query, within={"n": 20, "pay": 100, "all": 9000}, assuming=50)
        scales = [scale for scale, _ in draws.calls]
        assert scales == list(release.plan.scales)
        total = sum(part.move.total / scale for part, scale in zip(release.plan.noised, scales, strict=True))
        assert session.spent.epsilon == release.plan.epsilon == total
        assert all(release.plan.expected(name) <= most for name, most in (("n", 20), ("pay", 100), ("all", 9000)))  # type: ignore[operator]


def test_t13_noise_that_was_not_paid_for_is_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin whose noise is half of what the plan says."""
    with opened() as session:
        monkeypatch.setattr(laplace, "DiscreteLaplace", lambda scale: DiscreteLaplace(scale / 2))
        with pytest.raises(NoAnswer):
            session.release(session.tables["people"].agg(n=pv.count()), epsilon=1)
        assert session.spent.epsilon == 1


def test_t14_replacing_costs_twice_the_noise() -> None:
    noised = {}
    for adjacency in ("add/remove", "replace"):
        table = people(adjacency=adjacency)
        noised[adjacency] = plan(table.group_by("region").agg(n=pv.count(), p=pv.count_people()), epsilon=1).scales
    assert [2 * scale for scale in noised["add/remove"]] == list(noised["replace"])
    for protect, adjacency in ((pv.each_row(), "add/remove"), (pv.person("who", max_rows=2), "replace")):
        with pytest.raises(pv.UserError, match="private"):
            people(protect=protect, adjacency=adjacency).schema.declare(
                "people", protect=protect, adjacency=adjacency, columns=COLUMNS, rows=7
            )


# --- T19, T20: neighbours look the same ---------------------------------------------------------------


def visible(session: Session, query: Query, **how: Any) -> dict[str, Any]:
    """Everything that an analyst can see of a question and its answer."""
    seen: dict[str, Any] = {"before": session.explain(query, **how), "session": repr(session)}
    release = session.release(query, request_id="same", **how)
    again = session.release(query, request_id="same", **how)
    seen["again"] = [again.noisy, again.certificate.to_json(), again.spent, again.remaining]
    seen["arrow"] = release.to_arrow(intervals=False)
    seen["dicts"] = repr(release.to_dicts(intervals=False))
    try:
        seen["intervals"] = release.to_arrow()
    except pv.UserError as error:
        seen["intervals"] = str(error)
    seen["printed"] = [str(release), repr(release), release._repr_html_(), repr(release.certificate)]
    seen["certificate"] = release.certificate.to_json()
    seen["facts"] = [release.columns, release.keys, release.spent, release.remaining, len(release), repr(release.plan)]
    seen["too noisy"] = [release.too_noisy(name) for name, _ in release.plan.columns]
    seen["ledger"] = session.ledger.history(session.name)
    seen["exported"] = [*session.ledger.export(session.name)]
    seen["receipt"] = session.ledger.head()
    seen["after"] = [session.explain(query, **how), repr(session), session.spent, session.remaining]
    return seen


@pytest.fixture
def same_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noisy integers come out the same, whatever the data: so must everything else that can be seen."""
    real = planner_noise.add_noise

    def add_noise(made: Any, exact: Any) -> Any:
        _, event = real(made, exact)
        chance = Random(str(made.query))
        noisy = tuple(
            tuple(tuple(chance.choice([-3, 0, 5, 10**6, 10**30]) for _ in vector) for vector in part) for part in exact
        )
        return noisy, event

    monkeypatch.setattr(queries, "add_noise", add_noise)


@pytest.fixture
def same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries say when they were made, and with which salt, and hashes cover it: else they must be the same."""

    class Salt:
        def take(self, count: int) -> bytes:
            return bytes(range(count))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Clock:
            return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.setattr(book, "datetime", Clock)
    monkeypatch.setattr(steward, "SystemBits", Salt)


@pytest.mark.slow
@pytest.mark.usefixtures("same_noisy", "same_time")
def test_t20_neighbours_with_the_same_noisy_numbers_can_t_be_told_apart(effort: int) -> None:
    for number in range(5 * effort):
        chance = Random(30_000 + number)
        made = world(chance)
        query = asked(chance, made)
        how: dict[str, Any] = {
            "epsilon": chance.choice([1, "0.01"]),
            "assuming": 50,
            "simultaneous": chance.random() < 0.3,
        }
        views = []
        for data in (made.data, shuffled(chance, made.data), *star(chance, made, 2).tables()):
            tables = [made.declare(name, rows) for name, rows in data.items()]
            assert [repr(t) for t in tables] == [repr(t) for t in made.tables.values()]
            with opened(*tables, public=made.public, budget=100) as session:
                views.append(visible(session, query, **how))
        for view in views[1:]:
            assert view == views[0], number


@pytest.mark.slow
@pytest.mark.usefixtures("same_time")
def test_t20_with_real_noise_all_but_the_numbers_is_the_same() -> None:
    for number in range(5):
        chance = Random(40_000 + number)
        made = world(chance)
        query = asked(chance, made)
        views = []
        for data in (made.data, *star(chance, made, 1).tables()):
            with opened(*(made.declare(n, r) for n, r in data.items()), public=made.public) as session:
                release = session.release(query, epsilon=1, request_id="same")
                arrow = release.to_arrow(intervals=False)
                document = {k: v for k, v in release.certificate.document.items() if k not in ("noisy", "answer")}
                keys = arrow.select([key.name for key in query.keys])
                sizes = [[len(v) for v in part] for part in release.noisy]
                shape = {
                    n: [len(c) for c in cells.values()] for n, cells in release.certificate.document["answer"].items()
                }
                views.append(
                    [
                        arrow.schema,
                        arrow.column_names,
                        len(arrow),
                        keys,
                        json.dumps(document),
                        sizes,
                        shape,
                        repr(release),
                    ]
                )
        assert views[0] == views[1]


def test_t20_errors_are_the_same_for_neighbours() -> None:
    texts = []
    for rows in (PEOPLE, PEOPLE.slice(0, 0), PEOPLE.slice(1)):
        with opened(people(rows), budget=1) as session:
            table = session.tables["people"]
            seen = []
            for wrong in (
                lambda t: session.release(t.agg(n=pv.count()), epsilon=2),
                lambda t: session.release(t.agg(n=pv.sum("incme")), epsilon=1),
                lambda t: session.release(t.agg(n=pv.mean(1 / pv.col("age"))), epsilon=1),
                lambda t: len(t),
                lambda t: list(t),
            ):
                with pytest.raises(pv.UserError) as caught:
                    wrong(table)
                seen.append(str(caught.value))
            texts.append([*seen, repr(session), repr(table)])
    assert texts[0] == texts[1] == texts[2]


def test_t22_what_rows_hold_is_seen_nowhere() -> None:
    """A marker in every cell that can hold one."""
    marker = "canary"
    rows = pa.table({"who": [marker] * 3, "income": [1.0] * 3, "age": [1] * 3, "region": [marker] * 3})
    with opened(people(rows)) as session:
        query = session.tables["people"].group_by("region").agg(n=pv.count(), m=pv.mean("income"))
        view = visible(session, query, epsilon=1)
        assert marker not in repr(view)
        assert marker not in repr(session.dataset.__dict__["tables"])


def test_t19_the_cost_is_known_before_and_is_the_same_for_all_data() -> None:
    for number in range(4):
        chance = Random(50_000 + number)
        made = world(chance)
        query = asked(chance, made)
        costs = set()
        nobody: Data = {name: [] for name in made.data}
        for data in (made.data, *([nobody] if made.rows is None else []), *star(chance, made, 1).tables()):
            tables = [made.declare(name, rows) for name, rows in data.items()]
            with opened(*tables, public=made.public, budget=100) as session:
                promised = session.plan(query, epsilon="0.3").guarantee()
                session.release(query, epsilon="0.3")
                assert session.spent == promised
                costs.add(loss(promised))
        assert len(costs) == 1


# --- order, budget ------------------------------------------------------------------------------------


class Overheard:
    """A ledger that writes down when it is called."""

    def __init__(self, calls: list[str]) -> None:
        self._ledger = memory_ledger()
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)

        def call(*args: Any, **named: Any) -> Any:
            if name in ("reserve", "settle"):
                self._calls.append(name if name == "reserve" else f"settle {args[1]}")
            return method(*args, **named)

        return call


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of engine and sampler, in order."""
    seen: list[str] = []

    def overhear(owner: type, name: str, what: str) -> None:
        real = getattr(owner, name)

        def call(*args: Any, **named: Any) -> Any:
            seen.append(what)
            return real(*args, **named)

        monkeypatch.setattr(owner, name, call)

    overhear(DuckDB, "_run", "read")
    overhear(DiscreteLaplace, "sample", "noise")
    return seen


def test_price_debit_execute_noise_settle(calls: list[str]) -> None:
    with opened(ledger=Overheard(calls)) as session:
        table = session.tables["people"]
        query = table.group_by("region").agg(n=pv.count(), p=pv.count_people())
        session.plan(query, epsilon=1)
        session.explain(query, epsilon=1)
        session.explain(query, within={"n": 10, "p": 10})
        assert calls == []
        assert session.spent.epsilon == 0
        session.release(query, epsilon=1)
        assert calls == ["reserve", "read", "read", "noise", "noise", "settle answered"]
        del calls[:]
        session.release_value(17, sensitivity=1, epsilon=1, label="mine")
        assert calls == ["reserve", "noise", "settle answered"]


def test_over_budget_is_refused_before_anything_is_read(calls: list[str]) -> None:
    with opened(ledger=Overheard(calls), budget="0.7") as session:
        query = session.tables["people"].agg(n=pv.count(), m=pv.mean("income"))
        session.release(query, epsilon="1/3")
        del calls[:]
        for too_much in ("0.4", 5):
            with pytest.raises(BudgetError, match="Nothing was spent"):
                session.release(query, epsilon=too_much)
        with pytest.raises(BudgetError, match="Nothing was spent") as caught:
            session.release(query, epsilon=Fraction(11, 30) + Fraction(1, 10**30))
        assert "read" not in calls
        assert "noise" not in calls
        assert "is left" in str(caught.value)
        assert "Write" not in str(caught.value), "nobody should be led to spend all that is left"
        release = session.release(query, epsilon=Fraction(11, 30))
        assert session.remaining.epsilon == 0
        assert str(release.remaining) == "epsilon 0"
        with pytest.raises(BudgetError, match="Ask the steward"):
            session.release(query, epsilon="0.001", fresh=True)
        with pytest.raises(BudgetError, match="is left"):
            session.release(query, within={"n": 5, "m": 100}, assuming=10)
        assert "not enough" in session.explain(query, epsilon=1)


def test_what_is_in_the_ledger_is_neither_read_nor_drawn_again(calls: list[str]) -> None:
    hows: list[dict[str, Any]] = [
        {},
        {"request_id": "b"},
        {"request_id": "b"},
        {"request_id": "a"},
        {"request_id": "a", "fresh": True},
        {"confidence": 0.5},
        {"simultaneous": True},
        {"epsilon": "1/9"},
    ]
    with opened(ledger=Overheard(calls), budget=1) as session:
        query = session.tables["people"].group_by("region").agg(n=pv.count(), m=pv.mean("income"))
        first = session.release(query, epsilon=1, request_id="a")
        del calls[:]
        for how in hows:
            assert session.release(query, **{"epsilon": 1, **how}).noisy == first.noisy
        assert calls == ["reserve"] * len(hows)
        assert session.spent.epsilon == 1


@pytest.mark.parametrize("left", ["1/7", "0.1", "3", "1e-8", "0.30000000000000004", "123456789/1000000007"])
def test_what_is_said_to_be_left_fits(left: str) -> None:
    with opened(budget=left, min_epsilon="1e-9") as session:
        query = session.tables["people"].group_by("region").agg(n=pv.count(), s=pv.std("income"), p=pv.count_people())
        with pytest.raises(BudgetError) as caught:
            session.release(query, epsilon=10)
        said = re.search(r"only epsilon (\S+) is left", str(caught.value))
        assert said is not None
        assert len(said[1]) <= 12, "long numbers are rounded, down"
        session.release(query, epsilon=said[1])
        assert session.remaining.epsilon <= Fraction(left) / 100_000


def test_a_request_id_is_used_once(draws: Draws) -> None:
    with opened() as session:
        query = session.tables["people"].agg(n=pv.count())
        first = session.release(query, epsilon=1, request_id="a")
        for fresh in (False, True):
            assert session.release(query, epsilon=1, request_id="a", fresh=fresh).noisy == first.noisy
        assert len(draws.calls) == 1
        for other, epsilon in ((query, 2), (query, "0.5"), (session.tables["people"].agg(m=pv.count()), 1)):
            with pytest.raises(pv.UserError, match="already used for a different question"):
                session.release(other, epsilon=epsilon, request_id="a")
        assert session.spent.epsilon == 1


# --- T17, T24: failures of the engine -----------------------------------------------------------------


class Broken:
    """A source whose rows fail while they are read, with an error that shows a row."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def types(self) -> dict[str, StoredType]:
        number, whole = StoredType.float(), StoredType.integer(64)
        return {"who": whole, "income": number, "age": whole, "region": StoredType.text()}

    def files(self) -> list[str]:
        return []

    def attach(self, connection: Any, name: str) -> None:
        connection.register("rows", self.rows)
        connection.execute(f"CREATE TABLE raw_{name} AS SELECT * FROM rows")  # registered rows are one cursor's alone
        poison = "CASE WHEN income > 500 THEN error('secret ' || income) ELSE income END"
        connection.execute(f"CREATE VIEW {name} AS SELECT who, {poison} AS income, age, region FROM raw_{name}")


def failing(session: Session, query: Query, **how: Any) -> NoAnswer:
    with pytest.raises(NoAnswer) as caught:
        session.release(query, **how)
    return caught.value


def test_t24_a_source_that_breaks() -> None:
    """One constant text, no cause, the debit stays; after three the dataset is closed until it is reopened."""
    good = people()
    with opened(Table(good.schema, Broken(PEOPLE))) as session:
        bad = session.tables["people"].agg(m=pv.mean("income"))
        fine = session.tables["people"].agg(a=pv.mean("age"))
        texts = set()
        for place in range(3):
            error = failing(session, bad, epsilon=1)
            assert not isinstance(error, DatasetClosed)
            assert (error.__cause__, error.__context__) == (None, None)
            assert len(error.args) == 1
            texts.add(str(error))
            assert session.spent.epsilon == place + 1
            reserved, failed = session.ledger.history(session.name)[-2:]
            assert (reserved.kind, failed.kind, failed.refers) == ("reserved", "failed", reserved.number)
            assert failed.note == failed.answer == ""
        assert len(texts) == 1
        assert "secret" not in "".join(session.ledger.export(session.name))
        assert "secret" not in str(texts)
        assert "duckdb" not in str(texts).lower()
        with pytest.raises(DatasetClosed, match="reopen"):
            session.release(fine, epsilon=1)
        with pytest.raises(DatasetClosed):
            session.release_value(1, sensitivity=1, epsilon=1, label="mine")
        assert session.spent.epsilon == 3
        assert session.plan(fine, epsilon=1).epsilon == 1  # planning reads nothing
        for wrong in ("", "  ", None):
            with pytest.raises(pv.UserError, match="reason"):
                session.reopen(wrong)  # type: ignore[arg-type]
        session.reopen("the source was fixed")
        kinds = [entry.kind for entry in session.ledger.history(session.name)]
        assert kinds == ["created", "attached", "declared", *["reserved", "failed"] * 3, "reopened"]
        session.release(fine, epsilon=1)
        assert session.spent.epsilon == 4
        assert str(failing(session, bad, epsilon=1)) in texts


def test_t24_the_text_is_the_same_whatever_breaks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = set()
    good = people()

    def sampler(self: Any, size: Any = None) -> Any:
        raise MemoryError("secret")

    breaks: list[Callable[[Session, pytest.MonkeyPatch], Any]] = [
        lambda s, m: m.setattr(s.dataset.engine, "_run", lambda cursor, sql, context: 1 / 0),
        lambda s, m: m.setattr(DiscreteLaplace, "sample", sampler),
        lambda s, m: m.setattr(requests_base, "certify", lambda *a, **k: int("secret")),
        lambda s, m: s.dataset.engine._connection.close(),  # type: ignore[attr-defined]
    ]
    for break_it in breaks:
        with opened(good) as session, monkeypatch.context() as patched:
            break_it(session, patched)
            error = failing(session, session.tables["people"].agg(n=pv.count()), epsilon=1)
            assert (error.__cause__, error.__context__) == (None, None)
            texts.add(str(error))
            assert session.spent.epsilon == 1
    rows = pa.table(
        {"who": range(400_000), "income": [1.0] * 400_000, "age": [1] * 400_000, "region": ["north"] * 400_000}
    )
    with pv.Session([people(rows)], budget=pv.PureDP(9), ledger=None, memory="4MB", spill=tmp_path) as session:
        assert isinstance(session.dataset.engine, DuckDB)
        shutil.rmtree(session.dataset.engine._folder)
        Path(session.dataset.engine._folder).write_text("no folder")  # no place to spill to
        error = failing(
            session, session.tables["people"].group_by("region").agg(n=pv.count(), m=pv.std("income")), epsilon=1
        )
        texts.add(str(error))
        assert session.spent.epsilon == 1
        Path(session.dataset.engine._folder).unlink()
    assert len(texts) == 1


def test_t24_an_interrupt_costs_the_debit_and_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(cursor: Any, sql: Any, context: Any) -> Any:
        raise KeyboardInterrupt

    with opened() as session:
        monkeypatch.setattr(session.dataset.engine, "_run", stop)
        with pytest.raises(KeyboardInterrupt):
            session.release(session.tables["people"].agg(n=pv.count()), epsilon=1)
        assert session.spent.epsilon == 1
        assert [entry.kind for entry in session.ledger.history(session.name)[-2:]] == ["reserved", "interrupted"]


def test_what_can_t_be_asked_is_refused_before_the_debit() -> None:
    """Whatever a question can be, planning refuses it or the engine answers it: an analyst can't close a dataset."""
    i = pv.col("i")
    for lower, upper in ((2**62 - 9, 2**62), (-(2**62), -(2**62) + 9), (0, 2**52), (-(2**51), 2**51)):
        table = pv.table(
            "t", pa.table({"who": [1, 2], "i": [lower, upper]}), protect=pv.person("who", max_rows=2),
            columns={"i": pv.integer(lower, upper)},
        )  # fmt: skip
        makers: list[Callable[[], Query]] = [
            lambda t=table: t.agg(s=pv.sum(i)),  # type: ignore[misc]
            lambda t=table: t.agg(s=pv.sum(pv.lit(2**62))),  # type: ignore[misc]
            lambda t=table: t.agg(s=pv.sum(pv.lit(-(2**62)))),  # type: ignore[misc]
            lambda t=table, u=upper: t.agg(s=pv.sum(i.clip(u, u + 5))),  # type: ignore[misc]
            lambda t=table, u=lower: t.agg(s=pv.mean(i.clip(u - 5, u))),  # type: ignore[misc]
            lambda t=table: t.per_person(a=pv.sum(i * 2)).agg(s=pv.sum(pv.col("a").clip(0, 9))),  # type: ignore[misc]
            lambda t=table: t.per_person(a=pv.mean(i + i)).agg(s=pv.sum(pv.col("a").clip(-3, 9))),  # type: ignore[misc]
            lambda t=table: t.per_person(a=pv.mean(i * i)).agg(s=pv.count("a")),  # type: ignore[misc]
            lambda t=table: t.group_by(k=pv.bins(i, [-(2**70), 0, 2**70])).agg(s=pv.count()),  # type: ignore[misc]
            lambda t=table: t.where(i.is_in([2**62, 2**63, -(2**63), 10**30])).agg(s=pv.count()),  # type: ignore[misc]
            lambda t=table: t.agg(s=pv.histogram(i, [0, 2**63])),  # type: ignore[misc]
        ]
        with opened(table, budget=1000) as session:
            answered = 0
            for number, make in enumerate(makers):
                try:
                    query = make()
                    session.plan(query, epsilon=1)
                except pv.UserError:
                    continue
                try:
                    session.release(query, epsilon=1)
                except NoAnswer:
                    pytest.fail(f"integer({lower}, {upper}), question {number}: {query} was paid for and not answered")
                answered += 1
            assert answered > 5


# --- sessions that are not of one dataset ---------------------------------------------------------------


def test_a_session_answers_about_its_own_tables_only(calls: list[str]) -> None:
    mine, other = people(), pv.table("others", PEOPLE, protect=pv.person("who", max_rows=2), columns=COLUMNS)
    looser = people(protect=pv.person("who", max_rows=1))
    public = pv.public_table("places", pa.table({"region": ["north"], "area": [3]}), key="region")
    forged = pv.public_table("places", pa.table({"region": ["north"], "area": [4]}), key="region")
    with opened(mine, public=[public]) as session:
        del calls[:]
        for query in (
            other.agg(n=pv.count()),
            looser.agg(n=pv.count()),
            mine.join(forged, on="region").agg(n=pv.count()),
            mine.join(other.per_person(n=pv.count())).agg(n=pv.count()),
        ):
            with pytest.raises(QueryError, match="session"):
                session.release(query, epsilon=1)
        assert calls == []
        session.release(mine.join(public, on="region").agg(a=pv.sum("area")), epsilon=1)
