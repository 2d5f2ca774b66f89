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
_State = tuple[int, ...]  # the size, the time of the last change in milliseconds, and more


@dataclass(frozen=True, slots=True)
class Listing:
    """The files, by path, with their sizes and times, and what else tells one file from another."""

    files: tuple[tuple[str, _State], ...]
    age: float = field(compare=False)
    """Milliseconds since the last change."""
    wait: float = field(compare=False)
    """Milliseconds from now on in which one more change might not show in the times."""


def listed(session: Session, source: SparkTable, tag: str = "") -> Listing:
    """The files that Spark would read now.

    Claim: if the listings before and after a question are equal, and the first was made after its `wait`, the question
    read these very files. Not noticed is a file that was replaced, and put back with its old size and time before the
    second listing; but of local files of a Spark in this process that is noticed too.
    """
    if source.address.names:
        sessions.run(session, f"REFRESH TABLE {source.name}", tag=tag)
    if source.local and not session.remote and "*" not in source.address.path:
        with suppress(OSError):  # Spark says it better
            return _listing(*_by_system(session, source, tag))
    return _listing(*_by_statement(session, source, tag))


def _listing(states: Mapping[str, _State], ages: Mapping[str, float]) -> Listing:
    waits = [0.0]
    for path, age in ages.items():
        tick = _TICK if states[path][1] % 1000 else _SECONDS
        waits.append(tick - age if -_SECONDS < age < tick else 0.0)  # a clock can be a little ahead
    return Listing(tuple(sorted(states.items())), min(ages.values(), default=0), max(waits))


# --- files of this machine, without a statement ---------------------------------------------------


def _by_system(session: Session, source: SparkTable, tag: str) -> tuple[dict[str, _State], dict[str, float]]:
    if source.address.names:
        paths = [canonical(each) for each in sessions.files(session, f"SELECT * FROM {source.name}", tag)]
    else:
        paths = list(_below(canonical(source.address.path, encoded=False)))
    found = {path: Path(path).stat() for path in paths}
    now = time.time() * 1000
    return (
        {
            path: (s.st_size, s.st_mtime_ns // 10**6, s.st_mtime_ns, s.st_ctime_ns, s.st_dev, s.st_ino)
            for path, s in found.items()
        },
        {path: now - s.st_ctime_ns / 10**6 for path, s in found.items()},
    )


def _below(path: str) -> Iterator[str]:
    """The files of a folder, or the file."""
    if not Path(path).is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path, followlinks=True):
        folders[:] = [each for each in folders if not _is_hidden(each)]
        yield from (str(Path(folder, each)) for each in names if not _is_hidden(each))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


# --- all others, by a statement -------------------------------------------------------------------


def _by_statement(session: Session, source: SparkTable, tag: str) -> tuple[dict[str, _State], dict[str, float]]:
    if source.address.path:
        found = _in_folders(session, [source.address.pattern], tag)
    else:
        files = {canonical(each) for each in sessions.files(session, f"SELECT * FROM {source.name}", tag)}
        root = catalogue.described(session, source.address).location
        roots = {root, *(file.rpartition("/")[0] for file in files if not file.startswith(f"{canonical(root)}/"))}
        known = _in_folders(session, [literal(each) for each in sorted(roots)], tag)
        found = {path: known[path] for path in files}
    return {path: state[:2] for path, state in found.items()}, {path: state[2] for path, state in found.items()}


def _in_folders(session: Session, folders: Iterable[str], tag: str) -> dict[str, tuple[int, int, int]]:
    """By path: the size of a file, the time it was changed, and its age. No file is opened."""
    changed = "unix_millis(modificationTime)"
    sql = f"SELECT path, length, {changed}, unix_millis(current_timestamp()) - {changed} FROM binaryFile."
    rows = sessions.run(session, " UNION ALL ".join(sql + identifier(each) for each in folders), tag=tag)
    return {canonical(path, encoded=False): (length, time, age) for path, length, time, age in rows}
