"""Dates against an independent computation, the values of keys, clips, and the lattices of numbers."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.rows import cut

import privet as pv
from privet.errors import QueryError, UserError
from privet.planner import plan
from privet.tables.types import (
    MOST_GROUPS,
    UNITS,
    BooleanType,
    KeyType,
    NumberType,
    TextType,
    TimeType,
    Unit,
    clipped,
    steps,
    truncate,
)

loose: Any = pv
"""For what a type checker would refuse as well."""

DAYS = st.dates(date(2, 1, 1), date(9000, 12, 31))
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9000, 12, 31))
DAY_UNITS: tuple[Unit, ...] = ("year", "quarter", "month", "week", "day")
COUNT: dict[str, tuple[int, int]] = {
    "year": (366, 365), "quarter": (92, 90), "month": (31, 28), "week": (7, 7), "day": (1, 1)
}  # fmt: skip
"""The most and the fewest days of a unit."""


@given(DAYS, st.sampled_from(DAY_UNITS))
def test_days_are_cut_as_by_a_calendar(day: date, unit: Unit) -> None:
    assert truncate(day, unit) == cut(day, unit)
    assert type(truncate(day, unit)) is date


@given(MOMENTS, st.sampled_from(UNITS))
def test_moments_are_cut_as_by_a_calendar(moment: datetime, unit: Any) -> None:
    start = truncate(moment, unit)
    assert start == cut(moment, unit)
    assert type(start) is datetime
    assert start <= moment
    assert truncate(start, unit) == start


@pytest.mark.parametrize(
    ("moment", "unit", "start"),
    [
        (date(2024, 2, 29), "year", date(2024, 1, 1)),
        (date(2024, 2, 29), "quarter", date(2024, 1, 1)),
        (date(2024, 12, 31), "quarter", date(2024, 10, 1)),
        (date(2024, 12, 31), "week", date(2024, 12, 30)),  # of the ISO week 2025-W01
        (date(2021, 1, 3), "week", date(2020, 12, 28)),  # of 2020-W53
        (date(2024, 3, 31), "month", date(2024, 3, 1)),
        (datetime(2024, 3, 31, 23, 59, 59, 999_999), "hour", datetime(2024, 3, 31, 23)),
        (datetime(2024, 3, 31, 23, 59, 59, 999_999), "day", datetime(2024, 3, 31)),
    ],
)
def test_days_that_are_easily_wrong(moment: date, unit: Unit, start: date) -> None:
    assert truncate(moment, unit) == start


@settings(max_examples=40)
@given(DAYS, st.integers(0, 900), st.sampled_from(DAY_UNITS))
def test_steps_are_all_starts_of_a_range(first: date, length: int, unit: Unit) -> None:
    last = min(first + timedelta(days=length), date(9000, 12, 31))
    every = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    assert list(steps(first, last, unit)) == sorted({cut(day, unit) for day in every})


@given(MOMENTS, st.integers(0, 100 * 3600), st.sampled_from(["day", "hour"]))
def test_steps_of_timestamps(first: datetime, seconds: int, unit: Any) -> None:
    last = min(first + timedelta(seconds=seconds), datetime(9000, 12, 31))
    hours = [first + timedelta(minutes=30 * i) for i in range(int((last - first).total_seconds() // 1800) + 1)]
    assert list(steps(first, last, unit)) == sorted({cut(x, unit) for x in [*hours, last]})


@pytest.mark.parametrize("unit", DAY_UNITS)
def test_steps_at_the_ends_of_what_may_be_declared(unit: Unit) -> None:
    assert len(list(steps(date(9000, 1, 1), date(9000, 12, 31), unit))) >= 1
    assert list(steps(date(2, 1, 1), date(2, 1, 1), unit)) == [cut(date(2, 1, 1), unit)]


# --- keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (BooleanType(), (False, True)),
        (KeyType(("b", "a")), ("b", "a")),
        (KeyType(("b", "a"), other="rest"), ("b", "a", "rest")),
        (KeyType((3, 1), other=0), (3, 1, 0)),
        (NumberType(Fraction(-1), Fraction(2), integer=True), (-1, 0, 1, 2)),
        (NumberType(Fraction(5), Fraction(5), integer=True), (5,)),
        (TimeType(date(2024, 2, 28), date(2024, 3, 1)), (date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1))),
        (TimeType(date(2023, 1, 1), date(2024, 1, 1), "year"), (date(2023, 1, 1), date(2024, 1, 1))),
        (
            TimeType(datetime(2024, 1, 1, 22), datetime(2024, 1, 2, 0), "hour"),
            (datetime(2024, 1, 1, 22), datetime(2024, 1, 1, 23), datetime(2024, 1, 2, 0)),
        ),
    ],
)
def test_keys_are_all_values_in_order(kind: Any, keys: tuple[Any, ...]) -> None:
    assert kind.keys() == keys
    assert [type(key) for key in kind.keys()] == [type(key) for key in keys]  # noqa: SIM118


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (TextType(), r"a text can't be a group: which texts occur is private.*pv\.keys\("),
        (NumberType(Fraction(0), Fraction(1)), r"a number in 0\.\.1 can't be a group.*pv\.bins\("),
        (NumberType(Fraction(0), Fraction(5), integer=True, wide=True), r"without bounds can't be a group"),
        (TimeType(datetime(2024, 1, 1), datetime(2024, 1, 2)), r"a timestamp can't be a group as it is.*truncate"),
        (NumberType(Fraction(1), Fraction(MOST_GROUPS + 1), integer=True), r"this makes more than 10,000 groups"),
        (NumberType(Fraction(0), Fraction(10**18), integer=True), r"this makes 1,000,000,000,000,000,001 groups"),
        (TimeType(date(1900, 1, 1), date(2000, 1, 1)), r"this makes more than 10,000 groups; at most 10,000"),
        (TimeType(datetime(2, 1, 1), datetime(9000, 1, 1), "hour"), r"this makes more than 10,000 groups"),
    ],
)
def test_what_is_no_list_of_keys(kind: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        kind.keys()


def test_as_many_groups_as_allowed() -> None:
    assert len(NumberType(Fraction(1), Fraction(MOST_GROUPS), integer=True).keys()) == MOST_GROUPS


def test_the_line_that_is_suggested_for_too_many_groups_can_be_written() -> None:
    with pytest.raises(QueryError, match=r"group_by\(pv\.bins\(\"age\", \[0, 18, 65, 110\]\)\)"):
        NumberType(Fraction(1), Fraction(MOST_GROUPS + 1), integer=True).keys()
    assert pv.bins("age", [0, 18, 65, 110]).node is not None


# --- clips and lattices -----------------------------------------------------------------------------

ends = st.fractions(-20, 20, max_denominator=8)


@given(ends, ends, ends, ends, st.booleans())
def test_clips_hold_what_is_clipped(a: Fraction, b: Fraction, low: Fraction, high: Fraction, integer: bool) -> None:
    a, b = (Fraction(int(a)), Fraction(int(b))) if integer else (a, b)
    before = NumberType(min(a, b), max(a, b), integer=integer, missing=False)
    try:
        kind = clipped(before, low, high)
    except QueryError:
        assert low >= high or high < before.lower or low > before.upper
        return
    grid = [before.lower + (before.upper - before.lower) * Fraction(i, 48) for i in range(49)]
    values = [min(max(x, low), high) for x in grid if not integer or x.denominator == 1]
    assert (min(values), max(values)) == (kind.lower, kind.upper)
    assert all(x.denominator == 1 for x in values) or not kind.integer
    assert not kind.missing


def test_a_clip_takes_the_bounds_that_nobody_chose_away() -> None:
    wide = NumberType(Fraction(0), Fraction(2**40), integer=True, wide=True)
    assert clipped(wide, Fraction(0), Fraction(10)) == NumberType(Fraction(0), Fraction(10), integer=True)


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(1, 4, Fraction(1, 4)), ("1/2", 3, Fraction(1, 4)), ("1/3", 3, None), (-9, 99, Fraction(1, 4))],
)
def test_a_clip_keeps_the_step_if_it_fits(low: Any, high: Any, step: Fraction | None) -> None:
    kind = NumberType(Fraction(0), Fraction(5), step=Fraction(1, 4))
    assert clipped(kind, Fraction(low), Fraction(high)).step == step


@pytest.mark.parametrize(
    ("kind", "lower", "step", "width"),
    [
        (NumberType(Fraction(0), Fraction(10), integer=True), 0, 1, 10),
        (NumberType(Fraction(-3), Fraction(10), integer=True), -3, 1, 13),
        (NumberType(Fraction(0), Fraction(10), step=Fraction(1, 4)), 0, Fraction(1, 4), 40),
        (NumberType(Fraction(0), Fraction(10), step=Fraction(3)), 0, 3, 3),
        (NumberType(Fraction(0), Fraction(2**43), integer=True), 0, 2**10, 2**33),
        (NumberType(Fraction(0), Fraction(1)), 0, Fraction(1, 2**32), 2**32),
    ],
)
def test_the_lattice_of_a_number(kind: NumberType, lower: Any, step: Any, width: int) -> None:
    bounds = kind.bounds()
    assert (bounds.lower, bounds.step, bounds.width) == (lower, step, width)


@pytest.mark.parametrize("constant", [Fraction(7), Fraction(-7), Fraction(1, 3), Fraction(0)])
def test_the_lattice_of_a_constant_holds_it_exactly(constant: Fraction) -> None:
    bounds = NumberType(constant, constant).bounds()
    assert bounds.lower + bounds.code(constant) * bounds.step == constant
    assert max(abs(bounds.lower), abs(bounds.upper)) == (abs(constant) or 1)


def test_a_constant_costs_what_it_is_worth() -> None:
    """A sum of hundredths that can be missing needs the noise of hundredths, as one where they are 0 instead does."""
    table = pv.table("t", pa.table({"b": [True]}), protect=pv.each_row(), columns={"b": pv.boolean()})
    for value in (Fraction(1, 100), Fraction(-1, 100), Fraction(300)):
        errors = [
            plan(table.agg(s=pv.sum(pv.when(pv.col("b"), value).otherwise(other))), epsilon=1).expected("s")
            for other in (None, 0)
        ]
        assert errors[0] is not None
        assert errors[1] is not None
        assert errors[0] <= 2 * errors[1]


# --- declarations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: loose.integer(0, 10.5), r"the bounds of an integer are integers, not 0 and 10\.5. Write: pv\.number"),
        (lambda: pv.integer(5, 5), r"lower must be less than upper"),
        (lambda: pv.integer(0, 2**63), r"parts|-2\^62\.\.2\^62"),
        (lambda: loose.integer(0, float("inf")), r"."),
        (lambda: pv.number(0, float("nan")), r"must be a number, not nan"),
        (lambda: pv.number(0, True), r"must be"),
        (lambda: pv.number(1, 0), r"lower"),
        (lambda: pv.number(0, 1, step=0), r"step must be"),
        (lambda: pv.number(0, 1, step=2), r"the step 2 must divide 0\.\.1"),
        (lambda: loose.number(0, 1, required="yes"), r"required must be True or False, not 'yes'"),
        (lambda: loose.boolean(required=1), r"required must be True or False, not 1"),
        (lambda: pv.keys(), r"keys needs at least one value"),
        (lambda: loose.keys(["a", "b"]), r"keys are given one by one. Unpack the list"),
        (lambda: pv.keys("a", 1), r"keys are all texts or all integers"),
        (lambda: pv.keys("a", other=1), r"keys are all texts or all integers"),
        (lambda: pv.keys(1, True), r"keys are all texts or all integers"),
        (lambda: loose.keys(1.5), r"keys are all texts or all integers"),
        (lambda: pv.keys("a", "b", "a"), r"the key 'a' stands twice"),
        (lambda: pv.keys("a", other="a"), r"the key 'a' stands twice"),
        (lambda: pv.keys("a\n"), r"a key is a printable text"),
        (lambda: pv.keys("a" * 201), r"a key is a printable text"),
        (lambda: pv.keys(2**62 + 1), r"beyond -2\^62\.\.2\^62"),
        (lambda: pv.date("2024-13-01", "2024-12-31"), r"'2024-13-01' is not a date in the form 2024-12-31"),
        (lambda: pv.date("2024-12-31", "2024-01-01"), r"the first date comes after the last"),
        (lambda: loose.date(2024, 2025), r"a range of dates needs dates, not 2024"),
        (lambda: pv.date(datetime(2024, 1, 1), datetime(2025, 1, 1)), r"a range of dates needs dates"),
        (lambda: pv.date("0001-01-01", "2024-01-01"), r"the years of 0001-01-01.* must be in 2\.\.9000"),
        (lambda: pv.timestamp("2024-01-01T00:00:00+01:00", "2025-01-01"), r"in UTC, without a time zone"),
    ],
)
def test_refused_declarations(build: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build()


def test_required_columns_read_what_is_missing_as_their_default() -> None:
    assert (pv.number(2, 5, required=True).default, pv.integer(-3, 5, required=True).default) == (2, -3)
    assert pv.boolean(required=True).default is False
    for declared in (
        pv.number(2, 5),
        pv.integer(2, 5),
        pv.boolean(),
        pv.text(),
        pv.keys("a"),
        pv.date("2024-01-01", "2024-01-02"),
    ):
        assert not declared.required
        assert declared.type.missing


def test_a_day_among_timestamps_is_all_of_it() -> None:
    kind = pv.timestamp(date(2024, 1, 1), "2024-12-31").type
    assert kind == TimeType(datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59, 59, 999_999))
