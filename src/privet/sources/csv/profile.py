"""Imported values compared with the declaration: outside of bounds and keys, rows over the cap, unusual texts.

All of this is for the steward only, because it is computed from private values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from privet.engines.duckdb import files
from privet.sources.csv import hints
from privet.sources.csv.report import Persons
from privet.tables.schema import Column
from privet.tables.types import KeyType, NumberType, TimeType


def persons(parquet: Path, id: str, max_rows: int | None) -> Persons | None:  # noqa: A002
    """The number of people, and of rows over the cap; None if there is not enough memory to count."""
    with files.reader() as connection:
        connection.execute("SET temp_directory = ''")  # never write ids to disk
        rows, person = files.parquet([str(parquet)]), files.identifier(id)
        each = f"SELECT count(*) AS n FROM {rows} WHERE {person} IS NOT NULL GROUP BY {person}"
        counts = "SELECT count(*), count(*) FILTER (n > $1), sum(n - $1) FILTER (n > $1)"
        try:
            [row] = files.query(connection, f"{counts} FROM ({each})", [max_rows or 0])
        except files.Unreadable:
            return None
    return Persons(row[0], None, None) if max_rows is None else Persons(row[0], row[1], int(row[2] or 0))


def alike(parquet: Path, names: Sequence[str], kinds: Mapping[str, str]) -> dict[str, int]:
    """The number of texts that differ from another only in spaces, capital letters or forms of a letter, by column.

    Columns without such texts are left out, and so are those that need too much memory.
    """
    counts: dict[str, int] = {}
    with files.reader() as connection:
        connection.execute("SET temp_directory = ''")  # never write texts to disk
        connection.create_function("folded", _folded, ["VARCHAR"], "VARCHAR", type="arrow")  # type: ignore[call-overload]
        for name in names:
            if kinds[name] != "text":
                continue
            texts = f"SELECT DISTINCT {files.identifier(name)} AS t FROM {files.parquet([str(parquet)])}"
            try:
                [(count,)] = files.query(connection, f"SELECT count(t) - count(DISTINCT folded(t)) FROM ({texts})")
            except files.Unreadable:
                continue
            if count:
                counts[name] = count
    return counts


def _folded(texts: Any) -> Any:
    return pc.utf8_lower(pc.utf8_trim_whitespace(pc.utf8_normalize(texts, "NFKC")))


def outside(values: Any, column: Column | None) -> int:
    """The number of values outside of the declared bounds or keys.

    Example:
        >>> from privet.tables.schema import integer, keys
        >>> outside(pa.array([1, 200, None, -1]), integer(0, 110)), outside(pa.array(["a", "b"]), keys("a"))
        (2, 1)
    """
    kind = None if column is None else column.type
    ends: tuple[Any, Any]
    match kind:
        case NumberType():
            number = int if kind.integer else float
            ends = (number(kind.lower), number(kind.upper))
        case TimeType():
            ends = (_moment(kind.first, values.type), _moment(kind.last, values.type))
        case KeyType():
            encoded = values.dictionary_encode()
            is_key = pc.is_in(encoded.dictionary, value_set=pa.array(kind.keys(), values.type))
            return _sum(pc.invert(is_key.take(encoded.indices)))
        case _:
            return 0
    low, high = (pa.scalar(end, values.type) for end in ends)
    return _sum(pc.or_(pc.less(values, low), pc.greater(values, high)))


def marked(values: Any, column: Column | None) -> dict[str, int]:
    """The number of times that each text was kept that may mean a missing value and is not a declared key.

    Example:
        >>> marked(pa.array(["NA", "north", "NA", None]), None)
        {'NA': 2}
    """
    encoded = values.dictionary_encode()
    declared = column.type.keys() if column is not None and isinstance(column.type, KeyType) else ()
    markers = pa.array(sorted(hints.MARKERS.difference(map(str, declared))), values.type)
    flags = pc.is_in(encoded.dictionary, value_set=markers)
    if not pc.any(flags).as_py():
        return {}
    counted = encoded.dictionary.take(encoded.indices.filter(flags.take(encoded.indices))).value_counts().to_pylist()
    return {each["values"]: each["counts"] for each in counted}


def _sum(flags: Any) -> int:
    return int(pc.sum(flags).as_py() or 0)


def _moment(end: date, kind: Any) -> date:
    return end if isinstance(end, datetime) or kind == pa.date32() else datetime(end.year, end.month, end.day)
