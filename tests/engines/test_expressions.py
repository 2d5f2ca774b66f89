"""Every kind of expression against an evaluation in Python: rows of any values, missing and poisonous ones too."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exactly import Number, evaluate, half_up, holds, lattice, leaf, present, squares, total

from privet.engines.base import ArrowRows
from privet.engines.duckdb.dialect import DuckDBDialect
from privet.engines.duckdb.engine import DuckDB
from privet.engines.postgres.dialect import PostgresDialect
from privet.engines.spark.dialect import SparkDialect
from privet.engines.sql.dialect import Dialect
from privet.exact.lattice import Bounds
from privet.privacy.adjacency import each_row
from privet.tables import schema as declared
from privet.tables.expressions import nodes as e
from privet.tables.expressions.fluent import Expr, bins, col, lit, when
from privet.tables.expressions.typing_rules import as_number
from privet.tables.operators import Operator, Scan, WithColumns
from privet.tables.schema import Schema
from privet.tables.statement import Code, Present, Rows, Squares, Statement, Total, Unbounded

COLUMNS = {
    "x": declared.number(-10, 100),
    "y": declared.number(0, 1, step="1/8"),
    "n": declared.integer(-5, 20),
    "big": declared.integer(2**61, 2**61 + 2**40),
    "b": declared.boolean(),
    "f": declared.boolean(required=True),
    "z": declared.number(5, 6, required=True),
    "k": declared.keys("north", "south", "a'b", "", other="else"),
    "i": declared.keys(7, 3, 2**60, 2**60 + 1),
    "j": declared.keys(4, 5, 6, other=0),
    "t": declared.text(),
    "d": declared.date("2023-12-20", "2024-03-05"),
    "m": declared.timestamp("2023-12-31T22:30:00", "2024-01-03T01:00:00"),
}
SCHEMA = Schema.declare("t", protect=each_row(), columns=COLUMNS)
ARROW = pa.schema(
    {
        "x": pa.float64(),
        "y": pa.float32(),
        "n": pa.float64(),
        "big": pa.int64(),
        "b": pa.bool_(),
        "f": pa.bool_(),
        "z": pa.float64(),
        "k": pa.string(),
        "i": pa.int64(),
        "j": pa.float64(),
        "t": pa.string(),
        "d": pa.date32(),
        "m": pa.timestamp("us", "UTC"),
    }
)

FLOATS = st.one_of(
    st.none(),
    st.floats(),
    st.floats(-12, 110),
    st.integers(-12, 110).map(float),
    st.sampled_from([0.0, -0.0, 0.5, 1.5, 5e-324, 1e308, math.inf, -math.inf, math.nan]),
)
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(["north", "south", "a'b", "", "else", "North", "northern", "ñ", "💥"]),
    st.text(max_size=3),
)
INTS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(
        [7, 3, 4, 2**60, 2**60 + 1, 2**60 + 2, 2**61, 2**61 + 1, 2**61 + 12345, 2**61 + 2**40, 2**61 + 2**40 + 1]
    ),
)
ROW = st.fixed_dictionaries(
    {
        "x": FLOATS,
        "y": FLOATS.map(lambda v: v if v is None or not math.isfinite(v) else _single(v)),
        "n": FLOATS,
        "big": INTS,
        "b": st.sampled_from([None, True, False]),
        "f": st.sampled_from([None, True, False]),
        "z": FLOATS,
        "k": TEXTS,
        "i": INTS,
        "j": FLOATS,
        "t": TEXTS,
        "d": st.one_of(st.none(), st.dates(), st.dates(date(2023, 12, 1), date(2024, 4, 1))),
        "m": st.one_of(st.none(), st.datetimes(), st.datetimes(datetime(2023, 12, 31), datetime(2024, 1, 4))),
    }
)


def _single(value: float) -> float:
    found = pa.scalar(value, pa.float64()).cast(pa.float32(), safe=False).as_py()
    assert isinstance(found, float)
    return found


# --- the evaluation in Python ---------------------------------------------------------------------


def of(node: e.Node, row: dict[str, Any], *, key: bool = False) -> Any:
    """The value of an expression; None if it is missing."""
    found = evaluate(node, lambda name, mode: leaf(COLUMNS[name], row[name], mode), "key" if key else "value", TYPES)
    return found.value if isinstance(found, Number) else found


# --- what is compared -----------------------------------------------------------------------------

c = col
NUMBERS = [
    c("x"),
    c("y"),
    c("n"),
    c("z"),
    c("big"),
    c("b"),
    c("f"),
    lit(3),
    lit(Fraction(1, 3)),
    *(Expr(e.Beyond(c(name).node)) for name in ("x", "y", "n", "z", "big", "d", "m")),
    c("x") + c("n"),
    c("x") - c("y"),
    c("x") * c("x"),
    c("x") / c("y"),
    c("n") / (c("x") - 1),
    1 / c("n"),
    -c("x"),
    (c("x") / 7).floor(),
    (c("x") / 7).ceil(),
    abs(c("x")),
    c("x").clip(0, "1/3"),
    c("n").clip(-2, 3),
    c("big").clip(2**61 + 5, 2**62),
    (c("x") / c("y")).clip(-3, 3),
    (c("x") * 1000).clip(0, 10),
    c("b") + c("f") + c("x"),
    c("b") * c("n"),
    when(c("x") > 5, c("n")).when(c("b"), c("y") * 2).otherwise(lit(-1)),
    when(c("b"), c("n")).otherwise(),
    c("d").part("year"),
    c("d").part("quarter"),
    c("d").part("month"),
    c("d").part("day"),
    c("d").part("weekday"),
    c("m").part("hour"),
    c("d") - lit(date(2024, 1, 1)),
    (c("d") - lit(date(2024, 1, 1))) / c("n"),
    (((c("x").clip(0, 50) + c("n")).clip(0, 40) / c("x")).clip(-4, 4) / c("y")).clip(0, 1),
]
CONDITIONS = [
    c("x") == 1,
    c("x") != c("n"),
    c("x") < 0.5,
    c("n") <= 3,
    c("y") > Fraction(1, 8),
    c("n") >= c("x"),
    c("b"),
    c("f"),
    ~c("b"),
    (c("b") == lit(True)) & c("f"),
    (c("x") > 0) & (c("y") > 0),
    (c("x") > 0) | c("b"),
    ~((c("x") > 0) | c("b")),
    c("k") == "north",
    c("k") != "else",
    c("t") == "a'b",
    c("t") == c("k"),
    c("k").is_in(["south", "x"]),
    c("t").is_in(["", "ñ"]),
    c("t").is_in([*(f"v{i}" for i in range(30)), "north", "💥"]),
    c("x").is_in([0, 1, 0.5]),
    c("n").is_in(list(range(0, 20, 2))),
    c("i") == 2**60,
    c("i") == c("n"),
    c("i").is_in([7, 2**60 + 1]),
    c("j") == 0,
    c("big") == 2**61 + 1,
    c("big") > 2**61,
    c("x").is_missing(),
    c("k").is_missing(),
    c("t").is_missing(),
    c("i").is_missing(),
    (c("x") / c("y")).is_missing(),
    c("m").is_missing(),
    c("t").starts_with("no"),
    c("k").starts_with("s"),
    c("t").starts_with(""),
    c("t").starts_with("%"),
    c("d") < date(2024, 1, 1),
    c("d") == date(2023, 12, 20),
    c("m") >= datetime(2024, 1, 1, 12),
    c("m") < c("d"),
    c("m") > date(2024, 1, 1),
    c("d").truncate("month") == date(2024, 1, 1),
    c("m").truncate("hour") == datetime(2024, 1, 1),
    c("m").truncate("week") < datetime(2024, 1, 1),
    bins("x", [0, 1, 10]) == "[0, 1)",
    bins("x", [0, 1, 10]).is_missing(),
    when(c("b"), "p").otherwise("q") == "q",
    when(c("b"), c("d")).otherwise(lit(date(2024, 2, 2))) == date(2024, 2, 2),
    when(c("x") > 1, c("b")).otherwise(c("f")),
]
KEYS = [
    c("k"),
    c("i"),
    c("j"),
    c("b"),
    c("f"),
    c("n"),
    c("d"),
    c("d").truncate("year"),
    c("d").truncate("quarter"),
    c("d").truncate("month"),
    c("d").truncate("week"),
    c("d").truncate("day"),
    c("m").truncate("hour"),
    c("m").truncate("day"),
    c("m").truncate("week"),
    bins("x", [0, 1, 2.5, 100]),
    bins("x", list(range(101))),
    bins(c("x") * 2, [-10, "1/3", 7]),
    (c("x") / 10).floor(),
    c("n") + 3,
    c("n").clip(0, 3),
    c("d").part("weekday"),
    c("m").part("hour"),
    when(c("x") > 5, "high").when(c("b"), "true").otherwise("low"),
    when(c("b"), bins("x", [0, 1])).otherwise(lit("no")),
    c("x") > 5,
]


def engine(rows: list[dict[str, Any]]) -> DuckDB:
    return DuckDB({"t": (SCHEMA, ArrowRows(pa.Table.from_pylist(rows, ARROW)))}, salt=b"", threads=1)


TYPES = Scan(SCHEMA).types()


def code(value: Any, bounds: Bounds) -> int:
    return min(max(half_up((Fraction(value) - bounds.lower) / bounds.step), 0), bounds.width)


@settings(max_examples=14)  # a statement of so many parts takes long to plan, and hardly longer for more rows
@given(rows=st.lists(ROW, min_size=8, max_size=16))
def test_numbers_and_conditions_are_what_python_says(rows: list[dict[str, Any]]) -> None:
    tallies: list[Any] = [Rows()]
    expected = [len(rows)]
    for expr in NUMBERS:
        bounds = lattice(expr.node, TYPES)
        values = [of(expr.node, row) for row in rows]
        codes = [code(v, bounds) for v in values if v is not None]
        tallies += [kind(expr.node, bounds.lower, bounds.step, bounds.width) for kind in (total, squares)]
        expected += [sum(codes), sum(x * x for x in codes)]
        tallies.append(present(expr.node))
        expected.append(len(codes))
    for expr in CONDITIONS:
        tallies += [holds(expr.node), present(expr.node)]
        values = [of(expr.node, row) for row in rows]
        expected += [values.count(True), len(rows) - values.count(None)]
    with engine(rows) as db:
        found = db.answer(Statement(Scan(SCHEMA), (), Unbounded(), tuple(tallies)))
    names = (
        ["rows"]
        + [f"{k} {x!r}" for x in NUMBERS for k in ("total", "squares", "present")]
        + [f"{k} {x!r}" for x in CONDITIONS for k in ("holds", "present")]
    )
    wrong = [(n, a, b) for n, a, b in zip(names, found[0], expected, strict=True) if a != b]
    assert wrong == []


@settings(max_examples=9)
@given(rows=st.lists(ROW, min_size=8, max_size=16))
def test_groups_are_what_python_says(rows: list[dict[str, Any]]) -> None:
    with engine(rows) as db:
        for key in KEYS:
            domain = key.node.type(TYPES).keys()
            expected = [[0] for _ in domain]
            for row in rows:
                value = of(key.node, row, key=True)
                if value in domain:
                    expected[domain.index(value)][0] += 1
            assert db.answer(Statement(Scan(SCHEMA), (key.node,), Unbounded(), (Rows(),))) == expected, key


@settings(max_examples=15)
@given(rows=st.lists(ROW, max_size=8))
def test_several_keys_are_in_the_order_of_a_product(rows: list[dict[str, Any]]) -> None:
    from itertools import product

    keys = (c("k").node, c("b").node, c("n").node)
    domains = [key.type(TYPES).keys() for key in keys]
    groups = list(product(*domains))
    expected = [[0, 0] for _ in groups]
    bounds = lattice(c("x").node, TYPES)
    for row in rows:
        value = tuple(of(key, row, key=True) for key in keys)
        if value in groups:
            x = of(c("x").node, row)
            expected[groups.index(value)][0] += 1
            expected[groups.index(value)][1] += 0 if x is None else code(x, bounds)
    summed = total(c("x").node, bounds.lower, bounds.step, bounds.width)
    with engine(rows) as db:
        assert db.answer(Statement(Scan(SCHEMA), keys, Unbounded(), (Rows(), summed))) == expected


def test_every_node_is_tested() -> None:
    def walk(node: Any) -> set[type]:
        found = {type(node)}
        for name in getattr(node, "__slots__", ()):
            part = getattr(node, name)
            for inner in part if isinstance(part, tuple) else (part,):
                for deep in inner if isinstance(inner, tuple) else (inner,):
                    if type(deep) in e.Node.__args__:
                        found |= walk(deep)
        return found

    elsewhere = {e.Which, e.OfAnswer, e.Grouping}  # test_holders.py; of released numbers, which no engine reads
    assert set().union(*(walk(x.node) for x in (*NUMBERS, *CONDITIONS, *KEYS))) == set(e.Node.__args__) - elsewhere


def test_a_deep_question_stays_small() -> None:
    expr = c("x")
    rows: Operator = Scan(SCHEMA)
    for _ in range(30):
        expr = (1 / expr).clip(0, 1)
    for _ in range(60):
        rows = WithColumns(rows, (("x", ((c("x") + c("x")) / c("x")).clip(0, 1).node),))
    with engine([{"x": 2.0}]) as db:
        for statement in (
            Statement(Scan(SCHEMA), (), Unbounded(), (present(bins(expr, range(99)).node),)),
            Statement(rows, (bins("x", range(99)).node,), Unbounded(), (Rows(),)),
        ):
            assert len(db.compile(statement).sql) < 100_000
            assert sum(row[0] for row in db.answer(statement)) in (0, 1)


def test_the_clamp_is_last() -> None:
    million = when(c("n") == 7, 1_000_000 * c("x")).otherwise(lit(0))
    with engine([{"n": 7.0, "x": 100.0}]) as db:
        summed = total(million.node, 0, as_number(million.node.type(TYPES), "test").unit, 10)
        assert db.answer(Statement(Scan(SCHEMA), (), Unbounded(), (summed,))) == [[10]]


@pytest.mark.parametrize("dialect", [DuckDBDialect(), PostgresDialect(), SparkDialect()])
def test_a_code_that_contains_texts_is_read_once(dialect: Dialect) -> None:
    chosen = when(c("t") == "a", c("n")).otherwise(when(c("t").starts_with("b"), 1).otherwise(2))
    code = Code(chosen.node, Fraction(0), Fraction(1), 10, missing=True)
    tallies = Present(code), Total(code), Squares(code)
    with engine([{"n": 7.0, "t": "a"}]) as db:
        db._dialect = dialect
        program = db.compile(Statement(Scan(SCHEMA), (), Unbounded(), tallies))
    assert {*re.findall(r"AS (r\d+)", program.sql)} == {"r0"}
    assert program.context.parameters == ["a", "b"]
