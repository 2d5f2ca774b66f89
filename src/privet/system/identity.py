"""Identities of files and tables, which recognise the same people under another dataset's name.

An identity says where rows are stored, and nothing about their content: a size or a digest would depend on people.

Claim: `same` recognises a file under another path, through symbolic and hard links, after it was replaced under the
same path, and after it was renamed on the same disk and not written since. It does not recognise a copy.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from privet.errors import SourceError

_PORTS = {"postgresql": 5432, "mysql": 3306, "mssql": 1433, "oracle": 1521, "clickhouse": 8123, "spark": 7077}
_SCHEMES = {"postgres": "postgresql", "mariadb": "mysql"}
_HERE = ("", "127.0.0.1", "::1", "localhost.localdomain")


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """Where rows are stored: a file, a table in a file, or a table in a database.

    Example:
        >>> people = Identity("/data/people.duckdb", inode="2049:77", table="main.people")
        >>> Identity.from_dict(people.to_dict()) == people
        True
    """

    path: str
    """The file, without links; or the address of a database, without user and password."""
    given: str = ""
    """The absolute path that the caller gave, if it differs from `path`; its links may change later."""
    inode: str = ""
    """The file's "device:inode"; empty if there is none."""
    written: int = 0
    """When the file was last written, in nanoseconds. It reveals that a deleted file's inode was reused."""
    table: str = ""
    """The table in it, "schema.table" in lower case; empty for the whole file or database."""

    def to_dict(self) -> dict[str, str | int]:
        """A flat dictionary for JSON, without empty fields."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Identity:
        """The inverse of `to_dict`; a `ValueError` for anything else."""
        types = {field.name: int if field.name == "written" else str for field in fields(cls)}
        if not tree.get("path") or any(type(value) is not types.get(name) for name, value in tree.items()):
            raise ValueError("this is not the identity of a source")
        return cls(**tree)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that lead or led to it, as the operating system compares them."""
        if "://" in self.path:
            return (self.path,)
        return tuple(os.path.normcase(path) for path in (self.path, self.given) if path)

    def __str__(self) -> str:
        return f"{self.path}, table {self.table}" if self.table else self.path


def of_files(paths: Iterable[str], *, table: str = "") -> tuple[Identity, ...]:
    """The current identities of files, with one system call per file and one per folder.

    A file that does not exist has an identity without an inode.

    Example:
        >>> of_files(["/nowhere/people.parquet"])
        (Identity(path='/nowhere/people.parquet', given='', inode='', written=0, table=''),)
    """
    folders: dict[str, str] = {}
    return tuple(_of_file(path, table, folders) for path in paths)


def _of_file(path: str, table: str, folders: dict[str, str]) -> Identity:
    absolute = _absolute(path)
    folder, name = os.path.split(path)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    real = os.path.join(folders[folder], name)  # noqa: PTH118
    status = _stat(real, follow=False)
    linked = status is not None and stat.S_ISLNK(status.st_mode)
    if linked or os.name == "nt":  # Windows has several names for one file, without a link
        real = os.path.realpath(path)
        status = _stat(real)
    given = "" if absolute == real else absolute
    if status is None or not _inode(status):
        return Identity(real, given, table=table)
    return Identity(real, given, _inode(status), status.st_mtime_ns, table)


def _absolute(path: str) -> str:
    """The absolute path. A folder before ".." stays, because it may be a link."""
    return str(Path(path).absolute()) if os.pardir in path else os.path.abspath(path)  # noqa: PTH100 (half the time)


def _stat(path: str, *, follow: bool = True) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=follow)  # noqa: PTH116
    except (OSError, ValueError):
        return None


def of_database(address: str, *, table: str = "") -> Identity:
    """The identity of a table in a database: host, port and database, without user, password and options.

    Example:
        >>> str(of_database("postgres://ann:secret@DB.example.org/health", table=table_name("public", "People")))
        'postgresql://db.example.org:5432/health, table public.people'
    """
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if not parts.scheme or "://" not in address:
        raise SourceError(
            "this is not the address of a database", allowed="An address looks like postgresql://db.example.org/health"
        )
    scheme = parts.scheme.partition("+")[0]
    scheme = _SCHEMES.get(scheme, scheme)
    port = port or _PORTS.get(scheme)
    host = "localhost" if host in _HERE else host
    where = f"[{host}]" if ":" in host else host
    return Identity(f"{scheme}://{where}{f':{port}' if port else ''}/{unquote(parts.path).strip('/')}", table=table)


def table_name(*parts: str) -> str:
    """A table's full name in lower case.

    Example:
        >>> table_name("main", "People"), table_name("a.b", "c")
        ('main.people', '"a.b".c')
    """
    folded = [part.casefold() for part in parts]
    return ".".join(
        part if part.replace("_", "a").isalnum() else '"' + part.replace('"', '""') + '"' for part in folded
    )


# --- the same people ------------------------------------------------------------------------------


def same(before: Identity, now: Identity) -> bool:
    """Whether a recorded identity and a current one are about the same people.

    They are if the tables are the same, or one of them is the whole file, and
    - a path is the same: a replaced file is about the same people; or
    - the recorded path leads to the current file, through a link, a mount, or different capitalisation; or
    - the inode and the time of writing are the same: the file was renamed.
    """
    return shared([before], [now]) is not None


def shared(before: Iterable[Identity], now: Iterable[Identity]) -> tuple[Identity, Identity] | None:
    """The first two that are the `same`, or None. Each path in `before` is looked up once.

    Example:
        >>> shared([Identity("/a"), Identity("/b")], [Identity("/c"), Identity("/b")]) is None
        False
    """
    return next(pairs(before, now), None)


def pairs(before: Iterable[Identity], now: Iterable[Identity]) -> Iterator[tuple[Identity, Identity]]:
    """Every two that are the `same`; a pair may be repeated."""
    current: dict[object, list[Identity]] = {}
    for identity in now:
        for key in (*identity.paths, *_file_keys(identity)):
            current.setdefault(key, []).append(identity)
    has_inodes = any(identity.inode for identities in current.values() for identity in identities)
    inodes: dict[str, str] = {}
    for recorded in before:
        for key in _keys(recorded, inodes if has_inodes else None):
            for identity in current.get(key, ()):
                if _overlap(recorded.table, identity.table):
                    yield recorded, identity


def _file_keys(identity: Identity) -> tuple[object, ...]:
    if not identity.inode:
        return ()
    return ("inode", identity.inode), ("file", identity.inode, identity.written)


def _keys(recorded: Identity, inodes: dict[str, str] | None) -> Iterator[object]:
    """What a current identity may have in common with a recorded one; keys that need a system call come last."""
    yield from recorded.paths
    if recorded.inode:
        yield ("file", recorded.inode, recorded.written)
    if inodes is None or "://" in recorded.path:
        return
    for path in (recorded.path, recorded.given):
        if path and path not in inodes:
            status = _stat(path)
            inodes[path] = "" if status is None else _inode(status)
        if path and inodes[path]:
            yield ("inode", inodes[path])


def _overlap(one: str, other: str) -> bool:
    return not one or not other or one.casefold() == other.casefold()


def _inode(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}" if status.st_ino else ""
