"""L8: what stands beside a ledger's file is removed or replaced at any moment; nobody is granted more by that."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from tests.effort import some
from tests.ledger.attacks import hot
from tests.threats.peers import MOST, Peer, ask, holds, seen, session, spent, total, wait_for

from privet.ledger import open_ledger

pytestmark = pytest.mark.usefixtures("impatient")

SIDES = ("-shm", "-wal", "-journal")
SMALL = "1/100"
GARBAGE = bytes(range(256)) * 40


def remove(side: Path, earlier: bytes | None) -> None:
    side.unlink(missing_ok=True)


def empty(side: Path, earlier: bytes | None) -> None:
    side.write_bytes(b"")


def empty_anew(side: Path, earlier: bytes | None) -> None:
    remove(side, earlier)
    side.write_bytes(b"")


def garbage(side: Path, earlier: bytes | None) -> None:
    remove(side, earlier)
    side.write_bytes(GARBAGE)


def put_back(side: Path, earlier: bytes | None) -> None:
    """As it was some questions ago."""
    remove(side, earlier)
    if earlier is not None:
        side.write_bytes(earlier)


def put_back_hot(side: Path, earlier: bytes | None) -> None:
    """As it was in the middle of an earlier transaction."""
    remove(side, earlier)
    if earlier is not None and side.name.endswith("-journal"):
        side.write_bytes(hot(side.with_name("people.ledger").read_bytes(), earlier))


def a_folder(side: Path, earlier: bytes | None) -> None:
    remove(side, earlier)
    side.mkdir()


def a_link(side: Path, earlier: bytes | None) -> None:
    """To the ledger itself."""
    remove(side, earlier)
    side.symlink_to(side.with_name("people.ledger"))


HARMS: tuple[Callable[[Path, bytes | None], None], ...] = (
    remove, empty, empty_anew, garbage, put_back, put_back_hot, a_folder, a_link
)  # fmt: skip


def content(side: Path) -> bytes | None:
    with suppress(OSError):
        return side.read_bytes()
    return None


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("end", SIDES)
def test_beside_an_open_ledger_that_is_idle(
    tmp_path: Path,
    source: Path,
    start: Callable[[], Peer],
    end: str,
    harm: Callable[[Path, bytes | None], None],
) -> None:
    orders = [("a", "b"), ("b", "a")]
    for first, other in some(orders, every=2, start=SIDES.index(end) + HARMS.index(harm)):
        folder = tmp_path / first
        folder.mkdir()
        path = folder / "people.ledger"
        asking = {"a": start(), "b": start()}
        assert "answer" in asking["a"].open(path, source)
        small = [asking["a"].ask(SMALL)]
        earlier = content(Path(f"{path}{end}"))
        small.append(asking["a"].ask(SMALL))
        harm(Path(f"{path}{end}"), earlier)
        opened = asking["b"].open(path, source)
        big = [asking[who].ask() for who in (first, other) if who == "a" or "answer" in opened]
        assert total(*big) <= Fraction(MOST), big
        assert total(*small) == 0 or holds(path, total(*big) + total(*small, price=SMALL))
        for peer in asking.values():
            peer.close()
        assert holds(path, total(*big) + total(*small, price=SMALL))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "place", "dies"),
    [
        (end, place, dies)
        for turn, end in enumerate(SIDES)
        for other, place in enumerate(["reserve: written", "reserve: on disk", "settle: written"])
        for dies in some([False, True], every=2, start=turn + other)
    ],
)
def test_beside_a_ledger_in_the_middle_of_a_transaction(
    tmp_path: Path, source: Path, start: Callable[[], Peer], end: str, place: str, dies: bool, effort: int
) -> None:
    """With every effort all harms are tried at every place; else one of them."""
    harms = HARMS if effort > 1 else random.Random(f"{end} {place} {dies}").sample(HARMS, 1)
    for n, harm in enumerate(harms):
        folder = tmp_path / f"{n}"
        folder.mkdir()
        path, flag = folder / "people.ledger", folder / "stopped"
        a, b = start(), start()
        a.open(path, source)
        small = a.ask(SMALL)
        earlier = content(Path(f"{path}{end}"))
        a.stop_at(place, flag)
        a.send("ask", epsilon=MOST)
        wait_for(flag)
        harm(Path(f"{path}{end}"), earlier)
        if dies:
            a.kill()
            first: dict[str, str] = {}
        else:
            a.go_on()
            first = a.reply()
        opened = b.open(path, source, analyst="bob")
        second = b.ask() if "answer" in opened else {}
        granted = total(first, second) + total(small, price=SMALL)
        assert total(first, second) <= Fraction(MOST), (harm.__name__, first, second)
        for peer in (a, b):
            peer.close()
        assert holds(path, granted), harm.__name__


def test_a_log_that_is_planted(tmp_path: Path, source: Path) -> None:
    """SQLite reads a `-wal` that stands beside any database, whatever the database says it is kept with."""
    path, forged = tmp_path / "people.ledger", tmp_path / "forged"
    with closing(session(path, source)):
        pass
    older = path.read_bytes()
    with closing(session(path, source)) as a:
        ask(a)
    shutil.copyfile(path, forged)
    pages(forged, older)
    with closing(session(path, source)) as a:
        shutil.copyfile(f"{forged}-wal", f"{path}-wal")
        second = seen(lambda: ask(session(path, source, analyst="bob")))
        first = seen(lambda: ask(a))
    assert "error" in second, "what was granted to the first is granted again"
    assert "error" in first
    Path(f"{path}-wal").unlink(missing_ok=True)
    assert holds(path, Fraction(MOST))


def pages(path: Path, older: bytes) -> None:
    """Write a log beside a database that makes it what it was; the log is left there."""
    was = path.with_name("was")
    was.write_bytes(older)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA wal_autocheckpoint = 0")
        file.execute("ATTACH ? AS was", [str(was)])
        file.execute("BEGIN")
        for (table,) in file.execute("SELECT name FROM was.sqlite_master WHERE type = 'table'").fetchall():
            file.execute(f"DELETE FROM main.{table}")
            file.execute(f"INSERT INTO main.{table} SELECT * FROM was.{table}")
        file.execute("COMMIT")
        shutil.copyfile(f"{path}-wal", f"{path}-kept")
    shutil.move(f"{path}-kept", f"{path}-wal")


def test_a_ledger_that_is_switched_to_a_log(tmp_path: Path, source: Path, start: Callable[[], Peer]) -> None:
    """Any tool can switch the file to a write-ahead log; debits would then go to a file that can be removed."""
    path = tmp_path / "people.ledger"
    a = start()
    a.open(path, source)
    small = a.ask(SMALL)
    with closing(sqlite3.connect(path, timeout=1)) as other, suppress(sqlite3.OperationalError):
        other.execute("PRAGMA journal_mode = WAL").fetchone()
    first = a.ask()
    a.kill()
    for end in SIDES:
        Path(f"{path}{end}").unlink(missing_ok=True)
    assert holds(path, total(first) + total(small, price=SMALL))
    second = seen(lambda: ask(session(path, source, analyst="bob")))
    assert total(first, second) <= Fraction(MOST)


def test_side_files_without_their_ledger_are_no_new_ledger(tmp_path: Path, source: Path) -> None:
    path = tmp_path / "people.ledger"
    for end, text in product((*SIDES, "-journal"), (b"", GARBAGE)):
        side = Path(f"{path}{end}")
        side.write_bytes(text)
        assert "error" in seen(lambda: session(path, source).close()), (end, len(text))
        assert not path.exists()
        side.unlink()


@pytest.mark.parametrize("kept", [(), SIDES], ids=["alone", "with what stood beside it"])
def test_an_emptied_file_is_no_new_ledger(tmp_path: Path, source: Path, kept: tuple[str, ...]) -> None:
    """L10"""
    path = tmp_path / "people.ledger"
    with closing(session(path, source)) as a:
        ask(a)
    for end in {*SIDES} - {*kept}:
        Path(f"{path}{end}").unlink(missing_ok=True)
    os.truncate(path, 0)
    assert "error" in seen(lambda: session(path, source).close())
    assert spent(path) is None
    assert not path.stat().st_size


def test_a_file_that_was_touched_is_no_new_ledger(tmp_path: Path, source: Path) -> None:
    path = tmp_path / "people.ledger"
    path.touch()
    assert "error" in seen(lambda: session(path, source).close())


@pytest.mark.parametrize("leftover", ["empty", "garbage", "a ledger", "a link", "a hard link", "a folder"])
def test_what_is_left_of_a_ledger_in_the_making_is_not_used(tmp_path: Path, source: Path, leftover: str) -> None:
    path, new, victim = tmp_path / "people.ledger", tmp_path / "people.ledger.new", tmp_path / "victim"
    victim.write_bytes(b"something else")
    if leftover == "empty":
        new.touch()
    elif leftover == "garbage":
        new.write_bytes(GARBAGE)
    elif leftover == "a ledger":
        with closing(open_ledger(tmp_path / "other.ledger")) as other, closing(session(other, source)) as forged:
            ask(forged, "1/2")
        (tmp_path / "other.ledger").rename(new)
    elif leftover == "a link":
        new.symlink_to(victim)
    elif leftover == "a hard link":
        new.hardlink_to(victim)
    else:
        new.mkdir()
    opened = seen(lambda: session(path, source).close())
    assert victim.read_bytes() == b"something else"
    if "answer" in opened:
        assert spent(path) == 0
        assert not path.is_symlink()
