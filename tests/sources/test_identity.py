"""The same people are known again by their files; two careless twins show that these tests can tell."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.common import SOURCES, arrow, as_duckdb, as_many, as_parquet, people

from privet.codec import canonical, parsed
from privet.errors import SourceError
from privet.sources import duckdb_file, import_csv
from privet.system.identity import Identity, of_database, of_files, same, shared, table_name
from privet.tables import schema

Judge = Callable[[Identity, Identity], bool]

_moments = count(1_700_000_000_000_000_000, 1_000)


def written(path: Path) -> Path:
    """A new file, written at a moment of its own: clocks of file systems tick slowly."""
    scratch = path.with_name(f"{path.name}.part")
    scratch.write_text("rows")
    os.utime(scratch, ns=(moment := next(_moments), moment))
    return scratch.replace(path)


def one(path: Path | str, table: str = "") -> Identity:
    (found,) = of_files([str(path)], table=table)
    return found


# --- careless twins -------------------------------------------------------------------------------


def by_path(known: Identity, now: Identity) -> bool:
    return known.path == now.path and known.table == now.table


def by_inode(known: Identity, now: Identity) -> bool:
    return known.inode == now.inode and known.table == now.table


def by_either(known: Identity, now: Identity) -> bool:
    return by_path(known, now) or by_inode(known, now)


# --- what happens to files ------------------------------------------------------------------------


def unchanged(folder: Path) -> tuple[Identity, Identity, bool]:
    file = written(folder / "a")
    return one(file), one(file), True


def another(folder: Path) -> tuple[Identity, Identity, bool]:
    return one(written(folder / "a")), one(written(folder / "b")), False


def hard_link(folder: Path) -> tuple[Identity, Identity, bool]:
    known = one(written(folder / "a"))
    (folder / "b").hardlink_to(folder / "a")
    return known, one(folder / "b"), True


def hard_link_written_since(folder: Path) -> tuple[Identity, Identity, bool]:
    known, _, _ = hard_link(folder)
    os.utime(folder / "b", ns=(moment := next(_moments), moment))
    return known, one(folder / "b"), True


def hard_link_replaced(folder: Path) -> tuple[Identity, Identity, bool]:
    """A newer version, linked twice: the place of before leads to it."""
    known = one(written(folder / "a"))
    written(folder / "a")
    (folder / "b").hardlink_to(folder / "a")
    return known, one(folder / "b"), True


def symbolic_link(folder: Path) -> tuple[Identity, Identity, bool]:
    known = one(written(folder / "a"))
    (folder / "b").symlink_to("a")
    return known, one(folder / "b"), True


def through_a_link_first(folder: Path) -> tuple[Identity, Identity, bool]:
    written(folder / "a")
    (folder / "b").symlink_to("a")
    return one(folder / "b"), one(folder / "a"), True


def linked_folder(folder: Path) -> tuple[Identity, Identity, bool]:
    (folder / "real").mkdir()
    (folder / "linked").symlink_to("real")
    return one(written(folder / "real" / "a")), one(folder / "linked" / "a"), True


def link_of_a_link(folder: Path) -> tuple[Identity, Identity, bool]:
    known = one(written(folder / "a"))
    (folder / "b").symlink_to("a")
    (folder / "c").symlink_to(folder / "b")
    return known, one(folder / "c"), True


def newest_link_moves(folder: Path) -> tuple[Identity, Identity, bool]:
    """newest -> 2023 became newest -> 2024: the same place, given the same way."""
    written(folder / "2023")
    (folder / "newest").symlink_to("2023")
    known = one(folder / "newest")
    written(folder / "2024")
    (folder / "newest").unlink()
    (folder / "newest").symlink_to("2024")
    return known, one(folder / "newest"), True


def newest_link_moves_then_directly(folder: Path) -> tuple[Identity, Identity, bool]:
    known, _, _ = newest_link_moves(folder)
    return known, one(folder / "2024"), True


def dots(folder: Path) -> tuple[Identity, Identity, bool]:
    (folder / "sub").mkdir()
    known = one(written(folder / "a"))
    return known, one(f"{folder}/sub/.././sub/../a"), True


def dots_after_a_link(folder: Path) -> tuple[Identity, Identity, bool]:
    """linked/../a is not a: the link leads elsewhere, and its parent is another folder."""
    (folder / "far" / "away").mkdir(parents=True)
    (folder / "linked").symlink_to("far/away")
    known = one(written(folder / "a"))
    written(folder / "far" / "a")
    return known, one(f"{folder}/linked/../a"), False


def relative(folder: Path) -> tuple[Identity, Identity, bool]:
    known = one(written(folder / "a"))
    (folder / "sub").mkdir()
    before = Path.cwd()
    os.chdir(folder / "sub")
    try:
        return known, one("../a"), True
    finally:
        os.chdir(before)


def relative_elsewhere(folder: Path) -> tuple[Identity, Identity, bool]:
    """The same words in another folder name another file."""
    found = []
    before = Path.cwd()
    for name in ("x", "y"):
        (folder / name).mkdir()
        written(folder / name / "a")
        os.chdir(folder / name)
        found.append(one("a"))
    os.chdir(before)
    return found[0], found[1], False


def replaced(folder: Path) -> tuple[Identity, Identity, bool]:
    known = one(written(folder / "a"))
    return known, one(written(folder / "a")), True


def removed_and_made_again(folder: Path) -> tuple[Identity, Identity, bool]:
    known = one(written(folder / "a"))
    (folder / "a").unlink()
    written(folder / "other")
    return known, one(written(folder / "a")), True


def renamed(folder: Path) -> tuple[Identity, Identity, bool]:
    known = one(written(folder / "a"))
    return known, one((folder / "a").rename(folder / "b")), True


def renamed_and_a_new_one(folder: Path) -> tuple[Identity, Identity, bool]:
    """Last year's file was put aside, and this year's is at its place: both are of the same people."""
    known = one(written(folder / "a"))
    aside = (folder / "a").rename(folder / "b")
    written(folder / "a")
    return known, one(aside), True


def renamed_folder(folder: Path) -> tuple[Identity, Identity, bool]:
    (folder / "x").mkdir()
    known = one(written(folder / "x" / "a"))
    (folder / "x").rename(folder / "y")
    return known, one(folder / "y" / "a"), True


def copied(folder: Path) -> tuple[Identity, Identity, bool]:
    """Out of reach: nothing but its contents tells that a copy is one."""
    known = one(written(folder / "a"))
    shutil.copy2(folder / "a", folder / "b")
    return known, one(folder / "b"), False


def renamed_and_written(folder: Path) -> tuple[Identity, Identity, bool]:
    """Out of reach: it can't be told from an inode that was given to another file."""
    known = one(written(folder / "a"))
    moved = (folder / "a").rename(folder / "b")
    os.utime(moved, ns=(moment := next(_moments), moment))
    return known, one(moved), False


def reused_inode(folder: Path) -> tuple[Identity, Identity, bool]:
    """Another file that got the number of a deleted one. Where none ever does, the number is set by hand."""
    known = one(written(folder / "a"))
    (folder / "a").unlink()
    for i in range(100):
        now = one(written(folder / f"b{i}"))
        if now.inode == known.inode:
            return known, now, False
        Path(now.path).unlink()
    return known, replace(one(written(folder / "b")), inode=known.inode), False


def reused_inode_and_a_new_one(folder: Path) -> tuple[Identity, Identity, bool]:
    """As before, but the recorded path leads to a third file by now."""
    known, now, expected = reused_inode(folder)
    written(folder / "a")
    return known, now, expected


def broken_link(folder: Path) -> tuple[Identity, Identity, bool]:
    (folder / "b").symlink_to("nowhere")
    known = one(folder / "b")
    assert not known.inode
    return known, one(written(folder / "a")), False


def broken_link_mended(folder: Path) -> tuple[Identity, Identity, bool]:
    (folder / "b").symlink_to("a")
    known = one(folder / "b")
    return known, one(written(folder / "a")), True


def circular_links(folder: Path) -> tuple[Identity, Identity, bool]:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    return one(folder / "a"), one(written(folder / "c")), False


def no_inodes(folder: Path) -> tuple[Identity, Identity, bool]:
    """Some file systems have none: paths alone tell, and an empty number is nobody's."""
    known, now = (replace(one(written(folder / name)), inode="", written=0) for name in "ab")
    return known, now, False


def no_inodes_one_path(folder: Path) -> tuple[Identity, Identity, bool]:
    known = replace(one(written(folder / "a")), inode="", written=0)
    return known, one(folder / "a"), True


def newest_link_moves_without_inodes(folder: Path) -> tuple[Identity, Identity, bool]:
    known, now, _ = newest_link_moves(folder)
    return replace(known, inode="", written=0), replace(now, inode="", written=0), True


def capital_letters(folder: Path) -> tuple[Identity, Identity, bool]:
    """Whatever the file system says: two files, or one."""
    written(folder / "people")
    is_one = (folder / "PEOPLE").exists()
    known = one(folder / "people")
    return known, one(folder / "PEOPLE" if is_one else written(folder / "PEOPLE")), is_one


def two_tables(folder: Path) -> tuple[Identity, Identity, bool]:
    file = written(folder / "a")
    return one(file, table_name("main", "people")), one(file, table_name("main", "visits")), False


def two_schemas(folder: Path) -> tuple[Identity, Identity, bool]:
    file = written(folder / "a")
    return one(file, table_name("main", "people")), one(file, table_name("old", "people")), False


def dots_in_tables(folder: Path) -> tuple[Identity, Identity, bool]:
    file = written(folder / "a")
    return one(file, table_name("a.b", "c")), one(file, table_name("a", "b.c")), False


def table_in_capitals(folder: Path) -> tuple[Identity, Identity, bool]:
    file = written(folder / "a")
    return one(file, table_name("main", "People")), one(file, table_name("MAIN", "pEOPLE")), True


def table_after_a_rename(folder: Path) -> tuple[Identity, Identity, bool]:
    known = one(written(folder / "a"), table_name("main", "people"))
    return known, one((folder / "a").rename(folder / "b"), table_name("main", "visits")), False


def all_of_a_file(folder: Path) -> tuple[Identity, Identity, bool]:
    """A query of unknown tables may read each of them."""
    file = written(folder / "a")
    return one(file), one(file, table_name("main", "people")), True


HAPPENINGS = [
    value
    for value in list(globals().values())
    if getattr(value, "__module__", "") == __name__
    and list(getattr(value, "__annotations__", ())) == ["folder", "return"]
]


@pytest.mark.parametrize("happening", HAPPENINGS, ids=lambda each: each.__name__)
def test_what_happens_to_files(happening: Callable[[Path], tuple[Identity, Identity, bool]], tmp_path: Path) -> None:
    known, now, expected = happening(tmp_path)
    stored = Identity.from_dict(json.loads(json.dumps(known.to_dict())))
    assert same(stored, now) is expected


@pytest.mark.parametrize("twin", [by_path, by_inode, by_either])
def test_a_careless_twin_is_found_out(twin: Judge, tmp_path: Path) -> None:
    wrong: dict[bool, set[str]] = {True: set(), False: set()}
    for happening in HAPPENINGS:
        (folder := tmp_path / happening.__name__).mkdir()
        known, now, expected = happening(folder)
        if twin(known, now) is not expected:
            wrong[expected].add(happening.__name__)
    missed, refused = wrong[True], wrong[False]
    if twin is by_path:
        assert {"hard_link", "renamed", "newest_link_moves"} <= missed
    else:
        assert {"hard_link_replaced", "newest_link_moves_then_directly"} <= missed
        assert {"reused_inode", "no_inodes"} <= refused
    if twin is by_inode:
        assert "replaced" in missed


# --- any sequence of changes, against a file system that was written down --------------------------


@dataclass
class Written:
    """A folder as a table of names: each a file with a number of its own, or a link to a name."""

    files: dict[str, int] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)

    def end(self, name: str) -> str | None:
        seen = set()
        while name in self.links and name not in seen:
            seen.add(name)
            name = self.links[name]
        return name if name in self.files else None

    def at(self, name: str) -> int | None:
        end = self.end(name)
        return None if end is None else self.files[end]

    def remove(self, name: str) -> None:
        self.files.pop(name, None)
        self.links.pop(name, None)


NAMES = ("a", "b", "c", "d")
CHANGES = st.tuples(
    st.sampled_from(["make", "write", "rename", "hard", "soft", "remove"]),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
)


def change(folder: Path, model: Written, what: str, name: str, other: str, numbers: Iterator[int]) -> None:
    """One change, to the folder and to the table."""
    there = name in model.files or name in model.links
    if what == "make":
        written(folder / name)
        model.remove(name)
        model.files[name] = number = next(numbers)
        model.last[number] = next(numbers)
    elif what == "write" and (number := model.at(name) or 0):
        os.utime(folder / name, ns=(moment := next(_moments), moment))
        model.last[number] = next(numbers)
    elif what == "remove" and there:
        (folder / name).unlink()
        model.remove(name)
    elif what == "rename" and there and name != other and model.files.get(name) != model.files.get(other, -1):
        (folder / name).rename(folder / other)
        kept = (model.files.get(name), model.links.get(name))
        model.remove(name)
        model.remove(other)
        if kept[0] is not None:
            model.files[other] = kept[0]
        if kept[1] is not None:
            model.links[other] = kept[1]
    elif what in ("hard", "soft") and name != other and other not in model.files and other not in model.links:
        if what == "soft":
            (folder / other).symlink_to(name)
            model.links[other] = name
        elif name in model.files:
            (folder / other).hardlink_to(folder / name)
            model.files[other] = model.files[name]


@settings(max_examples=75, deadline=None)
@given(st.lists(CHANGES, max_size=6), st.sampled_from(NAMES), st.lists(CHANGES, max_size=8))
def test_any_changes(before: list[tuple[str, str, str]], name: str, after: list[tuple[str, str, str]]) -> None:
    model, numbers = Written(), count(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        for each in [("make", name, name), *before]:
            change(folder, model, *each, numbers)
        if model.at(name) is None:
            return
        known, file, places = one(folder / name), model.at(name), {name, model.end(name)}
        last = model.last[file or 0]
        for each in after:
            change(folder, model, *each, numbers)
        for now_name in NAMES:
            now_file = model.at(now_name)
            if now_file is None:
                continue
            expected = (
                bool(places & {now_name, model.end(now_name)})
                or now_file in {model.at(place or "") for place in places}
                or (now_file == file and model.last[now_file] == last)
            )
            assert same(known, one(folder / now_name)) is expected


# --- many at once ---------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_many_are_judged_as_one_by_one(data: st.DataObject) -> None:
    identity = st.builds(
        Identity,
        st.sampled_from(["/a", "/b", "/c", "postgresql://h:1/d"]),
        st.sampled_from(["", "/a", "/l"]),
        st.sampled_from(["", "1:1", "1:2"]),
        st.sampled_from([0, 7]),
        st.sampled_from(["", "main.t", "main.u"]),
    )
    known, now = data.draw(st.lists(identity, max_size=4)), data.draw(st.lists(identity, max_size=4))
    found = shared(known, now)
    assert (found is not None) is any(same(x, y) for x in known for y in now)
    if found is not None:
        assert found[0] in known
        assert found[1] in now
        assert same(*found)


def test_one_look_at_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [str(written(tmp_path / f"{i}.parquet")) for i in range(300)]
    looks: list[Any] = []
    real_stat, real_lstat = os.stat, os.lstat

    def counted(real: Any) -> Any:
        def look(*args: Any, **how: Any) -> Any:
            looks.append(args[0])
            return real(*args, **how)

        return look

    monkeypatch.setattr(os, "stat", counted(real_stat))
    monkeypatch.setattr(os, "lstat", counted(real_lstat))
    known = of_files(files)
    monkeypatch.undo()
    assert sum(str(path).endswith(".parquet") for path in looks) == 300
    assert len(looks) < 330, "one look at each file, and a few at the folder"

    elsewhere = [replace(each, path=f"{each.path}.other", inode=f"0:{i}") for i, each in enumerate(known)]
    looks.clear()
    monkeypatch.setattr(os, "stat", counted(real_stat))
    assert shared(known, elsewhere) is None
    monkeypatch.undo()
    assert len(looks) == 300


# --- as trees -------------------------------------------------------------------------------------


@given(st.builds(Identity, st.text(min_size=1), st.text(), st.text(), st.integers(), st.text()))
def test_round_trip(identity: Identity) -> None:
    tree = parsed(canonical(identity.to_dict()))
    assert Identity.from_dict(tree) == identity
    assert hash(Identity.from_dict(tree)) == hash(identity)


def test_a_path_that_is_not_text(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(str(tmp_path)) + b"/\xff.parquet")
    known = one(name)
    assert same(Identity.from_dict(parsed(canonical(known.to_dict()))), known)


@pytest.mark.parametrize(
    "tree",
    [{}, {"path": ""}, {"path": 3}, {"path": "/a", "inode": 7}, {"path": "/a", "written": "7"}, {"path": "/a", "x": ""},
     {"path": "/a", "written": True}, {"path": None}],
)  # fmt: skip
def test_other_trees_are_refused(tree: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not the identity"):
        Identity.from_dict(tree)


# --- addresses of databases -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://db.example.org/health",
        "postgresql://DB.Example.ORG:5432/health",
        "postgres://ann:secret@db.example.org./health/",
        "postgresql+psycopg://ann:se%2Fcret@db.example.org:5432/health?sslmode=require&password=secret#x",
    ],
)
def test_addresses_of_one_database(address: str) -> None:
    found = of_database(address, table="public.people")
    assert found.path == "postgresql://db.example.org:5432/health"
    assert "secret" not in str(found.to_dict())
    assert "ann" not in str(found.to_dict())
    assert same(found, of_database("postgresql://db.example.org/health", table="public.people"))


def test_other_databases() -> None:
    health = of_database("postgresql://h/health")
    for address in ("postgresql://h:5433/health", "postgresql://h/wealth", "mysql://h/health", "postgresql://i/health"):
        assert not same(health, of_database(address))
    assert same(of_database("postgresql:///health"), of_database("postgresql://[::1]:5432/health"))
    assert not same(of_database("postgresql://[fe80::1]/x"), of_database("postgresql://[fe80::2]/x"))


@pytest.mark.parametrize(
    "address", ["host=db password=secret", "", "secret", "postgresql://h:secret/db", "a://[secret"]
)
def test_an_address_that_is_none_is_refused_without_its_secrets(address: str) -> None:
    with pytest.raises(SourceError, match="not the address of a database") as told:
        of_database(address)
    assert "secret" not in str(told.value)
    assert told.value.__cause__ is None


# --- sources --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_has_identities(kind: str, tmp_path: Path) -> None:
    found = people(SOURCES[kind](tmp_path)).identities
    of_a_file = kind in ("Parquet", "list", "DuckDB file")
    assert len(found) == (4 if kind == "pattern" else 1 if of_a_file else 0)
    assert all(each.inode and each.written and Path(each.path).exists() for each in found)


def test_a_file_and_a_pattern_that_matches_it(tmp_path: Path) -> None:
    every = people(as_many(tmp_path)).identities
    third = people(tmp_path / "it's many" / "2.parquet").identities
    assert shared(every, third) == (every[2], third[0])
    assert shared(third, every) == (third[0], every[2])
    pq.write_table(arrow(), tmp_path / "it's many" / "new.parquet")
    assert shared(every, people(tmp_path / "it's many" / "new.parquet").identities) is None, "not known then"


def test_identities_are_those_of_now(tmp_path: Path) -> None:
    table = people(as_parquet(tmp_path))
    (before,) = table.identities
    pq.write_table(arrow(), tmp_path / "new.parquet")
    (tmp_path / "new.parquet").replace(tmp_path / "people.parquet")
    (after,) = table.identities
    assert before.inode != after.inode
    assert same(before, after)


def test_an_imported_csv_is_known_by_its_parquet_file(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n3\n")
    columns = {"age": schema.integer(0, 110)}
    import_csv(tmp_path / "people.csv", tmp_path / "people.parquet", columns=columns)
    known = people(tmp_path / "people.parquet", columns=columns, by_person=False).identities
    import_csv(tmp_path / "people.csv", tmp_path / "people.parquet", columns=columns, overwrite=True)
    (tmp_path / "link.parquet").symlink_to("people.parquet")
    assert shared(known, people(tmp_path / "link.parquet", columns=columns, by_person=False).identities)


def test_tables_of_a_duckdb_file(tmp_path: Path) -> None:
    known = people(as_duckdb(tmp_path)).identities
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(
            "CREATE SCHEMA old; CREATE TABLE old.people AS FROM people; CREATE TABLE more AS FROM people"
        )
    (tmp_path / "link.duckdb").symlink_to("people.duckdb")
    assert known[0].table == "main.people"
    assert shared(known, people(duckdb_file(tmp_path / "link.duckdb", "people")).identities)
    assert not shared(known, people(duckdb_file(tmp_path / "people.duckdb", "more")).identities)
    assert not shared(known, people(duckdb_file(tmp_path / "people.duckdb", "people", schema="old")).identities)


def ibis(backend: str, file: Path) -> Any:
    with warnings.catch_warnings():  # Ibis and DuckDB warn of each other
        warnings.simplefilter("ignore")
        return getattr(import_module("ibis"), backend).connect(str(file))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ibis and DuckDB warn of each other
def test_an_ibis_table_of_a_duckdb_file(tmp_path: Path) -> None:
    known = people(as_duckdb(tmp_path)).identities
    connection = ibis("duckdb", tmp_path / "people.duckdb")
    found = people(connection.table("people").mutate(more=1)).identities
    assert found == known
    connection.raw_sql("CREATE TABLE more AS FROM people")
    other = people(connection.table("more")).identities
    assert not shared(known, other)
    both = people(connection.table("people").union(connection.table("more"))).identities
    assert {each.table for each in both} == {"main.people", "main.more"}
    connection.disconnect()


def test_an_ibis_table_of_a_sqlite_file(tmp_path: Path) -> None:
    connection = ibis("sqlite", tmp_path / "people.db")
    connection.con.execute("CREATE TABLE People (age integer)")
    columns = {"age": schema.integer(0, 110)}
    (found,) = people(connection.table("People"), columns=columns, by_person=False).identities
    assert (found.path, found.table) == (str((tmp_path / "people.db").resolve()), "main.people")
    connection.disconnect()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_source_behind_a_link_is_known_by_both_names(tmp_path: Path) -> None:
    as_parquet(tmp_path)
    (tmp_path / "newest.parquet").symlink_to("people.parquet")
    (found,) = people(tmp_path / "newest.parquet").identities
    assert (Path(found.path).name, Path(found.given).name) == ("people.parquet", "newest.parquet")
