"""Refusals to the letter: what was wrong, where, and the nearest thing that works."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.effort import some
from tests.sql.catalogue import GOLDEN, PEOPLE, REGIONS, ROWS, VISITS, Pair, asked, pairs

import privet as pv
from privet.errors import QueryError
from privet.sql import examples, hints, parse
from privet.tables.relation import Table

PATH = GOLDEN / "refused.txt"
REFUSED = list(pairs(PATH, "! "))


def refused(sql: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        asked(sql)
    assert caught.value.__cause__ is None, f"a bug: {caught.value.__cause__!r}"
    return caught.value


def refusal(sql: str) -> str:
    return str(refused(sql))


def test_golden() -> None:
    if os.environ.get("PRIVET_GOLDEN") == "write":
        head = PATH.read_text(encoding="utf-8").partition("\n-- ")[0]
        blocks = [f"\n-- {pair.name}\n{pair.sql}\n! {refusal(pair.sql)}\n" for pair in REFUSED]
        PATH.write_text(head + "".join(blocks), encoding="utf-8")
    changed = [pair.sql for pair in pairs(PATH, "! ") if refusal(pair.sql) != pair.other]
    assert changed == []


def test_there_are_enough_and_all_different() -> None:
    assert len(REFUSED) >= 300
    assert len({pair.sql for pair in REFUSED}) == len(REFUSED) == len({pair.name for pair in REFUSED})


@pytest.mark.parametrize("pair", REFUSED, ids=[pair.name for pair in REFUSED])
def test_each_one_points_at_its_place(pair: Pair) -> None:
    error = refused(pair.sql)
    said = str(error)
    place = re.match(r"line (\d+), column (\d+): (.+)\n  (.*)\n  ( *)(\^+)", said)
    assert place is not None, said
    line = pair.sql.splitlines()[int(place[1]) - 1]
    assert 1 <= int(place[2]) <= len(line) + 1
    assert place[4].strip(".").strip() in line
    words = said.replace(pair.sql, "")
    assert not re.search(r"pv\.|session\.|=True|QueryError|sqlglot|exp\.|Expression|object at", words)
    assert place[3].rstrip()[-1] in ".?" or (error.remedy is not None and place[3].endswith(error.remedy.sql)), said
    assert {error.render(face) for face in ("python", "sql", "terminal", "policy", "http")} == {said}


@pytest.mark.parametrize("pair", REFUSED[::7], ids=[pair.name for pair in REFUSED[::7]])
def test_each_one_is_data(pair: Pair) -> None:
    error = refused(pair.sql)
    told = error.to_json()
    assert told["what"]
    assert told["what"] in told["message"]
    at = told["subject"]["at"]
    assert pair.sql[at["start"]] == pair.sql.splitlines()[at["line"] - 1][at["column"] - 1]
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize("text", ["Write", ". Write: pv.x", "Write, for example: no", "it. Did you mean 'x'?"])
def test_a_text_that_looks_like_advice_takes_nothing_from_the_error(text: str) -> None:
    error = refused("SELECT COUNT(*) FROM people WHERE age = '" + text.replace("'", "''") + "'")
    assert f"an integer in 0..110 and the text {text!r} can't be compared" in error.what
    assert error.what in error.render("terminal")


@pytest.mark.parametrize("name", hints.FUNCTIONS)
def test_a_refused_function_never_suggests_itself(name: str) -> None:
    for written in (name, name.lower()):
        assert "Did you mean" not in hints.call(written)[1]


PER_PERSON = "(SELECT person_id, SUM(amount) AS hr, COUNT(*) AS seasons FROM visits GROUP BY person_id) AS t"


@pytest.mark.parametrize(
    ("key", "table"),
    [
        ("seasons", PER_PERSON),
        ("hr", PER_PERSON),
        ("FLOOR(hr / 20)", PER_PERSON),
        ("FLOOR((hr - 5) / 0.5) * 0.5", PER_PERSON),
        ("hr + seasons", PER_PERSON),
        ("income", "people"),
        ("income + rate", "people"),
        ("FLOOR(income)", "people"),
        ("seen", "people"),
    ],
)
def test_what_is_proposed_for_groups_can_be_asked(key: str, table: str) -> None:
    for by in (key, "1", "k"):
        remedy = refused(f"SELECT {key} AS k, COUNT(*) AS n FROM {table} GROUP BY {by}").remedy
        assert remedy is not None
        asked(f"SELECT {remedy.sql} AS k, COUNT(*) AS n FROM {table} GROUP BY k")


def test_a_dash_for_an_underscore_is_told_at_once() -> None:
    from privet import boolean, each_row
    from privet.sql import parse
    from privet.tables.relation import Table
    from privet.tables.schema import Schema

    table = Table(Schema.declare("penguins_raw", protect=each_row(), columns={"ok": boolean()}), None)
    with pytest.raises(QueryError, match=r"there is no table penguins-raw\. Write penguins_raw\."):
        parse("SELECT COUNT(*) FROM penguins-raw", {"penguins_raw": table})


OTHER_NAMES = {
    "region": "line", "age": "stops", "income": "fare", "hours": "tickets", "smoker": "paid", "name": "title",
    "day": "departed", "town": "place", "pay": "price",
}  # fmt: skip


@pytest.mark.parametrize("pair", some(REFUSED, every=3), ids=[pair.name for pair in some(REFUSED, every=3)])
def test_what_is_suggested_has_columns_of_the_analyst(pair: Pair) -> None:
    """The same statements about a table whose columns have other names: no example names a column that is not there."""
    word = re.compile(rf"\b({'|'.join(OTHER_NAMES)})\b")
    schema = PEOPLE.schema
    renamed = replace(schema, columns=tuple((OTHER_NAMES.get(name, name), kind) for name, kind in schema.columns))
    tables = {"people": Table(renamed, None), "visits": VISITS, "readings": ROWS}
    with pytest.raises(QueryError) as caught:
        parse(word.sub(lambda found: OTHER_NAMES[found[1]], pair.sql), tables, {"regions": REGIONS})
    error = caught.value
    suggested = [error.allowed, *((error.remedy.advice, error.remedy.sql) if error.remedy else ())]
    names = [name for text in suggested for name in examples.NAME.findall(text)]
    assert names == [], suggested


def test_the_example_of_a_from_clause_names_a_table_that_there_is() -> None:
    rows = pv.table("Visits 2024", pa.table({"age": [1]}), protect=pv.each_row(), columns={"age": pv.integer(0, 9)})
    with pytest.raises(QueryError, match=r'Write, for example: FROM "Visits 2024"'):
        parse("SELECT COUNT(*)", {rows.name: rows})
