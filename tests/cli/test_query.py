"""`privet query` and `explain`: an answer on stdout and nothing else, every format, refusal and exit code."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import typer
from tests.cli.asking import COUNT, NEW, REGIONS, Shell, damaged, made, strictly
from tests.cli.test_cli import SIGNATURES

import privet as pv
from privet import cli
from privet.cli.output import Format

MEAN = "SELECT region, COUNT(*) AS n, AVG(income) AS pay FROM people GROUP BY region"
COLUMNS = ["region", "n", "n_low", "n_high", "n_noisy"]
NOTE = """95 % intervals for each cell separately. They cover the noise, not the bias from the limits below.
Limits: at most 1 row per person; rows without person_id left out; any other region counted as
  elsewhere, rows with no region left out.
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return made(tmp_path)


# --- formats ------------------------------------------------------------------------------------------


def rows_of(text: str, form: str) -> list[dict[str, Any]]:
    if form == "csv":
        return [
            {name: x if name == "region" else json.loads(x) for name, x in row.items()}
            for row in csv.DictReader(io.StringIO(text))
        ]
    found: list[dict[str, Any]] = strictly(text)["rows"]
    return found


def test_a_table(shell: Shell) -> None:
    done = shell("query", COUNT, "--epsilon", "0.5")
    head, *rows, blank, first, second, third, cost = done.out.splitlines()
    assert head.split() == ["region", "n"]
    for row, region in zip(rows, REGIONS, strict=True):
        assert re.fullmatch(rf"{region} +~?-?\d+ ± \d+ *", row)
    assert (blank, [first, second, third], cost) == ("", NOTE.splitlines(), "Spent epsilon 0.5; 2.5 left.")
    assert done.err == ""
    assert shell("query", COUNT, "--epsilon", "0.5", "--format", "table").out == done.out.replace(
        "Spent epsilon 0.5", "Paid for before, at epsilon 0.5: nothing was spent now"
    )


def test_csv(shell: Shell) -> None:
    done = shell("query", COUNT, "--epsilon", "0.5", "--format", "csv")
    assert done.out.splitlines()[0] == '"region","n","n_low","n_high","n_noisy"'
    rows = rows_of(done.out, "csv")
    assert [row["region"] for row in rows] == list(REGIONS)
    assert all(row["n_low"] <= row["n"] <= row["n_high"] for row in rows)
    assert done.err == NOTE + "Spent epsilon 0.5; 2.5 left.\n"


def test_json(shell: Shell) -> None:
    done = shell("query", COUNT, "--epsilon", "1/3", "--format", "json")
    tree = strictly(done.out)
    assert list(tree) == ["rows", "confidence", "guarantee", "paid_before", "spent", "left", "limits", "notes"]
    assert [list(row) for row in tree["rows"]] == [COLUMNS] * 3
    assert (tree["confidence"], tree["spent"], tree["left"]) == (0.95, {"epsilon": "1/3"}, {"epsilon": "8/3"})
    assert " ".join(tree["notes"]) == " ".join(done.err.split())
    assert f"Limits: {'; '.join(tree['limits'])}." in tree["notes"]
    again = shell("query", COUNT, "--epsilon", "1/3", "--json")
    assert strictly(again.out)["rows"] == tree["rows"]


def test_what_is_noisy_is_marked_in_every_format(shell: Shell, here: Path) -> None:
    """Groups of 200, 50 and 50, with an error of 30: whichever are marked, they are everywhere."""
    ask = ("query", COUNT, "--epsilon", "0.1")
    printed = ["~" in line for line in shell(*ask).out.splitlines()[1:4]]
    shell(*ask, "-o", "marked.parquet")
    found = [
        [row["n_noisy"] for row in rows_of(shell(*ask, "--format", "csv").out, "csv")],
        [row["n_noisy"] for row in rows_of(shell(*ask, "--format", "json").out, "json")],
        pq.read_table(here / "marked.parquet")["n_noisy"].to_pylist(),
        ["~" in line for line in shell(*ask, "--format", "chart").out.splitlines()[1:4]],
    ]
    assert found == [printed] * 4


def test_json_has_no_word_for_infinity(shell: Shell) -> None:
    sql = "SELECT SUM(income) / SUM(age) AS r FROM people WHERE age > 100"
    (row,) = shell.json("query", sql, "--epsilon", "0.001", "--confidence", "0.999999999999", "--json")["rows"]
    assert row["r_high"] is None


def test_dates_in_json(shell: Shell) -> None:
    sql = "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM people GROUP BY month"
    rows = shell.json("query", sql, "--epsilon", "1", "--json")["rows"]
    assert [row["month"] for row in rows] == ["2025-01-01", "2025-02-01", "2025-03-01"]


def test_a_chart(shell: Shell) -> None:
    done = shell("query", MEAN, "--epsilon", "1", "--format", "chart")
    lines = done.out.splitlines()
    assert [lines[0], lines[4], lines[5], lines[9]] == ["n", "", "pay", ""]
    for line in (*lines[1:4], *lines[6:9]):
        assert re.match(rf"({'|'.join(REGIONS)}) +[ █░├─┼┤●○]+  ~?-?[\d,.]+ [±(]", line)
        assert len(line) <= 80
    assert lines[-1] == "Spent epsilon 1; 2 left."
    assert done.err == ""


def test_the_same_answer_in_every_format_and_file_is_paid_for_once(shell: Shell, here: Path) -> None:
    rows = rows_of(shell("query", COUNT, "--epsilon", "0.5", "--json").out, "json")
    for name in ("a.csv", "a.json", "a.parquet", "a.txt", "a.png", "a.svg", "a.pdf", "A.CSV"):
        done = shell("query", COUNT, "--epsilon", "0.5", "-o", name)
        assert done.out == ""
        assert done.err == f"{name}\n{NOTE}Paid for before, at epsilon 0.5: nothing was spent now; 2.5 left.\n"
        content = (here / name).read_bytes()
        match Path(name).suffix.lower():
            case ".csv" | ".json" as suffix:
                assert rows_of(content.decode(), suffix[1:]) == rows
            case ".parquet":
                assert pq.read_table(here / name).to_pylist() == rows
            case ".txt":
                assert content.decode() == shell.out("query", COUNT, "--epsilon", "0.5")
            case suffix:
                assert content.startswith(SIGNATURES[suffix])
    assert shell.spent() == Fraction(1, 2)


@pytest.mark.parametrize("form", list(Format))
def test_a_format_and_a_name(shell: Shell, here: Path, form: Format) -> None:
    """With --format, a file may have any name."""
    name = "answer.dat"
    shell("query", COUNT, "--epsilon", "1")
    assert shell("query", COUNT, "--epsilon", "1", "--format", form, "--output", name).out == ""
    content = (here / name).read_bytes()
    if form is Format.PARQUET:
        assert pq.read_table(here / name).column_names == COLUMNS
    else:
        assert content.decode() == shell.out("query", COUNT, "--epsilon", "1", "--format", form)
        assert all(region in content.decode() for region in REGIONS)


def test_an_answer_replaces_a_file(shell: Shell, here: Path) -> None:
    (here / "a.csv").write_text("x" * 10_000)
    shell("query", COUNT, "--epsilon", "1", "-o", "a.csv", "--force")
    assert rows_of((here / "a.csv").read_text(), "csv")


# --- the ledger ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", COUNT],
        ["query", COUNT, "--epsilon", "1", "--dry-run"],
        ["query", "SELECT COUNT(*) FROM persons", "--epsilon", "1"],
        ["explain", COUNT, "--epsilon", "1"],
        ["explain", COUNT, "--epsilon", "1", "--json"],
        ["check"],
        ["schema"],
    ],
)
def test_no_ledger_without_a_debit(shell: Shell, here: Path, arguments: list[str]) -> None:
    before = sorted(here.iterdir())
    done = shell.run(*arguments)
    assert sorted(here.iterdir()) == before
    if "explain" in arguments and "--json" not in arguments:
        assert "Budget     epsilon 3 is left of epsilon 3: enough for " in done.out


def test_what_is_explained_is_what_the_ledger_knows(shell: Shell, here: Path) -> None:
    shell("query", COUNT, "--epsilon", "1")
    assert shell.made
    before = (here / "people.ledger").read_bytes()
    told = shell("explain", COUNT, "--epsilon", "0.5").out
    assert "Already paid for, at epsilon 1" in told
    assert "Budget     epsilon 2 is left of epsilon 3." in told
    press = shell("explain", MEAN, "--epsilon", "0.5", "--analyst", "press").out
    assert "epsilon 0.25 is left of epsilon 0.25 for 'press': not enough." in press
    assert (here / "people.ledger").read_bytes() == before


# --- where the question comes from --------------------------------------------------------------------


def test_from_a_file_or_stdin(shell: Shell, here: Path) -> None:
    (here / "count.sql").write_text(COUNT + ";\n")
    first = shell("query", COUNT, "--epsilon", "1", "--format", "csv").out
    for arguments, stdin in (
        (["--file", "count.sql"], ""),
        (["-f", "count.sql"], ""),
        (["-"], COUNT),
        ([], f"\n{COUNT};\n"),
    ):
        assert shell("query", *arguments, "--epsilon", "1", "--format", "csv", stdin=stdin).out == first
    assert "Query      n = count() by region" in shell("explain", "-", "--epsilon", "1", stdin=COUNT).out
    assert shell.spent() == 1


def test_a_question_from_windows(shell: Shell, here: Path) -> None:
    marked = "\ufeff" + COUNT.replace(" FROM", "\r\nFROM") + "\r\n"
    (here / "count.sql").write_bytes(marked.encode())
    first = shell("query", COUNT, "--epsilon", "1", "--format", "csv").out
    assert shell("query", "-f", "count.sql", "--epsilon", "1", "--format", "csv").out == first
    assert shell("query", "-", "--epsilon", "1", "--format", "csv", stdin=marked.encode()).out == first
    assert shell("query", marked, "--epsilon", "1", "--format", "csv").out == first
    assert shell.spent() == 1


def test_numbers_of_thousands_of_digits(shell: Shell) -> None:
    for flag in ("--epsilon", "--confidence", "--assuming", "--max-rows"):
        given = [] if flag == "--epsilon" else ["--epsilon", "1"]
        assert "must be a" in shell.refused(2, "query", COUNT, *given, flag, "0." + "1" * 100_000)
    assert "must be a" in shell.refused(2, "query", COUNT, "--within", "n=" + "1" * 100_000)
    assert shell.spent() == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_not_waited_for(shell: Shell) -> None:
    assert "the question is missing" in shell.refused(2, "query", "--epsilon", "1", stdin=Terminal())


def test_another_policy(shell: Shell, here: Path) -> None:
    (here / "other").mkdir()
    made(here / "other")
    shell("query", COUNT, "--epsilon", "1", "--policy", "other/privet.toml")
    assert shell.spent("other/people.ledger") == 1
    assert not (here / "people.ledger").exists()


# --- how it is asked ----------------------------------------------------------------------------------


def test_a_dry_run_spends_nothing(shell: Shell) -> None:
    text = shell.out("query", MEAN, "--epsilon", "0.5", "--assuming", "100", "--dry-run")
    assert text == shell.out("explain", MEAN, "--epsilon", "0.5", "--assuming", "100")
    assert "Budget     epsilon 3 is left of epsilon 3: enough for " in text
    assert shell.spent() == 0
    tree = shell.json("query", MEAN, "--epsilon", "0.5", "--dry-run", "--json")
    assert tree == shell.json("explain", MEAN, "--epsilon", "0.5", "--json")
    assert not Path("people.ledger").exists()
    assert "not enough" in shell.out("query", MEAN, "--epsilon", "50", "--dry-run")


@pytest.mark.parametrize(
    ("code", "asked", "says"),
    [
        (3, [COUNT, "--epsilon", "3.1"], "only epsilon 3 is left"),
        (3, [COUNT, "--epsilon", "0.3", "--analyst", "press"], "only epsilon 0.25 is left"),
        (2, [COUNT.replace("region", "regoin"), "--epsilon", "0.5"], "regoin"),
        (2, [COUNT, "--epsilon", "0.0001"], "below the minimum price"),
        (2, [COUNT, "--epsilon", "0.5", "--request-id", ""], "request id"),
        (2, [COUNT, "--epsilon", "0.5", "--analyst", " "], "analyst"),
    ],
)
def test_a_refused_question_creates_no_ledger(shell: Shell, here: Path, code: int, asked: list[str], says: str) -> None:
    before = sorted(path.name for path in here.iterdir())
    assert says in shell.refused(code, "query", *asked)
    assert not shell.made
    assert sorted(path.name for path in here.iterdir()) == before
    shell("query", COUNT, "--epsilon", "0.2", "--analyst", "press")
    assert shell.made
    assert shell.spent() == Fraction(1, 5)


def test_errors_in_place_of_epsilon(shell: Shell) -> None:
    how = ["--within", "n=40", "--within", "pay=30000", "--assuming", "50"]
    promised = shell.json("explain", MEAN, *how, "--json")["derived"]["guarantee"]["epsilon"]
    tree = shell.json("query", MEAN, *how, "--json")
    assert Fraction(tree["spent"]["epsilon"]) == Fraction(promised) == shell.spent() > 0
    assert all(row["n_high"] - row["n"] <= 40 for row in tree["rows"])


def test_confidence(shell: Shell) -> None:
    wide, narrow = (
        shell.json("query", COUNT, "--epsilon", "0.5", "--confidence", confidence, "--json")
        for confidence in ("0.99", "1/2")
    )
    assert (wide["confidence"], narrow["confidence"]) == (0.99, 0.5)
    for a, b in zip(wide["rows"], narrow["rows"], strict=True):
        assert a["n"] == b["n"]
        assert a["n_low"] < b["n_low"] <= b["n_high"] < a["n_high"]
    together = shell("query", COUNT, "--epsilon", "0.5", "--simultaneous").out
    assert "95 % intervals for all cells together" in together
    assert shell.spent() == Fraction(1, 2)


def test_a_request_id(shell: Shell) -> None:
    how = ["--epsilon", "0.5", "--fresh", "--format", "csv"]
    first = shell("query", COUNT, *how, "--request-id", "report-17").out
    assert shell("query", COUNT, *how, "--request-id", "report-17").out == first
    assert shell.spent() == Fraction(1, 2)
    assert "already used for a different question" in shell.refused(2, "query", MEAN, *how, "--request-id", "report-17")
    assert shell.spent() == Fraction(1, 2)


def test_a_fresh_draw_is_paid_for(shell: Shell) -> None:
    shell("query", COUNT, "--epsilon", "0.5")
    shell("query", COUNT, "--epsilon", "0.5")
    assert shell.spent() == Fraction(1, 2)
    assert "Spent epsilon 0.5; 2 left." in shell("query", COUNT, "--epsilon", "0.5", "--fresh").out
    assert shell.spent() == 1


def test_an_analyst_with_a_cap(shell: Shell) -> None:
    error = shell.refused(3, "query", COUNT, "--epsilon", "0.5", "--analyst", "press")
    assert "epsilon 0.25 is left of epsilon 0.25 for 'press'. Nothing was spent" in error
    assert shell.spent() == shell.spent(analyst="press") == 0
    shell("query", COUNT, "--epsilon", "0.25", "--analyst", "press")
    assert "Ask the steward" in shell.refused(3, "query", MEAN, "--epsilon", "0.1", "--analyst", "press")
    assert "epsilon 0 is left of epsilon 0.25 for 'press'" in shell.out(
        "explain", MEAN, "--epsilon", "1", "--analyst", "press"
    )
    shell("query", COUNT, "--epsilon", "0.5", "--analyst", "research")
    assert (shell.spent(), shell.spent(analyst="press"), shell.spent(analyst="research")) == (
        Fraction(3, 4), Fraction(1, 4), Fraction(1, 2),
    )  # fmt: skip


def test_a_certificate(shell: Shell, here: Path) -> None:
    done = shell("query", COUNT, "--epsilon", "0.5", "--certificate", "answer.json", "--format", "csv")
    assert done.err == f"answer.json\n{NOTE}Spent epsilon 0.5; 2.5 left.\n"
    assert [row["n"] for row in rows_of(done.out, "csv")] == strictly((here / "answer.json").read_text())["document"][
        "answer"
    ]["n"]["values"]
    checked = shell.json("verify", "answer.json", "--key", "steward.key.pub", "--ledger", "people.ledger", "--json")
    assert checked == {
        "rules": True, "signature": True, "ledger": True, "promise": "epsilon 0.5, for n = count() by region"
    }  # fmt: skip
    again = shell("query", COUNT, "--epsilon", "0.5", "--certificate", "again.json")
    assert again.err == "again.json\n"
    assert (here / "again.json").read_bytes() == (here / "answer.json").read_bytes()


# --- refusals -----------------------------------------------------------------------------------------

COUNTED = ["query", COUNT, "--epsilon", "1"]
WRONG: dict[str, tuple[list[str], str]] = {
    "a folder that is not there": ([*COUNTED, "-o", "no/such/answer.csv"], "there is no folder 'no/such'"),
    "a folder in place of a file": ([*COUNTED, "-o", "folder.csv"], "'folder.csv' is a folder"),
    "a folder without an ending": ([*COUNTED, "-o", "."], "'.' is a folder"),
    "a certificate in no folder": ([*COUNTED, "--certificate", "no/such/c.json"], "there is no folder 'no/such'"),
    "a certificate as a folder": ([*COUNTED, "--certificate", "folder.csv"], "'folder.csv' is a folder"),
    "a name that tells no format": ([*COUNTED, "-o", "answer.xlsx"], "The file types are .csv, .json"),
    "a question without quotes": (["query", "SELECT", "x", "FROM", "people"], 'query "SELECT x FROM people" --epsilon'),
    "a format that is none": ([*COUNTED, "--format", "xlsx"], "The formats are table, csv, json, parquet and chart"),
    "a picture as CSV": ([*COUNTED, "-o", "answer.png", "--format", "csv"], "a .png file is always a chart"),
    "Parquet without a file": ([*COUNTED, "--format", "parquet"], "Parquet can't be printed"),
    "no epsilon": (["query", COUNT], "Set one of epsilon, rho and within"),
    "epsilon and within": ([*COUNTED, "--within", "n=5"], "Set one of the two"),
    "epsilon of words": (["query", COUNT, "--epsilon", "much"], "epsilon must be a number"),
    "epsilon of nothing": (["query", COUNT, "--epsilon", "0"], "epsilon must be a number"),
    "an unknown column in within": (["query", COUNT, "--within", "m=5"], "there is no column 'm'. The columns are: n"),
    "within without an error": (["query", COUNT, "--within", "n"], "--within takes a column and its error, not 'n'"),
    "within without a column": (["query", COUNT, "--within", "=5"], "--within takes a column and its error, not '=5'"),
    "within of words": (["query", COUNT, "--within", "n=few"], "must be a number"),
    "within of a mean that needs a size": (["query", MEAN, "--within", "n=5", "--within", "pay=9"], "assuming"),
    "an odd confidence": ([*COUNTED, "--confidence", "95"], "confidence must be a number between 0 and 1"),
    "a negative size": ([*COUNTED, "--assuming", "-5"], "assuming must be a whole number"),
    "no analyst": ([*COUNTED, "--analyst", ""], "analyst"),
    "no request id": ([*COUNTED, "--request-id", " "], "request id"),
    "no policy": ([*COUNTED, "--policy", "none.toml"], "there is no policy 'none.toml'"),
    "a policy that is none": ([*COUNTED, "--policy", "people.parquet"], "this is a binary file, not text"),
    "a statement and a file": ([*COUNTED, "--file", "x.sql"], "not both"),
    "a file that is not there": (["query", "--file", "x.sql", "--epsilon", "1"], "there is no file 'x.sql'"),
    "a file that is no text": (["query", "--file", "people.parquet", "--epsilon", "1"], "this is a binary file"),
    "an empty statement": (["query", "", "--epsilon", "1"], "the question is empty"),
    "no SQL": (["query", "how many people?", "--epsilon", "1"], "a question must begin with SELECT or WITH"),
    "an unknown table": (["query", "SELECT COUNT(*) FROM persons", "--epsilon", "1"], "there is no table persons"),
    "an unknown column": (["query", "SELECT SUM(pay) FROM people", "--epsilon", "1"], "there is no column pay"),
    "the rows": (["query", "SELECT * FROM people", "--epsilon", "1"], "Rows are private"),
    "a file": (["query", "SELECT COUNT(*) FROM 'people.parquet'", "--epsilon", "1"], "files can't be read"),
    "a table that is misspelled": (["query", "SELECT COUNT(*) FROM peple", "--epsilon", "1"], "Did you mean people?"),
    "epsilon as in Python": (["query", COUNT, "epsilon=0.5"], "Write: --epsilon 0.5\n"),
    "epsilon in short": (["query", COUNT, "eps=0.5"], "Write: --epsilon 0.5\n"),
    "epsilon in capitals": (["query", COUNT, "--max-rows", "1", "EPS=1/3"], "Write: --epsilon 1/3\n"),
    "another option as in Python": (["query", *COUNTED[1:], "request_id=a b"], "Write: --request-id 'a b'\n"),
    "explained as in Python": (["explain", COUNT, "eps=0.5"], "Write: --epsilon 0.5\n"),
    "explained without epsilon": (["explain", COUNT], "Set one of epsilon, rho and within"),
    "explained rows": (["explain", "SELECT * FROM people", "--epsilon", "1"], "Rows are private"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_refused_before_anything_is_paid(shell: Shell, here: Path, wrong: str) -> None:
    (here / "folder.csv").mkdir()
    before = {path.name for path in here.iterdir()}
    arguments, says = WRONG[wrong]
    assert says in shell.refused(2, *arguments)
    assert shell.spent() == 0
    left = {path.name for path in here.iterdir()} - before
    assert {name.partition(".ledger")[0] for name in left} <= {"people"}


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_names_that_intervals_need(shell: Shell, form: str) -> None:
    sql = "SELECT COUNT(*) AS n, SUM(age) AS n_low FROM people"
    assert "'n_low'" in shell.refused(2, "query", sql, "--epsilon", "1", "-o", f"answer.{form}")
    assert shell.spent() == 0
    shell("query", sql, "--epsilon", "1")


def test_more_columns_than_a_picture_has(shell: Shell) -> None:
    many = ", ".join(f"SUM(age + {i}) AS s{i}" for i in range(13))
    shell.refused(2, "query", f"SELECT {many} FROM people", "--epsilon", "1", "-o", "answer.png")
    assert shell.spent() == 0


@pytest.mark.parametrize("stdin", [b"", b"  \n", b"SELECT \xff FROM people"])
def test_stdin_that_asks_nothing(shell: Shell, stdin: bytes) -> None:
    shell.refused(2, "query", "-", "--epsilon", "1", stdin=stdin)
    assert shell.spent() == 0


def test_a_mark_stands_under_what_is_wrong(shell: Shell) -> None:
    error = shell.refused(2, "query", "SELECT region, MODE(income) FROM people GROUP BY region", "--epsilon", "1")
    *_, line, mark = error.rstrip("\n").splitlines()
    assert line[mark.index("^") :].startswith("MODE")


@pytest.mark.parametrize("arguments", [["--epsilon"], ["--nonsense"], ["two", "statements"]])
def test_usage(shell: Shell, arguments: list[str]) -> None:
    done = shell.run("query", COUNT, *arguments)
    assert (done.code, done.out) == (2, "")
    assert "Error: " in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("file", ["people.parquet", "data/people.csv", "people.duckdb"])
def test_a_file_in_place_of_a_question_leads_to_init(shell: Shell, here: Path, file: str) -> None:
    (here / "privet.toml").unlink()
    for command in ("query", "explain"):
        assert f"Write: privet init {file}\n" in shell.refused(2, command, file, "--epsilon", "1")
    assert "privet init" in shell.refused(2, "query", COUNT, "--epsilon", "1")


def test_several_datasets(shell: Shell, here: Path) -> None:
    policy = (here / "privet.toml").read_text()
    other = (
        policy.partition("[datasets.people]")[2].replace(".people", ".homes").replace("people.parquet", "homes.parquet")
    )
    (here / "homes.parquet").write_bytes((here / "people.parquet").read_bytes())
    (here / "privet.toml").write_text(f"{policy}\n[datasets.homes]{other}")
    shell("query", COUNT, "--epsilon", "1")
    shell("query", "SELECT COUNT(*) FROM Homes", "--epsilon", "0.5")
    lines = shell.json("budget", "people.ledger", "--json")
    assert {x["dataset"]: x["spent"]["epsilon"] for x in lines if not x["analyst"]} == {"people": "1", "homes": "0.5"}
    assert "uses no table of any dataset" in shell.refused(2, "query", "SELECT 1", "--epsilon", "1")


# --- exit codes ---------------------------------------------------------------------------------------


@pytest.fixture
def served(shell: Shell) -> Shell:
    """After one question for 0.5."""
    shell("query", COUNT, "--epsilon", "0.5", "--certificate", "answer.json")
    return shell


def test_1_a_check_that_does_not_hold(served: Shell, here: Path) -> None:
    text = (here / "answer.json").read_text()
    (here / "answer.json").write_text(text.replace('"dataset":"people"', '"dataset":"peoples"'))
    assert "signature" in served.refused(1, "verify", "answer.json", "--key", "steward.key.pub")


def test_3_the_budget_does_not_cover_it(served: Shell) -> None:
    error = served.refused(3, "query", MEAN, "--epsilon", "2.6")
    assert "this costs epsilon 2.6, but only epsilon 2.5 is left of epsilon 3. Nothing was spent." in error
    assert served.spent() == Fraction(1, 2)
    served("query", COUNT, "--epsilon", "0.25")  # what is in the ledger is answered all the same


def test_4_paid_for_and_not_answered(served: Shell, here: Path) -> None:
    whole = (here / "people.parquet").read_bytes()
    damaged(here / "people.parquet", "income")
    for times in (1, 2, 3):
        error = served.refused(4, "query", MEAN, "--epsilon", "0.5")
        assert error == "error: The question could not be answered. It was paid for, and nothing was released.\n"
        assert served.spent() == Fraction(1 + times, 2)
    assert "reopen" in served.refused(4, "query", MEAN, "--epsilon", "0.5")
    (here / "people.parquet").write_bytes(whole)
    assert "reopen" in served.refused(4, "query", MEAN, "--epsilon", "0.5")
    assert served.spent() == 2
    served("ledger", "reopen", "people.ledger", "--reason", "the file is whole again")
    served("query", MEAN, "--epsilon", "0.5")


@pytest.mark.parametrize("how", ["edited", "overwritten", "of a newer version"])
def test_5_the_ledger_can_t_be_trusted(served: Shell, here: Path, how: str) -> None:
    if how == "overwritten":
        for path in here.glob("people.ledger-*"):
            path.unlink()
        content = bytearray((here / "people.ledger").read_bytes())
        content[100:] = b"\x00" * (len(content) - 100)
        (here / "people.ledger").write_bytes(content)
    else:
        with closing(sqlite3.connect(here / "people.ledger")) as connection:
            change = {
                "edited": 'UPDATE privet_entries SET text = replace(text, \'"analyst":"analyst"\', \'"analyst":"a"\')',
                "of a newer version": "UPDATE privet_ledger SET version = version + 1",
            }
            connection.execute(change[how])
            connection.commit()
    for arguments in (["query", COUNT, "--epsilon", "0.5"], ["query", MEAN, "--epsilon", "1", "--dry-run"]):
        served.refused(5, *arguments)
    served.refused(5, "budget", "people.ledger")


def test_a_ledger_that_is_none(shell: Shell, here: Path) -> None:
    (here / "people.ledger").write_text("my notes")
    assert "is not a ledger" in shell.refused(2, "query", COUNT, "--epsilon", "0.5")
    assert (here / "people.ledger").read_text() == "my notes"


def test_the_codes_are_the_documented_ones() -> None:
    told = {int(code) for code in re.findall(r"(\d+) (?:success|wrong|a|the|paid|another)", str(cli.__doc__))}
    assert told == {0, *(code for _, code in cli.EXITS)}


# --- the whole program --------------------------------------------------------------------------------


@pytest.mark.slow
def test_as_a_program(here: Path) -> None:
    """A pipe: the question comes from another program, and the answer goes to one."""
    program = Path(sys.executable).with_name("privet")

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, check=False, cwd=here)

    done = run("query", "--epsilon", "0.5", "--format", "csv", stdin=COUNT)
    assert done.returncode == 0
    assert len(rows_of(done.stdout, "csv")) == 3
    assert NEW.sub("", done.stderr) == NOTE + "Spent epsilon 0.5; 2.5 left.\n"
    over = run("query", COUNT, "--epsilon", "50")
    assert (over.returncode, over.stdout) == (3, "")
    assert re.fullmatch(r"error: this costs epsilon 50, .*\n", over.stderr)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion(name: str) -> None:
    """A script for the shell, on stdout."""
    environment = {**os.environ, "_PRIVET_COMPLETE": f"source_{name}"}
    code = "from privet import cli; import sys; sys.argv = ['privet']; cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "_PRIVET_COMPLETE" in done.stdout


# --- JSON and examples of every command ---------------------------------------------------------------


def commands(app: typer.Typer, *path: str) -> Iterator[tuple[str, ...]]:
    for info in app.registered_commands:
        yield (*path, str(info.name or getattr(info.callback, "__name__", "").replace("_", "-")))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from commands(group.typer_instance, *path, str(group.name))


EVERY = sorted(commands(cli.app))
OF_OWN = {("demo",), ("curve",), ("audit",)}
"""Without an example."""
OF_SERVERS = {"serve", "login", "logout", "users", "tokens", "mcp"}
"""Tested with a server, or with accounts: in tests/client, tests/server and tests/assistants."""


def test_json_of_every_command(served: Shell) -> None:
    asked = {
        ("query",): [COUNT, "--epsilon", "0.5"],
        ("explain",): [COUNT, "--epsilon", "0.5"],
        ("bounds",): ["people", "income", "--epsilon", "0.1"],
        ("diagnose",): ["SELECT AVG(income) FROM people", "--epsilon", "0.1"],
        ("check",): [],
        ("schema",): [],
        ("verify",): ["answer.json"],
        ("budget",): ["people.ledger"],
        ("ledger", "history"): ["people.ledger"],
        ("ledger", "verify"): ["people.ledger"],
        ("ledger", "replay"): ["people.ledger"],
    }
    own = [command for command in EVERY if command[0] not in OF_SERVERS]
    able = {command for command in own if "--json" in served.out(*command, "--help")}
    assert able == set(asked)
    for command, arguments in asked.items():
        done = served(*command, *arguments, "--json")
        assert strictly(done.out), command
    for line in served.out("ledger", "export", "people.ledger").splitlines():
        assert strictly(line)


@pytest.mark.parametrize(
    "command", [each for each in EVERY if each not in OF_OWN and each[0] not in OF_SERVERS], ids=" ".join
)
def test_the_example_of_every_command_runs(served: Shell, here: Path, command: tuple[str, ...]) -> None:
    (wrapped,) = re.findall(r"Example: (.*?)\n\n", served.out(*command, "--help"), re.DOTALL)
    example = " ".join(wrapped.split())
    receipt = served.out("ledger", "head", "people.ledger").strip()
    line, _, target = example.replace('"$(cat receipt.txt)"', shlex.quote(receipt)).partition(" > ")
    program, *arguments = shlex.split(line)
    assert program == "privet"
    assert tuple(arguments[: len(command)]) == command
    if command == ("init",):
        (here / "privet.toml").unlink()
    if command == ("batch",):
        asked = f'[[questions]]\nname = "regions"\nsql = "{COUNT}"\n'
        (here / "questions.toml").write_text(f'title = "Regions"\nepsilon = 0.1\n{asked}', encoding="utf-8")
    if command == ("import",):
        rows = pq.read_table(here / "people.parquet").to_pylist()
        with (here / "people.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows({**row, "smoker": str(row["smoker"]).lower()} for row in rows)
        (here / "people.parquet").unlink()
    done = served(*arguments, *(["--yes"] if command == ("init",) else []))
    assert "Traceback" not in done.err
    assert done.out or command == ("ledger", "reopen")
    assert not target or "." in target


def test_help_is_quick_and_needs_no_data(shell: Shell) -> None:
    text = shell.out("query", "--help")
    for option in ("--file", "--within", "--simultaneous", "--certificate", "--request-id", "--dry-run", "--fresh"):
        assert option in text
    assert pv.__version__ in shell.out("--version")


def test_a_new_ledger_is_told_and_nothing_of_the_steward_s_is_written_over(shell: Shell) -> None:
    shell("query", "SELECT COUNT(*) AS n FROM people", "--epsilon", "1/10")
    assert shell.made
    shell("query", "SELECT COUNT(*) AS n FROM people", "--epsilon", "1/10")
    assert not shell.made
    before = {file.name: file.read_bytes() for file in Path().iterdir() if file.is_file()}
    ask = "query", "SELECT COUNT(*) AS n FROM people", "--epsilon", "1/5"
    for file in ("people.ledger", "privet.toml", "people.parquet", "./people.ledger", "people.ledger-journal"):
        assert "is already used for something else" in shell.refused(2, *ask, "-o", file, "--format", "csv")
        assert "is already used for something else" in shell.refused(2, *ask, "--certificate", file)
    assert "is given twice" in shell.refused(2, *ask, "-o", "a.json", "--certificate", "./a.json")
    assert {file.name: file.read_bytes() for file in Path().iterdir() if file.is_file()} == before
