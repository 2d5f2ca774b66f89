"""A key does not depend on the type that the source stores: one rule, for floats, integers and decimals alike."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.engines.duckdb.types import stored
from privet.planner import plan
from privet.tables.schema import Column

SOURCES = ["DOUBLE", "DECIMAL(18,1)", "DECIMAL(38,2)", "BIGINT", "HUGEINT", "UTINYINT"]
OPEN: list[DuckDB] = []


class Stored:
    """One row, which is exchanged: to open an engine takes longer than to ask it."""

    identities = ()

    def __init__(self, source: str) -> None:
        self.source = source

    def types(self) -> Any:
        return {"x": stored(self.source)}

    def files(self) -> Any:
        return ()

    def attach(self, connection: Any, name: str) -> None:
        self.table, self.connection = name, connection
        connection.execute(f"CREATE TABLE {name} (x {self.source})")

    def put(self, value: Any) -> None:
        self.connection.execute(f"DELETE FROM {self.table}")
        self.connection.execute(f"INSERT INTO {self.table} SELECT ('{value}')::{self.source}")


@cache
def opened(source: str, column: Column) -> tuple[Any, Stored, DuckDB]:
    rows = Stored(source)
    table = pv.table("t", pa.table({"x": [0.5]}), protect=pv.each_row(), columns={"x": column})
    engine = DuckDB({"t": (table.schema, rows)}, salt=b"", threads=1)
    OPEN.append(engine)
    return table, rows, engine


@pytest.fixture(scope="module", autouse=True)
def closing() -> Iterator[None]:
    yield
    opened.cache_clear()
    while OPEN:
        OPEN.pop().close()


def vectors(source: str, value: Any, column: Column, ask: Any) -> Any:
    """The exact counts of one row that holds this value."""
    table, rows, engine = opened(source, column)
    asked = plan(ask(table), epsilon=1)
    rows.put(value)
    return asked.coordinates([engine.answer(s) for s in asked.statements()])[0]


def by_value(table: Any) -> Any:
    return table.group_by("x").agg(n=pv.count())


def group_of(source: str, value: Any, column: Column) -> int | None:
    found = [i for i, (n,) in enumerate(vectors(source, value, column, by_value)) if n]
    assert len(found) <= 1
    return found[0] if found else None


def holds(source: str, value: Any) -> bool:
    whole = Decimal(value) == int(Decimal(value))
    return (whole or not source.endswith("INT")) and not (source[0] == "U" and Decimal(value) < 0)


@pytest.mark.parametrize("source", SOURCES)
def test_within_the_bounds_the_nearest_step_and_beyond_them_none(source: str) -> None:
    """Steps of 3 from 1 in 1..9: 1, 4 and 7; 9 is inside, and nearest to what would be 10."""
    column = pv.number(1, 9, step=3)
    expected = {
        "0": None,
        "0.9": None,
        "1": 0,
        "2": 0,
        "2.5": 1,
        "3": 1,
        "8": 2,
        "8.5": 2,
        "9": 2,
        "9.1": None,
        "10": None,
    }
    some = {value: group for value, group in expected.items() if holds(source, value)}
    assert {value: group_of(source, value, column) for value in some} == some


@pytest.mark.parametrize("source", SOURCES)
def test_an_integer_is_rounded_first(source: str) -> None:
    expected = {"-1": None, "-0.6": None, "-0.5": 0, "0": 0, "0.4": 0, "2": 2, "2.4": 2, "2.5": None, "3": None}
    some = {value: group for value, group in expected.items() if holds(source, value)}
    assert {value: group_of(source, value, pv.integer(0, 2)) for value in some} == some


@pytest.mark.parametrize("source", ["DOUBLE", "DECIMAL(18,1)", "DECIMAL(38,2)"])
@pytest.mark.parametrize(("lower", "upper"), [("0.1", "1.1"), ("0.3", "0.7"), ("-1.1", "-0.1"), ("0.2", "0.3")])
def test_a_bound_is_in_a_group_and_what_is_beyond_is_not(source: str, lower: str, upper: str) -> None:
    """The double of 1.1 lies above 11/10, and that of 0.3 below 3/10: each is the bound that was written."""
    middle = (Fraction(lower) + Fraction(upper)) / 2
    column = pv.number(lower, upper)
    edges: list[Any] = [lower, middle, upper]
    far = Decimal("0.1")
    for value, group in ((lower, 0), (upper, 1), (Decimal(lower) - far, None), (Decimal(upper) + far, None)):
        counts = vectors(source, value, column, lambda t: t.group_by(k=pv.bins("x", edges)).agg(n=pv.count()))
        assert counts == [(int(group == i),) for i in range(2)], value
    for value, group in ((lower, 0), (upper, 1)):  # as the histogram says
        counts = vectors(source, value, column, lambda t: t.agg(h=pv.histogram("x", edges)))
        assert counts == [tuple(int(group == i) for i in range(2))]


def test_of_one_value_too() -> None:
    """A range that is shorter than its step has one key."""
    column = pv.number(5, 7, step=2)
    assert [group_of("DOUBLE", v, column) for v in ("4.9", "5", "5.9", "6", "7", "7.1", "nan")] == [
        None, 0, 0, 1, 1, None, None,
    ]  # fmt: skip
