"""Questions that are small to write and could be large to plan: each is planned, or refused, at once."""

from __future__ import annotations

from typing import Any

import pytest

import privet as pv
from privet.errors import QueryError
from privet.planner import plan
from privet.tables.expressions.trees import DEEPEST, MOST_NODES
from privet.tables.operators import Scan
from privet.tables.relation import Relation
from privet.tables.schema import Schema


def relation(lower: Any = 0, upper: Any = 1) -> Relation:
    columns = {"x": pv.number(lower, upper), "n": pv.integer(0, 10)}
    return Relation(Scan(Schema.declare("t", protect=pv.each_row(), columns=columns)))


@pytest.mark.parametrize(("lower", "upper"), [(0, "0.999999"), ("1/3", "2/3"), ("-2/3", "1/3"), (0, 3)])
def test_bounds_of_repeated_products_stay_short(lower: Any, upper: Any) -> None:
    rows, name = relation(lower, upper), "x"
    longest = 0
    for i in range(DEEPEST - 4):
        try:
            rows = rows.with_columns(**{f"c{i}": pv.col(name) * pv.col(name)})
        except QueryError as refusal:
            assert "too large" in str(refusal)  # noqa: PT017
            return
        name = f"c{i}"
        kind = rows.input.types()[name]
        longest = max(longest, kind.lower.denominator.bit_length(), kind.upper.denominator.bit_length())  # type: ignore[union-attr]
    assert longest <= 1100


def test_shared_parts_count_each_time() -> None:
    expression = pv.col("x")
    for _ in range(60):
        expression = expression + expression
    with pytest.raises(QueryError, match=f"at most {MOST_NODES:,} parts"):
        relation().where(expression > 1)


def test_weights_and_errors_that_leave_nothing_are_refused() -> None:
    question = relation().agg(n=pv.count(), s=pv.sum("x"))
    for weight in ("1e-70", 10**300):
        with pytest.raises(QueryError, match="weights must be between"):
            plan(question, epsilon=1, weights={"n": weight})
    with pytest.raises(QueryError, match="only noise"):
        plan(question, within={"n": 10**70, "s": 10**70})
    assert plan(question, epsilon=1, weights={"n": 10**6}).epsilon == 1


def test_a_histogram_has_as_many_bins_as_fit_into_an_answer() -> None:
    assert len(plan(relation().agg(h=pv.histogram("n", range(101))), epsilon=1).columns) == 100
    with pytest.raises(QueryError, match="at most 100 bins"):
        pv.histogram("n", range(102))
    with pytest.raises(QueryError, match="at most 200 columns"):
        relation().agg(**{f"h{i}": pv.histogram("n", range(101)) for i in range(5)})
