"""The hull is enforced: whatever stands below the last step, a row adds what its measurement states, and no more.

The expression that is measured is replaced by an adversary: any integer that DuckDB can hold, or NULL, whatever its
type promised. Each vector must still be one that the measurement's corners allow.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from tests.tables.exact import Exchangeable, Vectors, moved

import privet as pv
from privet.engine import DuckDB, statements
from privet.engine.expressions import Compiler
from privet.engine.sql import Value
from privet.planner import ReleasePlan, plan
from privet.relation.expressions import Arithmetic, Column, Node

ANY = [
    None, 0, 1, -1, 7, 29, 30, 31, 32, 2**31, -(2**31), 2**53 + 1, 2**62, 2**62 + 1, 2**63 - 1, -(2**63), 2**63, 2**64,
    2**126, -(2**126), 2**127 - 1, -(2**127) + 1,
]  # fmt: skip
"""What the adversary gives for a row, by its number."""


def column(required: bool) -> Any:
    return pv.integer(0, len(ANY) - 1, required=required)


TARGET = pv.col("row") * 2 + pv.col("other")
FAR = pv.col("row") * 2 + 10**9 + pv.col("other")
REAL = pv.col("row") * 0.1 + pv.col("other")
ASKED: dict[str, dict[str, Any]] = {
    "count": {"n": pv.count(), "p": pv.count(pv.when(TARGET > 3, 1).otherwise())},
    "sum": {"s": pv.sum(TARGET)},
    "sum of a clip": {"s": pv.sum(TARGET.clip(3, 8))},
    "sum of tenths": {"s": pv.sum(REAL)},
    "sum far from 0": {"s": pv.sum(FAR)},
    "mean": {"m": pv.mean(TARGET)},
    "mean and count": {"m": pv.mean(TARGET), "n": pv.count()},
    "variance": {"v": pv.variance(TARGET)},
    "variance of tenths": {"v": pv.variance(REAL)},
    "histogram": {"h": pv.histogram(TARGET, [0, 10, "20.5", 50])},
    "histogram of tenths": {"h": pv.histogram(REAL, [0, "1/3", "2.1", 50])},
}


class Adversary:
    """Gives any integer, or NULL, in place of the sum of the two columns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        honest = Compiler.value

        def value(compiler: Compiler, node: Node, mode: Any = "value") -> Value:
            if not (isinstance(node, Arithmetic) and node.right == Column("other")):
                return honest(compiler, node, mode)
            self.asked += 1
            row = honest(compiler, Column("row"), mode)
            given = " ".join(f"WHEN {i} THEN {'NULL' if n is None else n}::HUGEINT" for i, n in enumerate(ANY))
            return Value(f"CASE {row.sql} {given} END", "integer", row.level)

        monkeypatch.setattr(Compiler, "value", value)


def rows(numbers: list[int]) -> Any:
    return pa.table({"row": pa.array(numbers, pa.int64()), "other": pa.array([1] * len(numbers), pa.int64())})


def vectors(adjacency: str, required: bool, ask: Any) -> tuple[ReleasePlan, list[Vectors]]:
    """The exact vectors of each row alone; first, under add/remove, of none."""
    columns = {"row": column(required), "other": column(required)}
    how: dict[str, Any] = {"protect": pv.each_row(), "adjacency": adjacency, "columns": columns}
    table = pv.table("t", rows([0]), **how)
    asked = plan(ask(table), epsilon=1)
    source = Exchangeable(table.source.rows, table.source.types())
    found = []
    with DuckDB({"t": (table.schema, source)}, salt=b"", threads=1) as engine:
        units: list[list[int]] = [[i] for i in range(len(ANY))]
        for numbers in [[], *units] if adjacency == "add/remove" else units:
            source.exchange(pv.table("t", rows(numbers), **how).source.rows)
            found.append(asked.coordinates([engine.tally(s) for s in asked.statements()]))
    return asked, found


def beyond(asked: ReleasePlan, seen: list[Vectors], adjacency: str) -> list[tuple[str, int, int]]:
    """The moves that are larger than claimed."""
    return [
        (part.measurement.rule, change, part.sensitivity)
        for old, new in product(seen[:1] if adjacency == "add/remove" else seen, seen)
        for part, change in zip(asked.noised, moved(old, new), strict=True)
        if change > part.sensitivity
    ]


@pytest.mark.parametrize("required", [True, False], ids=["required", "may be missing"])
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("what", list(ASKED))
def test_an_adversary_below_stays_in_the_hull(
    what: str, adjacency: str, required: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    adversary = Adversary(monkeypatch)
    asked, seen = vectors(adjacency, required, lambda table: table.agg(**ASKED[what]))
    assert adversary.asked
    assert beyond(asked, seen, adjacency) == []


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_an_adversary_in_a_group_is_in_one_group_at_most(adjacency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    adversary = Adversary(monkeypatch)
    for key in (TARGET, pv.bins(TARGET, [0, 10, "20.5", 50]), REAL >= 1, pv.bins(REAL, [0, "1/3", "2.1", 50])):
        asked, seen = vectors(adjacency, True, lambda table, key=key: table.group_by(k=key).agg(n=pv.count()))
        assert beyond(asked, seen, adjacency) == []
    assert adversary.asked


def test_without_the_last_step_it_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin that believes the type: what is missing stays missing."""
    Adversary(monkeypatch)
    monkeypatch.setattr(statements, "enforced", lambda code, *, missing: code)
    asked, seen = vectors("replace", True, lambda table: table.agg(**ASKED["sum far from 0"]))
    assert beyond(asked, seen, "replace")
