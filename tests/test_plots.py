"""Pictures: arrays in, a figure out; without matplotlib, a line that helps."""

from __future__ import annotations

import sys
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
    for draw in (partial(plots.new_figure, 1, 1), partial(plots.draw_curve, **arrays())):
        with pytest.raises(UserError, match=r"Write: pip install 'privet\[plots\]'"):
            draw()
    with pytest.raises(UserError, match="pictures need matplotlib"):
        save_curve(epsilon=1, sensitivity=1, output="curve.png")
