"""Sources, made known to a connection under a name, before it loses its access to files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from privet.engines.base import ArrowRows, ParquetFiles, ParquetObjects, Source
from privet.engines.duckdb import object_files
from privet.engines.duckdb.files import Connection, DuckDBFile, attached, identifier, parquet, query, reader
from privet.tables.stored_types import StoredType


def reads(source: Source) -> bool:
    """Whether DuckDB can read a source; one that is not of these kinds may attach itself, for DuckDB alone.

    It does so by tables and views, which every cursor of a connection knows: a name that was only registered is known
    to one cursor.
    """
    return isinstance(source, ArrowRows | ParquetFiles | ParquetObjects | DuckDBFile) or hasattr(source, "attach")


def attach(connection: Connection, source: Any, name: str) -> None:
    """Make the rows known under this name."""
    match source:
        case ArrowRows():
            connection.register(name, source.rows)
        case ParquetFiles():
            _view(connection, name, exposed(source.columns, source.person), parquet(source.paths))
        case ParquetObjects():
            object_files.provide(connection, source)
            # OFFSET: conditions stay outside of the scan, so that which parts are fetched does not depend on a value
            whole = f"{parquet(source.files())} OFFSET 0"
            _view(connection, name, exposed(source.columns, source.person), whole)
        case DuckDBFile():
            rows = attached(connection, source, f"file of {name}")
            _view(connection, name, exposed(source.columns, source.person), rows)
        case _:
            source.attach(connection, name)


def attach_again(cursor: Connection, source: Any, name: str) -> None:
    """The same for a cursor of that connection: it knows tables and views already, but not what was registered."""
    if isinstance(source, ArrowRows):
        cursor.register(name, source.rows)


def count(source: Source) -> int:
    """The number of rows of a source."""
    with reader() as connection:
        attach(connection, source, "counted")
        return int(query(connection, "SELECT count(*) FROM counted")[0][0])


def _view(connection: Connection, name: str, columns: str, rows: str) -> None:
    connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT {columns} FROM {rows}")


def exposed(columns: Iterable[tuple[str, StoredType]], person: str | None) -> str:
    """The columns that are kept, as a list of expressions; a person's id that is NaN is missing, as NULL is.

    Claim: texts are equal if their bytes are. A collation of the source (NOCASE, NOACCENT, a language), which DuckDB
    does not name in a column's type, and a cast does not remove, ends here.
    """
    chosen = []
    for name, kind in columns:
        quoted = identifier(name)
        if name == person and kind.family == "float":
            chosen.append(f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END AS {quoted}")
        elif kind.family == "text" and not kind.enumerated:
            chosen.append(f"{quoted} COLLATE C AS {quoted}")
        elif kind.zoned and kind.unit == "ns":  # most functions don't take them
            chosen.append(f"TRY_CAST({quoted} AS TIMESTAMP WITH TIME ZONE) AS {quoted}")
        else:
            chosen.append(quoted)
    return ", ".join(chosen)
