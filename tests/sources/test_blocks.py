"""The fast reader of CSV files gives what the row-wise one gives, on every file."""

from __future__ import annotations

import io
import struct
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.effort import some

import privet as pv
from privet.errors import SourceError
from privet.sources.arrow import DECLARED
from privet.sources.csv import blocks, dialect, parsing
from privet.sources.csv.blocks import Splitter
from privet.sources.csv.casting import cast
from privet.sources.csv.date_formats import DateFormat
from privet.sources.csv.dialect import Dialect
from privet.sources.csv.notation import Notation

NAMES = ("a", "b", "c")
SIGNS = (
    *("a", "1", ",", ";", '"', '""', "\n", "\r", "\r\n", "\0", "é", "\ufeff", " ", "\\", "'", "\x85", "\u2028"),
    *('"a,b"', '","', "\n\n", '"x\ny"', "x,y,z\n", "1,2,3\r\n", '"1","2""","3"\n', "long" * 9),
)
Read = tuple[list[tuple[Any, ...]], list[int], int]


def by_rows(one: Dialect, data: bytes) -> Read:
    """The reference: each row as `Dialect` reads it; all None in a bad row."""
    read: list[tuple[Any, ...]] = []
    bad, empty = [], 0
    for row in one.rows(io.BytesIO(data)):
        if row.fields is None and not row.why:
            empty += 1
        elif row.fields is not None and len(row.fields) == len(NAMES):
            read.append((row.line, *row.fields))
        else:
            read.append((row.line, None, None, None))
            bad.append(row.line)
    return read, bad, empty


def by_blocks(one: Dialect, data: bytes) -> Read:
    splitter = Splitter(one, NAMES, NAMES)
    read: list[tuple[Any, ...]] = []
    bad, empty = [], 0
    for piece in splitter.pieces(io.BytesIO(data), 1):
        texts = splitter.texts(piece)
        read += zip(texts.lines.tolist(), *(texts.columns[name].to_pylist() for name in NAMES), strict=True)
        bad += [row.line for row in texts.bad]
        empty += texts.empty
    return read, bad, empty


FILES = st.lists(st.sampled_from(SIGNS), max_size=30).map("".join)


@settings(deadline=None)
@given(
    text=FILES,
    newlines=st.booleans(),
    encoding=st.sampled_from(("utf-8", "latin-1", "cp1252", "ascii")),
    written=st.sampled_from(("utf-8", "latin-1")),
    size=st.sampled_from((1, 7, 40, 1 << 20)),
    marks=st.sampled_from((',"', ";'", "1a", "\\^")),
)
@example("\r\r", False, "utf-8", "utf-8", 1, ',"')
@example('"\n\n"é', True, "ascii", "utf-8", 7, ',"')
@example("x,y,z\n\ufeffa,b,c\n", False, "utf-8", "utf-8", 1, ',"')
@example('\ufeff\ufeff"x\n",y,z\n1,"', True, "utf-8", "utf-8", 40, ',"')
@example('"x\r\r\ny",1,2\na"b,1,2\n', True, "utf-8", "utf-8", 40, ',"')
def test_rows_are_those_of_the_row_wise_reader(
    text: str, newlines: bool, encoding: str, written: str, size: int, marks: str
) -> None:
    one = Dialect(marks[0], marks[1], encoding, newlines)
    data = text.encode(written, "replace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SIZE", size)
        assert by_blocks(one, data) == by_rows(one, data)


@settings(deadline=None)
@given(text=FILES)
@example("x,y," + "z" * 26 + "\nx,y," + "z" * 27 + "\n")
def test_long_lines_are_those_of_the_row_wise_reader(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (blocks, dialect):
            patch.setattr(module, "LONGEST", 30)
        assert by_blocks(Dialect(), text.encode()) == by_rows(Dialect(), text.encode())


@settings(deadline=None)
@given(
    good=st.lists(st.tuples(*[st.text("ab1é ", max_size=4)] * 3), min_size=1, max_size=9), poison=FILES, data=st.data()
)
def test_a_line_changes_only_itself(good: list[tuple[str, str, str]], poison: str, data: st.DataObject) -> None:
    """Whatever stands in one line, all others are read as without it."""
    lines = [",".join(row).encode() for row in good]
    where = data.draw(st.integers(0, len(lines)))
    odd = poison.replace("\n", "").encode()
    read, _, _ = by_blocks(Dialect(), b"\n".join([*lines[:where], odd, *lines[where:]]) + b"\n")
    kept = [row[1:] for row in read if row[0] != where + 1]
    assert kept == good


def test_arrow_alone_would_lose_rows() -> None:
    """The broken twin: Arrow's own reader takes an open quote for the start of a field of many lines."""
    from pyarrow import csv

    data = b"a,b,c\n" + b'x,"open,y\n' + b"1,2,3\n" * 100
    options = csv.ParseOptions(newlines_in_values=False, invalid_row_handler=lambda _: "skip")
    assert csv.read_csv(io.BytesIO(data), parse_options=options).num_rows < 100
    read, bad, _ = by_blocks(Dialect(), data)
    assert len(read) == 102
    assert bad == [2]


# --- values -------------------------------------------------------------------------------------------

PARTS = (
    *("-", "+", ".", ",", "e", "E", "0", "00", "1", "9", " ", "'", "_", "0x", "nan", "inf", "T", ":", "Z", "+02:00"),
    *("\u0661", "\u00a0", "#", "NA", "2024", "-01-01", "-02-30", "-12-31", "12:30:59", "24:00:00", "23:59:60", ".5"),
    *(".1234567", "31", "12", " PM", "true", "YES", "ja", "0000", "9999", "1.234", "1,234", "567"),
)
MOMENTS = st.datetimes()
TEXTS = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=6).map("".join),
    st.text("0123456789", min_size=1, max_size=25),
    st.from_regex(r"[+-]?[0-9]{0,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.integers(-(2**64), 2**64).map(str),
    st.floats().map(repr),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:,.2f}"),
    MOMENTS.map(str),
    MOMENTS.map(lambda moment: moment.isoformat()),
    MOMENTS.map(lambda moment: moment.isoformat() + "Z"),
    MOMENTS.map(lambda moment: moment.date().isoformat()),
    MOMENTS.map(lambda moment: moment.strftime("%d.%m.%Y")),
    MOMENTS.map(lambda moment: moment.strftime("%d.%m.%Y %H:%M:%S")),
)
NOTATIONS = (
    Notation(),
    Notation(missing=frozenset(["", "NA", "1"])),
    Notation(missing=frozenset(map(str, range(10)))),
    Notation(decimal=","),
    Notation(decimal=",", thousands="."),
    Notation(thousands=","),
    Notation(thousands="'", true=("ja",)),
)
FORMATS = ("%d.%m.%Y", "%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%m/%d/%y %I:%M %p")


def bits(value: Any) -> Any:
    return struct.pack("d", value) if isinstance(value, float) else value


@settings(deadline=None)
@given(
    texts=st.lists(st.none() | TEXTS, min_size=1, max_size=6),
    kind=st.sampled_from(("integer", "number", "boolean", "date", "timestamp", "text", "key")),
    notation=st.sampled_from(NOTATIONS),
    form=st.none() | st.sampled_from(FORMATS).map(DateFormat),
)
def test_values_are_those_of_the_row_wise_parser(texts: Any, kind: Any, notation: Notation, form: Any) -> None:
    values, bad = parsing.parse(texts, kind, notation, form)
    found = cast(pa.array(texts, pa.string()), kind, notation, form)
    assert found.values.type == DECLARED[kind]
    assert [*map(bits, found.values.to_pylist())] == [*map(bits, values)]
    assert found.bad.tolist() == bad


EDGES = (
    *(
        "x5",
        "0x5",
        "--5",
        "5-",
        "+5",
        "-0",
        "007",
        "5.",
        ".5",
        "5.0",
        "5.5",
        "1e3",
        "1e999",
        "-1e-999",
        "1_0",
        "\u0665",
    ),
    *(f"{sign}{digits}" for sign in ("", "-") for digits in (10**18 - 1, 10**18, 2**63 - 1, 2**63, 2**63 + 1, 10**20)),
    *(
        "0.1",
        "0.30000000000000004",
        "123456789012345678",
        "1234567890123456.78",
        "9007199254740993",
        "179769313486231570",
    ),
    *("nan", "NaN", "inf", "-Infinity", " 1", "1\t", "\u00a01", "1\x00", "1\n", "", " ", "-", "+"),
    *("0000-01-01", "0001-01-01", "9999-12-31", "10000-01-01", "2024-02-29", "2023-02-29", "2024-13-01", "2024-1-1"),
    *("0000-01-01T00:00:00", "2024-01-01T24:00:00", "2024-01-01T23:59:60", "2024-01-01 12:00", "2024-01-01T12:00:00Z"),
    *("2024-01-01T12:00:00.1234567", "2024-01-01T12:00:00+02:00", "0001-01-01T00:00:00+02:00", "2024-01-01T12:00:00ZZ"),
    *(
        "31.12.2024",
        "31.02.2024",
        "1.2.2024",
        "31.12.0000",
        "2024-01-01 12:00:00",
        "1,234",
        "1,234.5",
        "1.234,5",
        "1,23",
    ),
    *("yes", "YES", "y", "ja", "t", "tr", "1", "0", "2", "NA"),
)


@pytest.mark.parametrize("kind", ["integer", "number", "boolean", "date", "timestamp", "text", "key"])
def test_values_at_the_edges(kind: Any) -> None:
    """Each text by itself, and all together: one that Arrow refuses must not change the others."""
    forms = (None, *map(DateFormat, FORMATS))
    for turn, (notation, form) in enumerate(product(NOTATIONS, forms)):
        values, bad = parsing.parse(EDGES, kind, notation, form)
        found = cast(pa.array(EDGES, pa.string()), kind, notation, form)
        assert [*map(bits, found.values.to_pylist())] == [*map(bits, values)]
        assert found.bad.tolist() == bad
        for text, value in some(list(zip(EDGES, values, strict=True)), every=5, start=turn):
            (alone,) = cast(pa.array([text], pa.string()), kind, notation, form).values.to_pylist()
            assert bits(alone) == bits(value), text


def test_arrow_alone_would_read_other_numbers() -> None:
    """The broken twin: Arrow reads hexadecimal digits, and refuses a sign, spaces and a point."""
    assert pa.array(["0x1F"]).cast(pa.int64()).to_pylist() == [31]
    found = cast(pa.array(["0x1F", "+5", " 5 ", "5.0", "007"]), "integer", Notation())
    assert found.values.to_pylist() == [None, 5, 5, 5, 7]
    assert found.bad.tolist() == [0]


# --- whole files ----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(text=FILES, newlines=st.booleans())
def test_an_import_is_what_the_row_wise_reader_gives(tmp_path_factory: Any, text: str, newlines: bool) -> None:
    folder: Path = tmp_path_factory.mktemp("import")
    data = b"a,b,c\n" + text.encode()
    (folder / "x.csv").write_bytes(data)
    columns = {"a": "text", "b": "integer", "c": "number"}
    read, bad, empty = by_rows(Dialect(newlines=newlines), data)
    options = {"bad_values": "missing", "bad_rows": "missing", "allow_missing": NAMES, "newlines": newlines}
    try:
        report = pv.import_csv(folder / "x.csv", folder / "x.parquet", columns=columns, **options)  # type: ignore[arg-type]
    except SourceError:
        assert newlines
        assert bad
        return
    found = pq.read_table(folder / "x.parquet").to_pydict()
    kinds = ("text", "integer", "number")
    for name, kind, texts in zip(NAMES, kinds, list(zip(*read, strict=True))[1:], strict=True):
        assert [*map(bits, found[name])] == [*map(bits, parsing.parse(texts, kind)[0])][1:]  # type: ignore[arg-type]
    assert (report.rows, report.bad_rows, report.empty_lines) == (len(read) - 1, len(bad), empty)
