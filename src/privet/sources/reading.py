"""DuckDB as the reader of files: a fresh connection for each look, names and paths quoted, nothing loaded by itself."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.addresses import is_address, masked
from privet.errors import SourceError
from privet.interrupts import duckdb_interrupts
from privet.processes import native

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@contextmanager
def reader() -> Iterator[DuckDBPyConnection]:
    """A connection of its own, in memory, closed at the end."""
    import duckdb

    options: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with native(), duckdb_interrupts(), duckdb.connect(config=options) as connection:
        yield connection


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


def describe(connection: DuckDBPyConnection, rows: str) -> dict[str, str]:
    """The columns of a relation, and DuckDB's names of their types."""
    found = connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
    return {name: kind for name, kind, *_ in found}


def exposed(types: Mapping[str, str], person: str | None) -> str:
    """The columns that are kept, as a list of expressions; a person's id that is NaN is missing, as NULL is.

    Claim: texts are equal if their bytes are. A collation of the source (NOCASE, NOACCENT, a language), which DuckDB
    does not name in a column's type, and a cast does not remove, ends here.
    """
    chosen = []
    for name, kind in types.items():
        quoted = identifier(name)
        if name == person and kind in ("FLOAT", "DOUBLE"):
            chosen.append(f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END AS {quoted}")
        elif kind == "VARCHAR":
            chosen.append(f"{quoted} COLLATE C AS {quoted}")
        elif kind in _CAST:
            chosen.append(f"TRY_CAST({quoted} AS {_CAST[kind]}) AS {quoted}")
        else:
            chosen.append(quoted)
    return ", ".join(chosen)


def exposed_types(types: Mapping[str, str]) -> dict[str, str]:
    """The types of the columns that are kept."""
    return {name: _CAST.get(kind, kind) for name, kind in types.items()}


_CAST = {"TIMESTAMPTZ_NS": "TIMESTAMP WITH TIME ZONE"}  # nanoseconds with a zone: most functions don't take them


def paths(source: Any) -> tuple[str, ...]:
    """The absolute paths of the files that a path, a pattern or a list of them names, in order."""
    if isinstance(source, list | tuple):
        if not source:
            raise SourceError('an empty list names no file. Write, for example: ["2023.parquet", "2024.parquet"]')
        found = [path for one in source for path in paths(one)]
        for path, times in Counter(found).items():
            if times > 1:
                raise SourceError(f"{path!r} is named twice: its rows would count twice. Name each file once")
        return tuple(found)
    if not isinstance(source, str | Path):
        raise SourceError(f"a path is a text or a Path, not {type(source).__name__}. Write, for example: {_LINE}")
    text = str(source)
    if is_address(text):
        raise SourceError(
            f"{masked(text)!r} is not a file here: copy it to this machine first. Write, for example: {_LINE}"
        )
    if "\x00" in text or not text:
        raise SourceError(f"{text!r} is not a path. Write, for example: {_LINE}")
    given = Path(text).expanduser().absolute()
    if given.is_dir():
        raise SourceError(f"{text!r} is a folder. Write, for example: {str(Path(text) / '*.parquet')!r}")
    if given.is_file():
        return (_named(str(given)),)
    if glob.has_magic(text):
        matched = sorted(path for path in glob.glob(str(given), recursive=True) if Path(path).is_file())  # noqa: PTH207
        if matched:
            return tuple(map(_named, matched))
        raise SourceError(f"no file matches {text!r} (looked for {str(given)!r}).{_beside(given)}")
    raise SourceError(f"there is no file {text!r} (looked for {str(given)!r}).{_beside(given)}")


_LINE = '"people.parquet", or "people/*.parquet"'


def _named(path: str) -> str:
    if glob.has_magic(path):  # DuckDB would take it for a pattern, and read what it matches
        raise SourceError(f"the path {path!r} has a character of patterns (* ? [) in it. Rename the file or its folder")
    return path


def _beside(path: Path) -> str:
    """What a person may have meant: the files in the same folder that could be read."""
    if glob.has_magic(str(path.parent)):
        return f" Write, for example: {_LINE}"
    if not path.parent.is_dir():
        return f" There is no folder {str(path.parent)!r} either."
    names = sorted(one.name for one in path.parent.iterdir() if one.suffix.lower() in (".parquet", ".pq"))
    if not names:
        return f" No Parquet file is in that folder. Write, for example: {_LINE}"
    return f" In that folder are: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"
