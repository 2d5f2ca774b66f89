"""The hull is enforced by every engine: what one row or one person adds, of each of many in one statement.

As test_hull.py, with an adversary in place of what is measured. A statement of Spark takes a second, so the
neighbours are in one table: a column `unit` says which one a row belongs to, and each question is also asked by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan, nextafter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests import movers
from tests.effort import some
from tests.engines.test_hull import (
    ANY,
    ASKED,
    CAPS,
    DATES,
    OF_PEOPLE,
    SMALL,
    TEXTS,
    Adversary,
    beyond,
    column,
    unclamped,
)
from tests.neighbours.exact import Vectors

import privet as pv
from privet.engines.sql import hull
from privet.planner import ReleasePlan, plan
from privet.tables.expressions.nodes import Column
from privet.tables.statement import Statement
from privet.tables.types import NumberType

SERVED = ("postgres", "spark")
LACKING = {"postgres": ("chr(0)",), "spark": ("infinity", "5874897"), "duckdb": ()}
"""What an engine has no way to write."""


@pytest.fixture(params=["duckdb", *SERVED])
def name(request: pytest.FixtureRequest) -> Any:
    with movers.reachable(request.param, request) as name:
        yield name


def adversary(name: str, monkeypatch: pytest.MonkeyPatch, values: Sequence[int | None] = ANY) -> Adversary:
    texts, dates = ([x for x in all_ if not any(lack in x for lack in LACKING[name])] for all_ in (TEXTS, DATES))
    return Adversary(monkeypatch, values, texts=texts, dates=dates)


def seen(name: str, units: Sequence[Sequence[int]], ask: Any, **how: Any) -> tuple[ReleasePlan, list[Vectors]]:
    """The exact vectors of each unit alone; first, of none."""
    many = len(units) + 1
    rows = [(unit, row) for unit, rows_ in enumerate(units, start=1) for row in rows_]
    table = pv.table(
        "t",
        pa.table(
            {
                "id": pa.array([unit for unit, _ in rows], pa.int64()),
                "unit": pa.array([unit for unit, _ in rows], pa.int64()),
                "row": pa.array([row for _, row in rows], pa.int64()),
                "other": pa.array([1] * len(rows), pa.int64()),
                "day": pa.array([19_750] * len(rows), pa.int32()).cast(pa.date32()),
            }
        ),
        columns={
            "unit": pv.integer(0, many - 1, required=True),
            "row": column(True),
            "other": column(True),
            "day": pv.date("2024-01-01", "2024-03-31"),
        },
        **how,
    )
    asked = plan(ask(table), epsilon=1)
    engine = movers.opened(name, table)
    try:
        answers = [engine.answer(by_unit(statement)) for statement in asked.statements()]
    finally:
        engine.close()
    return asked, [asked.coordinates([answer[unit::many] for answer in answers]) for unit in range(many)]


def by_unit(statement: Statement) -> Statement:
    """The same, for each unit: the last of its keys."""
    return replace(statement, keys=(*statement.keys, Column("unit")), listed=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_an_adversary_stays_in_the_hull(name: str, adjacency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = adversary(name, monkeypatch)
    for what in some(list(ASKED), every=3, start=int(adjacency == "replace")):
        asked, vectors = seen(
            name, [[i] for i in range(len(ANY))], lambda t, what=what: t.agg(**ASKED[what]), protect=pv.each_row(),
            adjacency=adjacency,
        )  # fmt: skip
        assert beyond(asked, vectors if adjacency == "add/remove" else vectors[1:], adjacency) == [], what
    assert made.asked


@pytest.mark.parametrize("cap", CAPS)
def test_an_adversary_moves_a_person_by_no_more_than_claimed(
    name: str, cap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = adversary(name, monkeypatch)
    adjacency = "replace" if cap in ("one row", "rows of groups") else "add/remove"
    chance = Random(cap)
    units = [[i] for i in range(len(ANY))] + [chance.choices(range(len(ANY)), k=k) for k in (2, 3, 5, 9, 22)]
    whole = [what for what in OF_PEOPLE if "person's" not in what and what != "of a person"]
    for what in some(whole, every=5, start=list(CAPS).index(cap)):
        asked, vectors = seen(
            name, units, OF_PEOPLE[what], protect=pv.person("id", **CAPS[cap]), adjacency=adjacency
        )  # fmt: skip
        assert beyond(asked, vectors, adjacency) == [], what
    assert made.asked or what == "people"


def test_codes_that_are_not_clamped_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    adversary(name, monkeypatch, SMALL)
    monkeypatch.setattr(hull, "clamped", unclamped)
    units = [[i] for i in range(len(ANY))]
    ask = lambda t: t.agg(**ASKED["sum"])  # noqa: E731
    assert beyond(*seen(name, units, ask, protect=pv.each_row(), adjacency="add/remove"), "add/remove")


FAR = {
    "down": pv.integer(-4 * 10**18, -4 * 10**18 + 512_000),
    "up": pv.integer(-25 * 10**17, -25 * 10**17 + 512_000),
    "above": pv.integer(4 * 10**18, 4 * 10**18 + 512_000),
    "fine": pv.number(-(10**9) - 1, -(10**9)),
    "steps": pv.number(-(2**70) - 2**27, -(2**70), step=2**18),
}
"""Columns whose floats are so many steps away from 0 that no 64-bit integer holds twice as many."""


def test_codes_of_floats_far_from_0(name: str) -> None:
    units: list[dict[str, float | None]] = []
    for field, declared in FAR.items():
        assert isinstance(declared.type, NumberType)
        low, high = float(declared.type.lower), float(declared.type.upper)
        inside = [low, nextafter(low, 0), (low + high) / 2, nextafter(high, low), high, -inf, inf, nan]
        units += [{each: x if each == field else None for each in FAR} for x in inside]
    table = pv.table(
        "t",
        pa.table(
            {field: pa.array([unit[field] for unit in units], pa.float64()) for field in FAR}
            | {"unit": pa.array(range(len(units)), pa.int64())}
        ),
        columns={**FAR, "unit": pv.integer(0, len(units) - 1, required=True)},
        protect=pv.each_row(),
    )
    statements = plan(table.agg(**{field: pv.sum(field) for field in FAR}), epsilon=1).statements()
    found: list[Any] = []
    expected: list[Any] = []
    for which, answers in ((name, found), ("reference", expected)):
        engine = movers.opened(which, table)
        try:
            answers += [engine.answer(by_unit(statement)) for statement in statements]
        finally:
            engine.close()
    assert found == expected
