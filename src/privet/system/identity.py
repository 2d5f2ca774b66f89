"""Which file or table a source is, so that the same people are known again under another dataset's name.

An identity tells where rows are, and nothing of what they hold: no size and no digest, which would depend on people.

Claim: `same` finds a file again under another path, through symbolic and hard links, after it was replaced at its
place, and after it was renamed on its disk and not written since. It does not find a copy.
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
    """Where rows are: a file, a table in a file, or a table in a database.

    Example:
        >>> known = Identity("/data/people.duckdb", inode="2049:77", table="main.people")
        >>> Identity.from_dict(known.to_dict()) == known
        True
    """

    path: str
    """The file, without links; or the address of a database, without user and password."""
    given: str = ""
    """The path as it was given, made absolute, if links lead from it to `path`: it may lead elsewhere one day."""
    inode: str = ""
    """The file's own number, "device:inode"; empty where there is none."""
    written: int = 0
    """When the file was last written, in nanoseconds. A deleted file's inode is given to another one: this tells."""
    table: str = ""
    """The table in it, "schema.table" in small letters; empty for all of it."""

    def to_dict(self) -> dict[str, str | int]:
        """As a flat tree for JSON; what is empty is left out."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Identity:
        """The identity that `to_dict` wrote; a `ValueError` if it wrote no such thing."""
        known = {field.name: int if field.name == "written" else str for field in fields(cls)}
        if not tree.get("path") or any(type(value) is not known.get(name) for name, value in tree.items()):
            raise ValueError("this is not the identity of a source")
        return cls(**tree)

    @property
    def places(self) -> tuple[str, ...]:
        """The paths that lead to it, or did; as the system compares them."""
        if "://" in self.path:
            return (self.path,)
        return tuple(os.path.normcase(path) for path in (self.path, self.given) if path)

    def __str__(self) -> str:
        return f"{self.path}, table {self.table}" if self.table else self.path


def of_files(paths: Iterable[str], *, table: str = "") -> tuple[Identity, ...]:
    """The identities of files, as they are now: one look at each file, and one at each folder.

    A file that is not there has an identity too, without an inode.

    Example:
        >>> of_files(["/nowhere/people.parquet"])
        (Identity(path='/nowhere/people.parquet', given='', inode='', written=0, table=''),)
    """
    folders: dict[str, str] = {}
    return tuple(_of_file(path, table, folders) for path in paths)


def _of_file(path: str, table: str, folders: dict[str, str]) -> Identity:
    given = _absolute(path)
    folder, name = os.path.split(path)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    real = os.path.join(folders[folder], name)  # noqa: PTH118
    found = _looked_at(real, follow=False)
    linked = found is not None and stat.S_ISLNK(found.st_mode)
    if linked or os.name == "nt":  # Windows has several names for one file, without a link
        real = os.path.realpath(path)
        found = _looked_at(real)
    other = "" if given == real else given
    if found is None or not _inode(found):
        return Identity(real, other, table=table)
    return Identity(real, other, _inode(found), found.st_mtime_ns, table)


def _absolute(path: str) -> str:
    """The same path from the root on. What stands before ".." stays, since it may be a link."""
    return str(Path(path).absolute()) if os.pardir in path else os.path.abspath(path)  # noqa: PTH100 (half the time)


def _looked_at(path: str, *, follow: bool = True) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=follow)  # noqa: PTH116
    except (OSError, ValueError):
        return None


def of_database(address: str, *, table: str = "") -> Identity:
    """The identity of a table in a database: host, port and database; never the user, the password or an option.

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
            "this is not the address of a database", allowed="An address is like postgresql://db.example.org/health"
        )
    scheme = parts.scheme.partition("+")[0]
    scheme = _SCHEMES.get(scheme, scheme)
    port = port or _PORTS.get(scheme)
    host = "localhost" if host in _HERE else host
    where = f"[{host}]" if ":" in host else host
    return Identity(f"{scheme}://{where}{f':{port}' if port else ''}/{unquote(parts.path).strip('/')}", table=table)


def table_name(*parts: str) -> str:
    """A table's full name, without regard to capital letters.

    Example:
        >>> table_name("main", "People"), table_name("a.b", "c")
        ('main.people', '"a.b".c')
    """
    folded = [part.casefold() for part in parts]
    return ".".join(
        part if part.replace("_", "a").isalnum() else '"' + part.replace('"', '""') + '"' for part in folded
    )


# --- the same people ------------------------------------------------------------------------------


def same(known: Identity, now: Identity) -> bool:
    """Whether an identity of before, and one that was made just now, are of the same people.

    They are if the tables are the same, or one is all of the file, and
    - a path is the same: a file that was replaced is about the same people; or
    - the path of before leads to the file of now: through a link, a mount, or other capital letters; or
    - it is one inode, not written since: the file was renamed.
    """
    return shared([known], [now]) is not None


def shared(known: Iterable[Identity], now: Iterable[Identity]) -> tuple[Identity, Identity] | None:
    """The first two that are the `same`, or None: one look at the paths of `known`, however many there are of both.

    Example:
        >>> shared([Identity("/a"), Identity("/b")], [Identity("/c"), Identity("/b")]) is None
        False
    """
    return next(pairs(known, now), None)


def pairs(known: Iterable[Identity], now: Iterable[Identity]) -> Iterator[tuple[Identity, Identity]]:
    """Every two that are the `same`; a pair may come more than once."""
    current: dict[object, list[Identity]] = {}
    for each in now:
        for mark in (*each.places, *_file_marks(each)):
            current.setdefault(mark, []).append(each)
    numbered = any(each.inode for marked in current.values() for each in marked)
    looked: dict[str, str] = {}
    for before in known:
        for mark in _marks(before, looked if numbered else None):
            for each in current.get(mark, ()):
                if _overlap(before.table, each.table):
                    yield before, each


def _file_marks(of: Identity) -> tuple[object, ...]:
    return (("inode", of.inode), ("file", of.inode, of.written)) if of.inode else ()


def _marks(of: Identity, looked: dict[str, str] | None) -> Iterator[object]:
    """What one of now may have in common with this one of before, what costs a look last."""
    yield from of.places
    if of.inode:
        yield ("file", of.inode, of.written)
    if looked is None or "://" in of.path:
        return
    for place in (of.path, of.given):
        if place and place not in looked:
            found = _looked_at(place)
            looked[place] = "" if found is None else _inode(found)
        if place and looked[place]:
            yield ("inode", looked[place])


def _overlap(one: str, other: str) -> bool:
    return not one or not other or one.casefold() == other.casefold()


def _inode(found: os.stat_result) -> str:
    return f"{found.st_dev}:{found.st_ino}" if found.st_ino else ""
