"""`privet init`: a policy from names and types and from what is answered, that loads; and no value in it."""

from __future__ import annotations

import re
import shlex
import tomllib
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.asking import Shell
from tests.cli.steward import ran, refused
from typer.testing import CliRunner

import privet as pv
from privet import cli
from privet.errors import UserError
from privet.policy import load, parse
from privet.policy.catalog import find
from privet.policy.proposals import person, proposal
from privet.policy.shorthand import shorthand
from privet.sources.survey import make_survey
from privet.sql import parse as parse_sql
from privet.sql.quoting import quoted
from privet.tables.relation import Table
from privet.tables.schema import Schema

Refusal = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_survey(".", 200)
    return tmp_path


def written(path: str = "privet.toml") -> dict[str, Any]:
    return tomllib.loads(Path(path).read_text(encoding="utf-8"))


def test_help() -> None:
    assert "Example: privet init people.parquet" in ran("init", "--help").output


def test_from_data_to_an_answer(here: Path) -> None:
    """The whole way: init, load, open, ask."""
    arguments = ("--person", "person_id", "--max-rows", "1", "--max-rows", "visits=20", "--epsilon", "3")
    columns = ("--column", "income=number 0 200000", "--column", "region=keys north south other elsewhere")
    result = ran("init", "people.parquet", "visits.parquet", "--yes", "--dataset", "health", *arguments, *columns)
    assert result.stdout == "privet.toml\n"
    assert result.stderr.splitlines() == [
        "Guessed from names and types, not from values. Check these lines of privet.toml:",
        "  people: age = { integer = [0, 110] }",
        f"  visits: day = {{ date = [1900-01-01, {date.today().year}-12-31] }}",
        "Not declared; complete their comments in the policy to use them:",
        "  visits: kind, cost, minutes",
    ]
    policy = load()
    dataset = policy.dataset_of("visits")
    assert dataset.name == "health"
    assert dataset.budget == pv.PureDP(3)
    people, visits = dataset.tables()
    assert people.schema == (
        pv.table(
            "people",
            "people.parquet",
            protect=pv.person("person_id", max_rows=1),
            columns={
                "region": pv.keys("north", "south", other="elsewhere"),
                "age": pv.integer(0, 110),
                "income": pv.number(0, 200_000),
                "smoker": pv.boolean(),
            },
        ).schema
    )
    assert visits.schema.protect == pv.person("person_id", max_rows=20)
    with pv.Session(
        [people, visits], budget=dataset.budget, ledger=policy.ledger, name=dataset.name, version=dataset.version
    ) as session:
        answer = session.release(people.group_by("region").agg(n=pv.count(), pay=pv.mean("income")), epsilon=1)
    assert len(answer.values("n")) == 3
    assert (here / "health.ledger").exists()


def test_only_proposals(here: Path) -> None:
    ran("init", "people.parquet", "--yes")
    tree = written()
    assert tree["datasets"]["people"]["budget"] == {"epsilon": 1}
    table = tree["datasets"]["people"]["tables"]["people"]
    assert table["protect"] == {"person": "person_id", "max_rows": 1}
    assert table["columns"] == {"age": {"integer": [0, 110]}, "smoker": "boolean"}
    lines = (here / "privet.toml").read_text(encoding="utf-8").splitlines()
    assert "# income = { number = [LOWER, UPPER] }    # bounds that you know" in lines
    assert max(map(len, lines)) <= 120
    more = (
        "# per_query",
        "# min_epsilon",
        "# per_analyst",
        "# share_answers",
        "# [datasets.people.analysts]",
        "# research",
    )
    parse("\n".join(line.removeprefix("# ") if line.startswith(more) else line for line in lines))


def test_two_columns_of_keys_show_how_one_lies_within_the_other(here: Path) -> None:
    ran("init", "people.parquet", "--yes", "--column", "region=keys north south", "--column", "age=keys 1 2 3")
    text = (here / "privet.toml").read_text(encoding="utf-8")
    form = '# age = { keys = { north = ["..."], south = ["..."] }, within = "region" }'
    assert f"{form}    # instead, if each age lies in one region\n" in text
    declared = "age = { keys = [1, 2, 3] }"
    assert declared in text
    filled = form.removeprefix("# ").replace('["..."]', "[1]", 1).replace('["..."]', "[2, 3]")
    tree = tomllib.loads(text.replace(declared, filled, 1))
    assert tree["datasets"]["people"]["tables"]["people"]["columns"]["age"]["keys"] == {"north": [1], "south": [2, 3]}
    assert list(parse(text.replace(declared, filled, 1)).datasets) == ["people"]


def test_keys_that_lie_within_others(here: Path) -> None:
    """In one line, with or without commas; then nothing is suggested, and the policy can be read."""
    for line in ("north: 1 2 south: 3 within region", "north: 1, 2, south: 3, within region"):
        ran(
            "init",
            "people.parquet",
            "--yes",
            "--force",
            "--column",
            "region=keys north south",
            "--column",
            f"age=keys {line}",
        )
        text = (here / "privet.toml").read_text(encoding="utf-8")
        assert 'age = { keys = { north = [1, 2], south = [3] }, within = "region" }' in text
        assert "lies in one" not in text
        (table, *_) = parse(text, here / "privet.toml").datasets["people"].tables()
        within = dict(table.schema.columns)["age"].within
        assert within is not None
        assert within.parents == ("north", "north", "south")


@pytest.mark.parametrize("line", ["1 2 within region", "north: 1 south: 2"])
def test_keys_within_others_need_both_parts(line: str) -> None:
    with pytest.raises(UserError, match=r"age: name the column of keys that these lie within.*keys north: Alta Bodo"):
        shorthand("age", f"keys {line}")


def test_comments_can_be_filled_in(here: Path) -> None:
    """Every line that was left out, without its sign and with its gaps filled, is a column."""
    ran("init", "people.parquet", "visits.parquet", "--yes")
    filled = []
    for line in (here / "privet.toml").read_text(encoding="utf-8").splitlines():
        if "LOWER, UPPER" in line or '"...", "..."' in line:
            line = line.removeprefix("# ").replace("LOWER, UPPER", "0, 9").replace('"...", "..."', '"a", "b"')
        filled.append(line)
    tables = parse("\n".join(filled), here / "privet.toml").datasets["people"].tables()
    assert [len(table.schema.columns) for table in tables] == [4, 4]


def test_questions(here: Path) -> None:
    answers = (
        "health",
        "nobody",  # there is no such column: asked again
        "person_id",
        "zero",  # no number: asked again
        "2",
        "?",  # the forms, then asked again
        "keys north south other elsewhere",
        "",  # as proposed
        "number 9 0",  # reversed: asked again
        "number 0 200000",
        "",
        "",  # visits: the person as proposed
        "20",
        "",
        "skip",
        "number 0 2000 required",
        "skip",
        "-1",  # epsilon: asked again
        "2.5",
        "either",  # adjacency: asked again
        "replace",
    )
    result = ran("init", "people.parquet", "visits.parquet", answers=answers)
    for said in (
        "There is no column 'nobody'. The columns are: person_id, region, age, income, smoker",
        "max_rows must be a whole number, 1 or greater, not 'zero'",
        "keys north south other elsewhere",
        "income: lower must be less than upper, not [9, 0].",
        "epsilon must be a number",
        '"either" is neither of them. Type add/remove, or replace.',
    ):
        assert said in result.output
    dataset = load().datasets["health"]
    assert dataset.budget == pv.PureDP("2.5")
    assert dataset.adjacency == "replace"
    people, visits = dataset.tables()
    assert people.schema.protect == pv.person("person_id", max_rows=2)
    assert dict(people.schema.columns)["income"] == pv.number(0, 200_000)
    assert [name for name, _ in visits.schema.columns] == ["day", "cost"]
    assert dict(visits.schema.columns)["cost"] == pv.number(0, 2000, required=True)


def test_each_row(here: Path) -> None:
    ran(
        "init", "people.parquet", "--yes", "--each-row", "--adjacency", "replace", "--epsilon", "1/3", "--delta", "1e-6"
    )
    dataset = load().datasets["people"]
    assert dataset.budget == pv.ApproxDP("1/3", "1e-6")
    text = (here / "privet.toml").read_text(encoding="utf-8")
    caps = [line for line in text.splitlines() if line.startswith(("# per_query", "# per_analyst", "# research"))]
    assert len(caps) == 3
    assert all("{ epsilon = 0.5, delta = 0.000001 }" in line for line in caps)
    (people,) = dataset.tables()
    assert people.schema.protect == pv.each_row()
    assert "# person_id = { integer = [LOWER, UPPER] }" in (here / "privet.toml").read_text(encoding="utf-8")


def test_each_row_is_never_chosen_silently(here: Path) -> None:
    """A column that may tell whose row it is: Enter chooses nothing, and the choice is told and written down."""
    pq.write_table(pa.table({"memberRef": ["a", "b"], "age": [30, 40]}), here / "club.parquet")
    result = ran("init", "club.parquet", answers=("", "each row", "skip", "integer 0 110", "1", ""))
    assert load().datasets["club"].tables()[0].schema.protect == pv.each_row()
    assert "club: each row is protected, not the person (memberRef)" in result.output
    text = (here / "privet.toml").read_text(encoding="utf-8")
    assert 'memberRef may tell whose they are: protect = { person = "memberRef", max_rows = 1 }' in text
    pq.write_table(pa.table({"age": [30, 40]}), here / "ages.parquet")
    told = ran("init", "ages.parquet", "--yes", "--each-row", "--force").output
    assert "each row is protected, not the person" not in told


def test_a_budget_in_rho(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ran("init", "people.parquet", "--yes", "--each-row", "--rho", "0.1")
    assert load().datasets["people"].budget == pv.ZeroConcentratedDP("0.1")
    text = (here / "privet.toml").read_text(encoding="utf-8")
    assert "budget = { rho = 0.1 }" in text
    assert "# per_query = { rho = 0.05 }" in text
    both = ("--rho", "0.1", "--epsilon", "1")
    told = refused(capsys, monkeypatch, "init", "people.parquet", "--yes", "--each-row", "--force", *both)
    assert "a budget in rho can't have epsilon" in told


def test_a_pattern_and_another_folder(here: Path) -> None:
    (here / "years").mkdir()
    for year in ("2023", "2024"):
        (here / "years" / f"{year}.parquet").write_bytes((here / "people.parquet").read_bytes())
    (here / "policies").mkdir()
    ran("init", "years/*.parquet", "other=people.parquet", "--yes", "-o", "policies/p.toml")
    tables = written("policies/p.toml")["datasets"]["years"]["tables"]
    assert tables["years"]["source"] == "../years/*.parquet"
    assert tables["other"]["source"] == "../people.parquet"
    assert len(load("policies/p.toml").datasets["years"].tables()) == 2


def test_a_database(here: Path) -> None:
    with duckdb.connect("homes.duckdb") as connection:
        connection.execute("CREATE TABLE homes (customer_id UUID, rooms INT, kind ENUM('marker'), seen TIMESTAMP)")
        connection.execute("CREATE TABLE sales (customer_id UUID, month UTINYINT, photo BLOB, shares STRUCT(a INT))")
        connection.execute("CREATE SCHEMA raw; CREATE TABLE raw.notes (id INT, percent DOUBLE)")
    ran("init", "homes.duckdb", "--yes", "--person", "notes=id")
    text = (here / "privet.toml").read_text(encoding="utf-8")
    tables = {table.name: table for table in load().dataset_of("homes").tables()}
    assert set(tables) == {"homes", "sales", "notes"}
    assert "# photo    # its type can't be asked about" in text
    assert 'source = { duckdb = "homes.duckdb", table = "notes", schema = "raw" }' in text
    assert "marker" not in text
    assert dict(tables["sales"].schema.columns) == {"month": pv.integer(1, 12)}
    with duckdb.connect("homes.duckdb") as connection:
        connection.execute("CREATE TABLE raw.sales (customer_id UUID)")
    ran("init", "homes.duckdb", "--yes", "--each-row", "--force")
    assert {*load().dataset_of("homes").declared} == {"homes", "sales", "notes", "raw_sales"}
    ran("init", "flats=homes.duckdb:homes", "--yes", "--force")
    assert list(load().dataset_of("flats").declared) == ["flats"]


# --- CSV ----------------------------------------------------------------------------------------

CSV = (
    "patient_id;age;pay;smoker;seen;at;note;empty\n"
    "1;30;2000.5;yes;2024-01-01;2024-01-01T10:00:00;a;\n"
    "2;;;no;2024-02-01;2024-01-01;b;\n"
)


def test_a_csv_with_consent(here: Path) -> None:
    (here / "pay.csv").write_text(CSV, encoding="utf-8")
    result = ran("init", "pay.csv", "--yes", "--sniff", "--column", "pay=number 0 9000")
    line = "privet import pay.csv -o pay.parquet --policy privet.toml --separator ';' --id-type integer"
    assert f"Next: {line}\n" in result.stderr
    assert f"# pay.csv is imported into this file: {line}\n" in Path("privet.toml").read_text("utf-8")
    table = written()["datasets"]["pay"]["tables"]["pay"]
    assert table["source"] == "pay.parquet"
    assert list(table["columns"]) == ["age", "pay", "smoker", "seen", "at"]
    ran("import", "pay.csv", "-o", "pay.parquet", "--policy", "privet.toml", "--separator", ";", "--id-type", "integer")
    (pay,) = load().datasets["pay"].tables()
    assert pay.source.types()["patient_id"].name == "BIGINT"
    assert pay.source.types()["at"].name == "TIMESTAMP"


def test_a_csv_without_consent(here: Path) -> None:
    """Its values are not read: a file that can't be decoded after its header is no hindrance."""
    (here / "pay.csv").write_bytes(b"patient_id,age,pay\n" + b"\xff\xfe,\xff,\x00\n" * 3)
    ran("init", "pay.csv", "--yes", "--column", "pay=number 0 9000")
    table = written()["datasets"]["pay"]["tables"]["pay"]
    assert table["columns"] == {"pay": {"number": [0, 9000]}}
    answers = ("n", "", "", "", "integer 0 99", "", "")
    result = ran("init", "pay.csv", "--force", answers=answers)
    assert "Privet can read its values to guess them. It shows no value." in result.output
    assert written()["datasets"]["pay"]["tables"]["pay"]["columns"] == {"pay": {"integer": [0, 99]}}


@pytest.mark.parametrize("header", ["1,2,3", "name,,x", "a,2024-01-01", ""])
def test_a_csv_without_a_header(here: Path, header: str, capsys: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "pay.csv").write_text(f"{header}\nx,y,z\n", encoding="utf-8")
    said = refused(capsys, monkeypatch, "init", "pay.csv", "--yes")
    assert "looks like values" in said or "has no header" in said
    assert "2024" not in said


# --- what is never shown ------------------------------------------------------------------------

MARKER = "qzx7marker"


def test_no_value_is_shown(here: Path) -> None:
    """A marker in every cell, in statistics and in the names of types: it is in no output and in no file."""
    cells = {
        "person_id": pa.array([MARKER] * 3),
        "region": pa.array([MARKER] * 3).dictionary_encode(),
        "age": pa.array([7_777_777] * 3, pa.int64()),
        "pay": pa.array([7_777_777.0] * 3),
        "born": pa.array([7_777_777 // 1000] * 3, pa.int32()).cast(pa.date32()),
    }
    pq.write_table(pa.table(cells), here / "marked.parquet", write_statistics=True)
    (here / "marked_csv.csv").write_text(
        "person_id,region,age,pay,born\n" + f"{MARKER},{MARKER},7777777,7777777.0,1991-04-17\n" * 3, encoding="utf-8"
    )
    with duckdb.connect("marked_db.duckdb") as connection:
        connection.execute(f"CREATE TABLE marked_db AS SELECT '{MARKER}' AS person_id, '{MARKER}'::ENUM('{MARKER}') k")
    data = ("marked.parquet", "marked_csv.csv", "marked_db.duckdb")
    outputs = [ran("init", *data, "--yes", "--sniff").output]
    text = Path("privet.toml").read_text(encoding="utf-8")
    outputs.append(ran("init", *data, "--force", answers=("y", *[""] * 30)).output)
    for shown in (*outputs, text, Path("privet.toml").read_text(encoding="utf-8")):
        for marker in (MARKER, "7777777", "7_777_777", "1991-04-17"):
            assert marker not in shown
    assert sorted(path.name for path in here.iterdir() if MARKER.encode() in path.read_bytes()) == [
        "marked.parquet",
        "marked_csv.csv",
        "marked_db.duckdb",
    ]


def test_only_the_schema_is_read(here: Path) -> None:
    """Pages that are broken are no hindrance; nor would a statistic be."""
    raw = bytearray((here / "people.parquet").read_bytes())
    footer = int.from_bytes(raw[-8:-4], "little") + 8
    raw[4:-footer] = b"\xff" * (len(raw) - footer - 4)
    (here / "people.parquet").write_bytes(raw)
    ran("init", "people.parquet", "--yes")
    assert list(load().dataset_of("people").declared) == ["people"]


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.parquet", "--yes"), "there is no file 'nowhere.parquet'"),
        (("nowhere.csv", "--yes"), "there is no file 'nowhere.csv'"),
        (("nowhere.duckdb", "--yes"), "there is no file 'nowhere.duckdb'"),
        (("nowhere.csv",), "there is no file 'nowhere.csv'"),  # before anything is asked
        (("people.parquet", "--yes", "--person", "persn_id"), "'person_id'? Write, for example: --person person_id"),
        (
            ("people.parquet", "--yes", "--person", "person_id", "--each-row"),
            "--person and --each-row contradict each other. Use --person COLUMN if a column identifies the person",
        ),
        (("people.parquet", "--yes", "--max-rows", "0"), "max_rows must be a whole number, 1 or greater"),
        (("people.parquet", "--yes", "--epsilon", "-1"), "epsilon must be a number"),
        (("people.parquet", "--yes", "--adjacency", "add"), "adjacency must be 'add/remove' or 'replace'"),
        (("people.parquet", "--yes", "--column", "age"), "does not declare a column"),
        (("people.parquet", "--yes", "--column", "agee=integer 0 1"), "Did you mean 'age'?"),
        (("people.parquet", "--yes", "--column", "age=integer 1 0"), "lower must be less than upper"),
        (
            ("people.parquet", "people.parquet", "--yes"),
            "two tables would be named 'people'. Give one another name. Write, for example: people_2=people.parquet",
        ),
        (("people.parquet", "--yes", "-o", "nowhere/privet.toml"), "there is no folder"),
        (
            ("anonymous.parquet", "--yes"),
            "which column identifies the person in 'anonymous'? The columns are: id, age.",
        ),
        (
            ("unknown.parquet", "--yes"),
            "use --each-row. Write: --person COLUMN",
        ),
        (("privet.ledger", "--yes"), "is not a readable Parquet file"),
        (("text.duckdb", "--yes"), "is not a readable DuckDB file"),
    ],
)
def test_refusals(
    here: Path, arguments: tuple[str, ...], said: str, capsys: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"id": [1], "age": [1]}), here / "anonymous.parquet")
    pq.write_table(pa.table({"row_id": [1], "age": [1]}), here / "unknown.parquet")
    for name in ("privet.ledger", "text.duckdb"):
        (here / name).write_text("no data", encoding="utf-8")
    assert said in refused(capsys, monkeypatch, "init", *arguments)
    assert not (here / "privet.toml").exists()


@pytest.mark.parametrize("data", ["people.parquet", "my people.csv"])
def test_without_a_terminal(here: Path, data: str, capsys: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "my people.csv").write_text("person_id,age\n1,2\n", encoding="utf-8")
    done = Shell(capsys, monkeypatch).run("init", data)
    assert done.code == 2
    assert done.err == f"error: there is no terminal to answer prompts. Write: privet init {shlex.quote(data)} --yes\n"
    assert not (here / "privet.toml").exists()


def test_a_policy_is_not_replaced(here: Path, capsys: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "privet.toml").write_text("mine", encoding="utf-8")
    said = refused(capsys, monkeypatch, "init", "people.parquet", "--yes")
    assert said == "error: 'privet.toml' already exists. Choose another file, or overwrite it. Write: --force\n"
    assert (here / "privet.toml").read_text(encoding="utf-8") == "mine"
    ran("init", "people.parquet", "--yes", "--force")
    load()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("postgresql://me:topsecret@h:5/b?options=-csearch_path%3Dx", "me@h:5/b?options=-csearch_path%3Dx"),
        ("postgresql://me@h/health?password=topsecret&sslmode=require", "me@h/health?sslmode=require"),
        ("postgresql://me@h/health?p%61ssword=topsecret", "me@h/health"),
        ("postgresql://me%3Atopsecret@h/health", "h/health"),
        ("postgresql://me:top/secret@h/health", None),
        ("postgresql://me:top@secret@h/health", None),
        ("postgresql://me:topsecret/health", None),
        ("mysql://me:topsecret@h/health", None),
    ],
)  # fmt: skip
def test_a_ledger_s_password_is_not_written(
    here: Path, given: str, kept: str | None, capsys: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("init", "people.parquet", "--yes", "--person", "person_id", "--ledger", given)
    if kept is None:
        said = refused(capsys, monkeypatch, *arguments)
        assert not (here / "privet.toml").exists()
    else:
        said = ran(*arguments).output
        assert written()["ledger"] == f"postgresql://{kept}"
        assert "The ledger's address is in the policy without its password." in said
        assert "The policy has no password. Set PGPASSWORD, or use a password file (~/.pgpass) or a service." in said
        assert "secret" not in (here / "privet.toml").read_text(encoding="utf-8")
    assert "secret" not in said


def test_a_ledger_s_address_without_a_password_stays(here: Path) -> None:
    address = "postgresql://me@h:5432/health?options=-csearch_path%3Dx"
    said = ran("init", "people.parquet", "--yes", "--person", "person_id", "--ledger", address).output
    assert written()["ledger"] == address
    assert "without its password" not in said


def test_odd_names(here: Path) -> None:
    """Whatever columns are called, what is written loads."""
    odd = ['a "b"', "Age", "age", "tab\there", "x" * 130, "# c", "line\nbreak", "emoji \U0001f600", "is.dotted", "="]
    columns = {name: pa.array([True]) for name in odd}
    pq.write_table(pa.table({"person_id": [1], **columns}), here / "odd table.parquet")
    ran("init", "odd table.parquet", "--yes")
    table = written()["datasets"]["odd_table"]["tables"]["odd_table"]
    assert set(table["columns"]) == {'a "b"', "Age", "age_1", "# c", "emoji \U0001f600", "is.dotted", "="}
    (opened,) = load().dataset_of("odd_table").tables()  # age_1 is what DuckDB makes of the second one
    assert len(opened.schema.columns) == 7
    (here / "odd.csv").write_text("person_id,Age,age\n1,2,3\n", encoding="utf-8")
    ran("init", "odd.csv", "--yes", "--sniff", "--force")
    assert list(load().table("odd").columns()) == ["Age"]


def test_names_that_sql_reads_only_in_quotes(here: Path) -> None:
    """Columns keep their names, and the steward is told how to write them; tables get a name that needs no quotes."""
    columns = {"player_id": [1], "2B": [2], "net pay": [1.5], "limit": [3], "age": [4]}
    pq.write_table(pa.table(columns), here / "penguins-raw.parquet")
    given = [f for name in ("2B", "net pay", "limit") for f in ("--column", f"{name}=number 0 9")]
    told = ran("init", "penguins-raw.parquet", "--yes", "--max-rows", "1", "--epsilon", "2", *given).stderr
    assert told.startswith("penguins-raw.parquet: the table is named penguins_raw, which needs no quotes in SQL.\n")
    assert 'In SQL, write these names in double quotes: "2B", "net pay", "limit"\n' in told
    text = Path("privet.toml").read_text(encoding="utf-8")
    assert """2B = { number = [0, 9] }    # in SQL: "2B\"""" in text
    with pv.Session.open("privet.toml") as session:
        for name in ('"2B"', '"net pay"', '"limit"', "age"):
            session.parse(f"SELECT SUM({name}) AS s FROM penguins_raw")
    result = CliRunner().invoke(cli.app, ["schema"])
    assert '    "net pay"  a number in 0..9\n' in result.output


@pytest.mark.parametrize("name", ["age", "2B", "net pay", "limit", "select", "Größe", "count", "from", 'a"b', "year"])
def test_a_name_is_read_as_it_is_told(name: str) -> None:
    table = Table(Schema.declare(name, protect=pv.each_row(), columns={name: pv.integer(0, 9)}), None)
    found = parse_sql(f"SELECT SUM({quoted(name)}) AS s FROM {quoted(name)}", {name: table})
    assert found == table.agg(s=pv.sum(name))


# --- what was only guessed ------------------------------------------------------------------------


def test_what_was_guessed_is_told_and_marked(here: Path) -> None:
    told = ran("init", "people.parquet", "--yes").stderr
    for line in (
        "  people: person_id identifies the person",
        "  people: an answer uses at most 1 row per person_id (max_rows)",
        "  people: age = { integer = [0, 110] }",
        "  budget: epsilon 1, for all questions together, for the whole life of the dataset",
    ):
        assert f"{line}\n" in told
    assert "smoker" not in told, "a boolean has no bounds to guess"
    text = Path("privet.toml").read_text(encoding="utf-8")
    assert "age = { integer = [0, 110] }    # guessed: check it\n" in text
    assert "# person and max_rows guessed: check this line\n" in text


def test_what_was_said_is_not_guessed(here: Path) -> None:
    flags = ("--person", "person_id", "--max-rows", "2", "--epsilon", "3", "--column", "age=0 99")
    told = ran("init", "people.parquet", "--yes", *flags).stderr
    assert "Guessed" not in told
    assert "guessed" not in Path("privet.toml").read_text(encoding="utf-8")
    answers = ("", "", "skip", "", "skip", "", "", "")  # proposals that a person accepts are not guesses
    told = ran("init", "people.parquet", "--force", answers=answers).output
    assert "Guessed" not in told
    assert "guessed" not in Path("privet.toml").read_text(encoding="utf-8")


# --- forms of answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "line", "value"),
    [
        *(("integer", line, {"integer": [1985, 2016]}) for line in (
            "1985 2016", "[1985, 2016]", "(1985, 2016)", "1985, 2016", "1985..2016", "1985-2016", "1985 to 2016",
            "integer [1985, 2016]", "integer 1985, 2016", "integer = [1985, 2016]", "{ integer = [1985, 2016] }",
        )),
        *(("text", line, {"keys": ["NL", "AL"]}) for line in (
            "NL, AL", "NL AL", "NL,AL", '["NL", "AL"]', "keys NL, AL", "keys NL AL", "{ keys = ['NL', 'AL'] }",
        )),
        ("text", "NL, AL other elsewhere", {"keys": ["NL", "AL"], "other": "elsewhere"}),
        ("text", '{ keys = ["NL"], other = "or else" }', {"keys": ["NL"], "other": "or else"}),
        ("text", "New York, Côte d'Ivoire", {"keys": ["New York", "Côte d'Ivoire"]}),
        ("text", '"a, b", c', {"keys": ["a, b", "c"]}),
        ("text", "1, 2", {"keys": ["1", "2"]}),
        ("text", "2020-2021, 2021-2022", {"keys": ["2020-2021", "2021-2022"]}),
        ("integer", "1, 2, 3", {"keys": [1, 2, 3]}),
        ("integer", "-5..5 required", {"integer": [-5, 5], "required": True}),
        ("float", "0, 200_000 step 0.5", {"number": [0, 200000], "step": Decimal("0.5")}),
        ("float", "0 1", {"number": [0, 1]}),
        ("anything", "0 110", {"integer": [0, 110]}),
        ("anything", "0 1.5", {"number": [0, Decimal("1.5")]}),
        ("anything", "north, south", {"keys": ["north", "south"]}),
        ("date", "2024-01-01..2024-12-31", {"date": [date(2024, 1, 1), date(2024, 12, 31)]}),
        *((family, line, {"timestamp": [date(2025, 1, 1), date(2026, 12, 31)]}) for family, line in (
            ("timestamp", "timestamp 2025-01-01 2026-12-31"), ("timestamp", "2025-01-01 2026-12-31"),
            ("timestamp", "[2025-01-01, 2026-12-31]"), ("anything", "timestamp 20250101 20261231"),
        )),
        ("timestamp", "2025-01-01 2026-12-31T12", {"timestamp": [date(2025, 1, 1), datetime(2026, 12, 31, 12)]}),
        ("anything", "2024-01-01, 2024-12-31", {"date": [date(2024, 1, 1), date(2024, 12, 31)]}),
    ],
)  # fmt: skip
def test_forms_of_answers(family: Any, line: str, value: Any) -> None:
    assert shorthand("x", line, family=family) == value


def test_a_last_day_means_all_of_it(here: Path) -> None:
    pq.write_table(pa.table({"id": [1], "seen": [datetime(2026, 12, 31, 23, 59)]}), here / "seen.parquet")
    ran("init", "seen.parquet", "--yes", "--each-row", "--column", "seen=timestamp 2025-01-01 2026-12-31")
    assert "seen = { timestamp = [2025-01-01, 2026-12-31] }" in (here / "privet.toml").read_text(encoding="utf-8")
    (table,) = load().datasets["seen"].tables()
    assert dict(table.schema.columns)["seen"] == pv.timestamp("2025-01-01", "2026-12-31T23:59:59.999999")


@pytest.mark.parametrize(
    ("family", "line", "said"),
    [
        ("text", "boolen", "'boolen' is not a kind of column"),
        ("text", "kyes a b", "'kyes' is not a kind of column"),
        ("integer", "intger 0 110", "'intger' is not a kind of column"),
        ("integer", "0, 200,000", "give two numbers, without commas"),
        ("text", "keys", "list the keys"),
        ("float", "0", "'0' is not a range: give two numbers"),
        ("anything", "0 abc", "'0 abc' is not a range: give two numbers"),
        ("text", '"', "is not a declaration"),
        ("text", '""', "is not a kind of column"),
    ],
)
def test_what_is_no_answer(family: Any, line: str, said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)):
        shorthand("x", line, family=family)


def test_answers_are_read_back(here: Path) -> None:
    """A steward who types values sees the column that was made of them."""
    answers = ("person_id", "1", "north, south", "[0, 99]", "0 200000", "", "", "")
    told = ran("init", "people.parquet", answers=answers).output
    assert '  region = { keys = ["north", "south"] }\n' in told
    assert "  age = { integer = [0, 99] }\n" in told
    assert "  income = { number = [0, 200_000] }\n" in told
    (people,) = load().dataset_of("people").tables()
    assert dict(people.schema.columns)["age"] == pv.integer(0, 99)


# --- CSV files from elsewhere -----------------------------------------------------------------------


def test_encodings(here: Path, capsys: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "pay.csv").write_bytes("player_id;Größe\n1;20\n".encode("cp1252"))
    said = refused(capsys, monkeypatch, "init", "pay.csv", "--yes")
    assert "'pay.csv', line 1: byte 0xf6 is not utf-8 text. The file may come from Windows or Excel" in said
    assert said.endswith("Write, for example: --encoding cp1252\n")
    told = ran("init", "pay.csv", "--yes", "--encoding", "cp1252", "--column", "Größe=0 300").stderr
    line = "privet import pay.csv -o pay.parquet --policy privet.toml --separator ';' --encoding cp1252"
    assert f"Next: {line}\n" in told
    ran(*shlex.split(line)[1:])
    assert load().dataset_of("pay").tables()[0].source.types()["Größe"].name == "BIGINT"
    (here / "pay.csv").write_bytes("player_id;size\nMüller;20\n".encode("cp1252"))
    assert "line 2: byte 0xfc" in refused(capsys, monkeypatch, "init", "pay.csv", "--yes", "--force", "--sniff")
    (here / "pay.csv").write_bytes("player_id;size\n1;20\n".encode("utf-16"))
    assert "is in UTF-16" in refused(capsys, monkeypatch, "init", "pay.csv", "--yes", "--force")


def test_what_a_look_at_the_values_proposes(here: Path) -> None:
    """With consent, types are seen through missing markers and other notations; the import line has the flags."""
    (here / "pay.csv").write_text(
        "patient_id;born;pay;size;seen\n1;31.12.1990;1.234,5;NA;12/31/2024 5:00 PM\n2;1.2.1991;7,25;3;\n", "utf-8"
    )
    columns = ("--column", "pay=0 9000", "--column", "size=0 9")
    told = ran("init", "pay.csv", "--yes", "--sniff", *columns).stderr
    (line,) = (line for line in told.splitlines() if line.startswith("Next: "))
    flags = "--date-format born=%d.%m.%Y --decimal , --thousands . --missing NA"
    assert f"{flags} --date-format 'seen=%m/%d/%Y %I:%M %p'" in line
    ran(*shlex.split(line.removeprefix("Next: privet ")))
    assert pq.read_table("pay.parquet").to_pylist()[0] == {
        "patient_id": 1,
        "born": date(1990, 12, 31),
        "pay": 1234.5,
        "size": None,
        "seen": datetime(2024, 12, 31, 17),
    }


def test_a_header_of_short_names_is_a_header(here: Path) -> None:
    (here / "points.csv").write_text("user_id,x,y,n,t\n1,2,3,4,5\n", encoding="utf-8")
    (found,) = find("points.csv")
    assert list(found.columns) == ["user_id", "x", "y", "n", "t"]


# --- proposals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "family", "line"),
    [
        ("age", "integer", "integer 0 110"),
        ("patientAge", "float", "number 0 110"),
        ("AGE_YEARS", "integer", "integer 0 110"),
        ("average", "integer", None),
        ("birthDay", "integer", "integer 1 31"),
        ("days", "integer", None),
        ("age_group", "integer", None),
        ("birth_year", "integer", "integer 1900 2026"),
        ("year", "integer", "integer 1900 2100"),
        ("percent_paid", "decimal", "number 0 100"),
        ("is_member", "integer", "integer 0 1"),
        ("smoker", "boolean", "boolean"),
        ("born", "date", "date 1900-01-01 2026-12-31"),
        ("seen", "timestamp", "timestamp 1900-01-01 2026-12-31T23:59:59"),
        ("region", "text", None),
        ("income", "float", None),
        ("photo", "no use", None),
        ("lat", "float", "number -90 90"),
    ],
)
def test_proposals(name: str, family: Any, line: str | None) -> None:
    assert proposal(name, family, date(2026, 5, 1)).line == line


@pytest.mark.parametrize(
    ("names", "proposed"),
    [
        ("visit_id patientId", ("patientId", True)),
        ("playerID yearID", ("playerID", True)),
        ("age person_id", ("person_id", True)),
        ("CUSTOMERID amount", ("CUSTOMERID", True)),
        ("cust_no amount", ("cust_no", True)),
        ("id user_id", ("user_id", True)),
        ("userid x", ("userid", True)),
        ("Username x", ("Username", True)),
        ("id patient", ("patient", False)),
        ("customer amount", ("customer", False)),
        ("id amount", ("id", False)),
        ("uuid amount", ("uuid", False)),
        ("row_id amount", (None, False)),
        ("rownum index amount", (None, False)),
        ("record_id obs", (None, False)),
        ("order_id customer_order_no", (None, False)),
        ("team_id year", (None, False)),
        ("driver_age customer_age", (None, False)),
        ("person_count", (None, False)),
    ],
)
def test_persons(names: str, proposed: tuple[str | None, bool]) -> None:
    assert person([(name, "anything") for name in names.split()]) == proposed


def test_persons_are_not_measured() -> None:
    assert person([("user_id", "float"), ("id", "text")]) == ("id", False)


def test_separators(here: Path) -> None:
    for sign in (",", ";", "\t", "|"):
        (here / "x.csv").write_text(sign.join(("a", "b", "c")), encoding="utf-8")
        (found,) = find("x.csv")
        assert list(found.columns) == ["a", "b", "c"]


def test_prompts_speak_neither_python_nor_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    born = pa.array([0], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"person_id": ["a"], "pay": [1.5], "born": born}), "p.parquet")
    columns = ("2001-01-01 2002-01-01", "[2,000; 7,000]", "1900-2009", "1900-01-01 2009-12-31")
    told = ran("init", "p.parquet", answers=("", "0", "3", *columns, "abc", "2", "")).output
    assert "PureDP" not in told
    assert "--max-rows" not in told
    assert "Type a whole number, such as 3." in told
    assert "Type a number, such as 0.5." in told
    assert "pay: the column contains numbers, which can't be read as date. Write, for example: number" in told
    assert "born: the column contains dates, which can't be read as integer. Write, for example: date" in told
    policy = Path("privet.toml").read_text(encoding="utf-8")
    assert "pay = { number = [2000, 7000] }" in policy
    assert "born = { date = [1900-01-01, 2009-12-31] }" in policy


def test_a_kind_that_a_parquet_column_can_not_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"person_id": ["a"], "debut": ["2001-01-01"]}), "p.parquet")
    first = ("init", "p.parquet", "--yes", "--person", "person_id")
    told = refused(capsys, monkeypatch, *first, "--column", "debut=date 1900-01-01 2009-12-31")
    assert "debut: the column contains texts, which can't be read as date. Write, for example: keys" in told
    pq.write_table(pa.table({"person_id": ["a"], "smoker": [1]}), "q.parquet")
    told = refused(
        capsys, monkeypatch, "init", "q.parquet", "--yes", "--person", "person_id", "--column", "smoker=boolean"
    )
    assert (
        "smoker: the column contains numbers, which can't be read as boolean. Write, for example: integer 0 1\n" in told
    )
    told = refused(capsys, monkeypatch, *first, "--adjacency", "swap")
    assert told.endswith("Write, for example: --adjacency add/remove\n")


def test_a_csv_is_asked_about_until_yes_or_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("person_id,deathYear,birthYear\na,1,2\n", encoding="utf-8")
    told = ran("init", "p.csv", answers=("?", "n", *[""] * 9)).output
    assert "Type y or n." in told
    assert "invalid input" not in told
    assert "deathYear; its type is unknown: integer, number, keys, date or another; ? for examples" in told
    said = ran("init", "p.csv", "--yes", "--sniff", "--force").stderr
    assert "Guessed from names and types; values were read only to guess types." in said
    lines = [line.partition(" = ")[2] for line in said.splitlines() if "Year" in line]
    assert len(lines) == 2
    assert lines[0] == lines[1]
