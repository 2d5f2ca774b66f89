"""`privet budget` and `privet ledger ...`: what a steward sees, and what is refused."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_cli import refusal, run

from privet import cli
from privet.distances import Adjacency
from privet.events import Laplace
from privet.guarantees import ApproxDP, PureDP
from privet.ledger import Dataset, Receipt, open_ledger

HALF = Laplace(sensitivity=1, scale=2)


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """Two analysts, one with a cap; an answer, a failure, and a question that is still open."""
    path = str(tmp_path / "people.ledger")
    made = open_ledger(path)
    made.create(Dataset("people", "person", Adjacency.ADD_REMOVE, PureDP(3)))
    made.declare("people", "2026")
    made.cap("people", PureDP("4/3"), analyst="ann", reason="the first year")
    for analyst, outcome in (("ann", "answered"), ("bob", "failed"), ("bob", None)):
        charge = made.reserve(dataset="people", analyst=analyst, request_id=None, events=[HALF])
        if outcome is not None:
            made.settle(charge, outcome, "the answer")  # type: ignore[arg-type]
    made.close()
    return path


def test_help_names_every_command() -> None:
    text = run("ledger", "--help")
    for command in ("history", "verify", "head", "export", "replay", "cap", "reopen"):
        assert f"  {command} " in text
        assert "Example: privet ledger" in run("ledger", command, "--help")
    assert "Example: privet budget people.ledger" in run("budget", "--help")


def test_the_budget(ledger: str) -> None:
    assert run("budget", ledger).splitlines() == [
        "dataset  analyst  granted          spent        left",
        "people            epsilon 3        epsilon 1.5  epsilon 1.5",
        "         ann      epsilon 1.33333  epsilon 0.5  epsilon 0.833333",
        "         bob                       epsilon 1",
    ]
    found = json.loads(run("budget", ledger, "--json"))
    assert found[1] == {
        "dataset": "people",
        "analyst": "ann",
        "granted": {"epsilon": "4/3"},
        "spent": {"epsilon": "0.5"},
        "left": {"epsilon": "5/6"},
    }
    assert found[2]["left"] is None


def test_the_history(ledger: str) -> None:
    lines = [line.split(None, 3) for line in run("ledger", "history", ledger).splitlines()]
    assert [line[3] for line in lines[1:4]] == [
        "created                           epsilon 0    each person, add/remove, pure accountant, epsilon 3",
        "declared                          epsilon 0    version 2026",
        "capped      ann                   epsilon 0    epsilon 1.33333: the first year",
    ]
    assert [line[3].split()[0] for line in lines[4:]] == ["reserved", "answered", "reserved", "failed", "reserved"]
    entries = json.loads(run("ledger", "history", ledger, "--json"))
    assert [entry["kind"] for entry in entries][3:5] == ["reserved", "answered"]
    assert entries[3]["cost"] == {"epsilon": "0.5"}
    assert entries[4]["refers"] == 4


def test_receipts(ledger: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    receipt = run("ledger", "head", ledger).strip()
    assert Receipt.read(receipt).number == 8
    assert run("ledger", "verify", ledger) == "people: 8 entries hold\n"
    copy = tmp_path / "old.ledger"
    with closing(sqlite3.connect(ledger)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    later = run("ledger", "reopen", ledger, "--reason", "a new disk").strip()
    assert run("ledger", "verify", ledger, "--expect", receipt).endswith("the receipt is in it\n")
    assert "ends at entry 8, so it is an older copy" in refusal(
        capsys, monkeypatch, "ledger", "verify", str(copy), "--expect", later, code=5
    )
    assert "this is no receipt" in refusal(capsys, monkeypatch, "ledger", "verify", ledger, "--expect", "nine")


def test_an_export_is_checked_by_itself(ledger: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    exported = tmp_path / "people.jsonl"
    exported.write_text(run("ledger", "export", ledger), encoding="utf-8")
    assert run("ledger", "verify", str(exported)) == "people: 8 entries hold\n"
    assert "the answer" not in exported.read_text(encoding="utf-8")
    found = json.loads(run("ledger", "verify", str(exported), "--json"))
    assert found == [{"dataset": "people", "entries": 8, "hash": Receipt.read(run("ledger", "head", ledger)).hash}]
    exported.write_text(exported.read_text(encoding="utf-8").replace("bob", "eve"), encoding="utf-8")
    assert "entry 6 of the dataset 'people' does not hold" in refusal(
        capsys, monkeypatch, "ledger", "verify", str(exported), code=5
    )


def test_a_tampered_ledger_is_refused_by_every_command(ledger: str, capsys: Any, monkeypatch: Any) -> None:
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("UPDATE privet_entries SET text = replace(text, 'bob', 'eve') WHERE number = 6")
    for command in (["budget"], ["ledger", "history"], ["ledger", "verify"], ["ledger", "head"], ["ledger", "replay"]):
        error = refusal(capsys, monkeypatch, *command, ledger, code=5)
        assert "entry 6 of the dataset 'people' does not hold" in error
        assert error.count("\n") == 1


def test_replay(ledger: str) -> None:
    assert run("ledger", "replay", ledger).splitlines() == [
        "pure    epsilon 1.5   (this dataset)",
        "approx  epsilon 1.5, delta 0",
    ]


def test_caps(ledger: str, capsys: Any, monkeypatch: Any) -> None:
    run("ledger", "cap", ledger, "--epsilon", "5", "--reason", "new consent")
    run("ledger", "cap", ledger, "--query", "--epsilon", "1/4", "--reason", "small steps")
    run("ledger", "cap", ledger, "--analyst", "ann", "--reason", "no ration any more")
    opened = open_ledger(ledger)
    assert opened.balance("people", "ann").remaining == PureDP(3.5)
    assert opened.balance("people").per_query == PureDP("1/4")
    opened.close()
    assert "PureDP" in refusal(
        capsys, monkeypatch, "ledger", "cap", ledger, "--epsilon", "5", "--delta", "1e-6", "--reason", "x"
    )
    assert "a reason must be given" in refusal(
        capsys, monkeypatch, "ledger", "cap", ledger, "--epsilon", "5", "--reason", " "
    )


def test_several_datasets(ledger: str, capsys: Any, monkeypatch: Any) -> None:
    opened = open_ledger(ledger)
    opened.create(Dataset("visits", "row", Adjacency.REPLACE, ApproxDP(1, 1e-6)))
    opened.close()
    assert "people, visits. Name one with --dataset" in refusal(capsys, monkeypatch, "ledger", "head", ledger)
    assert run("ledger", "head", ledger, "--dataset", "visits").startswith("1:")
    assert "visits            epsilon 1, delta 1e-6" in run("budget", ledger)
    run("ledger", "cap", ledger, "--dataset", "visits", "--epsilon", "2", "--delta", "1e-6", "--reason", "more")


def test_what_is_no_ledger(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    missing = tmp_path / "none.ledger"
    assert "there is no ledger" in refusal(capsys, monkeypatch, "budget", str(missing))
    assert not missing.exists()
    other = tmp_path / "notes.txt"
    other.write_text("my notes")
    refusal(capsys, monkeypatch, "ledger", "verify", str(other))
    assert other.read_text() == "my notes"


def test_help_does_not_load_a_database() -> None:
    import subprocess
    import sys

    code = "import sys; from privet import cli; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert cli.app is not None
