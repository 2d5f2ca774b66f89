"""The few pieces of SQL text that are not fixed: numbers and dates as literals, names in quotes, texts as parameters.

No text of an analyst is ever part of a statement. Texts are bound as parameters; columns have names of our own, but for
the declared columns of a source, which are quoted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import count
from typing import Literal

from privet.errors import InternalError
from privet.exact import Exact, nearest
from privet.tables.units import NARROW

Kind = Literal["integer", "boolean", "text", "date", "time"]
"""How a value is held: an integer (BIGINT or HUGEINT), a BOOLEAN, a VARCHAR, a DATE, a TIMESTAMP; or NULL."""


@dataclass(frozen=True, slots=True)
class Value:
    """SQL of one value: of a `kind`, and over columns that exist from `level` on (see `Layers`).

    Claim: it is total. For no row does it raise an error.
    """

    sql: str
    kind: Kind
    level: int = 0
    atom: bool = False
    """Whether the SQL is so short that it may be written several times."""
    literal: bool = False
    """Whether it is a public constant, and never NULL."""


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


def held(largest: int) -> str:
    """The type that holds integers up to this, either sign.

    Example:
        >>> held(2**61), held(2**62)
        ('BIGINT', 'HUGEINT')
    """
    if largest >= 2**127:
        raise InternalError("an integer of more than 127 bits has no type. This is a bug in Privet.")
    return "BIGINT" if largest < NARROW else "HUGEINT"


def integer(number: int, name: str | None = None) -> str:
    """An integer as a literal, of this type or of the one that holds it.

    Example:
        >>> integer(-5), integer(2**70), integer(3, "HUGEINT")
        ('(-5)::BIGINT', '1180591620717411303424::HUGEINT', '3::HUGEINT')
    """
    of_type = name or ("BIGINT" if abs(number) <= NARROW else held(abs(number)))
    return f"({number})::{of_type}" if number < 0 else f"{number}::{of_type}"


def floor_divided(sql: str, by: int, least: int) -> str:
    """An integer that is at least `least`, divided and rounded down.

    DuckDB rounds towards 0, so that what can be negative is moved above 0 first.

    Example:
        >>> floor_divided("x", 4, 0), floor_divided("x", 3, -4)
        ('(x >> 2)', '((x + 6) // 3 - 2)')
    """
    if by == 1:
        return sql
    if least < 0:
        ahead = -(least // by)
        return f"(({sql} + {ahead * by}) // {by} - {ahead})"
    return f"({sql} >> {by.bit_length() - 1})" if by & (by - 1) == 0 else f"({sql} // {by})"


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
