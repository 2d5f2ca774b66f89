"""What a number can be: noisy ones are cut to that, and no interval loses the true number, or looks certain."""

from __future__ import annotations

import itertools
from fractions import Fraction as Exact
from random import Random
from typing import Any

import privet as pv
from privet.planner import plan, possible
from privet.planner.cells import Cells
from privet.planner.outputs import Quotient, Straight
from privet.tables.operators import Scan
from privet.tables.relation import Relation
from privet.tables.schema import Schema

COLUMNS = {
    "age": pv.integer(0, 110),
    "paid": pv.number(-5, 10, required=True),
    "cost": pv.number(2, 8),
    "town": pv.text(),
    "region": pv.keys("north", "south"),
}


def people() -> Relation:
    return Relation(Scan(Schema.declare("people", protect=pv.each_row(), columns=COLUMNS)))


def can_be(what: Any) -> tuple[object, object]:
    output = dict(plan(people().agg(x=what), epsilon=1).columns)["x"]
    assert isinstance(output, Straight | Quotient)
    return output.can_be


def test_what_each_kind_of_number_can_be() -> None:
    rows = pv.count()
    assert can_be(pv.count_distinct("age")) == (0, 111)
    assert can_be(pv.count_distinct("town")) == (0, None)
    assert can_be(pv.count("age") / rows) == (0, 1)
    assert can_be(rows / pv.count("age")) == (0, None), "more rows than values"
    assert can_be(pv.sum("paid") / rows) == (-5, 10)
    assert can_be(pv.sum("cost") / rows) == (0, 8), "rows without a cost add 0"
    assert can_be(pv.sum("cost") / pv.count("cost")) == (2, 8)
    assert can_be(pv.sum("cost") / pv.sum("age")) == (0, None)
    assert can_be(pv.sum("cost") / pv.sum("paid")) == (None, None)
    assert can_be(rows) == (None, None), "negative counts are noise, and are marked"


def test_computed_columns() -> None:
    n, total = pv.col("n"), pv.total("n")
    query = people().group_by("region").agg(n=pv.count(), s=pv.sum("paid"), d=pv.count_distinct("age"))
    made = query.compute(
        share=n / total, percent=(100 * n / total).round(1), each=pv.col("d") / n, less=n - 5, any=pv.col("s") / n
    )
    found = plan(made, epsilon=1)
    outputs = dict(found.columns)
    ends = {name: possible.formula(node, outputs) for name, node in made.arrangement.computed}
    assert {name: (each.low, each.high) for name, each in ends.items()} == {
        "share": (0, 1), "percent": (0, 100), "each": (0, None), "less": (None, None), "any": (None, None),
    }  # fmt: skip
    words = " ".join(found.explain().split())
    assert (
        "Cut to what they can be, with their intervals: d 0..111, share 0..1, percent 0..100, each at least 0" in words
    )
    shares = plan(people().group_by("region").agg(n=pv.count()).compute(share=n / total), epsilon=1).cells(
        [[(-3,), (1000,)]]
    )["share"]
    assert min(shares.values) == 0
    assert max(shares.high) <= 1


def test_a_share_of_a_group_without_a_size() -> None:
    """Where noise makes the denominator 0 or less, nothing is known: -1 of -1 is not all of it."""
    n, total = pv.col("n"), pv.total("n")
    by_total = plan(people().group_by("region").agg(n=pv.count()).compute(share=n / total), epsilon=1)
    for counts, values in (((-1, 0), (0, 0.5)), ((-4, 1), (0, 1)), ((0, 0), (0.5, 0.5))):
        share = by_total.cells([[(each,) for each in counts]])["share"]
        assert (share.values, share.low, share.high) == (values, (0, 0), (1, 1))
        assert all(share.noisy)
    ratio = plan(people().agg(o=pv.count("age") / pv.count()), epsilon=1)
    for present, rows in itertools.product((-30, 0, 2), (-30, -1, 0)):
        cells = ratio.cells([[(present,)], [(rows,)]])["o"]
        assert (cells.low, cells.high, cells.noisy) == ((0,), (1,), (True,)), (present, rows)
        assert cells.values == ({-30: 0, 0: 0.5, 2: 1}[present],)


def lost(cells: Cells, cut: Cells, truth: int) -> bool:
    return any(
        a <= truth <= b and not c <= truth <= d
        for a, b, c, d in zip(cells.low, cells.high, cut.low, cut.high, strict=True)
    )


def test_no_interval_loses_the_true_number_or_looks_certain() -> None:
    chance = Random(3)
    narrower = 0
    for _ in range(2000):
        least, most = sorted(chance.sample(range(-5, 6), 2))
        low, high = sorted(chance.sample(range(-9, 10), 2))
        kind = chance.choice([int, float])
        cells = Cells((kind(chance.randint(low, high)),), (kind(low),), (kind(high),), (False,))
        for ends in itertools.product((Exact(least), None), (Exact(most), None)):
            cut = cells.cut(ends)
            assert not any(lost(cells, cut, truth) for truth in range(least, most + 1))
            assert cut.low[0] < cut.high[0]
            assert all(ends[0] is None or x >= ends[0] for x in (*cut.values, *cut.low, *cut.high))
            assert all(ends[1] is None or x <= ends[1] for x in (*cut.values, *cut.low, *cut.high))
        narrower += any(lost(cells, cells.cut((Exact(least), Exact(most - 1))), truth) for truth in [most])
    assert narrower, "a broken twin: a range that is too narrow loses true numbers"
    third = Cells((1.0,), (0.0,), (2.0,), (False,)).cut((Exact(1, 3), Exact(2, 3)))
    assert Exact(third.low[0]) <= Exact(1, 3) < Exact(2, 3) <= Exact(third.high[0])
    assert third.high[0] - third.low[0] < 0.34
