"""Plans that are kept: what may change meanwhile is looked at each time, and nobody learns what others ask."""

from __future__ import annotations

import sys
from collections import Counter
from contextvars import copy_context
from typing import Any

import httpx
import pyarrow as pa
import pytest
from tests.server.api.serving import BY_REGION, COUNT, Running

import privet as pv
from privet.errors import UserError
from privet.planner import ReleasePlan, conditions
from privet.server.accounts import Role
from privet.server.plans import Plans
from privet.system.remembered import asked_by
from privet.tables.analysis import narrowing

EXPLAIN = "/datasets/people/explain"


def test_a_kept_plan_does_not_keep_a_right(running: Running) -> None:
    """A token that is revoked, and an account that may not ask any more, are refused although the plan is there."""
    running.server.accounts.add("eve", Role.ANALYST, ["people"])
    eve = running.token("eve")
    body = {"sql": COUNT, "epsilon": 0.5}
    assert eve.post(EXPLAIN, json=body).status_code == 200
    running.server.accounts.set_access("eve", Role.ANALYST, ["trips"])
    assert eve.post(EXPLAIN, json=body).status_code == 404
    running.server.accounts.set_access("eve", Role.ANALYST, ["people"])
    assert eve.post(EXPLAIN, json=body).status_code == 200
    token = running.server.accounts.tokens("eve")[0]
    running.server.accounts.revoke_token(token.id)
    assert eve.post(EXPLAIN, json=body).status_code == 401


def test_what_is_left_is_read_each_time(running: Running, ann: httpx.Client, sam: httpx.Client) -> None:
    body = {"sql": BY_REGION, "epsilon": 0.5}
    first = ann.post(EXPLAIN, json=body).json()
    assert (first["paid_before"], first["fits"]) == (None, True)
    paid = ann.post("/datasets/people/query", json=body).json()
    second = ann.post(EXPLAIN, json=body).json()
    assert (second["paid_before"], second["cost"]) == ({"epsilon": "0.5"}, {"epsilon": "0"})
    assert second["times"] == first["times"] - 1
    assert "Already paid for" in second["text"]
    cap = {"analyst": "ann", "epsilon": 0.75, "reason": "a test"}
    assert sam.post("/datasets/people/caps", json=cap).status_code == 200
    third = ann.post(EXPLAIN, json=body | {"fresh": True}).json()
    assert (third["times"], third["fits"], third["paid_before"]) == (0, False, None)
    assert "epsilon 0.25 is left of epsilon 0.75 for 'ann': not enough" in third["text"]
    assert sam.post("/datasets/people/caps", json=cap | {"epsilon": None}).status_code == 200
    assert third["curve"] == second["curve"] == first["curve"]
    assert [point["epsilon"] for point in first["curve"]] == ["0.125", "0.25", "0.5", "1", "2"]
    assert paid["spent"] == {"epsilon": "0.5"}


def test_each_analyst_has_their_own(running: Running, ann: httpx.Client, bob: httpx.Client) -> None:
    """Otherwise the time of a plan would tell that somebody asked the same."""
    made: list[str] = []
    plan = running.server.datasets["people"].plan

    def counted(*arguments: object, **options: object) -> ReleasePlan:
        made.append(str(arguments[0]))
        return plan(*arguments, **options)  # type: ignore[arg-type]

    sql = "SELECT COUNT(*) AS m FROM people"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running.server.datasets["people"], "plan", counted)
        for client, times in ((ann, 1), (ann, 1), (bob, 2), (bob, 2)):
            assert client.post(EXPLAIN, json={"sql": sql, "epsilon": 0.5}).status_code == 200
            assert made.count(sql) == times
        assert ann.post(EXPLAIN, json={"sql": sql, "epsilon": 0.25}).json()["cost"] == {"epsilon": "0.25"}
        assert made.count(sql) == 3


def test_a_question_is_read_checked_and_noted_once(running: Running, ann: httpx.Client) -> None:
    """Explaining it makes plans at five prices, and its answer shows the notes on its conditions twice."""
    dataset = running.server.datasets["people"]
    done: list[str] = []

    def counted(owner: object, name: str) -> None:
        original = getattr(owner, name)

        def work(*arguments: object, **options: object) -> object:
            done.append(name)
            return original(*arguments, **options)

        patch.setattr(owner, name, work)

    body = {"sql": "SELECT region, COUNT(*) AS n FROM people WHERE age >= 0 GROUP BY region", "epsilon": 0.25}
    with pytest.MonkeyPatch.context() as patch:
        counted(dataset, "asked")
        counted(conditions, "check")
        counted(conditions, "notes")
        explained = ann.post(EXPLAIN, json=body).json()
        paid = ann.post("/datasets/people/query", json=body | {"fresh": True}).json()
    assert sorted(done) == ["asked", "check", "notes"]
    note = "age >= 0 is true for every row"
    assert note in explained["text"]
    assert any(told.startswith(note) for told in paid["notes"])


def test_what_remains_of_a_key_is_worked_out_for_each_analyst(
    running: Running, ann: httpx.Client, bob: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With thousands of values it takes a third of a second: the time would tell that somebody asked about them."""
    made: list[str] = []
    narrowed = narrowing._narrowed

    def counted(key: Any, *rest: Any) -> Any:
        made.append(key.name)
        return narrowed(key, *rest)

    monkeypatch.setattr(narrowing, "_narrowed", counted)
    sql = "SELECT region, COUNT(*) AS n FROM people WHERE region <> 'north' GROUP BY region"
    for client, epsilon, times in ((ann, 0.25, 1), (ann, 0.375, 1), (bob, 0.25, 2), (bob, 0.375, 2), (ann, 0.5, 2)):
        assert client.post(EXPLAIN, json={"sql": sql, "epsilon": epsilon}).status_code == 200
        assert len(made) == times
    assert ann.post("/datasets/people/query", json={"sql": sql, "epsilon": 0.125}).status_code == 200
    assert len(made) == 2


SUMS = "SELECT region, SUM(CLIP(income, 0, {})) AS s, AVG(income) AS m FROM people GROUP BY "
BATCH = {"a": "SELECT SUM(CLIP(income, 0, {})) AS s FROM people", "b": "SELECT COUNT(*) AS n FROM people"}


@pytest.mark.parametrize(
    ("asked", "prices"),
    [
        (SUMS + "region", {"epsilon": 0.375}),
        (SUMS + "CUBE (region, age)", {"epsilon": 0.375}),
        (SUMS + "CUBE (region, age)", {"rho": 0.0375}),
        (SUMS + "region", {"epsilon": 0.375, "delta": "1e-8"}),
        (BATCH, {"epsilon": {"a": 0.375, "b": 0.25}, "delta": "1e-8"}),
    ],
    ids=["groups", "cube", "cube in rho", "delta", "batch"],
)
def test_nothing_that_explain_works_out_is_there_since_another_asked(asked: Any, prices: Any) -> None:
    """As many results have to be computed for a question that somebody else has explained as for a new one.

    The privacy loss of a batch of twelve questions takes seconds, and what a cube measures takes 20 ms.
    """
    rows = pa.table({"region": ["n", "s"], "age": [1, 2], "income": [1.0, 2.0]})
    bounds = {"region": pv.keys("n", "s", "e"), "age": pv.integer(0, 4), "income": pv.number(0, 200_000)}
    people = pv.table("people", rows, protect=pv.each_row(), columns=bounds)

    def explain(who: str, most: int) -> Counter[str]:
        """The results that had to be computed, by their functions."""
        before = computed()
        asked_by(who)
        session = dataset.session(analyst=who)
        if isinstance(asked, str):
            str(session.explain(asked.format(most), **prices))
        else:
            str(session.explain_all({name: sql.format(most) for name, sql in asked.items()}, **prices))
        return computed() - before

    with pv.Dataset([people], budget=pv.ApproxDP(3, "1e-6"), ledger=None, accountant="meters") as dataset:
        for who, most in (("sam", 555), ("ann", 81_233)):
            copy_context().run(explain, who, most)
        same, new = (copy_context().run(explain, who, most) for who, most in (("bob", 81_233), ("tim", 71_237)))
        assert same
        assert same == new


def computed() -> Counter[str]:
    """How often each function of Privet's that remembers results has computed one."""
    modules = [module for name, module in sys.modules.items() if name.startswith("privet.")]
    every = {id(each): each for module in modules for each in vars(module).values() if callable(each)}.values()
    kept = [(each, getattr(each, "_done", each)) for each in every]
    return Counter(
        {
            f"{of.__module__}.{of.__qualname__}": cache.cache_info().misses
            for of, cache in kept
            if hasattr(cache, "cache_info")
        }
    )


@pytest.mark.parametrize(
    ("more", "prices"),
    [
        ({}, 5),
        ({"within": {"n": 20}, "epsilon": None}, 5),
        ({"max_rows": 1, "confidence": 0.5}, 5),
        ({"sql": COUNT.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5)", 1)}, 1),
        ({"sql": COUNT.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1)", 1)}, 5),
    ],
)
def test_the_curve_is_what_other_prices_give(ann: httpx.Client, more: dict[str, object], prices: int) -> None:
    body = {"sql": COUNT, "epsilon": 0.5} | more
    curve = ann.post(EXPLAIN, json=body).json()["curve"]
    assert len(curve) == prices
    del body["epsilon"]
    body.pop("within", None)
    for point in curve:
        at = ann.post(EXPLAIN, json=body | {"epsilon": point["epsilon"]}).json()
        assert point in at["curve"]


def test_they_are_few_and_small(people: pv.Session) -> None:
    made = 0

    def plan(sql: str = COUNT) -> ReleasePlan:
        nonlocal made
        made += 1
        return people.plan(sql, epsilon=1)

    def refused() -> ReleasePlan:
        raise UserError("no")

    plans = Plans(analysts=2, each=2)
    for who, asked, times in (
        ("ann", "a", 1), ("ann", "b", 2), ("ann", "a", 2), ("ann", "c", 3), ("ann", "a", 3), ("ann", "b", 4),
        ("bob", "b", 5), ("ann", "b", 5), ("eve", "b", 6), ("ann", "b", 6), ("bob", "b", 7),
    ):  # fmt: skip
        plans.kept(("people", who), asked, plan)
        assert made == times, (who, asked)
    with pytest.raises(UserError):
        plans.kept(("people", "ann"), "d", refused)
    columns = ", ".join(f"COUNT(*) FILTER (WHERE income < {i + 1}) AS n{i}" for i in range(20))
    large = f"SELECT age, {columns} FROM people GROUP BY age"
    wide = f"SELECT {columns}, COUNT(*) AS every FROM people"
    for times, sql in ((8, large), (9, large), (10, wide), (11, wide)):  # 111 groups of 20 numbers, and 21 columns
        plans.kept(("people", "ann"), sql, lambda sql=sql: plan(sql))  # type: ignore[misc]
        assert made == times


@pytest.fixture(scope="module")
def people(running: Running) -> pv.Session:
    return running.server.datasets["people"].session(analyst="ann")
