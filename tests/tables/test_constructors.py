"""However a tree is built, by hand or from damaged JSON, it is refused with a clear error, or it compiles and runs."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.errors import UserError
from privet.tables import aggregates as a
from privet.tables import operators as o
from privet.tables.codec import decode, encode
from privet.tables.discovered import Discovered
from privet.tables.expressions import nodes as e
from privet.tables.groups import Listed, Sets
from privet.tables.operators import JoinPerson, JoinPublic, OfPerson, PerPerson, Scan, Where, WithColumns
from privet.tables.query import Key, Query
from privet.tables.schema import Column, Schema
from privet.tables.statement import AtMostRows, Rows, Statement
from privet.tables.types import TextType

DATA = pa.table({"id": [1, 1, 2], "x": [1, 2, 3], "k": ["a", "b", None], "ok": [True, None, False],
                 "d": [date(2024, 1, 1), None, date(2024, 2, 1)]})  # fmt: skip
COLUMNS = {"x": pv.integer(0, 9), "k": pv.keys("a", "b"), "ok": pv.boolean(), "d": pv.date("2024-01-01", "2024-12-31")}
TABLE = pv.table("t", DATA, protect=pv.person("id", max_rows=2), columns=COLUMNS)
OTHER = pv.table("u", pa.table({"id": [1], "y": [4]}), protect=pv.person("id", max_rows=2),
                 columns={"y": pv.integer(0, 9)})  # fmt: skip
PUBLIC = pv.public_table("p", pa.table({"k": ["a", "c"], "size": [1, 2]}), key="k")


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDB]:
    tables = {one.name: (one.schema, one.source) for one in (TABLE, OTHER)}
    with DuckDB(tables, {"p": (PUBLIC.schema, PUBLIC.source)}, salt=b"", threads=1) as made:
        yield made


odd = st.sampled_from([None, 7, "x", (), "and", Fraction(1, 2)])
constants = st.sampled_from([Fraction(0), Fraction(3, 2), "a", "", True, date(2024, 5, 1), None, 1.5, "\x00"])
words = st.sampled_from(
    ["+", "-", "*", "/", "==", "<", ">=", "and", "or", "floor", "abs", "year", "month", "hour", "%"]
)


X = e.Column("x")
FEW = st.sampled_from([X, e.Column("k"), e.Column("ok"), e.Column("d")])
N = a.Count()


def maybe(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what belongs there."""
    return st.one_of(inner, inner, inner, inner, inner, inner, inner, odd)


def record(kind: type, *fields: st.SearchStrategy[Any], otherwise: Any = X) -> st.SearchStrategy[Any]:
    """A record; another one if it refuses to exist. Any error but that one gets out."""

    def made(values: tuple[Any, ...]) -> Any:
        try:
            return kind(*values)
        except UserError:
            return otherwise

    return st.tuples(*fields).map(made)


columns = st.sampled_from(["x", "x", "k", "ok", "d", "y", "size", "nothing"]).map(e.Column)
nodes = st.recursive(
    st.one_of(columns, columns, record(e.Constant, constants)),
    lambda inner: st.one_of(
        record(e.Arithmetic, words, maybe(inner), maybe(inner)),
        record(e.Compare, words, maybe(inner), maybe(inner)),
        record(e.Logic, words, st.lists(inner, max_size=3).map(tuple)),
        record(e.Not, maybe(inner)),
        record(e.Rounded, words, inner),
        record(e.Clip, inner, st.just(Fraction(1)), st.sampled_from([Fraction(0), Fraction(5)])),
        record(e.IsMissing, inner),
        record(e.IsIn, inner, st.lists(record(e.Constant, constants), max_size=2).map(tuple)),
        record(e.StartsWith, inner, constants),
        record(e.Case, st.lists(st.tuples(inner, inner), max_size=2).map(tuple), st.one_of(st.none(), inner)),
        record(e.DatePart, inner, words),
        record(e.Truncate, inner, words),
        record(e.Bin, inner, st.sampled_from([(), (Fraction(0), Fraction(5)), (Fraction(5), Fraction(0))])),
    ),
    max_leaves=6,
)


@st.composite
def rows(draw: st.DrawFn) -> o.Operator:
    made: Any = Scan(TABLE.schema)
    for _ in range(draw(st.integers(0, 3))):
        with suppress(UserError):
            match draw(st.sampled_from(["where", "with", "public", "person", "per person"])):
                case "where":
                    made = Where(made, draw(maybe(nodes)))
                case "with":
                    made = WithColumns(made, ((draw(st.sampled_from(["z", "x", ""])), draw(maybe(nodes))),))
                case "public":
                    made = JoinPublic(made, PUBLIC.schema, draw(st.sampled_from(["k", "x"])), "inner")
                case "person":
                    made = JoinPerson(*draw(st.permutations([made, Scan(OTHER.schema)])))
                case _:
                    first: Any = draw(st.sampled_from(["count", "sum", "mean", "median"]))
                    values = ("n", OfPerson(first, draw(nodes))), ("m", OfPerson("max", draw(nodes)))
                    made = PerPerson(made, values)
    return made  # type: ignore[no-any-return]


asked = st.one_of(
    record(a.Count, st.one_of(st.none(), maybe(nodes)), otherwise=N),
    st.just(a.CountPeople()),
    record(a.Sum, FEW, otherwise=N),
    record(a.Mean, maybe(nodes), otherwise=N),
    record(a.Histogram, nodes, otherwise=N),
    record(a.Ratio, st.just(N), st.one_of(st.just(N), nodes), otherwise=N),
)


def counted(query: Query) -> Statement:
    """The rows of each group; nobody holds what is found of keys that are not public."""
    keys, groups = tuple(key.expression for key in query.keys), query.groups
    if isinstance(groups, Discovered):
        values = tuple("x" if isinstance(keys[i].type(query.input.types()), TextType) else 0 for i in groups.unknown)
        keys, listed = groups.resolved((values,)).statement(keys)
        return Statement(query.input, keys, AtMostRows(2), (Rows(),), listed)
    return Statement(query.input, keys, AtMostRows(2), (Rows(),), query.listed)


@settings(max_examples=75, suppress_health_check=[*HealthCheck], deadline=None)
@given(rows(), st.lists(st.one_of(FEW, FEW, maybe(nodes)), max_size=2), st.lists(asked, max_size=2))
def test_a_tree_of_constructors_is_refused_or_runs(
    engine: DuckDB, of: o.Operator, keys: list[Any], aggregates: list[Any]
) -> None:
    try:
        named = tuple(Key(f"key{i}", key) for i, key in enumerate(keys))
        query = Query(of, named, tuple((f"n{i}", one) for i, one in enumerate(aggregates)))
        statement = counted(query)
    except UserError:
        return
    assert decode(json.loads(json.dumps(encode(query)))) == query
    assert len(engine.answer(statement)) == statement.groups


SMALL = encode(TABLE.where(pv.col("x") > 1).group_by("k").agg(n=pv.count(), s=pv.sum("x")))


def places(tree: Any) -> list[tuple[Any, Any]]:
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree))) if isinstance(tree, list) else []
    return [(tree, key) for key in keys] + [place for key in keys for place in places(tree[key])]


@settings(max_examples=75, suppress_health_check=[*HealthCheck], deadline=None)
@given(st.data())
def test_damaged_json_is_refused_or_runs(engine: DuckDB, data: st.DataObject) -> None:
    tree = copy.deepcopy(SMALL)
    container, key = data.draw(st.sampled_from(places(tree)))
    container[key] = copy.deepcopy(data.draw(st.sampled_from([c[k] for c, k in places(SMALL)])))
    try:
        query = decode(tree)
    except UserError:
        return
    if isinstance(query, Query) and query.input.types() and o.tables(query.input) == (TABLE.schema,):
        statement = counted(query)
        assert len(engine.answer(statement)) == statement.groups


def test_a_private_column_that_is_never_missing_must_be_required() -> None:
    never = Column(replace(pv.integer(0, 9).type, missing=False))
    with pytest.raises(UserError, match="can be missing, unless"):
        Schema.declare("t", protect=pv.each_row(), columns={"x": never})


# --- groups -------------------------------------------------------------------------------------------

listings = st.lists(st.integers(0, 4), max_size=3).map(lambda sizes: Listed(tuple(tuple(range(n)) for n in sizes)))


@given(listings)
def test_groups_are_as_many_as_there_are(listed: Listed) -> None:
    for groups in (listed, Sets.rollup(listed), Sets.cube(listed)):
        every = list(groups)
        assert len(every) == groups.most
        assert groups.is_public
    assert Sets.rollup(listed).overlap == len(listed.values) + 1
    assert Sets.cube(listed).overlap == 2 ** len(listed.values)


@pytest.mark.parametrize("sets", [(), ((0,), (0,)), ((1, 0),), ((0, 0),), ((2,),), ((-1,),)])
def test_grouping_sets_that_mean_nothing_are_refused(sets: Any) -> None:
    with pytest.raises(UserError, match="grouping set"):
        Sets(Listed(((1, 2), (3, 4))), sets)


def test_too_many_groups_are_refused_wherever_they_are_listed() -> None:
    hundred = tuple(range(100))
    Listed((hundred, hundred))
    with pytest.raises(pv.errors.TooManyGroups, match="at most 10,000"):
        Listed((hundred, hundred, (1, 2)))
    with pytest.raises(pv.errors.TooManyGroups, match="at most 10,000"):
        Sets.rollup(Listed((hundred, hundred)))
