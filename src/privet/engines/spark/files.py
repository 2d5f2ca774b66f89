"""The Parquet files of a table in Spark: whether all of their values can be read, and whether they are still the same.

Parquet has timestamps in milliseconds, which Spark counts in microseconds, and lets a writer store more digits than a
long decimal has. What does not fit ends a statement with an error, and Spark has no way to read it as missing. So does
a file that has another type for a column than the others: pandas writes integers as floats where one is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from privet.engines.spark import catalogue, sessions
from privet.engines.spark.listings import listed
from privet.engines.spark.sessions import Session, reading, told
from privet.engines.spark.tables import SparkTable
from privet.engines.spark.types import identifier
from privet.errors import Remedy, SourceError
from privet.system.interrupts import interruptible
from privet.system.progress import Progress
from privet.tables.stored_types import StoredType

SETTLED = 2000
"""Milliseconds that the files must have been as they are."""
_SHORT = 18  # digits of a decimal that Spark reads as an integer of 64 bits, whatever it holds


def can_fail(kind: StoredType) -> bool:
    """Whether a Parquet file can hold a value that Spark can't read as this type."""
    return kind.family == "timestamp" or (kind.family == "decimal" and kind.precision > _SHORT)


def differing(source: SparkTable) -> list[str]:
    """The columns that some file may have another type for than the table, by the footers of all files."""
    with reading(source.address) as session:
        try:
            found = dict(sessions.merged(session, _root(session, source)))
        except Exception:  # types that can't be merged, or a storage that can't be listed
            found = {}
    return [name for name, kind in source.columns if found.get(name) != kind.name]


def are_readable(source: SparkTable, columns: Sequence[str]) -> bool:
    """Whether Spark can read every value of these columns; it reads them all."""
    # an extreme could be taken from elsewhere in a file, and might not fit into Python
    sql = f"SELECT bit_xor(xxhash64({', '.join(map(identifier, columns))})) FROM {source.rows}"
    tag = sessions.new_tag()
    with reading(source.address) as session:
        try:
            with Progress() as progress:
                interruptible(lambda: sessions.run(session, sql, tag=tag), lambda: session.cancel(tag), progress.tick)
        except Exception as error:
            if sessions.computes(session):
                return False
            session.lost = True
            what = f"Spark was lost while {source} was read: {told(source.address, error)}"
            raise SourceError(what, remedy=Remedy("Start Spark again, and declare the table once more")) from None
    return True


def state(source: SparkTable) -> str | None:
    """What changes if a file does, is added or removed; None if that is not known, or if one has just changed."""
    with reading(source.address) as session:
        try:
            found = listed(session, source)
            version = str(session.spark.version)
        except Exception:  # a storage that can't be listed
            return None
    return None if found.age < SETTLED else sha256(repr([version, *found.files]).encode()).hexdigest()


def _root(session: Session, source: SparkTable) -> str:
    return source.address.pattern or catalogue.described(session, source.address).location
