"""Charts of characters: every bar of the same width, every value inside of its interval, whatever is drawn."""

from __future__ import annotations

import math
import re
from collections.abc import Container
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privet.planner.outputs import Cells
from privet.release.render.chart import folded, panels
from privet.release.render.text import numbers, places
from privet.release.render.view import Column, Keys

BAR = "█├─┼┤"
INFINITE = math.inf


def cells(*groups: tuple[Any, Any, Any], noisy: Container[int] = ()) -> Cells:
    values, low, high = zip(*groups, strict=True) if groups else ((), (), ())
    return Cells(values, low, high, tuple(i in noisy for i in range(len(groups))))


def drawn(groups: list[tuple[Any, Any, Any]], labels: list[Any] | None = None, width: int = 100) -> list[str]:
    """The lines of one panel without its title; with these labels, or a, b, c, ..."""
    keys = [Keys("key", [f"g{i}" for i in range(len(groups))] if labels is None else labels)]
    title, *lines = panels(keys, [Column("n", cells(*groups), around=False)], width)
    assert title == "n"
    return lines


# --- pictures -----------------------------------------------------------------------------------------


def picture(text: str) -> list[str]:
    return text.strip("\n").splitlines()


def test_counts() -> None:
    keys = [Keys("region", ["north", "south", "elsewhere"])]
    column = Column("n", cells((20, 10, 30), (32, 23, 41), (167, 157, 177)), around=True)
    assert panels(keys, [column], width=60) == picture("""
n
north      ██├─┼─┤                                   20 ± 10
south      █████├─┼─┤                                32 ± 9
elsewhere  ██████████████████████████████████├─┼─┤  167 ± 10
""")


def test_intervals_narrower_than_two_places_are_drawn_in_no_row() -> None:
    """The same error in every row: whether it straddles two places is chance, and must not show as a stray end."""
    for middle in range(30, 1500, 7):
        lines = drawn([(17_403, 17_373, 17_433), (middle, middle - 30, middle + 30)], width=90)
        assert not {*"".join(lines)} & {*"├┤"}


def test_below_zero() -> None:
    """Bars go from zero to the left, and to the right."""
    assert drawn([(-50, -60, -40), (0, -20, 20), (100, 90, 110)], width=60) == picture("""
g0  ├─┼─┤█████████                          -50 (-60 to -40)
g1          ├────█───┤                        0 (-20 to 20)
g2               ████████████████████├─┼─┤  100 (90 to 110)
""")


def test_an_interval_does_not_hide_a_short_bar() -> None:
    keys = [Keys("country", ["Peru", "Chile", "Cuba", "Haiti"])]
    column = Column("n", cells((800, 750, 850), (10, -10, 30), (3, -3, 20), (-4, -30, 5), noisy=[1, 3]), around=False)
    assert panels(keys, [column], width=60) == picture("""
n
Peru    ██████████████████████████████├─┼┤  800 (750 to 850)
Chile   ░                                   ~10 (-10 to 30)
Cuba    █                                     3 (-3 to 20)
Haiti   ░                                   ~-4 (-30 to 5)
""")


def test_two_columns_and_two_keys() -> None:
    """A panel for each, with a scale of its own; what has no bound reaches to the border."""
    keys = [Keys("region", ["north", "south"]), Keys("smoker", [True, False])]
    columns = [
        Column("n", cells((8, 6, 10), (4, 2, 6)), around=True),
        Column("pay", cells((1.5, 1.0, 2.0), (0.5, 0.25, INFINITE)), around=False, level=True),
    ]
    assert panels(keys, columns, width=50) == picture("""
n
north, True   █████████████████├─────┼────┤  8 ± 2
south, False  █████├─────┼─────┤             4 ± 2

pay
north, True         ├───●──┤  1.50 (1.00 to 2.00)
south, False  ├─●──────────┤  0.50 (at least 0.25)
""")


def test_what_is_mostly_noise_is_pale_and_has_a_sign() -> None:
    keys = [Keys("region", ["north", "south"])]
    columns = [
        Column("n", cells((1204, 1191, 1217), (-3, -16, 10), noisy=[1]), around=True),
        Column("pay", cells((31204.4, 30110.3, 32329.9), (18502.0, 0.0, 94500.0), noisy=[1]), False, level=True),
    ]
    assert panels(keys, columns, width=60) == picture("""
n
north  █████████████████████████████████████████  1,204 ± 13
south  ░                                            ~-3 ± 13

pay
north          ●                   31,200 (30,100 to 32,400)
south  ├───○───────────────────┤  ~19,000 (0 to 95,000)
""")


def test_a_chart_gives_up_intervals_and_ends_of_labels_before_it_is_too_wide() -> None:
    keys = [Keys("region", ["a very long name of a region", "north"])]
    columns = [
        Column("pay", cells((31204.4, 30110.3, 32329.9), (18502.0, 0.0, 94500.0), noisy=[1]), False, level=True),
        Column("n", cells((1204, 1191, 1217), (-3, -16, 10), noisy=[1]), around=True),
    ]
    assert panels(keys, columns, width=40) == picture("""
pay
a very long name…     ●           31,200
north              ├─○────────┤  ~19,000

n
a very long n…  ████████████  1,204 ± 13
north           ░               ~-3 ± 13
""")


def test_notes_are_folded() -> None:
    note = "95 % intervals for each cell separately. They cover the noise, not the bias from the limits below."
    assert folded([note, "Spent."], 100) == [note, "Spent."]
    assert folded([note, "Spent."], 50) == [
        "95 % intervals for each cell separately. They",
        "  cover the noise, not the bias from the limits",
        "  below.",
        "Spent.",
    ]


def test_one_huge_value_leaves_the_others_visible() -> None:
    huge = 10**30
    assert drawn([(huge, huge * 9 // 10, huge * 11 // 10), (1, 0, 2), (-1, -2, 0)], width=80) == picture("""
g0  ██████████████████████████████████████├───┼───┤  1.00e30 (9.0e29 to 1.10e30)
g1  █                                                      1 (0 to 2)
g2  █                                                     -1 (-2 to 0)
""")


def test_without_keys() -> None:
    assert panels([], [Column("n", cells((8, 6, 10)), around=True)], width=40) == picture("""
n
███████████████████├──────┼─────┤  8 ± 2
""")


def test_nothing() -> None:
    assert panels([Keys("g", [])], [Column("n", cells(), around=True)]) == ["n"]
    assert panels([Keys("g", [])], [Column("n", cells(), True), Column("m", cells(), True)]) == ["n", "", "m"]
    assert [line.count("█") for line in drawn([(0, 0, 0), (0, 0, 0)])] == [1, 1]


def test_a_public_number_has_no_error_bar() -> None:
    _, line = panels([Keys("g", ["a"])], [Column("n", cells((5, 5, 5)), around=True, public=True)], width=40)
    assert set(line[3:]) & set("├─┼┤") == set()
    assert line.endswith("5 (public)")


# --- what holds for all -------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(-(10**6), 10**6),
    st.integers(-(2**70), 2**70),
    st.floats(-1e6, 1e6),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)


@st.composite
def groups(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """A value between the ends of its interval, either of which can be infinite."""
    low, value, high = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    return value, draw(st.sampled_from([low, value, -INFINITE])), draw(st.sampled_from([high, value, INFINITE]))


LABELS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z", "Mn", "Me"], exclude_characters=BAR), max_size=30
)


@given(st.lists(st.tuples(groups(), LABELS), min_size=1, max_size=8), st.integers(0, 200))
@example([((1e300, -INFINITE, INFINITE), "北海道"), ((1, 0, 2), "a")], 80)
@example([((2**70, 0, 2**71), "huge"), ((1, 0, 2), "small")], 80)
@example([((-5, -9, -1), ""), ((-1, -2, 0), "")], 40)
@example([((5e-324, 0.0, 1e-323), "tiny")], 40)
@settings(max_examples=120)
def test_every_line_is_one_bar_within_the_width(made: list[tuple[Any, str]], width: int) -> None:
    groups, labels = [group for group, _ in made], [label for _, label in made]
    lines = drawn(groups, labels, width)
    texts = [Column("n", cells(group), around=False).texts(0) for group in groups]
    alone = max(map(places, numbers("", [(value, "") for value, _ in texts])))
    zeros = set()
    for line, label, (value, low, high), text in zip(lines, labels, groups, texts, strict=True):
        assert places(line) <= max(width, 40, alone + 20), "unless numbers alone leave no room"
        (bar,) = re.finditer(f"[{BAR}]+", line)  # without a gap, from zero to the farthest end
        assert " ".join(line[bar.end() :].split()) in (text[0], " ".join(text))
        before = line[: bar.start()].rstrip()
        assert before == label or (before.endswith("…") and label.startswith(before[:-1]))
        assert re.fullmatch("█*(├─*┼?─*┤)?█*|├?─*█─*┤?", bar[0])
        if low <= 0 <= high or low == high:
            assert "█" in bar[0], "the end of a bar is never hidden"
        if value > 0 and low >= 0:
            zeros.add(places(line[: bar.start()]))
    assert len(zeros) <= 1


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=9), st.integers(40, 160))
def test_longer_bars_are_of_larger_values(values: list[int], width: int) -> None:
    lines = drawn([(value, value, value) for value in values], width=width)
    lengths = [line.count("█") for line in lines]
    for value, length in zip(values, lengths, strict=True):
        for other, its in zip(values, lengths, strict=True):
            assert (value <= other) <= (length <= its)


@given(groups())
def test_the_value_stands_in_its_interval(group: tuple[Any, Any, Any]) -> None:
    (line,) = drawn([group])
    if "┼" in line:
        assert line.index("├") < line.index("┼") < line.index("┤")


@pytest.mark.parametrize("value", [10**400, -(10**400), 1.7e308, -1.7e308], ids=["huge", "-huge", "float", "-float"])
def test_beyond_floats(value: Any) -> None:
    """A count can be a larger integer than any float: there is a picture all the same."""
    lines = drawn([(value, -INFINITE, INFINITE), (1, 0, 2), (-value, -value, INFINITE)], width=80)
    assert [set(line[4:16]) <= set(BAR + " ") for line in lines] == [True] * 3
    assert re.match("g0  ├?─*█─*┤?  ", lines[0])


def test_infinite_ends_reach_to_the_border() -> None:
    assert drawn([(5, -INFINITE, INFINITE), (10, 9, 11)], width=60) == picture("""
g0  ├─────────────────█─────────────────────┤   5 (no bound)
g1  █████████████████████████████████├───┼──┤  10 (9 to 11)
""")


@pytest.mark.parametrize("count", [59, 60, 61, 400, 5_000])
def test_many_groups(count: int) -> None:
    lines = drawn([(i, i - 1, i + 1) for i in range(1, count + 1)], width=80)
    assert len(lines) == min(count, 60)
    told = [line for line in lines if line.startswith("...")]
    assert told == ([] if count <= 60 else [f"... {count - 59:,} more groups"])
    assert lines[0].startswith("g0 ")
    assert lines[-1].startswith(f"g{count - 1} ")


def test_wide_and_combining_signs() -> None:
    labels = ["北海道", "e\u0301te\u0301", "ascii"]
    lines = drawn([(1, 1, 1), (2, 2, 2), (3, 3, 3)], labels, width=60)
    assert len({places(line[: line.index("█")]) for line in lines}) == 1


@pytest.mark.parametrize("width", [-5, 0, 1, 12, 40, 1_000])
def test_any_width(width: int) -> None:
    """What is narrower than 40 places is taken for 40."""
    lines = drawn([(5, 4, 6), (10, 9, 11)], width=width)
    assert max(map(places, lines)) == max(40, width)
