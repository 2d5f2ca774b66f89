"""`privet import`: strict, all or nothing, with the columns of a policy or of the flags."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
from contextlib import suppress
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.steward import ran, refused

Capture = pytest.CaptureFixture[str]
POLICY = """
ledger = "people.ledger"
[datasets.people]
budget = { epsilon = 1 }
adjacency = "add/remove"
[datasets.people.tables.people]
source = "people.parquet"
protect = { person = "person_id", max_rows = 1 }
[datasets.people.tables.people.columns]
age = { integer = [0, 110] }
region = { keys = ["north", "south"] }
[datasets.people.tables.ages]
source = "ages/ages.parquet"
protect = { person = "age", max_rows = 1 }
columns = { age = { integer = [0, 110] } }
[datasets.people.tables.empty]
source = "empty.parquet"
protect = { person = "age", max_rows = 1 }
"""
CSV = "person_id,age,region,secret\na,30,north,1\nb,,south,2\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(CSV, encoding="utf-8")
    (tmp_path / "privet.toml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "ages").mkdir()
    return tmp_path


def test_help() -> None:
    assert "Example: privet import people.csv -o people.parquet" in ran("import", "--help").output


def test_with_a_policy(here: Path) -> None:
    result = ran("import", "people.csv", "-o", "people.parquet", "--policy", "privet.toml")
    assert result.stdout == "people.parquet\n"
    assert result.stderr.splitlines() == [
        "people.csv -> people.parquet",
        "For the steward only: this report describes individual rows.",
        "2 rows, 0 bad; 0 empty lines skipped",
        "  person_id  0 missing, 0 bad",
        "  age        1 missing, 0 bad",
        "  region     0 missing, 0 bad",
        "People: 2 by person_id, none with more than 1 row.",
    ]
    assert pq.read_table("people.parquet").to_pydict() == {
        "person_id": ["a", "b"],
        "age": [30, None],
        "region": ["north", "south"],
    }


@pytest.mark.parametrize("arguments", [(), ("--table", "people"), ("--policy", "privet.toml"), ("--table", "PEOPLE")])
def test_what_can_be_left_out(here: Path, arguments: tuple[str, ...]) -> None:
    ran("import", "people.csv", *arguments)
    assert pq.read_schema("people.parquet").names == ["person_id", "age", "region"]


def test_the_id_is_of_its_declared_type(here: Path) -> None:
    ran("import", "people.csv", "--table", "ages")
    assert pq.read_schema("ages/ages.parquet") == pa.schema({"age": pa.int64()})


def test_from_another_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("ages")
    ran("import", "../people.csv", "-o", "../people.parquet", "--policy", "../privet.toml")
    assert (here / "people.parquet").exists()


def test_with_flags(here: Path) -> None:
    (here / "odd.csv").write_text("1|1,5|yes|2024-01-01|NA\n", encoding="latin-1")
    columns = ("who=integer", "pay=number 0 10", "smoker=boolean", "day=date", "kind=keys 1 2")
    flags = [word for column in columns[1:] for word in ("--column", column)]
    dialect = ("--separator", "|", "--decimal", ",", "--encoding", "latin-1", "--missing", "NA")
    names = ("--header", "who,pay,smoker,day,kind", "--id", "who", "--id-type", "integer", "--allow-missing", "kind")
    ran("import", "odd.csv", "-o", "odd.parquet", *flags, *dialect, *names)
    assert [str(kind) for kind in pq.read_schema("odd.parquet").types] == [
        "int64",
        "double",
        "bool",
        "date32[day]",
        "int64",
    ]
    (row,) = pq.read_table("odd.parquet").to_pylist()
    assert (row["who"], row["pay"], row["kind"]) == (1, 1.5, None)


def test_one_bad_value_and_nothing_is_written(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "people.csv").write_text(f"{CSV}c,qzx7marker,north,3\nd,4\n", encoding="utf-8")
    said = refused(capsys, monkeypatch, "import", "people.csv")
    first, *rest = said.splitlines()
    assert first.startswith("error: 'people.csv' was not imported, and nothing was written: 1 bad row, 1 bad value.")
    assert rest == [
        "  line 4: age: 'qzx7marker' is not a 64-bit whole number",
        "  line 5: 2 fields instead of 4: 'd,4'",
        "Fix the file, change the declaration, or read them all as missing: --bad-rows missing --bad-values missing",
    ]
    assert sorted(path.name for path in here.iterdir()) == ["ages", "people.csv", "privet.toml"]
    ran("import", "people.csv", "--bad-rows", "missing", "--bad-values", "missing")
    assert pq.read_table("people.parquet").column("age").to_pylist() == [30, None, None, None]


def test_a_file_is_not_replaced(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "people.parquet").write_text("mine", encoding="utf-8")
    assert refused(capsys, monkeypatch, "import", "people.csv").endswith(
        "already exists. Choose another file, or overwrite it. Write: --force\n"
    )
    assert (here / "people.parquet").read_text(encoding="utf-8") == "mine"
    ran("import", "people.csv", "--force")
    assert pq.read_metadata("people.parquet").num_rows == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.csv", "-o", "people.parquet"), "there is no file 'nowhere.csv'"),
        (("people.csv", "-o", "x.parquet"), "The tables are: people, ages, empty. Choose one with --table"),
        (("people.csv", "--table", "peeple"), "Did you mean 'people'?"),
        (
            ("people.csv", "--table", "empty"),
            "declares no column of 'empty'. Complete a line of [datasets.people.tables.empty.columns] first",
        ),
        (
            ("people.csv", "--column", "age=integer"),
            "no output file was named. Write, for example: -o people.parquet",
        ),
        (("people.csv", "--column", "age=integer", "--policy", "privet.toml"), "with --column, not both"),
        (("people.csv", "-o", "x.parquet", "--column", "age"), "does not declare a column"),
        (("people.csv", "-o", "x.parquet", "--column", "age=int"), "'int' is not a kind of column"),
        (
            ("people.csv", "-o", "x.parquet", "--column", "agee=integer"),
            "Did you mean 'age'? Write, for example: privet",
        ),
        (
            ("people.csv", "-o", "x.parquet", "--column", "age=integer", "--id-type", "number"),
            "the type of an id must be",
        ),
        (("people.csv", "--separator", ";;"), "Write, for example: --separator ';'"),
        (("people.csv", "--bad-rows", "ignore"), "bad_rows must be 'fail' or 'missing'"),
        (("people.csv", "--policy", "other.toml"), "there is no policy 'other.toml'"),
    ],
)
def test_refusals(
    here: Path, arguments: tuple[str, ...], said: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said in refused(capsys, monkeypatch, "import", *arguments)
    assert not (here / "people.parquet").exists()
    assert not (here / "x.parquet").exists()


def test_without_columns(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "privet.toml").unlink()
    said = refused(capsys, monkeypatch, "import", "people.csv")
    assert "privet import people.csv -o people.parquet --id person_id --column age=integer" in said


# --- how values are written, and what is proposed -----------------------------------------------------

ODD = "person_id;age;pay;born;ok\na;30;1.234,5;31.12.1990;ja\nb;NA;7;1.2.1991;nein\n"
COLUMNS = ("--column", "age=integer", "--column", "pay=number", "--column", "born=date", "--column", "ok=boolean")


def test_a_refusal_names_the_flags_that_help(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is guessed; but each problem comes with its line, its text and the flag to write."""
    (here / "odd.csv").write_text(ODD, encoding="utf-8")
    first = ("import", "odd.csv", "-o", "odd.parquet", "--id", "person_id", *COLUMNS)
    assert "separated by ';': --separator ';'" in refused(capsys, monkeypatch, *first)
    told = refused(capsys, monkeypatch, *first, "--separator", ";").splitlines()
    assert told[1:] == [
        "  line 2: pay: '1.234,5' is not a number",
        "  line 2: born: '31.12.1990' is not a date such as 2024-12-31",
        "  line 2: ok: 'ja' is not true or false (t or f, yes or no, y or n, 1 or 0)",
        "  line 3: age: 'NA' is not a 64-bit whole number",
        "  line 3: born: '1.2.1991' is not a date such as 2024-12-31",
        "  line 3: ok: 'nein' is not true or false (t or f, yes or no, y or n, 1 or 0)",
        "'NA' is in age (1 time). If it means missing: --missing NA",
        "pay would parse with another separator: --decimal ',' --thousands .",
        "the dates in 'born' match this format: --date-format born=%d.%m.%Y",
        "If you know which words of ok mean true and false: --true ja --false nein",
        "Fix the file, change the declaration, or read them all as missing: --bad-values missing",
    ]
    proposed = [word for line in told[7:11] for word in shlex.split(line.rpartition(": ")[2])]
    ran(*first, "--separator", ";", *proposed)
    assert pq.read_table("odd.parquet").to_pydict() == {
        "person_id": ["a", "b"],
        "age": [30, None],
        "pay": [1234.5, 7.0],
        "born": [date(1990, 12, 31), date(1991, 2, 1)],
        "ok": [True, False],
    }
    ran(*first, "--separator", ";", "--force", *[w.removeprefix("born=") for w in proposed])


def test_a_file_from_windows(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "people.csv").write_bytes("person_id,age,region\nMüller,1,north\n".encode("cp1252"))
    told = refused(capsys, monkeypatch, "import", "people.csv")
    assert "line 2: byte 0xfc is not utf-8 text" in told
    assert "If the file comes from Windows or from Excel: --encoding cp1252" in told
    ran("import", "people.csv", "--encoding", "cp1252")


def test_the_report_tells_caps_bounds_and_markers(here: Path) -> None:
    (here / "people.csv").write_text("person_id,age,region\na,200,NA\na,3,north\n,4,north\n", encoding="utf-8")
    assert ran("import", "people.csv").stderr.splitlines()[3:] == [
        "  person_id  1 missing, 0 bad",
        "  age        0 missing, 0 bad, 1 outside 0..110 (clamped in answers, in no group)",
        "  region     0 missing, 0 bad, 1 not among the keys, such as 'NA' (left out of groups)",
        (
            "People: 1 by person_id, 1 with more than 1 row. "
            "Rows left out of an answer: 1 over this cap, 1 without person_id."
        ),
        "'NA' is in region (1 time), and was kept as text. If it means missing: --missing NA",
    ]


def test_missing_in_all_columns_or_in_one(here: Path) -> None:
    (here / "people.csv").write_text("person_id,age,region\na,south,south\nb,3,north\n", encoding="utf-8")
    told = ran("import", "people.csv", "--missing", "south").stderr
    assert told.endswith(
        "'south' is also a key of region, and stays one there. If it means missing there, too: --missing region=south\n"
    )
    assert pq.read_table("people.parquet")["region"].to_pylist() == ["south", "north"]
    ran("import", "people.csv", "--missing", "south", "--missing", "region=south", "--force")
    assert pq.read_table("people.parquet")["region"].to_pylist() == [None, "north"]


def test_a_missing_file_is_told_first(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "privet.toml").unlink()
    for more in ([], ["-o", "x.parquet"], ["--policy", "none.toml"], ["--column", "age"]):
        assert refused(capsys, monkeypatch, "import", "none.csv", *more).startswith(
            "error: there is no file 'none.csv'"
        )


def test_kinds_without_bounds_are_not_compared(here: Path) -> None:
    flags = ("--column", "age=integer", "--column", "region=keys")
    assert "outside" not in ran("import", "people.csv", "-o", "x.parquet", *flags).stderr
    told = ran("import", "people.csv", "-o", "x.parquet", "--force", "--column", "age=integer 0 9").stderr
    assert "1 outside 0..9" in told


def test_a_column_without_values(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "people.csv").write_text("person_id,age,region\na,,north\n", encoding="utf-8")
    assert refused(capsys, monkeypatch, "import", "people.csv").endswith(
        "age would be missing in every row.\nIf that is right: --allow-missing age\n"
    )
    ran("import", "people.csv", "--allow-missing", "age")
    assert pq.read_table("people.parquet").column("age").to_pylist() == [None]


def test_no_bar_where_nobody_looks(here: Path) -> None:
    assert "reading" not in ran("import", "people.csv").output


def test_a_bar_on_a_terminal(here: Path) -> None:
    """In a terminal of its own, the bar is shown and then gone."""
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "privet", "import", "people.csv"]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=terminal, check=True, env=os.environ | {"TERM": "xterm"}
    )
    os.close(terminal)
    shown = b""
    with suppress(OSError):  # the end of a terminal
        while more := os.read(controller, 65_536):
            shown += more
    os.close(controller)
    assert done.stdout == b"people.parquet\n"
    assert b"reading" in shown
    assert b"2 rows, 0 bad" in shown
