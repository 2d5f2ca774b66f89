"""The documented roles, and the tutorial's questions through a policy in which only the source is changed."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from tests import in_postgres
from tests.cli.asking import Shell

import privet as pv
from privet.planner import plan

DOCS = Path(__file__).parents[2] / "docs"
POLICY = """
ledger = "{ledger}"
[datasets.visits]
budget = {{ epsilon = 100 }}
adjacency = "add/remove"
[datasets.visits.tables.visits]
source = "{source}"
protect = {{ person = "patient", max_rows = 5 }}
[datasets.visits.tables.visits.columns]
clinic = {{ keys = ["north", "south", "west"] }}
day = {{ date = [2026-01-01, 2026-12-31] }}
minutes = {{ integer = [0, 120] }}
satisfied = "boolean"
"""


def questions() -> list[str]:
    """The SQL of the tutorial that can be answered."""
    found = re.findall(r'privet (?:query|explain) "([^"]*)"', (DOCS / "tutorial.md").read_text(encoding="utf-8"))
    return [sql for sql in found if "MODE" not in sql]


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tutorial's data, made by its own code, with fewer rows, and imported."""
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(import csv.*?)```", (DOCS / "tutorial.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    exec(code[1].replace("60_000", "6_000"), {"csv": csv})
    columns = {
        "clinic": pv.keys("north", "south", "west"), "day": pv.date("2026-01-01", "2026-12-31"),
        "minutes": pv.integer(0, 120), "satisfied": pv.boolean(),
    }  # fmt: skip
    pv.import_csv("visits.csv", "visits.parquet", columns=columns, id="patient")
    return tmp_path / "visits.parquet"


@pytest.fixture
def home(postgres: str) -> Iterator[str]:
    with in_postgres.at(postgres):
        yield postgres


def test_the_tutorials_questions_with_only_the_source_changed(visits: Path, home: str, tmp_path: Path) -> None:
    in_postgres.written("visits", pq.read_table(visits))
    (tmp_path / "file.toml").write_text(POLICY.format(ledger="file.ledger", source="visits.parquet"))
    (tmp_path / "base.toml").write_text(POLICY.format(ledger="base.ledger", source=home))
    with pv.Session.open("file.toml") as file, pv.Session.open("base.toml") as base:
        assert (file.dataset.engine.name, base.dataset.engine.name) == ("duckdb", "postgres")
        assert len(questions()) >= 4
        for sql in questions():  # nobody has more rows than the cap, so no hash chooses
            plans = [plan(session.parse(sql), epsilon=1) for session in (file, base)]
            first, second = (
                [session.dataset.engine.answer(s) for s in each.statements()]
                for session, each in zip((file, base), plans, strict=True)
            )
            assert first == second, sql
            assert base.release(sql, epsilon=1)


def test_the_command_line(
    visits: Path, home: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Shell(capsys, monkeypatch)
    in_postgres.written("visits", pq.read_table(visits))
    made = shell.run("init", home, "--yes", "--person", "patient", "--max-rows", "5", "--epsilon", "9")
    assert made.code == 0, made.err
    policy = (tmp_path / "privet.toml").read_text()
    assert "#public.visits" in policy
    (tmp_path / "privet.toml").write_text(POLICY.format(ledger="l.ledger", source=f"{home}#public.visits"))
    for arguments in (["check"], ["schema"], ["explain", questions()[0], "--epsilon", "1"]):
        done = shell.run(*arguments)
        assert done.code == 0, done.err
    asked = shell.run("query", questions()[0], "--epsilon", "50", "--format", "json")
    assert asked.code == 0, asked.err
    assert len(json.loads(asked.out)["rows"]) == 3


def as_role(address: str, role: str) -> str:
    return address.replace("postgres:@", f"{role}@")


def test_the_documented_grants(visits: Path, home: str, tmp_path: Path) -> None:
    """The reader reads and can't write, the ledger's role writes its ledger and sees no data."""
    page = (DOCS / "engines.md").read_text(encoding="utf-8")
    script = re.search(r"```sql\n(-- the data.*?)```", page, re.DOTALL)
    options = re.search(r'ledger = "postgresql://privet_ledger@db.example.org/health\?(.*)"', page)
    assert script is not None
    assert options is not None
    in_postgres.written("visits", pq.read_table(visits))
    in_postgres.execute("CREATE TABLE people (id bigint)", "DROP ROLE IF EXISTS privet_reader, privet_ledger")
    statements = [line for line in re.sub(r"--.*", "", script[1]).split(";") if line.strip()]
    try:
        in_postgres.execute(*statements)
        ledger = f"{as_role(home, 'privet_ledger')}&{options[1]}"
        (tmp_path / "privet.toml").write_text(POLICY.format(ledger=ledger, source=as_role(home, "privet_reader")))
        with pv.Session.open("privet.toml") as session:
            assert session.release(questions()[0], epsilon=1)
            assert session.dataset.engine.name == "postgres"
        denied: list[tuple[str, str]] = [
            ("privet_reader", "INSERT INTO public.visits (patient) VALUES (1)"),
            ("privet_reader", "DELETE FROM public.visits"), ("privet_reader", "CREATE TABLE public.mine (x int)"),
            ("privet_reader", "SELECT * FROM privet_ledger.privet_entries"),
            ("privet_ledger", "SELECT * FROM public.visits"), ("privet_ledger", "CREATE TABLE public.mine (x int)"),
        ]  # fmt: skip
        for role, sql in denied:
            assert _fails(as_role(home, role), "SET default_transaction_read_only = off", sql), (role, sql)
    finally:
        in_postgres.execute(
            "DROP OWNED BY privet_reader", "DROP ROLE privet_reader", "DROP OWNED BY privet_ledger CASCADE",
            "DROP ROLE privet_ledger",
        )  # fmt: skip


def test_each_documented_role_gets_a_password() -> None:
    page = (DOCS / "engines.md").read_text(encoding="utf-8")
    roles = re.findall(r"CREATE ROLE (\w+) LOGIN", page)
    assert len(roles) == 2
    for role in roles:
        assert f"`\\password {role}`" in page
        assert f"\ndb.example.org:5432:health:{role}:PASSWORD\n" in page


def _fails(address: str, *statements: str) -> Any:
    with psycopg.connect(address, autocommit=True) as connection:
        try:
            for sql in statements:
                connection.execute(sql.encode())
        except psycopg.errors.InsufficientPrivilege:
            return True
        except psycopg.errors.UndefinedTable as error:
            raise AssertionError(str(error)) from None
    return False
