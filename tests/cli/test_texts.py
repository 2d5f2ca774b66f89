"""What a person at a terminal reads when something is wrong: their own language, readable numbers, no Python."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.asking import COUNT, POLICY, Shell, made

from privet.ledger import open_ledger

PYTHON = re.compile(r"\bpv\.|session\.|(?:epsilon|assuming|confidence)=\d|=True|PureDP|codec|Errno|Traceback")


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(made(tmp_path))
    Path("folder").mkdir()
    Path("empty").touch()
    Path("windows.sql").write_bytes("SELECT COUNT(*) AS n\nFROM people WHERE region = 'größer'".encode("cp1252"))
    Path("wide.sql").write_bytes(COUNT.encode("utf-16"))
    Path("windows.toml").write_bytes((POLICY + "# größer\n").encode("cp1252"))
    Path("regions.csv").write_bytes("region,name\nnorth,Nörd\nsouth,S\n".encode("cp1252"))
    keys = '{ keys_from = "regions.csv", column = "name" }'
    public = '[public.regions]\nsource = "regions.csv"\nkey = "region"'
    Path("keys.toml").write_text(POLICY.replace('{ keys = ["north", "south"], other = "elsewhere" }', keys))
    Path("public.toml").write_text(f"{POLICY}\n{public}\n")
    Path("rho.toml").write_text(POLICY.replace("{ epsilon = 3 }", "{ rho = 0.5 }"))
    Path("dataset-rho.toml").write_text(POLICY.replace("{ epsilon = 3 }", "{ epsilon = 3 }\nrho = 0.5"))
    pq.write_table(pq.read_table("people.parquet").rename_columns({"income": "body-mass"}), "penguins-raw.parquet")
    penguins = POLICY.replace("tables.people", "tables.penguins-raw").replace("people.parquet", "penguins-raw.parquet")
    Path("dash.toml").write_text(penguins.replace("income =", "body-mass ="))
    return Shell(capsys, monkeypatch)


ASK = ("query", COUNT, "--epsilon", "0.5")
WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "a policy from Windows": (
        (*ASK, "--policy", "windows.toml"),
        "line 22: this is not UTF-8 (byte 0xf6). If it is cp1252 from Windows, convert it: iconv -f cp1252 -t utf-8",
    ),
    "a statement from Windows": (
        ("query", "-f", "windows.sql", "--epsilon", "1"),
        "windows.sql, line 2: this is not UTF-8",
    ),
    "a statement from PowerShell": (
        ("query", "-f", "wide.sql", "--epsilon", "1"),
        "iconv -f utf-16 -t utf-8 wide.sql > new.sql",
    ),
    "keys from Windows": ((*ASK, "--policy", "keys.toml"), "regions.csv, line 2: this is not UTF-8 (byte 0xf6)"),
    "a public table from Windows": (
        (*ASK, "--policy", "public.toml"),
        "iconv -f cp1252 -t utf-8 regions.csv > new.csv",
    ),
    "a budget in rho": (
        (*ASK, "--policy", "rho.toml"),
        "the budget is in rho, so a cap must be too",
    ),
    "rho beside a budget": ((*ASK, "--policy", "dataset-rho.toml"), "rho belongs in budget"),
    "a name with a dash": (
        ("query", "SELECT COUNT(*) FROM penguins-raw", "--epsilon", "1", "--policy", "dash.toml"),
        'put a name with a dash in double quotes: "penguins-raw".',
    ),
    "a column with a dash": (
        ("query", 'SELECT SUM(body-mass) FROM "penguins-raw"', "--epsilon", "1", "--policy", "dash.toml"),
        'double quotes: "body-mass".',
    ),
    "a text in double quotes": (
        ("query", 'SELECT COUNT(*) FROM people WHERE region = "north"', "--epsilon", "1"),
        "Put a text value in single quotes: 'north'.",
    ),
    "a text that looks like advice": (
        ("query", "SELECT COUNT(*) FROM people WHERE age = 'Write'", "--epsilon", "1"),
        "an integer in 0..110 and the text 'Write' can't be compared",
    ),
    "a text that looks like a sentence of advice": (
        ("query", "SELECT COUNT(*) FROM people WHERE age = '. Write: pv.x'", "--epsilon", "1"),
        "and the text '. Write: pv.x' can't be compared",
    ),
    "a size to assume": (
        ("query", "SELECT AVG(age) AS m FROM people", "--within", "m=5"),
        "the number of rows in a group, so assume one. Write, for example: --assuming 500",
    ),
    "a size that is not a number": (
        ("query", "SELECT AVG(age) AS m FROM people", "--within", "m=5", "--assuming", "x"),
        "--assuming must be a whole number, 1 or greater, not 'x'. Write, for example: --assuming 500",
    ),
    "an error that is not a number": (
        ("query", COUNT, "--within", "n=x"),
        "within of n must be a number greater than 0, not 'x'. Write, for example: --within n=2",
    ),
    "no epsilon": (
        ("query", COUNT, "--epsilon", "0"),
        "epsilon must be a number greater than 0, not '0'. Write, for example: --epsilon",
    ),
    "a folder as a policy": (
        (*ASK, "--policy", "folder"),
        "'folder' is a folder, not a policy. Write, for example: --policy folder/privet.toml",
    ),
    "a folder as a statement": (("query", "-f", "folder", "--epsilon", "1"), "'folder' is a folder. Name the file"),
    "an empty statement": (("query", "-f", "empty", "--epsilon", "1"), "the question is empty"),
    "a folder as a ledger": (("budget", "folder"), "is not a ledger"),
    "a reason that is blank": (
        ("ledger", "cap", "people.ledger", "--epsilon", "1", "--reason", " "),
        '--reason "more memory',
    ),
    "a cap that is not a number": (
        ("ledger", "cap", "people.ledger", "--epsilon", "x", "--reason", "y"),
        "Write, for example: --epsilon 0.5",
    ),
    "a cap without an amount": (("ledger", "cap", "people.ledger", "--reason", "y"), "the new budget is missing"),
    "a cap with a delta": (
        ("ledger", "cap", "people.ledger", "--epsilon", "1", "--delta", "1e-6", "--reason", "y"),
        "the budget of 'people' has no delta",
    ),
}


@pytest.mark.parametrize(("arguments", "says"), WRONG.values(), ids=WRONG)
def test_wrong_commands(shell: Shell, arguments: tuple[str, ...], says: str) -> None:
    if "people.ledger" in arguments:
        shell("query", COUNT, "--epsilon", "0.5")
    error = shell.refused(2, *arguments)
    assert says in error
    told = "\n".join(line for line in error.splitlines() if not re.match(r"  (SELECT| *\^)", line))
    assert not PYTHON.search(told.replace("pv.x", ""))
    assert Path("empty").stat().st_size == 0, "nothing is made of a file that was there"


def test_an_empty_file_is_a_ledger_that_was_emptied(shell: Shell) -> None:
    error = shell.refused(5, "budget", "empty")
    assert "the ledger 'empty' is an empty file. Privet never creates one, so the ledger was emptied" in error
    assert not PYTHON.search(error)
    assert Path("empty").stat().st_size == 0, "nothing is made of a file that was there"


def test_statements_may_begin_with_the_mark_of_windows(shell: Shell) -> None:
    Path("marked.sql").write_bytes(COUNT.encode("utf-8-sig"))
    Path("marked.toml").write_bytes(POLICY.encode("utf-8-sig"))
    shell("query", "-f", "marked.sql", "--epsilon", "0.5", "--policy", "marked.toml")


def test_statements_on_stdin_from_windows(shell: Shell) -> None:
    error = shell.refused(2, "query", "--epsilon", "1", stdin=Path("windows.sql").read_bytes())
    assert "stdin, line 2: this is not UTF-8" in error


def test_explain_speaks_of_flags(shell: Shell) -> None:
    for form in (["explain"], ["query", "--dry-run"]):
        text = shell.out(*form, "SELECT AVG(income) AS pay FROM people", "--epsilon", "0.5")
        assert "assume one with --assuming 500" in text
        assert "assuming=" not in text


def test_amounts_that_are_left_are_short(shell: Shell) -> None:
    shell("query", COUNT, "--epsilon", "500000000000000001/1000000000000000003")
    error = shell.refused(3, "query", COUNT, "--epsilon", "3")
    found = re.search(r"only epsilon (\S+) is left", error)
    assert found is not None
    assert re.fullmatch(r"\d\.\d{1,5}", found[1]), "and not 1117499999999999999/25000000000000000"
    shell("query", COUNT, "--epsilon", found[1])


@pytest.mark.parametrize("failures", [3, 10])
def test_a_closed_dataset_is_opened_by_a_command(shell: Shell, failures: int) -> None:
    shell("query", COUNT, "--epsilon", "0.5")
    with closing(open_ledger("people.ledger")) as ledger:
        for number in range(failures):
            who = "analyst" if failures == 3 else f"a{number}"
            charge = ledger.reserve(dataset="people", analyst=who, request_id=str(number), events=[])
            ledger.settle(charge, "failed")
    error = shell.refused(4, "query", COUNT, "--epsilon", "0.25", "--fresh")
    assert f"error: {failures} questions " in error
    command = ["ledger", "reopen", "--dataset", "people", "--reason", "what was done about it"]
    assert 'Write: privet ledger reopen --dataset people --reason "what was done about it"' in error
    assert "The dataset 'people' is open to everybody." in shell.run(*command).err
    assert "The dataset 'people' was open: none of its questions had failed." in shell.run(*command).err
    shell("query", COUNT, "--epsilon", "0.25", "--fresh")


@pytest.mark.parametrize("number", ["9" * 4300, "0." + "1" * 4300, "1/" + "9" * 4300, "1e4300"])
def test_numbers_of_thousands_of_digits(shell: Shell, number: str) -> None:
    """Python itself refuses to read them, in words of its own."""
    for flags in (["--epsilon", number], ["--epsilon", "1", "--confidence", number], ["--within", f"n={number}"]):
        said = shell.refused(2, "query", COUNT, *flags)
        assert "of at most 400 characters" in said
        assert len(said) < 400
