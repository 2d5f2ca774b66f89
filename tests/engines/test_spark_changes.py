"""Files that change while Spark answers one question: no answer may be of two states of a table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark import SparkServer

import privet as pv
from privet.engines.spark import pins, sessions
from privet.engines.spark.addresses import Address
from privet.engines.spark.listings import Listing, _links, listed
from privet.engines.spark.tables import SparkTable
from privet.errors import NoAnswer, SourceError
from privet.privacy.adjacency import person
from privet.tables import schema as declared

INCOMES = {"income": declared.integer(0, 2**20)}  # so many that a median takes two looks


def write(path: Path, *incomes: int) -> None:
    """A file of people, put in its place at once."""
    scratch = path.parent.with_name("scratch")
    scratch.unlink(missing_ok=True)
    rows = pa.table({"id": list(range(len(incomes))), "income": list(incomes)})
    pq.write_table(rows, scratch, compression="none", use_dictionary=False)  # its size does not depend on values
    scratch.replace(path)


def append(folder: Path) -> None:
    write(folder / "c.parquet", 90, 91, 92)


def replace(folder: Path) -> None:
    """By a file of the same size and name."""
    write(folder / "b.parquet", 100_000, 101_000, 102_000)


def exchange(folder: Path) -> None:
    """Two files take each other's name."""
    (folder / "a.parquet").rename(folder.with_name("a"))
    (folder / "b.parquet").rename(folder / "a.parquet")
    folder.with_name("a").rename(folder / "b.parquet")


def remove(folder: Path) -> None:
    (folder / "b.parquet").unlink()


CHANGES: tuple[Callable[[Path], None], ...] = (append, replace, exchange, remove)


@pytest.mark.parametrize("look", [1, 2])
def test_files_that_change_before_a_look(
    look: int, spark_server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the check before the debit, or between two looks."""
    folder = tmp_path / "people"
    folder.mkdir()
    asked: list[str] = []
    change: list[Callable[[Path], None]] = []
    honest = sessions.run

    def run(session: Any, sql: str, *args: Any, **options: Any) -> Any:
        if "GROUP BY" in sql:
            asked.append(sql)
            if len(asked) == look and change:
                change.pop()(folder)
        return honest(session, sql, *args, **options)

    monkeypatch.setattr(sessions, "run", run)
    write(folder / "a.parquet", 20_000, 21_000, 22_000)
    table = pv.table("people", f"{spark_server.address}#{folder}", protect=person("id", max_rows=2), columns=INCOMES)
    with pv.Session([table], budget=pv.PureDP(10**9), ledger=None) as session:
        question = table.agg(m=pv.median("income", interval=False))
        for each in CHANGES:
            write(folder / "a.parquet", 20_000, 21_000, 22_000, 23_000)
            write(folder / "b.parquet", 40_000, 41_000, 42_000)
            asked.clear()
            change.append(each)
            with pytest.raises(NoAnswer):
                session.release(question, epsilon=10**5, fresh=True)
            session.reopen("the files are whole again")
            assert len(asked) == look, each
            assert not change
        (folder / "c.parquet").unlink()
        asked.clear()
        assert 20_000 <= session.release(question, epsilon=10**5, fresh=True).values("m")[0] <= 23_000
        assert len(asked) == 2


def test_a_local_file_that_is_put_back(tmp_path: Path) -> None:
    """With the size and the time it had, after another one was read in its place."""
    here: Any = SimpleNamespace(remote=False)
    folder = tmp_path / "people"
    (folder / "day=1").mkdir(parents=True)
    file = folder / "day=1" / "a.parquet"
    write(file, 20_000)
    source = SparkTable(Address(path=str(folder)), local=True)
    before = listed(here, source)
    (folder / "_SUCCESS").touch()  # no file of a table
    assert listed(here, source).files == before.files
    assert [Path(path).name for path, _ in before.files] == ["a.parquet"]
    assert before.wait > 0, "it has just been written, and could change again at the same time"
    times = file.stat()
    file.rename(tmp_path / "away")
    write(file, 30_000)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert file.stat().st_size == times.st_size
    assert listed(here, source) != before
    (tmp_path / "away").rename(file)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (times.st_ino, times.st_mtime_ns)
    assert listed(here, source) != before


def folders(place: Path, other: Path) -> None:
    place.rename(place.with_name("away"))
    other.rename(place)


def back(place: Path, other: Path) -> None:
    place.rename(other)
    place.with_name("away").rename(place)


def links(place: Path, other: Path) -> None:
    """A link becomes one to something else."""
    new = place.with_name("new")
    new.symlink_to(other)
    new.rename(place)


@pytest.mark.parametrize("below", ["", "day=1", "day=1/a.parquet"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_folder_or_a_link_that_is_put_back(tmp_path: Path, below: str, linked: bool) -> None:
    """And it is as it was: the same files, with their sizes, times and inodes."""
    here: Any = SimpleNamespace(remote=False)
    for name in ("people", "others"):
        (tmp_path / name / "day=1").mkdir(parents=True)
        write(tmp_path / name / "day=1" / "a.parquet", 20_000)
    read, other = tmp_path / "people" / below, tmp_path / "others" / below
    first = tmp_path / "first"
    if linked:
        read.rename(first)
        read.symlink_to(first)
    source = SparkTable(Address(path=str(tmp_path / "people")), local=True)
    before = listed(here, source)
    time.sleep(before.wait / 1000)
    assert listed(here, source) == before
    if linked:
        links(read, other)
        between = listed(here, source)
        links(read, first)
    else:
        folders(read, other)
        between = listed(here, source)
        back(read, other)
    after = listed(here, source)
    assert between.files != before.files
    assert [path for path, _ in after.files] == [path for path, _ in before.files]
    assert after != before


def test_links_are_followed_one_by_one(tmp_path: Path) -> None:
    """To a file through a link to a folder, and through one that leads to another link."""
    (tmp_path / "v1" / "t").mkdir(parents=True)
    write(tmp_path / "v1" / "t" / "a.parquet", 20_000)
    (tmp_path / "current").symlink_to("v1")
    (tmp_path / "latest").symlink_to("../" + tmp_path.name + "/./current")
    there = str(tmp_path / "latest" / "t")
    assert _links(there) == [str(tmp_path / "latest"), str(tmp_path / "current")]
    source = SparkTable(Address(path=there), local=True)
    found = listed(SimpleNamespace(remote=False), source)  # type: ignore[arg-type]
    assert {str(tmp_path / "latest"), str(tmp_path / "current"), f"{there}/"} == {path for path, _ in found.around}
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="too many"):
        _links(str(tmp_path / "round"))


def test_a_table_is_pinned_when_its_files_have_come_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changed while Privet waited could change once more within the same second."""
    times = iter([1000, 2000, 2000, 3000, 4000, 5000, 6000])
    waits = iter([1.0, 1.0, 0.0, 1.0, 1.0, 1.0])

    def listing(*_: object) -> Listing:
        return Listing((("/people/a.parquet", (600, next(times))),), 0, next(waits))

    monkeypatch.setattr(pins, "listed", listing)
    session: Any = SimpleNamespace(opened=object())
    source = SparkTable(Address(path="/people"))
    assert pins._now(session, source).listing == Listing((("/people/a.parquet", (600, 2000)),), 0, 0)
    assert next(times) == 3000, "it was looked at three times"
    with pytest.raises(SourceError, match=r"its files change all the time\. Ask again when they are written"):
        pins._now(session, source)
