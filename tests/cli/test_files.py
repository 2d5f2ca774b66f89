"""What a command writes: never over a file that is there, through a link, or over what is the steward's."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.asking import COUNT, POLICY, Shell

from privet.ledger import open_ledger
from privet.system import files

ASK = ("query", COUNT, "--epsilon", "0.5")
FORMS = ["csv", "json", "txt", "parquet", "png", "svg", "pdf"]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_there(shell: Shell, here: Path, form: str) -> None:
    (here / f"a.{form}").write_text("mine")
    (here / "c.json").write_text("mine")
    for flags in (["-o", f"a.{form}"], ["--certificate", "c.json"]):
        assert "already exists. Choose another file, or overwrite it. Write: --force" in shell.refused(2, *ASK, *flags)
    assert (here / f"a.{form}").read_text() == (here / "c.json").read_text() == "mine"
    assert shell.spent() == 0
    shell(*ASK, "-o", f"a.{form}", "--certificate", "c.json", "--force")
    assert b"mine" not in (here / f"a.{form}").read_bytes()[:4]
    assert (here / "c.json").read_text().startswith("{")


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("target", ["mine", "nothing", "people.parquet", "people.ledger"])
def test_no_link_is_followed(shell: Shell, here: Path, target: str, force: list[str]) -> None:
    (here / "mine").write_text("mine")
    (here / "a.csv").symlink_to(target)
    source = (here / "people.parquet").read_bytes()
    for flags in (["-o", "a.csv"], ["--certificate", "a.csv"]):
        assert "is a symbolic link" in shell.refused(2, *ASK, *flags, *force)
    assert (here / "mine").read_text() == "mine"
    assert (here / "people.parquet").read_bytes() == source
    assert not (here / "nothing").exists()
    assert shell.spent() == 0


def test_nothing_of_the_steward_s(shell: Shell, here: Path) -> None:
    """Not by name, not under another name, not before it exists, and not with --force."""
    (here / "data").mkdir()
    (here / "data" / "a.parquet").write_bytes((here / "people.parquet").read_bytes())
    (here / "privet.toml").write_text(POLICY.replace('"people.parquet"', '"data/*.parquet"'))
    open_ledger(here / "people.ledger").close()
    (here / "people.ledger.new").write_text("new")
    used = ["data/a.parquet", "people.ledger", "people.ledger.new", "privet.toml", "steward.key", "steward.key.pub"]
    for number, file in enumerate(used):
        os.link(here / file, here / f"hard{number}.csv")
    used += [
        "people.ledger-wal",
        "people.ledger-shm",
        "people.ledger-journal",
        "data/new.parquet",
        "./data/../data/b.parquet",
    ]
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file() and ".ledger" not in path.name}
    for file in (*used, *(f"hard{number}.csv" for number in range(6))):
        for flags in (["-o", file, "--format", "csv"], ["--certificate", file]):
            assert "is already used for something else" in shell.refused(2, *ASK, *flags, "--force"), file
    twice = ("-o", "x.json", "--certificate", "./x.json")
    assert "is given twice" in shell.refused(2, *ASK, *twice, "--force")
    assert {p: p.read_bytes() for p in here.rglob("*") if p.is_file() and ".ledger" not in p.name} == before
    (here / "hard1.csv").unlink()  # a ledger has one name
    assert shell.spent() == 0


@pytest.mark.parametrize("form", ["csv", "json", "txt", "parquet", "png"])
@pytest.mark.parametrize("flag", ["-o", "--certificate"])
def test_a_file_that_appears_after_the_check(
    shell: Shell, here: Path, monkeypatch: pytest.MonkeyPatch, form: str, flag: str
) -> None:
    """It is paid for: the answer is printed, and the file that appeared stays."""
    real = files._scratch

    def appearing(target: Path, mode: int) -> object:
        if target.name == f"a.{form}":  # and not the ledger
            target.symlink_to("people.parquet")
        return real(target, mode)

    monkeypatch.setattr(files, "_scratch", appearing)
    source = (here / "people.parquet").read_bytes()
    done = shell.run(*ASK, flag, f"a.{form}")
    assert (done.code, "Traceback" in done.err) == (1, False)
    assert "north" in done.out
    assert f"'a.{form}' already exists" in done.err
    assert "the answer is stored: asking again is free" in done.err
    assert (here / "people.parquet").read_bytes() == source
    assert shell.spent() == 0.5


CURVE = ("curve", "--epsilon", "1", "-o", "curve.png")
INIT = (
    "init",
    "people.parquet",
    "--yes",
    "--person",
    "person_id",
    "--max-rows",
    "1",
    "--epsilon",
    "3",
    "-o",
    "new.toml",
)
IMPORT = ("import", "people.csv", "-o", "new.parquet", "--id", "person_id", "--column", "age=integer")


@pytest.mark.parametrize("command", [CURVE, INIT, IMPORT], ids=["curve", "init", "import"])
def test_every_command(shell: Shell, here: Path, command: tuple[str, ...]) -> None:
    (here / "people.csv").write_text("person_id,age\n1,2\n")
    shell("query", COUNT, "--epsilon", "1")
    target = here / command[command.index("-o") + 1]
    shell(*command)
    target.write_text("mine")
    assert "already exists. Choose another file, or overwrite it. Write: --force" in shell.refused(2, *command)
    assert target.read_text() == "mine"
    shell(*command, "--force")
    assert target.read_bytes() != b"mine"
    target.unlink()
    for other in ("people.csv", "nothing"):
        target.symlink_to(other)
        assert "is a symbolic link" in shell.refused(2, *command, "--force")
        target.unlink()
    for other in ("people.ledger", "steward.key", "privet.toml"):
        os.link(here / other, target)
        content = target.read_bytes()
        if (command, other) != (INIT, "privet.toml"):
            shell.refused(2, *command, "--force")
        assert target.read_bytes() == content
        target.unlink()
    assert not (here / "nothing").exists()


def test_init_keeps_its_data(shell: Shell, here: Path) -> None:
    before = (here / "people.parquet").read_bytes()
    os.link(here / "people.parquet", here / "hard.toml")
    for target in ("people.parquet", "hard.toml"):
        assert "is already used for something else" in shell.refused(2, *INIT[:-1], target, "--force")
    assert (here / "people.parquet").read_bytes() == before


def test_import_keeps_its_csv(shell: Shell, here: Path) -> None:
    (here / "people.csv").write_text("person_id,age\n1,2\n")
    os.link(here / "people.csv", here / "hard.parquet")
    flags = ("--id", "person_id", "--column", "age=integer", "--force")
    for target in ("people.csv", "hard.parquet"):
        assert "is already used for something else" in shell.refused(2, "import", "people.csv", "-o", target, *flags)
    assert (here / "people.csv").read_text() == "person_id,age\n1,2\n"
    shell("import", "people.csv", "-o", "people.parquet", *flags)
    assert pq.read_table(here / "people.parquet").num_rows == 1


def test_the_demo(shell: Shell, here: Path) -> None:
    (here / "demo").mkdir()
    (here / "demo" / "visits.json").symlink_to(here / "people.parquet")
    assert "is a symbolic link" in shell.refused(2, "demo", "-o", "demo", "--force")
    (here / "demo" / "visits.json").unlink()
    (here / "demo" / "visits.json").write_text("mine")
    assert "already exists" in shell.refused(2, "demo", "-o", "demo")
    assert (here / "demo" / "visits.json").read_text() == "mine"


def test_an_interrupted_import(shell: Shell, here: Path) -> None:
    (here / "people.csv").write_text("person_id,age\n1,2\n")
    (here / ".new.parquet.0123456789abcdef.part").write_bytes(b"half")
    assert "Removed an unfinished file left by an interrupted import.\n" in shell(*IMPORT).err
    assert not list(here.glob(".new.parquet.*"))
    assert "Removed" not in shell(*IMPORT, "--force").err


def test_an_interrupted_import_into_another_file(shell: Shell, here: Path) -> None:
    """It is told, and not removed: only a write to the same file may do that. One that is being written is not told."""
    (here / "people.csv").write_text("person_id,age\n1,2\n")
    other = here / ".old.parquet.0123456789abcdef.part"
    other.write_bytes(b"half")
    (here / ".old.parquet.part").write_bytes(b"not ours")
    with files.written(here / "busy.parquet", overwrite=False):
        told = shell(*IMPORT).err
    assert f"Unfinished files of other interrupted writes are in this folder: {other.name}. They may contain" in told
    assert other.read_bytes() == b"half"
    other.unlink()
    assert "nfinished" not in shell(*IMPORT, "--force").err


def test_ids_that_differ_by_what_nobody_sees(shell: Shell, here: Path) -> None:
    (here / "people.csv").write_text('person_id,age\n1,2\n" 1",3\nAb,4\nab ,5\nﬁ,6\nfi,7\n8,8\n')
    told = shell(*IMPORT).err
    assert "person_id: 3 ids differ from another only in spaces, capital letters or forms of a letter" in told
    assert "Ab" not in told
    flags = ("--column", "person_id=text", "--column", "age=integer", "--force")
    assert "person_id: 3 values differ" in shell("import", "people.csv", "-o", "new.parquet", *flags).err
    (here / "people.csv").write_text("person_id,age\n1,2\n2,3\n,4\n")
    assert "equal" not in shell(*IMPORT, "--force").err
