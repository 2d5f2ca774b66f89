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
from tests.effort import some
from tests.sources.common import rows

from privet import person
from privet.errors import SourceError, UserError
from privet.sources import ImportReport, import_csv, table
from privet.sources.csv.dialect import Dialect
from privet.tables import schema
from privet.tables.relation import Table

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
        "For the steward only: this report describes individual rows.\n"
        "3 rows, 1 bad; 0 empty lines skipped\n"
        "  id      1 missing, 0 bad\n"
        "  age     2 missing, 1 bad\n"
        "  region  1 missing, 0 bad\n"
        "  line 3: age: 'canary' is not a 64-bit whole number\n"
        "  line 4: 2 fields instead of 3: 'c,2'\n"
        "People: 2 by id. Rows left out of an answer: 1 without id."
    )
    assert "line 4" not in repr(report)


def test_dialects(tmp_path: Path) -> None:
    _, found = imported(tmp_path, b"1;5,5;'a;b'\nNA;-;x\n", header=["id", "age", "region"], separator=";", quote="'",
                        decimal=",", id_type="integer", missing=("NA", "-"), columns={"age": COLUMNS["income"],
                        "region": schema.text()})  # fmt: skip
    assert found == {"id": [1, None], "age": [5.5, None], "region": ["a;b", "x"]}
    text = "id,age,region\nä,1,ö\n".encode("latin-1")
    _, found = imported(tmp_path, text, encoding="latin-1", allow_missing=["region"])
    assert found["id"] == ["ä"]


def test_line_breaks_between_quotes(tmp_path: Path) -> None:
    text = 'id,age,region\na,1,"two\nlines ""and"" more"\n\nb,2,south\n'
    _, found = imported(tmp_path, text, newlines=True)
    assert found == {"id": ["a", "b"], "age": [1, 2], "region": ['two\nlines "and" more', "south"]}
    (tmp_path / "people.parquet").unlink()
    told = refused(tmp_path, text)
    assert "line 2: a quote that is not closed" in told
    assert "If quoted fields contain line breaks, their rows go on in the next lines. Then: newlines=True" in told
    for broken in (
        text + 'c,3,"open\nd,4,x\n',
        text + 'c,3,"a"b\n',
        text.encode() + b"c,3,\xff\n",
        text + "c\nd,3,x\n",
    ):
        told = refused(tmp_path, broken, newlines=True, bad_rows="missing")
        assert "1 bad row," in told
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


@pytest.mark.parametrize(
    ("poison", "where"), some([(name, line) for name in POISON for line in (0, 150, 300)], every=2)
)
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
    types = {name: kind.family for name, kind in after.source.types().items()}
    assert types == {"id": "text", "age": "integer", "region": "text"}


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
        f"{str(tmp_path / 'people.csv')!r} was not imported, and nothing was written: 1 bad row, 50 bad values. "
        "For the steward only, the first of them:\n"
        "  lines 3, 5, 7 and 47 more: age: 'canary' is not a 64-bit whole number\n"
    )
    assert told.endswith('Fix the file, or read them all as missing: bad_rows="missing", bad_values="missing"')
    assert told.count("\n  line") == 2
    many = "".join(f"p{i},bad{i},north\n" for i in range(100))
    told = refused(tmp_path, f"id,age,region\n{many}")
    assert told.count("\n  line") == 3
    assert "\n  age: 97 more bad values\n" in told


def test_a_column_with_none_of_its_keys_is_an_error(tmp_path: Path) -> None:
    """A list of keys that matches nothing is a mistake in the list: every row would be left out of groups."""
    rows = "".join(f"p{i},1,{('Up North', 'Deep South')[i % 2]}\n" for i in range(50)) + "q,1,\n"
    told = refused(tmp_path, f"id,age,region\n{rows}")
    assert "no value of region is among the declared keys. For the steward only, the first of them:\n" in told
    assert "  region: 'Up North', 'Deep South'. Declared: 'north', 'south'\n" in told
    assert told.endswith('Declare the keys as the file writes them. Or, if this is right: allow_missing=["region"]')
    other = schema.keys("north", "south", other="elsewhere")
    assert "no value of region is among" in refused(tmp_path, f"id,age,region\n{rows}", columns={"region": other})
    zone = {"region": schema.keys(1, 2)}
    assert "region: '7', '8'. Declared: '1', '2'" in refused(tmp_path, "id,region\na,7\nb,8\n", columns=zone)
    report, found = imported(tmp_path, f"id,age,region\n{rows}", allow_missing=["region"])
    assert (len(found["region"]), report.outside) == (51, {"region": 50})
    imported(tmp_path, f"id,age,region\n{rows}z,1,north\n")


def test_texts_without_an_option_are_explained(tmp_path: Path) -> None:
    pay = {"pay": schema.number(0, 9)}
    told = refused(tmp_path, 'id,pay\na,"$1,234.50"\nb,12\n', columns=pay)
    assert "Amounts in pay begin with $. Remove the currency sign from the file." in told
    when = {"when": schema.timestamp("2020-01-01", "2024-12-31")}
    told = refused(tmp_path, "id,when\na,2024-01-06 1:45 PM\n", columns=when)
    assert 'match this format: date_format={"when": "%Y-%m-%d %I:%M %p"}' in told
    assert '"%d-%b-%y"' in refused(tmp_path, "id,when\na,05-JAN-24\n", columns=when)
    told = refused(tmp_path, "id,when\na,2024-01-06 1:45 PM\nb,05-JAN-24\n", columns=when)
    assert (
        "the dates in 'when' have several formats, such as '2024-01-06 1:45 PM' (%Y-%m-%d %I:%M %p) and "
        "'05-JAN-24' (%d-%b-%y). Use one format for all.\n"
    ) in told


def test_a_header_in_another_encoding_is_a_header(tmp_path: Path) -> None:
    told = refused(tmp_path, "id,Größe,age,region\na,1,1,north\n".encode("cp1252"))
    assert f"the header of {str(tmp_path / 'people.csv')!r} can't be read: byte 0xf6 is not utf-8 text" in told
    assert told.endswith('encoding="cp1252"')


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    content = "id,age,region\na,1,north\n"
    imported(tmp_path, content)
    with pytest.raises(UserError, match=r"already exists. .*Write: overwrite=True"):
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
        ("", {}, "has no header: it is empty"),
        ("\nid,age,region\n", {}, "has no header: an empty line"),
        ("id,Age,region\n", {}, "there is no column 'age' in "),
        ("id,age,age,region\n", {}, "the column 'age' appears twice in the header of "),
        ("x", {"header": False}, "list the column names if the first line does not contain them."),
        ("x", {"separator": ";;"}, "separator must be one ASCII character, not ';;'."),
        ("x", {"quote": ","}, "the separator and the quote must differ."),
        (
            "x",
            {"encoding": "utf-16"},
            "encoding must be one of utf-8, ascii, latin-1, iso-8859-15, cp1252, cp1250, cp1251, mac-roman, not 'utf",
        ),
        ("x", {"decimal": ","}, "the decimal mark and the separator are both ','."),
        ("x", {"bad_rows": "drop"}, "bad_rows must be 'fail' or 'missing', not 'drop'."),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str, options: dict[str, Any], message: str) -> None:
    assert message in refused(tmp_path, content, **options)


def test_paths_and_declarations(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file"):
        import_csv(tmp_path / "no.csv", tmp_path / "no.parquet", columns=SMALL)
    (tmp_path / "a.csv").write_text("age\n1\n")
    with pytest.raises(UserError, match="there is no folder"):
        import_csv(tmp_path / "a.csv", tmp_path / "no" / "a.parquet", columns=SMALL)
    with pytest.raises(UserError, match="at least one column must be declared"):
        import_csv(tmp_path / "a.csv", tmp_path / "a.parquet", columns={})
    with pytest.raises(UserError, match="the type of an id must be"):
        import_csv(tmp_path / "a.csv", tmp_path / "a.parquet", columns=SMALL, id="x", id_type="float")  # type: ignore[arg-type]
    report = import_csv(tmp_path / "a.csv", tmp_path / "a.parquet", columns={"age": COLUMNS["age"]})
    assert report.rows == 1


# --- how values are written ---------------------------------------------------------------------------

PAY = {"pay": schema.number(0, 10_000), "region": schema.text()}


def read(folder: Path, content: str | bytes, **options: Any) -> dict[str, list[Any]]:
    return imported(folder, content, **{"id": None, **options})[1]


def test_numbers_with_other_marks(tmp_path: Path) -> None:
    text = "pay;n\n1.234,5;1.000\n0,25;12\n-1.234.567;-1.234.567,0\n"
    options: dict[str, Any] = {"separator": ";", "columns": {"pay": "number", "n": "integer"}, "decimal": ","}
    found = read(tmp_path, text, thousands=".", **options)
    assert found == {"pay": [1234.5, 0.25, -1234567.0], "n": [1000, 12, -1234567]}
    found = read(tmp_path, 'pay,n\n"1,234.5","1,000"\n', columns={"pay": "number", "n": "integer"}, thousands=",")
    assert found == {"pay": [1234.5], "n": [1000]}
    (tmp_path / "people.parquet").unlink()
    told = refused(tmp_path, text, id=None, **options)
    assert "line 2: n: '1.000' is not a 64-bit whole number" in told, (
        "a point in a file with decimal commas is not a decimal"
    )
    for odd in ("12,34", "1,23,456", "0,123", "1,234,5", "1e1,000", ",123", "1,234 5"):
        assert "1 bad value" in refused(tmp_path, f'pay\n"{odd}"\n', id=None, columns={"pay": "number"}, thousands=",")


def test_formats_of_dates(tmp_path: Path) -> None:
    text = "born,seen\n31.12.1999,31/12/2024 23:59\n1.2.2000,1/2/2024 7:05\n"
    columns = {"born": "date", "seen": "timestamp"}
    found = read(tmp_path, text, columns=columns, date_format={"": "%d.%m.%Y", "seen": "%d/%m/%Y %H:%M"})
    assert found == {
        "born": [date(1999, 12, 31), date(2000, 2, 1)],
        "seen": [datetime(2024, 12, 31, 23, 59), datetime(2024, 2, 1, 7, 5)],
    }
    american = read(
        tmp_path,
        "day\n12/31/99 12:00 AM\nJan\n",
        columns={"day": "timestamp"},
        date_format="%m/%d/%y %I:%M %p",
        bad_values="missing",
    )
    assert american == {"day": [datetime(1999, 12, 31), None]}
    (tmp_path / "people.parquet").unlink()
    told = refused(tmp_path, "day\n31.02.2024\n", id=None, columns={"day": "date"}, date_format="%d.%m.%Y")
    assert "line 2: day: '31.02.2024' is not a date in the format %d.%m.%Y" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"date_format": "%d.%m"}, "needs a year, a month and a day"),
        ({"date_format": "%q"}, "%q in '%q' is not supported"),
        ({"date_format": "%d.%m.%Y %I"}, "needs %H alone, or %I with %p"),
        ({"date_format": "%d%d%m%Y"}, "%d appears twice"),
        ({"date_format": {"age": "%d.%m.%Y"}}, "'age' has a date format, but is not an imported date"),
        ({"thousands": "."}, "the thousands separator must be one of"),
        ({"true": ["no"]}, "'no' can't mean true"),
        ({"true": "ja"}, "true must be a list of strings, not 'ja'. Write, for example: true=[\"NA\"]"),
        ({"allow_missing": ["agee"]}, "Did you mean 'age'?"),
        ({"columns": {"age": "int"}}, "'age' must be declared as a column or as one of integer, number, boolean"),
        ({"cap": 0}, "cap must be a whole number, 1 or greater"),
    ],
)
def test_wrong_notations(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        imported(tmp_path, "id,age,region\na,1,north\n", **options)
    assert message in str(caught.value)


def test_words_for_booleans(tmp_path: Path) -> None:
    text = "ok\nJa\nnein\nY\nn\ntrue\n"
    found = read(tmp_path, text, columns={"ok": "boolean"}, true=["ja"], false=["Nein"])
    assert found == {"ok": [True, False, True, False, True]}


@pytest.mark.parametrize(("given", "name"), [("windows-1252", "cp1252"), ("UTF8", "utf-8"), ("iso8859-1", "latin-1")])
def test_encodings_have_several_names(given: str, name: str) -> None:
    assert Dialect(encoding=given).encoding == name


# --- what the steward is told ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "texts", "hint"),
    [
        ("integer", ["1", "NA", "2", "NA"], """'NA' is in x (2 times). If it means missing: missing=["", "NA"]"""),
        ("number", ["1,5", "20,25"], 'x would parse with another separator: decimal=","'),
        (
            "number",
            ["1,234", "5,678"],
            "thousands=\",\" ('1,234' is 1234), or decimal=\",\" ('1,234' is 1.234)",
        ),
        (
            "number",
            ["1.234,5", "n/a"],
            'x would parse with another separator: decimal=",", thousands="."',
        ),
        ("integer", ["1,234", "5"], 'x would parse with another separator: thousands=","'),
        ("date", ["31.12.2024", "1.1.2024"], 'the dates in \'x\' match this format: date_format={"x": "%d.%m.%Y"}'),
        ("date", ["01/02/2024"], 'date_format={"x": "%d/%m/%Y"}, or date_format={"x": "%m/%d/%Y"}'),
        (
            "timestamp",
            ["12/31/2024 5:00 PM"],
            """the dates in 'x' match this format: date_format={"x": "%m/%d/%Y %I:%M %p"}""",
        ),
        ("boolean", ["ja", "nein", "true"], 'mean true and false: true=["ja"], false=["nein"]'),
        ("boolean", ["m", "f"], 'mean true and false: true=["..."], false=["..."]'),
    ],
)
def test_what_may_have_been_meant(tmp_path: Path, column: str, texts: list[str], hint: str) -> None:
    rows = "".join(f'"{text}"\n' for text in texts)
    assert hint in refused(tmp_path, f"x\n{rows}", columns={"x": column}, id=None)


def test_what_no_option_reads_has_no_hint(tmp_path: Path) -> None:
    told = refused(tmp_path, "x,y\n12 apples,31.12.2024\n1,soon\n", columns={"x": "number", "y": "date"}, id=None)
    assert "could" not in told
    assert "mean" not in told


def test_texts_that_may_mean_missing_are_kept_and_told(tmp_path: Path) -> None:
    text = "id,region,kind\n" + "a,NA,none\n" * 3 + "-,north,full\n"
    report, found = imported(
        tmp_path, text, columns={"region": schema.keys("north", "south"), "kind": schema.keys("none", "full")}
    )
    assert found["region"] == ["NA"] * 3 + ["north"]
    told = str(report)
    assert """'NA' is in region (3 times), and was kept as text. If it means missing: missing=["", "NA"]""" in told
    assert "'-' is in id (1 time), and was kept as text." in told
    assert "'none'" not in told, "a declared key is a key"


def test_a_key_is_not_missing_because_it_is_in_other_columns(tmp_path: Path) -> None:
    text = "id,league,zone,age\na,NA,9,NA\nNA,AL,1,9\n"
    columns = {"league": schema.keys("NA", "AL"), "zone": schema.keys(1, 9), "age": schema.integer(0, 110)}
    report, found = imported(tmp_path, text, columns=columns, missing=["", "NA", "9"], allow_missing=["age"])
    assert found == {"id": ["a", None], "league": ["NA", "AL"], "zone": [9, 1], "age": [None, None]}
    told = str(report)
    line = 'missing={"": ["", "NA"], "league": ["NA"]}'
    assert f"'NA' is also a key of league, and stays one there. If it means missing there, too: {line}" in told
    assert "'9' is also a key of zone" in told
    assert "of age" not in told


def test_missing_by_name(tmp_path: Path) -> None:
    text = "id,league,age\na,NA,-\n-,AL,3\n"
    columns = {"league": schema.keys("NA", "AL"), "age": schema.integer(0, 110)}
    report, found = imported(tmp_path, text, columns=columns, missing={"league": ["NA"], "age": ["-"]})
    assert found == {"id": ["a", "-"], "league": [None, "AL"], "age": [None, 3]}
    assert "also a key" not in str(report)
    with pytest.raises(SourceError, match=r"there is no column 'leage' in missing.*Did you mean 'league'"):
        imported(tmp_path, text, columns=columns, missing={"leage": ["NA"]})


def test_a_column_without_values_is_refused(tmp_path: Path) -> None:
    text = "id,age,region\na,,north\nb,,south\n"
    told = refused(tmp_path, text)
    assert "age would be missing in every row." in told
    assert told.endswith('If that is right: allow_missing=["age"]')
    report, found = imported(tmp_path, text, allow_missing=["age"])
    assert found["age"] == [None, None]
    assert report.missing["age"] == 2
    imported(tmp_path, "id,age,region\n")  # no rows, no complaint
    (tmp_path / "people.parquet").unlink()
    told = refused(tmp_path, "id,age,region\na,x,north\n", bad_values="missing")
    assert "line 2: age: 'x' is not a 64-bit whole number" in told, "the reason is told"


@pytest.mark.parametrize("newlines", [False, True])
def test_another_encoding_is_told_with_its_line(tmp_path: Path, newlines: bool) -> None:
    content = "id,age,region\na,1,north\nMüller,2,south\n".encode("cp1252")
    told = refused(tmp_path, content, newlines=newlines)
    assert r"line 3: byte 0xfc is not utf-8 text: b'M\xfcller,2,south'" in told
    assert 'If the file comes from Windows or from Excel: encoding="cp1252"' in told
    _, found = imported(tmp_path, content, encoding="cp1252", newlines=newlines)
    assert found["id"] == ["a", "Müller"]
    (tmp_path / "people.parquet").unlink()
    told = refused(tmp_path, "id,Größe\na,1\n".encode("cp1252"))
    assert "can't be read: byte 0xf6 is not utf-8 text" in told
    assert 'encoding="cp1252"' in told
    assert "is in UTF-16. Convert the file first" in refused(tmp_path, "id,age\na,1\n".encode("utf-16"))


def test_another_separator_is_told(tmp_path: Path) -> None:
    told = refused(tmp_path, "id;age;region\na;1;north\n")
    assert told.endswith("""The names in its header are separated by ';': separator=";\"""")


def test_rows_over_the_cap_and_values_outside(tmp_path: Path) -> None:
    columns = {
        "age": schema.integer(0, 110),
        "pay": schema.number(0, 10),
        "region": schema.keys("north", other="elsewhere"),
        "zone": schema.keys(1, 2),
        "born": schema.date("1900-01-01", "2000-12-31"),
        "seen": schema.timestamp("2024-01-01", "2024-12-31"),
    }
    lines = [
        "a,110,10,north,1,1900-01-01,2024-12-31T00:00:00",
        "a,111,10.5,west,3,1899-12-31,2025-01-01T00:00:00",
        "a,-1,inf,,,2001-01-01,2023-12-31",
        ",5,1,north,2,,",
        "b,5,1,north,2,,",
        "b,5,1,east,2,,",
    ]
    text = "\n".join(["id,age,pay,region,zone,born,seen", *lines]).replace("inf", "1e999")
    report, _ = imported(tmp_path, text, columns=columns, cap=2)
    assert report.outside == {"age": 2, "pay": 2, "region": 2, "zone": 1, "born": 2, "seen": 2}
    told = str(report)
    assert "  age     0 missing, 0 bad, 2 outside 0..110 (clamped in answers, in no group)\n" in told
    assert "  region  1 missing, 0 bad, 2 not among the keys, such as 'west', 'east' (counted as elsewhere)\n" in told
    assert "  zone    1 missing, 0 bad, 1 not among the keys, such as '3' (left out of groups)\n" in told
    assert "2 outside 1900-01-01..2000-12-31 (clamped in answers, in no group)\n" in told
    assert told.endswith(
        "People: 2 by id, 1 with more than 2 rows. Rows left out of an answer: 1 over this cap, 1 without id."
    )
    assert report.persons is not None
    assert (report.persons.count, report.persons.over, report.persons.left_out) == (2, 1, 1)


def test_progress(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    content = "id,age,region\n" + "a,1,north\n" * 1000
    imported(tmp_path, content, progress=lambda done, of: seen.append((done, of)))
    assert seen[0] == (0, len(content))
    assert seen[-1] == (len(content), len(content))
