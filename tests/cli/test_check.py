"""`privet check`: a policy and its data, compared before anybody asks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.asking import POLICY, Shell, made


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
        "people:\n  people   5 columns fit  private\n  regions  2 columns fit  public\n"
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


def test_the_policy_and_the_ledger(shell: Shell) -> None:
    shell("query", "SELECT COUNT(*) FROM people", "--epsilon", "1")
    Path("privet.toml").write_text(POLICY.replace("{ epsilon = 3 }", "{ epsilon = 4 }"))
    before = Path("people.ledger").read_bytes()
    assert "people: the policy allows epsilon 4, but the ledger allows epsilon 3." in shell("check").out
    assert Path("people.ledger").read_bytes() == before
