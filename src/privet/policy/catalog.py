"""The names and types of columns in files, for a steward who writes a policy.

Only the schema of Parquet and DuckDB files is read, no value and no statistic. A CSV has no types: its header is read,
and its values only if the steward allows it; they serve to detect types, and are never shown or stored.
"""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from privet.engines.duckdb.files import Unreadable, detach, glance, literal, query
from privet.engines.duckdb.types import stored
from privet.engines.postgres import tables as postgres
from privet.engines.postgres.addresses import parsed, written
from privet.engines.spark import addresses as spark_addresses
from privet.engines.spark import tables as spark
from privet.errors import Remedy, SourceError, Subject, UserError, argument, write
from privet.sources.csv import hints, parsing
from privet.sources.csv.dialect import Dialect, Row, not_utf16
from privet.sources.csv.hints import Option
from privet.sources.csv.notation import Notation
from privet.sources.parquet import object_types, parquet_types
from privet.sources.paths import paths_of
from privet.sources.readings import Reading
from privet.system.addresses import COPY, SOURCES, is_address, is_postgres, is_spark, masked
from privet.system.object_addresses import is_object_address
from privet.tables.schema import check_name
from privet.tables.stored_types import Family

_CSV = (".csv", ".tsv")
_DATABASE = (".duckdb", ".ddb", ".db")
_HEADER = "The first line must contain the column names"
_LOOKED_AT = 10_000
"""Lines of a CSV to read to detect its types."""


@dataclass(frozen=True, slots=True)
class Found:
    """A table in a file: where its rows are, and its columns."""

    name: str
    path: str
    """Its file or pattern, or its address."""
    columns: dict[str, Family]
    table: str | None = None
    """Its name in a DuckDB file."""
    schema: str = "main"
    engine: str = ""
    """The engine whose address the path is; else it is a file."""
    csv: Dialect | None = None
    """The dialect of a CSV."""
    options: tuple[Option, ...] = ()
    """Options for its notation, if its values were read."""


def find(source: str, *, sniff: bool = False, separator: str | None = None, encoding: str = "utf-8") -> list[Found]:
    """The tables in a file, or in the files of a pattern; `name=path` sets a name, `path:table` chooses one table."""
    name, path, table = _parts(source)
    if is_postgres(path):
        return _postgres(path, name)
    if is_spark(path):
        return _spark(path, name)
    if is_object_address(path):
        types = object_types(path)
        own = check_name(name or _simple(_stem(path.partition("://")[2])), "table")
        return [Found(own, path.strip(), {column: kind.family for column, kind in types.items()})]
    if is_address(path):
        raise SourceError(
            f"{masked(path)!r} is not a source that Privet can read",
            allowed=SOURCES,
            subject=Subject("file", masked(path)),
            remedy=Remedy(COPY),
        )
    lowered = path.lower()
    if lowered.endswith(_DATABASE):
        return _duckdb(path, name, table)
    own = check_name(name or _simple(_stem(path)), "table")
    if lowered.endswith(_CSV):
        return [_csv(own, path, sniff, separator, encoding)]
    if lowered.endswith((".csv.gz", ".tsv.gz")):
        line = f"gunzip {shlex.quote(path)}"
        raise SourceError(
            f"{path!r} is compressed",
            subject=Subject("file", path),
            remedy=write(line, terminal=line, advice="Unpack it first", exact=True),
        )
    with glance() as connection:
        types = parquet_types(connection, paths_of(path)[0])
    return [Found(own, path, {column: kind.family for column, kind in types.items()})]


def check_csv(source: str) -> bool:
    """Whether this is a CSV; refused if there is no such file."""
    path = _parts(source)[1]
    if is_object_address(path):
        return False  # refused when it is looked at
    if is_csv(source) and not Path(path).expanduser().is_file():
        raise _no_file(path, Path(path).expanduser())
    return is_csv(source)


def is_csv(source: str) -> bool:
    """Whether this is a CSV, whose types can be found only by reading its values."""
    path = _parts(source)[1]
    return not is_object_address(path) and path.lower().endswith(_CSV)


def _parts(source: str) -> tuple[str, str, str]:
    """The name, the path and the table in an argument."""
    name, sign, path = source.partition("=")
    if not sign or Path(source).exists() or not re.fullmatch(r"[\w -]+", name):
        name, path = "", source
    head, sign, table = path.rpartition(":")
    if sign and head.lower().endswith(_DATABASE) and not Path(path).exists():
        return name, head, table
    return name, path, ""


def _stem(path: str) -> str:
    """A table name from the name of its file or folder."""
    for part in reversed(Path(path).parts):
        stem = part.partition(".")[0]
        if stem and not glob.has_magic(stem):
            return stem
    return "table"


def _simple(name: str) -> str:
    """A name that SQL reads without quotes.

    Example:
        >>> _simple("penguins-raw"), _simple("2023")
        ('penguins_raw', 'table_2023')
    """
    simple = re.sub(r"\W+", "_", name).strip("_")
    return f"table_{simple}" if not simple or simple[0].isdigit() else simple


def _names(places: Sequence[tuple[str, str]], usual: str) -> list[str]:
    """Different names for the tables of a database, by schema and table: `visits`, or `clinic_visits` if two would be
    `visits`. A table of the usual schema keeps its name.

    Example:
        >>> _names([("public", "visits"), ("clinic", "visits"), ("clinic", "people")], "public")
        ['visits', 'clinic_visits', 'people']
    """
    simple = [_simple(table).casefold() for _, table in places]
    names: list[str] = []
    for schema, table in places:
        alone = simple.count(_simple(table).casefold()) == 1
        name = _simple(table) if alone or schema == usual else _simple(f"{schema}_{table}")
        reserved = {each.casefold() for each in names} | ({*simple} if name != _simple(table) else set())
        numbered = (name if i == 1 else f"{name}_{i}" for i in count(1))
        names.append(next(each for each in numbered if each.casefold() not in reserved))
    return names


def _families(types: Iterable[tuple[str, str]]) -> dict[str, Family]:
    """The families of columns; type names are dropped, because that of an enumeration contains its values."""
    return {name: stored(kind).family for name, kind in types}


def _duckdb(path: str, name: str, table: str) -> list[Found]:
    file = Path(path).expanduser().absolute()
    if not file.is_file():
        raise _no_file(path, file)
    with glance() as connection:
        try:
            query(connection, f"ATTACH {literal(str(file))} AS source (TYPE duckdb, READ_ONLY)")
            columns = query(
                connection,
                "SELECT c.schema_name, c.table_name, c.column_name, c.data_type FROM duckdb_columns() c "
                "SEMI JOIN duckdb_tables() t USING (database_name, schema_name, table_name) "
                "WHERE c.database_name = 'source' AND NOT c.internal ORDER BY c.table_oid, c.column_index",
            )
            detach(connection, "source")
        except Unreadable:
            raise SourceError(
                f"{path!r} is not a readable DuckDB file, or another process has it open for writing"
            ) from None
    tables: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for schema, each, column, kind in columns:
        tables.setdefault((schema, each), []).append((column, kind))
    chosen = {key: value for key, value in tables.items() if not table or key[1] == table}
    if not chosen:
        raise SourceError(
            f"there is no table {table!r} in {path!r}" if table else f"{path!r} contains no table",
            allowed=f"The tables are: {', '.join(each for _, each in tables)}" if table and tables else "",
            subject=Subject("table", table),
        )
    if name and len(chosen) > 1:
        line = shlex.quote(f"{name}={path}:{next(iter(chosen))[1]}")
        raise UserError(
            f"{path!r} contains several tables, so choose the one to name", remedy=write(line, terminal=line)
        )
    return [
        Found(check_name(name or own, "table"), path, _families(types), each, schema)
        for own, ((schema, each), types) in zip(_names([*chosen], "main"), chosen.items(), strict=True)
    ]


def _postgres(address: str, name: str) -> list[Found]:
    """The tables of a database, or the one that the address names; the password does not enter a policy."""
    tables = postgres.every(parsed(address))
    plain = parsed(address).plain
    _check_number(len(tables), name, masked(plain), written(plain, "public", "people"))
    return [
        Found(
            check_name(name or own, "table"),
            written(each.address.plain, each.schema, each.table),
            {column: kind.family for column, kind in each.columns},
            engine="postgres",
        )
        for own, each in zip(_names([(each.schema, each.table) for each in tables], "public"), tables, strict=True)
    ]


def _spark(address: str, name: str) -> list[Found]:
    """The tables of a database in Spark, or the one that the address names; no token enters a policy."""
    at = spark_addresses.parsed(address)
    tables = spark.every(at)
    _check_number(len(tables), name, spark_addresses.written(at), spark_addresses.example(at))
    return [
        Found(
            check_name(
                name or _simple(_stem(each.address.path) if each.address.path else each.address.names[-1]), "table"
            ),
            spark_addresses.written(each.address),
            {column: kind.family for column, kind in each.columns},
            engine="spark",
        )
        for each in tables
    ]


def _check_number(tables: int, name: str, shown: str, example: str) -> None:
    """A name is for one table."""
    if tables == 0:
        line = shlex.quote(example)
        raise SourceError(f"{shown!r} has no table that this user may read", remedy=write(line, terminal=line))
    if name and tables > 1:
        line = shlex.quote(f"{name}={example}")
        what = f"{shown!r} contains several tables, so choose the one to name"
        raise SourceError(what, remedy=write(line, terminal=line))


# --- CSV --------------------------------------------------------------------------------------


def _csv(name: str, path: str, sniff: bool, separator: str | None, encoding: str) -> Found:
    file = Path(path).expanduser()
    if not file.is_file():
        raise _no_file(path, file)
    dialect = Dialect(separator or _separator(file), encoding=encoding)
    with file.open("rb") as stream:
        not_utf16(stream.peek(2), path)
        rows = dialect.rows(stream)
        header = next(rows, None)
        if header is None or header.fields is None:
            _readable(path, header)
            raise SourceError(f"{path!r} has no header", allowed=_HEADER, subject=Subject("file", path))
        names = header.fields
        if any(not name.strip() or _sniffed(name, [name])[0] not in ("text", "boolean") for name in names):
            raise SourceError(
                f"the first line of {path!r} looks like values, not names",
                allowed=_HEADER,
                subject=Subject("file", path),
            )
        if len(set(names)) < len(names):
            raise SourceError(
                f"two columns in the header of {path!r} have the same name", subject=Subject("file", path)
            )
        families: dict[str, Family] = dict.fromkeys(names, "anything")
        options: dict[Option, None] = {}
        if sniff:
            looked_at = list(islice(rows, _LOOKED_AT))
            for row in looked_at:
                _readable(path, row)
            complete = [row.fields for row in looked_at if row.fields and len(row.fields) == len(names)]
            for place, column in enumerate(names):
                families[column], proposed = _sniffed(column, [row[place] for row in complete])
                options.update(dict.fromkeys(proposed))
    return Found(name, path, families, csv=dialect, options=_consistent(options))


def _no_file(path: str, file: Path) -> SourceError:
    looked = "" if path == str(file.absolute()) else f" (looked for {str(file.absolute())!r})"
    return SourceError(f"there is no file {path!r}{looked}", subject=Subject("file", path))


def _readable(path: str, row: Row | None) -> None:
    if row is not None and row.not_text:
        raise SourceError(
            f"{path!r}, line {row.line:,}: {row.why.partition(':')[0]}",
            subject=Subject("file", path),
            remedy=argument("encoding", "cp1252", advice="The file may come from Windows or Excel"),
        )


def _consistent(options: Iterable[Option]) -> tuple[Option, ...]:
    """The options without number separators on which the columns disagree."""
    every = list(options)
    disputed = {one.name for one in every for other in every if one.name == other.name and one.value != other.value}
    return tuple(one for one in every if one.name not in disputed & {"decimal", "thousands"})


def _separator(file: Path) -> str:
    """The separator between the names in the header."""
    with file.open("rb") as stream:
        header = stream.readline(1_000_000)
    return max(",;\t|", key=lambda sign: header.count(sign.encode()))


_TESTS: tuple[tuple[Reading, Family], ...] = (
    ("integer", "integer"),
    ("number", "float"),
    ("boolean", "boolean"),
    ("timestamp", "timestamp"),
)


def _sniffed(column: str, texts: list[str]) -> tuple[Family, tuple[Option, ...]]:
    """The family and the options that fit all of these texts, except those that may mean missing values."""
    filled = list(dict.fromkeys(text for text in texts if text))
    plain = [text for text in filled if text not in hints.MARKERS]
    missing = tuple(Option("missing", text) for text in filled if text in hints.MARKERS)
    if not plain:
        return ("text" if filled and len(texts) == 1 else "anything"), ()
    for kind, family in _TESTS:
        if not parsing.parse(plain, kind)[1]:
            if family == "timestamp" and all(len(text.strip()) == 10 for text in plain):
                return "date", missing
            return family, missing
    for kind, family in (*_TESTS[:2], ("timestamp", "timestamp")):
        bad = [plain[place] for place in parsing.parse(plain, kind)[1]]
        proposed = [hint.choices for hint in hints.readings(column, kind, bad, Notation()) if hint.choices]
        if proposed and (len(bad) == len(plain) or kind != "timestamp"):
            (first, *others) = proposed[0]
            timed = any("%H" in option.value or "%I" in option.value for option in first)
            if kind == "timestamp" and not timed:
                family = "date"
            return family, (*missing, *(first if not others else ()))
    return "text", ()
