"""A cap of one's own, from the terminal: it only tightens, it is told, and it is another question."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.asking import COUNT, POLICY, Shell, made

PERSON = "SELECT AVG(n) AS m FROM (SELECT person_id, COUNT(*) AS n FROM people GROUP BY person_id)"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    made(tmp_path, POLICY.replace("max_rows = 1", "max_rows = 20"))
    monkeypatch.chdir(tmp_path)
    return Shell(capsys, monkeypatch)


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_cap_is_told_and_makes_the_noise_smaller(shell: Shell) -> None:
    for command in ("explain", "query"):
        dry = ["--dry-run"] if command == "query" else []
        text = words(shell.out(command, COUNT, "--epsilon", "1", "--max-rows", "5", *dry))
        assert "at most 5 rows per person (set by this query; otherwise 20 rows)" in text
        assert "noise of scale 5 / 1 = 5" in text
    groups = ["--max-groups", "2", "--max-rows-per-group", "1"]
    tree = shell.json("explain", COUNT, "--epsilon", "1", *groups, "--json")
    assert tree["asked"]["query"]["at_most"] == {"kind": "at most groups", "groups": 2, "rows": 1}
    assert tree["limits"][0] == "at most 2 groups per person with 1 row in each (set by this query)"
    assert shell.spent() == 0


def test_an_answer_with_a_cap_is_another_one(shell: Shell) -> None:
    whole = shell.json("query", COUNT, "--epsilon", "0.5", "--json")
    few = shell.json("query", COUNT, "--epsilon", "0.5", "--max-rows", "1", "--json")
    assert (whole["limits"][0], few["limits"][0]) == (
        "at most 20 rows per person",
        "at most 1 row per person (set by this query)",
    )
    assert shell.spent() == 1
    assert shell.json("query", COUNT, "--epsilon", "0.5", "--max-rows", "1", "--json")["rows"] == few["rows"]
    assert shell.json("query", COUNT, "--epsilon", "0.5", "--max-rows", "20", "--json")["rows"] == whole["rows"]
    assert shell.spent() == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-rows", "21"], "you asked for 21 rows, but the limit per person is 20 rows."),
        (
            ["--max-groups", "2"],
            "a cap needs max_rows, or both max_groups and max_rows_per_group. Write, for example: --max-rows 5",
        ),
        (
            ["--max-rows", "2", "--max-groups", "2"],
            "a cap needs max_rows, or both max_groups and max_rows_per_group. Write, for example: --max-rows 5",
        ),
        (["--max-rows", "0"], "--max-rows must be a whole number, 1 or greater, not '0'"),
        (["--max-groups", "x"], "--max-groups must be a whole number, 1 or greater, not 'x'"),
    ],
)
def test_refused_in_the_words_of_the_terminal(shell: Shell, arguments: list[str], said: str) -> None:
    for command in ("query", "explain"):
        told = shell.refused(2, command, COUNT, "--epsilon", "1", *arguments)
        assert said in told
        assert "cap(" not in told
    assert shell.spent() == 0


def test_one_row_of_each_person_has_nothing_to_cap(shell: Shell) -> None:
    told = shell.refused(2, "query", PERSON, "--epsilon", "1", "--max-rows", "5")
    assert "each person already has one row here, so a cap does nothing" in told
    assert "pv." not in told


def test_options_in_the_statement(shell: Shell, tmp_path: Path) -> None:
    """The price and the cap are those of a `.sql` file, and so are its comments."""
    file = tmp_path / "question.sql"
    options = "OPTIONS (epsilon = 0.5, max_rows_contributed = 5)"
    file.write_text(f"-- how many\nSELECT WITH DIFFERENTIAL_PRIVACY {options} COUNT(*) AS n /* all */ FROM people;\n")
    explained = words(shell.out("explain", "--file", str(file)))
    assert "noise of scale 5 / 0.5 = 10" in explained
    assert "noise of scale 2 / 0.5 = 4" in words(shell.out("explain", "--file", str(file), "--max-rows", "2"))
    assert "epsilon is also set to 1" in shell.run("query", "--file", str(file), "--epsilon", "1").err
    assert shell.spent() == 0
    assert shell.json("query", "--file", str(file), "--json")["spent"] == {"epsilon": "0.5"}
