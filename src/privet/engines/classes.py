"""What kinds of types a source's columns have, and how their values become doubles or whole numbers, without errors."""

from __future__ import annotations

import re
from typing import Literal

Class = Literal[
    "signed", "unsigned", "huge", "float", "decimal", "boolean", "text", "enum", "date", "time", "zoned", "other"
]

_CLASSES: dict[str, Class] = {
    "TINYINT": "signed", "SMALLINT": "signed", "INTEGER": "signed", "BIGINT": "signed",
    "UTINYINT": "unsigned", "USMALLINT": "unsigned", "UINTEGER": "unsigned", "UBIGINT": "huge",
    "HUGEINT": "huge", "UHUGEINT": "huge",
    "FLOAT": "float", "REAL": "float", "DOUBLE": "float", "BOOLEAN": "boolean", "VARCHAR": "text", "UUID": "other",
    "DATE": "date", "TIMESTAMP": "time", "TIMESTAMP_S": "time", "TIMESTAMP_MS": "time", "TIMESTAMP_NS": "time",
    "TIMESTAMP WITH TIME ZONE": "zoned", "TIMESTAMPTZ": "zoned",
}  # fmt: skip


def class_of(source: str) -> Class:
    """What kind of type a source's column has."""
    head = source.strip().upper()
    if re.match(r"ENUM\b", head):
        return "enum"
    if re.match(r"DECIMAL\b|NUMERIC\b", head):
        return "decimal"
    return _CLASSES.get(head, "other")


def as_double(source: str, sql: str) -> str | None:
    """As a DOUBLE; NULL for a text that is not a number."""
    match class_of(source):
        case "float" if source.strip().upper() == "DOUBLE":
            return sql
        case "signed" | "unsigned" | "huge" | "float" | "decimal" | "boolean" | "text":
            return f"TRY_CAST({sql} AS DOUBLE)"
    return None


def as_integer(source: str, sql: str) -> str | None:
    """As a BIGINT, rounded to the nearest whole number; NULL where it does not fit."""
    match class_of(source):
        case "signed" if source.strip().upper() == "BIGINT":
            return sql
        case "signed" | "unsigned" | "huge" | "boolean":
            return f"TRY_CAST({sql} AS BIGINT)"
        case "decimal" if decimals(source) == 0:
            return f"TRY_CAST({sql} AS BIGINT)"
    d = as_double(source, sql)
    return None if d is None else f"TRY_CAST({d} AS BIGINT)"


def precision(source: str) -> tuple[int, int]:
    """The digits of a decimal, and how many of them stand behind the point; DuckDB's default is (18, 3)."""
    found = re.search(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", source)
    return (int(found[1]), int(found[2] or 0)) if found else (18, 3)


def decimals(source: str) -> int:
    """How many digits of a decimal stand behind the point."""
    return precision(source)[1]
