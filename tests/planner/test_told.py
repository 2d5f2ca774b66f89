"""The limits of an answer, in words: every cap and clamp that shaped it, and none that did not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.planner.tables import table
from tests.planner.test_explain import REGIONS
from tests.sql.catalogue import asked as parsed

import privet as pv
from privet.planner import plan
from privet.tables.query import Query
from privet.tables.relation import Relation

COLUMNS: dict[str, Any] = {
    "age": pv.integer(0, 110),
    "income": pv.number(0, 200_000),
    "third": pv.number("-1/3", "2/3"),
    "hours": pv.integer(1, 60, required=True),
    "smoker": pv.boolean(required=True),
    "ill": pv.boolean(),
    "region": pv.keys("north", "south", other="elsewhere"),
    "kind": pv.keys("call", "stay"),
    "visit": pv.date("2024-01-01", "2024-12-31"),
    "left": pv.date("2024-01-01", "2024-12-31"),
    "seen": pv.timestamp("2024-01-01", "2024-12-31T23:59:59"),
    "name": pv.text(),
    "tens": pv.number(0, 100, step=10),
}
EACH = table(**COLUMNS)
PEOPLE = table(protect=pv.person("id", max_rows=3), **COLUMNS)
GROUPED = table(protect=pv.person("id", max_groups=2, max_rows_per_group=4), **COLUMNS)
NONE = "rows without id left out"
INCOME = ("income clamped to 0..200,000", "missing income skipped")
col = pv.col

CASES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a count of rows": (lambda: EACH.agg(n=pv.count()), ()),
    "a cap": (lambda: PEOPLE.agg(n=pv.count()), ("at most 3 rows per person", NONE)),
    "people": (lambda: PEOPLE.agg(n=pv.count_people()), (NONE,)),
    "people in groups": (
        lambda: GROUPED.group_by("kind", "smoker").agg(n=pv.count_people()),
        ("each person counted in at most 2 groups", NONE, "rows whose kind is missing or not listed left out"),
    ),
    "groups": (
        lambda: GROUPED.group_by("smoker").agg(n=pv.count()),
        ("at most 2 groups per person with 4 rows in each", NONE),
    ),
    "one group": (
        lambda: GROUPED.group_by("smoker").agg(n=pv.count()).cap(max_groups=1, max_rows_per_group=2),
        ("at most 1 group per person with 2 rows in it (set by this query)", NONE),
    ),
    "one row of one group": (
        lambda: GROUPED.group_by("smoker").agg(n=pv.count()).cap(max_groups=1, max_rows_per_group=1),
        ("at most 1 row per person (set by this query)", NONE),
    ),
    "a cap by groups without groups": (lambda: GROUPED.agg(n=pv.count()), ("at most 4 rows per person", NONE)),
    "rows and people": (
        lambda: GROUPED.group_by("region").agg(n=pv.count(), who=pv.count_people()),
        (
            "at most 2 groups per person with 4 rows in each",
            NONE,
            "any other region counted as elsewhere, rows with no region left out",
        ),
    ),
    "a cap of the query": (
        lambda: PEOPLE.agg(n=pv.count()).cap(max_rows=2),
        ("at most 2 rows per person (set by this query)", NONE),
    ),
    "a cap of the query below a table's cap by groups": (
        lambda: GROUPED.agg(n=pv.count()).cap(max_groups=2, max_rows_per_group=3),
        ("at most 3 rows per person (set by this query)", NONE),
    ),
    "people, under a cap of the query by groups": (
        lambda: (
            GROUPED.group_by("kind", "smoker").agg(n=pv.count_people()).cap(max_groups=1, max_rows_per_group=4)
        ),
        (
            "each person counted in at most 1 group (set by this query)",
            NONE,
            "rows whose kind is missing or not listed left out",
        ),
    ),
    "a mean": (lambda: EACH.agg(m=pv.mean("income")), INCOME),
    "a sum, a ratio and a spread of one column": (
        lambda: EACH.agg(s=pv.sum("income"), r=pv.sum("income") / pv.count(), v=pv.std("income")),
        INCOME,
    ),
    "a required column": (
        lambda: EACH.agg(m=pv.mean("hours"), s=pv.mean("smoker")),
        ("hours clamped to 1..60", "missing hours read as 1", "missing smoker read as false"),
    ),
    "thirds": (lambda: EACH.agg(m=pv.sum("third")), ("third clamped to -0.333333..0.666667", "missing third skipped")),
    "columns with the same bounds": (
        lambda: EACH.agg(d=pv.mean(col("left") - col("visit"))),
        ("left, visit clamped to 2024-01-01..2024-12-31", "missing left - visit skipped"),
    ),
    "a clip within the bounds": (
        lambda: EACH.agg(m=pv.mean(col("income").clip(0, 50_000))),
        ("income clipped to 0..50,000", "missing income skipped"),
    ),
    "a clip beyond the bounds": (
        lambda: EACH.agg(m=pv.sum(col("hours").clip(-5, 30))),
        ("hours clamped to 1..60", "hours clipped to -5..30", "missing hours read as 1"),
    ),
    "an expression": (
        lambda: EACH.agg(m=pv.mean(col("income") * col("hours"))),
        (
            "income clamped to 0..200,000",
            "hours clamped to 1..60",
            "missing hours read as 1",
            "missing income * hours skipped",
        ),
    ),
    "a case": (
        lambda: EACH.agg(m=pv.sum(pv.when(col("age") >= 18, col("income")).otherwise(0))),
        (*INCOME[:1], "missing case when age >= 18 then income else 0 end skipped"),
    ),
    "a share": (lambda: EACH.agg(m=pv.mean(col("age") >= 18)), ("missing age >= 18 skipped",)),
    "a column of one's own": (
        lambda: EACH.with_columns(pay=col("income").clip(0, 10)).where(col("pay") > 1).agg(m=pv.sum("pay")),
        ("income clipped to 0..10", "missing pay skipped"),
    ),
    "a public column": (
        lambda: EACH.join(REGIONS, on="region").agg(m=pv.sum("area")),
        (
            "any other region counted as elsewhere",
            "missing area skipped",
            "rows whose region is not in regions left out",
        ),
    ),
    "per person": (
        lambda: PEOPLE.per_person(total=pv.sum("income"), n=pv.count()).agg(m=pv.mean(col("total").clip(0, 500_000))),
        (NONE, "income clamped to 0..200,000", "total clipped to 0..500,000", "missing total skipped"),
    ),
    "a count of each person, within what the rows come to": (
        lambda: PEOPLE.per_person(n=pv.count()).agg(m=pv.mean(col("n").clip(0, 3))),
        (NONE, "n clipped to 0..3 (the most 3 rows can add up to)"),
    ),
    "a histogram": (
        lambda: EACH.agg(h=pv.histogram("age", [18, 65, 110])),
        ("age clamped to 0..110", "age outside 18..110 in no bin", "missing age in no bin"),
    ),
    "a histogram of all": (lambda: EACH.agg(h=pv.histogram("hours", [0, 61])),
        ("hours clamped to 1..60", "missing hours read as 1")),
    "bins": (lambda: EACH.group_by(pv.bins("hours", [0, 61])).agg(n=pv.count()),
        ("hours outside 1..60 in no group",)),
    "a condition as a key": (
        lambda: EACH.with_columns(long=col("hours") > 40).group_by("long").agg(n=pv.count()),
        ("missing hours read as 1",),  # what is compared is clamped, in a key too, and 40 is between the bounds
    ),
    "a key that every row has": (lambda: EACH.group_by("smoker").agg(n=pv.count()), ()),
    "a key that may be missing": (lambda: EACH.group_by("ill").agg(n=pv.count()),
        ("rows with no ill left out",)),
    "a case as a key": (
        lambda: EACH.group_by(k=pv.when(col("hours") > 40, "long").otherwise("short")).agg(n=pv.count()),
        ("missing hours read as 1",),
    ),
    "a case of a number as a key": (
        lambda: EACH.group_by(k=pv.when(col("hours") > 40, col("age")).otherwise(0)).agg(n=pv.count()),
        ("age outside 0..110 in no group", "rows with no k left out", "missing hours read as 1"),
    ),
    "a condition on arithmetic": (
        lambda: EACH.where(col("income") - col("third") > 0).agg(n=pv.count()),
        ("income clamped to 0..200,000", "third clamped to -0.333333..0.666667"),
    ),
    "a condition on two columns": (
        lambda: EACH.agg(m=pv.mean(col("age") > col("income"))),
        ("age clamped to 0..110", "income clamped to 0..200,000", "missing age > income skipped"),
    ),
    "a condition in a case": (
        lambda: EACH.agg(m=pv.sum(pv.when(col("age") + col("income") > 50, 1).otherwise(0))),
        ("age clamped to 0..110", "income clamped to 0..200,000"),
    ),
    "a condition on a sum of each person": (
        lambda: PEOPLE.per_person(total=pv.sum("income")).where(col("total") > 250_000).agg(n=pv.count()),
        (NONE, "income clamped to 0..200,000"),
    ),
    "a condition below one row for each person": (
        lambda: PEOPLE.where(col("age") * 2 > 50).per_person(n=pv.count()).agg(n=pv.count()),
        (NONE, "age clamped to 0..110"),
    ),
    "a condition at a bound": (
        lambda: EACH.where(col("age").is_in([5, 110])).agg(n=pv.count()),
        ("age clamped to 0..110",),
    ),
    "a condition between the bounds": (lambda: EACH.where(col("age") >= 18).agg(n=pv.count()), ()),
    "a condition on a listed key": (lambda: EACH.where(col("kind") == "call").agg(n=pv.count()), ()),
    "a condition on keys that are not this one": (
        lambda: EACH.where(col("kind") != "call").agg(n=pv.count()),
        ("any other kind read as missing",),
    ),
    "a count of keys": (lambda: EACH.agg(n=pv.count("kind")), ("any other kind read as missing",)),
    "a part of a date in a condition": (
        lambda: EACH.where(col("seen").part("month") == 5).agg(n=pv.count()),
        ("seen clamped to 2024-01-01..2024-12-31 23:59:59",),
    ),
    "a declared step": (
        lambda: EACH.where(col("tens") >= 4).agg(m=pv.sum("tens")),
        ("tens rounded to steps of 10", "tens clamped to 0..100", "missing tens skipped"),
    ),
    "a condition on what is not listed": (
        lambda: EACH.where(col("region") == "elsewhere").agg(n=pv.count()),
        ("any other region counted as elsewhere",),
    ),
    "months": (lambda: EACH.group_by(col("seen").truncate("month")).agg(n=pv.count()),
        ("seen outside 2024-01-01..2024-12-31 23:59:59 in no group", "rows with no seen left out")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_limits(name: str) -> None:
    ask, expected = CASES[name]
    query: Query = ask()
    assert plan(query, epsilon=1).limits == expected


def test_an_answer_that_is_public_has_no_limits() -> None:
    assert plan(table(adjacency="replace", rows=100, **COLUMNS).agg(n=pv.count()), epsilon=1).limits == ()


def test_bounds_that_sql_chose_are_told_and_why() -> None:
    text = "SELECT AVG(n) AS v FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS t"
    assert plan(parsed(text), epsilon=1).limits == (
        "rows without person_id left out",
        "n clipped to 0..20 (the most 20 rows can add up to)",
    )
    inner = "SELECT person_id, SUM(amount) AS t FROM visits JOIN people USING (person_id) GROUP BY 1"
    both = f"SELECT AVG(t) AS v FROM ({inner})"
    assert plan(parsed(both), epsilon=1).limits == (
        "rows without person_id left out",
        "amount clamped to 0..2000",
        "t clipped to 0..40,000 (the most 20 rows can add up to)",
        "missing t skipped",
    )


def test_one_row_of_each_person_counts_one_in_what_a_join_can_come_to() -> None:
    """The side with one row of each person does not multiply what the other one's rows can come to."""
    text = """
        WITH once AS (SELECT person_id, COUNT(*) AS times FROM visits GROUP BY person_id)
        SELECT AVG(n) AS v FROM (SELECT person_id, COUNT(*) AS n FROM once JOIN visits USING (person_id) GROUP BY 1)
    """
    assert "n clipped to 0..20 (the most 20 rows can add up to)" in plan(parsed(text), epsilon=1).limits


def test_columns_made_of_columns_many_times_take_no_time() -> None:
    rows: Relation = EACH.with_columns(a=col("third").clip(0, "1/2"))
    for _ in range(40):
        rows = rows.with_columns(a=(col("a") + col("a")).clip(0, 1))
    query = rows.group_by(pv.bins("a", [0, 1])).agg(m=pv.mean("a"))
    assert plan(query, epsilon=1).limits == (
        "third outside -0.333333..0.666667 in no group",
        "rows with no a left out",
        "third clipped to 0..0.5",
        "a + a clipped to 0..1",
        "missing a skipped",
    )


def test_long_expressions_are_cut() -> None:
    long = col("income")
    for _ in range(30):
        long = long + col("income")
    assert max(map(len, plan(EACH.agg(m=pv.sum(long)), epsilon=1).limits)) < 90


def test_explain_never_says_that_nothing_is_left_out() -> None:
    for ask, _ in CASES.values():
        assert "nothing is left out" not in " ".join(plan(ask(), epsilon=1).explain().split())
