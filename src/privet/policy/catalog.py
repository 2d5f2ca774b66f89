"""What columns there are in files, and of which types: names and types only, for a steward who writes a policy.

Of Parquet and DuckDB files the schema is read, no value and no statistic. A CSV has no types: its header is read, and
its values only if the steward says so; they are looked at to tell types apart, and never shown or kept.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from privet.errors import SourceError, UserError
from privet.relation.schema import called
from privet.sources import parsing, reading
from privet.sources.dialect import Dialect
from privet.sources.kinds import Family, Kind, of_duckdb

_CSV = (".csv", ".tsv")
_DATABASE = (".duckdb", ".ddb", ".db")
_LOOKED_AT = 10_000
"""How many lines of a CSV are looked at for types."""


@dataclass(frozen=True, slots=True)
class Found:
    """A table that was found: where its rows are, and its columns."""

    name: str
    path: str
    """Its file or pattern."""
    columns: dict[str, Family]
    table: str | None = None
    """Its name in a DuckDB file."""
    schema: str = "main"
    csv: Dialect | None = None
    """How the rows of a CSV are told apart."""


def find(given: str, *, sniff: bool = False, separator: str | None = None) -> list[Found]:
    """The tables in a file, or in the files of a pattern; `name=path` gives a name, `path:table` one table."""
    name, path, table = _parts(given)
    lowered = path.lower()
    if lowered.endswith(_DATABASE):
        return _duckdb(path, name, table)
    own = called(name or _stem(path), "table")
    if lowered.endswith(_CSV):
        return [_csv(own, path, sniff, separator)]
    if lowered.endswith((".csv.gz", ".tsv.gz")):
        raise SourceError(f"{path!r} is compressed: unpack it first. Write, for example: gunzip {path}")
    files = reading.paths(path)
    return [Found(own, path, _parquet(files))]


def is_csv(given: str) -> bool:
    """Whether this names a CSV, whose values would have to be read for its types."""
    return _parts(given)[1].lower().endswith(_CSV)


def _parts(given: str) -> tuple[str, str, str]:
    """The name, the path and the table that were given."""
    name, sign, path = given.partition("=")
    if not sign or Path(given).exists() or not re.fullmatch(r"[\w -]+", name):
        name, path = "", given
    head, sign, table = path.rpartition(":")
    if sign and head.lower().endswith(_DATABASE) and not Path(path).exists():
        return name, head, table
    return name, path, ""


def _stem(path: str) -> str:
    """The name of a table by that of its file, or of its folder."""
    for part in reversed(Path(path).parts):
        stem = part.partition(".")[0]
        if stem and not glob.has_magic(stem):
            return stem
    return "table"


def _parquet(files: Sequence[str]) -> dict[str, Family]:
    import duckdb

    with reading.reader() as connection:
        try:
            types = reading.describe(connection, reading.parquet(files[:1]))
        except duckdb.Error:
            raise SourceError(f"{files[0]!r} is no Parquet file that can be read.") from None
    return _families(types.items())


def _families(types: Iterable[tuple[str, str]]) -> dict[str, Family]:
    """What the columns hold; the name of a type is not kept, since that of an enumeration has its values in it."""
    return {name: of_duckdb(kind).family for name, kind in types}


def _duckdb(path: str, name: str, table: str) -> list[Found]:
    import duckdb

    file = Path(path).expanduser().absolute()
    if not file.is_file():
        raise SourceError(f"there is no file {path!r} (looked for {str(file)!r}).")
    with reading.reader() as connection:
        try:
            connection.execute(f"ATTACH {reading.literal(str(file))} AS source (TYPE duckdb, READ_ONLY)")
            columns = connection.execute(
                "SELECT c.schema_name, c.table_name, c.column_name, c.data_type FROM duckdb_columns() c "
                "SEMI JOIN duckdb_tables() t USING (database_name, schema_name, table_name) "
                "WHERE c.database_name = 'source' AND NOT c.internal ORDER BY c.table_oid, c.column_index"
            ).fetchall()
        except duckdb.Error:
            raise SourceError(
                f"{path!r} is no DuckDB file that can be read; or another process holds it open for writing"
            ) from None
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for schema, each, column, kind in columns:
        found.setdefault((schema, each), []).append((column, kind))
    chosen = {key: value for key, value in found.items() if not table or key[1] == table}
    if not chosen:
        names = ", ".join(each for _, each in found) or "none"
        raise SourceError(
            f"there is no table {table!r} in {path!r}. There are: {names}" if table else f"{path!r} is empty"
        )
    if name and len(chosen) > 1:
        raise UserError(f"{path!r} has several tables. Write, for example: {name}={path}:{next(iter(chosen))[1]}")
    return [
        Found(called(name or each, "table"), path, _families(types), each, schema)
        for (schema, each), types in chosen.items()
    ]


# --- CSV --------------------------------------------------------------------------------------


def _csv(name: str, path: str, sniff: bool, separator: str | None) -> Found:
    file = Path(path).expanduser()
    if not file.is_file():
        raise SourceError(f"there is no file {path!r} (looked for {str(file.absolute())!r}).")
    dialect = Dialect(separator or _separator(file))
    with file.open("rb") as stream:
        rows = dialect.rows(stream)
        header = next(rows, None)
        if header is None or header.fields is None:
            raise SourceError(f"{path!r} has no header: its first line must have the names of the columns.")
        names = header.fields
        if any(not name.strip() or _sniffed([name]) != "text" for name in names):
            raise SourceError(
                f"the first line of {path!r} looks like values: it must have the names of the columns. Add such a line"
            )
        if len(set(names)) < len(names):
            raise SourceError(f"two columns in the header of {path!r} have the same name.")
        families: dict[str, Family] = dict.fromkeys(names, "anything")
        if sniff:
            kept = [row.fields for row in islice(rows, _LOOKED_AT) if row.fields and len(row.fields) == len(names)]
            for place, column in enumerate(names):
                families[column] = _sniffed([row[place] for row in kept])
    return Found(name, path, families, csv=dialect)


def _separator(file: Path) -> str:
    """What stands between the names of the header."""
    with file.open("rb") as stream:
        header = stream.readline(1_000_000)
    return max(",;\t|", key=lambda sign: header.count(sign.encode()))


_TESTS: tuple[tuple[Kind, Family], ...] = (
    ("integer", "integer"),
    ("number", "float"),
    ("boolean", "boolean"),
    ("timestamp", "timestamp"),
)


def _sniffed(texts: list[Any]) -> Family:
    """What all of these texts can be read as."""
    filled = [text for text in texts if text]
    for kind, family in _TESTS:
        if filled and not parsing.parse(filled, kind)[1]:
            if family == "timestamp" and all(len(text.strip()) == 10 for text in filled):
                return "date"
            return family
    return "text" if filled else "anything"
