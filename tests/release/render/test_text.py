"""Printed answers: to the letter, covering what was released, aligned, escaped, and never too long."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from fractions import Fraction
from math import ulp

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import privet as pv
from privet.ledger import Balance, Remaining
from privet.planner import plan
from privet.planner.outputs import Cells
from privet.privacy.accounting import accountant_for
from privet.privacy.guarantees import ApproxDP, Budget, PureDP
from privet.release import Release
from privet.release.render import notes, text
from privet.release.render.numerals import numerals
from privet.release.render.view import Column, Keys
from privet.tables import aggregates as ask
from privet.tables.operators import Scan
from privet.tables.relation import Relation
from privet.tables.schema import Schema, boolean, integer, keys
from privet.tables.schema import date as dates


def left_of(budget: Budget) -> Remaining:
    """All of a budget."""
    accountant = accountant_for(budget, "approx" if isinstance(budget, ApproxDP) else "")
    return Balance(accountant, budget, accountant.zero).remaining


def table(**columns: object) -> Relation:
    return Relation(Scan(Schema.declare("people", protect=pv.each_row(), columns=columns)))  # type: ignore[arg-type]


def counted(relation: Relation, *counts: int, **how: object) -> Release:
    """A release of a count by all columns of the table, with these noisy counts."""
    made = plan(relation.group_by(*relation.columns).agg(n=ask.count()), epsilon=0.5, **how)  # type: ignore[arg-type]
    return Release(made, (tuple((n,) for n in counts),), made.guarantee(), left_of(PureDP(2.5)), None)


def lines(text: str) -> str:
    """A golden text: without its first line break and without the blanks that this file needs."""
    return "\n".join(line.removeprefix("        ") for line in text.strip("\n").splitlines()).rstrip()


# --- whole answers, to the letter -----------------------------------------------------------------


def test_counts_by_a_key() -> None:
    answer = counted(table(region=keys("north", "south", other="elsewhere")), 1204, -3, 31_204)
    assert str(answer) == lines(
        """
        region          n
        north       1,204 ± 6
        south         ~-3 ± 6
        elsewhere  31,204 ± 6

        95 % intervals for each cell separately. They cover the noise, not the bias from the limits below.
        Limits: any other region counted as elsewhere, rows with no region left out.
        ~ too noisy to rely on: less than twice its margin of error, or a mean or ratio of too few rows.
        Spent epsilon 0.5; 2.5 left.
        """
    )


def test_means_and_public_numbers() -> None:
    schema = Schema.declare(
        "people", protect=pv.each_row(), columns={"age": integer(0, 110, required=True)}, adjacency="replace", rows=500
    )
    made = plan(Relation(Scan(schema)).agg(n=ask.count(), total=ask.sum("age"), age=ask.mean("age")), epsilon=1)
    assert str(Release(made, (((21_034,),),), made.guarantee(), None, None)) == lines(
        """
          n            total          age
        500 (public)  21,030 ± 335  42.07 ± 0.67

        95 % intervals for each cell separately. They cover the noise, not the bias from the limits below.
        Limits: age clamped to 0..110; missing age read as 0.
        Spent epsilon 1.
        """
    )


def test_only_public_numbers() -> None:
    schema = Schema.declare("t", protect=pv.each_row(), columns={"b": boolean()}, adjacency="replace", rows=1_000_000)
    made = plan(Relation(Scan(schema)).agg(n=ask.count()), epsilon=1)
    text = str(Release(made, (), made.guarantee(), left_of(PureDP(3)), None))
    assert text == "        n\n1,000,000 (public)\n\nNothing was spent; 3 left."


def test_booleans_dates_and_all_cells_together() -> None:
    answer = counted(
        table(smoker=boolean(), day=dates("2025-02-28", "2025-03-01")), 10, 33, 40, 52,
        confidence=0.999, simultaneous=True,
    )  # fmt: skip
    assert str(answer) == lines(
        """
        smoker  day           n
        False   2025-02-28  ~10 ± 17
        False   2025-03-01  ~33 ± 17
        True    2025-02-28   40 (17 to 57)
        True    2025-03-01   52 ± 17

        99.9 % intervals for all cells together. They cover the noise, not the bias from the limits below.
        Limits: rows with no smoker left out; day outside 2025-02-28..2025-03-01 in no group; rows with no
          day left out.
        ~ too noisy to rely on: less than twice its margin of error, or a mean or ratio of too few rows.
        Spent epsilon 0.5; 2.5 left.
        """
    )


def test_wide_letters_and_integers_as_keys() -> None:
    answer = counted(
        table(place=keys("北海道", "Zürich", "e\u0301a"), year=keys(2024, 5)), 100, 200, 300, 400, 500, 6000
    )
    assert str(answer).splitlines()[:7] == [
        "place   year      n",
        "北海道  2024    100 ± 6",
        "北海道     5    200 ± 6",
        "Zürich  2024    300 ± 6",
        "Zürich     5    400 ± 6",
        "e\u0301a      2024    500 ± 6",
        "e\u0301a         5  6,000 ± 6",
    ]
    assert len({text.places(line) for line in str(answer).splitlines()[1:7]}) == 1


def test_long_answers_are_cut_in_the_middle() -> None:
    text = str(counted(table(age=integer(0, 399)), *range(1000, 1400))).splitlines()
    assert text[0] == "age      n"
    assert text[40] == " 39  1,039 ± 6"
    assert text[41] == "... 341 more groups: to_pandas() has all"
    assert text[42] == "381  1,381 ± 6"
    assert text[60] == "399  1,399 ± 6"
    assert text[61] == ""
    assert "more groups" not in str(counted(table(age=integer(1, 60)), *range(60)))


def test_wide_answers_go_on_below_with_the_same_keys() -> None:
    names = [f"a column of many letters {i}" for i in range(6)]
    columns = [Column(name, Cells((1, 2), (0, 1), (2, 3), (False, False)), around=True) for name in names]
    lines = text.table([Keys("k", ["x", "y"])], columns)
    assert max(map(len, lines)) <= text.WIDTH
    assert [line.split("  ")[0].strip() for line in lines] == ["k", "x", "y", "", "k", "x", "y"]
    assert all(sum(name in line for line in lines) == 1 for name in names)
    many = [Column(name, Cells((1,) * 99, (0,) * 99, (2,) * 99, (False,) * 99), around=True) for name in names]
    assert len(text.table([Keys("k", list(range(99)))], many)) <= text.LINES + 5


def test_one_group_with_many_columns_stands_upright() -> None:
    columns = [
        Column(f"bin {i}", Cells((10**i,), (10**i - 5,), (10**i + 5,), (i < 1,)), around=True) for i in range(10)
    ]
    assert text.table([], columns[:3]) == ["bin 0      bin 1      bin 2", "   ~1 ± 5     10 ± 5    100 ± 5"]
    assert text.table([], columns)[::9] == ["bin 0             ~1 ± 5", "bin 9  1,000,000,000 ± 5"]
    lines = text.table([], columns * 20)
    assert len(lines) == 60
    assert lines[40] == "... 141 more columns: to_pandas() has all"


def test_points_stand_below_each_other() -> None:
    cells = Cells((1.5, 20.25, 3.0, 1e-12), (1.0, 20.0, 0.0, 0.5e-12), (2.0, 20.5, 300.0, 2e-12), (False,) * 4)
    assert text.table([Keys("k", ["a", "b", "c", "d"])], [Column("m", cells, around=False)]) == [
        "k         m",
        "a      1.50 (1.00 to 2.00)",
        "b     20.25 (20.00 to 20.50)",
        "c      0    (0 to 300)",
        "d  1.00e-12 (4.9e-13 to 2.00e-12)",
    ]


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "around", "shown"),
    [
        ((1204, 1191, 1217), True, "1,204 ± 13"),
        ((1204, 1191, 1216), True, "1,204 ± 13"),
        ((-3, -16, 10), True, "-3 ± 13"),
        ((0, 0, 0), True, "0 ± 0"),
        ((12_345_678, 10_226_351, 14_465_005), True, "12,300,000 ± 2,170,000"),
        ((10**40, 10**40 - 10**30, 10**40 + 10**30), True, "1.00000000000e40 ± 1.1e30"),
        ((3, -(10**20), 10**20), True, "0 ± 1.1e20"),
        ((1_234_567.89, 1_184_567.89, 1_284_567.89), True, "1,235,000 ± 50,500"),
        ((36_942, 36_820, 37_064), True, "36,940 ± 127"),
        ((80, 30, 110), True, "80 (30 to 110)"),
        ((-80.5, -110.5, -30.0), True, "-80 (-111 to -30)"),
        ((1_234_567, 1_234_567, 1_234_567), True, "1,234,567 ± 0"),
        ((31204.4, 30110.3, 32329.9), False, "31,200 (30,100 to 32,400)"),
        ((0.0, 0.0, 200000.0), False, "0 (0 to 200,000)"),
        ((-0.04, -0.06, -0.01), False, "-0.040 (-0.060 to -0.010)"),
        ((1.0, 0.901, 1.0999), False, "1.00 (0.90 to 1.10)"),
        ((5.0, -5.0, 14.9), False, "5 (-5 to 15)"),
        ((3.0, 3.0, 3.0), False, "3.00 (3.00 to 3.00)"),
        ((3.25, -math.inf, math.inf), False, "3.25 (no bound)"),
        ((3.25, -math.inf, 4.0), False, "3.25 (at most 4.00)"),
        ((3.25, 3.0, math.inf), False, "3.25 (at least 3.00)"),
        ((math.inf, 3.0, math.inf), True, "above 1e308 (no bound)"),
        ((-math.inf, -math.inf, 3.0), True, "below -1e308 (no bound)"),
        ((0.0, -math.inf, math.inf), True, "0 (no bound)"),
    ],
)
def test_numbers_to_the_letter(cell: tuple[float, float, float], around: bool, shown: str) -> None:
    assert " ".join(numerals(*cell, around=around)) == shown


NUMBERS = st.floats(-1e30, 1e30) | st.floats(-1e4, 1e4) | st.integers(-(10**24), 10**24) | st.integers(-99999, 99999)


@given(st.lists(NUMBERS, min_size=3, max_size=3), st.booleans())
def test_a_printed_interval_contains_the_released_one(numbers: list[float], around: bool) -> None:
    assume(len({type(x) for x in numbers}) == 1)
    low, value, high = sorted(numbers)
    shown, interval = numerals(value, low, high, around=around)
    found = [Fraction(text.replace(",", "")) for text in re.findall(r"-?[\d,.]+(?:e-?\d+)?", interval)]
    middle = Fraction(shown.replace(",", ""))
    least, most = (middle - found[0], middle + found[0]) if "±" in interval else found
    assert ("±" in interval) <= around
    assert least <= Fraction(low)
    assert Fraction(high) <= most
    half = (Fraction(high) - Fraction(low)) / 2
    assert abs(middle - Fraction(value)) <= max(half / 10, Fraction(abs(value)) / 100, Fraction(0))
    if not around:
        assert most - least <= (Fraction(high) - Fraction(low)) * Fraction(13, 10) or most - least <= max(2, ulp(high))
    assert ("e" in shown + interval) <= (max(map(abs, numbers)) >= 1e15 or half < 1e-7)


# --- what stands below ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("remaining", "shown"),
    [
        (None, "Spent epsilon 0.333334."),
        (left_of(PureDP("2/3")), "Spent epsilon 0.333334; 0.666666 left."),
        (left_of(PureDP.ZERO), "Spent epsilon 0.333334; nothing left."),
        (left_of(ApproxDP(1, "2/3000000")), "Spent epsilon 0.333334; epsilon 1, delta 6.66666e-7 left."),
    ],
)
def test_what_is_spent_is_rounded_up_and_what_is_left_down(remaining: Remaining | None, shown: str) -> None:
    column = Column("n", Cells((1,), (0,), (2,), (False,)), around=True)
    cost = PureDP("1/3")
    found = notes.notes(
        columns=[column],
        confidence=Fraction(19, 20),
        simultaneous=False,
        guarantee=cost,
        spent=cost,
        remaining=remaining,
    )
    assert found[-1] == shown
    assert len(found) == 2


def test_times_are_shown_where_there_are_some() -> None:
    assert Keys("t", [datetime(2025, 1, 1), datetime(2025, 1, 1, 1)]).texts() == [
        "2025-01-01 00:00",
        "2025-01-01 01:00",
    ]
    assert Keys("t", [datetime(2025, 1, 1), datetime(2025, 2, 1)]).texts() == ["2025-01-01", "2025-02-01"]
    assert Keys("t", [date(2, 1, 1)]).texts() == ["0002-01-01"]


# --- HTML -----------------------------------------------------------------------------------------


def test_html_escapes_everything() -> None:
    evil = "<script>alert('x')</script>&\""
    relation = table(**{evil: keys(evil, "b")})
    made = plan(relation.group_by(evil).agg(**{"<b>n</b>": ask.count()}), epsilon=0.5)
    text = Release(made, (((5,), (1204,)),), made.guarantee(), None, None)._repr_html_()
    assert "<script" not in text
    assert "<b>" not in text
    assert text.count("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;&quot;") == 3  # a name, a key, a note
    assert "&lt;b&gt;n&lt;/b&gt;" in text
    assert '1,204 <small style="opacity: 0.65">± 6</small>' in text
    assert "Spent epsilon 0.5." in text
    assert text.count("<tr>") == text.count("</tr>") == 3


def test_html_of_long_answers_is_cut_too() -> None:
    text = counted(table(age=integer(0, 399)), *range(400))._repr_html_()
    assert text.count("<tr>") == 61
    assert ' style="text-align: left; vertical-align: top">... 341 more groups: to_pandas() has all</td>' in text


# --- arranged -------------------------------------------------------------------------------------


def arranged(*counts: int, **how: object) -> Release:
    query = table(region=keys("north", "south", "east")).group_by("region").agg(n=ask.count(), m=ask.count("region"))
    made = plan(query.having(pv.col("n") > 100).order_by("n", descending=True).hide("m"), epsilon=0.5)
    noisy = tuple(tuple((n,) for n in counts) for _ in made.noised)
    return Release(made, noisy, made.guarantee(), left_of(PureDP(2.5)), None)


def test_arranged_answers_say_what_is_not_shown() -> None:
    text = str(arranged(300, 50, 900)).splitlines()
    assert [line.split()[0] for line in text[:3]] == ["region", "east", "north"]
    assert text[4:] == [
        "95 % intervals for each cell separately. They cover the noise, not the bias from the limits below.",
        "Limits: rows whose region is missing or not listed left out.",
        "1 group is not shown.",
        "Noisy values decided which groups are shown, so these intervals hold less often than stated.",
        "Spent epsilon 0.5; 2.5 left.",
    ]


def test_an_answer_without_groups_is_printed_too() -> None:
    answer = arranged(1, 2, 3)
    assert str(answer).splitlines()[0].split() == ["region", "n"]
    assert "3 groups are not shown." in str(answer)
    assert len(answer) == 0
    assert repr(answer).endswith("0 groups, epsilon 0.5>")
    assert "<tbody>\n</tbody>" in answer._repr_html_()
    assert answer.to_arrow(intervals=True).num_rows == 0
