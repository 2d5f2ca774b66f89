"""Comparisons with constants by brute force: refused exactly where no value of the column meets them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from tests.relation.rows import COLUMNS, TYPES, Row, rows, value
from tests.relation.test_expressions import CONDITIONS

import privet as pv
from privet.errors import QueryError
from privet.relation import expressions as e
from privet.relation import reach
from privet.relation.advice import nearest, said
from privet.relation.constants import nevers, notes
from privet.relation.language import Expr
from privet.relation.reach import Known, outcomes
from privet.relation.types import KeyType, NumberType, TimeType, Type

FIRST, LAST = date(1999, 11, 20), date(2001, 2, 10)
START, END = datetime(2024, 2, 28, 22, 30), datetime(2024, 3, 2, 1, 15)

VALUES: dict[str, list[Any]] = {
    "a": [Fraction(x) for x in range(-3, 8)],
    "b": [Fraction(x, 4) for x in range(-8, 21)],
    "c": [Fraction(x) for x in range(1, 5)],
    "z": [Fraction(1, 3), Fraction(7, 2), Fraction(1), Fraction(2)],
    "f": [True, False],
    "region": ["north", "south", "elsewhere"],
    "grade": [1, 2, 3],
    "note": ["", "a", "x"],
    "born": [FIRST + timedelta(days=k) for k in range(449)],
    "seen": [START, END, START + timedelta(hours=5)],
}
"""Every value that a column can have; of numbers and times that are dense, some."""


def possible(name: str, constants: list[Any]) -> list[Any]:
    """The values that a column may have, with those constants that are in a dense range."""
    match name:
        case "z":
            return VALUES[name] + [x for x in constants if Fraction(1, 3) <= x <= Fraction(7, 2)]
        case "seen":
            return VALUES[name] + [x for x in constants if START <= x <= END]
        case "note":
            return VALUES[name] + constants
    return VALUES[name]


numbers = st.one_of(st.fractions(-4, 9, max_denominator=8), st.integers(-5, 9).map(Fraction))
CONSTANTS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys("abcz", numbers),
    "f": st.booleans(),
    "region": st.sampled_from(["north", "North", "south", "elsewhere", "Panama", ""]),
    "grade": st.integers(0, 4).map(Fraction),
    "note": st.sampled_from(["", "b", "é"]),
    "born": st.dates(FIRST - timedelta(days=9), LAST + timedelta(days=9)),
    "seen": st.datetimes(START - timedelta(hours=9), END + timedelta(hours=9)),
}
ORDERED = ("a", "b", "c", "z", "born", "seen")


@st.composite
def leaves(draw: st.DrawFn) -> tuple[str, e.Node, list[Any]]:
    """A comparison of a column with constants: its name, the comparison, the constants."""
    name = draw(st.sampled_from(list(VALUES)))
    kind = draw(st.sampled_from(["compare", "compare", "flipped", "in", "starts"]))
    if kind == "starts" and name in ("region", "note"):
        prefix = draw(st.sampled_from(["", "n", "N", "nor", "Pan"]))
        return name, e.StartsWith(e.Column(name), prefix), [prefix]
    if kind == "in" and name != "f":
        some = draw(st.lists(CONSTANTS[name], min_size=1, max_size=3))
        return name, e.IsIn(e.Column(name), tuple(map(e.Constant, some))), some
    one = draw(CONSTANTS[name])
    sign = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">="] if name in ORDERED else ["==", "!="]))
    sides: list[e.Node] = [e.Column(name), e.Constant(one)]
    return name, e.Compare(sign, *(reversed(sides) if kind == "flipped" else sides)), [one]  # type: ignore[arg-type]


def refused(leaf: e.Node) -> bool:
    return next(nevers(leaf, TYPES), None) is not None


def matches(name: str, leaf: e.Node, constants: list[Any]) -> bool:
    """Whether every constant of a comparison is met by some value of the column."""
    several: list[e.Node] = [leaf]
    if isinstance(leaf, e.IsIn):
        several = [e.IsIn(leaf.of, (one,)) for one in leaf.values]
    if isinstance(leaf, e.Compare) and leaf.operator == "!=" and isinstance(TYPES[name], KeyType):
        several = [e.Compare("==", leaf.left, leaf.right)]  # a key that is not listed is a mistake there too
    return all(any(value(one, {name: x}) is True for x in possible(name, constants)) for one in several)


@settings(max_examples=600)
@given(leaves())
def test_a_comparison_is_refused_if_and_only_if_no_value_meets_it(made: tuple[str, e.Node, list[Any]]) -> None:
    name, leaf, constants = made
    assert refused(leaf) is not matches(name, leaf, constants)


@settings(max_examples=300)
@given(leaves())
def test_what_is_said_to_be_always_true_is(made: tuple[str, e.Node, list[Any]]) -> None:
    name, leaf, constants = made
    always = all(value(leaf, {name: x}) is True for x in possible(name, constants))
    dense = name in ("z", "seen", "note")
    said_so = any("holds for every row" in note for note in notes(leaf, TYPES))
    assert said_so <= always
    assert dense or said_so is always


@settings(max_examples=300)
@given(leaves())
def test_every_refusal_has_a_text_in_both_languages(made: tuple[str, e.Node, list[Any]]) -> None:
    for never in nevers(made[1], TYPES):
        python, sql = said(never), said(never, sql=True)
        assert ("can never be true" in python or "is never" in python) == (
            "can never be true" in sql or "is never" in sql
        )
        assert "pv." not in sql
        assert "==" not in sql


# --- what a condition can come to -----------------------------------------------------------------


def wrong(made: tuple[e.Node, Row]) -> bool:
    """Whether a condition comes to something on this row that it was said not to come to."""
    node, row = made
    try:
        node.type(TYPES)
    except QueryError:
        return False
    return value(node, row) not in outcomes(node, Known(TYPES))


@settings(max_examples=300)
@given(st.tuples(CONDITIONS, rows))
def test_outcomes_hold_every_outcome(made: tuple[e.Node, Row]) -> None:
    assert not wrong(made)


def test_a_wrong_comparison_of_ranges_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = reach._numbers
    broken = {"<=": "<", ">=": ">"}  # touching ranges do not meet
    monkeypatch.setattr(reach, "_numbers", lambda sign, *rest, **how: right(broken.get(sign, sign), *rest, **how))
    assert find(
        st.tuples(CONDITIONS, rows),
        wrong,
        settings=settings(max_examples=20_000, database=None, phases=[Phase.generate]),
    )


# --- examples -------------------------------------------------------------------------------------

TABLE: dict[str, Type] = {
    "country": KeyType(("USA", "CAN", "Brazil")),
    "land": KeyType(("USA", "CAN"), other="elsewhere"),
    "age": NumberType(Fraction(0), Fraction(110), integer=True),
    "income": NumberType(Fraction(0), Fraction(200_000)),
    "x": NumberType(Fraction(0), Fraction(2), step=Fraction(1, 4)),
    "n": NumberType(Fraction(0), Fraction(2**40), integer=True, wide=True),
    "debut": TimeType(date(1871, 1, 1), date(2016, 12, 31)),
}
col = pv.col


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (
            col("country") == "Panama",
            "country = 'Panama' can never be true. The keys of country are 'USA', 'CAN', 'Brazil'.",
        ),
        (
            col("country") == "usa",
            (
                "country = 'usa' can never be true. The keys of country are 'USA', 'CAN', 'Brazil'. "
                "Did you mean country = 'USA'?"
            ),
        ),
        (
            col("country").is_in(["USA", "Brasil"]),
            (
                "'Brasil' can never match country. The keys of country are 'USA', 'CAN', 'Brazil'. "
                "Did you mean 'Brazil'?"
            ),
        ),
        (
            col("land") == "Panama",
            (
                "land = 'Panama' can never be true. The keys of land are 'USA', 'CAN', 'elsewhere'. "
                "'Panama' is not listed, so it counts under 'elsewhere'."
            ),
        ),
        (
            ~(col("country").starts_with("us")),
            (
                "country LIKE 'us%' can never be true. The keys of country are 'USA', 'CAN', 'Brazil'. "
                "Did you mean country LIKE 'US%'?"
            ),
        ),
        (
            col("debut") > date(2030, 1, 1),
            (
                "debut > '2030-01-01' can never be true. debut is a date in 1871-01-01..2016-12-31, and values "
                "beyond that are clamped to it. The closest condition that can match is debut >= '2016-12-31'."
            ),
        ),
        (
            col("income") > 500_000,
            (
                "income > 500000 can never be true. income is a number in 0..200000, and values beyond that are "
                "clamped to it. The closest condition that can match is income >= 200000."
            ),
        ),
        (
            pv.lit(200_000) < col("income"),
            (
                "income > 200000 can never be true. income is a number in 0..200000, and values beyond that are "
                "clamped to it. The closest condition that can match is income >= 200000."
            ),
        ),
        (
            pv.when(col("income") < 0, 1).otherwise(0) == 1,
            (
                "income < 0 can never be true. income is a number in 0..200000, and values beyond that are "
                "clamped to it. The closest condition that can match is income <= 0."
            ),
        ),
        (
            col("age") == 17.5,
            "age = 17.5 can never be true. age is a whole number: the nearest are 17 and 18.",
        ),
        (
            col("n") == 1.5,
            "n = 1.5 can never be true. n is a whole number: the nearest are 1 and 2.",
        ),
        (
            col("x") == 0.3,
            "x = 0.3 can never be true. x is counted in steps of 0.25 from 0: the nearest are 0.25 and 0.5.",
        ),
        (
            col("n") < 0,
            "n < 0 can never be true. n is never negative.",
        ),
        (
            col("income") == 200_000.5,
            (
                "income = 200000.5 can never be true. income is a number in 0..200000, and values beyond that are "
                "clamped to it. The closest condition that can match is income = 200000."
            ),
        ),
        (
            col("land").starts_with("Pan"),
            (
                "land LIKE 'Pan%' can never be true. The keys of land are 'USA', 'CAN', 'elsewhere'. None of them "
                "begins so, and other values count under 'elsewhere'."
            ),
        ),
        (
            col("country") != "usa",
            (
                "country <> 'usa' holds for every key, and leaves out only rows without one. The keys of country are "
                "'USA', 'CAN', 'Brazil'. Did you mean country <> 'USA'?"
            ),
        ),
        (
            (col("age") > 200) & ~(col("age") < 0),
            (
                "age > 200 can never be true. age is an integer in 0..110, and values beyond that are clamped to it. "
                "The closest condition that can match is age >= 110."
            ),
        ),
        (
            pv.bins("age", [0, 18, 65]) == "[0, 20)",
            (
                "this comparison can never be true. The keys of this expression are '[0, 18)', '[18, 65]'. "
                "Did you mean '[0, 18)'?"
            ),
        ),
        (
            col("debut").truncate("month") == date(2010, 5, 2),
            (
                "this comparison can never be true. This expression is the start of a month. "
                "The closest value that can match is '2010-05-01'."
            ),
        ),
        (
            col("debut").part("year") == 2030,
            (
                "year(debut) = 2030 can never be true. year(debut) is an integer in 1871..2016. "
                "The closest condition that can match is year(debut) = 2016."
            ),
        ),
    ],
)
def test_what_is_said(condition: Expr, text: str) -> None:
    assert [said(never, sql=True) for never in nevers(condition.node, TABLE)] == [text]


def test_a_value_past_the_range_is_to_be_left_out_of_a_list() -> None:
    for sql in (True, False):
        (never,) = nevers(col("age").is_in([30, 500]).node, TABLE)
        assert said(never, sql=sql) == "500 is outside 0..110, so it can never match age. Leave it out of the list."


def test_an_expression_with_another_name_in_sql_is_shown_as_it_was_written() -> None:
    (never,) = nevers((col("debut").truncate("month") == date(2010, 5, 2)).node, TABLE)
    written = "DATE_TRUNC('month', debut) = '2010-05-02'"
    assert said(never, sql=True, written=written).startswith(f"{written} can never be true. This expression is")


def test_python_gets_a_line_to_write() -> None:
    (never,) = nevers((col("country") == "usa").node, TABLE)
    assert said(never) == (
        "country == 'usa' can never be true. The keys of country are 'USA', 'CAN', 'Brazil'. "
        'Write, for example: pv.col("country") == "USA"'
    )


@pytest.mark.parametrize(
    "condition",
    [
        col("income") >= 200_000,
        col("income") == 0.1,  # rounded as the column is
        col("x") == 0.25,
        col("n") > 10**15,  # nobody chose these bounds
        ~(col("age") < 0),  # true of every row
        ~col("age").is_in([200]),
        ~((col("income") > 500_000) | (col("debut") > date(2030, 1, 1))),
        col("age") > col("income") + 300,  # two columns
        col("land") == "elsewhere",
        col("country") != "USA",
        col("debut") >= date(2016, 12, 31),
    ],
)
def test_what_is_not_refused(condition: Expr) -> None:
    assert list(nevers(condition.node, TABLE)) == []


@pytest.mark.parametrize(
    ("condition", "note"),
    [
        (
            col("income") >= 200_000,
            "income >= 200000 also matches values above 200000, because income is clamped to 0..200000.",
        ),
        (
            col("debut") <= date(1871, 1, 1),
            (
                "debut <= 1871-01-01 also matches values before 1871-01-01, because "
                "debut is clamped to 1871-01-01..2016-12-31."
            ),
        ),
        (
            ~(col("age") < 0),
            "not (age < 0) holds for every row where age is not missing, because age is an integer in 0..110.",
        ),
        (
            ~col("age").is_in([200]),
            "not age in (200) holds for every row where age is not missing, because age is an integer in 0..110.",
        ),
        (
            col("n") >= 0,
            "n >= 0 holds for every row where n is not missing, because n is never negative.",
        ),
        (
            col("income") > -1,
            "income > -1 holds for every row where income is not missing, because income is a number in 0..200000.",
        ),
    ],
)
def test_notes(condition: Expr, note: str) -> None:
    assert list(notes(condition.node, TABLE)) == [note]


def test_a_plain_condition_has_no_note() -> None:
    assert list(notes(((col("income") > 5) & (col("country") == "USA") & (col("n") >= 1)).node, TABLE)) == []


def test_public_values_are_not_clamped() -> None:
    """What stands in a public table is what it is; numbers are proposed as short as they can be."""
    rates = pv.public_table("rates", pa.table({"country": ["USA", "CAN"], "rate": [0.1, 0.7]}), key="country")
    made = pv.table("t", pa.table({"country": ["USA"]}), protect=pv.each_row(), columns={"country": pv.keys("USA")})
    types = made.join(rates).with_columns(x=col("rate")).of.types()
    (never,) = nevers((col("rate") < 0.1).node, types)
    assert said(never, sql=True) == (
        "rate < 0.1 can never be true. rate is a number in 0.1..0.7. "
        "The closest condition that can match is rate <= 0.1."
    )
    assert said(never).endswith('Write, for example: pv.col("rate") <= 0.1')
    assert list(notes((col("rate") >= 0.7).node, types)) == []


@pytest.mark.parametrize(
    ("given", "keys", "found"),
    [
        ("usa", ["USB", "USA"], "USA"),
        ("côte d'ivoire", ["Cote d'Ivoire"], "Cote d'Ivoire"),
        (" new  york", ["New York", "York"], "New York"),
        ("Pensylvania", ["Texas", "Pennsylvania"], "Pennsylvania"),
        ("Panama", ["USA"], None),
        (10, [1, 8, 20], 8),
    ],
)
def test_nearest(given: Any, keys: list[Any], found: Any) -> None:
    assert nearest(given, keys) == found


def test_all_columns_of_the_search_are_tried() -> None:
    assert {*VALUES, "g"} == {*COLUMNS}
