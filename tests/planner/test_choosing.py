"""Which buckets are looked into, and that what is known of the codes is always right."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.planner import ReleasePlan, choosing, plan
from privet.planner.choosing import GroupedCodes, chosen
from privet.planner.ranks import ChosenRanks
from privet.tables.statement import Buckets, Statement

WIDTH = 6_553_600_000
ROWS = pa.table({"k": ["a"], "x": [1.0]})
COLUMNS = {"k": pv.keys("a", "b"), "x": pv.number(0, 200_000)}
PEOPLE = pv.table("t", ROWS, protect=pv.each_row(), columns=COLUMNS)
_CHANCE = Random(5)
CODES: dict[str, list[list[int]]] = {
    "spread": [[_CHANCE.randrange(WIDTH + 1) for _ in range(3000)], [7]],
    "crowded": [[WIDTH // 3 + _CHANCE.randrange(20_000) for _ in range(5000)], []],
    "equal": [[WIDTH] * 4000, [0] * 50],
    "empty": [[], []],
}


class Counted:
    """The histograms of some codes, and what was asked for."""

    def __init__(self, groups: list[list[int]]) -> None:
        self.groups = groups
        self.asked: list[Buckets] = []

    def __call__(self, _: Statement, buckets: Buckets) -> list[dict[int, int]]:
        self.asked.append(buckets)
        return [
            dict(Counter(c >> buckets.shift for c in codes if _is_wanted(buckets, group, c)))
            for group, codes in enumerate(self.groups)
        ]


def _is_wanted(buckets: Buckets, group: int, code: int) -> bool:
    return buckets.only is None or (group, code >> buckets.coarse) in buckets.only


def planned(*, keys: bool = True, **asked: Any) -> ReleasePlan:
    return plan((PEOPLE.group_by("k") if keys else PEOPLE).agg(**asked), epsilon=1)


def choose(asked: ReleasePlan, counted: Counted) -> tuple[GroupedCodes, Any, list[tuple[int, ...]]]:
    (part,) = asked.noised
    assert isinstance(part, ChosenRanks)
    codes = GroupedCodes(asked.statements()[asked.statement_of(part)], counted)
    found, between, _ = chosen(part, codes)
    return codes, [part.measurement.thresholds(few) for few in found], between


@pytest.mark.parametrize("what", CODES)
@pytest.mark.parametrize("few", [8, choosing._FEW])
def test_counts_are_those_of_all_rows_wherever_was_looked(what: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "_FEW", few)
    monkeypatch.setattr(choosing, "_CROWD", min(few, choosing._CROWD))
    groups = CODES[what]
    for asked in (planned(m=pv.median("x")), planned(m=pv.quantiles("x", [0.1, 0.5, 0.9]))):
        codes, thresholds, between = choose(asked, Counted(groups))
        for group, true in enumerate(groups):
            assert codes.counts(group).total == len(true)
            ends = [sum(code < end for code in true) for end in thresholds[group]]
            assert list(between[group]) == [b - a for a, b in zip([0, *ends], [*ends, len(true)], strict=True)]


def test_a_crowded_bucket_is_divided_before_its_codes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = [WIDTH // 3 + 7 * i for i in range(30_000)]  # all in one bucket of the first look
    counted = Counted([crowd])
    monkeypatch.setattr(choosing, "_FEW", 1 << 13)
    choose(planned(keys=False, m=pv.median("x")), counted)
    fetched = [sum(map(len, Counted([crowd])(None, each))) for each in counted.asked]  # type: ignore[arg-type]
    assert max(fetched) < 1 << 13
    assert len(counted.asked) == 3


def test_a_median_usually_takes_two_looks() -> None:
    chance = Random(6)
    counted = Counted([[int(WIDTH * chance.betavariate(2, 5)) for _ in range(50_000)]])
    choose(planned(keys=False, m=pv.median("x")), counted)
    assert len(counted.asked) == 2
