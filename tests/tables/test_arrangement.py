"""How an answer is arranged: a value, checked when it is made."""

from __future__ import annotations

from typing import Any

import pytest

import privet as pv
from privet.errors import QueryError
from privet.tables.arrangement import EVERYTHING, Arrangement, Order
from privet.tables.operators import Scan
from privet.tables.relation import Relation
from privet.tables.schema import Schema

PEOPLE = Relation(
    Scan(
        Schema.declare(
            "people",
            protect=pv.each_row(),
            columns={"region": pv.keys("north", "south"), "age": pv.integer(0, 110), "smoker": pv.boolean()},
        )
    )
)
QUERY = PEOPLE.group_by("region", "smoker").agg(n=pv.count(), m=pv.mean("age"), h=pv.histogram("age", [0, 50, 110]))
n, m = pv.col("n"), pv.col("m")


def test_it_is_a_value_whatever_the_order_of_calls() -> None:
    one = QUERY.having(n > 3).order_by("m", "region", descending=[True, False]).limit(5).hide("m", "h")
    other = QUERY.hide("h").limit(5).hide("m").order_by("m", "region", descending=(True, False)).having(n > 3)
    assert one == other
    assert hash(one) == hash(other)
    assert one != QUERY
    assert QUERY.arrangement == EVERYTHING
    assert one.arrangement == Arrangement((n > 3).node, (Order("m", True), Order("region")), 5, ("h", "m"))
    assert str(one).endswith("by region, smoker having n > 3 order by m descending, region limit 5")


def test_conditions_add_up_and_limits_only_shrink() -> None:
    assert QUERY.having(n > 3).having(m < 5, pv.col("smoker")) == QUERY.having((n > 3) & (m < 5) & pv.col("smoker"))
    assert QUERY.limit(5).limit(9) == QUERY.limit(9).limit(5) == QUERY.limit(5)


def test_bins_of_a_histogram_are_columns() -> None:
    name = QUERY.columns()["h"][0]
    assert name == "h [0, 50)"
    assert QUERY.having(pv.col(name) > 3).order_by(name).arrangement.order == (Order(name),)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q: q.having(), "having needs a condition"),
        (lambda q: q.having(True), "having needs a condition"),
        (lambda q: q.having(n), "having needs a condition, but this is a number"),
        (lambda q: q.having(pv.col("age") > 3), "there is no column 'age'. The columns are: region, smoker, n, m"),
        (lambda q: q.having(n + 1 > 3), "having can only compare columns of the answer"),
        (lambda q: q.having(n.is_missing()), "having can only compare columns of the answer"),
        (lambda q: q.having(pv.col("region") > "north"), "can't be compared"),
        (lambda q: q.order_by(), "order_by needs the names"),
        (lambda q: q.order_by(n), "order_by needs the names"),
        (lambda q: q.order_by("x"), "the answer has no column 'x'. The columns are: region, smoker, n, m, h "),
        (lambda q: q.order_by("n", "n"), "order_by: each column can be listed only once"),
        (lambda q: q.order_by("n").order_by("m"), "already has an order"),
        (lambda q: q.order_by("n", descending=[True, False]), "one of them for each column"),
        (lambda q: q.order_by("n", descending=["yes"]), "True or False"),
        (lambda q: q.limit(20_000), "limit must be 1 to 10,000"),
        (lambda q: q.hide(), "hide needs the names"),
        (lambda q: q.hide("region"), "the answer has no column 'region'. The columns are: n, m, h"),
        (lambda q: q.hide("n", "m", "h"), "at least one column of numbers must remain"),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message.replace("(", r"\(")):
        call(QUERY)


@pytest.mark.parametrize("few", [0, -1, 2.5, "x", None, True])
def test_limits_that_are_none(few: Any) -> None:
    with pytest.raises(pv.UserError, match="limit"):
        QUERY.limit(few)


def test_columns_in_an_order_of_their_own() -> None:
    asked = PEOPLE.group_by("region").agg(n=pv.count()).compute(share=pv.col("n") / pv.total("n"))
    assert asked.shown() == ("n", "share")
    assert asked.in_order("share").shown() == ("share", "n") == asked.in_order("share", "n").shown()
    assert asked.in_order("n", "share") == asked == asked.in_order("share").in_order("n")
    assert asked.in_order("share").hide("n").shown() == ("share",)
    for wrong, message in (((), "needs the names"), (("x",), "shows no column 'x'"), (("n", "n"), "only once")):
        with pytest.raises(QueryError, match=message):
            asked.in_order(*wrong)
    with pytest.raises(QueryError, match="shows no column 'n'"):
        asked.hide("n").in_order("n", "share")
