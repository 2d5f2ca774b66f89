"""A statement that lists the values of its keys counts what the same statement over all values counts there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.exactly import total

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.errors import UserError
from privet.tables.codec import decode, encode
from privet.tables.groups import Listed
from privet.tables.operators import Operator, Where
from privet.tables.relation import Table
from privet.tables.statement import (
    AtMostGroups,
    AtMostRows,
    Bounding,
    PeopleInGroups,
    Rows,
    Statement,
    Unbounded,
)


@pytest.fixture(scope="module")
def table() -> Table:
    chance = Random(5)
    count = 400
    days = pa.array([chance.randint(-10, 70) for _ in range(count)], pa.int32())
    rows = {
        "who": [chance.randint(1, 60) for _ in range(count)],
        "k": [chance.choice(["a", "b", "c", "d", "x", None]) for _ in range(count)],
        "i": [chance.choice([*range(-2, 14), None]) for _ in range(count)],
        "g": [chance.choice([1, 2, 3, 9, None]) for _ in range(count)],
        "f": [chance.choice([True, False, None]) for _ in range(count)],
        "d": days.cast(pa.date32()),
        "s": pa.array([chance.randint(0, 10**11) for _ in range(count)], pa.int64()).cast(pa.timestamp("us")),
        "x": [chance.uniform(-1, 11) for _ in range(count)],
        "big": [chance.choice([2**50, 2**50 - 1, 3]) for _ in range(count)],
    }
    return pv.table(
        "rows",
        pa.table(rows),
        protect=pv.person("who", max_rows=4),
        columns={
            "k": pv.keys("a", "b", "c", "d", other="else"),
            "i": pv.integer(0, 11),
            "g": pv.keys(3, 1, 2),
            "f": pv.boolean(),
            "d": pv.date("1970-01-01", "1970-03-01"),
            "s": pv.timestamp("1970-01-01", "1970-01-02"),
            "x": pv.number(0, 10),
            "big": pv.integer(0, 2**50),
        },
    )


@pytest.fixture(scope="module")
def db(table: Table) -> Iterator[DuckDB]:
    engine = DuckDB({"rows": (table.schema, table.source)}, {}, salt=b"salt", threads=1)
    yield engine
    engine.close()


KEYS = [
    pv.col("k"),
    pv.col("i"),
    pv.col("g"),
    pv.col("f"),
    pv.col("d"),
    pv.col("d").truncate("week"),
    pv.col("d").part("weekday"),
    pv.col("s").truncate("hour"),
    pv.bins("x", [0, 1, 2.5, 7, 10]),
    pv.when(pv.col("i") < 4, "few").otherwise("many"),
]


def test_some_values_of_every_kind_of_key(table: Table, db: DuckDB) -> None:
    chance = Random(8)
    for _ in range(60):
        keys = tuple(key.node for key in chance.sample(KEYS, chance.choice([1, 1, 2])))
        filtered: Operator = table.relation.input
        if chance.random() < 0.5:
            filtered = Where(filtered, (pv.col("x") >= 1).node)
        tallies = (Rows(), total(pv.col("x").node, 0, 1, 10))
        whole = Statement(filtered, keys, Unbounded(), tallies)
        values = tuple(some(chance, domain) for domain in whole.domains())
        places = [i for i, group in enumerate(product(*whole.domains())) if all(map(_among, group, values))]
        every = db.answer(whole)
        assert db.answer(Statement(filtered, keys, Unbounded(), tallies, Listed(values))) == [every[i] for i in places]


def _among(one: Any, values: tuple[Any, ...]) -> bool:
    return any(type(one) is type(other) and one == other for other in values)


def some(chance: Random, domain: tuple[Any, ...]) -> tuple[Any, ...]:
    """Some values, in their order: with holes, or from the middle."""
    if chance.random() < 0.3:
        first = chance.randrange(len(domain))
        return domain[first : chance.randint(first + 1, len(domain))]
    return tuple(x for x in domain if chance.random() < 0.6) or domain[-1:]


@pytest.mark.parametrize("bounding", [AtMostRows(2), AtMostGroups(2, 1), PeopleInGroups(2)])
def test_rows_of_other_values_take_no_part_before_bounding(table: Table, db: DuckDB, bounding: Bounding) -> None:
    """What is left out takes nobody's place: as many rows take part as where a filter leaves it out."""
    key = pv.col("i").node
    listed = db.answer(Statement(table.relation.input, (key,), bounding, (Rows(),), Listed(((3, 4, 9),))))
    filtered = Where(table.relation.input, pv.col("i").is_in([3, 4, 9]).node)
    assert sum(map(sum, listed)) == sum(map(sum, db.answer(Statement(filtered, (key,), bounding, (Rows(),)))))
    assert min(map(sum, listed)) > 0


def test_values_of_a_range_that_is_too_long_to_list(table: Table, db: DuckDB) -> None:
    key = pv.col("big").node
    found = db.answer(Statement(table.relation.input, (key,), Unbounded(), (Rows(),), Listed(((2**50 - 1, 2**50),))))
    rows = table.source.rows.column("big").to_pylist()
    assert found == [[rows.count(2**50 - 1)], [rows.count(2**50)]]


def test_the_json_of_a_statement_says_the_values(table: Table) -> None:
    statement = Statement(table.relation.input, (pv.col("i").node, pv.col("d").node), Unbounded(), (Rows(),))
    for values in (((1, 2), (date(1970, 1, 5),)), ((0,), (date(1970, 1, 1), date(1970, 3, 1)))):
        listed = replace(statement, listed=Listed(values))
        assert decode(encode(listed)) == listed


@pytest.mark.parametrize(
    "values",
    [
        ((2, 1),),
        ((1, 1),),
        ((12,),),
        ((-1, 3),),
        ((True,),),
        (("1",),),
        ((datetime(1970, 1, 1),),),
        ((1,), (2,)),
    ],
)
def test_values_that_a_key_does_not_have_are_refused(table: Table, values: Any) -> None:
    with pytest.raises(UserError):
        Statement(table.relation.input, (pv.col("i").node,), Unbounded(), (Rows(),), Listed(values))
