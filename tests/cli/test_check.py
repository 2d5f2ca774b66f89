"""`privet check`: a policy and its data, compared before anybody asks."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.asking import POLICY, Shell, damaged, made

from privet.sources.inspection import _value


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(made(tmp_path))
    return Shell(capsys, monkeypatch)


def test_a_policy_that_fits(shell: Shell) -> None:
    pq.write_table(pa.table({"code": ["north", "south"], "area": [1, 2]}), "regions.parquet")
    with Path("privet.toml").open("a") as policy:
        policy.write('[public.regions]\nsource = "regions.parquet"\nkey = "code"\n')
    told = shell("check").out
    assert told == (
        "Not private: exact counts and values of the data, for the steward's eyes only. Do not publish them.\n"
        "people:\n  people   5 columns fit  private\n"
        "            300 rows of 300 people, one row each\n"
        "    region  50 rows (16.7 %) with 1 undeclared value counted as 'elsewhere': 'west' (50 rows)\n"
        "  regions  2 columns fit  public\n"
        "OK: privet.toml fits its data. Nothing was spent.\n"
    )
    assert shell("check", "privet.toml").out == told
    assert not Path("people.ledger").exists()


def test_everything_that_does_not_fit_is_told(shell: Shell) -> None:
    other = POLICY.replace('ledger = "people.ledger"', "").replace("datasets.people", "datasets.more")
    other = other.replace("tables.people", "tables.more").replace("people.parquet", "none.parquet")
    Path("wrong.toml").write_text(POLICY.replace("region = ", "regoin = ") + other)
    done = shell.run("check", "wrong.toml")
    assert done.code == 2
    assert "columns.regoin: there is no column 'regoin'" in done.err
    assert "datasets.more.tables.more.source: there is no file" in done.err
    assert not Path("people.ledger").exists()


def test_rows_that_are_private_and_public(shell: Shell) -> None:
    with Path("privet.toml").open("a") as policy:
        policy.write('[public.everyone]\nsource = "people.parquet"\nkey = "person_id"\n')
    assert "so they can't be public" in shell.run("check").err


def test_an_engine_that_does_not_read_the_tables(shell: Shell) -> None:
    """It is refused wherever the policy is read, and no ledger is created."""
    Path("privet.toml").write_text(POLICY.replace("budget =", 'engine = "postgres"\nbudget ='))
    question = "SELECT COUNT(*) FROM people"
    for command in (["check"], ["explain", question, "--epsilon", "1"], ["query", question, "--epsilon", "1"]):
        done = shell.run(*command)
        assert done.code == 2
        assert "the engine 'postgres' can't read all tables of this dataset. Leave the engine out" in done.err
    assert not Path("people.ledger").exists()


def test_the_policy_and_the_ledger(shell: Shell) -> None:
    shell("query", "SELECT COUNT(*) FROM people", "--epsilon", "1")
    Path("privet.toml").write_text(POLICY.replace("{ epsilon = 3 }", "{ epsilon = 4 }"))
    before = Path("people.ledger").read_bytes()
    assert "people: the policy allows epsilon 4, but the ledger allows epsilon 3." in shell("check").out
    (told,) = json.loads(shell("check", "--json").out)["datasets"]["people"]["differences"]
    assert told.startswith("the policy allows epsilon 4")
    assert Path("people.ledger").read_bytes() == before


ODD: dict[str, list[Any]] = {
    "person_id": [1, 1, 1, 2, None, 3, 3, 4, 5, 6],
    "region": ["north", " north", "North", "south", "x", None, "north", "y", "y", "elsewhere"],
    "age": [30, -1, 200, 111, 5, None, 40, 110, 0, 7],
    "income": [1.0, float("nan"), float("inf"), -5.0, 2e5, 200_000.1, None, 0.0, 3.0, 4.0],
    "smoker": [True, None, False, True, True, True, True, True, True, True],
    "day": [date(2025, 1, 1), date(2024, 12, 31), date(2025, 3, 31), date(2030, 1, 1), *[None] * 6],
}


def test_every_row_is_compared_with_the_policy(shell: Shell) -> None:
    """Expected by hand: 10 rows of 6 people, of whom two have more than the one row that the policy allows."""
    pq.write_table(pa.table(ODD), "people.parquet")
    strict = POLICY.replace(', other = "elsewhere"', "")
    Path("strict.toml").write_text(strict)
    done = shell.run("check", "strict.toml")
    assert done.code == 1
    region = (
        "  ! region  6 rows (60.0 %) with 5 undeclared values left out, or read as missing: 'y' (2 rows), "
        "' north' (1 row, which looks like 'north'), 'North' (1 row, which looks like 'north'), 'elsewhere' (1 row), "
        "'x' (1 row)"
    )
    assert done.out.splitlines()[1:] == [
        "people:",
        "  people  5 columns fit  private",
        "            10 rows of 6 people, 3 rows at most",
        "  !         1 row (10.0 %) without an id left out",
        "  !         2 people (33.3 %) with more than 1 row: 3 rows (30.0 %) left out by the cap",
        region,
        "  ! age     1 value (11.1 %) below 0 clamped; seen -1 to 200",
        "  ! age     2 values (22.2 %) above 110 clamped; seen -1 to 200",
        "  ! income  1 value (12.5 %) below 0 clamped; seen -5 to inf",
        "  ! income  2 values (25.0 %) above 200,000 clamped; seen -5 to inf",
        "  ! day     1 value (25.0 %) below 2025-01-01 clamped; seen 2024-12-31 to 2030-01-01",
        "  ! day     1 value (25.0 %) above 2025-03-31 clamped; seen 2024-12-31 to 2030-01-01",
        "9 problems, marked with !. Nothing was spent.",
    ]
    assert not Path("people.ledger").exists()
    found = shell.run("check", "strict.toml", "--json")
    assert found.code == 1
    tree = json.loads(found.out)
    assert "Not private" in tree["warning"]
    assert (tree["fits"], tree["problems"]) == (False, 9)
    table = tree["datasets"]["people"]["tables"]["people"]
    assert table["people_over_the_cap"] == 2
    assert table["columns"]["region"]["missing"] == 1
    assert table["columns"]["region"]["undeclared"][1] == {"value": " north", "rows": 1, "like": "north"}
    assert len(table["problems"]) == 9


def test_little_is_noted_and_is_no_problem(shell: Shell) -> None:
    rows = {name: [values[0]] * 1000 for name, values in ODD.items()}
    rows |= {"person_id": [1, *range(1, 1000)], "age": [200, *[30] * 999]}
    pq.write_table(pa.table(rows), "people.parquet")
    told = shell("check").out
    assert "    age  1 value (0.1 %) above 110 clamped; seen 30 to 200\n" in told
    assert "1 person (0.1 %) with more than 1 row: 1 row (0.1 %) left out by the cap\n" in told
    assert told.endswith("OK: privet.toml fits its data. Nothing was spent.\n")


def test_bounds_and_diagnoses_are_paid_for(shell: Shell) -> None:
    told = shell("bounds", "people", "income", "--epsilon", "1", "--certificate", "bounds.json").out
    assert "In SQL     CLIP(income, " in told
    assert "Spent epsilon 1; 2 left." in told
    assert "rules      passed: epsilon 1, for bounds = approx_bounds(income)" in shell("verify", "bounds.json").out
    again = json.loads(shell("bounds", "people", "income", "--epsilon", "1", "--json").out)
    assert (again["paid_before"], again["expression"]) == (True, "income")
    per_person = "SELECT person_id, SUM(income) AS total FROM people GROUP BY person_id"
    assert "CLIP(total, " in shell("bounds", per_person, "total", "--epsilon", "0.5").out
    told = shell("diagnose", "SELECT AVG(income) FROM people", "--epsilon", "0.5").out
    assert "people with more than 1 row " in told
    assert "income clamped down to 200,000" in told
    tree = json.loads(shell("diagnose", "SELECT AVG(income) FROM people", "--epsilon", "0.5", "--json").out)
    assert (len(tree["shares"]), tree["paid_before"]) == (4, True)
    wrong = shell.run("bounds", "people", "incom", "--epsilon", "1")
    assert (wrong.code, "Did you mean" in wrong.err) == (2, True)
    assert shell.run("diagnose", "SELECT AVG(income) FROM people", "--epsilon", "1", "--ceiling", "1").code == 2


def test_a_damaged_file(shell: Shell) -> None:
    damaged(Path("people.parquet"), "income")
    done = shell.run("check")
    assert (done.code, done.out) == (2, "")
    assert "the rows of 'people' can't be read" in done.err


def test_rows_that_contradict_what_keys_lie_within_are_counted(shell: Shell) -> None:
    """Two of six rows have a town of another region; the parents are integers, which a policy writes as texts."""
    zones, towns = [1, 1, 2, 2, 1, None], ["a", "b", "c", "a", "c", "a"]
    pq.write_table(pa.table({"zone": zones, "town": towns}), "places.parquet")
    Path("places.toml").write_text(
        """
        ledger = "places.ledger"
        [datasets.places]
        budget = { epsilon = 1 }
        adjacency = "add/remove"
        [datasets.places.tables.places]
        source = "places.parquet"
        protect = "each row"
        [datasets.places.tables.places.columns]
        zone = { keys = [1, 2] }
        town = { keys = { 1 = ["a", "b"], 2 = ["c"] }, within = "zone" }
        """
    )
    done = shell.run("check", "places.toml")
    assert done.code == 1
    assert "  ! town  2 rows (33.3 %) in another zone than declared left out of groups by both" in done.out
    tree = json.loads(shell.run("check", "places.toml", "--json").out)
    found = tree["datasets"]["places"]["tables"]["places"]["columns"]["town"]["contradicting"]
    assert found == {"within": "zone", "rows": 2}
    assert "town  a, b, c; each within one zone" in shell("schema", "--policy", "places.toml").out


def test_zero_has_no_sign() -> None:
    assert [_value(each) for each in (-0.0, 0.0, -0.5)] == ["0", "0", "-0.5"]
