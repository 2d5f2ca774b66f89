"""A policy that is right: every form, what a session and a ledger get from it, and when data are read."""

from __future__ import annotations

import shutil
import time
from contextlib import closing
from dataclasses import FrozenInstanceError
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.policy.policies import EVERYTHING, base

import privet as pv
from privet.errors import UserError
from privet.ledger import Dataset, memory_ledger, open_ledger
from privet.policy import Policy, PolicyError, load, parse, shape
from privet.policy.agreement import grant
from privet.policy.openid_shape import OPENID_LINES, OpenIDShape
from privet.policy.server_shape import SERVER_LINES, ServerShape
from privet.policy.shorthand import examples, kind_only, shorthand


def test_every_form(tmp_path: Path) -> None:
    policy = parse(EVERYTHING, tmp_path / "privet.toml")
    assert policy.ledger == str(tmp_path / "people.ledger")
    health, homes = policy.datasets["health"], policy.datasets["homes"]
    assert health.budget == pv.ApproxDP(3, "1e-6")
    assert health.per_query == pv.ApproxDP("1/3", 0)
    assert health.per_analyst == pv.ApproxDP("0.5", 0)
    assert (health.settings.min_epsilon, health.settings.share_answers) == (Fraction(1, 100), False)
    assert (homes.per_analyst, homes.settings.min_epsilon, homes.settings.share_answers) == (
        None,
        Fraction(1, 1000),
        True,
    )
    assert health.analysts == {"research": pv.ApproxDP(1, "1e-7"), "the press": pv.ApproxDP("0.1", 0)}
    assert (health.adjacency, health.protects, health.version) == ("add/remove", "person", "2026-11")
    assert health.signing_key == tmp_path / "keys" / "steward.key"
    assert health.accountant == "approx"
    assert (health.settings.population, health.settings.memory, health.settings.threads) == (100_000, "2GB", 2)
    assert homes.facts() == Dataset("homes", "row", pv.Adjacency.REPLACE, pv.ZeroConcentratedDP(0.1), "concentrated")
    assert list(homes.declared) == ["all homes"]
    assert homes.declared["all homes"].shape.rows == 10_000
    people, visits = health.declared["people"], health.declared["visits"]
    assert people.protect == pv.person("person_id", max_groups=2, max_rows_per_group=5)
    assert visits.protect == pv.person("patient", max_rows=20)
    assert visits.files == (str(tmp_path / "2023.parquet"), str(tmp_path / "2024.parquet"))
    assert policy.dataset_of("VISITS") is health
    with pytest.raises(UserError, match=r"declares no table 'visit'\. The tables are: .*\. Did you mean 'visits'\?"):
        policy.dataset_of("visit")


def test_columns_are_those_of_python(tmp_path: Path) -> None:
    (tmp_path / "regions.csv").write_text("region,people\nsouth,1\nnorth,2\n", encoding="utf-8")
    policy = parse(EVERYTHING, tmp_path / "privet.toml")
    assert policy.table("people").columns() == {
        "region": pv.keys("north", "south", other="elsewhere"),
        "district": pv.keys("south", "north"),
        "town": pv.keys({"north": ["Alta", "Bodo"], "south": ["Cork"]}, within="region"),
        "floor": pv.keys(-1, 0, 1, 2),
        "age": pv.integer(0, 110, required=True),
        "income": pv.number(0, 200_000, step="0.01"),
        "share": pv.number("-1/3", "1/3"),
        "smoker": pv.boolean(),
        "employed": pv.boolean(required=True),
        "born": pv.date(date(1900, 1, 1), date(2026, 12, 31)),
        "moved": pv.date("1900-01-01", "2026-12-31"),
        "seen": pv.timestamp(datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59, 59)),
        "left": pv.timestamp("2024-01-01", "2024-12-31"),
        "note": pv.text(),
        "remark": pv.text(),
    }
    (regions,) = policy.public()
    assert regions == pv.public_table("regions", tmp_path / "regions.csv", key="region")
    assert policy.datasets["homes"].public() == (regions,)


def test_which_dataset_is_meant() -> None:
    policy = parse(EVERYTHING)
    health, homes = policy.datasets.values()
    assert policy.chosen("homes") is homes
    assert policy.chosen(asking="SELECT COUNT(*) FROM Visits") is health
    assert policy.chosen(asking='SELECT COUNT(*) FROM "all homes"') is homes
    assert parse(base()).chosen().name == "health"
    for dataset, asking in (("home", ""), (None, "SELECT COUNT(*) FROM x"), (None, 'people, "all homes"'), (None, "")):
        with pytest.raises(UserError, match="health, homes"):
            policy.chosen(dataset, asking)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0.1", Fraction(1, 10)),
        ('"1/3"', Fraction(1, 3)),
        ("0.1000000000000000000001", Fraction(10**21 + 1, 10**22)),
        ("1_000", Fraction(1000)),
        ("1e-3", Fraction(1, 1000)),
        ("0x10", Fraction(16)),
    ],
)
def test_numbers_are_exact(written: str, meant: Fraction) -> None:
    policy = parse(base().replace("epsilon = 3", f"epsilon = {written}"))
    assert policy.datasets["health"].budget == pv.PureDP(meant)


def test_ledgers_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "postgresql://steward@host/base"
    assert parse(base().replace("people.ledger", address)).ledger == address
    absolute = (tmp_path / "x.ledger").as_posix()
    assert parse(base().replace("people.ledger", absolute)).ledger == absolute
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "privet.toml").write_text(base(), encoding="utf-8")
    policy = load("sub/privet.toml")
    monkeypatch.chdir("/")
    assert policy.table("people").files == (str(tmp_path / "sub" / "people.parquet"),)


def test_nothing_changes_later() -> None:
    policy = parse(base())
    with pytest.raises(FrozenInstanceError):
        policy.ledger = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        policy.datasets["x"] = policy.datasets["health"]  # type: ignore[index]
    with pytest.raises(ValueError, match="frozen"):
        policy.shape.ledger = "other"


# --- data ---------------------------------------------------------------------------------------


def people(rows: int = 40) -> Any:
    """Some people."""
    return pa.table(
        {
            "person_id": pa.array(range(rows), pa.int64()),
            "age": pa.array([18 + row % 60 for row in range(rows)], pa.int64()),
            "region": pa.array(["north" if row % 2 else "south" for row in range(rows)]),
        }
    )


def opened(folder: Path, *edits: tuple[str, str]) -> Policy:
    """The policy in a folder with people in it."""
    pq.write_table(people(), folder / "people.parquet")
    text = base()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = folder / "privet.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


AGE = "age = { integer = [0, 110] }"
REGION = 'region = { keys = ["north", "south"] }'


def test_a_session_from_a_policy(tmp_path: Path) -> None:
    policy = opened(
        tmp_path,
        (AGE, f"{AGE}\n{REGION}"),
        ("{ epsilon = 3 }", "{ epsilon = 3 }\nper_query = { epsilon = 1 }\nanalysts.ann = { epsilon = 0.5 }"),
    )
    dataset = policy.dataset_of("people")
    tables = dataset.tables()
    with pv.Session(
        tables,
        budget=dataset.budget,
        ledger=policy.ledger,
        public=dataset.public(),
        name=dataset.name,
        version=dataset.version,
        analyst="ann",
    ) as session:
        grant(dataset, session.ledger)
        entries = len(session.ledger.history(dataset.name))
        grant(dataset, session.ledger)
        assert len(session.ledger.history(dataset.name)) == entries
        answer = session.release(tables[0].group_by("region").agg(n=pv.count()), epsilon=0.25)
        assert [str(key) for key in answer.to_arrow().column("region").to_pylist()] == ["north", "south"]
        assert session.remaining.guarantee == pv.PureDP(0.25)
        with pytest.raises(UserError, match=r"0\.5"):
            session.release(tables[0].agg(n=pv.count()), epsilon=0.5)
    assert Path(policy.ledger).exists()


def test_a_session_opens_by_its_policy(tmp_path: Path) -> None:
    opened(tmp_path, ("{ epsilon = 3 }", "{ epsilon = 3 }\nanalysts.ann = { epsilon = 0.5 }"))
    with pv.Session.open(tmp_path / "privet.toml", analyst="ann") as session:
        assert session.remaining.guarantee == pv.PureDP("0.5")
        assert session.name == "health"


def test_caps_of_a_ledger() -> None:
    policy = parse(base().replace("{ epsilon = 3 }", "{ epsilon = 3 }\nanalysts.ann = { epsilon = 0.5 }"))
    dataset, ledger = policy.datasets["health"], memory_ledger()
    ledger.create(dataset.facts())
    ledger.cap("health", pv.PureDP(2), analyst="bob", reason="before")
    ledger.cap("health", pv.PureDP(2), query=True, reason="before")
    for _ in range(2):  # once is enough
        grant(dataset, ledger)
    assert {name: ration.cap for name, ration in ledger.analysts("health").items()} == {
        "ann": pv.PureDP("0.5"),
        "bob": pv.PureDP(2),
    }
    assert ledger.balance("health").per_query == pv.PureDP(2)
    ledger.cap("health", pv.PureDP("0.25"), analyst="ann", reason="an audit")
    grant(dataset, ledger)
    assert ledger.analysts("health")["ann"].cap == pv.PureDP("0.25"), "what the steward did stays"


def test_rows_have_one_budget(tmp_path: Path) -> None:
    """The same file in two datasets, however it is spelled, would be paid for from two budgets."""
    table = 'protect = "each row"\ncolumns = { age = { integer = [0, 110] } }'
    head = 'budget = { epsilon = 3 }\nadjacency = "add/remove"'
    pq.write_table(pa.table({"age": [1, 2, 3]}), tmp_path / "people.parquet")
    (tmp_path / "x").mkdir()
    policy = tmp_path / "privet.toml"
    for one, other in [("people.parquet", "./people.parquet"), ("people.parquet", "x/../people.parquet")]:
        policy.write_text(f"""
ledger = "people.ledger"
[datasets.people]
{head}
[datasets.people.tables.people]
source = "{one}"
{table}
[datasets.again]
{head}
[datasets.again.tables.folk]
source = "{other}"
{table}
""")
        pv.Session.open(policy, dataset="people").close()
        with pytest.raises(pv.UserError, match=r"belong to the dataset 'people'.*allow_source\('again', "):
            pv.Session.open(policy, dataset="again")
    with closing(open_ledger(tmp_path / "people.ledger")) as ledger:
        ledger.allow_source("again", tmp_path / "people.parquet", reason="two consents")
    pv.Session.open(policy, dataset="again").close()


def test_loading_reads_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose pages are broken and whose footer is whole: nothing but its schema can be read."""
    policy = opened(tmp_path)
    path = tmp_path / "people.parquet"
    raw = bytearray(path.read_bytes())
    footer = int.from_bytes(raw[-8:-4], "little") + 8
    raw[4:-footer] = b"\xff" * (len(raw) - footer - 4)
    path.write_bytes(raw)
    with pytest.raises(duckdb.Error):
        duckdb.execute(f"SELECT sum(age) FROM '{path}'").fetchall()
    policy = load(tmp_path / "privet.toml")
    (table,) = policy.datasets["health"].tables()
    assert {name: kind.name for name, kind in table.source.types().items()} == {"person_id": "BIGINT", "age": "BIGINT"}
    path.unlink()
    assert load(tmp_path / "privet.toml").table("people").columns() == {"age": pv.integer(0, 110)}


def test_a_database(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "homes.db") as connection:
        connection.execute("CREATE SCHEMA raw")
        connection.execute("CREATE TABLE raw.homes AS SELECT range::INT AS rooms FROM range(10000)")
    policy = parse(EVERYTHING, tmp_path / "privet.toml")
    (homes,) = policy.datasets["homes"].tables()
    assert homes.schema.rows == 10_000
    assert homes.source.types()["rooms"].name == "INTEGER"


# --- sources that are not what is declared -----------------------------------------------------

AT = "datasets.health.tables.people"
COLUMNS = "The columns are: person_id, age, region"
TEXTS = "This is read from booleans. Convert it in the source, or declare it as it is."
FLAGS = "This is read from booleans. Declare a 0 or 1 as an integer."
BESIDE = "That folder contains: people.parquet."


@pytest.mark.parametrize(
    ("old", "new", "where", "what", "write"),
    [
        (
            "age = ",
            "agee = ",
            "line 12, columns.agee",
            f"there is no column 'agee' in 'PEOPLE'. {COLUMNS}. Did you mean 'age'?",
            "age = { integer = [0, 110] }",
        ),
        (
            AGE,
            'region = "boolean"',
            "line 12, columns.region",
            f"column 'region' of 'PEOPLE' is declared as a boolean, but contains VARCHAR. {TEXTS}",
            'region = { keys = ["north", "south"], other = "elsewhere" }',
        ),
        (
            AGE,
            'age = "boolean"',
            "line 12, columns.age",
            f"column 'age' of 'PEOPLE' is declared as a boolean, but contains BIGINT. {FLAGS}",
            "age = { integer = [0, 1] }",
        ),
        (
            '"person_id"',
            '"persons_id"',
            "line 9, protect",
            f"there is no column 'persons_id' in 'PEOPLE'. {COLUMNS}. Did you mean 'person_id'?",
            'protect = { person = "person_id", max_rows = 1 }',
        ),
        (
            '"people.parquet"',
            '"peeple.parquet"',
            "line 8, source",
            f"there is no file 'PEEPLE'. {BESIDE}",
            'source = "people.parquet"',
        ),
        (
            '"people.parquet"',
            '"20*.parquet"',
            "line 8, source",
            f"no file matches '20*'. {BESIDE}",
            'source = "people.parquet"',
        ),
        (
            '"people.parquet"',
            '{ duckdb = "homes.db", table = "people" }',
            "line 8, source",
            "there is no file 'HOMES'.",
            'source = { duckdb = "people.duckdb", table = "people" }',
        ),
        (
            AGE,
            'region = { keys_from = "regions.csv", column = "name" }',
            "line 12, columns.region",
            f"there is no file 'REGIONS'. {BESIDE}",
            'region = { keys_from = "regions.csv", column = "region" }',
        ),
        (
            AGE,
            "",
            "line 11, columns",
            "no column is declared, so no question can be asked.",
            "age = { integer = [0, 110] }",
        ),
    ],
)
def test_a_source_that_differs(tmp_path: Path, old: str, new: str, where: str, what: str, write: str) -> None:
    policy = opened(tmp_path, (old, new))
    with pytest.raises(PolicyError) as refused:
        policy.datasets["health"].tables()
    text = str(refused.value)
    for name in ("people.parquet", "peeple.parquet", "20*.parquet", "homes.db", "regions.csv"):
        text = text.replace(str(tmp_path / name), name.split(".")[0].upper())
    line, _, key = where.partition(", ")
    assert text == f"{tmp_path / 'privet.toml'}, {line}, {AT}.{key}: {what}\n  Write, for example: {write}"


def test_a_public_number_of_rows_that_differs(tmp_path: Path) -> None:
    policy = opened(
        tmp_path,
        ('"add/remove"', '"replace"'),
        ('protect = { person = "person_id", max_rows = 1 }', 'protect = "each row"\nrows = 41'),
    )
    with pytest.raises(
        PolicyError, match=r"line 10, .*people\.rows: 'people' is declared with 41 rows, but has 40\.\n.*: rows = 40"
    ):
        policy.datasets["health"].tables()


def test_all_tables_are_told_at_once(tmp_path: Path) -> None:
    more = f'{AGE}\n[{AT[:-6]}visits]\nsource = "visits.parquet"\nprotect = {{ person = "p", max_rows = 1 }}'
    policy = opened(tmp_path, (AGE, f'{more}\ncolumns = {{ day = "boolean" }}'), ("[0, 110]", "[0, 99]"))
    (tmp_path / "people.parquet").unlink()
    with pytest.raises(PolicyError) as refused:
        policy.datasets["health"].tables()
    subjects = [problem.subject for problem in refused.value.problems]
    assert [each.name.split(".")[3] for each in subjects if each] == ["people", "visits"]
    assert [each["subject"]["at"]["line"] for each in refused.value.to_json()["problems"]] == [8, 14]


@pytest.mark.parametrize(
    ("content", "key", "place"),
    [(None, "region", "source"), ("name\nx\n", "region", "key"), ("region\nx\nx\n", "region", "key")],
)
def test_a_public_table_that_differs(tmp_path: Path, content: str | None, key: str, place: str) -> None:
    if content is not None:
        (tmp_path / "regions.csv").write_text(content, encoding="utf-8")
    text = f'{base()}[public.regions]\nsource = "regions.csv"\nkey = "{key}"\n'
    policy = parse(text, tmp_path / "privet.toml")
    with pytest.raises(PolicyError, match=rf"public\.regions\.{place}: "):
        policy.public()


def test_a_policy_can_move(tmp_path: Path) -> None:
    opened(tmp_path)
    other = tmp_path / "elsewhere"
    other.mkdir()
    for name in ("privet.toml", "people.parquet"):
        shutil.move(tmp_path / name, other / name)
    assert len(load(other / "privet.toml").datasets["health"].tables()) == 1


# --- one line -----------------------------------------------------------------------------------


@pytest.mark.parametrize("line", examples())
def test_examples_of_one_line(line: str) -> None:
    assert shorthand("x", line) is not None
    kind_only("x", line)


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("integer 0 110 required", {"integer": [0, 110], "required": True}),
        ("boolean required", {"type": "boolean", "required": True}),
        ('keys "far north" south', {"keys": ["far north", "south"]}),
        ("keys 1 2 other 9", {"keys": [1, 2], "other": 9}),
        ("keys 01 02", {"keys": ["01", "02"]}),
        ("date 2024-01-01 2024-12-31", {"date": [date(2024, 1, 1), date(2024, 12, 31)]}),
        ("keys_from r.csv region other else", {"keys_from": "r.csv", "column": "region", "other": "else"}),
        ("skip", None),
    ],
)
def test_one_line(line: str, made: object) -> None:
    assert shorthand("x", line) == made


@pytest.mark.parametrize(
    "line",
    [
        "",
        "integer",
        "integer 0",
        "integer 9 0",
        "integer a b",
        "number 0 1 step 0",
        "number 0 1 by 2",
        "keys",
        "keys a a",
        "keys_from x",
        "date 1 2",
        "date 2024-02-30 2024-03-01",
        "boolean 3",
        "text required",
        "float 0 1",
        "keys 'open",
    ],
)
def test_a_line_that_is_none(line: str) -> None:
    with pytest.raises(UserError, match=r"^x: .*Write, for example: "):
        shorthand("x", line)


MARK = b"\xef\xbb\xbf"
"""What editors on Windows put at the start of a file."""


@pytest.mark.parametrize("raw", [MARK + base().encode(), (MARK + base().encode()).replace(b"\n", b"\r\n")])
def test_a_file_from_windows(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "privet.toml").write_bytes(raw)
    assert load(tmp_path / "privet.toml").shape == parse(base()).shape
    (tmp_path / "privet.toml").write_bytes(raw.replace(b"[0, 110]", b"[110, 0]"))
    with pytest.raises(PolicyError, match="line 12, "):
        load(tmp_path / "privet.toml")


@pytest.mark.parametrize("digits", [5_000, 1_000_000])
@pytest.mark.parametrize("form", ["{}", "0.{}", "0x{}", '"{}"', '"1/{}"', '"{}x"', "1e{}", "1e-{}"])
def test_a_number_of_thousands_of_digits_is_refused_quickly(form: str, digits: int) -> None:
    number = form.format("7" * digits)
    start = time.process_time()
    for place in ("epsilon = 3", "110"):
        with pytest.raises(PolicyError, match=r"number|digits") as refused:
            parse(base().replace(place, place.replace("3", number).replace("110", number)))
        assert "Exceeds" not in str(refused.value)
        assert len(str(refused.value)) < 500
    assert time.process_time() - start < 10


def test_every_key_has_a_line_to_write() -> None:
    assert {*shape.DATASET_LINES} == {*shape.DatasetShape.model_fields} - {"tables"}
    assert {*shape.TABLE_LINES} == {*shape.TableShape.model_fields} - {"columns"}
    assert {*shape.PUBLIC_LINES} == {*shape.PublicShape.model_fields}
    assert {*SERVER_LINES} == {*ServerShape.model_fields}
    assert {*OPENID_LINES} == {*OpenIDShape.model_fields}
