"""Pictures: arrays in, a figure out; without matplotlib, a line that helps."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from tests.effort import some

from privet import plots
from privet.cli.curve import save_curve
from privet.errors import UserError
from privet.plots.canvas import MARKERS, SERIES, with_commas
from privet.plots.layout import TALLEST, WIDEST, arranged
from privet.plots.panels import NOISE


def arrays(epsilon: float = 1.0) -> dict[str, Any]:
    x = np.linspace(-4, 5, 101)
    levels = np.linspace(0, 1.25 * epsilon, 21)
    return {
        "x": x,
        "p": np.exp(-np.abs(x)) / 2,
        "q": np.exp(-np.abs(x - 1)) / 2,
        "log_ratio": np.abs(x - 1) - np.abs(x),
        "levels": levels,
        "deltas": np.maximum(0, 1 - np.exp((levels - epsilon) / 2)),
        "epsilon": epsilon,
        "noise": "scale 1",
        "title": "sensitivity 1",
    }


def panel(count: int, *, series: int = 1, label: str = "g", **changes: Any) -> plots.Panel:
    """Values 1, 2, 3, ... within 2 of the truth; every third is mostly noise. Changes may be of its axis."""
    values = np.arange(1.0, count + 1).reshape(-1, series).T
    axis = plots.Axis("group", [f"{label}{i}" for i in range(count // series)])
    of_axis = {name: changes.pop(name) for name in ("labels", "ordered", "first", "steps") if name in changes}
    made = plots.Panel(
        name="n",
        axis=replace(axis, **of_axis),
        values=values,
        low=values - 2,
        high=values + 2,
        noisy=values % 3 == 0,
        series=[f"s{i}" for i in range(series)] if series > 1 else (),
        by="kind" if series > 1 else "",
    )
    return replace(made, **changes)


def rendered(*panels: plots.Panel) -> Any:
    """The figure, really drawn; its parts have too many types to name."""
    figure = plots.draw_panels(panels, title="a title", caption="a caption")
    figure.savefig(buffer := BytesIO(), format="png", dpi=50)
    assert buffer.getvalue().startswith(b"\x89PNG")
    return figure


def dots(axes: Any) -> list[tuple[float, float, str]]:
    """Where there are dots, and how they are filled; without the caps and arrows of intervals."""
    return sorted(
        (float(x), float(y), str(line.get_markerfacecolor()))
        for line in axes.lines
        if line.get_marker() in MARKERS
        for x, y in line.get_xydata()
    )


def test_draw_curve_draws_what_it_is_given() -> None:
    given = arrays()
    figure = plots.draw_curve(**given)
    densities, ratio, profile = figure.axes
    assert np.array_equal(densities.lines[0].get_ydata(), given["p"])
    assert np.array_equal(densities.lines[1].get_ydata(), given["q"])
    assert np.array_equal(ratio.lines[0].get_ydata(), given["log_ratio"])
    assert np.array_equal(profile.lines[0].get_xydata(), np.column_stack([given["levels"], given["deltas"]]))
    low, high = ratio.get_ylim()
    assert low < -1
    assert high > 1
    assert profile.texts[0].get_text() == "total variation 0.393"
    legend = densities.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["the answer on these data", "one person's data changed"]
    assert "sensitivity 1" in figure.get_suptitle()


def test_a_profile_that_never_ends_has_a_logarithmic_axis() -> None:
    levels = np.linspace(0, 2.5, 21)
    figure = plots.draw_curve(**{**arrays(2.0), "levels": levels, "deltas": 0.2 * np.exp(-5 * levels), "delta": 9e-6})
    _, ratio, profile = figure.axes
    assert profile.get_yscale() == "log"
    assert np.asarray(profile.lines[1].get_xydata()).tolist() == [[0, 0.2], [2, 9e-6]]
    assert [text.get_text() for text in profile.texts][1] == "$\\delta$ = 9e-06 at $\\epsilon$ = 2"
    assert ratio.get_title() == "Their ratio leaves the band only in the tails"


def test_tiny_total_variations_are_not_shown_as_zero() -> None:
    figure = plots.draw_curve(**arrays(1e-6))
    assert figure.axes[2].texts[0].get_text() == "total variation 5e-07"


def test_a_figure_needs_no_screen() -> None:
    figure = plots.new_figure(4, 3)
    figure.savefig(buffer := BytesIO(), format="png", dpi=50)
    assert buffer.getvalue().startswith(b"\x89PNG")
    assert figure.get_size_inches().tolist() == [4, 3]


@pytest.mark.parametrize("module", ["matplotlib", "matplotlib.figure"])
def test_without_matplotlib_there_is_a_line_to_write(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "matplotlib.figure"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    bars = partial(plots.draw_panels, [panel(3)], title="", caption="")
    for draw in (partial(plots.new_figure, 1, 1), partial(plots.draw_curve, **arrays()), bars):
        with pytest.raises(UserError, match=r"Write: pip install 'privet\[plots\]'"):
            draw()
    with pytest.raises(UserError, match="pictures need matplotlib"):
        save_curve(epsilon=1, sensitivity=1, output="curve.png")


# --- bars and dots --------------------------------------------------------------------------------


def test_bars_stand_with_their_intervals() -> None:
    (axes,) = rendered(panel(4)).axes
    assert [bar.get_height() for bar in axes.patches] == [1, 2, 3, 4]
    (intervals,) = axes.collections
    assert [path.vertices[:, 1].tolist() for path in intervals.get_paths()] == [[-1, 3], [0, 4], [1, 5], [2, 6]]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("group", "n", "")
    assert axes.get_figure(root=True).get_suptitle() == "a title"
    assert axes.get_figure(root=True).get_supxlabel() == "a caption"


def test_means_are_dots_with_intervals_and_need_no_zero() -> None:
    (axes,) = rendered(panel(4, level=True, values=np.array([[101.0, 102, 103, 104]]), low=np.full((1, 4), 99.0),
                             high=np.full((1, 4), 105.0))).axes  # fmt: skip
    assert len(axes.patches) == 0
    assert [(x, y) for x, y, _ in dots(axes)] == [(0, 101), (1, 102), (2, 103), (3, 104)]
    assert [path.vertices[:, 1].tolist() for path in axes.collections[0].get_paths()] == [[99, 105]] * 4
    assert 90 < axes.get_ylim()[0] < 99


def test_bars_begin_at_zero() -> None:
    high = np.full((1, 4), 105.0)
    (axes,) = rendered(panel(4, values=high - 5, low=high - 10, high=high)).axes
    assert axes.get_ylim()[0] == 0


@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("count", [4, 50])
def test_what_is_mostly_noise_is_hollow_and_the_legend_says_so(level: bool, count: int) -> None:
    figure = rendered(panel(count, level=level))
    (axes,) = figure.axes
    if level:
        fills = [inside for *_, inside in sorted(dots(axes), key=lambda dot: max(dot[:2]))]
    else:
        fills = ["white" if bar.get_hatch() else SERIES[0] for bar in axes.patches]
        assert all(bar.get_facecolor() == (1, 1, 1, 1) for bar in axes.patches if bar.get_hatch())
    assert fills == ["white" if i % 3 == 0 else SERIES[0] for i in range(1, count + 1)]
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [NOISE]


def test_without_noise_there_is_no_legend() -> None:
    assert rendered(panel(2)).axes[0].figure.legends == []


LONG = "What was counted in the surveys of the last twelve years, by everyone, everywhere. " * 2


TITLES = {"usual": "n = count(), pays = histogram(pay, 3 bins)", "long": LONG, "none": ""}
SIZES = [(1, 1), (3, 1), (4, 1), (25, 1), (6, 2), (12, 6)]


@pytest.mark.parametrize(
    ("size", "panels", "which"), some([(s, n, title) for s in SIZES for n in (1, 3) for title in TITLES], every=7)
)
def test_nothing_lies_over_the_legend(size: tuple[int, int], panels: int, which: str) -> None:
    (count, series), title = size, TITLES[which]
    many = panel(count, series=series, noisy=np.ones((series, count // series), bool))
    figure: Any = plots.draw_panels([many] * panels, title=title, caption="A caption of some length. " * 6)
    figure.draw_without_rendering()
    (legend,) = figure.axes[0].figure.legends
    others = [*figure.axes, *([figure._suptitle] if title else []), figure._supxlabel]
    page = figure.bbox.padded(1)
    boxes = [artist.get_tightbbox() for artist in (legend, *others)]
    for i, box in enumerate(boxes):
        assert page.fully_contains(*box.p0)
        assert page.fully_contains(*box.p1)
        assert not any(box.fully_overlaps(other) for other in boxes[:i])


def test_a_title_keeps_its_lines() -> None:
    figure = plots.draw_panels([panel(3)], title="one\n\ntwo", caption="")
    assert figure.get_suptitle() == "one\n\ntwo"


def test_single_values_are_rows_with_their_names_and_texts() -> None:
    one = panel(1, labels=[""], text="1 ± 2")
    figure = rendered(one, replace(one, name="$m$", level=True, text="~$1$ (-1 to 3)"), replace(one, name="s"))
    width, height = figure.get_size_inches()
    assert height < 3.5 < width
    assert [axes.get_yticklabels()[0].get_text() for axes in figure.axes] == ["n", "$m$", "s"]
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["1 ± 2", "~$1$ (-1 to 3)", "1 ± 2"]
    assert not figure.axes[1].texts[0].get_parse_math()
    assert [len(axes.patches) for axes in figure.axes] == [1, 0, 1]
    assert [x for x, *_ in dots(figure.axes[1])] == [1]


def test_a_single_group_keeps_its_label() -> None:
    (axes,) = rendered(panel(1, labels=["north"])).axes
    assert axes.get_yticklabels()[0].get_text() == "n\nnorth"


def test_each_panel_has_its_name() -> None:
    figure = rendered(panel(4), panel(4, name="$m$"), panel(4, name="o"), panel(4, name="p"))
    assert [axes.get_title() for axes in figure.axes] == ["n", "$m$", "o", "p"]
    assert not figure.axes[1].title.get_parse_math()


def test_series_stand_beside_each_other_under_a_title() -> None:
    (axes,) = rendered(panel(6, series=2)).axes
    assert [bar.get_height() for bar in axes.patches] == [1, 3, 5, 2, 4, 6]
    starts = sorted(bar.get_x() for bar in axes.patches)
    assert np.diff(starts).min() > 0.39
    (legend,) = axes.figure.legends
    assert legend.get_title().get_text() == "kind"
    assert [text.get_text() for text in legend.get_texts()] == ["s0", "s1", NOISE]


def test_series_of_dots_differ_in_colour_and_shape() -> None:
    (axes,) = rendered(panel(12, series=6, level=True, noisy=np.zeros((6, 2), bool))).axes
    drawn = [line for line in axes.lines if line.get_marker() in MARKERS]
    assert len({line.get_marker() for line in drawn}) == len({line.get_markeredgecolor() for line in drawn}) == 6


@pytest.mark.parametrize(("count", "label"), [(25, "g"), (41, "g"), (9, "a label that is rather long ")])
@pytest.mark.parametrize("level", [False, True])
def test_many_groups_and_long_labels_lie(count: int, label: str, level: bool) -> None:
    (axes,) = rendered(panel(count, label=label, level=level)).axes
    found = [x for x, *_ in dots(axes)] if level else [bar.get_width() for bar in axes.patches]
    assert found == list(range(1, count + 1))
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "the first is at the top"
    assert len(axes.get_yticklabels()) == count
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("n", "group")


@pytest.mark.parametrize(
    ("panels", "level"), some([(3, True), (2, False), (1, True), (1, False), (3, False), (2, True)], every=3)
)
def test_150_groups_are_one_page_with_every_label(panels: int, level: bool) -> None:
    figure = rendered(*[panel(150, label="Country ", level=level)] * panels)
    labels = [text.get_text() for axes in figure.axes for text in axes.get_yticklabels()]
    assert labels == [f"Country {i}" for i in range(150)]
    assert len({axes.get_xlim() for axes in figure.axes}) == 1, "columns of groups share their scale"
    assert sum(len(dots(axes)) if level else len(axes.patches) for axes in figure.axes) == 150 * panels


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("panels", [1, 2, 5, 12])
@pytest.mark.parametrize(("count", "series"), [(1, 1), (12, 1), (60, 1), (150, 1), (300, 6), (3_000, 1), (3_000, 6)])
def test_no_picture_is_larger_than_a_page(count: int, series: int, panels: int, level: bool, ordered: bool) -> None:
    many = [panel(count, series=series, label="a group ", level=level, ordered=ordered, steps=(5, 50, 500))] * panels
    layout = arranged(many)
    assert 6 <= layout.width <= WIDEST
    assert 1.5 <= layout.height <= TALLEST
    assert layout.across * layout.down >= panels * layout.blocks


def test_a_page_is_what_is_drawn() -> None:
    assert (WIDEST, TALLEST) == (14, 13)
    for many in (panel(900, series=6, label="a long name "), panel(150, label="a long name "), panel(1)):
        for panels in (1, 3):
            width, height = plots.draw_panels([many] * panels, title="", caption="").get_size_inches()
            assert width <= WIDEST
            assert arranged([many] * panels).height <= height <= TALLEST


def test_very_many_are_dots_with_some_of_the_labels() -> None:
    (axes,) = rendered(panel(10_000)).axes
    assert len(axes.patches) == 0
    assert len(dots(axes)) == 10_000
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert (labels[0], labels[-1]) == ("g0", "g9999")
    assert len(labels) < 30


def test_years_are_a_line_with_round_labels() -> None:
    labels = [str(year) for year in range(1871, 2017)]
    years = panel(146, labels=labels, ordered=True, first=1871, steps=(1, 2, 5, 10, 20, 50), level=True)
    figure = rendered(years)
    (axes,) = figure.axes
    shown = [text.get_text() for text in axes.get_xticklabels()]
    assert shown == [str(year) for year in range(1880, 2011, 10)]
    assert len(axes.collections) == 1, "the band of intervals"
    (line,) = [line for line in axes.lines if line.get_linestyle() == "-"]
    drawn = np.asarray(line.get_ydata())
    assert np.isnan(drawn).tolist() == years.noisy[0].tolist(), "no line goes through what is mostly noise"
    assert len(dots(axes)) == 146


def test_a_few_years_are_bars_or_dots_with_every_label() -> None:
    labels = [str(year) for year in range(2013, 2018)]
    for level in (False, True):
        (axes,) = rendered(panel(5, labels=labels, ordered=True, first=2013, steps=(1, 2, 5), level=level)).axes
        assert [text.get_text() for text in axes.get_xticklabels()] == labels
        assert len(axes.patches) == (0 if level else 5)


@pytest.mark.parametrize(("count", "level"), [(3, False), (3, True), (50, True), (300, False)])
def test_infinite_ends_stay_inside(count: int, level: bool) -> None:
    low, high = np.full((1, count), -np.inf), np.full((1, count), np.inf)
    figure = rendered(panel(count, low=low, high=high, level=level, noisy=np.zeros((1, count), bool)))
    for axes in figure.axes:
        assert np.isfinite(np.array([axes.get_xlim(), axes.get_ylim()])).all()
        arrows = [line for line in axes.lines if line.get_marker() in (("<", ">") if count == 50 else ("^", "v"))]
        assert len(arrows) == (0 if count == 300 else 2)
        for line in arrows:
            assert np.isfinite(line.get_xydata()).all()


@pytest.mark.parametrize("count", [10, 50])
def test_one_wide_interval_of_a_noisy_dot_does_not_flatten_the_others(count: int) -> None:
    values = np.linspace(72, 74, count)[None]
    noisy = np.zeros((1, count), bool)
    noisy[0, 4] = True
    low, high = np.where(noisy, 55, values - 0.2), np.where(noisy, 85, values + 0.2)
    wide = panel(count, values=values, low=low, high=high, noisy=noisy, level=True)
    start, stop = wide.reach
    assert 71 < start < 72 < 74 < stop < 75
    (axes,) = rendered(wide).axes
    arrows = [line for line in axes.lines if line.get_marker() in ("^", "v", "<", ">")]
    assert [line.get_markerfacecolor() for line in arrows] == ["white", "white"]
    near, far = (replace(wide, values=np.where(noisy, value, values)) for value in (71.0, 60.0))
    assert near.reach[0] < 71 < 71.5 < far.reach[0], "an estimate that is near is in the picture"
    beyond = replace(far, high=np.where(noisy, 65, high))
    (axes,) = rendered(beyond).axes
    assert len([line for line in axes.lines if line.get_marker() in ("^", "v", "<", ">")]) == 1
    every = replace(wide, noisy=np.ones((1, count), bool))
    assert every.reach[0] < 55 < 85 < every.reach[1], "if all are noisy, all of it is shown"
    most = replace(wide, noisy=~noisy, values=np.where(noisy, 60, values), low=values - 50, high=values + 50)
    assert most.reach[0] < 60 < 74 < most.reach[1], "where most are noisy, their estimates are in the picture"


@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("value", [0.0, -5.0, 1e-300, 1e200])
def test_odd_values_are_drawn(value: float, level: bool) -> None:
    values = np.full((1, 3), value)
    (axes,) = rendered(panel(3, values=values, low=values, high=values, level=level)).axes
    low, high = axes.get_ylim()
    assert low < high
    assert low <= value <= high


def test_what_is_not_a_number_is_left_out() -> None:
    values = np.array([[1.0, np.nan, np.inf, 4.0]])
    for level in (False, True):
        (axes,) = rendered(panel(4, values=values, low=values, high=values, level=level)).axes
        found = [y for _, y, _ in dots(axes)] if level else [bar.get_height() for bar in axes.patches]
        assert found == [1, 4]


def test_labels_are_shown_as_they_are_written() -> None:
    labels = ["$10 to $20", "$x^2$", "a_b\\c", "%d{0}", "é" * 60]
    (axes,) = rendered(panel(5, labels=labels)).axes
    shown = axes.get_yticklabels()
    assert [label.get_text() for label in shown] == [*labels[:4], "é" * 31 + "…"]
    assert not any(label.get_parse_math() for label in shown)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (0.25, "0.25"), (1e6, "1,000,000"), (-2500, "-2,500"), (1e18, "1e+18"), (1e-9, "1e-09")],
)
def test_axes_are_labelled_with_commas(number: float, text: str) -> None:
    assert with_commas(number) == text
