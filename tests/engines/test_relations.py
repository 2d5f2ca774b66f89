"""Joins, persons and columns made on the way: person-local, and never more rows than there are; on each engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests import movers
from tests.effort import some
from tests.exactly import total

from privet.engines.base import ArrowRows
from privet.engines.registry import ENGINES, engine_class
from privet.errors import InternalError, SourceError
from privet.exact import Exact
from privet.privacy.adjacency import each_row, person
from privet.tables import schema as declared
from privet.tables.expressions.fluent import bins, col
from privet.tables.expressions.nodes import Node
from privet.tables.operators import (
    JoinPublic,
    OfPerson,
    Operator,
    PerPerson,
    Scan,
    Where,
    WithColumns,
    join_person,
)
from privet.tables.relation import Table
from privet.tables.schema import PublicSchema, Schema
from privet.tables.statement import (
    AtMostGroups,
    AtMostRows,
    Bounding,
    PeopleInGroups,
    Rows,
    Statement,
    Total,
    Unbounded,
)
from privet.tables.types import KeyType, NumberType, Type

Make = Callable[..., Any]

PEOPLE = Schema.declare(
    "people",
    protect=person("id", max_rows=2),
    columns={"region": declared.keys("a", "b"), "age": declared.integer(0, 99), "pay": declared.number(0, 100)},
)
VISITS = Schema.declare("visits", protect=person("who", max_rows=2), columns={"cost": declared.integer(0, 50)})
ROWS = {
    "id": [1, 1, 2, 3, None, 4],
    "region": ["a", "b", "a", "zz", "a", None],
    "age": [10, 20, 120, 40, 50, 60],
    "pay": [1.5, 2.5, None, 1e9, 5.0, float("nan")],
}
ALL = Unbounded()


@pytest.fixture
def make(name: str) -> Iterator[Make]:
    """Makes engines of some tables, which are moved to where the engine reads them, and closes them."""
    made: list[Any] = []

    def engine(schema: Schema, rows: Any, *more: tuple[Schema, Any], public: Any = ()) -> Any:
        given = {s.name: (s, movers.moved(name, Table(s, held(r))).source) for s, r in ((schema, rows), *more)}
        known = {p.name: (p, held(r)) for p, r in public}
        made.append(engine_class(name)(given, known, salt=b"salt", threads=2))
        return made[-1]

    yield engine
    for one in made:
        one.close()


def held(rows: Any) -> ArrowRows:
    return ArrowRows(pa.table(rows) if isinstance(rows, Mapping) else rows)


def ask(db: Any, of: Operator, *keys: Node, bounding: Bounding = ALL, tallies: tuple[Any, ...] = (Rows(),)) -> Any:
    return db.answer(Statement(of, keys, bounding, tallies))


def whole(name: str, lower: int, upper: int) -> Total:
    return total(col(name).node, lower, 1, upper - lower)


def test_filters_and_columns(make: Make) -> None:
    db = make(PEOPLE, ROWS)
    adults = Where(Scan(PEOPLE), (col("age") >= 20).node)
    assert ask(db, adults) == [[5]]
    assert ask(db, adults, col("region").node) == [[2], [1]]
    twice = WithColumns(adults, (("age", (col("age") * 2).node), ("old", col("age").node)))
    assert ask(db, twice, tallies=(total(col("age").node, 0, 2, 99), whole("old", 0, 99))) == [[269, 269]]
    swapped = WithColumns(Scan(PEOPLE), (("age", col("pay").node), ("pay", col("age").node)))
    assert ask(db, swapped, tallies=(whole("pay", 0, 99),)) == [[10 + 20 + 99 + 40 + 50 + 60]]


def test_a_key_made_of_a_column_is_still_a_key(make: Make) -> None:
    made = WithColumns(WithColumns(Scan(PEOPLE), (("next", (col("age") + 1).node),)), (("same", col("next").node),))
    found = ask(make(PEOPLE, ROWS), made, col("same").node)
    assert [i + 1 for i, row in enumerate(found) if row[0]] == [11, 21, 41, 51, 61]  # 120 is out of range: no key


def test_columns_may_be_called_anything(make: Make) -> None:
    names = ['"; DROP TABLE t0; --', "c0", "u", "g", "select", "r0", "p", "ü", "one"]
    schema = Schema.declare("t", protect=person("k", max_rows=1), columns={n: declared.integer(0, 9) for n in names})
    db = make(schema, {**{n: [i] for i, n in enumerate(names)}, "k": [1]})
    of = WithColumns(Scan(schema), (("'; --", (col("u") + col("c0")).clip(0, 9).node),))
    tallies = (*(whole(n, 0, 9) for n in names), whole("'; --", 0, 9))
    assert ask(db, of, col("g").node, bounding=AtMostRows(1), tallies=tallies)[3] == [*range(len(names)), 3]


def test_join_with_a_public_table(make: Make) -> None:
    kinds: tuple[tuple[str, Type], ...] = (
        ("code", KeyType(("a", "b", "c"))),
        ("size", NumberType(Exact(1), Exact(9), integer=True)),
    )
    public = PublicSchema("regions", "code", kinds, "0f" * 32)
    db = make(PEOPLE, ROWS, public=[(public, {"code": ["a", "b", "c"], "size": [1, 2, 3]})])
    inner, left = (JoinPublic(Scan(PEOPLE), public, "region", how) for how in ("inner", "left"))
    assert ask(db, inner) == [[4]]
    assert ask(db, left) == [[6]]
    assert ask(db, inner, col("size").node)[:3] == [[3], [1], [0]]
    assert ask(db, left, tallies=(whole("size", 1, 9),)) == [[1]]
    assert ask(db, inner, bounding=AtMostRows(1)) == [[2]]


def test_a_public_key_that_is_not_unique_is_refused(make: Make) -> None:
    number = NumberType(Exact(0), Exact(9), integer=True)
    public = PublicSchema("regions", "code", (("code", number), ("size", number)), "0f" * 32)
    with pytest.raises(SourceError, match="twice"):
        make(PEOPLE, ROWS, public=[(public, {"code": [1.2, 1.4], "size": [1, 2]})])


IDS: list[tuple[list[Any], pa.DataType, list[Any], pa.DataType]] = [
    ([1, 2, None, 2], pa.int64(), [1, 2, 2, None], pa.int64()),
    ([1, 2, None, 2], pa.int32(), [1, 2, 2, None], pa.uint8()),
    ([1, 2, None, 2], pa.uint64(), [1, 2, 2, None], pa.int64()),
    ([1, 2, None, 2], pa.int64(), ["1", "2", "2", None], pa.string()),
    ([1.0, 2.0, float("nan"), 2.0], pa.float64(), [1, 2, 2, None], pa.int64()),
    ([1.0, 2.0, float("nan"), 2.0], pa.float64(), ["1", "2", "2", "nan"], pa.string()),
    (["1", "2", None, "2"], pa.string(), ["1", "2", "2", None], pa.large_string()),
    ([1, 2, None, 2], pa.decimal128(38, 0), [1, 2, 2, None], pa.int64()),
]


JOINED = [(name, *ids) for name in ENGINES for ids in (some(IDS, every=3) if name == "spark" else IDS)]


@pytest.mark.parametrize(
    ("name", "left", "kind", "right", "other"), JOINED, ids=[f"{i[0]}-{i[2]}-{i[4]}" for i in JOINED], indirect=["name"]
)
def test_join_of_people(make: Make, left: list[Any], kind: Any, right: list[Any], other: Any) -> None:
    mine = pa.table({"id": pa.array(left, kind), "region": ["a"] * 4, "age": [1, 2, 3, 4], "pay": [1.0] * 4})
    theirs = pa.table({"who": pa.array(right, other), "cost": [5, 6, 7, 8]})
    db = make(PEOPLE, mine, (VISITS, theirs))
    joined = join_person(Scan(PEOPLE), Scan(VISITS))
    assert ask(db, joined, tallies=(Rows(), whole("age", 0, 99), whole("cost", 0, 50))) == [[5, 1 + 4 + 8, 5 + 13 + 13]]
    assert ask(db, joined, bounding=AtMostRows(3)) == [[4]]


NUMBERS = [
    "0", "12", "-12", "100", "12.5", "-0.5", "0.25", "0.0000001", "12345678.5", "1234567890123456.5", "9" * 20,
]  # fmt: skip
KINDS = [
    pa.int64(), pa.decimal128(10, 2), pa.decimal128(12, 4), pa.decimal128(38, 0), pa.decimal128(2, 2),
    pa.decimal128(38, 38), pa.decimal128(38, 10), pa.float64(), pa.float32(), pa.string(),
]  # fmt: skip


def of_kind(kind: Any) -> list[str]:
    """The numbers that a type holds."""
    if pa.types.is_floating(kind):
        exactly = np.float64 if kind == pa.float64() else np.float32
        return [text for text in NUMBERS if len(text) < 20 and Fraction(float(exactly(text))) == Fraction(text)]
    if not pa.types.is_decimal(kind):
        return [text for text in NUMBERS if kind == pa.string() or ("." not in text and len(text) < 19)]
    whole, parts = kind.precision - kind.scale, kind.scale
    return [
        text for text in NUMBERS if abs(Fraction(text)) < 10**whole and (Fraction(text) * 10**parts).denominator == 1
    ]


def test_a_number_is_one_person_in_whatever_type_it_is_stored(make: Make, name: str) -> None:
    given = []
    for i, kind in enumerate(KINDS):
        ids = of_kind(kind)
        cast = float if pa.types.is_floating(kind) else Decimal if pa.types.is_decimal(kind) else str
        held_ = pa.array(list(map(int, ids)), kind) if kind == pa.int64() else pa.array(list(map(cast, ids)), kind)
        schema = Schema.declare(f"t{i}", protect=person("id", max_rows=1), columns={f"x{i}": declared.integer(0, 19)})
        given.append((schema, pa.table({"id": held_, f"x{i}": list(map(NUMBERS.index, ids))})))
    db = make(*given[0], *given[1:])
    pairs = some(list(combinations(range(len(KINDS)), 2)), every=4 if name == "spark" else 1)
    for i, j in pairs:
        both = [NUMBERS.index(text) for text in of_kind(KINDS[i]) if text in of_kind(KINDS[j])]
        joined = join_person(Scan(given[i][0]), Scan(given[j][0]))
        found = ask(db, joined, tallies=(Rows(), whole(f"x{i}", 0, 19), whole(f"x{j}", 0, 19)))
        assert found == [[len(both), sum(both), sum(both)]], (KINDS[i], KINDS[j])


def test_a_fan_out_is_bounded(make: Make) -> None:
    mine = {"id": [7] * 100 + [8], "region": ["a", "b"] * 50 + ["a"], "age": [1] * 101, "pay": [1.0] * 101}
    db = make(PEOPLE, mine, (VISITS, {"who": [7] * 100 + [8], "cost": [3] * 101}))
    joined = join_person(Scan(PEOPLE), Scan(VISITS))
    assert ask(db, joined) == [[10_001]]
    assert ask(db, joined, bounding=AtMostRows(5)) == [[6]]
    assert ask(db, joined, col("region").node, bounding=AtMostGroups(1, 2))[0][0] in (1, 3)
    assert ask(db, joined, col("region").node, bounding=PeopleInGroups(2)) == [[2], [1]]


def test_values_of_a_person(make: Make) -> None:
    db = make(PEOPLE, ROWS)
    columns = (
        ("n", OfPerson("count")),
        ("known", OfPerson("count", col("pay").node)),
        ("sum", OfPerson("sum", col("pay").node)),
        ("mean", OfPerson("mean", col("pay").node)),
        ("least", OfPerson("min", col("age").node)),
        ("most", OfPerson("max", (col("age") > 15).node)),
    )
    of = PerPerson(Scan(PEOPLE), columns)
    step = {"sum": Exact(1, 4), "mean": Exact(1, 4)}
    tallies = tuple(
        total(col(name).node, 0, step.get(name, 1), 800) for name in ("n", "known", "sum", "mean", "least", "most")
    )
    # persons 1, 2, 3, 4: counts 2 1 1 1; pay 1.5 + 2.5, missing, 100 (clamped), missing; ages 10, 99, 40, 60
    assert ask(db, of, tallies=tallies) == [[5, 3, 4 * 104, 4 * 102, 209, 4]]
    assert ask(db, of, col("n").clip(0, 3).node) == [[0], [3], [1], [0]]
    assert ask(db, of, col("least").node, bounding=AtMostRows(1))[10] == [1]
    assert ask(db, Where(of, (col("sum") > 3).node)) == [[2]]


def test_the_declaration_must_be_the_engines_own(make: Make) -> None:
    db = make(PEOPLE, ROWS)
    with pytest.raises(InternalError):
        ask(db, Scan(VISITS))
    wider = Schema.declare("people", protect=each_row(), columns={"age": declared.integer(0, 10**6)})
    with pytest.raises(InternalError):
        ask(db, Scan(wider))


def test_out_of_range_is_no_key_of_a_required_column_either(make: Make) -> None:
    columns = {"k": declared.integer(0, 2, required=True), "x": declared.number(0, 2, required=True)}
    schema = Schema.declare("t", protect=each_row(), columns=columns)
    db = make(schema, pa.table({"k": pa.array([99, -1, 1, None], pa.int64()), "x": [9.0, float("nan"), 1.5, None]}))
    assert ask(db, Scan(schema), col("k").node) == [[1], [1], [0]]
    assert ask(db, Scan(schema), bins("x", [0, 1, 2]).node) == [[2], [1]]
