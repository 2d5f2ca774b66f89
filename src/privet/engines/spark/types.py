"""Spark's names of types in our own words, and what is read of a column of each. No other package knows them.

Claim: what `exposed` writes is total: it raises no error, whatever a row holds.
"""

from __future__ import annotations

import re

from privet.tables.stored_types import StoredType

_TYPES: dict[str, StoredType] = {
    "tinyint": StoredType.integer(8, name="tinyint"),
    "smallint": StoredType.integer(16, name="smallint"),
    "int": StoredType.integer(32, name="int"),
    "bigint": StoredType.integer(64, name="bigint"),
    "float": StoredType.float(32, name="float"),
    "double": StoredType.float(64, name="double"),
    "boolean": StoredType("boolean", "boolean"),
    "string": StoredType.text(name="string"),
    "date": StoredType("date", "date"),
    "timestamp_ntz": StoredType.timestamp("us", name="timestamp_ntz"),
    "timestamp": StoredType.timestamp("us", zoned=True, name="timestamp"),
    "void": StoredType("void", "nothing"),
}


def stored(name: str) -> StoredType:
    """What a type holds, by its name in Spark. Intervals, times of day, bytes and nested types have no use.

    Example:
        >>> stored("decimal(9,2)").scale, stored("string collate UNICODE_CI").family, stored("char(3)").family
        (2, 'text', 'text')
        >>> stored("timestamp").zoned, stored("array<int>").family, stored("interval day to second").family
        (True, 'no use', 'no use')
    """
    decimal = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", name)
    if decimal:
        return StoredType.decimal(int(decimal[1]), int(decimal[2]), name=name)
    if re.fullmatch(r"(string collate \w+|(char|varchar)\(\d+\)( collate \w+)?)", name):
        return StoredType.text(name=name)
    return _TYPES.get(name) or StoredType(name, "no use")


def as_id(kind: StoredType) -> StoredType:
    """What an id of this type is read as: all integers as one type, since Spark hashes 42 by its type."""
    return StoredType.integer(64, name=kind.name) if kind.family == "integer" else kind


def exposed(name: str, kind: StoredType) -> str:
    """A column, of which only this is read: texts by their bytes, without what Spark adds to a CHAR."""
    quoted = identifier(name)
    if kind.family == "text" and kind.name.startswith("char"):
        return f"rtrim(CAST({quoted} AS STRING)) AS {quoted}"
    if kind.family == "text" and kind.name != "string":
        return f"CAST({quoted} AS STRING) AS {quoted}"
    if kind.is_int64 and kind.name != "bigint":
        return f"CAST({quoted} AS bigint) AS {quoted}"
    return quoted


def identifier(name: str) -> str:
    """A name, quoted.

    Example:
        >>> print(identifier("a `b` c"))
        `a ``b`` c`
    """
    return "`" + name.replace("`", "``") + "`"
