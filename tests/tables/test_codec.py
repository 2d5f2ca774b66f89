"""The JSON form of queries: closed, canonical, and safe to read from anybody."""

from __future__ import annotations

import copy
import dataclasses
import json
import time
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import exactly

from privet.codec.records import DEEPEST
from privet.codec.text import BITS
from privet.errors import UserError
from privet.privacy.adjacency import each_row, person
from privet.tables import aggregates, arrangement, operators, ranked, schema, statement, types
from privet.tables.aggregates import approx_bounds, count, count_distinct, count_people, histogram, mean, std, variance
from privet.tables.aggregates import sum as total
from privet.tables.codec import KINDS, decode, encode
from privet.tables.expressions import fluent, nodes
from privet.tables.expressions.fluent import Expr, bins, col, lit, when
from privet.tables.extremes import greatest, least
from privet.tables.holders import Holders
from privet.tables.query import Query
from privet.tables.relation import Relation, Table
from privet.tables.schema import PublicSchema, Schema
from privet.tables.statement import At, AtMostGroups, AtMostRows, PeopleInGroups, Place, Rows, Statement

PEOPLE = Table(
    Schema.declare(
        "people",
        protect=person("id", max_rows=3),
        columns={
            "age": schema.integer(0, 110),
            "income": schema.number(0, 200_000, step="1/3", required=True),
            "rate": schema.number(-0.5, 0.5),
            "region": schema.keys("north", "1/2", other="elsewhere"),
            "zone": schema.keys(1, 2, 3),
            "place": schema.keys({"north": ["a", "b"], "1/2": ["c"], "elsewhere": ["d"]}, within="region"),
            "name": schema.text(),
            "born": schema.date("1900-01-01", "2024-12-31"),
            "seen": schema.timestamp("2020-01-01", "2024-12-31T23:59:59.5"),
            "member": schema.boolean(required=True),
        },
    ),
    None,
)
VISITS = Table(
    Schema.declare(
        "visits", protect=person("id", max_groups=2, max_rows_per_group=3), columns={"cost": schema.number(0, 9)}
    ),
    None,
)
ROWS = Table(
    Schema.declare("r", protect=each_row(), columns={"x": schema.integer(0, 9)}, adjacency="replace", rows=100), None
)
REGIONS = PublicSchema(
    "regions",
    "region",
    (
        ("region", types.KeyType(("north", "south"), missing=False)),
        ("size", types.NumberType(Fraction(1), Fraction(9), integer=True)),
        ("since", types.TimeType(date(1990, 1, 1), date(2000, 1, 1))),
        ("open", types.BooleanType(missing=False)),
        ("note", types.TextType()),
    ),
    "0f" * 32,
)
JOINED = Relation(operators.JoinPublic(PEOPLE.relation.input, REGIONS, "region", "left"))
ADULTS = JOINED.where((col("age") >= 18) & ~(col("name").starts_with("A") | col("member").is_missing()))
WIDE = ADULTS.with_columns(
    pay=(col("income") / 12 + abs(col("rate")) - col("age") * Fraction(1, 3)).clip(0, 20_000),
    kind=when(col("age") < 18, "child").when(col("region") == "1/2", "x").otherwise("adult"),
    old=when(col("born") < date(1960, 1, 1), col("age").floor()).otherwise(),
    days=lit(date(2025, 1, 1)) - col("born"),
    late=col("seen") > datetime(2024, 1, 1, 12, 30),
)

QUERIES: list[Query] = [
    PEOPLE.agg(n=count(), names=count_distinct("name")),
    ROWS.where(col("x").is_in([1, 2, 3])).agg(n=count("x"), m=mean("x")),
    WIDE.group_by("region", "kind").agg(n=count(), pay=total("pay") / count_people(), s=std("age"), v=variance("rate")),
    WIDE.group_by(col("seen").truncate("month"), day=col("born").part("weekday"))
    .agg(h=histogram("age", [0, 18, "64.5", 110])),
    PEOPLE.group_by(b=bins("age", [0, 18, 65, 110])).agg(n=count_people()),
    PEOPLE.agg(q=ranked.quantiles("age", [0.1, 0.5], interval=False), most=greatest("age")),
    PEOPLE.agg(b=approx_bounds("income"), n=histogram(Expr(nodes.Beyond(nodes.Column("age"))), [-1, 0, 1])),
    PEOPLE.group_by("region").agg(n=count(), m=mean("age")).having((col("n") > 5) & (col("region") != "north"))
    .order_by("m", "region", descending=[True, False]).limit(3).hide("m"),
    PEOPLE.join(VISITS).per_person(c=count(), s=total("cost"), m=mean("cost"), lo=least("age"), hi=greatest("age"))
    .where(col("c") > 2)
    .agg(n=count(), s=total(col("s").clip(0, 100))),
    PEOPLE.per_person("region", n=count()).group_by("region").agg(m=count())
    .compute(share=col("m") / fluent.total("m", by="region"), low=fluent.interval_low("m").round(1)),
    PEOPLE.rollup("region").agg(n=count()).compute(level=fluent.grouping("region")).in_order("level", "n"),
]  # fmt: skip
AGE, ADULT = col("age").node, (col("age") >= 18).node
BINS = bins("age", [0, 18, 110]).node
assert isinstance(BINS, nodes.Bin)
STATEMENTS = [
    Statement(
        WIDE.input,
        (nodes.Column("region"),),
        bounding,
        (Rows(), exactly.present(AGE), exactly.holds(ADULT), At(Place(BINS, 2), 1)),
    )
    for bounding in (statement.Unbounded(), AtMostRows(3), AtMostGroups(2, 3), PeopleInGroups(2))
]
STATEMENTS.append(
    Statement(
        PEOPLE.relation.input, (), AtMostRows(1), (exactly.total(AGE, 0, 1, 110), exactly.squares(AGE, 0, 1, 110))
    )
)
NAME = nodes.Column("name")
STATEMENTS.append(
    Statement(
        PEOPLE.relation.input, (nodes.Which((NAME, AGE), (("a", 1), ("b", 2))),), AtMostRows(1),
        (statement.Distinct(statement.Given(NAME)),),
    )
)  # fmt: skip
RECORDS: list[Any] = [*QUERIES, *STATEMENTS, Holders(PEOPLE.relation.input, (NAME,), PeopleInGroups(2))]
TREES: list[Any] = [encode(record) for record in RECORDS]


@pytest.mark.parametrize("record", RECORDS, ids=range(len(RECORDS)))
def test_what_is_written_is_read_again(record: Any) -> None:
    tree = encode(record)
    text = json.dumps(tree)  # nothing but JSON
    again = decode(json.loads(text))
    assert again == record
    assert type(again) is type(record)
    assert hash(again) == hash(record)
    assert encode(again) == tree


def kinds_in(tree: Any) -> set[str]:
    if isinstance(tree, dict):
        return {tree["kind"]} - {None} | set().union(*map(kinds_in, tree.values())) if "kind" in tree else set()
    return set().union(*map(kinds_in, tree)) if isinstance(tree, list) else set()


def test_every_kind_is_among_the_examples() -> None:
    assert set().union(*map(kinds_in, TREES)) == {*KINDS}


def test_every_record_of_the_language_has_a_kind() -> None:
    classes = {
        made
        for module in (aggregates, arrangement, nodes, operators, schema, statement, types)
        for name, made in vars(module).items()
        if isinstance(made, type)
        and not name.startswith("_")
        and dataclasses.is_dataclass(made)
        and made.__module__ == module.__name__
    }
    unwritten = {aggregates.OfValues, statement.Buckets}  # a base class, and what an engine is asked in passing
    assert classes - unwritten <= set(KINDS.values())


# Never change a line of these: certificates of every age hold such trees.
GOLDEN: list[tuple[Any, str]] = [
    ((col("age") >= 18).node,
     ('{"kind":"compare","left":{"kind":"column","name":"age"},"operator":">=",'
     '"right":{"kind":"constant","value":{"exact":"18/1"}}}')),
    (lit("1/2").node, '{"kind":"constant","value":"1/2"}'),
    (lit(True).node, '{"kind":"constant","value":true}'),
    (lit(date(2024, 1, 2)).node, '{"kind":"constant","value":{"date":"2024-01-02"}}'),
    (lit(datetime(2024, 1, 2)).node, '{"kind":"constant","value":{"datetime":"2024-01-02T00:00:00"}}'),
    (schema.number(0, 1, step=0.25),
     ('{"default":null,"kind":"declared","kind_name":"number","type":{"integer":false,'
     '"kind":"number type","lower":"0/1","missing":true,"rounded":false,"step":"1/4",'
     '"unit":"1/4","upper":"1/1","wide":false},"within":null}')),
    (ROWS.schema,
     ('{"adjacency":"replace","columns":[["x",{"default":null,"kind":"declared","kind_name":"integer","type":{"integer":true,'
     '"kind":"number type","lower":"0/1","missing":true,"rounded":false,"step":null,'
     '"unit":"1/1","upper":"9/1","wide":false},"within":null}]],"kind":"schema",'
     '"name":"r","protect":{"kind":"each row"},"rows":100}')),
    (ROWS.agg(n=count()).limit(3).arrangement,
     '{"computed":[],"having":null,"hidden":[],"kind":"arrangement","limit":3,"order":[]}'),
    (person("id", max_rows=3), '{"id":"id","kind":"person","max_groups":null,"max_rows":3,"max_rows_per_group":null}'),
]  # fmt: skip


@pytest.mark.parametrize(("record", "text"), GOLDEN, ids=range(len(GOLDEN)))
def test_golden_trees_are_written_and_read_for_ever(record: Any, text: str) -> None:
    assert json.dumps(encode(record), sort_keys=True, separators=(",", ":")) == text
    assert decode(json.loads(text)) == record


CLIP: Any = {"kind": "clip", "operand": {"kind": "column", "name": "age"}, "lower": "0/1", "upper": "1/2"}
PERSON: Any = {"kind": "person", "id": "id", "max_rows": 1, "max_groups": None, "max_rows_per_group": None}
KEYS: Any = {"kind": "key type", "values": ["a"], "other": None, "missing": True}


def constant(value: Any) -> Any:
    return {"kind": "constant", "value": value}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({**CLIP, "lower": 0}, 'lower: must be a text such as "3/2" in lowest terms, not 0'),
        ({**CLIP, "lower": "2/4"}, 'lower: must be a text such as "3/2" in lowest terms, not \'2/4\''),
        ({**CLIP, "lower": "1"}, "lower: must be a text such as"),
        ({**CLIP, "lower": "1/0"}, "lower: must be a text such as"),
        ({**CLIP, "lower": "1/2\n"}, "lower: must be a text such as"),
        ({**CLIP, "lower": "٣/2"}, "lower: must be a text such as"),
        ({**CLIP, "lower": "9" * 5000 + "/1"}, "lower: must be a text such as"),
        ({**CLIP, "lower": 0.5}, "lower: must be a text such as"),
        ({**CLIP, "lower": {"exact": "0/1"}}, "lower: must be a text such as"),
        ({**CLIP, "extra": 1}, "the record: clip must have the fields operand, lower, upper, not "),
        ({"kind": "clip"}, "the record: clip must have the fields operand, lower, upper, not none"),
        ({**CLIP, "kind": "clap"}, "kind: must be one of schema, "),
        ({**CLIP, "kind": ["clip"]}, "kind: must be one of schema, "),
        ({**CLIP, "operand": {"kind": "count", "expression": None}}, "operand.kind: must be one of column, constant, "),
        ({**CLIP, "operand": None}, "operand: must be an object with a kind, not None"),
        ({**CLIP, "operand": [CLIP]}, "operand: must be an object with a kind, not a list"),
        ({"kind": "column", "name": True}, "name: must be a text, not True"),
        ({"kind": "column", "name": "a\x00"}, "the record: this needs text of at most 10,000 characters"),
        ({"kind": "column", "name": "\ud800"}, "the record: this needs text of at most 10,000 characters"),
        (constant(1), "value: must be a text or true or false or"),
        (constant(None), "value: must be a text or true or false or"),
        (constant({"date": "20240102"}), "value: must be"),
        (constant({"datetime": "2024-01-02T00:00:00+00:00"}), "value: must be"),
        (constant({"datetime": "2024-01-02"}), "value: must be"),
        (constant({"date": "2024-01-02", "datetime": "2024-01-02T00:00:00"}), "value.kind: must be one of none"),
        (constant({"exact": "1" + "0" * 400 + "/1"}), "the record: this number"),
        ({"kind": "arithmetic", "operator": "%", "left": CLIP, "right": CLIP}, "operator: must be one of +, -, *, /"),
        ({"kind": "logic", "operator": "and", "operands": []}, "the record: and needs at least two conditions"),
        ({"kind": "logic", "operator": "or", "operands": [CLIP]}, "the record: or needs at least two conditions"),
        ({"kind": "case", "branches": [[CLIP]], "otherwise": None}, "branches[0]: must be a list, not a list"),
        ({"kind": "bin", "operand": CLIP, "edges": ["0/1"]}, "the record: bins need at least two edges"),
        ({"kind": "bin", "operand": CLIP, "edges": ["1/1", "0/1"]}, "the record: the edges of bins must be"),
        ({"kind": "of person", "function": "sum", "expression": None}, "the record: sum needs an expression"),
        ({**PERSON, "max_rows": 5, "max_groups": 2, "max_rows_per_group": 3}, "the record: max_rows must be max_"),
        ({**PERSON, "max_rows": -1}, "the record: max_rows"),
        ({"kind": "at most rows", "rows": 0}, "the record: a cap is a whole number"),
        ({**KEYS, "values": []}, "the record: keys are all texts or all integers"),
        ({**KEYS, "values": ["a", 1]}, "values: must be a list, not a list"),
        ({**KEYS, "values": [True]}, "values: must be a list, not a list"),
        (None, "the record: must be an object with a kind, not None"),
        (7, "the record: must be an object with a kind, not 7"),
        ([], "the record: must be an object with a kind, not a list"),
        ({}, "kind: must be one of schema, "),
        ({1: 2}, "the record: must be an object with a kind, not an object"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_refused_by_its_path(tree: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        decode(tree)
    assert str(caught.value).startswith(message)


def changed(tree: Any, change: Callable[[Any], None]) -> Any:
    made = copy.deepcopy(tree)
    change(made)
    return made


def test_an_ill_typed_query_is_refused() -> None:
    number = encode(col("age").node)
    where = encode(PEOPLE.where(col("age") >= 18).agg(n=count()))

    def condition(tree: Any) -> None:
        tree["input"]["condition"] = number

    def unknown(tree: Any) -> None:
        tree["input"]["condition"]["left"]["name"] = "agee"

    def unsummable(tree: Any) -> None:
        tree["aggregates"] = [["n", {"kind": "sum", "expression": {"kind": "column", "name": "name"}}]]

    def bounds(tree: Any) -> None:
        tree["input"]["input"]["table"]["columns"][0][1]["type"]["upper"] = "-5/1"

    for change, message in (
        (condition, "input: where needs a condition"),
        (unknown, "input: there is no column 'agee'"),
        (unsummable, "the record: sum(name) needs a number"),
        (bounds, "input.input.table.columns[0][1].type: the bounds of a number"),
    ):
        with pytest.raises(UserError) as caught:
            decode(changed(where, change))
        assert str(caught.value).startswith(message)


def test_an_ill_formed_arrangement_is_refused() -> None:
    tree = encode(PEOPLE.agg(n=count()))
    nothing: dict[str, Any] = {"kind": "arrangement", "having": None, "order": [], "limit": None, "hidden": []}
    nothing["computed"] = []
    assert tree["arrangement"] == nothing
    for change, message in (
        (None, "arrangement: must be an object with a kind, not None"),
        ({**nothing, "limit": 0}, "arrangement: limit must be 1 to 10,000"),
        ({**nothing, "hidden": ["n"]}, "the record: hide: at least one column of numbers must remain"),
        (
            {**nothing, "order": [{"kind": "order", "column": "x", "descending": True}]},
            "the record: order_by: the answer",
        ),
    ):
        with pytest.raises(UserError) as caught:
            decode({**tree, "arrangement": change})
        assert str(caught.value).startswith(message)


def test_nesting_is_limited_the_same_way_in_and_out() -> None:
    node = col("x").node
    for _ in range(DEEPEST - 2):  # the column is an object, and its name stands one deeper
        node = nodes.Not(node)
    tree = encode(node)
    assert decode(tree) == node
    too_deep = {"kind": "not", "operand": tree}
    with pytest.raises(UserError, match="more than 200 deep"):
        decode(too_deep)
    with pytest.raises(UserError, match="more than 200 deep"):
        encode(nodes.Not(node))
    for _ in range(100_000):
        too_deep = {"kind": "not", "operand": too_deep}
    with pytest.raises(UserError, match="more than 200 deep"):
        decode(too_deep)
    while "operand" in too_deep:  # taken apart by hand: Python's own clean-up would nest as deep
        too_deep = too_deep.pop("operand")


def test_deep_logic_is_read_and_typed() -> None:
    expression: Expr = col("x") > 1
    for _ in range(50):
        expression = expression & (col("x") > 1)
    query = ROWS.where(expression).agg(n=count())
    assert decode(encode(query)) == query


def test_many_joined_tables_take_no_time() -> None:
    def one(i: int) -> Any:
        return encode(
            operators.Scan(
                Schema.declare(f"t{i:02}", protect=person("id", max_rows=1), columns={f"c{i}": schema.text()})
            )
        )

    tree = one(0)
    for i in range(1, 60):
        tree = {"kind": "join person", "left": tree, "right": one(i)}
    start = time.process_time()
    with pytest.raises(UserError, match="at most 16 private tables"):
        decode(tree)
    assert time.process_time() - start < 20


def test_numbers_too_long_are_refused_both_ways() -> None:
    assert isinstance(BINS, nodes.Bin)
    with pytest.raises(UserError, match="4096 bits"):
        encode(statement.Code(AGE, Fraction(0), Fraction(2**BITS), 1, missing=True))
    with pytest.raises(UserError, match=r"rows: must be"):
        decode({"kind": "at most rows", "rows": 2 ** (BITS + 1)})


# --- whatever is sent ---------------------------------------------------------------------------------

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from(["1/2", "-1/3", "0/1", "north", "kind", "age", "and", "+", "count", 2**70, -1, "\ud800"]),
    st.sampled_from([{"exact": "1/2"}, {"date": "2024-01-01"}, {"datetime": "9999-12-31T23:59:59"}]),
    st.sampled_from([*KINDS]).map(lambda kind: {"kind": kind}),
)  # fmt: skip
PIECES = [encode(x) for x in (col("age").node, lit(0).node, (col("rate") / 0).node, bins("age", [0, 1]).node, REGIONS)]
replacements = st.one_of(scalars, st.lists(scalars, max_size=3), st.sampled_from(PIECES))


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every place in a tree: the container, and the key in it."""
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree))) if isinstance(tree, list) else []
    return [(tree, key) for key in keys] + [place for key in keys for place in places(tree[key])]


def read_or_refused(tree: Any) -> bool:
    try:
        record = decode(tree)
    except UserError:  # any other error gets out
        return False
    assert encode(record) == tree
    assert decode(encode(record)) == record
    return True


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_tree_is_read_or_refused(data: st.DataObject) -> None:
    tree = copy.deepcopy(data.draw(st.sampled_from(TREES)))
    for _ in range(data.draw(st.integers(1, 2))):
        container, key = data.draw(st.sampled_from(places(tree)))
        match data.draw(st.sampled_from(["replace", "remove", "add", "swap"])):
            case "replace":
                container[key] = copy.deepcopy(data.draw(replacements))
            case "remove":
                del container[key]
            case "add" if isinstance(container, dict):
                container[data.draw(st.text(max_size=3))] = copy.deepcopy(data.draw(replacements))
            case "add":
                container.insert(key, copy.deepcopy(data.draw(replacements)))
            case _:
                container[key] = copy.deepcopy(data.draw(st.sampled_from([c[k] for c, k in places(tree)])))
        if not places(tree):
            break
    read_or_refused(tree)


json_trees = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
)


@given(json_trees)
def test_any_tree_is_read_or_refused(tree: Any) -> None:
    read_or_refused(tree)
