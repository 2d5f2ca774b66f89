"""M1: a condition that the declaration says can never be true is refused before anything is paid, in every way of
asking; and conditions on a key leave out the groups that they leave empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.asking import Shell, made

import privet as pv
from privet.errors import QueryError
from privet.tables.query import Query
from privet.tables.relation import Table

COUNTRIES = ["USA", "CAN", "DOM", "Venezuela"]


def table(adjacency: str = "add/remove") -> Table:
    count = 3000
    rows = {
        "id": list(range(count)),
        "country": [[*COUNTRIES, "Panama"][i % 5] for i in range(count)],
        "land": [[*COUNTRIES, "Panama"][i % 5] for i in range(count)],
        "year": [2000 + i % 20 for i in range(count)],
        "age": [i % 90 for i in range(count)],
        "income": [float(i) * 100 for i in range(count)],
        "debut": pa.array([14_000 + i % 2_000 for i in range(count)], pa.int32()).cast(pa.date32()),
    }
    return pv.table(
        "players",
        pa.table(rows),
        protect=pv.person("id", max_rows=1),
        adjacency=adjacency,
        columns={
            "country": pv.keys(*COUNTRIES),
            "land": pv.keys(*COUNTRIES, other="elsewhere"),
            "year": pv.integer(1871, 2020),
            "age": pv.integer(0, 110),
            "income": pv.number(0, 200_000),
            "debut": pv.date("1871-05-04", "2016-12-31"),
        },
    )


PLAYERS = table()


@pytest.fixture
def session() -> Iterator[pv.Session]:
    with pv.Session([PLAYERS], budget=pv.PureDP(100), ledger=None) as made:
        yield made


MISTAKES = [
    ("country = 'Panama'", pv.col("country") == "Panama", "Venezuela"),
    ("country = 'usa'", pv.col("country") == "usa", "USA"),
    ("land = 'Panama'", pv.col("land") == "Panama", "counts as 'elsewhere'"),
    ("country IN ('USA', 'Panama')", pv.col("country").is_in(["USA", "Panama"]), "'Panama'"),
    ("NOT (country = 'Panama')", ~(pv.col("country") == "Panama"), "'Panama'"),
    ("country LIKE 'Pan%'", pv.col("country").starts_with("Pan"), "'Venezuela'"),
    ("age > 5 OR country = 'Panama'", (pv.col("age") > 5) | (pv.col("country") == "Panama"), "'Panama'"),
    ("debut > '2030-01-01'", pv.col("debut") > date(2030, 1, 1), "1871-05-04..2016-12-31"),
    ("income > 500000", pv.col("income") > 500_000, "0..200000"),
    ("income < 0", pv.col("income") < 0, "0..200000"),
    ("age = 17.5", pv.col("age") == 17.5, "17 and 18"),
    ("age BETWEEN 65 AND 18", pv.col("age").is_between(65, 18), ""),
    ("age > year", pv.col("age") > pv.col("year"), ""),
]


@pytest.mark.parametrize(("sql", "condition", "named"), MISTAKES, ids=[sql for sql, _, _ in MISTAKES])
def test_refused_in_every_way_of_asking(session: pv.Session, sql: str, condition: pv.Expr, named: str) -> None:
    asked: list[Query | str] = [
        PLAYERS.where(condition).agg(n=pv.count()),
        f"SELECT COUNT(*) AS n FROM players WHERE {sql}",
        f"SELECT COUNT(*) AS n FROM (SELECT id, age FROM players WHERE {sql}) AS t WHERE age > 3",
    ]
    if named:
        asked += [
            PLAYERS.agg(n=pv.sum(pv.when(condition, 1).otherwise(0))),
            PLAYERS.with_columns(flag=condition).agg(n=pv.count("flag")),
            PLAYERS.per_person(n=pv.sum(pv.when(condition, 1).otherwise(0))).where(pv.col("n") > 0).agg(n=pv.count()),
            PLAYERS.group_by(is_it=condition).agg(n=pv.count()),
            f"SELECT COUNT(CASE WHEN {sql} THEN 1 END) AS n FROM players",
            f"SELECT n FROM (SELECT id, SUM(CASE WHEN {sql} THEN 1 ELSE 0 END) AS n FROM players GROUP BY id) AS t",
        ]
    for query in asked:
        for way in (session.plan, session.explain, session.release):
            with pytest.raises(QueryError) as caught:
                way(query, epsilon=1)
            assert named in str(caught.value)
            assert ("pv." in str(caught.value)) <= isinstance(query, Query)
    assert session.spent.epsilon == 0


def test_refused_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made(tmp_path))
    shell = Shell(capsys, monkeypatch)
    for command in (["query"], ["explain"], ["query", "--dry-run"]):
        said = shell.run(*command, "SELECT COUNT(*) FROM people WHERE region = 'North'", "--epsilon", "1")
        assert said.code != 0
        assert "region can never be 'North'" in said.err
        assert "Write, for example: region = 'north'" in said.err
    assert shell.spent() == 0


def test_always_true_is_answered_with_a_note(session: pv.Session) -> None:
    query = PLAYERS.where(pv.col("income") > -1).agg(n=pv.count())
    note = "income > -1 is true for every row where income is not missing, because income is a number in 0..200000."
    assert note in " ".join(session.explain(query, epsilon=1).split())
    assert note in session.release(query, epsilon=1).notes()
    answer = session.release("SELECT COUNT(*) AS n FROM players WHERE income > -1", epsilon=1)
    assert note in " ".join(str(answer).split())


@pytest.mark.parametrize("sign", ["<>", "!="])
def test_a_key_that_is_not_listed_is_refused_where_it_would_leave_nothing_out(session: pv.Session, sign: str) -> None:
    with pytest.raises(QueryError, match=r"country differs from 'usa' for every key.* country <> 'USA'"):
        session.release(f"SELECT COUNT(*) AS n FROM players WHERE country {sign} 'usa'", epsilon=1)
    with pytest.raises(QueryError, match=r"differs from.*pv\.col\(\"country\"\) != \"USA\""):
        session.release(PLAYERS.where(pv.col("country") != "usa").agg(n=pv.count()), epsilon=1)


def test_at_the_bound_is_answered_with_a_note(session: pv.Session) -> None:
    found = session.release("SELECT COUNT(*) AS n FROM players WHERE income >= 200000", epsilon=50)
    assert abs(found.values("n")[0] - 1000) < 5
    assert "income >= 200000 also matches values above 200000, because income is clamped to 0..200000." in found.notes()


@pytest.mark.parametrize(
    ("by", "sql", "condition", "named"),
    [
        ("country", "country = 'usa'", pv.col("country") == "usa", "USA"),
        ("country", "country IN ('USA', 'pan')", pv.col("country").is_in(["USA", "pan"]), "'pan'"),
        ("age", "age > 200", pv.col("age") > 200, "0..110"),
        ("age", "n > 5 AND age > 200", (pv.col("n") > 5) & (pv.col("age") > 200), "0..110"),
        ("age", "age > 5 AND age < 6", (pv.col("age") > 5) & (pv.col("age") < 6), "no group"),
        (
            "country",
            "country <> 'USA' AND country = 'USA'",
            (pv.col("country") != "USA") & (pv.col("country") == "USA"),
            "no group",
        ),
    ],
)
def test_having_on_a_key_that_no_group_has_is_refused(
    session: pv.Session, by: str, sql: str, condition: pv.Expr, named: str
) -> None:
    with pytest.raises(QueryError) as caught:
        session.release(f"SELECT {by}, COUNT(*) AS n FROM players GROUP BY {by} HAVING {sql}", epsilon=1)
    assert named in str(caught.value)
    assert "pv." not in str(caught.value)
    assert "clamped" not in str(caught.value)
    with pytest.raises(QueryError) as caught:
        PLAYERS.group_by(by).agg(n=pv.count()).having(condition)
    assert named in str(caught.value)
    assert session.spent.epsilon == 0


def test_having_is_looked_at_for_the_groups_that_are_left(session: pv.Session) -> None:
    left = "SELECT year, COUNT(*) AS n FROM players WHERE year >= 2010 GROUP BY year HAVING year"
    with pytest.raises(QueryError, match="no group can satisfy this"):
        session.release(f"{left} < 2010", epsilon=1)
    assert session.release(f"{left} = 2010 AND n > -1000", epsilon=1).values("year") == [2010]


def test_conditions_on_the_answer_are_not_conditions_on_rows(session: pv.Session) -> None:
    """HAVING reads released numbers, of which nothing is known before."""
    text = "SELECT country, COUNT(*) AS n FROM players GROUP BY country HAVING COUNT(*) > 100000000"
    assert len(session.release(text, epsilon=1)) == 0


# --- groups ---------------------------------------------------------------------------------------

SEVEN = "SELECT year, COUNT(*) AS n FROM players WHERE year BETWEEN 2010 AND 2016 GROUP BY year"


def test_seven_years_are_seven_groups(session: pv.Session) -> None:
    found = session.release(SEVEN, epsilon=50)
    assert found.values("year") == list(range(2010, 2017))
    assert all(abs(n - 150) < 5 for n in found.values("n"))
    assert [group["year"] for group in found.to_dicts()] == list(range(2010, 2017))
    assert pv.verify(found.certificate).rules
    assert found.certificate.document["derived"]["groups"][0]["values"] == [str(y) for y in range(2010, 2017)]
    assert len(found.certificate.document["noisy"][0]) == 7


def test_everything_is_computed_for_seven_groups(session: pv.Session) -> None:
    made = session.plan(SEVEN, epsilon=1, simultaneous=True)
    assert made.groups == 7
    assert made.level == 1 - Fraction(5, 100) / 7
    assert [statement.groups for statement in made.statements()] == [7]
    assert [part.groups for part in made.noised] == [7]
    assert made.statements()[0].domains() == (tuple(range(2010, 2017)),)
    assert "7 public values (2010, 2011, 2012, ... 2016)" in made.explain()


def test_one_group_moves_as_far_as_one_group_can() -> None:
    """Where a row can be replaced by another it moves two groups, or one if there is one."""
    players = table("replace")
    two = pv.col("country").is_in(["USA", "CAN"])
    with pv.Session([players], budget=pv.PureDP(9), ledger=None) as session:
        of_two = session.plan(players.where(two).group_by("country").agg(n=pv.count()), epsilon=1)
        of_one = session.plan(
            players.where(pv.col("country") == "USA").group_by("country").agg(n=pv.count()), epsilon=1
        )
    assert [part.move.total for part in of_two.noised] == [2]
    assert [part.move.total for part in of_one.noised] == [1]


def test_bins_and_dates(session: pv.Session) -> None:
    adults = PLAYERS.where(pv.col("age") >= 18).group_by(pv.bins("age", [0, 18, 65])).agg(n=pv.count())
    assert session.release(adults, epsilon=1).values("age") == ["[18, 65]"]
    text = "SELECT YEAR(debut) AS y, COUNT(*) AS n FROM players WHERE debut >= '2010-01-01' GROUP BY y"
    found = session.release(text, epsilon=50)
    assert found.values("y") == list(range(2010, 2017))
    days = PLAYERS.source.rows.column("debut").to_pylist()
    for year, n in zip(found.values("y"), found.values("n"), strict=True):
        assert abs(n - sum(day.year == year for day in days)) < 5


def test_few_days_of_many(session: pv.Session) -> None:
    text = "SELECT debut, COUNT(*) AS n FROM players WHERE debut BETWEEN '2010-05-01' AND '2010-05-31' GROUP BY debut"
    assert len(session.release(text, epsilon=1)) == 31
    with pytest.raises(QueryError, match="more than 10,000 groups"):
        session.plan("SELECT debut, COUNT(*) AS n FROM players GROUP BY debut", epsilon=1)


def test_no_group_is_left(session: pv.Session) -> None:
    query = PLAYERS.where(pv.col("age") >= 100).group_by(pv.bins("age", [0, 18, 65])).agg(n=pv.count())
    with pytest.raises(QueryError, match="these conditions exclude every group of age"):
        session.plan(query, epsilon=1)
    assert session.spent.epsilon == 0


def test_the_same_seven_groups_are_recalled(session: pv.Session) -> None:
    first = session.release(SEVEN, epsilon=1)
    again = session.release(SEVEN, epsilon=1)
    assert again.values("n") == first.values("n")
    assert session.spent.epsilon == 1
