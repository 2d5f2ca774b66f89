"""Charts, curves and gauges: well-formed whatever the numbers and texts are, and true to them."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from tests.server.pages.site import EVIL, KEY

from privet.planner.outputs import Cells
from privet.release.render.view import Column, Keys
from privet.server.pages.charts import MOST_ROWS, panel
from privet.server.pages.curves import Point, curve, gauge
from privet.server.pages.drawing import Scale, short

SVG = "{http://www.w3.org/2000/svg}"


def drawn(markup: Markup) -> ET.Element:
    assert "style=" not in markup
    return ET.fromstring(str(markup))


def marks(svg: ET.Element, kind: str) -> list[ET.Element]:
    return [each for each in svg.iter() if kind in each.get("class", "").split()]


def share(text: str | None) -> float:
    assert text is not None
    assert text.endswith("%")
    return float(text[:-1])


def test_bars_start_at_zero_and_are_as_long_as_their_values() -> None:
    cells = Cells((50, -25, 0), (40, -35, -10), (60, -15, 10), (False, False, True))
    svg = drawn(panel([Keys("region", ["a", "b", "c"])], Column("n", cells, True)))
    bars = marks(svg, "bar")
    scale = Scale(-35.0, 60.0)
    for bar, value in zip(bars, (50.0, -25.0, 0.0), strict=True):
        left, width = share(bar.get("x")), share(bar.get("width"))
        zero, at = 100 * scale.place(0.0), 100 * scale.place(value)
        assert left == pytest.approx(min(zero, at), abs=0.01)
        assert width == pytest.approx(abs(zero - at), abs=0.02)
    assert [("hollow" in bar.get("class", ""), bar.get("fill") == "none") for bar in bars] == [
        (False, False),
        (False, False),
        (True, True),
    ]
    described = svg.find(f"{SVG}desc")
    assert described is not None
    assert "c: 0 ± 10, too noisy to rely on" in (described.text or "")


def test_means_are_dots_with_intervals_and_an_infinite_side_has_no_end() -> None:
    cells = Cells((5.0, 7.0, math.nan), (4.0, 6.0, math.nan), (6.0, math.inf, math.nan), (False, True, False))
    svg = drawn(panel([Keys("region", ["a", "b", "c"])], Column("pay", cells, False, level=True)))
    assert len(marks(svg, "dot")) == 2
    assert not marks(svg, "bar")
    assert len(marks(svg, "interval")) == 3 + 2  # a line and two ends; a line and one end; nothing
    assert len(marks(svg, "row")) == 3


def test_many_groups_are_cut_and_the_description_says_so() -> None:
    count = MOST_ROWS + 40
    cells = Cells((1,) * count, (0,) * count, (2,) * count, (False,) * count)
    svg = drawn(panel([Keys("k", list(range(count)))], Column("n", cells, True)))
    assert len(marks(svg, "row")) == MOST_ROWS
    assert "and 88 more, in the table" in (svg.find(f"{SVG}desc").text or "")  # type: ignore[union-attr]


numbers = st.one_of(
    st.integers(-(2**80), 2**80),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0, 0.0, 5e-324, -1.7e308, 1.7e308, 2**200]),
)


@given(
    st.lists(st.tuples(numbers, numbers, numbers, st.booleans()), min_size=1, max_size=4), st.booleans(), st.booleans()
)
def test_any_numbers_can_be_drawn(rows: list[tuple[float, float, float, bool]], level: bool, around: bool) -> None:
    ordered = [(value, min(low, high), max(low, high), noisy) for value, low, high, noisy in rows]
    values, low, high, noisy = zip(*ordered, strict=True)
    keys = Keys("k", [EVIL, KEY, "]]>&amp;", "\u202e"][: len(rows)])
    svg = drawn(panel([keys], Column(f"{EVIL}&'\"", Cells(values, low, high, noisy), around, level=level)))
    for each in svg.iter():
        assert each.tag.removeprefix(SVG) in {"svg", "title", "desc", "g", "text", "tspan", "rect", "circle", "line"}
        for name in ("x", "x1", "x2", "cx", "width"):
            if (place := each.get(name, "")).endswith("%"):
                assert -0.01 <= share(place) <= 100.01


@given(st.lists(st.tuples(st.floats(1e-9, 1e9), st.floats(0, 1e300)), min_size=2, max_size=8))
def test_any_curve_can_be_drawn(points: list[tuple[float, float]]) -> None:
    every = [Point(*each) for each in points]
    svg = drawn(curve(every, every[0], column=EVIL, unit="epsilon"))
    assert len(marks(svg, "curve")) == 1
    assert "nan" not in str(ET.tostring(svg)).lower()


def test_a_gauge_shows_what_would_be_left() -> None:
    svg = drawn(gauge(0.5, EVIL, after=0.25))
    assert [share(each.get("width")) for each in marks(svg, "spending") + marks(svg, "left")] == [50, 25]
    assert share(marks(drawn(gauge(7.0, "x")), "left")[0].get("width")) == 100
    assert "low" in marks(drawn(gauge(0.05, "x")), "left")[0].get("class", "")


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_ticks_lie_on_the_scale_and_are_few(a: float, b: float) -> None:
    scale = Scale.of([a, b], zero=False)
    ticks = scale.ticks()
    assert len(ticks) <= 7
    slack = 1e-6 * (scale.last - scale.first)
    assert all(scale.first - slack <= tick <= scale.last + slack for tick in ticks)
    assert all(len(short(tick)) <= 10 for tick in ticks)
