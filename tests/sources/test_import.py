"""CSV to Parquet: strict, row by row, all or nothing."""

from __future__ import annotations

import math
import os
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.common import rows

from privet import person
from privet.errors import SourceError, UserError
from privet.query import Table
from privet.relation import schema
from privet.sources import ImportReport, import_csv, table
from privet.sources.dialect import Dialect

COLUMNS = {
    "age": schema.integer(0, 110),
    "income": schema.number(0, 200_000),
    "region": schema.keys("north", "south"),
    "zone": schema.keys(1, 2),
    "born": schema.date("1900-01-01", "2024-12-31"),
    "seen": schema.timestamp("2020-01-01", "2024-12-31"),
    "member": schema.boolean(),
}
SMALL = {"age": COLUMNS["age"], "region": COLUMNS["region"]}


def imported(folder: Path, content: str | bytes, **options: Any) -> tuple[ImportReport, dict[str, list[Any]]]:
    source, target = folder / "people.csv", folder / "people.parquet"
    source.write_bytes(content.encode() if isinstance(content, str) else content)
    report = import_csv(source, target, **{"columns": SMALL, "id": "id", "overwrite": True, **options})
    return report, pq.read_table(target).to_pydict()


def refused(folder: Path, content: str | bytes, **options: Any) -> str:
    with pytest.raises(SourceError) as caught:
        imported(folder, content, **options)
    assert [path.name for path in folder.iterdir()] == ["people.csv"], "nothing was written"
    return str(caught.value)


def test_values_are_kept_as_they_are(tmp_path: Path) -> None:
    text = (
        "\ufeffid,age,income,region,zone,born,seen,member,more\r\n"
        "007,30,1.5,north,1,1990-01-01,2024-01-01T12:00:00,true,x\r\n"
        "\r\n"
        'a,-999,1e999,"o\'clock, ""west""",9,0001-01-01,2024-01-01 12:00:00.5+02:00,No,y\r\n'
        ",12.0,-.5e-3,,,,2024-01-01,,\r\n"
    )
    report, found = imported(tmp_path, text, columns=COLUMNS)
    assert found == {
        "id": ["007", "a", None],
        "age": [30, -999, 12],
        "income": [1.5, math.inf, -0.0005],
        "region": ["north", 'o\'clock, "west"', None],
        "zone": [1, 9, None],
        "born": [date(1990, 1, 1), date(1, 1, 1), None],
        "seen": [datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 10, 0, 0, 500_000), datetime(2024, 1, 1)],
        "member": [True, False, None],
    }
    assert (report.rows, report.bad_rows, report.empty_lines) == (3, 0, 1)
    assert report.missing == {"id": 1, "age": 0, "income": 0, "region": 1, "zone": 1, "born": 1, "seen": 0, "member": 1}
    made = table("people", tmp_path / "people.parquet", protect=person("id", max_rows=1), columns=COLUMNS)
    assert len(rows(made.source)) == 3


def test_the_report_is_for_the_steward(tmp_path: Path) -> None:
    report, _ = imported(
        tmp_path, "id,age,region\na,1,north\nb,canary,south\nc,2\n", bad_rows="missing", bad_values="missing"
    )
    assert str(report) == (
        f"{tmp_path / 'people.csv'} -> {tmp_path / 'people.parquet'}\n"
        "For the steward only: this tells of single rows.\n"
        "3 rows, 1 bad; 0 empty lines skipped\n"
        "  id      1 missing, 0 bad\n"
        "  age     2 missing, 1 bad\n"
        "  region  1 missing, 0 bad\n"
        "  line 4: 2 fields, and not 3\n"
        "  line 3: age is no integer of 64 bits"
    )
    assert "line 4" not in repr(report)


def test_dialects(tmp_path: Path) -> None:
    _, found = imported(tmp_path, b"1;5,5;'a;b'\nNA;-;x\n", header=["id", "age", "region"], separator=";", quote="'",
                        decimal=",", id_type="integer", missing=("NA", "-"), columns={"age": COLUMNS["income"],
                        "region": schema.text()})  # fmt: skip
    assert found == {"id": [1, None], "age": [5.5, None], "region": ["a;b", "x"]}
    _, found = imported(tmp_path, "id,age,region\nä,1,ö\n".encode("latin-1"), encoding="latin-1")
    assert found["id"] == ["ä"]


def test_line_breaks_between_quotes(tmp_path: Path) -> None:
    text = 'id,age,region\na,1,"two\nlines ""and"" more"\n\nb,2,south\n'
    _, found = imported(tmp_path, text, newlines=True)
    assert found == {"id": ["a", "b"], "age": [1, 2], "region": ['two\nlines "and" more', "south"]}
    (tmp_path / "people.parquet").unlink()
    assert "line 2: a quote that is not closed" in refused(tmp_path, text)
    for broken in (
        text + 'c,3,"open\nd,4,x\n',
        text + 'c,3,"a"b\n',
        text.encode() + b"c,3,\xff\n",
        text + "c\nd,3,x\n",
    ):
        told = refused(tmp_path, broken, newlines=True, bad_rows="missing")
        assert "1 bad rows" in told
        assert "line 6: " in told


# --- one row changes only itself --------------------------------------------------------------------

GOOD = [f"p{i},{i % 90},{'north' if i % 3 else 'south'}" for i in range(300)]
POISON: dict[str, str | bytes] = {
    "open quote": 'p9,"1,north',
    "open quote at the end": 'p9,1,"',
    "lone quote": '"',
    "text after a quote": 'p9,"1"x,north',
    "extra field": "p9,1,north,more",
    "missing field": "p9,1",
    "only text": "x",
    "bad bytes": b"p9,1,\xff\xfe",
    "carriage return": "p9,1,no\rrth",
    "long": "p9,1," + "x" * 200_000,
    "bad value": "p9,many,north",
    "quoted number": 'p9,"1",north',
    "NUL": "p9,1,no\x00rth",
    "other type": "2024-01-01,1e5,true",
    "spaces": "  , , ",
}


@pytest.mark.parametrize("where", [0, 150, 300])
@pytest.mark.parametrize("poison", list(POISON))
def test_a_poison_row_changes_only_itself(tmp_path: Path, poison: str, where: int) -> None:
    raw = POISON[poison]
    lines = [line.encode() for line in GOOD]
    lines.insert(where, raw if isinstance(raw, bytes) else raw.encode())
    content = b"id,age,region\n" + b"\n".join(lines) + b"\n"
    report, found = imported(tmp_path, content, bad_rows="missing", bad_values="missing")
    read = list(zip(*found.values(), strict=True))
    assert len(read) == report.rows == 301
    expected = [(f"p{i}", i % 90, "north" if i % 3 else "south") for i in range(300)]
    assert read[:where] + read[where + 1 :] == expected
    before = made(tmp_path).schema  # what an analyst sees
    _, clean = imported(tmp_path, "id,age,region\n" + "\n".join(GOOD))
    assert list(zip(*clean.values(), strict=True)) == expected
    after = made(tmp_path)
    assert before == after.schema
    assert after.source.types() == {"id": "VARCHAR", "age": "BIGINT", "region": "VARCHAR"}


def test_a_reader_of_whole_files_would_lose_rows() -> None:
    """The broken twin: with line breaks in quotes allowed, one open quote takes all that follows."""
    lines = [line.encode() + b"\n" for line in GOOD]
    lines.insert(150, b'p9,"1,north\n')
    whole = [row.fields for row in Dialect(newlines=True).rows(lines)]
    assert len(whole) == 151
    assert len([row for row in Dialect().rows(lines) if row.fields is not None]) == 300


def made(folder: Path) -> Table:
    return table("people", folder / "people.parquet", protect=person("id", max_rows=1), columns=SMALL)


@given(st.lists(st.binary(max_size=20).filter(lambda raw: b"\n" not in raw), max_size=6))
def test_each_line_is_read_by_itself(lines: list[bytes]) -> None:
    together = [row.fields for row in Dialect().rows(line + b"\n" for line in [b"h", *lines])]
    alone = [row.fields for line in lines for row in list(Dialect().rows([b"h\n", line + b"\n"]))[1:]]
    assert together[1:] == alone


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=2), max_size=5
    )
)
def test_what_is_written_by_the_rules_is_read_again(table: list[list[str]]) -> None:
    quoted = [",".join('"' + field.replace('"', '""') + '"' for field in row).encode() for row in table]
    assert [row.fields for row in Dialect().rows(quoted)] == table


# --- all or nothing -----------------------------------------------------------------------------------


def test_a_bad_file_is_not_imported(tmp_path: Path) -> None:
    lines = [f"p{i},{'canary' if i % 2 else i},north" for i in range(100)] + ['q,"1,north']
    told = refused(tmp_path, "id,age,region\n" + "\n".join(lines))
    assert told.startswith(
        f"{str(tmp_path / 'people.csv')!r} was not imported, and nothing was written: 1 bad rows, 50 bad values. "
        "For the steward only, the first of them:\n  line 102: a quote that is not closed\n"
        "  line 3: age is no integer of 64 bits\n"
    )
    assert told.endswith('Mend the file; or take them as missing: bad_rows="missing", bad_values="missing"')
    assert told.count("\n  line") == 20
    assert "canary" not in told


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    content = "id,age,region\na,1,north\n"
    imported(tmp_path, content)
    with pytest.raises(SourceError, match=r"exists already\. Write, to replace it: overwrite=True"):
        imported(tmp_path, content, overwrite=False)
    before = (tmp_path / "people.parquet").read_bytes()
    with pytest.raises(SourceError, match="was not imported"):
        imported(tmp_path, content + "b\n")
    assert (tmp_path / "people.parquet").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["people.csv", "people.parquet"]  # noqa: PTH208
    assert (tmp_path / "people.parquet").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "has no header: it is empty."),
        ("\nid,age,region\n", {}, "has no header: an empty line."),
        ("id,Age,region\n", {}, "there is no column 'age' in "),
        ("id,age,age,region\n", {}, "the column 'age' stands twice in the header of "),
        ("x", {"header": False}, "give the names if the first line has none."),
        ("x", {"separator": ";;"}, "separator must be one ASCII character, not ';;'."),
        ("x", {"quote": ","}, "separator and quote must differ."),
        ("x", {"encoding": "utf-16"}, "encoding must be one of utf-8, ascii, latin-1, cp1252, not 'utf-16'."),
        ("x", {"decimal": ","}, "decimal must be '.' or ',', and not the separator, not ','."),
        ("x", {"bad_rows": "drop"}, "bad_rows must be 'fail' or 'missing', not 'drop'."),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str, options: dict[str, Any], message: str) -> None:
    assert message in refused(tmp_path, content, **options)


def test_paths_and_declarations(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file"):
        import_csv(tmp_path / "no.csv", tmp_path / "no.parquet", columns=SMALL)
    (tmp_path / "a.csv").write_text("age\n1\n")
    with pytest.raises(SourceError, match="there is no folder"):
        import_csv(tmp_path / "a.csv", tmp_path / "no" / "a.parquet", columns=SMALL)
    with pytest.raises(UserError, match="columns must declare at least one"):
        import_csv(tmp_path / "a.csv", tmp_path / "a.parquet", columns={})
    with pytest.raises(UserError, match="id_type must be"):
        import_csv(tmp_path / "a.csv", tmp_path / "a.parquet", columns=SMALL, id="x", id_type="float")  # type: ignore[arg-type]
    report = import_csv(tmp_path / "a.csv", tmp_path / "a.parquet", columns={"age": COLUMNS["age"]})
    assert report.rows == 1
