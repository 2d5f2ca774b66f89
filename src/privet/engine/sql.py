"""The few pieces of SQL text that are not fixed: numbers and dates as literals, names in quotes, texts as parameters.

No text of an analyst is ever part of a statement. Texts are bound as parameters; columns have names of our own, but for
the declared columns of a source, which are quoted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import count
from typing import Literal

from privet.exact import Exact, nearest

Kind = Literal["double", "integer", "boolean", "text", "date", "time"]
"""How a value is held: a finite DOUBLE, a BIGINT, a BOOLEAN, a VARCHAR, a DATE, a TIMESTAMP; or NULL."""

NAMES: dict[Kind, str] = {
    "double": "DOUBLE",
    "integer": "BIGINT",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
    "time": "TIMESTAMP",
}
"""What DuckDB calls these."""

WHOLE = 2**62
"""Whole numbers up to this (either sign) are BIGINT: two of them can be added or subtracted without overflow."""


@dataclass(frozen=True, slots=True)
class Value:
    """SQL of one value: of a `kind`, and over columns that exist from `level` on (see `Layers`).

    Claim: it is total. For no row does it raise an error, and a double is finite.
    """

    sql: str
    kind: Kind
    level: int = 0
    atom: bool = False
    """Whether the SQL is so short that it may be written several times."""


def name(text: str) -> str:
    """A name in quotes.

    Example:
        >>> name("person") == chr(34) + "person" + chr(34)
        True
    """
    return '"' + text.replace('"', '""') + '"'


def double(number: Exact | float | int) -> str:
    """The nearest float, so that DuckDB reads it back to the last bit.

    Example:
        >>> double(Exact(1, 10)), double(-3), double(2**70)
        ('1e-1', '(-3e0)', '1.1805916207174113e21')
    """
    value = nearest(Exact(number))
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        mantissa, exponent = _scientific(value)
    text = f"{mantissa}e{int(exponent)}"
    return f"({text})" if text.startswith("-") else text


def _scientific(value: float) -> tuple[str, str]:
    digits = repr(value).removesuffix(".0")
    if "." not in digits:
        return digits, "0"
    whole, _, fraction = digits.partition(".")
    sign = "-" if whole.startswith("-") else ""
    return f"{sign}{int(whole.lstrip('-') + fraction)}", str(-len(fraction))


def integer(number: int) -> str:
    """A whole number within -2^62..2^62, as a BIGINT.

    Example:
        >>> integer(-5)
        '(-5)::BIGINT'
    """
    if abs(number) > WHOLE:
        raise ValueError("a BIGINT literal is within -2^62..2^62")
    return f"({number})::BIGINT" if number < 0 else f"{number}::BIGINT"


def moment(value: date) -> str:
    """A date, or a date with a time of day.

    Example:
        >>> moment(date(2024, 2, 29)), moment(datetime(2024, 2, 29, 12))
        ("DATE '2024-02-29'", "TIMESTAMP '2024-02-29 12:00:00.000000'")
    """
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(' ', 'microseconds')}'"
    return f"DATE '{value.isoformat()}'"


@dataclass(slots=True)
class Context:
    """What one statement needs beside its text: bound parameters, types of keys, and names that are not taken."""

    parameters: list[str] = field(default_factory=list)
    enums: dict[tuple[str, ...], str] = field(default_factory=dict)
    prefix: str = "e"
    _names: count[int] = field(default_factory=count)

    def bind(self, text: str) -> str:
        """A placeholder for a text."""
        self.parameters.append(text)
        return f"${len(self.parameters)}::VARCHAR"

    def enum(self, values: tuple[str, ...]) -> str:
        """The name of an ENUM type of these texts, which must exist when the statement runs."""
        return self.enums.setdefault(values, f"{self.prefix}{len(self.enums)}")

    def fresh(self) -> str:
        """A column name that stands nowhere else."""
        return f"c{next(self._names)}"


@dataclass(slots=True)
class Layers:
    """A relation, and columns computed from it step by step: each layer may use those below.

    An expression that uses an operand twice gives it a name first. So the text of a statement grows with the
    question, and never faster.
    """

    context: Context
    source: str = ""
    levels: list[list[tuple[str, str]]] = field(default_factory=list)

    def named(self, value: Value) -> Value:
        """The same value, short: a column of the layer above its parts."""
        if value.atom:
            return value
        while len(self.levels) <= value.level:
            self.levels.append([])
        for alias, sql in self.levels[value.level]:
            if sql == value.sql:
                return Value(alias, value.kind, value.level + 1, atom=True)
        alias = self.context.fresh()
        self.levels[value.level].append((alias, value.sql))
        return Value(alias, value.kind, value.level + 1, atom=True)

    def select(self, columns: list[str], where: str | None = None) -> str:
        """The SELECT of these columns, over all layers."""
        source = self.source
        for level in self.levels:
            added = ", ".join(f"{sql} AS {alias}" for alias, sql in level)
            source = f"(SELECT *, {added} FROM {source})"
        filtered = "" if where is None else f" WHERE {where}"
        return f"SELECT {', '.join(columns)} FROM {source}{filtered}"
