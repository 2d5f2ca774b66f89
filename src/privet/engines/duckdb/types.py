"""DuckDB's names of types in our own words. No other package knows these names."""

from __future__ import annotations

import re

from privet.tables.stored_types import StoredType

_SIZES = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
_TYPES: dict[str, StoredType] = {
    **{name: StoredType.integer(bits, name=name) for name, bits in _SIZES.items()},
    **{f"U{name}": StoredType.integer(bits, signed=False, name=f"U{name}") for name, bits in _SIZES.items()},
    "FLOAT": StoredType.float(32, name="FLOAT"),
    "DOUBLE": StoredType.float(64, name="DOUBLE"),
    "BOOLEAN": StoredType("BOOLEAN", "boolean"),
    "VARCHAR": StoredType.text(name="VARCHAR"),
    "DATE": StoredType("DATE", "date"),
    "TIMESTAMP": StoredType.timestamp("us", name="TIMESTAMP"),
    "TIMESTAMP_S": StoredType.timestamp("s", name="TIMESTAMP_S"),
    "TIMESTAMP_MS": StoredType.timestamp("ms", name="TIMESTAMP_MS"),
    "TIMESTAMP_NS": StoredType.timestamp("ns", name="TIMESTAMP_NS"),
    "TIMESTAMP WITH TIME ZONE": StoredType.timestamp("us", zoned=True, name="TIMESTAMP WITH TIME ZONE"),
    "TIMESTAMPTZ": StoredType.timestamp("us", zoned=True, name="TIMESTAMPTZ"),
    "TIMESTAMPTZ_NS": StoredType.timestamp("ns", zoned=True, name="TIMESTAMPTZ_NS"),
    "UUID": StoredType("UUID", "uuid"),
    "NULL": StoredType("NULL", "nothing"),
    '"NULL"': StoredType("NULL", "nothing"),
}


def stored(name: str) -> StoredType:
    """What a type of DuckDB holds; an enumeration is named without its values.

    Example:
        >>> stored("UTINYINT").bits, stored("DECIMAL(9,2)").scale, stored("VARCHAR[]").family
        (8, 2, 'no use')
        >>> stored("ENUM('a', 'b')").name
        'ENUM'
    """
    decimal = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", name)
    if decimal:
        return StoredType.decimal(int(decimal[1]), int(decimal[2]), name=name)
    if re.fullmatch(r"ENUM\(.*\)", name, re.DOTALL):
        return StoredType.text(name="ENUM", enumerated=True)
    return _TYPES.get(name) or StoredType(name, "no use")
