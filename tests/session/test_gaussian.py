"""Gaussian noise from a table to a verified answer: what is spent, what is recalled, and what an analyst sees."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.errors import BudgetError, QueryError
from privet.ledger import open_ledger
from privet.tables.relation import Table

ROWS = pa.table(
    {
        "who": [i // 4 for i in range(4000)],
        "month": [1 + i % 12 for i in range(4000)],
        "pay": [float(i % 100) for i in range(4000)],
    }
)
SQL = "SELECT month, COUNT(*) AS n, AVG(pay) AS pay FROM people GROUP BY month"


def people(**how: Any) -> Table:
    return pv.table(
        "people",
        ROWS,
        protect=pv.person("who", max_groups=4, max_rows_per_group=1),
        columns={"month": pv.integer(1, 12), "pay": pv.number(0, 100, step=1)},
        **how,
    )


BUDGETS: dict[str, pv.ApproxDP | pv.ZeroConcentratedDP] = {
    "meters": pv.ApproxDP(1, 1e-6),
    "rho": pv.ZeroConcentratedDP(0.1),
}
PRICES: dict[str, dict[str, Any]] = {
    "rho": {"rho": "1/200"},
    "epsilon and delta": {"epsilon": "1/4", "delta": 1e-8, "mechanism": "gaussian"},
    "within": {"within": {"n": 100, "pay": 40}, "assuming": 300, "mechanism": "gaussian"},
    "within and delta": {"within": {"n": 100, "pay": 40}, "assuming": 300, "mechanism": "gaussian", "delta": 1e-8},
}


@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_from_a_table_to_a_verified_answer(tmp_path: Path, budget: str, price: str, adjacency: str) -> None:
    how, where = PRICES[price], tmp_path / "people.ledger"
    with pv.Session([people(adjacency=adjacency)], budget=BUDGETS[budget], ledger=where) as session:
        plan = session.plan(SQL, **how)
        before = session.remaining
        assert before.fits(plan)
        assert (plan.mechanism.name, len(plan.noised)) in {("gaussian/1", 1), ("gaussian/1", 2)}
        release = session.release(SQL, **how)
        assert release.spent == release.guarantee == plan.guarantee()
        assert release.spent.implies(plan.price)
        assert session.remaining.share == session.balance.accountant.share(
            session.balance.accountant.price(plan.event()), session.balance.budget
        )
        for column, truth in (("n", 4000 / 12), ("pay", 49.5)):
            low, high = release.interval(column)
            assert sum(a <= truth <= b for a, b in zip(low, high, strict=True)) >= 6
            assert all(a < b for a, b in zip(low, high, strict=True))
        assert {part["mechanism"] for part in release.certificate.document["derived"]["measurements"]} == {"gaussian/1"}
        again = session.release(SQL, **how)
        assert (again.noisy, again.paid_before, again.plan) == (release.noisy, True, plan)
        assert session.paid_before(SQL, **how) == release.guarantee
        fresh = session.release(SQL, **how, fresh=True) if session.remaining.fits(plan) else release
        assert fresh is release or fresh.noisy != release.noisy
        for ledger in (None, session.ledger):
            pv.verify(release.certificate, ledger=ledger)
        spent = session.remaining.share
    with closing(open_ledger(where)) as ledger:  # what is stored is priced again from its events
        ledger.verify()
        assert ledger.balance("people").remaining.share == spent


@pytest.mark.parametrize("budget", BUDGETS)
def test_less_noise_serves_for_more_at_any_price(budget: str) -> None:
    with pv.Session([people()], budget=BUDGETS[budget], ledger=None) as session:
        first = session.release(SQL, rho="1/100")
        for how in ({"rho": "1/200"}, {"epsilon": "1/10", "delta": 1e-9, "mechanism": "gaussian"}):
            served = session.release(SQL, **how)
            assert (served.noisy, served.spent, served.guarantee) == (first.noisy, pv.PureDP.ZERO, first.guarantee)
        assert session.paid_before(SQL, rho="1/50") is None
        assert session.paid_before(SQL, epsilon=0.1) is None, "Laplace noise is another measurement"


def test_a_pure_budget_refuses_before_anything_is_paid() -> None:
    with pv.Session([people()], budget=pv.PureDP(3), ledger=None) as session:
        with pytest.raises(QueryError, match=r"rho 0\.1 can't be paid from this budget, which is epsilon 3"):
            session.release(SQL, rho=0.1)
        with pytest.raises(QueryError, match="can't be paid from this budget, which is epsilon 3"):
            session.release(SQL, within={"n": 100, "pay": 40}, assuming=300, mechanism="gaussian")
        assert session.spent == pv.PureDP.ZERO


@pytest.mark.parametrize("budget", BUDGETS)
def test_no_question_is_granted_over_budget(budget: str) -> None:
    with pv.Session([people()], budget=BUDGETS[budget], ledger=None) as session:
        times = session.remaining.times(session.plan(SQL, rho="1/100"))
        assert 0 < times < 40
        for _ in range(times):
            session.release(SQL, rho="1/100", fresh=True)
        with pytest.raises(BudgetError, match="Nothing was spent"):
            session.release(SQL, rho="1/100", fresh=True)


def test_a_pure_budget_refuses_gaussian_noise_that_is_named() -> None:
    with pv.Session([people()], budget=pv.PureDP(1), ledger=None) as session:
        for ask in (session.plan, session.release):
            with pytest.raises(
                QueryError, match=r"can't be paid .* epsilon 1\. A budget without a delta pays for Laplace"
            ):
                ask("SELECT COUNT(*) AS n FROM people", within={"n": 50}, mechanism="gaussian")
        session.plan("SELECT COUNT(*) AS n FROM people", within={"n": 50}, mechanism="laplace")


def test_explain_states_every_meter_and_what_would_be_better() -> None:
    with pv.Session([people()], budget=pv.ApproxDP(1, 1e-6), ledger=None) as session:
        text = " ".join(session.explain(SQL, rho="1/200").split())
        assert "Discrete Gaussian noise of sigma^2 =" in text
        assert "L2 sensitivity: 2, for 4 rows and the radius of phi" in text
        assert "(zero-concentrated differential privacy); recomputed from the noise: rho 0.005" in text
        assert "Meters epsilon 0." in text
        assert ", or Renyi divergence (order 23) 0.116 of 0.527; and delta 4.77e-13 of 5e-7." in text
        small = " ".join(session.explain(SQL, epsilon="1/50").split())
        assert "Instead Discrete Gaussian noise for about the same share of the budget, rho" in small
        assert session.remaining.share == 1
    with pv.Session([people()], budget=pv.PureDP(1), ledger=None) as session:
        text = session.explain(SQL, epsilon="1/50")
        assert "Meters" not in text
        assert "Instead" not in text


def test_a_plan_for_another_budget_is_not_believed() -> None:
    with pv.Session([people()], budget=pv.ApproxDP(1, 1e-6), ledger=None) as one:
        made = one.plan(SQL, rho="1/200")
    with (
        pv.Session([people()], budget=pv.ApproxDP(1, 1e-9), ledger=None) as other,
        pytest.raises(QueryError, match="not made for this dataset"),
    ):
        other.release(made)


def test_errors_beyond_all_noise_are_planned_at_the_least_price() -> None:
    with pv.Session([people()], budget=pv.ApproxDP(1, 1e-3), ledger=None) as session:
        query = session.parse("SELECT month, COUNT(*) AS n FROM people GROUP BY month")
        stated: list[dict[str, Any]] = [{}, {"mechanism": "gaussian"}]
        for how in [*stated, {"mechanism": "gaussian", "delta": "0.00060653068516"}]:
            for errors in ("1e40", "1e300"):
                assert session.plan(query, within={"n": errors}, **how).raised_to


def test_noise_that_needs_no_epsilon_at_its_delta_can_be_verified() -> None:
    with pv.Session([people()], budget=pv.ApproxDP(1, 0.1), ledger=None) as session:
        how: dict[str, Any] = {"within": {"n": 10**9}, "delta": 0.01, "mechanism": "gaussian"}
        release = session.release("SELECT month, COUNT(*) AS n FROM people GROUP BY month", **how)
        assert isinstance(release.guarantee, pv.ApproxDP)
        assert release.guarantee.epsilon == 0
        assert pv.verify(release.certificate, ledger=session.ledger).ledger


@pytest.mark.parametrize(
    "price", [{"rho": Fraction(1, 200) + Fraction(1, 3**200)}, {"epsilon": Fraction(1, 3**200) + 1}]
)
def test_long_prices_are_rounded_down(price: dict[str, Any]) -> None:
    with pv.Session([people()], budget=pv.ZeroConcentratedDP(0.1), ledger=None) as session:
        plan = session.plan("SELECT COUNT(*) AS n FROM people", **price)
        assert plan.asked is not None
        assert plan.guarantee().implies(plan.asked)


def test_deltas_that_no_accountant_can_tell_from_others_are_refused() -> None:
    with (
        pv.Session([people()], budget=pv.ApproxDP(1, 1e-6), ledger=None) as session,
        pytest.raises(QueryError, match="delta must be at least 1e-60"),
    ):
        session.plan("SELECT COUNT(*) AS n FROM people", epsilon=0.5, delta="1e-300")


def test_a_retry_is_the_same_after_the_budget_was_raised() -> None:
    with pv.Session([people()], budget=pv.ApproxDP(3, 1e-6), ledger=None) as session:
        first = session.release(SQL, rho="1/1000", request_id="one")
        value = session.release_value(7, sensitivity=1, rho="1/1000", label="seven", request_id="two")
        session.ledger.cap(session.name, pv.ApproxDP(4, 2e-6), reason="more")
        assert session.release(SQL, rho="1/1000", request_id="one").noisy == first.noisy
        again = session.release_value(7, sensitivity=1, rho="1/1000", label="seven", request_id="two")
        assert (again.value, again.spent) == (value.value, pv.PureDP.ZERO)


def test_a_mechanism_that_privet_chose_is_given_up_where_it_can_t_be_paid() -> None:
    """Someone else used up what is set aside for deltas: questions that need none are still answered."""
    with pv.Dataset([people()], budget=pv.ApproxDP(3, 1e-6), ledger=None) as dataset:
        dataset.session(analyst="alice").release(SQL, epsilon="1/2", delta="4.99999999e-7", mechanism="gaussian")
        bob = dataset.session(analyst="bob")
        how: dict[str, Any] = {"within": {"n": 300, "pay": 100}, "assuming": 300}
        served = bob.release(SQL, **how)
        assert (served.plan.mechanism.name, served.paid_before) == ("gaussian/1", True), "alice's answer is free"
        other = SQL.replace(" GROUP BY", " WHERE pay < 90 GROUP BY")
        assert dataset.plan(other, **how).mechanism.name == "gaussian/1"
        release = bob.release(other, **how)
        assert release.plan.mechanism.name == "laplace/1"
        with pytest.raises(BudgetError, match="delta"):
            bob.release(other, **how, mechanism="gaussian")


def test_a_stored_answer_stays_free_where_its_mechanism_can_no_longer_be_paid() -> None:
    with pv.Session([people()], budget=pv.ApproxDP(3, 1e-6), ledger=None) as session:
        how: dict[str, Any] = {"within": {"n": 300, "pay": 100}, "assuming": 300}
        first = session.release(SQL, **how, request_id="one")
        assert first.plan.mechanism.name == "gaussian/1"
        session.release_value(7, sensitivity=1, epsilon="1/2", delta="4.999995e-7", label="the rest of delta")
        assert not session.remaining.fits(first.plan)
        for request_id in (None, "one"):
            again = session.release(SQL, **how, request_id=request_id)
            assert (again.noisy, again.spent) == (first.noisy, pv.PureDP.ZERO)


def test_a_delta_that_the_budget_does_not_have_is_refused() -> None:
    """It would be ignored: in Python, for errors, in a plan, and in a statement's options; and nothing is spent."""
    session = pv.Session([_rows()], budget=pv.PureDP(3), ledger=None)
    counted = _rows().agg(n=pv.count())
    options = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6) COUNT(*) AS n FROM rows"
    for ask in (
        lambda: session.release(counted, epsilon=1, delta=1e-6),
        lambda: session.explain(counted, epsilon=1, delta=1e-6),
        lambda: session.plan(counted, within={"n": 9}, delta=1e-6),
        lambda: session.release(options),
        lambda: session.release_all({"n": counted}, epsilon=1, delta=1e-6),
    ):
        with pytest.raises(pv.UserError, match=r"(this|the) budget has none: epsilon 3"):
            ask()
    assert session.spent == pv.PureDP.ZERO
    assert pv.Session([_rows()], budget=pv.ApproxDP(3, 1e-6), ledger=None).release(counted, epsilon=1, delta=1e-7)


def test_a_delta_above_that_of_the_budget_is_refused() -> None:
    """Where it is not needed it would be ignored; and nothing is spent."""
    counted = _rows().agg(n=pv.count())
    for how in ("", "approx"):
        session = pv.Session([_rows()], budget=pv.ApproxDP(3, 1e-6), ledger=None, accountant=how)
        asks: list[Callable[[], object]] = [
            partial(session.release, counted, epsilon=1, delta=1e-5),
            partial(session.plan, counted, within={"n": 9}, delta=1e-5),
            partial(session.release_all, {"n": counted}, epsilon=1, delta=1e-5),
        ]
        for ask in asks:
            with pytest.raises(pv.UserError, match=r"delta 1e-5 is more than this budget has: epsilon 3, delta 1e-6"):
                ask()
        assert session.remaining.share == 1
        assert session.release(counted, epsilon=1, delta=1e-7)


def _rows() -> pv.Table:
    return pv.table("rows", pa.table({"x": [1, 2]}), protect=pv.each_row(), columns={"x": pv.integer(0, 9)})


def test_a_share_of_a_budget_is_also_told_in_questions() -> None:
    """As many as can be asked, one by one; of a budget in epsilon or in rho, the number says it."""
    counted = _rows().agg(n=pv.count())
    with pv.Session([_rows()], budget=pv.ApproxDP(1, 1e-6), ledger=None) as session:
        told = session.release(counted, epsilon="1/5").notes()[-1]
        assert told == "Spent epsilon 0.2; epsilon 0.8 (80 %) left: enough for 4 questions like this."
        for left in (3, 2, 1):
            last = session.release(counted, epsilon="1/5", fresh=True).notes()[-1]
            assert f"enough for {left} question{'s' * (left > 1)} like this" in last
        last = session.release(counted, epsilon="1/5", fresh=True).notes()[-1]
        assert last.endswith("left: not enough for another question like this.")
        with pytest.raises(BudgetError):
            session.release(counted, epsilon="1/5", fresh=True)
    with pv.Session([_rows()], budget=pv.PureDP(1), ledger=None) as session:
        assert session.release(counted, epsilon="1/5").notes()[-1] == "Spent epsilon 0.2; 0.8 left."
