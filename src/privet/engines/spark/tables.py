"""Tables of Spark's catalogue and Parquet files, as sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from privet.engines.spark import catalogue, sessions
from privet.engines.spark.addresses import Address
from privet.engines.spark.identities import identities
from privet.engines.spark.sessions import Session, reading
from privet.engines.spark.types import as_id, exposed, identifier, stored
from privet.errors import SourceError
from privet.system.identity import Identity
from privet.tables.stored_types import StoredType


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
    alone: bool = field(default=False, repr=False)
    """Whether it is one file, whose own types are read."""
    local: bool = field(default=False, repr=False)
    """Whether its files are in the file system of the machine that Spark's driver runs on."""
    view: str = field(default="", repr=False)
    """The temporary view that is read in its place, if there is one."""

    def types(self) -> Mapping[str, StoredType]:
        """The columns and their types."""
        return dict(self.columns)

    def files(self) -> Sequence[str]:
        """No files of this process."""
        return ()

    @property
    def name(self) -> str:
        """Its name in SQL."""
        return catalogue.name(self.address)

    @property
    def server(self) -> str:
        """The Spark that it is in; empty for that of this process."""
        return self.address.remote

    @property
    def rows(self) -> str:
        """What is read of it, as a subquery."""
        columns = ", ".join(exposed(name, kind) for name, kind in self.columns)
        return f"(SELECT {columns or '1 AS one'} FROM {identifier(self.view) if self.view else self.name})"

    def __str__(self) -> str:
        return str(self.address)

    def keeping(self, columns: Iterable[str], person: str | None) -> SparkTable:
        """The same with these columns alone, after a look whether they can be read."""
        types = self.types()
        chosen = [(name, as_id(types[name]) if name == person else types[name]) for name in columns]
        kept = replace(self, columns=tuple(chosen), person=person)
        with reading(self.address) as session:
            sql = f"SELECT * FROM {kept.rows}"
            catalogue.looked(session, self.address, lambda: sessions.columns(session, sql))
            return replace(kept, signature=catalogue.described(session, kept.address).of(kept.columns))


def opened(address: Address, default: str) -> SparkTable:
    """A table with all of its columns; without a name in the address, the one of this name."""
    if not address.names and not address.path:
        address = replace(address, names=(default,))
    with reading(address) as session:
        return _opened(session, address)


def _opened(session: Session, address: Address) -> SparkTable:
    source = SparkTable(catalogue.whole(session, address))
    found = catalogue.described(session, source.address)
    types = tuple((name, stored(kind)) for name, kind in found.columns)
    files = catalogue.looked(session, source.address, lambda: sessions.files(session, f"SELECT * FROM {source.name}"))
    known = identities(session, source.address, found.location, files)
    return replace(
        source,
        columns=types,
        signature=found.of(types),
        identities=known,
        alone=bool(address.path) and len(files) == 1,
        local=all(file.startswith("file:") for file in files),
    )


def signature(session: Session, source: SparkTable) -> str:
    """What a table is now, with the types of its view; to be compared with what it was when it was declared."""
    return catalogue.described(session, source.address, source.view).of(source.columns)


def every(address: Address) -> list[SparkTable]:
    """The tables of a database that can be read, with their columns; one, if the address names a table or files."""
    with reading(address) as session:
        found = None if address.path else catalogue.tables(session, address.names)
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


def count(source: SparkTable) -> int:
    """The number of rows."""
    with reading(source.address) as session:
        sql = f"SELECT count(*) FROM {source.name}"
        ((found,),) = catalogue.looked(session, source.address, lambda: sessions.run(session, sql))
        return int(found)
