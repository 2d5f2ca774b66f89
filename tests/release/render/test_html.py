"""What notebooks show: answers with interval bars, plans, tables, questions, sessions, batches and budgets."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet import markup
from privet.planner.explain import Explanation
from privet.release import Release

EVIL = "<img src=x onerror=alert(1)>"
ROWS = pa.table({"who": list(range(60)), "place": ["north"] * 40 + [EVIL] * 20, "pay": [100.0 * i for i in range(60)]})
PLACES = pa.table({"place": ["north", EVIL], "size": [3, 4]})
VOID = {"br", "img", "circle", "rect", "line"}


def people() -> pv.Table:
    return pv.table(
        "people",
        ROWS,
        protect=pv.person("who", max_rows=1),
        columns={"place": pv.keys("north", EVIL), "pay": pv.number(0, 10_000)},
    )


@pytest.fixture(scope="module")
def session() -> Iterator[pv.Session]:
    places = pv.public_table("places", PLACES, key="place")
    with pv.Session([people()], public=[places], budget=pv.PureDP(100), ledger=None, threads=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def answer(session: pv.Session) -> Release:
    return session.release(people().group_by("place").agg(n=pv.count(), pay=pv.mean("pay")), epsilon=20)


class Seen(HTMLParser):
    """What a browser makes of some HTML; fails on elements that are not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(thing: Any) -> Seen:
    seen = Seen(thing._repr_html_())
    assert not {"img", "script", "link", "style", "iframe"} & {*seen.tags}
    assert not any(name.startswith("on") or name in ("src", "href") for name, _ in seen.attributes)
    return seen


def test_everything_that_a_notebook_shows_is_escaped_and_well_formed(session: pv.Session, answer: Release) -> None:
    rows = people()
    batch = {EVIL: rows.group_by("place").agg(n=pv.count()), "pay": rows.agg(x=pv.mean("pay"))}
    value = session.release_value(7, sensitivity=1, epsilon=1, label=EVIL)
    choice = session.select(
        [1, 5], label="best", mechanism=pv.Exponential(sensitivity=1, epsilon=1), candidates=["a", EVIL]
    )
    things: dict[str, tuple[Any, str]] = {
        "answer": (answer, EVIL),
        "plan": (answer.plan, EVIL),
        "explanation": (session.explain(answer.plan), "Guarantee"),
        "table": (rows, "protects each who; uses at most 1 row of each"),
        "public table": (session.public["places"], "joined on place"),
        "relation": (rows.where(pv.col("place") == EVIL), EVIL),
        "query": (answer.plan.query, "pay = mean(pay)"),
        "session": (session, "Session of analyst on people"),
        "batch": (session.release_all(batch, epsilon=2), EVIL),
        "batch plan": (session.plan_all(batch, epsilon=2), EVIL),
        "value": (value, "95 % interval"),
        "choice": (choice, "mechanism"),
        "remaining": (session.remaining, "epsilon"),
        "balance": (session.balance, "left"),
    }
    for name, (thing, expected) in things.items():
        assert expected in shown(thing).text, name


def test_an_answer_has_a_bar_for_each_interval(answer: Release) -> None:
    seen = shown(answer)
    assert seen.tags.count("svg") == 4
    assert seen.tags.count("rect") == seen.tags.count("circle") == 2
    assert answer.notes()[0] in seen.text
    places = [float((value or "").rstrip("%")) for name, value in seen.attributes if name in ("x1", "x2", "cx", "x")]
    assert all(0 <= place <= 100 for place in places)
    many = Release(answer.plan, answer.noisy, answer.spent, None, answer.certificate)
    assert shown(many).text == seen.text.replace(answer.notes()[-1], many.notes()[-1])


@pytest.mark.parametrize(("low", "high"), [(-math.inf, math.inf), (0.0, math.inf), (-3.0, 12.0)])
def test_bars_stay_within_their_scale(low: float, high: float) -> None:
    seen = Seen(markup.interval(5.0, low, high, (0.0, 10.0), level=True, hollow=True))
    ends = dict(seen.attributes)
    assert 0 <= float((ends["x1"] or "")[:-1]) <= float((ends["x2"] or "")[:-1]) <= 100
    assert ends["fill"] == "none"
    assert Seen(markup.interval(0.0, 0.0, 0.0, (0.0, 0.0), level=False, hollow=False)).tags


def test_an_explanation_is_a_text_that_prints_itself(session: pv.Session, answer: Release) -> None:
    words = session.explain(answer.plan)
    assert isinstance(words, str)
    assert isinstance(words, Explanation)
    assert repr(words) == str(words) == "\n".join(words.splitlines())
    titles = [title for title, _ in words.sections()]
    assert titles[0] == "Query"
    assert titles[-1] == "Budget"
    assert "Guarantee" in titles
    assert f"{words}" in f"{words}\n"
    assert words.startswith("Query ")


def test_reprs_are_short_and_have_no_data(session: pv.Session) -> None:
    rows = people()
    filtered = rows.where(pv.col("pay") > 5)
    assert repr(rows) == "<Table people: protects each who; uses at most 1 row of each; place, pay>"
    assert repr(session.public["places"]) == "<PublicTable places: by place; place, size>"
    assert repr(filtered) == "<Relation people.where(pay > 5): place, pay>"
    assert repr(filtered.group_by("place")) == "<Grouped people.where(pay > 5): place, pay, by place>"
    assert repr(filtered.agg(n=pv.count())) == "<Query people.where(pay > 5).agg(n=count())>"
    assert repr(session).startswith("Session(people; epsilon ")
    assert repr(session.balance).endswith("left of epsilon 100>")
    wide = pv.table("wide", ROWS, protect=pv.each_row(), columns={"pay": pv.number(0, 1)})
    assert repr(wide) == "<Table wide: protects each row; pay>"


def test_nothing_shows_the_address_of_a_ledger(tmp_path: Path) -> None:
    with pv.Session([people()], budget=pv.PureDP(1), ledger=tmp_path / "secret-place.ledger", threads=1) as session:
        for text in (repr(session), session._repr_html_(), repr(session.remaining), repr(session.balance)):
            assert "secret-place" not in text
            assert str(tmp_path) not in text


def test_csv_has_the_notes_above_and_the_same_numbers(answer: Release, tmp_path: Path) -> None:
    text = answer.to_csv(tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_text(encoding="utf-8") == text
    lines = text.splitlines()
    notes = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    assert notes == answer.notes()
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[len(notes) :]))))
    assert [row["place"] for row in rows] == ["north", EVIL]
    assert [int(row["n"]) for row in rows] == answer.values("n")
    assert [float(row["pay_low"]) for row in rows] == answer.interval("pay")[0]
    assert [row["n_noisy"] for row in rows] == [str(x).lower() for x in answer.too_noisy("n")]
    assert answer.to_csv(notes=False) == "\n".join(lines[len(notes) :]) + "\n"
    assert answer.to_csv(notes=False, intervals=False).splitlines()[0] == '"place","n","pay"'
