"""Random questions, printed as SQL by a small printer of the tests, are read as what they were."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sql.catalogue import PEOPLE, REGIONS, VISITS, asked

import privet as pv
from privet.errors import QueryError
from privet.planner.conditions import check
from privet.tables import aggregates as a
from privet.tables import operators as o
from privet.tables.arrangement import EVERYTHING
from privet.tables.expressions import nodes as e
from privet.tables.expressions.fluent import node
from privet.tables.query import Query
from privet.tables.relation import Relation

# --- the printer ----------------------------------------------------------------------------------


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def value(of: Any) -> str:
    match of:
        case bool():
            return str(of).upper()
        case str():
            return "'" + of.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{of.isoformat(' ')}'"
        case date():
            return f"DATE '{of.isoformat()}'"
    digits = 40
    scaled = of * 10**digits
    assert scaled.denominator == 1
    text = f"{abs(int(scaled)):0{digits + 1}d}"
    return f"{'-' if of < 0 else ''}{text[:-digits]}.{text[-digits:]}".rstrip("0").rstrip(".")


def sql(node: e.Node) -> str:
    match node:
        case e.Column(name):
            return quoted(name)
        case e.Constant(constant):
            return f"({value(constant)})"
        case e.Arithmetic(operator, left, right):
            return f"({sql(left)} {operator} {sql(right)})"
        case e.Compare(operator, left, right):
            return f"({sql(left)} {({'==': '=', '!=': '<>'}).get(operator, operator)} {sql(right)})"
        case e.Rounded(function, of, digits):
            return f"{function.upper()}({sql(of)}{f', {digits}' if function == 'round' else ''})"
        case e.Clip(of, lower, upper):
            return f"CLIP({sql(of)}, {value(lower)}, {value(upper)})"
        case e.Logic(operator, of):
            return f"({f' {operator.upper()} '.join(map(sql, of))})"
        case e.Not(of):
            return f"(NOT {sql(of)})"
        case e.IsIn(of, values):
            return f"({sql(of)} IN ({', '.join(value(v.value) for v in values)}))"
        case e.IsMissing(of):
            return f"({sql(of)} IS NULL)"
        case e.StartsWith(of, prefix):
            return f"STARTS_WITH({sql(of)}, {value(prefix)})"
        case e.Case(branches, otherwise):
            cases = " ".join(f"WHEN {sql(c)} THEN {sql(v)}" for c, v in branches)
            return f"CASE {cases}{'' if otherwise is None else f' ELSE {sql(otherwise)}'} END"
        case e.DatePart(of, part):
            return f"DATE_PART('{ {'weekday': 'isodow'}.get(part, part) }', {sql(of)})"
        case e.Truncate(of, unit):
            return f"DATE_TRUNC('{unit}', {sql(of)})"
        case e.Bin(of, edges):
            width = edges[1] - edges[0]
            return f"FLOOR({sql(of)} / {value(width)}) * {value(width)}"
        case e.Which():
            raise AssertionError("only Privet itself writes these")
        case e.Grouping(keys):
            return f"GROUPING({', '.join(map(quoted, keys))})"
        case e.OfAnswer("total", name):
            return f"SUM({quoted(name)}) OVER ()"
        case e.OfAnswer(end, name):
            return f"DP_INTERVAL_{end.upper()}({quoted(name)})"
        case e.Beyond():
            raise AssertionError("SQL has no word for it")


def measured(of: Any) -> str:
    match of:
        case a.Count(None):
            return "COUNT(*)"
        case a.CountDistinct(of_values):
            return f"COUNT(DISTINCT {sql(of_values)})"
        case a.CountPeople():
            return 'COUNT(DISTINCT "person_id")'
        case a.Ratio(top, bottom):
            return f"{measured(top)} / {measured(bottom)}"
    names = {a.Count: "COUNT", a.Sum: "SUM", a.Mean: "AVG", a.Variance: "VAR_POP", a.Std: "STDDEV_POP"}
    return f"{names[type(of)]}({sql(of.expression)})"


def rows(of: o.Operator) -> str:
    """FROM and WHERE."""
    match of:
        case o.Scan(table):
            return quoted(table.name)
        case o.Where(inner, condition):
            return f"{rows(inner)} WHERE {sql(condition)}"
        case o.JoinPublic(inner, table, on, how):
            kind = "LEFT JOIN" if how == "left" else "JOIN"
            return f"{rows(inner)} {kind} {quoted(table.name)} ON {quoted(on)} = {quoted(table.key)}"
        case o.JoinPerson(left, right):
            return f"{rows(left)} JOIN {rows(right)} USING (person_id)"
        case o.WithColumns(inner, columns):
            kept = [quoted(name) for name in inner.types() if name not in dict(columns)]
            added = [f"{sql(node)} AS {quoted(name)}" for name, node in columns]
            return f"(SELECT {', '.join(['person_id', *kept, *added])} FROM {rows(inner)}) AS t"
        case o.PerPerson(inner, columns):
            functions = {"count": "COUNT", "sum": "SUM", "mean": "AVG", "min": "MIN", "max": "MAX"}
            made = [
                f"{functions[v.function]}({'*' if v.expression is None else sql(v.expression)}) AS {quoted(n)}"
                for n, v in columns
            ]
            return f"(SELECT {', '.join(['person_id', *made])} FROM {rows(inner)} GROUP BY person_id) AS t"


def printed(query: Query) -> str:
    arranged = query.arrangement
    items = [f"{sql(key.expression)} AS {quoted(key.name)}" for key in query.keys]
    items += [f"{measured(what)} AS {quoted(name)}" for name, what in query.aggregates if name not in arranged.hidden]
    text = f"SELECT {', '.join(items)} FROM {rows(query.input)}"
    if query.keys:
        text += f" GROUP BY {', '.join(str(i + 1) for i in range(len(query.keys)))}"
    if arranged.having is not None:
        text += f" HAVING {sql(arranged.having)}"
    if arranged.order:
        parts = [f"{quoted(one.column)} {'DESC' if one.descending else 'ASC'}" for one in arranged.order]
        text += f" ORDER BY {', '.join(parts)}"
    return text if arranged.limit is None else f"{text} LIMIT {arranged.limit}"


# --- random questions -----------------------------------------------------------------------------

NUMBERS = [pv.col("age"), pv.col("income"), pv.col("hours"), pv.col("rate")]
decimals = st.integers(-(10**6), 10**6).map(lambda x: Fraction(x, 1000))
numbers = st.recursive(
    st.sampled_from(NUMBERS),
    lambda inner: st.one_of(
        st.builds(lambda x, y: x + y, inner, inner | decimals),
        st.builds(lambda x, y: x - y, inner, inner),
        st.builds(lambda x, y: x * y, inner, decimals),
        st.builds(lambda x, y: x / y, inner, st.integers(1, 50)),
        st.builds(lambda x: abs(x).floor(), inner),
        st.builds(lambda x, y: (0 - x).ceil() + y, inner, decimals),
        st.builds(lambda x, y: x.clip(min(-1, y), 2 + abs(y)), inner, decimals),
        st.builds(lambda c, x, y: pv.when(c > 3, x).otherwise(y), inner, inner, inner),
    ),
    max_leaves=5,
)
conditions = st.recursive(
    st.one_of(
        st.builds(lambda x, y: x >= y, numbers, decimals),
        st.builds(lambda x, y: x < y, numbers, numbers),
        st.builds(lambda x: x.is_missing(), numbers),
        st.builds(lambda x, y: x.is_between(y, y + 1), numbers, decimals),
        st.builds(lambda x: pv.col("region").is_in(x), st.lists(st.sampled_from(["north", "south"]), min_size=1)),
        st.builds(lambda x: pv.col("region") != x, st.sampled_from(["north", "o'x", "é"])),
        st.builds(lambda x: pv.col("region") == x, st.sampled_from(["north", "o'x"])),
        st.builds(lambda x: pv.col("name").starts_with(x), st.text("aé'%_ -/*;", min_size=1, max_size=6)),
        st.builds(lambda x: pv.col("name") != x, st.text("aé'\"%_ -/*;", max_size=6)),
        st.builds(lambda x: pv.col("day") <= x, st.dates(date(2023, 11, 1), date(2026, 3, 1))),
        st.builds(lambda x: pv.col("seen") == x, st.datetimes(datetime(2025, 1, 1), datetime(2025, 1, 8))),
        st.just(pv.col("smoker")),
        st.just(pv.col("smoker") == True),  # noqa: E712
    ),
    lambda inner: st.one_of(
        st.builds(lambda x, y: x & y, inner, inner),
        st.builds(lambda x, y: x | y, inner, inner),
        st.builds(lambda x: ~x, inner),
    ),
    max_leaves=5,
)
counts = st.one_of(st.just(pv.count()), st.just(pv.count_people()), numbers.map(pv.sum), numbers.map(pv.count))
measures = st.one_of(
    counts,
    numbers.map(pv.mean),
    numbers.map(pv.variance),
    numbers.map(pv.std),
    st.builds(lambda x, y: x / y, counts, counts),
)
keys = st.sampled_from(
    [
        ("region", pv.col("region")),
        ("s", pv.col("smoker")),
        ("old", pv.col("age") >= 65),
        ("band", pv.bins("age", list(range(0, 121, 10)))),
        ("month", pv.col("day").truncate("month")),
        ("weekday", pv.col("day").part("weekday")),
        ("kind", pv.when(pv.col("age") < 18, "child").otherwise("grown up")),
    ]
)
relations = st.one_of(
    st.just(PEOPLE.relation),
    conditions.map(lambda c: PEOPLE.where(c)),
    st.sampled_from(["inner", "left"]).map(lambda how: PEOPLE.join(REGIONS, on="region", how=how)),
    conditions.map(lambda c: PEOPLE.join(VISITS).where(c)),
    # a column that is itself is nothing new in SQL
    numbers.filter(lambda x: node(x) != e.Column("income")).map(lambda x: PEOPLE.with_columns(income=x)),
    conditions.map(lambda c: PEOPLE.join(VISITS.per_person(n=pv.count(), most=pv.greatest("amount"))).where(c)),
)


@st.composite
def questions(draw: st.DrawFn) -> Query | None:
    """A question, or None where the parts don't fit together."""
    chosen = dict(draw(st.lists(keys, max_size=2)))
    asks = {f"n{i}": what for i, what in enumerate(draw(st.lists(measures, min_size=1, max_size=3)))}
    try:
        of: Relation = draw(relations)
        query = of.group_by(**chosen).agg(**asks) if chosen else of.agg(**asks)
        if draw(st.booleans()):
            query = query.having((pv.col("n0") > draw(decimals)) | (pv.col("n0") <= draw(decimals)))
        if draw(st.booleans()):
            query = query.order_by(*["n0", *chosen][: draw(st.integers(1, 2))], descending=draw(st.booleans()))
        return query.limit(draw(st.integers(1, 99))) if draw(st.booleans()) else query
    except QueryError:
        return None


@settings(max_examples=150)
@given(questions())
def test_what_is_printed_is_read(query: Query | None) -> None:
    if query is None:
        return
    text = printed(query)
    if can_match(query):
        assert asked(text) == query, text
    else:
        with pytest.raises(QueryError, match=r"can never|can't be true|is never|no row|differs from"):
            asked(text)


def can_match(query: Query) -> bool:
    """Whether the planner takes the conditions of a query."""
    try:
        check(query)
    except QueryError:
        return False
    return True


def test_the_strategy_makes_questions_of_all_kinds() -> None:
    seen: list[Query] = []

    @settings(max_examples=100, database=None)
    @given(questions())
    def look(query: Query | None) -> None:
        if query is not None:
            seen.append(query)

    look()
    assert sum(map(can_match, seen)) > 60
    assert not all(map(can_match, seen))
    assert any(query.arrangement != EVERYTHING for query in seen)
    assert {type(query.input) for query in seen} >= {o.Scan, o.Where, o.JoinPublic}
