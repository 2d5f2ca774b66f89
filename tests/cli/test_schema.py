"""`privet schema`: what may be asked, by the policy alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.asking import Shell, made

from privet.policy import schema

TEXT = """\
people: epsilon 3 for all questions, add/remove

  people: protects each person_id; uses at most 1 row per person
    region  north, south; other values count as elsewhere
    age     an integer in 0..110
    income  a number in 0..200000
    smoker  a boolean
    day     a date in 2025-01-01..2025-03-31

In SQL: COUNT(*), COUNT(x), COUNT(DISTINCT person_id), SUM(x), AVG(x), VAR_POP(x), STDDEV_POP(x), \
MEDIAN(x), QUANTILE_CONT(x, 0.9), MIN(x), MAX(x), SUM(x) / SUM(y)
"""
MORE = """
ledger = "all.ledger"

[datasets.health]
budget = { epsilon = "1/3", delta = 1e-6 }
adjacency = "replace"
version = "2026-11"

[datasets.health.tables.visits]
source = "none.parquet"
protect = { person = "patient", max_groups = 2, max_rows_per_group = 5 }
columns = { cost = { number = [-1, 0.5] }, floor = { keys = [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8] }, "Größe 北" = "text" }

[datasets.health.tables.stays]
source = "none.parquet"
protect = { person = "patient", max_rows = 20 }
columns = { at = { timestamp = [2024-01-01, 2024-12-31] } }

[datasets.homes]
budget = { epsilon = 1 }
adjacency = "add/remove"
[datasets.homes.tables.homes]
source = "homes.parquet"
protect = "each row"
columns = { kind = { keys_from = "kinds.csv", column = "kind" } }

[public.kinds]
source = "kinds.csv"
key = "kind"
"""


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    made(tmp_path)
    (tmp_path / "kinds.csv").write_text("kind,rooms\nflat,3\nhouse,7\n")
    (tmp_path / "more.toml").write_text(MORE, encoding="utf-8")
    return Shell(capsys, monkeypatch)


def test_text(shell: Shell) -> None:
    assert shell("schema") == (0, TEXT, "")


def test_every_kind(shell: Shell) -> None:
    text = shell.out("schema", "--policy", "more.toml")
    for line in (
        "health: epsilon 0.333334, delta 1e-6 for all questions, replace",
        "  visits: protects each patient; uses at most 2 groups per person, with 5 rows each",
        "    cost       a number in -1..0.5",
        "    floor      -1, 0, 1, 2, 3, 4, 5, 6, ... (10 keys)",
        '    "Größe 北"  a text',
        "  stays: protects each patient; uses at most 20 rows per person",
        "    at  a timestamp in 2024-01-01 00:00:00..2024-12-31 23:59:59.999999",
        "homes: epsilon 1 for all questions, add/remove",
        "  homes: protects each row",
        "    kind  flat, house",
        "  kinds: public, joined on kind: kind, rooms",
    ):
        assert line in text.splitlines(), line


def test_json(shell: Shell) -> None:
    (people,) = shell.json("schema", "--json")
    assert people["budget"] == {"epsilon": "3"}
    assert people["tables"]["people"] == {
        "protects": {"unit": "person", "id": "person_id", "max_rows": 1},
        "columns": {
            "region": {
                "kind": "keys",
                "keys": ["north", "south"],
                "other": "elsewhere",
                "words": "north, south; other values count as elsewhere",
            },
            "age": {"kind": "integer", "lower": 0, "upper": 110, "words": "an integer in 0..110"},
            "income": {"kind": "number", "lower": 0, "upper": 200_000, "words": "a number in 0..200000"},
            "smoker": {"kind": "boolean", "words": "a boolean"},
            "day": {
                "kind": "date",
                "first": "2025-01-01",
                "last": "2025-03-31",
                "words": "a date in 2025-01-01..2025-03-31",
            },
        },
    }
    health, homes = shell.json("schema", "--policy", "more.toml", "--json")
    assert (health["dataset"], health["adjacency"], health["version"]) == ("health", "replace", "2026-11")
    assert list(health["tables"]) == ["visits", "stays"]
    visits = health["tables"]["visits"]
    assert visits["protects"] == {"unit": "person", "id": "patient", "max_groups": 2, "max_rows_per_group": 5}
    words = {name: column.pop("words") for name, column in visits["columns"].items()}
    assert words == {
        "cost": "a number in -1..0.5",
        "floor": "-1, 0, 1, 2, 3, 4, 5, 6, ... (10 keys)",
        "Größe 北": "a text",
    }
    assert health["public"]["kinds"]["key"] == "kind"
    assert list(health["public"]["kinds"]["columns"]) == ["kind", "rooms"]
    assert visits["columns"] == {
        "cost": {"kind": "number", "lower": -1, "upper": 0.5},
        "floor": {"kind": "keys", "keys": [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8], "other": None},
        "Größe 北": {"kind": "text"},
    }
    assert health["tables"]["stays"]["columns"]["at"] == {
        "kind": "timestamp", "first": "2024-01-01T00:00:00", "last": "2024-12-31T23:59:59.999999",
        "words": "a timestamp in 2024-01-01 00:00:00..2024-12-31 23:59:59.999999",
    }  # fmt: skip
    assert homes["tables"]["homes"]["protects"] == {"unit": "row"}


def test_of_policies(shell: Shell) -> None:
    assert shell.json("schema", "--of-policy") == json.loads(json.dumps(schema()))
    assert shell.json("schema", "--of-policy", "--policy", "none.toml") == schema()


def test_no_data_are_read_and_no_ledger_is_made(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "people.parquet").write_bytes(b"no Parquet")
    (tmp_path / "steward.key").unlink()
    assert shell.out("schema") == TEXT
    assert not (tmp_path / "people.ledger").exists()


def test_refusals(shell: Shell, tmp_path: Path) -> None:
    assert "there is no policy 'none.toml'" in shell.refused(2, "schema", "--policy", "none.toml")
    (tmp_path / "privet.toml").write_text(MORE.replace("replace", "swap").replace("number", "float"))
    error = shell.refused(2, "schema")
    assert "privet.toml, line 6, datasets.health.adjacency: " in error
    assert "number" in error
    (tmp_path / "kinds.csv").unlink()
    for form in ([], ["--json"]):
        assert "kinds.csv" in shell.refused(2, "schema", "--policy", "more.toml", *form)


def test_long_lists_of_keys_are_shown_whole_on_request(shell: Shell, tmp_path: Path) -> None:
    towns = {region: [f"{region}{i}" for i in range(6)] for region in ("north", "south")}
    listed = ", ".join(f"{region} = {json.dumps(some)}" for region, some in towns.items())
    (tmp_path / "towns.toml").write_text(f"""
ledger = "towns.ledger"
[datasets.towns]
budget = {{ epsilon = 1 }}
adjacency = "add/remove"
[datasets.towns.tables.homes]
source = "none.parquet"
protect = "each row"
columns = {{ region = {{ keys = ["north", "south"] }}, town = {{ keys = {{ {listed} }}, within = "region" }} }}
""")
    short = shell.out("schema", "--policy", "towns.toml")
    assert "south2, ... (12 keys); each within one region" not in short
    assert "north5, south0, south1, ... (12 keys); each within one region" in short
    assert short.endswith("All keys: privet schema --all\n")
    whole = shell.out("schema", "--policy", "towns.toml", "--all")
    assert "north: north0, north1, north2, north3, north4, north5; south: south0, south1, south2" in whole
    assert "..." not in whole
    assert "--all" not in whole
