"""Every kind of question under every kind of budget: what it would cost, and its answer, as pages show them."""

from __future__ import annotations

import ast
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.exact import Exact
from privet.planner import ReleasePlan
from privet.privacy.guarantees import Budget
from privet.server.pages import budgets, explaining, showing
from privet.server.pages.rendering import render
from privet.session import Session

BUDGETS: dict[str, Budget] = {
    "pure": pv.PureDP(50),
    "approximate": pv.ApproxDP(50, "1e-6"),
    "rho": pv.ZeroConcentratedDP(5),
}
QUESTIONS = {
    "a count": ("SELECT COUNT(*) AS n FROM t", 1),
    "means by key": ("SELECT region, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY region", 2),
    "a median": ("SELECT MEDIAN(x) AS m FROM t", 1),
    "quantiles": ("SELECT region, QUANTILE_CONT(x, 0.9) AS q, MIN(x) AS lo FROM t GROUP BY region", 2),
    "levels": ("SELECT region, k, SUM(x) AS s FROM t GROUP BY ROLLUP (region, k)", 1),
    "arranged": ("SELECT k, SUM(x) / COUNT(*) AS r, AVG(x) AS a FROM t GROUP BY k HAVING COUNT(*) > 3 ORDER BY a", 2),
    "months": (
        "SELECT DATE_TRUNC('month', day) AS m, COUNT(DISTINCT who) AS p FROM t GROUP BY DATE_TRUNC('month', day)", 1
    ),
    "spreads": ("SELECT STDDEV_POP(x) AS sd FROM t", 1),
    "ends": ("SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS lo FROM t", 1),
    "bounds": ("SELECT APPROX_BOUNDS(x) FROM t", 1),
}  # fmt: skip


@pytest.fixture(scope="module", params=BUDGETS)
def session(request: pytest.FixtureRequest) -> Session:
    rows = pa.table(
        {
            "who": list(range(200)),
            "region": ["n", "s"] * 100,
            "town": ["a", "b", "c", "d"] * 50,
            "x": [float(i % 100) for i in range(200)],
            "k": [i % 5 for i in range(200)],
            "day": [date(2024, 1 + i % 12, 1) for i in range(200)],
        }
    )
    columns = {
        "region": pv.keys("n", "s"),
        "town": pv.text(),
        "x": pv.number(0, 100),
        "k": pv.integer(0, 4),
        "day": pv.date("2024-01-01", "2024-12-31"),
    }
    table = pv.table("t", rows, protect=pv.person("who", max_rows=1), columns=columns)
    return pv.Session([table], budget=BUDGETS[request.param], ledger=None)


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_kind_of_question_is_explained_and_shown(session: Session, question: str) -> None:
    sql, drawings = QUESTIONS[question]
    unit = "rho" if isinstance(session.balance.budget, pv.ZeroConcentratedDP) else "epsilon"
    priced: Any = {unit: "0.5"}
    plan = session.plan(sql, assuming=50, **priced)
    explained = explaining.explained(
        plan,
        session.balance,
        before=None,
        sections=session.explain(plan, face="http").sections(),
        at=explaining.other_price(lambda **price: session.plan(sql, assuming=50, **price), unit),
    )
    assert explained.cost.startswith(unit)
    assert explained.often.startswith("Enough for ")
    assert explained.errors
    html = render("parts/explained.html", explained=explained, problem=None)
    assert "nan" not in html.lower().replace("finan", "")
    release = session.release(plan)
    page = showing.shown(release, entry=1, when="", by="", sql=sql, origin="http://x", dataset="t", link="http://x/y")
    assert len(page.charts) >= drawings
    assert len(page.rows) == len(release)
    values = [[cell.value for cell in row.cells] for row in page.rows]
    assert [row[0] for row in values] == [release.view().columns[0].texts(i)[0] for i in range(len(release))]
    again = explaining.explained(plan, session.balance, before=plan.guarantee(), sections=[], at=lambda step: None)
    assert (again.cost, again.before) == ("nothing", True)


def test_unknown_keys_where_there_is_a_delta(session: Session) -> None:
    if not isinstance(session.balance.budget, pv.ApproxDP):
        return
    plan = session.plan("SELECT town, COUNT(*) AS n FROM t GROUP BY town", epsilon=5)
    found = explaining.explained(plan, session.balance, before=None, sections=[], at=lambda step: None)
    assert "delta" in found.cost
    assert showing.shown(session.release(plan), entry=1, when="", by="", sql="", origin="", dataset="t", link="").heads


def test_a_curve_falls_and_passes_through_the_price() -> None:
    rows = pa.table({"x": [1.0] * 9})
    table = pv.table("t", rows, protect=pv.each_row(), columns={"x": pv.number(0, 10)})
    session = pv.Session([table], budget=pv.PureDP(1), ledger=None)
    errors = [session.plan("SELECT SUM(x) AS s FROM t", epsilon=step).expected("s") for step in ("0.1", "0.5")]
    assert errors[0] is not None
    assert errors[1] is not None
    assert errors[0] > errors[1]
    plan = session.plan("SELECT SUM(x) AS s FROM t", epsilon="0.5")
    explained = explaining.explained(
        plan,
        session.balance,
        before=None,
        sections=[],
        at=explaining.other_price(lambda **price: session.plan("SELECT SUM(x) AS s FROM t", **price), "epsilon"),
    )
    assert explained.after == "epsilon 0.5"
    assert explained.curve is not None
    assert "Now epsilon 0.5" in explained.curve
    too_much = explaining.explained(
        session.plan("SELECT SUM(x) AS s FROM t", epsilon=3),
        session.balance,
        before=None,
        sections=[],
        at=lambda s: None,
    )
    assert too_much.after == "not enough is left"


def test_prices_that_are_no_numbers_do_not_break_the_slider() -> None:
    for text in ("", "x", "1/0", "nan", "-3", "1e999999999", "1e-999999999", "9" * 5000, "0.3"):
        made = explaining.price(pv.PureDP(3), Exact(0), text)
        assert 0 <= made.at < len(made.steps)


def test_a_budget_says_how_many_more_questions() -> None:
    rows = pa.table({"x": [1.0] * 9})
    table = pv.table("t", rows, protect=pv.each_row(), columns={"x": pv.number(0, 10)})
    session = pv.Session([table], budget=pv.PureDP(1), ledger=None)
    assert budgets.shown(session.balance, None).more == ""
    session.release("SELECT COUNT(*) AS n FROM t", epsilon="0.02")
    latest = session.ledger.latest("t", "analyst")
    assert budgets.shown(session.balance, latest).more == "Enough for 49 more questions like your last."
    assert session.ledger.latest("t", "somebody else") is None


def test_the_python_of_an_answer_has_its_statement() -> None:
    table = pv.table("t", pa.table({"k": [1, 2] * 9}), protect=pv.each_row(), columns={"k": pv.integer(1, 2)})
    session = pv.Session([table], budget=pv.PureDP(1), ledger=None)
    for sql in ('SELECT "k", COUNT(*) AS n\nFROM t\nGROUP BY "k"', "SELECT COUNT(*) AS n\nFROM t"):
        release = session.release(sql, epsilon="0.1")
        code = showing.in_python(release, origin="http://localhost", dataset="t", sql=sql)
        assert sql in [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]


def test_a_bug_in_an_error_is_not_taken_for_an_unknown_one(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(plan: ReleasePlan, name: str) -> Exact:
        raise AttributeError(name)

    priced: Any = {"rho" if isinstance(session.balance.budget, pv.ZeroConcentratedDP) else "epsilon": "0.5"}
    plan = session.plan("SELECT COUNT(*) AS n FROM t", **priced)
    monkeypatch.setattr(ReleasePlan, "expected", broken)
    with pytest.raises(AttributeError):
        explaining.explained(plan, session.balance, before=None, sections=[], at=lambda step: None)
