"""L15: the same people under another name, another column or another path have no second budget but by the steward."""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.cli.asking import Shell
from tests.threats.peers import BUDGET, MOST, ask, people, session, spent, write_people

import privet as pv
from privet.errors import UserError
from privet.ledger import open_ledger

CYRILLIC = "реople"
WIDE = "ｐｅｏｐｌｅ"


@pytest.fixture
def path(tmp_path: Path, source: Path) -> Path:
    """A ledger of which most is spent."""
    made = tmp_path / "people.ledger"
    with closing(session(made, source)) as asking:
        ask(asking)
    return made


def is_refused(call: Any, path: Path) -> str:
    """The words with which it is refused; nothing is granted or changed by that."""
    with closing(open_ledger(path)) as ledger:
        before = ledger.datasets()
    with pytest.raises(UserError) as caught:
        call().close()
    with closing(open_ledger(path)) as ledger:
        assert ledger.datasets() == before
    return str(caught.value)


# --- the column that says who is a person -----------------------------------------------------------


def test_another_column_for_the_people_of_the_same_table(path: Path, source: Path) -> None:
    text = is_refused(lambda: session(path, source, person="visit"), path)
    assert "person_id" in text
    assert "visit" in text


def test_another_column_under_another_name_for_the_table(path: Path, source: Path) -> None:
    text = is_refused(lambda: session(path, source, name="visits", person="visit", dataset="people"), path)
    assert "person_id" in text


def test_another_column_in_a_second_table_of_the_session(path: Path, source: Path) -> None:
    tables = [people(source), people(source, "visits", "visit")]
    is_refused(lambda: pv.Session(tables, budget=pv.PureDP(1), ledger=path), path)


def test_another_column_by_way_of_other_rows(tmp_path: Path, path: Path, source: Path) -> None:
    """A table that is known with another column, for other rows, is not a way to these rows."""
    other = write_people(tmp_path / "other.parquet")
    tables = [people(source), people(other, "visits", "visit")]
    pv.Session(tables, budget=pv.PureDP(1), ledger=path).close()
    for table in (people(source, "visits", "visit"), people(other, "people")):
        is_refused(lambda table=table: pv.Session([table], budget=pv.PureDP(1), ledger=path, name="people"), path)


def test_another_column_for_a_new_version(path: Path, source: Path) -> None:
    is_refused(lambda: session(path, source, person="visit", version="2"), path)


def test_another_column_in_a_new_ledger_at_once(tmp_path: Path, source: Path) -> None:
    tables = [people(source), people(source, "visits", "visit")]
    with pytest.raises(UserError, match="person_id"):
        pv.Session(tables, budget=pv.PureDP(1), ledger=tmp_path / "new.ledger")


def test_the_steward_may_allow_another_column(path: Path, source: Path) -> None:
    with closing(open_ledger(path)) as ledger:
        ledger.protect("people", "people", "visit", reason="the column was renamed")
    with closing(session(path, source, person="visit")) as asking:
        assert asking.spent.epsilon == Fraction(MOST)
    with closing(open_ledger(path)) as ledger:
        assert any("the column was renamed" in entry.note for entry in ledger.history("people"))


def test_one_file_of_a_pattern_that_is_allowed_does_not_allow_the_others(tmp_path: Path) -> None:
    folder, path = tmp_path / "d", tmp_path / "d.ledger"
    folder.mkdir()
    one, _ = write_people(folder / "a.parquet"), write_people(folder / "b.parquet")
    pattern = str(folder / "*.parquet")
    pv.Session([people(pattern)], budget=pv.PureDP(1), ledger=path).close()
    with closing(open_ledger(path)) as ledger:
        ledger.allow_source("trial", one, reason="a separate consent")
    with pytest.raises(UserError, match=r"b\.parquet' belong to the dataset 'people'"):
        pv.Session([people(pattern)], budget=pv.PureDP(1), ledger=path, name="trial")
    pv.Session([people(one)], budget=pv.PureDP(1), ledger=path, name="trial").close()


# --- the same source for another dataset ------------------------------------------------------------


def other_paths(source: Path) -> dict[str, Any]:
    """The same rows by another path."""
    folder = source.parent
    hard, soft, chained, there = (folder / name for name in ("hard.parquet", "soft.parquet", "chain.parquet", "there"))
    hard.hardlink_to(source)
    soft.symlink_to(source)
    chained.symlink_to(soft)
    there.symlink_to(folder)
    return {
        "the same": source,
        "a text": str(source),
        "with dots": f"{folder}/../{folder.name}/./{source.name}",
        "a hard link": hard,
        "a symlink": soft,
        "a chain of symlinks": chained,
        "a symlinked folder": there / source.name,
        "a glob": str(folder / "peop*.parquet"),
        "a wider glob": str(folder / "*.parquet"),
        "a relative path": source.name,
    }


@pytest.mark.parametrize(
    "way",
    [
        "the same", "a text", "with dots", "a hard link", "a symlink", "a chain of symlinks", "a symlinked folder",
        "a glob", "a wider glob", "a relative path",
    ],
)  # fmt: skip
def test_another_dataset_over_the_same_source(
    path: Path, source: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = other_paths(source)[way]
    monkeypatch.chdir(source.parent)
    text = is_refused(lambda: session(path, given, name="people2"), path)
    assert "people" in text
    assert "allow" in text


@pytest.mark.parametrize("way", ["the same", "a hard link", "a chain of symlinks", "a relative path"])
@pytest.mark.parametrize("name", ["people", "others"])
def test_private_rows_as_a_public_table(
    path: Path, source: Path, way: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The values of a public table are used as they are, without noise."""
    monkeypatch.chdir(source.parent)
    visits = pv.public_table("visits", other_paths(source)[way], key="visit")
    own = source if name == "people" else write_people(source.with_name("others.parquet"))

    def both() -> pv.Session:
        return pv.Session([people(own, name)], public=[visits], budget=BUDGET, ledger=path)

    assert "can't be public" in is_refused(both, path)
    others = pv.public_table("visits", write_people(source.with_name("more.parquet")), key="visit")
    pv.Session([people(own, name)], public=[others], budget=BUDGET, ledger=path).close()


def test_private_rows_as_a_public_table_in_a_new_ledger_at_once(tmp_path: Path, source: Path) -> None:
    visits = pv.public_table("visits", source, key="visit")
    with pytest.raises(UserError, match="belong to the private table 'people', so they can't be public"):
        pv.Session([people(source)], public=[visits], budget=BUDGET, ledger=tmp_path / "new.ledger")


def test_private_rows_as_a_public_list_of_keys(tmp_path: Path, source: Path) -> None:
    keys = pv.keys_from(source, "visit")
    columns = {"visit": keys}
    made = pv.table("people", source, protect=pv.person("person_id", max_rows=1), columns=columns)
    with pytest.raises(UserError, match="belong to the private table 'people', so they can't be public"):
        pv.Session([made], budget=BUDGET, ledger=tmp_path / "new.ledger")
    own = write_people(tmp_path / "keys.parquet")
    again = pv.table(
        "people", source, protect=pv.person("person_id", max_rows=1), columns={"visit": pv.keys_from(own, "visit")}
    )
    assert again.schema == made.schema  # only the values count
    pv.Session([again], budget=BUDGET, ledger=tmp_path / "new.ledger").close()


def test_a_part_of_a_glob(tmp_path: Path) -> None:
    for n in range(2):
        write_people(tmp_path / f"part{n}.parquet")
    path = tmp_path / "people.ledger"
    session(path, str(tmp_path / "part*.parquet")).close()
    is_refused(lambda: session(path, tmp_path / "part1.parquet", name="rest"), path)


def test_a_copy_of_the_rows(path: Path, source: Path) -> None:
    """Byte by byte the same; or it is named among the known limits."""
    copy = source.with_name("copy.parquet")
    copy.write_bytes(source.read_bytes())
    limits = (Path(__file__).parents[2] / "docs" / "known-limits.md").read_text()
    try:
        is_refused(lambda: session(path, copy, name="people2"), path)
    except pytest.fail.Exception:
        assert "a copy of a file" in limits


def test_a_file_that_is_moved_is_still_known_by_its_dataset(path: Path, source: Path) -> None:
    moved = source.with_name("moved.parquet")
    source.rename(moved)
    with closing(session(path, moved)) as asking:
        assert asking.spent.epsilon == Fraction(MOST)


def test_a_second_table_for_a_dataset_that_was_another_datasets(path: Path, source: Path, tmp_path: Path) -> None:
    """It begins with a harmless table, and adds the people later."""
    harmless = write_people(tmp_path / "harmless.parquet")
    session(path, harmless, name="others").close()
    tables = [people(harmless, "others"), people(source, "more")]
    is_refused(lambda: pv.Session(tables, budget=pv.PureDP(1), ledger=path, name="others"), path)


# --- names that look the same -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["People", "PEOPLE", "people ", " people", CYRILLIC, WIDE, "peopl\u200be", "pe\u00adople"]
)
def test_names_that_look_the_same(path: Path, source: Path, name: str) -> None:
    other = write_people(source.with_name("other.parquet"))
    is_refused(lambda: session(path, other, dataset=name), path)


@pytest.mark.parametrize("name", ["People", "people ", CYRILLIC, "people2"])
def test_frames_under_names_that_look_the_same(tmp_path: Path, name: str) -> None:
    """A frame has no path: what is known of it is its dataset's name."""
    path, frame = tmp_path / "people.ledger", pq.read_table(write_people(tmp_path / "p.parquet"))
    session(path, frame).close()
    if name == "people2":
        return
    is_refused(lambda: session(path, frame, dataset=name), path)


def test_names_that_differ_are_allowed(path: Path, source: Path) -> None:
    for n, name in enumerate(["visits", "people2", "people-2025", "patients", "ärzte"]):
        other = write_people(source.with_name(f"other{n}.parquet"))
        session(path, other, dataset=name).close()
    with closing(session(path, source)):
        pass


# --- by the steward's word --------------------------------------------------------------------------


def test_the_steward_may_allow_a_source(path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source.parent)
    with closing(open_ledger(path)) as ledger:
        for empty in ("", "  "):
            with pytest.raises(UserError):
                ledger.allow_source("people2", "people.parquet", reason=empty)
        ledger.allow_source("people2", "people.parquet", reason="these are the other half")
        ledger.verify()
    is_refused(lambda: session(path, source, name="people3"), path)
    with closing(session(path, source, name="people2")) as asking:
        ask(asking)
    with closing(open_ledger(path)) as ledger:
        notes = [entry.note for name in ledger.datasets() for entry in ledger.history(name)]
        assert any("these are the other half" in note for note in notes)
        ledger.verify()
    assert spent(path) == Fraction(MOST)


def test_the_steward_may_allow_a_source_at_the_command_line(
    path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(capsys, monkeypatch)
    monkeypatch.chdir(source.parent)
    options = ["--source", source.name, "--to", "people2"]
    assert shell.run("ledger", "allow-source", path.name, *options).code
    shell("ledger", "allow-source", path.name, *options, "--reason", "these are the other half")
    with closing(session(path, source.name, name="people2")):
        pass
    assert "these are the other half" in shell("ledger", "history", path.name, "--dataset", "people").out


def test_the_steward_may_allow_another_column_at_the_command_line(
    path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(capsys, monkeypatch)
    options = ["--table", "people", "--person", "visit"]
    assert shell.run("ledger", "protect", path, *options).code
    shell("ledger", "protect", path, *options, "--reason", "the column was renamed")
    with closing(session(path, source, person="visit")):
        pass
    assert "the column was renamed" in shell("ledger", "history", path).out
