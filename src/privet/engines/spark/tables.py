"""Tables of Spark's catalogue and Parquet files, as sources: their columns, and that they can be read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from privet.engines.spark import sessions
from privet.engines.spark.addresses import Address, written
from privet.engines.spark.sessions import Session, reading, told
from privet.engines.spark.types import as_id, exposed, identifier, stored
from privet.errors import Remedy, SourceError, Subject
from privet.names.spelling import listed, nearest
from privet.system.identity import Identity, of_files, table_name
from privet.tables.stored_types import StoredType

PROVIDERS = ("parquet",)
"""The formats of tables that are read; others are not tested."""
_TABLES = ("MANAGED", "EXTERNAL")
_MOST_FILES = 1000
_ABSENT = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "PATH_NOT_FOUND",
    "CATALOG_NOT_FOUND",
    "EXPECT_TABLE_NOT_VIEW",
)
_COPY = Remedy("Write its rows to a table of Parquet: CREATE TABLE people USING parquet AS SELECT * FROM ...")


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table or files in Spark. Its rows stay there: only integers by group leave it."""

    address: Address
    columns: tuple[tuple[str, StoredType], ...] = ()
    person: str | None = None
    signature: str = field(default="", repr=False)
    """What it is in Spark's catalogue: changed if what is read of it is another table."""
    identities: tuple[Identity, ...] = field(default=(), repr=False)
    """Its name in the catalogue, its folder, and its files."""

    def types(self) -> Mapping[str, StoredType]:
        """The columns and their types."""
        return dict(self.columns)

    def files(self) -> Sequence[str]:
        """No files of this process."""
        return ()

    @property
    def name(self) -> str:
        """Its name in SQL."""
        if self.address.path:
            return f"parquet.{identifier(self.address.path)}"
        return ".".join(identifier(each) for each in self.address.names)

    @property
    def rows(self) -> str:
        """What is read of it, as a subquery."""
        columns = ", ".join(exposed(name, kind) for name, kind in self.columns)
        return f"(SELECT {columns or '1 AS one'} FROM {self.name})"

    def __str__(self) -> str:
        return str(self.address)

    def keeping(self, columns: Iterable[str], person: str | None) -> SparkTable:
        """The same with these columns alone, after a look whether they can be read."""
        types = self.types()
        chosen = [(name, as_id(types[name]) if name == person else types[name]) for name in columns]
        kept = replace(self, columns=tuple(chosen), person=person)
        with reading(self.address) as session:
            _looked(kept, lambda: sessions.columns(session, f"SELECT * FROM {kept.rows}"), session)
            return replace(kept, signature=_described(session, kept).of(kept.columns))


def opened(address: Address, default: str) -> SparkTable:
    """A table with all of its columns; without a name in the address, the one of this name."""
    if not address.names and not address.path:
        address = replace(address, names=(default,))
    with reading(address) as session:
        return _opened(session, address)


def _opened(session: Session, address: Address) -> SparkTable:
    source = SparkTable(_whole(session, address))
    found = _described(session, source)
    types = tuple((name, stored(kind)) for name, kind in found.columns)
    files = _looked(source, lambda: sessions.files(session, f"SELECT * FROM {source.name}"), session)
    known = _identities(session, source, found.location, files)
    return replace(source, columns=types, signature=found.of(types), identities=known)


def signature(session: Session, source: SparkTable) -> str:
    """What a table is now; to be compared with what it was when it was declared. Files that were added are seen."""
    if source.address.names:
        _looked(source, lambda: sessions.run(session, f"REFRESH TABLE {source.name}"), session)
    return _described(session, source).of(source.columns)


def _whole(session: Session, address: Address) -> Address:
    """The address with the whole name of a table: a shorter one could be taken by a temporary view."""
    if len(address.names) in (0, 3):
        return address
    current = sessions.run(session, "SELECT current_catalog(), current_database()")[0]
    whole = (*current[: 3 - len(address.names)], *address.names)
    return replace(address, names=tuple(map(str, whole)))


@dataclass(frozen=True, slots=True)
class _Description:
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


def _described(session: Session, source: SparkTable) -> _Description:
    about: dict[str, Any] = {}
    if source.address.names:
        try:
            ((text,),) = sessions.run(session, f"DESCRIBE TABLE EXTENDED {source.name} AS JSON")
        except Exception as error:
            raise _refusal(session, source, error) from None
        about = json.loads(text)
        _check(source, about)
    columns = _looked(source, lambda: sessions.columns(session, f"SELECT * FROM {source.name}"), session)
    return _Description(source.name, about.get("provider", "parquet"), about.get("location", ""), tuple(columns))


def _check(source: SparkTable, about: Mapping[str, Any]) -> None:
    kind, provider = str(about.get("type", "")), str(about.get("provider", "unknown")).lower()
    subject = Subject("table", source.address.table)
    if kind not in _TABLES:
        what = "a view" if "VIEW" in kind else f"of the kind {kind.lower() or 'unknown'}"
        why = (
            ": what a view computes may fail on a row, and Spark's error and log would show it"
            if "VIEW" in kind
            else ""
        )
        raise SourceError(f"{source} is {what}{why}", allowed=_ALLOWED, subject=subject, remedy=_COPY)
    if provider not in PROVIDERS:
        raise SourceError(f"{source} is stored as {provider}", allowed=_ALLOWED, subject=subject, remedy=_COPY)


_ALLOWED = "Tables of Spark's catalogue that are stored as Parquet, and Parquet files can be read"


def _identities(session: Session, source: SparkTable, location: str, files: Sequence[str]) -> tuple[Identity, ...]:
    known: list[Identity] = []
    if source.address.names:
        warehouse = sessions.setting(session, "spark.sql.warehouse.dir")
        known.append(Identity(f"spark://{_canonical(warehouse)}", table=table_name(*source.address.names)))
    here = not session.remote or urlsplit(session.address.remote).hostname in ("localhost", "127.0.0.1", "::1")
    places = [location or source.address.path, *(files if len(files) <= _MOST_FILES else ())]
    for place in map(_canonical, places):
        if "://" in place:
            known.append(Identity(place))
        elif here:
            known.extend(of_files([place]))
        else:
            known.append(Identity(f"{session.address.shown}{place}"))
    return tuple(dict.fromkeys(known))


def _canonical(place: str) -> str:
    """A path, or an address of object storage as Privet writes it.

    Example:
        >>> _canonical("file:/data/a%20b"), _canonical("/data/"), _canonical("s3a://bucket/people/")
        ('/data/a b', '/data', 's3://bucket/people')
    """
    if place.startswith("file:"):
        return "/" + unquote(place.removeprefix("file:")).strip("/")
    scheme, colon, rest = place.partition("://")
    if not colon:
        return place.rstrip("/") or "/"
    return f"{ {'s3a': 's3', 's3n': 's3'}.get(scheme, scheme) }://{unquote(rest).rstrip('/')}"


def every(address: Address) -> list[SparkTable]:
    """The tables of a database that can be read, with their columns; one, if the address names a table or files."""
    with reading(address) as session:
        found = None if address.path else _tables(session, address.names)
        if found is None:
            return [_opened(session, address)]
        made: list[SparkTable] = []
        reason: SourceError | None = None
        for names in found:
            try:
                made.append(_opened(session, replace(address, names=names)))
            except SourceError as refused:  # a view, or another format
                reason = refused
        if not made and reason is not None:
            raise reason
        return made


def _tables(session: Session, database: tuple[str, ...]) -> list[tuple[str, ...]] | None:
    """The tables of a database, by their whole names; None if there is no such database."""
    current = sessions.run(session, "SELECT current_catalog(), current_database()")[0]
    whole = (*current[: 2 - len(database)], *database)
    try:
        rows = sessions.run(session, f"SHOW TABLES IN {'.'.join(map(identifier, whole))}")
    except Exception:
        return None
    return [(*whole, str(row[1])) for row in rows if not row[2] and str(row[1]).isprintable()]


def count(source: SparkTable) -> int:
    """The number of rows."""
    with reading(source.address) as session:
        found = _looked(source, lambda: sessions.run(session, f"SELECT count(*) FROM {source.name}"), session)
        return int(found[0][0])


def _looked(source: SparkTable, ask: Any, session: Session | None = None) -> Any:
    try:
        return ask()
    except SourceError:
        raise
    except Exception as error:
        refused = _refusal(session, source, error)
    if session is not None and not sessions.works(session.spark):
        session.lost = True  # who asks again, opens another
    raise refused


def _refusal(session: Session | None, source: SparkTable, error: Exception) -> SourceError:
    subject = Subject("table", source.address.table)
    condition = str(getattr(error, "getCondition", lambda: "")() or "")
    if session is None or condition not in _ABSENT:
        return SourceError(f"{source} can't be read: {told(source.address, error)}", subject=subject)
    if source.address.path:
        return SourceError(f"there are no files at {source.address.path!r} in {source.address.shown}", subject=subject)
    known = [names[-1] for names in _tables(session, source.address.names[:-1]) or ()]
    near = nearest(source.address.names[-1], known)
    like = written(replace(source.address, names=(*source.address.names[1:-1], near))) if near else ""
    return SourceError(
        f"there is no {source}, or this user may not see it",
        allowed=listed(known, "tables") if known else "This user can see no table there",
        subject=subject,
        remedy=Remedy(f"Did you mean {near!r}? Write {like}") if near else None,
    )
