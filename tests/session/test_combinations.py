"""Unlike parts in one question: each combination is answered and verified, or refused before the debit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.errors import UserError
from privet.release.recall import reopened

TOWNS = ["Rome", "Oslo", "Lima"]
ROWS = pa.table(
    {
        "who": [i // 2 for i in range(1200)],
        "town": [TOWNS[i % 3] if i % 7 else f"village {i}" for i in range(1200)],
        "region": ["n" if i % 2 else "s" for i in range(1200)],
        "pay": [float(i % 97) for i in range(1200)],
    }
)
PEOPLE = pv.table(
    "people",
    ROWS,
    protect=pv.person("who", max_rows=2),
    columns={"town": pv.text(), "region": pv.keys("n", "s"), "pay": pv.number(0, 100)},
)
BY_TOWN, BY_REGION = PEOPLE.group_by("town"), PEOPLE.group_by("region")
NOBODY = PEOPLE.where(pv.col("pay") > 99.5).group_by("town")
SHARE = pv.col("n") / pv.total("n")
DELTA = {"epsilon": 20, "delta": 1e-6}

ANSWERED: dict[str, tuple[pv.Query | str, dict[str, Any]]] = {
    "quantiles of unknown keys": (BY_TOWN.agg(m=pv.median("pay"), n=pv.count()), DELTA),
    "quantiles without intervals": (BY_TOWN.agg(m=pv.quantiles("pay", [0.1, 0.9], interval=False)), DELTA),
    "bounds and extremes of unknown keys": (BY_TOWN.agg(b=pv.approx_bounds("pay"), hi=pv.max("pay")), DELTA),
    "distinct values of unknown keys": (BY_TOWN.agg(n=pv.count_distinct("region")), DELTA),
    "shares of people of unknown keys": (BY_TOWN.agg(n=pv.count_people()).compute(share=SHARE), DELTA),
    "nothing found: quantiles": (NOBODY.agg(m=pv.median("pay", interval=False)), DELTA),
    "nothing found: an interval": (NOBODY.agg(m=pv.median("pay"), n=pv.count(), d=pv.count_distinct("region")), DELTA),
    "nothing found: shares": (NOBODY.agg(n=pv.count()).compute(share=SHARE), DELTA),
    "nothing found: bounds": (NOBODY.agg(b=pv.approx_bounds("pay")), DELTA),
    "quantiles in formulas": (
        "SELECT region, MEDIAN(pay) - AVG(pay) AS d, 2 * COUNT(DISTINCT town) t FROM people GROUP BY 1 HAVING d > -90",
        {"epsilon": 3},
    ),
    "quantiles in rho": (BY_REGION.agg(m=pv.median("pay"), n=pv.count()), {"rho": 0.5}),
    "quantiles with a delta": (BY_REGION.agg(m=pv.median("pay"), n=pv.count()), {"epsilon": 2, "delta": 1e-6}),
    "bounds in formulas": (BY_REGION.agg(b=pv.approx_bounds("pay")).compute(w=pv.col("b upper") * 2), {"epsilon": 3}),
    "filters of levels": (PEOPLE.rollup("region").agg(n=pv.count(where=pv.col("pay") > 50)), {"epsilon": 1}),
    "options and unknown keys": (
        """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 9, delta = 1e-6, max_rows_contributed = 1)
        town, COUNT(*) AS n, MAX(pay) FROM people GROUP BY town -- the largest""",
        {},
    ),
}  # fmt: skip

REFUSED: dict[str, tuple[Callable[[], pv.Query], dict[str, Any], str]] = {
    "levels of quantiles": (lambda: PEOPLE.rollup("region").agg(m=pv.median("pay")), {"epsilon": 1}, "one level"),
    "levels of distinct": (lambda: PEOPLE.cube("region").agg(m=pv.count_distinct("town")), {"epsilon": 1}, "one level"),
    "levels of bounds": (lambda: PEOPLE.cube("region").agg(b=pv.approx_bounds("pay")), {"epsilon": 1}, "one level"),
    "levels of unknown keys": (lambda: PEOPLE.rollup("region", "town").agg(n=pv.count()), DELTA, "not public"),
    "totals of medians": (
        lambda: BY_REGION.agg(m=pv.median("pay")).compute(x=pv.total("m")), {"epsilon": 1}, "total",
    ),
}  # fmt: skip


@pytest.fixture
def session() -> Iterator[pv.Session]:
    with pv.Session([PEOPLE], budget=pv.ApproxDP(1000, 1e-2), ledger=None) as opened:
        yield opened


@pytest.mark.parametrize("name", ANSWERED)
def test_it_is_answered_verified_and_free_again(session: pv.Session, name: str) -> None:
    question, price = ANSWERED[name]
    assert session.explain(question, **price)
    answer = session.release(question, **price)
    pv.verify(answer.certificate, ledger=session.ledger)
    assert len(answer) == (0 if name.startswith("nothing") else 3 if answer.columns[0] == "town" else len(answer))
    assert answer.columns[0] in ("town", "region")
    for shown in (str(answer), answer._repr_html_(), answer.chart(), answer.to_csv()):
        assert shown
    assert answer.to_arrow().num_rows == len(answer)
    again = session.release(question, **price)
    assert again.paid_before
    assert again.to_dicts() == answer.to_dicts()


def test_shares_of_unknown_keys_say_whose_total_they_are_of(session: pv.Session) -> None:
    question, price = ANSWERED["shares of people of unknown keys"]
    answer = session.release(question, **price)
    assert "totals over the values of town that appear, not over all" in answer.limits
    assert sum(answer.values("share")) == pytest.approx(1)


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_before_the_debit(session: pv.Session, name: str) -> None:
    build, price, words = REFUSED[name]
    with pytest.raises(UserError, match=words):
        session.release(build(), **price)
    assert session.remaining.share == 1


def test_all_in_one_batch(session: pv.Session) -> None:
    answers = session.release_all(
        {
            "towns": BY_TOWN.agg(n=pv.count_people()),
            "median": PEOPLE.agg(m=pv.median("pay")),
            "levels": PEOPLE.rollup("region").agg(n=pv.count()),
            "regions": BY_REGION.agg(n=pv.count()),
        },
        epsilon=60,
    )
    for answer in answers.values():
        pv.verify(answer.certificate, ledger=session.ledger)
        assert reopened(answer.certificate).to_dicts() == answer.to_dicts()
    assert len(answers["towns"]) == 3
    assert len(answers["levels"]) == 3


def test_limits_of_hidden_columns_that_formulas_read_are_stated(session: pv.Session) -> None:
    answer = session.release("SELECT AVG(pay) - 10 AS above FROM people", epsilon=5)
    assert any("pay clamped to 0..100" in limit for limit in answer.limits)


def test_an_interval_of_one_point_is_shown(session: pv.Session) -> None:
    """Not so the ends of bounds, which have none."""
    answer = session.release(PEOPLE.agg(m=pv.median(pv.col("pay") * 0 + 7), b=pv.approx_bounds("pay")), epsilon=50)
    line = str(answer).splitlines()[1]
    assert "7 (7 to 7)" in line
    assert answer.interval("b lower") == ([0.0], [0.0])
    assert "(0" not in line


def test_a_batch_has_no_more_than_its_delta(session: pv.Session) -> None:
    """Unknown keys share it. What would need one beside it is refused: a price in rho."""
    towns, regions = BY_TOWN.agg(n=pv.count_people()), BY_REGION.agg(n=pv.count())
    many = {"a": towns, "b": BY_TOWN.agg(m=pv.count())}
    words = "delta is for all questions together"
    assert session.plan_all(many, epsilon=1, delta=1e-9).guarantee() == pv.ApproxDP(1, "1e-9")
    with pytest.raises(UserError, match=words):
        session.release_all({"a": towns, "b": regions}, epsilon={"a": 1}, within={"b": {"n": 300}}, delta=1e-12)
    with pytest.raises(UserError, match=words):
        session.release_all({"a": towns, "b": session.plan(regions, rho="0.001")}, epsilon=1, delta=1e-12)
    assert session.remaining.share == 1


def test_a_price_in_the_statement_of_a_diagnosis_counts(session: pv.Session) -> None:
    statement = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 2) MAX(pay) AS most FROM people"
    with pytest.raises(UserError, match="the statement says epsilon = 2"):
        session.diagnose(statement, epsilon=3)
    assert "pay" in str(session.diagnose(statement))
    both = session.diagnose(statement.replace("epsilon = 2", "epsilon = 2, delta = 1e-9"))
    assert len(both.releases) > 1
    assert both.guarantee.implies(pv.ApproxDP(2, 1e-9)), "the price is that of the whole"


def test_a_rounded_number_has_the_digits_that_were_asked_for(session: pv.Session) -> None:
    answer = session.release("SELECT ROUND(AVG(pay), 1) AS pay FROM people", epsilon=1)
    (low,), (high,) = answer.interval("pay")
    for number in (*answer.values("pay"), low, high):
        assert number == round(number, 1)


def test_a_missing_number_is_null_in_frames(session: pv.Session) -> None:
    answer = session.release("SELECT COUNT(*) / (COUNT(*) - COUNT(*)) AS miss FROM people", epsilon=1)
    assert answer.to_dicts()[0]["miss"] is None
    assert answer.to_arrow().equals(answer.to_arrow())


def test_long_numbers_in_formulas_are_refused(session: pv.Session) -> None:
    with pytest.raises(UserError, match="more than 128 bits"):
        session.release(f"SELECT COUNT(*) * 0.{'1' * 90} AS n FROM people", epsilon=1)


@pytest.mark.parametrize("epsilon", ["1/2", 4])
def test_unproved_quantiles_are_marked(session: pv.Session, epsilon: Any) -> None:
    """A group of one row: what is proved there is proved by noise, so nearly every answer is marked."""
    few = PEOPLE.where(pv.col("town") == "village 0").agg(m=pv.median("pay"), hi=pv.max("pay"))
    answers = [session.release(few, epsilon=epsilon, fresh=True) for _ in range(20)]
    assert sum(answer.too_noisy(name)[0] for answer in answers for name in ("m", "hi")) >= 30
