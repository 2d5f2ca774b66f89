"""One row for each person and key, noise off: a table is the sum of its people, and nobody moves more than claimed.

The person who is added has many rows under every key. Twins that group by the key alone, or claim one row for each
person, must be caught.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.neighbours.exact import Vectors, moved

import privet as pv
from privet.engines.registry import engine_class
from privet.engines.sql.relations import OpenedPerPerson
from privet.planner import ReleasePlan, plan
from privet.privacy.row_claims import _one_row_each
from privet.tables import caps, operators
from privet.tables.codec import encode
from privet.tables.statement import AtMostRows, Unbounded

LEAGUES = ["AL", "NL", None, "XX", "PL"]
MINE = [(1, LEAGUES[i % 5], i % 12 - 1, 1999 + i % 6) for i in range(60)]
OTHERS = [(2 + i % 7, LEAGUES[i * 3 % 5], i % 9, 2000 + i % 3) for i in range(50)] + [(None, "AL", 9, 2001)] * 3


def games(rows: Sequence[tuple[Any, ...]], **protect: Any) -> pv.Table:
    names = {"player": pa.int64(), "league": pa.string(), "score": pa.int64(), "year": pa.int64()}
    made = {name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(names.items())}
    columns: dict[str, Any] = {
        "league": pv.keys("AL", "NL", "PL"), "score": pv.integer(0, 10), "year": pv.integer(2000, 2003)
    }  # fmt: skip
    return pv.table(
        "games", pa.table(made), protect=pv.person("player", **(protect or {"max_rows": 20})), columns=columns
    )


def plans(table: pv.Table) -> list[ReleasePlan]:
    total = pv.col("total").clip(0, 40)
    each = table.per_person("league", total=pv.sum("score"), times=pv.count())
    years = table.per_person("year", pv.col("league"), best=pv.max("score"))
    bins = table.with_columns(low=pv.col("score") < 5).per_person("low", mean=pv.mean("year"))
    questions = [
        each.agg(s=pv.sum(total), n=pv.count(), p=pv.count_people()),
        each.group_by("league").agg(m=pv.mean(total), n=pv.count()),
        each.where(pv.col("league").is_in(["AL", "PL"])).agg(n=pv.count(), s=pv.sum(pv.col("times").clip(0, 9))),
        years.group_by("year", "league").agg(s=pv.sum("best")),
        years.agg(y=pv.mean("year"), b=pv.sum("best")),
        bins.group_by("low").agg(m=pv.mean("mean"), n=pv.count()),
    ]
    if caps.effective(each.input, None, 1) is not None:
        questions.append(each.cap(max_rows=2).group_by("league").agg(n=pv.count()))
    return [plan(query, epsilon=1) for query in questions]


def exact(name: str, rows: Sequence[tuple[Any, ...]], asked: Sequence[ReleasePlan]) -> list[Vectors]:
    table = games(rows)
    engine = engine_class(name)({"games": (table.schema, table.source)}, {}, salt=b"15")
    try:
        for each in asked:
            assert [engine.supports(statement) for statement in each.statements()] == [None] * len(each.statements())
        return [each.coordinates([engine.answer(s) for s in each.statements()]) for each in asked]
    finally:
        engine.close()


def summed(parts: Sequence[Vectors]) -> Vectors:
    return [
        [tuple(map(sum, zip(*group, strict=True))) for group in zip(*measured, strict=True)]
        for measured in zip(*parts, strict=True)
    ]


def broken(name: str) -> list[str]:
    """What is not the sum of its people, or moves further than claimed."""
    asked = plans(games(MINE))
    without, alone, together = (exact(name, rows, asked) for rows in (OTHERS, MINE, [*OTHERS, *MINE]))
    backwards = exact(name, [*MINE, *OTHERS][::-1], asked)
    found = []
    for each, old, own, new, again in zip(asked, without, alone, together, backwards, strict=True):
        if summed([old, own]) != new or again != new:
            found.append(f"not the sum of its people: {each.query}")
        for part, change in zip(each.noised, moved(old, new), strict=True):
            if change > part.move.total:
                found.append(f"moved too far: {each.query}")
    return found


@pytest.mark.parametrize("name", ["duckdb", "reference"])
def test_a_table_is_the_sum_of_its_people(name: str) -> None:
    assert broken(name) == []


def test_engines_agree() -> None:
    """Where no cap chooses among rows."""
    few = [row for row in MINE if row[1] != "PL"]
    asked = [plan(each.query, epsilon=1) for each in plans(games(few))[:3]]
    assert exact("duckdb", few, asked) == exact("reference", few, asked)
    assert any(any(x for vector in measured for x in vector) for measured in exact("duckdb", few, asked)[0])


def test_a_twin_that_forgets_the_person_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = OpenedPerPerson.source

    def careless(self: OpenedPerPerson) -> str:
        sql = honest(self)
        if not self.by:
            return sql
        grouped = sql.replace("SELECT u", "SELECT min(u) AS w", 1).replace("GROUP BY u, ", "GROUP BY ", 1)
        return f"(SELECT w AS u, * FROM {grouped})"

    monkeypatch.setattr(OpenedPerPerson, "source", careless)
    assert any("not the sum" in each for each in broken("duckdb"))


def test_a_twin_that_claims_one_row_each_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = operators.one_row_each

    def careless(operator: operators.Operator) -> bool:
        return isinstance(operator, operators.PerPerson) or honest(operator)

    monkeypatch.setattr(caps, "one_row_each", careless)
    assert any(isinstance(s.bounding, Unbounded) for each in plans(games(MINE)) for s in each.statements())
    assert any("moved too far" in each for each in broken("duckdb"))


def test_the_cap_is_the_least_of_the_declared_one_and_the_number_of_keys() -> None:
    for most, expected in ((1, 1), (3, 3), (4, 4), (20, 4)):
        rows = games(MINE, max_rows=most).per_person("league", n=pv.count())
        assert caps.holding(rows.input) == AtMostRows(expected)  # three leagues, and none
        assert not operators.one_row_each(rows.input)
        assert not _one_row_each(encode(rows.input))
    once = games(MINE).per_person(n=pv.count())
    assert operators.one_row_each(once.input)
    assert _one_row_each(encode(once.input))


def test_what_can_be_no_key() -> None:
    table = games(MINE)
    thirds = table.with_columns(third=pv.col("score") / 3)
    for of, key, why in (
        (table, "player", "identifies a person"),
        (table, "nothing", "there is no column"),
        (table, pv.col("score") / 3, "needs a name"),
        (thirds, "third", "public list"),
    ):
        with pytest.raises(pv.UserError, match=why):
            of.per_person(key, n=pv.count())
    with pytest.raises(pv.UserError, match="league"):
        table.per_person("league", league=pv.count())
