"""The files of a table in Spark as they are at one moment: changed if one was added, removed or replaced.

Parquet files are written once. Spark itself does not notice that a file was replaced under its name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from privet.engines.spark import catalogue, sessions
from privet.engines.spark.addresses import literal
from privet.engines.spark.identities import canonical
from privet.engines.spark.sessions import Session
from privet.engines.spark.tables import SparkTable
from privet.engines.spark.types import identifier

_TICK, _SECONDS = 50, 2000
"""Milliseconds in which a file can change twice without another time; the second of a storage that counts seconds."""
_MOST_LINKS = 40  # as Linux
_State = tuple[int, ...]  # the size, the time of the last change in milliseconds, and more


@dataclass(frozen=True, slots=True)
class Listing:
    """The files, by path, with their sizes and times, and what else tells one file from another."""

    files: tuple[tuple[str, _State], ...]
    age: float = field(compare=False)
    """Milliseconds since the last change."""
    wait: float = field(compare=False)
    """Milliseconds from now on in which one more change might not show in the times."""
    around: tuple[tuple[str, _State], ...] = ()
    """The folders and symbolic links on the way to local files."""


def listed(session: Session, source: SparkTable, tag: str = "") -> Listing:
    """The files that Spark would read now.

    Claim: if the listings before and after a question are equal, and the first was made after its `wait`, the question
    read these very files. Not noticed is a file that was replaced, and put back with its old size and time before the
    second listing; but of local files of a Spark in this process that is noticed too, unless a folder
    above the table's own was replaced and put back. There, any other file that is added to a folder is noticed as well.
    """
    if source.address.names:
        sessions.run(session, f"REFRESH TABLE {source.name}", tag=tag)
    if source.local and not session.remote and "*" not in source.address.path:
        with suppress(OSError):  # Spark says it better
            return _by_system(session, source, tag)
    return _by_statement(session, source, tag)


def _wait(state: _State, age: float) -> float:
    tick = _TICK if state[1] % 1000 else _SECONDS
    return tick - age if -_SECONDS < age < tick else 0.0  # a clock can be a little ahead


def _sorted(states: Mapping[str, _State]) -> tuple[tuple[str, _State], ...]:
    return tuple(sorted(states.items()))


# --- files of this machine, without a statement ---------------------------------------------------


def _by_system(session: Session, source: SparkTable, tag: str) -> Listing:
    if source.address.names:
        paths = [canonical(each) for each in sessions.files(session, f"SELECT * FROM {source.name}", tag)]
        folders = {folder for path in paths for folder in _partitions(path)}
    else:
        paths, folders = _below(canonical(source.address.path, encoded=False))
    links = {link for path in [*folders, *filter(os.path.islink, paths)] for link in _links(path)}
    files = {path: Path(path).stat() for path in paths}
    around = {f"{path}/": Path(path).stat() for path in folders} | {link: Path(link).lstat() for link in links}
    now = time.time() * 1000
    waits = [_wait(_state(each), now - each.st_ctime_ns / 10**6) for each in (*files.values(), *around.values())]
    return Listing(
        _sorted({path: _state(each) for path, each in files.items()}),
        min((now - each.st_ctime_ns / 10**6 for each in files.values()), default=0),
        max(waits, default=0),
        _sorted({path: _state(each) for path, each in around.items()}),
    )


def _state(s: os.stat_result) -> _State:
    return s.st_size, s.st_mtime_ns // 10**6, s.st_mtime_ns, s.st_ctime_ns, s.st_dev, s.st_ino


def _below(path: str) -> tuple[list[str], set[str]]:
    """The files of a folder, and its folders with itself; or the file."""
    if not Path(path).is_dir():
        return [path], set()
    paths, every = [], set()
    for folder, folders, names in os.walk(path, followlinks=True):
        folders[:] = [each for each in folders if not _is_hidden(each)]
        paths += [str(Path(folder, each)) for each in names if not _is_hidden(each)]
        every.add(folder)
    return paths, every


def _partitions(path: str) -> Iterator[str]:
    """The folders of a file of a table in the catalogue, up to the table's own."""
    folder = Path(path).parent
    yield str(folder)
    while "=" in folder.name:
        folder = folder.parent
        yield str(folder)


def _links(path: str) -> list[str]:
    """The symbolic links on the way to a path, with those that they lead through."""
    found: list[str] = []
    at, ahead = "", path.split("/")[::-1]
    while ahead:
        part = ahead.pop()
        here = f"{at}/{part}"
        if part in ("", "."):
            continue
        if part == "..":
            at = at.rpartition("/")[0]
        elif not Path(here).is_symlink():
            at = here
        else:
            found.append(here)
            target = str(Path(here).readlink())
            at = "" if target.startswith("/") else at
            ahead += target.split("/")[::-1]
            if len(found) > _MOST_LINKS:
                raise OSError(f"{path} leads through too many symbolic links")
    return found


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


# --- all others, by a statement -------------------------------------------------------------------


def _by_statement(session: Session, source: SparkTable, tag: str) -> Listing:
    if source.address.path:
        found = _in_folders(session, [source.address.pattern], tag)
    else:
        files = {canonical(each) for each in sessions.files(session, f"SELECT * FROM {source.name}", tag)}
        root = catalogue.described(session, source.address).location
        roots = {root, *(file.rpartition("/")[0] for file in files if not file.startswith(f"{canonical(root)}/"))}
        known = _in_folders(session, [literal(each) for each in sorted(roots)], tag)
        found = {path: known[path] for path in files}
    return Listing(
        _sorted({path: state[:2] for path, state in found.items()}),
        min((age for *_, age in found.values()), default=0),
        max((_wait(state[:2], state[2]) for state in found.values()), default=0),
    )


def _in_folders(session: Session, folders: Iterable[str], tag: str) -> dict[str, tuple[int, int, int]]:
    """By path: the size of a file, the time it was changed, and its age. No file is opened."""
    changed = "unix_millis(modificationTime)"
    sql = f"SELECT path, length, {changed}, unix_millis(current_timestamp()) - {changed} FROM binaryFile."
    rows = sessions.run(session, " UNION ALL ".join(sql + identifier(each) for each in folders), tag=tag)
    return {canonical(path, encoded=False): (length, time, age) for path, length, time, age in rows}
