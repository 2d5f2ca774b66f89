"""Every registered kind of column is complete; and toy kinds, one record each, work from a policy to a certificate."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.test_cli import run
from tests.policy.schemas import fits, plain
from tests.tables.toys import RATING, SCORE, rating, score

import privet as pv
from privet.errors import UserError
from privet.policy import columns, parse, schema
from privet.policy.proposals import proposal
from privet.policy.shorthand import kind_only, shorthand
from privet.sources import arrow, objects, readings
from privet.sources.csv import casting, parsing
from privet.sources.csv.notation import Notation
from privet.tables.codec import decode, encode
from privet.tables.kinds import KINDS, Kind, usual
from privet.tables.schema import Column, Schema

ALL = [*KINDS.values(), RATING, SCORE]
EVERY = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)

STORED: dict[str, Any] = {
    "integer": pa.array([1, 2, None]),
    "float": pa.array([0.5, 2.0, None]),
    "decimal": pa.array([Decimal("1.5"), Decimal(2), None]),
    "boolean": pa.array([True, False, None]),
    "text": pa.array(["north", "x", None]),
    "date": pa.array([date(2024, 5, 1), date(1800, 1, 1), None]),
    "timestamp": pa.array([datetime(2024, 5, 1, 8), datetime(1800, 1, 1), None]),
}
"""A column of each family."""


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "rating", RATING)
    monkeypatch.setitem(KINDS, "score", SCORE)


def declared(kind: Kind) -> Column:
    made = eval(kind.python, {"pv": pv, "rating": rating, "score": score})
    assert isinstance(made, Column)
    return made


# --- every kind ---------------------------------------------------------------------------------


@EVERY
def test_its_examples_declare_it(kind: Kind) -> None:
    column = declared(kind)
    value = tomllib.loads(f"x = {kind.policy}", parse_float=Decimal)["x"]
    read = columns.declaration(value), columns.declaration(shorthand("x", kind.line))
    for each in (column, *(one.column(str) for one in read)):
        assert each.kind_name == kind.name
        assert each.type.kind == kind.base
    assert {one.kind for one in read} == {kind}
    assert columns.example(value) == kind.policy


@EVERY
def test_its_name_alone_is_enough_or_refused(kind: Kind) -> None:
    if kind.value is None:
        assert columns.declaration(kind.name).column(str) == declared(kind)
        return
    with pytest.raises(UserError, match=kind.needs):
        columns.declaration(kind.name)
    assert kind_only("x", kind.name) == kind.base


@EVERY
def test_its_json_is_read_back(kind: Kind) -> None:
    made = Schema("t", pv.each_row(), pv.Adjacency.REPLACE, (("x", declared(kind)),))
    again = decode(json.loads(json.dumps(encode(made))))
    assert again == made
    assert again.columns[0][1].kind_name == kind.name


@EVERY
def test_sources_and_engines_read_it(kind: Kind) -> None:
    """From each family that can hold it, whatever the rows hold."""
    reading = readings.reading_of(declared(kind))
    assert reading == readings.reading_of(kind.name)
    assert objects.convert([None, object()], reading) == [None, None]
    assert casting.cast(pa.array(["", "NA"]), reading, Notation()).values.type == arrow.DECLARED[reading]
    assert parsing.expected(reading, None)
    for family in readings.HOLD[reading]:
        rows = pa.table({"x": STORED[family]})
        table = pv.table("t", rows, protect=pv.each_row(), columns={"x": declared(kind)})
        with pv.Session([table], budget=pv.PureDP(1000), ledger=None) as session:
            answer = session.release("SELECT COUNT(x) AS n FROM t", epsilon=900)
        present = 1 if reading == "text" and kind.base == "keys" else 2  # what is not a key is missing
        assert answer.values("n") == [present]


@EVERY
def test_what_it_guesses_can_be_declared(kind: Kind) -> None:
    families = KINDS[kind.base].usual_for
    assert families or not kind.guesses
    for guess in kind.guesses:
        name = "_".join(group.split()[0] for group in guess.words)
        for family in families:
            proposed = proposal(name, family, date(2026, 5, 1))
            assert proposed.line == f"{kind.name} {guess.line}".strip().format(year=2026)
            assert columns.declaration(shorthand(name, proposed.line, family=family)).kind == kind
            assert proposed.form


def test_each_family_has_one_usual_kind() -> None:
    assert Counter(family for kind in ALL for family in kind.usual_for) == Counter([*STORED])
    assert all(family in readings.HOLD[readings.reading_of(usual(family).name)] for family in STORED)  # type: ignore[arg-type, union-attr]


def test_the_public_names() -> None:
    for kind in (each for each in ALL if each not in (RATING, SCORE)):
        assert getattr(pv, kind.name) is kind.declare


# --- a toy, end to end --------------------------------------------------------------------------

CSV = "reviewer,stars,score,shop\n" + "".join(f"r{i},{i % 5 + 1},{i % 101},{'ab'[i % 2]}\n" for i in range(300))


def test_from_a_csv_to_a_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reviews.csv").write_text(CSV, encoding="utf-8")
    told = run("init", "reviews.csv", "--sniff", "--yes", "--person", "reviewer", "--column", "shop=keys a b")
    assert "stars = { rating = [1, 5] }" in told
    policy = Path("privet.toml").read_text(encoding="utf-8")
    assert "stars = { rating = [1, 5] }" in policy
    assert 'score = "score"' in policy
    assert fits(plain(tomllib.loads(policy)), schema(), schema())

    run("import", "reviews.csv", "--policy", "privet.toml")
    described = json.loads(run("schema", "--json"))[0]["tables"]["reviews"]["columns"]
    assert described["stars"] == {"kind": "rating", "lower": 1, "upper": 5, "words": "an integer in 1..5"}
    assert described["score"] == {"kind": "score", "lower": 0, "upper": 100, "words": "an integer in 0..100"}

    sql = "SELECT stars, COUNT(*) AS n, AVG(score) AS points FROM reviews GROUP BY stars"
    run("query", sql, "--epsilon", "0.9", "--certificate", "answer.json", "-o", "answer.csv")
    assert [line[:2] for line in Path("answer.csv").read_text(encoding="utf-8").splitlines()[1:]] == [
        f"{stars}," for stars in range(1, 6)
    ]
    assert '"kind_name":"rating"' in Path("answer.json").read_text(encoding="utf-8").replace(" ", "")
    monkeypatch.delitem(KINDS, "rating")  # the type says all that is checked
    assert "rules      passed" in run("verify", "answer.json", "--ledger", "reviews.ledger")


def test_values_beyond_its_bounds_are_clamped() -> None:
    rows = pa.table({"stars": [-3, 9, 9, None], "score": [None, 500, 7, 7]})
    declared = {"stars": rating(1, 5), "score": score(required=True)}
    table = pv.table("reviews", rows, protect=pv.each_row(), columns=declared)
    with pv.Session([table], budget=pv.PureDP(10_000), ledger=None) as session:
        release = session.release("SELECT SUM(stars) AS stars, SUM(score) AS points FROM reviews", epsilon=9_000)
        assert release.to_dicts(intervals=False) == [{"stars": 11, "points": 114}]
        pv.verify(release.certificate)


def test_an_import_by_its_kind_alone(tmp_path: Path) -> None:
    source, target = tmp_path / "reviews.csv", tmp_path / "reviews.parquet"
    source.write_text(CSV, encoding="utf-8")
    report = pv.import_csv(source, target, columns={"stars": "rating", "score": score()}, id="reviewer")
    assert report.rows == 300
    assert pq.read_schema(target).field("stars").type == pa.int64()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('"rating"', r"a rating needs the worst and the best one\..*stars = { rating = \[1, 5\] }"),
        ("{ rating = [5, 1] }", r"lower must be less than upper.*stars = { rating = \[1, 5\] }"),
        ("{ rating = [1, 5], required = true }", "only integers, numbers, booleans and scores can be required"),
        ("{ rating = [1, 5], integer = [1, 5] }", "one kind, not both integer and rating"),
        ('{ type = "rating" }', 'type must be "boolean", "text" or "score"'),
    ],
)
def test_its_errors(written: str, said: str) -> None:
    text = f"""
        ledger = "reviews.ledger"
        [datasets.reviews]
        budget = {{ epsilon = 1 }}
        adjacency = "add/remove"
        [datasets.reviews.tables.reviews]
        source = "reviews.parquet"
        protect = "each row"
        columns = {{ stars = {written} }}
    """
    with pytest.raises(UserError, match=f"(?s){said}"):
        parse(text)


def test_an_unregistered_kind_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(KINDS, "rating")
    with pytest.raises(UserError, match="'rating' is not a kind of column"):
        shorthand("stars", "rating 1 5", family="float")
    with pytest.raises(UserError, match="a column has one of integer, number"):
        columns.declaration({"rating": [1, 5]})
