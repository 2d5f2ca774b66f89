"""Files that were asked for: whole, in nobody's place, through no link; and what a killed process leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import privet
from privet.errors import UserError
from privet.system import files

WRITING = """
import sys, time
from pathlib import Path
from privet.system import files
with files.written(Path(sys.argv[1]), overwrite=False) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file(tmp_path: Path) -> None:
    files.write(tmp_path / "a.csv", b"1", overwrite=False)
    assert (tmp_path / "a.csv").read_bytes() == b"1"
    assert names(tmp_path) == ["a.csv"]


def test_a_name_as_long_as_a_name_can_be(tmp_path: Path) -> None:
    for name in ("a" * 255, "ä" * 127):
        files.write(tmp_path / name, b"1", overwrite=False)
        files.write(tmp_path / name, b"2", overwrite=True)
        assert (tmp_path / name).read_bytes() == b"2"


def test_nothing_is_replaced_unless_it_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"mine")
    file.chmod(0o640)
    with pytest.raises(UserError, match="already exists"):
        files.write(file, b"1", overwrite=False)
    assert file.read_bytes() == b"mine"
    files.write(file, b"1", overwrite=True)
    assert (file.read_bytes(), file.stat().st_mode & 0o777, names(tmp_path)) == (b"1", 0o640, ["a.csv"])


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("target", ["mine", "nothing", "folder"])
def test_no_link_is_followed(tmp_path: Path, target: str, overwrite: bool) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.csv").symlink_to(target)
    before = names(tmp_path)
    with pytest.raises(UserError, match=r"is a symbolic link|is a folder"):
        files.write(tmp_path / "a.csv", b"1", overwrite=overwrite)
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert names(tmp_path) == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_devices_databases_and_keys_stay(tmp_path: Path, overwrite: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "people.ledger").write_bytes(b"SQLite format 3\x00...")
    (tmp_path / "steward.key").write_bytes(b"-----BEGIN PRIVATE KEY-----")
    before = names(tmp_path)
    for file in (tmp_path / "pipe", tmp_path / "people.ledger", tmp_path / "steward.key", Path("/dev/null")):
        with pytest.raises(UserError):
            files.write(file, b"1", overwrite=overwrite)
    assert names(tmp_path) == before
    assert (tmp_path / "people.ledger").read_bytes().startswith(b"SQLite")


@pytest.mark.parametrize("appears", ["a file", "a link", "a link to nothing"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_appears_at_the_last_moment(tmp_path: Path, appears: str, overwrite: bool) -> None:
    target, mine = tmp_path / "a.csv", tmp_path / "mine"
    mine.write_bytes(b"mine")

    def write() -> None:
        with files.written(target, overwrite=overwrite) as file:
            file.write(b"1")
            match appears:
                case "a file":
                    target.write_bytes(b"other")
                case "a link":
                    target.symlink_to(mine)
                case _:
                    target.symlink_to(tmp_path / "new")

    if overwrite:
        write()
        assert not target.is_symlink()
        assert target.read_bytes() == b"1"
    else:
        with pytest.raises(UserError, match="already exists"):
            write()
    assert mine.read_bytes() == b"mine"
    assert names(tmp_path) == ["a.csv", "mine"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    files.write(tmp_path / "a.csv", b"1", overwrite=overwrite)
    assert (tmp_path / "a.csv").read_bytes() == b"1"
    with pytest.raises(UserError, match="already exists"), files.written(tmp_path / "b.csv", overwrite=False):
        (tmp_path / "b.csv").symlink_to("nothing")
    assert names(tmp_path) == ["a.csv", "b.csv"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError), files.written(tmp_path / "a.csv", overwrite=False) as file:
        file.writelines([b"half", "a text"])  # type: ignore[list-item]
    assert names(tmp_path) == []


def test_among_knows_a_file_by_every_name(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    mine = tmp_path / "data" / "mine"
    mine.write_bytes(b"mine")
    os.link(mine, tmp_path / "hard")
    (tmp_path / "soft").symlink_to("data")
    for name in ("hard", "soft/mine", "data/../data/mine"):
        assert files.among(tmp_path / name, [mine]), name
    assert files.among(tmp_path / "soft" / "new", [tmp_path / "data" / "new"])
    assert not files.among(tmp_path / "other", [mine])


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "people [1].parquet"
    environment = {**os.environ, "PYTHONPATH": str(Path(privet.__file__).parents[1])}
    ours = (
        ".people [1].parquet.x.part",
        ".people [1].parquet.0123456789abcdef.part.txt",
        ".other.0123456789abcdef.part",
    )
    for name in ours:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / ".people [1].parquet.aaaaaaaaaaaaaaaa.part").symlink_to("mine")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITING, str(target)], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(2)
    ]
    try:
        for each in running:
            assert each.stdout is not None
            assert each.stdout.readline() == "writing\n"
        swept = files.sweep(target)
        assert (swept.removed, len(swept.left)) == (0, 3), "two are at work, and a link is nobody's"
        running[0].send_signal(signal.SIGKILL)
        running[0].wait()
        swept = files.sweep(target)
        assert (swept.removed, len(swept.left)) == (1, 2)
        assert str(swept).startswith("Removed an unfinished file left by an interrupted import. Not removed")
    finally:
        for each in running:
            each.kill()
            each.communicate()
    assert files.sweep(target).removed == 1
    assert files.sweep(target).removed == 0
    assert all((tmp_path / name).exists() for name in ours)


def test_a_sweep_and_a_writer_at_the_same_time(tmp_path: Path) -> None:
    """A scratch file that was swept before it was locked is made again."""
    target = tmp_path / "a.csv"
    code = "import sys\nfrom pathlib import Path\nfrom privet import files\nwhile True: files.sweep(Path(sys.argv[1]))"
    environment = {**os.environ, "PYTHONPATH": str(Path(privet.__file__).parents[1])}
    sweeping = subprocess.Popen([sys.executable, "-c", code, str(target)], env=environment)
    try:
        end, written = time.monotonic() + 3, 0
        while time.monotonic() < end:
            with files.written(target, overwrite=True) as file:
                file.write(b"1")
            written += 1
        assert written > 10
    finally:
        sweeping.kill()
        sweeping.wait()
    assert names(tmp_path) == ["a.csv"]
