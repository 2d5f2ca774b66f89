"""Operators: their types, what they refuse, and what is known of rows and persons whatever the data."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from tests.tables.rows import TYPES, people, schema

import privet as pv
from privet.errors import QueryError, UserError
from privet.privacy.adjacency import Adjacency
from privet.tables.operators import adjacency, keeps_all_rows, one_row_each, protected, public_tables, tables
from privet.tables.relation import PublicTable, Relation
from privet.tables.schema import CEILING, PublicSchema, Schema
from privet.tables.types import KeyType, NumberType

loose: Any = people
"""For what a type checker would refuse as well."""

PERSON = pv.person("id", max_rows=3)
REGIONS = PublicTable(
    PublicSchema(
        "regions",
        "region",
        (
            ("region", KeyType(("north", "south"), missing=False)),
            ("area", NumberType(Fraction(0), Fraction(9), missing=False)),
        ),
        "0f" * 32,
    ),
    None,
)
VISITS = Schema.declare("visits", protect=pv.person("person", max_rows=5), columns={"pay": pv.integer(0, 9)})


def of_person() -> Relation:
    return people(protect=PERSON)


def visits() -> Relation:
    from privet.tables.operators import Scan

    return Relation(Scan(VISITS))


def totals(of: Relation) -> Relation:
    return of.per_person(total=pv.sum("c"), n=pv.count(), most=pv.greatest("a"), least=pv.least("b"), mid=pv.mean("c"))


CASES: list[tuple[str, Relation, bool, bool]] = [
    # of, one row each, keeps all rows
    ("rows", people(), False, True),
    ("rows replaced", people(adjacency="replace"), False, True),
    ("rows, a column", people().with_columns(d=pv.col("c") + 1), False, True),
    ("rows, filtered", people().where(pv.col("c") > 1), False, False),
    ("rows, filtered by what is always true", people().where(pv.lit(True)), False, False),
    ("rows, a column, filtered", people().with_columns(d=pv.col("c") + 1).where(pv.col("d") > 1), False, False),
    ("rows, filtered, a column", people().where(pv.col("c") > 1).with_columns(d=pv.col("c") + 1), False, False),
    ("rows, left join", people().join(REGIONS, on="region", how="left"), False, True),
    ("rows, inner join", people().join(REGIONS, on="region"), False, False),
    ("rows, left join, a column", people().join(REGIONS, on="region", how="left").with_columns(d=1), False, True),
    ("rows, inner join, a column", people().join(REGIONS, on="region").with_columns(d=1), False, False),
    ("persons", of_person(), False, False),
    ("persons, left join", of_person().join(REGIONS, on="region", how="left"), False, False),
    ("persons, joined", of_person().join(visits()), False, False),
    ("per person", totals(of_person()), True, False),
    ("per person, filtered", totals(of_person()).where(pv.col("n") > 1), True, False),
    ("per person, a column", totals(of_person()).with_columns(d=1), True, False),
    ("per person twice", totals(of_person()).per_person(x=pv.count()), True, False),
    (
        "per person, then public",
        totals(of_person()).with_columns(region="north").join(REGIONS, on="region"),
        True,
        False,
    ),
    ("per person, joined", totals(of_person()).join(visits()), False, False),
    ("per person on both sides", totals(of_person()).join(visits().per_person(k=pv.count())), False, False),
    ("joined, per person", of_person().join(visits()).per_person(k=pv.sum("pay")), True, False),
]


@pytest.mark.parametrize(("of", "one", "every"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_known_of_rows(of: Relation, one: bool, every: bool) -> None:
    assert one_row_each(of.input) is one
    assert keeps_all_rows(of.input) is every


def test_what_is_read() -> None:
    both = of_person().join(visits()).join(REGIONS, on="region")
    assert [t.name for t in tables(both.input)] == ["people", "visits"]
    assert public_tables(both.input) == (REGIONS.schema,)
    assert protected(both.input) == PERSON == both.protect
    assert adjacency(both.input) is Adjacency.ADD_REMOVE
    assert public_tables(people().input) == ()


def test_types_go_through() -> None:
    assert people().where(pv.col("f")).input.types() == TYPES
    made = people().with_columns(c=pv.col("c") * 2, d=pv.col("c") * 3)
    assert made.input.types()["c"] == NumberType(Fraction(2), Fraction(8), unit=Fraction(2), missing=False)
    assert made.input.types()["d"] == NumberType(Fraction(3), Fraction(12), unit=Fraction(3), missing=False), (
        "from before"
    )
    assert made.columns == (*TYPES, "d")


def test_types_of_joins() -> None:
    inner = people().join(REGIONS, on="region").input.types()["area"]
    left = people().join(REGIONS, on="region", how="left").input.types()["area"]
    assert not inner.missing
    assert left.missing
    assert set(of_person().join(visits()).columns) == {*TYPES, "pay"}


def test_types_per_person() -> None:
    types = totals(of_person()).input.types()
    assert types["total"] == NumberType(Fraction(0), Fraction(4) * CEILING, integer=True, missing=False, wide=True)
    assert types["n"] == NumberType(Fraction(0), Fraction(CEILING), integer=True, missing=False, wide=True)
    assert types["most"] == TYPES["a"]
    assert types["least"] == TYPES["b"]
    assert types["mid"] == NumberType(Fraction(1), Fraction(4), missing=False)
    negative = of_person().per_person(t=pv.sum("a")).input.types()["t"]
    assert negative == NumberType(Fraction(-3) * CEILING, Fraction(7) * CEILING, integer=True, wide=True)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: people().where(), r"where needs a condition. Write"),
        (lambda: people().where(pv.col("a")), r"where needs a condition, but this is an integer in -3\.\.7"),
        (lambda: loose().where("a > 1"), r"where needs a condition, not 'a > 1'"),
        (lambda: people().where(pv.col("nope") > 1), r"there is no column 'nope'"),
        (lambda: people().with_columns(), r"with_columns needs a column"),
        (lambda: people().with_columns(**{"": 1}), r"the name of a column is a printable text of 1 to 120"),
        (lambda: people().with_columns(**{"x\n": 1}), r"the name of a column is a printable text"),
        (lambda: people().with_columns(x=None), r"NoneType can't be used"),
        (lambda: people().with_columns(x=pv.col("nope")), r"there is no column 'nope'"),
        (lambda: people().join(REGIONS, on="note2"), r"there is no column 'note2' to join on. The columns are: a, b"),
        (lambda: people().join(REGIONS, on="a"), r"'a' is an integer in -3\.\.7, but the key 'region' of 'regions' is"),
        (lambda: people().join(REGIONS, on="region", how="outer"), r"how must be 'inner' or 'left', not 'outer'"),
        (lambda: people().with_columns(area=1).join(REGIONS), r"both sides of the join with 'regions' have a column"),
        (lambda: people().join(5), r"join needs a public table or a table of the same people, not int"),
        (lambda: people().join(visits()), r"joined only on the person, but one of these protects each row"),
        (lambda: of_person().join(people()), r"joined only on the person"),
        (lambda: of_person().join(of_person()), r"both sides of the join with 'people' have a column 'a'"),
        (lambda: of_person().join(visits(), on="id"), r"joined on the person, as an inner join. Remove on= and how="),
        (lambda: of_person().join(visits(), how="left"), r"joined on the person, as an inner join"),
        (lambda: people(protect=PERSON, adjacency="replace").join(visits()), r"must declare the same adjacency"),
        (lambda: people().per_person(n=pv.count()), r"values per person need a table that protects people"),
        (lambda: of_person().per_person(), r"per_person needs a value"),
        (lambda: of_person().per_person(n=pv.std("a")), r"can't be computed per person. Count"),
        (lambda: of_person().per_person(n=3), r"can't be computed per person"),
        (lambda: of_person().per_person(n=pv.sum("region")), r"sum needs a number"),
        (
            lambda: totals(of_person()).per_person(n=pv.sum("total")),
            r"needs bounds. Write, .*\.clip\(0, 1000\)",
        ),
        (lambda: people().group_by(), r"group_by needs a key"),
        (lambda: people().group_by("b"), r"a number in -2\.\.5 can't be a group"),
        (lambda: people().group_by("seen"), r"a timestamp can't be a group as it is"),
        (lambda: people().group_by(pv.col("a") + 1), r"this key needs a name"),
        (lambda: loose().group_by(3), r"the name of a column or an expression, not 3"),
        (lambda: totals(of_person()).group_by("n"), r"an integer without bounds can't be a group"),
    ],
)
def test_refusals(build: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        build()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"protect": "row"}, r"protect must say what is protected, not 'row'. .*pv\.each_row\(\)"),
        ({"columns": {}}, r"columns must declare at least one column"),
        ({"columns": ["a"]}, r"columns must be a dict"),
        ({"columns": {"a": int}}, r"column 'a' must be declared with a kind .*, not the type int"),
        ({"columns": {" ": pv.text()}}, r"the name of a column is a printable text"),
        ({"adjacency": "both"}, r"both"),
        ({"rows": 100}, r"a public number of rows goes with each_row\(\) and replace only"),
        ({"rows": 100, "adjacency": "replace", "protect": PERSON}, r"goes with each_row\(\) and replace only"),
        ({"rows": 0, "adjacency": "replace"}, r"rows must be"),
        ({"rows": 2**40 + 1, "adjacency": "replace"}, r"at most 2\^40 rows"),
    ],
)
def test_refused_tables(how: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        schema(**how)
