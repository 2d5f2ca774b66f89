"""Explanations to the letter. After a change that is meant, PRIVET_GOLDEN=write writes them anew: read what changed."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.planner.tables import table
from tests.prices import loss

import privet as pv
from privet.codec import ratio
from privet.planner import ReleasePlan, plan
from privet.tables.query import Query
from privet.tables.relation import PublicTable
from privet.tables.schema import PublicSchema
from privet.tables.types import KeyType, NumberType

GOLDEN = Path(__file__).parents[1] / "golden" / "explain"

COLUMNS: dict[str, Any] = {
    "age": pv.integer(0, 110),
    "income": pv.number(0, 200_000, step=1),
    "hours": pv.integer(1, 60, required=True),
    "region": pv.keys("north", "south", other="elsewhere"),
    "visit": pv.date("2024-01-01", "2024-12-31"),
}
REGIONS = PublicTable(
    PublicSchema(
        "regions",
        "region",
        (("region", KeyType(("north", "south"))), ("area", NumberType(Fraction(0), Fraction(9)))),
        "0" * 64,
    ),
    None,
)

ASKED: dict[str, tuple[Callable[[], Query], dict[str, Any]]] = {
    "count": (lambda: table(**COLUMNS).agg(n=pv.count()), {"epsilon": 1}),
    "mean_by_region": (
        lambda: table(protect=pv.person("id", max_rows=3), **COLUMNS)
        .where(pv.col("age") >= 18)
        .group_by("region")
        .agg(n=pv.count(), pay=pv.mean("income")),
        {"epsilon": 0.5, "assuming": 500},
    ),
    "people_and_ratio": (
        lambda: table(protect=pv.person("id", max_groups=2, max_rows_per_group=4), **COLUMNS)
        .join(REGIONS, on="region")
        .group_by(pv.col("visit").truncate("quarter"))
        .agg(who=pv.count_people(), rate=pv.sum("income") / pv.sum("hours")),
        {"epsilon": "1/3", "confidence": 0.9},
    ),
    "replace": (
        lambda: table(adjacency="replace", rows=10_000, **COLUMNS).agg(
            n=pv.count(), hours=pv.mean("hours"), spread=pv.std("hours"), old=pv.histogram("age", [0, 18, 65, 110])
        ),
        {"epsilon": 1, "simultaneous": True, "assuming": 10_000},
    ),
    "per_person_within": (
        lambda: table(protect=pv.person("id", max_rows=3), adjacency="replace", **COLUMNS)
        .per_person(total=pv.sum("income"), visits=pv.count())
        .with_columns(often=pv.col("visits") >= 5)
        .group_by("often")
        .agg(n=pv.count(), total=pv.mean(pv.col("total").clip(0, 500_000))),
        {"within": {"n": 20, "total": 10_000}, "assuming": 2_000},
    ),
    "least_price": (
        lambda: table(protect=pv.person("id", max_rows=3), **COLUMNS).agg(n=pv.count(), who=pv.count_people()),
        {"within": {"n": 90_000, "who": 20_000}, "min_epsilon": 0.001},
    ),
    "arranged": (
        lambda: table(**COLUMNS)
        .group_by("region")
        .agg(n=pv.count(), pay=pv.mean("income"))
        .having(pv.col("n") >= 100, pv.col("region") != "north")
        .order_by("pay", "region", descending=[True, False])
        .limit(2)
        .hide("pay"),
        {"epsilon": 1, "assuming": 500},
    ),
    "public": (lambda: table(adjacency="replace", rows=10_000, **COLUMNS).agg(n=pv.count()), {"epsilon": 1}),
}  # fmt: skip


def made(name: str) -> ReleasePlan:
    ask, how = ASKED[name]
    return plan(ask(), **how)


@pytest.mark.parametrize("name", ASKED)
def test_golden(name: str) -> None:
    path = GOLDEN / f"{name}.txt"
    found = made(name).explain() + "\n"
    if os.environ.get("PRIVET_GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    difference = "\n".join(
        difflib.unified_diff(expected.splitlines(), found.splitlines(), path.name, "now", lineterm="")
    )
    assert not difference, f"\n{difference}"


def test_every_golden_text_belongs_to_a_query() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(ASKED)


@pytest.mark.parametrize("name", ASKED)
def test_every_number_that_counts_is_named(name: str) -> None:
    """Sensitivities, scales, epsilons and errors stand in the text, as the plan has them."""
    one = made(name)
    text = re.sub(r"\s+", " ", one.explain())
    for part in one.noised:
        assert f"= {part.move.total}." in text
        assert f"(rule {part.measurement.rule})" in text
        assert f"on {part.measurement.size * part.groups} number" in text
        assert f"{part.rows} row" in text
    for column, _ in one.columns:
        assert column in text
    exact = {f"epsilon {loss(one.guarantee())}", str(one.guarantee())}
    assert any(each in text for each in exact) or not one.noised


@pytest.mark.parametrize("name", ASKED)
def test_lines_are_not_too_long(name: str) -> None:
    assert max(map(len, made(name).explain().splitlines())) <= 100


def test_an_explanation_is_no_larger_than_a_page() -> None:
    assert all(len(made(name).explain().splitlines()) < 60 for name in ASKED)


def test_nothing_of_explain_depends_on_how_often_it_is_asked() -> None:
    assert made("replace").explain() == made("replace").explain()


@pytest.mark.parametrize("name", ASKED)
def test_the_plan_for_programs_says_the_same(name: str) -> None:
    one = made(name)
    tree = one.to_json()
    assert set(tree) == {"asked", "derived", "limits"}
    assert tree["limits"] == list(one.limits)
    assert all(limit in re.sub(r"\s+", " ", one.explain()) for limit in one.limits)
    assert [Fraction(part["scale"]) for part in tree["derived"]["measurements"]] == list(one.scales)
    assert tree["derived"]["price"] == {"kind": "pure", "epsilon": ratio(one.epsilon)}


@pytest.mark.parametrize("most", [1, 4, 5, 20])
def test_a_large_cap_says_what_a_lower_one_gains(most: int) -> None:
    """The share of the noise is that of a plan with the lower cap."""
    asked = table(protect=pv.person("id", max_rows=most), **COLUMNS).group_by("region").agg(pay=pv.sum("income"))
    for price in ({"epsilon": 1}, {"rho": 0.1}):
        made = plan(asked, **price)
        lines = re.findall(r"with cap\(max_rows=(\d+)\) it is (\d+) %", " ".join(made.explain().split()))
        assert bool(lines) is (most >= 5)
        for rows, share in lines:
            fewer = plan(asked.cap(max_rows=int(rows)), **price)
            wide, narrow = (each.noise.half_width(each.columns[0][1].form, each.level) for each in (made, fewer))  # type: ignore[union-attr]
            assert abs(float(narrow / wide) - int(share) / 100) < 0.02
