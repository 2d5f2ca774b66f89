"""A question has a least price: below it an epsilon is refused, and what errors would cost is raised to it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.asking import Shell
from tests.cli.asking import made as folder
from tests.prices import loss

import privet as pv
from privet.errors import QueryError, UserError
from privet.planner import plan
from privet.privacy.guarantees.budgets import MIN_EPSILON
from privet.release.recall import asked_digest

ROWS = pa.table({"id": list(range(40)), "age": [20 + i for i in range(40)], "region": ["north", "south"] * 20})
PEOPLE = pv.table(
    "people",
    ROWS,
    protect=pv.person("id", max_rows=1),
    columns={"age": pv.integer(0, 110), "region": pv.keys("north", "south")},
)
COUNT = PEOPLE.group_by("region").agg(n=pv.count())
BOTH = PEOPLE.agg(n=pv.count(), total=pv.sum("age"), who=pv.count_people())
LEAST = Fraction(1, 1000)


def opened(**how: Any) -> pv.Session:
    return pv.Session([PEOPLE], budget=pv.PureDP(3), ledger=None, **how)


def test_the_default() -> None:
    assert MIN_EPSILON == LEAST


def test_less_is_refused_before_anything_is_paid() -> None:
    with opened() as session:
        for ask in (session.release, session.explain, session.plan, session.paid_before):
            with pytest.raises(QueryError) as caught:
                ask(COUNT, epsilon=0.0009)
            assert str(caught.value) == (
                "epsilon 0.0009 is below the minimum price of a question, which is 0.001. "
                "Write, for example: epsilon=0.001"
            )
        with pytest.raises(QueryError, match="below the minimum price"):
            session.release("SELECT COUNT(*) AS n FROM people", epsilon=LEAST - Fraction(1, 10**30))
        with pytest.raises(UserError, match=r"epsilon 0\.0009 is below the minimum price"):
            session.release_value(3, sensitivity=1, epsilon="0.0009", label="a count")
        assert session.spent == pv.PureDP.ZERO
        assert len(session.ledger.history("people")) == 3
        assert session.release(COUNT, epsilon="0.001").spent == pv.PureDP("0.001")
        assert session.release_value(3, sensitivity=1, epsilon="0.001", label="a count").spent == pv.PureDP("0.001")


@pytest.mark.parametrize("budget", [pv.PureDP(3), pv.ApproxDP(3, "1e-6")])
def test_another_one(budget: Any) -> None:
    with pv.Session([PEOPLE], budget=budget, ledger=None, min_epsilon="1/3") as session:
        with pytest.raises(QueryError, match=r'which is 1/3\. Write, for example: epsilon="1/3"'):
            session.release(COUNT, epsilon=0.3)
        assert session.release(COUNT, epsilon="1/3").spent == pv.PureDP("1/3")
    with pv.Session([PEOPLE], budget=budget, ledger=None, min_epsilon="1e-6") as session:
        assert session.release(COUNT, epsilon="1e-6").spent == pv.PureDP("1e-6")
    for wrong in (0, -1, "x", None):
        with pytest.raises(UserError, match="min_epsilon must be a number greater than 0"):
            pv.Session([PEOPLE], budget=budget, ledger=None, min_epsilon=wrong)  # type: ignore[arg-type]


def test_errors_that_would_cost_less_cost_the_least_price() -> None:
    within = {"n": 20_000, "total": 10**8, "who": 90_000}
    cheap = plan(BOTH, within=within)
    assert cheap.epsilon < LEAST
    with opened() as session:
        made = session.plan(BOTH, within=within)
        assert made.epsilon == loss(made.guarantee()) == LEAST
        factors = {loss(new.price) / loss(old.price) for new, old in zip(made.noised, cheap.noised, strict=True)}
        assert factors == {LEAST / cheap.epsilon}, "all noise is scaled by the same factor"
        for name, error in within.items():
            expected = made.expected(name)
            assert expected is not None
            assert expected <= error
        assert "raised to the minimum price of epsilon 0.001" in " ".join(made.explain().split())
        assert any(
            "raised to the minimum price of epsilon 0.001" in line
            for line in session.explain(BOTH, within=within).split("\n")
        )
        answer = session.release(BOTH, within=within)
        assert answer.spent == session.spent == pv.PureDP(LEAST)
        document = answer.certificate.document
        assert document["asked"]["raised_to"] == "1/1000"
        assert document["derived"]["price"] == document["derived"]["guarantee"] == {"kind": "pure", "epsilon": "1/1000"}
        assert pv.verify(answer.certificate, ledger=session.ledger).ledger
        again = session.release(BOTH, within=within)
        assert (again.spent, again.noisy) == (pv.PureDP.ZERO, answer.noisy)
        entry = session.ledger.history("people")[3]
        assert entry.events == (made.event(),)


def test_a_stored_answer_at_a_higher_price_was_not_raised() -> None:
    with opened() as session:
        session.release(COUNT, epsilon="0.5")
        served = session.release(COUNT, within={"n": 10**6})
        assert (served.spent, served.guarantee) == (pv.PureDP.ZERO, pv.PureDP("0.5"))
        assert "raised" not in served.plan.explain()


def test_errors_that_cost_more_are_not_raised() -> None:
    with opened() as session:
        made = session.plan(COUNT, within={"n": 50})
        assert made == plan(COUNT, within={"n": 50})
        assert made.raised_to is None
        assert "raised" not in made.explain()
        assert asked_digest(made) == asked_digest(plan(COUNT, within={"n": 50}))


def test_errors_for_which_noise_alone_would_do() -> None:
    """What costs less than 10^-9 is refused without a least price, and raised with one."""
    with pytest.raises(QueryError, match="would be only noise"):
        plan(COUNT, within={"n": 10**12})
    with opened() as session:
        assert session.plan(COUNT, within={"n": 10**12}).epsilon == LEAST


def test_a_certificate_that_lies_about_it_is_rejected() -> None:
    with opened() as session:
        certificate = session.release(COUNT, within={"n": 10**6}).certificate
        for wrong in (None, "1/500", "1/10000000"):
            document = {**certificate.document, "asked": {**certificate.document["asked"], "raised_to": wrong}}
            with pytest.raises(pv.PrivetError):
                pv.verify(pv.Certificate(document))


@settings(max_examples=40)
@given(
    st.fractions(min_value=Fraction(1, 100), max_value=10**9, max_denominator=1000),
    st.fractions(min_value=Fraction(1, 100), max_value=10**9, max_denominator=1000),
    st.fractions(min_value=Fraction(1, 10**7), max_value=4, max_denominator=10**9),
)
def test_the_price_is_what_errors_need_or_the_least(n: Fraction, total: Fraction, least: Fraction) -> None:
    query, within = (
        PEOPLE.agg(n=pv.count(), who=pv.count_people(), total=pv.sum("age")),
        {"n": n, "who": n, "total": total},
    )
    made = plan(query, within=within, min_epsilon=least)
    assert made.epsilon >= least
    assert (made.raised_to is None) or made.epsilon == least == made.raised_to == loss(made.guarantee())
    for name, error in within.items():
        expected = made.expected(name)
        assert expected is not None
        assert expected <= error


def test_public_answers_cost_nothing() -> None:
    rows = pv.table(
        "rows", ROWS, protect=pv.each_row(), columns={"age": pv.integer(0, 9)}, adjacency="replace", rows=40
    )
    with pv.Session([rows], budget=pv.PureDP(1), ledger=None) as session:
        assert session.plan(rows.agg(n=pv.count()), within={"n": 5}).epsilon == 0


def test_by_the_policy(tmp_path: Path) -> None:
    text = (folder(tmp_path) / "privet.toml").read_text()
    for line, least in (("", "0.001"), ("min_epsilon = 0.1\n", "0.1"), ('min_epsilon = "1/3"\n', "1/3")):
        (tmp_path / "privet.toml").write_text(text.replace("adjacency", f"{line}adjacency"))
        with pv.Session.open(tmp_path / "privet.toml") as session:
            with pytest.raises(QueryError, match=f"which is {least}"):
                session.release("SELECT COUNT(*) FROM people", epsilon="0.0001")
            assert session.plan("SELECT COUNT(*) AS n FROM people", within={"n": 10**6}).epsilon == Fraction(least)


def test_in_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    shell = Shell(capsys, monkeypatch)
    for command in ("query", "explain"):
        assert shell.refused(2, command, "SELECT COUNT(*) FROM people", "--epsilon", "0.0001") == (
            "error: epsilon 0.0001 is below the minimum price of a question, which is 0.001. "
            "Write, for example: --epsilon 0.001\n"
        )
    assert shell.spent() == 0
    explained = shell.out("explain", "SELECT COUNT(*) AS n FROM people", "--within", "n=100000")
    assert "The requested errors would cost less; raised to the minimum price of epsilon 0.001." in explained
    shell("query", "SELECT COUNT(*) AS n FROM people", "--within", "n=100000", "--certificate", "c.json")
    assert shell.spent() == LEAST
    shell("verify", "c.json", "--ledger", "people.ledger", "--key", "steward.key.pub")
