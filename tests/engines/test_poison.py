"""No row makes an engine fail, and what a row holds changes nothing but that row's own part of an answer."""

from __future__ import annotations

import duckdb
import pytest
from tests.effort import some
from tests.exactly import holds, present, squares, summed, total

from privet.errors import QueryError
from privet.privacy.adjacency import person
from privet.tables import schema as declared
from privet.tables.expressions.fluent import bins, col, when
from privet.tables.expressions.nodes import Node
from privet.tables.operators import OfPerson, PerPerson, Scan, Where
from privet.tables.schema import Column, Schema
from privet.tables.statement import AtMostRows, Rows, Squares, Statement, Total, Unbounded
from privet.tables.types import NumberType

from .conftest import Make

# SQL of poisonous values, by type of column.
POISON: dict[str, list[str]] = {
    "DOUBLE": [
        "NULL",
        "'nan'",
        "'-nan'",
        "'inf'",
        "'-inf'",
        "-0.0",
        "1e308",
        "-1e308",
        "5e-324",
        "2.2e-308",
        "9007199254740993",
        "1e19",
        "0.49999999999999994",
    ],
    "FLOAT": ["NULL", "'nan'", "'inf'", "'-inf'", "-0.0", "3.4e38", "1e-45"],
    "TINYINT": ["NULL", "-128", "127"],
    "BIGINT": ["NULL", "-9223372036854775808", "9223372036854775807", "0", "-1", "9007199254740993"],
    "UBIGINT": ["NULL", "18446744073709551615", "0"],
    "HUGEINT": ["NULL", "'-170141183460469231731687303715884105728'", "170141183460469231731687303715884105727"],
    "UHUGEINT": ["NULL", "'340282366920938463463374607431768211455'", "0"],
    "DECIMAL(38,0)": ["NULL", "'99999999999999999999999999999999999999'", "'-99999999999999999999999999999999999999'"],
    "DECIMAL(38,37)": [
        "NULL",
        "'9.9999999999999999999999999999999999999'",
        "'-9.9999999999999999999999999999999999999'",
    ],
    "DECIMAL(18,2)": ["NULL", "'9999999999999999.99'", "'-0.01'"],
    "BOOLEAN": ["NULL", "true", "false"],
    "VARCHAR": [
        "NULL",
        "''",
        "repeat('x', 1000000)",
        "'💥\u202e\u0301'",
        "chr(1)",
        "'NaN'",
        "'1e999'",
        "'-1e999'",
        "'infinity'",
        "'5'",
        "'true'",
        "'9999-12-31'",
        "'north'' OR 1=1 --'",
        "'294247-01-10 04:00:54.775806'",
    ],
    "ENUM('north', 'x')": ["NULL", "'x'"],
    "UUID": ["NULL", "'00000000-0000-0000-0000-000000000000'"],
    "DATE": [
        "NULL",
        "'infinity'",
        "'-infinity'",
        "'0001-01-01'",
        "'9999-12-31'",
        "'5881580-07-10'",
        "'5877642-06-25 (BC)'",
        "'1970-01-01'",
    ],
    "TIMESTAMP": [
        "NULL",
        "'infinity'",
        "'-infinity'",
        "'0001-01-01'",
        "'9999-12-31 23:59:59.999999'",
        "'294247-01-10 04:00:54.775806'",
        "'290309-12-22 (BC) 00:00:00'",
    ],
    "TIMESTAMP_S": ["NULL", "'infinity'", "'-infinity'", "'290000-01-01'"],
    "TIMESTAMP_MS": ["NULL", "'infinity'", "'290000-01-01'"],
    "TIMESTAMP_NS": ["NULL", "'infinity'", "'2262-04-11 23:47:16.854775806'"],
    "TIMESTAMP WITH TIME ZONE": [
        "NULL",
        "'infinity'",
        "'-infinity'",
        "'0001-01-01 00:00:00+14'",
        "'294247-01-10 04:00:54.775806+00'",
        "'290309-12-22 (BC) 00:00:00+00'",
    ],
}
NUMERIC = [
    "DOUBLE",
    "FLOAT",
    "TINYINT",
    "BIGINT",
    "UBIGINT",
    "HUGEINT",
    "UHUGEINT",
    "DECIMAL(38,0)",
    "DECIMAL(38,37)",
    "DECIMAL(18,2)",
    "BOOLEAN",
    "VARCHAR",
]
TIMES = ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "VARCHAR"]
GOOD = {"VARCHAR": "'5'", "BOOLEAN": "true", "UUID": "'00000000-0000-0000-0000-000000000001'"}

DECLARED: list[tuple[str, Column, list[str]]] = [
    ("number", declared.number(-2, 7), NUMERIC),
    ("tiny", declared.number("1e-100", "2e-100"), ["DOUBLE", "DECIMAL(18,2)"]),
    ("wide", declared.number(-(10**100), 10**100), ["DOUBLE", "HUGEINT"]),
    ("required", declared.number(1, 2, required=True), NUMERIC),
    ("integer", declared.integer(-2, 7), NUMERIC),
    ("integers", declared.integer(2**62 - 2**40, 2**62), NUMERIC),
    ("coarse", declared.integer(-(2**51), 2**51), NUMERIC),
    ("tenths", declared.number(-1, 8, step="0.1"), NUMERIC),
    ("off the step", declared.number("0.05", 5, step="0.3"), NUMERIC),
    ("boolean", declared.boolean(), ["BOOLEAN", "TINYINT", "DOUBLE", "VARCHAR", "HUGEINT"]),
    ("keys", declared.keys("north", "south"), ["VARCHAR", "ENUM('north', 'x')", "UUID", "BIGINT", "DOUBLE"]),
    ("other", declared.keys("north", other="else"), ["VARCHAR", "ENUM('north', 'x')", "DATE"]),
    ("numbers", declared.keys(5, 2**62, other=6), NUMERIC),
    ("range", declared.keys(4, 5, 6), NUMERIC),
    ("text", declared.text(), ["VARCHAR", "UUID", "ENUM('north', 'x')", "BIGINT"]),
    ("date", declared.date("0002-01-01", "0012-12-31"), TIMES),
    ("timestamp", declared.timestamp("8999-01-01", "9000-12-31"), TIMES),
]
CASES = [  # columns take turns in the types they are read from, so that every type is read by several of them
    (name, column, source)
    for place, (name, column, sources) in enumerate(DECLARED)
    for source in some(sources, every=3, start=place)
]


def rows(source: str, values: list[str]) -> str:
    """A harmless row, and one for each of these values; `row` tells them apart, and each is a person of its own."""
    first = (
        "'2020-05-05'"
        if source == "TIMESTAMP_NS"
        else {"ENUM": "'north'", "DATE": "'0020-05-05'", "TIME": "'8999-05-05'"}.get(source[:4], GOOD.get(source, "5"))
    )
    listed = [first, *values]
    return " UNION ALL ".join(
        f"SELECT ({value})::{source} AS v, {i} AS row, {i} AS id" for i, value in enumerate(listed)
    )


def computable(node: Node, of: Scan) -> bool:
    """Whether the numbers of an expression can be computed with; a floor of what is far below 1 needs too many bits."""
    try:
        node.type(of.types())
    except QueryError:
        return False
    return True


def statements(schema: Schema) -> list[Statement]:
    """One for every kind of node that the column can stand in."""
    v, scan = col("v"), Scan(schema)
    kind = dict(schema.columns)["v"].type
    tallies: list[object] = [Rows(), present(v.node), holds(v.is_missing().node), holds((v == v).node)]
    keys: list[tuple[object, ...]] = [()]
    if isinstance(kind, NumberType):
        exprs = [
            v + v,
            v - v,
            v * v,
            v / v,
            1 / v,
            v / (v - 1),
            abs(v),
            v.floor(),
            v.ceil(),
            -v,
            v.clip(kind.lower, kind.upper),
        ]
        exprs += [when(v > 0, v).otherwise(), when(v > 1, 1 / v).otherwise(v)]
        exprs = [x for x in exprs if computable(x.node, scan)]
        tallies += [tally for x in (v, *exprs) for tally in summed(x.node, scan.types())]
        b = kind.bounds()  # the lattice that the planner takes, read off the column at once where that is possible
        tallies += [kind_(v.node, b.lower, b.step, b.width) for kind_ in (total, squares)]
        tallies += [holds((x > 0).node) for x in exprs] + [present(x.node) for x in exprs]
        tallies += [
            holds(v.is_in([1, 2]).node),
            holds((~((v > 1) & (v < 2) | (v != 3))).node),
            present(bins(v, [0, 1, 2]).node),
        ]
        keys += [(bins(v, [-1, 0, 4]).node,), ((v > 1).node,)] + (
            [(v.clip(kind.lower, kind.lower + 3).node,)] if kind.integer else []
        )
    elif str(kind).startswith(("a date", "a timestamp")):
        parts = ["year", "quarter", "month", "day", "weekday"] + (["hour"] if kind.timed else [])  # type: ignore[union-attr]
        tallies += [total(v.part(p).node, 0, 1, 9999) for p in parts]  # type: ignore[arg-type]
        tallies += [holds((v.truncate(u) == v).node) for u in ("year", "quarter", "month", "week", "day")]
        keys += [(v.truncate("year").node,), (v.truncate("quarter").node,), (v.truncate("week").node,)]
    elif str(kind) == "a boolean":
        tallies += [holds(v.node), holds((~v).node), total(v.node, 0, 1, 1)]
        keys.append((v.node,))
    elif str(kind).startswith("one of"):
        keys.append((v.node,))
    if str(kind) == "a text" or getattr(kind, "textual", False):
        tallies += [
            holds(v.starts_with("no").node),
            holds(v.is_in(["north", ""]).node),
            holds(v.is_in([str(i) for i in range(40)]).node),
        ]
    row, bounding = col("row").node, AtMostRows(2)
    made = [Statement(scan, (row, *key), Unbounded(), tuple(tallies)) for key in keys]  # type: ignore[arg-type]
    made.append(Statement(Where(scan, (v == v).node), (row,), bounding, tuple(tallies)[:9]))  # type: ignore[arg-type]
    if isinstance(kind, NumberType):
        functions = [OfPerson(f, v.node) for f in ("count", "sum", "mean", "min", "max")]
        of = PerPerson(scan, (*((f.function, f) for f in functions), ("row", OfPerson("min", row))))
        sums = tuple(summed(col(f.function).node, of.types())[0] for f in functions)
        made.append(Statement(of, (row,), Unbounded(), sums))
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("column", "source"), [case[1:] for case in CASES], ids=[f"{n}-{s}" for n, _, s in CASES])
def test_a_poisonous_row_changes_only_itself(make: Make, column: Column, source: str) -> None:
    values = POISON[source]
    schema = Schema.declare(
        "t", protect=person("id", max_rows=3), columns={"v": column, "row": declared.integer(0, len(values))}
    )
    clean, poisoned = (make(schema, rows(source, v), threads=1) for v in ([], values))
    for statement in statements(schema):
        found = poisoned.answer(statement)
        first = len(found) // (len(values) + 1)
        assert found[:first] == clean.answer(statement)[:first]
        for tally, counted in zip(statement.tallies, zip(*found, strict=True), strict=True):
            width = tally.value.width if isinstance(tally, Total | Squares) else 1
            assert all(0 <= value <= (width**2 if isinstance(tally, Squares) else width) for value in counted)


def test_the_poison_is_poison() -> None:
    """These make DuckDB itself fail, or give what is no number: what is tested above is not nothing."""
    connection = duckdb.connect()
    for sql in ("CAST(1e19 AS BIGINT)", "9223372036854775807 + 1", "CAST('x' AS DOUBLE)"):
        with pytest.raises(duckdb.Error):
            connection.execute(f"SELECT {sql}")
    assert connection.execute("SELECT greatest(0, least(NULL, 10))").fetchall() == [(10,)]
    assert sum(map(len, POISON.values())) >= 30
