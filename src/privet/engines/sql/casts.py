"""A column of a source as doubles or whole numbers, without errors."""

from __future__ import annotations

from privet.engines.sql.dialect import Dialect
from privet.tables.stored_types import StoredType

NUMBERS = ("integer", "float", "decimal")


def within_precision(stored: StoredType, sql: str) -> str:
    """A decimal; NULL if it has more digits than its type says, which a file does not rule out.

    Claim: what is computed from it then fits, for every row: a product with 10^scale would overflow otherwise.

    Example:
        >>> within_precision(StoredType.decimal(3, 1), "x")
        "CASE WHEN x BETWEEN CAST('-99.9' AS DECIMAL(3, 1)) AND CAST('99.9' AS DECIMAL(3, 1)) THEN x END"
    """
    if stored.family != "decimal":
        return sql
    nines = "9" * (stored.precision - stored.scale) or "0"
    largest = f"{nines}.{'9' * stored.scale}" if stored.scale else nines
    low, high = (f"CAST('{sign}{largest}' AS DECIMAL({stored.precision}, {stored.scale}))" for sign in ("-", ""))
    return f"CASE WHEN {sql} BETWEEN {low} AND {high} THEN {sql} END"


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
    return None if double is None else dialect.whole(double)
