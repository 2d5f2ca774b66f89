"""Postgres's names of types in our own words, and what is read of a column of each. No other package knows them.

Claim: what `exposed` writes is total: it raises no error, whatever a row holds.
"""

from __future__ import annotations

import re

from privet.tables.stored_types import StoredType

_TYPES: dict[str, StoredType] = {
    "smallint": StoredType.integer(16, name="smallint"),
    "integer": StoredType.integer(32, name="integer"),
    "bigint": StoredType.integer(64, name="bigint"),
    "real": StoredType.float(32, name="real"),
    "double precision": StoredType.float(64, name="double precision"),
    "numeric": StoredType.float(64, name="numeric"),
    "boolean": StoredType("boolean", "boolean"),
    "date": StoredType("date", "date"),
    "timestamp without time zone": StoredType.timestamp("us", name="timestamp"),
    "timestamp with time zone": StoredType.timestamp("us", zoned=True, name="timestamp with time zone"),
    "uuid": StoredType("uuid", "uuid"),
    **{name: StoredType.text(name=name) for name in ("text", "character varying", "character", "name", '"char"')},
}
_NUMERIC = re.compile(r"numeric(\(\d+,-?\d+\))?")  # a type of a schema named numerics is another


def stored(name: str, kind: str = "b") -> StoredType:
    """What a type holds, by its full name and its kind in Postgres's catalogue ("e" for an enumeration).

    "t" is a text of an extension, with another equality, which ends where it becomes a plain text. "f" is a type that
    becomes a text by somebody's function, which would run in our statements.

    A `numeric` without digits can hold anything, so it is read as a double; with up to 38 digits it is read exactly.

    Example:
        >>> stored("numeric(9,2)").scale, stored("numeric").family, stored("character varying(20)").family
        (2, 'float', 'text')
        >>> stored("timestamp(3) with time zone").zoned, stored("integer[]").family, stored("public.mood", "e").family
        (True, 'no use', 'text')
    """
    if kind == "f":
        return StoredType(f"{name}, with a cast to text by a function", "no use")
    if kind in ("e", "t"):
        return StoredType.text(name=name)
    digits = re.fullmatch(r"numeric\((\d+),(-?\d+)\)", name)
    if digits:
        precision, scale = int(digits[1]), int(digits[2])
        if precision <= 38 and 0 <= scale <= precision:
            return StoredType.decimal(precision, scale, name=name)
        return _TYPES["numeric"].named(name)
    return _TYPES.get(re.sub(r"\(\d+\)", "", name)) or StoredType(name, "no use")


def as_id(kind: StoredType) -> StoredType:
    """What an id of this type is read as: as a double, different numbers could be one person."""
    return StoredType.text(name=kind.name) if _is_any_number(kind) else kind


def exposed(name: str, kind: StoredType) -> str:
    """A column, of which only this is read: texts by their bytes, numbers of any length as doubles."""
    quoted = identifier(name)
    if kind.family == "text" and _NUMERIC.fullmatch(kind.name):
        return f"CASE WHEN {quoted} <> 'NaN' THEN CAST(trim_scale({quoted}) AS text) COLLATE \"C\" END AS {quoted}"
    if kind.family == "text":
        return f'CAST({quoted} AS text) COLLATE "C" AS {quoted}'
    if _is_any_number(kind):  # a cast fails for what is too large or too near to 0
        beyond = f"WHEN {quoted} > 1e305 THEN 'Infinity'::float8 WHEN {quoted} < -1e305 THEN '-Infinity'::float8"
        near = f"WHEN {quoted} BETWEEN -1e-305 AND 1e-305 THEN '0'::float8"
        return f"CASE WHEN {quoted} = 'NaN' THEN NULL {beyond} {near} ELSE CAST({quoted} AS float8) END AS {quoted}"
    return quoted


def _is_any_number(kind: StoredType) -> bool:
    return kind.family == "float" and _NUMERIC.fullmatch(kind.name) is not None


def identifier(name: str) -> str:
    """A name, quoted.

    Example:
        >>> print(identifier('a "b" c'))
        "a ""b"" c"
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    r"""A text, quoted: the same text whatever `standard_conforming_strings` is.

    Example:
        >>> print(literal("it's"), literal("a\\b"))
        E'it''s' E'a\\b'
    """
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
