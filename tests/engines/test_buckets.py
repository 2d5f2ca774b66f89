"""Buckets of codes, for every engine: of the rows that the statement counts, whatever is asked for."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.effort import some
from tests.movers import opened

import privet as pv
from privet.errors import NoAnswer, QueryError
from privet.exact import Exact
from privet.tables.expressions.fluent import col
from privet.tables.operators import Scan
from privet.tables.relation import Table
from privet.tables.statement import (
    AtMostGroups,
    AtMostRows,
    Bounding,
    Buckets,
    Code,
    Present,
    Rows,
    Statement,
    Unbounded,
    counted_code,
)

COLUMNS = {"k": pv.keys("a", "b"), "x": pv.number(0, 1000)}
HOSTILE: list[Any] = [None, float("nan"), float("inf"), -float("inf"), -1.0, 0.0, 999.99999, 1000.0, 5e-324, 500.5]


def rows(seed: int) -> list[dict[str, Any]]:
    chance = Random(seed)
    return [
        {
            "id": chance.randrange(30),
            "k": chance.choice(["a", "b", "z", None]),
            "x": chance.choice([*HOSTILE, chance.random() * 1000]),
        }
        for _ in range(200)
    ]


def table(given: list[dict[str, Any]], *, person: bool) -> Table:
    protect = pv.person("id", max_rows=9) if person else pv.each_row()
    return pv.table("t", pa.Table.from_pylist(given, schema=SCHEMA), protect=protect, columns=COLUMNS)


SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("x", pa.float64())])


def statement(of: Table, bounding: Bounding, *, keys: bool = True) -> Statement:
    kind = of.schema.columns[1][1].type if of.schema.columns[1][0] == "x" else dict(of.schema.columns)["x"].type
    bounds = kind.bounds()  # type: ignore[union-attr]
    code = Code(col("x").node, bounds.lower, bounds.step, bounds.width, missing=True)
    return Statement(Scan(of.schema), (col("k").node,) if keys else (), bounding, (Present(code),))


BOUNDINGS: list[Bounding] = [Unbounded(), AtMostRows(2), AtMostGroups(1, 3)]
SHIFTS = (3, 16, 40)


@pytest.mark.parametrize("turn", range(3), ids=lambda turn: str(BOUNDINGS[turn]))
def test_buckets_are_of_the_rows_that_are_counted(name: str, turn: int) -> None:
    """Spark takes a second for a statement: each way of bounding takes its turn of groups, shifts and sets."""
    every = 3 if name == "spark" else 1
    bounding = BOUNDINGS[turn]
    of = table(rows(1), person=not isinstance(bounding, Unbounded))
    engine, reference = opened(name, of), opened("reference", of)
    for keys in some((True, False), every=min(every, 2), start=turn):
        asked = statement(of, bounding, keys=keys)
        assert engine.supports(asked) is None
        codes = engine.histograms(asked, Buckets(0))
        assert [[sum(group.values())] for group in codes] == engine.answer(asked), "bounding does not look at buckets"
        if isinstance(bounding, Unbounded):
            assert codes == reference.histograms(asked, Buckets(0))
        width = counted_code(asked).width
        assert all(0 <= code <= width for group in codes for code in group)
        for shift in some(SHIFTS, every=every, start=turn):
            coarse = [Counter[int]() for _ in codes]
            for group, counts in zip(coarse, codes, strict=True):
                for code, many in counts.items():
                    group[code >> shift] += many
            assert engine.histograms(asked, Buckets(shift)) == [dict(group) for group in coarse]
        there = {(g, code >> 16) for g, counts in enumerate(codes) for code in counts}
        sets = (
            frozenset(sorted(there)[::3]),
            frozenset[tuple[int, int]](),
            frozenset((0, i) for i in range(70_000)),
        )
        for wanted in some(sets, every=every, start=turn):
            kept = [{c: n for c, n in counts.items() if (g, c >> 16) in wanted} for g, counts in enumerate(codes)]
            assert engine.histograms(asked, Buckets(0, wanted, 16)) == kept
    engine.close()
    reference.close()


def test_a_failure_is_one_constant_error(name: str) -> None:
    of = table(rows(2), person=False)
    engine = opened(name, of)
    asked = statement(of, Unbounded())
    engine.close()
    with pytest.raises(NoAnswer, match="the engine could not compute the answer"):
        engine.histograms(asked, Buckets(0))


def test_only_a_statement_of_one_code_has_buckets() -> None:
    of = table(rows(3), person=False)
    with pytest.raises(QueryError, match="counts the rows of one code"):
        counted_code(Statement(Scan(of.schema), (), Unbounded(), (Rows(),)))
    assert counted_code(statement(of, Unbounded())).lower == Exact(0)
