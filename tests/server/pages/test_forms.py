"""The form: what it makes is SQL that the parser reads as what was chosen, whatever names and values are."""

from __future__ import annotations

import json
from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.pages.site import EVIL, KEY

import privet as pv
from privet.errors import QueryError
from privet.exact import Exact
from privet.privacy.guarantees import PureDP
from privet.server.pages import words
from privet.server.pages.explaining import price
from privet.server.pages.forms import COMPARISONS, MEASURES, filled
from privet.sql import parse
from privet.tables.relation import Table

NAMES = [EVIL, 'say "hi"', "group", "net pay", "it's", "n", "'; DROP TABLE x; --"]


def table(number: str, key: str, day: str) -> Table:
    rows = pa.table({"who": [1], number: [1.0], key: ["a"], day: [date(2024, 5, 1)], "flag": [True]})
    columns = {
        number: pv.number(0, 100),
        key: pv.keys("a", KEY, "it's"),
        day: pv.date("2024-01-01", "2024-12-31"),
        "flag": pv.boolean(),
    }
    return pv.table("t " + number, rows, protect=pv.person("who", max_rows=2), columns=columns)


@pytest.mark.parametrize("number", NAMES)
@pytest.mark.parametrize("measure", [key for key, _ in MEASURES])
def test_every_measure_of_every_name_is_read_as_meant(number: str, measure: str) -> None:
    key, day = f"{number} k", f"{number} d"
    made = table(number, key, day)
    chosen = {"measure": [measure], "column": [number], "by": [key], "by2": [day], "where": [number], "how": [">="]}
    form = filled({**chosen, "value": ["5"]}, {made.name: made})
    query = parse(form.sql, {made.name: made})
    assert query.keys[0].name == key
    assert len(query.keys) == 2
    assert len(query.shown()) == 1


def test_a_form_means_what_it_says() -> None:
    people = table("income", "region", "day")
    given_ = {"measure": ["mean"], "column": ["income"], "by": ["region"], "where": ["income", "flag"]}
    form = filled({**given_, "how": [">=", "="], "value": ["1,8", "yes"]}, {"t income": people})
    assert form.sql.splitlines() == [
        "SELECT region, AVG(income) AS mean_income",
        'FROM "t income"',
        "WHERE income >= 18",
        "  AND flag = TRUE",
        "GROUP BY region",
    ]
    asked = people.where(pv.col("income") >= 18).where(pv.col("flag") == True)  # noqa: E712
    again = asked.group_by("region").agg(mean_income=pv.mean("income"))
    assert str(parse(form.sql, {"t income": people})) == str(again)


@given(
    st.text(max_size=30),
    st.sampled_from([key for key, _ in COMPARISONS]),
    st.sampled_from(["income", "region", "day", "flag"]),
)
def test_no_value_leaves_its_place(value: str, how: str, column: str) -> None:
    """Whatever is typed as a value is one constant: the question is about the same table, or is refused."""
    people = table("income", "region", "day")
    form = filled({"where": [column], "how": [how], "value": [value]}, {"t income": people})
    try:
        query = parse(form.sql, {"t income": people})
    except QueryError:
        return
    assert query.keys == ()
    assert list(query.shown()) == ["n"]


@pytest.mark.parametrize(
    "value", ["a' OR region = 'it''s", "a'; SELECT 1 --", "' OR TRUE OR region = '", "a' --", "a\\"]
)
@pytest.mark.parametrize("column", ["region", "day", "income"])
def test_a_value_that_would_be_more_than_a_constant_is_refused(value: str, column: str) -> None:
    people = table("income", "region", "day")
    form = filled({"where": [column], "how": ["="], "value": [value]}, {"t income": people})
    with pytest.raises(QueryError):
        parse(form.sql, {"t income": people})


def test_what_does_not_exist_is_ignored() -> None:
    people = table("income", "region", "day")
    form = filled(
        {"table": [EVIL], "measure": [EVIL], "column": [EVIL], "by": [EVIL], "where": [EVIL], "how": ["OR 1=1"]},
        {"t income": people},
    )
    assert form.sql == 'SELECT COUNT(*) AS n\nFROM "t income"'


def test_completions_are_what_must_be_written() -> None:
    people = table('say "hi"', "limit", "day")
    found = dict(json.loads(words.completions({people.name: people}, {})))
    assert found['"say ""hi"""'] == 't say "hi": number'
    assert found["'it''s'"] == "limit"
    assert found['"limit"'] == 't say "hi": keys'
    assert found["COUNT("] == "function"
    (shown,) = words.tables({people.name: people}, {})
    assert [each.words.split(". ")[0].rstrip(".") for each in shown.columns] == [
        "A number from 0 to 100",
        f"One of a, {KEY}, it's",
        "A date from 2024-01-01 to 2024-12-31",
        "True or false",
    ]


def test_a_price_with_a_huge_exponent_is_not_computed() -> None:
    """In a link, "1e999999999" stopped every request for minutes."""
    assert price(PureDP(3), Exact(3), "1e300").at == 12
    assert [price(PureDP(3), Exact(3), text).at for text in ("1e5000", "-1e-999999999", "1/0", "nan")] == [0] * 4
