"""Bounds that are paid for: what they are, what is said of them, and what is refused before anything is spent."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa
import pytest
from tests.session.test_session import a_session, people, visits

import privet as pv
from privet.errors import NoBounds, QueryError, UserError, VerificationError
from privet.release import Certificate, Release
from privet.release.bounds import ReleasedBounds
from privet.tables.bounds import powers
from privet.tables.relation import Table

NAN, INF = float("nan"), float("inf")
VALUES = [0.0, 0.0, -3.5, 17.0, 63.9, None, NAN, INF, -INF]
MUCH = 10**5
"""An epsilon at which noise is 0, but for one case in many."""


def values(adjacency: Any = "add/remove") -> Table:
    rows = pa.table({"x": pa.array(VALUES, pa.float64())})
    return pv.table("t", rows, protect=pv.each_row(), columns={"x": pv.number(-1000, 10**6)}, adjacency=adjacency)


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_without_noise_they_are_the_powers_around_the_values(engine: str, adjacency: str) -> None:
    table = values(adjacency)
    with a_session(table, budget=pv.PureDP(10**7), engine=engine) as session:
        found = session.release_bounds(table, "x", epsilon=MUCH)
        assert (found.lower, found.upper, found.found) == (-1000, 10**6, True), "the infinite ones are clamped"
        assert found.inside == found.inside_at_least == 1
        inner = session.release_bounds(table.where(pv.col("x").is_between(-100, 100)), "x", epsilon=MUCH)
        assert (inner.lower, inner.upper) == (-4, 64)
        assert inner.inside == 1
        assert inner.inside_at_least == pytest.approx(4 / 5), "one count can be off by 1"
        assert inner.sql == "CLIP(x, -4, 64)"
        assert pv.col("x").clip(-4, 64).node == inner.clipped.node
        assert "lie inside: at least 79 %, with 95 % confidence" in inner.meaning
        whole = session.release_bounds(table, pv.col("x").floor().clip(-100, 100), epsilon=MUCH)
        assert (whole.lower, whole.upper) == (-100, 100)


def test_they_are_stored_and_checked_like_any_answer(tmp_path: Any) -> None:
    with a_session(budget=pv.PureDP(10), ledger=tmp_path / "people.ledger") as session:
        found = session.release_bounds(people(), "income", epsilon=2)
        assert (found.spent, found.guarantee, found.paid_before) == (pv.PureDP(2), pv.PureDP(2), False)
        again = session.release_bounds(people(), "income", epsilon=1)
        assert (again.lower, again.upper, again.paid_before, again.spent) == (
            found.lower,
            found.upper,
            True,
            pv.PureDP.ZERO,
        )
        assert session.spent == pv.PureDP(2)
        (entry,) = [each for each in session.ledger.history("people") if each.kind == "reserved"]
        assert entry.statement == "people.agg(bounds=approx_bounds(income))"
        assert "approx_bounds(income)" in str(pv.verify(found.certificate, ledger=session.ledger))
        for column, value in (("bounds lower", 3), ("bounds upper", 9), ("bounds inside", 0.123)):  # 1.0 can be true
            forged = copy.deepcopy(found.certificate.document)
            forged["answer"][column]["values"] = [value]
            with pytest.raises(VerificationError, match=f"answer.{column}"):
                pv.verify(Certificate(forged))
        assert "In SQL     CLIP(income, " in str(found)
        assert "<code>CLIP(income, " in found._repr_html_()
        assert found.to_json()["inside_at_least"] == found.inside_at_least
        answer = session.release(people().agg(pay=pv.mean(found.clipped)), epsilon=1)
        assert f"income clipped to {found.lower}" in answer.limits[2].replace(",", "")


def test_what_is_said_claims_no_more_than_is_known() -> None:
    """Clamped values are inside of the widest bounds, wherever they were; and a boolean has no bounds to find."""
    table = values()
    with a_session(table, budget=pv.PureDP(10**7)) as session:
        widest = session.release_bounds(table, "x", epsilon=MUCH)
        assert "widest bounds that x can have. Whether values were outside of them" in widest.meaning
        assert "All values" not in widest.meaning
        with pytest.raises(QueryError, match="x > 3 is true or false, so its bounds are 0 and 1") as caught:
            session.release_bounds(table, pv.col("x") > 3, epsilon=1)
        assert 'pv.mean("smoker")' in str(caught.value)
        assert session.spent == pv.PureDP(MUCH)


def test_if_nothing_stands_out_the_widest_bounds_are_given() -> None:
    table = people()
    with a_session(table) as session:
        plan = session.plan(table.agg(bounds=pv.approx_bounds("age")), epsilon=1)
    noisy = (((3,) * plan.noised[0].measurement.size,),)
    found = ReleasedBounds(Release(plan, noisy, plan.guarantee(), None, None))
    assert (found.found, found.lower, found.upper) == (False, 0, 110)
    assert "Nothing was learned" in found.meaning
    assert found.release.too_noisy("bounds lower") == [True]
    assert "~0" in str(found.release)


def test_a_sum_per_person_has_no_other_bounds() -> None:
    table = visits()
    totals = table.per_person(total=pv.sum("minutes"))
    truth = [sum(i % 90 for i in range(200) if i % 50 == who) for who in range(50)]
    with a_session(table, budget=pv.PureDP(10**7)) as session:
        found = session.release_bounds(totals, "total", epsilon=MUCH)
        edges = powers(totals.input.types()["total"])  # type: ignore[arg-type]
        assert found.lower == max(edge for edge in edges if edge <= min(truth))
        assert found.upper == min(edge for edge in edges if edge > max(truth)) - 1
        answer = session.release(totals.agg(m=pv.mean(found.clipped)), epsilon=MUCH)
        assert answer.values("m")[0] == pytest.approx(sum(truth) / 50, abs=0.1)


def test_what_has_no_bounds_names_them_in_the_language_of_each_face() -> None:
    table = people()
    with a_session(table) as session:
        with pytest.raises(NoBounds) as caught:
            table.agg(x=pv.sum(pv.col("income") / pv.col("age")))
        assert 'session.release_bounds(rows, pv.col("income") / pv.col("age"), epsilon=0.1)' in str(caught.value)
        with pytest.raises(NoBounds) as caught:
            session.parse("SELECT SUM(income / age) FROM people")
        assert "or first SELECT APPROX_BOUNDS(income / age)" in str(caught.value)


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda s, t: s.release_bounds("people", "age", epsilon=1), "needs rows"),
        (lambda s, t: s.release_bounds(t, "region", epsilon=1), "region"),
        (lambda s, t: s.release_bounds(t, "agee", epsilon=1), "Did you mean 'age'"),
        (lambda s, t: s.release_bounds(t, pv.col("age") * 0, epsilon=1), "no bounds to look for"),
        (lambda s, t: s.release_bounds(t, "age", within={"bounds lower": 1}), "within"),
        (lambda s, t: s.release_bounds(t, "age"), "epsilon"),
        (lambda s, t: s.release(t.agg(b=pv.approx_bounds("age")), within={"b lower": 2}), "no noise scale is known"),
        (lambda s, t: s.parse("SELECT APPROX_BOUNDS(age, 3) FROM people"), "one argument"),
        (lambda s, t: s.parse("SELECT APPROX_BOUNDS(region) FROM people"), "region|text|keys"),
    ],
)
def test_refused_before_anything_is_spent(ask: Any, why: str) -> None:
    table = people()
    with a_session(table) as session:
        with pytest.raises(UserError, match=why) as caught:
            ask(session, table)
        assert isinstance(caught.value, QueryError | UserError)
        assert session.spent == pv.PureDP.ZERO
