"""A column of a source as doubles or whole numbers, without errors."""

from __future__ import annotations

from privet.engines.sql.dialect import Dialect
from privet.tables.stored import StoredType

NUMBERS = ("integer", "float", "decimal")


def as_double(dialect: Dialect, stored: StoredType, sql: str) -> str | None:
    """As a double; NULL for a text that is not a number; None for a type that has no numbers."""
    if stored.is_float64:
        return sql
    if stored.family in (*NUMBERS, "boolean") or (stored.family == "text" and not stored.enumerated):
        return dialect.try_cast(sql, dialect.double, stored)
    return None


def as_integer(dialect: Dialect, stored: StoredType, sql: str) -> str | None:
    """As a narrow integer, rounded to the nearest whole number; NULL where it does not fit."""
    narrow = dialect.types["narrow"]
    if stored.is_int64:
        return sql
    whole = stored.family == "decimal" and stored.scale == 0
    if stored.family in ("integer", "boolean") or whole:
        return dialect.try_cast(sql, narrow, stored)
    double = as_double(dialect, stored, sql)
    return None if double is None else dialect.try_cast(double, narrow)
