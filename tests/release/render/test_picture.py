"""Pictures of answers: what is a bar and what a dot, on which axis, in which order, under which names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.errors import QueryError
from privet.plots.canvas import MARKERS
from privet.plots.panels import NOISE
from privet.tables.query import Query
from privet.tables.types import Unit

COUNTRIES = [f"Country {i}" for i in range(150)]
REGIONS = ["north", "south", "east"]


def people() -> Any:
    days = 1461
    rows = {
        "region": [REGIONS[i % 2] for i in range(3000)],  # nobody in the east
        "country": [COUNTRIES[i % 150] for i in range(3000)],
        "smoker": [i % 3 == 0 for i in range(3000)],
        "year": [1871 + i % 146 for i in range(3000)],
        "day": [date(2021, 1, 1) + timedelta(days=i * 7 % days) for i in range(3000)],
        "pay": [float(i % 40) for i in range(3000)],
    }
    columns = {
        "region": pv.keys(*REGIONS),
        "country": pv.keys(*COUNTRIES),
        "smoker": pv.boolean(),
        "year": pv.integer(1871, 2016),
        "day": pv.date("2021-01-01", "2024-12-31"),
        "pay": pv.number(0, 40),
    }
    return pv.table("people", pa.table(rows), protect=pv.each_row(), columns=columns)


@pytest.fixture(scope="module")
def session() -> Iterator[pv.Session]:
    with pv.Session([people()], budget=pv.PureDP(10_000), ledger=None, min_epsilon="1e-6") as made:
        yield made


def by(*keys: str, **named: Any) -> Any:
    return people().group_by(*keys, **named)


def drawn(session: pv.Session, query: Query, column: str | None = None, **style: Any) -> Any:
    return session.release(query, epsilon=20).plot(column, **style)


def shown(answer: pv.Release) -> list[str]:
    """The columns that are not keys."""
    return [name for name in answer.columns if name not in [key.name for key in answer.plan.query.keys]]


def ticks(axes: Any, side: str = "x") -> list[str]:
    return [text.get_text() for text in getattr(axes, f"get_{side}ticklabels")()]


def dots(axes: Any) -> int:
    return sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() in MARKERS)


# --- bars and dots --------------------------------------------------------------------------------


def test_counts_and_sums_are_bars_and_the_rest_are_dots(session: pv.Session) -> None:
    figure = drawn(
        session,
        by("region").agg(
            n=pv.count(),
            total=pv.sum("pay"),
            pay=pv.mean("pay"),
            spread=pv.std("pay"),
            rate=pv.sum("pay") / pv.count(),
        ),
    )
    found = {axes.get_title(): (len(axes.patches), dots(axes)) for axes in figure.axes}
    assert found == {"n": (3, 0), "total": (3, 0), "pay": (0, 3), "spread": (0, 3), "rate": (0, 3)}


def test_a_group_of_nobody_is_hollow(session: pv.Session) -> None:
    figure = drawn(session, by("region").agg(pay=pv.mean("pay")))
    (axes,) = figure.axes
    hollow = [line for line in axes.lines if line.get_marker() == "o" and line.get_markerfacecolor() == "white"]
    assert [line.get_xdata().tolist() for line in hollow] == [[2]]
    assert [text.get_text() for text in figure.axes[0].figure.legends[0].get_texts()] == [NOISE]


def test_150_countries_fit_on_a_page(session: pv.Session) -> None:
    figure = drawn(session, by("country").agg(n=pv.count(), pay=pv.mean("pay")))
    width, height = figure.get_size_inches()
    assert max(width, height) * 150 < 2200, "pixels, as it is saved"
    assert [label for axes in figure.axes for label in ticks(axes, "y")] == COUNTRIES


# --- time -----------------------------------------------------------------------------------------


def test_quarters_and_years_read_as_such(session: pv.Session) -> None:
    day = pv.col("day")
    units: dict[Unit, list[str]] = {
        "quarter": ["2021 Q1", "2021 Q3", "2022 Q1", "2022 Q3", "2023 Q1", "2023 Q3", "2024 Q1", "2024 Q3"],
        "year": ["2021", "2022", "2023", "2024"],
        "month": ["Jan 2021", "Jul 2021", "Jan 2022", "Jul 2022", "Jan 2023", "Jul 2023", "Jan 2024", "Jul 2024"],
    }
    for unit, labels in units.items():
        answer = session.release(by(**{unit: day.truncate(unit)}).agg(n=pv.count()), epsilon=20)
        (axes,) = answer.plot().axes
        assert ticks(axes) == labels
        assert axes.get_xlabel() == unit
        assert labels[1] in answer.chart()
        assert labels[1] in str(answer)
        assert labels[1] in answer._repr_html_()
        assert answer.values(unit)[0] == date(2021, 1, 1), "values are dates all the same"


def test_many_years_are_a_line(session: pv.Session) -> None:
    (axes,) = drawn(session, by("year").agg(pay=pv.mean("pay"))).axes
    assert ticks(axes) == [str(year) for year in range(1880, 2011, 10)]
    assert len([line for line in axes.lines if line.get_linestyle() == "-"]) == 1


def test_years_out_of_their_order_are_not_a_line(session: pv.Session) -> None:
    figure = drawn(session, by("year").agg(pay=pv.mean("pay")).order_by("pay"))
    assert len([label for axes in figure.axes for label in ticks(axes, "y")]) == 146


def test_time_goes_along_the_axis_and_the_other_key_is_the_legend(session: pv.Session) -> None:
    quarter = pv.col("day").truncate("year")
    query = people().group_by("smoker", year=quarter).agg(n=pv.count())
    answer = session.release(query, epsilon=20)
    figure: Any = answer.plot()
    (axes,) = figure.axes
    assert ticks(axes) == ["2021", "2022", "2023", "2024"]
    (legend,) = figure.axes[0].figure.legends
    assert (legend.get_title().get_text(), [t.get_text() for t in legend.get_texts()]) == ("smoker", ["False", "True"])
    assert [bar.get_height() for bar in axes.patches] == answer.values("n"), "the first key, then the second"


def test_the_first_key_is_the_legend_if_only_it_has_few_values(session: pv.Session) -> None:
    figure = drawn(session, by("region", "year").agg(pay=pv.mean("pay")), "pay")
    (axes,) = figure.axes
    assert axes.get_xlabel() == "year"
    assert figure.axes[0].figure.legends[0].get_title().get_text() == "region"


def test_bins_stay_in_order(session: pv.Session) -> None:
    (axes,) = drawn(session, people().agg(pays=pv.histogram("pay", [0, 5, 10, 15, 20, 25, 30, 35, 40]))).axes
    assert ticks(axes) == [
        "[0, 5)", "[5, 10)", "[10, 15)", "[15, 20)", "[20, 25)", "[25, 30)", "[30, 35)", "[35, 40]",
    ]  # fmt: skip
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("pay", "pays")
    assert len(axes.patches) == 8


def test_a_chart_of_a_histogram_is_one_panel(session: pv.Session) -> None:
    answer = session.release(people().agg(n=pv.count(), pays=pv.histogram("pay", [0, 20, 40])), epsilon=20)
    lines = answer.chart(60).splitlines()
    assert [lines[0], lines[2], lines[3]] == ["n", "", "pays"]
    assert [line[:8] for line in lines[4:6]] == ["[0, 20) ", "[20, 40]"]


# --- titles, labels, order ------------------------------------------------------------------------


def test_a_title(session: pv.Session) -> None:
    query = by("region").agg(n=pv.count())
    assert drawn(session, query).get_suptitle() == "n by region"
    assert drawn(session, query, title="Where people live").get_suptitle() == "Where people live"
    assert drawn(session, query, title="").get_suptitle() == ""
    two = by("region").agg(pay=pv.mean("pay"), s=pv.std("pay"))
    assert drawn(session, two).get_suptitle() == "pay, s by region"
    assert drawn(session, two, labels={"pay": "Mean pay"}).get_suptitle() == "Mean pay, s by region"


def test_labels(session: pv.Session) -> None:
    labels = {"n": "People", "region": "Region of birth", "north": "The North", "smoker": "Smokes", True: "yes"}
    figure = drawn(session, by("region", "smoker").agg(n=pv.count()), labels=labels)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Region of birth", "People")
    assert ticks(axes) == ["The North", "south", "east"]
    assert figure.axes[0].figure.legends[0].get_title().get_text() == "Smokes"
    assert [text.get_text() for text in figure.axes[0].figure.legends[0].get_texts()][:2] == ["False", "yes"]
    assert figure.get_suptitle() == "People by Region of birth, Smokes"


def test_labels_of_quarters(session: pv.Session) -> None:
    query = by(quarter=pv.col("day").truncate("year")).agg(n=pv.count())
    for name in (date(2022, 1, 1), "2022"):
        (axes,) = drawn(session, query, labels={name: "the second"}).axes
        assert ticks(axes) == ["2021", "the second", "2023", "2024"]


@pytest.mark.parametrize(
    ("order", "labels"),
    [
        ("descending", ["south", "north", "east"]),
        ("ascending", ["east", "north", "south"]),
        (["east"], ["east", "north", "south"]),
        (("south", "east", "north"), ["south", "east", "north"]),
    ],
)
def test_order(session: pv.Session, order: Any, labels: list[str]) -> None:
    query = people().where(pv.col("country") != "Country 0").group_by("region").agg(n=pv.count(), m=pv.mean("pay"))
    answer = session.release(query, epsilon=20)
    figure: Any = answer.plot(order=order)
    bars, means = figure.axes
    assert ticks(bars) == ticks(means) == labels
    heights = dict(zip(answer.values("region"), answer.values("n"), strict=True))
    assert [bar.get_height() for bar in bars.patches] == [heights[label] for label in labels]


def test_order_of_two_keys(session: pv.Session) -> None:
    answer = session.release(by("region", "smoker").agg(n=pv.count()), epsilon=20)
    figure: Any = answer.plot(order=[True, "south"])
    assert ticks(figure.axes[0]) == ["south", "north", "east"]
    assert [text.get_text() for text in figure.axes[0].figure.legends[0].get_texts()][:2] == ["True", "False"]
    found = {(key[0], key[1]): n for key, n in zip(answer.keys, answer.values("n"), strict=True)}
    expected = [found[region, smoker] for smoker in (True, False) for region in ("south", "north", "east")]
    assert [bar.get_height() for bar in figure.axes[0].patches] == expected


def test_order_of_dates(session: pv.Session) -> None:
    query = by(year=pv.col("day").truncate("year")).agg(n=pv.count())
    for order in (["2023"], [date(2023, 1, 1)]):
        (axes,) = drawn(session, query, order=order).axes
        assert ticks(axes) == ["2023", "2021", "2022", "2024"]


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ({"title": 5}, "title must be text, not 5. Write"),
        (
            {"labels": {"m": "x"}},
            r"name 'm', which is neither a column nor a key. The columns and keys are: region, n, north, south, east$",
        ),
        ({"labels": {"n": 5}}, "labels must map columns and keys to texts"),
        ({"labels": ["n"]}, "labels must map columns and keys to texts"),
        ({"order": "down"}, r'order must be "ascending", "descending" or a list of keys, not \'down\'. Write'),
        ({"order": 5}, "order must be"),
        ({"order": [["north"]]}, r"order names \['north'\], which is not a key"),
        ({"order": ["nort"]}, r"order names 'nort', which is not a key. The keys are: north, south, east$"),
    ],
)
def test_what_can_not_be_drawn_is_refused(session: pv.Session, style: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        drawn(session, by("region").agg(n=pv.count()), **style)


def test_without_groups_there_is_no_order(session: pv.Session) -> None:
    with pytest.raises(QueryError, match="order is for groups, and this answer has none"):
        drawn(session, people().agg(n=pv.count()), order="descending")


# --- real answers that are mostly noise -----------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        people().agg(pays=pv.histogram("pay", [0, 10, 20, 40])),
        by(year=pv.col("day").truncate("year")).agg(n=pv.count()),
        by("region").agg(n=pv.count()),
        by("region", "smoker").agg(n=pv.count()),
        people().agg(n=pv.count(), pay=pv.mean("pay"), total=pv.sum("pay")),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "title", [None, "A title that is rather long, and goes on beyond the end of one line, and more"]
)
def test_the_legend_is_beside_the_title_and_the_panels(session: pv.Session, query: Query, title: str | None) -> None:
    answers = (session.release(query, epsilon=0.0001, fresh=True) for _ in range(100))
    figure: Any = next(a for a in answers if any(True in a.too_noisy(name) for name in shown(a))).plot(title=title)
    figure.draw_without_rendering()
    (legend,) = figure.axes[0].figure.legends
    box = legend.get_window_extent()
    assert not box.fully_overlaps(figure._suptitle.get_window_extent())
    assert not any(box.fully_overlaps(axes.get_tightbbox()) for axes in figure.axes)


def test_an_answer_without_groups_is_a_row_for_each_number(session: pv.Session) -> None:
    query = people().agg(n=pv.count(), pay=pv.mean("pay"), total=pv.sum("pay"))
    answer = session.release(query, epsilon=20)
    figure: Any = answer.plot(labels={"n": "People"})
    assert [ticks(axes, "y") for axes in figure.axes] == [["People"], ["pay"], ["total"]]
    text = str(answer)
    for axes in figure.axes:
        value, _, interval = axes.texts[0].get_text().partition(" ")
        assert value in text
        assert interval in text
    assert figure.get_size_inches()[1] < 3.5
