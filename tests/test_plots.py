"""Pictures: arrays in, a figure out; without matplotlib, a line that helps."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from privet import plots
from privet.cli.curve import save_curve
from privet.errors import UserError


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
        "shift": 1.0,
        "scale": 1.0,
    }


def panel(count: int, *, series: int = 1, label: str = "g", **changes: Any) -> plots.Bars:
    """Values 1, 2, 3, ... within 2 of the truth; every third is faint."""
    values = np.arange(1.0, count + 1)
    made = plots.Bars(
        name="n",
        axis="group",
        labels=[f"{label}{i}" for i in range(count // series)],
        values=values,
        low=values - 2,
        high=values + 2,
        faint=values % 3 == 0,
        series=[f"s{i}" for i in range(series)] if series > 1 else (),
    )
    return replace(made, **changes)


def rendered(*panels: plots.Bars) -> Any:
    """The figure, really drawn; its parts have too many types to name."""
    figure = plots.draw_bars(panels, title="a title", footer="a footer")
    figure.savefig(buffer := BytesIO(), format="png")
    assert buffer.getvalue().startswith(b"\x89PNG")
    return figure


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


def test_tiny_total_variations_are_not_shown_as_zero() -> None:
    figure = plots.draw_curve(**arrays(1e-6))
    assert figure.axes[2].texts[0].get_text() == "total variation 5e-07"


def test_a_figure_needs_no_screen() -> None:
    figure = plots.new_figure(4, 3)
    figure.savefig(buffer := BytesIO(), format="png")
    assert buffer.getvalue().startswith(b"\x89PNG")
    assert figure.get_size_inches().tolist() == [4, 3]


@pytest.mark.parametrize("module", ["matplotlib", "matplotlib.figure"])
def test_without_matplotlib_there_is_a_line_to_write(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "matplotlib.figure"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    bars = partial(plots.draw_bars, [panel(3)], title="", footer="")
    for draw in (partial(plots.new_figure, 1, 1), partial(plots.draw_curve, **arrays()), bars):
        with pytest.raises(UserError, match=r"Write: pip install 'privet\[plots\]'"):
            draw()
    with pytest.raises(UserError, match="pictures need matplotlib"):
        save_curve(epsilon=1, sensitivity=1, output="curve.png")


# --- bars -----------------------------------------------------------------------------------------


def test_bars_stand_with_their_intervals() -> None:
    (axes,) = rendered(panel(4)).axes
    assert [bar.get_height() for bar in axes.patches] == [1, 2, 3, 4]
    assert [bar.get_hatch() for bar in axes.patches] == [None, None, "////", None]
    (intervals,) = axes.collections
    assert [path.vertices[:, 1].tolist() for path in intervals.get_paths()] == [[-1, 3], [0, 4], [1, 5], [2, 6]]
    assert axes.get_xlabel() == "group"
    assert axes.get_title() == ""
    assert axes.figure.get_suptitle() == "a title"
    assert axes.figure.get_supxlabel() == "a footer"


def test_each_panel_has_its_name() -> None:
    figure = rendered(panel(4), panel(4, name="$m$"), panel(4, name="o"), panel(4, name="p"))
    assert [axes.get_title() for axes in figure.axes] == ["n", "$m$", "o", "p"]
    assert not figure.axes[1].title.get_parse_math()


def test_series_stand_beside_each_other() -> None:
    (axes,) = rendered(panel(6, series=2)).axes
    assert [bar.get_height() for bar in axes.patches] == [1, 3, 5, 2, 4, 6]
    starts = sorted(bar.get_x() for bar in axes.patches)
    assert np.diff(starts).min() > 0.39
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["s0", "s1"]


@pytest.mark.parametrize(("count", "label"), [(41, "g"), (150, "g"), (9, "a label that is rather long ")])
def test_many_bars_and_long_labels_lie(count: int, label: str) -> None:
    (axes,) = rendered(panel(count, label=label)).axes
    assert [bar.get_width() for bar in axes.patches] == list(range(1, count + 1))
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "the first is at the top"
    assert len(axes.get_yticklabels()) == count
    assert axes.figure.get_size_inches()[1] > 0.18 * count


def test_very_many_are_points_in_a_band() -> None:
    (axes,) = rendered(panel(10_000)).axes
    assert len(axes.patches) == 0
    assert sum(len(line.get_xdata()) for line in axes.lines[:2]) == 10_000
    assert [label.get_text() for label in axes.get_xticklabels()][::8] == ["g0", "g9999"]


@pytest.mark.parametrize("count", [3, 50, 300])
def test_infinite_ends_stay_inside(count: int) -> None:
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    (axes,) = rendered(panel(count, low=low, high=high)).axes
    limits = np.array([axes.get_xlim(), axes.get_ylim()])
    assert np.isfinite(limits).all()
    arrows = [line for line in axes.lines if line.get_marker() in ("^", "v", "<", ">")]
    assert len(arrows) == (0 if count == 300 else 2)
    for line in arrows:
        assert np.isfinite(line.get_xydata()).all()


@pytest.mark.parametrize("value", [0.0, -5.0, 1e-300, 1e200])
def test_odd_values_are_drawn(value: float) -> None:
    values = np.full(3, value)
    (axes,) = rendered(panel(3, values=values, low=values, high=values)).axes
    low, high = axes.get_ylim()
    assert low < high
    assert low <= value <= high


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
    assert plots._with_commas(number) == text
