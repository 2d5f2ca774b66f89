"""A Parquet file is read to the end once for each content, and only the columns that can fail to be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privet import each_row, import_csv
from privet.errors import SourceError
from privet.sources import checked_files, table
from privet.system import interrupts
from privet.tables import schema
from privet.tables.schema import Column

NOTES = {"note": schema.text()}
BAD = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff\xfe"]).buffers())


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """One item for each time that rows are read, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(checked_files, "SETTLED", 0)
    counted: list[str] = []
    real = interrupts.interruptible

    def interruptible(work: Callable[[], Any], stop: Callable[[], object]) -> Any:
        counted.append("read")
        return real(work, stop)

    monkeypatch.setattr("privet.sources.parquet.interruptible", interruptible)
    return counted


def opened(path: Path, **columns: Column) -> None:
    table("people", path, protect=each_row(), columns=columns or NOTES)


def written(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_rows_are_read_once(scans: list[str], tmp_path: Path) -> None:
    path = written(tmp_path / "people.parquet", note=["a", "b"])
    for _ in range(3):
        opened(path)
    assert len(scans) == 1


def test_a_new_content_is_read_again(scans: list[str], tmp_path: Path) -> None:
    path = written(tmp_path / "people.parquet", note=["ok", "zz"])
    opened(path)
    before = path.stat()
    with path.open("r+b") as file:  # in place, and with the old time
        file.write(written(tmp_path / "other.parquet", note=BAD).read_bytes())
        file.truncate()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    for _ in range(2):
        with pytest.raises(SourceError, match="bytes that are not UTF-8 text"):
            opened(path)
    assert len(scans) == 3


def test_a_changed_page_under_the_same_footer_is_read_again(scans: list[str], tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(
        pa.table({"note": ["unlikely"]}), path, compression="none", use_dictionary=False, write_statistics=False
    )
    opened(path)
    before = path.stat()
    content = path.read_bytes()
    at = content.index(b"unlikely")
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SourceError, match="bytes that are not UTF-8 text"):
        opened(path)


def test_a_file_that_changed_a_moment_ago_is_not_remembered(
    scans: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checked_files, "SETTLED", 10**12)
    path = written(tmp_path / "people.parquet", note=["a"])
    opened(path)
    opened(path)
    assert len(scans) == 2
    assert not (tmp_path / "cache").exists()


def test_a_column_that_was_not_read_is_read(scans: list[str], tmp_path: Path) -> None:
    path = written(tmp_path / "people.parquet", note=["ok", "zz"], bad=BAD)
    opened(path)
    with pytest.raises(SourceError, match="one of the columns bad of"):
        opened(path, note=schema.text(), bad=schema.text())


def test_every_file_of_a_table_is_read(scans: list[str], tmp_path: Path) -> None:
    written(tmp_path / "1.parquet", note=["ok", "zz"])
    opened(tmp_path / "*.parquet")
    written(tmp_path / "2.parquet", note=BAD)
    with pytest.raises(SourceError, match="and others can't be read"):
        opened(tmp_path / "*.parquet")


def test_what_is_read_as_it_is_stored_is_not_read_before(scans: list[str], tmp_path: Path) -> None:
    extreme = pa.array([0, 2**63 - 1, -(2**63)], pa.int64())
    dear = pa.array([Decimal(10) ** 35, None, Decimal(-1)], pa.decimal128(38, 2))
    path = written(
        tmp_path / "people.parquet",
        age=[1, 2, 3],
        pay=[1.0, 2.0, None],
        dear=dear,
        micro=extreme.view(pa.timestamp("us")),
        nano=extreme.view(pa.timestamp("ns")),
    )
    seen = schema.timestamp(datetime(2020, 1, 1), datetime(2024, 12, 31))
    opened(
        path, age=schema.integer(0, 9), pay=schema.number(0, 9), dear=schema.number(0, 9), micro=seen, nano=seen
    )  # fmt: skip
    assert not scans


def test_an_imported_file_is_not_read_again(scans: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_files, "SETTLED", 0)
    (tmp_path / "people.csv").write_text("note,age\na,1\n\u00e9,2\n", encoding="utf-8")
    import_csv(tmp_path / "people.csv", tmp_path / "people.parquet", columns={**NOTES, "age": schema.integer(0, 9)})
    opened(tmp_path / "people.parquet")
    assert not scans


@pytest.mark.parametrize("cache", ["/dev/null", "relative"])
def test_where_nothing_can_be_written_rows_are_read(
    scans: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.setenv("HOME", "/dev/null")
    path = written(tmp_path / "people.parquet", note=["a"])
    opened(path)
    opened(path)
    assert len(scans) == 2
