"""T22: a marker in every cell shows nowhere: not in what is printed, raised, kept, exported, written or left behind."""

from __future__ import annotations

import logging
import struct
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.asking import Shell, damaged

import privet as pv
from privet.errors import NoAnswer
from privet.requests import queries

TEXT = "zqcanaryqz"
NUMBER = 7_316_952_084
SMALL = 0.618033981234
DAY = date(2025, 2, 17)
MOMENT = datetime(2025, 2, 17, 13, 59, 47, 618_034)
MARKS = (
    TEXT, TEXT.upper(), str(NUMBER), f"{NUMBER:,}", f"{NUMBER:_}", hex(NUMBER)[2:], repr(SMALL), "0.61803398",
    DAY.isoformat(), "47.618034",
)  # fmt: skip
"""What a cell could be shown as. All lie within the declared ranges, and none of them is a bound, a key or a step."""
ROWS = 40
POLICY = """
ledger = "people.ledger"
[datasets.people]
budget = { epsilon = 1_000 }
adjacency = "add/remove"
signing_key = "steward.key"
[datasets.people.tables.people]
source = "people.parquet"
protect = { person = "id", max_rows = 2 }
[datasets.people.tables.people.columns]
region = { keys = ["north", "south"] }
place = { keys = ["north", "south"], other = "elsewhere" }
zone = { keys = [1, 2] }
count = { integer = [0, 10_000_000_000] }
income = { number = [0, 20_000_000_000] }
share = { number = [0, 1] }
name = "text"
day = { date = [2024-12-31, 2025-12-31] }
seen = { timestamp = [2024-12-31T00:00:00, 2025-12-31T23:00:00] }
"""
TYPES = {
    "id": pa.string(), "region": pa.string(), "place": pa.string(), "zone": pa.int64(), "count": pa.int64(),
    "income": pa.float64(), "share": pa.float64(), "name": pa.string(), "day": pa.date32(), "seen": pa.timestamp("us"),
}  # fmt: skip
MARKED: dict[str, Any] = {
    "id": TEXT, "region": TEXT, "place": TEXT, "zone": NUMBER, "count": NUMBER, "income": float(NUMBER),
    "share": SMALL, "name": TEXT, "day": DAY, "seen": MOMENT,
}  # fmt: skip
STATEMENTS = (
    "SELECT region, COUNT(*) AS n, AVG(income) AS m FROM people GROUP BY region",
    "SELECT place, zone, COUNT(*) AS n FROM people GROUP BY place, zone ORDER BY n DESC LIMIT 3",
    "SELECT SUM(count) AS s, STDDEV_POP(share) AS d, COUNT(DISTINCT id) AS w FROM people WHERE name LIKE 'zq%'",
    "SELECT DATE_TRUNC('month', day) AS month, SUM(HOUR(seen)) AS h FROM people GROUP BY month HAVING h > 0",
    "SELECT AVG(total) AS t FROM (SELECT id, SUM(share) AS total FROM people GROUP BY id)",
    "SELECT SUM(count) / SUM(income) AS r FROM people",
)
WRONG = (
    "SELECT id, COUNT(*) FROM people GROUP BY id",
    "SELECT name, COUNT(*) FROM people GROUP BY name",
    "SELECT MAX(income) FROM people",
    "SELECT SUM(count / income) FROM people",
    "SELECT region FROM people",
    "SELECT nme FROM people",
    "SELECT COUNT(*) FROM people WHERE name > 3",
)


def marks_in(content: str | bytes) -> list[str]:
    """The marks that are in a text, or, in several encodings, in the bytes of a file."""
    if isinstance(content, str):
        return [mark for mark in MARKS if mark in content]
    encoded = [(mark, mark.encode(encoding)) for mark in MARKS for encoding in ("utf-8", "utf-16-le")]
    plain = [mark for mark, bytes_ in encoded if bytes_ in content]
    numbers = [
        NUMBER.to_bytes(8, "little"),
        NUMBER.to_bytes(8, "big"),
        *(struct.pack("<d", x) for x in (NUMBER, SMALL)),
    ]
    return plain + [str(number) for number in numbers if number in content]


def written(folder: Path) -> dict[str, bytes]:
    """Every file in a folder but the data themselves."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith("people.parquet")
    }


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The data and a policy; and temporary files in a folder that can be looked into."""
    folder, temporary = tmp_path / "here", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    columns = {name: pa.array([MARKED[name]] * ROWS, kind) for name, kind in TYPES.items()}
    pq.write_table(pa.table(columns), "people.parquet", compression="none", use_dictionary=False)
    Path("privet.toml").write_text(POLICY)
    pv.new_signing_key("steward.key")
    yield folder
    assert list(temporary.iterdir()) == []


@pytest.fixture
def shell(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("COLUMNS", "100")
    return Shell(capsys, monkeypatch)


def test_the_marks_are_found_where_they_are(here: Path) -> None:
    """The search itself: the data have them all."""
    assert TEXT in marks_in((here / "people.parquet").read_bytes())
    assert len(marks_in((here / "people.parquet").read_bytes())) == 4
    assert marks_in(f"a row with {NUMBER:,} and {MOMENT}") == [f"{NUMBER:,}", "2025-02-17", "47.618034"]
    assert marks_in(POLICY) == []


@pytest.mark.slow
def test_the_command_line(shell: Shell, here: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []

    def ran(*arguments: str) -> None:
        done = shell.run(*arguments)
        assert "Traceback" not in done.err
        seen.extend([done.out, done.err])

    for i, sql in enumerate(STATEMENTS):
        ran("query", sql, "--epsilon", "0.001", "--certificate", f"{i}.json")
        ran("explain", sql, "--epsilon", "0.001")
        for form in ("csv", "json", "chart"):
            ran("query", sql, "--epsilon", "0.001", "--format", form)
    for ending in ("csv", "json", "txt", "svg", "png"):
        ran("query", STATEMENTS[0], "--epsilon", "0.001", "-o", f"answer.{ending}")
    ran("query", STATEMENTS[0], "--epsilon", "0.001", "-o", "answer.parquet_", "--format", "parquet")
    for sql in WRONG:
        ran("query", sql, "--epsilon", "1")
    for arguments in (
        ["schema"], ["schema", "--json"], ["verify", "0.json", "--ledger", "people.ledger", "--json"],
        ["budget", "people.ledger"],
        *(["ledger", x, "people.ledger"] for x in ("history", "export", "verify", "replay")),
        ["ledger", "history", "people.ledger", "--json"], ["query", STATEMENTS[0], "--epsilon", "5000"],
    ):  # fmt: skip
        ran(*arguments)
    assert [marks_in(text) for text in seen if marks_in(text)] == []
    assert marks_in(caplog.text) == []
    files = written(here)
    assert {"people.ledger", "5.json", "answer.svg", "answer.parquet_", "privet.toml"} <= set(files)
    assert {name: marks_in(content) for name, content in files.items() if marks_in(content)} == {}


def everything(error: BaseException) -> str:
    """An error with its causes, its contexts and the locals of no frame."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)


@pytest.mark.parametrize("column", ["income", "count", "share"])
def test_an_engine_that_fails(shell: Shell, here: Path, column: str) -> None:
    """The file is damaged after the session was opened, and before it is asked."""
    texts = []
    with pv.Session.open("privet.toml") as session:
        damaged(here / "people.parquet", column)
        with pytest.raises(NoAnswer) as caught:
            session.release(f"SELECT SUM({column}) AS s FROM people", epsilon=1)
        texts += [everything(caught.value), repr(session), *session.ledger.export("people")]
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    for _ in range(3):  # the third finds the dataset closed
        texts.append(shell.refused(4, "query", f"SELECT AVG({column}) AS s FROM people", "--epsilon", "1"))
    assert {text: marks_in(text) for text in texts if marks_in(text)} == {}
    assert {name: marks_in(content) for name, content in written(here).items() if marks_in(content)} == {}


@pytest.mark.parametrize("how", ["cut off", "overwritten", "emptied", "gone", "of other types"])
def test_a_file_that_is_not_what_it_was(shell: Shell, here: Path, how: str) -> None:
    """Whether it is found when it is opened or when it is read: no cell is shown."""
    file = here / "people.parquet"
    whole = file.read_bytes()
    changes = {
        "cut off": whole[: len(whole) // 2],
        "overwritten": whole[:500] + b"\xff" * 2_000 + whole[2_500:],
        "emptied": b"",
    }
    texts = []
    with pv.Session.open("privet.toml") as session:
        if how == "gone":
            file.unlink()
        elif how == "of other types":
            pq.write_table(pa.table({name: [str(value)] * ROWS for name, value in MARKED.items()}), file)
        else:
            file.write_bytes(changes[how])
        for sql in STATEMENTS[:2]:
            try:
                session.release(sql, epsilon=1)
            except pv.PrivetError as error:
                texts.append(everything(error))
    for arguments in (["query", STATEMENTS[0], "--epsilon", "1"], ["explain", STATEMENTS[0], "--epsilon", "1"]):
        done = shell.run(*arguments)
        assert done.code in (2, 4)
        assert "Traceback" not in done.err
        texts += [done.out, done.err]
    assert {text: marks_in(text) for text in texts if marks_in(text)} == {}


def test_an_engine_whose_own_text_has_a_row(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What DuckDB says of a failing cast has the value in it; what is raised, kept and warned of has not."""

    def run(cursor: Any, sql: Any, context: Any) -> Any:
        ran.append(sql)
        return duckdb.connect().execute(f"SELECT '{TEXT}'::INTEGER, {NUMBER}").fetchall()

    ran: list[str] = []
    with pytest.raises(duckdb.Error, match=TEXT):
        run(None, "", None)
    with pv.Session.open("privet.toml") as session, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        monkeypatch.setattr(session.dataset.engine, "_run", run)
        with pytest.raises(NoAnswer) as caught:
            session.release(STATEMENTS[0], epsilon=1, request_id="a")
        with pytest.raises(NoAnswer) as again:
            session.release(STATEMENTS[0], epsilon=1, request_id="a")
    assert len(ran) == 2, "the engine itself failed"
    for error in (caught.value, again.value):
        assert marks_in(everything(error)) == []
    assert [str(one.message) for one in warned] == []
    assert {name: marks_in(content) for name, content in written(here).items() if marks_in(content)} == {}


def test_noise_that_fails(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact numbers are at hand when this breaks."""

    def add_noise(made: Any, exact: Any) -> Any:
        raise ValueError(f"{exact} {TEXT}")

    with pv.Session.open("privet.toml") as session:
        monkeypatch.setattr(queries, "add_noise", add_noise)
        with pytest.raises(NoAnswer) as caught:
            session.release(STATEMENTS[0], epsilon=1)
    assert marks_in(everything(caught.value)) == []


def test_what_does_not_fit_into_memory(here: Path, tmp_path: Path) -> None:
    """While the engine spills, its files hold rows; they are its own, and gone with the session."""
    rows = 500_000
    frame = pa.table(
        {"id": [f"{TEXT}{i}" for i in range(rows)], "share": pa.array([SMALL] * rows), "region": [TEXT] * rows}
    )
    pq.write_table(frame, "large.parquet_")
    Path("large.parquet_").rename(tmp_path / "large.parquet")
    table = pv.table(
        "people", tmp_path / "large.parquet", protect=pv.person("id", max_rows=2),
        columns={"share": pv.number(0, 1), "region": pv.keys("north")},
    )  # fmt: skip
    spill = tmp_path / "spill"
    spill.mkdir()
    held: set[str] = set()
    how: dict[str, Any] = {"memory": "24MB", "threads": 1, "spill": spill}
    with pv.Session([table], budget=pv.PureDP(9), ledger="large.ledger", **how) as session:
        (folder,) = spill.iterdir()
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(0.001):
                held.update(path.name for path in folder.iterdir())

        looking = threading.Thread(target=look)
        looking.start()
        try:
            with suppress(NoAnswer):  # it may need more than it has
                session.release(table.per_person(t=pv.sum("share")).agg(m=pv.mean(pv.col("t").clip(0, 2))), epsilon=1)
        finally:
            ended.set()
            looking.join()
    assert held
    assert list(spill.iterdir()) == []
    assert {name: marks_in(content) for name, content in written(here).items() if marks_in(content)} == {}


@pytest.mark.parametrize("kind", ["parquet", "duckdb", "csv", "csv, sniffed"])
def test_the_policy_of_init(shell: Shell, here: Path, kind: str) -> None:
    """Names and types are read; a CSV's values, too, if the steward says so. None of them is written or shown."""
    data = {"parquet": "people.parquet", "duckdb": "people.duckdb:people"}.get(kind, "people.csv")
    columns = [*TYPES]
    if kind == "duckdb":
        with duckdb.connect("people.duckdb") as connection:
            connection.execute("CREATE TABLE people AS FROM 'people.parquet'")
    elif data.endswith(".csv"):
        line = ",".join(str(MARKED[name]) for name in columns)
        Path(data).write_text("\n".join([",".join(columns), *[line] * ROWS]))
    sniff = ["--sniff"] if "sniffed" in kind else []
    done = shell("init", data, "--yes", "--person", "id", "-o", "new.toml", *sniff)
    assert marks_in(done.out + done.err) == []
    assert marks_in(Path("new.toml").read_bytes()) == []
    assert "share" in Path("new.toml").read_text()


def test_an_import_tells_values_to_the_steward_and_keeps_none(shell: Shell, here: Path) -> None:
    """A CSV whose every value is of a wrong type: the steward sees the texts, at once, and nothing is left of them."""
    Path("odd.csv").write_text("id,count,share,day\n" + f"{TEXT},{TEXT},{TEXT},{TEXT}\n" * 5)
    columns = [f for each in ("count=integer", "share=number", "day=date") for f in ("--column", each)]
    target = ["-o", "odd.parquet", "--id", "id"]
    done = shell.run("import", "odd.csv", *target, *columns)
    assert done.code == 2
    assert marks_in(done.err) == [TEXT]
    left = written(here)
    del left["odd.csv"]
    assert {name: marks_in(content) for name, content in left.items() if marks_in(content)} == {}
