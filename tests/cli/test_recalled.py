"""A repeated question in the terminal: every format tells its epsilon and that nothing was spent now."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.asking import COUNT, Shell

COST = "Paid for before, at epsilon 0.5: nothing was spent now; 2.5 left."
STORED = "Stored     Already paid for, at epsilon 0.5: asking returns the stored answer and spends nothing.\n"


@pytest.fixture
def shell(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    made = Shell(capsys, monkeypatch)
    made("query", COUNT, "--epsilon", "0.5")
    return made


def test_json_states_the_epsilon_of_the_answer(shell: Shell) -> None:
    tree = shell.json("query", COUNT, "--epsilon", "0.25", "--json")
    assert tree["guarantee"] == {"epsilon": "0.5"}
    assert tree["spent"] == {"epsilon": "0"}
    assert tree["paid_before"] is True
    assert tree["notes"][-1] == COST
    fresh = shell.json("query", COUNT, "--epsilon", "0.25", "--json", "--fresh")
    assert (fresh["guarantee"], fresh["spent"], fresh["paid_before"]) == ({"epsilon": "0.25"},) * 2 + (False,)


def test_a_chart_and_a_table_state_it_once(shell: Shell) -> None:
    for form in ("chart", "table"):
        assert shell.out("query", COUNT, "--epsilon", "0.5", "--format", form).count(COST) == 1


def test_csv_says_it_on_stderr(shell: Shell) -> None:
    assert shell("query", COUNT, "--epsilon", "0.5", "--format", "csv").err.endswith(f"{COST}\n")


def test_a_parquet_file_says_it_in_its_metadata(shell: Shell, here: Path) -> None:
    shell("query", COUNT, "--epsilon", "0.5", "-o", "a.parquet")
    facts = json.loads(pq.read_schema(here / "a.parquet").metadata[b"privet"])
    assert (facts["guarantee"], facts["spent"], facts["paid_before"]) == ({"epsilon": "0.5"}, {"epsilon": "0"}, True)
    assert facts["confidence"] == 0.95


def test_a_dry_run_says_what_is_paid_for(shell: Shell) -> None:
    for command in (("query", "--dry-run"), ("explain",)):
        assert STORED in shell.out(command[0], COUNT, "--epsilon", "0.5", *command[1:])
        assert "Stored" not in shell.out(command[0], COUNT, "--epsilon", "0.75", *command[1:])
        tree = shell.json(command[0], COUNT, "--epsilon", "0.5", "--json", *command[1:])
        assert tree["paid_before"] == {"epsilon": "0.5"}
        assert shell.json(command[0], COUNT, "--epsilon", "0.75", "--json", *command[1:])["paid_before"] is None
    fresh = ("query", COUNT, "--epsilon", "0.5", "--dry-run", "--fresh")
    assert "a fresh one costs budget" in shell.out(*fresh)
    assert shell.json(*fresh, "--json")["paid_before"] is None
    assert shell.spent() == 1 / 2
