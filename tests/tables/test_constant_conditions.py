"""Comparisons with constants by brute force: refused exactly where no value of the column meets them."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from tests.tables.rows import COLUMNS, TYPES, Row, rows, value
from tests.tables.test_expressions import CONDITIONS

import privet as pv
from privet.errors import QueryError
from privet.tables.analysis import outcomes as analysis
from privet.tables.analysis.advice import nearest, never_true
from privet.tables.analysis.constant_conditions import nevers, notes
from privet.tables.analysis.outcomes import Known, outcomes
from privet.tables.expressions import nodes as e
from privet.tables.expressions.fluent import Expr
from privet.tables.types import KeyType, NumberType, TimeType, Type

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
        several = [e.IsIn(leaf.operand, (one,)) for one in leaf.values]
    if isinstance(leaf, e.Compare) and leaf.operator == "!=" and isinstance(TYPES[name], KeyType):
        several = [e.Compare("==", leaf.left, leaf.right)]  # a key that is not listed is a mistake there too
    return all(any(value(one, {name: x}) is True for x in possible(name, constants)) for one in several)


@settings(max_examples=200)
@given(leaves())
def test_a_comparison_is_refused_if_and_only_if_no_value_meets_it(made: tuple[str, e.Node, list[Any]]) -> None:
    name, leaf, constants = made
    assert refused(leaf) is not matches(name, leaf, constants)


@settings(max_examples=120)
@given(leaves())
def test_what_is_said_to_be_always_true_is(made: tuple[str, e.Node, list[Any]]) -> None:
    name, leaf, constants = made
    always = all(value(leaf, {name: x}) is True for x in possible(name, constants))
    dense = name in ("z", "seen", "note")
    said_so = any("is true for every row" in note for note in notes(leaf, TYPES))
    assert said_so <= always
    assert dense or said_so is always


@settings(max_examples=120)
@given(leaves())
def test_every_refusal_has_a_text_in_both_languages(made: tuple[str, e.Node, list[Any]]) -> None:
    for never in nevers(made[1], TYPES):
        error = never_true(never)
        sql = error.render("sql")
        assert error.what in sql
        assert error.what in str(error)
        assert not re.search(r"pv\.|==|\.is_in", sql)


# --- what a condition can come to -----------------------------------------------------------------


def wrong(made: tuple[e.Node, Row]) -> bool:
    """Whether a condition comes to something on this row that it was said not to come to."""
    node, row = made
    try:
        node.type(TYPES)
    except QueryError:
        return False
    return value(node, row) not in outcomes(node, Known(TYPES))


@settings(max_examples=120)
@given(st.tuples(CONDITIONS, rows))
def test_outcomes_hold_every_outcome(made: tuple[e.Node, Row]) -> None:
    assert not wrong(made)


def test_a_wrong_comparison_of_ranges_is_found(monkeypatch: pytest.MonkeyPatch, effort: int) -> None:
    """By a case that the search found; with `./dev test --all`, by the search itself."""
    condition = e.Compare("<", e.Constant(Fraction(1)), e.DatePart(e.Column("born"), "weekday"))
    monday: Row = {**dict.fromkeys(TYPES), "born": date(2000, 12, 11)}
    assert not wrong((condition, monday))
    right: Any = analysis._numbers
    broken = {"<=": "<", ">=": ">"}  # touching ranges do not meet
    monkeypatch.setattr(analysis, "_numbers", lambda sign, *rest, **how: right(broken.get(sign, sign), *rest, **how))
    assert wrong((condition, monday))
    if effort > 1:
        quick = settings(max_examples=20_000, database=None, phases=[Phase.generate])
        assert find(st.tuples(CONDITIONS, rows), wrong, settings=quick)


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
            "country can never be 'Panama'. The keys of country are 'USA', 'CAN', 'Brazil'",
        ),
        (
            col("country") == "usa",
            (
                "country can never be 'usa'. The keys of country are 'USA', 'CAN', 'Brazil'. "
                "Write, for example: country = 'USA'"
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
                "land can never be 'Panama'. The keys of land are 'USA', 'CAN', 'elsewhere'. "
                "'Panama' is not listed, so it counts as 'elsewhere'. Write, for example: land = 'elsewhere'"
            ),
        ),
        (
            ~(col("country").starts_with("us")),
            (
                "country can never begin with 'us'. The keys of country are 'USA', 'CAN', 'Brazil'. "
                "Write, for example: country LIKE 'US%'"
            ),
        ),
        (
            col("debut") > date(2030, 1, 1),
            (
                "debut can never be after 2030-01-01. debut is a date in 1871-01-01..2016-12-31; values outside "
                "are clamped to it. Write, for example: debut >= DATE '2016-12-31'"
            ),
        ),
        (
            col("income") > 500_000,
            (
                "income can never be above 500000. income is a number in 0..200000; values outside are clamped "
                "to it. Write, for example: income >= 200000"
            ),
        ),
        (
            pv.lit(200_000) < col("income"),
            (
                "income can never be above 200000. income is a number in 0..200000; values outside are clamped "
                "to it. Write, for example: income >= 200000"
            ),
        ),
        (
            pv.when(col("income") < 0, 1).otherwise(0) == 1,
            (
                "income can never be below 0. income is a number in 0..200000; values outside are clamped to it. "
                "Write, for example: income <= 0"
            ),
        ),
        (
            col("age") == 17.5,
            "age can never be 17.5. age is a whole number; the nearest are 17 and 18. Write, for example: age = 17",
        ),
        (
            col("n") == 1.5,
            "n can never be 1.5. n is a whole number; the nearest are 1 and 2. Write, for example: n = 1",
        ),
        (
            col("x") == 0.3,
            (
                "x can never be 0.3. x is counted in steps of 0.25 from 0; the nearest are 0.25 and 0.5. "
                "Write, for example: x = 0.25"
            ),
        ),
        (
            col("n") < 0,
            "n can never be below 0. n is never negative",
        ),
        (
            col("income") == 200_000.5,
            (
                "income can never be 200000.5. income is a number in 0..200000; values outside are clamped to "
                "it. Write, for example: income = 200000"
            ),
        ),
        (
            col("land").starts_with("Pan"),
            (
                "land can never begin with 'Pan'. The keys of land are 'USA', 'CAN', 'elsewhere'. None of them "
                "begins with that; all other values count as 'elsewhere'"
            ),
        ),
        (
            col("country") != "usa",
            (
                "country differs from 'usa' for every key, so this only removes rows without a key. The keys of "
                "country are 'USA', 'CAN', 'Brazil'. Write, for example: country <> 'USA'"
            ),
        ),
        (
            (col("age") > 200) & ~(col("age") < 0),
            (
                "age can never be above 200. age is an integer in 0..110; values outside are clamped to it. "
                "Write, for example: age >= 110"
            ),
        ),
        (
            pv.bins("age", [0, 18, 65]) == "[0, 20)",
            (
                "bins(age, [0, 18, 65]) can never be '[0, 20)'. "
                "The keys of bins(age, [0, 18, 65]) are '[0, 18)', '[18, 65]'"
            ),
        ),
        (
            col("debut").truncate("month") == date(2010, 5, 2),
            (
                "debut by month can never be 2010-05-02. debut by month is the start of a month. "
                "Write, for example: DATE_TRUNC('month', debut) = DATE '2010-05-01'"
            ),
        ),
        (
            col("debut").part("year") == 2030,
            (
                "year(debut) can never be 2030. year(debut) is an integer in 1871..2016. "
                "Write, for example: YEAR(debut) = 2016"
            ),
        ),
    ],
)
def test_what_is_said(condition: Expr, text: str) -> None:
    assert [never_true(never).render("sql") for never in nevers(condition.node, TABLE)] == [text]


def test_a_value_past_the_range_is_to_be_left_out_of_a_list() -> None:
    (never,) = nevers(col("age").is_in([30, 500]).node, TABLE)
    for face in ("sql", "python"):
        text = "500 is outside 0..110, so it can never match age. Remove it from the list"
        assert never_true(never).render(face) == text


def test_a_value_is_not_taken_for_advice() -> None:
    """What is wrong is told in SQL too, whatever words a value is made of."""
    with pytest.raises(QueryError) as caught:
        (col("age") == "Write: pv.col").node.type(TABLE)
    assert caught.value.render("sql") == (
        "an integer in 0..110 and the text 'Write: pv.col' can't be compared. Numbers and dates can be ordered; "
        "text, keys and booleans can only be equal or different. Write, for example: age = 55"
    )


def test_python_gets_a_line_to_write() -> None:
    (never,) = nevers((col("country") == "usa").node, TABLE)
    assert str(never_true(never)) == (
        "country can never be 'usa'. The keys of country are 'USA', 'CAN', 'Brazil'. "
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
            "not (age < 0) is true for every row where age is not missing, because age is an integer in 0..110.",
        ),
        (
            ~col("age").is_in([200]),
            "not age in (200) is true for every row where age is not missing, because age is an integer in 0..110.",
        ),
        (
            col("n") >= 0,
            "n >= 0 is true for every row where n is not missing, because n is never negative.",
        ),
        (
            col("income") > -1,
            "income > -1 is true for every row where income is not missing, because income is a number in 0..200000.",
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
    types = made.join(rates).with_columns(x=col("rate")).input.types()
    (never,) = nevers((col("rate") < 0.1).node, types)
    assert never_true(never).render("sql") == (
        "rate can never be below 0.1. rate is a number in 0.1..0.7. Write, for example: rate <= 0.1"
    )
    assert str(never_true(never)).endswith('Write, for example: pv.col("rate") <= 0.1')
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
