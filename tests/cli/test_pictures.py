"""Pictures from the terminal: titles, labels and orders are checked before anything is paid."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.asking import COUNT, Shell

import privet as pv
from privet.cli.output import Format, check_output
from privet.errors import UserError
from privet.planner import plan
from privet.system import files

PAID = ("query", COUNT, "--epsilon", "0.5")


def svg(shell: Shell, here: Path, *style: str) -> str:
    shell(*PAID, "-o", "a.svg", *style)
    return (here / "a.svg").read_text(encoding="utf-8")


def test_a_title_and_labels(shell: Shell, here: Path) -> None:
    text = svg(shell, here, "--title", "Where people live", "--label", "n=People", "--label", "north=The North = up")
    for shown in ("Where people live", "People", "The North = up", "south"):
        assert f"<!-- {shown} -->" in text
    assert "<!-- north -->" not in text


@pytest.mark.parametrize(
    ("order", "found"),
    [
        (["descending"], ["north", "south", "elsewhere"]),
        (["elsewhere"], ["elsewhere", "north", "south"]),
        (["south", "elsewhere"], ["south", "elsewhere", "north"]),
    ],
)
def test_an_order(shell: Shell, here: Path, order: list[str], found: list[str]) -> None:
    text = svg(shell, here, *(part for key in order for part in ("--order", key)))
    places = {key: text.index(f"<!-- {key} -->") for key in found}
    first, *others = sorted(places, key=places.__getitem__)
    assert first == found[0]
    assert order == ["descending"] or [first, *others] == found  # the two smaller ones are about equal


@pytest.mark.parametrize(
    ("style", "message"),
    [
        (["--label", "People"], "a label is NAME=TEXT, not 'People'. Write, for example: --label n=People"),
        (
            ["--label", "m=People"],
            "neither a column nor a key. The columns and keys are: region, n, north",
        ),
        (["--order", "nort"], "order names 'nort', which is not a key. The keys are: north, south, elsewhere"),
    ],
)
def test_what_can_not_be_drawn_is_not_paid_for(shell: Shell, style: list[str], message: str) -> None:
    assert message in shell.refused(2, *PAID, "-o", "a.png", *style)
    assert shell.spent() == 0


@pytest.mark.parametrize("suffix", [".png", ".SVG", ".pdf"])
def test_keys_alone_are_not_drawn(suffix: str) -> None:
    """What is checked before a question is paid for."""
    data = pa.table({"who": pa.array([], pa.int64()), "town": pa.array([], pa.string())})
    visits = pv.table("visits", data, protect=pv.person("who", max_rows=1), columns={"town": pv.text()})
    alone = plan(visits.group_by("town").agg(), epsilon=1, delta="1e-8")
    with pytest.raises(UserError, match="keys alone has no numbers, so there is nothing to draw"):
        check_output(alone, Format.CHART, Path(f"a{suffix}"), {})
    check_output(alone, Format.CSV, Path("a.csv"), {})
    counted = plan(visits.group_by("town").agg(n=pv.count()), epsilon=1, delta="1e-8")
    check_output(counted, Format.CHART, Path(f"a{suffix}"), {})


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_an_answer_whose_picture_can_not_be_written_is_printed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    real = files._name

    def full(scratch: Path, target: Path, overwrite: bool) -> None:
        if target.name == f"full{suffix}":  # and not the ledger
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(scratch, target, overwrite)

    with monkeypatch.context() as patched:
        patched.setattr(files, "_name", full)
        done = shell.run(*PAID, "-o", f"full{suffix}")
    assert done.code == 1
    assert done.err == (
        f"the chart was not saved: 'full{suffix}' can't be written: No space left on device; the answer is stored: "
        "asking again is free\n"
    )
    assert "Spent epsilon 0.5; 2.5 left." in done.out
    again = shell(*PAID, "-o", f"answer{suffix}")
    assert "Paid for before" in again.err
    assert shell.spent() == 0.5


def test_an_answer_without_groups_to_show_is_printed(shell: Shell) -> None:
    done = shell.run("query", f"{COUNT} HAVING n > 1000000", "--epsilon", "0.5", "-o", "a.png")
    assert done.code == 1
    assert done.err == (
        "the chart was not saved: no group is shown, so there is nothing to draw; the answer is stored: "
        "asking again is free\n"
    )
    assert "3 groups are not shown." in done.out


def test_without_matplotlib_nothing_is_paid(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install 'privet[plots]'" in shell.refused(2, *PAID, "-o", "a.png")
    assert shell.spent() == 0


def test_only_pictures_have_titles(shell: Shell) -> None:
    for extra in ([], ["-o", "a.csv"], ["--format", "chart"]):
        message = "--title, --label and --order apply only to charts. Write, for example: -o answer.png"
        assert message in shell.refused(2, *PAID, *extra, "--title", "People")


def test_levels_of_towns_within_regions_have_their_own_labels() -> None:
    """Where the labels of the finest level are too long to stand, each level lies with its own groups beside it."""
    towns = {
        "northcentral": ["Chicago", "Omaha"],
        "south": ["Dallas", "Miami", "Austin"],
        "northeast": ["Boston", "Nuuk"],
    }
    pairs = [(region, town) for region, some in towns.items() for town in some] * 20
    rows = pa.table({"region": [pair[0] for pair in pairs], "town": [pair[1] for pair in pairs]})
    declared: Any = {"region": pv.keys(*towns), "town": pv.keys(towns, within="region")}
    table = pv.table("people", rows, protect=pv.each_row(), columns=declared)
    with pv.Session([table], budget=pv.PureDP(30), ledger=None) as session:
        answer = session.release(table.rollup("region", "town").agg(n=pv.count()), epsilon=9)
    inner: Any = answer.plot().subfigs[0]
    shown = [[label.get_text() for label in axes.get_yticklabels()] for axes in inner.axes]
    finest = [f"{region}, {town}" for region, some in towns.items() for town in some]
    assert shown == [[""], list(towns), finest]
    bars = [patch.get_width() for axes in inner.axes for patch in axes.patches]
    assert sorted(bars) == sorted(map(float, answer.values("n")))


def test_levels_of_a_rollup_are_panels_of_their_own() -> None:
    """A total is not a bar beside its parts: a panel has the groups of one level, and the legend is of the finest."""
    rows = pa.table({"region": ["n", "s"] * 60, "old": [True, False, False] * 40})
    declared: Any = {"region": pv.keys("n", "s"), "old": pv.boolean()}
    table = pv.table("people", rows, protect=pv.each_row(), columns=declared)
    with pv.Session([table], budget=pv.PureDP(30), ledger=None) as session:
        rolled = session.release(table.rollup("region", "old").agg(n=pv.count()), epsilon=9)
        cube = session.release(table.cube("region", "old").agg(n=pv.count()), epsilon=9)
    for answer, titles in (
        (rolled, ["n in all", "n by region", "n by region, old"]),
        (cube, ["n in all", "n by region", "n by old", "n by region, old"]),
    ):
        for order in (None, "descending"):
            figure = answer.plot(order=order)
            inner: Any = figure.subfigs[0]
            assert [axes.get_title() for axes in inner.axes] == titles
            bars = [[patch.get_height() for patch in axes.patches] for axes in inner.axes]
            assert [len(each) for each in bars] == [1, *[2] * (len(titles) - 2), 4]
            assert sorted(x for each in bars for x in each) == sorted(map(float, answer.values("n")))
            assert [text.get_text() for text in inner.legends[0].get_texts()][:2] == ["False", "True"]
