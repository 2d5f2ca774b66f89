"""From a statement to an arranged answer, through a session; what is hidden is paid for."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from tests.prices import loss

import privet as pv
from privet.sql import parse
from privet.tables.query import Query
from privet.tables.relation import Table

SIZES = {"north": 9_000, "south": 1_000, "east": 4_000, "west": 0}


@pytest.fixture(scope="module")
def people() -> Table:
    regions = [region for region, size in SIZES.items() for _ in range(size)]
    incomes = [{"north": 10_000, "south": 90_000, "east": 50_000}[region] for region in regions]
    frame = pa.table({"id": list(range(len(regions))), "region": regions, "income": incomes})
    return pv.table(
        "people",
        frame,
        protect=pv.person("id", max_rows=1),
        columns={"region": pv.keys("west", "north", "south", "east"), "income": pv.number(0, 100_000)},
    )


@pytest.fixture
def session(people: Table) -> pv.Session:
    return pv.Session([people], budget=pv.PureDP(1000), ledger=None)


def asked(people: Table, rest: str) -> Query:
    return parse(f"SELECT region, COUNT(*) AS n FROM people GROUP BY region {rest}", {"people": people}, {})


@pytest.mark.parametrize(
    ("rest", "regions"),
    [
        ("", ["west", "north", "south", "east"]),
        ("HAVING n > 500", ["north", "south", "east"]),
        ("HAVING n > 500 AND region <> 'south'", ["north", "east"]),
        ("HAVING NOT region IN ('south', 'east')", ["west", "north"]),
        ("HAVING n BETWEEN 500 AND 5000 OR region = 'west'", ["west", "south", "east"]),
        ("HAVING AVG(income) > 30000 AND COUNT(*) > 500", ["south", "east"]),
        ("ORDER BY n DESC", ["north", "east", "south", "west"]),
        ("ORDER BY n", ["west", "south", "east", "north"]),
        ("ORDER BY region DESC", ["east", "south", "north", "west"]),
        ("HAVING n > 500 ORDER BY AVG(income) DESC", ["south", "east", "north"]),
        ("ORDER BY n DESC LIMIT 2", ["north", "east"]),
        ("LIMIT 2", ["west", "north"]),
        ("LIMIT 50000", ["west", "north", "south", "east"]),
        ("HAVING n > 500 LIMIT 2", ["north", "south"]),
        ("HAVING n > 1000000", []),
    ],
)
def test_rows(session: pv.Session, people: Table, rest: str, regions: list[str], tmp_path: Path) -> None:
    query = asked(people, rest)
    answer = session.release(query, epsilon=10)
    assert answer.values("region") == regions
    assert answer.keys == [(region,) for region in regions]
    assert len(answer) == len(answer.values("n")) == len(answer.too_noisy("n")) == len(answer.interval("n")[0])
    for region, found in zip(regions, answer.values("n"), strict=True):
        assert abs(found - SIZES[region]) < 50
    assert answer.columns == ("region", "n")
    frame = answer.to_arrow()
    assert frame.column("region").to_pylist() == regions
    assert frame.schema.names == ["region", "n", "n_low", "n_high", "n_noisy"]
    assert frame.schema.field("n").type == pa.int64()
    assert [row["region"] for row in answer.to_dicts()] == regions == list(answer.to_pandas()["region"])
    text = str(answer)
    assert ("groups are not shown" in text or "group is not shown" in text) == (len(regions) < 4)
    assert "<table>" in answer._repr_html_()
    if len(regions) == 2:  # drawing takes its time
        assert answer.plot(path=tmp_path / "answer.png") is not None
    elif not regions:
        with pytest.raises(pv.UserError, match="nothing to draw"):
            answer.plot()


@pytest.mark.parametrize(
    ("rest", "warned"),
    [
        ("", False),
        ("LIMIT 2", False),
        ("HAVING region <> 'west'", False),
        ("ORDER BY n", False),
        ("ORDER BY region LIMIT 2", False),
        ("HAVING n > 500", True),
        ("HAVING AVG(income) > 500", True),
        ("ORDER BY n DESC LIMIT 2", True),
    ],
)
def test_a_choice_by_noise_is_said(session: pv.Session, people: Table, rest: str, warned: bool) -> None:
    query = asked(people, rest)
    answer = session.release(query, epsilon=1)
    assert ("these intervals hold less often than stated" in str(answer)) == warned
    assert ("Noisy values decide" in session.explain(query, epsilon=1)) == warned
    assert answer.plan.chosen_by_noise == warned


def test_hidden_numbers_are_measured_and_paid_for(session: pv.Session, people: Table) -> None:
    plain, hidden = asked(people, ""), asked(people, "HAVING AVG(income) > 30000")
    assert [name for name, _ in hidden.aggregates] == ["n", "avg_income"]
    text = session.explain(hidden, epsilon=1, assuming=500)
    assert "Measured and paid for, but not shown: avg_income." in text
    assert "avg_income  within" in text
    alone, both = session.plan(plain, epsilon=1), session.plan(hidden, epsilon=1)
    assert loss(both.guarantee()) == loss(alone.guarantee()) == 1  # epsilon is for the whole question,
    assert both.expected("n") > alone.expected("n")  # type: ignore[operator]  # so that what is shown gets less of it
    within = {"n": Fraction(20)}
    cheap = session.plan(plain, within=within)
    dear = session.plan(hidden, within={**within, "avg_income": Fraction(100)}, assuming=500)
    assert dear.epsilon > cheap.epsilon
    before = session.spent.epsilon
    answer = session.release(hidden, epsilon=2)
    assert session.spent.epsilon - before == 2 == loss(answer.spent)
    assert answer.columns == ("region", "n")
    with pytest.raises(pv.UserError, match="no numeric column 'avg_income'"):
        answer.values("avg_income")


def test_the_certificate_is_of_all_groups(session: pv.Session, people: Table) -> None:
    query = asked(people, "HAVING AVG(income) > 30000 ORDER BY n LIMIT 1")
    answer = session.release(query, epsilon=10)
    document = answer.certificate.document
    assert set(document["answer"]) == {"n", "avg_income"}
    assert len(document["answer"]["n"]["values"]) == 4
    assert all(len(part) == 4 for part in answer.noisy)
    assert pv.verify(answer.certificate).rules
    assert "having avg_income > 30000 order by n limit 1" in pv.verify(answer.certificate).promise
    assert answer.cells is not None
    assert len(answer.cells["n"].values) == 4


def test_two_keys_are_drawn_side_by_side_only_if_all_are_there(tmp_path: Path) -> None:
    frame = pa.table({"id": list(range(100)), "a": ["x", "y"] * 50, "b": [True, True, False, False] * 25})
    table = pv.table(
        "t", frame, protect=pv.person("id", max_rows=1), columns={"a": pv.keys("x", "y", "z"), "b": pv.boolean()}
    )
    session = pv.Session([table], budget=pv.PureDP(100), ledger=None)
    for rest in ("", "ORDER BY n DESC", "LIMIT 3", "HAVING n > 5", "ORDER BY b, a"):
        query = parse(f"SELECT a, b, COUNT(*) AS n FROM t GROUP BY a, b {rest}", {"t": table}, {})
        session.release(query, epsilon=20).plot(path=tmp_path / "bars.png")


def test_a_question_in_sql_and_in_python_is_the_same_question(session: pv.Session, people: Table) -> None:
    query = asked(people, "HAVING n > 500 ORDER BY n DESC LIMIT 2")
    n = pv.col("n")
    same = people.group_by("region").agg(n=pv.count()).having(n > 500).order_by("n", descending=True).limit(2)
    assert query == same
    assert session.plan(query, epsilon=1) == session.plan(same, epsilon=1)
