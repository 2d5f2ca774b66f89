"""Queries are values: equal if they ask the same, never changed, refused when they are built."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, is_dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from tests.tables.rows import people, schema, value

import privet as pv
from privet.errors import NoBounds, QueryError, UserError
from privet.planner import plan
from privet.tables.operators import Columns
from privet.tables.query import MOST_COLUMNS, Query
from privet.tables.relation import Relation, Table

ASKED: list[Callable[[Relation], Query]] = [
    lambda t: t.agg(n=pv.count()),
    lambda t: t.agg(n=pv.count("a")),
    lambda t: t.agg(m=pv.count()),
    lambda t: t.agg(n=pv.count(), m=pv.count("a")),
    lambda t: t.agg(m=pv.count("a"), n=pv.count()),
    lambda t: t.agg(n=pv.count_people()),
    lambda t: t.agg(n=pv.sum("a")),
    lambda t: t.agg(n=pv.mean("a")),
    lambda t: t.agg(n=pv.variance("a")),
    lambda t: t.agg(n=pv.std("a")),
    lambda t: t.agg(n=pv.sum("a") / pv.sum("c")),
    lambda t: t.agg(n=pv.sum("c") / pv.sum("a")),
    lambda t: t.agg(n=pv.histogram("a", [0, 1, 2])),
    lambda t: t.agg(n=pv.histogram("a", [0, 1, 3])),
    lambda t: t.where(pv.col("a") > 1).agg(n=pv.count()),
    lambda t: t.where(pv.col("a") >= 1).agg(n=pv.count()),
    lambda t: t.where(pv.col("a") > 1, pv.col("b") > 1).agg(n=pv.count()),
    lambda t: t.group_by("region").agg(n=pv.count()),
    lambda t: t.group_by(place="region").agg(n=pv.count()),
    lambda t: t.group_by("region", "grade").agg(n=pv.count()),
    lambda t: t.group_by("grade", "region").agg(n=pv.count()),
    lambda t: t.group_by(pv.col("born").truncate("month")).agg(n=pv.count()),
    lambda t: t.group_by(pv.bins("b", [0, 1, 2])).agg(n=pv.count()),
    lambda t: t.with_columns(d=pv.col("a") * 2).agg(n=pv.sum("d")),
    lambda t: t.agg(n=pv.sum(pv.col("a") * 2)),
]


def test_equal_if_built_alike_and_different_if_not() -> None:
    one, two = [ask(people()) for ask in ASKED], [ask(people()) for ask in ASKED]
    for i, left in enumerate(one):
        for j, right in enumerate(two):
            assert (left == right) == (i == j), (str(left), str(right))
            assert i != j or hash(left) == hash(right)


def test_other_declarations_are_other_queries() -> None:
    for other in (
        {"adjacency": "replace"},
        {"protect": pv.person("id", max_rows=2)},
        {"columns": {"a": pv.integer(0, 9)}},
    ):
        assert people().agg(n=pv.count()) != people(**other).agg(n=pv.count())


@pytest.mark.parametrize("ask", ASKED)
def test_queries_are_copied_and_pickled_as_they_are(ask: Callable[[Relation], Query]) -> None:
    query = ask(people())
    assert copy.deepcopy(query) == query
    assert pickle.loads(pickle.dumps(query)) == query


@pytest.mark.parametrize("ask", ASKED)
def test_nothing_in_a_query_can_be_changed(ask: Callable[[Relation], Query]) -> None:
    seen = 0

    def walk(value: Any) -> None:
        nonlocal seen
        if isinstance(value, tuple):
            for part in value:
                walk(part)
        elif is_dataclass(value) and fields(value):
            seen += 1
            with pytest.raises(FrozenInstanceError):
                setattr(value, fields(value)[0].name, None)
            for part in fields(value):
                walk(getattr(value, part.name))
        elif isinstance(value, Columns):
            for change in ("update", "pop", "clear", "setdefault", "__setitem__", "__delitem__", "__ior__"):
                with pytest.raises(TypeError, match="can't be changed"):
                    getattr(value, change)("a", None)
        else:
            assert not isinstance(value, list | dict | set | bytearray)

    walk(ask(people()))
    assert seen > 5


def test_building_changes_nothing() -> None:
    base = people()
    before = copy.deepcopy(base)
    base.where(pv.col("a") > 1)
    base.with_columns(x=1)
    base.group_by("region").agg(n=pv.count())
    assert base == before


def test_names_of_keys() -> None:
    made = people().group_by(
        "region", pv.col("born").truncate("year"), pv.bins("b", [0, 1]), small=pv.col("c") < 2
    ).agg(n=pv.count())  # fmt: skip
    assert [key.name for key in made.keys] == ["region", "born", "b", "small"]
    assert str(made) == "n = count() by region, born, b, small"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda t: t.agg(), r"a query needs at least one aggregate. Write, for example: \.agg\(n=pv\.count\(\)\)"),
        (lambda t: t.agg(n=3), r"3 is not a supported aggregate"),
        (lambda t: t.agg(n=pv.col("a")), r"is not a supported aggregate"),
        (lambda t: t.agg(n=pv.least("a", "c")), r"is not a supported aggregate"),
        (lambda t: t.agg(n=pv.sum("nope")), r"there is no column 'nope'"),
        (lambda t: t.agg(n=pv.count("nope")), r"there is no column 'nope'"),
        (
            lambda t: t.where(pv.col("born") >= "1960-01-02"),
            r"^a date can be compared only with a date, not with the text '1960-01-02'. Write: datetime.date\(1960",
        ),
        (lambda t: t.where(pv.lit("1960-01-02") < pv.col("born")), r"Write: datetime.date\(1960, 1, 2\)$"),
        (lambda t: t.where(pv.col("born").is_in(["1960-01-02"])), r"Write: datetime.date\(1960, 1, 2\)$"),
        (lambda t: t.where(pv.col("born") >= "04/01/2019"), r"Write, for example: datetime.date\(\d+, \d+, \d+\)$"),
        (lambda t: t.where(pv.col("rgeion") == "north"), r"Did you mean 'region'\?$"),
        (lambda t: t.where(pv.col("REGION") == "north"), r"Did you mean 'region'\?$"),
        (lambda t: t.agg(n=pv.sum("region")), r"sum\(region\) needs a number, but this is one of 3 keys"),
        (lambda t: t.agg(n=pv.histogram("note", [0, 1])), r"bins needs a number"),
        (lambda t: t.agg(n=pv.sum(pv.col("c") / pv.col("a"))), r"one person could change this without limit.*clip\("),
        (lambda t: t.agg(n=pv.sum("c") / pv.sum("nope")), r"there is no column 'nope'"),
        (lambda t: t.agg(**{"a\n": pv.count()}), r"the name of a column of the answer is a printable text"),
        (lambda t: t.group_by("region").agg(region=pv.count()), r"two columns of the answer are named 'region'"),
        (lambda t: t.group_by("region", "region").agg(n=pv.count()), r"two columns of the answer are named 'region'"),
        (
            lambda t: t.agg(**{f"n{i}": pv.count() for i in range(MOST_COLUMNS + 1)}),
            r"at most 200 columns, not 201",
        ),
        (
            lambda t: t.group_by("a", "c", "born").agg(n=pv.count()),
            r"these keys make .* groups; at most 10,000 are allowed. Use fewer keys, or wider bins",
        ),
    ],
)
def test_refusals(build: Callable[[Relation], Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        build(people())


def test_the_bins_of_a_histogram_are_columns_too() -> None:
    asked: dict[str, Any] = {"h": pv.histogram("a", [0, 5, 7]), "h [0, 5)": pv.count()}
    with pytest.raises(QueryError, match="two columns of the answer are named 'h "):
        plan(people().agg(**asked), epsilon=1)


def test_rows_can_not_be_looked_at() -> None:
    table = Table(schema(), source=["secret"])
    for look in (len, list, iter, lambda t: [*t], lambda t: next(iter(t)), lambda t: 3 in t):
        with pytest.raises(UserError, match="the rows of 'people' are private"):
            look(table)
    assert table
    assert "secret" not in repr(table)
    assert table == Table(schema(), source=["other"]), "a table is its declaration"


def test_a_table_asks_as_its_relation_does() -> None:
    table = Table(schema(), None)
    assert table.agg(n=pv.count()) == table.relation.agg(n=pv.count()) == people().agg(n=pv.count())
    assert table.where(pv.col("f")) == people().where(pv.col("f"))
    assert table.with_columns(x=1) == people().with_columns(x=1)
    assert table.group_by("region") == people().group_by("region")


def test_too_many_steps_are_refused() -> None:
    def stepped(count: int) -> Relation:
        of = people()
        for _ in range(count):
            of = of.where(pv.col("c") > 1)
        return of

    stepped(50)
    for many in (100, 2000):
        with pytest.raises(QueryError, match="a query can have at most 64 steps"):
            stepped(many)


@pytest.mark.parametrize("many", [100, 3000])
def test_many_conditions_in_one_where(many: int) -> None:
    """Allowed, or refused with a QueryError that does not advise to do the same again."""
    try:
        people().where(*[pv.col("c") > 1] * many)
    except QueryError as error:
        advice = str(error)
    else:
        advice = ""
    assert "Put several conditions into one where" not in advice


def test_names_of_pandas_polars_and_ibis_mean_the_same() -> None:
    table, born = people(), pv.col("born")
    assert table.filter(pv.col("a") > 1) == table.where(pv.col("a") > 1)
    assert born.is_null().node == born.is_missing().node
    assert born.is_not_null().node == (~born.is_missing()).node
    for part in ("year", "quarter", "month", "day", "weekday", "hour"):
        assert getattr(born, part)().node == born.part(part).node
    assert pv.min("a") == pv.least("a") != pv.max("a") == pv.greatest("a")


def test_least_and_greatest_of_several_are_row_wise() -> None:
    low, high = pv.least("a", "c", 2), pv.greatest("a", pv.col("c"))
    for row in ({"a": Fraction(3), "c": Fraction(4)}, {"a": Fraction(1), "c": Fraction(1)}):
        assert value(low.node, row) == min(*row.values(), 2)
        assert value(high.node, row) == max(row.values())
    assert value(low.node, {"a": None, "c": Fraction(1)}) is None
    assert value(high.node, {"a": Fraction(1), "c": None}) is None


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda t: t.agg(pv.count()), r"every aggregate needs a name.*\.agg\(n=pv\.count\(\)"),
        (lambda t: t.group_by("region").agg(pv.count()), "every aggregate needs a name"),
        (lambda t: t.where(pv.col("region") > "north"), r'Write, for example: pv\.col\("region"\) == "'),
    ],
)
def test_what_to_write_instead(ask: Callable[[Relation], Any], said: str) -> None:
    with pytest.raises(QueryError, match=said):
        ask(people())


def test_the_suggested_bound_is_that_of_sql() -> None:
    declared = {"hours": pv.number(0, 40)}
    rows = pa.table({"nr": [1], "hours": [1.0]})
    work = pv.table("work", rows, protect=pv.person("nr", max_rows=3), columns=declared)
    with pytest.raises(NoBounds) as caught:
        work.per_person(h=pv.sum("hours")).agg(x=pv.sum("h"))
    assert str(caught.value).endswith(
        'Write: pv.col("h").clip(0, 120), or session.release_bounds(rows, pv.col("h"), epsilon=0.1)'
    )
    with pytest.raises(QueryError, match=r"'nr' identifies a person, so it can't be shown or grouped by.*count_people"):
        work.group_by("nr")
    question = work.per_person(h=pv.sum("hours")).agg(x=pv.sum(pv.col("h").clip(0, 120)))
    sql = "SELECT SUM(h) AS x FROM (SELECT nr, SUM(hours) AS h FROM work GROUP BY nr)"
    with pv.Session([work], budget=pv.PureDP(1), ledger=None) as session:
        assert session.parse(sql) == question
        both = work.per_person(h=pv.sum("hours")).agg(n=pv.count_people(), x=pv.sum(pv.col("h").clip(0, 120)))
        assert session.explain(both, epsilon=0.1).count("Each person has one row") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"columns": ["hours"]},
            r'a dict .*, not list\. .*columns=\{"hours": pv\.number\(0, 100\), \.\.\.\}',
        ),
        ({"columns": {"hours": "bool"}}, r'not \'bool\'\. Write, for example: columns=\{"hours": pv\.boolean\(\)\}'),
        ({"columns": {"hours": int}}, r'not the type int\. Write, for example: columns=\{"hours": pv\.integer\('),
        (
            {"protect": "each_row"},
            r"what is protected, not 'each_row'\. Write: protect=pv\.each_row\(\)$",
        ),
        ({"protect": pv.each_row}, r"not the function each_row\. Write: protect=pv\.each_row\(\)$"),
        ({"protect": "nr"}, r'protect=pv\.person\("nr", max_rows=3\)'),
    ],
)
def test_declarations_in_other_words(arguments: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"protect": pv.each_row(), "columns": {"hours": pv.number(0, 40)}} | arguments
    with pytest.raises(UserError, match=said):
        pv.table("work", pa.table({"hours": [1.0]}), **given)


def test_reversed_bounds_are_written_again_as_they_were() -> None:
    with pytest.raises(UserError, match=r"10 is greater than 0\. Write: pv\.integer\(0, 10\)$"):
        pv.integer(10, 0)
    with pytest.raises(UserError, match=r"Write: pv\.number\(0\.5, 10\)$"):
        pv.number(10, 0.5)
    with pytest.raises(UserError, match=r"Write, for example: pv\.person\("):
        pv.person("nr")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("count", r"people\.agg\(x=pv\.count\(\)\)"),
        ("sum", r'people\.agg\(x=pv\.sum\("income"\)\)'),
        ("groupby", "Use group_by"),
        ("nothing", "has no attribute 'nothing'$"),
    ],
)
def test_methods_of_other_libraries(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(people(), name)
