"""Texts that conditions name are keys: for every row that the conditions keep, and whatever the data are."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.tables.rows import value

import privet as pv
from privet.errors import QueryError
from privet.exact import Exact
from privet.tables.analysis import named_values
from privet.tables.expressions import nodes as e
from privet.tables.expressions.nodes import Node
from privet.tables.operators import Operator, Scan, Where
from privet.tables.schema import Schema

COLUMNS: dict[str, Any] = {"town": pv.text(), "street": pv.text(), "age": pv.integer(0, 9)}
HOMES = Scan(Schema.declare("homes", protect=pv.each_row(), columns=COLUMNS))
TOWN, TOWNS = e.Column("town"), ["a", "b", "ab", "c", None]
ROWS = [{"town": town, "street": street, "age": age} for town in TOWNS for street in ("a", "c", None) for age in (1, 7)]


def condition(chance: Random, deep: int = 3) -> Node:
    """A condition on a town, and sometimes on something else."""
    kinds = ["is", "in", "not", "starts", "street", "age"] + ["and", "or"] * 2 * (deep > 0)
    text = e.Constant(chance.choice("abc"))
    match chance.choice(kinds):
        case "is":
            one, other = (TOWN, text) if chance.random() < 0.5 else (text, TOWN)
            return e.Compare("==" if chance.random() < 0.8 else "!=", one, other)
        case "in":
            texts = [e.Constant(str(t)) for t in chance.sample(TOWNS[:-1], chance.randint(1, 3))]
            return e.IsIn(TOWN, tuple(texts))
        case "not":
            return e.Not(e.Compare("==", TOWN, text))
        case "starts":
            return e.StartsWith(TOWN, "a")
        case "street":
            return e.Compare("==", e.Column("street"), text)
        case "age":
            return e.Compare(">", e.Column("age"), e.Constant(Exact(5)))
        case word:
            some = tuple(condition(chance, deep - 1) for _ in range(chance.randint(2, 3)))
            return e.Logic("and" if word == "and" else "or", some)


def lost(listed: Callable[[Operator, Node], Node], tries: int = 400) -> tuple[int, int]:
    """How many keys were listed, and how many rows that a condition keeps have another key than their town."""
    chance, found, wrong = Random(5), 0, 0
    for _ in range(tries):
        rows = Where(HOMES, condition(chance))
        key = listed(rows, TOWN)
        if key == TOWN:
            continue
        found += 1
        kept = [row for row in ROWS if value(rows.condition, row) is True]
        wrong += sum(value(key, row) != row["town"] for row in kept)
    return found, wrong


def test_every_row_that_is_kept_has_its_own_key() -> None:
    found, wrong = lost(named_values.listed)
    assert found > 100
    assert not wrong


def test_a_list_from_one_side_of_an_or_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = named_values._texts

    def careless(condition: Node, key: Node) -> list[str] | None:
        if isinstance(condition, e.Logic) and condition.operator == "or":
            return next((texts for part in condition.operands if (texts := right(part, key)) is not None), None)
        return right(condition, key)

    monkeypatch.setattr(named_values, "_texts", careless)
    assert lost(named_values.listed)[1] > 0


def homes(*towns: str) -> pv.Table:
    data = pa.table({"who": range(len(towns)), "town": towns})
    return pv.table("homes", data, protect=pv.person("who", max_rows=1), columns={"town": pv.text()})


def test_neighbours_have_the_same_groups_and_pay_no_delta() -> None:
    asked, answers = pv.col("town").is_in(["Rome", "Oslo", "Bonn"]), []
    for towns in (["Rome", "Oslo"], ["Rome"], ["Rome", "Oslo", "Kyiv"]):
        of = homes(*towns)
        with pv.Session([of], budget=pv.PureDP(10**6), ledger=None, threads=1) as session:
            answer = session.release(of.where(asked).group_by("town").agg(n=pv.count()), epsilon=10**5)
        answers.append(dict(zip(answer.values("town"), answer.values("n"), strict=True)))
        assert "left out" not in str(answer).replace("rows without who left out", "")
    assert answers == [{"Rome": 1, "Oslo": 1, "Bonn": 0}, {"Rome": 1, "Oslo": 0, "Bonn": 0}, answers[0]]


def test_other_conditions_name_nothing() -> None:
    of = homes("Rome")
    for rows in (
        of,
        of.where(pv.col("town") != "Rome"),
        of.where((pv.col("town") == "Rome") | ~pv.col("town").is_null()),
    ):
        with pytest.raises(QueryError), pv.Session([of], budget=pv.PureDP(1), ledger=None) as session:
            session.release(rows.group_by("town").agg(n=pv.count()), epsilon=1)
    many = of.where(pv.col("town").is_in([f"t{i}" for i in range(named_values.MOST + 1)]))
    assert not many.group_by("town").agg(n=pv.count()).groups.is_public


def test_they_roll_up() -> None:
    of = homes("Rome", "Oslo")
    query = of.where((pv.col("town") == "Rome") | (pv.col("town") == "Oslo")).rollup("town").agg(n=pv.count())
    assert [*query.groups] == [("Rome",), ("Oslo",), (None,)]
