"""DuckDB as the reader of files: names and paths quoted, nothing loaded by itself, nothing remembered between looks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from privet.engines.duckdb.types import stored
from privet.system.identity import Identity, of_files, table_name
from privet.system.interrupts import duckdb_interrupts
from privet.system.processes import era, native
from privet.tables.stored_types import StoredType

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Connection: TypeAlias = "DuckDBPyConnection"


@dataclass(frozen=True, slots=True)
class DuckDBFile:
    """A table in a DuckDB file."""

    path: str
    table: str
    schema: str
    columns: tuple[tuple[str, StoredType], ...] = ()
    person: str | None = None

    def types(self) -> Mapping[str, StoredType]:
        """The columns and their types."""
        return dict(self.columns)

    def files(self) -> Sequence[str]:
        """The absolute path of the file."""
        return (self.path,)

    @property
    def identities(self) -> tuple[Identity, ...]:
        """The table in the file."""
        return of_files([self.path], table=table_name(self.schema, self.table))


class Unreadable(Exception):
    """DuckDB can't read this, or not in the memory it has."""


_OPTIONS: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


@contextmanager
def reader() -> Iterator[Connection]:
    """A connection of its own, in memory, closed at the end."""
    import duckdb

    with native(), duckdb_interrupts(), duckdb.connect(config=_OPTIONS) as connection:
        yield connection


_IDLE: dict[tuple[int, int], Connection] = {}  # by process


@contextmanager
def glance() -> Iterator[Connection]:
    """A connection for looks that leave nothing in it, such as a view.

    Claim: nobody else uses it meanwhile, and it remembers nothing of a file, which may be another one at the next look.
    After an error it is closed. Otherwise it is kept for the next look: making one takes longer than most looks.
    """
    me = os.getpid(), era()
    with native(), duckdb_interrupts():
        connection = _IDLE.pop(me, None) or _without_threads()
        try:
            yield connection
        except BaseException:
            if os.getpid() == me[0]:
                connection.close()
            raise
        if os.getpid() == me[0] and _IDLE.setdefault(me, connection) is not connection:
            connection.close()


def _without_threads() -> Connection:
    """A connection that can be idle while its process forks: a child has no threads but the one that forked."""
    import duckdb

    connection = duckdb.connect(config=_OPTIONS | {"threads": 1, "enable_external_file_cache": False})
    with suppress(duckdb.Error):  # before DuckDB 2 there are none
        connection.execute("SET async_threads = 0")
    return connection


@contextmanager
def every_core(connection: Connection) -> Iterator[None]:
    """For a look that reads many rows."""
    connection.execute("RESET threads")
    yield
    connection.execute("SET threads = 1")


def query(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
    """The rows of a query; `Unreadable` if it fails."""
    import duckdb

    try:
        return connection.execute(sql, parameters).fetchall()
    except duckdb.Error as error:
        raise Unreadable(str(error)) from None


def identifier(name: str) -> str:
    """A name, quoted.

    Example:
        >>> print(identifier('a "b" c'))
        "a ""b"" c"
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text, quoted.

    Example:
        >>> print(literal("o'clock"))
        'o''clock'
    """
    return "'" + text.replace("'", "''") + "'"


def parquet(files: Iterable[str]) -> str:
    """The rows of these Parquet files; none has a character of patterns in its path."""
    listed = ", ".join(literal(file) for file in files)
    return f"read_parquet([{listed}], union_by_name = false, hive_partitioning = false)"


def attached(connection: Connection, file: DuckDBFile, alias: str) -> str:
    """The full name of the table, whose file is attached to be read only."""
    database = identifier(alias)
    query(connection, f"ATTACH {literal(file.path)} AS {database} (TYPE duckdb, READ_ONLY)")
    return f"{database}.{identifier(file.schema)}.{identifier(file.table)}"


def detach(connection: Connection, alias: str) -> None:
    """Let go of a file that was attached."""
    query(connection, f"DETACH {identifier(alias)}")


def describe(connection: Connection, rows: str) -> dict[str, StoredType]:
    """The columns of a relation, and their types."""
    columns = query(connection, f"DESCRIBE SELECT * FROM {rows}")
    return {name: stored(kind) for name, kind, *_ in columns}


def read_public(paths: Sequence[str], *, csv: bool, most: int) -> Any:
    """The first rows of files, as an Arrow table."""
    import duckdb

    rows = f"read_csv([{', '.join(map(literal, paths))}])" if csv else parquet(paths)
    with glance() as connection, every_core(connection):
        try:
            return connection.sql(f"SELECT * FROM {rows} LIMIT {most}").to_arrow_table()
        except duckdb.Error as error:
            raise Unreadable(str(error)) from None


def can_fail(connection: Connection, path: str, column: str, kind: StoredType) -> bool:
    """Whether reading a value of a column of a Parquet file can fail; its footer says how the column is stored.

    Claim: integers, floats, booleans and dates are read as they are stored. So are decimals and UUIDs of at most 16
    bytes, and times in microseconds or nanoseconds. A text is checked, and milliseconds are multiplied.
    """
    if kind.family in ("integer", "float", "boolean", "date"):
        return False
    stored = query(
        connection,
        "SELECT type, TRY_CAST(type_length AS INTEGER), converted_type, duckdb_type FROM parquet_schema(?) "
        "WHERE name = ? AND num_children IS NULL",
        [path, column],
    )
    match kind.family, stored:
        case "decimal" | "uuid", [("INT32" | "INT64", *_)]:
            return False
        case "decimal" | "uuid", [("FIXED_LEN_BYTE_ARRAY", int(length), *_)]:
            return length > 16
        case "timestamp", [("INT64", _, converted, engine)]:
            return converted != "TIMESTAMP_MICROS" and engine not in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS")
    return True


def version() -> str:
    """The version of DuckDB, which decides what can be read."""
    import duckdb

    return duckdb.__version__
