"""Imported values beside what was declared: outside of bounds and keys, more rows than the cap, odd texts.

All of it is for the steward: it is made of private values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from privet.sources import hints, reading
from privet.sources.report import Persons
from privet.tables.schema import Column
from privet.tables.types import KeyType, NumberType, TimeType


def persons(parquet: Path, id: str, max_rows: int | None) -> Persons | None:  # noqa: A002
    """How many persons there are, and how many rows are over the cap; None if that takes more memory than there is."""
    import duckdb

    with reading.reader() as connection:
        connection.execute("SET temp_directory = ''")  # ids are written nowhere
        rows, person = reading.parquet([str(parquet)]), reading.identifier(id)
        each = f"SELECT count(*) AS n FROM {rows} WHERE {person} IS NOT NULL GROUP BY {person}"
        asked = "SELECT count(*), count(*) FILTER (n > $1), sum(n - $1) FILTER (n > $1)"
        try:
            found = connection.execute(f"{asked} FROM ({each})", [max_rows or 0]).fetchone()
        except duckdb.Error:
            return None
    assert found is not None
    return Persons(found[0], None, None) if max_rows is None else Persons(found[0], found[1], int(found[2] or 0))


def alike(parquet: Path, names: Sequence[str], kinds: Mapping[str, str]) -> dict[str, int]:
    """How many different texts of these columns equal another but for spaces, capital letters or forms of a letter.

    Only columns that have some; none for which that takes more memory than there is.
    """
    import duckdb

    found: dict[str, int] = {}
    with reading.reader() as connection:
        connection.execute("SET temp_directory = ''")  # texts are written nowhere
        connection.create_function("folded", _folded, ["VARCHAR"], "VARCHAR", type="arrow")  # type: ignore[call-overload]
        for name in names:
            if kinds[name] != "text":
                continue
            texts = f"SELECT DISTINCT {reading.identifier(name)} AS t FROM {reading.parquet([str(parquet)])}"
            try:
                count = connection.execute(f"SELECT count(t) - count(DISTINCT folded(t)) FROM ({texts})").fetchone()
            except duckdb.Error:
                continue
            if count is not None and count[0]:
                found[name] = count[0]
    return found


def _folded(texts: Any) -> Any:
    return pc.utf8_lower(pc.utf8_trim_whitespace(pc.utf8_normalize(texts, "NFKC")))


def outside(values: Any, column: Column | None) -> int:
    """How many values are outside of what was declared.

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
            known = pc.is_in(encoded.dictionary, value_set=pa.array(kind.keys(), values.type))
            return _sum(pc.invert(known.take(encoded.indices)))
        case _:
            return 0
    low, high = (pa.scalar(end, values.type) for end in ends)
    return _sum(pc.or_(pc.less(values, low), pc.greater(values, high)))


def marked(values: Any, column: Column | None) -> dict[str, int]:
    """How often a text was kept that may mean a missing value, and is not declared as a key.

    Example:
        >>> marked(pa.array(["NA", "north", "NA", None]), None)
        {'NA': 2}
    """
    encoded = values.dictionary_encode()
    known = column.type.keys() if column is not None and isinstance(column.type, KeyType) else ()
    asked = pa.array(sorted(hints.MARKERS.difference(map(str, known))), values.type)
    flags = pc.is_in(encoded.dictionary, value_set=asked)
    if not pc.any(flags).as_py():
        return {}
    counted = encoded.dictionary.take(encoded.indices.filter(flags.take(encoded.indices))).value_counts().to_pylist()
    return {each["values"]: each["counts"] for each in counted}


def _sum(flags: Any) -> int:
    return int(pc.sum(flags).as_py() or 0)


def _moment(end: date, kind: Any) -> date:
    return end if isinstance(end, datetime) or kind == pa.date32() else datetime(end.year, end.month, end.day)
