"""What Spark's catalogue says of a table, or of Parquet files; and what is read of them is Parquet, without views."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from privet.engines.spark import sessions
from privet.engines.spark.addresses import Address, literal, written
from privet.engines.spark.sessions import Session, told
from privet.engines.spark.types import identifier
from privet.errors import Remedy, SourceError, Subject
from privet.names.spelling import listed, nearest
from privet.tables.stored_types import StoredType

PROVIDERS = ("parquet",)
"""The formats of tables that are read; others are not tested."""
_TABLES = ("MANAGED", "EXTERNAL")
_ABSENT = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "PATH_NOT_FOUND",
    "UNABLE_TO_INFER_SCHEMA",
    "CATALOG_NOT_FOUND",
    "EXPECT_TABLE_NOT_VIEW",
)
_ALLOWED = "Tables of Spark's catalogue that are stored as Parquet, and Parquet files can be read"
_COPY = Remedy("Write its rows to a table of Parquet: CREATE TABLE people USING parquet AS SELECT * FROM ...")
_NO_STORAGE = re.compile(r"No FileSystem for scheme|FileSystem not found")
_COLON = "Relative path in absolute URI"
_STORAGE = Remedy(
    "Add the library to Spark, such as org.apache.hadoop:hadoop-aws for s3a://, in the version of Spark's Hadoop. "
    "Without Spark, Privet itself reads s3:// and gs://: name the files without sc://...# or spark:"
)
_FILES = "/data/people.parquet"
_ONLY_STAR = "Only * is a pattern; ?, [...], {...} and \\ stand for themselves"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Description:
    """A table in Spark's catalogue, or files: how they are stored, where, and the names of the columns' types."""

    name: str
    provider: str
    location: str
    columns: tuple[tuple[str, str], ...]

    def of(self, columns: Iterable[tuple[str, StoredType]]) -> str:
        """What changes if a source with these columns does."""
        wanted = {name for name, _ in columns}
        kept = sorted(each for each in self.columns if each[0] in wanted)
        return json.dumps([self.name, self.provider, self.location, kept])


def name(address: Address) -> str:
    """Its name in SQL.

    Example:
        >>> print(name(Address(names=("sales", "people"))), name(Address(path="/data/people.parquet")))
        `sales`.`people` parquet.`/data/people.parquet`
    """
    if address.path:
        return f"parquet.{identifier(address.pattern)}"
    return ".".join(identifier(each) for each in address.names)


def whole(session: Session, address: Address) -> Address:
    """The address with the whole name of a table: a shorter one could be taken by a temporary view."""
    if len(address.names) in (0, 3):
        return address
    current = sessions.run(session, "SELECT current_catalog(), current_database()")[0]
    names = (*current[: 3 - len(address.names)], *address.names)
    return replace(address, names=tuple(map(str, names)))


def described(session: Session, address: Address, view: str = "") -> Description:
    """A table or files, if they can be read; with the types of a view of it, if there is one."""
    rows = identifier(view) if view else name(address)
    known: dict[str, Any] = {}
    if address.names:
        try:
            known = json.loads(about(session, address))
        except Exception as error:
            raise _refusal(session, address, error) from None
        _check(address, known)
    columns = looked(session, address, lambda: sessions.columns(session, f"SELECT * FROM {rows}"))
    return Description(name(address), known.get("provider", "parquet"), known.get("location", ""), tuple(columns))


def about(session: Session, address: Address) -> str:
    """What the catalogue says of a table, as JSON; nothing of files."""
    if not address.names:
        return ""
    return str(sessions.run(session, f"DESCRIBE TABLE EXTENDED {name(address)} AS JSON")[0][0])


def _check(address: Address, known: Mapping[str, Any]) -> None:
    kind, provider = str(known.get("type", "")), str(known.get("provider", "unknown")).lower()
    subject = Subject("table", address.table)
    if kind not in _TABLES:
        what = "a view" if "VIEW" in kind else f"of the kind {kind.lower() or 'unknown'}"
        why = (
            ": what a view computes may fail on a row, and Spark's error and log would show it"
            if "VIEW" in kind
            else ""
        )
        raise SourceError(f"{address} is {what}{why}", allowed=_ALLOWED, subject=subject, remedy=_COPY)
    if provider not in PROVIDERS:
        raise SourceError(f"{address} is stored as {provider}", allowed=_ALLOWED, subject=subject, remedy=_COPY)


def tables(session: Session, database: tuple[str, ...]) -> list[tuple[str, ...]] | None:
    """The tables of a database, by their whole names; None if there is no such database."""
    current = sessions.run(session, "SELECT current_catalog(), current_database()")[0]
    names = (*current[: 2 - len(database)], *database)
    try:
        rows = sessions.run(session, f"SHOW TABLES IN {'.'.join(map(identifier, names))}")
    except Exception:
        return None
    return [(*names, str(row[1])) for row in rows if not row[2] and str(row[1]).isprintable()]


def looked(session: Session, address: Address, ask: Callable[[], _T]) -> _T:
    """What a look at a table finds; whatever Spark says against it is told to the steward, without secrets."""
    try:
        return ask()
    except SourceError:
        raise
    except Exception as error:
        refused = _refusal(session, address, error)
    if not sessions.works(session.spark):
        session.lost = True  # who asks again, opens another
    raise refused


def _refusal(session: Session, address: Address, error: Exception) -> SourceError:
    subject = Subject("table", address.table)
    condition = str(getattr(error, "getCondition", str)() or "")
    if _NO_STORAGE.search(sessions.cause(error)):
        scheme, colon, _ = address.path.partition("://")
        storage = f"{scheme}{colon}" if colon else "the storage of its files"
        return SourceError(
            f"{address} can't be read: this Spark has no library for {storage}",
            subject=subject,
            remedy=_STORAGE,
        )
    if _COLON in sessions.cause(error):
        return SourceError(
            f"{address} can't be read: a file there has a colon in its name, and Hadoop can't read it",
            subject=subject,
            remedy=Remedy("Rename the file"),
        )
    if condition not in _ABSENT:
        return SourceError(f"{address} can't be read: {told(address, error)}", subject=subject)
    if address.path:
        return SourceError(
            f"there are no Parquet files at {address.path!r} in {address.shown}",
            allowed=_ONLY_STAR if literal(address.path, but="*") != address.path else "",
            subject=subject,
        )
    if not session.remote and sessions.is_fleeting(address.names[-1]):
        return SourceError(
            f"there is no {address}: {address.names[-1]!r} is a temporary view, which only its own session can read",
            allowed=_ALLOWED,
            subject=subject,
            remedy=_COPY,
        )
    known = [names[-1] for names in tables(session, address.names[:-1]) or ()]
    near = nearest(address.names[-1], known)
    like = written(replace(address, names=(*address.names[1:-1], near))) if near else ""
    remedy = Remedy(f"Did you mean {near!r}? Write {like}") if near else None
    if address.names[-1].lower() == "parquet":
        remedy = Remedy(f"Name files by their absolute path: {written(replace(address, names=(), path=_FILES))}")
    return SourceError(
        f"there is no {address}, or this user may not see it",
        allowed=listed(known, "tables") if known else "This user can see no table there",
        subject=subject,
        remedy=remedy,
    )
